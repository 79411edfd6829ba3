"""Systems are compared over the questions that they share, and nobody sees what is hidden."""

from __future__ import annotations

import pytest

from masis.errors import InputError, UnknownRecord
from masis.schema.actor import Actor
from masis.schema.comparison import LIST_NAMES, MEASURES, SystemComparison
from masis.schema.team import QueuePolicy
from masis.services import Workbench
from masis.trust.paired import questions_needed
from masis.views.systems import AnswerWords, accuracy_text, basis_text, causes_text, listed_rows
from tests.reviewing import ADA, decide
from tests.store.factories import a_case, a_run, an_iteration

BEN = Actor(name="Ben")


def add_answer(
    desk: Workbench, question: str, system: str, *, flagged: bool = False, **fields: object
) -> str:
    """Store an audited answer of a system, and return its id."""
    case = a_case(question, query=f"What is {question}?", system=system, **fields)
    desk.store.cases.add(case)
    run_id = f"run of {case.id}"
    if flagged:
        desk.store.runs.finish(a_run(case, run_id))
    else:
        run = a_run(
            case, run_id, iterations=(an_iteration(invalid=()),), needs_review=False,
            review_reasons=(),
        )  # fmt: skip
        desk.store.runs.finish(run)
    return case.id


def add_pairs(desk: Workbench, *, worse: int = 0, better: int = 0, same: int = 0) -> None:
    """Store answers of v1 and v2 to questions that v2 gets worse, better, or equally right."""
    for kind, count in (("worse", worse), ("better", better), ("same", same)):
        for number in range(count):
            question = f"{kind}-{number}"
            add_answer(desk, question, "v1", flagged=kind == "better")
            add_answer(desk, question, "v2", flagged=kind == "worse")


def compared(desk: Workbench, *names: str, actor: Actor = ADA) -> SystemComparison:
    [comparison] = desk.comparison.compare(actor, names or ("v1", "v2"))
    return comparison


def test_regressions_are_the_questions_that_only_the_second_system_gets_wrong(
    bench: Workbench,
) -> None:
    add_pairs(bench, worse=8, better=1, same=3)
    result = compared(bench)
    assert {pair.question for pair in result.regressions} == {f"worse-{n}" for n in range(8)}
    assert [pair.question for pair in result.improvements] == ["better-0"]
    pair = result.regressions[0]
    assert (pair.first, pair.second) == (f"{pair.question}:v1", f"{pair.question}:v2")
    assert (pair.first_judgement, pair.second_judgement) == ("nothing_found", "flagged")
    flagged = result.measure("flagged")
    assert (flagged.questions, flagged.only_first, flagged.only_second) == (12, 1, 8)
    # the exact test of 1 against 8: 2 * (1 + 9) / 2^9
    assert flagged.p == pytest.approx(20 / 512)
    assert flagged.conclusion == "worse"
    assert flagged.difference == pytest.approx(7 / 12)
    assert flagged.low is not None
    assert flagged.high is not None
    assert 0 < flagged.low < 7 / 12 < flagged.high
    assert result.measure("fabricated").only_second == 8


def test_five_differing_questions_are_too_few_to_tell(bench: Workbench) -> None:
    add_pairs(bench, worse=5, same=20)
    assert compared(bench).measure("flagged").conclusion == "too_few"


def test_only_questions_of_both_systems_count(bench: Workbench) -> None:
    add_pairs(bench, same=2)
    add_answer(bench, "early", "v1")
    add_answer(bench, "late", "v2", flagged=True)
    bench.store.cases.add(a_case("new", system="v1"))
    bench.store.cases.add(a_case("new", system="v2"))
    result = compared(bench)
    assert (result.shared, result.only_first, result.only_second, result.unjudged) == (3, 1, 1, 1)
    assert result.measure("flagged").questions == 2


def test_a_persons_decision_counts_before_the_audit(bench: Workbench) -> None:
    add_pairs(bench, worse=1, same=1)
    decide(bench, "worse-0:v2", "approve")
    decide(bench, "same-0:v2", "reject")
    result = compared(bench)
    assert [pair.question for pair in result.regressions] == ["same-0"]
    assert result.regressions[0].second_judgement == "rejected"


def test_the_verdict_says_how_many_questions_people_decided_and_how(bench: Workbench) -> None:
    add_pairs(bench, worse=1, same=3)
    decide(bench, "same-0:v1", "approve", reviewer="Ada", machine_shown=())
    decide(bench, "same-0:v2", "reject", reviewer="Ben", machine_shown=("marks",))
    decide(bench, "same-1:v1", "approve", reviewer="Ben", machine_shown=("marks",))
    basis = compared(bench).basis
    assert (basis.decided, basis.by_audit) == (1, 3)
    assert (basis.reviewers, basis.answers, basis.blind) == (2, 3, 1)
    assert basis_text(compared(bench)) == (
        "1 of 4 questions decided by people, 2 reviewers, 1 of 3 answers blind;"
        " 3 count by the audit alone."
    )


def test_the_audit_is_compared_with_people_on_the_answers_that_both_judged(
    bench: Workbench,
) -> None:
    add_pairs(bench, worse=2, same=2)
    decide(bench, "worse-0:v2", "approve")  # the audit flagged it
    decide(bench, "worse-1:v2", "reject")  # the audit flagged it
    decide(bench, "same-0:v2", "reject")  # the audit didn't
    known = compared(bench).audit_accuracy
    assert (known.wrong, known.wrong_flagged) == (2, 1)
    assert (known.right, known.right_flagged) == (1, 1)
    assert accuracy_text(compared(bench)) == (
        "How reliable the audit is here: it flagged 1 of the 2 answers that people rejected or"
        " corrected, and 1 of the 1 answer that people approved."
    )


def test_each_judged_question_is_in_one_of_four_lists(bench: Workbench) -> None:
    add_pairs(bench, worse=2, better=1, same=3)
    decide(bench, "same-0:v1", "reject")
    decide(bench, "same-0:v2", "reject")
    result = compared(bench)
    lists = {
        name: [pair.question for pair in result.list_questions(name)[0]] for name in LIST_NAMES
    }
    assert lists == {
        "worse": ["worse-0", "worse-1"],
        "better": ["better-0"],
        "both_wrong": ["same-0"],
        "both_right": ["same-1", "same-2"],
    }
    assert sum(result.list_questions(name)[1] for name in LIST_NAMES) == 6


def test_a_list_says_of_each_answer_whether_the_audit_found_an_issue(bench: Workbench) -> None:
    add_pairs(bench, worse=1)
    decide(bench, "worse-0:v1", "reject")
    decide(bench, "worse-0:v2", "approve")
    bench.store.database.execute("UPDATE cases SET severity = 'high' WHERE id = 'worse-0:v2'")
    [pair] = compared(bench).improvements
    assert pair.first_severity is None
    assert pair.second_severity == "high"
    assert pair.severity is None, "the wrong answer is the one of v1"


def test_an_answer_that_was_decided_without_an_audit_isnt_called_free_of_issues(
    bench: Workbench,
) -> None:
    add_answer(bench, "q", "v1")
    bench.store.cases.add(a_case("q", query="What is q?", system="v2"))
    decide(bench, "q:v2", "reject")
    [pair] = compared(bench).regressions
    assert (pair.first_audited, pair.second_audited) == (True, False)
    [listed] = listed_rows([pair])
    assert (listed.before_audit_issue, listed.now_audit_issue) == (
        "no issue found by the audit",
        "not audited",
    )


def test_a_row_of_a_file_has_the_answers_reasons_and_notes_that_are_given(
    bench: Workbench,
) -> None:
    add_pairs(bench, worse=2)
    first, second = compared(bench).regressions
    words = AnswerWords("contradicted", "41 minutes.", "It took 61 minutes [1].")
    given, other = listed_rows([first, second], {first.second: words})
    assert (given.now_reason, given.now_note, given.now_answer) == words
    assert (given.before_reason, given.before_note, given.before_answer) == ("", "", "")
    assert other[-6:] == ("",) * 6


def test_reasons_of_people_are_counted_for_each_system(bench: Workbench) -> None:
    for number in range(3):
        for system in ("v1", "v2"):
            add_answer(bench, f"q{number}", system)
    decide(bench, "q0:v1", "approve")
    decide(bench, "q0:v2", "reject", reason="contradicted")
    decide(bench, "q1:v2", "reject", reason="unsupported")
    decide(bench, "q2:v1", "reject", reason="unsupported")
    decide(bench, "q2:v2", "reject", reason="In my own words.")
    reasons = [row for row in compared(bench).groups if row.group == "reason"]
    shares = {
        row.value: (round((row.first or 0) * 3), round((row.second or 0) * 3)) for row in reasons
    }
    assert shares == {
        "The evidence contradicts it": (0, 1),
        "Says more than the evidence": (1, 1),
        "Other": (0, 1),
    }


def test_lists_are_complete_on_request(bench: Workbench) -> None:
    add_pairs(bench, worse=3)
    [short] = bench.comparison.compare(ADA, ["v1", "v2"], most_listed=2)
    [complete] = bench.comparison.compare(ADA, ["v1", "v2"], most_listed=None)
    assert (len(short.regressions), short.regression_count) == (2, 3)
    assert len(complete.regressions) == 3


def test_a_comparison_says_how_many_questions_would_show_a_difference(bench: Workbench) -> None:
    add_pairs(bench, worse=3, better=3, same=14)
    needed = {row.points: row.questions for row in compared(bench).needed}
    assert needed == {points: questions_needed(points / 100, 6 / 20) for points in (5, 10)}
    assert needed[5] > needed[10] > 20


def test_causes_are_those_of_people_if_they_gave_any(bench: Workbench) -> None:
    for system in ("v1", "v2"):
        case = a_case("q", system=system, answer="It was opened in 1931 [9].")
        bench.cases.add_one(ADA, case)
        bench.audits.audit(ADA, case)

    def causes() -> list[str]:
        return [row.value for row in compared(bench).groups if row.group == "cause"]

    assert compared(bench).causes_by == "audit"
    assert "Citation" in causes()
    assert causes_text(compared(bench)).startswith("People gave no causes")
    decide(
        bench,
        "q:v2",
        "override",
        corrected_answer="In 1932.",
        extra={"reason_code": "contradicted"},
    )
    assert compared(bench).causes_by == "people"
    assert causes() == ["Generation"]
    assert causes_text(compared(bench)) == "Causes are those of people's labels and reasons."


def test_an_opened_answer_has_the_decision_only_if_its_viewer_may_see_it(bench: Workbench) -> None:
    add_pairs(bench, same=2)
    decide(bench, "same-0:v2", "reject", reviewer="Ada", reason="It's wrong.")
    entry = bench.comparison.open_answer(BEN, "same-0:v2").decision
    assert entry is not None
    assert entry.decision is not None
    assert (entry.decision.reviewer, entry.decision.reason) == ("Ada", "It's wrong.")
    bench.team.put_in_force(ADA, QueuePolicy(reviewers=2, rule="adjudicated"))
    decide(bench, "same-1:v2", "reject", reviewer="Ada", reason="It's wrong.")
    assert bench.comparison.open_answer(BEN, "same-1:v2").decision is None


def test_cost_and_length_are_compared_where_both_are_known(bench: Workbench) -> None:
    for number in range(30):
        costs = {"v1": 0.02, "v2": 0.01}
        for system, cost in costs.items():
            answer = "word " * (10 if system == "v1" else 20 + number)
            metadata = {"cost_usd": cost + number / 1000} if number else {}
            add_answer(bench, f"q{number}", system, answer=answer, metadata=metadata)
    result = compared(bench)
    cost, length = result.measure("cost"), result.measure("length")
    assert cost.questions == 29
    assert cost.difference == pytest.approx(-0.01)
    assert length.questions == 30
    assert length.low is not None
    assert length.low > 0
    assert length.conclusion == "no_difference", "neither length is better"


def test_differences_are_broken_down_by_field(bench: Workbench) -> None:
    for number in range(7):
        for system in ("v1", "v2"):
            metadata = {"field": "Law" if number < 6 else "Art"}
            flagged = system == "v2" and number < 6
            add_answer(bench, f"q{number}", system, flagged=flagged, metadata=metadata)
    fields = {row.value: row for row in compared(bench).groups if row.group == "field"}
    assert (fields["Law"].questions, fields["Law"].conclusion) == (6, "worse")
    assert (fields["Art"].questions, fields["Art"].conclusion) == (1, "too_few")


def test_every_later_system_is_compared_with_the_first_on_the_same_questions(
    bench: Workbench,
) -> None:
    add_pairs(bench, same=3)
    add_answer(bench, "same-0", "v3", flagged=True)
    results = bench.comparison.compare(ADA, ["v1", "v2", "v3"])
    assert [(result.second.name, result.shared) for result in results] == [("v2", 1), ("v3", 1)]
    assert results[1].regression_count == 1


@pytest.mark.parametrize("machine", ["after", "never"])
def test_a_blind_reviewer_learns_no_result_of_an_answer_they_have_yet_to_decide(
    bench: Workbench, machine: str
) -> None:
    add_pairs(bench, worse=2)
    bench.team.put_in_force(ADA, QueuePolicy.model_validate({"machine": machine}))
    result = compared(bench, actor=BEN)
    assert (result.regressions, result.hidden) == ((), 2)
    assert all(
        row.questions == 0 for row in result.measures if MEASURES[row.measure].unit == "share"
    )
    assert result.groups == ()
    for case_id in ("worse-0:v1", "worse-0:v2"):
        decide(bench, case_id, "approve" if case_id.endswith("v1") else "reject", reviewer="Ben")
    assert [pair.question for pair in compared(bench, actor=BEN).regressions] == ["worse-0"]


def test_a_reviewer_learns_nothing_of_anothers_decision_on_a_shared_case(bench: Workbench) -> None:
    bench.team.put_in_force(ADA, QueuePolicy(reviewers=2, rule="adjudicated"))
    add_pairs(bench, same=1)
    before = compared(bench, actor=BEN)
    decide(bench, "same-0:v2", "reject", reviewer="Ada")
    assert compared(bench, actor=BEN) == before


def test_copies_that_measure_people_are_in_no_comparison(bench: Workbench) -> None:
    add_pairs(bench, same=1)
    bench.store.database.execute("UPDATE cases SET planted = 1 WHERE id = 'same-0:v2'")
    assert compared(bench).shared == 0


@pytest.mark.parametrize("names", [("v1",), ("v1", "v1"), tuple("abcdefghi")])
def test_a_comparison_needs_two_to_eight_different_systems(
    bench: Workbench, names: tuple[str, ...]
) -> None:
    with pytest.raises(InputError, match="systems"):
        bench.comparison.compare(ADA, names)


def test_an_unknown_system_is_an_error(bench: Workbench) -> None:
    with pytest.raises(UnknownRecord, match="no system 'v1'"):
        bench.comparison.compare(ADA, ["v1", "v2"])


def test_the_error_for_the_id_of_a_question_names_the_answers_of_its_systems(
    bench: Workbench,
) -> None:
    for system in ("v1", "v2"):
        add_answer(bench, "q1", system)
    add_answer(bench, "q11", "v1")
    with pytest.raises(UnknownRecord, match=r"answer from one system: 'q1:v1', 'q1:v2'\?$"):
        bench.cases.open_for(ADA, "q1")
    with pytest.raises(UnknownRecord, match="Import cases"):
        bench.cases.open_for(ADA, "q")

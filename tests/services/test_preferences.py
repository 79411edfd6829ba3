"""Preferences: two answers without names, one verdict a reviewer, and what follows from them."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator
from pathlib import Path

import pytest

from masis.errors import Conflict, InputError, NotAllowed, StoreError, UnknownRecord
from masis.schema.actor import Actor
from masis.schema.case import Case
from masis.schema.preference import PreferenceDecision, PreferenceVerdict, swaps_sides
from masis.schema.team import QueuePolicy
from masis.services import SIGN_IN_REQUIRED, Workbench
from masis.services.preferences import NewPreference, PreferenceTask

ANA, BEN = Actor(name="Ana"), Actor(name="Ben")
SECRET = "omega-system"  # a name that can't be in a text by chance
NAMES = (SECRET, "sigma-system", "theta-system")


def answer_of(system: str, question: int, **more: object) -> Case:
    number = NAMES.index(system)
    return Case.model_validate(
        {
            "id": f"q{question}:{system}",
            "question_id": f"q{question}",
            "query": f"What is {question}?",
            "answer": f"Answer {'xyz'[number]} to {question} [1].",
            "evidence": [{"id": "1", "text": f"Chunk {question}."}],
            "metadata": {"system": system},
            **more,
        }
    )


@pytest.fixture
def workbench(tmp_path: Path) -> Iterator[Workbench]:
    """Two systems that answered three questions."""
    opened = Workbench.open(tmp_path / "preferences.db")
    add_answers(opened, NAMES[:2], 3)
    yield opened
    opened.close()


def add_answers(workbench: Workbench, systems: tuple[str, ...], questions: int) -> None:
    for question in range(questions):
        for system in systems:
            workbench.cases.add_one(ANA, answer_of(system, question))


def next_pair(workbench: Workbench, actor: Actor = ANA) -> PreferenceTask:
    task = workbench.preferences.next(actor)
    assert task is not None
    return task


def prefer(workbench: Workbench, actor: Actor, letter: str, reason: str = "") -> None:
    """Decide the next pair for the answer of a system, by the letter in its words."""
    task = next_pair(workbench, actor)
    verdict: PreferenceVerdict = "left" if f"Answer {letter} " in task.left.answer else "right"
    give(workbench, actor, verdict, reason)


def give(
    workbench: Workbench, actor: Actor, verdict: PreferenceVerdict, reason: str = ""
) -> PreferenceTask:
    task = next_pair(workbench, actor)
    workbench.preferences.decide(
        actor, NewPreference(pair=task.pair, verdict=verdict, reason=reason)
    )
    return task


def test_a_pair_to_decide_names_neither_systems_nor_cases(workbench: Workbench) -> None:
    task = next_pair(workbench)
    recorded = workbench.preferences.decide(ANA, NewPreference(pair=task.pair, verdict="left"))
    undone = workbench.preferences.undo(ANA)
    for shown in (task, recorded, undone):
        text = shown.model_dump_json()
        assert not any(name in text for name in NAMES)
        assert "q0" not in text


def test_sides_are_shuffled_by_the_recorded_seed_and_stay_when_the_page_loads_again(
    workbench: Workbench,
) -> None:
    add_answers(workbench, NAMES[:2], 40)
    sides = []
    for _ in range(40):
        before = next_pair(workbench)
        assert next_pair(workbench) == before
        give(workbench, ANA, "equal")
        sides.append("Answer x" in before.left.answer)
    assert 8 < sum(sides) < 32
    for entry, is_first_left in zip(workbench.store.preference_log.iterate(), sides, strict=True):
        assert entry.decision is not None
        assert entry.decision.seed is not None
        assert swaps_sides(entry.decision.seed) != is_first_left
        assert entry.decision.left_case.endswith(NAMES[0] if is_first_left else NAMES[1])


def test_each_reviewer_decides_every_pair_once(workbench: Workbench) -> None:
    for _ in range(3):
        prefer(workbench, ANA, "x")
    assert workbench.preferences.next(ANA) is None
    assert workbench.preferences.progress(ANA).model_dump() == {"decided": 3, "total": 3}
    assert workbench.preferences.progress(BEN).model_dump() == {"decided": 0, "total": 3}
    assert next_pair(workbench, BEN)


def test_three_systems_make_three_pairs_of_a_question(workbench: Workbench) -> None:
    add_answers(workbench, NAMES, 1)
    pairs = {give(workbench, ANA, "equal").pair for _ in range(3)}
    assert len(pairs) == 3
    assert workbench.preferences.progress(ANA).total == 5
    assert "What is 1" in next_pair(workbench).question


def test_a_pair_cant_be_decided_twice_and_a_repeated_submission_is_harmless(
    workbench: Workbench,
) -> None:
    task = next_pair(workbench)
    given = NewPreference(pair=task.pair, verdict="left", token="once")
    first = workbench.preferences.decide(ANA, given)
    assert workbench.preferences.decide(ANA, given).id == first.id
    with pytest.raises(Conflict, match="already"):
        workbench.preferences.decide(ANA, NewPreference(pair=task.pair, verdict="right"))


def test_an_undone_verdict_stays_in_the_log_and_its_pair_is_open_again(
    workbench: Workbench,
) -> None:
    task = give(workbench, ANA, "left")
    assert workbench.preferences.undo(ANA).pair == task.pair
    assert next_pair(workbench) == task
    assert [entry.decision.kind for entry in workbench.store.preference_log.iterate()] == [  # type: ignore[union-attr]
        "preference",
        "undo",
    ]
    with pytest.raises(Conflict, match="no preference"):
        workbench.preferences.undo(ANA)
    give(workbench, ANA, "right")
    with pytest.raises(Conflict):
        workbench.preferences.undo(BEN)


@pytest.mark.parametrize("pair", ["", "1", "1-0", "99-abc", "x-1", "-", "9" * 30, "²-1"])
def test_a_pair_that_doesnt_exist_is_unknown(workbench: Workbench, pair: str) -> None:
    with pytest.raises(UnknownRecord):
        workbench.preferences.decide(ANA, NewPreference(pair=pair, verdict="left"))


def test_the_name_of_a_pair_is_the_reviewers_own(workbench: Workbench) -> None:
    with pytest.raises(UnknownRecord):
        workbench.preferences.get(BEN, next_pair(workbench).pair)


def test_a_person_without_a_name_cant_decide(workbench: Workbench) -> None:
    with pytest.raises(InputError, match="name"):
        workbench.preferences.next(Actor())


# Blindness


def test_others_verdicts_and_names_are_hidden_until_a_reviewer_has_decided_the_question(
    workbench: Workbench,
) -> None:
    for _ in range(3):
        prefer(workbench, BEN, "x", reason="seen-by-ben")
    assert workbench.preferences.results(ANA).verdicts == 0
    assert workbench.preferences.find(ANA).total == 0
    prefer(workbench, ANA, "y")
    results, page = workbench.preferences.results(ANA), workbench.preferences.find(ANA)
    assert results.reviewers == {"Ana": 1, "Ben": 1}
    assert {row.query for row in page.rows} == {"What is 0?"}
    assert page.total == 2


def test_an_answer_isnt_named_while_another_pair_of_its_question_is_open(
    workbench: Workbench,
) -> None:
    add_answers(workbench, NAMES, 1)
    give(workbench, ANA, "equal")
    give(workbench, ANA, "equal")
    assert workbench.preferences.find(ANA).total == 0
    give(workbench, ANA, "equal")
    assert workbench.preferences.find(ANA).total == 3


def test_the_policy_hides_systems_until_every_pair_of_the_question_is_decided(
    tmp_path: Path,
) -> None:
    bench = Workbench.open(tmp_path / "three.db")
    add_answers(bench, NAMES, 1)
    case_id = f"q0:{SECRET}"
    assert not bench.preferences.hides_system(ANA, case_id)
    bench.team.put_in_force(ANA, QueuePolicy(systems="after"))
    for verdict in ("left", "right", "equal"):
        assert bench.preferences.hides_system(ANA, case_id)
        give(bench, ANA, verdict)  # type: ignore[arg-type]
    assert not bench.preferences.hides_system(ANA, case_id)
    assert bench.preferences.hides_system(BEN, case_id)
    bench.preferences.undo(ANA)
    assert bench.preferences.hides_system(ANA, case_id)
    alone = answer_of(SECRET, 7)
    bench.cases.add_one(ANA, alone)
    assert not bench.preferences.hides_system(ANA, alone.id), "there is nothing to compare"
    bench.close()


def test_the_policy_hides_no_system_from_people_who_may_not_decide(tmp_path: Path) -> None:
    bench = Workbench.open(tmp_path / "signed-in.db", access=SIGN_IN_REQUIRED)
    lead = Actor(name="Lea", roles=("lead",), authenticated=True)
    for system in NAMES[:2]:
        bench.store.cases.add(answer_of(system, 0))
    bench.team.put_in_force(lead, QueuePolicy(systems="after"))
    reader = Actor(name="Rita", roles=("viewer",), authenticated=True)
    reviewer = Actor(name="Rolf", roles=("reviewer",), authenticated=True)
    assert not bench.preferences.hides_system(reader, f"q0:{SECRET}")
    assert bench.preferences.hides_system(reviewer, f"q0:{SECRET}")
    bench.close()


def test_an_undone_verdict_hides_the_others_again(workbench: Workbench) -> None:
    prefer(workbench, BEN, "x")
    prefer(workbench, ANA, "x")
    workbench.preferences.undo(ANA)
    assert workbench.preferences.find(ANA).total == 0


def test_only_a_lead_sees_everyones_verdicts_before_deciding(tmp_path: Path) -> None:
    workbench = Workbench.open(tmp_path / "rights.db", access=SIGN_IN_REQUIRED)
    people = {
        role: Actor(name=role, roles=(role,), authenticated=True)  # type: ignore[arg-type]
        for role in ("viewer", "reviewer", "lead")
    }
    for system in NAMES[:2]:
        workbench.cases.add_one(people["lead"], answer_of(system, 0))
    prefer(workbench, people["reviewer"], "x")
    assert workbench.preferences.results(people["viewer"]).verdicts == 1  # may never decide
    assert workbench.preferences.results(people["lead"]).verdicts == 0
    assert workbench.preferences.results(people["lead"], everyone=True).verdicts == 1
    for read in (workbench.preferences.results, workbench.preferences.find):
        with pytest.raises(NotAllowed):
            read(people["reviewer"], everyone=True)
    with pytest.raises(NotAllowed):
        workbench.preferences.next(people["viewer"])
    with pytest.raises(NotAllowed):
        workbench.preferences.export(people["reviewer"])
    workbench.close()


@pytest.mark.parametrize("machine", ["first", "after"])
def test_a_pair_to_decide_shows_nothing_of_the_audit_under_any_policy(
    tmp_path: Path, machine: str
) -> None:
    workbench = Workbench.open(tmp_path / "marks.db")
    for system in NAMES[:2]:
        case = answer_of(system, 0, answer="It was opened in 1931 [9].")
        workbench.cases.add_one(ANA, case)
        workbench.audits.audit(ANA, case)
    workbench.team.put_in_force(ANA, QueuePolicy.model_validate({"machine": machine}))
    run = workbench.cases.open(case.id).run
    assert run is not None
    assert run.iterations[0].issues
    task = next_pair(workbench)
    assert set(task.left.model_dump()) == {"answer", "evidence"}
    shown = task.model_dump_json()
    assert not [issue for issue in run.iterations[0].issues if issue.description in shown]
    workbench.close()


def test_an_undo_says_which_verdict_it_took_back(workbench: Workbench) -> None:
    add_answers(workbench, NAMES[:2], 1)
    give(workbench, ANA, "both_bad")
    recorded = workbench.preferences.undo(ANA)
    assert (recorded.kind, recorded.undone) == ("undo", "both_bad")


# Results


def test_results_have_win_rates_agreement_and_the_share_of_the_left_side(
    workbench: Workbench,
) -> None:
    for letter in "xxy":
        prefer(workbench, ANA, letter)
    for letter in "xxx":
        prefer(workbench, BEN, letter)
    found = workbench.preferences.results(ANA)
    (rate,) = found.win_rates
    assert (rate.first, rate.wins, rate.losses, rate.ties) == (SECRET, 5, 1, 0)
    assert rate.is_too_few_to_tell is False
    assert found.agreement is not None
    assert found.agreement.raw.value == pytest.approx(2 / 3)
    assert found.disputed == 1
    assert workbench.preferences.find(ANA, disputed=True).total == 2
    assert found.left.n == 6
    assert [strength.system for strength in found.strengths.strengths] == [SECRET, NAMES[1]]


def test_two_bad_answers_are_a_tie_and_are_counted(workbench: Workbench) -> None:
    give(workbench, ANA, "both_bad")
    give(workbench, ANA, "equal")
    found = workbench.preferences.results(ANA)
    assert found.win_rates[0].ties == 2
    assert found.both_bad.value == 0.5
    assert found.left.value is None


def test_no_verdicts_give_no_figures(workbench: Workbench) -> None:
    found = workbench.preferences.results(ANA)
    assert (found.verdicts, found.win_rates, found.agreement) == (0, [], None)
    assert found.strengths.why


def test_verdicts_can_be_limited_to_two_systems(workbench: Workbench) -> None:
    add_answers(workbench, NAMES, 1)
    for _ in range(3):
        give(workbench, ANA, "equal")
    assert workbench.preferences.find(ANA, systems=NAMES[1:]).total == 1


# Exports


def test_exported_pairs_have_the_preferred_answer_of_most_reviewers_and_no_names(
    workbench: Workbench,
) -> None:
    prefer(workbench, ANA, "x")
    prefer(workbench, BEN, "x")
    prefer(workbench, ANA, "x")
    prefer(workbench, BEN, "y")
    give(workbench, ANA, "both_bad")
    rows, left_out = workbench.preferences.export(ANA)
    assert left_out == {"no answer is preferred": 1, "both answers are bad": 1}
    (row,) = rows
    assert row["chosen"] == [{"role": "assistant", "content": "Answer x to 0 [1]."}]
    assert row["rejected"] == [{"role": "assistant", "content": "Answer y to 0 [1]."}]
    assert "What is 0?" in row["prompt"][-1]["content"]
    assert SECRET not in json.dumps(rows)
    openai = workbench.preferences.export(ANA, "pairs-openai").rows[0]
    assert openai["preferred_output"] == row["chosen"]
    with pytest.raises(InputError, match="isn't a format"):
        workbench.preferences.export(ANA, "claims")


# The log


def test_the_preference_log_is_verified_and_cant_be_changed(workbench: Workbench) -> None:
    give(workbench, ANA, "left", reason="shorter")
    assert workbench.store.check().ok
    database = sqlite3.connect(workbench.database)
    with pytest.raises(sqlite3.IntegrityError, match="only grows"):
        database.execute("UPDATE preference_log SET verdict = 'right'")
    database.execute("DROP TRIGGER preference_log_no_update")
    database.execute("UPDATE preference_log SET verdict = 'right'")
    database.commit()
    database.close()
    assert "verdict 'right'" in " ".join(workbench.store.preference_log.verify().broken)


def test_an_answer_that_changed_after_the_verdict_is_found(workbench: Workbench) -> None:
    give(workbench, ANA, "left")
    assert workbench.store.preference_log.check_subjects().checked == 1
    workbench.store.database.execute("UPDATE cases SET digest = 'other' WHERE seq = 1")
    assert workbench.store.preference_log.check_subjects().broken


def test_redacting_a_case_removes_the_reasons_about_it_and_closes_its_pairs(
    workbench: Workbench,
) -> None:
    give(workbench, ANA, "left", reason="names Mrs Miller")
    workbench.reviews.redact_case(ANA, f"q0:{SECRET}", "asked to")
    assert b"Miller" not in workbench.database.read_bytes()
    assert workbench.store.preference_log.verify().intact
    assert workbench.preferences.progress(BEN).total == 2
    with pytest.raises(Conflict, match="no preference"):
        workbench.preferences.undo(ANA)


def test_a_reason_can_be_redacted_and_its_verdict_counts(workbench: Workbench) -> None:
    prefer(workbench, ANA, "x", reason="names Mrs Miller")
    entry = next(workbench.store.preference_log.iterate())
    workbench.reviews.redact_entry(ANA, entry.id, "asked to")
    (row,) = workbench.preferences.find(ANA).rows
    assert (row.reason, row.reviewer) == ("", "Ana")


def test_answers_to_different_questions_cant_be_compared(workbench: Workbench) -> None:
    with pytest.raises(StoreError, match="different questions"):
        workbench.store.preference_log.append(
            PreferenceDecision(
                reviewer="Ana",
                left_case=f"q0:{SECRET}",
                right_case=f"q1:{SECRET}",
                seed=1,
                verdict="left",
            )
        )


@pytest.mark.parametrize(
    "fields",
    [
        {"verdict": None},
        {"seed": None},
        {"kind": "undo"},
        {"right_case": "a"},
        {"undoes": "entry"},
    ],
)
def test_an_entry_that_contradicts_itself_is_refused(fields: dict[str, object]) -> None:
    valid = {"reviewer": "A", "left_case": "a", "right_case": "b", "seed": 1, "verdict": "left"}
    PreferenceDecision.model_validate(valid)
    with pytest.raises(ValueError, match=r"preference|undo|itself"):
        PreferenceDecision.model_validate(valid | fields)

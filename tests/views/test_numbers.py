"""How numbers, verdicts, states, scores and entries of the log are worded and marked, once for all
surfaces.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, get_args

import pytest

from masis.api.audits import run_audit
from masis.schema.audit import Issue
from masis.schema.case import ClaimVerdict
from masis.schema.review import CaseState, Decision, EntryKind, EntrySource, LogEntry, Verdict
from masis.schema.rules import ReviewCode, ReviewTier
from masis.schema.run import Iteration, Run, TerminationReason
from masis.schema.wording import shorten
from masis.settings import Settings
from masis.views import comparison, story, verdicts, words
from masis.views.charts import period_chart, spread_chart
from masis.views.comparison import (
    changed_settings_words,
    differing,
    issues_by_side,
    models_words,
    score_frame,
)
from masis.views.issue_history import course_at, follow, issue_history
from masis.views.log_entries import (
    entry_about,
    entry_contents,
    entry_reason,
    entry_texts,
    entry_word,
    undone_text,
)
from masis.views.markdown import badge, colour_label, escape_markdown
from masis.views.metrics import period_bounds, period_name
from masis.views.numbering import numbered_issues
from masis.views.numbers import (
    cost_text,
    day,
    dollars,
    duration,
    file_size,
    in_unit,
    moment,
    number,
    percent,
    score_text,
)
from masis.views.report import ReportSubject, case_report
from tests.audit.factories import issue
from tests.cases import case_of

UNITS = {"ms": "12 ms", "USD": "$12.00", "%": "12%", "": "12"}


@pytest.mark.parametrize(
    ("written", "values", "texts"),
    [
        (percent, (None, 0.0, 0.034, 0.31, 1.0), "– | 0% | 3.4% | 31% | 100%"),
        (partial(percent, whole_from=0.01), (0.05, 0.0049, 0.48), "5% | 0.5% | 48%"),
        (percent, (0.575, 23 / 40, 0.125, 0.0225, 0.9975), "58% | 58% | 13% | 2.3% | 99.8%"),
        (
            number,
            (None, 0.0, 0.0312, 0.5, 12.34, 1234.5, 3.0),
            "– | 0 | 0.031 | 0.50 | 12.3 | 1,234 | 3",
        ),
        (
            duration,
            (None, 0.5, 12.0, 999.0, 1500.0, 61_234.0),
            "– | 0.50 ms | 12 ms | 999 ms | 1.5 s | 1 min 1 s",
        ),
        (
            duration,
            (59_400.0, 59_600.0, 105_000.0, 5_400_000.0, 9_000_000.0),
            "59.4 s | 1 min | 1 min 45 s | 90 min | 2.5 h",
        ),
        (
            score_text,
            (None, 0.0, 0.456, 1.0, 7.0, 85.5),
            "unscored | 0.00 | 0.46 | 1.00 | 7 | 85.50",
        ),
        (
            dollars,
            (None, 0.0, 0.000042, 0.00421, 0.5, 1234.5),
            "– | $0.00 | $0.000042 | $0.0042 | $0.50 | $1,234.50",
        ),
        (cost_text, (None, 0.5), "cost unknown | $0.50"),
        (file_size, (0, 12_345, 3_400_000), "0 kB | 12 kB | 3.4 MB"),
        (day, ("2025-11-02",), "2 Nov 2025"),
        (moment, ("2025-11-12T14:02:33.120Z",), "12 Nov 2025 14:02"),
        *((in_unit(unit), (12.0, None), f"{text} | –") for unit, text in UNITS.items()),
    ],
)
def test_figures_have_sensible_digits_and_units(
    written: Callable[[Any], str], values: tuple[Any, ...], texts: str
) -> None:
    assert [written(value) for value in values] == texts.split(" | ")


def test_text_is_truncated_with_an_ellipsis() -> None:
    assert shorten("twelve chars", 12) == "twelve chars"
    assert shorten("thirteen char", 12) == "thirteen ch…"
    assert shorten("nine 4567 and more", 11) == "nine 4567…"


@pytest.mark.parametrize(
    ("table", "values"),
    [
        (words.STATE, CaseState),
        (words.DECIDE, Verdict),
        (words.DECIDED, Verdict),
        (words.ENTRY, EntryKind),
        (words.SOURCE, EntrySource),
        (words.VERDICT, ClaimVerdict),
        (words.REASON, ReviewCode),
        (words.TIER, ReviewTier),
        (words.STOPPED, TerminationReason),
    ],
)
def test_every_literal_value_has_a_label(table: dict[str, object], values: object) -> None:
    assert set(table) == set(get_args(values))


def test_not_confirmed_has_neutral_words_and_color() -> None:
    for word in (
        words.VERDICT["unverifiable"],
        words.RULE["unverifiable_claim"],
        words.REASON["unconfirmed_claim"],
    ):
        assert (word.text, word.tone) == ("not confirmed", "calm")


def test_a_models_own_rule_is_labelled_by_its_issue_type() -> None:
    assert words.rule_word("critic_logical_gap").text == "logical gap"


def test_labels_are_colored_by_tone_and_escaped() -> None:
    assert badge(words.Word("a]b", "bad")) == r":red-badge[a\]b]"
    assert colour_label(words.label(words.STATE["accepted"])) == r":gray[Auto\-accepted]"


def test_outside_text_is_never_interpreted() -> None:
    assert (
        escape_markdown("*a* [b](http://c) www.d e@f")
        == "\\*a\\* \\[b\\]\\(http\\:\u200b\\/\\/c\\) www\u200b\\.d e\\@\u200bf"
    )


REPLAYED = "replay:/data/replies.jsonl (openai:gpt-4o, 2026-11-24)"
RECORDED = "recorded replies of openai:gpt-4o, 2026-11-24; no model was called"


def test_the_models_text_says_if_no_model_was_called() -> None:
    assert words.model_words(REPLAYED) == RECORDED
    assert words.model_words("replay:f.jsonl") == "recorded replies in f.jsonl; no model was called"
    assert words.model_words(f"offline,{REPLAYED}") == f"offline, then {RECORDED}"
    for other in ("offline", "openai:gpt-4o", "offline,openai:gpt-4o", "local:a (b, 2026-11-24)"):
        assert words.model_words(other) == other


def test_every_surface_says_that_replies_were_recorded() -> None:
    case = case_of("Ten [1].", {"1": "Ten metres."})
    run = run_audit(case)
    run = run.model_copy(
        update={"models": run.models | {"critic": REPLAYED, "evaluator": REPLAYED}}
    )
    assert f"{RECORDED} (critic, evaluator)" in story.judges_text(run)
    assert f"{RECORDED}: critic, evaluator" in comparison.models_words(run.models)
    assert escape_markdown(RECORDED) in comparison.differing(run_audit(case), run)["Right"].tolist()
    report = case_report(ReportSubject(case, "needs_review", (), run, None), (0, ""))
    assert report.count(RECORDED) >= 2
    assert REPLAYED not in report.partition("<dt>Settings")[0]
    check = run.iterations[0].claims[0].model_copy(update={"judged_by": REPLAYED})
    assert (
        verdicts.claims_data(run.iterations[0].model_copy(update={"claims": (check,)}))[0]["by"]
        == RECORDED
    )


def entry(seq: int, **decision: Any) -> LogEntry:
    about = {"reviewer": "Ada", "case_id": "c", "run_id": None} | decision
    return LogEntry(
        seq=seq,
        id=f"e{seq}",
        at="2026-01-01T10:00:00.000Z",
        payload_digest="",
        previous="",
        digest="",
        decision=Decision.model_validate(about) if decision else None,
    )


REJECTED = entry(1, verdict="reject", reason="why")
UNDO = entry(2, kind="undo", undoes="e1", reviewer="Bo")
FINAL = entry(5, kind="adjudication", verdict="override", corrected_answer="x", reason="r")


def test_an_undo_and_a_redaction_name_their_entry() -> None:
    redaction = entry(4, kind="redaction", extra={"redacts": "e3"})
    words = {
        key: word.text
        for key, word in entry_texts([FINAL, redaction, entry(3), UNDO, REJECTED]).items()
    }
    assert words == {
        "e1": "Rejected the original answer",
        "e2": "Undid “Rejected the original answer”",
        "e3": "Redacted",
        "e4": "Redacted entry e3",
        "e5": "Overrode the original answer by adjudication",
    }


def test_an_undo_of_a_missing_entry_says_so() -> None:
    assert entry_texts([UNDO])["e2"].text == "Undid a decision"


@pytest.mark.parametrize(
    ("given", "word", "about"),
    [
        (REJECTED, "Rejected", "the original answer"),
        (FINAL, "Overridden by adjudication", "the original answer, replaced with own correction"),
        (UNDO, "Undone", "“Rejected” by Ada, entry 1"),
        (entry(3), "Redacted", "its text was removed"),
        (entry(4, kind="redaction", extra={"redacts": "e1"}), "Redaction", "the text of entry 1"),
        (entry(5, kind="tag", tags=("urgent", "drug")), "Tagged", "urgent, drug"),
        (entry(6, kind="policy_accept"), "Auto-accepted", "“Rejected” by Ada, entry 1"),
    ],
)
def test_an_entry_has_a_kind_and_a_subject(given: LogEntry, word: str, about: str) -> None:
    assert entry_word(given).text == word
    assert entry_about(given.decision, REJECTED) == about


def test_an_entry_names_its_failure_modes_instead_of_their_codes() -> None:
    applied = entry(7, kind="code", codes=("rag.outdated",)).decision
    assert entry_about(applied, None, ["Outdated evidence"]) == "Outdated evidence"


def test_acceptances_name_their_rule_and_decisions_their_reason() -> None:
    assert entry_reason(REJECTED.decision) == "why"
    assert (
        entry_reason(entry(1, kind="policy_accept", extra={"rule": "4"}).decision)
        == "by acceptance rule 4"
    )
    assert entry_reason(entry(1, kind="policy_accept").decision) == "by the acceptance rule"
    assert entry_reason(None) == ""


def test_an_entry_shows_its_undo_and_its_content() -> None:
    assert [undone_text(by) for by in (None, entry(3), UNDO)] == ["", "undone", "undone by Bo"]
    corrected = entry(1, verdict="override", corrected_answer="x", reason="r").decision
    assert entry_contents(corrected) == ["corrected answer"]
    assert entry_contents(None) == []


def test_score_axes_range_from_0_to_1() -> None:
    described: Any = period_chart("share").to_dict()
    assert described["layer"][0]["encoding"]["y"]["scale"]["domain"] == [0, 1]
    spread: Any = spread_chart("ms", "answers").to_dict()
    assert spread["layer"][0]["encoding"]["y"]["title"] == "answers"


@pytest.mark.parametrize(
    ("period", "first", "last", "name"),
    [
        ("day", "2026-02-28", "2026-03-01", "28 Feb 2026"),
        ("week", "2026-11-16", "2026-11-23", "week of 16 Nov 2026"),
        ("month", "2026-12-01", "2027-01-01", "December 2026"),
    ],
)
def test_periods_have_a_start_and_a_name(period: Any, first: str, last: str, name: str) -> None:
    bounds = period_bounds(period, first)
    assert (bounds[0].isoformat(), bounds[1].isoformat()) == (first, last)
    assert period_name(period, first) == name


# Two runs of one case side by side


@pytest.fixture(scope="module")
def two() -> tuple[Run, Run]:
    answer = "The bridge is 120 metres long [1]. It is red [9]. It was built in 1931."
    case = case_of(answer, {"1": "The bridge is 120 metres long. It was built in 1931."})
    other = Settings(citation_mode="literal", max_iterations=1, strictness="strict")
    return run_audit(case, Settings()), run_audit(case, other)


def test_only_differing_settings_are_shown(two: tuple[Run, Run]) -> None:
    assert sorted(differing(*two).values.tolist()) == [
        ["citation mode", "standard", "literal"],
        ["max iterations", "3", "1"],
        ["strictness", "moderate", "strict"],
    ]
    assert changed_settings_words(two[0].settings) == ""
    changed = set(changed_settings_words(two[1].settings).split(", "))
    assert changed == {"citation mode literal", "max iterations 1", "strictness strict"}


def test_every_issue_is_on_one_side_and_swapping_swaps_them(
    two: tuple[Run, Run],
) -> None:
    left, right = two
    groups = {
        side: {issue.key for issue in issues}
        for side, issues in issues_by_side(left, right, "first").items()
    }
    one = {issue.key for issue in left.iterations[0].issues}
    other = {issue.key for issue in right.iterations[0].issues}
    assert groups["left"] | groups["both"] == one
    assert not groups["left"] & groups["both"]
    assert groups["both"] >= one & other
    assert groups["right"] <= other - one
    assert len(groups["both"]) + len(groups["right"]) == len(other)
    swapped = issues_by_side(right, left, "first")
    assert {issue.key for issue in swapped["right"]} == groups["left"]


def test_issues_of_one_rule_about_overlapping_words_are_the_same_in_two_audits() -> None:
    whole = an_issue("a", "The firm grew by 3%.").model_copy(update={"start": 0, "end": 20})
    part = an_issue("b", "grew by 3%").model_copy(update={"start": 9, "end": 19})
    elsewhere = an_issue("c", "It is old.").model_copy(update={"start": 21, "end": 31})
    other_rule = part.model_copy(update={"rule": "uncited_sentence", "key": "d"})
    left, _ = iterations([whole])
    for issues, both in (([part], 1), ([elsewhere], 0), ([other_rule], 0), ([part, elsewhere], 1)):
        right, _ = iterations(issues)
        sides = issues_by_side(left, right, "first")
        assert [len(sides[side]) for side in ("left", "both", "right")] == [
            1 - both,
            both,
            len(issues) - both,
        ]


def test_scores_are_compared_between_original_answers(
    two: tuple[Run, Run],
) -> None:
    left, right = two
    first = right.iterations[0]
    worse = first.model_copy(update={"quality_score": first.quality_score - 0.1})
    right = right.model_copy(update={"iterations": (worse, *right.iterations[1:])})
    table = score_frame(left, right).set_index("Score").loc["Quality"]
    assert len(table) == len(left.iterations) + len(right.iterations) + 1
    change = right.quality - left.quality
    assert table["Difference (right minus left)"] == f":red[▼ {-change:.2f}]"
    back = (
        score_frame(right, left).set_index("Score").loc["Quality", "Difference (right minus left)"]
    )
    assert back == f":green[▲ {-change:.2f}]"


def test_a_run_doesnt_differ_from_itself(two: tuple[Run, Run]) -> None:
    run, _ = two
    assert differing(run, run).empty
    assert set(score_frame(run, run)["Difference (right minus left)"]) <= {"same", "–"}
    assert {side for side, issues in issues_by_side(run, run, "first").items() if issues} == {
        "both"
    }


def test_a_model_in_all_roles_is_named_once() -> None:
    assert models_words({"critic": "offline", "reviser": "offline"}) == "offline"
    assert models_words({"critic": "a:b", "reviser": "offline"}) == "a:b: critic; offline: reviser"


# Findings followed through the iterations of a run

CASE = case_of(
    "The Lenne bridge is 210 metres long [c1]. It was opened in 1931 [c9].",
    {
        "c1": "The Lenne bridge is 120 metres long. It carries two lanes.",
        "c2": "The Lenne bridge was opened on 4 May 1931 by the mayor.",
    },
    query="How long is the Lenne bridge, and when was it opened?",
)


def an_issue(key: str, quote: str = "", rule: str = "unsupported_claim") -> Issue:
    about = {
        "id": f"i-{key}",
        "key": key,
        "description": f"about {key}",
        "rule": rule,
        "quote": quote or None,
    }
    return issue(source="claims", type="unsupported", suggestion="", **about)


def iterations(*issues: list[Issue]) -> tuple[Run, list[Iteration]]:
    run = run_audit(CASE)
    model = run.iterations[0]
    made = [
        model.model_copy(update={"iteration_number": number, "issues": tuple(each)})
        for number, each in enumerate(issues, 1)
    ]
    return run.model_copy(update={"iterations": tuple(made), "best": 0}), made


def test_an_issue_can_be_new_persist_be_fixed_and_return() -> None:
    one, other = an_issue("a"), an_issue("b", rule="uncited_sentence")
    _, made = iterations([one], [one, other], [other], [one], [])
    courses = {each.last.key: each.courses for each in follow(made)}
    assert courses["a"] == ("new", "persisting", "fixed", "regressed", "fixed")
    assert courses["b"] == ("absent", "new", "persisting", "fixed", "absent")


def test_a_reworded_sentence_with_the_same_fault_is_the_same_issue() -> None:
    before = an_issue(
        "a", "The company has set aside NOK 300 million to acquire a Danish operator."
    )
    after = an_issue(
        "b", "The company has set aside about NOK 300 million to acquire a Danish operator."
    )
    elsewhere = an_issue("c", "Its ships are painted green.")
    _, made = iterations([before], [after, elsewhere])
    assert [each.courses for each in follow(made)] == [("new", "persisting"), ("absent", "new")]


def test_two_issues_about_the_same_words_are_tracked_separately() -> None:
    twice = [an_issue("a"), an_issue("a").model_copy(update={"id": "again"})]
    _, made = iterations(twice, twice[:1])
    assert [each.courses for each in follow(made)] == [("new", "persisting"), ("new", "fixed")]


def test_every_issue_has_exactly_one_history() -> None:
    run = run_audit(CASE)
    followed = follow(run.iterations)
    for index, iteration in enumerate(run.iterations):
        assert set(course_at(followed, index)) == {issue.id for issue in iteration.issues}


def test_the_table_counts_issue_outcomes() -> None:
    one, other = an_issue("a"), an_issue("b", rule="uncited_sentence")
    run, _ = iterations([one, other], [other])
    table, left_out = issue_history(run, 1)
    assert list(table.columns) == [
        "Issue",
        "Iteration 1: 2 issues",
        "Iteration 2, shown: 1 persisting, 1 fixed",
    ]
    assert [
        [cell.split()[-1].strip("]") for cell in row[1:]] for row in table.itertuples(index=False)
    ] == [
        ["new", "persisting"],
        ["new", "fixed"],
    ]
    assert left_out == 0


def test_the_table_lists_issues_about_the_same_words_once() -> None:
    at = {"start": 0, "end": 9}
    claim = an_issue("a").model_copy(update=at)
    critic = an_issue("b", rule="critic_unsupported").model_copy(
        update={**at, "id": "critic", "source": "critic"}
    )
    run, made = iterations([claim, critic], [critic], [])
    table, _ = issue_history(run, 0)
    assert [column.partition(": ")[2] for column in table.columns[1:]] == [
        "1 issue",
        "1 persisting",
        "1 fixed",
    ]
    assert len(table) == 1
    assert [len(numbered_issues(iteration)) for iteration in made] == [1, 1, 0]


@pytest.mark.slow
def test_thousands_of_issues_are_tracked_quickly() -> None:
    many = [an_issue(f"k{number}", f"sentence {number} says this") for number in range(3_000)]
    others = [an_issue(f"o{number}", f"sentence {number} says that") for number in range(3_000)]
    run, made = iterations(many, others)
    assert len(follow(made)) == 6_000
    assert issue_history(run, 1).left_out == 5_940

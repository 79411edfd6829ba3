"""The words for states, verdicts, rules and decisions."""

from __future__ import annotations

from typing import get_args

import pytest

from masis.api.audits import run_audit
from masis.schema.case import Case, ClaimVerdict
from masis.schema.review import CaseState, EntryKind, EntrySource, Verdict
from masis.schema.run import ReviewCode, ReviewTier, TerminationReason
from masis.views import comparison, story, verdicts, words
from masis.views.markdown import badge, coloured, escaped
from masis.views.report import Reported, case_report


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
def test_every_value_of_a_closed_set_has_a_word(table: dict[str, object], values: object) -> None:
    assert set(table) == set(get_args(values))


def test_not_confirmed_is_no_accusation_in_words_or_colour() -> None:
    for word in (words.VERDICT["unverifiable"], words.RULE["unverifiable_claim"], words.REASON["unconfirmed_claim"]):
        assert (word.text, word.tone) == ("not confirmed", "calm")


def test_a_rule_of_a_model_reads_by_its_type() -> None:
    assert words.rule_word("critic_logical_gap").text == "logical gap"


def test_labels_are_coloured_by_their_tone_and_escaped() -> None:
    assert badge(words.Word("a]b", "bad")) == r":red-badge[a\]b]"
    assert coloured(words.label(words.STATE["accepted"])) == r":green[Auto\-accepted]"


def test_text_from_outside_is_shown_and_never_obeyed() -> None:
    assert escaped("*a* [b](http://c) www.d e@f") == (
        "\\*a\\* \\[b\\]\\(http\\:\u200b\\/\\/c\\) www\u200b\\.d e\\@\u200bf"
    )


REPLAYED = "replay:/data/replies.jsonl (openai:gpt-4o, 2026-11-24)"
RECORDED = "recorded replies of openai:gpt-4o, 2026-11-24; no model was called"


def test_who_judged_is_worded_once_and_says_where_no_model_was_called() -> None:
    assert words.model_words(REPLAYED) == RECORDED
    assert words.model_words("replay:f.jsonl") == "recorded replies in f.jsonl; no model was called"
    assert words.model_words(f"offline,{REPLAYED}") == f"offline, then {RECORDED}"
    for other in ("offline", "openai:gpt-4o", "offline,openai:gpt-4o", "local:a (b, 2026-11-24)"):
        assert words.model_words(other) == other


def test_every_surface_that_says_who_judged_says_that_the_replies_were_recorded() -> None:
    case = Case.model_validate(
        {"id": "1", "query": "How long?", "answer": "Ten [1].", "evidence": [{"id": "1", "text": "Ten metres."}]}
    )
    run = run_audit(case)
    run = run.model_copy(update={"models": run.models | {"critic": REPLAYED, "evaluator": REPLAYED}})
    assert f"{RECORDED} (critic, evaluator)" in story.judges(run)
    assert f"{RECORDED}: critic, evaluator" in comparison.models_words(run.models)
    assert escaped(RECORDED) in comparison.differing(run_audit(case), run)["Right"].tolist()
    report = case_report(Reported(case, "needs_review", (), run, None), (0, ""))
    assert report.count(RECORDED) >= 2
    assert REPLAYED not in report.partition("<dt>Settings")[0]
    check = run.iterations[0].claims[0].model_copy(update={"judged_by": REPLAYED})
    judged = verdicts.claims(run.iterations[0].model_copy(update={"claims": (check,)}))
    assert judged[0]["by"] == RECORDED

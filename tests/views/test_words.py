"""The words for states, verdicts, rules and decisions."""

from __future__ import annotations

from typing import get_args

import pytest

from masis.schema.case import ClaimVerdict
from masis.schema.review import CaseState, EntryKind, EntrySource, Verdict
from masis.schema.run import ReviewCode, ReviewTier, TerminationReason
from masis.views import words
from masis.views.markdown import badge, coloured, escaped


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

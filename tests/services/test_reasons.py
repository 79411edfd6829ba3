"""The reasons a reviewer chooses from."""

from __future__ import annotations

from typing import get_args

import pytest

from masis.schema.review import Verdict
from masis.services.reviews import OTHER, REASONS, reason_text, reasons_for, suggested
from masis.ui.shell.wording import RULE


@pytest.mark.parametrize("verdict", get_args(Verdict))
def test_every_verdict_has_reasons_that_nine_keys_reach_and_other_comes_last(verdict: Verdict) -> None:
    codes = [reason.code for reason in reasons_for(verdict)]
    assert 2 <= len(codes) <= 9
    assert codes[-1] == OTHER
    assert len(set(codes)) == len(codes)


def test_what_the_audit_found_suggests_its_reason() -> None:
    assert suggested("reject", {"fabricated_reference", "missing_information"}) == ("fabricated_citation", "incomplete")
    assert suggested("approve", {"fabricated_reference"}) == ()


def test_the_rules_that_suggest_a_reason_are_rules_of_the_audit() -> None:
    assert {rule for reason in REASONS for rule in reason.rules} <= set(RULE)


def test_the_log_gets_words_not_codes() -> None:
    assert reason_text("contradicted") == "The evidence contradicts it"
    assert reason_text(OTHER, "  my own words ") == "my own words"
    assert reason_text("no such code") == ""

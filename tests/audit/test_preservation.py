"""What a revision lost is noticed; what it was asked to change, and what it says in other words, is not."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from masis.audit import issues
from masis.audit.revision import dropped
from masis.schema.run import Iteration
from masis.settings import Settings
from tests.audit.factories import citations, claimed, issue

LENGTH = "The bridge is 120 metres long [chunk_1]."
YEAR = "It was opened by the mayor in 1931 [chunk_2]."
OLD = f"{LENGTH} {YEAR}"


def lost(answer: str, *earlier: Iteration) -> list[str]:
    return [each.claim.text for each in dropped(earlier or (claimed(OLD),), answer)]


@pytest.mark.spec("REQ-CRITIC-012")
def test_a_supported_claim_that_a_revision_leaves_out_is_noticed() -> None:
    assert lost(LENGTH) == [YEAR]
    assert lost("The bridge is long.") == [LENGTH, YEAR]


@pytest.mark.parametrize(
    "answer",
    [
        OLD,
        f"{YEAR} {LENGTH}",
        "The bridge, 120 metres long, was opened in 1931 by the mayor [chunk_1][chunk_2].",
        "In 1931 the mayor opened the bridge [chunk_2], whose length is 120 metres (long for its day) [1].",
    ],
)
def test_what_is_said_in_another_place_or_way_is_kept(answer: str) -> None:
    assert lost(answer) == []


def test_a_claim_whose_number_changed_is_lost() -> None:
    assert lost(OLD.replace("120", "90")) == [LENGTH]


@pytest.mark.parametrize("verdict", ["unsupported", "partial", "contradicted", "unscored", "unverifiable"])
def test_what_was_not_supported_may_go(verdict: str) -> None:
    assert lost("Nothing is known.", claimed(OLD, verdict)) == []


def test_what_an_issue_called_in_question_may_go() -> None:
    there = issue(start=OLD.index(YEAR), end=len(OLD))
    assert lost(LENGTH, claimed(OLD, issues=(there,))) == []


def test_a_wrong_reference_is_no_reason_to_drop_the_claim() -> None:
    there = issue(start=OLD.index(YEAR), end=len(OLD), rule="misattributed_reference")
    assert lost(LENGTH, claimed(OLD, issues=(there,))) == [YEAR]


def test_what_was_lost_two_revisions_ago_is_still_lost_and_named_once() -> None:
    assert lost(LENGTH, claimed(OLD), claimed(OLD), claimed(LENGTH)) == [YEAR]


def test_claims_in_scripts_without_blanks_are_separated() -> None:
    first, second = "大桥全长一百二十米。", "市长于去年主持通车。"
    assert lost(first, claimed(first + second)) == [second]


@pytest.mark.spec("REQ-CRITIC-012")
def test_the_re_audit_raises_it_as_an_issue_that_names_the_evidence() -> None:
    gone = dropped((claimed(OLD),), LENGTH)
    gone = tuple(each.model_copy(update={"sources": ("chunk_2",)}) for each in gone)
    (found,) = issues.merged(citations(), (), (), Settings(), gone)
    assert (found.rule, found.type, found.severity) == ("dropped_content", "missing_info", "medium")
    assert YEAR in found.description
    assert found.evidence_ids == ("chunk_2",)
    assert issues.merged(citations(), (), (), Settings(strictness="lenient"), gone) == ()


def test_paraphrases_are_kept_and_what_is_taken_out_is_noticed() -> None:
    traps = json.loads((Path(__file__).parents[1] / "offline" / "traps.json").read_text(encoding="utf-8"))
    paraphrases, kept, sentences, noticed = 0, 0, 0, 0
    for trap in traps:
        whole = " ".join(trap["evidence"])
        kept += sum(not lost(whole, claimed(claim)) for claim in trap["clean"])
        paraphrases += len(trap["clean"])
        parts = [part for text in trap["evidence"] for part in text.split(". ")]
        for at, part in enumerate(parts):
            noticed += bool(lost(". ".join([*parts[:at], *parts[at + 1 :]]), claimed(part)))
        sentences += len(parts)
    assert kept / paraphrases >= 0.9
    assert noticed / sentences >= 0.94


def test_a_long_answer_is_compared_in_linear_time() -> None:
    words = "".join(f"Word{number} follows word{number + 1} here. " for number in range(4_000))
    dropped((claimed(OLD),), words * 2)

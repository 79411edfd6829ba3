"""What is not borne by its evidence is said in plain text, sentence by sentence."""

from __future__ import annotations

import importlib
import json
from collections.abc import Sequence
from typing import Any

import pytest

from masis import assert_grounded
from masis.audit.acceptance import claim_reasons
from masis.errors import InputError
from masis.offline.roles.verifier import OfflineVerifier
from masis.pipeline import Bounds, Grounding, NotGrounded, grounding
from masis.schema.audit import Claim, ClaimCheck, Contradiction
from masis.schema.case import ClaimVerdict, Evidence
from tests.scripted import roles

CHUNKS = [
    {"id": "1", "text": "The bridge is 120 metres long and made of steel."},
    {"id": "2", "text": "The bridge was opened in 1931 by the mayor."},
]
RIGHT = "The bridge is 120 metres long and made of steel [1]. The bridge was opened in 1931 by the mayor [2]."

CONFLICT = Contradiction(
    kind="number",
    claim_start=14,
    claim_end=17,
    claim_text="120",
    evidence_id="2",
    evidence_start=25,
    evidence_end=29,
    evidence_text="1931",
    reason="Another number stands there",
)


def failed(answer: str, **bounds: Any) -> Grounding:
    with pytest.raises(AssertionError) as raised:
        assert_grounded(answer, CHUNKS, **bounds)
    assert isinstance(raised.value, NotGrounded)
    return raised.value.grounding


def test_an_answer_that_is_supported_passes_and_what_was_found_comes_back() -> None:
    found = assert_grounded(RIGHT, CHUNKS, question="How long?")
    assert found.grounded
    assert [check.verdict for check in found.claims] == ["supported", "supported"]
    assert assert_grounded(RIGHT, [chunk["text"] for chunk in CHUNKS]).grounded  # [1] is chunk_1


def test_the_message_shows_sentence_reference_verdict_and_evidence() -> None:
    with pytest.raises(AssertionError) as raised:
        assert_grounded("The bridge is 180 metres long [1]. The bridge was opened in 1931 by the mayor [9].", CHUNKS)
    text = str(raised.value)
    assert text.startswith("The answer is not grounded in its evidence: 2 issues.")
    assert "invalid reference  cites [9]" in text
    assert "contradicted" in text
    assert "cites [1]" in text
    assert "sentence: The bridge is 180 metres long [1]." in text
    assert "evidence: [1] The bridge is 120 metres long" in text


def test_an_uncited_sentence_passes_unless_it_may_not() -> None:
    answer = "The bridge is 120 metres long and made of steel. The bridge was opened in 1931 by the mayor [2]."
    assert assert_grounded(answer, CHUNKS).grounded
    (issue,) = failed(answer, allow_uncited=False).issues
    assert (issue.what, issue.sentence) == ("uncited", "The bridge is 120 metres long and made of steel.")


def test_support_from_which_a_claim_passes_can_be_set_but_a_contradiction_never_passes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    class Partly(OfflineVerifier):
        def verify(self, claims: Sequence[Claim], evidence: Sequence[Evidence]) -> tuple[ClaimCheck, ...]:
            return tuple(ClaimCheck(claim=claim, verdict="partial", support=0.5, confidence=0.9) for claim in claims)

    module = importlib.import_module("masis.pipeline.grounding")
    with monkeypatch.context() as patched:
        patched.setattr(module, "build_roles", lambda settings: roles(verifier=Partly()))
        assert assert_grounded(RIGHT, CHUNKS, min_support=0.5).grounded
        assert not grounding(RIGHT, CHUNKS, bounds=Bounds(min_support=0.51)).grounded
    assert failed("The bridge is 180 metres long [1].", min_support=0.0).issues[0].what == "contradicted"


def test_a_bound_catches_half_a_sentence_that_the_verifier_lets_pass() -> None:
    half = "The bridge is 120 metres long and made of steel, and it carries two railway tracks [1]."
    assert not grounding(half, CHUNKS, bounds=Bounds(min_support=0.7)).grounded


def test_evidence_without_text_verifies_nothing_unless_that_is_allowed() -> None:
    empty = [{"id": "1", "text": ""}]
    assert not grounding("The bridge is 120 metres long [1].", empty).grounded
    assert grounding("The bridge is 120 metres long [1].", empty, bounds=Bounds(allow_unverifiable=True)).grounded


@pytest.mark.parametrize(
    ("verdict", "contradicted", "what"),
    [
        ("supported", False, None),
        ("supported", True, "contradicted"),
        ("partial", False, "partial"),
        ("unsupported", False, "unsupported"),
        ("contradicted", False, "contradicted"),
        ("unverifiable", False, "unverifiable"),
        ("unscored", False, "unscored"),
    ],
)
def test_a_claim_passes_exactly_where_acceptance_lets_it_pass(
    monkeypatch: pytest.MonkeyPatch, verdict: ClaimVerdict, contradicted: bool, what: str | None
) -> None:
    class Verdict(OfflineVerifier):
        def verify(self, claims: Sequence[Claim], evidence: Sequence[Evidence]) -> tuple[ClaimCheck, ...]:
            conflicts = (CONFLICT,) if contradicted else ()
            return tuple(
                ClaimCheck(claim=claim, verdict=verdict, support=0.9, confidence=0.9, contradictions=conflicts)
                for claim in claims
            )

    module = importlib.import_module("masis.pipeline.grounding")
    monkeypatch.setattr(module, "build_roles", lambda settings: roles(verifier=Verdict()))
    found = grounding("The bridge is 120 metres long [1].", CHUNKS)
    assert [issue.what for issue in found.issues] == ([what] if what else [])
    assert bool(claim_reasons(found.claims)) == (what not in (None, "unscored"))
    lenient = grounding(
        "The bridge is 120 metres long [1].", CHUNKS, bounds=Bounds(min_support=0.5, allow_unverifiable=True)
    )
    assert lenient.grounded == (what not in ("contradicted", "unscored"))


def test_text_from_outside_can_not_take_over_a_terminal() -> None:
    with pytest.raises(AssertionError) as raised:
        assert_grounded("The bridge is 180\x1b[2J metres\n long [1]. " + "x " * 500, CHUNKS)
    assert "\x1b" not in str(raised.value)
    assert max(map(len, str(raised.value).splitlines())) < 400


def test_a_long_list_of_faults_is_cut_but_the_report_has_all() -> None:
    found = grounding(" ".join(f"It has {n} towers [{n}]." for n in range(30, 80)), CHUNKS)
    with pytest.raises(AssertionError, match=r"\.\.\. and \d+ more"):
        raise NotGrounded(found)
    assert len(found.record()["issues"]) == len(found.issues) > 50


def test_a_record_is_one_line_of_json() -> None:
    line = json.dumps(failed("The bridge is 180 metres long [1].").record())
    read = json.loads(line)
    assert (read["grounded"], read["claims"], read["verified"]) == (False, 1, 0)
    assert read["issues"][0]["what"] == "contradicted"


@pytest.mark.parametrize(
    ("answer", "evidence", "why"),
    [
        ("", CHUNKS, "answer: is empty"),
        (None, CHUNKS, "answer: is empty"),
        (RIGHT, [], "evidence: is empty"),
        (RIGHT, "text", "not a list of documents"),
    ],
)
def test_what_can_not_be_checked_is_an_error_not_a_failure(answer: Any, evidence: Any, why: str) -> None:
    with pytest.raises(InputError, match=why):
        assert_grounded(answer, evidence)
    with pytest.raises(InputError, match="min_support"):
        Bounds(min_support=60)

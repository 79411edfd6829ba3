"""Claims held against all evidence, and against the chunks they cite."""

from __future__ import annotations

from collections.abc import Collection

import pytest

import masis
from masis.api.roles import build_roles
from masis.audit import loop, run_control
from masis.observers.observation import run_to_completion
from masis.offline.matching.evidence_index import Assessment, EvidenceIndex
from masis.schema.audit import ClaimCheck
from masis.schema.case import Case, Evidence
from masis.settings import Settings
from tests.offline.bridge import EVIDENCE, audited


def checked(*claims: str) -> list[ClaimCheck]:
    return masis.verify_claims(claims, EVIDENCE)


@pytest.mark.spec("DRAFT-CRITIQUE-VERIFY")
def test_one_check_for_each_claim_in_order() -> None:
    claims = ["The bridge is 410 metres long.", "The moon is made of cheese.", "The toll is 3 euros for a car."]
    assert [check.claim.text for check in checked(*claims)] == claims


@pytest.mark.parametrize(
    ("claim", "verdict"),
    [
        ("The Halden suspension bridge is 410 metres long.", "supported"),
        ("The Halden suspension bridge is 510 metres long.", "contradicted"),
        ("The Halden suspension bridge was opened to traffic in 1941.", "contradicted"),
        ("The bridge is painted green every spring by volunteers from the village school.", "unverifiable"),
        ("The bridge was painted with 3,000 litres of green paint.", "unsupported"),
    ],
)
def test_verdicts(claim: str, verdict: str) -> None:
    assert checked(claim)[0].verdict == verdict


def test_quotes_stand_in_the_evidence_where_they_say() -> None:
    texts = {chunk.id: chunk.text for chunk in EVIDENCE}
    quotes = checked("The Halden suspension bridge is 410 metres long.")[0].quotes
    assert quotes[0].evidence_id == "chunk_1"
    assert all(texts[quote.evidence_id][quote.start : quote.end] == quote.text for quote in quotes)


def test_a_contradiction_names_both_values_where_they_stand() -> None:
    claim = "The Halden suspension bridge is 510 metres long [chunk_1]."
    found = checked(claim)[0].contradictions[0]
    assert claim[found.claim_start : found.claim_end] == found.claim_text
    assert "510" in found.claim_text
    assert "410" in found.evidence_text
    assert EVIDENCE[0].text[found.evidence_start : found.evidence_end] == found.evidence_text


def test_evidence_without_text_makes_claims_unverifiable_never_supported() -> None:
    found = masis.verify_claims(["The bridge is 410 metres long."], [Evidence(id="1", source="https://example.org")])[0]
    assert (found.verdict, found.support) == ("unverifiable", None)


def test_a_chunk_that_does_not_say_it_is_misattributed_where_another_does() -> None:
    found = checked("The Halden suspension bridge is 410 metres long [chunk_3].")[0]
    assert found.verdict == "supported"
    assert [(r.evidence_id, r.finding, r.better) for r in found.references] == [("chunk_3", "misattributed", "chunk_1")]


def test_a_chunk_that_others_make_superfluous_is_redundant() -> None:
    found = checked("The Halden suspension bridge is 410 metres long [chunk_1, chunk_3].")[0]
    assert {r.evidence_id: r.finding for r in found.references} == {"chunk_1": "supports", "chunk_3": "redundant"}


def test_a_citation_of_a_chunk_without_text_is_unchecked() -> None:
    found = masis.verify_claims(["It is long [1]."], [Evidence(id="1"), Evidence(id="2", text="It is short.")])[0]
    assert found.references[0].finding == "unchecked"


def test_hedges_headings_and_questions_are_no_claims() -> None:
    run = audited(
        "# The bridge\n\nHow long is it? The bridge is 410 metres long [chunk_1]. Further details are not provided."
    )
    assert [check.claim.text for check in run.iterations[0].claims] == ["The bridge is 410 metres long [chunk_1]."]


@pytest.mark.spec("DRAFT-CRITIQUE-EXTRACT")
def test_claims_know_their_place_in_the_answer() -> None:
    answer = "The bridge is 410 metres long [chunk_1]. It was opened in 1931 [chunk_1]."
    for check in audited(answer).iterations[0].claims:
        assert answer[check.claim.start : check.claim.end] == check.claim.text


@pytest.mark.spec("DRAFT-CRITIQUE-COMPLETENESS")
def test_what_the_question_asks_and_the_answer_leaves_out_is_missing() -> None:
    run = audited("The Halden suspension bridge is 410 metres long and was opened in 1931 [chunk_1].")
    points = run.iterations[0].claim_report.missing
    assert [point.evidence_id for point in points] == ["chunk_1"]
    assert "designed" in points[0].description


def test_a_claim_too_long_to_be_compared_says_so() -> None:
    text = "The bridge is 120 metres long. " * 1_000
    [check] = masis.verify_claims([text], [Evidence(id="1", text=text)])
    assert (check.verdict, check.support) == ("unverifiable", None)
    assert check.issue is not None
    assert "too long to be compared" in check.issue


def test_an_offline_check_of_many_claims_ends_between_two_of_them(monkeypatch: pytest.MonkeyPatch) -> None:
    assessed: list[str] = []
    assess = EvidenceIndex.assess

    def counted(self: EvidenceIndex, claim: str, only: Collection[str] | None = None, **context: str) -> Assessment:
        if only is None:
            assessed.append(claim)
        return assess(self, claim, only, **context)

    monkeypatch.setattr(EvidenceIndex, "assess", counted)
    monkeypatch.setattr(run_control, "LOOK_AGAIN_S", 0.0)
    told = " ".join(f"Station {n} was opened in {1800 + n} [1]." for n in range(40))
    case = Case.model_validate(
        {
            "id": "c",
            "query": "When?",
            "answer": told,
            "evidence": [{"id": "1", "text": "Station 7 was opened in 1807."}],
        }
    )
    work = loop.audit(case, build_roles(Settings()), Settings(), run_id="r1", cancelled=lambda: len(assessed) >= 5)
    run = run_to_completion(work)
    assert (run.termination_reason, run.total_iterations) == ("cancelled", 0)
    assert len(assessed) == 5

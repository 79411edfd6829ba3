"""Drafts: extracted from the evidence, cited, never invented."""

from __future__ import annotations

from masis.offline.roles.drafter import NOTHING_FOUND, OfflineDrafter
from masis.schema.case import Evidence
from tests.offline.bridge import EVIDENCE, QUESTION, audited


def test_a_draft_says_only_what_stands_in_the_evidence_and_cites_it() -> None:
    run = audited(None)
    assert run.draft is not None
    first = run.iterations[0]
    assert first.citation_audit.invalid_citations == ()
    assert first.citation_audit.uncited_claims == ()
    assert all(check.verdict == "supported" for check in first.claims)


def test_a_draft_speaks_of_what_is_asked() -> None:
    answer = OfflineDrafter().draft(QUESTION, EVIDENCE).answer
    assert "410 metres" in answer
    assert "Marta Lindqvist" in answer


def test_where_the_evidence_has_nothing_the_draft_says_so() -> None:
    evidence = (Evidence(id="1", text="Bananas are rich in potassium."),)
    assert OfflineDrafter().draft("Who won the chess final in Riga?", evidence).answer == NOTHING_FOUND


def test_a_draft_does_not_repeat_itself() -> None:
    twice = (*EVIDENCE, Evidence(id="copy", text=EVIDENCE[0].text))
    answer = OfflineDrafter().draft(QUESTION, twice).answer
    assert answer.count("410 metres") == 1

"""Citations that came beside an answer count like markers, and what they quote must stand in the evidence."""

from __future__ import annotations

from typing import Any

import pytest

from masis import Case, run_audit
from masis.audit.citations import audit_citations
from masis.audit.citations.given import placed
from masis.schema.audit import CitationAudit
from masis.schema.case import Evidence, GivenCitation

ANSWER = "The bridge is 120 metres long. It was opened in 1931. Nobody knows why."
EVIDENCE = (
    Evidence(id="a", text="The bridge is 120 metres long and made of stone. It crosses the Marle near the old mill."),
    Evidence(id="b", text="It was opened in 1931.", source="https://example.org/b"),
)


def given(text: str, evidence_id: str, quote: str | None = None) -> GivenCitation:
    start = ANSWER.index(text)
    return GivenCitation(start=start, end=start + len(text), evidence_id=evidence_id, quote=quote)


def audited(*citations: GivenCitation, **options: Any) -> CitationAudit:
    return audit_citations(ANSWER, EVIDENCE, given=citations, **options)


def test_sentences_that_a_citation_covers_count_as_cited() -> None:
    found = audited(given("The bridge is 120 metres long. It was opened in 1931.", "a"))
    assert [sentence.status for sentence in found.sentences] == ["cited", "cited", "uncited"]
    assert [(c.text, c.evidence_id, c.resolved_by) for c in found.citations] == [
        ("The bridge is 120 metres long.", "a", "given"),
        ("It was opened in 1931.", "a", "given"),
    ]
    assert all(ANSWER[c.start : c.end] == c.text for c in found.citations)


def test_a_place_alone_cites_the_sentence_before_it() -> None:
    place = len("The bridge is 120 metres long.")
    found = audited(GivenCitation(start=place, end=place, evidence_id="a"))
    assert [sentence.status for sentence in found.sentences] == ["cited", "uncited", "uncited"]


def test_a_source_names_its_chunk_and_an_unknown_id_is_a_fabricated_reference() -> None:
    found = audited(given("It was opened", "https://example.org/b"), given("Nobody knows why.", "zzz"))
    assert [citation.evidence_id for citation in found.citations] == ["b", None]
    assert found.invalid_citations == ("zzz",)
    assert found.hallucination_detected


def test_the_literal_rules_know_no_citations_beside_the_answer() -> None:
    assert audited(given("It was opened", "b"), mode="literal").citations == ()


@pytest.mark.parametrize(
    ("quote", "finding"),
    [
        ("The bridge is 120 metres long and made of stone.", "verbatim"),
        ("the bridge is  120 metres long", "verbatim"),
        ("The bridge is 120 metres near the old mill.", "spliced"),
        ("The bridge is 120 metres long ... near the old mill.", "spliced"),
        ("It was opened in 1931.", "other_document"),
        ("The bridge is 150 metres long.", "fabricated"),
    ],
)
def test_a_quote_is_looked_for_in_its_evidence(quote: str, finding: str) -> None:
    (check,) = audited(given("The bridge is 120 metres long.", "a", quote)).quotes
    assert check.finding == finding
    if finding == "verbatim":
        assert EVIDENCE[0].text[check.evidence_start : check.evidence_end].split()[-1].startswith(quote.split()[-1][:4])


def test_an_audit_raises_an_issue_for_each_quote_that_does_not_stand_there() -> None:
    quotes = {"It was opened in 1931.": "other_document", "The bridge is 150 metres long.": "fabricated"}
    case = Case(
        id="1",
        query="How long is the bridge?",
        answer=ANSWER,
        evidence=EVIDENCE,
        citations=tuple(given("The bridge is 120 metres long.", "a", quote) for quote in quotes),
    )
    first = run_audit(case).iterations[0]
    rules = {issue.rule: issue for issue in first.issues}
    assert rules["fabricated_quote"].severity == "critical"
    assert rules["quote_from_another_document"].evidence_ids == ("b",)
    assert first.claims[0].claim.cited == ("a",)
    assert first.claims[0].claim.text == "The bridge is 120 metres long."


def test_a_revision_keeps_the_citations_of_what_it_keeps() -> None:
    citations = (given("It was opened in 1931.", "b"), given("Nobody knows why.", "a"))
    revised = "It is long. It was opened in 1931."
    (kept,) = placed(citations, ANSWER, revised)
    assert revised[kept.start : kept.end] == "It was opened in 1931."


@pytest.mark.parametrize(
    ("covers", "revised", "kept"),
    [
        ("1931", "It is long. It was opened in 1931.", "1931"),  # a part of an unchanged sentence
        ("1931", "It is long. It was opened in 1931 by the king.", None),  # the sentence says more
        ("1931", "It was opened in 1931. It was opened in 1931.", None),  # which of the two is not known
        ("1931", "It was not opened in 1931.", None),
    ],
)
def test_a_citation_goes_with_the_sentences_it_covers(covers: str, revised: str, kept: str | None) -> None:
    found = placed((given(covers, "b"),), ANSWER, revised)
    assert [revised[each.start : each.end] for each in found] == ([kept] if kept else [])


def test_a_citation_of_one_place_goes_with_the_sentence_before_it() -> None:
    end = ANSWER.index("It was opened in 1931.") + len("It was opened in 1931.")
    place = GivenCitation(start=end, end=end, evidence_id="b")
    (kept,) = placed((place,), ANSWER, "It was opened in 1931. It is long.")
    assert (kept.start, kept.end) == (22, 22)


def test_a_revision_of_an_answer_with_citations_beside_it_leaves_blanks_where_they_are() -> None:
    case = Case(
        id="1",
        query="How long is the bridge?",
        answer="The bridge is 120 metres long. It was opened in 1931.",
        evidence=EVIDENCE,
        citations=(GivenCitation(start=0, end=30, evidence_id="zz"), GivenCitation(start=31, end=53, evidence_id="a")),
    )
    run = run_audit(case)
    assert run.total_iterations > 1
    for iteration in run.iterations:
        assert "The bridge is 120 metres long" in iteration.answer


def test_a_key_of_the_same_name_and_another_shape_is_kept() -> None:
    data = {"id": "1", "query": "Why?", "evidence": [{"id": "1", "text": "So."}], "citations": ["Smith 2004"]}
    case = Case.model_validate(data)
    assert case.to_json_dict() == data
    assert case.given_citations == ()

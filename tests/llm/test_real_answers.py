"""Answers as models wrote them: every sentence can be quoted back, and nothing they assert goes without a verdict."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

from masis.api.audits import audit_citations
from masis.audit.assertions import asserts
from masis.audit.quotes import located
from masis.llm.roles.verifier import Extracted, located_claims
from masis.schema.audit import CitationAudit
from masis.schema.case import Case

_CHANGED = str.maketrans({"“": '"', "”": '"', "’": "'", "–": "-", "*": ""})


def audited(folder: Path) -> Iterator[tuple[str, CitationAudit]]:
    """Answers with their citations, every second one."""
    with (folder / "expertqa_cases.jsonl").open(encoding="utf-8") as lines:
        for number, line in enumerate(lines):
            if number % 2 == 0 and (case := Case.model_validate(json.loads(line))).answer:
                yield case.answer, audit_citations(case.answer, case.evidence)


def careless(answer: str, start: int, end: int, markers: list[tuple[int, int]]) -> str:
    """A stretch as a model quotes it: plain quote marks and dashes, one blank, no marker, no emphasis."""
    kept = (char for at, char in enumerate(answer[start:end], start) if not any(a <= at < b for a, b in markers))
    return re.sub(r"\s+", " ", "".join(kept)).translate(_CHANGED)


def test_every_sentence_is_found_from_a_careless_quote_of_it(public_data: Path) -> None:
    sentences, lost, elsewhere = 0, [], 0
    for answer, audit in audited(public_data):
        markers = [(citation.marker_start, citation.marker_end) for citation in audit.citations]
        for sentence in audit.sentences:
            quote = careless(answer, sentence.start, sentence.end, markers)
            place = located(quote, answer, markers)
            sentences += 1
            if place is None:
                lost.append(quote)
            else:
                elsewhere += place.start >= sentence.end or place.end <= sentence.start
    assert sentences > 500
    assert lost == []
    assert elsewhere <= sentences / 50  # the same words stand twice


def test_an_extraction_cut_short_leaves_no_assertion_without_a_claim(public_data: Path) -> None:
    for answer, audit in audited(public_data):
        markers = [(citation.marker_start, citation.marker_end) for citation in audit.citations]
        quotes = [careless(answer, sentence.start, sentence.end, markers) for sentence in audit.sentences]
        made = located_claims([Extracted(quote, quote) for quote in quotes[: len(quotes) // 2]], answer, audit)
        covered = {claim.sentence for claim in made}
        for number, sentence in enumerate(audit.sentences):
            if asserts(sentence) and number not in covered:
                assert any((c.start or 0) < sentence.end and (c.end or 0) > sentence.start for c in made)

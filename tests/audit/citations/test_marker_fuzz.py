"""Markers in any text: offsets that match, no crash, no time that grows with the square of the length."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from masis.audit.citations import audit_citations
from masis.schema.case import Evidence

WORDS = (
    "[ ] \\[ \\] ( ) { } \\cite \\citep \\_ \\ @ / | + , ; 1 9 0 chunk _ - : PMID . $ ` 【 】 † ^ smith2020 "
    "https://a.example/1"
)
PIECES = st.sampled_from(["see ", " ", "\n", *WORDS.split()])
IDS = st.lists(
    st.sampled_from(
        ["1", "2", "chunk_1", "chunk_002", "PMID: 99999", "smith2020", "a/b", "x|y", "https://a.example/1", "[3]"]
    ),
    min_size=1,
    max_size=4,
    unique=True,
)


@pytest.mark.slow
@settings(max_examples=300, deadline=None)
@given(st.lists(PIECES, max_size=40).map("".join), IDS)
def test_every_reference_stands_where_it_says(answer: str, ids: list[str]) -> None:
    audit = audit_citations(answer, [Evidence(id=id_) for id_ in ids])
    last = 0
    for citation in audit.citations:
        assert answer[citation.start : citation.end] == citation.text
        assert citation.text
        assert citation.marker_start <= citation.start < citation.end <= citation.marker_end <= len(answer)
        assert citation.marker_start >= last
        assert (citation.evidence_id is None) == (citation.status == "invalid")
        assert citation.evidence_id is None or citation.evidence_id in ids
        last = citation.marker_start


@pytest.mark.slow
@pytest.mark.timeout(30)
@pytest.mark.parametrize(
    "piece",
    ["\\[", "\\[9\\", "[chunk\\_", "\\cite{", "\\cite[", "[see ", "[1/", "[@a", "[1|", "\\cite[x][y]{", "[see [1|"],
)
def test_a_hundred_thousand_characters_of_unclosed_markers_end_in_time(piece: str) -> None:
    answer = (piece * (100_000 // len(piece) + 1))[:100_000]
    audit = audit_citations(answer, [Evidence(id="chunk_1"), Evidence(id="chunk_2")])
    assert all(answer[citation.start : citation.end] == citation.text for citation in audit.citations)

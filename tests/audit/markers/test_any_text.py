"""The citation engine and the sentence splitter handle any text and ids with correct offsets."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import example, given, settings
from hypothesis import strategies as st

from masis.audit.citations import audit_citations
from masis.audit.markers import marker_spans, styles, trailing_markers_end, without_markers
from masis.audit.sentences import split_sentences
from masis.schema.case import Evidence

PIECES = [
    *(style.example for style in styles.STYLES),
    *"[](){}【】〔〕［］（）†^\\$#|`*_<>/=+-–~&@:;,.!?。：，、 \n\t",
    *(
        "[^",
        "]:",
        "\\[",
        "\\]",
        "\\cite{",
        "<cite>",
        "</cite>",
        "<sup>",
        "</sup>",
        '<ref id="',
        '"/>',
        "##",
        "$$",
    ),
    *(
        "\ue200",
        "\ue202",
        "\ue201",
        "turn0search1",
        "0",
        "1",
        "2",
        "9",
        "12-3",
        "10-1",
        "2004",
        "99999999999",
    ),
    *(
        "chunk_",
        "doc-",
        "Source ",
        "Sources: ",
        "来源",
        "出典",
        "¹",
        "²",
        "⁻",
        "①",
        "②",
        "٣",
        "１",
        "½",
        "ⅷ",
    ),
    *(
        "https://",
        "https://a.example/x",
        "report.pdf",
        "p. 4",
        "smith",
        "word ",
        "It is long",
        "5 m",
        "CI of ",
    ),
    *(
        "```\n",
        "~~~\n",
        " and ",
        "\u2028",
        "\r\n",
        "\x00",
        "ß",
        "İ",
        "[citation needed]",
        "[ID:",
        "</statement>",
    ),
    *('<a href="', '">', "</a>", "]{index=0}", "see ", "[x] ", "- ", "1. ", "| ", "# "),
]
TEXTS = st.one_of(
    st.lists(st.sampled_from(PIECES), max_size=40).map("".join), st.text(max_size=120)
)
IDS = st.one_of(
    st.sampled_from(
        [
            *(
                "1",
                "2",
                "0",
                "00",
                "10-1",
                "11-2",
                "12-3",
                "chunk_1",
                "chunk_2",
                "a[1]",
                "A",
                "B",
                "smith-2004",
            ),
            *(
                "jones2011",
                "²",
                "٣",
                "½",
                "report.pdf",
                "https://a.example/x",
                "PMID: 12",
                "x]",
                "[",
                "1e5",
                "^1",
            ),
            *("turn0search1", "9f3c2a11", "earnings-call", "annual-report", "İ", "a b", "\\"),
        ]
    ),
    st.text(min_size=1, max_size=12).filter(lambda id_: bool(id_.strip())),
)
EVIDENCE = st.lists(
    st.builds(
        lambda id_, source: Evidence(id=id_, text="...", source=source),
        IDS,
        st.sampled_from([None, None, "https://a.example/x", "report.pdf", "Annual report"]),
    ),
    max_size=5,
    unique_by=lambda chunk: chunk.id,
)


@given(TEXTS, EVIDENCE)
@example("It is long [12-3].", [Evidence(id="10-1"), Evidence(id="11-2")])
@example("²[²]", [Evidence(id="²")])
@settings(max_examples=1500)
def test_any_text_can_be_audited_with_any_ids(answer: str, evidence: list[Evidence]) -> None:
    audit = audit_citations(answer, evidence)
    for sentence in audit.sentences:
        assert answer[sentence.start : sentence.end] == sentence.text
    for citation in audit.citations:
        assert answer[citation.start : citation.end] == citation.text
        assert citation.marker_start <= citation.start < citation.end <= citation.marker_end
    markers = sorted({(citation.marker_start, citation.marker_end) for citation in audit.citations})
    assert all(marker[1] <= next_marker[0] for marker, next_marker in pairwise(markers))


@given(TEXTS)
@settings(max_examples=800)
def test_sentences_cover_any_text_completely(text: str) -> None:
    units = split_sentences(text)
    assert all(unit.end <= next_unit.start for unit, next_unit in pairwise(units))
    text_between = [text[unit.end : next_unit.start] for unit, next_unit in pairwise(units)]
    text_around = [text[: units[0].start], text[units[-1].end :]] if units else [text]
    assert not "".join([*text_between, *text_around]).strip()


@given(TEXTS, st.integers(min_value=0, max_value=120))
@settings(max_examples=800)
def test_markers_can_be_found_without_evidence(text: str, position: int) -> None:
    spans = marker_spans(text)
    assert all(0 <= start < end <= len(text) for start, end in spans)
    assert all(span[1] <= next_span[0] for span, next_span in pairwise(spans))
    assert len(without_markers(text)) <= len(text)
    end = trailing_markers_end(text, min(position, len(text)), len(text))
    assert end is None or min(position, len(text)) < end <= len(text)

"""Offsets of citations and labels are read in the tool's own unit and checked against the quoted
text.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import masis
from masis.datasets.mapping.offsets import LabelSpan, find_quoted_place, to_character_spans
from masis.datasets.mapping.reader import read_any

BRIDGES = "🌉🌉 It is long. It opened in 1931."
"""Two characters of two UTF-16 units each precede the cited text."""

SOURCE = "https://a.example/s"
OUTSIDE = (
    "citations: 1 of 2 cover no characters of the answer, such as 500 to 512 of 33; they are"
    " left out"
)


def utf16(text: str, part: str) -> tuple[int, int]:
    before = len(text[: text.index(part)].encode("utf-16-le")) // 2
    return before, before + len(part.encode("utf-16-le")) // 2


def chat(answer: str, *places: tuple[int | None, int | None]) -> dict[str, Any]:
    notes = [
        {
            "type": "url_citation",
            "url_citation": {"url": SOURCE, "title": "Survey", "start_index": a, "end_index": b},
        }
        for a, b in places
    ]
    return {
        "request": {"messages": [{"role": "user", "content": "How long is it?"}]},
        "response": {
            "choices": [{"message": {"role": "assistant", "content": answer, "annotations": notes}}]
        },
        "documents": [{"id": SOURCE, "text": "It is long. It opened in 1931."}],
    }


def responses(answer: str, *places: tuple[int, int]) -> dict[str, Any]:
    notes = [
        {"type": "url_citation", "url": SOURCE, "start_index": a, "end_index": b} for a, b in places
    ]
    parts = [
        {"type": "output_text", "text": "So. ", "annotations": []},
        {"type": "output_text", "text": answer, "annotations": notes},
    ]
    return {
        "request": {"input": "How long is it?"},
        "response": {"output": [{"type": "message", "content": parts}]},
        "documents": [{"id": SOURCE, "text": "It is long."}],
    }


def cohere(answer: str, *places: tuple[int, int]) -> dict[str, Any]:
    cited = [
        {"start": a, "end": b, "text": "It opened in 1931.", "document_ids": ["d"]}
        for a, b in places
    ]
    return {
        "request": {"message": "How long is it?"},
        "response": {
            "text": answer,
            "citations": cited,
            "documents": [{"id": "d", "text": "It is long."}],
        },
    }


def covered_words(case: masis.Case) -> list[str]:
    return [(case.answer or "")[citation.start : citation.end] for citation in case.given_citations]


@pytest.mark.parametrize("make", [chat, responses, cohere])
@pytest.mark.parametrize("part", ["It opened in 1931.", "It is long.", "1931"])
def test_citations_in_utf16_units_cover_the_cited_text(make: Any, part: str) -> None:
    start = BRIDGES.index(part)
    for place in (utf16(BRIDGES, part), (start, start + len(part))):
        (case,) = masis.read_cases([make(BRIDGES, place)])
        assert covered_words(case) == [part]


def test_a_citation_valid_in_one_unit_only_decides_the_unit_of_all() -> None:
    text = "🌉🌉🌉🌉 aa bb cc dd"
    spans = [LabelSpan(*utf16(text, "aa")), LabelSpan(*utf16(text, "dd"))]
    assert [text[span.start : span.end] for span in to_character_spans(text, spans)] == ["aa", "dd"]


@pytest.mark.parametrize("place", [(500, 512), (18, 36), (-3, 4), (9, 5)])
def test_a_citation_outside_the_answer_is_noted_and_kept_in_the_metadata(
    place: tuple[int, int],
) -> None:
    good = utf16(BRIDGES, "It is long.")
    (read,) = read_any([chat(BRIDGES, good, place)])
    assert read.case is not None
    assert covered_words(read.case) == ["It is long."]
    assert read.problems == ()
    if place == (500, 512):
        assert str(read.notes[0]).partition(", line 1, ")[2].startswith(OUTSIDE)
    (outside,) = read.case.metadata["citations_outside_answer"]
    assert (outside["start"], outside["end"], outside["evidence_id"]) == (*place, SOURCE)


def test_citations_of_a_custom_profile_are_read_the_same(tmp_path: Path) -> None:
    own = tmp_path / "own.toml"
    own.write_text(
        'query = "f"\nanswer = "a"\nevidence = "q"\ncitations = "b[].{start: von, end: bis,'
        ' evidence_id: quelle}"\nlabels = "u[].{text: t, start: v, end: e}"\n'
    )
    start, end = utf16(BRIDGES, "1931")
    cited = [{"von": start, "bis": end, "quelle": 1.0}]
    row = {"f": "When?", "a": BRIDGES, "q": [{"id": 1, "text": "So."}], "b": cited}
    (case,) = masis.read_cases([row], own)
    assert (covered_words(case), case.given_citations[0].evidence_id) == (["1931"], "1")
    (labelled,) = masis.read_cases([row | {"u": [{"t": "1931", "v": start, "e": end}]}], own)
    assert labelled.labels is not None
    assert labelled.labels.claims[0].model_dump()["start"] == BRIDGES.index("1931")
    with pytest.raises(
        masis.errors.InputError, match=r"citations\[0\]: needs whole numbers for start and end"
    ):
        masis.read_cases([row | {"b": [{"von": "3", "bis": "7", "quelle": 1}]}], own)


@pytest.mark.parametrize(
    ("quoted", "start", "end", "at"),
    [
        ("It is long.", 3, 14, (3, 14)),
        ("It is long.", 5, 16, (3, 14)),  # in UTF-16 units
        ("It is long.", 5, None, (3, 14)),
        ("It is long.", 99, 110, (3, 14)),  # found by its words, which occur once
        ("It", 99, 101, None),  # the words occur twice
        ("It", 15, 17, (15, 17)),
        ("long. It\\nopened", 0, 1, None),
        ("Nowhere.", 3, 11, None),
    ],
)
def test_a_label_is_placed_where_its_quoted_words_occur(
    quoted: str, start: int, end: int | None, at: tuple[int, int] | None
) -> None:
    assert find_quoted_place(BRIDGES, quoted, start, end) == at


def test_a_label_studio_label_over_a_line_break_quotes_the_answer() -> None:
    answer = "It is 130 metres long [1].\nIt is red."
    task = {
        "id": 7.0,
        "data": {"question": "How long?", "answer": answer, "evidence": [{"id": "1", "text": "It is 120 m long."}]},
        "annotations": [
            {"result": [{"type": "labels", "value": {"start": 17, "end": 37, "text": "long [1].\\nIt is red.",
                                                     "labels": ["unsupported"]}}]}
        ],
    }  # fmt: skip
    (case,) = masis.read_cases([task])
    assert case.labels is not None
    (claim,) = case.labels.claims
    assert (claim.text, case.id) == ("long [1].\nIt is red.", "7")
    assert answer[claim.model_dump()["start"] : claim.model_dump()["end"]] == claim.text


def test_langfuse_outputs_in_quoted_json_are_read() -> None:
    trace = {
        "id": "t1", "name": "rag", "input": '{"question": "How long?"}', "output": '"It is \\"long\\" [1]."',
        "observations": [{"type": "RETRIEVER", "output": '["It is long."]'}],
    }  # fmt: skip
    (case,) = masis.read_cases([trace])
    assert (case.query, case.answer, case.evidence[0].text) == (
        "How long?",
        'It is "long" [1].',
        "It is long.",
    )
    (plain,) = masis.read_cases([trace | {"output": '"Long" is relative [1]'}])
    assert plain.answer == '"Long" is relative [1]'

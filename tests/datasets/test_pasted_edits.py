"""Chunks that are joined or renamed in the preview: the text that follows from it reads as exactly these chunks."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from masis.datasets.readers.pasted import merged, read_pasted, renamed, written
from masis.errors import InputError
from masis.schema.case import Evidence

TEXT = "Source one begins.\n\nIt goes on.\n\nSource two."
WORDS = st.text(st.characters(exclude_categories=("Cs", "Cc")), min_size=1, max_size=60).map(str.strip).filter(bool)


def test_a_chunk_is_joined_to_the_one_above_and_keeps_its_id() -> None:
    chunks = merged(read_pasted(TEXT).chunks, 1)
    assert [(chunk.id, chunk.text) for chunk in chunks] == [
        ("1", "Source one begins.\n\nIt goes on."),
        ("3", "Source two."),
    ]
    text = written(chunks)
    assert text.startswith("[1] Source one begins.")
    assert read_pasted(text).chunks == chunks


def test_an_id_is_changed_and_never_to_that_of_another_chunk() -> None:
    chunks = renamed(read_pasted(TEXT).chunks, 2, " report ")
    assert [chunk.id for chunk in chunks] == ["1", "2", "report"]
    assert read_pasted(written(chunks)).chunks == chunks
    with pytest.raises(InputError, match="the id 1 of another chunk"):
        renamed(chunks, 1, "1")
    with pytest.raises(InputError, match="has no id"):
        renamed(chunks, 1, "  ")


def test_sources_stay_with_their_chunks() -> None:
    chunks = (Evidence(id="a", text="One."), Evidence(id="b", text="Two.", source="https://example.org"))
    assert read_pasted(written(chunks)).chunks == chunks
    (both,) = merged(chunks, 1)
    assert (both.id, both.source) == ("a", "https://example.org")


@given(st.lists(st.tuples(WORDS, WORDS), min_size=1, max_size=5, unique_by=lambda pair: pair[0]))
def test_whatever_the_chunks_are_their_text_reads_as_they_are(pairs: list[tuple[str, str]]) -> None:
    chunks = tuple(Evidence(id=name, text=text) for name, text in pairs)
    assert read_pasted(written(chunks)).chunks == chunks

"""Pasted evidence: its format is detected, and problems are reported by line."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from masis.datasets.readers.pasted import (
    MOST_BYTES,
    MOST_CHUNKS,
    PastedEvidence,
    decode_upload,
    merge_chunk,
    read_pasted,
    rename_chunk,
    write_pasted,
)
from masis.errors import InputError
from masis.schema.case import Evidence


def pairs(pasted: PastedEvidence) -> list[tuple[str, str]]:
    return [(chunk.id, chunk.text) for chunk in pasted.chunks]


def summary_of(pasted: PastedEvidence) -> str:
    return "\n".join(map(str, pasted.errors))


def test_blocks_between_blank_lines_are_numbered() -> None:
    read = read_pasted("One line.\nAnd its second.\n\n \nAnother block.\n")
    assert read.form == "blocks"
    assert pairs(read) == [("1", "One line.\nAnd its second."), ("2", "Another block.")]
    assert not read.errors


def test_labels_give_ids_and_a_chunk_ends_at_the_next_label() -> None:
    read = read_pasted("[a1] First.\n\nStill the first.\n[chunk 2]: Second.\n [3]\nThird.")
    assert read.form == "labelled"
    assert pairs(read) == [
        ("a1", "First.\n\nStill the first."),
        ("chunk 2", "Second."),
        ("3", "Third."),
    ]


def test_unlabeled_blocks_get_numbers_that_no_label_uses() -> None:
    read = read_pasted("No label.\n\n[1] With one.\n\nNone again.")
    assert pairs(read) == [("2", "No label."), ("1", "With one."), ("3", "None again.")]
    assert "2, 3 had no id" in read.notes[0]


@pytest.mark.parametrize(
    "text", ["[link](http://example.org) is a link.", "[see the note below] and so on"]
)
def test_text_that_only_resembles_a_label_is_text(text: str) -> None:
    assert pairs(read_pasted(text)) == [("1", text)]


def test_three_sources_of_two_paragraphs_are_three_chunks_with_urls() -> None:
    read = read_pasted(
        "\n\n".join(
            f"Source {n}: https://example.org/{n}\nFirst of {n}.\n\nSecond of {n}."
            for n in (1, 2, 3)
        )
    )
    assert read.form == "headings"
    assert pairs(read) == [(str(n), f"First of {n}.\n\nSecond of {n}.") for n in (1, 2, 3)]
    assert [chunk.source for chunk in read.chunks] == [
        f"https://example.org/{n}" for n in (1, 2, 3)
    ]
    assert not read.errors


@pytest.mark.parametrize(
    "text",
    [
        "Source 1: A.\n\nMore.\n\nSource 2: B.",
        "## Document 1\nA.\n\nMore.\n## Document 2\nB.",
        "**Passage 1:** A.\n\nMore.\n\n**Passage 2**\nB.",
        "1. A.\n\nMore.\n\n2. B.",
        "1) A.\n\nMore.\n\n2) B.",
    ],
)
def test_numbered_headings_start_a_chunk_that_ends_at_the_next_heading(text: str) -> None:
    assert pairs(read_pasted(text)) == [("1", "A.\n\nMore."), ("2", "B.")]


@pytest.mark.parametrize(
    "text",
    [
        "Source 1 says no. More.",
        "The steps:\n\n1. Open it.\n\n2. Close it.",
        "1. Open it.\n2. Close it.",
        "3. Late.\n\n4. Later.",
        "A text.\n\nSource 1: the archive.",
        "Source 1: A.\n\nSource 1: B.",
    ],
)
def test_text_that_only_resembles_headings_stays_in_blocks(text: str) -> None:
    read = read_pasted(text)
    assert read.form == "blocks"
    assert [chunk.text for chunk in read.chunks] == text.split("\n\n")


def test_text_before_the_first_heading_is_a_chunk_and_an_empty_heading_an_error() -> None:
    read = read_pasted(
        "Found today.\nSource 1: A.\nSource 2: https://example.org/b\n\nSource 3: C."
    )
    assert pairs(read) == [("2", "Found today."), ("1", "A."), ("3", "C.")]
    assert "line 3: [2] has no text" in summary_of(read)


@pytest.mark.parametrize("delimiter", [",", ";", "\t"])
def test_a_csv_without_a_text_column_is_rejected_with_a_suggested_header(
    delimiter: str,
) -> None:
    rows = [["nr", "absatz"], ["1", "A long paragraph."], ["2", "Another paragraph."]]
    read = read_pasted("\n".join(delimiter.join(row) for row in rows))
    assert not read.chunks
    assert "line 1: names the columns nr, absatz" in summary_of(read)
    proposed = f"nr{delimiter}text"
    assert f"the first line is: {proposed}" in summary_of(read)
    rows[0] = proposed.split(delimiter)
    mended = read_pasted("\n".join(delimiter.join(row) for row in rows))
    assert pairs(mended) == [("1", "A long paragraph."), ("2", "Another paragraph.")]


@pytest.mark.parametrize(
    "text", ["Well, yes\nNo, no", "Oslo,Bergen\nis a line of prose.", "One, two.\n\nThree, four."]
)
def test_prose_with_commas_isnt_a_table(text: str) -> None:
    assert read_pasted(text).form == "blocks"


def test_a_label_without_text_is_an_error_with_its_line() -> None:
    read = read_pasted("[1] Text.\n[2]\n\n[3] More.")
    assert "line 2: [2] has no text" in summary_of(read)
    assert [chunk.id for chunk in read.chunks] == ["1", "3"]


def test_a_repeated_id_is_an_error_with_both_lines() -> None:
    read = read_pasted("[1] A.\n[1] B.")
    assert "line 2: repeats the id 1 of line 1" in summary_of(read)


@pytest.mark.parametrize("delimiter", [",", ";", "\t"])
def test_csv_with_named_columns_is_read(delimiter: str) -> None:
    rows = [
        ["Chunk ID", "Content", "URL"],
        ["x", '"two\nlines, ""quoted"""', "u"],
        ["", "plain", ""],
    ]
    read = read_pasted("\ufeff" + "\r\n".join(delimiter.join(row) for row in rows))
    assert read.form == "csv"
    assert pairs(read) == [("x", 'two\nlines, "quoted"'), ("1", "plain")]
    assert read.chunks[0].source == "u"


def test_csv_errors_name_the_first_line_of_the_row() -> None:
    read = read_pasted('id,text\n1,"a\nb"\n2,one,too many\n3,\n4,fine')
    assert "line 4: has 3 columns" in summary_of(read)
    assert "line 5: has no text" in summary_of(read)
    assert [chunk.id for chunk in read.chunks] == ["1", "4"]


def test_a_truncated_csv_is_an_error() -> None:
    assert "isn't a readable table" in summary_of(read_pasted('id,text\n1,"open'))


def test_json_lines_with_other_tools_keys_are_read() -> None:
    read = read_pasted('{"chunk_id": 7, "page_content": "A."}\n\n{"text": "B.", "url": "u"}')
    assert read.form == "json"
    assert pairs(read) == [("7", "A."), ("1", "B.")]


def test_a_json_list_of_objects_or_texts_is_read() -> None:
    assert pairs(read_pasted('[\n {"id": "a", "text": "A"},\n "B"\n]')) == [("a", "A"), ("1", "B")]


def test_one_json_object_over_several_lines_is_read() -> None:
    assert pairs(read_pasted('{\n "id": "a",\n "text": "A"\n}')) == [("a", "A")]


def test_json_errors_name_line_and_hint() -> None:
    read = read_pasted(
        '{"id": "a", "text": "A"}\n{"id": "b"\n{"id": "c", "words": "C"}\n{"id":"d","evidence":[]}'
    )
    assert [error.line for error in read.errors] == [2, 3, 4]
    assert "Name the text" in summary_of(read)
    assert "whole case" in summary_of(read)
    assert [chunk.id for chunk in read.chunks] == ["a"]


def test_null_bytes_and_lone_surrogates_are_errors() -> None:
    assert "line 2: contains a null byte" in summary_of(read_pasted("a\nb\x00c"))
    assert "surrogate" in summary_of(read_pasted("a \ud83d"))
    assert "line 2: contains half of a surrogate" in summary_of(
        read_pasted('{"text": "A"}\n{"text": "\\ud83d"}')
    )
    assert "line 1: contains a null byte" in summary_of(read_pasted('{"text": "\\u0000"}'))


def test_empty_input_gives_no_chunks_and_no_error() -> None:
    assert read_pasted(" \n\t") == PastedEvidence((), None)


def test_too_many_chunks_are_an_error() -> None:
    read = read_pasted("\n\n".join("x" for _ in range(MOST_CHUNKS + 1)))
    assert len(read.chunks) == MOST_CHUNKS
    assert "more than 10,000" in summary_of(read)


@pytest.mark.parametrize(
    "text", ["[" * 100_000, "{" * 100_000, "[a] " * 100_000, "a," * 100_000, "\n" * 100_000 + "a"]
)
def test_long_nonsense_is_read_in_bounded_time(text: str) -> None:
    read_pasted(text)


@given(st.text(alphabet=st.sampled_from('ab[]1 \n,;"{}:\x00idtext'), max_size=60))
def test_no_text_crashes_the_parser_and_ids_are_unique(text: str) -> None:
    read = read_pasted(text)
    assert len({chunk.id for chunk in read.chunks}) == len(read.chunks)
    assert all(chunk.text.strip() for chunk in read.chunks)


def test_a_file_in_another_format_is_rejected_with_its_name() -> None:
    with pytest.raises(InputError, match=r"scan\.txt: is a PDF"):
        decode_upload(b"%PDF-1.7", "scan.txt")
    with pytest.raises(InputError, match=r"old\.txt, line 2: is not UTF-8"):
        decode_upload(b"a\n\xe4", "old.txt")
    with pytest.raises(InputError, match="larger than 20 MB"):
        decode_upload(b"a" * (MOST_BYTES + 1), "big.txt")
    assert decode_upload(b"\xef\xbb\xbfa", "marked.txt") == "a"


TEXT = "Source one begins.\n\nIt goes on.\n\nSource two."
WORDS = (
    st.text(st.characters(exclude_categories=("Cs", "Cc")), min_size=1, max_size=60)
    .map(str.strip)
    .filter(bool)
)


def test_a_chunk_is_merged_with_the_previous_one_and_its_id_stays() -> None:
    chunks = merge_chunk(read_pasted(TEXT).chunks, 1)
    assert [(chunk.id, chunk.text) for chunk in chunks] == [
        ("1", "Source one begins.\n\nIt goes on."),
        ("3", "Source two."),
    ]
    text = write_pasted(chunks)
    assert text.startswith("[1] Source one begins.")
    assert read_pasted(text).chunks == chunks


def test_an_id_can_be_changed_but_not_to_another_chunks_id() -> None:
    chunks = rename_chunk(read_pasted(TEXT).chunks, 2, " report ")
    assert [chunk.id for chunk in chunks] == ["1", "2", "report"]
    assert read_pasted(write_pasted(chunks)).chunks == chunks
    with pytest.raises(InputError, match="the id 1 of another chunk"):
        rename_chunk(chunks, 1, "1")
    with pytest.raises(InputError, match="has no id"):
        rename_chunk(chunks, 1, "  ")


def test_sources_stay_with_their_chunks() -> None:
    chunks = (
        Evidence(id="a", text="One."),
        Evidence(id="b", text="Two.", source="https://example.org"),
    )
    assert read_pasted(write_pasted(chunks)).chunks == chunks
    (both,) = merge_chunk(chunks, 1)
    assert (both.id, both.source) == ("a", "https://example.org")


@given(st.lists(st.tuples(WORDS, WORDS), min_size=1, max_size=5, unique_by=lambda pair: pair[0]))
def test_any_chunks_round_trip_as_text(pairs: list[tuple[str, str]]) -> None:
    chunks = tuple(Evidence(id=name, text=text) for name, text in pairs)
    assert read_pasted(write_pasted(chunks)).chunks == chunks

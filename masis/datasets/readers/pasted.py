"""Reads evidence that people paste, in any of several forms.

These are blocks between blank lines, ``[id] text``, numbered headings, CSV, JSON Lines or a JSON
list. The form is recognized from the text. Chunks without an id get a number. An unreadable chunk
is an error with its line and a hint, and the others are still read, so that all errors are shown at
once. Assigned ids and skipped lines are reported in ``notes``.
"""

from __future__ import annotations

import io
import json
import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import count
from typing import Any, Literal, NamedTuple

from masis.datasets.readers.lines import refuse_other_formats, utf8_error
from masis.datasets.readers.plain_text import NAME_SHOWN, FoundChunk, read_plain
from masis.datasets.readers.strict_json import parse_object
from masis.datasets.rows import DataRow, read_rows
from masis.errors import InputError
from masis.schema.case import Evidence
from masis.schema.explain import kind_of
from masis.schema.wording import shorten

Form = Literal["blocks", "labelled", "headings", "csv", "json"]
MOST_CHUNKS = 10_000
MOST_BYTES = 20_000_000
"""The largest text, since an audit reads all its evidence.

Anything larger is a corpus and not what a retriever returned for one question.
"""
MOST_ERRORS = 20

_COLUMN = re.compile(r"[^\W\d][\w.-]{0,39}(?: [\w.-]{1,39}){0,2}")
"""A column name: up to three words without other punctuation.

It has no leading blank: in prose, a comma is followed by one.
"""
# "\ud83d" alone, which JSON can write but UTF-8 can't.
_SURROGATE = re.compile("[\ud800-\udfff]")
_NAMES = {
    "id": (
        "id chunk_id chunkid evidence_id doc_id docid document_id passage_id key number nr".split()
    ),
    "text": "text content chunk passage page_content body document snippet quote evidence".split(),
    "source": "source url title file filename link uri origin path".split(),
}
_CHUNK_SHAPE = (
    'Write each chunk as {"id": "1", "text": "..."}, several with commas between them in [ ].'
)


class PastedEvidence(NamedTuple):
    """The result of reading pasted text: chunks, their form, notes on assigned ids, and errors."""

    chunks: tuple[Evidence, ...]
    form: Form | None
    notes: tuple[str, ...] = ()
    errors: tuple[InputError, ...] = ()


def decode_upload(content: bytes, name: str) -> str:
    """Return the text of an uploaded file.

    Raises:
        InputError: The file has another format, is too large or isn't UTF-8.

    """
    try:
        refuse_other_formats(content[:16])
    except InputError as error:
        raise error.at(file=name) from error
    if len(content) > MOST_BYTES:
        hint = "Add only the chunks retrieved for this question."
        raise InputError(f"is larger than {MOST_BYTES // 10**6} MB", hint=hint, file=name)
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise utf8_error(error, content.count(b"\n", 0, error.start) + 1).at(file=name) from error


def write_pasted(chunks: Sequence[Evidence]) -> str:
    """Return a text from which ``read_pasted`` reads exactly these chunks.

    The text has labels, or is JSON if labels aren't enough.
    """
    labelled = "\n\n".join(f"[{chunk.id}] {chunk.text}" for chunk in chunks)
    if all(chunk.source is None for chunk in chunks) and read_pasted(labelled).chunks == tuple(
        chunks
    ):
        return labelled
    rows = (
        chunk.model_dump(include={"id", "text", "source"}, exclude_none=True) for chunk in chunks
    )
    return "\n".join(json.dumps(row, ensure_ascii=False) for row in rows)


def merge_chunk(chunks: Sequence[Evidence], index: int) -> tuple[Evidence, ...]:
    """Return the chunks with one joined to the chunk before it, whose id and source are kept.

    ``index`` is at least 1.
    """
    first, second = chunks[index - 1], chunks[index]
    both = first.model_copy(
        update={"text": f"{first.text}\n\n{second.text}", "source": first.source or second.source}
    )
    return (*chunks[: index - 1], both, *chunks[index + 1 :])


def rename_chunk(chunks: Sequence[Evidence], index: int, name: str) -> tuple[Evidence, ...]:
    """Return the chunks with another id for one of them.

    Raises:
        InputError: The id is blank, or another chunk has it.

    """
    name = name.strip()
    if not name:
        raise InputError(
            "has no id", hint="Enter one. Answers cite it.", field=f"chunk {index + 1}"
        )
    if any(chunk.id == name for place, chunk in enumerate(chunks) if place != index):
        problem = f"would have the id {shorten(name, NAME_SHOWN)} of another chunk"
        raise InputError(problem, hint="Choose another.", field=f"chunk {index + 1}")
    return (*chunks[:index], chunks[index].model_copy(update={"id": name}), *chunks[index + 1 :])


def read_pasted(text: str) -> PastedEvidence:
    """Return the chunks of evidence in a text.

    Problems aren't raised but returned in ``errors``.
    """
    text = text.removeprefix("\ufeff").replace("\r\n", "\n").replace("\r", "\n")
    body = text.lstrip()
    if not body:
        return PastedEvidence((), None)
    if error := _unstorable_text_error(text):
        return PastedEvidence((), None, (), (error,))
    form, chunks = _read_form(body)
    read = _with_ids(form, chunks, text.count("\n", 0, len(text) - len(body)))
    if form == "blocks" and len(read.chunks) == 1 and read.chunks[0].text.count("\n") > 2:
        note = "All of it is one chunk. Leave a blank line between chunks to separate them."
        return read._replace(notes=(note, *read.notes))
    return read


def _read_form(text: str) -> tuple[Form, Iterator[FoundChunk | InputError]]:
    if text.startswith("{") or re.match(r"\[\s{0,100}[{\"]", text):
        return "json", _pasted_json_chunks(text)
    form, chunks = read_plain(text)
    header = text[:2001].partition("\n")[0]
    if form == "labelled" or len(header) > 2000:
        return form, chunks
    delimiter = max(",;\t", key=header.count)
    names = header.split(delimiter)
    if len(names) > 1 and "text" in map(_chunk_field, names):
        hint = "Fill in the text column, or remove the line."
        return "csv", (
            chunk
            for row in _pasted_table_rows(text)
            for chunk in _chunk_from_fields(row.value, row.number, hint)
        )
    if (
        form == "blocks"
        and len(names) > 1
        and all(_COLUMN.fullmatch(name.strip('"')) for name in names)
    ):
        rows = [row.value for row in _pasted_table_rows(text)]
        complete_rows = [row for row in rows if isinstance(row, dict) and len(row) == len(names)]
        # It has the shape of a table, but no known column.
        if rows and len(complete_rows) == len(rows):
            return "csv", iter([_unknown_columns(complete_rows, delimiter)])
    return form, chunks


def _unstorable_text_error(text: str) -> InputError | None:
    if "\x00" in text:
        line = text.count("\n", 0, text.index("\x00")) + 1
        return InputError(
            "contains a null byte", hint="Remove it. Text can't contain null bytes.", line=line
        )
    if not text.isascii() and (half := _SURROGATE.search(text)):
        line = text.count("\n", 0, half.start()) + 1
        return InputError(
            "contains half of a surrogate pair, which isn't a character",
            hint="Remove it.",
            line=line,
        )
    return None


# Tables and JSON, which are read like files


def _pasted_table_rows(text: str, name: str = "pasted.csv") -> Iterator[DataRow]:
    try:
        yield from read_rows(io.BytesIO(text.encode()), name=name)
    except InputError as error:
        yield DataRow(error.line or 1, 0, error)


def _unknown_columns(rows: list[dict[str, Any]], delimiter: str) -> InputError:
    """Return the error for a table without a known text column.

    Its hint proposes a first line that would work.
    """
    names = list(rows[0])
    longest = max(names, key=lambda name: sum(len(row[name]) for row in rows))
    proposed = delimiter.join("text" if name == longest else name for name in names)
    return InputError(
        f"names the columns {', '.join(shorten(name, NAME_SHOWN) for name in names[:8])}; none is"
        " known as the text of a chunk",
        hint=(
            'Name the column with the text "text" (others: "id", "source"). '
            f"If it is {shorten(longest, NAME_SHOWN)}, the first line is: {proposed[:200]}"
        ),
        line=1,
    )


def _pasted_json_chunks(text: str) -> Iterator[FoundChunk | InputError]:
    # The wrapper lets one parse accept a list of texts as well as an object over several lines.
    try:
        value_read = parse_object(b'{"chunks":' + text.strip().encode() + b"}")["chunks"]
    except InputError as error:
        if text.startswith("["):
            yield InputError(
                f"isn't a valid JSON list: it {error.problem}", hint=_CHUNK_SHAPE, line=1
            )
            return
        rows: Iterable[tuple[int, Any]] = (
            (row.number, row.value) for row in _pasted_table_rows(text, "pasted.jsonl")
        )
    else:
        rows = (
            (1, value) for value in (value_read if isinstance(value_read, list) else [value_read])
        )
    for line, value in rows:
        yield from _chunk_from_fields(
            {"text": value} if isinstance(value, str) else value, line, _CHUNK_SHAPE
        )


def _chunk_from_fields(value: Any, line: int, hint: str) -> Iterator[FoundChunk | InputError]:
    """Yield the chunk in an object or a table row with any known field names."""
    if isinstance(value, InputError):
        yield value.at(line=line)
        return
    if not isinstance(value, dict):
        yield InputError(f"is {kind_of(value)}, must be an object", hint=_CHUNK_SHAPE, line=line)
        return
    if isinstance(value.get("evidence"), list):
        hint = "Paste only its evidence, or use `masis import`."
        yield InputError("is a whole case, not a chunk", hint=hint, line=line)
        return
    cells: dict[str, str] = {}
    for key, item in value.items():
        if (
            isinstance(item, str | int | float)
            and not isinstance(item, bool)
            and (text := str(item).strip())
        ):
            cells.setdefault(_chunk_field(key), text)
    if "text" in cells:
        yield FoundChunk(line, cells.get("id", ""), cells["text"], cells.get("source"))
        return
    keys = ", ".join(shorten(key, NAME_SHOWN) for key in list(value)[:5]) or "nothing"
    yield InputError(
        f"has no text (it holds {keys})", hint=f'Name the text "text". {hint}', line=line
    )


def _chunk_field(name: str) -> str:
    """Return the field of a chunk that a column or key means, or ""."""
    plain = name[:60].strip().strip('"\ufeff').strip().lower().replace("-", "_").replace(" ", "_")
    return next((field for field, names in _NAMES.items() if plain in names), "")


def _with_ids(form: Form, items: Iterable[FoundChunk | InputError], above: int) -> PastedEvidence:
    """Number the chunks without an id, and refuse repeated ids.

    ``above`` is the number of lines before the text.
    """
    chunks_found, errors, notes = list[FoundChunk](), list[InputError](), list[str]()
    for item in items:
        line = above + (item.line or 1)
        if isinstance(item, InputError):
            errors.append(item.at(line=line))
        # JSON escapes may produce any character.
        elif (
            error := _unstorable_text_error(f"{item.id}{item.text}{item.source or ''}")
        ) is not None:
            errors.append(error.at(line=line))
        else:
            chunks_found.append(item._replace(line=line))
        if len(errors) == MOST_ERRORS:
            notes.append("The remaining lines weren't read.")
            break
    taken: dict[str, int] = {}
    for chunk in chunks_found:
        if chunk.id and taken.setdefault(chunk.id, chunk.line) != chunk.line:
            problem = f"repeats the id {shorten(chunk.id, NAME_SHOWN)} of line {taken[chunk.id]}"
            errors.append(InputError(problem, hint="Give each chunk its own id.", line=chunk.line))
    free_ids = (name for number in count(1) if (name := str(number)) not in taken)
    chunks: dict[str, Evidence] = {}
    assigned: list[str] = []
    for chunk in chunks_found[:MOST_CHUNKS]:
        name = chunk.id or next(free_ids)
        assigned += [] if chunk.id else [name]
        extra = {"source": chunk.source} if chunk.source else {}
        chunks.setdefault(name, Evidence(id=name, text=chunk.text, **extra))
    if len(chunks_found) > MOST_CHUNKS:
        problem = f"is one of {len(chunks_found):,} chunks, more than {MOST_CHUNKS:,}"
        errors.append(
            InputError(problem, hint="Leave some out.", line=chunks_found[MOST_CHUNKS].line)
        )
    if assigned and len(assigned) < len(chunks):
        more = f" and {len(assigned) - 5} more" if len(assigned) > 5 else ""
        named_chunks = (
            f"{'Chunk' if len(assigned) == 1 else 'Chunks'} {', '.join(assigned[:5])}{more}"
        )
        notes.append(f"{named_chunks} had no id and got a number.")
    return PastedEvidence(
        tuple(chunks.values()),
        form,
        tuple(notes),
        tuple(sorted(errors, key=lambda error: error.line or 0)),
    )

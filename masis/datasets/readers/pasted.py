"""Evidence as people paste it: blocks between blank lines, ``[id] text``, numbered headings, CSV, JSON Lines or a list.

What form a text has is read from the text, so that it need not be stated. Chunks without an id get a number. What can't
be read is an error with its line and the cure; the chunks around it are read all the same, so that all errors show at
once. Nothing is dropped silently: what was assigned or left out is in ``notes``.
"""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple

from masis.datasets.readers.lines import refuse_other_formats
from masis.datasets.readers.strict_json import parse_object
from masis.errors import InputError
from masis.schema.case import Evidence
from masis.schema.explain import kind_of
from masis.schema.wording import shortened

Form = Literal["blocks", "labelled", "headings", "csv", "json"]
MOST_CHUNKS = 10_000
MOST_BYTES = 20_000_000
NAME_SHOWN = 40
"""An audit reads all of its evidence; what is larger is a corpus, not what a retriever found for one question."""

_LABEL = re.compile(
    r"[ \t]{0,8}\[([^\[\]\s]{1,100}|(?i:chunk|source|doc|document|passage|evidence) \d{1,6})\](?!\()[ \t:]*"
)
_NAMED_HEADING = re.compile(
    r"[ \t]{0,3}(?:#{1,6}[ \t]{1,4})?(?:\*\*)?(?i:source|document|doc|passage|chunk|evidence|reference)[ \t]{1,4}#?"
    r"(\d{1,6})(?:\*\*)?(?:[ \t]{0,4}[:.)\u2013\u2014-](?:\*\*)?(?=\s|$)|[ \t]*$)"
)
"""``Source 1: https://...``, ``## Document 2``, ``**Passage 3**``; ``Source 1 says`` begins a sentence."""
_NUMBERED_HEADING = re.compile(r"[ \t]{0,3}(?:#{1,6}[ \t]{1,4})?(?:\*\*)?(\d{1,6})[.):](?=[ \t])")
_ADDRESS = re.compile(r"<?(https?://[^\s<>]{1,2000})>?", re.IGNORECASE)
_COLUMN = re.compile(r"[^\W\d][\w.-]{0,39}(?: [\w.-]{1,39}){0,2}")
"""The name of a column: up to three words without any other punctuation, and no blank before it as prose has."""
_HALF_A_PAIR = re.compile("[\ud800-\udfff]")
_NAMES: dict[str, tuple[str, ...]] = {
    "id": (
        "id",
        "chunk_id",
        "chunkid",
        "evidence_id",
        "doc_id",
        "docid",
        "document_id",
        "passage_id",
        "key",
        "number",
        "nr",
    ),
    "text": ("text", "content", "chunk", "passage", "page_content", "body", "document", "snippet", "quote", "evidence"),
    "source": ("source", "url", "title", "file", "filename", "link", "uri", "origin", "path"),
}
_KNOWN = {name: key for key, names in _NAMES.items() for name in names}


class Pasted(NamedTuple):
    """The result of reading pasted text: chunks, their form, notes on assigned ids, and errors."""

    chunks: tuple[Evidence, ...]
    form: Form | None
    notes: tuple[str, ...] = ()
    errors: tuple[InputError, ...] = ()


class _Found(NamedTuple):
    line: int
    id: str
    text: str
    source: str | None = None


@dataclass
class _Read:
    """Chunks and errors as they are found."""

    form: Form
    found: list[_Found] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    errors: list[InputError] = field(default_factory=list)

    def wrong(self, problem: str, cure: str, line: int) -> None:
        self.errors.append(InputError(problem, cure=cure, line=line))


def text_of(content: bytes, name: str) -> str:
    """Return the text of an uploaded file. Raises InputError where it is another format, too large or not UTF-8."""
    try:
        refuse_other_formats(content[:16])
    except InputError as error:
        raise error.at(file=name) from error
    if len(content) > MOST_BYTES:
        raise InputError(
            f"is larger than {MOST_BYTES // 10**6} MB",
            cure="Give only what was retrieved for this one question.",
            file=name,
        )
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise InputError(
            f"is not UTF-8 (byte 0x{content[error.start]:02X})", cure="Save the file as UTF-8.", file=name, line=line
        ) from error


def written(chunks: Sequence[Evidence]) -> str:
    """Return a text from which ``read_pasted`` reads exactly these chunks: with labels, or as JSON where need be."""
    labelled = "\n\n".join(f"[{chunk.id}] {chunk.text}" for chunk in chunks)
    if all(chunk.source is None for chunk in chunks) and read_pasted(labelled).chunks == tuple(chunks):
        return labelled
    rows = (chunk.model_dump(include={"id", "text", "source"}, exclude_none=True) for chunk in chunks)
    return "\n".join(json.dumps(row, ensure_ascii=False) for row in rows)


def merged(chunks: Sequence[Evidence], index: int) -> tuple[Evidence, ...]:
    """Return the chunks with one joined to the chunk before it, whose id and source stay. ``index`` is from 1 on."""
    first, second = chunks[index - 1], chunks[index]
    both = first.model_copy(update={"text": f"{first.text}\n\n{second.text}", "source": first.source or second.source})
    return (*chunks[: index - 1], both, *chunks[index + 1 :])


def renamed(chunks: Sequence[Evidence], index: int, name: str) -> tuple[Evidence, ...]:
    """Return the chunks with another id for one. Raises InputError where it has none, or another chunk has it."""
    name = name.strip()
    if not name:
        raise InputError("has no id", cure="Type one: answers cite it.", field=f"chunk {index + 1}")
    if any(chunk.id == name for place, chunk in enumerate(chunks) if place != index):
        raise InputError(
            f"would have the id {shortened(name, NAME_SHOWN)} of another chunk",
            cure="Choose another.",
            field=f"chunk {index + 1}",
        )
    return (*chunks[:index], chunks[index].model_copy(update={"id": name}), *chunks[index + 1 :])


def read_pasted(text: str) -> Pasted:
    """Return the chunks of evidence a text holds. Never raises: what is wrong with it is in ``errors``."""
    text = text.removeprefix("\ufeff").replace("\r\n", "\n").replace("\r", "\n")
    if not text.strip():
        return Pasted((), None)
    if error := _unstorable(text):
        return Pasted((), None, (), (error,))
    read = _form_of(text)(text)
    return _with_ids(read)


def _form_of(text: str) -> Any:
    first = text.lstrip()
    if first.startswith("{") or re.match(r"\[\s{0,100}[{\"]", first):
        return _json
    if _LABEL.match(first):
        return _labelled
    if _delimiter(first):
        return _csv
    if _headings_in(text):
        return _headed
    return _unknown_columns if _table(first) else _blocks


def _unstorable(text: str) -> InputError | None:
    if "\x00" in text:
        line = text.count("\n", 0, text.index("\x00")) + 1
        return InputError("holds a null byte", cure="Remove it: no text holds one.", line=line)
    if not text.isascii() and (half := _HALF_A_PAIR.search(text)):
        line = text.count("\n", 0, half.start()) + 1
        return InputError("holds half of a surrogate pair, which is no character", cure="Remove it.", line=line)
    return None


# blank lines and labels


def _blocks(text: str) -> _Read:
    """Read blocks between blank lines; a later ``[id]`` at the start of a line begins a chunk with that id."""
    read = _Read("blocks")
    for line, block in _paragraphs(text):
        read.found.extend(_split_at_labels(block, line, read))
    if len(read.found) == 1 and read.found[0].text.count("\n") > 2:
        read.notes.append("All of it is one chunk. Leave a blank line between chunks to separate them.")
    return read


def _labelled(text: str) -> _Read:
    """``[id] text``: a chunk reaches to the next label, over blank lines too."""
    read = _Read("labelled")
    read.found.extend(_split_at_labels(text, 1, read))
    return read


def _paragraphs(text: str) -> Iterator[tuple[int, str]]:
    start, lines = 1, list[str]()
    for number, line in enumerate(text.split("\n"), 1):
        if line.strip():
            if not lines:
                start = number
            lines.append(line)
        elif lines:
            yield start, "\n".join(lines)
            lines = []
    if lines:
        yield start, "\n".join(lines)


def _split_at_labels(text: str, first_line: int, read: _Read) -> Iterator[_Found]:
    start, label, lines = first_line, "", list[str]()
    for number, line in enumerate(text.split("\n"), first_line):
        match = _LABEL.match(line)
        if match:
            yield from _chunk(label, lines, start, read)
            start, label, lines = number, match[1], [line[match.end() :]]
        else:
            lines.append(line)
    yield from _chunk(label, lines, start, read)


def _chunk(label: str, lines: list[str], line: int, read: _Read) -> Iterator[_Found]:
    text = "\n".join(lines).strip()
    if text:
        yield _Found(line, label, text)
    elif label:
        read.wrong(
            f"[{shortened(label, NAME_SHOWN)}] has no text",
            "Write the text behind the label, or remove the label.",
            line,
        )


# numbered headings


class _Heading(NamedTuple):
    line: int
    id: str
    rest: str


def _headings_in(text: str) -> list[_Heading]:
    """Return the headings that begin a chunk each: ``Source 1: ...``, else lines numbered from 1.

    Numbers alone are headings only where the text begins with the first and each stands behind a blank line: a list
    inside one source is numbered too.
    """
    lines = text.split("\n")
    named = [
        _Heading(number, match[1], line[match.end() :])
        for number, line in enumerate(lines, 1)
        if (match := _NAMED_HEADING.match(line))
    ]
    behind = any(each.rest.strip() for each in named) or sum(1 for line in lines if line.strip()) > len(named)
    if named and behind and len({each.id for each in named}) == len(named):
        if len(named) > 1 or not any(line.strip() for line in lines[: named[0].line - 1]):
            return named
        return []
    numbered: list[_Heading] = []
    for number, line in enumerate(lines, 1):
        match = _NUMBERED_HEADING.match(line)
        if match and (number == 1 or not lines[number - 2].strip()):
            numbered.append(_Heading(number, match[1], line[match.end() :]))
    begins = numbered and not any(line.strip() for line in lines[: numbered[0].line - 1])
    counted = [each.id for each in numbered] == [str(number) for number in range(1, len(numbered) + 1)]
    return numbered if begins and counted and len(numbered) > 1 else []


def _headed(text: str) -> _Read:
    """Read chunks that reach from one heading to the next, over blank lines; an address in a heading is the source."""
    read = _Read("headings")
    lines, headings = text.split("\n"), _headings_in(text)
    read.found.extend(_chunk("", lines[: headings[0].line - 1], 1, read))
    ends = [each.line - 1 for each in headings[1:]] + [len(lines)]
    for heading, end in zip(headings, ends, strict=True):
        rest = heading.rest.strip().removesuffix("**").strip()
        address = _ADDRESS.fullmatch(rest)
        body = lines[heading.line : end] if address else [rest, *lines[heading.line : end]]
        for found in _chunk(heading.id, body, heading.line, read):
            read.found.append(found._replace(source=address[1]) if address else found)
    return read


# CSV


def _delimiter(text: str) -> str | None:
    """Return the delimiter of a CSV whose first line names columns, one of them the text; None for any other text."""
    header = text.split("\n", 1)[0]
    if len(header) > 2000:
        return None
    for delimiter in (",", ";", "\t"):
        if delimiter in header and _KNOWN_TEXT & {_plain(name) for name in header.split(delimiter)}:
            return delimiter
    return None


_KNOWN_TEXT = set(_NAMES["text"])


def _table(text: str) -> tuple[str, list[list[str]]] | None:
    """Return the delimiter and the rows of a text that is a CSV by its form; None for any other text."""
    header = text.split("\n", 1)[0]
    if len(header) > 2000:
        return None
    csv.field_size_limit(MOST_BYTES)
    for delimiter in (",", ";", "\t"):
        names = [name.strip('"') for name in header.split(delimiter)]
        if len(names) < 2 or not all(_COLUMN.fullmatch(name) for name in names):
            continue
        try:
            rows = [row for row in csv.reader(io.StringIO(text), delimiter=delimiter, strict=True) if any(row)]
        except csv.Error:
            continue
        if len(rows) > 1 and all(len(row) == len(names) for row in rows):
            return delimiter, rows
    return None


def _unknown_columns(text: str) -> _Read:
    """Refuse a CSV none of whose columns is known as the text, with the first line that would name it."""
    read, stripped = _Read("csv"), text.lstrip()
    table = _table(stripped)
    assert table is not None
    delimiter, rows = table
    names = rows[0]
    lengths = [sum(len(row[column]) for row in rows[1:]) for column in range(len(names))]
    longest = lengths.index(max(lengths))
    shown = ", ".join(shortened(name, NAME_SHOWN) for name in names[:8])
    proposed = delimiter.join("text" if column == longest else name for column, name in enumerate(names))
    read.wrong(
        f"names the columns {shown}; none is known as the text of a chunk",
        'Name the column with the text "text" (others: "id", "source"). '
        f"If it is {shortened(names[longest], NAME_SHOWN)}, "
        f"the first line is: {proposed[:200]}",
        text[: len(text) - len(stripped)].count("\n") + 1,
    )
    return read


def _csv(text: str) -> _Read:
    read = _Read("csv")
    text = text.lstrip()
    delimiter = _delimiter(text) or ","
    csv.field_size_limit(MOST_BYTES)
    rows = csv.reader(io.StringIO(text), delimiter=delimiter, strict=True)
    try:
        header = [_KNOWN.get(_plain(name), "") for name in next(rows)]
        before = rows.line_num
        for row in rows:
            line, before = before + 1, rows.line_num
            if any(cell.strip() for cell in row):
                _csv_row(header, row, line, read)
    except csv.Error as error:
        read.wrong(
            f"is no valid CSV ({error})",
            'Put text that holds quotes or line breaks in quotes, and write " as "".',
            rows.line_num,
        )
    return read


def _csv_row(header: list[str], row: list[str], line: int, read: _Read) -> None:
    if len(row) > len(header):
        read.wrong(
            f"has {len(row)} columns, the first line names {len(header)}",
            "Put text that holds the delimiter in quotes.",
            line,
        )
        return
    cells: dict[str, str] = {}
    for name, cell in zip(header, row, strict=False):
        if name and cell.strip():
            cells.setdefault(name, cell.strip())
    if "text" not in cells:
        read.wrong("has no text", "Fill in the text column, or remove the line.", line)
        return
    read.found.append(_Found(line, cells.get("id", ""), cells["text"], cells.get("source")))


# JSON


def _json(text: str) -> _Read:
    read = _Read("json")
    for line, value in _json_values(text, read):
        if isinstance(value, str):
            read.found.append(_Found(line, "", value.strip()))
        elif isinstance(value, dict):
            _json_chunk(value, line, read)
        else:
            read.wrong(f"is {kind_of(value)}, must be an object", _CHUNK_SHAPE, line)
    return read


_CHUNK_SHAPE = 'Write each chunk as {"id": "1", "text": "..."}.'


def _json_values(text: str, read: _Read) -> Iterator[tuple[int, Any]]:
    """Yield the values of a list or of one object over several lines, else one value a line."""
    whole = _whole(text)
    if whole is not None:
        first = text[: len(text) - len(text.lstrip())].count("\n") + 1
        values: Iterable[Any] = whole if isinstance(whole, list) else [whole]
        yield from ((first, value) for value in values)
        return
    if text.lstrip().startswith("["):
        read.errors.append(_broken_list(text))
        return
    for number, line in enumerate(text.split("\n"), 1):
        if not line.strip():
            continue
        try:
            yield number, parse_object(line.strip().encode())
        except InputError as error:
            read.errors.append(error.at(line=number))
            if len(read.errors) >= 20:
                read.notes.append("Further lines were not read.")
                return


def _whole(text: str) -> list[Any] | dict[str, Any] | None:
    """Return the JSON list, or the one object, that the text is as a whole; None where it is one object a line."""
    stripped = text.strip()
    if stripped.startswith("{") and "\n" not in stripped:
        return None
    try:
        # wrapped, so that the strict reader's rules (no repeated keys, no NaN) hold for a list too
        value = parse_object(b'{"chunks":' + stripped.encode() + b"}")["chunks"]
    except InputError:
        return None
    return value if isinstance(value, list | dict) else None


def _broken_list(text: str) -> InputError:
    line, why = 1, "a key stands twice, or a number is none"
    try:
        json.loads(text)
    except (json.JSONDecodeError, RecursionError) as error:
        if isinstance(error, json.JSONDecodeError):
            line, why = error.lineno, error.msg
    return InputError(f"is no valid JSON list ({why})", cure=f"{_CHUNK_SHAPE} Separate them with commas.", line=line)


def _json_chunk(value: dict[str, Any], line: int, read: _Read) -> None:
    if "evidence" in value and isinstance(value["evidence"], list):
        read.wrong(
            "is a whole case, not a chunk", "Paste only what stands in its evidence, or use `masis import`.", line
        )
        return
    cells: dict[str, str] = {}
    for key, item in value.items():
        name = _KNOWN.get(_plain(key))
        if name and isinstance(item, str | int | float) and not isinstance(item, bool) and str(item).strip():
            cells.setdefault(name, str(item).strip())
    if "text" not in cells:
        keys = ", ".join(shortened(key, NAME_SHOWN) for key in list(value)[:5]) or "nothing"
        read.wrong(f"has no text (it holds {keys})", f'Name the text "text". {_CHUNK_SHAPE}', line)
        return
    read.found.append(_Found(line, cells.get("id", ""), cells["text"], cells.get("source")))


# ids


def _with_ids(read: _Read) -> Pasted:
    """Give numbers to chunks without an id, and refuse an id that stands twice."""
    read.found = [chunk for chunk in read.found if _can_be_stored(chunk, read)]
    taken: dict[str, int] = {}
    for chunk in read.found:
        if chunk.id:
            if chunk.id in taken:
                read.wrong(
                    f"repeats the id {shortened(chunk.id, NAME_SHOWN)} of line {taken[chunk.id]}",
                    "Give each chunk an id of its own.",
                    chunk.line,
                )
            taken.setdefault(chunk.id, chunk.line)
    chunks, seen, assigned = list[Evidence](), set[str](), list[str]()
    number = 0
    for chunk in read.found[:MOST_CHUNKS]:
        name = chunk.id
        if not name:
            number += 1
            while str(number) in taken:
                number += 1
            name = str(number)
            assigned.append(name)
        if name not in seen:
            seen.add(name)
            extra = {"source": chunk.source} if chunk.source else {}
            chunks.append(Evidence(id=name, text=chunk.text, **extra))
    if len(read.found) > MOST_CHUNKS:
        read.wrong(
            f"is one of {len(read.found):,} chunks, more than {MOST_CHUNKS:,}",
            "Leave some out.",
            read.found[MOST_CHUNKS].line,
        )
    if assigned and len(assigned) < len(chunks):
        read.notes.append(f"{_listed(assigned)} had no id and got a number.")
    errors = sorted(read.errors, key=lambda error: error.line or 0)
    return Pasted(tuple(chunks), read.form, tuple(read.notes), tuple(errors))


def _can_be_stored(chunk: _Found, read: _Read) -> bool:
    """Return whether a chunk can be stored; JSON can escape what no text holds.

    The error goes to the line of the chunk.
    """
    error = _unstorable(f"{chunk.id}{chunk.text}{chunk.source or ''}")
    if error is not None:
        read.wrong(error.problem, error.cure, chunk.line)
    return error is None


def _listed(names: list[str]) -> str:
    shown = ", ".join(names[:5])
    more = f" and {len(names) - 5} more" if len(names) > 5 else ""
    return f"{'Chunk' if len(names) == 1 else 'Chunks'} {shown}{more}"


def _plain(name: str) -> str:
    return name[:60].strip().strip('"\ufeff').strip().lower().replace("-", "_").replace(" ", "_")

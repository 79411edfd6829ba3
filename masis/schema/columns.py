"""Guesses which columns of a record hold which field.

Names that other tools use decide first, then the content: a question ends in a question mark or is
the shortest text, an answer cites, and evidence is a list, numbered, or the longest text. Errors,
``--suggest`` and the import page all use the same proposal.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from itertools import islice, pairwise
from operator import attrgetter
from typing import Any, Literal, NamedTuple

from masis.schema.explain import name_elsewhere
from masis.schema.literals import parse_value
from masis.schema.systems import LONGEST_NAME, names_system
from masis.schema.wording import shorten

LONG_TEXT = 60
"""The length from which an unread text may be a part of the case; notes and labels are shorter."""

MOST_COLUMNS = 200
"""Maximum number of columns to offer for one row."""

MOST_LEVELS = 3
"""The deepest nesting of objects whose columns are offered."""

EXCERPT = 60

COLUMN_JOINER = " + "
"""Joins the names of several columns in a field map if each holds a chunk of the evidence."""


class SourceColumn(NamedTuple):
    """One column of a row.

    ``names`` are the keys from the outermost object inwards, and ``sample`` is the beginning of the
    value in the first row.
    """

    names: tuple[str, ...]
    sample: str
    items: tuple[str, ...] = ()
    """The keys of its objects, if it holds a list of objects."""
    kind: Literal["text", "texts", "objects", "other"] = "other"
    length: int = 0
    """The number of characters of its text, or of all texts in its list."""
    longest_item: str = ""
    """The key of the longest text, if it holds a list of objects."""
    form: Literal["", "question", "cited", "numbered", "sentence"] = ""
    """The form of a text; "" for a word or a name."""
    item_id: str = ""
    """The key of distinct ids, if it holds a list of objects that have them."""
    inside_text: int = 0
    """The number of ``names`` that lead to an object written as text; 0 if there is none."""

    @property
    def empty(self) -> bool:
        """Whether it holds an empty text or list."""
        return self.sample.strip() in ("", "[]")

    @property
    def shown(self) -> str:
        """The column's name as people read it."""
        return ".".join(self.names)

    @property
    def path(self) -> str:
        """The JMESPath expression for it, with quoted names, which may hold any character."""
        names = [json.dumps(name) for name in self.names]
        if not self.inside_text:
            return ".".join(names)
        return ".".join(
            (f"parsed({'.'.join(names[: self.inside_text])})", *names[self.inside_text :])
        )


def columns_of(row: Mapping[str, Any]) -> tuple[SourceColumn, ...]:
    """Return the columns that a row offers, including those inside objects."""
    return tuple(islice(_columns_of_row(row, (), 0), MOST_COLUMNS))


def _columns_of_row(
    row: Mapping[str, Any], above: tuple[str, ...], inside_text: int
) -> Iterator[SourceColumn]:
    for key, value in row.items():
        names = (*above, str(key))
        inner = object_in(value)
        # An object written as text is opened once. JSON inside JSON inside a text isn't read by
        # paths.
        if inner and len(names) < MOST_LEVELS and not (inside_text and isinstance(value, str)):
            yield from _columns_of_row(
                inner, names, inside_text or (len(names) if isinstance(value, str) else 0)
            )
        elif value is not None:
            yield _column(names, value)._replace(inside_text=inside_text)


def object_in(value: Any) -> dict[str, Any] | None:
    """Return an object, parsing one that a tool wrote into a text as JSON.

    Returns None for anything else.
    """
    if isinstance(value, str) and value.lstrip()[:1] == "{":
        value = parse_value(value)
    return value if isinstance(value, dict) else None


def _column(names: tuple[str, ...], value: Any) -> SourceColumn:
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)
    sample = shorten(" ".join(text[: 4 * EXCERPT].split()), EXCERPT)
    read = parse_value(value)
    if isinstance(read, str):
        return SourceColumn(
            names, sample, kind="text", length=len(read.strip()), form=_text_form(read.strip())
        )
    if not isinstance(read, list) or not read:
        return SourceColumn(names, sample)
    if all(isinstance(item, str) for item in read):
        if all(map(_IDENTIFIER.fullmatch, read)):
            return SourceColumn(names, sample)
        return SourceColumn(names, sample, kind="texts", length=sum(map(len, read)))
    objects = [item for item in read if isinstance(item, dict)]
    # The first objects are enough, because the objects of one list usually have the same keys.
    items = tuple(dict.fromkeys(str(key) for item in objects[:20] for key in item))[:MOST_COLUMNS]
    texts = [
        (str(name), text)
        for item in objects
        for name, text in item.items()
        if isinstance(text, str)
    ]
    # Single ASCII words are ids or labels, not the text of chunks.
    has_prose = name_elsewhere("text", items) is not None or any(
        " " in text.strip() or not text.isascii() for _, text in texts
    )
    if not texts or not has_prose:
        return SourceColumn(names, sample, items)
    length = sum(len(text) for _, text in texts)
    _, longest = max((len(text), name) for name, text in texts)
    id_key = name_elsewhere("evidence.id", items)
    ids = [str(item.get(id_key)) for item in objects]
    # Chunks of one document may all have its id, which then identifies none of them.
    item_id = id_key if id_key and len(set(ids)) == len(ids) else ""
    return SourceColumn(names, sample, items, "objects", length, longest, item_id=item_id)


_IDENTIFIER = re.compile(r"https?://\S*|[^\s\d]{0,40}\d\S*")
"""An address or a word with a number, which names a chunk but isn't its text."""


_CITED = re.compile(r"\[[^\[\]\s]{1,40}\](?!\()")
"""A citation such as ``[1]`` or ``[doc-2]``. A Markdown link, ``[text](url)``, isn't one."""
_NUMBERED_INSIDE = re.compile(r"(?:^|(?<=\s))\[(\d{1,6})\](?=\s|$)")
"""A number in brackets between blanks, anywhere in a line."""
_SENTENCE_END = re.compile(r"[.!?\u2026\u3002][\"'\u201d\u2019)\]]*$")
"""The end of a sentence, with closing quotes and brackets: ``... in 2019.")``."""
_MARKER = re.compile(r"\[(\d{1,3}(?:\s*[,;-]\s*\d{1,3})*)\](?!\()")
"""A marker of one or more numbers: ``[1]``, ``[2, 3]``, ``[4-6]``."""
_NUMBERED = re.compile(r"^[ \t]{0,8}\[(\d{1,6})\][ \t:]*", re.MULTILINE)
"""A number in brackets at the start of a line: ``[1] Text`` or ``[1]: Text``."""


def _text_form(text: str) -> Literal["", "question", "cited", "numbered", "sentence"]:
    # A question comes first: one such as "What does [1] mean?" also cites.
    if text.endswith(("?", "\uff1f")):
        return "question"
    if isinstance(chunks_in(text), list):
        return "numbered"
    if _CITED.search(text):
        return "cited"
    return (
        "sentence"
        if len(text) >= LONG_TEXT or (" " in text and text.endswith((".", "!", "\u2026")))
        else ""
    )


def chunks_in(value: Any, answer: str = "") -> Any:
    """Split an evidence that is one text into chunks, if it certainly holds several.

    These forms are certain:

        A list written as text.
        Lines that begin with ``[1]``, ``[2]`` and so on, in ascending order.
        ``[1]`` to the last number inside lines, or lines of dashes, if sentences end before them or
            ``answer`` cites one of them by position.
        ``|`` between as many parts as the answer's citations count up to.
        ``|`` without blanks after the ends of sentences, as DeepEval joins chunks.

    The numbers become the ids of the chunks. Any other value is returned as ``parse_value`` reads
    it.
    """
    read = parse_value(value)
    if not isinstance(read, str):
        return read
    highest = max(numbers_cited(answer), default=0)
    if read.lstrip().startswith("["):
        marks = list(_NUMBERED.finditer(read))
        numbers = [int(mark[1]) for mark in marks]
        texts = _texts_after(marks, read)
        # Ascending, because a text that cites, such as "[3] and [1] agree", isn't a list.
        if texts and all(a < b for a, b in pairwise(numbers)):
            return [{"id": mark[1], "text": text} for mark, text in zip(marks, texts, strict=True)]
        marks = list(_NUMBERED_INSIDE.finditer(read))
        texts = _texts_after(marks, read)
        if [int(mark[1]) for mark in marks] == [*range(1, len(texts) + 1)] and _are_certain_chunks(
            texts, highest
        ):
            return [{"id": mark[1], "text": text} for mark, text in zip(marks, texts, strict=True)]
    ruled = parts_of(read, "---")
    if _are_certain_chunks(ruled, highest):
        return ruled
    if "|" not in read or is_markdown_table(read):
        return read
    # A single "|" may also be an "or" or a formula, so it needs more evidence than a separator.
    listed = parts_of(read, "|")
    joined = (
        _JOINED["|"].search(read)
        and not _BLANK_AROUND["|"].search(read)
        and _end_as_sentences(listed)
    )
    return listed if joined or len(listed) == highest >= 2 else read


def numbers_cited(answer: str) -> set[int]:
    """Return the numbers in the markers of an answer: ``[1]``, ``[2, 3]``."""
    return {
        int(number) for marker in _MARKER.findall(answer) for number in re.findall(r"\d+", marker)
    }


def cited_by_place(answer: str, ids: Iterable[str]) -> bool:
    """Return whether an answer's markers count chunks although the ids end in numbers.

    That is the case if the markers match none of the ids.
    """
    # "[1]" names the chunk doc_1 where there is one, so positions count only if no id could be
    # meant: chunks p7, p8 and p9 with markers [1] to [3].
    numbers, names = numbers_cited(answer), list(ids)
    ends = [re.search(r"\d+$", name) for name in names]
    if not numbers or not all(ends) or not numbers <= {*range(1, len(names) + 1)}:
        return False
    return numbers.isdisjoint(int(end[0]) for end in ends if end) and not any(
        name in answer for name in names
    )


SEPARATORS = ("||", "|", ";", "\uff1b", "###", "<sep>", "<SEP>", "[SEP]", "\t", "\n\n", "\n")
"""Possible separators of chunks in one text, the most likely first."""

_PATTERNS = {"---": r"(?m)^[ \t]*-{3,}[ \t]*$", "\n\n": r"\n[ \t]*\n"}
"""Patterns of the separators that vary: a line of dashes, and a line that may contain blanks."""
_JOINED = {"|": re.compile(r"\S\|\S"), ";": re.compile(r"\S;\S")}
_BLANK_AROUND = {"|": re.compile(r"\s\||\|\s"), ";": re.compile(r"\s;|;\s")}
_ENTITY = re.compile(r"&#?\w{1,20};")
"""An HTML entity such as ``&amp;``, whose semicolon separates nothing."""
_TABLE_RULE = re.compile(r"^[ \t]*+\|?[ \t]*+:?-{2,}:?[ \t]*+\|[ \t:|-]*+$", re.MULTILINE)
"""The line of dashes below the head of a Markdown table."""


def is_markdown_table(text: str) -> bool:
    """Return whether the ``|`` in a text separate the columns of a table, and not chunks."""
    if _TABLE_RULE.search(text):
        return True
    lines = [line.strip() for line in text.splitlines() if "|" in line]
    return all(len(line) > 1 and line[0] == line[-1] == "|" for line in lines)


def parts_of(text: str, separator: str) -> list[str]:
    """Return the non-empty parts between the separators; ``---`` is a line of dashes."""
    pattern = _PATTERNS.get(separator)
    parts = re.split(pattern, text) if pattern else text.split(separator)
    return [part.strip() for part in parts if part.strip()]


def separators_in(text: str, count: int) -> Iterator[tuple[str, int]]:
    """Yield possible separators of chunks in a text, with the number of chunks.

    If an answer cites up to ``count`` of at least 2, every separator with that many parts is
    possible; a line break only after sentences. Otherwise only ``|`` and ``;`` are, and only after
    the end of each sentence or without blanks around them, since prose has neither.
    """
    for between in SEPARATORS:
        if between not in text or (count < 2 and between not in _JOINED):
            continue
        if between == "|" and is_markdown_table(text):
            continue
        # The semicolon of "&amp;" would split a chunk in two.
        parts = parts_of(_ENTITY.sub("", text) if between == ";" else text, between)
        if len(parts) < 2:
            continue
        if count >= 2:
            if len(parts) >= count and (between != "\n" or all(map(_SENTENCE_END.search, parts))):
                yield between, len(parts)
        elif between in _JOINED and (_end_as_sentences(parts) or _are_joined(text, between, parts)):
            yield between, len(parts)


def _end_as_sentences(parts: list[str]) -> bool:
    return len(parts) > 1 and all(map(_SENTENCE_END.search, parts[:-1]))


def _are_joined(text: str, between: str, parts: list[str]) -> bool:
    """Return whether parts of several words are joined without a blank.

    That is rare even in code inside a text.
    """
    return not _BLANK_AROUND[between].search(text) and all(" " in part for part in parts)


def _texts_after(marks: list[re.Match[str]], text: str) -> list[str]:
    """Return the texts between the marks.

    Returns an empty list if a text precedes the first mark or if a mark has no text.
    """
    if len(marks) < 2 or text[: marks[0].start()].strip():
        return []
    ends = [*(mark.start() for mark in marks[1:]), len(text)]
    texts = [text[mark.end() : end].strip() for mark, end in zip(marks, ends, strict=True)]
    return texts if all(texts) else []


def _are_certain_chunks(parts: list[str], highest: int) -> bool:
    return len(parts) > 1 and (2 <= highest <= len(parts) or _end_as_sentences(parts))


def likely_columns(
    columns: Iterable[SourceColumn],
    fields: Iterable[str] = ("query", "answer", "evidence", "reference", "id", "system"),
) -> dict[str, SourceColumn]:
    """Return the column that probably holds each of ``fields``, judged by name and then by content.

    Each column is used for at most one field.
    """
    asked = list(fields)
    # Outer columns first: a nested key of the same name usually belongs to something else.
    unused = sorted(columns, key=lambda column: len(column.names))
    chosen: dict[str, SourceColumn] = {}

    def take(field: str, column: SourceColumn | None) -> None:
        if column is not None and field in asked and field not in chosen:
            chosen[field] = column
            unused.remove(column)

    # Reversed, so that the outermost column of a name is kept.
    by_name = {column.names[-1]: column for column in reversed(unused)}
    for field in asked:
        fits = [
            name
            for name, column in by_name.items()
            if column in unused and _can_hold_field(field, column)
        ]
        name = name_elsewhere(field, fits)
        take(field, by_name[name] if name is not None else None)
    take("query", min(_with_form(unused, "question"), key=attrgetter("length"), default=None))
    take("answer", max(_with_form(unused, "cited"), key=attrgetter("length"), default=None))
    lists = [
        column
        for column in unused
        if column.kind in ("texts", "objects") and " " in column.sample.strip()
    ]
    take(
        "evidence",
        max(lists or _with_form(unused, "numbered"), key=attrgetter("length"), default=None),
    )
    take(
        "evidence",
        max(_with_form(unused, "cited", "sentence"), key=attrgetter("length"), default=None),
    )
    texts = [column for column in unused if column.kind == "text" and " " in column.sample.strip()]
    take("query", min(texts, key=attrgetter("length"), default=None))
    take("answer", max(_with_form(unused, "sentence"), key=attrgetter("length"), default=None))
    # An empty column with a known name shows where other rows have the field.
    for field in asked:
        empty = [name for name, column in by_name.items() if column in unused and not column.length]
        name = (
            name_elsewhere(field, empty)
            if chosen and field in ("query", "answer", "evidence")
            else None
        )
        take(field, by_name[name] if name is not None and by_name[name].empty else None)
    return chosen


_NUMBER_AT_END = re.compile(r"[\s_.#-]*(?:\d{1,3}|(?<![A-Za-z])[A-Za-z])$")
"""A final number or single letter: ``context_1``, ``Source A``."""


def evidence_columns(
    chosen: Mapping[str, SourceColumn], columns: Iterable[SourceColumn]
) -> list[SourceColumn]:
    """Return the evidence column and those that differ from it only in a final number or letter."""
    evidence = chosen["evidence"]
    stem = _NUMBER_AT_END.sub("", evidence.shown)
    if evidence.kind != "text" or stem in ("", evidence.shown):
        return [evidence]
    others = [column for field, column in chosen.items() if field != "evidence"]
    free = (column for column in columns if column.kind == "text" and column not in others)
    return [column for column in free if _NUMBER_AT_END.sub("", column.shown) == stem]


def _with_form(columns: Iterable[SourceColumn], *forms: str) -> list[SourceColumn]:
    return [column for column in columns if column.form in forms]


def _can_hold_field(field: str, column: SourceColumn) -> bool:
    if field in ("query", "answer"):
        return column.kind == "text" and column.length > 0
    if field == "system":  # not "filesystem", and no system prompt, which is a sentence or longer
        is_name = 0 < column.length <= LONGEST_NAME and names_system(column.sample)
        return is_name and not re.search(r"(?i)[a-z]system", column.names[-1])
    return field != "evidence" or (column.kind != "other" and column.length > 0)


def likely_map(
    chosen: Mapping[str, SourceColumn], columns: Iterable[SourceColumn]
) -> dict[str, str]:
    """Return chosen columns as a field map, including the keys of text and id inside the evidence.

    Of all ``columns``, those that are numbered like the evidence are part of it.
    """
    names = {field: column.shown for field, column in chosen.items()}
    if (evidence := chosen.get("evidence")) is not None:
        names["evidence"] = COLUMN_JOINER.join(
            column.shown for column in evidence_columns(chosen, columns)
        )
        names |= {"evidence.text": text_key(evidence), "evidence.id": evidence.item_id}
    return {field: key for field, key in names.items() if key and key != field.rpartition(".")[2]}


def text_key(evidence: SourceColumn) -> str:
    """Return the key of the text inside the items of an evidence; "" if they aren't objects."""
    return name_elsewhere("text", evidence.items) or evidence.longest_item

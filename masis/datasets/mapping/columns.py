"""A profile made by choosing columns: what a row offers, what each column probably is, and the paths that follow.

What a column is follows from its name where other tools use it, else from what it holds: a question ends in a question
mark or is short, evidence is a list of texts or one long text, an answer is another text.

A column is named by its path as a person reads it, ``inputs.question``; the path that is followed has its names quoted,
so that a column may be called anything.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any, Literal, NamedTuple

from masis.datasets.mapping.profile import EvidencePaths, Profile
from masis.datasets.paths import parsed
from masis.schema.base import Record
from masis.schema.explain import name_elsewhere
from masis.schema.wording import shortened

MOST_COLUMNS = 200
"""Columns that are offered of one row."""

MOST_LEVELS = 3
"""Objects inside of objects whose columns are offered."""

EXCERPT = 60


class Column(NamedTuple):
    """One column: its names from the outermost object inwards, and the beginning of what it holds in the first row."""

    names: tuple[str, ...]
    sample: str
    items: tuple[str, ...] = ()
    """Where it holds a list of objects: the names inside one of them."""
    kind: Literal["text", "texts", "objects", "other"] = "other"
    length: int = 0
    """Characters of its text, or of the texts in its list."""
    longest_item: str = ""
    """Where it holds a list of objects: the name of their longest text."""

    @property
    def shown(self) -> str:
        """The column's name as people read it."""
        return ".".join(self.names)

    @property
    def path(self) -> str:
        """The path that leads to it: names in quotes, as JMESPath takes any text."""
        return ".".join(json.dumps(name) for name in self.names)


class ColumnChoice(Record):
    """Which column holds what, by the names that ``Column.shown`` gives; "" where none does."""

    query: str = ""
    answer: str = ""
    evidence: tuple[str, ...] = ()
    chunk_text: str = ""
    chunk_id: str = ""
    id: str = ""
    reference: str = ""

    @property
    def complete(self) -> bool:
        """Whether cases can be read by it."""
        return bool(self.query and self.evidence)


def columns_of(row: Mapping[str, Any]) -> tuple[Column, ...]:
    """Return the columns that a row offers, those inside of objects too."""
    return tuple(islice(_columns(row, ()), MOST_COLUMNS))


def _columns(row: Mapping[str, Any], above: tuple[str, ...]) -> Iterator[Column]:
    for key, value in row.items():
        names = (*above, str(key))
        if isinstance(value, dict) and value and len(names) < MOST_LEVELS:
            yield from _columns(value, names)
        elif value is not None:
            yield _column(names, value)


def _column(names: tuple[str, ...], value: Any) -> Column:
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)
    sample = shortened(" ".join(text[: 4 * EXCERPT].split()), EXCERPT)
    read = parsed(value)
    if isinstance(read, str):
        return Column(names, sample, (), "text", len(read.strip()))
    if not isinstance(read, list) or not read:
        return Column(names, sample)
    if all(isinstance(item, str) for item in read):
        return Column(names, sample, (), "texts", sum(map(len, read)))
    objects = [item for item in read if isinstance(item, dict)]
    items = tuple(dict.fromkeys(str(key) for item in objects[:20] for key in item))[:MOST_COLUMNS]
    texts = [(len(text), name) for item in objects for name, text in item.items() if isinstance(text, str)]
    if not texts:
        return Column(names, sample, items)
    return Column(names, sample, items, "objects", sum(length for length, _ in texts), max(texts)[1])


def columns_key(row: Mapping[str, Any]) -> str:
    """Return a name for the set of columns of a row, whatever their order: what was chosen is remembered under it."""
    return hashlib.sha256(json.dumps(sorted(map(str, row))).encode("utf-8", "surrogatepass")).hexdigest()[:16]


def likely_choice(columns: Iterable[Column]) -> ColumnChoice:
    """Return which column probably holds what, by the names that other tools use, then by what the columns hold."""
    left = list(columns)
    chosen: dict[str, Column] = {}
    by_name = {column.names[-1]: column for column in reversed(left)}
    for field in ("query", "answer", "evidence", "reference", "id"):
        fits = [name for name, column in by_name.items() if column in left and _could_be(field, column)]
        if (name := name_elsewhere(field, fits)) is not None:
            chosen[field] = by_name[name]
            left.remove(by_name[name])
    for field in ("evidence", "query", "answer"):
        if field not in chosen and (found := _by_content(field, left)) is not None:
            chosen[field] = found
            left.remove(found)
    evidence = chosen.get("evidence")
    items = evidence.items if evidence is not None else ()
    shown = {field: chosen[field].shown if field in chosen else "" for field in ("query", "answer", "id", "reference")}
    return ColumnChoice(
        **shown,
        evidence=(evidence.shown,) if evidence is not None else (),
        chunk_text=name_elsewhere("text", items) or (evidence.longest_item if evidence is not None else ""),
        chunk_id=name_elsewhere("id", items) or "",
    )


def _could_be(field: str, column: Column) -> bool:
    if field in ("query", "answer"):
        return column.kind == "text"
    return field != "evidence" or column.kind != "other"


_LONG_ENOUGH = 200
"""Characters from which one text may be all of the evidence."""


def _by_content(field: str, columns: Sequence[Column]) -> Column | None:
    texts = [column for column in columns if column.kind == "text" and " " in column.sample.strip()]
    if field == "query":
        asked = [column for column in texts if column.sample.rstrip().endswith("?")]
        return min(asked or texts, key=lambda column: column.length, default=None)
    if field == "answer":
        return max(texts, key=lambda column: column.length, default=None)
    lists = [column for column in columns if column.kind in ("texts", "objects")]
    long = [column for column in texts if column.length >= _LONG_ENOUGH and len(texts) > 1]
    return max(lists or long, key=lambda column: column.length, default=None)


def field_map(choice: ColumnChoice) -> dict[str, str]:
    """Return a choice as a field map; of several columns of evidence it names the first."""
    fields = {name: getattr(choice, name) for name in ("query", "answer", "id")}
    inside = {"evidence.text": choice.chunk_text, "evidence.id": choice.chunk_id}
    named = {**fields, "evidence": choice.evidence[0] if choice.evidence else "", **inside}
    return {field: key for field, key in named.items() if key and key != field.rpartition(".")[2]}


def profile_text(profile: Profile) -> str:
    """Return a profile of chosen columns as the TOML file that ``--map`` reads."""
    held = profile.model_dump(exclude_defaults=True, exclude={"chunk", "name"})
    chunk = profile.chunk.model_dump(exclude_defaults=True)
    lines = [f"{name} = {json.dumps(value, ensure_ascii=False)}" for name, value in held.items()]
    inside = [f"{name} = {json.dumps(value, ensure_ascii=False)}" for name, value in chunk.items()]
    return "\n".join([*lines, *(["", "[chunk]", *inside] if inside else [])]) + "\n"


def still_there(choice: ColumnChoice, columns: Iterable[Column]) -> ColumnChoice:
    """Return a choice without the columns that a row does not offer."""
    known = {column.shown: column for column in columns}
    kept = tuple(name for name in choice.evidence if name in known)
    inside = {name for shown in kept for name in known[shown].items}
    fields = {name: getattr(choice, name) for name in ("query", "answer", "id", "reference")}
    return ColumnChoice(
        **{name: shown if shown in known else "" for name, shown in fields.items()},
        evidence=kept,
        chunk_text=choice.chunk_text if choice.chunk_text in inside else "",
        chunk_id=choice.chunk_id if choice.chunk_id in inside else "",
    )


def profile_of(choice: ColumnChoice, columns: Iterable[Column]) -> Profile:
    """Return the profile that reads rows as chosen. Names that no column has are left out."""
    known = {column.shown: column.path for column in columns}

    def path(shown: str) -> tuple[str, ...]:
        return (known[shown],) if shown in known else ()

    several = [known[shown] for shown in choice.evidence if shown in known]
    evidence = tuple(several)
    if len(several) > 1:  # all of them, in this order; empty cells are no evidence
        evidence = (f"[{', '.join(f'parsed({each})' for each in several)}][] | [?@ != '']",)
    default = EvidencePaths()
    chunk = EvidencePaths(
        id=(json.dumps(choice.chunk_id),) if choice.chunk_id else default.id,
        text=(json.dumps(choice.chunk_text),) if choice.chunk_text else default.text,
        source=("source", "url"),
    )
    return Profile(
        name="columns",
        title="Columns as chosen",
        id=path(choice.id),
        query=path(choice.query),
        answer=path(choice.answer),
        reference=path(choice.reference),
        evidence=evidence,
        chunk=chunk,
        drafted=not choice.answer,
    )

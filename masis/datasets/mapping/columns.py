"""A profile made by choosing columns: what each column probably is, and the paths that follow.

A column is named by its path as a person reads it, ``inputs.question``; the path that is followed has its names quoted,
so that a column may be called anything.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from typing import Any

from masis.datasets.mapping.profile import EvidencePaths, Profile
from masis.schema.base import Record
from masis.schema.columns import Column, evidence_columns, likely_columns, text_key


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


def columns_key(row: Mapping[str, Any]) -> str:
    """Return a name for the set of columns of a row, whatever their order: what was chosen is remembered under it."""
    return hashlib.sha256(json.dumps(sorted(map(str, row))).encode("utf-8", "surrogatepass")).hexdigest()[:16]


def likely_choice(columns: Iterable[Column]) -> ColumnChoice:
    """Return which column probably holds what, by the names that other tools use, then by what the columns hold."""
    columns = list(columns)
    chosen = likely_columns(columns)
    evidence = chosen.get("evidence")
    shown = {field: chosen[field].shown if field in chosen else "" for field in ("query", "answer", "id", "reference")}
    return ColumnChoice(
        **shown,
        evidence=tuple(each.shown for each in evidence_columns(chosen, columns)) if evidence is not None else (),
        chunk_text=text_key(evidence) if evidence is not None else "",
        chunk_id=evidence.item_id if evidence is not None else "",
    )


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

"""The formats: which rows a decided case gives, and why some cases give none, as ``formats.toml``
says.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterable
from importlib import resources
from typing import Literal, get_args
from xml.sax.saxutils import quoteattr

import jmespath
from pydantic import Field
from pydantic_core import to_json

from masis.datasets.exports.answers import JudgedAnswer, Row
from masis.schema.base import Record
from masis.schema.review import Verdict
from masis.schema.team import LabelTypes

_ABOUT = (
    *("case_id", "split", "question", "reviewer", "decision", "in_force", "entry_id", "decided_at"),
    *("run_id", "iteration"),
)
"""What every flat row says of the judgement."""


class Format(Record):
    """One format; ``formats.toml`` says what its fields mean."""

    name: str
    summary: str
    row: str = ""
    each: str = ""
    columns: tuple[str, ...] = ()
    table: dict[str, str] = Field(default_factory=dict)
    needs: dict[str, str] = Field(default_factory=dict)
    of: Literal["case", "reviewer"] = "case"
    balance: tuple[str, ...] = ()
    suffix: str = ".jsonl"

    @property
    def tabular(self) -> bool:
        """Whether it can be CSV and Parquet as well: its rows hold numbers and text alone, or
        ``table`` names some.
        """
        return bool(self.columns or self.table)

    def columns_in(self, encoding: str) -> tuple[str, ...]:
        """The columns of its table in order; a spreadsheet gets no column of JSON, which its cells
        don't hold.
        """
        if self.columns:
            return (*_ABOUT, *self.columns, "answer")
        return (*self.table, "record") if encoding == "parquet" else tuple(self.table)

    def rows(self, judged: JudgedAnswer) -> list[Row] | str:
        """Return the rows of a judgement, or why there are none."""
        for field, reason in self.needs.items():
            if not judged.get(field):
                return reason
        if self.row:
            return [jmespath.search(self.row, judged)]
        found: list[Row] = judged.get(self.each)
        if not self.columns:
            return found
        about = {name: judged.get(name) for name in _ABOUT}
        rows = ({name: row[name] for name in self.columns} for row in found)
        flat = (
            {name: " ".join(cell) if isinstance(cell, list) else cell for name, cell in row.items()}
            for row in rows
        )
        return [{**about, **row, "answer": judged.answer} for row in flat]

    def table_row(self, judged: JudgedAnswer, row: Row) -> Row:
        """Return a row as one of its table; where it isn't flat, ``record`` holds it whole, as
        JSON.
        """
        if self.columns:
            return row
        cells = {name: jmespath.search(path, judged) for name, path in self.table.items()}
        return {**cells, "record": to_json(row).decode()}


_FILES = resources.files("masis.datasets.exports")
_TABLES = tomllib.loads((_FILES / "formats.toml").read_text(encoding="utf-8"))
FORMATS = {name: Format(name=name, **fields) for name, fields in _TABLES.items()}
"""Every format by its name."""

_CORRECTIONS = (
    *("supported", "partial", "contradicted", "unsupported", "unverifiable"),
    *("valid", "fabricated", "misattributed", "redundant", "contradicts"),
)


def labelling_interface(labels: Iterable[str], choices: Iterable[str]) -> str:
    """Return the labelling interface for tasks with these labels on words and on whole answers; the
    manifest holds it.

    It asks for a verdict too, which `masis decide --file` brings back. The default types of
    reported issues are always among those offered.
    """
    types = LabelTypes().names
    offered = {
        "labels": ("Label", dict.fromkeys((*_CORRECTIONS, *types, *sorted(labels)))),
        "choices": ("Choice", dict.fromkeys((*types, *sorted(choices)))),
        "verdicts": ("Choice", get_args(Verdict)),
    }
    parts = {
        name: "\n".join(f"    <{tag} value={quoteattr(each)}/>" for each in words)
        for name, (tag, words) in offered.items()
    }
    return (_FILES / "label_studio.xml").read_text(encoding="utf-8").format(**parts)

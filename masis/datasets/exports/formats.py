"""The export formats: those that ``formats.toml`` declares, and those that other packages add.

A format says which rows a decided case gives, and why some cases give none. Command line, pages and
dataset versions are derived from ``export_formats``. A package adds a format with an entry point of
the group ``masis.exports`` (``docs/extending.md``).
"""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache
from importlib import resources
from typing import Any, BinaryIO, Literal, get_args
from xml.sax.saxutils import quoteattr

import jmespath
from pydantic import Field
from pydantic_core import to_json

from masis.datasets.exports.answers import JudgedAnswer, Row
from masis.schema.base import Record
from masis.schema.labels import LABEL_CHOICES
from masis.schema.registry import load_added
from masis.schema.review import Verdict
from masis.schema.team import LabelTypes

_ABOUT = (
    *("case_id", "split", "question", "system", "modes", "reviewer", "decision"),
    *("decision_reason", "decision_note", "in_force", "entry_id", "decided_at", "run_id"),
    "iteration",
)
"""The columns about the judgement, which every flat row has."""


_LISTS_OF_OBJECTS = frozenset({"labels"})
"""The columns that stay lists in JSON Lines, and are JSON in CSV and Parquet.

Other lists hold ids and are joined with spaces.
"""

EXPORTS_GROUP = "masis.exports"
"""The group of entry points by which a package adds an export format."""

MakeRows = Callable[[JudgedAnswer], list[Row] | str]
"""Returns the rows of a judged answer, or the reason why there are none."""

WriteRows = Callable[[Iterator[Row], BinaryIO, Sequence[str]], None]
"""Writes rows to a stream, given the format's columns."""


Importable = Literal["cases", "decisions"]
"""What a file can be imported as."""


class Format(Record):
    """One format; ``formats.toml`` describes the fields that a file can have.

    Attributes:
        make: The function that makes the rows, in place of ``row`` and ``rows_from``.
        layout: The name of the folder's layout in ``folders.LAYOUTS``, if it is a folder.
        write: The function that writes the file, if it isn't JSON Lines, JSON, CSV or Parquet.
        returns: What can be imported from the rows again.
        keys: The keys by which an import recognizes a row, if the rows have no ``columns``.

    """

    name: str = ""
    summary: str
    make: MakeRows | None = None
    write: WriteRows | None = None
    row: str = ""
    rows_from: str = ""
    columns: tuple[str, ...] = ()
    table: dict[str, str] = Field(default_factory=dict)
    needs: dict[str, str] = Field(default_factory=dict)
    of: Literal["case", "reviewer"] = "case"
    balance: tuple[str, ...] = ()
    suffix: str = ".jsonl"
    folder: bool = False
    layout: str = "splits"
    card: bool = False
    redacted: bool = False
    interface: bool = False
    returns: tuple[Importable, ...] = ()
    keys: tuple[tuple[str, ...], ...] = ()

    @property
    def row_keys(self) -> tuple[frozenset[str], ...]:
        """The keys of each kind of row that its files have."""
        tables = (self.columns_in("csv"),) if self.tabular else ()
        return tuple(map(frozenset, (*self.keys, *tables)))

    @property
    def tabular(self) -> bool:
        """Whether it can also be CSV and Parquet.

        Its rows are flat, or ``table`` names flat columns.
        """
        return self.write is None and bool(self.columns or self.table)

    def columns_in(self, encoding: str) -> tuple[str, ...]:
        """Return the columns of its table in order.

        CSV gets no column of JSON, since a spreadsheet cell can't hold it.
        """
        if self.columns:
            return (*_ABOUT, *self.columns, "answer")
        return (*self.table, "record") if encoding == "parquet" else tuple(self.table)

    def rows(self, judged: JudgedAnswer) -> list[Row] | str:
        """Return the rows of a judgement, or the reason why there are none."""
        for field, reason in self.needs.items():
            if not judged.get(field):
                return reason
        if self.row:
            return [jmespath.search(self.row, judged)]
        items: list[Row] | str = self.make(judged) if self.make else judged.get(self.rows_from)
        if isinstance(items, str):
            return items
        if not self.columns:
            return items
        about = {name: judged.get(name) for name in _ABOUT}
        rows = ({name: row[name] for name in self.columns} for row in items)
        flat = (
            {
                name: (
                    " ".join(cell)
                    if isinstance(cell, list) and name not in _LISTS_OF_OBJECTS
                    else cell
                )
                for name, cell in row.items()
            }
            for row in rows
        )
        return [{**about, **row, "answer": judged.answer} for row in flat]

    def table_row(self, judged: JudgedAnswer, row: Row) -> Row:
        """Return a row of the table; if the row isn't flat, ``record`` holds it as JSON.

        A cell that is an object or a list of objects is written as JSON.
        """
        cells = (
            row
            if self.columns
            else {name: jmespath.search(path, judged) for name, path in self.table.items()}
            | {"record": to_json(row).decode()}
        )
        return {
            name: to_json(cell).decode() if isinstance(cell, list | dict) else cell
            for name, cell in cells.items()
        }


def export_format(summary: str, **fields: Any) -> Callable[[MakeRows], Format]:
    """Declare a function that makes the rows of one format.

    Example:
        ::

            @export_format("the rejected answers, one row each")
            def rejected(judged):
                if judged.decided is None or judged.decided.verdict != "reject":
                    return "not rejected"
                return [{"question": judged.question, "answer": judged.answer}]

    Args:
        summary: What the format holds, for help texts and pages.
        fields: Other fields of ``Format``, such as ``columns`` or ``suffix``.

    """
    return lambda make: Format(summary=summary, make=make, **fields)


_FILES = resources.files("masis.datasets.exports")


@cache
def export_formats() -> dict[str, Format]:
    """Return every format by its name. The project's own come first and win."""
    tables = tomllib.loads((_FILES / "formats.toml").read_text(encoding="utf-8"))
    own = {name: Format(name=name, **fields) for name, fields in tables.items()}
    for name, added in load_added(EXPORTS_GROUP, Format).items():
        own.setdefault(name, added.model_copy(update={"name": name}))
    return own


def labelling_interface(labels: Iterable[str], choices: Iterable[str]) -> str:
    """Return Label Studio's labelling interface for tasks with these labels and choices.

    The manifest contains it. It also asks for a verdict, which ``masis decide --file`` imports, and
    always offers the default types of reported issues.
    """
    corrections = (*LABEL_CHOICES["claim"], *LABEL_CHOICES["reference"])
    types = LabelTypes().names
    offered = {
        "labels": ("Label", dict.fromkeys((*corrections, *types, *sorted(labels)))),
        "choices": ("Choice", dict.fromkeys((*types, *sorted(choices)))),
        "verdicts": ("Choice", get_args(Verdict)),
    }
    parts = {
        name: "\n".join(f"    <{tag} value={quoteattr(word)}/>" for word in words)
        for name, (tag, words) in offered.items()
    }
    return (_FILES / "label_studio.xml").read_text(encoding="utf-8").format(**parts)

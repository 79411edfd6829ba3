"""Reads cases of a file, a data frame or rows into a list, for scripts and notebooks."""

from __future__ import annotations

import difflib
import json
import os
import re
from collections.abc import Iterable, Iterator
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

from masis.datasets.mapping.profile import (
    Profile,
    import_profiles,
    likely_choice,
    load_profile,
    profile_of,
)
from masis.datasets.mapping.reader import formats_of, read_any, source_rows
from masis.errors import InputError
from masis.schema.case import Case
from masis.schema.columns import (
    SEPARATORS,
    SourceColumn,
    cited_by_place,
    columns_of,
    likely_columns,
    likely_map,
)
from masis.schema.frames import rows_of
from masis.schema.reading import SPLIT, FieldMap

ROWS_COMPARED = 1_000
"""The number of rows in which a column must have distinct values to be proposed as the id."""


def read_cases(
    source: Any,
    profile: str | os.PathLike[str] | None = None,
    *,
    map: FieldMap | None = None,  # noqa: A002 (public)
    sheet: str | None = None,
) -> list[Case]:
    """Return every case of a file, a data frame or rows, in our own format or another tool's.

    A case from a frame gets its id from the column ``id``, or else from its content. If any row
    can't be read, an error names the rows and no case is returned; ``masis import`` reads the valid
    rest of a file.

    Args:
        source: A path; a pandas DataFrame, an Arrow table or a Hugging Face data set; or an
            iterable of mappings.
        profile: The name of a profile, or the path of your own TOML file. By default the profile is
            recognized.
        map: Which column or key holds a field if the names differ: ``{"answer": "response"}``, with
            paths such as ``inputs.question``. ``{"answer": None}`` says that answers are to be
            drafted.
        sheet: The sheet of an Excel workbook: its name, or its position from 1.

    Raises:
        InputError: There is no such profile, the source can't be read, or a row isn't a case. The
            first such rows are named.

    """
    source_name = str(source) if isinstance(source, str | os.PathLike) else type(source).__name__
    cases: list[Case] = []
    errors: list[InputError] = []
    for row in read_any(
        _rows_or_path(source, map or {}),
        chosen_profile(profile),
        map,
        name=source_name,
        sheet=sheet,
    ):
        errors.extend(row.problems)
        if row.case is not None:
            cases.append(row.case)
    if errors:
        raise InputError.of_all(
            errors, hint="Correct these lines or remove them.", file=source_name
        )
    return cases


class Suggestion(NamedTuple):
    """A proposal for reading rows: the format that they fit, or a field map and a profile.

    Attributes:
        format: The format that the rows fit; "" if none.
        names: The field map; empty if the rows fit a format or nothing was recognized.
            ``evidence.id`` is "" if the answer's markers count the chunks instead of naming their
            ids, and ``evidence.split`` is the separator of chunks in an evidence that is one text.
        profile: The profile that reads the rows; None if they fit a format.
        row: The row that the proposal is based on.

    """

    format: str
    names: dict[str, str]
    profile: Profile | None
    row: dict[str, Any]


def suggest(source: Any, *, sheet: str | None = None) -> Suggestion:
    """Propose how to read a file, a data frame or rows.

    The proposal is based on names, types and values of the first row that has all parts.

        masis.read_cases(source, map=masis.suggest(source).names)

    Raises:
        InputError: No row can be read.

    """
    formats, row = formats_of(_rows_or_path(source, {}), sheet=sheet)
    if formats:
        return Suggestion(
            formats[0], _evidence_options(row, import_profiles()[formats[0]]), None, row
        )
    columns = columns_of(row)
    choice = likely_choice(columns)
    profile = profile_of(choice, columns)
    # The conversation contains question and answer.
    if not choice.query and isinstance(row.get("messages"), list):
        of_turns = {
            "query": ("last_message(messages, 'user')",),
            "answer": ("last_message(messages, 'assistant')",),
        }
        profile = profile.model_copy(
            update={**of_turns, "messages": ("messages",), "drafted": False}
        )
    elif not choice.complete:
        return Suggestion("", {}, None, row)
    chosen = {
        field: column for field, column in likely_columns(columns).items() if field != "reference"
    }
    names = likely_map(chosen, columns)
    if not profile.id and (key := _id_column(source, sheet, columns, names)):
        names["id"] = key
        profile = profile.model_copy(update={"id": (json.dumps(key),)})
    names |= _evidence_options(row, profile)
    if not names.get("evidence.id", "unknown"):
        profile = profile.model_copy(update={"chunk": profile.chunk.model_copy(update={"id": ()})})
    return Suggestion("", names, profile, row)


def _rows_or_path(source: Any, names: FieldMap) -> Any:
    return Path(source) if isinstance(source, str | os.PathLike) else rows_of(source, names)


_ID_NAME = re.compile(r"(?i:(?:^|[\s_.-])(?:id|nr|no|key|number))$|(?<=[a-z])I[dD]$")
"""Column names that end like an id: ``case id``, ``doc_nr``, ``recordId``."""


def _id_column(
    source: Any, sheet: str | None, columns: Iterable[SourceColumn], names: FieldMap
) -> str:
    """Return a column that is named like an id and has distinct values in the first rows, or ""."""
    if isinstance(source, Iterator) or hasattr(source, "read"):
        return ""  # its rows can only be read once
    first = islice(source_rows(_rows_or_path(source, {}), sheet=sheet), ROWS_COMPARED)
    rows = [row.value for row in first if isinstance(row.value, dict)]
    free = [
        column.names[0]
        for column in columns
        if len(column.names) == 1 and column.shown not in names.values()
    ]
    for key in filter(_ID_NAME.search, free) if len(rows) > 1 else ():
        values = [row.get(key) for row in rows]
        are_ids = all(isinstance(value, str | int) and value != "" for value in values)
        if are_ids and len(set(values)) == len(values):
            return key
    return ""


def _evidence_options(row: dict[str, Any], profile: Profile) -> dict[str, str]:
    """Return the map entries that a row's evidence needs.

    These are the separator of its chunks, and ``evidence.id`` if the answer cites them by position.
    """
    for names in ({}, *({SPLIT: between} for between in SEPARATORS)):
        read = next(read_any([row], profile, names), None)
        if (
            read is not None
            and (case := read.case) is not None
            and len(case.evidence) > bool(names)
        ):
            by_place = cited_by_place(case.answer or "", (chunk.id for chunk in case.evidence))
            return names | ({"evidence.id": ""} if by_place else {})
    return {}


def chosen_profile(name: str | os.PathLike[str] | None) -> Profile | None:
    """Return a profile by its name or from a TOML file.

    Raises:
        InputError: There is no such profile.

    """
    if name is None:
        return None
    if isinstance(name, str) and name in import_profiles():
        return import_profiles()[name]
    if Path(name).suffix == ".toml":
        return load_profile(Path(name))
    near = difflib.get_close_matches(str(name), import_profiles(), n=1)
    hint = (
        f"Did you mean {near[0]!r}?"
        if near
        else f"Name a TOML file, or one of: {', '.join(import_profiles())}."
    )
    raise InputError(f"{str(name)[:40]!r} isn't a profile", hint=hint, field="profile")

"""Cases of a file, a data frame or rows as a list, for scripts and notebooks."""

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
    builtin_profiles,
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
"""Rows in which a column of ids differs, for it to be proposed."""


def read_cases(
    source: Any,
    profile: str | os.PathLike[str] | None = None,
    *,
    map: FieldMap | None = None,  # noqa: A002 (public)
    sheet: str | None = None,
) -> list[Case]:
    """Return every case of a file, a data frame or rows: in our own format, or in that of another
    tool.

    A case from a frame has an id: its column ``id``, else one made of its content. What can't be
    read is named with its line, and none of the others is returned; ``masis import`` takes the rest
    of a file.

    Args:
        source: A path; a pandas DataFrame, an Arrow table or a Hugging Face data set; or an
            iterable of mappings.
        profile: The name of a built-in profile, or a TOML file of one's own; recognised where none
            is given.
        map: Which column or key holds a field where the names differ: ``{"answer": "response"}``,
            with paths such as ``inputs.question``. ``{"answer": None}`` says that answers are to be
            drafted.
        sheet: Which sheet of an Excel workbook is read: its name, or its place from 1.

    Raises:
        InputError: There is no such profile, the source can't be read, or a row holds no case; the
            first are named.

    """
    called = str(source) if isinstance(source, str | os.PathLike) else type(source).__name__
    cases: list[Case] = []
    errors: list[InputError] = []
    for row in read_any(
        _rows_or_path(source, map or {}), chosen_profile(profile), map, name=called, sheet=sheet
    ):
        errors.extend(row.problems)
        if row.case is not None:
            cases.append(row.case)
    if errors:
        raise InputError.of_all(errors, hint="Correct these lines or remove them.", file=called)
    return cases


class Suggestion(NamedTuple):
    """How rows may be read: the format that they fit, or a field map and a profile; ``row`` is the
    first of them.

    ``names`` is empty where the rows fit a format, ``format``, or nothing is known of them;
    ``evidence.id`` is "" in it where the answer's markers count the chunks instead of naming their
    ids, and ``evidence.split`` what separates the chunks of an evidence that is one text.
    """

    format: str
    names: dict[str, str]
    profile: Profile | None
    row: dict[str, Any]


def suggest(source: Any, *, sheet: str | None = None) -> Suggestion:
    """Propose how to read a file, a data frame or rows: from names, types and values of the first
    row with all parts.

        masis.read_cases(source, map=masis.suggest(source).names)

    Raises InputError where there is no row that can be read.
    """
    formats, row = formats_of(_rows_or_path(source, {}), sheet=sheet)
    if formats:
        return Suggestion(
            formats[0], _evidence_options(row, builtin_profiles()[formats[0]]), None, row
        )
    columns = columns_of(row)
    choice = likely_choice(columns)
    profile = profile_of(choice, columns)
    # the conversation holds question and answer
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
        field: each for field, each in likely_columns(columns).items() if field != "reference"
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


def _id_column(
    source: Any, sheet: str | None, columns: Iterable[SourceColumn], names: FieldMap
) -> str:
    """Return the column whose name ends as one of ids does and which differs in each of the first
    rows; "" for none.
    """
    if isinstance(source, Iterator) or hasattr(source, "read"):
        return ""  # its rows can't be read twice
    first = islice(source_rows(_rows_or_path(source, {}), sheet=sheet), ROWS_COMPARED)
    rows = [row.value for row in first if isinstance(row.value, dict)]
    free = [
        each.names[0]
        for each in columns
        if len(each.names) == 1 and each.shown not in names.values()
    ]
    for key in filter(_ID_NAME.search, free) if len(rows) > 1 else ():
        held = [row.get(key) for row in rows]
        if all(isinstance(each, str | int) and each != "" for each in held) and len(
            set(held)
        ) == len(held):
            return key
    return ""


def _evidence_options(row: dict[str, Any], profile: Profile) -> dict[str, str]:
    """Return what a map has to say of a row's evidence: what separates its chunks, that they are
    cited by place.
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


def chosen_profile(named: str | os.PathLike[str] | None) -> Profile | None:
    """Return the profile of a name or of a TOML file. Raises InputError."""
    if named is None:
        return None
    if isinstance(named, str) and named in builtin_profiles():
        return builtin_profiles()[named]
    if Path(named).suffix == ".toml":
        return load_profile(Path(named))
    near = difflib.get_close_matches(str(named), builtin_profiles(), n=1)
    hint = (
        f"Did you mean {near[0]!r}?"
        if near
        else f"Name a TOML file, or one of: {', '.join(builtin_profiles())}."
    )
    raise InputError(f"{str(named)[:40]!r} is no profile", hint=hint, field="profile")

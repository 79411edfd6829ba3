"""Reads files, frames and rows as cases.

It recognizes the profile, joins or groups rows, and detects repeated ids. Only one row at a time is
in memory, except a joined file and rows that are grouped, which are limited.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping
from itertools import chain, islice
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

from masis.datasets.exports.origin import refuse_export
from masis.datasets.mapping.profile import OWN_FORMAT, Join, Profile, RowGroup, import_profiles
from masis.datasets.mapping.row import SUGGEST_HINT, MappedRow, read_row
from masis.datasets.paths import text_of, value_at
from masis.datasets.rows import MOST_DOCUMENT_BYTES, DataRow, read_rows, to_row
from masis.errors import InputError
from masis.schema.columns import columns_of, likely_columns
from masis.schema.explain import name_elsewhere
from masis.schema.literals import parse_value
from masis.schema.reading import (
    SPLIT,
    FieldMap,
    apply_field_map,
    check_field_map,
    columns_in,
    is_empty,
    value_of,
)
from masis.schema.wording import shorten

MOST_GROUPED_ROWS = 200_000
"""Maximum number of rows (spans) in memory while they are grouped."""

MOST_ROWS_WITHOUT_CASE = 10_000
"""The number of rows without a case after which reading stops; a file may have millions of them."""

_MOST_ROWS_TRIED = 20
"""The number of unrecognized rows after which a file counts as our own format."""

_ANSWER_LIST_KEYS = (
    "responses",
    "completions",
    "generations",
    "outputs",
    "candidates",
    "model_responses",
)
"""Keys under which a row has several answers to its question; each becomes a case."""

Source = Path | BinaryIO | Iterable[Mapping[str, Any]]


def read_any(
    source: Source,
    profile: Profile | str | None = None,
    names: FieldMap | None = None,
    *,
    name: str | None = None,
    sheet: str | None = None,
    system: str | None = None,
) -> Iterator[MappedRow]:
    """Yield the cases of a file, a stream or rows, in the workbench's own format or by a profile.

    A row that is identical to an earlier one is skipped. Another case under the same id is a
    problem in the own format; in other formats, which reuse ids, it gets a new id.

    Args:
        source: A path; a stream of bytes; or rows, each a mapping.
        profile: A profile, or the name of a built-in one. By default it is recognized: the own
            format if the first row has its names or fits no profile, else the profile that it fits.
        names: Which key of a row holds which field. A key that no row has is reported at the end.
        name: The name of the source in errors.
        sheet: The sheet of an Excel workbook: its name, or its position from 1.
        system: The system that gave the answers, of rows that don't name one. Their ids are then
            those of questions.

    Raises:
        InputError: The source can't be read, or its first row fits several profiles.

    """
    source_name = name or (str(source) if isinstance(source, Path) else "stdin")
    names = check_field_map(names or {})
    unmatched = {key for field, key in names.items() if key is not None and field != SPLIT}
    seen = dict[str, tuple[int, bytes]]()  # the first row of each id, with its digest
    count = 0
    try:
        explicit_profile = import_profiles()[profile] if isinstance(profile, str) else profile
        rows, chosen = _open_source(source, explicit_profile, names, source_name, sheet)
        # Built-in profiles name paths that only some versions of a tool write. Only a person's own
        # profile must match.
        is_custom_profile = chosen != import_profiles().get(chosen.name)
        unused = {
            field
            for field in ("query", "answer", "evidence")
            if is_custom_profile and getattr(chosen, field)
        } - set(names)
        chosen = chosen.with_map(names)
        for count, row in enumerate(rows, 1):
            if count > MOST_ROWS_WITHOUT_CASE and not seen:
                hint = "Correct the problems above. The rest wasn't read."
                raise InputError(
                    f"has no cases in its first {MOST_ROWS_WITHOUT_CASE:,} rows", hint=hint
                )
            if isinstance(row.value, dict):
                unmatched -= {
                    key for key in unmatched if _matches_profile(row.value, key, names, chosen)
                }
                unused -= {
                    field for field in unused if _has_value(row.value, getattr(chosen, field))
                }
            read = read_row(row, chosen, names)
            if (case := read.case) is not None:
                # The digest is of the row, since that of the case takes four times as long.
                digest = hashlib.blake2b(
                    json.dumps(row.value, default=str).encode(), digest_size=8
                ).digest()
                # In a folder or archive, each file's rows are numbered from 1.
                place = count if row.member else row.number
                first, content = seen.setdefault(case.id, (place, digest))
                # The same place is compared too, because several answers of a row have its number.
                if first != place and content == digest:
                    continue
                if first != place and chosen.is_own:
                    problem = (
                        f"has the same id as line {first} ({shorten(case.id, 80)!r}) but different"
                        " content"
                    )
                    hint = "Give each case its own id, or remove one of the two."
                    read = read._replace(
                        case=None, problems=(InputError(problem, hint=hint, field="id"),)
                    )
                # Other tools reuse an id for answers to one question, or spans of one trace.
                elif first != place:
                    own_id = f"{case.id[:480]}#{case.digest()[:12]}"
                    read = read._replace(case=case.model_copy(update={"id": own_id}))
            if system is not None and read.case is not None:
                read = read._replace(case=read.case.as_answer_of(system))
            yield read.with_place(f"{source_name}/{row.member}" if row.member else source_name)
    except InputError as error:
        raise error.at(file=source_name) from error
    except OSError as error:
        raise InputError(
            f"can't be read ({error.strerror})", hint="Check the file.", file=source_name
        ) from error
    if not count:
        hint = (
            'Put one case on each line: {"id": ..., "query": ..., "answer": ..., "evidence":'
            " [...]}."
        )
        yield MappedRow(1, 0, None, (InputError("has no cases", hint=hint, file=source_name),))
    elif unmatched or unused:
        paths = (path for field in unused for path in getattr(chosen, field))
        keys = ", ".join(map(repr, sorted({*unmatched, *paths})))
        hint = "Check the name: masis import FILE --suggest shows the keys of the first row."
        yield MappedRow(
            0,
            0,
            None,
            (InputError(f"no row has {keys}", hint=hint, file=source_name, field="map"),),
        )


def _has_value(row: dict[str, Any], paths: tuple[str, ...]) -> bool:
    try:
        return value_at(row, paths) is not None
    except InputError:  # named with the row
        return True


def _matches_profile(row: dict[str, Any], key: str, names: FieldMap, profile: Profile) -> bool:
    if any(value_of(row, part) is not None for part in columns_in(row, key)):
        return True
    if not any(name.startswith("evidence.") and value == key for name, value in names.items()):
        return False
    evidence_key = names.get("evidence")
    try:
        value = (
            value_at(row, profile.evidence)
            if profile.evidence and not evidence_key
            else value_of(row, evidence_key or "evidence")
        )
    except InputError:  # named with the row
        return True
    chunks = parse_value(value)
    return isinstance(chunks, list) and any(
        isinstance(chunk, Mapping) and value_of(chunk, key) is not None for chunk in chunks
    )


# Recognising the profile


class FormatMatch(NamedTuple):
    """The formats that a file's first recognized row fits, and that row."""

    formats: tuple[str, ...]
    row: dict[str, Any]


def _formats_of_row(row: dict[str, Any], names: FieldMap) -> list[Profile]:
    """Return the profiles that a row fits after its keys are renamed.

    A row with the names of our own format fits that one alone.
    """
    try:
        mapped = apply_field_map(row, names) if names else row
    except InputError:  # reported with its line when the row is read
        return []
    if isinstance(mapped.get("query"), str) and "evidence" in mapped:
        return [import_profiles()[OWN_FORMAT]]
    return [
        profile
        for profile in import_profiles().values()
        if profile.required and _fits_profile(profile, mapped)
    ]


def _fits_profile(profile: Profile, row: Any) -> bool:
    try:
        values = [value_at(row, (path,)) for path in profile.required]
        return all(value is not None and value is not False for value in values) and not _has_value(
            row, profile.absent
        )
    except InputError:
        return False


def _read_until_recognized(
    rows: Iterator[DataRow], names: FieldMap
) -> tuple[list[DataRow], list[Profile]]:
    """Return the first rows up to one that fits formats, and these formats.

    An unreadable row says nothing about the format.
    """
    before = list[DataRow]()
    for row in islice(rows, _MOST_ROWS_TRIED):
        before.append(row)
        if isinstance(row.value, dict) and (fits := _formats_of_row(row.value, names)):
            return before, fits
    return before, []


def formats_of(source: Source, *, name: str | None = None, sheet: str | None = None) -> FormatMatch:
    """Return the formats that a file or rows fit; none if a person must assign the columns.

    Without a format, the row is the first one that has all parts, since another row may lack its
    evidence.

    Raises:
        InputError: The source can't be read, or has no readable row.

    """
    before, fits = _read_until_recognized(source_rows(source, name=name, sheet=sheet), {})
    values = [row.value for row in before if isinstance(row.value, dict)]
    if not values:
        raise InputError(
            "has no readable row", hint="Check the file, or give rows that are mappings."
        )
    if fits:
        return FormatMatch(tuple(profile.name for profile in fits), values[-1])
    for value in values:
        columns = likely_columns(columns_of(value))
        if {"query", "evidence"} <= set(columns) and columns["evidence"].length:
            return FormatMatch((), value)
    return FormatMatch((), values[0])


def _open_source(
    source: Source, profile: Profile | None, names: FieldMap, name: str, sheet: str | None
) -> tuple[Iterator[DataRow], Profile]:
    """Return the rows of a source and the profile to read them with."""
    if profile is not None:
        return _prepare_rows(
            source_rows(source, profile.rows, name, sheet), source, profile
        ), profile
    rows = source_rows(source, (), name, sheet)
    before, fits = _read_until_recognized(rows, names)
    if len(fits) > 1:
        names_text = " and ".join(profile.name for profile in fits)
        raise InputError(
            f"fits {names_text}", hint=f"Choose one: --as {fits[0].name}, for example."
        )
    first = next((row.value for row in before if isinstance(row.value, dict)), None)
    if not fits and not names and first is not None:
        refuse_export(first, "cases")
    chosen = fits[0] if fits else import_profiles()[OWN_FORMAT]
    all_rows = source_rows(source, chosen.rows, name, sheet) if chosen.rows else chain(before, rows)
    return _prepare_rows(all_rows, source, chosen), chosen


def source_rows(
    source: Source, at: tuple[str, ...] = (), name: str | None = None, sheet: str | None = None
) -> Iterator[DataRow]:
    """Yield the rows of a source unchanged; ``at`` is the path to a list of them."""
    if isinstance(source, Path) or hasattr(source, "read"):
        return read_rows(source, at, name=name, sheet=sheet)  # type: ignore[arg-type]
    values = (
        (
            dict(row)
            if isinstance(row, Mapping) and all(isinstance(key, str) for key in row)
            else row
        )
        for row in source
    )
    return (to_row(number, number, value) for number, value in enumerate(values, 1))


# Splitting, joining and grouping rows


def _prepare_rows(rows: Iterator[DataRow], source: Source, profile: Profile) -> Iterator[DataRow]:
    if profile.is_own:
        rows = (split_row for row in rows for split_row in _rows_per_answer(row))
    if profile.join is not None:
        if not isinstance(source, Path):
            raise InputError(
                f"needs {profile.join.file} beside it", hint="Name the file, not a stream."
            )
        rows = _join_rows(rows, source, profile.join)
    return rows if profile.group is None else _group_rows(rows, profile.group)


def _rows_per_answer(row: DataRow) -> Iterator[DataRow]:
    """Yield a row, or one row per answer if it has several, with numbered ids."""
    value: dict[str, Any] = row.value if isinstance(row.value, dict) else {}
    key = next((key for key in _ANSWER_LIST_KEYS if isinstance(value.get(key), list)), None)
    if key is None or not is_empty(value.get("answer")) or "evidence" not in value:
        yield row
        return
    rest = {name: held for name, held in value.items() if name != key}
    for number, answer_value in enumerate(value[key], 1):
        details = dict(answer_value) if isinstance(answer_value, dict) else {}
        answer_key = name_elsewhere("answer", details)
        answer = details.pop(answer_key) if answer_key else text_of(answer_value)
        own = {"id": f"{value['id']}-{number}"} if isinstance(value.get("id"), str) else {}
        metadata = rest["metadata"] if isinstance(rest.get("metadata"), dict) else {}
        more = {"metadata": {**metadata, "answer_of": details}} if details else {}
        yield row._replace(value={**rest, **own, **more, "answer": answer})


def _join_rows(rows: Iterator[DataRow], path: Path, join: Join) -> Iterator[DataRow]:
    others: dict[str, dict[str, Any]] | None = None
    for row in rows:
        if isinstance(row.value, InputError):
            yield row
            continue
        if row.member and Path(row.member).name == join.file:
            continue
        if others is None:
            # Read at the first row that needs it, since a file with only errors needs no second
            # file.
            others = _read_joined_rows(path, join, packed=bool(row.member))
        if (other := others.get(str(row.value.get(join.key)))) is not None:
            yield row._replace(value={**row.value, join.name: other})
        else:
            problem = InputError(
                f"has no row in {join.file}", hint=f"Add its row to {join.file}.", field=join.key
            )
            yield row._replace(value=problem)


def _read_joined_rows(path: Path, join: Join, *, packed: bool) -> dict[str, dict[str, Any]]:
    source = path if packed else path.parent / join.file
    if not source.exists():
        raise InputError(
            f"needs {join.file} beside it, which holds the rows that {join.key} names",
            hint=f"Put {join.file} into the same folder, or both into one zip.",
        )
    if not packed and source.stat().st_size > MOST_DOCUMENT_BYTES:
        raise InputError(f"needs {join.file}, which is too large to join", hint="Split both.")
    return {
        str(row.value[join.key]): row.value
        for row in read_rows(source)
        if isinstance(row.value, dict)
        and join.key in row.value
        and (not packed or Path(row.member).name == join.file)
    }


def _group_rows(rows: Iterator[DataRow], group: RowGroup) -> Iterator[DataRow]:
    groups: dict[str, tuple[DataRow, list[dict[str, Any]]]] = {}
    count = end = 0
    for row in rows:
        end = row.end
        if isinstance(row.value, InputError):
            yield row
            continue
        key = value_at(row.value, group.by)
        if key is None:
            hint = f"It says which rows belong together. {SUGGEST_HINT}"
            yield row._replace(value=InputError("is missing", hint=hint, field=group.by[0]))
            continue
        count += 1
        if count > MOST_GROUPED_ROWS:
            raise InputError(
                f"holds more than {MOST_GROUPED_ROWS:,} rows to group", hint="Split it by trace."
            )
        groups.setdefault(str(key), (row, []))[1].append(row.value)
    for first, values in groups.values():
        yield first._replace(end=end, value={group.name: values})

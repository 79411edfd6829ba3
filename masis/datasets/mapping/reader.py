"""Files, frames and rows as cases: which profile they fit, their rows joined or grouped, ids that
come twice.

Memory holds one row at a time, but for a joined file and for rows that are grouped, which are
limited.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping
from itertools import chain, islice
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

from masis.datasets.mapping.profile import OWN_FORMAT, Join, Profile, RowGroup, builtin_profiles
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
"""Rows (spans) held while they are grouped."""

MOST_ROWS_WITHOUT_CASE = 10_000
"""Rows without a single case after which a file is given up: it may have millions of them."""

_MOST_ROWS_TRIED = 20
"""Rows that can't be read after which a file is taken for one of our own format."""

_ANSWER_LIST_KEYS = (
    "responses",
    "completions",
    "generations",
    "outputs",
    "candidates",
    "model_responses",
)
"""Keys under which one row holds several answers to its question: each is a case."""

Source = Path | BinaryIO | Iterable[Mapping[str, Any]]


def read_any(
    source: Source,
    profile: Profile | str | None = None,
    names: FieldMap | None = None,
    *,
    name: str | None = None,
    sheet: str | None = None,
) -> Iterator[MappedRow]:
    """Yield the cases of a file, a stream or rows: in the workbench's own format, or by a profile.

    A row whose case was read before, word for word, is skipped; another case under the same id is a
    problem.

    Args:
        source: A path; a stream of bytes; or rows, each a mapping.
        profile: By which to read, or the name of a built-in one. Default: the own format where the
            first row has its names or fits no profile, else the profile that it fits.
        names: Which key of a row holds a field; a key that no row has is an error at the end.
        name: How errors name the source.
        sheet: Which sheet of an Excel workbook is read: its name, or its place from 1.

    Raises:
        InputError: The source can't be read, or its first row fits several profiles.

    """
    called = name or (str(source) if isinstance(source, Path) else "stdin")
    names = check_field_map(names or {})
    unmatched = {key for field, key in names.items() if key is not None and field != SPLIT}
    seen = dict[str, tuple[int, bytes]]()  # where an id came first, and for which content
    count = 0
    try:
        given = builtin_profiles()[profile] if isinstance(profile, str) else profile
        rows, chosen = _open_source(source, given, names, called, sheet)
        own = chosen != builtin_profiles().get(chosen.name)
        unused = {
            field for field in ("query", "answer", "evidence") if own and getattr(chosen, field)
        } - set(names)
        chosen = chosen.with_map(names)
        for count, row in enumerate(rows, 1):
            if count > MOST_ROWS_WITHOUT_CASE and not seen:
                hint = "Correct what is named above; nothing more was read."
                raise InputError(
                    f"holds no case in its first {MOST_ROWS_WITHOUT_CASE:,} rows", hint=hint
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
                # Of the row and not of its case, which takes four times as long.
                digest = hashlib.blake2b(
                    json.dumps(row.value, default=str).encode(), digest_size=8
                ).digest()
                # in a folder or archive, the rows of each file begin at 1
                place = count if row.member else row.number
                first, content = seen.setdefault(case.id, (place, digest))
                if first != place and content == digest:
                    continue
                if first != place and chosen.is_own:
                    problem = f"is {shorten(case.id, 80)!r}, as in line {first}, with other content"
                    hint = "Give each case an id of its own, or remove one of the two."
                    read = read._replace(
                        case=None, problems=(InputError(problem, hint=hint, field="id"),)
                    )
                # tools give answers to one question, or spans of one trace, the same id
                elif first != place:
                    own_id = f"{case.id[:480]}#{case.digest()[:12]}"
                    read = read._replace(case=case.model_copy(update={"id": own_id}))
            yield read.with_place(f"{called}/{row.member}" if row.member else called)
    except InputError as error:
        raise error.at(file=called) from error
    except OSError as error:
        raise InputError(
            f"can't be read ({error.strerror})", hint="Check the file.", file=called
        ) from error
    if not count:
        hint = (
            'Put one case on each line: {"id": ..., "query": ..., "answer": ..., "evidence":'
            " [...]}."
        )
        yield MappedRow(1, 0, None, (InputError("holds no case", hint=hint, file=called),))
    elif unmatched or unused:
        paths = (path for field in unused for path in getattr(chosen, field))
        keys = ", ".join(map(repr, sorted({*unmatched, *paths})))
        hint = "Check the name: masis import FILE --suggest shows the keys of the first row."
        yield MappedRow(
            0, 0, None, (InputError(f"no row has {keys}", hint=hint, file=called, field="map"),)
        )


def _has_value(row: dict[str, Any], paths: tuple[str, ...]) -> bool:
    try:
        return value_at(row, paths) is not None
    except InputError:  # named with the row
        return True


def _matches_profile(row: dict[str, Any], key: str, names: FieldMap, profile: Profile) -> bool:
    if any(value_of(row, part) is not None for part in columns_in(row, key)):
        return True
    if not any(name.startswith("evidence.") and held == key for name, held in names.items()):
        return False
    given = names.get("evidence")
    try:
        held = (
            value_at(row, profile.evidence)
            if profile.evidence and not given
            else value_of(row, given or "evidence")
        )
    except InputError:  # named with the row
        return True
    chunks = parse_value(held)
    return isinstance(chunks, list) and any(
        isinstance(chunk, Mapping) and value_of(chunk, key) is not None for chunk in chunks
    )


# which profile


class FormatMatch(NamedTuple):
    """What a file may be: the names of the formats that its first readable row fits,
    and that row.
    """

    formats: tuple[str, ...]
    row: dict[str, Any]


def _formats_of_row(row: dict[str, Any], names: FieldMap) -> list[Profile]:
    """Return the built-in profiles that a row fits, once its keys are renamed; our own where it has
    its names.
    """
    try:
        renamed = apply_field_map(row, names) if names else row
    except InputError:  # named with its line when the row is read
        return []
    if isinstance(renamed.get("query"), str) and "evidence" in renamed:
        return [builtin_profiles()[OWN_FORMAT]]
    return [
        profile
        for profile in builtin_profiles().values()
        if profile.required and _fits_profile(profile, renamed)
    ]


def _fits_profile(profile: Profile, row: Any) -> bool:
    try:
        found = [value_at(row, (path,)) for path in profile.required]
        return all(value is not None and value is not False for value in found) and not _has_value(
            row, profile.absent
        )
    except InputError:
        return False


def _read_until_recognised(
    rows: Iterator[DataRow], names: FieldMap
) -> tuple[list[DataRow], list[Profile]]:
    """Return the first rows up to one that fits formats, and these: one that can't be read says
    nothing of them.
    """
    before = list[DataRow]()
    for row in islice(rows, _MOST_ROWS_TRIED):
        before.append(row)
        if isinstance(row.value, dict) and (fits := _formats_of_row(row.value, names)):
            return before, fits
    return before, []


def formats_of(source: Source, *, name: str | None = None, sheet: str | None = None) -> FormatMatch:
    """Return which formats a file or rows fit; none, where a person has to say which column holds
    what.

    The first of the first rows that has all parts says so: another one may lack its evidence.

    Raises InputError where it can't be read, or holds no row that can be.
    """
    before, fits = _read_until_recognised(source_rows(source, name=name, sheet=sheet), {})
    values = [row.value for row in before if isinstance(row.value, dict)]
    if not values:
        raise InputError(
            "holds no row that can be read", hint="Check the file, or give rows that are mappings."
        )
    if fits:
        return FormatMatch(tuple(each.name for each in fits), values[-1])
    for value in values:
        likely = likely_columns(columns_of(value))
        if {"query", "evidence"} <= set(likely) and likely["evidence"].length:
            return FormatMatch((), value)
    return FormatMatch((), values[0])


def _open_source(
    source: Source, profile: Profile | None, names: FieldMap, name: str, sheet: str | None
) -> tuple[Iterator[DataRow], Profile]:
    """Return the rows of a source, and the profile to read them by."""
    if profile is not None:
        return _prepare_rows(
            source_rows(source, profile.rows, name, sheet), source, profile
        ), profile
    rows = source_rows(source, (), name, sheet)
    before, fits = _read_until_recognised(rows, names)
    if len(fits) > 1:
        every = " and ".join(each.name for each in fits)
        raise InputError(f"fits {every}", hint=f"Say which: --as {fits[0].name}, for example.")
    chosen = fits[0] if fits else builtin_profiles()[OWN_FORMAT]
    again = source_rows(source, chosen.rows, name, sheet) if chosen.rows else chain(before, rows)
    return _prepare_rows(again, source, chosen), chosen


def source_rows(
    source: Source, at: tuple[str, ...] = (), name: str | None = None, sheet: str | None = None
) -> Iterator[DataRow]:
    """Yield the rows of a source as they are, before any is taken for a case; ``at`` leads to a
    list of them.
    """
    if isinstance(source, Path) or hasattr(source, "read"):
        return read_rows(source, at, name=name, sheet=sheet)  # type: ignore[arg-type]
    values = (
        (
            dict(each)
            if isinstance(each, Mapping) and all(isinstance(key, str) for key in each)
            else each
        )
        for each in source
    )
    return (to_row(number, number, value) for number, value in enumerate(values, 1))


# rows taken apart, joined and grouped


def _prepare_rows(rows: Iterator[DataRow], source: Source, profile: Profile) -> Iterator[DataRow]:
    if profile.is_own:
        rows = (each for row in rows for each in _rows_per_answer(row))
    if profile.join is not None:
        if not isinstance(source, Path):
            raise InputError(
                f"needs {profile.join.file} beside it", hint="Name the file, not a stream."
            )
        rows = _join_rows(rows, source, profile.join)
    return rows if profile.group is None else _group_rows(rows, profile.group)


def _rows_per_answer(row: DataRow) -> Iterator[DataRow]:
    """Yield a row; where it holds several answers one for each, whose id ends in its number."""
    value: dict[str, Any] = row.value if isinstance(row.value, dict) else {}
    key = next((key for key in _ANSWER_LIST_KEYS if isinstance(value.get(key), list)), None)
    if key is None or not is_empty(value.get("answer")) or "evidence" not in value:
        yield row
        return
    rest = {name: held for name, held in value.items() if name != key}
    for number, given in enumerate(value[key], 1):
        about = dict(given) if isinstance(given, dict) else {}
        named = name_elsewhere("answer", about)
        answer = about.pop(named) if named else text_of(given)
        own = {"id": f"{value['id']}-{number}"} if isinstance(value.get("id"), str) else {}
        metadata = rest["metadata"] if isinstance(rest.get("metadata"), dict) else {}
        more = {"metadata": {**metadata, "answer_of": about}} if about else {}
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
            others = _read_joined_rows(path, join, packed=bool(row.member))
        if (other := others.get(str(row.value.get(join.key)))) is not None:
            yield row._replace(value={**row.value, join.name: other})
        else:
            problem = InputError(
                f"names nothing in {join.file}", hint=f"Add its row to {join.file}.", field=join.key
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

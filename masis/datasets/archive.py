"""The lossless archive: a whole store as JSON Lines, and back.

The first line is ``{"record": "masis-archive", "version": 2}``, the last counts what stands between, so that a file cut
short is seen. Between them come the team's policies, rubrics and views, all cases, all runs (iterations and events
included), the whole decision log, all corpora and screenings, the whole screening log and the acceptance memory, the
log of executions, what retention removed and the dataset versions, each in the order they came into the store
(``masis.store.core.archive`` and its like have the records). Reading an archive into an empty database and
writing it out again gives the same bytes. Memory holds one record at a time, both ways.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, BinaryIO, Never

from pydantic import ValidationError

from masis.datasets.readers.lines import Line, open_lines, read_lines
from masis.errors import InputError
from masis.schema.explain import path_of
from masis.schema.wording import counted
from masis.store import Store
from masis.store.core.archive.records import (
    KINDS,
    AbstractRecord,
    AcceptanceRecord,
    CaseRecord,
    CorpusRecord,
    Counts,
    DatasetMemberRecord,
    DatasetRecord,
    EntryRecord,
    ExecutionRecord,
    PurgeRecord,
    RedactedCaseRecord,
    RunRecord,
    ScreeningEntryRecord,
    ScreeningRecord,
    StoreRecord,
    TeamRecord,
)
from masis.store.core.archive.restore import Restoring

NAME = "masis-archive"
VERSION = 2
"""From 2 on: executions, and what retention removed. What version 1 lacks of them is made of its runs."""

WITH_REDACTED_CASES = 3
"""Written only where a case was redacted, so that an archive without one is the same bytes as before."""

WITH_TEAM_RECORDS = 4
"""Written only where the team has set a policy, a rubric or a view."""

WITH_DATASETS = 5
"""Written only where there is a dataset version."""

WITH_NEW_VERSIONS = 6
"""Written only where a new version took the place of a case."""

WITH_AGREEMENTS = 7
"""Written only where somebody agreed with a grade of a screening."""

WITH_CORRECTIONS = 8
"""Written only where a person has corrected an item of an appraisal or the direction of a finding."""

READ = (1, 2, 3, 4, 5, 6, 7, 8)
MAX_LINE_BYTES = 1 << 30
"""A run over a very large case takes one long line."""

_EXPORT_AGAIN = "Export it again from the database it came from."
_RECORDS: dict[str, type[StoreRecord]] = {
    "case": CaseRecord,
    "run": RunRecord,
    "entry": EntryRecord,
    "corpus": CorpusRecord,
    "abstract": AbstractRecord,
    "screening": ScreeningRecord,
    "screening_entry": ScreeningEntryRecord,
    "acceptance": AcceptanceRecord,
    "purge": PurgeRecord,
    "execution": ExecutionRecord,
    "redacted_case": RedactedCaseRecord,
    "team": TeamRecord,
    "dataset": DatasetRecord,
    "dataset_member": DatasetMemberRecord,
}
_NOUNS = ("case", "run", "log entry", "corpus", "abstract", "screening", "screening entry", "acceptance", "purge")
"""What is counted for a person; executions follow from the runs."""

_PLURALS = {"log entry": "log entries", "corpus": "corpora", "screening entry": "screening entries"}


class ArchiveRead(Counts):
    """What an archive brought."""

    def __str__(self) -> str:
        parts = list(zip(self, _NOUNS, strict=False))
        shown = [*parts[:3], *(part for part in parts[3:] if part[0])]
        return ", ".join(counted(count, noun, _PLURALS.get(noun)) for count, noun in shown) + " restored."


def is_archive(path: Path) -> bool:
    """Whether the file begins as an archive does; whether it is complete shows in reading. Raises InputError."""
    with open_lines(path) as stream:
        return json.dumps(NAME).encode() in stream.readline(200)


def write_archive(store: Store, stream: BinaryIO) -> int:
    """Write everything the store holds; returns the number of lines."""
    redacted, team, datasets = store.cases.any_redacted(), store.team.any_records(), store.datasets.any_versions()
    present = {"redacted_case": redacted, "team": team, "dataset": datasets, "dataset_member": datasets}
    counts = {kind: 0 for kind in _RECORDS if present.get(kind, True)}
    needs = {
        WITH_CORRECTIONS: store.screening_log.any_corrections(),
        WITH_AGREEMENTS: store.screening_log.any_agreement(),
        WITH_NEW_VERSIONS: store.decisions.any_of_kind("new_version"),
        WITH_DATASETS: datasets,
        WITH_TEAM_RECORDS: team,
        WITH_REDACTED_CASES: redacted,
    }
    _write(stream, {"record": NAME, "version": next((each for each, needed in needs.items() if needed), VERSION)})
    for record in store.read_out():
        counts[record.record] += 1
        _write(stream, record.model_dump())
    _write(stream, {"record": "end", **counts})
    return sum(counts.values()) + 2


def _write(stream: BinaryIO, content: dict[str, Any]) -> None:
    text = json.dumps(content, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    stream.write(text.encode() + b"\n")


def read_archive(path: Path, store: Store) -> ArchiveRead:
    """Put an archive into an empty store, all of it or nothing.

    Raises InputError naming file, line and field where the archive is damaged or was altered, StoreError where the
    store holds something already.
    """
    try:
        with open_lines(path) as stream, store.restoring() as target:
            _read(stream, target)
    except InputError as error:
        raise error.at(file=str(path)) from error
    return ArchiveRead(*target.counts)


def _read(stream: BinaryIO, target: Restoring) -> None:
    number, ended = 0, False
    for line in read_lines(stream, max_bytes=MAX_LINE_BYTES):
        number = line.number
        try:
            content = _content(line)
            if number == 1:
                _check_header(content)
            elif ended:
                raise InputError("stands behind the end of the archive", cure=_EXPORT_AGAIN)
            elif content.get("record") == "end":
                _check_end(content, target.counts)
                ended = True
            else:
                _put(target, content)
        except InputError as error:
            raise error.at(line=number) from error
    if not ended:
        raise InputError("ends before its last line: it was cut off", cure=_EXPORT_AGAIN, line=number)


def _content(line: Line) -> dict[str, Any]:
    if line.content is None:
        raise InputError("is longer than 1 GiB", cure=_EXPORT_AGAIN)
    try:
        content = json.loads(line.content, parse_constant=_refuse)
    except UnicodeDecodeError as error:
        raise InputError(f"is not UTF-8 (byte {error.start + 1})", cure=_EXPORT_AGAIN) from error
    except json.JSONDecodeError as error:
        raise InputError(f"is no JSON ({error.msg}, column {error.colno})", cure=_EXPORT_AGAIN) from error
    except (RecursionError, ValueError) as error:
        raise InputError(f"is no JSON that can be kept ({error})", cure=_EXPORT_AGAIN) from error
    if not isinstance(content, dict):
        raise InputError("is not an object", cure=_EXPORT_AGAIN)
    return content


def _refuse(constant: str) -> Never:
    raise ValueError(f"{constant} is no number")


def _check_header(content: dict[str, Any]) -> None:
    if content.get("record") != NAME:
        raise InputError("is not the first line of an archive", cure="Name a file that `masis export` wrote.")
    if content.get("version") not in READ:
        raise InputError(
            f"is an archive of version {content.get('version')!r}; this workbench reads versions up to {READ[-1]}",
            cure="Update the workbench.",
            field="version",
        )


def _check_end(content: dict[str, Any], counts: Counts) -> None:
    said = Counts(*(content.get(kind, 0) for kind in KINDS))
    if said != counts:
        raise InputError(f"counts {said}, but before it stand {counts}: lines are missing or added", cure=_EXPORT_AGAIN)


def _put(target: Restoring, content: dict[str, Any]) -> None:
    kind = content.get("record")
    if kind not in _RECORDS:
        raise InputError(f"is a record of unknown kind {kind!r}", cure=_EXPORT_AGAIN, field="record")
    try:
        target.put(_RECORDS[kind].model_validate(content))
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        raise InputError(f"does not fit: {first['msg']}", cure=_EXPORT_AGAIN, field=path_of(first["loc"])) from error

"""Files on their way in: looked at first, then read into the database batch by batch, until whoever drives it stops."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

from masis.datasets.mapping import Fitting, MappedRow, Profile, formats_of, read_any
from masis.errors import InputError, MasisError
from masis.schema.actor import Actor
from masis.schema.case import Case
from masis.schema.reading import FieldMap
from masis.services.access import Service
from masis.store import Store

LOOKED_AT = 200
"""Rows that a look reads."""

_BATCH = 500
"""Rows of which the cases are stored in one transaction, at most."""

_BATCH_BYTES = 4_000_000
"""Bytes of the file a transaction at most, but for a single case that is larger."""


class Look(NamedTuple):
    """The first rows of a file as they would be read; ``whole`` says that these are all of them."""

    rows: int
    cases: tuple[Case, ...]
    refused: int
    problems: tuple[InputError, ...]
    notes: tuple[InputError, ...]
    whole: bool


class ImportStep(NamedTuple):
    """How far an import has come, and what is new since the step before.

    Attributes:
        rows: Rows read so far.
        end: Bytes of the file read so far, or the like.
        added: Cases stored so far.
        unchanged: Cases so far that were there already, word for word.
        refused: Rows so far that gave no case, or one whose id is taken by another case.
        problems: What is wrong with rows read since the last step.
        notes: What a person may have meant by them otherwise.

    """

    rows: int
    end: int
    added: int
    unchanged: int
    refused: int
    problems: tuple[MasisError, ...] = ()
    notes: tuple[InputError, ...] = ()


class ImportService(Service):
    """The use cases of files that become cases."""

    def formats_of(self, actor: Actor, path: Path, *, name: str) -> Fitting:
        """Return which formats a file fits. Raises InputError where it can't be read, and NotAllowed."""
        self._access.require(actor, "audit")
        try:
            return formats_of(path, name=name)
        except InputError as error:
            raise error.at(file=name) from error

    def look(
        self,
        actor: Actor,
        path: Path,
        profile: Profile | str | None = None,
        names: FieldMap | None = None,
        *,
        name: str,
    ) -> Look:
        """Read the first rows of a file, and store nothing. What breaks it off is a problem too. Raises NotAllowed.

        Args:
            actor: Who asks.
            path: The file.
            profile: By which to read it; without one, the format is detected from the first row.
            name: The file's name, where the path has another.
            names: Which key of a row holds a field.

        """
        self._access.require(actor, "audit")
        rows: list[MappedRow] = []
        problems: list[InputError] = []
        try:
            rows.extend(islice(read_any(path, profile, names, name=name), LOOKED_AT + 1))  # an error leaves in the rest
        except InputError as error:
            problems.append(error)
        looked_at = rows[:LOOKED_AT]
        return Look(
            len(looked_at),
            tuple(row.case for row in looked_at if row.case is not None),
            sum(row.case is None for row in looked_at),
            (*(problem for row in looked_at for problem in row.problems), *problems),
            tuple(note for row in looked_at for note in row.notes),
            len(rows) <= LOOKED_AT,
        )

    def add_file(
        self,
        actor: Actor,
        path: Path,
        profile: Profile | str | None = None,
        names: FieldMap | None = None,
        *,
        name: str,
    ) -> Iterator[ImportStep]:
        """Store the cases of a file; yields how far it has come after each batch, which is then stored.

        Whoever stops asking stops the import: what was stored stays. A file that breaks off, or a batch that can't be
        stored, is a problem of the last step.

        Raises NotAllowed, before anything is read; StoreError where the database can't be written.
        """
        self._access.require(actor, "audit")
        return _Import(self._store, name).run(path, profile, names)


class _Import:
    def __init__(self, store: Store, name: str) -> None:
        self._store, self._name = store, name
        self._counts: dict[str, int] = dict.fromkeys(("rows", "end", "added", "unchanged", "refused"), 0)
        self._problems: list[MasisError] = []
        self._notes: list[InputError] = []

    def run(self, path: Path, profile: Profile | str | None, names: FieldMap | None) -> Iterator[ImportStep]:
        batch: list[Case] = []
        begun = rows = 0
        try:
            for row in read_any(path, profile, names, name=self._name):
                case = self._take(row)
                if case is not None:
                    batch.append(case)
                rows += 1
                if rows >= _BATCH or row.end - begun >= _BATCH_BYTES:
                    yield self._stored(batch)
                    batch, begun, rows = [], row.end, 0
        except InputError as error:  # of another format, or broken off: what was read before is stored
            self._problems.append(error)
        yield self._stored(batch)

    def _take(self, row: MappedRow) -> Case | None:
        self._counts["rows"] += 1
        self._counts["end"] = row.end
        self._counts["refused"] += row.case is None
        self._problems += row.problems
        self._notes += row.notes
        return row.case

    def _stored(self, batch: list[Case]) -> ImportStep:
        report = self._store.cases.add_many(batch)
        conflicts = len(batch) - report.added - report.unchanged
        changes: dict[str, Any] = {"added": report.added, "unchanged": report.unchanged, "refused": conflicts}
        for name, count in changes.items():
            self._counts[name] += count
        self._problems += report.conflicts
        step = ImportStep(**self._counts, problems=tuple(self._problems), notes=tuple(self._notes))
        self._problems, self._notes = [], []
        return step

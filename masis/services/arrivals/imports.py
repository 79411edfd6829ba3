"""Files on their way in: looked at first, then read into the database batch by batch, until whoever
drives it stops.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import NamedTuple

from masis.datasets.mapping.profile import Profile
from masis.datasets.mapping.reader import FormatMatch, formats_of, read_any
from masis.datasets.mapping.row import MappedRow
from masis.datasets.readers.workbooks import sheets_of
from masis.errors import InputError, MasisError
from masis.schema.actor import Actor
from masis.schema.case import Case
from masis.schema.reading import FieldMap
from masis.services.access import Service

PREVIEW_ROWS = 200
"""Rows that a look reads."""

_BATCH = 500
"""Rows of which the cases are stored in one transaction, at most."""

_BATCH_BYTES = 4_000_000
"""Bytes of the file a transaction at most, but for a single case that is larger."""


class ImportPreview(NamedTuple):
    """The first rows of a file as they would be read; ``whole`` says that these are all of them."""

    rows: int
    cases: tuple[Case, ...]
    refused: int
    problems: tuple[InputError, ...]
    notes: tuple[InputError, ...]
    whole: bool


class ImportStep(NamedTuple):
    """How far an import has come, and what is new since the step before.

    Counted so far: ``rows`` read, the bytes of the file read (``end``, or the like), cases
    ``added``, ``unchanged`` ones that were there already, word for word, and rows ``refused``: they
    gave no case, or one whose id is taken by another case. ``problems`` is what is wrong with rows
    read since the last step, ``notes`` what a person may have meant by them otherwise.
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

    def formats_of(
        self, actor: Actor, path: Path, *, name: str, sheet: str | None = None
    ) -> FormatMatch:
        """Return which formats a file fits. Raises InputError where it can't be read, and
        NotAllowed.
        """
        self._access.require(actor, "audit")
        try:
            return formats_of(path, name=name, sheet=sheet)
        except InputError as error:
            raise error.at(file=name) from error

    def sheets_of(self, actor: Actor, path: Path, *, name: str) -> list[str]:
        """Return the sheets of an Excel workbook that hold something; none of another file.

        Raises InputError where it can't be read, and NotAllowed.
        """
        self._access.require(actor, "audit")
        try:
            return sheets_of(path)
        except InputError as error:
            raise error.at(file=name) from error

    def preview(
        self,
        actor: Actor,
        path: Path,
        profile: Profile | str | None = None,
        names: FieldMap | None = None,
        *,
        name: str,
        sheet: str | None = None,
    ) -> ImportPreview:
        """Read the first rows of a file, and store nothing. What breaks it off is a problem too.
        Raises NotAllowed.

        Without a profile the format is detected from the first row. ``names`` says which key of a
        row holds a field, ``name`` what the file is called, ``sheet`` which sheet of an Excel
        workbook is read.
        """
        self._access.require(actor, "audit")
        rows: list[MappedRow] = []
        problems: list[InputError] = []
        try:
            read = read_any(path, profile, names, name=name, sheet=sheet)
            rows.extend(islice(read, PREVIEW_ROWS + 1))  # an error leaves in the rest
        except InputError as error:
            problems.append(error)
        looked_at = rows[:PREVIEW_ROWS]
        return ImportPreview(
            len(looked_at),
            tuple(row.case for row in looked_at if row.case is not None),
            sum(row.case is None for row in looked_at),
            (*(problem for row in looked_at for problem in row.problems), *problems),
            tuple(note for row in looked_at for note in row.notes),
            len(rows) <= PREVIEW_ROWS,
        )

    def add_file(
        self,
        actor: Actor,
        path: Path,
        profile: Profile | str | None = None,
        names: FieldMap | None = None,
        *,
        name: str,
        sheet: str | None = None,
    ) -> Iterator[ImportStep]:
        """Store the cases of a file; yields how far it has come after each batch, which is then
        stored.

        Whoever stops asking stops the import: what was stored stays. A file that breaks off, or a
        batch that can't be stored, is a problem of the last step.

        Raises NotAllowed, before anything is read; StoreError where the database can't be written.
        """
        self._access.require(actor, "audit")
        return self._steps(read_any(path, profile, names, name=name, sheet=sheet))

    def _steps(self, rows: Iterator[MappedRow]) -> Iterator[ImportStep]:
        step = ImportStep(0, 0, 0, 0, 0)
        for batch, broken_off in _store_batches(rows):
            report = self._store.cases.add_many([row.case for row in batch if row.case is not None])
            step = ImportStep(
                rows=step.rows + len(batch),
                end=batch[-1].end if batch else step.end,
                added=step.added + report.added,
                unchanged=step.unchanged + report.unchanged,
                refused=step.refused + len(batch) - report.added - report.unchanged,
                problems=(
                    *(problem for row in batch for problem in row.problems),
                    *broken_off,
                    *report.conflicts,
                ),
                notes=tuple(note for row in batch for note in row.notes),
            )
            yield step


def _store_batches(
    rows: Iterator[MappedRow],
) -> Iterator[tuple[list[MappedRow], tuple[InputError, ...]]]:
    """Yield rows as they are stored together, the last ones with what broke the file off or kept it
    from being read.
    """
    batch: list[MappedRow] = []
    begun = 0
    try:
        for row in rows:
            batch.append(row)
            if len(batch) >= _BATCH or row.end - begun >= _BATCH_BYTES:
                yield batch, ()
                batch, begun = [], row.end
    except InputError as error:
        yield batch, (error,)
    else:
        yield batch, ()

"""Preview files, and import them into the database batch by batch."""

from __future__ import annotations

import secrets
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
from masis.schema.systems import checked_name
from masis.services.access import ADD_CASES, Service, requires

PREVIEW_ROWS = 200
"""The number of rows in a preview."""

_BATCH = 500
"""Maximum number of rows whose cases are stored in one transaction."""

_BATCH_BYTES = 4_000_000
"""Maximum number of bytes of the file per transaction, except for a single case that is larger."""


class ImportPreview(NamedTuple):
    """The first rows of a file as they would be imported; ``whole`` means that these are all."""

    rows: int
    cases: tuple[Case, ...]
    refused: int
    problems: tuple[InputError, ...]
    notes: tuple[InputError, ...]
    whole: bool


class ImportStep(NamedTuple):
    """The progress of an import, and the problems since the previous step.

    ``rows``, ``end`` (bytes of the file), ``added``, ``unchanged`` and ``refused`` are totals so
    far. ``unchanged`` cases were already stored with the same content. ``refused`` rows have no
    valid case, or an id that belongs to another case. ``problems`` are errors in rows since the
    last step; ``notes`` say how else the rows could be read. ``import_id`` is the id by which the
    queue lists the added cases (``CaseFilter.imports``).
    """

    rows: int
    end: int
    added: int
    unchanged: int
    refused: int
    problems: tuple[MasisError, ...] = ()
    notes: tuple[InputError, ...] = ()
    import_id: str = ""


class ImportService(Service):
    """The use cases of importing files as cases."""

    @requires("audit", ADD_CASES)
    def formats_of(
        self, actor: Actor, path: Path, *, name: str, sheet: str | None = None
    ) -> FormatMatch:
        """Return the formats that a file fits.

        Raises:
            InputError: The file can't be read.
            NotAllowed: The actor's role doesn't allow imports.

        """
        try:
            return formats_of(path, name=name, sheet=sheet)
        except InputError as error:
            raise error.at(file=name) from error

    @requires("audit", ADD_CASES)
    def sheets_of(self, actor: Actor, path: Path, *, name: str) -> list[str]:
        """Return the non-empty sheets of an Excel workbook; none for other files.

        Raises:
            InputError: The file can't be read.
            NotAllowed: The actor's role doesn't allow imports.

        """
        try:
            return sheets_of(path)
        except InputError as error:
            raise error.at(file=name) from error

    @requires("audit", ADD_CASES)
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
        """Read the first rows of a file without storing them.

        An error that ends the file is one of the problems.

        Args:
            actor: Who asks for it.
            path: The file.
            profile: The format. By default it's detected from the first row.
            names: The key of a row that holds a field.
            name: The file's name for messages.
            sheet: The sheet of an Excel workbook.

        Raises:
            NotAllowed: The actor's role doesn't allow imports.

        """
        rows: list[MappedRow] = []
        problems: list[InputError] = []
        try:
            read = read_any(path, profile, names, name=name, sheet=sheet)
            rows.extend(islice(read, PREVIEW_ROWS + 1))  # After an error, earlier rows remain.
        except InputError as error:
            problems.append(error)
        preview = rows[:PREVIEW_ROWS]
        return ImportPreview(
            len(preview),
            tuple(row.case for row in preview if row.case is not None),
            sum(row.case is None for row in preview),
            (*(problem for row in preview for problem in row.problems), *problems),
            tuple(note for row in preview for note in row.notes),
            len(rows) <= PREVIEW_ROWS,
        )

    @requires("audit", ADD_CASES)
    def add_file(
        self,
        actor: Actor,
        path: Path,
        profile: Profile | str | None = None,
        names: FieldMap | None = None,
        *,
        name: str,
        sheet: str | None = None,
        system: str | None = None,
    ) -> Iterator[ImportStep]:
        """Store the cases of a file, and yield the progress after each stored batch.

        To stop the import, stop iterating: stored cases stay. A file that ends with an error, or a
        batch that can't be stored, is a problem of the last step.

        ``system`` names the system of rows that don't name one: their ids are then those of
        questions.

        Raises:
            InputError: The system's name isn't valid.
            NotAllowed: The actor's role doesn't allow imports; nothing is read.
            StoreError: The database can't be written.

        """
        named = None if system is None else checked_name(system)
        return self._steps(read_any(path, profile, names, name=name, sheet=sheet, system=named))

    def _steps(self, rows: Iterator[MappedRow]) -> Iterator[ImportStep]:
        step = ImportStep(0, 0, 0, 0, 0)
        import_id = secrets.token_hex(6)
        for batch, broken_off in _store_batches(rows):
            cases = [row.case for row in batch if row.case is not None]
            report = self._store.cases.add_many(cases, import_id=import_id)
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
                import_id=import_id,
            )
            yield step


def _store_batches(
    rows: Iterator[MappedRow],
) -> Iterator[tuple[list[MappedRow], tuple[InputError, ...]]]:
    """Yield rows in batches; the last batch includes the error that ended the file, if any."""
    batch: list[MappedRow] = []
    start = 0
    try:
        for row in rows:
            batch.append(row)
            # Bounded by bytes too: 500 long cases would block other writers for too long.
            if len(batch) >= _BATCH or row.end - start >= _BATCH_BYTES:
                yield batch, ()
                batch, start = [], row.end
    except InputError as error:
        yield batch, (error,)
    else:
        yield batch, ()

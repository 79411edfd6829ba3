"""Export decided cases, and freeze, compare and rebuild dataset versions."""

from __future__ import annotations

import io
import tempfile
import zipfile
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import BinaryIO, NamedTuple

from masis.datasets.exports.export import (
    DECISIONS,
    ExportResult,
    Selection,
    Watcher,
    write_export,
    write_file,
)
from masis.datasets.exports.formats import export_formats
from masis.datasets.exports.versions import (
    KINDS,
    Kind,
    VersionChange,
    compare_versions,
    file_name,
    freeze_version,
    rebuild_version,
)
from masis.datasets.writers.decisions import write_log_csv
from masis.schema.actor import Actor
from masis.schema.review import CaseState
from masis.services.access import Service, requires
from masis.services.records import CaseFilter, DatasetVersion, DecisionFilter
from masis.services.relabelling import RelabellingService
from masis.services.reviews import name_of


class ExportService(Service):
    """The use cases of exporting data from a database."""

    @requires("export", "export decided cases")
    def write(
        self,
        actor: Actor,
        out: BinaryIO,
        form: str,
        selection: Selection = DECISIONS,
        *,
        encoding: str = "jsonl",
        name: str = "-",
        on_case: Callable[[int], None] | None = None,
    ) -> ExportResult:
        """Write the matching cases to a stream, in any format that isn't a folder.

        Raises:
            InputError: The format or the encoding isn't valid.
            NotAllowed: The actor's role doesn't allow exports.

        """
        return write_export(
            self._store,
            out,
            form,
            selection,
            encoding=encoding,
            name=name,
            watcher=Watcher(on_case),
        )

    @requires("export", "export decided cases")
    def write_file(
        self,
        actor: Actor,
        path: Path,
        form: str,
        selection: Selection = DECISIONS,
        *,
        encoding: str = "jsonl",
        on_case: Callable[[int], None] | None = None,
    ) -> ExportResult:
        """Write the matching cases atomically to a file (or folder) with a manifest.

        Raises:
            InputError: The format, the encoding or the path isn't valid.
            NotAllowed: The actor's role doesn't allow exports.

        """
        return write_file(
            self._store, path, form, selection, encoding=encoding, watcher=Watcher(on_case)
        )

    def count(self, case_filter: CaseFilter) -> int:
        """Count the cases that an export reads: all matches without simulated decisions."""
        return self._store.outcomes.count(case_filter)

    def shows_hidden(self, form: str, selection: Selection | None = None) -> int:
        """Count the undecided cases whose hidden audit results an export would reveal.

        ``runs`` and ``executions`` reveal audit results, and so does a data set whose filter
        includes undecided cases. The count is 0 if the team's policy doesn't hide audit results.
        """
        if form == "cases" or self._store.team.strictest_shown() == "first":
            return 0
        states: tuple[CaseState, ...] = ("needs_review", "needs_adjudication", "accepted")
        case_filter = selection.cases if form in export_formats() and selection else CaseFilter()
        states = tuple(
            state for state in states if not case_filter.states or state in case_filter.states
        )
        return (
            self._store.cases.count_matching(case_filter.model_copy(update={"states": states}))
            if states
            else 0
        )

    @requires("export", "export the decision log")
    def write_log_csv(self, actor: Actor, out: BinaryIO, log_filter: DecisionFilter) -> int:
        """Write the matching entries of the decision log as CSV and return how many.

        Raises:
            NotAllowed: The actor's role doesn't allow exports.

        """
        return write_log_csv(self._store, out, log_filter)


class DatasetComparison(NamedTuple):
    """The differences between two versions: the number of cases by kind, and the first cases."""

    counts: dict[Kind, int]
    cases: tuple[VersionChange, ...]
    total: int


class DatasetService(Service):
    """The use cases of dataset versions.

    Reading needs no role; freezing and writing need the role for exports.
    """

    @requires("export", "freeze or export dataset versions")
    def freeze(
        self,
        actor: Actor,
        name: str,
        form: str,
        selection: Selection,
        *,
        description: str = "",
        encoding: str = "jsonl",
        on_case: Callable[[int], None] | None = None,
    ) -> DatasetVersion:
        """Freeze the current content of an export of this selection.

        Raises:
            InputError: The name, the description or the format isn't valid, or no case matches.
            StoreError: The version can't be stored.
            NotAllowed: The actor's role doesn't allow exports.

        """
        return freeze_version(
            self._store,
            name,
            form,
            selection,
            by=name_of(actor),
            description=description,
            encoding=encoding,
            on_case=on_case,
        )

    def compare(self, first: str, second: str, most: int = 100) -> DatasetComparison:
        """Count the differences between two versions, and list the first ``most`` cases.

        Raises:
            UnknownRecord: There is no such version.

        """
        counts, first_changes, total = Counter[Kind](), list[VersionChange](), 0
        for change in compare_versions(self._store, first, second):
            counts.update(change.kinds)
            total += 1
            if total <= most:
                first_changes.append(change)
        return DatasetComparison(
            {kind: counts[kind] for kind in KINDS}, tuple(first_changes), total
        )

    @requires("export", "freeze or export dataset versions")
    def write(
        self, actor: Actor, name: str, path: Path, *, on_case: Callable[[int], None] | None = None
    ) -> ExportResult:
        """Write a version to a file (a folder for some formats) with its manifest.

        It writes exactly the frozen bytes, or nothing. The manifest has the version's guarantee, if
        one holds.

        Raises:
            UnknownRecord: There is no such version.
            StoreError: It can't be rebuilt.
            NotAllowed: The actor's role doesn't allow exports.

        """
        guarantee = RelabellingService(self._store, self.access).guarantee(actor, name)
        return rebuild_version(self._store, name, path, on_case=on_case, guarantee=guarantee)

    @requires("export", "freeze or export dataset versions")
    def zip(self, actor: Actor, name: str) -> io.BytesIO:
        """Return a version and its manifest as a zip file.

        It raises the errors of ``write``.
        """
        version, out = self._store.datasets.get(name), io.BytesIO()
        with tempfile.TemporaryDirectory() as folder:
            self.write(actor, name, Path(folder) / file_name(name, version.form, version.encoding))
            with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
                # sorted, because the order of files in a folder depends on the file system
                for file in sorted(Path(folder).rglob("*")):
                    archive.write(file, file.relative_to(folder))
        out.seek(0)
        return out

    @requires("oversee", "remove dataset versions")
    def remove(self, actor: Actor, name: str) -> None:
        """Remove a version; cases and decisions stay.

        Raises:
            UnknownRecord: There is no such version.
            NotAllowed: The actor isn't a lead.

        """
        self._store.datasets.remove(name)

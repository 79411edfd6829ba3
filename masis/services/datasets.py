"""Dataset versions: data sets out of what was decided, frozen under a name, compared, and written
again.
"""

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
from masis.datasets.exports.formats import FORMATS
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
from masis.schema.team import QueuePolicy
from masis.services.access import Service
from masis.services.records import CaseFilter, DatasetVersion, DecisionFilter
from masis.services.reviews import name_of

# Exports: data sets out of what was decided, and the decision log.


class ExportService(Service):
    """The use cases of taking data out of a database."""

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
        """Write the cases that match to a stream, in one of ``FORMATS`` but ``hf``. Raises
        InputError, NotAllowed.
        """
        self._access.require(actor, "export")
        return write_export(
            self._store,
            out,
            form,
            selection,
            encoding=encoding,
            name=name,
            watcher=Watcher(on_case),
        )

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
        """Write them to a file (a folder for ``hf``), whole and with a manifest. Raises InputError
        and NotAllowed.
        """
        self._access.require(actor, "export")
        return write_file(
            self._store, path, form, selection, encoding=encoding, watcher=Watcher(on_case)
        )

    def count(self, case_filter: CaseFilter) -> int:
        """Count the cases that an export of a filter reads: all that match, but those with
        simulated decisions.
        """
        return self._store.outcomes.count(case_filter)

    def shows_hidden(self, form: str, selection: Selection | None = None) -> int:
        """Return of how many undecided cases an export shows what the team's policy hides from
        reviewers.

        That is what audits found, where reviewers are blind to the machine. ``runs`` and
        ``executions`` show what audits found; a data set does where its filter lets undecided cases
        in.
        """
        if form == "cases" or self._store.team.in_force(QueuePolicy).machine == "first":
            return 0
        states: tuple[CaseState, ...] = ("needs_review", "needs_adjudication", "accepted")
        case_filter = selection.cases if form in FORMATS and selection else CaseFilter()
        states = tuple(
            each for each in states if not case_filter.states or each in case_filter.states
        )
        return (
            self._store.cases.count_matching(case_filter.model_copy(update={"states": states}))
            if states
            else 0
        )

    def write_log_csv(self, actor: Actor, out: BinaryIO, log_filter: DecisionFilter) -> int:
        """Write the entries of the decision log that match as CSV; returns how many. Raises
        NotAllowed.
        """
        self._access.require(actor, "export")
        return write_log_csv(self._store, out, log_filter)


class DatasetComparison(NamedTuple):
    """What differs between two versions: how many cases by kind, and the first of them."""

    counts: dict[Kind, int]
    cases: tuple[VersionChange, ...]
    total: int


class DatasetService(Service):
    """The use cases of dataset versions. Looking at them takes no role; making and taking them out
    that of exports.
    """

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
        """Freeze what an export of this selection holds now. Raises InputError, StoreError and
        NotAllowed.
        """
        self._access.require(actor, "export")
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
        """Count what differs between two versions, and name the first ``most`` cases. Raises
        UnknownRecord.
        """
        counts, found, total = Counter[Kind](), list[VersionChange](), 0
        for change in compare_versions(self._store, first, second):
            counts.update(change.kinds)
            total += 1
            if total <= most:
                found.append(change)
        return DatasetComparison({kind: counts[kind] for kind in KINDS}, tuple(found), total)

    def write(
        self, actor: Actor, name: str, path: Path, *, on_case: Callable[[int], None] | None = None
    ) -> ExportResult:
        """Write a version to a file (a folder for ``hf``) with its manifest: the bytes that were
        frozen, or nothing.

        Raises UnknownRecord, StoreError where it can't be rebuilt, and NotAllowed.
        """
        self._access.require(actor, "export")
        return rebuild_version(self._store, name, path, on_case=on_case)

    def zip(self, actor: Actor, name: str) -> io.BytesIO:
        """Return a version and its manifest as a zip file. Raises as ``write`` does."""
        self._access.require(actor, "export")
        version, out = self._store.datasets.get(name), io.BytesIO()
        with tempfile.TemporaryDirectory() as folder:
            self.write(actor, name, Path(folder) / file_name(name, version.form, version.encoding))
            with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
                for file in sorted(Path(folder).rglob("*")):
                    archive.write(file, file.relative_to(folder))
        out.seek(0)
        return out

    def remove(self, actor: Actor, name: str) -> None:
        """Remove a version; cases and decisions stay. Raises UnknownRecord and NotAllowed."""
        self._access.require(actor, "oversee")
        self._store.datasets.remove(name)

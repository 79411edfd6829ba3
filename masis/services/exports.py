"""Exports: data sets out of what was decided, and the decision log."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import BinaryIO

from masis.datasets.exports import FORMATS, Exported, Selection, Watcher, write_export, write_file
from masis.datasets.writers.decisions import write_log_csv
from masis.schema.actor import Actor
from masis.schema.review import CaseState
from masis.schema.team import QueuePolicy
from masis.services.access import OPEN, Access
from masis.services.records import CaseFilter, DecisionFilter
from masis.store import Store


class ExportService:
    """The use cases of taking data out of a database."""

    def __init__(self, store: Store, access: Access = OPEN) -> None:
        self._store, self._access = store, access

    def write(
        self,
        actor: Actor,
        out: BinaryIO,
        form: str,
        selection: Selection | None = None,
        *,
        encoding: str = "jsonl",
        name: str = "-",
        on_case: Callable[[int], None] | None = None,
    ) -> Exported:
        """Write the cases that match to a stream, in one of ``FORMATS`` but ``hf``. Raises InputError, NotAllowed."""
        self._access.require(actor, "export")
        return write_export(self._store, out, form, selection, encoding=encoding, name=name, watcher=Watcher(on_case))

    def write_file(
        self,
        actor: Actor,
        path: Path,
        form: str,
        selection: Selection | None = None,
        *,
        encoding: str = "jsonl",
        on_case: Callable[[int], None] | None = None,
    ) -> Exported:
        """Write them to a file (a folder for ``hf``) with its manifest, whole or not at all.

        Raises InputError and NotAllowed.
        """
        self._access.require(actor, "export")
        return write_file(self._store, path, form, selection, encoding=encoding, watcher=Watcher(on_case))

    def shows_hidden(self, form: str, selection: Selection | None = None) -> int:
        """Return of how many undecided cases an export shows what the team's policy hides from reviewers.

        That is what audits found, where reviewers are blind to the machine.
        ``runs`` and ``executions`` show what audits found; a data set does where its filter lets undecided cases in.
        """
        if form == "cases" or self._store.team.in_force(QueuePolicy).machine == "first":
            return 0
        states: tuple[CaseState, ...] = ("needs_review", "needs_adjudication", "accepted")
        wanted = selection.cases if form in FORMATS and selection else CaseFilter()
        states = tuple(each for each in states if not wanted.states or each in wanted.states)
        return self._store.cases.count_matching(wanted.model_copy(update={"states": states})) if states else 0

    def write_log_csv(self, actor: Actor, out: BinaryIO, wanted: DecisionFilter) -> int:
        """Write the entries of the decision log that match as CSV; returns how many. Raises NotAllowed."""
        self._access.require(actor, "export")
        return write_log_csv(self._store, out, wanted)

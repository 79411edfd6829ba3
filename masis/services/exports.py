"""Imports and exports of a whole database: the lossless archive, the decided cases, the decision log."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import BinaryIO

from masis.datasets.archive import ArchiveRead, read_archive, write_archive
from masis.datasets.writers.decisions import DECIDED, write_decided, write_log_csv
from masis.schema.actor import Actor
from masis.schema.review import CaseState
from masis.services.access import OPEN, Access
from masis.services.records import DecisionFilter
from masis.store import Store


class ExportService:
    """The use cases of taking everything out of a database and putting it into another."""

    def __init__(self, store: Store, access: Access = OPEN) -> None:
        self._store, self._access = store, access

    def read_archive(self, actor: Actor, file: Path) -> ArchiveRead:
        """Put an archive into the database, which must be empty, whole or not at all.

        Raises InputError, StoreError and NotAllowed.
        """
        self._access.require(actor, "configure")
        return read_archive(file, self._store)

    def write_archive(self, actor: Actor, out: BinaryIO) -> int:
        """Write everything the database holds; returns how many lines. Raises NotAllowed."""
        self._access.require(actor, "export")
        return write_archive(self._store, out)

    def write_decided(self, actor: Actor, out: BinaryIO, states: Sequence[CaseState] = DECIDED) -> int:
        """Write the cases in these states with their decisions as JSON Lines; returns how many. Raises NotAllowed."""
        self._access.require(actor, "export")
        return write_decided(self._store, out, states)

    def write_log_csv(self, actor: Actor, out: BinaryIO, wanted: DecisionFilter) -> int:
        """Write the entries of the decision log that match as CSV; returns how many. Raises NotAllowed."""
        self._access.require(actor, "export")
        return write_log_csv(self._store, out, wanted)

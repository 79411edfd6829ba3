"""Stores dataset versions: the cases and decisions that a data set was made from.

A version contains no text. For each case with rows it stores the state, the side of the split, and
the numbers of the log entries and iterations that counted. Later decisions, undos and audits
therefore don't change the version. Content that is later redacted or removed by retention is
missing from it (``Datasets.count_lost``).
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import Any, NamedTuple

from masis.errors import Conflict, UnknownRecord
from masis.store.core.chained_log import canonical_json
from masis.store.core.connections import StorePart
from masis.store.core.sql import insert, record_of
from masis.store.records import DatasetVersion, LostFromDataset
from masis.store.reviews.decisions import LOG
from masis.store.reviews.outcomes import AT_ONCE, CaseOutcome, Pin, outcomes_of

_JSON = ("selection", "manifest")


class Member(NamedTuple):
    """A case of a version: its state, its side of the split, and the judgements that counted."""

    case_seq: int
    state: str
    side: str
    pins: tuple[Pin, ...]

    @classmethod
    def of(cls, outcome: CaseOutcome, side: str) -> Member:
        """Return the member for a case with its judgements."""
        pins = tuple(
            Pin(
                judgement.entry.seq if judgement.entry else None,
                judgement.in_force,
                judgement.run_seq,
                judgement.number,
            )
            for judgement in outcome.judgements
        )
        return cls(outcome.seq, outcome.state, side, pins)


class VersionDifference(NamedTuple):
    """A case that differs between two versions.

    ``first`` or ``second`` is None if that version has no row of the case. ``relabelled`` is true
    if reviewers' decisions or labels differ.
    """

    case_id: str
    first: Member | None
    second: Member | None
    relabelled: bool


class Datasets(StorePart):
    """The dataset versions of a store."""

    def add(self, version: DatasetVersion, members: Iterable[Member]) -> None:
        """Store a version with its cases.

        Raises:
            StoreError: A version with this name exists.

        """
        as_json = {name: json.dumps(getattr(version, name), ensure_ascii=False) for name in _JSON}
        with self._database.transaction() as connection:
            if connection.execute(
                "SELECT 1 FROM dataset_versions WHERE name = ?", [version.name]
            ).fetchone():
                raise Conflict(
                    f"there is a dataset version {version.name!r} already. Choose another name."
                )
            seq = insert(connection, "dataset_versions", version.model_dump() | as_json)
            connection.executemany(
                "INSERT INTO dataset_members VALUES (?, ?, ?, ?, ?)",
                (
                    [seq, *member[:3], json.dumps(member.pins, separators=(",", ":"))]
                    for member in members
                ),
            )

    def remove(self, name: str) -> None:
        """Remove a version, but not its cases and decisions. Raises UnknownRecord."""
        with self._database.transaction() as connection:
            seq = _version_row(connection, name)["seq"]
            connection.execute("DELETE FROM dataset_members WHERE dataset_seq = ?", [seq])
            connection.execute("DELETE FROM dataset_versions WHERE seq = ?", [seq])

    def list_all(self) -> tuple[DatasetVersion, ...]:
        """Return all versions, newest first."""
        return tuple(
            map(
                _version_record,
                self._database.execute("SELECT * FROM dataset_versions ORDER BY seq DESC"),
            )
        )

    def get(self, name: str) -> DatasetVersion:
        """Return one version. Raises UnknownRecord."""
        with self._database.reading() as connection:
            return _version_record(_version_row(connection, name))

    def count_lost(self, name: str) -> LostFromDataset:
        """Count the cases of a version that were redacted or lost their run since. Raises
        UnknownRecord.
        """
        with self._database.reading() as connection:
            version = _version_row(connection, name)
            # A pin is a JSON list: entry number, in force, run number, iteration number.
            redacted, removed = connection.execute(
                """
                SELECT sum(redacted), sum(removed AND NOT redacted) FROM (
                    SELECT max(coalesce(redaction_seq, 0) > :then
                        OR redaction.seq IS NOT NULL) AS redacted,
                        max(runs.seq IS NOT NULL AND runs.payload IS NULL) AS removed
                    FROM dataset_members AS member JOIN cases ON cases.seq = member.case_seq
                    CROSS JOIN json_each(judgements) AS pin
                    LEFT JOIN decision_log AS redaction ON redaction.redacts = pin.value ->> 0
                        AND redaction.seq > :then
                    LEFT JOIN runs ON runs.seq = pin.value ->> 2
                    WHERE dataset_seq = :seq GROUP BY member.case_seq
                )
                """,
                {"seq": version["seq"], "then": version["log_length"]},
            ).fetchone()
        return LostFromDataset(redacted=redacted, removed=removed)

    def outcomes(self, name: str) -> Iterator[tuple[CaseOutcome, str]]:
        """Yield the cases of a version in their state at that time, each with its side of the
        split.

        Raises UnknownRecord.
        """
        with self._database.reading() as connection:
            version = _version_row(connection, name)
            rows = connection.execute(
                "SELECT case_seq, state, side, judgements FROM dataset_members WHERE dataset_seq ="
                " ? ORDER BY case_seq",
                [version["seq"]],
            )
            while some := {row["case_seq"]: _member(row) for row in islice(rows, AT_ONCE)}:
                for outcome in outcomes_of(
                    connection,
                    {seq: member.pins for seq, member in some.items()},
                    version["at"],
                ):
                    yield outcome._replace(state=some[outcome.seq].state), some[outcome.seq].side

    def differences(self, first: str, second: str) -> Iterator[VersionDifference]:
        """Yield the cases that differ between two versions, in the order of import.

        Raises UnknownRecord.
        """
        with self._database.reading() as connection:
            seqs = [_version_row(connection, name)["seq"] for name in (first, second)]
            # iif() leaves one value per version and case, and max() ignores NULL, so each group has
            # the row of either version. IS NOT also compares a row with a missing one.
            for case_id, *rows in connection.execute(
                """
                SELECT id, max(iif(dataset_seq = ?1, found, NULL)) AS one,
                    max(iif(dataset_seq = ?2, found, NULL)) AS two
                FROM (SELECT *, json_array(case_seq, state, side, json(judgements)) AS found
                    FROM dataset_members
                      WHERE dataset_seq IN (?1, ?2)) AS member
                JOIN cases ON cases.seq = case_seq GROUP BY case_seq HAVING one IS NOT two
                    ORDER BY case_seq
                """,
                seqs,
            ):
                one, two = (None if row is None else _member(json.loads(row)) for row in rows)
                relabelled = (
                    one is not None
                    and two is not None
                    and _decision_labels(connection, one) != _decision_labels(connection, two)
                )
                yield VersionDifference(case_id, one, two, relabelled)


def _decision_labels(connection: sqlite3.Connection, member: Member) -> list[tuple[bool, str]]:
    """Return the decisions on a case, without notes and the time, reason and source of each
    decision.
    """
    entries = {pin.entry: pin.in_force for pin in member.pins if pin.entry is not None}
    found = []
    for row in LOG.rows(
        connection, "log.seq IN (SELECT value FROM json_each(?))", [json.dumps(list(entries))]
    ):
        decision = LOG.entry_of(row).decision
        decided: dict[str, Any] = {"redacted": row["seq"]}
        if decision is not None:
            fields = {"reviewer", "kind", "verdict", "corrected_answer", "labels"}
            decided = decision.model_dump(mode="json", include=fields)
            for label in decided["labels"]:
                del label["note"]
        found.append((entries[row["seq"]], canonical_json(decided)))
    return sorted(found)


def _member(row: sqlite3.Row | Sequence[Any]) -> Member:
    case_seq, state, side, judgements = row
    pins = json.loads(judgements) if isinstance(judgements, str) else judgements
    return Member(case_seq, state, side, tuple(Pin(*pin) for pin in pins))


def _version_row(connection: sqlite3.Connection, name: str) -> sqlite3.Row:
    row: sqlite3.Row | None = connection.execute(
        "SELECT * FROM dataset_versions WHERE name = ?", [name]
    ).fetchone()
    if row is None:
        raise UnknownRecord(
            f"there is no dataset version {name!r}. `masis dataset list` lists all."
        )
    return row


def _version_record(row: sqlite3.Row) -> DatasetVersion:
    return record_of(DatasetVersion, row, parsed=_JSON)

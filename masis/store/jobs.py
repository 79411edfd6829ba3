"""Stores jobs (audits and screenings) step by step, so that an interrupted job can resume.

A job is ``running`` (its owner lives), ``interrupted`` (cut short, can be resumed) or ``finished``.
A finished job is never overwritten. ``audits.runs`` and ``masis.screening.store`` add the columns
of their kinds. Both write the tables ``jobs`` and ``job_parts``, and read the views ``runs`` and
``screenings``.
"""

from __future__ import annotations

import contextlib
import json
import sqlite3
import zlib
from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from itertools import groupby
from operator import attrgetter
from typing import Any, ClassVar, Generic, Literal, TypeVar

from pydantic import BaseModel, ValidationError

from masis.errors import RecordDamaged, Removed, StoreError, UnknownRecord
from masis.schema.explain import path_of
from masis.schema.run import Event
from masis.schema.screening import ScreeningEvent
from masis.store.core import process_owner
from masis.store.core.connections import StorePart
from masis.store.core.process_owner import Owner
from masis.store.core.sql import insert

JobKind = Literal["run", "screening"]
PartKind = Literal["event", "iteration", "step", "round"]

E = TypeVar("E", Event, ScreeningEvent)
P = TypeVar("P")
M = TypeVar("M", bound=BaseModel)

_AGAIN = {"run": "Audit the case again", "screening": "Screen the question again"}
"""The advice for replacing a job whose content is gone."""


def job_row(connection: sqlite3.Connection, kind: JobKind, job_id: str) -> sqlite3.Row:
    """Return the row of a run or a screening.

    Raises:
        UnknownRecord: There is none with this id.

    """
    sql = "SELECT * FROM jobs WHERE id = ? AND kind = ?"
    row: sqlite3.Row | None = connection.execute(sql, [job_id, kind]).fetchone()
    if row is None:
        raise UnknownRecord(f"there is no {kind} {job_id!r}.")
    return row


def assert_not_removed(connection: sqlite3.Connection, job: sqlite3.Row) -> None:
    """Raise Removed if the content of a job was removed."""
    if job["removed_by"] is None:
        return
    at, how = connection.execute(
        "SELECT at, how FROM purges WHERE seq = ?", [job["removed_by"]]
    ).fetchone()
    removed = f"the content of {job['kind']} {job['id']!r} was removed on {at[:10]}"
    if how == "redaction":
        raise Removed(f"{removed}: its case was redacted.")
    raise Removed(
        f"{removed} by retention. {_AGAIN[job['kind']]} to replace it; `masis purge --history` says"
        " what was removed, and by whom."
    )


def update_job(connection: sqlite3.Connection, seq: int, **columns: Any) -> None:
    """Set columns of a job and increment its version."""
    assignments = ", ".join(f"{name} = ?" for name in columns)
    connection.execute(
        f"UPDATE jobs SET {assignments}, version = version + 1 WHERE seq = ?",  # noqa: S608
        [*columns.values(), seq],
    )


def save_part(
    connection: sqlite3.Connection, seq: int, kind: PartKind, number: int, payload: bytes
) -> None:
    """Store a part of a job, replacing one with the same number."""
    connection.execute(
        "INSERT OR REPLACE INTO job_parts VALUES (?, ?, ?, ?)", [seq, kind, number, payload]
    )


def drop_parts(connection: sqlite3.Connection, seq: int, kind: PartKind, above: int = -1) -> None:
    """Remove the parts of a kind with numbers above this one."""
    connection.execute(
        "DELETE FROM job_parts WHERE job_seq = ? AND kind = ? AND number > ?", [seq, kind, above]
    )


def last_part(connection: sqlite3.Connection, seq: int, kind: PartKind) -> int:
    """Return the number of the last part of a kind, or 0 if there is none."""
    sql = "SELECT max(number) FROM job_parts WHERE job_seq = ? AND kind = ?"
    return connection.execute(sql, [seq, kind]).fetchone()[0] or 0


def read_parts(
    connection: sqlite3.Connection, job: JobKind, seq: int, kind: PartKind, model: type[M]
) -> tuple[M, ...]:
    """Return the packed parts of a kind, in order.

    Raises:
        RecordDamaged: A part can't be read.

    """
    sql = "SELECT payload FROM job_parts WHERE job_seq = ? AND kind = ? ORDER BY number"
    rows = connection.execute(sql, [seq, kind])
    with readable(connection, job, seq):
        return tuple(model.model_validate_json(unpack(row[0])) for row in rows)


def pack(text: str, level: int = 6) -> bytes:
    """Compress a long text.

    An iteration repeats the words of its answer, so it shrinks to a sixth.
    """
    return zlib.compress(text.encode(), level)


def unpack(packed: bytes) -> str:
    """Decompress a text from ``pack``."""
    return zlib.decompress(packed).decode()


@contextlib.contextmanager
def readable(
    connection: sqlite3.Connection, kind: JobKind, seq: int, hint: str | None = None
) -> Iterator[None]:
    """Raise RecordDamaged if the stored content of a job can't be read.

    The error names the run and its case, or the screening.
    """
    try:
        yield
    except (zlib.error, ValueError, TypeError) as error:  # pydantic's errors are ValueErrors
        sql = (
            "SELECT jobs.id, cases.id FROM jobs LEFT JOIN cases ON cases.seq = case_seq WHERE"
            " jobs.seq = ?"
        )
        job, case = connection.execute(sql, [seq]).fetchone() or (f"number {seq}", None)
        subject = f"{kind} {job!r}" + (f" of case {case or 'unknown'!r}" if kind == "run" else "")
        why = type(error).__name__
        if isinstance(error, zlib.error):
            why = "it can't be decompressed"
        elif isinstance(error, ValidationError):
            first = error.errors(include_url=False, include_input=False, include_context=False)[0]
            why = ": ".join(part for part in (path_of(first["loc"]), first["msg"]) if part)
        elif type(error) is ValueError:
            why = str(error)
        hint = hint or f"{_AGAIN[kind]}, or restore a backup (`masis db restore`)."
        raise RecordDamaged(
            f"{subject} can't be read: its stored content is damaged or was altered ({why}). {hint}"
        ) from error


_UNFINISHED = "SELECT * FROM jobs WHERE kind = ? AND state != 'finished' AND state = ?"
"""The condition of jobs in a state that isn't ``finished``.

SQLite uses a partial index only if the query repeats the index's condition, so ``!= 'finished'``
must be stated.
"""


class StoredJobs(StorePart, Generic[E, P]):
    """The jobs of one kind in a store, with the operations that runs and screenings share."""

    kind: ClassVar[JobKind]
    event_type: type[E]

    def on_change(self, connection: sqlite3.Connection, job: sqlite3.Row) -> None:
        """Update the records that depend on a job's state, in the transaction that changed it."""

    def on_interrupted(self, connection: sqlite3.Connection, job: sqlite3.Row, at: str) -> None:
        """Record that a job was interrupted. Called inside the transaction that sets the state."""

    def row(self, connection: sqlite3.Connection, job_id: str) -> sqlite3.Row:
        """Return the row of a job.

        Raises:
            UnknownRecord: There is no such job.

        """
        return job_row(connection, self.kind, job_id)

    def assert_exists(self, job_id: str) -> None:
        """Raise UnknownRecord if there is no such job."""
        with self._database.reading() as connection:
            self.row(connection, job_id)

    def unfinished_row(self, connection: sqlite3.Connection, job_id: str) -> sqlite3.Row:
        """Return the row of a job that can still be written.

        Raises:
            UnknownRecord: There is no such job.
            StoreError: It is finished.

        """
        row = self.row(connection, job_id)
        if row["state"] == "finished":
            raise StoreError(
                f"{self.kind} {job_id!r} is finished, and a result is never overwritten."
            )
        return row

    def finished_row(self, connection: sqlite3.Connection, job_id: str) -> sqlite3.Row:
        """Return the row of a job with a result.

        Raises:
            UnknownRecord: There is no such job.
            Removed: Its content was removed.
            StoreError: It has no result yet.

        """
        row = self.row(connection, job_id)
        assert_not_removed(connection, row)
        if row["payload"] is None:
            raise StoreError(
                f"{self.kind} {job_id!r} is {row['state']}, not finished. Only its progress can be"
                " read."
            )
        return row

    def begin(
        self,
        connection: sqlite3.Connection,
        job_id: str,
        columns: Mapping[str, Any],
        at: str | None = None,
        owner: Owner | None = None,
    ) -> None:
        """Insert a new running job, owned by this process unless an owner is given.

        Raises:
            StoreError: The id is taken.

        """
        if connection.execute(
            "SELECT 1 FROM jobs WHERE id = ? AND kind = ?", [job_id, self.kind]
        ).fetchone():
            raise StoreError(
                f"{self.kind} {job_id!r} has been started before. Resume it, or take a new id."
            )
        at = at or self._database.now()
        values: dict[str, Any] = {
            "kind": self.kind,
            "id": job_id,
            "state": "running",
            "owner": json.dumps(owner or process_owner.this_process()),
            "started_at": at,
            "seen_at": at,
            **columns,
        }
        insert(connection, "jobs", values)
        self.on_change(connection, self.row(connection, job_id))

    def progress(self, job_id: str) -> P:
        """Return the progress of a job.

        Raises:
            UnknownRecord: There is no such job.
            Removed: Its content was removed.

        """
        raise NotImplementedError

    def resume(self, job_id: str) -> P:
        """Resume an interrupted job in this process and return its progress.

        Raises:
            UnknownRecord: There is no such job.
            Removed: Its content was removed.
            StoreError: It is finished, or a living process runs it.

        """
        with self._database.transaction(durable=False) as connection:
            job = self.row(connection, job_id)
            assert_not_removed(connection, job)
            if job["state"] == "finished":
                raise StoreError(
                    f"{self.kind} {job_id!r} is finished and can't be resumed. Start a new one."
                )
            if job["state"] == "running" and not self._is_lost(job):
                holder = Owner(*json.loads(job["owner"]))
                raise StoreError(
                    f"{self.kind} {job_id!r} is running in process {holder.pid} on {holder.host}."
                    " Wait for it, or cancel it."
                )
            update_job(
                connection,
                job["seq"],
                state="running",
                # Each start is a separate row in the log of executions.
                starts=job["starts"] + 1,
                owner=json.dumps(process_owner.this_process()),
                seen_at=self._database.now(),
                ended_at=None,
                why="",
                cancel_requested=0,
            )
            self.on_change(connection, job)
        return self.progress(job_id)

    def append_event(self, event: E) -> E:
        """Store an event and return it.

        If its number is taken, it gets the number after the last one.
        """
        return self.append_events([event])[0]

    def append_events(self, events: Iterable[E]) -> list[E]:
        """Store events in one transaction."""
        stored: list[E] = []
        with self._database.transaction(durable=False) as connection:
            for job_id, of_job in groupby(events, key=attrgetter(f"{self.kind}_id")):
                seq = self.row(connection, job_id)["seq"]
                last = last_part(connection, seq, "event")
                for event in of_job:
                    # A resumed job may number its events from an older state than the stored one.
                    last = max(event.seq, last + 1)
                    stored.append(
                        event if event.seq == last else event.model_copy(update={"seq": last})
                    )
                    save_part(connection, seq, "event", last, stored[-1].model_dump_json().encode())
                self.record_sign_of_life(connection, seq)
        return stored

    def events(self, job_id: str) -> tuple[E, ...]:
        """Return the events of a job, in order.

        Raises:
            UnknownRecord: There is no such job.

        """
        with self._database.reading() as connection:
            rows = connection.execute(
                "SELECT payload FROM job_parts WHERE job_seq = ? AND kind = 'event' ORDER BY"
                " number",
                [self.row(connection, job_id)["seq"]],
            )
            return tuple(self.event_type.model_validate_json(row[0]) for row in rows)

    def abandon(self, job_id: str, why: str) -> None:
        """Mark a running job as interrupted, so that it can be resumed.

        A finished job stays finished.
        """
        with self._database.transaction(durable=False) as connection:
            job = self.row(connection, job_id)
            if job["state"] == "running":
                self._interrupt(connection, job, why)

    def mark_lost(self) -> tuple[str, ...]:
        """Mark jobs whose process has ended as interrupted, and return their ids."""
        lost = [
            row["id"]
            for row in self._database.execute(_UNFINISHED, [self.kind, "running"])
            if self._is_lost(row)
        ]
        if lost:
            with self._database.transaction(durable=False) as connection:
                for job_id in lost:
                    job = self.row(connection, job_id)
                    # Checked again, because another process may have resumed it before this
                    # transaction began.
                    if job["state"] == "running" and self._is_lost(job):
                        why = f"The process that ran it ended before the {self.kind} did."
                        self._interrupt(connection, job, why)
        return tuple(lost)

    def in_state(self, state: Literal["running", "interrupted"]) -> tuple[str, ...]:
        """Return the ids of jobs in this state with content, newest first."""
        rows = self._database.execute(
            f"{_UNFINISHED} AND removed_by IS NULL ORDER BY seq DESC", [self.kind, state]
        )
        return tuple(row["id"] for row in rows)

    def request_cancel(self, job_id: str) -> None:
        """Ask the process that runs the job to stop between two steps.

        Raises:
            UnknownRecord: There is no such job.

        """
        with self._database.transaction(durable=False) as connection:
            seq = self.row(connection, job_id)["seq"]
            connection.execute("UPDATE jobs SET cancel_requested = 1 WHERE seq = ?", [seq])

    def cancel_requested(self, job_id: str) -> bool:
        """Return whether a person asked the job to stop.

        Raises:
            UnknownRecord: There is no such job.

        """
        with self._database.reading() as connection:
            sql = "SELECT cancel_requested FROM jobs WHERE id = ? AND kind = ?"
            row = connection.execute(sql, [job_id, self.kind]).fetchone() or self.row(
                connection, job_id
            )
            return bool(row["cancel_requested"])

    def record_sign_of_life(self, connection: sqlite3.Connection, seq: int) -> None:
        """Update the time at which the job was last seen alive."""
        connection.execute("UPDATE jobs SET seen_at = ? WHERE seq = ?", [self._database.now(), seq])

    def _is_lost(self, job: sqlite3.Row) -> bool:
        alive = process_owner.is_alive(Owner(*json.loads(job["owner"])))
        if alive is not None:
            return not alive
        silence = datetime.fromisoformat(self._database.now()) - datetime.fromisoformat(
            job["seen_at"]
        )
        # A sign of life from the future was recorded before the clock was set back.
        return abs(silence.total_seconds()) > process_owner.SILENCE_S

    def _interrupt(self, connection: sqlite3.Connection, job: sqlite3.Row, why: str) -> None:
        at = self._database.now()
        update_job(connection, job["seq"], state="interrupted", ended_at=at, why=why)
        self.on_interrupted(connection, job, at)
        self.on_change(connection, job)


class StoredScreenings(StoredJobs[ScreeningEvent, P]):
    """The screenings of a store, as far as every database needs them. ``masis.screening.store``
    adds their rounds and results.
    """

    kind = "screening"
    event_type = ScreeningEvent

"""The work of a team: leases on cases, policies, rubrics, saved views, and the work of each person.

A claim runs in a transaction that holds the write lock, so only one of two simultaneous requests
gets the lease. Leases expire, so an absent reviewer can't block a case.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable
from datetime import timedelta
from typing import Any, TypeVar

from masis.errors import CaseHeld, StoreError
from masis.schema.base import Record, add_time
from masis.schema.team import (
    CaseWork,
    LakeSample,
    Lease,
    MachineShown,
    QueuePolicy,
    SavedView,
    TeamRecord,
)
from masis.store.audits.conditions import is_filled_by_audit
from masis.store.audits.queue import case_seq
from masis.store.core.chained_log import canonical_json, sha256
from masis.store.core.connections import StorePart
from masis.store.core.sql import append, record_of
from masis.store.records import ReviewQueue
from masis.store.reviews import queues
from masis.store.reviews.queues import FIRST_QUEUE, work_in_queue
from masis.store.reviews.states import RELABEL_COPY, policy_of, refresh
from masis.store.reviews.visibility import (
    UNDECIDED,
    hidden_by_queues,
    hidden_sample,
    strictest_shown,
)

T = TypeVar("T", bound=TeamRecord)


def hidden_cases(reviewer: str, shown: MachineShown) -> tuple[str, list[Any]]:
    """Return the SQL condition of the cases whose verdict the team's policy hides from a
    reviewer.
    """
    sql, values = f"cases.state IN ({', '.join('?' * len(UNDECIDED))})", list[Any](UNDECIDED)
    if shown == "after":
        sql += f" AND NOT EXISTS ({queues.DECIDED_IN_FIRST} AND work.who = ?)"
        values.append(reviewer)
    return sql, values


class Team(StorePart):
    """Leases, policies, rubrics, views and the work on cases, in a store."""

    # leases

    def claim(self, case_id: str, reviewer: str, minutes: int, queue: str = FIRST_QUEUE) -> Lease:
        """Lease a case to a reviewer, or extend the reviewer's lease on it.

        The policy of ``queue`` says how many reviewers can have the case at once.

        Raises:
            UnknownRecord: There is no such case.
            CaseHeld: Other reviewers already hold all the places that the policy allows.

        """
        with self._database.transaction(durable=False) as connection:
            seq, now = case_seq(connection, case_id), self._database.now()
            # Expired leases are removed here, so that no background job is needed.
            # So are those from the future, since the clock was set back: they'd last until then.
            connection.execute(
                "DELETE FROM leases WHERE case_seq = ?1 AND (until <= ?2 OR taken_at > ?2)",
                [seq, now],
            )
            check_free(connection, seq, reviewer, now, queue)
            until = add_time(now, timedelta(minutes=minutes))
            connection.execute(
                """INSERT INTO leases VALUES (?, ?, ?, ?)
                   ON CONFLICT (case_seq, reviewer) DO UPDATE
                       SET until = max(until, excluded.until)""",
                [seq, reviewer, now, until],
            )
            return next(
                lease for lease in _leases(connection, seq, now) if lease.reviewer == reviewer
            )

    def release(self, case_id: str, reviewer: str) -> None:
        """End the reviewer's lease on a case, if there is one. Raises UnknownRecord."""
        with self._database.transaction(durable=False) as connection:
            lease = [case_seq(connection, case_id), reviewer]
            connection.execute("DELETE FROM leases WHERE case_seq = ? AND reviewer = ?", lease)

    def hand_over(self, case_id: str, giver: str, taker: str) -> None:
        """Move the lease on a case, if there is one, to another name. Raises UnknownRecord."""
        with self._database.transaction(durable=False) as connection:
            connection.execute(
                # OR REPLACE, because the new name may have a lease on the case already.
                "UPDATE OR REPLACE leases SET reviewer = ? WHERE case_seq = ? AND reviewer = ?",
                [taker, case_seq(connection, case_id), giver],
            )

    def leases(self) -> tuple[Lease, ...]:
        """Return all current leases, in the order in which they end."""
        with self._database.reading() as connection:
            return tuple(_leases(connection, None, self._database.now()))

    def assert_free(self, case_id: str, reviewer: str, queue: str = FIRST_QUEUE) -> None:
        """Raise CaseHeld if others hold the case.

        Call it in the transaction that records the decision.
        """
        with self._database.transaction() as connection:
            seq = case_seq(connection, case_id)
            check_free(connection, seq, reviewer, self._database.now(), queue)

    def is_free(self, case_id: str, reviewer: str, queue: str = FIRST_QUEUE) -> bool:
        """Return whether others leave this reviewer a place on a case.

        Raises:
            UnknownRecord: There is no such case.

        """
        with self._database.reading() as connection:
            try:
                seq = case_seq(connection, case_id)
                check_free(connection, seq, reviewer, self._database.now(), queue)
            except CaseHeld:
                return False
        return True

    # who has done what

    def work(self, case_id: str, queue: str | None = None) -> CaseWork:
        """Return the leases, assignees, tags and deciders of a case.

        The deciders and their policy are those of ``queue``. By default it's the queue whose
        reviewers differ, or else the first one.

        Raises UnknownRecord.
        """
        with self._database.reading() as connection:
            seq = case_seq(connection, case_id)
            row = connection.execute("SELECT * FROM cases WHERE seq = ?", [seq]).fetchone()
            if queue is None:
                queue = queues.disputed_queue(connection, seq)
            who: dict[str, list[str]] = {}
            for kind, name in connection.execute(
                "SELECT kind, who FROM case_work WHERE case_seq = ? ORDER BY entry_seq, who", [seq]
            ):
                who.setdefault(kind, []).append(name)
            policy = (
                policy_of(row["policy"])
                if row["policy"] or row["planted"] == RELABEL_COPY
                else in_force(connection, QueuePolicy).for_case(case_id)
            )
            if queue:
                in_queue = work_in_queue(connection, row, queue)
                named = queues.named_queue(connection, queue)
                policy = in_queue.policy if in_queue.made else named.policy.for_case(case_id)
                return CaseWork(
                    case_id=case_id,
                    wanted=policy.reviewers if policy else 1,
                    pending=max(in_queue.pending, row["pending"]),
                    policy=policy,
                    decided_by=tuple(sorted(in_queue.made, key=in_queue.made.__getitem__)),
                    assignees=tuple(who.get("assigned", ())),
                    tags=tuple(who.get("tagged", ())),
                    leases=tuple(_leases(connection, seq, self._database.now())),
                    skipped_by=tuple(who.get("skipped", ())),
                )
            made = work_in_queue(connection, row, FIRST_QUEUE).made
            return CaseWork(
                case_id=case_id,
                wanted=row["wanted"],
                pending=row["pending"],
                policy=policy if row["policy"] or not made else None,
                decided_by=tuple(sorted(made, key=made.__getitem__)),
                assignees=tuple(who.get("assigned", ())),
                tags=tuple(who.get("tagged", ())),
                leases=tuple(_leases(connection, seq, self._database.now())),
                skipped_by=tuple(who.get("skipped", ())),
            )

    def count_cases(self, kind: str, *, undecided: bool = False) -> dict[str, int]:
        """Count the cases per reviewer or tag.

        A decision on a shared case counts once all its decisions are made.

        Args:
            kind: ``decided``, ``assigned``, ``skipped`` or ``tagged``.
            undecided: Whether to count only the cases that aren't settled.

        """
        sql = """SELECT who, count(*) FROM case_work JOIN cases ON cases.seq = case_seq
            WHERE kind = ? AND (kind <> 'decided' OR pending = 0)
                AND (NOT ? OR standing <> 'decided') GROUP BY who"""
        return dict(self._database.cached_rows(sql, [kind, undecided]))

    def hides_machine_from(self, reviewer: str) -> bool:
        """Return whether a policy hides the verdict of any audited case from a reviewer."""
        with self._database.reading() as connection:
            parts = [hidden_by_queues(connection, reviewer)]
            if (shown := in_force(connection, QueuePolicy).machine) != "first":
                parts.append(hidden_cases(reviewer, shown))
            return any(
                connection.execute(
                    f"SELECT 1 FROM cases WHERE run_seq IS NOT NULL AND {sql} LIMIT 1",  # noqa: S608
                    values,
                ).fetchone()
                for sql, values in parts
                if sql
            )

    def strictest_shown(self) -> MachineShown:
        """Return when the strictest policy of all queues shows the audit's verdict."""
        with self._database.reading() as connection:
            return strictest_shown(connection)

    def is_hidden_by_queue(self, case_id: str, reviewer: str) -> bool:
        """Return whether a named queue hides the verdict on a case from a reviewer.

        Raises UnknownRecord.
        """
        with self._database.reading() as connection:
            seq = case_seq(connection, case_id)
            sql, values = hidden_by_queues(connection, reviewer)
            # A superseded case is decided by its newer version.
            if not sql:
                return False
            sql = f"SELECT 1 FROM cases WHERE seq = ? AND state <> 'superseded' AND {sql}"  # noqa: S608
            return connection.execute(sql, [seq, *values]).fetchone() is not None

    # named queues

    def queues(self) -> tuple[ReviewQueue, ...]:
        """Return all named queues, archived ones too, oldest first."""
        with self._database.reading() as connection:
            return queues.read_queues(connection)

    def queue(self, name: str) -> ReviewQueue:
        """Return a named queue by its id or its name. Raises UnknownRecord."""
        with self._database.reading() as connection:
            return queues.named_queue(connection, name)

    def queues_of_case(self, case_id: str, among: Iterable[ReviewQueue]) -> tuple[ReviewQueue, ...]:
        """Return which of these queues hold a case. Raises UnknownRecord."""
        with self._database.reading() as connection:
            seq = case_seq(connection, case_id)
            return tuple(queues.queues_of_case(connection, seq, [*among]))

    def waits_in(self, case_id: str, queue: ReviewQueue) -> bool:
        """Return whether a case still needs decisions in a queue. Raises UnknownRecord."""
        with self._database.reading() as connection:
            sql, values = queues.where_waits(queue)
            sql = f"SELECT 1 FROM cases WHERE cases.seq = ? AND {sql}"  # noqa: S608
            found = connection.execute(sql, [case_seq(connection, case_id), *values])
            return found.fetchone() is not None

    def has_settled(self, case_id: str, queue: ReviewQueue) -> bool:
        """Return whether a case has all its decisions in a queue. Raises UnknownRecord."""
        with self._database.reading() as connection:
            found = connection.execute(
                """SELECT 1 FROM queue_states
                    WHERE case_seq = ? AND queue = ? AND state IN ('settled', 'differ')""",
                [case_seq(connection, case_id), queue.id],
            )
            return found.fetchone() is not None

    def disputed_queue(self, case_id: str) -> str | None:
        """Return the id of the named queue whose reviewers differ about a case, or None.

        Raises UnknownRecord.
        """
        with self._database.reading() as connection:
            disputed = queues.disputed_queue(connection, case_seq(connection, case_id))
        return disputed or None

    def count_common(self, one: ReviewQueue, other: ReviewQueue, viewer: str) -> int:
        """Count the cases that two queues hold, as a reviewer may know it."""
        with self._database.reading() as connection:
            (first, values), (second, more) = queues.in_queue(one), queues.in_queue(other)
            sql = f"SELECT count(*) FROM cases WHERE {first} AND {second}"  # noqa: S608
            if any(is_filled_by_audit(queue.cases) for queue in (one, other)):
                sql += " AND cases.seq NOT IN (SELECT value FROM json_each(?))"
                more = [*more, json.dumps(hidden_sample(connection, viewer))]
            return int(connection.execute(sql, [*values, *more]).fetchone()[0])

    def case_ids_in(self, queue: ReviewQueue) -> list[str]:
        """Return the ids of all cases that a queue holds."""
        with self._database.reading() as connection:
            sql, values = queues.in_queue(queue)
            rows = connection.execute(f"SELECT id FROM cases WHERE {sql}", values)  # noqa: S608
            return [row[0] for row in rows]

    def median_seconds(self, queue: str, reviewer: str) -> float | None:
        """Return a person's median time for a decision in a named queue, or None."""
        with self._database.reading() as connection:
            return queues.median_seconds(connection, queue, reviewer)

    def put_queue(self, by: str, queue: ReviewQueue) -> ReviewQueue:
        """Add a named queue, or a new version of it, and derive the cases again that it held."""
        with self._database.transaction() as connection:
            known = {known.id: known for known in queues.read_queues(connection)}
            before = known[queue.id].version if queue.id in known else 0
            queue = queue.model_copy(update={"version": before + 1})
            self._append(connection, by, queue.kind, queue.id, queue)
            _refresh_held(connection, queue.id)
        return queue

    def queue_history(self, queue_id: str) -> list[tuple[str, str, ReviewQueue]]:
        """Return the time, author and content of each version of a queue, oldest first."""
        rows = self._database.execute(
            "SELECT at, by, payload FROM team_records WHERE kind = 'queue' AND name = ?"
            " ORDER BY seq",
            [queue_id],
        )
        return [(at, by, ReviewQueue.model_validate_json(payload)) for at, by, payload in rows]

    def oldest_skipped(self, reviewer: str, among: Iterable[str]) -> str | None:
        """Return the case that the reviewer skipped longest ago, or None if none was skipped."""
        row = self._database.row(
            """SELECT id FROM case_work JOIN cases ON seq = case_seq WHERE kind = 'skipped'
               AND who = ? AND id IN (SELECT value FROM json_each(?)) ORDER BY entry_seq LIMIT 1""",
            [reviewer, json.dumps(list(among))],
        )
        return None if row is None else str(row[0])

    def own_work_among(self, reviewer: str, among: Iterable[str]) -> frozenset[tuple[str, str]]:
        """Return which of these cases are ``assigned`` to the reviewer, or ``skipped`` by them.

        Each is the id of the case and one of these two words.
        """
        rows = self._database.execute(
            """SELECT cases.id, kind FROM json_each(?) AS among
               CROSS JOIN cases ON cases.id = among.value
               CROSS JOIN case_work ON case_seq = cases.seq
                   AND kind IN ('assigned', 'skipped') AND who = ?""",
            [json.dumps(list(among)), reviewer],
        )
        return frozenset((row[0], row[1]) for row in rows)

    # policies, rubrics, label types, views: the newest record counts

    def in_force(self, kind: type[T], version: int | None = None) -> T:
        """Return the policy, rubric or label types in force, or an earlier version.

        Version 0 is the default. Raises StoreError if the version doesn't exist.
        """
        with self._database.reading() as connection:
            if version is None:
                return in_force(connection, kind)
        records = [kind(), *(record for *_, record in self.history(kind))]
        if version not in range(len(records)):
            raise StoreError(f"there is no version {version} of the {kind.kind.replace('_', ' ')}.")
        return records[version]

    def history(self, kind: type[T]) -> list[tuple[str, str, T]]:
        """Return the time, author and content of each record of a kind, oldest first."""
        sql = "SELECT at, by, payload FROM team_records WHERE kind = ? ORDER BY seq"
        rows = self._database.execute(sql, [kind.kind])
        return [(at, by, kind.model_validate_json(payload)) for at, by, payload in rows]

    def put_in_force(self, by: str, record: T) -> T:
        """Set a policy, a rubric or label types for later decisions."""
        with self._database.transaction() as connection:
            record = record.model_copy(
                update={"version": in_force(connection, type(record)).version + 1}
            )
            self._append(connection, by, record.kind, "", record)
            if isinstance(record, QueuePolicy):
                redraw(connection, record)
                _refresh_held(connection, FIRST_QUEUE)
        return record

    def save_view(self, by: str, view: SavedView) -> None:
        """Save a view, replacing one with the same name and owner. ``removed`` deletes it."""
        with self._database.transaction() as connection:
            self._append(connection, by, VIEW, f"{view.owner}\n{view.name}", view)

    def views(self, reviewer: str) -> tuple[SavedView, ...]:
        """Return the views of the whole team and of one reviewer, sorted by name."""
        rows = self._database.execute(
            "SELECT payload FROM team_records WHERE kind = 'view' AND seq IN "
            "(SELECT max(seq) FROM team_records WHERE kind = 'view' GROUP BY name)"
        )
        views = [SavedView.model_validate_json(row[0]) for row in rows]
        shown = [view for view in views if not view.removed and view.owner in ("", reviewer)]
        return tuple(sorted(shown, key=lambda view: (view.name.casefold(), view.owner)))

    def searches(self) -> dict[int, str]:
        """Return the words that views search for, by the numbers of the views."""
        sql = "SELECT seq, payload ->> '$.parameters.q' FROM team_records WHERE kind = 'view'"
        return {seq: words for seq, words in self._database.execute(sql) if words}

    def forget_views(self, views: Iterable[int]) -> None:
        """Erase the names and search words of views, including earlier versions of them."""
        with self._database.transaction() as connection:
            for seq in views:
                empty = SavedView(name=f"redacted {seq}", removed=True)
                connection.execute(
                    "UPDATE team_records SET name = ?, payload = ? WHERE kind = 'view' AND seq <= ?"
                    " AND (name, payload ->> '$.owner') = (SELECT name, payload ->> '$.owner' FROM"
                    " team_records WHERE seq = ?)",
                    [empty.name, empty.model_dump_json(), seq, seq],
                )

    def note_sample(self, by: str, sample: LakeSample) -> None:
        """Record which auto-accepted cases of a lake were imported. Repeating it has no effect."""
        with self._database.transaction() as connection:
            # In the same transaction, so that two imports at once can't both add it.
            if sample.model_dump_json() not in self._payloads("sample"):
                self._append(connection, by, "sample", sample.place, sample)

    def samples(self) -> tuple[LakeSample, ...]:
        """Return the samples that were imported from lakes, oldest first."""
        return tuple(map(LakeSample.model_validate_json, self._payloads("sample")))

    def _payloads(self, kind: str) -> list[str]:
        rows = self._database.execute(
            "SELECT payload FROM team_records WHERE kind = ? ORDER BY seq", [kind]
        )
        return [row[0] for row in rows]

    def _append(
        self, connection: sqlite3.Connection, by: str, kind: str, name: str, record: Record
    ) -> None:
        payload = record.model_dump_json()
        row = {"at": self._database.now(), "by": by, "kind": kind, "name": name, "payload": payload}
        digest = None if kind == VIEW else _team_digest(last_digest(connection), [*row.values()])
        append(connection, "team_records", row | {"digest": digest})


VIEW = "view"
"""Views aren't rules, so they aren't part of the chain of digests."""


def _team_digest(before: str, row: Iterable[object]) -> str:
    return sha256(f"{before}\n{canonical_json(list(row))}")


def last_digest(connection: sqlite3.Connection) -> str:
    """Return the digest of everything the team has set, or "" if nothing was set."""
    sql = "SELECT digest FROM team_records WHERE digest IS NOT NULL ORDER BY seq DESC LIMIT 1"
    row = connection.execute(sql).fetchone()
    return "" if row is None else str(row[0])


def digests(connection: sqlite3.Connection) -> tuple[set[str], list[str]]:
    """Recompute the digest after each record. Return these and messages about altered records."""
    known, altered, last = {""}, list[str](), ""
    sql = (
        "SELECT at, by, kind, name, payload, digest FROM team_records WHERE kind <> ? ORDER BY seq"
    )
    for *row, stored in connection.execute(sql, [VIEW]):
        last = _team_digest(last, row)
        known.add(last)
        if stored != last:
            altered.append(
                f"the {row[2].replace('_', ' ')} that was set at {row[0]} was altered, or one"
                " before it"
            )
    return known, altered


def _refresh_held(connection: sqlite3.Connection, queue: str) -> None:
    """Derive the cases again that were decided in a queue, or whose decisions it holds."""
    held = connection.execute(
        """SELECT DISTINCT log.case_seq FROM decision_log AS log
            JOIN decision_payloads ON entry_seq = log.seq
            WHERE log.case_seq IN (SELECT case_seq FROM queue_states)
                AND instr(payload, '"held_by":[') AND instr(payload, ?)
            UNION SELECT case_seq FROM decision_log WHERE queue = ?""",
        [json.dumps(queue), queue],
    ).fetchall()
    for (seq,) in held:
        refresh(connection, seq)


def redraw(connection: sqlite3.Connection, policy: QueuePolicy) -> None:
    """Apply a policy's number of decisions to every case without a decision in the first queue."""
    rows = connection.execute(
        f"SELECT seq, id, wanted FROM cases WHERE planted <> {RELABEL_COPY} "  # noqa: S608
        f"AND NOT EXISTS ({queues.DECIDED_IN_FIRST})"
    )
    changed = [
        (needed, seq)
        for seq, case_id, before in rows
        if (needed := policy.decisions_needed(case_id)) != before
    ]
    connection.executemany("UPDATE cases SET wanted = ? WHERE seq = ?", changed)


def check_free(
    connection: sqlite3.Connection, seq: int, reviewer: str, now: str, queue: str = FIRST_QUEUE
) -> None:
    """Raise CaseHeld if the case already has all its reviewers in a queue.

    A reviewer who decided a shared case may change the decision while others are pending.
    """
    leases = _leases(connection, seq, now)
    if any(lease.reviewer == reviewer for lease in leases):
        return
    case = connection.execute("SELECT * FROM cases WHERE seq = ?", [seq]).fetchone()
    work = work_in_queue(connection, case, queue)
    decided, policy, wanted = set(work.made), work.policy, case["wanted"]
    if queue:
        if not work.made:
            policy = queues.named_queue(connection, queue).policy.for_case(case["id"])
        wanted = policy.reviewers if policy else 1
    shared = policy is not None
    if shared and reviewer in decided:
        return
    if shared and len(decided) >= wanted:
        raise CaseHeld(f"all {wanted} decisions that this case wants are made: take another one.")
    taken = len(decided | {lease.reviewer for lease in leases}) if shared else len(leases)
    if leases and taken >= wanted:
        first = leases[0]
        raise CaseHeld(
            f"{first.reviewer} has taken case {first.case_id!r} for decision until"
            f" {first.until[11:16]} UTC. Take another one, or come back then.",
            by=first.reviewer,
            until=first.until,
        )


def _leases(connection: sqlite3.Connection, seq: int | None, now: str) -> list[Lease]:
    rows = connection.execute(
        "SELECT cases.id AS case_id, leases.reviewer, taken_at, until FROM leases JOIN cases ON"
        " cases.seq = case_seq WHERE until > ?1 AND taken_at <= ?1"
        " AND (?2 IS NULL OR case_seq = ?2) ORDER BY until, leases.reviewer",
        [now, seq],
    )
    return [record_of(Lease, row) for row in rows]


def in_force(connection: sqlite3.Connection, kind: type[T]) -> T:
    """Return the policy, rubric or label types in force, or the defaults if none were set."""
    row = connection.execute(
        "SELECT payload FROM team_records WHERE kind = ? ORDER BY seq DESC LIMIT 1", [kind.kind]
    ).fetchone()
    return kind() if row is None else kind.model_validate_json(row[0])

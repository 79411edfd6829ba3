"""The work of a team: leases on cases, policies, rubrics, saved views, and the work of each person.

A lease is taken inside a transaction that holds the write lock, so that of two people who ask at
once one gets it. It runs out by itself: an absent reviewer blocks nobody.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable
from datetime import timedelta
from typing import Any, TypeVar

from masis.errors import CaseHeld, StoreError
from masis.schema.base import Record, add_time
from masis.schema.review import CaseState
from masis.schema.team import (
    CaseWork,
    LakeSample,
    Lease,
    MachineShown,
    QueuePolicy,
    SavedView,
    TeamRecord,
)
from masis.store.audits.queue import case_seq
from masis.store.core.chained_log import canonical_json, sha256
from masis.store.core.connections import StorePart
from masis.store.core.sql import append, record_of
from masis.store.reviews.states import policy_of

T = TypeVar("T", bound=TeamRecord)

UNDECIDED: tuple[CaseState, ...] = (
    "new",
    "running",
    "interrupted",
    "needs_review",
    "needs_adjudication",
    "accepted",
)
"""The states in which no person's decision stands."""


def hidden_cases(reviewer: str, shown: MachineShown) -> tuple[str, list[Any]]:
    """The condition on ``cases``, with its values, of those whose verdict a policy hides from a
    reviewer.

    It says in SQL for many cases what ``masis.services.cases.machine_hidden`` says of one.
    """
    sql, values = f"cases.state IN ({', '.join('?' * len(UNDECIDED))})", list[Any](UNDECIDED)
    if shown == "after":
        sql += (
            " AND NOT EXISTS (SELECT 1 FROM case_work WHERE case_work.case_seq = cases.seq"
            " AND case_work.kind = 'decided' AND case_work.who = ?)"
        )
        values.append(reviewer)
    return sql, values


class Team(StorePart):
    """Leases, policies, rubrics, views and the work on cases, in a store."""

    # leases

    def claim(self, case_id: str, reviewer: str, minutes: int) -> Lease:
        """Take a case for decision, or extend the lease on it that the reviewer has.

        Raises UnknownRecord, and CaseHeld where as many others have it, or have decided it, as are
        wanted.
        """
        with self._database.transaction(durable=False) as connection:
            seq, now = case_seq(connection, case_id), self._database.now()
            connection.execute("DELETE FROM leases WHERE case_seq = ? AND until <= ?", [seq, now])
            check_free(connection, seq, reviewer, now)
            until = add_time(now, timedelta(minutes=minutes))
            connection.execute(
                """INSERT INTO leases VALUES (?, ?, ?, ?)
                   ON CONFLICT (case_seq, reviewer) DO UPDATE SET until = max(until, excluded.until)""",
                [seq, reviewer, now, until],
            )
            return next(
                lease for lease in _leases(connection, seq, now) if lease.reviewer == reviewer
            )

    def release(self, case_id: str, reviewer: str) -> None:
        """Give a case back; nothing happens where the reviewer has no lease on it. Raises
        UnknownRecord.
        """
        with self._database.transaction(durable=False) as connection:
            lease = [case_seq(connection, case_id), reviewer]
            connection.execute("DELETE FROM leases WHERE case_seq = ? AND reviewer = ?", lease)

    def hand_over(self, case_id: str, giver: str, taker: str) -> None:
        """Put the lease that one name has on a case under another; nothing happens where it has
        none.

        Raises UnknownRecord.
        """
        with self._database.transaction(durable=False) as connection:
            connection.execute(
                "UPDATE OR REPLACE leases SET reviewer = ? WHERE case_seq = ? AND reviewer = ?",
                [taker, case_seq(connection, case_id), giver],
            )

    def leases(self) -> tuple[Lease, ...]:
        """All leases that run, the one that ends first at the front."""
        with self._database.reading() as connection:
            return tuple(_leases(connection, None, self._database.now()))

    def assert_free(self, case_id: str, reviewer: str) -> None:
        """Raise CaseHeld where others have taken the case. Call it in the transaction
        that decides.
        """
        with self._database.transaction() as connection:
            check_free(connection, case_seq(connection, case_id), reviewer, self._database.now())

    # who has done what

    def work(self, case_id: str) -> CaseWork:
        """What the team knows about one case. Raises UnknownRecord."""
        with self._database.reading() as connection:
            seq = case_seq(connection, case_id)
            row = connection.execute("SELECT * FROM cases WHERE seq = ?", [seq]).fetchone()
            who: dict[str, list[str]] = {}
            for kind, name in connection.execute(
                "SELECT kind, who FROM case_work WHERE case_seq = ? ORDER BY entry_seq, who", [seq]
            ):
                who.setdefault(kind, []).append(name)
            policy = (
                policy_of(row["policy"])
                if row["policy"]
                else in_force(connection, QueuePolicy).for_case(case_id)
            )
            return CaseWork(
                case_id=case_id,
                wanted=row["wanted"],
                pending=row["pending"],
                policy=policy if row["policy"] or not who.get("decided") else None,
                decided_by=tuple(who.get("decided", ())),
                assignees=tuple(who.get("assigned", ())),
                tags=tuple(who.get("tagged", ())),
                leases=tuple(_leases(connection, seq, self._database.now())),
                skipped_by=tuple(who.get("skipped", ())),
            )

    def count_cases(self, kind: str, *, undecided: bool = False) -> dict[str, int]:
        """How many cases each name has: kind is ``decided``, ``assigned``, ``skipped`` or
        ``tagged``.

        Who has decided a shared case shows once all its decisions are made. ``undecided`` counts
        the cases that are not settled, as a queue lists them.
        """
        sql = """SELECT who, count(*) FROM case_work JOIN cases ON cases.seq = case_seq
            WHERE kind = ? AND (kind <> 'decided' OR pending = 0) AND (NOT ? OR standing <> 'decided') GROUP BY who"""
        return dict(self._database.cached_rows(sql, [kind, undecided]))

    def hides_machine_from(self, reviewer: str, shown: MachineShown) -> bool:
        """Whether there is an audited case whose verdict a policy that shows it ``shown`` hides
        from a reviewer.
        """
        if shown == "first":
            return False
        sql, values = hidden_cases(reviewer, shown)
        hidden = self._database.row(
            f"SELECT 1 FROM cases WHERE run_seq IS NOT NULL AND {sql} LIMIT 1",  # noqa: S608
            values,
        )
        return hidden is not None

    def oldest_skipped(self, reviewer: str, among: Iterable[str]) -> str | None:
        """Of these cases the one that the reviewer skipped longest ago; None where they skipped
        none of them.
        """
        row = self._database.row(
            """SELECT id FROM case_work JOIN cases ON seq = case_seq WHERE kind = 'skipped' AND who = ?
               AND id IN (SELECT value FROM json_each(?)) ORDER BY entry_seq LIMIT 1""",
            [reviewer, json.dumps(list(among))],
        )
        return None if row is None else str(row[0])

    def assigned_among(self, reviewer: str, among: Iterable[str]) -> frozenset[str]:
        """Which of these cases are assigned to the reviewer."""
        rows = self._database.execute(
            """SELECT cases.id FROM json_each(?) AS among CROSS JOIN cases ON cases.id = among.value
               CROSS JOIN case_work ON case_seq = cases.seq AND kind = 'assigned' AND who = ?""",
            [json.dumps(list(among)), reviewer],
        )
        return frozenset(row[0] for row in rows)

    # policies, rubrics, label types, views: the newest record counts

    def in_force(self, kind: type[T], version: int | None = None) -> T:
        """Return the policy, rubric or label types in force, or an earlier version of them; 0 is
        the default.

        Raises StoreError where there is no such version.
        """
        with self._database.reading() as connection:
            if version is None:
                return in_force(connection, kind)
        records = [kind(), *(record for *_, record in self.history(kind))]
        if version not in range(len(records)):
            raise StoreError(f"there is no version {version} of the {kind.kind.replace('_', ' ')}.")
        return records[version]

    def history(self, kind: type[T]) -> list[tuple[str, str, T]]:
        """Return when, by whom and what was set of a kind, oldest first."""
        sql = "SELECT at, by, payload FROM team_records WHERE kind = ? ORDER BY seq"
        rows = self._database.execute(sql, [kind.kind])
        return [(at, by, kind.model_validate_json(payload)) for at, by, payload in rows]

    def put_in_force(self, by: str, record: T) -> T:
        """Set a policy, a rubric or label types from now on; decisions made before keep those they
        were made under.
        """
        with self._database.transaction() as connection:
            record = record.model_copy(
                update={"version": in_force(connection, type(record)).version + 1}
            )
            self._append(connection, by, record.kind, "", record)
            if isinstance(record, QueuePolicy):
                redraw(connection, record)
        return record

    def save_view(self, by: str, view: SavedView) -> None:
        """Save a view under its name, in place of one of the same name and owner; ``removed`` takes
        it away.
        """
        with self._database.transaction() as connection:
            self._append(connection, by, VIEW, f"{view.owner}\n{view.name}", view)

    def views(self, reviewer: str) -> tuple[SavedView, ...]:
        """The views of the whole team and of one reviewer, by name."""
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
        """Remove name and words of views for good, with those that each had replaced under its
        name.
        """
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
        """Note which of the auto-accepted cases of a lake were brought in; the same again changes
        nothing.
        """
        with self._database.transaction() as connection:
            if sample.model_dump_json() not in self._payloads("sample"):
                self._append(connection, by, "sample", sample.place, sample)

    def samples(self) -> tuple[LakeSample, ...]:
        """The samples that were brought in from lakes, oldest first."""
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
"""The kind of record that is nobody's rule."""


def _team_digest(before: str, row: Iterable[object]) -> str:
    return sha256(f"{before}\n{canonical_json(list(row))}")


def last_digest(connection: sqlite3.Connection) -> str:
    """Return the digest of all that the team has set, "" where that is nothing."""
    sql = "SELECT digest FROM team_records WHERE digest IS NOT NULL ORDER BY seq DESC LIMIT 1"
    row = connection.execute(sql).fetchone()
    return "" if row is None else str(row[0])


def digests(connection: sqlite3.Connection) -> tuple[set[str], list[str]]:
    """Return the digest after each record, as what is stored gives it, and which records don't fit
    theirs.
    """
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


def redraw(connection: sqlite3.Connection, policy: QueuePolicy) -> None:
    """Write how many decisions each case wants that nobody has decided yet."""
    rows = connection.execute(
        "SELECT seq, id, wanted FROM cases WHERE NOT EXISTS "
        "(SELECT 1 FROM case_work WHERE case_seq = seq AND kind = 'decided')"
    )
    changed = [
        (needed, seq)
        for seq, case_id, before in rows
        if (needed := policy.decisions_needed(case_id)) != before
    ]
    connection.executemany("UPDATE cases SET wanted = ? WHERE seq = ?", changed)


def check_free(connection: sqlite3.Connection, seq: int, reviewer: str, now: str) -> None:
    """Raise CaseHeld where so many others have the case that no decision is left for this reviewer.

    Who has decided a shared case may correct that while others' decisions are missing.
    """
    leases = _leases(connection, seq, now)
    if any(lease.reviewer == reviewer for lease in leases):
        return
    decided = {
        row[0]
        for row in connection.execute(
            "SELECT who FROM case_work WHERE case_seq = ? AND kind = 'decided'", [seq]
        )
    }
    wanted, shared = connection.execute(
        "SELECT wanted, policy IS NOT NULL FROM cases WHERE seq = ?", [seq]
    ).fetchone()
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
        " cases.seq = case_seq WHERE until > ?1 AND (?2 IS NULL OR case_seq = ?2) ORDER BY until,"
        " leases.reviewer",
        [now, seq],
    )
    return [record_of(Lease, row) for row in rows]


def in_force(connection: sqlite3.Connection, kind: type[T]) -> T:
    """Return the policy, rubric or label types in force; the defaults where none were set."""
    row = connection.execute(
        "SELECT payload FROM team_records WHERE kind = ? ORDER BY seq DESC LIMIT 1", [kind.kind]
    ).fetchone()
    return kind() if row is None else kind.model_validate_json(row[0])

"""The named queues of a team: the cases that each holds, and the work in them.

The first queue, which has all cases, is no record: its id is "", and its policy is the team's.
A named queue is a record of the team (``team_records``), so its versions are in the same chain of
digests as policies and rubrics. Which cases it has follows from its filter.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Collection
from statistics import median
from typing import NamedTuple

from masis.errors import UnknownRecord
from masis.schema.team import CasePolicy
from masis.store.audits.conditions import content_conditions, match
from masis.store.core.sql import Condition, join_conditions
from masis.store.records import ReviewQueue, clean_queue_name

FIRST_QUEUE = ""
"""The id of the first queue, which has all cases."""

COPIED = 2
"""``states.RELABEL_COPY``: a copy to be labeled again, which one person decides blind."""

POLICY_IN_FORCE = "SELECT payload FROM team_records WHERE kind = 'policy' ORDER BY seq DESC LIMIT 1"
TEAM_SHOWS = f"coalesce(({POLICY_IN_FORCE}) ->> '$.machine', 'first')"
"""When the team's policy shows the audit's verdict, as SQL (``MachineShown``)."""

DECIDED_IN_FIRST = """SELECT work.who FROM case_work AS work
    WHERE work.case_seq = cases.seq AND work.kind = 'decided'
        AND (NOT EXISTS (SELECT 1 FROM queue_states WHERE queue_states.case_seq = work.case_seq)
            OR EXISTS (SELECT 1 FROM queue_work WHERE queue_work.case_seq = work.case_seq
                AND queue_work.queue = '' AND queue_work.who = work.who))"""
"""Who decided a row of ``cases`` in the first queue. ``case_work`` has the deciders of all queues,
and only cases in which other queues have a part have rows in ``queue_states``.
"""


def read_queues(connection: sqlite3.Connection) -> tuple[ReviewQueue, ...]:
    """Return the newest version of every named queue, oldest queue first."""
    rows = connection.execute(
        """SELECT payload FROM team_records JOIN (
                SELECT min(seq) AS first, max(seq) AS newest FROM team_records
                WHERE kind = 'queue' GROUP BY name
            ) ON seq = newest ORDER BY first"""
    ).fetchall()
    return tuple(ReviewQueue.model_validate_json(row[0]) for row in rows)


def open_queues(connection: sqlite3.Connection) -> tuple[ReviewQueue, ...]:
    """Return the named queues that aren't archived."""
    return tuple(queue for queue in read_queues(connection) if not queue.archived)


def strict_queues(connection: sqlite3.Connection) -> tuple[ReviewQueue, ...]:
    """Return the open queues whose reviewers decide independently or without the audit."""
    return tuple(queue for queue in open_queues(connection) if queue.is_strict)


def named_queue(connection: sqlite3.Connection, name: str) -> ReviewQueue:
    """Return a queue by its id or its name. Raises UnknownRecord.

    A name that several queues have is that of the one that isn't archived.
    """
    queues, words = read_queues(connection), clean_queue_name(name)
    for queue in queues:
        if queue.id == words:
            return queue
    named = [queue for queue in queues if queue.name.casefold() == words.casefold()]
    if not named:
        known = ", ".join(repr(queue.name) for queue in queues if not queue.archived)
        raise UnknownRecord(
            f"there is no queue {name[:60]!r}. Queues: 'All cases'{', ' if known else ''}{known}."
        )
    return min(named, key=lambda queue: queue.archived)


def holds_condition(queue: ReviewQueue) -> list[Condition]:
    """Return the conditions on rows of ``cases`` that a queue holds."""
    conditions = content_conditions(queue.cases)
    if queue.cases.text.strip():
        words = "cases.seq IN (SELECT rowid FROM case_words WHERE case_words MATCH ?)"
        conditions.append((words, (match(queue.cases.text),)))
    return [*conditions, ("cases.state <> 'planted'", ())]


def in_queue(queue: ReviewQueue) -> Condition:
    """Return the condition that a queue holds a case, as one term."""
    where, values = join_conditions(holds_condition(queue))
    return f"({where})", values


def where_waits(queue: ReviewQueue, over: tuple[str, ...] = ("settled", "differ")) -> Condition:
    """Return the condition that a queue holds a case, and that it waits for decisions there.

    ``over`` are the states in which it doesn't wait any more.
    """
    held, values = in_queue(queue)
    states = ", ".join(f"'{state}'" for state in over)
    sql = f"""({held} AND NOT EXISTS (SELECT 1 FROM queue_states
        WHERE queue_states.case_seq = cases.seq AND queue_states.queue = ?
            AND queue_states.state IN ({states})))"""  # noqa: S608 (our own SQL)
    return sql, [*values, queue.id]


def where_any_waits(queues: Collection[ReviewQueue]) -> Condition:
    """Return the condition that a case waits in one of these queues."""
    parts = [where_waits(queue) for queue in queues]
    values = [value for _, bound in parts for value in bound]
    return f"({' OR '.join(sql for sql, _ in parts) or '0'})", values


def queues_of_case(
    connection: sqlite3.Connection, case_seq: int, among: Collection[ReviewQueue]
) -> list[ReviewQueue]:
    """Return which of these queues hold a case."""
    holding = []
    for queue in among:
        where, values = join_conditions([("cases.seq = ?", [case_seq]), *holds_condition(queue)])
        sql = f"SELECT 1 FROM cases WHERE {where}"  # noqa: S608 (our own SQL)
        if connection.execute(sql, values).fetchone():
            holding.append(queue)
    return holding


class QueueWork(NamedTuple):
    """The decisions on a case in one queue.

    Attributes:
        made: The number of each reviewer's entry, by name.
        policy: The policy under which they were made, or None if one person decides.
        pending: How many decisions are missing after the first.
        state: ``pending``, ``settled`` or ``differ``; "" if there is no decision.
        entry_seq: The entry that settles the case in this queue.

    """

    made: dict[str, int]
    policy: CasePolicy | None
    pending: int = 0
    state: str = ""
    entry_seq: int | None = None


def work_in_queue(connection: sqlite3.Connection, case: sqlite3.Row, queue: str) -> QueueWork:
    """Return the decisions on a case (a row of ``cases``) in one queue."""
    states = {
        row["queue"]: row
        for row in connection.execute(
            "SELECT * FROM queue_states WHERE case_seq = ?", [case["seq"]]
        ).fetchall()
    }
    if not states and queue == FIRST_QUEUE:
        made = connection.execute(
            "SELECT who, entry_seq FROM case_work WHERE case_seq = ? AND kind = 'decided'",
            [case["seq"]],
        )
        policy = case["policy"] and CasePolicy.model_validate_json(case["policy"])
        return QueueWork(
            dict(made.fetchall()), policy, case["pending"], entry_seq=case["decision_seq"]
        )
    if (row := states.get(queue)) is None:
        return QueueWork({}, None)
    made = connection.execute(
        "SELECT who, entry_seq FROM queue_work WHERE case_seq = ? AND queue = ?",
        [case["seq"], queue],
    )
    policy = row["policy"] and CasePolicy.model_validate_json(row["policy"])
    return QueueWork(dict(made.fetchall()), policy, row["pending"], row["state"], row["entry_seq"])


def disputed_queue(connection: sqlite3.Connection, case_seq: int) -> str | None:
    """Return the id of the queue whose reviewers differ about a case, or None."""
    row = connection.execute(
        "SELECT queue FROM queue_states WHERE case_seq = ? AND state = 'differ' ORDER BY queue",
        [case_seq],
    ).fetchone()
    return None if row is None else str(row[0])


def holding_queues(
    connection: sqlite3.Connection, case_seq: int, among: Collection[str] | None = None
) -> dict[str, int]:
    """Return the strict queues in which a case waits, with the number of missing decisions.

    The first queue is the first of them. ``among`` are the ids of the queues that count; None for
    all.
    """
    queues = [queue for queue in strict_queues(connection) if among is None or queue.id in among]
    missing = {}
    if (among is None or FIRST_QUEUE in among) and (
        in_first := _missing_in_first_queue(connection, case_seq)
    ):
        missing[FIRST_QUEUE] = in_first
    for queue in queues_of_case(connection, case_seq, queues):
        row = connection.execute(
            "SELECT state, pending FROM queue_states WHERE case_seq = ? AND queue = ?",
            [case_seq, queue.id],
        ).fetchone()
        if row is None:
            missing[queue.id] = queue.policy.reviewers
        elif row["state"] == "pending":
            missing[queue.id] = row["pending"]
    return missing


def _missing_in_first_queue(connection: sqlite3.Connection, case_seq: int) -> int:
    """Return how many decisions a case misses in the first queue; 0 if its policy isn't strict.

    The first decision there fixes the policy. Until then it's the team's, whose number of reviewers
    is in the case's row. A copy to be labeled again needs one decision, in any queue.
    """
    case = connection.execute("SELECT * FROM cases WHERE seq = ?", [case_seq]).fetchone()
    work = work_in_queue(connection, case, FIRST_QUEUE)
    if work.made:
        return work.pending
    if case["planted"] == COPIED:
        return 0
    [shown] = connection.execute(f"SELECT {TEAM_SHOWS}").fetchone()
    return int(case["wanted"]) if case["wanted"] > 1 or shown != "first" else 0


def waits_in_shared_queue(connection: sqlite3.Connection, case_seq: int) -> bool:
    """Return whether a case waits in a named queue for decisions of several people."""
    shared = [queue for queue in open_queues(connection) if queue.policy.reviewers > 1]
    if not shared:
        return False
    sql, values = where_any_waits(shared)
    sql = f"SELECT 1 FROM cases WHERE cases.seq = ? AND {sql}"  # noqa: S608 (our own SQL)
    return connection.execute(sql, [case_seq, *values]).fetchone() is not None


def median_seconds(connection: sqlite3.Connection, queue: str, reviewer: str) -> float | None:
    """Return a person's median time for a decision in a named queue, or None."""
    rows = connection.execute(
        """SELECT seconds FROM decision_log AS log
            JOIN decision_payloads ON entry_seq = log.seq
            WHERE queue = ? AND kind = 'decision' AND reviewer = ? AND seconds NOTNULL""",
        [queue, reviewer],
    ).fetchall()
    return median(row[0] for row in rows) if rows else None

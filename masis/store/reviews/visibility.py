"""SQL conditions that keep observations and codes from reviewers who must not see them yet.

These are the rules of ``CaseService.open_for`` and ``DecisionFilter.blind_to`` for many rows at
once. What others wrote about a case of several reviewers is hidden until all its decisions are
made, and what the audit found is hidden as long as the policy hides its verdict. Unlike log
entries, codes and texts are hidden even before the first decision, when nothing else about such a
case is shown either.
"""

from __future__ import annotations

import sqlite3
from typing import Any, get_args

from masis.schema.review import CaseState
from masis.schema.team import MachineShown
from masis.store.core.sql import Condition
from masis.store.reviews.queues import (
    COPIED,
    DECIDED_IN_FIRST,
    POLICY_IN_FORCE,
    TEAM_SHOWS,
    open_queues,
    strict_queues,
    where_any_waits,
    where_waits,
)

UNDECIDED: tuple[CaseState, ...] = (
    "new",
    "running",
    "interrupted",
    "needs_review",
    "needs_adjudication",
    "accepted",
)
"""The states in which no person's decision is in force."""

_SEALED = f"""(cases.pending > 0 OR (cases.wanted > 1 AND cases.standing <> 'decided'
    AND NOT EXISTS ({DECIDED_IN_FIRST})))"""
"""Whether decisions of a case that the team's policy shares are missing."""

_DRAWN = """SELECT value FROM json_each((
    SELECT payload -> '$.case_ids' FROM team_records WHERE kind = 'sample_plan'
    ORDER BY seq DESC LIMIT 1))"""
"""The answers drawn for a guarantee, which are decided blind under any policy."""

_UNDECIDED = ", ".join(f"'{state}'" for state in UNDECIDED)

_MACHINE_HIDDEN = f"""(((
        {TEAM_SHOWS} <> 'first' OR cases.id IN ({_DRAWN}) OR cases.planted = {COPIED})
    AND cases.state IN ({_UNDECIDED})
    AND ({TEAM_SHOWS} = 'never' OR NOT EXISTS ({DECIDED_IN_FIRST} AND work.who = ?)))
    OR ({TEAM_SHOWS} <> 'first' AND cases.state = 'superseded'))"""
"""Whether the team's policy hides the audit's verdict on a case from a reviewer (bound).

An earlier version of a case is hidden under every policy that hides verdicts, because its newer
version may be undecided.
"""

_HIDES = f"""SELECT EXISTS (SELECT 1 FROM cases WHERE pending > 0)
    OR coalesce(({POLICY_IN_FORCE}) ->> '$.reviewers', 1) > 1
    OR {TEAM_SHOWS} <> 'first' OR EXISTS ({_DRAWN})
    OR EXISTS (SELECT 1 FROM relabel_copies)"""  # noqa: S608 (our own SQL)

ISSUE_PLACE = "issue:"
"""The beginning of the places of the audit's issues (``Observation.place``)."""


def hides_anything(connection: sqlite3.Connection) -> bool:
    """Return whether anything of any case is hidden from any reviewer now."""
    return bool(connection.execute(_HIDES).fetchone()[0]) or bool(strict_queues(connection))


def strictest_shown(connection: sqlite3.Connection) -> MachineShown:
    """Return when the strictest policy of all queues shows the audit's verdict."""
    order: tuple[MachineShown, ...] = get_args(MachineShown)
    shown = [connection.execute(f"SELECT {TEAM_SHOWS}").fetchone()[0]]
    shown += [queue.policy.machine for queue in open_queues(connection)]
    return max(shown, key=order.index)


def where_sealed(connection: sqlite3.Connection) -> Condition:
    """Return the condition that reviewers of a case can't see each other's work on it.

    Decisions of the case are missing in a queue where several people decide independently.
    """
    shared = [queue for queue in open_queues(connection) if queue.policy.reviewers > 1]
    if not shared:
        return _SEALED, []
    sql, values = where_any_waits(shared)
    return f"({_SEALED} OR {sql})", values


def machine_hidden(connection: sqlite3.Connection, viewer: str | None) -> Condition:
    """Return the condition that the audit's verdict on a case is hidden from a reviewer.

    This is ``masis.services.cases.machine_hidden`` for many cases. If a case is in several queues,
    the strictest of their policies holds.
    """
    sql, values = _MACHINE_HIDDEN, [viewer]
    blind, bound = hidden_by_queues(connection, viewer)
    return (f"({sql} OR {blind})", [*values, *bound]) if blind else (sql, values)


def hidden_by_queues(connection: sqlite3.Connection, viewer: str | None) -> tuple[str, list[Any]]:
    """Return the condition that a named queue hides the audit's verdict; "" if no queue does."""
    parts, values = [], list[Any]()
    for queue in open_queues(connection):
        if queue.policy.machine == "first":
            continue
        sql, bound = where_waits(queue, ("settled",))
        values += bound
        if queue.policy.machine == "after":
            sql += """ AND NOT EXISTS (SELECT 1 FROM queue_work AS own
                WHERE own.case_seq = cases.seq AND own.queue = ? AND own.who = ?)"""
            values += [queue.id, viewer]
        parts.append(f"({sql})")
    if not parts:
        return "", []
    # An earlier version is hidden with its newer one, as under the team's policy.
    return f"({' OR '.join(parts)} OR cases.state = 'superseded')", values


def hidden_sample(connection: sqlite3.Connection, viewer: str | None) -> list[int]:
    """Return the numbers of the cases drawn for a guarantee whose verdict a reviewer must not see.

    These cases are hidden under any policy. While they are undecided, lists leave out nothing but
    them: a few hundred at most. Nothing is hidden from programs.
    """
    if viewer is None:
        return []
    hidden, values = machine_hidden(connection, viewer)
    sql = f"""SELECT cases.seq FROM cases WHERE (cases.id IN ({_DRAWN})
            OR cases.seq IN (SELECT case_seq FROM relabel_copies WHERE withdrawn_at IS NULL))
        AND {hidden} ORDER BY cases.seq"""  # noqa: S608 (our own SQL)
    return [row[0] for row in connection.execute(sql, values)]


def visible_observations(connection: sqlite3.Connection, viewer: str | None) -> list[Condition]:
    """Return the conditions on ``observations`` that a reviewer may see; none for programs."""
    if viewer is None or not hides_anything(connection):
        return []
    hidden, by_audit = machine_hidden(connection, viewer)
    shared, of_others = where_sealed(connection)
    found = f"""NOT (observations.kind = 'issue' AND observations.case_seq IN
        (SELECT seq FROM cases WHERE {hidden}))"""  # noqa: S608 (our own SQL)
    written = f"""NOT (observations.kind <> 'issue' AND observations.author IS NOT ?
        AND observations.case_seq IN (SELECT seq FROM cases WHERE {shared}))"""  # noqa: S608
    return [(found, by_audit), (written, [viewer, *of_others])]


def visible_codes(connection: sqlite3.Connection, viewer: str | None) -> list[Condition]:
    """Return the conditions on ``case_codes`` that a reviewer may see; none for programs.

    A code on an issue reveals that the audit found it, so it's hidden with the audit's verdict.
    """
    if viewer is None or not hides_anything(connection):
        return []
    hidden, by_audit = machine_hidden(connection, viewer)
    shared, by_others = where_sealed(connection)
    on_issues = f"""NOT (substr(case_codes.place, 1, {len(ISSUE_PLACE)}) = '{ISSUE_PLACE}'
        AND case_codes.case_seq IN (SELECT seq FROM cases WHERE {hidden}))"""  # noqa: S608
    of_others = f"""NOT (case_codes.reviewer IS NOT ?
        AND case_codes.case_seq IN (SELECT seq FROM cases WHERE {shared}))"""  # noqa: S608
    return [(on_issues, by_audit), (of_others, [viewer, *by_others])]

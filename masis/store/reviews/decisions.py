"""Stores the decision log, an append-only log with a hash chain (``chained_log.py``)."""

from __future__ import annotations

import json
import sqlite3
from typing import Any

from masis.errors import Conflict, StaleVersion, UnknownRecord
from masis.schema.review import IMPORTED, Decision, LogCheck, LogEntry, SubjectCheck
from masis.schema.team import QueuePolicy
from masis.store.audits.conditions import is_filled_by_audit
from masis.store.audits.queue import case_seq
from masis.store.core.chained_log import ChainedLog, StoredLog
from masis.store.core.sql import Condition, any_of, compare_column
from masis.store.jobs import assert_not_removed
from masis.store.records import DecisionFilter, DecisionPage
from masis.store.reviews import subjects
from masis.store.reviews.queues import (
    FIRST_QUEUE,
    disputed_queue,
    holding_queues,
    named_queue,
    open_queues,
    queues_of_case,
    work_in_queue,
)
from masis.store.reviews.states import RELABEL_COPY, refresh
from masis.store.reviews.team import in_force
from masis.store.reviews.visibility import (
    ISSUE_PLACE,
    UNDECIDED,
    hidden_sample,
    hides_anything,
    machine_hidden,
    strictest_shown,
    where_sealed,
)

_SELECT = """
    SELECT log.*, written.payload, written.reviewer, cases.id AS case_id, runs.id AS run_id,
        undone.id AS undoes_id
    FROM decision_log AS log
    LEFT JOIN decision_payloads AS written ON written.entry_seq = log.seq
    LEFT JOIN cases ON cases.seq = log.case_seq
    LEFT JOIN runs ON runs.seq = log.run_seq
    LEFT JOIN decision_log AS undone ON undone.seq = log.undoes
"""


LOG = ChainedLog(
    table="decision_log",
    payloads="decision_payloads",
    select=_SELECT,
    noun="entry",
    decision=Decision,
    entry=LogEntry,
    columns=("kind", "source", "verdict", "token", "queue"),
    links=("case_seq", "run_seq"),
    about=("case_id", "run_id"),
    repeated={"undoes": "undoes_id"}
    | {n: n for n in ("case_id", "run_id", "kind", "source", "verdict", "token", "queue")},
)


class Decisions(StoredLog[Decision, LogEntry]):
    """The decision log of a store."""

    log = LOG

    def append(
        self, decision: Decision, at: str | None = None, *, seen_version: int | None = None
    ) -> LogEntry:
        """Append an entry, and update the case's state in the same transaction.

        If the ``token`` was used before, its first entry is returned and nothing is appended.

        Args:
            decision: The decision to append.
            at: The time of the entry; now if None.
            seen_version: The version of the case that the person saw.

        Raises:
            StaleVersion: The case has changed since ``seen_version``.
            UnknownRecord: There is no such case, run or entry.
            Removed: The content of the run was removed.
            StoreError: The run belongs to another case, the entry can't be undone, or the case has
                a newer version.

        """
        LOG.payload_of(decision)  # raises before anything is written if it can't be stored
        with self._database.transaction() as connection:
            if first := LOG.with_token(connection, decision, ("case_id", "kind")):
                return first
            case = case_seq(connection, decision.case_id)
            row = connection.execute("SELECT * FROM cases WHERE seq = ?", [case]).fetchone()
            if seen_version not in (None, row["version"]):
                raise StaleVersion(
                    f"case {decision.case_id!r} has changed since you opened it. Look at it again"
                    " before deciding."
                )
            _assert_not_superseded(connection, decision, case)
            _assert_not_measured(decision, row)
            _assert_may_relabel(connection, decision, row)
            run = _run_seq(connection, decision, case)
            at = at or self._database.now()
            decision = _in_its_queue(connection, decision, row)
            decision = _under_policy(connection, decision, row, at)
            undoes = _undone_seq(connection, decision, row)
            if decision.kind == "redaction":
                raise Conflict("a redaction is made by redact(), which removes the payload too.")
            about = subjects.digests(connection, case, run, decision.iteration)
            entry = LOG.append(
                connection,
                decision.model_copy(update={"about": about}),
                at,
                {"case_seq": case, "run_seq": run, "undoes": undoes},
            )
            refresh(connection, case)
            return entry

    def has_token(self, token: str | None) -> bool:
        """Return whether an entry was made with this token."""
        return token is not None and bool(
            self._database.execute("SELECT 1 FROM decision_log WHERE token = ?", [token])
        )

    def individual(self, case_id: str, queue: str | None = None) -> tuple[LogEntry, ...]:
        """Return each reviewer's effective decision on a case, oldest first.

        Args:
            case_id: The case.
            queue: The id of a queue. By default it's the queue whose reviewers differ, or else the
                newest decision of each reviewer in any queue.

        Raises UnknownRecord.

        """
        with self._database.reading() as connection:
            seq = case_seq(connection, case_id)
            if queue is None:
                queue = disputed_queue(connection, seq)
            if queue is None:
                decided = "SELECT entry_seq FROM case_work WHERE case_seq = ? AND kind = 'decided'"
                values: list[Any] = [seq]
            else:
                row = connection.execute("SELECT * FROM cases WHERE seq = ?", [seq]).fetchone()
                made = work_in_queue(connection, row, queue).made
                decided, values = "SELECT value FROM json_each(?)", [json.dumps([*made.values()])]
            return tuple(map(LOG.entry_of, LOG.rows(connection, f"log.seq IN ({decided})", values)))

    def on_redacted(self, connection: sqlite3.Connection, row: sqlite3.Row) -> None:
        """Update the state of the entry's case."""
        refresh(connection, row["case_seq"])

    def get(self, entry_id: str) -> LogEntry:
        """Return one entry. Raises UnknownRecord."""
        with self._database.reading() as connection:
            return LOG.entry_of(LOG.row(connection, entry_id))

    def current(self, case_id: str) -> LogEntry | None:
        """Return the entry that decides a case, or None if it's undecided.

        Raises UnknownRecord.
        """
        deciding = "log.seq = (SELECT decision_seq FROM cases WHERE seq = ?)"
        with self._database.reading() as connection:
            return next(
                map(LOG.entry_of, LOG.rows(connection, deciding, [case_seq(connection, case_id)])),
                None,
            )

    def entries(
        self, log_filter: DecisionFilter | None = None, *, upto: int | None = None
    ) -> DecisionPage:
        """Return one page of the log and the number of matching entries.

        Args:
            log_filter: The filter and page.
            upto: Where counting stops, unless the end of the log gives the number.

        """
        log_filter = log_filter or DecisionFilter()
        with self._database.reading() as connection:
            viewer = log_filter.blind_to
            unplaced = viewer is not None and self.hides_counts_from(viewer)
            if not hides_anything(connection):
                # No case hides anything, so the costly conditions for blind reviewers are dropped.
                log_filter = log_filter.model_copy(update={"blind_to": None})
            page = LOG.page(
                connection,
                _joins(log_filter),
                _conditions(connection, log_filter),
                log_filter,
                upto,
            )
        if unplaced:
            return page.model_copy(update={"rows": tuple(map(_without_place, page.rows))})
        return page

    def shown_to(self, viewer: str, entry: LogEntry) -> LogEntry:
        """Return an entry without its place in the log, if that is hidden from a reviewer."""
        return _without_place(entry) if self.hides_counts_from(viewer) else entry

    def reviewers(self, viewer: str = "") -> dict[str, int]:
        """Return the number of entries by author. The acceptance policy is an author too.

        Entries about cases with pending decisions are excluded unless the viewer wrote them.
        """
        with self._database.reading() as connection:
            if not hides_anything(connection):
                sql = """SELECT reviewer, count(*) FROM decision_payloads
                    GROUP BY reviewer ORDER BY reviewer"""
                return dict(self._database.cached_rows(sql))
            hidden, by_audit = machine_hidden(connection, viewer)
            shared, by_others = where_sealed(connection)
            sql = f"""SELECT reviewer, count(*) FROM decision_payloads
                WHERE NOT (reviewer IS NOT ? AND entry_seq IN (
                SELECT log.seq FROM decision_log AS log JOIN cases ON cases.seq = log.case_seq
                WHERE (log.kind = 'policy_accept' OR (log.kind = 'undo' AND {_OF_ACCEPTANCE}))
                    AND {hidden}
                UNION ALL
                SELECT log.seq FROM cases JOIN decision_log AS log ON log.case_seq = cases.seq
                WHERE pending > 0 AND (log.kind = 'decision'
                        OR (log.kind = 'undo' AND NOT {_OF_ACCEPTANCE}))
                    OR log.kind IN ('code', 'uncode', 'comment') AND {shared}))
                GROUP BY reviewer ORDER BY reviewer"""  # noqa: S608
            return dict(self._database.cached_rows(sql, [viewer, *by_audit, *by_others]))

    def count_simulated(self) -> int:
        """Return the number of entries that the demo simulated."""
        return int(self._database.value("SELECT count(*) FROM decision_payloads WHERE simulated"))

    def several_decide(self) -> bool:
        """Return whether decisions are, or may later be, hidden from other reviewers.

        A policy for several reviewers counts even before the first decision. Otherwise the moment
        when data becomes hidden would reveal that a decision was made.
        """
        with self._database.reading() as connection:
            pending = (
                connection.execute("SELECT 1 FROM cases WHERE pending > 0 LIMIT 1").fetchone()
                is not None
            )
            return (
                pending
                or in_force(connection, QueuePolicy).reviewers > 1
                or any(queue.policy.reviewers > 1 for queue in open_queues(connection))
            )

    def hides_counts_from(self, viewer: str) -> bool:
        """Return whether numbers of entries would reveal hidden ones to a reviewer.

        These are pending decisions of others, or acceptances by the policy where its verdicts are
        hidden.
        """
        with self._database.reading() as connection:
            return (
                self.several_decide()
                or strictest_shown(connection) != "first"
                or bool(hidden_sample(connection, viewer))
            )

    def verify(self) -> LogCheck:
        """Check the chain, and report cases whose deciding entry is missing."""
        check = super().verify()
        sql = """SELECT id FROM cases
            WHERE decision_seq IS NOT NULL AND decision_seq NOT IN (SELECT seq FROM decision_log)"""
        gone = [
            f"case {row[0]!r} is decided by an entry that is gone"
            for row in self._database.execute(sql)
        ]
        return check.model_copy(update={"broken": (*check.broken, *gone)})

    def check_subjects(self) -> SubjectCheck:
        """Compare every entry with its stored case, run and answer, and case states with runs and
        log.
        """
        with self._database.reading() as connection:
            return subjects.check(connection)


def _without_place(entry: LogEntry) -> LogEntry:
    """Return an entry as blind reviewers see it.

    Gaps in the numbers would reveal others. So would the policy: the first decision on a case fixes
    it, and cases under an earlier policy than the present one would have other people's decisions.
    """
    hidden: dict[str, object] = {"seq": 0, "previous": "", "digest": ""}
    if entry.decision is not None:
        hidden["decision"] = entry.decision.model_copy(update={"policy": None})
    return entry.model_copy(update=hidden)


def _under_policy(
    connection: sqlite3.Connection, decision: Decision, case: sqlite3.Row, at: str
) -> Decision:
    """Return a person's decision with the policy of its case, and undo that person's earlier one.

    The first decision on a case fixes its policy.

    Raises:
        StoreError: All decisions on the case are made.

    """
    if decision.kind != "decision" or decision.source != "HUMAN":
        return decision
    work = work_in_queue(connection, case, decision.queue or FIRST_QUEUE)
    made = work.made
    if made or case["planted"] == RELABEL_COPY:
        policy = work.policy
    elif IMPORTED in decision.extra:
        # An imported decision keeps the policy under which it was made.
        policy = decision.policy
    elif decision.queue:
        policy = named_queue(connection, decision.queue).policy.for_case(case["id"])
    else:
        policy = in_force(connection, QueuePolicy).for_case(case["id"])
    if policy is not None and made:
        if not work.pending:
            raise Conflict(
                f"all {policy.reviewers} decisions on case {case['id']!r} are made, and the"
                " reviewers can see each other's. To change the verdict, adjudicate the case on the"
                " Team page."
            )
        if (own := made.get(decision.reviewer)) is not None:
            _undo_own(connection, decision, case["seq"], own, at)
    if not decision.queue:
        # Only these columns are set here. refresh() updates the derived ones.
        connection.execute(
            "UPDATE cases SET policy = ?, wanted = ? WHERE seq = ?",
            [
                policy.model_dump_json() if policy else None,
                policy.reviewers if policy else 1,
                case["seq"],
            ],
        )
    return decision.model_copy(update={"policy": policy})


def _in_its_queue(
    connection: sqlite3.Connection, decision: Decision, case: sqlite3.Row
) -> Decision:
    """Return a person's decision with the other queues in which its case must stay undecided.

    Raises:
        UnknownRecord: There is no such queue.
        StoreError: The queue is archived, or doesn't have the case.

    """
    if decision.kind != "decision" or decision.source != "HUMAN":
        return decision
    if decision.queue:
        queue = named_queue(connection, decision.queue)
        if queue.archived:
            raise Conflict(
                f"the queue {queue.name!r} is archived, so nothing is decided in it anymore. Open"
                " the case from another queue. Your draft is kept."
            )
        hidden = is_filled_by_audit(queue.cases) and _is_hidden_sample(connection, decision, case)
        if hidden or not queues_of_case(connection, case["seq"], [queue]):
            raise Conflict(
                f"case {case['id']!r} isn't in the queue {queue.name!r}, whose filter may have"
                " changed. Open it from another queue. Your draft is kept."
            )
    holding = holding_queues(connection, case["seq"])
    holding.pop(decision.queue or FIRST_QUEUE, None)
    if holding and _is_hidden_sample(connection, decision, case):
        # It isn't in the queues that its audit fills, where nobody could decide it before.
        for queue in open_queues(connection):
            if is_filled_by_audit(queue.cases):
                holding.pop(queue.id, None)
    if case["state"] not in UNDECIDED:
        # It waits in no first queue any more, whose cases have this state.
        holding.pop(FIRST_QUEUE, None)
    return decision.model_copy(update={"held_by": tuple(holding)})


def _is_hidden_sample(
    connection: sqlite3.Connection, decision: Decision, case: sqlite3.Row
) -> bool:
    """Return whether a guarantee hides the audit of the case from the decision's reviewer."""
    return case["seq"] in hidden_sample(connection, decision.reviewer)


def _undo_own(
    connection: sqlite3.Connection, decision: Decision, case: int, seq: int, at: str
) -> None:
    made = LOG.rows(connection, "log.seq = ?", [seq])[0]
    undo = Decision(
        kind="undo",
        reviewer=decision.reviewer,
        case_id=decision.case_id,
        run_id=made["run_id"],
        undoes=made["id"],
        token=f"undo:{made['id']}",
        versions=decision.versions,
        about=subjects.digests(connection, case, made["run_seq"], None),
    )
    LOG.append(connection, undo, at, {"case_seq": case, "run_seq": made["run_seq"], "undoes": seq})


def _assert_not_superseded(connection: sqlite3.Connection, decision: Decision, case: int) -> None:
    """Raise StoreError for a verdict on a case that has a newer version."""
    if decision.kind not in ("decision", "adjudication"):
        return
    query = "SELECT 1 FROM decision_log WHERE case_seq = ? AND kind = 'new_version'"
    if connection.execute(query, [case]).fetchone() is not None:
        raise Conflict(
            f"case {decision.case_id!r} has a newer version with more evidence. Decide that one"
            " instead; this case's page links to it."
        )


def _assert_not_measured(decision: Decision, case: sqlite3.Row) -> None:
    """Raise StoreError for a verdict on a copy that reviewers may know as one by now."""
    if case["state"] == "planted" and decision.kind in ("decision", "adjudication", "undo"):
        what = (
            "that was labeled again to check a label, so the decision on it is"
            if case["planted"] == RELABEL_COPY
            else "whose planted fault has been revealed, so the decisions on it are"
        )
        raise Conflict(f"case {decision.case_id!r} is a copy {what} final.")


def _assert_may_relabel(
    connection: sqlite3.Connection, decision: Decision, case: sqlite3.Row
) -> None:
    """Raise StoreError if a person would check a label that they took part in."""
    if case["planted"] != RELABEL_COPY or decision.kind != "decision":
        return
    took_part = connection.execute(
        """SELECT 1 FROM relabel_copies JOIN decision_log AS log ON log.case_seq = source_seq
                AND log.kind IN ('decision', 'adjudication')
            JOIN decision_payloads AS written ON written.entry_seq = log.seq
            WHERE relabel_copies.case_seq = ? AND written.reviewer = ? LIMIT 1""",
        [case["seq"], decision.reviewer],
    ).fetchone()
    if took_part is not None:
        raise Conflict(
            f"case {decision.case_id!r} is assigned to another person alone. Take another case."
        )


def _run_seq(connection: sqlite3.Connection, decision: Decision, case: int) -> int | None:
    if decision.run_id is None:
        if decision.kind == "policy_accept":
            raise Conflict("an acceptance by the policy needs the id of a run.")
        return None
    run = connection.execute(
        "SELECT * FROM jobs WHERE id = ? AND kind = 'run'", [decision.run_id]
    ).fetchone()
    if run is None:
        raise UnknownRecord(f"there is no run {decision.run_id!r} to decide on.")
    if run["case_seq"] != case:
        raise Conflict(f"run {decision.run_id!r} doesn't belong to case {decision.case_id!r}.")
    if decision.kind != "undo":
        assert_not_removed(connection, run)
    if decision.kind == "policy_accept" and run["state"] != "finished":
        raise Conflict(f"run {decision.run_id!r} isn't finished, so the policy can't accept it.")
    there = "SELECT 1 FROM job_parts WHERE job_seq = ? AND kind = 'iteration' AND number = ?"
    audited = connection.execute(there, [run["seq"], decision.iteration]).fetchone()
    if decision.iteration is not None and audited is None:
        raise UnknownRecord(f"run {decision.run_id!r} has no iteration {decision.iteration}.")
    return int(run["seq"])


def _undone_seq(
    connection: sqlite3.Connection, decision: Decision, case: sqlite3.Row
) -> int | None:
    if decision.kind != "undo":
        if decision.undoes is not None:
            raise Conflict("only an undo can name an entry to undo.")
        return None
    undone = LOG.row(connection, decision.undoes or "")
    if undone["kind"] == "skip":
        own = "SELECT 1 FROM case_work WHERE kind = 'skipped' AND entry_seq = ? AND who = ?"
        if connection.execute(own, [undone["seq"], decision.reviewer]).fetchone() is None:
            raise Conflict(
                f"{decision.reviewer} doesn't skip case {decision.case_id!r} any more, so there is"
                " nothing to undo."
            )
        return int(undone["seq"])
    work = work_in_queue(connection, case, undone["queue"] or FIRST_QUEUE)
    if work.policy is not None and undone["kind"] == "decision":
        if work.pending and work.made.get(decision.reviewer) == undone["seq"]:
            return int(undone["seq"])
        raise Conflict(
            f"case {decision.case_id!r} has several reviewers. You can only undo your own decision."
            if work.pending
            else (
                f"all decisions on case {decision.case_id!r} are made, so none can be undone."
                " Adjudicate the case to change its verdict."
            )
        )
    if undone["seq"] not in (case["decision_seq"], work.entry_seq):
        raise Conflict(
            f"case {decision.case_id!r} no longer depends on that decision (it was undone or"
            " superseded). Look at the case again."
        )
    return int(undone["seq"])


_OF_ACCEPTANCE = """EXISTS (SELECT 1 FROM decision_log AS undone
    WHERE undone.seq = log.undoes AND undone.kind = 'policy_accept')"""
"""Whether an undo is of the policy's acceptance."""


_WRITTEN_WORDS = """lower(coalesce(written.payload ->> '$.reason', '') || char(10)
    || coalesce(written.payload ->> '$.note', '') || char(10)
    || coalesce((SELECT group_concat(value ->> '$.note', char(10))
        FROM json_each(written.payload, '$.labels')), ''))"""
"""What a person wrote in an entry. It has no index, because people's entries are few."""


def _conditions(connection: sqlite3.Connection, log_filter: DecisionFilter) -> list[Condition]:
    parts = [
        *compare_column("cases.id", "=", log_filter.case_id),
        *compare_column("runs.id", "=", log_filter.run_id),
        *compare_column("log.at", ">=", log_filter.since),
        *compare_column("log.at", "<", log_filter.until),
        *any_of("written.reviewer", log_filter.reviewers),
        *any_of("log.kind", log_filter.kinds),
        *any_of("log.source", log_filter.sources),
        *any_of("log.verdict", log_filter.verdicts),
        *((f"instr({_WRITTEN_WORDS}, ?)", (word,)) for word in log_filter.text.lower().split()),
    ]
    if log_filter.batch is not None:
        made = """log.seq IN (
            SELECT entry_seq FROM batches CROSS JOIN batch_cases ON batch_seq = batches.seq
            WHERE batches.id = ? UNION ALL
            SELECT undo_seq FROM batches CROSS JOIN batch_cases ON batch_seq = batches.seq
            WHERE batches.id = ?)"""
        parts.append((made, (log_filter.batch, log_filter.batch)))
    if log_filter.kinds and "policy_accept" not in log_filter.kinds:
        # Repeats the condition of a partial index without the policy's entries, which are most of
        # the log. SQLite only uses the index if the query states its condition.
        parts.append(("log.kind <> 'policy_accept'", ()))
    if log_filter.blind_to is not None:
        viewer = log_filter.blind_to
        hidden, by_audit = machine_hidden(connection, viewer)
        shared, by_others = where_sealed(connection)
        # An undo of the policy's acceptance says nothing about a decision.
        others = f"""NOT ((log.kind = 'decision' OR (log.kind = 'undo' AND NOT {_OF_ACCEPTANCE}))
            AND written.reviewer IS NOT ? AND EXISTS
                (SELECT 1 FROM cases AS open WHERE open.seq = log.case_seq AND open.pending > 0))
            """  # noqa: S608
        parts.append((others, (viewer,)))
        # Hidden before the first decision too, because their disappearance would reveal it.
        comments = f"""NOT (log.kind = 'comment' AND written.reviewer IS NOT ?
            AND log.case_seq IN (SELECT seq FROM cases WHERE {shared}))"""  # noqa: S608
        parts.append((comments, (viewer, *by_others)))
        # A code on an issue would reveal that the audit found it.
        codes = f"""NOT (log.kind IN ('code', 'uncode') AND written.reviewer IS NOT ?
            AND log.case_seq IN (SELECT seq FROM cases WHERE {shared}
                OR (instr(written.payload, '"observation":"{ISSUE_PLACE}') AND {hidden})))
            """  # noqa: S608
        parts.append((codes, (viewer, *by_others, *by_audit)))
        # So would the policy's acceptance, and an undo of it.
        accepted = f"""NOT ((log.kind = 'policy_accept' OR (log.kind = 'undo' AND {_OF_ACCEPTANCE}))
            AND log.case_seq IN (SELECT seq FROM cases WHERE {hidden}))"""  # noqa: S608
        parts.append((accepted, by_audit))
    return parts


def _joins(log_filter: DecisionFilter) -> str:
    """Return only the joins that the filter needs, since each costs a lookup per entry."""
    joins = (
        (log_filter.case_id is not None, "LEFT JOIN cases ON cases.seq = log.case_seq"),
        (log_filter.run_id is not None, "LEFT JOIN runs ON runs.seq = log.run_seq"),
        (
            bool(log_filter.reviewers or log_filter.text) or log_filter.blind_to is not None,
            "LEFT JOIN decision_payloads AS written ON written.entry_seq = log.seq",
        ),
    )
    return " ".join(join for needed, join in joins if needed)

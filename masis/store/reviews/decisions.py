"""The decision log: entries are appended, each bound to the one before (``chain.py``); none is changed or deleted."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from pydantic import ValidationError

from masis.errors import StaleVersion, StoreError, UnknownRecord
from masis.schema.review import Decision, LogCheck, LogEntry
from masis.store.audits.cases import case_seq, sha256
from masis.store.audits.run_rows import assert_kept
from masis.store.core import chain
from masis.store.core.connections import Database
from masis.store.records import DecisionFilter, DecisionPage, LogHead
from masis.store.retention.shrinking import settle
from masis.store.reviews.states import refresh


class Decisions:
    """The decision log of a store."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def append(self, decision: Decision, at: str | None = None, *, seen_version: int | None = None) -> LogEntry:
        """Append an entry; the case's state follows in the same transaction.

        The same ``token`` again returns the first entry. ``seen_version`` is the case's version that the person
        looked at: StaleVersion if it has changed since. Raises UnknownRecord (no such case, run or entry) and
        StoreError (the run is of another case, the entry to undo does not stand), Removed (nothing of the run is left).
        """
        payload_of(decision)  # says what is wrong before anything is looked up
        with self._database.transaction() as connection:
            if decision.token is not None and (first := _by_token(connection, decision)):
                return first
            case = case_seq(connection, decision.case_id)
            if seen_version is not None:
                _check_version(connection, decision.case_id, seen_version)
            run = _run_seq(connection, decision, case)
            undoes = _undone_seq(connection, decision, case)
            if decision.kind == "redaction":
                raise StoreError("a redaction is made by redact(), which removes the payload too.")
            return append_entry(connection, decision, at or self._database.now(), Links(case, run, undoes, None))

    def redact(self, entry_id: str, *, by: str, reason: str, at: str | None = None) -> LogEntry:
        """Remove what was written in an entry: verdict and place in the chain stay. This is an entry too; returns it.

        While another program reads the database as it was, the write-ahead log holds the text (``Store.settle`` tells).
        Raises UnknownRecord, and StoreError where it is redacted already or is a redaction itself.
        """
        with self._database.transaction() as connection:
            row = _entry_row(connection, entry_id)
            if row["payload"] is None or row["kind"] == "redaction":
                raise StoreError(f"entry {entry_id} is {'a redaction' if row['payload'] else 'redacted'} already.")
            entry = redact_entry(connection, row, by=by, reason=reason, at=at or self._database.now())
        # until then the write-ahead log still holds pages with the old text
        self._database.once_committed(lambda: settle(self._database))
        return entry

    def get(self, entry_id: str) -> LogEntry:
        """One entry. Raises UnknownRecord."""
        with self._database.reading() as connection:
            return _entry(_entry_row(connection, entry_id))

    def current(self, case_id: str) -> LogEntry | None:
        """The entry that decides a case now; None while nothing does. Raises UnknownRecord."""
        with self._database.reading() as connection:
            row = connection.execute(
                f"{ENTRIES} WHERE log.seq = (SELECT decision_seq FROM cases WHERE seq = ?)",  # noqa: S608
                [case_seq(connection, case_id)],
            ).fetchone()
        return _entry(row) if row else None

    def entries(self, wanted: DecisionFilter | None = None) -> DecisionPage:
        """One page of the log."""
        wanted = wanted or DecisionFilter()
        where, values = _where(wanted)
        direction = "DESC" if wanted.newest_first else "ASC"
        matching = f"FROM decision_log AS log {_joins(wanted)} WHERE {where}"
        with self._database.reading() as connection:
            total = connection.execute(f"SELECT count(*) {matching}", values).fetchone()[0]
            rows = connection.execute(
                f"""{ENTRIES} WHERE log.seq IN (SELECT log.seq {matching} ORDER BY log.seq {direction} LIMIT ? OFFSET ?)
                    ORDER BY log.seq {direction}""",
                [*values, wanted.size, (wanted.page - 1) * wanted.size],
            )
            return DecisionPage(rows=tuple(_entry(row) for row in rows), total=total)

    def iterate(self) -> Iterator[LogEntry]:
        """The whole log from its beginning, a hundred entries in memory at a time."""
        seq = 0
        while rows := self._database.execute(f"{ENTRIES} WHERE log.seq > ? ORDER BY log.seq LIMIT 100", [seq]):
            yield from map(_entry, rows)
            seq = rows[-1]["seq"]

    def reviewers(self) -> dict[str, int]:
        """Everyone who has an entry in the log, with how many; the acceptance policy is one of them."""
        rows = self._database.execute(
            "SELECT reviewer, count(*) FROM decision_payloads GROUP BY reviewer ORDER BY reviewer"
        )
        return {row[0]: row[1] for row in rows}

    def head(self) -> LogHead:
        """Length and last digest."""
        with self._database.reading() as connection:
            return chain.head_of(connection, CHAINED.log)

    def verify(self) -> LogCheck:
        """Walk the chain and name every entry that doesn't fit, and why; and every guard of the log that is gone."""
        with self._database.reading() as connection:
            return chain.verify(connection, CHAINED)


class Links(NamedTuple):
    """The rows that an entry refers to, by number."""

    case: int
    run: int | None
    undoes: int | None
    redacts: int | None


ENTRIES = """
    SELECT log.*, written.payload, written.reviewer, cases.id AS case_id, runs.id AS run_id, undone.id AS undoes_id
    FROM decision_log AS log
    LEFT JOIN decision_payloads AS written ON written.entry_seq = log.seq
    LEFT JOIN cases ON cases.seq = log.case_seq
    LEFT JOIN runs ON runs.seq = log.run_seq
    LEFT JOIN decision_log AS undone ON undone.seq = log.undoes
"""


def append_entry(connection: sqlite3.Connection, decision: Decision, at: str, links: Links) -> LogEntry:
    """Write an entry at the end of the chain; the case's state follows. Inside a durable transaction."""
    payload = payload_of(decision)
    place = chain.place_after(chain.head_of(connection, CHAINED.log), at, sha256(payload))
    insert_entry(connection, place._asdict(), decision.model_dump(), links)
    insert_payload(connection, place.seq, decision.reviewer, payload)
    refresh(connection, links.case)
    return LogEntry(decision=decision, **place._asdict())


def redact_entry(connection: sqlite3.Connection, row: sqlite3.Row, *, by: str, reason: str, at: str) -> LogEntry:
    """Append the redaction of an entry (a row of ``ENTRIES``) and remove what was written in it."""
    decision = Decision(
        kind="redaction",
        reviewer=by,
        case_id=row["case_id"],
        run_id=row["run_id"],
        reason=reason,
        extra={"redacts": row["id"], "kept": kept_facts(row)},
    )
    entry = append_entry(connection, decision, at, Links(row["case_seq"], row["run_seq"], None, row["seq"]))
    connection.execute("DELETE FROM decision_payloads WHERE entry_seq = ?", [row["seq"]])
    refresh(connection, row["case_seq"])
    return entry


def payload_of(decision: Decision) -> str:
    """The text that is kept and digested. Raises InputError where the decision holds what can't be kept as text."""
    return chain.payload_of(decision, decision.reviewer, decision.token)


def insert_entry(
    connection: sqlite3.Connection, place: Mapping[str, Any], facts: Mapping[str, Any], links: Links
) -> None:
    """Write the chain's part of an entry: its place in the chain, and what the log itself keeps of the decision."""
    connection.execute(
        """
        INSERT INTO decision_log (seq, id, at, payload_digest, previous, digest, kind, source, verdict, token,
            case_seq, run_seq, undoes, redacts) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
        """,
        [
            *(place[name] for name in chain.PLACE),
            *(facts[name] for name in ("kind", "source", "verdict", "token")),
            *links,
        ],
    )


def insert_payload(connection: sqlite3.Connection, seq: int, reviewer: str, payload: str) -> None:
    """Write what was decided."""
    connection.execute("INSERT INTO decision_payloads VALUES (?, ?, ?)", [seq, reviewer, payload])


def _entry(row: sqlite3.Row) -> LogEntry:
    try:
        decision = None if row["payload"] is None else Decision.model_validate_json(row["payload"])
    except ValidationError as error:
        raise StoreError(
            f"entry {row['seq']} ({row['id']}) of the decision log can't be read: it was altered. "
            "`masis verify-log` names what else was."
        ) from error
    return LogEntry(decision=decision, **{name: row[name] for name in chain.PLACE})


def _entry_row(connection: sqlite3.Connection, entry_id: str) -> sqlite3.Row:
    row: sqlite3.Row | None = connection.execute(f"{ENTRIES} WHERE log.id = ?", [entry_id]).fetchone()
    if row is None:
        raise UnknownRecord(f"there is no entry {entry_id!r} in the decision log.")
    return row


def _by_token(connection: sqlite3.Connection, decision: Decision) -> LogEntry | None:
    row = connection.execute(f"{ENTRIES} WHERE log.token = ?", [decision.token]).fetchone()
    if row is None:
        return None
    if (row["case_id"], row["kind"]) != (decision.case_id, decision.kind):
        raise StoreError(f"the token of this submit belongs to entry {row['id']}, which is about something else.")
    return _entry(row)


def _check_version(connection: sqlite3.Connection, case_id: str, seen: int) -> None:
    now = connection.execute("SELECT version FROM cases WHERE id = ?", [case_id]).fetchone()[0]
    if now != seen:
        raise StaleVersion(f"case {case_id!r} has changed since you opened it. Look at it again before deciding.")


def _run_seq(connection: sqlite3.Connection, decision: Decision, case: int) -> int | None:
    if decision.run_id is None:
        if decision.kind == "policy_accept":
            raise StoreError("the policy accepts a run: name it.")
        return None
    run = connection.execute("SELECT * FROM runs WHERE id = ?", [decision.run_id]).fetchone()
    if run is None:
        raise UnknownRecord(f"there is no run {decision.run_id!r} to decide about.")
    if run["case_seq"] != case:
        raise StoreError(f"run {decision.run_id!r} is of another case than {decision.case_id!r}.")
    if decision.kind != "undo":
        assert_kept(connection, run)
    if decision.kind == "policy_accept" and run["state"] != "finished":
        raise StoreError(f"run {decision.run_id!r} is not finished: the policy can't accept it.")
    if (
        decision.iteration is not None
        and not connection.execute(
            "SELECT 1 FROM run_iterations WHERE run_seq = ? AND number = ?", [run["seq"], decision.iteration]
        ).fetchone()
    ):
        raise UnknownRecord(f"run {decision.run_id!r} has no iteration {decision.iteration}.")
    return int(run["seq"])


def _undone_seq(connection: sqlite3.Connection, decision: Decision, case: int) -> int | None:
    if decision.kind != "undo":
        if decision.undoes is not None:
            raise StoreError("only an undo takes an entry back.")
        return None
    undone = _entry_row(connection, decision.undoes or "")
    current = connection.execute("SELECT decision_seq FROM cases WHERE seq = ?", [case]).fetchone()[0]
    if undone["seq"] != current:
        raise StoreError(
            f"entry {decision.undoes} does not decide case {decision.case_id!r} now (it was undone or superseded). "
            "Look at the case again."
        )
    return int(undone["seq"])


def _where(wanted: DecisionFilter) -> tuple[str, list[Any]]:
    parts, values = ["1"], list[Any]()
    for sql, bound in (
        ("cases.id = ?", wanted.case_id),
        ("runs.id = ?", wanted.run_id),
        ("log.at >= ?", wanted.since),
        ("log.at < ?", wanted.until),
    ):
        if bound is not None:
            parts.append(sql)
            values.append(bound)
    for column, allowed in (
        ("written.reviewer", wanted.reviewers),
        ("log.kind", wanted.kinds),
        ("log.source", wanted.sources),
        ("log.verdict", wanted.verdicts),
    ):
        if allowed:
            parts.append(f"{column} IN ({', '.join('?' * len(allowed))})")
            values += allowed
    return " AND ".join(parts), values


def _joins(wanted: DecisionFilter) -> str:
    """The tables that a filter asks about, and no others: each would be looked into for every entry."""
    joins = (
        (wanted.case_id is not None, "LEFT JOIN cases ON cases.seq = log.case_seq"),
        (wanted.run_id is not None, "LEFT JOIN runs ON runs.seq = log.run_seq"),
        (bool(wanted.reviewers), "LEFT JOIN decision_payloads AS written ON written.entry_seq = log.seq"),
    )
    return " ".join(join for needed, join in joins if needed)


def kept_facts(entry: sqlite3.Row | Decision) -> dict[str, Any]:
    """What of an entry stands in the log's own columns: checked against its payload, or what a redaction kept."""
    if isinstance(entry, Decision):
        return {name: getattr(entry, name) for name in FACTS}
    return {name: entry["undoes_id" if name == "undoes" else name] for name in FACTS}


FACTS = ("case_id", "run_id", "kind", "source", "verdict", "token", "undoes")
CHAINED = chain.Chained(
    "decision_log", "decision_payloads", ENTRIES, "log", "entry", Decision.model_validate_json, kept_facts
)

"""An append-only log with a hash chain, used for the decision log, the screening log and
the preference log.

An entry's digest is the SHA-256 of its sequence number, time, payload digest and the digest of the
previous entry, one per line. The first entry follows 64 zeros. An entry's id is the beginning of
its digest. Payloads are stored in a separate table, so one can be redacted while the chain stays
intact. The redaction is an entry too.
"""

from __future__ import annotations

import hashlib
import json
import sqlite3
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from pydantic import ValidationError

from masis.errors import Conflict, InputError, StoreError, UnknownRecord
from masis.schema.base import Page
from masis.schema.preference import PreferenceDecision, PreferenceEntry
from masis.schema.review import ChainedEntry, Decision, LogCheck, LogEntry, SubjectCheck
from masis.schema.screening import ScreeningDecision, ScreeningEntry
from masis.store.core import guards, signatures
from masis.store.core.connections import Connection, StorePart
from masis.store.core.sql import Condition, insert, join_conditions
from masis.store.records import LogFilter, LogHead
from masis.store.retention.shrinking import settle

NOTHING_BEFORE = "0" * 64
"""The previous digest of the first entry."""

_ID_LENGTH = 24

D = TypeVar("D", Decision, ScreeningDecision, PreferenceDecision)
E = TypeVar("E", LogEntry, ScreeningEntry, PreferenceEntry)


def canonical_json(value: Any) -> str:
    """Return JSON with sorted keys and no whitespace, so that equal content has equal text. Raises
    ValueError for NaN.
    """
    return json.dumps(
        value, ensure_ascii=False, sort_keys=True, separators=(",", ":"), allow_nan=False
    )


def sha256(text: str) -> str:
    """Return the SHA-256 of a text as hexadecimal digits."""
    return hashlib.sha256(text.encode()).hexdigest()


def place_after(head: LogHead, at: str, payload_digest: str) -> ChainedEntry:
    """Return the chain fields of an entry appended after ``head`` at this time."""
    seq, previous = head.length + 1, head.digest
    digest = _entry_digest(seq, at, payload_digest, previous)
    return ChainedEntry(
        seq=seq,
        id=digest[:_ID_LENGTH],
        at=at,
        payload_digest=payload_digest,
        previous=previous,
        digest=digest,
    )


def _entry_digest(seq: int, at: str, payload_digest: str, previous: str) -> str:
    """Return the digest that links an entry to the one before."""
    return sha256(f"{seq}\n{at}\n{payload_digest}\n{previous}")


@dataclass(frozen=True)
class ChainedLog(Generic[D, E]):
    """One log: its tables, its record types, and the operations that all logs share.

    All methods except ``verify`` run inside the caller's transaction. It must be durable to append.
    """

    table: str
    payloads: str
    select: str
    """Selects every entry as ``log``, with ``payload`` (NULL if redacted), ``reviewer`` and the ids
    it refers to.
    """

    noun: str
    decision: type[D]
    entry: type[E]
    columns: tuple[str, ...]
    """Facts stored as columns of the table."""

    links: tuple[str, ...]
    """Columns of the table that refer to other rows, in addition to ``redacts``."""

    about: tuple[str, ...]
    """Fields of a decision that name its subject; a redaction has the same subject."""

    repeated: Mapping[str, str]
    """Fields of a decision that are also stored as columns, each with its column in ``select``."""

    @property
    def name(self) -> str:
        """The name of the log in words."""
        return self.table.replace("_", " ")

    def facts(self, entry: sqlite3.Row | D) -> dict[str, Any]:
        """Return the repeated facts by name, from the columns of a row or from a decision."""
        if isinstance(entry, sqlite3.Row):
            return {name: entry[column] for name, column in self.repeated.items()}
        return {name: getattr(entry, name) for name in self.repeated}

    def head(self, connection: sqlite3.Connection) -> LogHead:
        """Return the length and the last digest."""
        row = connection.execute(
            f"SELECT seq, digest FROM {self.table} ORDER BY seq DESC LIMIT 1"  # noqa: S608
        ).fetchone()
        return LogHead(*(row or (0, NOTHING_BEFORE)))

    def rows(
        self, connection: sqlite3.Connection, where: str, values: list[Any]
    ) -> list[sqlite3.Row]:
        """Return the rows of the entries that match a condition, in order."""
        return connection.execute(
            f"{self.select} WHERE {where} ORDER BY log.seq", values
        ).fetchall()

    def row(self, connection: sqlite3.Connection, entry_id: str) -> sqlite3.Row:
        """Return the row of an entry. Raises UnknownRecord."""
        found = self.rows(connection, "log.id = ?", [entry_id])
        if not found:
            raise UnknownRecord(f"there is no entry {entry_id!r} in the {self.name}.")
        return found[0]

    def entry_of(self, row: sqlite3.Row) -> E:
        """Return the entry in a row. Raises StoreError if it can't be read."""
        try:
            decision = (
                None
                if row["payload"] is None
                else self.decision.model_validate_json(row["payload"])
            )
        except ValidationError as error:
            raise Conflict(
                f"entry {row['seq']} ({row['id']}) of the {self.name} can't be read: it was"
                " altered. `masis verify-log` names what else was."
            ) from error
        # The decision is already validated and the table fixes the types of its columns. Another
        # validation would double the time.
        fields: dict[str, Any] = {
            "decision": decision,
            **{name: row[name] for name in ChainedEntry.model_fields},
        }
        return self.entry.model_construct(**fields)

    def page(
        self,
        connection: sqlite3.Connection,
        joins: str,
        conditions: list[Condition],
        log_filter: LogFilter,
        upto: int | None = None,
    ) -> Page[E]:
        """Return one page of the matching entries.

        The matches are counted up to ``upto``. Without conditions the last number is the count.
        ``joins`` are the joins that the conditions need.
        """
        values: list[Any]
        where, values = join_conditions(conditions)
        matching = f"FROM {self.table} AS log {joins} WHERE {where}"
        total = self.head(connection).length
        if conditions:
            count = f"SELECT count(*) FROM (SELECT 1 {matching} LIMIT ?)"  # noqa: S608
            total = connection.execute(
                count, [*values, -1 if upto is None else upto + 1]
            ).fetchone()[0]
        # the numbers of the page come from an index, and only its rows are joined and read
        first = "DESC" if log_filter.newest_first else "ASC"
        numbers = f"SELECT log.seq {matching} ORDER BY log.seq {first} LIMIT ? OFFSET ?"
        rows = connection.execute(
            f"{self.select} WHERE log.seq IN ({numbers}) ORDER BY log.seq {first}",
            [*values, log_filter.size, (log_filter.page - 1) * log_filter.size],
        )
        more = bool(conditions) and upto is not None and total > upto
        return Page(rows=tuple(map(self.entry_of, rows)), total=total - more, more=more)

    def with_token(
        self, connection: sqlite3.Connection, decision: D, same: tuple[str, ...]
    ) -> E | None:
        """Return the entry of an earlier submit with this token, or None.

        Raises StoreError if that entry differs in one of the facts ``same``.
        """
        if decision.token is None:
            return None
        for row in self.rows(connection, "log.token = ?", [decision.token]):
            facts = self.facts(decision)
            if any(row[name] != facts[name] for name in same):
                raise Conflict(
                    f"the token of this submit belongs to entry {row['id']}, which is about"
                    " something else."
                )
            return self.entry_of(row)
        return None

    def payload_of(self, decision: D) -> str:
        """Return the text to store and digest. Raises InputError if it can't be encoded."""
        try:
            payload = canonical_json(decision.model_dump(mode="json"))
            payload.encode()
        except (ValueError, TypeError) as error:
            raise InputError(
                "the entry holds what can't be stored as text",
                hint=f"Remove it and submit again ({error}).",
            ) from error
        if "\x00" in f"{decision.reviewer}{decision.token}":
            raise InputError(
                "the reviewer's name holds a null byte",
                hint="Type the name again.",
                field="reviewer",
            )
        return payload

    def append(
        self, connection: sqlite3.Connection, decision: D, at: str, links: Mapping[str, int | None]
    ) -> E:
        """Append an entry to the chain, and sign it if the database was opened with a key.

        The entry is read back before it counts, because a trigger of another program can make
        SQLite skip a write without an error, or a changed column can store another value.

        Args:
            connection: The transaction to write in.
            decision: The content of the entry.
            at: The time of the entry, ISO 8601.
            links: The numbers of the rows it refers to.

        Raises:
            StoreError: What is stored isn't what was written.

        """
        payload = self.payload_of(decision)
        place = place_after(self.head(connection), at, sha256(payload))
        facts = self.facts(decision)
        row = {**place.model_dump(), **{name: facts[name] for name in self.columns}, **links}
        insert(connection, self.table, row)
        if self.head(connection) == LogHead(place.seq, place.digest):
            connection.execute(
                f"INSERT INTO {self.payloads} VALUES (?, ?, ?)",  # noqa: S608
                [place.seq, decision.reviewer, payload],
            )
        stored = self.rows(connection, "log.seq = ?", [place.seq])
        if [(row["digest"], row["payload"], row["reviewer"]) for row in stored] != [
            (place.digest, payload, decision.reviewer)
        ]:
            raise StoreError(
                f"the {self.name} didn't store the entry as it was written, so something other than"
                " the workbench changed this database. Nothing was recorded. `masis verify-log`"
                " names what was changed."
            )
        if isinstance(connection, Connection) and connection.log_key is not None:
            signatures.sign(connection, connection.log_key, self.table, place.seq, place.digest)
        return self.entry(decision=decision, **place.model_dump())

    def redact(
        self, connection: sqlite3.Connection, row: sqlite3.Row, *, by: str, reason: str, at: str
    ) -> E:
        """Append the redaction of an entry, and remove the entry's payload.

        The redaction repeats the columns of the entry, so that a change of these is still detected.
        Raises StoreError if the entry is already redacted or is a redaction itself.
        """
        if row["payload"] is None or row["kind"] == "redaction":
            raise Conflict(
                f"entry {row['id']} is {'a redaction' if row['payload'] else 'redacted'} already."
            )
        decision = self.decision(
            kind="redaction",
            reviewer=by,
            reason=reason,
            extra={"redacts": row["id"], "kept": self.facts(row)},
            **{name: row[name] for name in self.about},
        )
        entry = self.append(
            connection,
            decision,
            at,
            {**{name: row[name] for name in self.links}, "redacts": row["seq"]},
        )
        sql = f"DELETE FROM {self.payloads} WHERE entry_seq = ?"  # noqa: S608
        connection.execute(sql, [row["seq"]])
        return entry

    def verify(self, connection: sqlite3.Connection) -> LogCheck:
        """Check the whole chain, and report every inconsistent entry and missing trigger."""
        broken, set_back = list[str](), list[str]()
        length, redacted, previous, expected, latest = 0, 0, NOTHING_BEFORE, 1, ""
        if gone := guards.missing(connection, self.table):
            broken.append(
                f"the {self.name} has lost its triggers, so entries could be altered"
                f" ({', '.join(gone)})"
            )
        for row in connection.execute(f"{self.select} ORDER BY log.seq"):
            length, redacted = length + 1, redacted + (row["payload"] is None)
            problems = self._problems(connection, row, previous, expected)
            broken += [f"{self.noun} {row['seq']} ({row['id']}): {problem}" for problem in problems]
            if row["at"] < latest:
                set_back.append(
                    f"{self.noun} {row['seq']} ({row['id']}): it is dated before the one before it"
                )
            previous, expected, latest = row["digest"], row["seq"] + 1, row["at"]
        for (seq,) in connection.execute(
            f"SELECT entry_seq FROM {self.payloads} "  # noqa: S608
            f"WHERE entry_seq NOT IN (SELECT seq FROM {self.table})"
        ):
            broken.append(
                f"{self.noun} {seq}: its entry is missing, but its content is still stored"
            )
        return LogCheck(
            length=length,
            head=previous,
            redacted=redacted,
            broken=tuple(broken),
            set_back=tuple(set_back),
        )

    def _problems(
        self, connection: sqlite3.Connection, row: sqlite3.Row, previous: str, expected: int
    ) -> Iterator[str]:
        if row["seq"] != expected:
            yield f"entries {expected} to {row['seq'] - 1} before it are missing"
        if row["previous"] != previous:
            yield (
                "it doesn't continue the entry before it: that one was altered, replaced or removed"
            )
        if row["digest"] != _entry_digest(
            row["seq"], row["at"], row["payload_digest"], row["previous"]
        ):
            yield "its digest doesn't match its number, time and content: the entry was altered"
        if row["id"] != row["digest"][:_ID_LENGTH]:
            yield "its id doesn't match its digest: the entry was altered"
        if row["payload"] is None:
            yield from self._redaction_problems(connection, row)
        else:
            yield from self._payload_problems(row)

    def _payload_problems(self, row: sqlite3.Row) -> Iterator[str]:
        if sha256(row["payload"]) != row["payload_digest"]:
            yield "its content was altered: the stored text has another digest"
            return
        try:
            decision = self.decision.model_validate_json(row["payload"])
        except ValidationError:
            yield "its content can't be read: it was altered"
            return
        decided = self.facts(decision)
        for name, value in self.facts(row).items():
            if decided[name] != value:
                yield f"the log has {name} {value!r} where {decided[name]!r} was decided"
        if row["reviewer"] != decision.reviewer:
            yield (
                f"the log has the reviewer {row['reviewer']!r} where {decision.reviewer!r} decided"
            )

    def _redaction_problems(
        self, connection: sqlite3.Connection, row: sqlite3.Row
    ) -> Iterator[str]:
        redaction = next(iter(self.rows(connection, "log.redacts = ?", [row["seq"]])), None)
        if redaction is None or redaction["payload"] is None:
            yield "its content is missing, but no redaction explains it"
            return
        extra = self.decision.model_validate_json(redaction["payload"]).extra
        if extra.get("redacts") != row["id"] or extra.get("kept") != self.facts(row):
            yield (
                f"the log has other facts about it than its redaction (entry {redaction['seq']})"
            )


class StoredLog(StorePart, Generic[D, E]):
    """Reads a log of a store and redacts its entries."""

    log: ChainedLog[D, E]

    def redact(self, entry_id: str, *, by: str, reason: str, at: str | None = None) -> E:
        """Remove the payload of an entry, and return the entry that records the redaction.

        While another program reads an old state, the write-ahead log still holds the text
        (see ``Store.settle``).

        Raises:
            UnknownRecord: There is no such entry.
            StoreError: The entry is already redacted or is a redaction itself.

        """
        with self._database.transaction() as connection:
            row = self.log.row(connection, entry_id)
            entry = self.log.redact(
                connection, row, by=by, reason=reason, at=at or self._database.now()
            )
            self.on_redacted(connection, row)
        # the write-ahead log holds pages with the old text until it is truncated
        self._database.on_commit(lambda: settle(self._database))
        return entry

    def on_redacted(self, connection: sqlite3.Connection, row: sqlite3.Row) -> None:
        """Update the records that depend on the redacted entry."""
        raise NotImplementedError

    def with_token(self, token: str) -> E | None:
        """Return the entry that was made with this token, or None."""
        with self._database.reading() as connection:
            rows = self.log.rows(connection, "log.token = ?", [token])
            return next(map(self.log.entry_of, rows), None)

    def iterate(self) -> Iterator[E]:
        """Yield the whole log from its beginning, loading 100 entries at a time."""
        return map(
            self.log.entry_of,
            self._database.walk(f"{self.log.select} WHERE log.seq > ? ORDER BY log.seq"),
        )

    def head(self) -> LogHead:
        """Return the length and the last digest."""
        with self._database.reading() as connection:
            return self.log.head(connection)

    def verify(self) -> LogCheck:
        """Check the whole chain, and report every inconsistent entry and missing trigger."""
        with self._database.reading() as connection:
            return self.log.verify(connection)


def check_subjects(
    rows: Iterable[sqlite3.Row],
    decision: type[D],
    noun: str,
    compare: Callable[[sqlite3.Row, D], str | list[str]],
) -> SubjectCheck:
    """Compare the entries of a log with the stored records that they are about.

    Args:
        rows: Rows with ``seq``, ``id``, ``payload`` and the columns that ``compare`` needs.
        decision: The model of the payload.
        noun: The name of an entry in messages.
        compare: Returns the problems of one entry, or the reason why it can't be compared
            as a string.

    """
    broken: list[str] = []
    reasons: Counter[str] = Counter()
    checked = 0
    for row in rows:
        if row["payload"] is None:
            reasons["redacted"] += 1
            continue
        try:
            decided = decision.model_validate_json(row["payload"])
        except ValidationError:
            continue  # the check of the chain names it
        if decided.about is None:
            found: str | list[str] = [
                (
                    "has no digests of what it is about: it was not made by the workbench, or was"
                    " altered"
                )
            ]
        else:
            found = compare(row, decided)
        if isinstance(found, str):
            reasons[found] += 1
        else:
            broken += [f"{noun} {row['seq']} ({row['id']}): {problem}" for problem in found]
            checked += not found
    return SubjectCheck(checked=checked, not_checkable=dict(reasons), broken=tuple(broken))

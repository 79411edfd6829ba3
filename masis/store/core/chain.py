"""The hash chain that the decision log and the screening log are bound by.

``digest`` = SHA-256 over sequence number, time, digest of the payload and digest of the entry before, a line each; the
first entry follows 64 zeros. An entry's id is the beginning of its digest. What an entry says is its payload, kept in a
table of its own, so that one can be redacted, which is an entry itself, and the chain stays whole.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

from pydantic import ValidationError

from masis.errors import InputError
from masis.schema.base import Record
from masis.schema.review import LogCheck
from masis.store.audits.cases import canonical_json, sha256
from masis.store.core import guards
from masis.store.records import LogHead

NOTHING_BEFORE = "0" * 64
"""What the first entry follows."""

_ID_LENGTH = 24


class Place(NamedTuple):
    """Where an entry stands in its chain; the fields are columns of the log."""

    seq: int
    id: str
    at: str
    payload_digest: str
    previous: str
    digest: str


PLACE = Place._fields
"""The fields of an entry that make the chain."""


def place_after(head: LogHead, at: str, payload_digest: str) -> Place:
    """Where an entry stands that is appended at this time."""
    seq = head.length + 1
    digest = entry_digest(seq, at, payload_digest, head.digest)
    return Place(seq, entry_id(digest), at, payload_digest, head.digest, digest)


def place_of(entry: Record) -> Place:
    """Where an entry says that it stands."""
    return Place(*(getattr(entry, name) for name in PLACE))


def entry_digest(seq: int, at: str, payload_digest: str, previous: str) -> str:
    """The link of the chain."""
    return sha256(f"{seq}\n{at}\n{payload_digest}\n{previous}")


def entry_id(digest: str) -> str:
    """What people call an entry by."""
    return digest[:_ID_LENGTH]


def head_of(connection: sqlite3.Connection, log: str) -> LogHead:
    """Length and last digest of the log (the name of its table)."""
    row = connection.execute(f"SELECT seq, digest FROM {log} ORDER BY seq DESC LIMIT 1").fetchone()  # noqa: S608
    return LogHead(*(row or (0, NOTHING_BEFORE)))


def payload_of(said: Record, reviewer: str, token: str | None) -> str:
    """The text that is kept and digested. Raises InputError where it holds what can't be kept as text."""
    try:
        payload = canonical_json(said.model_dump(mode="json"))
        payload.encode()
    except (ValueError, TypeError) as error:
        raise InputError(
            "the entry holds what can't be kept as text", cure=f"Remove it and submit again ({error})."
        ) from error
    if "\x00" in f"{reviewer}{token}":
        raise InputError("the reviewer's name holds a null byte", cure="Type the name again.", field="reviewer")
    return payload


class Chained(NamedTuple):
    """One log that is bound by a chain: how its entries are read, and what is checked of them.

    ``entries`` selects every entry with its payload (NULL where redacted) and reviewer; ``facts`` is what the log's own
    columns tell of an entry, and of a payload, by the same names; ``said`` reads a payload.
    """

    log: str
    payloads: str
    entries: str
    name: str
    entry: str
    said: Callable[[str], Record]
    facts: Callable[[Any], Mapping[str, Any]]


def verify(connection: sqlite3.Connection, chained: Chained) -> LogCheck:
    """Walk the chain and name every entry that doesn't fit, and why; and every guard of the log that is gone."""
    broken: list[str] = []
    length, redacted, previous, expected = 0, 0, NOTHING_BEFORE, 1
    if gone := guards.missing(connection, chained.log):
        broken.append(f"the {chained.name} has lost its guards, entries could be altered ({', '.join(gone)})")
    for row in connection.execute(f"{chained.entries} ORDER BY log.seq"):
        length, redacted = length + 1, redacted + (row["payload"] is None)
        faults = _faults(connection, chained, row, previous, expected)
        broken += [f"{chained.entry} {row['seq']} ({row['id']}): {fault}" for fault in faults]
        previous, expected = row["digest"], row["seq"] + 1
    for (seq,) in connection.execute(
        f"SELECT entry_seq FROM {chained.payloads} WHERE entry_seq NOT IN (SELECT seq FROM {chained.log})"  # noqa: S608
    ):
        broken.append(f"{chained.entry} {seq}: its place in the log is gone, what was decided is left")
    return LogCheck(length=length, head=previous, redacted=redacted, broken=tuple(broken))


def _faults(
    connection: sqlite3.Connection, chained: Chained, row: sqlite3.Row, previous: str, expected: int
) -> Iterator[str]:
    if row["seq"] != expected:
        yield f"entries {expected} to {row['seq'] - 1} before it are missing"
    if row["previous"] != previous:
        yield "it does not follow the entry before it: that one was altered, replaced or removed"
    if row["digest"] != entry_digest(row["seq"], row["at"], row["payload_digest"], row["previous"]):
        yield "its digest does not fit its number, time and content: the entry was altered"
    if row["id"] != entry_id(row["digest"]):
        yield "its id does not fit its digest: the entry was altered"
    if row["payload"] is None:
        yield from _redaction_faults(connection, chained, row)
    else:
        yield from _payload_faults(chained, row)


def _payload_faults(chained: Chained, row: sqlite3.Row) -> Iterator[str]:
    if sha256(row["payload"]) != row["payload_digest"]:
        yield "what was decided was altered: the text kept has another digest"
        return
    try:
        decision = chained.said(row["payload"])
    except ValidationError:
        yield "what was decided can't be read: it was altered"
        return
    said = chained.facts(decision)
    for name, value in chained.facts(row).items():
        if said[name] != value:
            yield f"the log has {name} {value!r} where {said[name]!r} was decided"
    reviewer: str = getattr(decision, "reviewer", "")
    if row["reviewer"] != reviewer:
        yield f"the log has the reviewer {row['reviewer']!r} where {reviewer!r} decided"


def _redaction_faults(connection: sqlite3.Connection, chained: Chained, row: sqlite3.Row) -> Iterator[str]:
    redaction = connection.execute(f"{chained.entries} WHERE log.redacts = ?", [row["seq"]]).fetchone()
    if redaction is None or redaction["payload"] is None:
        yield "what was decided is gone, and no redaction says why"
        return
    extra: Mapping[str, Any] = getattr(chained.said(redaction["payload"]), "extra", {})
    if extra.get("redacts") != row["id"] or extra.get("kept") != chained.facts(row):
        yield f"the log has something else about it than its redaction (entry {redaction['seq']}) kept"

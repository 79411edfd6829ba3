"""Signs log entries with a key that is stored outside of the database.

The hash chain reveals an altered entry unless it is recomputed, which anyone who can write the file
can do. A signature is HMAC-SHA-256 over the name of the log and the number and digest of an entry.
The digest covers the entry's time and content and every entry before it. Without the key nobody can
rewrite the chain, change a time or append an entry unnoticed.

Signatures don't reveal a truncated log, or a database that was replaced by an older copy. For that,
store the head of the log elsewhere (``LogHead``).
"""

from __future__ import annotations

import hashlib
import hmac
import sqlite3
from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import NamedTuple

from masis.schema.review import SignatureCheck

LOGS = ("decision_log", "screening_log", "preference_log")


class SigningResult(NamedTuple):
    """How many entries were signed now, and how many had a signature before."""

    new: int
    before: int


def signature(key: bytes, log: str, seq: int, digest: str) -> str:
    """Return the signature of one entry as hexadecimal digits."""
    return hmac.new(key, f"masis\n{log}\n{seq}\n{digest}".encode(), hashlib.sha256).hexdigest()


def sign(connection: sqlite3.Connection, key: bytes, log: str, seq: int, digest: str) -> None:
    """Sign an entry, inside the transaction that appends it."""
    connection.execute(
        "INSERT OR REPLACE INTO log_signatures VALUES (?, ?, ?)",
        [log, seq, signature(key, log, seq, digest)],
    )


def sign_unsigned(connection: sqlite3.Connection, key: bytes) -> SigningResult:
    """Sign every unsigned entry. Verify the log first, since forged entries would be signed too."""
    before = int(connection.execute("SELECT count(*) FROM log_signatures").fetchone()[0])
    new = 0
    for log in LOGS:
        for row in connection.execute(
            f"SELECT seq, digest FROM {log} "  # noqa: S608
            "WHERE seq NOT IN (SELECT seq FROM log_signatures WHERE log = ?)",
            [log],
        ).fetchall():
            sign(connection, key, log, row["seq"], row["digest"])
            new += 1
    return SigningResult(new, before)


def check(connection: sqlite3.Connection, key: bytes) -> SignatureCheck:
    """Check the signatures of both logs, and list entries without a signature and signatures
    without an entry.
    """
    signed, broken = 0, list[str]()
    for log in LOGS:
        unsigned: list[int] = []
        for row in connection.execute(
            f"""SELECT log.seq, log.id, log.digest, signature FROM {log} AS log
                LEFT JOIN log_signatures AS signed ON signed.log = ? AND signed.seq = log.seq
                    ORDER BY log.seq""",  # noqa: S608
            [log],
        ):
            if row["signature"] is None:
                unsigned.append(row["seq"])
            elif hmac.compare_digest(
                row["signature"], signature(key, log, row["seq"], row["digest"])
            ):
                signed += 1
            else:
                broken.append(
                    f"entry {row['seq']} ({row['id']}) of the {_log_title(log)}: its signature"
                    " doesn't fit this key: the entry, its time or one before it was replaced, or"
                    " another key signed it"
                )
        broken += _unsigned_entries(log, unsigned)
        over = connection.execute(
            "SELECT count(*), min(seq) FROM log_signatures WHERE log = ? "  # noqa: S608
            f"AND seq NOT IN (SELECT seq FROM {log})",
            [log],
        ).fetchone()
        if over[0]:
            broken.append(
                f"the {_log_title(log)} lacks {over[0]} signed entries from number {over[1]} on:"
                " they were removed"
            )
    return SignatureCheck(signed=signed, broken=tuple(broken))


def _log_title(log: str) -> str:
    return log.replace("_", " ")


def _unsigned_entries(log: str, numbers: Sequence[int]) -> Iterator[str]:
    """Yield a message for each range of consecutive unsigned entries."""
    for _, following in groupby(enumerate(numbers), key=lambda placed: placed[1] - placed[0]):
        run = [seq for _, seq in following]
        entries = f"entry {run[0]}" if len(run) == 1 else f"entries {run[0]} to {run[-1]}"
        yield (
            f"{entries} of the {_log_title(log)}: not signed, so made without the key. If the"
            " workbench made them before it had the key, `masis verify-log --key FILE --sign` signs"
            " them"
        )

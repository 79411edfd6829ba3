"""Dataset versions: which cases and which decisions on them a data set was made of, kept so that it can be made again.

A version keeps no text. It names for each case its state, its side of the split, and the entries of the decision log
and the audited iterations that counted then, by their numbers: decisions, undos and audits that come later change none
of it. What is redacted later, or removed by retention, is gone from the version too; ``Datasets.lost`` counts it.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Any, NamedTuple

from masis.errors import StoreError, UnknownRecord
from masis.store.core.chained_log import canonical_json, sha256
from masis.store.core.connections import Database
from masis.store.records import DatasetVersion, LogHead, LostFromDataset
from masis.store.reviews.decisions import LOG
from masis.store.reviews.outcomes import ALL_PARTS, AT_ONCE, CaseOutcome, Judgement, Parts, Pinned, outcomes_of

_COLUMNS = ("name", "at", "by", "description", "form", "encoding", "log_length", "log_digest", "app")
_JSON = ("selection", "manifest")


class PinnedJudgement(NamedTuple):
    """A judgement by the numbers of its entry, run and iteration; ``label`` digests what the person decided.

    ``redacted`` says that the entry had lost its words already.
    """

    entry: int | None
    in_force: int
    run: int | None
    number: int | None
    redacted: int
    label: str


class Member(NamedTuple):
    """A case of a version: as it stood, on which side of the split, and how many rows it gave."""

    case_seq: int
    state: str
    redacted: int
    side: str
    rows: int
    judgements: tuple[PinnedJudgement, ...]


class ComparedMember(NamedTuple):
    """What two versions are compared by."""

    case_seq: int
    case_id: str
    state: str
    side: str
    judgements: tuple[PinnedJudgement, ...]


def pinned(outcome: CaseOutcome, side: str, rows: int) -> Member:
    """Return a case as a version keeps it."""
    judgements = tuple(
        PinnedJudgement(
            entry=each.entry.seq if each.entry else None,
            in_force=int(each.in_force),
            run=each.run_seq if each.run is not None else None,
            number=each.number,
            redacted=int(each.entry is not None and each.entry.decision is None),
            label=_label(each),
        )
        for each in outcome.judgements
    )
    return Member(outcome.seq, outcome.state, int(outcome.redacted), side, rows, judgements)


def _label(judgement: Judgement) -> str:
    """Digest what a person decided, without when, why and by which click."""
    decision = judgement.entry.decision if judgement.entry else None
    if decision is None:
        return ""
    labels = [
        [each.target, each.label, each.start, each.end, each.text, *([each.severity] if each.severity else [])]
        for each in decision.labels
    ]
    said = [decision.reviewer, decision.kind, decision.verdict, decision.corrected_answer, labels]
    return sha256(canonical_json(said))[:16]


class Datasets:
    """The dataset versions of a store."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def add(self, version: DatasetVersion, members: Iterable[Member]) -> None:
        """Keep a version with its cases. Raises StoreError where its name is taken."""
        with self._database.transaction() as connection:
            if connection.execute("SELECT 1 FROM dataset_versions WHERE name = ?", [version.name]).fetchone():
                raise StoreError(f"there is a dataset version {version.name!r} already: choose another name.")
            seq = insert_version(connection, version)
            insert_members(connection, seq, members)

    def remove(self, name: str) -> None:
        """Remove a version; cases and decisions stay. Raises UnknownRecord."""
        with self._database.transaction() as connection:
            seq = _seq(connection, name)
            connection.execute("DELETE FROM dataset_members WHERE dataset_seq = ?", [seq])
            connection.execute("DELETE FROM dataset_versions WHERE seq = ?", [seq])

    def list_all(self) -> tuple[DatasetVersion, ...]:
        """All versions, the newest first."""
        rows = self._database.execute("SELECT * FROM dataset_versions ORDER BY seq DESC")
        return tuple(map(read_version, rows))

    def get(self, name: str) -> DatasetVersion:
        """One version. Raises UnknownRecord."""
        with self._database.reading() as connection:
            row = connection.execute("SELECT * FROM dataset_versions WHERE seq = ?", [_seq(connection, name)])
            return read_version(row.fetchone())

    def any_versions(self) -> bool:
        """Whether there is a version."""
        return bool(self._database.execute("SELECT 1 FROM dataset_versions LIMIT 1"))

    def log_head(self) -> LogHead:
        """Where the decision log ends now."""
        with self._database.reading() as connection:
            return LOG.head(connection)

    def lost(self, name: str) -> LostFromDataset:
        """How many cases of a version can't be read any more as they were. Raises UnknownRecord."""
        with self._database.reading() as connection:
            seq = _seq(connection, name)
            each = "FROM dataset_members AS member, json_each(member.judgements) AS judged WHERE dataset_seq = :seq"
            redacted = f"""
                SELECT case_seq FROM dataset_members JOIN cases ON cases.seq = case_seq
                WHERE dataset_seq = :seq AND redacted = 0 AND redaction_seq IS NOT NULL
                UNION SELECT member.case_seq {each} AND judged.value ->> 4 = 0
                    AND EXISTS (SELECT 1 FROM decision_log WHERE redacts = judged.value ->> 0)
            """  # noqa: S608 (names of ours)
            removed = f"""
                SELECT member.case_seq {each} AND judged.value ->> 2 IN (SELECT seq FROM runs WHERE payload IS NULL)
                EXCEPT SELECT case_seq FROM ({redacted})
            """  # noqa: S608
            counts = [
                connection.execute(f"SELECT count(*) FROM ({query})", {"seq": seq}).fetchone()[0]  # noqa: S608
                for query in (redacted, removed)
            ]
        return LostFromDataset(redacted=counts[0], removed=counts[1])

    def outcomes(self, name: str, parts: Parts = ALL_PARTS) -> Iterator[tuple[CaseOutcome, str]]:
        """Yield the cases of a version as they stood, each with its side of the split. Raises UnknownRecord."""
        with self._database.reading() as connection:
            rows = members_of(connection, _seq(connection, name))
            while some := list(islice(rows, AT_ONCE)):
                yield from _outcomes(connection, some, parts)

    def compared(self, name: str) -> Iterator[ComparedMember]:
        """Yield the cases of a version that gave rows, in the order of import. Raises UnknownRecord."""
        with self._database.reading() as connection:
            for row in connection.execute(
                """SELECT case_seq, id, member.state, side, judgements FROM dataset_members AS member
                   JOIN cases ON cases.seq = case_seq WHERE dataset_seq = ? AND rows > 0 ORDER BY case_seq""",
                [_seq(connection, name)],
            ):
                seq, case_id, state, side, judgements = row
                yield ComparedMember(seq, case_id, state, side, _judgements(judgements))


def _outcomes(
    connection: sqlite3.Connection, members: Iterable[Member], parts: Parts
) -> Iterator[tuple[CaseOutcome, str]]:
    found = {each.case_seq: each for each in members}
    pins = {
        seq: [Pinned(each.entry, bool(each.in_force), each.run, each.number) for each in member.judgements]
        for seq, member in found.items()
    }
    for outcome in outcomes_of(connection, pins, parts):
        member = found[outcome.seq]
        yield outcome._replace(state=member.state, redacted=bool(member.redacted)), member.side


def members_of(connection: sqlite3.Connection, seq: int) -> Iterator[Member]:
    """Yield the members of a version in order, by the number of the version."""
    rows = connection.execute(
        """SELECT case_seq, state, redacted, side, rows, judgements FROM dataset_members
           WHERE dataset_seq = ? ORDER BY case_seq""",
        [seq],
    )
    for case_seq, state, redacted, side, count, judgements in rows:
        yield Member(case_seq, state, redacted, side, count, _judgements(judgements))


def insert_version(connection: sqlite3.Connection, version: DatasetVersion) -> int:
    """Write a version without its members, inside a transaction; returns its number."""
    values = [getattr(version, name) for name in _COLUMNS]
    values += [json.dumps(getattr(version, name), ensure_ascii=False) for name in _JSON]
    columns = (*_COLUMNS, *_JSON)
    cursor = connection.execute(
        f"INSERT INTO dataset_versions ({', '.join(columns)}) VALUES ({', '.join('?' * len(columns))})",  # noqa: S608
        values,
    )
    return int(cursor.lastrowid or 0)


def insert_members(connection: sqlite3.Connection, seq: int, members: Iterable[Member]) -> None:
    """Write members of a version, inside a transaction."""
    connection.executemany(
        "INSERT INTO dataset_members VALUES (?, ?, ?, ?, ?, ?, ?)",
        ([seq, *each[:5], json.dumps(each.judgements, separators=(",", ":"))] for each in members),
    )


def read_version(row: sqlite3.Row) -> DatasetVersion:
    """Return a version from its row."""
    values: dict[str, Any] = {name: row[name] for name in _COLUMNS}
    return DatasetVersion(**values, **{name: json.loads(row[name]) for name in _JSON})


def _judgements(text: str) -> tuple[PinnedJudgement, ...]:
    return tuple(PinnedJudgement(*each) for each in json.loads(text))


def _seq(connection: sqlite3.Connection, name: str) -> int:
    row = connection.execute("SELECT seq FROM dataset_versions WHERE name = ?", [name]).fetchone()
    if row is None:
        raise UnknownRecord(f"there is no dataset version {name!r}: `masis dataset list` names all.")
    return int(row[0])

"""Retention: what is old enough to go, what is kept all the same, and removing it.

What goes is the content of runs and screenings (results, iterations, drafts, events, steps; rounds, grades and the
copies of abstracts they are about), with a run all replies cached for its case, and grades remembered. What stays is
the row with its figures, so that whatever refers to it still finds it; cases and corpora, which are input; both logs;
the log of executions. Removal and the record of it share a transaction, and are done in batches, between which others
write.
"""

from __future__ import annotations

import hashlib
import json
import sqlite3
import time
import zlib
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NamedTuple

from masis import version
from masis.errors import UnknownRecord
from masis.schema.retention import (
    Candidate,
    KeptFor,
    Parts,
    Purge,
    PurgedKind,
    PurgePlan,
    Removal,
    RetentionRule,
    Trigger,
)
from masis.store.audits.replies import remove_replies
from masis.store.core.connections import Part, explained_errors
from masis.store.jobs import unpack, update_job
from masis.store.retention.shrinking import settle
from masis.store.reviews.states import refresh


class Purges(Part):
    """The purges of a store."""

    def history(self) -> tuple[Purge, ...]:
        """Every purge, newest first, with how much went."""
        with self._database.reading() as connection:
            rows = connection.execute("SELECT seq FROM purges ORDER BY seq DESC").fetchall()
            return tuple(_purge(connection, row["seq"]) for row in rows)

    def removals(self, purge: int) -> Iterator[Removal]:
        """What one purge removed, record by record."""
        seq = 0
        while rows := self._database.execute(
            "SELECT * FROM purged WHERE purge_seq = ? AND seq > ? ORDER BY seq LIMIT 500", [purge, seq]
        ):
            for row in rows:
                named = {name: row[name] for name in ("kind", "digest", "bytes")}
                yield Removal(id=row["record_id"], parts=Parts(**json.loads(row["parts"])), **named)
            seq = rows[-1]["seq"]


def _purge(connection: sqlite3.Connection, seq: int) -> Purge:
    """One purge with how much went. Raises UnknownRecord."""
    row = connection.execute("SELECT * FROM purges WHERE seq = ?", [seq]).fetchone()
    if row is None:
        raise UnknownRecord(f"there is no purge {seq}.")
    sums = ", ".join(f"coalesce(sum(parts ->> '$.{name}'), 0) AS {name}" for name in Parts.model_fields)
    found = connection.execute(
        f"""SELECT coalesce(sum(kind = 'run'), 0) AS runs, coalesce(sum(kind = 'screening'), 0) AS screenings,
                coalesce(sum(bytes), 0) AS bytes, {sums}
            FROM purged WHERE purge_seq = ?""",  # noqa: S608 (names of our own fields)
        [seq],
    ).fetchone()
    return Purge(
        rule=RetentionRule.model_validate_json(row["rule"]),
        parts=Parts(**{name: found[name] for name in Parts.model_fields}),
        **{name: row[name] for name in ("seq", "at", "by", "how", "app")},
        **{name: found[name] for name in ("runs", "screenings", "bytes")},
    )


BATCH = 50
"""Runs a transaction: small enough (some 30 ms) not to keep other writers waiting."""

BREATH = 0.5
"""How long the lock is left alone after each transaction, against how long it was held. Who waits for it looks only now
and then whether it is free: taken again at once, it was not found free for seconds."""

_ENDED = "julianday(coalesce(nullif(ended_at, ''), seen_at))"


def _old(table: str) -> str:
    """What has ended, at a time that can be read: another is no age."""
    return f"removed_by IS NULL AND {table}.state != 'running' AND {_ENDED} < julianday(:cutoff)"


_RUN_FACTS = """
    SELECT runs.seq, runs.id, cases.id AS about, runs.state, coalesce(nullif(ended_at, ''), seen_at) AS ended,
        coalesce(length(payload), 0) + coalesce(length(CAST(draft AS BLOB)), 0) AS bytes, draft IS NOT NULL AS drafts,
        EXISTS (SELECT 1 FROM decision_log WHERE run_seq = runs.seq AND kind != 'policy_accept') OR (
            runs.seq = cases.run_seq AND EXISTS (
                SELECT 1 FROM decision_log WHERE seq = cases.decision_seq AND kind = 'decision' AND run_seq IS NULL
            )
        ) AS decided,
        runs.seq = cases.run_seq AND cases.state = 'needs_review' AS waiting
    FROM runs JOIN cases ON cases.seq = runs.case_seq
"""
_RUNS = f"{_RUN_FACTS} WHERE {_old('runs')}"
_SCREENINGS = f"""
    SELECT seq, id, question AS about, state, coalesce(nullif(ended_at, ''), seen_at) AS ended,
        coalesce(length(payload), 0) AS bytes, 0 AS drafts,
        EXISTS (SELECT 1 FROM screening_log WHERE screening_seq = screenings.seq AND kind != 'redaction') AS decided,
        0 AS waiting
    FROM screenings WHERE {_old("screenings")}
"""  # noqa: S608


class Retention(Part):
    """What retention does in a store."""

    def plan(self, rule: RetentionRule) -> PurgePlan:
        """What a purge by this rule would do now; changes nothing."""
        with explained_errors(self._database.path), self._database.reading() as connection:
            old = list(_rows(connection, rule))
            goes = [*_candidates(connection, [each for each in old if each.kept_for is None])]
            return PurgePlan(
                rule=rule,
                goes=(*goes, *_grades(connection, rule)),
                kept=Counter(each.kept_for for each in old if each.kept_for is not None),
                runs_in_all=_count(connection, "runs WHERE removed_by IS NULL"),
                screenings_in_all=_count(connection, "screenings WHERE removed_by IS NULL"),
                file_bytes=self._database.path.stat().st_size,
            )

    def remove(
        self,
        rule: RetentionRule,
        *,
        by: str,
        how: Trigger,
        on_batch: Callable[[int], None] | None = None,
        stopped: Callable[[], bool] | None = None,
    ) -> Purge | None:
        """Remove what the rule says, and record it; None where nothing was to go.

        Whether something goes is asked again in the transaction that removes it: what was decided, taken up or begun
        meanwhile stays. ``on_batch`` hears how many records have been dealt with. Where ``stopped`` says so it ends
        between two batches; what is removed by then is recorded. Raises StoreError where the database is held by
        another for too long, damaged, or without room to write.
        """
        with explained_errors(self._database.path):
            return self._remove(rule, by, how, on_batch, stopped)

    def _remove(
        self,
        rule: RetentionRule,
        by: str,
        how: Trigger,
        on_batch: Callable[[int], None] | None,
        stopped: Callable[[], bool] | None,
    ) -> Purge | None:
        with self._database.reading() as connection:
            found = [each for each in _rows(connection, rule) if each.kept_for is None]
        seq: int | None = None
        for start in range(0, len(found), BATCH):
            if stopped is not None and stopped():
                break
            with self._database.transaction(durable=False) as connection:
                held_from = time.monotonic()
                batch = [each for each in found[start : start + BATCH] if _still_goes(connection, rule, each)]
                if batch:
                    seq = seq or begin_purge(connection, rule, by, how, self._database.now())
                    _remove(connection, seq, batch)
            time.sleep((time.monotonic() - held_from) * BREATH)
            if on_batch is not None:
                on_batch(min(start + BATCH, len(found)))
        with self._database.transaction(durable=False) as connection:
            if _count(connection, "remembered_grades WHERE julianday(at) < julianday(?)", [rule.cutoff]):
                seq = seq or begin_purge(connection, rule, by, how, self._database.now())
                _remove_grades(connection, seq, rule)
        settle(self._database)
        with self._database.reading() as connection:
            return None if seq is None else _purge(connection, seq)


class _Found(NamedTuple):
    """Something that is old enough, its parts not yet counted."""

    seq: int
    kind: PurgedKind
    id: str
    about: str
    state: str
    ended_at: str
    bytes: int
    drafts: int
    kept_for: KeptFor | None
    waits: bool


def _rows(connection: sqlite3.Connection, rule: RetentionRule) -> Iterator[_Found]:
    """Whatever is old enough."""
    kinds: tuple[tuple[PurgedKind, str], ...] = (("run", _RUNS), ("screening", _SCREENINGS))
    for kind, sql in kinds:
        for row in connection.execute(f"{sql} ORDER BY 1", {"cutoff": rule.cutoff}):
            seq, record_id, about, state, ended, size, drafts, decided, waiting = row
            kept_for = _kept_for(rule, decided=decided, waiting=waiting)
            yield _Found(seq, kind, record_id, about, state, ended, size, drafts, kept_for, bool(waiting))


def _kept_for(rule: RetentionRule, *, decided: int, waiting: int | None) -> KeptFor | None:
    if decided and not rule.decided:
        return "decided"
    return "waiting" if waiting and not decided and not rule.waiting else None


_ABSTRACTS = "length(abstract) + coalesce(length(grade), 0)"
"""The size of a row of ``screening_abstracts``."""


def _candidates(connection: sqlite3.Connection, goes: Iterable[_Found]) -> Iterator[Candidate]:
    """What goes, with its parts counted."""
    sizes: dict[int, dict[str, tuple[int, int]]] = defaultdict(dict)
    for seq, kind, count, size in connection.execute(
        f"""SELECT job_seq, kind, count(*), sum(length(payload)) FROM job_parts GROUP BY 1, 2
            UNION ALL SELECT screening_seq, 'abstract', count(*), sum({_ABSTRACTS})
            FROM screening_abstracts GROUP BY 1"""  # noqa: S608
    ):
        sizes[seq][f"{kind}s"] = count, size
    graded = dict(
        connection.execute(
            "SELECT screening_seq, count(*) FROM screening_abstracts WHERE grade IS NOT NULL GROUP BY 1"
        ).fetchall()
    )
    for found in goes:
        parts = {name: count for name, (count, _) in sizes[found.seq].items()} | {"drafts": found.drafts}
        if found.kind == "screening":
            parts["grades"] = graded.get(found.seq, 0)
        yield Candidate(
            kind=found.kind,
            id=found.id,
            about=found.about,
            state=found.state,
            ended_at=found.ended_at,
            bytes=found.bytes + sum(size for _, size in sizes[found.seq].values()),
            parts=Parts(**parts),
            waits=found.waits,
        )


def _grades(connection: sqlite3.Connection, rule: RetentionRule) -> Iterator[Candidate]:
    """The remembered grades that are old enough, all as one."""
    grades, size, oldest = connection.execute(
        "SELECT count(*), sum(length(grade)), min(at) FROM remembered_grades WHERE julianday(at) < julianday(?)",
        [rule.cutoff],
    ).fetchone()
    if grades:
        yield Candidate(
            kind="remembered_grades",
            id="",
            about="",
            state="finished",
            ended_at=oldest,
            bytes=size,
            parts=Parts(grades=grades),
        )


def _still_goes(connection: sqlite3.Connection, rule: RetentionRule, found: _Found) -> bool:
    sql, table = (_RUNS, "runs") if found.kind == "run" else (_SCREENINGS, "screenings")
    row = connection.execute(
        f"{sql} AND {table}.seq = :seq",
        {"cutoff": rule.cutoff, "seq": found.seq},
    ).fetchone()
    return row is not None and _kept_for(rule, decided=row["decided"], waiting=row["waiting"]) is None


def begin_purge(connection: sqlite3.Connection, rule: RetentionRule, by: str, how: Trigger, at: str) -> int:
    """Record that a purge begins; returns its number."""
    seq = int(connection.execute("SELECT coalesce(max(seq), 0) + 1 FROM purges").fetchone()[0])
    row = [seq, at, by, how, rule.model_dump_json(), version.APP]
    connection.execute("INSERT INTO purges (seq, at, by, how, rule, app) VALUES (?, ?, ?, ?, ?, ?)", row)
    return seq


def _record(
    connection: sqlite3.Connection, purge: int, kind: PurgedKind, record_id: str, digest: str, size: int, parts: Parts
) -> None:
    """Write what a purge removed."""
    connection.execute(
        """INSERT INTO purged (seq, purge_seq, kind, record_id, digest, bytes, parts)
           SELECT coalesce(max(seq), 0) + 1, ?, ?, ?, ?, ?, ? FROM purged""",
        [purge, kind, record_id, digest, size, parts.model_dump_json(exclude_defaults=True)],
    )


def _remove(connection: sqlite3.Connection, purge: int, batch: Sequence[_Found]) -> None:
    for found in batch:
        texts = run_texts(connection, found.seq) if found.kind == "run" else _screening_texts(connection, found.seq)
        size, parts = found.bytes, {"drafts": found.drafts}
        if found.kind == "screening":
            parts["grades"] = _count(
                connection, "screening_abstracts WHERE screening_seq = ? AND grade IS NOT NULL", [found.seq]
            )
        digest = _digest(texts)
        for kind, count, held in connection.execute(
            f"""SELECT kind, count(*), sum(length(payload)) FROM job_parts WHERE job_seq = ?1 GROUP BY 1
                UNION ALL SELECT 'abstract', count(*), coalesce(sum({_ABSTRACTS}), 0)
                FROM screening_abstracts WHERE screening_seq = ?1""",  # noqa: S608
            [found.seq],
        ):
            parts[f"{kind}s"], size = count, size + held
        connection.execute("DELETE FROM job_parts WHERE job_seq = ?", [found.seq])
        connection.execute("DELETE FROM screening_abstracts WHERE screening_seq = ?", [found.seq])
        _empty(connection, found, purge)
        _record(connection, purge, found.kind, found.id, digest, size, Parts(**parts))


def empty_runs(connection: sqlite3.Connection, purge: int, runs: Sequence[int]) -> None:
    """Remove the content of runs, by their numbers, whatever a rule would say, and record it as part of a purge."""
    rows = connection.execute(
        f"{_RUN_FACTS} WHERE runs.seq IN (SELECT value FROM json_each(?)) ORDER BY 1",  # noqa: S608 (text of ours)
        [json.dumps(list(runs))],
    ).fetchall()
    for seq, run_id, about, state, ended, size, drafts, *_ in rows:
        _remove(connection, purge, [_Found(seq, "run", run_id, about, state, ended, size, drafts, None, False)])


def _empty(connection: sqlite3.Connection, found: _Found, purge: int) -> None:
    """Leave of the row what the rest of the store refers to, and its figures."""
    update_job(connection, found.seq, payload=None, draft=None, headline=None, settings="{}", why="", removed_by=purge)
    if found.kind == "run":
        case_seq = connection.execute("SELECT case_seq FROM jobs WHERE seq = ?", [found.seq]).fetchone()[0]
        remove_replies(connection, case_seq)
        refresh(connection, case_seq)


def run_texts(connection: sqlite3.Connection, seq: int) -> list[str]:
    """A finished run as the line that ``masis export --format runs`` writes; else its draft and its iterations."""
    payload, draft = connection.execute("SELECT payload, draft FROM runs WHERE seq = ?", [seq]).fetchone()
    rows = connection.execute(
        "SELECT payload FROM job_parts WHERE job_seq = ? AND kind = 'iteration' ORDER BY number", [seq]
    )
    iterations = [_unpacked(row[0]) for row in rows]
    if payload is None:
        return [*([draft] if draft else []), *iterations]
    # the result is kept with an empty list where the iterations belong; in no text do quotes stand without a backslash
    return [_unpacked(payload).replace('"iterations":[]', f'"iterations":[{",".join(iterations)}]', 1)]


def _screening_texts(connection: sqlite3.Connection, seq: int) -> Iterator[str]:
    """Its result, its rounds, its abstracts and their grades, as they were stored."""
    for sql in (
        "SELECT payload FROM jobs WHERE seq = ? AND payload IS NOT NULL",
        "SELECT payload FROM job_parts WHERE job_seq = ? AND kind = 'round' ORDER BY number",
        "SELECT abstract FROM screening_abstracts WHERE screening_seq = ? ORDER BY seq",
        "SELECT grade FROM screening_abstracts WHERE screening_seq = ? AND grade IS NOT NULL ORDER BY seq",
    ):
        for row in connection.execute(sql, [seq]):
            yield _unpacked(row[0])


def _unpacked(packed: bytes) -> str:
    """A text as it was packed; where it is damaged, which must be removable too, its bytes in hexadecimal digits."""
    try:
        return unpack(packed)
    except (zlib.error, ValueError):
        return packed.hex()


def _digest(texts: Iterable[str]) -> str:
    """SHA-256 over texts, with a line break between each two."""
    digest = hashlib.sha256()
    for number, text in enumerate(texts):
        digest.update((f"\n{text}" if number else text).encode())
    return digest.hexdigest()


def _remove_grades(connection: sqlite3.Connection, purge: int, rule: RetentionRule) -> None:
    where = "remembered_grades WHERE julianday(at) < julianday(?)"
    rows = connection.execute(f"SELECT key, grade FROM {where} ORDER BY key", [rule.cutoff])  # noqa: S608
    texts, count, size = [], 0, 0
    for row in rows:
        texts.append(unpack(row["grade"]))
        count, size = count + 1, size + len(row["grade"])
    connection.execute(f"DELETE FROM {where}", [rule.cutoff])  # noqa: S608
    _record(connection, purge, "remembered_grades", "", _digest(texts), size, Parts(grades=count))


def _count(connection: sqlite3.Connection, what: str, values: Sequence[object] = ()) -> int:
    return int(connection.execute(f"SELECT count(*) FROM {what}", values).fetchone()[0])  # noqa: S608

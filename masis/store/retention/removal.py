"""Removes the content of old runs and screenings, and records each removal.

A purge deletes results, iterations, drafts, events and steps of runs, the cached replies of their
cases, the verdicts on their claims without passages, rounds, grades and copied abstracts of
screenings, and old cached grades. It keeps the rows with their figures, since other records refer
to them, and cases, corpora, both logs and the log of executions. A removal and its record share a
transaction. Purges work in batches, so that others can write in between.
"""

from __future__ import annotations

import hashlib
import json
import sqlite3
import time
import zlib
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence

from masis import version
from masis.schema.retention import (
    Candidate,
    PartCounts,
    Purge,
    PurgePlan,
    Removal,
    RetentionRule,
    Trigger,
)
from masis.store.audits.minimal_evidence import remove_results_of_run
from masis.store.audits.replies import remove_replies
from masis.store.core.connections import StorePart
from masis.store.core.sql import append, record_of
from masis.store.jobs import unpack, update_job
from masis.store.retention.shrinking import erase_removed_words
from masis.store.reviews.judge_trials import remove_trials_of_run
from masis.store.reviews.states import refresh


class Purges(StorePart):
    """The purges of a store."""

    def history(self) -> tuple[Purge, ...]:
        """Return every purge with the amounts it removed, newest first."""
        sums = ", ".join(
            f"coalesce(sum(parts ->> '$.{name}'), 0) AS {name}" for name in PartCounts.model_fields
        )
        rows = self._database.execute(
            f"""SELECT purges.*, coalesce(sum(kind = 'run'), 0) AS runs,
                    coalesce(sum(kind = 'screening'), 0) AS screenings,
                    coalesce(sum(bytes), 0) AS bytes, {sums}
                FROM purges LEFT JOIN purged ON purge_seq = purges.seq GROUP BY purges.seq
                    ORDER BY purges.seq DESC"""  # noqa: S608
        )
        return tuple(
            record_of(Purge, row, parsed=("rule",), parts=record_of(PartCounts, row))
            for row in rows
        )

    def removals(self, purge: int) -> Iterator[Removal]:
        """Yield the records that one purge removed."""
        sql = "SELECT *, record_id AS id FROM purged WHERE purge_seq = ? AND seq > ? ORDER BY seq"
        return (
            record_of(Removal, row, parsed=("parts",)) for row in self._database.walk(sql, purge)
        )


BATCH = 50
"""The number of runs per transaction, which then takes about 30 ms of other writers' time."""

BREATH = 0.5
"""The pause after each transaction, as a fraction of the time it held the write lock.

SQLite's busy handler polls the lock. Without a pause other writers didn't find it free for seconds.
"""

_FACTS = """
    SELECT jobs.seq, jobs.kind, jobs.id, case_seq, coalesce(cases.id, question) AS about,
        jobs.state, removed_by,
        coalesce(nullif(ended_at, ''), seen_at) AS ended_at,
        coalesce(length(payload), 0) + coalesce(length(CAST(draft AS BLOB)), 0) AS bytes,
        draft IS NOT NULL AS drafts,
        EXISTS (SELECT 1 FROM decision_log WHERE run_seq = jobs.seq AND kind != 'policy_accept')
        OR EXISTS (SELECT 1 FROM screening_log WHERE screening_seq = jobs.seq
            AND kind != 'redaction')
        OR (jobs.seq IS cases.run_seq AND EXISTS (
            SELECT 1 FROM decision_log WHERE seq = cases.decision_seq AND kind = 'decision'
                AND run_seq IS NULL
        )) AS decided,
        jobs.seq IS cases.run_seq AND cases.state = 'needs_review' AS waits
    FROM jobs LEFT JOIN cases ON cases.seq = case_seq
"""
"""The age and size of runs and screenings, and whether a person decided or still has to decide on
them.
"""

_AMONG = "seq IN (SELECT value FROM json_each(:among))"

_OLD_GRADES = "remembered_grades WHERE julianday(at) < julianday(?)"


class Retention(StorePart):
    """Purges by a retention rule."""

    def plan(self, rule: RetentionRule) -> PurgePlan:
        """Return what a purge by this rule would remove now, without changing anything."""
        with self._database.reading() as connection:
            old = _old(connection, rule)
            goes = _removal_candidates(connection, [row for row in old if row["kept_for"] is None])
            goes += _old_grades(connection, rule)
            kinds = Counter(job.kind for job in goes)
            return PurgePlan(
                rule=rule,
                goes=tuple(goes),
                runs=kinds["run"],
                screenings=kinds["screening"],
                bytes=sum(job.bytes for job in goes),
                parts=PartCounts(
                    **{
                        name: sum(getattr(job.parts, name) for job in goes)
                        for name in PartCounts.model_fields
                    }
                ),
                kept=Counter(row["kept_for"] for row in old if row["kept_for"] is not None),
                runs_in_all=self._database.value(
                    "SELECT count(*) FROM runs WHERE removed_by IS NULL"
                ),
                screenings_in_all=self._database.value(
                    "SELECT count(*) FROM screenings WHERE removed_by IS NULL"
                ),
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
        """Remove everything the rule selects, and record it.

        Each transaction selects its rows again, so a record that was decided or resumed meanwhile
        is kept.

        Args:
            rule: The age and kinds of records to remove.
            by: The name of the person or program.
            how: What started the purge.
            on_batch: Called with the number of processed records after each batch.
            stopped: Called before each batch. If it returns True, the purge ends early; the batches
                removed so far are recorded.

        Returns:
            None if nothing was removed.

        Raises:
            StoreError: The database is locked for too long, damaged, or the disk is full.

        """
        with self._database.reading() as connection:
            old = [row["seq"] for row in _old(connection, rule) if row["kept_for"] is None]
        seq: int | None = None
        for start in range(0, len(old), BATCH):
            if stopped is not None and stopped():
                break
            with self._database.transaction(durable=False) as connection:
                held_from = time.monotonic()
                again = _old(connection, rule, old[start : start + BATCH])
                if batch := [row for row in again if row["kept_for"] is None]:
                    seq = seq or begin_purge(connection, rule, by, how, self._database.now())
                    _remove_content(connection, seq, batch)
            time.sleep((time.monotonic() - held_from) * BREATH)
            if on_batch is not None:
                on_batch(min(start + BATCH, len(old)))
        with self._database.transaction(durable=False) as connection:
            for grades in _old_grades(connection, rule):
                seq = seq or begin_purge(connection, rule, by, how, self._database.now())
                rows = connection.execute(
                    f"SELECT grade FROM {_OLD_GRADES} ORDER BY key",  # noqa: S608
                    [rule.cutoff],
                )
                _record_removal(
                    connection, seq, grades, map(_unpack_or_hex, (row[0] for row in rows))
                )
                connection.execute(f"DELETE FROM {_OLD_GRADES}", [rule.cutoff])  # noqa: S608
        # Issues of the removed runs were searchable.
        erase_removed_words(self._database, "observation_words")
        return next((purge for purge in Purges(self._database).history() if purge.seq == seq), None)


def _old(
    connection: sqlite3.Connection, rule: RetentionRule, among: Sequence[int] | None = None
) -> list[sqlite3.Row]:
    """Return the records that ended before the cutoff, and the reason why each is kept, if any.

    julianday() is NULL for a time that SQLite can't parse, so such a record is never old enough.
    """
    return connection.execute(
        f"""SELECT *, CASE
                WHEN decided AND NOT :decided THEN 'decided'
                WHEN waits AND NOT decided AND NOT :waiting THEN 'waiting'
            END AS kept_for
            FROM ({_FACTS}) WHERE removed_by IS NULL AND state != 'running'
                AND julianday(ended_at) < julianday(:cutoff) AND {"1" if among is None else _AMONG}
            ORDER BY kind, seq""",  # noqa: S608 (text of ours)
        {**rule.model_dump(), "among": json.dumps(among)},
    ).fetchall()


def _removal_candidates(
    connection: sqlite3.Connection, jobs: Sequence[sqlite3.Row]
) -> list[Candidate]:
    """Return runs and screenings with their parts counted."""
    counts: dict[int, dict[str, int]] = defaultdict(dict)
    sizes: Counter[int] = Counter()
    among = "IN (SELECT value FROM json_each(?1)) GROUP BY 1"
    for seq, part, count, size in connection.execute(
        f"""SELECT job_seq, kind, count(*), sum(length(payload)) FROM job_parts
            WHERE job_seq {among}, 2
            UNION ALL SELECT screening_seq, 'abstract', count(*), sum(length(abstract))
            FROM screening_abstracts WHERE screening_seq {among}
            UNION ALL SELECT screening_seq, 'grade', count(grade), total(length(grade))
            FROM screening_abstracts WHERE screening_seq {among}""",  # noqa: S608 (text of ours)
        [json.dumps([job["seq"] for job in jobs])],
    ):
        counts[seq][f"{part}s"] = count
        sizes[seq] += int(size)
    found = []
    for job in jobs:
        parts = PartCounts(**counts[job["seq"]], drafts=job["drafts"])
        found.append(record_of(Candidate, job, bytes=job["bytes"] + sizes[job["seq"]], parts=parts))
    return found


def _old_grades(connection: sqlite3.Connection, rule: RetentionRule) -> Iterator[Candidate]:
    """Yield one candidate for all cached grades that are old enough, if there are any."""
    sql = f"""SELECT 'remembered_grades' AS kind, '' AS id, '' AS about, 'finished' AS state,
        min(at) AS ended_at, sum(length(grade)) AS bytes, 0 AS waits, count(*) AS grades
        FROM {_OLD_GRADES}"""  # noqa: S608
    row = connection.execute(sql, [rule.cutoff]).fetchone()
    if row["grades"]:
        yield record_of(Candidate, row, parts=PartCounts(grades=row["grades"]))


def begin_purge(
    connection: sqlite3.Connection, rule: RetentionRule, by: str, how: Trigger, at: str
) -> int:
    """Record the start of a purge, and return its number."""
    row = {"at": at, "by": by, "how": how, "rule": rule.model_dump_json(), "app": version.APP}
    return append(connection, "purges", row)


def _record_removal(
    connection: sqlite3.Connection, purge: int, removed: Candidate, texts: Iterable[str]
) -> None:
    """Record a removal, with the SHA-256 of the removed texts joined by line breaks."""
    digest = hashlib.sha256()
    for number, text in enumerate(texts):
        digest.update((f"\n{text}" if number else text).encode())
    row = {
        "kind": removed.kind,
        "record_id": removed.id,
        "bytes": removed.bytes,
        "digest": digest.hexdigest(),
    }
    parts = removed.parts.model_dump_json(exclude_defaults=True)
    append(connection, "purged", row | {"purge_seq": purge, "parts": parts})


def _remove_content(
    connection: sqlite3.Connection, purge: int, jobs: Sequence[sqlite3.Row]
) -> None:
    """Remove everything of runs and screenings except their rows and figures."""
    for job, candidate in zip(jobs, _removal_candidates(connection, jobs), strict=True):
        seq, is_run = job["seq"], job["kind"] == "run"
        _record_removal(
            connection,
            purge,
            candidate,
            (run_texts if is_run else _screening_texts)(connection, seq),
        )
        connection.execute("DELETE FROM job_parts WHERE job_seq = ?", [seq])
        connection.execute("DELETE FROM screening_abstracts WHERE screening_seq = ?", [seq])
        update_job(
            connection,
            seq,
            payload=None,
            draft=None,
            headline=None,
            settings="{}",
            why="",
            removed_by=purge,
        )
        if is_run:
            remove_results_of_run(connection, seq)
            remove_trials_of_run(connection, seq)
            remove_replies(connection, job["case_seq"])
            refresh(connection, job["case_seq"])


def empty_runs(connection: sqlite3.Connection, purge: int, runs: Sequence[int]) -> None:
    """Remove the content of runs regardless of any rule, and record it as part of a purge."""
    sql = f"SELECT * FROM ({_FACTS}) WHERE {_AMONG} ORDER BY seq"  # noqa: S608 (text of ours)
    _remove_content(
        connection, purge, connection.execute(sql, {"among": json.dumps(runs)}).fetchall()
    )


def run_texts(connection: sqlite3.Connection, seq: int) -> list[str]:
    """Return the texts of a run.

    For a finished run this is the line that ``masis export --format runs`` writes, otherwise its
    draft and its iterations.
    """
    payload, draft = connection.execute(
        "SELECT payload, draft FROM runs WHERE seq = ?", [seq]
    ).fetchone()
    rows = connection.execute(
        "SELECT payload FROM job_parts WHERE job_seq = ? AND kind = 'iteration' ORDER BY number",
        [seq],
    )
    iterations = [_unpack_or_hex(row[0]) for row in rows]
    if payload is None:
        return [*([draft] if draft else []), *iterations]
    # The result is stored with an empty list in place of its iterations. The first match is that
    # list, because JSON escapes the quotes inside strings: "iterations":[] can't occur in a text.
    return [
        _unpack_or_hex(payload).replace(
            '"iterations":[]', f'"iterations":[{",".join(iterations)}]', 1
        )
    ]


def _screening_texts(connection: sqlite3.Connection, seq: int) -> list[str]:
    """Return the result, rounds, abstracts and grades of a screening, as they were stored."""
    rows = connection.execute(
        """SELECT payload FROM (
               SELECT 1 AS part, 0 AS number, payload FROM jobs WHERE seq = ?1
               UNION ALL SELECT 2, number, payload FROM job_parts WHERE job_seq = ?1
                   AND kind = 'round'
               UNION ALL SELECT 3, seq, abstract FROM screening_abstracts WHERE screening_seq = ?1
               UNION ALL SELECT 4, seq, grade FROM screening_abstracts WHERE screening_seq = ?1
           ) WHERE payload IS NOT NULL ORDER BY part, number""",
        [seq],
    )
    return [_unpack_or_hex(row[0]) for row in rows]


def _unpack_or_hex(packed: bytes) -> str:
    """Return an unpacked text, or its bytes in hexadecimal if it is damaged.

    Damaged records must be removable too.
    """
    try:
        return unpack(packed)
    except (zlib.error, ValueError):
        return packed.hex()

"""Cases with what was decided about them, many at a time: what exports are written from.

Of a run only the iteration that was judged is read.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple
from zlib import decompress

from pydantic_core import from_json

from masis.schema.review import LogEntry
from masis.schema.run import Iteration, Run
from masis.store.audits import queue
from masis.store.audits.cases import damaged_case
from masis.store.core.connections import StorePart
from masis.store.jobs import readable
from masis.store.records import CaseFilter
from masis.store.reviews.decisions import LOG

AT_ONCE = 200
"""Cases that are read together."""


class JudgedRun(NamedTuple):
    """What an export says of a finished run; scores are of the original answer."""

    id: str
    finished_at: str
    models: dict[str, str]
    settings: dict[str, Any]
    versions: dict[str, Any]
    quality: float | None
    confidence: float | None
    overall: float | None
    review_reasons: tuple[str, ...]


class Judgement(NamedTuple):
    """One answer of a case, who judged it, and what the machine found in it.

    ``entry`` is None where only the machine judged; ``in_force`` where the case's state follows
    from it. ``iteration`` is the audited one; it and ``run`` are None where there is none, or where
    retention removed it. ``run_seq`` is the run's number in the store.
    """

    entry: LogEntry | None
    in_force: bool
    run: JudgedRun | None
    number: int | None
    iteration: Iteration | None
    run_seq: int | None = None


class CaseOutcome(NamedTuple):
    """A case as imported, its state, and the judgements that stand: the last one of each reviewer,
    in log order.

    An adjudication is one of them where the case's state follows from it. ``seq`` is the case's
    number in the store.
    """

    case: dict[str, Any]
    state: str
    redacted: bool
    judgements: tuple[Judgement, ...]
    seq: int = 0

    @property
    def current(self) -> Judgement | None:
        """The judgement that the case's state follows from; None where nobody decided and no run is
        finished.
        """
        return next((judgement for judgement in self.judgements if judgement.in_force), None)


class Outcomes(StorePart):
    """Reads what was decided about the cases of a store."""

    def iterate(self, case_filter: CaseFilter) -> Iterator[CaseOutcome]:
        """Yield every case that matches, of one moment, in the order of import; page and order
        don't matter.
        """
        with self._database.reading() as connection:
            cases = _matching(connection, "seq", case_filter)
            while rows := cases.fetchmany(AT_ONCE):
                yield from outcomes_of(connection, pins_of(connection, [row[0] for row in rows]))

    def count(self, case_filter: CaseFilter) -> int:
        """Return how many cases ``iterate`` yields."""
        with self._database.reading() as connection:
            return int(_matching(connection, "count(*)", case_filter).fetchone()[0])

    def queries(self, case_filter: CaseFilter) -> Iterator[str]:
        """Yield the question of every case that ``iterate`` yields, in the same order."""
        # lists hold the beginning of each question, which is all of most: only of the others a case
        # is parsed
        question = f"""CASE WHEN length(query_start) <= {queue.QUERY_SHOWN} THEN query_start
            ELSE (SELECT payload ->> '$.query' FROM case_payloads
                WHERE case_seq = seq) END"""  # noqa: S608
        with self._database.reading() as connection:
            yield from (str(row[0] or "") for row in _matching(connection, question, case_filter))


def _matching(
    connection: sqlite3.Connection, column: str, case_filter: CaseFilter
) -> sqlite3.Cursor:
    """A column of the cases that match, but for those that are labels for nobody.

    These are the ones that the demo's simulated reviewers decided, and copies with a planted fault,
    decided or not.
    """
    matches = queue.matching(connection, case_filter)
    return connection.execute(
        f"""SELECT {column} FROM {matches.source} WHERE {matches.where} AND NOT cases.planted
            AND cases.seq NOT IN (
                SELECT case_seq FROM decision_payloads JOIN decision_log AS made
                    ON made.seq = entry_seq
                WHERE simulated AND made.kind = 'decision'
            ) ORDER BY cases.seq""",  # noqa: S608 (every name is ours, what people give is bound)
        matches.values,
    )


class Pin(NamedTuple):
    """A judgement by numbers: its entry (None where only the machine judged), the run and iteration
    it is about.

    The iteration follows from the entry and the run; it is known once they are read.
    """

    entry: int | None
    in_force: bool
    run: int | None
    number: int | None = None


def pins_of(connection: sqlite3.Connection, seqs: Sequence[int]) -> dict[int, list[Pin]]:
    """Return what counts now: the last decision of each reviewer that was not undone, and what
    decides the case.

    While decisions of a shared case are missing, an export would show the others what has been
    decided. The run is the one decided about, else the newest finished one.
    """
    pins: dict[int, list[Pin]] = {seq: [] for seq in seqs}
    # SQLite has no name for a list of values, so they are bound as one text of JSON
    for case, entry, in_force, run in connection.execute(
        """
        SELECT cases.seq, log.seq AS entry, log.seq IS decision_seq,
            coalesce(log.run_seq, cases.run_seq)
        FROM json_each(?1) CROSS JOIN cases ON cases.seq = value
        CROSS JOIN decision_log AS log ON log.case_seq = cases.seq
        WHERE log.seq IS decision_seq OR NOT pending AND log.seq IN (
            SELECT max(made.seq) FROM decision_log AS made JOIN decision_payloads
                ON entry_seq = made.seq
            WHERE made.case_seq = cases.seq AND kind = 'decision'
                AND made.seq NOT IN (SELECT undoes FROM decision_log WHERE case_seq = cases.seq
                    AND undoes IS NOT NULL)
            GROUP BY reviewer
        )
        UNION ALL
        SELECT seq, NULL, 1, run_seq FROM json_each(?1) CROSS JOIN cases ON seq = value
        WHERE decision_seq IS NULL AND run_seq IS NOT NULL
        ORDER BY entry NULLS LAST
        """,
        [json.dumps(seqs)],
    ):
        pins[case].append(Pin(entry, bool(in_force), run))
    return pins


def outcomes_of(
    connection: sqlite3.Connection, pins: Mapping[int, Sequence[Pin]]
) -> Iterator[CaseOutcome]:
    """Yield cases by their numbers, each with the judgements named for it."""
    seqs = json.dumps(
        [pin.entry for pinned in pins.values() for pin in pinned if pin.entry is not None]
    )
    rows = LOG.rows(connection, "log.seq IN (SELECT value FROM json_each(?))", [seqs])
    entries = {row["seq"]: LOG.entry_of(row) for row in rows}
    cases = connection.execute(
        """SELECT cases.seq, state, redaction_seq, payload FROM json_each(?) CROSS JOIN cases
            ON cases.seq = value
           JOIN case_payloads ON case_seq = cases.seq ORDER BY cases.seq""",
        [json.dumps(list(pins))],
    ).fetchall()
    for case in cases:
        try:
            content = from_json(case["payload"])
        except ValueError as error:
            raise damaged_case(connection, case["seq"]) from error
        yield CaseOutcome(
            case=content,
            state=case["state"],
            redacted=case["redaction_seq"] is not None,
            judgements=tuple(
                _judgement(connection, pin, None if pin.entry is None else entries[pin.entry])
                for pin in pins[case["seq"]]
            ),
            seq=case["seq"],
        )


def _judgement(connection: sqlite3.Connection, pin: Pin, entry: LogEntry | None) -> Judgement:
    """Return a judgement with what the machine found in the answer it is about."""
    number = entry.decision.iteration if entry and entry.decision else None
    row = connection.execute(
        """SELECT seq, id, models, quality, confidence, overall, iterations, payload FROM runs
           WHERE seq = ? AND removed_by IS NULL AND payload IS NOT NULL""",
        [pin.run],
    ).fetchone()
    if row is None:
        return Judgement(entry, pin.in_force, None, number, None)
    found: Iteration | None = None
    with readable(connection, "run", row["seq"], _HINT):
        result = Run.model_validate_json(decompress(row["payload"]))
        number = number or (None if result.best is None else 1)
        if number is not None and number <= (row["iterations"] or 0):
            packed = connection.execute(
                "SELECT payload FROM job_parts WHERE job_seq = ? AND kind = 'iteration' AND"
                " number = ?",
                [pin.run, number],
            ).fetchone()
            if packed is None:
                raise ValueError(f"iteration {number} is missing")
            found = Iteration.model_validate_json(decompress(packed[0]))
    run = JudgedRun(
        id=row["id"],
        finished_at=result.finished_at,
        models=from_json(row["models"]),
        settings=result.settings,
        versions=result.versions.model_dump(mode="json"),
        quality=row["quality"],
        confidence=row["confidence"],
        overall=row["overall"],
        review_reasons=tuple(reason.code for reason in result.review_reasons),
    )
    return Judgement(entry, pin.in_force, run, number, found, pin.run)


_HINT = (
    "Audit the case again (`masis audit FILE --again`) and, where it was decided, decide it again;"
    " or restore a backup (`masis db restore`)."
)
"""An export reads the run that was decided about: a newer run alone doesn't take its place."""

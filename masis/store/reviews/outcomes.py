"""Reads cases with the decisions on them in batches, for exports.

Only the judged iteration of a run is read.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple
from zlib import decompress

from pydantic_core import from_json

from masis.schema.codebook import Codebook
from masis.schema.minimal_evidence import MinimalEvidence
from masis.schema.review import LogEntry
from masis.schema.run import Iteration, Run
from masis.store.audits import queue
from masis.store.audits.cases import damaged_case
from masis.store.audits.minimal_evidence import results_of_answer
from masis.store.core.connections import StorePart
from masis.store.jobs import readable
from masis.store.records import CaseFilter
from masis.store.reviews.decisions import LOG
from masis.store.reviews.observations import codes_of_entries

AT_ONCE = 200
"""The number of cases per batch."""


class JudgedRun(NamedTuple):
    """The fields of a finished run that exports contain. Scores are of the original answer."""

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
    """A judgement of one answer of a case, by a person or only by the audit.

    ``entry`` is None if only the audit judged it. ``in_force`` is true if the state of the case
    follows from it. ``iteration`` is the audited one. It and ``run`` are None if there is none or
    retention removed it. ``run_seq`` is the run's number in the store.
    ``minimal_evidence`` has the verdicts on its claims without their passages.
    """

    entry: LogEntry | None
    in_force: bool
    run: JudgedRun | None
    number: int | None
    iteration: Iteration | None
    run_seq: int | None = None
    minimal_evidence: tuple[MinimalEvidence, ...] = ()


class CodedMode(NamedTuple):
    """A failure mode that people applied to a case or to a part of it, after merges."""

    code: str
    name: str
    reviewers: tuple[str, ...]


class CaseOutcome(NamedTuple):
    """A case as imported, its state, and the last judgement of each reviewer in log order.

    An adjudication is included if the state of the case follows from it. ``seq`` is the case's
    number in the store. ``modes`` are its failure modes; while decisions of a shared case are
    pending there are none, because they would reveal what a reviewer found.
    """

    case: dict[str, Any]
    state: str
    redacted: bool
    judgements: tuple[Judgement, ...]
    seq: int = 0
    modes: tuple[CodedMode, ...] = ()

    @property
    def current(self) -> Judgement | None:
        """The judgement that the state follows from, or None without a decision or finished run."""
        return next((judgement for judgement in self.judgements if judgement.in_force), None)


class Outcomes(StorePart):
    """Reads the decisions on the cases of a store."""

    def iterate(self, case_filter: CaseFilter) -> Iterator[CaseOutcome]:
        """Yield every matching case from one snapshot in the order of import.

        The page and order of the filter are ignored.
        """
        with queue.reading_matches(self._database, case_filter) as connection:
            cases = _matching(connection, "seq", case_filter)
            while rows := cases.fetchmany(AT_ONCE):
                yield from outcomes_of(connection, pins_of(connection, [row[0] for row in rows]))

    def count(self, case_filter: CaseFilter) -> int:
        """Return how many cases ``iterate`` yields."""
        with queue.reading_matches(self._database, case_filter) as connection:
            return int(_matching(connection, "count(*)", case_filter).fetchone()[0])

    def queries(self, case_filter: CaseFilter) -> Iterator[str]:
        """Yield the question of every case that ``iterate`` yields, in the same order."""
        # ``query_start`` holds the whole text of most questions, so only long ones need the JSON of
        # the case to be parsed.
        question = f"""CASE WHEN length(query_start) <= {queue.QUERY_SHOWN} THEN query_start
            ELSE (SELECT payload ->> '$.query' FROM case_payloads
                WHERE case_seq = seq) END"""  # noqa: S608
        with queue.reading_matches(self._database, case_filter) as connection:
            yield from (str(row[0] or "") for row in _matching(connection, question, case_filter))


def _matching(
    connection: sqlite3.Connection, column: str, case_filter: CaseFilter
) -> sqlite3.Cursor:
    """Select a column of the matching cases that may serve as labels.

    This excludes the cases that the demo's simulated reviewers decided, and all copies with a
    planted fault.
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
    """The numbers of a judgement's entry, run and iteration.

    ``entry`` is None if only the audit judged. The iteration is known once entry and run are read.
    """

    entry: int | None
    in_force: bool
    run: int | None
    number: int | None = None


def pins_of(connection: sqlite3.Connection, seqs: Sequence[int]) -> dict[int, list[Pin]]:
    """Return the last decision of each reviewer that wasn't undone, and the deciding entry.

    Pending decisions of a shared case are left out, because an export would reveal them to the
    other reviewers. The run is the decided one, or else the newest finished one.
    """
    pins: dict[int, list[Pin]] = {seq: [] for seq in seqs}
    # SQLite can't bind a list as one parameter, so the numbers are bound as JSON and unpacked by
    # json_each. CROSS JOIN keeps the order of the tables: the listed cases first.
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
    connection: sqlite3.Connection,
    pins: Mapping[int, Sequence[Pin]],
    until: str | None = None,
) -> Iterator[CaseOutcome]:
    """Yield cases by their numbers, each with the judgements named for it.

    ``until`` leaves out verdicts without passages, failure modes and changes of the codebook that
    came later.
    """
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
    modes = _coded_modes(connection, pins, until)
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
                _judgement(
                    connection, pin, None if pin.entry is None else entries[pin.entry], until
                )
                for pin in pins[case["seq"]]
            ),
            seq=case["seq"],
            modes=modes.get(case["seq"], ()),
        )


def _coded_modes(
    connection: sqlite3.Connection, pins: Mapping[int, Sequence[Pin]], until: str | None
) -> dict[int, tuple[CodedMode, ...]]:
    """Return the failure modes of cases by the log, and by the codebook in force at that time."""
    entries: dict[int, list[sqlite3.Row]] = {}
    for row in connection.execute(
        """SELECT case_seq, seq, kind, payload FROM json_each(?1) CROSS JOIN decision_log
               ON case_seq = value
           LEFT JOIN decision_payloads ON entry_seq = seq
           WHERE kind IN ('code', 'uncode', 'decision') AND (?2 IS NULL OR at <= ?2)
           ORDER BY seq""",
        [json.dumps(list(pins)), until],
    ):
        entries.setdefault(row["case_seq"], []).append(row)
    stored = connection.execute(
        "SELECT payload FROM team_records WHERE kind = ? AND (?2 IS NULL OR at <= ?2)"
        " ORDER BY seq DESC LIMIT 1",
        [Codebook.kind, until],
    ).fetchone()
    book = Codebook() if stored is None else Codebook.model_validate_json(stored[0])
    modes: dict[int, tuple[CodedMode, ...]] = {}
    for case, of_case in entries.items():
        in_force = any(pin.in_force and pin.entry is not None for pin in pins[case])
        if not in_force and any(row["kind"] == "decision" for row in of_case):
            continue  # decisions are pending, or all were undone
        applied: dict[tuple[str, str], list[str]] = {}
        for _, code, reviewer in codes_of_entries(of_case):
            mode = book.find(code)
            key = (mode.code, mode.name) if mode is not None else (code, code)
            applied.setdefault(key, []).append(reviewer)
        modes[case] = tuple(
            CodedMode(*key, tuple(dict.fromkeys(applied[key]))) for key in sorted(applied)
        )
    return modes


def _judgement(
    connection: sqlite3.Connection, pin: Pin, entry: LogEntry | None, until: str | None
) -> Judgement:
    """Return a judgement with the run and iteration it is about."""
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
    results: tuple[MinimalEvidence, ...] = ()
    if number is not None:
        entry_id = entry.id if entry else ""
        results = results_of_answer(connection, row["seq"], number, entry_id, until)
    return Judgement(entry, pin.in_force, run, number, found, pin.run, results)


_HINT = (
    "Audit the case again (`masis audit FILE --again`) and, where it was decided, decide it again;"
    " or restore a backup (`masis db restore`)."
)
"""An export reads the run that was decided. A newer run alone doesn't replace it."""

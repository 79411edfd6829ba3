"""Cases with what was decided about them, many at a time: what exports are written from.

A batch of cases costs four queries, whatever their number, and of a run only the iteration that was judged is read.
"""

from __future__ import annotations

import sqlite3
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any, Literal, NamedTuple
from zlib import decompress

from pydantic_core import CoreSchema, SchemaValidator, core_schema, from_json

from masis.errors import RecordDamaged
from masis.schema.review import LogEntry
from masis.store.audits import queue
from masis.store.audits.cases import damaged_case
from masis.store.audits.runs import DAMAGE, damaged_run
from masis.store.core.connections import Database
from masis.store.records import CaseFilter
from masis.store.reviews.decisions import LOG

AT_ONCE = 200
"""Cases that are read together."""


Part = Literal["answer", "claims", "citation_audit", "issues"]
Parts = tuple[Part, ...]
ALL_PARTS: Parts = ("answer", "claims", "citation_audit", "issues")
"""What can be asked of an iteration: what exports say of it. The rest of it is never read."""


def _object(later: Mapping[str, CoreSchema] | None = None, /, **fields: CoreSchema) -> CoreSchema:
    """Describe an object of which only these fields are read: of the others no value is made, which halves the time.

    Fields that came ``later`` may be absent: earlier versions wrote none. Without one of the others it is damaged.
    """
    known = {name: core_schema.typed_dict_field(field) for name, field in fields.items()}
    known |= {name: core_schema.typed_dict_field(field, required=False) for name, field in (later or {}).items()}
    return core_schema.typed_dict_schema(known)


_TEXT, _TEXTS = core_schema.str_schema(strict=True), core_schema.list_schema(core_schema.str_schema(strict=True))
_ANY = core_schema.any_schema()  # taken from JSON as it stands: a number stays the number that was written
_NO_TEXT, _NO_PLACE = (
    core_schema.nullable_schema(_TEXT),
    core_schema.nullable_schema(core_schema.int_schema(strict=True)),
)
_SHARE = core_schema.nullable_schema(core_schema.union_schema([core_schema.int_schema(), core_schema.float_schema()]))
_PLACE = {"text": _TEXT, "start": _NO_PLACE, "end": _NO_PLACE}
_PARTS: dict[Part, CoreSchema] = {
    "answer": _TEXT,
    "claims": core_schema.list_schema(
        _object(
            {"judged_by": _ANY, "sources": _TEXTS},
            claim=_object({"statement": _TEXT, "cited": _TEXTS}, **_PLACE),
            verdict=_TEXT,
            support=_SHARE,
            confidence=_SHARE,
        )
    ),
    "citation_audit": _object(
        sentences=core_schema.list_schema(_object(**_PLACE, status=_TEXT, why=_TEXT, citation_ids=_TEXTS)),
        citations=core_schema.list_schema(
            _object(**_PLACE, reference=_TEXT, evidence_id=_NO_TEXT, status=_TEXT, resolved_by=_NO_TEXT)
        ),
    ),
    "issues": core_schema.list_schema(
        _object(
            {"start": _NO_PLACE, "end": _NO_PLACE},
            **dict.fromkeys(("id", "source", "type", "severity", "description", "reason", "suggestion", "rule"), _TEXT),
            evidence_ids=_TEXTS,
        )
    ),
}
_RESULT = SchemaValidator(
    _object(
        best=_NO_PLACE,
        finished_at=_TEXT,
        settings=core_schema.dict_schema(_TEXT),
        versions=core_schema.dict_schema(_TEXT),
        review_reasons=core_schema.list_schema(_object(code=_TEXT)),
    )
)
_MODELS = SchemaValidator(core_schema.dict_schema(_TEXT, _TEXT))


@lru_cache
def _reader(parts: Parts) -> SchemaValidator:
    return SchemaValidator(_object(**{part: _PARTS[part] for part in parts}))


class JudgedRun(NamedTuple):
    """What an export says of a finished run; scores are of its best iteration."""

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

    ``entry`` is None where only the machine judged; ``in_force`` where the case's state follows from it. ``iteration``
    holds the parts asked for of the audited iteration as stored; it and ``run`` are None where there is none, or where
    retention removed it. ``run_seq`` is the run's number in the store.
    """

    entry: LogEntry | None
    in_force: bool
    run: JudgedRun | None
    number: int | None
    iteration: dict[str, Any] | None
    run_seq: int | None = None


class CaseOutcome(NamedTuple):
    """A case as imported, its state, and the judgements that stand: the last one of each reviewer, in log order.

    An adjudication is one of them where the case's state follows from it. ``seq`` is the case's number in the store.
    """

    case: dict[str, Any]
    state: str
    redacted: bool
    judgements: tuple[Judgement, ...]
    seq: int = 0

    @property
    def current(self) -> Judgement | None:
        """The judgement that the case's state follows from; None where nobody decided and no run is finished."""
        return next((each for each in self.judgements if each.in_force), None)


class Outcomes:
    """Reads what was decided about the cases of a store."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def iterate(self, wanted: CaseFilter, parts: Parts = ALL_PARTS) -> Iterator[CaseOutcome]:
        """Yield every case that matches, of one moment, in the order of import; page and order don't matter.

        Of each judged iteration these parts are read.
        """
        with self._database.reading() as connection:
            found = queue.matching(connection, wanted)
            # asked of one case after the other, words don't collect all their cases anew for each batch
            where, values = queue.conditions(found.filters, found.words, probe=True)
            last = 0
            while seqs := [
                row[0]
                for row in connection.execute(
                    f"SELECT seq FROM cases WHERE {where} AND seq > ? ORDER BY seq LIMIT {AT_ONCE}",  # noqa: S608
                    [*values, last],
                )
            ]:
                yield from _batch(connection, seqs, parts)
                last = seqs[-1]

    def queries(self, wanted: CaseFilter) -> Iterator[str]:
        """Yield the question of every case that ``iterate`` yields, in the same order."""
        with self._database.reading() as connection:
            found = queue.matching(connection, wanted)
            where, values = queue.conditions(found.filters, found.words, probe=True)
            rows = connection.execute(
                # lists hold the beginning of each question, which is all of most: only of the others a case is parsed
                f"""SELECT CASE WHEN length(query_start) <= ? THEN query_start ELSE (
                        SELECT payload ->> '$.query' FROM case_payloads WHERE case_seq = seq) END
                    FROM cases WHERE {where} ORDER BY seq""",  # noqa: S608 (every name is ours, what people give is bound)
                [queue.QUERY_SHOWN, *values],
            )
            yield from (str(row[0] or "") for row in rows)


class Pinned(NamedTuple):
    """A judgement by numbers, as a dataset version keeps it."""

    entry: int | None
    in_force: bool
    run: int | None
    number: int | None


class _Wanted(NamedTuple):
    """A judgement before its run is read; the run decided about, else the newest finished one."""

    entry: LogEntry | None
    in_force: bool
    run_seq: int | None
    number: int | None


def _batch(connection: sqlite3.Connection, seqs: Sequence[int], parts: Parts) -> Iterator[CaseOutcome]:
    cases = _cases(connection, seqs)
    logged: dict[int, list[sqlite3.Row]] = defaultdict(list)
    for row in LOG.rows(connection, f"log.case_seq IN ({_marks(seqs)})", list(seqs)):
        logged[row["case_seq"]].append(row)
    yield from _read(connection, cases, {case["seq"]: _wanted(case, logged[case["seq"]]) for case in cases}, parts)


def outcomes_of(
    connection: sqlite3.Connection, pins: Mapping[int, Sequence[Pinned]], parts: Parts = ALL_PARTS
) -> Iterator[CaseOutcome]:
    """Yield cases by their numbers, each with the judgements named for it, whatever counts now."""
    numbers = [each.entry for pinned in pins.values() for each in pinned if each.entry is not None]
    entries = {row["seq"]: LOG.read(row) for row in LOG.rows(connection, f"log.seq IN ({_marks(numbers)})", numbers)}
    wanted = {
        seq: [
            _Wanted(None if each.entry is None else entries[each.entry], each.in_force, each.run, each.number)
            for each in pinned
        ]
        for seq, pinned in pins.items()
    }
    yield from _read(connection, _cases(connection, list(pins)), wanted, parts)


def _cases(connection: sqlite3.Connection, seqs: Sequence[int]) -> list[sqlite3.Row]:
    return connection.execute(
        f"""SELECT seq, state, run_seq, decision_seq, redaction_seq, pending, payload
            FROM cases JOIN case_payloads ON case_seq = seq WHERE seq IN ({_marks(seqs)}) ORDER BY seq""",  # noqa: S608
        seqs,
    ).fetchall()


def _read(
    connection: sqlite3.Connection,
    cases: Sequence[sqlite3.Row],
    wanted: Mapping[int, Sequence[_Wanted]],
    parts: Parts,
) -> Iterator[CaseOutcome]:
    runs = _Runs(connection, [each for judged in wanted.values() for each in judged], parts)
    for case in cases:
        try:
            content = from_json(case["payload"])
        except ValueError as error:
            raise damaged_case(connection, case["seq"]) from error
        yield CaseOutcome(
            case=content,
            state=case["state"],
            redacted=case["redaction_seq"] is not None,
            judgements=tuple(map(runs.judgement, wanted[case["seq"]])),
            seq=case["seq"],
        )


def _marks(values: Sequence[object]) -> str:
    return ", ".join("?" * len(values))


def _wanted(case: sqlite3.Row, rows: Sequence[sqlite3.Row]) -> list[_Wanted]:
    """Return the last decision of each reviewer that was not undone, and what decides the case, whoever made it."""
    undone = {row["undoes"] for row in rows if row["undoes"] is not None}
    last: dict[str, sqlite3.Row] = {}
    # while decisions of a shared case are missing, an export would show the others what has been decided
    for row in rows if not case["pending"] else ():
        if row["kind"] == "decision" and row["seq"] not in undone and row["reviewer"] is not None:
            last[row["reviewer"]] = row
    chosen = {row["seq"]: row for row in last.values()}
    chosen |= {row["seq"]: row for row in rows if row["seq"] == case["decision_seq"]}
    found = [_of_entry(case, chosen[seq]) for seq in sorted(chosen)]
    if not any(each.in_force for each in found) and case["run_seq"] is not None:
        found.append(_Wanted(None, True, case["run_seq"], None))
    return found


def _of_entry(case: sqlite3.Row, row: sqlite3.Row) -> _Wanted:
    entry = LOG.read(row)
    decision = entry.decision
    run = row["run_seq"] if row["run_seq"] is not None else case["run_seq"]
    return _Wanted(entry, row["seq"] == case["decision_seq"], run, decision.iteration if decision else None)


class _Runs:
    """The runs and iterations of a batch of judgements."""

    def __init__(self, connection: sqlite3.Connection, wanted: Sequence[_Wanted], parts: Parts) -> None:
        self._reader, self._connection = _reader(parts), connection
        seqs = list({each.run_seq for each in wanted if each.run_seq is not None})
        rows = connection.execute(
            f"""SELECT seq, id, models, quality, confidence, overall, iterations, payload FROM runs
                WHERE removed_by IS NULL AND payload IS NOT NULL AND seq IN ({", ".join("?" * len(seqs))})""",  # noqa: S608
            seqs,
        ).fetchall()
        self._runs: dict[int, JudgedRun] = {}
        self._best: dict[int, int | None] = {}
        self._iterations = {row["seq"]: row["iterations"] for row in rows}
        for row in rows:
            try:
                result = _RESULT.validate_json(decompress(row["payload"]))
                self._runs[row["seq"]] = _judged_run(row, result)
            except DAMAGE as error:
                raise self._damaged(row["seq"], error) from error
            self._best[row["seq"]] = result["best"]
        places = {(seq, number) for each in wanted for seq, number in [self._place(each)] if number is not None}
        # named row by row, SQLite looks each up; asked which rows are in a list of pairs, it reads the whole table
        self._packed = {
            (row["run_seq"], row["number"]): row["payload"]
            for row in connection.execute(
                f"""WITH wanted (run, place) AS (VALUES {", ".join(["(?, ?)"] * len(places)) or "(0, 0)"})
                    SELECT each.* FROM wanted CROSS JOIN run_iterations AS each
                    ON each.run_seq = wanted.run AND each.number = wanted.place""",  # noqa: S608
                [value for place in places for value in place],
            )
        }

    def _damaged(self, seq: int, error: Exception) -> RecordDamaged:
        return damaged_run(self._connection, seq, error, _CURE)

    def _place(self, wanted: _Wanted) -> tuple[int | None, int | None]:
        if wanted.run_seq not in self._runs:
            return None, None
        best = self._best[wanted.run_seq]
        return wanted.run_seq, wanted.number or (None if best is None else best + 1)

    def judgement(self, wanted: _Wanted) -> Judgement:
        """Return a judgement with what the machine found in the answer it is about."""
        seq, number = self._place(wanted)
        packed = None if seq is None or number is None else self._packed.get((seq, number))
        found = None
        if seq is not None and packed is not None:
            try:
                # read when it is its turn: two hundred at a time take twice as long, since they don't fit the caches
                found = self._reader.validate_json(decompress(packed))
            except DAMAGE as error:
                raise self._damaged(seq, error) from error
        elif seq is not None and number is not None and number <= (self._iterations[seq] or 0):
            raise self._damaged(seq, ValueError(f"iteration {number} is missing"))
        run = None if seq is None else self._runs[seq]
        return Judgement(wanted.entry, wanted.in_force, run, number or wanted.number, found, seq)


_CURE = (
    "Audit the case again (`masis audit FILE --again`) and, where it was decided, decide it again; or restore a backup "
    "(`masis restore`)."
)
"""An export reads the run that was decided about: a newer run alone doesn't take its place."""


@lru_cache
def _models(stored: str) -> dict[str, str]:
    """Return the models of a run: those of most runs are the same."""
    models: dict[str, str] = _MODELS.validate_json(stored)
    return models


def _judged_run(row: sqlite3.Row, result: dict[str, Any]) -> JudgedRun:
    return JudgedRun(
        id=row["id"],
        finished_at=result["finished_at"],
        models=_models(row["models"]),
        settings=result["settings"],
        versions=result["versions"],
        quality=row["quality"],
        confidence=row["confidence"],
        overall=row["overall"],
        review_reasons=tuple(reason["code"] for reason in result["review_reasons"]),
    )

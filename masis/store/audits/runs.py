"""Runs: stored as they go, iteration by iteration, so that a killed one is taken up where it stopped.

A run is ``running`` (its owner lives), ``interrupted`` (cut short, resumable) or ``finished``, for good.
"""

from __future__ import annotations

import contextlib
import json
import sqlite3
import zlib
from collections.abc import Collection, Iterable, Iterator, Sequence
from datetime import datetime
from itertools import groupby
from typing import Any, Literal, NamedTuple

from pydantic import ValidationError

from masis.audit.acceptance import disagreement, fault_probability
from masis.errors import RecordDamaged, Removed, StoreError, UnknownRecord
from masis.schema.audit import Draft
from masis.schema.explain import path_of
from masis.schema.run import MUST_LOOK, Event, Iteration, ReviewReason, ReviewTier, Run, StepsDone
from masis.store.audits import executions, metrics
from masis.store.audits.cases import case_seq
from masis.store.core import process_owner
from masis.store.core.chained_log import canonical_json, sha256
from masis.store.core.connections import Database
from masis.store.core.process_owner import Owner
from masis.store.records import Assessed, RunProgress, RunState, RunSummary
from masis.store.reviews.states import refresh

# The figures of a run that lists show, filter and sort by: pure, from the run alone.


class RunFigures(NamedTuple):
    """Columns of a finished run. ``risk``, ``disagreement`` and ``doubt`` sort the queue, higher first.

    ``risk`` is the estimated probability that the answer is faulty (0 to 1), plus 2 where a reason of tier
    ``must_look`` asks for a review and 1 where only such of tier ``not_certified`` do. Unscored counts as 1 in the
    other two.
    """

    quality: float | None
    confidence: float | None
    overall: float | None
    invalid: int | None
    uncited: int | None
    iterations: int
    improvement: float | None
    termination: str
    needs_review: bool
    spot_check: bool
    flags: tuple[str, ...]
    reasons: tuple[str, ...]
    disagreement: float
    doubt: float
    tier: ReviewTier | None
    risk: float
    rule: str | None


DERIVED_ANEW = ("tier", "risk", "rule")
"""Figures that archives leave out, since they follow from the others or from the run."""

TIER_RANK: dict[ReviewTier | None, float] = {"must_look": 2.0, "not_certified": 1.0, None: 0.0}


def tier_of(reasons: Collection[str]) -> ReviewTier | None:
    """Return the more pressing tier of these codes; None without one."""
    if not reasons:
        return None
    return "must_look" if MUST_LOOK.intersection(reasons) else "not_certified"


def risk_without_content(reasons: Collection[str], disagreement: float, doubt: float) -> float:
    """Return the risk of a run of which only figures are left."""
    return TIER_RANK[tier_of(reasons)] + min(0.99, 0.7 * max(doubt, 0.0) + 0.3 * max(disagreement, 0.0))


def figures(run: Run) -> RunFigures:
    """Return the scores of the best iteration and the issues in the original answer."""
    first = run.iterations[0] if run.iterations else None
    best = run.best_iteration
    confidence = best.critique.confidence if best else None
    reasons = tuple(dict.fromkeys(reason.code for reason in run.review_reasons))
    tier = tier_of(reasons)
    likely = max((fault_probability(each) for each in (first, best) if each), default=1.0)
    return RunFigures(
        quality=run.final_quality_score,
        confidence=confidence,
        overall=best.evaluation.overall_score if best and best.evaluation else None,
        invalid=len(first.citation_audit.invalid_citations) if first else None,
        uncited=len(first.citation_audit.uncited_claims) if first else None,
        iterations=len(run.iterations),
        improvement=run.improvement_percentage,
        termination=run.termination_reason,
        needs_review=run.needs_review,
        spot_check=run.spot_check,
        flags=flags(run),
        reasons=reasons,
        disagreement=max((disagreement(each) for each in (first, best) if each), default=1.0),
        doubt=1.0 if confidence is None else 1.0 - confidence,
        tier=tier,
        risk=TIER_RANK[tier] + likely,
        rule=run.acceptance.rule if run.acceptance else None,
    )


def flags(run: Run) -> tuple[str, ...]:
    """Return what is wrong with the original answer, in fixed words, and how the run went."""
    found: list[str] = []
    if run.iterations:
        found += faults(run.iterations[0])
    return (*found, *run_flags(run))


def run_flags(run: Run) -> tuple[str, ...]:
    """Return how a run went, in fixed words."""
    found: list[str] = []
    if run.draft is not None:
        found.append("drafted")
    if run.spot_check:
        found.append("spot_check")
    if run.termination_reason in ("error", "cancelled"):
        found.append(run.termination_reason)
    return tuple(found)


def faults(iteration: Iteration) -> list[str]:
    """Return what is wrong with one answer, in fixed words."""
    audit, verdicts = iteration.citation_audit, {check.verdict for check in iteration.claims}
    references = {reference.finding for check in iteration.claims for reference in check.references}
    unscored = iteration.quality_score is None or "unscored" in verdicts
    signs = (
        ("invalid_reference", bool(audit.invalid_citations)),
        ("misquoted", any(quote.finding != "verbatim" for quote in audit.quotes)),
        ("uncited", bool(audit.uncited_claims)),
        ("misattributed", "misattributed" in references),
        ("redundant", "redundant" in references),
        ("contradicted", "contradicted" in verdicts),
        ("unsupported", "unsupported" in verdicts),
        ("partial", "partial" in verdicts),
        ("hallucination", iteration.critique.hallucination_detected or audit.hallucination_detected),
        ("conflicting_evidence", bool(iteration.critique.conflicting_evidence)),
        ("unscored", unscored),
    )
    return [name for name, present in signs if present]


def row_of(connection: sqlite3.Connection, run_id: str) -> sqlite3.Row:
    """The row of a run. Raises UnknownRecord."""
    row: sqlite3.Row | None = connection.execute("SELECT * FROM runs WHERE id = ?", [run_id]).fetchone()
    if row is None:
        raise UnknownRecord(f"there is no run {run_id!r}.")
    return row


def assert_not_removed(connection: sqlite3.Connection, run: sqlite3.Row) -> None:
    """Raise Removed where retention has removed the content of a run."""
    if run["removed_by"] is not None:
        at, how = connection.execute("SELECT at, how FROM purges WHERE seq = ?", [run["removed_by"]]).fetchone()
        if how == "redaction":
            raise Removed(f"the content of run {run['id']!r} was removed on {at[:10]}: its case was redacted.")
        raise Removed(
            f"the content of run {run['id']!r} was removed on {at[:10]} by retention. Audit the case again to "
            "replace it; `masis purge --history` says what was removed, and by whom."
        )


def unfinished(connection: sqlite3.Connection, run_id: str) -> sqlite3.Row:
    """The row of a run that may still be written to. Raises UnknownRecord, and StoreError where it is finished."""
    row = row_of(connection, run_id)
    if row["state"] == "finished":
        raise StoreError(f"run {run_id!r} is finished: what it said is never overwritten.")
    return row


def case_id_of(connection: sqlite3.Connection, run: sqlite3.Row) -> str:
    """The id of the case that a run is of."""
    return str(connection.execute("SELECT id FROM cases WHERE seq = ?", [run["case_seq"]]).fetchone()[0])


def insert(
    connection: sqlite3.Connection,
    run_id: str,
    case_id: str,
    case_digest: str,
    models: dict[str, str],
    settings: dict[str, Any],
    at: str,
    owner: Owner,
) -> int:
    """Write a new run, under way; returns its number. Raises UnknownRecord and StoreError."""
    case = connection.execute("SELECT seq, digest, redaction_seq FROM cases WHERE id = ?", [case_id]).fetchone()
    if case is None:
        raise UnknownRecord(f"there is no case {case_id!r} for run {run_id!r}. Add the case first.")
    if case["redaction_seq"] is not None:
        raise Removed(f"case {case_id!r} was redacted: there is nothing left to audit.")
    if case["digest"] != case_digest:
        raise StoreError(
            f"run {run_id!r} audits other content than case {case_id!r} holds here. Add that as a new case."
        )
    cursor = connection.execute(
        """
        INSERT INTO runs
            (id, case_seq, case_digest, state, owner, started_at, seen_at, models, settings, settings_digest)
        VALUES (?, ?, ?, 'running', ?, ?, ?, ?, ?, ?)
        """,
        [
            run_id,
            case["seq"],
            case_digest,
            owner.to_text(),
            at,
            at,
            json.dumps(models, ensure_ascii=False),
            json.dumps(settings, ensure_ascii=False),
            sha256(canonical_json(settings)),
        ],
    )
    refresh(connection, case["seq"])
    return int(cursor.lastrowid or 0)


def write_result(connection: sqlite3.Connection, seq: int, run: Run, kept: Collection[int] = ()) -> None:
    """Write the result of a run over what was saved as it went; iterations ``kept`` stand there already."""
    last = run.iterations[-1].iteration_number if run.iterations else 0
    connection.execute("DELETE FROM run_iterations WHERE run_seq = ? AND number > ?", [seq, last])
    connection.execute("DELETE FROM run_steps WHERE run_seq = ?", [seq])
    for iteration in run.iterations:
        if iteration.iteration_number not in kept:
            save_iteration(connection, seq, iteration)
    columns = figures(run)._asdict() | {
        "state": "finished",
        "ended_at": run.finished_at,
        "why": "",
        "draft": run.draft.model_dump_json() if run.draft else None,
        "payload": pack(run.model_copy(update={"iterations": ()}).model_dump_json()),
    }
    columns["flags"], columns["reasons"] = json.dumps(columns["flags"]), json.dumps(columns["reasons"])
    assignments = ", ".join(f"{name} = ?" for name in columns)
    connection.execute(f"UPDATE runs SET {assignments} WHERE seq = ?", [*columns.values(), seq])  # noqa: S608
    metrics.write(connection, run)


def save_iteration(connection: sqlite3.Connection, run_seq: int, iteration: Iteration) -> None:
    """Write an iteration, in place of the one with its number."""
    connection.execute(
        "INSERT OR REPLACE INTO run_iterations VALUES (?, ?, ?)",
        [run_seq, iteration.iteration_number, pack(iteration.model_dump_json())],
    )


def read_iterations(connection: sqlite3.Connection, run_seq: int) -> tuple[Iteration, ...]:
    """The iterations of a run, in order."""
    rows = connection.execute("SELECT payload FROM run_iterations WHERE run_seq = ? ORDER BY number", [run_seq])
    with readable(connection, "run", run_seq):
        return tuple(Iteration.model_validate_json(unpack(row[0])) for row in rows)


def read_steps(connection: sqlite3.Connection, run_seq: int) -> StepsDone | None:
    """What the iteration under way has finished, put together from what each step left."""
    rows = connection.execute("SELECT payload FROM run_steps WHERE run_seq = ? ORDER BY seq", [run_seq])
    with readable(connection, "run", run_seq):
        parts = [StepsDone.model_validate_json(unpack(row[0])) for row in rows]
    whole: StepsDone | None = None
    for part in parts:
        whole = part if whole is None else whole.with_more(part)
    return whole


def read_run(connection: sqlite3.Connection, row: sqlite3.Row) -> Run:
    """Return the complete result of a finished run."""
    with readable(connection, "run", row["seq"]):
        run = Run.model_validate_json(unpack(row["payload"]))
        iterations = read_iterations(connection, row["seq"])
        if len(iterations) != row["iterations"]:
            raise ValueError(f"it had {row['iterations']} iterations and has {len(iterations)}")
    return run.model_copy(update={"iterations": iterations})


DAMAGE = (zlib.error, ValueError, TypeError)
"""What reading a damaged record raises: pydantic's errors are ValueErrors."""

_CURE = {
    "run": "Audit its case again, or restore a backup (`masis restore`).",
    "screening": "Screen its question again, or restore a backup (`masis restore`).",
}


@contextlib.contextmanager
def readable(connection: sqlite3.Connection, kind: Literal["run", "screening"], seq: int) -> Iterator[None]:
    """Raise RecordDamaged, naming the run and its case or the screening, where what is stored of it can't be read."""
    try:
        yield
    except DAMAGE as error:
        if kind == "run":
            raise damaged_run(connection, seq, error) from error
        [name] = connection.execute("SELECT id FROM screenings WHERE seq = ?", [seq]).fetchone() or [f"number {seq}"]
        raise _damaged(f"screening {name!r}", error, _CURE[kind]) from error


def damaged_run(connection: sqlite3.Connection, seq: int, error: Exception, cure: str = _CURE["run"]) -> RecordDamaged:
    """Return the error that names a run that can't be read and its case, with what to do."""
    named = "SELECT runs.id, cases.id FROM runs JOIN cases ON cases.seq = case_seq WHERE runs.seq = ?"
    run, case = connection.execute(named, [seq]).fetchone() or (f"number {seq}", "unknown")
    return _damaged(f"run {run!r} of case {case!r}", error, cure)


def _damaged(what: str, error: Exception, cure: str) -> RecordDamaged:
    why = type(error).__name__
    if isinstance(error, zlib.error):
        why = "it can't be decompressed"
    elif isinstance(error, ValidationError):
        first = error.errors(include_url=False, include_input=False, include_context=False)[0]
        why = ": ".join(part for part in (path_of(first["loc"]), first["msg"]) if part)
    elif type(error) is ValueError:
        why = str(error)
    return RecordDamaged(f"{what} can't be read: what is stored of it is damaged or was altered ({why}). {cure}")


def pack(text: str, level: int = 6) -> bytes:
    """Text as kept where it is long: an iteration repeats its answer's words and shrinks to a sixth."""
    return zlib.compress(text.encode(), level)


def unpack(packed: bytes) -> str:
    """What ``pack`` packed."""
    return zlib.decompress(packed).decode()


_JSON = ("models", "settings", "flags", "reasons")
_SUMMARY = [name for name in RunSummary.model_fields if name not in ("case_id", *_JSON)]


def summaries(connection: sqlite3.Connection, where: str, values: Sequence[Any]) -> tuple[RunSummary, ...]:
    """The runs that a condition of ours names, as lists show them, newest first."""
    rows = connection.execute(
        f"""SELECT runs.*, cases.id AS case_id, purges.at AS removed_at
            FROM runs JOIN cases ON cases.seq = case_seq LEFT JOIN purges ON purges.seq = removed_by
            WHERE {where} ORDER BY runs.seq DESC""",  # noqa: S608 (conditions of ours, values bound)
        values,
    )
    return tuple(_summary(connection, row) for row in rows)


def _summary(connection: sqlite3.Connection, row: sqlite3.Row) -> RunSummary:
    with readable(connection, "run", row["seq"]):
        return RunSummary(
            case_id=row["case_id"],
            **{name: json.loads(row[name]) for name in _JSON},
            **{name: row[name] for name in _SUMMARY},
        )


_UNDER_WAY = "runs.state != 'finished' AND runs.state = 'running'"
"""Said twice, since only what an index says of its rows, word for word, has SQLite use it: all runs were read."""


_TO_ASSESS = """FROM cases JOIN runs ON runs.seq = cases.run_seq
    LEFT JOIN decision_log AS standing ON standing.seq = cases.decision_seq
    WHERE cases.state IN ('accepted', 'needs_review') AND runs.removed_by IS NULL AND cases.redaction_seq IS NULL
        AND (?1 IS NULL OR runs.rule IS NOT ?1)"""


class Runs:
    """The runs of a store."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def start(
        self,
        run_id: str,
        *,
        case_id: str,
        case_digest: str,
        models: dict[str, str],
        settings: dict[str, Any],
        started_at: str | None = None,
        owner: Owner | None = None,
    ) -> None:
        """Note that a run begins, in this process unless an owner is named.

        Raises UnknownRecord (no such case) and StoreError (the id is taken, the case has other content).
        """
        with self._database.transaction(durable=False) as connection:
            if connection.execute("SELECT 1 FROM runs WHERE id = ?", [run_id]).fetchone():
                raise StoreError(f"run {run_id!r} has been started before. Resume it, or start one with a new id.")
            at = started_at or self._database.now()
            insert(
                connection, run_id, case_id, case_digest, models, settings, at, owner or process_owner.this_process()
            )

    def resume(self, run_id: str, *, owner: Owner | None = None) -> RunProgress:
        """Take up an interrupted run in this process, and say how far it had come.

        Raises StoreError where it is under way in a living process, or finished.
        """
        owner = owner or process_owner.this_process()
        with self._database.transaction(durable=False) as connection:
            run = row_of(connection, run_id)
            assert_not_removed(connection, run)
            if run["state"] == "finished":
                raise StoreError(f"run {run_id!r} is finished: there is nothing to resume. Start a new one.")
            if run["state"] == "running" and not self._lost(run):
                holder = Owner.from_text(run["owner"])
                raise StoreError(
                    f"run {run_id!r} is under way in process {holder.pid} on {holder.host}. Wait for it, or cancel it."
                )
            connection.execute(
                """UPDATE runs SET state = 'running', starts = starts + 1, owner = ?, seen_at = ?, ended_at = NULL,
                   why = '', cancel_requested = 0 WHERE seq = ?""",
                [owner.to_text(), self._database.now(), run["seq"]],
            )
            refresh(connection, run["case_seq"])
        return self.progress(run_id)

    def append_event(self, event: Event) -> Event:
        """Store an event; returned with the number it got, which follows the last one where its own was taken."""
        return self.append_events([event])[0]

    def append_events(self, events: Iterable[Event]) -> list[Event]:
        """Store events in one transaction."""
        kept: list[Event] = []
        with self._database.transaction(durable=False) as connection:
            for run_id, of_run in groupby(events, key=lambda event: event.run_id):
                run = row_of(connection, run_id)["seq"]
                found = connection.execute("SELECT max(seq) FROM run_events WHERE run_seq = ?", [run]).fetchone()
                last = found[0] or 0
                for event in of_run:
                    last = max(event.seq, last + 1)
                    kept.append(event if event.seq == last else event.model_copy(update={"seq": last}))
                    row = [run, last, kept[-1].model_dump_json()]
                    connection.execute("INSERT INTO run_events VALUES (?, ?, ?)", row)
                self._seen(connection, run)
        return kept

    def save_draft(self, run_id: str, draft: Draft) -> None:
        """Store the answer that was drafted for a case without one."""
        with self._database.transaction(durable=False) as connection:
            run = unfinished(connection, run_id)
            connection.execute("UPDATE runs SET draft = ? WHERE seq = ?", [draft.model_dump_json(), run["seq"]])
            self._seen(connection, run["seq"])

    def save_steps(self, run_id: str, steps: StepsDone) -> None:
        """Store what an iteration under way has finished besides what it had before; earlier ones are dropped."""
        with self._database.transaction(durable=False) as connection:
            run = unfinished(connection, run_id)["seq"]
            packed = pack(steps.model_dump_json(exclude_defaults=True), 1)
            connection.execute("DELETE FROM run_steps WHERE run_seq = ? AND number <> ?", [run, steps.iteration_number])
            row = [run, steps.iteration_number, packed]
            connection.execute("INSERT INTO run_steps (run_seq, number, payload) VALUES (?, ?, ?)", row)
            self._seen(connection, run)

    def save_iteration(self, run_id: str, iteration: Iteration) -> None:
        """Store an iteration as it is now; the same number again replaces it while the run is under way."""
        with self._database.transaction(durable=False) as connection:
            run = unfinished(connection, run_id)
            save_iteration(connection, run["seq"], iteration)
            self._seen(connection, run["seq"])

    def finish(self, run: Run, kept: Collection[int] = ()) -> None:
        """Store the result of a run, started here or computed elsewhere; the case's state follows at once.

        ``kept`` are the numbers of iterations that ``save_iteration`` has been given just as they are in the run.
        Finishing twice with the same result is harmless; with another one it is a StoreError.
        """
        with self._database.transaction(durable=False) as connection:
            row = connection.execute("SELECT * FROM runs WHERE id = ?", [run.id]).fetchone()
            if row is None:
                seq = insert(
                    connection,
                    run.id,
                    run.case_id,
                    run.case_digest,
                    run.models,
                    run.settings,
                    run.started_at,
                    process_owner.this_process(),
                )
                row = row_of(connection, run.id)
            seq = row["seq"]
            if row["case_seq"] != case_seq(connection, run.case_id):
                raise StoreError(f"run {run.id!r} was started for another case than {run.case_id!r}.")
            assert_not_removed(connection, row)
            if row["state"] == "finished":
                if read_run(connection, row) != run:
                    raise StoreError(f"run {run.id!r} is finished with another result, which stays as it is.")
                return
            write_result(connection, seq, run, kept)
            executions.log_end(connection, run, row["starts"])
            refresh(connection, row["case_seq"])

    def abandon(self, run_id: str, why: str) -> None:
        """Note that a run was cut short; it can be resumed. A finished run stays finished."""
        with self._database.transaction(durable=False) as connection:
            run = row_of(connection, run_id)
            if run["state"] == "running":
                self._interrupt(connection, run, why)

    def count_to_assess(self, rule: str | None) -> int:
        """How many cases ``to_assess`` gives in all."""
        row = self._database.row(f"SELECT count(*) {_TO_ASSESS}", [rule])
        return int(row[0]) if row else 0

    def to_assess(self, rule: str | None, *, after: int, limit: int) -> tuple[Assessed, ...]:
        """Cases from number ``after`` on, in order, that stand by a run judged by another rule (any rule for None)."""
        rows = self._database.execute(
            f"""SELECT cases.seq, cases.id, runs.id, cases.version, cases.state = 'accepted', standing.id,
                    EXISTS (SELECT 1 FROM decision_log AS log WHERE log.case_seq = cases.seq AND log.source = 'HUMAN')
                {_TO_ASSESS} AND cases.seq > ?2 ORDER BY cases.seq LIMIT ?3""",  # noqa: S608
            [rule, after, limit],
        )
        return tuple(
            Assessed(seq, case, run, version, bool(accepted), entry, bool(touched))
            for seq, case, run, version, accepted, entry, touched in map(tuple, rows)
        )

    def note_assessment(self, run_id: str, reasons: Sequence[ReviewReason], rule: str) -> None:
        """Note what a rule made of a finished run in its derived figures; what the run holds stays as it is.

        Raises UnknownRecord and Removed.
        """
        with self._database.transaction() as connection:
            row = row_of(connection, run_id)
            assert_not_removed(connection, row)
            now = figures(read_run(connection, row).model_copy(update={"review_reasons": tuple(reasons)}))
            connection.execute(
                "UPDATE runs SET reasons = ?, tier = ?, risk = ?, needs_review = ?, rule = ? WHERE seq = ?",
                [json.dumps(now.reasons), now.tier, now.risk, bool(reasons), rule, row["seq"]],
            )
            refresh(connection, row["case_seq"])

    def mark_lost(self) -> tuple[str, ...]:
        """Mark runs whose process is gone as interrupted, and return their ids; a living process keeps its runs."""
        with self._database.reading() as connection:
            found = connection.execute(f"SELECT * FROM runs WHERE {_UNDER_WAY}").fetchall()  # noqa: S608 (text of ours)
        lost = [row["id"] for row in found if self._lost(row)]
        if lost:
            with self._database.transaction(durable=False) as connection:
                for run_id in lost:
                    run = row_of(connection, run_id)
                    if run["state"] == "running" and self._lost(run):
                        self._interrupt(connection, run, "The process that ran it ended before the run did.")
        return tuple(lost)

    def request_cancel(self, run_id: str) -> None:
        """Ask whoever runs it to stop between two steps."""
        with self._database.transaction(durable=False) as connection:
            run = row_of(connection, run_id)
            connection.execute("UPDATE runs SET cancel_requested = 1 WHERE seq = ?", [run["seq"]])

    def cancel_requested(self, run_id: str) -> bool:
        """Whether somebody asked the run to stop."""
        with self._database.reading() as connection:
            return bool(row_of(connection, run_id)["cancel_requested"])

    def get(self, run_id: str) -> Run:
        """Return a finished run. Raises UnknownRecord, Removed, and StoreError where it is not finished."""
        with self._database.reading() as connection:
            row = row_of(connection, run_id)
            assert_not_removed(connection, row)
            if row["payload"] is None:
                raise StoreError(f"run {run_id!r} is {row['state']}, not finished: only its progress can be read.")
            return read_run(connection, row)

    def progress(self, run_id: str) -> RunProgress:
        """Return how far a run has come: its settings, its draft, the iterations finished so far. Raises Removed."""
        with self._database.reading() as connection:
            row = row_of(connection, run_id)
            assert_not_removed(connection, row)
            last = connection.execute("SELECT max(seq) FROM run_events WHERE run_seq = ?", [row["seq"]]).fetchone()[0]
            return RunProgress(
                run_id=run_id,
                case_id=case_id_of(connection, row),
                case_digest=row["case_digest"],
                state=row["state"],
                models=json.loads(row["models"]),
                settings=json.loads(row["settings"]),
                started_at=row["started_at"],
                draft=Draft.model_validate_json(row["draft"]) if row["draft"] else None,
                iterations=read_iterations(connection, row["seq"]),
                steps=read_steps(connection, row["seq"]),
                last_event=last or 0,
                cancel_requested=bool(row["cancel_requested"]),
                why=row["why"],
            )

    def events(self, run_id: str) -> tuple[Event, ...]:
        """The events of a run, in order."""
        with self._database.reading() as connection:
            run = row_of(connection, run_id)
            rows = connection.execute("SELECT payload FROM run_events WHERE run_seq = ? ORDER BY seq", [run["seq"]])
            return tuple(Event.model_validate_json(row[0]) for row in rows)

    def for_case(self, case_id: str) -> tuple[RunSummary, ...]:
        """The runs of a case, newest first. Raises UnknownRecord."""
        with self._database.reading() as connection:
            return summaries(connection, "case_seq = ?", [case_seq(connection, case_id)])

    def summary(self, run_id: str) -> RunSummary:
        """One run as lists show it. Raises UnknownRecord."""
        with self._database.reading() as connection:
            found = summaries(connection, "runs.id = ?", [run_id])
        if not found:
            raise UnknownRecord(f"there is no run {run_id!r}.")
        return found[0]

    def cases_with_several(self, limit: int = 20) -> tuple[str, ...]:
        """The ids of cases with more than one finished run, the one that ran last first."""
        # the inner list comes from an index alone; what was removed is then asked of its few runs, not of all there are
        rows = self._database.execute(
            """SELECT cases.id FROM (
                   SELECT case_seq, max(seq) AS newest FROM runs
                   WHERE state = 'finished' AND removed_by IS NULL AND case_seq IN (
                       SELECT case_seq FROM runs WHERE state = 'finished' GROUP BY case_seq HAVING count(*) > 1
                   )
                   GROUP BY case_seq HAVING count(*) > 1 ORDER BY newest DESC LIMIT ?
               ) JOIN cases ON cases.seq = case_seq ORDER BY newest DESC""",
            [limit],
        )
        return tuple(row[0] for row in rows)

    def find(self, case_id: str, state: RunState, case_digest: str, settings: dict[str, Any]) -> str | None:
        """The newest run of a case in this state, over this content, with these settings; None if there is none."""
        row = self._database.row(
            """SELECT runs.id FROM runs JOIN cases ON cases.seq = case_seq
               WHERE cases.id = ? AND settings_digest = ? AND runs.state = ? AND case_digest = ?
                   AND removed_by IS NULL
               ORDER BY runs.seq DESC LIMIT 1""",
            [case_id, sha256(canonical_json(settings)), state, case_digest],
        )
        return row[0] if row else None

    def interrupted(self) -> tuple[RunSummary, ...]:
        """Interrupted runs that no newer finished run of their case has made pointless, newest first."""
        with self._database.reading() as connection:
            return summaries(
                connection,
                """runs.state != 'finished' AND runs.state = 'interrupted' AND removed_by IS NULL
                   AND NOT EXISTS (SELECT 1 FROM runs AS later
                   WHERE later.case_seq = runs.case_seq AND later.state = 'finished' AND later.seq > runs.seq)""",
                [],
            )

    def running(self) -> tuple[RunSummary, ...]:
        """Runs under way, in any process, newest first."""
        with self._database.reading() as connection:
            return summaries(connection, _UNDER_WAY, [])

    def _seen(self, connection: sqlite3.Connection, run_seq: int) -> None:
        connection.execute("UPDATE runs SET seen_at = ? WHERE seq = ?", [self._database.now(), run_seq])

    def _lost(self, run: sqlite3.Row) -> bool:
        alive = process_owner.is_alive(Owner.from_text(run["owner"]))
        if alive is not None:
            return not alive
        silence = datetime.fromisoformat(self._database.now()) - datetime.fromisoformat(run["seen_at"])
        return silence.total_seconds() > process_owner.SILENCE_S

    def _interrupt(self, connection: sqlite3.Connection, run: sqlite3.Row, why: str) -> None:
        at = self._database.now()
        connection.execute(
            "UPDATE runs SET state = 'interrupted', ended_at = ?, why = ? WHERE seq = ?", [at, why, run["seq"]]
        )
        try:
            done = read_iterations(connection, run["seq"])
        except RecordDamaged:  # a database must open although one of its runs is damaged
            done = ()
        executions.log_cut_short(connection, run, case_id_of(connection, run), done, at)
        refresh(connection, run["case_seq"])

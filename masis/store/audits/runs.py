"""Stores runs, which are the audits of cases, iteration by iteration.

``masis.store.jobs`` has the operations that all jobs share.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Collection, Sequence
from functools import reduce
from typing import Any

from masis.audit.acceptance import disagreement, fault_probability, is_coverable
from masis.errors import Conflict, RecordDamaged, Removed, UnknownRecord
from masis.schema.audit import Draft
from masis.schema.rules import FLAGS, RULES, ReviewTier, rules_with_flag
from masis.schema.run import AcceptanceRecord, Event, Iteration, ReviewReason, Run, StepsDone
from masis.store.audits import executions, metrics
from masis.store.audits.queue import case_seq
from masis.store.audits.run_records import read_run
from masis.store.core.chained_log import canonical_json, sha256
from masis.store.core.process_owner import Owner
from masis.store.core.sql import record_of
from masis.store.jobs import (
    StoredJobs,
    assert_not_removed,
    drop_parts,
    last_part,
    pack,
    read_parts,
    readable,
    save_part,
    update_job,
)
from masis.store.orders import fitted_risk, risk_of
from masis.store.records import AssessedCase, RunProgress, RunState, RunSummary
from masis.store.reviews.states import refresh
from masis.views.headline import headline, worst_severity

# The figures of a run that lists show, filter and sort by. They depend on the run alone.


def figures(run: Run) -> dict[str, Any]:
    """Return the columns of a finished run: the scores and the faults of its original answer.

    ``risk``, ``disagreement`` and ``doubt`` sort the queue, higher first. ``risk`` is ``risk_of``
    the answer, or ``fitted_risk`` if a fitted score gave the probability of fault. Unscored counts
    as 1 in the other two. ``likely`` is the built-in probability, and ``coverable`` whether a
    guarantee may accept the run. ``headline`` is the worst issue of the original answer as JSON
    (``masis/views/headline.py``), and ``severity`` is its severity.
    """
    first = run.original
    confidence = first.critique.confidence if first else None
    tiers = {reason.tier for reason in run.review_reasons}
    tier: ReviewTier | None = "must_look" if "must_look" in tiers else next(iter(tiers), None)
    likely = fault_probability(first) if first and run.termination_reason != "no_answer" else 1.0
    fitted = run.acceptance.fault_probability
    severity = worst_severity(first) if first else None
    return {
        "quality": run.quality,
        "revised_quality": run.revised_quality,
        "confidence": confidence,
        "overall": first.evaluation.overall_score if first and first.evaluation else None,
        "invalid": len(first.citation_audit.invalid_citations) if first else None,
        "uncited": len(first.citation_audit.uncited_claims) if first else None,
        "iterations": len(run.iterations),
        "improvement": run.improvement_percentage,
        "termination": run.termination_reason,
        "needs_review": run.needs_review,
        "spot_check": run.spot_check,
        "flags": (
            *(faults(first) if first and run.termination_reason != "no_answer" else ()),
            *run_flags(run),
        ),
        "reasons": tuple(dict.fromkeys(reason.code for reason in run.review_reasons)),
        "disagreement": disagreement(first) if first else 1.0,
        "doubt": 1.0 if confidence is None else 1.0 - confidence,
        "tier": tier,
        "risk": risk_of(tier, severity, likely) if fitted is None else fitted_risk(fitted),
        "rule": run.acceptance.rule,
        "auditor": run.auditor,
        "likely": likely,
        "coverable": is_coverable(run),
        "headline": headline(run).model_dump_json(),
        "severity": severity,
    }


def run_flags(run: Run) -> tuple[str, ...]:
    """Return the flags of a run: ``drafted``, ``spot_check``, and how it ended if not well."""
    ended = (
        [run.termination_reason]
        if run.termination_reason in ("error", "cancelled", "no_answer")
        else []
    )
    signs = (("drafted", run.draft is not None), ("spot_check", run.spot_check))
    return (*(name for name, present in signs if present), *ended)


def faults(iteration: Iteration) -> list[str]:
    """Return the flags of one answer's faults, such as ``uncited``."""
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
        (
            "hallucination",
            iteration.critique.hallucination_detected or audit.hallucination_detected,
        ),
        ("conflicting_evidence", bool(iteration.critique.conflicting_evidence)),
        (
            "missing",
            any(issue.rule in rules_with_flag("missing") for issue in iteration.issues),
        ),
        ("unscored", unscored),
    )
    # A rule that declares another flag needs no line above.
    other_flags = {
        rule.flag
        for issue in iteration.issues
        if (rule := RULES.get(issue.rule)) and rule.flag and rule.flag not in FLAGS
    }
    return [name for name, present in signs if present] + sorted(other_flags)


def write_result(
    connection: sqlite3.Connection, seq: int, run: Run, kept: Collection[int] = ()
) -> None:
    """Store the result of a run and remove the parts of its progress.

    ``kept`` are the numbers of iterations that are already stored as they are in the run.
    """
    last = run.iterations[-1].iteration_number if run.iterations else 0
    drop_parts(connection, seq, "iteration", above=last)
    drop_parts(connection, seq, "step")
    for iteration in run.iterations:
        if iteration.iteration_number not in kept:
            save_part(
                connection,
                seq,
                "iteration",
                iteration.iteration_number,
                pack(iteration.model_dump_json()),
            )
    columns = figures(run)
    columns |= {name: json.dumps(columns[name]) for name in ("flags", "reasons")}
    update_job(
        connection,
        seq,
        **columns,
        state="finished",
        ended_at=run.finished_at,
        why="",
        draft=run.draft.model_dump_json() if run.draft else None,
        payload=pack(run.model_copy(update={"iterations": ()}).model_dump_json()),
    )
    metrics.write(connection, run)


def summaries(
    connection: sqlite3.Connection, where: str, values: Sequence[Any]
) -> tuple[RunSummary, ...]:
    """Return the runs that meet a condition, as lists show them, newest first.

    ``where`` is SQL and so must never hold text from outside.
    """
    rows = connection.execute(
        f"""SELECT runs.*, cases.id AS case_id, purges.at AS removed_at
            FROM runs JOIN cases ON cases.seq = case_seq LEFT JOIN purges ON purges.seq = removed_by
            WHERE {where} ORDER BY runs.seq DESC""",  # noqa: S608
        values,
    )
    runs = []
    for row in rows:
        with readable(connection, "run", row["seq"]):
            runs.append(
                record_of(RunSummary, row, parsed=("models", "settings", "flags", "reasons"))
            )
    return tuple(runs)


_TO_ASSESS = """FROM cases JOIN runs ON runs.seq = cases.run_seq
    LEFT JOIN decision_log AS standing ON standing.seq = cases.decision_seq
    WHERE cases.state IN ('accepted', 'needs_review') AND runs.removed_by IS NULL
        AND cases.redaction_seq IS NULL AND (?1 IS NULL OR runs.rule IS NOT ?1)"""

_STEPS_EACH = 1000
"""The steps of iteration 2 are the parts 2000, 2001 and so on; an iteration has a handful."""


class Runs(StoredJobs[Event, RunProgress]):
    """The runs of a store."""

    kind = "run"
    event_type = Event

    def on_change(self, connection: sqlite3.Connection, job: sqlite3.Row) -> None:
        """Update the state of the run's case."""
        refresh(connection, job["case_seq"])

    def on_interrupted(self, connection: sqlite3.Connection, job: sqlite3.Row, at: str) -> None:
        """Write the interrupted run to the log of executions."""
        try:
            done = read_parts(connection, "run", job["seq"], "iteration", Iteration)
        except RecordDamaged:
            # A database must open although one of its runs is damaged.
            done = ()
        executions.log_cut_short(connection, job, _case_id_of(connection, job), done, at)

    def start(
        self,
        run_id: str,
        *,
        case_id: str,
        case_digest: str,
        models: dict[str, str],
        settings: dict[str, Any],
        asked_by: str = "",
        started_at: str | None = None,
        owner: Owner | None = None,
    ) -> None:
        """Store a new run, which this process runs unless an owner is given.

        ``asked_by`` is the name of the person who started it.

        Raises:
            UnknownRecord: There is no such case.
            Removed: The case was redacted.
            StoreError: The id is taken, or the case has other content.

        """
        with self._database.transaction(durable=False) as connection:
            columns = _run_columns(connection, run_id, case_id, case_digest, models, settings)
            self.begin(connection, run_id, columns | {"asked_by": asked_by}, started_at, owner)

    def save_draft(self, run_id: str, draft: Draft) -> None:
        """Store the answer that was drafted for a case without one."""
        with self._database.transaction(durable=False) as connection:
            run = self.unfinished_row(connection, run_id)
            connection.execute(
                "UPDATE jobs SET draft = ? WHERE seq = ?", [draft.model_dump_json(), run["seq"]]
            )
            self.record_sign_of_life(connection, run["seq"])

    def save_steps(self, run_id: str, steps: StepsDone) -> None:
        """Store further results of the current iteration and drop those of earlier ones."""
        with self._database.transaction(durable=False) as connection:
            seq = self.unfinished_row(connection, run_id)["seq"]
            first, last = steps.iteration_number * _STEPS_EACH, last_part(connection, seq, "step")
            if last < first:
                drop_parts(connection, seq, "step")
            packed = pack(steps.model_dump_json(exclude_defaults=True), 1)
            save_part(connection, seq, "step", max(first, last + 1), packed)
            self.record_sign_of_life(connection, seq)

    def save_iteration(self, run_id: str, iteration: Iteration) -> None:
        """Store an iteration, replacing one with the same number.

        Raises:
            UnknownRecord: There is no such run.
            StoreError: The run is finished.

        """
        with self._database.transaction(durable=False) as connection:
            seq = self.unfinished_row(connection, run_id)["seq"]
            packed = pack(iteration.model_dump_json())
            save_part(connection, seq, "iteration", iteration.iteration_number, packed)
            self.record_sign_of_life(connection, seq)

    def finish(self, run: Run, kept: Collection[int] = ()) -> None:
        """Store the result of a run, started here or computed elsewhere, and update its case.

        Finishing a run twice with the same result is harmless.

        Args:
            run: The finished run.
            kept: The numbers of iterations that ``save_iteration`` has stored as they are in the
                run.

        Raises:
            UnknownRecord: There is no such case.
            Removed: The case was redacted, or the content of the run was removed.
            StoreError: The run was started for another case, or is finished with another result.

        """
        with self._database.transaction(durable=False) as connection:
            row = connection.execute("SELECT * FROM runs WHERE id = ?", [run.id]).fetchone()
            if row is None:
                columns = _run_columns(
                    connection, run.id, run.case_id, run.case_digest, run.models, run.settings
                )
                self.begin(connection, run.id, columns, run.started_at)
            row = self.row(connection, run.id)
            if row["case_seq"] != case_seq(connection, run.case_id):
                raise Conflict(f"run {run.id!r} was started for another case than {run.case_id!r}.")
            assert_not_removed(connection, row)
            if row["state"] == "finished":
                if read_run(connection, row) != run:
                    raise Conflict(
                        f"run {run.id!r} has already finished with a different result, which isn't"
                        " changed."
                    )
                return
            write_result(connection, row["seq"], run, kept)
            executions.log_end(connection, run, row["starts"])
            self.on_change(connection, row)

    def count_to_assess(self, rule: str | None) -> int:
        """Return the total number of cases that ``to_assess`` returns."""
        return int(self._database.value(f"SELECT count(*) {_TO_ASSESS}", [rule]))

    def to_assess(self, rule: str | None, *, after: int, limit: int) -> tuple[AssessedCase, ...]:
        """Return cases whose state follows from a run that another version of the rule assessed.

        Args:
            rule: The current version of the rule; None returns the cases of every version.
            after: The number of the last case of the page before.
            limit: The most cases to return.

        """
        rows = self._database.execute(
            f"""SELECT cases.seq, cases.id, runs.id, cases.version, cases.state = 'accepted',
                    standing.id,
                    EXISTS (SELECT 1 FROM decision_log AS log WHERE log.case_seq = cases.seq
                        AND log.source = 'HUMAN')
                {_TO_ASSESS} AND cases.seq > ?2 ORDER BY cases.seq LIMIT ?3""",  # noqa: S608
            [rule, after, limit],
        )
        return tuple(
            AssessedCase(seq, case, run, version, bool(accepted), entry, bool(touched))
            for seq, case, run, version, accepted, entry, touched in map(tuple, rows)
        )

    def note_assessment(
        self,
        run_id: str,
        acceptance: AcceptanceRecord,
        reasons: Sequence[ReviewReason],
        *,
        drawn: bool = False,
    ) -> None:
        """Store a new assessment of a finished run in its derived columns.

        The stored run itself doesn't change. With ``drawn`` it counts as a spot check from now on.

        Raises:
            UnknownRecord: There is no such run.
            Removed: The content of the run was removed.

        """
        with self._database.transaction() as connection:
            row = self.row(connection, run_id)
            assert_not_removed(connection, row)
            assessment = {"acceptance": acceptance, "review_reasons": tuple(reasons)}
            columns = figures(read_run(connection, row).model_copy(update=assessment))
            derived = {
                name: columns[name] for name in ("tier", "risk", "coverable", "headline", "rule")
            }
            derived |= {"reasons": json.dumps(columns["reasons"]), "needs_review": bool(reasons)}
            derived |= {"spot_check": True} if drawn else {}
            update_job(connection, row["seq"], **derived)
            self.on_change(connection, row)

    def get(self, run_id: str) -> Run:
        """Return a finished run.

        Raises:
            UnknownRecord: There is no such run.
            Removed: Its content was removed.
            StoreError: It isn't finished.

        """
        with self._database.reading() as connection:
            return read_run(connection, self.finished_row(connection, run_id))

    def progress(self, run_id: str) -> RunProgress:
        """Return the progress of a run: its settings, its draft and its finished iterations.

        Raises:
            UnknownRecord: There is no such run.
            Removed: Its content was removed.

        """
        with self._database.reading() as connection:
            row = self.row(connection, run_id)
            assert_not_removed(connection, row)
            steps = read_parts(connection, "run", row["seq"], "step", StepsDone)
            return record_of(
                RunProgress,
                row,
                parsed=("models", "settings", "draft"),
                run_id=run_id,
                case_id=_case_id_of(connection, row),
                iterations=read_parts(connection, "run", row["seq"], "iteration", Iteration),
                steps=reduce(StepsDone.with_more, steps) if steps else None,
                last_event=last_part(connection, row["seq"], "event"),
            )

    def for_case(self, case_id: str) -> tuple[RunSummary, ...]:
        """Return the runs of a case, newest first. Raises UnknownRecord."""
        with self._database.reading() as connection:
            return summaries(connection, "case_seq = ?", [case_seq(connection, case_id)])

    def find_running(self, case_id: str) -> str | None:
        """Return the id of a case's run that a living process works on, or None.

        A run whose process has ended becomes interrupted.

        Raises:
            UnknownRecord: There is no such case.

        """
        running = next((run.id for run in self.for_case(case_id) if run.state == "running"), None)
        return None if running is None or running in self.mark_lost() else running

    def summary(self, run_id: str) -> RunSummary:
        """Return one run as lists show it. Raises UnknownRecord."""
        with self._database.reading() as connection:
            matches = summaries(connection, "runs.id = ?", [run_id])
        if not matches:
            raise UnknownRecord(f"there is no run {run_id!r}.")
        return matches[0]

    def find(
        self, case_id: str, state: RunState, case_digest: str, settings: dict[str, Any]
    ) -> str | None:
        """Return the id of the newest run of a case with this state, content and settings."""
        row = self._database.row(
            """SELECT runs.id FROM runs JOIN cases ON cases.seq = case_seq
               WHERE cases.id = ? AND settings_digest = ? AND runs.state = ? AND case_digest = ?
                   AND removed_by IS NULL
               ORDER BY runs.seq DESC LIMIT 1""",
            [case_id, sha256(canonical_json(settings)), state, case_digest],
        )
        return row[0] if row else None


def _run_columns(
    connection: sqlite3.Connection,
    run_id: str,
    case_id: str,
    case_digest: str,
    models: dict[str, str],
    settings: dict[str, Any],
) -> dict[str, Any]:
    """Return the columns of a new run.

    Raises:
        UnknownRecord: There is no such case.
        Removed: The case was redacted.
        StoreError: The case has other content.

    """
    case = connection.execute(
        "SELECT seq, digest, redaction_seq FROM cases WHERE id = ?", [case_id]
    ).fetchone()
    if case is None:
        raise UnknownRecord(f"there is no case {case_id!r} for run {run_id!r}. Add the case first.")
    if case["redaction_seq"] is not None:
        raise Removed(f"case {case_id!r} was redacted: there is nothing left to audit.")
    if case["digest"] != case_digest:
        raise Conflict(
            f"run {run_id!r} audits other content than case {case_id!r} holds here. Add that as a"
            " new case."
        )
    return {
        "case_seq": case["seq"],
        "case_digest": case_digest,
        "models": json.dumps(models, ensure_ascii=False),
        "settings": json.dumps(settings, ensure_ascii=False),
        "settings_digest": sha256(canonical_json(settings)),
    }


def _case_id_of(connection: sqlite3.Connection, run: sqlite3.Row) -> str:
    return str(
        connection.execute("SELECT id FROM cases WHERE seq = ?", [run["case_seq"]]).fetchone()[0]
    )

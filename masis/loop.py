"""The loop: the only place that knows the order of the steps.

    draft (if there is no answer) -> [citations -> claims -> critique -> evaluation] -> stop? -> revision -> [...]

An iteration is one audited answer; between each two stands a revision (DESIGN.md, 4.3; ``specs/critic-loop.md``, 2.3).
The loop takes the five roles as values, yields events and returns the run; it never sees a store, a page or an SDK.
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable, Generator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from masis import version
from masis.errors import MAX_ITERATIONS_WARNING, StepError
from masis.schema.audit import CitationAudit, ClaimCheck, Critique, Draft, Evaluation, Issue, MissingPoint, Revision
from masis.schema.base import Unscored
from masis.schema.calls import Step, Usage
from masis.schema.case import Case
from masis.schema.run import Event, Iteration, Run, RunWarning, TerminationReason, Versions
from masis.settings import Settings
from masis.steps import claims, critique, evaluation, issues, routing, telemetry
from masis.steps.citations import audit_citations
from masis.steps.claims import Verifier
from masis.steps.context import AuditContext
from masis.steps.critique import Critic
from masis.steps.drafting import Drafter
from masis.steps.evaluation import Evaluator
from masis.steps.revision import Reviser

Events = Generator[Event, None, None]
Audit = Generator[Event, None, Run]


@dataclass(frozen=True)
class Roles:
    """Who judges: any mix of offline, models and people's own. ``models`` names each role's for the record."""

    drafter: Drafter
    verifier: Verifier
    critic: Critic
    reviser: Reviser
    evaluator: Evaluator
    models: dict[str, str]
    offline_weights: str | None = None


@dataclass(frozen=True)
class Progress:
    """How far an interrupted run had come: its finished iterations, the last with the revision made from it."""

    draft: Draft | None = None
    iterations: tuple[Iteration, ...] = ()
    events: int = 0


def utc_now() -> str:
    """The time as kept in records: ISO 8601, UTC, milliseconds."""
    return datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def new_run_id() -> str:
    """A fresh id for a run."""
    return uuid.uuid4().hex


@dataclass(frozen=True)
class Clock:
    """Where times come from: ``now`` for records, ``seconds`` (monotonic) for durations."""

    now: Callable[[], str] = utc_now
    seconds: Callable[[], float] = time.perf_counter


def audit(
    case: Case,
    roles: Roles,
    settings: Settings,
    *,
    run_id: str,
    case_digest: str = "",
    cancelled: Callable[[], bool] = lambda: False,
    progress: Progress | None = None,
    keep: Callable[[Draft | Iteration], None] = lambda finished: None,
    clock: Clock | None = None,
) -> Generator[Event, None, Run]:
    """Audit one case, yielding an event as each thing happens, and return the run.

    ``cancelled`` is asked between steps; ``keep`` is handed the draft and each iteration as it is finished, and
    ``progress`` continues from what was kept. A step that fails is recorded on the run, never raised.
    """
    work = _Work(case, roles, settings, run_id, case_digest, cancelled, keep, clock or Clock())
    return (yield from work.run(progress or Progress()))


class _Cancelled(Exception):
    """The person asked to stop."""


@dataclass
class _Work:
    """One audit under way."""

    case: Case
    roles: Roles
    settings: Settings
    run_id: str
    case_digest: str
    cancelled: Callable[[], bool]
    keep: Callable[[Draft | Iteration], None]
    clock: Clock
    iterations: list[Iteration] = field(default_factory=list)
    warnings: list[RunWarning] = field(default_factory=list)
    draft: Draft | None = None
    seq: int = 0
    began: float = 0.0
    step_ms: dict[str, float] = field(default_factory=dict)

    def run(self, progress: Progress) -> Generator[Event, None, Run]:
        started_at, self.began = self.clock.now(), self.clock.seconds()
        self.iterations, self.draft, self.seq = list(progress.iterations), progress.draft, progress.events
        yield self._event("run_started", data={"models": self.roles.models, "resumed_after": len(self.iterations)})
        try:
            answer = yield from self._first_answer()
            reason = "error" if answer is None else (yield from self._iterate(answer))
        except _Cancelled:
            reason = "cancelled"
        run = self._result(started_at, reason)
        if reason == "max_iterations":
            yield from self._warn(MAX_ITERATIONS_WARNING, None, "The limit of iterations was reached with issues left.")
            run = run.model_copy(update={"warnings": tuple(self.warnings)})
        yield self._event("run_finished", data=telemetry.of_run(run))
        return run

    def _first_answer(self) -> Generator[Event, None, str | None]:
        if self.case.answer is not None and self.case.answer.strip():
            return self.case.answer
        if self.draft is None:
            yield from self._begin("drafting", None)
            try:
                with _Timer(self, "drafting"):
                    self.draft = self.roles.drafter.draft(self.case.query, self.case.evidence)
            except StepError as error:
                yield from self._warn(error.code, "drafting", str(error))
                return None
            self.keep(self.draft)
            yield self._event("step_finished", step="drafting", data={"characters": len(self.draft.answer)})
        return self.draft.answer

    def _iterate(self, answer: str) -> Generator[Event, None, TerminationReason]:
        revision = self.iterations[-1].revision if self.iterations else None
        if self.iterations and revision is None:
            reason, revision = yield from self._next()
            if reason is not None:
                return reason
        while True:
            yield from self._iteration(revision.revised_answer if revision else answer, revision)
            reason, revision = yield from self._next()
            if reason is not None:
                return reason

    def _next(self) -> Generator[Event, None, tuple[TerminationReason | None, Revision | None]]:
        """Stop with a reason, or go on with a revision."""
        reason = routing.stop_reason(self.iterations, self.settings)
        revision = None
        if reason is None and self.clock.seconds() - self.began > self.settings.loop_deadline_s:
            yield from self._warn(None, None, f"The loop passed its deadline of {self.settings.loop_deadline_s:g} s.")
            reason = "error"
        if reason is None:
            revision = yield from self._revise()
            if revision is None:
                reason = "error"
            elif revision.revised_answer == self.iterations[-1].answer:
                reason = "convergence"
        last = self.iterations[-1]
        if reason is not None and last.evaluation is None:
            evaluated = yield from self._evaluate(self._context(last), last.critique)
            last = last.model_copy(update={"evaluation": evaluated})
        elif revision is not None:
            last = last.model_copy(update={"revision": revision})
        self.iterations[-1] = last.model_copy(update={"step_ms": last.step_ms | self.step_ms})
        self.keep(self.iterations[-1])
        yield self._event(
            "iteration_finished", iteration=last.iteration_number, data=telemetry.of_iteration(self.iterations[-1])
        )
        return reason, None if reason else revision

    def _iteration(self, answer: str, revision: Revision | None) -> Events:
        self.step_ms = {}
        number = len(self.iterations) + 1
        yield from self._begin("citations", number)
        with _Timer(self, "citations"):
            cited = audit_citations(
                answer,
                self.case.evidence,
                mode=self.settings.citation_mode,
                invalid_penalty=self.settings.invalid_citation_penalty,
                uncited_penalty=self.settings.uncited_claim_penalty,
            )
        yield self._event("step_finished", iteration=number, step="citations", data=telemetry.of_citations(cited))
        checks, missing = yield from self._check_claims(answer, cited, number)
        found = issues.merged(cited, checks, missing, self.settings)
        context = AuditContext(
            self.case.query,
            answer,
            self.case.evidence,
            cited,
            checks,
            missing,
            found,
            number,
            self._reasoning(),
        )
        verdict, found = yield from self._criticise(context)
        evaluated = None
        if self.settings.evaluate == "every":
            evaluated = yield from self._evaluate(context, verdict)
        quality = critique.quality_score(verdict, cited)
        before = self.iterations[-1].quality_score if self.iterations else None
        self.iterations.append(
            Iteration(
                iteration_number=number,
                answer=answer,
                citation_audit=cited,
                claims=checks,
                claim_report=claims.report(checks, missing),
                issues=found,
                critique=verdict,
                evaluation=evaluated,
                quality_score=quality,
                improvement_delta=routing.improvement_delta(before, quality),
                changes_made=revision.changes_explanation if revision else "",
                step_ms=dict(self.step_ms),
            )
        )

    def _check_claims(
        self, answer: str, cited: CitationAudit, number: int
    ) -> Generator[Event, None, tuple[tuple[ClaimCheck, ...], tuple[MissingPoint, ...]]]:
        yield from self._begin("claims", number)
        checks: tuple[ClaimCheck, ...] = ()
        missing: tuple[MissingPoint, ...] = ()
        verifier = self.roles.verifier
        try:
            with _Timer(self, "claims"):
                found = verifier.extract(answer, cited, self.case.query)
                checks = claims.one_check_each(found, verifier.verify(found, self.case.evidence))
                if self.settings.check_completeness:
                    missing = verifier.missing(self.case.query, answer, checks, self.case.evidence)
        except StepError as error:
            yield from self._warn(error.code, "claims", str(error), number)
        data = telemetry.of_claims(checks, missing)
        yield self._event("step_finished", iteration=number, step="claims", data=data)
        return checks, missing

    def _criticise(self, context: AuditContext) -> Generator[Event, None, tuple[Critique, tuple[Issue, ...]]]:
        number, critic = context.iteration_number, self.roles.critic
        yield from self._begin("critique", number)
        with _Timer(self, "critique"):
            try:
                judgement = critic.critique(context)
            except StepError as error:
                judgement = Unscored(reason=str(error), code=error.code)
        own = issues.RaisedIssues((), ())
        if isinstance(judgement, Unscored):
            yield from self._warn(judgement.code, "critique", f"The critique is unscored: {judgement.reason}", number)
        else:
            own = issues.raised(judgement.objections, context.answer, context.issues)
        found = (*context.issues, *own.issues)
        verdict = critique.ruled(judgement, context.citation_audit, found, critic.judged_by, own.notes)
        data = telemetry.of_critique(verdict, context.citation_audit, found, self.step_ms["critique"])
        yield self._event("step_finished", iteration=number, step="critique", data=data)
        return verdict, found

    def _evaluate(self, context: AuditContext, verdict: Critique) -> Generator[Event, None, Evaluation]:
        number, evaluator = context.iteration_number, self.roles.evaluator
        yield from self._begin("evaluation", number)
        with _Timer(self, "evaluation"):
            try:
                judgement = evaluator.evaluate(context, verdict)
            except StepError as error:
                judgement = Unscored(reason=str(error), code=error.code)
        result = evaluation.ruled(judgement, context.citation_audit, verdict, self.settings, evaluator.judged_by)
        if result.unscored:
            yield from self._warn(
                result.unscored.code, "evaluation", f"The evaluation is unscored: {result.unscored.reason}", number
            )
        data = telemetry.of_evaluation(result, self.step_ms["evaluation"])
        yield self._event("step_finished", iteration=number, step="evaluation", data=data)
        return result

    def _revise(self) -> Generator[Event, None, Revision | None]:
        last = self.iterations[-1]
        yield from self._begin("revision", last.iteration_number)
        try:
            with _Timer(self, "revision"):
                revision = self.roles.reviser.revise(self._context(last), last.critique, last.issues)
        except StepError as error:
            yield from self._warn(error.code, "revision", str(error), last.iteration_number)
            return None
        data = telemetry.of_revision(revision)
        yield self._event("step_finished", iteration=last.iteration_number, step="revision", data=data)
        return revision

    def _context(self, iteration: Iteration) -> AuditContext:
        return AuditContext(
            self.case.query,
            iteration.answer,
            self.case.evidence,
            iteration.citation_audit,
            iteration.claims,
            iteration.claim_report.missing,
            iteration.issues,
            iteration.iteration_number,
            self._reasoning(),
        )

    def _reasoning(self) -> tuple[str, ...]:
        return self.draft.reasoning_steps if self.draft else self.case.reasoning_steps

    def _begin(self, step: Step, number: int | None) -> Events:
        if self.cancelled():
            raise _Cancelled
        yield self._event("step_started", iteration=number, step=step)

    def _warn(self, code: str | None, step: Step | None, message: str, number: int | None = None) -> Events:
        self.warnings.append(RunWarning(code=code, step=step, iteration=number, message=message))
        yield self._event("warning", iteration=number, step=step, message=message, data={"code": code})

    def _event(self, kind: Any, *, message: str = "", data: dict[str, Any] | None = None, **where: Any) -> Event:
        self.seq += 1
        return Event(
            run_id=self.run_id,
            case_id=self.case.id,
            seq=self.seq,
            at=self.clock.now(),
            kind=kind,
            message=message,
            data=data or {},
            **where,
        )

    def _result(self, started_at: str, reason: TerminationReason) -> Run:
        best = routing.best_index(self.iterations)
        chosen = None if best is None else self.iterations[best]
        initial = self.iterations[0].quality_score if self.iterations else None
        final = chosen.quality_score if chosen else None
        reasons = routing.review_reasons(self.iterations, self.case.evidence, reason, self.settings)
        return Run(
            id=self.run_id,
            case_id=self.case.id,
            case_digest=self.case_digest,
            started_at=started_at,
            finished_at=self.clock.now(),
            models=self.roles.models,
            settings=self.settings.model_dump(mode="json"),
            versions=Versions(app=version.APP, rubric=version.RUBRIC, offline_weights=self.roles.offline_weights),
            draft=self.draft,
            iterations=tuple(self.iterations),
            best=best,
            final_answer=chosen.answer if chosen else (self.draft.answer if self.draft else self.case.answer or ""),
            final_quality_score=final,
            improvement_percentage=routing.improvement_percentage(initial, final),
            total_iterations=len(self.iterations),
            converged=reason == "convergence",
            termination_reason=reason,
            needs_review=bool(reasons),
            review_reasons=reasons,
            spot_check=not reasons and routing.drawn_for_spot_check(self.case.id, self.settings),
            warnings=tuple(self.warnings),
            usage=Usage(),
        )


class _Timer:
    """Adds the milliseconds a step took to the iteration's record."""

    def __init__(self, work: _Work, step: Step) -> None:
        self.work, self.step = work, step

    def __enter__(self) -> None:
        self.start = self.work.clock.seconds()

    def __exit__(self, *_: object) -> None:
        spent = (self.work.clock.seconds() - self.start) * 1000
        self.work.step_ms[self.step] = self.work.step_ms.get(self.step, 0.0) + spent

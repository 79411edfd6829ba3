"""The order of the steps, and what becomes of a step that fails."""

from __future__ import annotations

import logging
from collections.abc import Callable, Generator
from typing import Any

from masis import version
from masis.audit import claims, critique, evaluation, issues, routing, step_events
from masis.audit.citations import audit_citations
from masis.audit.claims import Checked
from masis.audit.context import AuditContext
from masis.audit.loop.inputs import Clock, Events, Progress, Roles
from masis.audit.loop.reporting import Cancelled, Telling, counted, figure
from masis.audit.output_validation import passed
from masis.audit.revision import dropped
from masis.errors import MAX_ITERATIONS_WARNING, StepError
from masis.schema.audit import CitationAudit, ClaimReport, Critique, Draft, Evaluation, Issue, Revision
from masis.schema.base import Unscored
from masis.schema.calls import ModelCall, Usage
from masis.schema.case import Case
from masis.schema.run import Event, Iteration, Run, StepsDone, TerminationReason, Versions
from masis.settings import Settings


class Work(Telling):
    """One audit under way."""

    def __init__(
        self,
        case: Case,
        roles: Roles,
        settings: Settings,
        run_id: str,
        case_digest: str,
        cancelled: Callable[[], bool],
        keep: Callable[[Draft | Iteration | StepsDone], None],
        clock: Clock,
    ) -> None:
        super().__init__(case, roles, settings, run_id, cancelled, clock)
        self.case_digest, self.keep = case_digest, keep
        self.iterations: list[Iteration] = []
        self.draft: Draft | None = None
        self.steps: StepsDone | None = None
        self.mark = 0
        """How many calls are filed under the draft or an iteration; those after it are not yet."""

    def run(self, progress: Progress) -> Generator[Event, None, Run]:
        """The whole audit, from where ``progress`` left it."""
        started_at = self.clock.now()
        self.iterations, self.draft, self.seq = list(progress.iterations), progress.draft, progress.events
        self.warnings, self.steps = list(progress.warnings), progress.steps
        self.mark = self.conduct.mark
        self.conduct.begin_loop(self.settings, self.clock.seconds)
        begun: dict[str, Any] = {"models": self.roles.models, "resumed_after": len(self.iterations)}
        words = f"begins on case {self.case_digest[:12]} after {counted(len(self.iterations), 'iteration')}"
        self.log(logging.INFO, "run_started", words, {"case_digest": self.case_digest, **begun})
        yield self.event("run_started", data=begun)
        try:
            answer = yield from self._first_answer()
            reason = "error" if answer is None else (yield from self._iterate(answer))
        except Cancelled:
            reason = "cancelled"
        except BaseException:
            self.conduct.stop()  # a run that is broken off makes no further call either
            raise
        if reason == "max_iterations":
            yield from self.warn(MAX_ITERATIONS_WARNING, None, "The limit of iterations was reached with issues left.")
        run = self._result(started_at, reason)
        told = step_events.of_run(run)
        self._log_end(run, told)
        yield self.event("run_finished", data=told)
        return run

    def _log_end(self, run: Run, told: dict[str, Any]) -> None:
        after = counted(run.total_iterations, "iteration")
        if run.termination_reason == "error":
            codes = [warning.code for warning in run.warnings if warning.code is not None]
            self.log(logging.ERROR, "ended_by_error", f"ended by an error after {after}", {"codes": codes})
        gain = run.improvement_percentage
        words = (
            f"ends after {after}: {run.termination_reason}, {'converged' if run.converged else 'not converged'}, "
            f"quality {figure(run.final_quality_score)}, improvement {'none' if gain is None else f'{gain:.1f} %'}, "
            f"case {self.case_digest[:12]}"
        )
        # what REQ-CRITIC-COMP-001 asks of every execution, for those that no store keeps
        execution = {"at": run.finished_at, "case_digest": self.case_digest, "models": run.models, "app": version.APP}
        self.log(logging.INFO, "run_finished", words, {**told, "converged": run.converged, **execution})

    def _first_answer(self) -> Generator[Event, None, str | None]:
        if self.case.answer is not None and self.case.answer.strip():
            return self.case.answer
        if self.draft is None:
            yield from self.begin("drafting", None)
            drafter, case = self.roles.drafter, self.case
            try:
                draft = yield from self.doing("drafting", lambda: drafter.draft(case.query, case.evidence))
            except StepError as error:
                yield from self.warn(error.code, "drafting", str(error))
                return None
            self.draft = draft.model_copy(update={"calls": self._filed()})
            self.keep(self.draft)
            yield self.step_finished("drafting", None, {"characters": len(self.draft.answer)})
        return self.draft.answer

    def _filed(self) -> tuple[ModelCall, ...]:
        """The calls since the last that were filed: they belong to what is finished now."""
        calls = self.conduct.calls_since(self.mark)
        self.mark += len(calls)
        return calls

    def _iterate(self, answer: str) -> Generator[Event, None, TerminationReason]:
        revision = self.iterations[-1].revision if self.iterations else None
        if self.iterations and revision is None:
            self.conduct.begin_iteration()
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
        if reason is None and self.conduct.loop_left_s() < 0:
            yield from self.warn(None, None, f"The loop passed its deadline of {self.settings.loop_deadline_s:g} s.")
            reason = "error"
        if reason is None:
            revision = yield from self._revise()
            if revision is None:
                reason = "error"
            elif revision.revised_answer == self.iterations[-1].answer:
                reason = "convergence"
        last = self.iterations[-1]
        if reason is not None and last.evaluation is None and self.settings.evaluate != "never":
            evaluated = yield from self._evaluate(self._context(last), last.critique)
            last = last.model_copy(update={"evaluation": evaluated})
        elif revision is not None:
            last = last.model_copy(update={"revision": revision})
        last = last.model_copy(update={"step_ms": last.step_ms | self.step_ms, "calls": (*last.calls, *self._filed())})
        self.iterations[-1] = last
        self.keep(last)
        told = step_events.of_iteration(last)
        self._log_iteration(last, told)
        yield self.event("iteration_finished", iteration=last.iteration_number, data=told)
        return reason, None if reason else revision

    def _log_iteration(self, iteration: Iteration, told: dict[str, Any]) -> None:
        words = (
            f"iteration {iteration.iteration_number}: quality {figure(iteration.quality_score)}, improvement "
            f"{figure(iteration.improvement_delta)}, {counted(len(iteration.issues), 'issue')}"
        )
        self.log(logging.INFO, "iteration_finished", words, {"iteration": iteration.iteration_number, **told})

    def _iteration(self, answer: str, revision: Revision | None) -> Events:
        number = len(self.iterations) + 1
        done = self.steps if self.steps and self.steps.iteration_number == number else None
        self.steps = done = done or StepsDone(iteration_number=number)
        self.step_ms = dict(done.step_ms)
        self.conduct.begin_iteration()
        yield from self.begin("citations", number)
        with self.timed("citations"):
            cited = self._audit_citations(answer)
        yield self.step_finished("citations", number, step_events.of_citations(cited))
        checked, report = Checked(done.claims), done.claim_report
        if report is None or report.unscored:
            checked, report = yield from self._check_claims(answer, cited, number)
            self._step_done(claims=checked.checks, claim_report=report)
        lost = dropped(self.iterations, answer)
        found = issues.merged(cited, checked.checks, report.missing, self.settings, lost)
        context = AuditContext(
            self.case.query,
            answer,
            self.case.evidence,
            cited,
            checked.checks,
            report.missing,
            found,
            number,
            self._reasoning(),
        )
        verdict, evaluated = done.critique, done.evaluation
        if verdict is None or verdict.unscored:
            verdict, found = yield from self._criticise(context)
            self._step_done(critique=verdict, issues=found)
        else:
            found = done.issues
        if self.settings.evaluate == "every" and (evaluated is None or evaluated.unscored):
            evaluated = yield from self._evaluate(context, verdict)
            self._step_done(evaluation=evaluated)
        quality = critique.quality_score(verdict, cited)
        before = self.iterations[-1].quality_score if self.iterations else None
        self.iterations.append(
            Iteration(
                iteration_number=number,
                answer=answer,
                citation_audit=cited,
                claims=checked.checks,
                claim_report=report,
                issues=found,
                critique=verdict,
                evaluation=evaluated,
                quality_score=quality,
                improvement_delta=routing.improvement_delta(before, quality),
                changes_made=revision.changes_explanation if revision else "",
                step_ms=dict(self.step_ms),
                calls=(*self.steps.calls, *self._filed()),
            )
        )
        self.steps = None

    def _step_done(self, **found: Any) -> None:
        """Keep what a step found, where it may have cost something: a run cut short goes on after it."""
        assert self.steps is not None
        more = StepsDone(
            iteration_number=self.steps.iteration_number, step_ms=dict(self.step_ms), calls=self._filed(), **found
        )
        self.steps = self.steps.with_more(more)
        if self.roles.waits:
            self.keep(more)

    def _audit_citations(self, answer: str) -> CitationAudit:
        return audit_citations(
            answer,
            self.case.evidence,
            mode=self.settings.citation_mode,
            invalid_penalty=self.settings.invalid_citation_penalty,
            uncited_penalty=self.settings.uncited_claim_penalty,
        )

    def _check_claims(
        self, answer: str, cited: CitationAudit, number: int
    ) -> Generator[Event, None, tuple[Checked, ClaimReport]]:
        yield from self.begin("claims", number)
        case, verifier = self.case, self.roles.verifier
        checked, unscored = Checked(()), None

        def check() -> Checked:
            found = verifier.extract(answer, cited, case.query)
            whole = verifier.check(
                found, case.query, answer, case.evidence, completeness=self.settings.check_completeness
            )
            return whole._replace(checks=claims.one_check_each(found, whole.checks))

        try:
            checked = yield from self.doing("claims", check)
        except StepError as error:
            unscored = Unscored(reason=str(error), code=error.code, raw=error.raw)
            yield from self.warn(error.code, "claims", f"The claims are unscored: {error}", number)
        yield from self._warn_of_unscored_claims(checked, number)
        data = step_events.of_claims(checked.checks, checked.missing)
        yield self.step_finished("claims", number, data)
        return checked, claims.report(checked.checks, checked.missing, unscored, checked.completeness_unscored)

    def _warn_of_unscored_claims(self, checked: Checked, number: int) -> Events:
        failures = [(check.unscored.code, check.unscored.reason) for check in checked.checks if check.unscored]
        for code, reason in dict.fromkeys(failures):
            yield from self.warn(
                code, "claims", f"{failures.count((code, reason))} claims are unscored: {reason}", number
            )
        if lacking := checked.completeness_unscored:
            yield from self.warn(
                lacking.code, "claims", f"What is left out could not be told: {lacking.reason}", number
            )

    def _criticise(self, context: AuditContext) -> Generator[Event, None, tuple[Critique, tuple[Issue, ...]]]:
        number, critic = context.iteration_number, self.roles.critic
        yield from self.begin("critique", number)
        try:
            judgement = yield from self.doing("critique", lambda: critic.critique(context))
        except StepError as error:
            judgement = Unscored(reason=str(error), code=error.code, raw=error.raw)
        own = issues.RaisedIssues((), ())
        if isinstance(judgement, Unscored):
            yield from self.warn(judgement.code, "critique", f"The critique is unscored: {judgement.reason}", number)
        else:
            own = issues.raised(judgement.objections, context.answer, context.issues)
        found = (*context.issues, *own.issues)
        verdict = critique.ruled(judgement, context.citation_audit, found, critic.judged_by, own.notes)
        self.log_text("critique", verdict)
        self.log_text("issues", found)
        data = step_events.of_critique(verdict, context.citation_audit, found, self.step_ms["critique"])
        yield self.step_finished("critique", number, data)
        return verdict, found

    def _evaluate(self, context: AuditContext, verdict: Critique) -> Generator[Event, None, Evaluation]:
        number, evaluator = context.iteration_number, self.roles.evaluator
        yield from self.begin("evaluation", number)
        try:
            judgement = yield from self.doing("evaluation", lambda: evaluator.evaluate(context, verdict))
        except StepError as error:
            judgement = Unscored(reason=str(error), code=error.code, raw=error.raw)
        result = evaluation.ruled(judgement, context.citation_audit, verdict, self.settings, evaluator.judged_by)
        if result.unscored:
            yield from self.warn(
                result.unscored.code, "evaluation", f"The evaluation is unscored: {result.unscored.reason}", number
            )
        data = step_events.of_evaluation(result, self.step_ms["evaluation"])
        yield self.step_finished("evaluation", number, data)
        return result

    def _revise(self) -> Generator[Event, None, Revision | None]:
        last, reviser, validator = self.iterations[-1], self.roles.reviser, self.roles.validator
        yield from self.begin("revision", last.iteration_number)
        context = self._context(last)
        try:
            revised = yield from self.doing("revision", lambda: reviser.revise(context, last.critique, last.issues))
            revision = passed(validator, revised, context)
        except StepError as error:
            yield from self.warn(error.code, "revision", str(error), last.iteration_number)
            return None
        self.log_text("revision", revision)
        self.log_text("changes", revision.changes_explanation)
        data = step_events.of_revision(revision, self.step_ms["revision"])
        yield self.step_finished("revision", last.iteration_number, data)
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

    def _result(self, started_at: str, reason: TerminationReason) -> Run:
        best = routing.best_index(self.iterations)
        chosen = None if best is None else self.iterations[best]
        initial = self.iterations[0].quality_score if self.iterations else None
        final = chosen.quality_score if chosen else None
        drafted = self.draft.calls if self.draft else ()
        loose = (*(self.steps.calls if self.steps else ()), *self._filed())
        reasons = routing.review_reasons(self.iterations, self.case.evidence, reason, self.settings)
        return Run(
            id=self.run_id,
            case_id=self.case.id,
            case_digest=self.case_digest,
            started_at=started_at,
            finished_at=self.clock.now(),
            models=self.roles.models,
            settings=self.settings.of_audit(),
            versions=Versions(
                app=version.APP,
                rubric=version.RUBRIC,
                offline_weights=self.roles.offline_weights,
                prompts=self.roles.prompts,
            ),
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
            loose_calls=loose,
            usage=Usage.of((*drafted, *(call for it in self.iterations for call in it.calls), *loose)),
        )

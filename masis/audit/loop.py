"""The audit loop: runs the steps in order and handles a step that fails.

    draft (if there is no answer)
      -> [citations -> claims -> critique -> evaluation] -> stop? -> revision -> [...]

An iteration is one audited answer, and a revision leads from each to the next (REQ-CRITIC-015). The
loop takes the five roles as values, yields events and returns the run; it doesn't know a store, a
page or an SDK.
"""

from __future__ import annotations

import logging
import queue
import time
import uuid
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from concurrent.futures import wait
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeVar

from pydantic_core import to_jsonable_python

from masis import version
from masis.audit import acceptance, claims, critique, evaluation, issues, limits
from masis.audit.carried import add_carried_penalty, issues_still_open, merge_raised_issues
from masis.audit.checks import run_checks
from masis.audit.citations import audit_citations, carry_over_citations
from masis.audit.claims import ClaimResults, Verifier
from masis.audit.context import AuditContext
from masis.audit.control import routing, step_events
from masis.audit.control.concurrency import start_in_thread
from masis.audit.control.run_control import CallNotice, Cancelled, RunControl
from masis.audit.critique import Critic
from masis.audit.evaluation import Evaluator
from masis.audit.house_rules import apply_house_rules, check_house_rules, ruling_notes
from masis.audit.output_validation import OutputValidator, PydanticValidator, validate_revision
from masis.audit.revision import Reviser, dropped_claims
from masis.audit.text.instructions import withdraw_instruction_support
from masis.errors import MAX_ITERATIONS_WARNING, SettingsError, StepError
from masis.schema.audit import (
    CitationAudit,
    ClaimCheck,
    ClaimReport,
    Critique,
    Draft,
    Evaluation,
    Issue,
    MissingPoint,
    Revision,
)
from masis.schema.base import Unscored, utc_now
from masis.schema.calls import ModelCall, Step, Usage
from masis.schema.case import Case, Evidence
from masis.schema.judge import HouseRuling, JudgeBrief
from masis.schema.rules import rule_of
from masis.schema.run import (
    Event,
    Iteration,
    LocalModel,
    Run,
    RunVersions,
    RunWarning,
    StepsDone,
    TerminationReason,
)
from masis.schema.wording import count_noun
from masis.settings import Settings

T = TypeVar("T")

# Drafting writes an answer for a case without one. No rule in code changes the draft; the role
# decides alone.


class Drafter(Protocol):
    """Writes an answer from the evidence, citing it by id."""

    def draft(self, query: str, evidence: Sequence[Evidence]) -> Draft:
        """Return an answer in which each assertion cites the chunk that supports it.

        Raises:
            StepError: The drafter could not write one.

        """


Events = Generator[Event, None, None]
Audit = Generator[Event, None, Run]


@dataclass(frozen=True)
class Roles:
    """The implementation of each role: any mix of offline rules, models and plug-ins.

    Attributes:
        models: The model string of each role, for the record.
        offline_rules: The version of the offline rules, None if no role uses them.
        control: The control object that roles with a model were built with.
        calls_models: Whether a role calls models. Steps then run on a thread, so that the loop can
            report events and stop while a call is in progress.
        prompts: The version of each role's prompts.
        local_models: The model files on this machine that roles use.
        unexamined: The judging models that have not passed the exam; empty if all have.
        validator: Checks each revision before it is audited.
        judge: What the team tells the judge about this case; None for the default judge.

    """

    drafter: Drafter
    verifier: Verifier
    critic: Critic
    reviser: Reviser
    evaluator: Evaluator
    models: dict[str, str]
    offline_rules: str | None = None
    control: RunControl = field(default_factory=RunControl)
    calls_models: bool = False
    prompts: dict[str, str] = field(default_factory=dict)
    local_models: tuple[LocalModel, ...] = ()
    unexamined: str = ""
    validator: OutputValidator = field(default_factory=PydanticValidator)
    judge: JudgeBrief | None = None


@dataclass(frozen=True)
class AuditProgress:
    """The state of an interrupted run: its finished iterations, with the last one's revision.

    Attributes:
        steps: The finished steps of the iteration in progress.
        rewritten: Whether the last revision was written outside of the audit. It's then audited
            even if its text equals the answer before it. An equal revision by the reviser ends the
            loop.

    """

    draft: Draft | None = None
    iterations: tuple[Iteration, ...] = ()
    events: int = 0
    warnings: tuple[RunWarning, ...] = ()
    steps: StepsDone | None = None
    rewritten: bool = False


def new_run_id() -> str:
    """Return a new run id."""
    return uuid.uuid4().hex


@dataclass(frozen=True)
class Clock:
    """The source of times: ``now`` for records, ``seconds`` (monotonic) for durations."""

    now: Callable[[], str] = utc_now
    seconds: Callable[[], float] = time.perf_counter


# A run reports events to observers, warnings to the record, and lines to the log.
#
# Log lines have counts, scores and codes but no texts (REQ-CRITIC-SEC-003). Texts are logged at
# DEBUG if ``log_texts`` allows it (REQ-CRITIC-OBS-004). Each line also has its values as
# ``fields``, for logs that programs read (``masis/observers/log_records.py``).

log = logging.getLogger("masis.audit.loop")

LOGGED_AS_ERRORS = {"critique", "revision"}
"""Steps whose failure the log reports as an error, like any provider failure
(REQ-CRITIC-OBS-003).
"""


def as_text(value: object) -> str:
    """Return a value as a log line shows it: numbers with three decimals, None as ``none``."""
    return f"{value:.3f}" if isinstance(value, float) else "none" if value is None else str(value)


class RunReporter:
    """Makes the numbered events, the warnings and the log lines of one run."""

    def __init__(self, run_id: str, case_id: str, clock: Clock, *, log_texts: bool = False) -> None:
        self.run_id, self.case_id, self.clock, self.log_texts = run_id, case_id, clock, log_texts
        self.warnings: list[RunWarning] = []
        self.seq = 0

    def event(
        self, kind: Any, *, message: str = "", data: dict[str, Any] | None = None, **position: Any
    ) -> Event:
        """Return the next event of the run."""
        self.seq += 1
        return Event(
            run_id=self.run_id,
            case_id=self.case_id,
            seq=self.seq,
            at=self.clock.now(),
            kind=kind,
            message=message,
            data=data or {},
            **position,
        )

    def notice(self, notice: CallNotice) -> Event:
        """Return the event for a notice from a call to a model."""
        if notice.kind == "call_retried":
            fields = {"step": notice.step, "iteration": notice.iteration, **notice.data}
            self.log(
                logging.INFO, "call_retried", f"a call is tried again in step {notice.step}", fields
            )
        return self.event(
            notice.kind,
            iteration=notice.iteration,
            step=notice.step,
            message=notice.message,
            data=dict(notice.data),
        )

    def step_finished(self, step: Step, number: int | None, data: dict[str, Any]) -> Event:
        """Return the event that a step has finished; its values also go to the log."""
        if log.isEnabledFor(logging.INFO):
            values = ", ".join(
                f"{name} {as_text(value)}" for name, value in data.items() if name != "node"
            )
            suffix = "" if number is None else f" of iteration {number}"
            self.log(
                logging.INFO,
                "step_finished",
                f"{step}{suffix}: {values}",
                {"step": step, "iteration": number, **data},
            )
        return self.event("step_finished", iteration=number, step=step, data=data)

    def warn(
        self,
        code: str | None,
        step: Step | None,
        message: str,
        number: int | None = None,
        *,
        logged: str = "",
    ) -> Events:
        """Add a warning to the run, the log and the events.

        ``logged`` is the text in the log for a warning without a code.
        """
        serious = code == "CRITIC-ERR-003" or (code is not None and step in LOGGED_AS_ERRORS)
        # CRITIC-ERR-004, the limit of iterations, has no step.
        position_parts = [
            f"step {step}" if step else "",
            f"iteration {number}" if number is not None else "",
        ]
        position = ", ".join(filter(None, position_parts))
        self.log(
            logging.ERROR if serious else logging.WARNING,
            "warning",
            " in ".join(filter(None, (code or logged or "a warning", position))),
            {"code": code, "step": step, "iteration": number},
        )
        self.log_text("warning", message)
        self.warnings.append(RunWarning(code=code, step=step, iteration=number, message=message))
        yield self.event(
            "warning", iteration=number, step=step, message=message, data={"code": code}
        )

    def log(self, level: int, event: str, message: str, fields: Mapping[str, Any]) -> None:
        """Write a log line with its values as fields; warnings and errors also name the case."""
        all_fields = {"event": event, "run": self.run_id, "case": self.case_id, **fields}
        subject = (
            f"{self.run_id} of case {self.case_id[:80]!r}"
            if level >= logging.WARNING
            else self.run_id
        )
        log.log(level, "run %s: %s", subject, message, extra={"fields": all_fields})

    def log_text(self, name: str, text: object) -> None:
        """Write a text in full at DEBUG, if the settings allow it (REQ-CRITIC-OBS-004)."""
        if self.log_texts and log.isEnabledFor(logging.DEBUG):
            fields = {"event": "text", "run": self.run_id, name: to_jsonable_python(text)}
            log.debug("run %s: %s: %s", self.run_id, name, text, extra={"fields": fields})


STOPPED = Unscored(reason="the audit was stopped before the critic had answered")
POLL_S = 0.2
"""Seconds between two checks of a waiting step for notices of its calls and for cancellation."""


@dataclass
class AuditRun:
    """One audit in progress: runs the steps in order and reports what happens.

    A step that waits for a model runs on a thread of its own, so that retries are reported as they
    happen and a run can be cancelled without waiting for the reply.
    """

    case: Case
    roles: Roles
    settings: Settings
    run_id: str
    case_digest: str
    cancelled: Callable[[], bool]
    keep: Callable[[Draft | Iteration | StepsDone], None]
    clock: Clock

    def __post_init__(self) -> None:
        self.control = self.roles.control
        self.control.calls.case_id = self.case.id
        # Without models a step runs on this thread, so nothing else checks for cancellation.
        if not self.roles.calls_models:
            self.control.cancellation.is_requested = self.cancelled
        self.reporter = RunReporter(
            self.run_id, self.case.id, self.clock, log_texts=self.settings.log_texts
        )
        self.step_ms: dict[str, float] = {}
        self.mark = 0
        """The number of calls that the draft and the iterations already have; later ones are still
        unassigned.
        """

    def run_steps(self, progress: AuditProgress) -> Generator[Event, None, Run]:
        """Run the whole audit, from the point where ``progress`` left it."""
        started_at = self.clock.now()
        self.iterations, self.draft, self.reporter.seq = (
            list(progress.iterations),
            progress.draft,
            progress.events,
        )
        self.reporter.warnings, self.steps = list(progress.warnings), progress.steps
        self.mark = self.control.calls.mark
        self.control.budget.begin_loop(self.settings, self.clock.seconds)
        start_data: dict[str, Any] = {
            "models": self.roles.models,
            "resumed_after": len(self.iterations),
        }
        message = (
            f"begins on case {self.case_digest[:12]} after"
            f" {count_noun(len(self.iterations), 'iteration')}"
        )
        self.reporter.log(
            logging.INFO, "run_started", message, {"case_digest": self.case_digest, **start_data}
        )
        yield self.reporter.event("run_started", data=start_data)
        try:
            if self.case.unanswered and not (self.settings.draft_unanswered or progress.rewritten):
                reason = yield from self._record_unanswered()
            else:
                answer = yield from self._first_answer()
                reason = (
                    "error"
                    if answer is None
                    else (yield from self._iterate(answer, progress.rewritten))
                )
        except Cancelled:
            reason = "cancelled"
        except BaseException:
            # An aborted run must not make another call.
            self.control.cancellation.cancel()
            raise
        if reason == "max_iterations":
            yield from self.reporter.warn(
                MAX_ITERATIONS_WARNING,
                None,
                "The limit of iterations was reached with issues left.",
            )
        run = self._build_run(started_at, reason)
        data = step_events.of_run(run)
        self._log_end(run, data)
        yield self.reporter.event("run_finished", data=data)
        return run

    def _log_end(self, run: Run, data: dict[str, Any]) -> None:
        iterations = count_noun(run.total_iterations, "iteration")
        if run.termination_reason == "error":
            codes = [warning.code for warning in run.warnings if warning.code is not None]
            self.reporter.log(
                logging.ERROR,
                "ended_by_error",
                f"ended by an error after {iterations}",
                {"codes": codes},
            )
        gain = run.improvement_percentage
        message = (
            f"ends after {iterations}: {run.termination_reason},"
            f" {'converged' if run.converged else 'not converged'}, quality"
            f" {as_text(run.final_quality_score)}, improvement"
            f" {'none' if gain is None else f'{gain:.1f} %'}, case {self.case_digest[:12]}"
        )
        # Runs that no store keeps need the data that REQ-CRITIC-COMP-001 requires of each
        # execution.
        execution = {
            "at": run.finished_at,
            "case_digest": self.case_digest,
            "models": run.models,
            "app": version.APP,
        }
        self.reporter.log(
            logging.INFO, "run_finished", message, {**data, "converged": run.converged, **execution}
        )

    def _begin_step(self, step: Step, number: int | None) -> Events:
        """Start a step, unless the run was cancelled."""
        if self.cancelled():
            self.control.cancellation.cancel()
            raise Cancelled
        self.control.calls.at(step, number)
        yield self.reporter.event("step_started", iteration=number, step=step)

    def _run_step_work(
        self, step: Step, work: Callable[[], T]
    ) -> Generator[Event, None, T | Unscored]:
        """Do the timed work of a step and report its model calls.

        Returns:
            The result of the work, or the reason if the step failed.

        """
        with self._time_step(step):
            try:
                if not self.roles.calls_models:
                    return work()
                future = start_in_thread(work, "step")
                # Wait in steps of POLL_S: waking up for every notice costs more than the notices.
                while not wait([future], POLL_S).done:
                    yield from self._notices()
                    if self.cancelled():
                        # The call in progress ends by itself, and its reply is discarded.
                        self.control.cancellation.cancel()
                        raise Cancelled
                yield from self._notices()
                return future.result()
            except StepError as error:
                return Unscored.of(error)

    def _notices(self) -> Events:
        with suppress(queue.Empty):
            while True:
                notice = self.control.calls.notices.get_nowait()
                if notice.kind == "warning":
                    yield from self.reporter.warn(
                        None, notice.step, notice.message, notice.iteration, logged=notice.message
                    )
                else:
                    yield self.reporter.notice(notice)

    @contextmanager
    def _time_step(self, step: Step) -> Iterator[None]:
        """Add a step's milliseconds to the iteration's record.

        Time that calls spent in a provider's queue isn't counted.
        """
        start = self.control.budget.worked_s()
        try:
            yield
        finally:
            spent = (self.control.budget.worked_s() - start) * 1000
            self.step_ms[step] = self.step_ms.get(step, 0.0) + spent

    def _first_answer(self) -> Generator[Event, None, str | None]:
        if self.case.answer is not None and self.case.answer.strip():
            return self.case.answer
        # Either a host writes the answers, or the run was interrupted after the first was audited.
        if self.iterations:
            return self.iterations[0].answer
        if self.draft is None:
            yield from self._begin_step("drafting", None)
            drafter, case = self.roles.drafter, self.case
            draft = yield from self._run_step_work(
                "drafting", lambda: drafter.draft(case.query, case.evidence)
            )
            if isinstance(draft, Unscored):
                yield from self.reporter.warn(draft.code, "drafting", draft.reason)
                return None
            self.draft = draft.model_copy(update={"calls": self._take_new_calls()})
            self.keep(self.draft)
            yield self.reporter.step_finished(
                "drafting", None, {"characters": len(self.draft.answer)}
            )
        return self.draft.answer

    def _record_unanswered(self) -> Generator[Event, None, TerminationReason]:
        """Record that the system gave no answer.

        The record is an iteration with an empty answer and without any step.
        """
        message = acceptance.unanswered_reason(self.case)
        yield from self.reporter.warn(None, None, message, logged="the system gave no answer")
        unscored = Unscored(reason=message.rstrip("."))
        cited = self._audit_citations("")
        self.iterations = [
            Iteration(
                iteration_number=1,
                answer="",
                citation_audit=cited,
                claims=(),
                claim_report=claims.report((), unscored=unscored),
                issues=(),
                critique=critique.apply_critique_rules(
                    unscored, cited, (), self.roles.critic.judged_by
                ),
                evaluation=None,
                quality_score=None,
                improvement_delta=None,
                changes_made="",
            )
        ]
        yield from self._finish_iteration(self.iterations[0])
        return "no_answer"

    def _take_new_calls(self) -> tuple[ModelCall, ...]:
        """Return the calls since the last ones that were assigned."""
        calls = self.control.calls.since(self.mark)
        self.mark += len(calls)
        return calls

    def _iterate(self, answer: str, rewritten: bool) -> Generator[Event, None, TerminationReason]:
        revision = self.iterations[-1].revision if self.iterations else None
        reason: TerminationReason | None = None
        if self.iterations and (revision is None or not (rewritten or self._is_changed(revision))):
            self.control.budget.begin_iteration()
            reason, revision = yield from self._next_revision()
        while reason is None:
            yield from self._audit_answer(revision.revised_answer if revision else answer, revision)
            reason, revision = yield from self._next_revision()
        return reason

    def _is_changed(self, revision: Revision) -> bool:
        """Return whether the revision differs from the last answer and so must be audited."""
        return revision.revised_answer != self.iterations[-1].answer

    def _next_revision(
        self,
    ) -> Generator[Event, None, tuple[TerminationReason | None, Revision | None]]:
        """Return either a reason to stop or the next revision.

        A run that was interrupted after a revision continues with that revision.
        """
        reason = routing.stop_reason(self.iterations, self.settings)
        last = self.iterations[-1]
        revision = last.revision
        if reason is None and revision is None and self.control.budget.loop_left_s() < 0:
            message = f"The loop passed its deadline of {self.settings.loop_deadline_s:g} s."
            yield from self.reporter.warn(None, None, message)
            reason = "error"
        if reason is None:
            revision = revision or (yield from self._revise())
            if revision is None:
                reason = "error"
            elif not self._is_changed(revision):
                reason = "convergence"
                explanation = revision.changes_explanation.strip() or "The reviser changed nothing."
                warning = RunWarning(
                    code=None, step="revision", iteration=last.iteration_number, message=explanation
                )
                # Otherwise the interrupted run has already warned of it.
                if warning not in self.reporter.warnings:
                    yield from self.reporter.warn(
                        None,
                        "revision",
                        explanation,
                        last.iteration_number,
                        logged="the reviser changed nothing",
                    )
        if revision is not None:
            last = last.model_copy(update={"revision": revision})
        if reason is not None and last.evaluation is None and self.settings.evaluate != "never":
            if revision is not None:
                last = self._with_timing(last)
                # A run interrupted during the evaluation must not ask for the revision again.
                self.keep(last)
            evaluated = yield from self._evaluate(self._context_from_iteration(last), last.critique)
            last = last.model_copy(update={"evaluation": evaluated})
        yield from self._finish_iteration(self._with_timing(last))
        return reason, None if reason else revision

    def _finish_iteration(self, last: Iteration) -> Events:
        """Store the final state of the last iteration and report that it is finished."""
        self.iterations[-1] = last
        self.keep(last)
        number, data = last.iteration_number, step_events.of_iteration(last)
        message = (
            f"iteration {number}: quality {as_text(last.quality_score)}, improvement "
            f"{as_text(last.improvement_delta)}, {count_noun(len(last.issues), 'issue')}"
        )
        self.reporter.log(
            logging.INFO, "iteration_finished", message, {"iteration": number, **data}
        )
        yield self.reporter.event("iteration_finished", iteration=number, data=data)

    def _with_timing(self, iteration: Iteration) -> Iteration:
        """Return the iteration with its step times and the calls made since it was audited."""
        times, calls = iteration.step_ms | self.step_ms, (*iteration.calls, *self._take_new_calls())
        return iteration.model_copy(update={"step_ms": times, "calls": calls})

    def _audit_answer(self, answer: str, revision: Revision | None) -> Events:
        number = len(self.iterations) + 1
        done = self.steps if self.steps and self.steps.iteration_number == number else None
        self.steps = done = done or StepsDone(iteration_number=number)
        self.step_ms = dict(done.step_ms)
        self.control.budget.begin_iteration()
        yield from self._begin_step("citations", number)
        checked_answer = limits.truncate_answer(answer, self.settings)
        with self._time_step("citations"):
            citation_audit = self._audit_citations(checked_answer)
        evidence = limits.select_evidence(self.case.evidence, citation_audit, self.settings)
        yield self.reporter.step_finished(
            "citations", number, step_events.of_citations(citation_audit)
        )
        claim_results, report = ClaimResults(done.claims), done.claim_report
        if report is None or report.unscored:
            claim_results, report = yield from self._check_claims(
                answer, checked_answer, citation_audit, evidence, number
            )
            self._step_done(claims=claim_results.checks, claim_report=report)
        dropped_checks = dropped_claims(self.iterations, checked_answer)
        found_issues = issues.merge_issues(
            citation_audit,
            claim_results.checks,
            report.missing,
            self.settings,
            dropped_checks,
            answer=checked_answer,
            evidence=evidence,
        )
        found_issues += run_checks(self.settings.checks, self.case, checked_answer, found_issues)
        if self.roles.judge is not None:
            found_issues += check_house_rules(
                self.roles.judge.content, self.case, checked_answer, citation_audit, found_issues
            )
        if self.iterations:
            still_open = issues_still_open(
                self.iterations[-1],
                checked_answer,
                citation_audit,
                claim_results.checks,
                found_issues,
            )
            citation_audit = add_carried_penalty(
                citation_audit, still_open, self.settings.invalid_citation_penalty
            )
            found_issues = tuple(issues.number_issues((*found_issues, *still_open)))
        context = self._context(
            number, answer, citation_audit, claim_results.checks, report.missing, found_issues
        )
        critique_result, evaluation_result, stopped = done.critique, done.evaluation, False
        try:
            if critique_result is None or critique_result.unscored:
                critique_result, found_issues = yield from self._criticize(context)
                self._step_done(critique=critique_result, issues=found_issues)
            else:
                found_issues = done.issues
            if self.settings.evaluate == "every" and (
                evaluation_result is None or evaluation_result.unscored
            ):
                evaluation_result = yield from self._evaluate(context, critique_result)
                self._step_done(evaluation=evaluation_result)
        except Cancelled:
            # The earlier iterations are the result. Half an audit of a revision tells nothing about
            # the original answer.
            if self.iterations:
                raise
            stopped, judge = True, self.roles.critic.judged_by
            if critique_result is None or critique_result.unscored:
                critique_result = critique.apply_critique_rules(
                    STOPPED, citation_audit, found_issues, judge
                )
        quality = critique.quality_score(critique_result, citation_audit)
        previous_quality = self.iterations[-1].quality_score if self.iterations else None
        self.iterations.append(
            Iteration(
                iteration_number=number,
                answer=answer,
                citation_audit=citation_audit,
                claims=claim_results.checks,
                claim_report=report,
                issues=found_issues,
                critique=critique_result,
                evaluation=evaluation_result,
                quality_score=quality,
                improvement_delta=routing.improvement_delta(previous_quality, quality),
                changes_made=revision.changes_explanation if revision else "",
                step_ms=dict(self.step_ms),
                calls=(*self.steps.calls, *self._take_new_calls()),
            )
        )
        self.steps = None
        if stopped:
            yield from self._finish_iteration(self._with_timing(self.iterations[-1]))
            raise Cancelled

    def _step_done(self, **results: Any) -> None:
        """Store the result of a step that may have cost something.

        An interrupted run can then continue after it.
        """
        assert self.steps is not None
        more = StepsDone(
            iteration_number=self.steps.iteration_number,
            step_ms=dict(self.step_ms),
            calls=self._take_new_calls(),
            **results,
        )
        self.steps = self.steps.with_more(more)
        if self.roles.calls_models:
            self.keep(more)

    def _audit_citations(self, answer: str) -> CitationAudit:
        original = limits.truncate_answer(self.case.answer or "", self.settings)
        attached = tuple(
            citation for citation in self.case.given_citations if citation.end <= len(original)
        )
        return audit_citations(
            answer,
            self.case.evidence,
            mode=self.settings.citation_mode,
            invalid_penalty=self.settings.invalid_citation_penalty,
            uncited_penalty=self.settings.uncited_claim_penalty,
            # Keep only the attached citations that this answer still has.
            given=carry_over_citations(attached, original, answer),
        )

    def _check_claims(
        self,
        whole_answer: str,
        answer: str,
        citation_audit: CitationAudit,
        evidence: tuple[Evidence, ...],
        number: int,
    ) -> Generator[Event, None, tuple[ClaimResults, ClaimReport]]:
        yield from self._begin_step("claims", number)
        case, verifier = self.case, self.roles.verifier
        extracted = 0

        def check() -> ClaimResults:
            nonlocal extracted
            extracted_claims, results = claims.check_answer(
                verifier,
                answer,
                citation_audit,
                case.query,
                evidence,
                completeness=self.settings.check_completeness,
                select_claims=lambda all_claims: limits.limit_claims(
                    all_claims, evidence, self.settings
                ),
            )
            extracted = len(extracted_claims)
            checks = (
                results.checks
                if evidence == case.evidence
                else limits.withhold_absence_verdicts(results.checks)
            )
            return results._replace(checks=withdraw_instruction_support(checks, answer, evidence))

        result = yield from self._run_step_work("claims", check)
        unscored = result if isinstance(result, Unscored) else None
        claim_results = ClaimResults(()) if isinstance(result, Unscored) else result
        if unscored:
            yield from self.reporter.warn(
                unscored.code, "claims", f"The claims are unscored: {unscored.reason}", number
            )
        failures = [
            (check.unscored.code, check.unscored.reason)
            for check in claim_results.checks
            if check.unscored
        ]
        for failure in dict.fromkeys(failures):
            message = f"{failures.count(failure)} claims are unscored: {failure[1]}"
            yield from self.reporter.warn(failure[0], "claims", message, number)
        if completeness_unscored := claim_results.completeness_unscored:
            message = f"The missing points could not be determined: {completeness_unscored.reason}"
            yield from self.reporter.warn(completeness_unscored.code, "claims", message, number)
        data = step_events.of_claims(claim_results.checks, claim_results.missing)
        yield self.reporter.step_finished("claims", number, data)
        counts = (0, 0) if unscored else (extracted, len(claim_results.checks))
        limit_messages = tuple(
            limits.limit_warnings((whole_answer, answer), (case.evidence, evidence), counts)
        )
        if limit_messages and number == 1:
            yield from self.reporter.warn(
                None, None, f"Not everything was checked: {' '.join(limit_messages)}"
            )
        report = claims.report(
            claim_results.checks,
            claim_results.missing,
            unscored,
            claim_results.completeness_unscored,
            claim_results.escalation,
            limit_messages,
        )
        return claim_results, report

    def _criticize(
        self, context: AuditContext
    ) -> Generator[Event, None, tuple[Critique, tuple[Issue, ...]]]:
        number, critic = context.iteration_number, self.roles.critic
        if self.settings.depth == "quick":
            skipped_critique = critique.apply_critique_rules(
                critique.NOT_RUN, context.citation_audit, context.issues, critic.judged_by
            )
            return skipped_critique, context.issues
        yield from self._begin_step("critique", number)
        judgement = yield from self._run_step_work("critique", lambda: critic.critique(context))
        raised, rulings = issues.RaisedIssues((), ()), tuple[HouseRuling, ...]()
        if isinstance(judgement, Unscored):
            yield from self.reporter.warn(
                judgement.code, "critique", f"The critique is unscored: {judgement.reason}", number
            )
        else:
            if self.roles.judge is not None:
                judgement, rulings = apply_house_rules(judgement, self.roles.judge.content)
            raised = issues.raise_issues(
                "critic", judgement.raw_issues, context.answer, context.issues
            )
        merged_issues = merge_raised_issues(context.issues, raised.issues)
        verdict = critique.apply_critique_rules(
            judgement,
            context.citation_audit,
            merged_issues,
            critic.judged_by,
            (*raised.notes, *ruling_notes(rulings)),
            rulings,
        )
        self.reporter.log_text("critique", verdict)
        self.reporter.log_text("issues", merged_issues)
        data = step_events.of_critique(
            verdict, context.citation_audit, merged_issues, self.step_ms["critique"]
        )
        yield self.reporter.step_finished("critique", number, data)
        return verdict, merged_issues

    def _evaluate(
        self, context: AuditContext, verdict: Critique
    ) -> Generator[Event, None, Evaluation]:
        number, evaluator = context.iteration_number, self.roles.evaluator
        yield from self._begin_step("evaluation", number)
        judgement = yield from self._run_step_work(
            "evaluation", lambda: evaluator.evaluate(context, verdict)
        )
        result = evaluation.apply_evaluation_rules(
            judgement, context.citation_audit, verdict, self.settings, evaluator.judged_by
        )
        if result.unscored:
            yield from self.reporter.warn(
                result.unscored.code,
                "evaluation",
                f"The evaluation is unscored: {result.unscored.reason}",
                number,
            )
        data = step_events.of_evaluation(result, self.step_ms["evaluation"])
        yield self.reporter.step_finished("evaluation", number, data)
        return result

    def _revise(self) -> Generator[Event, None, Revision | None]:
        last, reviser, validator = self.iterations[-1], self.roles.reviser, self.roles.validator
        yield from self._begin_step("revision", last.iteration_number)
        context = self._context_from_iteration(last)
        issues_to_fix = tuple(
            issue for issue in last.issues if not rule_of(issue.rule).is_undecided
        )

        def revise() -> Revision:
            revised = validate_revision(
                validator, reviser.revise(context, last.critique, issues_to_fix), context
            )
            return limits.append_unchecked_tail(revised, context.answer, last.answer)

        revision = yield from self._run_step_work("revision", revise)
        if isinstance(revision, Unscored):
            yield from self.reporter.warn(
                revision.code, "revision", revision.reason, last.iteration_number
            )
            return None
        self.reporter.log_text("revision", revision)
        self.reporter.log_text("changes", revision.changes_explanation)
        data = step_events.of_revision(revision, self.step_ms["revision"])
        yield self.reporter.step_finished("revision", last.iteration_number, data)
        return revision

    def _context_from_iteration(self, iteration: Iteration) -> AuditContext:
        missing = iteration.claim_report.missing
        return self._context(
            iteration.iteration_number,
            iteration.answer,
            iteration.citation_audit,
            iteration.claims,
            missing,
            iteration.issues,
        )

    def _context(
        self,
        number: int,
        answer: str,
        cited: CitationAudit,
        checks: tuple[ClaimCheck, ...],
        missing: tuple[MissingPoint, ...],
        found_issues: tuple[Issue, ...],
    ) -> AuditContext:
        checked_answer = limits.truncate_answer(answer, self.settings)
        evidence = limits.select_evidence(self.case.evidence, cited, self.settings)
        steps = self.draft.reasoning_steps if self.draft else self.case.reasoning_steps
        return AuditContext(
            self.case.query,
            checked_answer,
            evidence,
            cited,
            checks,
            missing,
            found_issues,
            number,
            steps,
        )

    def _build_run(self, started_at: str, reason: TerminationReason) -> Run:
        best = routing.best_index(self.iterations)
        best_iteration = None if best is None else self.iterations[best]
        initial = self.iterations[0].quality_score if self.iterations else None
        final = best_iteration.quality_score if best_iteration else None
        draft_calls = self.draft.calls if self.draft else ()
        unassigned_calls = (*(self.steps.calls if self.steps else ()), *self._take_new_calls())
        assessment = acceptance.assess(
            self.iterations, self.case, reason, self.settings, unexamined=self.roles.unexamined
        )
        return Run(
            id=self.run_id,
            case_id=self.case.id,
            case_digest=self.case_digest,
            started_at=started_at,
            finished_at=self.clock.now(),
            models=self.roles.models,
            settings=self.settings.of_audit(),
            versions=RunVersions(
                app=version.APP,
                rubric=version.RUBRIC,
                offline_rules=self.roles.offline_rules,
                prompts=self.roles.prompts,
                local_models=self.roles.local_models,
                judge=self.roles.judge.use.digest if self.roles.judge else "",
            ),
            draft=self.draft,
            iterations=tuple(self.iterations),
            best=best,
            final_answer=(
                best_iteration.answer
                if best_iteration
                else (self.draft.answer if self.draft else self.case.answer or "")
            ),
            final_quality_score=final,
            improvement_percentage=routing.improvement_percentage(initial, final),
            total_iterations=len(self.iterations),
            converged=reason == "convergence",
            termination_reason=reason,
            needs_review=not assessment.acceptance.passed,
            review_reasons=assessment.reasons,
            acceptance=assessment.acceptance,
            spot_check=assessment.acceptance.passed
            and acceptance.drawn_for_spot_check(self.case.id, self.settings),
            warnings=tuple(self.reporter.warnings),
            loose_calls=unassigned_calls,
            usage=Usage.of(
                (
                    *draft_calls,
                    *(call for iteration in self.iterations for call in iteration.calls),
                    *unassigned_calls,
                )
            ),
            judge=self.roles.judge.use if self.roles.judge else None,
        )


def audit(
    case: Case,
    roles: Roles,
    settings: Settings,
    *,
    run_id: str,
    case_digest: str = "",
    cancelled: Callable[[], bool] = lambda: False,
    progress: AuditProgress | None = None,
    keep: Callable[[Draft | Iteration | StepsDone], None] = lambda finished: None,
    clock: Clock | None = None,
) -> Generator[Event, None, Run]:
    """Audit one case, yield its events and return the run.

    A step that fails is recorded on the run and never raised. At the depth ``quick`` no critic,
    judge or reviser is asked.

    Args:
        case: The case to audit.
        roles: The implementation of each role.
        settings: The settings of the audit.
        run_id: The id of the new run.
        case_digest: The digest of the case's content, for the record.
        cancelled: Returns whether to stop. It is called between steps, while a step waits for a
            model, and between claims that are checked without one.
        progress: The stored state of an interrupted run, which the audit continues.
        keep: Called with the draft, each iteration and each step that may have cost something, as
            soon as it is finished.
        clock: The source of times.

    Raises:
        SettingsError: The settings name a judge version, and the roles have none, as outside of a
            database.

    """
    if settings.names_judge and roles.judge is None:
        raise SettingsError(
            f"judge: the version {settings.judge!r} is in a database, and this audit is outside of"
            " one. Audit stored cases, or give the brief as the argument judge."
        )
    run = AuditRun(
        case, roles, settings.at_depth(), run_id, case_digest, cancelled, keep, clock or Clock()
    )
    return (yield from run.run_steps(progress or AuditProgress()))

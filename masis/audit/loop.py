"""The loop: the only place that knows the order of the steps, and what becomes of a step that
fails.

    draft (if there is no answer) -> [citations -> claims -> critique -> evaluation] -> stop? -> revision -> [...]

An iteration is one audited answer; between each two stands a revision (REQ-CRITIC-015). The loop
takes the five roles as values, yields events and returns the run; it never sees a store, a page or
an SDK.
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
from masis.audit.carried import issues_still_open, with_carried, with_raised
from masis.audit.citations import audit_citations, carry_over_citations
from masis.audit.claims import ClaimResults, Verifier
from masis.audit.context import AuditContext
from masis.audit.control import routing, step_events
from masis.audit.control.concurrency import start_in_thread
from masis.audit.control.run_control import CallNotice, Cancelled, RunControl
from masis.audit.critique import Critic
from masis.audit.evaluation import Evaluator
from masis.audit.output_validation import OutputValidator, PydanticValidator, validate_revision
from masis.audit.revision import UNDECIDED_RULES, Reviser, dropped_claims
from masis.audit.text.instructions import withdraw_instruction_support
from masis.errors import MAX_ITERATIONS_WARNING, StepError
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

# Drafting: an answer for a case that came without one. The role alone; there is no rule in code
# around it.


class Drafter(Protocol):
    """Writes an answer from the evidence, citing it by id."""

    def draft(self, query: str, evidence: Sequence[Evidence]) -> Draft:
        """Return an answer whose every assertion cites the chunk that supports it. StepError if
        there is none.
        """


Events = Generator[Event, None, None]
Audit = Generator[Event, None, Run]


@dataclass(frozen=True)
class Roles:
    """Who judges: any mix of offline, models and people's own. ``models`` names each role's for the
    record.

    ``control`` is the one that roles with a model were made with; ``calls_models`` says that some role
    waits for others, so that the loop tells meanwhile what happens and can be stopped; ``prompts``
    the version of each role's prompts; ``local_models`` the model files that roles use on this
    machine; ``unexamined`` the models of judging roles that have not passed the exam. Every
    improved answer passes ``validator`` before it is audited.
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


@dataclass(frozen=True)
class AuditProgress:
    """How far an interrupted run had come: its finished iterations, the last with the revision made
    from it.

    ``steps`` are those that the iteration after them had finished. ``rewritten`` says that somebody
    outside of the audit wrote the last revision: it is audited even if its text is that of the
    answer before it, where a reviser's ends the loop.
    """

    draft: Draft | None = None
    iterations: tuple[Iteration, ...] = ()
    events: int = 0
    warnings: tuple[RunWarning, ...] = ()
    steps: StepsDone | None = None
    rewritten: bool = False


def new_run_id() -> str:
    """A fresh id for a run."""
    return uuid.uuid4().hex


@dataclass(frozen=True)
class Clock:
    """Where times come from: ``now`` for records, ``seconds`` (monotonic) for durations."""

    now: Callable[[], str] = utc_now
    seconds: Callable[[], float] = time.perf_counter


# What a run reports as it goes: events for observers, warnings for the record, lines for the log.
#
# Log lines hold counts, scores and codes, never a text (REQ-CRITIC-SEC-003); texts are logged at
# DEBUG, where ``log_texts`` allows it (REQ-CRITIC-OBS-004). Each line also carries its values as
# ``fields``, for a log that is read by programs (``masis/observers/log_records.py``).

log = logging.getLogger("masis.audit.loop")

LOGGED_AS_ERRORS = {"critique", "revision"}
"""Steps whose failure is an error in the log; so is any failure of a provider
(REQ-CRITIC-OBS-003).
"""


def as_text(value: object) -> str:
    """Return a value as a log line shows it: numbers with three decimals, None as ``none``."""
    return f"{value:.3f}" if isinstance(value, float) else "none" if value is None else str(value)


class RunReporter:
    """Makes the events, warnings and log lines of one run, numbering the events."""

    def __init__(self, run_id: str, case_id: str, clock: Clock, *, log_texts: bool = False) -> None:
        self.run_id, self.case_id, self.clock, self.log_texts = run_id, case_id, clock, log_texts
        self.warnings: list[RunWarning] = []
        self.seq = 0

    def event(
        self, kind: Any, *, message: str = "", data: dict[str, Any] | None = None, **where: Any
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
            **where,
        )

    def notice(self, notice: CallNotice) -> Event:
        """Return the event of something that happened in a call to a model."""
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
            words = ", ".join(
                f"{name} {as_text(value)}" for name, value in data.items() if name != "node"
            )
            of = "" if number is None else f" of iteration {number}"
            self.log(
                logging.INFO,
                "step_finished",
                f"{step}{of}: {words}",
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
        """Add a warning to the run, the log and the events; ``logged`` is what the log says of one
        without a code.
        """
        serious = code == "CRITIC-ERR-003" or (code is not None and step in LOGGED_AS_ERRORS)
        # the limit of iterations belongs to no step
        places = [
            f"step {step}" if step else "",
            f"iteration {number}" if number is not None else "",
        ]
        place = ", ".join(filter(None, places))
        self.log(
            logging.ERROR if serious else logging.WARNING,
            "warning",
            " in ".join(filter(None, (code or logged or "a warning", place))),
            {"code": code, "step": step, "iteration": number},
        )
        self.log_text("warning", message)
        self.warnings.append(RunWarning(code=code, step=step, iteration=number, message=message))
        yield self.event(
            "warning", iteration=number, step=step, message=message, data={"code": code}
        )

    def log(self, level: int, event: str, words: str, fields: Mapping[str, Any]) -> None:
        """Write a log line, with its values beside the words under their names; what went wrong
        names the case.
        """
        named = {"event": event, "run": self.run_id, "case": self.case_id, **fields}
        of = (
            f"{self.run_id} of case {self.case_id[:80]!r}"
            if level >= logging.WARNING
            else self.run_id
        )
        log.log(level, "run %s: %s", of, words, extra={"fields": named})

    def log_text(self, what: str, text: object) -> None:
        """Write a text in full at DEBUG, where the settings allow it (REQ-CRITIC-OBS-004)."""
        if self.log_texts and log.isEnabledFor(logging.DEBUG):
            fields = {"event": "text", "run": self.run_id, what: to_jsonable_python(text)}
            log.debug("run %s: %s: %s", self.run_id, what, text, extra={"fields": fields})


STOPPED = Unscored(reason="the audit was stopped before the critic had answered")
POLL_S = 0.2
"""How often a waiting step emits the notices of its calls and looks whether the run was
cancelled.
"""


@dataclass
class AuditRun:
    """One audit under way: does the steps in order and hands what happens to its reporter.

    A step that waits for a model runs beside the run, on a thread, so that its retries show as they
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
        if not self.roles.calls_models:
            self.control.cancellation.ask = self.cancelled
        self.reporter = RunReporter(
            self.run_id, self.case.id, self.clock, log_texts=self.settings.log_texts
        )
        self.step_ms: dict[str, float] = {}
        self.mark = 0
        """How many calls are filed under the draft or an iteration; those after it are not yet."""

    def run_steps(self, progress: AuditProgress) -> Generator[Event, None, Run]:
        """The whole audit, from where ``progress`` left it."""
        started_at = self.clock.now()
        self.iterations, self.draft, self.reporter.seq = (
            list(progress.iterations),
            progress.draft,
            progress.events,
        )
        self.reporter.warnings, self.steps = list(progress.warnings), progress.steps
        self.mark = self.control.calls.mark
        self.control.budget.begin_loop(self.settings, self.clock.seconds)
        begun: dict[str, Any] = {"models": self.roles.models, "resumed_after": len(self.iterations)}
        words = (
            f"begins on case {self.case_digest[:12]} after"
            f" {count_noun(len(self.iterations), 'iteration')}"
        )
        self.reporter.log(
            logging.INFO, "run_started", words, {"case_digest": self.case_digest, **begun}
        )
        yield self.reporter.event("run_started", data=begun)
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
            # a run that is broken off makes no further call either
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
        after = count_noun(run.total_iterations, "iteration")
        if run.termination_reason == "error":
            codes = [warning.code for warning in run.warnings if warning.code is not None]
            self.reporter.log(
                logging.ERROR,
                "ended_by_error",
                f"ended by an error after {after}",
                {"codes": codes},
            )
        gain = run.improvement_percentage
        words = (
            f"ends after {after}: {run.termination_reason},"
            f" {'converged' if run.converged else 'not converged'}, quality"
            f" {as_text(run.final_quality_score)}, improvement"
            f" {'none' if gain is None else f'{gain:.1f} %'}, case {self.case_digest[:12]}"
        )
        # what REQ-CRITIC-COMP-001 asks of every execution, for those that no store keeps
        execution = {
            "at": run.finished_at,
            "case_digest": self.case_digest,
            "models": run.models,
            "app": version.APP,
        }
        self.reporter.log(
            logging.INFO, "run_finished", words, {**data, "converged": run.converged, **execution}
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
        """Do a step's work, timed, emitting what its calls to models report; a step that fails
        leaves a reason.
        """
        with self._time_step(step):
            try:
                if not self.roles.calls_models:
                    return work()
                doing = start_in_thread(work, "step")
                # waking for every notice would cost more than the notices do
                while not wait([doing], POLL_S).done:
                    yield from self._notices()
                    if self.cancelled():
                        # the call under way ends by itself, unread
                        self.control.cancellation.cancel()
                        raise Cancelled
                yield from self._notices()
                return doing.result()
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
        """Add the milliseconds a step took to the iteration's record, without waits in a provider's
        queue.
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
        # a host writes the answers, or the run was cut short after the first was audited
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
        """Record that the system gave no answer: an iteration of an empty one, in which no step was
        asked.
        """
        why = acceptance.unanswered_reason(self.case)
        yield from self.reporter.warn(None, None, why, logged="the system gave no answer")
        nothing = Unscored(reason=why.rstrip("."))
        cited = self._audit_citations("")
        self.iterations = [
            Iteration(
                iteration_number=1,
                answer="",
                citation_audit=cited,
                claims=(),
                claim_report=claims.report((), unscored=nothing),
                issues=(),
                critique=critique.apply_critique_rules(
                    nothing, cited, (), self.roles.critic.judged_by
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
        """The calls since the last that were filed: they belong to what is finished now."""
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
        """Return whether the revision made from the last answer is another text: if not, there is
        nothing to audit.
        """
        return revision.revised_answer != self.iterations[-1].answer

    def _next_revision(
        self,
    ) -> Generator[Event, None, tuple[TerminationReason | None, Revision | None]]:
        """Stop with a reason, or go on with a revision: the one that was kept where a run was cut
        short after it.
        """
        reason = routing.stop_reason(self.iterations, self.settings)
        last = self.iterations[-1]
        revision = last.revision
        if reason is None and revision is None and self.control.budget.loop_left_s() < 0:
            late = f"The loop passed its deadline of {self.settings.loop_deadline_s:g} s."
            yield from self.reporter.warn(None, None, late)
            reason = "error"
        if reason is None:
            revision = revision or (yield from self._revise())
            if revision is None:
                reason = "error"
            elif not self._is_changed(revision):
                reason = "convergence"
                why = revision.changes_explanation.strip() or "The reviser changed nothing."
                about = RunWarning(
                    code=None, step="revision", iteration=last.iteration_number, message=why
                )
                # else the run that was cut short has warned of it
                if about not in self.reporter.warnings:
                    yield from self.reporter.warn(
                        None,
                        "revision",
                        why,
                        last.iteration_number,
                        logged="the reviser changed nothing",
                    )
        if revision is not None:
            last = last.model_copy(update={"revision": revision})
        if reason is not None and last.evaluation is None and self.settings.evaluate != "never":
            if revision is not None:
                last = self._with_timing(last)
                # a run cut short during the evaluation must not ask for the revision again
                self.keep(last)
            evaluated = yield from self._evaluate(self._context_from_iteration(last), last.critique)
            last = last.model_copy(update={"evaluation": evaluated})
        yield from self._finish_iteration(self._with_timing(last))
        return reason, None if reason else revision

    def _finish_iteration(self, last: Iteration) -> Events:
        """Keep the last iteration as it is now, and say that it is finished."""
        self.iterations[-1] = last
        self.keep(last)
        number, data = last.iteration_number, step_events.of_iteration(last)
        words = (
            f"iteration {number}: quality {as_text(last.quality_score)}, improvement "
            f"{as_text(last.improvement_delta)}, {count_noun(len(last.issues), 'issue')}"
        )
        self.reporter.log(logging.INFO, "iteration_finished", words, {"iteration": number, **data})
        yield self.reporter.event("iteration_finished", iteration=number, data=data)

    def _with_timing(self, iteration: Iteration) -> Iteration:
        """Return the iteration with the time of its steps and the calls that were made since it was
        audited.
        """
        times, calls = iteration.step_ms | self.step_ms, (*iteration.calls, *self._take_new_calls())
        return iteration.model_copy(update={"step_ms": times, "calls": calls})

    def _audit_answer(self, answer: str, revision: Revision | None) -> Events:
        number = len(self.iterations) + 1
        done = self.steps if self.steps and self.steps.iteration_number == number else None
        self.steps = done = done or StepsDone(iteration_number=number)
        self.step_ms = dict(done.step_ms)
        self.control.budget.begin_iteration()
        yield from self._begin_step("citations", number)
        part = limits.answer_within(answer, self.settings)
        with self._time_step("citations"):
            cited = self._audit_citations(part)
        evidence = limits.evidence_within(self.case.evidence, cited, self.settings)
        yield self.reporter.step_finished("citations", number, step_events.of_citations(cited))
        checked, report = ClaimResults(done.claims), done.claim_report
        if report is None or report.unscored:
            checked, report = yield from self._check_claims(answer, part, cited, evidence, number)
            self._step_done(claims=checked.checks, claim_report=report)
        lost = dropped_claims(self.iterations, part)
        found = issues.merge_issues(
            cited,
            checked.checks,
            report.missing,
            self.settings,
            lost,
            answer=part,
            evidence=evidence,
        )
        if self.iterations:
            still_open = issues_still_open(self.iterations[-1], part, cited, checked.checks, found)
            cited = with_carried(cited, still_open, self.settings.invalid_citation_penalty)
            found = tuple(issues.number_issues((*found, *still_open)))
        context = self._context(number, answer, cited, checked.checks, report.missing, found)
        verdict, evaluated, stopped = done.critique, done.evaluation, False
        try:
            if verdict is None or verdict.unscored:
                verdict, found = yield from self._criticise(context)
                self._step_done(critique=verdict, issues=found)
            else:
                found = done.issues
            if self.settings.evaluate == "every" and (evaluated is None or evaluated.unscored):
                evaluated = yield from self._evaluate(context, verdict)
                self._step_done(evaluation=evaluated)
        except Cancelled:
            # they are the result; half an audit of a revision says nothing of the original
            if self.iterations:
                raise
            stopped, judge = True, self.roles.critic.judged_by
            if verdict is None or verdict.unscored:
                verdict = critique.apply_critique_rules(STOPPED, cited, found, judge)
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
                calls=(*self.steps.calls, *self._take_new_calls()),
            )
        )
        self.steps = None
        if stopped:
            yield from self._finish_iteration(self._with_timing(self.iterations[-1]))
            raise Cancelled

    def _step_done(self, **found: Any) -> None:
        """Keep what a step found, where it may have cost something: a run cut short goes on after
        it.
        """
        assert self.steps is not None
        more = StepsDone(
            iteration_number=self.steps.iteration_number,
            step_ms=dict(self.step_ms),
            calls=self._take_new_calls(),
            **found,
        )
        self.steps = self.steps.with_more(more)
        if self.roles.calls_models:
            self.keep(more)

    def _audit_citations(self, answer: str) -> CitationAudit:
        original = limits.answer_within(self.case.answer or "", self.settings)
        given = tuple(each for each in self.case.given_citations if each.end <= len(original))
        return audit_citations(
            answer,
            self.case.evidence,
            mode=self.settings.citation_mode,
            invalid_penalty=self.settings.invalid_citation_penalty,
            uncited_penalty=self.settings.uncited_claim_penalty,
            # those that this answer still carries
            given=carry_over_citations(given, original, answer),
        )

    def _check_claims(
        self,
        whole: str,
        answer: str,
        cited: CitationAudit,
        evidence: tuple[Evidence, ...],
        number: int,
    ) -> Generator[Event, None, tuple[ClaimResults, ClaimReport]]:
        yield from self._begin_step("claims", number)
        case, verifier = self.case, self.roles.verifier
        extracted = 0

        def check() -> ClaimResults:
            nonlocal extracted
            every, judged = claims.check_answer(
                verifier,
                answer,
                cited,
                case.query,
                evidence,
                completeness=self.settings.check_completeness,
                within=lambda found: limits.claims_within(found, evidence, self.settings),
            )
            extracted = len(every)
            checks = (
                judged.checks
                if evidence == case.evidence
                else limits.without_absence(judged.checks)
            )
            return judged._replace(checks=withdraw_instruction_support(checks, answer, evidence))

        result = yield from self._run_step_work("claims", check)
        unscored = result if isinstance(result, Unscored) else None
        checked = ClaimResults(()) if isinstance(result, Unscored) else result
        if unscored:
            yield from self.reporter.warn(
                unscored.code, "claims", f"The claims are unscored: {unscored.reason}", number
            )
        failures = [
            (check.unscored.code, check.unscored.reason)
            for check in checked.checks
            if check.unscored
        ]
        for failure in dict.fromkeys(failures):
            message = f"{failures.count(failure)} claims are unscored: {failure[1]}"
            yield from self.reporter.warn(failure[0], "claims", message, number)
        if lacking := checked.completeness_unscored:
            message = f"What is left out could not be determined: {lacking.reason}"
            yield from self.reporter.warn(lacking.code, "claims", message, number)
        data = step_events.of_claims(checked.checks, checked.missing)
        yield self.reporter.step_finished("claims", number, data)
        counts = (0, 0) if unscored else (extracted, len(checked.checks))
        left_out = tuple(limits.limit_warnings((whole, answer), (case.evidence, evidence), counts))
        if left_out and number == 1:
            yield from self.reporter.warn(
                None, None, f"Not everything was checked: {' '.join(left_out)}"
            )
        report = claims.report(
            checked.checks,
            checked.missing,
            unscored,
            checked.completeness_unscored,
            checked.escalation,
            left_out,
        )
        return checked, report

    def _criticise(
        self, context: AuditContext
    ) -> Generator[Event, None, tuple[Critique, tuple[Issue, ...]]]:
        number, critic = context.iteration_number, self.roles.critic
        if self.settings.depth == "quick":
            left_out = critique.apply_critique_rules(
                critique.NOT_RUN, context.citation_audit, context.issues, critic.judged_by
            )
            return left_out, context.issues
        yield from self._begin_step("critique", number)
        judgement = yield from self._run_step_work("critique", lambda: critic.critique(context))
        own = issues.RaisedIssues((), ())
        if isinstance(judgement, Unscored):
            yield from self.reporter.warn(
                judgement.code, "critique", f"The critique is unscored: {judgement.reason}", number
            )
        else:
            own = issues.raise_critic_issues(judgement.objections, context.answer, context.issues)
        found = with_raised(context.issues, own.issues)
        verdict = critique.apply_critique_rules(
            judgement, context.citation_audit, found, critic.judged_by, own.notes
        )
        self.reporter.log_text("critique", verdict)
        self.reporter.log_text("issues", found)
        data = step_events.of_critique(
            verdict, context.citation_audit, found, self.step_ms["critique"]
        )
        yield self.reporter.step_finished("critique", number, data)
        return verdict, found

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
        wrong = tuple(issue for issue in last.issues if issue.rule not in UNDECIDED_RULES)

        def revise() -> Revision:
            revised = validate_revision(
                validator, reviser.revise(context, last.critique, wrong), context
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

    def _context_from_iteration(self, done: Iteration) -> AuditContext:
        missing = done.claim_report.missing
        return self._context(
            done.iteration_number,
            done.answer,
            done.citation_audit,
            done.claims,
            missing,
            done.issues,
        )

    def _context(
        self,
        number: int,
        answer: str,
        cited: CitationAudit,
        checks: tuple[ClaimCheck, ...],
        missing: tuple[MissingPoint, ...],
        found: tuple[Issue, ...],
    ) -> AuditContext:
        part = limits.answer_within(answer, self.settings)
        evidence = limits.evidence_within(self.case.evidence, cited, self.settings)
        steps = self.draft.reasoning_steps if self.draft else self.case.reasoning_steps
        return AuditContext(
            self.case.query, part, evidence, cited, checks, missing, found, number, steps
        )

    def _build_run(self, started_at: str, reason: TerminationReason) -> Run:
        best = routing.best_index(self.iterations)
        chosen = None if best is None else self.iterations[best]
        initial = self.iterations[0].quality_score if self.iterations else None
        final = chosen.quality_score if chosen else None
        drafted = self.draft.calls if self.draft else ()
        loose = (*(self.steps.calls if self.steps else ()), *self._take_new_calls())
        assessed = acceptance.assess(
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
            ),
            draft=self.draft,
            iterations=tuple(self.iterations),
            best=best,
            final_answer=(
                chosen.answer
                if chosen
                else (self.draft.answer if self.draft else self.case.answer or "")
            ),
            final_quality_score=final,
            improvement_percentage=routing.improvement_percentage(initial, final),
            total_iterations=len(self.iterations),
            converged=reason == "convergence",
            termination_reason=reason,
            needs_review=not assessed.acceptance.passed,
            review_reasons=assessed.reasons,
            acceptance=assessed.acceptance,
            spot_check=assessed.acceptance.passed
            and acceptance.drawn_for_spot_check(self.case.id, self.settings),
            warnings=tuple(self.reporter.warnings),
            loose_calls=loose,
            usage=Usage.of(
                (*drafted, *(call for it in self.iterations for call in it.calls), *loose)
            ),
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
    """Audit one case, yielding an event as each thing happens, and return the run.

    ``cancelled`` is asked between steps, while a step waits for a model, and between claims that
    are checked without one; ``keep`` is handed the draft, each iteration and, where a step may cost
    something, each step as it is finished; ``progress`` continues from what was kept. A step that
    fails is recorded on the run, never raised. At the depth ``quick`` no critic, judge or reviser
    is asked.
    """
    run = AuditRun(
        case, roles, settings.at_depth(), run_id, case_digest, cancelled, keep, clock or Clock()
    )
    return (yield from run.run_steps(progress or AuditProgress()))

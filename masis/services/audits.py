"""Audit stored cases, resume interrupted runs, and store the results."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterable
from typing import Literal

from masis.api.roles import build_roles, pin_versions
from masis.audit import loop
from masis.observers.observation import AuditStart, run_to_completion
from masis.schema.actor import Actor
from masis.schema.audit import Draft
from masis.schema.calls import Step
from masis.schema.case import Case
from masis.schema.judge import JudgeBrief
from masis.schema.review import Decision
from masis.schema.run import Event, Iteration, Run, RunWarning, StepsDone
from masis.services.access import OPEN, RUN_AUDITS, Access, requires
from masis.services.judge.briefs import JudgeBriefs
from masis.services.records import RunProgress
from masis.services.trust.guarantees import Guarantees
from masis.settings import Settings
from masis.store import Store
from masis.store.audits.runs import Runs

POLICY = Actor(name="acceptance policy")
"""The actor that accepts runs which need no person."""

WRITE_INTERVAL_S = 0.3
"""How often events are written while steps wait for models.

A page that shows the run polls once a second, so writing more often would have no visible effect.
"""


class _EventLog:
    """Writes the events of a run, several in one transaction if no reader waits for them.

    With ``often`` the loop asks frequently whether to stop, and due events are written then.
    Otherwise all events are written before a step starts, because the step may take long.
    """

    def __init__(self, runs: Runs, often: bool) -> None:
        self._runs, self._often = runs, often
        self._pending: list[Event] = []
        self._written = 0.0

    def add(self, event: Event) -> None:
        """Add an event, and write all pending ones if it is an important one."""
        self._pending.append(event)
        if event.kind in ("warning", "call_retried", "iteration_finished", "run_finished"):
            self.write()
        elif self._often:
            self.write_if_due()
        elif event.kind == "step_started":
            self.write()

    def write_if_due(self) -> None:
        """Write the pending events unless the last write was a moment ago."""
        if self._pending and time.monotonic() - self._written >= WRITE_INTERVAL_S:
            self.write()

    def write(self) -> None:
        """Write the pending events."""
        if self._pending:
            self._runs.append_events(self._pending)
            self._pending.clear()
        self._written = time.monotonic()


class AuditService:
    """The use cases of auditing the cases of one database."""

    def __init__(self, store: Store, settings: Settings, access: Access = OPEN) -> None:
        self._store, self._settings, self.access = store, settings, access
        self._guarantees, self._briefs = Guarantees(store), JudgeBriefs(store)

    def pin(self, settings: Settings) -> Settings:
        """Return the settings with exact versions of compiled roles and of the judge.

        Raises:
            UnknownRecord: The settings name a judge version that doesn't exist.
            SettingsError: A model can't be asked.

        """
        return pin_versions(self._briefs.pin(settings))

    @requires("audit", RUN_AUDITS)
    def brief(self, actor: Actor, case: Case, settings: Settings) -> JudgeBrief | None:
        """Return the judge's guidance for a case under these settings, for audits elsewhere.

        Raises:
            UnknownRecord: The settings name a judge version that doesn't exist.
            NotAllowed: The actor's role doesn't allow audits.

        """
        return self._briefs.brief(case, settings)

    def is_needed(self, case: Case, settings: Settings | None = None) -> bool:
        """Return whether no finished run has audited this content with these settings."""
        return self._find(case, "finished", self._briefs.pin(settings or self._settings)) is None

    def newest_finished(self, case: Case, settings: Settings | None = None) -> Run | None:
        """Return the newest finished run of this content with these settings."""
        run_id = self._find(case, "finished", self._briefs.pin(settings or self._settings))
        return self._store.runs.get(run_id) if run_id else None

    def resumable(self, case_id: str, settings: Settings) -> str | None:
        """Return the interrupted run that an audit of this case would resume, or None.

        Raises:
            UnknownRecord: There is no such case.

        """
        if not any(run.state == "interrupted" for run in self._store.runs.for_case(case_id)):
            return None  # Usually there is none, and the case needn't be read.
        return self._find(self._store.cases.get(case_id), "interrupted", self._briefs.pin(settings))

    def _find(
        self, case: Case, state: Literal["finished", "interrupted"], settings: Settings
    ) -> str | None:
        return self._store.runs.find(case.id, state, case.digest(), settings.of_audit())

    @requires("audit", RUN_AUDITS)
    def audit(
        self,
        actor: Actor,
        case: Case,
        *,
        settings: Settings | None = None,
        run_id: str | None = None,
        on_event: Callable[[Event], None] | None = None,
        cancelled: Callable[[], bool] | None = None,
    ) -> Run:
        """Audit a stored case and store the run as it progresses.

        A run of the same content with the same settings that was interrupted is resumed after its
        last finished iteration.

        Args:
            actor: Who asks for the audit.
            case: The stored case.
            settings: The settings; by default those of the workbench.
            run_id: The id of the run if a new one starts.
            on_event: Receives each event after it was queued to be written.
            cancelled: Called frequently. Once it returns True, the audit ends during or after the
                current step.

        Raises:
            UnknownRecord: There is no such case, or no judge version that the settings name.
            NotAllowed: The actor's role doesn't allow audits.

        """
        settings, runs = self.pin(settings or self._settings), self._store.runs
        roles = build_roles(
            settings,
            self._store.replies_of(case.id) if settings.cache else None,
            judge=self._briefs.brief(case, settings),
        )
        if interrupted := self._find(case, "interrupted", settings):
            run_id, progress = interrupted, self._resume(interrupted)
        else:
            run_id, progress = run_id or loop.new_run_id(), None
            runs.start(
                run_id,
                case_id=case.id,
                case_digest=case.digest(),
                models=roles.models,
                settings=settings.of_audit(),
                asked_by=actor.name,
            )
        events = _EventLog(runs, roles.calls_models)
        stored: dict[int, Iteration] = {}

        def store(finished: Draft | Iteration | StepsDone) -> None:
            if isinstance(finished, Draft):
                runs.save_draft(run_id, finished)
            elif isinstance(finished, StepsDone):
                runs.save_steps(run_id, finished)
            else:
                runs.save_iteration(run_id, finished)
                stored[finished.iteration_number] = finished

        def record(event: Event) -> None:
            events.add(event)
            if on_event is not None:
                on_event(event)

        def stopped() -> bool:
            events.write_if_due()
            return bool(cancelled and cancelled()) or runs.cancel_requested(run_id)

        work = loop.audit(
            case,
            roles,
            settings,
            run_id=run_id,
            case_digest=case.digest(),
            cancelled=stopped,
            progress=progress,
            keep=store,
        )
        try:
            run = run_to_completion(work, record, AuditStart(case))
        # also for KeyboardInterrupt and SystemExit: the run is marked as interrupted, so that it
        # can be resumed without waiting for the check for lost processes
        except BaseException as error:
            events.write()
            runs.abandon(run_id, f"{type(error).__name__} in the middle of the audit")
            raise
        # An iteration that has changed since it was stored is a new object and is written again.
        kept = [number for number, it in enumerate(run.iterations, 1) if stored.get(number) is it]
        return self._finish(run, case, kept)

    def _resume(self, run_id: str) -> loop.AuditProgress:
        """Resume an interrupted run and return its progress, with the warnings of its finished
        steps.
        """
        progress = self._store.runs.resume(run_id)
        warnings = _warnings_to_keep(self._store.runs.events(run_id), progress)
        return loop.AuditProgress(
            progress.draft, progress.iterations, progress.last_event, warnings, progress.steps
        )

    @requires("audit", RUN_AUDITS)
    def cancel(self, actor: Actor, run_id: str) -> None:
        """Ask the process that runs an audit to stop after its current step.

        Raises:
            UnknownRecord: There is no such run.
            NotAllowed: The actor's role doesn't allow audits.

        """
        self._store.runs.request_cancel(run_id)

    @requires("audit", "delete cached replies")
    def forget_replies(self, actor: Actor, case_id: str) -> int:
        """Remove the cached replies about a case, so that its next audit calls the models again,
        and return how many.
        """
        return self._store.replies_of(case_id).forget()

    @requires("audit", RUN_AUDITS)
    def store_run(self, actor: Actor, run: Run) -> None:
        """Store a run that was made elsewhere, such as in a worker process; accept it if it needs
        no person.
        """
        self._finish(run, self._store.cases.get(run.case_id))

    def _finish(self, run: Run, case: Case, stored: Collection[int] = ()) -> Run:
        """Store a finished run together with its acceptance by the rule or the guarantee in force.

        Both are one transaction: if a process were killed between them, the case would need review
        for no reason.
        """
        with self._store.transaction():
            run = self._guarantees.score_run(run, case)
            self._store.runs.finish(run, stored)
            if not (run.needs_review or run.spot_check):
                self._store.decisions.append(acceptance_entry(run))
        return run


def _warnings_to_keep(events: Iterable[Event], progress: RunProgress) -> tuple[RunWarning, ...]:
    """Return the warnings of the steps with reused results; a repeated step warns again."""
    warnings: dict[tuple[int | None, Step | None], list[Event]] = {}
    for event in events:
        if event.kind == "step_started":
            warnings[event.iteration, event.step] = []  # Drop the warnings of an earlier try.
        elif event.kind == "warning":
            warnings.setdefault((event.iteration, event.step), []).append(event)
    kept = [
        event
        for step, step_warnings in warnings.items()
        if _is_result_reused(*step, progress)
        for event in step_warnings
    ]
    return tuple(
        RunWarning(
            code=event.data.get("code"),
            step=event.step,
            iteration=event.iteration,
            message=event.message,
        )
        for event in sorted(kept, key=lambda event: event.seq)
    )


def _is_result_reused(iteration: int | None, step: Step | None, progress: RunProgress) -> bool:
    """Return whether a resumed run uses the stored result of this step instead of repeating it."""
    finished = len(progress.iterations)
    if iteration is None:
        return step == "drafting" and progress.draft is not None
    if iteration < finished:
        return True
    if iteration == finished:
        last = progress.iterations[-1]
        return getattr(last, step) is not None if step in ("revision", "evaluation") else True
    if progress.steps is None or progress.steps.iteration_number != iteration:
        return False
    done = {
        "claims": progress.steps.claim_report,
        "critique": progress.steps.critique,
        "evaluation": progress.steps.evaluation,
    }
    result = done.get(step or "")
    return result is not None and not result.unscored


def acceptance_entry(run: Run) -> Decision:
    """Return the log entry by which the policy accepts a run that needs no person and isn't a spot
    check.
    """
    return Decision(
        kind="policy_accept",
        source="CODE",
        reviewer=POLICY.name,
        case_id=run.case_id,
        run_id=run.id,
        iteration=None if run.best is None else run.best + 1,
        reason=(
            "the run has no reason for review"
            if run.acceptance.guarantee is None
            else f"guarantee {run.acceptance.guarantee} waives the reasons for review"
        ),
        token=f"policy:{run.id}",
        versions=run.versions.flat(),
        extra={
            "review_threshold": run.settings["review_threshold"],
            "seed": run.settings["spot_check_seed"],
            "rule": run.acceptance.rule,
            **(
                {"guarantee": run.acceptance.guarantee}
                if run.acceptance.guarantee is not None
                else {}
            ),
        },
    )

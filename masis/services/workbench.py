"""The use cases: what pages, command line and integrations all call.

A ``Workbench`` is a store with settings. It owns what happens around an audit (the run is kept as it goes, a run that
needs nobody is accepted by policy) and around a decision; how an audit works is the loop's, how records are kept the
store's.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import NamedTuple

from masis import version
from masis.api.roles import build_roles, pin_versions
from masis.audit import loop
from masis.errors import UnknownRecord
from masis.observers.observation import AuditStart, run_to_completion
from masis.schema.audit import Draft
from masis.schema.case import Case
from masis.schema.review import CaseState, Decision, LogCheck, LogEntry
from masis.schema.run import Event, Iteration, Run, RunWarning, StepsDone
from masis.services import health
from masis.services.demo import demo_cases
from masis.services.health import HealthItem, HealthReport
from masis.settings import Settings
from masis.store import Store, Unguarded, Upgrade
from masis.store.audits.runs import Runs
from masis.store.records import Added, CaseFilter, CasePage, CaseSummary, DecisionFilter, RunProgress, RunSummary

POLICY_REVIEWER = "acceptance policy"
WRITTEN_EVERY_S = 0.3
"""Where steps wait for models, events are written this often: a page that watches looks once a second."""


class CaseView(NamedTuple):
    """One case opened: what it is, where it stands, its runs (newest first), the newest finished one, its log."""

    case: Case
    summary: CaseSummary
    runs: tuple[RunSummary, ...]
    run: Run | None
    decision: LogEntry | None
    history: tuple[LogEntry, ...]

    @property
    def state(self) -> CaseState:
        """Where the case stands."""
        return self.summary.state


class Overview(NamedTuple):
    """What is in the store, by state."""

    database: Path
    cases: int
    states: dict[str, int]


class _EventLog:
    """Writes the events of a run, several in one transaction where that delays none that somebody waits for.

    ``often``: the loop asks whether to stop every moment, and with it whether something is due to be written. Where it
    does not, all is written before a step begins, which may be a long one.
    """

    def __init__(self, runs: Runs, often: bool) -> None:
        self._runs, self._often = runs, often
        self._held: list[Event] = []
        self._written = 0.0

    def take(self, event: Event) -> None:
        """One more event."""
        self._held.append(event)
        if event.kind in ("warning", "call_retried", "iteration_finished", "run_finished"):
            self.write()
        elif self._often:
            self.write_if_due()
        elif event.kind == "step_started":
            self.write()

    def write_if_due(self) -> None:
        """Write what is held, if the last time was a moment ago."""
        if self._held and time.monotonic() - self._written >= WRITTEN_EVERY_S:
            self.write()

    def write(self) -> None:
        """Write what is held."""
        if self._held:
            self._runs.append_events(self._held)
            self._held.clear()
        self._written = time.monotonic()


class Workbench:
    """The use cases on one store."""

    def __init__(self, store: Store, settings: Settings, database: Path) -> None:
        self.store, self.settings, self.database = store, settings, database

    @classmethod
    def open(
        cls,
        database: Path,
        settings: Settings | None = None,
        *,
        unguarded: Unguarded = "refuse",
        on_upgrade: Callable[[Upgrade], None] | None = None,
    ) -> Workbench:
        """The workbench on the database at this path, which is made or migrated where need be.

        ``unguarded`` says what to do where a log has lost its guards; ``on_upgrade`` hears how far migrating has come.
        """
        return cls(Store.open(database, unguarded=unguarded, on_upgrade=on_upgrade), settings or Settings(), database)

    # cases

    def import_cases(self, cases: Iterable[Case], on_batch: Callable[[int], None] | None = None) -> Added:
        """Keep cases; one that is here already with other content is a conflict, the others are kept all the same."""
        return self.store.cases.add_many(cases, on_batch=on_batch)

    def load_demo(self) -> Added:
        """Keep the demo cases."""
        return self.import_cases(demo_cases())

    def overview(self) -> Overview:
        """How many cases stand where."""
        states = self.store.cases.facets().states
        return Overview(self.database, sum(states.values()), states)

    def find_cases(self, wanted: CaseFilter) -> CasePage:
        """One page of the cases that match."""
        return self.store.cases.search(wanted)

    def open_case(self, case_id: str) -> CaseView:
        """One case with its newest finished run and its log. Raises UnknownRecord."""
        runs = tuple(self.store.runs.for_case(case_id))
        finished = next((run.id for run in runs if run.readable), None)
        return CaseView(
            case=self.store.cases.get(case_id),
            summary=self.store.cases.summary(case_id),
            runs=runs,
            run=self.store.runs.get(finished) if finished else None,
            decision=self.store.decisions.current(case_id),
            history=self.store.decisions.entries(DecisionFilter(case_id=case_id, size=200)).rows,
        )

    # audits

    def needs_audit(self, case: Case, settings: Settings | None = None) -> bool:
        """Whether no finished run has audited this content with these settings."""
        return self._finished(case, settings) is None

    def finished_run(self, case: Case, settings: Settings | None = None) -> Run | None:
        """The newest finished run of this content with these settings."""
        found = self._finished(case, settings)
        return self.store.runs.get(found) if found else None

    def _finished(self, case: Case, settings: Settings | None) -> str | None:
        return self.store.runs.find(case.id, "finished", case.digest(), (settings or self.settings).of_audit())

    def audit(
        self,
        case: Case,
        *,
        settings: Settings | None = None,
        run_id: str | None = None,
        on_event: Callable[[Event], None] | None = None,
        cancelled: Callable[[], bool] | None = None,
    ) -> Run:
        """Audit a case that is in the store, keeping the run as it goes; a new run gets ``run_id`` where one is given.

        A run of the same content with the same settings that was interrupted is taken up after its last finished
        iteration. Raises UnknownRecord where the case is not in the store.
        """
        settings = pin_versions(settings or self.settings)
        roles = build_roles(settings)
        progress = self._interrupted(case, settings)
        if progress is not None:
            return self._run(case, settings, roles, progress.run_id, progress, on_event, cancelled)
        run_id = run_id or loop.new_run_id()
        self.store.runs.start(
            run_id, case_id=case.id, case_digest=case.digest(), models=roles.models, settings=settings.of_audit()
        )
        return self._run(case, settings, roles, run_id, None, on_event, cancelled)

    def resume(
        self,
        run_id: str,
        *,
        on_event: Callable[[Event], None] | None = None,
        cancelled: Callable[[], bool] | None = None,
    ) -> Run:
        """Take up an interrupted run after its last finished iteration. Raises UnknownRecord."""
        progress = self.store.runs.progress(run_id)
        case = self.store.cases.get(progress.case_id)
        return self.audit(
            case, settings=self.settings.as_told(progress.settings), on_event=on_event, cancelled=cancelled
        )

    def store_run(self, case: Case, run: Run) -> None:
        """Keep a run that was made elsewhere (by a worker process), with all that follows from it."""
        self.store.runs.finish(run)
        self._accept(run)

    def _interrupted(self, case: Case, settings: Settings) -> RunProgress | None:
        found = self.store.runs.find(case.id, "interrupted", case.digest(), settings.of_audit())
        return self.store.runs.resume(found) if found else None

    def _accept(self, run: Run) -> None:
        """A run that needs nobody is accepted by policy, unless it was drawn for a spot check (DESIGN.md, 4.3)."""
        if run.needs_review or run.spot_check:
            return
        self.decide(
            Decision(
                kind="policy_accept",
                source="CODE",
                reviewer=POLICY_REVIEWER,
                case_id=run.case_id,
                run_id=run.id,
                iteration=None if run.best is None else run.best + 1,
                reason="nothing in the run asks for a person",
                token=f"policy:{run.id}",
                versions=run.versions.flat(),
                extra={"review_threshold": run.settings["review_threshold"], "seed": run.settings["spot_check_seed"]},
            )
        )

    # decisions

    def decide(self, decision: Decision) -> LogEntry:
        """Append a decision to the log; the same token twice is one decision."""
        if not decision.versions:
            decision = decision.model_copy(update={"versions": {"app": version.APP, "rubric": version.RUBRIC}})
        return self.store.decisions.append(decision)

    def undo(self, case_id: str, reviewer: str, token: str | None = None) -> LogEntry:
        """Take back the decision that stands, by a further entry. Raises UnknownRecord where there is none."""
        current = self.store.decisions.current(case_id)
        if current is None:
            raise UnknownRecord(f"there is no decision on case {case_id!r} to take back.")
        run_id = current.decision.run_id if current.decision else None
        return self.decide(
            Decision(kind="undo", reviewer=reviewer, case_id=case_id, run_id=run_id, undoes=current.id, token=token)
        )

    def verify_log(self) -> LogCheck:
        """Whether every entry of the decision log fits the one before."""
        return self.store.decisions.verify()

    # health

    def health(self, settings: Settings | None = None, *, ask_models: bool = False) -> HealthReport:
        """Look at everything an audit and a decision need; models are asked only if told to, since that may cost."""
        settings = settings or self.settings
        models = self.check_models(settings) if ask_models else health.models_configured(settings)
        started = health.of_modules(settings, try_doors=ask_models)
        of_auditor, of_disk = health.of_auditor(settings), health.of_disk(self.database)
        return HealthReport((*health.of_store(self.store), *started, of_auditor, *models, of_disk))

    def check_models(self, settings: Settings | None = None) -> tuple[HealthItem, ...]:
        """Ask each model that fills a role for a word; with none, audit a small case as it should be judged."""
        return health.models_asked(settings or self.settings)

    def _taken_up(self, progress: RunProgress) -> loop.Progress:
        """What an interrupted run goes on from, with the warnings of what it had finished."""
        finished = len(progress.iterations)
        warnings = tuple(
            RunWarning(code=event.data.get("code"), step=event.step, iteration=event.iteration, message=event.message)
            for event in self.store.runs.events(progress.run_id)
            if event.kind == "warning" and event.iteration is not None and event.iteration <= finished
        )
        return loop.Progress(progress.draft, progress.iterations, progress.last_event, warnings, progress.steps)

    def _run(
        self,
        case: Case,
        settings: Settings,
        roles: loop.Roles,
        run_id: str,
        progress: RunProgress | None,
        on_event: Callable[[Event], None] | None,
        cancelled: Callable[[], bool] | None,
    ) -> Run:
        runs = self.store.runs

        def keep(finished: Draft | Iteration | StepsDone) -> None:
            if isinstance(finished, Draft):
                runs.save_draft(run_id, finished)
            elif isinstance(finished, StepsDone):
                runs.save_steps(run_id, finished)
            else:
                runs.save_iteration(run_id, finished)
                kept[finished.iteration_number] = finished

        log = _EventLog(runs, roles.waits)
        kept: dict[int, Iteration] = {}

        def record(event: Event) -> None:
            log.take(event)
            if on_event is not None:
                on_event(event)

        def stopped() -> bool:
            log.write_if_due()
            return bool(cancelled and cancelled()) or runs.cancel_requested(run_id)

        work = loop.audit(
            case,
            roles,
            settings,
            run_id=run_id,
            case_digest=case.digest(),
            cancelled=stopped,
            progress=self._taken_up(progress) if progress else None,
            keep=keep,
        )
        try:
            run = run_to_completion(work, record, AuditStart(case))
        except BaseException as error:
            log.write()
            runs.abandon(run_id, f"{type(error).__name__} in the middle of the audit")
            raise
        same = [number for number, it in enumerate(run.iterations, 1) if kept.get(number) is it]
        runs.finish(run, same)
        self._accept(run)
        return run

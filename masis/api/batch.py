"""Audits of many cases: several at once, within a cost limit, with results in the order of the
cases.

``audit_many`` and the commands that audit a file share this code. Audits that wait for models run
on threads of one process, so that one limit of calls per provider holds for all of them. The
offline auditor keeps a core busy, so its work is split among processes. These don't open a
database; each receives cases and returns runs.
"""

from __future__ import annotations

import contextvars
import multiprocessing
import multiprocessing.connection
import os
import re
import signal
import threading
import traceback
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import (
    FIRST_COMPLETED,
    Future,
    ProcessPoolExecutor,
    ThreadPoolExecutor,
    wait,
)
from concurrent.futures.process import BrokenProcessPool
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from tqdm import tqdm

from masis.api.audits import audit_events, chosen_settings, run_audit
from masis.api.roles import calls_at_once, estimate, unpriced_models, uses_models, with_concurrency
from masis.audit.control.concurrency import POLL_INTERVAL_S, cancellable, start_in_thread
from masis.errors import InputError, MasisError
from masis.observers import observation
from masis.schema.calls import Usage
from masis.schema.case import Case, case_of
from masis.schema.frames import is_frame, rows_of
from masis.schema.judge import JudgeBrief
from masis.schema.reading import FieldMap
from masis.schema.run import Run, RunWarning
from masis.schema.wording import count_noun
from masis.settings import Settings
from masis.views.numbers import dollars

if TYPE_CHECKING:
    import pandas as pd

AUDITS_PER_CALL = 4
"""Concurrent audits per allowed call, so that some can call the provider while others process
replies.
"""

_COMMAND_LINE_HINT = re.compile(r"--map [^;]*?, in Python ")
"""The part of a hint that applies only to the command line."""

CASES_PER_PROCESS = 4
"""Cases handed out per process, so that a slow case doesn't leave the other processes idle."""


def audit_many(
    cases: Any,
    settings: Settings | None = None,
    *,
    concurrency: int | None = None,
    progress: bool = True,
    max_cost: float | None = None,
    map: FieldMap | None = None,  # noqa: A002 (the public name)
) -> list[Run]:
    """Audit many cases and return their runs, in the order of the cases.

    All cases of a list or a frame are read first, and the error names every one that can't be read
    before anything is audited; ``masis.audit`` skips them.

    After Ctrl-C, no further audits start, those in progress are aborted, and only the finished runs
    are returned. A second Ctrl-C exits at once. A step that fails is recorded on its run and never
    raised.

    With ``max_cost``, an audit starts only if it can't exceed the limit: the first audits are
    budgeted at their maximum cost, later ones at the average so far. Audits in progress are allowed
    to finish. Each later case still gets a run, which cost nothing: it has no iterations, its
    ``termination_reason`` is ``cancelled``, and its warning says that the limit was reached.

    Args:
        cases: The cases, or mappings of their fields; an iterator is read only as far as cases are
            audited. Or a pandas DataFrame, an Arrow table or a Hugging Face data set, with one run
            per row, in their order.
        settings: As for ``run_audit``.
        concurrency: How many audits run at once; with models, also how many calls each provider
            gets at once. Default: the provider's setting, else 1.
        progress: Whether to show a progress bar on stderr.
        max_cost: US dollars that all audits together may cost. Default: no limit.
        map: The column or key of a field where its name differs: ``{"answer": "response"}``.

    Raises:
        InputError: ``cases`` is a single case, holds something other than cases, or has two
            different cases with the same id; ``concurrency`` is below 1; ``max_cost`` is not above
            0, or the price of a model is not known.

    """
    options = Options(concurrency, progress, max_cost, map)
    return list(audit_all(cases, settings, _audit_job, options).values())


async def aaudit(
    cases: Any,
    settings: Settings | None = None,
    *,
    concurrency: int | None = None,
    progress: bool = True,
    max_cost: float | None = None,
    map: FieldMap | None = None,  # noqa: A002 (the public name)
) -> pd.DataFrame:
    """Audit many cases in async code, like ``masis.audit``, which explains arguments and result.

    The audits run on threads. If the task is cancelled, no further audit starts, and those in
    progress stop before their next call.
    """
    options = Options(concurrency, progress, max_cost, map)
    return await cancellable(
        lambda is_cancelled: audit_to_table(cases, settings, options, is_cancelled),
        partial(start_in_thread, name="aaudit"),
    )


class Options(NamedTuple):
    """Options of the functions that audit many cases."""

    concurrency: int | None = None
    progress: bool = True
    max_cost: float | None = None
    field_map: FieldMap | None = None


def audit_to_table(
    cases: Any,
    settings: Settings | None,
    options: Options,
    is_cancelled: Callable[[], bool] = lambda: False,
) -> pd.DataFrame:
    """Audit many cases and return the table of ``masis.audit``; ``is_cancelled`` tells whether to
    stop.
    """
    # Imported here because it loads pandas, which the commands don't need.
    from masis.views.tables import runs_to_pandas

    rows, errors = list(_case_rows(cases, options.field_map)), dict[int, InputError]()
    runs = audit_all(
        rows,
        settings,
        _audit_job,
        options,
        on_problem=errors.__setitem__,
        is_cancelled=is_cancelled,
    )
    if errors and not runs:
        raise InputError.of_all(list(errors.values()), hint="No row can be read as a case.")
    reasons = dict.fromkeys(range(len(rows)), "Not audited: interrupted.") | dict.fromkeys(runs, "")
    reasons |= {
        position: run.warnings[0].message
        for position, run in runs.items()
        if not run.iterations and run.warnings
    }
    reasons |= {position: str(error) for position, error in errors.items()}
    table = runs_to_pandas(runs.values(), index=runs).reindex(range(len(rows)))
    table["standing"] = table["standing"].fillna("not_audited")
    table["needs_review"] = table["needs_review"].ne(False)  # unaudited rows need review
    table["error"] = table.index.map(reasons)
    return table.set_axis(cases.index, axis="index") if hasattr(cases, "itertuples") else table


def audit_all(
    cases: Any,
    settings: Settings | None,
    audit_one: Callable[[BatchItem, Settings, Callable[[], bool]], Run],
    options: Options,
    *,
    on_case: Callable[[Case], object] = lambda case: None,
    on_problem: Callable[[int, InputError], None] | None = None,
    is_cancelled: Callable[[], bool] = lambda: False,
) -> dict[int, Run]:
    """Audit cases with ``audit_one(job, settings, cancelled)`` and return their runs by position,
    in order.

    Args:
        cases: As for ``audit_many``.
        settings: As for ``run_audit``.
        audit_one: Audits one case.
        options: The arguments of ``audit_many``.
        on_case: Called with each case before it is audited; for a list or a frame, with all cases
            before the first is audited.
        on_problem: Called with the position and the error of a row that can't be read as a case;
            the others are audited. Without it the error is raised.
        is_cancelled: Returns whether to start no further audit and to stop those in progress.

    """
    concurrency, progress, max_cost, names = options
    if concurrency is not None and concurrency < 1:
        raise InputError(
            f"is {concurrency}", hint="Give a number of 1 or more.", field="concurrency"
        )
    chosen = chosen_settings(settings)
    if uses_models(chosen):
        chosen = with_concurrency(chosen, concurrency)
    budget, runs = Budget(chosen, max_cost), dict[int, Run]()

    def audit(job: BatchItem, cancelled: Callable[[], bool]) -> Run:
        runs[job.number] = audit_one(job, chosen, lambda: cancelled() or is_cancelled())
        return runs[job.number]

    def reject(_: int, error: InputError) -> None:
        raise error

    def hand_over(job: BatchItem) -> BatchItem:
        on_case(job.case)
        return job

    # Read all cases before the first one is paid for.
    read_first = isinstance(cases, list | tuple) or is_frame(cases)
    jobs: Iterable[BatchItem]
    if read_first and on_problem is None:
        jobs = read_all(cases, names)
    else:
        jobs = _jobs(_case_rows(cases, names), names, on_problem or reject)
    jobs = [hand_over(job) for job in list(jobs)] if read_first else map(hand_over, jobs)
    parallel = concurrency or calls_at_once(chosen)
    total, flagged = len(jobs) if isinstance(jobs, list) else None, 0
    # An iterator has no length, so the bar shows a count without a percentage.
    with tqdm(total=total, disable=not progress, desc="Auditing", unit="case") as bar:
        try:
            for job, outcome in audit_in_threads(
                jobs, audit, at_once=parallel, budget=budget, stopping=is_cancelled
            ):
                if isinstance(outcome, OverBudget):
                    runs[job.number] = _cancelled_run(job.case, chosen, outcome.why)
                flagged += runs[job.number].needs_review
                bar.set_postfix_str(f"{flagged:,} need review", refresh=False)
                bar.update()
        except KeyboardInterrupt:
            finished = count_noun(len(runs), "audit")
            bar.write(f"Interrupted. {finished} finished. Only finished audits are in the result.")
    return dict(sorted(runs.items()))


def read_all(cases: Any, names: FieldMap | None) -> list[BatchItem]:
    """Return the cases as jobs.

    Raises:
        InputError: ``cases`` isn't a collection of cases, or some of its rows can't be read.

    """
    problems: list[InputError] = []
    jobs = list(_jobs(_case_rows(cases, names), names, lambda _, error: problems.append(error)))
    if problems:
        hint = "Correct them, or use masis.audit, which skips them."
        raise InputError.of_all(problems, hint=hint)
    return jobs


def _case_rows(cases: Any, names: FieldMap | None) -> Iterable[Any]:
    """Return several cases, or rows that hold them.

    Raises:
        InputError: ``cases`` is a single case, or not a collection of cases.

    """
    if isinstance(cases, Case | Mapping | str):
        raise InputError("is one case, not several", hint="Put it into a list.", field="cases")
    return rows_of(cases, names)


def _audit_job(job: BatchItem, settings: Settings, cancelled: Callable[[], bool]) -> Run:
    start = observation.AuditStart(job.case)
    return observation.run_to_completion(audit_events(job.case, settings, cancelled), None, start)


def _jobs(
    cases: Iterable[Any], names: FieldMap | None, on_problem: Callable[[int, InputError], None]
) -> Iterator[BatchItem]:
    """Yield the cases, and report rows that can't be read or that reuse the id of a
    different case.
    """
    places: dict[str, tuple[int, str]] = {}
    # Only the first error gets the hint, because the other mappings have the same keys.
    can_add_hint = names is None
    for number, row in enumerate(cases):
        try:
            case = case_of(row, f"cases[{number}]", names)
            first_place, digest = places.setdefault(case.id, (number, case.digest()))
            if digest != case.digest():
                raise InputError(
                    f"has the same id as cases[{first_place}] ({case.id[:80]!r}) but different"
                    " content",
                    hint="Give each case its own id, or remove one of the two.",
                    field=f"cases[{number}].id",
                )
        except InputError as error:
            reported = InputError(
                error.problem, hint=_COMMAND_LINE_HINT.sub("", error.hint), field=error.field
            )
            on_problem(number, _add_key_hint(reported, row) if can_add_hint else reported)
            can_add_hint = False
        else:
            yield BatchItem(number, case)


def _add_key_hint(error: InputError, row: Any) -> InputError:
    """Add the keys of a mapping that lacks a field to its error, since one of them may be the
    field.
    """
    if not isinstance(row, Mapping) or {"query", "evidence"} <= row.keys():
        return error
    keys = ", ".join(repr(str(key)) for key in list(row)[:10])
    hint = (
        f"Its keys are {keys}. Map them to the fields with map={{...}};"
        " masis.suggest(cases).names proposes a map."
    )
    return InputError(error.problem, hint=f"{error.hint} {hint}", field=error.field)


def _cancelled_run(case: Case, settings: Settings, reason: str) -> Run:
    """Return the run of a case that wasn't audited, as if it was cancelled before its first step.

    It asks no model.
    """
    events = audit_events(case, settings, lambda: True)
    try:
        while True:
            next(events)
    except StopIteration as stop:
        run: Run = stop.value
    warning = RunWarning(code=None, step=None, iteration=None, message=reason)
    reasons = [
        review_reason.model_copy(update={"message": reason})
        if review_reason.code == "cancelled"
        else review_reason
        for review_reason in run.review_reasons
    ]
    return run.model_copy(update={"warnings": (warning,), "review_reasons": tuple(reasons)})


class Budget:
    """The cost limit of a batch of audits and the amount spent, in US dollars. Not thread-safe.

    Args:
        settings: The settings of the audits.
        limit: What all audits together may cost, None for no limit.
        spent: The amount that was spent before.

    Raises:
        InputError: The limit is not above 0, or the price of a model is not known.

    """

    def __init__(self, settings: Settings, limit: float | None, spent: float = 0.0) -> None:
        if limit is not None and not limit > 0:
            raise InputError(
                f"is {limit}", hint="Give an amount above 0, in US dollars.", field="max_cost"
            )
        if limit is not None and (unpriced := unpriced_models(settings)):
            raise InputError(
                f"no price is known for {', '.join(unpriced)}",
                hint=(
                    f'Give one in masis.toml: [prices."{unpriced[0]}"] with input and output, in US'
                    " dollars for a million tokens."
                ),
                field="max_cost",
            )
        self.limit, self.exhausted = limit, False
        self._settings = settings
        self._spent, self._before, self._ended, self._running = spent, spent, 0, 0

    def try_start(self, case: Case) -> bool:
        """Count one more audit as started and return True, if it may start now.

        If it may not and ``exhausted`` is not set, it may start once the cost of those in progress
        is known.
        """
        if self.limit is not None:
            # Only this batch's own audits show what one costs. Earlier ones may have had other
            # settings.
            spent = self._spent - self._before
            cost_per_audit = (
                spent / self._ended
                if self._ended
                else estimate(case, self._settings).cost_usd or 0.0
            )
            if self.exhausted or self._spent + (self._running + 1) * cost_per_audit > self.limit:
                # While audits are in progress, their cost may turn out lower than assumed.
                self.exhausted = not self._running
                return False
        self._running += 1
        return True

    def record(self, usage: Usage | None) -> None:
        """Count an audit that ended, with its usage; None if it has no result."""
        self._running -= 1
        self._ended += 1
        self._spent += (usage.cost_usd if usage else None) or 0.0

    def reset(self) -> None:
        """Reset the amount spent, for example at the start of a day.

        The cost of audits in progress counts for the new period.
        """
        self._spent, self._before, self._ended, self.exhausted = 0.0, 0.0, 0, False

    def exhausted_message(self) -> str:
        """Return the message for cases that were not audited because of the limit."""
        spent, limit = dollars(self._spent), dollars(self.limit or 0.0)
        return (
            f"Not audited: {spent} is spent, and one more audit could exceed the limit of {limit}"
            " (max_cost)."
        )


class BatchItem(NamedTuple):
    """A case to audit.

    Attributes:
        number: Its position or line.
        case: The case.
        end: Where it ends in its file, in bytes.
        skip: Whether it already has a run and only keeps its position.
        judge: The team's guidance for the judge on this case; None for the default judge.

    """

    number: int
    case: Case
    end: int = 0
    skip: bool = False
    judge: JudgeBrief | None = None


class AuditFailure(NamedTuple):
    """An audit that raised instead of returning a run: the message, and the traceback
    for --debug.
    """

    message: str
    trace: str = ""


class OverBudget(NamedTuple):
    """The reason why an audit did not start: it could exceed the cost limit."""

    why: str


Outcome: TypeAlias = Run | AuditFailure | OverBudget | None


class ItemResult(NamedTuple):
    """The outcome of a job; None if the job was skipped."""

    job: BatchItem
    outcome: Outcome


class Abandoned(Exception):
    """The user stopped waiting. Audits in progress are left unfinished, to be resumed later."""


def guarded_audit(audit: Callable[[], Run]) -> Run | AuditFailure:
    """Return the result of the audit, or a failure for whatever it raises."""
    try:
        return audit()
    except MasisError as error:
        return AuditFailure(str(error), traceback.format_exc())
    # One case must not end the audit of the others; the error is reported.
    except Exception as error:  # noqa: BLE001
        return AuditFailure(f"{type(error).__name__}: {error}", traceback.format_exc())


def audit_in_threads(
    jobs: Iterable[BatchItem],
    audit: Callable[[BatchItem, Callable[[], bool]], Run | AuditFailure],
    *,
    at_once: int,
    budget: Budget | None = None,
    stopping: Callable[[], bool] = lambda: False,
) -> Iterator[ItemResult]:
    """Audit the jobs with ``audit(job, cancelled)`` and yield the results in order.

    Args:
        jobs: The cases to audit.
        audit: Audits one case.
        at_once: How many audits run at once.
        budget: The cost limit, None for no limit.
        stopping: Returns whether to finish only the audits in progress. An exception in the caller,
            as from a second Ctrl-C, abandons those as well.

    """
    abandoned = threading.Event()

    def cancelled() -> bool:
        if abandoned.is_set():
            raise Abandoned
        return False

    with ThreadPoolExecutor(at_once, thread_name_prefix="audit") as pool:

        def submit(job: BatchItem) -> Future[Outcome]:
            # A pool's thread doesn't inherit the context variables of the caller, such as a span.
            return pool.submit(contextvars.copy_context().run, audit, job, cancelled)

        try:
            yield from _results(jobs, submit, at_once, budget, stopping)
        # Also for a second Ctrl-C, and when the caller closes this generator.
        except BaseException:
            abandoned.set()
            pool.shutdown(wait=False, cancel_futures=True)
            raise


def audit_in_processes(
    jobs: Iterable[BatchItem],
    settings: Settings,
    *,
    workers: int,
    budget: Budget | None = None,
    stopping: Callable[[], bool] = lambda: False,
    prepare: Callable[[Settings], None] | None = None,
) -> Iterator[ItemResult]:
    """Audit the jobs in ``workers`` processes and yield the results in order.

    A worker that dies, for example out of memory, fails the cases it was working on and all later
    ones.

    Args:
        jobs: The cases to audit.
        settings: The settings of the audits.
        workers: The number of processes.
        budget: The cost limit, None for no limit.
        stopping: Returns whether to finish only the audits in progress.
        prepare: Called first in each process.

    """
    # A fork would copy open database connections, which SQLite forbids
    # (https://www.sqlite.org/howtocorrupt.html, section 2.6).
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(
        workers, context, initializer=_begin_worker, initargs=(settings, prepare)
    ) as pool:

        def submit(job: BatchItem) -> Future[Outcome]:
            try:
                return pool.submit(_audit_in_worker, job.case, job.judge)
            except BrokenProcessPool:
                return _finished_future(_WORKER_DIED)

        yield from _results(jobs, submit, workers * CASES_PER_PROCESS, budget, stopping)


def _results(
    jobs: Iterable[BatchItem],
    submit: Callable[[BatchItem], Future[Outcome]],
    at_once: int,
    budget: Budget | None,
    stopping: Callable[[], bool],
) -> Iterator[ItemResult]:
    """Yield the result of each job in order.

    At most ``at_once`` jobs run at a time. Up to ``at_once`` further results can be buffered behind
    a slow job.
    """
    source, waiting, running = (
        iter(jobs),
        deque[tuple[BatchItem, Future[Outcome]]](),
        set[Future[Outcome]](),
    )

    def wait_for_one() -> Iterator[ItemResult]:
        """Wait until at least one job has ended, count its cost, and yield the results that are
        ready.
        """
        nonlocal running
        done: set[Future[Outcome]] = set()
        # In short steps, because Python handles signals in the main thread between them.
        while running and not done:
            done, running = wait(running, POLL_INTERVAL_S, FIRST_COMPLETED)
        for future in done:
            outcome = _worker_outcome(future)
            if budget is not None:
                budget.record(outcome.usage if isinstance(outcome, Run) else None)
        yield from pop_finished()

    def pop_finished() -> Iterator[ItemResult]:
        while waiting and waiting[0][1].done():
            job, future = waiting.popleft()
            yield ItemResult(job, _worker_outcome(future))

    while not stopping():
        # Results are yielded in order. Without the second limit, one slow job would let finished
        # runs pile up in memory.
        while len(running) >= at_once or len(waiting) >= 2 * at_once:
            yield from wait_for_one()
        job = next(source, None)
        if job is None or stopping():
            break
        while not (job.skip or budget is None or budget.try_start(job.case) or budget.exhausted):
            yield from wait_for_one()
        if job.skip or (budget is not None and budget.exhausted):
            waiting.append(
                (
                    job,
                    _finished_future(
                        None
                        if job.skip or budget is None
                        else OverBudget(budget.exhausted_message())
                    ),
                )
            )
        else:
            future = submit(job)
            running.add(future)
            waiting.append((job, future))
        yield from pop_finished()
    while waiting:
        # Jobs that a pool has not started can still be cancelled; they get no result.
        if stopping():
            running = {future for future in running if not future.cancel()}
            waiting = deque((job, future) for job, future in waiting if not future.cancelled())
        yield from wait_for_one()


def _finished_future(outcome: Outcome) -> Future[Outcome]:
    future: Future[Outcome] = Future()
    future.set_result(outcome)
    return future


_WORKER_DIED = AuditFailure(
    "A worker process died, possibly out of memory. Run the command again with a smaller"
    " --concurrency."
)


def _worker_outcome(future: Future[Outcome]) -> Outcome:
    try:
        return future.result()
    except BrokenProcessPool:
        return _WORKER_DIED


# In a worker process.

_settings = Settings()  # set once per process, so that a job carries only its case


def _begin_worker(settings: Settings, prepare: Callable[[Settings], None] | None) -> None:
    """Leave Ctrl-C to the parent process, which handles the audits in progress, and exit with
    it.
    """
    global _settings
    # A terminal sends Ctrl-C to all processes of the group.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    _settings = settings
    if prepare is not None:
        prepare(settings)
    threading.Thread(target=_exit_with_parent, daemon=True).start()


def _exit_with_parent() -> None:
    if parent := multiprocessing.parent_process():
        # The sentinel becomes ready when the parent ends, however it ended.
        multiprocessing.connection.wait([parent.sentinel])
        os._exit(1)  # a killed parent can't stop its workers


def _audit_in_worker(case: Case, judge: JudgeBrief | None) -> Run | AuditFailure:
    return guarded_audit(lambda: run_audit(case, _settings, judge=judge))

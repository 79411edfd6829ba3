"""Audits of many cases: several at once, on threads or in processes, in the order of the cases,
within a cost limit.

``audit_many`` and the commands that audit a file share what is here. An audit that waits for models
runs on a thread: one process, one limit of calls a provider. The offline auditor keeps a core busy,
so that processes share its work; such a process sees no database, it takes a case and gives a run.
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
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from tqdm import tqdm

from masis.api.audits import audit_events, chosen_settings, run_audit
from masis.api.roles import calls_at_once, estimate, unpriced_models, uses_models, with_concurrency
from masis.audit.control.concurrency import POLL_INTERVAL_S
from masis.errors import InputError, MasisError
from masis.observers import observation
from masis.schema.calls import Usage
from masis.schema.case import Case, case_of
from masis.schema.frames import is_frame, rows_of
from masis.schema.reading import FieldMap
from masis.schema.run import Run, RunWarning
from masis.settings import Settings
from masis.views.numbers import dollars

if TYPE_CHECKING:
    import pandas as pd

AUDITS_PER_CALL = 4
"""Audits under way for each call that may be: while one reads a reply, another has its call at the
provider.
"""

_COMMAND_LINE_HINT = re.compile(r"--map [^;]*?, in Python ")
"""The part of a hint that is for the command line alone."""

CASES_PER_PROCESS = 4
"""Cases handed out for each process, so that none waits while a slow one is waited for."""


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

    Of a list or a frame every case is read first, and all that can't be read are named before
    anything is audited; ``masis.audit`` goes on without them.

    Ctrl-C begins no further audit, breaks off those under way, and returns the finished runs alone;
    a second Ctrl-C leaves at once. A step that fails is recorded on its run, never raised.

    With ``max_cost`` no audit begins that could pass the limit: the first audits count as what they
    may cost at most, later ones as what those before them cost on average. What is under way is
    finished. Each case after that has a run all the same, which cost nothing: it has no iterations,
    ``termination_reason`` is ``cancelled``, and its warning says that the limit was reached.

    Args:
        cases: The cases, or mappings of their fields; no more are taken from an iterator than are
            audited. Or a pandas DataFrame, an Arrow table or a Hugging Face data set: a run a row,
            in their order.
        settings: As for ``run_audit``.
        concurrency: How many audits at once; with models, also how many calls go to each provider
            at once. Default: what the settings say of the provider, else 1.
        progress: Whether to show a bar on stderr.
        max_cost: US dollars that all audits together may cost. Default: no limit.
        map: Which column or key holds a field where the names differ: ``{"answer": "response"}``.

    Raises:
        InputError: ``cases`` is one case, holds something else than cases, or two cases under one
            id; ``concurrency`` is below 1; ``max_cost`` is not above 0, or the price of a model is
            not known.

    """
    options = Options(concurrency, progress, max_cost, map)
    return list(audit_all(cases, settings, _audit_job, options).values())


def audit(
    cases: Any,
    settings: Settings | None = None,
    *,
    concurrency: int | None = None,
    progress: bool = True,
    max_cost: float | None = None,
    map: FieldMap | None = None,  # noqa: A002 (the public name)
) -> pd.DataFrame:
    """Audit many cases and return a data frame: a row for each of them, under the labels of the
    frame that was given.

        frame.join(masis.audit(frame, map={"answer": "response"}), rsuffix="_audit")

    The columns are those of ``runs_to_pandas``, and ``error``: why a row could not be read as a
    case, or was not audited. Such a row stops none of the others, and its figures are empty.
    ``audit_many`` gives the runs themselves.

    Args:
        cases: As for ``audit_many``; an iterator is read to its end first.
        settings: As for ``run_audit``.
        concurrency: How many audits at once.
        progress: Whether to show a bar on stderr.
        max_cost: US dollars that all audits together may cost.
        map: Which column or key holds a field where the names differ: ``{"answer": "response"}``.

    Raises:
        InputError: Not one row can be read as a case; or an argument is wrong, as ``audit_many``
            says.

    """
    # here: it loads pandas, which the commands do without
    from masis.views.tables import runs_to_pandas

    rows, errors = list(_case_rows(cases, map)), dict[int, InputError]()
    options = Options(concurrency, progress, max_cost, map)
    runs = audit_all(rows, settings, _audit_job, options, on_problem=errors.__setitem__)
    if errors and not runs:
        raise InputError.of_all(list(errors.values()), hint="Not one row can be read as a case.")
    why = dict.fromkeys(range(len(rows)), "Not audited: interrupted.") | dict.fromkeys(runs, "")
    why |= {
        at: run.warnings[0].message
        for at, run in runs.items()
        if not run.iterations and run.warnings
    }
    why |= {at: str(error) for at, error in errors.items()}
    found = runs_to_pandas(runs.values(), index=runs).reindex(range(len(rows)))
    found["standing"] = found["standing"].fillna("not_audited")
    found["needs_review"] = found["needs_review"].ne(False)  # what was not audited needs one
    found["error"] = found.index.map(why)
    return found.set_axis(cases.index, axis="index") if hasattr(cases, "itertuples") else found


class Options(NamedTuple):
    """How ``audit_many`` and its kin audit; the fields are their arguments, ``names`` what they
    call ``map``.
    """

    concurrency: int | None = None
    progress: bool = True
    max_cost: float | None = None
    names: FieldMap | None = None


def audit_all(
    cases: Any,
    settings: Settings | None,
    audit_one: Callable[[BatchItem, Settings, Callable[[], bool]], Run],
    options: Options,
    *,
    take: Callable[[Case], object] = lambda case: None,
    on_problem: Callable[[int, InputError], None] | None = None,
) -> dict[int, Run]:
    """Audit cases, each by ``audit_one(job, settings, cancelled)``, and return their runs in order,
    by their places.

    ``take`` is called with each case before it is audited: of a list or a frame with all before the
    first is. ``on_problem`` is called with what can't be read as a case, and the others are
    audited; without it that is raised.
    """
    concurrency, progress, max_cost, names = options
    rows, problems = _case_rows(cases, names), list[InputError]()
    if concurrency is not None and concurrency < 1:
        raise InputError(f"is {concurrency}", hint="Give a number from 1 on.", field="concurrency")
    chosen = chosen_settings(settings)
    if uses_models(chosen):
        chosen = with_concurrency(chosen, concurrency)
    budget, runs = Budget(chosen, max_cost), dict[int, Run]()

    def audit(job: BatchItem, cancelled: Callable[[], bool]) -> Run:
        runs[job.number] = audit_one(job, chosen, cancelled)
        return runs[job.number]

    def refused(number: int, error: InputError) -> None:
        problems.append(error)
        if not at_first:
            raise error

    def taken(job: BatchItem) -> BatchItem:
        take(job.case)
        return job

    # all are read before the first is paid for
    at_first = isinstance(cases, list | tuple) or is_frame(cases)
    jobs: Iterable[BatchItem] = _jobs(rows, names, on_problem or refused)
    if at_first:
        jobs = list(jobs)
        if problems:
            raise InputError.of_all(
                problems, hint="Correct them; masis.audit goes on without them."
            )
        jobs = [taken(job) for job in jobs]
    else:
        jobs = map(taken, jobs)
    at_once = concurrency or calls_at_once(chosen)
    total, flagged = len(jobs) if isinstance(jobs, list) else None, 0
    with tqdm(total=total, disable=not progress, desc="Auditing", unit="case") as bar:
        try:
            for job, outcome in audit_in_threads(jobs, audit, at_once=at_once, budget=budget):
                if isinstance(outcome, OverBudget):
                    runs[job.number] = _cancelled_run(job.case, chosen, outcome.why)
                flagged += runs[job.number].needs_review
                bar.set_postfix_str(f"{flagged:,} need review", refresh=False)
                bar.update()
        except KeyboardInterrupt:
            bar.write(f"Interrupted: {len(runs):,} audits are finished and returned.")
    return dict(sorted(runs.items()))


def _case_rows(cases: Any, names: FieldMap | None) -> Iterable[Any]:
    """Return several cases, or rows that hold them. Raises InputError where they are
    none, or one.
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
    """Yield the cases; what can't be read, or has the id of an earlier one with other content, is a
    problem.
    """
    places: dict[str, tuple[int, str]] = {}
    hint = names is None  # once: what one mapping holds, the others do
    for number, given in enumerate(cases):
        try:
            case = case_of(given, f"cases[{number}]", names)
            first, digest = places.setdefault(case.id, (number, case.digest()))
            if digest != case.digest():
                raise InputError(
                    f"is {case.id[:80]!r}, as in cases[{first}], with other content",
                    hint="Give each case an id of its own, or remove one of the two.",
                    field=f"cases[{number}].id",
                )
        except InputError as error:
            shown = InputError(
                error.problem, hint=_COMMAND_LINE_HINT.sub("", error.hint), field=error.field
            )
            on_problem(number, _with_hint(shown, given) if hint else shown)
            hint = False
        else:
            yield BatchItem(number, case)


def _with_hint(error: InputError, given: Any) -> InputError:
    """Return the error of a mapping that lacks a field with the keys that it holds, of which some
    may be meant.
    """
    if not isinstance(given, Mapping) or {"query", "evidence"} <= given.keys():
        return error
    holds = ", ".join(repr(str(key)) for key in list(given)[:10])
    hint = (
        f"It holds {holds}: say which is which, map={{...}}; masis.suggest(cases).names proposes"
        " that."
    )
    return InputError(error.problem, hint=f"{error.hint} {hint}", field=error.field)


def _cancelled_run(case: Case, settings: Settings, why: str) -> Run:
    """Return the run of a case that was not audited: what a run is that was cancelled before its
    first step.
    """
    work = audit_events(case, settings, lambda: True)
    try:
        while True:
            next(work)
    except StopIteration as finished:
        run: Run = finished.value
    warning = RunWarning(code=None, step=None, iteration=None, message=why)
    reasons = [
        each.model_copy(update={"message": why}) if each.code == "cancelled" else each
        for each in run.review_reasons
    ]
    return run.model_copy(update={"warnings": (warning,), "review_reasons": tuple(reasons)})


class Budget:
    """What a batch of audits may cost in US dollars, and what it has cost. Not to be used from two
    threads at once.

    ``limit`` is what all audits together may cost, None for no limit; ``spent`` was spent before.
    Raises InputError where the limit is not above 0, or the price of a model is not known.
    """

    def __init__(self, settings: Settings, limit: float | None, spent: float = 0.0) -> None:
        if limit is not None and not limit > 0:
            raise InputError(f"is {limit}", hint="Give US dollars, above 0.", field="max_cost")
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
        self._spent, self._before, self._ended, self._under_way = spent, spent, 0, 0

    def begin(self, case: Case) -> bool:
        """Return whether one more audit may begin now.

        If not, and ``exhausted`` is not set, it may begin once the cost of those under way is
        known.
        """
        if self.limit is not None:
            spent = self._spent - self._before
            each = (
                spent / self._ended
                if self._ended
                else estimate(case, self._settings).cost_usd or 0.0
            )
            if self.exhausted or self._spent + (self._under_way + 1) * each > self.limit:
                self.exhausted = not self._under_way
                return False
        self._under_way += 1
        return True

    def record(self, usage: Usage | None) -> None:
        """Count an audit that ended and its usage; None where it has no result."""
        self._under_way -= 1
        self._ended += 1
        self._spent += (usage.cost_usd if usage else None) or 0.0

    def renew(self) -> None:
        """Begin anew, as on another day, to which the cost of what is under way belongs."""
        self._spent, self._before, self._ended, self.exhausted = 0.0, 0.0, 0, False

    def exhausted_message(self) -> str:
        """Say why no further audit begins."""
        spent, limit = dollars(self._spent), dollars(self.limit or 0.0)
        return (
            f"Not audited: with {spent} spent, one more audit could pass the limit of {limit}"
            " (max_cost)."
        )


class BatchItem(NamedTuple):
    """A case to audit: ``number`` is its place or its line, ``end`` where it ends in its file, in
    bytes.

    ``skip``: it has a run already and only keeps its place.
    """

    number: int
    case: Case
    end: int = 0
    skip: bool = False


class AuditFailure(NamedTuple):
    """An audit that raised instead of giving a run: what to say, and where it happened, for
    --debug.
    """

    message: str
    trace: str = ""


class OverBudget(NamedTuple):
    """An audit that did not begin since it could pass the limit on cost, and why in words."""

    why: str


Outcome: TypeAlias = Run | AuditFailure | OverBudget | None


class ItemResult(NamedTuple):
    """What became of a job; None where it was to be skipped."""

    job: BatchItem
    outcome: Outcome


class Abandoned(Exception):
    """The person would not wait: the audits under way are left as they are, to be resumed later."""


def guarded_audit(audit: Callable[[], Run]) -> Run | AuditFailure:
    """Return what the audit gives; whatever it raises fails this case only."""
    try:
        return audit()
    except MasisError as error:
        return AuditFailure(str(error), traceback.format_exc())
    except Exception as error:  # noqa: BLE001 (one case must not end the audit of the others; it is reported)
        return AuditFailure(f"{type(error).__name__}: {error}", traceback.format_exc())


def audit_in_threads(
    jobs: Iterable[BatchItem],
    audit: Callable[[BatchItem, Callable[[], bool]], Run | AuditFailure],
    *,
    at_once: int,
    budget: Budget | None = None,
    stopping: Callable[[], bool] = lambda: False,
) -> Iterator[ItemResult]:
    """Audit the jobs with ``audit(job, cancelled)``, ``at_once`` at a time, and yield what became
    of each, in order.

    Once ``stopping``, only what is under way is finished; an exception raised here, as by a second
    Ctrl-C, drops it.
    """
    dropped = threading.Event()

    def cancelled() -> bool:
        if dropped.is_set():
            raise Abandoned
        return False

    with ThreadPoolExecutor(at_once, thread_name_prefix="audit") as pool:

        def submit(job: BatchItem) -> Future[Outcome]:
            return pool.submit(contextvars.copy_context().run, audit, job, cancelled)

        try:
            yield from _results(jobs, submit, at_once, budget, stopping)
        except BaseException:
            dropped.set()
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
    """Audit the jobs in ``workers`` processes, and yield what became of each, in order.

    Once ``stopping``, only what is under way is finished. A worker that dies (out of memory, say)
    fails the cases that were under way with it and those after them. ``prepare`` is called first in
    each process.
    """
    # a fork would copy open connections to the database
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(
        workers, context, initializer=_begin_worker, initargs=(settings, prepare)
    ) as pool:

        def submit(job: BatchItem) -> Future[Outcome]:
            try:
                return pool.submit(_audit_in_worker, job.case)
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
    """Yield what becomes of each job, in order: ``at_once`` under way, as many results kept behind
    a slow one.
    """
    source, waiting, under_way = (
        iter(jobs),
        deque[tuple[BatchItem, Future[Outcome]]](),
        set[Future[Outcome]](),
    )

    def ended() -> Iterator[ItemResult]:
        """Wait until one has ended, count its cost, and yield what is ready."""
        nonlocal under_way
        done: set[Future[Outcome]] = set()
        # in short steps, between which the main thread heeds its signals
        while under_way and not done:
            done, under_way = wait(under_way, POLL_INTERVAL_S, FIRST_COMPLETED)
        for future in done:
            outcome = _worker_outcome(future)
            if budget is not None:
                budget.record(outcome.usage if isinstance(outcome, Run) else None)
        yield from ready()

    def ready() -> Iterator[ItemResult]:
        while waiting and waiting[0][1].done():
            job, future = waiting.popleft()
            yield ItemResult(job, _worker_outcome(future))

    while not stopping():
        while len(under_way) >= at_once or len(waiting) >= 2 * at_once:
            yield from ended()
        job = next(source, None)
        if job is None or stopping():
            break
        while not (job.skip or budget is None or budget.begin(job.case) or budget.exhausted):
            yield from ended()
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
            under_way.add(future)
            waiting.append((job, future))
        yield from ready()
    while waiting:
        if stopping():
            under_way = {future for future in under_way if not future.cancel()}
            waiting = deque((job, future) for job, future in waiting if not future.cancelled())
        yield from ended()


def _finished_future(outcome: Outcome) -> Future[Outcome]:
    future: Future[Outcome] = Future()
    future.set_result(outcome)
    return future


_WORKER_DIED = AuditFailure(
    "a worker process died (out of memory?). Run the command again with a smaller --concurrency."
)


def _worker_outcome(future: Future[Outcome]) -> Outcome:
    try:
        return future.result()
    except BrokenProcessPool:
        return _WORKER_DIED


# in a worker process

_settings = Settings()


def _begin_worker(settings: Settings, prepare: Callable[[Settings], None] | None) -> None:
    """Leave Ctrl-C to the parent, which asks for what is under way, and do not outlive it."""
    global _settings
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    _settings = settings
    if prepare is not None:
        prepare(settings)
    threading.Thread(target=_leave_with_parent, daemon=True).start()


def _leave_with_parent() -> None:
    if parent := multiprocessing.parent_process():
        multiprocessing.connection.wait([parent.sentinel])
        os._exit(1)  # a killed parent can't end its workers


def _audit_in_worker(case: Case) -> Run | AuditFailure:
    return guarded_audit(lambda: run_audit(case, _settings))

"""Audits of many cases in worker processes: results in the order of the cases, never more than a few cases in memory.

The offline auditor keeps a core busy, so processes, not threads, share the work. A worker sees no database: it takes a
case and gives a run; the caller stores it.
"""

from __future__ import annotations

import multiprocessing
import multiprocessing.connection
import multiprocessing.util
import os
import signal
import threading
import traceback
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Executor, Future, ProcessPoolExecutor, ThreadPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import suppress
from functools import partial
from typing import NamedTuple

from masis import run_audit
from masis.audit.concurrency import settled
from masis.errors import MasisError
from masis.schema.case import Case
from masis.schema.run import Run
from masis.settings import Settings

AHEAD = 4
"""Cases handed out for each worker, so that none waits while a slow one is waited for."""


class Failed(NamedTuple):
    """An audit that raised instead of giving a run: what to say, and where it happened, for --debug."""

    message: str
    trace: str = ""


class Job(NamedTuple):
    """A case with the line it stood in; not ``wanted`` where it has a run already and only keeps its place."""

    line: int
    end: int
    case: Case
    wanted: bool


class Done(NamedTuple):
    """What became of a job: a run, a failure, or None where nothing was to do."""

    job: Job
    outcome: Run | Failed | None


def audit_in_processes(
    jobs: Iterable[Job], settings: Settings, *, workers: int, stopping: Callable[[], bool]
) -> Iterator[Done]:
    """Audit the jobs in ``workers`` processes. Once ``stopping``, only what is under way is finished.

    A worker that dies (out of memory, say) fails the cases that were under way with it and those after them.
    """
    waiting: deque[tuple[Job, Future[Run | Failed | None]]] = deque()
    context = multiprocessing.get_context("spawn")  # a fork would copy open connections to the database
    with ProcessPoolExecutor(workers, context, initializer=_prepare, initargs=(settings,)) as pool:
        for job in jobs:
            waiting.append((job, _submit(pool, job)))
            if len(waiting) >= workers * AHEAD:
                yield _done(*waiting.popleft())
        while waiting:
            job, future = waiting.popleft()
            if not (stopping() and job.wanted and future.cancel()):
                yield _done(job, future)


def guarded_audit(audit: Callable[[], Run]) -> Run | Failed:
    """What the audit gives; whatever it raises fails this case only."""
    try:
        return audit()
    except MasisError as error:
        return Failed(str(error), traceback.format_exc())
    except Exception as error:  # noqa: BLE001 (one case must not end the audit of the others; it is reported)
        return Failed(f"{type(error).__name__}: {error}", traceback.format_exc())


_WORKER_DIED = Failed("a worker process died (out of memory?). Run the command again with a smaller --concurrency.")
_settings = Settings()


def _prepare(settings: Settings) -> None:
    """In a worker: leave Ctrl-C to the parent, which asks for what is under way, and do not outlive it."""
    global _settings
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    _settings = settings
    if settings.telemetry != "off":
        from masis.integrations import telemetry

        telemetry.start(settings)
        multiprocessing.util.Finalize(None, telemetry.end, exitpriority=100)  # such a process runs no atexit
    threading.Thread(target=_leave_with_parent, daemon=True).start()


def _leave_with_parent() -> None:
    if parent := multiprocessing.parent_process():
        multiprocessing.connection.wait([parent.sentinel])
        os._exit(1)  # a killed parent can't tell its workers to go


def _audit(case: Case) -> Run | Failed:
    return guarded_audit(lambda: run_audit(case, _settings))


def _submit(pool: Executor, job: Job) -> Future[Run | Failed | None]:
    settled: Future[Run | Failed | None] = Future()
    if not job.wanted:
        settled.set_result(None)
        return settled
    try:
        return pool.submit(_audit, job.case)
    except BrokenProcessPool:
        settled.set_result(_WORKER_DIED)
        return settled


def _done(job: Job, future: Future[Run | Failed | None]) -> Done:
    try:
        return Done(job, settled(future))
    except BrokenProcessPool:
        return Done(job, _WORKER_DIED)


# Audits of many cases on threads, where the roles wait for models: one process, one limit of calls a provider.
#
# Each audit keeps its run in the database as it goes, so that one cut short is taken up after its last finished step
# and what was paid for is not paid for again. Results come in the order of the cases.

AUDITS_A_CALL = 4
"""Audits under way for each call that may be: while one reads a reply, another has its call at the provider."""


class _NotBegun(Exception):
    """The stop came before a queued audit began; it costs nothing and is not counted."""


class Dropped(Exception):
    """The person would not wait: the audits under way are left as they are, to be taken up later."""


def audit_in_threads(
    jobs: Iterable[Job],
    audit: Callable[[Case, Callable[[], bool]], Run],
    *,
    concurrency: int,
    stopping: Callable[[], bool],
) -> Iterator[Done]:
    """Audit the jobs with ``audit(case, cancelled)``, ``concurrency`` calls at once to a provider.

    Once ``stopping``, only what is under way is finished; an exception raised here, as by a second Ctrl-C, drops it.
    """
    dropped = threading.Event()

    def cancelled() -> bool:
        if dropped.is_set():
            raise Dropped
        return False

    at_once = concurrency * AUDITS_A_CALL
    waiting: deque[tuple[Job, Future[Run | Failed | None]]] = deque()
    with ThreadPoolExecutor(at_once, thread_name_prefix="audit") as pool:
        try:
            for job in jobs:
                waiting.append((job, _threads_submit(pool, audit, job, cancelled, stopping)))
                while len(waiting) > at_once or (waiting and waiting[0][1].done()):
                    yield from _threads_done(*waiting.popleft())
            while waiting:
                job, future = waiting.popleft()
                if not (stopping() and job.wanted and future.cancel()):
                    yield from _threads_done(job, future)
        except BaseException:
            dropped.set()
            pool.shutdown(wait=False, cancel_futures=True)
            raise


def _threads_submit(
    pool: ThreadPoolExecutor,
    audit: Callable[[Case, Callable[[], bool]], Run],
    job: Job,
    cancelled: Callable[[], bool],
    stopping: Callable[[], bool],
) -> Future[Run | Failed | None]:
    def begin() -> Run | Failed | None:
        if stopping():  # a thread that became free must not take the next from the queue
            raise _NotBegun
        return guarded_audit(partial(audit, job.case, cancelled))

    if job.wanted:
        return pool.submit(begin)
    settled: Future[Run | Failed | None] = Future()
    settled.set_result(None)
    return settled


def _threads_done(job: Job, future: Future[Run | Failed | None]) -> Iterator[Done]:
    with suppress(_NotBegun):
        yield Done(job, settled(future))

"""Audits of many cases on threads, where the roles wait for models: one process, one limit of calls a provider.

Each audit keeps its run in the database as it goes, so that one cut short is taken up after its last finished step and
what was paid for is not paid for again. Results come in the order of the cases.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial

from masis.cli.workers import Done, Failed, Job, guarded_audit
from masis.schema.case import Case
from masis.schema.run import Run

AUDITS_A_CALL = 4
"""Audits under way for each call that may be: while one reads a reply, another has its call at the provider."""


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
                waiting.append((job, _submit(pool, audit, job, cancelled)))
                while len(waiting) > at_once or (waiting and waiting[0][1].done()):
                    yield _done(*waiting.popleft())
            while waiting:
                job, future = waiting.popleft()
                if not (stopping() and job.wanted and future.cancel()):
                    yield _done(job, future)
        except BaseException:
            dropped.set()
            pool.shutdown(wait=False, cancel_futures=True)
            raise


def _submit(
    pool: ThreadPoolExecutor,
    audit: Callable[[Case, Callable[[], bool]], Run],
    job: Job,
    cancelled: Callable[[], bool],
) -> Future[Run | Failed | None]:
    if job.wanted:
        return pool.submit(guarded_audit, partial(audit, job.case, cancelled))
    settled: Future[Run | Failed | None] = Future()
    settled.set_result(None)
    return settled


def _done(job: Job, future: Future[Run | Failed | None]) -> Done:
    return Done(job, future.result())

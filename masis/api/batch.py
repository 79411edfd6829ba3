"""Many audits from Python: several at once, with a progress bar, and what is finished kept on Ctrl-C."""

from __future__ import annotations

import contextvars
import threading
from collections.abc import Iterable, Mapping
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from typing import Any

from tqdm import tqdm

from masis.api.audits import chosen_settings
from masis.api.roles import build_roles, calls_at_once, uses_models, with_concurrency
from masis.audit import loop
from masis.errors import InputError
from masis.observers import observation
from masis.schema.case import Case, case_of
from masis.schema.run import Run
from masis.settings import Settings


def audit_many(
    cases: Iterable[Case | Mapping[str, Any]],
    settings: Settings | None = None,
    *,
    concurrency: int | None = None,
    progress: bool = True,
) -> list[Run]:
    """Audit many cases and return their runs, in the order of the cases.

    Ctrl-C begins no further audit, cancels those under way, and returns the finished runs alone; a second Ctrl-C
    leaves at once. A step that fails is recorded on its run, never raised.

    Args:
        cases: The cases, or mappings of their fields; no more are taken from an iterator than are audited.
        settings: As for ``run_audit``.
        concurrency: How many audits at once; with models, also how many calls go to each provider at once. Default:
            what the settings say of the provider, else 1.
        progress: Whether to show a bar on stderr.

    Raises:
        InputError: ``cases`` is one case, or holds something else than cases, or ``concurrency`` is below 1.

    """
    if isinstance(cases, Case | Mapping | str):
        raise InputError("is one case, not several", cure="Put it into a list.", field="cases")
    if concurrency is not None and concurrency < 1:
        raise InputError(f"is {concurrency}", cure="Give a number from 1 on.", field="concurrency")
    chosen = chosen_settings(settings)
    if uses_models(chosen):
        chosen = with_concurrency(chosen, concurrency)
    at_once = concurrency or calls_at_once(chosen)
    total = len(cases) if isinstance(cases, list | tuple) else None
    with tqdm(total=total, disable=not progress, desc="Auditing", unit="case") as bar:
        return _Batch(chosen, bar).run(iter(enumerate(cases)), at_once)


class _Batch:
    """The audits of one call."""

    def __init__(self, settings: Settings, bar: tqdm[None]) -> None:
        self._settings, self._bar, self._stop = settings, bar, threading.Event()
        self._finished: dict[int, Run] = {}
        self._flagged = 0

    def run(self, cases: Iterable[tuple[int, Case | Mapping[str, Any]]], at_once: int) -> list[Run]:
        waiting, under_way, more = iter(cases), dict[Future[Run], int](), True
        with ThreadPoolExecutor(at_once, thread_name_prefix="audit") as pool:
            try:
                while more or under_way:
                    while more and len(under_way) < at_once:
                        place, case = next(waiting, (-1, None))
                        more = case is not None
                        if case is not None:
                            context = contextvars.copy_context()
                            under_way[pool.submit(context.run, self._audit, case_of(case, f"cases[{place}]"))] = place
                    for future in wait(under_way, return_when=FIRST_COMPLETED).done:
                        self._take(under_way.pop(future), future.result())
            except KeyboardInterrupt:
                self._stop.set()
                self._bar.write(f"Interrupted: {len(self._finished):,} audits are finished and returned.")
            except BaseException:
                self._stop.set()  # the pool waits for what is under way, which is not paid for any longer
                raise
        return [self._finished[place] for place in sorted(self._finished)]

    def _audit(self, case: Case) -> Run:
        work = loop.audit(
            case,
            build_roles(self._settings),
            self._settings,
            run_id=loop.new_run_id(),
            case_digest=case.digest(),
            cancelled=self._stop.is_set,
        )
        return observation.run_to_completion(work, None, observation.AuditStart(case))

    def _take(self, place: int, run: Run) -> None:
        self._finished[place] = run
        self._flagged += run.needs_review
        self._bar.set_postfix_str(f"{self._flagged:,} need review", refresh=False)
        self._bar.update()

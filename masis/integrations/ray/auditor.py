"""What a worker does: audits the rows of a chunk, with roles and connections that stay warm, and writes its shard."""

from __future__ import annotations

from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from typing import Any, NamedTuple

from masis.api.audits import run_audit
from masis.api.roles import estimate, uses_models
from masis.datasets.lake import Origin, audited_row, failed_row
from masis.integrations import telemetry
from masis.integrations.ray.inputs import Chunk, cases_of
from masis.integrations.ray.ledger import Spent
from masis.integrations.ray.permits import ClusterGate
from masis.integrations.ray.shards import Lake
from masis.llm.client import limits
from masis.schema.case import Case
from masis.schema.run import Run
from masis.settings import Settings


class Work(NamedTuple):
    """What every worker needs: the settings, where to write, audits at once, and the tries of a case that raises."""

    settings: Settings
    out: str
    at_once: int
    tries: int
    max_cost: bool


class Auditor:
    """A worker of the pool. ``ledger`` and ``permits`` are actors: the job's, and one for each provider by address."""

    def __init__(self, work: Work, ledger: Any, permits: Any) -> None:
        self.work, self.ledger, self.lake = work, ledger, Lake(work.out)
        self.pool = ThreadPoolExecutor(work.at_once, thread_name_prefix="audit")
        telemetry.start(work.settings)
        if uses_models(work.settings):
            limits.use_gates(lambda address: ClusterGate(_RemotePermits(permits, address)))

    def __call__(self, batch: dict[str, Any]) -> dict[str, Any]:
        """Audit a batch of one chunk; returns its shard's name, and whether it is complete."""
        names = Chunk._fields
        chunk = Chunk(**{name: _plain(batch[name][0]) for name in names})
        complete = _Shard(self, chunk).run()
        return {"shard": [chunk.shard], "complete": [complete]}


class _Shard:
    """One try at a shard."""

    def __init__(self, auditor: Auditor, chunk: Chunk) -> None:
        self.auditor, self.chunk, self.shard = auditor, chunk, chunk.shard
        self.work, self.ledger, self.lake = auditor.work, auditor.ledger, auditor.lake
        self.rows: dict[int, dict[str, Any]] = {}
        self.stopped = False
        self.token = 0

    def run(self) -> bool:
        """Audit what is not written yet; returns whether the shard is complete."""
        self.token, suspects = _got(self.ledger.start.remote(self.shard))
        self.rows = self.lake.written(self.shard)
        wanted = [each for each in cases_of(self.chunk) if each[0] not in self.rows]
        # What was under way when a worker died is done alone and written at once: one of them may have ended it.
        for each in [each for each in wanted if each[0] in suspects]:
            self._take(each[0], self._audited(*each))
            self._write()
        self._all([each for each in wanted if each[0] not in suspects])
        if wanted:
            self._write()
        if not self.stopped:
            self.lake.complete(self.chunk)
            self.ledger.complete.remote(self.shard, self.chunk.size)
        return not self.stopped

    def _all(self, wanted: list[tuple[int, Case | None, str | None]]) -> None:
        if self.work.at_once == 1:
            for each in wanted:
                self._take(each[0], self._audited(*each))
            return
        waiting: dict[Future[dict[str, Any] | None], int] = {}
        left = iter(wanted)
        for each in left:
            waiting[self.auditor.pool.submit(self._audited, *each)] = each[0]
            if len(waiting) >= self.work.at_once:
                self._some(waiting)
        while waiting:
            self._some(waiting)

    def _some(self, waiting: dict[Future[dict[str, Any] | None], int]) -> None:
        for future in wait(waiting, return_when=FIRST_COMPLETED).done:
            self._take(waiting.pop(future), future.result())

    def _take(self, number: int, row: dict[str, Any] | None) -> None:
        if row is not None:
            self.rows[number] = row

    def _audited(self, number: int, case: Case | None, problem: str | None) -> dict[str, Any] | None:
        """Return the row of an audit, or of its failure; None where no further audit may begin."""
        origin = Origin(source=self.chunk.source, source_offset=self.chunk.offset, source_row=number)
        if case is None:
            return self._aside(number, failed_row(None, problem or "holds no case", origin, tries=0))
        for _ in range(self.work.tries):
            row = self._tried(number, case, origin)
            if row is not _AGAIN:
                return row
        return None

    def _tried(self, number: int, case: Case, origin: Origin) -> dict[str, Any] | None:
        usd = (estimate(case, self.work.settings).cost_usd or 0.0) if self.work.max_cost else 0.0
        what, tries = _got(self.ledger.begin.remote(self.shard, number, usd))
        if what == "stop":
            self.stopped = True
            return None
        if what == "set_aside":
            message = f"the worker ended {tries} times while this case was audited (out of memory?)"
            return self._aside(number, failed_row(case, message, origin, tries=tries))
        try:
            run = run_audit(case, self.work.settings)
        except Exception as error:  # noqa: BLE001 (one case must not end the audit of the others; it is reported)
            message = f"{type(error).__name__}: {error}"
            if tries < self.work.tries:
                self.ledger.again.remote(self.shard)
                return _AGAIN
            self.ledger.ended.remote(self.shard, number, Spent("failed"))
            self.ledger.failed.remote(f"case {case.id!r}: {message}")
            return failed_row(case, message, origin, tries=tries)
        row = audited_row(case, run, origin, tries=tries)
        self.ledger.ended.remote(self.shard, number, _spent(run, row["outcome"]))
        return row

    def _aside(self, number: int, row: dict[str, Any]) -> dict[str, Any]:
        named = f"case {row['case_id']!r}: " if row.get("case_id") else ""
        self.ledger.set_aside.remote(self.shard, number, f"{named}{row['error']}")
        return row

    def _write(self) -> None:
        if _got(self.ledger.may_write.remote(self.shard, self.token)):
            self.lake.write(self.shard, self.rows.values())
            self.ledger.written.remote(self.shard)


_AGAIN: dict[str, Any] = {}
"""That an audit raised and has a try left."""


class _RemotePermits:
    """The named actor with the permits of an address."""

    def __init__(self, permits: Any, address: str) -> None:
        self._permits, self._address = permits, address

    def take(self) -> tuple[bool, float]:
        found: tuple[bool, float] = _got(self._permits.take.remote(self._address))
        return found

    def answered(self) -> None:
        self._permits.answered.remote(self._address)

    def refused(self, retry_after_s: float | None) -> None:
        self._permits.refused.remote(self._address, retry_after_s)


def _got(reference: Any) -> Any:
    import ray

    return ray.get(reference)


def _plain(value: Any) -> Any:
    return value.item() if hasattr(value, "item") else value


def _spent(run: Run, outcome: str) -> Spent:
    usage = run.usage
    tokens = usage.prompt_tokens + usage.completion_tokens
    return Spent(outcome, run.incomplete, usage.calls, tokens, usage.cost_usd or 0.0)

"""What a worker does: audits the rows of a chunk, with roles and connections that stay warm, and writes its shard."""

from __future__ import annotations

from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor, as_completed
from typing import Any, NamedTuple

from masis.api.audits import run_audit
from masis.api.roles import estimate
from masis.datasets.lake import Origin, audited_row, failed_row
from masis.integrations import telemetry
from masis.integrations.ray.inputs import Chunk, cases_of
from masis.integrations.ray.ledger import Spent
from masis.integrations.ray.shards import Lake
from masis.schema.case import Case
from masis.settings import Settings


class Work(NamedTuple):
    """What every worker needs: the settings, where to write, audits at once, and the tries of a case that raises."""

    settings: Settings
    out: str
    at_once: int
    tries: int
    max_cost: bool


Entry = tuple[int, Case | None, str | None]


class Auditor:
    """A worker of the pool; ``ledger`` is the job's actor."""

    def __init__(self, work: Work, ledger: Any) -> None:
        self.work, self.ledger, self.lake = work, ledger, Lake(work.out)
        self.pool = ThreadPoolExecutor(work.at_once, thread_name_prefix="audit")
        telemetry.start(work.settings)

    def __call__(self, batch: dict[str, Any]) -> dict[str, Any]:
        """Audit a batch of one chunk; returns its shard's name, and whether it is complete."""
        values = {name: batch[name][0] for name in Chunk._fields}
        chunk = Chunk(**{name: value.item() if hasattr(value, "item") else value for name, value in values.items()})
        return {"shard": [chunk.shard], "complete": [self._complete(chunk)]}

    def _complete(self, chunk: Chunk) -> bool:
        """Audit what is not written yet; returns whether the shard is complete."""
        shard, token = chunk.shard, self._asked("start", chunk.shard)
        rows = self.lake.written(shard)
        left = [each for each in cases_of(chunk) if each[0] not in rows]

        def write(found: Iterable[dict[str, Any] | None]) -> bool:
            rows.update({row["source_row"]: row for row in found if row is not None})
            if left and self._asked("may_write", shard, token):
                self.lake.write(shard, rows.values())
            return all(number in rows for number, _, _ in left)

        if token > 1:
            # A worker ended in this shard: each row is audited alone and written at once, since one of them ended it.
            whole = [write([self._audited(chunk, each)]) for each in left][-1:] != [False]
        else:
            waiting = [self.pool.submit(self._audited, chunk, each) for each in left]
            whole = write(future.result() for future in as_completed(waiting))
        if whole:
            self.lake.complete(chunk)
            self._asked("complete", shard, chunk.size)
        return whole

    def _audited(self, chunk: Chunk, entry: Entry) -> dict[str, Any] | None:
        """Return the row of an audit, or of its failure; None where no further audit may begin."""
        number, case, problem = entry
        origin = Origin(source=chunk.source, source_offset=0, source_row=number)

        def failed(message: str, tries: int) -> dict[str, Any]:
            named = f"case {case.id!r}: " if case else ""
            self.ledger.ended.remote(chunk.shard, number, Spent("failed"), f"{named}{message}")
            return failed_row(case, message, origin, tries=tries)

        if case is None:
            return failed(problem or "holds no case", 0)
        while True:
            usd = (estimate(case, self.work.settings).cost_usd or 0.0) if self.work.max_cost else 0.0
            what, tries = self._asked("begin", chunk.shard, number, usd)
            if what == "stop":
                return None
            if what == "set_aside":
                return failed(f"the worker ended {tries} times while this case was audited (out of memory?)", tries)
            try:
                run = run_audit(case, self.work.settings)
            except Exception as error:  # noqa: BLE001 (one case must not end the audit of the others; it is reported)
                if tries >= self.work.tries:
                    return failed(f"{type(error).__name__}: {error}", tries)
                self.ledger.ended.remote(chunk.shard, number, None)
                continue
            row, usage = audited_row(case, run, origin, tries=tries), run.usage
            tokens = usage.prompt_tokens + usage.completion_tokens
            spent = Spent(row["outcome"], run.incomplete, usage.calls, tokens, usage.cost_usd or 0.0)
            self.ledger.ended.remote(chunk.shard, number, spent)
            return row

    def _asked(self, what: str, *arguments: Any) -> Any:
        import ray

        return ray.get(getattr(self.ledger, what).remote(*arguments))

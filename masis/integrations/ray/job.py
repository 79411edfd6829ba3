"""The driver of a job. It hands the remaining chunks to Ray Data, shows progress, and leaves no
process behind.

Each worker audits the rows of a chunk and writes its shard. It keeps its roles and connections
between chunks.
"""

from __future__ import annotations

import logging
import math
import os
import shutil
import tempfile
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import ExitStack, contextmanager, suppress
from datetime import timedelta
from hashlib import blake2b
from pathlib import Path
from typing import Any, NamedTuple

from masis.api.audits import run_audit
from masis.api.batch import AUDITS_PER_CALL
from masis.api.roles import calls_at_once, estimate, uses_models, with_concurrency
from masis.datasets.lake import RecordOrigin, audited_row, failed_row
from masis.datasets.mapping.profile import Profile
from masis.errors import InputError, MasisError
from masis.integrations import require, telemetry
from masis.integrations.ray import inputs, shards
from masis.integrations.ray.inputs import Chunk, InputFile, cases_of
from masis.integrations.ray.ledger import Ledger, SpentUsage, Totals
from masis.schema.case import Case
from masis.settings import Settings
from masis.settings.environment import quiet_ray

STORE_BYTES = 256 * 2**20
"""Ray's object store on a machine of our own: only chunks pass through it, and Ray Data lets few
wait.
"""
READERS = 4
"""Files that are read at once: one reader feeds many auditors."""
LOOKED_EVERY = timedelta(seconds=1)
"""How often progress is asked for."""


class RayAudit(NamedTuple):
    """An audit on Ray.

    Args:
        place: A file or folder to read, or an address that fsspec reads.
        out: The folder to write, or such an address.
        settings: Those of the audits.
        profile: Whose format the input has; recognised where None.
        address: The cluster; None starts Ray on this machine.
        workers: Audits (with models: calls to each provider) at once; None is the number of cores.
        max_cost: US dollars, over all workers.
        tries: How often an audit is begun that raises, or ends its worker.
        chunk: Cases that are written together.

    """

    place: str
    out: str
    settings: Settings
    profile: Profile | None = None
    address: str | None = None
    workers: int | None = None
    max_cost: float | None = None
    tries: int = 3
    chunk: int = inputs.CHUNK_CASES


class Report(NamedTuple):
    """The result of one run of the job, and whether the output is complete."""

    totals: Totals
    complete: bool


Watch = Callable[[Totals, int, int], bool]
"""Called once a second with what is done, the bytes of the input, and those done before; returns
whether to stop.
"""


def audit_on_ray(
    job: RayAudit,
    watch: Watch = lambda totals, total, before: False,
    failed: Callable[[str], object] = lambda error: None,
) -> Report:
    """Audit what is not audited yet, and return what was done.

    The audits under way are finished once ``watch`` returns True; ``failed`` is given the message
    of each case that was set aside, up to a limit. Raises MissingExtra where Ray is not installed,
    InputError where the input can't be read or the output folder holds something else or is being
    written, and MasisError where Ray ended the job: given again, it goes on.
    """
    require("--engine ray needs the package Ray", "ray", "ray")
    parts = inputs.parts_of(job.place)
    lake = shards.Lake(job.out)
    lake.prepare(
        {
            "version": 1,
            "parts": {part.name: part.size for part in parts},
            "settings": job.settings.of_audit(),
            "profile": job.profile.name if job.profile else None,
            "chunk": job.chunk,
        }
    )
    found = lake.completed_chunks()
    done = {part.name: found.get(part.name, shards.CompletedChunks({}, False)) for part in parts}
    left = [part for part in parts if not done[part.name].whole]
    total = sum(part.size for part in parts)
    before = sum(
        part.size if part not in left else sum(done[part.name].chunks.values()) for part in parts
    )
    if not left:
        return Report(Totals(), True)
    with lake.lock(), _cluster(job) as (ray, cores):
        ledger = _ledger(ray, job)
        try:
            with _watch_ledger(ray, ledger, lambda totals: watch(totals, total, before), failed):
                complete = _run_dataset(
                    job,
                    left,
                    {name: tuple(each.chunks) for name, each in done.items()},
                    cores,
                    ledger,
                )
            totals: Totals = ray.get(ledger.totals.remote())
            for error in ray.get(ledger.errors.remote()):
                failed(error)
        except ray.exceptions.RayError as error:
            reason = str(error).strip().splitlines()[-1][:500]
            raise MasisError(
                f"Ray ended the job: {reason}. The same command goes on from here."
            ) from error
        finally:
            ray.kill(ledger)
    return Report(totals, complete)


def _run_dataset(
    job: RayAudit, left: list[InputFile], done: dict[str, tuple[int, ...]], cores: int, ledger: Any
) -> bool:
    """Let Ray Data read and audit; returns whether every shard is complete."""
    from ray import data

    place, profile, size = job.place, job.profile, job.chunk

    def read(row: dict[str, Any]) -> Iterator[dict[str, Any]]:
        part = InputFile(**row)
        return (
            chunk._asdict()
            for chunk in inputs.chunks_of(part, place, profile, size, done.get(part.name, ()))
        )

    work, at_once, workers = _plan_workers(job, cores)
    logging.getLogger("ray.data").setLevel(logging.ERROR)
    context = data.DataContext.get_current()
    context.enable_progress_bars = False
    context.print_on_execution_start = False
    # a block for each chunk: they are what is handed out, not megabytes of rows
    context.target_max_block_size = 1
    dataset = data.from_items([part._asdict() for part in left], override_num_blocks=len(left))
    # Readers mostly wait for the auditors: were they counted as cores, they would keep one from
    # auditing.
    chunks = dataset.flat_map(
        read, num_cpus=0, compute=data.TaskPoolStrategy(size=min(len(left), workers, READERS))
    )
    audited = chunks.map(
        Auditor,
        fn_constructor_args=(work, at_once, ledger),
        compute=data.ActorPoolStrategy(
            min_size=1, max_size=workers, initial_size=workers, max_tasks_in_flight_per_actor=2
        ),
        num_cpus=1,
    )
    # to the end, even where one is not complete
    complete = [row["complete"] for row in audited.iter_rows()]
    return all(complete)


def _plan_workers(job: RayAudit, cores: int) -> tuple[RayAudit, int, int]:
    """What each worker does, its audits at once, and how many workers there are.

    With models they share the calls at once that were asked for.
    """
    calls = max(1, job.workers or calls_at_once(job.settings))
    if not uses_models(job.settings):
        return job, 1, job.workers or cores
    workers = min(cores, calls)
    each = math.ceil(calls / workers)
    return (
        job._replace(settings=with_concurrency(job.settings, each)),
        each * AUDITS_PER_CALL,
        workers,
    )


@contextmanager
def _cluster(job: RayAudit) -> Iterator[tuple[Any, int]]:
    """Give Ray and its cores: the cluster named, the one this process is in, else one of our own
    that ends with it.
    """
    quiet_ray()
    import ray

    with ExitStack() as undo:
        if not ray.is_initialized():
            own: dict[str, Any] = {}
            if not job.address:
                own["_temp_dir"] = _own_folder()
                undo.callback(shutil.rmtree, own["_temp_dir"], ignore_errors=True)
                own["num_cpus"] = (
                    job.workers if job.workers and not uses_models(job.settings) else None
                )
                own |= {"object_store_memory": STORE_BYTES, "include_dashboard": False}
            quiet: dict[str, Any] = {"logging_level": "ERROR", "log_to_driver": False}
            ray.init(address=job.address or "local", namespace="masis", **quiet, **own)
            undo.callback(ray.shutdown)
        yield ray, max(1, int(ray.cluster_resources().get("CPU", 1)))


def _own_folder() -> str:
    """Return a new folder for Ray's sockets and logs, named by this process; remove those whose
    process was killed.
    """
    for left in Path(tempfile.gettempdir()).glob(f"{_FOLDER}*"):
        owner = left.name.removeprefix(_FOLDER).partition("-")[0]
        if owner.isdigit() and not Path(f"/proc/{owner}").exists() and Path("/proc/self").exists():
            shutil.rmtree(left, ignore_errors=True)
    return tempfile.mkdtemp(prefix=f"{_FOLDER}{os.getpid()}-")


_FOLDER = "masis-ray-"


def _ledger(ray: Any, job: RayAudit) -> Any:
    """Return the job's ledger: a named actor that takes no core and lives on the driver's node,
    which it ends with.

    Raises InputError where another job writes to the same folder.
    """
    from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

    here = NodeAffinitySchedulingStrategy(ray.get_runtime_context().get_node_id(), soft=False)
    name = f"masis-ledger-{blake2b(job.out.encode(), digest_size=8).hexdigest()}"
    if any(each["name"] == name for each in ray.util.list_named_actors(all_namespaces=True)):
        raise InputError(
            "is being written by another audit", hint="Wait for its end.", field="--out"
        )
    made = ray.remote(Ledger).options(name=name, num_cpus=0, scheduling_strategy=here)
    return made.remote(job.tries, job.max_cost)


def _watch_ledger(
    ray: Any, ledger: Any, watch: Callable[[Totals], bool], failed: Callable[[str], object]
) -> Any:
    """Show progress from another thread while the dataset is worked off; ask the ledger to stop
    when it is asked to.
    """
    # here: workers import this module, and need no services
    from masis.services.background import RepeatedTask

    def look(over: Callable[[], bool]) -> None:
        with suppress(ray.exceptions.RayError):  # the job ends too, and says why
            totals, errors = ray.get([ledger.totals.remote(), ledger.errors.remote()], timeout=10)
            for error in errors:
                failed(error)
            if watch(Totals(*totals)):
                ledger.stop.remote()

    return RepeatedTask(look, LOOKED_EVERY, "progress")


# The workers.


Entry = tuple[int, Case | None, str | None]


class Auditor:
    """A worker of the pool; ``ledger`` is the job's actor."""

    def __init__(self, work: RayAudit, at_once: int, ledger: Any) -> None:
        self.work, self.ledger, self.lake = work, ledger, shards.Lake(work.out)
        self.pool = ThreadPoolExecutor(at_once, thread_name_prefix="audit")
        telemetry.start(work.settings)

    def __call__(self, row: dict[str, Any]) -> dict[str, Any]:
        """Audit a chunk; returns its shard's name, and whether it is complete."""
        chunk = Chunk(**row)
        return {"shard": chunk.shard, "complete": self._complete(chunk)}

    def _complete(self, chunk: Chunk) -> bool:
        """Audit what is not written yet; returns whether the shard is complete."""
        shard, number_of_try = chunk.shard, self._ask_ledger("start", chunk.shard)
        rows = self.lake.written_rows(shard)
        left = [each for each in cases_of(chunk) if each[0] not in rows]

        def write(found: Iterable[dict[str, Any] | None]) -> bool:
            rows.update({row["source_row"]: row for row in found if row is not None})
            if left and self._ask_ledger("may_write", shard, number_of_try):
                self.lake.write(shard, rows.values())
            return all(number in rows for number, _, _ in left)

        if number_of_try > 1:
            # A worker ended in this shard: each row is audited alone and written at once, since one
            # of them ended it.
            whole = [write([self._audit_entry(chunk, each)]) for each in left][-1:] != [False]
        else:
            waiting = [self.pool.submit(self._audit_entry, chunk, each) for each in left]
            whole = write(future.result() for future in as_completed(waiting))
        if whole:
            self.lake.complete(chunk)
            self._ask_ledger("complete", shard, chunk.size)
        return whole

    def _audit_entry(self, chunk: Chunk, entry: Entry) -> dict[str, Any] | None:
        """Return the row of an audit, or of its failure; None where no further audit may begin."""
        number, case, problem = entry
        origin = RecordOrigin(source=chunk.source, source_offset=0, source_row=number)

        def failed(message: str, tries: int) -> dict[str, Any]:
            named = f"case {case.id!r}: " if case else ""
            self.ledger.record_end.remote(
                chunk.shard, number, SpentUsage("failed"), f"{named}{message}"
            )
            return failed_row(case, message, origin, tries=tries)

        if case is None:
            return failed(problem or "holds no case", 0)
        while True:
            usd = (
                (estimate(case, self.work.settings).cost_usd or 0.0)
                if self.work.max_cost is not None
                else 0.0
            )
            what, tries = self._ask_ledger("begin", chunk.shard, number, usd)
            if what == "stop":
                return None
            if what == "set_aside":
                return failed(
                    f"the worker ended {tries} times while this case was audited (out of memory?)",
                    tries,
                )
            try:
                run = run_audit(case, self.work.settings)
            except Exception as error:  # noqa: BLE001 (one case must not end the audit of the others; it is reported)
                if tries >= self.work.tries:
                    return failed(f"{type(error).__name__}: {error}", tries)
                self.ledger.record_end.remote(chunk.shard, number, None)
                continue
            row, usage = audited_row(case, run, origin, tries=tries), run.usage
            tokens = usage.prompt_tokens + usage.completion_tokens
            spent = SpentUsage(
                row["outcome"], run.incomplete, usage.calls, tokens, usage.cost_usd or 0.0
            )
            self.ledger.record_end.remote(chunk.shard, number, spent)
            return row

    def _ask_ledger(self, what: str, *arguments: Any) -> Any:
        import ray

        return ray.get(getattr(self.ledger, what).remote(*arguments))

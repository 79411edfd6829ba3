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
from masis.integrations import telemetry
from masis.integrations.ray import inputs, shards
from masis.integrations.ray.inputs import Chunk, InputFile, cases_of
from masis.integrations.ray.ledger import Ledger, SpentUsage, Totals
from masis.schema.case import Case
from masis.schema.extras import require
from masis.settings import Settings
from masis.settings.environment import quiet_ray

STORE_BYTES = 256 * 2**20
"""The size of the object store of a local Ray. It can be small, because it only contains chunks,
and Ray Data lets few of them wait.
"""
READERS = 4
"""Maximum number of files that are read at once. One reader supplies many auditors."""
PROGRESS_INTERVAL = timedelta(seconds=1)


class RayAudit(NamedTuple):
    """An audit on Ray.

    Args:
        place: The file or folder to read, or an fsspec address.
        out: The folder to write, or an fsspec address.
        settings: The settings of the audits.
        profile: The format of the input. It's recognized if None.
        address: The cluster's address. If None, Ray is started on this machine.
        workers: The most concurrent audits, or calls to each provider if models are used. By
            default the number of cores.
        max_cost: The most US dollars, over all workers.
        tries: How often an audit is tried if it raises or its worker ends.
        chunk: The number of cases that are written together.

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
"""Called once a second with the totals so far, the bytes of the input, and the bytes that earlier
jobs completed. Returns whether to stop.
"""


def audit_on_ray(
    job: RayAudit,
    watch: Watch = lambda totals, total, before: False,
    failed: Callable[[str], object] = lambda error: None,
) -> Report:
    """Audit the cases that aren't audited yet, and return the totals.

    When ``watch`` returns True, audits in progress are finished, and no others begin. ``failed``
    receives the messages of failed cases, up to a limit.

    Raises:
        MissingExtra: Ray isn't installed.
        InputError: The input can't be read, or the output folder contains something else or is
            being written.
        MasisError: Ray ended the job. The same call resumes it.

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
    completed = lake.completed_chunks()
    done: dict[str, tuple[int, ...]] = {}
    left, total, before = list[InputFile](), 0, 0
    for part in parts:
        chunks, whole = completed.get(part.name, ({}, False))
        done[part.name] = tuple(chunks)
        total += part.size
        before += part.size if whole else sum(chunks.values())
        if not whole:
            left.append(part)
    if not left:
        return Report(Totals(), True)
    with lake.lock(), _cluster(job) as (ray, cores):
        ledger = _ledger(ray, job)
        try:
            with _watch_ledger(ray, ledger, lambda totals: watch(totals, total, before), failed):
                complete = _run_dataset(job, left, done, cores, ledger)
            totals: Totals = ray.get(ledger.totals.remote())
            for error in ray.get(ledger.errors.remote()):
                failed(error)
        except ray.exceptions.RayError as error:
            reason = str(error).strip().splitlines()[-1][:500]
            raise MasisError(
                f"Ray ended the job: {reason}. Run the same command to resume it."
            ) from error
        finally:
            ray.kill(ledger)
    return Report(totals, complete)


def _run_dataset(
    job: RayAudit, left: list[InputFile], done: dict[str, tuple[int, ...]], cores: int, ledger: Any
) -> bool:
    """Read and audit with Ray Data. Returns whether every shard is complete."""
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
    # Make a block of each chunk, because Ray Data distributes blocks to the workers.
    context.target_max_block_size = 1
    dataset = data.from_items([part._asdict() for part in left], override_num_blocks=len(left))
    # Readers mostly wait for the auditors. If they counted as cores, they would block one.
    chunks = dataset.flat_map(
        read, num_cpus=0, compute=data.TaskPoolStrategy(size=min(len(left), workers, READERS))
    )
    audited = chunks.map(
        Auditor,
        fn_constructor_args=(work, at_once, ledger),
        compute=data.ActorPoolStrategy(
            min_size=1,
            max_size=workers,
            initial_size=workers,
            # A second task per worker is queued, so that it needn't wait for its next chunk.
            max_tasks_in_flight_per_actor=2,
        ),
        num_cpus=1,
    )
    # Build a list first, because all() would stop the dataset at the first incomplete shard.
    complete = [row["complete"] for row in audited.iter_rows()]
    return all(complete)


def _plan_workers(job: RayAudit, cores: int) -> tuple[RayAudit, int, int]:
    """Return each worker's job, its number of concurrent audits, and the number of workers.

    If models are used, the workers share the concurrent calls.
    """
    calls = max(1, job.workers or calls_at_once(job.settings))
    if not uses_models(job.settings):
        return job, 1, job.workers or cores
    workers = min(cores, calls)
    share = math.ceil(calls / workers)
    work = job._replace(settings=with_concurrency(job.settings, share))
    return work, share * AUDITS_PER_CALL, workers


@contextmanager
def _cluster(job: RayAudit) -> Iterator[tuple[Any, int]]:
    """Yield Ray and its number of cores.

    The cluster is the one this process is in, the named one, or a local one that ends here.
    """
    quiet_ray()
    import ray

    with ExitStack() as undo:
        if not ray.is_initialized():
            options: dict[str, Any] = {"logging_level": "ERROR", "log_to_driver": False}
            if not job.address:
                folder = _new_ray_folder()
                undo.callback(shutil.rmtree, folder, ignore_errors=True)
                offline = job.workers and not uses_models(job.settings)
                options |= {
                    "_temp_dir": folder,
                    "num_cpus": job.workers if offline else None,
                    "object_store_memory": STORE_BYTES,
                    "include_dashboard": False,
                }
            ray.init(address=job.address or "local", namespace="masis", **options)
            undo.callback(ray.shutdown)
        yield ray, max(1, int(ray.cluster_resources().get("CPU", 1)))


def _new_ray_folder() -> str:
    """Create a folder for Ray's sockets and logs, and remove the folders of killed processes."""
    for folder in Path(tempfile.gettempdir()).glob(f"{_FOLDER}*"):
        owner = folder.name.removeprefix(_FOLDER).partition("-")[0]
        # Without /proc, as on macOS, it's unknown which processes are still running.
        if owner.isdigit() and not Path(f"/proc/{owner}").exists() and Path("/proc/self").exists():
            shutil.rmtree(folder, ignore_errors=True)
    return tempfile.mkdtemp(prefix=f"{_FOLDER}{os.getpid()}-")


_FOLDER = "masis-ray-"


def _ledger(ray: Any, job: RayAudit) -> Any:
    """Create the job's ledger as a named actor without a core, on the driver's node.

    Raises InputError if another job of the cluster writes to the same folder.
    """
    from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

    # Ray may put an actor on any node, and one on a node that leaves would take the totals with it.
    here = NodeAffinitySchedulingStrategy(ray.get_runtime_context().get_node_id(), soft=False)
    name = f"masis-ledger-{blake2b(job.out.encode(), digest_size=8).hexdigest()}"
    if any(actor["name"] == name for actor in ray.util.list_named_actors(all_namespaces=True)):
        raise InputError(
            "is being written by another audit", hint="Wait until it ends.", field="--out"
        )
    actor_class = ray.remote(Ledger).options(name=name, num_cpus=0, scheduling_strategy=here)
    return actor_class.remote(job.tries, job.max_cost)


def _watch_ledger(
    ray: Any, ledger: Any, watch: Callable[[Totals], bool], failed: Callable[[str], object]
) -> Any:
    """Return a context manager that reports progress on a thread and can stop the ledger."""
    # Imported late because workers import this module, and don't need the services.
    from masis.services.background import RepeatedTask

    def report(over: Callable[[], bool]) -> None:
        with suppress(ray.exceptions.RayError):  # the job fails too, and reports the reason
            totals, errors = ray.get([ledger.totals.remote(), ledger.errors.remote()], timeout=10)
            for error in errors:
                failed(error)
            if watch(Totals(*totals)):
                ledger.stop.remote()

    return RepeatedTask(report, PROGRESS_INTERVAL, "progress")


# The workers.


Entry = tuple[int, Case | None, str | None]


class Auditor:
    """A worker of the pool; ``ledger`` is the job's actor."""

    def __init__(self, work: RayAudit, at_once: int, ledger: Any) -> None:
        self.work, self.ledger, self.lake = work, ledger, shards.Lake(work.out)
        self.pool = ThreadPoolExecutor(at_once, thread_name_prefix="audit")
        telemetry.start(work.settings)

    def __call__(self, row: dict[str, Any]) -> dict[str, Any]:
        """Audit a chunk. Returns its shard's name, and whether the shard is complete."""
        chunk = Chunk(**row)
        return {"shard": chunk.shard, "complete": self._complete(chunk)}

    def _complete(self, chunk: Chunk) -> bool:
        """Audit the rows that aren't written yet. Returns whether the shard is complete."""
        shard, number_of_try = chunk.shard, self._call_ledger("start", chunk.shard)
        rows = self.lake.written_rows(shard)
        left = [entry for entry in cases_of(chunk) if entry[0] not in rows]

        def write(audited: Iterable[dict[str, Any] | None]) -> bool:
            # Rows that an earlier try wrote are kept, since a shard is always written as a whole.
            rows.update({row["source_row"]: row for row in audited if row is not None})
            if left and self._call_ledger("may_write", shard, number_of_try):
                self.lake.write(shard, rows.values())
            return all(number in rows for number, _, _ in left)

        if number_of_try > 1:
            # A row may have killed the previous worker, so audit and write the rows one by one.
            whole = [write([self._audit_entry(chunk, entry)]) for entry in left][-1:] != [False]
        else:
            waiting = [self.pool.submit(self._audit_entry, chunk, entry) for entry in left]
            whole = write(future.result() for future in as_completed(waiting))
        if whole:
            self.lake.complete(chunk)
            self._call_ledger("complete", shard, chunk.size)
        return whole

    def _audit_entry(self, chunk: Chunk, entry: Entry) -> dict[str, Any] | None:
        """Return the row of an audit or of its failure, or None if no more audits may begin."""
        number, case, problem = entry
        origin = RecordOrigin(source=chunk.source, source_offset=0, source_row=number)

        def failed(message: str, tries: int) -> dict[str, Any]:
            named = f"case {case.id!r}: " if case else ""
            self.ledger.record_end.remote(
                chunk.shard, number, SpentUsage("failed"), f"{named}{message}"
            )
            return failed_row(case, message, origin, tries=tries)

        if case is None:
            return failed(problem or "has no cases", 0)
        while True:
            usd = (
                (estimate(case, self.work.settings).cost_usd or 0.0)
                if self.work.max_cost is not None
                else 0.0
            )
            action, tries = self._call_ledger("begin", chunk.shard, number, usd)
            if action == "stop":
                return None
            if action == "set_aside":
                return failed(
                    f"the worker ended {tries} times while this case was audited (out of memory?)",
                    tries,
                )
            try:
                run = run_audit(case, self.work.settings)
            except Exception as error:  # noqa: BLE001 (reported; other cases must still be audited)
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

    def _call_ledger(self, method: str, *arguments: Any) -> Any:
        import ray

        return ray.get(getattr(self.ledger, method).remote(*arguments))

"""Audit a batch with a scripted model of fixed latency; compare the wall time with the minimum.

python benchmarks/batch.py                                   # 100 answers, 300 ms, 16 concurrent calls
python benchmarks/batch.py --cases FILE --number 100 --concurrency 16 --latency-ms 300
python benchmarks/batch.py --rounds 3                        # repeat, in case the machine is busy

The minimum is max(longest chain of calls x latency, all calls x latency / concurrency). The server
runs in its own process and returns plausible replies (tests/serving_models.py). Also prints the CPU
time that our own code takes for each iteration.
"""

from __future__ import annotations

import argparse
import logging
import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from masis.api.batch import AUDITS_PER_CALL, BatchItem, audit_in_threads
from masis.api.roles import with_concurrency
from masis.datasets.mapping.reader import read_any
from masis.schema.case import Case
from masis.schema.run import (
    Iteration,
    Run,
)
from masis.services import ANONYMOUS, Workbench, demo_cases
from masis.services.maintenance.health import probe_models
from masis.settings import (
    ROLES,
    Settings,
)


@contextmanager
def server(latency_ms: float) -> Iterator[str]:
    """Run the scripted server in its own process and yield its address."""
    command = [
        sys.executable,
        "-m",
        "tests.serving_models",
        "--latency-ms",
        str(latency_ms),
        "--port",
        "0",
    ]
    process = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        address = re.search(r"http://\S+", process.stdout.readline())
        assert address, "the server didn't print its address"
        yield address.group()
    finally:
        process.terminate()
        process.wait(10)


def load_cases(file: Path | None, number: int) -> list[Case]:
    """Return ``number`` cases with answers, from the file or repeated from the demo."""
    if file is not None:
        cases = [row.case for row in read_any(file) if row.case is not None]
        return [case for case in cases if case.answer][:number]
    demo = [case for case in demo_cases() if case.answer]
    repeated = (demo[index % len(demo)] for index in range(number))
    return [
        case.model_copy(update={"id": f"{case.id}-{index}", "query": f"{case.query} ({index})"})
        for index, case in enumerate(repeated)
    ]


def longest_chain(run: Run) -> int:
    """Return the number of calls that a run makes in sequence.

    Calls that run concurrently (verdicts and completeness) count once.
    """
    return sum(_iteration_chain(iteration) for iteration in run.iterations)


def _iteration_chain(iteration: Iteration) -> int:
    prompts = [call.prompt.partition("/")[0] for call in iteration.calls]
    alone = sum(prompt not in ("claims_verify", "completeness") for prompt in prompts)
    return alone + bool({"claims_verify", "completeness"} & set(prompts))


def probe_provider(settings: Settings) -> None:
    """Ask the model for one word, as ``masis audit`` does before it starts.

    This keeps imports and connection setup out of the measurement.
    """
    probed = probe_models(settings)
    assert all(item.ok for item in probed), probed


def measure(cases: list[Case], address: str, concurrency: int, latency_s: float) -> None:
    """Audit one batch into an empty database and print its figures."""
    table = {"kind": "openai", "address": address, "concurrency": concurrency, "adapts": False}
    models = {role: f"here:m-{time.monotonic_ns()}" for role in ROLES}
    settings = with_concurrency(
        Settings.model_validate({**models, "providers": {"here": table}}), concurrency
    )
    with tempfile.TemporaryDirectory() as folder:
        bench = Workbench.open(Path(folder) / "batch.db", settings)
        bench.cases.add(ANONYMOUS, cases)
        probe_provider(settings)
        jobs = (BatchItem(number, case) for number, case in enumerate(cases))
        wall, cpu = time.perf_counter(), time.process_time()
        finished = audit_in_threads(
            jobs,
            lambda job, cancelled: bench.audits.audit(ANONYMOUS, job.case, cancelled=cancelled),
            at_once=concurrency * AUDITS_PER_CALL,
        )
        outcomes = [item.outcome for item in finished]
        wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    runs = [outcome for outcome in outcomes if isinstance(outcome, Run)]
    calls = sum(run.usage.calls for run in runs)
    tokens = sum(run.usage.prompt_tokens + run.usage.completion_tokens for run in runs)
    cached = sum(run.usage.cached_tokens for run in runs)
    iterations = sum(run.total_iterations for run in runs)
    longest = max(longest_chain(run) for run in runs)
    least = max(longest * latency_s, calls * latency_s / concurrency)
    print(
        f"{len(runs)} of {len(cases)} audited, {iterations} iterations, {calls} calls, {tokens:,}"
        f" tokens ({cached:,} from a cache)\nwall {wall:.2f} s; minimum {least:.2f} s (chain"
        f" {longest} calls, {calls} calls / {concurrency}): ratio {wall / least:.3f}\nour CPU"
        f" {cpu:.2f} s: {cpu / iterations * 1000:.1f} ms per iteration,"
        f" {cpu / calls * 1000:.1f} ms per call; load {os.getloadavg()[0]:.1f}",
        flush=True,
    )


def main() -> None:
    """Run the benchmark."""
    options = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    options.add_argument("--cases", type=Path)
    options.add_argument("--number", type=int, default=100)
    options.add_argument("--concurrency", type=int, default=16)
    options.add_argument("--latency-ms", type=float, default=300.0)
    options.add_argument("--rounds", type=int, default=1)
    args = options.parse_args()
    logging.disable(logging.INFO)
    cases = load_cases(args.cases, args.number)
    with server(args.latency_ms) as address:
        for _ in range(args.rounds):
            measure(cases, address, args.concurrency, args.latency_ms / 1000)


if __name__ == "__main__":
    main()

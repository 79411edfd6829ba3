"""Run many asynchronous audits at once with a scripted model; count their threads and memory.

python benchmarks/concurrent_audits.py                          # 500 audits, 1 s a call
python benchmarks/concurrent_audits.py --audits 100 --latency-ms 300

The server runs in its own process. Deadlines are long because the benchmark measures only the cost
of waiting.
"""

from __future__ import annotations

import argparse
import asyncio
import resource
import sys
import threading
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from benchmarks.batch import load_cases, server
from masis.api.audits import run_audit, run_audit_async
from masis.schema.case import Case
from masis.schema.run import Run
from masis.settings import ROLES, Settings


def resident_mb() -> float:
    """Return this process's resident memory in megabytes, or its peak if that can't be read."""
    status = Path("/proc/self/status")
    if status.exists():
        line = next(line for line in status.read_text().splitlines() if line.startswith("VmRSS"))
        return int(line.split()[1]) / 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


class Gauge:
    """Record the peak number of threads and the peak memory while a block runs."""

    def __init__(self) -> None:
        self.threads, self.memory_mb = threading.active_count(), resident_mb()
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="gauge", daemon=True)

    def __enter__(self) -> Gauge:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stopped.set()
        self._thread.join()

    def _watch(self) -> None:
        while not self._stopped.wait(0.05):
            self.threads = max(self.threads, threading.active_count() - 1)
            self.memory_mb = max(self.memory_mb, resident_mb())


async def run_all(cases: list[Case], settings: Settings) -> list[Run]:
    """Run all audits at once."""
    return list(await asyncio.gather(*(run_audit_async(case, settings) for case in cases)))


def main() -> None:
    """Run the benchmark and print the figures."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--audits", type=int, default=500)
    parser.add_argument("--latency-ms", type=float, default=1000.0)
    options = parser.parse_args()
    with server(options.latency_ms) as address:
        table = {"kind": "openai", "address": address, "concurrency": 1000, "adapts": False}
        deadlines = {"call_deadline_s": 300, "iteration_deadline_s": 900, "loop_deadline_s": 1800}
        models = dict.fromkeys(ROLES, "here:m")
        settings = Settings.model_validate({**models, **deadlines, "providers": {"here": table}})
        cases = load_cases(None, options.audits)
        run_audit(cases[0], settings)  # warm up: exclude imports and connection setup
        threads, memory = threading.active_count(), resident_mb()
        with Gauge() as gauge:
            started, cpu = time.perf_counter(), time.process_time()
            runs = asyncio.run(run_all(cases, settings))
            wall, cpu = time.perf_counter() - started, time.process_time() - cpu
    calls = sum(run.usage.calls for run in runs)
    failed = sum(
        call.outcome != "answered" for run in runs for it in run.iterations for call in it.calls
    )
    print(
        f"{options.audits} audits at once, {calls:,} calls ({failed} without a reply) of"
        f" {options.latency_ms:g} ms: {wall:.1f} s, CPU {cpu:.1f} s; threads {threads} before,"
        f" {gauge.threads} peak; memory {memory:.0f} MB before, {gauge.memory_mb:.0f} MB peak"
        f" ({(gauge.memory_mb - memory) / options.audits * 1000:.0f} KB per audit)"
    )


if __name__ == "__main__":
    main()

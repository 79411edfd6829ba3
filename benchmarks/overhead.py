"""Measure the CPU time of our own code per iteration of an audit with models.

python benchmarks/overhead.py                    # 60 demo answers, stored in a database as usual
python benchmarks/overhead.py --threads          # with the threads that wait for replies, and their switching
python benchmarks/overhead.py --cases FILE --number 100

A provider in the same process replies immediately or, with --threads, after 20 ms
(tests/served_replies.py). Its CPU time is subtracted. That leaves the time for prompts, schemas,
parsing replies, locating quotes, citations, rules, events and storage in SQLite.
"""

from __future__ import annotations

import argparse
import json
import logging
import os
import statistics
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from pathlib import Path
from typing import TypeVar

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from benchmarks.batch import load_cases
from masis.audit import loop
from masis.llm import registry
from masis.llm.providers.base import (
    Call,
    ModelReply,
    TokenUsage,
)
from masis.llm.roles import verifier
from masis.schema.calls import ReplyMode
from masis.services import ANONYMOUS, Workbench
from masis.settings import (
    ROLES,
    Settings,
)
from tests.served_replies import Request, sensible

T = TypeVar("T")
LATENCY_S = 0.02
"""Latency with --threads, so that concurrent calls wait as they would for a model instead of
competing for the CPU.
"""


class Instant:
    """A provider that replies immediately; ``cpu_s`` is the CPU time that it used."""

    modes: tuple[ReplyMode, ...] = ("json_schema",)
    schema_in_cache = False

    def __init__(self, latency_s: float) -> None:
        self.latency_s = latency_s
        self.cpu_s = 0.0
        self._lock = threading.Lock()

    def answer(self, call: Call) -> ModelReply:
        """Return a plausible reply."""
        started = time.thread_time()
        messages = [
            {"role": "user", "content": text}
            for text in (call.prompt.system, call.prompt.shared, call.task())
        ]
        schema = {"name": call.schema.name, "schema": call.schema.schema}
        form = {"type": "json_schema", "json_schema": schema}
        text = json.dumps(
            sensible(Request("openai", {}, {"messages": messages, "response_format": form}))
        )
        with self._lock:
            self.cpu_s += time.thread_time() - started
        if self.latency_s:
            time.sleep(self.latency_s)
        return ModelReply(text, call.model, TokenUsage(prompt=1000, completion=100))


def start_in_this_thread(
    work: Callable[[], T], name: str, then: Callable[[], None] = lambda: None
) -> Future[T]:
    """Replace ``start_in_thread``: run the work now, in the calling thread."""
    future: Future[T] = Future()
    future.set_result(work())
    then()
    return future


def run_sequentially(tasks: Sequence[Callable[[], T]]) -> list[T]:
    """Replace ``run_concurrently``: run the tasks one by one."""
    return [task() for task in tasks]


def main() -> None:
    """Run the benchmark."""
    options = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    options.add_argument("--cases", type=Path)
    options.add_argument("--number", type=int, default=60)
    options.add_argument("--threads", action="store_true")
    args = options.parse_args()
    logging.disable(logging.INFO)
    instant = Instant(LATENCY_S if args.threads else 0.0)
    if not args.threads:
        loop.start_in_thread = start_in_this_thread  # type: ignore[attr-defined, assignment]
        verifier.run_concurrently = run_sequentially  # type: ignore[attr-defined]
    registry._provider = lambda endpoint: instant
    table = {"kind": "openai", "address": "http://127.0.0.1:1/v1"}
    settings = Settings.model_validate(
        {**dict.fromkeys(ROLES, "here:m"), "providers": {"here": table}}
    )
    cases = load_cases(args.cases, args.number)
    times = []
    with tempfile.TemporaryDirectory() as folder:
        bench = Workbench.open(Path(folder) / "overhead.db", settings)
        bench.cases.add(ANONYMOUS, cases)
        bench.audits.audit(ANONYMOUS, cases[0])
        for case in cases[1:]:
            cpu, provider = time.process_time(), instant.cpu_s
            run = bench.audits.audit(ANONYMOUS, case)
            own_cpu = time.process_time() - cpu - (instant.cpu_s - provider)
            times.append(own_cpu * 1000 / max(1, run.total_iterations))
    p95 = sorted(times)[int(len(times) * 0.95)]
    print(
        f"{len(times)} audits: our CPU per iteration, median {statistics.median(times):.1f} ms,"
        f" mean {statistics.fmean(times):.1f} ms, p95 {p95:.1f} ms; load"
        f" {os.getloadavg()[0]:.1f}"
    )


if __name__ == "__main__":
    main()

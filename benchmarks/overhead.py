"""What our own code costs an iteration of an audit with models: everything but the SDK, the wire
and the model.

python benchmarks/overhead.py                    # 60 demo answers, kept in a database as always
python benchmarks/overhead.py --threads          # with the threads that wait for replies, and what switching costs
python benchmarks/overhead.py --cases FILE --number 100

A provider in the process replies at once, with --threads after 20 ms (tests/served_replies.py); the
CPU time that it takes itself is left out. Counted are prompts, schemas, reading replies, locating
quotes, citations, rules, events, and keeping it all in SQLite.
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

from benchmarks.batch import hundred
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
"""Calls side by side wait side by side, as they do for a model; without that, they would contend
for the processor.
"""


class Instant:
    """A provider that replies in a moment; ``cpu_s`` is what it took itself."""

    modes: tuple[ReplyMode, ...] = ("json_schema",)
    schema_in_cache = False

    def __init__(self, latency_s: float) -> None:
        self.latency_s = latency_s
        self.cpu_s = 0.0
        self._lock = threading.Lock()

    def answer(self, call: Call) -> ModelReply:
        """A sensible reply."""
        began = time.thread_time()
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
            self.cpu_s += time.thread_time() - began
        if self.latency_s:
            time.sleep(self.latency_s)
        return ModelReply(text, call.model, TokenUsage(prompt=1000, completion=100))


def in_this_thread(
    work: Callable[[], T], name: str, then: Callable[[], None] = lambda: None
) -> Future[T]:
    """In place of ``start_in_thread``: the same work, done at once."""
    future: Future[T] = Future()
    future.set_result(work())
    then()
    return future


def one_by_one(tasks: Sequence[Callable[[], T]]) -> list[T]:
    """In place of ``run_concurrently``."""
    return [task() for task in tasks]


def main() -> None:
    """Run it."""
    options = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    options.add_argument("--cases", type=Path)
    options.add_argument("--number", type=int, default=60)
    options.add_argument("--threads", action="store_true")
    given = options.parse_args()
    logging.disable(logging.INFO)
    instant = Instant(LATENCY_S if given.threads else 0.0)
    if not given.threads:
        loop.start_in_thread = in_this_thread  # type: ignore[attr-defined]
        verifier.run_concurrently = one_by_one  # type: ignore[attr-defined]
    registry._provider = lambda reached: instant
    table = {"kind": "openai", "address": "http://127.0.0.1:1/v1"}
    settings = Settings.model_validate(
        {**dict.fromkeys(ROLES, "here:m"), "providers": {"here": table}}
    )
    cases = hundred(given.cases, given.number)
    each = []
    with tempfile.TemporaryDirectory() as folder:
        bench = Workbench.open(Path(folder) / "overhead.db", settings)
        bench.cases.add(ANONYMOUS, cases)
        bench.audits.audit(ANONYMOUS, cases[0])
        for case in cases[1:]:
            own, provider = time.process_time(), instant.cpu_s
            run = bench.audits.audit(ANONYMOUS, case)
            spent = time.process_time() - own - (instant.cpu_s - provider)
            each.append(spent * 1000 / max(1, run.total_iterations))
    worst = sorted(each)[int(len(each) * 0.95)]
    print(
        f"{len(each)} audits: our own CPU an iteration, median {statistics.median(each):.1f} ms,"
        f" mean {statistics.fmean(each):.1f} ms, 95 of 100 under {worst:.1f} ms; load"
        f" {os.getloadavg()[0]:.1f}"
    )


if __name__ == "__main__":
    main()

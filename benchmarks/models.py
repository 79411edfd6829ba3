"""Measure the overhead of a model call in our code: CPU time, and wall time beyond the latency.

    python benchmarks/models.py

A scripted server runs in its own process. Prompts have the size of a critic's with ten chunks of
evidence. CPU time is that of this process, with the SDK and the sockets, so other programs hardly
affect it.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from masis.audit.control.run_control import RunBudget, RunControl
from masis.llm.client import schemas
from masis.llm.client.model import Model
from masis.llm.providers.base import (
    Call,
    ModelReply,
    TokenUsage,
)
from masis.llm.registry import model_in_role
from masis.llm.roles.prompting import (
    RolePrompt,
    answer,
    compose,
    question_and_evidence,
)
from masis.llm.roles.replies import CritiqueReply
from masis.schema.calls import ReplyMode
from masis.schema.case import Evidence
from masis.schema.providers import ProviderKind
from masis.settings import Settings
from tests.served_replies import fill_schema

CALLS = 200
LATENCY_MS = 100
EVIDENCE = tuple(
    Evidence(
        id=str(n),
        text=f"Chunk {n} says what it says about the matter. " * 25,
        source=f"report-{n}.pdf",
    )
    for n in range(1, 11)
)
ANSWER = "It is as the chunks say, in other words [1]. And there is more to it [2]. " * 5


@contextmanager
def server(latency_ms: float) -> Iterator[str]:
    """Run a scripted server in its own process and yield its address."""
    command = [
        sys.executable,
        "-m",
        "tests.serving_models",
        "--latency-ms",
        str(latency_ms),
        "--issues",
        "none",
    ]
    process = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        yield process.stdout.readline().strip()
    finally:
        process.terminate()
        process.wait(10)


def critic_prompt() -> RolePrompt:
    """Return a critic's prompt."""
    return compose(
        "critic",
        "0123456789abcdef" * 2,
        question_and_evidence("What is the matter?", EVIDENCE),
        [answer(ANSWER)],
    )


def make_model(address: str, wire: ProviderKind) -> Model:
    """Return a model that calls the server."""
    os.environ["BENCHMARK_KEY"] = "sk-benchmark-key"
    table = {"kind": wire, "address": address, "key_env": "BENCHMARK_KEY", "adapts": False}
    settings = Settings.model_validate({"providers": {"scripted": table}, "call_deadline_s": 60})
    return model_in_role("scripted:m", "critic", RunControl(RunBudget(call_s=60.0)), settings)


class Instant:
    """A provider without a network, so that only our own code is measured."""

    modes: tuple[ReplyMode, ...] = ("json_schema",)
    schema_in_cache = False

    def __init__(self) -> None:
        schema = schemas.reply_schema(CritiqueReply).schema
        reply = fill_schema(schema, schema)
        reply["issues"] = [
            fill_schema(schema["properties"]["issues"]["items"], schema) for _ in range(5)
        ]
        self._text = json.dumps(reply)

    def answer(self, call: Call) -> ModelReply:
        """Return the reply immediately."""
        return ModelReply(self._text, call.model, TokenUsage(prompt=5000, completion=500))


def measure_our_code() -> None:
    """Print the CPU time of a call without SDK and sockets."""
    model, prompt = (
        replace(make_model("http://127.0.0.1:9/v1", "openai"), provider=Instant()),
        critic_prompt(),
    )
    model.ask(prompt, CritiqueReply, max_tokens=2000)
    started_cpu = time.process_time()
    for _ in range(CALLS):
        model.ask(prompt, CritiqueReply, max_tokens=2000)
    print(
        "without SDK and sockets:"
        f" {(time.process_time() - started_cpu) * 1000 / CALLS:.2f} ms CPU per call"
    )


def measure_sequential(address: str, wire: ProviderKind) -> None:
    """Print the CPU time of calls that run one after another."""
    model, prompt = make_model(address, wire), critic_prompt()
    for _ in range(10):
        model.ask(prompt, CritiqueReply, max_tokens=2000)
    cpu, wall = [], []
    for _ in range(CALLS):
        started_cpu, started = time.process_time(), time.perf_counter()
        model.ask(prompt, CritiqueReply, max_tokens=2000)
        cpu.append((time.process_time() - started_cpu) * 1000)
        wall.append((time.perf_counter() - started) * 1000)
    size = sum(map(len, prompt[:3]))
    print(
        f"{wire:10} {size:,} characters: {statistics.median(cpu):.2f} ms CPU per call (p95"
        f" {sorted(cpu)[-CALLS // 20]:.2f}), {statistics.median(wall):.1f} ms wall time, no latency"
    )


def measure_concurrent(address: str, wire: ProviderKind, concurrency: int = 16) -> None:
    """Print the time of concurrent calls to a server with latency, and the minimum."""
    model, prompt = make_model(address, wire), critic_prompt()
    model.ask(prompt, CritiqueReply, max_tokens=2000)
    with ThreadPoolExecutor(concurrency) as pool:
        started_cpu, started = time.process_time(), time.perf_counter()
        list(pool.map(lambda _: model.ask(prompt, CritiqueReply, max_tokens=2000), range(CALLS)))
        cpu, wall = time.process_time() - started_cpu, time.perf_counter() - started
    minimum = CALLS * LATENCY_MS / 1000 / concurrency
    print(
        f"{wire:10} {CALLS} calls, {concurrency} concurrent, {LATENCY_MS} ms latency: {wall:.2f} s,"
        f" {wall / minimum:.2f} times the minimum ({minimum:.2f} s); {cpu * 1000 / CALLS:.2f} ms"
        " CPU per call"
    )


def main() -> None:
    """Measure both wire formats."""
    wires: tuple[ProviderKind, ...] = ("openai", "anthropic")
    measure_our_code()
    with server(0) as address:
        for wire in wires:
            measure_sequential(address, wire)
    with server(LATENCY_MS) as address:
        for wire in wires:
            measure_concurrent(address, wire)


if __name__ == "__main__":
    main()

"""What a call to a model costs on our side: CPU time and milliseconds over the server's own
latency.

    python benchmarks/models.py

A scripted server runs in a process of its own; prompts are of the size of a critic's with ten
chunks of evidence. CPU time is this process's, so it does not depend on what else the machine does;
it includes the SDK and the sockets.
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
from masis.llm.registry import asker
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
from tests.served_replies import filled

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
    """A scripted server in another process; its address."""
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


def prompt() -> RolePrompt:
    """A critic's."""
    return compose(
        "critic",
        "0123456789abcdef" * 2,
        question_and_evidence("What is the matter?", EVIDENCE),
        [answer(ANSWER)],
    )


def model(address: str, wire: ProviderKind) -> Model:
    """A model at the server."""
    os.environ["BENCHMARK_KEY"] = "sk-benchmark-key"
    table = {"kind": wire, "address": address, "key_env": "BENCHMARK_KEY", "adapts": False}
    settings = Settings.model_validate({"providers": {"scripted": table}, "call_deadline_s": 60})
    return asker("scripted:m", "critic", RunControl(RunBudget(call_s=60.0)), settings)


class Instant:
    """A provider without a wire: what is left is our own code."""

    modes: tuple[ReplyMode, ...] = ("json_schema",)
    schema_in_cache = False

    def __init__(self) -> None:
        schema = schemas.reply_schema(CritiqueReply).schema
        made = filled(schema, schema)
        made["issues"] = [filled(schema["$defs"]["RaisedIssue"], schema) for _ in range(5)]
        self._text = json.dumps(made)

    def answer(self, call: Call) -> ModelReply:
        """At once."""
        return ModelReply(self._text, call.model, TokenUsage(prompt=5000, completion=500))


def our_own() -> None:
    """CPU time of a call without SDK and sockets."""
    asked, sent = replace(model("http://127.0.0.1:9/v1", "openai"), provider=Instant()), prompt()
    asked.ask(sent, CritiqueReply, max_tokens=2000)
    began = time.process_time()
    for _ in range(CALLS):
        asked.ask(sent, CritiqueReply, max_tokens=2000)
    print(
        f"without SDK and sockets: {(time.process_time() - began) * 1000 / CALLS:.2f} ms CPU a call"
    )


def one_after_the_other(address: str, wire: ProviderKind) -> None:
    """CPU time of a call, without anything waiting beside it."""
    asked, sent = model(address, wire), prompt()
    for _ in range(10):
        asked.ask(sent, CritiqueReply, max_tokens=2000)
    cpu, wall = [], []
    for _ in range(CALLS):
        began, at = time.process_time(), time.perf_counter()
        asked.ask(sent, CritiqueReply, max_tokens=2000)
        cpu.append((time.process_time() - began) * 1000)
        wall.append((time.perf_counter() - at) * 1000)
    size = sum(map(len, sent[:3]))
    print(
        f"{wire:10} {size:,} characters: {statistics.median(cpu):.2f} ms CPU a call (p95"
        f" {sorted(cpu)[-CALLS // 20]:.2f}), {statistics.median(wall):.1f} ms in all, a server that"
        " answers at once"
    )


def side_by_side(address: str, wire: ProviderKind, at_once: int = 16) -> None:
    """Many calls at once against a server with latency: how far from the least time there is."""
    asked, sent = model(address, wire), prompt()
    asked.ask(sent, CritiqueReply, max_tokens=2000)
    with ThreadPoolExecutor(at_once) as pool:
        began, at = time.process_time(), time.perf_counter()
        list(pool.map(lambda _: asked.ask(sent, CritiqueReply, max_tokens=2000), range(CALLS)))
        cpu, wall = time.process_time() - began, time.perf_counter() - at
    least = CALLS * LATENCY_MS / 1000 / at_once
    print(
        f"{wire:10} {CALLS} calls, {at_once} at once, {LATENCY_MS} ms latency: {wall:.2f} s,"
        f" {wall / least:.2f} times the least possible ({least:.2f} s); {cpu * 1000 / CALLS:.2f} ms"
        " CPU a call"
    )


def main() -> None:
    """Measure both wire formats."""
    wires: tuple[ProviderKind, ...] = ("openai", "anthropic")
    our_own()
    with server(0) as address:
        for wire in wires:
            one_after_the_other(address, wire)
    with server(LATENCY_MS) as address:
        for wire in wires:
            side_by_side(address, wire)


if __name__ == "__main__":
    main()

"""What holds for the tests themselves: none is held against a clock, none waits for a fixed time or without end."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

TESTS = Path(__file__).resolve().parents[1]
CLOCKS = re.compile(r"\b(?:process_time|perf_counter|thread_time)(?:_ns)?\(")
LONGEST_LOOK_MS = 100
"""How long a loop that looks for something may rest between two looks."""
PEOPLE = {"test_kill_soak.py", "test_typing_soak.py"}
"""Tests in which a person pauses while typing."""


def files() -> list[Path]:
    return [path for path in sorted(TESTS.rglob("*.py")) if path != Path(__file__)]


def calls(path: Path, name: str) -> Iterator[ast.Call]:
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == name:
            yield node


def test_no_test_is_held_against_a_clock() -> None:
    timed = [str(path.relative_to(TESTS)) for path in files() if CLOCKS.search(path.read_text(encoding="utf-8"))]
    assert not timed, f"speed is compared in benchmarks/: {timed}"


def test_no_browser_test_waits_for_a_fixed_time() -> None:
    long = [
        f"{path.name}:{call.lineno}"
        for path in files()
        if path.name not in PEOPLE
        for call in calls(path, "wait_for_timeout")
        if not (isinstance(call.args[0], ast.Constant) and int(str(call.args[0].value)) <= LONGEST_LOOK_MS)
    ]
    assert not long, f"wait for what is needed instead: {long}"


def test_every_test_has_a_time_limit(request: pytest.FixtureRequest) -> None:
    assert float(request.config.getini("timeout")) > 0
    without = [item.nodeid for item in request.session.items if limit(item) <= 0]
    assert not without


def limit(item: pytest.Item) -> float:
    marker = item.get_closest_marker("timeout")
    return float(item.config.getini("timeout")) if marker is None else float(marker.args[0])

"""tools/weight.py counts what stands in a file, and says so where there are no times of tests."""

from __future__ import annotations

import json
from pathlib import Path

from tools.weight import DURATIONS, imports_of, report, weight_of, with_slowest

FILE = '''"""What it is.

More of it.
"""

from masis import version
from masis.schema.case import (
    Case,
    Evidence,
)

# A comment.
LIMIT = 3
"""How many."""


def text() -> str:
    """Return it."""
    import masis.store.core

    return """no
docstring"""
'''


def test_each_line_is_counted_as_what_it_is() -> None:
    weight = weight_of(FILE)
    assert weight._asdict() == {"files": 1, "lines": 22, "code": 4, "docstrings": 6, "imports": 6}


def test_imports_are_counted_by_package() -> None:
    assert imports_of(FILE) == {"version": 1, "schema": 1, "store": 1}


def test_the_report_has_packages_their_imports_and_the_slowest_tests(tmp_path: Path) -> None:
    store, tests = tmp_path / "masis" / "store", tmp_path / "tests"
    for file, text in (
        (store / "core.py", FILE),
        (store.parent / "errors.py", "X = 1\n"),
        (tests / "test_a.py", "Y = 2\n"),
    ):
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")
    lines = list(report(tmp_path))
    assert [line.split() for line in lines[:5]] == [
        ["package", "files", "lines", "code", "docstrings", "imports"],
        ["store", "1", "22", "4", "6", "6"],
        ["errors", "1", "1", "1", "0", "0"],
        ["masis", "in", "all", "2", "23", "5", "6", "6"],
        ["tests", "1", "1", "1", "0", "0"],
    ]
    assert "store         version 1, schema 1" in lines
    assert "No times of tests" in lines[-1]
    (tmp_path / DURATIONS).parent.mkdir()
    timed = [{"test": f"test_a.py::test_{number}", "seconds": number} for number in range(3)]
    (tmp_path / DURATIONS).write_text("\n".join(map(json.dumps, timed)), encoding="utf-8")
    assert [line.split() for line in report(tmp_path, slowest=2)][-2:] == [
        ["2.0", "test_a.py::test_2"],
        ["1.0", "test_a.py::test_1"],
    ]


def test_the_slowest_tests_are_put_between_the_marks_of_a_page(tmp_path: Path) -> None:
    durations = tmp_path / "durations.jsonl"
    durations.write_text(
        "".join(json.dumps({"test": f"a.py::test_{n}", "seconds": n}) + "\n" for n in (1, 3, 2)), encoding="utf-8"
    )
    page = with_slowest("Before.\n<!-- slowest tests -->\nold\n<!-- end of the slowest tests -->\nAfter.", durations, 2)
    assert "old" not in page
    assert [line.split() for line in page.splitlines() if "::" in line] == [
        ["3.0", "a.py::test_3"],
        ["2.0", "a.py::test_2"],
    ]
    assert page.startswith("Before.\n<!-- slowest tests -->\nOn 20")
    assert page.endswith("\n<!-- end of the slowest tests -->\nAfter.")

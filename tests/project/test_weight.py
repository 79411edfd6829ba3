"""What the tools report: weight, conformance with the specs, and the benchmark of a million cases."""

from __future__ import annotations

import ast
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tools import conformance, constants
from tools.weight import imports_of, weight_of, with_slowest

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


def test_the_page_is_current() -> None:
    current = conformance.PAGE.read_text(encoding="utf-8")
    assert current == conformance.page(), "run python tools/conformance.py"


def test_every_rule_that_is_here_has_a_test() -> None:
    tests = conformance.marked_tests()
    assert [rule.id for rule in conformance.rules() if rule.state == "here" and not tests.get(rule.id)] == []


def test_every_mark_names_a_rule() -> None:
    known = {rule.id for rule in conformance.rules()}
    assert {mark: tests for mark, tests in conformance.marked_tests().items() if mark not in known} == {}


def test_every_rule_has_an_id_of_its_own() -> None:
    ids = [rule.id for rule in conformance.rules()]
    assert len(ids) == len(set(ids))


def test_every_constant_stands_where_its_mutation_looks_for_it() -> None:
    assert constants.misfits(constants.constants()) == []


def test_the_code_named_for_a_rule_is_a_file_and_what_it_defines() -> None:
    for rule in conformance.rules():
        for place in filter(None, (part.strip() for part in rule.code.split(","))):
            file, _, name = place.partition(":")
            path = conformance.ROOT / file
            assert path.is_file(), f"{rule.id}: {file} is no file: name the one where a reader should begin"
            if name:
                assert name in _defined(ast.parse(path.read_text(encoding="utf-8"))), f"{rule.id}: {place}"


def _defined(body: ast.AST, within: str = "") -> set[str]:
    """Return what a module defines: classes, functions and names, members also as ``Class.member``."""
    names: set[str] = set()
    for node in ast.iter_child_nodes(body):
        if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            names |= {node.name, f"{within}{node.name}"}
            if isinstance(node, ast.ClassDef):
                names |= _defined(node, f"{node.name}.")
        elif isinstance(node, ast.AnnAssign | ast.Assign):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            assigned = [target.id for target in targets if isinstance(target, ast.Name)]
            names |= {*assigned, *(f"{within}{name}" for name in assigned)}
    return names


ROOT = Path(__file__).parents[2]


@pytest.mark.slow
def test_the_benchmark_of_a_million_cases_measures_import_and_export(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "benchmarks/million.py", "--cases", "2000", "--folder", str(tmp_path)],
        capture_output=True,
        text=True,
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "What came out is what went in, byte for byte." in done.stdout
    rows = re.findall(
        r"^(import|export cases) +2,000 cases +[\d.]+ s +[\d.]+ s CPU +memory: first tenth +(\d+) MB, "
        r"last +(\d+) MB, peak +(\d+) MB$",
        done.stdout,
        re.MULTILINE,
    )
    assert [name for name, *_ in rows] == ["import", "export cases"]
    for _name, first, last, peak in rows:
        # samples of a moment, and the kernel's own peak, which counts pages in batches
        assert 0 < int(first) <= 1.1 * int(peak)
        assert 0 < int(last) <= 1.1 * int(peak)
    assert not list(tmp_path.iterdir())

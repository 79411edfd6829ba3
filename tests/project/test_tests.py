"""Rules for the tests themselves: no clocks, no fixed waits, no external connections, and correct
counts.
"""

from __future__ import annotations

import ast
import json
import os
import re
import socket
import subprocess
import sys
import threading
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

from tools import conformance, constants, every_test, weight
from tools.every_test import Count, Outcome, count_tests
from tools.weight import combine, imports_of, read_file

TESTS = Path(__file__).resolve().parents[1]
CLOCKS = re.compile(r"\b(?:process_time|perf_counter|thread_time)(?:_ns)?\(")
LONGEST_LOOK_MS = 100
"""The longest pause of a polling loop between two checks."""
PEOPLE = {"test_kill_soak.py"}
"""Tests in which a person pauses while typing."""


def files() -> list[Path]:
    return [path for path in sorted(TESTS.rglob("*.py")) if path != Path(__file__)]


def calls(path: Path, name: str) -> Iterator[ast.Call]:
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if (
            isinstance(node, ast.Call)
            and isinstance(node.func, ast.Attribute)
            and node.func.attr == name
        ):
            yield node


def test_no_test_measures_time() -> None:
    timed = [
        str(path.relative_to(TESTS))
        for path in files()
        if CLOCKS.search(path.read_text(encoding="utf-8"))
    ]
    assert not timed, f"speed is compared in benchmarks/: {timed}"


def test_no_browser_test_waits_for_a_fixed_time() -> None:
    long = [
        f"{path.name}:{call.lineno}"
        for path in files()
        if path.name not in PEOPLE
        for call in calls(path, "wait_for_timeout")
        if not (
            isinstance(call.args[0], ast.Constant)
            and int(str(call.args[0].value)) <= LONGEST_LOOK_MS
        )
    ]
    assert not long, f"wait for what is needed instead: {long}"


def test_every_test_has_a_time_limit(request: pytest.FixtureRequest) -> None:
    assert float(request.config.getini("timeout")) > 0
    without = [item.nodeid for item in request.session.items if limit(item) <= 0]
    assert not without


def limit(item: pytest.Item) -> float:
    marker = item.get_closest_marker("timeout")
    return float(item.config.getini("timeout")) if marker is None else float(marker.args[0])


OUTSIDE = ("192.0.2.1", 9)
"""An address reserved for documentation (RFC 5737)."""


def refusals() -> list[str]:
    """Return the error that each way of connecting raises."""
    found = []
    for way in ("connect", "connect_ex"):
        with socket.socket() as probe:
            probe.settimeout(0.1)
            try:
                getattr(probe, way)(OUTSIDE)
            except (OSError, RuntimeError) as error:
                found.append(type(error).__name__)
    return found


@pytest.fixture(scope="module")
def in_a_fixture_of_the_module() -> list[str]:
    return refusals()


def test_no_connection_leaves_the_machine(in_a_fixture_of_the_module: list[str]) -> None:
    in_a_thread: list[str] = []
    thread = threading.Thread(target=lambda: in_a_thread.extend(refusals()))
    thread.start()
    thread.join()
    assert (
        refusals()
        == in_a_thread
        == in_a_fixture_of_the_module
        == ["NetworkRefused", "NetworkRefused"]
    )


def test_localhost_can_be_reached() -> None:
    with (
        socket.create_server(("127.0.0.1", 0)) as server,
        socket.create_connection(server.getsockname()[:2]),
    ):
        pass


def test_no_keys_and_no_settings_reach_a_test() -> None:
    assert not [
        name for name in os.environ if name.endswith("_API_KEY") or name.startswith("MASIS_")
    ]


REPORT = '<testsuites><testsuite tests="{}" failures="{}" errors="{}" skipped="{}"/></testsuites>'


@pytest.fixture
def report(tmp_path: Path) -> Path:
    return tmp_path / "report.xml"


def test_errors_count_as_failed_and_the_rest_as_passed(report: Path) -> None:
    report.write_text(REPORT.format(20, 2, 1, 3))
    assert count_tests(report, 1, chosen=False) == Count(passed=14, failed=3, skipped=3)
    assert str(Count(14, 3, 3)) == "14 passed, 3 failed, 3 skipped"


@pytest.mark.parametrize("code", [1, 2, 3, 4, -9])
def test_a_failing_exit_code_without_a_failed_test_counts_as_a_failure(
    report: Path, code: int
) -> None:
    assert count_tests(report, code, chosen=False) == Count(failed=1)
    report.write_text(REPORT.format(5, 0, 0, 0))
    assert count_tests(report, code, chosen=True) == Count(passed=5, failed=1)
    report.write_text("<testsuites><testsuite tests=")
    assert count_tests(report, code, chosen=False).failed == 1


def test_an_environment_without_tests_fails_unless_tests_were_selected(report: Path) -> None:
    report.write_text(REPORT.format(0, 0, 0, 0))
    assert count_tests(report, every_test.NO_TESTS, chosen=False) == Count(failed=1)
    assert count_tests(report, every_test.NO_TESTS, chosen=True) == Count()


@pytest.mark.slow
def test_the_counts_match_a_real_run(tmp_path: Path) -> None:
    (tmp_path / "test_outcomes.py").write_text(
        "import pytest\n"
        "def test_passes(): pass\n"
        "def test_fails(): assert False\n"
        "@pytest.fixture\ndef broken(): raise OSError\n"
        "def test_cannot_begin(broken): pass\n"
        "@pytest.mark.skip(reason='no')\ndef test_is_skipped(): pass\n"
        "@pytest.mark.xfail(reason='known')\ndef test_fails_as_expected(): assert False\n"
    )
    own = ["-p", "no:cacheprovider", "-c", "/dev/null", "--rootdir", str(tmp_path), str(tmp_path)]
    with (tmp_path / "log").open("w") as log:
        outcome = every_test.run_pytest(Path(sys.executable), own, [], log)
    assert outcome.counts == Count(passed=1, failed=2, skipped=2), (tmp_path / "log").read_text()
    assert "test_outcomes.py::test_passes" in outcome.seconds


def test_a_hanging_run_is_killed_with_its_child_processes(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(every_test, "LIMIT_S", 1)
    with (tmp_path / "log").open("w") as log:
        code = every_test.run([sys.executable, "-c", "import time; time.sleep(600)"], log)
    assert code != 0
    assert "Killed after 1 s" in (tmp_path / "log").read_text()


def test_every_integration_folder_is_run() -> None:
    """A folder runs in the main environment, whose extras include its package, or in a separate
    one.
    """
    together = tomllib.loads((every_test.ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    [ours] = [
        requirement
        for requirement in together["project"]["optional-dependencies"]["test"]
        if requirement.startswith("masis-")
    ]
    folders = {
        path.parent.name.removeprefix("with_")
        for path in every_test.FOLDER.glob("with_*/test_*.py")
    }
    assert folders - set(every_test.APART) <= set(re.findall(r"\w+", ours))
    assert set(every_test.APART) <= folders
    assert all(
        (every_test.ROOT / "constraints" / f"{extra}.txt").is_file() for extra in every_test.APART
    )


def test_durations_of_all_environments_are_stored_longest_first(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(every_test, "DURATIONS", tmp_path / "run" / "durations.jsonl")
    every_test.write_durations(
        [
            Outcome(Count(), {"a.py::test": 0.5}),
            Outcome(Count(), {"b.py::test": 2.0, "c.py::test": 0.1}),
        ]
    )
    kept = [
        json.loads(line) for line in every_test.DURATIONS.read_text(encoding="utf-8").splitlines()
    ]
    assert [(row["test"], row["seconds"]) for row in kept] == [
        ("b.py::test", 2.0), ("a.py::test", 0.5), ("c.py::test", 0.1),
    ]  # fmt: skip


# The reports of the tools: weight, conformance with the specs, and the million-case benchmark.

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


def test_docstrings_and_layout_arent_tokens() -> None:
    figures = read_file(FILE)
    weight_of_file = combine([figures], figures.names)
    tokens_by_statement = {
        "from masis import version": 4,
        "from masis.schema.case import (Case, Evidence,)": 13,
        "LIMIT = 3": 3,
        "def text() -> None:": 7,
        "import masis.store.core": 6,
        'return """..."""': 2,
    }
    assert weight_of_file.tokens == sum(tokens_by_statement.values())
    assert (weight_of_file.types, weight_of_file.longest) == (
        0,
        len("from masis.schema.case import ("),
    )
    assert weight_of_file.comments == pytest.approx(1000 / 22)


def test_a_single_use_of_a_private_function_counts_in_any_file() -> None:
    defines = read_file(
        "def _helper() -> None: ...\ndef _shared() -> None: ...\n_shared()\n_shared()\n"
    )
    uses = read_file("from masis.a import _helper\n")
    names = defines.names + uses.names
    assert combine([defines], names).one_use == 1
    assert combine([defines], defines.names).one_use == 0


def test_imports_are_counted_by_package() -> None:
    assert imports_of(FILE) == {"version": 1, "schema": 1, "store": 1}


def test_the_slowest_tests_of_the_last_run_are_named(tmp_path: Path) -> None:
    durations = tmp_path / weight.DURATIONS
    durations.parent.mkdir()
    durations.write_text(
        "".join(json.dumps({"test": f"a.py::test_{n}", "seconds": n}) + "\n" for n in (1, 3, 2)),
        encoding="utf-8",
    )
    assert [line.split() for line in weight.report(tmp_path, 2) if "::" in line] == [
        ["3.0", "a.py::test_3"],
        ["2.0", "a.py::test_2"],
    ]


def test_the_generated_page_is_current() -> None:
    assert conformance.PAGE.read_text(encoding="utf-8") == conformance.page(), (
        "run python tools/conformance.py"
    )


def test_every_implemented_rule_has_a_test() -> None:
    tests = conformance.marked_tests()
    assert [
        rule.id for rule in conformance.rules() if rule.state == "here" and not tests.get(rule.id)
    ] == []


def test_every_spec_mark_names_a_rule() -> None:
    known = {rule.id for rule in conformance.rules()}
    assert {
        mark: tests for mark, tests in conformance.marked_tests().items() if mark not in known
    } == {}


def test_rule_ids_are_unique() -> None:
    ids = [rule.id for rule in conformance.rules()]
    assert len(ids) == len(set(ids))


def test_every_constant_is_where_its_mutation_expects_it() -> None:
    assert constants.find_stale_entries(constants.constants()) == []


def test_the_code_named_for_a_rule_exists() -> None:
    for rule in conformance.rules():
        for place in filter(None, (part.strip() for part in rule.code.split(","))):
            file, _, name = place.partition(":")
            path = conformance.ROOT / file
            assert path.is_file(), (
                f"{rule.id}: {file} is no file: name the one where a reader should begin"
            )
            if name:
                assert name in _defined_names(ast.parse(path.read_text(encoding="utf-8"))), (
                    f"{rule.id}: {place}"
                )


def _defined_names(body: ast.AST, within: str = "") -> set[str]:
    """Return the names that a module defines: classes, functions and variables, with members as
    ``Class.member``.
    """
    names: set[str] = set()
    for node in ast.iter_child_nodes(body):
        if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            names |= {node.name, f"{within}{node.name}"}
            if isinstance(node, ast.ClassDef):
                names |= _defined_names(node, f"{node.name}.")
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
    assert "The exported bytes equal the imported ones." in done.stdout
    rows = re.findall(
        r"^(import|export cases) +2,000 cases +[\d.]+ s +[\d.]+ s CPU +memory: first tenth +(\d+)"
        r" MB, "
        r"last +(\d+) MB, peak +(\d+) MB$",
        done.stdout,
        re.MULTILINE,
    )
    assert [name for name, *_ in rows] == ["import", "export cases"]
    for _name, first, last, peak in rows:
        # Compares samples with the kernel's own peak, which counts pages in batches.
        assert 0 < int(first) <= 1.1 * int(peak)
        assert 0 < int(last) <= 1.1 * int(peak)
    assert not list(tmp_path.iterdir())

"""The count that `make test` and `.ci/run` end with: nothing that went wrong is left out of it."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tools import every_test
from tools.every_test import Count, counted

REPORT = '<testsuites><testsuite tests="{}" failures="{}" errors="{}" skipped="{}"/></testsuites>'


@pytest.fixture
def report(tmp_path: Path) -> Path:
    return tmp_path / "report.xml"


def test_errors_count_as_failed_and_the_rest_as_passed(report: Path) -> None:
    report.write_text(REPORT.format(20, 2, 1, 3))
    assert counted(report, 1, chosen=False) == Count(passed=14, failed=3, skipped=3)
    assert str(Count(14, 3, 3)) == "14 passed, 3 failed, 3 skipped"


@pytest.mark.parametrize("code", [1, 2, 3, 4, -9])
def test_a_run_that_ends_badly_without_a_failed_test_is_a_failure(report: Path, code: int) -> None:
    assert counted(report, code, chosen=False) == Count(failed=1)
    report.write_text(REPORT.format(5, 0, 0, 0))
    assert counted(report, code, chosen=True) == Count(passed=5, failed=1)
    report.write_text("<testsuites><testsuite tests=")
    assert counted(report, code, chosen=False).failed == 1


def test_an_environment_that_finds_no_test_fails_unless_tests_were_chosen(report: Path) -> None:
    report.write_text(REPORT.format(0, 0, 0, 0))
    assert counted(report, every_test.NO_TESTS, chosen=False) == Count(failed=1)
    assert counted(report, every_test.NO_TESTS, chosen=True) == Count()


@pytest.mark.slow
def test_the_counts_are_those_of_a_real_run(tmp_path: Path) -> None:
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
        count = every_test.tested(Path(sys.executable), own, [], log)
    assert count == Count(passed=1, failed=2, skipped=2), (tmp_path / "log").read_text()


def test_what_hangs_is_killed_with_all_that_it_started(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(every_test, "LIMIT_S", 1)
    with (tmp_path / "log").open("w") as log:
        code = every_test.run([sys.executable, "-c", "import time; time.sleep(600)"], log)
    assert code != 0
    assert "Killed after 1 s" in (tmp_path / "log").read_text()


def test_every_folder_of_an_integration_is_run() -> None:
    folders = {path.parent.name.removeprefix("with_") for path in every_test.FOLDER.glob("with_*/test_*.py")}
    assert set(every_test.extras()) == folders
    assert all((every_test.ROOT / "constraints" / f"{extra}.txt").is_file() for extra in folders)


def test_what_takes_longest_begins_first() -> None:
    assert every_test.longest_first(["baml", "mcp", "otel", "ray"]) == ["ray", "mcp", "baml", "otel"]
    assert set(every_test.LONGEST) <= set(every_test.extras())

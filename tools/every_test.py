"""Run every test: the project's own, the integrations' and, in a separate environment, DSPy's.

    python tools/every_test.py [--venv .venv] [--extra dspy ...] [--without-core]
                               [--summary FILE] [-- PYTEST_FLAGS]

Two extras have their own environments: ``dspy`` because it needs an older openai, and ``local``
because it needs PyTorch, which is too large to install for every run (its tests run only if you
name it). Such an environment contains the project with that extra in the versions of
``constraints/EXTRA.txt``, and pytest. Its folder is ``.venv-extras/EXTRA``, and it's made again
when those versions or pyproject.toml change. Its tests run in parallel with the main environment's.
A failure doesn't stop the others; the exit code is 1 if anything failed.

The last line is the count over all environments, ``N passed, N failed, N skipped``. An error counts
as failed, and an expected failure as skipped, since neither shows that anything works.
``--summary`` writes this line to a file instead. The duration of each test is written to
``.run/durations.jsonl``, the longest first.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import IO, NamedTuple
from xml.etree import ElementTree

ROOT = Path(__file__).resolve().parent.parent
FOLDER = ROOT / "tests" / "integrations"
DURATIONS = ROOT / ".run" / "durations.jsonl"
"""A line of JSON for each test of the last run: ``{"test": "tests/FOLDER/FILE.py::test_name",
"seconds": 1.2}``.
"""
INPUTS = (ROOT / "pyproject.toml", ROOT / "tools" / "environment.sh")
BESIDE = ("pytest", "pytest-timeout", "pytest-xdist", "hypothesis")
APART = ("dspy", "local")
"""Extras that can't or shouldn't be installed in the main environment."""
ON_REQUEST = frozenset({"local"})
"""Extras whose packages are too large to install for every run (PyTorch). Their tests run only if
you name the extra with ``--extra``.
"""
SHARED_OUT = ("--dist", "loadfile", "--no-loadscope-reorder")
"""Options of pytest-xdist. A file's tests run in one worker because they share servers, and files
are distributed in the order set by tests/conftest.py.
"""
LIMIT_S = 40 * 60
"""Time limit for the tests of one environment. A process that reaches it hangs, and is killed."""
OK, NO_TESTS = 0, 5
"""Exit codes of pytest."""


class Count(NamedTuple):
    """The numbers of tests that passed, failed and were skipped.

    Errors count as failed, and expected failures as skipped.
    """

    passed: int = 0
    failed: int = 0
    skipped: int = 0

    def plus(self, other: Count) -> Count:
        """Return the sum of two counts."""
        return Count(
            self.passed + other.passed, self.failed + other.failed, self.skipped + other.skipped
        )

    def __str__(self) -> str:
        return f"{self.passed} passed, {self.failed} failed, {self.skipped} skipped"


class Outcome(NamedTuple):
    """The result of a pytest run: the count, and the duration of each test in seconds."""

    counts: Count
    seconds: dict[str, float]


_groups: set[int] = set()
_stopped = threading.Event()


def run(command: list[str], output: IO[str] | None) -> int:
    """Run a command and return its exit code.

    If the command exceeds LIMIT_S, it's killed together with the processes it started.
    """
    if _stopped.is_set():
        return -signal.SIGINT
    process = subprocess.Popen(
        command,
        cwd=ROOT,
        stdin=subprocess.DEVNULL,
        stdout=output,
        stderr=output,
        start_new_session=True,
    )
    _groups.add(process.pid)
    try:
        return process.wait(timeout=LIMIT_S)
    except subprocess.TimeoutExpired:
        print(f"Killed after {LIMIT_S} s: {' '.join(command)}", file=output, flush=True)
        return -signal.SIGKILL
    finally:
        kill(process.pid)
        _groups.discard(process.pid)
        process.wait()


def kill(group: int) -> None:
    """Kill a command's process group, including processes that outlive the command."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(group, signal.SIGKILL)


def stop() -> None:
    """Kill the running commands and start no more."""
    _stopped.set()
    for group in list(_groups):
        kill(group)


def update_environment(extra: str, venv: Path, python: str, output: IO[str] | None) -> Path | None:
    """Create an extra's environment, or update it if its inputs changed.

    Returns:
        The path of its interpreter, or None if the installation failed.

    """
    home = venv.with_name(f"{venv.name}-extras") / extra
    versions, stamp = ROOT / "constraints" / f"{extra}.txt", home / ".installed"
    if not stamp.exists() or any(
        path.stat().st_mtime > stamp.stat().st_mtime for path in (*INPUTS, versions)
    ):
        home.parent.mkdir(parents=True, exist_ok=True)
        command = [
            "sh",
            "tools/environment.sh",
            str(home),
            f".[{extra}]",
            python,
            str(versions.relative_to(ROOT)),
        ]
        if run([*command, *BESIDE], output):
            return None
        stamp.touch()
    return home / "bin" / "python"


def count_tests(report: Path, code: int, *, chosen: bool) -> Count:
    """Count the tests in a JUnit report.

    A run with a bad exit code but without a failed test counts as one failure. So does a run
    without tests, unless the user chose tests with pytest's flags (``chosen``).
    """
    total = Count()
    if report.exists():
        with contextlib.suppress(ElementTree.ParseError):
            for suite in ElementTree.parse(report).getroot().iter("testsuite"):
                tests, failures, errors, skipped = (
                    int(suite.get(name, 0)) for name in ("tests", "failures", "errors", "skipped")
                )
                total = total.plus(
                    Count(tests - failures - errors - skipped, failures + errors, skipped)
                )
    nothing_chosen = code == NO_TESTS and chosen
    if code != OK and not nothing_chosen and not total.failed:
        total = total.plus(Count(failed=1))
    return total


def read_durations(report: Path) -> Iterator[tuple[str, float]]:
    """Yield each test of a JUnit report with its duration in seconds, including setup."""
    with contextlib.suppress(ElementTree.ParseError, OSError):
        for case in ElementTree.parse(report).getroot().iter("testcase"):
            yield f"{case.get('file')}::{case.get('name')}", float(case.get("time", 0))


def run_pytest(
    interpreter: Path, own_arguments: list[str], flags: list[str], output: IO[str] | None
) -> Outcome:
    """Run pytest with an interpreter, our own arguments and the user's flags."""
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "report.xml"
        reported = ["-o", "junit_family=xunit1", f"--junitxml={report}"]
        code = run([str(interpreter), "-m", "pytest", *reported, *own_arguments, *flags], output)
        return Outcome(count_tests(report, code, chosen=bool(flags)), dict(read_durations(report)))


def run_extra(
    extra: str, venv: Path, python: str, flags: list[str], output: IO[str] | None
) -> Outcome:
    """Update the environment of an extra and run its tests in it."""
    print(f"== {extra}, in its own environment", file=output, flush=True)
    began = time.monotonic()
    interpreter = None
    try:
        interpreter = update_environment(extra, venv, python, output)
    except OSError as error:  # only this extra fails; the other environments' tests still run
        print(f"{extra}: {error}", file=output, flush=True)
    if interpreter is None:
        print(f"The environment of {extra} couldn't be made.", file=output, flush=True)
        return Outcome(Count(failed=1), {})
    installed_at = time.monotonic()
    own_arguments = ["-o", f"cache_dir=.pytest_cache/{extra}", f"tests/integrations/with_{extra}"]
    outcome = run_pytest(interpreter, own_arguments, flags, output)
    durations = (
        f"environment {installed_at - began:.0f} s, tests {time.monotonic() - installed_at:.0f} s"
    )
    print(f"   {extra}: {outcome.counts} ({durations})", file=output, flush=True)
    return outcome


def run_main_environment(workers: str, flags: list[str]) -> Outcome:
    """Run the tests of the main environment in several processes."""
    began = time.monotonic()
    outcome = run_pytest(Path(sys.executable), ["-n", workers, *SHARED_OUT], flags, None)
    print(
        f"   the main environment: {outcome.counts} ({time.monotonic() - began:.0f} s)", flush=True
    )
    return outcome


def run_environments(
    names: list[str], chosen: argparse.Namespace, flags: list[str]
) -> Iterator[Outcome]:
    """Run the tests of the main environment and, in parallel, those of the extras one by one.

    The output of an extra's tests is printed in one piece after the main environment's tests end.
    """
    venv = chosen.venv.absolute()
    with ThreadPoolExecutor(1) as pool, contextlib.ExitStack() as open_files:
        outputs = [
            open_files.enter_context(
                tempfile.TemporaryFile("w+", encoding="utf-8", errors="replace")
            )
            for _ in names
        ]
        futures = [
            pool.submit(run_extra, extra, venv, chosen.python, flags, output)
            for extra, output in zip(names, outputs, strict=True)
        ]
        try:
            if not chosen.without_core:
                yield run_main_environment(chosen.workers, flags)
            for future, output in zip(futures, outputs, strict=True):
                outcome = future.result()
                output.seek(0)
                print(output.read(), end="", flush=True)
                yield outcome
        except BaseException:
            stop()  # otherwise leaving the pool's block would wait for the running commands
            raise


def write_durations(outcomes: list[Outcome]) -> None:
    """Write the duration of each test to DURATIONS, the longest first."""
    seconds = [item for outcome in outcomes for item in outcome.seconds.items()]
    DURATIONS.parent.mkdir(exist_ok=True)
    with DURATIONS.open("w", encoding="utf-8") as file:
        for test, duration in sorted(seconds, key=lambda item: -item[1]):
            print(json.dumps({"test": test, "seconds": duration}), file=file)


def main(arguments: list[str]) -> int:
    """Run the selected tests and return 0 if all passed, else 1."""
    cut = arguments.index("--") if "--" in arguments else len(arguments)
    own_arguments, flags = arguments[:cut], arguments[cut + 1 :]
    parser = argparse.ArgumentParser(description="Run every test.")
    parser.add_argument("--venv", type=Path, default=ROOT / ".venv")
    parser.add_argument("--python", default="", help="the interpreter to make environments with")
    parser.add_argument("--extra", action="append", choices=APART, help="run only these extras")
    parser.add_argument(
        "--without-core", action="store_true", help="skip the tests of the main environment"
    )
    parser.add_argument("--workers", default="3", help="processes for the main environment's tests")
    parser.add_argument(
        "--summary", type=Path, help="write the count into this file instead of printing it"
    )
    chosen = parser.parse_args(own_arguments)
    names: list[str] = chosen.extra or [name for name in APART if name not in ON_REQUEST]
    outcomes = list(run_environments(names, chosen, flags))
    write_durations(outcomes)
    total = Count()
    for outcome in outcomes:
        total = total.plus(outcome.counts)
    if chosen.summary:
        chosen.summary.write_text(f"{total}\n", encoding="utf-8")
    else:
        print(total)
    return 1 if total.failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

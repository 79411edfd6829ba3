"""Run every test: the project's own, those of the integrations with them, and those of DSPy in its
own environment.

python tools/every_test.py [--venv .venv] [--extra dspy ...] [--without-core] [--summary FILE] [--
PYTEST_FLAGS]

All integrations can be installed together but two: DSPy brings an older openai, and the local
verifier models PyTorch (too large for every run: their tests run when named). An environment of its
own holds the project with that one extra, in the versions of ``constraints/EXTRA.txt``, and pytest;
it lies beside the main one (``.venv-extras/EXTRA``), is made again when those versions or
pyproject.toml change, and its tests run beside the project's own. Everything runs, whatever fails;
the exit code is 1 if anything did.

The last line is the count over all environments, ``N passed, N failed, N skipped``: an error counts
as failed, and an expected failure as skipped, since neither shows that anything works. With
``--summary`` it goes into a file instead. How long each test took is in ``.run/durations.jsonl``,
the longest first.
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
"""Extras that the main environment can't hold, or shouldn't."""
ON_REQUEST = frozenset({"local"})
"""Extras whose packages are too large to install for every run (PyTorch); their tests run when
named.
"""
SHARED_OUT = ("--dist", "loadfile", "--no-loadscope-reorder")
"""A file's tests stay together, as they share servers; files go out in the order that
tests/conftest.py put them.
"""
LIMIT_S = 40 * 60
"""No environment's tests take this long: what still runs then hangs, and is killed."""
OK, NO_TESTS = 0, 5
"""Exit codes of pytest."""


class Count(NamedTuple):
    """How many tests passed, failed (or could not be run) and were skipped (or failed
    as expected).
    """

    passed: int = 0
    failed: int = 0
    skipped: int = 0

    def plus(self, other: Count) -> Count:
        """The sum of two counts."""
        return Count(
            self.passed + other.passed, self.failed + other.failed, self.skipped + other.skipped
        )

    def __str__(self) -> str:
        return f"{self.passed} passed, {self.failed} failed, {self.skipped} skipped"


class Outcome(NamedTuple):
    """What a run of pytest came to: its count, and the seconds of each test."""

    counts: Count
    seconds: dict[str, float]


_groups: set[int] = set()
_stopped = threading.Event()


def run(command: list[str], output: IO[str] | None) -> int:
    """Run a command to its end and return its exit code; one that hangs is killed with all that it
    started.
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
    """Kill a command and whatever it left running."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(group, signal.SIGKILL)


def stop() -> None:
    """Kill everything under way and begin nothing more."""
    _stopped.set()
    for group in list(_groups):
        kill(group)


def environment(extra: str, venv: Path, python: str, output: IO[str] | None) -> Path | None:
    """Make an extra's environment, or refresh it where need be, and return its interpreter; None
    where that failed.
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


def counted(report: Path, code: int, *, chosen: bool) -> Count:
    """Count the tests in a JUnit report.

    A run that ended badly and names no failure counts as one; so does one without tests, unless
    some were ``chosen``.
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


def timed(report: Path) -> Iterator[tuple[str, float]]:
    """Each test of a JUnit report with its seconds, what it waited for to be set up included."""
    with contextlib.suppress(ElementTree.ParseError, OSError):
        for case in ElementTree.parse(report).getroot().iter("testcase"):
            yield f"{case.get('file')}::{case.get('name')}", float(case.get("time", 0))


def tested(interpreter: Path, own: list[str], flags: list[str], output: IO[str] | None) -> Outcome:
    """Run pytest with an interpreter, our own arguments and the flags that were given."""
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "report.xml"
        reported = ["-o", "junit_family=xunit1", f"--junitxml={report}"]
        code = run([str(interpreter), "-m", "pytest", *reported, *own, *flags], output)
        return Outcome(counted(report, code, chosen=bool(flags)), dict(timed(report)))


def apart(extra: str, venv: Path, python: str, flags: list[str], output: IO[str] | None) -> Outcome:
    """Make the environment of an extra and run its tests there."""
    print(f"== {extra}, in an environment of its own", file=output, flush=True)
    began = time.monotonic()
    interpreter = None
    try:
        interpreter = environment(extra, venv, python, output)
    except OSError as error:  # this integration's failure, not the end
        print(f"{extra}: {error}", file=output, flush=True)
    if interpreter is None:
        print(f"The environment of {extra} could not be made.", file=output, flush=True)
        return Outcome(Count(failed=1), {})
    made = time.monotonic()
    own = ["-o", f"cache_dir=.pytest_cache/{extra}", f"tests/integrations/with_{extra}"]
    outcome = tested(interpreter, own, flags, output)
    took = f"environment {made - began:.0f} s, tests {time.monotonic() - made:.0f} s"
    print(f"   {extra}: {outcome.counts} ({took})", file=output, flush=True)
    return outcome


def core(workers: str, flags: list[str]) -> Outcome:
    """Run the tests of the main environment in several processes."""
    began = time.monotonic()
    outcome = tested(Path(sys.executable), ["-n", workers, *SHARED_OUT], flags, None)
    print(
        f"   the main environment: {outcome.counts} ({time.monotonic() - began:.0f} s)", flush=True
    )
    return outcome


def everything(names: list[str], chosen: argparse.Namespace, flags: list[str]) -> Iterator[Outcome]:
    """Run the tests of these extras one after the other, and beside them those of the main
    environment.

    What an extra's tests print is shown as a whole, once the main environment's are over.
    """
    venv = chosen.venv.absolute()
    with ThreadPoolExecutor(1) as beside, contextlib.ExitStack() as open_files:
        outputs = [
            open_files.enter_context(
                tempfile.TemporaryFile("w+", encoding="utf-8", errors="replace")
            )
            for _ in names
        ]
        begun = [
            beside.submit(apart, extra, venv, chosen.python, flags, output)
            for extra, output in zip(names, outputs, strict=True)
        ]
        try:
            if not chosen.without_core:
                yield core(chosen.workers, flags)
            for each, output in zip(begun, outputs, strict=True):
                outcome = each.result()
                output.seek(0)
                print(output.read(), end="", flush=True)
                yield outcome
        except BaseException:
            stop()  # the pool would wait for what runs
            raise


def keep(outcomes: list[Outcome]) -> None:
    """Write how long each test took, the longest first."""
    seconds = [each for outcome in outcomes for each in outcome.seconds.items()]
    DURATIONS.parent.mkdir(exist_ok=True)
    with DURATIONS.open("w", encoding="utf-8") as file:
        for test, took in sorted(seconds, key=lambda each: -each[1]):
            print(json.dumps({"test": test, "seconds": took}), file=file)


def main(arguments: list[str]) -> int:
    """Run what was asked for; 0 if all passed."""
    cut = arguments.index("--") if "--" in arguments else len(arguments)
    own, flags = arguments[:cut], arguments[cut + 1 :]
    parser = argparse.ArgumentParser(description="Run every test.")
    parser.add_argument("--venv", type=Path, default=ROOT / ".venv")
    parser.add_argument("--python", default="", help="the interpreter to make environments with")
    parser.add_argument(
        "--extra", action="append", choices=APART, help="only these apart from the others"
    )
    parser.add_argument(
        "--without-core", action="store_true", help="leave the main environment's tests out"
    )
    parser.add_argument("--workers", default="3", help="processes for the main environment's tests")
    parser.add_argument(
        "--summary", type=Path, help="write the count into this file instead of printing it"
    )
    chosen = parser.parse_args(own)
    names: list[str] = chosen.extra or [name for name in APART if name not in ON_REQUEST]
    outcomes = list(everything(names, chosen, flags))
    keep(outcomes)
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

"""Run every test: the project's own, then those of each integration in an environment of its own.

python tools/every_test.py [--venv .venv] [--extra mcp ...] [--without-core] [--summary FILE] [-- PYTEST_FLAGS]

An integration's environment holds the project with that one extra, in the versions of ``constraints/EXTRA.txt``, and
pytest; it lies beside the main one (``.venv-extras/EXTRA``) and is made again when those versions or pyproject.toml
change. Once the project's own tests are over, the environments are made and their tests run, two at a time. Everything
runs, whatever fails; the exit code is 1 if anything did.

The last line is the count over all environments, ``N passed, N failed, N skipped``: an error counts as failed, and an
expected failure as skipped, since neither shows that anything works. With ``--summary`` it goes into a file instead.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import IO, NamedTuple
from xml.etree import ElementTree

ROOT = Path(__file__).resolve().parent.parent
FOLDER = ROOT / "tests" / "integrations"
INPUTS = (ROOT / "pyproject.toml", ROOT / "tools" / "environment.sh")
BESIDE = ("pytest", "pytest-timeout", "pytest-xdist", "hypothesis")
NOT_COMPILED = "--no-compile"
"""An integration's tests import little of what is installed: Python compiles that little itself."""
AT_ONCE = 2
"""Integrations whose environment is made, or whose tests run, at the same time."""
SHARED_OUT = ("--dist", "loadfile", "--no-loadscope-reorder")
"""A file's tests stay together, as they share servers; files go out in the order that tests/conftest.py put them."""
ON_REQUEST = frozenset({"local"})
"""Extras whose packages are too large to install for every run (PyTorch); their tests run when named."""
LONGEST = ("ray", "mcp", "dspy")
"""What takes longest begins first, so that two that run side by side end together."""
LIMIT_S = 40 * 60
"""No environment's tests take this long: what still runs then hangs, and is killed."""
OK, NO_TESTS = 0, 5
"""Exit codes of pytest."""


class Count(NamedTuple):
    """How many tests passed, failed (or could not be run) and were skipped (or failed as expected)."""

    passed: int = 0
    failed: int = 0
    skipped: int = 0

    def plus(self, other: Count) -> Count:
        """The sum of two counts."""
        return Count(self.passed + other.passed, self.failed + other.failed, self.skipped + other.skipped)

    def __str__(self) -> str:
        return f"{self.passed} passed, {self.failed} failed, {self.skipped} skipped"


def extras() -> list[str]:
    """The extras that have tests of their own, by name."""
    return sorted(
        folder.name.removeprefix("with_") for folder in FOLDER.glob("with_*") if any(folder.glob("test_*.py"))
    )


_groups: set[int] = set()
_stopped = threading.Event()
_shown = threading.Lock()


def run(command: list[str], output: IO[str] | None) -> int:
    """Run a command to its end and return its exit code; one that hangs is killed with all that it started."""
    if _stopped.is_set():
        return -signal.SIGINT
    process = subprocess.Popen(
        command, cwd=ROOT, stdin=subprocess.DEVNULL, stdout=output, stderr=output, start_new_session=True
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
    """Make an extra's environment, or refresh it where need be, and return its interpreter; None where that failed."""
    home = venv.with_name(f"{venv.name}-extras") / extra
    versions, stamp = ROOT / "constraints" / f"{extra}.txt", home / ".installed"
    if not stamp.exists() or any(path.stat().st_mtime > stamp.stat().st_mtime for path in (*INPUTS, versions)):
        home.parent.mkdir(parents=True, exist_ok=True)
        command = ["sh", "tools/environment.sh", str(home), f".[{extra}]", python, str(versions.relative_to(ROOT))]
        if run([*command, *BESIDE, NOT_COMPILED], output):
            return None
        stamp.touch()
    return home / "bin" / "python"


def counted(report: Path, code: int, *, chosen: bool) -> Count:
    """Count the tests in a JUnit report.

    A run that ended badly and names no failure counts as one; so does one without tests, unless some were ``chosen``.
    """
    total = Count()
    if report.exists():
        with contextlib.suppress(ElementTree.ParseError):
            for suite in ElementTree.parse(report).getroot().iter("testsuite"):
                tests, failures, errors, skipped = (
                    int(suite.get(name, 0)) for name in ("tests", "failures", "errors", "skipped")
                )
                total = total.plus(Count(tests - failures - errors - skipped, failures + errors, skipped))
    nothing_chosen = code == NO_TESTS and chosen
    if code != OK and not nothing_chosen and not total.failed:
        total = total.plus(Count(failed=1))
    return total


def tested(interpreter: Path, own: list[str], flags: list[str], output: IO[str] | None) -> Count:
    """Run pytest with an interpreter, our own arguments and the flags that were given; count what came of it."""
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "report.xml"
        code = run([str(interpreter), "-m", "pytest", f"--junitxml={report}", *own, *flags], output)
        return counted(report, code, chosen=bool(flags))


class Made(NamedTuple):
    """An integration's environment: its interpreter, None where it could not be made, and the seconds that took."""

    interpreter: Path | None
    seconds: float


def made(extra: str, venv: Path, python: str, output: IO[str] | None) -> Made:
    """Make the environment of an integration; an error here is this integration's failure, not the end."""
    began = time.monotonic()
    interpreter = None
    try:
        interpreter = environment(extra, venv, python, output)
    except OSError as error:
        print(f"{extra}: {error}", file=output, flush=True)
    if interpreter is None:
        print(f"The environment of {extra} could not be made.", file=output, flush=True)
    return Made(interpreter, time.monotonic() - began)


def integration(extra: str, venv: Path, python: str, flags: list[str], output: IO[str] | None) -> Count:
    """Make the environment of an integration and run its tests there."""
    print(f"== {extra}", file=output, flush=True)
    home = made(extra, venv, python, output)
    if home.interpreter is None:
        return Count(failed=1)
    began = time.monotonic()
    own = ["-o", f"cache_dir=.pytest_cache/{extra}", f"tests/integrations/with_{extra}"]
    count = tested(home.interpreter, own, flags, output)
    took = f"environment {home.seconds:.0f} s, tests {time.monotonic() - began:.0f} s"
    print(f"   {extra}: {count} ({took})", file=output, flush=True)
    return count


def longest_first(names: list[str]) -> list[str]:
    """The names in the order in which they are begun."""
    return [*(name for name in LONGEST if name in names), *(name for name in names if name not in LONGEST)]


def integrations(names: list[str], venv: Path, python: str, flags: list[str]) -> Count:
    """Make the environments of these integrations and run their tests, two at a time; show each one's output whole."""

    def one(extra: str) -> Count:
        with tempfile.TemporaryFile("w+", encoding="utf-8", errors="replace") as output:
            count = integration(extra, venv, python, flags, output)
            output.seek(0)
            with _shown:
                sys.stdout.write(output.read())
                sys.stdout.flush()
            return count

    total = Count()
    with ThreadPoolExecutor(AT_ONCE) as pool:
        try:
            for count in pool.map(one, longest_first(names)):
                total = total.plus(count)
        except KeyboardInterrupt:
            stop()  # the pool would wait for what runs
            raise
    return total


def core(workers: str, flags: list[str]) -> Count:
    """Run the project's own tests in several processes.

    Nothing else runs meanwhile: a browser that competes with an installation for the processor misses moments.
    """
    total = tested(Path(sys.executable), ["-n", workers, *SHARED_OUT], flags, None)
    print(f"   the project's own tests: {total}", flush=True)
    return total


def main(arguments: list[str]) -> int:
    """Run what was asked for; 0 if all passed."""
    cut = arguments.index("--") if "--" in arguments else len(arguments)
    own, flags = arguments[:cut], arguments[cut + 1 :]
    parser = argparse.ArgumentParser(description="Run every test.")
    parser.add_argument("--venv", type=Path, default=ROOT / ".venv")
    parser.add_argument("--python", default="", help="the interpreter to make environments with")
    parser.add_argument("--extra", action="append", choices=extras(), help="only this integration; may be repeated")
    parser.add_argument("--without-core", action="store_true", help="leave the project's own tests out")
    parser.add_argument("--workers", default="3", help="processes for the project's own tests")
    parser.add_argument("--summary", type=Path, help="write the count into this file instead of printing it")
    chosen = parser.parse_args(own)
    venv: Path = chosen.venv.absolute()
    names: list[str] = chosen.extra or [name for name in extras() if name not in ON_REQUEST]
    try:
        total = Count() if chosen.without_core else core(chosen.workers, flags)
        total = total.plus(integrations(names, venv, chosen.python, flags))
    except KeyboardInterrupt:
        stop()
        raise
    if chosen.summary:
        chosen.summary.write_text(f"{total}\n", encoding="utf-8")
    else:
        print(total)
    return 1 if total.failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

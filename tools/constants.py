"""Change each constant of the specs in turn and check that a test marked with its rule fails.

python tools/constants.py                 # all of docs/constants.toml, in a copy of the tree
python tools/constants.py REQ-CRITIC-016  # those of one rule
python tools/constants.py --list          # only checks that every entry still fits the code

An entry names its rule, the file, the current text (which must occur exactly once in the file) and
its replacement. If no marked test fails after a change, the change is printed and the exit code
is 1: the rule's tests don't check the constant.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import time
import tomllib
from itertools import count
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))
from tools.conformance import marked_tests

COPIED = (
    "masis",
    "tests",
    "data",
    "docs",
    "pages",
    "tools",
    "examples",
    "app.py",
    "pyproject.toml",
    "README.md",
    ".streamlit",
)


class Constant(NamedTuple):
    """A change to make: replace the only occurrence of ``was`` in ``file`` with ``becomes``."""

    rule: str
    file: str
    was: str
    becomes: str


def constants() -> list[Constant]:
    """Return the entries of docs/constants.toml."""
    entries = tomllib.loads((ROOT / "docs" / "constants.toml").read_text(encoding="utf-8"))[
        "constant"
    ]
    return [Constant(**entry) for entry in entries]


def find_runnable_tests() -> dict[str, list[str]]:
    """Return the marked tests that run without an extra.

    The integrations' tests (``with_NAME``) are left out because they need their own environments.
    """
    return {
        rule: [test for test in tests if "/with_" not in test]
        for rule, tests in marked_tests().items()
    }


def find_stale_entries(entries: list[Constant]) -> list[str]:
    """Describe the entries that no longer match the code.

    An entry is stale if its text doesn't occur exactly once in its file, or if no test is marked
    with its rule.
    """
    tests = find_runnable_tests()
    problems = []
    for constant in entries:
        times = (ROOT / constant.file).read_text(encoding="utf-8").count(constant.was)
        if times != 1:
            problems.append(
                f"{constant.rule}: {constant.was!r} occurs {times} times in {constant.file}"
            )
        if not tests.get(constant.rule):
            problems.append(f"{constant.rule}: no test is marked with this rule")
    return problems


_times = count(int(time.time()))


def _write(file: Path, text: str) -> None:
    """Write a file and give it a unique modification time.

    Python reuses a compiled module if the source's size and modification time, in whole seconds,
    are unchanged.
    """
    file.write_text(text, encoding="utf-8")
    moment = next(_times)
    os.utime(file, (moment, moment))


def is_noticed_by_tests(constant: Constant, tree: Path) -> bool:
    """Return whether a marked test fails with the constant changed, then restore the file."""
    file = tree / constant.file
    before = file.read_text(encoding="utf-8")
    _write(file, before.replace(constant.was, constant.becomes))
    tests = find_runnable_tests()[constant.rule]
    try:
        result = subprocess.run(
            [
                sys.executable,
                "-m",
                "pytest",
                "-q",
                "-x",
                "-p",
                "no:cacheprovider",
                "-m",
                "not browser",
                *tests,
            ],
            cwd=tree,
            capture_output=True,
            text=True,
            timeout=600,
        )
    finally:
        _write(file, before)
    if result.returncode not in (0, 1):
        raise SystemExit(
            f"{constant.rule}: pytest exited with code"
            f" {result.returncode}:\n{result.stdout[-2000:]}{result.stderr}"
        )
    return result.returncode == 1


def main(arguments: list[str]) -> int:
    """Check the entries, then try each change in a copy of the tree."""
    entries = constants()
    if problems := find_stale_entries(entries):
        print("\n".join(problems))
        return 1
    if "--list" in arguments:
        print(f"All {len(entries)} entries match the code.")
        return 0
    if arguments:
        entries = [constant for constant in entries if constant.rule in arguments]
    unnoticed = 0
    with tempfile.TemporaryDirectory() as folder:
        tree = Path(folder)
        for name in COPIED:
            source = ROOT / name
            if source.is_dir():
                shutil.copytree(source, tree / name, ignore=shutil.ignore_patterns("__pycache__"))
            else:
                shutil.copy(source, tree / name)
        for constant in entries:
            is_noticed = is_noticed_by_tests(constant, tree)
            unnoticed += not is_noticed
            print(
                f"{'noticed  ' if is_noticed else 'UNNOTICED'}  {constant.rule}: {constant.was} ->"
                f" {constant.becomes}",
                flush=True,
            )
    print(
        f"{len(entries) - unnoticed} of {len(entries)} changes are noticed by a test of their rule."
    )
    return 1 if unnoticed else 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))

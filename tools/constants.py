"""Change each constant of the specs in turn and check that a test marked with its rule fails.

python tools/constants.py                 # all of docs/constants.toml, in a copy of the tree
python tools/constants.py REQ-CRITIC-016  # those of one rule
python tools/constants.py --list          # only checks that every entry still fits the code

An entry names its rule, the file, the text as it stands (once in the file) and what it becomes. A
change that no marked test notices is printed and makes the exit code 1: the constant is not held by
its rule's tests.
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
    """One change to make: ``was`` stands once in ``file``."""

    rule: str
    file: str
    was: str
    becomes: str


def constants() -> list[Constant]:
    """The entries of docs/constants.toml."""
    entries = tomllib.loads((ROOT / "docs" / "constants.toml").read_text(encoding="utf-8"))[
        "constant"
    ]
    return [Constant(**entry) for entry in entries]


def tests_here() -> dict[str, list[str]]:
    """The marked tests that need no extra: those of the doors have environments of their own."""
    return {
        rule: [test for test in tests if "/with_" not in test]
        for rule, tests in marked_tests().items()
    }


def misfits(found: list[Constant]) -> list[str]:
    """What no longer fits: a file without the text, a text that stands twice, a rule without a
    marked test.
    """
    tests = tests_here()
    told = []
    for constant in found:
        times = (ROOT / constant.file).read_text(encoding="utf-8").count(constant.was)
        if times != 1:
            told.append(
                f"{constant.rule}: {constant.was!r} stands {times} times in {constant.file}"
            )
        if not tests.get(constant.rule):
            told.append(f"{constant.rule}: no test is marked with it")
    return told


_times = count(int(time.time()))


def _write(file: Path, text: str) -> None:
    """Write a file with a time of its own, since compiled modules are kept by a file's size and its
    second.
    """
    file.write_text(text, encoding="utf-8")
    moment = next(_times)
    os.utime(file, (moment, moment))


def noticed(constant: Constant, tree: Path) -> bool:
    """Whether a marked test fails with the constant changed; the tree is as before afterwards."""
    file = tree / constant.file
    before = file.read_text(encoding="utf-8")
    _write(file, before.replace(constant.was, constant.becomes))
    chosen = tests_here()[constant.rule]
    try:
        done = subprocess.run(
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
                *chosen,
            ],
            cwd=tree,
            capture_output=True,
            text=True,
            timeout=600,
        )
    finally:
        _write(file, before)
    if done.returncode not in (0, 1):
        raise SystemExit(
            f"{constant.rule}: pytest ended with"
            f" {done.returncode}:\n{done.stdout[-2000:]}{done.stderr}"
        )
    return done.returncode == 1


def main(arguments: list[str]) -> int:
    """Run it."""
    found = constants()
    if told := misfits(found):
        print("\n".join(told))
        return 1
    if "--list" in arguments:
        print(f"{len(found)} constants fit the code.")
        return 0
    if arguments:
        found = [constant for constant in found if constant.rule in arguments]
    unnoticed = 0
    with tempfile.TemporaryDirectory() as folder:
        tree = Path(folder)
        for name in COPIED:
            source = ROOT / name
            if source.is_dir():
                shutil.copytree(source, tree / name, ignore=shutil.ignore_patterns("__pycache__"))
            else:
                shutil.copy(source, tree / name)
        for constant in found:
            seen = noticed(constant, tree)
            unnoticed += not seen
            print(
                f"{'noticed  ' if seen else 'UNNOTICED'}  {constant.rule}: {constant.was} ->"
                f" {constant.becomes}",
                flush=True,
            )
    print(f"{len(found) - unnoticed} of {len(found)} changes are noticed by a test of their rule.")
    return 1 if unnoticed else 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))

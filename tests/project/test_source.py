"""What holds for every source file: documented public names, nothing of a developer's machine."""

from __future__ import annotations

import ast
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
MACHINE = re.compile(r"/home/\w|/Users/\w|/root/|/tmp/\w|C:\\\\Users", re.IGNORECASE)
TEXT_FILES = {".py", ".toml", ".md", ".txt", ".js", ".css", ".sh", ".yaml", ".json", ".jsonl", ""}


def python_files() -> list[Path]:
    return sorted([*(ROOT / "masis").rglob("*.py"), ROOT / "app.py", *(ROOT / "pages").glob("*.py")])


def tracked_files() -> list[Path]:
    try:
        listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        pytest.skip("not a git checkout")
    return [ROOT / name for name in listed.stdout.split("\0") if name and (ROOT / name).is_file()]


def public_without_docstring(tree: ast.Module) -> Iterator[str]:
    if tree.body and ast.get_docstring(tree) is None:
        yield "the module"
    for node in tree.body:
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) or node.name.startswith("_"):
            continue
        if ast.get_docstring(node) is None:
            yield node.name
        if isinstance(node, ast.ClassDef):
            for member in node.body:
                if (
                    isinstance(member, ast.FunctionDef | ast.AsyncFunctionDef)
                    and not member.name.startswith("_")
                    and ast.get_docstring(member) is None
                ):
                    yield f"{node.name}.{member.name}"


def test_every_public_name_says_what_it_is() -> None:
    silent = [
        f"{file.relative_to(ROOT)}: {name}"
        for file in python_files()
        for name in public_without_docstring(ast.parse(file.read_text(encoding="utf-8")))
    ]
    assert not silent, "\n".join(silent)


def test_no_file_name_hides_what_it_holds() -> None:
    vague = [str(file) for file in python_files() if re.search(r"util|helper|manager|misc|common", file.stem)]
    assert not vague


def test_nothing_names_a_machine() -> None:
    found = []
    for file in tracked_files():
        if file.suffix not in TEXT_FILES or file == Path(__file__):
            continue
        for number, line in enumerate(file.read_text(encoding="utf-8", errors="replace").splitlines(), 1):
            if MACHINE.search(line):
                found.append(f"{file.relative_to(ROOT)}:{number}: {line.strip()[:100]}")
    assert not found, "\n".join(found)


PINS = [
    ROOT / "constraints.txt",
    *sorted((ROOT / "constraints").glob("*.txt")),
    *sorted((ROOT / "tests").rglob("requirements*.txt")),
]


@pytest.mark.parametrize("file", PINS, ids=lambda file: str(file.relative_to(ROOT)))
def test_constraints_and_requirements_pin_names_and_versions_and_name_no_address(file: Path) -> None:
    lines = file.read_text(encoding="utf-8").splitlines()
    pins = [line for line in lines if line and not line.startswith("#")]
    assert pins
    assert not [line for line in pins if not re.fullmatch(r"[A-Za-z0-9_.-]+==[0-9][A-Za-z0-9.+!]*", line)]
    assert not [line for line in lines if "://" in line]


GIVEN_UP = re.compile(r"\b(?:told|borne|as it came)\b", re.IGNORECASE)
WORD_LISTS = {
    "masis/audit/instructions.py",
    "masis/audit/instructions.toml",
    "masis/offline/text/tokens.py",
    "masis/offline/inference/minilm/tokenizer.json",
}
"""Files in which the words are data: what texts from outside say."""


def test_no_code_and_no_page_uses_words_that_were_given_up() -> None:
    try:
        listed = subprocess.run(
            ["git", "ls-files", "-z", "masis", "docs", "README.md"],
            cwd=ROOT,
            capture_output=True,
            text=True,
            check=True,
        )
    except (OSError, subprocess.CalledProcessError):
        pytest.skip("not a git checkout")
    names = [name for name in listed.stdout.split("\0") if name and name not in WORD_LISTS]
    files = [
        file
        for name in names
        if (file := ROOT / name).is_file() and file.suffix in {".py", ".md", ".js", ".toml", ".html"}
    ]
    assert len(files) > 300
    found = [
        f"{file.relative_to(ROOT)}:{number}: {line.strip()[:80]}"
        for file in files
        for number, line in enumerate(file.read_text(encoding="utf-8").splitlines(), 1)
        if GIVEN_UP.search(line)
    ]
    assert not found, "\n".join(found)

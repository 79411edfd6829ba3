"""Every file that code, docs and settings name is in the repository."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
TEXT_FILES = {".py", ".md", ".toml", ".js", ".css", ".sh", ".yaml", ".html"}
FOLDERS = "masis|docs|tests|tools|benchmarks|examples|pages|data|constraints"
NAMED = re.compile(rf"(?<![\w/.-])((?:{FOLDERS})/[\w./-]*\w\.(?:py|md|toml|txt|json|jsonl|js|css|sh|npz|html|png))\b")
LINK = re.compile(r"\]\(([^)#\s]+)(?:#[^)]*)?\)")
OUTSIDE = re.compile(r"\b(?:DESIGN|FIELD|LANGUAGE|PLATFORM|STYLE)\.md\b|(?<![\w/])specs/")
PLACEHOLDER = re.compile(r"\b[A-Z]{4,}\.|^masis/_app/|/file\.py$")
"""Names that stand for any name, and what only the wheel has."""


def tracked() -> list[Path]:
    try:
        listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        pytest.skip("not a git checkout")
    files = (ROOT / name for name in listed.stdout.split("\0") if name)
    return [file for file in files if file.is_file() and file.suffix in TEXT_FILES and file != Path(__file__)]


def lines_of(file: Path) -> list[tuple[int, str]]:
    return list(enumerate(file.read_text(encoding="utf-8", errors="replace").splitlines(), 1))


def test_every_file_that_is_named_exists() -> None:
    missing = [
        f"{file.relative_to(ROOT)}:{number}: {name}"
        for file in tracked()
        for number, line in lines_of(file)
        for name in NAMED.findall(line)
        if not PLACEHOLDER.search(name) and not (ROOT / name).exists()
    ]
    assert not missing, "\n".join(missing)


def test_every_link_of_a_page_leads_to_a_file() -> None:
    broken = [
        f"{file.relative_to(ROOT)}:{number}: {target}"
        for file in tracked()
        if file.suffix == ".md" and "masis" not in file.relative_to(ROOT).parts and "data" not in file.parts
        for number, line in lines_of(file)
        for target in LINK.findall(line)
        if not target.startswith(("http:", "https:", "mailto:")) and not (file.parent / target).exists()
    ]
    assert not broken, "\n".join(broken)


def test_no_document_outside_the_repository_is_cited() -> None:
    cited = [
        f"{file.relative_to(ROOT)}:{number}: {line.strip()[:110]}"
        for file in tracked()
        for number, line in lines_of(file)
        if OUTSIDE.search(line)
    ]
    assert not cited, "\n".join(cited)

"""Words that the project has given up stand nowhere but in word lists that recognise the language of others."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
GIVEN_UP = re.compile(r"\b(?:told|borne|as it came)\b", re.IGNORECASE)
WORD_LISTS = {
    "masis/audit/instructions.py",
    "masis/audit/instructions.toml",
    "masis/offline/parsing/predicates.py",
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

"""Rules for every source file: public names have docstrings, and nothing names a developer's
machine.
"""

from __future__ import annotations

import ast
import re
import subprocess
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

import pytest

from masis import run_audit
from masis.settings import Settings, load
from masis.settings.names import YAML_KEYS
from tools import configuration

ROOT = Path(__file__).resolve().parents[2]
MACHINE = re.compile(r"/home/\w|/Users/\w|/root/|/tmp/\w|C:\\\\Users", re.IGNORECASE)
TEXT_FILES = {".py", ".toml", ".md", ".txt", ".js", ".css", ".sh", ".yaml", ".json", ".jsonl", ""}


def python_files() -> list[Path]:
    return sorted(
        [*(ROOT / "masis").rglob("*.py"), ROOT / "app.py", *(ROOT / "pages").glob("*.py")]
    )


def tracked_files(suffixes: set[str], *under: str) -> list[Path]:
    """Return the repository's files with these suffixes, except this one."""
    command = ["git", "ls-files", "-z", *under]
    try:
        listed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        pytest.skip("not a git checkout")
    files = (ROOT / name for name in listed.stdout.split("\0") if name)
    return [
        file
        for file in files
        if file.is_file() and file.suffix in suffixes and file != Path(__file__)
    ]


def lines_of(file: Path) -> list[tuple[int, str]]:
    return list(enumerate(file.read_text(encoding="utf-8", errors="replace").splitlines(), 1))


def lines_with(pattern: re.Pattern[str], files: list[Path]) -> str:
    """Return the places where the pattern matches, one per line."""
    return "\n".join(
        f"{file.relative_to(ROOT)}:{number}: {line.strip()[:100]}"
        for file in files
        for number, line in lines_of(file)
        if pattern.search(line)
    )


def public_without_docstring(tree: ast.Module) -> Iterator[str]:
    if tree.body and ast.get_docstring(tree) is None:
        yield "the module"
    for node in tree.body:
        if not isinstance(
            node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef
        ) or node.name.startswith("_"):
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


def test_every_public_name_has_a_docstring() -> None:
    silent = [
        f"{file.relative_to(ROOT)}: {name}"
        for file in python_files()
        for name in public_without_docstring(ast.parse(file.read_text(encoding="utf-8")))
    ]
    assert not silent, "\n".join(silent)


def test_file_names_are_specific() -> None:
    vague = [
        str(file)
        for file in python_files()
        if re.search(r"util|helper|manager|misc|common", file.stem)
    ]
    assert not vague


def test_no_file_names_a_machine() -> None:
    assert lines_with(MACHINE, tracked_files(TEXT_FILES)) == ""


PINS = [
    ROOT / "constraints.txt",
    *sorted((ROOT / "constraints").glob("*.txt")),
    *sorted((ROOT / "tests").rglob("requirements*.txt")),
]


@pytest.mark.parametrize("file", PINS, ids=lambda file: str(file.relative_to(ROOT)))
def test_constraints_and_requirements_pin_versions_without_urls(
    file: Path,
) -> None:
    lines = file.read_text(encoding="utf-8").splitlines()
    pins = [line for line in lines if line and not line.startswith("#")]
    assert pins
    assert not [
        line for line in pins if not re.fullmatch(r"[A-Za-z0-9_.-]+==[0-9][A-Za-z0-9.+!]*", line)
    ]
    assert not [line for line in lines if "://" in line]


GIVEN_UP = re.compile(r"\b(?:told|borne|as it came)\b", re.IGNORECASE)
WORD_LISTS = {
    "masis/audit/text/instructions.py",
    "masis/audit/text/instructions.toml",
    "masis/offline/text/tokens.py",
    "masis/offline/inference/minilm/tokenizer.json",
}
"""Files in which the words are data, because they match text from outside."""


def test_no_code_and_no_page_uses_retired_words() -> None:
    files = tracked_files({".py", ".md", ".js", ".toml", ".html"}, "masis", "docs", "README.md")
    assert len(files) > 300
    assert (
        lines_with(
            GIVEN_UP, [file for file in files if str(file.relative_to(ROOT)) not in WORD_LISTS]
        )
        == ""
    )


# README and docs are correct, refer to existing files, and lead from a page to its rule in three
# steps.

NAMING_FILES = {".py", ".md", ".toml", ".js", ".css", ".sh", ".yaml", ".html"}
FOLDERS = "masis|docs|tests|tools|benchmarks|examples|pages|data|constraints"
NAMED = re.compile(
    rf"(?<![\w/.-])((?:{FOLDERS})/[\w./-]*\w\.(?:py|md|toml|txt|json|jsonl|js|css|sh|npz|html|png))\b"
)
OUTSIDE = re.compile(r"\b(?:DESIGN|FIELD|LANGUAGE|PLATFORM|STYLE)\.md\b|(?<![\w/])specs/")
PLACEHOLDER = re.compile(r"\b[A-Z]{4,}\.|^masis/_app/|/file\.py$")
"""Placeholders, and files that exist only in the wheel."""


def test_every_referenced_file_exists() -> None:
    missing = [
        f"{file.relative_to(ROOT)}:{number}: {name}"
        for file in tracked_files(NAMING_FILES)
        for number, line in lines_of(file)
        for name in NAMED.findall(line)
        if not PLACEHOLDER.search(name) and not (ROOT / name).exists()
    ]
    assert not missing, "\n".join(missing)


def test_no_document_outside_the_repository_is_cited() -> None:
    assert lines_with(OUTSIDE, tracked_files(NAMING_FILES)) == ""


README = (ROOT / "README.md").read_text(encoding="utf-8")


def make_targets() -> set[str]:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    return set(re.findall(r"^([a-z]+):", makefile, re.MULTILINE))


def test_every_make_command_in_the_readme_exists() -> None:
    named = set(re.findall(r"^\s*make ([a-z]+)|`make ([a-z]+)", README, re.MULTILINE))
    assert {first or second for first, second in named} <= make_targets() | {"help"}


def test_the_example_case_of_the_readme_is_valid_and_can_be_audited() -> None:
    example = re.search(r"run_audit\(\s*(\{.*?\})\s*\)", README, re.DOTALL)
    assert example
    run = run_audit(ast.literal_eval(example[1]))
    assert run.best_iteration.citation_audit.invalid_citations == ()
    assert not run.needs_review


def test_the_generated_page_is_current() -> None:
    current = configuration.PAGE.read_text(encoding="utf-8")
    assert current == configuration.page(), "run python tools/configuration.py"


def test_every_setting_is_documented() -> None:
    page = configuration.page()
    for name in Settings.model_fields:
        assert f"\n| `{name}`" in page


@pytest.mark.spec("DRAFT-CRITIQUE-CONFIG")
def test_every_yaml_key_of_the_spec_is_documented() -> None:
    page = configuration.page()
    for key, name in YAML_KEYS.items():
        assert f"\n| `{key}` | `{name}` | `MASIS_RETRIEVAL__CRITIQUE__" in page


def test_the_example_configuration_has_the_documented_values() -> None:
    found = load(file=configuration.EXAMPLE, environment={})
    told = found.settings
    assert (told.critic, told.reviser, told.max_iterations) == ("vllm:llama-3.3-70b", "offline", 2)
    assert (told.strictness, told.draft_max_revisions, told.draft_min_length) == ("strict", 2, 80)
    assert (told.screening_max_rounds, told.review_threshold) == (3, 0.8)
    assert told.providers["vllm"].concurrency == 8
    assert {found.origins[name].kind for name in YAML_KEYS.values()} == {"file"}


def test_every_documented_variable_is_recognized() -> None:
    shown = [
        line.strip()
        for line in configuration.INTRODUCTION.splitlines()
        if line.startswith("    MASIS_")
    ]
    environment = dict(line.split("=", 1) for line in shown)
    assert len(environment) == 5
    found = load(environment={name: value.strip("'") for name, value in environment.items()})
    told = found.settings
    assert (told.max_iterations, told.screening_max_rounds, told.draft_auto_revise) == (2, 3, True)
    assert told.providers["vllm"].concurrency == 8
    assert not found.warnings


ROW = re.compile(r"^\| ([^|]*?) ?\| `(masis/[\w/]+\.py)` \| (.*) \|$", re.MULTILINE)
LONGEST = 3


class Opening(NamedTuple):
    """A file to open, and the names to look for in it."""

    file: str
    names: tuple[str, ...]


def walks() -> dict[str, list[Opening]]:
    """Return the files of each question, from the page to the rule."""
    found: dict[str, list[Opening]] = {}
    question = ""
    for asked, file, hint in ROW.findall(
        (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    ):
        question = asked or question
        found.setdefault(question, []).append(Opening(file, tuple(re.findall(r"`([\w.]+)`", hint))))
    return found


def test_each_walkthrough_is_short_and_each_file_refers_to_the_next() -> None:
    found = walks()
    assert len(found) == 5
    broken = []
    for question, openings in found.items():
        assert 1 < len(openings) <= LONGEST, question
        for here, there in pairwise(openings):
            module = there.file.removesuffix(".py").replace("/", ".")
            if not re.search(
                rf"{re.escape(there.file)}|\b{re.escape(module)}\b",
                (ROOT / here.file).read_text("utf-8"),
            ):
                broken.append(f"{question} {here.file} does not name {there.file}")
    assert not broken, "\n".join(broken)


def test_the_names_of_a_walkthrough_exist_in_its_files() -> None:
    missing = [
        f"{opening.file}: {name}"
        for openings in walks().values()
        for opening in openings
        for name in opening.names
        if name.rpartition(".")[2] not in (ROOT / opening.file).read_text("utf-8")
    ]
    assert not missing, "\n".join(missing)

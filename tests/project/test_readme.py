"""What the README says is so: its commands, its pictures, its layout, its example."""

from __future__ import annotations

import re
from pathlib import Path

import click

from masis import Case, run_audit
from masis.cli import main

ROOT = Path(__file__).resolve().parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")
LARGEST_PICTURE = 400_000


def make_targets() -> set[str]:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    return set(re.findall(r"^([a-z]+):", makefile, re.MULTILINE))


def test_every_make_command_it_names_exists() -> None:
    named = set(re.findall(r"^\s*make ([a-z]+)|`make ([a-z]+)", README, re.MULTILINE))
    assert {first or second for first, second in named} <= make_targets() | {"help"}


def test_every_command_it_names_exists_and_every_command_is_named() -> None:
    assert isinstance(main, click.Group)
    known = set(main.list_commands(click.Context(main)))
    named = set(re.findall(r"^    masis ([a-z-]+)", README, re.MULTILINE))
    assert named == known


def test_every_picture_is_there_and_light_enough() -> None:
    pictures = re.findall(r"!\[[^\]]+\]\(([^)]+)\)", README)
    assert pictures
    for picture in pictures:
        assert (ROOT / picture).stat().st_size < LARGEST_PICTURE


def test_every_part_of_the_layout_is_there() -> None:
    layout = README.split("## Layout", 1)[1].split("## ", 1)[0]
    paths = re.findall(r"^    (\S+?),? ", layout, re.MULTILINE)
    assert paths
    assert not [path for path in paths if not (ROOT / path).exists()]


def test_its_example_case_is_one_and_can_be_audited() -> None:
    example = re.search(r'^    (\{"id".*?\}\]\})', README, re.MULTILINE | re.DOTALL)
    assert example
    run = run_audit(Case.model_validate_json(example[1].replace("\n", " ")))
    assert run.best_iteration is not None
    assert run.best_iteration.citation_audit.invalid_citations == ()
    assert not run.needs_review

"""The validator's package is missing: said at the start, with what installs it, and nothing is made or sent."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest
from click.testing import CliRunner

import masis
from masis.cli import main
from masis.errors import MissingExtra
from tests.cli.running import case, lines

pytestmark = [
    pytest.mark.skipif(importlib.util.find_spec("baml_py") is not None, reason="the package is here"),
    pytest.mark.slow,
]


def test_the_command_line_says_what_installs_it_and_leaves_nothing(tmp_path: Path) -> None:
    cases, database, out = tmp_path / "cases.jsonl", tmp_path / "masis.db", tmp_path / "runs.jsonl"
    cases.write_bytes(lines(case("one")))
    told = CliRunner().invoke(
        main,
        ["audit", str(cases), "--db", str(database), "--out", str(out), "--set", "output_validator=baml"],
    )
    assert told.exit_code == 1
    assert "pip install '.[baml]'" in told.output
    assert not database.exists()
    assert not out.exists()


def test_the_pipeline_says_so_before_anything_is_searched() -> None:
    with pytest.raises(MissingExtra, match=r"pip install '\.\["):
        masis.query_with_critique(
            "How long?", lambda query: pytest.fail("searched"), settings=masis.Settings(output_validator="baml")
        )


def test_the_decorator_says_so_where_it_stands() -> None:
    with pytest.raises(MissingExtra, match=r"pip install '\.\["):
        masis.audited(settings=masis.Settings(output_validator="baml"))

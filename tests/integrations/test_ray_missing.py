"""Ray is not installed: the command says what installs it, and nothing is read or made."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest
from click.testing import CliRunner

from masis.cli import main
from tests.cli.running import case, lines


@pytest.mark.skipif(importlib.util.find_spec("ray") is not None, reason="the package is here")
def test_the_command_line_says_what_installs_it_and_leaves_nothing(tmp_path: Path) -> None:
    cases, out = tmp_path / "cases.jsonl", tmp_path / "audited"
    cases.write_bytes(lines(case("one")))
    said = CliRunner().invoke(main, ["audit", str(cases), "--engine", "ray", "--out", str(out)])
    assert said.exit_code == 1
    assert "pip install '.[ray]'" in said.output
    assert not out.exists()


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        (["--engine", "ray", "--out", "x", "--db", "y.db"], "--db"),
        (["--engine", "ray", "--out", "x", "--limit", "3"], "--limit"),
        (["--engine", "ray"], "--out"),
        (["--address", "auto"], "--address"),
        (["--as", "ragas"], "--as"),
    ],
)
def test_an_option_of_the_other_engine_is_wrong_use(tmp_path: Path, arguments: list[str], named: str) -> None:
    cases = tmp_path / "cases.jsonl"
    cases.write_bytes(lines(case("one")))
    said = CliRunner().invoke(main, ["audit", str(cases), *arguments])
    assert said.exit_code == 2
    assert named in said.output

"""Every command explains itself, and docs/cli.md says the same as --help."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

from masis.cli import COMMANDS, main
from tools.cli_reference import reference

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_explains_itself_with_an_example(name: str) -> None:
    shown = CliRunner().invoke(main, [name, "--help"])
    assert shown.exit_code == 0, shown.output
    assert shown.output.startswith(f"Usage: masis {name} ")
    assert f"\n    masis {name}" in shown.output
    assert "--db" in shown.output or name in ("bench", "config", "dataset", "models", "person", "redact")


def test_the_page_of_the_command_line_is_what_help_prints() -> None:
    assert (ROOT / "docs" / "cli.md").read_text(encoding="utf-8") == reference(), "run: python tools/cli_reference.py"

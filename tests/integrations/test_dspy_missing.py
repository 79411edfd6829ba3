"""Without DSPy the door says what to install, and nothing else of the workbench notices."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from masis.api.roles import addresses, build_roles, check_models, offered_models, pin_versions, uses_models
from masis.cli import main
from masis.errors import MissingExtra
from masis.integrations.dspy import programs
from masis.settings import Settings
from tests.integrations.test_dspy_programs import a_program

pytestmark = pytest.mark.slow


@pytest.fixture
def no_dspy(monkeypatch: pytest.MonkeyPatch) -> None:
    """As where the extra is not installed."""
    monkeypatch.setitem(sys.modules, "dspy", None)
    for name in [name for name in sys.modules if name.startswith("masis.integrations.dspy.")]:
        if name.rpartition(".")[2] in (
            "agents",
            "loading",
            "compiling",
            "roles",
            "critic_loop",
            "fenced",
            "signatures",
        ):
            monkeypatch.delitem(sys.modules, name)


@pytest.mark.slow
def test_importing_masis_imports_no_dspy() -> None:
    code = "import sys, masis, masis.api.audits, masis.cli.audit; assert 'dspy' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.usefixtures("no_dspy")
def test_the_modules_name_the_extra() -> None:
    import masis.integrations.dspy as door

    with pytest.raises(MissingExtra, match=r"pip install '\.\[dspy\]'"):
        _ = door.CriticAgent
    with pytest.raises(AttributeError):
        _ = door.Nothing
    assert door.CriticAgentOutput.__name__ == "CriticAgentOutput"


@pytest.mark.usefixtures("no_dspy")
def test_a_program_can_be_listed_and_named_and_says_what_it_needs(tmp_path: Path) -> None:
    programs.saved(tmp_path, a_program())
    listed = CliRunner().invoke(main, ["optimize", "--list", "--programs", str(tmp_path)])
    assert "dspy:careful@1" in listed.stdout
    settings = Settings(critic="dspy:careful", programs_folder=str(tmp_path))
    assert pin_versions(settings).critic == "dspy:careful@1"
    assert "dspy:careful@1" not in offered_models(settings, "critic")
    assert uses_models(settings)
    for refused in (check_models, build_roles, addresses):
        with pytest.raises(MissingExtra, match=r"pip install '\.\["):
            refused(settings)


@pytest.mark.usefixtures("no_dspy")
def test_the_command_names_the_extra(tmp_path: Path) -> None:
    found = CliRunner().invoke(main, ["optimize", "--model", "ollama:m", "--name", "a"])
    assert found.exit_code == 1
    assert "pip install '.[dspy]'" in found.stderr

"""Where an extra's package is missing, whoever asks for it is told what installs it, and nothing is
made or sent.

The packages are here, most of them: their import is refused, as where they are not installed.
"""

from __future__ import annotations

import importlib
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner

import masis
import masis.integrations.dspy as door
from masis import query_with_critique
from masis.api import audits
from masis.api.roles import addresses, build_roles, check_models, offered_models, pin_versions
from masis.audit import output_validation
from masis.cli import main
from masis.errors import MissingExtra
from masis.integrations import telemetry
from masis.integrations.dspy import programs
from masis.schema.case import Case
from masis.settings import Settings
from tests.cli.running import case, lines
from tests.integrations.test_dspy_programs import a_program

pytestmark = pytest.mark.slow

OURS = {"otel": "telemetry"}
"""Packages of ours that have another name than the extra."""
BAML, CASE = Settings(output_validator="baml"), Case.model_validate(case("one"))


@pytest.fixture
def without(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Refuses a package, and forgets what was imported of it and of our modules that
    stand on it.
    """

    def refuse(package: str, extra: str = "") -> None:
        ours = f"masis.integrations.{OURS.get(extra, extra or package)}"
        for name in list(sys.modules):
            if name == ours or name.startswith((f"{package}.", f"{ours}.")):
                monkeypatch.delitem(sys.modules, name)
        monkeypatch.setitem(sys.modules, package, None)
        output_validation.validator_named.cache_clear()

    return refuse


@pytest.fixture
def cases(tmp_path: Path) -> Path:
    """A file of one case."""
    file = tmp_path / "cases.jsonl"
    file.write_bytes(lines(case("one")))
    return file


def test_importing_masis_imports_no_package_of_an_extra() -> None:
    packages = {"dspy", "ray", "mcp", "langgraph", "baml_py", "opentelemetry.sdk", "torch"}
    code = (
        f"import sys, masis, masis.api.audits, masis.cli.audit; print({packages} &"
        " set(sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert done.stdout.strip() == "set()"


@pytest.mark.parametrize(
    ("package", "extra", "arguments"),
    [
        (
            "baml_py",
            "baml",
            ["audit", "cases.jsonl", "--db", "made", "--set", "output_validator=baml"],
        ),
        ("ray", "ray", ["audit", "cases.jsonl", "--engine", "ray", "--out", "made"]),
        ("mcp", "mcp", ["mcp", "--db", "made"]),
        ("dspy", "dspy", ["optimize", "--model", "ollama:m", "--name", "a", "--programs", "made"]),
    ],
)
@pytest.mark.usefixtures("cases")
def test_a_command_names_its_missing_extra_without_side_effects(
    without: Callable[..., None],
    package: str,
    extra: str,
    arguments: list[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    without(package, extra)
    monkeypatch.chdir(tmp_path)
    said = CliRunner().invoke(main, arguments)
    assert said.exit_code == 1, said.output
    assert f"pip install '.[{extra}]'" in said.stderr
    assert not Path("made").exists()


@pytest.mark.parametrize(
    ("package", "extra", "begun"),
    [
        (
            "baml_py",
            "baml",
            lambda: query_with_critique("How?", lambda query: pytest.fail("asked"), settings=BAML),
        ),
        ("baml_py", "baml", lambda: masis.audited(settings=BAML)),
        ("baml_py", "baml", lambda: audits.run_audit(CASE, BAML)),
        ("langgraph", "langgraph", lambda: importlib.import_module("masis.integrations.langgraph")),
        ("opentelemetry", "otel", lambda: telemetry.start(Settings(telemetry="otlp"))),
        ("dspy", "dspy", lambda: door.CriticAgent),
    ],
    ids=["pipeline", "decorator", "audit", "nodes of a graph", "telemetry", "modules of dspy"],
)
def test_a_function_names_its_missing_extra_at_once(
    without: Callable[..., None], package: str, extra: str, begun: Callable[[], object]
) -> None:
    without(package, extra)
    with pytest.raises(MissingExtra, match=rf"pip install '\.\[{extra}\]'"):
        begun()


def test_an_audit_without_telemetry_needs_no_package(without: Callable[..., None]) -> None:
    without("opentelemetry", "otel")
    with telemetry.start(Settings()) as off:
        assert audits.run_audit(CASE).iterations
    assert not off.on


def test_dspy_program_records_need_no_dspy(without: Callable[..., None]) -> None:
    without("dspy")
    with pytest.raises(AttributeError):
        _ = door.Nothing
    assert door.CriticAgentOutput.__name__ == "CriticAgentOutput"


def test_a_dspy_program_works_without_dspy_installed(
    without: Callable[..., None], tmp_path: Path
) -> None:
    programs.save_program(tmp_path, a_program())
    without("dspy")
    listed = CliRunner().invoke(main, ["optimize", "--list", "--programs", str(tmp_path)])
    assert "dspy:careful@1" in listed.stdout
    settings = Settings(critic="dspy:careful", programs_folder=str(tmp_path))
    assert pin_versions(settings).critic == "dspy:careful@1"
    assert "dspy:careful@1" in offered_models(settings, "critic")
    check_models(settings)
    assert build_roles(settings).models["critic"] == "dspy:careful@1"
    assert addresses(settings)


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        (["--engine", "ray", "--out", "x", "--db", "y.db"], "--db"),
        (["--engine", "ray", "--out", "x", "--limit", "3"], "--limit"),
        (["--engine", "ray"], "--out"),
        (["--address", "auto"], "--address"),
    ],
)
def test_an_option_of_the_other_engine_is_a_usage_error(
    cases: Path, arguments: list[str], named: str
) -> None:
    said = CliRunner().invoke(main, ["audit", str(cases), *arguments])
    assert said.exit_code == 2
    assert named in said.output

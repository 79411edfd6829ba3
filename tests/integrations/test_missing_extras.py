"""A missing extra is reported with the command that installs it, before anything is created or
sent.

Most of the packages are installed here, so the tests make their import fail.
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
import masis.integrations.dspy as dspy_integration
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
from tests.integrations.test_dspy_programs import program_of

pytestmark = pytest.mark.slow

INTEGRATION_NAMES = {"otel": "telemetry"}
"""Integrations whose package has another name than their extra."""
BAML, CASE = Settings(output_validator="baml"), Case.model_validate(case("one"))


@pytest.fixture
def block_package(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Return a function that makes imports of a package fail.

    It also removes the package's modules, and ours that use it, from ``sys.modules``.
    """

    def refuse(package: str, extra: str = "") -> None:
        integration = f"masis.integrations.{INTEGRATION_NAMES.get(extra, extra or package)}"
        for name in list(sys.modules):
            if name == integration or name.startswith((f"{package}.", f"{integration}.")):
                monkeypatch.delitem(sys.modules, name)
        monkeypatch.setitem(sys.modules, package, None)
        output_validation.validator_named.cache_clear()

    return refuse


@pytest.fixture
def cases(tmp_path: Path) -> Path:
    """Return a file with one case."""
    file = tmp_path / "cases.jsonl"
    file.write_bytes(lines(case("one")))
    return file


def test_importing_masis_imports_no_package_of_an_extra() -> None:
    packages = {"dspy", "ray", "mcp", "langgraph", "baml_py", "opentelemetry.sdk", "torch"}
    code = (
        f"import sys, masis, masis.api.audits, masis.cli.audit; print({packages} &"
        " set(sys.modules))"
    )
    result = subprocess.run(
        [sys.executable, "-c", code], check=True, capture_output=True, text=True
    )
    assert result.stdout.strip() == "set()"


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
    block_package: Callable[..., None],
    package: str,
    extra: str,
    arguments: list[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    block_package(package, extra)
    monkeypatch.chdir(tmp_path)
    result = CliRunner().invoke(main, arguments)
    assert result.exit_code == 1, result.output
    assert f"pip install '.[{extra}]'" in result.stderr
    assert not Path("made").exists()


@pytest.mark.parametrize(
    ("package", "extra", "use_extra"),
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
        ("dspy", "dspy", lambda: dspy_integration.CriticAgent),
    ],
    ids=["pipeline", "decorator", "audit", "nodes of a graph", "telemetry", "modules of dspy"],
)
def test_a_function_names_its_missing_extra_at_once(
    block_package: Callable[..., None], package: str, extra: str, use_extra: Callable[[], object]
) -> None:
    block_package(package, extra)
    with pytest.raises(MissingExtra, match=rf"pip install '\.\[{extra}\]'"):
        use_extra()


def test_an_audit_without_telemetry_needs_no_package(block_package: Callable[..., None]) -> None:
    block_package("opentelemetry", "otel")
    with telemetry.start(Settings()) as off:
        assert audits.run_audit(CASE).iterations
    assert not off.on


def test_dspy_program_records_need_no_dspy(block_package: Callable[..., None]) -> None:
    block_package("dspy")
    with pytest.raises(AttributeError):
        _ = dspy_integration.Nothing
    assert dspy_integration.CriticAgentOutput.__name__ == "CriticAgentOutput"


def test_a_dspy_program_works_without_dspy_installed(
    block_package: Callable[..., None], tmp_path: Path
) -> None:
    programs.save_program(tmp_path, program_of())
    block_package("dspy")
    listed = CliRunner().invoke(main, ["optimize", "--list", "--programs", str(tmp_path)])
    assert "dspy:careful@1" in listed.stdout
    settings = Settings(critic="dspy:careful", programs_folder=str(tmp_path))
    assert pin_versions(settings).critic == "dspy:careful@1"
    assert "dspy:careful@1" in offered_models(settings, "critic")
    check_models(settings)
    assert build_roles(settings).models["critic"] == "dspy:careful@1"
    assert addresses(settings)


@pytest.mark.parametrize(
    ("arguments", "option"),
    [
        (["--engine", "ray", "--out", "x", "--db", "y.db"], "--db"),
        (["--engine", "ray", "--out", "x", "--limit", "3"], "--limit"),
        (["--engine", "ray"], "--out"),
        (["--address", "auto"], "--address"),
    ],
)
def test_an_option_of_the_other_engine_is_a_usage_error(
    cases: Path, arguments: list[str], option: str
) -> None:
    result = CliRunner().invoke(main, ["audit", str(cases), *arguments])
    assert result.exit_code == 2
    assert option in result.output

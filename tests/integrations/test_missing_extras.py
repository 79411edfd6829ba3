"""Where an extra's package is missing, whoever asks for it is told what installs it, and nothing is made or sent.

The packages are here, most of them: their import is refused, as where they are not installed.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner

import masis
from masis.api import audits
from masis.api.roles import addresses, build_roles, check_models, offered_models, pin_versions
from masis.audit import output_validation
from masis.cli import main
from masis.errors import MissingExtra
from masis.integrations import mcp, telemetry
from masis.integrations.dspy import programs
from masis.schema.case import Case
from masis.settings import Settings
from tests.cli.running import case, lines
from tests.integrations.test_dspy_programs import a_program

pytestmark = pytest.mark.slow

OURS = {"otel": "telemetry"}
"""Packages of ours that have another name than the extra."""
BAML = Settings(output_validator="baml")


@pytest.fixture
def without(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Refuses a package, and forgets what was imported of it and of our modules that stand on it."""

    def refuse(package: str, extra: str = "") -> None:
        ours = f"masis.integrations.{OURS.get(extra, extra or package)}"
        for name in list(sys.modules):
            if name == ours or name.startswith((f"{package}.", f"{ours}.")):
                monkeypatch.delitem(sys.modules, name)
        monkeypatch.setitem(sys.modules, package, None)
        output_validation.chosen.cache_clear()

    return refuse


@pytest.fixture
def cases(tmp_path: Path) -> Path:
    """A file of one case."""
    file = tmp_path / "cases.jsonl"
    file.write_bytes(lines(case("one")))
    return file


def test_importing_masis_imports_no_package_of_an_extra() -> None:
    packages = {"dspy", "ray", "mcp", "langgraph", "baml_py", "opentelemetry.sdk", "torch"}
    code = f"import sys, masis, masis.api.audits, masis.cli.audit; print({packages} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert done.stdout.strip() == "set()"


@pytest.mark.parametrize(
    ("package", "extra", "arguments"),
    [
        ("baml_py", "baml", ["audit", "cases.jsonl", "--db", "made", "--set", "output_validator=baml"]),
        ("ray", "ray", ["audit", "cases.jsonl", "--engine", "ray", "--out", "made"]),
        ("mcp", "mcp", ["mcp", "--db", "made"]),
        ("dspy", "dspy", ["optimize", "--model", "ollama:m", "--name", "a", "--programs", "made"]),
    ],
)
@pytest.mark.usefixtures("cases")
def test_a_command_says_what_installs_it_and_leaves_nothing(
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
    "begun",
    [
        lambda: masis.query_with_critique("How long?", lambda query: pytest.fail("searched"), settings=BAML),
        lambda: masis.audited(settings=BAML),
        lambda: audits.run_audit(Case.model_validate(case("b")), BAML),
    ],
    ids=["pipeline", "decorator", "audit"],
)
def test_an_output_validator_says_so_at_the_start(without: Callable[..., None], begun: Callable[[], object]) -> None:
    without("baml_py", "baml")
    with pytest.raises(MissingExtra, match=r"pip install '\.\[baml\]'"):
        begun()


def test_the_server_for_agents_and_the_nodes_of_a_graph_say_so(without: Callable[..., None]) -> None:
    without("mcp")
    with pytest.raises(MissingExtra, match=r"pip install '\.\[mcp\]'"):
        mcp.require()
    without("langgraph")
    sys.modules.pop("masis.integrations.langgraph", None)
    with pytest.raises(MissingExtra, match=r"pip install '\.\[langgraph\]'"):
        import masis.integrations.langgraph  # noqa: F401


def test_telemetry_says_so_and_an_audit_without_telemetry_needs_none(without: Callable[..., None]) -> None:
    without("opentelemetry", "otel")
    with pytest.raises(MissingExtra, match=r"pip install '\.\[otel\]'"):
        telemetry.start(Settings(telemetry="otlp"))
    with telemetry.start(Settings()) as off:
        assert audits.run_audit(Case.model_validate(case("one"))).iterations
    assert not off.on


def test_modules_of_dspy_name_the_extra(without: Callable[..., None]) -> None:
    import masis.integrations.dspy as door

    without("dspy")
    with pytest.raises(MissingExtra, match=r"pip install '\.\[dspy\]'"):
        _ = door.CriticAgent
    with pytest.raises(AttributeError):
        _ = door.Nothing
    assert door.CriticAgentOutput.__name__ == "CriticAgentOutput"


def test_a_program_of_dspy_is_listed_named_and_asked_with_where_dspy_is_missing(
    without: Callable[..., None], tmp_path: Path
) -> None:
    programs.saved(tmp_path, a_program())
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
def test_an_option_of_the_other_engine_is_wrong_use(cases: Path, arguments: list[str], named: str) -> None:
    said = CliRunner().invoke(main, ["audit", str(cases), *arguments])
    assert said.exit_code == 2
    assert named in said.output

"""``masis config``: effective settings and their origin, checking a file, and creating one."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path

import pytest

from masis.settings import Settings, config_places
from tests.cli.running import Masis

ROOT = Path(__file__).resolve().parents[2]
KEY = "sk-proj-a1b2c3d4e5f6g7h8"


@pytest.fixture
def file(home: Path, tmp_path: Path) -> Path:
    """The configuration file of the working folder: three settings and a server."""
    file = tmp_path / "masis.toml"
    file.write_text(
        "# ours\nmax_iterations = 2\n\n[retrieval.critique]\ndefaultStrictness = 'strict'\n\n"
        "[providers.vllm]\naddress = 'http://127.0.0.1:8000/v1'\nkey_env = 'VLLM_KEY'\n",
        encoding="utf-8",
    )
    return file


def test_every_setting_is_shown_with_its_origin(
    masis: Masis, file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MASIS_REVIEW_THRESHOLD", "0.9")
    shown = masis(
        "config", "show", "--model", "critic=ollama:llama3.2", "--set", "draft_min_length=9"
    )
    assert shown.exit_code == 0
    lines = {
        line[2:].split()[0]: line for line in shown.stdout.splitlines() if line[:2] in ("* ", "  ")
    }
    assert lines.keys() >= Settings.model_fields.keys()
    assert lines["max_iterations"].split() == [
        "*",
        "max_iterations",
        "2",
        "masis.toml",
        "(default:",
        "3)",
    ]
    assert lines["strictness"].split()[2:4] == ["strict", "masis.toml"]
    assert lines["review_threshold"].split()[2:4] == ["0.9", "MASIS_REVIEW_THRESHOLD"]
    assert lines["critic"].split()[2:4] == ["ollama:llama3.2", "--model"]
    assert "9  " in lines["draft_min_length"]
    assert "--set draft_min_length (default: 50)" in lines["draft_min_length"]
    assert lines["drafter"].split() == ["drafter", "offline", "default"]
    assert lines["providers.vllm.address"].split()[2:] == ["http://127.0.0.1:8000/v1", "masis.toml"]
    assert "Configuration file  masis.toml" in shown.stdout


def test_only_changed_settings_are_shown_with_the_changed_option(masis: Masis, file: Path) -> None:
    settings = json.loads(masis("config", "show", "--changed", "--json").stdout)["settings"]
    assert list(settings) == [
        *("providers", "providers.vllm.address", "providers.vllm.key_env"),
        *("strictness", "max_iterations"),
    ]
    assert settings["max_iterations"] == {
        "value": 2,
        "default": 3,
        "changed": True,
        "origin": {"kind": "file", "place": "masis.toml"},
    }
    assert masis("config", "show", "--changed").stdout.count("*") == len(settings) + 1


def test_keys_are_never_shown_only_whether_they_are_set(
    masis: Masis, file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert "VLLM_KEY" in (shown := masis("config", "show").stdout)
    assert ", not set" in shown
    monkeypatch.setenv("VLLM_KEY", KEY)
    for more in (
        [],
        ["--json"],
        ["--set", f"critic={KEY}"],
        ["--set", f"drafter={KEY}", "--json"],
        ["--set", KEY],
    ):
        shown = masis("config", "show", *more).output
        assert KEY not in shown
        assert "a1b2c3d4" not in shown
    assert ", set" in masis("config", "show").stdout


def test_the_searched_config_paths_are_shown(masis: Masis, home: Path) -> None:
    shown = masis("config", "show").stdout
    assert "none (looked for masis.toml, " in shown
    assert "All settings have their default values." in shown


def test_an_unknown_model_in_the_file_is_named(masis: Masis, file: Path) -> None:
    file.write_text("\ncritic = 'opneai:gpt-4o'\nreviser = 'openai'\n", encoding="utf-8")
    for command in (["config", "check"], ["config", "show"], ["audit", "-"]):
        told = masis(*command, stdin=b"").stderr
        assert (
            "masis.toml, critic: there is no provider 'opneai'. Did you mean 'openai:gpt-4o'?"
            in told
        )
        assert "OPENAI_API_KEY" not in told  # a missing key isn't a problem of the file


def test_a_file_is_checked_independently_of_the_environment(
    masis: Masis, file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MASIS_MAX_ITERATIONS", "many")
    found = masis("config", "check", file)
    assert (found.exit_code, found.stdout) == (0, "")
    assert "is valid. It sets 4 settings" in found.stderr
    file.write_text("max_iterations = 9\n[loop]\nsteps = 3\n", encoding="utf-8")
    found = masis("config", "check")
    assert found.exit_code == 2
    assert "masis.toml, max_iterations: 9 is not a whole number from 1 to 5" in found.stderr
    assert "masis.toml: there is no setting 'loop.steps'" in found.stderr


def test_a_file_is_created_and_never_overwritten_without_force(
    masis: Masis, home: Path, tmp_path: Path
) -> None:
    file = tmp_path / "masis.toml"
    assert masis("config", "init").exit_code == 0
    assert tomllib.loads(file.read_text(encoding="utf-8"))["loop"] == {}
    file.write_text("max_iterations = 2\n", encoding="utf-8")
    assert masis("config", "init").exit_code == 1
    assert file.read_text(encoding="utf-8") == "max_iterations = 2\n"
    assert masis("config", "init", "--force").exit_code == 0
    assert masis("config", "init", "--out", "-").stdout == file.read_text(encoding="utf-8")
    assert masis("config", "check").exit_code == 0


def test_the_user_config_file_applies_everywhere(
    masis: Masis, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(home / "configuration"))
    assert masis("config", "init", "--user").exit_code == 0
    own = config_places()[-1]
    own.write_text("max_iterations = 2\n", encoding="utf-8")
    assert f"{own}" in masis("config", "show").stdout
    assert masis("config", "init", "--user").exit_code == 1


def test_the_documented_example_is_valid(masis: Masis, home: Path) -> None:
    found = masis("config", "check", ROOT / "examples" / "configuration" / "masis.toml")
    assert (found.exit_code, "is valid. It sets 18 settings" in found.stderr) == (
        0,
        True,
    ), found.stderr


def test_an_unknown_environment_variable_is_noted(
    masis: Masis, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MASIS_SPEED", "high")
    for command in (["config", "show"], ["import", "-"]):
        told = masis(*command, stdin=b"").stderr
        assert told.count("Note: MASIS_SPEED: this variable isn't read.") == 1

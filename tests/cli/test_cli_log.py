"""The log of a command on stderr: its levels, and its lines as JSON."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from tests.cli.running import Masis, case, lines


@pytest.fixture
def cases(tmp_path: Path) -> Path:
    file = tmp_path / "cases.jsonl"
    file.write_bytes(lines(case("1")))
    return file


def told(text: str) -> list[dict[str, object]]:
    return [json.loads(line) for line in text.splitlines() if line.startswith("{")]


@pytest.mark.spec("REQ-CRITIC-OBS-002")
def test_the_log_can_be_json(masis: Masis, cases: Path, tmp_path: Path) -> None:
    done = masis("audit", cases, "--db", tmp_path / "a.db", "--log", "info", "--log-format", "json")
    events = [line["event"] for line in told(done.stderr)]
    assert events[0] == "run_started"
    assert events[-1] == "run_finished"
    assert "iteration_finished" in events


def test_the_form_of_the_log_is_a_setting_that_the_option_outranks(
    masis: Masis, cases: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MASIS_LOG_FORMAT", "json")
    assert told(masis("audit", cases, "--db", tmp_path / "a.db", "--log", "info").stderr)
    plain = masis("audit", cases, "--db", tmp_path / "b.db", "--log", "info", "--log-format", "text")
    assert not told(plain.stderr)
    assert "ends after" in plain.stderr


def test_the_form_of_the_log_can_be_set_like_any_setting(masis: Masis, cases: Path, tmp_path: Path) -> None:
    asked = ["--log", "info", "--set", "log_format=json"]
    assert told(masis("audit", cases, "--db", tmp_path / "a.db", *asked).stderr)
    assert not told(masis("audit", cases, "--db", tmp_path / "b.db", *asked, "--log-format", "text").stderr)


def test_by_default_the_log_of_a_sound_audit_is_empty(masis: Masis, cases: Path, tmp_path: Path) -> None:
    done = masis("audit", cases, "--db", tmp_path / "a.db", "--log-format", "json")
    assert done.exit_code == 0
    assert not [line for line in told(done.stderr) if line["level"] == "INFO"]


def test_without_the_extra_telemetry_says_what_to_install(
    masis: Masis, cases: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "opentelemetry", None)
    monkeypatch.delitem(sys.modules, "masis.integrations.telemetry.spans", raising=False)
    done = masis("audit", cases, "--db", tmp_path / "a.db", "--set", "telemetry=otlp")
    assert done.exit_code == 1
    assert "pip install '.[otel]'" in done.stderr

"""``masis log`` and ``masis verify-log``: who decided what, page by page, and whether anything was altered since."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from masis.store import LogHead, Store
from tests.cli.running import Masis, case, lines
from tests.store.factories import a_case, a_decision
from tools import tamper


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


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, LogHead]:
    """An audited, decided and signed database, and the head that somebody noted."""
    path = tmp_path_factory.mktemp("signing") / "original.db"
    tamper.build(path)
    with Store.open(path) as store:
        store.settle()
        return path, store.decisions.head()


def test_a_key_signs_what_is_there_and_what_is_decided_later(
    masis: Masis, original: tuple[Path, LogHead], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    database, key, note = tmp_path / "log.db", tmp_path / "log.key", tmp_path / "head.json"
    tamper.attack(original[0], tmp_path, tamper.strip_signatures).rename(database)
    made = masis("verify-log", "--db", database, "--new-key", key, "--note", note)
    assert made.exit_code == 0, made.stderr
    assert "5 entries signed that had no signature." in made.stderr
    assert key.stat().st_mode & 0o077 == 0
    assert json.loads(note.read_text())["length"] == 4
    assert masis("verify-log", "--db", database, "--new-key", key).exit_code == 1, "a key is never replaced"
    with Store.open(database) as store:
        store.decisions.append(a_decision(a_case("bridge-1"), None))
    unsigned = masis("verify-log", "--db", database, "--key", key)
    assert unsigned.exit_code == 1
    assert "entry 5 of the decision log: not signed" in unsigned.stderr
    assert masis("verify-log", "--db", database, "--key", key, "--sign").exit_code == 0
    monkeypatch.setenv("MASIS_LOG_KEY", str(key))
    assert masis("db", "redact", "decision", "--db", database, _last(database), "--reason", "r", "--yes").exit_code == 0
    done = masis("verify-log", "--db", database, "--note", note)
    assert done.exit_code == 0, done.stderr
    assert "signed   7" in done.stdout
    cut = tamper.attack(original[0], tmp_path, tamper.cut_tail)
    shown = masis("verify-log", "--db", cut, "--note", note)
    assert shown.exit_code == 1
    assert "3 entries, 6 were noted: the end was cut off" in shown.stderr


def _last(database: Path) -> str:
    with Store.open(database) as store:
        return store.decisions.entries().rows[0].id


def test_a_key_that_is_none_is_a_wrong_use_in_words(
    masis: Masis, original: tuple[Path, LogHead], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    short = tmp_path / "short.key"
    short.write_text("secret")
    for arguments in (["--key", short], ["--key", tmp_path / "none.key"], ["--sign"]):
        assert masis("verify-log", "--db", original[0], *arguments).exit_code == 2
    monkeypatch.setenv("MASIS_LOG_KEY", str(short))
    shown = masis("health", "--db", original[0])
    assert shown.exit_code == 2
    assert "holds no key of 32 characters or more" in shown.stderr


def test_problems_are_named_once_by_the_command(masis: Masis, original: tuple[Path, LogHead], tmp_path: Path) -> None:
    altered = tamper.attack(original[0], tmp_path, tamper.edit_question)
    result = masis("verify-log", "--db", altered)
    assert result.exit_code == 1
    assert "case 'bridge-1' is not the one that was decided about: its text was altered" in result.stderr

"""``import``, ``export``, ``health``, ``log`` and ``verify-log``: data round-trips and alterations
are detected.
"""

from __future__ import annotations

import json
import os
import re
import shutil
from pathlib import Path

import pytest

from masis.schema.run import Run
from masis.services import Workbench
from masis.store import Store
from masis.store.records import LogHead
from tests.cli.running import Masis, case, desk, lines
from tests.reviewing import decide, undone
from tests.serving_models import ModelServer
from tests.store.factories import a_case, a_decision
from tools import tamper


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A database with three audited cases; two were decided by a person, and one decision was
    undone.
    """
    workbench = desk(
        tmp_path_factory.mktemp("store") / "first.db", case("ä"), case("b", field="law"), case("c")
    )
    for identifier in ("ä", "b"):
        decide(workbench, identifier)
    undone(workbench, "b", "Ada")
    workbench.close()
    return workbench.database


@pytest.fixture
def audited(template: Path, tmp_path: Path) -> Path:
    return Path(shutil.copy(template, tmp_path / "first.db"))


def test_cases_are_imported_once_and_exported_unchanged(masis: Masis, tmp_path: Path) -> None:
    file, database = tmp_path / "cases.jsonl", tmp_path / "new.db"
    given = [
        case("a", metadata={"z": 1, "a": [None, 2.5]}, labels={"clean": False, "claims": []}),
        case("b", field="law", query="Wie groß?"),
    ]
    file.write_bytes(lines(*given))
    first = masis("import", file, "--db", database)
    assert (first.exit_code, first.stdout) == (0, "")
    assert f"{file}: 2 cases imported." in first.stderr
    assert (
        "0 cases imported, 2 cases already stored."
        in masis("import", file, "--db", database).stderr
    )
    exported = masis("export", "--format", "cases", "--db", database)
    assert [json.loads(line) for line in exported.stdout.splitlines()] == given
    assert "2 lines written." in exported.stderr


def test_several_files_and_stdin_are_imported(masis: Masis, tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_bytes(lines(case("a")))
    (tmp_path / "b.jsonl").write_bytes(lines(case("b")))
    database = tmp_path / "new.db"
    masis("import", tmp_path / "a.jsonl", tmp_path / "b.jsonl", "--db", database)
    masis("import", "-", "--db", database, stdin=lines(case("c")))
    assert Workbench.open(database).store.cases.count() == 3


def test_a_case_with_a_taken_id_is_an_error_and_the_others_are_imported(
    masis: Masis, tmp_path: Path
) -> None:
    file, database = tmp_path / "cases.jsonl", tmp_path / "new.db"
    file.write_bytes(lines(case("a")))
    masis("import", file, "--db", database)
    file.write_bytes(lines(case("a", query="Another?"), case("b")))
    result = masis("import", file, "--db", database)
    assert result.exit_code == 1
    assert f"{file}: case 'a' is already here with other content." in result.stderr
    assert "read the file with --map id= " in result.stderr
    assert "1 case imported" in result.stderr
    cured = masis("import", file, "--db", database, "--map", "id=")
    assert cured.exit_code == 0, cured.stderr
    stored = {case.id: case.query for case in Workbench.open(database).store.cases.iterate()}
    # a and b stay; both are stored again with ids derived from their content
    assert len(stored) == 4
    assert stored["a"] != "Another?"
    assert list(stored.values()).count("Another?") == 1


def test_runs_are_exported_as_their_model_dumps_them(masis: Masis, audited: Path) -> None:
    result = masis("export", "--format", "runs", "--db", audited)
    runs = [Run.model_validate_json(line) for line in result.stdout.splitlines()]
    assert [run.case_id for run in runs] == ["ä", "b", "c"]


def test_health_passes_before_the_first_import(masis: Masis, home: Path) -> None:
    result = masis("health")
    assert result.exit_code == 0
    assert "There is no database yet" in result.stdout
    assert re.search(r"ok +models +offline: a small case was audited", result.stdout)
    assert not (home / "masis").exists()


def test_a_model_can_be_tested_before_the_first_import(masis: Masis, home: Path) -> None:
    wrong = masis("health", "--model", "critic=nobody:x")
    assert wrong.exit_code == 1
    assert re.search(r"BAD +critic +critic: there is no model 'nobody:x'", wrong.stdout)
    assert not (home / "masis").exists()
    with ModelServer() as server:
        (Path.cwd() / "masis.toml").write_text(
            f'[providers.here]\nkind = "openai"\naddress = "{server.address}"\n'
        )
        found = json.loads(masis("health", "--json", "--model", "critic=here:m").stdout)
    assert found["ok"] is True
    told = [item["message"] for item in found["items"] if item["name"] == "models"]
    assert told == [
        (
            "offline: a small case was audited from claims to scores (drafter, verifier, reviser,"
            " evaluator)"
        ),
        "here:m answers, in the form asked for. (critic)",
    ]


def test_health_reports_each_check_for_people_and_programs(masis: Masis, audited: Path) -> None:
    result = masis("health", "--db", audited)
    assert result.exit_code == 0, result.output
    assert "ok   decision log" in result.stdout
    report = json.loads(masis("health", "--json", "--db", audited).stdout)
    assert report["ok"] is True
    assert {"database", "decision log", "auditor"} <= {item["name"] for item in report["items"]}


@pytest.mark.parametrize(
    ("noted", "expected"),
    [
        ({"length": 99, "head": "0" * 64}, "but 99 were noted, so its end was cut off"),
        (
            {"length": 1, "head": "0" * 64},
            "entry 1 has another digest than the head that was noted",
        ),
        ({"length": 1}, "wasn't written by `masis verify-log --note`"),
    ],
)
def test_a_truncated_or_rewritten_log_is_detected_with_the_noted_head(
    masis: Masis, audited: Path, tmp_path: Path, noted: dict[str, object], expected: str
) -> None:
    note = tmp_path / "head.json"
    assert masis("verify-log", "--db", audited, "--note", note).exit_code == 0
    decide(Workbench.open(audited), "c", "escalate")
    assert masis("verify-log", "--db", audited, "--note", note).exit_code == 0
    note.write_text(json.dumps(noted))
    result = masis("verify-log", "--db", audited, "--note", note)
    assert result.exit_code == 1
    assert expected in result.stderr
    assert json.loads(note.read_text()) == noted


@pytest.fixture
def cases(tmp_path: Path) -> Path:
    file = tmp_path / "cases.jsonl"
    file.write_bytes(lines(case("1")))
    return file


def json_lines(text: str) -> list[dict[str, object]]:
    return [json.loads(line) for line in text.splitlines() if line.startswith("{")]


@pytest.mark.spec("REQ-CRITIC-OBS-002")
def test_the_log_can_be_json(masis: Masis, cases: Path, tmp_path: Path) -> None:
    done = masis("audit", cases, "--db", tmp_path / "a.db", "--log", "info", "--log-format", "json")
    events = [line["event"] for line in json_lines(done.stderr)]
    assert events[0] == "run_started"
    assert events[-1] == "run_finished"
    assert "iteration_finished" in events


def test_the_log_format_option_outranks_the_setting(
    masis: Masis, cases: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MASIS_LOG_FORMAT", "json")
    assert json_lines(masis("audit", cases, "--db", tmp_path / "a.db", "--log", "info").stderr)
    plain = masis(
        "audit", cases, "--db", tmp_path / "b.db", "--log", "info", "--log-format", "text"
    )
    assert not json_lines(plain.stderr)
    assert "ends after" in plain.stderr


def test_a_clean_audit_logs_nothing_by_default(masis: Masis, cases: Path, tmp_path: Path) -> None:
    done = masis("audit", cases, "--db", tmp_path / "a.db", "--log-format", "json")
    assert done.exit_code == 0
    assert not [line for line in json_lines(done.stderr) if line["level"] == "INFO"]


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, LogHead]:
    """An audited, decided and signed database, and the log head that was noted."""
    path = tmp_path_factory.mktemp("signing") / "original.db"
    tamper.build(path)
    with Store.open(path) as store:
        store.settle()
        return path, store.decisions.head()


def test_a_key_signs_existing_and_later_entries(
    masis: Masis, original: tuple[Path, LogHead], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    database, key, note = tmp_path / "log.db", tmp_path / "log.key", tmp_path / "head.json"
    tamper.attack(original[0], tmp_path, tamper.strip_signatures).rename(database)
    made = masis("verify-log", "--db", database, "--new-key", key, "--note", note)
    assert made.exit_code == 0, made.stderr
    assert "7 entries without a signature signed." in made.stderr
    assert key.stat().st_mode & 0o077 == 0
    assert json.loads(note.read_text())["length"] == 6
    assert masis("verify-log", "--db", database, "--new-key", key).exit_code == 1, (
        "a key is never replaced"
    )
    with Store.open(database) as store:
        store.decisions.append(a_decision(a_case("bridge-1"), None))
    unsigned = masis("verify-log", "--db", database, "--key", key)
    assert unsigned.exit_code == 1
    assert "entry 7 of the decision log: not signed" in unsigned.stderr
    assert masis("verify-log", "--db", database, "--key", key, "--sign").exit_code == 0
    monkeypatch.setenv("MASIS_LOG_KEY", str(key))
    assert (
        masis(
            "db", "redact", "decision", "--db", database, _last(database), "--reason", "r", "--yes"
        ).exit_code
        == 0
    )
    done = masis("verify-log", "--db", database, "--note", note)
    assert done.exit_code == 0, done.stderr
    assert "signed   9" in done.stdout
    cut = tamper.attack(original[0], tmp_path, tamper.cut_tail)
    shown = masis("verify-log", "--db", cut, "--note", note)
    assert shown.exit_code == 1
    assert "5 entries, but 8 were noted, so its end was cut off" in shown.stderr


def test_a_read_only_database_is_verified_from_a_copy_and_an_empty_file_has_no_log(
    masis: Masis, original: tuple[Path, LogHead], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    empty = tmp_path / "empty.db"
    empty.touch()
    found = masis("verify-log", "--db", empty)
    assert (found.exit_code, "is empty" in found.stderr, empty.stat().st_size) == (1, True, 0)
    folder = tmp_path / "read-only"
    folder.mkdir()
    database = tamper.attack(original[0], folder, lambda _: None)
    monkeypatch.setattr("masis.cli.database.os.access", lambda path, mode: mode != os.W_OK)
    found = masis("verify-log", "--db", database)
    assert found.exit_code == 0, found.stderr
    assert "is read-only, so a copy of it is checked" in found.stderr
    assert [path.name for path in folder.iterdir()] == [database.name], (
        "nothing was written beside it"
    )


def _last(database: Path) -> str:
    with Store.open(database) as store:
        return store.decisions.entries().rows[0].id


def test_an_invalid_key_is_a_usage_error(
    masis: Masis, original: tuple[Path, LogHead], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    short = tmp_path / "short.key"
    short.write_text("secret")
    for arguments in (["--key", short], ["--key", tmp_path / "none.key"], ["--sign"]):
        assert masis("verify-log", "--db", original[0], *arguments).exit_code == 2
    monkeypatch.setenv("MASIS_LOG_KEY", str(short))
    shown = masis("health", "--db", original[0])
    assert shown.exit_code == 2
    assert "doesn't contain a key of 32 characters or more" in shown.stderr


def test_problems_are_reported_once_by_the_command(
    masis: Masis, original: tuple[Path, LogHead], tmp_path: Path
) -> None:
    altered = tamper.attack(original[0], tmp_path, tamper.edit_question)
    result = masis("verify-log", "--db", altered)
    assert result.exit_code == 1
    assert "case 'bridge-1' differs from the decided one: its text was altered" in result.stderr
    decided = tamper.attack(original[0], tmp_path, tamper.edit_reason)
    assert "The decision log isn't intact" in masis("verify-log", "--db", decided).stderr
    assert masis("health", "--db", decided).exit_code == 1

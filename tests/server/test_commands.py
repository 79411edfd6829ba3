"""Commands on a server (``--url``) and the commands of tokens."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from masis.cli import main
from tests.cli.running import case, lines
from tests.server.conftest import Served

Run = Callable[..., Result]


@pytest.fixture
def on_team(team: Served, monkeypatch: pytest.MonkeyPatch) -> Run:
    """Runs a command on the server with sign-in, as the lead's token allows."""
    created = run(
        "token", "create", "test", "--by", "lead", "--role", "lead", "--db", team.workbench.database
    )
    assert created.exit_code == 0, created.stderr
    monkeypatch.setenv("MASIS_TOKEN", created.stdout.strip())
    return lambda *arguments: run(*arguments, "--url", team.url)


def run(*arguments: object) -> Result:
    return CliRunner().invoke(main, [str(argument) for argument in arguments])


def test_a_queue_is_worked_through_on_a_server(on_team: Run, team: Served, tmp_path: Path) -> None:
    queued = on_team("queue", "--json")
    assert queued.exit_code == 0, queued.stderr
    first = json.loads(queued.stdout.splitlines()[0])["id"]
    assert "Question" in on_team("show", first).stdout
    decided = on_team("decide", first, "reject", "--reason", "uncited")
    assert f"of {first}, by lead" in decided.stdout
    labelled = on_team("label", first, "supported", "It was opened in 1932")
    assert labelled.exit_code == 0, labelled.stderr
    assert on_team("comment", first, "Look at the date.").exit_code == 0
    log = on_team("log", first, "--json").stdout.splitlines()
    kinds = [json.loads(line)["decision"]["kind"] for line in log]
    assert kinds == ["comment", "decision", "decision"]
    exported = on_team("export", "--format", "decided", "--out", tmp_path / "decided.csv")
    assert exported.exit_code == 0, exported.stderr
    assert (tmp_path / "decided.csv").read_text(encoding="utf-8").startswith("case_id")
    assert (tmp_path / "decided.csv.manifest.json").is_file()
    undone = on_team("undo", json.loads(log[1])["id"])
    assert undone.exit_code == 0, undone.stderr
    reviewers = {
        entry.decision.reviewer for entry in team.workbench.reviews.iterate() if entry.decision
    }
    assert "lead" in reviewers


def test_a_file_is_audited_and_decided_on_a_server(on_team: Run, tmp_path: Path) -> None:
    file = tmp_path / "cases.jsonl"
    file.write_bytes(lines(case("a"), case("b")) + b'{"id": "c"}\n')
    runs = tmp_path / "runs.jsonl"
    audited = on_team("audit", file, "--out", runs)
    assert audited.exit_code == 1
    assert "line 3" in audited.stderr
    assert "2 cases audited" in audited.stderr
    assert len(runs.read_text(encoding="utf-8").splitlines()) == 2
    rows = tmp_path / "decisions.jsonl"
    made = {"case": "a", "verdict": "reject", "reason": "uncited"}
    rows.write_text(f"{json.dumps(made)}\n{json.dumps({**made, 'case': 'x'})}\n", encoding="utf-8")
    tried = on_team("decide", "--file", rows, "--dry-run")
    assert "would be recorded" in tried.stdout
    decided = on_team("decide", "--file", rows)
    assert decided.exit_code == 1
    assert "1 decision recorded, 1 refused" in decided.stderr


def test_options_that_only_a_file_has_are_refused_with_a_server(
    on_team: Run, tmp_path: Path
) -> None:
    file = tmp_path / "cases.jsonl"
    file.write_bytes(lines(case("a")))
    for arguments, names in (
        (("queue", "--db", tmp_path / "a.db"), "--db and --url"),
        (("audit", file, "--model", "offline"), "--model"),
        (("audit", file, "--max-cost", "1"), "--max-cost"),
        (("export", "--format", "claims", "--out", "-"), "--out"),
        (
            ("export", "--format", "claims", "--out", tmp_path / "c", "--shares", "50/25/25"),
            "--sha",
        ),
    ):
        refused = on_team(*arguments)
        assert (refused.exit_code, names in refused.stderr) == (2, True), refused.stderr


def test_plain_http_to_another_machine_needs_to_be_allowed() -> None:
    refused = run("queue", "--url", "http://audits.example.org")
    assert refused.exit_code == 2
    assert "--insecure" in refused.stderr


def test_a_token_is_created_listed_and_revoked(team: Served) -> None:
    database = team.workbench.database
    created = run(
        "token", "create", "nightly", "--by", "reviewer", "--role", "viewer", "--db", database,
        "--json",
    )  # fmt: skip
    token = json.loads(created.stdout)
    listed = run("token", "list", "--db", database)
    assert token["id"] in listed.stdout
    assert token["text"] not in listed.stdout
    assert "never" in listed.stdout
    assert run("token", "revoke", token["id"], "--db", database).exit_code == 0
    assert "revoked" in run("token", "list", "--db", database).stdout
    assert "no token 'x'" in run("token", "revoke", "x", "--db", database).stderr
    wrong = run("token", "create", " ", "--by", "reviewer", "--role", "lead", "--db", database)
    assert wrong.exit_code == 1
    assert "label" in wrong.stderr

"""``masis audit`` with language models: connection test, estimate, cost limit, and resuming after
an interruption.
"""

from __future__ import annotations

import json
import logging
import re
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from masis.errors import UnknownRecord
from masis.services import Workbench
from tests.cli.running import Masis, case, lines, start
from tests.served_replies import Behaviour, Request, faulty
from tests.serving_models import ModelServer
from tests.waiting import until

pytestmark = pytest.mark.slow

KEY = "sk-loopback-0123456789abcdef"


@pytest.fixture
def server() -> Iterator[ModelServer]:
    with ModelServer(issues="none", keys=[KEY]) as serving:
        yield serving


@pytest.fixture
def configured(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, server: ModelServer) -> Path:
    """A configuration with the scripted provider and a price, and its key in the environment."""
    return configure(tmp_path, monkeypatch, server)


def configure(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, server: ModelServer, price: bool = True
) -> Path:
    config = tmp_path / "masis.toml"
    table = (
        f'[providers.here]\nkind = "openai"\naddress = "{server.address}"\nkey_env = "HERE_KEY"\n'
    )
    price_table = '[prices."here:m"]\ninput = 10.0\noutput = 10.0\n'
    config.write_text("retry_base_s = 0.01\n" + table + (price_table if price else ""))
    monkeypatch.setenv("MASIS_CONFIG", str(config))
    monkeypatch.setenv("HERE_KEY", KEY)
    return config


def cases(tmp_path: Path, number: int) -> Path:
    file = tmp_path / "cases.jsonl"
    file.write_bytes(
        lines(
            *(
                case(f"case-{index}", query=f"How long is bridge {index}?")
                for index in range(number)
            )
        )
    )
    return file


def states(database: Path, number: int) -> list[list[str]]:
    store = Workbench.open(database).store
    found: list[list[str]] = []
    for index in range(number):
        try:
            found.append([run.state for run in store.runs.for_case(f"case-{index}")])
        except UnknownRecord:
            found.append([])
    return found


@pytest.mark.usefixtures("configured")
def test_a_batch_prints_its_estimated_and_its_actual_cost(masis: Masis, tmp_path: Path) -> None:
    result = masis(
        "audit", cases(tmp_path, 6), "--db", tmp_path / "m.db", "--model", "here:m", "--concurrency", 4,
        "--out", tmp_path / "runs.jsonl",
    )  # fmt: skip
    assert result.exit_code == 0, result.stderr
    assert "here:m answers, in the form asked for." in result.stderr
    assert "Estimate for 6 cases: up to" in result.stderr
    assert "6 cases audited" in result.stderr
    assert re.search(r"Models: \d+ calls, ", result.stderr)
    assert "95% were done within" in result.stderr
    runs = [json.loads(line) for line in (tmp_path / "runs.jsonl").read_bytes().splitlines()]
    assert [run["case_id"] for run in runs] == [f"case-{index}" for index in range(6)]
    for run in runs:
        assert run["models"] == dict.fromkeys(
            ("drafter", "verifier", "critic", "reviser", "evaluator"), "here:m"
        )
        assert run["usage"]["cost_usd"] > 0
        assert set(run["versions"]["prompts"]) == set(run["models"])
        assert KEY not in json.dumps(run)


@pytest.mark.usefixtures("configured")
def test_an_estimate_excludes_cases_already_audited(masis: Masis, tmp_path: Path) -> None:
    file, told = cases(tmp_path, 5), ("--db", tmp_path / "m.db", "--model", "here:m")
    whole = masis("audit", file, *told, "--limit", 2).stderr
    assert "Estimate for 2 cases: up to" in whole
    rest = masis("audit", file, *told).stderr
    assert "Estimate for 3 cases (2 already audited): up to" in rest
    assert "Estimate" not in masis("audit", file, *told).stderr
    assert "Estimate for 5 cases: up to" in masis("audit", file, *told, "--again").stderr


@pytest.mark.usefixtures("configured")
def test_an_estimate_of_a_long_file_uses_a_sample(
    masis: Masis, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("masis.cli.audit.SAMPLED", 2)
    file, told = (
        cases(tmp_path, 8),
        (
            "--db",
            tmp_path / "m.db",
            "--model",
            "here:m",
            "--max-cost",
            0.0001,
        ),
    )
    assert "Estimate for about 8 cases: up to" in masis("audit", file, *told).stderr
    assert "Estimate for about 5 cases: up to" in masis("audit", file, *told, "--limit", 5).stderr


@pytest.mark.usefixtures("configured")
def test_no_audit_starts_that_would_exceed_the_cost_limit(masis: Masis, tmp_path: Path) -> None:
    file, database = cases(tmp_path, 12), tmp_path / "m.db"
    result = masis(
        "audit",
        file,
        "--db",
        database,
        "--model",
        "here:m",
        "--max-cost",
        "0.4",
        "--concurrency",
        1,
    )
    finished = sum(state == ["finished"] for state in states(database, 12))
    assert 0 < finished < 12
    assert "The --max-cost limit was reached" in result.stderr
    again = masis("audit", file, "--db", database, "--model", "here:m", "--max-cost", "50")
    assert again.exit_code == 0
    assert states(database, 12) == [["finished"]] * 12


@pytest.mark.usefixtures("configured")
def test_an_invalid_key_stops_the_job_before_the_first_case(
    masis: Masis, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HERE_KEY", "sk-wrong-9876543210")
    result = masis("audit", cases(tmp_path, 3), "--db", tmp_path / "m.db", "--model", "here:m")
    assert result.exit_code == 1
    assert "HERE_KEY" in result.stderr
    assert "sk-wrong" not in result.stderr
    assert not (tmp_path / "m.db").exists()


def test_a_run_that_ended_with_an_error_is_audited_again_on_request(
    masis: Masis, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    broken = [True]

    def script(request: Request) -> Behaviour | None:
        return (
            faulty("500", request)
            if broken[0] and request.schema_name == "critique_reply"
            else None
        )

    file, database = cases(tmp_path, 2), tmp_path / "m.db"
    with ModelServer(script, issues="none") as server:
        configure(tmp_path, monkeypatch, server)
        first = masis("audit", file, "--db", database, "--model", "here:m")
        assert "2 audits have unscored parts" in first.stderr
        broken[0] = False
        assert (
            "2 cases skipped" in masis("audit", file, "--db", database, "--model", "here:m").stderr
        )
        again = masis("audit", file, "--db", database, "--model", "here:m", "--retry-errors")
    assert "2 cases audited" in again.stderr
    assert "unscored" not in again.stderr
    assert states(database, 2) == [["finished", "finished"]] * 2


@pytest.mark.usefixtures("configured")
def test_ctrl_c_twice_drops_running_audits_which_resume_later(
    masis: Masis, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file, database = cases(tmp_path, 6), tmp_path / "m.db"

    def hanging(request: Request) -> Behaviour | None:
        return Behaviour(hang_s=60) if request.schema_name == "critique_reply" else None

    with ModelServer(hanging, issues="none") as server:
        configure(tmp_path, monkeypatch, server)
        process = start("audit", file, "--db", database, "--model", "here:m", "--concurrency", "2")
        until(
            lambda: any(
                request.schema_name == "critique_reply" for request in list(server.requests)
            ),
            "a critic is asked",
        )
        process.send_signal(signal.SIGINT)
        told = iter(process.stderr.readline, "")
        assert any("Stopping" in line for line in told), "the first Ctrl-C was not taken"
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=60)
        assert process.returncode != 0
    with ModelServer(issues="none") as server:
        configure(tmp_path, monkeypatch, server)
        again = masis("audit", file, "--db", database, "--model", "here:m")
    assert again.exit_code == 0, again.stderr
    assert states(database, 6) == [["finished"]] * 6


@pytest.mark.spec("REQ-CRITIC-OBS-002", "REQ-CRITIC-SEC-003")
@pytest.mark.usefixtures("configured")
@pytest.mark.parametrize(
    ("options", "told", "kept_back"),
    [
        ((), (), ("begins on case", "120 metres")),
        (
            ("--log", "info"),
            ("begins on case", "iteration 1: quality", "here:m, critic/"),
            ("120 metres",),
        ),
        (("--log", "debug"), ("begins on case",), ("120 metres",)),
        (("--log", "debug", "--set", "log_texts=true"), ("120 metres",), ()),
    ],
)
def test_the_log_has_the_requested_level_and_texts_only_if_enabled(
    masis: Masis,
    tmp_path: Path,
    options: tuple[str, ...],
    told: tuple[str, ...],
    kept_back: tuple[str, ...],
) -> None:
    before = (list(logging.getLogger("masis").handlers), logging.getLogger("masis").level)
    result = masis(
        "audit", cases(tmp_path, 1), "--db", tmp_path / "m.db", "--model", "here:m", *options
    )
    assert result.exit_code == 0, result.stderr
    assert [words for words in told if words not in result.stderr] == []
    assert [words for words in (*kept_back, KEY) if words in result.stderr] == []
    assert (logging.getLogger("masis").handlers, logging.getLogger("masis").level) == before


def test_the_concurrency_option_outranks_the_providers_limit(
    masis: Masis, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Long enough for the next calls to arrive, even on a busy machine.
    def script(request: Request) -> Behaviour | None:
        return Behaviour(hang_s=2.0) if request.number < 2 else None

    with ModelServer(script, latency_ms=20, issues="none") as server:
        config = configure(tmp_path, monkeypatch, server)
        config.write_text(config.read_text().replace("[prices", "concurrency = 4\n[prices"))
        arguments = ("--db", tmp_path / "m.db", "--model", "here:m", "--concurrency", 2)
        result = masis("audit", cases(tmp_path, 4), *arguments)
        assert result.exit_code == 0, result.stderr
        assert server.most_at_once == 2


def test_a_retry_is_reported_in_one_line(
    masis: Masis, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def script(request: Request) -> Behaviour | None:
        return faulty("500", request) if request.number == 0 else None

    with ModelServer(script, issues="none") as server:
        configure(tmp_path, monkeypatch, server)
        result = masis(
            "audit", cases(tmp_path, 1), "--db", tmp_path / "m.db", "--model", "here:m", "--no-ask"
        )
    assert [
        line.partition(" ")[2]
        for line in result.stderr.splitlines()
        if " try " in line or "again" in line
    ] == ["WARNING verifier here:m for case 'case-0': try 1: server"]


def test_if_every_audit_fails_the_commonest_reasons_are_named_and_the_exit_code_is_1(
    masis: Masis, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    full = Behaviour(finish="length", prompt_tokens=4_000, completion_tokens=11)
    with ModelServer(lambda request: full, keys=[KEY]) as server:
        configure(tmp_path, monkeypatch, server)
        arguments = (
            "audit",
            cases(tmp_path, 3),
            "--db",
            tmp_path / "m.db",
            "--model",
            "here:m",
            "--no-ask",
        )
        result = masis(*arguments)
        assert result.exit_code == 1
        assert "Every audit failed" in result.stderr
        assert "calls: here:m: the model's context is full: 4,000 tokens" in result.stderr
        assert "llama-server -c 32768" in result.stderr
        again = masis(*arguments)
    assert again.exit_code == 0
    assert "3 skipped cases had unscored parts after a failure. Use --retry-errors" in again.stderr


@pytest.mark.usefixtures("configured")
def test_recorded_replies_are_replayed_without_a_key_or_a_call(
    masis: Masis, tmp_path: Path, server: ModelServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    file, replies = cases(tmp_path, 2), tmp_path / "replies.jsonl"
    first = masis(
        "audit", file, "--db", tmp_path / "a.db", "--model", "here:m", "--record", replies
    )
    assert first.exit_code == 0, first.stderr
    assert first.stderr.count("Redaction, purge and retention don't change this file") == 1
    recorded = len(replies.read_bytes().splitlines())
    asked = len(server.requests)
    monkeypatch.delenv("HERE_KEY")
    again = masis(
        "audit",
        file,
        "--db",
        tmp_path / "b.db",
        "--replay",
        replies,
        "--max-cost",
        1,
        "--out",
        tmp_path / "runs.jsonl",
    )
    assert again.exit_code == 0, again.stderr
    assert len(server.requests) == asked
    today = json.loads(replies.read_bytes().splitlines()[0])["date"][:10]
    assert f"Recorded replies of here:m, {today}; no model was called." in again.stderr
    assert f"{recorded} recorded replies." in again.stderr
    assert not re.search(r"[1-9]\d* calls,", again.stderr)
    for line in (tmp_path / "runs.jsonl").read_bytes().splitlines():
        assert json.loads(line)["models"]["critic"] == f"replay:{replies} (here:m, {today})"
        assert json.loads(line)["unscored"] is None
    skipped = masis("audit", file, "--db", tmp_path / "b.db", "--replay", replies)
    assert "2 cases skipped" in skipped.stderr, "the same file is the same audit"

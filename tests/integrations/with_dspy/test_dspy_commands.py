"""``masis optimize`` and an audit with what it made."""

from __future__ import annotations

import json
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from masis.cli import main
from tests.cli.running import lines, start
from tests.integrations.with_dspy import learning_model as learning
from tests.serving_models import ModelServer
from tests.waiting import until

pytestmark = pytest.mark.timeout(300)  # programs are compiled, with many calls


@pytest.fixture
def learner(tmp_path: Path) -> Iterator[ModelServer]:
    """The learning model served, the provider's address in masis.toml, labelled cases and one to
    audit.
    """
    with ModelServer(learning.critic) as served:
        (tmp_path / "masis.toml").write_text(
            f'[providers.scripted]\naddress = "{served.address}"\n'
        )
        (tmp_path / "cases.jsonl").write_bytes(lines(*learning.cases()))
        (tmp_path / "new.jsonl").write_bytes(lines(learning.case(52, True) | {"labels": None}))
        yield served


def masis(*arguments: str) -> Result:
    return CliRunner().invoke(main, arguments)


OPTIMIZE = ("optimize", "--on", "cases.jsonl", "--model", "scripted:m", "--name", "careful")


@pytest.mark.spec("REQ-CRITIC-007")
def test_a_compiled_critic_is_saved_listed_and_used(learner: ModelServer, tmp_path: Path) -> None:
    making = start(*OPTIMIZE)
    out, said = making.communicate(timeout=250)
    assert making.returncode == 0, said
    assert "The metric improved" in said
    file = Path(out.strip())
    about = json.loads(file.read_text())
    assert file.name == "v1.json"
    assert about["after"]["mean"] > about["before"]["mean"]
    assert {"digest", "optimizer", "model", "data", "metric", "made_at", "masis"} <= about.keys()

    listed = masis("optimize", "--list")
    assert "dspy:careful@1" in listed.stdout
    shown = masis("optimize", "--show", "careful")
    assert "Demonstration 4" in shown.stdout

    asked = len(learner.requests)
    audited = masis(
        "audit",
        "new.jsonl",
        "--model",
        "critic=dspy:careful",
        "--db",
        "a.db",
        "--out",
        "runs.jsonl",
    )
    assert audited.exit_code == 0, audited.stderr
    run = json.loads((tmp_path / "runs.jsonl").read_text())
    assert run["models"]["critic"] == "dspy:careful@1"
    assert run["settings"]["critic"] == "dspy:careful@1"
    assert run["versions"]["prompts"]["critic"] == f"dspy:careful@1+{about['digest'][:8]}"
    first = run["iterations"][0]
    found = [issue for issue in first["issues"] if issue["source"] == "critic"]
    assert [issue["quote"] for issue in found] == ["It carries 132 trains [chunk_3]."]
    assert first["calls"][0]["model"] == "scripted:m"
    assert first["calls"][0]["prompt_tokens"] > 1000
    critiques = [
        request for request in learner.requests[asked:] if request.schema_name == "critique_reply"
    ]
    assert critiques
    assert all(len(critique.fences("EXAMPLE_REPLY")) == 4 for critique in critiques)

    again = masis(*OPTIMIZE)
    assert Path(again.stdout.strip()).name == "v2.json"
    assert json.loads(file.read_text()) == about
    both = masis(
        "audit",
        "new.jsonl",
        "--model",
        "critic=dspy:careful",
        "--db",
        "a.db",
        "--out",
        "runs.jsonl",
    )
    assert "1 case audited" in both.stderr
    assert json.loads((tmp_path / "runs.jsonl").read_text())["models"]["critic"] == "dspy:careful@2"


def test_a_control_run_saves_nothing_and_reports_no_gain(
    learner: ModelServer, tmp_path: Path
) -> None:
    made = masis(*OPTIMIZE, "--control", "--programs", "programs")
    assert made.exit_code == 0, made.stderr
    assert "The metric didn't improve." in made.stderr
    assert made.stdout == ""
    assert not (tmp_path / "programs").exists()


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (("optimize",), 2, "--name careful"),
        (("optimize", "--name", "A b", "--model", "scripted:m"), 2, "can't name a program"),
        (
            ("optimize", "--name", "a", "--model", "scripted:m", "--on", "nowhere.jsonl"),
            2,
            "write demo",
        ),
        (
            ("optimize", "--name", "a", "--model", "scripted:m", "--on", "new.jsonl"),
            1,
            "no answers with labels",
        ),
        (
            ("optimize", "--name", "a", "--model", "scripted:m", "--on", "decisions"),
            1,
            "the database doesn't exist",
        ),
        (("optimize", "--show", "a"), 2, "there is no program"),
        (("audit", "new.jsonl", "--model", "critic=dspy:a"), 2, "there is no program"),
        (
            ("optimize", "--name", "a", "--model", "scripted:m", "--max-cost", "1"),
            2,
            "no price is known",
        ),
    ],
)
def test_invalid_usage_is_reported_with_a_hint(
    arguments: tuple[str, ...], code: int, said: str, learner: ModelServer
) -> None:
    found = masis(*arguments)
    assert (found.exit_code, said in found.stderr) == (code, True), found.stderr
    assert "Traceback" not in found.stderr


def test_ctrl_c_stops_compiling_and_saves_nothing(learner: ModelServer, tmp_path: Path) -> None:
    learner.latency_s = 0.5
    running = start(*OPTIMIZE, "--programs", "programs")
    until(
        lambda: len(learner.requests) >= 14 or running.poll() is not None,
        "the optimiser is at work",
    )
    running.send_signal(signal.SIGINT)
    _, said = running.communicate(timeout=60)
    assert running.returncode == 130, said
    assert "Nothing was stored" in said
    assert not (tmp_path / "programs").exists()

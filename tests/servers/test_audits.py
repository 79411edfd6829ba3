"""Audits with third-party model servers at their defaults and ours: every reply is parsed and no
message misleads.

The model has no content of its own (``tiny_model``), so these tests cover the protocol: reply
formats, contexts, slots, keys, and that no claim is scored without a reply.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from masis.llm.registry import probe
from masis.settings import Settings
from tests.servers import running
from tests.servers.running import Served

pytestmark = pytest.mark.timeout(600)
STARTED = {
    "llamacpp": running.llamacpp,
    "llama-cpp-python": running.llama_cpp_python,
    "litellm": running.litellm,
}


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return running.write_model(tmp_path_factory.mktemp("model"))


@pytest.fixture(scope="module", params=list(STARTED))
def served(
    request: pytest.FixtureRequest, model: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Served]:
    with STARTED[request.param](model, tmp_path_factory.mktemp("server")) as found:
        yield found


@pytest.fixture
def cases(public_data: Path, tmp_path: Path) -> Path:
    """Ten ExpertQA cases of up to 6,500 tokens."""
    expertqa, file = public_data / "expertqa_cases.jsonl", tmp_path / "cases.jsonl"
    file.write_text(
        "".join(expertqa.read_text(encoding="utf-8").splitlines(keepends=True)[:10]),
        encoding="utf-8",
    )
    return file


def audited(
    served: Served, cases: Path, *options: str, key: str | None = None
) -> tuple[subprocess.CompletedProcess[str], list[dict[str, Any]]]:
    """Run ``masis audit`` on the cases and return the process and the runs it wrote."""
    folder = cases.parent
    table = f'[providers.here]\naddress = "{served.address}"\n' + (
        'key_env = "HERE_KEY"\n' if served.key else ""
    )
    (folder / "masis.toml").write_text(table, encoding="utf-8")
    out = folder / "runs.jsonl"
    out.unlink(missing_ok=True)
    command = [
        sys.executable,
        "-m",
        "masis.cli",
        "audit",
        str(cases),
        "--model",
        "here:tiny",
        "--db",
        "audit.db",
    ]
    done = subprocess.run(
        [*command, "--out", str(out), *options],
        cwd=folder,
        env={**os.environ, "HERE_KEY": served.key if key is None else key},
        capture_output=True,
        text=True,
        timeout=500,
        check=False,
    )
    runs = (
        [json.loads(line) for line in out.read_text(encoding="utf-8").splitlines()]
        if out.exists()
        else []
    )
    return done, runs


def calls(runs: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [call for run in runs for iteration in run["iterations"] for call in iteration["calls"]]


@pytest.mark.parametrize(
    "options", [(), ("--concurrency", "4")], ids=["one at a time", "four at once"]
)
def test_every_reply_is_parsed_on_the_first_attempt(
    served: Served, cases: Path, options: tuple[str, ...]
) -> None:
    done, runs = audited(served, cases, *options)
    assert len(runs) == 10, done.stderr
    asked = calls(runs)
    assert len(asked) >= 40
    assert [call for call in asked if (call["outcome"], call["tries"]) != ("answered", 1)] == []
    assert all(max(call["prompt_tokens"] for call in calls([run])) > 2_000 for run in runs)


def test_a_claim_without_a_verdict_in_the_reply_is_unscored(served: Served, cases: Path) -> None:
    """The model gives no verdicts, so each claim is unscored with that reason and no answer is
    accepted.
    """
    _, runs = audited(served, cases, "--limit", "3")
    for run in runs:
        assert run["needs_review"]
        for check in run["iterations"][0]["claims"]:
            assert (check["verdict"], check["support"]) == ("unscored", None)
            assert "no verdict" in check["unscored"]["reason"]


def test_the_connection_test_names_the_model(
    served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HERE_KEY", served.key)
    table = {"address": served.address} | ({"key_env": "HERE_KEY"} if served.key else {})
    found = probe("here:gpt-9", Settings.model_validate({"providers": {"here": table}}))
    if served.key:  # LiteLLM validates model names
        assert not found.ok
        assert "gpt-9" in found.message
    else:
        assert found.ok
        assert "gpt-9" in found.message
        assert "tiny" in found.message or found.message.count("gpt-9") == 1


def test_an_invalid_key_is_reported_as_such(model: Path, cases: Path, tmp_path: Path) -> None:
    with running.litellm(model, tmp_path) as served:
        done, runs = audited(served, cases, key="sk-of-somebody-else")
    assert done.returncode == 1
    assert runs == []
    assert "the key was not accepted (400). Check HERE_KEY." in done.stderr


@pytest.mark.parametrize("name", ["llamacpp", "llama-cpp-python"])
def test_evidence_beyond_the_context_is_windowed_and_the_hint_is_shown(
    name: str, model: Path, cases: Path, tmp_path: Path
) -> None:
    with STARTED[name](model, tmp_path, ctx=4096) as served:
        done, runs = audited(served, cases, "--set", "max_iterations=1")
    assert len(runs) == 10, done.stderr
    warned = [warning["message"] for run in runs for warning in run["warnings"]]
    assert any(
        "each claim was judged by the passages that share most words with it" in words
        for words in warned
    )
    full = [words for words in warned if "critique is unscored" in words]
    assert full
    assert all("llama-server -c 32768" in words for words in full)
    assert "llama-server -c 32768" in done.stderr
    assert "overloaded" not in done.stderr

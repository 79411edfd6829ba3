"""Model replies: recorded from a scripted server, replayed after it has stopped, and cached to
avoid paying twice.
"""

from __future__ import annotations

import contextlib
import json
import logging
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import masis
from masis.api.audits import run_audit
from masis.api.batch import Budget
from masis.api.roles import (
    addresses,
    build_roles,
    check_models,
    estimate,
    pin_versions,
    probe_model,
    uses_models,
)
from masis.audit.control.run_control import RunControl
from masis.errors import BadReply, SettingsError
from masis.llm import recordings, registry
from masis.llm.recordings import RecordedReply
from masis.llm.roles.prompting import VERSION, RolePrompt, answer, compose, question
from masis.schema.case import Case
from masis.schema.run import Run
from masis.schema.screening import Screening
from masis.settings import ROLES, Settings
from tests.llm.asking import CASE, SampleReply, settings_for
from tests.rooms import needs_screening
from tests.served_replies import Behaviour, Request, reply_with, status
from tests.serving_models import ModelServer

DRAFTED = Case.model_validate({**CASE.to_json_dict(), "id": "drafted", "answer": None})
LINE = {
    "role": "critic",
    "prompt": "critic/1+00000000",
    "model": "openai:gpt-4o",
    "asked": "0" * 64,
    "date": "2026-11-24T10:00:00.000Z",
    "reply": "{}",
}


def record(
    file: Path, *cases: Case, script: Any = lambda request: None, **changes: Any
) -> list[Run]:
    """Audit the cases with a scripted server and record its replies in the file.

    The server has stopped when this returns.
    """
    with ModelServer(script, issues="always") as server:
        return [
            run_audit(
                case, settings_for(server, "openai").with_values({"record": str(file), **changes})
            )
            for case in cases
        ]


def replay(file: Path, case: Case = CASE, **changes: Any) -> Run:
    settings = Settings.model_validate(dict.fromkeys(ROLES, f"replay:{file}") | changes)
    return run_audit(case, settings)


def results(run: Run) -> Any:
    """Return a run's results without ids, times, calls and the names of the models."""
    content = run.model_dump(
        mode="json", include={"iterations", "best", "final_answer", "termination_reason", "draft"}
    )
    ignored = {"step_ms", "calls", "judged_by", "ms"}

    def without_ignored(value: Any) -> Any:
        if isinstance(value, dict):
            return {
                name: without_ignored(item) for name, item in value.items() if name not in ignored
            }
        return [without_ignored(item) for item in value] if isinstance(value, list) else value

    return without_ignored(content)


def lines(file: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]


def rewrite(file: Path, change: Callable[[dict[str, Any]], dict[str, Any]]) -> None:
    file.write_text("".join(json.dumps(change(line)) + "\n" for line in lines(file)))


@pytest.mark.slow
@pytest.mark.parametrize("samples", [1, 3])
def test_a_recording_replays_to_the_same_result_without_the_server(
    tmp_path: Path, samples: int
) -> None:
    file = tmp_path / "replies.jsonl"

    def vary_score(request: Request) -> Behaviour | None:
        """Give each sample of the evaluator another score and reason."""
        if samples == 1 or request.schema_name != "evaluation_reply":
            return None
        names = ("faithfulness", "relevance", "completeness", "reasoning_quality")
        score = 0.5 + request.number % 7 / 100
        reasons = {f"{name}_reason": f"Request {request.number}." for name in names}
        return reply_with(reasons | dict.fromkeys(names, score) | {"improvement_suggestions": []})

    runs = record(file, CASE, DRAFTED, script=vary_score, judge_samples=samples)
    for before, case in zip(runs, (CASE, DRAFTED), strict=True):
        after = replay(file, case, judge_samples=samples)
        assert results(after) == results(before)
        assert {call.source for call in after.calls} == {"replay"}
        assert after.usage.calls == after.usage.prompt_tokens == after.usage.completion_tokens == 0
        assert after.usage.replayed_calls == before.usage.calls
        assert after.usage.cost_usd == 0
    assert {line["role"] for line in lines(file)} == set(ROLES)
    assert {line["sample"] for line in lines(file) if line["role"] == "evaluator"} == set(
        range(1, samples + 1)
    )


def test_failed_replies_are_replayed_as_failures(
    tmp_path: Path,
) -> None:
    def script(request: Request) -> Behaviour | None:
        correcting = "could not be read" in request.text
        match request.schema_name:
            case "critique_reply" if not correcting:
                return reply_with("no JSON at all")
            case "evaluation_reply":
                return Behaviour(refusal="I will not.", finish="refusal")
            case "checked_claims_reply" | "verdicts_reply" if (
                len("".join(request.fences("EVIDENCE"))) > 3_000
            ):
                return status(
                    400, "maximum context length is 500 tokens", code_name="context_length_exceeded"
                )
        return None

    long = {"id": "3", "text": "The river flows below the bridge in a wide valley. " * 80}
    case = Case.model_validate(
        {**CASE.to_json_dict(), "evidence": [*CASE.to_json_dict()["evidence"], long]}
    )
    (before,) = record(tmp_path / "r.jsonl", case, script=script, max_iterations=1)
    after = replay(tmp_path / "r.jsonl", case, max_iterations=1)
    assert (
        results(after)["iterations"][0]["critique"] == results(before)["iterations"][0]["critique"]
    )
    assert after.iterations[0].critique.unscored is None
    assert [check.verdict for check in after.iterations[0].claims] == [
        c.verdict for c in before.iterations[0].claims
    ]
    assert any("does not fit the context" in warning.message for warning in after.warnings)
    assert after.iterations[0].evaluation.unscored.raw == "I will not."


def test_a_missing_recorded_reply_is_unscored_and_names_the_file(
    tmp_path: Path,
) -> None:
    file = tmp_path / "replies.jsonl"
    record(file, CASE, max_iterations=1)
    content = CASE.to_json_dict()
    altered = {
        "evidence": {
            "evidence": [{**content["evidence"][0], "text": "The bridge is 12 metres long."}]
        },
        "question": {"query": "How long is the bridge?"},
        "answer": {"answer": "The bridge is 120 metres long [1]."},
        "evidence's source": {
            "evidence": [{**content["evidence"][0], "source": "a"}, content["evidence"][1]]
        },
    }

    for name, changes in altered.items():
        run = replay(file, Case.model_validate({**content, **changes}), max_iterations=1)
        critique = run.iterations[0].critique
        assert critique.unscored is not None, name
        assert run.iterations[0].quality_score is None
        assert (
            f"no recorded reply to this in {file}: critic (prompt critic), sample 1"
            in critique.unscored.reason
        )
        assert run.needs_review
        assert run.usage.replayed_calls < 4

    run = replay(file, DRAFTED)
    assert "none of them of the drafter (only: " in run.warnings[0].message


def test_a_reply_to_an_older_prompt_is_a_fallback_with_a_warning(
    tmp_path: Path,
) -> None:
    file = tmp_path / "replies.jsonl"
    (before,) = record(file, CASE, max_iterations=1)
    current_lines = file.read_text()
    rewrite(file, lambda line: line | {"prompt": line["prompt"].partition("+")[0] + "+0ld"})
    after = replay(file, max_iterations=1)
    assert results(after) == results(before)
    prompt_warnings = [
        warning.message
        for warning in after.warnings
        if "the recorded reply is to the prompt" in warning.message
    ]
    assert len(prompt_warnings) == len({line["prompt"] for line in lines(file)})
    expected = f"critic: the recorded reply is to the prompt critic/{VERSION}+0ld"
    assert any(message.startswith(expected) for message in prompt_warnings)
    rewrite(file, lambda line: line | {"reply": "an old one"})
    file.write_text(current_lines + file.read_text())
    assert not any(
        "recorded reply is to" in warning.message
        for warning in replay(file, max_iterations=1).warnings
    )


def test_a_changed_prompt_finds_its_reply_but_another_task_doesnt() -> None:
    texts = [question("How long?")], [answer("Ten metres.")]
    first, second = compose("critic", "a" * 32, *texts), compose("critic", "b" * 32, *texts)
    assert first.task != second.task
    assert first.asked == second.asked
    others = (
        compose("completeness", "a" * 32, *texts),
        compose("critic", "a" * 32, [question("How wide?")], texts[1]),
        compose("critic", "a" * 32, texts[0], [answer("Ten  metres.")]),
    )
    assert len({first.asked, *(other.asked for other in others)}) == 1 + len(others)


def test_a_damaged_recording_is_rejected_without_quoting_it(
    tmp_path: Path,
) -> None:
    secret = "what-the-case-says"
    damaged: dict[str, tuple[str | bytes, str]] = {
        "cut short": (json.dumps(LINE)[:-20], "line 2: is no JSON"),
        "no UTF-8": (b'{"role": "\xff"}', "line 2: is no JSON"),
        "a list": ("[1]", "line 2: "),
        "nested too deep": ("[" * 100_000, "line 2: is no JSON"),
        "a field too many": (
            json.dumps(LINE | {"note": secret}),
            "line 2, note: extra inputs are not permitted",
        ),
        "a field missing": (
            json.dumps({k: v for k, v in LINE.items() if k != "reply"}),
            "line 2, reply: field required",
        ),
        "attempt 0": (
            json.dumps(LINE | {"attempt": 0}),
            "line 2, attempt: input should be greater than or equal to 1",
        ),
        "no digest": (json.dumps(LINE | {"asked": secret}), "line 2, asked: "),
        "no date": (json.dumps(LINE | {"date": secret}), "line 2, date: "),
        "a role with markup": (json.dumps(LINE | {"role": f"<b>{secret}"}), "line 2, role: "),
        "a reply that is no text": (
            json.dumps(LINE | {"reply": {"says": secret}}),
            "line 2, reply: input should be",
        ),
        "an unknown outcome": (json.dumps(LINE | {"outcome": secret}), "line 2, outcome: "),
    }

    for name, (line, message) in damaged.items():
        file = tmp_path / f"{name}.jsonl"
        content = line if isinstance(line, bytes) else line.encode()
        file.write_bytes(json.dumps(LINE).encode() + b"\n" + content)
        with pytest.raises(SettingsError) as error:
            check_models(Settings(critic=f"replay:{file}"))
        assert f"critic: {file}, {message}" in str(error.value)
        assert "Remove the line, or record the audit again" in str(error.value)
        assert secret not in str(error.value)
        assert not probe_model(f"replay:{file}", Settings()).ok


def test_a_path_that_isnt_a_regular_file_is_rejected(tmp_path: Path) -> None:
    for name in (tmp_path / "nowhere.jsonl", tmp_path, "/dev/zero", "a\0b"):
        with pytest.raises(SettingsError, match=r"critic: .*(no such file|can't be read)"):
            check_models(Settings(critic=f"replay:{name}"))
    with pytest.raises(
        SettingsError, match=r"record: .*No such file or directory. Name a file in a folder"
    ):
        build_roles(Settings(critic="ollama:m", record=str(tmp_path / "no folder" / "r.jsonl")))


def test_a_replayed_run_names_its_recording_and_costs_nothing(
    tmp_path: Path,
) -> None:
    file = tmp_path / "replies.jsonl"
    with_markup = json.dumps(LINE | {"role": "reviser", "model": "<script>*x*"})
    file.write_text(
        f"{json.dumps(LINE | {'date': '2025-01-01T00:00:00Z'})}\n\n{json.dumps(LINE)}\n{with_markup}\n"
    )
    settings = Settings.model_validate(
        dict.fromkeys(ROLES, f"replay:{file}") | {"verifier": f"offline,replay:{file}"}
    )
    models = build_roles(settings).models
    assert models["critic"] == f"replay:{file} (openai:gpt-4o, 2026-11-24)"
    assert models["verifier"] == f"offline,replay:{file} (openai:gpt-4o + ?script??x?, 2026-11-24)"
    assert models["reviser"] == f"replay:{file} (?script??x?, 2026-11-24)"
    assert pin_versions(settings).critic == models["critic"]
    assert build_roles(pin_versions(settings)).models == models
    assert not uses_models(settings)
    assert addresses(settings) == ()
    assert estimate(CASE, settings).cost_usd == 0
    assert Budget(settings, 0.01).try_start(CASE)
    check = probe_model(models["critic"], settings)
    assert check.ok
    assert (
        f"{file} holds 3 recorded replies of openai:gpt-4o + ?script??x?, 2026-11-24 (critic,"
        " reviser)" in check.message
    )
    assert "no model is called" in check.message


def test_replies_arent_logged_at_info_and_recording_failures_warn(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    caplog.set_level(logging.INFO)
    file = tmp_path / "replies.jsonl"
    record(file, CASE, max_iterations=1)
    replay(file, max_iterations=1)
    assert "Each sentence was looked for" in file.read_text()
    assert "Each sentence was looked for" not in caplog.text

    def fail_with_a_full_disk(path: str, replies: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(registry, "record", fail_with_a_full_disk)
    (run,) = record(file, CASE, max_iterations=1)
    assert [w.message for w in run.warnings if "recorded" in w.message] == [
        "Replies could not be recorded: No space left on device."
    ]
    assert run.iterations[0].quality_score is not None


class MemoryCache:
    """A reply cache in memory."""

    source: Any = "cache"

    def __init__(self) -> None:
        self.replies: dict[str, RecordedReply] = {}

    def find(self, request: recordings.RequestKey) -> RecordedReply | None:
        return self.replies.get(request.key)

    def keep(self, replies: Any) -> None:
        self.replies |= {reply.key: reply for reply in replies}


def test_the_cache_key_includes_model_prompt_sample_and_temperature() -> None:
    prompt = compose("critic", "a" * 32, [question("How long?")], [answer("Ten metres.")])
    reply = {"reasons": ["x"], "sound": True, "confidence": 0.5}
    cache = MemoryCache()

    def ask(
        string: str = "here:m",
        role: str = "critic",
        times: int = 1,
        temperature: float = 0.0,
        **changes: Any,
    ) -> int:
        """Return how many requests reached the server."""
        with ModelServer(lambda request: reply_with(reply)) as server:
            model = registry.model_in_role(
                string, role, RunControl(), settings_for(server, "openai"), cache
            )
            for _ in range(times):
                model.ask(
                    prompt._replace(**changes),
                    SampleReply,
                    max_tokens=100,
                    temperature=temperature,
                )
            return len(server.requests)

    assert ask() == 1
    assert ask() == 0
    assert ask(times=2) == 1, "a repeated request in one run is another sample"
    assert ask(times=2) == 0
    assert ask("here:other") == 1
    assert ask(temperature=0.7) == 1
    assert ask(version="critic/2+00000000") == 1
    assert ask(asked="f" * 64) == 1
    assert ask(role="evaluator") == 1


def test_only_unanswered_requests_are_repeated() -> None:
    prompt = compose("critic", "a" * 32, [question("How long?")], [answer("Ten metres.")])
    cache = MemoryCache()

    def ask(*replies: str) -> int:
        with ModelServer(lambda request: reply_with(replies[request.number])) as server:
            model = registry.model_in_role(
                "here:m", "critic", RunControl(), settings_for(server, "openai"), cache
            )
            with contextlib.suppress(BadReply):
                model.ask(prompt, SampleReply, max_tokens=100)
            return len(server.requests)

    good = json.dumps({"reasons": ["x"], "sound": True, "confidence": 0.5})
    assert ask("no JSON", "nor this") == 2
    assert ask("no JSON", good) == 2
    assert ask() == 0


@needs_screening
def test_abstract_graders_can_be_recorded_and_replayed(
    tmp_path: Path,
) -> None:
    file = tmp_path / "replies.jsonl"
    abstracts = [
        {
            "id": "a",
            "title": "Aspirin for migraine: a randomised trial",
            "text": "Adults were randomised.",
        }
    ]

    def run_screening(settings: Settings) -> Screening:
        return masis.screen_abstracts("Does aspirin relieve migraine?", abstracts, settings)

    with ModelServer() as server:
        graders = {"screening_graders": "here:m", "record": str(file)}
        before = run_screening(settings_for(server, "openai").with_values(graders))
    after = run_screening(Settings(screening_graders=f"replay:{file}"))
    (original,), (grade,) = before.grades, after.grades
    assert grade.unscored is None
    assert grade.judged_by.model.startswith(f"replay:{file} (here:m, ")
    assert grade.model_copy(update={"judged_by": original.judged_by}) == original
    assert (before.usage.calls, after.usage.calls, after.usage.replayed_calls) == (1, 0, 1)


def test_a_prompts_key_doesnt_depend_on_the_runs_fence_marker() -> None:
    """DSPy builds its own prompts around our fences."""

    def digest(task: str) -> str:
        with ModelServer() as server:
            model = registry.model_in_role(
                "here:m", "critic", RunControl(), settings_for(server, "openai")
            )
        return model.request_key(
            RolePrompt("You judge.", f"<<<ANSWER {model.control.fence}>>>", task, "mine/1"), None
        ).asked

    assert digest("Judge it.") == digest("Judge it.")
    assert digest("Judge it.") != digest("Praise it.")

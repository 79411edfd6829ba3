"""The exam of a model: who passes, what a result holds for, and what an audit does without one."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from masis import run_audit
from masis.api.exam_results import JUDGING_ROLES, SHIPPED, ExamResults
from masis.audit.acceptance import coverable
from masis.bench.exam import exam_cases, exam_settings, take_exam
from masis.errors import InputError
from masis.schema.exam import ExamResult
from masis.schema.run import Run
from masis.settings import OFFLINE, Settings
from tests.served_replies import Behaviour, Request, says, sensible
from tests.serving_models import ModelServer

SOUND = {
    "id": "bridge",
    "query": "How long is the bridge?",
    "answer": "The bridge is 120 metres long [1].",
    "evidence": [{"id": "1", "text": "The bridge is 120 metres long."}],
}


def settings_at(server: ModelServer, results: Path) -> Settings:
    provider = {"kind": "openai", "address": server.address, "key_env": "SCRIPTED_KEY"}
    return Settings.model_validate(
        {
            **dict.fromkeys(JUDGING_ROLES, "here:judge"),
            "providers": {"here": provider},
            "exam_results": str(results),
            "retry_base_s": 0.01,
            "retry_cap_s": 0.02,
            "max_iterations": 1,
            "spot_check_share": 0.0,
        }
    )


@pytest.fixture(autouse=True)
def _key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SCRIPTED_KEY", "sk-test")


def taken(settings: Settings, model: str = "") -> ExamResult:
    result = take_exam(exam_settings(settings, model))
    assert result is not None
    return result


def knowing(request: Request) -> Behaviour | None:
    """Reply as a model would that finds every fault of the exam: it denies the claim in which the fault stands."""
    text = request.text
    faults = [
        each.fault for each in exam_cases() if each.fault and json.dumps(each.fault, ensure_ascii=False)[1:-1] in text
    ]
    made = sensible(request, "none")
    if not faults or "verdicts" not in made:
        return says(made)
    rows = {row["sentence"]: row["text"] for row in map(json.loads, "".join(request.fences("ANSWER")).splitlines())}
    for claim, verdict in zip(made["claims"], made["verdicts"], strict=True):
        if faults[0] in rows[claim["sentence"]]:
            passage = verdict["evidence"][0] | {"stance": "contradicts", "claim_words": faults[0]}
            verdict |= {
                "verdict": "contradicted",
                "evidence": [passage],
                "reasoning": "It says otherwise.",
                "support": 0.0,
            }
    return says(made)


def test_half_of_the_answers_have_one_fault_and_its_words_occur_once() -> None:
    asked = exam_cases()
    assert len(asked) == 32
    assert sum(each.faulty for each in asked) == 16
    assert all(str(each.case.answer).count(each.fault) == 1 for each in asked if each.faulty)
    assert len({each.case.id for each in asked}) == 32


def test_the_offline_rules_pass_and_what_is_shipped_is_their_result() -> None:
    shipped = Path("masis/api", SHIPPED).read_text(encoding="utf-8").splitlines()
    (stored,) = [found for line in shipped if (found := ExamResult.model_validate_json(line)).name == OFFLINE]
    now = taken(Settings(), OFFLINE)
    assert now.passed
    same = {"taken_at": stored.taken_at, "seconds": stored.seconds}
    assert now.model_copy(update=same) == stored, "run python tools/ship_exams.py"


def test_a_model_that_calls_everything_supported_does_not_pass(tmp_path: Path) -> None:
    with ModelServer(issues="none") as server:
        result = taken(settings_at(server, tmp_path / "exams.jsonl"))
    assert result.accepted.count == result.confirmed.count == 16 - result.found.count
    assert result.found.count <= 1
    assert not result.passed
    assert result.shortfalls[0].startswith("it accepted ")


def test_a_model_that_finds_every_fault_and_flags_nothing_else_passes(tmp_path: Path) -> None:
    with ModelServer(knowing, issues="none") as server:
        result = taken(settings_at(server, tmp_path / "exams.jsonl"))
    assert (result.found.count, result.accepted.count, result.flagged.count) == (16, 0, 0)
    assert result.passed
    assert result.calls >= 96
    assert {kind.kind for kind in result.kinds if kind.faulty} >= {
        "figure",
        "negation",
        "scope",
        "cause",
        "wrong source",
    }


def test_a_model_whose_replies_cannot_be_read_does_not_pass(tmp_path: Path) -> None:
    with ModelServer(lambda request: says("I would rather not."), issues="none") as server:
        result = taken(settings_at(server, tmp_path / "exams.jsonl").updated({"max_retries": 0}))
    assert result.accepted.count == 0
    assert not result.passed
    assert "couldn't be read" in result.shortfalls[-1]


def audited(server: ModelServer, results: Path, **changes: object) -> Run:
    return run_audit(SOUND, settings_at(server, results).updated(changes))


def test_nothing_is_accepted_before_the_models_have_passed_the_exam(tmp_path: Path) -> None:
    results = tmp_path / "exams.jsonl"
    with ModelServer(issues="none") as server:
        before = audited(server, results)
        assert [reason.code for reason in before.review_reasons] == ["model_not_examined"]
        assert not coverable(before)  # no guarantee waives it
        waived = audited(server, results, accept_without_exam=True)
        assert not waived.needs_review
        assert "has not passed" in next(check.detail for check in waived.acceptance.checks if check.name == "examined")
        failed = taken(settings_at(server, results))
        ExamResults(results).add(failed)
        assert audited(server, results).needs_review
    with ModelServer(knowing, issues="none", port=server.port) as server:
        passed = taken(settings_at(server, results))
        ExamResults(results).add(passed)
        assert not audited(server, results).needs_review
        # A later exam counts, whatever an earlier one said.
        ExamResults(results).add(failed)
        assert audited(server, results).needs_review


@pytest.mark.parametrize("changed", ["models", "addresses", "prompts"])
def test_a_result_holds_for_its_model_address_and_prompts_alone(tmp_path: Path, changed: str) -> None:
    results = tmp_path / "exams.jsonl"
    with ModelServer(knowing, issues="none") as server:
        passed = taken(settings_at(server, results))
        other = {**getattr(passed, changed), "critic": "another"}
        ExamResults(results).add(passed.model_copy(update={changed: other}))
        run = audited(server, results)
        assert [reason.code for reason in run.review_reasons] == ["model_not_examined"]
        assert run.acceptance.unexamined == (run.models["critic"],)


def test_a_stopped_exam_gives_no_result() -> None:
    seen: list[int] = []
    stopped = take_exam(
        exam_settings(Settings(), OFFLINE),
        on_progress=lambda done, total: seen.append(done),
        stopped=lambda: len(seen) > 3,
    )
    assert stopped is None


def test_a_damaged_line_is_named(tmp_path: Path) -> None:
    results = ExamResults(tmp_path / "exams.jsonl")
    results.add(taken(Settings(), OFFLINE))
    with results.file.open("a", encoding="utf-8") as file:
        file.write("{}\n")
    with pytest.raises(InputError, match=r"exams.jsonl, line 2: is no result of an exam"):
        results.all()

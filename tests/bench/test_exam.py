"""The model exam: which models pass, how long a result is valid, and what an audit does without
one.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from masis import run_audit
from masis.api.exam_results import SHIPPED, ExamResults
from masis.api.roles import exam_standing
from masis.audit.acceptance import is_coverable
from masis.bench.exam import exam_cases, exam_settings, take_exam
from masis.errors import InputError
from masis.schema.exam import EXAM_VERSION, JUDGING_ROLES, ExamResult
from masis.schema.rules import REVIEW_CODES
from masis.schema.run import Run
from masis.settings import OFFLINE, Settings
from masis.views.exam import exam_line
from tests.served_replies import Behaviour, Request, says, sensible, status
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


def deny(reply: dict[str, Any], answer: str, words: str) -> None:
    """Make a verifier's reply contradict every claim whose sentence contains the words.

    This is the only function here that depends on the format of a verifier's reply.
    """
    sentences = {row["sentence"]: row["text"] for row in map(json.loads, answer.splitlines())}
    for claim in reply["claims"]:
        if words in sentences[claim["sentence"]]:
            passage = claim["evidence"][0] | {"stance": "contradicts", "claim_words": words}
            claim |= {
                "verdict": "contradicted",
                "evidence": [passage],
                "reasoning": "It says otherwise.",
            }


def is_a_verifiers(reply: dict[str, Any]) -> bool:
    return "claims" in reply


def knowing(request: Request) -> Behaviour | None:
    """Reply like a model that finds every fault of the exam: contradict the claim that contains the
    fault.
    """
    reply = sensible(request, "none")
    if is_a_verifiers(reply):
        text = "".join(request.fences("ANSWER"))
        asked = [each.fault for each in exam_cases() if each.fault]
        for fault in asked:
            if json.dumps(fault, ensure_ascii=False)[1:-1] in text:
                deny(reply, text, fault)
    return says(reply)


def believing(request: Request) -> Behaviour | None:
    """Reply like a model that calls every claim supported, with a confident critic."""
    reply = sensible(request, "none")
    if "overall_quality_score" in reply:
        sure = dict.fromkeys(("overall_quality_score", "confidence", "critique_confidence"), 0.95)
        reply |= sure | {"issues": [], "hallucination_detected": False, "needs_retry": False}
    return says(reply)


def test_half_of_the_answers_have_one_fault_whose_words_are_unique() -> None:
    asked = exam_cases()
    assert len(asked) == 32
    assert sum(each.faulty for each in asked) == 16
    assert all(str(each.case.answer).count(each.fault) == 1 for each in asked if each.faulty)
    assert len({each.case.id for each in asked}) == 32


def test_the_offline_rules_pass_and_match_the_shipped_result() -> None:
    shipped = Path("masis/api", SHIPPED).read_text(encoding="utf-8").splitlines()
    (stored,) = [
        found for line in shipped if (found := ExamResult.model_validate_json(line)).name == OFFLINE
    ]
    now = taken(Settings(), OFFLINE)
    assert now.passed
    same = {"taken_at": stored.taken_at, "seconds": stored.seconds}
    assert now.model_copy(update=same) == stored, "run python tools/ship_exams.py"


def test_a_model_that_supports_everything_fails_and_accepts_no_answers(
    tmp_path: Path,
) -> None:
    with ModelServer(believing) as server:
        settings = settings_at(server, tmp_path / "exams.jsonl")
        result = taken(settings)
        assert result.confirmed.count == 16 - result.found.count
        assert result.found.count <= 1
        # a figure missing from every chunk is flagged regardless of the model
        assert result.accepted.count >= 12
        assert not result.passed
        assert result.shortfalls[0].startswith("it accepted ")
        ExamResults(settings.exam_results).add(result)
        runs = [run_audit(each.case, settings) for each in exam_cases()[:4]] + [
            run_audit(SOUND, settings)
        ]
    assert all(run.needs_review for run in runs)
    assert all(
        "model_not_examined" in {reason.code for reason in run.review_reasons} for run in runs
    )


def test_a_model_that_finds_every_fault_without_false_alarms_passes(tmp_path: Path) -> None:
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


def test_a_model_with_unreadable_replies_fails(tmp_path: Path) -> None:
    with ModelServer(lambda request: says("I would rather not."), issues="none") as server:
        result = taken(
            settings_at(server, tmp_path / "exams.jsonl").with_values({"max_retries": 0})
        )
    assert result.accepted.count == 0
    assert not result.passed
    assert "couldn't be read" in result.shortfalls[-1]


def audited(server: ModelServer, results: Path, **changes: object) -> Run:
    return run_audit(SOUND, settings_at(server, results).with_values(changes))


def test_no_answer_is_accepted_before_the_models_pass_the_exam(tmp_path: Path) -> None:
    results = tmp_path / "exams.jsonl"
    with ModelServer(issues="none") as server:
        before = audited(server, results)
        assert [reason.code for reason in before.review_reasons] == ["model_not_examined"]
        assert not is_coverable(before)  # a guarantee doesn't waive the exam
        waived = audited(server, results, accept_without_exam=True)
        assert not waived.needs_review
        assert "has not passed" in next(
            check.detail for check in waived.acceptance.checks if check.name == "examined"
        )
        failed = taken(settings_at(server, results))
        ExamResults(results).add(failed)
        assert audited(server, results).needs_review
    with ModelServer(knowing, issues="none", port=server.port) as server:
        passed = taken(settings_at(server, results))
        ExamResults(results).add(passed)
        assert not audited(server, results).needs_review
        # The latest exam counts.
        ExamResults(results).add(failed)
        assert audited(server, results).needs_review


def test_a_missing_exam_isnt_an_issue_with_the_answer() -> None:
    assert REVIEW_CODES["model_not_examined"].tier == "not_certified"


@pytest.mark.parametrize("changed", ["models", "addresses", "prompts"])
@pytest.mark.parametrize("role", JUDGING_ROLES)
def test_a_result_is_valid_only_for_its_models_urls_and_prompts(
    tmp_path: Path, changed: str, role: str
) -> None:
    results = tmp_path / "exams.jsonl"
    with ModelServer(knowing, issues="none") as server:
        run = audited(server, results)
        passed = passed_by(run, server)
        ExamResults(results).add(
            passed.model_copy(update={changed: {**getattr(passed, changed), role: "another"}})
        )
        assert [reason.code for reason in audited(server, results).review_reasons] == [
            "model_not_examined"
        ]
        ExamResults(results).add(passed)
        assert not audited(server, results).needs_review


def test_models_that_passed_separately_must_take_the_exam_together(tmp_path: Path) -> None:
    results = tmp_path / "exams.jsonl"
    with ModelServer(knowing, issues="none") as server:
        for name in ("here:judge", "here:other"):
            run = audited(server, results, **dict.fromkeys(JUDGING_ROLES, name))
            ExamResults(results).add(passed_by(run, server))
            assert not audited(server, results, **dict.fromkeys(JUDGING_ROLES, name)).needs_review
        mixed = audited(server, results, critic="here:other")
        assert (
            mixed.acceptance.unexamined == "here:judge (verifier, evaluator), here:other (critic)"
        )
        # Adding offline checks before the same model can't accept more answers.
        assert not audited(server, results, verifier="offline,here:judge").needs_review


def test_a_result_of_another_exam_version_doesnt_count(tmp_path: Path) -> None:
    results = tmp_path / "exams.jsonl"
    with ModelServer(knowing, issues="none") as server:
        passed = passed_by(audited(server, results), server)
        ExamResults(results).add(passed.model_copy(update={"exam_version": f"{EXAM_VERSION}0"}))
        with results.open("a", encoding="utf-8") as file:
            file.write('{"exam_version": "later", "with": "other fields"}\n')
        assert audited(server, results).needs_review
        words = exam_line(exam_standing(settings_at(server, results)))
        assert words.startswith("has not taken the exam as it is used here (passed on ")
        assert words.endswith("with an earlier version of the exam)")


def test_one_line_states_whether_a_model_passed(tmp_path: Path) -> None:
    results = tmp_path / "exams.jsonl"
    with ModelServer(knowing, issues="none") as server:
        settings = settings_at(server, results)
        assert exam_line(exam_standing(settings)) == "has not taken the exam"
        passed = passed_by(audited(server, results), server)
        elsewhere = {"addresses": dict.fromkeys(JUDGING_ROLES, "http://127.0.0.1:1/v1")}
        ExamResults(results).add(passed.model_copy(update=elsewhere))
        assert exam_line(exam_standing(settings)).endswith("at another address)")
        ExamResults(results).add(passed)
        expected = "passed the exam on 3 Mar 2026 (accepted 0 and found 16 of 16 faulty answers)"
        assert exam_line(exam_standing(settings)) == expected
        failed = passed.model_copy(
            update={"accepted": passed.accepted.model_copy(update={"count": 2})}
        )
        ExamResults(results).add(failed)
        expected = "did not pass the exam on 3 Mar 2026: it accepted 2 of 16 faulty answers"
        assert exam_line(exam_standing(settings)) == expected
    assert exam_line(exam_standing(Settings())).startswith("passed the exam on ")


def passed_by(run: Run, server: ModelServer) -> ExamResult:
    """Return a passing exam result for the models that judged in a run."""
    all_, none = (
        {"count": 16, "of": 16, "low": 0.8, "high": 1},
        {
            "count": 0,
            "of": 16,
            "low": 0,
            "high": 0.2,
        },
    )
    return ExamResult.model_validate(
        {
            "models": {role: run.models[role] for role in JUDGING_ROLES},
            "addresses": dict.fromkeys(JUDGING_ROLES, server.address),
            "prompts": {role: run.versions.prompts[role] for role in JUDGING_ROLES},
            "exam_version": EXAM_VERSION,
            "taken_at": "2026-03-03T09:00:00.000Z",
            "accepted": none,
            "found": all_,
            "confirmed": none,
            "flagged": none,
            "kinds": (),
            "seconds": 1,
        }
    )


def test_a_server_without_a_reply_ends_the_exam_with_a_hint(tmp_path: Path) -> None:
    with ModelServer(lambda request: status(401, "wrong key")) as server:
        with pytest.raises(
            InputError, match=r"got no reply: the key was not accepted.*masis health"
        ):
            taken(settings_at(server, tmp_path / "exams.jsonl"))
        assert len(server.requests) < 20


def test_a_stopped_exam_gives_no_result() -> None:
    seen: list[int] = []
    stopped = take_exam(
        exam_settings(Settings(), OFFLINE),
        on_progress=lambda done, total: seen.append(done),
        stopped=lambda: len(seen) > 3,
    )
    assert stopped is None


def test_a_damaged_line_is_reported(tmp_path: Path) -> None:
    results = ExamResults(tmp_path / "exams.jsonl")
    results.add(taken(Settings(), OFFLINE))
    with results.file.open("a", encoding="utf-8") as file:
        file.write("{}\n")
    with pytest.raises(InputError, match=r"exams.jsonl, line 2: is not a result of an exam"):
        results.all()

"""The model exam: passing and failing models, the validity of a result, and audits without one."""

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
from tests.served_replies import Behaviour, Request, reply_with, sensible, status
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


def exam_result(settings: Settings, model: str = "") -> ExamResult:
    result = take_exam(exam_settings(settings, model))
    assert result is not None
    return result


def contradict_claims(reply: dict[str, Any], answer: str, words: str) -> None:
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


def is_verifier_reply(reply: dict[str, Any]) -> bool:
    return "claims" in reply


def reply_finding_every_fault(request: Request) -> Behaviour | None:
    """Reply like a model that finds every fault of the exam: contradict the claim that contains the
    fault.
    """
    reply = sensible(request, "none")
    if is_verifier_reply(reply):
        text = "".join(request.fences("ANSWER"))
        faults = [exam_case.fault for exam_case in exam_cases() if exam_case.fault]
        for fault in faults:
            if json.dumps(fault, ensure_ascii=False)[1:-1] in text:
                contradict_claims(reply, text, fault)
    return reply_with(reply)


def reply_supporting_everything(request: Request) -> Behaviour | None:
    """Reply like a model that calls every claim supported, with a confident critic."""
    reply = sensible(request, "none")
    if "overall_quality_score" in reply:
        high_scores = dict.fromkeys(
            ("overall_quality_score", "confidence", "critique_confidence"), 0.95
        )
        reply |= high_scores | {"issues": [], "hallucination_detected": False, "needs_retry": False}
    return reply_with(reply)


def test_half_of_the_answers_have_one_fault_whose_words_are_unique() -> None:
    answers = exam_cases()
    assert len(answers) == 32
    assert sum(answer.faulty for answer in answers) == 16
    assert all(
        str(answer.case.answer).count(answer.fault) == 1 for answer in answers if answer.faulty
    )
    assert len({answer.case.id for answer in answers}) == 32


def test_the_offline_rules_pass_and_match_the_shipped_result() -> None:
    shipped = Path("masis/api", SHIPPED).read_text(encoding="utf-8").splitlines()
    (stored,) = [
        shipped_result
        for line in shipped
        if (shipped_result := ExamResult.model_validate_json(line)).name == OFFLINE
    ]
    result = exam_result(Settings(), OFFLINE)
    assert result.passed
    unmeasured = {"taken_at": stored.taken_at, "seconds": stored.seconds}
    assert result.model_copy(update=unmeasured) == stored, "run python tools/ship_exams.py"


def test_a_model_that_supports_everything_fails_and_accepts_no_answers(
    tmp_path: Path,
) -> None:
    with ModelServer(reply_supporting_everything) as server:
        settings = settings_at(server, tmp_path / "exams.jsonl")
        result = exam_result(settings)
        assert result.confirmed.count == 16 - result.found.count
        assert result.found.count <= 1
        # a figure missing from every chunk is flagged regardless of the model
        assert result.accepted.count >= 12
        assert not result.passed
        assert result.shortfalls[0].startswith("it accepted ")
        ExamResults(settings.exam_results).add(result)
        runs = [run_audit(exam_case.case, settings) for exam_case in exam_cases()[:4]] + [
            run_audit(SOUND, settings)
        ]
    assert all(run.needs_review for run in runs)
    assert all(
        "model_not_examined" in {reason.code for reason in run.review_reasons} for run in runs
    )


def test_a_model_that_finds_every_fault_without_false_alarms_passes(tmp_path: Path) -> None:
    with ModelServer(reply_finding_every_fault, issues="none") as server:
        result = exam_result(settings_at(server, tmp_path / "exams.jsonl"))
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
    with ModelServer(lambda request: reply_with("I would rather not."), issues="none") as server:
        result = exam_result(
            settings_at(server, tmp_path / "exams.jsonl").with_values({"max_retries": 0})
        )
    assert result.accepted.count == 0
    assert not result.passed
    assert "couldn't be read" in result.shortfalls[-1]


def audit_sound_case(server: ModelServer, results: Path, **changes: object) -> Run:
    return run_audit(SOUND, settings_at(server, results).with_values(changes))


def test_no_answer_is_accepted_before_the_models_pass_the_exam(tmp_path: Path) -> None:
    results = tmp_path / "exams.jsonl"
    with ModelServer(issues="none") as server:
        unexamined_run = audit_sound_case(server, results)
        assert [reason.code for reason in unexamined_run.review_reasons] == ["model_not_examined"]
        assert not is_coverable(unexamined_run)  # a guarantee doesn't waive the exam
        waived_run = audit_sound_case(server, results, accept_without_exam=True)
        assert not waived_run.needs_review
        assert "has not passed" in next(
            check.detail for check in waived_run.acceptance.checks if check.name == "examined"
        )
        failed = exam_result(settings_at(server, results))
        ExamResults(results).add(failed)
        assert audit_sound_case(server, results).needs_review
    with ModelServer(reply_finding_every_fault, issues="none", port=server.port) as server:
        passed = exam_result(settings_at(server, results))
        ExamResults(results).add(passed)
        assert not audit_sound_case(server, results).needs_review
        # The latest exam counts.
        ExamResults(results).add(failed)
        assert audit_sound_case(server, results).needs_review


def test_a_missing_exam_isnt_an_issue_with_the_answer() -> None:
    assert REVIEW_CODES["model_not_examined"].tier == "not_certified"


@pytest.mark.parametrize("changed", ["models", "addresses", "prompts"])
@pytest.mark.parametrize("role", JUDGING_ROLES)
def test_a_result_is_valid_only_for_its_models_urls_and_prompts(
    tmp_path: Path, changed: str, role: str
) -> None:
    results = tmp_path / "exams.jsonl"
    with ModelServer(reply_finding_every_fault, issues="none") as server:
        run = audit_sound_case(server, results)
        passed = passed_by(run, server)
        ExamResults(results).add(
            passed.model_copy(update={changed: {**getattr(passed, changed), role: "another"}})
        )
        assert [reason.code for reason in audit_sound_case(server, results).review_reasons] == [
            "model_not_examined"
        ]
        ExamResults(results).add(passed)
        assert not audit_sound_case(server, results).needs_review


def test_models_that_passed_separately_must_take_the_exam_together(tmp_path: Path) -> None:
    results = tmp_path / "exams.jsonl"
    with ModelServer(reply_finding_every_fault, issues="none") as server:
        for name in ("here:judge", "here:other"):
            run = audit_sound_case(server, results, **dict.fromkeys(JUDGING_ROLES, name))
            ExamResults(results).add(passed_by(run, server))
            assert not audit_sound_case(
                server, results, **dict.fromkeys(JUDGING_ROLES, name)
            ).needs_review
        mixed_run = audit_sound_case(server, results, critic="here:other")
        assert (
            mixed_run.acceptance.unexamined
            == "here:judge (verifier, evaluator), here:other (critic)"
        )
        # Adding offline checks before the same model can't accept more answers.
        assert not audit_sound_case(server, results, verifier="offline,here:judge").needs_review


def test_a_result_of_another_exam_version_doesnt_count(tmp_path: Path) -> None:
    results = tmp_path / "exams.jsonl"
    with ModelServer(reply_finding_every_fault, issues="none") as server:
        passed = passed_by(audit_sound_case(server, results), server)
        ExamResults(results).add(passed.model_copy(update={"exam_version": f"{EXAM_VERSION}0"}))
        with results.open("a", encoding="utf-8") as file:
            file.write('{"exam_version": "later", "with": "other fields"}\n')
        assert audit_sound_case(server, results).needs_review
        line = exam_line(exam_standing(settings_at(server, results)))
        assert line.startswith("has not taken the exam as it is used here (passed on ")
        assert line.endswith("with an earlier version of the exam)")


def test_one_line_states_whether_a_model_passed(tmp_path: Path) -> None:
    results = tmp_path / "exams.jsonl"
    with ModelServer(reply_finding_every_fault, issues="none") as server:
        settings = settings_at(server, results)
        assert exam_line(exam_standing(settings)) == "has not taken the exam"
        passed = passed_by(audit_sound_case(server, results), server)
        other_addresses = {"addresses": dict.fromkeys(JUDGING_ROLES, "http://127.0.0.1:1/v1")}
        ExamResults(results).add(passed.model_copy(update=other_addresses))
        assert exam_line(exam_standing(settings)).endswith("at another address)")
        ExamResults(results).add(passed)
        required = (
            "passed the exam on 3 Mar 2026 (of 16 faulty answers it accepted none, as required, and"
        )
        assert exam_line(exam_standing(settings)) == f"{required} flagged 16)"
        one = passed.model_copy(update={"found": passed.found.model_copy(update={"count": 1})})
        ExamResults(results).add(one)
        left = f"{required} flagged 1; it left 15 to a person)"
        assert exam_line(exam_standing(settings)) == left
        failed = passed.model_copy(
            update={"accepted": passed.accepted.model_copy(update={"count": 2})}
        )
        ExamResults(results).add(failed)
        expected = "did not pass the exam on 3 Mar 2026: it accepted 2 of 16 faulty answers"
        assert exam_line(exam_standing(settings)) == expected
    assert exam_line(exam_standing(Settings())).startswith("passed the exam on ")


def passed_by(run: Run, server: ModelServer) -> ExamResult:
    """Return a passing exam result for the models that judged in a run."""
    all_answers, no_answers = (
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
            "accepted": no_answers,
            "found": all_answers,
            "confirmed": no_answers,
            "flagged": no_answers,
            "kinds": (),
            "seconds": 1,
        }
    )


def test_a_server_without_a_reply_ends_the_exam_with_a_hint(tmp_path: Path) -> None:
    with ModelServer(lambda request: status(401, "wrong key")) as server:
        with pytest.raises(
            InputError, match=r"got no reply: the key was not accepted.*masis health"
        ):
            exam_result(settings_at(server, tmp_path / "exams.jsonl"))
        assert len(server.requests) < 20


def test_a_stopped_exam_gives_no_result() -> None:
    progress: list[int] = []
    result = take_exam(
        exam_settings(Settings(), OFFLINE),
        on_progress=lambda done, total: progress.append(done),
        stopped=lambda: len(progress) > 3,
    )
    assert result is None


def test_a_damaged_line_is_reported(tmp_path: Path) -> None:
    results = ExamResults(tmp_path / "exams.jsonl")
    results.add(exam_result(Settings(), OFFLINE))
    with results.file.open("a", encoding="utf-8") as file:
        file.write("{}\n")
    with pytest.raises(InputError, match=r"exams.jsonl, line 2: is not a result of an exam"):
        results.all()

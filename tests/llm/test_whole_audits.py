"""Whole audits with models: every mix of roles, every depth, and no keys or texts in logs, records
and errors.
"""

from __future__ import annotations

import itertools
import json
import logging
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from masis.api.audits import run_audit
from masis.api.roles import estimate
from masis.audit import loop
from masis.audit.loop import Roles
from masis.llm.roles.critic import ModelCritic
from masis.llm.roles.drafter import ModelDrafter
from masis.llm.roles.evaluator import ModelEvaluator
from masis.llm.roles.prompting import RolePrompt
from masis.llm.roles.reviser import ModelReviser
from masis.llm.roles.verifier import Extractions, ModelVerifier
from masis.observers.observation import run_to_completion
from masis.offline.roles.critic import OfflineCritic
from masis.offline.roles.drafter import OfflineDrafter
from masis.offline.roles.evaluator import OfflineEvaluator
from masis.offline.roles.reviser import NOTHING_SAFE, OfflineReviser
from masis.offline.roles.verifier import OfflineVerifier
from masis.schema.case import Case, Evidence
from masis.schema.run import Event, Run
from masis.services import Workbench
from masis.settings import Settings
from tests.cases import case_of
from tests.llm import canned
from tests.llm.asking import CASE, KEY, settings_for, settings_here
from tests.llm.scripted_asker import ScriptedAsker
from tests.reviewing import ADA
from tests.served_replies import Script, sensible
from tests.serving_models import Behaviour, ModelServer, Request, faulty

MIXED_ROLES = ("drafter", "verifier", "critic", "reviser", "evaluator")
EVIDENCE = (
    Evidence(id="chunk_1", text="The Halden bridge is 120 metres long. It is made of steel."),
    Evidence(id="chunk_2", text="It was opened to traffic in 1931 by the mayor."),
)
WRONG = (
    "The Halden bridge is 90 metres long [chunk_1]. It was opened in 1931 [chunk_2]. It is made of"
    " steel [chunk_2]."
)
RIGHT = (
    "The Halden bridge is 120 metres long [chunk_1]. It was opened in 1931 [chunk_2]. It is made of"
    " steel [chunk_1]."
)


def claims_reply(prompt: RolePrompt) -> dict[str, Any]:
    """Split the sentences of the prompt into clauses, and judge each by its words."""
    lines = prompt.task.partition("<<<ANSWER ")[2].splitlines()[1:]
    rows = [
        json.loads(line) for line in itertools.takewhile(lambda line: line.startswith("{"), lines)
    ]
    clauses = [
        (row, words)
        for row in rows
        for words in (row["text"].split(" and ") if "1931" in row["text"] else [""])
    ]
    return {
        "claims": [
            judged_clause(row["sentence"], words, words or row["text"], row.get("cites", []))
            for row, words in clauses
        ],
        "missing": [],
    }


def judged_clause(sentence: int, words: str, claim: str, cited: list[str]) -> dict[str, Any]:
    open_stances = [canned.chunk_stance(chunk, "leaves_open") for chunk in cited]
    if "90 metres" in claim:
        contradicting = canned.chunk_stance("chunk_1", "contradicts", "120 metres", "90 metres")
        return canned.judged_claim(
            sentence,
            words,
            verdict="contradicted",
            reasoning="It is 120 metres.",
            evidence=[*open_stances, contradicting],
        )
    if "1931" in claim:
        supporting = canned.chunk_stance("chunk_2", quote="opened to traffic in 1931")
    else:
        supporting = canned.chunk_stance(
            "chunk_1", quote="made of steel" if "steel" in claim else "120 metres long"
        )
    return canned.judged_claim(sentence, words, evidence=[*open_stances, supporting])


def replies() -> dict[str, Any]:
    """Replies of a model that finds and corrects the wrong length and the wrong reference."""
    raw_issue = canned.critic_issue(location="90 metres long", severity="high")
    return {
        "drafter": {"reasoning_steps": ["chunk_1 gives the length."], "answer": WRONG},
        "claims": claims_reply,
        "critic": [
            canned.critique(issues=[raw_issue], overall_quality_score=0.4),
            canned.critique(),
        ],
        "reviser": canned.revision(RIGHT),
        "evaluator": canned.evaluation(),
    }


def audited_by(model_roles: frozenset[str], answer: str | None) -> Run:
    asker, settings = ScriptedAsker(replies()), Settings()
    offline = {
        "drafter": OfflineDrafter(),
        "verifier": OfflineVerifier(),
        "critic": OfflineCritic(),
        "reviser": OfflineReviser(),
        "evaluator": OfflineEvaluator(),
    }
    with_model = {
        "drafter": ModelDrafter(asker),
        "verifier": ModelVerifier(asker, settings, Extractions()),
        "critic": ModelCritic(asker),
        "reviser": ModelReviser(asker),
        "evaluator": ModelEvaluator(asker, settings),
    }
    roles: dict[str, Any] = {
        role: with_model[role] if role in model_roles else offline[role] for role in MIXED_ROLES
    }
    case = Case(
        id="bridge",
        query="How long is the Halden bridge, and when was it opened?",
        answer=answer,
        evidence=EVIDENCE,
    )
    return run_to_completion(loop.audit(case, Roles(**roles, models={}), settings, run_id="r"))


MIXES = [frozenset(mix) for size in range(6) for mix in itertools.combinations(MIXED_ROLES, size)]


@pytest.mark.parametrize("mix", MIXES, ids=lambda mix: "+".join(sorted(mix)) or "offline")
@pytest.mark.parametrize("answer", [WRONG, None], ids=["answer", "draft"])
def test_every_combination_of_roles_completes_an_audit(
    mix: frozenset[str], answer: str | None
) -> None:
    run = audited_by(mix, answer)
    assert run.termination_reason in ("no_issues", "convergence", "max_iterations")
    assert all(
        warning.code == "CRITIC-ERR-004" or warning.message == NOTHING_SAFE
        for warning in run.warnings
    )
    assert run.final_quality_score is not None
    for iteration in run.iterations:
        for check in iteration.claims:
            assert iteration.answer[check.claim.start : check.claim.end] == check.claim.text
        for issue in iteration.issues:
            if issue.start is not None and issue.source != "citations":
                assert iteration.answer[issue.start : issue.end] == issue.quote
    if answer == WRONG:
        assert any(check.verdict == "contradicted" for check in run.iterations[0].claims)
        assert "misattributed_reference" in {issue.rule for issue in run.iterations[0].issues}
        assert "120 metres" in run.final_answer
        assert "90 metres" not in run.final_answer


# The depth of an audit: which calls it makes, and that a quick audit accepts nothing


def audited_at(depth: str, **changes: object) -> tuple[Run, Counter[str]]:
    """Return a run at this depth and the number of requests by schema."""
    with ModelServer(issues="none") as server:
        settings = settings_for(server, "openai").with_values({"depth": depth, **changes})
        run = run_audit(CASE, settings)
        assert run.usage.calls <= estimate(CASE, settings).calls
        return run, Counter(request.schema_name for request in server.requests)


def test_a_quick_audit_checks_only_claims_and_is_never_accepted() -> None:
    run, requests = audited_at("quick")
    assert requests == {"checked_claims_reply": 1}
    (first,) = run.iterations
    assert [check.verdict for check in first.claims] == ["supported", "supported"]
    assert (first.quality_score, first.evaluation, first.revision) == (None, None, None)
    assert (run.termination_reason, run.warnings) == ("no_issues", ())
    assert run.needs_review
    assert [(reason.code, reason.tier) for reason in run.review_reasons] == [
        ("critic_not_run", "not_certified")
    ]
    assert Run.model_validate_json(run.model_dump_json()) == run


def test_a_quick_audit_reports_faults_without_a_revision() -> None:
    run = run_audit(
        CASE.model_copy(update={"answer": "The bridge is long [9]."}), Settings(depth="quick")
    )
    assert {"critic_not_run", "invalid_reference"} <= {reason.code for reason in run.review_reasons}
    assert (run.total_iterations, run.iterations[0].revision) == (1, None)
    assert run.iterations[0].critique.hallucination_detected


@pytest.mark.parametrize("context", [300, 512])
def test_a_server_that_truncates_prompts_yields_no_acceptance_and_no_flag(
    context: int,
) -> None:
    with ModelServer(truncating(context)) as server:
        run = run_audit(CASE, settings_for(server, "openai"))
    (first,) = run.iterations
    assert first.critique.unscored
    assert first.critique.unscored.code == "CRITIC-ERR-003"
    assert "OLLAMA_CONTEXT_LENGTH" in first.critique.unscored.reason
    assert {issue.rule for issue in first.issues} <= {"unscored_claim"}
    assert {"unscored", "error"} == {reason.code for reason in run.review_reasons}
    assert not any(reason.tier == "must_look" for reason in run.review_reasons)


def truncating(context: int) -> Script:
    """A server that reads this many tokens of a prompt and reports that number as its usage."""

    def script(request: Request) -> Behaviour:
        reply = json.dumps(sensible(request, "none"))
        return Behaviour(text=reply, prompt_tokens=min(context, len(request.text) // 4))

    return script


def test_a_standard_audit_calls_every_role_once() -> None:
    run, requests = audited_at("standard")
    assert requests == {"checked_claims_reply": 1, "critique_reply": 1, "evaluation_reply": 1}
    assert not run.needs_review


def test_a_thorough_audit_samples_judges_and_rechecks_doubtful_claims() -> None:
    run, requests = audited_at("thorough")
    assert requests == {"checked_claims_reply": 1, "critique_reply": 3, "evaluation_reply": 3}
    assert audited_at("thorough", judge_samples=5)[1]["critique_reply"] == 5
    assert (run.escalation.settled, run.escalation.escalated) == (2, 0)


@pytest.mark.parametrize("depth", ["quick", "standard", "thorough"])
def test_a_depths_settings_map_back_to_the_depth(depth: str) -> None:
    settings = Settings(depth=depth).at_depth()
    assert settings.at_depth() == settings


# Logs, records and errors of a run never have a key; logs at INFO never have a text of the case

QUESTION, MARKED_EVIDENCE, ANSWER = (
    "quisling-question",
    "zebra-evidence is 120 metres long",
    "walrus-answer is 120 metres long [1].",
)
REPLY = "yodel-reasoning"
WORDS = ("quisling", "zebra", "walrus", "yodel", "umbrella")
MARKED = case_of(
    f"The {ANSWER}",
    {"1": f"The {MARKED_EVIDENCE}."},
    case_id="umbrella-id",
    query=f"How long is the {QUESTION}?",
)


def audited(tmp_path: Path, script: object, events: list[Event] | None = None) -> Run:
    with ModelServer(script, issues="always") as server:
        bench = Workbench.open(tmp_path / "masis.db", settings_here(server))
        bench.cases.add(ADA, [MARKED])
        return bench.audits.audit(
            ADA, MARKED, on_event=events.append if events is not None else None
        )


def sound(request: Request) -> Behaviour | None:
    """Give the default reply to every request."""
    return None


def failing(request: Request) -> Behaviour | None:
    """A server that repeats the question and the key in its errors."""
    if request.schema_name in ("critique_reply", "evaluation_reply"):
        return Behaviour(
            status=500, error={"message": f"{REPLY}: {request.text[:3000]} {request.headers}"}
        )
    return faulty("prose", request) if request.schema_name == "verdicts_reply" else None


@pytest.mark.spec("REQ-CRITIC-SEC-003", "REQ-CRITIC-OBS-004")
@pytest.mark.parametrize(
    ("script", "level"), [(sound, logging.INFO), (failing, logging.INFO), (sound, logging.DEBUG)]
)
def test_a_runs_log_has_no_texts_or_keys_by_default(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, script: object, level: int
) -> None:
    with caplog.at_level(level):
        run = audited(tmp_path, script)
    assert caplog.records
    assert run.id in caplog.text
    log_text = caplog.text.lower()
    assert not [word for word in WORDS if word in log_text.replace("umbrella-id", "")]
    case_records = [record for record in caplog.records if "umbrella-id" in record.getMessage()]
    # Warnings may name the case, because somebody needs to find the failed one.
    assert all(record.levelno >= logging.WARNING for record in case_records)
    assert KEY not in caplog.text


@pytest.mark.spec("REQ-CRITIC-SEC-002")
def test_keys_are_in_no_record_event_or_database(tmp_path: Path) -> None:
    events: list[Event] = []
    run = audited(tmp_path, failing, events)
    assert KEY not in run.model_dump_json()
    assert not [event for event in events if KEY in event.model_dump_json()]
    for file in tmp_path.rglob("masis.db*"):
        assert KEY.encode() not in file.read_bytes()


def test_events_never_contain_answer_or_evidence_text(tmp_path: Path) -> None:
    events: list[Event] = []
    audited(tmp_path, sound, events)
    event_text = "".join(event.model_dump_json(exclude={"case_id"}) for event in events)
    assert not [word for word in WORDS if word in event_text.lower()]

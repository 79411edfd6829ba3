"""The synthesizer, the critic and the evaluator as nodes around ``masis.api.stepwise``."""

from __future__ import annotations

import hashlib
from typing import Any

from langchain_core.runnables import Runnable
from langgraph.config import get_stream_writer

from masis.api import stepwise
from masis.api.roles import check_models
from masis.audit.control import step_events
from masis.audit.control.run_control import RunControl
from masis.integrations.langgraph.state import (
    Json,
    case_of,
    evidence_of,
    node,
    run_of,
    same_case,
    state_entry,
    text_of,
)
from masis.schema.audit import Critique
from masis.schema.case import Case
from masis.schema.run import Run
from masis.settings import Settings

CRITIC_TRACED = (
    "node",
    "confidence",
    "hallucination",
    "needs_retry",
    "conflicts",
    "invalid_citations",
    "uncited_claims",
    "duration_ms",
)
"""The fields that the critic adds to ``trace`` (MASIS-CRITIC-TELEMETRY)."""
EVALUATOR_TRACED = (
    "node",
    "overall_score",
    "faithfulness",
    "relevance",
    "completeness",
    "duration_ms",
)
"""The fields that the evaluator adds to ``trace`` (MASIS-EVAL-TELEMETRY)."""


def critic_node(settings: Settings | None = None) -> Runnable[Any, Any]:
    """Return a node that audits ``draft_answer`` once: citations, claims, critique and penalties.

    It writes ``critique``, ``confidence``, ``final_answer``, ``metrics`` and ``trace``. If the
    critic fails, ``confidence`` is None and ``critique["unscored"]`` says why. Raises SettingsError
    or MissingExtra immediately, not in the graph, if a model can't be called. In the graph it
    raises InputError if the state has no question or draft.
    """
    settings = _check_node_settings(settings)

    def work(state: Any, thread: str | None, control: RunControl) -> Json:
        draft, before = text_of(state, "draft_answer"), run_of(state)
        case, review = same_case(state, before, thread), state_entry(state, "review", {})
        # A draft after a person's decision is another case, with a decision of its own.
        decided = review.get("verdict") is not None
        if case is None or (decided and review.get("case_id") == case.id):
            case, before = case_of(state, draft, thread), None
        return _critique_update(
            stepwise.audit_once(
                case, settings, before=before, answer=draft, **_event_hooks(control)
            )
        )

    return node("critic", work, settings)


def evaluator_node(settings: Settings | None = None) -> Runnable[Any, Any]:
    """Return a node that scores ``final_answer`` on four dimensions, bounded by
    ``metrics.last_citation_audit``.

    It writes ``metrics`` and ``trace`` and doesn't decide anything. After our critic node, it uses
    that node's results. After another critic, it checks citations and claims itself, and the worse
    result bounds the scores. Raises like ``critic_node``.
    """
    settings = _check_node_settings(settings)

    def work(state: Any, thread: str | None, control: RunControl) -> Json:
        answer, audited = text_of(state, "final_answer"), run_of(state)
        case = same_case(state, audited, thread)
        if case is None or audited is None or audited.iterations[-1].answer != answer:
            return _evaluate_external(
                case_of(state, answer, thread), state, settings, _event_hooks(control)
            )
        run = stepwise.evaluate_once(case, audited, settings, **_event_hooks(control))
        return _evaluation_update(run, {**_acceptance(run), "run": run.model_dump(mode="json")})

    return node("evaluator", work, settings)


def synthesizer_node(settings: Settings | None = None) -> Runnable[Any, Any]:
    """Return a node that writes ``draft_answer`` from the evidence, and later from the critique.

    It's for graphs without a synthesizer of their own. Raises StepError if the drafter or the
    reviser fails.
    """
    settings = _check_node_settings(settings)

    def work(state: Any, thread: str | None, control: RunControl) -> Json:
        audited, draft = run_of(state), state_entry(state, "draft_answer")
        case = same_case(state, audited, thread)
        if case is not None and audited is not None and audited.iterations[-1].answer == draft:
            draft = stepwise.revise_once(case, audited, settings).revised_answer
        else:
            draft = stepwise.draft_once(
                text_of(state, "user_query"), evidence_of(state), settings
            ).answer
        return {"draft_answer": draft, "trace": [{"node": "synthesizer", "characters": len(draft)}]}

    return node("synthesizer", work, settings)


def _check_node_settings(settings: Settings | None) -> Settings:
    settings = settings or Settings()
    check_models(settings)
    return settings


def _event_hooks(control: RunControl) -> Json:
    """Return a step's callbacks: its events are streamed as ``custom``, and it can be cancelled."""
    try:
        write: Any = get_stream_writer()
    except (RuntimeError, KeyError):  # called outside of a graph
        write = None
    return {
        "on_event": lambda event: write(event.model_dump(mode="json")) if write else None,
        "cancelled": lambda: control.cancellation.is_cancelled,
    }


def _critique_update(run: Run) -> Json:
    last = run.iterations[-1]
    audit, critique = last.citation_audit, last.critique
    event = step_events.of_critique(critique, audit, last.issues, 0.0)
    return {
        "critique": critique.model_dump(mode="json"),
        "confidence": critique.confidence,
        "final_answer": last.answer,
        "metrics": {
            "last_citation_audit": {
                "invalid_citations": list(audit.invalid_citations),
                "uncited_claim_count": len(audit.uncited_claims),
                "uncited_claims": list(audit.uncited_claims),
                "hallucination_detected": critique.hallucination_detected,
                "penalty_factor": audit.penalty_factor,
                "answer_digest": _answer_digest(last.answer),
            },
            "citation_violations": len(audit.invalid_citations),
            "confidence_history": [critique.confidence],
            **_acceptance(run),
            "run": run.model_dump(mode="json"),
        },
        "trace": [{name: event[name] for name in CRITIC_TRACED}],
    }


def _acceptance(run: Run) -> Json:
    reasons = [{"code": reason.code, "tier": reason.tier} for reason in run.review_reasons]
    return {"needs_review": run.needs_review, "review_reasons": reasons}


def _evaluation_update(run: Run, metrics: Json) -> Json:
    evaluation = run.iterations[-1].evaluation
    assert evaluation is not None  # every caller evaluates the run first
    event = step_events.of_evaluation(evaluation, 0.0)
    return {
        "metrics": {"evaluation": evaluation.model_dump(mode="json"), **metrics},
        "trace": [{name: event[name] for name in EVALUATOR_TRACED}],
    }


def _evaluate_external(case: Case, state: Any, settings: Settings, hooks: Json) -> Json:
    """Score an answer that our critic node hasn't audited, without changing the audit so far."""
    critique, findings = state_entry(state, "critique", {}), stepwise.ExternalFindings()
    reported = state_entry(state, "metrics", {}).get("last_citation_audit") or {}
    # Ignore a citation audit of another answer.
    if reported.get("answer_digest") in (None, _answer_digest(case.answer or "")):
        hallucinated = reported.get("hallucination_detected") or critique.get(
            "hallucination_detected"
        )
        findings = stepwise.ExternalFindings(
            tuple(map(str, reported.get("invalid_citations") or ())),
            int(reported.get("uncited_claim_count") or 0),
            bool(hallucinated),
        )
    external = Critique(
        confidence=None,
        hallucination_detected=findings.hallucination_detected,
        needs_retry=bool(critique.get("needs_retry", False)),
        overall_quality_score=None,
        critique_confidence=None,
        critique_reasoning="",
        has_major_issues=False,
        judged_by=stepwise.HOST,
    )
    run = stepwise.audit_once(case, settings, critique=external, **hooks)
    run = stepwise.evaluate_once(
        case, stepwise.with_external_findings(run, findings), settings, **hooks
    )
    return _evaluation_update(run, {})


def _answer_digest(answer: str) -> str:
    return hashlib.sha256(answer.encode()).hexdigest()

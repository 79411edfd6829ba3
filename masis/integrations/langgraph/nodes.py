"""Synthesizer, critic and evaluator as nodes: each reads the state, lets ``masis.api.stepwise``
work, writes what is new.
"""

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
    *(
        "node",
        "confidence",
        "hallucination",
        "needs_retry",
        "conflicts",
        "invalid_citations",
        "uncited_claims",
    ),
    "duration_ms",
)
"""What the critic adds to ``trace``, by rule MASIS-CRITIC-TELEMETRY."""
EVALUATOR_TRACED = (
    "node",
    "overall_score",
    "faithfulness",
    "relevance",
    "completeness",
    "duration_ms",
)
"""What the evaluator adds to ``trace``, by rule MASIS-EVAL-TELEMETRY."""


def critic_node(settings: Settings | None = None) -> Runnable[Any, Any]:
    """A node that audits ``draft_answer`` once: citations, claims, critique, penalties in code.

    It writes ``critique``, ``confidence``, ``final_answer``, ``metrics`` and ``trace``. A critic
    that fails leaves ``confidence`` None and says why in ``critique["unscored"]``. Raises
    SettingsError and MissingExtra here, not in the graph, for a model that can't be asked; in the
    graph, InputError for a state without a question or a draft.
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
    """A node that scores ``final_answer`` on four dimensions, bound by
    ``metrics.last_citation_audit``.

    It writes ``metrics`` and ``trace`` and decides nothing. After a critic node of ours, what that
    one found is used; after another's, citations and claims are checked here, and the worse of both
    binds. Raises as ``critic_node``.
    """
    settings = _check_node_settings(settings)

    def work(state: Any, thread: str | None, control: RunControl) -> Json:
        answer, audited = text_of(state, "final_answer"), run_of(state)
        case = same_case(state, audited, thread)
        if case is None or audited is None or audited.iterations[-1].answer != answer:
            return _judged_apart(
                case_of(state, answer, thread), state, settings, _event_hooks(control)
            )
        run = stepwise.evaluate_once(case, audited, settings, **_event_hooks(control))
        return _evaluation_update(run, {**_acceptance(run), "run": run.model_dump(mode="json")})

    return node("evaluator", work, settings)


def synthesizer_node(settings: Settings | None = None) -> Runnable[Any, Any]:
    """A node that writes ``draft_answer``: the first from the evidence, a later one from what the
    critic found.

    For graphs that have no synthesizer of their own. Raises StepError where drafter or reviser
    fail.
    """
    settings = _check_node_settings(settings)

    def work(state: Any, thread: str | None, control: RunControl) -> Json:
        audited, given = run_of(state), state_entry(state, "draft_answer")
        case = same_case(state, audited, thread)
        if case is not None and audited is not None and audited.iterations[-1].answer == given:
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
    """Return how a step is followed: its events go to whoever streams ``custom``; it stops once it
    is cancelled.
    """

    def unheard(event: Any) -> None:
        """Called outside of a graph: nobody streams."""

    try:
        write: Any = get_stream_writer()
    except (RuntimeError, KeyError):
        write = unheard
    return {
        "on_event": lambda event: write(event.model_dump(mode="json")),
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
    reasons = [{"code": each.code, "tier": each.tier} for each in run.review_reasons]
    return {"needs_review": run.needs_review, "review_reasons": reasons}


def _evaluation_update(run: Run, metrics: Json) -> Json:
    evaluation = run.iterations[-1].evaluation
    assert evaluation is not None  # the pass before evaluates
    event = step_events.of_evaluation(evaluation, 0.0)
    return {
        "metrics": {"evaluation": evaluation.model_dump(mode="json"), **metrics},
        "trace": [{name: event[name] for name in EVALUATOR_TRACED}],
    }


def _judged_apart(case: Case, state: Any, settings: Settings, followed: Json) -> Json:
    """Return the scores of an answer that no critic node of ours has audited; the audit so far
    stays as it is.
    """
    critique, found = state_entry(state, "critique", {}), stepwise.ExternalFindings()
    reported = state_entry(state, "metrics", {}).get("last_citation_audit") or {}
    # else it was about another answer
    if reported.get("answer_digest") in (None, _answer_digest(case.answer or "")):
        hallucinated = reported.get("hallucination_detected") or critique.get(
            "hallucination_detected"
        )
        found = stepwise.ExternalFindings(
            tuple(map(str, reported.get("invalid_citations") or ())),
            int(reported.get("uncited_claim_count") or 0),
            bool(hallucinated),
        )
    external = Critique(
        confidence=None,
        hallucination_detected=found.hallucination_detected,
        needs_retry=bool(critique.get("needs_retry", False)),
        overall_quality_score=None,
        critique_confidence=None,
        critique_reasoning="",
        has_major_issues=False,
        judged_by=stepwise.HOST,
    )
    run = stepwise.audit_once(case, settings, critique=external, **followed)
    run = stepwise.evaluate_once(
        case, stepwise.with_external_findings(run, found), settings, **followed
    )
    return _evaluation_update(run, {})


def _answer_digest(answer: str) -> str:
    return hashlib.sha256(answer.encode()).hexdigest()

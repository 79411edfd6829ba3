"""Cases, iterations and runs as the loop would make them, each with only what a test is about."""

from __future__ import annotations

from typing import Any

from masis.audit.acceptance import RULE_VERSION
from masis.schema.audit import (
    Citation,
    CitationAudit,
    Claim,
    ClaimCheck,
    ClaimReport,
    Critique,
    Evaluation,
    JudgedBy,
    Score,
    Sentence,
)
from masis.schema.case import Case
from masis.schema.review import Decision
from masis.schema.run import (
    AcceptanceCheck,
    AcceptanceRecord,
    Event,
    Iteration,
    ReviewReason,
    Run,
    RunVersions,
)
from masis.store import Store

JUDGE = JudgedBy(model="offline", version="1")
SETTINGS: dict[str, Any] = {"max_iterations": 3}


def a_case(case_id: str = "case-1", **keys: Any) -> Case:
    content = {
        "id": case_id,
        "query": "When was the bridge opened?",
        "answer": "It was opened in 1932 [1]. It is painted grey [7].",
        "evidence": [{"id": "1", "text": "The bridge opened on 19 March 1932."}],
        "metadata": {"field": "Engineering", "dataset": "made for tests"},
    }
    return Case.model_validate(content | keys)


def an_iteration(
    number: int = 1,
    answer: str = "It was opened in 1932 [1]. It is painted grey [7].",
    *,
    invalid: tuple[str, ...] = ("7",),
    confidence: float | None = 0.4,
    quality: float | None = 0.4,
    overall: float | None = 0.5,
    verdict: Any = "supported",
) -> Iteration:
    audit = CitationAudit(
        mode="standard",
        citations=(
            Citation(
                start=23,
                end=24,
                text="1",
                reference="1",
                marker_start=22,
                marker_end=25,
                evidence_id="1",
                status="valid",
                resolved_by="exact",
            ),
        ),
        sentences=(
            Sentence(
                start=0,
                end=26,
                text=answer[:26],
                citation_ids=("1",),
                status="cited",
                why="cites 1",
            ),
        ),
        invalid_citations=invalid,
        uncited_claims=(),
        hallucination_detected=bool(invalid),
        needs_retry=bool(invalid),
        penalty_factor=0.5 if invalid else 1.0,
    )
    return Iteration(
        iteration_number=number,
        answer=answer,
        citation_audit=audit,
        claims=(
            ClaimCheck(claim=Claim(text=answer[:26]), verdict=verdict, support=0.9, confidence=0.9),
        ),
        claim_report=ClaimReport(confidence=0.95, facts_checked=1, facts_verified=1),
        issues=(),
        critique=Critique(
            confidence=confidence,
            hallucination_detected=bool(invalid),
            needs_retry=bool(invalid),
            overall_quality_score=quality,
            critique_confidence=0.8,
            critique_reasoning="A reference names no evidence: “7”.",
            has_major_issues=bool(invalid),
            scores=(Score(name="confidence", raw=confidence and confidence * 2, value=confidence),),
            judged_by=JUDGE,
        ),
        evaluation=Evaluation(
            faithfulness=overall,
            relevance=overall,
            completeness=overall,
            reasoning_quality=overall,
            overall_score=overall,
            judged_by=JUDGE,
        ),
        quality_score=quality,
        improvement_delta=None,
        step_ms={"citations": 0.25},
    )


def a_run(
    case: Case,
    run_id: str = "run-1",
    *,
    iterations: tuple[Iteration, ...] | None = None,
    **keys: Any,
) -> Run:
    """A finished run; its last iteration is the best one."""
    made = (an_iteration(),) if iterations is None else iterations
    best = made[-1] if made else None
    content: dict[str, Any] = {
        "id": run_id,
        "case_id": case.id,
        "case_digest": case.digest(),
        "started_at": "2026-01-01T10:00:00.000Z",
        "finished_at": "2026-01-01T10:00:01.000Z",
        "models": {"critic": "offline", "evaluator": "offline"},
        "settings": SETTINGS,
        "versions": RunVersions(app="0.1.0", rubric="1", offline_rules="1"),
        "iterations": made,
        "best": len(made) - 1 if made else None,
        "final_answer": best.answer if best else "",
        "final_quality_score": best.quality_score if best else None,
        "improvement_percentage": None,
        "total_iterations": len(made),
        "converged": True,
        "termination_reason": "convergence",
        "needs_review": True,
        "acceptance": AcceptanceRecord(
            rule=RULE_VERSION,
            checks=(
                AcceptanceCheck(name="references", passed=False, detail="1 cites no evidence"),
            ),
        ),
        "review_reasons": (
            ReviewReason(code="invalid_reference", message="1 reference cites no evidence."),
        ),
    }
    return Run(**(content | keys))


def an_audited_case(store: Store, case: Case, run_id: str = "run-1", **keys: Any) -> Case:
    """A case in the store, with a finished run of it."""
    store.cases.add(case)
    store.runs.finish(a_run(case, run_id, **keys))
    return case


def an_event(case: Case, run_id: str = "run-1", seq: int = 1, **keys: Any) -> Event:
    return Event(
        run_id=run_id,
        case_id=case.id,
        seq=seq,
        at="2026-01-01T10:00:00.500Z",
        kind="step_started",
        **keys,
    )


def a_decision(case: Case, run_id: str | None = "run-1", **keys: Any) -> Decision:
    content: dict[str, Any] = {
        "reviewer": "Ada",
        "case_id": case.id,
        "run_id": run_id,
        "verdict": "approve",
    }
    return Decision(**(content | keys))


def an_undo(case: Case, entry_id: str, **keys: Any) -> Decision:
    return Decision(
        kind="undo", reviewer="Ada", case_id=case.id, run_id=None, undoes=entry_id, **keys
    )


def acceptance_of(run: Run) -> Decision:
    """The policy's acceptance of a run."""
    return Decision(
        kind="policy_accept", source="CODE", reviewer="policy", case_id=run.case_id, run_id=run.id
    )

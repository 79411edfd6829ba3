"""Scripted roles for tests, which are passed as values instead of patching."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import count
from typing import Any

from masis.audit.claims import Verifier
from masis.audit.context import AuditContext
from masis.audit.critique import CritiqueJudgement, RawIssue
from masis.audit.evaluation import EvaluationJudgement
from masis.audit.loop import Clock, Roles
from masis.offline.roles.verifier import OfflineVerifier
from masis.schema.audit import Claim, ClaimCheck, Critique, Draft, Issue, JudgedBy, Revision
from masis.schema.base import Unscored
from masis.schema.case import Evidence

JUDGED_BY = JudgedBy(model="scripted", version="1")
MAJOR = RawIssue("factual", "test", "high", "It is wrong.", "Because.", "Mend it.")


def judgement_with(quality: Any = 0.8, **changes: Any) -> CritiqueJudgement:
    """Return a critic's judgment of this quality, by default without issues."""
    values: dict[str, Any] = {
        "confidence": quality,
        "hallucination_detected": False,
        "needs_retry": False,
        "overall_quality_score": quality,
        "critique_confidence": 0.9,
        "critique_reasoning": "Read.",
    }
    return CritiqueJudgement(**(values | changes))


@dataclass
class ScriptedDrafter:
    """Returns a given draft, or fails."""

    answer: str = "The bridge is 120 metres long [chunk_1]."
    error: Exception | None = None

    def draft(self, query: str, evidence: Sequence[Evidence]) -> Draft:
        if self.error:
            raise self.error
        return Draft(answer=self.answer, judged_by=JUDGED_BY)


class ContentVerifier(OfflineVerifier):
    """Extracts claims like the offline verifier and supports all of them.

    Subclasses can override ``judge_claim`` for other verdicts.
    """

    def verify(
        self, claims: Sequence[Claim], evidence: Sequence[Evidence], question: str = ""
    ) -> tuple[ClaimCheck, ...]:
        return tuple(map(self.judge_claim, claims))

    def judge_claim(self, claim: Claim) -> ClaimCheck:
        return ClaimCheck(claim=claim, verdict="supported", support=1.0, confidence=1.0)


@dataclass
class ScriptedCritic:
    """Returns its judgments in order, and repeats the last one."""

    judgements: Sequence[CritiqueJudgement | Unscored | Exception] = (judgement_with(),)
    judged_by: JudgedBy = JUDGED_BY
    seen: list[AuditContext] = field(default_factory=list)
    turns: Iterator[int] = field(default_factory=count)

    def critique(self, context: AuditContext) -> CritiqueJudgement | Unscored:
        self.seen.append(context)
        # samples are requested concurrently
        judgement = self.judgements[min(next(self.turns), len(self.judgements) - 1)]
        if isinstance(judgement, Exception):
            raise judgement
        return judgement


@dataclass
class ScriptedReviser:
    """Returns its answers in order, and repeats the last one."""

    answers: Sequence[str | Exception] = ("The bridge is 120 metres long, revised [chunk_1].",)
    seen: list[tuple[AuditContext, Critique, Sequence[Issue]]] = field(default_factory=list)

    def revise(
        self, context: AuditContext, critique: Critique, issues: Sequence[Issue]
    ) -> Revision:
        self.seen.append((context, critique, issues))
        answer = self.answers[min(len(self.seen), len(self.answers)) - 1]
        if isinstance(answer, Exception):
            raise answer
        return Revision(
            revised_answer=answer,
            changes_explanation=f"revision {len(self.seen)}",
            updated_confidence=None,
            judged_by=JUDGED_BY,
        )


FAIR = EvaluationJudgement(0.9, 0.9, 0.9, 0.9)


@dataclass
class ScriptedEvaluator:
    """Returns one judgment and counts its calls."""

    judgement: EvaluationJudgement | Unscored = FAIR
    judged_by: JudgedBy = JUDGED_BY
    calls: int = 0

    def evaluate(self, context: AuditContext, critique: Critique) -> EvaluationJudgement | Unscored:
        self.calls += 1
        return self.judgement


def roles(
    *,
    drafter: ScriptedDrafter | None = None,
    verifier: Verifier | None = None,
    critic: ScriptedCritic | None = None,
    reviser: ScriptedReviser | None = None,
    evaluator: ScriptedEvaluator | None = None,
) -> Roles:
    """Return five roles, all scripted except the verifier."""
    return Roles(
        drafter=drafter or ScriptedDrafter(),
        verifier=verifier or ContentVerifier(),
        critic=critic or ScriptedCritic(),
        reviser=reviser or ScriptedReviser(),
        evaluator=evaluator or ScriptedEvaluator(),
        models={"critic": "scripted"},
    )


def ticking(step: float = 0.001) -> Clock:
    """Return a clock that advances by ``step`` each time it is read."""
    ticks = iter(range(1_000_000))
    seconds: Callable[[], float] = lambda: next(ticks) * step  # noqa: E731
    return Clock(now=lambda: "2026-01-02T03:04:05.678Z", seconds=seconds)

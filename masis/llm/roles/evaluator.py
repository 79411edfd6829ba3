"""The evaluator with a model, which gives four scores by a rubric with anchors, each with a reason
(MASIS-EVAL-P1, MASIS-EVAL-P3).

The prompt has the question and the evidence first, where all calls of a run share them, then the
answer and the findings of the citation audit. Code applies the caps that follow from the findings
(``masis/audit/evaluation.py``). The prompt doesn't mention them, because a judge that knows them
argues about them.
"""

from __future__ import annotations

from dataclasses import dataclass

from masis.audit.context import AuditContext
from masis.audit.evaluation import DIMENSIONS, EvaluationJudgement
from masis.audit.measures.scores import normalize_score
from masis.errors import StepError
from masis.llm.roles.prompting import (
    Asker,
    RolePrompt,
    answer,
    compose,
    load,
    question_and_evidence,
    rows,
)
from masis.llm.roles.replies import EvaluationReply
from masis.schema.audit import Critique, JudgedBy, Measurement
from masis.schema.base import Unscored
from masis.settings import Settings

PROMPT = "evaluator"
MAX_TOKENS = 1_500


@dataclass(frozen=True)
class ModelEvaluator:
    """Scores an answer on four dimensions."""

    asker: Asker
    settings: Settings
    temperature: float = 0.0

    @property
    def judged_by(self) -> JudgedBy:
        """The model, and the version of the prompt."""
        return JudgedBy(model=self.asker.name, version=load(PROMPT).version)

    def evaluate(self, context: AuditContext, critique: Critique) -> EvaluationJudgement | Unscored:
        """Return the model's scores.

        If there are none, ``Unscored`` has the code CRITIC-ERR-003 for a failed provider, else 001.
        """
        try:
            reply = self.asker.ask(
                prompt(context, critique, self.asker.control.fence),
                EvaluationReply,
                max_tokens=MAX_TOKENS,
                temperature=self.temperature,
            )
        except StepError as error:
            return Unscored.of(error)
        return judgement(reply)


def prompt(context: AuditContext, critique: Critique, mark: str) -> RolePrompt:
    """Return the evaluator's prompt."""
    audit = context.citation_audit
    findings = {
        "invalid_citations": audit.invalid_citations,
        "uncited_sentences": len(audit.uncited_claims),
        "hallucination_detected": audit.hallucination_detected or critique.hallucination_detected,
    }
    return compose(
        PROMPT,
        mark,
        question_and_evidence(context.query, context.evidence),
        [answer(context.answer), rows("CITATION_AUDIT", [findings])],
    )


def judgement(reply: EvaluationReply) -> EvaluationJudgement:
    """Return the reply as a judgement, with its numbers unchanged and a reason for each."""
    return EvaluationJudgement(
        faithfulness=reply.faithfulness,
        relevance=reply.relevance,
        completeness=reply.completeness,
        reasoning_quality=reply.reasoning_quality,
        improvement_suggestions=tuple(dict.fromkeys(reply.improvement_suggestions)),
        measurements={name: _reason_measurement(reply, name) for name in DIMENSIONS},
    )


def _reason_measurement(reply: EvaluationReply, name: str) -> tuple[Measurement, ...]:
    """Return the judge's reason for a score as a measurement with the normalised score."""
    value = normalize_score(name, getattr(reply, name)).value
    reason = getattr(reply, f"{name}_reason").strip()
    if not reason or value is None:
        return ()
    return (Measurement(name="the judge", value=value, meaning=reason),)

"""The judge with a model: four scores by a rubric with anchors, and a reason for each
(MASIS-EVAL-P1, MASIS-EVAL-P3).

Question first, then the answer, then the findings of the citation audit. Question and evidence
stand before the answer, where all calls of a run share them. The bounds that the findings set are
laid on in code afterwards (``masis/audit/evaluation.py``); the prompt has none, because a judge
that knows them argues about them.
"""

from __future__ import annotations

from dataclasses import dataclass

from masis.audit.context import AuditContext
from masis.audit.evaluation import DIMENSIONS, EvaluationJudgement
from masis.audit.measures.scores import normalise_score
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
TOKENS_MOST = 1_500


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
        """The scores as the model gave them.

        Unscored where there are none: CRITIC-ERR-003 where the provider failed, 001 otherwise.
        """
        try:
            reply = self.asker.ask(
                prompt(context, critique, self.asker.control.fence),
                EvaluationReply,
                max_tokens=TOKENS_MOST,
                temperature=self.temperature,
            )
        except StepError as error:
            return Unscored.of(error)
        return judgement(reply)


def prompt(context: AuditContext, critique: Critique, mark: str) -> RolePrompt:
    """What the judge is sent."""
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
    """The reply as a judgement: numbers as given, each with its reason beside it."""
    return EvaluationJudgement(
        faithfulness=reply.faithfulness,
        relevance=reply.relevance,
        completeness=reply.completeness,
        reasoning_quality=reply.reasoning_quality,
        improvement_suggestions=tuple(dict.fromkeys(reply.improvement_suggestions)),
        measurements={name: _reason_measurement(reply, name) for name in DIMENSIONS},
    )


def _reason_measurement(reply: EvaluationReply, name: str) -> tuple[Measurement, ...]:
    """What the judge says for a score, beside the score as it is read."""
    value, said = (
        normalise_score(name, getattr(reply, name)).value,
        getattr(reply, f"{name}_reason").strip(),
    )
    return (
        (Measurement(name="the judge", value=value, meaning=said),)
        if said and value is not None
        else ()
    )

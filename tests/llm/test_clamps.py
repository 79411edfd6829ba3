"""The hard clamps against a judge that ignores them, in a whole audit (the masis-evaluator spec, Problem 5)."""

from __future__ import annotations

import pytest

from masis import run_audit
from masis.schema.case import Case
from tests.llm.asking import settings_for
from tests.served_replies import Behaviour, Request, says, sensible
from tests.serving_models import ModelServer

CITED = "The bridge is 120 metres long [1]."
EVIDENCE = [{"id": "1", "text": "The bridge is 120 metres long and made of steel."}]
UNCITED = tuple(f"The {what} of the bridge was painted in {1900 + number}." for number, what in enumerate(
    ("deck", "railing", "arch", "pier", "lamp", "stair", "gate", "cable", "tower", "sign")
))  # fmt: skip


def generous(request: Request) -> Behaviour | None:
    """A judge that gives 0.95 for everything; a critic that finds nothing."""
    if request.schema_name != "evaluation_reply":
        return None
    made = sensible(request)
    return says({key: 0.95 if isinstance(value, float) else value for key, value in made.items()})


def alarmed(request: Request) -> Behaviour | None:
    """A generous judge beside a critic that says hallucination."""
    if request.schema_name == "critique_reply":
        return says(sensible(request) | {"hallucination_detected": True})
    return generous(request)


@pytest.mark.spec("MASIS-EVAL-P5", "MASIS-EVAL-WEIGHTS", "MASIS-EVAL-LOWEST")
@pytest.mark.parametrize(
    ("answer", "script", "faithfulness", "overall"),
    [
        (CITED, generous, 0.95, 0.95),
        (" ".join(("It was opened in 1931 [9].", *UNCITED)), generous, 0.3, 0.722),
        (CITED, alarmed, 0.4, 0.757),
    ],
    ids=["clean", "fabricated and 10 uncited", "the critic's alarm"],
)
def test_a_judge_that_gives_095_for_everything_is_clamped(
    answer: str, script: object, faithfulness: float, overall: float
) -> None:
    case = Case.model_validate({"id": "c", "query": "How long is it?", "answer": answer, "evidence": EVIDENCE})
    with ModelServer(script, issues="none") as server:  # type: ignore[arg-type]
        settings = settings_for(server, "openai").model_copy(update={"max_iterations": 1})
        evaluation = run_audit(case, settings).iterations[0].evaluation
    assert evaluation
    assert evaluation.faithfulness == faithfulness
    assert evaluation.overall_score == overall
    others = (evaluation.relevance, evaluation.completeness, evaluation.reasoning_quality)
    assert others == (0.95, 0.95, 0.95)

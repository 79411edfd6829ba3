"""The judge with a model: scores as given, reasons beside them, and the clamps of the spec on top."""

from __future__ import annotations

from typing import Any

import pytest

from masis.audit import evaluation
from masis.errors import BadReply, ProviderFailed
from masis.llm.roles.evaluator import ModelEvaluator
from masis.schema.audit import CitationAudit, Evaluation
from masis.schema.base import Unscored
from masis.settings import Settings
from tests.audit.factories import citations, context, verdict
from tests.llm.canned import evaluation as reply
from tests.llm.scripted_asker import ScriptedAsker


def evaluated(given: Any, audit: CitationAudit | None = None, *, hallucination: bool = False) -> Evaluation:
    found, judge = audit or citations(), ModelEvaluator(ScriptedAsker({"evaluator": given}), Settings())
    critique = verdict(found, hallucination_detected=hallucination)
    judgement = judge.evaluate(context(citation_audit=found), critique)
    return evaluation.ruled(judgement, found, critique, Settings(), judge.judged_by)


@pytest.mark.spec("MASIS-EVAL-P1")
def test_four_scores_come_with_their_reasons() -> None:
    found = evaluated(reply())
    assert (found.faithfulness, found.relevance, found.completeness, found.reasoning_quality) == (0.8, 0.9, 0.7, 1.0)
    assert found.improvement_suggestions == ("Name the year.",)
    reasons = {score.name: [each.meaning for each in score.measurements] for score in found.scores}
    assert reasons["faithfulness"] == ["One claim is not supported."]
    assert reasons["reasoning_quality"] == []


@pytest.mark.spec("MASIS-EVAL-P6")
def test_percentages_are_read_before_the_clamps() -> None:
    found = evaluated(
        reply(faithfulness=90, relevance=100, completeness=50, reasoning_quality=80), citations(invalid=1)
    )
    assert (found.faithfulness, found.relevance, found.completeness, found.reasoning_quality) == (0.4, 1.0, 0.5, 0.8)


@pytest.mark.parametrize(
    ("failure", "code"),
    [
        (ProviderFailed("down"), "CRITIC-ERR-003"),
        (BadReply("refused", kind="refused", raw="No."), "CRITIC-ERR-001"),
        ("All fine!", "CRITIC-ERR-001"),
    ],
)
def test_a_failure_is_unscored_with_its_code_and_the_reply(failure: Any, code: str) -> None:
    found = evaluated(failure)
    assert found.overall_score is None
    assert isinstance(found.unscored, Unscored)
    assert found.unscored.code == code
    if isinstance(failure, str):
        assert found.unscored.raw == failure


def test_the_evaluation_says_which_model_and_which_prompt_made_it() -> None:
    judge = ModelEvaluator(ScriptedAsker({}, name="anthropic:m"), Settings()).judged_by
    assert (judge.model, judge.version.partition("+")[0]) == ("anthropic:m", "evaluator/3")

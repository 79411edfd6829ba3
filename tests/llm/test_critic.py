"""The critic with a model: both specs' fields, quotes found in the answer, failures as values with their codes."""

from __future__ import annotations

import json
import math
from typing import Any

import pytest

from masis.api.audits import audit_citations
from masis.audit import critique, issues
from masis.audit.critique import CritiqueJudgement
from masis.errors import BadReply, ProviderFailed
from masis.llm.roles.critic import ModelCritic
from masis.schema.base import Unscored
from tests.audit.factories import EVIDENCE, JUDGED_BY, citations, context
from tests.llm.canned import critique as reply
from tests.llm.canned import raised
from tests.llm.scripted_asker import ScriptedAsker

ANSWER = "The bridge is 90 metres long [chunk_1]. It opened in 1931 [chunk_2]."


def judged(given: Any, answer: str = ANSWER) -> CritiqueJudgement | Unscored:
    asked = context(answer=answer, citation_audit=audit_citations(answer, EVIDENCE))
    return ModelCritic(ScriptedAsker({"critic": given})).critique(asked)


def judgement(given: Any, answer: str = ANSWER) -> CritiqueJudgement:
    found = judged(given, answer)
    assert isinstance(found, CritiqueJudgement)
    return found


@pytest.mark.spec("MASIS-CRITIC-P2", "REQ-CRITIC-001", "REQ-CRITIC-004", "REQ-CRITIC-005")
def test_one_call_gives_the_fields_of_both_specs() -> None:
    found = judgement(
        reply(
            issues=[
                raised(location="90 metres"),
                raised(type="unsupported", location="It opened in 1931"),
                raised(type="hallucination", location=None, description="An owner is named."),
                raised(type="logical", description="Nothing follows."),
            ],
            conflicting_evidence=["chunk_1 against chunk_2"],
            hallucination_detected=True,
            needs_retry=True,
        )
    )
    assert (found.confidence, found.overall_quality_score, found.critique_confidence) == (0.9, 0.8, 0.7)
    assert found.hallucination_detected
    assert found.needs_retry
    assert found.unsupported_claims == ("It opened in 1931", "An owner is named.")
    assert found.logical_gaps == ("Nothing follows.",)
    assert found.conflicting_evidence == ("chunk_1 against chunk_2",)
    objection = found.objections[0]
    assert (objection.type, objection.severity, objection.rule) == ("factual", "high", "critic_factual")
    assert objection.reason == "chunk_1 says 120 metres."
    assert objection.evidence_ids == ("chunk_1",)


def test_a_quote_without_its_marker_is_found_in_the_answer_by_offset() -> None:
    found = judgement(reply(issues=[raised(location="the bridge is 90 metres long.")]))
    (issue,) = issues.raised(found.objections, ANSWER, ()).issues
    assert (issue.start, issue.end) == (0, len("The bridge is 90 metres long [chunk_1]."))


def test_an_omission_needs_no_quote() -> None:
    found = judgement(reply(issues=[raised(type="missing_info", location=None)]))
    assert issues.raised(found.objections, ANSWER, ()).notes == ()


def test_chunks_are_known_by_what_the_model_calls_them_and_unknown_ones_are_reported() -> None:
    found = judgement(reply(issues=[raised(evidence_ids=["[chunk_1]", "CHUNK 2", "chunk_77"])]))
    assert found.objections[0].evidence_ids == ("chunk_1", "chunk_2")
    (note,) = found.notes
    assert "chunk_77" in note
    assert "chunk_1" not in note.replace("chunk_77", "")


def test_the_same_objection_twice_is_one() -> None:
    assert len(judgement(reply(issues=[raised(), raised()])).objections) == 1


def test_a_type_counts_however_it_is_written() -> None:
    (objection,) = judgement(reply(issues=[raised(type="Missing info", severity=" HIGH ")])).objections
    assert (objection.type, objection.severity) == ("missing_info", "high")


@pytest.mark.spec("MASIS-CRITIC-P5")
@pytest.mark.parametrize(
    ("given", "kept"), [(85, 0.85), (-1, 0.0), (0.4, 0.4), ("high", None), (math.nan, None), (None, None), (True, None)]
)
def test_numbers_reach_the_rules_unchanged(given: Any, kept: float | None) -> None:
    found = judgement(reply(confidence=given, overall_quality_score=given, critique_confidence=given))
    ruled = critique.ruled(found, citations(), (), JUDGED_BY)
    assert (ruled.confidence, ruled.overall_quality_score, ruled.critique_confidence) == (kept, kept, kept)


@pytest.mark.spec("CRITIC-ERR-001", "CRITIC-ERR-003", "CRITIC-ERR-005", "REQ-CRITIC-030")
@pytest.mark.parametrize(
    ("failure", "code"),
    [
        (ProviderFailed("the provider is down"), "CRITIC-ERR-003"),
        (BadReply("the model refused", kind="refused", raw="No."), "CRITIC-ERR-001"),
        (BadReply("the reply was cut off", kind="cut_off", raw='{"conf'), "CRITIC-ERR-005"),
        (BadReply("the reply is empty", kind="empty", raw=""), "CRITIC-ERR-005"),
        ("I think the answer is fine.", "CRITIC-ERR-005"),
        ('{"confidence": 1.0}', "CRITIC-ERR-005"),
    ],
)
def test_a_failure_is_unscored_with_its_code_and_the_reply(failure: Any, code: str) -> None:
    found = judged(failure)
    assert isinstance(found, Unscored)
    assert found.code == code
    if isinstance(failure, str):
        assert found.raw == failure
    elif isinstance(failure, BadReply):
        assert found.raw == failure.raw


@pytest.mark.parametrize("field", sorted(reply()))
def test_a_critique_that_lacks_a_field_is_no_critique(field: str) -> None:
    given = reply()
    del given[field]
    asker = ScriptedAsker({"critic": str(given).replace("'", '"').replace("False", "false")})
    found = ModelCritic(asker).critique(context())
    assert isinstance(found, Unscored)
    assert found.code == "CRITIC-ERR-005"


@pytest.mark.parametrize(
    ("field", "value"), [("issues", "none"), ("hallucination_detected", "maybe"), ("conflicting_evidence", [1])]
)
def test_a_field_of_another_type_is_no_critique(field: str, value: Any) -> None:
    found = judged(json.dumps(reply(**{field: value})))
    assert isinstance(found, Unscored)


def test_text_that_no_file_can_keep_is_mended() -> None:
    found = judgement(reply(critique_reasoning="a\x00b\ud800c"))
    assert found.critique_reasoning == "a\ufffdb\ufffdc"


@pytest.mark.spec("REQ-CRITIC-006")
def test_the_critique_says_which_model_and_which_prompt_made_it() -> None:
    judge = ModelCritic(ScriptedAsker({}, name="openai:gpt-4o")).judged_by
    assert judge.model == "openai:gpt-4o"
    assert judge.version.startswith("critic/3+")


def test_a_sampled_critic_asks_at_the_temperature_it_was_given() -> None:
    asker = ScriptedAsker({"critic": reply()})
    ModelCritic(asker).critique(context())
    ModelCritic(asker, 0.7).critique(context())
    assert [asked.temperature for asked in asker.asked] == [0.0, 0.7]

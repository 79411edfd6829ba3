"""Critic, evaluator, reviser and drafter with a model: result fields, quotes with offsets, and
failures with codes.
"""

from __future__ import annotations

import json
import math
from typing import Any

import pytest

from masis.api.audits import audit_citations
from masis.audit import critique, evaluation, issues
from masis.audit.critique import CritiqueJudgement
from masis.errors import BadReply, InvalidRevision, ProviderFailed, ReviserFailed, StepError
from masis.llm.client import schemas
from masis.llm.roles.critic import ModelCritic
from masis.llm.roles.drafter import ModelDrafter
from masis.llm.roles.evaluator import ModelEvaluator
from masis.llm.roles.prompting import VERSION
from masis.llm.roles.replies import CritiqueReply
from masis.llm.roles.reviser import MAX_ISSUES, ModelReviser, briefing
from masis.schema.audit import (
    CitationAudit,
    Claim,
    Contradiction,
    Draft,
    Evaluation,
    Issue,
    Revision,
)
from masis.schema.base import Unscored
from masis.settings import Settings
from tests.audit.factories import EVIDENCE, JUDGED_BY, check, citations, context, issue, verdict
from tests.llm import canned
from tests.llm.scripted_asker import MARK, ScriptedAsker

OLD_ANSWER = "The bridge is 90 metres long [chunk_1]. It opened in 1931 [chunk_2]."


def run_critic(reply: Any, answer: str = OLD_ANSWER) -> CritiqueJudgement | Unscored:
    audited = context(answer=answer, citation_audit=audit_citations(answer, EVIDENCE))
    return ModelCritic(ScriptedAsker({"critic": reply})).critique(audited)


def judgement(reply: Any, answer: str = OLD_ANSWER) -> CritiqueJudgement:
    result = run_critic(reply, answer)
    assert isinstance(result, CritiqueJudgement)
    return result


@pytest.mark.spec("MASIS-CRITIC-P2", "REQ-CRITIC-001", "REQ-CRITIC-004", "REQ-CRITIC-005")
def test_one_call_yields_the_fields_of_both_specs() -> None:
    critique = judgement(
        canned.critique(
            issues=[
                canned.critic_issue(location="90 metres"),
                canned.critic_issue(type="unsupported", location="It opened in 1931"),
                canned.critic_issue(
                    type="hallucination", location=None, description="An owner is named."
                ),
                canned.critic_issue(type="logical", description="Nothing follows."),
            ],
            conflicting_evidence=["chunk_1 against chunk_2"],
        )
    )
    assert (critique.confidence, critique.overall_quality_score, critique.critique_confidence) == (
        0.9,
        0.8,
        0.7,
    )
    assert critique.unsupported_claims == ("It opened in 1931", "An owner is named.")
    assert critique.logical_gaps == ("Nothing follows.",)
    assert critique.conflicting_evidence == ("chunk_1 against chunk_2",)
    raw_issue = critique.raw_issues[0]
    assert (raw_issue.type, raw_issue.severity, raw_issue.rule) == (
        "factual",
        "high",
        "critic_factual",
    )
    assert raw_issue.reason == "chunk_1 says 120 metres."
    assert raw_issue.evidence_ids == ("chunk_1",)


def test_a_quote_without_its_marker_is_located() -> None:
    critique = judgement(
        canned.critique(issues=[canned.critic_issue(location="the bridge is 90 metres long.")])
    )
    (issue,) = issues.raise_issues("critic", critique.raw_issues, OLD_ANSWER, ()).issues
    assert (issue.start, issue.end) == (0, len("The bridge is 90 metres long [chunk_1]."))


def test_unrequested_flags_are_read_if_present() -> None:
    requested = schemas.reply_schema(CritiqueReply).schema["properties"]
    for flag in ("hallucination_detected", "needs_retry"):
        assert flag not in requested
        assert getattr(judgement(canned.critique()), flag) is False
        assert getattr(judgement(canned.critique(**{flag: "Yes"})), flag) is True


def test_a_missing_point_needs_no_quote() -> None:
    critique = judgement(
        canned.critique(issues=[canned.critic_issue(type="missing_info", location=None)])
    )
    assert issues.raise_issues("critic", critique.raw_issues, OLD_ANSWER, ()).notes == ()


def test_chunk_ids_are_matched_leniently_and_unknown_ones_reported() -> None:
    critique = judgement(
        canned.critique(
            issues=[canned.critic_issue(evidence_ids=["[chunk_1]", "CHUNK 2", "chunk_77"])]
        )
    )
    assert critique.raw_issues[0].evidence_ids == ("chunk_1", "chunk_2")
    (note,) = critique.notes
    assert "chunk_77" in note
    assert "chunk_1" not in note.replace("chunk_77", "")


def test_duplicate_issues_are_merged() -> None:
    assert (
        len(
            judgement(
                canned.critique(issues=[canned.critic_issue(), canned.critic_issue()])
            ).raw_issues
        )
        == 1
    )


def test_issue_types_are_matched_in_any_spelling() -> None:
    (raw_issue,) = judgement(
        canned.critique(issues=[canned.critic_issue(type="Missing info", severity=" HIGH ")])
    ).raw_issues
    assert (raw_issue.type, raw_issue.severity) == ("missing_info", "high")


@pytest.mark.spec("MASIS-CRITIC-P5")
@pytest.mark.parametrize(
    ("score", "expected"),
    [
        (85, 0.85),
        (-1, 0.0),
        (0.4, 0.4),
        ("high", None),
        (math.nan, None),
        (None, None),
        (True, None),
    ],
)
def test_scores_reach_the_rules_unchanged(score: Any, expected: float | None) -> None:
    judged = judgement(
        canned.critique(confidence=score, overall_quality_score=score, critique_confidence=score)
    )
    result = critique.apply_critique_rules(judged, citations(), (), JUDGED_BY)
    scores = (result.confidence, result.overall_quality_score, result.critique_confidence)
    assert scores == (expected, expected, expected)


@pytest.mark.spec("CRITIC-ERR-001", "CRITIC-ERR-003", "CRITIC-ERR-005", "REQ-CRITIC-030")
@pytest.mark.parametrize(
    ("failure", "critic_code", "evaluator_code"),
    [
        (ProviderFailed("the provider is down"), "CRITIC-ERR-003", "CRITIC-ERR-003"),
        (
            BadReply("the model refused", kind="refused", raw="No."),
            "CRITIC-ERR-001",
            "CRITIC-ERR-001",
        ),
        (
            BadReply("the reply was cut off", kind="cut_off", raw='{"conf'),
            "CRITIC-ERR-005",
            "CRITIC-ERR-001",
        ),
        (BadReply("the reply is empty", kind="empty", raw=""), "CRITIC-ERR-005", "CRITIC-ERR-001"),
        ("I think the answer is fine.", "CRITIC-ERR-005", "CRITIC-ERR-001"),
        ('{"confidence": 1.0}', "CRITIC-ERR-005", "CRITIC-ERR-001"),
    ],
)
def test_a_failed_critic_or_evaluator_is_unscored_with_code_and_reply(
    failure: Any, critic_code: str, evaluator_code: str
) -> None:
    evaluation = evaluate(failure)
    assert evaluation.overall_score is None
    for unscored, code in (
        (run_critic(failure), critic_code),
        (evaluation.unscored, evaluator_code),
    ):
        assert unscored.code == code
        if not isinstance(failure, ProviderFailed):
            assert unscored.raw == (failure if isinstance(failure, str) else failure.raw)


COMPLETE_REPLY = canned.critique()


@pytest.mark.parametrize(
    "reply",
    [
        *(
            {name: COMPLETE_REPLY[name] for name in COMPLETE_REPLY if name != left_out}
            for left_out in COMPLETE_REPLY
            if not isinstance(COMPLETE_REPLY[left_out], list)
        ),
        {name: COMPLETE_REPLY[name] for name in COMPLETE_REPLY if name != "issues"}
        | {"confidence": 0.6},
        {name: COMPLETE_REPLY[name] for name in COMPLETE_REPLY if name != "issues"}
        | {"needs_retry": True},
        {name: COMPLETE_REPLY[name] for name in COMPLETE_REPLY if name != "issues"}
        | {"hallucination_detected": True},
        COMPLETE_REPLY | {"issues": "a few"},
        COMPLETE_REPLY | {"hallucination_detected": "maybe"},
        COMPLETE_REPLY | {"conflicting_evidence": [1]},
    ],
)
def test_an_incomplete_critique_is_unreadable(
    reply: dict[str, Any],
) -> None:
    assert run_critic(json.dumps(reply)).code == "CRITIC-ERR-005"


@pytest.mark.spec("REQ-CRITIC-006")
def test_results_record_model_and_prompt_version() -> None:
    asker = ScriptedAsker({}, name="openai:gpt-4o")
    judges = (ModelCritic(asker), ModelEvaluator(asker, Settings()))
    assert [
        (judge.judged_by.model, judge.judged_by.version.partition("+")[0]) for judge in judges
    ] == [
        ("openai:gpt-4o", f"critic/{VERSION}"),
        ("openai:gpt-4o", f"evaluator/{VERSION}"),
    ]


def test_a_sampled_critic_uses_its_temperature() -> None:
    asker = ScriptedAsker({"critic": canned.critique()})
    ModelCritic(asker).critique(context())
    ModelCritic(asker, 0.7).critique(context())
    assert [request.temperature for request in asker.requests] == [0.0, 0.7]


# The evaluator with a model: its scores and reasons, and the caps of the spec


def evaluate(
    reply: Any, audit: CitationAudit | None = None, *, hallucination: bool = False
) -> Evaluation:
    audit = audit or citations()
    judge = ModelEvaluator(ScriptedAsker({"evaluator": reply}), Settings())
    critique = verdict(audit, hallucination_detected=hallucination)
    judgement = judge.evaluate(context(citation_audit=audit), critique)
    return evaluation.apply_evaluation_rules(
        judgement, audit, critique, Settings(), judge.judged_by
    )


@pytest.mark.spec("MASIS-EVAL-P1")
def test_four_scores_have_reasons() -> None:
    result = evaluate(canned.evaluation())
    assert (
        result.faithfulness,
        result.relevance,
        result.completeness,
        result.reasoning_quality,
    ) == (
        0.8,
        0.9,
        0.7,
        1.0,
    )
    assert result.improvement_suggestions == ("Name the year.",)
    reasons = {
        score.name: [measurement.meaning for measurement in score.measurements]
        for score in result.scores
    }
    assert reasons["faithfulness"] == ["One claim is not supported."]
    assert reasons["reasoning_quality"] == []


# Reviser and drafter with a model

OLD = "The bridge is 90 metres long [chunk_1]. It opened in 1931 [chunk_2]."
NEW = "The bridge is 120 metres long [chunk_1]. It opened in 1931 [chunk_2]."
ISSUES = (issue(id="i1"), issue("low", id="i2"))


def change(**values: Any) -> dict[str, Any]:
    return {
        "issue_ids": ["i1"],
        "kind": "corrected",
        "before": "90 metres",
        "after": "120 metres",
        "why": "chunk_1.",
    } | values


def revise(reply: Any, issues: tuple[Issue, ...] = ISSUES) -> Revision:
    return ModelReviser(ScriptedAsker({"reviser": reply})).revise(
        context(answer=OLD), verdict(), issues
    )


@pytest.mark.spec("REQ-CRITIC-008", "REQ-CRITIC-010", "REQ-CRITIC-011")
def test_a_revision_lists_changes_and_addressed_issues() -> None:
    revision = revise(canned.revision(NEW, changes=[change()], updated_confidence=90))
    assert revision.revised_answer == NEW
    assert [(c.kind, c.before, c.after, c.issue_ids) for c in revision.changes] == [
        ("corrected", "90 metres", "120 metres", ("i1",))
    ]
    assert revision.issues_addressed == ("i1",)
    assert revision.updated_confidence == 0.9
    assert revision.changes_explanation == "chunk_1."


@pytest.mark.spec("REQ-CRITIC-012")
def test_only_statements_in_both_answers_count_as_preserved() -> None:
    audit = audit_citations(OLD, EVIDENCE)
    asker = ScriptedAsker({"reviser": canned.revision(NEW)})
    revision = ModelReviser(asker).revise(
        context(answer=OLD, citation_audit=audit), verdict(), ISSUES
    )
    assert revision.preserved_content == ("It opened in 1931 [chunk_2].",)


def test_a_claimed_change_not_in_the_text_is_dropped_and_reported() -> None:
    revision = revise(
        canned.revision(
            NEW,
            changes=[
                change(),
                change(before="80 metres"),
                change(after="130 metres"),
                change(before="long", after="long"),
                change(kind="dropped", before="90 metres", after=""),
                change(kind="added", before="", after="120 metres"),
            ],
        )
    )
    assert [change.kind for change in revision.changes] == ["corrected", "dropped", "added"]
    assert "3 of the changes it named are not in the texts" in revision.changes_explanation


def test_unknown_issue_ids_arent_addressed() -> None:
    not_applied = change(issue_ids=["i2"], after="130 metres")
    revision = revise(
        canned.revision(NEW, changes=[change(issue_ids=["i1", "i9", "i1"]), not_applied])
    )
    assert revision.issues_addressed == ("i1",)
    assert revision.changes[0].issue_ids == ("i1",)


def test_a_rejected_issue_is_recorded_with_its_reason() -> None:
    rejected = [
        {"issue_ids": ["i2", "i9"], "reason": "chunk_1 says so."},
        {"issue_ids": ["i1"], "reason": " "},
    ]
    revision = revise(
        canned.revision(NEW, changes=[change(issue_ids=["i1", "i2"])], rejected=rejected)
    )
    assert [(issue.issue_id, issue.reason) for issue in revision.rejected] == [
        ("i2", "chunk_1 says so.")
    ]
    assert revision.issues_addressed == ("i1",)


def test_issues_with_the_same_position_and_cause_share_a_row() -> None:
    position: dict[str, Any] = {"start": 0, "end": 39, "quote": OLD[:39]}
    of_claim = issue(
        "high",
        id="i1",
        type="contradiction",
        rule="contradicted_claim",
        suggestion="No.",
        **position,
    )
    of_critic = issue(
        "critical", id="i2", type="contradiction", **position | {"start": 14, "end": 23}
    )
    unclear = issue("low", id="i3", type="ambiguity", **position)
    elsewhere = issue("high", id="i4", type="contradiction", start=40, end=60)
    words: dict[str, Any] = {
        "kind": "stated",
        "evidence_id": "chunk_1",
        "reason": "",
        "claim_text": "90 metres",
    }
    offsets = {
        "claim_start": 14,
        "claim_end": 23,
        "evidence_start": 0,
        "evidence_end": 10,
        "evidence_text": "120 metres",
    }
    contradicted = check("contradicted", 0.0).model_copy(
        update={
            "claim": Claim(text=OLD[:39], start=0, end=39),
            "contradictions": (Contradiction(**words, **offsets),),
        }
    )
    rows, _ = briefing(
        context(answer=OLD, claims=(contradicted,)),
        verdict(),
        [of_claim, of_critic, unclear, elsewhere],
    )
    assert [row["ids"] for row in rows] == [["i2", "i1"], ["i4"], ["i3"]]
    assert (rows[0]["answer_words"], rows[0]["evidence_words"]) == ("90 metres", "120 metres")
    assert "No." not in rows[0]["suggestions"]
    assert "answer_words" not in rows[1]


def test_an_unchanged_answer_is_byte_identical() -> None:
    asker = ScriptedAsker({"reviser": canned.revision(f" {OLD.strip()}\n")})
    answer = f"{OLD}\n"
    assert (
        ModelReviser(asker).revise(context(answer=answer), verdict(), ISSUES).revised_answer
        == answer
    )


@pytest.mark.parametrize("confidence", [float("nan"), "sure", None])
def test_a_non_numeric_confidence_is_none(confidence: Any) -> None:
    assert revise(canned.revision(NEW, updated_confidence=confidence)).updated_confidence is None


@pytest.mark.spec("CRITIC-ERR-002", "CRITIC-ERR-003", "CRITIC-ERR-006", "REQ-CRITIC-031")
@pytest.mark.parametrize(
    ("failure", "kind"),
    [
        (ProviderFailed("down"), ProviderFailed),
        (BadReply("refused", kind="refused", raw="No."), ReviserFailed),
        (BadReply("cut off", kind="cut_off", raw='{"rev'), InvalidRevision),
        (BadReply("empty", kind="empty", raw=""), InvalidRevision),
        ("Here is a better answer: ...", InvalidRevision),
        (canned.revision("  \n"), InvalidRevision),
        (canned.revision(f"<<<ANSWER {MARK}>>>\n<<<END ANSWER {MARK}>>>"), InvalidRevision),
    ],
)
def test_a_failure_has_its_code_and_the_reply(failure: Any, kind: type[StepError]) -> None:
    with pytest.raises(kind) as raised:
        revise(failure)
    assert raised.type is kind
    if isinstance(failure, BadReply):
        assert raised.value.raw == failure.raw
    elif isinstance(failure, dict):
        assert raised.value.raw


@pytest.mark.spec("REQ-CRITIC-009")
def test_the_reviser_receives_answer_critique_issues_question_and_evidence() -> None:
    asker = ScriptedAsker({"reviser": canned.revision(NEW)})
    view = verdict(critique_reasoning="The length is wrong.", logical_gaps=("A gap.",))
    ModelReviser(asker).revise(context(answer=OLD), view, ISSUES)
    sent = asker.requests[0]
    for text in (
        OLD,
        "The length is wrong.",
        "A gap.",
        '"i1"',
        '"i2"',
        "How long is the bridge?",
        "1931.",
    ):
        assert text in sent.text


def test_only_the_most_severe_of_many_issues_are_sent() -> None:
    minor = tuple(issue("low", id=f"i{n}", description=f"low {n}") for n in range(MAX_ISSUES * 2))
    critical = issue("critical", id="i999", description="It is harmful.")
    asker = ScriptedAsker({"reviser": canned.revision(NEW)})
    ModelReviser(asker).revise(context(answer=OLD), verdict(), (*minor, critical))
    assert asker.requests[0].text.count('"severity": ') == MAX_ISSUES
    assert "It is harmful." in asker.requests[0].text


DRAFT = "It is 120 metres long [chunk_1]."


def write_draft(reply: Any) -> Draft:
    return ModelDrafter(ScriptedAsker({"drafter": reply})).draft("How long is it?", EVIDENCE)


def test_a_draft_has_an_answer_and_reasoning_steps() -> None:
    draft = write_draft({"reasoning_steps": ["chunk_1 gives it.", " "], "answer": f" {DRAFT}\n"})
    assert (draft.answer, draft.reasoning_steps) == (DRAFT, ("chunk_1 gives it.",))
    assert draft.judged_by.version.startswith(f"drafter/{VERSION}+")


def test_fence_lines_are_removed_from_revisions_and_drafts() -> None:
    assert (
        revise(
            canned.revision(f"<<<ANSWER {MARK}>>>\n{NEW}\n<<<END ANSWER {MARK}>>>")
        ).revised_answer
        == NEW
    )
    assert (
        write_draft({"reasoning_steps": [], "answer": f"{DRAFT}\n<<<END ANSWER {MARK}>>>"}).answer
        == DRAFT
    )


@pytest.mark.parametrize(
    ("failure", "code"),
    [
        (ProviderFailed("down"), "CRITIC-ERR-003"),
        (BadReply("refused", kind="refused"), "CRITIC-ERR-001"),
        ({"reasoning_steps": [], "answer": " "}, "CRITIC-ERR-001"),
        ("Sure! It is long.", "CRITIC-ERR-001"),
    ],
)
def test_an_empty_draft_is_a_failure_with_its_code(failure: Any, code: str) -> None:
    with pytest.raises(StepError) as raised:
        write_draft(failure)
    assert raised.value.code == code

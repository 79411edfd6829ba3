"""Critic, judge, reviser, drafter with a model: fields, quotes found by offset, and failures as
values with codes.
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
from masis.llm.roles.reviser import ISSUES_MOST, ModelReviser, briefing
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


def judged(given: Any, answer: str = OLD_ANSWER) -> CritiqueJudgement | Unscored:
    asked = context(answer=answer, citation_audit=audit_citations(answer, EVIDENCE))
    return ModelCritic(ScriptedAsker({"critic": given})).critique(asked)


def judgement(given: Any, answer: str = OLD_ANSWER) -> CritiqueJudgement:
    found = judged(given, answer)
    assert isinstance(found, CritiqueJudgement)
    return found


@pytest.mark.spec("MASIS-CRITIC-P2", "REQ-CRITIC-001", "REQ-CRITIC-004", "REQ-CRITIC-005")
def test_one_call_yields_the_fields_of_both_specs() -> None:
    found = judgement(
        canned.critique(
            issues=[
                canned.raised(location="90 metres"),
                canned.raised(type="unsupported", location="It opened in 1931"),
                canned.raised(
                    type="hallucination", location=None, description="An owner is named."
                ),
                canned.raised(type="logical", description="Nothing follows."),
            ],
            conflicting_evidence=["chunk_1 against chunk_2"],
        )
    )
    assert (found.confidence, found.overall_quality_score, found.critique_confidence) == (
        0.9,
        0.8,
        0.7,
    )
    assert found.unsupported_claims == ("It opened in 1931", "An owner is named.")
    assert found.logical_gaps == ("Nothing follows.",)
    assert found.conflicting_evidence == ("chunk_1 against chunk_2",)
    objection = found.objections[0]
    assert (objection.type, objection.severity, objection.rule) == (
        "factual",
        "high",
        "critic_factual",
    )
    assert objection.reason == "chunk_1 says 120 metres."
    assert objection.evidence_ids == ("chunk_1",)


def test_a_quote_without_its_marker_is_located() -> None:
    found = judgement(
        canned.critique(issues=[canned.raised(location="the bridge is 90 metres long.")])
    )
    (issue,) = issues.raise_issues("critic", found.objections, OLD_ANSWER, ()).issues
    assert (issue.start, issue.end) == (0, len("The bridge is 90 metres long [chunk_1]."))


def test_unrequested_flags_are_read_if_present() -> None:
    asked = schemas.reply_schema(CritiqueReply).schema["properties"]
    for flag in ("hallucination_detected", "needs_retry"):
        assert flag not in asked
        assert getattr(judgement(canned.critique()), flag) is False
        assert getattr(judgement(canned.critique(**{flag: "Yes"})), flag) is True


def test_a_missing_point_needs_no_quote() -> None:
    found = judgement(canned.critique(issues=[canned.raised(type="missing_info", location=None)]))
    assert issues.raise_issues("critic", found.objections, OLD_ANSWER, ()).notes == ()


def test_chunk_ids_are_matched_leniently_and_unknown_ones_reported() -> None:
    found = judgement(
        canned.critique(issues=[canned.raised(evidence_ids=["[chunk_1]", "CHUNK 2", "chunk_77"])])
    )
    assert found.objections[0].evidence_ids == ("chunk_1", "chunk_2")
    (note,) = found.notes
    assert "chunk_77" in note
    assert "chunk_1" not in note.replace("chunk_77", "")


def test_duplicate_issues_are_merged() -> None:
    assert (
        len(judgement(canned.critique(issues=[canned.raised(), canned.raised()])).objections) == 1
    )


def test_issue_types_are_matched_in_any_spelling() -> None:
    (objection,) = judgement(
        canned.critique(issues=[canned.raised(type="Missing info", severity=" HIGH ")])
    ).objections
    assert (objection.type, objection.severity) == ("missing_info", "high")


@pytest.mark.spec("MASIS-CRITIC-P5")
@pytest.mark.parametrize(
    ("given", "kept"),
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
def test_scores_reach_the_rules_unchanged(given: Any, kept: float | None) -> None:
    found = judgement(
        canned.critique(confidence=given, overall_quality_score=given, critique_confidence=given)
    )
    ruled = critique.apply_critique_rules(found, citations(), (), JUDGED_BY)
    assert (ruled.confidence, ruled.overall_quality_score, ruled.critique_confidence) == (
        kept,
        kept,
        kept,
    )


@pytest.mark.spec("CRITIC-ERR-001", "CRITIC-ERR-003", "CRITIC-ERR-005", "REQ-CRITIC-030")
@pytest.mark.parametrize(
    ("failure", "of_critic", "of_judge"),
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
    failure: Any, of_critic: str, of_judge: str
) -> None:
    evaluation = evaluated(failure)
    assert evaluation.overall_score is None
    for found, code in ((judged(failure), of_critic), (evaluation.unscored, of_judge)):
        assert found.code == code
        if not isinstance(failure, ProviderFailed):
            assert found.raw == (failure if isinstance(failure, str) else failure.raw)


WHOLE = canned.critique()


@pytest.mark.parametrize(
    "given",
    [
        *(
            {name: WHOLE[name] for name in WHOLE if name != left_out}
            for left_out in WHOLE
            if not isinstance(WHOLE[left_out], list)
        ),
        {name: WHOLE[name] for name in WHOLE if name != "issues"} | {"confidence": 0.6},
        {name: WHOLE[name] for name in WHOLE if name != "issues"} | {"needs_retry": True},
        {name: WHOLE[name] for name in WHOLE if name != "issues"}
        | {"hallucination_detected": True},
        WHOLE | {"issues": "a few"},
        WHOLE | {"hallucination_detected": "maybe"},
        WHOLE | {"conflicting_evidence": [1]},
    ],
)
def test_an_incomplete_critique_is_unreadable(
    given: dict[str, Any],
) -> None:
    assert judged(json.dumps(given)).code == "CRITIC-ERR-005"


@pytest.mark.spec("REQ-CRITIC-006")
def test_results_record_model_and_prompt_version() -> None:
    asker = ScriptedAsker({}, name="openai:gpt-4o")
    made = [judge.judged_by for judge in (ModelCritic(asker), ModelEvaluator(asker, Settings()))]
    assert [(each.model, each.version.partition("+")[0]) for each in made] == [
        ("openai:gpt-4o", f"critic/{VERSION}"),
        ("openai:gpt-4o", f"evaluator/{VERSION}"),
    ]


def test_a_sampled_critic_uses_its_temperature() -> None:
    asker = ScriptedAsker({"critic": canned.critique()})
    ModelCritic(asker).critique(context())
    ModelCritic(asker, 0.7).critique(context())
    assert [asked.temperature for asked in asker.asked] == [0.0, 0.7]


# The judge with a model: scores as given, reasons beside them, and the clamps of the spec on top


def evaluated(
    given: Any, audit: CitationAudit | None = None, *, hallucination: bool = False
) -> Evaluation:
    found, judge = (
        audit or citations(),
        ModelEvaluator(ScriptedAsker({"evaluator": given}), Settings()),
    )
    critique = verdict(found, hallucination_detected=hallucination)
    judgement = judge.evaluate(context(citation_audit=found), critique)
    return evaluation.apply_evaluation_rules(
        judgement, found, critique, Settings(), judge.judged_by
    )


@pytest.mark.spec("MASIS-EVAL-P1")
def test_four_scores_have_reasons() -> None:
    found = evaluated(canned.evaluation())
    assert (found.faithfulness, found.relevance, found.completeness, found.reasoning_quality) == (
        0.8,
        0.9,
        0.7,
        1.0,
    )
    assert found.improvement_suggestions == ("Name the year.",)
    reasons = {score.name: [each.meaning for each in score.measurements] for score in found.scores}
    assert reasons["faithfulness"] == ["One claim is not supported."]
    assert reasons["reasoning_quality"] == []


# Reviser and drafter with a model

OLD = "The bridge is 90 metres long [chunk_1]. It opened in 1931 [chunk_2]."
NEW = "The bridge is 120 metres long [chunk_1]. It opened in 1931 [chunk_2]."
ISSUES = (issue(id="i1"), issue("low", id="i2"))


def changed(**values: Any) -> dict[str, Any]:
    return {
        "issue_ids": ["i1"],
        "kind": "corrected",
        "before": "90 metres",
        "after": "120 metres",
        "why": "chunk_1.",
    } | values


def revised(given: Any, issues: tuple[Issue, ...] = ISSUES) -> Revision:
    return ModelReviser(ScriptedAsker({"reviser": given})).revise(
        context(answer=OLD), verdict(), issues
    )


@pytest.mark.spec("REQ-CRITIC-008", "REQ-CRITIC-010", "REQ-CRITIC-011")
def test_a_revision_lists_changes_and_addressed_issues() -> None:
    found = revised(canned.revision(NEW, changes=[changed()], updated_confidence=90))
    assert found.revised_answer == NEW
    assert [(c.kind, c.before, c.after, c.issue_ids) for c in found.changes] == [
        ("corrected", "90 metres", "120 metres", ("i1",))
    ]
    assert found.issues_addressed == ("i1",)
    assert found.updated_confidence == 0.9
    assert found.changes_explanation == "chunk_1."


@pytest.mark.spec("REQ-CRITIC-012")
def test_only_statements_in_both_answers_count_as_preserved() -> None:
    audit = audit_citations(OLD, EVIDENCE)
    asker = ScriptedAsker({"reviser": canned.revision(NEW)})
    found = ModelReviser(asker).revise(context(answer=OLD, citation_audit=audit), verdict(), ISSUES)
    assert found.preserved_content == ("It opened in 1931 [chunk_2].",)


def test_a_claimed_change_not_in_the_text_is_dropped_and_reported() -> None:
    found = revised(
        canned.revision(
            NEW,
            changes=[
                changed(),
                changed(before="80 metres"),
                changed(after="130 metres"),
                changed(before="long", after="long"),
                changed(kind="dropped", before="90 metres", after=""),
                changed(kind="added", before="", after="120 metres"),
            ],
        )
    )
    assert [change.kind for change in found.changes] == ["corrected", "dropped", "added"]
    assert "3 of the changes it named are not in the texts" in found.changes_explanation


def test_unknown_issue_ids_arent_addressed() -> None:
    invisible = changed(issue_ids=["i2"], after="130 metres")
    found = revised(
        canned.revision(NEW, changes=[changed(issue_ids=["i1", "i9", "i1"]), invisible])
    )
    assert found.issues_addressed == ("i1",)
    assert found.changes[0].issue_ids == ("i1",)


def test_a_rejected_issue_is_recorded_with_its_reason() -> None:
    rejected = [
        {"issue_ids": ["i2", "i9"], "reason": "chunk_1 says so."},
        {"issue_ids": ["i1"], "reason": " "},
    ]
    found = revised(
        canned.revision(NEW, changes=[changed(issue_ids=["i1", "i2"])], rejected=rejected)
    )
    assert [(each.issue_id, each.reason) for each in found.rejected] == [("i2", "chunk_1 says so.")]
    assert found.issues_addressed == ("i1",)


def test_issues_with_the_same_place_and_cause_share_a_row() -> None:
    place: dict[str, Any] = {"start": 0, "end": 39, "quote": OLD[:39]}
    of_claim = issue(
        "high", id="i1", type="contradiction", rule="contradicted_claim", suggestion="No.", **place
    )
    of_critic = issue("critical", id="i2", type="contradiction", **place | {"start": 14, "end": 23})
    unclear = issue("low", id="i3", type="ambiguity", **place)
    elsewhere = issue("high", id="i4", type="contradiction", start=40, end=60)
    words: dict[str, Any] = {
        "kind": "stated",
        "evidence_id": "chunk_1",
        "reason": "",
        "claim_text": "90 metres",
    }
    at = {
        "claim_start": 14,
        "claim_end": 23,
        "evidence_start": 0,
        "evidence_end": 10,
        "evidence_text": "120 metres",
    }
    denied = check("contradicted", 0.0).model_copy(
        update={
            "claim": Claim(text=OLD[:39], start=0, end=39),
            "contradictions": (Contradiction(**words, **at),),
        }
    )
    rows, _ = briefing(
        context(answer=OLD, claims=(denied,)), verdict(), [of_claim, of_critic, unclear, elsewhere]
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


@pytest.mark.parametrize("given", [float("nan"), "sure", None])
def test_a_non_numeric_confidence_is_none(given: Any) -> None:
    assert revised(canned.revision(NEW, updated_confidence=given)).updated_confidence is None


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
        revised(failure)
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
    sent = asker.asked[0]
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
    many = tuple(issue("low", id=f"i{n}", description=f"low {n}") for n in range(ISSUES_MOST * 2))
    grave = issue("critical", id="i999", description="It is harmful.")
    asker = ScriptedAsker({"reviser": canned.revision(NEW)})
    ModelReviser(asker).revise(context(answer=OLD), verdict(), (*many, grave))
    assert asker.asked[0].text.count('"severity": ') == ISSUES_MOST
    assert "It is harmful." in asker.asked[0].text


DRAFT = "It is 120 metres long [chunk_1]."


def drafted(given: Any) -> Draft:
    return ModelDrafter(ScriptedAsker({"drafter": given})).draft("How long is it?", EVIDENCE)


def test_a_draft_has_an_answer_and_reasoning_steps() -> None:
    found = drafted({"reasoning_steps": ["chunk_1 gives it.", " "], "answer": f" {DRAFT}\n"})
    assert (found.answer, found.reasoning_steps) == (DRAFT, ("chunk_1 gives it.",))
    assert found.judged_by.version.startswith(f"drafter/{VERSION}+")


def test_fence_lines_are_removed_from_revisions_and_drafts() -> None:
    assert (
        revised(
            canned.revision(f"<<<ANSWER {MARK}>>>\n{NEW}\n<<<END ANSWER {MARK}>>>")
        ).revised_answer
        == NEW
    )
    assert (
        drafted({"reasoning_steps": [], "answer": f"{DRAFT}\n<<<END ANSWER {MARK}>>>"}).answer
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
        drafted(failure)
    assert raised.value.code == code

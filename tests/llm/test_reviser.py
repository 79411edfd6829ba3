"""Reviser and drafter with a model."""

from __future__ import annotations

from typing import Any

import pytest

from masis.audit.citations import audit_citations
from masis.errors import BadReply, InvalidRevision, ProviderFailed, ReviserFailed, StepError
from masis.llm.roles.drafter import ModelDrafter
from masis.llm.roles.reviser import ISSUES_MOST, ModelReviser, briefing
from masis.schema.audit import Claim, Contradiction, Draft, Issue, Revision
from tests.audit.factories import EVIDENCE, check, context, issue, verdict
from tests.llm.canned import revision as reply
from tests.llm.scripted_asker import MARK, ScriptedAsker

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
    return ModelReviser(ScriptedAsker({"reviser": given})).revise(context(answer=OLD), verdict(), issues)


@pytest.mark.spec("REQ-CRITIC-008", "REQ-CRITIC-010", "REQ-CRITIC-011")
def test_a_revision_says_what_it_changed_and_which_issues_are_gone() -> None:
    found = revised(reply(NEW, changes=[changed()], updated_confidence=90))
    assert found.revised_answer == NEW
    assert [(c.kind, c.before, c.after, c.issue_ids) for c in found.changes] == [
        ("corrected", "90 metres", "120 metres", ("i1",))
    ]
    assert found.issues_addressed == ("i1",)
    assert found.updated_confidence == 0.9
    assert found.changes_explanation == "chunk_1."


@pytest.mark.spec("REQ-CRITIC-012")
def test_only_what_both_answers_say_counts_as_preserved() -> None:
    audit = audit_citations(OLD, EVIDENCE)
    asker = ScriptedAsker({"reviser": reply(NEW)})
    found = ModelReviser(asker).revise(context(answer=OLD, citation_audit=audit), verdict(), ISSUES)
    assert found.preserved_content == ("It opened in 1931 [chunk_2].",)


def test_a_change_that_the_texts_do_not_show_is_left_out_and_reported() -> None:
    found = revised(
        reply(
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


def test_issues_that_nobody_raised_are_not_addressed() -> None:
    invisible = changed(issue_ids=["i2"], after="130 metres")
    found = revised(reply(NEW, changes=[changed(issue_ids=["i1", "i9", "i1"]), invisible]))
    assert found.issues_addressed == ("i1",)
    assert found.changes[0].issue_ids == ("i1",)


def test_an_issue_that_is_rejected_is_recorded_with_its_reason_and_not_addressed() -> None:
    rejected = [{"issue_ids": ["i2", "i9"], "reason": "chunk_1 says so."}, {"issue_ids": ["i1"], "reason": " "}]
    found = revised(reply(NEW, changes=[changed(issue_ids=["i1", "i2"])], rejected=rejected))
    assert [(each.issue_id, each.reason) for each in found.rejected] == [("i2", "chunk_1 says so.")]
    assert found.issues_addressed == ("i1",)


def test_issues_of_one_place_and_cause_are_one_row_and_a_denied_claim_goes_with_the_words_of_both_sides() -> None:
    place: dict[str, Any] = {"start": 0, "end": 39, "quote": OLD[:39]}
    of_claim = issue("high", id="i1", type="contradiction", rule="contradicted_claim", suggestion="No.", **place)
    of_critic = issue("critical", id="i2", type="contradiction", **place | {"start": 14, "end": 23})
    unclear = issue("low", id="i3", type="ambiguity", **place)
    elsewhere = issue("high", id="i4", type="contradiction", start=40, end=60)
    words: dict[str, Any] = {"kind": "stated", "evidence_id": "chunk_1", "reason": "", "claim_text": "90 metres"}
    at = {"claim_start": 14, "claim_end": 23, "evidence_start": 0, "evidence_end": 10, "evidence_text": "120 metres"}
    denied = check("contradicted", 0.0).model_copy(
        update={"claim": Claim(text=OLD[:39], start=0, end=39), "contradictions": (Contradiction(**words, **at),)}
    )
    rows, _ = briefing(context(answer=OLD, claims=(denied,)), verdict(), [of_claim, of_critic, unclear, elsewhere])
    assert [row["ids"] for row in rows] == [["i2", "i1"], ["i4"], ["i3"]]
    assert (rows[0]["answer_words"], rows[0]["evidence_words"]) == ("90 metres", "120 metres")
    assert "No." not in rows[0]["suggestions"]
    assert "answer_words" not in rows[1]


def test_an_answer_that_was_left_alone_is_the_same_to_the_letter() -> None:
    asker = ScriptedAsker({"reviser": reply(f" {OLD.strip()}\n")})
    answer = f"{OLD}\n"
    assert ModelReviser(asker).revise(context(answer=answer), verdict(), ISSUES).revised_answer == answer


def test_fence_lines_are_no_part_of_a_revised_answer() -> None:
    assert revised(reply(f"<<<ANSWER {MARK}>>>\n{NEW}\n<<<END ANSWER {MARK}>>>")).revised_answer == NEW


@pytest.mark.parametrize("given", [float("nan"), "sure", None])
def test_a_confidence_that_is_no_number_is_none(given: Any) -> None:
    assert revised(reply(NEW, updated_confidence=given)).updated_confidence is None


@pytest.mark.spec("CRITIC-ERR-002", "CRITIC-ERR-003", "CRITIC-ERR-006", "REQ-CRITIC-031")
@pytest.mark.parametrize(
    ("failure", "kind"),
    [
        (ProviderFailed("down"), ProviderFailed),
        (BadReply("refused", kind="refused", raw="No."), ReviserFailed),
        (BadReply("cut off", kind="cut_off", raw='{"rev'), InvalidRevision),
        (BadReply("empty", kind="empty", raw=""), InvalidRevision),
        ("Here is a better answer: ...", InvalidRevision),
        (reply("  \n"), InvalidRevision),
        (reply(f"<<<ANSWER {MARK}>>>\n<<<END ANSWER {MARK}>>>"), InvalidRevision),
    ],
)
def test_a_failure_has_the_code_of_its_kind_and_the_reply(failure: Any, kind: type[StepError]) -> None:
    with pytest.raises(kind) as raised:
        revised(failure)
    assert raised.type is kind
    if isinstance(failure, BadReply):
        assert raised.value.raw == failure.raw
    elif isinstance(failure, dict):
        assert raised.value.raw


@pytest.mark.spec("REQ-CRITIC-009")
def test_the_reviser_sees_answer_critique_issues_question_and_evidence() -> None:
    asker = ScriptedAsker({"reviser": reply(NEW)})
    view = verdict(critique_reasoning="The length is wrong.", logical_gaps=("A gap.",))
    ModelReviser(asker).revise(context(answer=OLD), view, ISSUES)
    sent = asker.asked[0]
    for text in (OLD, "The length is wrong.", "A gap.", '"i1"', '"i2"', "How long is the bridge?", "1931."):
        assert text in sent.text


def test_of_very_many_issues_the_gravest_are_taken_up() -> None:
    many = tuple(issue("low", id=f"i{n}", description=f"low {n}") for n in range(ISSUES_MOST * 2))
    grave = issue("critical", id="i999", description="It is harmful.")
    asker = ScriptedAsker({"reviser": reply(NEW)})
    ModelReviser(asker).revise(context(answer=OLD), verdict(), (*many, grave))
    assert asker.asked[0].text.count('"severity": ') == ISSUES_MOST
    assert "It is harmful." in asker.asked[0].text


ANSWER = "It is 120 metres long [chunk_1]."


def drafted(given: Any) -> Draft:
    return ModelDrafter(ScriptedAsker({"drafter": given})).draft("How long is it?", EVIDENCE)


def test_a_draft_is_an_answer_with_the_steps_that_led_to_it() -> None:
    found = drafted({"reasoning_steps": ["chunk_1 gives it.", " "], "answer": f" {ANSWER}\n"})
    assert (found.answer, found.reasoning_steps) == (ANSWER, ("chunk_1 gives it.",))
    assert found.judged_by.version.startswith("drafter/3+")


def test_fence_lines_are_no_part_of_a_draft() -> None:
    found = drafted({"reasoning_steps": [], "answer": f"{ANSWER}\n<<<END ANSWER {MARK}>>>"})
    assert found.answer == ANSWER


@pytest.mark.parametrize(
    ("failure", "code"),
    [
        (ProviderFailed("down"), "CRITIC-ERR-003"),
        (BadReply("refused", kind="refused"), "CRITIC-ERR-001"),
        ({"reasoning_steps": [], "answer": " "}, "CRITIC-ERR-001"),
        ("Sure! It is long.", "CRITIC-ERR-001"),
    ],
)
def test_no_answer_is_a_failure_with_its_code(failure: Any, code: str) -> None:
    with pytest.raises(StepError) as raised:
        drafted(failure)
    assert raised.value.code == code

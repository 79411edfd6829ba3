"""Two answers side by side say who judged them, and whose claims the evidence supports."""

from __future__ import annotations

import pytest

from masis.schema.case import Case
from masis.schema.comparison import Judgement
from masis.services import Workbench
from masis.services.records import CaseFilter
from masis.views.answer_pair import AnswerPairData, PairHeading, answer_pair, pair_side
from tests.reviewing import ADA, decide

EVIDENCE = [
    {
        "id": "1",
        "text": "The Halden bridge is 410 metres long. The toll is 3 euros for a car.",
    },
    {"id": "2", "text": "The ferry runs every hour."},
]
HEADING: PairHeading = {"question": "How long is it?", "place": "1 of 1", "focus": 0}


def drawn(
    desk: Workbench,
    first: str,
    second: str,
    judgement: Judgement = "nothing_found",
    evidence: list[dict[str, str]] = EVIDENCE,
) -> AnswerPairData:
    sides = []
    for system, answer, chunks in (("v1", first, EVIDENCE), ("v2", second, evidence)):
        case = Case.model_validate(
            {
                "id": f"q:{system}",
                "question_id": "q",
                "system": system,
                "query": "How long is the bridge, and what is the toll?",
                "answer": answer,
                "evidence": chunks,
            }
        )
        if not desk.cases.count(CaseFilter(text=case.id)):
            desk.cases.add_one(ADA, case)
            desk.audits.audit(ADA, case)
        opened = desk.comparison.open_answer(ADA, case.id)
        sides.append(
            pair_side(opened.case, opened.run, judgement, decision=opened.decision, href="x")
        )
    before, now = sides
    return answer_pair(before, now, HEADING)


LENGTH = "The Halden bridge is 410 metres long [1]."
TOLL = "The toll is 3 euros for a car [1]."


def test_the_same_evidence_says_which_answer_cites_a_chunk_and_whose_claims_it_bears_out(
    bench: Workbench,
) -> None:
    data = drawn(bench, f"{LENGTH} {TOLL}", LENGTH)
    [evidence] = data["evidence"]
    assert evidence["title"] == "Evidence, the same for both"
    assert [chunk["cited"] for chunk in evidence["chunks"]] == ["cited by v1 and v2", ""]
    pieces = evidence["chunks"][0]["pieces"]
    marks = {piece["text"].strip(): (piece["tone"], piece["of"]) for piece in pieces}
    assert marks["The Halden bridge is 410 metres long."] == ("good", "v1, v2")
    # v2 leaves the toll out, so the sentence is a missing point of it, not what bears it out
    assert marks["The toll is 3 euros for a car."] == ("calm", "supports v1, missing in v2")
    assert "".join(piece["text"] for piece in pieces) == EVIDENCE[0]["text"]


@pytest.mark.parametrize(
    "claim",
    [
        "The toll is waived for a car with a trailer [1].",  # not confirmed
        "The toll is 7 euros for a car [1].",  # contradicted
    ],
)
def test_evidence_never_bears_out_a_claim_that_isnt_confirmed(bench: Workbench, claim: str) -> None:
    answer = f"{LENGTH} {claim}"
    [evidence] = drawn(bench, answer, answer)["evidence"]
    [confirmed, *others] = [p for chunk in evidence["chunks"] for p in chunk["pieces"]]
    assert (confirmed["text"], confirmed["tone"]) == (LENGTH.replace(" [1]", ""), "good")
    assert "good" not in {piece["tone"] for piece in others}
    assert not any("supports" in piece["of"] for piece in others)


def test_different_evidence_is_drawn_for_each_answer(bench: Workbench) -> None:
    data = drawn(bench, LENGTH, LENGTH, evidence=EVIDENCE[:1])
    assert [group["title"] for group in data["evidence"]] == ["Evidence of v1", "Evidence of v2"]
    assert [len(group["chunks"]) for group in data["evidence"]] == [2, 1]
    assert data["evidence"][1]["chunks"][0]["cited"] == "cited by v2"


def test_a_decision_says_who_made_it_when_and_why_and_the_issues_are_the_audits(
    bench: Workbench,
) -> None:
    data = drawn(bench, LENGTH, LENGTH)
    assert data["sides"][1]["decision"] == ""
    assert data["sides"][1]["opinion"] == "The audit's opinion"
    decide(bench, "q:v2", "reject", reviewer="Kim", reason="It leaves out the toll.")
    side = drawn(bench, LENGTH, LENGTH, "rejected")["sides"][1]
    assert side["decision"].startswith("Rejected by Kim on ")
    assert side["reason"] == "It leaves out the toll."
    assert side["opinion"] == "The audit's opinion; the decision above counts instead"


def test_a_decision_isnt_shown_beside_a_judgement_of_the_audit(bench: Workbench) -> None:
    drawn(bench, LENGTH, LENGTH)
    decide(bench, "q:v2", "reject", reviewer="Kim", reason="secret")
    assert "secret" not in str(drawn(bench, LENGTH, LENGTH, "flagged"))


def test_answers_that_differ_in_most_words_have_no_word_diff(bench: Workbench) -> None:
    data = drawn(bench, LENGTH, "No idea, ask the harbour office about such figures [2].")
    assert data["changes"] is None
    assert data["no_changes"].startswith("The answers differ in most words")


def test_answers_that_differ_in_a_word_have_a_word_diff(bench: Workbench) -> None:
    data = drawn(bench, LENGTH, LENGTH.replace("410", "401"))
    assert data["changes"] is not None
    assert ("in", "401") in [(kind, text.strip()) for kind, text in data["changes"]]


def test_equal_answers_are_called_equal(bench: Workbench) -> None:
    data = drawn(bench, LENGTH, LENGTH)
    assert (data["changes"], data["no_changes"]) == (
        None,
        "Both answers are the same, word for word.",
    )


def test_a_reviewers_note_and_labels_stand_beside_the_decision(bench: Workbench) -> None:
    drawn(bench, LENGTH, LENGTH)
    label = {"target": "span", "start": 21, "end": 31, "text": "410 metres"}
    decide(
        bench,
        "q:v2",
        "reject",
        reason="contradicted",
        note="It says 410; the record says 401.",
        labels=[{**label, "label": "contradicted", "severity": "high", "note": "Measured."}],
    )
    side = drawn(bench, LENGTH, LENGTH, "rejected")["sides"][1]
    assert side["reason"]
    assert side["note"] == "It says 410; the record says 401."
    assert side["labels"] == ["“410 metres”: contradicted, high (Measured.)"]


def test_a_figure_that_isnt_in_the_evidence_is_marked(bench: Workbench) -> None:
    data = drawn(bench, LENGTH, "The bridge and its ramps are 975 steps long [1].")
    marked = [p for p in data["sides"][1]["pieces"] if p["says"]]
    assert [p["text"] for p in marked] == ["975"]
    assert not [p for p in data["sides"][0]["pieces"] if p["says"]]


@pytest.mark.parametrize(
    ("now", "facts"),
    [
        (LENGTH, [[], []]),
        (LENGTH.replace("410", "401"), [["410"], ["401"]]),
        (LENGTH.replace("[1]", "[E9]"), [["[1]"], ["[E9]"]]),
        ("Nobody knows [1].", [["410"], []]),
        (f"{LENGTH} It is 410 metres [2].", [[], ["410", "[2]"]]),
        ("It is 1,410.5 m long [1].", [["410"], ["1,410.5"]]),
    ],
)
def test_figures_and_citations_that_only_one_answer_has_are_listed(
    bench: Workbench, now: str, facts: list[list[str]]
) -> None:
    assert drawn(bench, LENGTH, now)["facts"] == facts

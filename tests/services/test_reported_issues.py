"""Issues that reviewers report by labelling words of an answer: what is accepted, recorded, and
what never changes.
"""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import ValidationError

from masis.errors import InputError, StoreError
from masis.schema.actor import Actor
from masis.schema.labels import TargetLabel
from masis.schema.review import Decision, LogEntry
from masis.schema.team import DEFAULT_LABEL_TYPES, LabelType, LabelTypes, QueuePolicy
from masis.services import Workbench
from masis.services.decision_rules import seen_labels
from tests.store.factories import a_case, a_run, an_iteration

ADA, BEN, CLEO = Actor(name="Ada"), Actor(name="Ben"), Actor(name="Cleo")
ANSWER = "It opened in 1932 [1]. It is painted grey 🌉 [7]."
REVISION = "It opened in 1932 [1]. It is painted red."
GREY = ANSWER.index("grey 🌉")


@pytest.fixture
def workbench(bench: Workbench) -> Workbench:
    """Two cases, each audited in two iterations."""
    for number in (1, 2):
        case = a_case(f"case-{number}", answer=ANSWER)
        bench.store.cases.add(case)
        iterations = (an_iteration(1, ANSWER), an_iteration(2, REVISION))
        bench.store.runs.finish(
            a_run(case, f"run-{number}", iterations=iterations, needs_review=True)
        )
    return bench


def issue(**changes: Any) -> TargetLabel:
    words = {"target": "span", "start": GREY, "end": GREY + 6, "text": "grey 🌉"}
    return TargetLabel.model_validate(
        words | {"label": "unsupported", "severity": "high", "note": "no colour"} | changes
    )


def whole(**changes: Any) -> TargetLabel:
    return TargetLabel.model_validate(
        {"target": "answer", "label": "incomplete", "severity": "low"} | changes
    )


def decide(workbench: Workbench, *labels: TargetLabel, actor: Actor = ADA, **keys: Any) -> LogEntry:
    content = {
        "reviewer": actor.name,
        "case_id": "case-1",
        "run_id": "run-1",
        "iteration": 1,
        "verdict": "approve",
        "extra": seen_labels(labels),
    }
    return workbench.reviews.submit(
        actor, Decision.model_validate({**content, "labels": labels, **keys})
    )


def test_reported_issues_record_their_type_version(workbench: Workbench) -> None:
    entry = decide(workbench, issue(), whole())
    kept = workbench.reviews.get(entry.id).decision
    assert kept.reported == (issue(), whole())
    assert kept.versions["label_types"] == "0"
    assert workbench.store.decisions.verify().intact
    without = decide(workbench).decision
    assert without.reported == ()
    assert "label_types" not in without.versions


@pytest.mark.parametrize(
    ("label", "says"),
    [
        (issue(start=GREY + 1, end=GREY + 7), "has 'rey 🌉 ', not 'grey 🌉'"),
        (issue(text="gray 🌉"), "not 'gray 🌉'"),
        (issue(start=0, end=900), "0 to 900 aren't a range of the answer, which has 48 characters"),
        (issue(start=-6, end=-1), "aren't a range of the answer"),
        (issue(start=GREY, end=GREY, text=""), "aren't a range of the answer"),
        (
            issue(label="rude"),
            "'rude' isn't a label type of version 0. Types: fabricated citation, unsupported",
        ),
        (whole(label=""), "'' isn't a label type"),
    ],
)
def test_an_issue_on_words_not_in_the_answer_is_rejected(
    workbench: Workbench, label: TargetLabel, says: str
) -> None:
    with pytest.raises(InputError, match=says):
        decide(workbench, issue(), label)
    assert workbench.reviews.current("case-1") is None


def test_an_issue_concerns_the_decided_answer(workbench: Workbench) -> None:
    with pytest.raises(InputError, match="at characters 41 to 47"):
        decide(workbench, issue(start=41, end=47), iteration=1)
    with pytest.raises(InputError, match="aren't a range of the answer, which has 41 characters"):
        decide(workbench, issue(), iteration=2)
    red = REVISION.index("red")
    assert (
        decide(workbench, issue(start=red, end=red + 3, text="red"), iteration=2).decision
        is not None
    )
    # a corrected answer is no longer the one that the words stand in
    decide(workbench, issue(), verdict="override", corrected_answer="It opened.", reason="colour")


def test_changing_types_keeps_decisions_and_old_types(
    workbench: Workbench,
) -> None:
    entry = decide(workbench, issue())
    types = (LabelType(name="harsh", guidance="unkind to the reader"), LabelType(name="Too long"))
    assert workbench.team.put_in_force(CLEO, LabelTypes(types=types)).version == 1
    assert workbench.reviews.get(entry.id).decision == entry.decision
    with pytest.raises(InputError, match=r"version 1\. Types: harsh, Too long"):
        decide(workbench, issue(), case_id="case-2", run_id="run-2")
    again = decide(workbench, issue(label="harsh"), case_id="case-2", run_id="run-2")
    kept = workbench.reviews.get(again.id).decision
    assert (kept.reported[0].label, kept.versions["label_types"]) == ("harsh", "1")
    assert workbench.store.team.in_force(LabelTypes, 0).types == DEFAULT_LABEL_TYPES
    assert workbench.store.team.in_force(LabelTypes, 1).types == types
    with pytest.raises(StoreError, match="no version 2 of the label types"):
        workbench.store.team.in_force(LabelTypes, 2)


def test_a_repeated_submit_is_idempotent_after_a_type_change(
    workbench: Workbench,
) -> None:
    first = decide(workbench, issue(), token="once")
    workbench.team.put_in_force(CLEO, LabelTypes(types=(LabelType(name="rude"),)))
    assert decide(workbench, issue(), token="once").id == first.id


def test_adjudications_can_report_issues(workbench: Workbench) -> None:
    workbench.team.put_in_force(CLEO, QueuePolicy(reviewers=2, rule="adjudicated"))
    decide(workbench, issue())
    decide(workbench, actor=BEN, verdict="reject", reason="grey")
    seen = workbench.cases.summary("case-1").version
    final = Decision.model_validate(
        {
            "reviewer": "Cleo",
            "case_id": "case-1",
            "run_id": "run-1",
            "iteration": 1,
            "verdict": "approve",
        }
    )
    with pytest.raises(InputError, match="isn't a label type"):
        workbench.reviews.adjudicate(
            CLEO, final.model_copy(update={"labels": (issue(label="rude"),)})
        )
    made = workbench.reviews.adjudicate(
        CLEO, final.model_copy(update={"labels": (issue(),)}), seen_version=seen
    ).decision
    assert made.versions["label_types"] == "0"
    assert {"app", "rubric"} <= set(made.versions)


def test_blind_reviewers_report_issues_in_the_original_answer(workbench: Workbench) -> None:
    workbench.team.put_in_force(CLEO, QueuePolicy(machine="after"))
    made = decide(workbench, issue(), run_id=None, iteration=None).decision
    assert (made.run_id, made.iteration, made.reported) == ("run-1", 1, (issue(),))


@pytest.mark.parametrize(
    "wrong",
    [
        {"target": "answer", "label": "other"},
        {
            "target": "answer",
            "label": "other",
            "severity": "low",
            "start": 0,
            "end": 2,
            "text": "It",
        },
        {"target": "span", "label": "other", "severity": "low"},
        {
            "target": "claim",
            "start": 0,
            "end": 2,
            "text": "It",
            "label": "other",
            "severity": "low",
        },
        {
            "target": "span",
            "start": 0,
            "end": 2,
            "text": "It",
            "label": "other",
            "severity": "terrible",
        },
    ],
)
def test_an_empty_label_is_rejected(
    wrong: dict[str, Any],
) -> None:
    with pytest.raises(ValidationError):
        TargetLabel.model_validate(wrong)


def test_duplicate_or_missing_types_are_rejected() -> None:
    with pytest.raises(ValidationError, match="two label types have the same name"):
        LabelTypes(types=(LabelType(name="Rude"), LabelType(name="rude")))
    with pytest.raises(ValidationError):
        LabelTypes(types=())

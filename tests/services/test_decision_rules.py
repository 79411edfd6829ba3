"""What makes a decision valid: one list of rules, kept by everything that records a decision."""

from __future__ import annotations

from typing import Any

import pytest

from masis.errors import InputError
from masis.schema.actor import Actor
from masis.schema.labels import TargetLabel
from masis.schema.review import Decision
from masis.schema.team import QueuePolicy
from masis.services import Workbench
from masis.services.decision_rules import (
    LABELS_SEEN,
    OTHER,
    REASON_CODE,
    DecidedAnswer,
    is_unchanged,
    kept_citations,
    problems,
    seen_issues,
    seen_labels,
    unknown_citations,
)
from masis.services.desk import Desk
from masis.settings import Settings
from masis.store import Store
from tests.audit.factories import issue
from tests.reviewing import ADA
from tests.store.factories import a_case, a_run, an_iteration

ANSWER = "It is long [1].\nIt is grey [7]."
CASE = a_case("case", answer=ANSWER)
SERIOUS = (issue("high", id="i1"), issue("critical", id="i2"))

UNSAFE = TargetLabel(target="answer", label="unsafe", severity="critical")
MINOR = TargetLabel(target="answer", label="incomplete", severity="low")

ROWS: list[tuple[dict[str, Any], list[str]]] = [
    ({"verdict": "escalate"}, []),
    ({"verdict": "reject", "reason": "Wrong."}, []),
    ({"verdict": "reject"}, ["reason_missing"]),
    ({"verdict": "reject", "reason": " \n", "note": " "}, ["reason_missing"]),
    ({"verdict": "reject", "note": "It drops a condition."}, []),
    ({"verdict": "reject", "note": "An old rate.", "extra": {REASON_CODE: OTHER}}, []),
    ({"verdict": "reject", "extra": {REASON_CODE: OTHER}}, ["own_words_missing"]),
    (
        {"verdict": "approve", "extra": {REASON_CODE: OTHER} | seen_issues(SERIOUS)},
        ["own_words_missing"],
    ),
    ({"verdict": "override", "reason": "Wrong.", "corrected_answer": "It is short [1]."}, []),
    ({"verdict": "override", "corrected_answer": "It is short [1]."}, ["reason_missing"]),
    ({"verdict": "override"}, ["correction_missing", "reason_missing"]),
    ({"verdict": "override", "reason": "Wrong.", "corrected_answer": " "}, ["correction_missing"]),
    (
        {"verdict": "override", "reason": "Wrong.", "corrected_answer": ANSWER},
        ["correction_changes_nothing"],
    ),
    (
        {
            "verdict": "override",
            "reason": "Wrong.",
            "corrected_answer": f" {ANSWER.replace(' ', '  ')}\n\n",
        },
        ["correction_changes_nothing"],
    ),
    (
        {"verdict": "reject", "reason": "Wrong.", "corrected_answer": "It is short."},
        ["correction_unused"],
    ),
    (
        {"verdict": "override", "reason": "Wrong.", "corrected_answer": "It is short [7]."},
        ["citations_unknown"],
    ),
    (
        {"verdict": "override", "corrected_answer": "It is short [7]."},
        ["reason_missing", "citations_unknown"],
    ),
    (
        {
            "verdict": "override",
            "reason": "Wrong.",
            "corrected_answer": "It is short [7].",
            "extra": kept_citations(["7"]),
        },
        [],
    ),
    (
        {
            "verdict": "override",
            "reason": "Wrong.",
            "corrected_answer": "It is short [7, 8].",
            "extra": kept_citations(["7"]),
        },
        ["citations_unknown"],
    ),
    ({"verdict": "approve", "extra": seen_issues(SERIOUS)}, []),
    ({"verdict": "approve"}, ["serious_issues_open"]),
    ({"verdict": "approve", "extra": seen_issues(SERIOUS[:1])}, ["serious_issues_open"]),
    (
        {"verdict": "approve", "extra": seen_issues(SERIOUS), "labels": (UNSAFE,)},
        ["serious_issues_open"],
    ),
    (
        {
            "verdict": "approve",
            "extra": seen_issues(SERIOUS) | seen_labels([UNSAFE]),
            "labels": (UNSAFE,),
        },
        [],
    ),
    ({"verdict": "approve", "extra": seen_issues(SERIOUS), "labels": (MINOR,)}, []),
]


def decision(**given: Any) -> Decision:
    content = {"reviewer": "Ada", "case_id": "case", "run_id": "run", "iteration": 1}
    return Decision.model_validate(content | given)


@pytest.fixture
def workbench(store: Store) -> Workbench:
    """A case whose audit left two serious issues open."""
    opened = Workbench(store, Settings(), store.path)
    opened.cases.add(ADA, [CASE])
    iteration = an_iteration().model_copy(update={"answer": ANSWER, "issues": SERIOUS})
    store.runs.finish(a_run(CASE, "run", iterations=(iteration,), needs_review=True))
    return opened


@pytest.mark.parametrize(("given", "codes"), ROWS)
def test_every_caller_is_held_to_the_decision_rules(
    workbench: Workbench, given: dict[str, Any], codes: list[str]
) -> None:
    made = decision(**given)
    unknown = unknown_citations(made.corrected_answer or "", CASE)
    found = problems(made, DecidedAnswer(ANSWER, SERIOUS, unknown_citations=unknown))
    assert [problem.code for problem in found] == codes
    before = workbench.store.decisions.head().length
    if not codes:
        assert workbench.reviews.submit(ADA, made).decision is not None
        return
    with pytest.raises(InputError) as refused:
        workbench.reviews.submit(ADA, made)
    assert str(refused.value) == str(found[0].as_error())
    assert found[0].message.lower() in found[0].sentence.lower()
    assert workbench.store.decisions.head().length == before


@pytest.mark.parametrize(("given", "codes"), [row for row in ROWS if not row[0].get("extra")])
def test_the_desk_rejects_what_the_service_rejects(
    workbench: Workbench, given: dict[str, Any], codes: list[str]
) -> None:
    verdict, rest = (
        given["verdict"],
        {key: value for key, value in given.items() if key != "verdict"},
    )
    desk = Desk(workbench, reviewer="Ada")
    if not codes:
        assert desk.decide("case", verdict, **rest)
        return
    unknown = unknown_citations(given.get("corrected_answer") or "", CASE)
    found, *_ = problems(
        decision(**given), DecidedAnswer(ANSWER, SERIOUS, unknown_citations=unknown)
    )
    with pytest.raises(InputError, match=found.message[:40]):
        desk.decide("case", verdict, **rest)


def test_an_approval_without_a_run_concerns_the_newest_runs_issues(
    workbench: Workbench,
) -> None:
    approval = decision(verdict="approve", run_id=None, iteration=None)
    with pytest.raises(InputError, match="2 serious issues open"):
        workbench.reviews.submit(ADA, approval)
    assert workbench.reviews.answer_of(approval) == ANSWER
    case = a_case("not audited", answer=ANSWER)
    workbench.cases.add(ADA, [case])
    assert workbench.reviews.submit(ADA, approval.model_copy(update={"case_id": case.id}))
    assert workbench.reviews.submit(
        ADA, approval.model_copy(update={"extra": seen_issues(SERIOUS)})
    )


def test_blind_reviewers_neednt_acknowledge_issues(workbench: Workbench) -> None:
    workbench.team.put_in_force(Actor(name="lead"), QueuePolicy(machine="after"))
    assert workbench.reviews.submit(ADA, decision(verdict="approve", run_id=None, iteration=None))
    # now that she has decided, it is shown to her: whatever she adds to her approval is given
    # knowing it
    desk = Desk(workbench, reviewer="Ada")
    label = [{"text": "It is grey", "label": "unsupported"}]
    with pytest.raises(InputError, match="2 serious issues open"):
        desk.label("case", label)
    entry = desk.label("case", label, acknowledge=True)
    assert entry.decision is not None
    assert [issue["id"] for issue in entry.decision.extra["issues_seen"]] == ["i1", "i2"]


@pytest.mark.parametrize(
    ("corrected", "answer", "unchanged"),
    [
        ("a b", "a  b\n", True),
        ("\ta b", "a b", True),
        ("", "  ", True),
        ("ab", "a b", False),
        ("a b.", "a b", False),
        ("A b", "a b", False),
        ("a\u00a0b", "a b", True),
    ],
)
def test_whitespace_alone_isnt_a_correction(corrected: str, answer: str, unchanged: bool) -> None:
    assert is_unchanged(corrected, answer) is unchanged


@pytest.mark.parametrize(
    ("label", "is_asked"),
    [
        ({"text": "It is long", "target": "claim", "label": "contradicted"}, True),
        ({"text": "[7]", "target": "reference", "label": "fabricated"}, True),
        ({"text": "It is long", "target": "claim", "label": "supported"}, False),
        ({"target": "answer", "label": "unsafe", "severity": "high"}, True),
        ({"target": "answer", "label": "unsafe", "severity": "medium"}, False),
    ],
)
def test_an_approval_against_own_serious_labels_needs_an_acknowledgement(
    store: Store, label: dict[str, Any], is_asked: bool
) -> None:
    workbench = Workbench(store, Settings(), store.path)
    workbench.cases.add(ADA, [CASE])
    desk = Desk(workbench, reviewer="Ada")
    if is_asked:
        with pytest.raises(InputError, match=r"1 serious issue open: .*by your own label"):
            desk.decide("case", "approve", labels=[label])
    entry = desk.decide("case", "approve", labels=[label], acknowledge=is_asked)
    assert entry.decision is not None
    assert bool(entry.decision.extra.get(LABELS_SEEN)) is is_asked

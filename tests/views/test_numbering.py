"""The numbers of issues: the gravest is number 1 wherever issues are listed."""

from __future__ import annotations

import pytest

from masis import run_audit
from masis.schema.case import Case
from masis.schema.run import Iteration, Run
from masis.views.answer import answer_view
from masis.views.headline import headline
from masis.views.numbering import SEVERITIES, headline_kind, numbered_issues, worst_of
from tests.cases import case_of

EVIDENCE = {
    "c1": "The toll was 70 euros in 2020. Growth was 11.9% in 2020.",
    "c2": "The bridge is 120 metres long.",
}
ANSWER = "Growth was 14.2% in 2020 [c1]. The bridge is 150 metres long [c2]. It is painted grey."


@pytest.fixture(scope="module")
def case() -> Case:
    return case_of(ANSWER, EVIDENCE)


@pytest.fixture(scope="module")
def run(case: Case) -> Run:
    """An audit whose second contradicted claim is the gravest issue."""
    run = run_audit(case)
    original = run.iterations[0]
    at = ANSWER.index("The bridge")
    issues = tuple(
        issue.model_copy(update={"severity": "critical"}) if (issue.start or 0) == at else issue
        for issue in original.issues
    )
    assert [issue.severity for issue in issues if issue.start == at] == ["critical"]
    changed = original.model_copy(update={"issues": issues})
    return run.model_copy(update={"iterations": (changed, *run.iterations[1:])})


def original_of(run: Run) -> Iteration:
    return run.iterations[0]


def test_the_gravest_issue_is_number_1_wherever_it_is_in_the_answer(case: Case, run: Run) -> None:
    issues = answer_view(case, run, 0)["issues"]
    assert [issue["number"] for issue in issues] == [1, 2, 3]
    ranks = [SEVERITIES.index(issue["severity"]) for issue in issues]
    assert ranks == sorted(ranks)
    assert ranks[0] == 0
    assert [worst_of(group) for group in numbered_issues(original_of(run))] == ranks


def test_the_headline_is_about_number_1(run: Run) -> None:
    first = numbered_issues(original_of(run))[0][0]
    line = headline(run)
    assert line.kind == headline_kind(first)
    assert line.text == "c2 has 120 metres where the answer has 150 metres"

"""The assertion that a new version of a system isn't worse."""

from __future__ import annotations

import pytest

import masis
from masis.pipeline import SystemWorse
from masis.services import Workbench
from tests.services.test_comparison import add_pairs


def test_a_system_that_chance_cannot_explain_fails_with_its_regressions(bench: Workbench) -> None:
    add_pairs(bench, worse=6, same=4)
    with pytest.raises(SystemWorse) as failed:
        masis.assert_not_worse("v1", "v2", db=bench.database)
    message = str(failed.value)
    assert message.startswith("v2 is worse than v1.")
    assert "worse-3: worse-3:v1 nothing found, worse-3:v2 flagged" in message
    assert failed.value.comparison.regression_count == 6


def test_few_regressions_pass_unless_fewer_are_allowed(bench: Workbench) -> None:
    add_pairs(bench, worse=2, same=20)
    assert masis.assert_not_worse("v1", "v2", db=bench.database).regression_count == 2
    masis.assert_not_worse("v1", "v2", db=bench.database, most_regressions=2)
    with pytest.raises(SystemWorse, match=r"2 regressions .* at most 1"):
        masis.assert_not_worse("v1", "v2", db=bench.database, most_regressions=1)


def test_systems_without_a_common_question_fail_because_nothing_was_checked(
    bench: Workbench,
) -> None:
    bench.store.cases.add(masis.Case(**CASE, system="v1"))
    bench.store.cases.add(masis.Case(**CASE, system="v2"))
    with pytest.raises(SystemWorse, match="share no question with audited or decided answers"):
        masis.assert_not_worse("v1", "v2", db=bench.database)


CASE = {"id": "q", "query": "Why?", "answer": "So.", "evidence": [{"id": "1", "text": "So."}]}


def test_the_pytest_plugin_offers_the_assertion(bench: Workbench, assert_not_worse: object) -> None:
    add_pairs(bench, better=1)
    assert callable(assert_not_worse)
    assert assert_not_worse("v1", "v2", db=bench.database).improvement_count == 1

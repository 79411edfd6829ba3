"""The use cases around audits and decisions."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from masis.schema.case import Case
from masis.schema.review import Decision
from masis.services import POLICY, Workbench, demo_cases
from masis.settings import Settings
from tests.reviewing import ADA

EVIDENCE = [{"id": "chunk_1", "text": "The bridge is 120 metres long. It was opened to traffic in 1931."}]
CLEAN = Case.model_validate(
    {
        "id": "clean",
        "query": "How long is the bridge?",
        "answer": "The bridge is 120 metres long [chunk_1].",
        "evidence": EVIDENCE,
    }
)
FAULTY = CLEAN.model_copy(update={"id": "faulty", "answer": "The bridge is 120 metres long [chunk_99]."})
NO_SPOT_CHECK = Settings(spot_check_share=0)


@pytest.fixture
def bench(tmp_path: Path) -> Workbench:
    opened = Workbench.open(tmp_path / "masis.db", NO_SPOT_CHECK)
    opened.cases.add(ADA, [CLEAN, FAULTY])
    return opened


def decision(**changes: Any) -> Decision:
    values: dict[str, Any] = {"reviewer": "Ada", "case_id": "faulty", "run_id": None, "verdict": "approve"}
    return Decision(**(values | changes))


@pytest.mark.spec("REQ-CRITIC-SEC-001")
def test_everything_lies_in_one_file_that_is_made_on_opening(tmp_path: Path) -> None:
    Workbench.open(tmp_path / "new" / "masis.db")
    assert (tmp_path / "new" / "masis.db").is_file()


def test_a_run_that_needs_nobody_is_accepted_by_policy_in_the_log(bench: Workbench) -> None:
    run = bench.audits.audit(ADA, CLEAN)
    view = bench.cases.open("clean")
    assert not run.needs_review
    assert view.state == "accepted"
    assert view.decision is not None
    assert view.decision.decision is not None
    assert (view.decision.decision.source, view.decision.decision.reviewer) == ("CODE", POLICY.name)


def test_a_run_drawn_for_a_spot_check_goes_to_a_person(bench: Workbench) -> None:
    run = bench.audits.audit(ADA, CLEAN, settings=Settings(spot_check_share=1))
    assert run.spot_check
    assert not run.needs_review
    assert bench.cases.open("clean").state == "needs_review"


def test_a_faulty_answer_waits_for_a_person(bench: Workbench) -> None:
    bench.audits.audit(ADA, FAULTY)
    assert bench.cases.open("faulty").state == "needs_review"


def test_what_was_audited_with_these_settings_needs_no_audit(bench: Workbench) -> None:
    assert bench.audits.needed(CLEAN)
    bench.audits.audit(ADA, CLEAN)
    assert not bench.audits.needed(CLEAN)
    assert bench.audits.needed(CLEAN, Settings(max_iterations=1))


@pytest.mark.parametrize(
    ("changes", "lacking"),
    [
        ({"verdict": "override", "reason": "wrong"}, "corrected answer"),
        ({"verdict": "override", "corrected_answer": "x"}, "reason"),
        ({"verdict": "reject"}, "reason"),
        ({"verdict": None}, "verdict"),
        ({"kind": "undo", "verdict": None}, "entry it takes back"),
    ],
)
def test_a_decision_that_lacks_something_says_what(changes: dict[str, Any], lacking: str) -> None:
    with pytest.raises(ValueError, match=lacking):
        decision(**changes)


def test_the_demo_loads_and_loads_again_without_harm(tmp_path: Path) -> None:
    bench = Workbench.open(tmp_path / "demo.db")
    first = bench.cases.add_demo(ADA)
    assert first.added == len(list(demo_cases())) >= 40
    assert bench.cases.add_demo(ADA).unchanged == first.added

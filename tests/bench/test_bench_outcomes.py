"""Figures of ``masis bench`` for whole audits: issues, improvement, convergence, times, and the
targets of the spec.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from masis import Case, run_audit
from masis.bench import render, run_bench
from masis.bench.outcomes import TargetOutcome, score_issues, target_outcomes
from masis.errors import InputError
from masis.schema.audit import Issue
from masis.schema.run import Run
from tests.audit import factories

ANSWER = "It grew by 21% [1]. It has two yards [9]. It never rains."
GOLD: dict[str, Any] = {
    "id": "c1",
    "query": "How much did it grow?",
    "answer": ANSWER,
    "evidence": [
        {"id": "1", "text": "It grew by 12%. It has two yards."},
        {"id": "2", "text": "Rain falls."},
    ],
    "labels": {
        "clean": False,
        "claims": [
            {"text": "It grew by 21% [1].", "verdict": "contradicted", "planted": "altered_number"}
        ],
        "citations": [
            {"reference": "1", "status": "valid", "sentence": "It grew by 21% [1]."},
            {"reference": "9", "status": "invalid", "sentence": "It has two yards [9]."},
        ],
        "findings": [
            {"type": "contradiction", "severity": "high", "text": "21%"},
            {"type": "fabricated_citation", "severity": "critical", "text": "[9]"},
            {"type": "missing_info", "severity": "high"},
        ],
    },
}


def issue(text: str | None, rule: str, type_: str = "unsupported", source: str = "claims") -> Issue:
    start = ANSWER.find(text) if text else None
    end = start + len(text) if text and start is not None else None
    return factories.issue(rule=rule, type=type_, source=source, start=start, end=end, quote=text)


@pytest.mark.spec("REQ-CRITIC-NFR-006")
@pytest.mark.parametrize(
    ("raised_issue", "is_found", "is_right"),
    [
        (issue("It grew by 21% [1].", "contradicted_claim"), [True, False, False], True),
        (issue("[9]", "fabricated_reference", source="citations"), [False, True, False], True),
        (issue("It has two yards [9].", "unsupported_claim"), [False, False, False], False),
        (
            issue("It has two yards [9].", "critic_hallucination", source="critic"),
            [False, True, False],
            True,
        ),
        (issue(None, "missing_information", "incomplete"), [False, False, True], True),
        (issue("It never rains.", "unsupported_claim"), [False, False, False], False),
    ],
)
def test_an_issue_matches_a_label_of_its_kind_and_position(
    raised_issue: Issue, is_found: list[bool], is_right: bool
) -> None:
    result = score_issues(GOLD, [raised_issue])
    assert [hit.hit for hit in result.found] == is_found
    assert [hit.hit for hit in result.right] == [is_right]


def test_a_labeled_redundant_reference_is_a_correct_issue_but_not_a_planted_one() -> None:
    label = {"reference": "1", "status": "redundant", "sentence": "It grew by 21% [1]."}
    gold = GOLD | {"labels": {"clean": False, "findings": [], "citations": [label]}}
    result = score_issues(gold, [issue("It grew by 21% [1].", "redundant_reference", "ambiguity")])
    assert (result.found, [hit.hit for hit in result.right]) == ((), [True])


def run(case_id: str = "c1", **changes: Any) -> Run:
    """Return a run of this case with changes; ``ms`` sets the step times of its iterations."""
    audit_run = run_audit(Case.model_validate(GOLD | {"id": case_id}))
    step_ms = changes.pop("ms", None)
    if step_ms is not None:
        timed_iterations = tuple(
            iteration.model_copy(update={"step_ms": dict(step_ms)})
            for iteration in audit_run.iterations
        )
        changes["iterations"] = timed_iterations
    return audit_run.model_copy(update=changes)


def outcome_named(outcomes: tuple[TargetOutcome, ...], name: str) -> TargetOutcome:
    return next(outcome for outcome in outcomes if outcome.name == name)


@pytest.mark.spec("REQ-CRITIC-NFR-007")
@pytest.mark.parametrize(
    ("percent", "share", "is_met"), [(10.0, 1.0, True), (9.9, 0.0, False), (None, 0.0, False)]
)
def test_a_case_is_improved_from_ten_percent_and_seven_in_ten_must_be(
    percent: float | None, share: float, is_met: bool
) -> None:
    outcome = outcome_named(
        target_outcomes([run(improvement_percentage=percent)], [], 0, 1),
        "improved by 10% or more, of cases revised",
    )
    assert (outcome.figure.value, outcome.is_met, outcome.target) == (share, is_met, 0.7)


@pytest.mark.spec("REQ-CRITIC-NFR-007")
def test_a_case_without_a_revision_counts_only_among_all() -> None:
    unrevised = run()
    iterations = tuple(
        iteration.model_copy(update={"revision": None}) for iteration in unrevised.iterations
    )
    runs = [
        run("a", improvement_percentage=50.0),
        unrevised.model_copy(
            update={"case_id": "b", "iterations": iterations, "improvement_percentage": 0.0}
        ),
    ]
    outcomes = target_outcomes(runs, [], 0, 1)
    assert outcome_named(outcomes, "improved by 10% or more, of cases revised").n == 1
    assert outcome_named(outcomes, "improved by 10% or more, of all cases").figure.value == 0.5


@pytest.mark.spec("REQ-CRITIC-NFR-008")
def test_only_convergence_within_three_iterations_counts_and_cancelled_runs_are_ignored() -> None:
    endings = ["no_issues", "convergence", "max_iterations", "error", "cancelled"]
    runs = [run(f"c{number}", termination_reason=reason) for number, reason in enumerate(endings)]
    runs.append(run("late", termination_reason="convergence", total_iterations=4))
    converged = outcome_named(target_outcomes(runs, [], 0, 1), "converged within 3 iterations")
    assert (converged.n, converged.figure.value, converged.is_met) == (5, 0.4, False)
    convergence_endings = outcome_named(
        target_outcomes(runs, [], 0, 1), "convergence endings, of all cases"
    )
    assert (
        convergence_endings.n,
        convergence_endings.figure.value,
        convergence_endings.is_met,
    ) == (5, 0.4, None)


@pytest.mark.spec(
    "REQ-CRITIC-NFR-001", "REQ-CRITIC-NFR-002", "REQ-CRITIC-NFR-003", "REQ-CRITIC-NFR-004"
)
@pytest.mark.parametrize(
    ("name", "step", "limit"),
    [
        ("critic, 95th percentile", "critique", 15_000),
        ("reviser, 95th percentile", "revision", 15_000),
        ("iteration, 95th percentile", "claims", 35_000),
    ],
)
def test_times_are_compared_with_their_limits(name: str, step: str, limit: int) -> None:
    for ms, is_met in ((limit, True), (limit + 1, False)):
        outcome = outcome_named(target_outcomes([run(ms={step: float(ms)})], [], 0, 1), name)
        assert (outcome.figure.value, outcome.is_met) == (ms, is_met)


def test_loop_time_is_the_95th_percentile_with_an_interval() -> None:
    runs = [run(f"c{number}", ms={"critique": 10.0}) for number in range(19)]
    runs.append(run("slow", ms={"critique": 200_000.0}))
    outcome = outcome_named(target_outcomes(runs, [], 50, 1), "loop, 95th percentile")
    assert outcome.figure.low <= (outcome.figure.value or 0) <= outcome.figure.high


def write(path: Path, rows: list[str]) -> Path:
    path.write_text("\n".join(rows) + "\n", encoding="utf-8")
    return path


@pytest.mark.spec("REQ-CRITIC-NFR-006")
def test_our_cases_are_audited_and_the_report_can_be_serialized(tmp_path: Path) -> None:
    report = run_bench(
        write(tmp_path / "cases.jsonl", [json.dumps(GOLD)]), half="all", bootstrap=10
    )
    outcome = outcome_named(report.outcomes, "planted issues found")
    assert (outcome.n, outcome.cases, outcome.figure.value) == (
        3,
        1,
        pytest.approx(2 / 3, abs=1e-3),
    )
    serialized = json.loads(json.dumps(report.to_dict()))["outcomes"][0]
    assert (serialized["rule"], serialized["met"], serialized["figure"]["value"]) == (
        "REQ-CRITIC-NFR-006",
        False,
        0.6667,
    )
    assert "at least 0.80 (REQ-CRITIC-NFR-006): missed" in render(report)


def test_a_file_of_runs_is_measured_directly_or_used_instead_of_audits(tmp_path: Path) -> None:
    runs = write(tmp_path / "runs.jsonl", [run(improvement_percentage=12.0).model_dump_json()])
    runs_report = run_bench(runs, bootstrap=0)
    assert (runs_report.task, runs_report.readings) == ("Runs", ())
    assert (
        outcome_named(runs_report.outcomes, "improved by 10% or more, of all cases").figure.value
        == 1.0
    )
    cases = write(tmp_path / "cases.jsonl", [json.dumps(GOLD)])
    other_runs = write(tmp_path / "other.jsonl", [run("c2").model_dump_json()])
    assert (
        outcome_named(
            run_bench(cases, half="all", bootstrap=0, runs=runs).outcomes, "planted issues found"
        ).n
        == 3
    )
    outcomes_without_runs = run_bench(cases, half="all", bootstrap=0, runs=other_runs).outcomes
    assert outcome_named(outcomes_without_runs, "converged within 3 iterations").n == 0
    assert "-" in render(run_bench(cases, half="all", bootstrap=0, runs=other_runs))


def test_an_invalid_run_is_reported_with_file_and_line(tmp_path: Path) -> None:
    rows = [
        run().model_dump_json(),
        json.dumps({"case_id": "x", "iterations": [], "termination_reason": "?"}),
    ]
    with pytest.raises(InputError) as caught:
        run_bench(write(tmp_path / "runs.jsonl", rows))
    assert (caught.value.file, caught.value.line) == ("runs.jsonl", 2)

"""The figures of runs: kept with the run's end, the same for runs that stood before, added up,
found again.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import pytest

from masis.audit import critique
from masis.audit.measures.metrics import Distribution, equal_bounds
from masis.schema.base import Unscored
from masis.schema.calls import Usage
from masis.schema.run import Iteration, Run
from masis.services.records import MeasureFilter, Pick
from masis.store import Store
from tests.store.factories import JUDGE, a_case, a_run, an_iteration


def an_audited(
    number: int, *, critic_ms: float = 100.0, quality: float = 0.5, **keys: Any
) -> Iteration:
    made = an_iteration(number, quality=quality)
    return made.model_copy(update={"step_ms": {"critique": critic_ms, "citations": 1.0}, **keys})


def keep_run(
    store: Store,
    number: int,
    *,
    at: str = "2026-01-05T10:00:01.000Z",
    model: str = "offline",
    **keys: Any,
) -> Run:
    """A finished run of a case of its own."""
    case = a_case(f"case-{number}")
    store.cases.add(case)
    began = f"{at[:17]}00.000Z"
    run = a_run(
        case, f"run-{number}", started_at=began, finished_at=at, models={"critic": model}, **keys
    )
    store.runs.finish(run)
    return run


def spread(store: Store, measure: str) -> Distribution:
    return store.measures.distributions(MeasureFilter(), (measure,))[0]


@pytest.mark.spec("REQ-CRITIC-OBS-001", "DRAFT-CRITIQUE-METRICS")
def test_a_finished_run_stores_its_figures(store: Store) -> None:
    keep_run(
        store,
        1,
        iterations=(an_audited(1, quality=0.4), an_audited(2, quality=0.8, improvement_delta=0.4)),
        improvement_percentage=100.0,
        usage=Usage(calls=3, tries=4, prompt_tokens=1000, completion_tokens=50, cost_usd=0.25),
    )
    found = store.measures.added_up(MeasureFilter(), "month").total
    assert (found.runs, found.values["hallucination"], found.values["revision"]) == (
        1,
        1.0,
        1.0,
    )
    assert (found.values["loop_ms"], found.values["claims"], found.values["claim_confidence"]) == (
        1000.0,
        1.0,
        0.95,
    )
    assert (
        found.values["convergence_ending"],
        found.values["needs_review"],
        found.values["iterations"],
    ) == (1.0, 1.0, 2.0)
    assert (found.values["improvement_percentage"], found.values["quality"]) == (100.0, 0.4)
    assert (
        found.values["calls"],
        found.values["input_tokens"],
        found.values["output_tokens"],
        found.values["cost"],
    ) == (
        3,
        1000,
        50,
        0.25,
    )


def a_failed(**keys: Any) -> Iteration:
    """An iteration whose critic failed and whose citations are sound: nobody knows whether it
    hallucinates.
    """
    sound = an_iteration(1, invalid=(), quality=None, confidence=None)
    failed = critique.apply_critique_rules(
        Unscored(reason="cut off", code="CRITIC-ERR-005"), sound.citation_audit, (), JUDGE
    )
    return sound.model_copy(update={"critique": failed, **keys})


def test_a_rate_counts_only_known_values(store: Store) -> None:
    keep_run(store, 1, iterations=(a_failed(),), termination_reason="error", converged=False)
    keep_run(store, 2, iterations=(an_iteration(1, invalid=()),))
    found = store.measures.added_up(MeasureFilter(), "month").total
    assert (found.runs, found.known["hallucination"], found.values["hallucination"]) == (2, 1, 0.0)
    assert (found.values["converged"], found.values["convergence_ending"]) == (0.5, 0.5)
    assert (
        store.measures.added_up(MeasureFilter(since="2027-01-01"), "month").total.values[
            "hallucination"
        ]
        is None
    )


def test_figures_are_summed_by_day_week_and_month(store: Store) -> None:
    for number, day in enumerate(("2026-01-04", "2026-01-05", "2026-01-11", "2026-02-01"), 1):
        keep_run(store, number, at=f"{day}T23:59:59.000Z")

    def by(period: Any) -> list[tuple[str | None, int]]:
        return [
            (total.name, total.runs)
            for total in store.measures.added_up(MeasureFilter(), period).periods
        ]

    assert by("day") == [("2026-01-04", 1), ("2026-01-05", 1), ("2026-01-11", 1), ("2026-02-01", 1)]
    # from Monday to Sunday
    assert by("week") == [("2025-12-29", 1), ("2026-01-05", 2), ("2026-01-26", 1)]
    assert by("month") == [("2026-01-01", 3), ("2026-02-01", 1)]


def test_rates_are_grouped_by_model_period_and_data_set(store: Store) -> None:
    keep_run(store, 1)
    keep_run(store, 2, model="openai:gpt-4o", at="2026-03-01T00:00:00.000Z")
    measures = store.measures
    assert [
        (model.name, model.runs) for model in measures.added_up(MeasureFilter(), "month").models
    ] == [
        ("offline", 1),
        ("openai:gpt-4o", 1),
    ]
    assert measures.added_up(MeasureFilter(models=("openai:gpt-4o",)), "month").total.runs == 1
    assert measures.added_up(MeasureFilter(since="2026-03-01"), "month").total.runs == 1
    assert measures.added_up(MeasureFilter(until="2026-03-01"), "month").total.runs == 1
    assert measures.added_up(MeasureFilter(datasets=("made for tests",)), "month").total.runs == 2
    assert measures.added_up(MeasureFilter(datasets=("another",)), "month").total.runs == 0
    assert measures.count_names("critic") == {"offline": 1, "openai:gpt-4o": 1}
    assert [
        model.name for model in measures.added_up(MeasureFilter(role="evaluator"), "month").models
    ] == [None]


def test_percentiles_are_observed_values(store: Store) -> None:
    for number in range(1, 101):
        keep_run(store, number, iterations=(an_audited(1, critic_ms=float(number)),))
    found = spread(store, "critic_ms")
    assert (found.count, found.least, found.most, found.mean) == (100, 1.0, 100.0, 50.5)
    assert (found.p50, found.p95) == (50.0, 95.0)
    assert [(part.low, part.high, part.count) for part in found.bins] == [
        (None, 19.0, 19),
        (19.0, 39.0, 20),
        (39.0, 59.0, 20),
        (59.0, 79.0, 20),
        (79.0, 99.0, 20),
        (99.0, None, 1),
    ]


@pytest.mark.parametrize(
    ("values", "bounds"),
    [
        ([], []),
        ([2, 2], []),
        ([0, 0, 1, 3], [0, 1, 2]),
        (range(40), [4, 9, 14, 19, 24, 29, 34]),
        ([0.1, 0.2, 0.5], [0.15, 0.2, 0.25, 0.3, 0.35, 0.4, 0.45]),
        ([*range(300), 1_000_000], [49, 99, 149, 199, 249, 299]),
    ],
)
def test_bins_have_equal_width_and_the_last_has_the_tail(
    values: Iterable[float], bounds: list[float]
) -> None:
    assert equal_bounds(np.array(list(values), dtype=float)) == bounds


@pytest.mark.parametrize("values", [[3.0], [1.0, 2.0], [5.0, 1.0, 3.0]])
def test_percentiles_of_few_values_are_defined(store: Store, values: list[float]) -> None:
    for number, value in enumerate(values):
        keep_run(store, number, iterations=(an_audited(1, critic_ms=value),))
    found = spread(store, "critic_ms")
    assert found.p50 == sorted(values)[(len(values) - 1) // 2]
    assert found.p95 == max(values)
    assert sum(part.count for part in found.bins) == len(values)


def test_all_normal_endings_count_as_converged(store: Store) -> None:
    for number, ending in enumerate(("no_issues", "no_issues", "convergence", "max_iterations")):
        keep_run(store, number, termination_reason=ending, converged=ending == "convergence")
    found = store.measures.added_up(MeasureFilter(), "month").total
    assert (
        found.values["converged"],
        found.values["convergence_ending"],
        found.values["no_issues"],
    ) == (0.75, 0.25, 0.5)
    assert store.measures.find_runs(MeasureFilter(), Pick(metric="converged")).total == 3
    assert store.measures.find_runs(MeasureFilter(), Pick(metric="convergence_ending")).total == 1


def test_the_runs_behind_a_figure_can_be_listed(store: Store) -> None:
    keep_run(store, 1, iterations=(an_audited(1, critic_ms=20.0), an_audited(2, critic_ms=900.0)))
    keep_run(store, 2, iterations=(an_iteration(1, invalid=()),), at="2026-01-06T00:00:00.000Z")
    measures = store.measures

    def run_ids(**pick: Any) -> list[str]:
        page = measures.find_runs(MeasureFilter(), Pick(**pick))
        assert page.total == len(page.rows)
        return [run.run_id for run in page.rows]

    assert run_ids() == ["run-2", "run-1"]
    assert run_ids(metric="hallucination") == ["run-1"]
    assert run_ids(metric="critic_ms", above=500.0) == ["run-1"]
    assert run_ids(metric="critic_ms", above=20.0, most=100.0) == []
    row = measures.find_runs(MeasureFilter(), Pick(metric="critic_ms", above=500.0)).rows[0]
    assert (row.case_id, row.query, row.value) == ("case-1", "When was the bridge opened?", 900.0)
    assert measures.find_runs(MeasureFilter(), Pick(), page=2, size=1).rows[0].run_id == "run-1"


def test_an_unfinished_run_stores_no_figures(store: Store) -> None:
    case = a_case()
    store.cases.add(case)
    store.runs.start("run-1", case_id=case.id, case_digest=case.digest(), models={}, settings={})
    store.runs.abandon("run-1", "the power failed")
    assert store.measures.added_up(MeasureFilter(), "month").total.runs == 0


def test_figures_follow_changes_of_runs(store: Store) -> None:
    for number in range(1, 6):
        keep_run(store, number, iterations=(an_iteration(1, invalid=("9",) if number % 2 else ()),))
    assert store.measures.added_up(MeasureFilter(), "month").total.values["hallucination"] == 0.6
    keep_run(store, 6, iterations=(a_failed(),), termination_reason="error", converged=False)
    found = store.measures.added_up(MeasureFilter(), "month").total
    assert (found.runs, found.known["hallucination"], found.values["failed"]) == (6, 5, 1 / 6)
    store.database.execute("DELETE FROM run_measures WHERE seq = 2")
    assert store.measures.added_up(MeasureFilter(), "month").total.values["hallucination"] == 0.75
    assert store.measures.count_names("critic") == {"offline": 5}

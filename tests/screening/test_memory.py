"""The acceptance memory, and drift: noticed when people change grades more or less often than before."""

from __future__ import annotations

import random
from statistics import quantiles

import pytest

from benchmarks.screening_drift import false_alarms, waits
from masis.observers.observation import run_to_completion
from masis.schema.screening import Acceptance, Design
from masis.screening.rounds import ruling
from masis.screening.rounds.drift import BASELINE, LEAST_DEVIATION, LIMIT, drift
from masis.screening.rounds.memory import acceptances, adapted, shift
from masis.screening.rounds.round_loop import screen
from masis.settings import Settings
from tests.screening.scripted import BORDERLINE, ScriptedGrader, ScriptedSource, abstracts

ON = Settings(screening_memory=True)


def entries(
    count: int, quality: float, required: float = 0.70, design: Design = "randomised_trial"
) -> list[Acceptance]:
    return [
        Acceptance(study_type=None, design=design, quality=quality, round=0, required=required) for _ in range(count)
    ]


@pytest.mark.spec("AESOP-MEMORY")
def test_a_sufficient_screening_leaves_its_kept_studies_with_quality_and_round() -> None:
    source = ScriptedSource(abstracts("a", "b"), abstracts("c", "d", "e", "f", "b"))
    grader = ScriptedGrader({"a": BORDERLINE, "b": BORDERLINE})
    found = run_to_completion(screen("aspirin", [source], grader, Settings(), screening_id="s", now=lambda: "now"))
    entries = acceptances(found)
    assert {(entry.design, round(entry.quality, 2), entry.round, entry.required) for entry in entries} == {
        ("randomised_trial", 0.85, 1, 0.65)
    }
    assert len(entries) == 4


def test_an_insufficient_screening_leaves_nothing() -> None:
    grader = ScriptedGrader({}, default=BORDERLINE)
    found = run_to_completion(screen("aspirin", [ScriptedSource(abstracts("a"))], grader, Settings(), screening_id="s"))
    assert acceptances(found) == ()


@pytest.mark.spec("AESOP-MEMORY")
def test_it_is_off_unless_asked_for() -> None:
    assert adapted(Settings(), entries(100, 0.95)) == ruling.thresholds_of(Settings())


def test_it_moves_nothing_before_it_holds_enough() -> None:
    found = adapted(ON, entries(19, 0.95))
    assert found.required_average == (0.70, 0.65, 0.60, 0.55)
    assert "fewer than the 20" in found.adapted_why
    assert adapted(ON, entries(20, 0.95)).adapted_by == -0.05


def test_studies_accepted_well_above_what_was_asked_let_later_decisions_converge_sooner() -> None:
    found = adapted(ON, entries(40, 0.74))
    assert found.required_average == (0.68, 0.63, 0.58, 0.55)
    assert found.adapted_by == -0.02
    assert "0.040 above" in found.adapted_why


def test_studies_accepted_below_what_was_asked_make_it_stricter() -> None:
    assert adapted(ON, entries(40, 0.66)).required_average == (0.72, 0.67, 0.62, 0.57)


@pytest.mark.spec("AESOP-MEMORY")
@pytest.mark.parametrize("quality", [0.0, 0.2, 0.5, 0.7, 0.9, 1.0])
def test_however_extreme_the_past_a_threshold_moves_by_no_more_than_the_bound_and_never_under_the_least(
    quality: float,
) -> None:
    own = ruling.thresholds_of(ON).required_average
    found = adapted(ON, entries(500, quality)).required_average
    assert all(abs(new - old) <= 0.05 + 1e-9 and new >= 0.55 for new, old in zip(found, own, strict=True))


@pytest.mark.spec("AESOP-MEMORY")
def test_case_series_soften_nothing_however_many_were_accepted() -> None:
    assert shift(entries(500, 0.99, design="case_series"), 0.05).by == 0.0


def test_only_the_newest_count() -> None:
    assert shift([*entries(500, 1.0), *entries(200, 0.70)], 0.05).by == 0.0


def judgements(seed: int, before: float, after: float, count: int = 150) -> list[float]:
    """Judgements of which a share disagrees, another one after the baseline."""
    draw = random.Random(seed)
    return [float(draw.random() < (before if i < BASELINE else after)) for i in range(BASELINE + count)]


@pytest.mark.slow
@pytest.mark.spec("AESOP-DRIFT")
@pytest.mark.parametrize("rate", [0.03, 0.08, 0.15, 0.25, 0.40])
def test_of_stable_graders_under_one_in_twenty_raises_an_alarm_within_15_topics(rate: float) -> None:
    assert false_alarms(rate, BASELINE, LEAST_DEVIATION, LIMIT, series=300) < 0.05


@pytest.mark.slow
@pytest.mark.spec("AESOP-DRIFT")
def test_a_change_from_15_to_45_percent_is_found_as_soon_as_the_docs_say() -> None:
    tenths = quantiles(waits(BASELINE, LEAST_DEVIATION, LIMIT, series=300), n=10)
    assert tenths[4] <= 50
    assert tenths[8] <= 140


@pytest.mark.spec("AESOP-DRIFT")
def test_more_and_less_disagreement_than_before_are_both_noticed() -> None:
    more, less = drift(judgements(1, 0.1, 0.7)), drift(judgements(2, 0.8, 0.1))
    assert (more.direction, less.direction) == ("up", "down")
    assert "more disagreement than the usual" in more.why
    assert "less disagreement than the usual" in less.why
    assert min(more.alarms) >= BASELINE


def test_the_first_disagreement_after_a_baseline_of_agreements_is_no_drift() -> None:
    found = drift([0.0] * BASELINE + [1.0] + [0.0] * 30)
    assert found.alarms == ()
    assert found.why == "No drift from the usual 0% disagreement."


def test_it_says_when_there_is_too_little_to_say() -> None:
    found = drift([0.0] * BASELINE)
    assert (found.enough, found.alarms, found.usual) == (False, (), None)
    assert f"more than {BASELINE} are needed" in found.why
    assert len(found.points) == BASELINE


def test_the_first_judgement_after_the_baseline_is_added_up() -> None:
    found = drift([0.0, 1.0] * 2 + [1.0] * 6, baseline=4, least_deviation=0.1, limit=2.0)
    assert found.usual == pytest.approx(0.5)
    assert [round(point.up, 6) for point in found.points[4:]] == [0.5, 1.0, 1.5, 2.0, 2.5, 0.5]
    assert found.alarms == (8,)

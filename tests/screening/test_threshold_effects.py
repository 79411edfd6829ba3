"""When the acceptance memory or the falling requirement decides: gone through exhaustively, and shown on the demo."""

from __future__ import annotations

import itertools

import pytest

from masis.observers.observation import run_to_completion
from masis.schema.screening import Acceptance, Ruling, Tally, Thresholds
from masis.screening.demo import demo_abstracts, demo_questions
from masis.screening.grading.offline_grader import offline_grader
from masis.screening.rounds import ruling
from masis.screening.rounds.memory import acceptances, adapted, threshold_effects
from masis.screening.rounds.round_loop import screen
from masis.screening.sources.retrievers import InMemoryRetriever
from masis.settings import Settings
from tests.screening.scripted import STRONG, Said, ScriptedGrader, ScriptedSource, abstracts

ON = Settings(screening_memory=True)


def moved(by: float) -> Thresholds:
    """The thresholds as memory moves them."""
    own = ruling.DEFAULT
    averages = tuple(round(max(0.55, each + by), 6) for each in own.required_average)
    return own.model_copy(update={"required_average": averages, "own_average": own.required_average, "adapted_by": by})


@pytest.mark.soak(smoke=5, full=1)
@pytest.mark.spec("AESOP-MEMORY", "AESOP-DECAY")
def test_memory_decides_exactly_where_they_agree_and_the_average_lies_between_both_requirements(rounds: int) -> None:
    votes = [
        Tally(keep=keep, discard=discard, needs_more=n - keep - discard)
        for n in range(9)
        for keep in range(n + 1)
        for discard in range(n - keep + 1)
    ]
    changed, wrong = 0, []
    for hundredth, tally in itertools.product(range(-5, 6, rounds), votes):
        other = moved(hundredth / 100)
        for number, percent in itertools.product(range(4), range(45, 101)):
            mine = ruling.decided(tally, percent / 100, number, other)
            own = ruling.decided(tally, percent / 100, number, ruling.DEFAULT)
            low, high = sorted((other.required(number), ruling.DEFAULT.required(number)))
            between = round(low * 100) <= percent < round(high * 100)
            expected = own.consensus == "sufficient" and tally.keep >= ruling.DEFAULT.least_studies and between
            if (mine.decision != own.decision) != expected:
                wrong.append((hundredth, tally, number, percent))
            changed += expected
    assert not wrong, wrong[:5]
    assert changed > 0


@pytest.mark.spec("AESOP-MEMORY")
def test_on_the_demo_what_earlier_screenings_accepted_lets_a_later_one_suffice() -> None:
    pool, grader = tuple(demo_abstracts()), offline_grader()
    questions = {each.id: each.question for each in demo_questions()}

    def screened(
        name: str, thresholds: Thresholds | None = None
    ) -> tuple[str, tuple[str, ...], tuple[Acceptance, ...]]:
        source = InMemoryRetriever(pool, name="demo")
        steps = screen(questions[name], (source,), grader, ON, screening_id=name, thresholds=thresholds)
        found = run_to_completion(steps)
        return found.outcome, found.reasons, acceptances(found)

    entries = [entry for name in list(questions)[:3] for entry in screened(name)[2]]
    thresholds = adapted(ON, entries)
    assert thresholds.adapted_by == -0.05
    before, after = screened("b12"), screened("b12", thresholds)
    assert (before[0], after[0]) == ("evidence_insufficient", "conflicting")
    assert not any("acceptance memory" in reason for reason in before[1])
    assert any(
        "The acceptance memory decided round 1: the kept average 0.640 reaches 0.600; without memory 0.650" in reason
        for reason in after[1]
    )


def screening_with(thresholds: Thresholds, *pages: tuple[str, ...], quality: float) -> tuple[str, tuple[str, ...]]:
    """The outcome and reasons of a screening in which every abstract is kept with this quality."""
    grader = ScriptedGrader({}, default=Said(quality, quality, "cohort_study"))
    source = ScriptedSource(*(abstracts(*page) for page in pages))
    steps = screen("aspirin", [source], grader, Settings(), screening_id="s", thresholds=thresholds)
    found = run_to_completion(steps)
    return found.outcome, found.reasons


@pytest.mark.spec("AESOP-MEMORY")
def test_a_stricter_memory_says_what_would_have_sufficed_without_it() -> None:
    outcome, reasons = screening_with(moved(0.05), ("a", "b"), quality=0.72)
    assert outcome == "sufficient"  # in a later round, as the requirement falls
    assert (
        "The acceptance memory decided round 0: the kept average 0.720 is under 0.750; without memory 0.700 would have "
        "sufficed." in reasons
    )


@pytest.mark.spec("AESOP-DECAY")
def test_the_falling_requirement_says_where_it_decided() -> None:
    outcome, reasons = screening_with(ruling.DEFAULT, ("a", "b"), ("c", "d"), quality=0.66)
    assert outcome == "sufficient"
    assert (
        "The requirement that falls by round decided round 1: the kept average 0.660 reaches 0.650, not the 0.700 of "
        "the first round." in reasons
    )


def test_nothing_is_said_where_neither_decided() -> None:
    rounds = run_to_completion(
        screen(
            "aspirin", [ScriptedSource(abstracts("a", "b"))], ScriptedGrader({}, default=STRONG), ON, screening_id="s"
        )
    ).rounds
    assert isinstance(rounds[0].ruling, Ruling)
    assert threshold_effects(rounds, ruling.DEFAULT) == ()
    assert threshold_effects(rounds, moved(-0.05)) == ()

"""Further evidence can only help a verdict: properties over generated grades and findings."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from masis.schema.screening import Direction, Grade, SampleSize
from masis.screening.rounds.ruling import ruling
from masis.screening.synthesis.findings import Finding, settled_outcome, synthesis_of
from tests.screening.scripted import ScriptedOpinion, grade_of

ids = itertools.count()


def study(opinion: ScriptedOpinion, participants: int | None = None) -> Grade:
    size = (
        None
        if participants is None
        else SampleSize(value=participants, unit="adults", kind="total", start=0, end=1)
    )
    return grade_of(f"s{next(ids)}", opinion).model_copy(update={"study_size": size})


def decided_by_person(recommendation: str) -> Grade:
    return study(ScriptedOpinion()).model_copy(
        update={"recommendation": recommendation, "rule": "person"}
    )


def scores(least: float = 0.0) -> st.SearchStrategy[float]:
    return st.floats(least, 1.0).map(lambda score: round(score, 3))


kept_trials = st.builds(
    lambda relevance, method, participants: study(
        ScriptedOpinion(relevance, method, "randomised_trial", True), participants
    ),
    scores(0.5),
    scores(),
    st.integers(52, 2_000),
)
limited_studies = st.one_of(
    st.builds(
        lambda relevance, method, design: study(ScriptedOpinion(relevance, method, design, False)),
        scores(0.5),
        scores(),
        st.sampled_from(["randomised_trial", "cohort_study", "cross_sectional_study"]),
    ),
    st.builds(
        lambda relevance, method, design: study(ScriptedOpinion(relevance, method, design, None)),
        scores(0.5),
        scores(0.2),
        st.sampled_from(
            ["case_series", "case_report", "narrative_review", "animal_study", "other"]
        ),
    ),
)
without_vote = st.one_of(
    st.builds(lambda relevance: study(ScriptedOpinion(relevance)), st.floats(0.0, 0.49)),
    st.builds(lambda: study(ScriptedOpinion(0.9, 0.5, "notice", None))),
    st.builds(lambda: study(ScriptedOpinion(0.9, 0.5, "protocol", None))),
    st.builds(lambda: decided_by_person("discard")),
)
against = st.one_of(
    st.builds(lambda: study(ScriptedOpinion(None, None))),
    st.builds(lambda: study(ScriptedOpinion(0.9, 0.1, "case_report", None))),
)
any_grade = st.one_of(kept_trials, limited_studies, without_vote, against)
rounds = st.integers(0, 4)


def is_sufficient(number: int, grades: list[Grade]) -> bool:
    return ruling(number, grades).decision == "sufficient"


@pytest.mark.spec("AESOP-DECISION", "AESOP-CONSENSUS")
@given(rounds, st.lists(any_grade, max_size=12), st.one_of(kept_trials, limited_studies))
def test_a_further_relevant_study_never_lowers_a_verdict(
    number: int, grades: list[Grade], further: Grade
) -> None:
    assert is_sufficient(number, [*grades, further]) >= is_sufficient(number, grades)


@given(rounds, st.lists(any_grade, min_size=1, max_size=12), st.data())
def test_removing_a_kept_study_never_raises_a_verdict(
    number: int, grades: list[Grade], data: st.DataObject
) -> None:
    kept = [grade for grade in grades if grade.recommendation == "keep"]
    if kept:
        removed = data.draw(st.sampled_from(kept))
        rest = [grade for grade in grades if grade is not removed]
        assert is_sufficient(number, rest) <= is_sufficient(number, grades)


@given(rounds, st.lists(any_grade, max_size=12), st.lists(without_vote, max_size=8))
def test_abstracts_without_a_vote_change_no_verdict(
    number: int, grades: list[Grade], others: list[Grade]
) -> None:
    with_others, alone = ruling(number, [*grades, *others]), ruling(number, grades)
    assert (with_others.decision, with_others.average, with_others.consensus) == (
        alone.decision,
        alone.average,
        alone.consensus,
    )
    assert with_others.tally.votes == alone.tally.votes


@given(rounds, st.lists(any_grade, max_size=10))
def test_doubling_all_studies_never_lowers_a_verdict(number: int, grades: list[Grade]) -> None:
    copies = [
        grade.model_copy(update={"abstract_id": f"{grade.abstract_id} again"}) for grade in grades
    ]
    assert is_sufficient(number, [*grades, *copies]) >= is_sufficient(number, grades)


@given(rounds, st.lists(any_grade, max_size=10), st.randoms())
def test_the_order_of_studies_changes_no_verdict(
    number: int, grades: list[Grade], rng: object
) -> None:
    shuffled = list(grades)
    rng.shuffle(shuffled)  # type: ignore[attr-defined]  # the Random that hypothesis draws
    assert ruling(number, shuffled) == ruling(number, grades)


@given(st.lists(kept_trials, min_size=1, max_size=4), st.lists(limited_studies, max_size=20))
def test_too_few_kept_studies_are_never_made_sufficient_by_limited_ones(
    kept: list[Grade], limited: list[Grade]
) -> None:
    one_small = [
        grade.model_copy(update={"study_size": None, "registrations": ("NCT01234567",)})
        for grade in kept
    ]
    assert not is_sufficient(3, [*one_small, *limited])


def test_five_small_trials_leave_two_large_ones_sufficient() -> None:
    large = [study(ScriptedOpinion(0.9, 0.8), 240) for _ in range(2)]
    small = [study(ScriptedOpinion(0.9, 0.8, adequate=False), 40) for _ in range(5)]
    ruled = ruling(0, [*large, *small])
    assert (ruled.decision, ruled.tally.limited) == ("sufficient", 5)
    assert "5 other abstracts have no vote, because too small or weak a study" in ruled.why
    assert ruling(0, small).decision == "retrieve_more"


def test_a_weaker_kept_study_does_not_lower_the_average_that_others_reach() -> None:
    strong = [study(ScriptedOpinion(0.9, 0.8), 240) for _ in range(2)]
    weaker = [study(ScriptedOpinion(0.5, 0.45, "cohort_study"), 240) for _ in range(6)]
    ruled = ruling(0, [*strong, *weaker])
    assert ruled.decision == "sufficient"
    assert "the average of the best kept studies 0.850" in ruled.why
    assert ruling(0, weaker).decision == "retrieve_more"


def test_a_finished_human_review_is_sufficient_whatever_it_excluded() -> None:
    included = [decided_by_person("keep") for _ in range(3)]
    excluded = [decided_by_person("discard") for _ in range(60)]
    ruled = ruling(0, [*included, *excluded])
    assert (ruled.decision, ruled.tally.votes, ruled.tally.excluded) == ("sufficient", 3, 60)
    assert "60 other abstracts have no vote, because a person excluded them" in ruled.why


STATED: tuple[Direction, ...] = ("effect", "no_clear_effect", "opposite")
findings = st.lists(
    st.builds(
        lambda direction, adequate: Finding(f"f{next(ids)}", None, direction, adequate),
        st.sampled_from([*STATED, "unclear"]),
        st.booleans(),
    ),
    max_size=12,
)


@given(findings)
def test_a_conflict_needs_adequate_studies_on_both_sides(found: list[Finding]) -> None:
    sides = {finding.direction for finding in found if finding.adequate} - {"unclear"}
    if len(sides) < 2:
        assert settled_outcome(synthesis_of(found)) == "sufficient"
    adequate_only = [finding for finding in found if finding.adequate]
    assert synthesis_of(found).agree == synthesis_of(adequate_only).agree


@given(findings, st.booleans())
def test_a_finding_that_agrees_with_the_adequate_ones_starts_no_conflict(
    found: list[Finding], adequate: bool
) -> None:
    synthesis = synthesis_of(found)
    by_direction = {
        direction: sum(f.adequate and f.direction == direction for f in found)
        for direction in STATED
    }
    largest = max(STATED, key=by_direction.__getitem__)
    if synthesis.agree is not False and by_direction[largest]:
        further = Finding("further", None, largest, adequate)
        assert synthesis_of([*found, further]).agree is not False


def test_two_adequate_studies_that_differ_conflict() -> None:
    both = [Finding("a", None, "effect"), Finding("b", None, "opposite")]
    assert settled_outcome(synthesis_of(both)) == "conflicting"
    small = [Finding("a", None, "effect"), Finding("b", None, "opposite", adequate=False)]
    assert settled_outcome(synthesis_of(small)) == "sufficient"

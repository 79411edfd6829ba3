"""Thresholds and consensus, checked against a second implementation of the rules that shares no
code with the first.
"""

from __future__ import annotations

import itertools
from fractions import Fraction

import pytest

from masis.schema.screening import Grade, Recommendation, SampleSize, VoteTally
from masis.screening.rounds import ruling
from masis.settings import Settings
from tests.screening.scripted import ScriptedOpinion, grade_of

MOST_VOTES = 12


def vote_splits() -> list[tuple[int, int, int]]:
    """Return every split of up to twelve votes into keep, discard and needs_more."""
    return [
        (keep, discard, n - keep - discard)
        for n in range(MOST_VOTES + 1)
        for keep in range(n + 1)
        for discard in range(n - keep + 1)
    ]


def averages() -> list[Fraction]:
    """Return 0 to 1 in hundredths, and a value just below and just above every threshold."""
    edges = [Fraction(edge, 100) for edge in (55, 60, 65, 70)]
    epsilon = Fraction(1, 10_000)
    return sorted(
        {Fraction(i, 100) for i in range(101)}
        | {edge + sign * epsilon for edge in edges for sign in (-1, 1)}
    )


def expected_ruling(
    keep: int, discard: int, more: int, average: Fraction | None, iteration: int, min_studies: int
) -> tuple[str, str]:
    """Return consensus and decision by the specification's table, with integer arithmetic.

    The specification has ``min_studies`` 1; the product's default is 2.
    """
    hundredths = {0: 70, 1: 65, 2: 60}.get(iteration, 55)
    votes = keep + discard + more
    match (10 * keep >= 6 * votes, 2 * discard >= votes):
        case (True, False):
            consensus = "sufficient"
        case _:
            consensus = "retrieve_more"
    if votes == 0:
        consensus = "retrieve_more"
    is_sufficient = keep >= min_studies and average is not None and 100 * average >= hundredths
    return consensus, (
        "sufficient" if is_sufficient and consensus == "sufficient" else "retrieve_more"
    )


@pytest.mark.slow
@pytest.mark.spec("AESOP-CONSENSUS", "AESOP-DECAY", "AESOP-DECISION")
@pytest.mark.parametrize("min_studies", [1, 2])
def test_every_combination_of_votes_and_average_follows_the_specification(min_studies: int) -> None:
    wrong = []
    thresholds = ruling.DEFAULT.model_copy(update={"least_studies": min_studies})
    for keep, discard, more in vote_splits():
        votes = VoteTally(keep=keep, discard=discard, needs_more=more)
        for average in [*averages(), None]:
            for number in range(6):
                ruled = ruling.make_ruling(
                    votes, None if average is None else float(average), number, thresholds
                )
                if (ruled.consensus, ruled.decision) != expected_ruling(
                    keep, discard, more, average, number, min_studies
                ):
                    wrong.append((keep, discard, more, average, number, ruled.decision))
    assert not wrong, wrong[:5]


@pytest.mark.spec("AESOP-DECAY")
def test_the_required_average_falls_by_round_to_its_minimum() -> None:
    assert [ruling.DEFAULT.average_required_in(number) for number in range(6)] == [
        0.70,
        0.65,
        0.60,
        0.55,
        0.55,
        0.55,
    ]


@pytest.mark.spec("AESOP-CONSENSUS", "AESOP-DECAY", "AESOP-DECISION", "AESOP-ROUNDS")
def test_the_default_settings_match_the_specification() -> None:
    thresholds = ruling.thresholds_of(Settings())
    assert thresholds == ruling.DEFAULT
    assert (thresholds.keep_share, thresholds.discard_share, Settings().screening_max_rounds) == (
        0.60,
        0.50,
        4,
    )
    longer = ruling.thresholds_of(Settings(screening_max_rounds=8))
    assert [longer.average_required_in(number) for number in range(8)] == [
        0.70,
        0.65,
        0.60,
        0.55,
        0.55,
        0.55,
        0.55,
        0.55,
    ]


@pytest.mark.spec("AESOP-DECAY")
@pytest.mark.parametrize(
    ("page", "required"),
    [(5, [0.70, 0.70, 0.70, 0.65]), (8, [0.70, 0.70, 0.65, 0.65]), (15, [0.70, 0.65, 0.60, 0.55]),
     (60, [0.70, 0.65, 0.60, 0.55])],
)  # fmt: skip
def test_small_pages_with_more_rounds_lower_the_threshold_no_faster(
    page: int, required: list[float]
) -> None:
    thresholds = ruling.thresholds_of(Settings(screening_retrieve=page))
    assert [thresholds.average_required_in(number) for number in range(4)] == required


def test_thresholds_are_configurable() -> None:
    strict = ruling.thresholds_of(
        Settings(screening_required_first=0.9, screening_required_step=0.0)
    )
    assert [strict.average_required_in(number) for number in range(3)] == [0.9, 0.9, 0.9]
    steep = ruling.thresholds_of(
        Settings(screening_required_step=0.1, screening_required_least=0.58)
    )
    assert steep.required_average == (0.70, 0.60, 0.58)


numbers = itertools.count()


def make_grade(
    recommendation: Recommendation, quality: float | None = 0.8, relevance: float = 0.9
) -> Grade:
    opinion = ScriptedOpinion(None if quality is None else relevance, quality)
    values = {
        "methodology_score": quality,
        "quality": quality,
        "design": None,
        "unscored": None,
        "rule": "strong",
    }
    return grade_of(f"a{next(numbers)}", opinion).model_copy(
        update={**values, "recommendation": recommendation}
    )


@pytest.mark.spec("AESOP-CONSENSUS")
def test_one_weak_paper_does_not_veto_strong_evidence() -> None:
    votes = [*(make_grade("keep") for _ in range(4)), make_grade("discard", 0.1)]
    assert ruling.ruling(0, votes).decision == "sufficient"


@pytest.mark.spec("AESOP-CONSENSUS")
def test_one_strong_paper_does_not_override_poor_consensus() -> None:
    votes = [make_grade("keep", 0.99)] + [make_grade("discard", 0.2)] * 4
    ruled = ruling.ruling(3, votes)
    assert (ruled.consensus, ruled.decision) == ("retrieve_more", "retrieve_more")
    assert "1 of 5 keep (20%), 4 discard (80%)" in ruled.why


@pytest.mark.spec("AESOP-DECISION")
def test_consensus_on_weak_evidence_continues_until_the_threshold_has_fallen() -> None:
    votes = [make_grade("keep", 0.62) for _ in range(5)]
    assert [ruling.ruling(number, votes).decision for number in range(4)] == [
        "retrieve_more",
        "retrieve_more",
        "sufficient",
        "sufficient",
    ]


@pytest.mark.spec("AESOP-CONSENSUS")
def test_overlapping_thresholds_discard_first() -> None:
    # With the specification's shares only one of the conditions can be true. With other shares both
    # can, and the cautious one decides.
    lax = ruling.DEFAULT.model_copy(update={"keep_share": 0.4, "discard_share": 0.4})
    assert ruling.consensus(VoteTally(keep=2, discard=2, needs_more=1), lax) == "retrieve_more"
    assert ruling.consensus(VoteTally(keep=2, discard=1, needs_more=2), lax) == "sufficient"


def test_the_reason_names_the_rule_that_decided() -> None:
    mixed = ruling.ruling(
        0,
        [
            make_grade("keep"),
            make_grade("needs_more"),
            make_grade("needs_more"),
            make_grade("discard"),
        ],
    )
    assert "mixed signals" in mixed.why
    rejected = ruling.ruling(0, [make_grade("keep"), make_grade("discard")])
    assert "at least 50% discard" in rejected.why
    agreed = ruling.ruling(0, [make_grade("keep", 0.70)])
    assert (
        "at least 60% keep: they agree; the kept average 0.700 reaches the required 0.70"
        in agreed.why
    )
    assert "0.690 is under the required 0.70" in ruling.ruling(0, [make_grade("keep", 0.69)]).why


@pytest.mark.spec("AESOP-DECISION")
def test_an_empty_result_is_never_sufficient() -> None:
    ruled = ruling.ruling(3, [])
    assert (ruled.decision, ruled.average) == ("retrieve_more", None)
    assert "Nothing was found" in ruled.why


def test_a_kept_abstract_without_a_score_votes_but_isnt_averaged() -> None:
    ruled = ruling.ruling(0, [make_grade("keep", None), make_grade("keep", 0.9)])
    assert (ruled.average, ruled.decision) == (0.9, "sufficient")
    assert (
        ruling.ruling(3, [make_grade("keep", None), make_grade("keep", None)]).decision
        == "retrieve_more"
    )


@pytest.mark.spec("AESOP-CONSENSUS", "AESOP-DECISION")
@pytest.mark.parametrize("irrelevant", [0, 1, 4, 6, 14, 44, 94, 194])
def test_irrelevant_results_dont_change_the_ruling(irrelevant: int) -> None:
    relevant = [
        *(make_grade("keep") for _ in range(4)),
        make_grade("discard", 0.1),
        make_grade("needs_more", 0.5),
    ]
    relevant_only = ruling.ruling(0, relevant)
    mixed = ruling.ruling(0, [*relevant, *[make_grade("discard", 0.4, relevance=0.1)] * irrelevant])
    assert (mixed.consensus, mixed.decision, mixed.average) == (
        relevant_only.consensus,
        relevant_only.decision,
        relevant_only.average,
    )
    assert (mixed.tally.votes, mixed.tally.not_relevant) == (6, irrelevant)
    assert mixed.why.startswith(relevant_only.why)
    assert ("no vote" in mixed.why) is (irrelevant > 0)


def test_a_reviewed_off_topic_abstract_votes_and_a_failed_grade_needs_more() -> None:
    reviewed = make_grade("keep", 0.9, relevance=0.1).model_copy(update={"rule": "person"})
    assert ruling.ruling(0, [reviewed]).tally.votes == 1
    failed = make_grade("needs_more", None).model_copy(update={"rule": "unscored"})
    assert ruling.ruling(0, [make_grade("keep"), failed, failed]).decision == "retrieve_more"
    unmatched = failed.model_copy(update={"rule": "unmatched"})
    assert (
        ruling.ruling(0, [make_grade("keep"), make_grade("keep"), unmatched, unmatched]).decision
        == "sufficient"
    )


def test_a_page_of_unrelated_abstracts_has_no_consensus() -> None:
    ruled = ruling.ruling(0, [make_grade("discard", 0.4, relevance=0.1)] * 3)
    assert ruled.decision == "retrieve_more"
    assert "Of 3 abstracts found, none is relevant" in ruled.why


def trial(participants: int | None, **fields: object) -> Grade:
    size = (
        None
        if participants is None
        else SampleSize(value=participants, unit="adults", kind="total", start=0, end=1)
    )
    return make_grade("keep", 0.9).model_copy(
        update={"design": "randomised_trial", "study_size": size, **fields}
    )


@pytest.mark.spec("AESOP-DECISION")
@pytest.mark.parametrize(
    ("kept", "is_enough"),
    [
        ([trial(120)], False),
        ([trial(None)], False),
        ([trial(399)], False),
        ([trial(400)], True),
        ([trial(120), trial(90)], True),
        ([trial(120).model_copy(update={"design": "meta_analysis"})], True),
        ([trial(120).model_copy(update={"design": "systematic_review"})], True),
        ([trial(900).model_copy(update={"design": "cohort_study"})], False),
        ([trial(120, registrations=("NCT01234567",)), trial(118, registrations=("NCT01234567",))], False),
        ([trial(120, registrations=("NCT01234567",)), trial(118, registrations=("NCT07654321",))], True),
    ],
    ids=["one trial", "of unknown size", "just too small", "large", "two", "meta-analysis", "review", "one cohort",
         "two reports of one trial", "two registered trials"],
)  # fmt: skip
def test_a_verdict_needs_two_independent_studies_or_one_strong_one(
    kept: list[Grade], is_enough: bool
) -> None:
    ruled = ruling.ruling(0, kept)
    assert ruled.consensus == "sufficient"
    assert (ruled.decision == "sufficient", ruled.too_few) == (is_enough, not is_enough)
    assert ("too few: " in ruled.why) is not is_enough


@pytest.mark.spec("AESOP-DECISION")
def test_a_report_of_two_kept_trials_does_not_lower_the_verdict() -> None:
    first, second = (
        trial(120, registrations=("NCT00000001",)),
        trial(118, registrations=("NCT00000002",)),
    )
    pooled = trial(238, registrations=("NCT00000001", "NCT00000002"))
    for kept in ([first, second], [first, second, pooled], [pooled, second, first]):
        ruled = ruling.ruling(0, kept)
        assert (ruled.decision, ruled.studies) == ("sufficient", 2)


def test_the_minimum_number_of_studies_is_a_recorded_setting() -> None:
    one_study = ruling.thresholds_of(Settings(screening_least_studies=1))
    assert ruling.ruling(0, [trial(120)], one_study).decision == "sufficient"
    three_studies = ruling.thresholds_of(Settings(screening_least_studies=3))
    ruled = ruling.ruling(0, [trial(120), trial(90)], three_studies)
    assert (ruled.decision, ruled.studies) == ("retrieve_more", 2)
    assert "too few: 2 independent studies kept, 3 required" in ruled.why


@pytest.mark.spec("AESOP-CONSENSUS")
@pytest.mark.parametrize(
    "change", [{"design": "notice"}, {"design": "protocol"}, {"rule": "of_concern"}]
)
def test_notices_and_studies_of_concern_dont_vote(change: dict[str, str]) -> None:
    excluded = [make_grade("discard", 0.1).model_copy(update=change) for _ in range(5)]
    ruled = ruling.ruling(0, [trial(120), trial(90), *excluded])
    assert (ruled.decision, ruled.tally.votes) == ("sufficient", 2)

"""Thresholds and consensus, checked against a second statement of the rules that shares no code with the first."""

from __future__ import annotations

from fractions import Fraction

import pytest

from masis.schema.audit import JudgedBy
from masis.schema.screening import Grade, Recommendation, Tally
from masis.screening.rounds import ruling
from masis.settings import Settings

MOST_VOTES = 12


def splits() -> list[tuple[int, int, int]]:
    """Every way in which up to twelve abstracts can vote: keep, discard, needs_more."""
    return [
        (keep, discard, n - keep - discard)
        for n in range(MOST_VOTES + 1)
        for keep in range(n + 1)
        for discard in range(n - keep + 1)
    ]


def averages() -> list[Fraction]:
    """0 to 1 in hundredths, and a hair's breadth on each side of every edge."""
    edges = [Fraction(edge, 100) for edge in (55, 60, 65, 70)]
    hair = Fraction(1, 10_000)
    return sorted({Fraction(i, 100) for i in range(101)} | {edge + sign * hair for edge in edges for sign in (-1, 1)})


def as_written(keep: int, discard: int, more: int, average: Fraction | None, iteration: int) -> tuple[str, str]:
    """The specification's table and list once more, in whole numbers: consensus and decision."""
    hundredths = {0: 70, 1: 65, 2: 60}.get(iteration, 55)
    everyone = keep + discard + more
    match (10 * keep >= 6 * everyone, 2 * discard >= everyone):
        case (True, False):
            agreed = "sufficient"
        case _:
            agreed = "retrieve_more"
    if everyone == 0:
        agreed = "retrieve_more"
    enough = keep >= 1 and average is not None and 100 * average >= hundredths
    return agreed, ("sufficient" if enough and agreed == "sufficient" else "retrieve_more")


@pytest.mark.slow
@pytest.mark.spec("AESOP-CONSENSUS", "AESOP-DECAY", "AESOP-DECISION")
def test_every_vote_and_average_is_decided_as_the_specification_says() -> None:
    wrong = []
    for keep, discard, more in splits():
        votes = Tally(keep=keep, discard=discard, needs_more=more)
        for average in [*averages(), None]:
            for number in range(6):
                found = ruling.decided(votes, None if average is None else float(average), number)
                if (found.consensus, found.decision) != as_written(keep, discard, more, average, number):
                    wrong.append((keep, discard, more, average, number, found.decision))
    assert not wrong, wrong[:5]


@pytest.mark.spec("AESOP-DECAY")
def test_the_required_average_falls_round_by_round_and_stays_at_the_last() -> None:
    assert [ruling.DEFAULT.required(number) for number in range(6)] == [0.70, 0.65, 0.60, 0.55, 0.55, 0.55]


@pytest.mark.spec("AESOP-CONSENSUS", "AESOP-DECAY", "AESOP-ROUNDS")
def test_the_settings_are_the_specifications_unless_set_otherwise() -> None:
    found = ruling.thresholds_of(Settings())
    assert found == ruling.DEFAULT
    assert (found.keep_share, found.discard_share, Settings().screening_max_rounds) == (0.60, 0.50, 4)
    longer = ruling.thresholds_of(Settings(screening_max_rounds=8))
    assert [longer.required(number) for number in range(8)] == [0.70, 0.65, 0.60, 0.55, 0.55, 0.55, 0.55, 0.55]


def graded(recommendation: Recommendation, quality: float | None = 0.8, relevance: float = 0.9) -> Grade:
    return Grade(
        abstract_id="a",
        relevance_score=None if quality is None else relevance,
        methodology_score=quality,
        methodology_raw=quality,
        prior=None,
        quality=quality,
        sample_size_adequate=None,
        study_type=None,
        study_type_confidence=None,
        design=None,
        recommendation=recommendation,
        rule="strong",
        judged_by=JudgedBy(model="offline", version="1"),
    )


@pytest.mark.spec("AESOP-CONSENSUS")
def test_one_weak_paper_does_not_veto_strong_evidence() -> None:
    votes = [graded("keep")] * 4 + [graded("discard", 0.1)]
    assert ruling.ruling(0, votes).decision == "sufficient"


@pytest.mark.spec("AESOP-CONSENSUS")
def test_one_strong_paper_does_not_override_poor_consensus() -> None:
    votes = [graded("keep", 0.99)] + [graded("discard", 0.2)] * 4
    found = ruling.ruling(3, votes)
    assert (found.consensus, found.decision) == ("retrieve_more", "retrieve_more")
    assert "1 of 5 keep (20%), 4 discard (80%)" in found.why


@pytest.mark.spec("AESOP-DECISION")
def test_agreement_on_evidence_that_is_not_good_enough_retrieves_more_until_the_bar_has_come_down() -> None:
    votes = [graded("keep", 0.62)] * 5
    assert [ruling.ruling(number, votes).decision for number in range(4)] == [
        "retrieve_more",
        "retrieve_more",
        "sufficient",
        "sufficient",
    ]


@pytest.mark.spec("AESOP-CONSENSUS")
def test_where_thresholds_overlap_discarding_comes_first() -> None:
    # With the specification's shares both can't hold at once; with others they can, and the cautious one decides.
    lax = ruling.DEFAULT.model_copy(update={"keep_share": 0.4, "discard_share": 0.4})
    assert ruling.consensus(Tally(keep=2, discard=2, needs_more=1), lax) == "retrieve_more"
    assert ruling.consensus(Tally(keep=2, discard=1, needs_more=2), lax) == "sufficient"


def test_the_reason_says_which_of_the_rules_decided() -> None:
    mixed = ruling.ruling(0, [graded("keep"), graded("needs_more"), graded("needs_more"), graded("discard")])
    assert "mixed signals" in mixed.why
    rejected = ruling.ruling(0, [graded("keep"), graded("discard")])
    assert "at least 50% discard" in rejected.why
    agreed = ruling.ruling(0, [graded("keep", 0.70)])
    assert "at least 60% keep: they agree; the kept average 0.700 reaches the required 0.70" in agreed.why
    assert "0.690 is under the required 0.70" in ruling.ruling(0, [graded("keep", 0.69)]).why


@pytest.mark.spec("AESOP-DECISION")
def test_nothing_found_is_never_sufficient() -> None:
    found = ruling.ruling(3, [])
    assert (found.decision, found.average) == ("retrieve_more", None)
    assert "Nothing was found" in found.why


def test_what_a_person_keeps_without_a_score_counts_as_a_vote_and_not_in_the_average() -> None:
    found = ruling.ruling(0, [graded("keep", None), graded("keep", 0.9)])
    assert (found.average, found.decision) == (0.9, "sufficient")
    assert ruling.ruling(3, [graded("keep", None)]).decision == "retrieve_more"


@pytest.mark.spec("AESOP-CONSENSUS", "AESOP-DECISION")
@pytest.mark.parametrize("beside", [0, 1, 4, 6, 14, 44, 94, 194])
def test_what_a_search_brings_beside_the_relevant_abstracts_changes_nothing(beside: int) -> None:
    relevant = [graded("keep")] * 4 + [graded("discard", 0.1)] + [graded("needs_more", 0.5)]
    alone = ruling.ruling(0, relevant)
    found = ruling.ruling(0, [*relevant, *[graded("discard", 0.4, relevance=0.1)] * beside])
    assert (found.consensus, found.decision, found.average) == (alone.consensus, alone.decision, alone.average)
    assert (found.tally.votes, found.tally.not_relevant) == (6, beside)
    assert found.why.startswith(alone.why)
    assert ("don't vote" in found.why) is (beside > 0)


def test_a_person_votes_on_what_the_machine_took_for_something_else_and_a_failure_asks_for_more() -> None:
    person = graded("keep", 0.9, relevance=0.1).model_copy(update={"rule": "person"})
    assert ruling.ruling(0, [person]).tally.votes == 1
    failed = graded("needs_more", None).model_copy(update={"rule": "unscored"})
    assert ruling.ruling(0, [graded("keep"), failed, failed]).decision == "retrieve_more"
    foreign = failed.model_copy(update={"rule": "unmatched"})
    assert ruling.ruling(0, [graded("keep"), foreign, foreign]).decision == "sufficient"

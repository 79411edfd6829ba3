"""The reading order learns from decisions, and stopping is proposed by the stated rule."""

from __future__ import annotations

import numpy as np
import pytest

from masis.schema.screening import Abstract
from masis.screening.ranking.learning import (
    LEAST_DECISIONS,
    expected_recall,
    reading_order,
    stopping_proposal,
)

ABOUT_SLEEP = "insomnia melatonin bedtime polysomnography latency"
ABOUT_TEETH = "caries fluoride enamel toothbrush gingivitis"


def library(count: int = 60) -> list[Abstract]:
    """Return abstracts of two topics in turn: even ones are about sleep, odd ones about teeth."""
    return [
        Abstract(
            id=f"a{number}", title=f"Study {number}", text=(ABOUT_SLEEP, ABOUT_TEETH)[number % 2]
        )
        for number in range(count)
    ]


EQUAL: dict[str, float | None] = {f"a{number}": 0.5 for number in range(60)}


def decide_about_sleep(numbers: range) -> dict[str, bool]:
    """Return decisions that include the abstracts about sleep."""
    return {f"a{number}": number % 2 == 0 for number in numbers}


def test_before_ten_decisions_the_most_relevant_come_first() -> None:
    relevance = {f"a{number}": number / 60 for number in range(60)}
    order = reading_order(library(), relevance, decide_about_sleep(range(LEAST_DECISIONS - 1)))
    assert not order.learned
    assert order.ids[:3] == ("a59", "a58", "a57")
    assert not set(order.ids) & set(decide_about_sleep(range(LEAST_DECISIONS - 1)))


def test_after_ten_decisions_abstracts_like_the_included_ones_come_first() -> None:
    order = reading_order(library(), EQUAL, decide_about_sleep(range(LEAST_DECISIONS)))
    assert order.learned
    assert all(int(key[1:]) % 2 == 0 for key in order.ids[:25])
    assert all(int(key[1:]) % 2 == 1 for key in order.ids[25:])


def test_relevance_still_orders_abstracts_that_the_decisions_cannot_tell_apart() -> None:
    relevance = EQUAL | {"a40": 0.9, "a44": 0.1}
    ids = reading_order(library(), relevance, decide_about_sleep(range(LEAST_DECISIONS))).ids
    assert ids[0] == "a40"
    assert ids.index("a44") >= 24


def test_only_inclusions_and_only_exclusions_keep_a_useful_order() -> None:
    relevance = {f"a{number}": 0.9 - 0.5 * (number % 2) for number in range(60)}
    included = {f"a{2 * number}": True for number in range(LEAST_DECISIONS)}
    ids = reading_order(library(), relevance, included).ids
    assert all(int(key[1:]) % 2 == 0 for key in ids[:20])
    excluded = {f"a{2 * number + 1}": False for number in range(LEAST_DECISIONS)}
    assert not reading_order(library(), relevance, excluded).learned


def test_texts_without_words_keep_the_order_of_relevance() -> None:
    empty = [Abstract(id=f"a{number}", text="the") for number in range(60)]
    ids = reading_order(empty, EQUAL | {"a50": 0.9}, decide_about_sleep(range(LEAST_DECISIONS))).ids
    assert ids[0] == "a50"


def test_decisions_on_other_abstracts_do_not_count() -> None:
    order = reading_order(library(), EQUAL, {"elsewhere": True})
    assert (order.included, order.excluded, len(order.ids)) == (0, 0, 60)


@pytest.mark.parametrize(
    ("labels", "unread", "least", "most"),
    [
        ([], 50, None, None),
        ([False] * 20, 50, None, None),
        ([True] * 10, 0, 1.0, 1.0),
        ([True] * 10 + [False] * 60, 100, 0.85, 0.95),
        ([True] * 10 + [False] * 60, 10, 0.98, 1.0),
        ([True, False] * 30, 60, 0.45, 0.55),
    ],
)
def test_expected_recall_follows_the_last_fifty_decisions(
    labels: list[bool], unread: int, least: float | None, most: float | None
) -> None:
    recall = expected_recall(labels, unread)
    if least is None or most is None:
        assert recall is None
    else:
        assert recall is not None
        assert least <= recall <= most


def test_stopping_is_not_proposed_early_or_without_an_inclusion() -> None:
    assert not stopping_proposal([True] * 9, 5)[0]
    assert not stopping_proposal([False] * 200, 5)[0]
    assert not stopping_proposal([True, False] * 50, 500)[0]
    assert "at least 10 abstracts" in stopping_proposal([True], 5)[1]


def test_a_long_run_without_inclusions_proposes_to_stop() -> None:
    stop, why = stopping_proposal([True] * 60 + [False] * 200, 100)
    assert stop
    assert "probability of 0.0" in why
    assert stopping_proposal([True] * 12, 0) == (True, "Every abstract is decided.")


@pytest.mark.parametrize(
    ("labels", "unread"),
    [
        ([True] * 40, 1),
        ([True] * 40, 2),
        ([True] * 100, 4),
        ([True] * 100, 5),
        ([True] * 100 + [False] * 20, 3),
        ([False] * 20 + [True] * 100, 5),
        ([True, False] * 50, 2),
    ],
)
def test_stopping_is_proposed_if_too_few_are_left_for_a_lower_recall(
    labels: list[bool], unread: int
) -> None:
    stop, why = stopping_proposal(labels, unread)
    assert stop
    assert "A recall under 95% is impossible" in why
    assert f"{unread} {'is' if unread == 1 else 'are'} left" in why


@pytest.mark.parametrize("included", range(1, 61))
def test_a_proposal_always_has_a_probability(included: int) -> None:
    for unread in range(1, 12):
        for excluded in (0, 10, 40):
            stop, why = stopping_proposal([True] * included + [False] * excluded, unread)
            assert "nan" not in why
            lowest_recall = included / (included + unread)
            if included + excluded >= LEAST_DECISIONS and lowest_recall >= 0.95:
                assert stop


@pytest.mark.parametrize(("strength", "share"), [(0.5, 0.4), (1.0, 0.2), (2.0, 0.3)])
def test_a_proposal_to_stop_misses_the_target_in_at_most_five_percent_of_reviews(
    strength: float, share: float
) -> None:
    """Forty reviews of 300 are read in an order that is better the greater ``strength`` is."""
    rng = np.random.default_rng(round(100 * strength + 1000 * share))
    missed = proposals = saved = 0
    for _ in range(40):
        relevant = rng.random(300) < share
        relevant[rng.integers(300)] = True
        order = np.argsort(-(strength * relevant + rng.normal(size=300)))
        labels = relevant[order].tolist()
        for read in range(LEAST_DECISIONS, 300, 20):
            if stopping_proposal(labels[:read], 300 - read)[0]:
                proposals += 1
                saved += 300 - read
                missed += sum(labels[:read]) < 0.95 * sum(labels)
                break
    assert missed <= 2
    assert proposals > 10, "a rule that never proposes to stop is useless"
    assert saved > 0

"""The halves of questions, and the figures of a judge against people."""

from __future__ import annotations

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as some
from sklearn.metrics import cohen_kappa_score

from masis.trust.alignment import held_out_half, judge_figures


@given(questions=some.lists(some.text(min_size=1), unique=True), seed=some.integers(0, 1000))
def test_half_of_the_questions_is_held_out_whatever_their_order(
    questions: list[str], seed: int
) -> None:
    held_out = held_out_half(questions, seed)
    assert len(held_out) == (len(questions) + 1) // 2
    assert set(held_out) <= set(questions)
    assert held_out == held_out_half(reversed(questions * 2), seed)


def test_another_seed_gives_other_halves() -> None:
    questions = [f"question {number}" for number in range(40)]
    halves = {held_out_half(questions, seed) for seed in range(10)}
    assert len(halves) == 10


def test_false_flags_are_of_right_answers_and_misses_of_faulty_ones() -> None:
    found = ["must_look"] * 5 + ["not_certified"] * 4 + ["nothing found"] * 3
    faulty = [True] * 3 + [False] * 2 + [True] * 1 + [False] * 3 + [True] * 2 + [False] * 1
    rows = pd.DataFrame(
        {"found": found, "faulty": faulty, "cluster": range(12), "question": list("abcdefghijkl")}
    )
    figures = judge_figures(rows)
    assert figures.confusion == {
        "must_look": (3, 2),
        "not_certified": (1, 3),
        "nothing found": (2, 1),
    }
    assert figures.false_flags.value == pytest.approx(2 / 6)
    assert figures.misses.value == pytest.approx(3 / 6)
    assert figures.agreement.value == pytest.approx(7 / 12)
    flagged = [verdict == "must_look" for verdict in found]
    assert figures.kappa.value == pytest.approx(cohen_kappa_score(flagged, faulty))


def test_figures_of_no_case_say_why_there_are_none() -> None:
    rows = pd.DataFrame({"found": [], "faulty": [], "cluster": [], "question": []})
    figures = judge_figures(rows.astype({"found": object, "faulty": object}))
    assert figures.cases == 0
    assert figures.agreement.value is None
    assert figures.agreement.why == "no decision"

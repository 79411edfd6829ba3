"""The random order: a draw by its seed, and no order that a person would recognise."""

from __future__ import annotations

import sqlite3
from itertools import pairwise

import pytest

from masis.store.audits.queue import shuffle


def drawn(seed: int, count: int) -> list[int]:
    order = shuffle(seed)
    connection = sqlite3.connect(":memory:")
    connection.execute("CREATE TABLE cases (seq INTEGER PRIMARY KEY)")
    connection.executemany("INSERT INTO cases VALUES (?)", [(number,) for number in range(1, count + 1)])
    return [row[0] for row in connection.execute(f"SELECT seq FROM cases ORDER BY {order.sorted}", order.values)]


@pytest.mark.parametrize("seed", range(8))
def test_neighbours_of_a_small_store_do_not_stay_at_even_steps(seed: int) -> None:
    found = drawn(seed, 60)
    assert sorted(found) == list(range(1, 61))
    steps = {later - earlier for earlier, later in pairwise(found)}
    assert len(steps) > 30


def test_the_same_seed_draws_the_same_and_another_one_another() -> None:
    assert drawn(3, 200) == drawn(3, 200)
    assert drawn(3, 200) != drawn(4, 200)

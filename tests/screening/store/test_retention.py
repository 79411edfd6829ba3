"""What retention removes of screenings, and what outlives them."""

from __future__ import annotations

import pytest

from masis.errors import Removed
from masis.schema.screening import Override, ScreeningDecision
from masis.screening.store import ScreeningStore
from masis.store import Store
from tests.screening.scripted import STRONG, grade_of
from tests.screening.store.test_screenings import abstracts, store_screening
from tests.store.test_retention import ALL, NEW, OLD, RULE


def a_screening(store: Store, screening_id: str, *, at: str = OLD) -> None:
    store_screening(store, abstracts(2, 2), screening_id)
    store.database.execute("UPDATE jobs SET ended_at = ? WHERE id = ?", [at, screening_id])


@pytest.fixture
def screenings(store: Store) -> Store:
    """Three screenings, one of them new, one with a person's word on it; and a grade remembered
    long ago.
    """
    a_screening(store, "old")
    a_screening(store, "new", at=NEW)
    a_screening(store, "with a word")
    word = Override(
        abstract_id="a0", field="recommendation", value="discard", reason="r", reviewer="Ada", at=""
    )
    store.screening_log.append(
        ScreeningDecision(
            kind="override", reviewer="Ada", screening_id="with a word", override=word, reason="r"
        )
    )
    ScreeningStore(store).remembered_grades.store("k", grade_of("a0", STRONG))
    return store


def test_screenings_without_human_entries_are_purged(screenings: Store) -> None:
    screenings.database.execute("UPDATE remembered_grades SET at = ?", [OLD])
    plan = screenings.retention.plan(RULE)
    assert [(candidate.kind, candidate.id) for candidate in plan.goes] == [
        ("screening", "old"),
        ("remembered_grades", ""),
    ]
    assert plan.kept == {"decided": 1}
    made = screenings.retention.remove(RULE, by="Ada", how="command")
    assert (made.screenings, made.parts, made.bytes) == (1, plan.parts, plan.bytes)
    assert ScreeningStore(screenings).remembered_grades.get("k") is None
    summary = ScreeningStore(screenings).screenings.summary("old")
    assert (summary.question, summary.removed_at is not None, summary.abstracts) == (
        "Does it work?",
        True,
        0,
    )
    assert summary.outcome is not None
    for ask in (
        ScreeningStore(screenings).screenings.get,
        ScreeningStore(screenings).screenings.progress,
        ScreeningStore(screenings).screenings.resume,
    ):
        with pytest.raises(Removed, match="Screen the question again"):
            ask("old")
    assert ScreeningStore(screenings).screenings.get("new").grades
    assert ScreeningStore(screenings).screenings.get("with a word").grades
    check = screenings.check()
    assert check.ok, check.problems


def test_human_entries_and_memory_outlive_a_screening(screenings: Store) -> None:
    before = ScreeningStore(screenings).acceptances.history()
    assert screenings.retention.remove(ALL, by="Ada", how="command").screenings == 2
    assert ScreeningStore(screenings).acceptances.history() == before
    check = screenings.check()
    assert check.ok, check.problems
    assert (check.screening_log.length, check.screening_log.intact) == (1, True)
    assert len(screenings.screening_log.overrides("with a word")) == 1

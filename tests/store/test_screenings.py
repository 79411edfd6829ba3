"""Screenings: kept round by round, taken up where they stopped, never overwritten; what people say is a chain."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from pathlib import Path

import pytest
from pydantic import ValidationError

from masis.errors import StaleVersion, StoreError, UnguardedLog, UnknownRecord
from masis.observers.observation import run_to_completion
from masis.schema.screening import Abstract, Acceptance, Override, OverrideField, Screening, ScreeningDecision
from masis.screening.grading.cache import CachingGrader, GradeCache
from masis.screening.rounds import round_loop
from masis.screening.rounds.round_loop import FinishedRound
from masis.settings import Settings
from masis.store import Owner, ScreeningLogFilter, Store
from masis.store.core.connections import connect
from tests.screening.scripted import WEAK, ScriptedGrader
from tests.store.conftest import ticking


def grader_of(found: Sequence[Abstract]) -> ScriptedGrader:
    return ScriptedGrader({each.id: WEAK for each in found if each.title == "bad"})


def abstracts(good: int, bad: int) -> tuple[Abstract, ...]:
    titles = ["good"] * good + ["bad"] * bad
    return tuple(Abstract(id=f"a{number}", title=title, text="Words.") for number, title in enumerate(titles))


class OtherQueriesFindOthers:
    """The question finds the first abstracts of a list, two of them at a time; every other query those behind them."""

    def __init__(self, found: Sequence[Abstract], name: str) -> None:
        self.name = name
        self._found = tuple(found)

    def search(self, query: str, limit: int, offset: int = 0) -> tuple[Abstract, ...]:
        first = 0 if query == "Does it work?" else 2
        return self._found[first + offset : first + offset + limit]


def screened(store: Store, found: Sequence[Abstract], screening_id: str = "s1", rounds_at_most: int = 2) -> Screening:
    """A screening kept in the store as it goes, as the use case does it."""
    settings = Settings(screening_retrieve=2, screening_max_rounds=rounds_at_most)
    store.screenings.start(
        screening_id, question="Does it work?", sources=["given"], settings=settings.model_dump(mode="json")
    )
    work = round_loop.screen(
        "Does it work?",
        [OtherQueriesFindOthers(found, "given")],
        grader_of(found),
        settings,
        screening_id=screening_id,
        keep=lambda finished: store.screenings.keep(screening_id, finished),
        now=ticking(),
    )
    result = run_to_completion(work, lambda event: (store.screenings.append_event(event), None)[1])
    store.screenings.finish(result)
    return result


def says(
    value: float | bool | str | None,
    abstract_id: str = "a0",
    name: OverrideField = "recommendation",
    *,
    screening_id: str = "s1",
    token: str | None = None,
    reviewer: str = "Ada",
) -> ScreeningDecision:
    override = Override(abstract_id=abstract_id, field=name, value=value, reason="I read it.", reviewer=reviewer, at="")
    return ScreeningDecision(
        reviewer=reviewer, screening_id=screening_id, override=override, reason="I read it.", token=token
    )


def test_a_screening_comes_back_as_it_was_with_its_abstracts_and_events(store: Store) -> None:
    found = abstracts(1, 3)
    result = screened(store, found)
    assert store.screenings.get("s1") == result
    assert tuple(store.screenings.abstracts("s1").values()) == found
    kinds = [event.kind for event in store.screenings.events("s1")]
    assert (kinds[0], kinds[-1]) == ("screening_started", "screening_finished")
    summary = store.screenings.summary("s1")
    assert (summary.state, summary.outcome, summary.rounds, summary.abstracts) == (
        "finished",
        "evidence_insufficient",
        2,
        4,
    )
    assert [each.id for each in store.screenings.newest()] == ["s1"]
    assert store.check().ok


def test_progress_shows_while_it_runs(store: Store) -> None:
    store.screenings.start("s1", question="Q", sources=["given"], settings={})
    assert store.screenings.progress("s1").progress.finished == ()
    with pytest.raises(StoreError, match="only its progress"):
        store.screenings.get("s1")
    assert store.screenings.in_state("running") == ("s1",)
    with pytest.raises(StoreError, match="started before"):
        store.screenings.start("s1", question="Q", sources=[], settings={})
    with pytest.raises(UnknownRecord, match="no screening 's2'"):
        store.screenings.progress("s2")


def test_a_screening_under_way_elsewhere_is_not_taken_up_and_a_lost_one_is_marked(path: Path) -> None:
    with Store.open(path) as store:
        store.screenings.start("here", question="Q", sources=[], settings={})
        store.screenings.start("dead", question="Q", sources=[], settings={}, owner=Owner(_host(), 2**22 + 1, "never"))
        with pytest.raises(StoreError, match="under way in process"):
            store.screenings.resume("here")
    with Store.open(path) as store:
        assert store.screenings.in_state("interrupted") == ("dead",)
        assert "ended before the screening did" in store.screenings.summary("dead").why
        assert store.screenings.in_state("running") == ("here",)


def _host() -> str:
    import socket

    return socket.gethostname()


def test_cancelling_is_asked_for_and_seen(store: Store) -> None:
    store.screenings.start("s1", question="Q", sources=[], settings={})
    assert not store.screenings.cancel_requested("s1")
    store.screenings.request_cancel("s1")
    assert store.screenings.cancel_requested("s1")


def test_what_the_machine_said_is_never_overwritten(store: Store) -> None:
    result = screened(store, abstracts(1, 1))
    store.screenings.finish(result)
    with pytest.raises(StoreError, match="another result"):
        store.screenings.finish(result.model_copy(update={"outcome": "error"}))
    with pytest.raises(StoreError, match="never overwritten"):
        store.screenings.keep("s1", FinishedRound(result.rounds[0], (), ()))
    store.screenings.abandon("s1", "no")
    assert store.screenings.get("s1") == result


def test_a_screening_computed_elsewhere_is_kept_with_its_abstracts(store: Store) -> None:
    other = Store.open(store.path.parent / "other.db", now=ticking())
    result = screened(other, abstracts(2, 0))
    other.close()
    with pytest.raises(StoreError, match="hand it over"):
        store.screenings.finish(result)
    with pytest.raises(UnknownRecord):
        store.screenings.summary("s1")
    store.screenings.finish(result, abstracts(2, 0))
    assert store.screenings.get("s1") == result
    assert store.screenings.progress("s1").progress.finished[0].grades == result.grades


def test_an_entry_carries_digests_of_screening_abstract_and_grade(store: Store) -> None:
    screened(store, abstracts(2, 1))
    about = store.screening_log.append(says("discard")).decision
    assert about is not None
    assert about.about is not None
    assert all(len(each or "") == 64 for each in (about.about.screening, about.about.abstract, about.about.grade))
    other = store.screening_log.append(says("discard", "a1")).decision
    assert other is not None
    assert other.about is not None
    assert other.about.screening == about.about.screening
    assert other.about.abstract != about.about.abstract
    found = store.screening_log.check_subjects()
    assert (found.checked, found.broken) == (2, ())


def test_an_override_of_nothing_that_was_graded_is_refused(store: Store) -> None:
    store.screenings.start("s1", question="Q", sources=[], settings={})
    with pytest.raises(StoreError, match="is running: decide about it when it is finished"):
        store.screening_log.append(says("keep"))
    screened(store, abstracts(0, 2), "s2")
    with pytest.raises(UnknownRecord, match="no grade of 'zz'"):
        store.screening_log.append(says("keep", "zz", screening_id="s2"))
    with pytest.raises(UnknownRecord, match="no screening 's3'"):
        store.screening_log.append(says("keep", screening_id="s3"))
    assert store.screening_log.head().length == 0


def test_a_repeated_submit_is_one_entry_and_a_stale_view_is_reported(store: Store) -> None:
    screened(store, abstracts(0, 2))
    version = store.screenings.summary("s1").version
    first = store.screening_log.append(says("keep", token="t1"), seen_version=version)
    assert store.screening_log.append(says("keep", token="t1"), seen_version=version) == first
    with pytest.raises(StoreError, match="something else"):
        store.screening_log.append(says("keep", "a1", token="t1"))
    with pytest.raises(StaleVersion):
        store.screening_log.append(says("discard"), seen_version=version)
    assert store.screening_log.head().length == 1


@pytest.mark.parametrize(
    "statement",
    [
        "DELETE FROM screening_log",
        "INSERT OR REPLACE INTO screening_log SELECT * FROM screening_log WHERE seq = 1",
        "UPDATE screening_log_payloads SET payload = '{}'",
    ],
)
def test_the_screening_log_only_grows(store: Store, statement: str) -> None:
    screened(store, abstracts(0, 2))
    store.screening_log.append(says("keep"))
    with pytest.raises(sqlite3.IntegrityError, match=r"only grows|never|only by"):
        store.database.execute(statement)
    assert store.screening_log.verify().intact


@pytest.mark.parametrize(
    ("statement", "told"),
    [
        (
            "UPDATE screening_log_payloads SET payload = replace(payload, 'keep', 'discard') WHERE entry_seq = 1",
            "altered",
        ),
        ("UPDATE screening_log_payloads SET reviewer = 'Eve' WHERE entry_seq = 2", "the reviewer 'Eve'"),
        ("UPDATE screening_log SET abstract_id = 'a1' WHERE seq = 1", "has abstract_id 'a1'"),
        ("DELETE FROM screening_log WHERE seq = 1", "are missing"),
    ],
)
def test_whoever_alters_an_entry_is_found(path: Path, statement: str, told: str) -> None:
    with Store.open(path, now=ticking()) as store:
        screened(store, abstracts(0, 2))
        store.screening_log.append(says("keep"))
        store.screening_log.append(says("keep", "a1"))
        assert store.check().ok
    connection = connect(path)
    for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'trigger'").fetchall():
        if name.startswith("screening_log"):
            connection.execute(f"DROP TRIGGER {name}")
    connection.execute("PRAGMA foreign_keys = OFF")
    connection.execute(statement)
    connection.close()
    with pytest.raises(UnguardedLog, match="the screening log has lost its guards"):
        Store.open(path)
    with Store.open(path, unguarded="open") as store:
        found = store.check()
        assert not found.ok
        assert any("lost its guards" in fault for fault in found.screening_log.broken)
        assert any(told in fault for fault in found.screening_log.broken), found.screening_log.broken
    with Store.open(path, unguarded="rearm") as store:
        assert not any("lost its guards" in fault for fault in store.screening_log.verify().broken)


def test_the_log_is_read_by_page_and_filter(store: Store) -> None:
    screened(store, abstracts(0, 2))
    for number, value in enumerate(("keep", "discard", "needs_more")):
        store.screening_log.append(says(value, f"a{number % 2}", reviewer=("Ada", "Bo")[number % 2]))
    store.acceptances.reset(by="Ada", reason="New rubric.")
    page = store.screening_log.entries(ScreeningLogFilter(screening_id="s1", size=2))
    assert (page.total, [each.seq for each in page.rows]) == (3, [3, 2])
    assert store.screening_log.entries(ScreeningLogFilter(kinds=("memory_reset",))).total == 1
    assert store.screening_log.entries(ScreeningLogFilter(reviewers=("Bo",))).total == 1
    assert store.screening_log.entries(ScreeningLogFilter(abstract_id="a0")).total == 2
    assert store.screening_log.entries().total == 4


def test_entries_that_say_nothing_sensible_can_not_be_made() -> None:
    with pytest.raises(ValidationError, match="says what is overridden"):
        ScreeningDecision(reviewer="Ada", screening_id="s1")
    with pytest.raises(ValidationError, match="names its screening"):
        ScreeningDecision(kind="handed_over", reviewer="Ada", screening_id=None)
    with pytest.raises(ValidationError, match="needs a reason"):
        ScreeningDecision(kind="memory_reset", reviewer="Ada", screening_id=None)


def accepted(screening_id: str, quality: float = 0.8) -> Acceptance:
    return Acceptance(
        study_type="human_rct_drug_intervention",
        design="randomised_trial",
        quality=quality,
        required=0.7,
        round=0,
        screening_id=screening_id,
        at="2026-01-01T00:00:00.000Z",
    )


@pytest.mark.spec("AESOP-MEMORY")
def test_the_memory_survives_a_restart_and_a_reset_forgets_without_deleting(path: Path) -> None:
    with Store.open(path) as store:
        screened(store, abstracts(2, 0))
        screened(store, abstracts(2, 0), "s2")
        memory = store.acceptances
        memory.replace("s1", [accepted("s1"), accepted("s1", 0.9)])
        memory.replace("s2", [accepted("s2")])
    with Store.open(path) as store:
        assert [each.quality for each in store.acceptances.accepted()] == [0.8, 0.9, 0.8]
        entry = store.acceptances.reset(by="Ada", reason="The rubric has changed.")
        assert entry.decision is not None
        assert entry.decision.extra == {"forgotten": 3}
        assert store.acceptances.accepted() == ()
        assert len(store.acceptances.history()) == 3
        screened(store, abstracts(2, 0), "s3")
        store.acceptances.replace("s3", [accepted("s3")])
        store.acceptances.replace("s1", [accepted("s1")])
        assert [each.screening_id for each in store.acceptances.accepted()] == ["s3"]
        assert store.screening_log.verify().intact


def test_grades_are_remembered_across_restarts(path: Path) -> None:
    found = abstracts(1, 1)
    grader = grader_of(found)
    for _ in range(2):
        with Store.open(path) as store:
            cache: GradeCache = store.remembered_grades
            assert len(CachingGrader(grader, cache).grade("Q", found)) == 2
    assert grader.asked == ["a0", "a1"]
    with Store.open(path) as store:
        assert store.remembered_grades.clear() == 2

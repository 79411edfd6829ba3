"""The rounds (retrieve, grade, decide, retrieve again) follow the specification."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import pytest

from masis.observers.observation import run_to_completion
from masis.schema.audit import JudgedBy
from masis.schema.screening import Abstract, Grade, Screening, ScreeningEvent
from masis.screening.grading import rubric
from masis.screening.grading.grader import CachingGrader, Grader, key_of
from masis.screening.rounds import ruling
from masis.screening.rounds.overrides import apply_review
from masis.screening.rounds.queries import NO_FURTHER_QUERY
from masis.screening.rounds.round_loop import FinishedRound, ResumePoint, ScreeningSteps, screen
from masis.screening.sources.retrievers import Retriever
from masis.settings import Settings
from tests.screening.scripted import (
    BORDERLINE,
    OFF_TOPIC,
    SERIES,
    STRONG,
    UNREADABLE,
    WEAK,
    BrokenSource,
    ScriptedGrader,
    ScriptedOpinion,
    ScriptedSource,
    abstracts,
    cancelled_from,
)

QUESTION = "Does aspirin help against headache?"
FIRST_PAGE = ("a", "b", "c", "d", "e")


def run_screening(
    grader: Grader, *sources: Retriever, settings: Settings | None = None, **options: object
) -> tuple[Screening, list[ScreeningEvent]]:
    events: list[ScreeningEvent] = []
    steps = screen(QUESTION, sources, grader, settings or Settings(), screening_id="s", **options)  # type: ignore[arg-type]
    return run_to_completion(steps, events.append), events


@pytest.mark.spec("AESOP-CONVERGES", "AESOP-ROUNDS")
def test_strong_evidence_converges_in_the_first_round() -> None:
    screening, _ = run_screening(ScriptedGrader({}), ScriptedSource(abstracts(*FIRST_PAGE)))
    assert (screening.outcome, screening.decision, len(screening.rounds)) == (
        "sufficient",
        "sufficient",
        1,
    )
    assert screening.kept == FIRST_PAGE


@pytest.mark.spec("AESOP-WEAK-REJECTED", "AESOP-ROUNDS")
def test_weak_studies_are_rejected_and_the_outcome_at_the_round_limit_is_insufficient() -> None:
    source = ScriptedSource(*(abstracts(*page_ids(n)) for n in range(9)))
    screening, _ = run_screening(
        ScriptedGrader({}, default=WEAK), source, settings=Settings(screening_retrieve=5)
    )
    assert (screening.outcome, len(screening.rounds), screening.kept) == (
        "evidence_insufficient",
        4,
        (),
    )
    assert "limit of 4 rounds" in " ".join(screening.reasons)
    assert screening.flow.excluded[0].rule == "weak_method"


def page_ids(number: int) -> tuple[str, ...]:
    return tuple(f"{number}-{letter}" for letter in FIRST_PAGE)


@pytest.mark.spec("AESOP-BORDERLINE")
def test_borderline_studies_trigger_new_queries_for_the_gaps() -> None:
    opinions = dict.fromkeys(FIRST_PAGE, BORDERLINE)
    source = ScriptedSource(abstracts(*FIRST_PAGE), abstracts("f", "g", "h", "i", "j"))
    screening, _ = run_screening(ScriptedGrader(opinions), source)
    first, second = screening.rounds
    assert first.ruling.decision == "retrieve_more"
    assert first.missing
    assert {query.aims_at for query in second.queries} <= set(first.missing)
    assert all(query.why for query in second.queries)
    assert second.queries[0].text != QUESTION
    assert screening.outcome == "sufficient"


@pytest.mark.spec("AESOP-DECAY")
def test_the_threshold_falls_by_round_while_the_consensus_holds() -> None:
    # A quality of 0.61 is enough for 0.60 but not for 0.65.
    medium_quality = ScriptedOpinion(0.6, 0.62, "cohort_study", True)
    source = ScriptedSource(*(abstracts(*page_ids(n)) for n in range(4)))
    small_pages = Settings(screening_retrieve=5)
    screening, _ = run_screening(
        ScriptedGrader({}, default=medium_quality),
        source,
        settings=small_pages,
        thresholds=ruling.DEFAULT,
    )
    assert [screening_round.ruling.required_average for screening_round in screening.rounds] == [
        0.70,
        0.65,
        0.60,
    ]
    assert [screening_round.ruling.consensus for screening_round in screening.rounds] == [
        "sufficient"
    ] * 3
    assert screening.outcome == "sufficient"


@pytest.mark.spec("AESOP-GRADING")
def test_no_abstract_is_graded_twice() -> None:
    grader = ScriptedGrader(dict.fromkeys(FIRST_PAGE, BORDERLINE), default=BORDERLINE)
    source = ScriptedSource(
        abstracts(*FIRST_PAGE), abstracts("a", "b", "f"), abstracts("f", "a"), abstracts("g", "b")
    )
    screening, _ = run_screening(grader, source)
    assert sorted(grader.graded_ids) == sorted(set(grader.graded_ids))
    assert {"a", "b", "f"} <= set(screening.rounds[1].retrieved)
    assert set(screening.rounds[1].new) == set(screening.rounds[1].retrieved) - set(FIRST_PAGE)


@pytest.mark.spec("AESOP-CONSENSUS")
def test_every_relevant_abstract_so_far_votes_in_each_round() -> None:
    opinions = {"a": STRONG, "b": STRONG, "c": WEAK, "d": WEAK, "e": WEAK}
    source = ScriptedSource(abstracts(*FIRST_PAGE), abstracts("a", "b", "f"), abstracts("g", "h"))
    screening, _ = run_screening(ScriptedGrader(opinions), source)
    assert [
        (screening_round.ruling.tally.keep, screening_round.ruling.tally.votes)
        for screening_round in screening.rounds
    ] == [
        (2, 5),
        (5, 8),
    ]
    assert (screening.outcome, screening.kept) == ("sufficient", ("a", "b", "g", "h", "f"))


def test_a_round_limits_each_source_and_alternates_between_them() -> None:
    first, second = (
        ScriptedSource(abstracts(*FIRST_PAGE)),
        ScriptedSource(abstracts("v", "w", "x", "y", "z")),
    )
    screening, _ = run_screening(
        ScriptedGrader({}), first, second, settings=Settings(screening_retrieve=3)
    )
    assert screening.rounds[0].retrieved == ("a", "v", "b", "w", "c", "x")
    assert screening.rounds[0].identified == 6


def test_the_same_record_from_two_sources_counts_as_a_duplicate() -> None:
    first = Abstract(id="pmid-7", title="Aspirin for headache in adults", text="A trial.", pmid="7")
    second = Abstract(
        id="corpus-1", title="ASPIRIN FOR HEADACHE IN ADULTS.", text="A trial.", pmid="7"
    )
    grader = ScriptedGrader({})
    screening, _ = run_screening(grader, ScriptedSource([first]), ScriptedSource([second]))
    assert grader.graded_ids == ["pmid-7"]
    assert (screening.flow.identified, screening.flow.duplicates, screening.flow.screened) == (
        2,
        1,
        1,
    )


@pytest.mark.spec("AESOP-FLOW")
def test_the_flow_adds_up() -> None:
    opinions = {"a": STRONG, "b": WEAK, "c": OFF_TOPIC, "d": BORDERLINE, "e": UNREADABLE}
    screening, _ = run_screening(
        ScriptedGrader(opinions, default=OFF_TOPIC),
        ScriptedSource(abstracts(*FIRST_PAGE), abstracts("a", "x")),
    )
    flow = screening.flow
    # A later query finds "a" again, but it counts once.
    assert flow.identified == flow.duplicates + flow.screened == 6
    assert (
        flow.screened
        == sum(exclusion.count for exclusion in flow.excluded) + flow.undecided + flow.kept
        == 6
    )
    assert {exclusion.rule: exclusion.count for exclusion in flow.excluded} == {
        "off_topic": 2,
        "weak_method": 1,
    }
    assert flow.unscored == 1


def test_a_failing_source_leaves_a_warning_and_the_others_continue() -> None:
    screening, events = run_screening(
        ScriptedGrader({}), BrokenSource(), ScriptedSource(abstracts(*FIRST_PAGE))
    )
    assert screening.outcome == "sufficient"
    assert any("it did not answer" in warning for warning in screening.warnings)
    assert any(event.kind == "warning" for event in events)


def test_a_screening_with_only_failing_sources_ends_as_an_error() -> None:
    screening, _ = run_screening(ScriptedGrader({}), BrokenSource())
    assert (screening.outcome, screening.rounds) == ("error", ())
    assert "None of the sources could be searched." in screening.reasons


@pytest.mark.spec("AESOP-ROUNDS")
def test_a_screening_ends_if_no_further_query_would_help() -> None:
    source = ScriptedSource(abstracts(*FIRST_PAGE))
    screening, _ = run_screening(
        ScriptedGrader({}, default=SERIES), source, settings=Settings(screening_max_rounds=8)
    )
    assert screening.outcome == "evidence_insufficient"
    assert len(screening.rounds) < 8
    assert NO_FURTHER_QUERY in screening.reasons
    assert len(set(source.queries)) == len(source.queries)
    assert screening.reasons[1].startswith("Of 5 screened abstracts, 5 are relevant: 0 kept")


def test_the_reasons_are_those_of_the_last_round_with_relevant_results() -> None:
    source = ScriptedSource(abstracts(*FIRST_PAGE))  # every later search returns nothing
    screening, _ = run_screening(ScriptedGrader({"a": STRONG}, default=SERIES), source)
    assert not screening.rounds[-1].retrieved
    assert "1 of 5 keep" in screening.reasons[0]


@pytest.mark.spec("AESOP-DECAY")
def test_a_round_without_relevant_results_applies_the_lower_threshold() -> None:
    # A quality of 0.61 is enough for the third round's 0.60.
    medium_quality = ScriptedOpinion(0.6, 0.62, "cohort_study", True)
    source = ScriptedSource(abstracts(*FIRST_PAGE))  # every later search returns nothing
    small_pages = Settings(screening_retrieve=5)
    screening, _ = run_screening(
        ScriptedGrader({}, default=medium_quality),
        source,
        settings=small_pages,
        thresholds=ruling.DEFAULT,
    )
    assert [screening_round.ruling.required_average for screening_round in screening.rounds] == [
        0.70,
        0.65,
        0.60,
    ]
    assert [screening_round.ruling.tally.keep for screening_round in screening.rounds] == [5, 5, 5]
    assert screening.outcome == "sufficient"
    assert apply_review(screening, []).rounds == screening.rounds


def test_an_ungraded_abstract_needs_more_and_is_never_kept() -> None:
    class SkipsFirstAbstract(ScriptedGrader):
        def grade(self, question: str, abstracts: Sequence[Abstract]) -> tuple:  # type: ignore[type-arg]
            return super().grade(question, abstracts)[1:]

    screening, _ = run_screening(SkipsFirstAbstract({}), ScriptedSource(abstracts(*FIRST_PAGE)))
    ungraded = screening.grade("a")
    assert ungraded.unscored is not None
    assert (ungraded.recommendation, ungraded.relevance_score) == ("needs_more", None)


def test_a_screening_can_be_cancelled_and_finished_rounds_are_stored() -> None:
    source = ScriptedSource(abstracts(*FIRST_PAGE), abstracts(*page_ids(1)))
    screening, events = run_screening(
        ScriptedGrader({}, default=BORDERLINE), source, cancelled=cancelled_from(5)
    )
    assert screening.outcome == "cancelled"
    assert [screening_round.number for screening_round in screening.rounds] == [0]
    assert {grade.abstract_id for grade in screening.grades} == set(FIRST_PAGE)
    assert events[-1].kind == "screening_finished"


def test_an_interrupted_screening_resumes_without_regrading() -> None:
    finished: list[FinishedRound] = []
    grader = ScriptedGrader(dict.fromkeys(FIRST_PAGE, BORDERLINE))
    all_pages = ScriptedSource(abstracts(*FIRST_PAGE), abstracts("a", "f", "g", "h"))
    run_screening(grader, all_pages, cancelled=cancelled_from(5), keep=finished.append)
    second_grader = ScriptedGrader(dict.fromkeys(FIRST_PAGE, BORDERLINE))
    remaining_pages = ScriptedSource(abstracts("a", "f", "g", "h"))
    screening, _ = run_screening(
        second_grader, remaining_pages, progress=ResumePoint(tuple(finished), events=9)
    )
    assert second_grader.graded_ids == ["f", "g", "h"]
    assert [screening_round.number for screening_round in screening.rounds] == [0, 1]
    uninterrupted, _ = run_screening(
        ScriptedGrader(dict.fromkeys(FIRST_PAGE, BORDERLINE)),
        ScriptedSource(abstracts(*FIRST_PAGE), abstracts("a", "f", "g", "h")),
    )
    assert (screening.rounds, screening.kept, screening.outcome) == (
        uninterrupted.rounds,
        uninterrupted.kept,
        uninterrupted.outcome,
    )


def test_events_are_numbered_and_report_progress() -> None:
    _, events = run_screening(
        ScriptedGrader({}), ScriptedSource(abstracts(*page_ids(1), *page_ids(2), *page_ids(3)))
    )
    assert [event.seq for event in events] == list(range(1, len(events) + 1))
    assert [event.kind for event in events] == [
        "screening_started",
        "round_started",
        "searched",
        "graded",
        "graded",
        "round_finished",
        "screening_finished",
    ]
    assert [event.data["done"] for event in events if event.kind == "graded"] == [10, 15]


@pytest.mark.spec("AESOP-ASYNC")
def test_two_concurrent_screenings_dont_interfere() -> None:
    def steps_of(default: ScriptedOpinion, screening_id: str) -> ScreeningSteps:
        source = ScriptedSource(*(abstracts(*page_ids(n)) for n in range(4)))
        grader = ScriptedGrader({}, default=default)
        return screen(
            QUESTION, [source], grader, Settings(), screening_id=screening_id, now=lambda: "now"
        )

    async def run_both() -> tuple[Screening, Screening]:
        return await asyncio.gather(
            *(
                asyncio.to_thread(run_to_completion, steps)
                for steps in (steps_of(BORDERLINE, "one"), steps_of(STRONG, "two"))
            )
        )

    first, second = asyncio.run(run_both())
    assert first == run_to_completion(steps_of(BORDERLINE, "one"))
    assert second == run_to_completion(steps_of(STRONG, "two"))


def test_the_thresholds_and_versions_are_recorded() -> None:
    settings = Settings(
        screening_required_first=0.8, screening_max_rounds=2, screening_pubmed_email="a@example.org"
    )
    screening, _ = run_screening(
        ScriptedGrader({}), ScriptedSource(abstracts(*FIRST_PAGE)), settings=settings
    )
    assert screening.thresholds.required_average == (0.8, 0.75)
    assert screening.versions.rubric
    assert screening.settings["screening_max_rounds"] == 2
    assert "a@example.org" not in screening.model_dump_json()


JUDGE = JudgedBy(model="m", version="1")


class MemoryGradeCache(dict[str, Grade]):
    """A cache that lasts for one test."""

    store = dict.__setitem__


@pytest.mark.spec("AESOP-GRADING")
def test_a_graded_abstract_is_read_from_the_cache() -> None:
    grader = ScriptedGrader({})
    caching = CachingGrader(grader, MemoryGradeCache())
    first = caching.grade("aspirin", abstracts("a", "b"))
    second = caching.grade("aspirin", abstracts("b", "c", "a"))
    assert grader.graded_ids == ["a", "b", "c"]
    assert [grade.abstract_id for grade in second] == ["b", "c", "a"]
    assert second[0] == first[1]


def test_an_ungraded_abstract_is_retried() -> None:
    grader = ScriptedGrader({"a": UNREADABLE})
    caching = CachingGrader(grader, MemoryGradeCache())
    caching.grade("aspirin", abstracts("a"))
    grader.opinions = {"a": STRONG}
    assert caching.grade("aspirin", abstracts("a"))[0].recommendation == "keep"
    assert grader.graded_ids == ["a", "a"]


def test_the_cache_key_covers_question_text_grader_and_rubric(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    abstract = Abstract(id="a", title="T", text="X")
    keys = {
        key_of("q", abstract, JUDGE),
        key_of("r", abstract, JUDGE),
        key_of("q", abstract.model_copy(update={"text": "Y"}), JUDGE),
        key_of("q", abstract.model_copy(update={"title": "TX", "text": ""}), JUDGE),
        key_of("q", abstract, JudgedBy(model="m", version="2")),
        key_of("q", abstract, JudgedBy(model="n", version="1")),
    }
    monkeypatch.setattr(rubric, "VERSION", "another")
    assert len({*keys, key_of("q", abstract, JUDGE)}) == 7

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
    AWAY,
    BORDERLINE,
    SERIES,
    STRONG,
    UNREADABLE,
    WEAK,
    BrokenSource,
    Said,
    ScriptedGrader,
    ScriptedSource,
    abstracts,
    counting,
)

QUESTION = "Does aspirin help against headache?"
ONE = ("a", "b", "c", "d", "e")


def screened(
    grader: Grader, *sources: Retriever, settings: Settings | None = None, **more: object
) -> tuple[Screening, list[ScreeningEvent]]:
    events: list[ScreeningEvent] = []
    work = screen(QUESTION, sources, grader, settings or Settings(), screening_id="s", **more)  # type: ignore[arg-type]
    return run_to_completion(work, events.append), events


@pytest.mark.spec("AESOP-CONVERGES", "AESOP-ROUNDS")
def test_strong_evidence_converges_in_the_first_round() -> None:
    found, _ = screened(ScriptedGrader({}), ScriptedSource(abstracts(*ONE)))
    assert (found.outcome, found.decision, len(found.rounds)) == ("sufficient", "sufficient", 1)
    assert found.kept == ONE


@pytest.mark.spec("AESOP-WEAK-REJECTED", "AESOP-ROUNDS")
def test_weak_studies_are_rejected_and_the_round_limit_ends_as_insufficient() -> None:
    source = ScriptedSource(*(abstracts(*_ids(n)) for n in range(9)))
    found, _ = screened(
        ScriptedGrader({}, default=WEAK), source, settings=Settings(screening_retrieve=5)
    )
    assert (found.outcome, len(found.rounds), found.kept) == ("evidence_insufficient", 4, ())
    assert "limit of 4 rounds" in " ".join(found.reasons)
    assert found.flow.excluded[0].rule == "weak_method"


def _ids(number: int) -> tuple[str, ...]:
    return tuple(f"{number}-{each}" for each in ONE)


@pytest.mark.spec("AESOP-BORDERLINE")
def test_borderline_studies_trigger_new_queries_for_the_gaps() -> None:
    says = dict.fromkeys(ONE, BORDERLINE)
    source = ScriptedSource(abstracts(*ONE), abstracts("f", "g", "h", "i", "j"))
    found, _ = screened(ScriptedGrader(says), source)
    first, second = found.rounds
    assert first.ruling.decision == "retrieve_more"
    assert first.missing
    assert {query.aims_at for query in second.queries} <= set(first.missing)
    assert all(query.why for query in second.queries)
    assert second.queries[0].text != QUESTION
    assert found.outcome == "sufficient"


@pytest.mark.spec("AESOP-DECAY")
def test_the_threshold_falls_by_round_while_the_consensus_holds() -> None:
    # a quality of 0.61 is enough for 0.60 but not for 0.65
    middling = Said(0.6, 0.62, "cohort_study", True)
    source = ScriptedSource(*(abstracts(*_ids(n)) for n in range(4)))
    small = Settings(screening_retrieve=5)
    found, _ = screened(
        ScriptedGrader({}, default=middling), source, settings=small, thresholds=ruling.DEFAULT
    )
    assert [each.ruling.required_average for each in found.rounds] == [0.70, 0.65, 0.60]
    assert [each.ruling.consensus for each in found.rounds] == ["sufficient"] * 3
    assert found.outcome == "sufficient"


@pytest.mark.spec("AESOP-GRADING")
def test_no_abstract_is_graded_twice() -> None:
    grader = ScriptedGrader(dict.fromkeys(ONE, BORDERLINE), default=BORDERLINE)
    source = ScriptedSource(
        abstracts(*ONE), abstracts("a", "b", "f"), abstracts("f", "a"), abstracts("g", "b")
    )
    found, _ = screened(grader, source)
    assert sorted(grader.asked) == sorted(set(grader.asked))
    assert {"a", "b", "f"} <= set(found.rounds[1].retrieved)
    assert set(found.rounds[1].new) == set(found.rounds[1].retrieved) - set(ONE)


@pytest.mark.spec("AESOP-CONSENSUS")
def test_every_relevant_abstract_so_far_votes_in_each_round() -> None:
    says = {"a": STRONG, "b": STRONG, "c": WEAK, "d": WEAK, "e": WEAK}
    source = ScriptedSource(abstracts(*ONE), abstracts("a", "b", "f"), abstracts("g", "h"))
    found, _ = screened(ScriptedGrader(says), source)
    assert [(each.ruling.tally.keep, each.ruling.tally.votes) for each in found.rounds] == [
        (2, 5),
        (5, 8),
    ]
    assert (found.outcome, found.kept) == ("sufficient", ("a", "b", "g", "h", "f"))


def test_a_round_limits_each_source_and_alternates_between_them() -> None:
    one, two = ScriptedSource(abstracts(*ONE)), ScriptedSource(abstracts("v", "w", "x", "y", "z"))
    found, _ = screened(ScriptedGrader({}), one, two, settings=Settings(screening_retrieve=3))
    assert found.rounds[0].retrieved == ("a", "v", "b", "w", "c", "x")
    assert found.rounds[0].identified == 6


def test_the_same_record_from_two_sources_counts_as_a_duplicate() -> None:
    one = Abstract(id="pmid-7", title="Aspirin for headache in adults", text="A trial.", pmid="7")
    two = Abstract(
        id="corpus-1", title="ASPIRIN FOR HEADACHE IN ADULTS.", text="A trial.", pmid="7"
    )
    grader = ScriptedGrader({})
    found, _ = screened(grader, ScriptedSource([one]), ScriptedSource([two]))
    assert grader.asked == ["pmid-7"]
    assert (found.flow.identified, found.flow.duplicates, found.flow.screened) == (2, 1, 1)


@pytest.mark.spec("AESOP-FLOW")
def test_the_flow_adds_up() -> None:
    says = {"a": STRONG, "b": WEAK, "c": AWAY, "d": BORDERLINE, "e": UNREADABLE}
    found, _ = screened(
        ScriptedGrader(says, default=AWAY), ScriptedSource(abstracts(*ONE), abstracts("a", "x"))
    )
    flow = found.flow
    # "a" is found again by a later query but counts once
    assert flow.identified == flow.duplicates + flow.screened == 6
    assert (
        flow.screened == sum(each.count for each in flow.excluded) + flow.undecided + flow.kept == 6
    )
    assert {each.rule: each.count for each in flow.excluded} == {"off_topic": 2, "weak_method": 1}
    assert flow.unscored == 1


def test_a_failing_source_leaves_a_warning_and_the_others_continue() -> None:
    found, events = screened(ScriptedGrader({}), BrokenSource(), ScriptedSource(abstracts(*ONE)))
    assert found.outcome == "sufficient"
    assert any("it did not answer" in warning for warning in found.warnings)
    assert any(event.kind == "warning" for event in events)


def test_a_screening_with_only_failing_sources_ends_as_an_error() -> None:
    found, _ = screened(ScriptedGrader({}), BrokenSource())
    assert (found.outcome, found.rounds) == ("error", ())
    assert "None of the sources could be searched." in found.reasons


@pytest.mark.spec("AESOP-ROUNDS")
def test_a_screening_ends_if_no_further_query_would_help() -> None:
    source = ScriptedSource(abstracts(*ONE))
    found, _ = screened(
        ScriptedGrader({}, default=SERIES), source, settings=Settings(screening_max_rounds=8)
    )
    assert found.outcome == "evidence_insufficient"
    assert len(found.rounds) < 8
    assert NO_FURTHER_QUERY in found.reasons
    assert len(set(source.queries)) == len(source.queries)
    assert found.reasons[1].startswith("Of 5 screened abstracts, 5 are relevant: 0 kept")


def test_the_reasons_are_those_of_the_last_round_with_relevant_results() -> None:
    source = ScriptedSource(abstracts(*ONE))  # every later search returns nothing
    found, _ = screened(ScriptedGrader({"a": STRONG}, default=SERIES), source)
    assert not found.rounds[-1].retrieved
    assert "1 of 5 keep" in found.reasons[0]


@pytest.mark.spec("AESOP-DECAY")
def test_a_round_without_relevant_results_applies_the_lower_threshold() -> None:
    # a quality of 0.61 is enough for the third round's 0.60
    middling = Said(0.6, 0.62, "cohort_study", True)
    source = ScriptedSource(abstracts(*ONE))  # every later search returns nothing
    small = Settings(screening_retrieve=5)
    found, _ = screened(
        ScriptedGrader({}, default=middling), source, settings=small, thresholds=ruling.DEFAULT
    )
    assert [each.ruling.required_average for each in found.rounds] == [0.70, 0.65, 0.60]
    assert [each.ruling.tally.keep for each in found.rounds] == [5, 5, 5]
    assert found.outcome == "sufficient"
    assert apply_review(found, []).rounds == found.rounds


def test_an_ungraded_abstract_needs_more_and_is_never_kept() -> None:
    class Forgetful(ScriptedGrader):
        def grade(self, question: str, abstracts: Sequence[Abstract]) -> tuple:  # type: ignore[type-arg]
            return super().grade(question, abstracts)[1:]

    found, _ = screened(Forgetful({}), ScriptedSource(abstracts(*ONE)))
    forgotten = found.grade("a")
    assert forgotten.unscored is not None
    assert (forgotten.recommendation, forgotten.relevance_score) == ("needs_more", None)


def test_a_screening_can_be_cancelled_and_finished_rounds_are_stored() -> None:
    source = ScriptedSource(abstracts(*ONE), abstracts(*_ids(1)))
    found, events = screened(ScriptedGrader({}, default=BORDERLINE), source, cancelled=counting(5))
    assert found.outcome == "cancelled"
    assert [each.number for each in found.rounds] == [0]
    assert {grade.abstract_id for grade in found.grades} == set(ONE)
    assert events[-1].kind == "screening_finished"


def test_an_interrupted_screening_resumes_without_regrading() -> None:
    kept: list[FinishedRound] = []
    grader = ScriptedGrader(dict.fromkeys(ONE, BORDERLINE))
    whole = ScriptedSource(abstracts(*ONE), abstracts("a", "f", "g", "h"))
    screened(grader, whole, cancelled=counting(5), keep=kept.append)
    again = ScriptedGrader(dict.fromkeys(ONE, BORDERLINE))
    rest = ScriptedSource(abstracts("a", "f", "g", "h"))
    found, _ = screened(again, rest, progress=ResumePoint(tuple(kept), events=9))
    assert again.asked == ["f", "g", "h"]
    assert [each.number for each in found.rounds] == [0, 1]
    straight, _ = screened(
        ScriptedGrader(dict.fromkeys(ONE, BORDERLINE)),
        ScriptedSource(abstracts(*ONE), abstracts("a", "f", "g", "h")),
    )
    assert (found.rounds, found.kept, found.outcome) == (
        straight.rounds,
        straight.kept,
        straight.outcome,
    )


def test_events_are_numbered_and_report_progress() -> None:
    _, events = screened(
        ScriptedGrader({}), ScriptedSource(abstracts(*_ids(1), *_ids(2), *_ids(3)))
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
    def work(default: Said, screening_id: str) -> ScreeningSteps:
        source = ScriptedSource(*(abstracts(*_ids(n)) for n in range(4)))
        grader = ScriptedGrader({}, default=default)
        return screen(
            QUESTION, [source], grader, Settings(), screening_id=screening_id, now=lambda: "now"
        )

    async def both() -> tuple[Screening, Screening]:
        return await asyncio.gather(
            *(
                asyncio.to_thread(run_to_completion, each)
                for each in (work(BORDERLINE, "one"), work(STRONG, "two"))
            )
        )

    one, two = asyncio.run(both())
    assert one == run_to_completion(work(BORDERLINE, "one"))
    assert two == run_to_completion(work(STRONG, "two"))


def test_the_thresholds_and_versions_are_recorded() -> None:
    settings = Settings(
        screening_required_first=0.8, screening_max_rounds=2, screening_pubmed_email="a@example.org"
    )
    found, _ = screened(ScriptedGrader({}), ScriptedSource(abstracts(*ONE)), settings=settings)
    assert found.thresholds.required_average == (0.8, 0.75)
    assert found.versions.rubric
    assert found.settings["screening_max_rounds"] == 2
    assert "a@example.org" not in found.model_dump_json()


JUDGE = JudgedBy(model="m", version="1")


class GradesInMemory(dict[str, Grade]):
    """A cache that lasts for one test."""

    store = dict.__setitem__


@pytest.mark.spec("AESOP-GRADING")
def test_a_graded_abstract_is_read_from_the_cache() -> None:
    grader = ScriptedGrader({})
    caching = CachingGrader(grader, GradesInMemory())
    first = caching.grade("aspirin", abstracts("a", "b"))
    second = caching.grade("aspirin", abstracts("b", "c", "a"))
    assert grader.asked == ["a", "b", "c"]
    assert [grade.abstract_id for grade in second] == ["b", "c", "a"]
    assert second[0] == first[1]


def test_an_ungraded_abstract_is_retried() -> None:
    grader = ScriptedGrader({"a": UNREADABLE})
    caching = CachingGrader(grader, GradesInMemory())
    caching.grade("aspirin", abstracts("a"))
    grader.says = {"a": STRONG}
    assert caching.grade("aspirin", abstracts("a"))[0].recommendation == "keep"
    assert grader.asked == ["a", "a"]


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

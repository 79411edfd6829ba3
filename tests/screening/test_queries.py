"""Queries derived from gaps: each names its gap, none is repeated, and they end when none would
help.
"""

from __future__ import annotations

import pytest

from masis.schema.screening import Abstract, Query
from masis.screening.rounds.queries import (
    MAX_QUERIES,
    Gap,
    GradedAbstract,
    find_gaps,
    first_queries,
    is_next_page_worth_reading,
    next_queries,
)
from masis.screening.sources.retrievers import FixedSetRetriever, InMemoryRetriever, search_source
from tests.screening.scripted import (
    BORDERLINE,
    OFF_TOPIC,
    SERIES,
    STRONG,
    ScriptedOpinion,
    grade_of,
)

QUESTION = "Does aspirin prevent heart attack in older adults?"


def graded_abstract(
    opinion: ScriptedOpinion,
    title: str = "Aspirin and heart attack in older adults",
    text: str = "",
) -> GradedAbstract:
    abstract = Abstract(id=title, title=title, text=text)
    return GradedAbstract(abstract, grade_of(abstract.id, opinion))


def gap_texts(*graded: GradedAbstract) -> list[str]:
    return [gap.what for gap in find_gaps(QUESTION, graded)]


def gap_words(*graded: GradedAbstract) -> list[str]:
    return [" ".join(gap.words) for gap in find_gaps(QUESTION, graded)]


def test_an_empty_result_searches_for_synonyms() -> None:
    assert gap_texts() == ["Scope: the searches found nothing."]
    assert find_gaps(QUESTION, [])[0].only.startswith("acetylsalicylic acid myocardial infarction")


@pytest.mark.spec("AESOP-BORDERLINE")
def test_a_rarely_named_concept_is_searched_by_its_synonyms() -> None:
    graded = [
        graded_abstract(BORDERLINE, "Aspirin in older adults"),
        graded_abstract(BORDERLINE, "Aspirin in older women"),
    ]
    assert gap_texts(*graded)[:2] == [
        "Scope: of 2 abstracts found, none is relevant.",
        "Concept: “heart attack” (outcome) is named in 0 of 2 related abstracts.",
    ]
    query, *_ = next_queries(QUESTION, find_gaps(QUESTION, graded)[1:], first_queries(QUESTION), 20)
    assert "myocardial infarction" in query.text
    assert "heart attack" not in query.text


def test_a_concept_without_synonyms_is_searched_with_the_rarest_other_concept() -> None:
    question = "Does velotarine prevent falls in nursing homes?"
    abstract = Abstract(id="a", title="Velotarine in nursing homes")
    gaps = find_gaps(question, [GradedAbstract(abstract, grade_of("a", BORDERLINE))])
    gap = next(gap for gap in gaps if gap.what.startswith("Concept"))
    assert gap.only == "velotarine falls"
    (query,) = next_queries(question, [gap], first_queries(question), 20)
    assert query.text == "velotarine falls"


def test_too_many_off_topic_abstracts_are_a_gap() -> None:
    on_topic, off_topic = (
        [graded_abstract(STRONG), graded_abstract(STRONG)],
        [graded_abstract(OFF_TOPIC, f"Knees of runners {i}") for i in range(4)],
    )
    assert "Scope: 4 of 6 are about something else." in [
        gap.what for gap in find_gaps(QUESTION, [*on_topic, *off_topic])
    ]


def test_each_missing_design_is_named_and_searched() -> None:
    gaps = find_gaps(
        QUESTION,
        [
            graded_abstract(SERIES),
            graded_abstract(SERIES, "Aspirin and heart attack in older adults again"),
        ],
    )
    designs = [gap for gap in gaps if gap.what.startswith("Design")]
    assert [gap.what for gap in designs] == [
        "Design: no randomized controlled trial among 2 relevant abstracts.",
        "Design: no systematic review among 2 relevant abstracts.",
        "Design: no cohort study among 2 relevant abstracts.",
    ]
    assert [gap.design for gap in designs] == [
        "randomised_trial",
        "systematic_review",
        "cohort_study",
    ]


def test_cohorts_arent_searched_if_there_are_enough_trials() -> None:
    trials = [
        graded_abstract(STRONG, f"Aspirin and heart attack in older adults {i}") for i in range(3)
    ]
    assert [gap.design for gap in find_gaps(QUESTION, trials)] == ["systematic_review"]


def test_two_studies_of_a_design_are_counted_in_the_plural() -> None:
    cohort = STRONG._replace(design="cohort_study")
    cohorts = [
        graded_abstract(cohort, f"Aspirin and heart attack in older adults {i}") for i in range(2)
    ]
    assert "Design: only 2 cohort studies among 2 relevant abstracts." in [
        gap.what for gap in find_gaps(QUESTION, cohorts)
    ]


def test_small_studies_search_for_large_ones() -> None:
    assert "multicentre large trial" in gap_words(graded_abstract(STRONG._replace(adequate=False)))


def test_old_studies_search_for_newer_ones() -> None:
    old = Abstract(id="a", title="Aspirin and heart attack in older adults", year=2009)
    gaps = find_gaps(QUESTION, [GradedAbstract(old, grade_of("a", STRONG))], 2026)
    gap = next(gap for gap in gaps if gap.since)
    assert (gap.what, gap.since) == ("Recency: the newest relevant abstract is from 2009.", 2010)
    (query,) = next_queries(QUESTION, [gap], first_queries(QUESTION), 20)
    assert query.since == 2010
    assert "From 2010 on." in query.why
    recent = Abstract(id="a", title="Aspirin and heart attack in older adults", year=2024)
    gaps = find_gaps(QUESTION, [GradedAbstract(recent, grade_of("a", STRONG))], 2026)
    assert not any(gap.since for gap in gaps)


def test_older_records_are_filtered_for_a_source_without_a_year_field() -> None:
    records = [
        Abstract(id=str(year), title="Aspirin and heart attack", year=year)
        for year in range(2000, 2026)
    ]
    query = Query(text="aspirin heart attack", why="", since=2023)
    results = search_source(InMemoryRetriever(records), query, 2)
    assert [abstract.year for abstract in results] == [2023, 2024]


def test_a_low_average_searches_for_trials_and_reviews() -> None:
    gaps = find_gaps(QUESTION, [graded_abstract(STRONG._replace(relevance=0.55, methodology=0.65))])
    assert {"randomised controlled trial", "systematic review meta-analysis"} <= {
        " ".join(gap.words) for gap in gaps
    }


def test_every_query_names_its_gap_and_repeats_no_word() -> None:
    gaps = [
        *find_gaps(QUESTION, [graded_abstract(SERIES)]),
        Gap("Scope: away.", ("aspirin", "enteric")),
    ]
    queries = next_queries(QUESTION, gaps[-2:], first_queries(QUESTION), 20)
    for query in queries:
        assert query.aims_at is not None
        assert query.aims_at in query.why
        assert query.text.lower().split().count("aspirin") == 1
    assert queries[-1].text.endswith("enteric")


@pytest.mark.parametrize("opinion", [SERIES, OFF_TOPIC, BORDERLINE, STRONG])
def test_no_search_is_repeated_and_searches_end(opinion: ScriptedOpinion) -> None:
    tried = list(first_queries(QUESTION))
    for _ in range(12):
        queries = next_queries(
            QUESTION, find_gaps(QUESTION, [graded_abstract(opinion)], 2026), tried, 20
        )
        assert len(queries) <= MAX_QUERIES
        tried.extend(queries)
    assert not next_queries(
        QUESTION, find_gaps(QUESTION, [graded_abstract(opinion)], 2026), tried, 20
    )
    searches = [
        (frozenset(query.text.lower().split()), query.offset, query.since) for query in tried
    ]
    assert len(set(searches)) == len(searches)


def test_the_next_page_is_read_only_while_its_last_results_are_relevant() -> None:
    tried = [*first_queries(QUESTION)]
    nothing = Gap("Nothing new.", ())
    assert next_queries(QUESTION, [nothing], tried, 20) == ()
    (first,) = next_queries(QUESTION, [nothing], tried, 20, has_next_page=True)
    assert (first.text, first.offset) == (QUESTION, 20)
    (second,) = next_queries(QUESTION, [nothing], [*tried, first], 20, has_next_page=True)
    assert second.offset == 40
    assert "read from number 41" in second.why


def test_the_last_results_decide_whether_to_read_on() -> None:
    on_topic, off_topic = grade_of("n", STRONG), grade_of("a", OFF_TOPIC)
    assert is_next_page_worth_reading(
        [on_topic] * 4 + [on_topic, off_topic, off_topic, off_topic], 8
    )
    assert not is_next_page_worth_reading([on_topic] * 10 + [off_topic] * 10, 20)
    assert not is_next_page_worth_reading(
        [on_topic] * 5, 20
    )  # A page that isn't full is the last one.
    assert not is_next_page_worth_reading([], 20)


ABSTRACTS = (
    Abstract(id="knee", title="Knees", text="Walking after a knee replacement."),
    Abstract(
        id="aside",
        title="Rest",
        text="Rest helped; aspirin was mentioned once among many other things said here.",
    ),
    Abstract(
        id="aspirin",
        title="Aspirin for headache",
        text="Aspirin relieved headaches. Aspirin was safe.",
    ),
    Abstract(id="empty"),
)


def ids(abstracts: tuple[Abstract, ...]) -> list[str]:
    return [abstract.id for abstract in abstracts]


def test_the_most_rare_words_rank_first() -> None:
    source = InMemoryRetriever(ABSTRACTS)
    assert ids(source.search("aspirin against headache", 10)) == [
        "aspirin",
        "aside",
        "knee",
        "empty",
    ]
    assert ids(source.search("walking", 1)) == ["knee"]


def test_a_short_text_ranks_above_a_long_one_and_repetition_adds_nothing() -> None:
    filler = " ".join(f"filler{i}" for i in range(200))
    source = InMemoryRetriever(
        [
            Abstract(id="long", text=f"Aspirin. {filler}"),
            Abstract(id="short", text="Aspirin worked."),
            Abstract(id="both", text=f"Aspirin for migraine. {filler}"),
            Abstract(id="often", text=f"{'aspirin ' * 40} {filler}"),
        ]
    )
    assert ids(source.search("aspirin", 4))[-1] in ("long", "both")
    assert ids(source.search("aspirin", 4)).index("short") < ids(source.search("aspirin", 4)).index(
        "long"
    )
    assert ids(source.search("aspirin migraine", 4))[0] == "both"


def test_the_title_has_a_weight_of_three() -> None:
    source = InMemoryRetriever(
        [
            Abstract(id="text", text="Aspirin a b."),
            Abstract(id="title", title="Aspirin", text="c d."),
        ]
    )
    assert ids(source.search("aspirin", 2)) == ["title", "text"]


def test_paging_returns_every_record_once() -> None:
    source = InMemoryRetriever(ABSTRACTS)
    pages = [source.search("aspirin", 3, offset) for offset in (0, 3, 6)]
    retrieved = [abstract_id for page in pages for abstract_id in ids(page)]
    assert sorted(retrieved) == sorted(ids(ABSTRACTS))
    assert pages[2] == ()


def test_a_fixed_set_is_returned_whole_and_in_order() -> None:
    source = FixedSetRetriever(ABSTRACTS)
    assert source.search("anything", 10) == ABSTRACTS
    assert source.search("anything", 2, 2) == ABSTRACTS[2:]

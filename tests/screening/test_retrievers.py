"""Abstracts in hand as a source: found by their words, the rest within reach."""

from __future__ import annotations

from masis.schema.screening import Abstract
from masis.screening.sources.retrievers import FixedSetRetriever, InMemoryRetriever

ABSTRACTS = (
    Abstract(id="knee", title="Knees", text="Walking after a knee replacement."),
    Abstract(
        id="aside", title="Rest", text="Rest helped; aspirin was mentioned once among many other things said here."
    ),
    Abstract(id="aspirin", title="Aspirin for headache", text="Aspirin relieved headaches. Aspirin was safe."),
    Abstract(id="empty"),
)


def ids(found: tuple[Abstract, ...]) -> list[str]:
    return [abstract.id for abstract in found]


def test_what_says_most_of_the_rare_words_comes_first_and_the_rest_after_it() -> None:
    source = InMemoryRetriever(ABSTRACTS)
    assert ids(source.search("aspirin against headache", 10)) == ["aspirin", "aside", "knee", "empty"]
    assert ids(source.search("walking", 1)) == ["knee"]


def test_a_short_text_says_more_with_a_word_than_a_long_one_and_repeating_it_wins_nothing() -> None:
    rest = " ".join(f"filler{i}" for i in range(200))
    source = InMemoryRetriever(
        [
            Abstract(id="long", text=f"Aspirin. {rest}"),
            Abstract(id="short", text="Aspirin worked."),
            Abstract(id="both", text=f"Aspirin for migraine. {rest}"),
            Abstract(id="often", text=f"{'aspirin ' * 40} {rest}"),
        ]
    )
    assert ids(source.search("aspirin", 4))[-1] in ("long", "both")
    assert ids(source.search("aspirin", 4)).index("short") < ids(source.search("aspirin", 4)).index("long")
    assert ids(source.search("aspirin migraine", 4))[0] == "both"


def test_what_is_in_the_title_weighs_three_times() -> None:
    source = InMemoryRetriever(
        [Abstract(id="text", text="Aspirin a b."), Abstract(id="title", title="Aspirin", text="c d.")]
    )
    assert ids(source.search("aspirin", 2)) == ["title", "text"]


def test_reading_on_reaches_everything_once() -> None:
    source = InMemoryRetriever(ABSTRACTS)
    pages = [source.search("aspirin", 3, offset) for offset in (0, 3, 6)]
    assert sorted(each for page in pages for each in ids(page)) == sorted(each.id for each in ABSTRACTS)
    assert pages[2] == ()


def test_the_same_query_gives_the_same_order_and_no_text_is_a_search_language() -> None:
    source = InMemoryRetriever(ABSTRACTS)
    assert source.search('aspirin" OR 1=1 NOT (', 4) == source.search("aspirin or not", 4)


def test_nothing_in_hand_brings_nothing() -> None:
    assert InMemoryRetriever(()).search("aspirin", 10) == ()


def test_a_given_set_comes_whole_and_in_its_order_whatever_is_asked() -> None:
    source = FixedSetRetriever(ABSTRACTS)
    assert source.search("anything", 10) == ABSTRACTS
    assert source.search("anything", 2, 2) == ABSTRACTS[2:]

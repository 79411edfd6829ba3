"""Corpora: each study once, counted for the flow, found by its words, best first."""

from __future__ import annotations

import json
import multiprocessing
import random
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from masis.datasets.readers.abstracts import read_abstracts
from masis.errors import InputError, UnknownRecord
from masis.schema.screening import Abstract
from masis.screening.sources.search_terms import search_terms
from masis.store import Store
from tests.waiting import run_at_once


def an_abstract(number: int = 1, **fields: object) -> Abstract:
    return Abstract.model_validate({"id": f"a-{number}", "title": f"Study {number}", "text": "Words."} | fields)


def ids(found: tuple[Abstract, ...]) -> list[str]:
    return [abstract.id for abstract in found]


def test_a_corpus_keeps_what_a_record_holds_and_finds_it_again(store: Store) -> None:
    given = an_abstract(title="Aspirin in stroke", year=2019, authors=("A. One",), registry="NCT01")
    done = store.corpora.add_many("stroke", [given], source="stroke.jsonl")
    assert (done.identified, done.added, done.duplicates, done.faulty) == (1, 1, 0, 0)
    assert store.corpora.get("stroke", "a-1") == given
    assert store.corpora.search("stroke", "does ASPIRIN work?", 5) == (given,)
    assert list(store.corpora.iterate("stroke")) == [given]
    assert store.corpora.retriever("stroke").name == "corpus:stroke"
    assert store.corpora.retriever("stroke").search("aspirin", 5) == (given,)


@pytest.mark.spec("AESOP-FLOW")
@pytest.mark.parametrize(
    "again",
    [
        {"doi": "https://doi.org/10.1000/ABC.1"},
        {"pmid": "PMID: 00123"},
        {"title": "  Aspirin for the secondary prevention of STROKE: a randomised trial!"},
        {"title": "Aspirin for the secondary prevention of stroke: a randomisèd trial", "year": 2020},
    ],
)
def test_the_same_study_is_kept_once_and_counted_as_a_duplicate(store: Store, again: dict[str, object]) -> None:
    first = an_abstract(
        1,
        doi="10.1000/abc.1",
        pmid="123",
        title="Aspirin for the secondary prevention of stroke: a randomised trial",
        year=2020,
    )
    done = store.corpora.add_many("c", [first, an_abstract(2, **again)], source="x")
    assert (done.identified, done.added, done.duplicates) == (2, 1, 1)
    assert ids(tuple(store.corpora.iterate("c"))) == ["a-1"]


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ({"title": "Editorial"}, {"title": "Editorial"}),
        ({"title": "Annual report of the transplant registry", "year": 2019}, {"year": 2020}),
        ({"title": "Annual report of the transplant registry", "pmid": "1"}, {"pmid": "2"}),
        ({"title": "Annual report of the transplant registry", "doi": "10.1000/a"}, {"doi": "10.1000/b"}),
    ],
)
def test_alike_is_not_the_same(store: Store, one: dict[str, object], other: dict[str, object]) -> None:
    both = [an_abstract(1, **one), an_abstract(2, **(one | other))]
    assert store.corpora.add_many("c", both, source="x").added == 2


def test_an_id_taken_by_another_study_is_an_error_with_its_cure_and_the_rest_is_kept(store: Store) -> None:
    told: list[InputError] = []
    found = [
        an_abstract(1),
        an_abstract(1, title="Quite another study"),
        InputError("broken", cure="-"),
        an_abstract(3),
    ]
    done = store.corpora.add_many("c", found, source="x", on_error=told.append)
    assert (done.identified, done.added, done.duplicates, done.faulty) == (4, 2, 0, 2)
    assert "'a-1'" in str(told[0])
    assert "an id of its own" in str(told[0])
    assert str(told[1]).startswith("broken")


def test_importing_a_file_twice_adds_nothing_and_both_imports_are_counted(store: Store) -> None:
    for _ in range(2):
        store.corpora.add_many("c", [an_abstract(1), an_abstract(2)], source="one.ris")
    summary = store.corpora.summary("c")
    assert (summary.abstracts, summary.identified, summary.duplicates) == (2, 4, 2)
    assert [each.added for each in store.corpora.imports("c")] == [2, 0]


def test_an_import_that_is_cut_short_keeps_and_counts_what_it_read(store: Store) -> None:
    def interrupted() -> Iterator[Abstract]:
        yield from (an_abstract(number) for number in range(5))
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        store.corpora.add_many("c", interrupted(), source="x", batch=2)
    assert store.corpora.summary("c").abstracts == 5
    assert store.corpora.summary("c").identified == 5


def test_corpora_know_nothing_of_each_other(store: Store) -> None:
    store.corpora.add_many("one", [an_abstract(1, text="Asthma in children.")], source="x")
    store.corpora.add_many("two", [an_abstract(1, text="Asthma in adults.")], source="x")
    assert store.corpora.search("one", "adults", 5) == ()
    assert [each.name for each in store.corpora.list_all()] == ["one", "two"]
    store.corpora.remove("one")
    assert store.database.value("PRAGMA secure_delete") == 1
    assert [each.name for each in store.corpora.list_all()] == ["two"]
    assert ids(store.corpora.search("two", "adults", 5)) == ["a-1"]
    assert store.check().ok
    store.corpora.add_many("one", [an_abstract(7)], source="x")
    assert ids(store.corpora.search("one", "study", 5)) == ["a-7"]


def test_a_corpus_that_is_not_there_and_a_name_that_can_not_be_are_refused(store: Store) -> None:
    with pytest.raises(UnknownRecord, match="no corpus 'x'"):
        store.corpora.search("x", "asthma", 5)
    with pytest.raises(UnknownRecord, match="no corpus 'x'"):
        store.corpora.retriever("x")
    for name in ("", "  ", "a\nb", "n" * 101):
        with pytest.raises(InputError, match="can't name a corpus"):
            store.corpora.add_many(name, [], source="x")


def test_a_word_in_the_title_weighs_more_than_one_in_the_text(store: Store) -> None:
    filler = [an_abstract(number, text="Nothing of the kind is told here.") for number in range(10, 30)]
    in_text = an_abstract(1, title="A trial", text="Migraine in adults is told of here.")
    in_title = an_abstract(2, title="Migraine", text="Adults are told of here, and more.")
    store.corpora.add_many("c", [*filler, in_text, in_title], source="x")
    assert ids(store.corpora.search("c", "migraine", 5)) == ["a-2", "a-1"]


def test_words_are_found_in_other_forms_and_with_other_accents(store: Store) -> None:
    store.corpora.add_many("c", [an_abstract(1, text="Randomised trials in Sjögren's syndrome, IL-6.")], source="x")
    for query in ("trial", "SJOGREN", "randomise", "il-6"):
        assert ids(store.corpora.search("c", query, 5)) == ["a-1"], query
    assert store.corpora.search("c", "6-il", 5) == ()


@pytest.mark.parametrize(
    "query",
    [
        'asthma" OR title:*',
        "asthma AND NOT (every : e)",
        "asthma'); DROP TABLE corpora; --",
        "NEAR(asthma, 1) ^asthma {title}: asthma* +",
        "asthma " * 20_000,
        "asthma " + "x" * 100_000,
        "asthma \x00 \ud83d",
    ],
)
def test_a_query_is_words_whatever_it_looks_like(store: Store, query: str) -> None:
    store.corpora.add_many("c", [an_abstract(1, text="Asthma."), an_abstract(2, text="Gout.")], source="x")
    assert ids(store.corpora.search("c", query, 5))[0] == "a-1"
    assert "a-2" not in ids(store.corpora.search("c", query, 5))
    assert store.corpora.summary("c").abstracts == 2


@pytest.mark.parametrize("query", ["", "   ", "?!", "___", "the", '"" OR ""'])
def test_a_query_without_telling_words_finds_nothing_and_breaks_nothing(store: Store, query: str) -> None:
    store.corpora.add_many("c", [an_abstract(1, text="Asthma.")], source="x")
    assert store.corpora.search("c", query, 5) == ()


def test_pages_of_a_search_follow_each_other_without_gap_or_repeat(store: Store) -> None:
    draw = random.Random(3)
    words = ["asthma", "child", "trial", "steroid", "placebo", "lung"]
    many = [an_abstract(number, text=" ".join(draw.choices(words, k=12))) for number in range(60)]
    store.corpora.add_many("c", many, source="x")
    whole = ids(store.corpora.search("c", "asthma steroid", 60))
    pages = [ids(store.corpora.search("c", "asthma steroid", 7, offset)) for offset in range(0, 63, 7)]
    assert [each for page in pages for each in page] == whole
    assert store.corpora.search("c", "asthma", 0) == ()


def test_terms_leave_out_grammar_keep_hyphens_and_end_somewhere() -> None:
    assert search_terms("What is the effect of low-dose aspirin on children's asthma?") == (
        "effect",
        "low-dose",
        "aspirin",
        "children",
        "asthma",
    )
    assert search_terms("What is it?") == ("what", "is", "it")
    assert len(search_terms(" ".join(f"w{number}" for number in range(1000)))) == 64
    assert search_terms("a" * 100_000) == ()
    assert search_terms("a-" * 50_000) == ()


@pytest.mark.parametrize(
    ("statement", "told"),
    [
        ("DELETE FROM corpus_abstracts WHERE id = 'a-1'", "holds 1 abstracts, the words of 2"),
        ("UPDATE corpus_imports SET added = 7", "counts 7"),
        ("DROP TABLE corpus_words_1", "are gone"),
    ],
)
def test_the_health_check_names_a_corpus_that_does_not_fit_itself(store: Store, statement: str, told: str) -> None:
    store.corpora.add_many("c", [an_abstract(1), an_abstract(2)], source="x")
    assert store.check().ok
    store.database.execute(statement)
    assert any(told in problem for problem in store.check().problems), store.check().problems


@pytest.fixture(scope="module")
def searchable(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Store]:
    with Store.open(tmp_path_factory.mktemp("corpus") / "masis.db") as opened:
        texts = ("asthma in children", "asthma AND gout", "NEAR and NOT", "every e")
        opened.corpora.add_many("c", [an_abstract(n, text=text) for n, text in enumerate(texts)], source="x")
        yield opened


SYNTAX = st.sampled_from([*"\"'()*^:+-{}[],.&|<>!#", "AND", "OR", "NOT", "NEAR(", "asthma", "every", "e", "title", " "])


@given(st.lists(SYNTAX | st.text(max_size=3), max_size=15))
def test_no_text_steers_the_search_or_breaks_it(searchable: Store, pieces: list[str]) -> None:
    query = "".join(pieces)
    found = {abstract.id for abstract in searchable.corpora.search("c", query, 10)}
    terms = set(search_terms(query))
    holding = {
        abstract.id
        for abstract in searchable.corpora.iterate("c")
        if terms & set(f"{abstract.title} {abstract.text}".casefold().split())
    }
    if not any("-" in term or "'" in term for term in terms):
        assert found >= holding
        if query.isascii():
            assert found == holding


def _import_same(path: Path, barrier: object) -> None:
    barrier.wait()  # type: ignore[attr-defined]
    with Store.open(path) as store:
        store.corpora.add_many("c", [an_abstract(n, doi=f"10.1000/{n}") for n in range(120)], source="x", batch=10)


@pytest.mark.slow
def test_processes_that_import_the_same_records_at_once_keep_each_once(path: Path) -> None:
    context = multiprocessing.get_context("spawn")
    barrier = context.Barrier(2)
    processes = [context.Process(target=_import_same, args=(path, barrier)) for _ in range(2)]
    run_at_once(processes)
    assert [process.exitcode for process in processes] == [0, 0]
    with Store.open(path) as store:
        summary = store.corpora.summary("c")
        assert (summary.abstracts, summary.identified, summary.duplicates) == (120, 240, 120)
        assert len(store.corpora.search("c", "study", 200)) == 120
        assert store.check().ok


def test_a_question_finds_the_abstract_that_answers_it_among_thousands(store: Store, public_data: Path) -> None:
    given = list(read_abstracts(public_data / "study_types_train.jsonl"))
    asked: dict[str, str] = {}
    for line in (public_data / "pubmedqa_cases.jsonl").read_bytes().splitlines():
        case = json.loads(line)
        asked[case["id"]] = case["query"]
        given.append(Abstract(id=case["id"], text=" ".join(chunk["text"] for chunk in case["evidence"])))
    assert store.corpora.add_many("c", given, source="x").added == len(given)
    found = {case_id: ids(store.corpora.search("c", query, 5)) for case_id, query in asked.items()}
    first = sum(each[:1] == [case_id] for case_id, each in found.items()) / len(asked)
    among_five = sum(case_id in each for case_id, each in found.items()) / len(asked)
    assert (first > 0.9, among_five > 0.96) == (True, True), (first, among_five)  # measured: .93 and .98

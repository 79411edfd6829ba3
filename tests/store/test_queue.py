"""Search, filters, orders and pages; what a person types is never read as syntax."""

from __future__ import annotations

import itertools
import random
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from masis.schema.run import ReviewCode, ReviewReason
from masis.store import CaseFilter, Store
from masis.store.audits import queue
from masis.store.audits.queue import match, miscounted
from masis.store.audits.runs import RunFigures, disagreement, figures
from masis.store.core.connections import connect
from tests.audit.factories import check as a_check
from tests.store.factories import a_case, a_decision, a_run, an_iteration, an_undo


def ids(store: Store, **wanted: object) -> list[str]:
    return [row.id for row in store.cases.search(CaseFilter(**wanted)).rows]


@pytest.fixture
def filled(store: Store) -> Store:
    """Five cases: unsure, sure, unscored, not audited, decided."""
    fields = ("Law", "Medicine", "Law", "History", None)
    for name, field in zip(("unsure", "sure", "unscored", "new", "decided"), fields, strict=True):
        case = a_case(name, metadata={"field": field, "dataset": f"set {name[0]}"}, query=f"About {name}?")
        store.cases.add(case)
        confidence = {"unsure": 0.2, "sure": 0.95, "unscored": None, "decided": 0.6}.get(name)
        if name != "new":
            iteration = an_iteration(
                invalid=() if name == "sure" else ("7",), confidence=confidence, quality=confidence, overall=0.9
            )
            models = {"critic": "openai:gpt-4o" if name == "sure" else "offline", "reviser": "offline"}
            store.runs.finish(a_run(case, f"run-{name}", iterations=(iteration,), models=models))
    store.decisions.append(a_decision(a_case("decided"), "run-decided", reviewer="Grace"))
    return store


@pytest.mark.parametrize(
    ("wanted", "found"),
    [
        ({}, {"unsure", "sure", "unscored", "new", "decided"}),
        ({"states": ("needs_review",)}, {"unsure", "sure", "unscored"}),
        ({"states": ("new", "approved")}, {"new", "decided"}),
        ({"fields": ("Law",)}, {"unsure", "unscored"}),
        ({"fields": ("Law",), "quality_to": 0.5}, {"unsure"}),
        ({"datasets": ("set u",)}, {"unsure", "unscored"}),
        ({"flags": ("invalid_reference",)}, {"unsure", "unscored", "decided"}),
        ({"flags": ("unscored", "drafted")}, {"unscored"}),
        ({"flags": ("reference",)}, set()),
        ({"reasons": ("invalid_reference",)}, {"unsure", "sure", "unscored", "decided"}),
        ({"tiers": ("must_look",)}, {"unsure", "sure", "unscored", "decided"}),
        ({"tiers": ("not_certified",)}, set()),
        ({"models": ("openai:gpt-4o",)}, {"sure"}),
        ({"models": ("gpt-4o",)}, set()),
        ({"reviewers": ("Grace",)}, {"decided"}),
        ({"quality_from": 0.5, "quality_to": 0.9}, {"decided"}),
        ({"confidence_from": 0.9}, {"sure"}),
        ({"text": "unsure"}, {"unsure"}),
        ({"text": "about uns"}, {"unsure", "unscored"}),
        ({"text": "ABOUT", "states": ("new",)}, {"new"}),
        ({"text": "un"}, set()),
        ({"text": "open", "states": ("new",)}, {"new"}),
        ({"text": "bridge opened 1932"}, {"unsure", "sure", "unscored", "new", "decided"}),
        ({"text": "?!"}, set()),
        ({"text": "   "}, {"unsure", "sure", "unscored", "new", "decided"}),
    ],
)
def test_filters_find_what_they_say_in_every_order(filled: Store, wanted: dict, found: set[str]) -> None:
    for order in ("risk", "disagreement", "least_confident", "oldest", "newest", "random"):
        page = filled.cases.search(CaseFilter(**wanted, order=order))
        assert {row.id for row in page.rows} == found
        assert page.total == len(found)


def test_the_orders(filled: Store) -> None:
    assert ids(filled, order="oldest") == ["unsure", "sure", "unscored", "new", "decided"]
    assert ids(filled, order="newest") == ["decided", "new", "unscored", "sure", "unsure"]
    assert ids(filled, order="least_confident") == ["unscored", "unsure", "decided", "sure", "new"]
    assert ids(filled, order="disagreement")[-1] == "new"


def test_most_telling_is_where_citations_critic_and_judge_disagree_most() -> None:
    agreed = an_iteration(invalid=(), confidence=0.5, overall=1.0)
    torn = an_iteration(invalid=("7",), confidence=0.5, overall=0.9)
    assert disagreement(agreed) == 0.0
    assert disagreement(torn) == 0.5
    alone = agreed.model_copy(update={"evaluation": None, "critique": an_iteration(confidence=None).critique})
    assert disagreement(alone) == 1.0
    assert figures(a_run(a_case(), iterations=(torn, agreed))).disagreement == 0.5


def reviewed(*codes: ReviewCode, verdicts: tuple[str, ...] = ("supported",)) -> RunFigures:
    claims = tuple(a_check(verdict) for verdict in verdicts)
    sound = an_iteration(invalid=()).model_copy(update={"claims": claims})
    reasons = tuple(ReviewReason(code=code, message="Look.") for code in codes)
    return figures(a_run(a_case(), iterations=(sound,)).model_copy(update={"review_reasons": reasons}))


def test_what_must_be_looked_at_comes_first_then_what_was_not_certified_then_the_likelier_to_be_faulty() -> None:
    wrong, worse = reviewed("serious_issue"), reviewed("partial_claim", verdicts=("partial", "supported"))
    unsure = reviewed("unconfirmed_claim", verdicts=("unverifiable",) * 40)
    accepted, long = reviewed(), reviewed(verdicts=("supported",) * 9)
    assert worse.risk > wrong.risk > unsure.risk > long.risk > accepted.risk >= 0
    tiers = [each.tier for each in (wrong, worse, unsure, accepted)]
    assert tiers == ["must_look", "must_look", "not_certified", None]
    assert unsure.risk < 2


def test_the_estimate_is_a_probability_that_grows_with_every_sign() -> None:
    by_verdict = [
        reviewed(verdicts=(verdict,)).risk for verdict in ("supported", "unscored", "partial", "contradicted")
    ]
    assert by_verdict == sorted(by_verdict)
    assert by_verdict[0] < by_verdict[1] < by_verdict[2] < by_verdict[3] < 1
    assert reviewed(verdicts=("contradicted",) * 500).risk <= 1
    assert reviewed(verdicts=("supported", "contradicted")).risk > by_verdict[3]


def test_a_row_says_what_a_list_shows(filled: Store) -> None:
    (row,) = filled.cases.search(CaseFilter(text="decided")).rows
    assert row.model_dump(exclude={"imported_at", "updated_at"}) == {
        "id": "decided",
        "query": "About decided?",
        "state": "approved",
        "field": None,
        "dataset": "set d",
        "run_id": "run-decided",
        "quality": 0.6,
        "original_quality": 0.6,
        "confidence": 0.6,
        "overall": 0.9,
        "invalid": 1,
        "uncited": 0,
        "iterations": 1,
        "models": ("offline",),
        "flags": ("invalid_reference", "hallucination"),
        "reasons": ("invalid_reference",),
        "tier": "must_look",
        "reviewer": "Grace",
        "version": 4,
    }


def test_a_long_question_is_shortened(store: Store) -> None:
    store.cases.add(a_case("short", query="q" * 200))
    store.cases.add(a_case("long", query="ä" * 100_000))
    short, long = store.cases.search(CaseFilter(order="oldest")).rows
    assert short.query == "q" * 200
    assert long.query == "ä" * 199 + "…"


def test_counts_of_every_value(filled: Store) -> None:
    facets = filled.cases.facets()
    assert facets.states == {"approved": 1, "needs_review": 3, "new": 1}
    assert facets.fields == {"History": 1, "Law": 2, "Medicine": 1}
    assert facets.models == {"offline": 4, "openai:gpt-4o": 1}
    assert facets.flags == {"hallucination": 3, "invalid_reference": 3, "unscored": 1}
    assert facets.reviewers == {"Grace": 1}


def test_counts_and_reviewer_follow_a_decision_and_its_undo(filled: Store) -> None:
    current = filled.decisions.current("decided")
    assert current is not None
    filled.decisions.append(an_undo(a_case("decided"), current.id))
    assert filled.cases.facets().reviewers == {}
    assert ids(filled, reviewers=("Grace",)) == []
    assert filled.cases.facets().states == {"needs_review": 4, "new": 1}


def test_pages_together_hold_every_match_once_in_order(store: Store) -> None:
    draw = random.Random(3)
    for number in range(60):
        case = a_case(f"c-{number:02}", metadata={"field": draw.choice("AB")})
        store.cases.add(case)
        if number % 7:
            store.runs.finish(
                a_run(
                    case, f"r-{number}", iterations=(an_iteration(confidence=draw.random() / 2, overall=draw.random()),)
                )
            )
    for order in ("risk", "disagreement", "least_confident", "oldest", "newest", "random"):
        for more in ({}, {"fields": ("A",)}, {"text": "bridge"}, {"text": "bridge", "states": ("needs_review",)}):
            whole = ids(store, order=order, size=1000, **more)
            pages = [ids(store, order=order, size=7, page=page, **more) for page in range(1, 12)]
            assert [each for page in pages for each in page] == whole
            assert len(set(whole)) == store.cases.search(CaseFilter(**more)).total > 20


def test_walking_and_sorting_give_the_same_page(filled: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    for wanted in (
        {"flags": ("invalid_reference",)},
        {"text": "about"},
        {"states": ("needs_review",), "text": "bridge"},
    ):
        for order in ("risk", "disagreement", "least_confident", "oldest", "newest"):
            monkeypatch.setattr("masis.store.audits.queue._WALKED", 10**9)
            walked = ids(filled, order=order, **wanted)
            monkeypatch.setattr("masis.store.audits.queue._WALKED", -1)
            assert ids(filled, order=order, **wanted) == walked


def test_a_random_order_is_the_same_for_the_same_seed_and_another_for_another(store: Store) -> None:
    store.cases.add_many(a_case(f"c-{number}") for number in range(200))
    first, again, other = (ids(store, order="random", seed=seed, size=200) for seed in (1, 1, 2))
    assert first == again != other
    assert sorted(first) == sorted(other)
    in_order = sum(a < b for a, b in itertools.pairwise(first))
    assert 60 < in_order < 140


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.text(max_size=40))
def test_whatever_is_typed_searches_and_never_breaks(filled: Store, text: str) -> None:
    try:
        wanted = CaseFilter(text=text)
    except ValidationError:
        return  # half of a surrogate pair is no text
    assert filled.cases.search(wanted).total >= 0


@pytest.mark.parametrize(
    "text",
    ['"', "'", "a OR b", "NOT about", "about*", "NEAR(a b)", "query:about", "-about", "a AND", "(", "^about",
     "{a b}: c", "'; DROP TABLE cases; --", "\x00", "“about”", "0.75", "a" * 100_000, "word " * 20_000, "*" * 100_000,
     "日本"],
)  # fmt: skip
def test_the_syntax_of_search_is_only_text(filled: Store, text: str) -> None:
    assert filled.cases.search(CaseFilter(text=text)).total in (0, 5)
    assert filled.cases.count() == 5


def test_each_word_is_quoted_and_only_a_last_word_of_three_letters_may_be_a_beginning() -> None:
    assert match('say "hi" the') == '"say" AND """hi""" AND "the"'
    assert match('say "hi" the', beginning=True) == '"say" AND """hi""" AND "the" *'
    assert match("to be", beginning=True) == '"to" AND "be"'
    assert match("日", beginning=True) == '"日" *'
    assert match("- ! ?") == '""'


def test_a_page_or_size_out_of_range_is_refused() -> None:
    for wrong in ({"page": 0}, {"size": 0}, {"size": 1001}, {"order": "best"}, {"quality_from": 2.0}):
        with pytest.raises(ValidationError):
            CaseFilter(**wrong)


def test_a_page_beyond_the_last_is_empty_and_still_counts(filled: Store) -> None:
    page = filled.cases.search(CaseFilter(page=99))
    assert (page.rows, page.total) == ((), 5)


def test_counts_are_of_whatever_the_cases_say_also_when_their_values_change_or_they_go(filled: Store) -> None:
    connection = connect(filled.path)
    connection.execute("UPDATE cases SET field = NULL, flags = '[\"uncited\"]' WHERE field = 'Law'")
    facets = filled.cases.facets()
    assert facets.fields == {"History": 1, "Medicine": 1}
    assert facets.flags["uncited"] == 2
    connection.execute("DELETE FROM case_payloads WHERE case_seq = (SELECT seq FROM cases WHERE field = 'History')")
    connection.execute("PRAGMA foreign_keys = OFF")
    connection.execute("DELETE FROM cases WHERE field = 'History'")
    assert filled.cases.facets().fields == {"Medicine": 1}
    assert miscounted(connection) == []


def test_counts_that_are_wrong_are_found_by_the_health_check(filled: Store) -> None:
    filled.database.execute("UPDATE case_counts SET cases = cases + 1 WHERE name = 'field'")
    assert filled.check().problems == ("the counts of the cases' field are not what the cases say",)


@pytest.mark.parametrize("letters", ["bri", "brid", "bridg"])
@pytest.mark.parametrize("order", ["risk", "disagreement", "newest", "random"])
def test_beginnings_of_any_length_find_the_same_in_every_order(store: Store, letters: str, order: str) -> None:
    store.cases.add_many(a_case(f"case-{number}", query=f"Is the bridge {number} long?") for number in range(30))
    store.cases.add(a_case("other", query="How deep?", answer="Deep.", evidence=[{"id": "1", "text": "It is deep."}]))
    page = store.cases.search(CaseFilter(text=f"long {letters}", order=order, size=10, page=2))  # type: ignore[arg-type]
    assert page.total == 30
    assert len({row.id for row in page.rows} - {"other"}) == 10


@pytest.mark.parametrize("order", ["risk", "disagreement", "least_confident", "oldest", "newest"])
@pytest.mark.parametrize("asked", [{"text": "bridge"}, {"fields": ("Law",)}, {"text": "bridge", "fields": ("Law",)}])
def test_what_stands_at_the_far_end_of_an_order_is_found_as_well(
    store: Store, monkeypatch: pytest.MonkeyPatch, order: str, asked: dict[str, Any]
) -> None:
    """A walk along the order is given up after some rows; then what matches is collected and sorted."""
    draw = random.Random(11)
    for number in range(60):
        far = draw.random() < 0.3
        meta = {"field": "Law" if far else "History"}
        text = "How long is the bridge?" if far else "How deep?"
        evidence = [{"id": "1", "text": "."}]
        store.cases.add(a_case(f"case-{number}", query=text, answer=".", evidence=evidence, metadata=meta))
    store.database.execute(
        "UPDATE cases SET disagreement = abs(random() % 4) - (field = 'Law') * 9, "
        "doubt = -seq % 7 - (field = 'Law') * 9, risk = -seq % 5 - (field = 'Law') * 9"
    )
    wanted = CaseFilter(order=order, size=1000, **asked)  # type: ignore[arg-type]
    whole = [row.id for row in store.cases.search(wanted).rows]
    monkeypatch.setattr(queue, "_WALKED", 4)
    monkeypatch.setattr(queue, "_PROBED", 4)
    pages = range(1, -(-len(whole) // 2) + 1)
    paged = [store.cases.search(wanted.model_copy(update={"page": page, "size": 2})).rows for page in pages]
    assert [row.id for rows in paged for row in rows] == whole
    for before, behind in itertools.pairwise(whole):
        assert store.cases.beside(before, wanted, forward=True) == behind
        assert store.cases.beside(behind, wanted, forward=False) == before


def test_the_old_words_of_order_and_flags_are_still_understood() -> None:
    asked = CaseFilter.model_validate({"order": "telling", "flags": ["needless", "uncited"]})
    assert (asked.order, asked.flags) == ("disagreement", ("redundant", "uncited"))


def test_a_page_counts_no_further_than_it_is_asked_to(store: Store) -> None:
    for number in range(8):
        store.cases.add(a_case(f"many-{number}"))
    found = store.cases.search(CaseFilter(text="many", size=2), upto=3)
    assert (found.total, found.more, len(found.rows)) == (3, True, 2)
    assert store.cases.count_upto(CaseFilter(text="many"), 3).likely >= 8
    exact = store.cases.search(CaseFilter(text="many", size=2), upto=8)
    assert (exact.total, exact.more) == (8, False)
    assert store.cases.search(CaseFilter(), upto=3).total == store.cases.count()

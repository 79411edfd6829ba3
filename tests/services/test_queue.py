"""Search, filters, orders, pages, counts and neighbours; what a person types is never read as
syntax.
"""

from __future__ import annotations

import itertools
import random
from collections import Counter
from collections.abc import Callable
from typing import Any, get_args

import pytest
from pydantic import ValidationError

from masis.audit.acceptance import disagreement, fault_probability
from masis.schema.actor import Actor
from masis.schema.case import Severity
from masis.schema.review import Decision, Verdict
from masis.schema.rules import IssueType, ReviewCode
from masis.schema.run import ReviewReason
from masis.schema.team import QueuePolicy
from masis.services import Workbench
from masis.services.cases import WAITING, waiting_in
from masis.services.decision_rules import (
    OTHER,
    REASON_CODE,
    REASONS,
    reason_text,
    reasons_for,
    suggest_reasons,
    with_reason_code,
)
from masis.services.records import NOT_DECIDED, ORDERS, CaseFilter, CaseSummary
from masis.store.audits.conditions import match
from masis.store.audits.runs import figures
from masis.views.words import RULE
from tests.audit.factories import check as a_check
from tests.audit.factories import issue as an_issue
from tests.reviewing import ADA, submit
from tests.store.factories import a_case, a_decision, a_run, acceptance_of, an_iteration

EMPTY = [{"id": "1", "text": "."}]


def ids(bench: Workbench, **wanted: object) -> list[str]:
    return [row.id for row in bench.cases.find(CaseFilter(**wanted)).rows]


def test_a_search_finds_what_people_wrote_about_a_case(filled: Workbench) -> None:
    sure = filled.cases.open("sure").case
    entry = submit(filled, a_decision(sure, "run-sure", note="Ask the zebrafish lab"))
    submit(filled, a_decision(a_case("unsure"), "run-unsure", verdict="reject", reason="Xylem."))
    assert ids(filled, text="zebrafish lab") == ids(filled, text="zebraf") == ["sure"]
    assert ids(filled, text="xylem") == ["unsure"]
    assert ids(filled, text="zebrafish", fields=("Law",)) == []
    assert set(ids(filled, text="about")) == {"unsure", "sure", "unscored", "new", "decided"}
    filled.reviews.undo(ADA, entry.id)
    assert ids(filled, text="zebrafish") == []


def test_a_search_finds_no_notes_that_the_reviewer_cant_see_yet(filled: Workbench) -> None:
    filled.team.put_in_force(ADA, QueuePolicy(reviewers=2))
    case = a_case("shared", query="About it?")
    filled.store.cases.add(case)
    filled.store.runs.finish(a_run(case, "run-shared", iterations=(an_iteration(),)))
    submit(filled, a_decision(case, "run-shared", note="zebrafish"))
    wanted = CaseFilter(text="zebrafish")
    assert filled.cases.find_for(ADA, wanted).total == 1
    assert filled.cases.find_for(Actor(name="Grace"), wanted).total == 0
    assert filled.cases.find(wanted).total == 0
    submit(filled, a_decision(case, "run-shared", reviewer="Grace"))
    assert filled.cases.find_for(Actor(name="Grace"), wanted).total == 1


@pytest.fixture
def filled(bench: Workbench) -> Workbench:
    """Five cases: unsure, sure, unscored, not audited, decided."""
    fields = ("Law", "Medicine", "Law", "History", None)
    for name, field in zip(("unsure", "sure", "unscored", "new", "decided"), fields, strict=True):
        case = a_case(
            name, metadata={"field": field, "dataset": f"set {name[0]}"}, query=f"About {name}?"
        )
        bench.store.cases.add(case)
        confidence = {"unsure": 0.2, "sure": 0.95, "unscored": None, "decided": 0.6}.get(name)
        if name != "new":
            iteration = an_iteration(
                invalid=() if name == "sure" else ("7",),
                confidence=confidence,
                quality=confidence,
                overall=0.9,
            )
            models = {
                "critic": "openai:gpt-4o" if name == "sure" else "offline",
                "reviser": "offline",
            }
            bench.store.runs.finish(
                a_run(case, f"run-{name}", iterations=(iteration,), models=models)
            )
    submit(bench, a_decision(a_case("decided"), "run-decided", reviewer="Grace"))
    return bench


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
        ({"standings": ("not_audited", "decided")}, {"new", "decided"}),
        ({"standings": NOT_DECIDED}, {"unsure", "sure", "unscored", "new"}),
        ({"standings": ("wrong",), "fields": ("Law",)}, {"unsure", "unscored"}),
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
def test_filters_work_in_every_order(
    filled: Workbench, wanted: dict[str, Any], found: set[str]
) -> None:
    for order in ORDERS:
        page = filled.cases.find(CaseFilter(**wanted, order=order))
        assert {row.id for row in page.rows} == found
        assert page.total == len(found)


def test_the_disagreement_order_ranks_by_disagreement() -> None:
    agreed = an_iteration(invalid=(), confidence=0.5, overall=1.0)
    torn = an_iteration(invalid=("7",), confidence=0.5, overall=0.9)
    assert disagreement(agreed) == 0.0
    assert disagreement(torn) == 0.5
    alone = agreed.model_copy(
        update={"evaluation": None, "critique": an_iteration(confidence=None).critique}
    )
    assert disagreement(alone) == 1.0
    assert figures(a_run(a_case(), iterations=(torn, agreed)))["disagreement"] == 0.5


def figures_of_review(
    *codes: ReviewCode, verdicts: tuple[str, ...] = ("supported",)
) -> dict[str, Any]:
    claims = tuple(a_check(verdict) for verdict in verdicts)
    sound = an_iteration(invalid=()).model_copy(update={"claims": claims})
    reasons = tuple(ReviewReason(code=code, message="Look.") for code in codes)
    return figures(
        a_run(a_case(), iterations=(sound,)).model_copy(update={"review_reasons": reasons})
    )


def test_the_risk_order_ranks_by_tier_then_probability() -> None:
    wrong, worse = (
        figures_of_review("serious_issue"),
        figures_of_review("partial_claim", verdicts=("partial", "supported")),
    )
    unsure = figures_of_review("unconfirmed_claim", verdicts=("unverifiable",) * 40)
    accepted, long = figures_of_review(), figures_of_review(verdicts=("supported",) * 9)
    ranked = (worse, wrong, unsure, long, accepted)
    assert [row["tier"] for row in ranked] == [
        "must_look",
        "must_look",
        "not_certified",
        None,
        None,
    ]
    risks = [row["risk"] for row in ranked]
    assert risks == sorted(set(risks), reverse=True)
    assert risks[2] < 2
    assert risks[-1] >= 0


def test_the_risk_order_ranks_severity_before_probability() -> None:
    def figures_of_claims(*severities: Severity, claims: int) -> dict[str, Any]:
        issues = tuple(
            an_issue(severity, source="citations", rule="fabricated_reference")
            for severity in severities
        )
        claimed = tuple(a_check("unsupported") for _ in range(claims))
        iteration = an_iteration(invalid=()).model_copy(
            update={"issues": issues, "claims": claimed}
        )
        reasons = (ReviewReason(code="serious_issue", message="Look."),)
        return figures(
            a_run(a_case(), iterations=(iteration,)).model_copy(update={"review_reasons": reasons})
        )

    harms, doubtful, likely = (
        figures_of_claims("low", "critical", claims=0),
        figures_of_claims("high", claims=1),
        figures_of_claims("high", claims=9),
    )
    assert [row["severity"] for row in (harms, doubtful, likely)] == ["critical", "high", "high"]
    assert harms["likely"] < doubtful["likely"] < likely["likely"]
    assert harms["risk"] > likely["risk"] > doubtful["risk"]


def test_a_row_has_the_fields_of_the_list(filled: Workbench) -> None:
    (row,) = filled.cases.find(CaseFilter(text="decided")).rows
    run = filled.cases.open("decided").run
    assert row.model_dump(exclude={"imported_at", "updated_at"}) == {
        "id": "decided",
        "query": "About decided?",
        "standing": "decided",
        "state": "approved",
        "field": None,
        "dataset": "set d",
        "run_id": "run-decided",
        "quality": 0.6,
        "revised_quality": None,
        "confidence": 0.6,
        "overall": 0.9,
        "invalid": 1,
        "uncited": 0,
        "iterations": 1,
        "models": ("offline",),
        "flags": ("invalid_reference", "hallucination"),
        "reasons": ("invalid_reference",),
        "headline": "Cites [7], which doesn't exist",
        "tier": "must_look",
        "reviewer": "Grace",
        "version": 4,
        "fault_probability": fault_probability(run.iterations[0]),
        "severity": None,
        "disagreement": disagreement(run.iterations[0]),
    }


def test_every_filter_value_is_counted(filled: Workbench) -> None:
    facets = filled.cases.facets()
    assert facets.states == {"approved": 1, "needs_review": 3, "new": 1}
    assert facets.standings == {"decided": 1, "not_audited": 1, "wrong": 3}
    assert filled.cases.values(CaseFilter(), "fields") == {"History": 1, "Law": 2, "Medicine": 1}
    assert filled.cases.values(CaseFilter(), "models") == {"offline": 4, "openai:gpt-4o": 1}
    assert facets.flags == {"hallucination": 3, "invalid_reference": 3, "unscored": 1}
    assert facets.reviewers == {"Grace": 1}


STANDINGS: dict[str, tuple[ReviewCode, ...]] = {
    "wrong": ("invalid_reference",),
    "not_confirmed": ("unconfirmed_claim",),
    "nothing_found": (),
    "failed": ("error", "unscored"),
    "no_answer": ("answer_refused",),
}


def test_each_case_has_one_status_and_the_counts_add_up(
    bench: Workbench,
) -> None:
    for name, codes in STANDINGS.items():
        for copy in ("open", "accepted", "approve", "escalate"):
            case = a_case(f"{name} {copy}")
            bench.store.cases.add(case)
            reasons = tuple(ReviewReason(code=code, message="Look.") for code in codes)
            ended = {"termination_reason": "no_answer"} if name == "no_answer" else {}
            run = a_run(case, f"run {name} {copy}", review_reasons=reasons, **ended)
            bench.store.runs.finish(run)
            if copy == "accepted":
                bench.store.decisions.append(acceptance_of(run))
            elif copy != "open":
                submit(bench, a_decision(case, run.id, verdict=copy))
    for name in ("new", "interrupted", "decided unaudited", "wrong before an error"):
        bench.store.cases.add(a_case(name))
    found_first = tuple(
        ReviewReason(code=code, message="Look.") for code in ("invalid_reference", "error")
    )
    bench.store.runs.finish(
        a_run(a_case("wrong before an error"), "run late", review_reasons=found_first)
    )
    bench.store.runs.start(
        "cut",
        case_id="interrupted",
        case_digest=a_case("interrupted").digest(),
        models={},
        settings={},
    )
    bench.store.runs.abandon("cut", "killed")
    submit(bench, a_decision(a_case("decided unaudited"), None))
    stands = {row.id: row.standing for row in bench.cases.find(CaseFilter(size=100)).rows}
    for name in STANDINGS:
        assert stands[f"{name} open"] == name
        assert stands[f"{name} accepted"] == "nothing_found"
        assert stands[f"{name} approve"] == "decided"
        assert stands[f"{name} escalate"] == "waits"
    assert (stands["new"], stands["interrupted"], stands["decided unaudited"]) == (
        "not_audited",
        "failed",
        "decided",
    )
    assert stands["wrong before an error"] == "wrong"
    assert bench.cases.facets_for(ADA).standings == Counter(stands.values())
    for standing in set(stands.values()):
        found = {
            row.id
            for row in bench.cases.find_for(ADA, CaseFilter(standings=(standing,), size=100)).rows
        }
        assert found == {case_id for case_id, where in stands.items() if where == standing}


class Copy:
    """A queue without SQL: what the service says of each case, and what is sorted by."""

    def __init__(self, bench: Workbench) -> None:
        everything = bench.cases.find(CaseFilter(order="oldest", size=1000)).rows
        keys = bench.store.database.execute(
            "SELECT risk, disagreement, doubt FROM cases ORDER BY seq"
        )
        self.rows = [(row, *key) for row, key in zip(everything, keys, strict=True)]
        self.drawn = {
            row.id: place
            for place, row in enumerate(
                bench.cases.find(CaseFilter(order="random", seed=5, size=1000)).rows
            )
        }

    def ids(self, wanted: CaseFilter) -> list[str]:
        numbered = [
            (number, *row) for number, row in enumerate(self.rows) if self.matches(row[0], wanted)
        ]
        keys: dict[str, Callable[..., Any]] = {
            "risk": lambda number, _row, risk, _disagreement, _doubt: (-risk, number),
            "disagreement": lambda number, _row, _risk, disagreement, _doubt: (
                -disagreement,
                number,
            ),
            "least_confident": lambda number, _row, _risk, _disagreement, doubt: (-doubt, number),
            "oldest": lambda number, *_: number,
            "newest": lambda number, *_: -number,
            "random": lambda _number, row, *_: self.drawn[row.id],
        }
        return [pair[1].id for pair in sorted(numbered, key=lambda pair: keys[wanted.order](*pair))]

    @staticmethod
    def matches(row: CaseSummary, wanted: CaseFilter) -> bool:
        def within(value: float | None, low: float | None, high: float | None) -> bool:
            if low is None and high is None:
                return True
            return value is not None and (low or 0) <= value <= (1 if high is None else high)

        lists = (
            (wanted.flags, row.flags),
            (wanted.reasons, row.reasons),
            (wanted.models, row.models),
        )
        single = (
            *(
                (wanted.states, row.state),
                (wanted.standings, row.standing),
                (wanted.tiers, row.tier),
                (wanted.severities, (row.severity or "none") if row.iterations else None),
                (wanted.fields, row.field),
            ),
            *((wanted.datasets, row.dataset), (wanted.reviewers, row.reviewer)),
        )
        return (
            all(value in chosen for chosen, value in single if chosen)
            and all(set(chosen) & set(values) for chosen, values in lists if chosen)
            and set(wanted.text.lower().split()) <= set(row.query.lower().strip("?").split())
            and within(row.quality, wanted.quality_from, wanted.quality_to)
            and within(row.confidence, wanted.confidence_from, wanted.confidence_to)
        )


def many(bench: Workbench, draw: random.Random, count: int) -> None:
    for number in range(count):
        words = draw.sample(("arch", "beam", "cable", "deck"), 2)
        meta = {
            "field": draw.choice(("Law", "History", None)),
            "dataset": draw.choice(("one", 'a "two"')),
        }
        case = a_case(
            f"case-{number}",
            query=f"About {' '.join(words)}?",
            answer=".",
            evidence=EMPTY,
            metadata=meta,
        )
        bench.store.cases.add(case)
        if draw.random() < 0.2:
            continue
        score = draw.choice((None, draw.random(), 0.5))
        iteration = an_iteration(
            invalid=draw.choice(((), ("7",))),
            confidence=score,
            quality=score,
            overall=draw.random(),
        )
        models = {"critic": draw.choice(("offline", 'the "odd" one, é'))}
        run = a_run(
            case,
            f"run-{number}",
            iterations=(iteration,),
            models=models,
            needs_review=draw.random() < 0.7,
        )
        bench.store.runs.finish(run)
        if not run.needs_review:
            bench.store.decisions.append(acceptance_of(run))
        if draw.random() < 0.3:
            verdict = draw.choice(("approve", "reject"))
            submit(
                bench,
                a_decision(
                    case, run.id, reviewer=draw.choice(("Ada", "Ben")), verdict=verdict, reason="."
                ),
            )
    # far ends of an order: what matches need not be spread evenly
    bench.store.database.execute(
        "UPDATE cases SET risk = seq % 5 - (field IS 'Law') * 9, disagreement = seq % 4, doubt ="
        " -seq % 7, severity = CASE WHEN iterations > 0 AND seq % 3 THEN iif(seq % 2, 'low',"
        " 'high') END"
    )


def test_nothing_found_is_counted_with_and_without_minor_issues(
    bench: Workbench,
) -> None:
    for name, severity in (
        ("clean", None),
        ("vague", "low"),
        ("poor", "medium"),
        ("wrong", "high"),
        ("new", None),
    ):
        bench.store.cases.add(a_case(name))
        if name == "new":
            continue
        issues = () if severity is None else (an_issue(severity),)
        reasons = (ReviewReason(code="serious_issue", message="Look."),) if name == "wrong" else ()
        sound = an_iteration(invalid=()).model_copy(update={"issues": issues})
        bench.store.runs.finish(
            a_run(a_case(name), f"run {name}", iterations=(sound,), review_reasons=reasons)
        )
    facets = bench.cases.facets_for(ADA)
    assert (facets.standings["nothing_found"], facets.minor) == (3, 2)
    assert bench.cases.values(CaseFilter(), "severities") == {
        "none": 1,
        "low": 1,
        "medium": 1,
        "high": 1,
    }
    assert bench.cases.standings_for(ADA, CaseFilter(text="open")) == (facets.standings, 2)
    assert ids(bench, standings=("nothing_found",), severities=("none",)) == ["clean"]
    assert ids(bench, standings=("nothing_found",), severities=("low", "medium")) == [
        "poor",
        "vague",
    ]
    assert ids(bench, severities=("none",)) == ["clean"], (
        "of a case that was not audited nobody knows"
    )
    bench.team.put_in_force(ADA, QueuePolicy(machine="never"))
    assert (
        bench.cases.standings_for(ADA, CaseFilter(text="open"))[1]
        == bench.cases.facets_for(ADA).minor
        == 0
    )


def a_filter(draw: random.Random, rows: list[CaseSummary]) -> dict[str, Any]:
    """Up to three conditions, each of values that some case has or none."""
    some = draw.choice(rows)
    conditions: list[dict[str, Any]] = [
        {"states": (some.state, draw.choice(rows).state)},
        {"states": (some.state,)},
        {"tiers": (some.tier or "must_look",)},
        {"severities": draw.choice((("none",), ("low", "medium"), ("none", "low")))},
        {"standings": draw.choice(((some.standing,), NOT_DECIDED, ("decided", some.standing)))},
        {"fields": (some.field or "None",)},
        {"datasets": (some.dataset or "",)},
        {"reviewers": (some.reviewer or "Nobody", "Ben")},
        {"flags": some.flags[:2] or ("drafted",)},
        {"reasons": some.reasons[:1] or ("safety",)},
        {"models": some.models[:1] or ("odd",)},
        {"quality_from": 0.3, "quality_to": draw.choice((None, 0.5))},
        {"confidence_to": 0.5},
        {"text": draw.choice(("arch", "beam deck", "ABOUT"))},
    ]
    return {
        name: value
        for condition in draw.sample(conditions, draw.randrange(4))
        for name, value in condition.items()
    }


@pytest.mark.parametrize("number", range(4))
def test_the_queue_matches_a_reference_implementation(bench: Workbench, number: int) -> None:
    draw = random.Random(number)
    many(bench, draw, 40)
    copy = Copy(bench)
    for _ in range(60):
        wanted = CaseFilter(
            **a_filter(draw, [row for row, *_ in copy.rows]),
            order=draw.choice([*ORDERS]),
            seed=5,
            size=draw.choice((3, 50)),
        )
        expected = copy.ids(wanted)
        pages = range(1, -(-len(expected) // wanted.size) + 2)
        paged = [bench.cases.find(wanted.model_copy(update={"page": page})) for page in pages]
        assert [row.id for page in paged for row in page.rows] == expected
        assert {page.total for page in paged} == {bench.cases.count(wanted)} == {len(expected)}
        whole = copy.ids(CaseFilter(order=wanted.order))
        case_id = draw.choice(whole)  # whether it matches or not
        behind = [other for other in whole[whole.index(case_id) + 1 :] if other in expected]
        before = [other for other in whole[: whole.index(case_id)] if other in expected]
        assert bench.cases.neighbor(case_id, wanted, forward=True) == next(iter(behind), None)
        assert bench.cases.neighbor(case_id, wanted, forward=False) == next(reversed(before), None)
        without = draw.sample(expected, len(expected) // 3)
        around = [other for other in (*behind, *before) if other not in without]
        left = around or [other for other in expected if other == case_id and other not in without]
        assert bench.store.cases.following(case_id, wanted, without=without) == next(
            iter(left), None
        )


@pytest.mark.parametrize("number", range(2))
def test_filter_counts_match_filtered_lists(bench: Workbench, number: int) -> None:
    draw = random.Random(number)
    many(bench, draw, 40)
    rows = bench.cases.find(CaseFilter(size=100)).rows
    bench.team.assign(ADA, [row.id for row in rows[:8]], ["Ben"])
    bench.team.assign(ADA, [row.id for row in rows[5:12]], ["Ada"])
    fields = (
        "states",
        "severities",
        "fields",
        "datasets",
        "reviewers",
        "flags",
        "reasons",
        "models",
        "assignees",
    )
    for _, field in itertools.product(range(15), fields):
        wanted = CaseFilter(**a_filter(draw, list(rows)), viewer="Ada")
        found = bench.cases.values(wanted, field)
        expected = {
            value: bench.cases.count(wanted.model_copy(update={field: (value,)})) for value in found
        }
        assert found == expected
        every = bench.cases.values(CaseFilter(), field)
        assert not any(
            bench.cases.count(wanted.model_copy(update={field: (value,)}))
            for value in {*every} - {*found}
        )


def test_next_wraps_around_until_nothing_is_left(filled: Workbench) -> None:
    wanted = CaseFilter(order="oldest")
    assert filled.team.next_open(ADA, wanted, "sure", without={"unscored"}) == "new"
    assert filled.team.next_open(ADA, wanted, "new") == "unsure"
    assert filled.team.next_open(ADA, wanted, "unsure", without={"sure", "unscored", "new"}) is None
    assert filled.team.next_open(ADA, CaseFilter(text="zeppelin"), "sure") is None


@pytest.mark.parametrize("order", ["risk", "disagreement", "least_confident"])
def test_cases_waiting_for_others_come_after_decidable_ones(filled: Workbench, order: str) -> None:
    def list_around(actor: Actor) -> list[str]:
        wanted = CaseFilter(standings=NOT_DECIDED, order=order)
        rows = [row.id for row in filled.cases.find_for(actor, wanted).rows]
        around = [
            filled.cases.neighbor(
                row, wanted.model_copy(update={"viewer": actor.name}), forward=True
            )
            for row in rows
        ]
        assert around == [*rows[1:], None]
        return rows

    first, *others = list_around(ADA)
    submit(filled, a_decision(a_case(first), f"run-{first}", verdict="escalate"))
    passed = {row.id for row in filled.cases.find(CaseFilter(standings=("nothing_found",))).rows}
    last = [
        case_id for case_id in others if order == "risk" and case_id in passed
    ]  # what needs nobody
    assert list_around(ADA) == [
        *(case_id for case_id in others if case_id not in last),
        first,
        *last,
    ]
    assert list_around(Actor(name="Ben")) == [first, *others], "somebody else can decide it"


@pytest.mark.parametrize("seed", [1, 2])
def test_the_random_order_depends_only_on_the_seed(bench: Workbench, seed: int) -> None:
    bench.store.cases.add_many(a_case(f"c-{number}") for number in range(200))
    first, again, other = (
        ids(bench, order="random", seed=number, size=200) for number in (seed, seed, 3)
    )
    assert first == again != other
    assert sorted(first) == sorted(other)
    in_order = sum(a < b for a, b in itertools.pairwise(first))
    assert 60 < in_order < 140
    steps = Counter(int(b[2:]) - int(a[2:]) for a, b in itertools.pairwise(first[:60]))
    assert len(steps) > 30, "neighbours stay at even steps from each other"
    submit(bench, a_decision(a_case("c-7"), None))
    assert ids(bench, order="random", seed=seed, size=200) == first


# counts are remembered, and dropped by whatever is written


def test_cached_counts_are_invalidated_by_every_writer(filled: Workbench) -> None:
    other = Workbench.open(filled.database)

    def count_all(bench: Workbench) -> tuple[object, ...]:
        everything = (
            bench.cases.count(CaseFilter()),
            bench.cases.find(CaseFilter(text="about")).total,
        )
        return (
            *everything,
            bench.cases.facets(),
            bench.cases.values(CaseFilter(), "fields"),
            bench.store.team.count_cases("decided"),
        )

    before = count_all(filled)
    assert count_all(other) == before == count_all(filled)
    for writer in (filled, other):
        case = a_case(f"by {id(writer)}", query="About time?", metadata={"field": "Music"})
        writer.cases.add(ADA, [case])
        submit(writer, a_decision(case, None))
        assert count_all(filled) == count_all(other) != before
        before = count_all(filled)
    assert filled.cases.values(CaseFilter(), "fields")["Music"] == 2
    assert filled.store.team.count_cases("decided") == {"Ada": 2, "Grace": 1}
    other.close()


def test_expired_leases_are_counted_again(filled: Workbench) -> None:
    ben, everything = Actor(name="Ben"), CaseFilter()
    filled.team.claim(ADA, "new")
    assert (filled.team.count_open(ADA, everything), filled.team.count_open(ben, everything)) == (
        4,
        3,
    )
    filled.store.database.execute("UPDATE leases SET until = '2020-01-01T00:00:00.000Z'")
    assert filled.team.count_open(ben, everything) == 4


def test_blind_reviewers_get_no_counts_filters_or_orders_by_audit_results(
    filled: Workbench,
) -> None:
    facets = filled.cases.facets_for(ADA)
    assert facets == filled.cases.facets()
    accept = a_case("fine")
    filled.store.cases.add(accept)
    run = a_run(accept, "run-fine")
    filled.store.runs.finish(run)
    filled.store.decisions.append(acceptance_of(run))
    filled.team.put_in_force(ADA, QueuePolicy(machine="never"))
    facets = filled.cases.facets_for(ADA)
    assert facets.flags == {}
    for hidden in ("flags", "reasons", "severities", "models"):
        assert filled.cases.values_for(ADA, CaseFilter(), hidden) == {}
    assert filled.cases.values_for(ADA, CaseFilter(), "reviewers") == facets.reviewers
    assert (
        filled.cases.values_for(ADA, CaseFilter(flags=("invalid_reference",)), "states")
        == facets.states
    )
    assert facets.standings == {"decided": 1, "not_audited": 1, "to_review": 4}
    assert facets.states == {"approved": 1, "needs_review": 4, "new": 1}
    assert facets.reviewers == {"Grace": 1}
    for wanted in (
        {"flags": ("invalid_reference",)},
        {"severities": ("none",)},
        {"quality_from": 0.9},
    ):
        assert filled.cases.find_for(ADA, CaseFilter(**wanted)).total == 6
    page = filled.cases.find_for(ADA, CaseFilter(states=("accepted",)))
    assert {(row.state, row.standing) for row in page.rows} == {("needs_review", "to_review")}
    assert filled.cases.find_for(ADA, CaseFilter(standings=("nothing_found", "decided"))).total == 5
    assert page.total == 4


@pytest.mark.parametrize(
    "text",
    ['"', "'", "a OR b", "NOT about", "about*", "NEAR(a b)", "query:about", "-about", "a AND", "(", "^about",
     "{a b}: c", ("'; DROP TABLE "
                 "cases; --"), "a\x00b", "“about”", "0.75", "a" * 100_000, "word " * 20_000, "*" * 100_000,
     "日本"],
)  # fmt: skip
def test_search_syntax_is_treated_as_text(filled: Workbench, text: str) -> None:
    assert filled.cases.find(CaseFilter(text=text)).total in (0, 5)
    assert filled.cases.count(CaseFilter()) == 5


def test_search_words_are_quoted_and_only_the_last_may_be_a_prefix() -> None:
    assert match('say "hi" the') == '"say" AND """hi""" AND "the"'
    assert match('say "hi" the', beginning=True) == '"say" AND """hi""" AND "the" *'
    assert match("to be", beginning=True) == '"to" AND "be"'
    assert match("日", beginning=True) == '"日" *'
    assert match("- ! ?") == '""'


def test_a_page_or_size_out_of_range_is_rejected() -> None:
    for wrong in (
        {"page": 0},
        {"size": 0},
        {"size": 1001},
        {"order": "best"},
        {"quality_from": 2.0},
    ):
        with pytest.raises(ValidationError):
            CaseFilter(**wrong)


@pytest.mark.parametrize("verdict", get_args(Verdict))
def test_every_verdict_has_at_most_ten_reasons_with_other_last(
    verdict: Verdict,
) -> None:
    codes = [reason.code for reason in reasons_for(verdict)]
    assert 2 <= len(codes) <= 10  # a digit chooses each, 0 the tenth
    assert codes[-1] == OTHER
    assert len(set(codes)) == len(codes)


def test_audit_results_suggest_a_reason() -> None:
    assert suggest_reasons("reject", {"fabricated_reference", "missing_information"}) == (
        "fabricated_citation",
        "incomplete",
    )
    assert suggest_reasons("approve", {"fabricated_reference"}) == ()
    assert suggest_reasons("escalate", {"critic_safety"}) == ("at_risk",)


def test_reason_suggestions_use_existing_rules() -> None:
    of_the_critic = {f"critic_{issue_type}" for issue_type in get_args(IssueType)}
    assert {rule for reason in REASONS.values() for rule in reason.rules} <= set(
        RULE
    ) | of_the_critic


def test_the_log_records_the_text_of_a_reason() -> None:
    assert reason_text("contradicted") == "The evidence contradicts it"
    assert reason_text(OTHER, "  my own words ") == "my own words"
    assert reason_text("no such code") == ""


@pytest.mark.parametrize(
    ("verdict", "words", "code"),
    [
        ("override", "Unclear or badly argued", "unclear"),
        ("override", "  Claims without a citation ", "uncited"),
        ("reject", "unsupported", "unsupported"),
        ("reject", "Checked against the evidence", OTHER),  # a reason to approve
        ("reject", "The second sentence is an opinion.", OTHER),
        ("escalate", "The sources conflict", "sources_conflict"),
        ("approve", " ", ""),
    ],
)
def test_a_reason_is_recorded_with_its_code(verdict: Verdict, words: str, code: str) -> None:
    corrected = "No." if verdict == "override" else None
    given = Decision(
        reviewer="Ada",
        case_id="a",
        run_id=None,
        verdict=verdict,
        reason=words,
        corrected_answer=corrected,
    )
    recorded = with_reason_code(given)
    assert (recorded.reason, recorded.extra.get(REASON_CODE, "")) == (words, code)
    chosen = given.model_copy(update={"extra": {REASON_CODE: "chosen"}})
    assert with_reason_code(chosen) == chosen


def test_a_state_filter_narrows_waiting_cases() -> None:
    assert waiting_in(CaseFilter(states=("new", "approved"))).states == ("new",)
    assert waiting_in(CaseFilter()).states == WAITING
    assert waiting_in(CaseFilter(fields=("Law",))).fields == ("Law",)
    # a list of auto-accepted cases is gone through like any other, and no other leads to them
    assert waiting_in(CaseFilter(states=("accepted",))).states == ("accepted",)
    assert waiting_in(CaseFilter(standings=("nothing_found",))).states == (*WAITING, "accepted")
    assert waiting_in(CaseFilter(standings=NOT_DECIDED)).states == WAITING

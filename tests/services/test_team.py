"""Several people on one queue: leases, overlap, blindness, adjudication, and what is recorded of
all of it.
"""

from __future__ import annotations

import contextlib
import random
from collections import Counter
from datetime import timedelta

import pytest

from masis.errors import CaseHeld, InputError, StaleVersion, StoreError, UnknownRecord
from masis.schema.actor import Actor
from masis.schema.base import add_time, utc_now
from masis.schema.review import Decision, LogEntry
from masis.schema.team import PolicyRule, QueuePolicy, Rubric, RubricScore
from masis.services import Workbench
from masis.services.records import CaseFilter, DecisionFilter
from tests.store.factories import a_case, a_decision, accepted, an_audited_case

ADA, BEN, CLEO = Actor(name="Ada"), Actor(name="Ben"), Actor(name="Cleo")
ALL = CaseFilter(order="oldest")


@pytest.fixture
def workbench(bench: Workbench) -> Workbench:
    """Five cases that need review."""
    for number in range(5):
        an_audited_case(bench.store, a_case(f"case-{number}"), f"run-{number}")
    return bench


def decide(
    workbench: Workbench,
    actor: Actor,
    case_id: str = "case-1",
    verdict: str = "approve",
    **keys: object,
) -> LogEntry:
    content = {
        "reviewer": actor.name,
        "case_id": case_id,
        "run_id": f"run-{case_id[5:]}",
        "iteration": 1,
    }
    decision = Decision.model_validate(
        content | {"verdict": verdict, "reason": "why", "machine_shown": ("scores",)} | keys
    )
    seen = workbench.cases.summary(case_id).version
    return workbench.reviews.submit(actor, decision, seen_version=seen)


def state(workbench: Workbench, case_id: str = "case-1") -> str:
    return workbench.cases.summary(case_id).state


def expire(workbench: Workbench, case_id: str) -> None:
    """Let every lease on a case run out, as if its reviewers had left."""
    with workbench.store.database.transaction() as connection:
        connection.execute(
            "UPDATE leases SET until = ? WHERE case_seq = (SELECT seq FROM cases WHERE id = ?)",
            [add_time(utc_now(), timedelta(minutes=-1)), case_id],
        )


# leases


def test_a_leased_case_is_refused_to_others_with_name_and_time(
    workbench: Workbench,
) -> None:
    lease = workbench.team.claim(ADA, "case-1")
    with pytest.raises(CaseHeld, match="Ada has taken case 'case-1' for decision until") as held:
        workbench.team.claim(BEN, "case-1")
    assert (held.value.by, held.value.until) == ("Ada", lease.until)
    with pytest.raises(CaseHeld):
        decide(workbench, BEN)
    assert workbench.store.decisions.head().length == 0
    decide(workbench, ADA)
    assert workbench.store.team.leases() == ()


def test_extending_a_lease_keeps_its_start(workbench: Workbench) -> None:
    first = workbench.team.claim(ADA, "case-1")
    with workbench.store.database.transaction() as connection:
        connection.execute(
            "UPDATE leases SET until = ?", [add_time(first.taken_at, timedelta(minutes=1))]
        )
    second = workbench.team.claim(ADA, "case-1")
    assert second.taken_at == first.taken_at
    assert second.until > add_time(first.taken_at, timedelta(minutes=1))


def test_a_decision_records_its_review_time_if_known(
    workbench: Workbench,
) -> None:
    taken = workbench.team.claim(ADA, "case-1").taken_at
    with workbench.store.database.transaction() as connection:
        connection.execute(
            "UPDATE leases SET taken_at = ?", [add_time(taken, timedelta(minutes=-2))]
        )
    timed, untimed = decide(workbench, ADA).decision, decide(workbench, ADA, "case-2").decision
    assert 120 <= timed.extra["seconds"] < 180
    assert "seconds" not in untimed.extra
    assert workbench.trust.reviewers(ADA)[0].seconds == timed.extra["seconds"]
    decide(workbench, ADA, "case-3", verdict="reject")
    assert workbench.trust.reviewers(ADA)[0].verdicts == {"approve": 2, "reject": 1}


def test_decision_and_adjudication_times_are_separate(workbench: Workbench) -> None:
    share(workbench)
    decide(workbench, ADA, verdict="approve", extra={"seconds": 20.0})
    decide(workbench, BEN, verdict="reject", extra={"seconds": 40.0})
    final = {
        "reviewer": "Cleo",
        "case_id": "case-1",
        "run_id": "run-1",
        "verdict": "reject",
        "reason": "why",
    }
    workbench.reviews.adjudicate(
        CLEO, Decision.model_validate({**final, "extra": {"seconds": 90.0}})
    )
    found = workbench.trust.team_stats(CLEO)
    assert (found.seconds, found.adjudication_seconds) == (30.0, 90.0)


def test_an_expired_lease_still_allows_its_reviewer_to_decide(
    workbench: Workbench,
) -> None:
    workbench.team.claim(ADA, "case-1")
    expire(workbench, "case-1")
    decide(workbench, ADA)
    assert state(workbench) == "approved"


def test_a_released_case_is_available_to_others(workbench: Workbench) -> None:
    workbench.team.claim(ADA, "case-1")
    workbench.team.release(ADA, "case-1")
    assert workbench.team.claim(BEN, "case-1").reviewer == "Ben"


def test_leased_cases_are_skipped_and_an_empty_queue_names_holders(
    workbench: Workbench,
) -> None:
    for number in range(4):
        workbench.team.claim(ADA, f"case-{number}")
    assert workbench.team.count_open(BEN, ALL) == 1
    lease = workbench.team.claim_next(BEN, ALL)
    assert lease.case_id == "case-4"
    assert workbench.team.next_open(CLEO, ALL) is None
    why = workbench.team.explain_empty_queue(CLEO, ALL)
    assert Counter(lease.reviewer for lease in why.held) == {"Ada": 4, "Ben": 1}
    assert (why.waiting, why.decided, why.skipped, why.elsewhere) == (5, 0, 0, 0)
    assert (
        workbench.team.explain_empty_queue(CLEO, CaseFilter(text="nothing has this")).elsewhere == 5
    )


# skips, assignments, tags, comments


def test_a_skipped_case_moves_to_the_end_only_for_its_reviewer(
    workbench: Workbench,
) -> None:
    workbench.team.claim(ADA, "case-0")
    workbench.team.skip(ADA, ["case-0"])
    assert workbench.store.team.leases() == ()
    assert workbench.team.next_open(ADA, ALL) == "case-1"
    assert workbench.team.next_open(BEN, ALL) == "case-0"
    workbench.team.skip(ADA, [f"case-{number}" for number in range(1, 5)])
    assert workbench.team.count_open(ADA, ALL) == 5  # they still are to be decided
    assert workbench.team.next_open(ADA, ALL) == "case-0"
    workbench.team.skip(ADA, ["case-0"])
    assert workbench.team.next_open(ADA, ALL) == "case-1"
    assert state(workbench, "case-0") == "needs_review"


def test_an_undone_skip_returns_the_case_to_its_place_and_only_its_reviewer_can_undo_it(
    workbench: Workbench,
) -> None:
    (skip,) = workbench.team.skip(ADA, ["case-0"])
    with pytest.raises(StoreError, match="Ben doesn't skip case 'case-0' any more"):
        workbench.reviews.undo(BEN, skip.id)
    workbench.reviews.undo(ADA, skip.id)
    assert workbench.team.next_open(ADA, ALL) == "case-0"
    assert workbench.store.team.own_work_among(ADA.name, ["case-0"]) == frozenset()
    (again,) = workbench.team.skip(ADA, ["case-0"])
    assert workbench.team.next_open(ADA, ALL) == "case-1"
    decide(workbench, ADA, case_id="case-0")  # a decision ends the skip
    with pytest.raises(StoreError, match="nothing to undo"):
        workbench.reviews.undo(ADA, again.id)
    assert workbench.store.decisions.verify().intact


def test_team_entries_dont_make_an_open_case_stale(
    workbench: Workbench,
) -> None:
    seen = workbench.cases.summary("case-1").version
    workbench.team.assign(BEN, ["case-1"], ["Ada"])
    workbench.team.tag(BEN, ["case-1"], ["urgent"])
    workbench.team.comment(BEN, "case-1", "Look at the second sentence.")
    workbench.team.skip(BEN, ["case-1"])
    decision = Decision(reviewer="Ada", case_id="case-1", run_id="run-1", verdict="approve")
    assert workbench.reviews.submit(ADA, decision, seen_version=seen).seq == 5
    assert workbench.store.decisions.verify().intact
    assert workbench.store.check().ok


def test_an_assigned_case_is_offered_to_its_reviewer(
    workbench: Workbench,
) -> None:
    assert workbench.team.assign(ADA, ["case-0", "case-1", "case-0"], [" Ben "]) == 2
    workbench.team.tag(ADA, ["case-1", "case-2"], ["dosage"])
    assert workbench.team.count_open(ADA, ALL) == 3
    assert workbench.team.count_open(BEN, ALL) == 5
    mine = workbench.cases.find(CaseFilter(assignees=("Ben",), order="oldest"))
    assert [row.id for row in mine.rows] == ["case-0", "case-1"]
    assert [
        row.id for row in workbench.cases.find(CaseFilter(tags=("dosage",), order="oldest")).rows
    ] == [
        "case-1",
        "case-2",
    ]
    assert workbench.team.explain_empty_queue(ADA, CaseFilter(assignees=("Ben",))).assigned == {
        "Ben": 2
    }
    assert workbench.team.loads() == {"Ben": 2}
    workbench.team.unassign(ADA, ["case-0"], ["Ben"])
    workbench.team.untag(BEN, ["case-1"], ["dosage"])
    assert workbench.team.count_open(ADA, ALL) == 4
    assert workbench.store.team.count_cases("tagged") == {"dosage": 1}
    assert workbench.store.team.count_cases("assigned") == workbench.team.loads() == {"Ben": 1}
    decide(workbench, BEN, "case-1")
    assert workbench.team.loads() == {"Ben": 0}  # what is decided waits no more


def test_assignments_skip_holders_and_can_be_undone_exactly(
    workbench: Workbench,
) -> None:
    cases = [f"case-{number}" for number in range(4)]
    workbench.team.assign(ADA, ["case-0"], ["Ben"])
    workbench.reviews.submit(
        CLEO, Decision(reviewer="Cleo", case_id="case-3", run_id="run-3", verdict="escalate")
    )
    each = workbench.team.share_out(ADA, cases, ["Ben", "Cleo"])
    assert each.given == {
        "Ben": ["case-1", "case-2", "case-3"],
        "Cleo": ["case-0", "case-1", "case-2"],
    }
    assert each.decided == {"case-3": ("Cleo",)}
    in_turn = workbench.team.share_out(ADA, cases, ["Ben", "Cleo"], one_each=True)
    assert in_turn.given == {
        "Ben": ["case-1", "case-3"],
        "Cleo": ["case-2"],
    }, "case-0 is Ben's already"
    workbench.team.give(ADA, each.given)
    assert workbench.team.loads() == {"Ben": 4, "Cleo": 3}, "an escalated case waits as well"
    workbench.team.give(ADA, each.given, back=True)
    assert workbench.store.team.count_cases("assigned") == {"Ben": 1}
    with pytest.raises(UnknownRecord):
        workbench.team.give(ADA, {"Ben": ["case-1"], "Cleo": ["nowhere"]})
    assert workbench.store.team.count_cases("assigned") == {"Ben": 1}


def test_a_queue_counts_exactly_the_cases_it_offers(workbench: Workbench) -> None:
    """The count goes by what triggers keep and by what people worked on; the list goes case by
    case.
    """
    for number in range(5, 40):
        case, review = a_case(f"case-{number}"), number % 4 > 0
        an_audited_case(workbench.store, case, f"run-{number}", needs_review=review)
    policy = QueuePolicy(reviewers=2, share=0.5)
    workbench.team.put_in_force(CLEO, policy)
    drawn = random.Random(11)
    people, ids = (ADA, BEN, CLEO), [f"case-{number}" for number in range(40)]
    for _ in range(120):
        who, case_id = drawn.choice(people), drawn.choice(ids)
        with contextlib.suppress(CaseHeld, StaleVersion, InputError, StoreError):
            match drawn.randrange(6):
                case 0:
                    workbench.team.claim(who, case_id)
                case 1:
                    workbench.team.skip(who, [case_id])
                case 2:
                    workbench.team.assign(who, [case_id], [drawn.choice(people).name])
                case 3:
                    workbench.team.tag(who, [case_id], ["dosage"])
                case 4:
                    expire(workbench, case_id)
                case _:
                    decide(workbench, who, case_id)
    filters = (
        CaseFilter(),
        CaseFilter(text="case"),
        CaseFilter(tags=("dosage",)),
        CaseFilter(assignees=("Ben",)),
        CaseFilter(quality_from=0.5),
        CaseFilter(states=("needs_review",), tags=("dosage",)),
    )
    counts = set[int]()
    for who in people:
        for wanted in filters:
            offered = workbench.team.open_to(who, wanted).model_copy(
                update={"size": 1000, "skipped_too": True}
            )
            rows = workbench.store.cases.search(offered).rows
            assert workbench.team.count_open(who, wanted) == len(rows)
            counts.add(len(rows))
    assert len(counts) > 5
    for wanted in (
        CaseFilter(states=("needs_review", "approved")),
        CaseFilter(fields=("nowhere",)),
    ):
        assert workbench.store.cases.count_matching(wanted) == len(
            workbench.store.cases.search(wanted.model_copy(update={"size": 1000})).rows
        )


def test_a_bulk_action_with_a_missing_case_changes_nothing(
    workbench: Workbench,
) -> None:
    with pytest.raises(UnknownRecord):
        workbench.team.assign(ADA, ["case-0", "nowhere"], ["Ben"])
    assert workbench.store.team.count_cases("assigned") == {}
    with pytest.raises(InputError):
        workbench.team.tag(ADA, ["case-0"], ["  "])


def test_comments_have_author_and_time_and_are_redacted_with_the_case(workbench: Workbench) -> None:
    workbench.team.comment(ADA, "case-1", "<b>Which bridge?</b>")
    ((at, comment),) = workbench.team.comments(BEN, "case-1")
    assert (comment.reviewer, comment.note) == ("Ada", "<b>Which bridge?</b>")
    assert at
    workbench.reviews.redact_case(ADA, "case-1", "asked for")
    assert workbench.team.comments(BEN, "case-1") == ()
    assert workbench.store.check().ok


# several reviewers on one case


def share(workbench: Workbench, **keys: object) -> None:
    workbench.team.put_in_force(CLEO, QueuePolicy.model_validate({"reviewers": 2} | keys))


def test_decisions_on_a_shared_case_are_hidden_until_complete(
    workbench: Workbench,
) -> None:
    share(workbench)
    before = workbench.cases.summary("case-1")
    decide(workbench, ADA, verdict="reject")
    between = workbench.cases.open_for(BEN, "case-1")
    assert (between.state, between.history, between.decision) == ("needs_review", (), None)
    assert (between.summary.version, between.summary.reviewer) == (before.version, None)
    assert workbench.reviews.entries(DecisionFilter(blind_to="Ben")).total == 0
    assert workbench.team.work(BEN, "case-1").decided_by == ()
    [own] = workbench.cases.open_for(ADA, "case-1").history
    assert (own.seq, own.previous, own.digest, own.decision.verdict) == (0, "", "", "reject")
    assert workbench.team.count_open(ADA, ALL) == 4
    assert workbench.team.count_open(BEN, ALL) == 5
    for actor, stands, decided in (
        (ADA, "waits", {"Ada": 1}),
        (BEN, "wrong", {}),
        (CLEO, "wrong", {}),
    ):
        assert workbench.cases.open_for(actor, "case-1").summary.standing == stands
        listed = workbench.cases.find_for(actor, CaseFilter(standings=(stands,), size=10)).rows
        assert "case-1" in [row.id for row in listed]
        elsewhere = CaseFilter(standings=("wrong",) if stands == "waits" else ("waits",))
        assert "case-1" not in [row.id for row in workbench.cases.find_for(actor, elsewhere).rows]
        assert workbench.cases.facets_for(actor).standings == {
            "wrong": 4,
            stands: 1 + 4 * (stands == "wrong"),
        }
        assert workbench.trust.decisions_by(actor) == decided
        assert workbench.team.work(actor, "case-1").pending == (actor == ADA)
        assert workbench.store.decisions.reviewers(actor.name) == decided
        assert workbench.team.hides_counts_from(actor)
    decide(workbench, BEN, verdict="reject")
    assert workbench.trust.decisions_by(CLEO) == {"Ada": 1, "Ben": 1}
    assert state(workbench) == "rejected"
    assert len(workbench.cases.open_for(BEN, "case-1").history) == 2


def test_a_third_reviewer_cant_decide_a_complete_case(workbench: Workbench) -> None:
    share(workbench)
    workbench.team.claim(ADA, "case-1")
    workbench.team.claim(BEN, "case-1")
    with pytest.raises(CaseHeld):
        workbench.team.claim(CLEO, "case-1")
    decide(workbench, ADA)
    with pytest.raises(CaseHeld):
        decide(workbench, CLEO)
    decide(workbench, BEN)
    with pytest.raises(StoreError, match="all 2 decisions"):
        decide(workbench, CLEO)


def test_a_corrected_decision_counts_once(workbench: Workbench) -> None:
    share(workbench)
    decide(workbench, ADA, verdict="reject")
    decide(workbench, ADA, verdict="approve")
    assert workbench.team.work(ADA, "case-1").pending == 1
    decide(workbench, BEN, verdict="approve")
    assert state(workbench) == "approved"
    assert [
        entry.decision and entry.decision.reviewer
        for entry in workbench.reviews.individual("case-1")
    ] == [
        "Ada",
        "Ben",
    ]
    with pytest.raises(StoreError, match="all 2 decisions"):
        decide(workbench, ADA, verdict="reject")


def test_reviewers_cant_undo_others_decisions_on_a_shared_case(workbench: Workbench) -> None:
    share(workbench)
    entry = decide(workbench, ADA)
    with pytest.raises(StoreError, match="You can only undo your own decision"):
        workbench.reviews.undo(BEN, entry.id)
    workbench.reviews.undo(ADA, entry.id)
    assert workbench.team.work(ADA, "case-1").pending == 0
    assert workbench.team.count_open(ADA, ALL) == 5
    decide(workbench, BEN)
    entry = decide(workbench, ADA)
    with pytest.raises(
        StoreError, match="all decisions on case 'case-1' are made, so none can be undone"
    ):
        workbench.reviews.undo(ADA, entry.id)


def test_a_disagreement_needs_an_adjudication_and_keeps_both_decisions(
    workbench: Workbench,
) -> None:
    share(workbench)
    decide(workbench, ADA, verdict="approve")
    with pytest.raises(StoreError, match="still lacks 1 of 2"):
        adjudicate(workbench)
    decide(workbench, BEN, verdict="reject")
    assert state(workbench) == "needs_adjudication"
    assert [
        row.id for row in workbench.cases.find(CaseFilter(states=("needs_adjudication",))).rows
    ] == ["case-1"]
    final = adjudicate(workbench)
    assert state(workbench) == "rejected"
    assert len(workbench.reviews.individual("case-1")) == 2
    workbench.reviews.undo(CLEO, final.id)
    assert state(workbench) == "needs_adjudication"
    assert workbench.store.check().ok
    assert workbench.store.decisions.verify().intact


@pytest.mark.parametrize(("rule", "whose"), [("agree", ("Ada", "Cleo")), ("first", ("Ada",))])
def test_an_agreed_case_lists_all_its_reviewers(
    workbench: Workbench, rule: PolicyRule, whose: tuple[str, ...]
) -> None:
    workbench.team.put_in_force(CLEO, QueuePolicy(reviewers=3, rule=rule, agree=2))
    decide(workbench, ADA, verdict="approve")
    decide(workbench, BEN, verdict="reject")
    assert workbench.reviews.settled_by("case-1") == ()
    decide(workbench, CLEO, verdict="approve")
    assert workbench.reviews.settled_by("case-1") == whose


def test_an_adjudications_reason_is_recorded_with_its_code(workbench: Workbench) -> None:
    share(workbench)
    decide(workbench, ADA, verdict="approve")
    decide(workbench, BEN, verdict="reject")
    final = adjudicate(workbench, reason="Unclear or badly argued")
    assert final.decision is not None
    assert final.decision.extra["reason_code"] == "unclear"


def adjudicate(
    workbench: Workbench, verdict: str = "reject", reason: str = "Ben is right"
) -> LogEntry:
    decision = Decision.model_validate(
        {
            "reviewer": "Cleo",
            "case_id": "case-1",
            "run_id": "run-1",
            "verdict": verdict,
            "reason": reason,
        }
    )
    return workbench.reviews.adjudicate(CLEO, decision)


@pytest.mark.parametrize(
    ("sides", "verdict", "given", "refused"),
    [
        (("approve", "reject"), "approve", {}, ""),
        (("reject", "escalate"), "approve", {}, "no reviewer approved the answer"),
        (("approve", "reject"), "escalate", {}, "every verdict except an approval needs one"),
        (("reject", "reject"), "approve", {}, "it replaces a verdict in force"),
        (("reject", "reject"), "approve", {"reason": "It holds"}, ""),
        (
            ("approve", "reject"),
            "override",
            {"reason": "Odd", "corrected_answer": " {answer}\n"},
            "changes nothing",
        ),
        (
            ("approve", "reject"),
            "override",
            {"reason": "Odd", "corrected_answer": "It is short."},
            "",
        ),
    ],
)
def test_an_adjudication_needs_a_reason_and_a_real_correction(
    workbench: Workbench, sides: tuple[str, ...], verdict: str, given: dict[str, str], refused: str
) -> None:
    share(workbench)
    for who, side in zip((ADA, BEN), sides, strict=True):
        decide(workbench, who, verdict=side)
    answer = workbench.store.cases.get("case-1").answer or ""
    content = {name: text.format(answer=answer) for name, text in given.items()}
    final = a_decision(
        a_case("case-1"), reviewer="Cleo", verdict=verdict, kind="adjudication", **content
    )
    if refused:
        with pytest.raises(InputError, match=refused):
            workbench.reviews.adjudicate(CLEO, final)
    else:
        assert workbench.reviews.adjudicate(CLEO, final).decision.verdict == verdict
    kinds = [entry.decision.kind for entry in workbench.reviews.iterate() if entry.decision]
    assert kinds.count("adjudication") == (not refused)


def test_cases_to_adjudicate_follow_the_queue_order(workbench: Workbench) -> None:
    share(workbench)
    assert workbench.team.to_adjudicate(CLEO).order == CaseFilter().order
    workbench.team.put_in_force(CLEO, QueuePolicy(reviewers=2, machine="never"))
    # what audits found is hidden, its order too
    assert workbench.team.to_adjudicate(CLEO).order == "random"


def test_setting_an_unchanged_policy_does_nothing(
    workbench: Workbench,
) -> None:
    workbench.team.put_in_force(ADA, QueuePolicy(reviewers=2))
    assert workbench.team.put_in_force(BEN, QueuePolicy(reviewers=2, version=7)).version == 1
    workbench.team.put_in_force(BEN, QueuePolicy(reviewers=3))
    history = workbench.store.team.history(QueuePolicy)
    assert [(by, policy.version, policy.reviewers) for _, by, policy in history] == [
        ("Ada", 1, 2),
        ("Ben", 2, 3),
    ]


def test_a_single_reviewer_case_needs_no_adjudication(workbench: Workbench) -> None:
    decide(workbench, ADA)
    with pytest.raises(StoreError, match="no decisions of several"):
        adjudicate(workbench)


@pytest.mark.parametrize(
    ("rule", "verdicts", "stands"),
    [
        ({"rule": "first", "reviewers": 2}, ["reject", "approve"], "rejected"),
        (
            {"rule": "agree", "agree": 2, "reviewers": 3},
            ["approve", "reject", "approve"],
            "approved",
        ),
        (
            {"rule": "agree", "agree": 2, "reviewers": 3},
            ["approve", "reject", "escalate"],
            "needs_adjudication",
        ),
        (
            {"rule": "agree", "agree": 2, "reviewers": 4},
            ["approve", "reject", "approve", "reject"],
            "needs_adjudication",
        ),
        ({"rule": "adjudicated", "reviewers": 3}, ["approve", "approve", "approve"], "approved"),
        (
            {"rule": "adjudicated", "reviewers": 3},
            ["approve", "approve", "reject"],
            "needs_adjudication",
        ),
    ],
)
def test_the_state_of_a_shared_case_follows_its_policy(
    workbench: Workbench, rule: dict[str, object], verdicts: list[str], stands: str
) -> None:
    share(workbench, **rule)
    for number, verdict in enumerate(verdicts):
        assert state(workbench) == "needs_review"
        decide(workbench, Actor(name=f"reviewer {number}"), verdict=verdict)
    assert state(workbench) == stands
    assert workbench.store.check().ok


def test_overrides_with_different_corrections_disagree(workbench: Workbench) -> None:
    share(workbench)
    decide(workbench, ADA, verdict="override", corrected_answer="In 1932 [1].")
    decide(workbench, BEN, verdict="override", corrected_answer="In March 1932 [1].")
    assert state(workbench) == "needs_adjudication"


def test_a_decision_is_upheld_by_verdict_and_correction(workbench: Workbench) -> None:
    share(workbench)
    for case_id in ("case-1", "case-2"):
        decide(workbench, ADA, case_id, verdict="override", corrected_answer="One.")
        decide(workbench, BEN, case_id, verdict="override", corrected_answer="Two.")
        content = {
            "case_id": case_id,
            "run_id": f"run-{case_id[5:]}",
            "iteration": 1,
            "corrected_answer": "One.",
        }
        final = Decision.model_validate(
            {"reviewer": "Cleo", "verdict": "override", "reason": "why", **content}
        )
        workbench.reviews.adjudicate(CLEO, final)
    for actor in (ADA, BEN):  # a rejection is upheld, and has no correction that could be
        decide(workbench, actor, "case-3", verdict="reject")
    upheld = {own.reviewer: own for own in workbench.trust.reviewers(CLEO, others=True)}
    found = [
        (own.agreed.value, own.agreed.n, own.whole, own.with_answer)
        for own in map(upheld.get, ("Ada", "Ben"))
        if own
    ]
    assert found == [(1.0, 3, 2, 2), (1.0, 3, 0, 2)]


def test_a_new_policy_doesnt_change_started_cases(workbench: Workbench) -> None:
    decide(workbench, ADA, "case-0")
    share(workbench, rule="first")
    decide(workbench, ADA, "case-1", "reject")
    share(workbench, reviewers=3)
    decide(workbench, BEN, "case-1", "approve")
    assert (state(workbench, "case-0"), state(workbench, "case-1")) == ("approved", "rejected")
    decide(workbench, BEN, "case-0", "reject")
    assert state(workbench, "case-0") == "rejected"
    assert workbench.team.work(ADA, "case-2").wanted == 3
    assert workbench.store.team.in_force(QueuePolicy).version == 2


def test_the_double_review_sample_is_the_same_for_everyone(workbench: Workbench) -> None:
    policy = QueuePolicy(reviewers=2, share=0.3)
    drawn = [case for case in range(2000) if policy.for_case(f"case-{case}")]
    assert 500 < len(drawn) < 700
    assert QueuePolicy(reviewers=2, share=0.0).for_case("case-1") is None
    workbench.team.put_in_force(CLEO, policy)
    fill_more = a_case("case-77")
    workbench.store.cases.add(fill_more)
    assert workbench.team.work(ADA, "case-77").wanted == (2 if policy.for_case("case-77") else 1)


def test_exports_exclude_incomplete_shared_cases(
    workbench: Workbench,
) -> None:
    share(workbench)
    decide(workbench, ADA, verdict="approve")
    found = {each.case["id"]: each for each in workbench.store.outcomes.iterate(ALL)}
    assert [each.entry for each in found["case-1"].judgements] == [None]
    decide(workbench, BEN, verdict="reject")
    found = {each.case["id"]: each for each in workbench.store.outcomes.iterate(ALL)}
    assert len([each for each in found["case-1"].judgements if each.entry]) == 2


# blindness to the machine


def test_a_blind_decision_is_recorded_as_blind(
    workbench: Workbench,
) -> None:
    share(workbench, machine="after")
    view = workbench.cases.open_for(ADA, "case-1")
    assert (view.machine_hidden, view.run, view.runs) == (True, None, ())
    hidden = view.summary
    assert (hidden.quality, hidden.flags, hidden.reasons, hidden.tier, hidden.run_id) == (
        None,
        (),
        (),
        None,
        None,
    )
    assert decide(workbench, ADA).decision.machine_shown == ()
    assert workbench.cases.open_for(ADA, "case-1").run is not None
    assert workbench.cases.open_for(BEN, "case-1").run is None


def test_hidden_audit_results_stay_hidden_until_the_decision(
    workbench: Workbench,
) -> None:
    share(workbench, machine="never")
    decide(workbench, ADA)
    assert workbench.cases.open_for(ADA, "case-1").machine_hidden
    decide(workbench, BEN)
    assert not workbench.cases.open_for(ADA, "case-1").machine_hidden


def test_a_blind_queue_includes_accepted_cases(
    workbench: Workbench,
) -> None:
    an_audited_case(workbench.store, a_case("case-99"), "run-99")
    workbench.store.decisions.append(accepted(workbench.store.runs.get("run-99")))
    assert workbench.store.cases.summary("case-99").state == "accepted"
    before = workbench.team.count_open(ADA, CaseFilter())
    share(workbench, machine="after")
    assert workbench.team.count_open(ADA, CaseFilter()) == before + 1
    decided = []
    while lease := workbench.team.claim_next(ADA, CaseFilter()):
        decided.append(lease.case_id)
        decide(workbench, ADA, lease.case_id)
    assert "case-99" in decided
    assert workbench.team.explain_empty_queue(ADA, CaseFilter()).decided == before + 1


def test_overall_figures_are_hidden_only_from_blind_reviewers(
    workbench: Workbench,
) -> None:
    assert not workbench.cases.hides_machine_from(ADA)
    share(workbench, machine="after")
    assert workbench.cases.hides_machine_from(ADA)
    for case_id in [row.id for row in workbench.cases.find(CaseFilter(order="oldest")).rows]:
        decide(workbench, ADA, case_id)
    assert not workbench.cases.hides_machine_from(ADA)
    assert workbench.cases.hides_machine_from(BEN)
    assert (
        workbench.cases.blind_filter(ADA, CaseFilter(order="disagreement")).order == "disagreement"
    )
    assert workbench.cases.blind_filter(BEN, CaseFilter(order="disagreement")).order == "random"


# the rubric


def test_rubric_scores_are_validated_and_record_their_version(
    workbench: Workbench,
) -> None:
    tone = RubricScore(name="Tone", categories=("plain", "stilted"))
    workbench.team.put_in_force(
        CLEO, Rubric(scores=(RubricScore(name="Clarity", low=1, high=5), tone))
    )
    entry = decide(workbench, ADA, rubric_scores={"Clarity": 4, "Tone": "plain"})
    workbench.team.put_in_force(CLEO, Rubric(scores=(tone,)))
    kept = workbench.reviews.get(entry.id).decision
    assert (kept.rubric_scores, kept.versions["team_rubric"]) == (
        {"Clarity": 4, "Tone": "plain"},
        "1",
    )
    assert [score.name for score in workbench.store.team.in_force(Rubric, 1).scores] == [
        "Clarity",
        "Tone",
    ]
    for wrong in ({"Clarity": 4}, {"Tone": "loud"}):
        with pytest.raises(InputError, match="version 2 of the rubric"):
            decide(workbench, BEN, "case-2", rubric_scores=wrong)


def test_views_can_be_saved_shared_and_removed(workbench: Workbench) -> None:
    workbench.team.save_view(ADA, "Contradicted", {"flag": "contradicted"}, shared=True)
    workbench.team.save_view(ADA, "Mine", {"assignee": "Ada"})
    assert [view.name for view in workbench.store.team.views(ADA.name)] == ["Contradicted", "Mine"]
    assert [view.name for view in workbench.store.team.views(BEN.name)] == ["Contradicted"]
    workbench.team.remove_view(ADA, workbench.store.team.views(ADA.name)[0])
    assert [view.name for view in workbench.store.team.views(ADA.name)] == ["Mine"]


def test_redaction_removes_saved_searches_for_its_words(
    workbench: Workbench,
) -> None:
    shared = workbench.store.cases.get("case-1")
    named = shared.model_copy(update={"id": "named", "query": "Did Xanthippe Quill sign it?"})
    workbench.cases.add_one(CLEO, named)
    for name, words in (
        ("Xanthippe", "xanthippe quill"),
        ("All", shared.query.split()[0]),
        ("Nothing", "unheardof"),
    ):
        # an earlier one of its name, which does not come back
        workbench.team.save_view(ADA, name, {"q": "signed"})
        workbench.team.save_view(ADA, name, {"q": words})
    workbench.reviews.redact_case(CLEO, "named", "asked")
    assert [view.name for view in workbench.store.team.views(ADA.name)] == ["All", "Nothing"]
    stored = workbench.store.database.execute("SELECT name || payload FROM team_records")
    assert not [row[0] for row in stored if "xanthippe" in row[0].casefold()]
    assert workbench.store.decisions.check_subjects().broken == ()


@pytest.mark.parametrize(
    ("in_force", "deciders", "of"),
    [
        (QueuePolicy(), 1, 2),
        (QueuePolicy(reviewers=3), 1, 2),  # the page announces another number
        (QueuePolicy(reviewers=2, seed=1), 1, 0),  # the page announces it
        (QueuePolicy(machine="after"), 1, 0),  # a blind reviewer learns nothing of others
        (QueuePolicy(machine="never"), 1, 0),
        (QueuePolicy(), 0, 0),  # nobody has decided, so the policy in force applies
    ],
)
def test_only_a_reviewer_who_sees_the_audit_learns_of_being_the_last_one_unannounced(
    workbench: Workbench, in_force: QueuePolicy, deciders: int, of: int
) -> None:
    workbench.team.put_in_force(ADA, QueuePolicy(reviewers=2))
    for actor in (BEN,)[:deciders]:
        decide(workbench, actor)
    workbench.team.put_in_force(ADA, in_force)
    asked = [workbench.team.completes_earlier_policy(each, "case-1") for each in (CLEO, BEN)]
    assert asked == [of, 0]

"""Actions on many cases: what is left out, one entry for each case, undo, and blindness."""

from __future__ import annotations

import pytest

from masis.errors import Conflict, InputError, NotAllowed, StoreError, UnknownRecord
from masis.schema.actor import Actor
from masis.schema.batches import Batch, SentenceLabel
from masis.schema.review import BATCH, SHOWN_UNKNOWN, Decision
from masis.schema.team import QueuePolicy
from masis.schema.trust import SamplePlan
from masis.services import SIGN_IN_REQUIRED, Workbench
from masis.services.batch_actions import ACTIONS, BatchAction, BatchRequest
from masis.services.desk import Desk
from masis.services.records import CaseFilter, DecisionFilter
from masis.ui.review.desk import OpenDesk, Place
from tests.audit.factories import issue
from tests.reviewing import decide
from tests.store.factories import a_case, an_audited_case, an_iteration

ADA, BEN = Actor(name="Ada"), Actor(name="Ben")
IDS = tuple(f"case-{number}" for number in range(5))


SERIOUS = (issue("critical"),)


@pytest.fixture
def workbench(bench: Workbench) -> Workbench:
    """Five cases that need review."""
    for number in range(5):
        an_audited_case(bench.store, a_case(f"case-{number}"), f"run-{number}")
    return bench


@pytest.fixture
def faulty(bench: Workbench) -> Workbench:
    """Five cases that need review, each with a serious issue."""
    iteration = an_iteration().model_copy(update={"issues": SERIOUS})
    for number in range(5):
        case = a_case(f"case-{number}")
        an_audited_case(bench.store, case, f"run-{number}", iterations=(iteration,))
    return bench


def rejecting(*cases: str, **more: object) -> BatchRequest:
    return BatchRequest.model_validate(
        {"action": "reject", "cases": cases or IDS, "reason": "unsupported"} | more
    )


def apply_batch(workbench: Workbench, request: BatchRequest, actor: Actor = ADA) -> Batch:
    return workbench.batches.run(actor, workbench.batches.start(actor, request).id)


def entries(workbench: Workbench) -> list[Decision]:
    return [entry.decision for entry in workbench.store.decisions.iterate() if entry.decision]


def test_each_case_gets_an_entry_of_its_own_that_names_the_batch(workbench: Workbench) -> None:
    batch = apply_batch(workbench, rejecting())
    assert (batch.state, batch.recorded, batch.kept) == ("applied", 5, {})
    made = entries(workbench)
    assert [entry.case_id for entry in made] == list(IDS)
    for entry in made:
        assert (entry.verdict, entry.reviewer) == ("reject", "Ada")
        assert entry.reason == "Says more than the evidence"
        assert entry.extra["reason_code"] == "unsupported"
        assert entry.extra[BATCH] == batch.id
        assert entry.extra["answer"] == "the original answer"
        assert entry.run_id == f"run-{entry.case_id[5:]}"
    assert workbench.cases.count(CaseFilter(states=("rejected",))) == 5
    assert workbench.store.check().ok


def test_a_decision_of_a_batch_records_what_the_list_showed_and_is_never_blind(
    workbench: Workbench,
) -> None:
    apply_batch(workbench, rejecting())
    assert {entry.machine_shown for entry in entries(workbench)} == {("state", "headline")}
    blind = workbench.store.database.value("SELECT sum(blind) FROM decision_payloads")
    assert blind == 0
    seconds = workbench.store.database.value("SELECT count(seconds) FROM decision_payloads")
    assert seconds == 0


def test_a_preview_records_nothing_and_says_why_cases_are_left_out(workbench: Workbench) -> None:
    decide(workbench, "case-0", "reject")
    workbench.team.claim(BEN, "case-1")
    workbench.drafts.save(ADA, "case:case-2", {"note": "half a thought"})
    workbench.reviews.redact_case(BEN, "case-3", "asked")
    length = workbench.store.decisions.head().length
    preview = workbench.batches.preview(ADA, rejecting())
    assert (preview.total, preview.included) == (5, 1)
    assert {why: cases.examples for why, cases in preview.left_out.items()} == {
        "decided": ("case-0",),
        "held": ("case-1",),
        "your_draft": ("case-2",),
        "redacted": ("case-3",),
    }
    assert workbench.store.decisions.head().length == length
    batch = apply_batch(workbench, rejecting())
    assert (batch.recorded, batch.kept) == (
        1,
        {"decided": 1, "held": 1, "redacted": 1, "your_draft": 1},
    )


def test_a_case_without_an_answer_is_left_out(workbench: Workbench) -> None:
    workbench.cases.add_one(ADA, a_case("empty", answer=None))
    preview = workbench.batches.preview(ADA, rejecting("empty", "case-0"))
    assert preview.left_out["no_answer"].examples == ("empty",)


def test_a_case_that_waits_for_adjudication_is_left_out(workbench: Workbench) -> None:
    workbench.team.put_in_force(ADA, QueuePolicy(reviewers=2))
    for reviewer, verdict in (("Ada", "reject"), ("Ben", "approve")):
        decide(workbench, "case-0", verdict, reviewer)
    preview = workbench.batches.preview(Actor(name="Cleo"), rejecting("case-0"))
    assert preview.left_out["needs_adjudication"].count == 1


def test_approving_serious_issues_needs_an_acknowledgement_of_those_listed(
    faulty: Workbench,
) -> None:
    workbench = faulty
    request = BatchRequest(action="approve", cases=IDS)
    preview = workbench.batches.preview(ADA, request)
    assert (preview.included, preview.left_out["serious_issues"].count) == (0, 5)
    assert [case.case_id for case in preview.serious] == list(IDS)
    assert all(case.issues for case in preview.serious)
    with pytest.raises(Conflict, match="no case is left"):
        workbench.batches.start(ADA, request)
    batch = apply_batch(workbench, request.model_copy(update={"acknowledge": True}))
    assert batch.recorded == 5
    assert all(entry.extra["issues_seen"] for entry in entries(workbench))


def test_only_listed_serious_cases_can_be_acknowledged(
    faulty: Workbench, monkeypatch: pytest.MonkeyPatch
) -> None:
    workbench = faulty
    monkeypatch.setattr("masis.services.batches.MOST_ACKNOWLEDGED", 2)
    request = BatchRequest(action="approve", cases=IDS, acknowledge=True)
    assert len(workbench.batches.preview(ADA, request).serious) == 2
    batch = apply_batch(workbench, request)
    assert (batch.recorded, batch.kept) == (2, {"serious_issues": 3})


def test_all_that_match_a_filter_are_included(workbench: Workbench) -> None:
    workbench.team.tag(ADA, IDS[:3], ["dates"])
    request = BatchRequest(
        action="reject", matching=CaseFilter(tags=("dates",), size=1), reason="unsupported"
    )
    assert apply_batch(workbench, request).recorded == 3


def test_too_many_matches_are_refused(
    workbench: Workbench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("masis.services.batches.MOST_IN_BATCH", 4)
    request = BatchRequest(action="tag", matching=CaseFilter(), names=("x",))
    with pytest.raises(InputError, match=r"match too many cases \(5\)"):
        workbench.batches.preview(ADA, request)


def test_a_request_names_cases_or_a_filter(workbench: Workbench) -> None:
    for wrong in ({}, {"cases": IDS, "matching": CaseFilter()}):
        with pytest.raises(InputError, match="cases: must be named, or a filter given"):
            workbench.batches.preview(ADA, BatchRequest(action="tag", names=("x",), **wrong))


@pytest.mark.parametrize(
    ("request_", "message"),
    [
        ({"action": "explode"}, "isn't an action"),
        ({"action": "reject"}, "a rejection needs one"),
        ({"action": "reject", "reason": "unsuported"}, "isn't a reason to reject"),
        ({"action": "tag"}, "a tag is missing"),
        ({"action": "assign", "names": ("x" * 201,)}, "too long"),
        ({"action": "label"}, "Name the sentence"),
    ],
)
def test_a_request_that_lacks_something_is_refused_before_any_case(
    workbench: Workbench, request_: dict[str, object], message: str
) -> None:
    with pytest.raises(InputError, match=message):
        workbench.batches.start(ADA, BatchRequest.model_validate({"cases": IDS, **request_}))
    assert not entries(workbench)


def test_a_repeated_token_returns_the_same_batch(workbench: Workbench) -> None:
    first = workbench.batches.start(ADA, rejecting(), token="once")
    workbench.batches.run(ADA, first.id)
    again = workbench.batches.start(ADA, rejecting(), token="once")
    assert workbench.batches.run(ADA, again.id).id == first.id
    assert len(entries(workbench)) == 5
    with pytest.raises(InputError, match="belongs to another batch"):
        workbench.batches.start(ADA, rejecting("case-0"), token="once")
    # another person's token is another one
    with pytest.raises(Conflict):
        workbench.batches.start(BEN, rejecting(), token="once")


def test_an_interrupted_batch_continues_without_a_second_entry(workbench: Workbench) -> None:
    batch = workbench.batches.start(ADA, rejecting(), token="once")
    assert workbench.batches.advance(ADA, batch.id, most=2).waiting == 3
    resumed = workbench.batches.start(ADA, rejecting(), token="once")
    assert workbench.batches.run(ADA, resumed.id).recorded == 5
    assert len(entries(workbench)) == 5


def test_a_cancelled_batch_keeps_what_was_recorded(workbench: Workbench) -> None:
    batch = workbench.batches.start(ADA, rejecting())
    workbench.batches.advance(ADA, batch.id, most=2)
    cancelled = workbench.batches.run(ADA, batch.id, cancelled=lambda: True)
    assert (cancelled.state, cancelled.recorded, cancelled.kept) == (
        "cancelled",
        2,
        {"cancelled": 3},
    )
    assert workbench.batches.advance(ADA, batch.id) == cancelled
    undone = workbench.batches.run(ADA, workbench.batches.start_undo(ADA, batch.id).id)
    assert undone.undone == 2


def test_one_refused_case_loses_none_of_the_others(workbench: Workbench) -> None:
    batch = workbench.batches.start(ADA, rejecting())
    decide(workbench, "case-1", "escalate", "Ben")  # after the preview
    workbench.team.claim(BEN, "case-2")
    done = workbench.batches.run(ADA, batch.id)
    assert (done.recorded, done.kept) == (3, {"changed": 1, "held": 1})


def test_a_case_that_was_audited_again_since_the_preview_is_kept(workbench: Workbench) -> None:
    request = rejecting()
    preview = workbench.batches.preview(ADA, request)
    an_audited_case(workbench.store, a_case("case-0"), "run-new")
    with pytest.raises(Conflict, match="changed since the preview"):
        workbench.batches.start(ADA, request, expected=preview.digest)


def test_a_full_disk_stops_the_batch_and_it_continues_later(
    workbench: Workbench, monkeypatch: pytest.MonkeyPatch
) -> None:
    batch = workbench.batches.start(ADA, rejecting())

    def fail(*_: object, **__: object) -> None:
        raise StoreError("the disk is full.")

    with monkeypatch.context() as patched:
        patched.setattr(type(workbench.store.decisions), "append", fail)
        with pytest.raises(StoreError, match="full"):
            workbench.batches.run(ADA, batch.id)
    assert workbench.batches.run(ADA, batch.id).recorded == 5


def test_undoing_a_batch_adds_one_entry_for_each_and_says_what_stays(
    workbench: Workbench,
) -> None:
    batch = apply_batch(workbench, rejecting())
    decide(workbench, "case-1", "approve")  # replaces the entry of the batch
    undone = workbench.batches.run(ADA, workbench.batches.start_undo(ADA, batch.id).id)
    assert (undone.state, undone.undone, undone.not_undone) == ("undone", 4, {"replaced": 1})
    undos = [entry for entry in entries(workbench) if entry.kind == "undo"]
    assert {undo.extra[BATCH] for undo in undos} == {batch.id}
    assert workbench.cases.summary("case-0").state == "needs_review"
    assert workbench.cases.summary("case-1").state == "approved"
    again = workbench.batches.run(ADA, workbench.batches.start_undo(ADA, batch.id).id)
    assert again == undone
    assert workbench.store.check().ok


def test_the_log_finds_the_entries_of_a_batch_and_their_undos(workbench: Workbench) -> None:
    batch = apply_batch(workbench, rejecting(*IDS[:2]))
    decide(workbench, "case-4", "escalate")
    workbench.batches.run(ADA, workbench.batches.start_undo(ADA, batch.id).id)
    found = workbench.reviews.entries(DecisionFilter(batch=batch.id)).rows
    assert sorted(entry.decision.kind for entry in found if entry.decision) == [
        "decision",
        "decision",
        "undo",
        "undo",
    ]


def test_tags_are_added_only_where_they_are_missing_and_undone_only_where_added(
    workbench: Workbench,
) -> None:
    workbench.team.tag(BEN, ["case-0"], ["dates"])
    workbench.team.tag(BEN, ["case-1"], ["dates", "units"])
    request = BatchRequest(action="tag", cases=IDS, names=(" dates", "units"))
    batch = apply_batch(workbench, request)
    assert (batch.recorded, batch.kept, batch.names) == (
        4,
        {"nothing_to_change": 1},
        ("dates", "units"),
    )
    workbench.batches.run(ADA, workbench.batches.start_undo(ADA, batch.id).id)
    tags = {case: workbench.team.work(ADA, case).tags for case in IDS[:3]}
    assert tags == {"case-0": ("dates",), "case-1": ("dates", "units"), "case-2": ()}


def test_tags_are_removed_and_put_back(workbench: Workbench) -> None:
    workbench.team.tag(BEN, IDS[:2], ["dates"])
    batch = apply_batch(workbench, BatchRequest(action="untag", cases=IDS, names=("dates",)))
    assert (batch.recorded, batch.kept) == (2, {"nothing_to_change": 3})
    workbench.batches.run(ADA, workbench.batches.start_undo(ADA, batch.id).id)
    assert workbench.team.work(ADA, "case-0").tags == ("dates",)


def test_cases_are_assigned_and_taken_back(workbench: Workbench) -> None:
    decide(workbench, "case-0", "reject")
    batch = apply_batch(workbench, BatchRequest(action="assign", cases=IDS, names=("Ben",)))
    assert (batch.recorded, batch.kept) == (4, {"decided": 1})
    assert workbench.team.work(ADA, "case-1").assignees == ("Ben",)
    workbench.batches.run(ADA, workbench.batches.start_undo(ADA, batch.id).id)
    assert workbench.team.work(ADA, "case-1").assignees == ()


def test_an_action_is_one_row_of_the_table(
    workbench: Workbench, monkeypatch: pytest.MonkeyPatch
) -> None:
    tag = ACTIONS["tag"]
    row = BatchAction("star", "Star", "Starred", (), lambda *_: None, tag.record, tag.undo)
    monkeypatch.setitem(ACTIONS, "star", row)
    request = BatchRequest(action="star", cases=IDS, names=("starred",))
    assert apply_batch(workbench, request).recorded == 5


def test_no_text_of_a_request_stays_with_an_ended_batch(workbench: Workbench) -> None:
    apply_batch(workbench, rejecting(reason="It says that Ada is ill."))
    stored = workbench.store.database.value("SELECT request FROM batches")
    assert stored is None


# Blindness


def test_under_a_blind_policy_only_opened_cases_are_decided(faulty: Workbench) -> None:
    workbench = faulty
    workbench.team.put_in_force(ADA, QueuePolicy(machine="after"))
    preview = workbench.batches.preview(ADA, BatchRequest(action="approve", cases=IDS))
    assert preview.left_out["not_opened"].count == 5
    assert "serious_issues" not in preview.left_out  # which would reveal the audit's results
    assert not preview.serious
    workbench.cases.note_opened(ADA, "case-1")
    workbench.cases.note_opened(BEN, "case-2")  # another person's opening doesn't count
    batch = apply_batch(workbench, BatchRequest(action="approve", cases=IDS))
    assert (batch.recorded, batch.kept) == (1, {"not_opened": 4})
    [made] = entries(workbench)
    assert (made.case_id, made.machine_shown) == ("case-1", (SHOWN_UNKNOWN,))
    assert workbench.store.database.value("SELECT sum(blind) FROM decision_payloads") == 0


def test_showing_a_case_counts_as_opening_it_for_those_who_may_decide(faulty: Workbench) -> None:
    faulty.team.put_in_force(ADA, QueuePolicy(machine="after"))
    Desk(faulty, reviewer="Ada").show("case-1")
    OpenDesk.open(faulty, ADA, Place(case="case-2"), CaseFilter(), lambda _: None)
    faulty.cases.open_for(ADA, "case-3")  # is also called for other reasons
    included = faulty.batches.preview(ADA, rejecting()).included
    assert included == 2
    strict = Workbench(faulty.store, faulty.settings, faulty.database, SIGN_IN_REQUIRED)
    strict.cases.note_opened(signed_in("Vera", "viewer"), "case-4")
    assert faulty.store.database.value("SELECT count(*) FROM openings") == 2


def test_tags_need_no_opening_under_a_blind_policy(workbench: Workbench) -> None:
    workbench.team.put_in_force(ADA, QueuePolicy(machine="never"))
    batch = apply_batch(workbench, BatchRequest(action="tag", cases=IDS, names=("x",)))
    assert batch.recorded == 5


def test_a_case_drawn_for_a_guarantee_is_left_out(workbench: Workbench) -> None:
    plan = SamplePlan.model_construct(version=1, case_ids=("case-1",))
    workbench.cases.note_opened(ADA, "case-1")
    with pytest.MonkeyPatch.context() as patched:
        real = workbench.store.team.in_force
        patched.setattr(
            workbench.store.team,
            "in_force",
            lambda kind, *more: plan if kind is SamplePlan else real(kind, *more),
        )
        preview = workbench.batches.preview(ADA, rejecting())
    assert preview.left_out["drawn"].examples == ("case-1",)


def test_others_decisions_on_a_shared_case_change_nothing_in_a_preview(
    workbench: Workbench,
) -> None:
    workbench.team.put_in_force(ADA, QueuePolicy(reviewers=2))
    before = workbench.batches.preview(ADA, rejecting())
    decide(workbench, "case-1", "reject", "Ben")
    assert workbench.batches.preview(ADA, rejecting()) == before


def test_a_batch_of_another_reviewer_of_shared_cases_is_hidden(workbench: Workbench) -> None:
    workbench.team.put_in_force(ADA, QueuePolicy(reviewers=2))
    batch = apply_batch(workbench, rejecting(), BEN)
    assert workbench.batches.newest(ADA) == ()
    assert workbench.batches.newest(BEN) == (batch,)
    with pytest.raises(UnknownRecord):
        workbench.batches.get(ADA, batch.id)
    seen = DecisionFilter(batch=batch.id, blind_to="Ada")
    assert workbench.reviews.entries(seen).total == 0


def test_the_counts_of_anothers_batch_are_hidden_while_results_are(faulty: Workbench) -> None:
    done = apply_batch(faulty, BatchRequest(action="tag", cases=IDS, names=("x",)), BEN)
    assert faulty.batches.newest(ADA) == (done,)
    faulty.team.put_in_force(ADA, QueuePolicy(machine="after"))
    assert faulty.batches.newest(ADA) == ()
    assert faulty.batches.newest(BEN) == (done,)
    assert faulty.batches.newest(signed_in("Lea", "lead")) == (done,)
    with pytest.raises(UnknownRecord):
        faulty.batches.get(ADA, done.id)


def test_the_machines_verdict_cant_be_found_by_a_filter_of_a_blind_reviewer(
    workbench: Workbench,
) -> None:
    workbench.team.put_in_force(ADA, QueuePolicy(machine="after"))
    request = BatchRequest(action="tag", matching=CaseFilter(severities=("none",)), names=("x",))
    assert workbench.batches.preview(ADA, request).total == 5


# Rights


def signed_in(name: str, role: str) -> Actor:
    return Actor.model_validate(
        {"name": name, "roles": (role,), "authenticated": True, "signed_in_by": "test"}
    )


def test_a_reviewer_assigns_to_others_and_undoes_others_batches_only_as_a_lead(
    workbench: Workbench,
) -> None:
    strict = Workbench(workbench.store, workbench.settings, workbench.database, SIGN_IN_REQUIRED)
    ada, ben, lead = (
        signed_in("Ada", "reviewer"),
        signed_in("Ben", "reviewer"),
        signed_in("Lea", "lead"),
    )
    with pytest.raises(NotAllowed):
        strict.batches.preview(ada, BatchRequest(action="assign", cases=IDS, names=("Ben",)))
    own = BatchRequest(action="assign", cases=IDS[:1], names=("Ada",))
    assert apply_batch(strict, own, ada).recorded == 1
    batch = apply_batch(strict, rejecting(), ada)
    for refused in (strict.batches.start_undo, strict.batches.cancel):
        with pytest.raises(NotAllowed):
            refused(ben, batch.id)
    undone = strict.batches.run(lead, strict.batches.start_undo(lead, batch.id).id)
    assert undone.undone == 5


def test_an_action_needs_a_name(workbench: Workbench) -> None:
    with pytest.raises(InputError, match="name is missing"):
        workbench.batches.preview(Actor(), rejecting())


# The same sentence in several cases


def label(**more: object) -> SentenceLabel:
    return SentenceLabel.model_validate({"sentence": "painted grey", "label": "unsupported"} | more)


def test_the_same_sentence_is_labeled_once_in_every_case_one_has_decided(
    workbench: Workbench,
) -> None:
    other = "Well.\n\nIT IS  painted Grey [7]. It was opened in 1931."
    an_audited_case(
        workbench.store,
        a_case("case-8", answer=other),
        "run-8",
        iterations=(an_iteration(answer=other),),
    )
    for case_id in ("case-0", "case-1", "case-8"):
        decide(workbench, case_id, "reject", iteration=1)
    request = workbench.batches.sentence_request(ADA, "case-0", label())
    assert request.cases == ("case-0", "case-1", "case-8")
    batch = apply_batch(workbench, request)
    assert batch.recorded == 3
    made = {entry.case_id: entry.labels for entry in entries(workbench) if entry.labels}
    assert [made[case][0].text for case in ("case-0", "case-8")] == ["painted grey", "painted Grey"]
    assert (made["case-8"][0].start, made["case-8"][0].label) == (
        other.index("painted"),
        "unsupported",
    )
    again = workbench.batches.preview(ADA, request)
    assert again.left_out["nothing_to_change"].count == 3


def test_undoing_a_label_restores_the_decision_before_it(workbench: Workbench) -> None:
    decide(workbench, "case-0", "reject", iteration=1)
    batch = apply_batch(workbench, workbench.batches.sentence_request(ADA, "case-0", label()))
    workbench.batches.run(ADA, workbench.batches.start_undo(ADA, batch.id).id)
    current = workbench.reviews.current("case-0")
    assert current is not None
    assert current.decision is not None
    assert (current.decision.verdict, current.decision.labels) == ("reject", ())


def test_undoing_a_label_on_a_shared_case_keeps_ones_decision(workbench: Workbench) -> None:
    workbench.team.put_in_force(ADA, QueuePolicy(reviewers=2))
    decide(workbench, "case-0", "reject", iteration=1)
    batch = apply_batch(workbench, workbench.batches.sentence_request(ADA, "case-0", label()))
    assert batch.recorded == 1
    undone = workbench.batches.run(ADA, workbench.batches.start_undo(ADA, batch.id).id)
    assert undone.undone == 1
    [own] = workbench.reviews.individual("case-0")
    assert own.decision is not None
    assert (own.decision.verdict, own.decision.labels) == ("reject", ())


def test_a_sentence_isnt_labeled_in_cases_that_others_decided(workbench: Workbench) -> None:
    decide(workbench, "case-0", "reject", iteration=1)
    decide(workbench, "case-1", "reject", "Ben", iteration=1)
    assert workbench.batches.sentence_request(ADA, "case-0", label()).cases == ("case-0",)
    with pytest.raises(InputError, match="no decision of yours"):
        workbench.batches.sentence_request(ADA, "case-1", label())
    request = BatchRequest(
        action="label", cases=IDS[:3], label=label(sentence="It is painted grey [7].", text="grey")
    )
    preview = workbench.batches.preview(ADA, request)
    assert preview.left_out["no_decision_of_yours"].examples == ("case-1", "case-2")

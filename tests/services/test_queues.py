"""Named queues: the cases they hold, the decisions made in them, and what they hide."""

from __future__ import annotations

from concurrent.futures import Future, ThreadPoolExecutor, wait
from typing import Any

import pytest

from masis.errors import CaseHeld, Conflict, InputError, NotAllowed, UnknownRecord
from masis.schema.actor import Actor
from masis.schema.review import Decision, LogEntry
from masis.schema.team import LabelType, LabelTypes, Lease, QueuePolicy, Rubric, RubricScore
from masis.schema.trust import SamplePlan
from masis.services import Workbench
from masis.services.desk import Desk
from masis.services.records import CaseFilter, DecisionFilter, ReviewQueue
from masis.store.reviews.queues import waits_in_shared_queue
from masis.views.queues import left_text
from tests.store.factories import a_case, acceptance_of, an_audited_case

ADA, BEN, CLEO, DI = (Actor(name=name) for name in ("Ada", "Ben", "Cleo", "Di"))
MEDICAL, LEGAL = CaseFilter(fields=("Medicine",)), CaseFilter(tags=("legal",))

EVERY_FILTER = CaseFilter(
    text="case",
    fields=("Medicine",),
    datasets=("none",),
    systems=("v1",),
    months=("2026-01",),
    assignees=("Ada",),
    tags=("legal",),
    flags=("uncited",),
    reasons=("error",),
    tiers=("must_look",),
    severities=("high",),
    models=("m",),
    quality_from=0.1,
    quality_to=0.9,
    confidence_from=0.1,
    confidence_to=0.9,
)


@pytest.fixture
def workbench(bench: Workbench) -> Workbench:
    """Six cases that need review: the first three are medical, case-2 and case-3 are legal."""
    for number in range(6):
        field = "Medicine" if number < 3 else "History"
        case = a_case(f"case-{number}", metadata={"field": field})
        an_audited_case(bench.store, case, f"run-{number}")
    bench.team.tag(CLEO, ["case-2", "case-3"], ["legal"])
    return bench


def set_up(workbench: Workbench, name: str, cases: CaseFilter, **changes: Any) -> ReviewQueue:
    queue = workbench.queues.create(CLEO, name, cases)
    if policy := changes.pop("policy", None):
        changes["policy"] = QueuePolicy(**policy)
    return workbench.queues.change(CLEO, queue.model_copy(update=changes)) if changes else queue


def decide(
    workbench: Workbench,
    actor: Actor,
    case_id: str = "case-2",
    verdict: str = "reject",
    queue: str | None = None,
    **keys: object,
) -> LogEntry:
    about = {"reviewer": actor.name, "case_id": case_id, "run_id": f"run-{case_id[5:]}"}
    content = {**about, "iteration": 1, "verdict": verdict, "reason": "why", "queue": queue}
    decision = Decision.model_validate(content | {"machine_shown": ("scores",)} | keys)
    seen = workbench.cases.summary(case_id).version
    return workbench.reviews.submit(actor, decision, seen_version=seen)


def waiting(workbench: Workbench, actor: Actor, queue: str = "") -> list[str]:
    open_cases = workbench.team.open_to(actor, CaseFilter(queue=queue, order="oldest"))
    return [row.id for row in workbench.cases.find_for(actor, open_cases).rows]


def state(workbench: Workbench, case_id: str = "case-2") -> str:
    return workbench.cases.summary(case_id).state


# What a queue holds


def test_a_queue_holds_what_its_filter_matches_now(workbench: Workbench) -> None:
    queue = set_up(workbench, "Legal", LEGAL)
    assert waiting(workbench, ADA, queue.id) == ["case-2", "case-3"]
    workbench.team.tag(ADA, ["case-5"], ["legal"])
    workbench.team.untag(ADA, ["case-2"], ["legal"])
    assert waiting(workbench, ADA, "Legal") == ["case-3", "case-5"]


def test_a_preview_counts_the_cases_and_those_in_other_queues(workbench: Workbench) -> None:
    set_up(workbench, "Legal", LEGAL)
    chosen = CaseFilter(fields=("Medicine",), standings=("wrong",), order="newest")
    preview = workbench.queues.preview(ADA, chosen)
    assert (preview.cases, preview.common) == (3, {"Legal": 1})
    assert preview.left_out == ("standings",)


@pytest.mark.parametrize(
    ("cases", "held"),
    [
        (CaseFilter(text="case-1"), ["case-1"]),
        (CaseFilter(text="bridge nothing-like-it"), []),
        (CaseFilter(fields=("History",)), ["case-3", "case-4", "case-5"]),
        (
            CaseFilter(flags=("invalid_reference",), fields=("History",), tags=("legal",)),
            ["case-3"],
        ),
        (CaseFilter(quality_to=0.01), []),
        (CaseFilter(months=("1999-01",)), []),
    ],
)
def test_any_filter_of_content_fills_a_queue(
    workbench: Workbench, cases: CaseFilter, held: list[str]
) -> None:
    queue = set_up(workbench, "Q", cases)
    assert waiting(workbench, ADA, queue.id) == held


def test_decisions_cant_fill_a_queue(workbench: Workbench) -> None:
    queue = set_up(workbench, "All", CaseFilter(states=("approved",), reviewers=("Ada",)))
    assert queue.cases == CaseFilter()
    with pytest.raises(ValueError, match="states"):
        ReviewQueue(id="q", name="Q", cases=CaseFilter(states=("approved",)))


def test_a_queue_filled_by_the_audit_and_a_blind_one_exclude_each_other(
    workbench: Workbench,
) -> None:
    flagged = set_up(workbench, "Flagged", CaseFilter(flags=("invalid_reference",)))
    with pytest.raises(InputError, match=r"'Flagged' is filled by results.*'Blind' hides"):
        set_up(workbench, "Blind", MEDICAL, policy={"machine": "after"})
    with pytest.raises(InputError, match="'All cases' hides"):
        workbench.team.put_in_force(CLEO, QueuePolicy(machine="never"))
    workbench.queues.archive(CLEO, flagged.id)
    blind = workbench.queues.get(CLEO, "Blind")
    workbench.queues.change(CLEO, blind.model_copy(update={"policy": QueuePolicy(machine="after")}))
    with pytest.raises(InputError, match="would reveal them"):
        workbench.queues.archive(CLEO, flagged.id, restore=True)


def test_an_unknown_queue_is_an_error_that_lists_the_queues(workbench: Workbench) -> None:
    set_up(workbench, "Legal", LEGAL)
    with pytest.raises(UnknownRecord, match=r"no queue 'Lega'.*'All cases', 'Legal'"):
        waiting(workbench, ADA, "Lega")


def test_two_queues_cant_have_one_name(workbench: Workbench) -> None:
    queue = set_up(workbench, "Legal", LEGAL)
    for name in ("legal ", "ALL CASES", "", "x" * 61, "a\x00b"):
        with pytest.raises(InputError, match=r"name|already"):
            set_up(workbench, name, MEDICAL)
    workbench.queues.archive(CLEO, "Legal")
    assert set_up(workbench, "Legal", MEDICAL).id == "legal-2"
    assert workbench.queues.get(ADA, "Legal").id == "legal-2"
    assert workbench.queues.get(ADA, queue.id).archived


def test_two_leads_who_change_a_queue_at_once_get_a_conflict(workbench: Workbench) -> None:
    seen = set_up(workbench, "Legal", LEGAL)
    first = workbench.queues.change(CLEO, seen.model_copy(update={"people": ("Ada",)}))
    with pytest.raises(Conflict, match="version 2 is in force, and your change is to version 1"):
        workbench.queues.change(DI, seen.model_copy(update={"instructions": "Read."}))
    assert workbench.queues.get(ADA, "legal") == first
    assert workbench.queues.change(DI, first) == first


def test_two_leads_who_create_a_queue_at_once_dont_overwrite_it(
    bench: Workbench, monkeypatch: pytest.MonkeyPatch
) -> None:
    in_force, team = bench.store.team.in_force, bench.store.team
    others = list[Future[ReviewQueue]]()
    with ThreadPoolExecutor(1) as pool:

        def create_another(kind: Any) -> Any:
            monkeypatch.setattr(team, "in_force", in_force)
            others.append(pool.submit(bench.queues.create, DI, "Law", CaseFilter()))
            wait(others, timeout=1)  # It ends within this time only if it needn't wait for us.
            return in_force(kind)

        monkeypatch.setattr(team, "in_force", create_another)
        queue = bench.queues.create(CLEO, "Law", CaseFilter())
        with pytest.raises(InputError, match="already"):
            others[0].result(30)
    assert queue.version == 1
    assert team.queues() == (queue,)


def test_a_name_and_an_id_stand_for_one_queue(workbench: Workbench) -> None:
    law = set_up(workbench, "Law", LEGAL)
    workbench.queues.change(CLEO, law.model_copy(update={"name": "Medical one"}))
    for name in ("law", "LAW", " law "):
        with pytest.raises(InputError, match="already"):
            set_up(workbench, name, MEDICAL)
    set_up(workbench, "law-2", MEDICAL)
    assert set_up(workbench, "law 2", MEDICAL).id == "law-2-2"
    workbench.queues.archive(CLEO, "law")
    with pytest.raises(InputError, match="already"):
        set_up(workbench, "law", MEDICAL)


def test_a_queue_can_be_archived_whatever_happened_to_its_name_and_label_types(
    workbench: Workbench,
) -> None:
    names = ("style", "tone")
    kinds = tuple(LabelType(name=name) for name in names)
    team_types = workbench.team.put_in_force(CLEO, LabelTypes(types=kinds))
    queue = set_up(workbench, "Legal", LEGAL, label_types=("style",))
    workbench.team.put_in_force(CLEO, team_types.model_copy(update={"types": kinds[1:]}))
    assert workbench.queues.archive(CLEO, "Legal").archived
    set_up(workbench, "Legal", MEDICAL)
    stored = workbench.queues.get(ADA, queue.id)
    changed = workbench.queues.change(CLEO, stored.model_copy(update={"instructions": "Closed."}))
    assert changed.instructions == "Closed."
    with pytest.raises(InputError, match="already"):
        workbench.queues.archive(CLEO, queue.id, restore=True)


@pytest.mark.parametrize("name", ["", "  ", "all  cases", " All Cases "])
def test_the_first_queue_has_one_name_however_it_is_typed(workbench: Workbench, name: str) -> None:
    decide(workbench, ADA, "case-5", queue=name)
    assert state(workbench, "case-5") == "rejected"
    assert workbench.queues.label_types(ADA, name) == workbench.queues.label_types(ADA)
    assert len(waiting(workbench, BEN, name)) == 5
    desk = Desk(workbench, reviewer="Ada")
    assert desk.preview_batch("tag", names=["x"], queue=name, fields=["History"]).included == 2
    with pytest.raises(InputError, match="can't be archived"):
        workbench.queues.archive(CLEO, name)


@pytest.mark.parametrize("policy", [[1], "two", 2, None, [("reviewers", "x")]])
def test_a_policy_of_another_type_is_an_input_error(workbench: Workbench, policy: object) -> None:
    set_up(workbench, "Legal", LEGAL)
    with pytest.raises(InputError, match="policy"):
        Desk(workbench, reviewer="Cleo").change_queue("Legal", policy=policy)


def test_a_preview_says_that_words_are_whole_words(workbench: Workbench) -> None:
    assert workbench.queues.preview(ADA, CaseFilter(text="case-1")).whole_words
    assert not workbench.queues.preview(ADA, MEDICAL).whole_words


def test_the_first_queue_cant_be_archived(workbench: Workbench) -> None:
    for name in ("", "All cases"):
        with pytest.raises(InputError, match="can't be archived"):
            workbench.queues.archive(CLEO, name)


@pytest.mark.parametrize("policy", [{"machine": "after"}, {"reviewers": 2}])
def test_a_check_of_one_case_in_the_queues_reads_no_other_case(
    workbench: Workbench, policy: dict[str, Any]
) -> None:
    set_up(workbench, "Legal", LEGAL, policy=policy)
    set_up(workbench, "Medical", MEDICAL, policy=policy)
    asked = list[str]()
    with workbench.store.database.reading() as connection:  # given back, it is the one lent next
        connection.set_trace_callback(asked.append)
    assert workbench.store.team.is_hidden_by_queue("case-2", "Ada") == ("machine" in policy)
    workbench.team.claim(ADA, "case-2")
    with workbench.store.database.reading() as connection:
        assert waits_in_shared_queue(connection, 3) == ("reviewers" in policy)
    connection.set_trace_callback(None)
    looks = [sql for sql in asked if "FROM cases" in sql and "'settled'" in sql]
    assert looks
    for sql in looks:
        plan = [row["detail"] for row in connection.execute(f"EXPLAIN QUERY PLAN {sql}")]
        assert not [step for step in plan if step.startswith("SCAN cases")]


def test_any_filter_of_a_shared_queue_fits_statements_that_join_tables(
    workbench: Workbench,
) -> None:
    set_up(workbench, "Q", EVERY_FILTER, policy={"reviewers": 2, "machine": "first"})
    workbench.team.comment(ADA, "case-2", "a bridge")
    assert workbench.store.decisions.reviewers("Ben")["Ada"] == 1
    assert workbench.store.minimal_evidence.of_case("case-2", "Ben") == ()
    assert workbench.reviews.entries(DecisionFilter(blind_to="Ben")).rows
    assert workbench.cases.find_for(BEN, CaseFilter(text="bridge")).total == 6


# Decisions in a queue


@pytest.mark.parametrize("name", ["medical", "Medical", " MEDICAL "])
def test_a_queue_named_in_any_way_offers_nobody_a_case_twice(
    workbench: Workbench, name: str
) -> None:
    queue = set_up(workbench, "Medical", MEDICAL, policy={"reviewers": 2})
    set_up(workbench, "Old", MEDICAL)
    workbench.team.claim(BEN, "case-0", "Medical")
    decide(workbench, ADA, "case-2", queue=queue.id)
    assert waiting(workbench, ADA, name) == ["case-0", "case-1"]
    workbench.team.claim(CLEO, "case-0", "Medical")
    assert waiting(workbench, DI, name) == ["case-1", "case-2"]


def test_a_case_that_a_colleague_just_settled_in_the_queue_isnt_given_out(
    workbench: Workbench, monkeypatch: pytest.MonkeyPatch
) -> None:
    queue = set_up(workbench, "Legal", LEGAL)
    claim = workbench.store.team.claim

    def claim_late(case_id: str, *keys: Any) -> Lease:
        if case_id == "case-2":
            monkeypatch.setattr(workbench.store.team, "claim", claim)
            decide(workbench, ADA, case_id, queue=queue.id)
        return claim(case_id, *keys)

    monkeypatch.setattr(workbench.store.team, "claim", claim_late)
    lease = workbench.team.claim_next(BEN, CaseFilter(queue="Legal", order="oldest"))
    assert lease is not None
    assert lease.case_id == "case-3"
    assert [kept.case_id for kept in workbench.store.team.leases()] == ["case-3"]


def test_a_case_waits_in_each_queue_for_decisions_made_there(workbench: Workbench) -> None:
    medical, legal = set_up(workbench, "Medical", MEDICAL), set_up(workbench, "Legal", LEGAL)
    entry = decide(workbench, ADA, queue=medical.id)
    assert entry.decision is not None
    assert entry.decision.queue == medical.id
    assert waiting(workbench, BEN, medical.id) == ["case-0", "case-1"]
    assert waiting(workbench, BEN, legal.id) == ["case-2", "case-3"]
    assert state(workbench) == "rejected"
    assert "case-2" not in waiting(workbench, BEN)  # the first queue follows the case's status
    decide(workbench, BEN, verdict="escalate", queue=legal.id)
    assert waiting(workbench, CLEO, legal.id) == ["case-3"]
    assert state(workbench) == "escalated"  # the newest decision
    assert workbench.store.check().ok


def test_a_decision_in_the_first_queue_settles_no_named_queue(workbench: Workbench) -> None:
    legal = set_up(workbench, "Legal", LEGAL)
    decide(workbench, ADA)
    assert state(workbench) == "rejected"
    assert waiting(workbench, BEN, legal.id) == ["case-2", "case-3"]


def test_the_policy_of_the_queue_says_how_many_decide(workbench: Workbench) -> None:
    legal = set_up(workbench, "Legal", LEGAL, policy={"reviewers": 2})
    decide(workbench, ADA, queue=legal.id)
    assert state(workbench) == "needs_review"
    assert waiting(workbench, ADA, legal.id) == ["case-3"]
    assert waiting(workbench, BEN, legal.id) == ["case-2", "case-3"]
    assert workbench.cases.open_for(BEN, "case-2").history[0].decision.kind == "tag"
    decide(workbench, BEN, queue=legal.id)
    assert state(workbench) == "rejected"
    assert workbench.store.check().ok
    with pytest.raises(CaseHeld, match="all 2 decisions"):
        decide(workbench, CLEO, queue=legal.id)


def test_a_decision_elsewhere_is_held_until_a_shared_queue_has_its_decisions(
    workbench: Workbench,
) -> None:
    legal = set_up(workbench, "Legal", LEGAL, policy={"reviewers": 2})
    version = workbench.cases.summary("case-2").version
    decide(workbench, CLEO, verdict="escalate")
    for reader in (ADA, BEN, DI):
        seen = workbench.cases.open_for(reader, "case-2")
        assert (seen.state, seen.summary.version) == ("needs_review", version)
        assert [entry.decision.kind for entry in seen.history] == ["tag"]
        assert workbench.store.decisions.reviewers(reader.name) == {"Cleo": 2}
    assert workbench.cases.open_for(CLEO, "case-2").summary.standing == "waits"
    assert workbench.store.check().ok
    decide(workbench, ADA, queue=legal.id)
    assert state(workbench) == "needs_review"
    decide(workbench, BEN, queue=legal.id)
    assert state(workbench) == "rejected"
    assert len(workbench.cases.open_for(DI, "case-2").history) == 4
    assert workbench.store.check().ok


def test_reviewers_of_two_shared_queues_dont_see_each_others_decisions(
    workbench: Workbench,
) -> None:
    legal = set_up(workbench, "Legal", LEGAL, policy={"reviewers": 2})
    medical = set_up(workbench, "Medical", MEDICAL, policy={"reviewers": 2})
    for actor in (ADA, BEN):
        decide(workbench, actor, queue=legal.id)
    seen = workbench.cases.open_for(CLEO, "case-2")
    assert (seen.state, len(seen.history)) == ("needs_review", 1)
    assert waiting(workbench, DI, legal.id) == ["case-3"]  # the queue itself is done with it
    for actor in (CLEO, DI):
        decide(workbench, actor, queue=medical.id)
    assert state(workbench) == "rejected"


def test_held_decisions_count_once_the_queue_is_archived(workbench: Workbench) -> None:
    legal = set_up(workbench, "Legal", LEGAL, policy={"reviewers": 2})
    decide(workbench, ADA)
    assert state(workbench) == "needs_review"
    workbench.queues.archive(CLEO, legal.id)
    assert state(workbench) == "rejected"
    assert workbench.store.check().ok


def test_an_archived_queue_hides_nothing_that_it_still_waited_for(workbench: Workbench) -> None:
    legal = set_up(workbench, "Legal", LEGAL, policy={"reviewers": 2})
    decide(workbench, ADA, queue=legal.id)
    assert len(workbench.cases.open_for(BEN, "case-2").history) == 1
    workbench.queues.archive(CLEO, legal.id)
    assert len(workbench.cases.open_for(BEN, "case-2").history) == 2
    assert state(workbench) == "needs_review"
    assert workbench.store.check().ok


def test_an_undone_decision_in_a_shared_queue_stays_hidden(workbench: Workbench) -> None:
    legal = set_up(workbench, "Legal", LEGAL, policy={"reviewers": 2})
    entry = decide(workbench, ADA, queue=legal.id)
    workbench.reviews.undo(ADA, entry.id)
    seen = workbench.cases.open_for(BEN, "case-2")
    assert [entry.decision.kind for entry in seen.history if entry.decision] == ["tag"]
    assert workbench.store.decisions.reviewers("Ben") == {"Cleo": 2}
    assert waiting(workbench, ADA, legal.id) == ["case-2", "case-3"]
    assert workbench.store.check().ok


def test_held_decisions_count_once_the_case_leaves_the_queue(workbench: Workbench) -> None:
    set_up(workbench, "Legal", LEGAL, policy={"reviewers": 2})
    decide(workbench, ADA)
    workbench.team.untag(CLEO, ["case-2"], ["legal"])
    assert state(workbench) == "rejected"
    assert workbench.store.check().ok


def test_a_held_decision_can_be_undone_and_repeated(workbench: Workbench) -> None:
    set_up(workbench, "Legal", LEGAL, policy={"reviewers": 2})
    entry = decide(workbench, ADA)
    workbench.reviews.undo(ADA, entry.id)
    assert workbench.cases.open_for(ADA, "case-2").summary.standing == "wrong"
    decide(workbench, ADA, verdict="escalate")
    assert workbench.store.check().ok


def test_reviewers_who_differ_in_a_queue_need_an_adjudication(workbench: Workbench) -> None:
    legal = set_up(workbench, "Legal", LEGAL, policy={"reviewers": 2})
    decide(workbench, ADA, queue=legal.id)
    decide(workbench, BEN, verdict="escalate", queue=legal.id)
    assert state(workbench) == "needs_adjudication"
    assert workbench.team.work(CLEO, "case-2").decided_by == ("Ada", "Ben")
    with pytest.raises(Conflict, match="you decided this case yourself"):
        workbench.reviews.adjudicate(ADA, decision_of(ADA))
    final = workbench.reviews.adjudicate(CLEO, decision_of(CLEO))
    assert final.decision is not None
    assert final.decision.queue == legal.id
    assert state(workbench) == "rejected"
    assert waiting(workbench, DI, legal.id) == ["case-3"]
    assert workbench.store.check().ok


def decision_of(actor: Actor) -> Decision:
    about = {"reviewer": actor.name, "case_id": "case-2", "run_id": "run-2", "iteration": 1}
    return Decision.model_validate({**about, "verdict": "reject", "reason": "why"})


def test_a_queue_that_others_archived_or_narrowed_keeps_the_draft(workbench: Workbench) -> None:
    legal = set_up(workbench, "Legal", LEGAL)
    workbench.drafts.save(ADA, "case:case-2", {"note": "half"})
    workbench.queues.change(
        CLEO, legal.model_copy(update={"name": "Law", "cases": CaseFilter(fields=("Law",))})
    )
    with pytest.raises(Conflict, match="isn't in the queue 'Law', whose filter may have changed"):
        decide(workbench, ADA, queue=legal.id)
    workbench.queues.archive(CLEO, "Law")
    with pytest.raises(Conflict, match=r"'Law' is archived.*Your draft is kept"):
        decide(workbench, ADA, queue=legal.id)
    assert workbench.drafts.get(ADA, "case:case-2").values == {"note": "half"}


def test_a_renamed_queue_keeps_its_decisions_and_its_address(workbench: Workbench) -> None:
    legal = set_up(workbench, "Legal", LEGAL)
    decide(workbench, ADA, queue="legal")
    workbench.queues.change(CLEO, legal.model_copy(update={"name": "Law"}))
    assert waiting(workbench, BEN, legal.id) == ["case-3"]
    decide(workbench, BEN, "case-3", queue=legal.id)
    versions = workbench.store.team.queue_history(legal.id)
    assert [(by, queue.name, queue.version) for _, by, queue in versions] == [
        ("Cleo", "Legal", 1),
        ("Cleo", "Law", 2),
    ]
    assert workbench.store.check().ok


def test_an_altered_version_of_a_queue_is_found(workbench: Workbench) -> None:
    set_up(workbench, "Legal", LEGAL)
    decide(workbench, ADA, queue="legal")
    with workbench.store.database.transaction() as connection:
        connection.execute("DROP TRIGGER team_records_no_update")
        connection.execute("UPDATE team_records SET payload = replace(payload, 'Legal', 'Lugal')")
    broken = workbench.store.decisions.check_subjects().broken
    assert any("the queue that was set at" in problem for problem in broken)


# People, rubric and label types


def test_only_the_people_of_a_queue_decide_its_cases(workbench: Workbench) -> None:
    legal = set_up(workbench, "Legal", LEGAL, people=("Ada",))
    assert waiting(workbench, ADA, legal.id) == ["case-2", "case-3"]
    assert waiting(workbench, BEN, legal.id) == []
    assert waiting(workbench, BEN) == ["case-0", "case-1", "case-4", "case-5"]
    with pytest.raises(NotAllowed, match=r"people of the queue 'Legal'\. A lead can add you"):
        decide(workbench, BEN, queue=legal.id)
    with pytest.raises(NotAllowed, match=r"waits in the queue 'Legal'.*A lead can add you"):
        decide(workbench, BEN)
    with pytest.raises(NotAllowed, match="A lead can add you"):
        workbench.team.claim(BEN, "case-2")
    assert workbench.team.claim_next(BEN, CaseFilter(queue=legal.id)) is None
    decide(workbench, ADA, queue=legal.id)
    decide(workbench, BEN, "case-0")


def test_a_queue_has_its_own_rubric_and_offers_some_label_types(workbench: Workbench) -> None:
    workbench.team.put_in_force(
        CLEO, LabelTypes(types=(LabelType(name="wrong dose"), LabelType(name="wrong court")))
    )
    rubric = Rubric(scores=(RubricScore(name="Precedent", low=1, high=3),))
    legal = set_up(workbench, "Legal", LEGAL, rubric=rubric, label_types=("wrong court",))
    with pytest.raises(InputError, match="rubric of the queue 'Legal'"):
        decide(workbench, ADA, queue=legal.id, rubric_scores={"Precedent": 9})
    label = {"label": "wrong dose", "severity": "high", "target": "span"}
    with pytest.raises(InputError, match="wrong dose"):
        decide(workbench, ADA, queue=legal.id, labels=[label | words_of(workbench)])
    entry = decide(
        workbench,
        ADA,
        queue=legal.id,
        rubric_scores={"Precedent": 3},
        labels=[label | words_of(workbench) | {"label": "wrong court"}],
    )
    assert entry.decision is not None
    assert "team_rubric" not in entry.decision.versions
    with pytest.raises(InputError, match="isn't one of the team's label types"):
        workbench.queues.change(CLEO, legal.model_copy(update={"label_types": ("no such",)}))


def words_of(workbench: Workbench) -> dict[str, Any]:
    run = workbench.runs.get("run-2")
    answer = run.iterations[0].answer
    return {"start": 0, "end": 6, "text": answer[:6]}


# Hidden verdicts


@pytest.mark.parametrize("machine", ["after", "never"])
def test_a_blind_queue_hides_the_verdict_in_every_queue(workbench: Workbench, machine: str) -> None:
    set_up(workbench, "Open", LEGAL)
    blind = set_up(workbench, "Blind", MEDICAL, policy={"machine": machine})
    for case_id, hidden in (("case-2", True), ("case-3", False)):
        assert workbench.cases.open_for(ADA, case_id).machine_hidden is hidden
        assert workbench.team.machine_hidden(ADA, case_id) is hidden
    for queue in ("", "open", "blind"):
        rows = workbench.cases.find_for(ADA, CaseFilter(queue=queue)).rows
        [row] = [row for row in rows if row.id == "case-2"]
        assert (row.standing, row.quality, row.flags) == ("to_review", None, ())
    flagged = CaseFilter(flags=("invalid_reference",), quality_to=0.1)
    assert workbench.cases.find_for(ADA, flagged).total == 6  # the filter isn't used
    assert workbench.cases.hides_figures_from(ADA)
    decide(workbench, ADA, queue="open")  # doesn't show it, and doesn't settle the blind queue
    assert workbench.cases.open_for(ADA, "case-2").machine_hidden
    assert workbench.cases.open_for(BEN, "case-2").machine_hidden
    entry = decide(workbench, BEN, queue=blind.id, machine_shown=())
    assert entry.decision is not None
    assert entry.decision.machine_shown == ()
    assert not workbench.cases.open_for(ADA, "case-2").machine_hidden


def test_a_blind_queue_lists_accepted_answers_like_all_others(workbench: Workbench) -> None:
    run = workbench.runs.get("run-1")
    workbench.store.decisions.append(acceptance_of(run))
    shown = set_up(workbench, "Shown", MEDICAL)
    in_list = CaseFilter(queue=shown.id, waits_in_queue=True)
    assert workbench.cases.find_for(ADA, in_list).total == 2
    assert workbench.queues.figures(ADA, shown.id).left == 2
    blind = set_up(workbench, "Blind", MEDICAL, policy={"machine": "after"})
    assert waiting(workbench, ADA, blind.id) == ["case-0", "case-1", "case-2"]
    log = workbench.reviews.entries(DecisionFilter(case_id="case-1", blind_to="Ada"))
    assert log.total == 0


def test_a_case_doesnt_name_queues_that_its_hidden_audit_fills(workbench: Workbench) -> None:
    set_up(workbench, "Flagged", CaseFilter(flags=("invalid_reference",)))
    set_up(workbench, "Legal", LEGAL)
    plan = SamplePlan.model_construct(case_ids=("case-2",), version=1)
    workbench.store.team.put_in_force("Cleo", plan)
    for case_id, names in (("case-2", ["Legal"]), ("case-3", ["Flagged", "Legal"])):
        assert [queue.name for queue in workbench.queues.of_case(ADA, case_id)] == names
    assert "case-2" not in waiting(workbench, ADA, "Flagged")
    assert "case-2" in waiting(workbench, ADA, "Legal")


def test_progress_counts_a_queue_and_the_persons_pace(workbench: Workbench) -> None:
    legal = set_up(workbench, "Legal", LEGAL)
    figures = workbench.queues.figures(ADA, legal.id)
    assert (figures.cases, figures.left, figures.own_left, figures.seconds) == (2, 2, 2, None)
    decide(workbench, ADA, queue=legal.id, extra={"seconds": 30})
    figures = workbench.queues.figures(ADA, "Legal")
    assert (figures.cases, figures.left, figures.own_left, figures.seconds) == (2, 1, 1, 30.0)
    assert left_text(figures) == "1 of 2 left, at your pace 30 s"
    assert left_text(workbench.queues.figures(BEN, "Legal")) == "1 of 2 left"

"""The use cases around audits and decisions."""

from __future__ import annotations

import json
from itertools import islice
from pathlib import Path
from typing import Any

import pytest

from masis.api import stepwise
from masis.errors import InputError, StaleVersion, StoreError, UnknownRecord
from masis.schema.actor import ANONYMOUS, Actor
from masis.schema.case import Case
from masis.schema.review import Decision
from masis.schema.run import Run
from masis.services import POLICY, Workbench, demo_cases, exams
from masis.services.arrivals.imports import PREVIEW_ROWS
from masis.services.drafts import case_subject
from masis.services.maintenance.retention import rule_of
from masis.services.records import CaseFilter
from masis.services.reviews import ReviewService
from masis.settings import Settings
from masis.store import Store
from tests.api.test_stepwise import RIGHT, WRONG, bridge
from tests.cases import case_of
from tests.reviewing import ADA, decide, undone
from tests.waiting import until

CLEAN = case_of(
    "The bridge is 120 metres long [chunk_1].",
    {"chunk_1": "The bridge is 120 metres long. It was opened to traffic in 1931."},
    case_id="clean",
)
FAULTY = CLEAN.model_copy(
    update={"id": "faulty", "answer": "The bridge is 120 metres long [chunk_99]."}
)
NO_SPOT_CHECK = Settings(spot_check_share=0)


@pytest.fixture
def audited(tmp_path: Path) -> Workbench:
    opened = Workbench.open(tmp_path / "masis.db", NO_SPOT_CHECK)
    opened.cases.add(ADA, [CLEAN, FAULTY])
    return opened


def decision(**changes: Any) -> Decision:
    values: dict[str, Any] = {
        "reviewer": "Ada",
        "case_id": "faulty",
        "run_id": None,
        "verdict": "approve",
    }
    return Decision(**(values | changes))


@pytest.mark.spec("REQ-CRITIC-SEC-001")
def test_opening_creates_one_database_file(tmp_path: Path) -> None:
    Workbench.open(tmp_path / "new" / "masis.db")
    assert (tmp_path / "new" / "masis.db").is_file()


def test_an_accepted_run_is_logged_as_accepted_by_policy(audited: Workbench) -> None:
    run = audited.audits.audit(ADA, CLEAN)
    view = audited.cases.open("clean")
    assert not run.needs_review
    assert view.state == "accepted"
    assert (view.decision.decision.source, view.decision.decision.reviewer) == ("CODE", POLICY.name)


@pytest.mark.parametrize(("case", "share"), [(CLEAN, 1), (FAULTY, 0)])
def test_spot_checks_and_faulty_answers_need_review(
    audited: Workbench, case: Case, share: int
) -> None:
    run = audited.audits.audit(ADA, case, settings=Settings(spot_check_share=share))
    assert (run.spot_check, run.needs_review) == (case == CLEAN, case == FAULTY)
    assert audited.cases.open(case.id).state == "needs_review"


def test_a_case_audited_with_the_same_settings_needs_no_audit(audited: Workbench) -> None:
    assert audited.audits.is_needed(CLEAN)
    audited.audits.audit(ADA, CLEAN)
    assert not audited.audits.is_needed(CLEAN)
    assert audited.audits.is_needed(CLEAN, Settings(max_iterations=1))


@pytest.mark.parametrize(
    ("changes", "lacking"),
    [
        ({"verdict": None}, "verdict"),
        ({"kind": "undo", "verdict": None}, "entry that it reverses"),
    ],
)
def test_an_incomplete_decision_names_the_missing_field(
    changes: dict[str, Any], lacking: str
) -> None:
    with pytest.raises(ValueError, match=lacking):
        decision(**changes)


def test_the_demo_can_be_loaded_twice(tmp_path: Path) -> None:
    bench = Workbench.open(tmp_path / "demo.db")
    first = bench.cases.add(ADA, demo_cases())
    assert first.added == len(list(demo_cases())) >= 40
    assert bench.cases.add(ADA, demo_cases()).unchanged == first.added


# A decision is submitted once, against the case as it was seen, under the actor's name, and removes
# its draft


def a_submitted(token: str = "t1", verdict: str = "approve", case_id: str = "case-1") -> Decision:
    return Decision.model_validate(
        {
            "reviewer": "Ada",
            "case_id": case_id,
            "run_id": None,
            "verdict": verdict,
            "token": token,
            "reason": "why",
        }
    )


@pytest.fixture
def reviews(store: Store) -> ReviewService:
    return ReviewService(store)


def test_a_decision_deletes_its_draft_and_a_rejection_keeps_it(
    store: Store, reviews: ReviewService
) -> None:
    store.drafts.save("Ada", case_subject("case-1"), {"note": "half"})
    with pytest.raises(StaleVersion):
        reviews.submit(ADA, a_submitted(), seen_version=store.cases.summary("case-1").version - 1)
    assert store.drafts.get("Ada", case_subject("case-1")).values == {"note": "half"}
    assert store.decisions.head().length == 0
    reviews.submit(ADA, a_submitted(), seen_version=store.cases.summary("case-1").version)
    assert store.drafts.get("Ada", case_subject("case-1")).values == {}


def test_the_log_records_the_actor_and_versions(
    reviews: ReviewService,
) -> None:
    decision = reviews.submit(Actor(name="Ben"), a_submitted()).decision
    assert (decision.reviewer, set(decision.versions)) == ("Ben", {"app", "rubric"})


def test_deciding_needs_a_name(reviews: ReviewService) -> None:
    with pytest.raises(InputError, match="name is missing"):
        reviews.submit(ANONYMOUS, a_submitted())


def test_repeated_undo_undoes_one_decision(store: Store, reviews: ReviewService) -> None:
    reviews.submit(ADA, a_submitted("first", "reject"))
    second = reviews.submit(ADA, a_submitted("second"))
    undone = [reviews.undo(ADA, second.id) for _ in range(3)]
    assert len({entry.id for entry in undone}) == 1
    assert reviews.undone_by(second) == undone[0]
    assert store.cases.summary("case-1").state == "rejected"


def test_a_redaction_needs_a_name_a_reason_and_content(reviews: ReviewService) -> None:
    with pytest.raises(InputError, match="name is missing"):
        reviews.redact_case(ANONYMOUS, "case-1", "why")
    with pytest.raises(InputError, match="reason is missing"):
        reviews.redact_case(ADA, "case-1", " ")
    with pytest.raises(UnknownRecord):
        reviews.redact_case(ADA, "nowhere", "why")
    with pytest.raises(UnknownRecord):
        reviews.redact_entry(ADA, "nowhere", "why")


# Files on their way in: looked at without a trace, stored batch by batch, stopped with what is
# stored so far


def rows(tmp_path: Path, count: int, *, broken: int = -1) -> Path:
    file = tmp_path / "rows.jsonl"
    made = (
        json.dumps({"query": f"Why {n}?", "evidence": [f"So {n}."], "answer": "So."})
        for n in range(count)
    )
    file.write_text("".join(f"{'{' if n == broken else line}\n" for n, line in enumerate(made)))
    return file


def test_a_preview_stores_nothing_and_says_if_its_complete(
    bench: Workbench, tmp_path: Path
) -> None:
    look = bench.imports.preview(ADA, rows(tmp_path, 3, broken=1), name="rows.jsonl")
    assert (look.rows, len(look.cases), look.refused, look.whole) == (3, 2, 1, True)
    assert [problem.line for problem in look.problems] == [2]
    assert (
        bench.imports.preview(ADA, rows(tmp_path, PREVIEW_ROWS + 1), name="rows.jsonl").whole
        is False
    )
    assert bench.store.cases.count() == 0


def test_an_abandoned_import_stops_and_keeps_stored_cases(bench: Workbench, tmp_path: Path) -> None:
    steps = bench.imports.add_file(ADA, rows(tmp_path, 1_700), name="rows.jsonl")
    first, second = islice(steps, 2)
    assert (first.added, second.added) == (500, 1_000)
    assert bench.store.cases.count() == 1_000


def test_an_import_lists_exactly_the_cases_that_it_added(bench: Workbench, tmp_path: Path) -> None:
    *_, first = bench.imports.add_file(ADA, rows(tmp_path, 700), name="rows.jsonl")
    *_, again = bench.imports.add_file(ADA, rows(tmp_path, 705), name="rows.jsonl")
    assert (first.added, again.added) == (700, 5)
    listed = bench.cases.find_for(ADA, CaseFilter(imports=(again.import_id,)))
    assert (listed.total, {row.id for row in listed.rows}) == (
        5,
        {case.id for case in islice(bench.store.cases.iterate(), 700, None)},
    )
    assert bench.cases.find_for(ADA, CaseFilter(imports=(first.import_id,))).total == 700
    both = CaseFilter(imports=(first.import_id, again.import_id))
    assert bench.cases.find_for(ADA, both).total == 705
    assert bench.cases.find_for(ADA, CaseFilter(imports=("unknown",))).total == 0


def test_rejected_rows_are_counted_and_named_once(bench: Workbench, tmp_path: Path) -> None:
    bench.cases.add(ADA, bench.imports.preview(ADA, rows(tmp_path, 1), name="a").cases)
    *_, last = steps = list(
        bench.imports.add_file(ADA, rows(tmp_path, 700, broken=650), name="rows.jsonl")
    )
    assert (last.rows, last.added, last.unchanged, last.refused) == (700, 698, 1, 1)
    assert [
        problem.line
        for step in steps
        for problem in step.problems
        if isinstance(problem, InputError)
    ] == [651]


# What has been decided about a case, for whoever waits for it; and which answer a decision lets
# stand


def store_audits(bench: Workbench, case: Case, *answers: str) -> Run:
    run = stepwise.audit_once(case, Settings())
    for answer in answers:
        run = stepwise.audit_once(case, Settings(), before=run, answer=answer)
    bench.cases.add(ADA, [case])
    bench.audits.store_run(ADA, run)
    return run


def test_a_waiting_case_has_no_final_answer(bench: Workbench) -> None:
    run = store_audits(bench, bridge())
    assert bench.reviews.outcome(run.case_id) is None


@pytest.mark.parametrize(
    ("verdict", "more", "stands"),
    [
        ("approve", {}, WRONG),
        ("approve", {"iteration": 2}, RIGHT),
        ("override", {"corrected_answer": "120 metres.", "reason": "Shorter."}, "120 metres."),
        ("reject", {"reason": "Wrong."}, None),
        ("escalate", {}, None),
    ],
)
def test_the_final_answer_follows_the_verdict(
    bench: Workbench, verdict: str, more: dict[str, Any], stands: str | None
) -> None:
    run = store_audits(bench, bridge(), RIGHT)
    entry = decide(bench, run.case_id, verdict, **more)
    found = bench.reviews.outcome(run.case_id)
    assert (found.seq, found.entry_id, found.decision.verdict) == (entry.seq, entry.id, verdict)
    assert found.answer == stands


def test_an_undone_decision_no_longer_counts(
    bench: Workbench,
) -> None:
    run = store_audits(bench, bridge())
    first = decide(bench, run.case_id, "escalate")
    assert bench.reviews.outcome(run.case_id, after=first.seq) is None
    second = decide(bench, run.case_id, "approve")
    assert bench.reviews.outcome(run.case_id, after=first.seq).seq == second.seq
    undone(bench, run.case_id, "Ada")
    assert bench.reviews.outcome(run.case_id, after=first.seq) is None


def test_acceptance_by_policy_counts_as_a_decision(bench: Workbench) -> None:
    run = store_audits(bench, bridge(RIGHT))
    assert not run.needs_review
    found = bench.reviews.outcome(run.case_id)
    assert (found.decision.kind, found.answer) == ("policy_accept", RIGHT)


def test_a_redacted_decision_has_no_final_answer(bench: Workbench) -> None:
    run = store_audits(bench, bridge())
    entry = decide(bench, run.case_id, "override", corrected_answer="Secret.", reason="Secret.")
    bench.store.decisions.redact(entry.id, by="Grace", reason="Held a secret.")
    with pytest.raises(StoreError, match=r"redacted\. Decide it again"):
        bench.reviews.outcome(run.case_id)


def test_a_correction_outlives_its_purged_run(bench: Workbench) -> None:
    run = store_audits(bench, bridge())
    decide(bench, run.case_id, "override", corrected_answer="120 metres.", reason="Shorter.")
    bench.retention.purge(ADA, rule_of(0, decided=True, now="2099-01-01T00:00:00Z"), how="command")
    assert bench.reviews.outcome(run.case_id).answer == "120 metres."
    assert bench.store.runs.summary(run.id).removed_at is not None


def test_changed_settings_apply_to_every_service(
    audited: Workbench, monkeypatch: pytest.MonkeyPatch
) -> None:
    half_cited = f"{CLEAN.answer} It was opened to traffic in 1931."
    audited.cases.add(ADA, [CLEAN.model_copy(update={"id": "half", "answer": half_cited})])
    audited.audits.audit(ADA, audited.store.cases.get("half"))
    assert audited.cases.summary("half").state == "accepted"
    strict = Settings(spot_check_share=0, review_threshold=1.0, review_quality=1.0)
    audited.use_settings(ADA, strict)
    again = audited.reassessment.run(ADA, again=True)
    assert again.to_review == 1
    assert audited.audits.audit(ADA, CLEAN).settings["review_threshold"] == 1.0
    examined: list[Settings] = []
    monkeypatch.setattr(exams, "take_exam", lambda settings, **_: examined.append(settings))
    audited.exams.start(ADA)
    until(lambda: examined, "the exam")
    assert [record.review_threshold for record in examined] == [1.0]
    assert all(
        getattr(service, "_settings", strict) is strict for service in vars(audited).values()
    )

"""Who may do what, whatever page, callback or message asks: every use case that changes something,
by every role.
"""

from __future__ import annotations

import inspect
import io
from collections.abc import Callable, Iterator
from importlib import import_module
from itertools import pairwise
from pathlib import Path
from typing import Any, cast, get_args

import pytest

from masis.datasets.exports.export import Selection
from masis.errors import MasisError, NotAllowed
from masis.extensions import load_all
from masis.schema.actor import PERMISSIONS, ROLES, Actor, Permission
from masis.schema.batches import SentenceLabel
from masis.schema.codebook import Codebook, FailureMode
from masis.schema.judge import JudgeContent, SeverityRule
from masis.schema.judge_trials import DecidedFilter
from masis.schema.review import Decision
from masis.schema.run import Run
from masis.schema.systems import SystemDetails
from masis.schema.team import QueuePolicy, SavedView
from masis.services import SIGN_IN_REQUIRED, Workbench, access
from masis.services.access import ACTS, Access, Service, requires
from masis.services.batch_actions import BatchRequest
from masis.services.decision_imports import ExportedRow
from masis.services.jobs import Jobs
from masis.services.maintenance.retention import rule_of
from masis.services.modes.service import ProposedGroup
from masis.services.preferences import NewPreference
from masis.services.records import AppliedCode, CaseFilter, DecisionFilter, ReviewQueue
from masis.services.reviews import SIGNED_IN_BY
from masis.settings import Settings
from tests.rooms import HAS_SCREENING
from tests.store.factories import a_case, a_run, an_audited_case
from tools import rights

SIGNED_IN: dict[str, Actor] = {
    role: Actor(name=f"{role}@example.org", roles=(role,), authenticated=True, signed_in_by="test")
    for role in ROLES
}
NOBODY = {
    "without a role": Actor(name="somebody@example.org", authenticated=True),
    "typed a name": Actor(name="lead@example.org"),
    "claims a role": Actor(name="lead@example.org", roles=("admin",)),  # but has not signed in
    "anonymous": Actor(),
}


MODE = FailureMode(code="wrong-date", name="Wrong date")


@pytest.fixture
def desk(tmp_path: Path) -> Iterator[Workbench]:
    """A workbench that asks for sign-in, with three audited cases, and a decision and a failure
    mode on the first by the admin.
    """
    opened = Workbench.open(tmp_path / "access.db", access=SIGN_IN_REQUIRED)
    for number in range(3):
        an_audited_case(opened.store, a_case(f"case-{number}"), f"run-{number}")
    opened.reviews.submit(SIGNED_IN["admin"], decision("case-0"))
    request = BatchRequest(action="tag", cases=("case-2",), names=("t",))
    batch = opened.batches.start(SIGNED_IN["admin"], request)
    opened.batches.run(SIGNED_IN["admin"], batch.id)
    opened.batches.start_undo(SIGNED_IN["admin"], batch.id)
    opened.modes.add_mode(SIGNED_IN["admin"], MODE)
    opened.modes.apply_to_cases(SIGNED_IN["admin"], [MODE.code], ["case-0"])
    for name in ("draft 1", "adopted 1"):
        opened.judge.draft(SIGNED_IN["admin"], name, TOLD)
    opened.judge.adopt(SIGNED_IN["admin"], "adopted 1")
    yield opened
    opened.close()


def decision(case_id: str, **more: Any) -> Decision:
    return Decision(reviewer="ignored", case_id=case_id, run_id=None, verdict="escalate", **more)


def first_entry(desk: Workbench) -> str:
    return next(desk.store.decisions.iterate()).id


def their_batch(desk: Workbench) -> str:
    """Return the id of the admin's batch, which is being undone."""
    return next(batch.id for batch in desk.store.batches.newest(None, 9) if batch.action != "code")


ASSIGNING = BatchRequest(action="assign", cases=("case-1",), names=("another",))


def made_elsewhere() -> Run:
    return a_run(a_case("case-2"), "run-9", needs_review=True)


TOLD = JudgeContent(severities=(SeverityRule(type="outdated", severity="low"),))
NO_GROUP = ProposedGroup(id="g", name="group", observations=0, cases=0, patterns=())
FILE = Path(__file__).parents[1] / "api" / "cases.jsonl"
TESTS_OF_EXTENSIONS = ("tests.screening.use_cases",) if HAS_SCREENING else ()
Call = Callable[[Workbench, Actor], object]
list(load_all("use_cases"))  # They add their acts when they are imported.
ADDED = [import_module(name) for name in TESTS_OF_EXTENSIONS]
"""The modules with the calls of the use cases that extensions add."""
USE_CASES = [
    (name, cast("Permission", act.requires))
    for act in ACTS
    if act.kind == "use case"
    for name in act.names
]
STRICTEST: dict[str, Permission] = {}
"""The strictest permission that each use case requires for some calls, which CALLS makes."""
for name, permission in USE_CASES:
    known = STRICTEST.get(name, "read")
    STRICTEST[name] = max(
        known, permission, key=lambda candidate: ROLES.index(PERMISSIONS[candidate])
    )
NEEDED = STRICTEST | {"ReviewService.submit": "decide"}

CALLS: dict[str, Call] = {
    "ReviewService.submit": lambda desk, who: desk.reviews.submit(who, decision("case-1")),
    "ReviewService.submit of a final verdict": lambda desk, who: desk.reviews.submit(
        who, decision("case-1", kind="adjudication")
    ),
    "ReviewService.undo": lambda desk, who: desk.reviews.undo(
        who, first_entry(desk)
    ),  # another person's
    "ReviewService.redact_entry": lambda desk, who: desk.reviews.redact_entry(
        who, first_entry(desk), "asked"
    ),
    "ReviewService.redact_case": lambda desk, who: desk.reviews.redact_case(who, "case-1", "asked"),
    "ReviewService.sign": lambda desk, who: desk.reviews.sign(who, b"k" * 32),
    "ReviewService.adjudicate": lambda desk, who: desk.reviews.adjudicate(who, decision("case-1")),
    "ReviewService.import_entry": lambda desk, who: desk.reviews.import_entry(
        who,
        entry := desk.reviews.get(first_entry(desk)),
        ExportedRow(desk.store.cases.get("case-1"), None, entry.id, (entry,)),
        file="",
        keep_unknown=False,
    ),
    "TeamService.claim": lambda desk, who: desk.team.claim(who, "case-1"),
    "TeamService.claim_next": lambda desk, who: desk.team.claim_next(who, CaseFilter()),
    "TeamService.release": lambda desk, who: desk.team.release(who, "case-1"),
    "TeamService.rename": lambda desk, who: desk.team.rename(
        who, "another", cases=["case-1"], subjects=["case:case-1"]
    ),
    "TeamService.skip": lambda desk, who: desk.team.skip(who, ["case-1"]),
    "TeamService.comment": lambda desk, who: desk.team.comment(who, "case-1", "text"),
    "TeamService.tag": lambda desk, who: desk.team.tag(who, ["case-1"], ["t"]),
    "TeamService.untag": lambda desk, who: desk.team.untag(who, ["case-1"], ["t"]),
    "TeamService.assign": lambda desk, who: desk.team.assign(who, ["case-1"], ["another"]),
    "TeamService.give": lambda desk, who: desk.team.give(who, {"another": ["case-1"]}),
    "TeamService.unassign": lambda desk, who: desk.team.unassign(who, ["case-1"], ["another"]),
    "TeamService.put_in_force": lambda desk, who: desk.team.put_in_force(
        who, QueuePolicy(lease_minutes=9)
    ),
    "QueueService.create": lambda desk, who: desk.queues.create(who, "Mine", CaseFilter()),
    "QueueService.change": lambda desk, who: desk.queues.change(
        who, ReviewQueue(id="mine", name="Mine")
    ),
    "QueueService.archive": lambda desk, who: desk.queues.archive(who, "mine"),
    "TeamService.save_view": lambda desk, who: desk.team.save_view(who, "mine", {}),
    "TeamService.remove_view": lambda desk, who: desk.team.remove_view(
        who, SavedView(name="mine", owner="", parameters={})
    ),
    "BatchService.preview": lambda desk, who: desk.batches.preview(who, ASSIGNING),
    "BatchService.start": lambda desk, who: desk.batches.start(who, ASSIGNING),
    "BatchService.advance": lambda desk, who: desk.batches.advance(who, their_batch(desk)),
    "BatchService.run": lambda desk, who: desk.batches.run(who, their_batch(desk)),
    "BatchService.cancel": lambda desk, who: desk.batches.cancel(who, their_batch(desk)),
    "BatchService.start_undo": lambda desk, who: desk.batches.start_undo(who, their_batch(desk)),
    "BatchService.sentence_request": lambda desk, who: desk.batches.sentence_request(
        who, "case-0", SentenceLabel(sentence="painted grey", label="unsupported")
    ),
    "BackupService.make": lambda desk, who: desk.backups.make(
        who, desk.database.with_name("copy.db")
    ),
    "CaseService.add": lambda desk, who: desk.cases.add(who, [a_case("new")]),
    "CaseService.add_one": lambda desk, who: desk.cases.add_one(who, a_case("new")),
    "AuditService.brief": lambda desk, who: desk.audits.brief(
        who, desk.store.cases.get("case-1"), Settings()
    ),
    "AlignmentService.choose": lambda desk, who: desk.alignment.choose(who, DecidedFilter()),
    "AlignmentService.hold_out": lambda desk, who: desk.alignment.hold_out(
        who, desk.store.judges.get("draft 1")
    ),
    "AlignmentService.start": lambda desk, who: desk.alignment.start(
        who, desk.store.judges.get("draft 1")
    ),
    "JudgeService.draft": lambda desk, who: desk.judge.draft(who, "draft 2"),
    "JudgeService.change": lambda desk, who: desk.judge.change(who, "draft 1", note="n"),
    "JudgeService.adopt": lambda desk, who: desk.judge.adopt(who, "draft 1"),
    "JudgeService.drop": lambda desk, who: desk.judge.drop(who, "draft 1"),
    "JudgeService.retire": lambda desk, who: desk.judge.retire(who, "adopted 1"),
    "AuditService.cancel": lambda desk, who: desk.audits.cancel(who, "run-1"),
    "AuditService.audit": lambda desk, who: desk.audits.audit(who, desk.store.cases.get("case-1")),
    "AuditService.store_run": lambda desk, who: desk.audits.store_run(who, made_elsewhere()),
    "AuditService.forget_replies": lambda desk, who: desk.audits.forget_replies(who, "case-1"),
    "DraftService.save": lambda desk, who: desk.drafts.save(who, "case:case-1", {"note": "n"}),
    "DraftService.save_form": lambda desk, who: desk.drafts.save_form(
        who, "case:case-1", {"note": "n"}
    ),
    "DraftService.clear": lambda desk, who: desk.drafts.clear(who, "case:case-1"),
    "DraftService.adopt": lambda desk, who: desk.drafts.adopt(who),
    "ExportService.write": lambda desk, who: desk.exports.write(who, io.BytesIO(), "decided"),
    "ExportService.write_file": lambda desk, who: desk.exports.write_file(
        who, Path("/dev/null"), "decided"
    ),
    "ExportService.write_log_csv": lambda desk, who: desk.exports.write_log_csv(
        who, io.BytesIO(), DecisionFilter()
    ),
    "DatasetService.freeze": lambda desk, who: desk.datasets.freeze(
        who, "v1", "claims", Selection(CaseFilter())
    ),
    "DatasetService.write": lambda desk, who: desk.datasets.write(who, "v1", Path("/dev/null")),
    "DatasetService.zip": lambda desk, who: desk.datasets.zip(who, "v1"),
    "DatasetService.remove": lambda desk, who: desk.datasets.remove(who, "v1"),
    "ImportService.formats_of": lambda desk, who: desk.imports.formats_of(
        who, FILE, name="a.jsonl"
    ),
    "ImportService.sheets_of": lambda desk, who: desk.imports.sheets_of(who, FILE, name="a.jsonl"),
    "ImportService.preview": lambda desk, who: desk.imports.preview(who, FILE, name="a.jsonl"),
    "ImportService.add_file": lambda desk, who: list(
        desk.imports.add_file(who, FILE, name="a.jsonl")
    ),
    "LakeService.import_cases": lambda desk, who: desk.lake.import_cases(
        who, str(FILE.parent), needs_review=True
    ),
    "VersionService.fill_evidence": lambda desk, who: desk.versions.fill_evidence(
        who, "case-1", {"1": "Text."}
    ),
    "ReassessmentService.run": lambda desk, who: desk.reassessment.run(who, apply=True),
    "PlantedService.count_copies": lambda desk, who: desk.planted.count_copies(who),
    "ExamService.start": lambda desk, who: desk.exams.start(who, "nobody:nothing"),
    "MinimalEvidenceService.plan": lambda desk, who: desk.minimal_evidence.plan(who, "case-1"),
    "MinimalEvidenceService.start": lambda desk, who: desk.minimal_evidence.start(who, "case-1"),
    "MinimalEvidenceService.verify": lambda desk, who: desk.minimal_evidence.verify(who, "case-1"),
    "ModeService.code": lambda desk, who: desk.modes.code(who, "case-1", [MODE.code]),
    "ModeService.uncode": lambda desk, who: desk.modes.uncode(
        who, "case-0", [MODE.code], coded_by="admin@example.org"
    ),
    "ModeService.remove_code": lambda desk, who: desk.modes.remove_code(
        who, AppliedCode("case-0", "", MODE.code, "admin@example.org", "an-entry")
    ),
    "ModeService.apply": lambda desk, who: desk.modes.apply(who, [MODE.code], ["an-id"]),
    "ModeService.apply_to_cases": lambda desk, who: desk.modes.apply_to_cases(
        who, [MODE.code], ["case-1"]
    ),
    "ModeService.add_mode": lambda desk, who: desk.modes.add_mode(
        who, FailureMode(code="other", name="Other")
    ),
    "ModeService.confirm_group": lambda desk, who: desk.modes.confirm_group(who, NO_GROUP, MODE),
    "ModeService.dismiss_group": lambda desk, who: desk.modes.dismiss_group(who, NO_GROUP),
    "ModeService.restore_group": lambda desk, who: desk.modes.restore_group(who, "none"),
    "ModeService.suggest_name": lambda desk, who: desk.modes.suggest_name(who, NO_GROUP),
    "ModeService.change_mode": lambda desk, who: desk.modes.change_mode(who, MODE),
    "ModeService.nest": lambda desk, who: desk.modes.nest(who, [MODE.code], None),
    "ModeService.merge": lambda desk, who: desk.modes.merge(who, [MODE.code], "other"),
    "ModeService.unmerge": lambda desk, who: desk.modes.unmerge(who, MODE.code),
    "ModeService.split": lambda desk, who: desk.modes.split(who, MODE.code, MODE, ["an-id"]),
    "ModeService.move_rows": lambda desk, who: desk.modes.move_rows(
        who, MODE.code, "other", ["an-id"]
    ),
    "ModeService.remove_from_rows": lambda desk, who: desk.modes.remove_from_rows(
        who, MODE.code, ["an-id"]
    ),
    "ModeService.import_codebook": lambda desk, who: desk.modes.import_codebook(
        who, Codebook().model_dump_json()
    ),
    "ModeService.start_codebook": lambda desk, who: desk.modes.start_codebook(who, "rag"),
    "PlantedService.plant": lambda desk, who: desk.planted.plant(who, 1),
    "PlantedService.withdraw": lambda desk, who: desk.planted.withdraw(who),
    "RelabellingService.draw": lambda desk, who: desk.relabelling.draw(who, "none", ["Ben"]),
    "RelabellingService.withdraw": lambda desk, who: desk.relabelling.withdraw(who, "none"),
    "RubricProposalService.accept": lambda desk, who: desk.proposals.accept(who, "none", "One."),
    "RubricProposalService.dismiss": lambda desk, who: desk.proposals.dismiss(who, "none"),
    "PreferenceService.next": lambda desk, who: desk.preferences.next(who),
    "PreferenceService.get": lambda desk, who: desk.preferences.get(who, "1-none"),
    "PreferenceService.decide": lambda desk, who: desk.preferences.decide(
        who, NewPreference(pair="1-none", verdict="left")
    ),
    "PreferenceService.undo": lambda desk, who: desk.preferences.undo(who),
    "PreferenceService.results": lambda desk, who: desk.preferences.results(who, everyone=True),
    "PreferenceService.find": lambda desk, who: desk.preferences.find(who, everyone=True),
    "PreferenceService.export": lambda desk, who: desk.preferences.export(who),
    "SystemService.describe": lambda desk, who: desk.systems.describe(
        who, "unnamed", SystemDetails()
    ),
    "TrustService.fit": lambda desk, who: desk.trust.fit(who),
    "TrustService.reviewers": lambda desk, who: desk.trust.reviewers(who, others=True),
    "TrustService.draw": lambda desk, who: desk.trust.draw(who, "auditor", draws=149),
    "TrustService.apply": lambda desk, who: desk.trust.apply(who),
    "TrustService.end": lambda desk, who: desk.trust.end(who, "no longer needed"),
    "RetentionService.purge": lambda desk, who: desk.retention.purge(who, rule_of(0), how="page"),
    "Workbench.use_settings": lambda desk, who: desk.use_settings(who, Settings(max_iterations=1)),
}
for module in ADDED:
    CALLS |= module.CALLS


WITHOUT_PERMISSION = {
    "MinimalEvidenceService.latest",
    "AlignmentService.latest_trial",
    "AuditService.is_needed",
    "AuditService.newest_finished",
    "AuditService.pin",
    "AuditService.resumable",
    "BackupService.existing",
    "BackupService.newest",
    "CaseService.open",
    "DatasetService.compare",
    "ExamService.cost",
    "ExamService.latest",
    "ExamService.line",
    "ExamService.line_for",
    "ExamService.line_for_auditor",
    "ExamService.line_for_run",
    "ExamService.status",
    "ExportService.count",
    "ExportService.shows_hidden",
    "IngestionService.inspect_body",
    "IngestionService.read_waiting",
    "IngestionService.receive",
    "IngestionService.status",
    "Jobs.add",
    "Jobs.audit_arrived",
    "Jobs.batch",
    "Jobs.close",
    "Jobs.count_ahead",
    "Jobs.failure",
    "Jobs.get",
    "Jobs.is_auditing",
    "Jobs.is_cancelling",
    "Jobs.warm_up",
    "LakeService.count_outcomes",
    "LakeService.miss_rates",
    "ReassessmentService.waiting",
    "RetentionService.file_bytes",
    "ReviewService.answer_of",
    "ReviewService.explain_needed_reason",
    "ReviewService.outcome",
    "ReviewService.settled_by",
    "ReviewService.undone_by",
    "TeamService.loads",
    "TeamService.reviewers",
    "TokenService.actor_of",
    "TrustService.offer",
    "TrustService.plan",
    "TrustService.position",
    "TrustService.propose_guarantee",
    "TrustService.shows_names",
    "TrustService.watch",
    "VersionService.neighbours",
    "Workbench.check_models",
    "Workbench.close",
    "Workbench.health",
}
for module in ADDED:
    WITHOUT_PERMISSION |= module.WITHOUT_PERMISSION
"""Methods without an actor: reads that reveal nothing that a policy hides, and calls of the server."""


def public_methods(desk: Workbench) -> Iterator[tuple[str, Any]]:
    """Every public method of the workbench, its services and the jobs."""
    services = [
        type(value)
        for value in vars(desk).values()
        if type(value).__module__.startswith("masis.services") and type(value) is not Access
    ]
    for owner in (Workbench, Jobs, *services, *load_all("use_cases")):
        for name, method in inspect.getmembers(owner, inspect.isfunction):
            if not name.startswith("_"):
                yield f"{owner.__name__}.{name}", method


def state(desk: Workbench) -> tuple[object, ...]:
    """What a refused call must not have changed."""
    store = desk.store
    return (
        desk.store.decisions.head(),
        store.cases.count(),
        desk.settings,
        tuple(run.id for number in range(3) for run in desk.runs.for_case(f"case-{number}")),
        tuple(desk.store.check().counts.items()),
        desk.store.purges.history(),
        desk.store.datasets.list_all(),
        desk.drafts.get(SIGNED_IN["reviewer"], "case:case-1").values,
    )


def test_every_public_method_of_a_service_requires_a_permission_or_is_listed_here(
    desk: Workbench,
) -> None:
    methods = dict(public_methods(desk))
    undeclared = {name for name, method in methods.items() if not hasattr(method, "__wrapped__")}
    assert undeclared == WITHOUT_PERMISSION
    assert not any("actor" in inspect.signature(methods[name]).parameters for name in undeclared)
    assert set(STRICTEST) == set(methods) - undeclared
    reads = {name for name, permission in USE_CASES if permission == "read"}
    called = {
        name for name in STRICTEST if not name.startswith(("Jobs.", "ScreeningJobs."))
    } - reads
    also_called = {
        *("TrustService.reviewers", "ReviewService.submit of a final verdict"),
        *("PreferenceService.results", "PreferenceService.find"),
    }
    assert called | also_called == set(CALLS)
    assert set(get_args(Permission)) == set(PERMISSIONS)


def test_a_new_use_case_is_checked_and_listed_without_another_change(
    desk: Workbench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(access, "ACTS", acts := [*ACTS])
    monkeypatch.setattr(rights, "ACTS", acts)

    class LibraryService(Service):
        @requires("oversee", "shelve books")
        def shelve(self, actor: Actor, book: str, *, twice: bool = False) -> str:
            return f"{actor.name} {book} {twice}"

    library = LibraryService(desk.store, SIGN_IN_REQUIRED)
    with pytest.raises(NotAllowed, match=r"You can't shelve books\. You need the lead role"):
        library.shelve(SIGNED_IN["reviewer"], "Emma")
    with pytest.raises(NotAllowed, match=r"You can't shelve books\. Sign in first\."):
        library.shelve(Actor(name="lead@example.org"), "Emma")
    lead = SIGNED_IN["lead"]
    assert library.shelve(lead, "Emma", twice=True) == "lead@example.org Emma True"
    assert "| shelve books |  |  |  | yes | yes |" in rights.update_page(
        rights.PAGE.read_text("utf-8")
    )


@pytest.mark.parametrize("use_case", sorted(CALLS))
def test_a_use_case_is_refused_to_roles_without_its_permission(
    use_case: str, desk: Workbench
) -> None:
    call, needed = CALLS[use_case], PERMISSIONS[NEEDED.get(use_case, "oversee")]
    before = state(desk)
    below = {role: SIGNED_IN[role] for role in ROLES[: ROLES.index(needed)]}
    for actor in (below | NOBODY).values():
        with pytest.raises(NotAllowed):
            call(desk, actor)
    assert state(desk) == before
    try:
        # the lowest role that grants it; it may fail for other reasons here
        call(desk, SIGNED_IN[needed])
    except NotAllowed:
        raise
    except (MasisError, OSError):
        return


def test_the_recorded_reviewer_is_the_signed_in_person(desk: Workbench) -> None:
    forged = decision("case-1", extra={SIGNED_IN_BY: "somebody else"}).model_copy(
        update={"reviewer": "lead@example.org"}
    )
    entry = desk.reviews.submit(SIGNED_IN["reviewer"], forged)
    assert entry.decision.reviewer == "reviewer@example.org"
    assert entry.decision.extra[SIGNED_IN_BY] == "test"


def test_typed_names_are_distinguished_from_signed_in_names(
    tmp_path: Path,
) -> None:
    with_names = Workbench.open(tmp_path / "open.db")
    with_names.store.cases.add(a_case("case-0"))
    entry = with_names.reviews.submit(
        Actor(name="Ada"), decision("case-0", extra={SIGNED_IN_BY: "team"})
    )
    assert SIGNED_IN_BY not in entry.decision.extra
    with_names.close()


def test_a_reviewer_can_undo_their_own_decision(desk: Workbench) -> None:
    entry = desk.reviews.submit(SIGNED_IN["reviewer"], decision("case-1"))
    assert (
        desk.reviews.undo(SIGNED_IN["reviewer"], entry.id).decision.reviewer
        == "reviewer@example.org"
    )


def test_server_jobs_check_the_role(desk: Workbench) -> None:
    jobs = Jobs(desk)
    try:
        for viewer in (SIGNED_IN["viewer"], *NOBODY.values()):
            for ask in (
                lambda who: jobs.audit(who, "case-1"),
                lambda who: jobs.resume_audit(who, "run-1"),
                jobs.audit_all_new,
                jobs.cancel_batch,
                lambda who: jobs.cancel(who, "audit", "case-1"),
                *(ask for module in ADDED for ask in module.ask_jobs(jobs)),
                lambda who: jobs.cancel(who, "screening", "s"),
            ):
                with pytest.raises(NotAllowed):
                    ask(viewer)
        assert jobs.get("run-1") is None
        assert jobs.batch() is None
    finally:
        jobs.close()


def test_without_sign_in_a_name_suffices(tmp_path: Path) -> None:
    anyone = Workbench.open(tmp_path / "open.db")
    anyone.cases.add(Actor(name="Ada"), [a_case("case-0")])
    assert anyone.store.cases.count() == 1
    anyone.close()


def test_each_role_includes_the_lower_ones() -> None:
    granted = [
        {permission for permission in PERMISSIONS if SIGNED_IN[role].may(permission)}
        for role in ROLES
    ]
    assert granted[0] == {"read"}
    assert granted[1] == {"read", "decide", "audit"}
    assert granted[-1] == set(PERMISSIONS)
    assert all(lower < higher for lower, higher in pairwise(granted))

"""Who may do what, whatever page, callback or message asks: every use case that changes something,
by every role.
"""

from __future__ import annotations

import inspect
import io
import re
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any, get_args

import pytest

import masis
from masis.datasets.exports.export import Selection
from masis.errors import MasisError, NotAllowed
from masis.schema.actor import PERMISSIONS, ROLES, Actor, Permission
from masis.schema.review import Decision
from masis.schema.run import Run
from masis.schema.screening import Abstract, Screening
from masis.schema.team import QueuePolicy, SavedView
from masis.services import SIGN_IN_REQUIRED, Workbench
from masis.services.access import ACTS
from masis.services.jobs import Jobs
from masis.services.maintenance.retention import rule_of
from masis.services.records import CaseFilter, DecisionFilter
from masis.services.reviews import SIGNED_IN_BY
from masis.settings import Settings
from tests.store.factories import a_case, a_run, an_audited_case

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


@pytest.fixture
def desk(tmp_path: Path) -> Iterator[Workbench]:
    """A workbench that asks for sign-in, with three audited cases and a decision on the first by
    the admin.
    """
    opened = Workbench.open(tmp_path / "access.db", access=SIGN_IN_REQUIRED)
    for number in range(3):
        an_audited_case(opened.store, a_case(f"case-{number}"), f"run-{number}")
    opened.reviews.submit(SIGNED_IN["admin"], decision("case-0"))
    yield opened
    opened.close()


def decision(case_id: str, **more: Any) -> Decision:
    return Decision(reviewer="ignored", case_id=case_id, run_id=None, verdict="escalate", **more)


def first_entry(desk: Workbench) -> str:
    return next(desk.store.decisions.iterate()).id


def made_elsewhere() -> Run:
    return a_run(a_case("case-2"), "run-9", needs_review=True)


def screened() -> Screening:
    abstract = Abstract(id="a", title="A trial", text="It worked in 40 of 80 patients.")
    return masis.screen_abstracts("Does it work?", [abstract])


FILE = Path(__file__).parents[1] / "api" / "cases.jsonl"
Call = Callable[[Workbench, Actor], object]
TAKES: dict[str, Any] = {place: act.takes for act in ACTS for place in act.places}
CALLS: dict[str, Call] = {
    "reviews.submit": lambda desk, who: desk.reviews.submit(who, decision("case-1")),
    "reviews.undo": lambda desk, who: desk.reviews.undo(who, first_entry(desk)),  # another person's
    "reviews.redact_entry": lambda desk, who: desk.reviews.redact_entry(
        who, first_entry(desk), "asked"
    ),
    "reviews.redact_case": lambda desk, who: desk.reviews.redact_case(who, "case-1", "asked"),
    "reviews.sign": lambda desk, who: desk.reviews.sign(who, b"k" * 32),
    "reviews.adjudicate": lambda desk, who: desk.reviews.adjudicate(who, decision("case-1")),
    "team.claim": lambda desk, who: desk.team.claim(who, "case-1"),
    "team.claim_next": lambda desk, who: desk.team.claim_next(who, CaseFilter()),
    "team.release": lambda desk, who: desk.team.release(who, "case-1"),
    "team.rename": lambda desk, who: desk.team.rename(
        who, "another", cases=["case-1"], subjects=["case:case-1"]
    ),
    "team.skip": lambda desk, who: desk.team.skip(who, ["case-1"]),
    "team.comment": lambda desk, who: desk.team.comment(who, "case-1", "text"),
    "team.tag": lambda desk, who: desk.team.tag(who, ["case-1"], ["t"]),
    "team.untag": lambda desk, who: desk.team.untag(who, ["case-1"], ["t"]),
    "team.assign": lambda desk, who: desk.team.assign(who, ["case-1"], ["another"]),
    "team.give": lambda desk, who: desk.team.give(who, {"another": ["case-1"]}),
    "team.unassign": lambda desk, who: desk.team.unassign(who, ["case-1"], ["another"]),
    "team.put_in_force": lambda desk, who: desk.team.put_in_force(
        who, QueuePolicy(lease_minutes=9)
    ),
    "team.save_view": lambda desk, who: desk.team.save_view(who, "mine", {}),
    "team.remove_view": lambda desk, who: desk.team.remove_view(
        who, SavedView(name="mine", owner="", parameters={})
    ),
    "backups.make": lambda desk, who: desk.backups.make(who, desk.database.with_name("copy.db")),
    "cases.add": lambda desk, who: desk.cases.add(who, [a_case("new")]),
    "cases.add_one": lambda desk, who: desk.cases.add_one(who, a_case("new")),
    "audits.cancel": lambda desk, who: desk.audits.cancel(who, "run-1"),
    "audits.audit": lambda desk, who: desk.audits.audit(who, desk.store.cases.get("case-1")),
    "audits.store_run": lambda desk, who: desk.audits.store_run(who, made_elsewhere()),
    "audits.forget_replies": lambda desk, who: desk.audits.forget_replies(who, "case-1"),
    "drafts.save": lambda desk, who: desk.drafts.save(who, "case:case-1", {"note": "n"}),
    "drafts.clear": lambda desk, who: desk.drafts.clear(who, "case:case-1"),
    "drafts.adopt": lambda desk, who: desk.drafts.adopt(who),
    "exports.write": lambda desk, who: desk.exports.write(who, io.BytesIO(), "decided"),
    "exports.write_file": lambda desk, who: desk.exports.write_file(
        who, Path("/dev/null"), "decided"
    ),
    "exports.write_log_csv": lambda desk, who: desk.exports.write_log_csv(
        who, io.BytesIO(), DecisionFilter()
    ),
    "datasets.freeze": lambda desk, who: desk.datasets.freeze(
        who, "v1", "claims", Selection(CaseFilter())
    ),
    "datasets.write": lambda desk, who: desk.datasets.write(who, "v1", Path("/dev/null")),
    "datasets.zip": lambda desk, who: desk.datasets.zip(who, "v1"),
    "datasets.remove": lambda desk, who: desk.datasets.remove(who, "v1"),
    "corpora.add": lambda desk, who: desk.corpora.add(who, "c", [], source="test"),
    "corpora.add_demo": lambda desk, who: desk.corpora.add_demo(who),
    "corpora.keep_records": lambda desk, who: desk.corpora.keep_records(who, "c", [], source="x"),
    "corpora.remove": lambda desk, who: desk.corpora.remove(who, "c"),
    "screenings.screen": lambda desk, who: desk.screenings.screen(
        who, "Does it work?", ["corpus:c"]
    ),
    "screenings.store_screening": lambda desk, who: desk.screenings.store_screening(
        who, screened(), []
    ),
    "imports.formats_of": lambda desk, who: desk.imports.formats_of(who, FILE, name="a.jsonl"),
    "imports.sheets_of": lambda desk, who: desk.imports.sheets_of(who, FILE, name="a.jsonl"),
    "imports.preview": lambda desk, who: desk.imports.preview(who, FILE, name="a.jsonl"),
    "imports.add_file": lambda desk, who: list(desk.imports.add_file(who, FILE, name="a.jsonl")),
    "lake.import_cases": lambda desk, who: desk.lake.import_cases(
        who, str(FILE.parent), needs_review=True
    ),
    "screenings.cancel": lambda desk, who: desk.screenings.cancel(who, "s"),
    "screenings.override": lambda desk, who: desk.screenings.override(
        who, "s", "a", "recommendation", "keep", reason="r"
    ),
    "screenings.hand_over": lambda desk, who: desk.screenings.hand_over(who, "s"),
    "screenings.reset_memory": lambda desk, who: desk.screenings.reset_memory(who, reason="r"),
    "screenings.export": lambda desk, who: desk.screenings.export(who, "s", "csv"),
    "versions.fill_evidence": lambda desk, who: desk.versions.fill_evidence(
        who, "case-1", {"1": "Text."}
    ),
    "screenings.import_labels": lambda desk, who: desk.screenings.import_labels(who, "s", []),
    "screenings.agree": lambda desk, who: desk.screenings.agree(who, "s", "a"),
    "screenings.begin_further": lambda desk, who: desk.screenings.begin_further(who, "s", 1),
    "screenings.search_further": lambda desk, who: desk.screenings.search_further(who, "s"),
    "reassessment.run": lambda desk, who: desk.reassessment.run(who, apply=True),
    "planted.count_copies": lambda desk, who: desk.planted.count_copies(who),
    "exams.start": lambda desk, who: desk.exams.start(who, "nobody:nothing"),
    "planted.plant": lambda desk, who: desk.planted.plant(who, 1),
    "planted.withdraw": lambda desk, who: desk.planted.withdraw(who),
    "trust.fit": lambda desk, who: desk.trust.fit(who),
    "trust.draw": lambda desk, who: desk.trust.draw(who, "auditor", draws=149),
    "trust.apply": lambda desk, who: desk.trust.apply(who),
    "trust.end": lambda desk, who: desk.trust.end(who, "no longer needed"),
    "retention.purge": lambda desk, who: desk.retention.purge(who, rule_of(0), how="page"),
    "use_settings": lambda desk, who: desk.use_settings(who, Settings(max_iterations=1)),
}


def use_cases(desk: Workbench) -> Iterator[str]:
    """Every method of the workbench and its services that takes an actor."""
    services = {
        name: value
        for name, value in vars(desk).items()
        if type(value).__module__.startswith("masis.services")
    }
    for subject, owner in {"": desk, **services}.items():
        for name, method in inspect.getmembers(owner, inspect.ismethod):
            if not name.startswith("_") and "actor" in inspect.signature(method).parameters:
                yield f"{subject}.{name}".lstrip(".")


def state(desk: Workbench) -> tuple[object, ...]:
    """What a refused call must not have changed."""
    store = desk.store
    return (
        desk.store.decisions.head(),
        store.cases.count(),
        desk.settings,
        tuple(run.id for number in range(3) for run in desk.runs.for_case(f"case-{number}")),
        tuple(desk.store.corpora.list_all()),
        desk.store.purges.history(),
        desk.store.datasets.list_all(),
        desk.drafts.get(SIGNED_IN["reviewer"], "case:case-1").values,
    )


def test_every_use_case_that_takes_an_actor_is_in_the_table_of_acts(desk: Workbench) -> None:
    declared = {place for place in TAKES if re.fullmatch(r"[a-z_.]+", place)}
    jobs = inspect.getmembers(Jobs, inspect.isfunction)
    of_jobs = {
        f"jobs.{name}" for name, method in jobs if "actor" in inspect.signature(method).parameters
    }
    assert {*use_cases(desk), *of_jobs} - {"access.allows", "access.require"} == declared
    assert {place for place in declared - of_jobs if TAKES[place] != "read"} == set(CALLS)
    assert set(get_args(Permission)) == set(PERMISSIONS)


@pytest.mark.parametrize("use_case", sorted(CALLS))
def test_a_use_case_is_refused_to_every_role_that_does_not_grant_it(
    use_case: str, desk: Workbench
) -> None:
    call, needed = CALLS[use_case], PERMISSIONS[TAKES[use_case]]
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


def test_who_decides_is_who_has_signed_in_whatever_the_decision_says(desk: Workbench) -> None:
    forged = decision("case-1", extra={SIGNED_IN_BY: "somebody else"}).model_copy(
        update={"reviewer": "lead@example.org"}
    )
    entry = desk.reviews.submit(SIGNED_IN["reviewer"], forged)
    assert entry.decision.reviewer == "reviewer@example.org"
    assert entry.decision.extra[SIGNED_IN_BY] == "test"


def test_a_name_that_was_only_typed_is_told_from_one_that_was_signed_in_under(
    tmp_path: Path,
) -> None:
    with_names = Workbench.open(tmp_path / "open.db")
    with_names.store.cases.add(a_case("case-0"))
    entry = with_names.reviews.submit(
        Actor(name="Ada"), decision("case-0", extra={SIGNED_IN_BY: "team"})
    )
    assert SIGNED_IN_BY not in entry.decision.extra
    with_names.close()


def test_a_reviewer_undoes_their_own_decision(desk: Workbench) -> None:
    entry = desk.reviews.submit(SIGNED_IN["reviewer"], decision("case-1"))
    assert (
        desk.reviews.undo(SIGNED_IN["reviewer"], entry.id).decision.reviewer
        == "reviewer@example.org"
    )


def test_jobs_of_the_server_ask_for_the_role_too(desk: Workbench) -> None:
    jobs = Jobs(desk)
    try:
        for viewer in (SIGNED_IN["viewer"], *NOBODY.values()):
            for ask in (
                lambda who: jobs.audit(who, "case-1"),
                lambda who: jobs.resume_audit(who, "run-1"),
                jobs.audit_all_new,
                lambda who: jobs.screen_again(who, "s", {}),
                jobs.cancel_batch,
                lambda who: jobs.cancel(who, "audit", "case-1"),
                lambda who: jobs.screen(who, "Does it work?", ("corpus:c",)),
                lambda who: jobs.cancel(who, "screening", "s"),
            ):
                with pytest.raises(NotAllowed):
                    ask(viewer)
        assert jobs.get("run-1") is None
        assert jobs.batch() is None
    finally:
        jobs.close()


def test_without_sign_in_a_name_is_enough(tmp_path: Path) -> None:
    anyone = Workbench.open(tmp_path / "open.db")
    anyone.cases.add(Actor(name="Ada"), [a_case("case-0")])
    assert anyone.store.cases.count() == 1
    anyone.close()


def test_roles_include_those_before_them() -> None:
    granted = [{each for each in PERMISSIONS if SIGNED_IN[role].may(each)} for role in ROLES]
    assert granted[0] == {"read"}
    assert granted[1] == {"read", "decide", "audit"}
    assert granted[-1] == set(PERMISSIONS)
    assert all(lower < higher for lower, higher in pairwise(granted))

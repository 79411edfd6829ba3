"""Who may do what, whatever page, callback or message asks: every use case that changes something, by every role."""

from __future__ import annotations

import inspect
import io
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any, get_args

import pytest

import masis
from masis.datasets.exports import Selection
from masis.errors import MasisError, NotAllowed
from masis.schema.actor import PERMISSIONS, ROLES, Actor, Permission, Role
from masis.schema.review import Decision
from masis.schema.run import Run
from masis.schema.screening import Abstract, Screening
from masis.schema.team import QueuePolicy, SavedView
from masis.services import SIGN_IN_REQUIRED, Workbench
from masis.services.jobs import Jobs
from masis.services.records import CaseFilter, DecisionFilter
from masis.services.retention import rule_of
from masis.services.reviews import SIGNED_IN_BY
from masis.settings import Settings
from tests.store.factories import a_case, a_run, an_audited_case

SIGNED_IN: dict[str, Actor] = {
    role: Actor(name=f"{role}@example.org", roles=(role,), authenticated=True, signed_in_by="test") for role in ROLES
}
NOBODY = {
    "without a role": Actor(name="somebody@example.org", authenticated=True),
    "typed a name": Actor(name="lead@example.org"),
    "claims a role": Actor(name="lead@example.org", roles=("admin",)),  # but has not signed in
    "anonymous": Actor(),
}


@pytest.fixture
def desk(tmp_path: Path) -> Iterator[Workbench]:
    """A workbench that asks for sign-in, with three audited cases and a decision on the first by the admin."""
    opened = Workbench.open(tmp_path / "access.db", access=SIGN_IN_REQUIRED)
    for number in range(3):
        an_audited_case(opened.store, a_case(f"case-{number}"), f"run-{number}")
    opened.reviews.submit(SIGNED_IN["admin"], decision("case-0"))
    yield opened
    opened.close()


def decision(case_id: str, **more: Any) -> Decision:
    return Decision(reviewer="ignored", case_id=case_id, run_id=None, verdict="escalate", **more)


def first_entry(desk: Workbench) -> str:
    return next(desk.reviews.iterate()).id


def made_elsewhere() -> Run:
    return a_run(a_case("case-2"), "run-9", needs_review=True)


def screened() -> Screening:
    abstract = Abstract(id="a", title="A trial", text="It worked in 40 of 80 patients.")
    return masis.screen_abstracts("Does it work?", [abstract])


FILE = Path(__file__).parents[1] / "api" / "cases.jsonl"
Call = Callable[[Workbench, Actor], object]
CALLS: dict[str, tuple[Permission, Call]] = {
    "reviews.submit": ("decide", lambda desk, who: desk.reviews.submit(who, decision("case-1"))),
    "reviews.undo": ("oversee", lambda desk, who: desk.reviews.undo(who, first_entry(desk))),  # another person's
    "reviews.redact_entry": ("redact", lambda desk, who: desk.reviews.redact_entry(who, first_entry(desk), "asked")),
    "reviews.redact_case": ("redact", lambda desk, who: desk.reviews.redact_case(who, "case-1", "asked")),
    "reviews.sign": ("configure", lambda desk, who: desk.reviews.sign(who, b"k" * 32)),
    "reviews.adjudicate": ("oversee", lambda desk, who: desk.reviews.adjudicate(who, decision("case-1"))),
    "team.claim": ("decide", lambda desk, who: desk.team.claim(who, "case-1")),
    "team.claim_next": ("decide", lambda desk, who: desk.team.claim_next(who, CaseFilter())),
    "team.release": ("decide", lambda desk, who: desk.team.release(who, "case-1")),
    "team.skip": ("decide", lambda desk, who: desk.team.skip(who, ["case-1"])),
    "team.comment": ("decide", lambda desk, who: desk.team.comment(who, "case-1", "text")),
    "team.tag": ("decide", lambda desk, who: desk.team.tag(who, ["case-1"], ["t"])),
    "team.untag": ("decide", lambda desk, who: desk.team.untag(who, ["case-1"], ["t"])),
    "team.assign": ("oversee", lambda desk, who: desk.team.assign(who, ["case-1"], ["another"])),
    "team.unassign": ("oversee", lambda desk, who: desk.team.unassign(who, ["case-1"], ["another"])),
    "team.set": ("oversee", lambda desk, who: desk.team.set(who, QueuePolicy(lease_minutes=9))),
    "team.save_view": ("decide", lambda desk, who: desk.team.save_view(who, "mine", {})),
    "team.remove_view": (
        "decide",
        lambda desk, who: desk.team.remove_view(who, SavedView(name="mine", owner="", parameters={})),
    ),
    "backups.make": ("export", lambda desk, who: desk.backups.make(who, desk.database.with_name("copy.db"))),
    "cases.add": ("audit", lambda desk, who: desk.cases.add(who, [a_case("new")])),
    "cases.add_one": ("audit", lambda desk, who: desk.cases.add_one(who, a_case("new"))),
    "cases.add_demo": ("audit", lambda desk, who: desk.cases.add_demo(who)),
    "audits.cancel": ("audit", lambda desk, who: desk.audits.cancel(who, "run-1")),
    "audits.audit": ("audit", lambda desk, who: desk.audits.audit(who, desk.store.cases.get("case-1"))),
    "audits.store_run": ("audit", lambda desk, who: desk.audits.store_run(who, made_elsewhere())),
    "audits.forget_replies": ("audit", lambda desk, who: desk.audits.forget_replies(who, "case-1")),
    "drafts.save": ("decide", lambda desk, who: desk.drafts.save(who, "case:case-1", {"note": "n"})),
    "drafts.clear": ("decide", lambda desk, who: desk.drafts.clear(who, "case:case-1")),
    "drafts.adopt": ("decide", lambda desk, who: desk.drafts.adopt(who)),
    "exports.write": ("export", lambda desk, who: desk.exports.write(who, io.BytesIO(), "decided")),
    "exports.write_file": ("export", lambda desk, who: desk.exports.write_file(who, Path("/dev/null"), "decided")),
    "exports.write_log_csv": (
        "export",
        lambda desk, who: desk.exports.write_log_csv(who, io.BytesIO(), DecisionFilter()),
    ),
    "datasets.freeze": ("export", lambda desk, who: desk.datasets.freeze(who, "v1", "claims", Selection(CaseFilter()))),
    "datasets.write": ("export", lambda desk, who: desk.datasets.write(who, "v1", Path("/dev/null"))),
    "datasets.zipped": ("export", lambda desk, who: desk.datasets.zipped(who, "v1")),
    "datasets.remove": ("oversee", lambda desk, who: desk.datasets.remove(who, "v1")),
    "corpora.add": ("audit", lambda desk, who: desk.corpora.add(who, "c", [], source="test")),
    "corpora.add_demo": ("audit", lambda desk, who: desk.corpora.add_demo(who)),
    "corpora.keep_records": ("audit", lambda desk, who: desk.corpora.keep_records(who, "c", [], source="x")),
    "corpora.remove": ("oversee", lambda desk, who: desk.corpora.remove(who, "c")),
    "screenings.screen": ("audit", lambda desk, who: desk.screenings.screen(who, "Does it work?", ["corpus:c"])),
    "screenings.store_screening": ("audit", lambda desk, who: desk.screenings.store_screening(who, screened(), [])),
    "imports.formats_of": ("audit", lambda desk, who: desk.imports.formats_of(who, FILE, name="a.jsonl")),
    "imports.look": ("audit", lambda desk, who: desk.imports.look(who, FILE, name="a.jsonl")),
    "imports.add_file": ("audit", lambda desk, who: list(desk.imports.add_file(who, FILE, name="a.jsonl"))),
    "lake.bring_in": ("audit", lambda desk, who: desk.lake.bring_in(who, str(FILE.parent), needs_review=True)),
    "screenings.cancel": ("audit", lambda desk, who: desk.screenings.cancel(who, "s")),
    "screenings.override": (
        "decide",
        lambda desk, who: desk.screenings.override(who, "s", "a", "recommendation", "keep", reason="r"),
    ),
    "screenings.hand_over": ("audit", lambda desk, who: desk.screenings.hand_over(who, "s")),
    "screenings.reset_memory": ("oversee", lambda desk, who: desk.screenings.reset_memory(who, reason="r")),
    "screenings.export": ("export", lambda desk, who: desk.screenings.export(who, "s", "csv")),
    "versions.fill_evidence": ("audit", lambda desk, who: desk.versions.fill_evidence(who, "case-1", {"1": "Text."})),
    "screenings.take_labels": ("decide", lambda desk, who: desk.screenings.take_labels(who, "s", [])),
    "screenings.agree": ("decide", lambda desk, who: desk.screenings.agree(who, "s", "a")),
    "screenings.begin_further": ("audit", lambda desk, who: desk.screenings.begin_further(who, "s", 1)),
    "screenings.search_further": ("audit", lambda desk, who: desk.screenings.search_further(who, "s")),
    "reassessment.run": ("oversee", lambda desk, who: desk.reassessment.run(who, apply=True)),
    "trust.fit": ("oversee", lambda desk, who: desk.trust.fit(who)),
    "trust.draw": ("oversee", lambda desk, who: desk.trust.draw(who, "auditor", draws=149)),
    "trust.apply": ("oversee", lambda desk, who: desk.trust.apply(who)),
    "trust.end": ("oversee", lambda desk, who: desk.trust.end(who, "no longer needed")),
    "retention.purge": ("purge", lambda desk, who: desk.retention.purge(who, rule_of(0), how="page")),
    "use_settings": ("configure", lambda desk, who: desk.use_settings(who, Settings(max_iterations=1))),
}
READS = {
    *("drafts.get", "cases.open_for", "cases.find_for", "team.work", "team.next_open", "team.open_to"),
    *(
        "team.count_open",
        "team.why_empty",
        "team.comments",
        "team.machine_hidden",
        "team.leases",
        "team.hides_counts_from",
    ),
    *(
        "trust.compare",
        "trust.parts",
        "trust.together",
        "trust.decisions_by",
        "trust.counts_in_words",
        "trust.people",
        "trust.missed",
        "trust.yields",
        "trust.reviewers",
    ),
    *("cases.facets_for", "cases.hides_machine_from", "cases.hides_figures_from", "cases.blinded"),
}
"""What a person reads under their own name: whoever is let in may read."""


def use_cases(desk: Workbench) -> Iterator[str]:
    """Every method of the workbench and its services that takes an actor."""
    services = {
        name: value for name, value in vars(desk).items() if type(value).__module__.startswith("masis.services")
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


def test_every_use_case_that_takes_an_actor_is_in_the_matrix(desk: Workbench) -> None:
    assert set(use_cases(desk)) - {"access.allows", "access.require"} == set(CALLS) | READS
    assert set(get_args(Permission)) == set(PERMISSIONS)


@pytest.mark.parametrize("use_case", sorted(CALLS))
def test_a_use_case_is_refused_to_every_role_that_does_not_grant_it(use_case: str, desk: Workbench) -> None:
    permission, call = CALLS[use_case]
    needed: Role = PERMISSIONS[permission]
    before = state(desk)
    below = {role: SIGNED_IN[role] for role in ROLES[: ROLES.index(needed)]}
    for actor in (below | NOBODY).values():
        with pytest.raises(NotAllowed):
            call(desk, actor)
    assert state(desk) == before
    try:
        call(desk, SIGNED_IN[needed])  # the lowest role that grants it; it may fail for other reasons here
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


def test_a_name_that_was_only_typed_is_told_from_one_that_was_signed_in_under(tmp_path: Path) -> None:
    with_names = Workbench.open(tmp_path / "open.db")
    with_names.store.cases.add(a_case("case-0"))
    entry = with_names.reviews.submit(Actor(name="Ada"), decision("case-0", extra={SIGNED_IN_BY: "team"}))
    assert SIGNED_IN_BY not in entry.decision.extra
    with_names.close()


def test_a_reviewer_undoes_their_own_decision(desk: Workbench) -> None:
    entry = desk.reviews.submit(SIGNED_IN["reviewer"], decision("case-1"))
    assert desk.reviews.undo(SIGNED_IN["reviewer"], entry.id).decision.reviewer == "reviewer@example.org"


def test_jobs_of_the_server_ask_for_the_role_too(desk: Workbench) -> None:
    jobs = Jobs(desk)
    try:
        for viewer in (SIGNED_IN["viewer"], *NOBODY.values()):
            for ask in (
                lambda who: jobs.audit(who, "case-1"),
                lambda who: jobs.resume_audit(who, "run-1"),
                jobs.audit_all_new,
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
    assert anyone.cases.overview().cases == 1
    anyone.close()


def test_roles_include_those_before_them() -> None:
    granted = [{each for each in PERMISSIONS if SIGNED_IN[role].may(each)} for role in ROLES]
    assert granted[0] == {"read"}
    assert granted[1] == {"read", "decide", "audit"}
    assert granted[-1] == set(PERMISSIONS)
    assert all(lower < higher for lower, higher in pairwise(granted))

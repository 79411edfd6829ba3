"""What a reviewer is shown must depend neither on undecided work of others nor on a hidden verdict of
the machine, in whatever order audits, decisions, policies and re-audits follow each other.

Two databases hold the same cases, one for each situation, and differ in one thing: what another
reviewer did about them, or what the machine found. Every page, endpoint, tool and command that
reads is shown to a reviewer on both, and the results are compared. The surfaces come from the
tables of the product, so that a new one is compared too.
"""

from __future__ import annotations

import itertools
import json
import re
import shutil
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple, cast, get_args

import pytest
import streamlit as st
from click.testing import CliRunner
from starlette.applications import Starlette
from starlette.testclient import TestClient

import masis.server.api  # noqa: F401 (fills the table of endpoints)
from masis.cli import main, options
from masis.extensions import extensions
from masis.schema.actor import Actor
from masis.schema.review import CaseState, Decision
from masis.schema.team import MachineShown, QueuePolicy
from masis.schema.trust import SamplePlan
from masis.server import app as api
from masis.server.endpoints import ENDPOINTS
from masis.services import SIGN_IN_REQUIRED, Workbench
from masis.services.audits import POLICY
from masis.services.jobs import Jobs
from masis.services.records import ORDERS, CaseFilter
from masis.settings import Settings
from masis.settings.sign_in import SignIn
from masis.store import Store
from masis.ui.shell import reach, served_database
from tests.reviewing import having_seen
from tests.rooms import HAS_INTEGRATIONS, needs_integrations
from tests.store.factories import SETTINGS, a_case, a_run, acceptance_of, an_iteration
from tests.ui.conftest import open_page
from tests.ui.test_blind import data_shown

LEA = Actor(name="Lea", roles=("lead",), authenticated=True, signed_in_by="team")
ADA, BEN = (Actor(name=name, roles=("reviewer",), authenticated=True) for name in ("Ada", "Ben"))

STEPS = {
    "found": "an audit finds an invalid reference",
    "clean": "an audit finds nothing, and the policy accepts the answer",
    "other": "Ben decides or comments",
    "policy": "the team's policy changes",
    "interrupted": "an audit is interrupted",
    "running": "an audit runs",
    "undo": "the acceptance is undone",
    "redone": "Ben undoes his decision and decides again",
    "mine": "Ada decides",
    "assigned": "Ada is assigned",
    "tagged": "the case is tagged",
    "commented": "Ada comments",
    "skipped": "Ada skips the case",
    "remarked": "a lead comments",
}
OTHERS = ("approve", "reject", "escalate", "override", "comment")


def orders(*steps: str) -> set[tuple[str, ...]]:
    return set(itertools.permutations(steps))


SITUATIONS: tuple[tuple[str, ...], ...] = tuple(
    sorted(
        {
            *orders("found", "other", "policy"),
            *orders("clean", "other", "policy"),
            *orders("found", "clean", "other"),
            *(("clean", *order) for order in orders("other", "clean")),
            *(("clean", *order) for order in orders("other", "undo")),
            ("other", "clean", "undo"),
            *orders("interrupted", "other"),
            ("interrupted", "other", "clean"),
            ("other", "running"),
            ("running", "other"),
            ("other",),
            ("found", "other", "redone"),
            ("clean", "other", "redone", "found"),
            ("policy", "clean", "other", "redone"),
            *orders("clean", "assigned", "other"),
            ("found", "tagged", "other"),
            ("found", "other", "tagged"),
            ("found", "commented", "other"),
            ("clean", "skipped", "other"),
            *(("clean", *order) for order in orders("remarked", "other")),
            ("clean", "mine", "policy"),
            ("found", "mine", "clean"),
        }
    )
)
"""The order in which things happen to each case. ``policy`` separates the two halves of a case."""


def case_id(number: int) -> str:
    return f"case-{number:02}"


IDS = tuple(map(case_id, range(len(SITUATIONS))))


class World(NamedTuple):
    """One of the two databases: whether Ben acts, and whether the machine's verdicts are swapped."""

    ben: bool
    swapped: bool = False


class Policies(NamedTuple):
    """The policies before and after the change, and the cases drawn for a guarantee.

    With ``strict``, every case is also in the named queues ``Open`` and ``Strict``. Decisions are
    made in neither, but in the first queue.
    """

    machine: MachineShown
    reviewers: int = 2
    later_reviewers: int = 3
    drawn: tuple[str, ...] = ()
    strict: QueuePolicy | None = None

    def label(self) -> str:
        """Return the name of the policies in a test's id."""
        drawn = "-drawn" if self.drawn else ""
        strict = self.strict
        queues = f"-in-{strict.machine}-{strict.reviewers}" if strict else ""
        return f"{self.machine}-{self.reviewers}-then-{self.later_reviewers}{drawn}{queues}"

    def policy(self, reviewers: int) -> QueuePolicy:
        return QueuePolicy(reviewers=reviewers, machine=self.machine)


def build(path: Path, world: World, policies: Policies) -> None:
    """Fill a database: every case up to its change of the policy, the change, and the rest."""
    for half in (0, 1):
        at = [f"2026-01-0{half + 2}T08:00:00.000Z"]
        store = Store.open(path, now=lambda: at[0])  # noqa: B023 (used within this iteration)
        workbench = Workbench(store, Settings(), path)
        reviewers = (policies.reviewers, policies.later_reviewers)[half]
        workbench.team.put_in_force(LEA, policies.policy(reviewers))
        if half == 0:
            store.cases.add_many([a_case(case_id) for case_id in IDS])
            if policies.strict is not None:
                everything = CaseFilter(datasets=("made for tests",))
                workbench.queues.create(LEA, "Open", everything)
                strict = workbench.queues.create(LEA, "Strict", everything)
                workbench.queues.change(LEA, strict.model_copy(update={"policy": policies.strict}))
            if policies.drawn:
                plan = {"case_ids": policies.drawn, "version": 1}
                store.team.put_in_force("Lea", SamplePlan.model_construct(**plan))
        for number, steps in enumerate(SITUATIONS):
            cut = steps.index("policy") if "policy" in steps else len(steps)
            for place, step in enumerate(steps):
                at[0] = f"2026-01-0{half + 2}T09:{number:02}:{place:02}.000Z"
                if step != "policy" and (place < cut) == (half == 0):
                    do(workbench, world, number, step, f"run-{number:02}-{place}")
        workbench.close()


def audit(store: Store, number: int, run_id: str, *, clean: bool) -> None:
    case = store.cases.get(case_id(number))
    iteration = (
        an_iteration(invalid=(), confidence=0.95, quality=0.95, overall=0.95)
        if clean
        else an_iteration()
    )
    times = {"started_at": store.database.now(), "finished_at": store.database.now()}
    run = a_run(case, run_id, iterations=(iteration,), needs_review=not clean, **times)
    store.runs.finish(run)
    if clean:
        entry = acceptance_of(run).model_copy(update={"reviewer": POLICY.name})
        if store.cases.summary(case.id).state == "needs_review":
            store.decisions.append(entry)


def decide(workbench: Workbench, who: Actor, case: str, verdict: str) -> None:
    newest = next((run.id for run in workbench.store.runs.for_case(case) if run.readable), None)
    content = {"reviewer": who.name, "case_id": case, "run_id": newest, "reason": "read"}
    corrected = "It was opened in 1932 [1]." if verdict == "override" else None
    decision = Decision.model_validate(
        {**content, "verdict": verdict, "corrected_answer": corrected, "iteration": newest and 1}
    )
    workbench.reviews.submit(who, having_seen(workbench, decision))


def do(workbench: Workbench, world: World, number: int, step: str, run_id: str) -> None:
    store, case = workbench.store, case_id(number)
    if step in ("found", "clean"):
        audit(store, number, run_id, clean=(step == "clean") != world.swapped)
    elif step in ("running", "interrupted"):
        digest = store.cases.get(case).digest()
        store.runs.start(run_id, case_id=case, case_digest=digest, models={}, settings=SETTINGS)
        if step == "interrupted":
            store.runs.abandon(run_id, "Ctrl-C")
    elif step == "undo":
        current = store.decisions.current(case)
        if current is not None and current.decision and current.decision.kind == "policy_accept":
            workbench.reviews.undo(LEA, current.id)
    elif step == "mine":
        if store.team.in_force(QueuePolicy).reviewers > 1:  # otherwise the case is settled
            decide(workbench, ADA, case, "reject")
    elif step == "remarked":
        workbench.team.comment(LEA, case, "Please read this one closely.")
    elif step == "assigned":
        workbench.team.assign(LEA, [case], [ADA.name])
    elif step == "tagged":
        workbench.team.tag(LEA, [case], ["later"])
    elif step == "commented":
        workbench.team.comment(ADA, case, "I am not sure.")
    elif step == "skipped":
        workbench.team.skip(ADA, [case])
    elif world.ben:
        act_as_ben(workbench, case, OTHERS[number % len(OTHERS)], again=step == "redone")


def act_as_ben(workbench: Workbench, case: str, action: str, *, again: bool) -> None:
    if again and action != "comment":
        for entry in workbench.store.decisions.individual(case):
            workbench.reviews.undo(BEN, entry.id)
        decide(workbench, BEN, case, "reject")
    elif action == "comment":
        decide(workbench, BEN, case, "approve")
        workbench.team.comment(BEN, case, "I would not trust it.")
    else:
        decide(workbench, BEN, case, action)


# The surfaces.

Show = Callable[[Workbench], str]


class _NoJobs:
    """A queue of audits in which none waits or runs."""

    def count_ahead(self, run_id: str) -> None:
        return None

    def get(self, run_id: str) -> None:
        return None


def client_of_ada(workbench: Workbench) -> TestClient:
    """A client of the API for which Ada has signed in."""

    # Without sign-in, the API ignores who has signed in, and the workbench refuses an unnamed person
    # everything.
    server = api.Server(
        lambda: workbench, lambda: cast("Jobs", _NoJobs()), cast("SignIn", object())
    )
    app = Starlette(routes=[api.api_route(server)])

    async def signed_in(scope: Any, receive: Any, send: Any) -> None:
        await app({**scope, api.ACTOR: ADA}, receive, send)

    return TestClient(signed_in, headers={api.CSRF_HEADER: "1"})


def over_api(workbench: Workbench) -> str:
    """Every endpoint that reads, for every case and run."""
    client, answers = client_of_ada(workbench), []
    runs = [run.id for case_id in IDS for run in workbench.store.runs.for_case(case_id)]
    named = {"case": IDS, "run": tuple(runs), "subject": ("case:case-01",), "batch": ("none",)}
    named |= {"form": ("answers", "jsonl"), "name": ("none",), "version": ("none",)}
    for endpoint in ENDPOINTS:
        if endpoint.method != "GET":
            continue
        parameter = re.search(r"{(\w+)", endpoint.path)
        for value in named[parameter[1]] if parameter else ("",):
            path = re.sub(r"{[^}]*}", value, endpoint.path)
            for query in ({}, endpoint.example or {}):
                answer = client.get(f"{api.PREFIX}{path}", params=cast("Any", query))
                assert answer.status_code not in (401, 429)
                answers.append(f"{path} {answer.status_code} {answer.text}")
    assert sum(" 200 " in answer[:120] for answer in answers) > len(IDS)
    return "\n".join(answers)


def over_api_writing(workbench: Workbench) -> str:
    """What the API answers to a person who comments, or tries decisions without recording them."""
    client, answers = client_of_ada(workbench), []
    for case_id in IDS:
        row = {"case": case_id, "verdict": "reject", "reason": "unsupported"}
        tried = client.post(f"{api.PREFIX}/decisions", json={"rows": [row], "dry_run": True})
        said = client.post(f"{api.PREFIX}/cases/{case_id}/comments", json={"text": "Why?"})
        assert (tried.status_code, said.status_code) == (200, 200)
        answers += [tried.text, said.text]
    return "\n".join(answers)


def over_filters(workbench: Workbench) -> str:
    """The list of cases by every filter and order that the service has."""
    filters: list[Mapping[str, Any]] = [{"states": (state,)} for state in get_args(CaseState)]
    filters += [
        {"standings": (state,)} for state in ("nothing_found", "wrong", "waits", "to_review")
    ]
    filters += [{"order": name} for name in ORDERS] + [{"reviewers": (BEN.name,)}]
    filters += [
        {"reviewers": (POLICY.name,)},
        {"flags": ("invalid_citation",)},
        {"quality_to": 0.5},
    ]
    filters += [{"models": ("offline",)}, {"tiers": ("must_look",)}, {"text": "trust"}]
    found = []
    for given in filters:
        case_filter = CaseFilter(size=200, **given)
        found.append(f"{given} {workbench.cases.find_for(ADA, case_filter).model_dump_json()}")
        found.append(str(workbench.cases.standings_for(ADA, case_filter)))
        found.append(str(workbench.team.count_open(ADA, case_filter)))
        found += [
            f"{field} {sorted(workbench.cases.values_for(ADA, case_filter, field).items())}"
            for field in ("states", "flags", "reasons", "reviewers", "tags", "models")
        ]
    for queue in workbench.queues.all(ADA):
        found.append(workbench.queues.figures(ADA, queue.id).model_dump_json())
        for waits in (True, False):
            in_queue = CaseFilter(queue=queue.id, waits_in_queue=waits, size=200)
            found.append(workbench.cases.find_for(ADA, in_queue).model_dump_json())
            found.append(str(workbench.cases.standings_for(ADA, in_queue)))
        found += [str(workbench.team.work(ADA, case_id, queue.id)) for case_id in IDS]
    found.append(str(workbench.cases.facets_for(ADA)))
    found += [str(workbench.team.work(ADA, case_id)) for case_id in IDS]
    return "\n".join(found)


def over_tools(workbench: Workbench) -> str:
    """Every tool that reads stored cases."""
    from masis.integrations.mcp.tools import TOOLS, CallWatch, Tools

    arguments: dict[str, list[dict[str, Any]]] = {
        "list_queue": [{}, {"states": ["accepted"]}, {"states": ["needs_review"]}],
        "get_case": [{"caseId": case_id} for case_id in IDS],
        "search_evidence": [{"text": "bridge"}],
    }
    tools = Tools(workbench)
    return json.dumps(
        [
            TOOLS[name].call(tools, TOOLS[name].parse_arguments(given), CallWatch())
            for name in READING_TOOLS
            for given in arguments[name]
        ]
    )


def over_commands(workbench: Workbench) -> str:
    """Every command that shows a reviewer something."""
    calls: list[tuple[str, ...]] = [("queue",), ("queue", "--json"), ("log",), ("log", "--json")]
    calls += [(name, case_id, "--json") for name in ("show", "log") for case_id in IDS]
    calls.append(("queues", "list", "--json"))
    calls += [("queue", "--queue", queue.name) for queue in workbench.queues.all(ADA)]
    outputs = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(options, "open_existing", cache(options.open_existing))
        for call in calls:
            given = ["--by", ADA.name, "--db", str(workbench.database)]
            done = CliRunner().invoke(main, [*call, *given])
            assert done.exit_code == 0, done.output
            outputs.append(f"{call} {done.output}")
        options.open_existing(workbench.database).close()
    return "\n".join(outputs)


def over_page(name: str, **address: str) -> Show:
    def show(workbench: Workbench) -> str:
        served_database._served[:] = [workbench.database]
        st.cache_resource.clear()
        st.cache_data.clear()
        return "\n".join(data_shown(open_page(name, **address)))

    return show


READING_TOOLS = ("list_queue", "get_case", "search_evidence")
PAGES = (
    *(path.stem for path in sorted(Path("pages").glob("*.py"))),
    *(page.address for added in extensions() for page in added.pages),
)
SURFACES: dict[str, Show] = {
    "API": over_api,
    "API writing": over_api_writing,
    "filters": over_filters,
    **({"tools": over_tools} if HAS_INTEGRATIONS else {}),
    "commands": over_commands,
}
PAGE_SURFACES: dict[str, Show] = {
    **{f"page {name}": over_page(name) for name in PAGES if name != "review"},
    "retention of waiting cases": over_page("retention", days="1", waiting="no"),
    "accepted": over_page("queue", state="accepted"),
    "nothing found": over_page("queue", standing="nothing_found"),
    **{f"case {case_id}": over_page("review", case=case_id) for case_id in IDS[::6]},
    **{f"queue {name}": over_page("queue", queue=name) for name in ("open", "strict")},
    **{
        f"case in {name}": over_page("review", queue=name, case=IDS[2])
        for name in ("open", "strict")
    },
    "figures of queues": over_page("team", view="queues"),
    "missed errors": over_page("trust", view="missed"),
}


class _Ada:
    """A sign-in whose every session is Ada's."""

    def actor(self, claims: object) -> Actor:
        """Return who has signed in."""
        return ADA


@pytest.fixture(autouse=True)
def signed_in_as_ada(monkeypatch: pytest.MonkeyPatch) -> None:
    """Serve pages to Ada, and answer any number of her requests."""
    monkeypatch.setattr(reach, "_served", [reach.Reach(sign_in=cast("SignIn", _Ada()))])
    monkeypatch.setattr(served_database, "_served", [])
    monkeypatch.setattr(api, "REQUEST_BURST", 1_000_000)


Pair = tuple[Path, Path]


def pair(folder: Path, worlds: tuple[World, World], policies: Policies) -> Pair:
    paths = (folder / "one.db", folder / "two.db")
    for path, world in zip(paths, worlds, strict=True):
        build(path, world, policies)
    return paths


def difference(databases: Pair, show: Show, folder: Path, patch: pytest.MonkeyPatch) -> str:
    """Return where what is shown of two databases differs, or an empty text."""
    seen = []
    for path in databases:
        copy = folder / "blind.db"  # under the same name, and opening a case takes it
        for leftover in folder.glob("blind.db*"):
            leftover.unlink()
        shutil.copy(path, copy)
        store = Store.open(copy, now=lambda: "2026-01-05T12:00:00.000Z")
        workbench = Workbench(store, Settings(), copy, SIGN_IN_REQUIRED)
        patch.setattr(served_database, "_open_served", lambda _, one=workbench: one)
        # Digests, and ids made of them, differ between any two databases.
        # The size of a file depends on how often pages of SQLite were split.
        text = re.sub(r"\b[0-9a-f]{8,64}\b", "DIGEST", show(workbench))
        seen.append(re.sub(r"\b[\d.]+ [kM]B\b", "SIZE", text))
        workbench.close()
    if seen[0] == seen[1]:
        return ""
    at = next(
        (at for at, both in enumerate(zip(*seen, strict=False)) if both[0] != both[1]),
        min(map(len, seen)),
    )
    place = slice(max(0, at - 300), at + 120)
    return f"{seen[0][place]!r}\nin the other\n{seen[1][place]!r}"


POLICIES = (
    Policies("first"),
    Policies("after"),
    Policies("never", later_reviewers=4),
    Policies("first", reviewers=3, later_reviewers=2),
    Policies("first", reviewers=1, later_reviewers=1, strict=QueuePolicy(reviewers=3)),
)


@pytest.fixture(scope="module", params=POLICIES, ids=Policies.label)
def with_and_without_ben(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Pair:
    """Databases in which Ben did nothing, and something."""
    worlds = (World(ben=False), World(ben=True))
    return pair(tmp_path_factory.mktemp("others"), worlds, request.param)


HIDING = (
    Policies("never"),
    Policies("never", reviewers=1, later_reviewers=1),
    Policies("first", reviewers=1, later_reviewers=1, drawn=IDS),
    Policies("first", reviewers=1, later_reviewers=1, strict=QueuePolicy(machine="after")),
    Policies("first", reviewers=1, later_reviewers=1, strict=QueuePolicy(machine="never")),
)


@pytest.fixture(scope="module", params=HIDING, ids=Policies.label)
def with_swapped_verdicts(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Pair:
    """Databases whose audits found the opposite of each other."""
    worlds = (World(ben=False), World(ben=False, swapped=True))
    return pair(tmp_path_factory.mktemp("machine"), worlds, request.param)


@pytest.mark.parametrize("surface", SURFACES)
def test_nothing_reveals_undecided_work_of_others(
    with_and_without_ben: Pair, surface: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert difference(with_and_without_ben, SURFACES[surface], tmp_path, monkeypatch) == ""


@pytest.mark.slow
@pytest.mark.parametrize("surface", PAGE_SURFACES)
def test_no_page_reveals_undecided_work_of_others(
    with_and_without_ben: Pair, surface: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert difference(with_and_without_ben, PAGE_SURFACES[surface], tmp_path, monkeypatch) == ""


@pytest.mark.parametrize("surface", [name for name in SURFACES if name != "tools"])
def test_nothing_reveals_a_hidden_verdict_of_the_machine(
    with_swapped_verdicts: Pair, surface: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert difference(with_swapped_verdicts, SURFACES[surface], tmp_path, monkeypatch) == ""


FIGURES = (
    "page overview",
    "page metrics",
    "page retention",
    "retention of waiting cases",
    "missed errors",
)
"""Pages with figures over all audits, which include those of a guarantee's sample.

Only a policy that hides the machine's verdicts hides them (docs/security.md).
"""


@pytest.mark.slow
@pytest.mark.parametrize("surface", PAGE_SURFACES)
def test_no_page_reveals_a_hidden_verdict_of_the_machine(
    with_swapped_verdicts: Pair,
    surface: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    request: pytest.FixtureRequest,
) -> None:
    if "drawn" in request.node.callspec.id and surface in FIGURES:
        return
    assert difference(with_swapped_verdicts, PAGE_SURFACES[surface], tmp_path, monkeypatch) == ""


def test_the_surfaces_include_every_page() -> None:
    assert {f"page {name}" for name in PAGES} <= {
        *PAGE_SURFACES,
        "page review",
    }
    assert len(SITUATIONS) >= 36


@needs_integrations
def test_the_surfaces_include_every_reading_tool() -> None:
    from masis.integrations.mcp.tools import TOOLS

    others = {"critique_answer", "audit_citations", "verify_claims", "run_audit", "get_run"}
    assert set(TOOLS) == {*READING_TOOLS, *others}

"""What a blind reviewer is shown must not depend on what another one decided, until the case is
settled.

Two databases that differ in nothing but whether and what Ben decided about shared cases are shown
to Ada by every page, address, download, command and tool, and what they show is compared.
"""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple, cast

import pytest
import streamlit as st
from click.testing import CliRunner
from starlette.applications import Starlette
from starlette.testclient import TestClient
from streamlit.testing.v1 import AppTest

from masis.cli import main
from masis.schema.actor import Actor
from masis.schema.judge_trials import DecidedFilter, DecidedSplit
from masis.schema.labels import TargetLabel
from masis.schema.review import Decision
from masis.schema.team import QueuePolicy
from masis.services import SIGN_IN_REQUIRED, Workbench
from masis.settings import Settings
from masis.settings.sign_in import SignIn
from masis.store import Store
from masis.ui.admin.health_reports import HealthReports, check_database
from masis.ui.shell import reach, serve, served_database
from masis.ui.shell.sign_in import ACTOR
from tests.reviewing import submit
from tests.rooms import HAS_SCREENING, needs_integrations
from tests.ui.conftest import AUDITED, open_page

OPEN, OWN, SETTLED, UNDONE, UNTOUCHED = AUDITED
"""Cases: Ben may have decided the first, Ada and Ben, of three, the second, Ben and undone it the
fourth.
"""

LEAD = Actor(name="Lea", roles=("lead",), authenticated=True, signed_in_by="team")
ADA, BEN, CLEO = (
    Actor(name=name, roles=("reviewer",), authenticated=True)
    for name in ("Ada Lind", "Ben", "Cleo")
)


class Situation(NamedTuple):
    """What both databases share: when the machine's verdict is shown, and whether Ada has decided
    anything.
    """

    machine: str
    decided: bool = True


SITUATIONS = (Situation("first"), Situation("after"), Situation("first", decided=False))


def act(path: Path, when: str, do: Callable[[Workbench], object]) -> None:
    """Do something with a database at a time."""
    workbench = Workbench(Store.open(path, now=lambda: when), Settings(), path)
    do(workbench)
    workbench.close()


def decide(workbench: Workbench, who: Actor, case_id: str, verdict: str, **given: Any) -> str:
    run = workbench.cases.summary(case_id).run_id
    content = {
        "reviewer": who.name,
        "case_id": case_id,
        "run_id": run,
        "reason": "read",
        "iteration": 1,
    }
    return submit(workbench, Decision.model_validate({**content, "verdict": verdict, **given})).id


def settle(workbench: Workbench) -> None:
    for who in (ADA, BEN, CLEO):
        decide(workbench, who, SETTLED, "approve")


def choose_for_the_judge(workbench: Workbench) -> None:
    """Choose all decided cases, also later ones, so that the judge page shows its figures."""
    chosen = DecidedSplit(
        id="chosen",
        at="2026-01-02T09:30:00.000Z",
        by=LEAD.name,
        seed=1,
        filters=DecidedFilter(blind_only=False),
        cases=1,
        questions=1,
        held_out=(),
    )
    workbench.store.judge_trials.add_split(chosen)


def ben_decides(workbench: Workbench) -> None:
    label = TargetLabel(target="answer", label="unsafe", severity="high")
    workbench.team.claim(BEN, OPEN)
    decide(workbench, BEN, OPEN, "override", corrected_answer="Nothing of it.", labels=(label,))
    workbench.team.comment(BEN, OPEN, "I would not trust it.")
    decide(workbench, BEN, OWN, "approve")
    workbench.reviews.undo(BEN, decide(workbench, BEN, UNDONE, "escalate"))


def ada_decides(workbench: Workbench) -> None:
    for verdict in ("approve", "reject"):
        decide(workbench, ADA, OWN, verdict)


@pytest.fixture(scope="module", params=SITUATIONS, ids=str)
def databases(
    request: pytest.FixtureRequest, audited_database: Path, tmp_path_factory: pytest.TempPathFactory
) -> dict[bool, Path]:
    """The databases, by whether Ben has decided."""
    found, situation = {}, request.param
    policy = QueuePolicy(reviewers=3, machine=situation.machine)
    for with_ben in (False, True):
        path = found[with_ben] = tmp_path_factory.mktemp("blind") / "blind.db"
        shutil.copy(audited_database, path)
        act(
            path,
            "2026-01-02T08:00:00.000Z",
            lambda workbench: workbench.team.put_in_force(LEAD, policy),
        )
        act(path, "2026-01-02T09:00:00.000Z", settle)
        act(path, "2026-01-02T09:30:00.000Z", choose_for_the_judge)
        if with_ben:
            act(path, "2026-01-02T10:00:00.000Z", ben_decides)
        if situation.decided:
            act(path, "2026-01-02T11:00:00.000Z", ada_decides)
    return found


Show = Callable[[Workbench], str]


@pytest.fixture
def differs(databases: dict[bool, Path], tmp_path: Path) -> Callable[[Show], str]:
    """Where what is shown of one database differs from what is shown of the other; empty where it
    doesn't.
    """

    def compare(show: Show) -> str:
        seen = {}
        for with_ben, path in databases.items():
            copy = tmp_path / "blind.db"  # opening a case takes it
            for leftover in tmp_path.glob("blind.db*"):
                leftover.unlink()
            shutil.copy(path, copy)
            store = Store.open(copy, now=lambda: "2026-01-02T12:00:00.000Z")
            with_sign_in = Workbench(store, Settings(), copy, SIGN_IN_REQUIRED)
            # digests, and ids made of them, differ between any two databases
            seen[with_ben] = re.sub(r"\b[0-9a-f]{8,64}\b", "DIGEST", show(with_sign_in))
            with_sign_in.close()
        at = next(
            (at for at, pair in enumerate(zip(*seen.values(), strict=False)) if pair[0] != pair[1]),
            None,
        )
        if seen[True] == seen[False]:
            return ""
        place = slice(max(0, (at or 0) - 200), (at or 0) + 60)
        return f"{seen[True][place]!r}, and without Ben {seen[False][place]!r}"

    return compare


class _Ada:
    """A sign-in whose every session is Ada's."""

    def actor(self, claims: object) -> Actor:
        """Return who has signed in."""
        return ADA


def data_shown(app: AppTest) -> Iterator[str]:
    """Everything that a page hands to the browser."""
    yield from _protos(app._tree)


def _protos(block: Any) -> Iterator[str]:
    if (proto := getattr(block, "proto", None)) is not None:
        yield str(proto)
    for child in getattr(block, "children", {}).values():
        yield from _protos(child)


PAGES: tuple[tuple[str, dict[str, str]], ...] = (
    ("overview", {}),
    *(("queue", {"order": order}) for order in ("risk", "disagreement", "newest")),
    *(("queue", {"standing": state}) for state in ("waits", "decided", "to_review")),
    ("queue", {"state": "approved,needs_adjudication,rejected"}),
    ("queue", {"reviewer": "Ben"}),
    ("queue", {"q": "trust"}),
    *(("review", {"case": case_id}) for case_id in (OPEN, OWN, SETTLED, UNDONE)),
    ("review", {"case": OPEN, "run": "RUN", "iteration": "1", "reviewer": "Ben"}),
    ("new", {"case": OPEN}),
    ("import", {}),
    *([("screening", {})] if HAS_SCREENING else []),
    ("compare", {"case": OWN}),
    ("decisions", {}),
    ("decisions", {"reviewer": "Ben"}),
    ("decisions", {"case": OPEN, "order": "oldest"}),
    ("decisions", {"verdict": "override", "since": "2026-01-01"}),
    ("team", {}),
    ("team", {"case": OPEN}),
    ("metrics", {}),
    *(
        ("trust", {"view": view})
        for view in ("machine", "people", "missed", "guarantee", "next", "own")
    ),
    *(("judge", {"step": step}) for step in ("choose", "see", "tell", "compare")),
    *(("modes", {"view": view}) for view in ("read", "groups", "book", "counts")),
    ("settings", {}),
    ("health", {}),
    ("datasets", {}),
    ("retention", {}),
)


@pytest.mark.slow
@pytest.mark.parametrize(("name", "address"), PAGES, ids=str)
def test_pages_and_downloads_dont_reveal_other_decisions_to_a_blind_reviewer(
    differs: Callable[[Show], str],
    name: str,
    address: Mapping[str, str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(reach, "_served", [reach.Reach(sign_in=cast("SignIn", _Ada()))])
    files: list[str] = []
    download = st.download_button

    def downloading(label: str, data: Any, *arguments: Any, **options: Any) -> bool:
        files.append(str(data() if callable(data) else data))
        return download(label, "", *arguments, **options)

    monkeypatch.setattr(st, "download_button", downloading)

    def show(workbench: Workbench) -> str:
        monkeypatch.setattr(served_database, "_served", [workbench.database])
        monkeypatch.setattr(served_database, "_open_served", lambda _: workbench)
        st.cache_resource.clear()
        st.cache_data.clear()
        files.clear()
        run = workbench.cases.summary(OPEN).run_id or ""
        app = open_page(name, **{key: value.replace("RUN", run) for key, value in address.items()})
        return "\n".join([*data_shown(app), *files])

    assert differs(show) == ""


COMMANDS = (
    *(("queue",), ("queue", "--json"), ("log",), ("log", "--json"), ("log", OPEN)),
    *(("show", case, *json) for case in (OPEN, OWN, SETTLED, UNDONE) for json in ((), ("--json",))),
)


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_commands_dont_reveal_other_decisions_to_a_blind_reviewer(
    differs: Callable[[Show], str], command: tuple[str, ...]
) -> None:
    def show(workbench: Workbench) -> str:
        done = CliRunner().invoke(
            main, [*command, "--by", ADA.name, "--db", str(workbench.database)]
        )
        assert done.exit_code == 0, done.output
        return done.output

    assert differs(show) == ""


def test_health_over_http_doesnt_reveal_decisions(
    differs: Callable[[Show], str],
) -> None:
    def show(workbench: Workbench) -> str:
        app = Starlette(
            routes=serve.health_routes(HealthReports(check_database, lambda: workbench.database))
        )

        async def signed_in(scope: Any, receive: Any, send: Any) -> None:
            await app({**scope, ACTOR: ADA}, receive, send)

        items = TestClient(signed_in).get("/health.json").json()["items"]
        return json.dumps([item for item in items if item["name"] != "disk"])

    assert differs(show) == ""


@needs_integrations
def test_mcp_tools_dont_reveal_decisions(
    differs: Callable[[Show], str],
) -> None:
    from masis.integrations.mcp import resources
    from masis.integrations.mcp.tools import TOOLS, CallWatch, Tools

    def show(workbench: Workbench) -> str:
        tools, known = Tools(workbench), TOOLS
        calls = [
            ("list_queue", {}),
            ("list_queue", {"reviewers": ["Ben"]}),
            ("search_evidence", {"text": "export"}),
        ]
        calls += [
            ("list_queue", {"states": ["approved", "needs_adjudication"]}),
            ("list_queue", {"text": "trust"}),
        ]
        calls += [("get_case", {"caseId": case}) for case in AUDITED]
        found = [
            known[name].call(tools, known[name].parse_arguments(given), CallWatch())
            for name, given in calls
        ]
        return json.dumps([*found, resources.list_cases(tools, None).model_dump(mode="json")])

    assert differs(show) == ""

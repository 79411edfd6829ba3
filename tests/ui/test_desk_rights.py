"""What the desk's API refuses: people without a role, forged requests, hidden results, long bodies."""

from __future__ import annotations

import json
from typing import Any, cast

import pytest
from starlette.applications import Starlette
from starlette.responses import PlainTextResponse
from starlette.testclient import TestClient
from starlette.types import ASGIApp, Receive, Scope, Send

from masis.schema.actor import Actor, Role
from masis.schema.team import QueuePolicy
from masis.server.app import ACTOR, LONGEST_BODY, Server, api_route
from masis.server.browser_id import COOKIE, BrowserIds, browser_id
from masis.services import SIGN_IN_REQUIRED, Workbench
from masis.services.drafts import case_subject
from masis.services.team import TeamService
from masis.settings.sign_in import SignIn
from masis.ui.review import desk_api  # noqa: F401 (adds its endpoints to the table)
from tests.reviewing import ADA, decide
from tests.ui.conftest import AUDITED

CASE = AUDITED[0]
PLACE = {"case": CASE}
FORM = {"place": PLACE, "fields": {"verdict": "escalate", "note": "Mine."}, "token": "t"}
DECISION = {**FORM, "shown": {}, "seen": 1}
CHANGES: dict[str, dict[str, Any]] = {
    "PUT draft": FORM,
    "POST decisions": DECISION,
    "POST revision": FORM,
    "POST undo": {"place": PLACE, "entry": "e"},
    "POST open": {"place": PLACE, "to": "skip"},
}


class SignedIn:
    """Middleware that signs every request in, as the gate in front of the pages does."""

    def __init__(self, app: ASGIApp, role: Role | None) -> None:
        self._app, self._role = app, role

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if self._role is not None:
            scope[ACTOR] = Actor(name="Vi", roles=(self._role,), authenticated=True)
        await self._app(scope, receive, send)


def client_of(
    workbench: Workbench, role: Role | None = None, *, signs_in: bool = True
) -> TestClient:
    if signs_in:
        workbench = Workbench.open(workbench.database, access=SIGN_IN_REQUIRED)
    sign_in = cast("SignIn", object()) if signs_in else None
    server = Server(lambda: workbench, lambda: pytest.fail("no job is needed"), sign_in)
    app = SignedIn(Starlette(routes=[api_route(server)]), role)
    return TestClient(app, headers={"X-Masis-Request": "1", "Origin": "http://testserver"})


def ask(client: TestClient, act: str, body: dict[str, Any], **more: Any) -> Any:
    method, path = act.split()
    return client.request(method, f"/api/v1/desk/{path}", json=body, **more)


@pytest.mark.parametrize("act", CHANGES)
def test_a_viewer_reads_but_changes_nothing(audited_workbench: Workbench, act: str) -> None:
    client, before = (
        client_of(audited_workbench, "viewer"),
        audited_workbench.store.decisions.head(),
    )
    assert ask(client, "POST open", {"place": PLACE}).json()["desk"]["answer"]
    response = ask(client, act, CHANGES[act])
    assert response.status_code in (403, 404)
    assert audited_workbench.store.decisions.head() == before
    assert not audited_workbench.store.team.leases()
    assert not audited_workbench.store.drafts.get("Vi", case_subject(CASE)).values


@pytest.mark.parametrize("act", CHANGES)
def test_a_forged_or_unsigned_request_is_refused(audited_workbench: Workbench, act: str) -> None:
    assert ask(client_of(audited_workbench), act, CHANGES[act]).status_code == 401
    client = client_of(audited_workbench, "reviewer")
    del client.headers["X-Masis-Request"]  # another site's page can't add it
    assert ask(client, act, CHANGES[act]).status_code == 403
    # with sign-in, a name in a header counts for nothing
    named = {"X-Masis-Reviewer": "Ada"}
    client = client_of(audited_workbench, "reviewer")
    assert ask(client, "PUT draft", FORM, headers=named).status_code == 200
    assert not audited_workbench.store.drafts.get("Ada", case_subject(CASE)).values
    assert audited_workbench.store.drafts.get("Vi", case_subject(CASE)).values["note"] == "Mine."


def test_a_body_that_is_too_long_or_malformed_is_refused(audited_workbench: Workbench) -> None:
    client = client_of(audited_workbench, signs_in=False)
    long = json.dumps({**FORM, "fields": {"note": "x" * LONGEST_BODY}}).encode()
    kind = {"Content-Type": "application/json"}
    assert client.put("/api/v1/desk/draft", content=long, headers=kind).status_code == 413
    for body in ({}, {**FORM, "place": {}}, {**FORM, "token": "t" * 65}, {**FORM, "more": 1}):
        assert ask(client, "PUT draft", body).status_code == 400
    # what the form itself can't hold is cut or dropped, as with any draft
    assert ask(client, "PUT draft", {**FORM, "fields": {"verdict": "destroy"}}).status_code == 200


def test_a_draft_without_a_name_stays_in_its_browser(audited_workbench: Workbench) -> None:
    """Also when the server draws a case for a browser whose name it doesn't know yet."""
    clients = [client_of(audited_workbench, signs_in=False) for _ in range(3)]
    mine, other, without_cookie = clients
    mine.cookies.set(COOKIE, "m" * 32)
    other.cookies.set(COOKIE, "o" * 32)
    assert ask(mine, "PUT draft", FORM).status_code == 200

    def note(client: TestClient, **headers: str) -> str:
        desk = ask(client, "POST open", {"place": PLACE}, headers=headers).json()["desk"]
        return str(desk["draft"]["note"])

    assert [note(client) for client in clients] == ["Mine.", "", ""]
    empty = {**DECISION, "fields": {}, "adopts": True}  # refused, but the name is known then
    for client in (other, without_cookie):  # by somebody else, who had no name either
        ask(client, "POST decisions", empty, headers={"X-Masis-Reviewer": "Bo"})
    assert note(mine) == "Mine."
    ask(mine, "POST decisions", empty, headers={"X-Masis-Reviewer": "Cara"})
    assert note(mine) == "", "the draft has the name now"


@pytest.mark.parametrize("sent", ["", "short", "browser x; y", "ü" * 30, "a" * 101])
def test_an_invalid_browser_id_is_none(sent: str) -> None:
    assert not browser_id({COOKIE: sent})


def test_a_browser_gets_an_id_once_and_only_with_a_page() -> None:
    async def page(scope: Scope, receive: Receive, send: Send) -> None:
        await PlainTextResponse("page")(scope, receive, send)

    client, html = TestClient(BrowserIds(page)), {"accept": "text/html,*/*"}
    assert "set-cookie" not in client.get("/").headers
    assert "set-cookie" not in client.post("/", headers=html).headers
    cookie = client.get("/queue", headers=html).headers["set-cookie"]
    assert {"HttpOnly", "SameSite=Lax", "Path=/"} <= set(cookie.split("; "))
    given = client.cookies[COOKIE]
    assert browser_id({COOKIE: given}) == given
    assert "set-cookie" not in client.get("/", headers=html).headers
    forged = {**html, "cookie": f"{COOKIE}=forged"}
    assert "set-cookie" in TestClient(BrowserIds(page)).get("/", headers=forged).headers


def test_a_blind_reviewer_gets_nothing_of_the_audit(audited_workbench: Workbench) -> None:
    audited_workbench.team.put_in_force(ADA, QueuePolicy(machine="after"))
    client = client_of(audited_workbench, signs_in=False)
    client.headers["X-Masis-Reviewer"] = "Bo"
    run = audited_workbench.store.cases.summary(CASE).run_id
    for place in (PLACE, {**PLACE, "run": run, "iteration": "2"}, {**PLACE, "against": "2"}):
        desk = ask(client, "POST open", {"place": place}).json()["desk"]
        assert (desk["view"]["issues"], desk["serious"], desk["labels"]["rows"]) == ([], [], [])
        assert desk["iterations"]["count"] == 1
        assert "fabricated" not in json.dumps(desk["view"]).replace(CASE, "")
    queue = {"order": "risk", "severities": ["critical"]}
    desk = ask(client, "POST open", {"place": PLACE, "to": "next", "queue": queue}).json()["desk"]
    assert desk["view"]["issues"] == []
    decide(audited_workbench, CASE, "escalate", "Bo")
    assert ask(client, "POST open", {"place": PLACE}).json()["desk"]["view"]["issues"]


def test_a_case_that_another_reviewer_holds_is_shown_and_refused(
    audited_workbench: Workbench,
) -> None:
    audited_workbench.team.claim(ADA, CASE)
    client = client_of(audited_workbench, signs_in=False)
    client.headers["X-Masis-Reviewer"] = "Bo"
    desk = ask(client, "POST open", {"place": PLACE}).json()["desk"]
    assert desk["notice"]["closed"]
    assert "Ada has taken case" in desk["notice"]["text"]
    body = {**DECISION, "shown": desk["shown"], "seen": desk["seen"]}
    response = ask(client, "POST decisions", body)
    assert (response.status_code, response.json()["error"]["by"]) == (409, ADA.name)
    saved = ask(client, "PUT draft", FORM).json()
    assert saved["saved_at"]
    assert "Ada has taken case" in saved["message"]["text"]


def test_two_people_who_ask_for_the_next_case_at_once_get_different_ones(
    audited_workbench: Workbench, monkeypatch: pytest.MonkeyPatch
) -> None:
    client = client_of(audited_workbench, signs_in=False)
    look_up = TeamService.next_open
    both: list[str] = []

    def look_up_while_another_takes_it(
        self: TeamService, actor: Actor, *arguments: Any, **options: Any
    ) -> str | None:
        found = look_up(self, actor, *arguments, **options)
        if found is not None and not both:
            both.append(found)
            audited_workbench.team.claim(Actor(name="Grace"), found)
        return found

    monkeypatch.setattr(TeamService, "next_open", look_up_while_another_takes_it)
    body = {"place": PLACE, "to": "next"}
    answer = client.post(
        "/api/v1/desk/open", json=body, headers={"X-Masis-Reviewer": ADA.name}
    ).json()
    opened = answer["desk"]["place"]["case"]
    assert both
    assert opened != both[0]
    assert audited_workbench.team.work(ADA, opened).leases[0].reviewer == ADA.name

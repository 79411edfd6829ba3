"""Signing in with a secret: who has not gets nothing, who has decides under that name, and roles
hold everywhere.
"""

from __future__ import annotations

import contextlib
import http.client
import json
import re
from collections.abc import Callable, Iterator
from http.cookies import SimpleCookie
from typing import NamedTuple
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import Browser, Page, Route, expect
from streamlit.proto.BackMsg_pb2 import BackMsg
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg
from websockets.exceptions import InvalidStatus
from websockets.sync.client import connect
from websockets.typing import Origin, Subprotocol

from masis.extensions import extensions
from masis.schema.case import Case
from masis.schema.review import LogEntry
from masis.services import Actor, Workbench
from masis.services.reviews import SIGNED_IN_BY
from masis.settings.sign_in import new_secret
from tests.browser.conftest import serving, until
from tests.cases import case_of
from tests.reviewing import ADA
from tools.browser import settle

PEOPLE = {"Vi": "viewer", "Ro": "reviewer", "Le": "lead"}
SECRETS = {name: new_secret() for name in PEOPLE}
PAGES = (
    "",
    "queue",
    "review",
    "new",
    "compare",
    "decisions",
    "metrics",
    "settings",
    "health",
    "retention",
    "datasets",
    *(page.address for added in extensions() for page in added.pages),
)


class Served(NamedTuple):
    """A workbench with sign-in: its address, and its database as the machine's owner sees it."""

    base: str
    workbench: Workbench

    @property
    def port(self) -> int:
        return urlsplit(self.base).port or 0

    def entries(self, case_id: str) -> list[LogEntry]:
        return [
            decision
            for decision in self.workbench.store.decisions.iterate()
            if decision.decision and decision.decision.case_id == case_id
        ]


def bridge(number: int) -> Case:
    text = f"Bridge {number} is {100 + number} metres long"
    return case_of(
        f"{text} [chunk_1]. It was opened in 1950 [chunk_9].",
        {"chunk_1": f"{text}."},
        case_id=f"bridge-{number}",
        query=f"How long is bridge {number}?",
    )


@pytest.fixture(scope="module")
def served(browser: Browser, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    folder = tmp_path_factory.mktemp("signed")
    entries = [
        f'[people.{name}]\nrole = "{role}"\nsecret = "{SECRETS[name].digest}"'
        for name, role in PEOPLE.items()
    ]
    (folder / "people.toml").write_text("\n".join(entries), encoding="utf-8")
    workbench = Workbench.open(folder / "signed.db")
    for number in range(3):
        workbench.cases.add(ADA, [bridge(number)])
    for number in range(2):
        workbench.audits.audit(ADA, bridge(number))
    options = ("--db", str(folder / "signed.db"), "--sign-in", str(folder / "people.toml"))
    with serving("serve", *options, folder=folder) as base:
        yield Served(base, workbench)
    workbench.close()


@pytest.fixture
def enter(browser: Browser, served: Served) -> Iterator[Callable[[str], Page]]:
    """Signs a person in, in a browser of their own."""
    with contextlib.ExitStack() as contexts:

        def sign_in(name: str) -> Page:
            context = browser.new_context()
            contexts.callback(context.close)
            page = context.new_page()
            page.goto(f"{served.base}/review?case=bridge-0")
            expect(page).to_have_title("Sign in · MASIS Workbench")
            page.get_by_label("Your name").fill(name)
            page.get_by_label("Your secret").fill(SECRETS[name].text)
            page.get_by_role("button", name="Sign in").click(delay=40)
            settle(page)
            return page

        yield sign_in


def send_request(
    served: Served, path: str, method: str = "GET", body: bytes | None = None, **headers: str
) -> tuple[int, str]:
    connection = http.client.HTTPConnection("127.0.0.1", served.port, timeout=30)
    connection.request(
        method,
        path,
        body=body,
        headers={name.replace("_", "-"): text for name, text in headers.items()},
    )
    reply = connection.getresponse()
    text = reply.read().decode("utf-8", "replace")
    location = reply.headers.get("location", "")
    connection.close()
    return reply.status, location or text


@pytest.mark.parametrize("cookie", ["", "_streamlit_user=x", "_streamlit_user=eyJhIjoxfQ.aa.bb"])
def test_visitors_who_arent_signed_in_get_only_the_sign_in_page(
    served: Served, cookie: str
) -> None:
    for page in PAGES:
        status, location = send_request(
            served, f"/{page}?case=bridge-0", Accept="text/html", Cookie=cookie
        )
        assert (status, location.partition("?")[0]) == (303, "/sign-in")
    for method, path in (
        *(
            ("GET", "/media/a.png"),
            ("PUT", "/_stcore/upload_file/s/f"),
            ("DELETE", "/_stcore/upload_file/s/f"),
        ),
        *(
            ("GET", "/_stcore/host-config"),
            ("GET", "/static/index.html"),
            ("POST", "/_stcore/agent/interact"),
        ),
        *(
            ("GET", "/_stcore/metrics"),
            ("POST", "/anything"),
            ("GET", "/oauth2callback"),
            ("GET", "/auth/login"),
        ),
    ):
        status, text = send_request(
            served, path, method, b"{}" if method in ("PUT", "POST") else None, Cookie=cookie
        )
        assert (status, json.loads(text)) == (401, {"error": "Sign in first."})
    assert send_request(served, "/healthz", Cookie=cookie) == (200, "ok")
    assert json.loads(send_request(served, "/health.json", Cookie=cookie)[1]) == {"ok": True}
    address, origin = f"ws://127.0.0.1:{served.port}/_stcore/stream", Origin(served.base)
    with (
        pytest.raises(InvalidStatus) as refused,
        connect(address, origin=origin, additional_headers={"Cookie": cookie}),
    ):
        pytest.fail("the websocket was opened")
    assert refused.value.response.status_code == 401


def test_a_wrong_secret_is_rejected_and_redirects_stay_on_this_server(served: Served) -> None:
    form = {"Content_Type": "application/x-www-form-urlencoded", "Origin": served.base}
    for name, secret in (
        ("Ro", SECRETS["Le"].text),
        ("Ro", ""),
        ("ro", SECRETS["Ro"].text),
        ("<b>", "x"),
    ):
        status, text = send_request(
            served, "/sign-in", "POST", f"name={name}&secret={secret}".encode(), **form
        )
        assert status == 401
        assert "don't match" in text.replace("&#x27;", "'")
        assert "<b>" not in text
    assert send_request(served, "/sign-in", "POST", b"name=" + b"x" * 9000, **form)[0] == 413
    for target in ("//evil.example", "https://evil.example", "/\\evil.example", "evil"):
        body = f"name=Ro&secret={SECRETS['Ro'].text}&next={target}".encode()
        assert send_request(served, "/sign-in", "POST", body, **form) == (303, "/")
    other = {**form, "Origin": "http://evil.example"}
    assert (
        send_request(
            served, "/sign-in", "POST", f"name=Ro&secret={SECRETS['Ro'].text}".encode(), **other
        )[0]
        == 403
    )


def decide_case(page: Page) -> None:
    panel = page.get_by_role("region", name="Decision")
    expect(panel.get_by_role("navigation")).to_be_visible()
    expect(panel.get_by_label("Your name")).to_be_hidden()
    panel.get_by_text("Escalate", exact=True).click(delay=40)
    panel.get_by_text("Needs more evidence").click(delay=40)
    panel.get_by_role("button", name="Submit").click(delay=40)


def test_a_decision_records_the_signed_in_name(
    served: Served, enter: Callable[[str], Page]
) -> None:
    page = enter("Ro")
    expect(page).to_have_url(re.compile("case=bridge-0"))
    page.get_by_role("button", name="Ro", exact=True).click(delay=40)
    expect(page.get_by_text("Signed in as Ro, reviewer.")).to_be_visible()
    page.keyboard.press("Escape")
    decide_case(page)
    expect(page.get_by_role("region", name="Decision")).to_contain_text(
        "Escalated the original answer of bridge-0."
    )
    (entry,) = served.entries("bridge-0")
    assert (entry.decision.reviewer, entry.decision.extra[SIGNED_IN_BY]) == ("Ro", "team")
    page.goto(f"{served.base}/decisions")
    settle(page)
    page.get_by_role("button", name="Export").click(delay=40)
    expect(page.get_by_text("You need the lead role to export.")).to_be_visible()
    expect(page.get_by_role("button", name="JSON Lines")).to_have_count(0)
    page.keyboard.press("Escape")
    page.get_by_role("button", name="Ro", exact=True).click(delay=40)
    page.get_by_role("button", name="Sign out").click(delay=40)
    expect(page).to_have_title("Sign in · MASIS Workbench")
    page.goto(f"{served.base}/queue")
    expect(page).to_have_title("Sign in · MASIS Workbench")


def cookies_of(served: Served, name: str) -> dict[str, str]:
    """The cookies of a person who signs in with a program instead of a browser."""
    found: SimpleCookie = SimpleCookie()
    form = {"Content-Type": "application/x-www-form-urlencoded", "Origin": served.base}
    for method, path, body in (
        ("POST", "/sign-in", f"name={name}&secret={SECRETS[name].text}"),
        ("GET", "/_stcore/health", None),
    ):
        connection = http.client.HTTPConnection("127.0.0.1", served.port, timeout=30)
        connection.request(method, path, body=body, headers=form)
        reply = connection.getresponse()
        for line in reply.headers.get_all("set-cookie", []):
            found.load(line)
        connection.close()
    return {key: morsel.value for key, morsel in found.items()}


class Answered(NamedTuple):
    """What came back over a websocket, and the session that answered."""

    text: str
    session: str


def replay_messages(
    served: Served, cookies: dict[str, str], messages: list[bytes], *resumes: str
) -> Answered:
    """Send messages over a websocket as a program opens it, with somebody's cookies, or to a
    session it ``resumes``.

    Each is sent after the one before has run.
    """
    received, session = b"", ""
    with connect(
        f"ws://127.0.0.1:{served.port}/_stcore/stream",
        origin=Origin(served.base),
        subprotocols=list(map(Subprotocol, ("streamlit", cookies["_streamlit_xsrf"], *resumes))),
        additional_headers={
            "Cookie": "; ".join(f"{name}={value}" for name, value in cookies.items())
        },
        max_size=None,
    ) as socket:
        for message in messages:
            socket.send(message)
            finished = False
            while not finished:
                got = socket.recv(timeout=60)
                assert isinstance(got, bytes)
                received += got
                forwarded = ForwardMsg.FromString(got)
                session = forwarded.new_session.initialize.session_id or session
                finished = bool(session) and forwarded.WhichOneof("type") == "script_finished"
    return Answered(received.decode("utf-8", "replace"), session)


def test_a_replayed_decision_can_only_do_what_its_sessions_role_allows(
    served: Served, enter: Callable[[str], Page]
) -> None:
    page = enter("Le")
    sent: list[bytes] = []

    def keep(route: Route) -> None:  # it is recorded, and does not reach the server
        sent.append(route.request.post_data_buffer or b"")
        route.abort()

    page.route("**/api/v1/desk/decisions", keep)
    page.goto(f"{served.base}/review?case=bridge-1")
    settle(page)
    decide_case(page)
    until(lambda: bool(sent), page, "the decision is sent")
    page.close()
    assert not served.entries("bridge-1")
    cookies = {name: cookies_of(served, name) for name in ("Vi", "Ro")}
    forged = {**cookies["Vi"], "_streamlit_user": cookies["Vi"]["_streamlit_user"][:-4] + "AAAA"}

    def replay(cookie: dict[str, str]) -> tuple[int, str]:
        headers = {
            "Cookie": cookie_header(cookie),
            "X_Masis_Request": "1",
            "X_Masis_Reviewer": "Le",
        }
        path = "/api/v1/desk/decisions"
        return send_request(
            served, path, "POST", sent[0], Content_Type="application/json", **headers
        )

    status, text = replay(cookies["Vi"])
    assert (status, "You need the reviewer role. Your roles: viewer." in text) == (403, True)
    assert replay(forged)[0] == 401
    assert not served.entries("bridge-1")
    served.workbench.team.release(Actor(name="Le"), "bridge-1")  # Le took the case by opening it
    assert replay(cookies["Ro"])[0] == 200
    (entry,) = served.entries("bridge-1")
    assert entry.decision.reviewer == "Ro"  # not Le, whose message it was


def test_knowing_a_session_id_doesnt_resume_another_persons_session(served: Served) -> None:
    opens = BackMsg()
    opens.rerun_script.query_string = "case=bridge-2"
    lead, viewer = (cookies_of(served, name) for name in ("Le", "Vi"))
    first = replay_messages(served, lead, [opens.SerializeToString()])
    assert (
        replay_messages(served, lead, [opens.SerializeToString()], first.session).session
        == first.session
    )
    foreign = replay_messages(served, viewer, [opens.SerializeToString()], first.session)
    assert foreign.session != first.session
    assert '"Le"' not in foreign.text


def test_a_missing_permission_is_explained_with_a_link_back(
    served: Served, enter: Callable[[str], Page]
) -> None:
    page = enter("Vi")
    page.goto(served.base)
    settle(page)
    expect(page.get_by_role("button", name="Audit this case")).to_be_disabled()
    page = enter("Ro")
    page.goto(served.base)
    settle(page)
    people = served.workbench.database.with_name("people.toml")
    before = people.read_text(encoding="utf-8")
    people.write_text(
        before.replace('[people.Ro]\nrole = "reviewer"', '[people.Ro]\nrole = "viewer"'),
        encoding="utf-8",
    )
    page.get_by_role("button", name="Audit this case").click(delay=40)
    expect(
        page.get_by_text("You can't start or stop audits. You need the reviewer role")
    ).to_be_visible()
    page.get_by_role("button", name="Back to the page").click(delay=40)
    expect(page.get_by_role("button", name="Audit this case")).to_be_visible()
    assert served.workbench.cases.summary("bridge-2").state == "new"
    people.write_text(before, encoding="utf-8")


def cookie_header(cookies: dict[str, str]) -> str:
    return "; ".join(f"{name}={value}" for name, value in cookies.items())


def test_signing_out_ends_the_session_in_every_tab_and_for_copied_cookies(
    served: Served, enter: Callable[[str], Page]
) -> None:
    copied = cookie_header(cookies_of(served, "Ro"))
    assert send_request(served, "/queue", Accept="text/html", Cookie=copied)[0] == 200
    send_request(served, "/auth/logout", Accept="text/html", Cookie=copied)
    assert send_request(served, "/queue", Accept="text/html", Cookie=copied)[1].startswith(
        "/sign-in"
    )
    page = enter("Ro")
    page.goto(served.base)
    settle(page)
    other = page.context.new_page()
    other.goto(f"{served.base}/auth/logout")
    expect(other).to_have_title("Sign in · MASIS Workbench")
    page.get_by_role("button", name="Audit this case").click(delay=40)
    expect(page.get_by_text("You can't start or stop audits. Sign in first.")).to_be_visible()
    assert served.workbench.cases.summary("bridge-2").state == "new"


def test_uploads_need_the_reviewer_role_and_have_a_limit(served: Served) -> None:
    viewer, reviewer = (cookie_header(cookies_of(served, name)) for name in ("Vi", "Ro"))
    path = "/_stcore/upload_file/session/file"
    assert "You need the reviewer role" in send_request(served, path, "PUT", b"x", Cookie=viewer)[1]
    assert (
        "You need the reviewer role"
        not in send_request(served, path, "PUT", b"x", Cookie=reviewer)[1]
    )
    status, text = send_request(
        served, f"{path}2", "PUT", b"x", Cookie=reviewer, Content_Length=str(2**28 + 1)
    )
    assert (status, "256 MiB" in text) == (413, True)

"""The table of who may do what (``masis/services/access.py``) against every page, button, address,
tool and command.
"""

from __future__ import annotations

import ast
import asyncio
import re
import sqlite3
import time
from collections.abc import Callable, Iterator, Mapping
from itertools import chain
from pathlib import Path
from typing import Any, cast

import pytest
import streamlit as st
from starlette.routing import Mount
from streamlit.testing.v1 import AppTest

from masis.cli import main
from masis.extensions import extensions
from masis.schema.actor import PERMISSIONS, ROLES, Actor, Permission
from masis.server.endpoints import ENDPOINTS
from masis.server.ingestion import application
from masis.services import SIGN_IN_REQUIRED, Workbench, app_root
from masis.services.access import ACTS, Access
from masis.settings.sign_in import SignIn, new_secret
from masis.ui.shell import reach, served_database, sign_in
from masis.ui.shell.serve import health_routes
from masis.ui.shell.streamlit_internals import HEALTH_PATH, UPLOADS
from tests.rooms import HAS_INTEGRATIONS, needs_both
from tests.ui.conftest import AUDITED, NOT_AUDITED, texts
from tests.ui.test_blind import PAGES as ADDRESSES
from tools import rights

PREFIXES = {"command": "masis ", "ingestion": "ingest "}
REQUIRED = {
    f"{'' if '/' in name and act.kind == 'address' else PREFIXES.get(act.kind, act.kind + ' ')}{name}": (
        act.requires
    )
    for act in ACTS
    if act.kind != "use case"
    for name in act.names
}
SECRET = new_secret()


def people(**roles: str) -> str:
    """The text of a sign-in file."""
    return "\n".join(
        f'[people.{name}]\nrole = "{role}"\nsecret = "{SECRET.digest}"'
        for name, role in roles.items()
    )


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "people.toml"
    path.write_text(
        people(**{role: role for role in ROLES}, gone="admin", ended="admin"), encoding="utf-8"
    )
    return path


@pytest.fixture
def signing(file: Path) -> SignIn:
    return SignIn(file)


def claims(signing: SignIn, file: Path) -> dict[str, dict[str, Any]]:
    """The claims of a session of each kind of visitor; the file changes under one of them."""
    held = {name: signing.claims_of(name) for name in (*ROLES, "gone", "ended")}
    held["expired"] = {**signing.claims_of("admin"), "iat": int(time.time()) - 13 * 3600}
    held["signed out"] = {}
    file.write_text(people(**{role: role for role in ROLES}, ended="admin"), encoding="utf-8")
    signing.end(held["ended"])
    return held


def is_allowed(who: str, need: str) -> bool:
    """What the table says."""
    if need == "nothing":
        return True
    return who in ROLES and ROLES.index(who) >= ROLES.index(PERMISSIONS[cast("Permission", need)])  # type: ignore[arg-type]


# every place has a row


def tools() -> Iterator[str]:
    """Yield the tools of the MCP server or, without it, those of the table."""
    if HAS_INTEGRATIONS:
        from masis.integrations.mcp.tools import TOOLS

        yield from TOOLS
    else:
        yield from (name for act in ACTS if act.kind == "tool" for name in act.names)


def places() -> Iterator[str]:
    frame = ast.parse((app_root() / "app.py").read_text(encoding="utf-8"))
    (menus,) = (
        ast.literal_eval(statement.value)
        for statement in frame.body
        if isinstance(statement, ast.Assign) and ast.unparse(statement.targets[0]) == "MENUS"
    )
    pages = {address for entries in menus.values() for address, *_ in entries}
    assert pages == {path.stem for path in (app_root() / "pages").glob("*.py")}
    yield from (f"page {address}" for address in pages)
    yield from (f"page {page.address}" for added in extensions() for page in added.pages)
    yield from (f"masis {name}" for name in main.list_commands(None))  # type: ignore[arg-type]
    yield from (f"tool {name}" for name in tools())
    routes = {"ingest ": application(cast("Any", None), {}).routes, "": [*health_routes()]}
    for prefix, group in routes.items():
        for mounted in cast("list[Any]", group):
            before = mounted.path if isinstance(mounted, Mount) else ""
            for route in mounted.routes if isinstance(mounted, Mount) else [mounted]:
                methods = route.methods - {"HEAD"}
                yield from (f"{prefix}{method} {before}{route.path}" for method in methods)
    yield from (f"API {endpoint.name}" for endpoint in ENDPOINTS)


def test_every_page_address_tool_and_command_has_one_row(signing: SignIn) -> None:
    everywhere = [(act.kind, name) for act in ACTS if act.kind != "use case" for name in act.names]
    assert len(everywhere) == len(set(everywhere))
    there = {
        *places(),
        *(
            f"{next(iter(route.methods - {'HEAD'}))} {route.path}"
            for route in sign_in.sign_in_routes(signing)
        ),
    }  # type: ignore[operator]
    assert there <= set(REQUIRED), "a row of ACTS is missing"
    kinds = ("page ", "masis ", "tool ")
    assert {place for place in REQUIRED if place.startswith(kinds)} == {
        place for place in there if place.startswith(kinds)
    }


@needs_both
def test_the_docs_print_the_table() -> None:
    page = rights.PAGE.read_text(encoding="utf-8")
    assert rights.update_page(page) == page


# addresses

STREAMLIT = {
    "address liveness": f"GET {HEALTH_PATH}",
    "address media": "GET /media/file",
    "address static": "GET /static/file",
    "address configuration": f"GET {HEALTH_PATH.replace('health', 'host-config')}",
    "address websocket": f"WS {HEALTH_PATH.replace('health', 'stream')}",
    "address upload": f"PUT {UPLOADS}session/file",
    "address removal of an upload": f"DELETE {UPLOADS}session/file",
}


def response_status(gate: sign_in.SignInGate, place: str) -> int:
    """The status of a request to an address, as the gate lets it through."""
    method, path = place.split(" ")
    scope = {"type": "websocket" if method == "WS" else "http", "method": method, "path": path}
    scope |= {"headers": [(b"content-length", b"1")], "extensions": {"websocket.http.response": {}}}
    sent: list[Any] = []

    async def send(message: Any) -> None:
        sent.append(message)

    async def receive() -> Any:
        return {"type": "http.request"}

    asyncio.run(gate(scope, receive, send))
    return int(sent[0]["status"])


async def behind(scope: Any, receive: Any, send: Any) -> None:
    """What the gate guards."""
    await send({"type": "http.response.start", "status": 200})


def test_a_route_checks_the_role_on_every_request(
    signing: SignIn, file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    gate, now = sign_in.SignInGate(behind, signing), {"claims": dict[str, Any]()}
    monkeypatch.setattr(sign_in, "signed_in_claims", lambda cookies: now["claims"])
    addresses = [place for place in REQUIRED if re.match("(GET|POST) /|address ", place)]
    visitors = claims(signing, file)
    for who, held in visitors.items():
        now["claims"] = held
        found = {place: response_status(gate, STREAMLIT.get(place, place)) for place in addresses}
        refused = 403 if who in ROLES else 401
        assert found == {
            place: 200 if is_allowed(who, REQUIRED[place]) else refused for place in addresses
        }, who
    upload = STREAMLIT["address upload"]
    now["claims"] = visitors["reviewer"]
    assert response_status(gate, upload) == 200
    file.write_text(people(reviewer="viewer"), encoding="utf-8")
    assert response_status(gate, upload) == 403
    file.write_text(people(lead="lead"), encoding="utf-8")
    assert response_status(gate, upload) == 401


# pages


Opened = Callable[..., AppTest]


@pytest.fixture
def opened(
    audited_workbench: Workbench, signing: SignIn, monkeypatch: pytest.MonkeyPatch
) -> Opened:
    """Opens a page within the frame, as who has signed in with these claims."""
    monkeypatch.setattr(reach, "_served", [reach.Reach(sign_in=signing)])
    served = Workbench(
        audited_workbench.store,
        audited_workbench.settings,
        audited_workbench.database,
        SIGN_IN_REQUIRED,
    )
    monkeypatch.setattr(served_database, "_open_served", lambda _: served)

    def page(
        held: Mapping[str, Any], name: str, address: Mapping[str, str] | None = None
    ) -> AppTest:
        monkeypatch.setattr(signing, "actor", lambda _, real=SignIn.actor: real(signing, held))
        run = served.cases.summary(AUDITED[0]).run_id or ""

        def choose_page(menus: dict[str, list[Any]], **_: Any) -> Any:
            found = next(page for page in chain(*menus.values()) if page._page.stem == name)
            found._can_be_called = True
            return found

        monkeypatch.setattr(st, "navigation", choose_page)
        app = AppTest.from_file(str(app_root() / "app.py"), default_timeout=30)
        for key, value in (address or {}).items():
            app.query_params[key] = value.replace("RUN", run)
        app.run()
        assert not app.exception, name
        return app

    return page


def test_pages_show_nothing_to_people_signed_out_expired_or_removed(
    opened: Opened, signing: SignIn, file: Path
) -> None:
    visitors = claims(signing, file)
    assert "Your session has ended" not in texts(opened(visitors["viewer"], "queue"))
    for who in set(visitors) - set(ROLES):
        for name, address in ADDRESSES:
            app = opened(visitors[who], name, address)
            assert [title.value for title in app.title] == ["Your session has ended"], (who, name)
            assert not app.button, (who, name)


@pytest.mark.slow
@pytest.mark.parametrize("role", ROLES)
def test_every_page_opens_for_every_role(opened: Opened, signing: SignIn, role: str) -> None:
    for name, address in ADDRESSES:
        said = texts(opened(signing.claims_of(role), name, address))
        assert "The action failed" not in said, (name, address)


PRESSED = (
    *((name, {}) for name in sorted({name for name, _ in ADDRESSES})),
    ("review", {"case": AUDITED[0]}),
)
PRESSED += (
    ("review", {"case": NOT_AUDITED[0]}),
    ("new", {"case": NOT_AUDITED[0]}),
    ("team", {"case": AUDITED[0]}),
)


def dump(path: Path) -> list[str]:
    connection = sqlite3.connect(path)
    # a check of health writes
    held = [line for line in connection.iterdump() if 'INTO "store_info"' not in line]
    connection.close()
    return held


@pytest.mark.slow
@pytest.mark.parametrize(("name", "address"), PRESSED, ids=str)
def test_buttons_are_disabled_without_their_permission_and_viewers_change_nothing(
    opened: Opened,
    signing: SignIn,
    monkeypatch: pytest.MonkeyPatch,
    name: str,
    address: dict[str, str],
) -> None:
    asked: list[Permission] = []
    require = Access.require

    def record_permission(
        self: Access, actor: Actor, permission: Permission, act: str = ""
    ) -> None:
        if not self.allows(actor, permission):
            asked.append(permission)
        require(self, actor, permission, act)

    viewer = signing.claims_of("viewer")
    before = dump(served_database.served_database())
    keys = [button.key for button in opened(viewer, name, address).button]
    required: dict[str, set[Permission]] = {}
    for key in keys:
        app = opened(viewer, name, address)
        monkeypatch.setattr(Access, "require", record_permission)
        asked.clear()
        button = next(button for button in app.button if button.key == key)
        button.proto.disabled = False  # as a forged message has it
        button.click().run()
        required[key] = set(asked) if app.exception or "You can't" in texts(app) else set()
        monkeypatch.setattr(Access, "require", require)
    assert dump(served_database.served_database()) == before
    for role in ROLES:
        for button in opened(signing.claims_of(role), name, address).button:
            refused = "You need the" in (button.help or "")
            grants = all(
                is_allowed(role, permission) for permission in required.get(button.key, ())
            )
            assert refused or grants, (role, button.label, required[button.key])
            assert button.disabled or not refused

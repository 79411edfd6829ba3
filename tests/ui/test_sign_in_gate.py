"""The gate in front of the pages: uploads that count, forms that are too large, and reserved names."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.testclient import TestClient

from masis.settings.sign_in import SignIn, name_problem, new_secret
from masis.ui.shell import sign_in as gate
from masis.ui.shell.sign_in import MOST_UPLOADED, PAGE, SignInGate, sign_in_routes
from masis.ui.shell.streamlit_internals import UPLOADS

SECRET = new_secret()


@pytest.fixture
def client(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> TestClient:
    """A server behind the gate that changes uploads only with a token, as Streamlit does."""
    file = tmp_path / "people.toml"
    file.write_text(f'[people.Ada]\nrole = "reviewer"\nsecret = "{SECRET.digest}"')
    sign_in = SignIn(file)
    claims = sign_in.claims_of("Ada")
    monkeypatch.setattr(gate, "signed_in_claims", lambda cookies: claims)

    async def upload(request: Request) -> Response:
        refused = "x-xsrftoken" not in request.headers
        return Response(status_code=403 if refused else 204)

    routes: list[Any] = [Route(f"{UPLOADS}{{rest:path}}", upload, methods=["PUT", "DELETE"])]
    app = Starlette(
        routes=routes + sign_in_routes(sign_in),
        middleware=[Middleware(SignInGate, sign_in=sign_in)],
    )
    return TestClient(app, base_url="http://127.0.0.1")


TOKEN = {"x-xsrftoken": "token"}


def put(client: TestClient, name: str, size: int, token: dict[str, str] = TOKEN) -> int:
    headers = {"content-length": str(size), **token}
    return client.put(f"{UPLOADS}{name}", headers=headers).status_code


def test_a_refused_removal_makes_no_room_for_another_upload(client: TestClient) -> None:
    assert put(client, "session/a", MOST_UPLOADED) == 204
    assert client.delete(f"{UPLOADS}session/a").status_code == 403
    assert put(client, "session/b", 1) == 413
    assert client.delete(f"{UPLOADS}session/a", headers=TOKEN).status_code == 204
    assert put(client, "session/b", 1) == 204


def test_a_refused_upload_neither_replaces_a_file_nor_forgets_a_session(
    client: TestClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(gate, "_SESSIONS", 3)
    assert put(client, "session/a", MOST_UPLOADED) == 204
    assert put(client, "session/a", 1, token={}) == 403
    assert put(client, "session/b", 1) == 413
    for number in range(5):
        assert put(client, f"made-up-{number}/a", 1, token={}) == 403
    assert put(client, "session/b", 1) == 413


@pytest.mark.parametrize("ingests", [False, True])
def test_the_addresses_of_ingestion_are_open_only_if_it_is_served(
    tmp_path: Path, ingests: bool
) -> None:
    file = tmp_path / "people.toml"
    file.write_text(f'[people.Ada]\nrole = "reviewer"\nsecret = "{SECRET.digest}"')

    async def behind(request: Request) -> Response:
        return Response("the frame of every page")

    gate = Middleware(SignInGate, sign_in=SignIn(file), ingests=ingests)
    app = Starlette(routes=[Route("/{rest:path}", behind)], middleware=[gate])
    with TestClient(app, base_url="http://127.0.0.1") as client:
        for path in ("/v1/cases", "/v1/_stcore/stream", "/v1/media/x"):
            assert client.get(path).status_code == (200 if ingests else 401)
        assert client.get("/api/v1/me").status_code == 200


def test_a_sign_in_form_with_many_fields_is_too_large(client: TestClient) -> None:
    fields = {f"field{number}": "x" for number in range(11)}
    assert client.post(PAGE, data=fields).status_code == 413


def test_nobody_can_sign_in_under_a_name_that_a_program_signs_with() -> None:
    names = {
        name
        for path in Path("masis").rglob("*.py")
        for name in re.findall(r'\bActor\(name="([^"]+)"\)', path.read_text(encoding="utf-8"))
    }
    assert len(names) >= 7
    wide = {code: code + 0xFEE0 for code in range(ord("!"), ord("~") + 1)}
    # Full-width letters look the same in a list of names.
    names |= {name.translate(wide) for name in names}
    names |= {name.upper() for name in names}
    assert not [name for name in names if name_problem(name) is None]

"""The API over real HTTP: a server on loopback with the workbench's host guard and sign-in gate."""

from __future__ import annotations

import shutil
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import httpx2
import pytest
import uvicorn
from starlette.applications import Starlette
from starlette.middleware import Middleware

from masis.schema.actor import ROLES, Role
from masis.server.app import CSRF_HEADER, Server, api_route
from masis.services import OPEN, SIGN_IN_REQUIRED, Workbench
from masis.services.jobs import Jobs
from masis.settings import Settings
from masis.settings.hosts import AllowedHosts
from masis.settings.sign_in import SignIn, new_secret
from masis.ui.shell import sign_in as gate
from masis.ui.shell.host_guard import HostGuard
from tests.conftest import made_once
from tests.reviewing import ADA
from tests.store.factories import a_case
from tests.waiting import until

SECRET = new_secret()
CASES = tuple(f"case-{number}" for number in range(6))


def write_people(file: Path, **roles: str) -> None:
    """Write a sign-in file with these people."""
    file.write_text(
        "\n".join(
            f'[people.{name}]\nrole = "{role}"\nsecret = "{SECRET.digest}"'
            for name, role in roles.items()
        ),
        encoding="utf-8",
    )


@pytest.fixture(scope="session")
def api_database(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Six cases, of which four are audited."""

    def make(path: Path) -> None:
        workbench = Workbench.open(path)
        cases = [a_case(case_id) for case_id in CASES]
        workbench.cases.add(ADA, cases)
        for case in cases[:4]:
            workbench.audits.audit(ADA, case)
        workbench.close()

    return made_once(tmp_path_factory, "api.db", make)


class Served(NamedTuple):
    """A running API: its address, its workbench, and its sign-in file if it has one."""

    url: str
    workbench: Workbench
    people: Path | None

    def client(self, who: str = "", **headers: str) -> httpx2.Client:
        """Return a client of a person: a browser of theirs with sign-in, a program without."""
        if self.people is not None and who:
            headers |= {"cookie": f"who={who}", CSRF_HEADER: "1"}
        elif who:
            headers |= {"x-masis-reviewer": who}
        return httpx2.Client(base_url=f"{self.url}/api/v1", headers=headers, timeout=30)


Serve = Callable[..., Served]


@pytest.fixture
def serve_api(
    api_database: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Serve]:
    """Starts servers: with sign-in as every role by its name, or without."""
    stops: list[Callable[[], None]] = []

    def start(*, signed_in: bool = False, settings: Settings | None = None) -> Served:
        database = Path(shutil.copy(api_database, tmp_path / f"served-{len(stops)}.db"))
        access = SIGN_IN_REQUIRED if signed_in else OPEN
        workbench = Workbench.open(database, settings, access=access)
        jobs: list[Jobs] = []

        def served_jobs() -> Jobs:
            if not jobs:
                jobs.append(Jobs(workbench))
            return jobs[0]

        people, sign_in = None, None
        guards = [Middleware(HostGuard, hosts=AllowedHosts())]
        if signed_in:
            people = tmp_path / f"people-{len(stops)}.toml"
            write_people(people, **{role: role for role in ROLES})
            sign_in = SignIn(people)
            guards.append(Middleware(gate.SignInGate, sign_in=sign_in))

            def claims(cookies: dict[str, str]) -> dict[str, Any]:
                return sign_in.claims_of(cookies["who"]) if "who" in cookies else {}

            monkeypatch.setattr(gate, "signed_in_claims", claims)
        app = Starlette(
            routes=[api_route(Server(lambda: workbench, served_jobs, sign_in))], middleware=guards
        )
        server = uvicorn.Server(
            uvicorn.Config(app, port=0, log_config=None, access_log=False, lifespan="off")
        )
        thread = threading.Thread(target=server.run, daemon=True)
        thread.start()
        until(lambda: server.started, "the server starts")

        def stop() -> None:
            server.should_exit = True
            thread.join()
            for job in jobs:
                job.close()
            workbench.close()

        stops.append(stop)
        port = server.servers[0].sockets[0].getsockname()[1]
        return Served(f"http://127.0.0.1:{port}", workbench, people)

    yield start
    for stop in stops:
        stop()


@pytest.fixture
def served(serve_api: Serve) -> Served:
    """An API without sign-in."""
    return serve_api()


@pytest.fixture
def team(serve_api: Serve) -> Served:
    """An API with sign-in; each role has a person of its name."""
    return serve_api(signed_in=True)


__all__ = ["CASES", "Role", "Serve", "Served", "write_people"]

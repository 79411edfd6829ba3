"""Runs the setups of ``deploy/``: behind a real nginx with TLS, and in a clean environment like the
unit and the image.

``MASIS_DEPLOY`` is a folder with nginx and Caddy, unpacked from Debian's packages (``make
test-deploy``).
"""

from __future__ import annotations

import json
import os
import re
import shutil
import socket
import ssl
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import httpx2
import pytest
from playwright.sync_api import expect, sync_playwright
from websockets.exceptions import InvalidStatus
from websockets.sync.client import connect
from websockets.typing import Origin, Subprotocol

from masis.services import Workbench
from masis.services.arrivals.ingestion import new_token
from masis.settings.sign_in import new_secret
from tests.cli.running import case, lines
from tests.waiting import until
from tools.browser import FLAGS, installed_browser, settle
from tools.serving import free_port, serving

DEPLOY = Path(__file__).resolve().parents[2] / "deploy"
PROXIES = Path(os.environ["MASIS_DEPLOY"])
NAME = "audits.example.org"
SECRET = new_secret()
TOKEN, DIGEST = new_token()


class Served(NamedTuple):
    """A workbench behind nginx: the TLS port and the folder with the database."""

    port: int
    folder: Path

    @property
    def host(self) -> str:
        return f"{NAME}:{self.port}"

    @property
    def origin(self) -> str:
        return f"https://{self.host}"

    def ask(self, method: str, path: str, content: bytes = b"", **headers: str) -> httpx2.Response:
        """Return the response to a request over TLS with a self-signed certificate."""
        given = {"host": self.host} | {
            name.replace("_", "-"): text for name, text in headers.items()
        }
        with httpx2.Client(
            base_url=f"https://127.0.0.1:{self.port}", verify=trusting(), timeout=60
        ) as client:
            return client.request(method, path, content=content, headers=given)

    def signed_in(self) -> str:
        """Sign in and return the session cookie."""
        form = f"name=Ada&secret={SECRET.text}".encode()
        answer = self.ask(
            "POST",
            "/sign-in",
            form,
            origin=self.origin,
            content_type="application/x-www-form-urlencoded",
        )
        assert answer.status_code == 303, answer.text
        cookie = answer.headers["set-cookie"]
        assert "Secure" in cookie
        return cookie.partition(";")[0]


def trusting() -> ssl.SSLContext:
    """Return a TLS context that accepts a self-signed certificate."""
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    return context


@contextmanager
def process(command: list[str], folder: Path, **more: Any) -> Iterator[subprocess.Popen[bytes]]:
    """Run a command until the block ends, with its output in a log file."""
    with (folder / f"{Path(command[0]).name}.log").open("ab") as log:
        started = subprocess.Popen(command, stdout=log, stderr=log, **more)
        try:
            yield started
        finally:
            started.terminate()
            started.wait(timeout=30)


def answers(address: str) -> bool:
    try:
        return httpx2.get(address, timeout=2).is_success
    except httpx2.HTTPError:
        return False


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """``masis serve`` and ``masis ingest`` behind nginx, with the configuration of ``deploy/``
    except for ports and paths.
    """
    folder = tmp_path_factory.mktemp("deployed")
    database = folder / "masis.db"
    (folder / "people.toml").write_text(
        f'[people.Ada]\nrole = "admin"\nsecret = "{SECRET.digest}"\n'
    )
    (folder / "sources.toml").write_text(f'[sources.chatbot]\ntoken_sha256 = "{DIGEST}"\n')
    subprocess.run(
        [
            *(
                "openssl",
                "req",
                "-x509",
                "-newkey",
                "rsa:2048",
                "-nodes",
                "-days",
                "1",
                "-subj",
                f"/CN={NAME}",
            ),
            *("-keyout", str(folder / "key.pem"), "-out", str(folder / "fullchain.pem")),
        ],
        check=True,
        capture_output=True,
    )
    workbench, ingest, port = free_port(), free_port(), free_port()
    options = ("--db", str(database), "--allow-host", NAME)
    sources = ("--sources", str(folder / "sources.toml"), "--port", str(ingest))
    config = (DEPLOY / "nginx.conf").read_text(encoding="utf-8")
    for written, here in (
        ("listen 443 ssl", f"listen 127.0.0.1:{port} ssl"),
        ("listen 80", f"listen 127.0.0.1:{free_port()}"),
        ("127.0.0.1:8501", f"127.0.0.1:{workbench}"),
        ("127.0.0.1:8700", f"127.0.0.1:{ingest}"),
        ("/etc/ssl/masis", str(folder)),
    ):
        assert written in config
        config = config.replace(written, here)
    paths = " ".join(
        f"{kind}_temp_path {folder}/{kind};" for kind in ("proxy", "fastcgi", "uwsgi", "scgi")
    )
    (folder / "nginx.conf").write_text(
        f"daemon off; pid {folder}/nginx.pid; error_log {folder}/error.log;\nevents {{}}\n"
        f"http {{ access_log off; client_body_temp_path {folder}/body; {paths}\n{config}\n}}\n"
    )
    nginx = [str(PROXIES / "usr/sbin/nginx"), "-p", str(folder), "-c", str(folder / "nginx.conf")]
    command = [sys.executable, "-m", "masis.cli", "ingest", *options, *sources]
    with (
        serving(
            "serve",
            *options,
            "--sign-in",
            str(folder / "people.toml"),
            folder=folder,
            port=workbench,
        ),
        process(command, folder, cwd=folder),
        process(nginx, folder),
    ):
        until(lambda: answers(f"http://127.0.0.1:{ingest}/healthz"), "the HTTP door answers")
        found = Served(port, folder)
        until(lambda: found.ask("GET", "/healthz").status_code == 200, "nginx answers")
        yield found


def test_only_signed_in_users_get_pages_and_the_websocket(
    served: Served,
) -> None:
    assert (
        served.ask("GET", "/queue", accept="text/html").headers["location"].startswith("/sign-in")
    )
    address, options = (
        f"wss://{served.host}/_stcore/stream",
        {
            "origin": Origin(served.origin),
            "ssl": trusting(),
        },
    )

    def open_websocket(cookie: str) -> str | None:
        sock = socket.create_connection(("127.0.0.1", served.port))
        headers = {"Cookie": cookie}
        with connect(
            address,
            sock=sock,
            additional_headers=headers,
            subprotocols=[Subprotocol("streamlit")],
            **options,
        ) as socket_:
            return socket_.subprotocol

    assert open_websocket(served.signed_in()) == "streamlit"
    with pytest.raises(InvalidStatus, match="401"):
        open_websocket("")


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"host": "evil.example.org"}, 421),
        ({"origin": "https://evil.example.org"}, 403),
        ({"origin": f"https://{NAME}"}, 403),
    ],
)
@pytest.mark.parametrize("path", ["/sign-in", "/v1/cases"])
def test_another_host_or_origin_is_rejected(
    served: Served, headers: dict[str, str], status: int, path: str
) -> None:
    assert (
        served.ask("POST", path, b"{}", authorization=f"Bearer {TOKEN}", **headers).status_code
        == status
    )


def test_programs_send_cases_through_the_proxy(served: Served) -> None:
    known = {"authorization": f"Bearer {TOKEN}", "content_type": "application/json"}
    answer = served.ask("POST", "/v1/cases", json.dumps(case("sent")).encode(), **known)
    assert answer.status_code == 202
    assert served.ask("POST", "/v1/cases", b"x" * 9_000_000, **known).status_code == 413
    state = json.loads(answer.text)["status"]
    until(lambda: '"done"' in served.ask("GET", state, **known).text, "it is read")
    workbench = Workbench.open(served.folder / "masis.db")
    assert workbench.store.cases.get("sent").query
    workbench.close()


def test_a_person_signs_in_with_a_browser_and_uploads_a_file(served: Served) -> None:
    path = installed_browser()
    if path is None:
        pytest.skip("no Chromium or Chrome is installed (then: make browser)")
    file = served.folder / "cases.jsonl"
    file.write_bytes(lines(*(case(f"uploaded-{number}") for number in range(3))))
    rules = f"--host-resolver-rules=MAP {NAME} 127.0.0.1"
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=[*FLAGS, rules])
        page = browser.new_context(ignore_https_errors=True).new_page()
        page.goto(f"{served.origin}/import")
        page.get_by_label("Your name").fill("Ada")
        page.get_by_label("Your secret").fill(SECRET.text)
        page.get_by_role("button", name="Sign in").click(delay=40)
        settle(page)
        page.locator("input[type=file]").first.set_input_files(str(file))
        settle(page)
        expect(page.get_by_text("3 cases").first).to_be_visible(timeout=60_000)
        browser.close()


def test_the_caddyfile_is_valid_for_caddy(tmp_path: Path) -> None:
    command = [
        str(PROXIES / "usr/bin/caddy"),
        "adapt",
        "--validate",
        "--config",
        str(DEPLOY / "Caddyfile"),
    ]
    environment = {
        "HOME": str(tmp_path),
        "MASIS_HOST": NAME,
        "MASIS_WORKBENCH": "one:1",
        "MASIS_INGEST": "two:2",
    }
    done = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
    assert done.returncode == 0, done.stderr
    assert {"one:1", "two:2"} <= set(re.findall(r'"dial":"([^"]+)"', done.stdout))


@pytest.mark.timeout(900)
def test_the_image_builds_and_starts_on_a_read_only_root(
    tmp_path: Path,
) -> None:
    """Runs the steps of the Dockerfile in a clean environment, because a container runtime may be
    missing.
    """
    steps = (DEPLOY / "Dockerfile").read_text(encoding="utf-8")
    installed, data = tmp_path / "opt", tmp_path / "data"
    data.mkdir()
    for step in re.findall(
        r"^RUN (.*/opt/masis.*)$", steps.partition("\nFROM python")[2].partition("\nFROM")[0], re.M
    ):
        subprocess.run(
            step.replace("/opt/masis", str(installed)),
            shell=True,
            check=True,
            cwd=DEPLOY.parent,
            capture_output=True,
        )
    command = json.loads(re.findall(r"^CMD (\[.*\])$", steps, re.M)[-1])
    people = tmp_path / "people.toml"
    people.write_text(f'[people.Ada]\nrole = "admin"\nsecret = "{SECRET.digest}"\n')
    port = free_port()
    places = {"/etc/masis/people.toml": str(people), "8501": str(port)}
    started = [str(installed / "bin/masis"), *(places.get(word, word) for word in command)]
    environment = {
        "PATH": f"{installed}/bin:/usr/bin:/bin",
        "HOME": str(data),
        "MASIS_DB": str(data / "masis.db"),
    }
    # as the image's user, who can write only to its data folder
    if os.getuid() == 0 and shutil.which("setpriv"):
        for place in (data, people):
            os.chown(place, 10001, 10001)
        os.chmod(tmp_path, 0o755)
        for parent in tmp_path.parents[:2]:
            os.chmod(parent, 0o755)
        started = ["setpriv", "--reuid=10001", "--regid=10001", "--clear-groups", *started]
    with process(started, tmp_path, env=environment, cwd=data):
        until(
            lambda: answers(f"http://127.0.0.1:{port}/healthz"), "the image's command answers", 120
        )
        assert (data / "masis.db").exists()


@pytest.mark.parametrize("unit", ["masis.service", "masis-ingest.service"])
def test_a_unit_is_valid_for_systemd(unit: str, tmp_path: Path) -> None:
    if shutil.which("systemd-analyze") is None:
        pytest.skip("systemd is not installed")
    written = (DEPLOY / unit).read_text(encoding="utf-8")
    (tmp_path / unit).write_text(written.replace("/opt/masis/bin/masis", sys.executable))
    done = subprocess.run(
        ["systemd-analyze", "verify", "--man=no", str(tmp_path / unit)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert unit not in done.stderr, done.stderr

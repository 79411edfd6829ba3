"""A page on another site whose name was made to lead to this machine gets nothing of the workbench."""

from __future__ import annotations

import http.client
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import Browser, Page, Route, expect

from tests.browser.conftest import IDLE, serving

FOREIGN = "rebound.example"
"""A name that the browser resolves to 127.0.0.1 (``tools/browser.FLAGS``)."""

ATTACK = """async () => {
  const found = {}
  for (const path of ["/", "/queue", "/health.json", "/healthz", "/_stcore/health", "/_stcore/host-config",
                      "/media/x.json", "/static/index.html", "/oauth2callback", "/_stcore/agent/interact"])
    found[path] = await fetch(path).then(reply => [reply.status, null]).catch(error => [0, String(error)])
  const upload = new FormData()
  upload.append("file", new Blob(["text"]), "a.txt")
  found.upload = await fetch("/_stcore/upload_file/s/f", {method: "PUT", body: upload})
    .then(reply => [reply.status, null]).catch(error => [0, String(error)])
  found.websocket = await new Promise(done => {
    const socket = new WebSocket(`ws://${location.host}/_stcore/stream`, ["streamlit"])
    socket.onopen = () => done("open")
    socket.onerror = () => done("refused")
  })
  return found
}"""


@pytest.fixture
def foreign(browser: Browser) -> Iterator[Page]:
    """A tab of its own, which no test of other hosts watches."""
    context = browser.new_context()
    yield context.new_page()
    context.close()


def port_of(base: str) -> int:
    port = urlsplit(base).port
    assert port
    return port


def test_a_page_whose_name_was_rebound_to_this_machine_reads_nothing(demo: str, foreign: Page) -> None:
    site = f"http://{FOREIGN}:{port_of(demo)}"

    def attacker(route: Route) -> None:  # the page came from the attacker's server, before the name was rebound
        route.fulfill(content_type="text/html", body="<title>harmless</title>")

    foreign.route(f"{site}/attack", attacker)
    foreign.goto(f"{site}/attack")
    found: dict[str, Any] = foreign.evaluate(ATTACK)
    assert found.pop("websocket") == "refused"
    assert found.pop("upload")[0] in (421, 0)  # 0: the answer came, and the connection ended, before all was sent
    assert {path: status for path, (status, _) in found.items()} == dict.fromkeys(found, 421)
    reply = foreign.goto(f"{site}/")  # nor does the workbench itself come up under that name
    assert reply is not None
    assert reply.status == 421


def test_a_page_of_another_site_reaches_no_address_of_this_machine(demo: str, foreign: Page) -> None:
    foreign.route("http://rebound.example:1/", lambda route: route.fulfill(content_type="text/html", body="<p>"))
    foreign.goto("http://rebound.example:1/")
    opened = foreign.evaluate(
        """base => new Promise(done => {
          const socket = new WebSocket(base.replace("http", "ws") + "/_stcore/stream", ["streamlit"])
          socket.onopen = () => done("open"); socket.onerror = () => done("refused") })""",
        demo,
    )
    assert opened == "refused"
    read = foreign.evaluate("base => fetch(base + '/health.json').then(r => r.text()).catch(() => 'refused')", demo)
    assert read == "refused"


@pytest.mark.parametrize(
    ("method", "path"),
    [
        *(("GET", "/"), ("GET", "/health.json"), ("GET", "/media/a.png"), ("PUT", "/_stcore/upload_file/s/f")),
        *(("DELETE", "/_stcore/upload_file/s/f"), ("OPTIONS", "/_stcore/upload_file/s/f"), ("POST", "/anything")),
    ],
)
def test_a_client_gets_421_for_another_host_and_403_for_another_origin(demo: str, method: str, path: str) -> None:
    own = f"127.0.0.1:{port_of(demo)}"
    for headers, status in (
        ({"Host": f"{FOREIGN}:{port_of(demo)}"}, 421),
        ({"Host": own, "Origin": f"http://{FOREIGN}:{port_of(demo)}"}, 403),
        ({"Host": own, "Origin": "null"}, 403),
    ):
        connection = http.client.HTTPConnection("127.0.0.1", port_of(demo), timeout=30)
        connection.request(method, path, body=b"x" if method in ("PUT", "POST") else None, headers=headers)
        reply = connection.getresponse()
        assert reply.status == status
        assert set(json.loads(reply.read())) == {"error"}
        connection.close()


def test_every_page_says_that_an_exposed_server_lets_anyone_in(foreign: Page, tmp_path: Path) -> None:
    wide = ("--address", "0.0.0.0", "--allow-host", FOREIGN, "--insecure")
    with serving("serve", "--db", str(tmp_path / "mine.db"), *wide, folder=tmp_path) as base:
        for host, path in ((FOREIGN, ""), (FOREIGN, "settings"), ("127.0.0.1", "queue")):
            foreign.goto(f"http://{host}:{port_of(base)}/{path}")
            foreign.wait_for_selector(IDLE)
            expect(foreign.get_by_text("open to the network without sign-in")).to_be_visible()
        refused = foreign.goto(f"http://other.localhost:{port_of(base)}/")
        assert refused is not None
        assert refused.status == 421

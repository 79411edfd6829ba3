"""The server: port, settings, headers, which requests it answers, which database it shows, and who
is at work.
"""

from __future__ import annotations

import asyncio
import json
import shlex
import socket
import subprocess
import sys
from collections.abc import Iterator, MutableMapping
from pathlib import Path
from typing import Any

import pytest
from streamlit.testing.v1 import AppTest

from masis.errors import SettingsError
from masis.services import ANONYMOUS, POLICY, Workbench, app_root
from masis.settings.hosts import AllowedHosts
from masis.ui.shell import serve, served_database
from masis.ui.shell.host_guard import HostGuard
from masis.ui.shell.reach import Reach
from masis.ui.shell.served_database import command, command_markdown
from tests.ui.conftest import Serve


@pytest.fixture(autouse=True)
def _own_data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MASIS_DB", str(tmp_path / "mine.db"))
    monkeypatch.setattr(served_database, "_served", [])


@pytest.fixture
def taken() -> Iterator[int]:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        yield int(listener.getsockname()[1])


def test_a_requested_port_in_use_is_rejected_with_a_hint(taken: int) -> None:
    with pytest.raises(serve.PortTaken, match=r"in use. Choose another with --port"):
        serve.choose_port("127.0.0.1", taken)


def test_without_a_port_the_next_free_one_is_used(
    taken: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(serve, "FIRST_PORT", taken)
    assert serve.choose_port("127.0.0.1", None) > taken


def test_an_address_of_another_machine_is_rejected_with_a_message() -> None:
    with pytest.raises(serve.MasisError, match="can't listen on"):
        serve.choose_port("192.0.2.1", None)


def test_the_server_is_local_and_sends_no_statistics_by_default() -> None:
    settings = serve.streamlit_settings(app_root())
    assert settings["server.address"] == "127.0.0.1"
    assert settings["browser.gatherUsageStats"] is False
    assert settings["client.showErrorDetails"] == "none"
    assert settings["server.fileWatcherType"] == "none"
    assert settings["runner.postScriptGC"] is False


def test_uploads_are_small_unless_the_operator_allows_more(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert serve.streamlit_settings(app_root())["server.maxUploadSize"] == 32
    monkeypatch.setenv(serve.LARGEST_UPLOAD, "500")
    assert "server.maxUploadSize" not in serve.streamlit_settings(app_root())


def test_streamlit_accepts_every_setting() -> None:
    from streamlit import config

    assert not set(serve.streamlit_settings(app_root())) - set(config._config_options_template)


def test_the_theme_loads_no_remote_font() -> None:
    text = (app_root() / ".streamlit" / "config.toml").read_text(encoding="utf-8")
    assert "http" not in text.replace("http://127.0.0.1", "")


def test_every_response_has_the_security_headers() -> None:
    sent: list[MutableMapping[str, Any]] = []

    async def app(scope: Any, receive: Any, send: Any) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": [(b"x-own", b"1")]})
        await send({"type": "http.response.body", "body": b""})

    async def send(message: MutableMapping[str, Any]) -> None:
        sent.append(message)

    async def receive() -> MutableMapping[str, Any]:
        return {"type": "http.request"}

    asyncio.run(serve.SecurityHeaders(app)({"type": "http"}, receive, send))
    headers = dict(sent[0]["headers"])
    assert headers[b"x-own"] == b"1"
    assert b"form-action 'self'" in headers[b"content-security-policy"]
    assert headers[b"x-content-type-options"] == b"nosniff"


def test_the_database_named_at_the_start_is_served(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("MASIS_DB", "/somewhere/else.db")
    assert served_database.served_database() == Path("/somewhere/else.db")
    served_database.serve_database(Path("named.db"))
    assert served_database.served_database() == Path("named.db")


HERE = AllowedHosts()
WIDER = AllowedHosts(["Audits.Example.org.", "192.0.2.7", "[2001:db8::7]"])


@pytest.mark.parametrize(
    "host", ["127.0.0.1", "127.0.0.1:8501", "localhost:8501", "LocalHost", "localhost.", "[::1]:9"]
)
def test_loopback_host_names_are_accepted(host: str) -> None:
    assert HERE.refusal([host], []) is None


@pytest.mark.parametrize(
    "hosts",
    [
        *(
            ["rebound.example:8501"],
            ["localhost.rebound.example"],
            ["127.0.0.1.rebound.example"],
            ["192.0.2.7"],
        ),
        *(
            [],
            [""],
            [":8501"],
            ["localhost:99999"],
            ["localhost", "localhost"],
            ["localhost, rebound.example"],
        ),
        *(
            ["user@localhost"],
            ["localhost/x"],
            ["localhost:8501:1"],
            ["[::1"],
            ["0.0.0.0:8501"],
            ["2130706433"],
        ),
    ],
)
def test_other_hosts_get_421(hosts: list[str]) -> None:
    refusal = HERE.refusal(hosts, [])
    assert refusal.status == 421


def test_allowed_host_names_are_case_insensitive() -> None:
    for host in (
        "audits.example.org",
        "AUDITS.example.org:443",
        "192.0.2.7:8501",
        "[2001:DB8:0::7]:8501",
        "localhost",
    ):
        assert WIDER.refusal([host], []) is None
    assert WIDER.refusal(["other.example.org"], []) is not None


@pytest.mark.parametrize(
    ("host", "origin"),
    [
        ("localhost:8501", "http://localhost:8501"),
        ("audits.example.org", "https://audits.example.org"),  # behind a proxy that ends TLS
        ("audits.example.org:443", "https://audits.example.org"),
        ("[::1]:8501", "http://[::1]:8501"),
    ],
)
def test_requests_from_the_servers_own_origin_are_accepted(host: str, origin: str) -> None:
    assert WIDER.refusal([host], [origin]) is None


@pytest.mark.parametrize(
    "origin",
    [
        *(
            "http://rebound.example:8501",
            "http://localhost:9999",
            "http://127.0.0.1:8501",
            "null",
            "",
            "file://",
        ),
        *(
            "http://localhost:8501/x",
            "http://localhost:8501@rebound.example",
            "http://localhost",
            "http://[::1",
        ),
        # an allowed name, but not the one that the request is addressed to
        "http://audits.example.org:8501",
    ],
)
def test_other_origins_get_403(origin: str) -> None:
    refusal = WIDER.refusal(["localhost:8501"], [origin])
    assert refusal.status == 403
    assert (
        WIDER.refusal(["localhost:8501"], ["http://localhost:8501", "http://localhost:8501"])
        is not None
    )


@pytest.mark.parametrize(
    "name", ["", "https://a.example", "a.example:80", "a b", "*", "a.example/x", "::zz"]
)
def test_an_invalid_host_name_is_rejected_at_the_start(name: str) -> None:
    with pytest.raises(SettingsError, match="only a host name or address"):
        AllowedHosts([name])


def test_the_listening_address_is_an_accepted_host() -> None:
    assert Reach("192.0.2.7", insecure=True).hosts().refusal(["192.0.2.7:8501"], []) is None
    assert (
        Reach("0.0.0.0", ("a.example",), insecure=True).hosts().refusal(["0.0.0.0:8501"], [])
        is not None
    )


def called(scope: dict[str, Any]) -> tuple[bool, list[MutableMapping[str, Any]]]:
    """Whether a request went through the guard, and what it was answered; reading of it fails."""
    sent: list[MutableMapping[str, Any]] = []
    through = []

    async def app(scope: Any, receive: Any, send: Any) -> None:
        through.append(scope)

    async def receive() -> MutableMapping[str, Any]:
        raise AssertionError("the request was read")

    async def send(message: MutableMapping[str, Any]) -> None:
        sent.append(message)

    asyncio.run(HostGuard(app, HERE)(scope, receive, send))
    return bool(through), sent


FOREIGN = [(b"host", b"rebound.example:8501"), (b"origin", b"http://rebound.example:8501")]


def test_a_request_for_another_host_is_neither_read_nor_forwarded() -> None:
    through, sent = called(
        {"type": "http", "method": "PUT", "path": "/_stcore/upload_file/a/b", "headers": FOREIGN}
    )
    assert not through
    assert sent[0]["status"] == 421
    assert json.loads(sent[1]["body"]) == {
        "error": "This server does not answer to that host name."
    }


def test_a_websocket_from_another_origin_is_rejected_before_it_opens() -> None:
    scope: dict[str, Any] = {"type": "websocket", "path": "/_stcore/stream", "headers": FOREIGN}
    through, sent = called(scope)
    assert not through
    assert sent == [
        {
            "type": "websocket.close",
            "code": 1008,
            "reason": "This server does not answer to that host name.",
        }
    ]
    _, sent = called({**scope, "extensions": {"websocket.http.response": {}}})
    assert (sent[0]["type"], sent[0]["status"]) == ("websocket.http.response.start", 421)


def test_requests_for_this_server_are_forwarded() -> None:
    through, sent = called({"type": "http", "path": "/", "headers": [(b"host", b"localhost:8501")]})
    assert through
    assert not sent
    assert called({"type": "lifespan"})[0]


def test_a_shown_command_omits_the_default_database(tmp_path: Path) -> None:
    assert command("masis export") == "masis export"
    served_database.serve_database(tmp_path / "mine.db")
    assert command("masis export") == "masis export"


def test_a_command_shown_in_the_demo_uses_the_demo_database(tmp_path: Path) -> None:
    served_database.serve_database(tmp_path / "demo.db")
    assert (
        command("masis import cases.jsonl")
        == f"masis import cases.jsonl --db {tmp_path / 'demo.db'}"
    )


def test_a_shown_command_quotes_any_database_name(tmp_path: Path) -> None:
    served_database.serve_database(tmp_path / "my `$cases`; *.db")
    assert shlex.split(command("masis export"))[-1] == str(tmp_path / "my `$cases`; *.db")


def test_a_backtick_in_the_name_doesnt_end_the_code_span(tmp_path: Path) -> None:
    served_database.serve_database(tmp_path / "a``b.db")
    shown = command_markdown("masis export")
    assert shown == f"``` {command('masis export')} ```"


@pytest.fixture
def workbench(tmp_path: Path, serve: Serve) -> Workbench:
    return serve(tmp_path / "names.db")


def named(given: Any) -> str | None:
    """What a session calls itself after the name was given."""

    def script(given: object) -> None:
        import streamlit as st

        from masis.ui.shell.reviewer import name_reviewer, reviewer, reviewer_badge
        from masis.ui.shell.served_database import served_workbench

        name_reviewer(served_workbench(), given)
        reviewer_badge(served_workbench())
        st.session_state["seen"] = reviewer()

    app = AppTest.from_function(script, kwargs={"given": given}, default_timeout=20).run()
    assert not app.exception
    return str(app.session_state["seen"]) if app.session_state["seen"] else None


def test_a_reviewer_name_is_cleaned_and_adopts_earlier_drafts(workbench: Workbench) -> None:
    workbench.store.drafts.save(ANONYMOUS.draft_owner, "case:1", {"note": "typed first"})
    assert named("  Ada \n Lovelace\x00 ") == "Ada Lovelace"
    assert workbench.store.drafts.get("Ada Lovelace", "case:1").values == {"note": "typed first"}


@pytest.mark.parametrize("given", ["", "   ", None, 7, ["Ada"], POLICY.name, POLICY.name.upper()])
def test_invalid_reviewer_names_are_rejected(workbench: Workbench, given: Any) -> None:
    assert named(given) is None


def test_a_hostile_name_is_escaped_and_truncated(workbench: Workbench) -> None:
    assert len(named("![x](http://192.0.2.1/)" * 50) or "") <= 80


ROOT = Path(__file__).resolve().parents[2]
SAID = """
import logging, os
from masis.ui.shell.worker import show_log
for form in ("", "yaml", "json"):
    os.environ["MASIS_LOG_FORMAT"] = form
    logging.getLogger("masis").handlers.clear()
    show_log()
    logging.getLogger("masis.x").warning("it broke")
"""


@pytest.mark.slow
def test_log_lines_are_text_unless_json_is_requested() -> None:
    environment = {"PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        [sys.executable, "-c", SAID], capture_output=True, text=True, check=True, env=environment
    )
    *words, line = done.stderr.splitlines()
    assert words == ["it broke", "it broke"], "a form that is none does not silence the log"
    told = json.loads(line)
    assert (told["level"], told["logger"], told["message"]) == ("WARNING", "masis.x", "it broke")


def test_small_answers_are_sent_without_delay() -> None:
    from streamlit.web.server.starlette import starlette_server

    from masis.ui.shell.streamlit_internals import answer_without_delay

    answer_without_delay()
    answer_without_delay()
    with starlette_server._bind_socket("127.0.0.1", 0, 1) as listening:
        listening.setblocking(True)
        with socket.create_connection(listening.getsockname()):
            accepted, _ = listening.accept()
            with accepted:
                assert accepted.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)

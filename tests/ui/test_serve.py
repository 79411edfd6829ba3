"""Starting the server: which port, which settings, which headers."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Iterator, MutableMapping
from pathlib import Path
from typing import Any

import pytest

from masis.services import app_root
from masis.ui.shell import serve


@pytest.fixture
def taken() -> Iterator[int]:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        yield int(listener.getsockname()[1])


def test_a_port_that_is_asked_for_and_taken_is_refused_with_a_cure(taken: int) -> None:
    with pytest.raises(serve.PortTaken, match=r"taken. Name another with --port"):
        serve.chosen_port("127.0.0.1", taken)


def test_without_a_port_the_next_free_one_is_taken(taken: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(serve, "FIRST_PORT", taken)
    assert serve.chosen_port("127.0.0.1", None) > taken


def test_an_address_of_another_machine_is_refused_in_words() -> None:
    with pytest.raises(serve.MasisError, match="can't be served on"):
        serve.chosen_port("192.0.2.1", None)


def test_the_settings_keep_the_server_to_this_machine_and_silent() -> None:
    settings = serve.streamlit_settings(app_root())
    assert settings["server.address"] == "127.0.0.1"
    assert settings["browser.gatherUsageStats"] is False
    assert settings["client.showErrorDetails"] == "none"
    assert settings["server.fileWatcherType"] == "none"
    assert settings["runner.postScriptGC"] is False


def test_streamlit_knows_every_setting() -> None:
    from streamlit import config

    assert not set(serve.streamlit_settings(app_root())) - set(config._config_options_template)


def test_the_theme_names_no_font_to_fetch() -> None:
    text = (app_root() / ".streamlit" / "config.toml").read_text(encoding="utf-8")
    assert "http" not in text.replace("http://127.0.0.1", "")


def test_every_response_is_dressed_with_the_security_headers() -> None:
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


def test_the_database_named_at_the_start_is_the_one_that_is_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    from masis.ui.shell import served_database

    monkeypatch.setattr(served_database, "_served", [])
    monkeypatch.setenv("MASIS_DB", "/somewhere/else.db")
    assert served_database.served_database() == Path("/somewhere/else.db")
    served_database.serve_database(Path("named.db"))
    assert served_database.served_database() == Path("named.db")

"""Every use of Streamlit's internals, beyond its documented API.

Internals may change with each release, so pyproject.toml doesn't allow a minor version later than
``TESTED``, and tests/browser/test_demo.py lists the names that a new version no longer has. To
upgrade, raise ``TESTED`` and the bound in pyproject.toml, run that test, and fix the names here.
"""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Mapping
from functools import cache
from time import monotonic
from typing import Any, NamedTuple

from masis.views.markdown import drawable

TESTED = "1.67"
"""The latest minor version of Streamlit with which this module was tested."""

ELEMENTS: dict[str, str] = {
    "app": "stApp",
    "button": "stBaseButton-secondary",
    "caption": "stCaptionContainer",
    "choices": "stButtonGroup",
    "column": "stColumn",
    "columns": "stHorizontalBlock",
    "container": "stVerticalBlock",
    "dialog": "stDialog",
    "header": "stHeader",
    "hint": "InputInstructions",
    "icon": "stIconMaterial",
    "main": "stMain",
    "navigation_link": "stTopNavLink",
    "navigation_menu": "stTopNavSection",
    "navigation_menu_link": "stTopNavDropdownLink",
    "page_link": "stPageLink-NavLink",
    "primary_button": "stBaseButton-primary",
    "primary_submit": "stBaseButton-primaryFormSubmit",
    "tertiary_button": "stBaseButton-tertiary",
    "toasts": "stToastContainer",
    "wrapper": "stLayoutWrapper",
}
"""Elements used in styles and scripts, by our name, with Streamlit's ``data-testid``."""

PAGE_STATE = {
    "connection": "testConnectionState",
    "connected": "CONNECTED",
    "script": "testScriptState",
    "idle": "notRunning",
}
"""Keys in the ``app`` element's data set, and their values once the page is connected and drawn."""


HEALTH_PATH = "/_stcore/health"
"""Address of the health check of Streamlit's own server, which reveals nothing else."""

UPLOADS = "/_stcore/upload_file/"
"""Address to which Streamlit uploads files. It keeps them in memory until the session ends."""


def selector(name: str) -> str:
    """Return the CSS selector of an element of ``ELEMENTS``."""
    return f"[data-testid={ELEMENTS[name]}]"


def with_selectors(styles: str) -> str:
    """Replace ``@st-NAME`` in a style sheet with the selector of that element."""
    # Longest names first, because one may be the start of another, as column is of columns.
    for name in sorted(ELEMENTS, key=len, reverse=True):
        styles = styles.replace(f"@st-{name}", selector(name))
    return styles


def script() -> str:
    """Return JavaScript that defines ``STREAMLIT`` with the same names for the page's scripts."""
    names = {"elements": {name: selector(name) for name in ELEMENTS}, "state": PAGE_STATE}
    return f"const STREAMLIT = {json.dumps(names)}"


def disable_pages_folder() -> None:
    """Stop Streamlit from serving the folder ``pages/`` as its own kind of multipage app.

    Streamlit does so until app.py has called ``st.navigation`` once. Until then, a deep link would
    show its page without the frame.
    """
    from streamlit.runtime.pages_manager import PagesManager

    PagesManager.uses_pages_directory = False


CLICK_LASTS_S = 5.0
"""How long the run that a click has started isn't interrupted: most pages take a tenth of it. What
takes longer, such as the preparation of a large download, can be left with another click.
"""


class _Run(threading.local):
    """The run of this thread, which is one session's script."""

    applies_values = False
    """Whether the values from the browser are being applied, which calls the callbacks."""
    clicked_until = 0.0
    """Until when (monotonic seconds) newer requests wait for a click, 0 without a click."""
    reruns_itself = False
    """Whether the script has asked for another run or another page itself."""


_RUN = _Run()


@cache
def let_clicks_finish() -> None:
    """Let the run that a click or a component's message has started act on it.

    Streamlit stops a run for a newer request, which may be a message that no user sent: the name
    that the browser has stored, or text that a field posts when it is left. That loses the click. A
    callback isn't called again, because its value counts as applied, and ``if st.button(...)`` is
    true only in the run that was stopped before it got there. With this patch, a newer request
    waits until the callbacks have returned, and after a click until the run has ended, at most
    ``CLICK_LASTS_S``. It needs the option ``runner.fastReruns`` to be off, because otherwise a
    newer request starts a second run beside the first. Calling this function again has no effect.
    """
    from streamlit.runtime.scriptrunner.script_runner import ScriptRunner
    from streamlit.runtime.scriptrunner_utils.script_requests import (
        ScriptRequests,
        _has_active_trigger_value,
    )
    from streamlit.runtime.state.safe_session_state import SafeSessionState

    apply_values = SafeSessionState.on_script_will_rerun
    handle_request = ScriptRunner._maybe_handle_execution_control_request
    add_request = ScriptRequests._request_rerun_locked

    def on_script_will_rerun(of: SafeSessionState, values: Any, *args: Any, **named: Any) -> None:
        is_clicked = values is not None and any(map(_has_active_trigger_value, values.widgets))
        _RUN.clicked_until = monotonic() + CLICK_LASTS_S if is_clicked else 0
        _RUN.reruns_itself = False
        _RUN.applies_values = True
        try:
            apply_values(of, values, *args, **named)
        finally:
            _RUN.applies_values = False

    def maybe_handle_request(of: ScriptRunner) -> None:
        acts_on_click = monotonic() < _RUN.clicked_until and not _RUN.reruns_itself
        if not _RUN.applies_values and not acts_on_click:
            handle_request(of)

    def note_request(of: ScriptRequests, request: Any) -> bool:
        # The script's own requests come from its thread, the browser's from another.
        _RUN.reruns_itself = True
        return add_request(of, request)

    runner: Any = ScriptRunner
    state: Any = SafeSessionState
    requests: Any = ScriptRequests
    runner._maybe_handle_execution_control_request = maybe_handle_request
    state.on_script_will_rerun = on_script_will_rerun
    requests._request_rerun_locked = note_request


@cache
def break_long_marks() -> None:
    """Make all texts sent to a browser drawable in linear time. Calling it again has no effect."""
    from streamlit.runtime.scriptrunner_utils.script_run_context import ScriptRunContext

    context: Any = ScriptRunContext
    enqueue = context.enqueue

    def enqueue_drawable(of: ScriptRunContext, message: Any) -> None:
        _make_drawable(message)
        enqueue(of, message)

    context.enqueue = enqueue_drawable


def _make_drawable(message: Any) -> None:
    """Break long runs of combining marks in every text of a protobuf message, in place."""
    # ListFields returns only the fields that are set.
    for field, value in message.ListFields():
        if field.type == field.TYPE_MESSAGE and not field.is_repeated:
            _make_drawable(value)
        elif field.type == field.TYPE_MESSAGE and not field.message_type.GetOptions().map_entry:
            for item in value:
                _make_drawable(item)
        elif field.type == field.TYPE_STRING and field.is_repeated:
            # A repeated field can't be assigned, only changed in place.
            value[:] = [drawable(item) for item in value]
        elif field.type == field.TYPE_STRING and (broken := drawable(value)) is not value:
            setattr(message, field.name, broken)


def answer_without_delay() -> None:
    """Make the server send small answers at once. Calling it again has no effect.

    Streamlit binds its socket with protocol 0, for which asyncio doesn't set TCP_NODELAY
    (``asyncio.base_events._set_nodelay`` asks for IPPROTO_TCP). Headers and body of an answer are
    two packets then, and with Nagle's algorithm the second one waits for the delayed
    acknowledgement of the first: 41 ms for every answer but the first of a connection. On Linux,
    accepted sockets inherit the option from the listening one (tcp(7)).
    """
    from streamlit.web.server.starlette import starlette_server

    bind: Any = starlette_server._bind_socket
    if getattr(bind, "is_without_delay", False):
        return

    def bind_without_delay(*arguments: Any, **named: Any) -> socket.socket:
        bound: socket.socket = bind(*arguments, **named)
        bound.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return bound

    bind_without_delay.is_without_delay = True  # type: ignore[attr-defined]
    starlette_server._bind_socket = bind_without_delay


def signed_in_claims(cookies: Mapping[str, str]) -> dict[str, Any]:
    """Return the claims in the session cookie of ``st.login``; empty if missing or not ours."""
    from streamlit.auth_util import get_cookie_with_chunks
    from streamlit.web.server.server_util import get_cookie_secret
    from streamlit.web.server.starlette.starlette_app_utils import decode_signed_value
    from streamlit.web.server.starlette.starlette_server_config import USER_COOKIE_NAME

    def signed(name: str) -> bytes | None:
        value = cookies.get(name)
        return (
            None
            if value is None
            else decode_signed_value(get_cookie_secret(), name, value.encode("latin-1"))
        )

    try:
        claims = json.loads(get_cookie_with_chunks(signed, USER_COOKIE_NAME) or b"{}")
    except ValueError:
        return {}
    return claims if isinstance(claims, dict) and claims.get("is_logged_in") is True else {}


class SessionCookie(NamedTuple):
    """The name and the signed value of a cookie."""

    name: str
    value: str


def session_cookie(claims: Mapping[str, Any], origin: str) -> SessionCookie:
    """Return the cookie that signs a person in for ``st.user``, valid for pages of this origin."""
    from streamlit.web.server.server_util import get_cookie_secret
    from streamlit.web.server.starlette.starlette_app_utils import create_signed_value
    from streamlit.web.server.starlette.starlette_server_config import USER_COOKIE_NAME

    content = json.dumps({**claims, "origin": origin, "is_logged_in": True})
    return SessionCookie(
        USER_COOKIE_NAME,
        create_signed_value(get_cookie_secret(), USER_COOKIE_NAME, content).decode(),
    )


def login_address() -> str:
    """Return the address to which ``st.login()`` sends the browser, valid for two minutes."""
    from streamlit.user_info import generate_login_redirect_url

    return generate_login_redirect_url("default")

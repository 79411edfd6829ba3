"""All that the workbench uses of Streamlit beyond its documented API, in one place.

None of it is promised to stay, so pyproject.toml allows no minor version of Streamlit later than
``TESTED``, and tests/browser/test_demo.py names what a new version no longer has. To move to one:
raise ``TESTED`` and the bound in pyproject.toml, run that test, and change what it names here.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Mapping
from functools import cache
from typing import Any, NamedTuple

from masis.views.markdown import drawable

TESTED = "1.67"
"""The last minor version of Streamlit that everything here was tested with."""

ELEMENTS: dict[str, str] = {
    "app": "stApp",
    "button": "stBaseButton-secondary",
    "caption": "stCaptionContainer",
    "column": "stColumn",
    "columns": "stHorizontalBlock",
    "container": "stVerticalBlock",
    "dialog": "stDialog",
    "header": "stHeader",
    "hint": "InputInstructions",
    "icon": "stIconMaterial",
    "main": "stMain",
    "navigation_link": "stTopNavLink",
    "primary_button": "stBaseButton-primary",
    "primary_submit": "stBaseButton-primaryFormSubmit",
    "tertiary_button": "stBaseButton-tertiary",
    "toasts": "stToastContainer",
    "wrapper": "stLayoutWrapper",
}
"""The elements that styles and scripts refer to: our name, and the ``data-testid`` that Streamlit
gives them.
"""

PAGE_STATE = {
    "connection": "testConnectionState",
    "connected": "CONNECTED",
    "script": "testScriptState",
    "idle": "notRunning",
}
"""Names in the ``app`` element's data set, and the values they have when the page is connected and
drawn.
"""


HEALTH_PATH = "/_stcore/health"
"""Where Streamlit's own server says that it is alive; it tells nothing else."""

UPLOADS = "/_stcore/upload_file/"
"""Where Streamlit takes files into memory, whatever page is open; it drops those of a session that
is over.
"""


def selector(name: str) -> str:
    """Return the CSS selector of an element of ``ELEMENTS``."""
    return f"[data-testid={ELEMENTS[name]}]"


def with_selectors(styles: str) -> str:
    """Replace ``@st-NAME`` in a style sheet by the selector of that element."""
    for name in sorted(ELEMENTS, key=len, reverse=True):
        styles = styles.replace(f"@st-{name}", selector(name))
    return styles


def script() -> str:
    """Return the JavaScript that gives the page's own elements the same names: ``STREAMLIT``."""
    names = {"elements": {name: selector(name) for name in ELEMENTS}, "state": PAGE_STATE}
    return f"const STREAMLIT = {json.dumps(names)}"


def is_no_pages_folder_app() -> None:
    """Tell Streamlit that the folder ``pages/`` is not its own kind of multipage application.

    It takes it for one until app.py has run once, and a deep link would then show its page without
    the frame.
    """
    from streamlit.runtime.pages_manager import PagesManager

    PagesManager.uses_pages_directory = False


_APPLYING = threading.local()
"""``now`` where this thread, that of one session's script, is taking over what the browser sent."""


@cache
def let_callbacks_finish() -> None:
    """Let every callback run to its end, once what the browser sent has arrived. Called again, it
    changes nothing.

    A run gives way to a newer request at each use of the session state. In a callback that loses
    what was chosen or pressed: the value counts as taken over, so that the newer run calls nothing
    for it. With this a newer request waits until the callbacks have returned; it still cuts short
    the drawing that follows.
    """
    from streamlit.runtime.scriptrunner.script_runner import ScriptRunner
    from streamlit.runtime.state.safe_session_state import SafeSessionState

    take_over = SafeSessionState.on_script_will_rerun
    give_way = ScriptRunner._maybe_handle_execution_control_request

    def on_script_will_rerun(of: SafeSessionState, *args: Any, **named: Any) -> None:
        _APPLYING.now = True
        try:
            take_over(of, *args, **named)
        finally:
            _APPLYING.now = False

    def maybe_handle_request(of: ScriptRunner) -> None:
        if not getattr(_APPLYING, "now", False):
            give_way(of)

    runner: Any = ScriptRunner
    state: Any = SafeSessionState
    runner._maybe_handle_execution_control_request = maybe_handle_request
    state.on_script_will_rerun = on_script_will_rerun


@cache
def break_long_marks() -> None:
    """Let no text reach a browser that it can't draw in linear time. Called again, it changes
    nothing.
    """
    from streamlit.runtime.scriptrunner_utils.script_run_context import ScriptRunContext

    context: Any = ScriptRunContext
    enqueue = context.enqueue

    def enqueue_drawable(of: ScriptRunContext, message: Any) -> None:
        _make_drawable(message)
        enqueue(of, message)

    context.enqueue = enqueue_drawable


def _make_drawable(message: Any) -> None:
    """Break the long runs of combining marks in every text of a message, in place."""
    for field, value in message.ListFields():
        if field.type == field.TYPE_MESSAGE and not field.is_repeated:
            _make_drawable(value)
        elif field.type == field.TYPE_MESSAGE and not field.message_type.GetOptions().map_entry:
            for item in value:
                _make_drawable(item)
        elif field.type == field.TYPE_STRING and field.is_repeated:
            value[:] = [drawable(item) for item in value]
        elif field.type == field.TYPE_STRING and (broken := drawable(value)) is not value:
            setattr(message, field.name, broken)


def signed_in_claims(cookies: Mapping[str, str]) -> dict[str, Any]:
    """Return the claims in the session cookie that ``st.login`` sets; empty where there is none, or
    it is not ours.
    """
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
    """A cookie by its name and its signed value."""

    name: str
    value: str


def session_cookie(claims: Mapping[str, Any], origin: str) -> SessionCookie:
    """Return the cookie by which ``st.user`` knows who has signed in; it counts for pages of this
    origin.
    """
    from streamlit.web.server.server_util import get_cookie_secret
    from streamlit.web.server.starlette.starlette_app_utils import create_signed_value
    from streamlit.web.server.starlette.starlette_server_config import USER_COOKIE_NAME

    content = json.dumps({**claims, "origin": origin, "is_logged_in": True})
    return SessionCookie(
        USER_COOKIE_NAME,
        create_signed_value(get_cookie_secret(), USER_COOKIE_NAME, content).decode(),
    )


def login_address() -> str:
    """Return the address that ``st.login()`` sends the browser to; it is good for two minutes."""
    from streamlit.user_info import generate_login_redirect_url

    return generate_login_redirect_url("default")

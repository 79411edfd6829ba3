"""The reviewer's name: it is asked for once, shown in the frame and recorded with every decision.

The browser stores the name in its local storage, so that it isn't asked for again after a reload or
a restart, and isn't shown in another browser. Without sign-in, the name doesn't prove a person's
identity, because there are no accounts.
"""

from __future__ import annotations

from collections.abc import Callable

import streamlit as st

from masis.server.browser_id import browser_id
from masis.services import ANONYMOUS, Actor, Workbench
from masis.services.drafts import clean, subjects_of_case
from masis.settings import account_name
from masis.settings.sign_in import is_reserved
from masis.ui.components import noop, register_component
from masis.ui.review.decision_form import LONGEST_NAME
from masis.ui.shell import address
from masis.ui.shell.inputs import show_value
from masis.ui.shell.reach import served_reach
from masis.ui.shell.streamlit_internals import with_selectors
from masis.views.markdown import escape_markdown

_KEY = "reviewer-name"
TAKEN_CASE_KEY = "taken-case"
"""Session state key of the case that this session has reserved for a decision."""
_OPEN_FORMS = "open-forms"
_BROWSER_KEY = "browser-id"
_MEMORY = register_component("reviewer", "way_back", "dialog_keys")

# The badge lies above Streamlit's header, whose z-index is 999990. The header keeps room for a
# badge of 6.3rem ("Your name") and moves links that don't fit into its menu. The badge of a longer
# name takes the room that the links leave (--links, see frame.py) and is cut where that ends.
_STYLE = """<style>
@st-header { padding-right: 11.2rem; }
.st-key-reviewer-badge { position: fixed; top: 0.875rem; right: 3.4rem; z-index: 999991;
  width: auto; max-width: clamp(6.3rem, 100vw - var(--links) - 4rem, 16rem); }
.st-key-reviewer-badge button { border: 0; background: transparent; min-height: 2rem;
  max-width: 100%; }
.st-key-reviewer-badge button :has(p) { min-width: 0; }
.st-key-reviewer-badge button p { overflow: hidden; text-overflow: ellipsis; white-space: nowrap; }
@st-wrapper:has(> .st-key-reviewer-badge),
@st-wrapper:has(> .st-key-reviewer-memory) { position: absolute; }
.st-key-reviewer-memory { position: absolute; width: 0; height: 0; overflow: hidden; }
</style>"""


def reviewer() -> str | None:
    """Return the name of the person in this session, or None until it is known."""
    if served_reach().sign_in is not None:
        return actor().name or None
    return st.session_state.get(_KEY)


def actor() -> Actor:
    """Return the user of this session.

    All pages use this function to identify the user. With sign-in, the session is checked on every
    call: if it has ended or the person was removed, the result is ``ANONYMOUS``.
    """
    if (sign_in := served_reach().sign_in) is not None:
        return sign_in.actor(st.user.to_dict()) or ANONYMOUS
    return Actor(name=reviewer() or "", browser=_browser())


def _browser() -> str:
    """Return the id of this session's browser, or "" if it has none."""
    if _BROWSER_KEY not in st.session_state:
        st.session_state[_BROWSER_KEY] = browser_id(st.context.cookies)
    return str(st.session_state[_BROWSER_KEY])


def acting(do: Callable[..., object], *arguments: object) -> Callable[[], None]:
    """Return a callback that calls ``do`` with the user at the time of the call."""

    def act() -> None:
        do(actor(), *arguments)

    return act


def signed_in_or_stop() -> None:
    """Stop the page if sign-in is required and the session has ended."""
    if served_reach().sign_in is None or actor().may("read"):
        return
    st.title("Your session has ended")
    st.markdown("Sign in again. What you entered is still there.")
    st.link_button("Sign in", "/auth/logout", type="primary")
    st.stop()


def name_reviewer(workbench: Workbench, typed: object) -> str | None:
    """Set the name of this session and transfer earlier drafts to it.

    If the session had another name, its open case and its drafts move to the new name. A name
    that a program signs with is refused. With sign-in the name is fixed and ``typed``
    is ignored.

    Returns:
        The name as set, or None if ``typed`` isn't a valid name.

    """
    if served_reach().sign_in is not None:
        return reviewer()
    name = " ".join(clean(typed, LONGEST_NAME).split())
    if not name or is_reserved(name):
        return None
    earlier = actor()
    st.session_state[_KEY] = name
    workbench.drafts.adopt(actor())
    if earlier.name and earlier.name != name:
        _rename_session(workbench, earlier, name)
    return name


def note_open_form(subject: str) -> None:
    """Remember that this session has a form open whose draft has this subject."""
    st.session_state.setdefault(_OPEN_FORMS, set()).add(subject)


def _rename_session(workbench: Workbench, earlier: Actor, name: str) -> None:
    """Transfer what this session has open to its new name.

    Otherwise the lease of the old name would block the same person.
    """
    taken = st.session_state.get(TAKEN_CASE_KEY)
    cases = {
        case_id
        for case_id in (taken, address.value("case"))
        if isinstance(case_id, str) and case_id
    }
    about_cases = (subject for case_id in cases for subject in subjects_of_case(case_id))
    subjects = [*about_cases, *st.session_state.get(_OPEN_FORMS, ())]
    workbench.team.rename(earlier, name, cases=[taken] if taken else [], subjects=subjects)


def suggested_name() -> str:
    """Return this machine's account name as a suggestion, or "" if others can reach the server."""
    if served_reach().is_open or served_reach().sign_in is not None:
        return ""
    account = account_name()
    # accounts of services and containers, which name no person
    return "" if account in ("root", "nobody", "www-data") else clean(account, LONGEST_NAME)


def reviewer_badge(workbench: Workbench) -> None:
    """Show the reviewer's name at the right of the frame, with a way to change it.

    Call it once per page, before the page.
    """
    user, signed_in = actor(), served_reach().sign_in is not None
    # Positioned outside the page flow, so that the page starts at the same height without it.
    with st.container(key="reviewer-badge"):
        st.html(with_selectors(_STYLE))
        _draw_frame_script(workbench, signed_in=signed_in)
        popover = st.popover(
            escape_markdown(user.name) or "Your name", icon=":material/person:", type="tertiary"
        )
    with popover:
        if signed_in:
            st.markdown(f"Signed in as **{escape_markdown(user.name)}**, {', '.join(user.roles)}.")
            st.markdown("Decisions are recorded under this name.")
            st.button("Sign out", icon=":material/logout:", key="sign-out", on_click=st.logout)
            return
        st.markdown("**Your name** is recorded with every decision and stored in this browser.")

        def rename() -> None:
            if (name := name_reviewer(workbench, st.session_state["reviewer-field"])) is not None:
                st.toast(f"Saved. Your decisions are recorded as {escape_markdown(name)}.")

        show_value("reviewer-field", user.name)
        st.text_input("Your name", key="reviewer-field", max_chars=LONGEST_NAME, on_change=rename)


def _draw_frame_script(workbench: Workbench, *, signed_in: bool) -> None:
    """Load the frame's script. Without sign-in, the browser stores the name, and its stored name is
    adopted.
    """
    with st.container(key="reviewer-memory"):
        stored = _MEMORY(
            data={"name": reviewer() or "", "signed_in": signed_in},
            key="reviewer-store",
            on_kept_change=noop,
            on_wake_change=noop,
        ).kept
    # A restarted server has lost the name of the session, but the browser still has it.
    if isinstance(stored, str) and reviewer() is None and name_reviewer(workbench, stored):
        st.rerun()

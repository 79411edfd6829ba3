"""The reviewer's name: asked for once, shown in the frame, recorded with every decision.

The browser it was typed in stores it (local storage), so that it is not asked for again after a
reload or a restart of the server, and never follows anyone to another browser. It is a signature,
not a proof: there are no accounts.
"""

from __future__ import annotations

from collections.abc import Callable

import streamlit as st

from masis.services import ANONYMOUS, POLICY, Actor, Workbench
from masis.services.drafts import clean, subjects_of_case
from masis.settings import account_name
from masis.ui.components import noop, register_component
from masis.ui.review.decision_form import LONGEST_NAME
from masis.ui.shell import address
from masis.ui.shell.inputs import show_value
from masis.ui.shell.reach import served_reach
from masis.ui.shell.streamlit_internals import with_selectors
from masis.views.markdown import escape_markdown

_KEY = "reviewer-name"
TAKEN_CASE_KEY = "taken-case"
"""The case that this session has taken for decision, in the session state."""
_OPEN_FORMS = "open-forms"
_MEMORY = register_component("reviewer", "way_back")

_STYLE = """<style>
.st-key-reviewer-badge { position: fixed; top: 0.875rem; right: 3.4rem; z-index: 999991; width: auto; }
.st-key-reviewer-badge button { border: 0; background: transparent; min-height: 2rem; }
@st-wrapper:has(> .st-key-reviewer-badge),
@st-wrapper:has(> .st-key-reviewer-memory) { position: absolute; }
.st-key-reviewer-memory { position: absolute; width: 0; height: 0; overflow: hidden; }
</style>"""


def reviewer() -> str | None:
    """Return the name of the person in this session, None until it is known."""
    if served_reach().sign_in is not None:
        return actor().name or None
    return st.session_state.get(_KEY)


def actor() -> Actor:
    """Return who the pages of this session act for: who has signed in, else the reviewer, once
    their name is known.

    The one place where pages learn who is at work. With sign-in it is asked on every use: a session
    that is over, or a person who was removed, is nobody.
    """
    if (sign_in := served_reach().sign_in) is not None:
        return sign_in.actor(st.user.to_dict()) or ANONYMOUS
    name = reviewer()
    return Actor(name=name) if name else ANONYMOUS


def acting(do: Callable[..., object], *arguments: object) -> Callable[[], None]:
    """Return a callback that does this for whoever is at work when it is called, not when the page
    was drawn.
    """

    def act() -> None:
        do(actor(), *arguments)

    return act


def signed_in_or_stop() -> None:
    """End the page where sign-in is needed and the session is over."""
    if served_reach().sign_in is None or actor().may("read"):
        return
    st.title("Your session is over")
    st.markdown("Sign in again; what you had entered is still there.")
    st.link_button("Sign in", "/auth/logout", type="primary")
    st.stop()


def name_reviewer(workbench: Workbench, typed: object) -> str | None:
    """Set the name of this session and hand earlier drafts to it. Returns the name as set, None if
    it is no name.

    Where the session had another name, the case that is open and what is typed go with it. The name
    that the acceptance policy signs with is refused. Who has signed in has that name, whatever is
    typed.
    """
    if served_reach().sign_in is not None:
        return reviewer()
    name = " ".join(clean(typed, LONGEST_NAME).split())
    if not name or name.casefold() == POLICY.name.casefold():
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
    """Let what this session has open follow its new name: else the person would be refused by
    themselves.
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
    """Return the name of the account that serves this machine alone, to be confirmed; "" where
    others can reach it.
    """
    if served_reach().is_open or served_reach().sign_in is not None:
        return ""
    account = account_name()
    return "" if account in ("root", "nobody", "www-data") else clean(account, LONGEST_NAME)


def reviewer_badge(workbench: Workbench) -> None:
    """Show the reviewer's name at the right of the frame, with a way to change it; once a page,
    before the page.
    """
    user, signed_in = actor(), served_reach().sign_in is not None
    # all of it out of the flow: the page begins where it would without
    with st.container(key="reviewer-badge"):
        st.html(with_selectors(_STYLE))
        if not signed_in:
            _sync_stored_name(workbench)
        popover = st.popover(
            escape_markdown(user.name) or "Your name", icon=":material/person:", type="tertiary"
        )
    with popover:
        if signed_in:
            st.markdown(f"Signed in as **{escape_markdown(user.name)}**, {', '.join(user.roles)}.")
            st.markdown("Decisions are recorded under this name.")
            st.button("Sign out", icon=":material/logout:", key="sign-out", on_click=st.logout)
            return
        st.markdown(
            "**Who decides?** The name is recorded with every decision and remembered by this"
            " browser."
        )

        def rename() -> None:
            if (name := name_reviewer(workbench, st.session_state["reviewer-field"])) is not None:
                st.toast(f"Stored: decisions are recorded as {escape_markdown(name)}.")

        show_value("reviewer-field", user.name)
        st.text_input("Your name", key="reviewer-field", max_chars=LONGEST_NAME, on_change=rename)


def _sync_stored_name(workbench: Workbench) -> None:
    """Let the browser store the name, or take the one it has stored."""
    with st.container(key="reviewer-memory"):
        stored = _MEMORY(
            data={"name": reviewer() or ""},
            key="reviewer-store",
            on_kept_change=noop,
            on_wake_change=noop,
        ).kept
    if isinstance(stored, str) and reviewer() is None and name_reviewer(workbench, stored):
        st.rerun()

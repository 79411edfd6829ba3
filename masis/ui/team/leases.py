"""The lease on an open case: claiming, renewing and releasing it, and explaining empty queues."""

from __future__ import annotations

import time

import streamlit as st

from masis.errors import UnknownRecord
from masis.schema.wording import count_noun
from masis.services import Workbench
from masis.services.team import EmptyQueue
from masis.ui.shell import address
from masis.ui.shell.reviewer import TAKEN_CASE_KEY, actor, name_reviewer, reviewer, suggested_name

_CLAIMED_AT = "taken-at"
_RENEW_AFTER = 30.0
"""Seconds before an open case is claimed again.

A lease lasts for minutes, while the page may run several times a second.
"""

MOST_NAMED = 4


def ask_name(workbench: Workbench) -> None:
    """Ask for the reviewer's name unless it's known. The decision form has a field of its own."""
    if reviewer() is not None:
        return
    with (
        st.container(key="name-asked"),
        st.form("name-first", border=False, enter_to_submit=True),
        st.container(horizontal=True, vertical_alignment="bottom"),
    ):
        st.text_input(
            "Reviewer's name",
            suggested_name(),
            key="name-first-field",
            max_chars=200,
            width=280,
            placeholder="Recorded with decisions",
        )
        if st.form_submit_button("Start reviewing", icon=":material/person:"):
            if name_reviewer(workbench, st.session_state["name-first-field"]) is None:
                st.caption("Type your name. Your decisions are recorded under it.")
            else:
                st.rerun()


def claim_or_renew(workbench: Workbench, case_id: str, queue: str = "") -> None:
    """Claim the case or renew its lease, at most twice a minute.

    ``queue`` is the named queue in which it's decided.

    Raises:
        CaseHeld: Another reviewer has claimed the case.
        NotAllowed: The user can't decide cases.

    """
    now = time.monotonic()
    is_recent = now - st.session_state.get(_CLAIMED_AT, 0.0) < _RENEW_AFTER
    if st.session_state.get(TAKEN_CASE_KEY) == case_id and is_recent:
        return
    workbench.team.claim(actor(), case_id, queue)
    st.session_state[TAKEN_CASE_KEY], st.session_state[_CLAIMED_AT] = case_id, now


def release_claim(workbench: Workbench) -> None:
    """Release the case that this session has claimed, if any."""
    case_id = st.session_state.pop(TAKEN_CASE_KEY, None)
    if isinstance(case_id, str) and reviewer() is not None:
        try:
            workbench.team.release(actor(), case_id)
        except UnknownRecord:  # another database is served now; leases in the old one expire
            return


def release_button(workbench: Workbench, case_id: str) -> None:
    """Draw the button that releases the case, if this session has claimed it."""
    if st.session_state.get(TAKEN_CASE_KEY) != case_id:
        return
    if st.button("Release this case", icon=":material/undo:", key="give-back", width="stretch"):
        release_claim(workbench)
        address.leave_case()


def explain_empty_queue(empty: EmptyQueue) -> str:
    """Explain in a few sentences why a queue has no case for a reviewer."""
    if not empty.waiting:
        if not empty.elsewhere:
            return (
                "Nothing left to decide in this queue. Import more cases, or look at the decided"
                " ones."
            )
        need = "needs" if empty.elsewhere == 1 else "need"
        return (
            "Nothing left to decide in this search."
            f" {count_noun(empty.elsewhere, 'case')} outside of this search and its filters still"
            f" {need} a decision."
        )
    parts = []
    if empty.decided:
        parts.append(f"{count_noun(empty.decided, 'case')} you've decided wait for other reviewers")
    if empty.held:
        held = [
            f"{lease.case_id} by {lease.reviewer} until {lease.until[11:16]} UTC"
            for lease in empty.held
        ]
        more = f" and {len(held) - MOST_NAMED} more" if len(held) > MOST_NAMED else ""
        parts.append(f"held: {', '.join(held[:MOST_NAMED])}{more}")
    if empty.assigned:
        parts.append(
            "assigned: "
            + ", ".join(f"{count} to {name}" for name, count in sorted(empty.assigned.items()))
        )
    if empty.skipped:
        parts.append(f"{count_noun(empty.skipped, 'case')} you skipped")
    waiting = count_noun(empty.waiting, "case")
    return (
        f"You can't take a case now. {waiting} in this queue"
        f" {'is' if empty.waiting == 1 else 'are'} undecided: "
        + "; ".join(parts or ["none of them can be taken now"])
        + "."
    )

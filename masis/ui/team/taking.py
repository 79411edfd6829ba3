"""Keeping a case that was taken for decision, giving it back when it is left, and saying why a
queue has none.
"""

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
_AGAIN = 30.0
"""Seconds after which an open case is claimed again: a lease runs for minutes, and a page is drawn
at every key.
"""

MOST_NAMED = 4


def ask_name(workbench: Workbench) -> None:
    """Ask who reviews; nothing where the name is known. The page of a case asks in its decision
    form.
    """
    if reviewer() is not None:
        return
    with (
        st.container(key="name-asked"),
        st.form("name-first", border=False, enter_to_submit=True),
        st.container(horizontal=True, vertical_alignment="bottom"),
    ):
        st.text_input(
            "Who reviews?",
            suggested_name(),
            key="name-first-field",
            max_chars=200,
            width=280,
            placeholder="Recorded with decisions",
        )
        if st.form_submit_button("Start reviewing", icon=":material/person:"):
            if name_reviewer(workbench, st.session_state["name-first-field"]) is None:
                st.caption("Type the name that decisions are recorded under.")
            else:
                st.rerun()


def extend(workbench: Workbench, case_id: str) -> None:
    """Take the case, or keep it for longer; at most twice a minute. Raises CaseHeld."""
    now = time.monotonic()
    recent = now - st.session_state.get(_CLAIMED_AT, 0.0) < _AGAIN
    if st.session_state.get(TAKEN_CASE_KEY) == case_id and recent:
        return
    workbench.team.claim(actor(), case_id)
    st.session_state[TAKEN_CASE_KEY], st.session_state[_CLAIMED_AT] = case_id, now


def keep_typing(workbench: Workbench, case_id: str) -> None:
    """Extend the lease of somebody who types; where they have none, nothing happens."""
    if reviewer() is not None and st.session_state.get(TAKEN_CASE_KEY) == case_id:
        extend(workbench, case_id)


def leave(workbench: Workbench) -> None:
    """Give back the case that this session has taken."""
    taken = st.session_state.pop(TAKEN_CASE_KEY, None)
    if isinstance(taken, str) and reviewer() is not None:
        try:
            workbench.team.release(actor(), taken)
        except UnknownRecord:  # another database is served by now: its leases run out by themselves
            return


def give_back_button(workbench: Workbench, case_id: str) -> None:
    """Draw the button that gives a taken case back, so that others can take it at once; nothing for
    other cases.
    """
    if st.session_state.get(TAKEN_CASE_KEY) != case_id:
        return
    if st.button("Give this case back", icon=":material/undo:", key="give-back", width="stretch"):
        leave(workbench)
        address.leave_case()


def why_nothing(empty: EmptyQueue) -> str:
    """Return the sentences that say why a reviewer finds no case in a queue."""
    if not empty.waiting:
        where = (
            f"{count_noun(empty.elsewhere, 'case')} outside of it and its filters still "
            f"{'waits' if empty.elsewhere == 1 else 'wait'}."
            if empty.elsewhere
            else "Import more cases, or look at the decided ones."
        )
        return (
            f"No case in this {'search' if empty.elsewhere else 'queue'} waits for a decision any"
            f" more. {where}"
        )
    parts = []
    if empty.decided:
        parts.append(
            f"{count_noun(empty.decided, 'case')} you have decided wait for other reviewers"
        )
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
    found = count_noun(empty.waiting, "case")
    return (
        f"No case is free for you. {found} in this queue"
        f" {'waits' if empty.waiting == 1 else 'wait'}; "
        + "; ".join(parts or ["none of them can be taken now"])
        + "."
    )

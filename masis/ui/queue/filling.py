"""The forms of the queue page that make a named queue of the listed cases, or change its filter."""

from __future__ import annotations

import streamlit as st

from masis.errors import MasisError
from masis.schema.wording import count_noun
from masis.services import Workbench
from masis.services.queue_rules import member_filter
from masis.services.records import CaseFilter, ReviewQueue
from masis.ui.shell import address
from masis.ui.shell.permissions import button_state, run_action
from masis.ui.shell.reviewer import actor
from masis.views.markdown import escape_markdown
from masis.views.queues import FIELD_WORDS, WHOLE_WORDS, fill_text

NEW_QUEUE = "_new"
"""The value of ``fill`` in the address that asks for a new queue. No queue has such an id."""
CHANGED_QUEUE = "queue-changed"
"""The key of the session state for the id of a queue that was changed, and its version before."""


def draw_filling(workbench: Workbench, case_filter: CaseFilter) -> None:
    """Draw the form that the address asks for with ``fill``: that of a new queue, or of a queue's
    filter.
    """
    wanted = address.value("fill")
    if not wanted:
        return
    queues = workbench.queues.all(actor(), archived=True)
    queue = next((queue for queue in queues if queue.id == wanted), None)
    if queue is None and wanted != NEW_QUEUE:
        st.info("That queue doesn't exist in this database, so its filter can't be changed.")
        return
    with st.container(border=True, key="queue-filling"):
        if queue is None:
            st.markdown("**New queue.** Search and filter the list, then name the queue.")
            draw_new_queue(workbench, case_filter, key="new-queue-filling")
            _draw_cancel("")
        else:
            _draw_filter_change(workbench, queue, case_filter)


def draw_new_queue(workbench: Workbench, case_filter: CaseFilter, *, key: str) -> None:
    """Draw the form that makes the listed cases a named queue, with what it would hold."""
    if not _draw_held_cases(workbench, case_filter):
        return
    with st.form(key, clear_on_submit=True, border=False):
        name = st.text_input("Make a queue of these cases", max_chars=60, placeholder="Queue name")
        sent = st.form_submit_button("Create queue", **button_state("oversee"))
    if sent:
        made: list[ReviewQueue] = []
        if run_action(lambda: made.append(workbench.queues.create(actor(), name, case_filter))):
            st.switch_page("pages/queue.py", query_params={"queue": made[0].id})


def _draw_filter_change(workbench: Workbench, queue: ReviewQueue, case_filter: CaseFilter) -> None:
    """Draw the present filter of a queue, and the button that replaces it by that of the list."""
    st.markdown(
        f"**Filter of the queue “{escape_markdown(queue.name)}”.** Search, filter and order the"
        " list, then use its filter."
    )
    st.caption(escape_markdown(f"It is filled by {fill_text(queue.cases)} now."))
    if lost := address.filters_without_parameter(queue.cases):
        names = ", ".join(FIELD_WORDS.get(name, name) for name in lost)
        st.caption(f"The list has no filter by {names}, so the queue would lose it.")
    possible = _draw_held_cases(workbench, case_filter, queue.id)
    with st.container(horizontal=True):
        # With the version in its key, a click on the filter of an earlier version has no effect.
        sent = st.button(
            "Use this filter",
            key=f"fill-{queue.id}-{queue.version}",
            type="primary",
            **button_state("oversee", disabled=not possible),
        )
        _draw_cancel(queue.id)
    changed = queue.model_copy(update={"cases": member_filter(case_filter)})
    if sent and run_action(lambda: workbench.queues.change(actor(), changed)):
        st.session_state[CHANGED_QUEUE] = (queue.id, queue.version)
        _return_to_team(queue.id)


def _draw_cancel(queue_id: str) -> None:
    if st.button("Cancel", key="cancel-filling", type="tertiary"):
        _return_to_team(queue_id)


def _draw_held_cases(workbench: Workbench, case_filter: CaseFilter, queue_id: str = "") -> bool:
    """Draw what a queue with this filter would hold, and return whether it can have the filter."""
    if case_filter.queue:
        st.caption("A queue's filter can't refer to another queue. Choose “All cases” above.")
        return False
    try:
        preview = workbench.queues.preview(actor(), case_filter, queue_id)
    except MasisError as error:
        st.caption(escape_markdown(str(error)))
        return False
    common = [f"{count:,} of them are also in “{name}”" for name, count in preview.common.items()]
    verb = "matches" if preview.cases == 1 else "match"
    holds = f"{count_noun(preview.cases, 'case')} {verb} this filter"
    st.caption(escape_markdown(f"{', '.join([holds, *common])}."))
    if preview.whole_words:
        st.caption(WHOLE_WORDS)
    if ignored := [FIELD_WORDS.get(field, field) for field in preview.left_out]:
        listed = workbench.cases.find_for(actor(), case_filter.model_copy(update={"size": 1})).total
        if listed == preview.cases:
            st.caption(f"Left out, because decisions change it: {', '.join(ignored)}.")
        else:
            st.warning(
                f"The list shows {count_noun(listed, 'case')}, but the queue will have"
                f" {preview.cases:,}: a queue can't filter by {', '.join(ignored)}, because"
                " decisions change it."
            )
    return True


def _return_to_team(queue_id: str) -> None:
    query = {"view": "queues", **({"queue": queue_id} if queue_id else {})}
    st.switch_page("pages/team.py", query_params=query)

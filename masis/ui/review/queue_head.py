"""The named queue from which a case was opened: its name, progress and instructions."""

from __future__ import annotations

import streamlit as st

from masis.services import Workbench
from masis.ui.shell import address
from masis.ui.shell.reviewer import actor
from masis.views.markdown import escape_markdown
from masis.views.queues import left_text


def show_queue_head(workbench: Workbench) -> None:
    """Draw the name and the progress of the queue in the address, with its instructions folded."""
    queue = address.queue()
    if queue is None:
        if address.value("queue"):
            st.caption("This queue doesn't exist. Your decisions count in “All cases”.")
        return
    left = left_text(workbench.queues.figures(actor(), queue.id))
    name = f"Queue: {escape_markdown(queue.name)}"
    if not queue.instructions:
        st.caption(f"{name}. {left}.")
        return
    with st.expander(f"{name}. {left}. Instructions", icon=":material/menu_book:"):
        # Text from people, shown as it was typed.
        st.text(queue.instructions)

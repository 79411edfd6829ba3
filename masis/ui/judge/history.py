"""All judge versions, with their authors, dates and states."""

from __future__ import annotations

import streamlit as st

from masis.schema.judge import JUDGE_STATES, JudgeVersion
from masis.schema.wording import count_noun
from masis.services import Workbench
from masis.ui.components.linked_table import TableCell, column, linked_table, row
from masis.ui.judge.reports import MESSAGE_KEY, show_message
from masis.ui.shell import address
from masis.ui.shell.permissions import button_state, run_action
from masis.ui.shell.reviewer import actor
from masis.views.markdown import escape_markdown


def show_history(workbench: Workbench) -> None:
    """Draw the versions, newest first. A click opens one."""
    show_message()
    versions = workbench.judge.versions(actor())
    if not versions:
        st.markdown("**No version yet.** Write rules first, in step 3.")
        return
    opened = linked_table(
        [
            column("Version", "main"),
            column("State", "text"),
            column("Rules", "figure"),
            column("Written"),
            column("Decided"),
        ],
        [
            row(
                {"text": version.name, "below": [version.note] if version.note else []},
                {
                    "text": version.state.capitalize(),
                    "below": [JUDGE_STATES[version.state].meaning],
                },
                len(version.content.rules),
                {"text": version.created_at[:10], "below": [version.author]},
                _decided_cell(version),
                open=version.id,
            )
            for version in versions
        ],
        description="Judge versions",
        key="judge-versions",
    )
    if opened:
        address.set_param("version", opened)
        address.set_param("step", "tell")
        st.rerun()
    adopted = next((version for version in versions if version.state == "adopted"), None)
    if adopted is not None:
        retire = st.button(
            "Return to the default judge",
            key="judge-retire",
            icon=":material/undo:",
            **button_state("oversee", help="The adopted version is retired but stays on record."),
        )
        if retire and run_action(lambda: workbench.judge.retire(actor(), adopted.id)):
            st.session_state[MESSAGE_KEY] = f"{escape_markdown(adopted.name)} retired."
            st.rerun()
    st.caption(f"{count_noun(len(versions), 'version')}. Versions are never deleted.")


def _decided_cell(version: JudgeVersion) -> TableCell | None:
    if version.decided_at is None:
        return None
    return {"text": version.decided_at[:10], "below": [version.decided_by or ""]}

"""The redaction forms: they list what is removed and what stays, and ask for confirmation."""

from __future__ import annotations

from collections.abc import Callable

import streamlit as st

from masis.errors import MasisError
from masis.schema.review import LogEntry
from masis.schema.wording import count_noun
from masis.services import Workbench
from masis.ui.review.decision_form import LONGEST_NAME
from masis.ui.shell.permissions import button_state
from masis.ui.shell.reviewer import actor, name_reviewer, reviewer
from masis.views.log_entries import entry_number

CONFIRMED_BY = "redact"
LONGEST_REASON = 500
_DONE = "redaction-done"

_STAYS = (
    "**Not removed:** ids, digests, verdicts, metrics and the hash chain of the log, so that the"
    " log can still be verified. The log records who redacted, when and why. Earlier backups and"
    " copies aren't changed."
)


def redact_case_form(workbench: Workbench, case_id: str) -> None:
    """Draw the form that redacts a case."""

    def redact(reason: str) -> str:
        redacted = workbench.reviews.redact_case(actor(), case_id, reason)
        return (
            f"The case is redacted, with {count_noun(redacted.entries, 'decision')},"
            f" {count_noun(redacted.runs, 'audit')} and"
            f" {count_noun(redacted.drafts, 'draft field')}."
        )

    _draw_redaction_form(
        workbench,
        key="redact-case",
        removes=(
            "**Removed permanently:** the question, the answer, the evidence, all audits of this"
            " case with their revisions, drafts of decisions, everything that reviewers wrote about"
            " it, and the same for its other versions."
        ),
        button="Redact this case",
        redact=redact,
    )


def redact_entry_form(workbench: Workbench, entry: LogEntry) -> None:
    """Draw the form that redacts an entry, unless it is redacted or a redaction itself."""
    if entry.decision is None or entry.decision.kind == "redaction":
        return

    def redact(reason: str) -> str:
        workbench.reviews.redact_entry(actor(), entry.id, reason)
        return f"Entry {entry_number(entry)} is redacted."

    with st.expander(f"Redact entry {entry_number(entry)}", icon=":material/ink_eraser:"):
        _draw_redaction_form(
            workbench,
            key=f"redact-entry-{entry_number(entry)}",
            removes=(
                "**Removed permanently:** the reviewer's name, the reason, the note, the corrected"
                " answer and the labels of this entry."
            ),
            button=f"Redact entry {entry_number(entry)}",
            redact=redact,
        )


def show_redacted() -> None:
    """Confirm the redaction that was just made."""
    if message := st.session_state.pop(_DONE, None):
        st.success(message, icon=":material/check_circle:")


def _draw_redaction_form(
    workbench: Workbench, *, key: str, removes: str, button: str, redact: Callable[[str], str]
) -> None:
    st.markdown(removes)
    st.markdown(_STAYS)
    with st.form(key, border=False):
        name = st.text_input(
            "Your name, for the record", value=reviewer() or "", max_chars=LONGEST_NAME
        )
        reason = st.text_input(
            "Reason",
            max_chars=LONGEST_REASON,
            help="The reason is stored in the log. Don't repeat the removed content in it.",
        )
        typed = st.text_input(f"Type “{CONFIRMED_BY}” to confirm", max_chars=40)
        pressed = st.form_submit_button(
            button, type="primary", icon=":material/ink_eraser:", **button_state("redact")
        )
    if not pressed:
        return
    if typed.strip().casefold() != CONFIRMED_BY:
        st.warning(f"Nothing was redacted. Type “{CONFIRMED_BY}” first.", icon=":material/warning:")
    elif name_reviewer(workbench, name) is None:
        st.warning("Nothing was redacted. Type your name first.", icon=":material/warning:")
    elif not reason.strip():
        st.warning("Nothing was redacted. Give a reason first.", icon=":material/warning:")
    else:
        try:
            st.session_state[_DONE] = redact(reason.strip())
        except MasisError as error:
            st.error("Nothing was redacted.", icon=":material/error:")
            st.text(str(error))
            return
        st.rerun()

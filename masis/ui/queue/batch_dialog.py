"""The dialogs of actions on many cases: a preview, the progress, and the result with its undo.

A dialog is a fragment: its widgets run only the dialog again. While a batch is handled, each of its
runs handles some cases and then asks for the next run, so that a click on Cancel comes between two
of them.
"""

from __future__ import annotations

import contextlib
import secrets
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import streamlit as st

from masis.errors import InputError, MasisError
from masis.schema.batches import Batch
from masis.schema.codebook import MOST_CODES
from masis.schema.wording import count_noun
from masis.services import Workbench
from masis.services.batch_actions import ACTIONS, BatchAction, BatchRequest, Need
from masis.services.batches import BatchPreview
from masis.services.decision_rules import OTHER, REASONS
from masis.services.records import CaseFilter
from masis.ui.components.linked_table import TableChoice
from masis.ui.review.decision_form import LONGEST_NAME
from masis.ui.shell.permissions import button_state
from masis.ui.shell.reviewer import actor, name_reviewer, reviewer
from masis.views.batch_words import LEFT_OUT, batch_result, left_out_lines
from masis.views.markdown import escape_markdown

_OPEN = "open-batch"
"""Session state key of the batch that a dialog handles, and of the token of its request."""

_APPLIED = "batches-applied"
"""Session state key of the number of closed dialogs, after which no row stays selected."""


LONGEST_OWN_WORDS = 2_000


_FIELD_KEYS = ("batch-reason", "batch-own", "batch-names", "batch-modes", "batch-acknowledge")


def count_closed_dialogs() -> int:
    """Return a number that changes when a dialog was closed, for the scope of a list."""
    return int(st.session_state.get(_APPLIED, 0))


def open_batch_dialog(workbench: Workbench, choice: TableChoice, case_filter: CaseFilter) -> None:
    """Open the dialog of an action on the selected cases, or on all that match the filter."""
    action = ACTIONS.get(choice.action)
    if action is None or not (choice.rows or choice.everything):
        return  # A browser posts the choice, so it may be anything.
    cases: dict[str, Any] = (
        {"matching": case_filter.model_copy(update={"page": 1})}
        if choice.everything
        else {"cases": choice.rows}
    )
    cases["queue"] = case_filter.queue
    st.session_state[_OPEN] = {"token": secrets.token_hex(16)}
    for key in _FIELD_KEYS:  # what was entered for other cases, above all an acknowledgement
        st.session_state.pop(key, None)
    title, on_dismiss = f"{action.title} selected cases", partial(_end_dialog, workbench)
    dialog = st.dialog(title, width="medium", on_dismiss=on_dismiss)
    dialog(_draw_action)(workbench, action, cases)


def open_undo_dialog(workbench: Workbench, batch: Batch) -> None:
    """Open the dialog that undoes a batch, or that continues one which was interrupted."""
    st.session_state[_OPEN] = {"batch": batch.id, "asks": not batch.is_running}
    title = "Continue a batch" if batch.is_running else "Undo a batch"
    dialog = st.dialog(title, width="medium", on_dismiss=partial(_end_dialog, workbench))
    dialog(_draw_started)(workbench)


def _end_dialog(workbench: Workbench) -> None:
    """Forget the batch of the dialog. If some of its cases wait, they stay as they are."""
    state = st.session_state.pop(_OPEN, {})
    st.session_state[_APPLIED] = count_closed_dialogs() + 1
    if "batch" in state:
        with contextlib.suppress(MasisError):  # the entries that were made stay in any case
            workbench.batches.cancel(actor(), state["batch"])


def _draw_action(workbench: Workbench, action: BatchAction, cases: Mapping[str, Any]) -> None:
    """Draw the form and the preview of an action, or its progress once it has started."""
    state = st.session_state.setdefault(_OPEN, {"token": secrets.token_hex(16)})
    if "batch" in state:
        _draw_started(workbench)
        return
    with st.container():
        _draw_request(workbench, action, cases)


def _draw_request(workbench: Workbench, action: BatchAction, cases: Mapping[str, Any]) -> None:
    state = st.session_state[_OPEN]
    _ask_name(workbench)
    values: dict[str, Any] = {}
    for need in action.needs:
        values |= _FIELDS[need](workbench, action)
    # The boxes below the preview are read before they are drawn, since the preview depends on them.
    values["acknowledge"] = bool(st.session_state.get("batch-acknowledge"))
    request = BatchRequest(action=action.name, **cases, **values)
    preview: BatchPreview | None = None
    try:
        preview = workbench.batches.preview(actor(), request)
    except InputError as error:
        # The request lacks something that a field above asks for.
        st.caption(escape_markdown(error.hint))
    except MasisError as error:
        st.warning(escape_markdown(str(error)))
    if preview is not None:
        _draw_batch_preview(preview, action)
    if state.get("refused"):
        st.warning(escape_markdown(state["refused"]))
    included = preview.included if preview is not None else 0
    st.button(
        f"{action.title} {count_noun(included, 'case')}" if included else action.title,
        key="batch-apply",
        type="primary",
        shortcut="Ctrl+Enter",
        on_click=_start_batch,
        args=(workbench, request, preview.digest if preview is not None else ""),
        **button_state("decide", disabled=not included),
    )


def _ask_name(workbench: Workbench) -> None:
    """Ask for the name that the entries are recorded under, unless it's known."""
    if reviewer() is not None:
        return

    def name() -> None:
        name_reviewer(workbench, st.session_state["batch-by"])

    st.text_input("Your name", key="batch-by", max_chars=LONGEST_NAME, on_change=name)


def _ask_reason(_workbench: Workbench, action: BatchAction) -> dict[str, Any]:
    """Draw the reasons of the action's verdict."""
    reasons = {
        reason.code: reason.text for reason in REASONS.values() if action.name in reason.verdicts
    }
    code = st.selectbox(
        "Reason",
        list(reasons),
        index=None,
        format_func=reasons.__getitem__,
        placeholder="Choose a reason",
        key="batch-reason",
    )
    if code != OTHER:
        return {"reason": code or ""}
    own = st.text_input("In your own words", key="batch-own", max_chars=LONGEST_OWN_WORDS).strip()
    return {"reason": f"{OTHER}: {own}" if own else ""}


def _ask_names(workbench: Workbench, action: BatchAction) -> dict[str, Any]:
    """Draw the tags or the reviewers to choose from."""
    assigns = action.name == "assign"
    mine = [actor().name] if assigns and actor().name else []
    known = workbench.team.reviewers() if assigns else workbench.store.team.count_cases("tagged")
    names = st.multiselect(
        "Reviewers" if assigns else "Tags",
        list(dict.fromkeys([*mine, *known])),
        accept_new_options=True,
        placeholder="Choose or type",
        key="batch-names",
    )
    return {"names": tuple(names)}


def _ask_modes(workbench: Workbench, _action: BatchAction) -> dict[str, Any]:
    """Draw the failure modes to choose from."""
    names = {mode.code: mode.name for mode in workbench.modes.codebook(actor()).in_use}
    if not names:
        st.caption("The codebook is empty. Add modes on the Failure modes page.")
    chosen = st.multiselect(
        "Failure modes",
        list(names),
        format_func=lambda code: names.get(code, code),
        max_selections=MOST_CODES,
        placeholder="Choose",
        key="batch-modes",
    )
    return {"names": tuple(chosen)}


_FIELDS: dict[Need, Callable[[Workbench, BatchAction], dict[str, Any]]] = {
    "reason": _ask_reason,
    "names": _ask_names,
    "modes": _ask_modes,
}
"""The fields for what an action needs. A label is chosen on the page of a case."""


def _draw_batch_preview(preview: BatchPreview, action: BatchAction) -> None:
    """Draw how many cases are included, why others aren't, and the issues to acknowledge."""
    total = count_noun(preview.total, "selected case")
    st.markdown(f"**{preview.included:,} of {total}** can be included.")
    if preview.left_out:
        lines = [
            f"- {cases.count:,}: {LEFT_OUT[why]} ({_list_ids(cases.examples, cases.count)})"
            for why, cases in preview.left_out.items()
        ]
        st.markdown("Left out:\n\n" + "\n".join(lines))
    if not preview.serious:
        return
    with st.container(height=220, key="batch-serious"):
        for case in preview.serious:
            st.markdown(f"**{escape_markdown(case.case_id)}** {escape_markdown(case.query)}")
            st.markdown("\n".join(f"- {escape_markdown(issue)}" for issue in case.issues))
    st.checkbox(
        f"I've read the serious issues of {count_noun(len(preview.serious), 'case')} above."
        " Include these cases.",
        key="batch-acknowledge",
    )


def _list_ids(ids: Sequence[str], count: int) -> str:
    shown = ", ".join(escape_markdown(case_id) for case_id in ids)
    return f"{shown}, …" if count > len(ids) else shown


def _start_batch(workbench: Workbench, request: BatchRequest, digest: str) -> None:
    state = st.session_state[_OPEN]
    state.pop("refused", None)
    try:
        batch = workbench.batches.start(actor(), request, token=state["token"], expected=digest)
    except MasisError as error:
        state["refused"] = str(error)
    else:
        state["batch"] = batch.id


def _draw_started(workbench: Workbench) -> None:
    """Draw the progress of a batch or of its undo, and then its result."""
    state = st.session_state[_OPEN]
    batch_id: str = state["batch"]
    try:
        batch = workbench.batches.get(actor(), batch_id)
    except MasisError as error:
        st.warning(escape_markdown(str(error)))
        return
    if batch.is_running:
        _advance_and_draw(workbench, batch)
        return
    with st.container():
        if state.get("refused"):
            st.warning(escape_markdown(state["refused"]))
        if state.get("asks"):
            _ask_before_undo(workbench, batch)
        else:
            _draw_result(workbench, batch)


def _advance_and_draw(workbench: Workbench, batch: Batch) -> None:
    """Handle some cases, and run the dialog again."""
    done = batch.total - batch.left
    verb = "Undoing" if batch.state == "undoing" else ACTIONS[batch.action].title
    # Streamlit removes elements of an earlier run when a run ends, which only the last one of these
    # does. A form is another kind of block than the container of the fields, so it replaces that.
    with st.form("batch-progress", border=False):
        st.progress(done / max(1, batch.total), text=f"{verb}: {done:,} of {batch.total:,}")
        st.form_submit_button("Cancel", on_click=_cancel, args=(workbench, batch.id))
    try:
        workbench.batches.advance(actor(), batch.id)
    except MasisError as error:
        st.warning(escape_markdown(str(error)))
        st.button("Continue", key="batch-continue")
        return
    st.rerun(scope="fragment")


def _cancel(workbench: Workbench, batch_id: str) -> None:
    workbench.batches.cancel(actor(), batch_id)


def _ask_before_undo(workbench: Workbench, batch: Batch) -> None:
    done = ACTIONS[batch.action].done
    names = f": {', '.join(batch.names)}" if batch.names else ""
    st.markdown(
        escape_markdown(f"{done} {count_noun(batch.recorded, 'case')}{names}, by {batch.by}.")
    )
    st.markdown(
        f"This adds {count_noun(batch.recorded, 'entry', 'entries')} to the log. Nothing is removed"
        " from it."
    )
    _undo_button(workbench, batch)


def _undo_button(workbench: Workbench, batch: Batch) -> None:
    st.button(
        f"Undo {count_noun(batch.recorded, 'entry', 'entries')}",
        key="batch-undo",
        icon=":material/undo:",
        on_click=_undo,
        args=(workbench, batch.id),
        **button_state("decide", disabled=not batch.recorded),
    )


def _undo(workbench: Workbench, batch_id: str) -> None:
    state = st.session_state[_OPEN]
    for name in ("asks", "refused"):
        state.pop(name, None)
    try:
        workbench.batches.start_undo(actor(), batch_id)
    except MasisError as error:
        state["refused"] = str(error)


def _draw_result(workbench: Workbench, batch: Batch) -> None:
    """Say what became of the cases, with a way to undo it."""
    st.markdown(f"**{batch_result(batch, ACTIONS[batch.action].done)}**")
    lines = [*left_out_lines(batch.kept), *left_out_lines(batch.not_undone)]
    if lines:
        st.markdown("\n".join(f"- {escape_markdown(line)}" for line in lines))
    with st.container(horizontal=True, vertical_alignment="center"):
        if st.button("Close", key="batch-close", type="primary", shortcut="Ctrl+Enter"):
            _end_dialog(workbench)
            st.rerun()
        if batch.recorded:
            _undo_button(workbench, batch)
        st.page_link(
            "pages/decisions.py",
            label="Its entries in the log",
            icon=":material/history:",
            query_params={"batch": batch.id},
        )

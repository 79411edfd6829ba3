"""Planted faults on the trust page: planting and withdrawing copies, and recall by kind."""

from __future__ import annotations

import streamlit as st

from masis.errors import MasisError
from masis.schema.faults import FAULT_KINDS
from masis.schema.wording import count_noun
from masis.services import Workbench
from masis.services.planted import MOST_PLANTED, DecidedCopy, Planting, RecallReport
from masis.services.records import CaseFilter
from masis.services.trust.summary import figure_text
from masis.trust.faults import Recall
from masis.ui.components.linked_table import LinkedRow, TableCell, column, linked_table, row
from masis.ui.shell import address
from masis.ui.shell.permissions import button_state
from masis.ui.shell.reviewer import actor
from masis.views.faults import AUDIT_MADE, FAULT, FAULT_MEANS, fault_words
from masis.views.markdown import escape_markdown

_RESULT_MESSAGE_KEY = "planted-said"
"""Session state key of the result of the last action."""
_FAILURE_MESSAGE_KEY = "planted-failed"
"""Session state key of the reason why the last action failed."""
_MOST_LISTED = 100


def show_planted(workbench: Workbench) -> None:
    """Draw the view: an explanation, the lead's actions, recall by kind, and the decided copies."""
    st.markdown(
        "Copies of correct answers with **one known fault** each are added to the queue. Until they"
        " are decided, they look like any other case. The share of faults found is the recall of"
        " the audit and of each reviewer. Copies are never exported, and don't count in other"
        " figures."
    )
    lead = workbench.access.allows(actor(), "oversee")
    if lead:
        _draw_planting_form(workbench)
    _show_recall(workbench.planted.recall(actor()), lead=lead)


def _draw_planting_form(workbench: Workbench) -> None:
    copies = workbench.planted.count_copies(actor())
    st.caption(
        f"{count_noun(copies.open, 'undecided copy', 'undecided copies')}, {copies.started:,} that"
        f" need another reviewer or verdict, {copies.decided:,} decided, {copies.withdrawn:,}"
        " withdrawn."
    )
    with st.expander(
        "Plant faults",
        expanded=not (copies.open or copies.started or copies.decided),
        icon=":material/science:",
    ):
        if not copies.sound:
            st.markdown(
                "**There are no correct answers to copy.** Approve some cases first. A copy is made"
                " from an answer that a person approved unchanged, one per answer."
            )
        else:
            _draw_plant_fields(workbench, copies.sound)
    if copies.open:
        st.button(
            f"Withdraw {count_noun(copies.open, 'undecided copy', 'undecided copies')}",
            key="planted-withdraw",
            icon=":material/undo:",
            on_click=_withdraw,
            args=(workbench,),
            **button_state(
                "oversee",
                help="Withdraws every copy that hasn't been decided. The log records it.",
            ),
        )
    if message := st.session_state.pop(_RESULT_MESSAGE_KEY, ""):
        st.success(escape_markdown(message))
    if failed := st.session_state.pop(_FAILURE_MESSAGE_KEY, ""):
        st.error(escape_markdown(failed), icon=":material/error:")


def _draw_plant_fields(workbench: Workbench, sound: int) -> None:
    with st.form("planted-form"):
        kinds = st.pills(
            "Kinds of faults",
            FAULT_KINDS,
            format_func=FAULT.__getitem__,
            selection_mode="multi",
            default=list(FAULT_KINDS),
            key="planted-kinds",
            help=" ".join(f"{FAULT[kind]}: {FAULT_MEANS[kind]}" for kind in FAULT_KINDS),
        )
        count_at, two = st.columns(2)
        most = min(sound, MOST_PLANTED)
        count = count_at.number_input(
            f"Copies (of {count_noun(sound, 'correct answer')})",
            1,
            most,
            min(5, most),
            key="planted-count",
        )
        words = two.text_input(
            "Only answers whose cases contain these words (optional)", key="planted-words"
        )
        sent = st.form_submit_button("Plant faults", type="primary", **button_state("oversee"))
    if not sent:
        return
    bar = st.progress(0.0, "Making copies")

    def on_case(copied: int, _: int) -> None:
        bar.progress(copied / int(count), f"{copied:,} of {int(count):,} copies made")

    try:
        planting = workbench.planted.plant(
            actor(),
            int(count),
            tuple(kinds),
            case_filter=CaseFilter(text=words[: address.LONGEST_QUERY]) if words.strip() else None,
            on_case=on_case,
        )
    except MasisError as error:
        # Otherwise the bar would stay at its last value.
        bar.empty()
        st.error(escape_markdown(str(error)), icon=":material/error:")
        return
    st.session_state[_RESULT_MESSAGE_KEY] = _planting_text(planting)
    st.rerun()


def _planting_text(planting: Planting) -> str:
    kinds = ", ".join(
        f"{FAULT[kind].lower()} {planting.planted[kind]:,}"
        for kind in FAULT_KINDS
        if kind in planting.planted
    )
    refused = sum(planting.refused.values())
    why = "; ".join(f"{reason} ({count:,})" for reason, count in sorted(planting.refused.items()))
    left = f" {count_noun(refused, 'answer')} not used: {why}." if refused else ""
    if not planting.total:
        return f"Nothing was planted.{left}"
    return (
        f"{count_noun(planting.total, 'copy', 'copies')} planted ({kinds}), seed {planting.seed}."
        f"{left} Like other new cases, they have to be audited."
    )


def _withdraw(workbench: Workbench) -> None:
    try:
        done = workbench.planted.withdraw(actor())
        st.session_state[_RESULT_MESSAGE_KEY] = f"{count_noun(done, 'copy', 'copies')} withdrawn."
    except MasisError as error:
        st.session_state[_FAILURE_MESSAGE_KEY] = str(error)


def _show_recall(report: RecallReport, *, lead: bool) -> None:
    rows: list[LinkedRow] = []
    if report.audit is not None and report.audit.recall.total.n:
        audit = report.audit
        rest = f"accepted {audit.accepted:,}, left to people {audit.left_to_people:,}"
        rows.append(_recall_row("The audit", audit.recall, rest))
    for reviewer in report.reviewers:
        beside = []
        if reviewer.knew_source:
            beside.append(
                "had already decided the original of"
                f" {count_noun(reviewer.knew_source, 'copy', 'copies')}"
            )
        if reviewer.escalated:
            beside.append(f"escalated {reviewer.escalated:,}, left out")
        rows.append(
            _recall_row(reviewer.reviewer or "All reviewers", reviewer.recall, ", ".join(beside))
        )
    st.subheader("Recall", anchor=False)
    if not rows:
        st.caption(
            "No copies have been decided yet. Their results will be shown here."
            if lead
            else "You haven't decided a copy yet, or other reviewers still have to decide it."
        )
    else:
        titles = [
            column("Reviewer", "main"),
            column("Found"),
            *(column(FAULT[kind], hide="hide-narrow") for kind in FAULT_KINDS),
        ]
        linked_table(titles, rows, description="Planted faults found", key="planted-recall")
        st.caption(
            "The share of planted faults that were found, with the exact 95% interval. The audit"
            " found a fault if it flagged the planted words. A reviewer found it if they rejected"
            " the answer, corrected the sentence or reported an issue in the words."
        )
    if report.decided:
        _show_decided(report.decided, lead=lead)


def _recall_row(name: str, recall: Recall, beside: str) -> LinkedRow:
    cell: TableCell = {"text": name, "below": [beside] if beside else []}
    kinds = (recall.by_kind.get(kind) for kind in FAULT_KINDS)
    return row(
        cell,
        figure_text(recall.total, brief=True),
        *(
            figure_text(recall_of_kind, brief=True) if recall_of_kind else None
            for recall_of_kind in kinds
        ),
    )


def _show_decided(decided: tuple[DecidedCopy, ...], *, lead: bool) -> None:
    st.subheader("Decided copies", anchor=False)
    rows = []
    # the newest copies, newest first
    for decided_copy in decided[-_MOST_LISTED:][::-1]:
        case_id = decided_copy.copy.case_id
        cell: TableCell = {
            "text": case_id,
            "href": address.link("review", case=case_id),
            "open": case_id,
            "below": [fault_words(decided_copy.copy.fault)],
        }
        audit_result = AUDIT_MADE[decided_copy.audit] if decided_copy.audit else None
        rows.append(
            row(
                cell,
                audit_result,
                ", ".join(decided_copy.found_by) or None,
                ", ".join(decided_copy.missed_by) or None,
                open=case_id,
            )
        )
    titles = [
        column("Copy", "main"),
        column("The audit", hide="hide-narrow"),
        column("Found by"),
        column("Missed by"),
    ]
    opened = linked_table(titles, rows, description="Decided copies", key="planted-decided")
    if opened:
        address.open_case(opened)

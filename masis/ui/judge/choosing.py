"""The first step: which decided cases measure the judge."""

from __future__ import annotations

import streamlit as st

from masis.schema.judge_trials import DecidedFilter
from masis.schema.wording import count_noun
from masis.services import Workbench
from masis.services.judge.alignment import LEAST_CASES
from masis.ui.judge.reports import MESSAGE_KEY, decided_counts, show_message
from masis.ui.shell import address
from masis.ui.shell.permissions import button_state, run_action
from masis.ui.shell.reviewer import actor
from masis.views.markdown import escape_markdown


def show_choice(workbench: Workbench) -> None:
    """Draw the current choice of cases, and the form of a new one."""
    show_message()
    split = workbench.alignment.split(actor())
    if split is not None:
        held_out = len(split.held_out)
        st.markdown(
            f"**{count_noun(split.cases, 'case')}** with"
            f" {count_noun(split.questions, 'question')} chosen by {escape_markdown(split.by)} on"
            f" {split.at[:10]}: {split.questions - held_out:,} questions to write rules from,"
            f" {held_out:,} held out (seed {split.seed})."
        )
        st.button(
            "See where the judge differs",
            key="judge-to-see",
            icon=":material/arrow_forward:",
            type="primary",
            on_click=address.set_param,
            args=("step", "see"),
        )
    decided, blind = decided_counts(workbench)
    if not decided:
        _show_nothing_decided()
        return
    with st.expander("Choose cases", expanded=split is None):
        _draw_choice_form(workbench, decided, blind)


def _show_nothing_decided() -> None:
    st.markdown(
        "**No decided cases yet.** The judge is measured by audited cases that people approved,"
        " corrected or rejected."
    )
    st.page_link("pages/queue.py", label="Decide cases in the queue", icon=":material/checklist:")
    st.page_link(
        "pages/import.py",
        label="Import decisions made elsewhere",
        icon=":material/upload_file:",
    )


def _draw_choice_form(workbench: Workbench, decided: int, blind: int) -> None:
    st.caption(
        f"{count_noun(decided, 'decided case')}, {blind:,} of them decided before the audit's"
        " verdict was shown. All cases for the same question go into the same half."
    )
    if blind < LEAST_CASES:
        st.page_link(
            "pages/team.py",
            label="Team: hide audit results until reviewers have decided",
            icon=":material/group:",
            query_params={"view": "policy", "field": "machine"},
        )
    with st.form("judge-choose", border=False):
        blind_only = st.toggle(
            "Only blind decisions",
            value=blind >= LEAST_CASES,
            key="judge-blind",
            help="People who saw the audit's verdict tend to agree with it.",
        )
        with st.container(horizontal=True):
            dataset = st.text_input("Data set", key="judge-dataset", placeholder="All", width=200)
            field = st.text_input("Field", key="judge-field", placeholder="All", width=200)
            since = st.text_input("From", key="judge-since", placeholder="YYYY-MM-DD", width=140)
            until = st.text_input("Before", key="judge-until", placeholder="YYYY-MM-DD", width=140)
            seed = st.number_input(
                "Seed (optional)",
                min_value=0,
                max_value=address.LARGEST_SEED,
                value=None,
                key="judge-seed",
                width=160,
                help="The same seed gives the same halves.",
            )
        sent = st.form_submit_button(
            "Choose these cases", type="primary", **button_state("oversee")
        )
    if not sent:
        return

    def choose() -> None:
        filters = DecidedFilter(
            blind_only=blind_only,
            dataset=dataset.strip(),
            field=field.strip(),
            since=since.strip(),
            until=until.strip(),
        )
        made = workbench.alignment.choose(actor(), filters, None if seed is None else int(seed))
        st.session_state[MESSAGE_KEY] = f"{count_noun(made.cases, 'case')} chosen."

    if run_action(choose):
        st.rerun()

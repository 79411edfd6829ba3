"""The fifth step: before and after on the held-out half, each changed case, and the decision."""

from __future__ import annotations

from collections.abc import Sequence

import streamlit as st

from masis.errors import MasisError
from masis.schema.judge import JUDGE_STATES, JudgeVersion
from masis.schema.wording import count_noun
from masis.services import Workbench
from masis.services.judge.alignment import ChangedVerdict, JudgeComparison
from masis.services.judge.words import rules_text, verdict_line
from masis.ui.components.linked_table import column, linked_table, row
from masis.ui.judge.reports import MESSAGE_KEY, chosen_version, issue_lines, show_message
from masis.ui.judge.seeing import draw_figures
from masis.ui.shell import address
from masis.ui.shell.permissions import button_state, run_action
from masis.ui.shell.reviewer import actor
from masis.ui.trust.page import AUDIT_RESULTS
from masis.views.markdown import escape_markdown


def show_comparison(workbench: Workbench) -> None:
    """Draw the figures before and after, the changed cases, and the decision buttons."""
    show_message()
    version = chosen_version(workbench)
    if version is None:
        st.markdown("**No version yet.** Write rules first, in step 3.")
        return
    try:
        compared = workbench.alignment.compare(actor(), version)
    except MasisError as error:
        st.warning(escape_markdown(str(error)), icon=":material/error:")
        return
    if not compared.tried:
        st.markdown("**Not tried yet.** Try the version on the held-out half first.")
        st.button(
            "Try it",
            key="judge-to-try",
            icon=":material/play_arrow:",
            on_click=address.set_param,
            args=("step", "try"),
        )
        return
    _draw_trial_result(version, compared)
    _draw_decision(workbench, version, compared)


def _draw_trial_result(version: JudgeVersion, compared: JudgeComparison) -> None:
    if compared.tried < compared.cases:
        st.warning(
            f"Tried on {compared.tried:,} of {count_noun(compared.cases, 'case')}. All figures are"
            " about these.",
            icon=":material/error:",
        )
    draw_figures({"Before": compared.before, version.name: compared.after}, key="judge-compared")
    st.text(verdict_line(compared))
    if compared.other_prompts:
        st.warning(
            f"{count_noun(compared.other_prompts, 'stored audit')} used different prompts or"
            " models, so the version isn't the only difference. Audit these cases again for a clean"
            " comparison.",
            icon=":material/error:",
        )
    if len(compared.before_judges) > 1:
        named = ", ".join(
            f"{name or 'the default judge'} ({count:,})"
            for name, count in compared.before_judges.items()
        )
        st.text(f"The stored audits used several judges: {named}.")
    flips = compared.flips
    others = [change for change in compared.changes if not change.flips]
    st.subheader(f"Flipped cases ({len(flips):,})", anchor=False)
    st.caption("Flagged by only one of the two. Cases the new version gets wrong come first.")
    _draw_changes(flips, "judge-flips")
    if others:
        st.subheader(f"Other changed verdicts ({len(others):,})", anchor=False)
        st.caption("Flagged by both or by neither, but the verdict differs.")
        _draw_changes(others, "judge-others")


def _draw_changes(changes: Sequence[ChangedVerdict], key: str) -> None:
    if not changes:
        st.text("None.")
        return
    linked_table(
        [
            column("Case", "main"),
            column("Before", "text"),
            column("Now", "text"),
            column("People"),
        ],
        [
            row(
                {
                    "text": change.case_id,
                    "href": address.link("review", case=change.case_id),
                    "below": [change.question],
                },
                {"text": AUDIT_RESULTS[change.before], "below": issue_lines(change.lost)},
                {
                    "text": AUDIT_RESULTS[change.after],
                    "below": [
                        *issue_lines(change.gained),
                        f"Because of {rules_text(change.rules)}",
                    ],
                },
                {
                    "text": "Faulty" if change.faulty else "Right",
                    "below": ["agrees now" if change.right_now else "disagrees now"],
                },
                marked=not change.right_now,
            )
            for change in changes
        ],
        description="Cases whose verdict changed",
        key=key,
    )


def _draw_decision(workbench: Workbench, version: JudgeVersion, compared: JudgeComparison) -> None:
    if "adopted" not in JUDGE_STATES[version.state].then:
        st.text(f"{version.name} is {version.state}. {JUDGE_STATES[version.state].meaning}.")
        return
    st.caption(
        "If you adopt it, all new audits will use it. Models must retake the exam, and guarantees"
        " measured with the previous judge no longer apply."
    )
    with st.container(horizontal=True):
        adopt = st.button(
            f"Adopt {escape_markdown(version.name)}",
            key="judge-adopt",
            icon=":material/check:",
            type="primary",
            **button_state("oversee"),
        )
        drop = version.state == "draft" and st.button(
            "Drop it", key="judge-drop", icon=":material/delete:", **button_state("oversee")
        )
    if adopt and run_action(lambda: workbench.judge.adopt(actor(), version.id)):
        st.session_state[MESSAGE_KEY] = f"{escape_markdown(version.name)} adopted."
        st.rerun()
    if drop and run_action(lambda: workbench.judge.drop(actor(), version.id)):
        st.session_state[MESSAGE_KEY] = f"{escape_markdown(version.name)} dropped."
        st.rerun()

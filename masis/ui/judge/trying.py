"""The fourth step: audit the held-out cases with a version, after its cost is shown."""

from __future__ import annotations

import streamlit as st

from masis.errors import MasisError
from masis.schema.judge import JudgeVersion
from masis.schema.wording import count_noun
from masis.services import Workbench
from masis.services.judge.alignment import RunningTrial
from masis.services.judge.words import cost_line
from masis.ui.judge.reports import chosen_version
from masis.ui.live import draw_task, show_live
from masis.ui.shell import address
from masis.ui.shell.permissions import action
from masis.ui.shell.reviewer import actor
from masis.ui.shell.served_database import served_workbench
from masis.views.markdown import escape_markdown


def show_trial(workbench: Workbench) -> None:
    """Draw what a trial would audit and cost, its progress, and its problems."""
    version = chosen_version(workbench)
    if version is None:
        st.markdown("**No version yet.** Write rules first, in step 3.")
        return
    task = workbench.alignment.latest_trial(version)
    if task is not None and not task.over:
        show_live(_draw_running_trial, version.id)
        return
    try:
        plan = workbench.alignment.plan(actor(), version)
    except MasisError as error:
        st.warning(escape_markdown(str(error)), icon=":material/error:")
        return
    st.markdown(
        f"The held-out half has **{count_noun(plan.cases, 'decided case')}**."
        f" {escape_markdown(version.name)} was tried on {plan.tried:,} of them. A trial audits the"
        " others with this version and the other settings of their stored audits. It doesn't"
        " affect cases, queues or figures."
    )
    if task is not None:
        _show_problems(task)
    for reason, count in plan.left_out.items():
        st.text(f"{count_noun(count, 'case')} left out: {reason}")
    if plan.to_audit:
        st.text(cost_line(plan))
        action(
            f"Try it on {count_noun(plan.to_audit, 'case')}",
            "judge-try",
            "play_arrow",
            _start,
            version.id,
            requires="oversee",
            type="primary",
        )
    if plan.tried:
        st.button(
            "Compare before and after",
            key="judge-to-compare",
            icon=":material/arrow_forward:",
            on_click=address.set_param,
            args=("step", "compare"),
        )


def _start(version_id: str) -> None:
    service = served_workbench()
    try:
        service.alignment.start(actor(), service.judge.get(actor(), version_id))
    except MasisError as error:
        st.warning(escape_markdown(str(error)), icon=":material/error:")


def _draw_running_trial(version_id: str) -> bool:
    service = served_workbench()
    version: JudgeVersion = service.judge.get(actor(), version_id)
    return draw_task(
        lambda: service.alignment.latest_trial(version),
        "trial",
        "judge-stop",
        says="You can leave this page. The trial continues.",
        requires="oversee",
        stopped="Results so far are kept; a later trial audits the rest.",
    )


def _show_problems(task: RunningTrial) -> None:
    if task.failed:
        st.warning(escape_markdown(task.failed), icon=":material/error:")
    for problem, count in task.problems.items():
        st.warning(
            f"{count_noun(count, 'case')} not audited: {escape_markdown(problem)}",
            icon=":material/error:",
        )

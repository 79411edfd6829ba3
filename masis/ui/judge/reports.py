"""The reports of the judge page, each computed once per change of the log, and parts they share."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import streamlit as st

from masis.errors import UnknownRecord
from masis.schema.audit import Issue
from masis.schema.judge import JudgeVersion
from masis.schema.judge_trials import DecidedFilter, DecidedSplit, Half
from masis.services import Workbench
from masis.services.judge.alignment import AlignmentReport
from masis.services.judge.proposals import RuleProposal
from masis.ui.shell import address
from masis.ui.shell.reviewer import actor
from masis.ui.shell.served_database import served_database, served_workbench
from masis.views.words import SEVERITY

MESSAGE_KEY = "judge-said"
"""Session state key of the result of the last action."""


class _ReportKey(NamedTuple):
    """Changes with the log, the person, and what they may see."""

    path: str
    position: str
    person: str
    hidden: bool
    split: str


def _report_key(workbench: Workbench, split: DecidedSplit) -> _ReportKey:
    me = actor()
    return _ReportKey(
        str(served_database()),
        workbench.trust.position(),
        me.name,
        workbench.cases.hides_machine_from(me),
        split.id,
    )


def decided_counts(workbench: Workbench) -> tuple[int, int]:
    """Return the numbers of all decided cases, and of those that were decided blind."""
    me = actor()
    hidden = workbench.cases.hides_machine_from(me)
    return _decided_counts(str(served_database()), workbench.trust.position(), me.name, hidden)


@st.cache_data(show_spinner=False, max_entries=20)
def _decided_counts(path: str, position: str, person: str, hidden: bool) -> tuple[int, int]:
    service = served_workbench().alignment
    return (
        service.count_decided(actor(), DecidedFilter(blind_only=False)),
        service.count_decided(actor(), DecidedFilter()),
    )


def alignment_report(workbench: Workbench, split: DecidedSplit, half: Half) -> AlignmentReport:
    """Return the audits of one half compared with people."""
    return _alignment_report(*_report_key(workbench, split), half)


@st.cache_data(show_spinner=False, max_entries=20)
def _alignment_report(
    path: str, position: str, person: str, hidden: bool, split: str, half: Half
) -> AlignmentReport:
    service = served_workbench().alignment
    chosen = service.split(actor(), split)
    assert chosen is not None  # it was just read, and splits are never removed
    return service.measure(actor(), chosen, half)


def proposals(workbench: Workbench, split: DecidedSplit) -> tuple[RuleProposal, ...]:
    """Return the rules that decisions suggest."""
    return _proposals(*_report_key(workbench, split))


@st.cache_data(show_spinner="Grouping what people decided", max_entries=20)
def _proposals(
    path: str, position: str, person: str, hidden: bool, split: str
) -> tuple[RuleProposal, ...]:
    service = served_workbench().alignment
    chosen = service.split(actor(), split)
    assert chosen is not None  # it was just read, and splits are never removed
    return service.propose_rules(actor(), chosen)


def chosen_split(workbench: Workbench) -> DecidedSplit | None:
    """Return the newest choice of cases; if there is none, say how to make one."""
    split = workbench.alignment.split(actor())
    if split is None:
        st.markdown("**No cases chosen yet.** Choose the decided cases that measure the judge.")
        st.button(
            "Choose cases",
            key="judge-to-choose",
            icon=":material/checklist:",
            on_click=address.set_param,
            args=("step", "choose"),
        )
    return split


def chosen_version(workbench: Workbench, *, drafts_only: bool = False) -> JudgeVersion | None:
    """Draw the choice of a version and return it; None if there is none yet."""
    versions = workbench.judge.versions(actor())
    if drafts_only:
        versions = tuple(version for version in versions if version.state == "draft")
    if not versions:
        return None
    named = {version.id: version for version in versions}
    try:
        wanted = workbench.judge.get(actor(), address.value("version")[: address.LONGEST_WORD]).id
    except UnknownRecord:
        wanted = ""
    shown = wanted if wanted in named else versions[0].id
    chosen = st.selectbox(
        "Version",
        list(named),
        format_func=lambda version_id: (
            f"{named[version_id].name} ({named[version_id].state})"
            if version_id in named
            else version_id
        ),
        width=360,
        **address.bind_query_param("version", shows=shown, key="judge-version", drops=()),
    )
    return named[chosen]


def show_message() -> None:
    """Show the result of the last action once."""
    if message := st.session_state.pop(MESSAGE_KEY, ""):
        st.success(message)


def issue_lines(issues: Sequence[Issue], most: int = 3) -> list[str]:
    """Return issues in words, one line each."""
    lines = [
        f"{SEVERITY[issue.severity].text.capitalize()}: {issue.description}"
        for issue in issues[:most]
    ]
    if len(issues) > most:
        lines.append(f"{len(issues) - most:,} more")
    return lines

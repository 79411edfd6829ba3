"""Proposed groups of similar rows, which a person confirms as failure modes."""

from __future__ import annotations

from functools import partial
from typing import NamedTuple

import streamlit as st

from masis.schema.codebook import Codebook, FailureMode, code_from_name
from masis.schema.wording import count_noun, shorten
from masis.services import Workbench
from masis.services.modes.naming import TEXTS_SENT
from masis.services.modes.service import CodedBatch, GroupProposal, ProposedGroup
from masis.ui.components.linked_table import column, linked_table, row
from masis.ui.modes.coding import Tick, draw_row
from masis.ui.modes.outcome import choose_mode, run_action
from masis.ui.shell import address
from masis.ui.shell.permissions import button_state
from masis.ui.shell.reviewer import actor
from masis.views.markdown import escape_markdown
from masis.views.numbers import moment

SHOWN = 30
MEMBERS = 20
TITLE_LENGTH = 120


def show_groups(workbench: Workbench) -> None:
    """Draw the proposed groups, and the one in the address with its members."""
    book = workbench.modes.codebook(actor())
    with st.spinner("Finding groups. This takes a few seconds."):
        proposal = workbench.modes.groups(actor(), again=st.session_state.pop("regroup", False))
    chosen = next((g for g in proposal.groups if g.id == address.value("group")), None)
    if chosen is not None:
        _draw_group(workbench, book, chosen)
        return
    _draw_list(workbench, proposal)
    _draw_dismissed(workbench)


def _draw_dismissed(workbench: Workbench) -> None:
    dismissed = workbench.modes.list_dismissed(actor())
    if not dismissed:
        return
    with st.expander(f"Dismissed groups ({len(dismissed):,})"):
        for group in dismissed[:SHOWN]:
            with st.container(horizontal=True, vertical_alignment="center"):
                st.text(
                    f"{group.text[:TITLE_LENGTH]} ({count_noun(group.observations, 'row')}),"
                    f" dismissed by {group.by}, {moment(group.at)} UTC"
                )
                st.button(
                    "Restore",
                    key=f"modes-restore-{group.id}",
                    on_click=_restore_group,
                    args=(workbench, group.id),
                    **button_state("decide", help="Its rows are proposed again."),
                )
        if len(dismissed) > SHOWN:
            st.caption(f"and {len(dismissed) - SHOWN:,} more")


def _restore_group(workbench: Workbench, group: str) -> None:
    def act() -> str:
        workbench.modes.restore_group(actor(), group)
        return "Group restored. Its rows are proposed again."

    run_action(act)


def _draw_list(workbench: Workbench, proposal: GroupProposal) -> None:
    if not proposal.groups:
        st.markdown(
            "**No groups to propose.** Groups are made of faults without a code. Audit and decide"
            " more cases, or see the counts of what is coded."
        )
        return
    total = count_noun(proposal.observations + proposal.dismissed, "fault")
    dismissed = (
        f", of which {proposal.dismissed:,} dismissed. The other {proposal.observations:,} are"
        if proposal.dismissed
        else ""
    )
    verb = "is" if proposal.ungrouped == 1 else "are"
    st.markdown(
        f"{total} without a code{dismissed} in {count_noun(proposal.cases, 'case')};"
        f" {proposal.ungrouped:,} {verb} in no group. Choose a group to confirm it as a"
        " failure mode."
    )
    shown = proposal.groups[:SHOWN]
    texts = workbench.modes.typical_texts(actor(), shown)
    rows = [
        row(
            {"text": group.heading, "href": _link(group), "open": group.id},
            f"{group.observations:,}",
            f"{group.cases:,}",
            {"quote": shorten(texts[group.id], TITLE_LENGTH)},
            open=group.id,
        )
        for group in shown
    ]
    opened = linked_table(
        [
            column("Group", "main"),
            column("Rows", "figure"),
            column("Cases", "figure"),
            column("Typical text", "text"),
        ],
        rows,
        description="Proposed groups",
        key="modes-groups",
    )
    if opened in {group.id for group in proposal.groups}:
        address.set_param("group", opened)
        st.rerun()
    st.button(
        "Propose groups again",
        key="modes-regroup",
        icon=":material/refresh:",
        on_click=_propose_again,
    )


def _propose_again() -> None:
    def act() -> str:
        st.session_state["regroup"] = True
        return "Groups proposed again. The same texts give the same groups."

    run_action(act)


def _link(group: ProposedGroup) -> str:
    return address.link("modes", view="groups", group=group.id)


def _draw_group(workbench: Workbench, book: Codebook, group: ProposedGroup) -> None:
    st.button(
        "All groups",
        key="modes-all-groups",
        icon=":material/arrow_back:",
        type="tertiary",
        on_click=address.clear,
        args=(("group", "page"),),
    )
    st.header(escape_markdown(group.heading), anchor=False)
    members = workbench.modes.search(
        actor(),
        group.members.model_copy(update={"size": MEMBERS, "page": address.number("page")}),
    )
    st.caption(f"{count_noun(group.observations, 'row')} in {count_noun(group.cases, 'case')}")
    example = workbench.modes.typical_texts(actor(), [group])[group.id]
    ticks = _ticks(group)
    left = ticks.count(members.total)
    _draw_dismiss(workbench, group)
    confirm, join = st.columns(2, gap="medium")
    with confirm.container(border=True):
        _draw_confirm(workbench, book, group, example, left)
    with join.container(border=True):
        _draw_join(workbench, book, group, left)
    with st.container(horizontal=True, vertical_alignment="center"):
        st.caption(
            f"{left:,} of {count_noun(members.total, 'row')} ticked. Only they get the mode; the"
            " others are proposed again.",
            width="content",
        )
        for every, label in ((True, "Tick all"), (False, "Untick all")):
            st.button(
                label,
                key=f"modes-{label.lower().replace(' ', '-')}",
                on_click=_tick_all,
                args=(group, every),
            )
    for member in members.rows:
        draw_row(member, book, tick=Tick(ticks.has(member.id), partial(_tick_row, group)))
    address.show_pages(members.total, MEMBERS, key="modes-members")


class Ticks(NamedTuple):
    """Which rows of a group are ticked: all or none, with exceptions."""

    every: bool = True
    exceptions: frozenset[str] = frozenset()

    def has(self, row_id: str) -> bool:
        """Whether a row is ticked."""
        return self.every != (row_id in self.exceptions)

    def count(self, total: int) -> int:
        """Return how many of this many rows are ticked."""
        return total - len(self.exceptions) if self.every else len(self.exceptions)


def _ticks(group: ProposedGroup) -> Ticks:
    ticks: Ticks = st.session_state.get(f"modes-ticks-{group.id}", Ticks())
    return ticks


def _tick_all(group: ProposedGroup, every: bool) -> None:
    st.session_state[f"modes-ticks-{group.id}"] = Ticks(every)


def _tick_row(group: ProposedGroup, row_id: str, ticked: bool) -> None:
    ticks = _ticks(group)
    changed = {row_id} if ticks.has(row_id) != ticked else set()
    exceptions = ticks.exceptions ^ changed
    st.session_state[f"modes-ticks-{group.id}"] = ticks._replace(exceptions=exceptions)


def _apply_ticked(workbench: Workbench, group: ProposedGroup, mode: FailureMode) -> CodedBatch:
    ticks = _ticks(group)
    batch = workbench.modes.confirm_group(
        actor(),
        group,
        mode,
        only=None if ticks.every else ticks.exceptions,
        without=ticks.exceptions if ticks.every else (),
    )
    _tick_all(group, True)
    return batch


def _draw_dismiss(workbench: Workbench, group: ProposedGroup) -> None:
    def dismiss() -> None:
        def act() -> str:
            workbench.modes.dismiss_group(actor(), group)
            return "The group was dismissed. Dismissed groups are listed below the others."

        if run_action(act):
            address.clear(("group", "page"))

    st.button(
        "Dismiss group",
        key="modes-dismiss",
        icon=":material/block:",
        on_click=dismiss,
        **button_state(
            "decide",
            help="Use this if the group isn't a failure mode. Its rows won't be proposed again.",
        ),
    )


def _draw_confirm(
    workbench: Workbench, book: Codebook, group: ProposedGroup, example: str, ticked: int
) -> None:
    keys = {part: f"modes-group-{part}-{group.id}" for part in ("name", "definition", "example")}
    taken = {mode.name.casefold() for mode in book.in_use}
    is_free = group.title and group.title.casefold() not in taken
    name = group.title if is_free else group.name
    for part, text in zip(keys, (name, "", example), strict=True):
        st.session_state.setdefault(keys[part], text[:100] if part == "name" else text[:2000])

    def suggest() -> None:
        def act() -> str:
            named = workbench.modes.suggest_name(actor(), group)
            st.session_state[keys["name"]] = named.name
            st.session_state[keys["definition"]] = named.definition
            return f"{named.model} suggested a name. Check it before you confirm."

        run_action(act)

    def confirm() -> None:
        def act() -> CodedBatch:
            name, definition, example = (st.session_state[key] for key in keys.values())
            mode = FailureMode(
                code=code_from_name(name, [mode.code for mode in book.modes]),
                name=name,
                definition=definition,
                example=example,
            )
            return _apply_ticked(workbench, group, mode)

        if run_action(act):
            address.clear(("group", "page"))

    model = workbench.modes.naming_model(actor())
    st.markdown("**Confirm as a new mode**")
    st.text_input("Name", key=keys["name"], max_chars=100)
    st.text_area("Definition", key=keys["definition"], max_chars=2000, height=80)
    st.text_area("Example", key=keys["example"], max_chars=2000, height=80)
    with st.container(horizontal=True):
        st.button(
            "Confirm group",
            key="modes-confirm",
            type="primary",
            on_click=confirm,
            **button_state("decide", disabled=not ticked),
        )
        if model is not None:
            st.button(
                "Suggest a name",
                key="modes-suggest",
                on_click=suggest,
                **button_state(
                    "audit", help=f"Sends up to {TEXTS_SENT} texts to {escape_markdown(model)}."
                ),
            )
    if model is None:
        st.caption("To have names suggested, set a language model as critic on the Settings page.")


def _draw_join(workbench: Workbench, book: Codebook, group: ProposedGroup, ticked: int) -> None:
    st.markdown("**Join an existing mode**")
    if not book.in_use:
        st.markdown("The codebook is empty. Confirm a group, or start from a codebook.")
        return
    key = f"modes-join-{group.id}"
    chosen = choose_mode(book, "Mode", key, new=False)

    def join() -> None:
        mode = book.find(st.session_state[key] or "")
        if mode is not None and run_action(lambda: _apply_ticked(workbench, group, mode)):
            address.clear(("group", "page"))

    st.button(
        "Join mode",
        key="modes-join",
        on_click=join,
        **button_state("decide", disabled=chosen is None or not ticked),
    )

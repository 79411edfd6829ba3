"""The queue page: search, filters, orders, saved views, pages and export."""

from __future__ import annotations

import io
import tempfile
import zipfile
from collections.abc import Sequence
from functools import partial
from pathlib import Path

import streamlit as st

from masis.datasets.exports.export import DECIDED, ENCODINGS, Selection
from masis.datasets.exports.formats import export_formats
from masis.schema.actor import Actor
from masis.schema.review import Standing
from masis.schema.team import SavedView
from masis.schema.wording import count_noun, shorten
from masis.services import Workbench, demo_cases
from masis.services.batch_actions import ACTIONS
from masis.services.records import (
    FIRST_QUEUE_NAME,
    NOT_DECIDED,
    ORDERS,
    CaseFilter,
    CasePage,
    CaseSummary,
    Facets,
)
from masis.ui.components.linked_table import (
    LinkedRow,
    TableAction,
    TableCell,
    TableColumn,
    choosable_table,
    column,
    row,
)
from masis.ui.queue.batch_dialog import count_closed_dialogs, open_batch_dialog
from masis.ui.queue.filling import draw_filling, draw_new_queue
from masis.ui.shell import address
from masis.ui.shell.downloads import prepared_download
from masis.ui.shell.inputs import show_value
from masis.ui.shell.permissions import button_state, run_action
from masis.ui.shell.reviewer import actor, reviewer
from masis.ui.shell.served_database import command, command_markdown
from masis.views.markdown import colour_label, escape_markdown
from masis.views.queues import fill_text, left_text, policy_text
from masis.views.words import DECIDED as DECIDED_AS
from masis.views.words import (
    LESSER,
    MACHINE_HIDDEN,
    SEVERITY,
    STANDING,
    WAITS_FOR,
    WAITS_FOR_YOU,
    LabelData,
    label,
    lesser_words,
    model_words,
    status_label,
)

PRODUCT = (
    "MASIS checks the citations and claims of AI answers against their evidence. A person decides,"
    " because a fluent answer can cite sources that don't exist, and automatic checks miss errors"
    " and report false ones."
)
"""What the product does, and why these answers need a person."""
MOST_EXPORTED = 20_000
"""Maximum number of cases that a page exports, as it has the file in memory until it's downloaded.

The command line writes larger exports case by case.
"""
MOST_CHIPS = 12
_FILTERS_AND_PAGE = (*address.FILTERS, "page")


def show_cases(workbench: Workbench) -> None:
    """Draw the queue page."""
    facets = workbench.cases.facets_for(actor())
    if not sum(facets.standings.values()):
        show_nothing_yet(workbench)
        return
    blind = workbench.cases.hides_machine_from(actor())
    view_text = _open_named_view(workbench)
    case_filter = address.case_filter()
    page = workbench.cases.find_for(actor(), case_filter)
    # for blind reviewers, order and counts must not reveal the results of the audit
    shown = workbench.cases.blind_filter(actor(), case_filter)
    with st.container(horizontal=True, vertical_alignment="center", gap="small", key="queue-head"):
        st.title("Queue", width="content")
        _draw_queue_choice(workbench)
        _draw_search_and_order(blind=blind)
        _draw_filters(workbench, case_filter, blind=blind)
        _draw_views(workbench, case_filter)
        if not blind or only_decided(case_filter):
            _draw_case_export(workbench, case_filter, page)
    draw_filling(workbench, case_filter)
    _draw_queue_line(workbench)
    _draw_standings(workbench, facets, case_filter)
    adjudications = workbench.team.adjudications(actor())
    _draw_filter_summary(page, case_filter, shown, adjudications, blind=blind)
    if view_text:
        st.caption(escape_markdown(view_text))
    if not page.total:
        _draw_no_match(workbench, case_filter)
        return
    # read once: reading the address for each row took a quarter of the page's time
    parameters = address.list_parameters()
    marks = own_marks(workbench, page.rows)
    for_me = {summary.id for summary in adjudications.rows}
    # The column of states is left out if all rows have one status, or if they're sorted by status
    # and the column of issues tells it. Decided cases always have it, for verdict and reviewer.
    has_one_status = len(shown.standings) == 1
    brief = (has_one_status or shown.order == "risk") and "decided" not in (
        shown.standings or ("decided",)
    )
    # waiting cases are marked even then, since each may wait for something else
    stated = _MARKED[:1] if has_one_status else _MARKED
    rows = [
        case_row(
            summary,
            parameters,
            order=shown.order,
            state=(
                state_cell(workbench, summary, adjudicate=summary.id in for_me)
                if summary.standing in stated or not brief
                else None
            ),
            brief=brief,
            marks=marks[summary.id],
            adjudicate=summary.id in for_me,
        )
        for summary in page.rows
    ]
    columns = case_columns(shown.order, brief=brief)
    event = choosable_table(
        columns,
        rows,
        description="Cases",
        key="case-list",
        actions=_batch_actions(workbench),
        total=page.total,
        noun="case",
        scope=f"{count_closed_dialogs()} {parameters}",
    )
    if event.opened:
        if event.opened in for_me:
            st.switch_page("pages/team.py", query_params={"case": event.opened})
        address.open_case(event.opened)
    _draw_paging(case_filter, page.total)
    if event.choice is not None:
        open_batch_dialog(workbench, event.choice, case_filter)


def _batch_actions(workbench: Workbench) -> list[TableAction]:
    """Return the actions on selected rows; none for people who can't decide."""
    if not workbench.access.allows(actor(), "decide"):
        return []
    return [
        TableAction(action.name, action.title)
        for action in ACTIONS.values()
        if "label" not in action.needs
    ]


# --- queue, search, order and filters ---------------------------------------------------


def _draw_queue_choice(workbench: Workbench) -> None:
    """Draw the choice of a named queue, if the team has set one up."""
    queues = {queue.id: queue.name for queue in workbench.queues.all(actor())}
    chosen = address.queue()
    if chosen is not None:
        queues.setdefault(chosen.id, f"{chosen.name} (archived)")
    if queues:
        names = {"": FIRST_QUEUE_NAME, **queues}
        st.selectbox(
            "Queue",
            list(names),
            format_func=names.__getitem__,
            label_visibility="collapsed",
            width=210,
            **address.bind_query_param(
                "queue", "", shows=chosen.id if chosen else "", drops=("page", "order", "seed")
            ),
        )


def _draw_queue_line(workbench: Workbench) -> None:
    """Draw the progress of the chosen queue, or say why nothing can be decided in it."""
    queue, user = address.queue(), actor()
    if queue is None:
        if address.value("queue"):
            st.info("That queue doesn't exist in this database, so all cases are shown.")
        return
    figures = workbench.queues.figures(user, queue.id)
    facts = [left_text(figures).capitalize(), policy_text(queue).capitalize()]
    if queue.archived:
        facts = ["This queue is archived. Nothing is decided in it anymore"]
    elif not queue.admits(user.name):
        facts.append("You aren't a member of this queue. A lead can add you on the Team page")
    elif not figures.cases:
        facts = [f"No cases match this queue's filter: {fill_text(queue.cases)}"]
    st.caption(escape_markdown(f"{'. '.join(facts)}."))


def _draw_search_and_order(*, blind: bool) -> None:
    show_value("search", address.value("q")[: address.LONGEST_QUERY])
    st.text_input(
        "Search",
        placeholder="Words in id, question, answer, evidence or notes",
        max_chars=address.LONGEST_QUERY,
        label_visibility="collapsed",
        width=340,
        **address.bind_query_param("q", key="search"),
    )
    orders = [name for name, order in ORDERS.items() if not (blind and order.by_audit)]
    chosen = address.order()
    st.selectbox(
        "Order",
        orders,
        format_func=lambda name: ORDERS[name].label,
        label_visibility="collapsed",
        width=230,
        **address.bind_query_param(
            "order", address.default_order(), shows=chosen if chosen in orders else "random"
        ),
    )


def _draw_standings(workbench: Workbench, facets: Facets, case_filter: CaseFilter) -> None:
    """Draw the filter by status with the number of cases of each.

    Without a choice, all undecided cases are listed. The other filters narrow the numbers. A click
    replaces the choice; only an address can choose several statuses.
    """
    chosen = address.several("standing", STANDING)
    # "nothing found" alone can be split further, by less serious issues
    can_split = chosen == ["nothing_found"]
    shown = {address.STANDINGS.name, *([address.SEVERITIES.name] if can_split else [])}
    standings, minor = facets.standings, facets.minor
    if case_filter.queue or any(
        address.value(name) for name in address.FILTERS if name not in shown
    ):
        # A choice lists all cases of the queue with the status, not only those that wait.
        case_filter = case_filter.model_copy(update={"waits_in_queue": False})
        if can_split:
            case_filter = case_filter.model_copy(update={"severities": ()})
        standings, minor = workbench.cases.standings_for(actor(), case_filter)
    counts = {
        name: standings.get(name, 0) for name in STANDING if standings.get(name) or name in chosen
    }
    several = len(chosen) > 1
    lesser = {"nothing_found": minor} if minor else {}
    words = dict(STANDING)
    # if all waiting cases wait for the same thing, the filter names it as the rows do
    for state in ("escalated", "needs_adjudication"):
        if facets.states.get(state) == facets.standings.get("waits", 0):
            words["waits"] = WAITS_FOR[state]
    st.pills(
        "Status",
        list(counts),
        selection_mode="multi" if several else "single",
        format_func=lambda name: (
            f"{words[name].text} {counts[name] - lesser.get(name, 0):,}"
            + (f", {lesser_words()} {minor:,}" if name in lesser else "")
        ),
        label_visibility="collapsed",
        **address.bind_query_param(
            "standing",
            [],
            shows=chosen if several else next(iter(chosen), None),
            drops=("page", "severity"),
        ),
    )
    if can_split and minor:
        parts = {address.in_words(SEVERITY): f"{LESSER.text} {minor:,}"}
        parts["none"] = f"No issue, at most a remark {counts['nothing_found'] - minor:,}"
        severity = address.value("severity")
        st.pills(
            "With and without less serious issues",
            list(parts),
            format_func=parts.__getitem__,
            label_visibility="collapsed",
            **address.bind_query_param(
                "severity", shows=severity if severity in parts else None, key="minor"
            ),
        )


def _draw_filters(workbench: Workbench, case_filter: CaseFilter, *, blind: bool) -> None:
    """Draw the other filters in a popover, each as it's declared in ``address.DRAWER``.

    The label of the popover never changes, because Streamlit would close it with a new one. The
    number of cases for each value is counted only while the popover is open, as this reads all
    cases once for each filter.
    """
    filters = [
        filter_
        for filter_ in address.DRAWER
        if filter_.kind != "id" and not (blind and filter_.machine)
    ]
    popover = st.popover(
        "Filters", icon=":material/filter_list:", key="queue-filters", on_change="rerun"
    )
    if not popover.open:
        return
    with popover:
        for filter_ in filters:
            if filter_.kind == "range":
                low, high = address.bounds(filter_.name)
                shown = (low or 0.0, 1.0 if high is None else high)
                bound = address.bind_query_param(filter_.name, (0.0, 1.0), shows=shown, drawer=True)
                st.slider(filter_.title, 0.0, 1.0, step=0.05, format="%.2f", **bound)
                continue
            listed = case_filter.model_copy(
                update={"standings": address.standings(with_state=filter_.field == "states")}
            )
            counts = workbench.cases.values_for(actor(), listed, filter_.field)
            if filter_.options:
                counts = {name: counts[name] for name in filter_.options if name in counts}
            address.choose_several(
                filter_.title, filter_.name, counts, partial(_filter_text, filter_)
            )


def _filter_text(filter_: address.Filter, name: str) -> str:
    return model_words(name) if filter_.name == "model" else filter_.options.get(name, name)


def adjudications_link(waiting: CasePage) -> None:
    """Draw a link to the first of the cases that wait for the user's adjudication, if any."""
    if waiting.total:
        st.page_link(
            "pages/team.py",
            label=f"**{waiting.total:,}** {colour_label(WAITS_FOR_YOU)}",
            icon=":material/balance:",
            query_params={"case": waiting.rows[0].id},
            help=WAITS_FOR_YOU.meaning,
        )


def _draw_filter_summary(
    page: CasePage,
    case_filter: CaseFilter,
    shown: CaseFilter,
    adjudications: CasePage,
    *,
    blind: bool,
) -> None:
    """Draw the number of cases, their order, and a button to remove each filter."""
    chips: list[tuple[address.Filter, str | None, str]] = []
    for filter_ in address.DRAWER:  # the ranges are its last ones
        if filter_.kind == "range":
            low, high = address.bounds(filter_.name)
            if (low, high) != (None, None):
                bounds = f"{low or 0:.2f} to {1 if high is None else high:.2f}"
                chips.append((filter_, None, f"{filter_.title} {bounds}"))
        else:
            words = (
                address.several(filter_.name, filter_.options)
                if filter_.options
                else address.words(filter_.name)
            )
            if filter_ is address.SEVERITIES and case_filter.standings == ("nothing_found",):
                continue  # the pills next to the statuses show it
            chips += [
                (filter_, word, f"{filter_.title}: {_filter_text(filter_, word)}") for word in words
            ]
    first = (case_filter.page - 1) * case_filter.size + 1
    part = f"{first:,} to {first + len(page.rows) - 1:,} of " if page.total > len(page.rows) else ""
    noun = "undecided case" if case_filter.standings == NOT_DECIDED else "case"
    waiting = " waiting in this queue" if case_filter.waits_in_queue else ""
    order = f" {order_text(shown)}" if page.total > 1 else ""
    summary = (
        f"**{part}{count_noun(page.total, noun)}**{waiting}.{order}"
        " Press **?** for keyboard shortcuts."
    )
    if blind:
        summary = f"{summary} :material/visibility_off: {MACHINE_HIDDEN}"
    with st.container(horizontal=True, vertical_alignment="center", gap="small", key="list-head"):
        st.caption(summary, width="content")
        adjudications_link(adjudications)
        for index, (filter_, word, text) in enumerate(chips[:MOST_CHIPS]):
            st.button(
                escape_markdown(shorten(text, 60)),
                key=f"chip-{index}-{filter_.name}-{word}",
                icon=":material/close:",
                help="Remove this filter",
                on_click=_set_and_reset_page,
                args=(
                    filter_.name,
                    address.in_words(
                        kept for kept in address.words(filter_.name) if word and kept != word
                    ),
                ),
            )
        if any(address.value(name) for name in address.FILTERS):
            st.button(
                "Clear all",
                key="clear-all",
                type="tertiary",
                on_click=address.clear,
                args=(_FILTERS_AND_PAGE,),
            )


def order_text(shown: CaseFilter) -> str:
    """Explain the order of a list."""
    if shown.order != "risk" or len(shown.standings) != 1:
        return ORDERS[shown.order].explanation
    if shown.severities == ("none",):
        return "Cases with the most claims and the lowest confidence are first."
    if shown.standings == ("nothing_found",) and not shown.severities:
        return "Cases with a less serious issue are first, the most severe before the others."
    return "The most severe issue is first, then the most doubtful claims."


def _set_and_reset_page(name: str, value: str) -> None:
    address.set_param(name, value)
    address.set_param("page", "")


def _is_filtered() -> bool:
    """Return whether the list has a search or a filter."""
    return any(map(address.value, address.FILTERS))


def _decided_instead(case_filter: CaseFilter) -> CaseFilter | None:
    """Return the filter of the decided cases, if a list shows the undecided ones."""
    if case_filter.standings != NOT_DECIDED:
        return None
    return case_filter.model_copy(update={"standings": ("decided",)})


def _draw_no_match(workbench: Workbench, case_filter: CaseFilter) -> None:
    searched = (
        " The search covers questions, answers and evidence, but not the results of audits."
        if case_filter.text
        else ""
    )
    decided = _decided_instead(case_filter)
    count = workbench.cases.find_for(actor(), decided).total if decided is not None else 0
    is_filtered = _is_filtered()
    if is_filtered:
        st.markdown(
            f"**No cases match.** Remove a word from the search, or choose fewer filters.{searched}"
        )
    else:
        done = f" {count_noun(count, 'case is', 'cases are')} decided." if count else ""
        st.markdown(f"**Nothing waits for a decision.**{done}")
    with st.container(horizontal=True):
        if is_filtered:
            st.button("Clear search and filters", on_click=address.clear, args=(_FILTERS_AND_PAGE,))
        if count:
            st.button(
                f"Show {count_noun(count, 'decided case')}",
                key="show-decided",
                on_click=address.set_param,
                args=("standing", "decided"),
            )


def _draw_paging(case_filter: CaseFilter, total: int) -> None:
    with st.container(
        horizontal=True, horizontal_alignment="distribute", vertical_alignment="center"
    ):
        address.show_pages(total, case_filter.size, key="page-number")
        if case_filter.order == "random":
            seed = str(address.number("seed", 0) % address.LARGEST_SEED + 1)
            st.button(
                "Shuffle again",
                icon=":material/shuffle:",
                on_click=_set_and_reset_page,
                args=("seed", seed),
            )
        if total > min(address.PAGE_SIZES):
            st.segmented_control(
                "Cases per page",
                address.PAGE_SIZES,
                label_visibility="collapsed",
                format_func=lambda size: f"{size} per page",
                required=True,
                **address.bind_query_param(
                    "size", address.PAGE_SIZE, shows=case_filter.size, key="page-size"
                ),
            )


# --- saved views and the export ---------------------------------------------------------

_VIEW_PARAMETERS = tuple(name for name in address.LIST_PARAMETERS if name not in ("page", "view"))
"""The parameters of a list's address that a saved view stores."""


def _open_named_view(workbench: Workbench) -> str:
    """Apply the saved view that the address names, and return a sentence about it.

    An address with other parameters keeps them, so that a link shows the same list after its view
    was changed or removed.
    """
    named = address.value("view")[: address.LONGEST_WORD]
    if not named:
        return ""
    views = workbench.store.team.views(actor().name)
    view = next((view for view in views if view.name == named), None)
    if view is None:
        return f"There is no saved view “{named}”. It may have been removed."
    saved = _view_parameters(view)
    listed = {name: text for name, text in address.list_parameters().items() if name != "view"}
    if saved and not listed:
        address.replace({"view": named, **saved})
        listed = saved
    listed.pop("page", None)
    return f"Saved view “{named}”{'' if listed == saved else ', changed'}."


def _view_parameters(view: SavedView) -> dict[str, str]:
    """Return the parameters of a saved view. One of another version may have others."""
    return {name: text for name, text in view.parameters.items() if name in _VIEW_PARAMETERS}


def _draw_views(workbench: Workbench, case_filter: CaseFilter) -> None:
    """Draw the saved views, a view of the user's assigned cases, and the forms that save the list
    as a view or make a queue of it.
    """
    name = actor().name
    popover = st.popover("Views", icon=":material/bookmark:", key="queue-views", on_change="rerun")
    with popover:
        assigned = workbench.store.team.count_cases("assigned").get(name, 0) if reviewer() else 0
        if assigned:
            st.page_link(
                "pages/queue.py",
                label=f"Assigned to me ({assigned:,})",
                query_params={"assignee": address.in_words([name])},
            )
        views = workbench.store.team.views(name)
        for number, view in enumerate(views):
            link, remove = st.columns([5, 1], vertical_alignment="center")
            link.page_link(
                "pages/queue.py",
                label=escape_markdown(view.name),
                query_params={**_view_parameters(view), "view": view.name},
            )
            if remove.button(
                f"Remove {escape_markdown(view.name)}",
                key=f"remove-view-{number}",
                icon=":material/delete:",
                type="tertiary",
                **button_state("decide"),
            ):
                workbench.team.remove_view(actor(), view)
                st.rerun()
        if reviewer() is None:
            st.caption(
                "Saved searches are listed here. Type your name at the top right to save one."
            )
            return
        with st.form("save-view", clear_on_submit=True, border=False):
            title = st.text_input("Save this list as", max_chars=60)
            shared = st.checkbox("For the whole team")
            saved = st.form_submit_button("Save this view", **button_state("decide"))
        if saved:
            parameters = {
                key: text
                for key, text in address.list_parameters().items()
                if key in _VIEW_PARAMETERS
            }
            if run_action(
                lambda: workbench.team.save_view(actor(), title, parameters, shared=shared)
            ):
                st.rerun()
        # What it would hold is counted only while the popover is open.
        if popover.open and not case_filter.queue:
            st.divider()
            draw_new_queue(workbench, case_filter, key="new-queue")


def only_decided(case_filter: CaseFilter) -> bool:
    """Return whether a filter lists decided cases only.

    Blind reviewers can export no others, as an export contains the results of audits.
    """
    return case_filter.standings == ("decided",) or bool(
        case_filter.states and set(case_filter.states) <= set(DECIDED)
    )


def _draw_case_export(workbench: Workbench, case_filter: CaseFilter, page: CasePage) -> None:
    """Draw the export of all listed cases as a data set with its manifest."""
    user = actor()
    decided = _decided_instead(case_filter)
    if not page.total and not _is_filtered() and decided is not None:
        case_filter = decided  # nothing is left to decide, so these are what a person exports
    with st.popover("Export", icon=":material/download:"):
        if not workbench.access.allows(user, "export"):
            st.caption("You need the lead role to export.")
            return
        if page.total > MOST_EXPORTED:
            st.caption(
                "There are too many cases to export here. Run"
                f" {command_markdown('masis export --format FORMAT --out FILE')}"
            )
            return
        name = st.selectbox(
            "Format",
            list(export_formats()),
            key="export-format",
            persist_state="session",
            format_func=lambda name: f"{name}: {export_formats()[name].summary}",
        )
        chosen, encoding = export_formats()[name], "jsonl"
        if chosen.tabular:
            encoding = st.selectbox(
                "File", ENCODINGS, key="export-encoding", persist_state="session"
            )
        st.caption(
            f"{chosen.summary[0].upper()}{chosen.summary[1:]}. The zip file holds the data and a"
            " manifest."
        )
        prepared_download(
            f"{count_noun(workbench.exports.count(case_filter), 'case')}: {name}",
            lambda: zip_export(workbench, user, name, case_filter, encoding),
            file_name=f"masis-{name}.zip",
            key="export-prepare",
            help_="Export all cases that match the search and the filters.",
        )
        st.page_link(
            "pages/datasets.py",
            label="Freeze these cases",
            icon=":material/ac_unit:",
            query_params=address.list_parameters(),
            help=(
                "Store these cases as a named dataset version, which you can compare with others"
                " and write again byte for byte."
            ),
        )


def zip_export(
    workbench: Workbench, user: Actor, name: str, case_filter: CaseFilter, encoding: str
) -> io.BytesIO:
    """Return an export in the format ``name`` with its manifest, as a zip file.

    Raises:
        NotAllowed: The user can't export.
        RecordDamaged: A record can't be read. The message names its case and run.

    """
    chosen, out = export_formats()[name], io.BytesIO()
    suffix = chosen.suffix if encoding == "jsonl" else f".{encoding}"
    with tempfile.TemporaryDirectory() as folder:
        workbench.exports.write_file(
            user, Path(folder) / f"{name}{suffix}", name, Selection(case_filter), encoding=encoding
        )
        with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
            for file in sorted(Path(folder).rglob("*")):
                archive.write(file, file.relative_to(folder))
    out.seek(0)
    return out


# --- the rows ---------------------------------------------------------------------------

_MARKED: tuple[Standing, ...] = ("waits", "not_audited", "failed")
"""The statuses that are marked in a list without a column of states.

They aren't results of an audit, so the column of issues doesn't show them.
"""


def case_columns(order: str, *, brief: bool = False) -> list[TableColumn]:
    """Return the columns of ``case_row``; the last one has the figure of the order."""
    chosen = ORDERS[order]
    figure = column(chosen.figure, "figure", hide="" if chosen.by_audit else "hide-narrow")
    state = [] if brief else [column("State", "pills")]
    return [column("Question", "main"), *state, column("Issues", "main"), figure]


ASSIGNED_TO_YOU: LabelData = {
    "text": "assigned to you",
    "tone": "busy",
    "meaning": "This case is assigned to you",
}
SKIPPED_BY_YOU: LabelData = {
    "text": "skipped by you",
    "tone": "calm",
    "meaning": "You skipped this case. It comes after the other cases of your queue",
}
HAS_DRAFT: LabelData = {
    "text": "draft",
    "tone": "warn",
    "meaning": "You have a draft of a decision on this case that you haven't submitted",
}


def own_marks(workbench: Workbench, listed: Sequence[CaseSummary]) -> dict[str, list[LabelData]]:
    """Return the user's own labels by case: whether it's assigned, skipped or has a draft."""
    ids = [summary.id for summary in listed]
    work = workbench.store.team.own_work_among(actor().name, ids)
    drafted = workbench.drafts.cases_with_drafts(actor(), ids)
    return {
        case_id: [
            *([ASSIGNED_TO_YOU] if (case_id, "assigned") in work else []),
            *([SKIPPED_BY_YOU] if (case_id, "skipped") in work else []),
            *([HAS_DRAFT] if case_id in drafted else []),
        ]
        for case_id in ids
    }


def case_row(
    summary: CaseSummary,
    parameters: dict[str, str],
    *,
    order: str = "newest",
    page: str = "review",
    state: TableCell | None = None,
    brief: bool = False,
    marks: Sequence[LabelData] = (),
    adjudicate: bool = False,
) -> LinkedRow:
    """Return a case as a row of ``case_columns``.

    Args:
        summary: The case.
        parameters: The parameters of the list (``address.list_parameters``).
        order: The name of the list's order, whose figure is shown.
        page: The page that the row links to.
        state: The cell with its status, or None to leave it out.
        brief: Whether the list has no column of states. A status is then put below the question.
        marks: The user's own labels on the case.
        adjudicate: Whether it waits for the user's adjudication, to which the row then links.

    """
    href = (
        address.link("team", case=summary.id)
        if adjudicate
        else address.link(page, **parameters, case=summary.id)
    )
    below = "  ·  ".join(fact for fact in (summary.field, summary.id) if fact)
    own_state: TableCell = state if brief and state else {}
    question: TableCell = {"text": summary.query, "href": href, "open": summary.id}
    question["pills"] = [*marks, *own_state.get("pills", ())]
    question["below"] = [*own_state.get("below", ()), below]
    # the stored headline has the worst issue in its first line and the other issues in the second
    worst, _, others = (summary.headline or "").partition("\n")
    issues: TableCell | None = {"text": worst, "quote": others} if worst else None
    return row(
        question,
        *([] if brief or state is None else [state]),
        issues,
        _order_figure(summary, ORDERS[order].field),
        open=summary.id,
    )


def _order_figure(summary: CaseSummary, field: str) -> TableCell | None:
    """Return the figure of the order, with the quality below it if that's another figure."""
    if field == "severity":
        return severity_cell(summary)
    revised = [] if summary.revised_quality is None else [f"revised {summary.revised_quality:.2f}"]
    below_score = field != "quality" and summary.quality is not None
    quality = [f"quality {summary.quality:.2f}"] if below_score else []
    return {"score": getattr(summary, field), "below": [*quality, *revised]}


def severity_cell(summary: CaseSummary) -> TableCell | None:
    """Return the severity of the worst issue; None without an audit or if it's hidden."""
    if not summary.iterations or summary.standing == "no_answer":
        return None
    if summary.severity is None:
        return {"text": "none"}
    word = SEVERITY[summary.severity]
    # issues that the acceptance rule lets pass have a neutral color
    passed = summary.standing == "nothing_found"
    return {"pills": [label(word._replace(tone="calm") if passed else word)]}


def verdicts_by_reviewer(workbench: Workbench, case_id: str) -> list[str]:
    """Return each reviewer's verdict in words, with names if the policy shows them."""
    shows_names = workbench.trust.shows_names()
    decisions = [
        entry.decision for entry in workbench.reviews.individual(case_id) if entry.decision
    ]
    return [
        f"{f'{decision.reviewer}: ' if shows_names else ''}{DECIDED_AS[decision.verdict].text}"
        for decision in decisions
        if decision.verdict
    ]


def state_cell(
    workbench: Workbench, summary: CaseSummary, *, adjudicate: bool = False
) -> TableCell:
    """Return the status of a case, with details such as its verdict and reviewers."""
    if adjudicate:
        return {
            "pills": [label(WAITS_FOR_YOU)],
            "below": verdicts_by_reviewer(workbench, summary.id),
        }
    word, more = status_label(summary.standing, summary.state, summary.severity)
    by = f"by {' and '.join(workbench.reviews.settled_by(summary.id))}" if summary.reviewer else ""
    return {"pills": [label(word)], "below": [f"{more} {by}".strip()]}


def show_nothing_yet(workbench: Workbench) -> None:
    """Draw the page for an empty database: what a case is, and three ways to add some."""
    st.title("No cases yet")
    st.markdown(PRODUCT)
    st.markdown(
        "A case is a question, the evidence a retrieval system found for it, and the answer a model"
        " wrote from that evidence. An audit checks every citation and every claim of the answer"
        " against the evidence. Then you decide the case. There are three ways to start:"
    )
    demo, paste, bulk = st.columns(3, gap="medium")
    with demo.container(border=True, height="stretch"):
        st.markdown("**Look around**")
        st.markdown(
            "Add prepared cases from ten fields to this database, some with fabricated citations."
        )
        if st.button("Load the demo cases", type="primary", **button_state("audit")):
            workbench.cases.add(actor(), demo_cases())
            st.rerun()
    with paste.container(border=True, height="stretch"):
        st.markdown("**Audit one answer**")
        st.markdown("Paste or upload a question, the evidence and, if you have one, the answer.")
        st.page_link("pages/new.py", label="New audit", icon=":material/add_circle:")
    with bulk.container(border=True, height="stretch"):
        st.markdown("**Import many cases**")
        st.markdown(
            "Upload a file with your own columns or an export of another tool. On the command line:"
        )
        st.code(command("masis import cases.jsonl"), language=None, wrap_lines=True)
        st.page_link("pages/import.py", label="Import", icon=":material/upload_file:")
    st.caption("This database")
    st.text(str(workbench.database))

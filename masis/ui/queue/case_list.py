"""The queue: search, filters, orders, saved views, pages, export, and what to do when there is
nothing to show.
"""

from __future__ import annotations

import io
import tempfile
import zipfile
from collections.abc import Sequence
from functools import partial
from pathlib import Path

import streamlit as st

from masis.datasets.exports.export import DECIDED, ENCODINGS, Selection
from masis.datasets.exports.formats import FORMATS
from masis.schema.actor import Actor
from masis.schema.review import Standing
from masis.schema.wording import count_noun, shorten
from masis.services import Workbench, demo_cases
from masis.services.records import (
    NOT_DECIDED,
    CaseFilter,
    CasePage,
    CaseSummary,
    Facets,
    QueueOrder,
)
from masis.ui.components.linked_table import (
    LinkedRow,
    TableCell,
    TableColumn,
    column,
    linked_table,
    row,
)
from masis.ui.shell import address
from masis.ui.shell.downloads import prepared_download
from masis.ui.shell.inputs import show_value
from masis.ui.shell.permissions import button_state, run_action
from masis.ui.shell.reviewer import actor, reviewer
from masis.ui.shell.served_database import command, command_markdown
from masis.views.markdown import colour_label, escape_markdown
from masis.views.words import DECIDED as DECIDED_AS
from masis.views.words import (
    MACHINE_HIDDEN,
    SEVERITY,
    STANDING,
    WAITS_FOR,
    WAITS_FOR_YOU,
    LabelData,
    label,
    model_words,
    status_label,
)

PRODUCT = (
    "MASIS checks the citations and claims of AI answers against their evidence, and a person"
    " decides: a fluent answer can cite what does not exist, and automatic checks miss faults and"
    " report wrong ones."
)
"""What the product is, and why these answers need a person."""
FIGURES: dict[QueueOrder, str] = {
    "risk": "Severity",
    "disagreement": "Disagreement",
    "least_confident": "Confidence",
}
"""The orders that go by what audits found, each with its figure; the others show the
quality alone.
"""
ORDER_SAYS: dict[QueueOrder, str] = {
    "risk": (
        "What is wrong comes first, then what could not be confirmed, then what passed; in each the"
        " most severe issue, then the most claims in doubt."
    ),
    "disagreement": (
        "Where citation engine, critic and evaluator differ most comes first: the figure is the"
        " gap, 0 to 1, between the highest and the lowest of citation score, critic's confidence"
        " and faithfulness."
    ),
    "least_confident": "Unscored answers come first, then those the critic trusts least.",
    "newest": "The case imported last comes first.",
    "oldest": "In the order they were imported.",
    "random": "Shuffled. The address stores the draw, so that pages and the next case follow it.",
}
"""What each order says; ``masis/store/audits/queue.py`` sorts. In the first three, cases without an
audit come last, and behind them those that wait for others after one's own decision.
"""
MOST_EXPORTED = 20_000
"""More are exported on the command line, which writes as it reads; a page holds the file until it
is downloaded.
"""
MOST_CHIPS = 12
_NARROWS = (*address.FILTERS, "page")


def show_cases(workbench: Workbench) -> None:
    """Draw the page of all cases."""
    facets = workbench.cases.facets_for(actor())
    if not sum(facets.standings.values()):
        show_nothing_yet(workbench)
        return
    blind = workbench.cases.hides_machine_from(actor())
    case_filter = address.case_filter()
    page = workbench.cases.find_for(actor(), case_filter)
    # neither order nor counts say what is hidden
    shown = workbench.cases.blind_filter(actor(), case_filter)
    with st.container(horizontal=True, vertical_alignment="center", gap="small", key="queue-head"):
        st.title("Queue", width="content")
        _search_and_order(blind=blind)
        _drawer(workbench, case_filter, blind=blind)
        _views(workbench)
        if not blind or only_decided(case_filter):
            _export(workbench, case_filter, page)
    _standings(workbench, facets, case_filter)
    adjudications = workbench.team.adjudications(actor())
    _draw_filter_summary(page, case_filter, shown, adjudications, blind=blind)
    if not page.total:
        _no_match(workbench, case_filter)
        return
    # once: reading the address for each row took a quarter of the page's time
    way = address.list_parameters()
    marks = own_marks(workbench, page.rows)
    for_me = {summary.id for summary in adjudications.rows}
    # what is most serious first stands together by state already, and what was found says it
    alike = len(shown.standings) == 1
    brief = (alike or shown.order == "risk") and "decided" not in (shown.standings or ("decided",))
    # of those that wait, each may wait for something else
    stated = _MARKED[:1] if alike else _MARKED
    rows = [
        case_row(
            summary,
            way,
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
    if opened := linked_table(columns, rows, description="Cases", key="case-list", head_stays=True):
        if opened in for_me:
            st.switch_page("pages/team.py", query_params={"case": opened})
        address.open_case(opened)
    _paging(case_filter, page.total)


# --- what narrows the list
# ----------------------------------------------------------------------------------------


def _search_and_order(*, blind: bool) -> None:
    show_value("search", address.value("q")[: address.LONGEST_QUERY])
    st.text_input(
        "Search",
        placeholder="Words in id, question, answer or evidence",
        max_chars=address.LONGEST_QUERY,
        label_visibility="collapsed",
        width=340,
        **address.bind_query_param("q", key="search"),
    )
    orders = [order for order in address.ORDERS if not (blind and order in FIGURES)]
    chosen = address.order()
    st.selectbox(
        "Order",
        orders,
        format_func=address.ORDERS.__getitem__,
        label_visibility="collapsed",
        width=230,
        **address.bind_query_param(
            "order", address.ORDER, shows=chosen if chosen in orders else "random"
        ),
    )


def _standings(workbench: Workbench, facets: Facets, case_filter: CaseFilter) -> None:
    """Draw the main filter: where cases stand, each with its count; without a choice all that are
    not decided.

    What else narrows the list narrows the counts. A press shows what stands there in place of what
    was shown. An address may name several, which stay chosen together.
    """
    chosen = address.several("standing", STANDING)
    # into those with a lesser issue and those without, beside it
    split = chosen == ["nothing_found"]
    shown = {address.STANDINGS.name, *([address.SEVERITIES.name] if split else [])}
    found, lesser = facets.standings, facets.lesser
    if any(address.value(name) for name in address.FILTERS if name not in shown):
        case_filter = case_filter.model_copy(update={"severities": ()}) if split else case_filter
        found, lesser = workbench.cases.standings_for(actor(), case_filter)
    counts = {name: found.get(name, 0) for name in STANDING if found.get(name) or name in chosen}
    several = len(chosen) > 1
    with_lesser = {"nothing_found": f", {lesser:,} with lesser issues"} if lesser else {}
    stands_as = dict(STANDING)
    # what all of them wait for is said as their rows say it
    for state in ("escalated", "needs_adjudication"):
        if facets.states.get(state) == facets.standings.get("waits", 0):
            stands_as["waits"] = WAITS_FOR[state]
    st.pills(
        "Where cases stand",
        list(counts),
        selection_mode="multi" if several else "single",
        format_func=lambda name: (
            f"{stands_as[name].text} {counts[name]:,}{with_lesser.get(name, '')}"
        ),
        label_visibility="collapsed",
        **address.bind_query_param(
            "standing",
            [],
            shows=chosen if several else next(iter(chosen), None),
            drops=("page", "severity"),
        ),
    )
    if split and lesser:
        parts = {address.in_words(SEVERITY): f"Lesser issues only {lesser:,}"}
        parts["none"] = f"No issue, at most a remark {counts['nothing_found'] - lesser:,}"
        asked = address.value("severity")
        st.pills(
            "With and without lesser issues",
            list(parts),
            format_func=parts.__getitem__,
            label_visibility="collapsed",
            **address.bind_query_param(
                "severity", shows=asked if asked in parts else None, key="lesser"
            ),
        )


def _drawer(workbench: Workbench, case_filter: CaseFilter, *, blind: bool) -> None:
    """Draw the other filters, each as it is declared, in a popover; with another label it would
    close at each choice.

    A value has the number of cases that choosing it lists. They are counted only where the popover
    is open: that reads all cases once for each filter.
    """
    drawn = [each for each in address.DRAWER if not (blind and each.machine)]
    drawer = st.popover(
        "Filters", icon=":material/filter_list:", key="queue-filters", on_change="rerun"
    )
    if not drawer.open:
        return
    with drawer:
        for each in drawn:
            if each.kind == "range":
                low, high = address.bounds(each.name)
                shown = (low or 0.0, 1.0 if high is None else high)
                keeps = address.bind_query_param(each.name, (0.0, 1.0), shows=shown, drawer=True)
                st.slider(each.title, 0.0, 1.0, step=0.05, format="%.2f", **keeps)
                continue
            listed = case_filter.model_copy(
                update={"standings": address.standings(with_state=each.field == "states")}
            )
            found = workbench.cases.values_for(actor(), listed, each.field)
            counts = (
                {name: found[name] for name in each.options if name in found}
                if each.options
                else found
            )
            address.choose_several(each.title, each.name, counts, partial(_filter_text, each))


def _filter_text(filter_: address.Filter, name: str) -> str:
    return model_words(name) if filter_.name == "model" else filter_.options.get(name, name)


def adjudications_link(waiting: CasePage) -> None:
    """Draw how many cases wait for the adjudication of whoever looks, with the way to the first;
    nothing of none.
    """
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
    """Say how many cases are listed and in which order; what narrows the list stands beside,
    removed with a click.
    """
    chips: list[tuple[address.Filter, str | None, str]] = []
    for each in address.DRAWER:  # the ranges are its last ones
        if each.kind == "range":
            low, high = address.bounds(each.name)
            if (low, high) != (None, None):
                chips.append(
                    (
                        each,
                        None,
                        f"{each.title} {low or 0:.2f} to {1 if high is None else high:.2f}",
                    )
                )
        else:
            found = (
                address.several(each.name, each.options)
                if each.options
                else address.words(each.name)
            )
            if each is address.SEVERITIES and case_filter.standings == ("nothing_found",):
                continue  # the pills beside where cases stand show it
            chips += [(each, word, f"{each.title}: {_filter_text(each, word)}") for word in found]
    first = (case_filter.page - 1) * case_filter.size + 1
    part = f"{first:,} to {first + len(page.rows) - 1:,} of " if page.total > len(page.rows) else ""
    left_out = ", decided ones left out" if case_filter.standings == NOT_DECIDED else ""
    order = f" {order_says(shown)}" if page.total > 1 else ""
    says = f"**{part}{count_noun(page.total, 'case')}**{left_out}.{order} **?** shows the keys."
    with st.container(horizontal=True, vertical_alignment="center", gap="small", key="list-head"):
        st.caption(
            f"{says} :material/visibility_off: {MACHINE_HIDDEN}" if blind else says, width="content"
        )
        adjudications_link(adjudications)
        for place, (filter_, word, text) in enumerate(chips[:MOST_CHIPS]):
            st.button(
                escape_markdown(shorten(text, 60)),
                key=f"chip-{place}-{filter_.name}-{word}",
                icon=":material/close:",
                help="Remove this filter",
                on_click=_put_on_first_page,
                args=(
                    filter_.name,
                    address.in_words(
                        each for each in address.words(filter_.name) if word and each != word
                    ),
                ),
            )
        if any(address.value(name) for name in address.FILTERS):
            st.button(
                "Clear all",
                key="clear-all",
                type="tertiary",
                on_click=address.clear,
                args=(_NARROWS,),
            )


def order_says(shown: CaseFilter) -> str:
    """Say how a list is ordered."""
    if shown.order != "risk" or len(shown.standings) != 1:
        return ORDER_SAYS[shown.order]
    if shown.severities == ("none",):
        return "Those with the most claims and the least confidence come first."
    if shown.standings == ("nothing_found",) and not shown.severities:
        return "Those with a lesser issue come first, the most severe of them before the others."
    return "The most severe issue comes first, then the most claims in doubt."


def _put_on_first_page(name: str, text: str) -> None:
    address.set_param(name, text)
    address.set_param("page", "")


def _no_match(workbench: Workbench, case_filter: CaseFilter) -> None:
    searched = (
        " Questions, answers and evidence are searched, not what audits found."
        if case_filter.text
        else ""
    )
    st.markdown(
        f"**No case matches.** Remove a word from the search, or choose fewer filters.{searched}"
    )
    decided = case_filter.model_copy(update={"standings": ("decided",)})
    with st.container(horizontal=True):
        st.button("Clear search and filters", on_click=address.clear, args=(_NARROWS,))
        if case_filter.standings == NOT_DECIDED and (
            count := workbench.cases.find_for(actor(), decided).total
        ):
            st.button(
                f"Show {count_noun(count, 'decided case')}",
                key="show-decided",
                on_click=address.set_param,
                args=("standing", "decided"),
            )


def _paging(case_filter: CaseFilter, total: int) -> None:
    with st.container(
        horizontal=True, horizontal_alignment="distribute", vertical_alignment="center"
    ):
        address.show_pages(total, case_filter.size, key="page-number")
        if case_filter.order == "random":
            seed = str(address.number("seed", 0) % address.LARGEST_SEED + 1)
            st.button(
                "Shuffle again",
                icon=":material/shuffle:",
                on_click=_put_on_first_page,
                args=("seed", seed),
            )
        if total > min(address.PAGE_SIZES):
            st.segmented_control(
                "Cases on a page",
                address.PAGE_SIZES,
                label_visibility="collapsed",
                format_func=lambda size: f"{size} a page",
                required=True,
                **address.bind_query_param(
                    "size", address.PAGE_SIZE, shows=case_filter.size, key="page-size"
                ),
            )


# --- saved views and the export
# -----------------------------------------------------------------------------------

_KEPT = tuple(name for name in address.LIST_PARAMETERS if name != "page")
"""What of a list's address a saved view keeps."""


def _views(workbench: Workbench) -> None:
    """Draw the saved views: what is assigned to this reviewer, filters under a name, and the form
    that saves one.
    """
    name = actor().name
    with st.popover("Views", icon=":material/bookmark:"):
        if mine := workbench.store.team.count_cases("assigned").get(name, 0) if reviewer() else 0:
            way = {"assignee": address.in_words([name])}
            st.page_link("pages/queue.py", label=f"Assigned to me ({mine:,})", query_params=way)
        views = workbench.store.team.views(name)
        for number, view in enumerate(views):
            link, remove = st.columns([5, 1], vertical_alignment="center")
            known = {name: text for name, text in view.parameters.items() if name in _KEPT}
            link.page_link("pages/queue.py", label=escape_markdown(view.name), query_params=known)
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
                key: text for key, text in address.list_parameters().items() if key in _KEPT
            }
            if run_action(
                lambda: workbench.team.save_view(actor(), title, parameters, shared=shared)
            ):
                st.rerun()


def only_decided(case_filter: CaseFilter) -> bool:
    """Return whether a filter leaves out all that no person has decided: of those an export shows
    what audits found.
    """
    return case_filter.standings == ("decided",) or bool(
        case_filter.states and set(case_filter.states) <= set(DECIDED)
    )


def _export(workbench: Workbench, case_filter: CaseFilter, page: CasePage) -> None:
    """Draw the export of the cases that the list shows, on all its pages, as a data set with its
    manifest.
    """
    who = actor()
    with st.popover("Export", icon=":material/download:"):
        if not workbench.access.allows(who, "export"):
            st.caption("Exports take the role lead.")
            return
        if page.total > MOST_EXPORTED:
            st.caption(
                "Too many cases for a page:"
                f" {command_markdown('masis export --format FORMAT --out FILE')}"
            )
            return
        form = st.selectbox("Format", list(FORMATS), key="export-format", persist_state="session")
        chosen, encoding = FORMATS[form], "jsonl"
        if chosen.tabular:
            encoding = st.selectbox(
                "File", ENCODINGS, key="export-encoding", persist_state="session"
            )
        st.caption(
            f"{chosen.summary[0].upper()}{chosen.summary[1:]}. The zip file holds the data and a"
            " manifest."
        )
        prepared_download(
            f"{count_noun(workbench.exports.count(case_filter), 'case')}: {form}",
            lambda: zip_export(workbench, who, form, case_filter, encoding),
            file_name=f"masis-{form}.zip",
            key="export-prepare",
            help_="The cases that match search and filters, on all pages of the list.",
        )
        st.page_link(
            "pages/datasets.py",
            label="Freeze these cases",
            icon=":material/ac_unit:",
            query_params=address.list_parameters(),
            help=(
                "As a dataset version: under a name, to be compared with others and written again"
                " byte for byte."
            ),
        )


def zip_export(
    workbench: Workbench, who: Actor, form: str, case_filter: CaseFilter, encoding: str
) -> io.BytesIO:
    """Return an export and its manifest as a zip file. Raises NotAllowed, and RecordDamaged naming
    case and run.
    """
    chosen, out = FORMATS[form], io.BytesIO()
    suffix = chosen.suffix if encoding == "jsonl" else f".{encoding}"
    with tempfile.TemporaryDirectory() as folder:
        workbench.exports.write_file(
            who, Path(folder) / f"{form}{suffix}", form, Selection(case_filter), encoding=encoding
        )
        with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
            for file in sorted(Path(folder).rglob("*")):
                archive.write(file, file.relative_to(folder))
    out.seek(0)
    return out


# --- the rows
# -----------------------------------------------------------------------------------------------------

_MARKED: tuple[Standing, ...] = ("waits", "not_audited", "failed")
"""Where cases stand of which no audit says so: they are marked in a list without a column of
states.
"""


def case_columns(order: QueueOrder, *, brief: bool = False) -> list[TableColumn]:
    """Return the columns of ``case_row``; the last one shows what the list is ordered by."""
    figure = column(
        FIGURES.get(order, "Quality"), "figure", hide="" if order in FIGURES else "hide-narrow"
    )
    state = [] if brief else [column("State", "pills")]
    return [column("Question", "main"), *state, column("What the audit found", "main"), figure]


MINE: LabelData = {
    "text": "assigned to you",
    "tone": "busy",
    "meaning": "Somebody gave this case to you to decide",
}
BEGUN: LabelData = {
    "text": "draft",
    "tone": "warn",
    "meaning": "You have begun a decision on it and not submitted it",
}


def own_marks(workbench: Workbench, listed: Sequence[CaseSummary]) -> dict[str, list[LabelData]]:
    """Return by case what only whoever looks sees: that it is assigned to them, that they have a
    draft on it.
    """
    ids = [summary.id for summary in listed]
    mine = workbench.store.team.assigned_among(actor().name, ids)
    begun = workbench.drafts.with_drafts(actor(), ids)
    return {
        each: [*([MINE] if each in mine else []), *([BEGUN] if each in begun else [])]
        for each in ids
    }


def case_row(
    summary: CaseSummary,
    parameters: dict[str, str],
    *,
    order: QueueOrder = "newest",
    page: str = "review",
    state: TableCell | None = None,
    brief: bool = False,
    marks: Sequence[LabelData] = (),
    adjudicate: bool = False,
) -> LinkedRow:
    """Return a case as a row of ``case_columns``.

    Args:
        summary: the case.
        parameters: describe the list the case is in (``address.list_parameters``).
        order: that of the list: its figure is shown.
        page: where the row leads.
        state: where it stands; left out where what was found says it.
        brief: whether the list has no column of states: one given stands under the question.
        marks: what only whoever looks at the list sees of it.
        adjudicate: whether it waits for their adjudication, where the row leads.

    """
    href = (
        address.link("team", case=summary.id)
        if adjudicate
        else address.link(page, **parameters, case=summary.id)
    )
    below = "  ·  ".join(each for each in (summary.field, summary.id) if each)
    aside: TableCell = state if brief and state else {}
    question: TableCell = {"text": summary.query, "href": href, "open": summary.id}
    question["pills"] = [*marks, *aside.get("pills", ())]
    question["below"] = [*aside.get("below", ()), below]
    worst, _, others = (summary.headline or "").partition("\n")
    found: TableCell | None = {"text": worst, "quote": others} if worst else None
    return row(
        question,
        *([] if brief or state is None else [state]),
        found,
        _order_cell(summary, order),
        open=summary.id,
    )


def _order_cell(summary: CaseSummary, order: QueueOrder) -> TableCell | None:
    """Return what the list is ordered by, with the quality below under its name where that is
    another figure.
    """
    if order == "risk":
        return severity_cell(summary)
    revised = [] if summary.revised_quality is None else [f"revised {summary.revised_quality:.2f}"]
    quality = [] if summary.quality is None else [f"quality {summary.quality:.2f}"]
    if order in FIGURES:
        score = summary.disagreement if order == "disagreement" else summary.confidence
        return {"score": score, "below": [*quality, *revised]}
    return {"score": summary.quality, "below": revised}


def severity_cell(summary: CaseSummary) -> TableCell | None:
    """Return how severe the worst issue of a case is; None where none was looked for, or what was
    found is hidden.
    """
    if not summary.iterations or summary.standing == "no_answer":
        return None
    if summary.severity is None:
        return {"text": "none"}
    word = SEVERITY[summary.severity]
    # what the acceptance rule lets pass has a neutral colour
    passed = summary.standing == "nothing_found"
    return {"pills": [label(word._replace(tone="calm") if passed else word)]}


def who_decided(workbench: Workbench, case_id: str) -> list[str]:
    """Say what each reviewer of a case decided, with their names where the policy shows them."""
    named = workbench.trust.shows_names()
    decisions = [
        entry.decision for entry in workbench.reviews.individual(case_id) if entry.decision
    ]
    return [
        f"{f'{each.reviewer}: ' if named else ''}{DECIDED_AS[each.verdict].text}"
        for each in decisions
        if each.verdict
    ]


def state_cell(
    workbench: Workbench, summary: CaseSummary, *, adjudicate: bool = False
) -> TableCell:
    """Return where a case stands, with what of it the standing leaves open: its verdict, by whom,
    what is awaited.
    """
    if adjudicate:
        return {"pills": [label(WAITS_FOR_YOU)], "below": who_decided(workbench, summary.id)}
    word, more = status_label(summary.standing, summary.state, summary.severity)
    who = f"by {' and '.join(workbench.reviews.settled_by(summary.id))}" if summary.reviewer else ""
    return {"pills": [label(word)], "below": [f"{more} {who}".strip()]}


def show_nothing_yet(workbench: Workbench) -> None:
    """Draw what a person without any case reads: what a case is, and the ways to get some."""
    st.title("No cases yet")
    st.markdown(PRODUCT)
    st.markdown(
        "A case is a question, the evidence a retrieval system found for it, and the answer a model"
        " wrote from that evidence. An audit checks every citation and every claim of the answer"
        " against the evidence; you decide what happens with it. There are three ways to begin:"
    )
    look, paste, bring = st.columns(3, gap="medium")
    with look.container(border=True, height="stretch"):
        st.markdown("**Look around**")
        st.markdown(
            "Adds prepared cases from ten fields to this database, some with fabricated citations."
        )
        if st.button("Load the demo cases", type="primary", **button_state("audit")):
            workbench.cases.add(actor(), demo_cases())
            st.rerun()
    with paste.container(border=True, height="stretch"):
        st.markdown("**Audit one answer**")
        st.markdown("Paste or upload a question, the evidence and, if you have one, the answer.")
        st.page_link("pages/new.py", label="New audit", icon=":material/add_circle:")
    with bring.container(border=True, height="stretch"):
        st.markdown("**Import many cases**")
        st.markdown(
            "Upload a file: your own columns, or what another tool exported. On the command line:"
        )
        st.code(command("masis import cases.jsonl"), language=None, wrap_lines=True)
        st.page_link("pages/imports.py", label="Import", icon=":material/upload_file:")
    st.caption("This database")
    st.text(str(workbench.database))

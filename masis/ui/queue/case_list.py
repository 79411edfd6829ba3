"""The queue: search, filters, orders, pages, and what to do when there is nothing to show."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import streamlit as st

from masis.datasets.exports import DECIDED
from masis.schema.wording import counted, shortened
from masis.services import Workbench
from masis.services.records import CaseFilter, CasePage, CaseSummary, Facets, QueueOrder
from masis.settings import OFFLINE
from masis.ui.components.linked_table import Cell, Column, Row, column, linked_table, row
from masis.ui.queue.export import show_export
from masis.ui.shell import address
from masis.ui.shell.inputs import show_value
from masis.ui.shell.permissions import needs
from masis.ui.shell.reviewer import actor
from masis.ui.shell.served_database import command
from masis.ui.team.views import show_views
from masis.views.markdown import escaped
from masis.views.words import FLAG, MACHINE_HIDDEN, REASON, STATE, STATES, TIER, LabelData, label, model_words

PRODUCT = (
    "MASIS checks the citations and claims of AI answers against their evidence, and a person decides: a fluent answer "
    "can cite what does not exist, and automatic checks miss faults and report wrong ones."
)
"""What the product is, and why these answers need a person."""
FLAGS_SHOWN = 4
REASONS_SHOWN = 3
BY_MACHINE: tuple[QueueOrder, ...] = ("risk", "disagreement", "least_confident")
"""The orders that go by what audits found."""
ORDER_SAYS: dict[QueueOrder, str] = {
    "risk": "What must be looked at comes first, then what could not be certified; within each the answers most likely "
    "to be faulty, by an estimate from their claims, references and issues. Cases without an audit come last.",
    "disagreement": "Most disagreement first: where citation engine, critic and evaluator differ most about an answer. "
    "Cases without an audit come last.",
    "least_confident": "Least confident first: unscored answers, then those the critic trusts least. Cases without an "
    "audit come last.",
    "newest": "The case imported last comes first.",
    "oldest": "In the order they were imported.",
    "random": "Shuffled. The address stores the draw, so that pages and the next case follow it.",
}
"""What each order says; ``masis/store/audits/queue.py`` sorts."""


def show_cases(workbench: Workbench) -> None:
    """Draw the page of all cases."""
    facets = workbench.cases.facets_for(actor())
    if not sum(facets.states.values()):
        show_nothing_yet(workbench)
        return
    st.title("Queue")
    blind = workbench.cases.hides_machine_from(actor())
    _controls(workbench, facets, blind=blind)
    if blind:
        st.caption(f":material/visibility_off: {MACHINE_HIDDEN} The list neither shows nor goes by it.")
    wanted = address.case_filter()
    page = workbench.cases.find_for(actor(), wanted)
    shown = workbench.cases.blinded(actor(), wanted)  # neither order nor counts say what is hidden
    show_views(workbench, shown, page.total)
    pages = max(1, -(-page.total // wanted.size))
    if wanted.page > pages:
        address.put("page", str(pages) if pages > 1 else "")
        st.rerun()
    _narrowed(shown)
    if not page.total:
        st.markdown("**No case matches.** Remove a word from the search, or choose fewer filters.")
        st.button("Clear search and filters", on_click=_clear)
        return
    with st.container(horizontal=True, vertical_alignment="center", key="list-head"):
        st.caption(f"**{_counted(page, wanted.page, wanted.size)}**  ·  {ORDER_SAYS[shown.order]}")
        if not blind or (wanted.states and set(wanted.states) <= set(DECIDED)):
            show_export(workbench, wanted, page)
        else:
            st.caption("Only a list of decided cases can be exported meanwhile.")
    if not blind:
        show_not_confirmed(workbench)
    way = address.list_parameters()  # once: reading the address for each row took a quarter of the page's time
    mine = workbench.store.team.assigned_among(actor().name, (summary.id for summary in page.rows))
    rows = [case_row(summary, way, mine=summary.id in mine) for summary in page.rows]
    opened = linked_table(CASES, rows, description="Cases", key="case-list")
    if opened:
        address.open_case(opened)
    _paging(pages, wanted, page.total)


def not_confirmed(workbench: Workbench) -> str:
    """Say how many answers the offline checks left open and what would decide them; "" where a model verifies."""
    if workbench.settings.verifier != OFFLINE:
        return ""
    open_ones = CaseFilter(states=("needs_review",), reasons=("unconfirmed_claim",), size=1)
    count = workbench.cases.count(open_ones)
    if not count:
        return ""
    return (
        f"{counted(count, 'answer has', 'answers have')} claims that the offline checks "
        "could not confirm. A verifier model, on this machine or by an API, would decide these."
    )


def show_not_confirmed(workbench: Workbench) -> None:
    """Draw that, with the way to a verifier model; nothing where nothing was left open."""
    if words := not_confirmed(workbench):
        with st.container(horizontal=True, vertical_alignment="center", key="not-confirmed"):
            st.caption(words)
            st.page_link("pages/settings.py", label="Choose a verifier model", icon=":material/arrow_forward:")


def _controls(workbench: Workbench, facets: Facets, *, blind: bool) -> None:
    search, order, more = st.columns([6, 3, 2], vertical_alignment="bottom")
    with search:
        show_value("search", address.value("q")[: address.LONGEST_QUERY])
        st.text_input(
            "Search",
            key="search",
            placeholder="Words in id, question, answer or evidence",
            max_chars=address.LONGEST_QUERY,
            on_change=_search,
        )
    with order:
        orders = [order for order in address.ORDERS if not (blind and order in BY_MACHINE)]
        order_now = address.order()
        st.session_state["order"] = order_now if order_now in orders else "random"
        st.selectbox("Order", orders, key="order", format_func=address.ORDERS.__getitem__, on_change=_choose_order)
    with more:
        hidden = sum(bool(address.value(name)) for name in _MORE if not (blind and name in _MACHINES))
        title = f"Filters ({hidden})" if hidden else "Filters"
        with st.popover(title, icon=":material/filter_list:", width="stretch"):
            _more_filters(
                facets, workbench.store.team.counted("assigned"), workbench.store.team.counted("tagged"), blind=blind
            )
    states = [state for state in STATES if facets.states.get(state)]
    tiers = [tier for tier in TIER if facets.tiers.get(tier)]
    flags = [flag for flag in FLAG if facets.flags.get(flag)]
    _pills("State", "state", {state: f"{STATE[state].text} {facets.states[state]:,}" for state in states})
    if tiers:
        _pills("Why it needs review", "tier", {tier: f"{TIER[tier].text} {facets.tiers[tier]:,}" for tier in tiers})
    if flags:
        _pills(
            "Issues in the original answer",
            "flag",
            {flag: f"{FLAG[flag].text} {facets.flags[flag]:,}" for flag in flags},
        )


_MORE = ("reason", "field", "dataset", "model", "reviewer", "assignee", "tag", "quality", "confidence")
_MACHINES = ("reason", "model", "quality", "confidence")
"""Those of them that go by what audits found."""


def _more_filters(facets: Facets, assigned: dict[str, int], tags: dict[str, int], *, blind: bool) -> None:
    if not blind:
        _choice("Reason for review", "reason", facets.reasons, {code: word.text for code, word in REASON.items()})
    _choice("Field", "field", facets.fields)
    if len(facets.datasets) > 1 or address.value("dataset"):
        _choice("Data set", "dataset", facets.datasets)
    if not blind:
        _choice("Model", "model", facets.models, {name: model_words(name) for name in facets.models})
    _choice("Reviewer", "reviewer", facets.reviewers)
    if assigned:
        _choice("Assigned to", "assignee", assigned)
    if tags:
        _choice("Tag", "tag", tags)
    if not blind:
        _range("Quality", "quality")
        _range("Confidence", "confidence")


def _pills(title: str, name: str, options: dict[str, str]) -> None:
    st.session_state[name] = address.several(name, list(options))
    st.pills(
        title,
        list(options),
        key=name,
        selection_mode="multi",
        format_func=options.__getitem__,
        on_change=_choose_several,
        args=(name,),
    )


def _choice(title: str, name: str, counts: dict[str, int], words: Mapping[str, str] | None = None) -> None:
    words = words or {}
    chosen = address.words(name)
    options = [*counts, *(each for each in chosen if each not in counts)]
    st.session_state[name] = chosen
    st.multiselect(
        title,
        options,
        key=name,
        format_func=lambda each: f"{words.get(each, each)} ({counts.get(each, 0):,})",
        placeholder="Any" if options else "None yet",
        disabled=not options,
        on_change=_choose_several,
        args=(name,),
    )


def _range(title: str, name: str) -> None:
    low, high = address.bounds(name)
    st.session_state[name] = (low or 0.0, 1.0 if high is None else high)
    st.slider(title, 0.0, 1.0, step=0.05, key=name, format="%.2f", on_change=_choose_range, args=(name,))


_NARROWING = (
    *(("Field", "field"), ("Data set", "dataset"), ("Model", "model"), ("Reviewer", "reviewer")),
    *(("Assigned to", "assignee"), ("Tag", "tag")),
)


class _Chip(NamedTuple):
    text: str
    name: str
    word: str | None


def _narrowed(wanted: CaseFilter) -> None:
    """Draw what narrows the list beyond the pills in view, each removed with a click."""
    chips = [_Chip(f"{title}: {word}", name, word) for title, name in _NARROWING for word in address.words(name)]
    chips += [_Chip(f"Reason: {REASON[code].text}", "reason", code) for code in wanted.reasons if code in REASON]
    chips += [
        _Chip(f"{title} {low or 0:.2f} to {1 if high is None else high:.2f}", name, None)
        for title, name in (("Quality", "quality"), ("Confidence", "confidence"))
        for low, high in [address.bounds(name)]
        if (low, high) != (None, None)
    ]
    if not any(address.value(name) for name in address.FILTERS):
        return
    with st.container(horizontal=True, gap="small"):
        for place, chip in enumerate(chips[:12]):
            st.button(
                escaped(shortened(chip.text, 60)),
                key=f"chip-{place}-{chip.name}-{chip.word}",
                icon=":material/close:",
                help="Remove this filter",
                on_click=_remove_filter,
                args=(chip.name, chip.word),
            )
        if wanted != CaseFilter(order=wanted.order, seed=wanted.seed, page=wanted.page, size=wanted.size):
            st.button("Clear all", key="clear-all", type="tertiary", on_click=_clear)


def _paging(pages: int, wanted: CaseFilter, total: int) -> None:
    with st.container(horizontal=True, horizontal_alignment="distribute", vertical_alignment="center"):
        if pages > 1:
            st.session_state["page-number"] = wanted.page
            st.pagination(pages, key="page-number", on_change=_turn_page)
        if wanted.order == "random":
            st.button("Shuffle again", icon=":material/shuffle:", on_click=_shuffle)
        if total > min(address.PAGE_SIZES):
            st.session_state["page-size"] = wanted.size
            st.segmented_control(
                "Cases on a page",
                address.PAGE_SIZES,
                key="page-size",
                label_visibility="collapsed",
                format_func=lambda size: f"{size} a page",
                required=True,
                on_change=_choose_size,
            )


def show_nothing_yet(workbench: Workbench) -> None:
    """Draw what a person without any case reads: what a case is, and the ways to get some."""
    st.title("No cases yet")
    st.markdown(PRODUCT)
    st.markdown(
        "A case is a question, the evidence a retrieval system found for it, and the answer a model wrote from that "
        "evidence. An audit checks every citation and every claim of the answer against the evidence; you decide what "
        "happens with it. There are three ways to begin:"
    )
    look, paste, bring = st.columns(3, gap="medium")
    with look.container(border=True, height="stretch"):
        st.markdown("**Look around**")
        st.markdown("Adds prepared cases from ten fields to this database, some with fabricated citations.")
        if st.button("Load the demo cases", type="primary", **needs("audit")):
            workbench.cases.add_demo(actor())
            st.rerun()
    with paste.container(border=True, height="stretch"):
        st.markdown("**Audit one answer**")
        st.markdown("Paste or upload a question, the evidence and, if you have one, the answer.")
        st.page_link("pages/new.py", label="New audit", icon=":material/add_circle:")
    with bring.container(border=True, height="stretch"):
        st.markdown("**Import many cases**")
        st.markdown("Upload a file: your own columns, or what another tool exported. On the command line:")
        st.code(command("masis import cases.jsonl"), language=None, wrap_lines=True)
        st.page_link("pages/imports.py", label="Import", icon=":material/upload_file:")
    st.caption("This database")
    st.text(str(workbench.database))


_QUESTION = column("Question", "main")
_REASONS = column("Why it needs review", "pills", hide="hide-narrow")
_ISSUES = column("Issues in the original answer", "pills", hide="hide-medium")
_QUALITY = column("Quality", "figure", hide="hide-narrow")
CASES: list[Column] = [
    *(_QUESTION, column("State", "pills"), _REASONS, _ISSUES, _QUALITY),
    column("Confidence", "figure", hide="hide-medium"),
]
CASES_IN_BRIEF: list[Column] = [_QUESTION, _REASONS, _ISSUES, _QUALITY]
"""For cases that all have the same state, which is said above the list."""


MINE: LabelData = {"text": "assigned to you", "tone": "busy", "meaning": "Somebody gave this case to you to decide"}


def case_row(summary: CaseSummary, parameters: dict[str, str], *, brief: bool = False, mine: bool = False) -> Row:
    """Return a case as a row of ``CASES`` or ``CASES_IN_BRIEF``.

    Args:
        summary: the case.
        parameters: describe the list the case is in (``address.list_parameters``).
        brief: whether the row is one of ``CASES_IN_BRIEF``.
        mine: whether the case is assigned to whoever looks at the list.

    """
    flags = _first([label(word) for flag, word in FLAG.items() if flag in summary.flags], FLAGS_SHOWN)
    return link_row(summary, address.link("review", **parameters, case=summary.id), flags, brief=brief, mine=mine)


def _first(labels: list[LabelData], most: int) -> list[LabelData]:
    """Return the first labels, and how many more there are."""
    hidden = len(labels) - most
    if hidden <= 0:
        return labels
    return [*labels[:most], {"text": f"+{hidden}", "tone": "calm", "meaning": "Open the case for all"}]


def link_row(
    summary: CaseSummary, href: str, flags: list[LabelData], *, brief: bool = False, mine: bool = False
) -> Row:
    """Return a case as a row that leads to ``href``."""
    below = "  ·  ".join(each for each in (summary.field, summary.id) if each)
    question: Cell = {"text": summary.query, "href": href, "open": summary.id, "below": [below]}
    if mine:
        question["pills"] = [MINE]
    none = "none found" if summary.run_id is not None else None
    issues: Cell | str | None = {"pills": flags} if flags else none
    codes = _first([label(word) for code, word in REASON.items() if code in summary.reasons], REASONS_SHOWN)
    why: Cell | str | None = {"pills": codes} if codes else None
    quality: Cell = {"score": summary.quality, "below": [_revised(summary)]}
    if brief:
        return row(question, why, issues, quality, open=summary.id)
    state: Cell = {"pills": [label(STATE[summary.state])], "below": [summary.reviewer or ""]}
    return row(question, state, why, issues, quality, {"score": summary.confidence}, open=summary.id)


def _revised(summary: CaseSummary) -> str:
    """Return the quality of the best revision, where there is one."""
    return "" if summary.revised_quality is None else f"revised {summary.revised_quality:.2f}"


def _counted(page: CasePage, number: int, size: int) -> str:
    first = (number - 1) * size + 1
    shown = f"{first:,} to {first + len(page.rows) - 1:,} of " if page.total > len(page.rows) else ""
    return shown + counted(page.total, "case")


def _search() -> None:
    address.put("q", st.session_state["search"].strip())
    address.put("page", "")


def _choose_order() -> None:
    chosen = st.session_state["order"]
    address.put("order", "" if chosen == address.ORDER else chosen)
    address.put("page", "")


def _choose_several(name: str) -> None:
    address.put_words(name, st.session_state[name])
    address.put("page", "")


def _choose_range(name: str) -> None:
    low, high = st.session_state[name]
    address.put_bounds(name, low, high)
    address.put("page", "")


def _choose_size() -> None:
    chosen = st.session_state["page-size"]
    address.put("size", "" if chosen == address.PAGE_SIZE else str(chosen))
    address.put("page", "")


def _shuffle() -> None:
    address.put("seed", str(address.number("seed", 0) % address.LARGEST_SEED + 1))
    address.put("page", "")


def _turn_page() -> None:
    chosen = st.session_state["page-number"]
    address.put("page", str(chosen) if chosen > 1 else "")


def _remove_filter(name: str, word: str | None) -> None:
    address.put_words(name, [each for each in address.words(name) if each != word] if word else [])
    address.put("page", "")


def _clear() -> None:
    for name in (*address.FILTERS, "page"):
        address.put(name, "")

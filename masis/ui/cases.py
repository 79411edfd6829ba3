"""The list of cases: search, filters, pages, and what to do when there is nothing to show."""

from __future__ import annotations

from typing import Any

import streamlit as st

from masis.store.records import CasePage, CaseSummary, Facets
from masis.ui import address
from masis.ui.components import case_list
from masis.ui.desk import label, state_label
from masis.ui.words import FLAG, STATE, STATES, spoken
from masis.workbench import Workbench

FLAGS_SHOWN = 4


def show_cases(bench: Workbench) -> None:
    """The page of all cases."""
    facets = bench.store.cases.facets()
    if not sum(facets.states.values()):
        _show_nothing_yet(bench)
        return
    st.title("Queue")
    _filters(facets)
    wanted = address.case_filter(facets.fields)
    page = bench.find_cases(wanted)
    pages = max(1, -(-page.total // wanted.size))
    if wanted.page > pages:
        address.put("page", str(pages) if pages > 1 else "")
        st.rerun()
    if not page.total:
        st.markdown("**No case matches.** Take a word out of the search, or choose fewer filters.")
        st.button("Clear search and filters", on_click=_clear)
        return
    st.caption(_counted(page, wanted.page, wanted.size))
    opened = case_list({"rows": [_row(summary) for summary in page.rows]}, key="case-list")
    if opened:
        address.open_case(opened)
    if pages > 1:
        st.session_state["page-number"] = wanted.page
        st.pagination(pages, key="page-number", on_change=_turn_page)


def _filters(facets: Facets) -> None:
    search, field, order = st.columns([5, 3, 3], vertical_alignment="bottom")
    with search:
        st.session_state["search"] = address.value("q")[: address.LONGEST_QUERY]
        st.text_input(
            "Search",
            key="search",
            placeholder="Words in question, answer or evidence",
            max_chars=address.LONGEST_QUERY,
            on_change=_search,
        )
    with field:
        names = list(facets.fields)
        st.session_state["field"] = address.value("field") if address.value("field") in names else None
        st.selectbox(
            "Field", names, key="field", placeholder="Any field", index=None, on_change=_choose, args=("field",)
        )
    with order:
        st.session_state["order"] = address.order()
        st.selectbox(
            "Order",
            list(address.ORDERS),
            key="order",
            format_func=address.ORDERS.__getitem__,
            on_change=_choose,
            args=("order",),
        )
    states = [state for state in STATES if facets.states.get(state)]
    flags = [flag for flag in FLAG if facets.flags.get(flag)]
    left, right = st.columns([5, 6])
    with left:
        st.session_state["state"] = address.several("state", states)
        st.pills(
            "State",
            states,
            key="state",
            selection_mode="multi",
            format_func=lambda state: f"{STATE[state].text} {facets.states[state]:,}",
            on_change=_choose_several,
            args=("state",),
        )
    if flags:
        with right:
            st.session_state["flag"] = address.several("flag", flags)
            st.pills(
                "Found in the answer as it came",
                flags,
                key="flag",
                selection_mode="multi",
                format_func=lambda flag: f"{FLAG[flag].text} {facets.flags[flag]:,}",
                on_change=_choose_several,
                args=("flag",),
            )


def _show_nothing_yet(bench: Workbench) -> None:
    st.title("No cases yet")
    st.markdown(
        "A case is a question, the evidence a retrieval system found for it, and the answer a model wrote from that "
        "evidence. Bring yours from the command line, one JSON object a line:"
    )
    st.code(
        'masis import cases.jsonl\n\n{"id": "1", "query": "...", "answer": "... [c1]", "evidence": '
        '[{"id": "c1", "text": "..."}]}',
        language=None,
    )
    st.markdown("Or load the demo cases into this database and look around:")
    if st.button("Load the demo cases", type="primary"):
        bench.load_demo()
        st.rerun()
    st.caption("This database")
    st.text(str(bench.database))


def _row(summary: CaseSummary) -> dict[str, Any]:
    flags = [label(word) for flag, word in FLAG.items() if flag in summary.flags]
    hidden = len(flags) - FLAGS_SHOWN
    if hidden > 0:
        flags = [*flags[:FLAGS_SHOWN], {"text": f"+{hidden}", "tone": "calm", "meaning": "More inside"}]
    return {
        "id": summary.id,
        "question": summary.query,
        "field": summary.field or "",
        "state": state_label(summary.state),
        "flags": flags,
        "audited": summary.run_id is not None,
        "quality": summary.quality,
        "confidence": summary.confidence,
    }


def _counted(page: CasePage, number: int, size: int) -> str:
    first = (number - 1) * size + 1
    shown = f"{first:,} to {first + len(page.rows) - 1:,} of " if page.total > len(page.rows) else ""
    return shown + spoken(page.total, "case")


def _search() -> None:
    address.put("q", st.session_state["search"].strip())
    address.put("page", "")


def _choose(name: str) -> None:
    chosen = st.session_state[name] or ""
    address.put(name, "" if (name, chosen) == ("order", "telling") else chosen)
    address.put("page", "")


def _choose_several(name: str) -> None:
    address.put(name, ",".join(st.session_state[name]))
    address.put("page", "")


def _turn_page() -> None:
    chosen = st.session_state["page-number"]
    address.put("page", str(chosen) if chosen > 1 else "")


def _clear() -> None:
    for name in ("q", "state", "flag", "field", "page"):
        address.put(name, "")

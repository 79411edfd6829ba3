"""One screening that is over: what came of it, its rounds, its abstracts, one of them opened with its reasons."""

from __future__ import annotations

from collections.abc import Callable

import streamlit as st

from masis.schema.screening import Abstract, Grade, Recommendation, Screening
from masis.screening.rounds.overrides import effective_overrides
from masis.services.screening import OpenedScreening
from masis.ui.components import case_head
from masis.ui.screening.abstract import abstract_data
from masis.ui.screening.charts import convergence
from masis.ui.screening.components import screening_abstract, screening_flow, screening_rounds, screening_table
from masis.ui.screening.view import ORDERS, Order, abstract_row, counts, flow_steps, listed, round_rows
from masis.ui.screening.wording import OUTCOME, RECOMMENDATION, RECOMMENDATIONS
from masis.ui.shell import address
from masis.ui.shell.frame import tab_title
from masis.ui.shell.wording import LabelData, label, spoken

PAGE_SIZE = 15
ROWS_KEY = "screening-rows"


def head(screening: Screening, *, outcome: LabelData | None = None) -> None:
    """The question, what came of it and why."""
    facts = [
        spoken(len(screening.rounds), "round"),
        f"{len(screening.kept)} of {spoken(len(screening.grades), 'abstract')} kept",
        ", ".join(source.removeprefix("corpus:") for source in screening.retrievers),
        f"graded by {', '.join(screening.graders)}",
        screening.started_at[:16].replace("T", " ") + " UTC",
    ]
    state = outcome or label(OUTCOME[screening.outcome])
    st.set_page_config(page_title=tab_title(state["text"], screening.question))
    case_head(
        {
            "question": screening.question,
            "state": state,
            "flags": [],
            "facts": [fact for fact in facts if fact],
            "reasons": list(screening.reasons),
        },
        key="screening-head",
    )


def rounds(screening: Screening, *, waiting: str = "") -> None:
    """The rounds beside the chart of how they converged and the flow."""
    left, right = st.columns([58, 42], gap="large")
    with left:
        st.subheader("Rounds")
        screening_rounds(
            {
                "rounds": round_rows(screening.rounds),
                "keep_share": screening.thresholds.keep_share,
                "waiting": waiting,
            },
            key="screening-rounds",
        )
        if screening.thresholds.adapted_by:
            st.caption(
                f"The acceptance memory changed what is required by {screening.thresholds.adapted_by:+.3f}: "
                f"{screening.thresholds.adapted_why}"
            )
    with right:
        st.subheader("Convergence")
        st.vega_lite_chart(convergence(screening.rounds, screening.thresholds), width="stretch")
        st.subheader("Flow")
        screening_flow({"steps": flow_steps(screening.flow)}, key="screening-flow")


def abstracts(opened: OpenedScreening) -> None:
    """The table of graded abstracts: filtered, ordered, paged."""
    screening = opened.screening
    st.subheader("Abstracts")
    if not screening.grades:
        st.markdown("**Nothing was found.** Ask with other words, or look in other places.")
        return
    wanted, order = address.several("show", RECOMMENDATIONS), _order()
    _controls(screening, wanted, order)
    number = address.number("page")
    found = listed(screening, wanted, order, page=number, size=PAGE_SIZE)
    pages = max(1, -(-found.total // PAGE_SIZE))
    if number > pages:
        address.put("page", str(pages) if pages > 1 else "")
        st.rerun()
    chosen = address.value("abstract")
    rows = [
        abstract_row(screening, grade, opened.abstracts.get(grade.abstract_id), opened=chosen) for grade in found.rows
    ]
    clicked = screening_table({"rows": rows}, key="screening-table")
    if clicked is not None and clicked != chosen and screening.grade(clicked):
        address.put("abstract", clicked)
        st.session_state["screening-reveal"] = clicked
        st.rerun()
    if not rows:
        st.markdown("**None has this recommendation.** Choose another one.")
    if pages > 1:
        st.session_state["screening-page"] = number
        st.pagination(pages, key="screening-page", on_change=_turn_page)


def _order() -> Order:
    return next((known for known in ORDERS if known == address.value("order")), "quality")


def _controls(screening: Screening, wanted: list[Recommendation], order: Order) -> None:
    numbers = counts(screening)
    with st.container(horizontal=True, horizontal_alignment="distribute", vertical_alignment="bottom"):
        st.session_state["screening-show"] = wanted
        st.pills(
            "Recommendation",
            [each for each in RECOMMENDATIONS if numbers[each]],
            key="screening-show",
            selection_mode="multi",
            format_func=lambda each: f"{RECOMMENDATION[each].text} {numbers[each]}",
            on_change=_choose_shown,
        )
        st.session_state["screening-order"] = order
        st.selectbox(
            "Order",
            list(ORDERS),
            key="screening-order",
            format_func=ORDERS.__getitem__,
            width=240,
            on_change=_choose_order,
        )


def opened_abstract(opened: OpenedScreening, deciding: Callable[[OpenedScreening, Grade], None]) -> None:
    """The abstract the address names, with its reasons, and below it what ``deciding`` draws."""
    wanted = address.value("abstract")
    if not wanted:
        return
    grade = opened.screening.grade(wanted)
    if grade is None:
        st.info("The abstract in the address is none of this screening.", icon=":material/info:")
        return
    with st.container(horizontal=True, horizontal_alignment="distribute", vertical_alignment="center"):
        st.subheader("One abstract", width="content")
        with st.container(horizontal=True, horizontal_alignment="right", width="content"):
            _beside(opened, grade)
    said = effective_overrides(opened.overrides).get(grade.abstract_id, {})
    abstract = opened.abstracts.get(grade.abstract_id) or Abstract(id=grade.abstract_id)
    reveal = st.session_state.pop("screening-reveal", "") == wanted
    data = abstract_data(grade, abstract, machine=opened.machine.grade(wanted), overrides=said)
    screening_abstract({**data, "reveal": reveal}, key="screening-abstract")
    deciding(opened, grade)


def _beside(opened: OpenedScreening, grade: Grade) -> None:
    """Back and forth along the list as it is filtered and ordered, and a way to close."""
    found = listed(
        opened.screening, address.several("show", RECOMMENDATIONS), _order(), size=len(opened.screening.grades)
    )
    ids = [each.abstract_id for each in found.rows]
    place = ids.index(grade.abstract_id) if grade.abstract_id in ids else None
    before = ids[place - 1] if place else ""
    after = ids[place + 1] if place is not None and place + 1 < len(ids) else ""
    st.button(
        "Previous",
        key="screening-previous",
        icon=":material/chevron_left:",
        type="tertiary",
        disabled=not before,
        shortcut="K",
        on_click=address.put,
        args=("abstract", before),
    )
    st.button(
        "Next",
        key="screening-next",
        icon=":material/chevron_right:",
        type="tertiary",
        disabled=not after,
        shortcut="J",
        on_click=address.put,
        args=("abstract", after),
    )
    st.button(
        "Close",
        key="screening-close",
        icon=":material/close:",
        type="tertiary",
        on_click=address.put,
        args=("abstract", ""),
    )


def _choose_shown() -> None:
    address.put_words("show", st.session_state["screening-show"])
    address.put("page", "")


def _choose_order() -> None:
    chosen = st.session_state["screening-order"]
    address.put("order", "" if chosen == "quality" else chosen)
    address.put("page", "")


def _turn_page() -> None:
    chosen = st.session_state["screening-page"]
    address.put("page", str(chosen) if chosen > 1 else "")

"""One screening that is over: what came of it, its rounds, its abstracts, one of them opened with its reasons."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import streamlit as st

from masis.schema.screening import Abstract, Grade, Recommendation, Round, Screening
from masis.schema.wording import counted
from masis.screening.rounds.overrides import effective_overrides
from masis.services.screening import OpenedScreening
from masis.ui.components import registered
from masis.ui.components.case_head import case_head
from masis.ui.components.linked_table import linked_table
from masis.ui.screening.charts import show_convergence
from masis.ui.screening.screening_tables import (
    ABSTRACT_COLUMNS,
    ORDERS,
    Order,
    abstract_row,
    counts,
    listed,
)
from masis.ui.shell import address
from masis.ui.shell.frame import tab_title
from masis.views.abstract import abstract_data
from masis.views.markdown import badge, escaped
from masis.views.numbers import moment
from masis.views.rounds import rules_text, votes_text
from masis.views.screening import OUTCOME, RECOMMENDATION, RECOMMENDATIONS, SUFFICIENCY
from masis.views.words import LabelData, label

PAGE_SIZE = 15
_ABSTRACT = registered("screening_abstract")


def head(screening: Screening, *, outcome: LabelData | None = None) -> None:
    """Draw the question, the outcome and the reasons for it."""
    facts = [
        counted(len(screening.rounds), "round"),
        f"{len(screening.kept)} of {counted(len(screening.grades), 'abstract')} kept",
        ", ".join(source.removeprefix("corpus:") for source in screening.retrievers),
        f"graded by {', '.join(screening.graders)}",
        moment(screening.started_at) + " UTC",
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
    """Draw the rounds beside the chart of how they converged."""
    left, right = st.columns([58, 42], gap="large")
    with left:
        st.header("Rounds")
        show_rounds(screening.rounds, screening.thresholds.keep_share, waiting)
        if screening.thresholds.adapted_by:
            st.caption(
                f"The acceptance memory changed the required average by {screening.thresholds.adapted_by:+.3f}: "
                f"{screening.thresholds.adapted_why}"
            )
    with right:
        st.header("Convergence")
        show_convergence(screening.rounds, screening.thresholds)


def show_rounds(rounds: Iterable[Round], keep_share: float, waiting: str = "") -> None:
    """Draw the rounds: what was searched and why, how the grades voted, whether both rules are satisfied."""
    for each in rounds:
        with st.container(border=True, gap="xsmall", key=f"screening-round-{each.number}"):
            st.markdown(
                f"**Round {each.number}** {badge(SUFFICIENCY[each.ruling.decision])} "
                f"{len(each.retrieved):,} found, {len(each.new):,} graded for the first time"
            )
            for query in each.queries:
                st.text(f"{query.text}\n{query.why}")
            st.markdown(f"{votes_text(each)}; consensus needs {keep_share:.0%} keep")
            st.markdown(rules_text(each))
            if each.missing:
                st.text(f"Missing: {' '.join(each.missing)}")
            for warning in each.warnings:
                st.text(f"⚠ {warning}")
    if waiting:
        st.caption(escaped(waiting))


def abstracts(opened: OpenedScreening) -> None:
    """Draw the table of graded abstracts: filtered, ordered, paged."""
    screening = opened.screening
    st.header("Abstracts")
    if not screening.grades:
        st.markdown("**Nothing was found.** Use other words in the question, or other sources.")
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
    clicked = linked_table(ABSTRACT_COLUMNS, rows, description="Graded abstracts", key="screening-table")
    if clicked is not None and clicked != chosen and screening.grade(clicked):
        address.put("abstract", clicked)
        st.session_state["screening-reveal"] = clicked
        st.rerun()
    if not rows:
        st.markdown("**No abstract has this recommendation.** Choose another one.")
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
    """Draw the abstract the address names with its reasons, and below it what ``deciding`` draws."""
    wanted = address.value("abstract")
    if not wanted:
        return
    grade = opened.screening.grade(wanted)
    if grade is None:
        st.info("The abstract in the address does not belong to this screening.", icon=":material/info:")
        return
    with st.container(horizontal=True, horizontal_alignment="distribute", vertical_alignment="center"):
        st.header("Abstract", width="content")
        with st.container(horizontal=True, horizontal_alignment="right", width="content"):
            _beside(opened, grade)
    overrides = effective_overrides(opened.overrides).get(grade.abstract_id, {})
    abstract = opened.abstracts.get(grade.abstract_id) or Abstract(id=grade.abstract_id)
    reveal = st.session_state.pop("screening-reveal", "") == wanted
    data = abstract_data(grade, abstract, machine=opened.machine.grade(wanted), overrides=overrides)
    _ABSTRACT(data={**data, "reveal": reveal}, key="screening-abstract")
    deciding(opened, grade)


def _beside(opened: OpenedScreening, grade: Grade) -> None:
    """Draw buttons for the previous and the next abstract of the list, and one to close."""
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

"""The page that compares two systems over the questions that both answered, regressions first."""

from __future__ import annotations

from collections.abc import Sequence

import altair as alt
import streamlit as st

from masis.errors import MasisError
from masis.schema.comparison import (
    GROUPS,
    MEASURES,
    AnswerPair,
    GroupName,
    Judgement,
    Measure,
    PairedDifference,
    SystemComparison,
)
from masis.schema.systems import LONGEST_DETAIL, UNNAMED, System, SystemDetails
from masis.schema.wording import count_noun
from masis.services import Workbench
from masis.ui.components import register_component
from masis.ui.components.charts import draw_chart
from masis.ui.components.linked_table import TableCell, column, linked_table, row
from masis.ui.shell import address
from masis.ui.shell.permissions import button_state
from masis.ui.shell.reviewer import actor
from masis.ui.shell.served_database import served_workbench
from masis.views.answer_pair import answer_pair, pair_side
from masis.views.charts import GREY, ROWS
from masis.views.markdown import badge, escape_markdown
from masis.views.systems import (
    CONCLUSION,
    JUDGEMENT,
    conclusion_word,
    difference_text,
    figure_with_base,
    left_out_text,
    listed_parts,
    measure_rows,
    small_parts_text,
    system_text,
    verdict_text,
)
from masis.views.words import label

_PAIR = register_component("answer_pair")
_SHOWN = 50
"""How many regressions a page lists at first."""


def show_compare(workbench: Workbench) -> None:
    """Draw the comparison of the two systems in the address, or of the two added last."""
    st.title("Compare systems")
    systems = workbench.systems.all(actor())
    if len(systems) < 2:
        _explain_systems(systems)
        return
    first, second = chosen_systems(systems, address.value("first"), address.value("second"))
    _draw_system_choice(systems, first.name, second.name)
    if first.name == second.name:
        st.markdown("**The same system is on both sides.** Choose another one.")
        return
    [comparison] = workbench.comparison.compare(actor(), (first.name, second.name))
    _draw_systems_verdict(comparison)
    _draw_question_list(workbench, comparison)
    _draw_measures(comparison)
    _draw_groups(comparison)
    _draw_descriptions(first, second)


def chosen_systems(
    systems: Sequence[System], first_name: str, second_name: str
) -> tuple[System, System]:
    """Return the systems with these names, or else the two added last, the older one first."""
    by_name = {system.name: system for system in systems}
    named = [system for system in systems if system.name != UNNAMED or len(systems) < 3]
    second = by_name.get(second_name) or next(
        system for system in reversed(named) if system.name != first_name
    )
    first = by_name.get(first_name) or next(
        system for system in reversed(named) if system is not second
    )
    return first, second


def _explain_systems(systems: Sequence[System]) -> None:
    here = f"The answers here are all of the system {systems[0].name}." if systems else ""
    st.markdown(
        "A system is what answered: a model with its prompt and its version. Import the answers of"
        " another system to the same questions, and this page shows which one is better, how sure"
        f" that is, and every question that got worse. {escape_markdown(here)}"
    )
    st.code("masis import answers.jsonl --system v2", language=None)


def _draw_system_choice(systems: Sequence[System], first: str, second: str) -> None:
    lines = {system.name: f"{system.name} ({system_text(system)})" for system in systems}
    left, right, button = st.columns([5, 5, 2], vertical_alignment="bottom")
    for place, title, name, chosen in (
        (left, "Before", "first", first),
        (right, "Now", "second", second),
    ):
        with place:
            bound = address.bind_query_param(
                name, shows=chosen, key=f"system-{name}", drops=("pair", "list")
            )
            st.selectbox(title, list(lines), format_func=lines.__getitem__, **bound)
    with button:
        st.button(
            "Swap",
            icon=":material/swap_horiz:",
            width="stretch",
            on_click=_swap_systems,
            args=(first, second),
        )


def _swap_systems(first: str, second: str) -> None:
    address.set_param("first", second)
    address.set_param("second", first)
    address.clear(("pair", "list"))


def _draw_systems_verdict(comparison: SystemComparison) -> None:
    flagged = comparison.measure("flagged")
    with st.container(border=True):
        words = escape_markdown(verdict_text(comparison))
        st.markdown(f"{badge(CONCLUSION[flagged.conclusion])} **{words}**")
        st.caption(
            "An answer is wrong if a person rejected or corrected it, or if the audit flagged it"
            " and nobody decided it. An answer that isn't confirmed doesn't count as wrong."
        )
        if left_out := left_out_text(comparison):
            st.caption(escape_markdown(left_out))


def _draw_question_list(workbench: Workbench, comparison: SystemComparison) -> None:
    """Draw the questions that got worse or better, with the answers to the chosen one."""
    titles = {
        "worse": f"Regressions ({comparison.regression_count:,})",
        "better": f"Improvements ({comparison.improvement_count:,})",
    }
    shown = "better" if address.value("list") == "better" else "worse"
    st.header("Regressions" if shown == "worse" else "Improvements")
    st.segmented_control(
        "Questions",
        list(titles),
        format_func=titles.__getitem__,
        required=True,
        label_visibility="collapsed",
        **address.bind_query_param(
            "list", "worse", shows=shown, key="compare-list", drops=("pair",)
        ),
    )
    pairs = comparison.regressions if shown == "worse" else comparison.improvements
    if not pairs:
        none = {
            "worse": "No question that was right before is wrong now.",
            "better": "No question that was wrong before is right now.",
        }
        st.markdown(none[shown])
        return
    total = comparison.regression_count if shown == "worse" else comparison.improvement_count
    what = "right before, wrong now" if shown == "worse" else "wrong before, right now"
    st.caption(f"{count_noun(total, 'question')}: {what}. Choose one to read both answers.")
    chosen = next((pair for pair in pairs if pair.question == address.value("pair")), None)
    if chosen is not None:
        _draw_both_answers(workbench, chosen, list(pairs))
    everything = address.value("all") == "yes" or (chosen is not None and chosen in pairs[_SHOWN:])
    listed = pairs if everything else pairs[:_SHOWN]
    opened = linked_table(
        [
            column("Question", "main"),
            column(f"Before: {comparison.first.name}", "pills"),
            column(f"Now: {comparison.second.name}", "pills"),
            column("Worst issue", hide="hide-narrow"),
        ],
        [
            row(
                {
                    "text": pair.query,
                    "href": address.link(
                        "compare",
                        first=comparison.first.name,
                        second=comparison.second.name,
                        list="" if shown == "worse" else shown,
                        pair=pair.question,
                    ),
                    "open": pair.question,
                    "current": pair is chosen,
                    "below": [" · ".join(filter(None, [pair.question, pair.field]))],
                },
                {"pills": [label(JUDGEMENT[pair.first_judgement])]},
                {"pills": [label(JUDGEMENT[pair.second_judgement])]},
                pair.severity,
                open=pair.question,
                marked=pair is chosen,
            )
            for pair in listed
        ],
        description="Questions that got worse" if shown == "worse" else "Questions that got better",
        key="compare-pairs",
    )
    if opened and (chosen is None or opened != chosen.question):
        address.set_param("pair", opened)
        st.rerun()
    if len(listed) < len(pairs):
        st.button(
            f"List {len(pairs):,} of {total:,}",
            on_click=address.set_param,
            args=("all", "yes"),
        )
    elif total > len(pairs):
        st.caption(f"The worst {len(pairs):,} of {total:,} are listed.")


def _draw_both_answers(workbench: Workbench, pair: AnswerPair, pairs: list[AnswerPair]) -> None:
    """Draw both answers to one question, with buttons to the question before and after it."""
    place = pairs.index(pair)
    st.subheader(f"Question {place + 1} of {len(pairs)}", anchor="answers")
    st.text(pair.query)
    if workbench.preferences.hides_system(actor(), pair.first):
        st.info(
            "Your team's policy hides which system wrote which answer until you've given your"
            " preference on this question.",
            icon=":material/visibility_off:",
        )
        st.page_link("pages/preference.py", label="Preference", icon=":material/thumbs_up_down:")
        return
    sides = []
    for case_id, judgement in (
        (pair.first, pair.first_judgement),
        (pair.second, pair.second_judgement),
    ):
        known: Judgement = judgement
        answer = workbench.comparison.open_answer(actor(), case_id)
        href = address.link("review", case=case_id)
        sides.append(pair_side(answer.case, answer.run, known, href=href))
    with st.container(horizontal=True):
        for title, other, icon in (
            ("Previous question", place - 1, ":material/arrow_back:"),
            ("Next question", place + 1, ":material/arrow_forward:"),
        ):
            inside = 0 <= other < len(pairs)
            st.button(
                title,
                icon=icon,
                disabled=not inside,
                on_click=address.set_param,
                args=("pair", pairs[other].question if inside else ""),
            )
        st.button("Close", icon=":material/close:", on_click=address.set_param, args=("pair", ""))
    _PAIR(data=answer_pair(*sides), key="compare-pair")


def _draw_measures(comparison: SystemComparison) -> None:
    st.header("All measures")
    rows = measure_rows(comparison)
    if not rows:
        st.markdown(
            "No measure is known for both answers to any question. Audit the answers first."
        )
        return
    linked_table(
        [
            column("Measure", "main"),
            column(comparison.first.name, "figure"),
            column(comparison.second.name, "figure"),
            column("Difference (95% interval)", "figure"),
            column("Conclusion", "pills"),
            column("p", "figure", hide="hide-medium"),
        ],
        [
            row(
                {"text": measure.title, "below": [measure.meaning]},
                figure_with_base(measure, difference, second=False),
                figure_with_base(measure, difference, second=True),
                _difference_cell(measure, difference),
                {"pills": [label(conclusion_word(difference, measure))]},
                None if difference.p is None else f"{difference.p:.3f}",
            )
            for measure, difference in rows
        ],
        description="Measures of both systems",
        key="compare-measures",
    )
    points = [
        {
            "measure": measure.title,
            "difference": difference.difference,
            "low": difference.low,
            "high": difference.high,
        }
        for measure, difference in rows
        if measure.unit == "share" and difference.low is not None
    ]
    if points:
        draw_chart(
            difference_chart,
            rows=points,
            description="Differences of shares with their 95% intervals",
        )
        st.caption(
            f"Left of zero, {escape_markdown(comparison.second.name)} has fewer such answers, which"
            " is better. Lines are 95% intervals over the shared questions."
        )


def _difference_cell(measure: Measure, difference: PairedDifference) -> TableCell:
    """Return a difference with its interval on a line of its own, which needs less width."""
    text, _, interval = difference_text(measure, difference).partition(" (")
    return {"text": text, "below": [interval.removesuffix(")")] if interval else []}


def difference_chart() -> alt.TopLevelMixin:
    """Describe differences of shares with their intervals around zero."""
    base = alt.Chart(ROWS, height=alt.Step(30)).encode(
        y=alt.Y("measure:N", title=None, sort=None, axis=alt.Axis(labelLimit=200))
    )
    lines = base.mark_rule(color=GREY, strokeWidth=2).encode(
        x=alt.X("low:Q", title="Difference", axis=alt.Axis(format="+%", tickCount=6)), x2="high:Q"
    )
    points = base.mark_point(filled=True, size=80).encode(
        x="difference:Q",
        tooltip=[
            "measure:N",
            *(alt.Tooltip(f"{name}:Q", format="+.1%") for name in ("difference", "low", "high")),
        ],
    )
    zero = alt.Chart(ROWS).mark_rule(strokeDash=[4, 3], color=GREY).encode(x=alt.datum(0))
    return alt.layer(zero, lines, points)


def _draw_groups(comparison: SystemComparison) -> None:
    if not comparison.groups:
        return
    st.header("Where they differ")
    parts, left_out = listed_parts(comparison)
    titles: dict[GroupName, str] = {
        name: title for name, title in GROUPS.items() if any(group.group == name for group in parts)
    }
    asked = address.value("by")
    shown = next((name for name in titles if name == asked), next(iter(titles)))
    st.segmented_control(
        "Break down by",
        list(titles),
        format_func=titles.__getitem__,
        required=True,
        **address.bind_query_param(
            "by", next(iter(titles)), shows=shown, key="compare-by", drops=()
        ),
    )
    meaning = {
        "field": "Wrong answers among the questions of each field.",
        "mode": "Answers to which people applied each failure mode.",
        "cause": "Answers with a fault of each cause, by the audit's issues and people's labels.",
    }
    st.caption(meaning[shown])
    flagged = MEASURES["flagged"]
    linked_table(
        [
            column(GROUPS[shown], "main"),
            column(comparison.first.name, "figure"),
            column(comparison.second.name, "figure"),
            column("Difference (95% interval)", "figure"),
            column("Conclusion", "pills"),
        ],
        [
            row(
                {"text": group.value},
                figure_with_base(flagged, group, second=False),
                figure_with_base(flagged, group, second=True),
                _difference_cell(flagged, group),
                {"pills": [label(CONCLUSION[group.conclusion])]},
            )
            for group in parts
            if group.group == shown
        ],
        description=f"Differences by {GROUPS[shown].lower()}",
        key="compare-groups",
    )
    if left_out:
        st.caption(small_parts_text(left_out))


def _draw_descriptions(first: System, second: System) -> None:
    with st.expander("What the systems are", icon=":material/settings_suggest:"):
        for place, system in zip(st.columns(2), (first, second), strict=True):
            with place, st.form(f"system-{system.name}"):
                st.markdown(f"**{escape_markdown(system.name)}**")
                fields = {
                    "model": st.text_input("Model", system.model, max_chars=200),
                    "version": st.text_input("Version", system.version, max_chars=200),
                    "date": st.text_input("Date", system.date, max_chars=200),
                    "prompt": st.text_area("Prompt", system.prompt, max_chars=LONGEST_DETAIL),
                }
                if st.form_submit_button("Save", **button_state("audit")):
                    _save(system.name, SystemDetails(**fields))


def _save(name: str, details: SystemDetails) -> None:
    try:
        served_workbench().systems.describe(actor(), name, details)
    except MasisError as error:
        st.error(escape_markdown(str(error)))
        return
    st.toast("Saved")
    st.rerun()

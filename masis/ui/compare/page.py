"""The page that compares two systems over the questions that both answered, regressions first."""

from __future__ import annotations

import re
from collections.abc import Sequence

import altair as alt
import streamlit as st

from masis.datasets.writers.lines import csv_line
from masis.errors import MasisError
from masis.schema.case import Severity
from masis.schema.comparison import (
    GROUPS,
    LIST_NAMES,
    MEASURES,
    AnswerPair,
    Judgement,
    ListName,
    Measure,
    PairedDifference,
    SystemComparison,
)
from masis.schema.systems import LONGEST_DETAIL, UNNAMED, System, SystemDetails
from masis.schema.wording import count_noun
from masis.services import Workbench
from masis.ui.components import noop, register_component
from masis.ui.components.charts import draw_chart
from masis.ui.components.linked_table import TableCell, column, linked_table, row
from masis.ui.shell import address
from masis.ui.shell.keys import NEXT_PAIR, PREVIOUS_PAIR
from masis.ui.shell.permissions import button_state
from masis.ui.shell.reviewer import actor
from masis.ui.shell.served_database import served_workbench
from masis.views.answer_pair import PairHeading, answer_pair, pair_side
from masis.views.charts import GREY, ROWS
from masis.views.markdown import TONE_COLOUR, escape_markdown
from masis.views.systems import (
    CONCLUSION,
    JUDGEMENT,
    LISTS,
    WITHOUT_PARTS,
    AnswerWords,
    ListedRow,
    causes_text,
    certainty_text,
    conclusion_word,
    difference_text,
    differing_parts,
    figure_with_base,
    gate_command,
    gate_test,
    issue_text,
    left_out_text,
    listed_parts,
    listed_rows,
    measure_groups,
    no_parts_differ_text,
    part_meaning,
    small_parts_text,
    system_text,
    verdict_details,
    verdict_head,
)
from masis.views.words import label

_PAIR = register_component("answer_pair")
_SHOWN = 50
"""How many questions of a list a page shows at first."""
_IN_FULL = 500
"""How many rows of a file have the answers, reasons and notes, which take a millisecond each."""
_REMEMBERED, _FOCUS = "compare-systems", "compare-focus"
"""Keys of the session: the systems compared last in their order, and how often a question was
opened, which tells the component to bring it into view.
"""


def show_compare(workbench: Workbench) -> None:
    """Draw the comparison of the two systems in the address, or of those compared last in this
    session, or else of the two added last.
    """
    st.title("Compare systems")
    systems = workbench.systems.all(actor())
    if len(systems) < 2:
        _explain_systems(systems)
        return
    remembered = st.session_state.get(_REMEMBERED, ("", ""))
    named = address.value("first"), address.value("second")
    first, second = chosen_systems(systems, *(named if any(named) else remembered))
    st.session_state[_REMEMBERED] = (first.name, second.name)
    _draw_system_choice(systems, first.name, second.name)
    [comparison] = workbench.comparison.compare(actor(), (first.name, second.name))
    _draw_systems_verdict(comparison)
    _draw_question_list(workbench, comparison)
    _draw_measures(comparison)
    _draw_groups(comparison)
    _draw_release_check(comparison)
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
    if first is second:
        first = next(system for system in reversed(named) if system is not second)
    return first, second


def _explain_systems(systems: Sequence[System]) -> None:
    here = ""
    if systems:
        name = systems[0].name
        here = (
            "No answer here names its system."
            if name == UNNAMED
            else f"All answers here are from {name}."
        )
    st.markdown(
        "A system is the model, prompt and version that produced the answers. Import another"
        " system's answers to the same questions, and this page shows which one is better, how sure"
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
        key = f"system-{name}"
        # Reset on every rerun: Back and Forward change only the URL, and the select box must
        # follow.
        st.session_state[key] = chosen
        with place:
            st.selectbox(
                title,
                list(lines),
                format_func=lines.__getitem__,
                key=key,
                on_change=_choose_system,
                args=(name, first, second),
            )
    with button:
        st.button(
            "Swap",
            icon=":material/swap_horiz:",
            width="stretch",
            on_click=_swap_systems,
            args=(first, second),
        )


def _choose_system(name: str, first: str, second: str) -> None:
    """Compare with another system. Choosing the other side's system swaps both."""
    chosen = st.session_state[f"system-{name}"]
    if chosen in (first, second):
        _swap_systems(first, second)
        return
    address.set_param("first", chosen if name == "first" else first)
    address.set_param("second", chosen if name == "second" else second)
    address.clear(("pair", "list"))


def _swap_systems(first: str, second: str) -> None:
    """Swap the systems. An open question stays open, in the list that it is now in."""
    swapped = {"": "better", "worse": "better", "better": ""}
    address.set_param("list", swapped.get(address.value("list"), address.value("list")))
    address.set_param("first", second)
    address.set_param("second", first)


def _draw_systems_verdict(comparison: SystemComparison) -> None:
    conclusion = CONCLUSION[comparison.measure("flagged").conclusion]
    with st.container(border=True):
        head = escape_markdown(verdict_head(comparison))
        st.markdown(f":{TONE_COLOUR[conclusion.tone]}[**{head}**]")
        details = verdict_details(comparison)
        st.markdown("\n".join(f"- {escape_markdown(line)}" for line in details))
        st.caption(
            "An answer is wrong if a person rejected or corrected it, or if the audit flagged it"
            " and nobody decided it. An answer that isn't confirmed doesn't count as wrong."
        )
        if left_out := left_out_text(comparison):
            st.caption(escape_markdown(left_out))
        st.page_link(
            "pages/preference.py",
            label="People's preferences between these systems",
            icon=":material/thumbs_up_down:",
            query_params={"view": "results"},
        )


def _draw_question_list(workbench: Workbench, comparison: SystemComparison) -> None:
    """Draw one of the lists of questions, with the answers to the chosen one."""
    titles = {
        name: f"{LISTS[name].title} ({comparison.list_questions(name)[1]:,})" for name in LIST_NAMES
    }
    asked = address.value("list")
    shown: ListName = next((name for name in LIST_NAMES if name == asked), "worse")
    words = LISTS[shown]
    st.header(words.title)
    st.segmented_control(
        "Questions",
        list(titles),
        format_func=titles.__getitem__,
        required=True,
        label_visibility="collapsed",
        **address.bind_query_param(
            "list", "worse", shows=shown, key="compare-list", drops=("pair", "all")
        ),
    )
    pairs, total = comparison.list_questions(shown)
    if not pairs:
        st.markdown(words.nothing)
        return
    with st.container(horizontal=True, vertical_alignment="center"):
        st.caption(
            f"{count_noun(total, 'question')}: {words.meaning}. Choose one to read both answers."
        )
        st.download_button(
            "Download as CSV",
            lambda: _csv_of(workbench, comparison, shown),
            file_name=_file_name(comparison, shown),
            mime="text/csv",
            icon=":material/download:",
            on_click="ignore",
            key="compare-csv",
            type="tertiary",
        )
    chosen = next((pair for pair in pairs if pair.question == address.value("pair")), None)
    if chosen is None:
        st.button(
            "Read the first question",
            icon=":material/arrow_forward:",
            shortcut=NEXT_PAIR.shortcut,
            on_click=_open_pair,
            args=(comparison, pairs[0].question),
        )
    else:
        _draw_both_answers(workbench, comparison, shown, chosen, list(pairs))
    show_all = address.value("all") == "yes" or (chosen is not None and chosen in pairs[_SHOWN:])
    listed = pairs if show_all else pairs[:_SHOWN]
    opened = linked_table(
        [
            column("Question", "main"),
            column(f"Before: {comparison.first.name}", "pills"),
            column(f"Now: {comparison.second.name}", "pills"),
        ],
        [
            row(
                {
                    "text": pair.query,
                    "href": address.link(
                        "compare", **_pair_parameters(comparison, shown, pair.question)
                    ),
                    "open": pair.question,
                    "current": pair is chosen,
                    "below": [" · ".join(filter(None, [pair.question, pair.field]))],
                },
                _judgement_cell(
                    pair.first_judgement, pair.first_severity, audited=pair.first_audited
                ),
                _judgement_cell(
                    pair.second_judgement, pair.second_severity, audited=pair.second_audited
                ),
                open=pair.question,
                marked=pair is chosen,
            )
            for pair in listed
        ],
        description=f"Questions: {words.meaning}",
        key="compare-pairs",
    )
    if opened and (chosen is None or opened != chosen.question):
        _open_pair(comparison, opened)
        st.rerun()
    if len(listed) < len(pairs):
        st.button(
            f"Show {len(pairs):,} of {total:,}",
            on_click=address.set_param,
            args=("all", "yes"),
        )
    elif total > len(pairs):
        st.caption(
            f"The first {len(pairs):,} of {total:,} are listed. The CSV file has all of them."
        )


def _pair_parameters(
    comparison: SystemComparison, shown: ListName, question: str
) -> dict[str, str]:
    """Return the parameters of a question's address, which always names both systems."""
    return {
        "first": comparison.first.name,
        "second": comparison.second.name,
        **({} if shown == "worse" else {"list": shown}),
        "pair": question,
    }


def _open_pair(comparison: SystemComparison, question: str) -> None:
    """Open a question, or none, and bring it into view."""
    for name, system in (("first", comparison.first), ("second", comparison.second)):
        address.set_param(name, system.name)
    address.set_param("pair", question)
    st.session_state[_FOCUS] = st.session_state.get(_FOCUS, 0) + bool(question)


def _judgement_cell(judgement: Judgement, severity: Severity | None, *, audited: bool) -> TableCell:
    return {
        "pills": [label(JUDGEMENT[judgement])],
        "below": [issue_text(severity, audited=audited)],
    }


def _file_name(comparison: SystemComparison, shown: ListName) -> str:
    """Return the name of a list's file; a system may be called anything."""
    names = (comparison.first.name, comparison.second.name, shown)
    return (
        "-".join(re.sub(r"[^\w.]+", "_", name).strip("._")[:40] or "system" for name in names)
        + ".csv"
    )


def _words_of(workbench: Workbench, case_id: str) -> AnswerWords:
    opened = workbench.comparison.open_answer(actor(), case_id)
    made = None if opened.decision is None else opened.decision.decision
    answer = opened.case.answer or ""
    return (
        AnswerWords(answer=answer) if made is None else AnswerWords(made.reason, made.note, answer)
    )


def _csv_of(workbench: Workbench, comparison: SystemComparison, shown: ListName) -> bytes:
    """Return all questions of a list as CSV, the first ones with their answers in full."""
    names = (comparison.first.name, comparison.second.name)
    [complete] = workbench.comparison.compare(actor(), names, groups=False, most_listed=None)
    pairs = complete.list_questions(shown)[0]
    in_full = {
        case_id: _words_of(workbench, case_id)
        for pair in pairs[:_IN_FULL]
        for case_id in (pair.first, pair.second)
        if not workbench.preferences.hides_system(actor(), case_id)
    }
    rows = listed_rows(pairs, in_full)
    return b"".join(map(csv_line, (ListedRow._fields, *rows)))


def _draw_both_answers(
    workbench: Workbench,
    comparison: SystemComparison,
    shown: ListName,
    pair: AnswerPair,
    pairs: list[AnswerPair],
) -> None:
    """Draw both answers to one question, with buttons to the question before and after it."""
    place = pairs.index(pair)
    if workbench.preferences.hides_system(actor(), pair.first):
        st.subheader(escape_markdown(pair.query), anchor="answers")
        st.info(
            "Your team's policy hides which system wrote which answer until you've given your"
            " preference on this question.",
            icon=":material/visibility_off:",
        )
        st.page_link("pages/preference.py", label="Preference", icon=":material/thumbs_up_down:")
        return
    sides = []
    return_params = _pair_parameters(comparison, shown, pair.question)
    for case_id, judgement in (
        (pair.first, pair.first_judgement),
        (pair.second, pair.second_judgement),
    ):
        known: Judgement = judgement
        answer = workbench.comparison.open_answer(actor(), case_id)
        sides.append(
            pair_side(
                answer.case,
                answer.run,
                known,
                decision=answer.decision,
                href=address.link("review", case=case_id, **return_params),
            )
        )
    with st.container(horizontal=True):
        for title, other, key in (
            ("Previous question", place - 1, PREVIOUS_PAIR),
            ("Next question", place + 1, NEXT_PAIR),
        ):
            inside = 0 <= other < len(pairs)
            st.button(
                title,
                icon=f":material/arrow_{'back' if key is PREVIOUS_PAIR else 'forward'}:",
                disabled=not inside,
                shortcut=key.shortcut,
                on_click=_open_pair,
                args=(comparison, pairs[other].question if inside else ""),
            )
        st.button(
            "Close",
            icon=":material/close:",
            on_click=_open_pair,
            args=(comparison, ""),
        )
    heading: PairHeading = {
        "question": pair.query,
        "place": f"{LISTS[shown].title}: question {place + 1} of {len(pairs)}",
        "focus": st.session_state.get(_FOCUS, 0),
    }
    result = _PAIR(
        data=answer_pair(sides[0], sides[1], heading), key="compare-pair", on_open_change=noop
    )
    # A browser posts the value, so it may be anything.
    if result.open in (pair.first, pair.second):
        st.switch_page("pages/review.py", query_params={"case": result.open, **return_params})


def _draw_measures(comparison: SystemComparison) -> None:
    st.header("All measures")
    groups = measure_groups(comparison)
    if not groups:
        st.markdown("No question has measures for both answers. Audit the answers first.")
        return
    for group in groups:
        st.subheader(group.title, anchor=False)
        if group.note:
            st.caption(escape_markdown(group.note))
        linked_table(
            [
                column("Measure", "main"),
                column(comparison.first.name, "figure"),
                column(comparison.second.name, "figure"),
                column("Difference (95% interval)", "figure"),
                column("Conclusion", "pills"),
            ],
            [
                row(
                    {"text": measure.title, "quote": measure.meaning},
                    figure_with_base(measure, difference, second=False),
                    figure_with_base(measure, difference, second=True),
                    _difference_cell(measure, difference),
                    {"pills": [label(conclusion_word(difference, measure))]},
                )
                for measure, difference in group.rows
            ],
            description=f"{group.title}: measures of both systems",
            key=f"compare-measures-{group.rows[0][1].measure}",
        )
        if group.rows[0][0].basis == "audit":
            st.page_link(
                "pages/trust.py",
                label="How far to trust the audit",
                icon=":material/verified_user:",
            )
    points = [
        {
            "measure": measure.title,
            **{
                name: None if value is None else 100 * value
                for name, value in (
                    ("difference", difference.difference),
                    ("low", difference.low),
                    ("high", difference.high),
                )
            },
            "shown": difference_text(measure, difference),
        }
        for group in groups
        for measure, difference in group.rows
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
    """Return a difference with its interval and p-value on lines of their own, which need less
    width.
    """
    text, _, interval = difference_text(measure, difference).partition(" (")
    lines = [interval.removesuffix(")"), certainty_text(difference).partition(",")[0]]
    return {"text": text, "below": [line for line in lines if line]}


_SIGNED = "(datum.value > 0 ? '+' : datum.value < 0 ? '-' : '') + format(abs(datum.value), '.0f')"
"""Labels of an axis with the minus sign of the tables. Vega's own is another character."""


def difference_chart() -> alt.TopLevelMixin:
    """Describe differences of shares, in points, with their intervals around zero."""
    base = alt.Chart(ROWS, height=alt.Step(30)).encode(
        y=alt.Y("measure:N", title=None, sort=None, axis=alt.Axis(labelLimit=200))
    )
    lines = base.mark_rule(color=GREY, strokeWidth=2).encode(
        x=alt.X(
            "low:Q",
            title="Difference in points",
            axis=alt.Axis(labelExpr=_SIGNED, tickCount=6),
        ),
        x2="high:Q",
    )
    points = base.mark_point(filled=True, size=80).encode(
        x="difference:Q",
        tooltip=["measure:N", alt.Tooltip("shown:N", title="Difference")],
    )
    zero = alt.Chart(ROWS).encode(x=alt.datum(0))
    # aria=False: a line without data has no words for screen readers
    return alt.layer(zero.mark_rule(strokeDash=[4, 3], color=GREY, aria=False), lines, points)


def _draw_groups(comparison: SystemComparison) -> None:
    """Draw the reasons, and what else the systems differ in, or all on demand."""
    if not comparison.measure("flagged").questions:
        return
    st.header("Differences by group")
    parts, left_out = listed_parts(comparison)
    if nothing := no_parts_differ_text(comparison):
        st.markdown(nothing)
    differing = differing_parts(comparison)
    # What was wrong with the answers is worth knowing even if nothing differs.
    listed = [part for part in parts if part in differing or part.group == "reason"]
    if len(parts) > len(listed):
        show_all = address.value("parts") == "yes"
        st.toggle(
            f"Show all {count_noun(len(parts), 'group')}",
            **address.bind_query_param("parts", False, shows=show_all, drops=()),
        )
        listed = parts if show_all else listed
    if listed:
        flagged = MEASURES["flagged"]
        linked_table(
            [
                column("Group", "main"),
                column(comparison.first.name, "figure"),
                column(comparison.second.name, "figure"),
                column("Difference (95% interval)", "figure"),
                column("Conclusion", "pills"),
            ],
            [
                row(
                    {
                        "text": f"{GROUPS[part.group]}: {part.value}",
                        "quote": part_meaning(part, comparison),
                    },
                    figure_with_base(flagged, part, second=False),
                    figure_with_base(flagged, part, second=True),
                    _difference_cell(flagged, part),
                    {"pills": [label(CONCLUSION[part.conclusion])]},
                )
                for part in listed
            ],
            description="Differences by reason, field, failure mode and cause",
            key="compare-groups",
        )
    if left_out:
        st.caption(small_parts_text(left_out))
    if causes := causes_text(comparison):
        st.caption(causes)
    for name, where in WITHOUT_PARTS.items():
        if all(part.group != name for part in comparison.groups):
            st.caption(where)


def _draw_release_check(comparison: SystemComparison) -> None:
    """Show how to check in CI that the second system isn't worse."""
    with st.expander("Release check", icon=":material/rule:"):
        st.markdown(
            f"This command has exit code 1 if {escape_markdown(comparison.second.name)} is worse"
            " than chance explains, if it has more regressions than the limit (now set to as many"
            " as there are), or if no question can be compared. Otherwise it has exit code 0."
        )
        st.code(gate_command(comparison), language=None)
        st.markdown("The same in pytest, with the fixture of the package's plugin:")
        st.code(gate_test(comparison), language="python")


def _draw_descriptions(first: System, second: System) -> None:
    with st.expander("System details", icon=":material/settings_suggest:"):
        st.caption(
            "What produced the answers, for people who read this comparison later. The lists of"
            " systems show it. It doesn't affect any figures."
        )
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

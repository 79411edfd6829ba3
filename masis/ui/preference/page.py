"""The page Preference: two answers without names, and what people prefer.

The view that decides shows nothing that could name a system: its data is a ``PreferenceTask``, and
its address has no parameter of the pair. The view of results has names, but only for questions of
which this reviewer has decided every pair.
"""

from __future__ import annotations

import io
import json
from collections.abc import Mapping
from typing import NamedTuple

import streamlit as st
from pydantic import ValidationError

from masis.errors import MasisError
from masis.schema.preference import LONGEST_REASON, VERDICT_CHOICES, PairVerdict
from masis.schema.wording import count_noun
from masis.services import Workbench
from masis.services.preference_texts import agreement_lines, win_rate_rows
from masis.services.preferences import (
    PREFERENCE_FORMATS,
    ROWS_PER_PAGE,
    NewPreference,
    PreferenceProgress,
    PreferenceResults,
    PreferenceRow,
    PreferenceTask,
)
from masis.ui.components import register_component
from masis.ui.components.charts import draw_chart
from masis.ui.components.linked_table import LinkedRow, TableCell, column, linked_table, row
from masis.ui.preference.charts import strength_chart
from masis.ui.review.decision_form import LONGEST_NAME
from masis.ui.shell import address
from masis.ui.shell.downloads import prepared_download
from masis.ui.shell.keys import UNDO_PREFERENCE
from masis.ui.shell.permissions import action, button_state
from masis.ui.shell.reviewer import actor, name_reviewer, reviewer
from masis.ui.shell.served_database import served_database, served_workbench
from masis.views.markdown import escape_markdown
from masis.views.numbers import day

VIEWS = {"decide": "Decide", "results": "Results"}
_PAIR = register_component("preference_pair", "key_sheet")
MOST_COMPARED = 6
"""Maximum number of pairs of systems with a link to their comparison, the pairs of four systems."""
_PAIR_KEY, _NAME_KEY, _PROBLEM = "preference-pair", "preference-name", "preference-problem"
_ATTEMPT, _UNDONE = "preference-attempt", "preference-undone"


def show_preference(workbench: Workbench) -> None:
    """Draw the page: the next pair, or the results."""
    st.title("Preference")
    shown = address.one_of("view", VIEWS, "decide")
    st.segmented_control(
        "View",
        list(VIEWS),
        format_func=VIEWS.__getitem__,
        required=True,
        label_visibility="collapsed",
        **address.bind_query_param("view", "decide", shows=shown, drops=("page", "pair", "only")),
    )
    if shown == "results":
        _show_results(workbench)
    else:
        _show_pair(workbench)


# Decide


def _show_pair(workbench: Workbench) -> None:
    st.markdown(
        "Which answer is better? The sides are shuffled, and nothing shows which system wrote an"
        " answer. The audit's marks aren't shown here, so they don't influence you. You can see"
        " them on each case after you decide."
    )
    me = actor()
    if not workbench.access.allows(me, "decide"):
        st.info("You need the reviewer role to decide pairs.", icon=":material/lock:")
        return
    progress = workbench.preferences.progress(me)
    if not progress.total:
        _explain_pairs()
        return
    if reviewer() is None:
        st.text_input("Your name", key=_NAME_KEY, max_chars=LONGEST_NAME, on_change=_name_person)
        st.caption("Verdicts are recorded under your name.")
        return
    task = workbench.preferences.next(me)
    st.progress(
        min(1.0, progress.decided / progress.total),
        f"{progress.decided:,} of {count_noun(progress.total, 'pair')} decided",
    )
    with st.container():  # always exists, so that nothing moves
        if problem := st.session_state.pop(_PROBLEM, ""):
            st.warning(escape_markdown(problem), icon=":material/error:")
        if undone := st.session_state.pop(_UNDONE, ""):
            st.info(escape_markdown(undone), icon=":material/undo:")
    if task is None:
        _draw_end(progress)
        return
    _PAIR(
        data={
            **_pair_data(task),
            "can_undo": progress.decided > 0,
            # A verdict that couldn't be recorded must unlock the buttons of the same pair.
            "attempt": st.session_state.get(_ATTEMPT, 0),
        },
        key=_PAIR_KEY,
        on_decided_change=_record_verdict,
        on_undone_change=_undo_verdict,
    )


def _pair_data(task: PreferenceTask) -> dict[str, object]:
    """Return the data of the component, which the browser can read."""
    return {
        "pair": task.pair,
        "question": task.question,
        "left": task.left.answer,
        "right": task.right.answer,
        "sources": list_sources(task),
        "choices": [
            {"verdict": verdict, "key": choice.key, "title": choice.title}
            for verdict, choice in VERDICT_CHOICES.items()
        ],
        "undo_key": UNDO_PREFERENCE.shortcut,
        "longest_reason": LONGEST_REASON,
    }


def list_sources(task: PreferenceTask) -> list[dict[str, str]]:
    """Return the evidence of both answers in one list; ``of`` names the side of a chunk that the
    other answer didn't have.
    """
    left, right = (
        {(chunk.id, chunk.text): None for chunk in side.evidence}
        for side in (task.left, task.right)
    )
    return [
        {
            "id": chunk_id,
            "text": text,
            "of": (
                ""
                if (chunk_id, text) in left and (chunk_id, text) in right
                else "Left only"
                if (chunk_id, text) in left
                else "Right only"
            ),
        }
        for chunk_id, text in {**left, **right}
    ]


def _explain_pairs() -> None:
    st.info(
        "There is nothing to compare yet. A pair needs answers from two systems to the same"
        " question: import the file of each system under its name.",
        icon=":material/compare_arrows:",
    )
    st.page_link("pages/import.py", label="Import answers", icon=":material/upload_file:")
    st.code("masis import answers.jsonl --system v2", language=None)


def _draw_end(progress: PreferenceProgress) -> None:
    st.success(
        f"You have decided {count_noun(progress.total, 'pair')}. See the results above.",
        icon=":material/done_all:",
    )
    action(
        "Undo my last verdict",
        "preference-undo",
        "undo",
        _undo_verdict,
        requires="decide",
        type="tertiary",
        shortcut=UNDO_PREFERENCE.shortcut,
    )


def _name_person() -> None:
    name_reviewer(served_workbench(), st.session_state.get(_NAME_KEY, ""))


def _record_verdict() -> None:
    posted = _read_trigger("decided")
    st.session_state[_ATTEMPT] = st.session_state.get(_ATTEMPT, 0) + 1
    if not isinstance(posted, Mapping):
        return
    try:
        # A browser posts the values, so they may be anything.
        served_workbench().preferences.decide(actor(), NewPreference.model_validate(dict(posted)))
    except ValidationError:
        st.session_state[_PROBLEM] = "The verdict couldn't be read. Load the page again."
    except MasisError as error:
        st.session_state[_PROBLEM] = str(error)


def _undo_verdict() -> None:
    st.session_state[_ATTEMPT] = st.session_state.get(_ATTEMPT, 0) + 1
    try:
        recorded = served_workbench().preferences.undo(actor())
    except MasisError as error:
        st.session_state[_PROBLEM] = str(error)
        return
    if recorded.undone is not None:
        st.session_state[_UNDONE] = (
            f"You took back “{VERDICT_CHOICES[recorded.undone].title}”. Its pair is open again."
        )


def _read_trigger(name: str) -> object:
    state = st.session_state.get(_PAIR_KEY)
    return state.get(name) if isinstance(state, Mapping) else getattr(state, name, None)


# Results


class _ResultsKey(NamedTuple):
    """What results depend on; a change of it computes them again."""

    path: str
    entries: int
    pairs: int
    person: str
    everyone: bool


@st.cache_data(show_spinner=False, max_entries=20)
def _cached_results(key: _ResultsKey) -> PreferenceResults:
    return served_workbench().preferences.results(actor(), everyone=key.everyone)


def _show_results(workbench: Workbench) -> None:
    me = actor()
    state = button_state("oversee", help="You'll no longer be blind for pairs you haven't decided.")
    wants_all = address.value("everyone") == "yes"
    everyone = wants_all and workbench.access.allows(me, "oversee")
    st.toggle(
        "Include verdicts on questions I haven't decided",
        disabled=state["disabled"],
        help=state["help"],
        **address.bind_query_param("everyone", False, shows=everyone),
    )
    progress = workbench.preferences.progress(me)
    entries = workbench.preferences.position(me)
    key = _ResultsKey(str(served_database()), entries, progress.total, me.name, everyone)
    found = _cached_results(key)
    if not found.verdicts:
        if not progress.total:
            text = "There is nothing to compare yet. Import answers from two systems first."
        elif everyone:
            text = "Nobody has decided a pair yet."
        else:
            text = (
                f"You have decided {progress.decided:,} of {count_noun(progress.total, 'pair')}."
                " Results cover only questions for which you've decided every pair, so that"
                " nobody's verdict can influence yours."
            )
        st.info(text, icon=":material/thumbs_up_down:")
        if progress.decided < progress.total and workbench.access.allows(me, "decide"):
            st.button("Decide pairs", on_click=address.set_param, args=("view", ""))
        return
    people = ", ".join(
        f"{escape_markdown(name)} {count:,}" for name, count in found.reviewers.items()
    )
    st.markdown(
        f"{count_noun(found.verdicts, 'verdict')} on {count_noun(found.questions, 'question')}:"
        f" {people}"
    )
    _draw_win_rates(found)
    _draw_strengths(found)
    st.subheader("Agreement and bias", anchor=False)
    for line in agreement_lines(found):
        st.text(line)
    _draw_verdicts(workbench, found, everyone=everyone)
    _draw_export(workbench)


def _draw_win_rates(found: PreferenceResults) -> None:
    st.subheader("Win rates", anchor=False)
    rows = [
        row(
            {"text": f"{rate.first} against {rate.second}"},
            rate.wins,
            rate.losses,
            rate.ties,
            {"text": rate.rate},
            {"quote": rate.conclusion},
            open=json.dumps([rate.first, rate.second]),
        )
        for rate in win_rate_rows(found)
    ]
    opened = linked_table(
        [
            column("Systems", "main"),
            column("Wins", "figure"),
            column("Losses", "figure"),
            column("Ties", "figure", hide="hide-narrow"),
            column("Win rate, 95% interval", "figure"),
            column("Conclusion", "text", hide="hide-narrow"),
        ],
        rows,
        description="Win rates of pairs of systems; choose one to see its verdicts",
        key="preference-win-rates",
    )
    if opened:
        address.set_param("pair", opened)
        address.clear(("only", "page"))
        st.rerun()
    st.caption("A tie counts as half a win. Two bad answers are a tie.")
    for rate in found.win_rates[:MOST_COMPARED]:
        st.page_link(
            "pages/compare.py",
            label=escape_markdown(f"Compare {rate.first} and {rate.second} by decisions"),
            icon=":material/compare_arrows:",
            query_params={"first": rate.first, "second": rate.second},
        )


def _draw_strengths(found: PreferenceResults) -> None:
    strengths = found.strengths.strengths
    if len(strengths) < 3:
        return  # of two systems the win rate says the same
    st.subheader("Strengths", anchor=False)
    chart_rows = [
        {"system": system, "value": value.value, "low": value.low, "high": value.high}
        for system, value in strengths
    ]
    listed = "; ".join(f"{line['system']} {line['value']:+.2f}" for line in chart_rows)
    draw_chart(
        strength_chart,
        len(strengths),
        rows=chart_rows,
        description=f"Strengths of systems with 95% intervals, strongest first: {listed}",
    )
    st.caption(
        "Bradley-Terry strengths with Davidson's model of ties. A difference of 0.7 means odds of"
        " 2 to 1."
    )


def _draw_verdicts(workbench: Workbench, found: PreferenceResults, *, everyone: bool) -> None:
    st.subheader("Verdicts", anchor=False)
    disputed = address.value("only") == "disputed"
    systems = _systems_in_address()
    chosen = "disputed" if disputed else "pair" if systems else "all"
    titles = {"all": "All", "disputed": f"Reviewers differ ({found.disputed:,})"}
    if systems:
        titles["pair"] = escape_markdown(" against ".join(systems))
    key = "preference-only"
    st.session_state[key] = chosen

    def store() -> None:
        address.set_param("only", "disputed" if st.session_state[key] == "disputed" else "")
        address.clear(("page",) if st.session_state[key] == "pair" else ("page", "pair"))

    st.segmented_control(
        "Which verdicts",
        list(titles),
        format_func=titles.__getitem__,
        required=True,
        key=key,
        on_change=store,
    )
    page = workbench.preferences.find(
        actor(),
        systems=systems if chosen == "pair" else (),
        disputed=disputed,
        everyone=everyone,
        page=address.number("page"),
    )
    if not page.total:
        st.info("No verdicts match.", icon=":material/filter_alt_off:")
        return
    linked_table(
        [
            column("Question", "main"),
            column("Preferred"),
            column("Other"),
            column("Reviewer", hide="hide-narrow"),
            column("Day", hide="hide-medium"),
        ],
        [_verdict_row(verdict) for verdict in page.rows],
        description="Verdicts; a question opens the case of the first answer",
        key="preference-verdicts",
    )
    address.show_pages(page.total, ROWS_PER_PAGE, key="preference-pages")


def _systems_in_address() -> tuple[str, ...]:
    """Return the two systems that a row of the win rates names, or none."""
    try:
        names = json.loads(address.value("pair") or "[]")
    except ValueError:
        return ()
    is_pair = isinstance(names, list) and len(names) == 2
    return tuple(names) if is_pair and all(isinstance(name, str) for name in names) else ()


_TIES: dict[PairVerdict, str] = {"equal": "Equally good", "both_bad": "Both are bad"}


def _verdict_row(verdict: PreferenceRow) -> LinkedRow:
    """Return a verdict with the preferred answer first; a tie has none, so both are named."""
    answers = [
        (verdict.first_system, verdict.first_case),
        (verdict.second_system, verdict.second_case),
    ]
    if verdict.verdict == "second":
        answers.reverse()
    (better, case), (other, other_case) = answers
    tie = _TIES.get(verdict.verdict)
    preferred: TableCell = {"text": better, "href": address.link("review", case=case)}
    return row(
        {
            "text": verdict.query,
            "href": address.link("review", case=case),
            "below": [verdict.reason] if verdict.reason else [],
        },
        tie or preferred,
        {
            "text": f"{better} and {other}" if tie else other,
            "href": address.link("review", case=other_case),
        },
        verdict.reviewer,
        day(verdict.at),
    )


def _draw_export(workbench: Workbench) -> None:
    allowed = workbench.access.allows(actor(), "export")
    st.subheader("Training data", anchor=False)
    st.caption(
        "A preference pair is a question with the answer that more reviewers prefer and the other"
        " one, for training a model. The file has a line for each pair and doesn't name systems."
        " Pairs without a preferred answer are left out."
    )

    def make() -> io.BytesIO:
        rows = workbench.preferences.export(actor(), PREFERENCE_FORMATS[0]).rows
        lines = (json.dumps(line, ensure_ascii=False) for line in rows)
        return io.BytesIO("".join(f"{line}\n" for line in lines).encode())

    prepared_download(
        "preference pairs",
        make,
        file_name="preference-pairs.jsonl",
        mime="application/x-ndjson",
        key="preference-export",
        help_=(
            "Preferred and rejected answers for training, without the names of systems."
            if allowed
            else "You need the lead role to export."
        ),
        disabled=not allowed,
        width="content",
    )

"""What an opened abstract was read as reporting, item by item with its sentence, and what a person corrects in it.

A correction is an override like that of a field: an entry of the screening log, with a reason and a name, undone by a
further entry. Items move the methodology, the direction of the finding moves what the kept studies say together.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple

import streamlit as st

from masis.errors import MasisError
from masis.schema.screening import (
    ITEM_STATES,
    Abstract,
    Grade,
    ItemState,
    Override,
    OverrideField,
    Words,
)
from masis.schema.wording import shortened, with_article
from masis.screening.grading.methodology import ITEM_STATE_NAMES, LABELS, appraise, sentence_of
from masis.screening.rounds.overrides import effective_overrides
from masis.screening.synthesis.findings import finding
from masis.services import Actor
from masis.services.screening import OpenedScreening
from masis.ui.review.decision_form import LONGEST_NAME
from masis.ui.shell.permissions import needs
from masis.ui.shell.reviewer import actor, name_reviewer, reviewer
from masis.ui.shell.served_database import served_workbench
from masis.views.markdown import badge, escaped
from masis.views.numbers import moment
from masis.views.screening import DESIGN, DIRECTION
from masis.views.words import Tone, Word

Record = Callable[[str, OverrideField, float | bool | str | None, str, Actor], None]
"""Records an override: abstract, field, value (None undoes the last one), reason, actor."""

LONGEST_REASON = 1_000
LONGEST_SENTENCE = 420
_STATE_TONE: dict[ItemState, Tone] = {"stated": "good", "denied": "bad", "planned": "warn", "not_stated": "calm"}
STATES: dict[str, Word] = {state: Word(ITEM_STATE_NAMES[state], _STATE_TONE[state]) for state in ITEM_STATES}
_OPEN, _PROBLEM = "correcting", "correction-problem"


class AppraisalRow(NamedTuple):
    """An item as the page shows it: what it is now, what was read, and in which sentence.

    ``sentence`` is Markdown with the words marked, safe to show; empty where nothing was read.
    """

    field: OverrideField
    name: str
    note: str
    now: str
    read: str
    sentence: str
    override: Override | None


def appraisal_rows(grade: Grade, abstract: Abstract, overrides: Mapping[OverrideField, Override]) -> list[AppraisalRow]:
    """Return the items of the design's checklist, those with the most points first; none without a text or design."""
    if grade.design is None:
        return []
    items = appraise(abstract, grade.design, grade.sample_sizes)
    return [
        AppraisalRow(
            field=each.item,
            name=LABELS[each.item][:1].upper() + LABELS[each.item][1:],
            note=f"{each.points:g} {'point' if each.points == 1 else 'points'}",
            now=grade.corrections.get(each.item, each.state),
            read=each.state,
            sentence=marked(*sentence_of(each.words[0], abstract), each.words[0].text) if each.words else "",
            override=overrides.get(each.item),
        )
        for each in sorted(items, key=lambda item: -item.points)
    ]


def direction_row(
    question: str, grade: Grade, abstract: Abstract, overrides: Mapping[OverrideField, Override]
) -> AppraisalRow:
    """Return the finding of a study with its direction."""
    found = finding(question, abstract)
    return AppraisalRow(
        field="direction",
        name="Direction of the finding",
        note="as an answer to the question",
        now=grade.direction or found.direction,
        read=found.direction,
        sentence=escaped(cut(found.words)) if found.words else "",
        override=overrides.get("direction"),
    )


def cut(words: Words) -> str:
    """Return words on one line, cut where they are longer than a sentence should be."""
    return shortened(" ".join(words.text.split()), LONGEST_SENTENCE)


def marked(sentence: str, start: int, words: str) -> str:
    """Return a sentence as Markdown, the words that begin at ``start`` marked; a long one is cut around them."""
    before, after = sentence[:start], sentence[start + len(words) :]
    if len(sentence) > LONGEST_SENTENCE:
        half = LONGEST_SENTENCE // 2
        before = f"… {before[-half:]}" if len(before) > half else before
        after = f"{after[:half]} …" if len(after) > half else after
    lead, trail = (" " if before[-1:].isspace() else ""), (" " if after[:1].isspace() else "")
    return f"{escaped(before)}{lead}:blue-background[{escaped(words)}]{trail}{escaped(after)}".strip()


def show_appraisal(opened: OpenedScreening, grade: Grade, record: Record) -> None:
    """Draw what was read of the method, and of the finding where the study is kept, with a correction for each."""
    abstract = opened.abstracts.get(grade.abstract_id)
    if abstract is None or not abstract.text.strip():
        return
    overrides = effective_overrides(opened.overrides).get(grade.abstract_id, {})
    with st.container(border=True, key="appraisal", gap="small"):
        st.markdown("**Appraisal**")
        _head(grade)
        with st.container():  # always there, so that the rows below stay where they are
            if problem := st.session_state.pop(_PROBLEM, ""):
                st.warning(problem, icon=":material/error:")
        for row in appraisal_rows(grade, abstract, overrides):
            _row(grade, row, STATES, record)
    if grade.recommendation == "keep":
        with st.container(border=True, key="finding", gap="small"):
            st.markdown("**Finding**")
            st.caption("Its direction counts in the summary of findings, and in whether the kept studies conflict.")
            row = direction_row(opened.screening.question, grade, abstract, overrides)
            directions = {str(name): word for name, word in DIRECTION.items()}
            _row(grade, row, directions, record)


def _head(grade: Grade) -> None:
    if grade.design is None:
        st.caption("The design is not known, and with it what the abstract should report. Set the design below.")
        return
    st.caption(
        f"What {with_article(DESIGN[grade.design])} should report, and the sentence each was read from. Only what is "
        "stated earns points; correct what was read wrong, and the abstract is graded again by the same rules."
    )


def _row(grade: Grade, row: AppraisalRow, states: Mapping[str, Word], record: Record) -> None:
    with st.container(key=f"item-{row.field}", gap="xxsmall"):
        name, state, sentence, button = st.columns([2.4, 1.7, 5.2, 1.5], vertical_alignment="top")
        with name, st.container(gap=None):
            st.markdown(f"**{row.name}**")
            st.caption(row.note)
        state.markdown(badge(states[row.now]))
        with sentence, st.container(gap="xxsmall"):
            st.markdown(row.sentence or ":gray[No sentence speaks of it.]")
            if row.override is not None:
                st.caption(escaped(_by(row, states[row.read].text)))
        with button:
            _buttons(grade, row, record)
        if st.session_state.get(_OPEN) == (grade.abstract_id, row.field):
            _form(grade, row, states, record)


def _by(row: AppraisalRow, read: str) -> str:
    assert row.override is not None
    by = row.override
    return f"Set by {by.reviewer}, {moment(by.at)} UTC: {by.reason} Read as {read}."


def _buttons(grade: Grade, row: AppraisalRow, record: Record) -> None:
    if row.override is not None:
        st.button(
            "Undo",
            key=f"undo-{row.field}",
            icon=":material/undo:",
            type="tertiary",
            on_click=_undo,
            args=(grade.abstract_id, row.field, record),
            **needs("decide", help=f"{row.name}: undo the correction"),
        )
        return
    st.button(
        "Correct",
        key=f"correct-{row.field}",
        icon=":material/edit:",
        type="tertiary",
        on_click=_toggle,
        args=(grade.abstract_id, row.field),
        **needs("decide", help=f"{row.name}: set it to what the study says"),
    )


def _form(grade: Grade, row: AppraisalRow, states: Mapping[str, Word], record: Record) -> None:
    with st.container(border=True, key="correction", gap="small"):
        st.segmented_control(
            f"{row.name}: correct it to",
            [state for state in states if state != row.now],
            key=_value_key(grade.abstract_id, row.field),
            format_func=lambda state: states[state].text,
        )
        who, why, go, leave = st.columns([2.2, 5, 1.9, 1.5], vertical_alignment="bottom")
        if reviewer() is None:
            who.text_input("Your name", key="correction-name", max_chars=LONGEST_NAME)
        else:
            who.text(f"by {reviewer()}")
        why.text_input(
            "Reason", key="correction-reason", max_chars=LONGEST_REASON, placeholder="Where you read it, for example"
        )
        go.button(
            "Correct it",
            key="correction-record",
            type="primary",
            width="stretch",
            on_click=_record,
            args=(grade.abstract_id, row.field, record),
            **needs("decide"),
        )
        leave.button("Cancel", key="correction-cancel", width="stretch", on_click=_close)


def _value_key(abstract_id: str, field: OverrideField) -> str:
    return f"correction-{abstract_id}-{field}"


def _toggle(abstract_id: str, field: OverrideField) -> None:
    same = st.session_state.get(_OPEN) == (abstract_id, field)
    _close()
    if not same:
        st.session_state[_OPEN] = (abstract_id, field)


def _close() -> None:
    st.session_state.pop(_OPEN, None)
    st.session_state["correction-reason"] = ""


def _record(abstract_id: str, field: OverrideField, record: Record) -> None:
    value = st.session_state.get(_value_key(abstract_id, field))
    reason = str(st.session_state.get("correction-reason", "")).strip()
    if not _named():
        st.session_state[_PROBLEM] = "Type your name first: it is recorded with the correction."
    elif value is None:
        st.session_state[_PROBLEM] = "Choose first what to correct it to."
    elif not reason:
        st.session_state[_PROBLEM] = "Give a reason first: it is recorded with the correction."
    elif _saved(abstract_id, field, str(value), reason, record):
        _close()


def _named() -> bool:
    """Return whether the reviewer's name is known, or was just typed into either form of this page."""
    for key in ("correction-name", "override-name"):
        if reviewer() is None and (typed := st.session_state.get(key, "")):
            name_reviewer(served_workbench(), typed)
    return reviewer() is not None


def _undo(abstract_id: str, field: OverrideField, record: Record) -> None:
    if not _named():
        st.session_state[_PROBLEM] = "Type your name first, at the top of the page: it is recorded with an undo, too."
        return
    _saved(abstract_id, field, None, "", record)


def _saved(abstract_id: str, field: OverrideField, value: str | None, reason: str, record: Record) -> bool:
    try:
        record(abstract_id, field, value, reason, actor())
    except MasisError as error:
        st.session_state[_PROBLEM] = str(error)
        return False
    return True

"""An opened abstract with the words behind its grade, and a person's agreement or corrections.

A person can agree with the grade, override one of its fields, or correct an item of the appraisal
or the direction of the finding. Each of these is an entry of the screening log with a name and, for
a change, a reason; another entry undoes it. Items change the methodology score. The direction
changes the synthesis of the kept studies.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import streamlit as st

from masis.schema.rules import Tone
from masis.schema.screening import (
    DESIGNS,
    ITEM_STATES,
    STUDY_TYPES,
    Abstract,
    Grade,
    GradeField,
    ItemState,
    Override,
    OverrideField,
)
from masis.schema.wording import count_noun, shorten, with_article
from masis.screening.grading.directions import finding
from masis.screening.grading.methodology import ITEM_STATE_NAMES, LABELS, appraise, sentence_of
from masis.screening.rounds.overrides import effective_overrides
from masis.screening.services import screening_service
from masis.screening.services.screenings import OpenedScreening
from masis.screening.synthesis.prisma import criteria_of
from masis.screening.ui.actions import attempt, has_reviewer_name, name_field, show_problem
from masis.screening.ui.keys import AGREE
from masis.screening.views.abstract import abstract_data
from masis.screening.views.words import (
    DESIGN,
    DIRECTION,
    FIELD,
    OUTCOME,
    RECOMMENDATION,
    RECOMMENDATIONS,
    SUFFICIENCY,
    value_text,
)
from masis.ui.components import register_component
from masis.ui.shell import address
from masis.ui.shell.permissions import action
from masis.ui.shell.reviewer import actor, reviewer
from masis.ui.shell.served_database import served_workbench
from masis.views.markdown import badge, escape_markdown
from masis.views.numbers import day, moment
from masis.views.words import Word

LONGEST_REASON = 1_000
LONGEST_SENTENCE = 420
_ABSTRACT = register_component("screening_abstract", folder=Path(__file__).parent)
_OVERRIDE, _CORRECTION = "override-problem", "correction-problem"
_OPEN = "correcting"
_NAMES = ("correction-name", "override-name")
_STATE_TONE: dict[ItemState, Tone] = {
    "stated": "good",
    "denied": "bad",
    "planned": "warn",
    "not_stated": "calm",
}
STATES: dict[str, Word] = {
    state: Word(ITEM_STATE_NAMES[state], _STATE_TONE[state]) for state in ITEM_STATES
}

Value = float | bool | str | None


def draw_neighbor_buttons(ids: Sequence[str], opened: str) -> None:
    """Draw buttons for the previous and the next abstract of the list, and one to close."""
    place = ids.index(opened) if opened in ids else None
    before = ids[place - 1] if place else ""
    after = ids[place + 1] if place is not None and place + 1 < len(ids) else ""
    for name, label, icon, to, shortcut in (
        ("previous", "Previous", "chevron_left", before, "K"),
        ("next", "Next", "chevron_right", after, "J"),
        ("close", "Close", "close", "", None),
    ):
        st.button(
            label,
            key=f"screening-{name}",
            icon=f":material/{icon}:",
            type="tertiary",
            disabled=name != "close" and not to,
            shortcut=shortcut,
            on_click=address.set_param,
            args=("abstract", to),
        )


def show_abstract(opened: OpenedScreening, grade: Grade) -> None:
    """Draw an abstract with the reasons for its grade, its appraisal, and ways to change it."""
    abstract = opened.abstracts.get(grade.abstract_id) or Abstract(id=grade.abstract_id)
    overrides = effective_overrides(opened.overrides).get(grade.abstract_id, {})
    # once, so that a later run of the page doesn't scroll again
    reveal = st.session_state.pop("screening-reveal", "") == grade.abstract_id
    data = abstract_data(
        grade, abstract, machine=opened.machine.grade(grade.abstract_id), overrides=overrides
    )
    _ABSTRACT(data={**data, "reveal": reveal}, key="screening-abstract")
    _draw_agreement(opened, grade)
    if abstract.text.strip():
        _draw_appraisal(opened, grade, abstract, overrides)
    _draw_override_panel(opened, grade, overrides)


def _draw_agreement(opened: OpenedScreening, grade: Grade) -> None:
    """Draw who agrees with the critic's grade, and the button to agree or to undo it."""
    agreeing = [
        agreement for agreement in opened.agreements if agreement.abstract_id == grade.abstract_id
    ]
    name = reviewer()
    with st.container(horizontal=True, vertical_alignment="center", key="agreement-bar"):
        if name is not None and any(agreement.reviewer == name for agreement in agreeing):
            undo = opened, grade.abstract_id, False
            action(
                "Undo my agreement",
                "agree-undo",
                "undo",
                _record_agreement,
                *undo,
                requires="decide",
                type="tertiary",
            )
        else:
            changed = bool(set(grade.overridden) - {"direction"})  # graders don't set a direction
            action(
                "Agree with the grade",
                "agree",
                "thumb_up",
                _record_agreement,
                *(opened, grade.abstract_id, True),
                requires="decide",
                disabled=changed,
                why=(
                    "A person has changed this grade. Undo that first."
                    if changed
                    else (
                        "You read it and would grade it the same. Agreements count in the rate of"
                        " changed grades (Drift)."
                    )
                ),
                shortcut=AGREE.shortcut,
            )
        if agreeing:
            st.text(
                ", ".join(
                    f"{agreement.reviewer} agrees ({day(agreement.at)})" for agreement in agreeing
                ),
                width="stretch",
            )


def _record_agreement(opened: OpenedScreening, abstract_id: str, agrees: bool) -> None:
    if not has_reviewer_name("override-name"):
        st.session_state[_OVERRIDE] = "Type your name first. It is recorded with the agreement."
        return
    attempt(
        lambda: screening_service(served_workbench()).agree(
            actor(),
            opened.screening.id,
            abstract_id,
            agrees=agrees,
            machine_shown=("grades", "reasons", "words"),
            seen_version=opened.summary.version,
        ),
        _OVERRIDE,
    )


# Overrides of a grade's field, an item of the appraisal, or the direction of the finding


def _record_override(
    opened: OpenedScreening,
    abstract_id: str,
    field: OverrideField,
    value_key: str,
    slot: str,
    *reasons: str,
) -> None:
    """Record the chosen value and reason, or show which of them is missing.

    ``reasons`` are the keys of fields that may contain a reason; the first non-empty one is used.
    """
    kind = slot.removesuffix("-problem")
    value: Value = st.session_state.get(value_key)
    reason = next(
        (text for key in reasons if (text := str(st.session_state.get(key) or "").strip())), ""
    )
    if not has_reviewer_name(*_NAMES):
        st.session_state[slot] = f"Type your name first. It is recorded with the {kind}."
    elif value is None:
        st.session_state[slot] = "Choose a value first."
    elif not reason:
        st.session_state[slot] = f"Enter a reason first. It is recorded with the {kind}."
    elif _save_override(opened, abstract_id, field, value, reason, slot):
        # Streamlit allows this only in a callback. After a widget is drawn, a run can't change its
        # value.
        st.session_state["override-reason"] = st.session_state["correction-reason"] = ""
        st.session_state["override-criterion"] = None
        st.session_state.pop(_OPEN, None)


def _undo_override(
    opened: OpenedScreening, abstract_id: str, field: OverrideField, slot: str
) -> None:
    st.session_state.pop(f"override-{abstract_id}-{field}", None)
    if has_reviewer_name(*_NAMES):
        _save_override(opened, abstract_id, field, None, "", slot)
    else:
        st.session_state[slot] = (
            "Type your name first, at the top of the page. It is recorded with an undo, too."
        )


def _save_override(
    opened: OpenedScreening,
    abstract_id: str,
    field: OverrideField,
    value: Value,
    reason: str,
    slot: str,
) -> bool:
    changed = attempt(
        lambda: screening_service(served_workbench()).override(
            actor(),
            opened.screening.id,
            abstract_id,
            field,
            value,
            reason=reason,
            machine_shown=("grades", "reasons", "words", "appraisal"),
            seen_version=opened.summary.version,
        ),
        slot,
    )
    return changed is not None


def _draw_override_panel(
    opened: OpenedScreening, grade: Grade, overrides: Mapping[OverrideField, Override]
) -> None:
    """Draw the override form, the abstract's active overrides, and their effect on the result."""
    with st.container(border=True, key="override-panel"):
        st.markdown("**Override this grade**")
        # This container always exists, so that the fields below stay in place.
        with st.container():
            name_field("override-name", width=320)
        field_at, value_at, why_at, go_at = st.columns(
            [2.5, 3.1, 2.8, 2.1], vertical_alignment="bottom"
        )
        with field_at:
            field: GradeField = st.selectbox(
                "Field",
                list(FIELD),
                key="override-field",
                format_func=lambda name: FIELD[name].text,
            )
        key = f"override-{grade.abstract_id}-{field}"
        with value_at:
            _draw_value_widget(grade, field, key)
        placeholder = "Why this value is right"
        why_at.text_input(
            "Reason", key="override-reason", max_chars=LONGEST_REASON, placeholder=placeholder
        )
        if criteria := [criterion.reason for criterion in criteria_of(opened.screening.settings)]:
            st.pills("Criterion of the team, as the reason", criteria, key="override-criterion")
        with go_at:
            action(
                "Override the field",
                "override-record",
                "edit",
                _record_override,
                *(
                    opened,
                    grade.abstract_id,
                    field,
                    key,
                    _OVERRIDE,
                    "override-reason",
                    "override-criterion",
                ),
                requires="decide",
                type="primary",
                width="stretch",
            )
        show_problem(_OVERRIDE)
        for name in FIELD:
            if name in overrides:
                _draw_active_override(opened, overrides[name])
        current, machine = opened.screening, opened.machine
        result = (
            f"The result is now **{OUTCOME[current.outcome].text.lower()}**,"
            f" {count_noun(len(current.kept), 'abstract')} kept"
        )
        if current.rounds:
            result += f", last round: {SUFFICIENCY[current.rounds[-1].ruling.decision].text}"
        if current.outcome != machine.outcome:
            result += f"; the critic's result was {OUTCOME[machine.outcome].text.lower()}"
        st.markdown(f"{result}.")


def _draw_value_widget(grade: Grade, field: GradeField, key: str) -> None:
    """Draw a widget for the field, set to its current value."""
    current = getattr(grade, field)

    def words(value: object) -> str:
        return value_text(field, value)

    if field == "recommendation":
        names = {name: word.text for name, word in RECOMMENDATION.items()}
        st.segmented_control(
            "Value",
            RECOMMENDATIONS,
            default=current,
            key=key,
            required=True,
            format_func=names.__getitem__,
        )
    elif field in ("relevance_score", "methodology_score"):
        st.slider("Value", 0.0, 1.0, value=float(current or 0.0), step=0.01, key=key)
    elif field == "sample_size_adequate":
        st.segmented_control("Value", [True, False], default=current, key=key, format_func=words)
    else:
        known: list[str] = list(STUDY_TYPES if field == "study_type" else DESIGNS)
        index = known.index(current) if current in known else 0
        st.selectbox("Value", known, index=index, key=key, format_func=words)


def _draw_active_override(opened: OpenedScreening, override: Override) -> None:
    field = override.field
    name = FIELD[field].text  # type: ignore[index]  # of the fields of a grade
    with st.container(horizontal=True, vertical_alignment="center"):
        by = f"{override.reviewer}, {moment(override.at)} UTC: {override.reason}"
        value = value_text(field, override.value)  # type: ignore[arg-type]
        st.text(f"{name} set to {value} by {by}", width="stretch")
        undo = opened, override.abstract_id, field, _OVERRIDE
        action(
            "Undo",
            f"undo-override-{field}",
            "undo",
            _undo_override,
            *undo,
            requires="decide",
            type="tertiary",
        )


# The appraisal of the method, and the finding of a kept study


def mark_sentence(sentence: str, start: int, words: str) -> str:
    """Return a sentence as Markdown with the words at ``start`` marked, shortened around them."""
    before, after = sentence[:start], sentence[start + len(words) :]
    if len(sentence) > LONGEST_SENTENCE:
        half = LONGEST_SENTENCE // 2
        before = f"… {before[-half:]}" if len(before) > half else before
        after = f"{after[:half]} …" if len(after) > half else after
    # escape_markdown drops blanks at both ends, so those beside the marked words are added here.
    lead, trail = (" " if before[-1:].isspace() else ""), (" " if after[:1].isspace() else "")
    marked = f"{lead}:blue-background[{escape_markdown(words)}]{trail}"
    return f"{escape_markdown(before)}{marked}{escape_markdown(after)}".strip()


def _draw_appraisal(
    opened: OpenedScreening,
    grade: Grade,
    abstract: Abstract,
    overrides: Mapping[OverrideField, Override],
) -> None:
    with st.container(border=True, key="appraisal", gap="small"):
        st.markdown("**Appraisal**")
        st.caption(
            "The design isn't known, so it's unknown what the abstract should report. Set the"
            " design below."
            if grade.design is None
            else (
                f"Items that {with_article(DESIGN[grade.design])} should report, each with the"
                " sentence it was read from. Only stated items earn points. If you correct an item,"
                " the abstract is graded again by the same rules."
            )
        )
        show_problem(_CORRECTION)
        items = appraise(abstract, grade.design) if grade.design else ()
        for appraised in sorted(items, key=lambda item: -item.points):
            _draw_item(
                opened,
                grade,
                Item(
                    appraised.item,
                    LABELS[appraised.item][:1].upper() + LABELS[appraised.item][1:],
                    STATES,
                    appraised.state,
                ),
                note=f"{appraised.points:g} {'point' if appraised.points == 1 else 'points'}",
                current=grade.corrections.get(appraised.item, appraised.state),
                sentence=(
                    mark_sentence(
                        *sentence_of(appraised.words[0], abstract), appraised.words[0].text
                    )
                    if appraised.words
                    else ""
                ),
                by=overrides.get(appraised.item),
            )
    if grade.recommendation == "keep":
        with st.container(border=True, key="finding", gap="small"):
            st.markdown("**Finding**")
            st.caption(
                "Its direction counts in the summary of findings, and in whether the kept studies"
                " conflict."
            )
            study_finding = finding(opened.screening.question, abstract)
            words = " ".join(study_finding.words.text.split()) if study_finding.words else ""
            _draw_item(
                opened,
                grade,
                Item("direction", "Direction of the finding", DIRECTION, study_finding.direction),
                note="as an answer to the question",
                current=grade.direction or study_finding.direction,
                sentence=escape_markdown(shorten(words, LONGEST_SENTENCE)),
                by=overrides.get("direction"),
            )


class Item(NamedTuple):
    """A correctable item: its field, its name, its possible states, and the one read."""

    field: OverrideField
    name: str
    states: Mapping[Any, Word]
    read: str


def _draw_item(
    opened: OpenedScreening,
    grade: Grade,
    item: Item,
    *,
    note: str,
    current: str,
    sentence: str,
    by: Override | None,
) -> None:
    """Draw an item's current state and the sentence it was read from, which is safe Markdown."""
    place = grade.abstract_id, item.field
    with st.container(key=f"item-{item.field}", gap="xxsmall"):
        name, state, read, button = st.columns([2.4, 1.7, 5.2, 1.5], vertical_alignment="top")
        with name, st.container(gap=None):
            st.markdown(f"**{item.name}**")
            st.caption(note)
        state.markdown(badge(item.states[current]))
        with read, st.container(gap="xxsmall"):
            st.markdown(sentence or ":gray[No sentence mentions it.]")
            if by is not None:
                correction = f"Set by {by.reviewer}, {moment(by.at)} UTC: {by.reason}"
                st.caption(escape_markdown(f"{correction} Read as {item.states[item.read].text}."))
        label, icon, do, why = (
            ("Correct", "edit", _toggle_correction, "set it to what the study says")
            if by is None
            else ("Undo", "undo", _undo_override, "undo the correction")
        )
        arguments = place if by is None else (opened, *place, _CORRECTION)
        key, why = f"{label.lower()}-{item.field}", f"{item.name}: {why}"
        with button:
            action(label, key, icon, do, *arguments, requires="decide", why=why, type="tertiary")
        if st.session_state.get(_OPEN) == place:
            _draw_item_correction(opened, grade, item, current)


def _draw_item_correction(opened: OpenedScreening, grade: Grade, item: Item, current: str) -> None:
    key = f"correction-{grade.abstract_id}-{item.field}"
    with st.container(border=True, key="correction", gap="small"):
        st.segmented_control(
            f"{item.name}: correct it to",
            [state for state in item.states if state != current],
            key=key,
            format_func=lambda state: item.states[state].text,
        )
        name_at, why, button_at, leave = st.columns([2.2, 5, 1.9, 1.5], vertical_alignment="bottom")
        with name_at:
            name_field("correction-name")
            if name := reviewer():
                st.text(f"by {name}")
        placeholder = "Where you read it, for example"
        why.text_input(
            "Reason", key="correction-reason", max_chars=LONGEST_REASON, placeholder=placeholder
        )
        with button_at:
            action(
                "Correct it",
                "correction-record",
                "check",
                _record_override,
                *(opened, grade.abstract_id, item.field, key, _CORRECTION, "correction-reason"),
                requires="decide",
                type="primary",
                width="stretch",
            )
        leave.button("Cancel", key="correction-cancel", width="stretch", on_click=_close_correction)


def _toggle_correction(abstract_id: str, field: OverrideField) -> None:
    same = st.session_state.get(_OPEN) == (abstract_id, field)
    _close_correction()
    if not same:
        st.session_state[_OPEN] = (abstract_id, field)


def _close_correction() -> None:
    st.session_state.pop(_OPEN, None)
    st.session_state["correction-reason"] = ""

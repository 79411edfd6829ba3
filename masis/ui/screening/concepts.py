"""The concepts of a screening's question: written in the form, shown with the result, changed to screen again."""

from __future__ import annotations

import hashlib

import streamlit as st

from masis.errors import MasisError
from masis.schema.screening import Screening
from masis.screening.grading.question import (
    LONGEST_CONCEPTS,
    PARTS,
    Part,
    changed_lines,
    concept_lines,
    concepts_as_text,
    question_of,
    read_question,
    with_concepts,
)
from masis.ui.live import served_jobs
from masis.ui.screening.form import CONCEPTS, ScreeningForm, current_form, save, settings_of
from masis.ui.shell import address
from masis.ui.shell.inputs import take_typed, typing_area
from masis.ui.shell.permissions import needs
from masis.ui.shell.reviewer import actor
from masis.ui.shell.served_database import served_workbench
from masis.views.markdown import escaped

NAMES: dict[Part, str] = {
    "population": "Population",
    "intervention": "Intervention",
    "comparison": "Comparison",
    "outcome": "Outcome",
}
HINT = "Commas separate concepts; = gives another name for one: death = mortality."


def asked(form: ScreeningForm) -> str:
    """Return the question of the form with the concepts that a person wrote."""
    return with_concepts(form.question.strip(), _lines(form))


def _lines(form: ScreeningForm) -> str:
    return settings_of(served_workbench().settings, form.settings).screening_concepts


def show_concept_fields(form: ScreeningForm) -> None:
    """Draw what was understood of the question, a field for each part; what is typed takes its place."""
    read, written = concepts_as_text(form.question.strip()), concept_lines(_lines(form))
    with st.container(key="screening-concepts", gap="small"):
        st.markdown("**Concepts of the question**")
        st.caption(f"What was read of the question. Correct it, and relevance is judged by what you write. {HINT}")
        for pair in (PARTS[:2], PARTS[2:]):
            for column, part in zip(st.columns(2, gap="medium"), pair, strict=True):
                with column:
                    _field(form, part, read[part], written)
        if set(written) & {part for part in PARTS if written.get(part, read[part]) != read[part]}:
            st.button(
                "Use what was read of the question",
                key="screening-concepts-reset",
                icon=":material/undo:",
                type="tertiary",
                on_click=_reset,
            )


def _field(form: ScreeningForm, part: Part, read: str, written: dict[Part, str]) -> None:
    def take(text: str) -> None:
        _take(part, text)

    # Another question is read as other concepts, which the field is then to show; what is typed here changes nothing.
    version = hashlib.sha256(read.encode()).hexdigest()[:12]
    typing_area(
        NAMES[part],
        key=f"screening-concept-{part}",
        text=written.get(part, read),
        version=f"{form.version}-{version}",
        most=LONGEST_CONCEPTS,
        rows=1,
        placeholder="None was read of the question",
        optional=True,
        on_text=take,
    )


def _take(part: Part, text: str) -> None:
    form = current_form(served_workbench())
    before = _lines(form)
    lines = changed_lines(form.question.strip(), concept_lines(before) | {part: text})
    if lines != before:
        save(form, settings={**form.settings, CONCEPTS: lines})


def _reset() -> None:
    take_typed()
    form = current_form(served_workbench())
    save(form, replaced=True, settings={**form.settings, CONCEPTS: ""})


def show_concepts(screening: Screening) -> None:
    """Draw the concepts that a screening looked for, and which of them a person set."""
    question = question_of(screening.question, screening.settings)
    used, written = concepts_as_text(question), read_question(question).written
    with st.container(key="screening-concepts-used", gap="small"):
        for column, part in zip(st.columns(len(PARTS), gap="medium"), PARTS, strict=True):
            with column, st.container(gap=None):
                by = " · set by a person" if part in written else ""
                st.caption(f"{NAMES[part]}{by}")
                st.markdown(escaped(used[part]) if used[part] else "none")


def change_concepts(screening: Screening) -> None:
    """Draw the fields to screen the same question again with other concepts."""
    used = concepts_as_text(question_of(screening.question, screening.settings))
    for part in PARTS:
        st.text_input(NAMES[part], used[part], key=_key(screening.id, part), max_chars=LONGEST_CONCEPTS)
    st.caption(HINT)
    st.button(
        "Screen again",
        key="screen-again",
        type="primary",
        icon=":material/replay:",
        on_click=_again,
        args=(screening.id,),
        **needs("audit"),
    )
    st.caption("It becomes a screening of its own: same question, sources and criteria. This one stays as it is.")


def _key(screening_id: str, part: Part) -> str:
    return f"again-{screening_id}-{part}"


def _again(screening_id: str) -> None:
    concepts = {part: str(st.session_state.get(_key(screening_id, part)) or "") for part in PARTS}
    try:
        again = served_jobs().screen_again(actor(), screening_id, concepts)
    except MasisError as error:
        st.session_state["screening-problem"] = str(error)
        return
    for name in ("abstract", "show", "order", "page"):
        address.put(name, "")
    address.put("screening", again)

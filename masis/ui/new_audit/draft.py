"""The form of a new audit: stored as it is typed, so that it survives the page, the browser and the server."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any
from uuid import uuid4

import streamlit as st

from masis.datasets.readers.pasted import Pasted, merged, read_pasted, renamed, text_of, written
from masis.errors import InputError
from masis.schema.wording import counted
from masis.services import Actor, Workbench
from masis.ui.new_audit.form import LONGEST
from masis.ui.shell.inputs import take_typed
from masis.ui.shell.reviewer import actor
from masis.ui.shell.served_database import served_workbench
from masis.views.numbers import moment

# The example that fills the form of a new audit: short, and wrong in the ways an audit is for.

QUESTION = "What did the longer opening hours of the Ostergaard reading rooms change, and what did they cost?"

EVIDENCE = """\
[1] The city extended the opening hours of its four Ostergaard reading rooms from 40 to 63 hours a week in March 2021.
The two rooms by the harbour kept their old hours and served as a comparison.

[2] Visits to the four rooms rose from 212,000 in 2020 to 318,000 in 2022, an increase of 50%. The harbour rooms saw
hardly any change.

[3] Staff costs went up by 1.9 million kroner a year. Two thirds of this went to evening supplements; no new posts
were created.

[4] In the survey of autumn 2022, 71% of visitors under 25 said that they came mostly after 6 pm. Among visitors
over 60 it was 9%.
"""

ANSWER = (
    "In March 2021 the four Ostergaard reading rooms went from 40 to 63 hours a week [1]. Visits to the four "
    "rooms rose by 86% from 2020 to 2022 [2]. Younger visitors gained most: 71% of those under 25 came mostly after "
    "6 pm [4]. Staff costs went up by 1.9 million kroner a year [3]. A later review found that the number of "
    "loans doubled [7]. The city created twelve new posts for the evenings."
)


SUBJECT = "new-audit"
_STATE = "new-audit-form"


@dataclass
class AuditForm:
    """The form of one session.

    Attributes:
        owner: The name its draft is stored under.
        large: Name of an uploaded file that is too long for a field: its text is in the store only.
        version: Changes when the fields are to show other text than was typed. It is stored with the draft, so that a
            restarted server does not mistake its own text for newer than what is typed in the browser.
        uploads: Rises when an uploader is to be empty again.
        restored: When the draft that was found was saved; None once it has been changed.
        refused: Why the last start or upload was refused.

    """

    owner: Actor
    question: str = ""
    evidence: str = ""
    answer: str = ""
    large: str = ""
    settings: dict[str, Any] = field(default_factory=dict)
    version: str = ""
    uploads: int = 0
    restored: str | None = None
    refused: InputError | None = None

    def widget_key(self, name: str) -> str:
        """Return the key of a widget, another one for each version of the form.

        A widget starts with its default under each key. Assigning to the session state instead reaches the browser with
        one run only; where that is cut short the widget goes on with its old value, which then counts as chosen.
        """
        return f"new-audit-{name}-{self.version}-{self.owner}"


def current_form(workbench: Workbench) -> AuditForm:
    """Return the session's form; after a reload, and when a person's name becomes known, as it was stored."""
    owner = actor()
    held: AuditForm | None = st.session_state.get(_STATE)
    if held is not None and held.owner == owner:
        return held
    draft = workbench.drafts.get(owner, SUBJECT)
    values = draft.values
    texts = {name: value for name in LONGEST if isinstance(value := values.get(name), str)}
    large = values.get("large")
    settings = values.get("settings")
    form = AuditForm(
        owner=owner,
        large=str(large["name"]) if isinstance(large, dict) else "",
        settings=dict(settings) if isinstance(settings, dict) else {},
        version=str(values.get("version") or ""),
        uploads=held.uploads + 1 if held else 0,
        restored=moment(draft.saved_at) if draft.saved_at and (any(texts.values()) or large) else None,
    )
    for name, text in texts.items():
        setattr(form, name, text)
    st.session_state[_STATE] = form
    return form


def evidence_of(workbench: Workbench, form: AuditForm) -> Pasted:
    """Return the chunks of evidence in the form, typed or in the uploaded file."""
    if not form.large:
        return _read(form.evidence)
    large = workbench.drafts.get(form.owner, SUBJECT).values.get("large")
    return _read(str(large["text"]) if isinstance(large, dict) else "")


@st.cache_resource(show_spinner=False, max_entries=8)
def _read(text: str) -> Pasted:
    return read_pasted(text)


def save(form: AuditForm, *, replaced: bool = False, **values: Any) -> None:
    """Store values, then take them into the form; ``replaced`` lets the fields show them instead of what was typed."""
    if replaced:
        values["version"] = uuid4().hex
    served_workbench().drafts.save(form.owner, SUBJECT, values)
    form.refused, form.restored = None, None
    for name, value in values.items():
        setattr(form, name, value["name"] if name == "large" else value)


def take_text(name: str, text: str) -> None:
    """Store what was typed into a field."""
    form = current_form(served_workbench())
    if text != getattr(form, name):
        values: dict[str, Any] = {name: text}
        save(form, **values)


def edit_chunks(asked: object) -> None:
    """Join a chunk to the one before it, or change its id, as the preview asked; the text of the field follows."""
    workbench = served_workbench()
    form = current_form(workbench)
    if form.large or not isinstance(asked, dict):
        return
    chunks = evidence_of(workbench, form).chunks
    index = asked.get("index")
    if not isinstance(index, int) or not 0 <= index < len(chunks) or asked.get("id") != chunks[index].id:
        return  # the preview of a text that was changed meanwhile
    try:
        if asked.get("kind") == "merge" and index:
            chunks = merged(chunks, index)
        elif asked.get("kind") == "rename":
            chunks = renamed(chunks, index, str(asked.get("name") or ""))
    except InputError as error:
        form.refused = error
        return
    save(form, replaced=True, evidence=written(chunks))


def take_upload(name: str, key: str) -> None:
    """Store an uploaded file: its text goes into the field, or beside it where it is too long for a field."""
    take_typed()
    form = current_form(served_workbench())
    file = st.session_state.get(key)
    if file is None:
        return
    form.uploads += 1
    shown = file.name[:120]
    try:
        text = text_of(file.getvalue(), shown)
    except InputError as error:
        form.refused = error
        return
    values: dict[str, Any] = {name: text}
    if len(text) <= LONGEST[name]:
        save(form, replaced=True, **values)
    elif name == "evidence":
        save(form, large={"name": shown, "text": text})
    else:
        form.refused = InputError(
            f"The file {shown} holds {counted(len(text), 'character')}", cure=f"This field takes {LONGEST[name]:,}."
        )


def drop_file() -> None:
    """Remove the uploaded file; what was typed before it is shown again."""
    form = current_form(served_workbench())
    served_workbench().drafts.clear(form.owner, SUBJECT, "large")
    form.large, form.refused = "", None


def fill_example() -> None:
    """Put the example into the form."""
    take_typed()
    drop_file()
    save(current_form(served_workbench()), replaced=True, question=QUESTION, evidence=EVIDENCE, answer=ANSWER)


def empty_form() -> None:
    """Empty the form; its settings stay."""
    take_typed()
    form = current_form(served_workbench())
    served_workbench().drafts.clear(form.owner, SUBJECT, *LONGEST, "large")
    fresh = AuditForm(form.owner, settings=form.settings, uploads=form.uploads + 1)
    save(fresh, replaced=True)
    st.session_state[_STATE] = fresh

"""A form of one session, stored as it is filled in, so that it survives the page, the browser and
the server.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar, Self
from uuid import uuid4

import streamlit as st
from pydantic import BaseModel, InstanceOf
from pydantic_core import to_jsonable_python

from masis.errors import InputError
from masis.schema.actor import ANONYMOUS, Actor
from masis.schema.wording import count_noun
from masis.services.drafts import read_form
from masis.settings import Settings
from masis.ui.shell.inputs import typing_area
from masis.ui.shell.reviewer import actor, note_open_form
from masis.ui.shell.served_database import served_workbench


class StoredForm(BaseModel):
    """What a person has filled in: a form declares its fields, and ``save`` stores those that have
    changed.

    Attributes:
        SUBJECT: What its draft is stored under, with the name of its owner.
        version: Changes when the fields are to show other text than was typed. It is stored with
            the draft, so that a restarted server does not mistake its own text for newer than what
            is typed in the browser.
        owner: Whose draft it is.
        uploads: Rises when an uploader is to be empty again.
        saved_at: When the draft that was found was saved; None once it has been changed.
        refused: Why the last start or upload was refused.

    """

    SUBJECT: ClassVar[str]
    version: str = ""
    owner: Actor = ANONYMOUS
    uploads: int = 0
    saved_at: str | None = None
    refused: InstanceOf[InputError] | None = None

    @classmethod
    def current(cls) -> Self:
        """Return the session's form; after a reload, and when a person's name becomes known, as it
        was stored.
        """
        note_open_form(cls.SUBJECT)
        owner, held = actor(), st.session_state.get(cls.SUBJECT)
        if isinstance(held, cls) and held.owner == owner:
            return held
        draft = served_workbench().drafts.get(owner, cls.SUBJECT)
        form = read_form(cls, draft.values)
        form.owner, form.saved_at = owner, draft.saved_at
        form.uploads = held.uploads + 1 if isinstance(held, cls) else 0
        st.session_state[cls.SUBJECT] = form
        return form

    def save(self, *, replaced: bool = False, **values: Any) -> None:
        """Store values, then take them into the form; ``replaced`` shows them in place of what was
        typed.

        Of who may only read nothing is stored: the form holds it until the session ends.
        """
        if replaced:
            values["version"] = uuid4().hex
        workbench = served_workbench()
        if workbench.access.allows(self.owner, "decide"):
            workbench.drafts.save(self.owner, self.SUBJECT, to_jsonable_python(values))
        self.refused = self.saved_at = None
        for name, value in values.items():
            setattr(self, name, value)

    def text_field(self, name: str, label: str, *, most: int, rows: int, **shown: Any) -> None:
        """Draw the text area of a field, which stores what is typed into it; ``shown`` as
        ``typing_area`` takes it.
        """

        def take(text: str) -> None:
            form, typed = self.current(), {name: text}
            if text != getattr(form, name):
                form.save(replaced=False, **typed)

        typing_area(
            label,
            key=f"{self.SUBJECT}-{name}",
            text=getattr(self, name),
            version=self.version,
            most=most,
            rows=rows,
            on_text=take,
            **shown,
        )

    def widget_key(self, name: str) -> str:
        """Return the key of a widget, another one for each version of the form.

        A widget starts with its default under each key. Assigning to the session state instead
        reaches the browser with one run only; where that is cut short the widget goes on with its
        old value, which then counts as chosen.
        """
        return f"{self.SUBJECT}-{name}-{self.version}-{self.owner}"


def show_file(title: str, name: str, remove: Callable[[], None]) -> None:
    """Draw the name of an uploaded file in place of its field, with the button that removes it."""
    st.markdown(f"**{title}**")
    with st.container(horizontal=True, vertical_alignment="center"):
        st.text(name)
        st.button("Remove the file", icon=":material/close:", type="tertiary", on_click=remove)


class SettingsForm(StoredForm):
    """A form whose start takes settings of its own: ``settings`` are those that were
    changed in it.
    """

    settings: dict[str, Any] = {}

    def applied_to(self, base: Settings) -> Settings:
        """Return the settings with what was changed; a stored change that makes no sense is left
        out.
        """
        raise NotImplementedError

    @property
    def effective(self) -> Settings:
        """The workbench's settings with what was changed in the form."""
        return self.applied_to(served_workbench().settings)

    def change(self, name: str, value: Any) -> None:
        """Store a setting, unless it is what applies: a page that comes back posts its defaults as
        if chosen.
        """
        if value != getattr(self.effective, name):
            self.save(settings={**self.settings, name: value})

    @classmethod
    def take(cls, name: str, key: str) -> None:
        """Store the setting that the widget ``key`` has changed."""
        cls.current().change(name, st.session_state[key])

    def count_changed(self, base: Settings) -> int:
        """Return how many settings differ from the workbench's own."""
        chosen = self.applied_to(base)
        return sum(
            getattr(chosen, name) != getattr(base, name)
            for name in self.settings
            if name in type(base).model_fields
        )

    def settings_panel(self) -> Any:
        """Draw how many settings are changed, and return the expander that they stand in."""
        differ = self.count_changed(served_workbench().settings)
        st.caption(
            f"{count_noun(differ, 'setting')} changed"
            if differ
            else "The workbench's own settings apply."
        )
        # another label would be another expander, closed again
        return st.expander("Settings", icon=":material/tune:")

    def draw_setting(
        self, name: str, draw: Callable[..., object], *arguments: Any, **shown: Any
    ) -> None:
        """Draw a setting with what it does: ``draw(*arguments)`` is the widget, whose choice is
        stored.
        """
        key = self.widget_key(f"setting-{name}")
        with st.container(gap="xxsmall"):
            draw(*arguments, key=key, on_change=self.take, args=(name, key), **shown)
            st.caption(Settings.model_fields[name].description or "")

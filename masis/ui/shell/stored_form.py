"""A form that is stored while it is filled in, so that it survives reloads and restarts."""

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
    """A form whose fields are declared as attributes. ``save`` stores the fields that have changed.

    Attributes:
        SUBJECT: The draft is stored under this subject and its owner's name.
        version: Changes when the fields should show other text than was typed. It is stored with
            the draft, so that a restarted server doesn't treat its own text as newer than the
            browser's.
        owner: The owner of the draft.
        uploads: Increases when an uploader should be empty again.
        saved_at: When the restored draft was saved; None once it has been changed.
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
        """Return the session's form, restored from its draft after a reload or a change of name."""
        note_open_form(cls.SUBJECT)
        owner, held = actor(), st.session_state.get(cls.SUBJECT)
        if isinstance(held, cls) and held.owner == owner:
            return held
        draft = served_workbench().drafts.get(owner, cls.SUBJECT)
        form = read_form(cls, draft.values)
        form.owner, form.saved_at = owner, draft.saved_at
        # The uploader must not keep a file of the person who had the session before.
        form.uploads = held.uploads + 1 if isinstance(held, cls) else 0
        st.session_state[cls.SUBJECT] = form
        return form

    def save(self, *, replaced: bool = False, **values: Any) -> None:
        """Store values and put them into the form.

        ``replaced`` makes the fields show the values instead of what was typed. For users who may
        only read, nothing is stored; the form keeps the values until the session ends.
        """
        if replaced:
            values["version"] = uuid4().hex
        workbench = served_workbench()
        if workbench.access.allows(self.owner, "decide"):
            # A draft is stored as JSON, and a value may be a model or a tuple.
            workbench.drafts.save(self.owner, self.SUBJECT, to_jsonable_python(values))
        self.refused = self.saved_at = None
        for name, value in values.items():
            setattr(self, name, value)

    def text_field(self, name: str, label: str, *, most: int, rows: int, **shown: Any) -> None:
        """Draw the text area of a field; ``shown`` is passed on to ``typing_area``."""

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
        """Return the key of a widget, which changes with each version of the form.

        A widget starts with its default under a new key. Assigning to the session state instead
        would reach the browser with one run only. If that run is interrupted, the widget keeps its
        old value, which then counts as chosen by the user.
        """
        return f"{self.SUBJECT}-{name}-{self.version}-{self.owner}"


def show_file(title: str, name: str, remove: Callable[[], None]) -> None:
    """Draw the name of an uploaded file in place of its field, with a button to remove it."""
    st.markdown(f"**{title}**")
    with st.container(horizontal=True, vertical_alignment="center"):
        st.text(name)
        st.button("Remove the file", icon=":material/close:", type="tertiary", on_click=remove)


class SettingsForm(StoredForm):
    """A form with settings of its own; ``settings`` are those changed in the form."""

    settings: dict[str, Any] = {}

    def applied_to(self, base: Settings) -> Settings:
        """Return the settings with the form's changes; invalid stored changes are ignored."""
        raise NotImplementedError

    @property
    def effective(self) -> Settings:
        """The workbench's settings with the form's changes."""
        return self.applied_to(served_workbench().settings)

    def change(self, name: str, value: Any) -> None:
        """Store a setting unless it already applies.

        When a browser reconnects, its widgets send their default values as if the user had chosen
        them.
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
        """Draw the number of changed settings and return the expander for them."""
        differ = self.count_changed(served_workbench().settings)
        st.caption(
            f"{count_noun(differ, 'setting')} changed"
            if differ
            else "The workbench's own settings apply."
        )
        # Streamlit identifies an expander by its label, so a label with the count would make it a
        # new expander, which starts closed.
        return st.expander("Settings", icon=":material/tune:")

    def draw_setting(
        self, name: str, draw: Callable[..., object], *arguments: Any, **shown: Any
    ) -> None:
        """Draw a setting by ``draw(*arguments)``, with its description; the choice is stored."""
        key = self.widget_key(f"setting-{name}")
        with st.container(gap="xxsmall"):
            draw(*arguments, key=key, on_change=self.take, args=(name, key), **shown)
            st.caption(Settings.model_fields[name].description or "")

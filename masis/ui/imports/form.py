"""The form of an import: which file, or what was pasted, and how it is read; stored as it is filled in."""

from __future__ import annotations

import hashlib
import tempfile
import threading
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple
from uuid import uuid4

import streamlit as st
from pydantic import ValidationError

from masis.datasets.mapping import OWN_FORMAT, Fitting, Profile, builtin
from masis.datasets.mapping.columns import (
    ColumnChoice,
    columns_key,
    likely_choice,
    profile_of,
    still_there,
)
from masis.errors import InputError
from masis.schema.columns import Column, columns_of
from masis.services import Actor, Workbench
from masis.services.imports import Look
from masis.ui.shell.inputs import take_typed
from masis.ui.shell.reviewer import actor
from masis.ui.shell.served_database import served_database, served_workbench

MOST_HELD = 50
"""Files held at a time; the oldest gives way."""


class HeldFiles:
    """The files of one server, by tokens that nobody can guess."""

    def __init__(self) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="masis-imports-")
        self._lock = threading.Lock()
        self._held: dict[str, Path] = {}

    def put(self, content: bytes) -> str:
        """Hold an uploaded file; returns its token."""
        token = uuid4().hex
        self._write(token, content)
        return token

    def put_text(self, text: str) -> str:
        """Hold what was pasted; the same text has the same token."""
        content = text.encode("utf-8", "replace")
        token = f"pasted-{hashlib.sha256(content).hexdigest()}"
        if self.path(token) is None:
            self._write(token, content)
        return token

    def path(self, token: str) -> Path | None:
        """Return where a file lies; None where it is no longer held."""
        with self._lock:
            path = self._held.get(token)
        return path if path is not None and path.exists() else None

    def drop(self, token: str) -> None:
        """Remove a file."""
        with self._lock:
            path = self._held.pop(token, None)
        if path is not None:
            path.unlink(missing_ok=True)

    def close(self) -> None:
        """Remove all of them."""
        self._folder.cleanup()

    def _write(self, token: str, content: bytes) -> None:
        path = Path(self._folder.name) / token
        path.write_bytes(content)
        with self._lock:
            self._held[token] = path
            oldest = list(self._held)[:-MOST_HELD]
        for each in oldest:
            self.drop(each)


@st.cache_resource(show_spinner=False, on_release=lambda files: files.close())
def _held_for(_database: str) -> HeldFiles:
    return HeldFiles()


def held_files() -> HeldFiles:
    """Return the files of this server on the served database."""
    return _held_for(str(served_database()))


SUBJECT = "import"
COLUMNS = "columns"
"""The format in which a person says which column holds what."""

LONGEST_PASTED = 200_000
LONGEST_NAME = 120
PASTED = "Pasted rows"
_STATE = "import-form"


@dataclass
class ImportForm:
    """The form of one session.

    Attributes:
        owner: The name its draft is stored under.
        text: What was pasted.
        token: The uploaded file; "" where there is none.
        name: Its name.
        version: Changes when the field is to show other text than was typed.
        uploads: Rises when the uploader is to be empty again.
        refused: Why the last start was refused.

    """

    owner: Actor
    text: str = ""
    token: str = ""
    name: str = ""
    version: str = ""
    uploads: int = 0
    refused: str = ""


class Chosen(NamedTuple):
    """The file of the form: where it lies, its token, and the name that its format is recognised by."""

    path: Path
    token: str
    name: str


class Reading(NamedTuple):
    """How a file is read: what it may be, its columns, the format and the columns chosen, and what is remembered of it.

    ``format`` is "" where several fit and none has been chosen.
    """

    fitting: Fitting
    columns: tuple[Column, ...]
    key: str
    format: str
    choice: ColumnChoice

    @property
    def ready(self) -> bool:
        """Whether it is settled how the file is read."""
        return self.choice.complete if self.format == COLUMNS else bool(self.format)

    @property
    def profile(self) -> Profile | None:
        """The profile to read it by; None for the workbench's own format."""
        if self.format == COLUMNS:
            return profile_of(self.choice, self.columns)
        return builtin().get(self.format)


def current_form(workbench: Workbench) -> ImportForm:
    """Return the session's form; after a reload, and when a person's name becomes known, as it was stored."""
    owner = actor()
    held: ImportForm | None = st.session_state.get(_STATE)
    if held is not None and held.owner == owner:
        return held
    values = workbench.drafts.get(owner, SUBJECT).values
    texts = {name: value for name in ("text", "token", "name", "version") if isinstance(value := values.get(name), str)}
    form = ImportForm(owner, uploads=held.uploads + 1 if held else 0, **texts)
    st.session_state[_STATE] = form
    return form


def save(form: ImportForm, **values: Any) -> None:
    """Store values, then take them into the form."""
    served_workbench().drafts.save(form.owner, SUBJECT, values)
    form.refused = ""
    for name, value in values.items():
        setattr(form, name, value)


def take_text(text: str) -> None:
    """Store what was pasted."""
    form = current_form(served_workbench())
    if text != form.text:
        save(form, text=text)


def take_upload(key: str) -> None:
    """Hold an uploaded file; what was pasted stays, and is shown again when the file is removed."""
    take_typed()
    form = current_form(served_workbench())
    file = st.session_state.get(key)
    if file is None:
        return
    form.uploads += 1
    before, token = form.token, held_files().put(file.getvalue())
    save(form, token=token, name=file.name[:LONGEST_NAME])
    held_files().drop(before)


def drop_file() -> None:
    """Remove the uploaded file."""
    form = current_form(served_workbench())
    held_files().drop(form.token)
    save(form, token="", name="")


def empty_form() -> None:
    """Remove the file and the text; the field is shown empty."""
    form = current_form(served_workbench())
    held_files().drop(form.token)
    save(form, text="", token="", name="", version=uuid4().hex)


def chosen_file(form: ImportForm) -> Chosen | None:
    """Return the file of the form, uploaded or pasted; None where there is none, or it is no longer held."""
    if form.token:
        path = held_files().path(form.token)
        return Chosen(path, form.token, form.name) if path is not None else None
    text = form.text.strip()
    if not text:
        return None
    token = held_files().put_text(form.text)
    path = held_files().path(token)
    # The name tells the format: a text that is no JSON is a table, as copied from a spreadsheet
    name = f"{PASTED}.json" if text.startswith("[") else f"{PASTED}.jsonl" if text.startswith("{") else f"{PASTED}.csv"
    return Chosen(path, token, name) if path is not None else None


def reading_of(workbench: Workbench, form: ImportForm, chosen: Chosen) -> Reading:
    """Return how a file is read: as chosen for this set of columns before, else as its first row tells.

    Raises InputError where it can't be read at all.
    """
    fitting = _formats(chosen.path, chosen.name, form.owner)
    columns, key = columns_of(fitting.row), columns_key(fitting.row)
    remembered = workbench.drafts.get(form.owner, _subject(key)).values
    known = remembered.get("format")
    if not (isinstance(known, str) and (known in (COLUMNS, OWN_FORMAT) or known in builtin())):
        known = fitting.formats[0] if len(fitting.formats) == 1 else "" if fitting.formats else COLUMNS
    try:
        choice = ColumnChoice.model_validate(remembered["columns"]) if "columns" in remembered else None
    except ValidationError:  # of another version
        choice = None
    choice = likely_choice(columns) if choice is None else choice
    return Reading(fitting, columns, key, known, still_there(choice, columns))


def remember(key: str, **values: Any) -> None:
    """Remember how files with this set of columns are read."""
    workbench = served_workbench()
    form = current_form(workbench)
    workbench.drafts.save(form.owner, _subject(key), values)
    form.refused = ""


def _subject(key: str) -> str:
    return f"import-columns:{key}"


@st.cache_resource(show_spinner=False, max_entries=16)
def _formats(path: Path, name: str, _owner: Actor) -> Fitting:
    return served_workbench().imports.formats_of(_owner, path, name=name)


@st.cache_resource(show_spinner="Reading the first rows", max_entries=8)
def _look(path: Path, name: str, profile: str, _owner: Actor) -> Look:
    read_by = Profile.model_validate_json(profile) if profile else None
    return served_workbench().imports.look(_owner, path, read_by, name=name)


def look_at(form: ImportForm, chosen: Chosen, reading: Reading) -> Look:
    """Return the first rows as they would be read. Raises InputError."""
    if not reading.ready:
        raise InputError("is not settled how it is read", cure="Choose the format or the columns.")
    profile = reading.profile
    return _look(chosen.path, chosen.name, profile.model_dump_json() if profile is not None else "", form.owner)

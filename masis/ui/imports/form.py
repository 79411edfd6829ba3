"""The form of an import: which file, or what was pasted, and how it is read; stored as it is filled in."""

from __future__ import annotations

import hashlib
import tempfile
from pathlib import Path
from typing import Any, NamedTuple
from uuid import uuid4

import streamlit as st
from pydantic import ValidationError

from masis.datasets.mapping.profile import (
    OWN_FORMAT,
    ColumnChoice,
    Profile,
    builtin,
    columns_key,
    likely_choice,
    profile_of,
    still_there,
)
from masis.datasets.mapping.reader import Fitting
from masis.errors import InputError
from masis.schema.columns import Column, columns_of
from masis.services import Actor, Workbench
from masis.services.imports import Look
from masis.ui.shell.inputs import take_typed
from masis.ui.shell.served_database import served_database, served_workbench
from masis.ui.shell.stored_form import StoredForm

MOST_HELD = 50
"""Files held at a time; the oldest gives way."""
COLUMNS = "columns"
"""The format in which a person says which column holds what."""

LONGEST_PASTED = 200_000
LONGEST_NAME = 120
PASTED = "Pasted rows"


class HeldFiles:
    """Files that were uploaded or pasted, by tokens that nobody can guess, until they are imported or removed.

    They lie in a temporary folder that only the server's user can read, and are gone when the server ends.
    """

    def __init__(self) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="masis-imports-")
        self._held: dict[str, Path] = {}

    def put(self, content: bytes, token: str = "") -> str:
        """Hold an uploaded file; returns its token."""
        token = token or uuid4().hex
        path = Path(self._folder.name) / token
        path.write_bytes(content)
        self._held[token] = path
        for oldest in list(self._held)[:-MOST_HELD]:
            self.drop(oldest)
        return token

    def put_text(self, text: str) -> str:
        """Hold what was pasted; the same text has the same token."""
        content = text.encode("utf-8", "replace")
        token = f"pasted-{hashlib.sha256(content).hexdigest()}"
        return token if self.path(token) else self.put(content, token)

    def path(self, token: str) -> Path | None:
        """Return where a file lies; None where it is no longer held."""
        path = self._held.get(token)
        return path if path is not None and path.exists() else None

    def drop(self, token: str) -> None:
        """Remove a file."""
        if (path := self._held.pop(token, None)) is not None:
            path.unlink(missing_ok=True)

    def close(self) -> None:
        """Remove all of them."""
        self._folder.cleanup()


@st.cache_resource(show_spinner=False, on_release=lambda files: files.close())
def _held_for(_database: str) -> HeldFiles:
    return HeldFiles()


def held_files() -> HeldFiles:
    """Return the files of this server on the served database."""
    return _held_for(str(served_database()))


class ImportForm(StoredForm):
    """The form of one session: what was pasted, or the token and the name of the uploaded file."""

    SUBJECT = "import"
    text: str = ""
    token: str = ""
    name: str = ""


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


def take_text(text: str) -> None:
    """Store what was pasted."""
    form = ImportForm.current()
    if text != form.text:
        form.save(text=text)


def take_upload(key: str) -> None:
    """Hold an uploaded file; what was pasted stays, and is shown again when the file is removed."""
    take_typed()
    form, file = ImportForm.current(), st.session_state.get(key)
    if file is None:
        return
    form.uploads += 1
    before, token = form.token, held_files().put(file.getvalue())
    form.save(token=token, name=file.name[:LONGEST_NAME])
    held_files().drop(before)


def drop_file(**also: Any) -> None:
    """Remove the uploaded file; ``also`` are further fields of the form to store."""
    form = ImportForm.current()
    held_files().drop(form.token)
    form.save(token="", name="", **also)


def empty_form() -> None:
    """Remove the file and the text; the field is shown empty."""
    drop_file(text="", version=uuid4().hex)


def chosen_file(form: ImportForm) -> Chosen | None:
    """Return the file of the form, uploaded or pasted; None where there is none, or it is no longer held."""
    token, name, text = form.token, form.name, form.text.strip()
    if not token and text:
        token = held_files().put_text(form.text)
        # The name tells the format: a text that is no JSON is a table, as copied from a spreadsheet
        name = f"{PASTED}.{'json' if text.startswith('[') else 'jsonl' if text.startswith('{') else 'csv'}"
    path = held_files().path(token)
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
    form = ImportForm.current()
    served_workbench().drafts.save(form.owner, _subject(key), values)
    form.refused = None


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

"""The import page: upload or paste a file, preview its rows, import it, and audit the cases."""

from __future__ import annotations

import hashlib
import tempfile
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple
from uuid import uuid4

import streamlit as st
from pydantic import ValidationError

from masis.datasets.mapping.profile import (
    OWN_FORMAT,
    ColumnChoice,
    Profile,
    columns_key,
    drop_missing_columns,
    import_profiles,
    likely_choice,
    profile_of,
)
from masis.datasets.mapping.reader import FormatMatch
from masis.errors import InputError, MasisError
from masis.schema.columns import SourceColumn, columns_of, likely_columns
from masis.schema.reading import SPLIT, FieldMap
from masis.schema.wording import count_noun, shorten
from masis.services import Actor, Workbench
from masis.services.arrivals.imports import ImportPreview, ImportStep
from masis.services.background import BackgroundTask, BackgroundTasks
from masis.ui.components import register_component
from masis.ui.components.linked_table import column, linked_table, row
from masis.ui.live import draw_task, show_live
from masis.ui.new_audit.form import understood_case
from masis.ui.queue.overview import show_unaudited
from masis.ui.shell import address
from masis.ui.shell.inputs import store_typed
from masis.ui.shell.permissions import action
from masis.ui.shell.reviewer import actor
from masis.ui.shell.served_database import served_workbench
from masis.ui.shell.stored_form import StoredForm, show_file

# --- The form: the file or the pasted text, and how to read it. It is stored while it's filled in.

MOST_HELD = 50
"""Maximum number of uploaded files that the server has at a time."""
ONE_CHUNK = "one"
"""The choice that a text is one chunk of evidence, whatever it contains."""

COLUMNS = "columns"
"""The format in which the user chooses the column of each field."""

LONGEST_PASTED = 200_000
LONGEST_NAME = 120
PASTED = "Pasted rows"
DRAFT_OF_COLUMNS = "import-columns:"


class HeldFiles:
    """Uploaded or pasted files by random token, until they are imported or removed.

    They are in a temporary folder that only the server's user can read, which is deleted when the
    server stops.
    """

    def __init__(self) -> None:
        # Python creates it with mode 0700.
        self.folder = tempfile.TemporaryDirectory(prefix="masis-imports-")
        self._held: dict[str, Path] = {}

    def hold(self, content: bytes, token: str) -> None:
        """Store a file under a token and drop the oldest files if there are too many."""
        path = Path(self.folder.name) / token
        path.write_bytes(content)
        self._held[token] = path
        # A dict keeps the order of insertion, so the oldest files are first.
        for oldest in list(self._held)[:-MOST_HELD]:
            self.drop(oldest)

    def path(self, token: str) -> Path | None:
        """Return the path of a file, or None if it is no longer stored."""
        path = self._held.get(token)
        return path if path is not None and path.exists() else None

    def drop(self, token: str) -> None:
        """Remove a file."""
        if (path := self._held.pop(token, None)) is not None:
            path.unlink(missing_ok=True)


@st.cache_resource(show_spinner=False, on_release=lambda files: files.folder.cleanup())
def held_files() -> HeldFiles:
    """Return the files of this server."""
    return HeldFiles()


class ImportForm(StoredForm):
    """The form of one session: the pasted text, or the token and name of the uploaded file.

    ``sheet`` is the sheet of a workbook to read. ``split`` is the separator of chunks in an
    evidence that is a single text: ``ONE_CHUNK`` if there is none, "" to decide while reading.
    """

    SUBJECT = "import"
    text: str = ""
    token: str = ""
    name: str = ""
    sheet: str = ""
    split: str = ""


class ChosenFile(NamedTuple):
    """The file of the form: its path, its token, and the name that suggests its format."""

    path: Path
    token: str
    name: str


class FileReading(NamedTuple):
    """How a file is read: its possible formats, its columns, and the choices remembered for it.

    ``format`` is "" if several formats fit and none has been chosen.
    """

    fitting: FormatMatch
    columns: tuple[SourceColumn, ...]
    key: str
    format: str
    choice: ColumnChoice
    sheet: str | None = None
    names: FieldMap | None = None

    @property
    def ready(self) -> bool:
        """Whether the format and columns are settled."""
        return self.choice.complete if self.format == COLUMNS else bool(self.format)

    @property
    def profile(self) -> Profile | None:
        """The profile for reading the file, or None for the workbench's own format."""
        if self.format == COLUMNS:
            return profile_of(self.choice, self.columns)
        return import_profiles().get(self.format)

    @property
    def evidence_is_text(self) -> bool:
        """Whether the first row's evidence is a single text, which may contain several chunks."""
        evidence = likely_columns(self.columns, ("query", "answer", "evidence")).get("evidence")
        return evidence is not None and evidence.kind == "text"


def _on_upload(key: str) -> None:
    """Store an uploaded file. Pasted text stays and is shown again when the file is removed."""
    store_typed()
    form, file = ImportForm.current(), st.session_state.get(key)
    if file is None:
        return
    # Streamlit can't empty a file uploader, but a new key draws a new one.
    form.uploads += 1
    before, token = form.token, uuid4().hex
    held_files().hold(file.getvalue(), token)
    form.save(token=token, name=file.name[:LONGEST_NAME], sheet="", split="")
    held_files().drop(before)


def _drop_file(**also: Any) -> None:
    """Remove the uploaded file; ``also`` are further fields of the form to store."""
    form = ImportForm.current()
    held_files().drop(form.token)
    form.save(token="", name="", sheet="", split="", **also)


def _empty_form() -> None:
    """Remove the file and the text, and show an empty field."""
    _drop_file(text="", version=uuid4().hex)


def _chosen_file(form: ImportForm) -> ChosenFile | None:
    """Return the uploaded or pasted file of the form, or None if there is none."""
    token, name, text = form.token, form.name, form.text.strip()
    if not token and text:
        # A browser can send half of a surrogate pair, which UTF-8 can't encode.
        content = form.text.encode("utf-8", "replace")
        token = f"pasted-{hashlib.sha256(content).hexdigest()}"
        if held_files().path(token) is None:
            held_files().hold(content, token)
        # The suffix selects the format. Text that isn't JSON is a table copied from a spreadsheet.
        suffix = "json" if text.startswith("[") else "jsonl" if text.startswith("{") else "csv"
        name = f"{PASTED}.{suffix}"
    path = held_files().path(token)
    return ChosenFile(path, token, name) if path is not None else None


def _reading_of(workbench: Workbench, form: ImportForm, chosen: ChosenFile) -> FileReading:
    """Return how a file is read.

    A remembered choice for these columns is used, or else the format that the first row suggests.

    Raises:
        InputError: If it can't be read at all.

    """
    sheet = form.sheet or None
    fitting = _fitting_formats(chosen.path, chosen.name, sheet, form.owner)
    columns, key = columns_of(fitting.row), columns_key(fitting.row)
    remembered = workbench.drafts.get(form.owner, DRAFT_OF_COLUMNS + key).values
    known = remembered.get("format")
    if not (
        isinstance(known, str) and (known in (COLUMNS, OWN_FORMAT) or known in import_profiles())
    ):
        known = (
            fitting.formats[0] if len(fitting.formats) == 1 else "" if fitting.formats else COLUMNS
        )
    try:
        choice = (
            ColumnChoice.model_validate(remembered["columns"]) if "columns" in remembered else None
        )
    except ValidationError:  # stored by another version
        choice = None
    choice = likely_choice(columns) if choice is None else choice
    split = None if form.split == ONE_CHUNK else form.split
    names: FieldMap | None = {SPLIT: split} if form.split else None
    return FileReading(
        fitting, columns, key, known, drop_missing_columns(choice, columns), sheet, names
    )


def _remember_reading(key: str, **values: Any) -> None:
    """Remember how files with this set of columns are read."""
    form = ImportForm.current()
    served_workbench().drafts.save(form.owner, DRAFT_OF_COLUMNS + key, values)
    form.refused = None


# Streamlit leaves arguments with a leading underscore out of a cache key.
@st.cache_resource(show_spinner=False, max_entries=16)
def _fitting_formats(path: Path, name: str, sheet: str | None, _owner: Actor) -> FormatMatch:
    return served_workbench().imports.formats_of(_owner, path, name=name, sheet=sheet)


@st.cache_resource(show_spinner=False, max_entries=16)
def _sheet_names(path: Path, name: str, _owner: Actor) -> list[str]:
    return served_workbench().imports.sheets_of(_owner, path, name=name)


@st.cache_resource(show_spinner="Reading the first rows", max_entries=8)
def _preview_file(
    path: Path, name: str, profile: str, sheet: str | None, names: FieldMap | None, _owner: Actor
) -> ImportPreview:
    read_by = Profile.model_validate_json(profile) if profile else None
    return served_workbench().imports.preview(_owner, path, read_by, names, name=name, sheet=sheet)


# the page

CASES_SHOWN = 3
PROBLEMS_SHOWN = 50
WAIT_FOR_IMPORT_S = 0.4
"""How long the click waits for an import; most finish in this time without a progress bar."""

UPLOADS = ["jsonl", "ndjson", "json", "csv", "tsv", "txt", "xlsx", "xlsm", "parquet", "gz", "zip"]
_UNDERSTOOD = register_component("understood")
_STYLE = """<style>
[class*=st-key-import-column] { span[title] { color: light-dark(#fff, #101417); }
  button[aria-label="Clear all"] { min-width: 24px; min-height: 24px; } }
</style>"""
"""Chosen options have the primary colour, on which Streamlit's white has too little contrast."""
_PROBLEMS = [column("Row", "figure"), column("Problem", "main"), column("Hint")]
MOST_PROBLEMS = 200
"""Problems that an import keeps; further ones are only counted."""


class FileImport(BackgroundTask):
    """One import and its progress, readable while it runs.

    Raises:
        NotAllowed: The actor's role doesn't allow imports.

    """

    stopped = False
    """Whether it was stopped before the end of the file."""

    def __init__(
        self, workbench: Workbench, actor: Actor, source: ChosenFile, reading: FileReading
    ) -> None:
        super().__init__()
        self.source, self.size = source, max(1, source.path.stat().st_size)
        self.step = ImportStep(0, 0, 0, 0, 0)
        self.problems: list[MasisError] = []
        self.problem_count = 0
        self._steps = workbench.imports.add_file(
            actor,
            source.path,
            reading.profile,
            reading.names,
            name=source.name,
            sheet=reading.sheet,
        )

    @property
    def complete(self) -> bool:
        """Whether every row of the file has become a case."""
        return self.over and not (self.stopped or self.failed or self.problem_count)

    @property
    def share(self) -> float:
        """The share of the file that was read, 0 to 1."""
        return min(1.0, self.step.end / self.size)

    @property
    def progress_text(self) -> str:
        """The number of rows read and their results."""
        step = self.step
        refused = f", {count_noun(step.refused, 'row')} refused" if step.refused else ""
        imported = count_noun(step.added, "case")
        return f"{count_noun(step.rows, 'row')} read, {imported} imported{refused}"

    def work(self) -> None:
        """Import batch by batch."""
        for step in self._steps:
            self.step = step
            self.problem_count += len(step.problems)
            # All of them could fill the memory of the server, so the others are only counted.
            self.problems += step.problems[: MOST_PROBLEMS - len(self.problems)]
            # If the file is read completely, the stop came too late to change anything.
            if self.stopping and self.share < 1:
                self.stopped = True
                return


IMPORTS: BackgroundTasks[FileImport] = BackgroundTasks()
"""The imports of this process by the token in the address."""


def show_imports(workbench: Workbench) -> None:
    """Draw the form, or the import that the address names."""
    st.title("Import")
    if not workbench.access.allows(actor(), "audit"):
        st.markdown("You need the reviewer role to import. Ask an admin of this workbench.")
        return
    if token := address.value("import"):
        _show_import(workbench, token)
        return
    st.markdown(
        "Each row becomes a case: a question, its evidence, and an answer. You can match columns"
        " with other names in the next step. Nothing is stored before you import."
    )
    form = ImportForm.current()
    left, right = st.columns([55, 45], gap="large")
    with left:
        # These containers always exist, so that the fields below keep their place and their text.
        with st.container():
            _draw_file_field(form)
        reading = error = None
        chosen = _chosen_file(form)
        with st.container():
            sheets = _draw_sheet_choice(form, chosen) if chosen is not None else []
        needs_sheet = len(sheets) > 1 and form.sheet not in sheets
        if chosen is not None and not needs_sheet:
            try:
                reading = _reading_of(workbench, form, chosen)
            # Python deletes the name of an except clause at its end, so the error gets another
            # name.
            except InputError as found:
                error = found
        with st.container():
            if reading is not None:
                _draw_format_choice(form, reading)
        with st.container():
            if reading is not None and reading.format == COLUMNS:
                _draw_column_choices(form, reading)
        with st.container():
            if reading is not None and reading.evidence_is_text:
                _draw_split_choice(form)
    with right:
        if form.token and chosen is None:
            st.warning(
                "The file is no longer on the server, because it was restarted. Choose it again."
            )
        elif chosen is None:
            st.header("First rows")
            st.caption(
                "The first rows are shown here as they would be read, with all problems. Nothing is"
                " stored before you import."
            )
        elif needs_sheet:
            st.header("First rows")
            st.caption("Choose the sheet to see its rows here as they would be read.")
        elif reading is None:
            _draw_refusal(str(error))
        else:
            preview = None
            if reading.ready:
                profile = "" if reading.profile is None else reading.profile.model_dump_json()
                preview = _preview_file(
                    chosen.path, chosen.name, profile, reading.sheet, reading.names, form.owner
                )
            shown: dict[str, Any] = {
                "type": "primary",
                "width": "stretch",
                "shortcut": "Ctrl+Enter",
            }
            nothing_to_import = preview is None or not preview.cases
            action(
                "Import the cases",
                "start-import",
                "upload_file",
                _start_import,
                disabled=nothing_to_import,
                **shown,
            )
            with st.container():
                if form.refused:
                    _draw_refusal(str(form.refused))
            _draw_first_rows(preview, reading)


# the file


def _draw_file_field(form: ImportForm) -> None:
    if form.token:
        show_file("File", form.name, _drop_file)
        return
    key = f"import-upload-{form.uploads}"
    st.file_uploader(
        "A file of cases, or one that another tool exported",
        type=UPLOADS,
        key=key,
        on_change=_on_upload,
        args=(key,),
    )
    form.text_field(
        "text",
        "Or paste rows",
        most=LONGEST_PASTED,
        rows=6,
        hint="JSON Lines, JSON, or a table with its header, as copied from a spreadsheet.",
        placeholder="question,contexts,answer",
    )


# sheet, format, columns and separators


def _draw_sheet_choice(form: ImportForm, chosen: ChosenFile) -> list[str]:
    """Draw the choice of a sheet if a workbook has several, and return their names."""
    try:
        sheets = _sheet_names(chosen.path, chosen.name, form.owner)
    except InputError:  # shown in place of its rows
        return []
    if len(sheets) > 1:
        key = f"import-sheet-{chosen.token}-{form.owner}"
        st.selectbox(
            "Sheet",
            sheets,
            sheets.index(form.sheet) if form.sheet in sheets else None,
            key=key,
            placeholder="Choose the sheet",
            on_change=lambda: ImportForm.current().save(sheet=st.session_state[key] or ""),
        )
    return sheets


_SPLITS = {
    "": "Ask where it's uncertain",
    ONE_CHUNK: "It's one chunk",
    "|": "A vertical bar separates chunks",
    ";": "A semicolon separates chunks",
    "\n\n": "A blank line separates chunks",
    "\n": "A line break separates chunks",
}


def _draw_split_choice(form: ImportForm) -> None:
    """Draw the choice of a separator for chunks in a single text (``evidence.split`` in a map)."""
    key = f"import-split-{form.token}-{form.owner}"
    st.selectbox(
        "Several chunks in one text",
        list(_SPLITS),
        list(_SPLITS).index(form.split) if form.split in _SPLITS else 0,
        key=key,
        format_func=_SPLITS.__getitem__,
        on_change=lambda: ImportForm.current().save(split=st.session_state[key]),
    )


def _draw_format_choice(form: ImportForm, reading: FileReading) -> None:
    fits = reading.fitting.formats
    options = list(dict.fromkeys((*fits, COLUMNS, OWN_FORMAT, *import_profiles())))
    key = f"import-format-{reading.key}-{form.owner}"
    st.selectbox(
        "Format",
        options,
        options.index(reading.format) if reading.format else None,
        key=key,
        format_func=lambda name: (
            ("I choose the columns" if name == COLUMNS else import_profiles()[name].title)
            + (" (fits)" if name in fits else "")
        ),
        placeholder="Choose the format",
        on_change=lambda: _remember_reading(reading.key, format=st.session_state[key]),
    )
    if len(fits) > 1 and not reading.format:
        st.caption(f"The first row fits {count_noun(len(fits), 'format')}. Choose one.")
    elif not fits:
        st.caption("The first row doesn't fit a known format. Choose the column of each field.")
    elif reading.format in fits:
        st.caption(
            "Detected from the first row."
            if len(fits) == 1
            else "As chosen for files with these columns."
        )


_OPTIONAL = {
    "answer": "Answer",
    "system": "System that answered",
    "id": "Id of the case",
    "reference": "Reference answer",
}


def _draw_column_choices(form: ImportForm, reading: FileReading) -> None:
    """Draw the choice of columns, which is remembered for files with the same columns."""
    samples = {column.shown: column.sample for column in reading.columns}
    prefix = f"import-column-{reading.key}-{form.owner}"
    st.html(_STYLE)
    st.caption("Your choice is remembered for files with the same columns.")
    _draw_column_choice("query", "Question", samples, reading, prefix)
    chosen = reading.choice.evidence
    st.multiselect(
        "Evidence",
        list(samples),
        list(chosen),
        key=f"{prefix}-evidence",
        format_func=lambda name: _column_name(name, samples),
        placeholder="Choose one column or more",
        on_change=_on_column_chosen,
        args=("evidence", f"{prefix}-evidence"),
    )
    with st.container():  # always exists, so that the boxes below keep their place
        if items := {
            name: ""
            for source in reading.columns
            if source.shown in chosen
            for name in source.items
        }:
            text, name = st.columns(2)
            with text:
                _draw_column_choice("chunk_text", "Text of a chunk", items, reading, prefix)
            with name:
                _draw_column_choice("chunk_id", "Id of a chunk", items, reading, prefix)
    for field, label in _OPTIONAL.items():
        _draw_column_choice(field, f"{label} (optional)", samples, reading, prefix)
    if unused := reading.choice.unused_columns(reading.columns):
        st.text(f"Not used: {shorten(', '.join(unused), 300)}. They're stored with the case.")


def _draw_column_choice(
    name: str, label: str, samples: dict[str, str], reading: FileReading, prefix: str
) -> None:
    options, key = ["", *samples], f"{prefix}-{name}"
    st.selectbox(
        label,
        options,
        options.index(getattr(reading.choice, name)),
        key=key,
        format_func=lambda shown: _column_name(shown, samples),
        on_change=_on_column_chosen,
        args=(name, key),
    )


def _column_name(name: str, samples: dict[str, str]) -> str:
    if not name:
        return "None"
    return f"{name}: {samples[name]}" if samples.get(name) else name


def _on_column_chosen(name: str, key: str) -> None:
    form = ImportForm.current()
    chosen = _chosen_file(form)
    if chosen is None:
        return
    reading = _reading_of(served_workbench(), form, chosen)
    value: Any = st.session_state[key]
    choice = reading.choice.model_copy(update={name: tuple(value) if name == "evidence" else value})
    _remember_reading(reading.key, format=COLUMNS, columns=choice.model_dump(mode="json"))


# the first rows


def _draw_refusal(why: str) -> None:
    with st.container(key="import-refused"):
        st.error("The file can't be imported as it is.", icon=":material/error:")
        st.text(why)


def _draw_first_rows(preview: ImportPreview | None, reading: FileReading) -> None:
    st.header("First rows")
    if preview is None:
        missing = (
            "the columns of question and evidence" if reading.format == COLUMNS else "the format"
        )
        st.caption(f"Choose {missing} to see the first rows here as they would be read.")
        return
    of = (
        count_noun(preview.rows, "row")
        if preview.whole
        else f"the first {count_noun(preview.rows, 'row')}"
    )
    st.text(
        f"Of {of}, {count_noun(len(preview.cases), 'case')} can be imported,"
        f" {count_noun(preview.refused, 'row')} can't."
    )
    for number, case in enumerate(preview.cases[:CASES_SHOWN], 1):
        _UNDERSTOOD(
            data=understood_case(case, title=f"Case {number}: {case.id[:80]}"),
            key=f"import-case-{number}",
        )
    _problem_table(preview.problems, len(preview.problems), "import-look-problems")
    if preview.notes:
        st.markdown("**Needs attention**")
        _problem_table(preview.notes, len(preview.notes), "import-look-notes")


def _problem_table(problems: Sequence[MasisError], count: int, key: str) -> None:
    if not problems:
        return
    rows = []
    for problem in problems[:PROBLEMS_SHOWN]:
        if isinstance(problem, InputError):
            place = f"{problem.field}: " if problem.field else ""
            rows.append(row(str(problem.line or ""), f"{place}{problem.problem}", problem.hint))
        else:
            rows.append(row(None, str(problem), None))
    linked_table(_PROBLEMS, rows, description="Problems by row", key=key)
    if count > len(rows):
        st.caption(f"and {count_noun(count - len(rows), 'more problem', 'more problems')}")


# the import


def _start_import() -> None:
    store_typed()
    workbench, form, token = served_workbench(), ImportForm.current(), uuid4().hex
    chosen = _chosen_file(form)
    try:
        if chosen is None:
            raise InputError("There is no file to import", hint="Choose a file first.")
        reading = _reading_of(workbench, form, chosen)
        if not reading.ready:
            raise InputError(
                "The file's format is ambiguous", hint="Choose the format or the columns."
            )
        if reading.format == COLUMNS:
            _remember_reading(
                reading.key, format=COLUMNS, columns=reading.choice.model_dump(mode="json")
            )
        file_import = IMPORTS.start(token, lambda: FileImport(workbench, actor(), chosen, reading))
    except InputError as error:
        form.refused = error
        return
    except MasisError as error:
        form.refused = InputError(str(error), hint="Nothing was imported.")
        return
    file_import.wait(WAIT_FOR_IMPORT_S)
    address.set_param("import", token)


def _show_import(workbench: Workbench, token: str) -> None:
    file_import = IMPORTS.get(token)
    if file_import is None:
        st.markdown(
            "**This import is no longer known**, because the server was restarted. The cases it had"
            " stored are in the queue. Importing the same file again doesn't change them."
        )
        st.page_link("pages/queue.py", label="Queue", icon=":material/checklist:")
        st.button(
            "Import a file",
            on_click=address.set_param,
            args=("import", ""),
            icon=":material/upload_file:",
        )
        return
    st.text(file_import.source.name)
    with st.container():
        if file_import.over:
            _draw_import_result(workbench, file_import)
        else:
            says = "You can leave this page. The import continues."
            show_live(
                partial(draw_task, partial(IMPORTS.get, token), "import", "stop-import", says=says)
            )


def _draw_import_result(workbench: Workbench, file_import: FileImport) -> None:
    step = file_import.step
    st.header(f"{count_noun(step.added, 'case')} imported")
    parts = []
    if step.unchanged:
        parts.append(f"{count_noun(step.unchanged, 'case was', 'cases were')} already stored.")
    if step.refused:
        parts.append(f"{count_noun(step.refused, 'row')} couldn't be imported.")
    if file_import.stopped:
        parts.append(
            "The import was stopped before the end of the file. The cases counted here are stored."
        )
    if parts:
        st.text(" ".join(parts))
    if file_import.failed:
        _draw_refusal(file_import.failed)
    _problem_table(file_import.problems, file_import.problem_count, "import-problems")
    chosen = _chosen_file(ImportForm.current())
    # The form may hold another file by now, for example in a second tab.
    still_chosen = chosen is not None and chosen.token == file_import.source.token
    if file_import.complete and still_chosen:
        _empty_form()
    with st.container(horizontal=True):
        if not file_import.complete and still_chosen:
            st.button(
                "Back to the file",
                on_click=address.set_param,
                args=("import", ""),
                icon=":material/arrow_back:",
                key="back-to-file",
            )
        st.button(
            "Import another file",
            on_click=_import_another,
            icon=":material/upload_file:",
            key="import-another",
        )
        st.page_link(
            "pages/queue.py",
            label=f"See the {count_noun(step.added, 'imported case')}" if step.added else "Queue",
            icon=":material/checklist:",
            query_params={"imported": step.import_id} if step.added else {},
        )
    with st.container(key="import-audit"):
        show_unaudited(workbench, workbench.cases.facets(), primary=True)


def _import_another() -> None:
    address.set_param("import", "")
    _empty_form()

"""Files become cases: uploaded or pasted, shown as they would be read, imported beside the page, then audited."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any
from uuid import uuid4

import streamlit as st

from masis.datasets.mapping.profile import OWN_FORMAT, Profile, builtin
from masis.errors import InputError, MasisError
from masis.schema.wording import counted
from masis.services import Actor, Workbench
from masis.services.background import BackgroundTask, BackgroundTasks
from masis.services.imports import ImportStep, Look
from masis.ui.components import registered
from masis.ui.components.linked_table import Row, column, linked_table, row
from masis.ui.imports.form import (
    COLUMNS,
    LONGEST_PASTED,
    Chosen,
    ImportForm,
    Reading,
    chosen_file,
    drop_file,
    empty_form,
    look_at,
    reading_of,
    remember,
    take_text,
    take_upload,
)
from masis.ui.live import draw_task, show_live
from masis.ui.new_audit.form import understood_case
from masis.ui.queue.overview import show_unaudited
from masis.ui.shell import address
from masis.ui.shell.inputs import take_typed, typing_area
from masis.ui.shell.permissions import action
from masis.ui.shell.reviewer import actor
from masis.ui.shell.served_database import served_workbench

CASES_SHOWN = 3
PROBLEMS_SHOWN = 50
SOON_S = 0.4
"""So long the click waits for the import: most are done by then, and nothing has to be drawn in between."""

UPLOADS = ["jsonl", "ndjson", "json", "csv", "tsv", "txt", "parquet", "gz", "zip"]
_UNDERSTOOD = registered("understood")
_STYLE = """<style>
[class*=st-key-import-column] { span[title] { color: light-dark(#fff, #101417); }
  button[aria-label="Clear all"] { min-width: 24px; min-height: 24px; } }
</style>"""
"""What was chosen is shown in the primary colour, on which Streamlit's white has too little contrast in the dark."""
_PROBLEMS = [column("Row", "figure"), column("Problem", "main"), column("Cure")]
_TITLES = {OWN_FORMAT: "Cases of the workbench: id, query, answer, evidence", COLUMNS: "I choose the columns"}


MOST_PROBLEMS = 200
"""Problems that an import holds; the others are counted."""


class FileImport(BackgroundTask):
    """One import: what has come of it so far, readable while it goes on. Raises NotAllowed."""

    stopped = False
    """Whether it ended before the file did, since it was asked to."""

    def __init__(self, workbench: Workbench, actor: Actor, source: Chosen, profile: Profile | None) -> None:
        super().__init__()
        self.source, self.size = source, max(1, source.path.stat().st_size)
        self.step = ImportStep(0, 0, 0, 0, 0)
        self.problems: list[MasisError] = []
        self.problem_count = 0
        self._steps = workbench.imports.add_file(actor, source.path, profile, name=source.name)

    @property
    def complete(self) -> bool:
        """Whether every row of the file has become a case."""
        return self.over and not (self.stopped or self.failed or self.problem_count)

    @property
    def share(self) -> float:
        """How much of the file has been read, 0 to 1."""
        return min(1.0, self.step.end / self.size)

    @property
    def says(self) -> str:
        """How many rows were read, and what came of them."""
        step = self.step
        refused = f", {counted(step.refused, 'row')} refused" if step.refused else ""
        return f"{counted(step.rows, 'row')} read, {counted(step.added, 'case')} imported{refused}"

    def work(self) -> None:
        """Import batch by batch."""
        for step in self._steps:
            self.step = step
            self.problem_count += len(step.problems)
            self.problems += step.problems[: MOST_PROBLEMS - len(self.problems)]
            if self.stopping and self.share < 1:
                self.stopped = True
                return


IMPORTS: BackgroundTasks[FileImport] = BackgroundTasks()
"""The imports of this process, by the token in the address."""


def show_imports(workbench: Workbench) -> None:
    """Draw the form, or the import that the address names."""
    st.title("Import")
    if not workbench.access.allows(actor(), "audit"):
        st.markdown("Importing takes the role reviewer. Ask whoever runs this workbench.")
        return
    if token := address.value("import"):
        _show_import(workbench, token)
        return
    st.markdown(
        "A row becomes a case: a question, the evidence found for it, and an answer. Columns under other names are "
        "matched in the next step; nothing is stored before you import."
    )
    form = ImportForm.current()
    left, right = st.columns([55, 45], gap="large")
    with left:
        with st.container():  # always there, as are the next: what comes and goes in one moves nothing below it
            _file(form)
        reading = error = None
        chosen = chosen_file(form)
        if chosen is not None:
            try:
                reading = reading_of(workbench, form, chosen)
            except InputError as found:
                error = found
        with st.container():
            if reading is not None:
                _format(form, reading)
        with st.container():
            if reading is not None and reading.format == COLUMNS:
                _columns(form, reading)
    with right:
        if form.token and chosen is None:
            st.warning("The file is no longer on the server, which was restarted since. Choose it again.")
        elif chosen is None:
            st.header("First rows")
            st.caption("They are shown here as they would be read, with every problem. Nothing is stored before that.")
        elif reading is None:
            _refused(str(error))
        else:
            look = look_at(form, chosen, reading) if reading.ready else None
            _start_button(form, look)
            _first_rows(look, reading)


# the file


def _file(form: ImportForm) -> None:
    if form.token:
        st.markdown("**File**")
        with st.container(horizontal=True, vertical_alignment="center"):
            st.text(form.name)
            st.button("Remove the file", icon=":material/close:", type="tertiary", on_click=drop_file)
        return
    key = f"import-upload-{form.uploads}"
    st.file_uploader(
        "A file of cases, or one that another tool exported", type=UPLOADS, key=key, on_change=take_upload, args=(key,)
    )
    typing_area(
        "Or paste rows",
        key="import-text",
        text=form.text,
        version=form.version,
        most=LONGEST_PASTED,
        rows=6,
        hint="JSON Lines, JSON, or a table with its header, as copied from a spreadsheet.",
        placeholder="question,contexts,answer",
        on_text=take_text,
    )


# how it is read


def _format(form: ImportForm, reading: Reading) -> None:
    fits = reading.fitting.formats
    options = list(dict.fromkeys((*fits, COLUMNS, OWN_FORMAT, *builtin())))
    key = f"import-format-{reading.key}-{form.owner}"
    st.selectbox(
        "Format",
        options,
        options.index(reading.format) if reading.format else None,
        key=key,
        format_func=lambda name: _format_name(name, name in fits),
        placeholder="Choose the format",
        on_change=_take_format,
        args=(reading.key, key),
    )
    if len(fits) > 1 and not reading.format:
        st.caption(f"The first row fits {counted(len(fits), 'format')}: choose one.")
    elif not fits:
        st.caption("The first row fits no format that is known: say which column holds what.")
    elif reading.format in fits:
        st.caption("Recognised by the first row." if len(fits) == 1 else "As chosen for files with these columns.")


def _format_name(name: str, fits: bool) -> str:
    title = _TITLES.get(name) or builtin()[name].title
    return f"{title} (fits)" if fits else title


def _take_format(columns_key: str, key: str) -> None:
    remember(columns_key, format=st.session_state[key])


_OPTIONAL = {"answer": "Answer", "id": "Id of the case", "reference": "Reference answer"}


def _columns(form: ImportForm, reading: Reading) -> None:
    """Choose which column holds what; remembered for every file with the same set of columns."""
    samples = {column.shown: column.sample for column in reading.columns}
    prefix = f"import-column-{reading.key}-{form.owner}"
    st.html(_STYLE)
    st.caption("Your choice is remembered for files with the same columns.")
    _choose("query", "Question", samples, reading, prefix)
    chosen = reading.choice.evidence
    st.multiselect(
        "Evidence",
        list(samples),
        list(chosen),
        key=f"{prefix}-evidence",
        format_func=lambda name: _column_name(name, samples),
        placeholder="Choose one column or more",
        on_change=_take_column,
        args=("evidence", f"{prefix}-evidence"),
    )
    with st.container():  # always there: the boxes below stay where they are
        if items := {name: "" for each in reading.columns if each.shown in chosen for name in each.items}:
            text, name = st.columns(2)
            with text:
                _choose("chunk_text", "Text of a chunk", items, reading, prefix)
            with name:
                _choose("chunk_id", "Id of a chunk", items, reading, prefix)
    for field, label in _OPTIONAL.items():
        _choose(field, f"{label} (optional)", samples, reading, prefix)


def _choose(name: str, label: str, samples: dict[str, str], reading: Reading, prefix: str) -> None:
    options, key = ["", *samples], f"{prefix}-{name}"
    st.selectbox(
        label,
        options,
        options.index(getattr(reading.choice, name)),
        key=key,
        format_func=lambda shown: _column_name(shown, samples),
        on_change=_take_column,
        args=(name, key),
    )


def _column_name(name: str, samples: dict[str, str]) -> str:
    if not name:
        return "None"
    return f"{name}: {samples[name]}" if samples.get(name) else name


def _take_column(name: str, key: str) -> None:
    form = ImportForm.current()
    chosen = chosen_file(form)
    if chosen is None:
        return
    reading = reading_of(served_workbench(), form, chosen)
    value: Any = st.session_state[key]
    choice = reading.choice.model_copy(update={name: tuple(value) if name == "evidence" else value})
    remember(reading.key, format=COLUMNS, columns=choice.model_dump(mode="json"))


# the first rows


def _start_button(form: ImportForm, look: Look | None) -> None:
    shown: dict[str, Any] = {"type": "primary", "width": "stretch", "shortcut": "Ctrl+Enter"}
    nothing_to_import = look is None or not look.cases
    action("Import the cases", "start-import", "upload_file", _start, disabled=nothing_to_import, **shown)
    with st.container():
        if form.refused:
            _refused(str(form.refused))


def _refused(why: str) -> None:
    with st.container(key="import-refused"):
        st.error("The file can't be imported like this.", icon=":material/error:")
        st.text(why)


def _first_rows(look: Look | None, reading: Reading) -> None:
    st.header("First rows")
    if look is None:
        missing = "the columns of question and evidence" if reading.format == COLUMNS else "the format"
        st.caption(f"Choose {missing}, and they are shown here as they would be read.")
        return
    of = counted(look.rows, "row") if look.whole else f"the first {counted(look.rows, 'row')}"
    st.text(f"Of {of}, {counted(len(look.cases), 'case')} can be imported, {counted(look.refused, 'row')} can't.")
    for number, case in enumerate(look.cases[:CASES_SHOWN], 1):
        _UNDERSTOOD(data=understood_case(case, title=f"Case {number}: {case.id[:80]}"), key=f"import-case-{number}")
    _problem_table(look.problems, len(look.problems), "import-look-problems")
    if look.notes:
        st.markdown("**To look at**")
        _problem_table(look.notes, len(look.notes), "import-look-notes")


def _problem_table(problems: Sequence[MasisError], count: int, key: str) -> None:
    if not problems:
        return
    rows = [_problem_row(problem) for problem in problems[:PROBLEMS_SHOWN]]
    linked_table(_PROBLEMS, rows, description="Problems by row", key=key)
    if count > len(rows):
        st.caption(f"and {counted(count - len(rows), 'more problem', 'more problems')}")


def _problem_row(problem: MasisError) -> Row:
    if not isinstance(problem, InputError):
        return row(None, str(problem), None)
    place = f"{problem.field}: " if problem.field else ""
    return row(str(problem.line or ""), f"{place}{problem.problem}", problem.cure)


# the import


def _start() -> None:
    take_typed()
    workbench, form, token = served_workbench(), ImportForm.current(), uuid4().hex
    chosen = chosen_file(form)
    try:
        if chosen is None:
            raise InputError("There is no file to import", cure="Choose one first.")
        reading = reading_of(workbench, form, chosen)
        if not reading.ready:
            raise InputError("It is not settled how the file is read", cure="Choose the format or the columns.")
        if reading.format == COLUMNS:
            remember(reading.key, format=COLUMNS, columns=reading.choice.model_dump(mode="json"))
        begun = IMPORTS.start(token, lambda: FileImport(workbench, actor(), chosen, reading.profile))
    except InputError as error:
        form.refused = error
        return
    except MasisError as error:
        form.refused = InputError(str(error), cure="Nothing was imported.")
        return
    begun.wait(SOON_S)
    address.put("import", token)


def _show_import(workbench: Workbench, token: str) -> None:
    found = IMPORTS.get(token)
    if found is None:
        st.markdown(
            "**This import is not known any more.** The server was restarted since. What it had stored is in the "
            "queue; importing the same file again leaves alone what is there."
        )
        st.page_link("pages/queue.py", label="Queue", icon=":material/checklist:")
        st.button("Import a file", on_click=address.put, args=("import", ""), icon=":material/upload_file:")
        return
    st.text(found.source.name)
    with st.container():
        if found.over:
            _ended(workbench, found)
        else:
            says = "You can leave this page: the import goes on."
            show_live(partial(draw_task, partial(IMPORTS.get, token), "import", "stop-import", says=says))


def _ended(workbench: Workbench, found: FileImport) -> None:
    step = found.step
    st.header(f"{counted(step.added, 'case')} imported")
    parts = []
    if step.unchanged:
        parts.append(f"{counted(step.unchanged, 'case was', 'cases were')} there already.")
    if step.refused:
        parts.append(f"{counted(step.refused, 'row was', 'rows were')} not imported.")
    if found.stopped:
        parts.append("The import was stopped before the end of the file; what is counted here is stored.")
    if parts:
        st.text(" ".join(parts))
    if found.failed:
        _refused(found.failed)
    _problem_table(found.problems, found.problem_count, "import-problems")
    form = ImportForm.current()
    if found.complete and chosen_is(form, found):
        empty_form()
    with st.container(horizontal=True):
        if not found.complete and chosen_is(form, found):
            st.button(
                "Back to the file",
                on_click=address.put,
                args=("import", ""),
                icon=":material/arrow_back:",
                key="back-to-file",
            )
        st.button("Import another file", on_click=_another, icon=":material/upload_file:", key="import-another")
        st.page_link(
            "pages/queue.py",
            label=f"See the {counted(step.added, 'imported case')}" if step.added else "Queue",
            icon=":material/checklist:",
            query_params={"order": "newest"},
        )
    facets = workbench.cases.facets()
    with st.container(key="import-audit"):
        show_unaudited(workbench, facets)


def chosen_is(form: ImportForm, found: FileImport) -> bool:
    """Return whether the file of an import is still the one in the form."""
    chosen = chosen_file(form)
    return chosen is not None and chosen.token == found.source.token


def _another() -> None:
    address.put("import", "")
    empty_form()

"""The form of a new screening: the question, its concepts, the sources and the settings.

Beside it, a panel previews the first search. Files of abstracts are imported on a separate thread,
so that no click interrupts an import.
"""

from __future__ import annotations

import hashlib
import itertools
import logging
from collections.abc import Sequence
from contextlib import suppress
from functools import partial
from io import BytesIO
from typing import Any

import streamlit as st
from pydantic import InstanceOf, ValidationError

from masis.api.roles import offered_models
from masis.errors import InputError, MasisError
from masis.llm.endpoints import endpoint
from masis.llm.registry import asked_model
from masis.schema.model_ref import ModelRef
from masis.schema.screening import Abstract
from masis.schema.wording import count_noun
from masis.screening.critic import ROLE, grader_names
from masis.screening.demo import CORPUS, demo_questions
from masis.screening.grading.question import (
    LONGEST_CONCEPTS,
    PARTS,
    Part,
    changed_lines,
    concept_lines,
    concepts_as_text,
    with_concepts,
)
from masis.screening.readers import read_abstracts
from masis.screening.rounds.queries import searched_text
from masis.screening.services import corpus_service
from masis.screening.services.jobs import ScreeningJobs
from masis.screening.services.records import CorpusImport, CorpusSummary
from masis.screening.services.screenings import CORPUS as CORPUS_PREFIX
from masis.screening.services.screenings import PUBMED
from masis.services import Actor, Workbench
from masis.services.background import BackgroundTask
from masis.services.model_names import assert_listed
from masis.settings import Settings
from masis.ui.components import register_component
from masis.ui.live import draw_task, served_jobs, show_live
from masis.ui.new_audit.form import panel
from masis.ui.shell import address
from masis.ui.shell.inputs import store_typed, typing_area
from masis.ui.shell.permissions import action
from masis.ui.shell.reviewer import actor
from masis.ui.shell.served_database import command_markdown, served_workbench
from masis.ui.shell.stored_form import SettingsForm
from masis.ui.shell.streamlit_internals import with_selectors

log = logging.getLogger(__name__)
LONGEST_QUESTION = 2_000
LONGEST_CRITERIA = 10_000
MOST_ERRORS = 8
FIRST_SHOWN = 10
LONGEST_NAME = 120
WAIT_FOR_UPLOAD_S = 0.4
"""How long the click waits for an import; most finish in this time without a progress bar."""

FORMATS = ["jsonl", "json", "ris", "bib", "xml", "nbib", "txt", "csv", "tsv"]
MEMORY, GRADERS, CRITERIA = "screening_memory", "screening_graders", "screening_criteria"
CONCEPTS = "screening_concepts"
CONCEPT_NAMES: dict[Part, str] = {part: part.capitalize() for part in PARTS}
CONCEPT_HINT = "Commas separate concepts; = gives another name for one: death = mortality."
UNDER_WAY = "screening-import-under-way"
_UNDERSTOOD = register_component("understood")
_STYLE = """<style>
@st-column:has(> div .st-key-screening-rail) {
  position: sticky; top: 4rem; align-self: flex-start; }
:is([class*=new-screening-sources], [class*=new-screening-graders]) {
  span[title] { color: light-dark(#fff, #101417); }
  button[aria-label="Clear all"] { min-width: 24px; min-height: 24px; } }
</style>"""
"""Chosen options have the primary colour, on which Streamlit's white has too little contrast."""


TUNABLE = (
    ("screening_retrieve", "Abstracts per round", 1, 200),
    ("screening_max_rounds", "Maximum rounds", 1, 8),
)
"""Numbers that the form offers, as setting, label, minimum and maximum."""
OFFERED = (*(name for name, *_ in TUNABLE), MEMORY, GRADERS, CRITERIA, CONCEPTS)


class CorpusUpload(BackgroundTask):
    """One import and its progress, readable while it runs.

    ``errors`` concern single records, ``refused`` files that couldn't be imported completely.
    """

    def __init__(
        self, workbench: Workbench, actor: Actor, corpus: str, files: Sequence[tuple[str, BytesIO]]
    ) -> None:
        super().__init__()
        self._workbench, self._actor, self.corpus = workbench, actor, corpus.strip()
        self._files = tuple((name[:LONGEST_NAME], stream) for name, stream in files)
        # getbuffer doesn't copy the content, as getvalue would.
        self._sizes = [stream.getbuffer().nbytes for _, stream in self._files]
        self.done: list[CorpusImport] = []
        self.errors: list[InputError] = []
        self.refused: list[MasisError] = []
        self.without_abstract = 0
        self._records, self._at = 0, 0

    @property
    def progress_text(self) -> str:
        """The progress, for example ``Importing b.ris (file 2 of 3): 1,500 records so far.``"""
        of_files = f" (file {self._at + 1} of {len(self._files)})" if len(self._files) > 1 else ""
        return (
            f"Importing {self._files[self._at][0]}{of_files}:"
            f" {count_noun(self._records, 'record')} so far."
        )

    @property
    def share(self) -> float:
        """The share of all files that was read, 0 to 1, by bytes."""
        stream = self._files[self._at][1]
        # tell raises ValueError on a closed stream.
        read = sum(self._sizes[: self._at]) + (0 if stream.closed else stream.tell())
        return 1.0 if self.over else min(1.0, read / max(1, sum(self._sizes)))

    def work(self) -> None:
        """Import file by file; a stop ends it after the current record."""

        def count_records(records: int) -> None:
            self._records += records

        for at, (name, stream) in enumerate(self._files):
            self._at = at
            try:
                # takewhile ends the import between two records, and those before are stored.
                abstracts = itertools.takewhile(
                    lambda _: not self.stopping,
                    map(self._count_missing, read_abstracts(stream, name=name)),
                )
                listeners: dict[str, Any] = {
                    "source": name,
                    "on_batch": count_records,
                    "on_error": self.errors.append,
                }
                self.done.append(
                    corpus_service(self._workbench).add(
                        self._actor, self.corpus, abstracts, **listeners
                    )
                )
            except MasisError as error:
                self.refused.append(error)
            # A damaged file can make a parser fail in any way. The other files are still imported.
            except Exception as error:
                log.exception("A file of abstracts couldn't be imported")
                why = f"{name} couldn't be imported ({type(error).__name__})"
                self.refused.append(InputError(why, hint="The server's log has the details."))
            if self.stopping:
                return

    def _count_missing(self, record: Abstract | InputError) -> Abstract | InputError:
        """Return a record after counting it if it has only a title."""
        self.without_abstract += isinstance(record, Abstract) and not record.text.strip()
        return record


class ScreeningForm(SettingsForm):
    """The form of one session; ``imported`` is the last finished import."""

    SUBJECT = "new-screening"
    question: str = ""
    sources: tuple[str, ...] = ()
    imported: InstanceOf[CorpusUpload] | None = None

    def applied_to(self, base: Settings) -> Settings:
        """Return the settings with the form's changes; invalid stored changes are ignored."""
        for name, value in self.settings.items():
            # An empty list of graders isn't valid, so the base's graders apply.
            if name in OFFERED and (name != GRADERS or str(value).strip(" ,")):
                # A stored change may come from another version.
                with suppress(ValidationError):
                    base = Settings.model_validate({**dict(base), name: value})
        return base

    @property
    def asked(self) -> str:
        """The question with the concepts that a person wrote."""
        return with_concepts(self.question.strip(), self.effective.screening_concepts)


def show_form(workbench: Workbench) -> None:
    """Draw the form, with the start button and a preview of the first search beside it."""
    form = ScreeningForm.current()
    _take_finished_import(form)
    corpora = corpus_service(workbench).list_all()
    left, right = st.columns([62, 38], gap="large")
    sources = _chosen_sources(form, corpora)
    with left:
        form.text_field(
            "question",
            "Question",
            most=LONGEST_QUESTION,
            rows=3,
            hint="For example: population, intervention, comparison, outcome.",
            placeholder=(
                "Does velotarine lower blood pressure in adults with resistant hypertension?"
            ),
        )
        with st.container():
            if any(corpus.name == CORPUS for corpus in corpora):
                _draw_demo_questions()
        _draw_concept_fields(form)
        typing_area(
            "Criteria of the team",
            key="screening-criteria",
            text=form.effective.screening_criteria,
            version=form.version,
            most=LONGEST_CRITERIA,
            on_text=lambda typed: ScreeningForm.current().change(CRITERIA, typed),
            rows=2,
            hint=(
                "One per line. Shown with the result, and offered as reasons when a person discards"
                " an abstract."
            ),
            placeholder="include: adults\nexclude: no control group",
            optional=True,
        )
        _draw_source_choice(form, corpora, sources)
        _draw_screening_settings(form)
    st.html(with_selectors(_STYLE))
    with right, st.container(key="screening-rail"):
        if corpora or PUBMED in sources:
            start: dict[str, Any] = {
                "type": "primary",
                "width": "stretch",
                "shortcut": "Ctrl+Enter",
            }
            action(
                "Screen the evidence", "start-screening", "play_arrow", _start_screening, **start
            )
            try:
                assert_listed(workbench.access, actor(), form.effective, workbench.settings)
                also = " The queries go to PubMed." if PUBMED in sources else ""
                st.caption(f"{grading_place_text(form.effective)}{also}")
            except MasisError as error:
                st.warning("A chosen grader can't be called.", icon=":material/key_off:")
                st.text(str(error))
        else:
            _draw_no_corpus()
        _UNDERSTOOD(data=_concept_panel(workbench, form, sources), key="screening-understood")


def _on_concept_typed(part: Part, typed: str) -> None:
    form = ScreeningForm.current()
    written = concept_lines(form.effective.screening_concepts)
    form.change(CONCEPTS, changed_lines(form.question.strip(), written | {part: typed}))


def _draw_demo_questions() -> None:
    questions = {demo.question: demo for demo in demo_questions()}
    st.selectbox(
        "A question of the demo",
        list(questions),
        key="screening-demo-question",
        index=None,
        format_func=lambda text: f"{questions[text].kind}: {text}",
        placeholder="Fill in a question that the demo abstracts are about",
        label_visibility="collapsed",
        on_change=_on_demo_question,
    )


def _on_demo_question() -> None:
    store_typed()
    chosen: Any = st.session_state["screening-demo-question"]
    # Emptied, so that choosing the same question again is a change.
    st.session_state["screening-demo-question"] = None
    question = next((demo for demo in demo_questions() if demo.question == chosen), None)
    if question is not None:
        form = ScreeningForm.current()
        settings = {**form.settings, "screening_retrieve": question.retrieve, CONCEPTS: ""}
        form.save(
            replaced=True,
            question=question.question,
            sources=(_corpus_source(CORPUS),),
            settings=settings,
        )


def _draw_concept_fields(form: ScreeningForm) -> None:
    """Draw the concepts read from the question, one field per part, which the user can correct."""
    read, written = (
        concepts_as_text(form.question.strip()),
        concept_lines(form.effective.screening_concepts),
    )
    with st.container(key="screening-concepts", gap="small"):
        st.markdown("**Concepts of the question**")
        st.caption(
            "These were read from the question. If you correct them, relevance is judged by your"
            f" words. {CONCEPT_HINT}"
        )
        for pair in (PARTS[:2], PARTS[2:]):
            for column, part in zip(st.columns(2, gap="medium"), pair, strict=True):
                with column:
                    typing_area(
                        CONCEPT_NAMES[part],
                        key=f"screening-concept-{part}",
                        text=written.get(part, read[part]),
                        # Another question has other concepts, which the field must then show.
                        version=(
                            f"{form.version}-{hashlib.sha256(read[part].encode()).hexdigest()[:12]}"
                        ),
                        most=LONGEST_CONCEPTS,
                        on_text=partial(_on_concept_typed, part),
                        rows=1,
                        placeholder="None was found in the question",
                        optional=True,
                    )
        if any(written[part] != read[part] for part in written):
            st.button(
                "Use the question's own concepts",
                key="screening-concepts-reset",
                icon=":material/undo:",
                type="tertiary",
                on_click=_reset_concepts,
            )


def _reset_concepts() -> None:
    store_typed()
    form = ScreeningForm.current()
    form.save(replaced=True, settings={**form.settings, CONCEPTS: ""})


# Sources


def _corpus_source(corpus: str) -> str:
    return f"{CORPUS_PREFIX}{corpus}"


def _chosen_sources(form: ScreeningForm, corpora: tuple[CorpusSummary, ...]) -> tuple[str, ...]:
    """Return the form's sources that exist, or the first corpus if none is chosen."""
    existing = [_corpus_source(corpus.name) for corpus in corpora]
    chosen = tuple(source for source in form.sources if source in existing or source == PUBMED)
    return chosen or tuple(existing[:1])


def _draw_source_choice(
    form: ScreeningForm, corpora: tuple[CorpusSummary, ...], sources: tuple[str, ...]
) -> None:
    known = {
        _corpus_source(corpus.name): (
            f"{'Demo abstracts' if corpus.name == CORPUS else corpus.name} "
            f"({count_noun(corpus.abstracts, 'abstract')})"
        )
        for corpus in corpora
    } | {PUBMED: "PubMed (searched online)"}
    where, add = st.columns([3, 1], vertical_alignment="bottom")
    where.multiselect(
        "Sources",
        list(known),
        list(sources),
        key=form.widget_key("sources"),
        format_func=known.__getitem__,
        placeholder="Choose one or more",
        on_change=_on_sources_chosen,
    )
    with add.popover("Import", icon=":material/upload_file:", width="stretch"):
        st.markdown("**Abstracts of your own**")
        st.caption(
            "JSON Lines, RIS, BibTeX, PubMed or EndNote XML, MEDLINE text or CSV. Each study is"
            " stored once."
        )
        st.text_input(
            "Into the corpus", key="screening-corpus-name", value="my abstracts", max_chars=100
        )
        key = f"screening-upload-{form.uploads}"
        st.file_uploader("Files", type=FORMATS, accept_multiple_files=True, key=key)
        action(
            "Import",
            "screening-import",
            "upload_file",
            _import_chosen,
            key,
            disabled=_current_upload() is not None,
        )
        if _corpus_source(CORPUS) not in known:
            action(
                "Load the demo abstracts",
                "load-demo-too",
                "library_add",
                _load_demo,
                type="tertiary",
            )
    # This container always exists, so that the settings below stay in place during an import.
    with st.container():
        if _current_upload() is not None:
            says = "You can fill in the form or leave this page. The import continues."
            show_live(
                partial(draw_task, _current_upload, "import", "screening-import-stop", says=says)
            )
        if form.imported is not None:
            _show_imported(form.imported)


def _show_imported(upload: CorpusUpload) -> None:
    """Show the results of the last import, with files and records that couldn't be imported."""
    for imported in upload.done:
        counts = (
            f"{count_noun(imported.identified, 'record')}, {imported.added:,} added,"
            f" {count_noun(imported.duplicates, 'duplicate')}"
        )
        st.text(f"{imported.source}: {counts}, {imported.faulty:,} unreadable")
    if upload.stopping:
        st.text(
            "The import was stopped. Records read so far are stored. Import the same files again to"
            " add the rest."
        )
    if upload.without_abstract:
        noun = count_noun(upload.without_abstract, "record has", "records have")
        st.warning(
            f"{noun} no abstract, so the method can't be graded.", icon=":material/short_text:"
        )
    for errors, noun in ((upload.refused, "file"), (upload.errors, "record")):
        if errors:
            st.warning(
                f"{count_noun(len(errors), noun)} couldn't be imported.", icon=":material/error:"
            )
            st.text("\n".join(str(error) for error in errors[:MOST_ERRORS]))


def _on_sources_chosen() -> None:
    form = ScreeningForm.current()
    chosen = tuple(st.session_state[form.widget_key("sources")])
    # If no source is left, the first corpus is searched, and the field must show that.
    form.save(replaced=not chosen, sources=chosen)


def _load_demo() -> None:
    corpus_service(served_workbench()).add_demo(actor())
    ScreeningForm.current().save(replaced=True, sources=(_corpus_source(CORPUS),))


def _import_chosen(key: str) -> None:
    form = ScreeningForm.current()
    files = [(file.name, file) for file in st.session_state.get(key) or []]
    if not files:
        form.refused = InputError("There is no file to import", hint="Choose one first.")
        return
    upload = CorpusUpload(
        served_workbench(), actor(), st.session_state["screening-corpus-name"], files
    )
    upload.start()
    st.session_state[UNDER_WAY] = upload
    upload.wait(WAIT_FOR_UPLOAD_S)
    _take_finished_import(form)
    # Streamlit can't empty a file uploader, but a new key draws a new one.
    form.uploads += 1


def _current_upload() -> CorpusUpload | None:
    """Return this session's import that is running or ended since the page was drawn."""
    upload: CorpusUpload | None = st.session_state.get(UNDER_WAY)
    return upload


def _take_finished_import(form: ScreeningForm) -> None:
    """Show the results of a finished import and add its corpus to the form's sources."""
    if (upload := _current_upload()) is not None and upload.over:
        del st.session_state[UNDER_WAY]
        form.imported = upload
        if any(imported.added or imported.duplicates for imported in upload.done):
            form.save(
                replaced=True,
                sources=tuple(dict.fromkeys((*form.sources, _corpus_source(upload.corpus)))),
            )


# Thresholds and graders


def _draw_screening_settings(form: ScreeningForm) -> None:
    settings = form.effective
    with form.settings_panel():
        for column, (name, text, least, most) in zip(
            st.columns(len(TUNABLE), gap="medium"), TUNABLE, strict=True
        ):
            # The settings can hold a number outside of the form's range, which the widget would
            # reject.
            value = min(max(getattr(settings, name), least), most)
            with column:
                form.draw_setting(name, st.number_input, text, least, most, value, step=1)
        chosen = [name.strip() for name in settings.screening_graders.split(",") if name.strip()]
        st.multiselect(
            "Graders",
            list(dict.fromkeys((*offered_models(served_workbench().settings), *chosen))),
            chosen,
            key=form.widget_key("graders"),
            accept_new_options=True,
            placeholder="Choose, or type PROVIDER:MODEL",
            on_change=_on_graders_chosen,
        )
        st.caption(
            "Offline means rules and measurements on this machine; another model is typed as"
            " PROVIDER:MODEL. Several graders judge independently, and a written rule combines"
            " their grades."
        )
        label = "Let the acceptance memory adapt what is required"
        form.draw_setting(MEMORY, st.toggle, label, settings.screening_memory)
        st.caption(
            f"At most {settings.screening_memory_bound:.2f} either way. Every screening records the"
            " thresholds it used."
        )


def _on_graders_chosen() -> None:
    form = ScreeningForm.current()
    form.change(GRADERS, ", ".join(dict.fromkeys(st.session_state[form.widget_key("graders")])))


# The panel beside the form: data that is sent, and a preview of the first search


def grading_place_text(settings: Settings) -> str:
    """Say in a sentence what leaves the machine.

    Raises:
        SettingsError: If a grader can't be called.

    """
    names = grader_names(settings)
    sent = dict.fromkeys(
        endpoint(model.provider, settings).address
        for name in names
        if (model := asked_model(ModelRef.parse(name), ROLE, settings))
    )
    if not sent:
        return "Graded on this machine, without a language model; nothing is sent anywhere."
    return f"Graded by {' and '.join(names)}. Question and abstracts go to {', '.join(sent)}."


def _draw_no_corpus() -> None:
    with st.container(border=True):
        st.markdown("**There are no abstracts yet**")
        st.markdown(
            "Load those written for the demo, import a file of your own, or choose PubMed as a"
            f" source. On the command line: {command_markdown('masis screening corpus NAME FILE')}"
        )
        action(
            "Load the demo abstracts",
            "load-demo-abstracts",
            "library_add",
            _load_demo,
            type="primary",
            width="stretch",
        )


def _concept_panel(
    workbench: Workbench, form: ScreeningForm, sources: tuple[str, ...]
) -> dict[str, Any]:
    """Return the data of the panel beside the form: the first corpus's results for the question."""
    names = [source.removeprefix(CORPUS_PREFIX) for source in sources if source != PUBMED]
    first: tuple[Abstract, ...] = ()
    if form.question.strip() and names:
        first = corpus_service(workbench).search(names[0], searched_text(form.asked), FIRST_SHOWN)
    if not form.question.strip():
        line = "No question yet.", "Ask what a review would answer."
    elif not names:
        line = "PubMed is searched", "when the screening starts."
    elif not first:
        line = "Nothing matches yet.", "Use words that abstracts would use, or other sources."
    else:
        line = "The first search finds", f"{count_noun(len(first), 'abstract')}:"
    return panel(
        "What will be screened",
        form.question,
        [line],
        [(abstract.id, abstract.title or abstract.text) for abstract in first],
        errors=[form.refused] if form.refused else [],
        chunks_label="Abstracts of the first search",
    )


def _start_screening() -> None:
    store_typed()
    form = ScreeningForm.current()
    sources = _chosen_sources(form, corpus_service(served_workbench()).list_all())
    if not form.question.strip():
        form.refused = InputError(
            "The question is missing", hint="Write the question that the evidence should answer."
        )
        return
    try:
        # Raises if a model can't be called, while the form is still visible.
        grading_place_text(form.effective)
        address.set_param(
            "screening",
            ScreeningJobs(served_jobs()).screen(
                actor(), form.question.strip(), sources, form.effective
            ),
        )
    except MasisError as error:
        form.refused = InputError(str(error), hint="What you typed is stored.")

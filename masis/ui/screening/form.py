"""A new screening: the question and its concepts, where to look, what to hold to.

The form is stored as it is filled in, so that it survives the page, the browser and the server. Beside it stands what
the first search would bring.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any, NamedTuple
from uuid import uuid4

import streamlit as st

from masis.api.roles import offered_models
from masis.errors import InputError, MasisError
from masis.llm.endpoints import endpoint_of
from masis.llm.registry import resolve
from masis.schema.screening import Abstract
from masis.schema.wording import counted
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
from masis.screening.rounds.queries import searched_text
from masis.services import Actor, Workbench
from masis.services.records import CorpusImport, CorpusSummary
from masis.services.screening import CORPUS as CORPUS_PREFIX
from masis.services.screening import PUBMED
from masis.settings import OFFLINE, Settings
from masis.ui.components import registered
from masis.ui.live import served_jobs, show_live
from masis.ui.new_audit.form import Understood
from masis.ui.screening.actions import action
from masis.ui.screening.import_files import (
    CorpusUpload,
    NamedFile,
    begin_import,
    draw_import,
    finished_import,
    importing,
)
from masis.ui.shell import address
from masis.ui.shell.inputs import take_typed, typing_area
from masis.ui.shell.reviewer import actor
from masis.ui.shell.served_database import command_markdown, served_workbench
from masis.ui.shell.streamlit_internals import with_selectors

SUBJECT = "new-screening"
LONGEST_QUESTION = 2_000
LONGEST_GRADERS = 500
LONGEST_CRITERIA = 10_000
MOST_ERRORS = 8
FIRST_SHOWN = 10
EXCERPT = 200
FORMATS = ["jsonl", "json", "ris", "bib", "xml", "nbib", "txt"]
MEMORY, GRADERS, CRITERIA = "screening_memory", "screening_graders", "screening_criteria"
CONCEPTS = "screening_concepts"
CONCEPT_NAMES: dict[Part, str] = {part: part.capitalize() for part in PARTS}
CONCEPT_HINT = "Commas separate concepts; = gives another name for one: death = mortality."
_STATE = "screening-form"
_UNDERSTOOD = registered("understood")
_STYLE = """<style>
@st-column:has(> div .st-key-screening-rail) { position: sticky; top: 4rem; align-self: flex-start; }
:is([class*=st-key-screening-sources], [class*=st-key-screening-graders]) {
  span[title] { color: light-dark(#fff, #101417); }
  button[aria-label="Clear all"] { min-width: 24px; min-height: 24px; } }
</style>"""
"""What was chosen is shown in the primary colour, on which Streamlit's white has too little contrast in the dark."""


class Tunable(NamedTuple):
    """A number that the form offers: the setting, its words, one line on what it does, its bounds."""

    name: str
    text: str
    meaning: str
    least: int
    most: int


TUNABLE = (
    Tunable("screening_retrieve", "Abstracts a round", "How many abstracts the searches of a round bring.", 1, 200),
    Tunable("screening_max_rounds", "Most rounds", "How often it searches again before it gives up.", 1, 8),
)


@dataclass
class ScreeningForm:
    """The form of one session.

    Attributes:
        owner: The name its draft is stored under.
        version: Changes when the fields are to show other text than was typed; stored with the draft, so that a server
            that was restarted does not mistake its own text for newer than what is typed in the browser.
        uploads: Rises when an uploader is to be empty again.
        refused: Why the last start was refused.
        imported: The last import that is over.

    """

    owner: Actor
    question: str = ""
    sources: tuple[str, ...] = ()
    settings: dict[str, Any] = field(default_factory=dict)
    version: str = ""
    uploads: int = 0
    refused: InputError | None = None
    imported: CorpusUpload | None = None

    def widget_key(self, name: str) -> str:
        """Return the key of a widget, another one for each version of the form, so that it starts with its default."""
        return f"screening-{name}-{self.version}-{self.owner}"

    @property
    def effective(self) -> Settings:
        """The workbench's settings with what was changed in the form."""
        return settings_of(served_workbench().settings, self.settings)

    @property
    def asked(self) -> str:
        """The question with the concepts that a person wrote."""
        return with_concepts(self.question.strip(), self.effective.screening_concepts)

    def change(self, name: str, value: Any) -> None:
        """Store a setting, unless it is what applies: a page that comes back posts its defaults as if chosen."""
        if value != getattr(self.effective, name):
            save(self, settings={**self.settings, name: value})


def current_form() -> ScreeningForm:
    """Return the session's form; after a reload, and when a person's name becomes known, as it was stored."""
    owner = actor()
    held: ScreeningForm | None = st.session_state.get(_STATE)
    if held is not None and held.owner == owner:
        return held
    values = served_workbench().drafts.get(owner, SUBJECT).values
    question, sources, settings = values.get("question"), values.get("sources"), values.get("settings")
    form = ScreeningForm(
        owner,
        question=question if isinstance(question, str) else "",
        sources=tuple(str(each) for each in sources) if isinstance(sources, list) else (),
        settings=dict(settings) if isinstance(settings, dict) else {},
        version=str(values.get("version") or ""),
        uploads=held.uploads + 1 if held else 0,
    )
    st.session_state[_STATE] = form
    return form


def save(form: ScreeningForm, *, replaced: bool = False, **values: Any) -> None:
    """Store values, then take them into the form; ``replaced`` lets the fields show them instead of what was typed."""
    if replaced:
        values["version"] = uuid4().hex
    stored = {name: list(value) if isinstance(value, tuple) else value for name, value in values.items()}
    served_workbench().drafts.save(form.owner, SUBJECT, stored)
    form.refused = None
    for name, value in values.items():
        setattr(form, name, value)


def settings_of(base: Settings, changes: Mapping[str, Any]) -> Settings:
    """Return the settings with what was changed in the form; a stored change that makes no sense is left out."""
    bounds = {each.name: range(each.least, each.most + 1) for each in TUNABLE}
    valid = {name: value for name, value in changes.items() if name in bounds and value in bounds[name]}
    if isinstance(changes.get(MEMORY), bool):
        valid[MEMORY] = changes[MEMORY]
    for name in (CRITERIA, CONCEPTS, GRADERS):
        text = changes.get(name)
        if isinstance(text, str) and len(text) <= LONGEST_CRITERIA and (name != GRADERS or text.strip(" ,")):
            valid[name] = text
    return base.model_copy(update=valid)


def show_form(workbench: Workbench) -> None:
    """Draw the form with the start button and what the first search would bring beside it."""
    form = current_form()
    _take_finished_import(form)
    corpora = workbench.store.corpora.list_all()
    left, right = st.columns([62, 38], gap="large")
    sources = _chosen_sources(form, corpora)
    with left:
        _text(
            "Question",
            "screening-question",
            form.question,
            LONGEST_QUESTION,
            _take_question,
            rows=3,
            hint="For example: population, intervention, comparison, outcome.",
            placeholder="Does velotarine lower blood pressure in adults with resistant hypertension?",
        )
        with st.container():
            if any(each.name == CORPUS for each in corpora):
                _demo_questions()
        _concepts(form)
        _text(
            "Criteria of the team",
            "screening-criteria",
            form.effective.screening_criteria,
            LONGEST_CRITERIA,
            lambda form, typed: form.change(CRITERIA, typed),
            rows=2,
            hint="A line each. Shown with the result, and offered as reasons when a person discards an abstract.",
            placeholder="include: adults\nexclude: no control group",
            optional=True,
        )
        _sources(form, corpora, sources)
        _settings(workbench, form)
    st.html(with_selectors(_STYLE))
    with right, st.container(key="screening-rail"):
        if corpora or PUBMED in sources:
            start: dict[str, Any] = {"type": "primary", "width": "stretch", "shortcut": "Ctrl+Enter"}
            action("Screen the evidence", "start-screening", "play_arrow", _start, **start)
            _where(form.effective, sources)
        else:
            _no_corpus()
        _UNDERSTOOD(data=_understood(form, _first(workbench, form, sources)), key="screening-understood")


Take = Callable[[ScreeningForm, str], None]


def _text(label: str, key: str, text: str, most: int, take: Take, *, version: str = "", **shown: Any) -> None:
    """Draw a field whose text ``take`` stores; another ``version`` shows ``text`` in place of what was typed."""
    version = "-".join(filter(None, (current_form().version, version)))

    def on_text(typed: str) -> None:
        take(current_form(), typed)

    typing_area(label, key=key, text=text, version=version, most=most, on_text=on_text, **shown)


def _take_question(form: ScreeningForm, typed: str) -> None:
    if typed != form.question:
        save(form, question=typed)


def _take_concept(part: Part, form: ScreeningForm, typed: str) -> None:
    written = concept_lines(form.effective.screening_concepts)
    form.change(CONCEPTS, changed_lines(form.question.strip(), written | {part: typed}))


def _take_other_graders(form: ScreeningForm, typed: str) -> None:
    known = [name for name in _names(form.effective.screening_graders) if name in _offered()]
    _take_graders(form, (*known, *_names(typed)))


def _demo_questions() -> None:
    questions = {each.question: each for each in demo_questions()}
    st.selectbox(
        "A question of the demo",
        list(questions),
        key="screening-demo-question",
        index=None,
        format_func=lambda text: f"{questions[text].kind}: {text}",
        placeholder="Fill in a question that the demo abstracts are about",
        label_visibility="collapsed",
        on_change=_take_demo_question,
    )


def _take_demo_question() -> None:
    take_typed()
    chosen: Any = st.session_state["screening-demo-question"]
    st.session_state["screening-demo-question"] = None
    found = next((each for each in demo_questions() if each.question == chosen), None)
    if found is not None:
        form = current_form()
        settings = {**form.settings, "screening_retrieve": found.retrieve, CONCEPTS: ""}
        save(form, replaced=True, question=found.question, sources=(_source(CORPUS),), settings=settings)


def _concepts(form: ScreeningForm) -> None:
    """Draw what was understood of the question, a field for each part; what is typed takes its place."""
    read, written = concepts_as_text(form.question.strip()), concept_lines(form.effective.screening_concepts)
    with st.container(key="screening-concepts", gap="small"):
        st.markdown("**Concepts of the question**")
        st.caption(
            f"What was read of the question. Correct it, and relevance is judged by what you write. {CONCEPT_HINT}"
        )
        for pair in (PARTS[:2], PARTS[2:]):
            for column, part in zip(st.columns(2, gap="medium"), pair, strict=True):
                with column:
                    _text(
                        CONCEPT_NAMES[part],
                        f"screening-concept-{part}",
                        written.get(part, read[part]),
                        LONGEST_CONCEPTS,
                        partial(_take_concept, part),
                        # Another question is read as other concepts, which the field is then to show.
                        version=hashlib.sha256(read[part].encode()).hexdigest()[:12],
                        rows=1,
                        placeholder="None was read of the question",
                        optional=True,
                    )
        if any(written[part] != read[part] for part in written):
            st.button(
                "Use what was read of the question",
                key="screening-concepts-reset",
                icon=":material/undo:",
                type="tertiary",
                on_click=_reset_concepts,
            )


def _reset_concepts() -> None:
    take_typed()
    form = current_form()
    save(form, replaced=True, settings={**form.settings, CONCEPTS: ""})


# Where to look.


def _source(corpus: str) -> str:
    return f"{CORPUS_PREFIX}{corpus}"


def _chosen_sources(form: ScreeningForm, corpora: tuple[CorpusSummary, ...]) -> tuple[str, ...]:
    """Return the sources of the form that exist; the first corpus where none is chosen."""
    existing = [_source(each.name) for each in corpora]
    chosen = tuple(each for each in form.sources if each in existing or each == PUBMED)
    return chosen or tuple(existing[:1])


def _sources(form: ScreeningForm, corpora: tuple[CorpusSummary, ...], sources: tuple[str, ...]) -> None:
    known = {
        _source(each.name): f"{'Demo abstracts' if each.name == CORPUS else each.name} "
        f"({counted(each.abstracts, 'abstract')})"
        for each in corpora
    } | {PUBMED: "PubMed (asks the network)"}
    where, add = st.columns([3, 1], vertical_alignment="bottom")
    where.multiselect(
        "Where to look",
        list(known),
        list(sources),
        key=form.widget_key("sources"),
        format_func=known.__getitem__,
        placeholder="Choose one or more",
        on_change=_take_sources,
    )
    with add.popover("Import", icon=":material/upload_file:", width="stretch"):
        st.markdown("**Abstracts of your own**")
        st.caption("JSON Lines, RIS, BibTeX, PubMed XML or MEDLINE text. Each study is stored once.")
        st.text_input("Into the corpus", key="screening-corpus-name", value="my abstracts", max_chars=100)
        key = f"screening-upload-{form.uploads}"
        st.file_uploader("Files", type=FORMATS, accept_multiple_files=True, key=key)
        action("Import", "screening-import", "upload_file", _import_chosen, key, disabled=importing())
        if _source(CORPUS) not in known:
            action("Load the demo abstracts", "load-demo-too", "library_add", _load_demo, type="tertiary")
    with st.container():  # always there: the settings below stay where they are when an import begins or ends
        if importing():
            show_live(draw_import)
        if form.imported is not None:
            _show_imported(form.imported)


def _show_imported(upload: CorpusUpload) -> None:
    """Say what the last files brought, and what of them could not be imported."""
    for each in upload.done:
        st.text(_brought(each))
    if upload.stopping:
        st.text("The import was stopped. What was read is stored; the same files again add the rest.")
    for errors, what in ((upload.refused, "file"), (upload.errors, "record")):
        if errors:
            st.warning(f"{counted(len(errors), what)} could not be imported.", icon=":material/error:")
            st.text("\n".join(str(error) for error in errors[:MOST_ERRORS]))


def _brought(each: CorpusImport) -> str:
    return (
        f"{each.source}: {counted(each.identified, 'record')}, {each.added:,} added, "
        f"{counted(each.duplicates, 'duplicate')}, {each.faulty:,} unreadable"
    )


def _take_sources() -> None:
    form = current_form()
    chosen = tuple(st.session_state[form.widget_key("sources")])
    # Where nothing is left chosen the first corpus is searched, and the field is to show that.
    save(form, replaced=not chosen, sources=chosen)


def _load_demo() -> None:
    served_workbench().corpora.add_demo(actor())
    save(current_form(), replaced=True, sources=(_source(CORPUS),))


def _import_chosen(key: str) -> None:
    form = current_form()
    files = [NamedFile(file.name, file) for file in st.session_state.get(key) or []]
    if not files:
        form.refused = InputError("There is no file to import", cure="Choose one first.")
        return
    begin_import(served_workbench(), st.session_state["screening-corpus-name"], files)
    _take_finished_import(form)
    form.uploads += 1


def _take_finished_import(form: ScreeningForm) -> None:
    """Show what an import that is over has brought; the corpus becomes one of the form's sources."""
    if (upload := finished_import()) is not None:
        form.imported = upload
        if any(each.added or each.duplicates for each in upload.done):
            save(form, replaced=True, sources=tuple(dict.fromkeys((*form.sources, _source(upload.corpus)))))


# What to hold to, and who grades.


def _settings(workbench: Workbench, form: ScreeningForm) -> None:
    settings = form.effective
    changed = sum(getattr(settings, name) != getattr(workbench.settings, name) for name in form.settings)
    st.caption(f"{counted(changed, 'setting')} changed" if changed else "The workbench's own settings apply.")
    with st.expander("Settings", icon=":material/tune:"):  # another label would be another expander, closed again
        for column, each in zip(st.columns(len(TUNABLE), gap="medium"), TUNABLE, strict=True):
            with column, st.container(gap="xxsmall"):
                key = form.widget_key(each.name)
                value = min(max(getattr(settings, each.name), each.least), each.most)
                st.number_input(
                    each.text, each.least, each.most, value, step=1, key=key, on_change=_set, args=(each.name, key)
                )
                st.caption(each.meaning)
        chosen, key = _names(settings.screening_graders), form.widget_key("graders")
        grading = [name for name in chosen if name in _offered()]
        st.multiselect("Who grades", _offered(), grading, key=key, on_change=_take_known_graders)
        _text(
            "Other graders",
            "screening-other-graders",
            ", ".join(name for name in chosen if name not in grading),
            LONGEST_GRADERS,
            _take_other_graders,
            rows=1,
            placeholder="PROVIDER:MODEL, PROVIDER:MODEL",
            optional=True,
        )
        st.caption(
            "Offline means rules and measurements on this machine. Several graders judge independently, and a written "
            "rule combines their grades."
        )
        key, on = form.widget_key(MEMORY), settings.screening_memory
        st.toggle("Let the acceptance memory adapt what is required", on, key=key, on_change=_set, args=(MEMORY, key))
        st.caption(
            f"Off unless switched on, and bounded: at most {settings.screening_memory_bound:.2f} either way. Every "
            "screening records the thresholds it used."
        )


def _set(name: str, key: str) -> None:
    current_form().change(name, st.session_state[key])


def _names(listed: str) -> list[str]:
    return [name.strip() for name in listed.split(",") if name.strip()]


def _offered() -> list[str]:
    return list(offered_models(served_workbench().settings))


def _take_known_graders() -> None:
    form = current_form()
    others = [name for name in _names(form.effective.screening_graders) if name not in _offered()]
    _take_graders(form, (*st.session_state[form.widget_key("graders")], *others))


def _take_graders(form: ScreeningForm, graders: Iterable[str]) -> None:
    form.change(GRADERS, ", ".join(dict.fromkeys(graders)))


# Beside the form: the start, what leaves the machine, what the first search would bring.


def where_it_grades(settings: Settings) -> str:
    """Return what leaves the machine, in a sentence. Raises SettingsError for a grader that can't be asked."""
    names = grader_names(settings)
    asked = [resolve(name, ROLE, settings) for name in names if name != OFFLINE]
    sent = dict.fromkeys(endpoint_of(name, settings) for name in asked)
    if not sent:
        return "Graded on this machine, without a language model; nothing is sent anywhere."
    return f"Graded by {' and '.join(names)}. Question and abstracts go to {', '.join(sent)}."


def _where(settings: Settings, sources: tuple[str, ...]) -> None:
    """Say what leaves the machine, or why a grader that was chosen can't be asked."""
    try:
        destination = where_it_grades(settings)
    except MasisError as error:
        st.warning("A grader that was chosen can't be asked.", icon=":material/key_off:")
        st.text(str(error))
        return
    st.caption(f"{destination} The queries go to PubMed." if PUBMED in sources else destination)


def _no_corpus() -> None:
    with st.container(border=True):
        st.markdown("**There are no abstracts yet**")
        st.markdown(
            "Load those written for the demo, import a file of your own, or choose PubMed as a source. On the command "
            f"line: {command_markdown('masis screening corpus NAME FILE')}"
        )
        shown: dict[str, Any] = {"type": "primary", "width": "stretch"}
        action("Load the demo abstracts", "load-demo-abstracts", "library_add", _load_demo, **shown)


def _first(workbench: Workbench, form: ScreeningForm, sources: tuple[str, ...]) -> tuple[Abstract, ...] | None:
    """Return what the question brings from the corpora; None where only the network could say."""
    if not form.question.strip():
        return ()
    names = [each.removeprefix(CORPUS_PREFIX) for each in sources if each != PUBMED]
    return workbench.store.corpora.search(names[0], searched_text(form.asked), FIRST_SHOWN) if names else None


def _understood(form: ScreeningForm, first: tuple[Abstract, ...] | None) -> Understood:
    """Return what the panel beside the form shows; ``first`` is what the question's own search brings."""
    if not form.question.strip():
        head, rest = "No question yet.", "Ask what a review would answer."
    elif first is None:
        head, rest = "PubMed is asked", "when the screening starts."
    elif not first:
        head, rest = "Nothing matches yet.", "Use words that abstracts would use, or other sources."
    else:
        head, rest = "The first search brings", f"{counted(len(first), 'abstract')}:"
    refused = form.refused
    return {  # type: ignore[typeddict-item]
        "title": "What will be screened",
        "question": form.question.strip()[:600],
        "lines": [{"head": head, "rest": rest}],
        "notes": [],
        "errors": [{"place": "", "problem": refused.problem.rstrip("."), "cure": refused.cure}] if refused else [],
        "chunks_label": "Abstracts of the first search",
        "chunks": [{"id": each.id, "text": (each.title or each.text)[:EXCERPT]} for each in first or ()],
        "more": "",
    }


def _start() -> None:
    take_typed()
    form = current_form()
    sources = _chosen_sources(form, served_workbench().store.corpora.list_all())
    if not form.question.strip():
        form.refused = InputError("The question is missing", cure="Write what the evidence is to answer.")
        return
    try:
        where_it_grades(form.effective)  # raises for a model that can't be asked, while the form is in sight
        address.put("screening", served_jobs().screen(actor(), form.question.strip(), sources, form.effective))
    except MasisError as error:
        form.refused = InputError(str(error), cure="What you typed is stored.")

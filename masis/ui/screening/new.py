"""A new screening: the question, where to look, what to hold to; and the way to screenings made before."""

from __future__ import annotations

from typing import Any

import streamlit as st

from masis.api.roles import offered_models
from masis.errors import InputError, MasisError
from masis.schema.screening import Abstract
from masis.schema.wording import counted
from masis.screening.demo import CORPUS, demo_questions
from masis.screening.rounds.queries import searched_text
from masis.services import Workbench
from masis.services.records import CorpusSummary
from masis.services.screening import CORPUS as CORPUS_PREFIX
from masis.services.screening import PUBMED
from masis.settings import Settings
from masis.ui.components import registered
from masis.ui.live import served_jobs, show_live
from masis.ui.screening.concepts import asked, show_concept_fields
from masis.ui.screening.form import (
    CONCEPTS,
    CRITERIA,
    GRADERS,
    LONGEST_CRITERIA,
    LONGEST_QUESTION,
    MEMORY,
    MOST_ERRORS,
    TUNABLE,
    ScreeningForm,
    chosen_sources,
    corpus_source,
    current_form,
    import_errors,
    import_words,
    save,
    settings_of,
    source_words,
    understood,
    where_it_grades,
)
from masis.ui.screening.import_files import NamedFile, draw_import, import_files, importing, take_finished
from masis.ui.shell import address
from masis.ui.shell.inputs import take_typed, typing_area
from masis.ui.shell.permissions import needs
from masis.ui.shell.reviewer import actor
from masis.ui.shell.served_database import command_markdown, served_workbench
from masis.ui.shell.streamlit_internals import with_selectors

FIRST_SHOWN = 10
LONGEST_GRADERS = 500
FORMATS = ["jsonl", "json", "ris", "bib", "xml", "nbib", "txt"]
_UNDERSTOOD = registered("understood")
_STYLE = """<style>
@st-column:has(> div .st-key-screening-rail) { position: sticky; top: 4rem; align-self: flex-start; }
:is([class*=st-key-screening-sources], [class*=st-key-screening-graders]) {
  span[title] { color: light-dark(#fff, #101417); }
  button[aria-label="Clear all"] { min-width: 24px; min-height: 24px; } }
</style>"""
"""What was chosen is shown in the primary colour, on which Streamlit's white has too little contrast in the dark."""


def show_form(workbench: Workbench) -> None:
    """The form with the start button and what the first search would bring beside it."""
    form = current_form(workbench)
    take_finished(form)
    corpora = workbench.store.corpora.list_all()
    left, right = st.columns([62, 38], gap="large")
    sources = chosen_sources(form, corpora)
    with left:
        typing_area(
            "Question",
            key="screening-question",
            text=form.question,
            version=form.version,
            most=LONGEST_QUESTION,
            rows=3,
            hint="For example: population, intervention, comparison, outcome.",
            placeholder="Does velotarine lower blood pressure in adults with resistant hypertension?",
            on_text=_take_question,
        )
        with st.container():
            if any(each.name == CORPUS for each in corpora):
                _demo_questions()
        show_concept_fields(form)
        _criteria(workbench, form)
        _sources(form, corpora, sources)
        _settings(workbench, form)
    st.html(with_selectors(_STYLE))
    with right, st.container(key="screening-rail"):
        if corpora or PUBMED in sources:
            st.button(
                "Screen the evidence",
                type="primary",
                icon=":material/play_arrow:",
                width="stretch",
                shortcut="Ctrl+Enter",
                on_click=_start,
                key="start-screening",
                **needs("audit"),
            )
            _where(settings_of(workbench.settings, form.settings), sources)
        else:
            _no_corpus()
        _UNDERSTOOD(data=understood(form, _first(workbench, form, sources)), key="screening-understood")


def _where(settings: Settings, sources: tuple[str, ...]) -> None:
    """What leaves the machine, or why a grader that was chosen can't be asked."""
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
        st.button(
            "Load the demo abstracts",
            type="primary",
            icon=":material/library_add:",
            on_click=_load_demo,
            width="stretch",
            key="load-demo-abstracts",
            **needs("audit"),
        )


def _first(workbench: Workbench, form: ScreeningForm, sources: tuple[str, ...]) -> tuple[Abstract, ...] | None:
    """What the question brings from the corpora; None where only the network could say."""
    if not form.question.strip():
        return ()
    names = [each.removeprefix(CORPUS_PREFIX) for each in sources if each != PUBMED]
    if not names:
        return None
    return workbench.store.corpora.search(names[0], searched_text(asked(form)), FIRST_SHOWN)


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


def _criteria(workbench: Workbench, form: ScreeningForm) -> None:
    """Write the team's criteria: a line each."""
    typing_area(
        "Criteria of the team",
        key="screening-criteria",
        text=settings_of(workbench.settings, form.settings).screening_criteria,
        version=form.version,
        most=LONGEST_CRITERIA,
        rows=2,
        hint="A line each. Shown with the result, and offered as reasons when a person discards an abstract.",
        placeholder="include: adults\nexclude: no control group",
        optional=True,
        on_text=_take_criteria,
    )


def _take_criteria(text: str) -> None:
    form = current_form(served_workbench())
    if text != form.settings.get(CRITERIA, ""):
        save(form, settings={**form.settings, CRITERIA: text})


def _sources(form: ScreeningForm, corpora: tuple[CorpusSummary, ...], sources: tuple[str, ...]) -> None:
    known = [*(corpus_source(each.name) for each in corpora), PUBMED]
    where, add = st.columns([3, 1], vertical_alignment="bottom")
    with where:
        st.multiselect(
            "Where to look",
            known,
            list(sources),
            key=form.widget_key("sources"),
            format_func=lambda each: source_words(each, corpora),
            placeholder="Choose one or more",
            on_change=_take_sources,
        )
    with add.popover("Import", icon=":material/upload_file:", width="stretch"):
        _import(form, corpora)
    with st.container():  # always there: the settings below stay where they are when an import begins or ends
        if importing():
            show_live(draw_import)
        for line in import_words(form):
            st.text(line)
        for sentence, errors in import_errors(form):
            st.warning(sentence, icon=":material/error:")
            st.text("\n".join(str(error) for error in errors[:MOST_ERRORS]))


def _import(form: ScreeningForm, corpora: tuple[CorpusSummary, ...]) -> None:
    st.markdown("**Abstracts of your own**")
    st.caption("JSON Lines, RIS, BibTeX, PubMed XML or MEDLINE text. Each study is stored once.")
    st.text_input("Into the corpus", key="screening-corpus-name", value="my abstracts", max_chars=100)
    key = f"screening-upload-{form.uploads}"
    st.file_uploader("Files", type=FORMATS, accept_multiple_files=True, key=key)
    st.button(
        "Import",
        key="screening-import",
        icon=":material/upload_file:",
        on_click=_import_chosen,
        args=(key,),
        **needs("audit", disabled=importing()),
    )
    if not any(each.name == CORPUS for each in corpora):
        st.button(
            "Load the demo abstracts", key="load-demo-too", type="tertiary", on_click=_load_demo, **needs("audit")
        )


def _settings(workbench: Workbench, form: ScreeningForm) -> None:
    settings = settings_of(workbench.settings, form.settings)
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
        _graders(workbench, form, settings)
        key, on = form.widget_key(MEMORY), settings.screening_memory
        st.toggle("Let the acceptance memory adapt what is required", on, key=key, on_change=_set, args=(MEMORY, key))
        st.caption(
            f"Off unless switched on, and bounded: at most {settings.screening_memory_bound:.2f} either way. Every "
            "screening records the thresholds it used."
        )


def _graders(workbench: Workbench, form: ScreeningForm, settings: Settings) -> None:
    """Choose the graders: those known from a list, others by their names; several show how far they agree."""
    offered = offered_models(workbench.settings)
    chosen = _names(settings.screening_graders)
    grading = [name for name in chosen if name in offered]
    st.multiselect("Who grades", offered, grading, key=form.widget_key("graders"), on_change=_take_graders)
    typing_area(
        "Other graders",
        key="screening-other-graders",
        text=", ".join(name for name in chosen if name not in offered),
        version=form.version,
        most=LONGEST_GRADERS,
        rows=1,
        placeholder="PROVIDER:MODEL, PROVIDER:MODEL",
        optional=True,
        on_text=_take_other_graders,
    )
    st.caption(
        "Offline means rules and measurements on this machine. Several graders judge independently, and a written rule "
        "combines their grades."
    )


def _names(listed: str) -> list[str]:
    return [name.strip() for name in listed.split(",") if name.strip()]


def _take_graders() -> None:
    workbench = served_workbench()
    form = current_form(workbench)
    others = _names(settings_of(workbench.settings, form.settings).screening_graders)
    others = [name for name in others if name not in offered_models(workbench.settings)]
    _save_graders(form, (*st.session_state[form.widget_key("graders")], *others))


def _take_other_graders(text: str) -> None:
    workbench = served_workbench()
    form = current_form(workbench)
    offered = offered_models(workbench.settings)
    chosen = _names(settings_of(workbench.settings, form.settings).screening_graders)
    _save_graders(form, (*(name for name in chosen if name in offered), *_names(text)))


def _save_graders(form: ScreeningForm, graders: tuple[str, ...]) -> None:
    listed = ", ".join(dict.fromkeys(graders))
    if listed != getattr(settings_of(served_workbench().settings, form.settings), GRADERS):
        save(form, settings={**form.settings, GRADERS: listed})


def _take_question(text: str) -> None:
    form = current_form(served_workbench())
    if text != form.question:
        save(form, question=text)


def _take_demo_question() -> None:
    take_typed()
    chosen: Any = st.session_state["screening-demo-question"]
    st.session_state["screening-demo-question"] = None
    found = next((each for each in demo_questions() if each.question == chosen), None)
    if found is not None:
        form = current_form(served_workbench())
        save(
            form,
            replaced=True,
            question=found.question,
            sources=(corpus_source(CORPUS),),
            settings={**form.settings, "screening_retrieve": found.retrieve, CONCEPTS: ""},
        )


def _take_sources() -> None:
    workbench = served_workbench()
    form = current_form(workbench)
    chosen = tuple(st.session_state[form.widget_key("sources")])
    # Where nothing is left chosen the first corpus is searched, and the field is to show that.
    save(form, replaced=not chosen, sources=chosen)


def _set(name: str, key: str) -> None:
    """Store a setting, unless it is what applies: a page that comes back posts its defaults as if they were chosen."""
    workbench = served_workbench()
    form = current_form(workbench)
    chosen = st.session_state[key]
    if chosen != getattr(settings_of(workbench.settings, form.settings), name):
        save(form, settings={**form.settings, name: chosen})


def _load_demo() -> None:
    workbench = served_workbench()
    workbench.corpora.add_demo(actor())
    save(current_form(workbench), replaced=True, sources=(corpus_source(CORPUS),))


def _import_chosen(key: str) -> None:
    workbench = served_workbench()
    form = current_form(workbench)
    files = st.session_state.get(key) or []
    if not files:
        form.refused = InputError("There is no file to import", cure="Choose one first.")
        return
    import_files(
        workbench, form, st.session_state["screening-corpus-name"], [NamedFile(file.name, file) for file in files]
    )
    form.uploads += 1


def _start() -> None:
    take_typed()
    workbench = served_workbench()
    form = current_form(workbench)
    sources = chosen_sources(form, workbench.store.corpora.list_all())
    if not form.question.strip():
        form.refused = InputError("The question is missing", cure="Write what the evidence is to answer.")
        return
    try:
        settings = settings_of(workbench.settings, form.settings)
        where_it_grades(settings)  # raises for a model that can't be asked, while the form is in sight
        address.put("screening", served_jobs().screen(actor(), form.question.strip(), sources, settings))
    except MasisError as error:
        form.refused = InputError(str(error), cure="What you typed is stored.")

"""The form of a screening: stored as it is filled in, so that it survives the page, the browser and the server."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple
from uuid import uuid4

import streamlit as st

from masis.errors import InputError
from masis.llm.available_models import endpoint_of
from masis.llm.registry import resolve
from masis.schema.screening import Abstract
from masis.schema.wording import counted
from masis.screening.critic import ROLE, grader_names
from masis.screening.demo import CORPUS
from masis.services import Actor, Workbench
from masis.services.records import CorpusImport, CorpusSummary
from masis.services.screening import CORPUS as CORPUS_PREFIX
from masis.services.screening import PUBMED
from masis.settings import OFFLINE, Settings
from masis.ui.new_audit.form import Understood, Wrong
from masis.ui.shell.reviewer import actor
from masis.ui.shell.served_database import served_workbench

SUBJECT = "new-screening"
LONGEST_QUESTION = 2_000
MOST_ERRORS = 8
EXCERPT = 200
_STATE = "screening-form"


class Tunable(NamedTuple):
    """A setting that the form offers: its words, one line on what it does, its bounds."""

    name: str
    text: str
    meaning: str
    least: int
    most: int


TUNABLE = (
    Tunable("screening_retrieve", "Abstracts a round", "How many abstracts the searches of a round bring.", 1, 200),
    Tunable("screening_max_rounds", "Most rounds", "How often it searches again before it gives up.", 1, 8),
)
MEMORY, GRADERS, CRITERIA = "screening_memory", "screening_graders", "screening_criteria"
CONCEPTS = "screening_concepts"
LONGEST_CRITERIA = 10_000


@dataclass
class ScreeningForm:
    """The form of one session.

    Attributes:
        owner: The name its draft is stored under.
        version: Changes when the fields are to show other text than was typed; stored with the draft, so that a server
            that was restarted does not mistake its own text for newer than what is typed in the browser.
        uploads: Rises when an uploader is to be empty again.
        refused: Why the last start was refused.
        imported: What the last files brought.
        errors: Their records that could not be imported.
        refused_files: Files that could not be imported, or not to their end.
        import_stopped: Whether a person stopped the last import.

    """

    owner: Actor
    question: str = ""
    sources: tuple[str, ...] = ()
    settings: dict[str, Any] = field(default_factory=dict)
    version: str = ""
    uploads: int = 0
    refused: InputError | None = None
    imported: tuple[CorpusImport, ...] = ()
    errors: tuple[InputError, ...] = ()
    refused_files: tuple[InputError, ...] = ()
    import_stopped: bool = False

    def widget_key(self, name: str) -> str:
        """Return the key of a widget, another one for each version of the form, so that it starts with its default."""
        return f"screening-{name}-{self.version}-{self.owner}"


def current_form(workbench: Workbench) -> ScreeningForm:
    """Return the session's form; after a reload, and when a person's name becomes known, as it was stored."""
    owner = actor()
    held: ScreeningForm | None = st.session_state.get(_STATE)
    if held is not None and held.owner == owner:
        return held
    values = workbench.drafts.get(owner, SUBJECT).values
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
    served_workbench().drafts.save(
        form.owner,
        SUBJECT,
        {name: list(value) if isinstance(value, tuple) else value for name, value in values.items()},
    )
    form.refused = None
    for name, value in values.items():
        setattr(form, name, value)


def chosen_sources(form: ScreeningForm, corpora: tuple[CorpusSummary, ...]) -> tuple[str, ...]:
    """Return the sources of the form that exist; the first corpus where none is chosen."""
    existing = [corpus_source(each.name) for each in corpora]
    chosen = tuple(each for each in form.sources if each in existing or each == PUBMED)
    return chosen or tuple(existing[:1])


def corpus_source(name: str) -> str:
    """A corpus as a source is called."""
    return f"{CORPUS_PREFIX}{name}"


def source_words(source: str, corpora: tuple[CorpusSummary, ...]) -> str:
    """A source in a list to choose from."""
    if source == PUBMED:
        return "PubMed (asks the network)"
    name = source.removeprefix(CORPUS_PREFIX)
    count = next((each.abstracts for each in corpora if each.name == name), 0)
    shown = "Demo abstracts" if name == CORPUS else name
    return f"{shown} ({counted(count, 'abstract')})"


def settings_of(base: Settings, changes: Mapping[str, Any]) -> Settings:
    """The settings with what was changed; a change that makes no sense is left out."""
    valid: dict[str, Any] = {}
    for each in TUNABLE:
        value = changes.get(each.name)
        if isinstance(value, int) and not isinstance(value, bool) and each.least <= value <= each.most:
            valid[each.name] = value
    if isinstance(changes.get(MEMORY), bool):
        valid[MEMORY] = changes[MEMORY]
    if isinstance(criteria := changes.get(CRITERIA), str) and len(criteria) <= LONGEST_CRITERIA:
        valid[CRITERIA] = criteria
    if isinstance(concepts := changes.get(CONCEPTS), str) and len(concepts) <= LONGEST_CRITERIA:
        valid[CONCEPTS] = concepts
    if isinstance(graders := changes.get(GRADERS), str) and graders.strip(" ,"):
        valid[GRADERS] = graders
    return base.model_copy(update=valid)


def where_it_grades(settings: Settings) -> str:
    """What leaves the machine, in a sentence. Raises SettingsError for a grader that can't be asked."""
    names = grader_names(settings)
    asked = [resolve(name, ROLE, settings) for name in names if name != OFFLINE]
    sent = dict.fromkeys(endpoint_of(name, settings) for name in asked)
    if not sent:
        return "Graded on this machine, without a language model; nothing is sent anywhere."
    return f"Graded by {' and '.join(names)}. Question and abstracts go to {', '.join(sent)}."


def understood(form: ScreeningForm, first: tuple[Abstract, ...] | None) -> Understood:
    """What the panel beside the form shows; ``first`` is what the question's own search brings, None without one."""
    errors: list[Wrong] = [_wrong(form.refused)] if form.refused else []
    lines = []
    if not form.question.strip():
        lines.append({"head": "No question yet.", "rest": "Ask what a review would answer."})
    elif first is None:
        lines.append({"head": "PubMed is asked", "rest": "when the screening starts."})
    elif not first:
        lines.append({"head": "Nothing matches yet.", "rest": "Use words that abstracts would use, or other sources."})
    else:
        lines.append({"head": "The first search brings", "rest": f"{counted(len(first), 'abstract')}:"})
    return {
        "title": "What will be screened",
        "question": form.question.strip()[:600],
        "lines": lines,  # type: ignore[typeddict-item]  # built of literals above
        "notes": [],
        "errors": errors,
        "chunks_label": "Abstracts of the first search",
        "chunks": [{"id": each.id, "text": (each.title or each.text)[:EXCERPT]} for each in first or ()],
        "more": "",
    }


def _wrong(error: InputError) -> Wrong:
    return {"place": "", "problem": error.problem.rstrip("."), "cure": error.cure}


def import_errors(form: ScreeningForm) -> list[tuple[str, tuple[InputError, ...]]]:
    """Return what could not be imported: a sentence with the errors it counts, files before records."""
    counts = ((form.refused_files, "file"), (form.errors, "record"))
    return [(f"{counted(len(errors), what)} could not be imported.", errors) for errors, what in counts if errors]


def import_words(form: ScreeningForm) -> list[str]:
    """What the last files brought, a line each."""
    stopped = ["The import was stopped. What was read is stored; the same files again add the rest."]
    brought = [
        f"{each.source}: {counted(each.identified, 'record')}, {each.added:,} added, "
        f"{counted(each.duplicates, 'duplicate')}, {each.faulty:,} unreadable"
        for each in form.imported
    ]
    return brought + (stopped if form.import_stopped else [])

"""What a person has put into the form of a screening: kept in the store as it is typed, outliving page and server."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import streamlit as st

from masis.errors import InputError
from masis.llm.available_models import endpoint_of
from masis.llm.registry import resolve
from masis.schema.screening import Abstract
from masis.screening.critic import ROLE, grader_names
from masis.screening.demo import CORPUS
from masis.services import Workbench
from masis.services.screening import CORPUS as CORPUS_PREFIX
from masis.services.screening import PUBMED
from masis.settings import OFFLINE, Settings
from masis.store.screening.corpora import CorpusImport, CorpusSummary
from masis.ui.new_audit.form import Understood, Wrong
from masis.ui.shell.drafts import drafter
from masis.ui.shell.served_database import served_workbench
from masis.ui.shell.wording import spoken

SUBJECT = "new-screening"
LONGEST_QUESTION = 2_000
MOST_FAULTS = 8
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
MEMORY, GRADERS = "screening_memory", "screening_graders"


@dataclass
class ScreeningForm:
    """The form of one session.

    ``version`` rises when the question is to show other text than was typed, ``uploads`` when an uploader is to be
    empty again; ``refused`` is why the last start was, ``imported`` what the last files brought.
    """

    owner: str
    question: str = ""
    sources: tuple[str, ...] = ()
    settings: dict[str, Any] = field(default_factory=dict)
    version: int = 0
    uploads: int = 0
    refused: InputError | None = None
    imported: tuple[CorpusImport, ...] = ()
    faults: tuple[InputError, ...] = ()


def current_form(workbench: Workbench) -> ScreeningForm:
    """The session's form; after a reload, and when a person's name becomes known, as it was kept."""
    owner = drafter()
    kept: ScreeningForm | None = st.session_state.get(_STATE)
    if kept is not None and kept.owner == owner:
        return kept
    values = workbench.store.drafts.load(owner, SUBJECT)
    question, sources, settings = values.get("question"), values.get("sources"), values.get("settings")
    form = ScreeningForm(
        owner,
        question=question if isinstance(question, str) else "",
        sources=tuple(str(each) for each in sources) if isinstance(sources, list) else (),
        settings=dict(settings) if isinstance(settings, dict) else {},
        version=(kept.version if kept else 0) + 1,
    )
    st.session_state[_STATE] = form
    return form


def keep(form: ScreeningForm, **values: Any) -> None:
    """Take values into the form and keep them in the store."""
    form.refused = None
    for name, value in values.items():
        setattr(form, name, value)
    served_workbench().store.drafts.save_all(
        form.owner,
        SUBJECT,
        {name: list(value) if isinstance(value, tuple) else value for name, value in values.items()},
    )


def chosen_sources(form: ScreeningForm, corpora: tuple[CorpusSummary, ...]) -> tuple[str, ...]:
    """The sources of the form that are there; the first corpus where none is chosen."""
    known = [corpus_source(each.name) for each in corpora]
    found = tuple(each for each in form.sources if each in known or each == PUBMED)
    return found or tuple(known[:1])


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
    return f"{shown} ({spoken(count, 'abstract')})"


def settings_of(base: Settings, changes: Mapping[str, Any]) -> Settings:
    """The settings with what was changed; a change that makes no sense is left out."""
    kept: dict[str, Any] = {}
    for each in TUNABLE:
        value = changes.get(each.name)
        if isinstance(value, int) and not isinstance(value, bool) and each.least <= value <= each.most:
            kept[each.name] = value
    if isinstance(changes.get(MEMORY), bool):
        kept[MEMORY] = changes[MEMORY]
    if isinstance(graders := changes.get(GRADERS), str) and graders.strip(" ,"):
        kept[GRADERS] = graders
    return base.model_copy(update=kept)


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
        lines.append({"head": "The first search brings", "rest": f"{spoken(len(first), 'abstract')}:"})
    return {
        "title": "What will be screened",
        "question": form.question.strip()[:600],
        "lines": lines,  # type: ignore[typeddict-item]  # built of literals above
        "notes": [],
        "errors": errors,
        "chunks": [{"id": each.id, "text": (each.title or each.text)[:EXCERPT]} for each in first or ()],
        "more": "",
    }


def _wrong(error: InputError) -> Wrong:
    return {"place": "", "problem": error.problem.rstrip("."), "cure": error.cure}


def import_words(form: ScreeningForm) -> list[str]:
    """What the last files brought, a line each."""
    return [
        f"{each.source}: {spoken(each.identified, 'record')}, {each.added:,} added, "
        f"{spoken(each.duplicates, 'duplicate')}, {each.faulty:,} unreadable"
        for each in form.imported
    ]

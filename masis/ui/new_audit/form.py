"""Read what was typed into a new audit: the case, the settings, and what the page says about both.
Pure.

The case gets its id from its question and its content, so that the same content is the same case,
however often it is pasted.
"""

from __future__ import annotations

import hashlib
import re
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from pydantic import ValidationError

from masis.api.audits import audit_citations
from masis.api.roles import addresses, check_models, estimate, uses_models
from masis.datasets.readers.pasted import Form, PastedEvidence
from masis.errors import InputError, MasisError
from masis.schema import limits
from masis.schema.case import Case, check_case
from masis.schema.explain import explain
from masis.schema.wording import count_noun
from masis.settings import ROLES, UNCHECKED, Settings
from masis.views.numbers import dollars
from masis.views.words import UNANSWERED, model_words

LONGEST: dict[str, int] = {
    "question": limits.QUESTION,
    "evidence": 200_000,
    "answer": limits.ANSWER,
}
"""Characters a field takes; an upload of evidence may be longer. A text area gets slow past
200,000.
"""

CHUNKS_SHOWN = 40
EXCERPT = 240
IDS_NAMED = 6
ERRORS_SHOWN = 8
LONGEST_CHECKED = 50_000
CHUNKS_COMPARED = 200
"""Chunks whose words are compared with the sentences that cite them, while somebody types."""
LEAST_WORDS = 4
"""Words of a citing sentence from which on the share it has in common with a chunk
means something.
"""
DATASET = "pasted"
"""The data set such cases belong to, by which they are found again."""


class Choice(NamedTuple):
    """A setting that is chosen from a few values, with their words."""

    name: str
    text: str
    values: Mapping[Any, str]


CHOICES = (
    Choice("depth", "Depth", {"quick": "Quick", "standard": "Standard", "thorough": "Thorough"}),
    Choice(
        "strictness",
        "Strictness",
        {"lenient": "Lenient", "moderate": "Moderate", "strict": "Strict"},
    ),
    Choice("max_iterations", "Most iterations", {number: str(number) for number in range(1, 6)}),
    Choice(
        "improvement_threshold",
        "Least improvement",
        {each: f"{each:g}" for each in (0.0, 0.01, 0.02, 0.05, 0.1, 0.2)},
    ),
    Choice("citation_mode", "Citations", {"standard": "Standard", "literal": "Literal"}),
    Choice("evaluate", "Evaluation", {"every": "Every iteration", "final": "Only the last"}),
    Choice("judge_samples", "Judge samples", {1: "1", 3: "3", 5: "5"}),
)
ROLE: dict[str, str] = {role: role.capitalize() for role in ROLES}

Line = tuple[str, str]
"""One line of what was understood: what counts, then the rest."""

_FORMS: dict[Form, str] = {
    "blocks": "read as blocks between blank lines",
    "labelled": "read by the [id] before each",
    "headings": "read by the numbered heading before each",
    "csv": "read as CSV",
    "json": "read as JSON",
}


def case_of(question: str, pasted: PastedEvidence, answer: str) -> Case:
    """Return the case that was typed. Raises InputError: what is missing or can't be stored, with
    the hint.
    """
    if not question.strip():
        raise InputError(
            "The question is missing", hint="Write what the answer is meant to answer."
        )
    if pasted.errors:
        raise pasted.errors[0]
    if not pasted.chunks:
        raise InputError(
            "There is no evidence",
            hint="Paste what the retrieval found, one chunk after the other.",
        )
    content: dict[str, Any] = {
        "query": question.strip(),
        "evidence": [chunk.model_dump(exclude_unset=True) for chunk in pasted.chunks],
        "metadata": {"dataset": DATASET},
    }
    if answer.strip():
        content["answer"] = answer.strip("\r\n")
    try:
        case = Case.from_stored({"id": "new", **content})
    except ValidationError as error:
        raise explain(error) from error
    return check_case(Case.from_stored({"id": case_id(case), **content}))


def case_id(case: Case) -> str:
    """Return an id made of the first words of the question and a digest of the content."""
    plain = unicodedata.normalize("NFKD", case.query[:200]).encode("ascii", "ignore").decode()
    words = re.findall(r"[a-z0-9]+", plain.lower())
    slug = "-".join(words[:6])[:48].strip("-") or "case"
    return f"{slug}-{hashlib.sha256(case.digest().encode()).hexdigest()[:8]}"


def settings_of(base: Settings, changes: Mapping[str, Any]) -> Settings:
    """Return the settings with the changes; a change that makes no sense is left out."""
    allowed: dict[str, Any] = {name: list(values) for name, _, values in CHOICES}
    valid = {name: value for name, value in changes.items() if value in allowed.get(name, ())}
    valid |= {
        role: model
        for role in ROLES
        if isinstance(model := changes.get(role), str) and model.strip()
    }
    return base.model_copy(update=valid)


def where_it_runs(settings: Settings) -> str:
    """Say what an audit with these settings sends, and where. Raises SettingsError for a model that
    can't be called.
    """
    found = addresses(settings)
    if not found and any(model_words(model) != model for model in settings.models().values()):
        return (
            "It runs on this machine with recorded replies; no model is called, and nothing is sent"
            " anywhere."
        )
    if not found:
        return "It runs on this machine, without a language model; nothing is sent anywhere."
    hosts = " and ".join(urlsplit(address).netloc for address in found)
    return f"Question, evidence and answer are sent to {hosts}."


def what_it_takes(settings: Settings, case: Case | None) -> str:
    """Say what an audit by models takes at most, and what its depth leaves unchecked. Raises
    SettingsError.
    """
    most = ""
    if case is not None and uses_models(settings):
        found = estimate(case, settings)
        cost = (
            "cost unknown" if found.cost_usd is None else f"at most about {dollars(found.cost_usd)}"
        )
        most = f"Up to {count_noun(found.calls, 'call')} and {found.tokens:,} tokens, {cost}. "
    return f"{most}{UNCHECKED[settings.depth]}"


def unusable_model(settings: Settings) -> str:
    """Say why an audit with these settings can't begin, as where a key is missing; ""
    where it can.
    """
    try:
        check_models(settings)
    except MasisError as error:
        return str(error)
    return ""


def panel(
    title: str,
    question: str,
    lines: Iterable[Line],
    chunks: Sequence[tuple[str, str]],
    *,
    notes: Iterable[str] = (),
    errors: Iterable[InputError] = (),
    chunks_label: str = "Chunks of evidence",
    editable: bool = False,
) -> dict[str, Any]:
    """Return what the panel beside a form shows, as its component ``understood`` reads it.

    ``chunks`` are ids with texts; the first of them are shown, by their beginnings. ``editable``
    offers to join them and to change their ids.
    """
    more = len(chunks) - CHUNKS_SHOWN
    return {
        "title": title,
        "question": question.strip()[:600],
        "lines": [{"head": head, "rest": rest} for head, rest in lines],
        "notes": list(notes),
        "errors": [_wrong(error) for error in errors],
        "chunks_label": chunks_label,
        "chunks": [{"id": name, "text": text[:EXCERPT]} for name, text in chunks[:CHUNKS_SHOWN]],
        "more": f"and {count_noun(more, 'more chunk', 'more chunks')}" if more > 0 else "",
        "editable": editable,
    }


def form_panel(
    question: str,
    pasted: PastedEvidence,
    answer: str,
    refused: InputError | None = None,
    *,
    editable: bool = False,
) -> dict[str, Any]:
    """Return the panel of the form, with every error; ``refused`` is why the last start was
    refused.
    """
    errors = list(pasted.errors[:ERRORS_SHOWN])
    if len(pasted.errors) > ERRORS_SHOWN:
        errors.append(
            InputError(f"{len(pasted.errors) - ERRORS_SHOWN} more", hint="Fix these first.")
        )
    if refused is not None and not errors:
        errors = [refused]
    return panel(
        "What was understood",
        question,
        [_evidence_line(pasted), _answer_line(answer, pasted)],
        [(chunk.id, chunk.text) for chunk in pasted.chunks],
        notes=[*pasted.notes, *_number_warnings(answer, pasted)],
        errors=errors,
        editable=editable and not pasted.errors,
    )


def understood_case(
    case: Case, notes: Sequence[str] = (), title: str = "The case"
) -> dict[str, Any]:
    """Return the same for a stored case."""
    evidence = count_noun(len(case.evidence), "chunk"), "of evidence"
    answer = _answer_line(
        case.answer or "", PastedEvidence(case.evidence, "blocks"), len(case.given_citations)
    )
    if case.unanswered:
        answer = f"{UNANSWERED[case.unanswered.code].text}.", "There is nothing to audit."
    chunks = [(chunk.id, chunk.text) for chunk in case.evidence]
    return panel(title, case.query, [evidence, answer], chunks, notes=notes)


def _evidence_line(pasted: PastedEvidence) -> Line:
    if not pasted.chunks:
        return "No evidence yet.", (
            "" if pasted.errors else "Each chunk is shown here as it was read."
        )
    ids = [
        chunk.id if len(chunk.id) <= 24 else chunk.id[:23] + "…"
        for chunk in pasted.chunks[:IDS_NAMED]
    ]
    named = ", ".join(ids) + (", …" if len(pasted.chunks) > IDS_NAMED else "")
    form = _FORMS[pasted.form] if pasted.form else ""
    return f"{count_noun(len(pasted.chunks), 'chunk')}:", f"{named} ({form})"


def _answer_line(answer: str, pasted: PastedEvidence, beside: int = 0) -> Line:
    if not answer.strip():
        return "No answer:", "one is drafted from the evidence first."
    if not pasted.chunks or len(answer) > LONGEST_CHECKED:
        return f"An answer of {count_noun(len(answer.strip()), 'character')}.", ""
    found = audit_citations(answer, pasted.chunks).citations
    if beside:
        more = (
            f"and {count_noun(len(found), 'citation')} in its text"
            if found
            else "and none in its text"
        )
        return f"An answer with {count_noun(beside, 'citation')} beside it", f"{more}."
    if not found:
        return "An answer without citations.", "Its sentences will count as uncited."
    lost = list(dict.fromkeys(each.reference[:24] for each in found if each.status == "invalid"))
    if not lost:
        return f"An answer with {count_noun(len(found), 'citation')};", "each names a chunk."
    if len(lost) == len({each.reference for each in found}):
        rest = "none names a chunk. Are the ids the same in answer and evidence?"
    else:
        rest = (
            "no chunk is named"
            f" {', '.join(lost[:IDS_NAMED])}{', …' if len(lost) > IDS_NAMED else ''}."
        )
    return f"An answer with {count_noun(len(found), 'citation')};", rest


SHARED_LITTLE, SHARED_MORE = 0.34, 0.6
"""Shares of a citing sentence's words: at most the first in the chunk it cites, at least the second
in another one.
"""


def _number_warnings(answer: str, pasted: PastedEvidence) -> list[str]:
    """Return a warning where blocks were numbered in order and the answer's numbers seem to mean
    other ones.

    Only numbers that were assigned here are doubted: a wrong citation of an id that was given is
    for the audit to find.
    """
    if pasted.form != "blocks" or not answer.strip() or len(answer) > LONGEST_CHECKED:
        return []
    words = {chunk.id: _content_words(chunk.text) for chunk in pasted.chunks[:CHUNKS_COMPARED]}
    doubted: dict[str, str] = {}
    for sentence in audit_citations(answer, pasted.chunks).sentences:
        stated = _content_words(answer[sentence.start : sentence.end])
        cited = [each for each in sentence.citation_ids if each in words]
        if len(stated) < LEAST_WORDS or not cited:
            continue
        shared = {chunk: len(stated & found) / len(stated) for chunk, found in words.items()}
        best = max(shared, key=shared.__getitem__)
        if shared[best] >= SHARED_MORE and max(shared[each] for each in cited) <= SHARED_LITTLE:
            doubted.setdefault(cited[0], best)
    if not doubted:
        return []
    listed = ", ".join(f"[{cited}] → {best}" for cited, best in list(doubted.items())[:IDS_NAMED])
    warning = (
        "The chunks were numbered in order, and the answer's citations may mean others, by the"
        f" words they share: {listed}. If one source has several paragraphs, write its number"
        " before it: [1] or Source 1:"
    )
    return [warning]


def _content_words(text: str) -> set[str]:
    return set(re.findall(r"[^\W\d_]{4,}|\d[\d.,]*\d", text.lower()))


def _wrong(error: InputError) -> dict[str, str]:
    line = f"line {error.line}" if error.line else ""
    place = ", ".join(part for part in (error.file or "", line, error.field or "") if part)
    place = place[:1].upper() + place[1:] if not error.file else place
    return {"place": place, "problem": error.problem.rstrip("."), "hint": error.hint}

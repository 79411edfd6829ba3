"""The form of a new audit as pure functions: its case, its settings and the texts about both.

The id of a case is made from its question and content, so that pasting the same content twice gives
the same case.
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
from masis.schema.systems import UNNAMED
from masis.schema.wording import count_noun
from masis.settings import ROLES, UNCHECKED, Settings
from masis.views.numbers import dollars
from masis.views.words import UNANSWERED, model_words

LONGEST: dict[str, int] = {
    "question": limits.QUESTION,
    "evidence": 200_000,
    "answer": limits.ANSWER,
}
"""The longest text of each field, in characters. An upload of evidence can be longer.

A text area gets slow past 200,000 characters.
"""

CHUNKS_SHOWN = 40
EXCERPT = 240
IDS_NAMED = 6
ERRORS_SHOWN = 8
# The preview is drawn while somebody types, so it doesn't check the citations of a longer answer.
LONGEST_CHECKED = 50_000
CHUNKS_COMPARED = 200
"""Maximum number of chunks that are compared with the sentences citing them while somebody types.
"""
LEAST_WORDS = 4
"""Minimum number of words of a sentence for which the share in common with a chunk is meaningful.
"""
DATASET = "pasted"
"""The data set of pasted cases, for the filter of the queue."""


class Choice(NamedTuple):
    """A setting with a few values to choose from, each with its text."""

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
    Choice("max_iterations", "Maximum iterations", {number: str(number) for number in range(1, 6)}),
    Choice(
        "improvement_threshold",
        "Minimum improvement",
        {value: f"{value:g}" for value in (0.0, 0.01, 0.02, 0.05, 0.1, 0.2)},
    ),
    Choice("citation_mode", "Citations", {"standard": "Standard", "literal": "Literal"}),
    Choice("evaluate", "Evaluation", {"every": "Every iteration", "final": "Only the last"}),
    Choice("judge_samples", "Judge samples", {1: "1", 3: "3", 5: "5"}),
)
ROLE: dict[str, str] = {role: role.capitalize() for role in ROLES}

Line = tuple[str, str]
"""A line of the preview: the important part, then the rest."""

_FORMS: dict[Form, str] = {
    "blocks": "read as blocks between blank lines",
    "labelled": "read by the [id] before each",
    "headings": "read by the numbered heading before each",
    "csv": "read as CSV",
    "json": "read as JSON",
}


def case_of(question: str, pasted: PastedEvidence, answer: str) -> Case:
    """Return the typed case.

    Raises:
        InputError: Something is missing or can't be stored.

    """
    if not question.strip():
        raise InputError("The question is missing", hint="Type the question of the answer.")
    if pasted.errors:
        raise pasted.errors[0]
    if not pasted.chunks:
        raise InputError(
            "There is no evidence",
            hint="Paste the retrieved chunks, one after the other.",
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
    # The first case has a placeholder as its id, because the real one is made from its digest.
    return check_case(Case.from_stored({"id": case_id(case), **content}))


def case_id(case: Case) -> str:
    """Return an id made of the first words of the question and a digest of the content."""
    # NFKD separates an accent from its letter, and encoding to ASCII drops it: é becomes e.
    plain = unicodedata.normalize("NFKD", case.query[:200]).encode("ascii", "ignore").decode()
    words = re.findall(r"[a-z0-9]+", plain.lower())
    slug = "-".join(words[:6])[:48].strip("-") or "case"
    return f"{slug}-{hashlib.sha256(case.digest().encode()).hexdigest()[:8]}"


def settings_of(base: Settings, changes: Mapping[str, Any]) -> Settings:
    """Return the settings with the changes, without those that aren't valid."""
    allowed: dict[str, Any] = {name: list(values) for name, _, values in CHOICES}
    valid = {name: value for name, value in changes.items() if value in allowed.get(name, ())}
    valid |= {
        role: model
        for role in ROLES
        if isinstance(model := changes.get(role), str) and model.strip()
    }
    return base.model_copy(update=valid)


def destination_text(settings: Settings) -> str:
    """Say which data an audit with these settings sends, and where to.

    Raises:
        SettingsError: A model can't be called.

    """
    urls = addresses(settings)
    if not urls and any(model_words(model) != model for model in settings.models().values()):
        return (
            "The audit runs on this machine with recorded replies. It calls no model and sends no"
            " data."
        )
    if not urls:
        return "The audit runs on this machine, without a language model. It sends no data."
    hosts = " and ".join(urlsplit(url).netloc for url in urls)
    return f"The audit sends question, evidence and answer to {hosts}."


def requirements_text(settings: Settings, case: Case | None) -> str:
    """Say how much an audit by models needs at most, and what its depth leaves unchecked.

    Raises:
        SettingsError: A model can't be called.

    """
    limits_text = ""
    if case is not None and uses_models(settings):
        most = estimate(case, settings)
        cost = (
            "cost unknown" if most.cost_usd is None else f"at most about {dollars(most.cost_usd)}"
        )
        limits_text = f"Up to {count_noun(most.calls, 'call')} and {most.tokens:,} tokens, {cost}. "
    return f"{limits_text}{UNCHECKED[settings.depth]}"


def unusable_model(settings: Settings) -> str:
    """Say why an audit with these settings can't start, such as a missing key; "" if it can."""
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
    """Return the data of a preview panel, as the component ``understood`` reads it.

    Args:
        title: The title of the panel.
        question: The question of the case.
        lines: Lines about evidence and answer.
        chunks: Ids and texts; only the start of the first ones is shown.
        notes: Further remarks.
        errors: The errors, with their hints.
        chunks_label: What the list of chunks is called, for screen readers.
        editable: Whether chunks can be joined and renamed in the panel.

    """
    more = len(chunks) - CHUNKS_SHOWN
    return {
        "title": title,
        "question": question.strip()[:600],
        "lines": [{"head": head, "rest": rest} for head, rest in lines],
        "notes": list(notes),
        "errors": [_error_data(error) for error in errors],
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
    """Return the preview with all errors; ``refused`` is the error of the last start."""
    errors = list(pasted.errors[:ERRORS_SHOWN])
    if len(pasted.errors) > ERRORS_SHOWN:
        errors.append(
            InputError(f"{len(pasted.errors) - ERRORS_SHOWN} more", hint="Fix these first.")
        )
    if refused is not None and not errors:
        errors = [refused]
    return panel(
        "Preview",
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
    """Return the preview of a stored case."""
    evidence = count_noun(len(case.evidence), "chunk"), "of evidence"
    answer = _answer_line(
        case.answer or "", PastedEvidence(case.evidence, "blocks"), len(case.given_citations)
    )
    if case.unanswered:
        answer = f"{UNANSWERED[case.unanswered.code].text}.", "There is nothing to audit."
    chunks = [(chunk.id, chunk.text) for chunk in case.evidence]
    lines = [evidence, answer]
    if case.system != UNNAMED:
        lines.append(("System:", case.system))
    return panel(title, case.query, lines, chunks, notes=notes)


def _evidence_line(pasted: PastedEvidence) -> Line:
    if not pasted.chunks:
        return "No evidence yet.", ("" if pasted.errors else "You'll see each chunk here.")
    ids = [
        chunk.id if len(chunk.id) <= 24 else chunk.id[:23] + "…"
        for chunk in pasted.chunks[:IDS_NAMED]
    ]
    named = ", ".join(ids) + (", …" if len(pasted.chunks) > IDS_NAMED else "")
    form = _FORMS[pasted.form] if pasted.form else ""
    return f"{count_noun(len(pasted.chunks), 'chunk')}:", f"{named} ({form})"


def _answer_line(answer: str, pasted: PastedEvidence, attached: int = 0) -> Line:
    if not answer.strip():
        return "No answer.", "One is drafted from the evidence first."
    if not pasted.chunks or len(answer) > LONGEST_CHECKED:
        return f"An answer of {count_noun(len(answer.strip()), 'character')}.", ""
    citations = audit_citations(answer, pasted.chunks).citations
    count = count_noun(len(citations), "citation")
    if attached:
        in_text = f"and {count} in its text" if citations else "and none in its text"
        return f"An answer with {count_noun(attached, 'attached citation')}", f"{in_text}."
    if not citations:
        return "An answer without citations.", "Its sentences will count as uncited."
    invalid = list(
        dict.fromkeys(
            citation.reference[:24] for citation in citations if citation.status == "invalid"
        )
    )
    if not invalid:
        return f"An answer with {count}.", "Each one matches a chunk."
    if len(invalid) == len({citation.reference for citation in citations}):
        rest = "None of them matches a chunk. Are the ids the same in answer and evidence?"
    else:
        named = ", ".join(invalid[:IDS_NAMED])
        rest = f"No chunk has the id {named}{', …' if len(invalid) > IDS_NAMED else ''}."
    return f"An answer with {count}.", rest


SHARED_LITTLE, SHARED_MORE = 0.34, 0.6
"""The shares of a sentence's words that make its citation doubtful.

At most the first share is in the chunk it cites, and at least the second in another chunk.
"""


def _number_warnings(answer: str, pasted: PastedEvidence) -> list[str]:
    """Warn if the answer's citations seem to count the blocks of evidence in another way.

    Only numbers that were assigned to blocks here are doubted. Finding wrong citations of given ids
    is the job of the audit.
    """
    if pasted.form != "blocks" or not answer.strip() or len(answer) > LONGEST_CHECKED:
        return []
    words = {chunk.id: _content_words(chunk.text) for chunk in pasted.chunks[:CHUNKS_COMPARED]}
    doubted: dict[str, str] = {}
    for sentence in audit_citations(answer, pasted.chunks).sentences:
        stated = _content_words(answer[sentence.start : sentence.end])
        cited = [chunk_id for chunk_id in sentence.citation_ids if chunk_id in words]
        if len(stated) < LEAST_WORDS or not cited:
            continue
        shared = {
            chunk_id: len(stated & in_chunk) / len(stated) for chunk_id, in_chunk in words.items()
        }
        best = max(shared, key=shared.__getitem__)
        best_cited = max(shared[chunk_id] for chunk_id in cited)
        if shared[best] >= SHARED_MORE and best_cited <= SHARED_LITTLE:
            doubted.setdefault(cited[0], best)
    if not doubted:
        return []
    listed = ", ".join(f"[{cited}] → {best}" for cited, best in list(doubted.items())[:IDS_NAMED])
    warning = (
        "The chunks were numbered in order, but judging by shared words, the answer's citations may"
        f" mean other chunks: {listed}. If a source has several paragraphs, write its number before"
        " it, as in [1] or Source 1:"
    )
    return [warning]


def _content_words(text: str) -> set[str]:
    # words of four letters or more, and numbers of two digits or more such as 50 or 212,000
    return set(re.findall(r"[^\W\d_]{4,}|\d[\d.,]*\d", text.lower()))


def _error_data(error: InputError) -> dict[str, str]:
    line = f"line {error.line}" if error.line else ""
    place = ", ".join(part for part in (error.file or "", line, error.field or "") if part)
    # capitalize() would also change the rest to lower case.
    place = place[:1].upper() + place[1:] if not error.file else place
    return {"place": place, "problem": error.problem.rstrip("."), "hint": error.hint}

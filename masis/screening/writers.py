"""Exports a screening: its log as CSV with a line for each abstract, and its abstracts as RIS.

CSV opens in any spreadsheet (a cell like a formula gets an apostrophe before it). RIS, written by
rispy, opens in any reference manager.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, BinaryIO

from rispy import RisWriter  # type: ignore[import-untyped]

from masis.datasets.writers.lines import csv_line
from masis.schema.screening import Abstract, Grade, Recommendation, Screening
from masis.screening.grading.directions import finding_of
from masis.screening.grading.methodology import ITEM_STATE_NAMES, LABELS
from masis.screening.grading.question import concepts_as_text, question_of
from masis.screening.readers.decisions import OUR_RAYYAN_NAME
from masis.screening.views.words import DESIGN, DIRECTION, rule_text

_SHARES = (
    "relevance_score",
    "methodology_score",
    "methodology_raw",
    "prior",
    "quality",
    "study_type_confidence",
    "agreement",
)
_REASONS = (
    "relevance_score",
    "methodology_score",
    "sample_size_adequate",
    "study_type",
    "recommendation",
)

COLUMNS = (
    "question",
    "screening",
    "outcome",
    "abstract_id",
    "title",
    "authors",
    "year",
    "journal",
    "doi",
    "pmid",
    "url",
    "source",
    "round",
    "recommendation",
    "rule",
    "relevance_score",
    "methodology_score",
    "methodology_raw",
    "prior",
    "quality",
    "study_type",
    "study_type_confidence",
    "design",
    "study_size",
    "study_size_unit",
    "sample_size_adequate",
    "judged_by",
    "agreement",
    "overridden",
    "unscored",
    "direction",
    "finding",
    *(f"why_{name}" for name in _REASONS),
    "concepts",
    "corrections",
    "abstract",
    "keywords",
    "included",
    "suggested",
    "notes",
)
"""The columns of the screening log as CSV.

``title``, ``abstract``, ``included`` and ``notes`` have the names that ASReview and Rayyan expect,
so both can read the log with its labels. Only a person's decision is a label. A grade by a machine
is in ``suggested``, because these tools take any label for a person's.
"""
_INCLUDED: dict[Recommendation, str] = {"keep": "1", "discard": "0", "needs_more": ""}
_LABELS: dict[Recommendation, tuple[str, str]] = {
    "keep": ("ASReview_relevant", "Included"),
    "discard": ("ASReview_irrelevant", "Excluded"),
    "needs_more": ("ASReview_not_seen", "Maybe"),
}
"""The label of a recommendation in a note, as ASReview and Rayyan read it."""
_SUGGESTION: dict[Recommendation, str] = {
    "keep": "keep",
    "discard": "discard",
    "needs_more": "a second look",
}


def _is_decided(grade: Grade) -> bool:
    """Return whether a person set the recommendation."""
    return "recommendation" in grade.overridden


def write_screening_csv(
    screening: Screening, abstracts: Mapping[str, Abstract], out: BinaryIO
) -> int:
    """Write the screening log: every abstract with its grade and reasons, in the order found.

    Returns:
        The number of abstracts.

    """
    rounds = {
        abstract_id: screening_round.number
        for screening_round in screening.rounds
        for abstract_id in screening_round.new
    }
    out.write(csv_line(COLUMNS))
    for grade in screening.grades:
        row = _screening_row(
            screening, grade, abstracts.get(grade.abstract_id), rounds.get(grade.abstract_id)
        )
        out.write(csv_line([row[name] for name in COLUMNS]))
    return len(screening.grades)


def _screening_row(
    screening: Screening, grade: Grade, abstract: Abstract | None, number: int | None
) -> dict[str, Any]:
    record = abstract or Abstract(id=grade.abstract_id)
    finding = (
        finding_of(screening.question, grade, record) if grade.recommendation == "keep" else None
    )
    size = grade.study_size
    concepts = concepts_as_text(question_of(screening.question, screening.settings))
    reasons = grade.reasons
    return {
        **record.model_dump(include={"title", "year", "journal", "doi", "pmid", "url", "source"}),
        **grade.model_dump(include={"abstract_id", "recommendation", "study_type"}),
        **{
            name: None if (value := getattr(grade, name)) is None else f"{value:.4f}"
            for name in _SHARES
        },
        "question": screening.question,
        "screening": screening.id,
        "outcome": screening.outcome,
        "authors": "; ".join(record.authors),
        "round": number,
        "rule": rule_text(grade),
        "design": None if grade.design is None else DESIGN[grade.design],
        "study_size": None if size is None else size.value,
        "study_size_unit": None if size is None else size.unit,
        "sample_size_adequate": {True: "yes", False: "no", None: ""}[grade.sample_size_adequate],
        "judged_by": f"{grade.judged_by.model} ({grade.judged_by.version})",
        "overridden": " ".join(grade.overridden),
        "unscored": None if grade.unscored is None else grade.unscored.reason,
        "direction": None if finding is None else DIRECTION[finding.direction].text,
        "finding": None if finding is None or finding.words is None else finding.words.text,
        "concepts": "; ".join(f"{part}: {text}" for part, text in concepts.items() if text),
        "corrections": "; ".join(_correction_texts(grade)),
        "abstract": record.text,
        "keywords": "; ".join(record.keywords),
        "included": _INCLUDED[grade.recommendation] if _is_decided(grade) else "",
        "suggested": None if _is_decided(grade) else grade.recommendation,
        "notes": " | ".join(_grade_notes(grade)),
        **{f"why_{name}": reasons[name].text if name in reasons else None for name in _REASONS},
    }


def _grade_notes(grade: Grade) -> tuple[str, ...]:
    """Return the label that a person gave as notes for ASReview and Rayyan, else the suggestion.

    An exclusion includes its reason.
    """
    if not _is_decided(grade):
        return (
            "ASReview_not_seen",
            f"RAYYAN-LABELS: {OUR_RAYYAN_NAME} suggests {_SUGGESTION[grade.recommendation]}",
        )
    asreview, rayyan = _LABELS[grade.recommendation]
    excluded = (
        (f"RAYYAN-EXCLUSION-REASONS: {rule_text(grade)}",)
        if grade.recommendation == "discard"
        else ()
    )
    return (asreview, f'RAYYAN-INCLUSION: {{"{OUR_RAYYAN_NAME}"=>"{rayyan}"}}', *excluded)


def _correction_texts(grade: Grade) -> Iterator[str]:
    """Yield each value that people set in the appraisal or finding, with the person and reason."""
    for item, state in grade.corrections.items():
        yield f"{LABELS[item]}: {ITEM_STATE_NAMES[state]} ({grade.reasons[item].text})"
    if grade.direction is not None:
        yield f"direction: {DIRECTION[grade.direction].text} ({grade.reasons['direction'].text})"


def write_screening_ris(
    screening: Screening,
    abstracts: Mapping[str, Abstract],
    out: BinaryIO,
    which: Iterable[Recommendation] = ("keep",),
) -> int:
    """Write the abstracts with these recommendations as RIS, with their grades as notes.

    Returns:
        The number of abstracts.

    """
    wanted, written = set(which), 0
    for grade in screening.grades:
        abstract = abstracts.get(grade.abstract_id)
        if grade.recommendation in wanted and abstract is not None:
            out.write(_ris_record(abstract, grade).encode())
            written += 1
    return written


class _Writer(RisWriter):  # type: ignore[misc]  # rispy has no types
    """rispy's writer without a number before each record, and with the line ends of the format."""

    NEWLINE = "\r\n"

    def set_header(self, count: int) -> str:
        """Return no header: reference managers treat a number before a record as damage."""
        return ""


def _ris_record(abstract: Abstract, grade: Grade) -> str:
    why = grade.reasons.get("recommendation")
    notes = [
        f"Screening: {grade.recommendation}, {rule_text(grade)}",
        *([] if why is None else [f"Why: {why.text}"]),
        *([] if grade.quality is None else [f"Quality: {grade.quality:.3f}"]),
        *_grade_notes(grade),
    ]
    fields: dict[str, str | Iterable[str] | None] = {
        "type_of_reference": "JOUR",
        "id": abstract.id,
        "title": abstract.title,
        "authors": abstract.authors,
        "year": None if abstract.year is None else str(abstract.year),
        "secondary_title": abstract.journal,
        "abstract": abstract.text,
        "doi": abstract.doi,
        "accession_number": abstract.pmid,
        "name_of_database": "PubMed" if abstract.pmid else None,
        "urls": [abstract.url] if abstract.url else (),
        "keywords": abstract.keywords,
        "notes": notes,
    }
    record = {
        name: _one_line(value) if isinstance(value, str) else list(map(_one_line, value))
        for name, value in fields.items()
        if value
    }
    written: str = _Writer(delimiter_tags_mapping={}).formats(
        [{name: text for name, text in record.items() if text}]
    )
    return written


def _one_line(text: str) -> str:
    """Return the text on one line, so that it can't begin another field or record."""
    return " ".join(text.split())

"""Builds the data of an opened abstract: its text with marks, and a reason for each field. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Literal, NamedTuple, TypedDict

from masis.schema.screening import Abstract, Grade, GradeField, Opinion, Override, OverrideField
from masis.schema.wording import with_article
from masis.screening.views.words import (
    DESIGN,
    FIELD,
    RECOMMENDATION,
    STUDY_TYPE,
    rule_text,
    value_text,
)
from masis.views.words import LabelData, label, model_words

MOST_AUTHORS = 3


class AbstractPiece(TypedDict):
    """A span of a text, and the fields whose reasons are based on it."""

    text: str
    fields: list[GradeField]


class ReasonData(TypedDict):
    """A field of the grade with its value, its reason, and the number of passages behind it."""

    field: GradeField
    label: LabelData
    value: str
    why: str
    words: int
    machine: str


class GradeFigure(TypedDict):
    """A score of the grade with a note on how to read it."""

    name: str
    value: float | None
    note: str


class OpinionRow(TypedDict):
    """The opinion of one of several graders."""

    by: str
    relevance: float | None
    methodology: float | None
    study_type: str
    recommendation: LabelData
    unscored: str


class AbstractData(TypedDict):
    """An opened abstract: its text with the words behind the grade, and a reason for each field."""

    id: str
    title: list[AbstractPiece]
    text: list[AbstractPiece]
    facts: list[str]
    recommendation: LabelData
    rule: str
    reasons: list[ReasonData]
    scores: list[GradeFigure]
    opinions: list[OpinionRow]
    agreement: float | None
    by: str
    unscored: str


def facts(abstract: Abstract) -> list[str]:
    """Return authors, journal and year, briefly."""
    authors = ", ".join(abstract.authors[:MOST_AUTHORS])
    if len(abstract.authors) > MOST_AUTHORS:
        authors += " et al."
    parts = (authors, abstract.journal or "", str(abstract.year) if abstract.year else "")
    return [part for part in parts if part]


def identifiers(abstract: Abstract) -> list[str]:
    """Return the abstract's external ids, and a note if it was written for the demo."""
    named = (("DOI", abstract.doi), ("PMID", abstract.pmid))
    names = [f"{name} {value}" for name, value in named if value]
    return (
        [*names, "written for the demo"]
        if (abstract.model_extra or {}).get("written_for_demo")
        else names
    )


def abstract_data(
    grade: Grade,
    abstract: Abstract,
    *,
    machine: Grade | None = None,
    overrides: Mapping[OverrideField, Override] | None = None,
) -> AbstractData:
    """Return the data of an opened abstract.

    ``machine`` is the grade before any override; ``overrides`` are the active ones by field.
    """
    return {
        "id": abstract.id,
        "title": pieces(abstract.title, _field_spans(grade, "title")),
        "text": pieces(abstract.text, _field_spans(grade, "text")),
        "facts": [*facts(abstract), *identifiers(abstract)],
        "recommendation": label(RECOMMENDATION[grade.recommendation]),
        "rule": rule_text(grade),
        "reasons": [_reason_data(grade, field, machine, overrides or {}) for field in FIELD],
        "scores": _grade_figures(grade),
        "opinions": [_opinion(opinion) for opinion in grade.opinions],
        "agreement": grade.agreement,
        "by": " ".join(
            part for part in (model_words(grade.judged_by.model), grade.judged_by.version) if part
        ),
        "unscored": grade.unscored.reason if grade.unscored else "",
    }


class _Span(NamedTuple):
    start: int
    end: int
    field: GradeField


def _field_spans(grade: Grade, place: Literal["text", "title"]) -> list[_Span]:
    return [
        _Span(words.start, words.end, field)
        for field in FIELD
        if (reason := grade.reasons.get(field)) is not None
        for words in reason.words
        if words.place == place and words.end > words.start
    ]


def pieces(text: str, spans: Sequence[_Span]) -> list[AbstractPiece]:
    """Return the text cut at the edges of spans. Joining the pieces restores the text."""
    # Spans beyond the end of the text are cut, so that joining the pieces always gives the text.
    inside = [
        span._replace(end=min(span.end, len(text))) for span in spans if span.start < len(text)
    ]
    # Between two neighboring cuts, no span begins or ends, so each piece has one set of fields.
    cuts = sorted({0, len(text), *(span.start for span in inside), *(span.end for span in inside)})
    return [
        {
            "text": text[start:end],
            "fields": [
                field
                for field in FIELD
                if any(s.field == field and s.start <= start and end <= s.end for s in inside)
            ],
        }
        for start, end in pairwise(cuts)
    ]


def _reason_data(
    grade: Grade,
    field: GradeField,
    machine: Grade | None,
    overrides: Mapping[OverrideField, Override],
) -> ReasonData:
    reason = grade.reasons.get(field)
    override = overrides.get(field)
    before = getattr(machine, field) if machine is not None else None
    # An override also changes derived values: a corrected item changes the methodology score.
    changed = override is not None or (machine is not None and before != getattr(grade, field))
    return {
        "field": field,
        "label": label(FIELD[field]),
        "value": value_text(field, getattr(grade, field)),
        "why": (
            f"{override.reviewer}: {override.reason}" if override else reason.text if reason else ""
        ),
        "words": len(reason.words) if reason else 0,
        "machine": f"the critic graded {value_text(field, before)}" if changed else "",
    }


def _grade_figures(grade: Grade) -> list[GradeFigure]:
    floor = ""
    if grade.prior is not None and grade.design is not None:
        floor = f"floor {grade.prior:.2f} of {with_article(DESIGN[grade.design])}"
        if grade.methodology_raw is not None and grade.methodology_raw < grade.prior:
            floor = f"{grade.methodology_raw:.2f} as reported, raised to the {floor}"
    return [
        {"name": "Relevance", "value": grade.relevance_score, "note": ""},
        {"name": "Methodology", "value": grade.methodology_score, "note": floor},
        {"name": "Quality", "value": grade.quality, "note": "the mean of both"},
    ]


def _opinion(opinion: Opinion) -> OpinionRow:
    return {
        "by": model_words(opinion.judged_by.model),
        "relevance": opinion.relevance_score,
        "methodology": opinion.methodology_score,
        "study_type": STUDY_TYPE[opinion.study_type] if opinion.study_type else "",
        "recommendation": label(RECOMMENDATION[opinion.recommendation]),
        "unscored": opinion.unscored.reason if opinion.unscored else "",
    }

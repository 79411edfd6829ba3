"""The words of the screening page: recommendations, rules, outcomes, fields, designs."""

from __future__ import annotations

from typing import get_args

from masis.schema.screening import Design, Grade, GradeField, Outcome, Recommendation, Rule, StudyType, Sufficiency
from masis.screening.grading import rubric
from masis.ui.shell.wording import Word

RECOMMENDATIONS: tuple[Recommendation, ...] = get_args(Recommendation)
FIELDS: tuple[GradeField, ...] = get_args(GradeField)

RECOMMENDATION: dict[Recommendation, Word] = {
    "keep": Word("keep", "good", "Relevant, and with a method that supports a conclusion"),
    "needs_more": Word("needs more", "warn", "Not enough to keep and not enough to discard: it asks for more evidence"),
    "discard": Word("discard", "bad", "About something else, or of a method too weak"),
}

SUFFICIENCY: dict[Sufficiency, Word] = {
    "sufficient": Word("sufficient", "good"),
    "retrieve_more": Word("retrieve more", "warn"),
}

OUTCOME: dict[Outcome, Word] = {
    "sufficient": Word("Sufficient", "good", "The kept abstracts agree in number and are good enough"),
    "conflicting": Word(
        "Conflicting", "warn", "Enough good abstracts are kept, and they point in different directions"
    ),
    "evidence_insufficient": Word("Evidence insufficient", "bad", "No round brought enough good abstracts"),
    "cancelled": Word("Stopped", "calm", "A person stopped it"),
    "error": Word("Failed", "bad", "A step failed"),
}
UNDER_WAY = Word("Under way", "busy")
REMOVED = Word("Removed", "calm", "Retention has removed its rounds and grades")
OVERRIDDEN = Word("set by a person", "busy", "A person has changed this grade")
INTERRUPTED = Word("Interrupted", "warn", "It stopped in the middle; finished rounds are stored")

FIELD: dict[GradeField, Word] = {
    "recommendation": Word("Recommendation", "calm", "Keep, discard, or ask for more"),
    "relevance_score": Word("Relevance", "busy", "How far the abstract is about the question"),
    "methodology_score": Word(
        "Methodology", "good", "How the study was conducted and reported; never below its design's floor"
    ),
    "sample_size_adequate": Word("Sample size", "warn", "Whether the sample is as large as the design needs"),
    "study_type": Word("Study type", "bad", "One of fourteen types"),
    "design": Word("Design", "bad", "The place in the evidence hierarchy, on which the floor rests"),
}
"""In the order a person reads them; the tones are those of the marks in the text."""

RULES: dict[Rule, str] = {rule: rubric.REASON_OF_RULE[rule] for rule in get_args(Rule)}
STUDY_TYPE: dict[StudyType, str] = rubric.STUDY_TYPE_NAMES
DESIGN: dict[Design, str] = {design: place.name for design, place in rubric.HIERARCHY.items()}


def value_words(field: GradeField, value: object) -> str:
    """Write a field's value as a person reads it; an unknown value is returned unchanged."""
    if value is None:
        return "unscored" if field.endswith("_score") else "not reported"
    if isinstance(value, bool):
        return "enough" if value else "too small"
    if isinstance(value, int | float):
        return f"{value:.2f}"
    text = str(value)
    return _NAMES.get(text, text)


_NAMES: dict[str, str] = {
    **{name: word.text for name, word in RECOMMENDATION.items()},
    **dict(STUDY_TYPE.items()),
    **dict(DESIGN.items()),
}


def size_words(grade: Grade) -> str:
    """Return the size of the study: ``412 patients``, ``n = 12`` without a unit, empty where none is reported."""
    size = grade.study_size
    if size is None:
        return ""
    return f"{size.value:,} {size.unit}" if size.unit else f"n = {size.value:,}"

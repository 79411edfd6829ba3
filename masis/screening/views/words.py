"""Defines the words for screenings: recommendations, rules, outcomes, fields and designs."""

from __future__ import annotations

from collections.abc import Iterable
from typing import get_args

from masis.schema.screening import (
    Abstract,
    Design,
    Direction,
    Grade,
    GradeField,
    Outcome,
    PublicationStatus,
    Recommendation,
    Rule,
    StudyType,
    Sufficiency,
)
from masis.schema.wording import count_noun
from masis.views.numbers import score_text
from masis.views.words import Word

RECOMMENDATIONS: tuple[Recommendation, ...] = get_args(Recommendation)
FIELDS: tuple[GradeField, ...] = get_args(GradeField)

RECOMMENDATION: dict[Recommendation, Word] = {
    "keep": Word("keep", "good", "Relevant, and with a method that supports a conclusion"),
    "needs_more": Word(
        "needs more",
        "warn",
        "Too good to discard and not good enough to keep, so more evidence is needed",
    ),
    "discard": Word("discard", "bad", "About something else, or its method is too weak"),
}

SUFFICIENCY: dict[Sufficiency, Word] = {
    "sufficient": Word("sufficient", "good"),
    "retrieve_more": Word("retrieve more", "warn"),
}

OUTCOME: dict[Outcome, Word] = {
    "sufficient": Word("Sufficient", "good", "Enough abstracts are kept, and they are good enough"),
    "conflicting": Word(
        "Conflicting",
        "warn",
        "Enough good abstracts are kept, but their results disagree",
    ),
    "evidence_insufficient": Word(
        "Evidence insufficient", "bad", "None of the rounds found enough good abstracts"
    ),
    "cancelled": Word("Stopped", "calm", "A person stopped it"),
    "error": Word("Failed", "bad", "A step failed"),
}
OVERRIDDEN = Word("set by a person", "busy", "A person has changed this grade")

FIELD: dict[GradeField, Word] = {
    "recommendation": Word("Recommendation", "calm", "Keep, discard, or needs more evidence"),
    "relevance_score": Word("Relevance", "busy", "How far the abstract is about the question"),
    "methodology_score": Word(
        "Methodology",
        "good",
        "How the study was conducted and reported; never below its design's floor",
    ),
    "sample_size_adequate": Word(
        "Sample size", "warn", "Whether the sample is as large as the design needs"
    ),
    "study_type": Word("Study type", "bad", "One of fourteen types"),
    "design": Word("Design", "bad", "The place in the evidence hierarchy, which gives the floor"),
}
"""The fields in reading order; their tones are those of the marks in the text."""

RULE_REASON: dict[Rule, str] = {
    "strong": "relevant, with a method that supports a conclusion",
    "off_topic": "about something else",
    "not_a_study": "not a study with results",
    "of_concern": "a study with an expression of concern",
    "unknown_design": "design not recognized",
    "weak_method": "method too weak",
    "weak_design": "a design that can't support a conclusion by itself",
    "underpowered": "sample too small",
    "borderline_relevance": "only partly about the question",
    "borderline_method": "method not reported well enough",
    "borderline_quality": "quality between keeping and discarding",
    "unmatched": "in a language that can't be matched with the question",
    "unscored": "couldn't be graded",
    "disagreement": "the graders don't agree",
    "person": "a person's decision",
}

PUBLICATION: dict[PublicationStatus, str] = {
    "retracted": "retracted study",
    "retraction_notice": "retraction notice",
    "withdrawn": "withdrawn record",
    "erratum": "erratum",
    "expression_of_concern": "expression of concern",
    "of_concern": "study with an expression of concern",
    "protocol": "protocol without results",
    "comment": "comment, letter or editorial",
}
"""Labels for records that aren't studies to count."""

STUDY_TYPE: dict[StudyType, str] = {
    "human_systematic_review": "systematic review (people)",
    "human_rct_drug_intervention": "randomized trial of a drug",
    "human_rct_non_drug_intervention": "randomized trial of another intervention",
    "human_rct_non_intervention": "randomized study without an intervention",
    "human_non_rct_drug_intervention": "non-randomized study of a drug",
    "human_non_rct_non_drug_intervention": "non-randomized study of another intervention",
    "human_case_report": "case report or series",
    "non_systematic_review": "narrative review",
    "clinical_study_protocol": "study protocol",
    "animal_drug_intervention": "animal study of a drug",
    "animal_non_drug_intervention": "animal study of another intervention",
    "animal_other": "other animal study",
    "in_vitro_study": "in vitro study",
    "remaining": "another type",
}

DESIGN: dict[Design, str] = {
    "meta_analysis": "meta-analysis",
    "systematic_review": "systematic review",
    "randomised_trial": "randomized controlled trial",
    "cohort_study": "cohort study",
    "non_randomised_study": "non-randomized study",
    "case_control_study": "case-control study",
    "cross_sectional_study": "cross-sectional study",
    "diagnostic_accuracy_study": "diagnostic accuracy study",
    "prognostic_study": "prognostic study",
    "interrupted_time_series": "interrupted time series",
    "target_trial_emulation": "target trial emulation",
    "mendelian_randomisation": "Mendelian randomization",
    "economic_evaluation": "economic evaluation",
    "qualitative_study": "qualitative study",
    "case_series": "case series",
    "narrative_review": "narrative review",
    "case_report": "case report",
    "animal_study": "animal study",
    "in_vitro_study": "in vitro study",
    "protocol": "study protocol",
    "notice": "retraction, erratum or comment",
    "other": "other or unclear",
}
"""Designs of the evidence hierarchy (``screening/grading/rubric.py``)."""

DIRECTION: dict[Direction, Word] = {
    "effect": Word("effect as asked", "good"),
    "no_clear_effect": Word("no clear effect", "warn"),
    "opposite": Word("opposite effect", "bad"),
    "comparable": Word(
        "comparable to another treatment",
        "calm",
        "It did as well as a treatment that works, which isn't a comparison with none",
    ),
    "unclear": Word(
        "direction not read",
        "calm",
        "None of the sentences about the outcome states it clearly. Read the abstract",
    ),
}


def missing_abstracts_text(abstracts: Iterable[Abstract]) -> str:
    """Return how many records have only a title, as a warning; empty if all have an abstract."""
    records = tuple(abstracts)
    missing = sum(not record.text.strip() for record in records)
    if not missing:
        return ""
    verb = "has" if missing == 1 else "have"
    return (
        f"{missing:,} of {count_noun(len(records), 'record')} {verb} no abstract, so the method"
        " can't be graded."
    )


def rule_text(grade: Grade) -> str:
    """Return the reason of a recommendation, or the kind of a record that isn't a study."""
    return (
        PUBLICATION[grade.publication]
        if grade.rule == "not_a_study" and grade.publication
        else RULE_REASON[grade.rule]
    )


def value_text(field: GradeField, value: object) -> str:
    """Format a field's value; an unknown value is returned unchanged."""
    if value is None:
        return "unscored" if field.endswith("_score") else "not reported"
    if isinstance(value, bool):
        return "enough" if value else "too small"
    if isinstance(value, int | float):
        return score_text(value)
    text = str(value)
    return _NAMES.get(text, text)


_NAMES: dict[str, str] = {
    **{name: word.text for name, word in RECOMMENDATION.items()},
    **{str(name): text for name, text in (*STUDY_TYPE.items(), *DESIGN.items())},
}


def size_text(grade: Grade) -> str:
    """Return a study's size: ``412 patients``, or ``n = 12`` without a unit, or ""."""
    size = grade.study_size
    if size is None:
        return ""
    return f"{size.value:,} {size.unit}" if size.unit else f"n = {size.value:,}"

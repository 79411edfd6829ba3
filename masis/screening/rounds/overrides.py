"""Applies a person's overrides to grades, rounds and the screening, as pure functions.

The machine's grade is never overwritten: ``apply_overrides`` makes a further one, in which the
fields a person set are named, and what follows from them (the floor, the quality, the
recommendation) is computed again by the same rules.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, cast

from masis.errors import InputError
from masis.schema.screening import (
    APPRAISAL_ITEMS,
    DESIGNS,
    DIRECTIONS,
    ITEM_STATES,
    STUDY_TYPES,
    Abstract,
    AppraisalItem,
    Design,
    Grade,
    GradeReason,
    ItemState,
    Override,
    OverrideField,
    Recommendation,
    Round,
    Screening,
    StudyType,
)
from masis.schema.wording import count_noun
from masis.screening.grading import rubric
from masis.screening.grading.grader import with_floor_note
from masis.screening.grading.hierarchy import designs_asked_about, place_design
from masis.screening.grading.methodology import (
    ITEM_STATE_NAMES,
    LABELS,
    apply_corrections,
    appraise,
    score_items,
)
from masis.screening.grading.question import question_of
from masis.screening.grading.recommendation import recommend, scored_fields, with_prior_floor
from masis.screening.rounds.memory import threshold_effects
from masis.screening.rounds.ruling import ruling
from masis.screening.synthesis.findings import settled_outcome, synthesise
from masis.screening.synthesis.prisma import criteria_of, flow
from masis.settings import OFFLINE

_SETTLE: frozenset[OverrideField] = frozenset(
    {"relevance_score", "methodology_score", "recommendation"}
)
"""Fields that settle a disagreement of graders; an override of size or type alone
leaves it open.
"""


def validate_override(override: Override) -> Override:
    """Return the override as it is, if its value is one that the field can have; else raises
    InputError.
    """
    value, name = override.value, override.field
    allowed: Mapping[str, tuple[object, ...]] = {
        "study_type": STUDY_TYPES,
        "design": DESIGNS,
        "recommendation": ("keep", "discard", "needs_more"),
        "direction": DIRECTIONS,
        "sample_size_adequate": (True, False),
    }
    if name in ("relevance_score", "methodology_score"):
        fits = isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value <= 1
    else:
        fits = any(
            value == each and type(value) is type(each) for each in allowed.get(name, ITEM_STATES)
        )
    if value is not None and not fits:
        raise InputError(
            f"{value!r} is no {name.replace('_', ' ')}", hint="Choose another value.", field=name
        )
    return override


def effective_overrides(overrides: Iterable[Override]) -> dict[str, dict[OverrideField, Override]]:
    """Return for each abstract the effective override of each field: the last one, unless it undoes
    the others.
    """
    found: dict[str, dict[OverrideField, Override]] = {}
    for override in overrides:
        fields = found.setdefault(override.abstract_id, {})
        fields.pop(override.field, None)
        if override.value is not None:
            fields[override.field] = override
    return {abstract_id: fields for abstract_id, fields in found.items() if fields}


def apply_overrides(
    grade: Grade,
    overrides: Mapping[OverrideField, Override],
    *,
    question: str = "",
    abstract: Abstract | None = None,
) -> Grade:
    """Return the grade with a person's overrides applied. Without any it is returned as it is.

    A study type gives the abstract another place in the hierarchy (by the words of ``abstract``
    where given). Items of the appraisal that a person sets move the methodology by what they are
    worth; a methodology that a person sets is taken as it is, above or below the prior. The
    direction of the finding changes nothing else of the grade.
    """
    if not overrides:
        return grade
    by_person = {
        name: GradeReason(text=f"{each.reviewer}: {each.reason}", given=each.reason)
        for name, each in overrides.items()
    }
    if overrides.keys() == {"direction"}:
        said = {"direction": overrides["direction"].value, "overridden": ("direction",)}
        return grade.model_copy(update={**said, "reasons": {**grade.reasons, **by_person}})

    def value(name: OverrideField, machine: Any) -> Any:
        return overrides[name].value if name in overrides else machine

    study_type: StudyType | None = value("study_type", grade.study_type)
    placed = grade.design
    if "study_type" in overrides and study_type is not None:
        placed = (
            rubric.DESIGN_OF[study_type]
            if abstract is None
            else place_design(study_type, abstract).design
        )
    design: Design | None = value("design", placed)
    corrections = {
        item: cast("ItemState", overrides[item].value)
        for item in APPRAISAL_ITEMS
        if item in overrides
    }
    raw, reasons = _appraise_again(grade, corrections, design, abstract)
    method: float | None = value("methodology_score", with_prior_floor(raw, design))
    relevance: float | None = value("relevance_score", grade.relevance_score)
    enough: bool | None = value("sample_size_adequate", grade.sample_size_adequate)
    publication = None if "design" in overrides else grade.publication
    advice = recommend(
        relevance, method, design, enough, designs_asked_about(question), publication
    )
    recommendation, rule, why = advice
    unmatched = grade.rule == "unmatched" and rule == "unscored"
    if unmatched or (grade.rule == "disagreement" and not overrides.keys() & _SETTLE):
        recommendation, rule, why = (
            grade.recommendation,
            grade.rule,
            grade.reasons["recommendation"].text,
        )
    if "recommendation" in overrides:
        recommendation, rule = cast("Recommendation", overrides["recommendation"].value), "person"
    changed: dict[str, Any] = {
        **scored_fields(relevance, raw, method, design, enough),
        "study_type": study_type,
        "publication": publication,
        "recommendation": recommendation,
        "rule": rule,
        "reasons": {
            **grade.reasons,
            **reasons,
            "recommendation": GradeReason(text=why),
            **by_person,
        },
        "overridden": tuple(overrides),
        "corrections": corrections,
        "direction": value("direction", grade.direction),
        "unscored": grade.unscored if rule == "unscored" else None,
    }
    return grade.model_copy(update=changed)


def _appraise_again(
    grade: Grade,
    corrections: Mapping[AppraisalItem, ItemState],
    design: Design | None,
    abstract: Abstract | None,
) -> tuple[float | None, dict[OverrideField, GradeReason]]:
    """Return the methodology before the prior's floor with the corrected items, and the reason that
    says which.

    It is scored by the checklist where that made the score. A model's score is its own, so a
    correction adds or takes away the points of the item, and no more.
    """
    read = () if abstract is None or design is None else appraise(abstract, design)
    if not corrections or not read or design is None:
        return grade.methodology_raw, {}
    before, after = (
        score_items(design, read),
        score_items(design, apply_corrections(read, corrections)),
    )
    said = ", ".join(
        f"{LABELS[item]}: {ITEM_STATE_NAMES[state]}" for item, state in corrections.items()
    )
    if grade.judged_by.model == OFFLINE:
        reason = GradeReason(
            text=f"{after.reason.text} Set by a person: {said}.", words=after.reason.words
        )
        return after.score, {"methodology_score": with_floor_note(reason, after.score, design)}
    if grade.methodology_raw is None or before.score is None or after.score is None:
        return grade.methodology_raw, {}
    old, moved = (
        grade.reasons.get("methodology_score", GradeReason(text="")),
        after.score - before.score,
    )
    text = f"{old.text} Set by a person, which moves it by {moved:+.2f}: {said}.".strip()
    score = round(min(1.0, max(0.0, grade.methodology_raw + moved)), 4)
    return score, {"methodology_score": GradeReason(text=text, words=old.words)}


def apply_review(
    screening: Screening,
    overrides: Iterable[Override],
    abstracts: Mapping[str, Abstract] | None = None,
) -> Screening:
    """Return the screening with a person's overrides applied: grades, every round's ruling, what is
    kept, the outcome.

    A round that would now have sufficed makes the screening sufficient, since it would have stopped
    there; one that no longer suffices makes it insufficient. How it ended otherwise (cancelled,
    error) stays.
    """
    effective = effective_overrides(overrides)
    abstracts = abstracts or {}
    asked = question_of(screening.question, screening.settings)
    grades = tuple(
        apply_overrides(
            grade,
            effective.get(grade.abstract_id, {}),
            question=asked,
            abstract=abstracts.get(grade.abstract_id),
        )
        for grade in screening.grades
    )
    by_id = {grade.abstract_id: grade for grade in grades}
    rounds = tuple(_redo_round(each, by_id, screening) for each in screening.rounds)
    kept = tuple(grade.abstract_id for grade in grades if grade.recommendation == "keep")
    outcome, reasons = screening.outcome, screening.reasons
    if effective and outcome in ("sufficient", "conflicting", "evidence_insufficient"):
        enough = next((each for each in rounds if each.ruling.decision == "sufficient"), None)
        found = synthesise(screening.question, grades, abstracts)
        outcome = settled_outcome(found) if enough else "evidence_insufficient"
        last = enough or (rounds[-1] if rounds else None)
        changed = sum(len(fields) for fields in effective.values())
        reasons = (
            f"With {count_noun(changed, 'value')} set by a person.",
            *((f"Round {last.number}: {last.ruling.why}",) if last else ()),
            *((found.summary,) if enough else ()),
            *threshold_effects(rounds, screening.thresholds),
        )
    return screening.model_copy(
        update={
            "grades": grades,
            "rounds": rounds,
            "kept": kept,
            "outcome": outcome,
            "reasons": reasons,
            "flow": flow(rounds, grades, criteria_of(screening.settings)),
        }
    )


def _redo_round(each: Round, grades: Mapping[str, Grade], screening: Screening) -> Round:
    before = {
        name
        for other in screening.rounds
        if other.number <= each.number
        for name in other.retrieved
    }
    found = [grade for name, grade in grades.items() if name in before]
    return each.model_copy(update={"ruling": ruling(each.number, found, screening.thresholds)})

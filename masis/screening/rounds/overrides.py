"""Applies a person's overrides to grades, rounds and the screening, as pure functions.

The stored grade doesn't change. ``apply_overrides`` returns a copy that names the fields set by a
person, and recomputes everything that follows from them (floor, quality, recommendation) by the
same rules.
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

# Fields whose override resolves a disagreement of graders. Size or type alone doesn't.
_RESOLVES_DISAGREEMENT: frozenset[OverrideField] = frozenset(
    {"relevance_score", "methodology_score", "recommendation"}
)


def validate_override(override: Override) -> Override:
    """Return the override unchanged, or raise InputError if its field can't have its value."""
    value, name = override.value, override.field
    allowed: Mapping[str, tuple[object, ...]] = {
        "study_type": STUDY_TYPES,
        "design": DESIGNS,
        "recommendation": ("keep", "discard", "needs_more"),
        "direction": DIRECTIONS,
        "sample_size_adequate": (True, False),
    }
    if name in ("relevance_score", "methodology_score"):
        is_valid = (
            isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value <= 1
        )
    else:
        # The types are compared too, because ``1 == True`` in Python.
        is_valid = any(
            value == other and type(value) is type(other)
            for other in allowed.get(name, ITEM_STATES)
        )
    if value is not None and not is_valid:
        raise InputError(
            f"{value!r} isn't a valid {name.replace('_', ' ')}",
            hint="Choose another value.",
            field=name,
        )
    return override


def effective_overrides(overrides: Iterable[Override]) -> dict[str, dict[OverrideField, Override]]:
    """Return the last override of each field by abstract id, unless it undoes the others.

    An override whose value is None undoes the earlier ones of its field.
    """
    by_abstract: dict[str, dict[OverrideField, Override]] = {}
    for override in overrides:
        fields = by_abstract.setdefault(override.abstract_id, {})
        fields.pop(override.field, None)
        if override.value is not None:
            fields[override.field] = override
    return {abstract_id: fields for abstract_id, fields in by_abstract.items() if fields}


def apply_overrides(
    grade: Grade,
    overrides: Mapping[OverrideField, Override],
    *,
    question: str = "",
    abstract: Abstract | None = None,
) -> Grade:
    """Return the grade with a person's overrides applied; the grade itself if there are none.

    A study type changes the place of the abstract in the hierarchy (using its words if ``abstract``
    is given). Items of the appraisal change the methodology score by their points. A methodology
    score that a person sets is used unchanged, above or below the prior. The direction of the
    finding has no effect on the rest of the grade.
    """
    if not overrides:
        return grade
    reasons_of_person = {
        name: GradeReason(text=f"{override.reviewer}: {override.reason}", given=override.reason)
        for name, override in overrides.items()
    }
    # The direction of a finding isn't part of any score, so nothing needs to be computed again.
    if overrides.keys() == {"direction"}:
        changes = {"direction": overrides["direction"].value, "overridden": ("direction",)}
        return grade.model_copy(
            update={**changes, "reasons": {**grade.reasons, **reasons_of_person}}
        )

    def value(name: OverrideField, machine: Any) -> Any:
        return overrides[name].value if name in overrides else machine

    study_type: StudyType | None = value("study_type", grade.study_type)
    typed_design = grade.design
    if "study_type" in overrides and study_type is not None:
        typed_design = (
            rubric.DESIGN_OF[study_type]
            if abstract is None
            else place_design(study_type, abstract).design
        )
    design: Design | None = value("design", typed_design)
    corrections = {
        item: cast("ItemState", overrides[item].value)
        for item in APPRAISAL_ITEMS
        if item in overrides
    }
    raw, reasons = _rescore_methodology(grade, corrections, design, abstract)
    methodology: float | None = value("methodology_score", with_prior_floor(raw, design))
    relevance: float | None = value("relevance_score", grade.relevance_score)
    is_adequate: bool | None = value("sample_size_adequate", grade.sample_size_adequate)
    # A person who sets a design says that the record is a study, whatever its record or title says.
    publication = None if "design" in overrides else grade.publication
    decision = recommend(
        relevance, methodology, design, is_adequate, designs_asked_about(question), publication
    )
    recommendation, rule, why = decision
    unmatched = grade.rule == "unmatched" and rule == "unscored"
    disagreement = grade.rule == "disagreement" and not overrides.keys() & _RESOLVES_DISAGREEMENT
    # Two rules depend on more than the scores, so that ``recommend`` can't find them again.
    if unmatched or disagreement:
        recommendation, rule, why = (
            grade.recommendation,
            grade.rule,
            grade.reasons["recommendation"].text,
        )
    if "recommendation" in overrides:
        recommendation, rule = cast("Recommendation", overrides["recommendation"].value), "person"
    changed: dict[str, Any] = {
        **scored_fields(relevance, raw, methodology, design, is_adequate),
        "study_type": study_type,
        "publication": publication,
        "recommendation": recommendation,
        "rule": rule,
        "reasons": {
            **grade.reasons,
            **reasons,
            "recommendation": GradeReason(text=why),
            **reasons_of_person,
        },
        "overridden": tuple(overrides),
        "corrections": corrections,
        "direction": value("direction", grade.direction),
        "unscored": grade.unscored if rule == "unscored" else None,
    }
    return grade.model_copy(update=changed)


def _rescore_methodology(
    grade: Grade,
    corrections: Mapping[AppraisalItem, ItemState],
    design: Design | None,
    abstract: Abstract | None,
) -> tuple[float | None, dict[OverrideField, GradeReason]]:
    """Return the methodology score after corrections of items, before the floor, with its reason.

    If the checklist gave the score, it is scored again. If a model gave it, a correction only adds
    or subtracts the points of the item, because the checklist doesn't explain the rest.
    """
    items = () if abstract is None or design is None else appraise(abstract, design)
    if not corrections or not items or design is None:
        return grade.methodology_raw, {}
    before, after = (
        score_items(design, items),
        score_items(design, apply_corrections(items, corrections)),
    )
    corrected = ", ".join(
        f"{LABELS[item]}: {ITEM_STATE_NAMES[state]}" for item, state in corrections.items()
    )
    if grade.judged_by.model == OFFLINE:
        reason = GradeReason(
            text=f"{after.reason.text} Set by a person: {corrected}.", words=after.reason.words
        )
        return after.score, {"methodology_score": with_floor_note(reason, after.score, design)}
    if grade.methodology_raw is None or before.score is None or after.score is None:
        return grade.methodology_raw, {}
    old = grade.reasons.get("methodology_score", GradeReason(text=""))
    change = after.score - before.score
    text = f"{old.text} Set by a person, which changes it by {change:+.2f}: {corrected}.".strip()
    score = round(min(1.0, max(0.0, grade.methodology_raw + change)), 4)
    return score, {"methodology_score": GradeReason(text=text, words=old.words)}


def apply_review(
    screening: Screening,
    overrides: Iterable[Override],
    abstracts: Mapping[str, Abstract] | None = None,
) -> Screening:
    """Return the screening with a person's overrides applied to its grades, rounds and outcome.

    If a round is now sufficient, the screening is too, because it would have stopped there. If none
    is sufficient any more, the evidence is insufficient. A screening that was cancelled or failed
    keeps its outcome.
    """
    effective = effective_overrides(overrides)
    abstracts = abstracts or {}
    question = question_of(screening.question, screening.settings)
    grades = tuple(
        apply_overrides(
            grade,
            effective.get(grade.abstract_id, {}),
            question=question,
            abstract=abstracts.get(grade.abstract_id),
        )
        for grade in screening.grades
    )
    by_id = {grade.abstract_id: grade for grade in grades}
    rounds = tuple(_redo_round(finished, by_id, screening) for finished in screening.rounds)
    kept = tuple(grade.abstract_id for grade in grades if grade.recommendation == "keep")
    outcome, reasons = screening.outcome, screening.reasons
    if effective and outcome in ("sufficient", "conflicting", "evidence_insufficient"):
        sufficient_round = next(
            (finished for finished in rounds if finished.ruling.decision == "sufficient"), None
        )
        synthesis = synthesise(screening.question, grades, abstracts)
        outcome = settled_outcome(synthesis) if sufficient_round else "evidence_insufficient"
        last = sufficient_round or (rounds[-1] if rounds else None)
        changed = sum(len(fields) for fields in effective.values())
        reasons = (
            f"A person set {count_noun(changed, 'value')}.",
            *((f"Round {last.number}: {last.ruling.why}",) if last else ()),
            *((synthesis.summary,) if sufficient_round else ()),
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


def _redo_round(finished: Round, grades: Mapping[str, Grade], screening: Screening) -> Round:
    """Return a round with a new ruling on all abstracts that were retrieved up to it."""
    retrieved = {
        abstract_id
        for earlier in screening.rounds
        if earlier.number <= finished.number
        for abstract_id in earlier.retrieved
    }
    retrieved_grades = [grade for abstract_id, grade in grades.items() if abstract_id in retrieved]
    return finished.model_copy(
        update={"ruling": ruling(finished.number, retrieved_grades, screening.thresholds)}
    )

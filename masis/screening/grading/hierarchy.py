"""Places a study in the evidence hierarchy by its recognized type and its words.

The hierarchy and its priors (AESOP-PRIORS) distinguish cohorts, case series and meta-analyses,
which the 14 study types don't, so the words of the abstract decide. The words can also place a
study higher than its type if they leave no doubt: if people "were randomly assigned", it is a
randomized trial.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Literal, NamedTuple

from masis.schema.screening import Abstract, AbstractWords, Design, StudyType
from masis.schema.wording import with_article
from masis.screening.grading import rubric
from masis.screening.grading.wording import (
    Place,
    Wording,
    find_statement,
    joined_forms,
    read_tables,
)
from masis.screening.sources.publication import publication_of
from masis.screening.views.words import DESIGN, STUDY_TYPE


class Placement(NamedTuple):
    """A design, the rule that chose it (``why``), and the words that support it."""

    design: Design
    why: str
    words: tuple[AbstractWords, ...] = ()


_TABLES = read_tables(Path(__file__).with_name("design_words.toml"))
# A wording whose name ends in "_text" or "_title" is searched there only.
_PLACES: dict[str, tuple[Place, ...]] = {"text": ("text",), "title": ("title",)}
_WORDINGS = {
    name: Wording(
        joined_forms(forms, _TABLES["names"]),
        places=_PLACES.get(name.rpartition("_")[2], ("text", "title")),
    )
    for name, forms in _TABLES["wordings"].items()
}
_OF_RECORD: dict[str, list[Design]] = _TABLES["of_record"]
# The more specific designs of a type, each with its wording. The first one that matches is used.
_SPECIFIC_DESIGNS: dict[StudyType, list[tuple[Design, str]]] = {
    study_type: finer["designs"] for finer in _TABLES["finer"] for study_type in finer["types"]
}
# The classifier can take a trial or a review for one of these types, so clear words overrule it.
_MAY_BE_TRIAL: frozenset[StudyType] = frozenset(
    {
        "remaining",
        "human_non_rct_drug_intervention",
        "human_non_rct_non_drug_intervention",
        "non_systematic_review",
    }
)
# The type with the most specific designs, for records whose publication type leaves a choice.
_OBSERVATIONAL: StudyType = "remaining"
_MAY_BE_REVIEW: frozenset[StudyType] = frozenset(
    {"remaining", "non_systematic_review", "human_systematic_review"}
)


MIN_CONFIDENCE = 0.5
"""The least probability of a type for which an abstract is discarded: more than all others have."""

# Designs whose abstracts are discarded: without results, or with a prior below the minimum.
_DISCARDING: frozenset[Design] = frozenset(
    {"case_report", "narrative_review", "animal_study", "in_vitro_study", "protocol"}
)


def place_design(
    study_type: StudyType | None, abstract: Abstract, confidence: float = 1.0
) -> Placement:
    """Return the design of an abstract whose study type was recognized.

    The design is ``other`` if no type was recognized, or not with enough confidence.
    ``confidence`` is the probability of the type. Below one half, an abstract isn't discarded for
    its type, because uncertain abstracts need more evidence.
    """
    if (sure := sure_design(abstract)) is not None:
        return sure
    if (of_record := _record_designs(abstract)) is not None:
        name, designs = of_record
        by_words = (
            placement
            for placement in _placements_by_words(_OBSERVATIONAL, abstract)
            if placement.design in designs
        )
        return next(by_words, Placement(designs[0], f"Its record says “{name}”."))
    # The classifier takes in vitro fertilization for a study of cells.
    if study_type == "in_vitro_study" and _first_words("ivf", abstract):
        study_type, confidence = "remaining", 1.0
    if study_type is None:
        return Placement("other", "No study type was recognized.")
    if (placement := next(_placements_by_words(study_type, abstract), None)) is not None:
        return placement
    name, design = STUDY_TYPE[study_type], rubric.DESIGN_OF[study_type]
    if design in _DISCARDING and confidence < MIN_CONFIDENCE:
        return Placement(
            "other", f"Recognized as {name}, but with too little confidence ({confidence:.2f})."
        )
    return Placement(design, f"The usual design of its type ({name}): {DESIGN[design]}.")


def _record_designs(abstract: Abstract) -> tuple[str, list[Design]] | None:
    """Return the most specific publication type of a record that names designs, and these."""
    names = {name.strip().lower(): name for name in abstract.publication_types}
    return next(
        ((names[name], designs) for name, designs in _OF_RECORD.items() if name in names), None
    )


def _placements_by_words(study_type: StudyType, abstract: Abstract) -> Iterator[Placement]:
    """Yield the designs that the words of an abstract name, the most certain first."""
    if words := _first_words("qualitative_title", abstract):
        yield Placement("qualitative_study", "Its title says that it is qualitative.", words)
    if (review := _place_review(study_type, abstract)) is not None:
        yield review
    is_trial = rubric.DESIGN_OF[study_type] == "randomised_trial"
    one_group = _first_words("uncontrolled", abstract)
    randomised = _first_words("randomised_text", abstract) or _first_words(
        "randomised_title", abstract
    )
    if is_trial and one_group and not randomised:
        yield Placement("non_randomised_study", "Its words say that it had one group.", one_group)
    if study_type in _MAY_BE_TRIAL and randomised and not one_group:
        yield Placement(
            "randomised_trial",
            f"Recognized as {STUDY_TYPE[study_type]}, but its words say that it was randomized.",
            randomised,
        )
    for design, wording in _SPECIFIC_DESIGNS.get(study_type, ()):
        if words := _first_words(wording, abstract):
            yield Placement(design, f"Its words make it {with_article(DESIGN[design])}.", words)
    state, words = find_statement(_WORDINGS["random"], abstract)
    if (is_trial or study_type == _OBSERVATIONAL) and not randomised and state == "denied":
        yield Placement("non_randomised_study", "Its words say that it wasn't randomized.", words)


def sure_design(abstract: Abstract) -> Placement | None:
    """Return the design of a record that needs no classifier, else None.

    These are records whose publication type names one design, retractions, errata, comments,
    protocols without results, and studies of animals and cells, found by their words. A
    classifier or a model can't overrule them.
    """
    if (found := publication_of(abstract)) is not None and found.status != "of_concern":
        return Placement(
            "protocol" if found.status == "protocol" else "notice", found.why, found.words
        )
    of_record = _record_designs(abstract)
    if of_record is not None:
        name, designs = of_record
        return Placement(designs[0], f"Its record says “{name}”.") if len(designs) == 1 else None
    if _first_words("human", abstract) == ():
        if animal := _first_words("animal_text", abstract) or _first_words(
            "animal_title", abstract
        ):
            return Placement("animal_study", "Its words say that animals were studied.", animal)
        if cells := _first_words("vitro_title", abstract) or _first_words("vitro_text", abstract):
            return Placement(
                "in_vitro_study", "Its words say that it was done in cells or specimens.", cells
            )
    return None


def _place_review(study_type: StudyType, abstract: Abstract) -> Placement | None:
    """Return the placement of a systematic review or meta-analysis; None for other studies.

    Its type, its title or the methods in its text can identify it.
    """
    searched = _first_words("searched_text", abstract)
    in_title = _first_words("review_title" if searched else "review_named_title", abstract)
    described = _first_words("review_done_text", abstract) if study_type in _MAY_BE_REVIEW else ()
    if not (study_type == "human_systematic_review" or in_title or described):
        return None
    if pooled := _first_words("pooled", abstract):
        return Placement("meta_analysis", "Its words say that results were pooled.", pooled)
    return Placement("systematic_review", "A systematic search without pooled results.", searched)


def _first_words(wording: str, abstract: Abstract) -> tuple[AbstractWords, ...]:
    """Return the first words of an abstract that state a wording, if any."""
    state, words = find_statement(_WORDINGS[wording], abstract)
    return words if state == "stated" else ()


def variant_of(abstract: Abstract) -> Literal["crossover", "cluster"] | None:
    """Return the variant of a trial that changes the size it needs, if it is one."""
    variants: tuple[Literal["cluster", "crossover"], ...] = ("cluster", "crossover")
    return next((variant for variant in variants if _first_words(variant, abstract)), None)


def designs_asked_about(question: str) -> frozenset[Design]:
    """Return the designs that a question itself is about ("in rats", "in vitro").

    For such a question, these designs are direct evidence.
    """
    wordings: dict[str, Design] = {"animals": "animal_study", "cells": "in_vitro_study"}
    return frozenset(
        design for name, design in wordings.items() if _WORDINGS[name].search(question)
    )

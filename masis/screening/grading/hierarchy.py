"""The place of a study in the evidence hierarchy: from its type, refined by its words.

The 14 study types have no cohort, no case series and no meta-analysis; the hierarchy and its priors
(AESOP-PRIORS) do. The words decide between them, and they may raise a type that was recognised too
low where they leave no doubt: people "were randomly assigned" in a randomised trial, whatever else
the abstract sounds like.
"""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

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
from masis.views.screening import DESIGN, STUDY_TYPE


class Placement(NamedTuple):
    """A design and the words it rests on; ``why`` says which rule placed it."""

    design: Design
    why: str
    words: tuple[AbstractWords, ...] = ()


_TABLES = read_tables(Path(__file__).with_name("design_words.toml"))
_PLACES: dict[str, tuple[Place, ...]] = {"text": ("text",), "title": ("title",)}
_WORDINGS = {
    name: Wording(
        joined_forms(forms, _TABLES["names"]),
        places=_PLACES.get(name.rpartition("_")[2], ("text", "title")),
    )
    for name, forms in _TABLES["wordings"].items()
}
_OF_RECORD: dict[str, Design] = _TABLES["of_record"]
_FINER: dict[StudyType, list[tuple[Design, str]]] = {
    study_type: each["designs"] for each in _TABLES["finer"] for study_type in each["types"]
}
"""The designs that the words of a type can make of it, the first that matches."""
_MAY_BE_TRIAL: frozenset[StudyType] = frozenset(
    {"remaining", "human_non_rct_drug_intervention", "human_non_rct_non_drug_intervention"}
)
_MAY_BE_REVIEW: frozenset[StudyType] = frozenset(
    {"remaining", "non_systematic_review", "human_systematic_review"}
)


LEAST_SURE = 0.5
"""A type that discards an abstract by itself has to be likelier than all others together."""

_DISCARDING: frozenset[Design] = frozenset(
    {"case_report", "narrative_review", "animal_study", "in_vitro_study", "protocol"}
)
"""Designs for which an abstract is discarded: no study with results, or a prior under the least
methodology.
"""


def place_design(
    study_type: StudyType | None, abstract: Abstract, confidence: float = 1.0
) -> Placement:
    """Return the place of an abstract of this type; ``other`` where no type was recognised, or none
    surely enough.

    ``confidence`` is the share of the type among all. Where it is under a half, no abstract is
    discarded for its type: what is uncertain needs more.
    """
    if (sure := sure_design(abstract)) is not None:
        return sure
    for each in abstract.publication_types:
        if (named := _OF_RECORD.get(each.strip().lower())) is not None:
            return Placement(named, f"Its record says “{each}”.")
    if study_type is None:
        return Placement("other", "No study type was recognised.")
    name = STUDY_TYPE[study_type]
    if (found := _place_review(study_type, abstract)) is not None:
        return found
    words = _first_words("randomised_text", abstract) or _first_words("randomised_title", abstract)
    if study_type in _MAY_BE_TRIAL and words:
        return Placement(
            "randomised_trial",
            f"Recognised as {name}, but its words say that it was randomised.",
            words,
        )
    for design, wording in _FINER.get(study_type, ()):
        if words := _first_words(wording, abstract):
            return Placement(design, f"Its words make it {with_article(DESIGN[design])}.", words)
    design = rubric.DESIGN_OF[study_type]
    state, words = find_statement(_WORDINGS["random"], abstract)
    if design in ("randomised_trial", "other") and state == "denied":
        return Placement("non_randomised_study", "Its words deny that it was randomised.", words)
    if design in _DISCARDING and confidence < LEAST_SURE:
        return Placement(
            "other", f"Recognised as {name}, but not surely enough (share {confidence:.2f})."
        )
    return Placement(design, f"What the type stands for ({name}): {DESIGN[design]}.")


def sure_design(abstract: Abstract) -> Placement | None:
    """Return the place of what is no study with results in people, by its own words or its record's
    publication types.

    Retractions, errata and comments, protocols without results, animals and cells: these pass for a
    trial by no classifier's and no model's word. None for everything else.
    """
    if (found := publication_of(abstract)) is not None and found.status != "of_concern":
        return Placement(
            "protocol" if found.status == "protocol" else "notice", found.why, found.words
        )
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
    """Place a systematic review or meta-analysis, by its type, by its title, or by what its text
    says that it did; None for others.
    """
    searched = _first_words("searched_text", abstract)
    titled = _first_words("review_title" if searched else "review_named_title", abstract)
    did = _first_words("review_done_text", abstract) if study_type in _MAY_BE_REVIEW else ()
    if not (study_type == "human_systematic_review" or titled or did):
        return None
    if pooled := _first_words("pooled", abstract):
        return Placement("meta_analysis", "Its words say that results were pooled.", pooled)
    return Placement("systematic_review", "A systematic search, and nothing pooled.", searched)


def _first_words(wording: str, abstract: Abstract) -> tuple[AbstractWords, ...]:
    """Return the first words of an abstract that state a wording; or none."""
    state, words = find_statement(_WORDINGS[wording], abstract)
    return words if state == "stated" else ()


def designs_asked_about(question: str) -> frozenset[Design]:
    """Return the designs a question is itself about ("in rats", "in vitro"): they are no indirect
    evidence for it.
    """
    wordings: dict[str, Design] = {"animals": "animal_study", "cells": "in_vitro_study"}
    return frozenset(
        design for name, design in wordings.items() if _WORDINGS[name].search(question)
    )

"""The recommendation for one abstract: rules in their order, as pure functions; constants are in
``rubric``.

The first rule that holds decides (docs/screening.md lists them). So weak studies are rejected,
borderline ones ask for more evidence, a relevant randomised trial of plausible size is kept
whatever its abstract leaves out, and no number of case series makes a consensus.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from masis.schema.screening import Design, PublicationStatus, Recommendation, Rule
from masis.schema.wording import with_article
from masis.screening.grading import rubric
from masis.views.screening import DESIGN, PUBLICATION

_EDGE = 1e-9
NO_STUDY: frozenset[Design | None] = frozenset({"notice", "protocol"})
"""Designs of what reports no study with results: never kept by the rules, and without a vote."""


class Advice(NamedTuple):
    """A recommendation, the rule it follows from, and why in a sentence."""

    recommendation: Recommendation
    rule: Rule
    why: str


def quality_of(relevance: float | None, methodology: float | None) -> float | None:
    """Return the quality, the mean of relevance and methodology; None where either has no score."""
    return None if relevance is None or methodology is None else (relevance + methodology) / 2


def with_prior_floor(raw: float | None, design: Design | None) -> float | None:
    """Return ``max(score, prior)``: a prior is a floor, never a cap (AESOP-PRIORS)."""
    if raw is None:
        return None
    return raw if design is None else max(raw, rubric.HIERARCHY[design].prior)


def recommend(
    relevance: float | None,
    methodology: float | None,
    design: Design | None,
    adequate: bool | None,
    asked_of: frozenset[Design] = frozenset(),
    publication: PublicationStatus | None = None,
) -> Advice:
    """Return the recommendation for an abstract with these scores.

    ``asked_of`` are designs that the question itself is about (animals, cells), so that they are no
    indirect evidence; ``publication`` says what the record is where it is no study to count.
    """
    place = None if design is None else rubric.HIERARCHY[design]
    inconclusive = place is not None and not place.concludes and design not in asked_of
    named = with_article(DESIGN[design] if design else "study").capitalize()
    kind = with_article(PUBLICATION[publication] if publication else DESIGN[design or "notice"])
    quality = quality_of(relevance, methodology)
    unknown = (
        "Its design was not recognised, and with it how far it can be trusted: read it and set the"
        " design."
    )
    rules: tuple[tuple[Rule, Recommendation, bool, str], ...] = (
        ("not_a_study", "discard", design in NO_STUDY, f"It is {kind}: no study to count."),
        # Whatever else is unknown:
        (
            "off_topic",
            "discard",
            *_under("Relevance", relevance, rubric.DISCARD_RELEVANCE, ": about something else"),
        ),
        (
            "unscored",
            "needs_more",
            quality is None,
            "It has no score, and no score is no reason to keep or discard.",
        ),
        (
            "of_concern",
            "needs_more",
            publication == "of_concern",
            f"It is {kind}: read why before it counts.",
        ),
        ("unknown_design", "needs_more", design in (None, "other"), unknown),
        (
            "weak_method",
            "discard",
            *_under("Methodology", methodology, rubric.DISCARD_METHODOLOGY, ": too weak to use"),
        ),
        (
            "borderline_relevance",
            "needs_more",
            *_under(
                "Relevance", relevance, rubric.KEEP_RELEVANCE, ": only partly about the question"
            ),
        ),
        ("weak_design", "needs_more", inconclusive, f"{named} supports no conclusion by itself."),
        (
            "underpowered",
            "needs_more",
            adequate is False,
            "Fewer were studied than the design needs.",
        ),
        (
            "borderline_method",
            "needs_more",
            *_under("Methodology", methodology, rubric.KEEP_METHODOLOGY),
        ),
        ("borderline_quality", "needs_more", *_under("Quality", quality, rubric.KEEP_QUALITY)),
    )
    why = f"Relevance {_two(relevance)}, methodology {_two(methodology)}: quality {_two(quality)}."
    return next(
        (Advice(given, rule, why) for rule, given, holds, why in rules if holds),
        Advice("keep", "strong", why),
    )


def _under(name: str, score: float | None, least: float, means: str = "") -> tuple[bool, str]:
    """Return whether a score is too low, and the sentence that says so."""
    return (
        score is not None and score < least - _EDGE,
        f"{name} {_two(score)} is under {least:.2f}{means}.",
    )


def _two(score: float | None) -> str:
    return "not scored" if score is None else f"{score:.2f}"


def scored_fields(
    relevance: float | None,
    raw: float | None,
    methodology: float | None,
    design: Design | None,
    adequate: bool | None,
) -> dict[str, Any]:
    """Return the fields of a grade that these scores are, and that follow from them; ``raw`` is
    before the floor.
    """
    return {
        "relevance_score": relevance,
        "methodology_raw": raw,
        "methodology_score": methodology,
        "prior": None if design is None else rubric.HIERARCHY[design].prior,
        "quality": quality_of(relevance, methodology),
        "sample_size_adequate": adequate,
        "design": design,
    }

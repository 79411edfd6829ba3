"""The recommendation for one abstract: rules in their order, as pure functions; constants are in ``rubric``.

| | holds when | recommendation |
|---|---|---|
| not_a_study | retracted, withdrawn, a notice, a comment, or a protocol without results | discard |
| off_topic | relevance under 0.30 | discard |
| unscored | relevance or methodology has no score | needs_more |
| of_concern | a study about which concern was expressed | needs_more |
| unknown_design | the design was not recognised | needs_more |
| weak_method | methodology, after the prior's floor, under 0.20 | discard |
| borderline_relevance | relevance under 0.50 | needs_more |
| weak_design | the design supports no conclusion by itself: case series, narrative review, animals, cells | needs_more |
| underpowered | fewer studied than the design needs | needs_more |
| borderline_method | methodology under 0.30 | needs_more |
| borderline_quality | the mean of both under 0.45 | needs_more |
| strong | none of these | keep |

The first that holds decides. So weak studies are rejected, borderline ones ask for more evidence, a relevant randomised
trial of plausible size is kept whatever its abstract leaves out, and no number of case series makes a consensus.
"""  # noqa: E501 (a table)

from __future__ import annotations

from typing import NamedTuple

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

    ``asked_of`` are designs that the question itself is about (animals, cells), so that they are no indirect evidence;
    ``publication`` says what the record is where it is no study to count.
    """
    quality = quality_of(relevance, methodology)
    if design in NO_STUDY:
        name = PUBLICATION[publication] if publication else DESIGN[design or "notice"]
        return Advice("discard", "not_a_study", f"It is {with_article(name)}: no study to count.")
    if relevance is not None and relevance < rubric.DISCARD_RELEVANCE - _EDGE:  # off topic, whatever else is unknown
        under = f"Relevance {relevance:.2f} is under {rubric.DISCARD_RELEVANCE:.2f}: about something else."
        return Advice("discard", "off_topic", under)
    if relevance is None or methodology is None or quality is None:
        return Advice("needs_more", "unscored", "It has no score, and no score is no reason to keep or discard.")
    if publication == "of_concern":
        return Advice(
            "needs_more", "of_concern", f"It is {with_article(PUBLICATION[publication])}: read why before it counts."
        )
    place = None if design is None else rubric.HIERARCHY[design]
    inconclusive = place is not None and not place.concludes and design not in asked_of
    named = with_article(DESIGN[design] if design else "study").capitalize()
    low_method, low_relevance = f"Methodology {methodology:.2f} is under", f"Relevance {relevance:.2f} is under"
    rules: tuple[tuple[Rule, Recommendation, bool, str], ...] = (
        (
            "unknown_design",
            "needs_more",
            design in (None, "other"),
            "Its design was not recognised, and with it how far it can be trusted: read it and set the design.",
        ),
        (
            "weak_method",
            "discard",
            methodology < rubric.DISCARD_METHODOLOGY - _EDGE,
            f"{low_method} {rubric.DISCARD_METHODOLOGY:.2f}: too weak to use.",
        ),
        (
            "borderline_relevance",
            "needs_more",
            relevance < rubric.KEEP_RELEVANCE - _EDGE,
            f"{low_relevance} {rubric.KEEP_RELEVANCE:.2f}: only partly about the question.",
        ),
        ("weak_design", "needs_more", inconclusive, f"{named} supports no conclusion by itself."),
        ("underpowered", "needs_more", adequate is False, "Fewer were studied than the design needs."),
        (
            "borderline_method",
            "needs_more",
            methodology < rubric.KEEP_METHODOLOGY - _EDGE,
            f"{low_method} {rubric.KEEP_METHODOLOGY:.2f}.",
        ),
        (
            "borderline_quality",
            "needs_more",
            quality < rubric.KEEP_QUALITY - _EDGE,
            f"Quality {quality:.2f} is under {rubric.KEEP_QUALITY:.2f}.",
        ),
    )
    strong = Advice(
        "keep", "strong", f"Relevance {relevance:.2f}, methodology {methodology:.2f}: quality {quality:.2f}."
    )
    return next((Advice(given, rule, why) for rule, given, holds, why in rules if holds), strong)

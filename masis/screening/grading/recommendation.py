"""Recommends to keep, discard or get more evidence on one abstract, by rules in a fixed order.

The first rule that holds decides (docs/screening.md lists them); the constants are in ``rubric``.
Weak studies are discarded, and borderline ones need more evidence. A relevant randomized trial of
plausible size is kept even if its abstract reports little. Case series can't reach a consensus, no
matter how many there are.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from masis.schema.screening import Design, PublicationStatus, Recommendation, Rule
from masis.schema.wording import with_article
from masis.screening.grading import rubric
from masis.screening.views.words import DESIGN, PUBLICATION

_EDGE = 1e-9  # The mean of two scores may be below a bound by a rounding error only.
NO_STUDY: frozenset[Design | None] = frozenset({"notice", "protocol"})
"""Designs of records without results of a study. The rules don't keep them, and they don't vote."""


class RuleResult(NamedTuple):
    """A recommendation, the rule that gave it, and the reason in a sentence."""

    recommendation: Recommendation
    rule: Rule
    why: str


def quality_of(relevance: float | None, methodology: float | None) -> float | None:
    """Return the quality: the mean of relevance and methodology; None if either is unscored."""
    return None if relevance is None or methodology is None else (relevance + methodology) / 2


def with_prior_floor(raw: float | None, design: Design | None) -> float | None:
    """Return ``max(score, prior)``, because a prior is a floor and not a cap (AESOP-PRIORS)."""
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
) -> RuleResult:
    """Return the recommendation for an abstract with these scores.

    ``asked_of`` are designs that the question itself is about (animals, cells), which makes them
    direct evidence. ``publication`` is the kind of a record that doesn't count as a study.
    """
    rank = None if design is None else rubric.HIERARCHY[design]
    inconclusive = rank is not None and not rank.concludes and design not in asked_of
    design_name = with_article(DESIGN[design] if design else "study").capitalize()
    publication_name = with_article(
        PUBLICATION[publication] if publication else DESIGN[design or "notice"]
    )
    quality = quality_of(relevance, methodology)
    unknown_reason = (
        "Its design wasn't recognized, so it's unknown how far it can be trusted. Read it and set"
        " the design."
    )
    rules: tuple[tuple[Rule, Recommendation, bool, str], ...] = (
        (
            "not_a_study",
            "discard",
            design in NO_STUDY,
            f"It is {publication_name} and doesn't count.",
        ),
        # Before "unscored", because an irrelevant abstract needs no methodology score.
        (
            "off_topic",
            "discard",
            *_under("Relevance", relevance, rubric.DISCARD_RELEVANCE, ", about something else"),
        ),
        (
            "unscored",
            "needs_more",
            quality is None,
            "It has no score, so there is no reason to keep or discard it.",
        ),
        (
            "of_concern",
            "needs_more",
            publication == "of_concern",
            f"It is {publication_name}. Read the reason before you count it.",
        ),
        ("unknown_design", "needs_more", design in (None, "other"), unknown_reason),
        (
            "weak_method",
            "discard",
            *_under("Methodology", methodology, rubric.DISCARD_METHODOLOGY, ", too weak to use"),
        ),
        (
            "borderline_relevance",
            "needs_more",
            *_under(
                "Relevance", relevance, rubric.KEEP_RELEVANCE, ", only partly about the question"
            ),
        ),
        (
            "weak_design",
            "needs_more",
            inconclusive,
            f"{design_name} can't support a conclusion by itself.",
        ),
        (
            "underpowered",
            "needs_more",
            adequate is False,
            "The sample is smaller than the design needs.",
        ),
        (
            "borderline_method",
            "needs_more",
            *_under("Methodology", methodology, rubric.KEEP_METHODOLOGY),
        ),
        ("borderline_quality", "needs_more", *_under("Quality", quality, rubric.KEEP_QUALITY)),
    )
    summary = (
        f"Relevance {_format_score(relevance)}, methodology {_format_score(methodology)}:"
        f" quality {_format_score(quality)}."
    )
    return next(
        (RuleResult(advice, rule, why) for rule, advice, is_true, why in rules if is_true),
        RuleResult("keep", "strong", summary),
    )


def _under(name: str, score: float | None, minimum: float, meaning: str = "") -> tuple[bool, str]:
    """Return whether a score is too low, and the sentence for that case."""
    return (
        score is not None and score < minimum - _EDGE,
        f"{name} {_format_score(score)} is under {minimum:.2f}{meaning}.",
    )


def _format_score(score: float | None) -> str:
    return "not scored" if score is None else f"{score:.2f}"


def scored_fields(
    relevance: float | None,
    raw: float | None,
    methodology: float | None,
    design: Design | None,
    adequate: bool | None,
) -> dict[str, Any]:
    """Return the fields of a grade for these scores; ``raw`` is a methodology before the floor."""
    return {
        "relevance_score": relevance,
        "methodology_raw": raw,
        "methodology_score": methodology,
        "prior": None if design is None else rubric.HIERARCHY[design].prior,
        "quality": quality_of(relevance, methodology),
        "sample_size_adequate": adequate,
        "design": design,
    }

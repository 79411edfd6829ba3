"""Declare once how citation problems lower scores.

Reasons of fired rules, pages, reports, ``masis show`` and docs/audits.md are worded from these
tables. The factors and limits are settings.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from masis.schema.audit import CitationAudit
from masis.schema.wording import count_noun


@dataclass(frozen=True, slots=True)
class Penalty:
    """A citation problem that multiplies confidence and quality.

    Attributes:
        one: The name of one such problem.
        more: Words after the count.
        setting: The setting with the factor.
        condition: When it applies, for the docs.
        count: Counts the problems of an answer.

    """

    one: str
    more: str
    setting: str
    condition: str
    count: Callable[[CitationAudit], int]


PENALTIES: tuple[Penalty, ...] = (
    Penalty(
        "fabricated reference",
        "",
        "invalid_citation_penalty",
        "the answer has one or more",
        lambda audit: len(audit.invalid_citations),
    ),
    Penalty(
        "fabricated reference",
        " of an earlier iteration, not corrected",
        "invalid_citation_penalty",
        "a revision removed the marker and kept its sentence; applied once with those of the"
        " answer",
        lambda audit: len(audit.carried_references),
    ),
    Penalty(
        "uncited sentence",
        "",
        "uncited_claim_penalty",
        "the answer has one or more, and any citation",
        lambda audit: len(audit.uncited_claims) if audit.citations else 0,
    ),
)


@dataclass(frozen=True, slots=True)
class FaithfulnessLimit:
    """A problem that limits faithfulness: the rule, the settings with limit and least number."""

    rule: str
    problem: str
    setting: str
    from_setting: str = ""


FAITHFULNESS_LIMITS: tuple[FaithfulnessLimit, ...] = (
    FaithfulnessLimit(
        "hallucination_cap",
        "fabricated reference, or a hallucination that the critic reports",
        "hallucination_faithfulness_cap",
    ),
    FaithfulnessLimit(
        "many_uncited_cap",
        "uncited sentence",
        "many_uncited_faithfulness_cap",
        "many_uncited_cap_from",
    ),
    FaithfulnessLimit(
        "uncited_cap", "uncited sentence", "uncited_faithfulness_cap", "uncited_cap_from"
    ),
)


def penalty_causes(audit: CitationAudit) -> Iterator[str]:
    """Yield the problems behind a penalty in words: "2 uncited sentences"."""
    for penalty in PENALTIES:
        if count := penalty.count(audit):
            yield f"{count_noun(count, penalty.one)}{penalty.more}"

"""The orders of a list of cases: one entry of ``ORDERS`` each.

The rest of the product derives from this table: the queries, ``masis queue --order``, the tool
``list_queue``, the selector of the queue page and its parameter, the figure of the list, and the
orders that a reviewer who decides blind can choose. After adding one, run
``python tools/cli_reference.py``.

An order by a new column also needs:

- the column in ``schema.sql`` and in its index ``cases_filtered``, with a migration
  (``core/migrations.py``);
- its value where a case is inserted (``audits/cases.py``) and cleared (``retention/redaction.py``);
- its key in the reference implementation of the queue (``Copy.ids`` in
  ``tests/services/test_queue.py``).
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Any

from masis.schema.case import Severity
from masis.schema.registry import RegisteredName
from masis.schema.rules import ReviewTier


@dataclass(frozen=True, kw_only=True)
class QueueOrder:
    """One order of a list of cases.

    Attributes:
        name: Its name in addresses, commands and tools.
        label: Its name on pages.
        explanation: Which cases come first, for people.
        key: The sort key in SQL, over a row of ``cases``. Cases with equal keys are sorted by
            import.
        descending: Whether the highest key is first.
        values: Returns the values that the key binds, given the seed of the list.
        figure: The title of the column that shows what the list is sorted by.
        field: The field of ``CaseSummary`` that this column shows.
        by_audit: Whether it sorts by results of the audit. It then isn't offered to reviewers who
            may not see them, and cases that wait for other reviewers come last.
        last: A condition in SQL. Cases that meet it come after all others, if any wait.

    """

    name: str
    label: str
    explanation: str
    key: str
    descending: bool = False
    values: Callable[[int], tuple[int, ...]] = lambda seed: ()
    figure: str = "Quality"
    field: str = "quality"
    by_audit: bool = False
    last: str = ""


_PRIME = 2_147_483_647
# Multiplying modulo a prime leaves neighbors at even steps from each other, so a small store would
# stay sorted in runs. The fifth power is a permutation modulo this prime and breaks the steps up. A
# function in Python is slower.
_SHUFFLED = (
    f"(SELECT ((x * x % {_PRIME}) * (x * x % {_PRIME}) % {_PRIME}) * x % {_PRIME} "  # noqa: S608
    f"FROM (SELECT (seq * ? + ?) % {_PRIME} AS x))"
)


def _factors(seed: int) -> tuple[int, ...]:
    """Return the two values that ``_SHUFFLED`` binds, neither of them 0 modulo the prime."""
    digest = hashlib.sha256(str(seed).encode()).digest()
    return tuple(1 + int.from_bytes(part) % (_PRIME - 1) for part in (digest[:8], digest[8:16]))


ORDERS = {
    order.name: order
    for order in (
        QueueOrder(
            name="risk",
            label="Most serious first",
            explanation=(
                "By the audit's results, whatever people decided: answers with something wrong are"
                " first, then unconfirmed ones, then those that passed. Within each group, the most"
                " severe issue and the most doubtful claims are first."
            ),
            key="risk",  # risk_of
            descending=True,
            figure="Severity",
            field="severity",
            by_audit=True,
            last="standing = 'nothing_found'",
        ),
        QueueOrder(
            name="disagreement",
            label="Most disagreement first",
            explanation=(
                "Cases on which the citation engine, the critic and the evaluator disagree most are"
                " first. The figure is the gap, from 0 to 1, between the highest and the lowest of"
                " citation score, critic's confidence and faithfulness."
            ),
            key="disagreement",  # masis.audit.acceptance.disagreement
            descending=True,
            figure="Disagreement",
            field="disagreement",
            by_audit=True,
        ),
        QueueOrder(
            name="least_confident",
            label="Least confident first",
            explanation=(
                "Unscored answers are first, then those with the lowest confidence of the critic."
            ),
            key="doubt",
            descending=True,
            figure="Confidence",
            field="confidence",
            by_audit=True,
        ),
        QueueOrder(
            name="newest",
            label="Newest first",
            explanation="The last imported case is first.",
            key="seq",
            descending=True,
        ),
        QueueOrder(
            name="oldest",
            label="Oldest first",
            explanation="The cases are in the order of their import.",
            key="seq",
        ),
        QueueOrder(
            name="random",
            label="In random order",
            explanation=(
                "The cases are shuffled. The address keeps the order for all pages of the list."
            ),
            key=_SHUFFLED,
            values=_factors,
        ),
    )
}
"""Every order by its name, as pages list them."""

DEFAULT_ORDER = "risk"


def _describe() -> str:
    return " ".join(f"{order.name}: {order.explanation}" for order in ORDERS.values())


OrderName = Annotated[str, RegisteredName(lambda: ORDERS, _describe)]
"""The name of one of ``ORDERS``."""


# The risk that the order ``risk`` sorts by.

_FITTED_SCALE = 3.0
"""Puts a fitted probability on the scale of ``risk_of`` without one, from 0 to 3."""

TIER_RANK: dict[ReviewTier | None, float] = {"must_look": 2.0, "not_certified": 1.0, None: 0.0}
SEVERITY_RANK: dict[Severity | None, int] = {
    "critical": 4,
    "high": 3,
    "medium": 2,
    "low": 1,
    None: 0,
}


def risk_of(tier: ReviewTier | None, severity: Severity | None, likely: float) -> float:
    """Return the risk of an answer: its tier, then its worst issue, then its probability of fault.

    ``likely`` is the built-in estimate of that probability. ``fitted_risk`` is used instead if a
    score was fitted to people's decisions.
    """
    return TIER_RANK[tier] + (SEVERITY_RANK[severity] + likely) / len(SEVERITY_RANK)


def fitted_risk(probability: Any) -> Any:
    """Return the risk for a fitted probability of fault, or for an array of them.

    The tier isn't added, because the fitted score already depends on it.
    """
    return _FITTED_SCALE * probability


def fitted_probability(risk: float) -> float:
    """Return the probability from which ``fitted_risk`` made a risk."""
    return risk / _FITTED_SCALE

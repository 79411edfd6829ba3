"""Decides whether the loop continues, and which answer is best.

The rules are REQ-CRITIC-017 to REQ-CRITIC-024. These are pure functions over finished iterations.
``acceptance`` decides whether a person must review.
"""

from __future__ import annotations

from collections.abc import Sequence

from masis.audit.revision import may_replace
from masis.schema.run import Iteration, TerminationReason
from masis.settings import Settings

TIE = 1e-9
"""Quality scores closer than this are equal."""


def stop_reason(iterations: Sequence[Iteration], settings: Settings) -> TerminationReason | None:
    """Return why the loop stops after the last of these iterations, or None to revise the answer.

    The rule is REQ-CRITIC-017. A failed critique can't say that nothing is left to do, so without
    other major issues the loop ends in ``error``. Up to ``min_iterations``, neither the absence of
    major issues nor too small an improvement ends the loop.
    """
    last = iterations[-1]
    failed = last.critique.unscored is not None and last.critique.unscored.code is not None
    if len(iterations) < min(settings.min_iterations, settings.max_iterations) and not failed:
        return None
    needs_work = last.critique.has_major_issues or last.critique.needs_retry
    if not needs_work:
        return "error" if failed else "no_issues"
    if (
        last.improvement_delta is not None
        and last.improvement_delta < settings.improvement_threshold - TIE
    ):
        return "convergence"
    if len(iterations) >= settings.max_iterations:
        return "error" if failed else "max_iterations"
    return None


def improvement_delta(before: float | None, after: float | None) -> float | None:
    """Return the change in quality between two iterations (REQ-CRITIC-018).

    It is None if either is unscored.
    """
    return None if before is None or after is None else after - before


def best_index(iterations: Sequence[Iteration]) -> int | None:
    """Return the index of the best iteration among the eligible ones (REQ-CRITIC-019).

    Eligible are the original and each revision that may replace the best answer before it
    (``may_replace``). The highest quality score wins, then fewer serious issues, then fewer issues,
    then the earlier iteration. It is the original if no score decides, and None without iterations.
    """
    best: int | None = None
    for index, iteration in enumerate(iterations):
        if best is None or (
            _is_better(iteration, iterations[best]) and may_replace(iteration, iterations[best])
        ):
            best = index
    return best


def _is_better(iteration: Iteration, best: Iteration) -> bool:
    """Return whether the quality is higher or, at the same quality, the issues are fewer."""
    if iteration.quality_score is None:
        return False
    if best.quality_score is None:
        return True
    if abs(iteration.quality_score - best.quality_score) <= TIE:
        new_counts, best_counts = (
            (sum(issue.major for issue in compared.issues), len(compared.issues))
            for compared in (iteration, best)
        )
        return new_counts < best_counts
    return iteration.quality_score > best.quality_score


def improvement_percentage(initial: float | None, final: float | None) -> float | None:
    """Return (final - initial) / initial x 100 (REQ-CRITIC-024).

    It is None if either is unscored or initial is 0.
    """
    if initial is None or final is None or initial == 0:
        return None
    return (final - initial) / initial * 100

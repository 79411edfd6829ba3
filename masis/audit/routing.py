"""What follows from an audited answer: go on or stop, which answer is best, whether a person must look.

``specs/critic-loop.md``, 2.3 and 2.4; DESIGN.md, 4.2 and 4.3. Pure functions over finished iterations.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence

from masis.schema.case import Evidence
from masis.schema.run import Iteration, ReviewReason, TerminationReason
from masis.schema.wording import counted
from masis.settings import Settings


def stop_reason(iterations: Sequence[Iteration], settings: Settings) -> TerminationReason | None:
    """Why the loop stops after the last of these iterations, or None to revise and go on (REQ-CRITIC-017).

    A critique that failed can't say that there is nothing left to do: without other major issues it ends in ``error``.
    """
    last = iterations[-1]
    failed = last.critique.unscored is not None and last.critique.unscored.code is not None
    needs_work = last.critique.has_major_issues or last.critique.needs_retry
    if not needs_work:
        return "error" if failed else "no_issues"
    if last.improvement_delta is not None and last.improvement_delta < settings.improvement_threshold:
        return "convergence"
    if len(iterations) >= settings.max_iterations:
        return "error" if failed else "max_iterations"
    return None


def improvement_delta(before: float | None, after: float | None) -> float | None:
    """The change in quality score between two iterations; None where either is unscored (REQ-CRITIC-018)."""
    return None if before is None or after is None else after - before


def best_index(iterations: Sequence[Iteration]) -> int | None:
    """The highest quality score, the earlier one on a tie, the original if none is scored (REQ-CRITIC-019)."""
    if not iterations:
        return None
    scored = [(-quality, index) for index, it in enumerate(iterations) if (quality := it.quality_score) is not None]
    return min(scored)[1] if scored else 0


def improvement_percentage(initial: float | None, final: float | None) -> float | None:
    """(final - initial) / initial x 100; None where the initial score is 0 or either is unscored (REQ-CRITIC-024)."""
    if initial is None or final is None or initial == 0:
        return None
    return (final - initial) / initial * 100


def review_reasons(
    iterations: Sequence[Iteration],
    evidence: Sequence[Evidence],
    termination: TerminationReason,
    settings: Settings,
) -> tuple[ReviewReason, ...]:
    """Every reason why a person should look at the run (DESIGN.md, 4.3); empty where there is none.

    One more than the design's: a chosen answer that is a machine's revision is nobody's answer until a person takes it
    (``review_revised``). Reviser and critic may share their blind spots, and the answer as it came is the one in use.
    """
    chosen = best_index(iterations)
    if chosen is None:
        nothing = ReviewReason(code="nothing_checked", message="No iteration was finished.")
        return (nothing, *_endings(termination))
    best = iterations[chosen]
    return (
        *_flags(best),
        *(_revised(iterations[0]) if chosen and settings.review_revised else ()),
        *_confidence(best, settings),
        *_disagreement(best, settings),
        *_unscored(best),
        *_unchecked(best, evidence),
        *_endings(termination),
    )


def drawn_for_spot_check(case_id: str, settings: Settings) -> bool:
    """Whether a run that needs no review goes to a person all the same.

    A draw by the recorded seed and the case's id: the same case is drawn or not drawn whoever audits it, in any order.
    """
    return random.Random(f"{settings.spot_check_seed}:{case_id}").random() < settings.spot_check_share


def _flags(best: Iteration) -> Iterator[ReviewReason]:
    invalid = best.citation_audit.invalid_citations
    if invalid:
        verb = "cites" if len(invalid) == 1 else "cite"
        message = f"{counted(len(invalid), 'reference')} {verb} no evidence."
        yield ReviewReason(code="invalid_reference", message=message)
    if best.critique.hallucination_detected:
        yield ReviewReason(code="hallucination", message="A hallucination was detected in the chosen answer.")
    contradicted = sum(check.verdict == "contradicted" for check in best.claims)
    if contradicted:
        message = f"The evidence contradicts {counted(contradicted, 'claim')}."
        yield ReviewReason(code="contradicted_claim", message=message)


def _revised(original: Iteration) -> Iterator[ReviewReason]:
    major = counted(sum(issue.major for issue in original.issues), "major issue")
    message = f"The answer as it came had {major}; the chosen one is a revision that nobody has read."
    yield ReviewReason(code="revised", message=message)


def _confidence(best: Iteration, settings: Settings) -> Iterator[ReviewReason]:
    confidence = best.critique.confidence
    if confidence is not None and confidence < settings.review_threshold:
        message = f"Confidence {confidence:.2f} is under the threshold of {settings.review_threshold:.2f}."
        yield ReviewReason(code="low_confidence", message=message)


def _disagreement(best: Iteration, settings: Settings) -> Iterator[ReviewReason]:
    """Judges that were asked several times and did not agree with themselves."""
    scores = (*best.critique.scores, *(best.evaluation.scores if best.evaluation else ()))
    apart = [score for score in scores if score.spread is not None and score.spread > settings.max_judge_spread]
    told = [f"{score.name.replace('_', ' ')} by {score.spread:.2f}" for score in apart]
    if told:
        message = f"Samples of the judge lie further apart than {settings.max_judge_spread:.2f}: {', '.join(told)}."
        yield ReviewReason(code="judges_disagree", message=message)
    votes = best.critique.hallucination_votes
    if votes is not None and 0 < votes[0] < votes[1]:
        message = f"{votes[0]} of {votes[1]} samples of the critic found a hallucination."
        yield ReviewReason(code="judges_disagree", message=message)


def _unscored(best: Iteration) -> Iterator[ReviewReason]:
    parts = []
    if best.critique.unscored or best.quality_score is None or best.critique.confidence is None:
        parts.append("the critique")
    if best.evaluation is not None and best.evaluation.unscored:
        parts.append("the evaluation")
    if best.claim_report.unscored:
        parts.append("the claims")
    if best.claim_report.completeness_unscored:
        parts.append("what is left out")
    claims = sum(check.verdict == "unscored" for check in best.claims)
    if claims:
        parts.append(counted(claims, "claim"))
    if parts:
        yield ReviewReason(code="unscored", message=f"Unscored: {', '.join(parts)}.")


def _unchecked(best: Iteration, evidence: Sequence[Evidence]) -> Iterator[ReviewReason]:
    if not any(chunk.text.strip() for chunk in evidence):
        yield ReviewReason(code="nothing_checked", message="No evidence has text to check against.")
    elif not best.claims:
        yield ReviewReason(code="nothing_checked", message="The answer makes no claim that could be checked.")
    elif not best.citation_audit.citations:
        yield ReviewReason(code="nothing_checked", message="The answer cites nothing.")


def _endings(termination: TerminationReason) -> Iterator[ReviewReason]:
    if termination == "error":
        yield ReviewReason(code="error", message="The audit ended with an error.")
    elif termination == "max_iterations":
        yield ReviewReason(code="limit", message="Major issues were left when the limit of iterations was reached.")
    elif termination == "cancelled":
        yield ReviewReason(code="cancelled", message="The audit was cancelled before it ended.")

"""Words the verdicts on claims without the passages that decide them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from masis.schema.minimal_evidence import MinimalEvidence
from masis.views.verdicts import ClaimData
from masis.views.words import VERDICT


def outcome_text(result: MinimalEvidence) -> str:
    """Return in one sentence whether the verdict rests on the passages."""
    chunks = ", ".join(dict.fromkeys(passage.evidence_id for passage in result.passages))
    after, before = VERDICT[result.after].text, VERDICT[result.before].text
    if result.decisive:
        return (
            f"Without its passages ({chunks}) the verdict changes from “{before}” to “{after}”, so"
            " it rests on them."
        )
    return (
        f"Without its passages ({chunks}) the verdict stays “{before}”, so they aren't the only"
        " reason for it."
    )


def newest_results(
    results: Iterable[MinimalEvidence], run_id: str, iteration: int
) -> dict[int, MinimalEvidence]:
    """Return the newest result on each claim of an audited answer, by the claim's number."""
    return {
        result.claim: result
        for result in sorted(results, key=lambda result: result.at)
        if (result.run_id, result.iteration) == (run_id, iteration)
    }


def add_outcomes(
    claims: Sequence[ClaimData], newest: dict[int, MinimalEvidence]
) -> list[ClaimData]:
    """Return claims with the outcome of their verification without passages, where there is one."""
    return [
        {**claim, "says": [*claim["says"], outcome_text(newest[number])]}
        if number in newest
        else claim
        for number, claim in enumerate(claims, 1)
    ]

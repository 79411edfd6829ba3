"""Who is measured: the offline auditor, and two baselines that every auditor must beat."""

import re
from collections.abc import Callable, Sequence

from masis.datasets.bench.metrics import Judged
from masis.datasets.bench.rows import BenchRow
from masis.offline.alignment import Assessment, EvidenceIndex
from masis.offline.model import denial

Judgement = tuple[bool | None, float]
"""What was said (not supported? None: abstained) and how strongly (0..1)."""
_WORD = re.compile(r"\w{3,}")


def assessed(rows: Sequence[BenchRow]) -> list[Assessment]:
    """The auditor's assessment of each row; the evidence of rows that share it is indexed once."""
    found, evidence, index = [], None, None
    for row in rows:
        if index is None or row.evidence != evidence:
            evidence, index = row.evidence, EvidenceIndex(row.evidence)
        found.append(index.assess(row.claim))
    return found


def auditor(row: BenchRow, assessment: Assessment, *, rule: bool = True) -> Judgement:
    """Not supported unless the verdict is "supported". What cites nothing is attributed to nothing: with `rule` that
    is a decision.
    """
    if row.cites_nothing and rule:
        return True, 1.0
    if assessment.support is None:
        return None, 0.5
    return assessment.verdict != "supported", 1.0 - assessment.support


def contradictions(_: BenchRow, assessment: Assessment) -> Judgement:
    """Only what the evidence contradicts; ranked by the strength of the contradiction, then by the lack of support."""
    if assessment.support is None:
        return None, 0.5
    return assessment.verdict == "contradicted", 0.9 * denial(assessment.features) + 0.1 * (1 - assessment.support)


def always(_: BenchRow) -> Judgement:
    """The baseline that always says "not supported"."""
    return True, 0.5


def overlap(row: BenchRow) -> float:
    """The share of the claim's words that are nowhere in the evidence, 0..1."""
    words = set(_WORD.findall(row.claim.lower()))
    evidence = set(_WORD.findall(" ".join(text for _, text in row.evidence).lower()))
    return len(words - evidence) / len(words) if words else 1.0


def overlap_threshold(rows: Sequence[BenchRow], positive: Callable[[BenchRow], bool]) -> float:
    """The share from which word overlap says "not supported", where it does best (balanced accuracy) on these rows:
    the baseline
    is fitted to each set by itself, which the auditor is not.
    """
    scored = [(overlap(row), positive(row)) for row in rows]
    positives = sum(truth for _, truth in scored) or 1
    negatives = len(scored) - positives or 1

    def quality(cut: float) -> float:
        hit = sum(truth and score >= cut for score, truth in scored) / positives
        quiet = sum(not truth and score < cut for score, truth in scored) / negatives
        return hit + quiet

    return max((step / 50 for step in range(1, 50)), key=quality)


def judged(
    rows: Sequence[tuple[BenchRow, str]], said: Sequence[Judgement], positive: Callable[[BenchRow], bool]
) -> list[Judged]:
    """The rows with what was said of them, ready to be counted."""
    return [
        Judged(positive(row), answer, score, group) for (row, group), (answer, score) in zip(rows, said, strict=True)
    ]

"""Compares two judges with people on the same decided cases. All functions are pure."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from typing import TYPE_CHECKING

import numpy as np

from masis.schema.base import Record
from masis.trust.agreement import AgreementEstimate, share
from masis.trust.machine import AUDIT_VERDICTS, compare

if TYPE_CHECKING:
    import pandas as pd  # the functions that need it import it; see agreement.codes


def held_out_half(questions: Iterable[str], seed: int) -> tuple[str, ...]:
    """Return the half of the questions to hold out, sorted. An odd one is held out.

    Questions are ordered by a hash with the seed, so the halves depend on nothing else.
    """
    order = sorted(
        set(questions), key=lambda name: hashlib.sha256(f"{seed}:{name}".encode()).digest()
    )
    return tuple(sorted(order[: (len(order) + 1) // 2]))


class JudgeFigures(Record):
    """How far a judge's verdicts are those of people on some decided cases.

    "Flagged" means that the audit says something is wrong (``must_look``).

    Attributes:
        cases: The number of cases.
        confusion: Maps the audit's verdict to the numbers of faulty and right answers.
        kappa: Cohen's kappa of "flagged" and "faulty".
        agreement: The share of cases with the same verdict.
        false_flags: The share of right answers that are flagged.
        misses: The share of faulty answers that aren't flagged.

    """

    cases: int
    confusion: dict[str, tuple[int, int]]
    kappa: AgreementEstimate
    agreement: AgreementEstimate
    false_flags: AgreementEstimate
    misses: AgreementEstimate


def judge_figures(rows: pd.DataFrame) -> JudgeFigures:
    """Return the figures of rows with ``found``, ``faulty`` and ``cluster`` (the question)."""
    comparison = compare(rows[["found", "faulty", "cluster", "question"]])
    faulty = rows["faulty"].to_numpy(dtype=bool)
    flagged = is_flagged(rows["found"])
    questions = rows["cluster"].to_numpy()
    return JudgeFigures(
        cases=comparison.n,
        confusion=comparison.confusion,
        kappa=comparison.kappa,
        agreement=comparison.accuracy,
        false_flags=share(flagged[~faulty], questions[~faulty]),
        misses=share(~flagged[faulty], questions[faulty]),
    )


def is_flagged(verdicts: pd.Series[str]) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    """Return a mask of the verdicts that say something is wrong."""
    return np.asarray((verdicts == AUDIT_VERDICTS[0]).to_numpy(dtype=bool))


def exact_mcnemar(gained: int, lost: int) -> float:
    """Return the two-sided p-value of McNemar's exact test on paired verdicts.

    Only cases on which the two judges differ count. If neither judge agrees more with people, a
    gain is as likely as a loss (McNemar 1947, with the binomial distribution).

    Args:
        gained: Cases on which only the new judge agrees with people.
        lost: Cases on which only the old judge does.

    """
    from scipy.stats import binomtest

    if not gained + lost:
        return 1.0
    return float(binomtest(gained, gained + lost, 0.5).pvalue)

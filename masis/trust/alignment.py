"""Compares two judges with people on the same decided cases. All functions are pure."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from typing import TYPE_CHECKING, Annotated

import numpy as np
from pydantic import PlainSerializer

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


EstimateObject = Annotated[
    AgreementEstimate,
    PlainSerializer(
        lambda estimate: estimate._asdict(),
        return_type=dict[str, int | float | str | None],
        when_used="json",
    ),
]
"""A figure that is an object in JSON, with ``value``, ``low``, ``high``, ``n`` and ``why``."""


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
    kappa: EstimateObject
    agreement: EstimateObject
    false_flags: EstimateObject
    misses: EstimateObject


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

"""Words the results of preferences, for the page and the command alike."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from masis.schema.comparison import LEAST_DECISIVE
from masis.services.preferences import PreferenceResults
from masis.services.trust.summary import figure_text
from masis.trust.agreement import AgreementEstimate
from masis.trust.paired import WinRate
from masis.views.numbers import percent

TOO_FEW = f"too few to tell: fewer than {LEAST_DECISIVE} verdicts prefer an answer"
NOT_SHOWN = "no difference shown"


class WinRateRow(NamedTuple):
    """The cells of a win rate."""

    first: str
    second: str
    wins: str
    losses: str
    ties: str
    rate: str
    conclusion: str


def win_rate_rows(results: PreferenceResults) -> list[WinRateRow]:
    """Return the win rates as the rows of a table."""
    return [
        WinRateRow(
            rate.first,
            rate.second,
            f"{rate.wins:,}",
            f"{rate.losses:,}",
            f"{rate.ties:,}",
            _rate_text(rate.rate),
            win_rate_conclusion(rate),
        )
        for rate in results.win_rates
    ]


def win_rate_conclusion(rate: WinRate) -> str:
    """Return which system is preferred, if the interval of the win rate shows it."""
    if rate.is_too_few_to_tell:
        return TOO_FEW
    low, high = rate.rate.low, rate.rate.high
    if low is not None and low > 0.5:
        return f"{rate.first} is preferred"
    if high is not None and high < 0.5:
        return f"{rate.second} is preferred"
    return NOT_SHOWN


def _rate_text(rate: AgreementEstimate) -> str:
    if rate.value is None:
        return rate.why
    if rate.low is None or rate.high is None:
        return f"{percent(rate.value)} ({rate.why})"
    return f"{percent(rate.value)} ({percent(rate.low)} to {percent(rate.high)})"


def strength_rows(results: PreferenceResults) -> list[tuple[str, str, str]]:
    """Return the systems' log strengths and intervals as the rows of a table."""
    return [
        (system, f"{found.value or 0:+.2f}", f"{found.low or 0:+.2f} to {found.high or 0:+.2f}")
        for system, found in results.strengths.strengths
    ]


def agreement_lines(results: PreferenceResults) -> Iterator[str]:
    """Yield what else the results show: agreement, the side, bad answers, missing strengths."""
    if results.strengths.why and results.verdicts:
        yield f"No strengths: {results.strengths.why}."
    if results.agreement is None:
        yield "Agreement: no pair has verdicts of two reviewers."
    else:
        yield f"Reviewers agree on {figure_text(results.agreement.raw)} of shared pairs."
        yield f"Krippendorff's alpha: {figure_text(results.agreement.alpha, share=False)}."
    if results.left.value is not None:
        yield f"The answer on the left was preferred in {figure_text(results.left)}."
    yield f"Both answers were bad in {figure_text(results.both_bad)}."

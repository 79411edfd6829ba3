"""Format numbers, amounts, sizes and times for people; see ``schema/wording.py`` for counts."""

from __future__ import annotations

from collections.abc import Callable
from datetime import date
from decimal import ROUND_HALF_UP, Decimal

NOTHING = "–"
"""Shown if there is no value."""


def score_text(value: float | None) -> str:
    """Format a score or measurement with two decimals; counts above 1 have none."""
    if value is None:
        return "unscored"
    return f"{value:.0f}" if value > 1 and value == int(value) else f"{value:.2f}"


def percent(share: float | None, *, whole_from: float = 0.1) -> str:
    """Format a share in percent, rounding half up, with one decimal if it is small or close to
    100%.

    ``whole_from`` is the share from which the decimal is dropped. Tables that show the counts as
    well use a smaller one.
    """
    if share is None:
        return NOTHING
    # 99.6% must not be shown as 100%, which would claim that nothing is missing.
    whole = share in (0, 1) or whole_from <= share < 0.995
    # From the decimal digits, because the float nearest to 0.575 is slightly smaller and would be
    # rounded down.
    written = Decimal(repr(float(share))) * 100
    return f"{written.quantize(Decimal('1' if whole else '0.1'), ROUND_HALF_UP)}%"


def number(value: float | None) -> str:
    """Format a number with about three significant digits."""
    if value is None:
        return NOTHING
    if abs(value) >= 100 or value == int(value):
        return f"{value:,.0f}"
    if abs(value) >= 10:
        return f"{value:.1f}"
    return f"{value:.2f}" if abs(value) >= 0.1 else f"{value:.2g}"


def duration(ms: float | None) -> str:
    """Format milliseconds in a suitable unit: ``850 ms``, ``12.5 s``, ``1 min 41 s``, ``2.5 h``."""
    if ms is None:
        return NOTHING
    if ms < 1000:
        return f"{number(ms)} ms"
    seconds = ms / 1000
    # rounded first, so that 59.9 s isn't shown as 60 s
    if round(seconds) < 60:
        return f"{seconds:.3g} s"
    if seconds > 90 * 60:
        return f"{seconds / 3600:,.1f} h"
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes} min {rest} s" if rest else f"{minutes} min"


def dollars(amount: float | None) -> str:
    """Format US dollars with as many digits as matter: ``$12.30``, ``$0.0042``, ``$0.000042``."""
    if amount is None:
        return NOTHING
    digits = 2 if amount >= 0.1 or amount == 0 else 4 if amount >= 0.001 else 6
    return f"${amount:,.{digits}f}"


def cost_text(amount: float | None) -> str:
    """Format a cost; an unknown one is not shown as zero."""
    return "cost unknown" if amount is None else dollars(amount)


def file_size(size: int) -> str:
    """Format a number of bytes: ``12 kB``, ``3.4 MB``."""
    return f"{size / 1e6:,.1f} MB" if size >= 1e6 else f"{size / 1e3:,.0f} kB"


def in_unit(unit: str) -> Callable[[float | None], str]:
    """Return the function that formats values of a unit: ``ms``, ``USD``, ``%`` or ""."""
    if unit == "%":
        return lambda value: NOTHING if value is None else f"{number(value)}%"
    return {"ms": duration, "USD": dollars}.get(unit, number)


def day(at: str) -> str:
    """Format the day of an ISO date or time: ``12 Nov 2025``."""
    on = date.fromisoformat(at[:10])
    return f"{on.day} {on:%b %Y}"


def moment(at: str) -> str:
    """Format an ISO time, which the store keeps in UTC: ``12 Nov 2025 14:02``."""
    return f"{day(at)} {at[11:16]}"


def moment_utc(at: str) -> str:
    """Format an ISO time with its time zone: ``12 Nov 2025 14:02 UTC``; "" if there is none.

    Components show it unchanged. Converting it to the browser's time zone would show the same
    decision at two different times on one page.
    """
    return f"{moment(at)} UTC" if at else ""

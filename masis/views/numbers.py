"""Numbers, amounts, sizes and times as people read them. Counts with a noun:
``schema/wording.py``.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import date
from decimal import ROUND_HALF_UP, Decimal

NOTHING = "–"
"""Stands where there is no value."""


def score_text(value: float | None) -> str:
    """Write a score or what was measured for it: two decimals, a count above 1 without."""
    if value is None:
        return "unscored"
    return f"{value:.0f}" if value > 1 and value == int(value) else f"{value:.2f}"


def percent(share: float | None, *, whole_from: float = 0.1) -> str:
    """Write a share in percent, half a per cent rounded up, with one decimal where it is small or
    close to all.

    In a table with its counts beside it, it is written in whole percent from a smaller share on.
    """
    if share is None:
        return NOTHING
    whole = share in (0, 1) or whole_from <= share < 0.995
    # as it is written: the float nearest to 0.575 lies below it
    written = Decimal(repr(float(share))) * 100
    return f"{written.quantize(Decimal('1' if whole else '0.1'), ROUND_HALF_UP)}%"


def number(value: float | None) -> str:
    """Write a number with three significant digits or so."""
    if value is None:
        return NOTHING
    if abs(value) >= 100 or value == int(value):
        return f"{value:,.0f}"
    if abs(value) >= 10:
        return f"{value:.1f}"
    return f"{value:.2f}" if abs(value) >= 0.1 else f"{value:.2g}"


def duration(ms: float | None) -> str:
    """Write milliseconds, as seconds, minutes and hours where they are more: ``850 ms``, ``12.5
    s``, ``1 min 41 s``.
    """
    if ms is None:
        return NOTHING
    if ms < 1000:
        return f"{number(ms)} ms"
    seconds = ms / 1000
    if round(seconds) < 60:
        return f"{seconds:.3g} s"
    if seconds > 90 * 60:
        return f"{seconds / 3600:,.1f} h"
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes} min {rest} s" if rest else f"{minutes} min"


def dollars(amount: float | None) -> str:
    """Write US dollars as exactly as it matters: ``$12.30``, ``$0.0042``, ``$0.000042``."""
    if amount is None:
        return NOTHING
    digits = 2 if amount >= 0.1 or amount == 0 else 4 if amount >= 0.001 else 6
    return f"${amount:,.{digits}f}"


def cost_text(amount: float | None) -> str:
    """Write what something cost; that its price is not known is said, since it is not nothing."""
    return "cost unknown" if amount is None else dollars(amount)


def file_size(size: int) -> str:
    """Write bytes in the unit that suits them: ``12 kB``, ``3.4 MB``."""
    return f"{size / 1e6:,.1f} MB" if size >= 1e6 else f"{size / 1e3:,.0f} kB"


def in_unit(unit: str) -> Callable[[float | None], str]:
    """Return how values of a unit are written: of ``ms``, ``USD``, ``%``, or without one."""
    if unit == "%":
        return lambda value: NOTHING if value is None else f"{number(value)}%"
    return {"ms": duration, "USD": dollars}.get(unit, number)


def day(at: str) -> str:
    """Write the day of an ISO date or time: ``12 Nov 2025``."""
    on = date.fromisoformat(at[:10])
    return f"{on.day} {on:%b %Y}"


def moment(at: str) -> str:
    """Write an ISO time, which the store keeps in UTC: ``12 Nov 2025 14:02``."""
    return f"{day(at)} {at[11:16]}"


def moment_utc(at: str) -> str:
    """Write an ISO time with its time zone: ``12 Nov 2025 14:02 UTC``; "" where there is none.

    Components show it as it is: a browser's own time zone beside the UTC of the rest of a page
    would put the same decision at two times.
    """
    return f"{moment(at)} UTC" if at else ""

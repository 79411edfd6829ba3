"""Values that follow from those of the evidence without standing in it.

Rounding, sums and differences, products and shares, a change in percent, an average, the years between two dates, a
year some years away from another, another unit. What can be computed is not accused, whether or not it was: a claim is
only accused of a figure that nothing explains.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import combinations
from typing import NamedTuple

from masis.offline.matching.passages import Passage
from masis.offline.parsing.facts import ABOUT_SHARE, Day, Fact
from masis.offline.parsing.units import UNITS

MOST_VALUES = 40
"""Values of the passages near that are computed with: among many, some sum fits by chance."""
MOST_OF_THREE = 12
"""Values of which every three are added and subtracted: what is left of a whole when two parts are taken."""
MOST_IN_PASSAGE = 8
"""The same for one passage, where every two are divided by each other."""
MOST_RATIOS = 20
"""Values of all passages of which every two are divided by each other."""
_DAY, _MONTH = 86400.0, 30.44
_ABOUT = 0.1
"""How far off, as a share, a value may be behind "about" or "more than"."""
_LOOSE = re.compile(
    r"\b(?:about|around|roughly|approximately|approx|some|circa|ca|close to|well|just|within|half|thirds?|quarters?"
    r"|in \w+|out of \w+|every)\b[^.;]{0,12}$",
    re.IGNORECASE,
)
"""Words before a figure that make it a rounded one, or a part in so many."""
_ABOVE = re.compile(r"\b(?:over|above|beyond|more than|at least|no less than|exceed\w*)\b[^.;]{0,12}$", re.IGNORECASE)
_BELOW = re.compile(
    r"\b(?:nearly|almost|under|below|less than|fewer than|at most|up to|no more than|within|short of)\b[^.;]{0,12}$",
    re.IGNORECASE,
)
"""Words before a figure that make it a bound of one up to twice as large, or half as large."""
_TIMES = re.compile(
    r"[\s-]*(?:times|fold|percentage points?|points?|out of"
    r"|in (?:every|each|\d{1,3}|two|three|four|five|six|seven|eight|nine|ten|twenty|a hundred))\b",
    re.IGNORECASE,
)
"""Words behind a figure that make it a ratio, which takes more than the passages near to recompute."""
_PARTED = re.compile(
    r"\b(?:half|halves|halved|thirds?|quarters?|fifths?|twice|doubl(?:e[sd]?|ing)|tripl(?:e[sd]?|ing)|tenfold)\b",
    re.IGNORECASE,
)
_ONE = re.compile(r"\b(?:a|an|one|per|each|every) (second|minute|hour|day|week|month|year|decade)\b", re.IGNORECASE)
"""A unit of time of which there is one."""
_UNIT = re.compile(r"\d[\s-]?([^\W\d_]+)")
_PARTS = (0.5, 1 / 3, 2 / 3, 0.25, 0.75, 0.2, 2.0, 3.0)


class Near(NamedTuple):
    """The figures of the passages near a claim, by passage and together.

    `ones` are units of time of which there is one ("for a day"); `parted` where the passages speak of halves or thirds.
    """

    groups: tuple[tuple[Fact, ...], ...]
    numbers: tuple[Fact, ...]
    days: tuple[Day, ...]
    ones: tuple[tuple[str, float], ...]
    parted: bool


def near_values(passages: Sequence[Passage], others: Sequence[Fact] = ()) -> Near:
    """Return the figures of these passages, and other figures beside them, as far as they are computed with."""
    stated = [list(passage.facts) for passage in passages] + [list(others)]
    groups = tuple(tuple(fact for fact in facts if fact.kind == "number")[:MOST_VALUES] for facts in stated)
    numbers = dict.fromkeys(fact for group in groups for fact in group)
    days = dict.fromkeys(fact.day for facts in stated for fact in facts if fact.kind == "date")
    ones = dict.fromkeys(UNITS[unit.lower()] for passage in passages for unit in _ONE.findall(passage.text))
    parted = any(_PARTED.search(passage.text) for passage in passages)
    return Near(groups, tuple(numbers)[:MOST_VALUES], tuple(days)[:MOST_VALUES], tuple(ones), parted)


def follows(text: str, fact: Fact, near: Near, *, arithmetic: bool = True) -> bool:
    """Return whether a figure of a claim follows from the values of the passages that it is compared with.

    Without ``arithmetic`` only rounding and units count, no sums, shares and the like.
    """
    if fact.kind == "date":
        return arithmetic and _date_follows(fact, near)
    value = fact.value
    if _TIMES.match(text, fact.end) or fact.dimension == "points":
        return True
    before = text[max(0, fact.start - 30) : fact.start]
    loose = _LOOSE.search(before) is not None
    least = value if _ABOVE.search(before) else value / 2 if _BELOW.search(before) else 0.0
    same = [other for other in near.numbers if not fact.dimension or not other.dimension or _alike(fact, other)]
    if any(_rounded(value, fact, other, loose=loose) or least < other.value < 2 * least for other in same):
        return True
    if any(_converted(fact, other) for other in near.numbers) or (fact.dimension, value) in near.ones:
        return True
    if not arithmetic:
        return False
    slack = max(1e-6, _half_unit(fact), _ABOUT * abs(value) if loose else 0.0)
    if fact.dimension == "percent" and not any(character.isdigit() for character in fact.text):
        slack = max(slack, ABOUT_SHARE)
    parted = near.parted or _PARTED.search(text) is not None
    if any(abs(made - value) <= slack for made in _computed(fact, near, parted=parted)):
        return True
    # the time between two dates, with a year's play: "66 years" for 1908 and 1974
    years = [day.year for day in near.days if day.year] if fact.dimension == "months" else []
    return any(abs(value - 12.0 * abs(one - other)) <= 12 for one, other in combinations(years, 2))


def _alike(fact: Fact, other: Fact) -> bool:
    time = {"duration", "months"}
    return fact.dimension == other.dimension or {fact.dimension, other.dimension} <= time


def _converted(fact: Fact, other: Fact) -> bool:
    """Return whether two figures have the same digits, and one has another unit or none.

    54,000 in a table of thousands is 54 million; 240 hectares are 2.4 square kilometres. One digit alone is chance.
    """
    mine, theirs = (re.sub(r"[^\d]", "", each.text).strip("0") for each in (fact, other))
    return len(mine) > 1 and mine == theirs and fact.dimension != other.dimension


def _half_unit(fact: Fact) -> float:
    """Return half a unit of the last digit that was written: 50 for "1,200", 0.05 for "14.2", 5e5 for "67 million"."""
    written = re.search(r"\d[\d,]*(?:\.\d+)?", fact.text)
    if written is None:
        return 0.0
    plain = written.group().replace(",", "")
    scale = fact.value / float(plain) if float(plain) else 1.0
    if "." in plain:
        return 0.5 * 10.0 ** -len(plain.partition(".")[2]) * scale
    # 120 is no 100, though one of its digits may have been rounded away.
    return min(0.5 * 10.0 ** (len(plain) - len(plain.rstrip("0"))), max(0.5, 0.05 * float(plain))) * scale


def _rounded(value: float, fact: Fact, stated: Fact, *, loose: bool) -> bool:
    other = stated.value
    if fact.dimension in ("duration", "months") and other:
        for factor in (1.0, _DAY * _MONTH, 1 / (_DAY * _MONTH)):
            if abs(other * factor - value) <= 0.04 * value:
                return True
    if loose and abs(other - value) <= _ABOUT * max(abs(value), abs(other)):
        return True
    # A converted unit comes with another rounding. In the same unit the evidence may have rounded what the claim has in
    # full (78.1 of 78.15), but 99.9% is no rounding of 99.99%.
    slack = 0.005 * abs(value) if fact.dimension else 0.0
    if slack and _unit(fact) == _unit(stated):
        slack = min(slack, _half_unit(stated))
    return other != value and abs(other - value) <= max(_half_unit(fact), slack) * (1 + 1e-9)  # 0.05 as floats have it


def _unit(fact: Fact) -> str:
    """Return what stands beside the digits of a figure, in the singular; percent is written in several ways."""
    return "%" if fact.dimension == "percent" else re.sub(r"[\d.,\s]|s\b", "", fact.text.casefold())


def _computed(fact: Fact, near: Near, *, parted: bool) -> Iterator[float]:
    """Yield what can be made of the values near, in the unit of the figure."""
    money = not fact.dimension  # "270 million" may leave the currency out
    same = [
        other.value
        for other in near.numbers
        if other.dimension == fact.dimension or (money and other.dimension.startswith("money"))
    ]
    bare = [other.value for other in near.numbers if not other.dimension]
    shares = [other.value / 100 for other in near.numbers if other.dimension == "percent"]
    for one, other in combinations(same, 2):
        yield one + other
        yield abs(one - other)
        yield (one + other) / 2
    if fact.dimension == "duration":
        clock = [60 * other.value for other in near.numbers if other.dimension == "clock"]
        yield from (abs(one - other) for one, other in combinations(clock, 2))
        yield from (86_400 - abs(one - other) for one, other in combinations(clock, 2))
    if len(same) > 2:
        yield sum(same)
        yield sum(same) / len(same)
    for one, other, third in combinations(same[:MOST_OF_THREE], 3):
        yield from (one + other + third, abs(one + other - third), abs(one - other + third), abs(one - other - third))
    points = [other.value for other in near.numbers if other.dimension == "points" or other.head == "point"]
    for value in same:
        yield from (value + point for point in points)
        yield from (value - point for point in points)
        yield from (value * part for part in (*(_PARTS if parted else ()), *shares))
        yield from (value * (1 + share) for share in shares)
        yield from (value * (1 - share) for share in shares)
        if not fact.dimension and value <= 50:
            yield from (value - 1, value + 1)  # "one of 36 failed": 35 did not
    if parted:
        yield from (value * 2**power for value in same for power in range(2, 6))
        yield from (one * other * part for one, other in combinations(bare[:MOST_IN_PASSAGE], 2) for part in _PARTS)
    yield from (one * other for one, other in combinations(bare, 2))
    for group in near.groups:
        inside = [other.value for other in group if not other.dimension][:MOST_IN_PASSAGE]
        for each in [other.value for other in group if other.dimension == fact.dimension][:MOST_IN_PASSAGE]:
            yield from (each * count for count in (*inside, *bare[:MOST_IN_PASSAGE]) if count > 1)
            yield from (each / count for count in inside if count > 1)
    if fact.dimension == "percent":
        yield from _percentages(near)
        yield from (100 * part for part in _PARTS if parted)


def _percentages(near: Near) -> Iterator[float]:
    few = (near.numbers,) if len(near.numbers) <= MOST_RATIOS else ()
    for group in (*near.groups, *few):
        kinds = {other.dimension for other in group}
        for kind in kinds:
            values = [other.value for other in group if other.dimension == kind and other.value][:MOST_IN_PASSAGE]
            if kind == "percent":
                yield from (100 - value for value in (*values, sum(values)))
            for a, b in combinations(values, 2):
                yield from (100 * a / b, 100 * b / a, 100 * abs(b - a) / a, 100 * abs(b - a) / b)


def _date_follows(fact: Fact, near: Near) -> bool:
    """Return whether a date lies some time of the evidence away from another: 1968 for "1964, four years before".

    Compared in months, with one to spare; where the date has no month, in years, which days and weeks don't change.
    """
    day = fact.day
    if fact.dimension == "decade" and any(other.year // 10 == day.year // 10 for other in near.days):
        return True
    base = {"duration": _DAY * _MONTH, "months": 1.0} if day.month else {"months": 1.0}
    spans = [span.value / base[span.dimension] for span in near.numbers if span.dimension in base]
    spare = 1.0 if day.month else 12.0
    for other in near.days:
        years = day.year - other.year if day.year and other.year else 0
        apart = abs(12 * years + (day.month - other.month if day.month and other.month else 0))
        if any(abs(apart - span) <= spare for span in spans):
            return True
    return False

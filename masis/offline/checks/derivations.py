"""Finds values that follow from the values of the evidence.

There are two kinds. A value may restate one of the evidence (`restates`): rounded, in another unit,
or five pairs as ten. Or it may be calculated from several values (`is_calculated`): sums and
differences, products and shares, a change in percent, an average, a price per month, the time
between two dates, or a date some days after another. A restated value is the same figure. A
calculation is found by a search, which finds something by chance among many values. The search is
therefore bounded, and its result only keeps a figure from being called another value of the same
thing. It never flags or confirms a claim.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from datetime import date, timedelta
from itertools import combinations, permutations
from typing import NamedTuple

from masis.offline.matching.passages import EvidencePassage
from masis.offline.parsing.dates import Day
from masis.offline.parsing.facts import ABOUT_SHARE, Fact, to_celsius
from masis.offline.parsing.units import TEMPERATURES, unit_of

MOST_VALUES = 40
"""Maximum number of values of nearby passages that are used in calculations; with more, some sum
fits by chance.
"""
FEW_VALUES, VERY_FEW = 8, 3
"""Maximum number of values with which a calculation explains a figure: the first limit applies if
the claim's words mention a calculation, the second if they don't.
"""
MOST_OF_THREE = 12
"""Maximum number of values for which all triples are added and subtracted, for the rest of a whole
after two parts.
"""
MOST_IN_PASSAGE = 8
"""Maximum number of values of one passage for which all pairs are divided."""
MOST_RATIOS = 20
"""Maximum number of values of all passages for which all pairs are divided."""
# Seconds of a day, and the mean number of days of a month (365.25 / 12, rounded).
_DAY, _MONTH = 86400.0, 30.44
_ABOUT = 0.1
"""The relative error that "about" or "more than" allows."""
# Matches words before a figure that make it rounded, or a part in so many. "exactly " and "about
# the year. In " don't match; the words must be close, in the same clause.
_APPROXIMATE = re.compile(
    r"\b(?:about|around|roughly|approximately|approx|some|circa|ca|close"
    r" to|well|just|within|half|thirds?|quarters?"
    r"|in \w+|out of \w+|every)\b[^.;]{0,12}$",
    re.IGNORECASE,
)
# Matches "more than " and "over the " but not "moreover ".
_LOWER_BOUND = re.compile(
    r"\b(?:over|above|beyond|more than|exceed\w*)\b[^.;]{0,12}$", re.IGNORECASE
)
# Matches words before a figure that make it a bound: "nearly 100", "less than 100". "at most" isn't
# in the list, because it states a limit that the value needn't be close to.
_UPPER_BOUND = re.compile(
    r"\b(?:nearly|almost|under|below|less than|fewer than|short of)\b[^.;]{0,12}$",
    re.IGNORECASE,
)
_BOUND = 1.5
"""The largest ratio of a value to the bound that a claim states for it."""
# Matches the text after a figure that is the ratio of two others. Matches "x" in "3x", " times" in
# "3 times", "-fold" in "3-fold". It doesn't match "3 xenon".
_MULTIPLE = re.compile(r"\s?(?:x\b|[\s-]?(?:times|fold)\b)", re.IGNORECASE)
# Matches words for parts and multiples: "halved", "two thirds", "doubling". It doesn't match
# "threefold", which `_MULTIPLE` reads after a figure.
_FRACTION_WORDS = re.compile(
    r"\b(?:half|halves|halved|thirds?|quarters?|fifths?|twice|doubl(?:e[sd]?|ing)|tripl(?:e[sd]?"
    r"|ing)|tenfold)\b",
    re.IGNORECASE,
)
# Matches a unit of time with the count one. Matches "a day", "per year", "each week". It doesn't
# match "two days".
_ONE_TIME_UNIT = re.compile(
    r"\b(?:a|an|one|per|each|every) (second|minute|hour|day|week|month|year|decade)\b",
    re.IGNORECASE,
)
# Matches words for periods: "months", "weekly", "annual". It doesn't match "second" or "minute".
_PERIODIC = re.compile(
    r"\b(?:hour|day|week|month|quarter|year)s?\b|\b(?:hour|dai|week|month|quarter|year|annual)ly\b"
    r"|\bannual\b",
    re.I,
)
_PERIODS = (12.0, 7.0, 4.0, 24.0, 60.0, 52.0, 365.0)
"""The factors between neighboring units of time: a monthly payment is a twelfth of a yearly one."""
# The parts and multiples that are tried if the text has words such as "half" or "twice".
_PARTS = (0.5, 1 / 3, 2 / 3, 0.25, 0.75, 0.2, 2.0, 3.0)
_GROUPS = {
    "pair": 2,
    "coupl": 2,
    "brac": 2,
    "twin": 2,
    "duo": 2,
    "trio": 3,
    "triplet": 3,
    "quartet": 4,
    "dozen": 12,
}
"""The number of items in some collective nouns, by stem: five pairs are ten."""


class Near(NamedTuple):
    """The figures of the passages near a claim, by passage and together, in all their readings.

    `ones` are units of time with the count one ("for a day"). `parted` is true if the passages
    mention halves or thirds, `periodic` if they mention months and the like.
    """

    groups: tuple[tuple[Fact, ...], ...]
    numbers: tuple[Fact, ...]
    days: tuple[Day, ...]
    ones: tuple[tuple[str, float], ...]
    parted: bool
    periodic: bool


def near_values(
    passages: Sequence[EvidencePassage], others: Sequence[Fact] = (), limit: int = MOST_VALUES
) -> Near:
    """Return the figures of these passages and other figures, at most ``limit`` of each kind."""
    readings = [_all_readings(passage.facts) for passage in passages] + [_all_readings(others)]
    groups = tuple(
        tuple(fact for fact in facts if fact.kind == "number")[:limit] for facts in readings
    )
    numbers = dict.fromkeys(fact for group in groups for fact in group)
    days = dict.fromkeys(fact.day for facts in readings for fact in facts if fact.kind == "date")
    time_units = (
        unit_of(unit.lower())
        for passage in passages
        for unit in _ONE_TIME_UNIT.findall(passage.text)
    )
    single_units = dict.fromkeys(unit for unit in time_units if unit)
    return Near(
        groups,
        tuple(numbers)[:limit],
        tuple(days)[:limit],
        tuple(single_units),
        parted=any(_FRACTION_WORDS.search(passage.text) for passage in passages),
        periodic=any(_PERIODIC.search(passage.text) for passage in passages),
    )


def _all_readings(facts: Iterable[Fact]) -> list[Fact]:
    return [reading for fact in facts for reading in fact.readings]


def restates(text: str, fact: Fact, near: Near) -> bool:
    """Return whether a claim's figure restates one of the evidence.

    It may be rounded, be a bound, or have another unit.
    """
    return any(_restates(text, reading, near) for reading in fact.readings)


def _restates(text: str, fact: Fact, near: Near) -> bool:
    if fact.kind == "date":
        return fact.dimension == "decade" and any(
            other.year // 10 == fact.day.year // 10 for other in near.days
        )
    value = abs(fact.value)
    is_approximate, lower_bound = _approximation(text, fact)
    comparable_facts = [
        other
        for other in near.numbers
        if not fact.dimension or not other.dimension or _are_addable(fact, other)
    ]
    if any(
        _is_rounding(fact, other, is_approximate=is_approximate)
        or lower_bound < abs(other.value) < _BOUND * lower_bound
        for other in comparable_facts
    ):
        return True
    for other in near.numbers:
        if _has_same_digits(fact, other) or _is_same_temperature(fact, other):
            return True
        if (
            other.head in _GROUPS
            and not fact.dimension
            and value == other.value * _GROUPS[other.head]
        ):
            return True
        if (
            fact.head in _GROUPS
            and not other.dimension
            and other.value == value * _GROUPS[fact.head]
        ):
            return True
    return (fact.dimension, value) in near.ones


def _approximation(text: str, fact: Fact) -> tuple[bool, float]:
    """Return whether words mark a figure as rounded, and the least value that it bounds, or 0."""
    before = text[max(0, fact.start - 30) : fact.start]
    value = abs(fact.value)
    lower_bound = (
        value
        if _LOWER_BOUND.search(before)
        else value / _BOUND
        if _UPPER_BOUND.search(before)
        else 0.0
    )
    return _APPROXIMATE.search(before) is not None, lower_bound


def is_calculated(text: str, fact: Fact, near: Near) -> bool:
    """Return whether a claim's figure can be calculated from the nearby values."""
    return any(_is_calculated(text, reading, near) for reading in fact.readings)


def _is_calculated(text: str, fact: Fact, near: Near) -> bool:
    if fact.kind == "date":
        return _is_date_at_distance(fact, near)
    value = abs(fact.value)
    is_approximate, _ = _approximation(text, fact)
    slack = max(1e-6 * value, half_unit(fact), _ABOUT * value if is_approximate else 0.0) * (
        1 + 1e-9
    )
    if fact.dimension == "percent" and not any(character.isdigit() for character in fact.text):
        slack = max(slack, ABOUT_SHARE)
    has_parts = near.parted or _FRACTION_WORDS.search(text) is not None
    has_periods = near.periodic or _PERIODIC.search(text) is not None
    results = _computed_values(fact, near, parted=has_parts, periodic=has_periods)
    if _MULTIPLE.match(text, fact.end):
        values = [second.value for second in near.numbers if second.value]
        results = (
            ratio
            for first, second in combinations(values, 2)
            for ratio in (first / second, second / first)
        )
    if any(abs(abs(result) - value) <= slack for result in results):
        return True
    return _is_between_dates(fact, near)


def is_explained(text: str, fact: Fact, near: Near) -> bool:
    """Return whether a calculation explains a figure with little room for chance.

    These are a date at a stated distance from another, the time between two dates or times of day,
    and the product or share of two of the few figures of one sentence ("5 floors with 8 flats
    each", "36 of 240 patients").
    """
    return any(_is_explained(text, reading, near) for reading in fact.readings)


def _is_explained(text: str, fact: Fact, near: Near) -> bool:
    if fact.kind == "date":
        return len(near.days) <= FEW_DAYS and _is_date_at_distance(fact, near, tolerance=0.0)
    value, slack = abs(fact.value), max(1e-6 * abs(fact.value), half_unit(fact)) * (1 + 1e-9)
    if fact.dimension in ("duration", "months", "clock") and len(near.days) <= FEW_DAYS:
        results = _times_and_differences(fact, near)
        if any(abs(result - value) <= 1e-6 * value for result in results) or _is_between_dates(
            fact, near, tolerance=0.0
        ):
            return True
    for group in near.groups:
        if len(group) <= FEW_IN_PASSAGE and any(
            abs(result - value) <= slack for result in _combinations_of_two(fact, group)
        ):
            return True
    return False


FEW_DAYS, FEW_IN_PASSAGE = 4, 4
"""Maximum number of nearby dates, and numbers of one sentence, with which a calculation from two of
them isn't chance.
"""


def _combinations_of_two(fact: Fact, group: Sequence[Fact]) -> Iterator[float]:
    """Yield products of two figures in the unit of another, and shares of one in another."""
    for first, second in permutations(group, 2):
        count = abs(second.value / second.scale)
        if first.dimension == fact.dimension and count > 1 and second.dimension != "percent":
            yield first.value * count
        if first.dimension == fact.dimension and second.dimension == "percent":
            yield first.value * second.value / 100
        if (
            fact.dimension == "percent"
            and first.dimension == second.dimension != "percent"
            and second.value
        ):
            yield 100 * first.value / second.value


def changed_by(fact: Fact, stated: Fact, near: Near) -> bool:
    """Return whether a figure is the stated one plus or minus another nearby figure.

    An example is 25 million for "20 million" and "another 5 million".
    """
    others = [other.value for other in near.numbers if other.dimension == fact.dimension]
    others += [
        stated.value * other.value / 100 for other in near.numbers if other.dimension == "percent"
    ]
    difference = abs(fact.value - stated.value)
    return fact.kind == "number" and any(
        abs(difference - abs(other)) <= 1e-6 * difference for other in others
    )


def _is_between_dates(fact: Fact, near: Near, tolerance: float = 1.0) -> bool:
    """Return whether a duration or an age is the time between two dates.

    ``tolerance`` is the tolerance, in days for a duration and otherwise in years.
    """
    pairs = list(combinations(near.days, 2))
    if fact.dimension == "duration":
        days = fact.value / _DAY
        gaps = [gap for first, second in pairs if (gap := _days_between(first, second)) is not None]
        return any(abs(gap - days) <= max(tolerance, 1e-6) for gap in gaps)
    if fact.dimension not in ("months", "") or (not fact.dimension and not 0 < fact.value <= 120):
        return False
    years = fact.value / 12.0 if fact.dimension else fact.value
    return any(
        first.year and second.year and abs(years - abs(first.year - second.year)) <= tolerance
        for first, second in pairs
    )


def _days_between(day: Day, other_day: Day) -> int | None:
    """Return the days between two full dates; if one lacks a year, it has the year of the other."""
    if not (day.day and other_day.day):
        return None
    year = day.year or other_day.year or 2001
    first, second = _date(day, year), _date(other_day, other_day.year or year)
    return abs((first - second).days) if first and second else None


def _date(day: Day, year: int) -> date | None:
    try:
        return date(day.year or year, day.month, day.day)
    except ValueError:  # no such day, for example February 31
        return None


def _are_addable(fact: Fact, other: Fact) -> bool:
    time = {"duration", "months"}
    money = fact.dimension.startswith("money") and other.dimension.startswith("money")
    return (
        fact.dimension == other.dimension
        or {fact.dimension, other.dimension} <= time
        or (money and "money" in (fact.dimension, other.dimension))
    )


def _has_same_digits(fact: Fact, other: Fact) -> bool:
    """Return whether two figures have the same digits and one has no unit.

    In a table of thousands 54,000 is 54 million. A single digit may match by chance.
    """
    digits, other_digits = (re.sub(r"\D", "", figure.text).strip("0") for figure in (fact, other))
    return len(digits) > 1 and digits == other_digits and "" in (fact.dimension, other.dimension)


def _is_same_temperature(fact: Fact, other: Fact) -> bool:
    """Return whether two temperatures, or differences, on two scales are equal up to rounding."""
    if (
        fact.dimension not in TEMPERATURES
        or other.dimension not in TEMPERATURES
        or fact.dimension == other.dimension
    ):
        return False
    scale, other_scale = TEMPERATURES[fact.dimension][0], TEMPERATURES[other.dimension][0]
    tolerance = 0.5 * scale * 10.0**-fact.digits + 0.25
    return (
        abs(to_celsius(fact) - to_celsius(other)) <= tolerance
        or abs(fact.value * scale - other.value * other_scale) <= tolerance
    )


def half_unit(fact: Fact) -> float:
    """Return half a unit of the last significant digit.

    It's 0.05 for "14.2", 5e5 for "67 million" and 50 for "1,200".
    """
    if fact.digits:
        return float(0.5 * 10.0**-fact.digits * fact.scale)
    plain = abs(fact.value / fact.scale)
    if not any(character.isdigit() for character in fact.text) or not plain:
        return 0.0
    digits = f"{plain:.0f}"
    # The limit of 5% keeps a short number from being read as too coarse: 100 isn't 120 rounded.
    return float(
        min(0.5 * 10.0 ** (len(digits) - len(digits.rstrip("0"))), max(0.5, 0.05 * plain))
        * fact.scale
    )


def _is_rounding(fact: Fact, stated: Fact, *, is_approximate: bool) -> bool:
    value, other = abs(fact.value), abs(stated.value)
    if fact.dimension in ("duration", "months") and fact.dimension != stated.dimension and other:
        factor = _DAY * _MONTH if stated.dimension == "months" else 1 / (_DAY * _MONTH)
        return abs(other * factor - value) <= 0.04 * value
    if is_approximate and abs(other - value) <= _ABOUT * max(value, other):
        return True
    # A conversion to another unit allows 0.5%, because both sides were rounded. In the same unit,
    # the evidence may have rounded a value that the claim has in full (78.1 for 78.15), but 99.9%
    # isn't a rounding of 99.99%.
    tolerance = 0.005 * value if fact.dimension else 0.0
    if tolerance and _unit(fact) == _unit(stated):
        tolerance = min(tolerance, half_unit(stated))
    # The factor allows for the representation of 0.05 and the like as floats.
    return other != value and abs(other - value) <= max(half_unit(fact), tolerance) * (1 + 1e-9)


def may_be_rounded(fact: Fact, stated: Fact) -> bool:
    """Return whether the evidence may have rounded a figure of the claim: 33% for 33.3%."""
    half_digit = 0.5 * 10.0**-stated.digits * stated.scale * (1 + 1e-9)
    return fact.digits > stated.digits and abs(abs(fact.value) - abs(stated.value)) <= half_digit


def _unit(fact: Fact) -> str:
    """Return the unit of a figure in the singular, with "%" for all spellings of percent."""
    return "%" if fact.dimension == "percent" else re.sub(r"[\d.,\s]|s\b", "", fact.text.casefold())


def _computed_values(fact: Fact, near: Near, *, parted: bool, periodic: bool) -> Iterator[float]:
    """Yield the results of calculations with the nearby values, in the unit of the figure."""
    money = not fact.dimension  # the currency may be left out: "270 million"
    same = [
        other.value
        for other in near.numbers
        if other.dimension == fact.dimension
        or (money and other.dimension.startswith("money"))
        or (fact.dimension.startswith("money") and _are_addable(fact, other))
    ]
    bare = [other.value for other in near.numbers if not other.dimension]
    shares = [other.value / 100 for other in near.numbers if other.dimension == "percent"]
    for one, other in combinations(same, 2):
        yield one + other
        yield abs(one - other)
        yield (one + other) / 2
    yield from _times_and_differences(fact, near)
    if len(same) > 2:
        yield sum(same)
        yield sum(same) / len(same)
    for one, other, third in combinations(same[:MOST_OF_THREE], 3):
        yield from (
            one + other + third,
            abs(one + other - third),
            abs(one - other + third),
            abs(one - other - third),
        )
    points = [
        other.value
        for other in near.numbers
        if other.dimension == "points" or other.head == "point"
    ]
    for value in same:
        yield from (value + point for point in points)
        yield from (value - point for point in points)
        yield from (value * part for part in (*(_PARTS if parted else ()), *shares))
        yield from (value * (1 + share) for share in shares)
        yield from (value * (1 - share) for share in shares)
        if not fact.dimension and value <= 50:
            yield from (value - 1, value + 1)  # 35 succeeded if "one of 36 failed"
    if parted:
        yield from (value * 2**power for value in same for power in range(2, 6))
        yield from (
            one * other * part
            for one, other in combinations(bare[:MOST_IN_PASSAGE], 2)
            for part in _PARTS
        )
    if periodic:
        yield from (
            made for value in same for times in _PERIODS for made in (value * times, value / times)
        )
        # A week of five equal working days and a different Saturday.
        yield from (
            a * times + b for a in same for b in same for times in (5.0, 6.0, 7.0, 12.0) if a != b
        )
    yield from (one * other for one, other in combinations(bare, 2))
    for group in near.groups:
        counts = [
            other.value / other.scale
            for other in group
            if other.dimension != fact.dimension or money
        ]
        inside = [abs(count) for count in counts if abs(count) > 1][:MOST_IN_PASSAGE]
        for value in [other.value for other in group if other.dimension == fact.dimension][
            :MOST_IN_PASSAGE
        ]:
            yield from (value * count for count in (*inside, *bare[:MOST_IN_PASSAGE]) if count > 1)
            yield from (value / count for count in inside)
            if periodic:  # a yearly price compared with twelve monthly payments
                yield from (abs(value * times - one) for one in same for times in _PERIODS)
    if fact.dimension == "percent":
        yield from _percentages(near)
        yield from (100 * part for part in _PARTS if parted)


def _times_and_differences(fact: Fact, near: Near) -> Iterator[float]:
    """Yield shifted times of day, times between two of them, and differences of two percentages."""
    clock = [60 * second.value for second in near.numbers if second.dimension == "clock"]
    if fact.dimension == "duration":
        yield from (abs(first - second) for first, second in combinations(clock, 2))
        yield from (_DAY - abs(first - second) for first, second in combinations(clock, 2))
    if fact.dimension == "clock":
        durations = [second.value for second in near.numbers if second.dimension == "duration"]
        yield from (
            (time + sign * duration) % _DAY / 60
            for time in clock
            for duration in durations
            for sign in (1, -1)
        )
    if fact.dimension == "points" or fact.head == "point":
        percents = [second.value for second in near.numbers if second.dimension == "percent"]
        yield from (abs(first - second) for first, second in combinations(percents, 2))


def _percentages(near: Near) -> Iterator[float]:
    """Yield remainders to 100%, ratios and relative changes in percent."""
    all_numbers = (near.numbers,) if len(near.numbers) <= MOST_RATIOS else ()
    for group in (*near.groups, *all_numbers):
        kinds = {other.dimension for other in group}
        for kind in kinds:
            values = [other.value for other in group if other.dimension == kind and other.value][
                :MOST_IN_PASSAGE
            ]
            if kind == "percent":
                yield from (100 - value for value in (*values, sum(values)))
            for first, second in combinations(values, 2):
                yield from (
                    100 * first / second,
                    100 * second / first,
                    100 * abs(second - first) / first,
                    100 * abs(second - first) / second,
                )


def _is_date_at_distance(fact: Fact, near: Near, tolerance: float = 1.0) -> bool:
    """Return whether a date is a stated time away from another: 1968 for "1964, four years before".

    The match is exact to the day if both dates have a day. Otherwise it is in months or years, with
    a tolerance of ``tolerance``.
    """
    day = fact.day
    days = [span.value / _DAY for span in near.numbers if span.dimension == "duration"]
    for other in near.days:
        if day.day and other.day and (origin := _date(other, day.year or 2001)):
            reached = (
                origin + timedelta(days=sign * round(span))
                for span in days
                for sign in (1, -1)
                if span < 1e5
            )
            if any(
                (reached_day.month, reached_day.day) == (day.month, day.day)
                for reached_day in reached
            ):
                return True
    base = {"duration": _DAY * _MONTH, "months": 1.0} if day.month else {"months": 1.0}
    spans = [span.value / base[span.dimension] for span in near.numbers if span.dimension in base]
    tolerance = (0.0 if day.day else tolerance) if day.month else 12.0 * tolerance
    for other in near.days:
        years = day.year - other.year if day.year and other.year else 0
        months_apart = abs(
            12 * years + (day.month - other.month if day.month and other.month else 0)
        )
        if months_apart and any(abs(months_apart - span) <= tolerance for span in spans):
            return True
    return False

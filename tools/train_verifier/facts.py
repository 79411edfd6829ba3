"""Numbers, dates and units of a text, and whether the evidence has them."""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence
from functools import lru_cache
from itertools import combinations
from typing import Literal, NamedTuple

from tools.train_verifier.text import MAGNITUDES, NUMERALS

_MONTHS = {
    name: n
    for n, names in enumerate(
        """january jan;february feb;march mar;april apr;may;june jun;july jul;august aug;september sept sep;october
        oct;november nov;december dec""".split(";"), 1)
    for name in names.split()
}  # fmt: skip
_UNITS: dict[str, tuple[str, float]] = {
    unit: (dimension, factor)
    for dimension, units in {
        "percent": {"% percent": 1.0},
        "length": {"mm millimetre millimeter": 1e-3, "cm centimetre centimeter": 1e-2, "m metre meter": 1.0,
                   "km kilometre kilometer": 1e3, "mile mi": 1609.344, "ft foot feet": 0.3048, "inch inches": 0.0254},
        "mass": {"µg μg mcg microgram": 1e-6, "mg milligram": 1e-3, "g gram": 1.0, "kg kilogram": 1e3,
                 "tonne ton": 1e6, "lb lbs pound": 453.592, "oz ounce": 28.3495},
        "time": {"ms millisecond": 1e-3, "sec second": 1.0, "min minute": 60.0, "h hr hour": 3600.0, "day": 86400.0,
                 "week": 604800.0, "month": 2629800.0, "year yr": 31557600.0, "decade": 315576000.0,
                 "quarter": 7889400.0},
        "volume": {"ml millilitre milliliter": 1e-3, "l litre liter": 1.0, "gallon": 3.78541},
        "power": {"watt": 1.0, "kw kilowatt": 1e3, "mw megawatt": 1e6, "gw gigawatt": 1e9},
        "energy": {"kwh": 1.0, "mwh": 1e3, "gwh": 1e6, "twh": 1e9},
        "area": {"hectare ha": 1.0, "acre": 0.404686},
        "speed": {"km/h kph": 1.0, "mph": 1.609344},
        "temperature": {"°c": 1.0},
    }.items()
    for names, factor in units.items()
    for name in names.split()
    for unit in ((name, name + "s") if len(name) > 2 else (name,))
}  # fmt: skip
_CURRENCIES = {"$": "usd", "us$": "usd", "usd": "usd", "dollar": "usd", "dollars": "usd", "€": "eur", "eur": "eur",
               "euro": "eur", "euros": "eur", "£": "gbp", "gbp": "gbp", "¥": "jpy", "yen": "jpy",
               "₹": "inr"}  # fmt: skip
_MONTH = (
    r"(?:january|february|march|april|may|june|july|august|september|october|november|december"
    r"|jan|feb|mar|apr|jun|jul|aug|sept|sep|oct|nov|dec)\b\.?"
)
_YEAR = r"(?:1[1-9]\d\d|20\d\d)"
_DATE = re.compile(
    rf"\b(?P<iso>{_YEAR}-\d\d-\d\d)\b"
    rf"|\b(?P<d1>\d\d?)(?:st|nd|rd|th)?\s(?:of\s)?(?P<m1>{_MONTH}),?(?:\s(?P<y1>{_YEAR})\b)?"
    rf"|\b(?P<m2>{_MONTH})\s(?P<d2>\d\d?)(?:st|nd|rd|th)?\b(?!\s?[%$€])(?:,?\s(?P<y2>{_YEAR})\b)?"
    rf"|\b(?P<m3>{_MONTH}),?\s(?:of\s)?(?P<y3>{_YEAR})\b"
    rf"|\b(?:in|since|until|by|during|of|early|late|last|next|mid)[\s-](?P<m4>{_MONTH})(?!\s?\d)"
    rf"|(?<![\w.,$€£-])(?P<y4>{_YEAR})(?P<decade>s)?(?![\w%]|[.,]\d)",
    re.IGNORECASE,
)
_NUMBER = re.compile(
    r"(?<![\w.])(?P<currency>us\$|[$€£¥₹])?\s?(?P<number>\d++(?:,\d{3}(?!\d))*+(?:\.\d++)?+)"
    r"(?P<ordinal>st|nd|rd|th)?(?![\d_])",
    re.IGNORECASE,
)
_AFTER = re.compile(r"[\s\u00a0-]?(percentage points?|per cent|km/h|[°µμ]?[^\W\d_]+|%)")
_WORDED = re.compile(
    r"\b(?:(?P<tens>twenty|thirty|forty|fifty|sixty|seventy|eighty|ninety)(?:[\s-](?P<unit>one|two|three|four|five|six"
    r"|seven|eight|nine))?|(?P<ones>two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|thirteen|fourteen"
    r"|fifteen|sixteen|seventeen|eighteen|nineteen|one(?=\s(?:hundred|thousand|million|billion)))|(?P<dozen>dozen))"
    r"(?P<scale>(?:[\s-](?:hundred|thousand|million|billion|trillion))*)\b(?![\s-](?:thirds?|fourths?|quarters?|fifths?|"
    r"sixths?|sevenths?|eighths?|ninths?|tenths?)\b)",
    re.IGNORECASE,
)
DERIVED_FIGURE = re.compile(
    r"\b(?:about|around|roughly|approximately|approx|nearly|almost|some|circa|close to|over|under|above|below"
    r"|more than|less than|fewer than|at least|at most|up to|no more than|exceed\w*|between|within|half|thirds?"
    r"|quarters?|fifths?|sixths?|tenths?|twice|double[ds]?|triple[ds]?|tripling|halv\w+|total\w*|together|altogether|combined"
    r"|overall|sum|differ\w*|average"
    r"|mean|ratio|younger|older|longer|shorter|taller|higher|lower|larger|smaller|faster|slower|cheaper"
    r"|dearer|heavier|lighter|times|each|per|every|later|earlier|after|ago|remaining|rest|left|majority|further|another"
    r"|additional)\b",
    re.IGNORECASE,
)
"""Words beside a figure that may have been computed from other figures of the evidence."""
FRACTION = re.compile(r"\b(?:half|halves|thirds?|quarters?|fifths?|twice|doubled?|tenfold|halved)\b", re.IGNORECASE)


class Fact(NamedTuple):
    """A number or date of a text: ``text[start:end]``, its value in base units and its dimension.

    A date has its year, month and day in ``day`` (0 where not given). ``digits`` counts decimal places.
    """

    kind: Literal["number", "date"]
    start: int
    end: int
    value: float
    dimension: str
    day: tuple[int, int, int] = (0, 0, 0)
    digits: int = 0


@lru_cache(maxsize=16384)
def facts(text: str) -> tuple[Fact, ...]:
    """Return the numbers and dates of a text, in order."""
    found: list[Fact] = []
    if any(c.isdigit() for c in text) or _MONTH_WORD.search(text):
        found += [fact for match in _DATE.finditer(text) if (fact := _date(text, match)) is not None]
    taken = [(fact.start, fact.end) for fact in found]
    found += [
        _number(text, match)
        for match in _NUMBER.finditer(text)
        if len(match["number"]) < 25
        and not any(start < match.end("number") and match.start("number") < end for start, end in taken)
    ]
    for match in _WORDED.finditer(text):
        if not any(fact.start < match.end() and match.start() < fact.end for fact in found):
            value = (
                12.0
                if match["dozen"]
                else sum(NUMERALS[p.lower()] for p in (match["tens"], match["unit"], match["ones"]) if p)
            )
            for scale in match["scale"].replace("-", " ").split():
                value *= MAGNITUDES[scale.lower()]
            dimension, factor, end = _unit(text, match.end())
            found.append(Fact("number", match.start(), end, value * factor, dimension))
    return tuple(sorted(found, key=lambda fact: fact.start))


_MONTH_WORD = re.compile(rf"\b{_MONTH}", re.IGNORECASE)


def _date(text: str, match: re.Match[str]) -> Fact | None:
    if match["iso"]:
        year, month, day = (int(part) for part in match["iso"].split("-"))
    else:
        year = int(match["y1"] or match["y2"] or match["y3"] or match["y4"] or 0)
        name = (match["m1"] or match["m2"] or match["m3"] or match["m4"] or "").lower().rstrip(".")
        month, day = _MONTHS.get(name, 0), int(match["d1"] or match["d2"] or 0)
    if month > 12 or day > 31 or (_is_modal_may(match) and not (year or day)):
        return None
    after = text[match.end() : match.end() + 20]
    # "1200 patients" is a count, unless a word before it says that it is a year.
    if match["y4"] and not match["decade"] and re.match(r"[\s-](?:[a-z]+s\b|[a-z]* ?%)", after):
        before = text[max(0, match.start() - 8) : match.start()].split()
        if not before or before[-1].lower() not in ("in", "since", "by", "until", "of", "from", "during", "the", "and"):
            return None
    return Fact("date", match.start(), match.end(), 0.0, "decade" if match["decade"] else "date", (year, month, day))


def _is_modal_may(match: re.Match[str]) -> bool:
    """Return whether a date match is the word "may" alone, which is a verb more often than a month."""
    return (match["m4"] or "").lower().rstrip(".") == "may"


def _number(text: str, match: re.Match[str]) -> Fact:
    value, end = float(match["number"].replace(",", "")), match.end()
    if match["ordinal"]:
        return Fact("number", match.start("number"), end, value, "ordinal")
    dimension = "money:" + _CURRENCIES[match["currency"].lower()] if match["currency"] else ""
    after = _AFTER.match(text, end)
    if after and (after[1].lower() in MAGNITUDES or (dimension and after[1] in ("m", "b"))):
        value *= MAGNITUDES.get(after[1].lower()) or {"m": 1e6, "b": 1e9}[after[1]]
        end = after.end()
    if not dimension:
        dimension, factor, end = _unit(text, end)
        value *= factor
    return Fact("number", match.start("number"), end, value, dimension, digits=len(match["number"].partition(".")[2]))


def _unit(text: str, end: int) -> tuple[str, float, int]:
    after = _AFTER.match(text, end)
    if after is None:
        return "", 1.0, end
    name = after[1].lower()
    name = {"per cent": "percent", "percentage point": "percent", "percentage points": "percent"}.get(name, name)
    if name in _UNITS and (len(name) > 1 or name in "%" or after[1] in ("m", "g", "l", "h")):
        return (*_UNITS[name], after.end())
    if name in _CURRENCIES:
        return "money:" + _CURRENCIES[name], 1.0, after.end()
    return "", 1.0, end


def same_fact(claim: Fact, other: Fact) -> bool:
    """Return whether two facts agree: equal, equal after rounding, or dates equal in the parts that both have."""
    if claim.kind != other.kind:
        return False
    if claim.kind == "date":
        if "decade" in (claim.dimension, other.dimension):
            return claim.day[0] // 10 == other.day[0] // 10
        stated = [(a, b) for a, b in zip(claim.day, other.day, strict=True) if a and b]
        return bool(stated) and all(a == b for a, b in stated)
    if claim.dimension and other.dimension and claim.dimension != other.dimension:
        return False
    difference, size = abs(claim.value - other.value), max(abs(claim.value), abs(other.value))
    if difference <= 1e-6 * size or (claim.dimension == "time" and difference <= 0.02 * size):
        return True
    return other.digits > claim.digits and claim.value >= 10 and difference <= 0.5 * 10.0**-claim.digits


class FactTable:
    """The numbers and dates of the evidence, for looking up single values."""

    def __init__(self, texts: Iterable[str]) -> None:
        self.dates: list[Fact] = []
        self.numbers: list[Fact] = []
        plain: set[str] = set()
        for text in texts:
            for fact in facts(text):
                (self.dates if fact.kind == "date" else self.numbers).append(fact)
            plain.update(re.findall(r"\d+(?:[.,]\d+)*", text))
        self.plain = {part.replace(",", "") for part in plain}
        self.numbers.sort(key=lambda fact: fact.value)
        self._values = [fact.value for fact in self.numbers]

    def contains(self, fact: Fact, text: str) -> bool:
        """Return whether the evidence has an equal fact; a bare numeral that occurs anywhere counts too."""
        if fact.kind == "date":
            if any(same_fact(fact, other) for other in self.dates):
                return True
            return bool(fact.day[0]) and not fact.day[1] and str(fact.day[0]) in self.plain
        reach = 0.03 * abs(fact.value) + 1.0
        low, high = bisect_left(self._values, fact.value - reach), bisect_right(self._values, fact.value + reach)
        if any(same_fact(fact, other) for other in self.numbers[low:high]):
            return True
        if fact.dimension in ("", "ordinal"):
            digits = re.match(r"[\d.,]*\d", text[fact.start : fact.end])
            return digits is not None and digits.group().replace(",", "") in self.plain
        return False

    def has_numeral(self, fact: Fact, text: str) -> bool:
        """Return whether the evidence has the numeral of the fact, with whatever unit."""
        digits = re.match(r"[\d.,]*\d", text[fact.start : fact.end])
        return bool(fact.dimension) and digits is not None and digits.group().replace(",", "") in self.plain


def is_derivable(fact: Fact, window_facts: Sequence[Fact], fractions: bool = False) -> bool:
    """Return whether a number can be computed from two other facts: sum, difference, product, share, span of years.

    Args:
        fact: The number of the claim.
        window_facts: The facts of the nearest windows. Not of all evidence: among many numbers some sum fits by chance.
        fractions: Whether the windows mention halves, thirds and the like.

    """
    usable = [other for other in window_facts if other.kind == "number"]
    shares = [other.value / 100 for other in usable if other.dimension == "percent"]
    if fact.dimension not in ("", "percent"):
        usable = [other for other in usable if other.dimension in ("", fact.dimension)]
    values = sorted({other.value for other in usable if other.value})[:24]
    if fact.dimension == "time":
        years = sorted({other.day[0] for other in window_facts if other.kind == "date" and other.day[0]})[:12]
        years_stated = fact.value / _UNITS["year"][1]
        if any(abs(b - a - years_stated) <= 1 for a, b in combinations(years, 2)):
            return True
    slack = max(0.005 * abs(fact.value), 0.5 * 10.0**-fact.digits if fact.dimension == "percent" else 1e-6)
    parts = (*shares, 0.5, 1 / 3, 2 / 3, 0.25, 0.75, 0.2, 2.0) if fractions else shares
    if any(abs(share * value - fact.value) <= slack for value in values for share in parts):
        return True
    if not fact.dimension and fact.value <= 50 and any(abs(value - fact.value) == 1 for value in values):
        return True  # "one of thirty-six failed": thirty-five did not
    for a, b in combinations(values, 2):
        computed = [a + b, b - a]
        if fact.dimension == "percent":
            computed += [100 * a / b, 100 * (b - a) / a, 100 * (b - a) / b]
        elif not fact.dimension:
            computed += [a * b, b / a]
        if any(abs(result - fact.value) <= slack for result in computed):
            return True
    return fact.dimension == "percent" and any(abs(100 - value - fact.value) <= slack for value in values)

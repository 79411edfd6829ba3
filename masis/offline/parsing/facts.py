"""The checkable facts of a text (numbers with units, times of day, dates; with offsets), and how two of them compare.

They may agree, contradict each other, or look like one altered into the other. "67 million" differs from "67",
"5 May 2021" agrees with "May 2021" and "2021-05-05", "3 years" with "36 months"; a percentage never contradicts a
length.
"""

import re
from bisect import bisect_left
from collections.abc import Sequence
from functools import lru_cache
from typing import Literal, NamedTuple

from masis.offline.parsing.units import CURRENCIES, MAGNITUDES, MONTHS, UNITS
from masis.offline.text.number_words import NUMERAL_STARTS, read_cardinal, read_ordinal, read_share
from masis.offline.text.tokens import STOPWORDS, Token, stem, tokens

FactKind = Literal["number", "date"]


class Day(NamedTuple):
    """A date as far as it is stated: year, month, day, each 0 where it isn't."""

    year: int
    month: int = 0
    day: int = 0


class Fact(NamedTuple):
    """A fact of a text: `text[start:end]`, its value (in the base unit of its dimension), and the noun it counts.

    `value` is the number in base units, 0 for a date, which has a `day`. `dimension` is "percent", "length",
    "money:usd", ...; "" for a bare number, whose `head` is the stem of the word that follows ("3 hulls" -> "hull").
    """

    kind: FactKind
    start: int
    end: int
    text: str
    value: float
    dimension: str = ""
    head: str = ""
    digits: int = 0
    day: Day = Day(0)


_MONTH = "(?:" + "|".join(sorted(MONTHS, key=len, reverse=True)) + r")\b\.?"
_YEAR = r"(?:1\d{3}|20\d{2})"
_DATES = re.compile(
    rf"\b(?P<iso>{_YEAR}-\d\d-\d\d)\b"
    rf"|(?<![\w-])(?P<d1>\d\d?)(?:st|nd|rd|th)?\s(?:of\s)?(?P<m1>{_MONTH}),?(?:\s(?P<y1>{_YEAR})\b)?"
    rf"|\b(?P<m2>{_MONTH})\s(?P<d2>\d\d?)(?:st|nd|rd|th)?\b(?!\s?[%$€])(?:,?\s(?P<y2>{_YEAR})\b)?"
    rf"|\b(?P<m3>{_MONTH}),?\s(?P<y3>{_YEAR})\b"
    rf"|\b(?:in|since|until|by|during|of|early|late|last|next)\s(?P<m4>{_MONTH})(?!\s\d)"
    rf"|(?:(?<=[mM]id-)|(?<![\w.,$€£-]))(?P<y4>{_YEAR})(?P<decade>s)?(?![\w%]|[.,]\d)",
    re.IGNORECASE,
)
_DATE_LEADS = frozenset("in since by until till during circa before after late early mid year fy fiscal".split())

_NUMBER = re.compile(
    r"(?<![\w.])(?P<currency>us\$|[$€£¥₹]|\b(?:usd|eur|gbp|nok|sek|dkk|chf|jpy|inr|cad|aud|cny)\s)?"
    r"(?P<number>\d++(?:,\d{3}(?!\d))*+(?:\.\d++)?+)(?P<ordinal>st|nd|rd|th)?(?![\d_])",
    re.IGNORECASE,
)
_ALWAYS = re.compile(r"(?<![\d/.,])24\s?/\s?7(?:\s?/\s?365)?(?![\d/]|[.,]\d)")  # around the clock: no figure
_AFTER = re.compile(r"[\s\u00a0-]?(?P<word>percentage points?|per cent|km/h|[°µμ]?[^\W\d_]+|%)")
_RANGE = re.compile(r"\s?(?:-|–|to|and|or|of|of the|by|x|×)\s?")
_PLAIN = re.compile(r"\D{0,4}[\d.,]+")
_NEXT_WORD = re.compile(r"[\s\u00a0-]([^\W\d_]++)")


def extract(text: str, words: Sequence[Token] | None = None) -> list[Fact]:
    """Return the facts of `text`, in order; `words` are its own where they are known."""
    words = tokens(text) if words is None else words
    found: list[Fact] = []
    if any(word.text[0].isdigit() or word.text.lower() in MONTHS for word in words):
        found = _dates(text)
    if any(word.text[0].isdigit() for word in words):
        found += _clock_times(text)
        found += _digit_numbers(text, sorted((fact.start, fact.end) for fact in found))
    found += _word_numbers(text, words)
    return sorted(found, key=lambda fact: fact.start)


def _overlaps(start: int, end: int, spans: Sequence[tuple[int, int]]) -> bool:
    # The spans are sorted and apart from each other: only the last that begins before `end` can overlap.
    i = bisect_left(spans, (end, 0))
    return i > 0 and spans[i - 1][1] > start


def _dates(text: str) -> list[Fact]:
    found = []
    for match in _DATES.finditer(text):
        day = _day(match)
        if day is None or (match["y4"] and not match["decade"] and _counts_things(text, match.start(), match.end())):
            continue
        dimension = "decade" if match["decade"] else "date"
        start = match.start("m4") if match["m4"] else match.start()
        written = text[start : match.end()].rstrip(",. ")
        if written != "may":
            found.append(Fact("date", start, start + len(written), written, 0.0, dimension, day=day))
    return found


def _day(match: re.Match[str]) -> Day | None:
    if match["iso"]:
        year, month, day = (int(part) for part in match["iso"].split("-"))
    else:
        year = int(match["y1"] or match["y2"] or match["y3"] or match["y4"] or 0)
        name = (match["m1"] or match["m2"] or match["m3"] or match["m4"] or "").lower().rstrip(".")
        month, day = MONTHS.get(name, 0), int(match["d1"] or match["d2"] or 0)
    return Day(year, month, day) if month <= 12 and day <= 31 else None


def _counts_things(text: str, start: int, end: int) -> bool:
    # "1500 patients" counts, "in 1500 merchants" doesn't: a year follows a preposition or ends its phrase.
    before = text[max(0, start - 12) : start].split()
    if before and before[-1].lower().strip("(") in _DATE_LEADS:
        return False
    after = re.match(r"[\s-]([^\W\d_]+)", text[end : end + 20])
    return bool(
        after
        and (after[1].lower() in UNITS or (after[1].islower() and after[1].endswith("s") and after[1] not in STOPWORDS))
    )


def _digit_numbers(text: str, taken: Sequence[tuple[int, int]]) -> list[Fact]:
    found = [
        _measured(text, match)
        for match in _NUMBER.finditer(text)
        if not _overlaps(match.start("number"), match.end("number"), taken) and len(match["number"]) < 25
    ]
    if always := [(match.start(), match.end()) for match in _ALWAYS.finditer(text)]:
        found = [fact for fact in found if not _overlaps(fact.start, fact.end, always)]
    for i in range(len(found) - 2, -1, -1):  # "6 to 8%", "$205 to $215 million": the unit of the second belongs to both
        here, after = found[i], found[i + 1]
        open_ended = here.dimension in ("", after.dimension) and _PLAIN.fullmatch(here.text)
        if (
            open_ended
            and (after.dimension or _scale(text, after) > 1)
            and _RANGE.fullmatch(text[here.end : after.start])
        ):
            found[i] = here._replace(dimension=after.dimension, value=here.value * _scale(text, after), head=after.head)
    return found


_CLOCK = re.compile(r"(?<![\w.:])([01]?\d|2[0-3])[:.h]([0-5]\d)(?![\d:%]|\.\d)")


def _clock_times(text: str) -> list[Fact]:
    """Return the times of day, in minutes since midnight: "02:10" is 130."""
    return [
        Fact("number", m.start(), m.end(), m.group(), 60.0 * int(m[1]) + int(m[2]), "clock")
        for m in _CLOCK.finditer(text)
        if ":" in m.group() or text[m.end() : m.end() + 5].strip().lower().startswith(("a.m", "p.m", "am", "pm"))
    ]


def _scale(text: str, fact: Fact) -> float:
    number = re.search(r"[\d,.]*\d", fact.text)
    plain = float(number.group().replace(",", "")) if number else 0.0
    return fact.value / plain if plain else 1.0


def _measured(text: str, match: re.Match[str]) -> Fact:
    number, end = match["number"], match.end()
    value = float(number.replace(",", ""))
    dimension = "money:" + CURRENCIES.get(match["currency"].strip().lower(), "other") if match["currency"] else ""
    if match["ordinal"]:
        return Fact("number", match.start(), end, text[match.start() : end], value, "ordinal", _head(text, end))
    after = _AFTER.match(text, end)
    word = after["word"].lower() if after else ""
    if after and (word in MAGNITUDES or (dimension and word in ("m", "b"))):
        value *= MAGNITUDES.get(word) or {"m": 1e6, "b": 1e9}[word]
        end = after.end()
        after = _AFTER.match(text, end)
        word = after["word"].lower() if after else ""
    if after and not dimension:
        unit = {"per cent": "percent", "percentage point": "pp", "percentage points": "pp"}.get(word, word)
        if unit in UNITS and (
            len(unit) > 1 or unit == "%" or text[end : end + 1] in " \u00a0" or after.start("word") == end
        ):
            dimension, factor = UNITS[unit]
            value, end = value * factor, after.end()
        elif unit in CURRENCIES:
            dimension, end = "money:" + CURRENCIES[unit], after.end()
    digits = len(number.partition(".")[2])
    return Fact("number", match.start(), end, text[match.start() : end], value, dimension, _head(text, end), digits)


def _head(text: str, end: int) -> str:
    # The noun counted: the last of the next three words up to a plural, so that "3 new hulls" counts hulls.
    head = ""
    for _ in range(3):
        match = _NEXT_WORD.match(text, end)
        if match is None or match[1].lower() in STOPWORDS:
            break
        head, end = stem(match[1]), match.end()
        if match[1].endswith("s"):
            break
    return head


def _word_numbers(text: str, words: Sequence[Token]) -> list[Fact]:
    """Return the numbers written in words, with the unit behind them."""
    facts: list[Fact] = []
    lowers = [word.text.lower() for word in words]

    def add(first: int, after: int, value: float, dimension: str) -> None:
        start, end = words[first].start, words[after - 1].end
        facts.append(Fact("number", start, end, text[start:end], value, dimension, _head(text, end)))

    i = 0
    while i < len(words):
        if lowers[i] not in NUMERAL_STARTS:
            i += 1
            continue
        if (share := read_share(lowers, i)) is not None:
            add(i, share[1], share[0], "percent")
            i = share[1]
            continue
        if (ordinal := read_ordinal(lowers, i)) is not None:
            add(i, i + 1, ordinal, "ordinal")
        number = read_cardinal(lowers, i)
        if number is None or (number.value == 1 and not number.scaled):  # "one" is a pronoun more often than a count
            i += 1
            continue
        after = number.after
        if after < len(words) and lowers[after] in UNITS and len(lowers[after]) > 2:
            dimension, factor = UNITS[lowers[after]]
            add(i, after + 1, number.value * factor, dimension)
        elif lowers[after : after + 2] == ["per", "cent"]:
            add(i, after + 2, float(number.value), "percent")
        else:
            add(i, after, float(number.value), "")
        i = after
    return facts


# How two facts compare.

_KINDRED = ({"duration", "months"}, {"celsius", "fahrenheit"})
"""Dimensions in which the same numeral with another unit is another value of the same thing."""


def comparable(claim: Fact, other: Fact) -> bool:
    """Return whether the two could contradict each other: of one dimension or, if bare numbers, of the same noun."""
    if claim.kind != other.kind:
        return False
    if claim.dimension != other.dimension:
        return {claim.dimension, other.dimension} in _KINDRED and _same_numeral(claim, other)
    if claim.kind == "date":
        return any(x and y for x, y in zip(claim.day, other.day, strict=True))
    if claim.dimension == "ordinal":
        return claim.head == other.head != ""
    if claim.kind == "number" and not claim.dimension:
        same = bool(claim.head) and claim.head == other.head
        return same or (claim.digits > 0 and other.digits > 0) or likeness(claim, other) >= 0.8
    return True


def likeness(claim: Fact, other: Fact) -> float:
    """Return how much one fact looks like another altered, 0..1: digits exchanged, a magnitude, one part of a date."""
    if claim.kind == "date":
        return _like_dates(claim.day, other.day)
    mine, theirs = _digits(claim.text), _digits(other.text)
    if claim.value == other.value:
        return 0.0
    if len(mine) > 1 and sorted(mine) == sorted(theirs):
        return 1.0
    if claim.dimension and other.dimension and _same_numeral(claim, other):
        return 0.8
    if not mine or not theirs:
        return 0.0
    short, long = sorted((mine, theirs), key=len)
    if len(long) - len(short) == 1 and any(long[:k] + long[k + 1 :] == short for k in range(len(long))):
        return 0.5
    if len(mine) == len(theirs) > 1 and sum(a != b for a, b in zip(mine, theirs, strict=True)) == 1:
        return 0.8 if len(mine) > 3 else 0.5
    return 0.0


def _same_numeral(claim: Fact, other: Fact) -> bool:
    # "23 days" and "23 weeks", "two weeks" and "two months".
    return claim.text.lower().split()[0] == other.text.lower().split()[0] and len(claim.text.split()) > 1


def compared(text: str, fact: Fact) -> bool:
    """Return whether the fact only labels a figure of comparison: the year in "1,912 million (2022: 1,704 million)"."""
    before, after = text[max(0, fact.start - 2) : fact.start].strip(), text[fact.end : fact.end + 2].strip()
    return fact.kind == "date" and before[-1:] in ("(", ";", ",") and after[:1] == ":"


def _like_dates(a: Day, b: Day) -> float:
    if a.day and b.day and (a.month, a.day) == (b.day, b.month):
        return 1.0
    both_stated = [(x, y) for x, y in zip(a, b, strict=True) if x and y]
    same = sum(x == y for x, y in both_stated)
    if len(both_stated) >= 2:
        return 0.8 if same == len(both_stated) - 1 else 0.3 * same
    left, right = str(a.year), str(b.year)
    return 0.8 if sorted(left) == sorted(right) else 0.4 * (sum(x != y for x, y in zip(left, right, strict=False)) == 1)


@lru_cache(maxsize=16384)
def _digits(text: str) -> str:
    return re.sub(r"\D", "", text)


def agree(claim: Fact, other: Fact) -> bool:
    """Return whether `other` agrees with `claim`: equal, or rounded to the claim's digits; dates as far as both go."""
    if claim.kind != other.kind:
        return False
    if claim.kind == "date":
        both_stated = [(a, b) for a, b in zip(claim.day, other.day, strict=True) if a and b]
        return bool(both_stated) and all(a == b for a, b in both_stated)
    if claim.dimension != other.dimension and claim.dimension and other.dimension:
        return False
    apart = abs(claim.value - other.value)
    if apart <= _ROUNDING * max(abs(claim.value), abs(other.value)):
        return True
    if claim.dimension == "percent" and not (claim.text[-1] == other.text[-1] == "%"):
        in_words = any(not any(map(str.isdigit, fact.text)) for fact in (claim, other))
        return apart <= ABOUT_SHARE and in_words
    return other.digits > claim.digits and claim.value >= 10 and apart <= 0.5 * 10.0**-claim.digits


ABOUT_SHARE = 2.0
"""How many points a share in words may be off: "a third" for 34%."""
_ROUNDING = 1e-6


def reach(value: float) -> float:
    """Return how far apart from this number one that agrees with it can be."""
    return ABOUT_SHARE + 2 * _ROUNDING * abs(value)

"""Numbers and dates that follow from those of the evidence without standing in it.

Rounded behind a hedge, a sum or a difference, a product or a share where the claim speaks of one, the years between two
dates, the date a span of time away from another. What the evidence doesn't say of any one thing, but of two.
"""

import re
from calendar import monthrange
from collections.abc import Iterator, Sequence
from datetime import date, timedelta
from itertools import combinations

from masis.offline.matching.overlap import Match
from masis.offline.parsing.extraction import Day
from masis.offline.parsing.facts import ABOUT_SHARE, Fact

_HEDGES = frozenset("about around roughly approximately nearly almost some circa ca close".split())
_BEYOND = frozenset("over than above".split())
_ARITHMETIC = frozenset(
    """
    more less fewer total altogether together sum difference later earlier after before by left remain remains remaining
    gap apart another additional further combined overall between longer shorter larger smaller higher lower both half
    net lost lose gained gain faster slower
    """.split()
)
"""Words without which a sum or a difference is looked for in single passages only."""
_SHARE = frozenset(
    "share proportion rate fraction percentage growth increase decrease drop fall fell rose grew lost gained".split()
)
_ROUNDING = 0.1
_REGION, _PASSAGE = 40, 8
"""Values that are reckoned with: of all passages near, of one alone. Among many some sum comes out by chance."""
_TELLING = 10.0
"""Below this a sum without a word for it proves nothing."""
_DAY, _MONTH = 86400.0, 30.44


def follows(found: Match, fact: Fact) -> bool:
    """Whether the value follows from those of the passages that bear the claim.

    A ratio ("three times as high") is taken to.
    """
    if fact.kind == "date":
        return _reckoned(found, fact)
    if fact.kind != "number" or not isinstance(fact.value, float):
        return False
    following = [word.text.lower() for word in found.sentence.after(fact.end, 3)]
    if following[:1] == ["times"] and following[1:] and following[1] in ("as", "more", "higher", "larger", "greater"):
        return True
    groups = [_values(found.passages[i].facts, fact.dimension) for i in found.region]
    values = [value for group in groups for value in group][:_REGION]
    return (
        _rounded(found, fact.start, fact.value, values)
        or _reached(found, fact, values, groups)
        or _multiplied(found, fact)
        or _shared(found, fact)
        or _part_of(found, fact)
        or _ratio(found, fact)
        or _between_dates(found, fact)
    )


def _values(facts: Sequence[Fact], dimension: str) -> list[float]:
    return [
        other.value
        for other in facts
        if other.kind == "number"
        and isinstance(other.value, float)
        and (dimension in ("", other.dimension) or (dimension == "percent" and _points(other)))
    ]


def _points(fact: Fact) -> bool:
    # "64 per cent, three points more than before"
    return fact.dimension == "points" or fact.head == "point"


def _rounded(found: Match, start: int, wanted: float, values: Sequence[float]) -> bool:
    before = {word.text.lower() for word in found.sentence.before(start, 3)}
    if before & _HEDGES and any(abs(value - wanted) <= _ROUNDING * abs(value) for value in values):
        return True
    return bool(before & _BEYOND) and any(0 < value - wanted <= _ROUNDING * abs(value) for value in values)


def _reached(found: Match, fact: Fact, values: Sequence[float], groups: Sequence[Sequence[float]]) -> bool:
    """By adding or subtracting: of all values near where a word says so, else of two in one passage.

    Shares are not added up without a word; points are taken from them.
    """
    wanted = float(fact.value)  # type: ignore[arg-type]
    if not _ARITHMETIC.isdisjoint(found.sentence.lowers) and _summed(wanted, values):
        return True
    if fact.dimension != "percent":
        return wanted >= _TELLING and any(len(group) <= _PASSAGE and _summed(wanted, group) for group in groups)
    points = [other for i in found.region for other in found.passages[i].facts if _points(other)][:_PASSAGE]
    return any(_summed(wanted, (float(other.value), value)) for other in points for value in values)  # type: ignore[arg-type]


def _summed(wanted: float, values: Sequence[float]) -> bool:
    return any(_equal(a + b, wanted) or _equal(abs(a - b), wanted) for a, b in combinations(values, 2))


def _equal(made: float, wanted: float) -> bool:
    return abs(made - wanted) < 0.001 and round(made, 4) == round(wanted, 4)


def _multiplied(found: Match, fact: Fact) -> bool:
    """So many of so much, in one passage: nine gates, each 54 metres wide, are 486 metres."""
    wanted = float(fact.value)  # type: ignore[arg-type]
    if wanted < _TELLING:
        return False
    own = _values([other for other in found.sentence.facts if other != fact], "")
    for i in found.region:
        facts = found.passages[i].facts
        times = [value for value in (*_values(facts, "")[:_PASSAGE], *own) if value > 1]
        each = _values([other for other in facts if other.dimension == fact.dimension], fact.dimension)[:_PASSAGE]
        if any(_equal(a * b, wanted) for a in each for b in times):
            return True
    return False


def _shared(found: Match, fact: Fact) -> bool:
    """By division: the part of a whole, or the change against what was, in percent."""
    if fact.dimension != "percent" or _SHARE.isdisjoint(found.sentence.lowers):
        return False
    worded = not any(character.isdigit() for character in fact.text)
    exact = ABOUT_SHARE if worded else 0.5 * 10.0**-fact.digits
    for i in found.region:
        values = [value for value in _values(found.passages[i].facts, "") if value > 0][:_PASSAGE]
        for a, b in combinations(values, 2):
            small, large = min(a, b), max(a, b)
            made = (small / large, (large - small) / large, (large - small) / small)
            if any(abs(100 * part - float(fact.value)) <= exact for part in made):  # type: ignore[arg-type]
                return True
    return False


def _part_of(found: Match, fact: Fact) -> bool:
    """So many percent of a number that the claim itself gives, or that number."""
    own = _values([other for other in found.sentence.facts if other != fact], fact.dimension)
    shares = [value / 100 for i in found.region for value in _values(found.passages[i].facts, "percent")][:_PASSAGE]
    wanted = float(fact.value)  # type: ignore[arg-type]
    return fact.dimension != "percent" and any(
        _equal(value * share, wanted) or _equal(wanted * share, value) for value in own for share in shares
    )


_IN = re.compile(r"\b(?:(?P<of>\w+) of (?:the |all )?|(?P<in>\w+) (?:\w+ )?in )(?P<whole>\w+)\b", re.IGNORECASE)


def _ratio(found: Match, fact: Fact) -> bool:
    """One of two numbers that make a part: "one boat in twenty" for 32 of 640, "nine of the twelve" for 4 and 5."""
    values = {(other.start, other.end): other.value for other in found.sentence.facts if other.kind == "number"}
    for match in _IN.finditer(found.sentence.text):
        kind = "of" if match["of"] else "in"
        part, whole = values.get(match.span(kind), _ONE.get(match[kind].lower())), values.get(match.span("whole"))
        if not isinstance(part, float) or not isinstance(whole, float) or not match.start() <= fact.start < match.end():
            continue
        for i in found.region:
            known = [value for value in _values(found.passages[i].facts, "") if value > 0][:_PASSAGE]
            if kind == "of" and float(fact.value) != whole and _summed(part, known):  # type: ignore[arg-type]
                return True
            pairs = [(a, b) for a in known for b in known if a < b]
            shares = [a / b for a, b in pairs] + [value / 100 for value in _values(found.passages[i].facts, "percent")]
            if kind == "in" and any(abs(share - part / whole) <= _ROUGHLY * part / whole for share in shares):
                return True
    return False


_ONE = {"one": 1.0}
_ROUGHLY = 0.06
"""How far off "one in seven" may be."""


def _days(found: Match) -> list[Day]:
    facts = [other for i in found.region for other in found.passages[i].facts][:_REGION]
    return list(dict.fromkeys(other.value for other in facts if isinstance(other.value, Day)))


def _between_dates(found: Match, fact: Fact) -> bool:
    """The span between two dates: "66 years" for 1908 and 1974."""
    if fact.dimension not in ("months", "duration"):
        return False
    for one, other in combinations(_days(found), 2):
        if fact.dimension == "months" and one.year and other.year:
            if _equal(12.0 * abs(one.year - other.year), float(fact.value)):  # type: ignore[arg-type]
                return True
        elif one.day and other.day and (one.year == other.year or not (one.year and other.year)):
            apart = abs((_as_date(one, one.year) - _as_date(other, one.year)).days)
            if _equal(apart * _DAY, float(fact.value)):  # type: ignore[arg-type]
                return True
    return False


def _reckoned(found: Match, fact: Fact) -> bool:
    """The date a span away from another: 1968 for "in 1964, four years before", October for "nine weeks later"."""
    wanted = fact.value
    if not isinstance(wanted, Day):
        return False
    return any(_falls(wanted, day, span) for day in _days(found) for span in _spans(found))


def _spans(found: Match) -> Iterator[tuple[float, float]]:
    """The spans of time near, as days or, where they are stated in months or years, as months; none over a century."""
    for other in [other for i in found.region for other in found.passages[i].facts][:_REGION]:
        if not isinstance(other.value, float):
            continue
        if other.dimension == "duration" and _DAY <= other.value <= 36_525 * _DAY:
            yield other.value / _DAY, 0.0
        elif other.dimension == "months" and other.value <= 1_200:
            yield 0.0, other.value


def _falls(wanted: Day, day: Day, span: tuple[float, float]) -> bool:
    days, months = span
    if not wanted.month:
        return bool(day.year and months) and abs(abs(wanted.year - day.year) - months / 12) < 0.01
    if not day.month or (wanted.day and not day.day):
        return False
    base = _as_date(day, day.year)
    slack = 1 if days else 3  # the first day is counted or not; months are not all of a length
    for sign in (1, -1):
        reached = base + timedelta(days=sign * (days or months * _MONTH))
        if wanted.year and day.year and reached.year != wanted.year:
            continue
        if wanted.day and abs((_as_date(wanted, reached.year) - reached).days) <= slack:
            return True
        if not wanted.day and reached.month == wanted.month:
            return True
    return False


def _as_date(day: Day, year: int) -> date:
    """The day in the calendar; the middle of the month where no day is given, any year where none is."""
    year = year or 2001
    return date(year, day.month or 1, min(day.day or 15, monthrange(year, day.month or 1)[1]))

"""Dates and times of day: how they are written, and every way to read one that can be read in
several.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from masis.offline.parsing.units import MONTHS, read_unit
from masis.offline.text.tokens import STOPWORDS


class Day(NamedTuple):
    """A date as far as it is stated: year, month, day, each 0 where it isn't."""

    year: int
    month: int = 0
    day: int = 0


class DateMention(NamedTuple):
    """A date of a text: `text[start:end]` with the days that it may be, the likeliest first.

    ``unsure`` where it may be no date at all.
    """

    start: int
    end: int
    days: tuple[Day, ...]
    decade: bool = False
    unsure: bool = False


class TimeMention(NamedTuple):
    """A time of day: `text[start:end]` with the minutes since midnight that it may be, the
    likeliest first.
    """

    start: int
    end: int
    minutes: tuple[int, ...]


_MONTH = "(?:" + "|".join(sorted(MONTHS, key=len, reverse=True)) + r")\b\.?"
_YEAR = r"(?:1\d{3}|20\d{2})"

# German, French, Spanish, Italian, Dutch, Portuguese and Polish, as in the CLDR (wide names, as
# they are alone and after a day). Names that are English as well are in MONTHS.
_OTHER_LANGUAGES = (
    "januar jänner janvier enero gennaio januari janeiro stycznia styczeń",
    "februar février febrero febbraio februari fevereiro lutego luty",
    "märz mars marzo maart março marca marzec",
    "avril abril aprile kwietnia kwiecień",
    "mai mayo maggio mei maio maja maj",
    "juni juin junio giugno junho czerwca czerwiec",
    "juli juillet julio luglio julho lipca lipiec",
    "août agosto augustus sierpnia sierpień",
    "septembre septiembre settembre setembro września wrzesień",
    "oktober octobre octubre ottobre outubro października październik",
    "novembre noviembre novembro listopada listopad",
    "dezember décembre diciembre dicembre dezembro grudnia grudzień",
)
_OTHER_MONTHS: dict[str, tuple[int, ...]] = {
    name: (number,) for number, names in enumerate(_OTHER_LANGUAGES, 1) for name in names.split()
} | {"listopada": (11, 10)}  # November in Polish, October in Croatian
_OTHER_WORDS = frozenset({"mars", "mayo", "marca", "augustus"})
"""Of these, words that mean something else ("2 Mars missions"): months only between a day and a
year.
"""


def _any_name(names: Iterable[str]) -> str:
    return "(?:" + "|".join(sorted(names, key=len, reverse=True)) + r")\b"


_OTHER_MONTH = _any_name(_OTHER_MONTHS)
_SURE_OTHER_MONTH = _any_name(_OTHER_MONTHS.keys() - _OTHER_WORDS)
_OF = r"(?:de\s|del\s|di\s)?"
_DATES = re.compile(
    rf"\b(?P<iso>{_YEAR}-\d\d-\d\d)(?:T\d\d:\d\d(?::\d\d(?:\.\d{{1,9}})?)?(?:Z"
    rf"|[+-]\d\d:?\d\d)?)?(?![\d-])"
    rf"|(?<![\w./-])(?P<ymd>{_YEAR}(?P<ys>[/.])\d\d?(?P=ys)\d\d?)(?![\w/]|\.\d)"
    rf"|(?<![\w./-])(?P<digits>(?:19|20)\d\d(?:0[1-9]|1[0-2])(?:0[1-9]|[12]\d|3[01]))(?![\w./-])"
    # With points the day comes first (German, Nordic and Slavic usage); with slashes it depends on
    # the country.
    rf"|(?<![\w./-])(?P<dmy>\d\d?(?P<ds>[./-])(?:\s?)\d\d?(?P=ds)\s?{_YEAR})(?![\w/-]|\.\d)"
    r"|(?<![\w./-])(?P<short>\d\d?\.\d\d?\.\d\d)(?![\w/]|\.\d)"
    rf"|(?<![\w-])(?P<d5>\d\d?)-(?P<m5>{_MONTH})-(?P<y6>{_YEAR})\b"
    r"|(?<!\w)['’](?P<decades>[2-9]0)s\b"
    rf"|(?<![\w-])(?P<d1>\d\d?)(?:st|nd|rd|th)?\.?\s(?:of\s)?(?P<m1>{_MONTH}),?(?:\s(?P<y1>{_YEAR}"
    rf"|['’]\d\d)\b)?"
    rf"|\b(?P<m2>{_MONTH})\s(?P<d2>\d\d?)(?:st|nd|rd|th)?\b(?!\s?[%$€]"
    rf"|[.,:]\d)(?:,?\s(?P<y2>{_YEAR})\b)?"
    rf"|\b(?P<m3>{_MONTH}),?\s(?:of\s)?(?P<y3>{_YEAR})\b"
    # "14. Oktober", "1er août", "2 de mayo de 1889"
    rf"|(?<![\w-])(?P<d6>\d\d?)(?:\.|[º°]|er)?\s{_OF}"
    rf"(?:(?P<m6>{_OTHER_MONTH})\s{_OF}(?P<y7>{_YEAR})\b|(?P<m7>{_SURE_OTHER_MONTH}))"
    rf"|\b(?P<m8>{_SURE_OTHER_MONTH})\s{_OF}(?P<y8>{_YEAR})\b"
    rf"|\b(?:in|since|until|by|during|of|early|late|last|next)\s(?P<m4>{_MONTH})(?!\s\d)"
    rf"|(?:(?<=[mM]id-)|(?<=[qQ][1-4]/)|(?<=FY)|(?<![\w.,'’$€£/-]))(?P<y4>{_YEAR})"
    rf"(?:(?P<decade>s)|[/–-](?P<y5>\d\d))?(?![\w%]|[.,'’]\d|/\d)",
    re.IGNORECASE,
)
_DATE_LEADS = frozenset(
    "in since by until till during circa before after late early mid year fy fiscal".split()
)


def dates(text: str) -> Iterator[DateMention]:
    """Yield the dates of a text, in order."""
    for match in _DATES.finditer(text):
        start = match.start("m4") if match["m4"] else match.start()
        written = text[start : match.end()].rstrip(",. ")
        if match["y4"] and not match["decade"] and _counts_things(text, match.start(), match.end()):
            continue
        days = tuple(day for day in _days(match) if day.month <= 12 and day.day <= 31)
        if days and written != "may":
            decade = match["decade"] is not None or match["decades"] is not None
            # a version, or a count
            unsure = match["digits"] is not None or match["short"] is not None
            yield DateMention(start, start + len(written), days, decade=decade, unsure=unsure)


def _days(match: re.Match[str]) -> Iterator[Day]:
    if numeric := match["iso"] or match["ymd"]:
        yield Day(*map(int, re.split(r"[-/.]", numeric)))
    elif match["digits"]:
        yield Day(int(match["digits"][:4]), int(match["digits"][4:6]), int(match["digits"][6:]))
    elif match["decades"]:
        yield Day(1900 + int(match["decades"]))
    elif match["short"]:
        day, month, year = (int(part) for part in match["short"].split("."))
        yield Day(_century(year), month, day)
    elif match["dmy"]:
        first, second, year = (int(part) for part in re.split(r"[./-]\s?", match["dmy"]))
        yield Day(year, second, first)
        if match["ds"] != "." and first != second:
            yield Day(year, first, second)
    elif other := match["m6"] or match["m7"] or match["m8"]:
        for month in _OTHER_MONTHS[other.lower()]:
            yield Day(int(match["y7"] or match["y8"] or 0), month, int(match["d6"] or 0))
    else:
        written = match["y1"] or match["y2"] or match["y3"] or match["y4"] or match["y6"] or "0"
        year = int(written) if written.isdecimal() else _century(int(written[1:]))
        name = (
            (match["m1"] or match["m2"] or match["m3"] or match["m4"] or match["m5"] or "")
            .lower()
            .rstrip(".")
        )
        yield Day(year, MONTHS.get(name, 0), int(match["d1"] or match["d2"] or match["d5"] or 0))
        if match["y5"]:  # "2021/22"
            yield Day(year - year % 100 + int(match["y5"]))


_LATEST = 40
"""Up to here two digits are a year of this century."""


def _century(year: int) -> int:
    return year + (2000 if year <= _LATEST else 1900)


def _counts_things(text: str, start: int, end: int) -> bool:
    # "1500 patients" counts, "in 1500 merchants" doesn't: a year follows a preposition or ends its
    # phrase.
    before = text[max(0, start - 12) : start].split()
    if before and before[-1].lower().strip("(") in _DATE_LEADS:
        return False
    after = re.match(r"[\s-]([^\W\d_]+)", text[end : end + 20])
    if after is None:
        return False
    word = after[1]
    return (
        bool(read_unit(text, end))
        or word in ("hours", "hrs")
        or (word.islower() and word.endswith("s") and word not in STOPWORDS)
    )


_HALVES = r"(?P<half>[ap])\.?\s?m\b\.?"
_CLOCK = re.compile(
    rf"(?<![\w.,:$€£])(?P<h>[01]?\d|2[0-4])[:.h](?P<m>[0-5]\d)(?::[0-5]\d)?(?![\d:%]"
    rf"|[.,]\d)(?:\s?{_HALVES})?"
    rf"|(?<![\w.,:$€£])(?P<h2>1[0-2]|0?[1-9])\s?(?P<half2>[ap])\.?\s?m\b\.?"
    r"|(?<![\w.,:])(?P<military>(?:[01]\d|2[0-3])[0-5]\d)\s?(?:hours|hrs|h)\b"
    r"|(?<![\w.,:])(?P<h3>[01]?\d|2[0-3])\s?(?:o['’]clock|Uhr)\b"
    r"|(?<![\w.,:])(?P<h4>[01]?\d|2[0-3])h(?![\w.,])(?<=[^\d]\dh|\d\dh)"
    r"|\b(?P<named>noon|midday|midnight)\b",
    re.IGNORECASE,
)
_AT = re.compile(
    r"\b(?:at|from|until|till|by|to|before|after|between|and|since|around|about)\s$", re.IGNORECASE
)
_NAMED = {"noon": (720,), "midday": (720,), "midnight": (0, 1440)}
_HALF_DAY = 720
_SPOKEN = re.compile(
    r"\b(?:(?P<part>half|quarter|twenty|ten|five) (?P<side>past|to) )?"
    r"(?P<hour>one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve)(?P<clock>"
    r" o['’]clock)?\b",
    re.IGNORECASE,
)
_PARTS = {"half": 30, "quarter": 15, "twenty": 20, "ten": 10, "five": 5}
_HOURS = {
    word: hour
    for hour, word in enumerate(
        "one two three four five six seven eight nine ten eleven twelve".split(), 1
    )
}


def times_of_day(text: str) -> Iterator[TimeMention]:
    """Yield the times of day of a text: "02:10" is 130 minutes, "2:30" may be 150 or 870."""
    for match in _CLOCK.finditer(text):
        if match["named"]:
            yield TimeMention(match.start(), match.end(), _NAMED[match["named"].lower()])
            continue
        half = (match["half"] or match["half2"] or "").lower()
        hour = int(
            match["h"]
            or match["h2"]
            or match["h3"]
            or match["h4"]
            or (match["military"] or "0000")[:2]
        )
        minute = int(match["m"] or (match["military"] or "0000")[2:])
        separator = text[match.end("h") : match.start("m")] if match["h"] else ""
        if separator == "." and not half:
            continue  # a number that `may_be_time` looks at
        if match["h4"] and not _AT.search(text, max(0, match.start() - 12), match.start()):
            continue  # "it took 14h" is a duration
        written = match["h"] or match["h2"] or match["h3"] or match["h4"] or ""
        sure = bool(match["military"]) or written.startswith("0") or hour > 12
        yield TimeMention(match.start(), match.end(), _minutes(hour, minute, half, sure=sure))
    for match in _SPOKEN.finditer(text):
        if match["part"] or match["clock"]:
            apart = _PARTS[match["part"].lower()] if match["part"] else 0
            apart = -apart if match["part"] and match["side"].lower() == "to" else apart
            at = 60 * _HOURS[match["hour"].lower()] + apart
            yield TimeMention(match.start(), match.end(), (at, (at + _HALF_DAY) % (2 * _HALF_DAY)))


_DOTTED = re.compile(r"([01]?\d|2[0-3])\.([0-5]\d)")


def may_be_time(text: str, start: int, end: int) -> tuple[int, ...]:
    """Return the minutes that a number such as the one of "at 2.30" or "from 14.30" may stand for;
    else nothing.
    """
    found = _DOTTED.fullmatch(text, start, end)
    if found is None or not _AT.search(text, max(0, start - 12), start):
        return ()
    return _minutes(
        int(found[1]), int(found[2]), "", sure=found[1].startswith("0") or int(found[1]) > 12
    )


def _minutes(hour: int, minute: int, half: str, *, sure: bool) -> tuple[int, ...]:
    if half:
        return (60 * (hour % 12 + (12 if half == "p" and hour <= 12 else 0)) + minute,)
    at = 60 * hour + minute
    return (at,) if sure else (at, (at + _HALF_DAY) % (2 * _HALF_DAY))

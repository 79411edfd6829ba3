"""Finds dates and times of day in a text and returns every possible reading of each.

"5/6/2021" is May 6 or June 5, and "2:30" is in the night or in the afternoon.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from masis.offline.parsing.units import MONTHS, read_unit
from masis.offline.text.tokens import STOPWORDS


class Day(NamedTuple):
    """A date whose parts may be missing; a missing year, month or day is 0."""

    year: int
    month: int = 0
    day: int = 0


class DateMention(NamedTuple):
    """A date found at `text[start:end]`, with its possible readings, the likeliest first.

    ``decade`` is true for "the 1990s". ``unsure`` is true if the characters may not be a date.
    """

    start: int
    end: int
    days: tuple[Day, ...]
    decade: bool = False
    unsure: bool = False


class TimeMention(NamedTuple):
    """A time of day found at `text[start:end]`.

    `minutes` are its possible readings in minutes since midnight, the likeliest first.
    """

    start: int
    end: int
    minutes: tuple[int, ...]


# Matches an English month name or its abbreviation, with a point or without: "Sept.", "May".
_MONTH = "(?:" + "|".join(sorted(MONTHS, key=len, reverse=True)) + r")\b\.?"
# A four-digit year from 1000 to 2099. A larger number is more often a count than a year.
_YEAR = r"(?:1\d{3}|20\d{2})"

# Month names in German, French, Spanish, Italian, Dutch, Portuguese and Polish. The source is the
# CLDR: wide names, in the stand-alone form ("styczeń") and in the form after a day ("stycznia").
# Names that are also English are in MONTHS.
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
_AMBIGUOUS_MONTHS = frozenset({"mars", "mayo", "marca", "augustus"})
"""Month names that are also other words ("2 Mars missions"). They count only between day and year.
"""


def _name_pattern(names: Iterable[str]) -> str:
    return "(?:" + "|".join(sorted(names, key=len, reverse=True)) + r")\b"


_OTHER_MONTH = _name_pattern(_OTHER_MONTHS)
_UNAMBIGUOUS_OTHER_MONTH = _name_pattern(_OTHER_MONTHS.keys() - _AMBIGUOUS_MONTHS)
# The Romance "of" in "2 de mayo" and "maio de 1889".
_OF = r"(?:de\s|del\s|di\s)?"
# One alternative for each notation. A date must match; a similar number mustn't:
#   iso      "2021-05-06", with a time too ("2021-05-06T10:00Z")  not the part number "2021-05-06-7"
#   ymd      "2021/5/6", "2021.05.06"                             not the version "2021.05.06.1"
#   digits   "20210506"                                           not "20211306" (month 13)
#   dmy      "6.5.2021", "06/05/2021", "6. 5. 2021"               not the path "a/06/05/2021"
#   short    "6.5.21" (may be a version number)                   not "6.5.21.4"
#   d5       "06-May-2021"
#   decades  "'90s"                                               not "'95s"
#   d1       "6 May", "6th of May, 2021", "6 May '21"
#   m2       "May 6, 2021"                                        not "May 6%" or "May 6.5"
#   m3       "May 2021", "May of 2021"
#   d6, m8   "14. Oktober", "1er août", "2 de mayo de 1889", "maio de 1889"
#   m4       "in May", only after a preposition or the like       not "may" alone, a verb
#   y4       "2021", "the 1990s", "2021/22", "FY2021"             not "2021.5" or "€2021"
_DATES = re.compile(
    rf"\b(?P<iso>{_YEAR}-\d\d-\d\d)(?:T\d\d:\d\d(?::\d\d(?:\.\d{{1,9}})?)?(?:Z"
    rf"|[+-]\d\d:?\d\d)?)?(?![\d-])"
    rf"|(?<![\w./-])(?P<ymd>{_YEAR}(?P<ys>[/.])\d\d?(?P=ys)\d\d?)(?![\w/]|\.\d)"
    rf"|(?<![\w./-])(?P<digits>(?:19|20)\d\d(?:0[1-9]|1[0-2])(?:0[1-9]|[12]\d|3[01]))(?![\w./-])"
    # The day comes first between points (German, Nordic and Slavic usage). Between slashes, the
    # order depends on the country, so `_possible_days` returns both readings.
    rf"|(?<![\w./-])(?P<dmy>\d\d?(?P<ds>[./-])(?:\s?)\d\d?(?P=ds)\s?{_YEAR})(?![\w/-]|\.\d)"
    r"|(?<![\w./-])(?P<short>\d\d?\.\d\d?\.\d\d)(?![\w/]|\.\d)"
    rf"|(?<![\w-])(?P<d5>\d\d?)-(?P<m5>{_MONTH})-(?P<y6>{_YEAR})\b"
    r"|(?<!\w)['’](?P<decades>[2-9]0)s\b"
    rf"|(?<![\w-])(?P<d1>\d\d?)(?:st|nd|rd|th)?\.?\s(?:of\s)?(?P<m1>{_MONTH}),?(?:\s(?P<y1>{_YEAR}"
    rf"|['’]\d\d)\b)?"
    rf"|\b(?P<m2>{_MONTH})\s(?P<d2>\d\d?)(?:st|nd|rd|th)?\b(?!\s?[%$€]"
    rf"|[.,:]\d)(?:,?\s(?P<y2>{_YEAR})\b)?"
    rf"|\b(?P<m3>{_MONTH}),?\s(?:of\s)?(?P<y3>{_YEAR})\b"
    rf"|(?<![\w-])(?P<d6>\d\d?)(?:\.|[º°]|er)?\s{_OF}"
    rf"(?:(?P<m6>{_OTHER_MONTH})\s{_OF}(?P<y7>{_YEAR})\b|(?P<m7>{_UNAMBIGUOUS_OTHER_MONTH}))"
    rf"|\b(?P<m8>{_UNAMBIGUOUS_OTHER_MONTH})\s{_OF}(?P<y8>{_YEAR})\b"
    rf"|\b(?:in|since|until|by|during|of|early|late|last|next)\s(?P<m4>{_MONTH})(?!\s\d)"
    rf"|(?:(?<=[mM]id-)|(?<=[qQ][1-4]/)|(?<=FY)|(?<![\w.,'’$€£/-]))(?P<y4>{_YEAR})"
    rf"(?:(?P<decade>s)|[/–-](?P<y5>\d\d))?(?![\w%]|[.,'’]\d|/\d)",
    re.IGNORECASE,
)
_WORDS_BEFORE_YEARS = frozenset(
    "in since by until till during circa before after late early mid year fy fiscal".split()
)


def dates(text: str) -> Iterator[DateMention]:
    """Yield the dates in a text, in order."""
    for match in _DATES.finditer(text):
        start = match.start("m4") if match["m4"] else match.start()
        written = text[start : match.end()].rstrip(",. ")
        if match["y4"] and not match["decade"] and _is_count(text, match.start(), match.end()):
            continue
        days = tuple(day for day in _possible_days(match) if day.month <= 12 and day.day <= 31)
        if days and written != "may":
            decade = match["decade"] is not None or match["decades"] is not None
            # "20210506" may be a count and "6.5.21" a version number.
            unsure = match["digits"] is not None or match["short"] is not None
            yield DateMention(start, start + len(written), days, decade=decade, unsure=unsure)


def _possible_days(match: re.Match[str]) -> Iterator[Day]:
    """Yield the possible readings of a match of `_DATES`, the likeliest first."""
    if numeric := match["iso"] or match["ymd"]:
        yield Day(*map(int, re.split(r"[-/.]", numeric)))
    elif match["digits"]:
        yield Day(int(match["digits"][:4]), int(match["digits"][4:6]), int(match["digits"][6:]))
    elif match["decades"]:
        yield Day(1900 + int(match["decades"]))
    elif match["short"]:
        day, month, year = (int(part) for part in match["short"].split("."))
        yield Day(_four_digit_year(year), month, day)
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
        year = int(written) if written.isdecimal() else _four_digit_year(int(written[1:]))
        name = (
            (match["m1"] or match["m2"] or match["m3"] or match["m4"] or match["m5"] or "")
            .lower()
            .rstrip(".")
        )
        yield Day(year, MONTHS.get(name, 0), int(match["d1"] or match["d2"] or match["d5"] or 0))
        if match["y5"]:  # "2021/22"
            yield Day(year - year % 100 + int(match["y5"]))


_LAST_YEAR_OF_2000S = 40
"""Two-digit years up to this one belong to the 2000s ("'21"), later ones to the 1900s ("'45")."""


def _four_digit_year(year: int) -> int:
    """Return the four-digit year for a two-digit one."""
    return year + (2000 if year <= _LAST_YEAR_OF_2000S else 1900)


def _is_count(text: str, start: int, end: int) -> bool:
    """Return whether a four-digit number counts something, so that it isn't a year.

    It counts in "1500 patients" but not in "in 1500 merchants met", where it follows a preposition.
    """
    before = text[max(0, start - 12) : start].split()
    if before and before[-1].lower().strip("(") in _WORDS_BEFORE_YEARS:
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


# Matches "am", "p.m." and "PM" after a time.
_AM_OR_PM = r"(?P<half>[ap])\.?\s?m\b\.?"
# Matches times in digits and the named times:
#   h         "14:30", "2.30 pm", "14h30", "02:10:55"  not "12:30%" or the ratio "3:2"
#   h2        "2 pm", "2 p.m."                         not "2 PMs"
#   military  "1430 hours"                             not "1470 hours"
#   h3        "2 o'clock", "14 Uhr"
#   h4        "14h" (may be a duration)
#   named     "noon", "midnight"
_CLOCK = re.compile(
    rf"(?<![\w.,:$€£])(?P<h>[01]?\d|2[0-4])[:.h](?P<m>[0-5]\d)(?::[0-5]\d)?(?![\d:%]"
    rf"|[.,]\d)(?:\s?{_AM_OR_PM})?"
    rf"|(?<![\w.,:$€£])(?P<h2>1[0-2]|0?[1-9])\s?(?P<half2>[ap])\.?\s?m\b\.?"
    r"|(?<![\w.,:])(?P<military>(?:[01]\d|2[0-3])[0-5]\d)\s?(?:hours|hrs|h)\b"
    r"|(?<![\w.,:])(?P<h3>[01]?\d|2[0-3])\s?(?:o['’]clock|Uhr)\b"
    r"|(?<![\w.,:])(?P<h4>[01]?\d|2[0-3])h(?![\w.,])(?<=[^\d]\dh|\d\dh)"
    r"|\b(?P<named>noon|midday|midnight)\b",
    re.IGNORECASE,
)
# Matches the end of the text before a time: "at ", "from ". A duration doesn't follow these words.
_BEFORE_TIME = re.compile(
    r"\b(?:at|from|until|till|by|to|before|after|between|and|since|around|about)\s$", re.IGNORECASE
)
_NAMED = {"noon": (720,), "midday": (720,), "midnight": (0, 1440)}
_HALF_DAY = 720
"""Minutes between a time in the morning and the same time in the afternoon."""
# Matches times in words: "half past two", "ten to five", "two o'clock". The number alone ("two")
# matches as well and is skipped, because only `part` or `clock` makes it a time.
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
    """Yield the times of day in a text: "02:10" is 130 minutes, "2:30" may be 150 or 870."""
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
            continue  # "14.30" is read as a number and, by `possible_times`, as a time
        if match["h4"] and not _BEFORE_TIME.search(text, max(0, match.start() - 12), match.start()):
            continue  # without a word such as "at", "14h" is a duration: "it took 14h"
        written = match["h"] or match["h2"] or match["h3"] or match["h4"] or ""
        # Nobody writes "02:10" or "14:30" for an hour of the 12-hour clock.
        sure = bool(match["military"]) or written.startswith("0") or hour > 12
        yield TimeMention(
            match.start(), match.end(), _possible_minutes(hour, minute, half, sure=sure)
        )
    for match in _SPOKEN.finditer(text):
        if match["part"] or match["clock"]:
            apart = _PARTS[match["part"].lower()] if match["part"] else 0
            apart = -apart if match["part"] and match["side"].lower() == "to" else apart
            at = 60 * _HOURS[match["hour"].lower()] + apart
            yield TimeMention(match.start(), match.end(), (at, (at + _HALF_DAY) % (2 * _HALF_DAY)))


# Matches "2.30" and "14.30" but not "2.75" or "25.30".
_DOTTED = re.compile(r"([01]?\d|2[0-3])\.([0-5]\d)")


def possible_times(text: str, start: int, end: int) -> tuple[int, ...]:
    """Return the possible times of a number with a point, such as "2.30" in "at 2.30".

    Returns:
        Minutes since midnight, the likeliest first. Empty if `text[start:end]` isn't a time, or if
        no word such as "at" or "from" is before it.

    """
    found = _DOTTED.fullmatch(text, start, end)
    if found is None or not _BEFORE_TIME.search(text, max(0, start - 12), start):
        return ()
    return _possible_minutes(
        int(found[1]), int(found[2]), "", sure=found[1].startswith("0") or int(found[1]) > 12
    )


def _possible_minutes(hour: int, minute: int, half: str, *, sure: bool) -> tuple[int, ...]:
    """Return the possible readings of a time in minutes since midnight.

    ``half`` is "a" for am, "p" for pm, or empty. ``sure`` is true on the 24-hour clock.
    """
    if half:
        return (60 * (hour % 12 + (12 if half == "p" and hour <= 12 else 0)) + minute,)
    at = 60 * hour + minute
    return (at,) if sure else (at, (at + _HALF_DAY) % (2 * _HALF_DAY))

"""The checkable facts of a text: numbers with units, times of day, dates, names; with offsets.

How two of them compare is in `facts`. Negations and directions are in `polarity`: they need the sentence around
them.
"""

import re
from bisect import bisect_left
from collections.abc import Collection, Sequence
from typing import Literal, NamedTuple

from masis.offline.parsing.units import CURRENCIES, MAGNITUDES, MONTHS, UNITS
from masis.offline.text.tokens import NUMBER_WORDS, ORDINAL_WORDS, STOPWORDS, WEAK_WORDS, Token, stem, tokens

# Numbers written in words: cardinals, fractions, and how often.


def spelt_number(words: Sequence[Token], i: int) -> tuple[float | None, int]:
    """The number written in words at `i` and where it ends: "twenty-five million" -> (25e6, i + 3)."""
    lower = words[i].text.lower()
    if lower == "dozen":
        return 12.0, i + 1
    if lower not in NUMBER_WORDS:
        return None, i
    first, total, value, scaled = i, 0.0, 0.0, False
    while i < len(words):
        lower = words[i].text.lower()
        tens = i + 1 < len(words) and words[i + 1].text.lower() in NUMBER_WORDS
        joined = lower == "and" and tens and words[i - 1].text.lower() == "hundred"
        part = NUMBER_WORDS.get(lower)
        if part is not None and (i == first or value == 0 or value % 100 == 0 or (value % 10 == 0 and 1 <= part <= 9)):
            value, i = value + part, i + 1
        elif i > first and lower == "hundred":
            value, i, scaled = value * 100, i + 1, True
        elif i > first and len(lower) > 2 and lower in MAGNITUDES:
            total, value, i, scaled = total + value * MAGNITUDES[lower], 0.0, i + 1, True
        elif joined:
            i += 1
        else:
            break
    value += total
    if value == 1 and not scaled:  # "one" alone is a pronoun more often than a count
        return None, i
    return value, i


_PERIODS = frozenset("quarter half century decade year season edition round floor stage phase chapter term".split())
"""What an ordinal in words tells apart: "the third quarter", not "the second"."""


def spelt_ordinal(words: Sequence[Token], i: int) -> float | None:
    """The place in an order that a word names before what is counted so: "third quarter" -> 3."""
    value = ORDINAL_WORDS.get(words[i].text.lower())
    following = words[i + 1].text.lower() if i + 1 < len(words) else ""
    return float(value) if value is not None and following in _PERIODS else None


OFTEN = {"once": 1.0, "twice": 2.0, "thrice": 3.0}
"""Words that count occasions, as "three times" does."""
_PARTS = {"half": 2, "third": 3, "thirds": 3, "quarter": 4, "quarters": 4, "fifth": 5, "fifths": 5, "tenth": 10}
_COUNTED = {"a": 1, "one": 1, "two": 2, "three": 3, "four": 4}


NUMERAL_STARTS = frozenset({*NUMBER_WORDS, *ORDINAL_WORDS, *OFTEN, *_COUNTED, "dozen", "half", "quarter"})
"""Words at which a number may begin."""


def spelt_share(words: Sequence[Token], i: int) -> tuple[float | None, int]:
    """The share written in words at `i`, in percent, and where it ends: "two thirds of" -> (66.7, i + 2)."""
    lower = words[i].text.lower()
    following = words[i + 1].text.lower() if i + 1 < len(words) else ""
    if lower in ("half", "quarter") and following == "of":
        return 100.0 / _PARTS[lower], i + 1
    behind = words[i + 2].text.lower() if i + 2 < len(words) else ""
    if lower in _COUNTED and following in _PARTS and behind == "of":
        return 100.0 * _COUNTED[lower] / _PARTS[following], i + 2
    return None, i


FactKind = Literal["number", "date", "name"]


class Day(NamedTuple):
    """A date as far as it is given: year, month, day, each 0 where it isn't."""

    year: int
    month: int = 0
    day: int = 0


class Fact(NamedTuple):
    """A fact of a text: `text[start:end]`, its value (in the base unit of its dimension), and the noun it counts.

    `value` is the number in base units, the `Day` of a date, or the stems of a name. `dimension` is "percent",
    "length",
    "money:usd", ...; "" for a bare number, whose `head` is the stem of the word that follows ("3 hulls" -> "hull").
    """

    kind: FactKind
    start: int
    end: int
    text: str
    value: float | Day | tuple[str, ...]
    dimension: str = ""
    head: str = ""
    digits: int = 0


_DAYS = frozenset("monday tuesday wednesday thursday friday saturday sunday".split())
_MONTH = "(?:" + "|".join(sorted(MONTHS, key=len, reverse=True)) + r")\b\.?"
_YEAR = r"(?:1\d{3}|20\d{2})"
_DATES = re.compile(
    rf"\b(?P<iso>{_YEAR}-\d\d-\d\d)\b"
    rf"|\b(?P<d1>\d\d?)(?:st|nd|rd|th)?\s(?:of\s)?(?P<m1>{_MONTH}),?(?:\s(?P<y1>{_YEAR})\b)?"
    rf"|\b(?P<m2>{_MONTH})\s(?P<d2>\d\d?)(?:st|nd|rd|th)?\b(?!\s?[%$€])(?:,?\s(?P<y2>{_YEAR})\b)?"
    rf"|\b(?P<m3>{_MONTH}),?\s(?P<y3>{_YEAR})\b"
    rf"|\b(?:in|since|until|by|during|of|early|late|last|next)\s(?P<m4>{_MONTH})(?!\s\d)"
    rf"|(?<![\w.,$€£-])(?P<y4>{_YEAR})(?P<decade>s)?(?![\w%]|[.,]\d)",
    re.IGNORECASE,
)
_DATE_LEADS = frozenset("in since by until till during circa before after late early mid year fy fiscal".split())

_NUMBER = re.compile(
    r"(?<![\w.])(?P<currency>us\$|[$€£¥₹]|\b(?:usd|eur|gbp|nok|sek|dkk|chf|jpy|inr|cad|aud|cny)\s)?"
    r"(?P<number>\d++(?:,\d{3}(?!\d))*+(?:\.\d++)?+)(?P<ordinal>st|nd|rd|th)?(?![\d_])",
    re.IGNORECASE,
)
_AFTER = re.compile(r"[\s\u00a0-]?(?P<word>percentage points?|per cent|km/h|[°µμ]?[^\W\d_]+|%)")
_RANGE = re.compile(r"\s?(?:-|–|to|and|or|of|of the)\s?")
_PLAIN = re.compile(r"\D{0,4}[\d.,]+")
_NEXT_WORD = re.compile(r"[\s\u00a0-]([^\W\d_]++)")
_CLAUSE_START = re.compile(r"(?:^|[.!?:\n\"“(•*])[\s\"“'(•*-]{0,4}$")
_TITLES = frozenset(
    map(
        stem,
        """
        mr mrs ms dr prof professor councillor judge justice king queen president minister mayor captain sir lord lady
        senator general marshal bishop father sister chief director chairman chairwoman
        """.split(),
    )
)
"""Words before a name that many bear."""
_CONTRACTION = re.compile(r"i['’]")
_JOINERS = frozenset("of de la van von der del di al for the and".split())


def extract(text: str, known_names: Collection[str] = (), words: Sequence[Token] | None = None) -> list[Fact]:
    """The facts of `text`, in order. `known_names` are words (as written) that are names even where a sentence
    starts.
    """
    words = tokens(text) if words is None else words
    found: list[Fact] = []
    if any(word.text[0].isdigit() or word.text.lower() in MONTHS for word in words):
        found = _dates(text)
    taken = [(fact.start, fact.end) for fact in found]
    if any(word.text[0].isdigit() for word in words):
        clock = _clock_times(text)
        found += clock
        taken = sorted(taken + [(fact.start, fact.end) for fact in clock])
        found += _digit_numbers(text, taken)
    found += _word_numbers(text, words)
    taken = sorted((fact.start, fact.end) for fact in found)
    found += [name for name in _names(text, words, known_names) if not _overlaps(name.start, name.end, taken)]
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
            found.append(Fact("date", start, start + len(written), written, day, dimension))
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
    for i in range(len(found) - 2, -1, -1):  # "6 to 8%", "$205 to $215 million": the unit of the second belongs to both
        here, after = found[i], found[i + 1]
        open_ended = here.dimension in ("", after.dimension) and _PLAIN.fullmatch(here.text)
        if (
            open_ended
            and (after.dimension or _scale(text, after) > 1)
            and _RANGE.fullmatch(text[here.end : after.start])
        ):
            assert isinstance(here.value, float)
            found[i] = here._replace(dimension=after.dimension, value=here.value * _scale(text, after), head=after.head)
    return found


_CLOCK = re.compile(r"(?<![\w.:])([01]?\d|2[0-3])[:.h]([0-5]\d)(?![\d:.%])")


def _clock_times(text: str) -> list[Fact]:
    """Times of day, in minutes: "02:10"."""
    return [
        Fact("number", m.start(), m.end(), m.group(), 60.0 * int(m[1]) + int(m[2]), "clock")
        for m in _CLOCK.finditer(text)
        if ":" in m.group() or text[m.end() : m.end() + 5].strip().lower().startswith(("a.m", "p.m", "am", "pm"))
    ]


def _scale(text: str, fact: Fact) -> float:
    number = re.search(r"[\d,.]*\d", fact.text)
    plain = float(number.group().replace(",", "")) if number else 0.0
    assert isinstance(fact.value, float)
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
    found, i = [], 0
    while i < len(words):
        start = i
        if words[i].text.lower() not in NUMERAL_STARTS:
            i += 1
            continue
        share, i = spelt_share(words, i)
        if share is not None:
            begin, end = words[start].start, words[i - 1].end
            found.append(Fact("number", begin, end, text[begin:end], share, "percent", _head(text, end)))
            continue
        ordinal = spelt_ordinal(words, i)
        if ordinal is not None:
            begin, end = words[i].start, words[i].end
            found.append(Fact("number", begin, end, text[begin:end], ordinal, "ordinal", _head(text, end)))
        often = OFTEN.get(words[i].text.lower())
        if often is not None:
            found.append(Fact("number", words[i].start, words[i].end, words[i].text, often, "", "time"))
        value, i = spelt_number(words, i)
        if value is None:
            i = start + 1
            continue
        end, dimension = words[i - 1].end, ""
        if i < len(words) and words[i].text.lower() in UNITS and len(words[i].text) > 2:
            dimension, factor = UNITS[words[i].text.lower()]
            value, end = value * factor, words[i].end
        elif [word.text.lower() for word in words[i : i + 2]] == ["per", "cent"]:
            dimension, end = "percent", words[i + 1].end
        begin = words[start].start
        found.append(Fact("number", begin, end, text[begin:end], value, dimension, _head(text, end)))
    return found


def _names(text: str, words: Sequence[Token], known: Collection[str]) -> list[Fact]:
    found: list[Fact] = []
    run: list[Token] = []
    for i, word in enumerate(words):
        joined = bool(run) and _joins(text[run[-1].end : word.start], run[-1])
        if joined and word.text.islower():
            following = words[i + 1] if i + 1 < len(words) else None
            keep = word.text in _JOINERS and word.text != "and" and following is not None and _capital(following)
            if keep:
                run.append(word)
                continue
        if run and not (joined and _capital(word)):
            found += _name(text, run, known)
            run = []
        if _capital(word):
            run.append(word)
    return found + (_name(text, run, known) if run else [])


def _joins(gap: str, last: Token) -> bool:
    return (
        gap in (" ", "-", "&", " & ", "'", "’", "\u00a0")
        or (gap == ". " and len(last.text) <= 2)
        or (gap == "." and len(last.text) == 1)
    )


def _capital(word: Token) -> bool:
    lower = word.text.lower()
    return (
        word.text[0].isupper()
        and not _CONTRACTION.match(lower)
        and lower not in _DAYS
        and (lower not in MONTHS or lower == "may")
    )


def _name(text: str, run: list[Token], known: Collection[str]) -> list[Fact]:
    starts_sentence = bool(_CLAUSE_START.search(text[max(0, run[0].start - 6) : run[0].start]))
    skip = 0
    while skip < len(run) and (run[skip].weight == 0.0 or run[skip].text == "May"):
        skip += 1
    if skip:
        run, starts_sentence = run[skip:], False
    if not run:
        return []
    first = run[0].text
    if starts_sentence and len(run) == 1 and first not in known and not first.isupper():
        return []
    if starts_sentence and len(run) > 1 and first not in known and first.lower() in WEAK_WORDS:
        run = run[1:]
    if len(run) == 1 and (run[0].text.lower() in WEAK_WORDS or _abbreviates(text, run[0])):
        return []
    value = tuple(word.stem for word in run if word.weight > 0)
    value = tuple(root for root in value if root not in _TITLES) or value
    return [Fact("name", run[0].start, run[-1].end, text[run[0].start : run[-1].end], value)] if value else []


def _abbreviates(text: str, word: Token) -> bool:
    # "the cardiothoracic ratio (CTR)": the abbreviation of what was just named is no name of its own.
    return (
        word.text.isupper()
        and text[max(0, word.start - 1) : word.start] == "("
        and text[word.end : word.end + 1] == ")"
    )

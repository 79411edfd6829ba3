"""Extracts the checkable facts of a text and compares two of them.

Facts are numbers with units, times of day and dates, each with offsets. Two facts may agree,
contradict each other, or look like an alteration of one another. "67 million" differs from "67".
"5 May 2021" agrees with "May 2021" and "2021-05-05", "3 years" with "36 months", and "12.500" with
both "12,500" and "12.5". A percentage never contradicts a length.
"""

import re
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import Literal, NamedTuple

from masis.offline.parsing.dates import DateMention, Day, dates, possible_times, times_of_day
from masis.offline.parsing.numerals import (
    NO_BREAK,
    NUMERAL,
    DigitNumeral,
    has_comma_decimals,
    read_numeral,
)
from masis.offline.parsing.units import (
    CURRENCIES,
    MAGNITUDES,
    MONEY_MAGNITUDES,
    MONTHS,
    TEMPERATURES,
    read_unit,
    unit_of,
)
from masis.offline.text.number_words import (
    NUMERAL_STARTS,
    read_odds,
    read_ordinal,
    read_quantity,
    read_share,
    read_year,
)
from masis.offline.text.tokens import STOPWORDS, Token, stem, tokens

FactKind = Literal["number", "date"]


class Fact(NamedTuple):
    """A number or date found at `text[start:end]`.

    Attributes:
        value: The number in the base unit of its dimension, or 0 for a date.
        dimension: The measured quantity: "percent", "length", "money:usd", "date" and so on. Empty
            for a bare number.
        head: The stem of the noun that is counted ("3 hulls" -> "hull").
        digits: The number of written decimals.
        day: The date, if the fact is one.
        scale: The value of a written 1 in base units: 1e6 for "3 million".
        others: Other readings of the same characters. "12.500" is twelve and a half, or twelve
            thousand five hundred.
        is_share: Whether the text calls a number below 1 a share ("a share of 0.07"). Such a number
            is compared with percentages.

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
    scale: float = 1.0
    others: tuple["Fact", ...] = ()
    is_share: bool = False

    @property
    def readings(self) -> tuple["Fact", ...]:
        """All readings of the fact, the likeliest first."""
        return (self, *self.others) if self.others else (self,)

    @property
    def negative(self) -> bool:
        """Whether the number is below zero."""
        return self.value < 0


# Currency words and codes, the longest first, so that "euros" isn't read as "euro".
_CODES = "|".join(
    sorted((re.escape(word) for word in CURRENCIES if word.isalpha()), key=len, reverse=True)
)
# Matches "$", "US$", "€" and the other currency signs.
_SIGNS = r"(?:us|au|ca|nz|hk|[acrs])?\$|[€£¥₹₩₽]"
_SPACE = rf"[ {NO_BREAK}]"
# Matches a number in digits with its sign, bracket and currency: "-3", "$1.5", "EUR 20", "(12.4",
# "3rd". It doesn't match digits in a word or identifier ("x86", "12_3"), or the 3 in "1.2.3". A
# dash with a space after it ("- 3") isn't part of the number.
_NUMBER = re.compile(
    rf"(?<![\w.,·])(?P<minus>[-−–~]?[-−–]|\bminus\s)?(?P<bracket>\()?"
    rf"(?P<currency>(?<![a-z])(?:{_SIGNS}){_SPACE}?"
    rf"|\b(?:{_CODES})\.?{_SPACE}?)?(?P<bracket2>\()?(?P<inner>[-−–])?"
    rf"(?P<number>{NUMERAL})(?P<ordinal>st|nd|rd|th)?(?![\d_])",
    re.IGNORECASE,
)
# Matches "24/7" and "24/7/365", which mean "always" and aren't figures. "24/7.5" doesn't match.
_TWENTY_FOUR_SEVEN = re.compile(r"(?<![\d/.,])24\s?/\s?7(?:\s?/\s?365)?(?![\d/]|[.,]\d)")
# Matches the word after a number, with an optional space or hyphen: "million" in "5-million".
# Spaces around the hyphen are allowed because some datasets store text as tokens joined by spaces:
# "$ 10 - million - per - year".
_MAGNITUDE = re.compile(rf"(?:{_SPACE}?-{_SPACE}?|{_SPACE})?(?P<word>[^\W\d_]++)\.?(?=\W|$)")
# Matches the sign or word after a number: "€" in "5 €", "dollars" in "5 dollars". It matches any
# word; the caller looks it up in CURRENCIES.
_WORD_AFTER_NUMBER = re.compile(rf"{_SPACE}?(?P<word>{_SIGNS}|[^\W\d_]++)", re.IGNORECASE)
# Matches the words before a share: "a share of 0.07", "the proportion of faulty parts was 0.07".
# It doesn't match "the share price was 0.07" or "the share fell by 0.07".
_SHARE_BEFORE = re.compile(
    r"\b(?:share|proportion|fraction)(?:\sof(?:\s[^\W\d_]+){1,6}?)?\s(?:of|is|was|at)\s(?:about\s"
    r"|only\s)?$",
    re.IGNORECASE,
)
_SHARE_LOOK_BACK = 90
"""Characters before a number that are searched for such words."""
# Matches what may be between two numbers that share a unit: "6-8%", "6 to 8%", "3 of the 4 cm".
_RANGE = re.compile(r"\s?(?:-|–|to|and|or|of|of the|by|x|×)\s?")
# Matches a number without a magnitude or unit of its own: "6", "$205", but not "6 kg".
_PLAIN = re.compile(r"\D{0,4}[\d.,]+")
# Matches the next word, after a space or hyphen: "hulls" in "3 hulls" and "3-hulls".
_NEXT_WORD = re.compile(r"[\s\u00a0-]([^\W\d_]++)")
# Matches a quarter or half of a financial year: "Q3", "H1". "Q5" and "H3" don't match.
_QUARTERS = re.compile(r"\b(?:(?P<q>Q[1-4])|(?P<h>H[12]))(?![\w])")


def extract(text: str, words: Sequence[Token] | None = None) -> list[Fact]:
    """Return the facts of a text, in order.

    Args:
        text: The text.
        words: The tokens of the text, if the caller has them already.

    """
    words = tokens(text) if words is None else words
    digits = any(map(str.isnumeric, text))
    facts: list[Fact] = []
    if digits or any(word.text.lower() in MONTHS for word in words):
        facts = [_date_fact(text, mention) for mention in dates(text)]
    facts += _without_overlaps(_clock_times(text), facts)
    facts += _without_overlaps(_word_numbers(text, words), facts)
    if digits:
        facts += _without_overlaps(_quarters(text), facts)
        facts += _digit_numbers(text, sorted((fact.start, fact.end) for fact in facts))
    return _join_measures(text, sorted(facts, key=lambda fact: fact.start))


# Matches what is between the two parts of one measure: "2 hours and 40 seconds", "5 ft 10 in".
_BETWEEN_UNITS = re.compile(r"(?:,? and |, | )")
_INCHES = re.compile(r"(?:ft|foot|feet) (?:and )?(?P<inches>\d{1,2})(?P<unit> in\b)", re.IGNORECASE)
"""Matches inches after feet ("5 ft 10 in"). Only there is "in" a unit and not a preposition."""


def _join_measures(text: str, facts: Sequence[Fact]) -> list[Fact]:
    """Join measures in two units into one fact: "2 hours and 40 seconds", "5 ft 10 inches"."""
    joined: list[Fact] = []
    for fact in facts:
        last = joined[-1] if joined else None
        inches = (
            _INCHES.search(text, last.start, fact.end + 3)
            if last and last.dimension == "length"
            else None
        )
        if inches and inches.start("inches") == fact.start:
            value, inch = 0.0254 * fact.value, 0.0254
            fact = fact._replace(value=value, dimension="length", scale=inch, end=inches.end())
        if (
            last is not None
            and last.dimension == fact.dimension in ("duration", "months", "length", "mass")
            and fact.scale < last.scale
            and not last.digits
            and not (last.others or fact.others)
            and abs(fact.value) < last.scale
            and _BETWEEN_UNITS.fullmatch(text, last.end, fact.start)
        ):
            value = last.value + fact.value
            joined[-1] = fact._replace(
                start=last.start, text=text[last.start : fact.end], value=value
            )
        else:
            joined.append(fact)
    return joined


def _without_overlaps(candidates: Iterator[Fact], taken: Sequence[Fact]) -> list[Fact]:
    """Return the candidates that don't overlap a fact that was found earlier."""
    spans = sorted((fact.start, fact.end) for fact in taken)
    return [fact for fact in candidates if not _overlaps(fact.start, fact.end, spans)]


def _overlaps(start: int, end: int, spans: Sequence[tuple[int, int]]) -> bool:
    # The spans are sorted and don't overlap each other, so only the last one that starts before
    # `end` can overlap.
    i = bisect_left(spans, (end, 0))
    return i > 0 and spans[i - 1][1] > start


def _date_fact(text: str, mention: DateMention) -> Fact:
    dimension = "decade" if mention.decade else "date"
    start, end, (day, *others) = mention.start, mention.end, mention.days
    fact = Fact("date", start, end, text[start:end], 0.0, dimension, day=day)
    readings = [fact._replace(day=other) for other in others]
    if mention.unsure:
        readings += _digit_numbers(text, (), start, end)[:1]
    return fact._replace(others=tuple(readings))


def _clock_times(text: str) -> Iterator[Fact]:
    """Yield the times of day, in minutes since midnight: "02:10" is 130."""
    for mention in sorted(times_of_day(text)):
        start, end, (minutes, *others) = mention
        fact = Fact("number", start, end, text[start:end], float(minutes), "clock")
        readings = [fact._replace(value=float(other)) for other in others]
        if _HOURS.match(text, end):  # a duration: "it took 2:30 hours"
            readings.append(fact._replace(value=60.0 * minutes, dimension="duration"))
        yield fact._replace(others=tuple(readings))


_HOURS = re.compile(r"\s?(?:hours|hrs|h)\b", re.IGNORECASE)


def _quarters(text: str) -> Iterator[Fact]:
    for match in _QUARTERS.finditer(text):
        head = "quarter" if match["q"] else "half"
        yield Fact(
            "number",
            match.start(),
            match.end(),
            match.group(),
            float(match.group()[1]),
            "ordinal",
            head,
        )


def _digit_numbers(
    text: str, taken: Sequence[tuple[int, int]], first: int = 0, last: int | None = None
) -> list[Fact]:
    comma_decimals = has_comma_decimals(text)
    facts: list[Fact] = []
    for match in _NUMBER.finditer(text, first, len(text) if last is None else last):
        start, end = match.span("number")
        # `read_numeral` has already read the 10 of "1.2 × 10^6" as part of the 1.2.
        is_inside_previous = bool(facts) and start < facts[-1].end
        if not is_inside_previous and not _overlaps(start, end, taken) and end - start < 25:
            numeral = read_numeral(text, match, comma_decimals=comma_decimals)
            facts.append(_measure_fact(text, match, numeral))
    if excluded_spans := [
        (match.start(), match.end()) for match in _TWENTY_FOUR_SEVEN.finditer(text)
    ]:
        facts = [fact for fact in facts if not _overlaps(fact.start, fact.end, excluded_spans)]
    # In "6 to 8%" and "$205 to $215 million", the unit or magnitude of the second number belongs
    # to both.
    for i in range(len(facts) - 2, -1, -1):
        number_fact, next_fact = facts[i], facts[i + 1]
        open_ended = (
            number_fact.dimension in ("", next_fact.dimension)
            and _PLAIN.fullmatch(number_fact.text) is not None
        )
        between = text[number_fact.end : next_fact.start]
        # In "$5-10 million", the currency of the first number belongs to both as well.
        if (
            number_fact.dimension.startswith("money")
            and not next_fact.dimension
            and _RANGE.fullmatch(between)
        ):
            facts[i + 1] = next_fact = next_fact._replace(dimension=number_fact.dimension)
            open_ended = number_fact.scale == 1
        if (
            open_ended
            and (next_fact.dimension or next_fact.scale > 1)
            and _RANGE.fullmatch(between)
        ):
            facts[i] = _with_unit_of(number_fact, next_fact)
    return facts


def _with_unit_of(fact: Fact, model_fact: Fact) -> Fact:
    """Return a bare number with the dimension, magnitude and noun of another number."""
    factor = model_fact.scale / fact.scale

    def scale(reading: Fact) -> Fact:
        return reading._replace(
            dimension=model_fact.dimension,
            value=reading.value * factor,
            scale=model_fact.scale,
            head=model_fact.head,
            others=(),
        )

    return scale(fact)._replace(others=tuple(map(scale, fact.others)))


def _measure_fact(text: str, match: re.Match[str], numeral: DigitNumeral) -> Fact:
    start, end = match.start(), numeral.end
    if match["ordinal"]:
        end = match.end()
        noun = _head_noun(text, end)
        return Fact("number", start, end, text[start:end], numeral.value, "ordinal", noun)
    bracketed = bool(match["bracket"] or match["bracket2"]) and text[end : end + 1] == ")"
    if match["bracket"] and not bracketed:
        start = match.end("bracket")
    minus = match["minus"] or match["inner"] or ""
    if minus and not match["inner"] and not _is_minus(text, match.start("minus")):
        start, minus = match.end("minus"), ""
    currency_text = (match["currency"] or "").strip(f" .{NO_BREAK}").lower()
    dimension = f"money:{CURRENCIES[currency_text]}".rstrip(":") if currency_text else ""
    end += bracketed
    scale, end = _magnitude(text, end, money=bool(dimension))
    factor = 1.0
    if dimension:
        pass
    elif unit := read_unit(text, end):
        dimension, factor, end = unit
    elif (following := _WORD_AFTER_NUMBER.match(text, end)) and following[
        "word"
    ].lower() in CURRENCIES:
        dimension, end = (
            f"money:{CURRENCIES[following['word'].lower()]}".rstrip(":"),
            following.end(),
        )
    elif scale == 1 and (money := _money_letter(text, end)):
        scale, dimension, end = money
    scale *= factor
    sign = -1.0 if minus else 1.0
    fact = Fact(
        "number",
        start,
        end,
        text[start:end],
        sign * numeral.value * scale,
        dimension,
        _head_noun(text, end),
        numeral.decimals,
        scale=scale,
    )
    others = [fact._replace(value=sign * other * scale, digits=0) for other in numeral.others]
    if bracketed and not minus:
        # In accounts, "(12.4)" is a loss of 12.4. In prose it's a positive number in brackets.
        others = [*others, fact]
        fact = fact._replace(value=-fact.value)
    if not dimension and scale == 1:
        others += [
            Fact("number", start, end, text[start:end], float(minutes), "clock")
            for minutes in possible_times(text, start, end)
        ]
        if (letter := re.compile(r"[mM]\b").match(text, end)) is not None:  # "5M users"
            others.append(fact._replace(value=fact.value * 1e6, end=letter.end()))
        if (
            0 < fact.value < 1
            and not fact.head
            and _SHARE_BEFORE.search(text, max(0, start - _SHARE_LOOK_BACK), start)
        ):
            fact = fact._replace(is_share=True)
    elif dimension == "mass" and _POUNDS.search(text, start, end):
        others.append(fact._replace(value=numeral.value, dimension="money:gbp", scale=1.0))
    elif dimension == "length" and text[end - 1 : end] == "m" and text[end - 2 : end - 1].isdigit():
        # "5m" is five meters or five million.
        others.append(fact._replace(value=fact.value * 1e6, dimension=""))
    return fact._replace(others=tuple(others)) if others else fact


# Matches "pounds", which is a mass or British money.
_POUNDS = re.compile(r"pounds?$", re.IGNORECASE)


def _is_minus(text: str, position: int) -> bool:
    """Return whether a dash before a number is its sign.

    It's a sign only at the start of the text, or after a space, an opening bracket, a slash or a
    comparison. In "The trip - 5 km - is short", the number doesn't follow the dash directly, so
    `_NUMBER` doesn't match the dash.
    """
    return position == 0 or text[position - 1] in " \t\n(=<>≤≥~/[" + NO_BREAK


def _magnitude(text: str, end: int, *, money: bool) -> tuple[float, int]:
    """Return the factor in the words after a number, and the offset of their end.

    Examples are "1.5 thousand million" and "5.2k". The factor is 1 if there is none.
    """
    scale = 1.0
    # Two words at most: "thousand million".
    for _ in range(2):
        match = _MAGNITUDE.match(text, end)
        if match is None:
            break
        word = match["word"]
        times = MAGNITUDES.get(word.lower(), 0.0) if word.lower() not in ("k", "mm") else 0.0
        if not times and money:
            times = MONEY_MAGNITUDES.get(word.lower(), 0.0)
        attached = match.start("word") == end
        if not times and word in "kK" and (attached or money):
            times = 1e3
        if not times or (len(word) == 1 and not attached and word != "b" and not money):
            break
        scale *= times
        end = match.end("word")
        if text[end : end + 1] == "." and word.lower() in ("mrd", "mio", "mln", "bn"):
            end += 1
    return scale, end


# Matches a magnitude letter before a currency: "M$" in "890 M$", "m euros" in "890m euros". It
# doesn't match "m" alone, which is a meter.
_MONEY_LETTER = re.compile(
    rf"{_SPACE}?(?P<word>mm|[mbk]){_SPACE}?(?P<currency>{_SIGNS}|(?:{_CODES})\b)", re.IGNORECASE
)


def _money_letter(text: str, end: int) -> tuple[float, str, int] | None:
    """Return magnitude, dimension and end of the letter and currency after a number.

    Examples are "890 M$" and "890m euros". None if there is no such pair.
    """
    match = _MONEY_LETTER.match(text, end)
    if match is None:
        return None
    times = {**MONEY_MAGNITUDES, "k": 1e3}[match["word"].lower()]
    return times, f"money:{CURRENCIES[match['currency'].lower()]}".rstrip(":"), match.end()


def _head_noun(text: str, end: int) -> str:
    """Return the stem of the noun that a number counts, or an empty string.

    It's the first plural among the next three words, or else the last of these words before a
    function word. "3 new hulls" counts hulls.
    """
    head = ""
    for _ in range(3):
        match = _NEXT_WORD.match(text, end)
        if match is None or match[1].lower() in STOPWORDS:
            break
        head, end = stem(match[1]), match.end()
        if match[1].endswith("s"):
            break
    return head


def _word_numbers(text: str, words: Sequence[Token]) -> Iterator[Fact]:
    """Yield the numbers written in words, with the units after them."""
    lowers = [word.text.lower() for word in words]

    def fact(
        first: int, after: int, value: float, dimension: str = "", end: int = 0, scale: float = 1.0
    ) -> Fact:
        start, end = words[first].start, max(end, words[after - 1].end)
        return Fact(
            "number",
            start,
            end,
            text[start:end],
            value,
            dimension,
            _head_noun(text, end),
            scale=scale,
        )

    i = 0
    while i < len(words):
        word = lowers[i]
        if word not in NUMERAL_STARTS and not word[0].isdigit():
            if word == "fortnight":
                yield fact(i, i + 1, 14 * 86400.0, "duration", scale=86400.0)
            i += 1
            continue
        number = None if word[0].isdigit() else read_quantity(lowers, i)
        part_of_scale = number is not None and number.scaled and lowers[i + 1 : i + 2] != ["of"]
        share = None if part_of_scale else read_odds(lowers, i) or read_share(lowers, i)
        if share is not None:
            yield fact(i, share[1], share[0], "percent")
            i = share[1]
            continue
        if word[0].isdigit():
            i += 1
            continue
        if (ordinal := read_ordinal(lowers, i)) is not None:
            yield fact(i, i + 1 + (word not in _ORDINALS), ordinal, "ordinal")
            i += 1 + (word not in _ORDINALS)
            # In "the second quarter of", the quarter isn't a share.
            i += lowers[i : i + 1] in (["quarter"], ["half"])
            continue
        if (year := read_year(lowers, i)) is not None:
            read = fact(i, year[1], float(year[0]))
            yield read._replace(
                kind="date", value=0.0, dimension="date", day=Day(year[0]), others=(read,)
            )
            i = year[1]
            continue
        if (longer := _unit_and_a_half(lowers, i)) is not None:
            yield fact(i, i + 5, longer[1], longer[0])
            i += 5
            continue
        if number is None and (part := _part_of_unit(lowers, i)):
            value, after = part
            dimension, factor = unit_of(lowers[after]) or ("", 1.0)
            yield fact(i, after + 1, value * factor, dimension, scale=factor)
            i = after + 1
            continue
        if number is None:
            i += 1
            continue
        after, end = number.after, words[number.after - 1].end
        unit = read_unit(text, end) if after < len(words) and len(words[after].text) > 2 else None
        measured = unit is not None and unit.dimension not in ("duration", "months")
        if number.value == 1 and not number.scaled and not measured:
            i += 1  # "one" is usually a pronoun, and "one day" usually a time
            continue
        if unit and unit.end > end + 2:
            while after < len(words) and words[after].end <= unit.end:
                after += 1
            yield fact(i, after, number.value * unit.factor, unit.dimension, unit.end, unit.factor)
        elif after < len(words) and lowers[after] in CURRENCIES and len(lowers[after]) > 2:
            after += 1
            yield fact(i, after, number.value, f"money:{CURRENCIES[lowers[after - 1]]}".rstrip(":"))
        else:
            yield fact(i, after, float(number.value))
        i = after


_ORDINALS = frozenset(
    "first second third fourth fifth sixth seventh eighth ninth tenth eleventh twelfth".split()
)
_HALF = {"half": 0.5, "quarter": 0.25}


def _unit_and_a_half(lowers: Sequence[str], i: int) -> tuple[str, float] | None:
    """Return the dimension and value of "an hour and a half", or None for other words."""
    if lowers[i] not in ("a", "an", "one") or lowers[i + 2 : i + 5] != ["and", "a", "half"]:
        return None
    unit = unit_of(lowers[i + 1])
    return (unit[0], 1.5 * unit[1]) if unit and len(lowers[i + 1]) > 2 else None


def _part_of_unit(lowers: Sequence[str], i: int) -> tuple[float, int] | None:
    """Return the share of a unit and the index of the unit, or None.

    Examples are "half a year", "half an hour" and "quarter of a century".
    """
    if lowers[i] not in _HALF:
        return None
    after = i + 1
    after += lowers[after : after + 1] == ["of"]
    if lowers[after : after + 1] not in (["a"], ["an"]):
        return None
    after += 1
    unit = unit_of(lowers[after]) if after < len(lowers) and len(lowers[after]) > 2 else None
    return (_HALF[lowers[i]], after) if unit else None


# Comparing two facts

_SAME_QUANTITY = ({"duration", "months"}, {"celsius", "fahrenheit"}, {"celsius", "kelvin"})
"""Pairs of dimensions that measure one quantity, so that "23 days" contradicts "23 months"."""


def comparable(claim: Fact, other: Fact) -> bool:
    """Return whether two facts could contradict each other.

    They need the same dimension. Bare numbers need the same noun, or the look of an alteration.
    """
    if claim.kind != other.kind:
        return False
    if claim.dimension != other.dimension:
        return {claim.dimension, other.dimension} in _SAME_QUANTITY and _has_same_numeral(
            claim, other
        )
    if claim.kind == "date":
        return any(
            part and other_part for part, other_part in zip(claim.day, other.day, strict=True)
        )
    if claim.dimension == "ordinal":
        return claim.head == other.head != ""
    if claim.kind == "number" and not claim.dimension:
        has_same_noun = bool(claim.head) and claim.head == other.head
        return (
            has_same_noun
            or (claim.digits > 0 and other.digits > 0)
            or likeness(claim, other) >= 0.8
        )
    return True


def likeness(claim: Fact, other: Fact) -> float:
    """Return how much one fact looks like an alteration of the other, from 0 to 1.

    1 means the same digits in any order ("41.2" and "14.2"), or day and month exchanged. 0.8 means
    one other digit among four or more, one other part of a date, or the same numeral in words with
    another unit ("two weeks", "two months"). 0.5 means one digit more or less, or one other digit
    among two or three.
    """
    if claim.kind == "date":
        return _date_likeness(claim.day, other.day)
    digits, other_digits = _digits(claim.text), _digits(other.text)
    if claim.value == other.value:
        return 0.0
    if len(digits) > 1 and sorted(digits) == sorted(other_digits):
        return 1.0
    if claim.dimension and other.dimension and _has_same_numeral(claim, other):
        return 0.8
    if not digits or not other_digits:
        return 0.0
    shorter, longer = sorted((digits, other_digits), key=len)
    if len(longer) - len(shorter) == 1 and any(
        longer[:index] + longer[index + 1 :] == shorter for index in range(len(longer))
    ):
        return 0.5
    if (
        len(digits) == len(other_digits) > 1
        and sum(
            digit != other_digit for digit, other_digit in zip(digits, other_digits, strict=True)
        )
        == 1
    ):
        return 0.8 if len(digits) > 3 else 0.5
    return 0.0


def _has_same_numeral(claim: Fact, other: Fact) -> bool:
    """Return whether two measures differ in the unit only: "23 days" and "23 weeks"."""
    return (
        claim.text.lower().split()[0] == other.text.lower().split()[0]
        and len(claim.text.split()) > 1
    )


def is_comparison_label(text: str, fact: Fact) -> bool:
    """Return whether a date only labels a figure given for comparison.

    An example is the year in "1,912 million (2022: 1,704 million)".
    """
    before, after = (
        text[max(0, fact.start - 2) : fact.start].strip(),
        text[fact.end : fact.end + 2].strip(),
    )
    return fact.kind == "date" and before[-1:] in ("(", ";", ",") and after[:1] == ":"


def _date_likeness(day: Day, other_day: Day) -> float:
    if day.day and other_day.day and (day.month, day.day) == (other_day.day, other_day.month):
        return 1.0
    both_stated = [
        (part, other_part)
        for part, other_part in zip(day, other_day, strict=True)
        if part and other_part
    ]
    same = sum(part == other_part for part, other_part in both_stated)
    if len(both_stated) >= 2:
        return 0.8 if same == len(both_stated) - 1 else 0.3 * same
    year, other_year = str(day.year), str(other_day.year)
    return (
        0.8
        if sorted(year) == sorted(other_year)
        else 0.4
        * (sum(part != other_part for part, other_part in zip(year, other_year, strict=False)) == 1)
    )


@lru_cache(maxsize=16384)
def _digits(text: str) -> str:
    return re.sub(r"\D", "", text)


def agree(claim: Fact, other: Fact) -> bool:
    """Return whether two facts agree in at least one reading of each.

    Numbers agree if they are equal, or if `other` rounded to the claim's decimals is equal. Dates
    agree if the parts that both state are equal.
    """
    if not claim.others and not other.others:
        return _facts_agree(claim, other)
    return any(
        _facts_agree(reading, other_reading)
        for reading in claim.readings
        for other_reading in other.readings
    )


def _facts_agree(claim: Fact, other: Fact) -> bool:
    if claim.kind != other.kind:
        return False
    if claim.kind == "date":
        both_stated = [
            (part, other_part)
            for part, other_part in zip(claim.day, other.day, strict=True)
            if part and other_part
        ]
        return bool(both_stated) and all(part == other_part for part, other_part in both_stated)
    if claim.is_share and other.dimension == "percent":
        claim = _as_percent(claim)
    elif other.is_share and claim.dimension == "percent":
        other = _as_percent(other)
    value, other_value = claim.value, other.value
    if claim.dimension != other.dimension and claim.dimension and other.dimension:
        if not _has_same_quantity(claim.dimension, other.dimension):
            return False
        if claim.dimension in TEMPERATURES:
            value, other_value = to_celsius(claim), to_celsius(other)
            if abs(value - other_value) <= 0.5 * 10.0**-claim.digits:
                return True
    difference = abs(value - other_value)
    if difference <= _ROUNDING * max(abs(value), abs(other_value)):
        return True
    if claim.dimension == "percent" and not (claim.text[-1] == other.text[-1] == "%"):
        in_words = any(not any(map(str.isdigit, fact.text)) for fact in (claim, other))
        return difference <= ABOUT_SHARE and in_words
    return (
        other.digits > claim.digits and abs(value) >= 10 and difference <= 0.5 * 10.0**-claim.digits
    )


def _as_percent(share: Fact) -> Fact:
    return share._replace(
        value=share.value * 100, dimension="percent", digits=max(0, share.digits - 2)
    )


def to_celsius(fact: Fact) -> float:
    """Return a temperature in degrees Celsius."""
    factor, offset = TEMPERATURES[fact.dimension]
    return fact.value * factor + offset


def _has_same_quantity(dimension: str, other_dimension: str) -> bool:
    money = (
        dimension.startswith("money")
        and other_dimension.startswith("money")
        and "money" in (dimension, other_dimension)
    )
    return money or (dimension in TEMPERATURES and other_dimension in TEMPERATURES)


ABOUT_SHARE = 2.0
"""Percentage points by which a share in words may differ: "a third" agrees with 34%."""
_ROUNDING = 1e-6
"""Relative difference that is due to the arithmetic of floats, for example in unit conversions."""


def max_difference(value: float) -> float:
    """Return the largest difference from this number at which another can still agree with it."""
    return ABOUT_SHARE + 2 * _ROUNDING * abs(value)

"""Reads numbers written in digits and returns every possible value of each.

"12,500", "12 500" and "12'500" are the same number. "12.500" is twelve and a half, or twelve
thousand five hundred, and only the rest of the text can tell. What points and commas mean depends
on the language (the CLDR has "." for decimals in English and "," in German), but a quoted figure
keeps the notation of its source. The language of the text therefore isn't enough to decide.
"""

from __future__ import annotations

import re
from typing import NamedTuple

NO_BREAK = "\u00a0\u2007\u2009\u202f"
"""Blanks that group digits: no-break, figure, thin and narrow no-break space."""
_SUPERSCRIPTS = str.maketrans("⁰¹²³⁴⁵⁶⁷⁸⁹⁻⁺", "0123456789-+")
_FRACTIONS = {
    "½": 1 / 2, "⅓": 1 / 3, "⅔": 2 / 3, "¼": 1 / 4, "¾": 3 / 4, "⅕": 1 / 5, "⅖": 2 / 5,
    "⅗": 3 / 5, "⅘": 4 / 5,
    "⅙": 1 / 6, "⅚": 5 / 6, "⅛": 1 / 8, "⅜": 3 / 8, "⅝": 5 / 8, "⅞": 7 / 8,
}  # fmt: skip

# Possessive quantifiers (`++`) keep the scan linear on hostile input such as "1.1.1.1...". The
# alternatives, in order:
#   groups of three with the same separator ("1,234,567", "1'234.5")
#   groups split by a line break or a tool ("1, 234")
#   Indian groups ("12,34,567")
#   digits with optional decimals ("1234", "3.5", "3,5")
#   decimals without a leading zero (".5")
#   a fraction sign ("½")
NUMERAL = (
    r"(?:\d{1,3}(?P<group>[,.'’_"
    rf" {NO_BREAK}])\d{{3}}(?:(?P=group)\d{{3}})*+(?![\d_])(?:[.,·]\d++)?+"
    r"|\d{1,3}(?:, \d{3})++(?![\d,])"
    r"|\d{1,2}(?:,\d\d(?=,))++,\d{3}(?!\d)(?:\.\d++)?+"
    r"|\d++(?:[.,·]\d++)?+"
    r"|(?<![\d,·])[.·]\d++|[½⅓⅔¼¾⅕⅖⅗⅘⅙⅚⅛⅜⅝⅞])"
)
# Matches what multiplies a number by a power of ten: "e-5" in "3e-5", "× 10^6", "x 10⁶" and, from
# text that lost its superscript, "x 106". "e5x" doesn't match.
_EXPONENT = re.compile(
    r"[eE](?P<e>[+-]?\d{1,2})(?!\w)"
    r"|\s?[×xX*·⋅]\s?10(?:(?:\^|\*\*)\{?\(?(?P<caret>[-−–+]?\d{1,2})[)}]?"
    r"|(?P<super>[⁻⁺]?[⁰¹²³⁴⁵⁶⁷⁸⁹]{1,3})"
    r"|(?P<flat>\d{1,2})(?!\d))"
)
# Matches the power after a 10: "^6", "**6", "⁶". It's tried only after the numeral "10".
_POWER = re.compile(
    r"(?:(?:\^|\*\*)\{?\(?(?P<caret>[-−–+]?\d{1,2})[)}]?|(?P<super>[⁻⁺]?[⁰¹²³⁴⁵⁶⁷⁸⁹]{1,3}))"
)
# Matches a fraction after a whole number: "½" in "1½", " 1/2" in "1 1/2", " and a half". A date
# or path such as "1 1/2/2021" doesn't match.
_MIXED = re.compile(
    r"(?:\s?(?P<sign>[½⅓⅔¼¾⅕⅖⅗⅘⅙⅚⅛⅜⅝⅞])|\s(?P<top>\d)/(?P<bottom>[2-9])(?![\d/])|\s(?P<half>and a"
    r" half)\b)"
)


class DigitNumeral(NamedTuple):
    """A number in digits.

    `value` is its likeliest value and `others` are the other possible ones. `decimals` is the
    number of its decimals, and `end` the offset of its end.
    """

    value: float
    others: tuple[float, ...]
    decimals: int
    end: int


def read_numeral(text: str, match: re.Match[str], *, comma_decimals: bool = False) -> DigitNumeral:
    """Return the number that starts at a match of `NUMERAL`.

    Args:
        text: The text that was searched.
        match: A match with the numeral in the group "number". An exponent, a fraction ("1½") or a
            power ("10^6") after it is read as part of the number.
        comma_decimals: Whether the text writes decimals with a comma elsewhere ("3,5%").

    """
    written = match["number"]
    values, decimals = _possible_values(
        written, match["group"] or "", comma_decimals=comma_decimals
    )
    end = match.end("number")
    if exponent := _EXPONENT.match(text, end):
        power = exponent["e"] or exponent["caret"] or exponent["super"] or exponent["flat"]
        scaled = [value * _ten_to(power) for value in values]
        # "1.2 x 106" is 1.2 million if the text lost its superscript, or else a product.
        return DigitNumeral(
            scaled[0],
            (*scaled[1:], *(values if exponent["flat"] else ())),
            decimals,
            exponent.end(),
        )
    if written == "10" and (power := _POWER.match(text, end)):
        return DigitNumeral(_ten_to(power["caret"] or power["super"]), (), 0, power.end())
    if len(values) == 1 and not decimals and (mixed := _MIXED.match(text, end)):
        part = 0.5 if mixed["half"] else _FRACTIONS.get(mixed["sign"] or "", 0.0)
        if mixed["top"]:
            part = int(mixed["top"]) / int(mixed["bottom"])
        return DigitNumeral(values[0] + part, (), 1, mixed.end())
    return DigitNumeral(values[0], tuple(values[1:]), decimals, end)


def _ten_to(power: str) -> float:
    """Return ten to a power in digits, superscripts or with a typographic minus: "⁻⁶", "−6"."""
    return 10.0 ** int(power.translate(_SUPERSCRIPTS).replace("−", "-").replace("–", "-"))


def _possible_values(written: str, group: str, *, comma_decimals: bool) -> tuple[list[float], int]:
    """Return the possible values of a numeral, the likeliest first, and its number of decimals.

    ``group`` is the separator of its groups of three digits, if any.
    """
    if written in _FRACTIONS:
        return [_FRACTIONS[written]], 1
    if ", " in written:  # one number that was split, or a list of several numbers
        parts = written.split(", ")
        return [float("".join(parts)), *map(float, parts)], 0
    text = written.replace("·", ".")
    if group and group not in ",.":
        units, _, rest = re.sub(rf"[{re.escape(group)}]", "", text).replace(",", ".").partition(".")
        values = [float(f"{units}.{rest or 0}")]
        if group == " ":  # or two numbers: "the 12 500 watt lamps"
            head, _, tail = written.rpartition(" ")
            values += [float(re.sub(r"\D", "", head)), float(tail.replace(",", "."))]
        return values, len(rest)
    points, commas = text.count("."), text.count(",")
    if points and commas:
        point = max(".,", key=text.rfind)
        plain = text.replace("," if point == "." else ".", "").replace(point, ".")
        return [float(plain)], len(plain.partition(".")[2])
    if points > 1 or commas > 1:
        return [float(re.sub("[.,]", "", text))], 0
    if not points and not commas:
        return [float(text)], 0
    before, mark, after = text.partition("." if points else ",")
    with_decimals, whole = float(f"{before or 0}.{after}"), float(before + after)
    grouped = len(after) == 3 and 1 <= len(before) <= 3 and not before.startswith("0")
    if mark == "," and grouped:
        return ([with_decimals, whole], 3) if comma_decimals else ([whole], 0)
    if mark == "," and not comma_decimals and len(after) < 3:
        # "3,5" is three and a half, or a list of three and five.
        return [with_decimals, float(before), float(after)], len(after)
    return ([with_decimals, whole] if grouped else [with_decimals]), len(after)


# Matches a comma that can only be a decimal one, before a unit: "3,5%", "3,5 kg". It doesn't match
# "3,500 kg", which may have groups of three, or "3,5" at the end of a list.
_COMMA_DECIMALS = re.compile(
    r"(?<![\d.,])\d++,(?:\d{1,2}|\d{4,})(?![\d,])(?=\s?(?:%|[^\W\d_]|[€$£]))"
)
# Matches a point that can only be a decimal one: "1,234.5", "3.5". "3.500" doesn't match.
_POINT_DECIMALS = re.compile(
    r"(?<![\d.,])(?:\d{1,3}(?:,\d{3})++\.\d|\d++\.(?:\d\d?|\d{4,})(?![\d.]))"
)


def has_comma_decimals(text: str) -> bool:
    """Return whether a text writes decimals with a comma, and none with a point."""
    return "," in text and bool(_COMMA_DECIMALS.search(text)) and not _POINT_DECIMALS.search(text)

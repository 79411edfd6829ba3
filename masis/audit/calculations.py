"""Checks calculations given for a figure, such as "180 / 240 = 75%" or "12 of 48 is 25%".

Only plain arithmetic is read: the four operations, shares ("12 of 48"), percentages, and words for
thousands, millions and billions. Anything else is neither right nor wrong. The time is linear in
the text, and only numbers are evaluated.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from masis.audit.languages import MONTHS

LONGEST = 400
"""Maximum number of characters of a calculation that are read."""
CONSTANTS = (
    *range(1, 13), *(24, 28, 30, 31, 52, 60, 90, 100, 180, 360, 365, 366, 1_000, 1_024, 3_600),
    *(32, 1.8, 273.15),  # temperatures
    # lengths and speeds
    *(2.54, 30.48, 0.3048, 3.28084, 0.9144, 1.0936, 1.60934, 0.62137, 1.852, 3.6),
    *(0.453592, 2.20462, 28.3495, 0.0353, 6.35029),  # masses
    *(0.404686, 2.47105, 10.7639, 0.0929, 2.58999, 0.3861),  # areas
    *(3.78541, 0.264172, 4.54609, 0.219969, 0.473176, 29.5735),  # volumes
    # pressures, energies, powers
    *(14.5038, 6.89476, 1.01325, 101.325, 4.184, 0.239, 0.7457, 1.341),
)  # fmt: skip
"""Numbers that a calculation may use without evidence: calendars, per cent, small counts,
conversions.
"""
CONSTANT_TOLERANCE = 0.005
"""The allowed relative rounding error of a conversion factor."""

_SCALES = {
    **dict.fromkeys(("thousand", "tausend", "mille", "k"), 1e3),
    **dict.fromkeys(("million", "millions", "mio", "millionen", "millones", "milioni"), 1e6),
    **dict.fromkeys(("billion", "billions", "bn", "mrd", "milliarden", "milliards"), 1e9),
}
_MONTHS = frozenset(MONTHS) | frozenset(
    """
        january february march april may june july august september october november december jan
        feb mar apr jun jul aug sep sept oct nov dec
    """.split()
)
# Digits in groups of three with one kind of separator: "1,500", "1'500", "1 500".
_GROUPED = "|".join(rf"\d{{1,3}}(?:{separator}\d{{3}})+" for separator in ",'’\u00a0\u202f ")
# "1,500.5", "2.5", "2,5", ".5".
_NUMBER = rf"(?:{_GROUPED})(?:\.\d+)?|\d+(?:[.,]\d+)?|\.\d+"
# One token: a number, an operator in signs or words, per cent, or a word or unit. A colon is a
# division only between spaces: "180 : 240".
_TOKEN = re.compile(
    rf"\s*(?:(?P<number>{_NUMBER})|(?P<operator>[-+*/()×÷−–·]|(?<=\s):(?=\s)|\bx\b|\bof\b|"
    r"\bplus\b|\bminus\b|\btimes\b)|(?P<percent>%|\bper\s?cent\b|\bpercent\b|\bProzent\b)|"
    r"(?P<word>[^\W\d_]+(?:[.²³/][^\W\d_]*)*|[$€£¥°²³.,]))",
    re.IGNORECASE,
)
# "≈", "about", "rund" show that one side is approximate.
_APPROXIMATE = re.compile(
    r"≈|≃|~|\b(?:about|roughly|approx\w*|around|nearly|almost|rund|etwa|circa|ca|environ|unos|"
    r"unas)\b",
    re.IGNORECASE,
)
APPROXIMATE_TOLERANCE, EXACT_TOLERANCE = 0.01, 0.001
"""The allowed relative difference between the sides: if one is approximate, and if none is."""
# "=", "is", "ergibt", "→" join the sides of a calculation.
_EQUALS = re.compile(r"=|≈|≃|~|\bis\b|\bequals\b|\bergibt\b|→|⇒", re.IGNORECASE)
_OPERATORS = {
    "×": "*", "x": "*", "·": "*", "times": "*", "÷": "/", ":": "/", "of": "of", "−": "-", "–": "-",
    "plus": "+", "minus": "-",
}  # fmt: skip


class Calculation(NamedTuple):
    """The result of a calculation.

    Attributes:
        right: Whether all its sides are equal; None if it can't be read.
        operands: The numbers that it starts from, without its results.

    """

    right: bool | None
    operands: tuple[float, ...] = ()


class _Side(NamedTuple):
    value: float
    operands: tuple[float, ...]
    computed: bool
    step: float
    """Half of the last digit of a plain number, which is the largest possible rounding error."""
    bracket_values: tuple[float, ...] = ()
    """The values of the expressions in brackets."""


def check_calculation(text: str) -> Calculation:
    """Return whether the readable part of a calculation is right.

    Args:
        text: Sides joined by ``=``; semicolons or line breaks separate several calculations.

    Example:
        >>> check_calculation("180 / 240 = 75%").right
        True
        >>> check_calculation("180 / 240 = 70%").right
        False
        >>> check_calculation("from the table").right is None
        True

    """
    calculation = _check_calculation(text[:LONGEST])
    if calculation.right is not True and _GROUPING_STOP.search(text):
        # "240.000 - 168.000" may be thousands. The calculation is right if either reading is.
        grouped = _check_calculation(
            _GROUPING_STOP.sub(lambda number: number[0].replace(".", ""), text[:LONGEST])
        )
        return grouped if grouped.right or calculation.right is None else calculation
    return calculation


# Full stops between groups of three digits, as in German: "240.000".
_GROUPING_STOP = re.compile(r"(?<![\d.,])[1-9]\d{0,2}(?:\.\d{3})+(?![\d.])")


def _check_calculation(text: str) -> Calculation:
    operands: list[float] = []
    side_agreements: list[bool] = []
    results: list[float] = []
    for part in re.split(r"[;\n]", text):
        sides = [_evaluate_side(side) for side in _EQUALS.split(part)]
        if len(sides) < 2 or any(side is None for side in sides):
            continue
        read_sides = [side for side in sides if side is not None]
        computed = [side for side in read_sides if side.computed]
        if not computed:
            continue
        results += [value for side in read_sides for value in (side.value, *side.bracket_values)]
        operands += [number for side in computed for number in side.operands]
        reference_side = computed[0]
        tolerance = APPROXIMATE_TOLERANCE if _APPROXIMATE.search(part) else EXACT_TOLERANCE
        side_agreements.append(
            all(
                _sides_agree(reference_side, side, tolerance)
                for side in read_sides
                if side is not reference_side
            )
        )
    starting_numbers = tuple(
        number for number in operands if not any(math.isclose(number, result) for result in results)
    )
    return Calculation(all(side_agreements) if side_agreements else None, starting_numbers)


# "180 / 240", "$1,200 x 3", "12% of 48", "2000 ms = 2 s": two numbers and an operator.
_ARITHMETIC = re.compile(
    r"""\d\s*[%)]?[^\W\d_]{0,12}           # a number, with its unit
        \s*[-+*/×÷−–:x]\s*
        [^\W\d_$€£]{0,3}\s*[($€£]?\s*\d   # another
      | \d\s*%?\s+(?:of|plus|minus|times)\s+\d
      | \d\s*[^\W\d_]{1,12}\s*=\s*\d          # 2000 ms = 2 s""",
    re.VERBOSE,
)


def has_valid_calculation(text: str) -> bool:
    """Return whether a text has two numbers with an operator between them and no wrong result."""
    return (
        _ARITHMETIC.search(text[:LONGEST]) is not None
        and check_calculation(text).right is not False
    )


def unknown_operands(calculation: Calculation, texts: Iterable[str]) -> tuple[float, ...]:
    """Return the starting numbers of a calculation that aren't in any text, without constants.

    A number may be in a text with or without the word for its scale ("1.2 million" for 1,200,000).
    """
    known_numbers = {
        value
        for text in texts
        for numeral in re.findall(_NUMBER, text)
        for value in _numeral_values(numeral)
    }
    unknown = []
    for number in dict.fromkeys(calculation.operands):
        rounding = 1e-12 if number == int(number) else CONSTANT_TOLERANCE
        is_constant = any(math.isclose(number, value, rel_tol=rounding) for value in CONSTANTS)
        if not is_constant and not any(
            math.isclose(number, value * scale, rel_tol=1e-9)
            for value in known_numbers
            for scale in _SCALE_FACTORS
        ):
            unknown.append(number)
    return tuple(unknown)


_SCALE_FACTORS = (1.0, 1e3, 1e6, 1e9, 1e-2, 1e2)
"""The factors between a number and its notation in thousands, millions, billions or per cent."""


def _numeral_values(numeral: str) -> tuple[float, ...]:
    """Return the possible values of a numeral: a comma groups digits or precedes decimals."""
    compact = re.sub(r"['’\u00a0\u202f ]", "", numeral)
    spellings = {compact.replace(",", "")}
    if _GROUPING_STOP.fullmatch(compact):
        spellings.add(compact.replace(".", ""))
    if compact.count(",") == 1 and "." not in compact:
        spellings.add(compact.replace(",", "."))
    return tuple(float(spelling) for spelling in spellings)


def _sides_agree(computed: _Side, other: _Side, tolerance: float) -> bool:
    """Return whether two sides agree within the rounding of the written number.

    A percentage and the share with the same value agree.
    """
    step = max(other.step, computed.step if not computed.operands else 0.0) * 1.001 + 1e-9 * abs(
        other.value
    )
    # A share may be written in per cent, and "2.86 - 1.9 = 0.96 million" names the scale only once.
    return any(
        abs(computed.value - other.value * factor)
        <= max(step * factor, tolerance * abs(other.value * factor))
        for factor in (1.0, 0.01, 100.0, 1e-3, 1e-6, 1e-9)
    )


class _CalculationToken(NamedTuple):
    kind: str
    value: float = 0.0
    step: float = 0.0
    percent: bool = False


def _evaluate_side(text: str) -> _Side | None:
    """Return the value of one side of a calculation, or None if it isn't plain arithmetic."""
    tokens = _tokenize_calculation(text)
    if tokens is None or not any(token.kind == "number" for token in tokens):
        return None
    parser = _ExpressionParser(tokens)
    try:
        value = parser.total()
    except (_NotArithmetic, ZeroDivisionError, OverflowError):
        return None
    if not parser.at_end or not math.isfinite(value):
        return None
    numbers = [token for token in tokens if token.kind == "number"]
    computed = len(numbers) > 1
    return _Side(
        value,
        tuple(token.value for token in numbers) if computed else (),
        computed,
        0.0 if computed else numbers[0].step,
        tuple(parser.brackets),
    )


def _tokenize_calculation(text: str) -> list[_CalculationToken] | None:
    tokens: list[_CalculationToken] = []
    position = 0
    stripped = text.rstrip()
    while position < len(stripped):
        match = _TOKEN.match(stripped, position)
        if match is None:
            return None
        position = match.end()
        if match["number"]:
            values = _numeral_values(match["number"])
            decimals = re.search(r"[.,](\d+)\Z", match["number"])
            grouped = "," in match["number"] and len(values) == 1
            digits = (
                0
                if decimals is None or (grouped and "." not in match["number"])
                else len(decimals[1])
            )
            # "1,500" in a calculation is fifteen hundred, since three digits after a comma are a
            # group.
            thousands = decimals is not None and len(decimals[1]) == 3 and "," in match["number"]
            value = max(values) if thousands else min(values)
            tokens.append(_CalculationToken("number", value, 0.5 * 10.0**-digits))
        elif match["operator"]:
            sign = match["operator"].lower()
            tokens.append(_CalculationToken(_OPERATORS.get(sign, sign)))
        elif match["percent"]:
            _scale_last(tokens, 0.01, percent=True)
        elif match["word"].lower() in _MONTHS:
            return None  # a date, as in "10 days after 5 May"; this isn't arithmetic
        elif (scale := _SCALES.get(match["word"].lower().rstrip("."))) is not None:
            _scale_last(tokens, scale)
    return tokens


def _scale_last(tokens: list[_CalculationToken], factor: float, percent: bool = False) -> None:
    if tokens and tokens[-1].kind == "number":
        last = tokens[-1]
        tokens[-1] = _CalculationToken("number", last.value * factor, last.step * factor, percent)


class _NotArithmetic(Exception):
    pass


_MAX_DEPTH = 20


class _ExpressionParser:
    """Parses sums of products of numbers and brackets."""

    def __init__(self, tokens: Sequence[_CalculationToken]) -> None:
        self._tokens, self._at, self._depth = tokens, 0, 0
        self.brackets: list[float] = []

    @property
    def at_end(self) -> bool:
        return self._at == len(self._tokens)

    def total(self) -> float:
        value = self._product()
        percent = self._behind_percent()
        while (kind := self._kind()) in ("+", "-"):
            self._at += 1
            right = self._product()
            if self._behind_percent() and not percent:
                raise _NotArithmetic  # "200 + 10%" may mean 200.1 or 220
            value = value + right if kind == "+" else value - right
        return value

    def _behind_percent(self) -> bool:
        return self._at > 0 and self._tokens[self._at - 1].percent

    def _product(self) -> float:
        value = self._factor()
        while (kind := self._kind()) in ("*", "/", "of"):
            self._at += 1
            right = self._factor()
            # "25% of 48" multiplies by a share, "12 of 48" is a share itself.
            value = value * right if kind == "*" or (kind == "of" and value < 1) else value / right
        return value

    def _factor(self) -> float:
        kind = self._kind()
        if kind == "-":
            self._at += 1
            return -self._factor()
        if kind == "(":
            self._depth += 1
            if self._depth > _MAX_DEPTH:
                raise _NotArithmetic
            self._at += 1
            value = self.total()
            if self._kind() != ")":
                raise _NotArithmetic
            self._at += 1
            self._depth -= 1
            self.brackets.append(value)
            return value
        if kind != "number":
            raise _NotArithmetic
        value = self._tokens[self._at].value
        self._at += 1
        return value

    def _kind(self) -> str:
        return self._tokens[self._at].kind if self._at < len(self._tokens) else ""

"""The names of months, magnitudes, currencies and units, and a reader for units in text.

Each unit has a dimension and the factor to that dimension's base unit. The factors are in
``units.toml``, which ``tools/units.py`` generates from Pint's unit registry.
"""

from __future__ import annotations

import re
import tomllib
from functools import lru_cache
from importlib import resources
from typing import NamedTuple

from masis.offline.text.number_words import SCALES

MONTHS = {
    name: number
    for number, names in enumerate(
        "january jan|february feb|march mar|april apr|may|june jun|july jul|august aug|september"
        " sept sep|october oct|november nov|december dec".split("|"),
        1,
    )
    for name in names.split()
}

MAGNITUDES = {word: float(scale) for word, scale in SCALES.items() if scale > 100} | {
    "hundred": 1e2,
    "k": 1e3,
    "mn": 1e6,
    "mln": 1e6,
    "bn": 1e9,
    "bln": 1e9,
    "tn": 1e12,
    "trn": 1e12,
    "mm": 1e6,
    "lakhs": 1e5,
    "crores": 1e7,
    "millions": 1e6,
    "billions": 1e9,
    "dozen": 12.0,
    # German words, because English answers quote German company reports
    "millionen": 1e6,
    "mrd": 1e9,
    "milliarde": 1e9,
    "milliarden": 1e9,
}
"""Lowercase words and abbreviations that multiply the number before them."""
MONEY_MAGNITUDES = {"m": 1e6, "b": 1e9, "t": 1e12, "mm": 1e6}
"""Letters that multiply a number of money ("$5m"). Elsewhere they are units ("5 m")."""
CURRENCIES = {
    written: code
    for code, names in {
        "usd": "$ us$ usd dollar dollars",
        "eur": "€ eur euro euros",
        "gbp": "£ gbp sterling",
        "jpy": "¥ jpy yen",
        "inr": "₹ inr rs rupee rupees",
        "aud": "a$ au$ aud",
        "cad": "c$ ca$ cad",
        "nzd": "nz$ nzd",
        "hkd": "hk$ hkd",
        "sgd": "s$ sgd",
        "chf": "chf francs franc",
        "krw": "₩ krw won",
        "rub": "₽ rub roubles rubles",
        "pln": "pln zloty",
        "brl": "r$ brl reais",
        "zar": "zar rand",
        # Several countries have crowns (Sweden, Norway, Denmark ...), so the currency is unknown.
        "": "kr kronor kroner krone krona crowns",
        **{
            code: code for code in "nok sek dkk cny czk huf mxn try thb idr php ils aed sar".split()
        },
    }.items()
    for written in names.split()
}


class MeasuredUnit(NamedTuple):
    """A unit in a text: its dimension, its factor to the base unit, and the offset of its end."""

    dimension: str
    factor: float
    end: int


class UnitTable(NamedTuple):
    """The units by their spelling, each with dimension and factor.

    `exact` respects case. `folded` has lowercase spellings, without those that could be two units.
    """

    exact: dict[str, tuple[str, float]]
    folded: dict[str, tuple[str, float]]


_EXTRA_UNITS: dict[str, tuple[str, float]] = {
    "%": ("percent", 1.0),
    "percent": ("percent", 1.0),
    "‰": ("percent", 0.1),
    "ppm": ("percent", 1e-4),
    "ppb": ("percent", 1e-7),
    "pp": ("points", 1.0),
    "bp": ("points", 0.01),
    "bps": ("points", 0.01),
    # The base of months and years isn't the second, because their lengths vary. 36 months are
    # exactly three years, but 90 days are only about three months.
    **dict.fromkeys(("month", "months"), ("months", 1.0)),
    **dict.fromkeys(("year", "years", "yr", "yrs"), ("months", 12.0)),
    **dict.fromkeys(("decade", "decades"), ("months", 120.0)),
    **dict.fromkeys(("century", "centuries"), ("months", 1200.0)),
    **dict.fromkeys(("millennium", "millennia"), ("months", 12000.0)),
    **dict.fromkeys(("quarter", "quarters"), ("months", 3.0)),
    # Temperature scales also differ by an offset, so TEMPERATURES converts them.
    **dict.fromkeys(("°C", "C", "celsius", "Celsius", "centigrade"), ("celsius", 1.0)),
    **dict.fromkeys(("°F", "F", "fahrenheit", "Fahrenheit"), ("fahrenheit", 1.0)),
    **dict.fromkeys(("K", "kelvin", "kelvins"), ("kelvin", 1.0)),
    # Common spellings without the correct capitals.
    **{
        low: ("data", factor)
        for low, factor in {"kb": 1e-3, "mb": 1.0, "gb": 1e3, "tb": 1e6}.items()
    },
}
TEMPERATURES = {"celsius": (1.0, 0.0), "fahrenheit": (5 / 9, -160 / 9), "kelvin": (1.0, -273.15)}
"""The factor and the offset that convert each temperature scale to degrees Celsius."""


@lru_cache(maxsize=1)
def unit_table() -> UnitTable:
    """Return the table of units. The file is read on the first call."""
    text = (
        resources.files("masis.offline.parsing").joinpath("units.toml").read_text(encoding="utf-8")
    )
    exact = {
        word: (dimension, factor)
        for dimension, units in tomllib.loads(text).items()
        for word, factor in units.items()
    }
    # Texts write the micro sign (U+00B5) and the Greek letter mu (U+03BC).
    exact |= {word.replace("µ", "μ"): unit for word, unit in exact.items() if "µ" in word}
    exact |= _EXTRA_UNITS
    folded: dict[str, tuple[str, float]] = {}
    for word, unit in exact.items():
        if (
            len(word) > 1
            and folded.setdefault(word.lower(), unit) != unit
            and word.lower() not in exact
        ):
            folded[word.lower()] = ("", 0.0)  # ambiguous: "mw" could be MW or mW
    return UnitTable(exact, {word: unit for word, unit in folded.items() if unit[1]})


def unit_of(word: str) -> tuple[str, float] | None:
    """Return the dimension and factor of a word or symbol, or None if it isn't a unit.

    The exact spelling has priority over the lowercase one: "MW" and "mW" are different units.
    """
    table = unit_table()
    return table.exact.get(word) or table.folded.get(word.lower())


_SPACE = r"[ \u00a0\u2009\u202f-]"
# Matches a symbol or word after a number, with an optional power: "%", "°C", "kg", "m²", "m^2",
# "m2". In "m2.5" only "m" matches. The caller looks the word up in the table of units.
_WORD = re.compile(
    rf"{_SPACE}?(?P<word>[%‰]|°\s?[CF]\b|[^\W\d_²³]++)(?P<power>[²³]|\^?[23](?![\d.,]*\d)\b)?"
)
# Matches units of several words, which the table can't hold: "percentage points", "basis points",
# "per cent", "degrees Celsius", "square feet", "fluid ounces", "kilowatt-hours".
_SPELLED_OUT = re.compile(
    rf"{_SPACE}?(?:(?P<points>percentage[ -]points?)|(?P<basis>basis points?)|(?P<percent>per"
    r" cent|pct\b\.?)"
    rf"|(?P<mille>per mille?\b)|degrees? (?P<degrees>celsius|fahrenheit|C\b|F\b)"
    rf"|(?P<power>square|sq\.?|cubic|cu\.?){_SPACE}(?P<word>[^\W\d_]++)"
    rf"|(?P<sea>nautical miles?)|(?P<fluid>fluid ounces?|fl\.? oz)|(?P<years>light[- ]years?)"
    rf"|(?P<ton>metric tons?)|(?P<watt>(?:kilo|mega|giga|tera)?watt)[ -]hours?)",
    re.IGNORECASE,
)
# Matches the unit below a fraction: "h" in "km/h", "hour" in "miles per hour" and "miles an hour".
_PER_UNIT = re.compile(r"(?:\s?/\s?| per | an? )(?P<word>[^\W\d_²³]++)(?P<power>[²³])?")
_RATES = frozenset(
    {("length", "duration"), ("data", "duration"), ("mass", "volume"), ("amount", "volume")}
)
"""Pairs of dimensions that form a unit: speeds, data rates, concentrations.

In other pairs, such as a price per night or tonnes a day, "per ..." isn't part of the unit, because
the evidence may leave it out.
"""
# Matches a letter. A unit of one letter must not be followed by one.
_LETTER = re.compile(r"[^\W\d_]")


def read_unit(text: str, at: int) -> MeasuredUnit | None:
    """Return the unit that starts at an offset, or None. One blank or hyphen may come first."""
    if spelled := _SPELLED_OUT.match(text, at):
        return _spelled_unit(spelled)
    match = _WORD.match(text, at)
    if match is None:
        return None
    word = match["word"].replace(" ", "")
    found = unit_of(word)
    hyphen = text[at : at + 1] == "-"
    if (
        found is None
        or (hyphen and len(word) < 2)
        or (len(word) == 1 and _LETTER.match(text, match.end()))
    ):
        return None
    dimension, factor = found
    end = match.end()
    if match["power"]:
        power = match["power"][-1]
        if dimension == "length":
            dimension, factor = _squared_or_cubed(factor, cubed=power in "3³")
        elif power in "23":
            end = match.start("power")
    per = _PER_UNIT.match(text, end)
    if (
        per
        and (below := unit_of(per["word"]))
        and (dimension, below[0]) in _RATES
        and not per["power"]
    ):
        if dimension == "length":
            return MeasuredUnit("speed", factor / below[1] * 3.6, per.end())
        return MeasuredUnit(f"{dimension}/{below[0]}", factor / below[1], per.end())
    return MeasuredUnit(dimension, factor, end)


def _squared_or_cubed(factor: float, *, cubed: bool) -> tuple[str, float]:
    """Return the dimension and factor of a squared or cubed length, in hectares or liters.

    ``factor`` is the length in meters.
    """
    return ("volume", factor**3 * 1e3) if cubed else ("area", factor**2 / 1e4)


def _spelled_unit(match: re.Match[str]) -> MeasuredUnit | None:
    if match["points"]:
        return MeasuredUnit("points", 1.0, match.end())
    if match["basis"]:
        return MeasuredUnit("points", 0.01, match.end())
    if match["percent"]:
        return MeasuredUnit("percent", 1.0, match.end())
    if match["mille"]:
        return MeasuredUnit("percent", 0.1, match.end())
    if match["degrees"]:
        return MeasuredUnit(
            "celsius" if match["degrees"].lower().startswith("c") else "fahrenheit",
            1.0,
            match.end(),
        )
    if match["power"]:
        base = unit_of(match["word"])
        if base is None or base[0] != "length":
            return None
        return MeasuredUnit(
            *_squared_or_cubed(base[1], cubed=match["power"].lower().startswith("cu")), match.end()
        )
    names = {"sea": "nmi", "fluid": "floz", "years": "ly", "ton": "t"}
    symbol = next((name for group, name in names.items() if match[group]), "")
    if match["watt"]:
        symbol = {"k": "kWh", "m": "MWh", "g": "GWh", "t": "TWh"}.get(
            match["watt"].lower().removesuffix("watt")[:1], "Wh"
        )
    dimension, factor = unit_table().exact[symbol]
    return MeasuredUnit(dimension, factor, match.end())

"""Generate the table of units that the offline checks convert, from Pint's registry.

    python tools/units.py           # writes masis/offline/parsing/units.toml
    python tools/units.py --check   # exits 1 if the table is outdated

Pint has the factors, but importing it and building its registry takes a third of a second. It also
reads "1.5 Gb" as gilbert and doesn't know "5 km2". So the audit reads a table of the units that
occur in prose. Only the tests depend on Pint.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import pint

TABLE = Path(__file__).resolve().parent.parent / "masis" / "offline" / "parsing" / "units.toml"

PREFIXES = {
    "n": ("nano", 1e-9),
    "µ": ("micro", 1e-6),
    "m": ("milli", 1e-3),
    "c": ("centi", 1e-2),
    "d": ("deci", 1e-1),
    "h": ("hecto", 1e2),
    "k": ("kilo", 1e3),
    "M": ("mega", 1e6),
    "G": ("giga", 1e9),
    "T": ("tera", 1e12),
    "P": ("peta", 1e15),
}
SPELLED_ALIKE = {"metre": "meter", "litre": "liter"}
"""British spellings, and the names of these units in Pint."""

# The dimension and its base unit; then, one per line, the unit's name in Pint, its spellings
# (symbols are case-sensitive; words also have a plural), and the symbols of its prefixes.
UNITS: dict[tuple[str, str], tuple[tuple[str, str, str], ...]] = {
    ("length", "meter"): (
        ("meter", "m metre meter", "n µ m c d k"),
        ("mile", "mi mile", ""),
        ("nautical_mile", "nmi", ""),
        ("foot", "ft foot feet", ""),
        ("inch", "inch inches", ""),
        ("yard", "yd yard", ""),
        ("furlong", "furlong", ""),
        ("fathom", "fathom", ""),
        ("light_year", "ly lightyear", ""),
        ("parsec", "pc parsec", "k M"),
    ),
    ("mass", "gram"): (
        ("gram", "g gram gramme", "n µ m k"),
        ("microgram", "mcg", ""),
        ("metric_ton", "t tonne ton", "k M"),
        ("pound", "lb lbs pound", ""),
        ("ounce", "oz ounce", ""),
        ("stone", "stone", ""),
        ("hundredweight", "cwt hundredweight", ""),
        ("carat", "carat", ""),
    ),
    ("duration", "second"): (
        ("second", "s sec secs second", "n µ m"),
        ("minute", "min mins minute", ""),
        ("hour", "h hr hrs hour", ""),
        ("day", "day days", ""),
        ("week", "week", ""),
        ("fortnight", "fortnight", ""),
    ),
    ("volume", "liter"): (
        ("liter", "l L litre liter", "µ m c d h M"),
        ("gallon", "gal gallon", ""),
        ("pint", "pint", ""),
        ("quart", "quart", ""),
        ("fluid_ounce", "floz", ""),
        ("oil_barrel", "bbl barrel", ""),
        ("bushel", "bushel", ""),
        ("cubic_centimeter", "cc", ""),
    ),
    ("area", "hectare"): (("hectare", "ha hectare", ""), ("acre", "acre", "")),
    ("speed", "kilometer / hour"): (
        ("kilometer / hour", "kph kmh", ""),
        ("mile / hour", "mph", ""),
        ("knot", "kn knot", ""),
        ("meter / second", "mps", ""),
    ),
    ("pressure", "pascal"): (
        ("pascal", "Pa pascal", "m h k M G"),
        ("bar", "bar", "m k"),
        ("psi", "psi", ""),
        ("atmosphere", "atm atmosphere", ""),
        ("torr", "torr", ""),
        ("millimeter_Hg", "mmHg", ""),
    ),
    ("force", "newton"): (("newton", "N newton", "m k M"),),
    ("power", "watt"): (("watt", "W watt", "m k M G T"), ("horsepower", "hp horsepower", "")),
    ("energy", "kilowatt_hour"): (
        ("joule", "J joule", "m k M G T"),
        ("watt_hour", "Wh", "k M G T"),
        ("calorie", "cal", "k"),
        ("kilocalorie", "calorie", ""),
        ("BTU", "BTU", ""),
    ),
    ("frequency", "hertz"): (("hertz", "Hz hertz", "m k M G T"),),
    ("voltage", "volt"): (("volt", "V volt", "m k"),),
    ("current", "ampere"): (("ampere", "A amp ampere", "µ m k"),),
    ("resistance", "ohm"): (("ohm", "Ω ohm", "m k M"),),
    ("data", "megabyte"): (("byte", "byte", ""), ("bit", "bit bits", "k M G T")),
    ("amount", "mole"): (("mole", "mol mole", "µ m k"),),
    ("angle", "arcminute"): (
        ("arcminute", "arcmin arcminute", ""),
        ("arcsecond", "arcsec arcsecond", ""),
    ),
}
DATA = {"kB": 1e-3, "KB": 1e-3, "MB": 1.0, "GB": 1e3, "TB": 1e6, "PB": 1e9}
BINARY = {"KiB": "kibibyte", "MiB": "mebibyte", "GiB": "gibibyte", "TiB": "tebibyte"}


def table() -> str:
    """Return the text of the table."""
    registry: pint.UnitRegistry[float] = pint.UnitRegistry()
    lines = [
        (
            f"# Made by tools/units.py from the registry of Pint {pint.__version__} (BSD). Change "
            f"that,"
            " not this."
        )
    ]
    for (dimension, base), rows in UNITS.items():
        factors: dict[str, float] = {}
        for name, written, prefixes in rows:
            factor = float(registry.Quantity(1, name).to(base).magnitude)
            for word in written.split():
                factors[word] = factor
                if (
                    len(word) > 3
                    and word.islower()
                    and not word.endswith(("feet", "inches", "hertz"))
                ):
                    factors[f"{word}s"] = factor
                for symbol in prefixes.split():
                    prefix, times = PREFIXES[symbol]
                    for spelling in (
                        (f"{prefix}{word}", f"{prefix}{word}s")
                        if len(word) > 2
                        else (f"{symbol}{word}",)
                    ):
                        factors[spelling] = times * factor
                    if len(word) == 3 and word in ("bar", "mol", "bit", "cal"):
                        factors[f"{symbol}{word}"] = times * factor
        if dimension == "data":
            factors |= DATA
            factors |= {
                short: float(registry.Quantity(1, name).to(base).magnitude)
                for short, name in BINARY.items()
            }
            for symbol in "k M G T".split():
                prefix, times = PREFIXES[symbol]
                factors |= {
                    f"{prefix}byte": times / 1e6,
                    f"{prefix}bytes": times / 1e6,
                    f"{symbol}b": times / 8e6,
                }
        lines += ["", f"[{dimension}]  # in {base}"]
        lines += [f'"{word}" = {float(f"{factor:.10g}")!r}' for word, factor in factors.items()]
    return "\n".join(lines) + "\n"


def main() -> int:
    """Write the table or, with --check, compare it with the existing one."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--check", action="store_true", help="compare instead of writing")
    if parser.parse_args().check:
        return int(TABLE.read_text(encoding="utf-8") != table())
    TABLE.write_text(table(), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())

"""The words of measurement: months, magnitudes, currencies, units with dimension and factor to its base."""

from masis.offline.text.number_words import SCALES

MONTHS = {
    name: number
    for number, names in enumerate(
        "january jan|february feb|march mar|april apr|may|june jun|july jul|august aug|september sept sep|october oct"
        "|november nov|december dec".split("|"),
        1,
    )
    for name in names.split()
}

MAGNITUDES = {word: float(scale) for word, scale in SCALES.items()} | {"k": 1e3, "mn": 1e6, "bn": 1e9, "tn": 1e12}
"""Words and abbreviations behind a number that multiply it."""
CURRENCIES = {
    written: code
    for code, names in {
        "usd": "$ us$ usd dollar dollars",
        "eur": "€ eur euro euros",
        "gbp": "£ gbp",
        "jpy": "¥ jpy yen",
        "inr": "₹ inr rupees",
        **{code: code for code in "nok sek dkk chf cad aud cny".split()},
    }.items()
    for written in names.split()
}
UNITS: dict[str, tuple[str, float]] = {
    unit: (dimension, factor)
    for dimension, units in {
        "percent": {"% percent": 1.0},
        "points": {"pp": 1.0},
        "length": {
            "mm millimetre millimeter": 1e-3,
            "cm centimetre centimeter": 1e-2,
            "m metre meter": 1.0,
            "km kilometre kilometer": 1e3,
            "mile mi": 1609.344,
            "ft foot feet": 0.3048,
            "inch inches": 0.0254,
            "yard": 0.9144,
        },
        "mass": {
            "µg μg mcg microgram": 1e-6,
            "mg milligram": 1e-3,
            "g gram": 1.0,
            "kg kilogram": 1e3,
            "tonne": 1e6,
            "ton": 1e6,
            "lb lbs": 453.592,
            "oz ounce": 28.3495,
        },
        "duration": {
            "ms millisecond": 1e-3,
            "s sec second": 1.0,
            "min minute": 60.0,
            "h hr hour": 3600.0,
            "day": 86400.0,
            "week": 604800.0,
        },
        "months": {
            "month": 1.0,
            "year yr": 12.0,
            "decade": 120.0,
            "century centuries": 1200.0,
            "millennium millennia": 12000.0,
            "quarter": 3.0,
        },
        "volume": {
            "ml millilitre milliliter": 1e-3,
            "l litre liter": 1.0,
            "megalitre megaliter": 1e6,
            "gallon": 3.78541,
        },
        "power": {"w watt": 1.0, "kw kilowatt": 1e3, "mw megawatt": 1e6, "gw gigawatt": 1e9},
        "energy": {"kwh": 1.0, "mwh": 1e3, "gwh": 1e6, "twh": 1e9},
        "frequency": {"hz hertz": 1.0, "khz": 1e3, "mhz": 1e6, "ghz": 1e9},
        "data": {"kb": 1.0, "mb": 1e3, "gb": 1e6, "tb": 1e9},
        "celsius": {"°c c celsius": 1.0},
        "fahrenheit": {"°f f fahrenheit": 1.0},
        "area": {"hectare ha": 1.0, "acre": 0.404686},
        "speed": {"km/h kph": 1.0, "mph": 1.609344},
    }.items()
    for names, factor in units.items()
    for name in names.split()
    for unit in ((name, name + "s") if len(name) > 2 else (name,))
}

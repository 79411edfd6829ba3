"""TeX in bibliographic fields as plain text: accents, letters, escapes, braces.

Exported abstracts are mostly plain text with a little TeX, so a bare ``%`` stays a percent sign (in TeX it begins a
comment and would swallow the rest of the line) and ``$...$`` stays as written.
"""

from __future__ import annotations

import re
import unicodedata

_ACCENTS = {
    "`": "\u0300",
    "'": "\u0301",
    "^": "\u0302",
    "~": "\u0303",
    "=": "\u0304",
    "u": "\u0306",
    ".": "\u0307",
    '"': "\u0308",
    "r": "\u030a",
    "H": "\u030b",
    "v": "\u030c",
    "d": "\u0323",
    "c": "\u0327",
    "k": "\u0328",
}
_LETTERS = {
    "ss": "ß",
    "o": "ø",
    "O": "Ø",
    "l": "ł",
    "L": "Ł",
    "ae": "æ",
    "AE": "Æ",
    "oe": "œ",
    "OE": "Œ",
    "aa": "å",
    "AA": "Å",
    "i": "ı",
    "j": "ȷ",
    "alpha": "α",
    "beta": "β",
    "gamma": "γ",
    "delta": "δ",
    "kappa": "κ",
    "mu": "μ",
    "pm": "±",
    "times": "×",
    "le": "≤",
    "leq": "≤",
    "ge": "≥",
    "geq": "≥",
    "textendash": "–",
    "textemdash": "—",
    "textquoteright": "’",
    "textquoteleft": "‘",
    "textpm": "±",
    "textless": "<",
    "textgreater": ">",
    "textregistered": "®",
    "texttrademark": "™",
    "textdegree": "°",
}
_MARK = re.compile(
    r"""\\(?P<symbol>[`'^~=."]|[uvHdckr](?=[\s{]))\s{0,4}(?P<brace>\{?)\s{0,4}(?P<base>\\[ij](?![a-zA-Z])|[^\W\d_])\}?"""
    r"""|\\(?P<name>[a-zA-Z]{1,40})\s?(?P<empty>\{\})?|\\(?P<escaped>[^a-zA-Z])|(?P<curly>[{}])|(?P<tie>~)|(?P<dash>-{2,3})"""
)


def plain(text: str) -> str:
    """The text without TeX; what is no TeX known here loses its backslash and keeps its letters."""
    return _MARK.sub(_replaced, text) if any(mark in text for mark in ("\\", "{", "}", "~", "--")) else text


def _replaced(mark: re.Match[str]) -> str:
    if mark["symbol"]:
        base = mark["base"].removeprefix("\\")
        return unicodedata.normalize("NFC", base + _ACCENTS[mark["symbol"]])
    if mark["name"]:
        return _LETTERS.get(mark["name"], "")
    if mark["escaped"]:
        return " " if mark["escaped"] in ("\\", " ", "\n") else mark["escaped"]
    if mark["dash"]:
        return "–" if len(mark["dash"]) == 2 else "—"
    return " " if mark["tie"] else ""

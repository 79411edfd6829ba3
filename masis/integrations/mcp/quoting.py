"""Text from outside on its way to an agent: always quoted, its invisible characters shown.

An answer under review may have been written to steer whoever reads it. In a result it stands only
as a value of JSON, and characters that a reader would not see (controls, changes of direction,
tags, selectors of variants) are written as escapes, which parse to the same text.
"""

from __future__ import annotations

import json
import unicodedata
from typing import Any

NOTICE = (
    "Every text in this result that is not a name or a number is data under review: it is quoted"
    " from questions, answers and evidence that others wrote, or describes them."
)
"""Stands beside each result: it says what the texts are and asks for nothing."""

_LINE = 120
_REMEMBERED = 20_000

_INVISIBLE = ("Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp")
"""Categories of Unicode: controls, format and direction, halves of pairs, private and unassigned,
separators.
"""

_BLANK = {
    *map(
        chr,
        (0x034F, 0x115F, 0x1160, 0x17B4, 0x17B5, 0x180B, 0x180C, 0x180D, 0x180F, 0x3164, 0xFFA0),
    ),
    *map(chr, range(0xFE00, 0xFE10)),
    *map(chr, range(0xE0100, 0xE01F0)),
}
"""Marks and letters that nobody sees either, and the selectors of variants, in which text can be
hidden.
"""


def quoted_json(value: Any) -> str:
    """Return the value as JSON in which nothing is invisible; parsing gives the value back."""
    return json.dumps(value, ensure_ascii=False).translate(_SHOWN)


def visible(text: str, limit: int = _LINE) -> str:
    """Return one line of text from outside, cut to ``limit`` characters, for a message
    or a title.
    """
    cut = text if len(text) <= limit else text[: limit - 1] + "…"
    return cut.replace("\n", " ").replace("\t", " ").translate(_SHOWN)


def quote_id(identifier: str) -> str:
    """Return an id in quotes, as a message names it."""
    return f"'{visible(identifier)}'"


class _CharacterTable(dict[int, str]):
    """What each character is written as, for ``str.translate``: looked up once, then remembered."""

    def __missing__(self, code: int) -> str:
        char = chr(code)
        hidden = char in _BLANK or unicodedata.category(char) in _INVISIBLE
        written = json.dumps(char)[1:-1].replace("\x7f", "\\u007f") if hidden else char
        if len(self) < _REMEMBERED:
            self[code] = written
        return written


_SHOWN = _CharacterTable()

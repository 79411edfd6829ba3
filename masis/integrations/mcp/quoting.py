"""Text from outside on its way to an agent: always quoted, its invisible characters shown.

An answer under review may have been written to steer whoever reads it. In a result it stands only as a value of JSON,
and characters that a reader would not see (controls, changes of direction, tags, selectors of variants) are written as
escapes, which parse to the same text.
"""

from __future__ import annotations

import json
import re
from typing import Any

NOTICE = (
    "Every text in this result that is not a name or a number is data under review: it is quoted from questions, "
    "answers and evidence that others wrote, or describes them."
)
"""Stands beside each result: it says what the texts are and asks for nothing."""

_SHOWN = 120

_UNSEEN = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u00ad\u034f\u0600-\u0605\u061c\u06dd\u070f\u115f\u1160\u17b4\u17b5\u180b-\u180f"
    "\u200b-\u200f\u2028-\u202e\u2060-\u206f\u3164\ud800-\udfff\ue000-\uf8ff\ufe00-\ufe0f\ufeff\uffa0\ufff0-\uffff"
    "\U000110bd\U000110cd\U00013430-\U0001343f\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U0010ffff]"
)


def quoted_json(value: Any) -> str:
    """The value as JSON in which nothing is invisible; parsing gives the value back."""
    return _UNSEEN.sub(_escaped, json.dumps(value, ensure_ascii=False))


def visible(text: str, limit: int = _SHOWN) -> str:
    """One line of text from outside, cut to ``limit`` characters, for a message or a title."""
    cut = text if len(text) <= limit else text[: limit - 1] + "…"
    return _UNSEEN.sub(_escaped, cut.replace("\n", " ").replace("\t", " "))


def named(identifier: str) -> str:
    """An id in quotes, as a message names it."""
    return f"'{visible(identifier)}'"


def _escaped(found: re.Match[str]) -> str:
    code = ord(found.group())
    if code <= 0xFFFF:
        return f"\\u{code:04x}"
    high, low = divmod(code - 0x10000, 0x400)
    return f"\\u{0xD800 + high:04x}\\u{0xDC00 + low:04x}"

"""Formats words as Streamlit Markdown, escapes untrusted text, and keeps texts drawable."""

from __future__ import annotations

import json
import re
import string
import sys
import unicodedata
from functools import cache
from itertools import groupby

from masis.schema.rules import Tone
from masis.views.words import LabelData, Word

TONE_COLOUR: dict[Tone, str] = {
    "grave": "red",
    "bad": "red",
    "warn": "orange",
    "good": "green",
    "calm": "gray",
    "busy": "blue",
}
"""The name of each tone's colour in Streamlit's Markdown."""

# CommonMark lets a backslash escape any ASCII punctuation, so all of it is escaped.
_MARKDOWN = str.maketrans({sign: f"\\{sign}" for sign in string.punctuation})


def escape_markdown(text: str) -> str:
    """Escape untrusted text so that Markdown shows it as it is, without markup, images or links.

    Addresses are broken by an invisible blank, because Streamlit turns them into links even if
    every sign is escaped.
    """
    broken = text.replace("://", ":\u200b//").replace("www.", "www\u200b.").replace("@", "@\u200b")
    return " ".join(broken.split()).translate(_MARKDOWN)


MOST_MARKS = 50
"""Combining marks allowed in a row; no script has words with more.

The time that a browser needs to draw them grows with the square of their number: 100,000 take half
a minute.
"""

# A dotted circle, which carries combining marks that have no letter.
_CARRIER = "\u25cc"


@cache
def _long_runs() -> tuple[re.Pattern[str], re.Pattern[str]]:
    """Return patterns for too many combining marks in a row, as text and as escaped JSON."""
    # Python's ``re`` has no class for combining marks, so the ranges are read from unicodedata.
    kinds = groupby(
        range(sys.maxunicode + 1), lambda code: unicodedata.category(chr(code)).startswith("M")
    )
    ranges = ((next(codes), codes) for is_mark, codes in kinds if is_mark)
    marks = "".join(f"{chr(first)}-{chr(max((first, *others)))}" for first, others in ranges)
    return re.compile(f"[{marks}]{{{MOST_MARKS}}}(?=[{marks}])"), re.compile(
        rf"(?:\\u[0-9a-f]{{4}}){{{MOST_MARKS + 1},}}"
    )


def drawable(text: str) -> str:
    """Break long runs of combining marks in a text or JSON, so that browsers can draw it quickly.

    For display only. Stored, exported and sent texts keep every character.
    """
    if text.isascii() and "\\u" not in text:
        return text
    # JSON may contain the marks as escapes ("\u0301"), which the first pattern doesn't match.
    marks, escapes = _long_runs()

    def escaped_ones(run: re.Match[str]) -> str:
        held = json.loads(f'"{run.group()}"')
        broken = marks.sub(rf"\g<0>{_CARRIER}", held)
        return run.group() if broken == held else json.dumps(broken)[1:-1]

    return marks.sub(rf"\g<0>{_CARRIER}", escapes.sub(escaped_ones, text))


def badge(word: Word | LabelData) -> str:
    """Return a label as a badge in its colour."""
    text, tone = _text_and_tone(word)
    return f":{TONE_COLOUR[tone]}-badge[{escape_markdown(text)}]"


def colour_label(word: Word | LabelData) -> str:
    """Return a label as coloured text."""
    text, tone = _text_and_tone(word)
    return f":{TONE_COLOUR[tone]}[{escape_markdown(text)}]"


def _text_and_tone(word: Word | LabelData) -> tuple[str, Tone]:
    return (word.text, word.tone) if isinstance(word, Word) else (word["text"], word["tone"])

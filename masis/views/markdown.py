"""Words as Streamlit's Markdown: text from outside escaped, labels in the colour of their tone."""

from __future__ import annotations

import string

from masis.views.words import LabelData, Tone, Word

TONE_COLOUR: dict[Tone, str] = {"bad": "red", "warn": "orange", "good": "green", "calm": "gray", "busy": "blue"}
"""The tones as Streamlit's Markdown names colours."""

_MARKDOWN = str.maketrans({sign: f"\\{sign}" for sign in string.punctuation})


def escaped(text: str) -> str:
    """Return text from outside as Markdown that shows it: no markup, no image, no link.

    Addresses are broken by an invisible blank, since Streamlit makes links of them even where every sign is escaped.
    """
    broken = text.replace("://", ":\u200b//").replace("www.", "www\u200b.").replace("@", "@\u200b")
    return " ".join(broken.split()).translate(_MARKDOWN)


def badge(word: Word | LabelData) -> str:
    """Return a label on a background of its colour."""
    text, tone = _parts(word)
    return f":{TONE_COLOUR[tone]}-badge[{escaped(text)}]"


def coloured(word: Word | LabelData) -> str:
    """Return a label in its colour."""
    text, tone = _parts(word)
    return f":{TONE_COLOUR[tone]}[{escaped(text)}]"


def _parts(word: Word | LabelData) -> tuple[str, Tone]:
    return (word.text, word.tone) if isinstance(word, Word) else (word["text"], word["tone"])

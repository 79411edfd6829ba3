"""Sentences altered in one respect, to see which alterations a verifier misses."""

from __future__ import annotations

import random
import re
from collections.abc import Callable
from pathlib import Path

import masis.offline.text
from masis.offline.text.tokens import tokens

ANTONYMS = Path(masis.offline.text.__file__).parent / "antonyms.txt"

_AUXILIARY = re.compile(r"\b(is|was|are|were|has|had|can|will|could|may)\b(?! not)")
_FIGURE = re.compile(r"(?<![\w.,])(\d{2,4})(?![\w.,]\d)")
_NAME = re.compile(r"(?<=[a-z,] )[A-Z][a-z]{2,}(?: [A-Z][a-z]+)?")
_SHORT_NAME = re.compile(r"(?<=[a-z] )[A-Z][a-z]{3,}")
_QUANTIFIER = re.compile(r"\b(some|many|most|may|might|can|often|usually|partly|several)\b")
_STRONGER = {
    "may": "must",
    "might": "must",
    "can": "must",
    "some": "all",
    "many": "all",
    "most": "all",
    "several": "all",
}

Alteration = Callable[[str], str | None]
"""Returns the sentence altered, or None where the alteration does not apply."""


def alterations(draw: random.Random) -> dict[str, Alteration]:
    """Return the alterations by name; `copied` leaves the sentence as it is."""
    antonyms = _antonym_pairs()

    def number(sentence: str) -> str | None:
        match = _FIGURE.search(sentence)
        return match and _replaced(sentence, match, str(int(match[1]) + draw.choice([3, 11, -2, 20])))

    def name(sentence: str) -> str | None:
        match = _SHORT_NAME.search(sentence)
        return match and _replaced(sentence, match, draw.choice(["Oslo", "Bergmann", "Lisbon", "Carver"]))

    def antonym(sentence: str) -> str | None:
        for word in tokens(sentence):
            if word.text.islower() and word.text in antonyms:
                return sentence[: word.start] + antonyms[word.text] + sentence[word.end :]
        return None

    return {
        "copied": str,
        "negation": _negated,
        "number": number,
        "names swapped": _names_swapped,
        "antonym": antonym,
        "other name": name,
        "quantifier": _strengthened,
    }


def _negated(sentence: str) -> str | None:
    match = _AUXILIARY.search(sentence)
    return match and f"{sentence[: match.end()]} not{sentence[match.end() :]}"


def _names_swapped(sentence: str) -> str | None:
    names = list(_NAME.finditer(sentence))
    distinct = [match for i, match in enumerate(names) if all(match.group() != other.group() for other in names[:i])]
    if len(distinct) < 2:
        return None
    first, second = distinct[:2]
    between = sentence[first.end() : second.start()]
    return f"{sentence[: first.start()]}{second.group()}{between}{first.group()}{sentence[second.end() :]}"


def _strengthened(sentence: str) -> str | None:
    match = _QUANTIFIER.search(sentence)
    return match and _replaced(sentence, match, _STRONGER.get(match[1], "always"))


def _replaced(sentence: str, match: re.Match[str], replacement: str) -> str:
    return sentence[: match.start()] + replacement + sentence[match.end() :]


def _antonym_pairs() -> dict[str, str]:
    """Return for each word of the list its first antonym."""
    pairs: dict[str, str] = {}
    for line in ANTONYMS.read_text(encoding="utf-8").splitlines():
        if not line or line.startswith("#"):
            continue
        left, right = (side.split() for side in line.split("|"))
        for side, other in ((left, right), (right, left)):
            for word in side:
                pairs.setdefault(word, other[0])
    return pairs

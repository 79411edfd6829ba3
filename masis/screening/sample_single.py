"""The sample of one: "a 49-year-old woman", "we report a patient", "the case of a child"."""

from __future__ import annotations

import re
from collections.abc import Sequence

from masis.screening.numerals import Token
from masis.screening.sample_mentions import Mention

_ONE = (
    r"patient|man|woman|child|boy|girl|infant|adolescent|male|female|person|newborn|neonate|lady|gentleman|adult|"
    r"teenager|baby|toddler|mother|veteran|student|soldier|case|fetus"
)
_OLD = r"(?:\d{1,3}|[a-z]{3,9})[-‐–\s](?:year|yr|month|week|day)s?[-‐–\s]old"
_WORDS = r"(?: [\w'’-]{1,30})"
_TELL = "report|describe|present|experienced|encountered|treated|observed|saw"
_PATTERNS = tuple(
    re.compile(pattern, re.I)
    for pattern in (
        rf"\b(?:an?|the|this|one|single|our){_WORDS}{{0,3}} {_OLD}\b(?:,?{_WORDS}){{0,4}}? (?:{_ONE})\b",
        rf"\b(?:an?|the|this|one|our) {_OLD}\b",
        rf"\b(?:{_TELL})\w{{0,3}}(?: here| on)? (?:an?|the|one){_WORDS}{{0,5}}? (?:{_ONE})\b",
        rf"\b(?:an?|the){_WORDS}{{0,3}} case (?:report )?of\b",
        rf"\bcase (?:report|history) of an?\b{_WORDS}{{0,4}}? (?:{_ONE})\b",
        rf"\ban?{_WORDS}{{0,4}}? (?:{_ONE}) (?:is|was|who (?:was )?) ?(?:reported|described|presented|admitted)\b",
    )
)
_SET_PHRASE = re.compile(r"\bcase[- ](?:control|series)|\bin the case of\b", re.I)


def single(text: str, tokens: Sequence[Token]) -> Mention | None:
    """The first place where an abstract speaks of the one it is about; None where it doesn't."""
    found = [match for pattern in _PATTERNS if (match := _first(pattern, text))]
    if not found:
        return None
    match = min(found, key=lambda match: match.start())
    first = next(index for index, token in enumerate(tokens) if token.end > match.start())
    after = next((index for index, token in enumerate(tokens) if token.start >= match.end()), len(tokens))
    return Mention(1, "single", first, after, "patient", "people")


def _first(pattern: re.Pattern[str], text: str) -> re.Match[str] | None:
    """The first match that is not part of a set phrase."""
    for match in pattern.finditer(text):
        if not _SET_PHRASE.search(text[max(0, match.start() - 8) : match.end() + 8]):
            return match
    return None

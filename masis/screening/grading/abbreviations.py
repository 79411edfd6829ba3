"""Abbreviations and what they stand for, read from the abstract itself: "acute myocardial infarction (AMI)".

A definition is a short form in brackets whose letters are found, in order and from the right, in the words before it
(Schwartz and Hearst, Pac Symp Biocomput 2003;8:451), or the long form in brackets behind the short one. A question's
own abbreviation that the abstract never defines is met by words whose initials spell it ("obsessive compulsive
disorder" for OCD), from three letters on: two letters spell too much.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from masis.screening.grading.wording import LONGEST_READ

_MOST = 40
"""Definitions read of one abstract."""
_BRACKETED = re.compile(r"([^()]{2,90})\(([^()]{2,60})\)")
_SHORT = re.compile(r"[A-Za-z][A-Za-z0-9-]{1,9}")
_EMPTY = frozenset("a an and for in of on or the to with by".split())
INITIALS_LEAST = 3
"""From so many letters on, initials alone stand for a question's abbreviation."""


class Definition(NamedTuple):
    """A short form and what it stands for, as the text has them."""

    short: str
    long: str


def definitions(text: str) -> tuple[Definition, ...]:
    """Return the abbreviations that a text defines, in order; takes time linear in the text."""
    found: list[Definition] = []
    for match in _BRACKETED.finditer(text, 0, LONGEST_READ):
        before, inside = match[1].strip(), re.split(r"[;,]", match[2])[0].strip()
        if is_abbreviation(inside):
            long = _long_form(inside, before)
            if long:
                found.append(Definition(inside, long))
        elif (last := before.split()[-1:]) and is_abbreviation(last[0]) and _long_form(last[0], inside) == inside:
            found.append(Definition(last[0], inside))
        if len(found) >= _MOST:
            break
    return tuple(found)


def is_abbreviation(word: str) -> bool:
    """Return whether a word looks like an abbreviation: two to ten characters, at least two capitals."""
    return _SHORT.fullmatch(word) is not None and sum(letter.isupper() for letter in word) >= 2


def _long_form(short: str, before: str) -> str | None:
    """Return the shortest run of words before the bracket that holds the letters of the short form in their order."""
    letters = [letter.lower() for letter in short if letter.isalnum()]
    if letters[-1] == "s" and short[-1] == "s":
        letters.pop()  # a plural: SSRIs
    at = len(before)
    for number in range(len(letters) - 1, -1, -1):
        at -= 1
        while at >= 0 and (
            before[at].lower() != letters[number] or (number == 0 and at > 0 and before[at - 1].isalnum())
        ):
            at -= 1
        if at < 0:
            return None
    long = before[at:].strip()
    return long if len(long) > len(short) and len(long.split()) <= min(len(letters) + 5, 2 * len(letters)) else None


def spelt_by_initials(short: str, words: list[str]) -> tuple[int, int] | None:
    """Return from which to which word (excluded) the initials of a text spell an abbreviation; None where they don't.

    Empty words ("of", "and") may stand between.
    """
    wanted = "".join(letter for letter in short.removesuffix("s").lower() if letter.isalpha())  # a plural: SSRIs
    if len(wanted) < INITIALS_LEAST:
        return None
    content = [(index, word[0].lower()) for index, word in enumerate(words) if word.lower() not in _EMPTY]
    at = "".join(letter for _, letter in content).find(wanted)
    return None if at < 0 else (content[at][0], content[at + len(wanted) - 1][0] + 1)

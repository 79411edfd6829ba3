"""Looking for wordings in an abstract: patterns with a guard against their denial ("not blinded",
"non-randomised").
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, NamedTuple

from masis.schema.screening import Abstract, AbstractWords, ItemState

_LOOK_BACK = 120
LONGEST_READ = 20_000
"""Characters of a text or title that are read: a record with more is no abstract."""
_TRIES = 8


def read_word_lists(path: Path) -> dict[str, list[str]]:
    """Return the lists of a file: ``name: words``, where a line that begins with a blank goes on
    with the list.
    """
    lists: dict[str, list[str]] = {}
    name = ""
    for line in path.read_text(encoding="utf-8").splitlines():
        if line and not line.startswith(("#", " ")):
            name, _, line = line.partition(":")
        if line and not line.startswith("#"):
            lists.setdefault(name, []).extend(line.split())
    return lists


def read_tables(path: Path) -> dict[str, Any]:
    """Return the tables of a TOML file."""
    return tomllib.loads(path.read_text(encoding="utf-8"))


def joined_forms(forms: Iterable[str], names: Mapping[str, str] | None = None) -> str:
    """Return forms as one pattern of which any may match; a line break in a form is dropped with
    the blanks behind it.

    ``%NAME%`` stands for the form of that name in ``names``, which may itself name those above it.
    """
    pattern = "|".join(forms)
    for name, form in reversed(list((names or {}).items())):
        pattern = pattern.replace(f"%{name}%", form)
    return re.sub(r"\n\s*", "", pattern)


_TABLES = read_tables(Path(__file__).with_name("denial_words.toml"))
_SAYS = {
    name: re.compile(joined_forms(forms, _TABLES["names"]), re.I)
    for name, forms in _TABLES["forms"].items()
}
"""The words around a method word that deny it, or say that it is planned or of other studies."""

Place = Literal["text", "title"]
MentionState = Literal["stated", "denied", "planned"]


class WordingMention(NamedTuple):
    """An occurrence of a wording, and what is said there."""

    start: int
    end: int
    state: MentionState


class Wording:
    """A pattern, searched without regard to case, whose denied occurrences don't count.

    Of a ``result`` only the reporting can be denied: "no adverse events" reports them, "were not
    recorded" doesn't. ``places`` are where an abstract is searched, in this order.

    Every repetition in a pattern is bounded: a search takes time linear in the text. Where lowering
    a text keeps its length, as it nearly always does, the lowered text is searched, which is twice
    as fast as ignoring case.
    """

    def __init__(
        self, pattern: str, *, result: bool = False, places: Sequence[Place] = ("text", "title")
    ) -> None:
        self._pattern = re.compile(pattern, re.I | re.A)
        self._lowered = re.compile(pattern.lower(), re.A)
        self._result, self.places = result, places

    def search(self, text: str) -> tuple[int, int] | None:
        """Return where it first occurs undenied; None where it doesn't."""
        return next(
            ((each.start, each.end) for each in self.mentions(text) if each.state == "stated"), None
        )

    def mentions(self, text: str) -> Iterator[WordingMention]:
        """Yield where it occurs, and whether that is stated, denied or only planned."""
        lowered = text.lower()
        pattern, searched = (
            (self._lowered, lowered) if len(lowered) == len(text) else (self._pattern, text)
        )
        for tried, found in enumerate(pattern.finditer(searched, 0, LONGEST_READ)):
            yield WordingMention(*found.span(), _state(text, *found.span(), result=self._result))
            if tried >= _TRIES:
                return


def _state(text: str, start: int, end: int, *, result: bool = False) -> MentionState:
    """Return whether the words at these places are stated, only planned, or denied or said of
    nobody.
    """
    before, after = text[max(0, start - _LOOK_BACK) : start], text[end : end + _LOOK_BACK]
    if _SAYS["comparing"].match(text, start, end):
        return (
            "denied"
            if _SAYS["not_compared"].search(before) or _SAYS["with_itself"].match(after)
            else "stated"
        )
    if _SAYS["denied_after"].match(after):
        return "denied"
    subject = _SAYS["verb"].match(text, start) and _SAYS["nobody"].search(before)
    if not result and (
        _SAYS["denied"].search(before) or _SAYS["nobody_was"].search(before) or subject
    ):
        return "denied"
    elsewhere = _SAYS["others"].search(before) and _SAYS["studies"].match(after)
    return (
        "planned"
        if elsewhere or _SAYS["planned"].search(before) or _SAYS["planned_after"].match(after)
        else "stated"
    )


def find_statement(
    wording: Wording, abstract: Abstract
) -> tuple[ItemState, tuple[AbstractWords, ...]]:
    """Return how an abstract speaks of something, and in which words: stated anywhere, else its
    first mention.
    """
    other: tuple[ItemState, tuple[AbstractWords, ...]] = ("not_stated", ())
    for place in wording.places:
        source = abstract.text if place == "text" else abstract.title
        for each in wording.mentions(source):
            words = AbstractWords(
                start=each.start, end=each.end, text=source[each.start : each.end], place=place
            )
            if each.state == "stated":
                return "stated", (words,)
            if other[0] == "not_stated":
                other = each.state, (words,)
    return other

"""Finds wordings in abstracts, and whether they are denied ("not blinded", "non-randomized")."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, NamedTuple

from masis.schema.screening import Abstract, AbstractWords, ItemState

# Characters before and after a wording in which a denial is searched.
_CONTEXT = 120
LONGEST_READ = 20_000
"""The most characters of a text or title that are read. A longer text isn't an abstract."""
# The most occurrences of a wording that are examined, which bounds the time for hostile texts.
_MAX_MENTIONS = 8


def read_word_lists(path: Path) -> dict[str, list[str]]:
    """Return the lists of a file: ``name: words``; indented lines continue a list."""
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
    """Join alternative forms into one pattern, without line breaks and the spaces after them.

    ``%NAME%`` is replaced by the form of that name in ``names``. A form may use the names above it.
    """
    pattern = "|".join(forms)
    # Reversed, so that a name is replaced before the names that its own form uses.
    for name, form in reversed(list((names or {}).items())):
        pattern = pattern.replace(f"%{name}%", form)
    return re.sub(r"\n\s*", "", pattern)


_TABLES = read_tables(Path(__file__).with_name("denial_words.toml"))
# The words around a method word that deny it, or say that it is planned or of other studies.
_PATTERNS = {
    name: re.compile(joined_forms(forms, _TABLES["names"]), re.I)
    for name, forms in _TABLES["forms"].items()
}

Place = Literal["text", "title"]
MentionState = Literal["stated", "denied", "planned"]


class WordingMention(NamedTuple):
    """An occurrence of a wording, and whether it is stated, denied or planned."""

    start: int
    end: int
    state: MentionState


class Wording:
    """A pattern, searched without regard to case, that tells stated from denied occurrences.

    For a ``result``, only the reporting can be denied: "no adverse events" reports them, "were not
    recorded" doesn't. ``places`` are the parts of an abstract to search, in order.

    Every repetition in a pattern is bounded, so that a search takes linear time. If lowercasing a
    text keeps its length, as it nearly always does, the lowercase text is searched, which is twice
    as fast as ignoring case.
    """

    def __init__(
        self, pattern: str, *, result: bool = False, places: Sequence[Place] = ("text", "title")
    ) -> None:
        self._pattern = re.compile(pattern, re.I | re.A)
        self._lowered = re.compile(pattern.lower(), re.A)
        self._result, self.places = result, places

    def search(self, text: str) -> tuple[int, int] | None:
        """Return the start and end of the first stated occurrence, or None."""
        return next(
            (
                (mention.start, mention.end)
                for mention in self.mentions(text)
                if mention.state == "stated"
            ),
            None,
        )

    def mentions(self, text: str) -> Iterator[WordingMention]:
        """Yield the occurrences with their states, at most ``_MAX_MENTIONS`` + 1."""
        lowered = text.lower()
        # Some characters change their length, such as "İ", and would shift all offsets after them.
        pattern, searched = (
            (self._lowered, lowered) if len(lowered) == len(text) else (self._pattern, text)
        )
        for index, match in enumerate(pattern.finditer(searched, 0, LONGEST_READ)):
            state = _mention_state(text, *match.span(), result=self._result)
            yield WordingMention(*match.span(), state)
            if index >= _MAX_MENTIONS:
                return


def _mention_state(text: str, start: int, end: int, *, result: bool = False) -> MentionState:
    """Return whether a wording at this position is stated, planned or denied.

    It is also denied if its subject is "none" or "nobody" ("none of the patients were blinded").
    """
    before, after = text[max(0, start - _CONTEXT) : start], text[end : end + _CONTEXT]
    if _PATTERNS["comparing"].match(text, start, end):
        return (
            "denied"
            if _PATTERNS["not_compared"].search(before) or _PATTERNS["with_itself"].match(after)
            else "stated"
        )
    if _PATTERNS["denied_after"].match(after):
        return "denied"
    has_empty_subject = _PATTERNS["verb"].match(text, start) and _PATTERNS["nobody"].search(before)
    if not result and (
        _PATTERNS["denied"].search(before)
        or _PATTERNS["nobody_was"].search(before)
        or has_empty_subject
    ):
        return "denied"
    is_about_others = _PATTERNS["others"].search(before) and _PATTERNS["studies"].match(after)
    return (
        "planned"
        if is_about_others
        or _PATTERNS["planned"].search(before)
        or _PATTERNS["planned_after"].match(after)
        else "stated"
    )


def find_statement(
    wording: Wording, abstract: Abstract
) -> tuple[ItemState, tuple[AbstractWords, ...]]:
    """Return the state of a wording in an abstract, and its words.

    If it is stated anywhere, it counts as stated. Otherwise its first mention counts.
    """
    first_mention: tuple[ItemState, tuple[AbstractWords, ...]] = ("not_stated", ())
    for place in wording.places:
        source = abstract.text if place == "text" else abstract.title
        for mention in wording.mentions(source):
            words = AbstractWords(
                start=mention.start,
                end=mention.end,
                text=source[mention.start : mention.end],
                place=place,
            )
            if mention.state == "stated":
                return "stated", (words,)
            if first_mention[0] == "not_stated":
                first_mention = mention.state, (words,)
    return first_mention

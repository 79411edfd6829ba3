"""Checks that a lenient JSON parser read exactly what the text says.

A parser that repairs JSON guesses, and a guess may drop an item, swallow the fields after a missing
quote or close a list that was cut off. Its reading is therefore only a proposal. It is compared
with the text token by token and refused at the first difference. The differences that were
tolerated are returned as the list of repairs.

Tolerated are quotes of another kind or none, too many or missing commas, comments, ``True`` and
``None``, line breaks and unescaped quotes inside a text, and a last brace that is missing after a
closed list or object. No value is ever invented.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple, TypeVar

M = TypeVar("M")
# Blanks, "// comments" and "/* comments */".
_BLANK = re.compile(r"(?:\s+|//[^\n]*(?:\n|\Z)|/\*(?:[^*]|\*(?!/))*\*/)*")
# A number as JSON writes it, and also "5." and ".5".
_NUMBER = re.compile(r"-?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?")
# The three quotation marks of Python come first, or they would be read as an empty text.
_OPENING = re.compile(r'"""|"|\'|`')
# A word without quotes, up to 80 characters: "not supported", "95%".
_BARE = re.compile(r"[\w%+\-][\w.%+\- /]{0,79}")
_BARE_KEY = re.compile(r"\w{1,80}")
# Two texts with a delimiter between them, such as "a", "b", inside what was read as one text.
_RUN_TOGETHER = re.compile(r"[\"'`][\s,:{}\[\]]{0,50}[\"'`{\[]|\A\s{0,500}[\"'`]|[\"'`]\s{0,500}\Z")
_ESCAPES = {
    "n": "\n",
    "t": "\t",
    "r": "\r",
    "b": "\b",
    "f": "\f",
    "/": "/",
    "\\": "\\",
    '"': '"',
    "'": "'",
    "`": "`",
}
_WORDS: dict[str, Any] = {
    "true": True,
    "false": False,
    "null": None,
    "none": None,
    "nan": float("nan"),
    "infinity": float("inf"),
    "-infinity": float("-inf"),
}
# Python's json module also writes and reads the last three, so they need no repair.
_JSON_WORDS = ("true", "false", "null", "NaN", "Infinity", "-Infinity")


class RepairRefused(ValueError):
    """The text doesn't say what was proposed; the message names the kind of place without quoting
    it.
    """


class VerifiedRepair(NamedTuple):
    """A value with the types that the text gives it, the offset where it ends, and the repairs."""

    value: dict[str, Any]
    end: int
    repairs: tuple[str, ...]


def verify_repair(
    proposed: dict[str, Any],
    text: str,
    start: int,
    names: Iterable[str] = (),
    words: Iterable[str] = (),
) -> VerifiedRepair:
    """Return the value at ``text[start:]`` if it matches the proposed reading.

    ``names`` are the fields of the record and of its nested records. A text value that seems to
    contain one of them followed by a colon, after an unescaped quote, may have swallowed the field.
    ``words`` are the words that may be written without quotes: the closed sets of the record. Any
    other bare word may be a misspelt literal.

    Raises:
        RepairRefused: The text doesn't match the proposal.

    """
    walk = _Walk(text, start, names, words)
    value = walk.object(proposed, outermost=True)
    return VerifiedRepair(value, walk.at, tuple(dict.fromkeys(walk.repairs)))


class _Walk:
    """One walk along a text."""

    def __init__(self, text: str, start: int, names: Iterable[str], words: Iterable[str]) -> None:
        self.text, self.at, self.words = text, start, frozenset(words)
        self.repairs: list[str] = []
        # The longest name first: an alternation takes the first one that matches.
        known = "|".join(sorted(map(re.escape, names), key=len, reverse=True))
        self.field = (
            re.compile(rf"(?<!\w)(?:{known})[\"'`]?\s{{0,50}}:", re.IGNORECASE) if known else None
        )
        self.closed = -1
        """The offset just after the last list or object that the text closes."""

    def object(self, proposed: dict[str, Any], outermost: bool = False) -> dict[str, Any]:
        """Return the fields of an object in the order in which they are written."""
        made: dict[str, Any] = {}
        for key, value in self._members("{", "}", proposed.items(), outermost):
            if not isinstance(key, str):
                raise RepairRefused("a field without a name")
            self._key(key)
            self._take(":")
            made[key] = self.value(value)
        return made

    def value(self, proposed: Any) -> Any:
        """Return the value at the current position, whatever its type."""
        if isinstance(proposed, dict):
            return self.object(proposed)
        if isinstance(proposed, list):
            return [self.value(item) for item in self._members("[", "]", proposed)]
        self._blank()
        if not isinstance(proposed, str):
            return self._literal(proposed)
        opened = _OPENING.match(self.text, self.at)
        if opened is None:
            return self._bare(proposed)
        self._read_quoted(proposed, opened.group())
        return proposed

    def _members(
        self, opening: str, closing: str, members: Iterable[M], outermost: bool = False
    ) -> Iterator[M]:
        """Yield each member between two delimiters and skip the commas; the caller reads the
        members.
        """
        self._take(opening)
        number = 0
        for number, member in enumerate(members, 1):
            if number > 1 and not self._accept(","):
                self.repairs.append("a missing comma")
            yield member
        if number and self._accept(","):
            self.repairs.append("a comma too many")
        if self._accept(closing):
            self.closed = self.at
        elif (
            outermost
            and not self.text[self.closed : self.at].strip()
            and self.closed > 0
            and not self.text[self.at :].strip().strip("`").strip()  # but a closing code fence
        ):
            self.repairs.append("a missing last brace")
        else:
            raise RepairRefused(f"there is no {closing!r} where one was read")

    def _blank(self) -> None:
        found = _BLANK.match(self.text, self.at)
        end = found.end() if found else self.at
        if "/" in self.text[self.at : end]:
            self.repairs.append("a comment")
        self.at = end

    def _accept(self, sign: str) -> bool:
        self._blank()
        there = self.text.startswith(sign, self.at)
        self.at += there
        return there

    def _take(self, sign: str) -> None:
        if not self._accept(sign):
            raise RepairRefused(f"there is no {sign!r} where one was read")

    def _key(self, key: str) -> None:
        self._blank()
        opened = _OPENING.match(self.text, self.at)
        if opened is None:
            bare = _BARE_KEY.match(self.text, self.at)
            if bare is None or bare.group() != key:
                raise RepairRefused("a field is not where it was read")
            self.repairs.append("a name without quotes")
            self.at = bare.end()
            return
        self._read_quoted(key, opened.group())

    def _read_quoted(self, proposed: str, quote: str) -> None:
        """Read a quoted text with its escapes resolved; if it has an unescaped quote, check that it
        is a single text.
        """
        self.at += len(quote)
        unescaped, broken = 0, False
        for sign in proposed:
            taken = self._escape_length(sign)
            if not taken:
                if not self.text.startswith(sign, self.at):
                    raise RepairRefused("a text differs from what was read")
                taken = 1
                unescaped += sign == quote[0]
                broken = broken or sign < " "
            self.at += taken
        if not self.text.startswith(quote, self.at):
            raise RepairRefused("a text goes on, or breaks off")
        self.at += len(quote)
        if quote != '"':
            self.repairs.append("quotes of another kind")
        if broken:
            self.repairs.append("a line break in a text")
        if unescaped:
            # Quotes inside a text come in pairs. An odd one may mark the text's real end.
            if unescaped % 2:
                raise RepairRefused("a quote opens or closes a text that is not there")
            if _RUN_TOGETHER.search(proposed) or (self.field and self.field.search(proposed)):
                raise RepairRefused("a text may have swallowed what follows it")
            self.repairs.append("a quote in a text")

    def _escape_length(self, sign: str) -> int:
        """Return the length of the escape sequence for this character here, or 0."""
        text, at = self.text, self.at
        if not text.startswith("\\", at):
            return 0
        following = text[at + 1 : at + 2]
        if _ESCAPES.get(following) == sign:
            return 2
        if following == "u":
            code = ord(sign)
            # JSON writes a character beyond U+FFFF as a pair of UTF-16 surrogates (RFC 8259, 7).
            units = [code] if code < 0x10000 else [0xD7C0 + (code >> 10), 0xDC00 + (code & 0x3FF)]
            wanted = "".join(f"\\u{unit:04x}" for unit in units)
            if text[at : at + len(wanted)].lower() == wanted:
                return len(wanted)
        return 0

    def _bare(self, proposed: str) -> Any:
        """Read a word without quotes, up to the next delimiter: a literal, or a word that the
        record allows.
        """
        found = _BARE.match(self.text, self.at)
        if found is None or found.group().strip() != proposed:
            raise RepairRefused("a word is not where it was read")
        self.at += len(proposed)
        self._expect_end()
        if proposed.lower() in _WORDS:
            if proposed not in _JSON_WORDS:
                self.repairs.append("a word of another language")
            return _WORDS[proposed.lower()]
        if proposed not in self.words:
            raise RepairRefused("an unknown word has no quotes")
        self.repairs.append("a word without quotes")
        return proposed

    def _literal(self, proposed: float | bool | None) -> Any:
        """Read a number, a boolean or a null."""
        word = proposed is None or isinstance(proposed, bool)
        found = (_BARE_KEY if word else _NUMBER).match(self.text, self.at)
        written = found.group() if found else ""
        # "self" stands for a word that isn't in the table; it is no proposed value, unlike None.
        try:
            same = (
                _WORDS.get(written.lower(), self) is proposed
                if word
                else float(written) == float(proposed or 0)
            )
        except (OverflowError, ValueError, TypeError):
            same = False
        if not same:
            raise RepairRefused("a word or a number differs from what was read")
        self.at += len(written)
        self._expect_end()
        if word and written not in _JSON_WORDS:
            self.repairs.append("a word of another language")
        return proposed

    def _expect_end(self) -> None:
        """Check that the word or number ends here."""
        at = self.at
        self._blank()
        if at == self.at and self.text[at : at + 1] not in (",", "}", "]"):
            raise RepairRefused("a word or a number goes on, or breaks off")
        follows = self.text[self.at : self.at + 1]
        if follows not in (",", "}", "]") and "\n" not in self.text[at : self.at]:
            raise RepairRefused("a word or a number goes on, or breaks off")

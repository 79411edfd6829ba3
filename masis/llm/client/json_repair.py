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
# Whitespace, "// comments" and "/* comments */".
_WHITESPACE = re.compile(r"(?:\s+|//[^\n]*(?:\n|\Z)|/\*(?:[^*]|\*(?!/))*\*/)*")
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
    """The text differs from the proposed reading; the message names the difference without quoting
    the text.
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
    reader = _TextReader(text, start, names, words)
    value = reader.object(proposed, outermost=True)
    return VerifiedRepair(value, reader.offset, tuple(dict.fromkeys(reader.repairs)))


class _TextReader:
    """Reads a text starting at ``offset`` and compares it with the proposed values."""

    def __init__(self, text: str, start: int, names: Iterable[str], words: Iterable[str]) -> None:
        self.text, self.offset, self.words = text, start, frozenset(words)
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
        fields: dict[str, Any] = {}
        for key, value in self._members("{", "}", proposed.items(), outermost):
            if not isinstance(key, str):
                raise RepairRefused("a field without a name")
            self._key(key)
            self._expect(":")
            fields[key] = self.value(value)
        return fields

    def value(self, proposed: Any) -> Any:
        """Return the value of any type at the current offset."""
        if isinstance(proposed, dict):
            return self.object(proposed)
        if isinstance(proposed, list):
            return [self.value(item) for item in self._members("[", "]", proposed)]
        self._skip_whitespace()
        if not isinstance(proposed, str):
            return self._literal(proposed)
        opened = _OPENING.match(self.text, self.offset)
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
        self._expect(opening)
        number = 0
        for number, member in enumerate(members, 1):
            if number > 1 and not self._accept(","):
                self.repairs.append("a missing comma")
            yield member
        if number and self._accept(","):
            self.repairs.append("a comma too many")
        if self._accept(closing):
            self.closed = self.offset
        elif (
            outermost
            and not self.text[self.closed : self.offset].strip()
            and self.closed > 0
            and not self.text[self.offset :].strip().strip("`").strip()  # but a closing code fence
        ):
            self.repairs.append("a missing last brace")
        else:
            raise RepairRefused(f"there is no {closing!r} where one was read")

    def _skip_whitespace(self) -> None:
        match = _WHITESPACE.match(self.text, self.offset)
        end = match.end() if match else self.offset
        if "/" in self.text[self.offset : end]:
            self.repairs.append("a comment")
        self.offset = end

    def _accept(self, token: str) -> bool:
        self._skip_whitespace()
        is_present = self.text.startswith(token, self.offset)
        self.offset += is_present
        return is_present

    def _expect(self, token: str) -> None:
        if not self._accept(token):
            raise RepairRefused(f"there is no {token!r} where one was read")

    def _key(self, key: str) -> None:
        self._skip_whitespace()
        opened = _OPENING.match(self.text, self.offset)
        if opened is None:
            bare = _BARE_KEY.match(self.text, self.offset)
            if bare is None or bare.group() != key:
                raise RepairRefused("a field is not where it was read")
            self.repairs.append("a name without quotes")
            self.offset = bare.end()
            return
        self._read_quoted(key, opened.group())

    def _read_quoted(self, proposed: str, quote: str) -> None:
        """Read a quoted text with its escapes resolved; if it has an unescaped quote, check that it
        is a single text.
        """
        self.offset += len(quote)
        unescaped, has_line_break = 0, False
        for character in proposed:
            length = self._escape_length(character)
            if not length:
                if not self.text.startswith(character, self.offset):
                    raise RepairRefused("a text differs from what was read")
                length = 1
                unescaped += character == quote[0]
                has_line_break = has_line_break or character < " "
            self.offset += length
        if not self.text.startswith(quote, self.offset):
            raise RepairRefused("a text goes on, or breaks off")
        self.offset += len(quote)
        if quote != '"':
            self.repairs.append("quotes of another kind")
        if has_line_break:
            self.repairs.append("a line break in a text")
        if unescaped:
            # Quotes inside a text come in pairs. An odd one may mark the text's real end.
            if unescaped % 2:
                raise RepairRefused("a quote opens or closes a text that is not there")
            if _RUN_TOGETHER.search(proposed) or (self.field and self.field.search(proposed)):
                raise RepairRefused("a text may have swallowed what follows it")
            self.repairs.append("a quote in a text")

    def _escape_length(self, character: str) -> int:
        """Return the length of the escape sequence for this character here, or 0."""
        text, offset = self.text, self.offset
        if not text.startswith("\\", offset):
            return 0
        following = text[offset + 1 : offset + 2]
        if _ESCAPES.get(following) == character:
            return 2
        if following == "u":
            code = ord(character)
            # JSON writes a character beyond U+FFFF as a pair of UTF-16 surrogates (RFC 8259, 7).
            units = [code] if code < 0x10000 else [0xD7C0 + (code >> 10), 0xDC00 + (code & 0x3FF)]
            escape = "".join(f"\\u{unit:04x}" for unit in units)
            if text[offset : offset + len(escape)].lower() == escape:
                return len(escape)
        return 0

    def _bare(self, proposed: str) -> Any:
        """Read a word without quotes, up to the next delimiter: a literal, or a word that the
        record allows.
        """
        match = _BARE.match(self.text, self.offset)
        if match is None or match.group().strip() != proposed:
            raise RepairRefused("a word is not where it was read")
        self.offset += len(proposed)
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
        is_word = proposed is None or isinstance(proposed, bool)
        match = (_BARE_KEY if is_word else _NUMBER).match(self.text, self.offset)
        written = match.group() if match else ""
        # "self" is the default for unknown words, because unlike None it is never a proposed value.
        try:
            is_same = (
                _WORDS.get(written.lower(), self) is proposed
                if is_word
                else float(written) == float(proposed or 0)
            )
        except (OverflowError, ValueError, TypeError):
            is_same = False
        if not is_same:
            raise RepairRefused("a word or a number differs from what was read")
        self.offset += len(written)
        self._expect_end()
        if is_word and written not in _JSON_WORDS:
            self.repairs.append("a word of another language")
        return proposed

    def _expect_end(self) -> None:
        """Check that the word or number ends here."""
        start = self.offset
        self._skip_whitespace()
        if start == self.offset and self.text[start : start + 1] not in (",", "}", "]"):
            raise RepairRefused("a word or a number goes on, or breaks off")
        next_character = self.text[self.offset : self.offset + 1]
        if next_character not in (",", "}", "]") and "\n" not in self.text[start : self.offset]:
            raise RepairRefused("a word or a number goes on, or breaks off")

"""On which line of a TOML file each key stands: what the standard library's reader does not tell."""

from __future__ import annotations

import re
import tomllib
from contextlib import suppress
from typing import NamedTuple

from masis.settings.aliases import Name

_BLANK = re.compile(r"(?:[ \t\r\n]+|#[^\n]*)*")
_PART = re.compile(r'[ \t]*("(?:[^"\\\n]|\\.)*"|\'[^\'\n]*\'|[A-Za-z0-9_-]+)[ \t]*')
_TEXT = re.compile(
    r'''"""(?:[^"\\]|\\.|"(?!""))*"{3,5}|\'\'\'(?:[^']|'(?!''))*'{3,5}|"(?:[^"\\\n]|\\.)*"|'[^'\n]*\'''',
    re.DOTALL,
)
DEEPEST = 20
"""Parts of a key, or tables in each other, up to which lines are known: no setting lies deeper."""

_OTHER = re.compile(r"[^,\[\]{}\"'#\n]+")


def key_lines(text: str) -> dict[Name, int]:
    """The line (from 1) on which each key and each table first stands. ``text`` is TOML that could be read.

    Keys inside of arrays are left out.
    """
    reader = _Reader(text)
    with suppress(_Lost):  # the text was no TOML after all: what was found until then stands
        reader.read()
    return reader.lines()


class _Lost(Exception):
    """Something stands where none can."""


class _Key(NamedTuple):
    path: Name
    start: int


class _Reader:
    def __init__(self, text: str) -> None:
        self._text, self._at = text, 0
        self._starts: dict[Name, int] = {}

    def lines(self) -> dict[Name, int]:
        found, line, at = {}, 1, 0
        for path, start in sorted(self._starts.items(), key=lambda item: item[1]):
            line += self._text.count("\n", at, start)
            at = start
            found[path] = line
        return found

    def read(self) -> None:
        table: Name = ()
        while self._blank() < len(self._text):
            if self._text[self._at] == "[":
                table = self._header()
            else:
                self._pair(table)

    def _header(self) -> Name:
        mark = "[[" if self._text.startswith("[[", self._at) else "["
        self._at += len(mark)
        key = self._key(())
        self._expect("]" * len(mark))
        return key.path

    def _pair(self, table: Name) -> None:
        key = self._key(table)
        self._expect("=")
        self._value(key.path)

    def _key(self, table: Name) -> _Key:
        """A dotted key; each of its parts is taken down where the whole begins."""
        start, path = self._at, table
        while True:
            found = _PART.match(self._text, self._at)
            if found is None or len(path) >= DEEPEST:
                raise _Lost
            path = (*path, _plain(found[1]))
            self._starts.setdefault(path, start)
            self._at = found.end()
            if not self._text.startswith(".", self._at):
                return _Key(path, start)
            self._at += 1

    def _value(self, path: Name) -> None:
        self._blank()
        if self._text.startswith("{", self._at):
            self._inline_table(path)
        elif self._text.startswith("[", self._at):
            self._array()
        else:
            self._skip(_TEXT if self._text[self._at : self._at + 1] in ('"', "'") else _OTHER)

    def _inline_table(self, path: Name) -> None:
        self._at += 1
        while self._blank() < len(self._text) and self._text[self._at] != "}":
            if self._text[self._at] == ",":
                self._at += 1
            else:
                self._pair(path)
        self._expect("}")

    def _array(self) -> None:
        """Past an array, however deep: strings may hold brackets, and so may comments."""
        depth = 0
        while self._blank() < len(self._text):
            char = self._text[self._at]
            if char in "\"'":
                self._skip(_TEXT)
                continue
            depth += (char in "[{") - (char in "]}")
            self._at += 1
            if not depth:
                return

    def _blank(self) -> int:
        found = _BLANK.match(self._text, self._at)
        self._at = found.end() if found else self._at
        return self._at

    def _skip(self, what: re.Pattern[str]) -> None:
        found = what.match(self._text, self._at)
        if found is None:
            raise _Lost
        self._at = found.end()

    def _expect(self, mark: str) -> None:
        if not self._text.startswith(mark, self._at):
            raise _Lost
        self._at += len(mark)


def _plain(part: str) -> str:
    """A part of a key without its quotes."""
    if part[0] == "'":
        return part[1:-1]
    return str(tomllib.loads(f"key = {part}")["key"]) if part[0] == '"' else part

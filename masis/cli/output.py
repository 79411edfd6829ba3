"""What the commands say to people: always to stderr, with control characters from outside shown, not obeyed."""

from __future__ import annotations

import sys
import threading
import time
import unicodedata
from collections.abc import Iterable
from types import TracebackType
from typing import Any, ClassVar, Self

import click

SHOWN_ERRORS = 20
"""Errors shown one by one; more are counted."""

_SECONDS_BETWEEN_LINES = 10.0
_SECONDS_BETWEEN_FRAMES = 0.1


def printable(text: str) -> str:
    """The text with every control and direction-changing character escaped: an id must not steer a terminal."""
    if text.isprintable():
        return text
    return "".join(char if not _steers(char) else char.encode("unicode_escape").decode("ascii") for char in text)


def _steers(char: str) -> bool:
    return unicodedata.category(char) in ("Cc", "Cf", "Cs", "Zl", "Zp") and char not in "\n\t"


def say(message: str = "") -> None:
    """One line to stderr."""
    click.echo(printable(message), err=True)


class Complaints:
    """Shows errors as they come, up to a limit, and counts all of them."""

    def __init__(self, progress: Progress | None = None) -> None:
        self.count = 0
        self._progress = progress

    def add(self, error: Exception | str) -> None:
        """Show one error, or from the limit on only count it."""
        self.count += 1
        if self.count <= SHOWN_ERRORS:
            self._say(str(error))
        elif self.count == SHOWN_ERRORS + 1:
            self._say("More errors follow; they are counted, not shown.")

    def add_all(self, errors: Iterable[Exception | str]) -> None:
        """Show several errors."""
        for error in errors:
            self.add(error)

    def _say(self, message: str) -> None:
        (self._progress.say if self._progress else say)(message)


class Progress:
    """A bar where a person watches and the length is known, else a line every ten seconds; both on stderr.

    ``total`` and what ``move`` is given are in one unit, bytes of the file for example. Lines may come from any thread.
    """

    shown: ClassVar[Progress | None] = None
    """The one under way, above which lines of the log are written."""

    def __init__(self, label: str, total: int | None) -> None:
        self._label, self._total = label, total
        self._bar: Any = None
        self._at, self._note = 0, ""
        self._next = time.monotonic() + _SECONDS_BETWEEN_LINES
        self._drawing = threading.Lock()

    def __enter__(self) -> Self:
        Progress.shown = self
        if self._total and sys.stderr.isatty():
            self._bar = click.progressbar(
                length=self._total, label=self._label, file=sys.stderr, item_show_func=lambda _: self._note
            )
            self._bar.__enter__()
            self._next = 0.0
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        Progress.shown = None
        if self._bar is not None:
            self._draw()
            self._bar.__exit__(kind, error, trace)

    def move(self, to: int, note: str) -> None:
        """The work is at ``to``; ``note`` says in words what is done."""
        self._at, self._note = to, note
        if time.monotonic() < self._next:
            return
        if self._bar is not None:
            self._next = time.monotonic() + _SECONDS_BETWEEN_FRAMES
            self._draw()
        else:
            self._next = time.monotonic() + _SECONDS_BETWEEN_LINES
            say(f"{self._label}: {note}")

    def _draw(self) -> None:
        with self._drawing:
            self._bar.update(max(0, self._at - self._bar.pos), "")

    def say(self, message: str) -> None:
        """A line above the bar."""
        with self._drawing:
            if self._bar is not None:
                click.echo("\r\x1b[K", nl=False, err=True)
            say(message)
            if self._bar is not None:
                self._bar.render_progress()

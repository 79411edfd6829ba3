"""Messages to people: always to stderr, with control characters from outside shown, not obeyed."""

from __future__ import annotations

import json
import re
import signal
import sys
import threading
import time
import unicodedata
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from types import FrameType, TracebackType
from typing import Any, ClassVar, Self

import click

from masis.schema.wording import shortened

SHOWN_ERRORS = 20
"""Errors shown one by one; more are counted."""

SHOWN_ALIKE = 5
"""Errors shown that differ in their line alone."""

_LINE = re.compile(r", line [0-9]+")
_SECONDS_BETWEEN_LINES = 10.0
_SECONDS_BETWEEN_FRAMES = 0.1


def printable(text: str) -> str:
    """Return the text with every control and direction-changing character escaped: an id must not steer a terminal."""
    if text.isprintable():
        return text
    return "".join(char if not _steers(char) else char.encode("unicode_escape").decode("ascii") for char in text)


def _steers(char: str) -> bool:
    return unicodedata.category(char) in ("Cc", "Cf", "Cs", "Zl", "Zp") and char not in "\n\t"


def say(message: str = "") -> None:
    """Write one line to stderr."""
    click.echo(printable(message), err=True)


_WIDEST = 60
"""Characters of a cell of a table; the last column has what the terminal leaves."""


def emit(
    records: Sequence[Mapping[str, Any]], header: Sequence[str], rows: Sequence[Sequence[str]], *, as_json: bool
) -> None:
    """Write records to stdout: one JSON object a line, or as a table of these rows."""
    if as_json:
        for record in records:
            click.echo(json.dumps(record, ensure_ascii=False))
        return
    if not rows:
        return
    cells = [[shortened(" ".join(printable(cell).split()), _WIDEST) for cell in row] for row in (header, *rows)]
    widths = [max(len(row[place]) for row in cells) for place in range(len(header))]
    for row in cells:
        click.echo("  ".join(f"{cell:<{width}}" for cell, width in zip(row, widths, strict=True)).rstrip())


class ErrorReport:
    """Shows errors as they come, up to a limit, and counts all of them."""

    def __init__(self, progress: Progress | None = None) -> None:
        self.count = 0
        self._alike: Counter[str] = Counter()
        self._progress = progress

    def add(self, error: Exception | str) -> None:
        """Show one error, or from the limit on only count it."""
        self.count += 1
        alike = _LINE.sub("", str(error))
        self._alike[alike] += 1
        if self._alike[alike] == SHOWN_ALIKE + 1:
            self._say("The same for further rows; they are counted, not shown.")
        if self._alike[alike] > SHOWN_ALIKE:
            return
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
    """Shows a bar in a terminal where the length is known, else a line every ten seconds; both on stderr.

    ``total`` and the place that ``move`` takes are in one unit, such as bytes of the file. Lines may come
    from any thread.
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
        """Show that the work is at ``to``; ``note`` says in words what is done."""
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
        """Write a line above the bar."""
        with self._drawing:
            if self._bar is not None:
                click.echo("\r\x1b[K", nl=False, err=True)
            say(message)
            if self._bar is not None:
                self._bar.render_progress()


class Interruption:
    """Ctrl-C that loses nothing: the first asks to stop after what is under way, the second stops at once.

    While entered, the first SIGINT or SIGTERM sets ``asked``; a second raises KeyboardInterrupt.
    """

    def __init__(self, notice: str) -> None:
        self.asked = False
        self._notice = notice
        self._before: dict[signal.Signals, Any] = {}

    def __enter__(self) -> Self:
        if threading.current_thread() is threading.main_thread():  # signals reach no other thread
            for number in (signal.SIGINT, signal.SIGTERM):
                self._before[number] = signal.signal(number, self._on_signal)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def _on_signal(self, number: int, frame: FrameType | None) -> None:
        if self.asked:
            raise KeyboardInterrupt
        self.asked = True
        say(self._notice)

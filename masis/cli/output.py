"""The output of commands: results on stdout; messages, progress and the log on stderr.

Terminal control characters in any of them are escaped.
"""

from __future__ import annotations

import json
import logging
import multiprocessing.util
import re
import shutil
import signal
import sys
import threading
import time
import unicodedata
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from types import FrameType
from typing import TYPE_CHECKING, Any, NamedTuple, Self

import click
from tqdm import tqdm

from masis.observers.telemetry import start_telemetry
from masis.schema.wording import count_noun, shorten

if TYPE_CHECKING:
    from masis.settings import Settings

MAX_ERRORS_SHOWN = 20
"""How many errors are shown individually; the rest are only counted."""

MAX_SIMILAR_ERRORS = 5
"""How many errors that differ only in their line number are shown."""

_LINE = re.compile(r", line [0-9]+")
_SECONDS_BETWEEN_LINES = 10.0
_BAR = "{desc} {percentage:3.0f}% |{bar}| {remaining}{postfix}"


# Cc: controls such as escape; Cf: formats such as the bidirectional overrides; Cs: surrogates,
# which UTF-8 can't encode; Zl, Zp: line and paragraph separators
_ESCAPED_CATEGORIES = frozenset({"Cc", "Cf", "Cs", "Zl", "Zp"})


def printable(text: str) -> str:
    """Escape control characters and characters that change the writing direction.

    Otherwise an id or a text from a file could move the cursor or reorder what a person reads.
    """
    if text.isprintable():
        return text
    return "".join(
        char.encode("unicode_escape").decode("ascii")
        if unicodedata.category(char) in _ESCAPED_CATEGORIES and char not in "\n\t"
        else char
        for char in text
    )


def say(message: str = "") -> None:
    """Write one line to stderr, from any thread, above the progress bar if one is shown."""
    tqdm.write(printable(message), file=sys.stderr)


class Emit(NamedTuple):
    """Writes results to stdout: ``emit(record, lines)``."""

    as_json: bool

    def __call__(self, record: Any, lines: Iterable[str] = ()) -> None:
        """Write the record as JSON, one line per item of a list, or write ``lines`` for people."""
        if self.as_json:
            for item in record if isinstance(record, list) else [record]:
                # Letters stay readable. JSON that programs exchange is UTF-8 (RFC 8259, section
                # 8.1).
                click.echo(json.dumps(plain(item), ensure_ascii=False))
            return
        self.lines(lines)

    def lines(self, lines: Iterable[str]) -> None:
        """Write lines for people only; programs get the same data in a later JSON record."""
        for line in () if self.as_json else lines:
            click.echo(printable(line).rstrip())


def plain(result: Any) -> Any:
    """Convert a result to JSON-compatible values; records and named tuples become objects."""
    if hasattr(result, "model_dump"):
        return result.model_dump(mode="json")
    if hasattr(result, "_asdict"):
        result = result._asdict()
    if isinstance(result, dict):
        return {str(name): plain(value) for name, value in result.items()}
    if isinstance(result, list | tuple):
        return [plain(item) for item in result]
    return result if isinstance(result, str | int | float | bool | None) else str(result)


_MAX_CELL_WIDTH = 210
"""Maximum number of characters in a table cell, which is the length of a long headline."""

MAX_QUESTION_LENGTH = 60
"""How many characters of a question a table shows."""


def table(
    header: Sequence[str], rows: Iterable[Sequence[str]], *, figures: bool = False
) -> Iterator[str]:
    """Yield rows as the lines of a table, or nothing if there are no rows.

    In a terminal the widest columns are shortened until the table fits. With ``figures``, all
    columns except the first are right-aligned.
    """
    cells = [
        [shorten(" ".join(printable(cell).split()), _MAX_CELL_WIDTH) for cell in row]
        for row in (header, *rows)
    ]
    if len(cells) == 1:
        return
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    # A file or a pipe gets whole cells, because a program may read them.
    if sys.stdout.isatty():
        while (
            sum(widths) + 2 * len(widths) - 2 > shutil.get_terminal_size().columns
            and max(widths) > 8
        ):
            widths[widths.index(max(widths))] -= 1
    for row in cells:
        cut = [shorten(cell, width) for cell, width in zip(row, widths, strict=True)]
        yield "  ".join(
            cell.rjust(width) if figures and place else cell.ljust(width)
            for place, (cell, width) in enumerate(zip(cut, widths, strict=True))
        ).rstrip()


class ErrorReport:
    """Shows errors as they occur, up to a limit, and counts all of them."""

    def __init__(self) -> None:
        self.count = 0
        self._alike: Counter[str] = Counter()

    def add(self, error: Exception | str) -> None:
        """Show one error, or only count it once the limit is reached."""
        self.count += 1
        alike = _LINE.sub("", str(error))
        self._alike[alike] += 1
        if self._alike[alike] == MAX_SIMILAR_ERRORS + 1:
            say("More rows have the same error; they are counted, not shown.")
        if self._alike[alike] > MAX_SIMILAR_ERRORS:
            return
        if self.count <= MAX_ERRORS_SHOWN:
            say(str(error))
        elif self.count == MAX_ERRORS_SHOWN + 1:
            say("More errors follow; they are counted, not shown.")

    def add_all(self, errors: Iterable[Exception | str]) -> None:
        """Show several errors."""
        for error in errors:
            self.add(error)

    def end(self, rest: str = "Everything else is stored.") -> None:
        """Exit with 1 if there was an error; ``rest`` says what happened to the other items."""
        if self.count:
            raise click.ClickException(
                f"{count_noun(self.count, 'error')}, listed above. {rest}".rstrip()
            )


class ProgressBar:
    """Shows progress on stderr: a bar in a terminal, or else a line every ten seconds.

    ``total``, which may be set later, and the position passed to ``move`` use the same unit, such
    as bytes of the file. Without a total there is no bar.
    """

    def __init__(self, label: str, total: int | None = None) -> None:
        self.total = total
        self._label = label
        self._bar: Any = None
        self._next = time.monotonic() + _SECONDS_BETWEEN_LINES

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: Any) -> None:
        if self._bar is not None:
            self._bar.close()

    def move(self, to: int, note: str = "") -> None:
        """Show that the work has reached ``to``; ``note`` describes the progress in words."""
        words = printable(note or f"{to:,} of {self.total or 0:,}")
        if self.total and sys.stderr.isatty():
            if self._bar is None:
                self._bar = tqdm(
                    total=self.total, desc=self._label, file=sys.stderr, bar_format=_BAR
                )
            # update redraws the bar, at most ten times a second (tqdm's mininterval).
            self._bar.set_postfix_str(words, refresh=False)
            self._bar.update(to - self._bar.n)
        elif time.monotonic() >= self._next:
            self._next = time.monotonic() + _SECONDS_BETWEEN_LINES
            say(f"{self._label}: {words}")


class Interruption:
    """Turns the first Ctrl-C into a request to stop after the work in progress.

    Inside the ``with`` block, the first SIGINT or SIGTERM sets ``asked``; a second one raises
    KeyboardInterrupt.
    """

    def __init__(self, notice: str = "Stopping. Press Ctrl-C again to stop at once.") -> None:
        self.asked = False
        self._notice = notice
        self._before: dict[signal.Signals, Any] = {}

    def __enter__(self) -> Self:
        # signal.signal raises ValueError outside the main thread
        if threading.current_thread() is threading.main_thread():
            # A scheduler or a container sends SIGTERM to stop a command.
            for number in (signal.SIGINT, signal.SIGTERM):
                self._before[number] = signal.signal(number, self._on_signal)
        return self

    def __exit__(self, *error: Any) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def _on_signal(self, number: int, frame: FrameType | None) -> None:
        if self.asked:
            raise KeyboardInterrupt
        self.asked = True
        say(self._notice)

    def is_stopped(self) -> bool:
        """Return whether a person asked to stop."""
        return self.asked


class LogLines(logging.Handler):
    """Writes each log record as a line, with control characters escaped."""

    def emit(self, record: logging.LogRecord) -> None:
        """Write the record to stderr, from any thread."""
        say(self.format(record))


def start_worker_telemetry(settings: Settings) -> None:
    """Send telemetry as configured in a worker process until it ends."""
    if (end := start_telemetry(settings)) is not None:
        # Processes of multiprocessing end with os._exit, which skips atexit handlers, but they do
        # run these finalizers.
        multiprocessing.util.Finalize(None, end, exitpriority=100)

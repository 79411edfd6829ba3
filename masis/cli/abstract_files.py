"""Files of abstracts as commands read them: with progress, and until a person asks to stop."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import BinaryIO

from masis.cli.options import STDIO
from masis.cli.output import ErrorReport, Interruption, Progress
from masis.datasets.readers.abstracts import read_abstracts
from masis.datasets.readers.lines import open_lines
from masis.errors import InputError
from masis.schema.screening import Abstract


def read_shown(
    file: Path, errors: ErrorReport, stop: Interruption, *, label: str = "Reading"
) -> Iterator[Abstract | InputError]:
    """Yield the abstracts of a file ('-' for stdin) and an error for each that can't be read, with progress by bytes.

    It ends early once a person asks to stop. Where the file breaks off, or is something else, the error is reported and
    what stands before is yielded.
    """
    try:
        if file == STDIO:
            yield from _shown(sys.stdin.buffer, "stdin", None, stop, label)
        else:
            with open_lines(file) as stream:
                yield from _shown(stream, str(file), file.stat().st_size, stop, label)
    except InputError as error:
        errors.add(error)


def _shown(
    stream: BinaryIO, name: str, size: int | None, stop: Interruption, label: str
) -> Iterator[Abstract | InputError]:
    with Progress(label, size) as progress:
        for number, found in enumerate(read_abstracts(stream, name=name), 1):
            if stop.asked:
                return
            at = stream.tell() if size else number
            progress.move(at, f"{number:,} records read" + (f", {at / size:.0%} of the file" if size else ""))
            yield found


def counted_off(abstracts: Sequence[Abstract], stop: Interruption, label: str) -> Iterator[Abstract]:
    """Yield abstracts while something is made of each, with progress; ends early once a person asks to stop."""
    with Progress(label, len(abstracts)) as progress:
        for number, abstract in enumerate(abstracts, 1):
            if stop.asked:
                return
            yield abstract
            progress.move(number, f"{number:,} of {len(abstracts):,} records")

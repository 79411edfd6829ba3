"""Imports beside the pages: on threads of their own, found again by the token in the address."""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple
from uuid import uuid4

import streamlit as st

from masis.errors import InputError, MasisError
from masis.services import Actor, Workbench
from masis.services.imports import ImportStep, Profile
from masis.ui.shell.served_database import served_database

log = logging.getLogger(__name__)

MOST_PROBLEMS = 200
"""Problems that are shown; the others are counted."""

MOST_IMPORTS = 50
"""Imports that are remembered; the oldest that are over give way."""


class Source(NamedTuple):
    """The file of an import: where it lies, its token and its name, and by which profile it is read."""

    token: str
    path: Path
    name: str
    profile: Profile | None
    strict: bool


class FileImport:
    """One import: what has come of it so far, readable while it goes on."""

    def __init__(self, workbench: Workbench, actor: Actor, source: Source) -> None:
        self.source, self.size = source, max(1, source.path.stat().st_size)
        self.step = ImportStep(0, 0, 0, 0, 0)
        self.problems: list[MasisError] = []
        self.problem_count = 0
        self.failed: str | None = None
        self._stop = threading.Event()
        steps = workbench.imports.add_file(actor, source.path, source.profile, name=source.name, strict=source.strict)
        self._thread = threading.Thread(target=self._work, args=(steps,), daemon=True, name="case-import")
        self._thread.start()

    @property
    def over(self) -> bool:
        """Whether it has ended."""
        return not self._thread.is_alive()

    @property
    def stopping(self) -> bool:
        """Whether it was asked to stop."""
        return self._stop.is_set()

    @property
    def complete(self) -> bool:
        """Whether every row of the file has become a case."""
        return self.over and not (self.stopped or self.failed or self.problem_count)

    stopped = False
    """Whether it ended before the file did, since it was asked to."""

    @property
    def share(self) -> float:
        """How much of the file has been read, 0 to 1."""
        return min(1.0, self.step.end / self.size)

    def stop(self) -> None:
        """Let it end after the batch under way, which stays."""
        self._stop.set()

    def wait(self, seconds: float | None = None) -> None:
        """Wait until it is over, or so long."""
        self._thread.join(seconds)

    def _work(self, steps: Iterator[ImportStep]) -> None:
        try:
            for step in steps:
                self.step = step
                self.problem_count += len(step.problems)
                self.problems += step.problems[: MOST_PROBLEMS - len(self.problems)]
                if self._stop.is_set() and self.share < 1:
                    self.stopped = True
                    return
        except MasisError as error:
            self.failed = str(error)
        except Exception as error:
            log.exception("A file could not be imported")
            why = InputError(f"failed ({type(error).__name__})", cure="The server's log has the details.")
            self.failed = str(why)


class Imports:
    """The imports of one server."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._known: dict[str, FileImport] = {}

    def start(self, workbench: Workbench, actor: Actor, source: Source) -> str:
        """Begin an import; returns its token. Raises NotAllowed."""
        begun, token = FileImport(workbench, actor, source), uuid4().hex
        with self._lock:
            self._known[token] = begun
            over = [each for each, known in self._known.items() if known.over]
            for each in over[: max(0, len(self._known) - MOST_IMPORTS)]:
                del self._known[each]
        return token

    def get(self, token: str) -> FileImport | None:
        """Return an import; None where this server knows none by that token."""
        with self._lock:
            return self._known.get(token)


@st.cache_resource(show_spinner=False)
def _imports_into(_database: str) -> Imports:
    return Imports()


def imports() -> Imports:
    """Return the imports of this server into the served database."""
    return _imports_into(str(served_database()))

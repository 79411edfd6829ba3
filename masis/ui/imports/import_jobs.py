"""Imports beside the pages: found again by the token in the address."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import streamlit as st

from masis.datasets.mapping import Profile
from masis.errors import MasisError
from masis.services import Actor, Workbench
from masis.services.background import BackgroundTask, BackgroundTasks
from masis.services.imports import ImportStep
from masis.ui.shell.served_database import served_database

MOST_PROBLEMS = 200
"""Problems that are shown; the others are counted."""


class Source(NamedTuple):
    """The file of an import: where it lies, its token and its name, and by which profile it is read."""

    token: str
    path: Path
    name: str
    profile: Profile | None


class FileImport(BackgroundTask):
    """One import: what has come of it so far, readable while it goes on. Raises NotAllowed."""

    def __init__(self, workbench: Workbench, actor: Actor, source: Source) -> None:
        super().__init__()
        self.source, self.size = source, max(1, source.path.stat().st_size)
        self.step = ImportStep(0, 0, 0, 0, 0)
        self.problems: list[MasisError] = []
        self.problem_count = 0
        self._steps = workbench.imports.add_file(actor, source.path, source.profile, name=source.name)

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

    def work(self) -> None:
        """Import batch by batch."""
        for step in self._steps:
            self.step = step
            self.problem_count += len(step.problems)
            self.problems += step.problems[: MOST_PROBLEMS - len(self.problems)]
            if self.stopping and self.share < 1:
                self.stopped = True
                return


@st.cache_resource(show_spinner=False)
def _imports_into(_database: str) -> BackgroundTasks[FileImport]:
    return BackgroundTasks()


def imports() -> BackgroundTasks[FileImport]:
    """Return the imports of this server into the served database."""
    return _imports_into(str(served_database()))

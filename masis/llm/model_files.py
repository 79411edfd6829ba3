"""Verifier models whose files can be downloaded to this machine, as an extension provides them."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import NamedTuple, Protocol

from masis.extensions import load_all
from masis.schema.run import LocalModel


class Step(NamedTuple):
    """A download's progress in bytes. ``file`` is the current file."""

    file: str
    done: int
    total: int


class ModelDescription(NamedTuple):
    """A model that is here: its record, the verdicts that it gives, and a description in lines."""

    record: LocalModel
    tells: str
    lines: list[str]


class ModelFiles(Protocol):
    """The models whose names begin with ``PREFIX`` and a colon. A ``name`` is what comes after."""

    @property
    def PREFIX(self) -> str:  # noqa: N802 (a constant of a module)
        """The part of a model string before the colon."""

    def local_name(self, model: str) -> str:
        """Return the name in a model string, also of a second stage; "" for other models."""

    def is_here(self, name: str) -> bool:
        """Return whether the files are on this machine. Raises SettingsError if they can't be."""

    def download(
        self,
        name: str,
        on_step: Callable[[Step], None],
        *,
        endpoint: str | None = None,
        cancelled: Callable[[], bool] = lambda: False,
    ) -> None:
        """Download the missing files. Raises SettingsError."""

    def describe(self, name: str) -> ModelDescription:
        """Describe a model. Raises SettingsError, MissingModel or MissingExtra."""

    def list_downloaded(self) -> Iterable[str]:
        """Return the names of the models on this machine, also of those that can't be used."""


def model_files() -> ModelFiles | None:
    """Return the models that can be downloaded, or None if no extension has any."""
    files: ModelFiles | None = next(load_all("model_files"), None)
    return files

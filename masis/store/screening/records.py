"""What the store is asked about screenings and what it answers: summaries, progress, filters, pages."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from pydantic import Field

from masis.schema.base import Record
from masis.schema.screening import Outcome, ScreeningEntry, ScreeningEntryKind, Thresholds
from masis.store.records import PageSize, RunState

if TYPE_CHECKING:
    from masis.screening.rounds.round_loop import ResumePoint


class ScreeningSummary(Record):
    """A screening in a list. ``outcome`` and ``kept`` are the machine's, None until it is finished.

    ``overrides`` counts what people said about it since. ``version`` changes whenever any of this does.
    Of a screening that retention has removed (``removed_at``) question and outcome stand; rounds and grades are gone.
    """

    id: str
    question: str
    sources: tuple[str, ...]
    state: RunState
    started_at: str
    ended_at: str | None
    why: str
    outcome: Outcome | None
    rounds: int
    abstracts: int
    kept: int | None
    overrides: int
    version: int
    removed_at: str | None = None


class ScreeningProgress(NamedTuple):
    """How far a screening has come: what it was told, and from where ``screening.rounds`` can go on."""

    screening_id: str
    question: str
    sources: tuple[str, ...]
    state: RunState
    settings: dict[str, Any]
    thresholds: Thresholds | None
    started_at: str
    progress: ResumePoint
    cancel_requested: bool
    why: str


class ScreeningLogFilter(Record):
    """Which entries of the screening log, newest first unless told otherwise. Empty fields don't filter."""

    screening_id: str | None = None
    abstract_id: str | None = None
    kinds: tuple[ScreeningEntryKind, ...] = ()
    reviewers: tuple[str, ...] = ()
    newest_first: bool = True
    page: int = Field(default=1, ge=1)
    size: PageSize = 50


class ScreeningLogPage(Record):
    """One page of the log, and how many entries there are in all."""

    rows: tuple[ScreeningEntry, ...]
    total: int

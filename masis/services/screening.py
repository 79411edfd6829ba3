"""The use cases of screening: what its page and its command line call.

A ``ScreeningDesk`` is a workbench with corpora. It owns what happens around a screening (it is kept as it goes, what it
accepted is remembered) and around a person's word on a grade; how a screening works is ``masis.screening``'s, how
records are kept the store's.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from typing import BinaryIO, NamedTuple

from masis.audit.run_control import RunBudget, RunControl
from masis.datasets.writers.screened import write_screening_csv, write_screening_ris
from masis.errors import InputError, Removed
from masis.observers.observation import ScreeningStart, run_to_completion
from masis.schema.case import Case
from masis.schema.screening import (
    Abstract,
    Acceptance,
    GradeField,
    Override,
    Recommendation,
    Screening,
    ScreeningDecision,
    ScreeningEntry,
    ScreeningEvent,
)
from masis.screening.critic import grader_for, grader_names, study_type_weights
from masis.screening.demo import CORPUS as DEMO_CORPUS
from masis.screening.demo import demo_abstracts
from masis.screening.grading.cache import CachingGrader
from masis.screening.grading.grader import Grader
from masis.screening.handover import case_from_screening
from masis.screening.rounds import round_loop
from masis.screening.rounds.drift import Drift, drift
from masis.screening.rounds.memory import Shift, acceptances, adapted, shift
from masis.screening.rounds.overrides import apply_review, validate_override
from masis.screening.sources.protocol import Retriever
from masis.screening.sources.pubmed import pubmed_of
from masis.services import Workbench
from masis.settings import OFFLINE, Settings
from masis.store.records import Added
from masis.store.screening.corpora import CorpusSummary
from masis.store.screening.records import ScreeningLogFilter, ScreeningSummary
from masis.version import APP

CORPUS = "corpus:"
PUBMED = "pubmed"
CRITIC = "the critic"
WATCH_S = 0.5
"""How often it is asked whether a person wants a screening with models to stop."""


class OpenedScreening(NamedTuple):
    """A screening as it stands with people's words, as the machine left it, those words, and its abstracts."""

    screening: Screening
    machine: Screening
    overrides: tuple[Override, ...]
    abstracts: dict[str, Abstract]
    summary: ScreeningSummary


class MemoryView(NamedTuple):
    """The acceptance memory: what it holds, and by how much it would move the required averages."""

    entries: tuple[Acceptance, ...]
    shift: Shift
    on: bool


class DriftSeries(NamedTuple):
    """One judge's judgements in time, and whether they drifted. ``what`` says what was measured."""

    who: str
    what: str
    drift: Drift


class ScreeningDesk:
    """The use cases of screening on one workbench; ``graders`` makes the grader of a screening from its settings."""

    def __init__(self, bench: Workbench, graders: Callable[[Settings, RunControl], Grader] = grader_for) -> None:
        self.bench, self.store, self._graders = bench, bench.store, graders

    # corpora

    def load_demo(self) -> CorpusSummary:
        """Keep the abstracts written for the demo in a corpus of their own; nothing is done where they are there."""
        abstracts = tuple(demo_abstracts())
        held = next((each for each in self.store.corpora.list_all() if each.name == DEMO_CORPUS), None)
        if held is None or held.abstracts < len(abstracts):
            self.store.corpora.add_many(DEMO_CORPUS, abstracts, source="demo")
        return self.store.corpora.summary(DEMO_CORPUS)

    # screening

    def sources(self, names: Sequence[str], settings: Settings | None = None) -> tuple[Retriever, ...]:
        """The sources of these names: ``corpus:NAME``, ``pubmed``. Raises UnknownRecord, SettingsError, InputError."""
        if not names:
            raise InputError("there is no source to search", cure="Choose a corpus, or PubMed.", field="sources")
        return tuple(self._source(name, settings or self.bench.settings) for name in dict.fromkeys(names))

    def _source(self, name: str, settings: Settings) -> Retriever:
        if name.startswith(CORPUS):
            return self.store.corpora.retriever(name.removeprefix(CORPUS))
        if name == PUBMED:
            return pubmed_of(settings)
        raise InputError(f"{name!r} is no source", cure=f"Use {CORPUS}NAME or {PUBMED}.", field="sources")

    def screen(
        self,
        question: str,
        sources: Sequence[str],
        *,
        settings: Settings | None = None,
        screening_id: str | None = None,
        on_event: Callable[[ScreeningEvent], None] | None = None,
        cancelled: Callable[[], bool] | None = None,
    ) -> Screening:
        """Screen a question on these sources, keeping every round as it goes; returns what the machine found.

        A screening of this id that was interrupted is taken up after its last finished round, with what it was told
        then. Raises InputError, UnknownRecord, SettingsError and MissingExtra before anything is asked.
        """
        if not question.strip():
            raise InputError("the question is empty", cure="Ask what the evidence is to answer.", field="question")
        settings = settings or self.bench.settings
        screening_id = screening_id or round_loop.new_screening_id()
        known = self._known(screening_id)
        if known is not None:
            told = self.store.screenings.progress(screening_id)
            question, sources, settings = told.question, told.sources, settings.as_told(told.settings)
        retrievers = self.sources(sources, settings)
        control = RunControl(RunBudget(call_s=settings.call_deadline_s))
        grader = CachingGrader(self._graders(settings, control), self.store.remembered_grades)
        thresholds = adapted(settings, self.store.acceptances.accepted())
        progress = None
        if known is not None:
            resumed = self.store.screenings.resume(screening_id)
            progress, thresholds = resumed.progress, resumed.thresholds or thresholds
        else:
            self.store.screenings.start(
                screening_id,
                question=question,
                sources=tuple(sources),
                settings=settings.of_screening(),
                thresholds=thresholds,
            )
        asked = cancelled or (lambda: self.store.screenings.cancel_requested(screening_id))

        def stop() -> bool:
            if asked():
                control.cancellation.cancel()
            return control.cancellation.cancelled

        work = round_loop.screen(
            question,
            retrievers,
            grader,
            settings,
            screening_id=screening_id,
            thresholds=thresholds,
            study_types_version=study_type_weights(settings),
            cancelled=stop,
            progress=progress,
            keep=lambda finished: self.store.screenings.keep(screening_id, finished),
        )
        with _watching(stop) if grader_names(settings) != (OFFLINE,) else nullcontext():
            return self._kept(work, screening_id, on_event)

    def _known(self, screening_id: str) -> ScreeningSummary | None:
        return next((each for each in self.store.screenings.interrupted() if each.id == screening_id), None)

    def _kept(
        self, work: round_loop.ScreeningSteps, screening_id: str, on_event: Callable[[ScreeningEvent], None] | None
    ) -> Screening:
        """Let it run to its end, keeping each event; cut short, it is marked so and can be taken up."""

        def tell(event: ScreeningEvent) -> None:
            kept = self.store.screenings.append_event(event)
            if on_event is not None:
                on_event(kept)

        try:
            screening = run_to_completion(work, tell, ScreeningStart())
        except BaseException as error:
            self.store.screenings.abandon(screening_id, f"It was cut short: {error or type(error).__name__}")
            raise
        self.store.screenings.finish(screening)
        self.store.acceptances.replace(screening_id, acceptances(screening))
        return screening

    def open(self, screening_id: str) -> OpenedScreening:
        """A finished screening as it stands. Raises UnknownRecord, and StoreError where it is not finished."""
        with self.store.database.reading():
            machine = self.store.screenings.get(screening_id)
            overrides = self.store.screening_log.overrides(screening_id)
            abstracts = self.store.screenings.abstracts(screening_id)
            summary = self.store.screenings.summary(screening_id)
        return OpenedScreening(apply_review(machine, overrides, abstracts), machine, overrides, abstracts, summary)

    # people

    def override(
        self,
        screening_id: str,
        abstract_id: str,
        field: GradeField,
        value: float | bool | str | None,
        *,
        reason: str,
        reviewer: str,
        machine_shown: Sequence[str] = (),
        token: str | None = None,
        seen_version: int | None = None,
    ) -> OpenedScreening:
        """Record a person's word on a field of a grade (None takes back the last one); returns what stands now.

        What was accepted is remembered anew. Raises InputError (no such value, no reason), StaleVersion,
        UnknownRecord.
        """
        if value is not None and not reason.strip():
            raise InputError("the reason is missing", cure="Say why the grade should be another.", field="reason")
        if not reviewer.strip():
            raise InputError("the reviewer's name is missing", cure="Type your name.", field="reviewer")
        word = validate_override(
            Override(abstract_id=abstract_id, field=field, value=value, reason=reason, reviewer=reviewer, at="")
        )
        decision = ScreeningDecision(
            kind="override",
            reviewer=reviewer,
            screening_id=screening_id,
            override=word,
            reason=reason,
            machine_shown=tuple(machine_shown),
            token=token,
            versions={"app": APP},
        )
        with self.store.transaction():
            self.store.screening_log.append(decision, seen_version=seen_version)
            opened = self.open(screening_id)
            self.store.acceptances.replace(screening_id, acceptances(opened.screening))
        return opened

    def hand_over(self, screening_id: str, *, reviewer: str, token: str | None = None) -> Case:
        """The kept set as the evidence of a case, which is kept and waits for its audit; the same set, the same case.

        Raises InputError where nothing is kept.
        """
        opened = self.open(screening_id)
        case = case_from_screening(opened.screening, opened.abstracts)
        decision = ScreeningDecision(
            kind="handed_over",
            reviewer=reviewer,
            screening_id=screening_id,
            reason="The kept abstracts became the evidence of a case.",
            token=token,
            versions={"app": APP},
            extra={"case": case.id, "kept": list(opened.screening.kept)},
        )
        with self.store.transaction():
            added: Added = self.bench.import_cases([case])
            if added.added:
                self.store.screening_log.append(decision)
        return self.store.cases.get(case.id)

    # what is learned

    def memory(self, settings: Settings | None = None) -> MemoryView:
        """What the acceptance memory holds and would do."""
        chosen = settings or self.bench.settings
        entries = self.store.acceptances.accepted()
        return MemoryView(entries, shift(entries, chosen.screening_memory_bound), chosen.screening_memory)

    def reset_memory(self, *, by: str, reason: str, token: str | None = None) -> ScreeningEntry:
        """Let memory begin anew; an entry of the log says who, when and why."""
        if not reason.strip():
            raise InputError("the reason is missing", cure="Say why memory is to begin anew.", field="reason")
        return self.store.acceptances.reset(by=by, reason=reason, token=token)

    def drifts(self) -> tuple[DriftSeries, ...]:
        """Whether the critic or a reviewer judges differently than before.

        The critic by the quality of what it accepted; each reviewer by how far the scores they set lie from the
        machine's.
        """
        accepted = [entry.quality for entry in self.store.acceptances.history()]
        found = [DriftSeries(CRITIC, "quality of what was accepted", drift(accepted))]
        distances: dict[str, list[float]] = {}
        for reviewer, distance in self._distances():
            distances.setdefault(reviewer, []).append(distance)
        for reviewer, values in sorted(distances.items()):
            found.append(DriftSeries(reviewer, "their word less the machine's", drift(values)))
        return tuple(found)

    def _distances(self) -> Iterator[tuple[str, float]]:
        """For each override of a score or recommendation, oldest first: who, and how much more than the machine."""
        machines: dict[str, Screening | None] = {}
        for entry in self.store.screening_log.iterate():
            decision = entry.decision
            if decision is None or decision.override is None or decision.screening_id is None:
                continue
            if decision.screening_id not in machines:
                machines[decision.screening_id] = self._machine(decision.screening_id)
            machine_said = machines[decision.screening_id]
            if machine_said is None:
                continue
            grade = machine_said.grade(decision.override.abstract_id)
            said = _weight(decision.override.value)
            machine = None if grade is None else _weight(getattr(grade, decision.override.field))
            if said is not None and machine is not None:
                yield decision.reviewer, said - machine

    def _machine(self, screening_id: str) -> Screening | None:
        """What the machine said; None where retention has removed it."""
        try:
            return self.store.screenings.get(screening_id)
        except Removed:
            return None

    # exports

    def write_csv(self, screening_id: str, out: BinaryIO) -> int:
        """The screening log as CSV, with people's words in it; returns how many abstracts."""
        opened = self.open(screening_id)
        return write_screening_csv(opened.screening, opened.abstracts, out)

    def write_ris(self, screening_id: str, out: BinaryIO, which: Sequence[Recommendation] = ("keep",)) -> int:
        """Its abstracts with these recommendations as RIS; returns how many."""
        opened = self.open(screening_id)
        return write_screening_ris(opened.screening, opened.abstracts, out, which)

    def log(self, screening_id: str) -> tuple[ScreeningEntry, ...]:
        """What people said about a screening, newest first."""
        return self.store.screening_log.entries(ScreeningLogFilter(screening_id=screening_id, size=200)).rows


@contextmanager
def _watching(stop: Callable[[], bool]) -> Iterator[None]:
    """While entered, ``stop`` is asked again and again, so that calls to models end soon after a person asks for it."""
    over = threading.Event()

    def watch() -> None:
        while not over.wait(WATCH_S) and not stop():
            pass

    thread = threading.Thread(target=watch, daemon=True, name="screening watch")
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


_WEIGHTS = {"discard": 0.0, "needs_more": 0.5, "keep": 1.0}


def _weight(value: object) -> float | None:
    """A score as it is, a recommendation as 0, 0.5 or 1; None for what has no order."""
    if isinstance(value, str):
        return _WEIGHTS.get(value)
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return float(value)

"""Corpora of abstracts, screenings, people's overrides, and the acceptance memory.

This module stores screenings while they run, and the studies that they accepted. The screening
itself is in ``masis.screening``.
"""

from __future__ import annotations

import hashlib
import io
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from datetime import timedelta
from functools import cache
from typing import Any, Literal, NamedTuple

from masis.audit.control.run_control import CancelToken, RunBudget, RunControl
from masis.errors import InputError, Removed
from masis.observers.observation import ScreeningStart, run_to_completion
from masis.schema.actor import Actor
from masis.schema.base import utc_now
from masis.schema.case import Case
from masis.schema.screening import (
    Abstract,
    AcceptedStudy,
    GradeAgreement,
    Override,
    OverrideField,
    Recommendation,
    Screening,
    ScreeningDecision,
    ScreeningEntry,
    ScreeningEvent,
    Thresholds,
)
from masis.schema.wording import count_noun
from masis.screening.critic import grader_for, grader_names
from masis.screening.demo import CORPUS as DEMO_CORPUS
from masis.screening.demo import demo_abstracts
from masis.screening.grading.grader import CachingGrader, Grader
from masis.screening.grading.question import Part, changed_lines
from masis.screening.handover import case_from_screening
from masis.screening.ranking.learning import ReadingOrder, decisions_of, reading_order
from masis.screening.readers.decisions import RecordDecision, decision_of
from masis.screening.rounds import round_loop
from masis.screening.rounds.drift import Drift, drift
from masis.screening.rounds.memory import Shift, acceptances, adapt_thresholds, shift
from masis.screening.rounds.overrides import apply_review, effective_overrides, validate_override
from masis.screening.sources.pool import AbstractPool
from masis.screening.sources.pubmed import pubmed_of
from masis.screening.sources.retrievers import GIVEN, Retriever
from masis.screening.store import ScreeningStore
from masis.screening.store.corpora import CorpusImport, CorpusSummary
from masis.screening.store.screenings import ScreeningSummary
from masis.screening.synthesis.findings import Synthesis, synthesise
from masis.screening.synthesis.prisma import prisma_svg
from masis.screening.views.words import RECOMMENDATIONS
from masis.screening.writers import write_screening_csv, write_screening_ris
from masis.services.access import OPEN, Access, Service, requires
from masis.services.background import RepeatedTask
from masis.services.reviews import name_of
from masis.settings import OFFLINE, Settings
from masis.store import Store
from masis.version import APP

RUN_SCREENINGS = "start, extend or stop screenings"
"""An act of several use cases."""

ScreeningFile = Literal["csv", "kept", "labels", "flow"]
CORPUS = "corpus:"
PUBMED = "pubmed"
CONTINUES = "continues"
"""Key in the first event of a screening: the id of the finished screening that it continues."""
CARRIED_FROM = "carried_from"
"""Key in an override of a continued screening: the id of the screening it was made in."""
CANCEL_CHECK_INTERVAL = timedelta(seconds=0.5)
"""How often a screening with models checks whether a person wants it to stop."""


class OpenedScreening(NamedTuple):
    """A finished screening with people's overrides applied, and the machine's own result.

    ``synthesis`` summarizes the findings of the kept abstracts, and ``agreements`` are people's
    agreements with the machine's grades.
    """

    screening: Screening
    machine: Screening
    overrides: tuple[Override, ...]
    abstracts: dict[str, Abstract]
    summary: ScreeningSummary
    synthesis: Synthesis
    agreements: tuple[GradeAgreement, ...] = ()

    def reading_order(self) -> ReadingOrder:
        """Return the undecided abstracts in the order in which to read them."""
        grades = self.screening.grades
        return reading_order(
            [
                self.abstracts[grade.abstract_id]
                for grade in grades
                if grade.abstract_id in self.abstracts
            ],
            {grade.abstract_id: grade.relevance_score for grade in grades},
            decisions_of(grades, self.overrides, self.agreements),
        )


class MemoryView(NamedTuple):
    """The acceptance memory: its entries, and how far it would move the required averages."""

    entries: tuple[AcceptedStudy, ...]
    shift: Shift
    on: bool


class LabelImport(NamedTuple):
    """Counts of the records of another tool.

    They changed a grade, agreed with it, had no decision, or weren't in the screening.
    """

    changed: int
    unchanged: int
    undecided: int
    unknown: int


class DriftSeries(NamedTuple):
    """The judgements about one grader or by one reviewer over time, and their drift.

    ``counts`` has the numbers in words: grades changed, of those judged.
    """

    name: str
    counts: str
    drift: Drift


_LONGEST_LABEL = 80


def _assert_stored(sources: Iterable[str], hint: str) -> None:
    """Raise InputError if a screening searched a file, because no corpus holds its records."""
    if files := [name for name in sources if name != PUBMED and not name.startswith(CORPUS)]:
        raise InputError(
            f"the records of {', '.join(files)}, which it searched, aren't stored",
            hint=hint,
            field="sources",
        )


def records_corpus(name: str, abstracts: Iterable[Abstract]) -> str:
    """Return the name of the corpus for the records of a screened file.

    It has the file's name and a digest of the records, so that screening the same file again uses
    the same corpus.
    """
    digest = hashlib.sha256()
    for abstract in abstracts:
        digest.update(abstract.model_dump_json(exclude_defaults=True).encode())
    label = "".join(char for char in name if char.isprintable())[:_LONGEST_LABEL]
    return f"{label} {digest.hexdigest()[:8]}".strip()


class CorpusService(Service):
    """The use cases of corpora."""

    def __init__(self, store: Store, access: Access = OPEN) -> None:
        super().__init__(store, access)
        self._corpora = corpora = ScreeningStore(store).corpora
        # Reads that need no permission
        self.list_all, self.summary, self.imports = (
            corpora.list_all,
            corpora.summary,
            corpora.imports,
        )
        self.iterate, self.search = corpora.iterate, corpora.search
        self.retriever = corpora.retriever

    @requires("audit", "add abstracts")
    def add(
        self,
        actor: Actor,
        corpus: str,
        abstracts: Iterable[Abstract | InputError],
        *,
        source: str,
        on_batch: Callable[[int], None] | None = None,
        on_error: Callable[[InputError], None] | None = None,
    ) -> CorpusImport:
        """Add abstracts to a corpus, which is created if needed, and return the counts.

        Raises:
            InputError: The name or an abstract isn't valid.
            NotAllowed: The actor's role doesn't allow imports.

        """
        return self._corpora.add_many(
            corpus, abstracts, source=source, on_batch=on_batch, on_error=on_error
        )

    @requires("audit", "add abstracts")
    def keep_records(
        self,
        actor: Actor,
        corpus: str,
        abstracts: Sequence[Abstract],
        *,
        source: str,
        on_batch: Callable[[int], None] | None = None,
    ) -> None:
        """Store the records that a screening searched as a corpus, unless it already has them.

        Further rounds need them.

        Raises:
            InputError: The name or an abstract isn't valid.
            NotAllowed: The actor's role doesn't allow imports.

        """
        exists = any(stored.name == corpus for stored in self._corpora.list_all())
        if not exists or not any(
            report.identified == len(abstracts) for report in self._corpora.imports(corpus)
        ):
            self._corpora.add_many(corpus, abstracts, source=source, on_batch=on_batch)

    @requires("audit", "add abstracts")
    def add_demo(self, actor: Actor) -> CorpusSummary:
        """Store the demo's abstracts in a corpus of their own, unless it already has them."""
        abstracts = tuple(demo_abstracts())
        stored = next(
            (corpus for corpus in self._corpora.list_all() if corpus.name == DEMO_CORPUS),
            None,
        )
        if stored is None or stored.abstracts < len(abstracts):
            self._corpora.add_many(DEMO_CORPUS, abstracts, source="demo")
        return self._corpora.summary(DEMO_CORPUS)

    @requires("oversee", "remove abstracts")
    def remove(self, actor: Actor, corpus: str) -> None:
        """Remove a corpus; screenings keep copies of the abstracts they graded.

        Raises:
            UnknownRecord: There is no such corpus.
            NotAllowed: The actor isn't a lead.

        """
        self._corpora.remove(corpus)


class ScreeningService:
    """The use cases of screening on one database.

    ``graders`` makes the grader of a screening from its settings.
    """

    def __init__(
        self,
        store: Store,
        settings: Settings,
        graders: Callable[[Settings, RunControl], Grader] = grader_for,
        *,
        access: Access = OPEN,
    ) -> None:
        self._store, self._settings, self._graders, self.access = store, settings, graders, access
        parts = ScreeningStore(store)
        self._corpora, self._screenings = parts.corpora, parts.screenings
        self._acceptances, self._grades = parts.acceptances, parts.remembered_grades
        # Reads and upkeep that need no permission
        self.newest, self.summary = self._screenings.newest, self._screenings.summary
        self.progress, self.events = self._screenings.progress, self._screenings.events
        self.mark_lost = self._screenings.mark_lost

    # Screening

    def sources(
        self,
        names: Sequence[str],
        settings: Settings | None = None,
        cancellation: CancelToken | None = None,
    ) -> tuple[Retriever, ...]:
        """Return the sources of these names: ``corpus:NAME``, ``pubmed``.

        Args:
            names: The names.
            settings: The settings; by default those of the workbench.
            cancellation: Ends the waits of a source.

        Raises:
            UnknownRecord: There is no such corpus.
            SettingsError: PubMed can't be used with these settings.
            InputError: There is no name, or it names no source.

        """
        if not names:
            raise InputError(
                "no source was chosen", hint="Choose a corpus, or PubMed.", field="sources"
            )

        def source(name: str) -> Retriever:
            if name.startswith(CORPUS):
                return self._corpora.retriever(name.removeprefix(CORPUS))
            if name == PUBMED:
                return pubmed_of(settings or self._settings, cancellation)
            raise InputError(
                f"{name!r} isn't a source", hint=f"Use {CORPUS}NAME or {PUBMED}.", field="sources"
            )

        return tuple(map(source, dict.fromkeys(names)))

    @requires("audit", RUN_SCREENINGS)
    def screen(
        self,
        actor: Actor,
        question: str,
        sources: Sequence[str],
        *,
        settings: Settings | None = None,
        screening_id: str | None = None,
        on_event: Callable[[ScreeningEvent], None] | None = None,
        cancelled: Callable[[], bool] | None = None,
    ) -> Screening:
        """Screen a question on these sources, store every round, and return the machine's result.

        An interrupted screening of this id is resumed after its last finished round, with its
        original question, sources and settings.

        Raises:
            InputError: The question is empty, or a name is no source.
            UnknownRecord: There is no such corpus.
            SettingsError: A model or source can't be used with these settings.
            MissingExtra: A library is not installed.
            NotAllowed: The actor's role doesn't allow screenings.

        """
        if not question.strip():
            raise InputError(
                "the question is empty",
                hint="Type the question that the evidence should answer.",
                field="question",
            )
        settings = settings or self._settings
        screening_id = screening_id or round_loop.new_screening_id()
        interrupted = screening_id in self._screenings.in_state("interrupted")
        if interrupted:
            stored = self._screenings.progress(screening_id)
            question, sources = stored.question, stored.sources
            settings = settings.with_values(stored.settings)
        control = RunControl(RunBudget(call_s=settings.call_deadline_s))
        retrievers = self.sources(sources, settings, control.cancellation)
        grader = CachingGrader(self._graders(settings, control), self._grades)
        thresholds = adapt_thresholds(settings, self._acceptances.entries())
        progress = None
        if interrupted:
            resumed = self._screenings.resume(screening_id)
            progress, thresholds = resumed.progress, resumed.thresholds or thresholds
        else:
            self._screenings.start(
                screening_id,
                question=question,
                sources=tuple(sources),
                settings=settings.of_screening(),
                thresholds=thresholds,
            )

        def stop() -> bool:
            if (cancelled is not None and cancelled()) or self._screenings.cancel_requested(
                screening_id
            ):
                control.cancellation.cancel()
            return control.cancellation.is_cancelled

        work = round_loop.screen(
            question,
            retrievers,
            grader,
            settings,
            screening_id=screening_id,
            thresholds=thresholds,
            cancelled=stop,
            progress=progress,
            keep=lambda finished: self._screenings.keep(screening_id, finished),
        )

        def record(event: ScreeningEvent) -> None:
            recorded = self._screenings.append_event(event)
            if on_event is not None:
                on_event(recorded)

        # A call to a model or to PubMed can wait for long, so another thread checks meanwhile
        # whether a person wants to stop.
        waits = PUBMED in sources or grader_names(settings) != (OFFLINE,)
        try:
            with (
                RepeatedTask(lambda _: stop(), CANCEL_CHECK_INTERVAL, "screening watch")
                if waits
                else nullcontext()
            ):
                screening = run_to_completion(work, record, ScreeningStart())
        # also for KeyboardInterrupt and SystemExit, so that the screening can be resumed at once
        except BaseException as error:
            self._screenings.abandon(
                screening_id, f"It was interrupted: {error or type(error).__name__}"
            )
            raise
        self.store_screening(actor, screening)
        self._carry_over_overrides(actor, screening_id)
        return screening

    @requires("audit", RUN_SCREENINGS)
    def begin_further(
        self,
        actor: Actor,
        screening_id: str,
        rounds: int = 2,
        *,
        sources: Sequence[str] | None = None,
    ) -> str:
        """Create a screening that continues a finished one with further rounds, and return its id.

        It starts with the rounds, grades, settings and thresholds of the finished screening, which
        isn't changed. It is stored as interrupted until ``screen`` resumes it. People's overrides
        are carried over when it is finished.

        Args:
            actor: Who asks for it.
            screening_id: The finished screening.
            rounds: The number of further rounds.
            sources: The sources to search instead, such as a corpus with the records of a screened
                file.

        Raises:
            NotAllowed: The actor's role doesn't allow screenings.
            UnknownRecord: There is no such screening.
            InputError: The screening isn't finished, its sources are gone, or all their abstracts
                are graded.

        """
        earlier = self._screenings.progress(screening_id)
        if earlier.state != "finished":
            raise InputError(
                "the screening isn't finished",
                hint="Resume it, or wait until it is.",
                field="screening",
            )
        finished_rounds = len(earlier.progress.finished)
        settings = self._settings.with_values(
            earlier.settings
            | {
                # The evidence may already suffice, but the person asked for more.
                "screening_least_rounds": finished_rounds + 1,
                "screening_max_rounds": finished_rounds + rounds,
            }
        )
        sources = tuple(earlier.sources if sources is None else sources)
        self._assert_more_to_find(screening_id, sources, earlier.progress)
        # raises an error if a source is gone, before anything is stored
        self.sources(sources, settings)
        further = round_loop.new_screening_id()
        with self._store.transaction():
            self._screenings.start(
                further,
                question=earlier.question,
                sources=sources,
                settings=settings.of_screening(),
                thresholds=earlier.thresholds,
            )
            started = ScreeningEvent(
                screening_id=further,
                seq=1,
                at=utc_now(),
                kind="screening_started",
                data={CONTINUES: screening_id},
            )
            self._screenings.append_event(started)
            for finished in earlier.progress.finished:
                self._screenings.keep(further, finished)
            self._screenings.abandon(further, "It continues a finished screening with more rounds.")
        return further

    def _assert_more_to_find(
        self, screening_id: str, sources: Sequence[str], progress: round_loop.ResumePoint
    ) -> None:
        """Raise InputError if the sources aren't stored or all their abstracts are graded."""
        graded = {grade.abstract_id for rounds in progress.finished for grade in rounds.grades}
        nothing_left = InputError(
            f"further queries wouldn't find more: all {count_noun(len(graded), 'abstract')} of its"
            " sources are graded",
            hint="Add abstracts to a corpus, or screen the question on other sources.",
            field="sources",
        )
        if tuple(sources) == (GIVEN,):
            raise nothing_left
        _assert_stored(
            sources, hint=f"Pass the file again: masis screening further {screening_id} FILE."
        )
        corpora = [name.removeprefix(CORPUS) for name in sources if name != PUBMED]
        # A cheap test first: the abstracts are read only if all of them may be graded.
        if PUBMED in sources or sum(
            self._corpora.summary(name).abstracts for name in corpora
        ) > len(graded):
            return
        if all(
            abstract.id in graded for name in corpora for abstract in self._corpora.iterate(name)
        ):
            raise nothing_left

    def plan_again(
        self, screening_id: str, concepts: Mapping[Part, str]
    ) -> tuple[str, tuple[str, ...], Settings]:
        """Return the question, sources and settings to repeat a screening with other concepts.

        ``concepts`` has the parts as a person entered them. A part that equals the one detected in
        the question isn't stored, so that it follows later improvements of the detection.

        Raises:
            UnknownRecord: There is no such screening.
            Removed: Retention has removed it.
            InputError: The sources are gone.

        """
        earlier = self._screenings.progress(screening_id)
        changed = {
            "screening_concepts": changed_lines(earlier.question, concepts),
            # Further rounds raise this setting, and the new screening starts from its first round.
            "screening_least_rounds": self._settings.screening_least_rounds,
        }
        settings = self._settings.with_values(earlier.settings | changed)
        _assert_stored(
            earlier.sources,
            hint="Import them into a corpus and screen that, or pass the concepts to masis screen.",
        )
        # raises an error if a source is gone
        self.sources(earlier.sources, settings)
        return earlier.question, earlier.sources, settings

    @requires("audit", RUN_SCREENINGS)
    def search_further(
        self,
        actor: Actor,
        screening_id: str,
        rounds: int = 2,
        *,
        sources: Sequence[str] | None = None,
        on_event: Callable[[ScreeningEvent], None] | None = None,
    ) -> Screening:
        """Continue a finished screening as a new one and return it.

        It raises the errors of ``begin_further``.
        """
        further = self.begin_further(actor, screening_id, rounds, sources=sources)
        stored = self._screenings.progress(further)
        return self.screen(
            actor, stored.question, stored.sources, screening_id=further, on_event=on_event
        )

    def _carry_over_overrides(self, actor: Actor, screening_id: str) -> None:
        """Copy people's overrides into a screening that continues another one.

        The reason of each copied override names the earlier screening.
        """
        first = next(iter(self._screenings.events(screening_id)), None)
        earlier = None if first is None else first.data.get(CONTINUES)
        if not isinstance(earlier, str) or self._store.screening_log.overrides(screening_id):
            return
        for fields in effective_overrides(self._store.screening_log.overrides(earlier)).values():
            for override in fields.values():
                reason = (
                    f"{override.reason} (carried over from screening {earlier[:8]}:"
                    f" {override.reviewer})"
                )
                self.override(
                    actor,
                    screening_id,
                    override.abstract_id,
                    override.field,
                    override.value,
                    reason=reason,
                    carried_from=earlier,
                )

    @requires("audit", RUN_SCREENINGS)
    def store_screening(
        self, actor: Actor, screening: Screening, abstracts: Iterable[Abstract] = ()
    ) -> None:
        """Store the result of a screening, and its accepted studies in the acceptance memory.

        ``abstracts`` are needed if the screening wasn't made by ``screen``.
        """
        self._screenings.finish(screening, abstracts)
        self._acceptances.replace(screening.id, acceptances(screening))

    @requires("audit", RUN_SCREENINGS)
    def cancel(self, actor: Actor, screening_id: str) -> None:
        """Ask the process that runs a screening to stop after its current step.

        Raises:
            UnknownRecord: There is no such screening.
            NotAllowed: The actor's role doesn't allow screenings.

        """
        self._screenings.request_cancel(screening_id)

    def open(self, screening_id: str) -> OpenedScreening:
        """Return a finished screening with people's overrides.

        Raises:
            UnknownRecord: There is no such screening.
            StoreError: It isn't finished.

        """
        # one read transaction, so that all parts are from the same moment
        with self._store.database.reading():
            machine = self._screenings.get(screening_id)
            overrides = self._store.screening_log.overrides(screening_id)
            agreements = self._store.screening_log.agreements(screening_id)
            abstracts = self._screenings.abstracts(screening_id)
            summary = self._screenings.summary(screening_id)
        reviewed = apply_review(machine, overrides, abstracts)
        synthesis = synthesise(machine.question, reviewed.grades, abstracts)
        return OpenedScreening(
            reviewed, machine, overrides, abstracts, summary, synthesis, agreements
        )

    # People's decisions

    @requires("decide", "correct or confirm grades of a screening")
    def override(
        self,
        actor: Actor,
        screening_id: str,
        abstract_id: str,
        field: OverrideField,
        value: float | bool | str | None,
        *,
        reason: str,
        machine_shown: Sequence[str] = (),
        seen_version: int | None = None,
        carried_from: str | None = None,
    ) -> OpenedScreening:
        """Record an override of a grade's field, an appraisal item or the direction of the finding.

        What is kept afterwards replaces the screening's entries in the acceptance memory.

        Args:
            actor: The reviewer.
            screening_id: The screening.
            abstract_id: The abstract.
            field: The field.
            value: The new value; None undoes the last override.
            reason: Why; an undo needs none.
            machine_shown: The parts of the machine's result that the reviewer saw.
            seen_version: The version of the log that the reviewer saw.
            carried_from: The screening that the override was made in first.

        Returns:
            The screening with the override.

        Raises:
            InputError: The value isn't valid, or the reason or the reviewer's name is missing.
            NotAllowed: The actor's role doesn't allow decisions.
            StaleVersion: The screening has changed meanwhile.
            UnknownRecord: There is no such screening or abstract.

        """
        if value is not None and not reason.strip():
            raise InputError(
                "the reason is missing", hint="Say why the grade should change.", field="reason"
            )
        override = validate_override(
            Override(
                abstract_id=abstract_id,
                field=field,
                value=value,
                reason=reason,
                reviewer=name_of(actor),
                at="",
            )
        )
        decision = _screening_decision(
            actor,
            screening_id,
            kind="override",
            override=override,
            reason=reason,
            machine_shown=tuple(machine_shown),
            extra={} if carried_from is None else {CARRIED_FROM: carried_from},
        )
        with self._store.transaction():
            self._store.screening_log.append(decision, seen_version=seen_version)
            opened = self.open(screening_id)
            self._acceptances.replace(screening_id, acceptances(opened.screening))
        return opened

    @requires("decide", "import labels of a screening from other tools")
    def import_labels(
        self,
        actor: Actor,
        screening_id: str,
        records: Iterable[Abstract],
        *,
        every: Recommendation | None = None,
    ) -> LabelImport:
        """Record decisions from another tool as overrides of the recommendation.

        A record is matched by its id, DOI, PubMed id or title. Decisions that agree with the
        current grade don't change it. Returns the counts.

        Args:
            actor: The reviewer.
            screening_id: The screening.
            records: The records of the other tool.
            every: The decision about all records, for a tool that exports one list per decision.

        Raises:
            InputError: The reviewer's name is missing.
            NotAllowed: The actor's role doesn't allow decisions.
            UnknownRecord: There is no such screening.

        """
        opened = self.open(screening_id)
        pool = AbstractPool()
        for abstract in opened.abstracts.values():
            pool.add(abstract)
        changed = unchanged = undecided = unknown = 0
        for record in records:
            decided = (
                RecordDecision(every, "another tool", "")
                if every is not None
                else decision_of(record)
            )
            known = pool.find(record)
            grade = None if known is None else opened.screening.grade(known)
            if decided is None or grade is None:
                undecided, unknown = undecided + (decided is None), unknown + (decided is not None)
            elif grade.recommendation == decided.value:
                unchanged += 1
            else:
                reason = f"Decided in {decided.tool}" + (
                    f": {decided.reason}" if decided.reason else "."
                )
                self.override(
                    actor,
                    screening_id,
                    grade.abstract_id,
                    "recommendation",
                    decided.value,
                    reason=reason,
                )
                changed += 1
        return LabelImport(changed, unchanged, undecided, unknown)

    @requires("decide", "correct or confirm grades of a screening")
    def agree(
        self,
        actor: Actor,
        screening_id: str,
        abstract_id: str,
        *,
        agrees: bool = True,
        machine_shown: Sequence[str] = (),
        seen_version: int | None = None,
    ) -> OpenedScreening:
        """Record that a person agrees with the machine's grade of an abstract.

        ``agrees=False`` withdraws the agreement. The grade isn't changed, but the agreement counts
        toward the grader's drift.

        Raises:
            InputError: The reviewer's name is missing, or a person has changed the grade.
            NotAllowed: The actor's role doesn't allow decisions.
            StaleVersion: The screening has changed meanwhile.
            UnknownRecord: There is no such screening.

        """
        name_of(actor)  # A missing name is the first error to report.
        with self._store.transaction():
            overridden = effective_overrides(self._store.screening_log.overrides(screening_id)).get(
                abstract_id, {}
            )
            if agrees and overridden.keys() - {"direction"}:  # No grader sets a direction.
                raise InputError(
                    "a person has changed this grade",
                    hint=(
                        "Undo the change first. You can only agree with the grade that the machine"
                        " gave."
                    ),
                    field="abstract",
                )
            agreement = GradeAgreement(
                abstract_id=abstract_id, reviewer=name_of(actor), at="", agrees=agrees
            )
            shown = tuple(machine_shown)
            decision = _screening_decision(
                actor, screening_id, kind="agreement", agreement=agreement, machine_shown=shown
            )
            self._store.screening_log.append(decision, seen_version=seen_version)
            return self.open(screening_id)

    @requires("audit", "turn the evidence of a screening into a case")
    def hand_over(self, actor: Actor, screening_id: str) -> Case:
        """Store a case whose evidence is the kept abstracts, and return it.

        The same abstracts give the same case.

        Raises:
            NotAllowed: The actor's role doesn't allow audits.
            InputError: No abstract is kept, or the actor has no name.

        """
        opened = self.open(screening_id)
        case = case_from_screening(opened.screening, opened.abstracts)
        decision = _screening_decision(
            actor,
            screening_id,
            kind="handed_over",
            reason="The kept abstracts became the evidence of a case.",
            extra={"case": case.id, "kept": list(opened.screening.kept)},
        )
        with self._store.transaction():
            if self._store.cases.add_many([case]).added:
                self._store.screening_log.append(decision)
        return self._store.cases.get(case.id)

    # Acceptance memory and drift

    def memory(self) -> MemoryView:
        """Return the acceptance memory and its effect."""
        entries = self._acceptances.entries()
        return MemoryView(
            entries,
            shift(entries, self._settings.screening_memory_bound),
            self._settings.screening_memory,
        )

    def thresholds(self, settings: Settings) -> Thresholds:
        """Return a screening's initial thresholds, adapted by the acceptance memory if it is on."""
        return adapt_thresholds(settings, self._acceptances.entries())

    @requires("oversee", "reset the acceptance memory of screenings")
    def reset_memory(self, actor: Actor, *, reason: str) -> ScreeningEntry:
        """Reset the acceptance memory; the screening log records who did it, when and why."""
        if not reason.strip():
            raise InputError(
                "the reason is missing", hint="Say why you reset the memory.", field="reason"
            )
        return self._acceptances.reset(by=name_of(actor), reason=reason)

    def drifts(self) -> tuple[DriftSeries, ...]:
        """Return for each grader and each reviewer whether disagreement has changed over time.

        The rate is the share of disagreements among judgements. An abstract whose grade a person
        changed, or agreed with, is one judgement of that person. The quality of what a grader
        accepts isn't tracked, because it changes with the topic.
        """
        judgements: dict[tuple[bool, str], list[float]] = {}
        for reviewer, grader, disagrees in self._judgements():
            judgements.setdefault((False, grader), []).append(disagrees)
            judgements.setdefault((True, reviewer), []).append(disagrees)
        return tuple(
            DriftSeries(
                name if by_person else f"Grader {name}",
                f"{sum(disagreements):.0f} changed of {len(disagreements)} judged",
                drift(disagreements),
            )
            for (by_person, name), disagreements in sorted(judgements.items())
        )

    def _judgements(self) -> Iterator[tuple[str, str, float]]:
        """Yield each person's judgement of each grade as (reviewer, grader, disagreement), by their
        last entry.

        The disagreement is 1 if the reviewer changed the grade and 0 if they agreed. A value equal
        to the machine's changes nothing and counts as an agreement; a corrected appraisal item is a
        change. Undone overrides don't count, and overrides carried over from another screening
        count there.
        """
        judged: dict[
            tuple[str, str, str], tuple[bool, dict[OverrideField, float | bool | str]]
        ] = {}
        for entry in self._store.screening_log.iterate():
            decision = entry.decision
            if decision is None or decision.screening_id is None or decision.abstract_id is None:
                continue
            key = decision.reviewer, decision.screening_id, decision.abstract_id
            agrees, fields = judged.get(key, (False, {}))
            override = decision.override
            if decision.agreement is not None:
                agrees = decision.agreement.agrees
            elif (
                override is None or CARRIED_FROM in decision.extra or override.field == "direction"
            ):
                continue  # No grader sets a direction.
            elif override.value is not None:
                fields[override.field] = override.value
            else:
                # An undo removes the value, whichever reviewer had set it.
                for other, (_, theirs) in judged.items():
                    if other[1:] == key[1:]:
                        theirs.pop(override.field, None)
                continue
            judged.pop(key, None)  # Moves the key to the end: the order is by the last entry.
            judged[key] = agrees, fields
        machine = cache(self._machine_result)
        for (reviewer, screening_id, abstract_id), (agrees, fields) in judged.items():
            result = machine(screening_id)
            grade = result.grade(abstract_id) if result and (fields or agrees) else None
            if grade is not None:
                differs = any(getattr(grade, name, None) != value for name, value in fields.items())
                yield reviewer, grade.judged_by.model, float(differs)

    def _machine_result(self, screening_id: str) -> Screening | None:
        """Return the machine's result, or None if retention has removed it."""
        try:
            return self._screenings.get(screening_id)
        except Removed:
            return None

    # Exports

    @requires("export", "export screenings")
    def export(self, actor: Actor, screening_id: str, form: ScreeningFile) -> bytes:
        """Return a finished screening as a file, with people's overrides.

        Args:
            actor: Who asks for it.
            screening_id: The screening.
            form: ``csv`` for the graded abstracts, ``kept`` for the kept ones as RIS, ``labels``
                for all with their labels as RIS, ``flow`` for the flow diagram as SVG.

        Raises:
            NotAllowed: The actor's role doesn't allow exports.
            UnknownRecord: There is no such screening.
            StoreError: It isn't finished.

        """
        opened = self.open(screening_id)
        if form == "flow":
            return prisma_svg(opened.screening).encode()
        out = io.BytesIO()
        if form == "csv":
            write_screening_csv(opened.screening, opened.abstracts, out)
        else:
            recommendations = ("keep",) if form == "kept" else RECOMMENDATIONS
            write_screening_ris(opened.screening, opened.abstracts, out, recommendations)
        return out.getvalue()


def _screening_decision(actor: Actor, screening_id: str, **content: Any) -> ScreeningDecision:
    """Return a log entry under the actor's name.

    Raises:
        InputError: The actor has no name.

    """
    return ScreeningDecision(
        reviewer=name_of(actor), screening_id=screening_id, versions={"app": APP}, **content
    )

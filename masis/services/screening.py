"""Screening: corpora of abstracts, screening a question on them, people's overrides of grades, and
what is learned.

This is what happens around a screening: it is stored as it goes, and what it accepted is
remembered. How a screening works is in ``masis.screening``.
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
from masis.datasets.readers.abstracts.decisions import RecordDecision, decision_of
from masis.datasets.writers.screenings import write_screening_csv, write_screening_ris
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
from masis.screening.rounds import round_loop
from masis.screening.rounds.drift import Drift, drift
from masis.screening.rounds.memory import Shift, acceptances, adapt_thresholds, shift
from masis.screening.rounds.overrides import apply_review, effective_overrides, validate_override
from masis.screening.sources.pool import AbstractPool
from masis.screening.sources.pubmed import pubmed_of
from masis.screening.sources.retrievers import GIVEN, Retriever
from masis.screening.synthesis.findings import Synthesis, synthesise
from masis.screening.synthesis.prisma import prisma_svg
from masis.services.access import OPEN, Access, Service
from masis.services.background import RepeatedTask
from masis.services.records import CorpusImport, CorpusSummary, ScreeningSummary
from masis.services.reviews import name_of
from masis.settings import OFFLINE, Settings
from masis.store import Store
from masis.version import APP
from masis.views.screening import RECOMMENDATIONS

ScreeningFile = Literal["csv", "kept", "labels", "flow"]
CORPUS = "corpus:"
PUBMED = "pubmed"
CONTINUES = "continues"
"""Names, in the first event of a screening, the finished one that it goes on from."""
CARRIED_FROM = "carried_from"
"""Names, in an override of a screening that goes on from another one, the one it was made in."""
CANCEL_CHECK_INTERVAL = timedelta(seconds=0.5)
"""How often a screening with models looks whether a person wants it to stop."""


class OpenedScreening(NamedTuple):
    """A screening with people's overrides applied, as the machine left it, the overrides, and its
    abstracts.

    ``synthesis`` says what the kept abstracts found, ``agreements`` who agrees with which of the
    machine's grades.
    """

    screening: Screening
    machine: Screening
    overrides: tuple[Override, ...]
    abstracts: dict[str, Abstract]
    summary: ScreeningSummary
    synthesis: Synthesis
    agreements: tuple[GradeAgreement, ...] = ()


class MemoryView(NamedTuple):
    """The acceptance memory: what it holds, and by how much it would move the required averages."""

    entries: tuple[AcceptedStudy, ...]
    shift: Shift
    on: bool


class LabelImport(NamedTuple):
    """What came of another tool's decisions: grades changed, as they were, without a decision, not
    in the screening.
    """

    changed: int
    unchanged: int
    undecided: int
    unknown: int


class DriftSeries(NamedTuple):
    """The judgements about one grader, or by one reviewer, in time, and whether their disagreement
    drifted.

    ``what`` has the counts: grades changed, of those judged.
    """

    name: str
    counts: str
    drift: Drift


_LONGEST_LABEL = 80


def _assert_stored(sources: Iterable[str], hint: str) -> None:
    """Raise InputError with the hint where a screening searched a file, whose records no corpus
    holds.
    """
    if files := [name for name in sources if name != PUBMED and not name.startswith(CORPUS)]:
        raise InputError(
            f"the records of {', '.join(files)}, which it searched, are not stored",
            hint=hint,
            field="sources",
        )


def records_corpus(name: str, abstracts: Iterable[Abstract]) -> str:
    """Return the name of the corpus that holds the records of a screened file: its name and a
    digest of the records.

    The same records of a file of that name are one corpus, however often they are screened.
    """
    digest = hashlib.sha256()
    for abstract in abstracts:
        digest.update(abstract.model_dump_json(exclude_defaults=True).encode())
    label = "".join(char for char in name if char.isprintable())[:_LONGEST_LABEL]
    return f"{label} {digest.hexdigest()[:8]}".strip()


class CorpusService(Service):
    """The use cases of corpora."""

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
        """Add abstracts to a corpus, made where there is none; returns the counts. Raises
        InputError and NotAllowed.
        """
        self._access.require(actor, "audit")
        return self._store.corpora.add_many(
            corpus, abstracts, source=source, on_batch=on_batch, on_error=on_error
        )

    def keep_records(
        self,
        actor: Actor,
        corpus: str,
        abstracts: Sequence[Abstract],
        *,
        source: str,
        on_batch: Callable[[int], None] | None = None,
    ) -> None:
        """Store the records that a screening searched as a corpus, unless it holds them: further
        rounds need them.

        Raises InputError and NotAllowed.
        """
        self._access.require(actor, "audit")
        held = any(each.name == corpus for each in self._store.corpora.list_all())
        if not held or not any(
            each.identified == len(abstracts) for each in self._store.corpora.imports(corpus)
        ):
            self._store.corpora.add_many(corpus, abstracts, source=source, on_batch=on_batch)

    def add_demo(self, actor: Actor) -> CorpusSummary:
        """Store the abstracts written for the demo in a corpus of their own, unless
        they are there.
        """
        self._access.require(actor, "audit")
        abstracts = tuple(demo_abstracts())
        held = next(
            (each for each in self._store.corpora.list_all() if each.name == DEMO_CORPUS), None
        )
        if held is None or held.abstracts < len(abstracts):
            self._store.corpora.add_many(DEMO_CORPUS, abstracts, source="demo")
        return self._store.corpora.summary(DEMO_CORPUS)

    def remove(self, actor: Actor, corpus: str) -> None:
        """Remove a corpus; screenings keep copies of what they graded. Raises UnknownRecord and
        NotAllowed.
        """
        self._access.require(actor, "oversee")
        self._store.corpora.remove(corpus)


class ScreeningService:
    """The use cases of screening on one database; ``graders`` makes the grader of a screening from
    its settings.
    """

    def __init__(
        self,
        store: Store,
        settings: Settings,
        graders: Callable[[Settings, RunControl], Grader] = grader_for,
        *,
        access: Access = OPEN,
    ) -> None:
        self._store, self._settings, self._graders, self._access = store, settings, graders, access
        self.mark_lost = store.screenings.mark_lost

    # screening

    def sources(
        self,
        names: Sequence[str],
        settings: Settings | None = None,
        cancellation: CancelToken | None = None,
    ) -> tuple[Retriever, ...]:
        """Return the sources of these names: ``corpus:NAME``, ``pubmed``; ``cancellation`` ends
        their waits.

        Raises UnknownRecord, SettingsError and InputError.
        """
        if not names:
            raise InputError(
                "there is no source to search", hint="Choose a corpus, or PubMed.", field="sources"
            )

        def source(name: str) -> Retriever:
            if name.startswith(CORPUS):
                return self._store.corpora.retriever(name.removeprefix(CORPUS))
            if name == PUBMED:
                return pubmed_of(settings or self._settings, cancellation)
            raise InputError(
                f"{name!r} is no source", hint=f"Use {CORPUS}NAME or {PUBMED}.", field="sources"
            )

        return tuple(map(source, dict.fromkeys(names)))

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
        """Screen a question on these sources, storing every round as it goes; returns the machine's
        result.

        A screening of this id that was interrupted is resumed after its last finished round, with
        the question, sources and settings that it began with. Raises InputError, UnknownRecord,
        SettingsError, MissingExtra and NotAllowed before anything is searched.
        """
        self._access.require(actor, "audit")
        if not question.strip():
            raise InputError(
                "the question is empty",
                hint="Ask what the evidence is to answer.",
                field="question",
            )
        settings = settings or self._settings
        screening_id = screening_id or round_loop.new_screening_id()
        interrupted = screening_id in self._store.screenings.in_state("interrupted")
        if interrupted:
            begun = self._store.screenings.progress(screening_id)
            question, sources, settings = (
                begun.question,
                begun.sources,
                settings.with_values(begun.settings),
            )
        control = RunControl(RunBudget(call_s=settings.call_deadline_s))
        retrievers = self.sources(sources, settings, control.cancellation)
        grader = CachingGrader(self._graders(settings, control), self._store.remembered_grades)
        thresholds = adapt_thresholds(settings, self._store.acceptances.entries())
        progress = None
        if interrupted:
            resumed = self._store.screenings.resume(screening_id)
            progress, thresholds = resumed.progress, resumed.thresholds or thresholds
        else:
            self._store.screenings.start(
                screening_id,
                question=question,
                sources=tuple(sources),
                settings=settings.of_screening(),
                thresholds=thresholds,
            )

        def stop() -> bool:
            if (cancelled is not None and cancelled()) or self._store.screenings.cancel_requested(
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
            keep=lambda finished: self._store.screenings.keep(screening_id, finished),
        )

        def record(event: ScreeningEvent) -> None:
            stored = self._store.screenings.append_event(event)
            if on_event is not None:
                on_event(stored)

        waits = PUBMED in sources or grader_names(settings) != (OFFLINE,)
        try:
            with (
                RepeatedTask(lambda _: stop(), CANCEL_CHECK_INTERVAL, "screening watch")
                if waits
                else nullcontext()
            ):
                screening = run_to_completion(work, record, ScreeningStart())
        except BaseException as error:
            self._store.screenings.abandon(
                screening_id, f"It was cut short: {error or type(error).__name__}"
            )
            raise
        self.store_screening(actor, screening)
        self._carry_over_overrides(actor, screening_id)
        return screening

    def begin_further(
        self,
        actor: Actor,
        screening_id: str,
        rounds: int = 2,
        *,
        sources: Sequence[str] | None = None,
    ) -> str:
        """Make a screening that goes on from a finished one with further rounds, and return its id.

        It has the rounds, grades, settings and thresholds of the finished one, which stays as it
        is, and is interrupted until ``screen`` takes it up. People's overrides are carried over
        once it is finished. ``sources`` takes the place of the finished one's, such as a corpus
        with the records of a file that was screened. Raises NotAllowed, UnknownRecord, and
        InputError where the screening is not finished, its sources are no longer here, or all that
        they hold is graded.
        """
        self._access.require(actor, "audit")
        begun = self._store.screenings.progress(screening_id)
        if begun.state != "finished":
            raise InputError(
                "the screening is not finished",
                hint="Resume it, or wait for it.",
                field="screening",
            )
        made = len(begun.progress.finished)
        settings = self._settings.with_values(
            begun.settings
            | {
                "screening_least_rounds": made + 1,
                "screening_max_rounds": made + rounds,
            }
        )
        sources = tuple(begun.sources if sources is None else sources)
        self._assert_more_to_find(screening_id, sources, begun.progress)
        self.sources(sources, settings)
        further = round_loop.new_screening_id()
        with self._store.transaction():
            self._store.screenings.start(
                further,
                question=begun.question,
                sources=sources,
                settings=settings.of_screening(),
                thresholds=begun.thresholds,
            )
            started = ScreeningEvent(
                screening_id=further,
                seq=1,
                at=utc_now(),
                kind="screening_started",
                data={CONTINUES: screening_id},
            )
            self._store.screenings.append_event(started)
            for finished in begun.progress.finished:
                self._store.screenings.keep(further, finished)
            self._store.screenings.abandon(
                further, "It goes on from a finished screening with further rounds."
            )
        return further

    def _assert_more_to_find(
        self, screening_id: str, sources: Sequence[str], progress: round_loop.ResumePoint
    ) -> None:
        """Raise InputError where the sources of a screening are not stored, or hold nothing that it
        did not grade.
        """
        graded = {grade.abstract_id for each in progress.finished for grade in each.grades}
        nothing = InputError(
            f"no further query would help: all {count_noun(len(graded), 'abstract')} of its sources"
            " are graded",
            hint="Add abstracts to a corpus, or screen the question on other sources.",
            field="sources",
        )
        if tuple(sources) == (GIVEN,):
            raise nothing
        _assert_stored(
            sources, hint=f"Give the file again: masis screening further {screening_id} FILE."
        )
        corpora = [name.removeprefix(CORPUS) for name in sources if name != PUBMED]
        if PUBMED in sources or sum(
            self._store.corpora.summary(name).abstracts for name in corpora
        ) > len(graded):
            return
        if all(each.id in graded for name in corpora for each in self._store.corpora.iterate(name)):
            raise nothing

    def plan_again(
        self, screening_id: str, concepts: Mapping[Part, str]
    ) -> tuple[str, tuple[str, ...], Settings]:
        """Return question, sources and settings that ask an earlier screening's question with other
        concepts.

        Question, sources, criteria and settings are those of the earlier one. ``concepts`` holds
        the parts as a person wants them; one that is as read of the question keeps following it.
        Raises UnknownRecord, Removed, and InputError where the sources are no longer here.
        """
        begun = self._store.screenings.progress(screening_id)
        changed = {
            "screening_concepts": changed_lines(begun.question, concepts),
            # further rounds raise it
            "screening_least_rounds": self._settings.screening_least_rounds,
        }
        settings = self._settings.with_values(begun.settings | changed)
        _assert_stored(
            begun.sources,
            hint="Import them into a corpus and screen that, or give masis screen the concepts.",
        )
        self.sources(begun.sources, settings)
        return begun.question, begun.sources, settings

    def search_further(
        self,
        actor: Actor,
        screening_id: str,
        rounds: int = 2,
        *,
        sources: Sequence[str] | None = None,
        on_event: Callable[[ScreeningEvent], None] | None = None,
    ) -> Screening:
        """Search further for a finished screening, as a new one; returns it. Raises as
        ``begin_further`` does.
        """
        further = self.begin_further(actor, screening_id, rounds, sources=sources)
        begun = self._store.screenings.progress(further)
        return self.screen(
            actor, begun.question, begun.sources, screening_id=further, on_event=on_event
        )

    def _carry_over_overrides(self, actor: Actor, screening_id: str) -> None:
        """Carry people's overrides into a screening that goes on from another one, each an entry
        that says so.
        """
        first = next(iter(self._store.screenings.events(screening_id)), None)
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

    def store_screening(
        self, actor: Actor, screening: Screening, abstracts: Iterable[Abstract] = ()
    ) -> None:
        """Store the result of a screening, and the abstracts of one made elsewhere; what it
        accepted is remembered.
        """
        self._access.require(actor, "audit")
        self._store.screenings.finish(screening, abstracts)
        self._store.acceptances.replace(screening.id, acceptances(screening))

    def cancel(self, actor: Actor, screening_id: str) -> None:
        """Ask whoever makes a screening to stop after its current step. Raises UnknownRecord and
        NotAllowed.
        """
        self._access.require(actor, "audit")
        self._store.screenings.request_cancel(screening_id)

    def open(self, screening_id: str) -> OpenedScreening:
        """Return a finished screening with people's overrides. Raises UnknownRecord, and StoreError
        (not finished).
        """
        with self._store.database.reading():
            machine = self._store.screenings.get(screening_id)
            overrides = self._store.screening_log.overrides(screening_id)
            agreements = self._store.screening_log.agreements(screening_id)
            abstracts = self._store.screenings.abstracts(screening_id)
            summary = self._store.screenings.summary(screening_id)
        reviewed = apply_review(machine, overrides, abstracts)
        found = synthesise(machine.question, reviewed.grades, abstracts)
        return OpenedScreening(reviewed, machine, overrides, abstracts, summary, found, agreements)

    # people

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
        """Record an override of a field of a grade, an item of its appraisal or the direction of
        the finding.

        A value of None undoes the last one. Returns the screening as it is then.

        What is kept then replaces what the acceptance memory held of the screening.
        ``carried_from`` names the screening in which it was made first. Raises InputError (no such
        value, no reason, no name), NotAllowed, StaleVersion, UnknownRecord.
        """
        self._access.require(actor, "decide")
        if value is not None and not reason.strip():
            raise InputError(
                "the reason is missing", hint="Say why the grade should be another.", field="reason"
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
            self._store.acceptances.replace(screening_id, acceptances(opened.screening))
        return opened

    def import_labels(
        self,
        actor: Actor,
        screening_id: str,
        records: Iterable[Abstract],
        *,
        every: Recommendation | None = None,
    ) -> LabelImport:
        """Record what people decided in another tool as overrides of the recommendation; returns
        the counts.

        A record is matched by its id, DOI, PubMed id or title. ``every`` is the decision about all
        records, for a tool that exports a list for each decision. What agrees with the grade as it
        is changes nothing. Raises InputError (no name), NotAllowed, UnknownRecord.
        """
        self._access.require(actor, "decide")
        opened = self.open(screening_id)
        pool = AbstractPool()
        for abstract in opened.abstracts.values():
            pool.add(abstract)
        changed = alike = undecided = unknown = 0
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
                alike += 1
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
        return LabelImport(changed, alike, undecided, unknown)

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
        """Record that a person finds the machine's grade of an abstract right (``agrees`` False
        takes it back).

        It changes no grade; it counts in how often people agree with a grader. Raises InputError
        (no name, or a person has changed the grade), NotAllowed, StaleVersion, UnknownRecord.
        """
        self._access.require(actor, "decide")
        name_of(actor)  # before anything else is refused
        with self._store.transaction():
            overridden = effective_overrides(self._store.screening_log.overrides(screening_id)).get(
                abstract_id, {}
            )
            if agrees and overridden.keys() - {"direction"}:  # which no grader sets
                raise InputError(
                    "a person has changed this grade",
                    hint=(
                        "Undo the change first: an agreement is with the grade as the machine"
                        " gave it."
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

    def hand_over(self, actor: Actor, screening_id: str) -> Case:
        """Store a case whose evidence is the kept abstracts, and return it; the same abstracts give
        the same case.

        Raises NotAllowed, and InputError where no abstract is kept or the actor has no name.
        """
        self._access.require(actor, "audit")
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

    # what is learned

    def memory(self) -> MemoryView:
        """Return what the acceptance memory holds and would do."""
        entries = self._store.acceptances.entries()
        return MemoryView(
            entries,
            shift(entries, self._settings.screening_memory_bound),
            self._settings.screening_memory,
        )

    def thresholds(self, settings: Settings) -> Thresholds:
        """Return the thresholds that a screening with these settings begins with, moved by memory
        where it is on.
        """
        return adapt_thresholds(settings, self._store.acceptances.entries())

    def reset_memory(self, actor: Actor, *, reason: str) -> ScreeningEntry:
        """Reset the acceptance memory; an entry of the screening log says who did so,
        when and why.
        """
        self._access.require(actor, "oversee")
        if not reason.strip():
            raise InputError(
                "the reason is missing", hint="Say why the memory is reset.", field="reason"
            )
        return self._store.acceptances.reset(by=name_of(actor), reason=reason)

    def drifts(self) -> tuple[DriftSeries, ...]:
        """Return whether people disagree with a grader, or a reviewer with the graders, more or
        less than before.

        The rate is of disagreements among judgements: an abstract whose grade a person changed, or
        agreed with, is one judgement of that person. The quality of what a grader accepts is no
        series: it changes with the topic.
        """
        judgements: dict[tuple[bool, str], list[float]] = {}
        for reviewer, grader, disagrees in self._judgements():
            judgements.setdefault((False, grader), []).append(disagrees)
            judgements.setdefault((True, reviewer), []).append(disagrees)
        return tuple(
            DriftSeries(
                who if by_person else f"Grader {who}",
                f"{sum(found):.0f} changed of {len(found)} judged",
                drift(found),
            )
            for (by_person, who), found in sorted(judgements.items())
        )

    def _judgements(self) -> Iterator[tuple[str, str, float]]:
        """Yield what each person says about each grade, in the order in which they last spoke of
        it.

        It is the reviewer, who had graded, and whether the reviewer changed it (1) or agreed with
        it (0). A value that is the machine's own changes nothing, and is an agreement; a corrected
        item of the appraisal is a change. What was undone is no judgement, and what was carried
        over from another screening was judged there.
        """
        said: dict[tuple[str, str, str], tuple[bool, dict[OverrideField, float | bool | str]]] = {}
        for entry in self._store.screening_log.iterate():
            decision = entry.decision
            if decision is None or decision.screening_id is None or decision.abstract_id is None:
                continue
            judged = decision.reviewer, decision.screening_id, decision.abstract_id
            agrees, fields = said.get(judged, (False, {}))
            override = decision.override
            if decision.agreement is not None:
                agrees = decision.agreement.agrees
            elif (
                override is None or CARRIED_FROM in decision.extra or override.field == "direction"
            ):
                continue  # no grader sets a direction
            elif override.value is not None:
                fields[override.field] = override.value
            else:
                # an undo takes back a value, whoever had set it
                for other, (_, theirs) in said.items():
                    if other[1:] == judged[1:]:
                        theirs.pop(override.field, None)
                continue
            said.pop(judged, None)
            said[judged] = agrees, fields
        machine = cache(self._machine_result)
        for (reviewer, screening_id, abstract_id), (agrees, fields) in said.items():
            found = machine(screening_id)
            grade = found.grade(abstract_id) if found and (fields or agrees) else None
            if grade is not None:
                differs = any(getattr(grade, name, None) != value for name, value in fields.items())
                yield reviewer, grade.judged_by.model, float(differs)

    def _machine_result(self, screening_id: str) -> Screening | None:
        """Return the machine's result; None where retention has removed it."""
        try:
            return self._store.screenings.get(screening_id)
        except Removed:
            return None

    # exports

    def export(self, actor: Actor, screening_id: str, form: ScreeningFile) -> bytes:
        """Return a finished screening as a file, with people's overrides.

        ``csv`` are the graded abstracts; ``kept`` and ``labels`` are RIS, of those kept or of all
        with their labels; ``flow`` is the PRISMA 2020 flow diagram as SVG. Raises NotAllowed,
        UnknownRecord, and StoreError where it is not finished.
        """
        self._access.require(actor, "export")
        opened = self.open(screening_id)
        if form == "flow":
            return prisma_svg(opened.screening).encode()
        out = io.BytesIO()
        if form == "csv":
            write_screening_csv(opened.screening, opened.abstracts, out)
        else:
            which = ("keep",) if form == "kept" else RECOMMENDATIONS
            write_screening_ris(opened.screening, opened.abstracts, out, which)
        return out.getvalue()


def _screening_decision(actor: Actor, screening_id: str, **what: Any) -> ScreeningDecision:
    """Return an entry for the log by whoever is at work. Raises InputError where they
    have no name.
    """
    return ScreeningDecision(
        reviewer=name_of(actor), screening_id=screening_id, versions={"app": APP}, **what
    )

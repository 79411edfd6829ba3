"""Runs the rounds of a screening: retrieve, grade, decide, and retrieve the missing evidence.

    queries -> search -> grade new abstracts -> ruling -> stop if sufficient
       ^                                           |
       +------- queries for missing evidence ------+

The ruling of a round considers all abstracts so far, so that it doesn't depend on how many results
a page holds. An abstract is graded once, unless a later record marks it as retracted. The loop
receives its sources and its grader as arguments, yields events and returns the screening. It uses
no store and no page, and keeps no state between two screenings. The grades of a cancelled round
aren't part of the screening.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass, field
from itertools import chain, product, zip_longest
from typing import Any, NamedTuple

from masis import version
from masis.errors import MasisError, RetrievalFailed
from masis.schema.base import Unscored, utc_now
from masis.schema.screening import (
    Abstract,
    Grade,
    Outcome,
    Query,
    Round,
    Screening,
    ScreeningEvent,
    ScreeningVersions,
    Thresholds,
)
from masis.screening.grading import designs, rubric
from masis.screening.grading.grader import Grader, unscored_grade
from masis.screening.grading.question import with_concepts
from masis.screening.rounds import queries, ruling
from masis.screening.rounds.memory import threshold_effects
from masis.screening.rounds.ruling import relevant_words
from masis.screening.sources.pool import AbstractPool
from masis.screening.sources.records import year_of
from masis.screening.sources.retrievers import Retriever, search_source
from masis.screening.synthesis.findings import settled_outcome, synthesise
from masis.screening.synthesis.prisma import flow
from masis.settings import OFFLINE, Settings

BATCH = 10
"""Abstracts graded between two checks for cancellation."""

ScreeningSteps = Generator[ScreeningEvent, None, Screening]


def new_screening_id() -> str:
    """Return a fresh id for a screening."""
    return uuid.uuid4().hex


class FinishedRound(NamedTuple):
    """One finished round with the abstracts and grades that were new in it."""

    round: Round
    abstracts: tuple[Abstract, ...]
    grades: tuple[Grade, ...]


@dataclass(frozen=True)
class ResumePoint:
    """Where an interrupted screening resumes: its finished rounds, in order."""

    finished: tuple[FinishedRound, ...] = ()
    events: int = 0


def screen(
    question: str,
    retrievers: Sequence[Retriever],
    grader: Grader,
    settings: Settings,
    *,
    screening_id: str,
    thresholds: Thresholds | None = None,
    limit: int | None = None,
    is_complete_set: bool = False,
    unread: int = 0,
    cancelled: Callable[[], bool] = lambda: False,
    progress: ResumePoint | None = None,
    keep: Callable[[FinishedRound], None] = lambda finished: None,
    now: Callable[[], str] = utc_now,
) -> ScreeningSteps:
    """Screen one question round by round, yielding events, and return the screening.

    Each round searches all ``retrievers`` and grades the new abstracts. If a source or the grader
    fails, the screening records the error and continues.

    Args:
        question: The question that the evidence should answer.
        retrievers: The sources to search.
        grader: Grades the abstracts that are new in a round.
        settings: The limits and thresholds of screening.
        screening_id: The id of the screening and of its events.
        thresholds: The thresholds, if memory adapted them; those of the settings unless given.
        limit: How many abstracts a round takes from each source; ``screening_retrieve`` unless
            given.
        is_complete_set: Whether the sources return one complete set for every query. Then records
            with the same title stay separate, and later rounds only apply their thresholds.
        unread: How many records of the given files couldn't be read; counted in the flow.
        cancelled: Called between searches and batches. If it returns True, the screening ends as
            cancelled.
        progress: The finished rounds to resume from.
        keep: Called with each finished round, so that it can be stored.
        now: Returns the current time; tests replace it.

    """
    work = _ScreeningRun(
        question,
        tuple(retrievers),
        grader,
        settings,
        screening_id,
        thresholds or ruling.thresholds_of(settings),
        limit or settings.screening_retrieve,
        is_complete_set,
        unread,
        cancelled,
        keep,
        now,
    )
    return (yield from work.steps(progress or ResumePoint()))


class _ScreeningCancelled(Exception):
    """A person cancelled the screening."""


@dataclass
class _ScreeningRun:
    """The state of one running screening."""

    question: str
    retrievers: tuple[Retriever, ...]
    grader: Grader
    settings: Settings
    screening_id: str
    thresholds: Thresholds
    limit: int
    is_complete_set: bool
    unread: int
    cancelled: Callable[[], bool]
    keep: Callable[[FinishedRound], None]
    now: Callable[[], str]
    rounds: list[Round] = field(default_factory=list)
    grades: dict[str, Grade] = field(default_factory=dict)
    pool: AbstractPool = field(default_factory=AbstractPool)
    warnings: list[str] = field(default_factory=list)
    seq: int = 0

    @property
    def question_with_concepts(self) -> str:
        """The question with the concepts that a person wrote, as graders and searches read it."""
        return with_concepts(self.question, self.settings.screening_concepts)

    def steps(self, progress: ResumePoint) -> ScreeningSteps:
        started_at = self.now()
        self.pool.by_title = not self.is_complete_set
        self.seq = progress.events
        for finished in progress.finished:
            self.rounds.append(finished.round)
            self.warnings.extend(finished.round.warnings)
            for abstract in finished.abstracts:
                self.pool.add(abstract)
            self.grades.update({grade.abstract_id: grade for grade in finished.grades})
        self._drop_absorbed()
        self.pool.changed.clear()
        data: dict[str, Any] = {
            "graders": list(self._graders()),
            "resumed_after": len(self.rounds),
        }
        yield self._event("screening_started", data=data)
        try:
            outcome, reasons = yield from self._rounds()
        except _ScreeningCancelled:
            outcome, reasons = "cancelled", ("Stopped by a person.",)
            # The cancelled round graded only some of its abstracts, so its grades don't count.
            finished_ids = {
                abstract_id
                for finished_round in self.rounds
                for abstract_id in finished_round.retrieved
            }
            self.grades = {key: grade for key, grade in self.grades.items() if key in finished_ids}
        result = self._result(started_at, outcome, reasons)
        data = {"outcome": outcome, "rounds": len(self.rounds), "kept": len(result.kept)}
        yield self._event("screening_finished", data=data)
        return result

    def _drop_absorbed(self) -> None:
        """Drop the grades of notices that were merged with their study in a later round."""
        for notice in self.pool.absorbed:
            self.grades.pop(notice, None)

    def _rounds(self) -> Generator[ScreeningEvent, None, tuple[Outcome, tuple[str, ...]]]:
        while True:
            # The last sufficient round counts, even if a later one found nothing more.
            sufficient_round = next(
                (
                    finished
                    for finished in reversed(self.rounds)
                    if finished.ruling.decision == "sufficient"
                ),
                None,
            )
            count, max_rounds = len(self.rounds), self.settings.screening_max_rounds
            if sufficient_round and count >= min(self.settings.screening_least_rounds, max_rounds):
                return self._final_outcome(sufficient_round)
            if next_queries := self._queries() if count < max_rounds else ():
                failed = yield from self._round(next_queries)
                if failed:
                    return "error", (
                        "None of the sources could be searched.",
                        *self.warnings[-len(self.retrievers) :],
                    )
            elif sufficient_round:
                return self._final_outcome(sufficient_round, queries.NO_FURTHER_QUERY)
            else:
                limit_reason = (
                    f"The limit of {count} rounds was reached without sufficient evidence."
                )
                reason = limit_reason if count >= max_rounds else queries.NO_FURTHER_QUERY
                # Quote the last round in which anything relevant voted, or else the last round.
                last = next(
                    (finished for finished in reversed(self.rounds) if finished.ruling.tally.votes),
                    self.rounds[-1],
                )
                return "evidence_insufficient", (
                    f"Round {last.number}: {last.ruling.why}",
                    relevant_words(self.grades.values()),
                    reason,
                    *self.rounds[-1].missing,
                )

    def _final_outcome(
        self, sufficient_round: Round, *more_reasons: str
    ) -> tuple[Outcome, tuple[str, ...]]:
        """Return the outcome of sufficient evidence, with the reasons."""
        synthesis = synthesise(self.question, self.grades.values(), self.pool.by_id)
        reason = f"Round {sufficient_round.number}: {sufficient_round.ruling.why}"
        return settled_outcome(synthesis), (
            reason,
            relevant_words(self.grades.values()),
            synthesis.summary,
            *more_reasons,
        )

    def _round(self, queries_sent: tuple[Query, ...]) -> Generator[ScreeningEvent, None, bool]:
        number = len(self.rounds)
        self._stop_if_cancelled()
        yield self._event(
            "round_started", round=number, data={"queries": [query.text for query in queries_sent]}
        )
        seen_before = set(self.pool.by_id)
        hits: list[tuple[Abstract, ...]] = []
        failures: list[str] = []
        # A source that fails for one query may work for another, so all are tried.
        for query, retriever in product(queries_sent, self.retrievers):
            self._stop_if_cancelled()
            try:
                hits.append(search_source(retriever, query, self.limit))
            except RetrievalFailed as error:
                failures.append(f"{retriever.name}: {error}")
        # Check again: a search that was stopped by cancelling must not be reported as a failure.
        self._stop_if_cancelled()
        for warning in (warnings := tuple(dict.fromkeys(failures))):
            self.warnings.append(warning)
            yield self._event("warning", round=number, message=warning)
        if not hits:
            return True
        identified, abstracts = self._take(hits)
        # A known abstract is graded again if a record of this round marks it as retracted.
        new = tuple(abstract for abstract in abstracts if abstract.id not in self.grades)
        changed = tuple(
            self.pool.by_id[abstract_id]
            for abstract_id in sorted(self.pool.changed & self.grades.keys())
        )
        self.pool.changed.clear()
        data = {"identified": identified, "retrieved": len(abstracts), "new": len(new)}
        yield self._event("searched", round=number, data=data)
        graded = yield from self._grade((*new, *changed), number)
        self._drop_absorbed()
        round_ruling = ruling.ruling(number, self.grades.values(), self.thresholds)
        gaps = self._gaps() if round_ruling.decision == "retrieve_more" else ()
        finished = Round(
            number=number,
            queries=queries_sent,
            identified=identified,
            retrieved=tuple(abstract.id for abstract in abstracts),
            new=tuple(abstract.id for abstract in new),
            ruling=round_ruling,
            missing=tuple(dict.fromkeys(gap.what for gap in gaps)),
            warnings=warnings,
            unread=0 if self.rounds else self.unread,
        )
        unseen = (abstract for abstract in abstracts if abstract.id not in seen_before)
        self.rounds.append(finished)
        self.keep(FinishedRound(finished, (*unseen, *changed), graded))
        summary = round_ruling.model_dump(
            include={"required_average", "average", "consensus", "decision"}
        )
        summary |= round_ruling.tally.model_dump(include={"keep", "discard", "needs_more"})
        yield self._event("round_finished", round=number, data=summary)
        return False

    def _take(self, hits: Sequence[tuple[Abstract, ...]]) -> tuple[int, tuple[Abstract, ...]]:
        """Return how many hits are new in this round, repeats included, and their abstracts.

        A record of an earlier round doesn't count again when another query finds it. The hits of
        the searches are taken in turn, so that the limit doesn't favor the first search.
        """
        identified, seen_before, abstracts = 0, frozenset(self.pool.seen), dict[str, Abstract]()
        for hit in filter(None, chain.from_iterable(zip_longest(*hits))):
            if len(abstracts) < self.limit * len(self.retrievers):
                identified += hit.id not in seen_before
                abstract = self.pool.add(hit)
                abstracts[abstract.id] = abstract
        return identified, tuple(abstracts.values())

    def _queries(self) -> tuple[Query, ...]:
        if not self.rounds:
            return queries.first_queries(self.question_with_concepts)
        first = queries.searched_text(self.question_with_concepts)
        question_rounds = [
            finished
            for finished in self.rounds
            if any(query.text == first for query in finished.queries)
        ]
        page = (
            [self.grades[key] for key in question_rounds[-1].retrieved if key in self.grades]
            if question_rounds
            else []
        )
        return queries.next_queries(
            self.question_with_concepts,
            self._gaps(),
            [query for finished in self.rounds for query in finished.queries],
            self.limit,
            has_next_page=(
                not self.is_complete_set and queries.is_next_page_worth_reading(page, self.limit)
            ),
        )

    def _gaps(self) -> tuple[queries.Gap, ...]:
        seen = tuple(
            queries.GradedAbstract(self.pool.by_id[abstract_id], grade)
            for abstract_id, grade in self.grades.items()
        )
        return queries.find_gaps(self.question_with_concepts, seen, year_of(self.now()))

    def _grade(
        self, abstracts: Sequence[Abstract], number: int
    ) -> Generator[ScreeningEvent, None, tuple[Grade, ...]]:
        graded: list[Grade] = []
        for start in range(0, len(abstracts), BATCH):
            self._stop_if_cancelled()
            batch = abstracts[start : start + BATCH]
            batch_grades = one_grade_each(self.grader, self.question_with_concepts, batch)
            graded.extend(batch_grades)
            self.grades.update({grade.abstract_id: grade for grade in batch_grades})
            data = {"done": len(graded), "of": len(abstracts)}
            yield self._event("graded", round=number, data=data)
        # Cancelling stops the grader's calls, which leaves abstracts unscored. They must not vote.
        self._stop_if_cancelled()
        return tuple(graded)

    def _stop_if_cancelled(self) -> None:
        if self.cancelled():
            raise _ScreeningCancelled

    def _graders(self) -> tuple[str, ...]:
        return tuple(self.grader.judged_by.model.split(" + "))

    def _event(self, kind: Any, **shown: Any) -> ScreeningEvent:
        self.seq += 1
        return ScreeningEvent(
            screening_id=self.screening_id, seq=self.seq, at=self.now(), kind=kind, **shown
        )

    def _result(self, started_at: str, outcome: Outcome, reasons: tuple[str, ...]) -> Screening:
        grades = tuple(self.grades.values())
        reasons += threshold_effects(self.rounds, self.thresholds)
        return Screening(
            id=self.screening_id,
            question=self.question,
            started_at=started_at,
            finished_at=self.now(),
            retrievers=tuple(retriever.name for retriever in self.retrievers),
            graders=self._graders(),
            rounds=tuple(self.rounds),
            grades=grades,
            kept=tuple(grade.abstract_id for grade in grades if grade.recommendation == "keep"),
            outcome=outcome,
            reasons=tuple(dict.fromkeys(reasons)),
            thresholds=self.thresholds,
            flow=flow(self.rounds, grades),
            settings=self.settings.of_screening(),
            versions=ScreeningVersions(
                app=version.APP,
                rubric=rubric.VERSION,
                study_types=designs.version() if OFFLINE in self._graders() else None,
            ),
            usage=self.grader.usage,
            warnings=tuple(dict.fromkeys(self.warnings)),
        )


def one_grade_each(
    grader: Grader, question: str, abstracts: Sequence[Abstract]
) -> tuple[Grade, ...]:
    """Grade abstracts, and return exactly one grade for each, in the same order.

    If the grader fails or leaves one out, that abstract is unscored.
    """
    try:
        by_id = {grade.abstract_id: grade for grade in grader.grade(question, abstracts)}
        reason = "the grader didn't grade it"
    except MasisError as error:
        by_id, reason = {}, str(error)
    return tuple(
        by_id.get(abstract.id)
        or unscored_grade(abstract, grader.judged_by, Unscored(reason=reason))
        for abstract in abstracts
    )

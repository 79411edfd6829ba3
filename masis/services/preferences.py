"""Compare two systems' answers side by side, without names, and measure what people prefer.

A reviewer decides each pair alone. Which system wrote an answer, and what others decided, is shown
only for questions of which the reviewer has decided every pair: an answer that was named in one
pair could be recognized in the next.
"""

from __future__ import annotations

import hashlib
from collections import Counter, defaultdict
from collections.abc import Sequence
from itertools import combinations
from typing import Any, Literal, NamedTuple

import numpy as np
from pydantic import Field

from masis import version
from masis.datasets.exports.answers import Row, asked_turns
from masis.datasets.exports.formats import export_formats
from masis.errors import Conflict, InputError, UnknownRecord
from masis.schema.actor import Actor
from masis.schema.base import Record
from masis.schema.case import Evidence
from masis.schema.preference import (
    LONGEST_REASON,
    PairVerdict,
    PreferenceDecision,
    PreferenceEntry,
    PreferenceVerdict,
    seed_of_sides,
    swaps_sides,
)
from masis.schema.team import QueuePolicy
from masis.services.access import Service, may_require, requires
from masis.services.reviews import name_of
from masis.store.reviews.preferences import AnswerOfSystem, StoredPreference
from masis.trust.agreement import AgreementEstimate, ReviewerAgreement, measure_agreement, share
from masis.trust.paired import (
    BradleyTerry,
    Comparison,
    Outcome,
    WinRate,
    fit_bradley_terry,
    win_rates,
)

DECIDE = "decide which of two answers is better"
SEE_EVERYONES = "see everyone's preferences before deciding"
EXPORT = "export preferences"

PREFERENCE_FORMATS = ("pairs", "pairs-openai")
"""The export formats that preferences have too (``datasets/exports/formats.toml``)."""

ROWS_PER_PAGE = 50

_CATEGORIES: tuple[PairVerdict, ...] = ("first", "equal", "second", "both_bad")
_OUTCOMES: dict[PairVerdict, Outcome] = {
    "first": "first",
    "second": "second",
    "equal": "tie",
    "both_bad": "tie",
}
"""Of two bad answers neither is preferred, so they count as a tie."""


class BlindAnswer(Record):
    """One of two answers, without anything that names its system.

    The audit's issues aren't part of it under any policy: a mark under an answer would decide the
    preference, and people's preferences couldn't be compared with the audit any more.
    """

    answer: str
    evidence: tuple[Evidence, ...]


class PreferenceProgress(Record):
    """How many pairs a reviewer has decided, and how many there are."""

    decided: int
    total: int


class PreferenceTask(Record):
    """A pair to decide. ``pair`` names it and says nothing about systems, cases or sides."""

    pair: str
    question: str
    left: BlindAnswer
    right: BlindAnswer
    progress: PreferenceProgress


class NewPreference(Record):
    """A verdict on a pair. ``token`` makes a repeated submission harmless."""

    pair: str
    verdict: PreferenceVerdict
    reason: str = Field(default="", max_length=LONGEST_REASON)
    token: str | None = Field(default=None, max_length=200)


class RecordedPreference(Record):
    """An entry of the preference log as its reviewer may see it: without cases and systems.

    ``undone`` is the verdict that an undo took back.
    """

    id: str
    at: str
    kind: Literal["preference", "undo"]
    verdict: PreferenceVerdict | None
    pair: str
    progress: PreferenceProgress
    undone: PreferenceVerdict | None = None


class PreferenceRow(Record):
    """One verdict with the names of the systems; ``verdict`` is regardless of the sides."""

    entry: str
    at: str
    reviewer: str
    query: str
    first_system: str
    second_system: str
    first_case: str
    second_case: str
    verdict: PairVerdict
    left_case: str
    reason: str


class PreferencePage(Record):
    """One page of verdicts and the number of all that match."""

    rows: tuple[PreferenceRow, ...]
    total: int


class PreferenceResults(NamedTuple):
    """What people prefer.

    Attributes:
        verdicts: The verdicts that the figures are computed from.
        questions: Their questions.
        reviewers: The verdicts of each reviewer.
        win_rates: For each pair of systems.
        strengths: The systems' strengths; with two systems they say no more than the win rate.
        agreement: Of reviewers who decided the same pairs; None if fewer than two did.
        left: How often the answer on the left was preferred, if one was.
        both_bad: How often both answers were bad.
        disputed: The pairs on which reviewers differ.

    """

    verdicts: int
    questions: int
    reviewers: dict[str, int]
    win_rates: list[WinRate]
    strengths: BradleyTerry
    agreement: ReviewerAgreement | None
    left: AgreementEstimate
    both_bad: AgreementEstimate
    disputed: int


class PreferenceExport(NamedTuple):
    """Rows of preference pairs, and how many pairs gave none, by the reason."""

    rows: list[Row]
    left_out: dict[str, int]


class _PreferredAnswer:
    """A pair with a preferred answer, with the fields that the formats of pairs read."""

    def __init__(self, fields: Row) -> None:
        self._fields = fields

    def get(self, name: str) -> Any:
        """Return a field by its name; JMESPath calls this method on objects."""
        return self._fields.get(name)


class PreferenceService(Service):
    """The use cases of preferences between two answers."""

    @requires("decide", DECIDE)
    def next(self, actor: Actor) -> PreferenceTask | None:
        """Return the first pair that this reviewer hasn't decided, or None if there is none.

        Raises:
            InputError: The actor has no name.

        """
        reviewer, store = name_of(actor), self._store.preferences
        question = store.next_question(reviewer)
        if question is None:
            return None
        decided = store.decided_pairs(reviewer, question)
        for first, second in combinations(store.answers(question), 2):
            if frozenset((first.system, second.system)) not in decided:
                return self._task(actor, question, first, second)
        return None

    @requires("decide", DECIDE)
    def get(self, actor: Actor, pair: str) -> PreferenceTask:
        """Return a pair by its name, whether it's decided or not.

        Raises:
            UnknownRecord: There is no such pair for this reviewer.
            InputError: The actor has no name.

        """
        return self._task(actor, *self._find_pair(name_of(actor), pair))

    @requires("decide", DECIDE)
    def decide(self, actor: Actor, given: NewPreference) -> RecordedPreference:
        """Record which of two answers is better.

        Raises:
            UnknownRecord: There is no such pair for this reviewer.
            Conflict: The reviewer has decided the pair already.
            InputError: The actor has no name.
            NotAllowed: The actor's role doesn't allow it.

        """
        reviewer = name_of(actor)
        _, first, second = self._find_pair(reviewer, given.pair)
        seed = seed_of_sides(reviewer, first.case_id, second.case_id)
        left, right = (second, first) if swaps_sides(seed) else (first, second)
        entry = self._store.preference_log.append(
            PreferenceDecision(
                reviewer=reviewer,
                left_case=left.case_id,
                right_case=right.case_id,
                seed=seed,
                verdict=given.verdict,
                reason=given.reason.strip(),
                token=given.token,
                versions={"app": version.APP},
            )
        )
        return self._describe_entry(entry, given.pair)

    @requires("decide", DECIDE)
    def undo(self, actor: Actor) -> RecordedPreference:
        """Undo the reviewer's newest verdict, with a further entry; its pair is open again.

        Raises:
            Conflict: The reviewer has no verdict to undo.
            InputError: The actor has no name.

        """
        reviewer = name_of(actor)
        with self._store.transaction():
            newest = self._store.preference_log.newest_of(reviewer)
            if newest is None or newest.decision is None:
                raise Conflict("you have no preference to undo.")
            entry = self._store.preference_log.append(
                PreferenceDecision(
                    kind="undo",
                    reviewer=reviewer,
                    left_case=newest.decision.left_case,
                    right_case=newest.decision.right_case,
                    undoes=newest.id,
                    versions={"app": version.APP},
                )
            )
        recorded = self._describe_entry(entry, self._pair_name(newest.decision))
        return recorded.model_copy(update={"undone": newest.decision.verdict})

    @requires("read")
    def hides_system(self, actor: Actor, case_id: str) -> bool:
        """Return whether the policy hides which system wrote an answer from this person.

        It does until they have decided every pair of the question. People who may not decide see
        all names, as they see all verdicts.

        Raises:
            UnknownRecord: There is no such case.

        """
        policy = self._store.team.in_force(QueuePolicy)
        if policy.systems == "always" or not self.access.allows(actor, "decide"):
            return False
        question = self._store.preferences.question_of(case_id)
        systems = [answer.system for answer in self._store.preferences.answers(question)]
        decided = self._store.preferences.decided_pairs(actor.name, question)
        return any(frozenset(pair) not in decided for pair in combinations(systems, 2))

    @requires("read")
    def progress(self, actor: Actor) -> PreferenceProgress:
        """Return how many pairs this reviewer has decided, and how many there are."""
        decided, total = self._store.preferences.count(actor.name)
        return PreferenceProgress(decided=decided, total=total)

    @requires("read")
    def position(self, actor: Actor) -> int:
        """Return the length of the preference log, which changes whenever results may change."""
        return self._store.preference_log.head().length

    @requires("read")
    @may_require("oversee", SEE_EVERYONES)
    def results(self, actor: Actor, *, everyone: bool = False) -> PreferenceResults:
        """Return win rates, strengths and agreement.

        Args:
            actor: The person who looks. People who may decide see the verdicts on questions of
                which they decided every pair; others see all.
            everyone: Whether to include the other verdicts too.

        Raises:
            NotAllowed: The actor isn't a lead and asks for everyone's verdicts.

        """
        rows = self._visible(actor, everyone=everyone)
        chosen_left = [
            (row.verdict == "first") == row.is_first_left
            for row in rows
            if _OUTCOMES[row.verdict] != "tie"
        ]
        comparisons = [
            Comparison(
                row.first_system, row.second_system, _OUTCOMES[row.verdict], str(row.question)
            )
            for row in rows
        ]
        questions = [row.question for row in rows]
        decisive = [row.question for row in rows if _OUTCOMES[row.verdict] != "tie"]
        return PreferenceResults(
            verdicts=len(rows),
            questions=len(set(questions)),
            reviewers=dict(sorted(Counter(row.reviewer for row in rows).items())),
            win_rates=win_rates(comparisons),
            strengths=fit_bradley_terry(comparisons),
            agreement=_measure_reviewers(rows),
            left=share(chosen_left, decisive),
            both_bad=share([row.verdict == "both_bad" for row in rows], questions),
            disputed=sum(_is_disputed(verdicts) for verdicts in _by_pair(rows).values()),
        )

    @requires("read")
    @may_require("oversee", SEE_EVERYONES)
    def find(
        self,
        actor: Actor,
        *,
        systems: Sequence[str] = (),
        disputed: bool = False,
        everyone: bool = False,
        page: int = 1,
    ) -> PreferencePage:
        """Return one page of verdicts with the names of the systems, in the order of questions.

        Args:
            actor: The person who looks, as in ``results``.
            systems: Only verdicts between these systems; all of them if empty.
            disputed: Only verdicts on pairs on which reviewers differ.
            everyone: As in ``results``.
            page: The number of the page, from 1.

        Raises:
            NotAllowed: The actor isn't a lead and asks for everyone's verdicts.

        """
        rows = self._visible(actor, everyone=everyone)
        if systems:
            rows = [row for row in rows if {row.first_system, row.second_system} <= set(systems)]
        if disputed:
            differing = {pair for pair, same in _by_pair(rows).items() if _is_disputed(same)}
            rows = [row for row in rows if (row.first_case, row.second_case) in differing]
        shown = rows[(max(1, page) - 1) * ROWS_PER_PAGE :][:ROWS_PER_PAGE]
        texts = self._store.preferences.texts(tuple(row.entry for row in shown))
        return PreferencePage(
            rows=tuple(
                PreferenceRow(
                    entry=row.entry,
                    at=texts[row.entry].at,
                    reviewer=row.reviewer,
                    query=texts[row.entry].query,
                    first_system=row.first_system,
                    second_system=row.second_system,
                    first_case=row.first_case,
                    second_case=row.second_case,
                    verdict=row.verdict,
                    left_case=row.first_case if row.is_first_left else row.second_case,
                    reason=texts[row.entry].reason,
                )
                for row in shown
            ),
            total=len(rows),
        )

    @requires("export", EXPORT)
    def export(self, actor: Actor, format_name: str = "pairs") -> PreferenceExport:
        """Return preferred and rejected answers for training, one row for each pair.

        The answer that more reviewers prefer is the preferred one. The rows don't name a system.

        Raises:
            InputError: Preferences don't have this format.
            NotAllowed: The actor's role doesn't allow it.

        """
        if format_name not in PREFERENCE_FORMATS:
            raise InputError(
                f"{format_name!r} isn't a format of preferences",
                hint=f"Use {' or '.join(PREFERENCE_FORMATS)}.",
                field="format",
            )
        rows, left_out = list[Row](), Counter[str]()
        for (first, second), same in _by_pair(self._store.preferences.verdicts(None)).items():
            lead = sum((row.verdict == "first") - (row.verdict == "second") for row in same)
            if lead == 0:
                both_bad = all(row.verdict == "both_bad" for row in same)
                left_out["both answers are bad" if both_bad else "no answer is preferred"] += 1
                continue
            preferred, rejected = (first, second) if lead > 0 else (second, first)
            made = export_formats()[format_name].rows(self._pair_to_export(preferred, rejected))
            if isinstance(made, str):
                left_out[made] += 1
            else:
                rows += made
        return PreferenceExport(rows, dict(left_out))

    def _pair_to_export(self, preferred: str, rejected: str) -> Any:
        case, other = self._store.cases.get(preferred), self._store.cases.get(rejected)
        return _PreferredAnswer(
            {
                "asked": asked_turns(case.to_json_dict()),
                "standing": case.answer,
                "rejected": other.answer,
                "person_let_stand": case.answer,
                "differs": case.answer != other.answer,
            }
        )

    def _visible(self, actor: Actor, *, everyone: bool) -> list[StoredPreference]:
        if everyone:
            self.access.require(actor, "oversee", SEE_EVERYONES)
        sees_all = everyone or not self.access.allows(actor, "decide")
        return self._store.preferences.verdicts(None if sees_all else actor.name)

    def _task(
        self, actor: Actor, question: int, first: AnswerOfSystem, second: AnswerOfSystem
    ) -> PreferenceTask:
        seed = seed_of_sides(actor.name, first.case_id, second.case_id)
        left, right = (second, first) if swaps_sides(seed) else (first, second)
        return PreferenceTask(
            pair=_name_pair(actor.name, question, first, second),
            question=self._store.cases.get(first.case_id).query,
            left=self._show(left),
            right=self._show(right),
            progress=self.progress(actor),
        )

    def _show(self, answer: AnswerOfSystem) -> BlindAnswer:
        case = self._store.cases.get(answer.case_id)
        return BlindAnswer(answer=case.answer or "", evidence=tuple(case.evidence))

    def _find_pair(self, reviewer: str, pair: str) -> tuple[int, AnswerOfSystem, AnswerOfSystem]:
        number = pair.partition("-")[0]
        # SQLite numbers have at most 19 digits.
        if number.isascii() and number.isdecimal() and len(number) < 19:
            for first, second in combinations(self._store.preferences.answers(int(number)), 2):
                if _name_pair(reviewer, int(number), first, second) == pair:
                    return int(number), first, second
        raise UnknownRecord(
            "there is no such pair for you. `masis preference list` shows the next."
        )

    def _pair_name(self, decision: PreferenceDecision) -> str:
        question = self._store.preferences.question_of(decision.left_case)
        answers = {answer.case_id: answer for answer in self._store.preferences.answers(question)}
        pair = [answers.get(decision.left_case), answers.get(decision.right_case)]
        known = sorted((answer for answer in pair if answer), key=lambda answer: answer.seq)
        if len(known) < 2:  # an answer has a newer version, so the pair is no longer open
            return ""
        return _name_pair(decision.reviewer, question, *known)

    def _describe_entry(self, entry: PreferenceEntry, pair: str) -> RecordedPreference:
        decision = entry.decision
        assert decision is not None  # it was made just now
        done, total = self._store.preferences.count(decision.reviewer)
        return RecordedPreference(
            id=entry.id,
            at=entry.at,
            kind="undo" if decision.kind == "undo" else "preference",
            verdict=decision.verdict,
            pair=pair,
            progress=PreferenceProgress(decided=done, total=total),
        )


def _name_pair(reviewer: str, question: int, first: AnswerOfSystem, second: AnswerOfSystem) -> str:
    """Return a name for a pair that doesn't reveal cases, systems or the order of their import."""
    text = "\n".join((reviewer, first.case_id, second.case_id))
    return f"{question}-{hashlib.sha256(text.encode('utf-8', 'surrogatepass')).hexdigest()[:16]}"


def _by_pair(rows: Sequence[StoredPreference]) -> dict[tuple[str, str], list[StoredPreference]]:
    by_pair: dict[tuple[str, str], list[StoredPreference]] = defaultdict(list)
    for row in rows:
        by_pair[row.first_case, row.second_case].append(row)
    return by_pair


def _is_disputed(verdicts: Sequence[StoredPreference]) -> bool:
    return len({row.verdict for row in verdicts}) > 1


def _measure_reviewers(rows: Sequence[StoredPreference]) -> ReviewerAgreement | None:
    """Return the agreement of reviewers on pairs that at least two of them decided."""
    pairs = [same for same in _by_pair(rows).values() if len(same) > 1]
    if not pairs:
        return None
    names = sorted({row.reviewer for same in pairs for row in same})
    column = {name: number for number, name in enumerate(names)}
    ratings = np.full((len(pairs), len(names)), -1, dtype=np.int64)
    for index, same in enumerate(pairs):
        for row in same:
            ratings[index, column[row.reviewer]] = _CATEGORIES.index(row.verdict)
    return measure_agreement(ratings, [same[0].question for same in pairs], _CATEGORIES)

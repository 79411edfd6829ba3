"""Planted faults: copies of correct answers with one known fault each, to measure who finds them.

Until all decisions on a copy are made, it looks like any other case to everyone. Afterwards it is
marked and counts toward the recall of the audit and its reviewers. Copies are left out of all other
figures, labels and exports.
"""

from __future__ import annotations

import random
import re
import secrets
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from masis.errors import InputError, Removed
from masis.offline.faults.planting import FaultyAnswer, plant_fault
from masis.schema.actor import Actor
from masis.schema.case import Case, GivenCitation
from masis.schema.faults import FAULT_KINDS, FaultKind, PlantedFault
from masis.schema.reading import content_id
from masis.services.access import Service, may_require, requires
from masis.services.records import CaseFilter
from masis.services.reviews import ReviewService, name_of
from masis.store import Store
from masis.store.reviews.planted import PlantedCopy, PlantedDecision
from masis.trust.faults import AuditOutcome, Recall, audit_outcome, recall_of, reviewer_found

MOST_PLANTED = 200
"""Maximum number of copies that are planted at once.

In a queue full of copies, reviewers would notice them and read more carefully than usual.
"""

WITHDRAWN = "A copy with a planted fault, withdrawn before it was decided"
"""The reason in the log entry of a withdrawn copy."""

_PLANT = "add copies with planted faults to the queue, count or withdraw them"


class Planting(NamedTuple):
    """The number of planted copies by kind, of sound answers, and of refused answers by reason."""

    planted: Mapping[FaultKind, int]
    seed: int
    sound: int
    refused: Mapping[str, int]

    @property
    def total(self) -> int:
        """The number of planted copies."""
        return sum(self.planted.values())


class PlantedCounts(NamedTuple):
    """The number of planted copies by progress.

    ``open`` copies wait for a first decision, and ``started`` ones for further decisions.
    """

    sound: int
    open: int
    started: int
    decided: int
    withdrawn: int


class AuditRecall(NamedTuple):
    """The share of planted faults that the audit flagged, and what it did with the others."""

    recall: Recall
    accepted: int
    left_to_people: int


class ReviewerRecall(NamedTuple):
    """The share of planted faults that one reviewer found, or all if ``reviewer`` is "".

    ``escalated`` copies are left out. ``knew_source`` counts the copies whose original the reviewer
    had decided before.
    """

    reviewer: str
    recall: Recall
    escalated: int
    knew_source: int


class DecidedCopy(NamedTuple):
    """A revealed copy with the audit's result, and the reviewers who found or missed its fault."""

    copy: PlantedCopy
    audit: AuditOutcome | None
    found_by: tuple[str, ...]
    missed_by: tuple[str, ...]


class RecallReport(NamedTuple):
    """The recall of the audit and the reviewers.

    ``audit`` is None if the person may not see it. ``reviewers`` has the person's own figures, or
    all for a lead, starting with the total.
    """

    audit: AuditRecall | None
    reviewers: tuple[ReviewerRecall, ...]
    decided: tuple[DecidedCopy, ...]


class PlantedService(Service):
    """The use cases of planted faults."""

    @requires("oversee", _PLANT)
    def count_copies(self, actor: Actor) -> PlantedCounts:
        """Count the copies by progress, and the sound answers that further copies can be made of.

        Raises:
            NotAllowed: The actor isn't a lead.

        """
        copies = self._store.planted.copies()
        live = [copy for copy in copies if copy.state not in ("planted", "superseded")]
        return PlantedCounts(
            sound=len(self._store.planted.sound()),
            open=sum(not copy.started for copy in live),
            started=sum(copy.started for copy in live),
            decided=sum(copy.decided for copy in copies),
            withdrawn=sum(copy.withdrawn_at is not None for copy in copies),
        )

    @requires("oversee", _PLANT)
    def plant(
        self,
        actor: Actor,
        count: int,
        kinds: Sequence[FaultKind] = FAULT_KINDS,
        *,
        case_filter: CaseFilter | None = None,
        seed: int | None = None,
        on_case: Callable[[int, int], None] | None = None,
    ) -> Planting:
        """Plant copies of sound answers, each with one certain fault, among the waiting cases.

        An answer is sound if a person approved it unchanged; each one gives one copy. The copies
        are new cases that are audited like others. All of them are stored in one transaction.

        Args:
            actor: A lead.
            count: The number of copies; fewer if there aren't enough sound answers.
            kinds: The kinds of faults, used as evenly as the answers allow.
            case_filter: The sound answers that may be copied; all by default.
            seed: The seed for answers, places and words. It's random by default, and recorded.
            on_case: Called with the number of copies made and the number of answers tried.

        Raises:
            NotAllowed: The actor isn't a lead.
            InputError: The actor has no name, the count is out of range, a kind is unknown, or no
                answer is sound.

        """
        by = name_of(actor)
        if not 1 <= count <= MOST_PLANTED:
            raise InputError(
                f"you can't plant {count} copies at once",
                hint=f"Choose a number from 1 to {MOST_PLANTED}.",
            )
        if not kinds or set(kinds) - set(FAULT_KINDS):
            raise InputError(
                "a kind of fault is missing or unknown",
                hint=f"Use one or more of {', '.join(FAULT_KINDS)}.",
                field="kinds",
            )
        seed = secrets.randbits(32) if seed is None else seed
        draw = random.Random(f"planted:{seed}")
        sound = self._sound_ids(case_filter)
        if not sound:
            raise InputError(
                "there are no correct answers to copy",
                hint="Approve some answers unchanged first. Copies are made of them.",
            )
        draw.shuffle(sound)
        planted: Counter[FaultKind] = Counter()
        refused: Counter[str] = Counter()
        copies: list[str] = []
        with self._store.transaction():
            for tried, case_id in enumerate(sound, 1):
                if len(copies) == count:
                    break
                case = self._store.cases.get(case_id)
                # Try the rarest kind first. Ties are in random order, because sorting is stable.
                order = sorted(draw.sample(list(kinds), len(kinds)), key=lambda kind: planted[kind])
                faulty = _first_fault(case, order, seed)
                if isinstance(faulty, FaultyAnswer):
                    copy = copy_of(case, faulty, unused_id(self._store, case, faulty.answer, draw))
                    self._store.planted.add(copy, faulty.fault, case.id, by)
                    planted[faulty.fault.kind] += 1
                    copies.append(copy.id)
                else:
                    refused[faulty] += 1
                if on_case is not None:
                    on_case(len(copies), tried)
            if copies:
                self._store.planted.note(by, "planted", copies, seed)
        return Planting(dict(planted), seed, len(sound), dict(refused))

    @requires("oversee", _PLANT)
    def withdraw(self, actor: Actor) -> int:
        """Withdraw every undecided copy, permanently remove its texts, and return the number.

        A copy that is being audited isn't withdrawn.

        Raises:
            NotAllowed: The actor isn't a lead.
            InputError: The actor has no name.

        """
        by, withdrawn = name_of(actor), list[str]()
        for copy in self._store.planted.copies():
            if copy.state in ("planted", "running", "superseded") or copy.started:
                continue
            # one transaction for each copy, so that other writers needn't wait for all of them
            with self._store.transaction():
                self._store.redactions.redact_case(copy.case_id, by=by, reason=WITHDRAWN)
                self._store.planted.mark_withdrawn(copy.case_id)
            for lease in self._store.team.work(copy.case_id).leases:
                self._store.team.release(copy.case_id, lease.reviewer)
            withdrawn.append(copy.case_id)
        if withdrawn:
            self._store.planted.note(by, "withdrawn", withdrawn)
        return len(withdrawn)

    @requires("read")
    @may_require("oversee", "see how many planted faults others found")
    def recall(self, actor: Actor) -> RecallReport:
        """Return how many planted faults the actor found, or for a lead everyone and the audit.

        For people, only copies with all decisions count; for the audit, all audited copies.
        Decisions that the demo simulated don't count.
        """
        lead = self.access.allows(actor, "oversee")
        copies = {copy.case_id: copy for copy in self._store.planted.copies()}
        mine = [
            decision
            for decision in self._store.planted.decisions()
            if not decision.simulated and (lead or decision.reviewer == actor.name)
        ]
        names = sorted({decision.reviewer for decision in mine})
        reviewers = [_reviewer_recall(name, mine, copies) for name in names]
        if lead and len(names) > 1:
            reviewers.insert(0, _reviewer_recall("", mine, copies))
        # Only the newest version of a copy counts.
        measured = [
            copy
            for copy in copies.values()
            if copy.withdrawn_at is None and copy.state != "superseded"
        ]
        outcomes = {copy.case_id: self._audit_outcome(copy) for copy in measured}
        decided_ids = {decision.case_id for decision in mine}
        shown = [
            copy
            for copy in copies.values()
            if copy.decided and (lead or copy.case_id in decided_ids)
        ]
        return RecallReport(
            _audit_recall(copies, outcomes) if lead else None,
            tuple(reviewers),
            tuple(_with_finders(copy, outcomes[copy.case_id], mine) for copy in shown),
        )

    def _audit_outcome(self, copy: PlantedCopy) -> AuditOutcome | None:
        try:
            return (
                audit_outcome(self._store.runs.get(copy.run_id), copy.fault)
                if copy.run_id
                else None
            )
        except Removed:
            return None

    def _sound_ids(self, case_filter: CaseFilter | None) -> list[str]:
        """Return the ids of sound answers: original answers that a person approved."""
        reviews = ReviewService(self._store, self.access)
        sound = []
        for case_id in self._store.planted.sound(case_filter):
            outcome = reviews.outcome(case_id)
            case = self._store.cases.get(case_id)
            if outcome is not None and case.answer is not None and outcome.answer == case.answer:
                sound.append(case_id)
        return sound


# Copies


def _first_fault(case: Case, kinds: Sequence[FaultKind], seed: int) -> FaultyAnswer | str:
    """Return the first fault of these kinds that can be planted in a case, or why none can be."""
    reason = "it has no answer"
    for kind in kinds if case.answer else ():
        faulty = plant_fault(case.answer or "", case.evidence, kind, seed=seed, question=case.query)
        if isinstance(faulty, FaultyAnswer):
            return faulty
        reason = faulty.reason
    return reason if len(kinds) == 1 else "it has no place for a fault of these kinds"


def copy_of(case: Case, faulty: FaultyAnswer, case_id: str) -> Case:
    """Return the copy of a case with a faulty answer. Its citations move with their words."""
    moved = [_move_citation(citation, faulty.fault) for citation in case.given_citations or ()]
    return copy_with_answer(case, faulty.answer, case_id, moved)


def copy_with_answer(
    case: Case, answer: str, case_id: str, citations: Iterable[GivenCitation]
) -> Case:
    """Return the copy of a case with this answer, without fields that could give it away.

    Labels, the model's reasoning, and the turn of the conversation that holds the answer are left
    out, because they belong to the case's own answer.

    Args:
        case: The case to copy.
        answer: The answer of the copy.
        case_id: The id of the copy.
        citations: The citations attached to the copy's answer, if the case has any.

    """
    left_out = {"labels", "supersedes", "reasoning", "reasoning_steps"}
    record = {name: value for name, value in case.to_json_dict().items() if name not in left_out}
    # A file may repeat the answer under a key of its own, which would reveal the copy.
    record = {name: value for name, value in record.items() if value != case.answer}
    record |= {"id": case_id, "answer": answer}
    if case.given_citations:
        record["citations"] = [
            citation.model_dump(mode="json", exclude_unset=True) for citation in citations
        ]
    if isinstance(case.messages, tuple) and case.messages:
        turns = list(case.to_json_dict()["messages"])  # type: ignore[arg-type]
        last = turns[-1]
        said = str(last.get("content", "")) if isinstance(last, Mapping) else ""
        if said.strip() == (case.answer or "").strip():
            turns.pop()
        record["messages"] = turns
    return Case.from_stored(record)


def _move_citation(citation: GivenCitation, fault: PlantedFault) -> GivenCitation:
    """Return a citation with its place in the changed answer."""
    shift = fault.end - fault.original_end

    def place(offset: int) -> int:
        return offset + shift if offset >= fault.original_end else min(offset, fault.end)

    return citation.model_copy(update={"start": place(citation.start), "end": place(citation.end)})


def unused_id(store: Store, case: Case, answer: str, draw: random.Random) -> str:
    """Return an unused id for a copy of a case that looks like the case's own (``similar_ids``)."""
    taken = store.planted.taken_ids
    for candidate in similar_ids(case, answer, taken, draw):
        if candidate not in taken(candidate):
            return candidate
    raise AssertionError("the last candidates are random")


_NUMBER = re.compile(r"\d+")
# At least eight hexadecimal digits or hyphens that stand alone, such as a UUID.
_HEXADECIMAL = re.compile(r"(?<![0-9a-z])[0-9a-f-]{8,}(?![0-9a-z])")


def similar_ids(
    case: Case, answer: str, taken: Callable[[str], Sequence[str]], draw: random.Random
) -> Iterator[str]:
    """Yield ids for a copy that look like its source's id, so that the id doesn't reveal it.

    If ids count up it is the next number, or else the same form with other digits.

    Args:
        case: The source.
        answer: The answer of the copy.
        taken: Returns the ids in the database that begin with a text.
        draw: The source of randomness.

    """
    if case.id == content_id(case.to_json_dict()):
        yield content_id({**case.to_json_dict(), "answer": answer})
    if found := _HEXADECIMAL.search(case.id):
        while any(character in "abcdef" for character in found.group()):
            drawn = "".join(
                draw.choice("0123456789abcdef") if character != "-" else character
                for character in found.group()
            )
            yield case.id[: found.start()] + drawn + case.id[found.end() :]
    numbers = list(_NUMBER.finditer(case.id))
    if numbers:
        last = numbers[-1]
        beginning, width = case.id[: last.start()], len(last.group())
        used = [
            int(match.group())
            for taken_id in taken(beginning)
            if (match := _NUMBER.match(taken_id, len(beginning)))
        ]
        number = max(used, default=0)
        while True:
            number += 1
            yield f"{beginning}{number:0{width}d}{case.id[last.end() :]}"
    while True:
        yield content_id({"query": case.query, "answer": answer, "evidence": draw.random()})


# Figures


def _reviewer_recall(
    name: str, decisions: Sequence[PlantedDecision], copies: Mapping[str, PlantedCopy]
) -> ReviewerRecall:
    own = [decision for decision in decisions if name in ("", decision.reviewer)]
    hits = [
        (copies[logged.case_id], reviewer_found(logged.decision, copies[logged.case_id].fault))
        for logged in own
    ]
    return ReviewerRecall(
        name,
        recall_of((copy.kind, hit) for copy, hit in hits if hit is not None),
        sum(hit is None for _, hit in hits),
        sum(logged.knew_source for logged in own),
    )


def _audit_recall(
    copies: Mapping[str, PlantedCopy], outcomes: Mapping[str, AuditOutcome | None]
) -> AuditRecall:
    known = {case_id: outcome for case_id, outcome in outcomes.items() if outcome is not None}
    counted = Counter(known.values())
    hits = ((copies[case_id].kind, outcome == "flagged") for case_id, outcome in known.items())
    return AuditRecall(recall_of(hits), counted["accepted"], counted["left_to_people"])


def _with_finders(
    copy: PlantedCopy, audit: AuditOutcome | None, decisions: Sequence[PlantedDecision]
) -> DecidedCopy:
    own = [
        (logged.reviewer, reviewer_found(logged.decision, copy.fault))
        for logged in decisions
        if logged.case_id == copy.case_id
    ]
    found_by = tuple(name for name, hit in own if hit)
    return DecidedCopy(copy, audit, found_by, tuple(name for name, hit in own if hit is False))

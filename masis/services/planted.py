"""Planted faults: a lead mixes copies of sound answers with one certain fault into the queue, to
see who finds it.

Until all decisions on a copy are made nothing shows that it is one, to nobody. From then on it is
marked, counts towards the recall of the audit and of its reviewers, and is a case in no other
figure, label or export.
"""

from __future__ import annotations

import random
import re
import secrets
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from masis.errors import InputError, Removed
from masis.offline.faults.planting import FaultyAnswer, plant_fault
from masis.schema.actor import Actor
from masis.schema.case import Case, GivenCitation
from masis.schema.faults import FAULT_KINDS, FaultKind, PlantedFault
from masis.schema.reading import content_id
from masis.services.access import Service
from masis.services.records import CaseFilter
from masis.services.reviews import ReviewService, name_of
from masis.store.reviews.planted import PlantedCopy, PlantedDecision
from masis.trust.faults import AuditOutcome, Recall, audit_outcome, recall_of, reviewer_found

MOST_PLANTED = 200
"""Copies that are planted at once: a queue of them measures nobody's attention to cases."""

WITHDRAWN = "A copy with a planted fault, withdrawn before anybody decided it"
"""The reason in the log's entry."""


class Planting(NamedTuple):
    """What an act planted: how many by kind, from how many sound answers, and why others gave none,
    with how many.
    """

    planted: Mapping[FaultKind, int]
    seed: int
    sound: int
    refused: Mapping[str, int]

    @property
    def total(self) -> int:
        """How many copies were planted."""
        return sum(self.planted.values())


class PlantedCounts(NamedTuple):
    """How far planted copies have come: ``open`` wait for a decision that nobody has begun,
    ``started`` for others'.
    """

    sound: int
    open: int
    started: int
    decided: int
    withdrawn: int


class AuditRecall(NamedTuple):
    """How many planted faults the audit flagged, and how many of the others it accepted or left to
    people.
    """

    recall: Recall
    accepted: int
    left_to_people: int


class ReviewerRecall(NamedTuple):
    """How many planted faults one reviewer found, or all of them together ("" for a name).

    ``escalated`` copies are left out; ``knew_source`` counts those whose original they had decided
    before.
    """

    reviewer: str
    recall: Recall
    escalated: int
    knew_source: int


class DecidedCopy(NamedTuple):
    """A copy that is no secret any more, what the audit made of it, and who found its fault."""

    copy: PlantedCopy
    audit: AuditOutcome | None
    found_by: tuple[str, ...]
    missed_by: tuple[str, ...]


class RecallReport(NamedTuple):
    """The recall of the audit (None for who may not see it) and of reviewers.

    ``reviewers`` are the person's own figures, for a lead those of all, the first of all together.
    """

    audit: AuditRecall | None
    reviewers: tuple[ReviewerRecall, ...]
    decided: tuple[DecidedCopy, ...]


class PlantedService(Service):
    """The use cases of planted faults."""

    def count_copies(self, actor: Actor) -> PlantedCounts:
        """Count the copies by how far they have come, and the sound answers that more can be made
        of.

        Raises NotAllowed.
        """
        self._access.require(actor, "oversee")
        copies = self._store.planted.copies()
        live = [copy for copy in copies if copy.state not in ("planted", "superseded")]
        return PlantedCounts(
            sound=len(self._store.planted.sound()),
            open=sum(not copy.started for copy in live),
            started=sum(copy.started for copy in live),
            decided=sum(copy.decided for copy in copies),
            withdrawn=sum(copy.withdrawn_at is not None for copy in copies),
        )

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
        """Plant copies of sound answers, each with one certain fault, among the cases that wait.

        An answer is sound where a person approved it as it is, and each gives one copy. The copies
        are new cases, to be audited as others are. All of them are stored, or none.

        Args:
            actor: A lead.
            count: How many copies; fewer are planted where the sound answers give no more.
            kinds: What may be changed, as evenly as the answers allow.
            case_filter: Which sound answers may be copied; all where None.
            seed: Draws answers, places and words; a random one where None, recorded with the act.
            on_case: Hears how many copies are made and how many answers were tried.

        Raises:
            NotAllowed: The actor's role doesn't grant it.
            InputError: The actor has no name, the count is out of range, a kind is unknown, or no
                answer is sound.

        """
        self._access.require(actor, "oversee")
        by = name_of(actor)
        if not 1 <= count <= MOST_PLANTED:
            raise InputError(
                f"{count} copies can't be planted at once", hint=f"Plant 1 to {MOST_PLANTED}."
            )
        if not kinds or set(kinds) - set(FAULT_KINDS):
            raise InputError(
                "name kinds of faults", hint=f"There are: {', '.join(FAULT_KINDS)}.", field="kinds"
            )
        seed = secrets.randbits(32) if seed is None else seed
        draw = random.Random(f"planted:{seed}")
        sound = self._sound_ids(case_filter)
        if not sound:
            raise InputError(
                "there is no sound answer to copy",
                hint=(
                    "Approve some first: a copy is made of an answer that a person approved as"
                    " it is."
                ),
            )
        draw.shuffle(sound)
        planted: Counter[FaultKind] = Counter()
        refused: Counter[str] = Counter()
        made: list[str] = []
        with self._store.transaction():
            for tried, case_id in enumerate(sound, 1):
                if len(made) == count:
                    break
                case = self._store.cases.get(case_id)
                # what is rarest so far comes first; of equals, one by chance
                order = sorted(draw.sample(list(kinds), len(kinds)), key=lambda kind: planted[kind])
                found = _first_fault(case, order, seed)
                if isinstance(found, FaultyAnswer):
                    copy = copy_of(case, found, self._unused_id(case, found.answer, draw))
                    self._store.planted.add(copy, found.fault, case.id, by)
                    planted[found.fault.kind] += 1
                    made.append(copy.id)
                else:
                    refused[found] += 1
                if on_case is not None:
                    on_case(len(made), tried)
            if made:
                self._store.planted.note(by, "planted", made, seed)
        return Planting(dict(planted), seed, len(sound), dict(refused))

    def withdraw(self, actor: Actor) -> int:
        """Take back every copy that nobody has decided; returns how many. Their texts are removed
        for good.

        One that is being audited just now stays. Raises NotAllowed, and InputError where the actor
        has no name.
        """
        self._access.require(actor, "oversee")
        by, done = name_of(actor), list[str]()
        for copy in self._store.planted.copies():
            if copy.state in ("planted", "running", "superseded") or copy.started:
                continue
            with self._store.transaction():
                self._store.redactions.redact_case(copy.case_id, by=by, reason=WITHDRAWN)
                self._store.planted.mark_withdrawn(copy.case_id)
            for lease in self._store.team.work(copy.case_id).leases:
                self._store.team.release(copy.case_id, lease.reviewer)
            done.append(copy.case_id)
        if done:
            self._store.planted.note(by, "withdrawn", done)
        return len(done)

    def recall(self, actor: Actor) -> RecallReport:
        """Return how many planted faults were found: the actor's own figures, for a lead those of
        all and the audit's.

        Only copies whose decisions are all made count for people, and all that were audited for the
        audit. Decisions that the demo simulated are nobody's.
        """
        lead = self._access.allows(actor, "oversee")
        copies = {copy.case_id: copy for copy in self._store.planted.copies()}
        decisions = [each for each in self._store.planted.decisions() if not each.simulated]
        mine = [each for each in decisions if lead or each.reviewer == actor.name]
        names = sorted({each.reviewer for each in mine})
        reviewers = [_reviewer_recall(name, mine, copies) for name in names]
        if lead and len(names) > 1:
            reviewers.insert(0, _reviewer_recall("", mine, copies))
        # of a copy with a newer version the newest one counts
        measured = [
            copy
            for copy in copies.values()
            if copy.withdrawn_at is None and copy.state != "superseded"
        ]
        outcomes = {copy.case_id: self._audit_outcome(copy) for copy in measured}
        shown = [
            copy
            for copy in copies.values()
            if copy.decided and (lead or _is_decided_copy(copy, mine))
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
        """Return the ids of sound answers: approved by a person, the original answer."""
        reviews = ReviewService(self._store, self._access)
        found = []
        for case_id in self._store.planted.sound(case_filter):
            outcome = reviews.outcome(case_id)
            case = self._store.cases.get(case_id)
            if outcome is not None and case.answer is not None and outcome.answer == case.answer:
                found.append(case_id)
        return found

    def _unused_id(self, case: Case, answer: str, draw: random.Random) -> str:
        taken = self._store.planted.taken_ids
        for candidate in similar_ids(case, answer, taken, draw):
            if candidate not in taken(candidate):
                return candidate
        raise AssertionError("the last candidates are random")


# copies


def _first_fault(case: Case, kinds: Sequence[FaultKind], seed: int) -> FaultyAnswer | str:
    """Return the first fault of these kinds that can be planted in a case, or why the last one
    can't be.
    """
    reason = "it has no answer"
    for kind in kinds if case.answer else ():
        found = plant_fault(case.answer or "", case.evidence, kind, seed=seed, question=case.query)
        if isinstance(found, FaultyAnswer):
            return found
        reason = found.reason
    return reason if len(kinds) == 1 else "no fault of these kinds is certain in it"


def copy_of(case: Case, faulty: FaultyAnswer, case_id: str) -> Case:
    """Return the copy of a case with a faulty answer, without what would tell it from others or
    says what is right.

    What came beside the answer is about the sound one: labels, what the model thought, and the turn
    of the conversation that holds the answer are left out. Citations given beside the answer move
    with its words.
    """
    left_out = {"labels", "supersedes", "reasoning", "reasoning_steps"}
    record = {name: value for name, value in case.to_json_dict().items() if name not in left_out}
    record = {name: value for name, value in record.items() if value != case.answer}
    record |= {"id": case_id, "answer": faulty.answer}
    if case.given_citations:
        moved = (_move_citation(each, faulty.fault) for each in case.given_citations)
        record["citations"] = [each.model_dump(mode="json", exclude_unset=True) for each in moved]
    if isinstance(case.messages, tuple) and case.messages:
        turns = list(case.to_json_dict()["messages"])  # type: ignore[arg-type]
        if _says_answer(turns[-1], case):
            turns.pop()
        record["messages"] = turns
    return Case.from_stored(record)


def _says_answer(turn: Any, case: Case) -> bool:
    return (
        isinstance(turn, Mapping)
        and str(turn.get("content", "")).strip() == (case.answer or "").strip()
    )


def _move_citation(citation: GivenCitation, fault: PlantedFault) -> GivenCitation:
    """Return a citation with its place in the altered answer."""
    shift = fault.end - fault.original_end

    def place(offset: int) -> int:
        return offset + shift if offset >= fault.original_end else min(offset, fault.end)

    return citation.model_copy(update={"start": place(citation.start), "end": place(citation.end)})


_NUMBER = re.compile(r"\d+")
_HEXADECIMAL = re.compile(r"(?<![0-9a-z])[0-9a-f-]{8,}(?![0-9a-z])")


def similar_ids(
    case: Case, answer: str, taken: Callable[[str], Sequence[str]], draw: random.Random
) -> Iterator[str]:
    """Yield ids for a copy that look like the id of its source: the next number where ids count,
    else other digits.

    Args:
        case: The source.
        answer: The answer of the copy.
        taken: Returns the ids of the database that begin with a text.
        draw: Draws what is random.

    """
    if case.id == content_id(case.to_json_dict()):
        yield content_id({**case.to_json_dict(), "answer": answer})
    if found := _HEXADECIMAL.search(case.id):
        while any(character in "abcdef" for character in found.group()):
            drawn = "".join(
                draw.choice("0123456789abcdef") if each != "-" else each for each in found.group()
            )
            yield case.id[: found.start()] + drawn + case.id[found.end() :]
    numbers = list(_NUMBER.finditer(case.id))
    if numbers:
        last = numbers[-1]
        beginning, width = case.id[: last.start()], len(last.group())
        used = [
            int(found.group())
            for each in taken(beginning)
            if (found := _NUMBER.match(each, len(beginning)))
        ]
        number = max(used, default=0)
        while True:
            number += 1
            yield f"{beginning}{number:0{width}d}{case.id[last.end() :]}"
    while True:
        yield content_id({"query": case.query, "answer": answer, "evidence": draw.random()})


# figures


def _reviewer_recall(
    name: str, decisions: Sequence[PlantedDecision], copies: Mapping[str, PlantedCopy]
) -> ReviewerRecall:
    own = [each for each in decisions if name in ("", each.reviewer)]
    found = [
        (copies[each.case_id], reviewer_found(each.decision, copies[each.case_id].fault))
        for each in own
    ]
    return ReviewerRecall(
        name,
        recall_of((copy.kind, hit) for copy, hit in found if hit is not None),
        sum(hit is None for _, hit in found),
        sum(each.knew_source for each in own),
    )


def _audit_recall(
    copies: Mapping[str, PlantedCopy], outcomes: Mapping[str, AuditOutcome | None]
) -> AuditRecall:
    known = {case_id: outcome for case_id, outcome in outcomes.items() if outcome is not None}
    counted = Counter(known.values())
    hits = ((copies[case_id].kind, outcome == "flagged") for case_id, outcome in known.items())
    return AuditRecall(recall_of(hits), counted["accepted"], counted["left_to_people"])


def _is_decided_copy(copy: PlantedCopy, decisions: Sequence[PlantedDecision]) -> bool:
    return any(each.case_id == copy.case_id for each in decisions)


def _with_finders(
    copy: PlantedCopy, audit: AuditOutcome | None, decisions: Sequence[PlantedDecision]
) -> DecidedCopy:
    own = [
        (each.reviewer, reviewer_found(each.decision, copy.fault))
        for each in decisions
        if each.case_id == copy.case_id
    ]
    found = tuple(name for name, hit in own if hit)
    return DecidedCopy(copy, audit, found, tuple(name for name, hit in own if hit is False))

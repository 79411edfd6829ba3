"""The causes of disagreements, and the sentences that adjudications propose for the rubric."""

from __future__ import annotations

from typing import NamedTuple

from pydantic import ValidationError

from masis.errors import Conflict, InputError
from masis.schema.actor import Actor
from masis.schema.explain import explain
from masis.schema.review import LONGEST_SENTENCE, AdjudicationCause
from masis.schema.team import ProposalOutcome, Rubric
from masis.services.access import Service, requires
from masis.services.decision_rules import CAUSES, OTHER, REASON_CODE
from masis.services.reviews import name_of
from masis.store.reviews.rubric_proposals import TouchedCases

_SETTLE = "accept or dismiss sentences proposed for the rubric"
MOST_TOUCHED = 50
"""The touched cases that are listed for a proposal."""


class RubricProposal(NamedTuple):
    """A sentence that an adjudication proposes for the rubric.

    ``touched`` are the decided cases that share a reason code or a label with the adjudicated one.
    """

    entry_id: str
    case_id: str
    by: str
    at: str
    sentence: str
    touched: TouchedCases


class CauseCounts(NamedTuple):
    """The number of final verdicts in force by cause, and of those without a cause."""

    by_cause: dict[AdjudicationCause, int]
    none: int


class RubricProposalService(Service):
    """The use cases of the sentences that adjudicators propose."""

    @requires("read")
    def count_causes(self, actor: Actor) -> CauseCounts:
        """Count the final verdicts in force by the cause of the disagreement."""
        counts = self._store.proposals.causes()
        return CauseCounts({code: counts.get(code, 0) for code in CAUSES}, counts.get("", 0))

    @requires("read")
    def list_open(self, actor: Actor) -> tuple[RubricProposal, ...]:
        """Return the proposals that nobody has accepted or dismissed, oldest first.

        A proposal of an undone or redacted verdict isn't one.
        """
        proposals = []
        for entry in self._store.proposals.open():
            final = entry.decision
            if final is None:
                continue
            decisions = [*self._store.proposals.decisions_of(final.case_id), final]
            codes = {decision.extra.get(REASON_CODE) for decision in decisions}
            touched = self._store.proposals.find_touched(
                final.case_id,
                # "other" stands for many reasons, so sharing it says nothing.
                frozenset(code for code in codes if isinstance(code, str) and code != OTHER),
                frozenset(label.label for decision in decisions for label in decision.labels),
                MOST_TOUCHED,
            )
            proposals.append(
                RubricProposal(
                    entry.id,
                    final.case_id,
                    final.reviewer,
                    entry.at,
                    final.rubric_sentence,
                    touched,
                )
            )
        return tuple(proposals)

    @requires("oversee", _SETTLE)
    def accept(self, actor: Actor, entry_id: str, sentence: str) -> Rubric:
        """Add a sentence to the guidelines of a new version of the rubric, and return it.

        Args:
            actor: A lead.
            entry_id: The entry that proposes it.
            sentence: The sentence, as proposed or as edited.

        Raises:
            NotAllowed: The actor isn't a lead.
            InputError: The sentence is empty or too long, or the guidelines would be too long.
            StoreError: There is no such open proposal.

        """
        by, sentence = name_of(actor), " ".join(sentence.split())
        if not sentence or len(sentence) > LONGEST_SENTENCE or "\x00" in sentence:
            raise InputError(
                "the sentence is empty or too long",
                hint=f"Write up to {LONGEST_SENTENCE} characters.",
                field="sentence",
            )
        with self._store.transaction():
            self._assert_open(entry_id)
            rubric = self._store.team.in_force(Rubric)
            guidelines = f"{rubric.guidelines}\n{sentence}".strip()
            try:  # model_copy wouldn't check the length
                longer = Rubric(**rubric.model_dump() | {"guidelines": guidelines})
            except ValidationError as error:
                raise explain(error) from error
            rubric = self._store.team.put_in_force(by, longer)
            outcome = ProposalOutcome(entry_id=entry_id, accepted=True, rubric=rubric.version)
            self._store.team.put_in_force(by, outcome)
        return rubric

    @requires("oversee", _SETTLE)
    def dismiss(self, actor: Actor, entry_id: str) -> None:
        """Dismiss a proposal. The verdict that proposes it stays as it is.

        Raises:
            NotAllowed: The actor isn't a lead.
            InputError: The actor has no name.
            StoreError: There is no such open proposal.

        """
        by = name_of(actor)
        with self._store.transaction():
            self._assert_open(entry_id)
            self._store.team.put_in_force(by, ProposalOutcome(entry_id=entry_id))

    def _assert_open(self, entry_id: str) -> None:
        """Raise StoreError unless an entry proposes a sentence that waits."""
        if entry_id not in {entry.id for entry in self._store.proposals.open()}:
            raise Conflict("the proposal has already been accepted, dismissed or undone.")

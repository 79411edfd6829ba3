"""Guarantee the labels of a dataset version: draw a sample, have it labeled again, and bound it.

The drawn cases come back to other people's queues as copies. A copy has an id of its own, the
answer that was labeled, and nothing of the label, of earlier decisions or of an audit, and an audit
of it is hidden until it's decided. The results of a sample are shown once all its copies are
decided, so that nobody can stop at a convenient moment.
"""

from __future__ import annotations

import random
import secrets
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, Literal, NamedTuple

from masis.audit.citations import carry_over_citations
from masis.datasets.exports.versions import with_guarantee
from masis.errors import Conflict, InputError, Removed
from masis.schema.actor import Actor
from masis.schema.case import Case
from masis.schema.review import Verdict
from masis.schema.trust import DatasetGuarantee, GuaranteeMethod, RelabelPlan
from masis.schema.wording import count_noun
from masis.services.access import Service, requires
from masis.services.planted import copy_with_answer, unused_id
from masis.services.reviews import ReviewService, entry_on_case, name_of
from masis.store.reviews.relabelling import LabelledCase, RelabelledCase
from masis.trust.relabelling import (
    assert_in_range,
    bound_wrong,
    draw_sample,
    is_within,
    is_wrong,
    method_for,
    sample_needed,
)

GuaranteeStatus = Literal["open", "holds", "fails", "lapsed", "withdrawn"]
"""``open`` while drawn labels wait for a second person; ``lapsed`` if the version can't be rebuilt.
"""

WITHDRAWN = "A copy to label again, withdrawn before it was decided"
"""The reason in the log entry of a withdrawn copy."""

_DRAW = "draw or withdraw a sample of labels to guarantee a dataset version"
MOST_DRAWN = 2_000
"""Maximum number of labels per sample, because its copies are stored in one transaction."""


class LabelOffer(NamedTuple):
    """How many labels have to be relabelled for a guarantee.

    Attributes:
        labels: The version's labels.
        left_out: Its cases without a person's label.
        needed: The size of the sample by the expected number of wrong labels, from 0 up. None if
            even relabelling all labels can't show the rate.
        spent: The error that earlier samples of the same labels have used up.

    """

    labels: int
    left_out: int
    needed: tuple[int | None, ...]
    spent: float
    method: GuaranteeMethod


class DifferingLabel(NamedTuple):
    """A case whose label turned out wrong, with both people's verdicts."""

    case_id: str
    verdict: Verdict | None
    again: Verdict | None


class GuaranteeState(NamedTuple):
    """A sample of a version's labels and its result.

    Attributes:
        plan: The sample.
        status: What it shows.
        remaining: The drawn labels that wait for a second person.
        by_person: The labels of each person as decided and drawn.
        wrong: The wrong labels. None before the end of the sample.
        bound: The bound of the share of wrong labels. None before the end of the sample.
        differing: The wrong labels of cases that are decided now. Empty before the end of the
            sample.

    """

    plan: RelabelPlan
    status: GuaranteeStatus
    remaining: int
    by_person: Mapping[str, tuple[int, int]]
    wrong: int | None = None
    bound: float | None = None
    differing: tuple[DifferingLabel, ...] = ()

    @property
    def guarantee(self) -> DatasetGuarantee | None:
        """The guarantee as the manifest states it, or None if it doesn't hold."""
        if self.status != "holds" or self.wrong is None or self.bound is None:
            return None
        return DatasetGuarantee(
            rate=self.plan.rate,
            level=self.plan.level,
            labels=self.plan.labels,
            n=len(self.plan.case_ids),
            wrong=self.wrong,
            bound=self.bound,
            method=self.plan.method,
            seed=self.plan.seed,
            relabelled_by=tuple(self.by_person),
        )


class RelabellingService(Service):
    """The use cases of guarantees for dataset versions."""

    @requires("read")
    def offer(
        self, actor: Actor, dataset: str, *, rate: float = 0.03, level: float = 0.95
    ) -> LabelOffer:
        """Return how many labels of a version have to be relabelled for this rate and level.

        Args:
            actor: The person who asks.
            dataset: The name of the version.
            rate: The largest tolerated share of wrong labels.
            level: The confidence level.

        Raises:
            InputError: The rate or the level is out of range.
            UnknownRecord: There is no such version.

        """
        assert_in_range(rate, level)
        labels = self._store.relabelling.labels(dataset)
        total, spent = len(labels.cases), self._error_spent(labels.digest)
        error = round(1 - level - spent, 9)
        needed: list[int | None] = []
        if total and error > 0:
            needed = [sample_needed(total, rate, error, wrong) for wrong in range(4)]
        return LabelOffer(total, labels.left_out, tuple(needed), spent, method_for(total))

    @requires("oversee", _DRAW)
    def draw(
        self,
        actor: Actor,
        dataset: str,
        reviewers: Sequence[str],
        *,
        rate: float = 0.03,
        level: float = 0.95,
        n: int | None = None,
        seed: int | None = None,
    ) -> GuaranteeState:
        """Draw a sample of a version's labels, and assign copies of the cases to other people.

        Each copy goes to one of ``reviewers`` who never decided the case, in equal shares.

        Args:
            actor: A lead.
            dataset: The name of the version.
            reviewers: The people who label the sample.
            rate: The largest tolerated share of wrong labels.
            level: The confidence level over all samples of the same labels.
            n: The size of the sample. By default the smallest one that shows the rate if none of
                its labels is wrong.
            seed: The seed of the draw. It's random by default, and recorded with the plan.

        Raises:
            NotAllowed: The actor isn't a lead.
            InputError: The rate, the level or the size is out of range, nobody can label a case,
                or earlier samples have used up the error.
            UnknownRecord: There is no such version.
            StoreError: The version can't be rebuilt, or has a sample that isn't finished.

        """
        by, names = name_of(actor), _clean_reviewers(reviewers)
        assert_in_range(rate, level)
        with self._store.transaction():
            version = self._store.datasets.get(dataset)
            if any(lost := self._store.datasets.count_lost(dataset)):
                raise Conflict(f"dataset version {dataset!r} is {lost}. Freeze it again.")
            current = self.state(actor, dataset)
            if current is not None and current.status == "open":
                raise Conflict(
                    f"the sample of {dataset!r} isn't finished: {current.remaining} labels wait."
                    " Finish or withdraw it first."
                )
            labels = self._store.relabelling.labels(dataset)
            spent = self._error_spent(labels.digest)
            error = round(1 - level - spent, 9)
            size = _checked_size(len(labels.cases), rate, error, spent, n)
            seed = secrets.randbits(32) if seed is None else seed
            ids = draw_sample([case.case_id for case in labels.cases], size, seed)
            plan = self._store.team.put_in_force(
                by,
                RelabelPlan(
                    at=self._store.database.now(),
                    by=by,
                    dataset=dataset,
                    frozen_at=version.at,
                    labels_digest=labels.digest,
                    rate=rate,
                    error=error,
                    spent=spent,
                    labels=len(labels.cases),
                    left_out=labels.left_out,
                    method=method_for(len(labels.cases)),
                    seed=seed,
                    case_ids=ids,
                ),
            )
            by_id = {case.case_id: case for case in labels.cases}
            self._add_copies(actor, plan, [by_id[case_id] for case_id in ids], names)
        state = self.state(actor, dataset)
        assert state is not None
        return state

    @requires("read")
    def state(self, actor: Actor, dataset: str) -> GuaranteeState | None:
        """Return the newest sample of a version and its result, or None if none was drawn.

        A version that was removed and frozen again has no sample.

        Raises:
            UnknownRecord: There is no such version.

        """
        version = self._store.datasets.get(dataset)
        plan = next(
            (
                plan
                for plan in reversed(self._store.relabelling.plans())
                if (plan.dataset, plan.frozen_at) == (dataset, version.at)
            ),
            None,
        )
        if plan is None:
            return None
        return _state_of(
            plan,
            self._store.relabelling.list_drawn(plan.version),
            lost=any(self._store.datasets.count_lost(dataset)),
        )

    @requires("read")
    def manifest(self, actor: Actor, dataset: str) -> dict[str, Any]:
        """Return the manifest of a version, with its guarantee if one holds.

        Raises:
            UnknownRecord: There is no such version.

        """
        manifest = self._store.datasets.get(dataset).manifest
        return with_guarantee(manifest, self.guarantee(actor, dataset))

    @requires("read")
    def guarantee(self, actor: Actor, dataset: str) -> DatasetGuarantee | None:
        """Return the guarantee of a version, or None if none holds.

        Raises:
            UnknownRecord: There is no such version.

        """
        state = self.state(actor, dataset)
        return state.guarantee if state else None

    @requires("oversee", _DRAW)
    def withdraw(self, actor: Actor, dataset: str) -> int:
        """Withdraw the undecided copies of a version's sample, and return the number.

        Their texts are removed. The sample then gives no guarantee. If one of its copies has been
        decided, the error of the sample stays used up.

        Raises:
            NotAllowed: The actor isn't a lead.
            InputError: The actor has no name.
            UnknownRecord: There is no such version.
            StoreError: No sample of this version is open.

        """
        by, state = name_of(actor), self.state(actor, dataset)
        if state is None or state.status not in ("open", "lapsed"):
            raise Conflict(f"dataset version {dataset!r} has no open sample to withdraw.")
        with self._store.transaction():
            drawn = self._store.relabelling.list_drawn(state.plan.version)
            ids = [
                drawn_case.copy_id
                for drawn_case in drawn
                if drawn_case.again is None and not drawn_case.gone
            ]
            for copy_id in ids:
                self._store.redactions.redact_case(copy_id, by=by, reason=WITHDRAWN)
                for lease in self._store.team.work(copy_id).leases:
                    self._store.team.release(copy_id, lease.reviewer)
            self._store.relabelling.mark_withdrawn(ids)
        return len(ids)

    def _error_spent(self, digest: str) -> float:
        """Return the error that samples of these labels have used up.

        A sample that was withdrawn before its first decision could reveal nothing.
        """
        return round(
            sum(
                plan.error
                for plan in self._store.relabelling.plans()
                if plan.labels_digest == digest
                and any(
                    not drawn_case.withdrawn
                    for drawn_case in self._store.relabelling.list_drawn(plan.version)
                )
            ),
            9,
        )

    def _add_copies(
        self, actor: Actor, plan: RelabelPlan, drawn: Sequence[LabelledCase], names: Sequence[str]
    ) -> None:
        """Store and assign a copy of each drawn case.

        Raises:
            InputError: All reviewers decided a drawn case themselves.
            StoreError: A labeled answer is no longer stored.

        """
        reviews, draw = ReviewService(self._store, self.access), random.Random(plan.seed)
        load = Counter(dict.fromkeys(names, 0))
        for label in drawn:
            authors = self._store.relabelling.authors(label.case_id)
            free = [name for name in names if name not in authors]
            if not free:
                raise InputError(
                    f"{' and '.join(names)} can't check case {label.case_id!r}, because they"
                    " decided it themselves",
                    hint="Name another person too.",
                    field="reviewers",
                )
            name = min(free, key=lambda person: load[person])
            load[name] += 1
            case = self._store.cases.get(label.case_id)
            try:
                answer = reviews.answer_of(self._store.relabelling.decision(label.entry_seq))
            except Removed as error:
                raise Conflict(
                    f"the answer of case {label.case_id!r} is no longer stored."
                ) from error
            copy = relabel_copy(case, answer, unused_id(self._store, case, answer, draw))
            self._store.relabelling.add(copy, label, plan.version)
            self._store.decisions.append(entry_on_case(actor, copy.id, "assign", assignees=(name,)))


def relabel_copy(case: Case, answer: str, case_id: str) -> Case:
    """Return the copy of a case with the answer that was labeled, as its own answer."""
    citations = case.given_citations or ()
    if citations and case.answer is not None and answer != case.answer:
        citations = carry_over_citations(citations, case.answer, answer)
    return copy_with_answer(case, answer, case_id, citations)


def _state_of(plan: RelabelPlan, drawn: Sequence[RelabelledCase], *, lost: bool) -> GuaranteeState:
    """Return the result of a sample. A copy that is gone counts as a wrong label, to be safe."""
    totals, done = Counter[str](), Counter[str]()
    for drawn_case in drawn:
        for name in [drawn_case.again.reviewer] if drawn_case.again else drawn_case.assignees:
            totals[name] += 1
            done[name] += drawn_case.again is not None
    by_person = {name: (done[name], totals[name]) for name in sorted(totals)}
    remaining = sum(drawn_case.again is None and not drawn_case.gone for drawn_case in drawn)
    if any(drawn_case.withdrawn for drawn_case in drawn):
        return GuaranteeState(plan, "withdrawn", 0, by_person)
    if lost:
        return GuaranteeState(plan, "lapsed", remaining, by_person)
    if remaining:
        return GuaranteeState(plan, "open", remaining, by_person)
    # One row is missing for each copy whose new version was lost; it counts as wrong too.
    differing = [
        drawn_case
        for drawn_case in drawn
        if drawn_case.label is None
        or drawn_case.again is None
        or is_wrong(drawn_case.label, drawn_case.again)
    ]
    wrong = len(differing) + len(plan.case_ids) - len(drawn)
    # The test uses the plan's own error; the level states what all plans for the labels risk.
    bound = bound_wrong(wrong, len(plan.case_ids), plan.labels, plan.error).bound
    return GuaranteeState(
        plan,
        "holds" if is_within(bound, plan.rate) else "fails",
        0,
        by_person,
        wrong,
        bound,
        tuple(
            DifferingLabel(
                drawn_case.case_id,
                drawn_case.label.verdict if drawn_case.label else None,
                drawn_case.again.verdict if drawn_case.again else None,
            )
            for drawn_case in differing
            # A reopened case waits for people who may not see how others decided it.
            if drawn_case.settled
        ),
    )


def _checked_size(labels: int, rate: float, error: float, spent: float, n: int | None) -> int:
    """Return the size of a sample. Raises InputError if it can't show the rate."""
    if not labels:
        raise InputError(
            "the version has no label that a person gave",
            hint="Freeze cases that people have decided.",
        )
    if error <= 0:
        raise InputError(
            f"earlier samples of these labels have used up the allowed error ({spent:.1%})",
            hint=f"State a level below {1 - spent:.0%}, or correct labels and freeze them again.",
            field="level",
        )
    least = sample_needed(labels, rate, error)
    size = least if n is None else n
    if least is None or size is None or not least <= size <= min(labels, MOST_DRAWN):
        needed = (
            f"You need {least:,} labels if none of them is wrong."
            if least is not None and least <= MOST_DRAWN
            else "Tolerate a larger share, or state a lower level."
        )
        raise InputError(
            f"{count_noun(size or 0, 'label')} of {labels:,} can't show {rate:.1%}"
            f" at {1 - error:.1%}",
            hint=needed,
            field="n",
        )
    return size


def _clean_reviewers(reviewers: Sequence[str]) -> tuple[str, ...]:
    names = tuple(dict.fromkeys(" ".join(name.split()) for name in reviewers if name.strip()))
    if not names or any(len(name) > 200 or "\x00" in name for name in names):
        raise InputError(
            "a reviewer is missing, or a name is too long",
            hint="Name the people who label the sample, with up to 200 characters each.",
            field="reviewers",
        )
    return names


# In words, for the page and the command line


def offer_text(offer: LabelOffer, rate: float, level: float) -> str:
    """Say how many labels have to be relabelled before the work begins."""
    if not offer.labels:
        return "This version has no label that a person gave, so there is nothing to guarantee."
    if not offer.needed:
        return (
            f"Earlier samples of these labels used up the allowed error ({offer.spent:.1%}). State"
            " a lower level, or correct labels and freeze them again."
        )
    words = ("none is wrong", "one is", "two are", "three are")
    parts = [
        f"{needed:,} if {said}"
        for needed, said in zip(offer.needed, words, strict=True)
        if needed is not None
    ]
    left_out = (
        f" {count_noun(offer.left_out, 'case')} without a person's label aren't covered."
        if offer.left_out
        else ""
    )
    if not parts:
        return (
            f"The version has {count_noun(offer.labels, 'label')}, too few to show {rate:.1%} at"
            f" {level:.1%}.{left_out}"
        )
    return (
        f"To show that at most {rate:.1%} of {count_noun(offer.labels, 'label')} are wrong, at"
        f" {level:.1%}, another person labels {', '.join(parts)}.{left_out}"
    )


def guarantee_text(state: GuaranteeState) -> str:
    """Say what a sample shows, or how many labels are missing."""
    plan, n = state.plan, len(state.plan.case_ids)
    stated = (
        f"at most {plan.rate:.1%} of {count_noun(plan.labels, 'label')} are wrong, at"
        f" {plan.level:.1%}"
    )
    if state.status == "open":
        return f"Needs {state.remaining:,} more of {n:,} labels to test that {stated}."
    if state.status == "withdrawn":
        return "Withdrawn: the sample gives no guarantee."
    if state.status == "lapsed":
        return (
            "Lapsed: cases of this version were redacted or lost their audit since, so it's no"
            " longer the same data set."
        )
    found = f"{state.wrong:,} of {n:,} relabeled ones were wrong, which bounds the share by"
    bound = f"{state.bound:.2%} (exact {plan.method} bound)"
    says = "Holds:" if state.status == "holds" else "Fails: it isn't shown that"
    return f"{says} {stated}. {found} {bound}."

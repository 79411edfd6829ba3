"""Reviewing as a team: leases, assignments, tags, skips, comments, policies, rubrics, label types,
views, progress.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple, TypeVar

from masis.errors import CaseHeld, InputError, UnknownRecord
from masis.schema.actor import Actor
from masis.schema.review import Decision, EntryKind, LogEntry
from masis.schema.team import CaseWork, Lease, QueuePolicy, SavedView, TeamRecord
from masis.services.access import Service
from masis.services.cases import WAITING, CaseService, machine_hidden, waiting_in
from masis.services.records import CaseFilter, CasePage, DecisionFilter
from masis.services.reviews import entry_on_case, name_of

T = TypeVar("T", bound=TeamRecord)

LONGEST_TAG = 60
LONGEST_COMMENT = 10_000
MOST_AT_ONCE = 1_000
"""Cases that one bulk action takes: it is one transaction, and others wait meanwhile."""


class EmptyQueue(NamedTuple):
    """Why a reviewer finds no case to decide in a queue: how many there are of each kind.

    ``waiting`` cases of the queue wait for somebody. Of these the reviewer has decided ``decided``
    and skipped ``skipped``; ``held`` are leased to others, who are named with the leases that end
    first, ``assigned`` to others. ``elsewhere`` cases wait that the filter leaves out.
    """

    waiting: int
    decided: int
    skipped: int
    held: tuple[Lease, ...]
    assigned: dict[str, int]
    elsewhere: int


class AssignmentPlan(NamedTuple):
    """Who gets which cases, by name; of each case that somebody is not given, who has decided it;
    and which cases have as many reviewers already as their policy asks for.
    """

    given: Mapping[str, list[str]] = {}
    decided: Mapping[str, tuple[str, ...]] = {}
    full: tuple[str, ...] = ()


class TeamService(Service):
    """The use cases of several people who share one queue, each under the name of an ``Actor``."""

    # taking cases

    def claim(self, actor: Actor, case_id: str) -> Lease:
        """Take a case for decision, or extend the lease on it. Raises CaseHeld and NotAllowed."""
        self._access.require(actor, "decide")
        return self._store.team.claim(
            case_id, name_of(actor), self._store.team.in_force(QueuePolicy).lease_minutes
        )

    def claim_next(
        self, actor: Actor, case_filter: CaseFilter, after: str | None = None
    ) -> Lease | None:
        """Take the next case of a queue that this reviewer may decide; None where there is none.

        What another person takes in the meantime is passed over.
        """
        lost: list[str] = []
        while (case_id := self.next_open(actor, case_filter, after, lost)) is not None:
            lost.append(case_id)
            try:
                lease = self.claim(actor, case_id)
            except CaseHeld:
                continue
            if self._store.cases.summary(case_id).state in self.open_to(actor, case_filter).states:
                return lease
            self.release(actor, case_id)  # decided while it was being taken
        return None

    def release(self, actor: Actor, case_id: str) -> None:
        """Give a case back that was taken for decision. Raises UnknownRecord and NotAllowed."""
        self._access.require(actor, "decide")
        self._store.team.release(case_id, name_of(actor))

    def rename(
        self, actor: Actor, name: str, *, cases: Iterable[str], subjects: Iterable[str]
    ) -> None:
        """Hand the work that is open to the name that a person goes by from now on: leases and
        drafts.

        Only what is named moves: another browser may go by the same name, and what it has open
        stays there. What was decided before stays under the name that it was decided under.

        Args:
            actor: The person, by the name so far.
            name: The new name.
            cases: The cases that they have taken for decision.
            subjects: The subjects of the drafts that they have open.

        Raises:
            NotAllowed: The actor's role doesn't grant deciding.
            InputError: The new name is empty.

        """
        self._access.require(actor, "decide")
        taker = name_of(Actor(name=name))
        with self._store.transaction():
            for case_id in cases:
                # of another database: its leases run out by themselves
                with contextlib.suppress(UnknownRecord):
                    self._store.team.hand_over(case_id, actor.name, taker)
            self._store.drafts.hand_over(actor.name, taker, subjects)

    def hides_counts_from(self, actor: Actor) -> bool:
        """Return whether the length of the log could say that others have decided a case that is
        not settled.

        Who has signed in as a lead sees it all the same.
        """
        return not actor.may("oversee") and self._store.decisions.several_decide()

    def leases(self, actor: Actor) -> tuple[Lease, ...]:
        """Return the leases that this person may see: their own; those of all for who has signed in
        as a lead.
        """
        every = actor.may("oversee")
        return tuple(
            lease for lease in self._store.team.leases() if every or lease.reviewer == actor.name
        )

    def work(self, actor: Actor, case_id: str) -> CaseWork:
        """Return what the team knows about one case. Raises UnknownRecord.

        While decisions of a shared case are missing, it is not said that anybody else has decided
        it: ``pending`` is then how many others are asked.
        """
        work = self._store.team.work(case_id)
        if not work.pending:
            return work
        mine = tuple(name for name in work.decided_by if name == actor.name)
        others = work.policy.reviewers - 1 if mine and work.policy else 0
        return work.model_copy(update={"decided_by": mine, "pending": others})

    def next_open(
        self,
        actor: Actor,
        case_filter: CaseFilter,
        after: str | None = None,
        without: Iterable[str] = (),
    ) -> str | None:
        """Return the next case of a queue that this reviewer may decide, behind ``after`` or from
        the start.

        Cases that they skipped come last, the one skipped longest ago first. None where there is
        none.
        """
        open_ones = self.open_to(actor, case_filter)
        left_out = {*without, *([after] if after else [])}
        if after is not None:
            found = self._store.cases.following(after, open_ones, without=left_out)
        else:
            found = self._store.cases.first(open_ones, without=left_out)
        if found is not None:
            return found
        again = open_ones.model_copy(update={"skipped_too": True, "page": 1, "size": 1000})
        skipped = [row.id for row in self._store.cases.search(again).rows if row.id not in left_out]
        return self._store.team.oldest_skipped(actor.name, skipped)

    def open_to(self, actor: Actor, case_filter: CaseFilter) -> CaseFilter:
        """Return the filter of the cases of a queue that wait and that this reviewer
        may take now.
        """
        return self._waiting_filter(actor, case_filter).model_copy(update={"open_to": actor.name})

    def _waiting_filter(self, actor: Actor, case_filter: CaseFilter) -> CaseFilter:
        """Return the filter of the cases of a queue that wait.

        A list of auto-accepted cases is a queue, too: who opened it looks at them one after the
        other. Where the policy hides what audits found, those cases are in every queue: which ones
        are accepted must not show.
        """
        cases = CaseService(self._store)
        kept = ("accepted",) if case_filter.states == ("accepted",) else ()
        waiting = waiting_in(
            cases.blind_filter(actor, case_filter.model_copy(update={"states": kept}))
        )
        blind = cases.hides_machine_from(actor)
        return waiting.model_copy(update={"states": (*WAITING, "accepted")}) if blind else waiting

    def count_open(self, actor: Actor, case_filter: CaseFilter) -> int:
        """Count the cases of a queue that this reviewer may decide now, those that they skipped
        among them.
        """
        open_ones = self.open_to(actor, case_filter).model_copy(update={"skipped_too": True})
        return self._store.cases.count_matching(open_ones)

    def to_adjudicate(self, actor: Actor) -> CaseFilter:
        """Return the filter of the cases whose reviewers differ, this person not among them, in a
        queue's order.
        """
        case_filter = CaseFilter(states=("needs_adjudication",), undecided_by=actor.name)
        return CaseService(self._store).blind_filter(actor, case_filter)

    def adjudications(self, actor: Actor, size: int = 200) -> CasePage:
        """Return the cases that wait for this person's adjudication; none for who may not
        adjudicate.
        """
        if not actor.name or not self._access.allows(actor, "oversee"):
            return CasePage(rows=(), total=0)
        return self._store.cases.search(self.to_adjudicate(actor).model_copy(update={"size": size}))

    def explain_empty_queue(self, actor: Actor, case_filter: CaseFilter) -> EmptyQueue:
        """Return why a queue has no case for this reviewer."""
        page = self._store.cases.search(
            self._waiting_filter(actor, case_filter).model_copy(update={"page": 1, "size": 1000})
        )
        everywhere = self._store.cases.count_matching(self._waiting_filter(actor, CaseFilter()))
        works = [self._store.team.work(row.id) for row in page.rows]
        leases = [lease for work in works for lease in work.leases if lease.reviewer != actor.name]
        assigned: dict[str, int] = {}
        for work in works:
            for name in work.assignees if actor.name not in work.assignees else ():
                assigned[name] = assigned.get(name, 0) + 1
        return EmptyQueue(
            waiting=page.total,
            decided=sum(actor.name in work.decided_by for work in works),
            skipped=sum(actor.name in work.skipped_by for work in works),
            held=tuple(sorted(leases, key=lambda lease: lease.until)),
            assigned=assigned,
            elsewhere=max(0, everywhere - page.total),
        )

    # entries about the work on cases: one transaction, all of them or none

    def assign(self, actor: Actor, case_ids: Sequence[str], reviewers: Sequence[str]) -> int:
        """Assign cases to reviewers; returns how many. Raises InputError, UnknownRecord and
        NotAllowed.
        """
        self._require_assigner(actor, reviewers)
        return self._log_for_cases(
            actor, case_ids, "assign", assignees=_clean_names(reviewers, "a reviewer", 200)
        )

    def unassign(self, actor: Actor, case_ids: Sequence[str], reviewers: Sequence[str]) -> int:
        """Take assignments back; returns how many cases. Raises InputError, UnknownRecord and
        NotAllowed.
        """
        self._require_assigner(actor, reviewers)
        return self._log_for_cases(
            actor, case_ids, "unassign", assignees=_clean_names(reviewers, "a reviewer", 200)
        )

    def share_out(
        self,
        actor: Actor,
        case_ids: Iterable[str],
        reviewers: Iterable[str],
        *,
        one_each: bool = False,
    ) -> AssignmentPlan:
        """Say who would be given which cases: each reviewer all of them, or each case to one of
        them, in turn.

        Left out is what somebody has already, and a case for those who have decided it: it waits
        for somebody else.
        """
        given: dict[str, list[str]] = {" ".join(name.split()): [] for name in reviewers}
        decided: dict[str, tuple[str, ...]] = {}
        full: list[str] = []
        for case_id in case_ids:
            work = self.work(actor, case_id)
            waits = work.pending or not work.decided_by
            if waits and len({*work.assignees, *work.decided_by}) >= work.wanted:
                full.append(case_id)
            free = [name for name in given if name not in work.decided_by]
            if len(free) < len(given):
                decided[case_id] = tuple(name for name in given if name in work.decided_by)
            if one_each:
                free = (
                    []
                    if set(free) & set(work.assignees)
                    else sorted(free, key=lambda name: len(given[name]))[:1]
                )
            for name in free:
                if name not in work.assignees:
                    given[name].append(case_id)
        return AssignmentPlan(
            {name: cases for name, cases in given.items() if cases}, decided, tuple(full)
        )

    def give(self, actor: Actor, given: Mapping[str, Sequence[str]], *, back: bool = False) -> None:
        """Assign each reviewer their cases, or take just these assignments back: all of them or
        none.
        """
        with self._store.transaction():
            for name, cases in given.items():
                (self.unassign if back else self.assign)(actor, cases, [name])

    def _require_assigner(self, actor: Actor, reviewers: Sequence[str]) -> None:
        """Require the role that assigns work to these people: whoever decides may take work on
        themselves.
        """
        self._access.require(actor, "decide" if set(reviewers) == {actor.name} else "oversee")

    def tag(self, actor: Actor, case_ids: Sequence[str], tags: Sequence[str]) -> int:
        """Give cases tags; returns how many cases. Raises InputError, UnknownRecord."""
        return self._log_for_cases(
            actor, case_ids, "tag", tags=_clean_names(tags, "a tag", LONGEST_TAG)
        )

    def untag(self, actor: Actor, case_ids: Sequence[str], tags: Sequence[str]) -> int:
        """Take tags from cases; returns how many cases. Raises InputError, UnknownRecord."""
        return self._log_for_cases(
            actor, case_ids, "untag", tags=_clean_names(tags, "a tag", LONGEST_TAG)
        )

    def skip(self, actor: Actor, case_ids: Sequence[str]) -> int:
        """Leave cases undecided and give them back; they come last for this reviewer, and others
        see nothing of it.
        """
        with self._store.transaction():
            done = self._log_for_cases(actor, case_ids, "skip")
            for case_id in case_ids:
                self._store.team.release(case_id, actor.name)
        return done

    def comment(self, actor: Actor, case_id: str, text: str) -> LogEntry:
        """Write a comment on a case. Raises InputError where it has no words, UnknownRecord."""
        self._access.require(actor, "decide")
        text = text.strip()
        if not text or len(text) > LONGEST_COMMENT:
            raise InputError(
                f"a comment has 1 to {LONGEST_COMMENT:,} characters",
                hint="Shorten it, or write one.",
                field="comment",
            )
        return self._store.decisions.append(entry_on_case(actor, case_id, "comment", note=text))

    def comments(self, actor: Actor, case_id: str) -> tuple[tuple[str, Decision], ...]:
        """Return the comments on a case and when each was made, oldest first.

        Others' are left out until all decisions of a shared case are made.
        """
        log_filter = DecisionFilter(
            case_id=case_id, kinds=("comment",), newest_first=False, size=1000, blind_to=actor.name
        )
        rows = self._store.decisions.entries(log_filter).rows
        return tuple((entry.at, entry.decision) for entry in rows if entry.decision is not None)

    def _log_for_cases(
        self,
        actor: Actor,
        case_ids: Sequence[str],
        kind: EntryKind,
        *,
        assignees: tuple[str, ...] = (),
        tags: tuple[str, ...] = (),
    ) -> int:
        self._access.require(actor, "decide")
        named = list(dict.fromkeys(case_ids))
        if len(named) > MOST_AT_ONCE:
            raise InputError(
                f"{len(named):,} cases are too many for once",
                hint=f"Choose up to {MOST_AT_ONCE:,}.",
            )
        with self._store.transaction():
            for case_id in named:
                entry = entry_on_case(actor, case_id, kind, assignees=assignees, tags=tags)
                self._store.decisions.append(entry)
        return len(named)

    # policies, rubrics, label types, views

    def put_in_force(self, actor: Actor, record: T) -> T:
        """Set a policy, a rubric or label types from now on; what was decided before keeps those it
        was begun under.

        What is in force already is not set again: no version would differ from the one before.
        Raises NotAllowed.
        """
        self._access.require(actor, "oversee")
        now = self._store.team.in_force(type(record))
        if record.model_copy(update={"version": now.version}) == now:
            return now
        return self._store.team.put_in_force(name_of(actor), record)

    def machine_hidden(self, actor: Actor, case_id: str) -> bool:
        """Return whether the machine's verdict on a case is hidden from this reviewer now. Raises
        UnknownRecord.
        """
        return machine_hidden(self._store, actor, case_id)

    def save_view(
        self, actor: Actor, name: str, parameters: dict[str, str], *, shared: bool = False
    ) -> None:
        """Save a filter of the queue under a name, for oneself or the whole team. Raises
        InputError, NotAllowed.
        """
        self._access.require(actor, "decide")
        (title,) = _clean_names([name], "a view", LONGEST_TAG)
        owner = "" if shared else name_of(actor)
        self._store.team.save_view(
            name_of(actor), SavedView(name=title, owner=owner, parameters=parameters)
        )

    def remove_view(self, actor: Actor, view: SavedView) -> None:
        """Take a saved view away. Raises NotAllowed."""
        self._access.require(actor, "decide")
        self._store.team.save_view(name_of(actor), view.model_copy(update={"removed": True}))

    # how far the work has come

    def reviewers(self) -> tuple[str, ...]:
        """Return everybody who has decided, skipped or been assigned a case, by name."""
        names = {
            name
            for kind in ("decided", "assigned", "skipped")
            for name in self._store.team.count_cases(kind)
        }
        return tuple(sorted((name for name in names if not name.startswith("(")), key=str.casefold))

    def loads(self) -> dict[str, int]:
        """Count the cases that each reviewer has been given and that are not settled, as the queue
        lists them.
        """
        given = self._store.team.count_cases("assigned", undecided=True)
        return {name: given.get(name, 0) for name in self.reviewers()}


def _clean_names(given: Sequence[str], noun: str, longest: int) -> tuple[str, ...]:
    names = tuple(dict.fromkeys(" ".join(name.split()) for name in given if name.strip()))
    if not names:
        raise InputError(f"{noun} is missing", hint=f"Name {noun}.")
    for name in names:
        if len(name) > longest or "\x00" in name:
            raise InputError(
                f"the name of {noun} is too long or can't be stored",
                hint=f"Use up to {longest} characters.",
            )
    return names

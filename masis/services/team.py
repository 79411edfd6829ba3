"""The team's shared queue: leases, assignments, tags, skips, comments, policies and saved views."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple, TypeVar

from masis.errors import CaseHeld, InputError, UnknownRecord
from masis.schema.actor import Actor
from masis.schema.review import CaseState, Decision, EntryKind, LogEntry
from masis.schema.team import CaseWork, Lease, QueuePolicy, SavedView, TeamRecord
from masis.services.access import Service, may_require, requires
from masis.services.cases import WAITING, CaseService, machine_hidden, waiting_in
from masis.services.queue_rules import assert_compatible, assert_member
from masis.services.records import CaseFilter, CasePage, DecisionFilter
from masis.services.reviews import entry_on_case, in_batch, name_of

T = TypeVar("T", bound=TeamRecord)

IN_A_QUEUE: tuple[CaseState, ...] = (
    *WAITING,
    *("approved", "overridden", "rejected", "escalated", "needs_adjudication"),
)
"""The states of cases that can wait in a named queue. Decisions in other queues don't end that."""

LONGEST_TAG = 60
LONGEST_REVIEWER = 200
LONGEST_COMMENT = 10_000
MOST_AT_ONCE = 1_000
"""The most cases of one bulk action, because it is one transaction that blocks other writers."""

_TAKE = "take or release cases"
_ASSIGN_SELF = "assign cases to oneself"
_ASSIGN_OTHERS = "assign cases to others"


class EmptyQueue(NamedTuple):
    """Why a queue has no case for a reviewer, as counts.

    ``waiting`` cases of the queue need a decision; the reviewer has decided ``decided`` and skipped
    ``skipped`` of them. ``held`` has the leases of others, in order of their end, and ``assigned``
    counts cases assigned to others by name. ``elsewhere`` cases outside of the filter need a
    decision.
    """

    waiting: int
    decided: int
    skipped: int
    held: tuple[Lease, ...]
    assigned: dict[str, int]
    elsewhere: int


class AssignmentPlan(NamedTuple):
    """Which cases each reviewer would get.

    ``given`` has the cases by reviewer, ``decided`` the reviewers who have already decided a case,
    by case, and ``full`` the cases that already have as many reviewers as their policy needs.
    """

    given: Mapping[str, list[str]] = {}
    decided: Mapping[str, tuple[str, ...]] = {}
    full: tuple[str, ...] = ()


class TeamService(Service):
    """The use cases of several people who share one queue, each under the name of an ``Actor``."""

    # Taking cases

    @requires("decide", _TAKE)
    def claim(self, actor: Actor, case_id: str, queue: str = "") -> Lease:
        """Take a case for decision, or extend the lease on it.

        Args:
            actor: The reviewer.
            case_id: The case.
            queue: The named queue in which to decide it, by its id or name.

        Raises:
            CaseHeld: Another reviewer has taken the case.
            NotAllowed: The actor's role doesn't allow decisions, or they aren't one of the people
                who decide the case.
            UnknownRecord: There is no such queue.

        """
        team = self._store.team
        name = name_of(actor)
        named = assert_member(self._store, actor, case_id, queue)
        policy = named.policy if named else team.in_force(QueuePolicy)
        return team.claim(case_id, name, policy.lease_minutes, named.id if named else "")

    @requires("decide", _TAKE)
    def claim_next(
        self,
        actor: Actor,
        case_filter: CaseFilter,
        after: str | None = None,
        without: Iterable[str] = (),
    ) -> Lease | None:
        """Take the next case of a queue that this reviewer may decide; None if there is none.

        Cases that others take in the meantime are skipped, as are those in ``without``.
        """
        lost = list(without)
        while (case_id := self.next_open(actor, case_filter, after, lost)) is not None:
            # added before the attempt, so that the loop never tries a case twice
            lost.append(case_id)
            try:
                lease = self.claim(actor, case_id, case_filter.queue)
            except CaseHeld:
                continue
            if self._still_waits(actor, case_id, case_filter):
                return lease
            self.release(actor, case_id)  # Another reviewer decided it in the meantime.
        return None

    def _still_waits(self, actor: Actor, case_id: str, case_filter: CaseFilter) -> bool:
        if self._store.cases.summary(case_id).state not in self.open_to(actor, case_filter).states:
            return False
        if not case_filter.queue:
            return True
        # Its state is that of all queues; a decision may have settled it in this one alone.
        return self._store.team.waits_in(case_id, self._store.team.queue(case_filter.queue))

    @requires("decide", _TAKE)
    def release(self, actor: Actor, case_id: str) -> None:
        """Release a case that was taken for decision.

        Raises:
            UnknownRecord: There is no such case.
            NotAllowed: The actor's role doesn't allow decisions.

        """
        self._store.team.release(case_id, name_of(actor))

    @requires("decide", "change their reviewer name")
    def rename(
        self, actor: Actor, name: str, *, cases: Iterable[str], subjects: Iterable[str]
    ) -> None:
        """Transfer a person's leases and drafts to their new name.

        Only the named cases and subjects are transferred, because another browser may use the old
        name and have open work. Past decisions stay under the old name.

        Args:
            actor: The person under the old name.
            name: The new name.
            cases: The cases that they have taken for decision.
            subjects: The subjects of the drafts that they have open.

        Raises:
            NotAllowed: The actor's role doesn't allow decisions.
            InputError: The new name is empty.

        """
        taker = name_of(Actor(name=name))
        with self._store.transaction():
            for case_id in cases:
                # The case may be in the database served before, where its lease expires.
                with contextlib.suppress(UnknownRecord):
                    self._store.team.hand_over(case_id, actor.name, taker)
            self._store.drafts.hand_over(actor.name, taker, subjects)

    @requires("read")
    @may_require("oversee", "see the length of the log under a blind policy")
    def hides_counts_from(self, actor: Actor) -> bool:
        """Return whether to hide the length of the log from this person.

        It could reveal that others have decided an unsettled case, or that the policy accepted an
        answer whose verdict is hidden. Signed-in leads may see it.
        """
        return not actor.may("oversee") and self._store.decisions.hides_counts_from(actor.name)

    @requires("read")
    @may_require("oversee", "see the leases of others")
    def leases(self, actor: Actor) -> tuple[Lease, ...]:
        """Return the leases that this person may see: their own, or all for a signed-in lead."""
        every = actor.may("oversee")
        return tuple(
            lease for lease in self._store.team.leases() if every or lease.reviewer == actor.name
        )

    @requires("read")
    def work(self, actor: Actor, case_id: str, queue: str | None = None) -> CaseWork:
        """Return the team's state of one case, with the decisions that were made in ``queue``.

        Without ``queue``, they're those of the queue whose reviewers differ, or of the first queue.

        While decisions of a shared case are missing, it doesn't reveal whether others have decided:
        ``pending`` then counts all others who should decide. A policy that was set after the first
        decision doesn't apply to the case, but is shown until the reviewer has decided it too,
        because the earlier one would reveal that decision.

        Raises:
            UnknownRecord: There is no such case.

        """
        work = self._store.team.work(case_id, queue)
        if not work.pending:
            return work
        if actor.name in work.decided_by:
            others = work.policy.reviewers - 1 if work.policy else 0
            return work.model_copy(update={"decided_by": (actor.name,), "pending": others})
        if queue:
            return work.model_copy(update={"decided_by": (), "pending": 0})
        queue_policy = self._store.team.in_force(QueuePolicy)
        hidden = {"decided_by": (), "pending": 0, "policy": queue_policy.for_case(case_id)}
        wanted = queue_policy.decisions_needed(case_id)
        return work.model_copy(update={**hidden, "wanted": wanted})

    @requires("read")
    def completes_earlier_policy(self, actor: Actor, case_id: str) -> int:
        """Return how many reviewers decide a case if the actor is the last, unannounced; else 0.

        A case keeps the policy of its first decision, which ``work`` hides from others. If the
        policy in force asks for another number of reviewers, nothing on the page says how many
        decide this case. A reviewer from whom the policy hides the audit isn't told: they decide
        without knowing what others did.
        """
        work = self._store.team.work(case_id)
        if work.pending != 1 or work.policy is None or actor.name in work.decided_by:
            return 0
        announced = self._store.team.in_force(QueuePolicy).decisions_needed(case_id)
        if announced == work.policy.reviewers or machine_hidden(self._store, actor, case_id):
            return 0
        return work.policy.reviewers

    @requires("read")
    def next_open(
        self,
        actor: Actor,
        case_filter: CaseFilter,
        after: str | None = None,
        without: Iterable[str] = (),
    ) -> str | None:
        """Return the next case of a queue that this reviewer may decide, or None.

        The search starts after ``after``, or at the beginning. Skipped cases are last, in the order
        they were skipped.
        """
        open_cases = self.open_to(actor, case_filter)
        left_out = {*without, *([after] if after else [])}
        if after is not None:
            case_id = self._store.cases.following(after, open_cases, without=left_out)
        else:
            case_id = self._store.cases.first(open_cases, without=left_out)
        if case_id is not None:
            return case_id
        with_skipped = open_cases.model_copy(update={"skipped_too": True, "page": 1, "size": 1000})
        rows = self._store.cases.search(with_skipped).rows
        skipped = [row.id for row in rows if row.id not in left_out]
        return self._store.team.oldest_skipped(actor.name, skipped)

    @requires("read")
    def open_to(self, actor: Actor, case_filter: CaseFilter) -> CaseFilter:
        """Return the filter for the waiting cases of a queue that this reviewer may take now."""
        return self.waiting_filter(actor, case_filter).model_copy(update={"open_to": actor.name})

    @requires("read")
    def waiting_filter(self, actor: Actor, case_filter: CaseFilter) -> CaseFilter:
        """Return the filter for the cases of a queue that need a decision.

        A list of auto-accepted cases is a queue too, for spot checks. If the policy hides audit
        results, every queue includes auto-accepted cases, because it must not reveal them.
        """
        cases = CaseService(self._store)
        blind = self._store.team.strictest_shown() != "first"
        if case_filter.queue:
            # The queue has its own status of each case, whatever other queues have decided.
            states = (*IN_A_QUEUE, *(("accepted",) if blind else ()))
            return cases.blind_filter(actor, case_filter).model_copy(
                update={"states": states, "standings": (), "waits_in_queue": True}
            )
        states = ("accepted",) if case_filter.states == ("accepted",) else ()
        waiting = waiting_in(
            cases.blind_filter(actor, case_filter.model_copy(update={"states": states}))
        )
        # Also when nothing is hidden from this reviewer any more, who then waits for the others.
        return waiting.model_copy(update={"states": (*WAITING, "accepted")}) if blind else waiting

    @requires("read")
    def count_open(self, actor: Actor, case_filter: CaseFilter) -> int:
        """Count the cases of a queue that this reviewer may decide now, including skipped ones.

        Without a name, all that need a decision count: the page doesn't know yet which of the cases
        that somebody holds are this person's.
        """
        by = self.open_to if actor.name else self.waiting_filter
        open_cases = by(actor, case_filter).model_copy(update={"skipped_too": True})
        return self._store.cases.count_matching(open_cases)

    @requires("read")
    def to_adjudicate(self, actor: Actor) -> CaseFilter:
        """Return the filter for the cases whose reviewers differ and don't include this person."""
        case_filter = CaseFilter(states=("needs_adjudication",), undecided_by=actor.name)
        return CaseService(self._store).blind_filter(actor, case_filter)

    @requires("read")
    @may_require("oversee", "adjudicate cases")
    def adjudications(self, actor: Actor, size: int = 200) -> CasePage:
        """Return the cases that this person can adjudicate; none if they may not adjudicate."""
        if not actor.name or not self.access.allows(actor, "oversee"):
            return CasePage(rows=(), total=0)
        return self._store.cases.search(self.to_adjudicate(actor).model_copy(update={"size": size}))

    @requires("read")
    def explain_empty_queue(self, actor: Actor, case_filter: CaseFilter) -> EmptyQueue:
        """Return why a queue has no case for this reviewer."""
        page = self._store.cases.search(
            self.waiting_filter(actor, case_filter).model_copy(update={"page": 1, "size": 1000})
        )
        everywhere = self._store.cases.count_matching(self.waiting_filter(actor, CaseFilter()))
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

    # Entries about the work on cases, in one transaction

    @requires("decide", _ASSIGN_SELF)
    @may_require("oversee", _ASSIGN_OTHERS)
    def assign(
        self, actor: Actor, case_ids: Sequence[str], reviewers: Sequence[str], *, batch: str = ""
    ) -> int:
        """Assign cases to reviewers and return how many; ``batch`` is the batch of the entries.

        Raises:
            InputError: A name is missing or too long, or there are too many cases.
            UnknownRecord: There is no such case.
            NotAllowed: The actor's role doesn't allow it.

        """
        self._require_assigner(actor, reviewers)
        entries = self._log_for_cases(
            actor,
            case_ids,
            "assign",
            assignees=clean_names(reviewers, "a reviewer", LONGEST_REVIEWER),
            batch=batch,
        )
        return len(entries)

    @requires("decide", _ASSIGN_SELF)
    @may_require("oversee", _ASSIGN_OTHERS)
    def unassign(
        self, actor: Actor, case_ids: Sequence[str], reviewers: Sequence[str], *, batch: str = ""
    ) -> int:
        """Remove assignments and return how many cases changed.

        ``batch`` is the batch of the entries. It raises the errors of ``assign``.
        """
        self._require_assigner(actor, reviewers)
        entries = self._log_for_cases(
            actor,
            case_ids,
            "unassign",
            assignees=clean_names(reviewers, "a reviewer", LONGEST_REVIEWER),
            batch=batch,
        )
        return len(entries)

    @requires("read")
    def share_out(
        self,
        actor: Actor,
        case_ids: Iterable[str],
        reviewers: Iterable[str],
        *,
        one_each: bool = False,
    ) -> AssignmentPlan:
        """Plan which cases each reviewer gets, without assigning them.

        Every reviewer gets all cases, or with ``one_each`` the cases are divided among them.
        Existing assignments are left out, and so are cases that a reviewer has already decided.
        """
        given: dict[str, list[str]] = {" ".join(name.split()): [] for name in reviewers}
        decided: dict[str, tuple[str, ...]] = {}
        full: list[str] = []
        for case_id in case_ids:
            work = self.work(actor, case_id)
            is_waiting = work.pending or not work.decided_by
            if is_waiting and len({*work.assignees, *work.decided_by}) >= work.wanted:
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

    @requires("decide", _ASSIGN_SELF)
    @may_require("oversee", _ASSIGN_OTHERS)
    def give(self, actor: Actor, given: Mapping[str, Sequence[str]], *, back: bool = False) -> None:
        """Assign each reviewer their cases in one transaction; ``back`` removes the assignments."""
        with self._store.transaction():
            for name, cases in given.items():
                (self.unassign if back else self.assign)(actor, cases, [name])

    def _require_assigner(self, actor: Actor, reviewers: Sequence[str]) -> None:
        """Require the lead role unless the actor assigns cases only to themselves."""
        if set(reviewers) != {actor.name}:
            self.access.require(actor, "oversee", _ASSIGN_OTHERS)

    @requires("decide", "tag cases")
    def tag(
        self, actor: Actor, case_ids: Sequence[str], tags: Sequence[str], *, batch: str = ""
    ) -> int:
        """Add tags to cases and return how many cases; ``batch`` is the batch of the entries.

        Raises:
            InputError: A tag is missing or too long, or there are too many cases.
            UnknownRecord: There is no such case.

        """
        entries = self._log_for_cases(
            actor, case_ids, "tag", tags=clean_names(tags, "a tag", LONGEST_TAG), batch=batch
        )
        return len(entries)

    @requires("decide", "tag cases")
    def untag(
        self, actor: Actor, case_ids: Sequence[str], tags: Sequence[str], *, batch: str = ""
    ) -> int:
        """Remove tags from cases and return how many cases.

        ``batch`` is the batch of the entries. It raises the errors of ``tag``.
        """
        entries = self._log_for_cases(
            actor, case_ids, "untag", tags=clean_names(tags, "a tag", LONGEST_TAG), batch=batch
        )
        return len(entries)

    @requires("decide", "skip cases")
    def skip(self, actor: Actor, case_ids: Sequence[str]) -> tuple[LogEntry, ...]:
        """Release cases undecided and move them to the end of this reviewer's queue.

        Other reviewers' queues don't change. ``ReviewService.undo`` takes back one of the returned
        entries.

        Raises:
            InputError: There are too many cases.
            UnknownRecord: There is no such case.

        """
        with self._store.transaction():
            entries = self._log_for_cases(actor, case_ids, "skip")
            for case_id in case_ids:
                self._store.team.release(case_id, actor.name)
        return entries

    @requires("decide", "comment on cases")
    def comment(self, actor: Actor, case_id: str, text: str) -> LogEntry:
        """Add a comment to a case.

        Raises:
            InputError: The comment is empty or too long.
            UnknownRecord: There is no such case.

        """
        text = text.strip()
        if not text or len(text) > LONGEST_COMMENT:
            raise InputError(
                f"a comment must have 1 to {LONGEST_COMMENT:,} characters",
                hint="Type a comment, or shorten it.",
                field="comment",
            )
        return self._store.decisions.append(entry_on_case(actor, case_id, "comment", note=text))

    @requires("read")
    def comments(self, actor: Actor, case_id: str) -> tuple[tuple[str, Decision], ...]:
        """Return the comments on a case with their times, oldest first.

        Others' comments are left out until all decisions of a shared case are made.
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
        batch: str = "",
    ) -> tuple[LogEntry, ...]:
        unique_ids = list(dict.fromkeys(case_ids))
        if len(unique_ids) > MOST_AT_ONCE:
            raise InputError(
                f"too many cases ({len(unique_ids):,})",
                hint=f"Choose at most {MOST_AT_ONCE:,} at a time.",
            )
        with self._store.transaction():
            return tuple(
                self._store.decisions.append(
                    entry_on_case(
                        actor, case_id, kind, assignees=assignees, tags=tags, extra=in_batch(batch)
                    )
                )
                for case_id in unique_ids
            )

    # Policies, rubrics, label types, views

    @requires("oversee", "set policy, rubric and label types")
    def put_in_force(self, actor: Actor, record: T) -> T:
        """Put a policy, a rubric or label types in force.

        Cases that reviewers have started keep the earlier version. An unchanged record isn't stored
        again, so that each version differs from the one before.

        Raises:
            NotAllowed: The actor isn't a lead.

        """
        if isinstance(record, QueuePolicy):
            assert_compatible(self._store, record)
        current = self._store.team.in_force(type(record))
        if record.model_copy(update={"version": current.version}) == current:
            return current
        return self._store.team.put_in_force(name_of(actor), record)

    @requires("read")
    def machine_hidden(self, actor: Actor, case_id: str) -> bool:
        """Return whether the machine's verdict on a case is hidden from this reviewer now.

        Raises:
            UnknownRecord: There is no such case.

        """
        return machine_hidden(self._store, actor, case_id)

    @requires("decide", "save views of the queue")
    def save_view(
        self, actor: Actor, name: str, parameters: dict[str, str], *, shared: bool = False
    ) -> None:
        """Save a filter of the queue under a name, for oneself or the whole team.

        Raises:
            InputError: The name is missing or too long.
            NotAllowed: The actor's role doesn't allow decisions.

        """
        (title,) = clean_names([name], "a view", LONGEST_TAG)
        owner = "" if shared else name_of(actor)
        self._store.team.save_view(
            name_of(actor), SavedView(name=title, owner=owner, parameters=parameters)
        )

    @requires("decide", "save views of the queue")
    def remove_view(self, actor: Actor, view: SavedView) -> None:
        """Remove a saved view.

        Raises:
            NotAllowed: The actor's role doesn't allow decisions.

        """
        self._store.team.save_view(name_of(actor), view.model_copy(update={"removed": True}))

    # Progress

    def reviewers(self) -> tuple[str, ...]:
        """Return the names of everyone who has decided, skipped or been assigned a case, sorted."""
        names = {
            name
            for kind in ("decided", "assigned", "skipped")
            for name in self._store.team.count_cases(kind)
        }
        # A name in brackets stands for a redacted entry (store/reviews/states.py).
        return tuple(sorted((name for name in names if not name.startswith("(")), key=str.casefold))

    def loads(self) -> dict[str, int]:
        """Count each reviewer's assigned cases that aren't settled, as the queue lists them."""
        assigned = self._store.team.count_cases("assigned", undecided=True)
        return {name: assigned.get(name, 0) for name in self.reviewers()}


def clean_names(texts: Sequence[str], noun: str, longest: int) -> tuple[str, ...]:
    """Return names without superfluous blanks, each once.

    Args:
        texts: The names as typed.
        noun: What they name, for the error: "a tag".
        longest: The longest name, in characters.

    Raises:
        InputError: There is none, or one is too long.

    """
    names = tuple(dict.fromkeys(" ".join(name.split()) for name in texts if name.strip()))
    if not names:
        raise InputError(f"{noun} is missing", hint=f"Enter {noun}.")
    for name in names:
        # SQLite's text functions stop at a null byte (sqlite.org/nulinstr.html).
        if len(name) > longest or "\x00" in name:
            raise InputError(
                f"the name of {noun} is too long or can't be stored",
                hint=f"Use up to {longest} characters.",
            )
    return names

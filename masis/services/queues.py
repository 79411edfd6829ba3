"""Named queues: set them up, see which cases they hold, and who may decide in them."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence

from masis.errors import Conflict, InputError
from masis.schema.actor import Actor
from masis.schema.base import Record
from masis.schema.team import LabelTypes, QueuePolicy, Rubric
from masis.services.access import Service, requires
from masis.services.cases import CaseService, machine_hidden
from masis.services.queue_rules import (
    assert_filters_fit,
    label_types_of,
    left_out,
    member_filter,
    member_queue,
)
from masis.services.records import (
    FIRST_QUEUE_NAME,
    CaseFilter,
    ReviewQueue,
    clean_queue_name,
)
from masis.services.team import TeamService
from masis.store.audits.conditions import is_filled_by_audit

SET_UP_QUEUES = "set up named queues"
_LONGEST_ID = 50


class QueuePreview(Record):
    """What a filter would hold as a queue.

    Attributes:
        cases: How many cases it holds now.
        common: How many of them each other queue holds too, by its name.
        left_out: The fields of the filter that can't fill a queue.
        whole_words: Whether it has words to search. In a queue they must be whole words of the
            case; a list also finds the beginning of the last word, and notes.

    """

    cases: int
    common: dict[str, int]
    left_out: tuple[str, ...]
    whole_words: bool = False


class QueueFigures(Record):
    """A named queue with its figures for one person.

    Attributes:
        queue: The queue.
        cases: The cases that its filter holds now.
        left: Those that still wait for decisions in it.
        own_left: Those that the person can decide now.
        seconds: The person's median time for a decision in it; None without a decision.

    """

    queue: ReviewQueue
    cases: int
    left: int
    own_left: int
    seconds: float | None

    @property
    def seconds_left(self) -> float | None:
        """How long the person needs for their cases at that pace."""
        return None if self.seconds is None else self.seconds * self.own_left


class QueueService(Service):
    """The use cases of named queues. ``CaseFilter.queue`` lists the cases of one."""

    @requires("read")
    def all(self, actor: Actor, *, archived: bool = False) -> tuple[ReviewQueue, ...]:
        """Return the named queues, oldest first; ``archived`` includes those that are closed."""
        return tuple(queue for queue in self._store.team.queues() if archived or not queue.archived)

    @requires("read")
    def get(self, actor: Actor, name: str) -> ReviewQueue:
        """Return a queue by its id or its name.

        Raises:
            UnknownRecord: There is no such queue.

        """
        return self._store.team.queue(name)

    @requires("read")
    def of_case(self, actor: Actor, case_id: str) -> tuple[ReviewQueue, ...]:
        """Return the queues that hold a case.

        Those that the audit's results fill are left out as long as these are hidden from the actor.

        Raises:
            UnknownRecord: There is no such case.

        """
        queues = self.all(actor)
        if queues and machine_hidden(self._store, actor, case_id):
            queues = tuple(queue for queue in queues if not is_filled_by_audit(queue.cases))
        return self._store.team.queues_of_case(case_id, queues)

    @requires("read")
    def rubric(self, actor: Actor, name: str = "") -> Rubric:
        """Return the rubric of a queue: its own, or else the team's.

        Raises:
            UnknownRecord: There is no such queue.

        """
        own = self.get(actor, name).rubric if clean_queue_name(name) else None
        return own or self._store.team.in_force(Rubric)

    @requires("read")
    def label_types(self, actor: Actor, name: str = "") -> LabelTypes:
        """Return the label types that a queue offers.

        Raises:
            UnknownRecord: There is no such queue.

        """
        types = self._store.team.in_force(LabelTypes)
        return label_types_of(self.get(actor, name), types) if clean_queue_name(name) else types

    @requires("read")
    def preview(self, actor: Actor, case_filter: CaseFilter, queue_id: str = "") -> QueuePreview:
        """Count the cases that a filter would hold, and those that other queues hold too.

        ``queue_id`` is the queue that the filter is for, if there is one.
        """
        kept = member_filter(case_filter)
        draft = ReviewQueue(id="draft", name="draft", cases=kept)
        blind = CaseService(self._store, self.access).hides_machine_from(actor)
        if blind and is_filled_by_audit(kept):
            raise InputError(
                "can't be filled by results of the audit, because a queue hides them",
                hint="Leave out the filters by issue, severity, model and score.",
                field="cases",
            )
        team = self._store.team
        common = {
            queue.name: count
            for queue in self.all(actor)
            if queue.id != queue_id and (count := team.count_common(draft, queue, actor.name))
        }
        return QueuePreview(
            cases=team.count_common(draft, draft, actor.name),
            common=common,
            left_out=left_out(case_filter),
            whole_words=bool(kept.text.strip()),
        )

    @requires("read")
    def figures(self, actor: Actor, name: str) -> QueueFigures:
        """Return a queue with its figures for this person.

        Raises:
            UnknownRecord: There is no such queue.

        """
        queue, team = self.get(actor, name), TeamService(self._store, self.access)
        in_queue = CaseFilter(queue=queue.id, viewer=actor.name)
        return QueueFigures(
            queue=queue,
            cases=self._store.cases.count_matching(in_queue),
            left=self._store.cases.count_matching(team.waiting_filter(actor, in_queue)),
            own_left=0 if queue.archived else team.count_open(actor, in_queue),
            seconds=self._store.team.median_seconds(queue.id, actor.name),
        )

    @requires("read")
    def has_case(self, actor: Actor, name: str, case_id: str) -> bool:
        """Return whether a queue holds a case. If the actor may not know it, it doesn't.

        Raises:
            UnknownRecord: There is no such case or queue.

        """
        queue = self.get(actor, name)
        if self._is_hidden_in(actor, queue, case_id):
            return False
        return bool(self._store.team.queues_of_case(case_id, [queue]))

    @requires("read")
    def has_waiting(self, actor: Actor, name: str, case_id: str) -> bool:
        """Return whether a case still needs decisions in a queue that isn't archived.

        If the actor may not know it, it doesn't.

        Raises:
            UnknownRecord: There is no such case or queue.

        """
        queue = self.get(actor, name)
        if queue.archived or self._is_hidden_in(actor, queue, case_id):
            return False
        return self._store.team.waits_in(case_id, queue)

    def _is_hidden_in(self, actor: Actor, queue: ReviewQueue, case_id: str) -> bool:
        """Return whether to find a case in a queue would reveal its hidden audit."""
        return is_filled_by_audit(queue.cases) and machine_hidden(self._store, actor, case_id)

    @requires("read")
    def require_member(self, actor: Actor, name: str) -> None:
        """Raise NotAllowed if a queue has people, and the actor isn't one of them.

        Raises:
            UnknownRecord: There is no such queue.

        """
        member_queue(self._store, actor, name)

    @requires("oversee", SET_UP_QUEUES)
    def create(self, actor: Actor, name: str, case_filter: CaseFilter) -> ReviewQueue:
        """Create a queue with the cases that a filter holds, under the team's policy.

        The parts of the filter that decisions change, such as the status, are left out.

        Raises:
            NotAllowed: The actor isn't a lead.
            InputError: The name is missing or taken, or the audit's results can't fill a queue now.

        """
        with self._store.transaction():
            known = self._store.team.queues()
            title = _check_queue_name(name, known)
            policy = self._store.team.in_force(QueuePolicy)
            queue = ReviewQueue(
                id=_new_id(title, known),
                name=title,
                cases=member_filter(case_filter),
                policy=policy.model_copy(update={"share": 1.0, "version": 0}),
            )
            return self._put(actor, queue)

    @requires("oversee", SET_UP_QUEUES)
    def change(self, actor: Actor, queue: ReviewQueue) -> ReviewQueue:
        """Put a changed queue in force, and return it with its version.

        Cases that its people have started to decide keep the policy of their first decision. An
        unchanged queue isn't stored again.

        Raises:
            NotAllowed: The actor isn't a lead.
            UnknownRecord: There is no such queue.
            InputError: The name is missing or taken, a label type doesn't exist, or the filter and
                the policies of the queues don't go together.
            Conflict: Somebody else changed the queue since this version of it was read.

        """
        with self._store.transaction():
            before = self.get(actor, queue.id)
            if queue == before:
                return before
            if queue.version != before.version:
                raise Conflict(
                    f"{before.name!r} was changed in the meantime: version {before.version} is in"
                    f" force, and your change is to version {queue.version}. Look at it and change"
                    " it again."
                )
            known = () if queue.archived else self._store.team.queues()
            name = _check_queue_name(queue.name, [row for row in known if row.id != queue.id])
            queue = queue.model_copy(update={"name": name})
            types = self._store.team.in_force(LabelTypes)
            # The team may have removed types that the queue offered before.
            known_types = {*types.names, *before.label_types}
            if unknown := [name for name in queue.label_types if name not in known_types]:
                raise InputError(
                    f"{unknown[0]!r} isn't one of the team's label types",
                    hint=f"Use some of {', '.join(types.names)}.",
                    field="label_types",
                )
            return before if queue == before else self._put(actor, queue)

    @requires("oversee", SET_UP_QUEUES)
    def archive(self, actor: Actor, name: str, *, restore: bool = False) -> ReviewQueue:
        """Archive a queue, or with ``restore`` open it again. Its decisions stay.

        Raises:
            NotAllowed: The actor isn't a lead.
            UnknownRecord: There is no such queue.
            InputError: It's the first queue.

        """
        if not clean_queue_name(name):
            raise InputError(
                f"{FIRST_QUEUE_NAME!r} can't be archived",
                hint="It has every case. Name another queue.",
                field="queue",
            )
        with self._store.transaction():
            queue = self.get(actor, name)
            return self.change(actor, queue.model_copy(update={"archived": not restore}))

    def _put(self, actor: Actor, queue: ReviewQueue) -> ReviewQueue:
        if not queue.archived:
            others = [known for known in self.all(actor) if known.id != queue.id]
            assert_filters_fit(self._store, (*others, queue))
        return self._store.team.put_queue(actor.name or "unnamed", queue)


def _check_queue_name(name: str, others: Sequence[ReviewQueue]) -> str:
    title = " ".join(name.split())
    if not title or len(title) > 60 or "\x00" in title:
        raise InputError("needs a name of 1 to 60 characters", hint="Type a name.", field="name")
    unarchived = [queue for queue in others if not queue.archived]
    # A queue is found by its id before any name.
    taken = [FIRST_QUEUE_NAME, *(word for queue in unarchived for word in (queue.name, queue.id))]
    is_id = any(queue.id == title for queue in others)
    if is_id or title.casefold() in map(str.casefold, taken):
        raise InputError(
            f"there is a queue {title!r} already", hint="Use another name.", field="name"
        )
    return title


def _new_id(name: str, known: Sequence[ReviewQueue]) -> str:
    """Return an id for a queue: its name in ASCII, with a number if that's taken or empty.

    Another queue's name is taken too, because a queue is found by its id before any name.
    """
    names = {queue.name.casefold() for queue in known} - {name.casefold()}
    taken = names | {queue.id for queue in known}
    ascii_name = unicodedata.normalize("NFKD", name).encode("ascii", "ignore").decode()
    base = re.sub(r"[^a-z0-9]+", "-", ascii_name.lower()).strip("-")[:_LONGEST_ID] or "queue"
    number, queue_id = 1, base
    while queue_id in taken:
        number += 1
        queue_id = f"{base}-{number}"
    return queue_id

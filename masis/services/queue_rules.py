"""The rules of named queues: what can fill one, what it offers, and who may decide in it."""

from __future__ import annotations

from collections.abc import Iterable

from masis.errors import InputError, NotAllowed
from masis.schema.actor import Actor
from masis.schema.team import LabelTypes, QueuePolicy
from masis.services.cases import machine_hidden
from masis.services.records import (
    FIRST_QUEUE_NAME,
    MEMBER_FIELDS,
    CaseFilter,
    ReviewQueue,
    clean_queue_name,
)
from masis.store import Store
from masis.store.audits.conditions import is_filled_by_audit
from masis.store.reviews.visibility import UNDECIDED


def member_filter(case_filter: CaseFilter) -> CaseFilter:
    """Return the parts of a filter that can fill a queue, with its order."""
    kept = {
        name: value
        for name in (*MEMBER_FIELDS, "order", "seed")
        if (value := getattr(case_filter, name)) != CaseFilter.model_fields[name].default
    }
    return CaseFilter(**kept)


def left_out(case_filter: CaseFilter) -> tuple[str, ...]:
    """Return the fields of a filter that can't fill a queue."""
    given = case_filter.model_dump(exclude_defaults=True)
    listing = ("order", "seed", "page", "size")
    return tuple(name for name in given if name not in (*MEMBER_FIELDS, *listing))


def assert_compatible(store: Store, policy: QueuePolicy) -> None:
    """Raise InputError if a policy of the team hides results of the audit that fill a queue."""
    if policy.machine != "first":
        queues = [queue for queue in store.team.queues() if not queue.archived]
        assert_filters_fit(store, queues, blind=True)


def assert_filters_fit(store: Store, queues: Iterable[ReviewQueue], *, blind: bool = False) -> None:
    """Raise InputError if a queue is filled by results of the audit that another one hides.

    To be in the first queue would reveal them.
    """
    queues = [*queues]
    filled = [queue.name for queue in queues if is_filled_by_audit(queue.cases)]
    hiding = [queue.name for queue in queues if queue.policy.machine != "first"]
    if blind or store.team.in_force(QueuePolicy).machine != "first":
        hiding.append(FIRST_QUEUE_NAME)
    if filled and hiding:
        raise InputError(
            f"the queue {filled[0]!r} is filled by results of the audit, and {hiding[0]!r} hides"
            " them. A case that is in both would reveal them",
            hint="Fill the queue by field, data set, tag or words, or show the audit at once.",
            field="policy",
        )


def label_types_of(queue: ReviewQueue, types: LabelTypes) -> LabelTypes:
    """Return the team's label types that a queue offers; all if it chooses none that exist."""
    offered = tuple(kind for kind in types.types if kind.name in queue.label_types)
    return types.model_copy(update={"types": offered or types.types})


def member_queue(store: Store, actor: Actor, name: str) -> ReviewQueue | None:
    """Return a named queue for one of its people, or None for the first queue.

    Raises:
        NotAllowed: The queue has people, and the actor isn't one of them.
        UnknownRecord: There is no such queue.

    """
    if not clean_queue_name(name):
        return None
    queue = store.team.queue(name)
    if not queue.admits(actor.name):
        raise NotAllowed(
            f"You aren't one of the people of the queue {queue.name!r}. A lead can add you on the"
            " Team page, under Queues."
        )
    return queue


def assert_member(store: Store, actor: Actor, case_id: str, name: str) -> ReviewQueue | None:
    """Return the named queue in which a case is decided, or None for the first queue.

    Raises:
        NotAllowed: The case's queues have people, and the actor isn't one of them. Signed-in leads
            may change a verdict that its people have settled.
        UnknownRecord: There is no such case or queue.

    """
    if (queue := member_queue(store, actor, name)) is not None:
        return queue
    closed = [
        queue
        for queue in store.team.queues()
        if not queue.archived and not queue.admits(actor.name)
    ]
    if closed and machine_hidden(store, actor, case_id):
        closed = [queue for queue in closed if not is_filled_by_audit(queue.cases)]
    # While it waits in the first queue, under a policy of its own, others are needed there.
    state = store.cases.summary(case_id).state
    is_over = state not in UNDECIDED or state == "needs_adjudication"
    for queue in closed:
        if store.team.has_settled(case_id, queue):
            if is_over and not actor.may("oversee"):
                raise NotAllowed(
                    f"The queue {queue.name!r} has decided case {case_id!r}, and you aren't one of"
                    " its people. A lead can add you on the Team page, under Queues, or change the"
                    " verdict."
                )
        elif store.team.waits_in(case_id, queue):
            raise NotAllowed(
                f"Case {case_id!r} waits in the queue {queue.name!r}, and you aren't one of its"
                " people. A lead can add you on the Team page, under Queues."
            )
    return None

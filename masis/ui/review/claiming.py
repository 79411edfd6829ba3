"""Claiming the open case for a reviewer, and the reasons why it can't be decided here."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from masis.errors import CaseHeld, NotAllowed
from masis.schema.rules import Tone
from masis.schema.team import QueuePolicy
from masis.schema.wording import count_noun
from masis.services import Actor, CaseView, Workbench
from masis.services.cases import WAITING
from masis.services.records import ReviewQueue
from masis.views.words import DECIDED


class ClaimNotice(NamedTuple):
    """A notice about other people's work on a case.

    ``closed`` means that the case can't be decided here, ``adjudicate`` that it can be adjudicated
    on the Team page.
    """

    text: str
    tone: Tone = "calm"
    closed: bool = False
    adjudicate: bool = False


def claim_notice(
    workbench: Workbench,
    actor: Actor,
    view: CaseView,
    claim: Callable[[str], object],
    queue: str = "",
) -> ClaimNotice | None:
    """Claim the case for the reviewer, with ``claim``, if it waits for their decision.

    ``queue`` is the id of the named queue from which it was opened.

    Returns:
        A notice if other people work on the case or it can't be decided here, else None.

    """
    case_id, me = view.case.id, actor.name
    if view.state == "redacted":
        return ClaimNotice("This case is redacted. There is nothing left to decide.", closed=True)
    if view.state == "planted":
        return ClaimNotice(
            "This case has a planted fault. Decisions on it only measure reviewers."
            if view.planted is not None
            else "This copy was used to double-check a label. Its decision is final.",
            closed=True,
        )
    if view.state == "superseded":
        return ClaimNotice(
            "A newer version has replaced this case. Decide that one instead.", closed=True
        )
    named = workbench.queues.get(actor, queue) if queue else None
    if named is not None and (gone := _gone_from(workbench, actor, named, case_id)):
        return ClaimNotice(gone, "warn", closed=True)
    waits_there = named is not None and workbench.queues.has_waiting(actor, queue, case_id)
    if view.state == "needs_adjudication" and not waits_there:
        text = "All reviewers have decided this case, but they disagree. It waits for adjudication"
        if me and me in workbench.team.work(actor, case_id).decided_by:
            text += " by somebody else"
        return ClaimNotice(f"{text}.", closed=True, adjudicate=True)
    work = workbench.team.work(actor, case_id, named.id if named else None)
    policy = work.policy
    if named is None:
        policy = policy or workbench.store.team.in_force(QueuePolicy).for_case(case_id)
    # whether others have decided stays hidden, so that it says this to each of them
    shared = (
        ClaimNotice(
            f"{policy.reviewers} reviewers decide this case. Once all have decided, no decision on"
            " it can be undone."
        )
        if policy
        else None
    )
    if work.policy is not None and work.decided_by and not work.pending:
        reviewers = (
            " and ".join(work.decided_by)
            if len(work.decided_by) < 3
            else f"{len(work.decided_by)} reviewers"
        )
        text = (
            f"Escalated by {reviewers}. It waits for a new version with more evidence, or for an"
            " adjudication."
            if view.state == "escalated"
            else f"Decided by {reviewers}. This case needs no more decisions. Only an adjudication"
            " can change its verdict."
        )
        final = view.decision.decision if view.decision else None
        if final is not None and final.kind == "adjudication" and final.verdict is not None:
            reason = final.reason.rstrip(".") or "no reason given"
            as_final = "" if final.verdict == "escalate" else " as final verdict"
            text = f"{DECIDED[final.verdict].text} by {final.reviewer}{as_final}: {reason}. {text}"
        return ClaimNotice(text, closed=True, adjudicate=True)
    if view.state not in WAITING and not waits_there:
        return None
    if not me:
        return shared
    if me in work.decided_by:
        others = count_noun(work.pending, "other reviewer")
        return ClaimNotice(
            f"Your decision is recorded. You can correct it until {others} have decided."
        )
    try:
        claim(case_id)
    except NotAllowed as refused:
        if workbench.access.allows(actor, "decide"):  # but not in this queue
            return ClaimNotice(str(refused), "warn", closed=True)
        return shared
    except CaseHeld as held:
        return ClaimNotice(str(held), "warn", closed=True)
    if work.assignees and me not in work.assignees:
        return ClaimNotice(
            f"Assigned to {', '.join(work.assignees)}. {shared.text if shared else ''}".rstrip()
        )
    return shared


def _gone_from(workbench: Workbench, actor: Actor, queue: ReviewQueue, case_id: str) -> str:
    """Say why a case can't be decided in a queue any more; "" if it can."""
    if queue.archived:
        return f"The queue “{queue.name}” is archived. Open the case from another queue."
    if not workbench.queues.has_case(actor, queue.id, case_id):
        return (
            f"This case isn't in the queue “{queue.name}”. Its filter may have changed. Open the"
            " case from another queue."
        )
    return ""

"""Taking the case that is open, and saying why it can't be decided here: held, settled by others,
redacted.
"""

from __future__ import annotations

from typing import NamedTuple

import streamlit as st

from masis.errors import CaseHeld, NotAllowed
from masis.schema.team import QueuePolicy
from masis.schema.wording import count_noun
from masis.services import CaseView, Workbench
from masis.services.cases import WAITING
from masis.ui.shell.reviewer import TAKEN_CASE_KEY, actor, reviewer
from masis.ui.team.taking import extend, leave
from masis.views.words import DECIDED, Tone


class ClaimNotice(NamedTuple):
    """What the panel says about the work of others on a case; ``closed`` where there is nothing
    left to decide here.

    ``adjudicate`` where the page Team is the place to go on.
    """

    text: str
    tone: Tone = "calm"
    closed: bool = False
    adjudicate: bool = False


def claim_case(workbench: Workbench, view: CaseView) -> ClaimNotice | None:
    """Take the case that is open for decision; return who else has it, or why it is not to be
    decided here.
    """
    case_id, me = view.case.id, actor().name
    if st.session_state.get(TAKEN_CASE_KEY) != case_id:
        leave(workbench)
    if view.state == "redacted":
        return ClaimNotice("This case is redacted: there is nothing left to decide.", closed=True)
    if view.state == "planted":
        return ClaimNotice(
            "A planted fault: what was decided is measured, and nothing is left to decide.",
            closed=True,
        )
    if view.state == "superseded":
        return ClaimNotice(
            "A newer version took the place of this case: decide about that one.", closed=True
        )
    if view.state == "needs_adjudication":
        return ClaimNotice(
            "All decisions on this case are made, and they differ: it waits for adjudication.",
            closed=True,
            adjudicate=True,
        )
    work = workbench.team.work(actor(), case_id)
    policy = work.policy or workbench.store.team.in_force(QueuePolicy).for_case(case_id)
    shared = ClaimNotice(f"{policy.reviewers} reviewers decide this case.") if policy else None
    if work.policy is not None and work.decided_by and not work.pending:
        who = (
            " and ".join(work.decided_by)
            if len(work.decided_by) < 3
            else f"{len(work.decided_by)} reviewers"
        )
        says = (
            f"Decided by {who}: every decision that this case wants is made. An adjudication"
            " changes its verdict."
        )
        final = view.decision.decision if view.decision else None
        if final is not None and final.kind == "adjudication" and final.verdict is not None:
            why = final.reason.rstrip(".") or "no reason given"
            as_final = "" if final.verdict == "escalate" else " as final verdict"
            says = f"{DECIDED[final.verdict].text} by {final.reviewer}{as_final}: {why}. {says}"
        return ClaimNotice(says, closed=True, adjudicate=True)
    if view.state not in WAITING:
        return None
    if reviewer() is None:
        return shared
    if me in work.decided_by:
        others = count_noun(work.pending, "other reviewer")
        return ClaimNotice(
            f"Your decision is recorded. You can correct yours until {others} decided, too."
        )
    try:
        extend(workbench, case_id)
    except NotAllowed:  # who may only read takes nothing
        return shared
    except CaseHeld as held:
        st.session_state.pop(TAKEN_CASE_KEY, None)
        return ClaimNotice(str(held), "warn", closed=True)
    if work.assignees and me not in work.assignees:
        return ClaimNotice(
            f"Assigned to {', '.join(work.assignees)}. {shared.text if shared else ''}".rstrip()
        )
    return shared

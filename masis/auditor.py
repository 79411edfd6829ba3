"""Audits as values: a case goes in, a run comes out; no store, no page.

Who fills the roles follows from the model strings in the settings. What these functions take and return can be pickled,
so that worker processes can do the work.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterable, Sequence

from masis import loop
from masis.errors import SettingsError
from masis.offline.critic import OfflineCritic
from masis.offline.drafter import OfflineDrafter
from masis.offline.evaluator import OfflineEvaluator
from masis.offline.model import load as load_weights
from masis.offline.reviser import OfflineReviser
from masis.offline.verifier import OfflineVerifier
from masis.schema.audit import CitationAudit, Claim, ClaimCheck
from masis.schema.case import Case, Evidence
from masis.schema.run import Event, Run
from masis.settings import OFFLINE, Settings
from masis.steps import citations
from masis.steps.claims import one_check_each
from masis.steps.conduct import begun


def roles_for(settings: Settings) -> loop.Roles:
    """The five roles as the settings name them. Raises SettingsError for a model that nothing here answers to."""
    models = settings.models()
    for role, model in models.items():
        if model != OFFLINE:
            raise SettingsError(f"{role}: there is no model {model!r} in this version. Use {OFFLINE!r}.")
    return loop.Roles(
        drafter=OfflineDrafter(),
        verifier=OfflineVerifier(),
        critic=OfflineCritic(),
        reviser=OfflineReviser(),
        evaluator=OfflineEvaluator(),
        models=dict(models),
        offline_weights=load_weights().version,
    )


def run_audit(case: Case, settings: Settings | None = None, on_event: Callable[[Event], None] | None = None) -> Run:
    """Audit one case, iteration by iteration, and return the run.

    ``on_event`` is called with each event as it happens. A step that fails is recorded on the run, never raised.
    """
    settings = settings or Settings()
    work = loop.audit(case, roles_for(settings), settings, run_id=loop.new_run_id(), case_digest=case.digest())
    return drained(work, on_event)


async def run_audit_async(
    case: Case, settings: Settings | None = None, on_event: Callable[[Event], None] | None = None
) -> Run:
    """``run_audit`` for code that is async: the audit runs on a thread of its own, as many at once as are awaited.

    ``on_event`` is called on the event loop. Cancelling the task stops the audit, which makes no further call.
    """
    settings = settings or Settings()
    here, stop = asyncio.get_running_loop(), threading.Event()

    def tell(event: Event) -> None:
        if on_event is not None and not stop.is_set():
            here.call_soon_threadsafe(on_event, event)

    def audit() -> Run:
        work = loop.audit(
            case,
            roles_for(settings),
            settings,
            run_id=loop.new_run_id(),
            case_digest=case.digest(),
            cancelled=stop.is_set,
        )
        return drained(work, tell)

    try:
        return await asyncio.wrap_future(begun(audit, "audit"))
    finally:
        stop.set()


def drained(work: loop.Audit, on_event: Callable[[Event], None] | None = None) -> Run:
    """Let an audit run to its end, handing each event on."""
    while True:
        try:
            event = next(work)
        except StopIteration as finished:
            run: Run = finished.value
            return run
        if on_event is not None:
            on_event(event)


def verify_claims(
    claims: Iterable[str | Claim], evidence: Sequence[Evidence], settings: Settings | None = None
) -> list[ClaimCheck]:
    """One check for each claim, in order; markers in a claim count as its citations."""
    asked = [claim if isinstance(claim, Claim) else claim_of(claim, evidence) for claim in claims]
    verifier = roles_for(settings or Settings()).verifier
    return list(one_check_each(asked, verifier.verify(asked, evidence)))


def claim_of(text: str, evidence: Sequence[Evidence]) -> Claim:
    """A sentence given alone, with the markers in it."""
    found = citations.audit_citations(text, evidence).citations
    return Claim(
        text=text,
        markers=tuple(dict.fromkeys((c.marker_start, c.marker_end) for c in found)),
        cited=tuple(dict.fromkeys(c.evidence_id for c in found if c.evidence_id is not None)),
    )


def audit_citations(answer: str, evidence: Iterable[Evidence], settings: Settings | None = None) -> CitationAudit:
    """Which markers point at real evidence, and which sentences carry none. Code alone, no model."""
    chosen = settings or Settings()
    return citations.audit_citations(
        answer,
        tuple(evidence),
        mode=chosen.citation_mode,
        invalid_penalty=chosen.invalid_citation_penalty,
        uncited_penalty=chosen.uncited_claim_penalty,
    )

"""Audits as values: a case goes in, a run comes out; no store, no page.

Who fills the roles follows from the model strings in the settings. What these functions take and
return can be pickled, so that worker processes can do the work.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from functools import partial
from typing import Any, TypeAlias

from masis.api.roles import build_roles, uses_models
from masis.audit import citations as citation_engine
from masis.audit import loop
from masis.audit.claims import one_check_each
from masis.audit.control.concurrency import cancellable, start_audit, start_in_thread
from masis.errors import InputError, StepError
from masis.observers import observation
from masis.schema.audit import CitationAudit, Claim, ClaimCheck
from masis.schema.case import Case, Evidence, GivenCitation, case_of, evidence_of
from masis.schema.explain import kind_of
from masis.schema.reading import FieldMap
from masis.schema.run import Event, Run
from masis.settings import Settings

Chunk: TypeAlias = Any
"""A chunk of evidence, a mapping with ``id`` and ``text``, or a text, or a document of LangChain or
LlamaIndex.
"""


def run_audit(
    case: Case | Mapping[str, Any],
    settings: Settings | None = None,
    on_event: Callable[[Event], None] | None = None,
    *,
    map: FieldMap | None = None,  # noqa: A002 (the public name)
) -> Run:
    """Audit one case, iteration by iteration, and return the run.

    ``on_event`` is called with each event as it happens. A step that fails is recorded on the run,
    never raised. ``map`` says which key of a mapping holds a field where the names differ:
    ``{"answer": "response"}``.

    Raises InputError where ``case`` is none, and no mapping of a case's fields.
    """
    case = case_of(case, names=map)
    work = audit_events(case, chosen_settings(settings))
    return observation.run_to_completion(work, on_event, observation.AuditStart(case))


def audit_events(
    case: Case, settings: Settings, cancelled: Callable[[], bool] = lambda: False
) -> Generator[Event, None, Run]:
    """Return the audit of a case as it is worked through, event by event."""
    run_id, digest = loop.new_run_id(), case.digest()
    return loop.audit(
        case,
        build_roles(settings),
        settings,
        run_id=run_id,
        case_digest=digest,
        cancelled=cancelled,
    )


async def run_audit_async(
    case: Case | Mapping[str, Any],
    settings: Settings | None = None,
    on_event: Callable[[Event], None] | None = None,
    *,
    map: FieldMap | None = None,  # noqa: A002 (the public name)
) -> Run:
    """``run_audit`` for code that is async: up to 64 at once where they wait for models, else some
    that compute.

    Further ones wait for their turn. ``on_event`` is called on the event loop. Cancelling the task
    stops the audit, which makes no further call.
    """
    audited, chosen = case_of(case, names=map), chosen_settings(settings)
    here = asyncio.get_running_loop()

    def audit(cancelled: Callable[[], bool]) -> Run:
        def tell(event: Event) -> None:
            if on_event is not None and not cancelled():
                here.call_soon_threadsafe(on_event, event)

        return observation.run_to_completion(
            audit_events(audited, chosen, cancelled), tell, observation.AuditStart(audited)
        )

    return await cancellable(audit, partial(start_audit, calls_models=uses_models(chosen)))


def verify_claims(
    claims: Iterable[str | Claim],
    evidence: Iterable[Chunk],
    settings: Settings | None = None,
    *,
    cancelled: Callable[[], bool] = lambda: False,
) -> list[ClaimCheck]:
    """One check for each claim, in order; markers in a claim count as its citations.

    ``cancelled`` is asked as it goes on. Raises StepError where it says so, and InputError for what
    is no list of claims or of chunks.
    """
    if isinstance(claims, str | bytes | Claim) or not isinstance(claims, Iterable):
        what = "one text" if isinstance(claims, str) else kind_of(claims)
        raise InputError(
            f"is {what}, not a list of claims", hint="Put it into a list.", field="claims"
        )
    chunks = evidence_of(evidence)
    asked = [
        (
            claim
            if isinstance(claim, Claim)
            else claim_of(text_given(claim, f"claims[{place}]"), chunks)
        )
        for place, claim in enumerate(claims)
    ]
    roles = build_roles(chosen_settings(settings))
    ended = threading.Event()
    future = start_in_thread(lambda: roles.verifier.verify(asked, chunks), "claims", then=ended.set)
    try:
        while not cancelled():
            if ended.wait(_CANCEL_POLL_S):
                return list(one_check_each(asked, future.result()))
        raise StepError("The check of the claims was stopped before its end.")
    finally:
        roles.control.cancellation.cancel()


_CANCEL_POLL_S = 0.2


def claim_of(text: str, evidence: Sequence[Evidence]) -> Claim:
    """A sentence given alone, with the markers in it."""
    found = citation_engine.audit_citations(text, evidence).citations
    return Claim(
        text=text,
        markers=tuple(dict.fromkeys((c.marker_start, c.marker_end) for c in found)),
        cited=tuple(dict.fromkeys(c.evidence_id for c in found if c.evidence_id is not None)),
    )


def audit_citations(
    answer: str,
    evidence: Iterable[Chunk],
    settings: Settings | None = None,
    *,
    citations: Sequence[GivenCitation] = (),
) -> CitationAudit:
    """Which markers point at real evidence, and which sentences carry none. Code alone, no model.

    ``citations`` are those that came beside the answer (``Case.citations``). Raises InputError for
    what is no list of chunks.
    """
    chosen = chosen_settings(settings)
    return citation_engine.audit_citations(
        text_given(answer, "answer"),
        evidence_of(evidence),
        mode=chosen.citation_mode,
        invalid_penalty=chosen.invalid_citation_penalty,
        uncited_penalty=chosen.uncited_claim_penalty,
        given=citations,
    )


def citations_kept(case: Case, answer: str) -> tuple[GivenCitation, ...]:
    """Return the citations beside a case's answer that a later answer still carries: those of
    unchanged sentences.
    """
    return citation_engine.carry_over_citations(case.given_citations, case.answer or "", answer)


def chosen_settings(settings: Settings | None) -> Settings:
    """Return the settings given, the defaults without any. Raises InputError for what is none."""
    if settings is None or isinstance(settings, Settings):
        return settings or Settings()
    raise InputError(
        f"is {kind_of(settings)}, not Settings",
        hint="Make them with masis.Settings(...).",
        field="settings",
    )


def text_given(value: object, field: str) -> str:
    """Return a value that is text. Raises InputError for any other."""
    if isinstance(value, str):
        return value
    raise InputError(f"is {kind_of(value)}, not text", hint="Give the text.", field=field)

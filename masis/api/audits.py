"""Audits as functions: a case goes in and a run comes out, without a store or a page.

The model strings in the settings decide how the roles are filled. Arguments and results can be
pickled, so that worker processes can do the work.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from functools import partial
from typing import Any, TypeAlias

from masis.api.roles import build_roles, uses_models
from masis.audit import citations as citation_engine
from masis.audit import loop
from masis.audit.claims import one_check_each
from masis.audit.control.concurrency import cancellable, start_audit, start_in_thread
from masis.errors import InputError, StepError
from masis.llm.recordings import Replies
from masis.observers import observation
from masis.schema.audit import CitationAudit, Claim, ClaimCheck
from masis.schema.calls import Usage
from masis.schema.case import Case, Evidence, GivenCitation, case_of, evidence_of
from masis.schema.explain import kind_of
from masis.schema.judge import JudgeBrief
from masis.schema.reading import FieldMap
from masis.schema.run import Event, Run
from masis.settings import Settings

Chunk: TypeAlias = Any
"""A chunk of evidence: ``Evidence``, a mapping with ``id`` and ``text``, a text, or a document of
LangChain or LlamaIndex.
"""


def run_audit(
    case: Case | Mapping[str, Any],
    settings: Settings | None = None,
    on_event: Callable[[Event], None] | None = None,
    *,
    map: FieldMap | None = None,  # noqa: A002 (the public name)
    judge: JudgeBrief | None = None,
) -> Run:
    """Audit one case, iteration by iteration, and return the run.

    A step that fails is recorded on the run and never raised.

    Args:
        case: The case, or a mapping of its fields.
        settings: The settings of the audit; the defaults if None.
        on_event: Called with each event as it happens.
        map: The key of a field where its name differs: ``{"answer": "response"}``.
        judge: What a team tells the judge about this case; None for the default judge.

    Raises:
        InputError: ``case`` is neither a case nor a mapping of its fields.

    """
    case = case_of(case, names=map)
    work = audit_events(case, chosen_settings(settings), judge=judge)
    return observation.run_to_completion(work, on_event, observation.AuditStart(case))


def audit_events(
    case: Case,
    settings: Settings,
    cancelled: Callable[[], bool] = lambda: False,
    judge: JudgeBrief | None = None,
) -> Generator[Event, None, Run]:
    """Return the audit of a case as a generator of its events."""
    run_id, digest = loop.new_run_id(), case.digest()
    return loop.audit(
        case,
        build_roles(settings, judge=judge),
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
    """Audit one case in async code, like ``run_audit``.

    Up to 64 audits that wait for models run at once; of audits that only compute, a few more than
    there are cores. Further ones wait for their turn. ``on_event`` is called on the event loop.
    Cancelling the task stops the audit, which makes no further call.
    """
    checked_case, chosen = case_of(case, names=map), chosen_settings(settings)
    event_loop = asyncio.get_running_loop()

    def audit(cancelled: Callable[[], bool]) -> Run:
        def forward_event(event: Event) -> None:
            if on_event is not None and not cancelled():
                # The audit runs on a thread of its own, and most async code isn't thread-safe.
                event_loop.call_soon_threadsafe(on_event, event)

        return observation.run_to_completion(
            audit_events(checked_case, chosen, cancelled),
            forward_event,
            observation.AuditStart(checked_case),
        )

    return await cancellable(audit, partial(start_audit, calls_models=uses_models(chosen)))


def verify_claims(
    claims: Iterable[str | Claim],
    evidence: Iterable[Chunk],
    settings: Settings | None = None,
    *,
    cancelled: Callable[[], bool] = lambda: False,
) -> list[ClaimCheck]:
    """Return one check for each claim, in order; markers in a claim count as its citations.

    Args:
        claims: Claims, or texts.
        evidence: The chunks to check against.
        settings: The settings of the audit; the defaults if None.
        cancelled: Returns whether to stop; called while the claims are checked.

    Raises:
        InputError: ``claims`` is not a list of claims, or ``evidence`` not a list of chunks.
        StepError: ``cancelled`` returned true.

    """
    if isinstance(claims, str | bytes | Claim) or not isinstance(claims, Iterable):
        actual = "one text" if isinstance(claims, str) else kind_of(claims)
        raise InputError(
            f"is {actual}, not a list of claims", hint="Put it into a list.", field="claims"
        )
    chunks = evidence_of(evidence)
    checked_claims = [
        (
            claim
            if isinstance(claim, Claim)
            else claim_of(text_given(claim, f"claims[{position}]"), chunks)
        )
        for position, claim in enumerate(claims)
    ]
    roles = build_roles(chosen_settings(settings))
    # On a thread, so that ``cancelled`` is also checked while a model or the rules are busy.
    ended = threading.Event()
    future = start_in_thread(
        lambda: roles.verifier.verify(checked_claims, chunks), "claims", on_done=ended.set
    )
    try:
        while not cancelled():
            if ended.wait(_CANCEL_POLL_S):
                return list(one_check_each(checked_claims, future.result()))
        raise StepError("The check of the claims was stopped before its end.")
    finally:
        roles.control.cancellation.cancel()


_CANCEL_POLL_S = 0.2


def verify_against_each(
    claim: Claim,
    variants: Sequence[Sequence[Evidence]],
    settings: Settings,
    replies: Replies | None = None,
    *,
    case_id: str = "",
) -> tuple[tuple[ClaimCheck, ...], Usage]:
    """Verify a claim alone against several variants of its evidence, with one verifier.

    Args:
        claim: The claim.
        variants: The variants of the evidence.
        settings: The settings of the audit.
        replies: Recorded replies, which are looked up before a model is asked.
        case_id: The case, for the lines of the log.

    Returns:
        One check for each variant, in order, and the usage of all of them together.

    Raises:
        StepError: The claim could not be judged.

    """
    roles = build_roles(settings, replies)
    roles.control.calls.case_id = case_id
    roles.control.calls.at("claims", None)
    roles.control.budget.begin_loop(settings, time.monotonic)
    checks = [
        one_check_each((claim,), roles.verifier.verify((claim,), evidence))[0]
        for evidence in variants
    ]
    return tuple(checks), Usage.of(roles.control.calls.since())


def claim_of(text: str, evidence: Sequence[Evidence]) -> Claim:
    """Return a single sentence as a claim, with the markers in it."""
    citations = citation_engine.audit_citations(text, evidence).citations
    return Claim(
        text=text,
        markers=tuple(dict.fromkeys((c.marker_start, c.marker_end) for c in citations)),
        cited=tuple(dict.fromkeys(c.evidence_id for c in citations if c.evidence_id is not None)),
    )


def audit_citations(
    answer: str,
    evidence: Iterable[Chunk],
    settings: Settings | None = None,
    *,
    citations: Sequence[GivenCitation] = (),
) -> CitationAudit:
    """Return which markers point at real evidence and which sentences have none, by rules without a
    model.

    ``citations`` are attached to the answer (``Case.citations``).

    Raises:
        InputError: ``evidence`` is not a list of chunks.

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
    """Return the citations attached to a case's answer that a later answer keeps: those of
    unchanged sentences.
    """
    return citation_engine.carry_over_citations(case.given_citations, case.answer or "", answer)


def chosen_settings(settings: Settings | None) -> Settings:
    """Return the given settings, or the defaults for None.

    Raises:
        InputError: ``settings`` is something else.

    """
    if settings is None or isinstance(settings, Settings):
        return settings or Settings()
    raise InputError(
        f"is {kind_of(settings)}, not Settings",
        hint="Make them with masis.Settings(...).",
        field="settings",
    )


def text_given(value: object, field: str) -> str:
    """Return a value that must be a text.

    Raises:
        InputError: It isn't one.

    """
    if isinstance(value, str):
        return value
    raise InputError(f"is {kind_of(value)}, not text", hint="Give the text.", field=field)

"""Audits as values: a case goes in, a run comes out; no store, no page.

Who fills the roles follows from the model strings in the settings. What these functions take and return can be pickled,
so that worker processes can do the work.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, TypeAlias

from masis.audit import citations, loop, output_validation
from masis.audit.claims import one_check_each
from masis.audit.run_control import Conduct, begun
from masis.audit.sampling import SampledCritic, SampledEvaluator
from masis.errors import InputError, StepError
from masis.llm import available_models, estimates, registry, role_plugins
from masis.llm.client.model import Model
from masis.llm.roles.critic import ModelCritic
from masis.llm.roles.drafter import ModelDrafter
from masis.llm.roles.evaluator import ModelEvaluator
from masis.llm.roles.reviser import ModelReviser
from masis.llm.roles.verifier import ModelVerifier
from masis.observers import observation
from masis.offline.inference.support_classifier import load as load_weights
from masis.offline.roles.critic import OfflineCritic
from masis.offline.roles.drafter import OfflineDrafter
from masis.offline.roles.evaluator import OfflineEvaluator
from masis.offline.roles.reviser import OfflineReviser
from masis.offline.roles.verifier import OfflineVerifier
from masis.schema.audit import CitationAudit, Claim, ClaimCheck
from masis.schema.case import Case, Evidence, evidence_of
from masis.schema.providers import ProviderSettings
from masis.schema.run import Event, Run
from masis.settings import OFFLINE, ROLES, Settings

Chunk: TypeAlias = Evidence | Mapping[str, Any] | str
"""A chunk of evidence, a mapping with ``id`` and ``text``, or its text alone, which is then named by its place."""


def roles_for(settings: Settings) -> loop.Roles:
    """The five roles as the settings name them, for one run.

    Raises SettingsError for a model that can't be asked (unknown, no key) and MissingExtra for an SDK that is not here;
    the same for the output validator.
    """
    conduct = Conduct()
    models = {role: registry.resolve(string, role, settings) for role, string in settings.models().items()}

    def asked(role: str) -> Model | None:
        return None if models[role] == OFFLINE else registry.asker(models[role], role, conduct, settings)

    def own(role: str) -> Any:
        """Who fills the role where somebody else brings it, else None."""
        found = role_plugins.brought(models[role], role, settings)
        return found.filled(registry.asker(found.asks, role, conduct, settings), settings) if found else None

    drafter = ModelDrafter(model) if (model := asked("drafter")) else OfflineDrafter()
    verifier = ModelVerifier(model, settings) if (model := asked("verifier")) else OfflineVerifier()
    reviser = own("reviser") or (ModelReviser(model) if (model := asked("reviser")) else OfflineReviser())
    heat = settings.sample_temperature if settings.judge_samples > 1 else 0.0
    critic = own("critic") or (ModelCritic(model, heat) if (model := asked("critic")) else OfflineCritic())
    evaluator = ModelEvaluator(model, settings, heat) if (model := asked("evaluator")) else OfflineEvaluator()
    sampled = settings.judge_samples > 1  # what is deterministic gives the same every time
    by_role = (drafter, verifier, critic, reviser, evaluator)
    return loop.Roles(
        drafter=drafter,
        verifier=verifier,
        critic=SampledCritic(critic, settings.judge_samples)
        if sampled and not isinstance(critic, OfflineCritic)
        else critic,
        reviser=reviser,
        evaluator=SampledEvaluator(evaluator, settings.judge_samples)
        if sampled and isinstance(evaluator, ModelEvaluator)
        else evaluator,
        models=models,
        offline_weights=load_weights().version if OFFLINE in models.values() else None,
        conduct=conduct,
        waits=uses_models(settings),
        validator=output_validation.chosen(settings.output_validator),
        prompts={
            role: filler.judged_by.version
            for role, filler in zip(ROLES, by_role, strict=True)
            if not isinstance(
                filler, OfflineDrafter | OfflineVerifier | OfflineCritic | OfflineReviser | OfflineEvaluator
            )
        },
    )


def resolved(string: str, role: str, settings: Settings) -> str:
    """The full model string: ``openai`` for a critic is ``openai:gpt-4o``. Raises SettingsError and MissingExtra."""
    return registry.resolve(string, role, settings)


def check_models(settings: Settings) -> None:
    """Raise SettingsError or MissingExtra where a role names a model that can't be asked; nothing is asked.

    The same for an output validator that is not there.
    """
    output_validation.chosen(settings.output_validator)
    for role, string in settings.models().items():
        resolved(string, role, settings)


def probed(string: str, settings: Settings) -> registry.Probed:
    """What a model answers to a word: whether it can judge here, and if not, why and what to do."""
    return registry.probe(string, settings)


def offered_models(settings: Settings, role: str = "") -> tuple[str, ...]:
    """The models a person may choose from without typing: offline, and those that could be asked now.

    For a role also the critics (or revisers) that were compiled for it.
    """
    return (
        (*available_models.offered(settings), *role_plugins.offered(role, settings))
        if role
        else available_models.offered(settings)
    )


def asked_model(string: str, role: str, settings: Settings) -> str:
    """The model string behind a compiled critic; any other string is its own. Raises as ``resolved``."""
    found = role_plugins.brought(string, role, settings)
    return found.asks if found else string


def pinned(settings: Settings) -> Settings:
    """The settings with critics and revisers that are brought named to their version: ``dspy:careful@2``.

    So that an audit by a later version is not taken for the same. Raises as ``resolved`` does.
    """
    named = {}
    for role in role_plugins.GROUPS:
        if (found := role_plugins.brought(getattr(settings, role), role, settings)) is not None:
            named[role] = found.string
    return settings.model_copy(update=named)


def addresses(settings: Settings) -> tuple[str, ...]:
    """Where an audit with these settings sends question, evidence and answer; empty where nothing leaves the machine.

    Raises SettingsError for a model that can't be asked.
    """
    check_models(settings)
    asked = [registry.asked_model(string, role, settings) for role, string in settings.models().items()]
    asked = [model for model in asked if model != OFFLINE]
    return tuple(dict.fromkeys(available_models.reached_at(model, settings) for model in asked))


def estimate(case: Case, settings: Settings) -> estimates.Estimate:
    """What auditing the case takes at most: calls, tokens, dollars (``masis/llm/estimates.py``)."""
    return estimates.estimate(case, settings)


def unpriced_models(settings: Settings) -> tuple[str, ...]:
    """The models of the settings whose price is not known."""
    return estimates.unpriced(settings)


def uses_models(settings: Settings) -> bool:
    """Whether any role is filled by a language model."""
    return any(model != OFFLINE for model in settings.models().values())


def with_concurrency(settings: Settings, calls: int | None) -> Settings:
    """The settings with this many calls at once to each provider that they use; None: as they say themselves, or 1."""
    limited = {}
    for name in _asked(settings):
        own = settings.providers.get(name, ProviderSettings())
        limited[name] = own.model_copy(update={"concurrency": calls or own.concurrency or 1})
    return settings.model_copy(update={"providers": settings.providers | limited})


def calls_at_once(settings: Settings) -> int:
    """The most calls that the settings let go to one of the providers they use; 1 where they don't say."""
    used = [settings.providers[name] for name in _asked(settings) if name in settings.providers]
    return max((own.concurrency or 1 for own in used), default=1)


def _asked(settings: Settings) -> list[str]:
    asked = (registry.asked_model(string, role, settings) for role, string in settings.models().items())
    return sorted({model.partition(":")[0] for model in asked if model != OFFLINE})


def run_audit(case: Case, settings: Settings | None = None, on_event: Callable[[Event], None] | None = None) -> Run:
    """Audit one case, iteration by iteration, and return the run.

    ``on_event`` is called with each event as it happens. A step that fails is recorded on the run, never raised.
    """
    settings = settings or Settings()
    work = loop.audit(case, roles_for(settings), settings, run_id=loop.new_run_id(), case_digest=case.digest())
    return drained(work, on_event, observation.AuditBegins(case))


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
        return drained(work, tell, observation.AuditBegins(case))

    try:
        return await asyncio.wrap_future(begun(audit, "audit"))
    finally:
        stop.set()


def drained(
    work: loop.Audit,
    on_event: Callable[[Event], None] | None = None,
    begins: observation.AuditBegins | None = None,
) -> Run:
    """Let an audit run to its end, handing each event on; whoever watches audits is told that this one ``begins``."""
    with observation.watched(begins or observation.AuditBegins()) as under_way:
        while True:
            try:
                event = next(work)
            except StopIteration as finished:
                run: Run = finished.value
                under_way.result = run
                return run
            under_way.tell(event)
            if on_event is not None:
                on_event(event)


def verify_claims(
    claims: Iterable[str | Claim],
    evidence: Iterable[Chunk],
    settings: Settings | None = None,
    *,
    cancelled: Callable[[], bool] = lambda: False,
) -> list[ClaimCheck]:
    """One check for each claim, in order; markers in a claim count as its citations.

    ``cancelled`` is asked as it goes on. Raises StepError where it says so, and InputError for what is no list of
    claims or of chunks.
    """
    if isinstance(claims, str):
        raise InputError("is one text, not a list of claims", cure="Put it into a list.", field="claims")
    chunks = evidence_of(evidence)
    asked = [claim if isinstance(claim, Claim) else claim_of(claim, chunks) for claim in claims]
    roles = roles_for(settings or Settings())
    check = _one_after_another if roles.models["verifier"] == OFFLINE else _watched
    return list(one_check_each(asked, check(roles, asked, chunks, cancelled)))


_CLAIMS_AT_ONCE = 10
_ASKED_EVERY_S = 0.2


def _one_after_another(
    roles: loop.Roles, claims: Sequence[Claim], evidence: Sequence[Evidence], cancelled: Callable[[], bool]
) -> Sequence[ClaimCheck]:
    """Some claims at a time, since 100 of them against two million characters take many seconds."""
    found: list[ClaimCheck] = []
    for first in range(0, len(claims), _CLAIMS_AT_ONCE):
        _go_on(cancelled)
        found += roles.verifier.verify(claims[first : first + _CLAIMS_AT_ONCE], evidence)
    return found


def _watched(
    roles: loop.Roles, claims: Sequence[Claim], evidence: Sequence[Evidence], cancelled: Callable[[], bool]
) -> Sequence[ClaimCheck]:
    """All at once, as a model is asked; no further call is made after a stop."""
    ended = threading.Event()
    future = begun(lambda: roles.verifier.verify(claims, evidence), "claims", then=ended.set)
    try:
        while not ended.wait(_ASKED_EVERY_S):
            _go_on(cancelled)
        return future.result()
    finally:
        roles.conduct.stop()


def _go_on(cancelled: Callable[[], bool]) -> None:
    if cancelled():
        raise StepError("The check of the claims was stopped before its end.")


def claim_of(text: str, evidence: Sequence[Evidence]) -> Claim:
    """A sentence given alone, with the markers in it."""
    found = citations.audit_citations(text, evidence).citations
    return Claim(
        text=text,
        markers=tuple(dict.fromkeys((c.marker_start, c.marker_end) for c in found)),
        cited=tuple(dict.fromkeys(c.evidence_id for c in found if c.evidence_id is not None)),
    )


def audit_citations(answer: str, evidence: Iterable[Chunk], settings: Settings | None = None) -> CitationAudit:
    """Which markers point at real evidence, and which sentences carry none. Code alone, no model.

    Raises InputError for what is no list of chunks.
    """
    chosen = settings or Settings()
    return citations.audit_citations(
        answer,
        evidence_of(evidence),
        mode=chosen.citation_mode,
        invalid_penalty=chosen.invalid_citation_penalty,
        uncited_penalty=chosen.uncited_claim_penalty,
    )

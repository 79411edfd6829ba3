"""Resolves model strings to models, and tests their connections.

All callers in this process share clients, limits and known server capabilities.
"""

from __future__ import annotations

import os
import threading
from functools import partial
from typing import NamedTuple, NoReturn

from pydantic import BaseModel

from masis.audit.control.run_control import RunBudget, RunControl
from masis.audit.output_validation import validator_named
from masis.errors import BadReply, MissingExtra, ProviderFailed, SettingsError
from masis.llm import prices
from masis.llm.client.limits import Limiter, limiter
from masis.llm.client.model import Model
from masis.llm.client.retry import RetryPolicy
from masis.llm.client.server_capabilities import MODES_IN_WORDS, ServerCapabilities, capabilities_of
from masis.llm.endpoints import Endpoint, endpoint, model_name
from masis.llm.provider_apis import provider_api
from masis.llm.providers.base import Call, Provider, TryFailed
from masis.llm.recordings import Replies, check_record, record, replay_file
from masis.llm.role_plugins import fillable, plugged_in
from masis.llm.roles.prompting import RolePrompt
from masis.schema.calls import Replayed, ReplyMode
from masis.settings import OFFLINE, Settings

PROBE = RolePrompt(
    "You help to test a connection.",
    "The test is a simple one.",
    'Reply with {"ready": true}.',
    "connection-test/1",
)
PROBE_TOKENS = 200


class Ready(BaseModel):
    """The reply that a connection test asks for."""

    ready: bool


class ProbeResult(NamedTuple):
    """The result of a connection test; ``mode`` is the reply format that works, or None without a
    reply.
    """

    ok: bool
    message: str
    mode: ReplyMode | None = None


_lock = threading.Lock()
_providers: dict[Endpoint, Provider] = {}
# connections are not to be shared between processes
os.register_at_fork(after_in_child=_providers.clear)


STAGES = ","
"""Separates two verifiers; the second one checks the claims that the first can't decide:
``offline,MODEL``.
"""


def stages(string: str, role: str) -> tuple[str, str] | None:
    """Return the two stages of a verifier, or None for a plain model string. Raises SettingsError
    for invalid stages.
    """
    # the name of a folder or file may hold a comma
    if STAGES not in string or fillable(string) or Replayed.of(string):
        return None
    first, _, second = (part.strip() for part in string.partition(STAGES))
    if role != "verifier":
        raise SettingsError(
            f"{role}: {string[:200]!r}: only the verifier has two stages. Name one model."
        )
    if (
        first != OFFLINE
        or second in ("", OFFLINE)
        or (STAGES in second and not Replayed.of(second))
    ):
        raise SettingsError(
            f"{role}: {string[:200]!r}: two stages are written offline,MODEL: the offline checks"
            " first, then the model for what they leave open."
        )
    return first, second


def resolve(string: str, role: str, settings: Settings | None = None) -> str:
    """Return the full model string: ``openai`` for a critic becomes ``openai:gpt-4o``.

    Nothing is sent over the network.

    Raises:
        SettingsError: The provider is unknown or has no key.
        MissingExtra: The provider's SDK isn't installed.

    """
    if string == OFFLINE:
        return OFFLINE
    settings = settings or Settings()
    if staged := stages(string, role):
        return f"{staged[0]}{STAGES}{resolve(staged[1], role, settings)}"
    if recorded := Replayed.of(string):
        return str(replay_file(recorded.file, role).source_name(role))
    if found := plugged_in(string, role, settings):
        found.check()
        if not found.asks:
            return found.string
    elif (roles := fillable(string)) and role not in roles:
        raise SettingsError(
            f"{role}: {string[:200]!r} can fill another role only: {', '.join(roles)}."
        )
    named = model_name(found.asks if found else string, role, settings)
    _provider(endpoint(named.provider, settings))
    return found.string if found else str(named)


def asked_model(string: str, role: str, settings: Settings) -> str:
    """Return the model that is asked in the end, including the model of a plug-in; ``offline`` if
    there is none.
    """
    if staged := stages(string, role):
        string = staged[1]
    if string == OFFLINE or Replayed.of(string):
        return OFFLINE
    if found := plugged_in(string, role, settings):
        found.check()
        string = found.asks
    return resolve(string, role, settings) if string else OFFLINE


def asks_a_model(string: str, role: str, settings: Settings) -> bool:
    """Return whether the role uses a language model; only the name is checked."""
    if staged := stages(string, role):
        string = staged[1]
    if string == OFFLINE or Replayed.of(string):
        return False
    found = plugged_in(string, role, settings)
    return found is None or bool(found.asks)


class _ReplayOnlyProvider:
    """A provider that never calls a model, because every reply is read from a recording."""

    modes: tuple[ReplyMode, ...] = ("json_schema",)
    schema_in_cache = True

    def answer(self, call: Call) -> NoReturn:
        """Fail, because a recording reports a missing reply before the provider is called."""
        raise TryFailed("unrecorded", "no model is asked where replies are recorded")


def asker(
    string: str, role: str, control: RunControl, settings: Settings, replies: Replies | None = None
) -> Model:
    """Return the model in this role for one run; ``replies`` is searched before the model is asked.

    Raises the same errors as ``resolve`` and as the choice of an output validator, and
    SettingsError if replies can't be recorded.
    """
    if string == OFFLINE:
        raise SettingsError(f"{role}: {OFFLINE!r} is no language model")
    if settings.record:
        check_record(settings.record)
    make = partial(
        Model,
        role=role,
        control=control,
        rescue=validator_named(settings.output_validator).repair,
        record=partial(record, settings.record) if settings.record else None,
        log_texts=settings.log_texts,
    )
    if recorded := Replayed.of(string):
        file = replay_file(recorded.file, role)
        name = file.source_name(role)
        strict = ServerCapabilities(_ReplayOnlyProvider.modes)
        return make(
            name=str(name),
            model=name.model,
            provider=_ReplayOnlyProvider(),
            limiter=Limiter(1),
            capabilities=strict,
            replies=file,
        )
    found = plugged_in(string, role, settings)
    named = model_name(found.asks if found else string, role, settings)
    reached = endpoint(named.provider, settings)
    provider = _provider(reached)
    return make(
        name=str(named),
        model=named.model,
        provider=provider,
        limiter=limiter(reached.address, reached.concurrency, adapts=reached.adapts),
        capabilities=capabilities_of(reached.address, named.model, provider.modes, reached.mode),
        retry=RetryPolicy(settings.max_retries, settings.retry_base_s, settings.retry_cap_s),
        price=prices.price(str(named), settings.prices),
        replies=replies,
    )


def probe(string: str, settings: Settings | None = None, role: str = "critic") -> ProbeResult:
    """Ask the model for one word and return the result with advice; errors that a user can fix
    aren't raised.
    """
    if string == OFFLINE:
        return ProbeResult(True, "No language model, so there is no connection to test.")
    settings = (settings or Settings()).model_copy(update={"max_retries": 1, "record": ""})
    control = RunControl(RunBudget(call_s=settings.call_deadline_s))
    try:
        if recorded := Replayed.of(string):
            return ProbeResult(
                True, f"{replay_file(recorded.file, role).description()}; no model is called."
            )
        model = asker(string, role, control, settings)
        model.ask(PROBE, Ready, max_tokens=PROBE_TOKENS)
    except (SettingsError, MissingExtra) as error:
        return ProbeResult(False, str(error))
    except BadReply as error:
        return ProbeResult(False, _unfit(model.name, error))
    except ProviderFailed as error:
        return ProbeResult(False, str(error))
    last = control.calls.since()[-1]
    form = "in the form asked for"
    if last.mode != model.provider.modes[0]:
        form = f"but takes no strict schema: replies are asked for by {MODES_IN_WORDS[last.mode]}"
    who = _who_answered(model.model, last.answered_by)
    return ProbeResult(True, f"{model.name} answers, {form}.{who}", last.mode)


def _who_answered(asked: str, answered: str | None) -> str:
    """Name the model that answered if it isn't the requested one, since llama.cpp's server ignores
    the model name.
    """
    if (
        not answered
        or asked.casefold() in answered.casefold()
        or answered.casefold() in asked.casefold()
    ):
        return ""
    return (
        f" The server says that {answered!r} answered, not {asked!r}: check that it serves the"
        " model you mean."
    )


def _unfit(name: str, error: BadReply) -> str:
    why = error.__cause__.message if isinstance(error.__cause__, TryFailed) else str(error)
    if error.kind == "malformed":
        return (
            f"{name} answers, but not in the form asked for, so it can't judge here ({why}). Choose"
            " another."
        )
    return f"{name} answers, but not the question: {why}."


def _provider(reached: Endpoint) -> Provider:
    with _lock:
        if reached not in _providers:
            _providers[reached] = provider_api(reached.kind)(reached)
        return _providers[reached]

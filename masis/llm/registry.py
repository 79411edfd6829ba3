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
from masis.llm.endpoints import complete_ref, endpoint
from masis.llm.provider_apis import provider_api
from masis.llm.providers.base import Call, Endpoint, Provider, TryFailed
from masis.llm.recordings import Replies, check_record, record, replay_file
from masis.llm.role_plugins import RolePlugin, fillable_roles, find_plugin
from masis.llm.roles.prompting import RolePrompt
from masis.schema.calls import ReplyMode
from masis.schema.model_ref import STAGES, ModelRef
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
# A forked child must not share open connections with its parent.
os.register_at_fork(after_in_child=_providers.clear)


class Judge(NamedTuple):
    """The component that a model string names for a role.

    Attributes:
        ref: The model string, parsed. After the offline checks, it's the second stage.
        plugin: The plug-in of this name, None if it's no plug-in.
        model: The language model that is called, also by the plug-in; None if there is none, as for
            offline rules and recorded replies.

    """

    ref: ModelRef
    plugin: RolePlugin | None
    model: ModelRef | None


def find_judge(ref: ModelRef, role: str, settings: Settings) -> Judge:
    """Return the component that a model string names for a role. A model isn't looked up yet.

    Raises:
        SettingsError: There are two stages where one is allowed, or no plug-in has this name.

    """
    # The name of a folder or file may contain a comma.
    is_list = STAGES in str(ref.alone) and not (ref.is_replay or fillable_roles(ref))
    if (is_list or ref.after_offline) and role != "verifier":
        raise SettingsError(
            f"{role}: {str(ref)[:200]!r}: only the verifier has two stages. Name one model."
        )
    if is_list or (ref.after_offline and str(ref.alone) in ("", OFFLINE)):
        raise SettingsError(
            f"{role}: {str(ref)[:200]!r}: two stages are written offline,MODEL: the offline checks"
            " first, then the model for what they leave open."
        )
    if ref.is_offline or ref.is_replay:
        return Judge(ref, None, None)
    if (plugin := find_plugin(ref, role, settings)) is None:
        return Judge(ref, None, ref.alone)
    return Judge(ref, plugin, ModelRef.parse(plugin.asks) if plugin.asks else None)


def resolve(string: str, role: str, settings: Settings | None = None) -> str:
    """Return the full model string: ``openai`` for a critic becomes ``openai:gpt-4o``.

    Nothing is sent over the network.

    Raises:
        SettingsError: The provider is unknown or has no key.
        MissingExtra: The provider's SDK isn't installed.

    """
    settings = settings or Settings()
    ref, plugin, model = find_judge(ModelRef.parse(string), role, settings)
    first_stage = f"{OFFLINE}{STAGES}" if ref.after_offline else ""
    if ref.is_offline:
        return OFFLINE
    if ref.is_replay:
        return f"{first_stage}{replay_file(ref.name or '', role).source_name(role)}"
    if plugin:
        plugin.check()
    elif (roles := fillable_roles(ref)) and role not in roles:
        raise SettingsError(
            f"{role}: {str(ref)[:200]!r} can fill another role only: {', '.join(roles)}."
        )
    if model:
        model = complete_ref(model, role, settings)
        _provider(endpoint(model.provider, settings))
    return f"{first_stage}{plugin.string if plugin else model}"


def asked_model(ref: ModelRef, role: str, settings: Settings) -> ModelRef | None:
    """Return the language model that is finally called, including the model of a plug-in; None if
    there is none.

    Raises the errors of ``resolve``.
    """
    judge = find_judge(ref, role, settings)
    if judge.plugin:
        judge.plugin.check()
    return ModelRef.parse(resolve(str(judge.model), role, settings)) if judge.model else None


class _ReplayOnlyProvider:
    """A provider that never calls a model, because every reply is read from a recording."""

    modes: tuple[ReplyMode, ...] = ("json_schema",)
    schema_in_cache = True

    def answer(self, call: Call) -> NoReturn:
        """Fail; never called, because the recording reports a missing reply first."""
        raise TryFailed("unrecorded", "no model is asked where replies are recorded")


def model_in_role(
    string: str, role: str, control: RunControl, settings: Settings, replies: Replies | None = None
) -> Model:
    """Return the model in this role for one run; ``replies`` is searched before it is called.

    Raises the same errors as ``resolve`` and as the choice of an output validator, and
    SettingsError if replies can't be recorded.
    """
    ref, _, underlying = find_judge(ModelRef.parse(string), role, settings)
    if ref.is_offline:
        raise SettingsError(f"{role}: {OFFLINE!r} isn't a language model")
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
    if ref.is_replay:
        file = replay_file(ref.name or "", role)
        name = file.source_name(role)
        capabilities = ServerCapabilities(_ReplayOnlyProvider.modes)
        return make(
            name=str(name),
            model=name.recorded_model,
            provider=_ReplayOnlyProvider(),
            limiter=Limiter(1),
            capabilities=capabilities,
            replies=file,
        )
    full_ref = complete_ref(underlying or ref, role, settings)
    found = endpoint(full_ref.provider, settings)
    provider = _provider(found)
    return make(
        name=str(full_ref),
        model=full_ref.name or "",
        provider=provider,
        limiter=limiter(found.address, found.concurrency, adapts=found.adapts),
        capabilities=capabilities_of(
            found.address, full_ref.name or "", provider.modes, found.mode
        ),
        retry=RetryPolicy(settings.max_retries, settings.retry_base_s, settings.retry_cap_s),
        price=prices.price(str(full_ref), settings.prices),
        replies=replies,
    )


def probe(string: str, settings: Settings | None = None, role: str = "critic") -> ProbeResult:
    """Ask the model for one word and return the result with advice; errors that a user can fix
    aren't raised.
    """
    ref = ModelRef.parse(string)
    if ref.is_offline:
        return ProbeResult(True, "No language model, so there is no connection to test.")
    settings = (settings or Settings()).model_copy(update={"max_retries": 1, "record": ""})
    control = RunControl(RunBudget(call_s=settings.call_deadline_s))
    try:
        if ref.is_replay:
            recorded = replay_file(ref.name or "", role).description()
            return ProbeResult(True, f"{recorded}; no model is called.")
        model = model_in_role(string, role, control, settings)
        model.ask(PROBE, Ready, max_tokens=PROBE_TOKENS)
    except (SettingsError, MissingExtra) as error:
        return ProbeResult(False, str(error))
    except BadReply as error:
        return ProbeResult(False, _bad_reply_advice(model.name, error))
    except ProviderFailed as error:
        return ProbeResult(False, str(error))
    last = control.calls.since()[-1]
    format_note = "in the form asked for"
    if last.mode != model.provider.modes[0]:
        format_note = (
            f"but takes no strict schema: replies are asked for by {MODES_IN_WORDS[last.mode]}"
        )
    substitution = _substitution_note(model.model, last.answered_by)
    return ProbeResult(True, f"{model.name} answers, {format_note}.{substitution}", last.mode)


def _substitution_note(requested: str, answered: str | None) -> str:
    """Name the model that answered if it isn't the requested one, since llama.cpp's server ignores
    the model name.
    """
    if (
        not answered
        or requested.casefold() in answered.casefold()
        or answered.casefold() in requested.casefold()
    ):
        return ""
    return (
        f" The server says that {answered!r} answered, not {requested!r}: check that it serves the"
        " model you mean."
    )


def _bad_reply_advice(name: str, error: BadReply) -> str:
    reason = error.__cause__.message if isinstance(error.__cause__, TryFailed) else str(error)
    if error.kind == "malformed":
        return (
            f"{name} answers, but not in the form asked for, so it can't judge here ({reason})."
            " Choose another."
        )
    return f"{name} answers, but not the question: {reason}."


def _provider(endpoint: Endpoint) -> Provider:
    with _lock:
        if endpoint not in _providers:
            _providers[endpoint] = provider_api(endpoint.kind)(endpoint)
        provider = _providers[endpoint]
    if endpoint.mode and endpoint.mode not in provider.modes:
        raise SettingsError(
            f"providers.{endpoint.name}.mode: this server has no mode {endpoint.mode!r}. It has:"
            f" {', '.join(provider.modes)}."
        )
    return provider

"""Finds a provider's endpoint: its address, its key, and how many calls may run at once.

A key is sent only to the address that it is configured for. A vendor's key belongs to the vendor's
own address, or to the one that the environment sets for it (``OPENAI_BASE_URL``). Any other address
names its key with ``key_env``, or gets none.
"""

from __future__ import annotations

import difflib
import ipaddress
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import NamedTuple
from urllib.parse import urlsplit

from pydantic import SecretStr

from masis.errors import MissingKey, SettingsError
from masis.schema.calls import ReplyMode
from masis.schema.model_ref import ModelRef
from masis.schema.providers import ProviderKind, ProviderSettings
from masis.settings import OFFLINE, Settings, hosts, may_be_a_key, secret, variable

CONCURRENCY = 16
JUDGES = ("critic", "evaluator")
"""The roles that use the vendor's stronger model by default, because an auditor should be stronger
than the writer (MASIS-CRITIC-P1).
"""


class KnownProvider(NamedTuple):
    """A provider that can be used without a table in ``masis.toml``."""

    kind: ProviderKind
    address: str
    key_env: str = ""
    address_env: str = ""
    strong: str = ""
    plain: str = ""
    get_a_key: str = ""


KNOWN = {
    "openai": KnownProvider(
        "openai",
        "https://api.openai.com/v1",
        "OPENAI_API_KEY",
        "OPENAI_BASE_URL",
        "gpt-4o",
        "gpt-4o-mini",
        "https://platform.openai.com/api-keys",
    ),
    "anthropic": KnownProvider(
        "anthropic",
        "https://api.anthropic.com",
        "ANTHROPIC_API_KEY",
        "ANTHROPIC_BASE_URL",
        "claude-sonnet-5-5",
        "claude-haiku-5-5",
        "https://console.anthropic.com/settings/keys",
    ),
    "ollama": KnownProvider("openai", "http://127.0.0.1:11434/v1"),
    "lmstudio": KnownProvider("openai", "http://127.0.0.1:1234/v1"),
    "vllm": KnownProvider("openai", "http://127.0.0.1:8000/v1"),
    "llamacpp": KnownProvider("openai", "http://127.0.0.1:8080/v1"),
}


BATCHING = frozenset({"vllm"})
"""Local servers that process many calls at the same time; others on one's own machine or network
have few slots, often one.
"""


@dataclass(frozen=True)
class Endpoint:
    """The place where a provider is reached.

    Attributes:
        concurrency: The highest number of calls that may run at once.
        mode: The reply format that a person chose, None to find out.
        of_vendor: Whether this is the vendor's own address, or the one that the environment sets
            for it, so that the environment's other variables for the vendor apply as well.
        adapts: Whether the server may have few slots, so that calls start one at a time and the
            limit grows while replies don't get slower.

    """

    name: str
    kind: ProviderKind
    address: str
    key: SecretStr | None = None
    key_name: str = ""
    concurrency: int = CONCURRENCY
    mode: ReplyMode | None = None
    effort: str | None = None
    of_vendor: bool = False
    adapts: bool = False


def complete_ref(ref: ModelRef, role: str, settings: Settings) -> ModelRef:
    """Return the reference with the vendor's default model for the role if it names none.

    Raises:
        SettingsError: The provider is unknown, or the model is missing. The message suggests the
            nearest known name.

    """
    known, own = KNOWN.get(ref.provider), settings.providers.get(ref.provider)
    if ref.provider == OFFLINE:
        raise SettingsError(
            f"{role}: {str(ref)!r}: offline has no models to choose from. Write offline alone."
        )
    if known is None and own is None:
        raise SettingsError(f"{role}: {_unknown_provider(ref, settings)}")
    if ref.name is None and known is not None and known.strong:
        return replace(ref, name=known.strong if role in JUDGES else known.plain)
    if not ref.name:
        raise SettingsError(
            f"{role}: {str(ref)!r} names no model. Write {ref.provider}:NAME with a name the server"
            " knows."
        )
    return ref


def _unknown_provider(ref: ModelRef, settings: Settings) -> str:
    string, provider, model = str(ref), ref.provider, ref.name
    names = [OFFLINE, *KNOWN, *settings.providers]
    if may_be_a_key(string):
        return (
            "this looks like a key, not like a model. Keys stand in the environment or a secrets"
            " file."
        )
    for vendor, known in KNOWN.items():
        if known.strong and provider.startswith(known.strong.split("-")[0]):
            return f"there is no provider {provider!r}. Did you mean '{vendor}:{string}'?"
    near = difflib.get_close_matches(provider.casefold(), names, n=1, cutoff=0.7)
    if near:
        named = f":{model}" if model and near[0] != OFFLINE else ""
        return f"there is no provider {provider!r}. Did you mean '{near[0]}{named}'?"
    return (
        f"there is no model {string!r}. There are: {', '.join(names)}, each but the first as"
        " PROVIDER:MODEL; others get a table [providers.NAME] in masis.toml."
    )


def endpoint(
    provider: str, settings: Settings, environment: Mapping[str, str] | None = None
) -> Endpoint:
    """Return where a provider is reached under these settings and this environment.

    Raises:
        MissingKey: The provider's key isn't set.
        SettingsError: The address or the key is malformed, or there is no address.

    """
    known, own = KNOWN.get(provider), settings.providers.get(provider, ProviderSettings())
    from_environment = (
        variable(known.address_env, environment) if known and known.address_env else None
    )
    address = own.address or from_environment or (known.address if known else None)
    if address is None:
        raise SettingsError(
            f"providers.{provider}: has no address. Give it one, such as http://127.0.0.1:8000/v1."
        )
    # A table that moves a vendor's address must say itself which key goes there.
    key_name = own.key_env or (known.key_env if known and own.address is None else "")
    key = secret(key_name, environment) if key_name else None
    if key and not (key.get_secret_value().isascii() and key.get_secret_value().isprintable()):
        # Refused here, because the HTTP library's error about an invalid header would show the key.
        raise SettingsError(f"{key_name}: is no key: it holds characters that keys don't have.")
    reached = Endpoint(
        name=provider,
        kind=own.kind or (known.kind if known else "openai"),
        address=_check_address(address, provider),
        key=key,
        key_name=key_name,
        concurrency=own.concurrency or CONCURRENCY,
        mode=own.mode,
        effort=own.effort,
        of_vendor=known is not None and bool(known.key_env) and own.address is None,
        adapts=(
            (provider not in BATCHING and is_local(urlsplit(address).hostname or ""))
            if own.adapts is None
            else own.adapts
        ),
    )
    if key_name and key is None and (own.key_env or (known and address == known.address)):
        where = f" You get one at {known.get_a_key}." if known and known.get_a_key else ""
        raise MissingKey(
            f"{provider}: there is no key. Set {key_name} in the environment, or write it into"
            f" masis.secrets.toml (MASIS_SECRETS names another file).{where}"
        )
    return reached


def is_loopback(host: str) -> bool:
    """Return whether a host is this machine, to which no proxy is used."""
    return hosts.is_loopback(host) or host.endswith(".localhost")


def is_local(host: str) -> bool:
    """Return whether a host is this machine, in its network, or the host of its containers."""
    try:
        at = ipaddress.ip_address(host)
    except ValueError:
        return (
            is_loopback(host)
            or "." not in host
            or host.endswith((".local", ".lan", ".internal", ".home.arpa"))
        )
    return at.is_loopback or at.is_private or at.is_link_local


def _check_address(address: str, provider: str) -> str:
    try:
        parts = urlsplit(address)
        is_valid = (
            re.fullmatch(r"https?://[^\s/?#]+(/[^\s?#]*)?", address)
            and parts.port != 0
            and parts.hostname
        )
    except ValueError:
        is_valid = None
    if not is_valid:
        raise SettingsError(
            f"providers.{provider}.address: is no address such as http://127.0.0.1:8000/v1."
        )
    if parts.username is not None or parts.password is not None:
        raise SettingsError(
            f"providers.{provider}.address: holds a name or a password. Use key_env for the key."
        )
    return address.rstrip("/")


def offered_models(settings: Settings) -> tuple[str, ...]:
    """Return the models to choose from without typing: offline, the defaults of each vendor whose
    key is set, and every model that the settings name.
    """
    names = [OFFLINE]
    for vendor, known in KNOWN.items():
        if known.strong and _has_key(vendor, settings):
            names += [f"{vendor}:{known.strong}", f"{vendor}:{known.plain}"]
    names += [
        name
        for name in settings.prices
        if ModelRef.parse(name).provider in {*KNOWN, *settings.providers}
    ]
    names += [string for string in settings.models().values() if ":" in string]
    return tuple(dict.fromkeys(names))


def _has_key(vendor: str, settings: Settings) -> bool:
    try:
        return endpoint(vendor, settings).key is not None
    except SettingsError:  # reported when the model is chosen
        return False

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
from dataclasses import replace
from urllib.parse import urlsplit

from masis.errors import MissingKey, SettingsError
from masis.llm.provider_apis import known_providers, provider_api
from masis.llm.providers.base import CONCURRENCY, Endpoint, is_loopback
from masis.schema.model_ref import ModelRef
from masis.schema.providers import DEFAULT_KIND, ProviderSettings
from masis.settings import OFFLINE, Settings, may_be_a_key, secret, variable

JUDGES = ("critic", "evaluator")
"""The roles that use the vendor's stronger model by default, because an auditor should be stronger
than the writer (MASIS-CRITIC-P1).
"""


def complete_ref(ref: ModelRef, role: str, settings: Settings) -> ModelRef:
    """Return the reference with the vendor's default model for the role if it doesn't name one.

    Raises:
        SettingsError: The provider is unknown, or the model is missing. The message suggests the
            nearest known name.

    """
    known, table = known_providers().get(ref.provider), settings.providers.get(ref.provider)
    if ref.provider == OFFLINE:
        raise SettingsError(
            f"{role}: {str(ref)!r}: offline has no models to choose from. Write offline alone."
        )
    if known is None and table is None:
        raise SettingsError(f"{role}: {_unknown_provider(ref, settings)}")
    if ref.name is None and known is not None and known.strong:
        return replace(ref, name=known.strong if role in JUDGES else known.plain)
    if not ref.name:
        raise SettingsError(
            f"{role}: {str(ref)!r} doesn't name a model. Write {ref.provider}:NAME with a name the"
            " server knows."
        )
    return ref


def _unknown_provider(ref: ModelRef, settings: Settings) -> str:
    string, provider, model = str(ref), ref.provider, ref.name
    names = [OFFLINE, *known_providers(), *settings.providers]
    if may_be_a_key(string):
        return (
            "this looks like a key, not like a model. Put keys into the environment or a secrets"
            " file."
        )
    for vendor, known in known_providers().items():
        if known.strong and provider.startswith(known.strong.split("-")[0]):
            return f"there is no provider {provider!r}. Did you mean '{vendor}:{string}'?"
    matches = difflib.get_close_matches(provider.casefold(), names, n=1, cutoff=0.7)
    if matches:
        model_part = f":{model}" if model and matches[0] != OFFLINE else ""
        return f"there is no provider {provider!r}. Did you mean '{matches[0]}{model_part}'?"
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
    known = known_providers().get(provider)
    table = settings.providers.get(provider, ProviderSettings())
    kind = table.kind or (known.kind if known else DEFAULT_KIND)
    api = provider_api(kind)
    if table.effort and "effort" not in api.parameters:
        raise SettingsError(
            f"providers.{provider}.effort: {api.title} has no such setting. Remove it."
        )
    from_environment = (
        variable(known.address_env, environment) if known and known.address_env else None
    )
    address = table.address or from_environment or (known.address if known else None)
    if address is None and known and known.address_env:
        raise SettingsError(
            f"providers.{provider}: has no address. Set {known.address_env} in the environment, or"
            f" address in [providers.{provider}] of masis.toml."
        )
    if address is None:
        raise SettingsError(
            f"providers.{provider}: has no address. Give it one, such as http://127.0.0.1:8000/v1."
        )
    # A table that moves a vendor's address must say itself which key goes there.
    key_name = table.key_env or (known.key_env if known and table.address is None else "")
    key = secret(key_name, environment) if key_name else None
    if key and not (key.get_secret_value().isascii() and key.get_secret_value().isprintable()):
        # Refused here, because the HTTP library's error about an invalid header would show the key.
        raise SettingsError(
            f"{key_name}: isn't a key, because it has characters that keys don't have."
        )
    found = Endpoint(
        name=provider,
        kind=kind,
        address=_check_address(address, provider),
        key=key,
        key_name=key_name,
        concurrency=table.concurrency or CONCURRENCY,
        mode=table.mode,
        effort=table.effort,
        of_vendor=known is not None and bool(known.key_env) and table.address is None,
        adapts=(
            not (known and known.batches) and is_local(urlsplit(address).hostname or "")
            if table.adapts is None
            else table.adapts
        ),
        parameters=api.parameters,
    )
    if key is None and api.needs_key and not key_name:
        raise MissingKey(
            f"{provider}: there is no key. Name the variable that holds it: key_env in"
            f" [providers.{provider}] of masis.toml."
        )
    # A server at another address than the vendor's often needs no key.
    is_required = api.needs_key or table.key_env or (known and address == known.address)
    if key_name and key is None and is_required:
        key_hint = f" You get one at {known.get_a_key}." if known and known.get_a_key else ""
        raise MissingKey(
            f"{provider}: there is no key. Set {key_name} in the environment, or write it into"
            f" masis.secrets.toml (MASIS_SECRETS names another file).{key_hint}"
        )
    return found


def is_local(host: str) -> bool:
    """Return whether a host is this machine, in its network, or the host of its containers."""
    try:
        ip = ipaddress.ip_address(host)
    except ValueError:
        return (
            is_loopback(host)
            # A name without a dot is resolved in the local network, as are these domains (RFC 6762,
            # RFC 8375, ICANN's .internal).
            or "." not in host
            or host.endswith((".local", ".lan", ".internal", ".home.arpa"))
        )
    return ip.is_loopback or ip.is_private or ip.is_link_local


def _check_address(address: str, provider: str) -> str:
    try:
        parts = urlsplit(address)
        is_valid = (
            # urlsplit() accepts spaces and missing hosts, so the form is checked too. Queries and
            # fragments are refused, because paths are appended to the address.
            re.fullmatch(r"https?://[^\s/?#]+(/[^\s?#]*)?", address)
            and parts.port != 0
            and parts.hostname
        )
    except ValueError:
        is_valid = None
    if not is_valid:
        raise SettingsError(
            f"providers.{provider}.address: isn't an address such as http://127.0.0.1:8000/v1."
        )
    if parts.username is not None or parts.password is not None:
        raise SettingsError(
            f"providers.{provider}.address: contains a name or a password. Use key_env for the key."
        )
    return address.rstrip("/")


def offered_models(settings: Settings) -> tuple[str, ...]:
    """Return the models to choose from without typing: offline, the defaults of each vendor whose
    key is set, and every model that the settings name.
    """
    names = [OFFLINE]
    for vendor, known in known_providers().items():
        if known.strong and _has_key(vendor, settings):
            names += [f"{vendor}:{known.strong}", f"{vendor}:{known.plain}"]
    names += [
        name
        for name in settings.prices
        if ModelRef.parse(name).provider in {*known_providers(), *settings.providers}
    ]
    names += [string for string in settings.models().values() if ":" in string]
    return tuple(dict.fromkeys(names))


def _has_key(vendor: str, settings: Settings) -> bool:
    try:
        return endpoint(vendor, settings).key is not None
    except SettingsError:  # reported when the model is chosen
        return False

"""Settings for the addresses and prices of models. API keys are never stored here."""

from __future__ import annotations

import pkgutil
from importlib.metadata import EntryPoint
from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field

from masis.schema.base import Record
from masis.schema.registry import RegisteredName, added_entry_points

PROVIDERS_GROUP = "masis.providers"
"""The group of entry points by which a package adds an API that models are reached by."""

DEFAULT_KIND = "openai"
"""The API of a provider whose table doesn't name one, because most servers have it."""

_APIS = Path(__file__).parents[1] / "llm" / "providers" / "apis"
# Only the names of the modules are read here, because importing them would load every provider.
OWN_PROVIDERS = tuple(
    EntryPoint(name, f"masis.llm.providers.apis.{name}:api", PROVIDERS_GROUP)
    for name in sorted(
        (module.name for module in pkgutil.iter_modules([str(_APIS)])),
        key=lambda name: (name != DEFAULT_KIND, name),
    )
)
"""The APIs of this package, a module of ``masis.llm.providers.apis`` each, the default first.

They are there even if the installation lists no entry points.
"""


def provider_entry_points() -> dict[str, EntryPoint]:
    """Return the entry point of every API by its kind. The package's own come first and win."""
    added = {point.name: point for point in added_entry_points(PROVIDERS_GROUP)}
    own = {point.name: point for point in OWN_PROVIDERS}
    return own | {name: point for name, point in added.items() if name not in own}


ProviderKind = Annotated[str, RegisteredName(provider_entry_points)]
"""The API protocol of a server: a name in the registry ``masis.llm.provider_apis``."""

TypedMode = Literal["json_schema", "json_object_schema", "json_object", "prompt"]
"""How to request a typed reply (``masis.schema.calls.ReplyMode`` without plain text)."""

Money = Annotated[float, Field(ge=0, allow_inf_nan=False)]


class ProviderSettings(Record):
    """One table ``[providers.NAME]`` of the configuration file.

    None keeps the provider's default.
    """

    kind: ProviderKind | None = Field(
        default=None,
        description=(
            f"Which API the server has; {DEFAULT_KIND} by default, as most servers have. Packages"
            " can add more."
        ),
    )
    address: str | None = Field(
        default=None,
        description=(
            "Its address, without /chat/completions at the end: http://127.0.0.1:8000/v1."
        ),
    )
    key_env: str | None = Field(
        default=None,
        pattern=r"^[A-Za-z_][A-Za-z0-9_]{0,127}$",
        description=(
            "The variable, or the entry of the secrets file, with its key. The key is sent only to"
            " this server."
        ),
    )
    concurrency: int | None = Field(
        default=None,
        ge=1,
        le=1000,
        description="The most concurrent calls; 16 by default.",
    )
    adapts: bool | None = Field(
        default=None,
        description=(
            "Whether to start with one call and add concurrent calls as long as replies aren't"
            " delayed; on by default for local addresses."
        ),
    )
    mode: TypedMode | None = Field(
        default=None,
        description=(
            "How to request a typed reply; by default, detected from what the server accepts."
        ),
    )
    effort: Literal["low", "medium", "high"] | None = Field(
        default=None, description="How long a reasoning model may think before it replies."
    )


class Price(Record):
    """Prices in US dollars for a million tokens.

    One table ``[prices."PROVIDER:MODEL"]`` of the configuration file.
    """

    input: Money = Field(description="US dollars for a million tokens sent.")
    output: Money = Field(description="US dollars for a million tokens received.")
    cached_input: Money | None = Field(
        default=None, description="For tokens served from the cache; by default the price of input."
    )
    cache_write: Money | None = Field(
        default=None, description="For tokens written to the cache; by default the price of input."
    )

"""What a person may say about where models are reached and what they cost; keys never stand here."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from masis.schema.base import Record

Wire = Literal["openai", "anthropic"]
"""How a server is spoken to: OpenAI's Chat Completions, which most servers speak, or Anthropic's Messages."""

TypedMode = Literal["json_schema", "json_object_schema", "json_object", "prompt"]
"""How a typed reply may be asked for (``masis.schema.calls.ReplyMode`` without plain text)."""

Money = Annotated[float, Field(ge=0, allow_inf_nan=False)]


class ProviderSettings(Record):
    """One table ``[providers.NAME]`` of the configuration file; what is None is as the provider has it by default.

    ``key_env`` names the variable, or the entry of the secrets file, that holds the key, which goes to ``address`` and
    nowhere else. ``mode`` fixes how typed replies are asked for instead of finding out what the server takes.
    ``effort`` is how long a model that thinks before it replies may do so. ``adapts`` says whether it is found out how
    many calls at once the server serves, up to ``concurrency``: at local addresses it is, unless this says otherwise.
    """

    kind: Wire | None = None
    address: str | None = None
    key_env: Annotated[str, Field(pattern=r"^[A-Za-z_][A-Za-z0-9_]{0,127}$")] | None = None
    concurrency: Annotated[int, Field(ge=1, le=1000)] | None = None
    adapts: bool | None = None
    mode: TypedMode | None = None
    effort: Literal["low", "medium", "high"] | None = None


class Price(Record):
    """US dollars for a million tokens. Where ``cached_input`` or ``cache_write`` is None, they cost what input does."""

    input: Money
    output: Money
    cached_input: Money | None = None
    cache_write: Money | None = None

"""The providers of this package, each of which makes one try over the network.

``base`` defines a provider, ``sdk_provider`` makes a try through a vendor's SDK, and one file for
each SDK imports it. The functions here register the APIs (``masis.llm.provider_apis``).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from masis.llm.provider_apis import provider

if TYPE_CHECKING:
    from masis.llm.endpoints import Endpoint
    from masis.llm.providers.base import Provider


@provider("OpenAI's Chat Completions")
def openai_api(endpoint: Endpoint) -> Provider:
    """Return a provider for a server that speaks OpenAI's Chat Completions, as most do."""
    from masis.llm.providers.openai_compatible import OpenAICompatible

    return OpenAICompatible(endpoint)


@provider(
    "Anthropic's Messages",
    extra="anthropic",
    library="anthropic",
    home="masis.llm.providers.anthropic",
)
def anthropic_api(endpoint: Endpoint) -> Provider:
    """Return a provider for a server that speaks Anthropic's Messages."""
    from masis.llm.providers.anthropic import Anthropic

    return Anthropic(endpoint)

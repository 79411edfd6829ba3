"""Names of attributes by OpenTelemetry's GenAI semantic conventions, and how model strings read in them."""

from __future__ import annotations

from typing import NamedTuple

OPERATION = "gen_ai.operation.name"
PROVIDER = "gen_ai.provider.name"
REQUEST_MODEL = "gen_ai.request.model"
RESPONSE_MODEL = "gen_ai.response.model"
MAX_TOKENS = "gen_ai.request.max_tokens"
TEMPERATURE = "gen_ai.request.temperature"
INPUT_TOKENS = "gen_ai.usage.input_tokens"
OUTPUT_TOKENS = "gen_ai.usage.output_tokens"
CACHED_TOKENS = "gen_ai.usage.cache_read.input_tokens"
OUTPUT_TYPE = "gen_ai.output.type"
TOKEN_TYPE = "gen_ai.token.type"  # noqa: S105 (a name, no secret)
PROMPT_NAME = "gen_ai.prompt.name"
AGENT = "gen_ai.agent.name"
WORKFLOW = "gen_ai.workflow.name"
SYSTEM_INSTRUCTIONS = "gen_ai.system_instructions"
INPUT_MESSAGES = "gen_ai.input.messages"
OUTPUT_MESSAGES = "gen_ai.output.messages"
ERROR = "error.type"

ROLE_OF_STEP = {
    "drafting": "drafter",
    "claims": "verifier",
    "critique": "critic",
    "revision": "reviser",
    "evaluation": "evaluator",
}
"""Who does a step; citations are counted by code."""

_WELL_KNOWN = {"mistral": "mistral_ai", "xai": "x_ai", "azure": "azure.ai.openai", "gemini": "gcp.gemini"}
"""Providers that the conventions know under another name."""


class ModelName(NamedTuple):
    """A model string as the conventions have it."""

    provider: str
    model: str


def model_name(string: str) -> ModelName | None:
    """Return ``openai:gpt-4o`` as provider and model; None for what is no language model."""
    provider, _, model = string.partition(":")
    return ModelName(provider_name(provider), model) if model else None


def provider_name(provider: str) -> str:
    """Return a provider's name as the conventions have it."""
    return _WELL_KNOWN.get(provider, provider)

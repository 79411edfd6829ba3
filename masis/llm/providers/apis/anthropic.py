"""Anthropic's Messages API, through its SDK (the extra ``anthropic``).

A typed reply is requested by ``output_config``. If the server refuses that, it's requested by a
tool that must be called (the mode ``json_object``), then by the schema in the prompt. The question,
the evidence and the parts that the calls of a role share are marked for the cache. No temperature
is sent, because current models refuse it and the SDK no longer has the parameter.
"""

from __future__ import annotations

import json
from typing import Any

from masis.llm.provider_apis import KnownProvider, provider
from masis.llm.providers.base import Call, Endpoint, Provider, TokenUsage, count
from masis.llm.providers.sdk_provider import Completion, End, SdkProvider

WORTH_CACHING = 2_000
"""Minimum number of characters of a part that is marked for the cache, which needs 512 tokens or
more depending on the model.
"""
EFFORT = "low"
"""How much models think before they reply. It's low because calls end after 15 s, thinking included
(REQ-CRITIC-NFR-001).
"""


ENDS: dict[str, End] = {
    "refusal": "declined",
    "max_tokens": "limit",
    "model_context_window_exceeded": "context",
}
"""The meaning of ``stop_reason``; any other value ends a whole reply."""


@provider(
    "Anthropic's Messages",
    extra="anthropic",
    library="anthropic",
    parameters=("effort", "cache_control"),
    known={
        "anthropic": KnownProvider(
            "Anthropic",
            "https://api.anthropic.com",
            key_env="ANTHROPIC_API_KEY",
            address_env="ANTHROPIC_BASE_URL",
            strong="claude-sonnet-5-5",
            plain="claude-haiku-5-5",
            get_a_key="https://console.anthropic.com/settings/keys",
        ),
    },
)
def api(endpoint: Endpoint) -> Provider:
    """Return a provider for a server that speaks Anthropic's Messages."""
    return Anthropic(endpoint)


class Anthropic(SdkProvider):
    """One server that speaks Messages."""

    reply_name = "message of this API"

    def __init__(self, endpoint: Endpoint) -> None:
        import anthropic

        # The SDK appends /v1/messages itself.
        address = endpoint.address.removesuffix("/v1")
        super().__init__(
            anthropic, anthropic.AnthropicError, anthropic.AsyncAnthropic, address, endpoint
        )

    @property
    def _resource(self) -> Any:
        return self._client.messages

    def _request(self, call: Call) -> dict[str, Any]:
        prompt = call.prompt
        parts: list[dict[str, Any]] = [
            {"type": "text", "text": text} for text in (prompt.system, prompt.shared)
        ]
        if "cache_control" not in call.without:
            # A cached beginning includes everything before it, so the second size has both parts.
            for part, size in zip(
                parts, (len(prompt.system), len(prompt.system) + len(prompt.shared)), strict=True
            ):
                if size >= WORTH_CACHING:
                    part["cache_control"] = {"type": "ephemeral"}
        system, shared = parts
        task = call.task_with_schema() if call.mode == "prompt" else call.task()
        output: dict[str, Any] = {}
        if "effort" not in call.without:
            output["effort"] = self._endpoint.effort or EFFORT
        if call.mode == "json_schema":
            output["format"] = {"type": "json_schema", "schema": call.schema.schema}
        # In ``extra_body``, because the SDK transforms typed parameters, above all a schema, which
        # takes a millisecond per call.
        extra_body: dict[str, Any] = {"output_config": output} if output else {}
        if call.mode == "json_object":
            tool = {
                "name": call.schema.name,
                "description": "Hand in the reply.",
                "input_schema": call.schema.schema,
            }
            extra_body |= {
                "tools": [tool],
                "tool_choice": {"type": "tool", "name": call.schema.name},
            }
        return {
            "model": call.model,
            "max_tokens": call.token_limit,
            "system": [system],
            "messages": [{"role": "user", "content": [shared, {"type": "text", "text": task}]}],
            "extra_body": extra_body,
        }

    def _error_in(self, body: dict[str, Any]) -> Any:
        if error := body.get("error"):
            return error
        return {"message": body.get("message") or ""} if body.get("type") == "error" else None

    def _of_events(self, events: list[dict[str, Any]], done: bool) -> dict[str, Any] | None:
        """Return the message of a stream, or None if its last event is missing."""
        body: dict[str, Any] = {}
        blocks: dict[Any, dict[str, Any]] = {}
        for event in events:
            match event:
                case {"type": "error", "error": error}:
                    return {"type": "error", "error": error}
                case {"type": "message_start", "message": dict(message)}:
                    body |= message
                case {
                    "type": "content_block_start",
                    "index": int(index),
                    "content_block": dict(block),
                }:
                    # The input of a tool call starts as an empty object and arrives as pieces of
                    # JSON text.
                    blocks[index] = {**block, "input": "", "text": str(block.get("text") or "")}
                case {
                    "type": "content_block_delta",
                    "index": int(index),
                    "delta": dict(delta),
                } if index in blocks:
                    blocks[index]["text"] += str(delta.get("text") or "")
                    blocks[index]["input"] += str(delta.get("partial_json") or "")
                case {"type": "message_delta", "delta": dict(delta)}:
                    body |= delta
                    if isinstance(event.get("usage"), dict):
                        body["usage"] = {**(body.get("usage") or {}), **event["usage"]}
        # Without message_stop the connection broke, although what arrived may parse.
        if not any(event.get("type") == "message_stop" for event in events):
            return None
        return body | {"content": list(blocks.values())}

    def _completion(self, body: dict[str, Any], call: Call) -> Completion | None:
        if not isinstance(body.get("content"), list):
            return None
        usage, stop = body.get("usage"), str(body.get("stop_reason"))
        cached, written = (
            count(usage, "cache_read_input_tokens"),
            count(usage, "cache_creation_input_tokens"),
        )
        tokens = TokenUsage(
            # Unlike OpenAI, Anthropic counts only the uncached tokens as input_tokens.
            prompt=count(usage, "input_tokens") + cached + written,
            cached=cached,
            written=written,
            completion=count(usage, "output_tokens"),
            thought=count(usage, "output_tokens_details", "thinking_tokens"),
        )
        return Completion(
            _block_text(body["content"]), body.get("model"), tokens, ENDS.get(stop, "whole")
        )


def _block_text(blocks: list[Any]) -> str:
    """Return the text, or the arguments of the tool call, without the model's thinking."""
    parts = []
    for block in blocks:
        match block:
            case {"type": "text", "text": str(text)}:
                parts.append(text)
            case {"type": "tool_use", "input": str(arguments)}:  # of a stream
                parts.append(arguments)
            case {"type": "tool_use"}:
                parts.append(json.dumps(block.get("input"), ensure_ascii=False))
    return "\n".join(parts)

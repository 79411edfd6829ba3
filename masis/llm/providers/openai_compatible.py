"""OpenAI's Chat Completions, as OpenAI and most other servers speak it (vLLM, Ollama, llama.cpp, LM Studio).

Only calls that ``openai`` 2.20 and 3 both have. The reply's body is read here, not by the SDK's types: servers that
are merely compatible leave fields out, and a deadline counts over the whole reply.
"""

from __future__ import annotations

import hashlib
from typing import Any
from urllib.parse import urlsplit

import openai

from masis.llm.endpoints import Endpoint
from masis.llm.providers.base import Call, Tokens, count
from masis.llm.providers.sdk_provider import End, Said, SdkProvider

OPENAI_HOST = "api.openai.com"
AZURE_HOSTS = ".openai.azure.com"
ENDS: dict[str, End] = {"content_filter": "filtered", "length": "limit"}
"""What a reason to finish means; any other is the end of a whole reply."""


class OpenAICompatible(SdkProvider):
    """One server that speaks Chat Completions."""

    reply_name = "chat completion"

    def __init__(self, endpoint: Endpoint) -> None:
        super().__init__(openai, openai.OpenAIError, openai.AsyncOpenAI, endpoint.address, endpoint)
        host = urlsplit(endpoint.address).hostname or ""
        self._is_openai = host == OPENAI_HOST
        self.schema_in_cache = self._is_openai or host.endswith(AZURE_HOSTS)
        if not self._is_openai:  # llama-cpp-python and others take a schema in JSON mode only
            self.modes = ("json_schema", "json_object_schema", "json_object", "prompt")
        if not endpoint.of_vendor:  # what the SDK took from OPENAI_ORG_ID and the like is for OpenAI alone
            self._client.organization = self._client.project = self._client.admin_api_key = None

    @property
    def _resource(self) -> Any:
        return self._client.chat.completions

    def _request(self, call: Call) -> dict[str, Any]:
        prompt, task = call.prompt, call.task()
        if call.mode in ("json_object_schema", "json_object", "prompt"):
            task = call.task_with_schema()
        if "system" in call.without:
            messages = [{"role": "user", "content": f"{prompt.system}\n\n{prompt.shared}\n\n{task}"}]
        else:
            messages = [
                {"role": "system", "content": prompt.system},
                {"role": "user", "content": f"{prompt.shared}\n\n{task}"},
            ]
        # Beside the core all goes as ``extra_body``: the SDK walks through typed parameters, a schema above all, for a
        # millisecond a call, and its releases differ in what they know.
        more: dict[str, Any] = {}
        limits = ("max_completion_tokens", "max_tokens") if self._is_openai else ("max_tokens", "max_completion_tokens")
        if limit := next((name for name in limits if name not in call.without), None):
            more[limit] = call.max_tokens * call.room
        if call.temperature is not None and "temperature" not in call.without:
            more["temperature"] = call.temperature
        if self._endpoint.effort and "effort" not in call.without:
            more["reasoning_effort"] = self._endpoint.effort
        if call.mode == "json_schema":
            given = {"name": call.schema.name, "strict": True, "schema": call.schema.schema}
            more["response_format"] = {"type": "json_schema", "json_schema": given}
        elif call.mode == "json_object_schema":
            more["response_format"] = {"type": "json_object", "schema": call.schema.schema}
        elif call.mode == "json_object":
            more["response_format"] = {"type": "json_object"}
        if self._is_openai and "prompt_cache_key" not in call.without:
            digest = hashlib.sha256(prompt.cached.encode()).hexdigest()
            more["prompt_cache_key"] = digest[:32]
        return {"model": call.model, "messages": messages, "extra_body": more}

    def _said(self, body: Any, call: Call) -> Said | None:
        # OpenRouter and others send an error with status 200.
        if isinstance(body, dict) and "choices" not in body and body.get("error"):
            code = body["error"].get("code") if isinstance(body["error"], dict) else None
            raise self._refused(code if isinstance(code, int) and 400 <= code < 600 else 500, {}, body, call)
        match body:
            case {"choices": [dict(choice), *_]}:
                pass
            case _:
                return None
        message, usage = choice.get("message"), body.get("usage")
        message = message if isinstance(message, dict) else {}
        tokens = Tokens(
            prompt=count(usage, "prompt_tokens"),
            cached=count(usage, "prompt_tokens_details", "cached_tokens") or count(usage, "prompt_cache_hit_tokens"),
            written=count(usage, "prompt_tokens_details", "cache_write_tokens"),
            completion=count(usage, "completion_tokens"),
            thought=count(usage, "completion_tokens_details", "reasoning_tokens"),
        )
        if isinstance(declined := message.get("refusal"), str) and declined.strip():
            return Said(declined, body.get("model"), tokens, "declined")
        end = ENDS.get(str(choice.get("finish_reason")), "whole")
        return Said(_text(message.get("content")), body.get("model"), tokens, end)


def _text(content: Any) -> str:
    """The text of a message, which some servers send in parts."""
    parts = content if isinstance(content, list) else [{"text": content}]
    texts = (part.get("text") for part in parts if isinstance(part, dict))
    return "".join(text for text in texts if isinstance(text, str))


PROVIDER = OpenAICompatible

"""OpenAI's Chat Completions API, which most servers speak (vLLM, Ollama, llama.cpp, LM Studio).

It uses only calls that both ``openai`` 2.20 and 3 have. The body of a reply is parsed here rather
than by the SDK, because compatible servers omit fields, and a deadline applies to the whole reply.
"""

from __future__ import annotations

import hashlib
import json
from typing import Any
from urllib.parse import urlsplit

from masis.llm.client.reply_parsing import record_at_the_end
from masis.llm.provider_apis import KnownProvider, provider
from masis.llm.providers.base import Call, Endpoint, Provider, TokenUsage, count
from masis.llm.providers.sdk_provider import Completion, End, SdkProvider

OPENAI_HOST = "api.openai.com"
AZURE_HOSTS = ".openai.azure.com"
ENDS: dict[str, End] = {"content_filter": "filtered", "length": "limit"}
"""The meaning of ``finish_reason``; any other value ends a whole reply."""
REASONING = ("reasoning_content", "reasoning")
"""Keys beside the content that hold the model's reasoning."""
THOUGHTS = frozenset(("thinking", "reasoning"))
"""The types of content parts that hold the model's reasoning (Mistral)."""


@provider(
    "OpenAI's Chat Completions",
    library="openai",
    parameters=(
        "effort",
        "max_completion_tokens",
        "max_tokens",
        "temperature",
        "prompt_cache_key",
        "system",
    ),
    known={
        "openai": KnownProvider(
            "OpenAI",
            "https://api.openai.com/v1",
            key_env="OPENAI_API_KEY",
            address_env="OPENAI_BASE_URL",
            strong="gpt-4o",
            plain="gpt-4o-mini",
            get_a_key="https://platform.openai.com/api-keys",
        ),
        "ollama": KnownProvider("Ollama on this machine", "http://127.0.0.1:11434/v1"),
        "lmstudio": KnownProvider("LM Studio on this machine", "http://127.0.0.1:1234/v1"),
        "vllm": KnownProvider("vLLM on this machine", "http://127.0.0.1:8000/v1", batches=True),
        "llamacpp": KnownProvider("llama.cpp's server on this machine", "http://127.0.0.1:8080/v1"),
    },
)
def api(endpoint: Endpoint) -> Provider:
    """Return a provider for a server that speaks OpenAI's Chat Completions, as most do."""
    return OpenAICompatible(endpoint)


class OpenAICompatible(SdkProvider):
    """One server that speaks Chat Completions."""

    reply_name = "chat completion"

    def __init__(self, endpoint: Endpoint) -> None:
        import openai

        super().__init__(openai, openai.OpenAIError, openai.AsyncOpenAI, endpoint.address, endpoint)
        host = urlsplit(endpoint.address).hostname or ""
        self._is_openai = host == OPENAI_HOST
        self.schema_in_cache = self._is_openai or host.endswith(AZURE_HOSTS)
        if not self._is_openai:  # llama-cpp-python and others take a schema in JSON mode only
            self.modes = ("json_schema", "json_object_schema", "json_object", "prompt")
        # The SDK reads OPENAI_ORG_ID and the like from the environment; only OpenAI may get them.
        if not endpoint.of_vendor:
            self._client.organization = self._client.project = self._client.admin_api_key = None

    @property
    def _resource(self) -> Any:
        return self._client.chat.completions

    def _request(self, call: Call) -> dict[str, Any]:
        prompt, task = call.prompt, call.task()
        if call.mode in ("json_object_schema", "json_object", "prompt"):
            task = call.task_with_schema()
        if "system" in call.without:
            messages = [
                {"role": "user", "content": f"{prompt.system}\n\n{prompt.shared}\n\n{task}"}
            ]
        else:
            messages = [
                {"role": "system", "content": prompt.system},
                {"role": "user", "content": f"{prompt.shared}\n\n{task}"},
            ]
        # All other parameters are in ``extra_body``. The SDK transforms typed parameters, above all
        # a schema, which takes a millisecond per call, and its releases know different ones.
        extra_body: dict[str, Any] = {}
        limits = (
            ("max_completion_tokens", "max_tokens")
            if self._is_openai
            else ("max_tokens", "max_completion_tokens")
        )
        # OpenAI's reasoning models refuse max_tokens, and older compatible servers don't know
        # max_completion_tokens. If the server refuses one, the other is sent.
        if limit := next((name for name in limits if name not in call.without), None):
            extra_body[limit] = call.token_limit
        if call.temperature is not None and "temperature" not in call.without:
            extra_body["temperature"] = call.temperature
        if self._endpoint.effort and "effort" not in call.without:
            extra_body["reasoning_effort"] = self._endpoint.effort
        if call.mode == "json_schema":
            schema = {"name": call.schema.name, "strict": True, "schema": call.schema.schema}
            extra_body["response_format"] = {"type": "json_schema", "json_schema": schema}
        elif call.mode == "json_object_schema":
            extra_body["response_format"] = {"type": "json_object", "schema": call.schema.schema}
        elif call.mode == "json_object":
            extra_body["response_format"] = {"type": "json_object"}
        if self._is_openai and "prompt_cache_key" not in call.without:
            digest = hashlib.sha256(prompt.cached.encode()).hexdigest()
            # Requests with the same key tend to be routed to the same machine, whose cache then has
            # their beginning (platform.openai.com/docs/guides/prompt-caching).
            extra_body["prompt_cache_key"] = digest[:32]
        return {"model": call.model, "messages": messages, "extra_body": extra_body}

    def _error_in(self, body: dict[str, Any]) -> Any:
        if error := body.get("error"):
            return error
        choice = _first_choice(body)
        message = choice.get("message")
        error = choice.get("error") or (message.get("error") if isinstance(message, dict) else None)
        if error or choice.get("finish_reason") == "error":
            return error or {"message": "the provider ended the reply with an error"}
        # vLLM before 0.10, FastChat
        if body.get("object") == "error" or body.get("type") == "error":
            return {
                "message": body.get("message") or "",
                "code": body.get("code"),
                "type": body.get("type"),
            }
        # OpenRouter and some proxies leave out the object around code and message.
        is_bare_error = (
            "choices" not in body and "code" in body and isinstance(body.get("message"), str)
        )
        return {"message": body["message"], "code": body["code"]} if is_bare_error else None

    def _of_events(self, events: list[dict[str, Any]], done: bool) -> dict[str, Any] | None:
        """Return the completion of a stream, with joined texts and the last value of every other
        field.
        """
        joined: dict[str, str] = {}
        body: dict[str, Any] = {}
        finish = None
        for event in events:
            body |= {name: event[name] for name in ("model", "usage", "error") if event.get(name)}
            choice = _first_choice(event)
            finish = choice.get("finish_reason") or finish
            delta = choice.get("delta") or choice.get("message")
            texts = delta if isinstance(delta, dict) else {}
            # Texts arrive in pieces, all other fields as a whole.
            for name in (*REASONING, "content", "refusal"):
                if isinstance(texts.get(name), str):
                    joined[name] = joined.get(name, "") + texts[name]
        if finish is None and not done and not body.get("error"):
            return None
        return body | {"choices": [{"message": joined, "finish_reason": finish}]}

    def _completion(self, body: dict[str, Any], call: Call) -> Completion | None:
        choice = _first_choice(body)
        if not choice:
            return None
        message, usage = choice.get("message"), body.get("usage")
        message = message if isinstance(message, dict) else {}
        tokens = TokenUsage(
            prompt=count(usage, "prompt_tokens"),
            # prompt_cache_hit_tokens is DeepSeek's name.
            cached=count(usage, "prompt_tokens_details", "cached_tokens")
            or count(usage, "prompt_cache_hit_tokens"),
            written=count(usage, "prompt_tokens_details", "cache_write_tokens"),
            completion=count(usage, "completion_tokens"),
            thought=count(usage, "completion_tokens_details", "reasoning_tokens"),
        )
        # A refusal has a field of its own, because it can't follow the requested schema
        # (platform.openai.com/docs/guides/structured-outputs#refusals).
        if isinstance(refusal := message.get("refusal"), str) and refusal.strip():
            return Completion(refusal, body.get("model"), tokens, "declined")
        end = ENDS.get(str(choice.get("finish_reason")), "whole")
        text = _message_text(message.get("content"))
        if call.mode != "text" and not text.strip():
            text = _tool_call_text(message) or _filed_as_reasoning(message) or ""
        return Completion(text, body.get("model"), tokens, end)


def _first_choice(body: dict[str, Any]) -> dict[str, Any]:
    """Return the first of the choices; empty where there is none."""
    choices = body.get("choices")
    return (
        choices[0] if isinstance(choices, list) and choices and isinstance(choices[0], dict) else {}
    )


def _tool_call_text(message: dict[str, Any]) -> str | None:
    """Return the arguments of a function call if it's the whole reply, else None.

    Some models and servers answer a schema with a call of a function of its name. Several calls are
    ambiguous, so they aren't read.
    """
    calls = message.get("tool_calls") or [{"function": message.get("function_call")}]
    functions = (
        [call.get("function") for call in calls if isinstance(call, dict)]
        if isinstance(calls, list)
        else []
    )
    match functions:
        case [{"arguments": str(arguments)}]:
            return arguments
        case [{"arguments": dict(arguments)}]:  # Ollama
            return json.dumps(arguments, ensure_ascii=False)
    return None


def _filed_as_reasoning(message: dict[str, Any]) -> str | None:
    """Return the record at the end of the model's reasoning, or None.

    If the reasoning parser of vLLM or Ollama finds no end of the reasoning, it puts the whole reply
    there.
    """
    thoughts = [message[name] for name in REASONING if isinstance(message.get(name), str)]
    return record_at_the_end(thoughts[0]) if thoughts else None


def _message_text(content: Any) -> str:
    """Return the text of a message, which some servers send in parts."""
    parts = content if isinstance(content, list) else [{"text": content}]
    texts = (
        part.get("text")
        for part in parts
        if isinstance(part, dict) and part.get("type") not in THOUGHTS
    )
    return "".join(text for text in texts if isinstance(text, str))

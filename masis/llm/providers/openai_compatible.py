"""OpenAI's Chat Completions, as OpenAI and most other servers speak it (vLLM, Ollama, llama.cpp, LM Studio).

Only calls that ``openai`` 2.20 and 3 both have. The reply's body is read here, not by the SDK's types: servers that
are merely compatible leave fields out, and a deadline counts over the whole reply.
"""

from __future__ import annotations

import hashlib
import json
from typing import Any
from urllib.parse import urlsplit

import openai

from masis.llm.endpoints import Endpoint
from masis.llm.providers import provider_errors
from masis.llm.providers.base import (
    CONNECT_S,
    Call,
    Reply,
    Tokens,
    Trouble,
    TryFailed,
    body_of,
    count,
    http_client,
    quiet,
    transport_of,
    whole_characters,
)
from masis.schema.calls import ReplyMode

OPENAI_HOST = "api.openai.com"
_HTTP = transport_of(openai.DefaultHttpxClient)


class OpenAICompatible:
    """One server. The client and its connections are shared by all calls to it."""

    modes: tuple[ReplyMode, ...] = ("json_schema", "json_object", "prompt")

    def __init__(self, endpoint: Endpoint) -> None:
        quiet("openai")
        self._endpoint = endpoint
        self._is_openai = urlsplit(endpoint.address).hostname == OPENAI_HOST
        self._key = endpoint.key.get_secret_value() if endpoint.key else ""
        self._client = openai.OpenAI(
            api_key=self._key or "none",  # servers without keys take any; the SDK wants one
            base_url=endpoint.address,
            max_retries=0,
            http_client=http_client(openai.DefaultHttpxClient, endpoint.address),
        )
        if not endpoint.of_vendor:  # what the SDK took from OPENAI_ORG_ID and the like is for OpenAI alone
            self._client.organization = self._client.project = self._client.admin_api_key = None
            self._client._custom_headers = {}

    def answer(self, call: Call) -> Reply:
        """One try. Raises TryFailed."""
        failed: TryFailed
        try:
            with self._client.chat.completions.with_streaming_response.create(
                **self._request(call), timeout=openai.Timeout(call.timeout_s, connect=min(CONNECT_S, call.timeout_s))
            ) as response:
                body = body_of(response.iter_bytes(), call.timeout_s)
            return self._reply(body, call)
        except openai.APIStatusError as error:
            failed = self._status(error.status_code, error.response.headers, error.body, call)
        except (openai.APIConnectionError, _HTTP.RequestError, OSError) as error:
            failed = provider_errors.from_connection(error, self._endpoint.address)
        except openai.OpenAIError as error:
            failed = TryFailed("request", f"the SDK refused the call ({type(error).__name__})")
        raise failed  # outside the handler: the SDK's error holds the request, and with it the key

    def _request(self, call: Call) -> dict[str, Any]:
        prompt, task = call.prompt, call.task()
        if call.mode in ("json_object", "prompt"):
            task = call.task_with_schema()
        if "system" in call.without:
            messages = [{"role": "user", "content": f"{prompt.frame}\n\n{prompt.shared}\n\n{task}"}]
        else:
            messages = [
                {"role": "system", "content": prompt.frame},
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
        elif call.mode == "json_object":
            more["response_format"] = {"type": "json_object"}
        if self._is_openai and "prompt_cache_key" not in call.without:
            digest = hashlib.sha256(f"{prompt.frame}\0{prompt.shared}".encode()).hexdigest()
            more["prompt_cache_key"] = digest[:32]
        return {"model": call.model, "messages": messages, "extra_body": more}

    def _status(self, status: int, headers: Any, body: Any, call: Call) -> TryFailed:
        return provider_errors.from_status(
            status, headers, body, key_name=self._endpoint.key_name, model=call.model, key=self._key
        )

    def _reply(self, body: bytes, call: Call) -> Reply:
        try:
            data = json.loads(body)
        except (ValueError, RecursionError):
            data = None
        # OpenRouter and others send an error with status 200.
        if isinstance(data, dict) and "choices" not in data and data.get("error"):
            code = data["error"].get("code") if isinstance(data["error"], dict) else None
            raise self._status(code if isinstance(code, int) and 400 <= code < 600 else 500, {}, data, call)
        choice = _first(data.get("choices")) if isinstance(data, dict) else None
        if not isinstance(data, dict) or choice is None:
            raise TryFailed(
                "malformed", "the server's reply is no chat completion", raw=body[:2000].decode("utf-8", "replace")
            )
        message = choice.get("message")
        message = message if isinstance(message, dict) else {}
        text, usage = _text(message.get("content")), data.get("usage")
        answered_by = data["model"][:200] if isinstance(data.get("model"), str) else None
        tokens = Tokens(
            prompt=count(usage, "prompt_tokens"),
            cached=count(usage, "prompt_tokens_details", "cached_tokens") or count(usage, "prompt_cache_hit_tokens"),
            written=count(usage, "prompt_tokens_details", "cache_write_tokens"),
            completion=count(usage, "completion_tokens"),
            thought=count(usage, "completion_tokens_details", "reasoning_tokens"),
        )

        def failed(trouble: Trouble, said: str, raw: str) -> TryFailed:
            return TryFailed(trouble, said, raw=raw, answered_by=answered_by, tokens=tokens)

        if isinstance(declined := message.get("refusal"), str) and declined.strip():
            raise failed("refused", "the model declined to answer", whole_characters(declined))
        if choice.get("finish_reason") == "content_filter":
            raise failed("refused", "a content filter stopped the reply", text)
        if choice.get("finish_reason") == "length":
            raise failed("cut_off", f"the reply was cut off at {call.max_tokens * call.room} tokens", text)
        if not text.strip():
            raise failed("empty", "the reply is empty", text)
        return Reply(text, answered_by, tokens)


def _first(choices: Any) -> dict[str, Any] | None:
    return choices[0] if isinstance(choices, list) and choices and isinstance(choices[0], dict) else None


def _text(content: Any) -> str:
    """The text of a message, which some servers send in parts."""
    if isinstance(content, list):
        content = "".join(
            part["text"] for part in content if isinstance(part, dict) and isinstance(part.get("text"), str)
        )
    return whole_characters(content) if isinstance(content, str) else ""


PROVIDER = OpenAICompatible

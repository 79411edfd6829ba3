"""The common base of providers whose SDKs are built alike (OpenAI's and Anthropic's)."""

from __future__ import annotations

import asyncio
import json
from abc import ABC, abstractmethod
from contextlib import suppress
from types import ModuleType
from typing import Any, Literal, NamedTuple

from masis.audit.control.concurrency import wait_for_coroutine
from masis.llm.providers import provider_errors
from masis.llm.providers.base import (
    CONNECT_S,
    Call,
    Endpoint,
    FailureKind,
    ModelReply,
    TokenUsage,
    TryFailed,
    body_of,
    http_client,
    quiet,
    transport_of,
)
from masis.llm.providers.provider_errors import LARGER_CONTEXT
from masis.schema.calls import ReplyMode

RAW_MOST = 2000
"""Maximum number of bytes of an unreadable body that are recorded."""
FULL_BELOW = 0.9
"""A reply that was cut off below this share of its token limit filled the model's context."""

End = Literal["whole", "declined", "filtered", "limit", "context"]
"""How a reply ended: whole, declined by the model, stopped by a filter, or cut off at the token
limit or the end of the context.
"""


class Completion(NamedTuple):
    """The content of a reply in any API; if the model declined, ``text`` is its explanation."""

    text: str
    answered_by: Any
    tokens: TokenUsage
    end: End


class SdkProvider(ABC):
    """One server; all calls to it share its client and connections."""

    modes: tuple[ReplyMode, ...] = ("json_schema", "json_object", "prompt")
    schema_in_cache = True
    reply_name: str
    """The name of a reply in this API."""

    def __init__(
        self,
        sdk: ModuleType,
        sdk_error: type[Exception],
        client: type,
        base_url: str,
        endpoint: Endpoint,
    ):
        quiet(sdk.__name__)
        self._sdk, self._sdk_error, self._endpoint = sdk, sdk_error, endpoint
        self._http = transport_of(sdk.DefaultAsyncHttpxClient)
        self._key = endpoint.key.get_secret_value() if endpoint.key else ""
        self._client: Any = client(
            api_key=self._key or "none",  # the SDK requires a key; servers without keys accept any
            base_url=base_url,
            # The SDK doesn't know the deadline of the run (masis/llm/client/retry.py).
            max_retries=0,
            http_client=http_client(sdk.DefaultAsyncHttpxClient, endpoint.address),
        )
        # The SDK reads extra headers from the environment, which only its vendor may get.
        if not endpoint.of_vendor:
            self._client._custom_headers = {}

    @property
    @abstractmethod
    def _resource(self) -> Any:
        """The part of the client that creates replies."""

    @abstractmethod
    def _request(self, call: Call) -> dict[str, Any]:
        """Return the arguments of a call."""

    @abstractmethod
    def _completion(self, body: dict[str, Any], call: Call) -> Completion | None:
        """Return the content of a body, or None if it isn't one of this API."""

    @abstractmethod
    def _error_in(self, body: dict[str, Any]) -> Any:
        """Return the error in a body, or an empty value if it has none."""

    @abstractmethod
    def _of_events(self, events: list[dict[str, Any]], done: bool) -> dict[str, Any] | None:
        """Return the body of a stream of events, or None if it broke off; ``done`` is whether the
        stream announced its end.
        """

    def answer(self, call: Call) -> ModelReply:
        """Make one try. Raises TryFailed."""
        content = wait_for_coroutine(self._body(call))
        body = self._parse_body(content)
        # OpenRouter and others send an error with status 200, also beside choices that are null or
        # empty.
        if error := self._error_in(body):
            error_body = {"error": error}
            raise self._failure(provider_errors.status_within(error_body), {}, error_body, call)
        completion = self._completion(body, call)
        if completion is None:
            raise self._no_reply(content, body)
        answered_by = completion.answered_by if isinstance(completion.answered_by, str) else None
        if failure := _failure(completion, call.token_limit):
            raise TryFailed(
                *failure, raw=completion.text, answered_by=answered_by, tokens=completion.tokens
            )
        return ModelReply(completion.text, answered_by, completion.tokens)

    def _parse_body(self, content: bytes) -> dict[str, Any]:
        """Return the object that a server sent, empty if there is none.

        Raises:
            TryFailed: A stream broke off.

        """
        # Some servers stream although no stream was requested.
        if content.lstrip()[:6] in (b"data: ", b"event:"):
            if (body := self._of_events(*_events(content))) is None:
                raise TryFailed("reset", "the stream ended before the reply did")
            return body
        try:
            parsed = json.loads(content)
        except (ValueError, RecursionError):
            return {}
        # Gemini's compatible API sends its errors in a list.
        if isinstance(parsed, list) and len(parsed) == 1:
            parsed = parsed[0]
        return parsed if isinstance(parsed, dict) else {}

    def _no_reply(self, content: bytes, body: dict[str, Any]) -> TryFailed:
        """Return the failure for a body with neither a reply nor an error."""
        message = f"the server's reply isn't a {self.reply_name}"
        # A proxy or a login page answers with HTML and status 200.
        if content.lstrip()[:1] == b"<":
            message = (
                f"{message} but a web page: check the address, and whether a proxy wants a sign-in"
            )
        elif server_message := provider_errors.scrub_error(
            provider_errors.refusal(body).message, self._key
        ):
            message = f"{message}: {server_message}"
        return TryFailed("malformed", message, raw=content[:RAW_MOST].decode("utf-8", "replace"))

    async def _body(self, call: Call) -> bytes:
        """Return the body that the server sends within the time of the call.

        The client's own timeout restarts with every received byte. The outer timeout doesn't, so a
        server that keeps the connection open by sending spaces can't exceed the deadline.

        Raises:
            TryFailed: The try failed, or time ran out.

        """
        failed: TryFailed
        timeout = self._sdk.Timeout(call.timeout_s, connect=min(CONNECT_S, call.timeout_s))
        request = self._resource.with_streaming_response.create(
            **self._request(call), timeout=timeout
        )
        try:
            async with asyncio.timeout(call.timeout_s), request as response:
                return await body_of(response.iter_bytes())
        except TimeoutError:
            failed = TryFailed("timeout", "no answer in the time given")
        except self._sdk.APIStatusError as error:
            failed = self._failure(error.status_code, error.response.headers, error.body, call)
        except (self._sdk.APIConnectionError, self._http.RequestError, OSError) as error:
            failed = provider_errors.from_connection(error, self._endpoint.address)
        except self._sdk_error as error:
            failed = TryFailed("request", f"the SDK refused the call ({type(error).__name__})")
        # Raised outside the handler, because the SDK's error holds the request and so the key.
        raise failed

    def _failure(self, status: int, headers: Any, body: Any, call: Call) -> TryFailed:
        """Return the failure for a status of 300 or more."""
        return provider_errors.from_status(
            status,
            headers,
            body,
            key_name=self._endpoint.key_name,
            model=call.model,
            key=self._key,
            provider=self._endpoint.name,
            parameters=self._endpoint.parameters,
            address_end="/v1",
        )


def _events(content: bytes) -> tuple[list[dict[str, Any]], bool]:
    """Return the objects of a server-sent event stream, and whether it announced its end."""
    events, done = list[dict[str, Any]](), False
    for line in content.splitlines():
        # Other lines are comments and fields such as "event:", whose value the data repeats (HTML
        # standard, 9.2.6).
        if not line.startswith(b"data:"):
            continue
        data = line[len(b"data:") :].strip()
        if data == b"[DONE]":
            done = True
            break
        with suppress(ValueError, RecursionError):
            if isinstance(event := json.loads(data), dict):
                events.append(event)
    return events, done


def _failure(completion: Completion, limit: int) -> tuple[FailureKind, str] | None:
    """Return the reason why a reply can't be used, or None; ``limit`` is its token limit."""
    tokens = completion.tokens
    # A reply that stops far below its token limit wasn't cut by that limit: the context was full.
    match completion.end:
        case "declined":
            return "refused", "the model declined to answer"
        case "filtered":
            return "refused", "a content filter stopped the reply"
        case "limit" if not 0 < tokens.completion < FULL_BELOW * limit:
            return "cut_off", f"the reply was cut off at {limit} tokens"
        case "limit" | "context":
            return (
                "too_long",
                (
                    f"the model's context is full: {tokens.prompt:,} tokens of question and"
                    f" evidence left room for {tokens.completion:,} of the {limit:,} that the reply"
                    f" may take. {LARGER_CONTEXT}"
                ),
            )
    return None

"""What providers share whose SDKs are generated alike (OpenAI's, Anthropic's): one try and its
failures.
"""

from __future__ import annotations

import asyncio
import json
from abc import ABC, abstractmethod
from contextlib import suppress
from types import ModuleType
from typing import Any, Literal, NamedTuple

from masis.audit.control.concurrency import wait_for_coroutine
from masis.llm.endpoints import Endpoint
from masis.llm.providers import provider_errors
from masis.llm.providers.base import (
    CONNECT_S,
    Call,
    ModelReply,
    TokenUsage,
    Trouble,
    TryFailed,
    body_of,
    http_client,
    quiet,
    transport_of,
    whole_characters,
)
from masis.llm.providers.provider_errors import LARGER_CONTEXT
from masis.schema.calls import ReplyMode

RAW_MOST = 2000
"""Bytes that are kept of a body that is no reply."""
FULL_BELOW = 0.9
"""A reply cut off below this share of its limit ended with the model's context, not
with the limit.
"""

End = Literal["whole", "declined", "filtered", "limit", "context"]
"""How a reply ended: as the model wanted; declined by the model or a filter; at the limit of tokens
or the context.
"""


class Completion(NamedTuple):
    """What a server's body says, whichever API it is of; ``text`` is what was said instead where
    the model declined.
    """

    text: str
    answered_by: Any
    tokens: TokenUsage
    end: End


class SdkProvider(ABC):
    """One server. The client and its connections are shared by all calls to it."""

    modes: tuple[ReplyMode, ...] = ("json_schema", "json_object", "prompt")
    schema_in_cache = True
    reply_name: str
    """What a reply is called in this API."""

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
            api_key=self._key or "none",  # servers without keys take any; the SDK wants one
            base_url=base_url,
            max_retries=0,
            http_client=http_client(sdk.DefaultAsyncHttpxClient, endpoint.address),
        )
        # headers that the SDK took from the environment are for its vendor alone
        if not endpoint.of_vendor:
            self._client._custom_headers = {}

    @property
    @abstractmethod
    def _resource(self) -> Any:
        """The part of the client that is asked for replies."""

    @abstractmethod
    def _request(self, call: Call) -> dict[str, Any]:
        """Return the arguments of a call."""

    @abstractmethod
    def _completion(self, body: dict[str, Any], call: Call) -> Completion | None:
        """Return what a body says; None where it is none of this API."""

    @abstractmethod
    def _error_in(self, body: dict[str, Any]) -> Any:
        """Return the error that a body holds in the place of a reply; empty where it holds none."""

    @abstractmethod
    def _of_events(self, events: list[dict[str, Any]], done: bool) -> dict[str, Any] | None:
        """Return the body that the events of a stream make up; None where it broke off: ``done``
        says it did not.
        """

    def answer(self, call: Call) -> ModelReply:
        """Make one try. Raises TryFailed."""
        content = wait_for_coroutine(self._body(call))
        body = self._parse_body(content)
        # OpenRouter and others send an error with status 200, also beside choices that are null or
        # empty.
        if error := self._error_in(body):
            held = {"error": error}
            raise self._failure(provider_errors.status_within(held), {}, held, call)
        said = self._completion(body, call)
        if said is None:
            raise self._no_reply(content, body)
        text, limit = whole_characters(said.text), call.max_tokens * call.room
        answered_by = said.answered_by[:200] if isinstance(said.answered_by, str) else None
        if failure := _failure(said, text, limit):
            raise TryFailed(*failure, raw=text, answered_by=answered_by, tokens=said.tokens)
        return ModelReply(text, answered_by, said.tokens)

    def _parse_body(self, content: bytes) -> dict[str, Any]:
        """Return the object that a server sent; empty where it sent none. Raises TryFailed for half
        a stream.
        """
        if content.lstrip()[:6] in (b"data: ", b"event:"):  # though no stream was asked for
            if (body := self._of_events(*_events(content))) is None:
                raise TryFailed("reset", "the stream ended before the reply did")
            return body
        try:
            parsed = json.loads(content)
        except (ValueError, RecursionError):
            return {}
        # so Gemini's compatible API sends its errors
        if isinstance(parsed, list) and len(parsed) == 1:
            parsed = parsed[0]
        return parsed if isinstance(parsed, dict) else {}

    def _no_reply(self, content: bytes, body: dict[str, Any]) -> TryFailed:
        """Return the failure behind a body that holds neither a reply nor an error by its name."""
        message = f"the server's reply is no {self.reply_name}"
        if content.lstrip()[:1] == b"<":
            message = (
                f"{message} but a web page: check the address, and whether a proxy wants a sign-in"
            )
        elif own := provider_errors.scrub_error(provider_errors.refusal(body).message, self._key):
            message = f"{message}: {own}"
        return TryFailed("malformed", message, raw=content[:RAW_MOST].decode("utf-8", "replace"))

    async def _body(self, call: Call) -> bytes:
        """Return what the server sends, within the time that the call has. Raises TryFailed.

        A client's own timeout restarts with every byte that comes; the one around it does not, so
        that a server which keeps a connection open with blanks can't hold a call past its deadline.
        """
        failed: TryFailed
        timeout = self._sdk.Timeout(call.timeout_s, connect=min(CONNECT_S, call.timeout_s))
        asked = self._resource.with_streaming_response.create(
            **self._request(call), timeout=timeout
        )
        try:
            async with asyncio.timeout(call.timeout_s), asked as response:
                return await body_of(response.iter_bytes())
        except TimeoutError:
            failed = TryFailed("timeout", "no answer in the time given")
        except self._sdk.APIStatusError as error:
            failed = self._failure(error.status_code, error.response.headers, error.body, call)
        except (self._sdk.APIConnectionError, self._http.RequestError, OSError) as error:
            failed = provider_errors.from_connection(error, self._endpoint.address)
        except self._sdk_error as error:
            failed = TryFailed("request", f"the SDK refused the call ({type(error).__name__})")
        raise failed  # outside the handler: the SDK's error holds the request, and with it the key

    def _failure(self, status: int, headers: Any, body: Any, call: Call) -> TryFailed:
        """Return the failure behind a status of 300 or more."""
        return provider_errors.from_status(
            status,
            headers,
            body,
            key_name=self._endpoint.key_name,
            model=call.model,
            key=self._key,
            provider=self._endpoint.name,
        )


def _events(content: bytes) -> tuple[list[dict[str, Any]], bool]:
    """Return the objects of a stream of server-sent events, and whether it says that it is done."""
    events, done = list[dict[str, Any]](), False
    for line in content.splitlines():
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


def _failure(said: Completion, text: str, limit: int) -> tuple[Trouble, str] | None:
    """Return why a reply can't be read, if so, and what to do; ``limit`` is how many tokens it
    could take.
    """
    tokens = said.tokens
    match said.end:
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
    return None if text.strip() else ("empty", "the reply is empty")

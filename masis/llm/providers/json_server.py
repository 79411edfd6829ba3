"""Posts JSON to a model server, for providers whose server has no SDK."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit

from masis.audit.control.concurrency import wait_for_coroutine
from masis.llm.providers import provider_errors
from masis.llm.providers.base import CONNECT_S, Call, Endpoint, TryFailed, body_of, is_loopback
from masis.llm.providers.provider_errors import ClassifyError


class JsonServer:
    """One server; all calls to it share its connections.

    Redirects aren't followed, because they would send the question and the key to an address that
    isn't configured. Proxies of the environment aren't used for loopback addresses.

    Args:
        endpoint: Its address and key.
        key_header: The header that holds the key.
        key_prefix: The text before the key in that header; by default ``"Bearer "`` in
            ``Authorization``, and none in other headers.
        error_field: The field of an error body that holds the server's message. The usual ones
            needn't be named (``masis.llm.providers.provider_errors.refusal``).
        classify: Returns the kind of a failure by its status and content where the common rules,
            which are those of OpenAI's and similar APIs, get it wrong; None where they don't.

    Example:
        ``JsonServer(endpoint).post("/generate", {"prompt": "..."}, call)["text"]``

    """

    def __init__(
        self,
        endpoint: Endpoint,
        *,
        key_header: str = "Authorization",
        key_prefix: str | None = None,
        error_field: str = "",
        classify: ClassifyError | None = None,
    ) -> None:
        # Not imported above, because modules that declare an API import this one.
        import httpx2

        self._http, self._error_field, self._classify = httpx2, error_field, classify
        if key_prefix is None:
            key_prefix = "Bearer " if key_header.casefold() == "authorization" else ""
        self._endpoint = endpoint
        self._key = endpoint.key.get_secret_value() if endpoint.key else ""
        self._client = httpx2.AsyncClient(
            follow_redirects=False,
            # trust_env reads HTTP_PROXY and others.
            trust_env=not is_loopback(urlsplit(endpoint.address).hostname or ""),
            headers={key_header: f"{key_prefix}{self._key}"} if self._key else {},
        )

    def post(self, path: str, body: Mapping[str, Any], call: Call) -> dict[str, Any]:
        """Post a body to ``path`` below the address, and return the object that the server sends.

        Raises:
            TryFailed: There was no reply in the call's time, the status is 300 or more, or the
                reply isn't a JSON object.

        """
        status, headers, content = wait_for_coroutine(self._send(path, body, call))
        try:
            reply = json.loads(content)
        except (ValueError, RecursionError):
            reply = None
        if status >= 300:
            raise provider_errors.from_status(
                status,
                headers,
                content if reply is None else reply,
                key_name=self._endpoint.key_name,
                model=call.model,
                key=self._key,
                provider=self._endpoint.name,
                parameters=self._endpoint.parameters,
                error_field=self._error_field,
                classify=self._classify,
            )
        if not isinstance(reply, dict):
            raise TryFailed("malformed", "the server's reply isn't a JSON object")
        return reply

    async def _send(
        self, path: str, body: Mapping[str, Any], call: Call
    ) -> tuple[int, Mapping[str, str], bytes]:
        failed: TryFailed
        timeout = self._http.Timeout(call.timeout_s, connect=min(CONNECT_S, call.timeout_s))
        url = self._endpoint.address.rstrip("/") + path
        try:
            # The client's own timeout restarts with every received byte, and the outer one doesn't.
            async with (
                asyncio.timeout(call.timeout_s),
                self._client.stream("POST", url, json=body, timeout=timeout) as response,
            ):
                content = await body_of(response.aiter_bytes())
                return response.status_code, response.headers, content
        except TimeoutError:
            failed = TryFailed("timeout", "no answer in the time given")
        except (self._http.HTTPError, self._http.InvalidURL, OSError) as error:
            failed = provider_errors.from_connection(error, self._endpoint.address)
        # Raised outside the handler, because the client's error holds the request and so the key.
        raise failed

"""Posts JSON to a model server, for providers whose server has no SDK."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit

import httpx2

from masis.audit.control.concurrency import wait_for_coroutine
from masis.llm.endpoints import Endpoint, is_loopback
from masis.llm.providers import provider_errors
from masis.llm.providers.base import CONNECT_S, Call, TryFailed, body_of


class JsonServer:
    """One server; all calls to it share its connections.

    Redirects aren't followed, because they would send the question and the key to an address that
    isn't configured. Proxies of the environment aren't used for loopback addresses.

    Args:
        endpoint: Its address and key. The key is sent as ``Authorization: Bearer KEY``.

    Example:
        ``JsonServer(endpoint).post("/generate", {"prompt": "..."}, call)["text"]``

    """

    def __init__(self, endpoint: Endpoint) -> None:
        self._endpoint = endpoint
        self._key = endpoint.key.get_secret_value() if endpoint.key else ""
        self._client = httpx2.AsyncClient(
            follow_redirects=False,
            trust_env=not is_loopback(urlsplit(endpoint.address).hostname or ""),
            headers={"authorization": f"Bearer {self._key}"} if self._key else {},
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
                reply,
                key_name=self._endpoint.key_name,
                model=call.model,
                key=self._key,
                provider=self._endpoint.name,
            )
        if not isinstance(reply, dict):
            raise TryFailed("malformed", "the server's reply isn't a JSON object")
        return reply

    async def _send(
        self, path: str, body: Mapping[str, Any], call: Call
    ) -> tuple[int, Mapping[str, str], bytes]:
        failed: TryFailed
        timeout = httpx2.Timeout(call.timeout_s, connect=min(CONNECT_S, call.timeout_s))
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
        except (httpx2.HTTPError, httpx2.InvalidURL, OSError) as error:
            failed = provider_errors.from_connection(error, self._endpoint.address)
        # Raised outside the handler, because the client's error holds the request and so the key.
        raise failed

"""What all our HTTP routes share: refusals, bodies of a limited size, and rate limits."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Mapping
from typing import Any

from starlette.requests import Request
from starlette.responses import JSONResponse

from masis.services.token_bucket import Bucket

FRESH = {"cache-control": "no-store"}
"""Answers depend on the person and the moment, so no cache may keep them."""


class RequestRefused(Exception):
    """A request that is refused with an HTTP status, a problem and a hint."""

    def __init__(
        self, status: int, problem: str, hint: str, headers: Mapping[str, str] | None = None
    ) -> None:
        super().__init__(problem)
        self.status, self.problem, self.hint = status, problem, hint
        self.headers = {**FRESH, **(headers or {})}

    def response(self) -> JSONResponse:
        """Return the response, with the error as an object."""
        about = {
            "status": self.status,
            "kind": "RequestRefused",
            "message": f"{self.problem[:1].upper()}{self.problem[1:]}. {self.hint}".rstrip(),
            "problem": self.problem,
            "hint": self.hint,
        }
        return JSONResponse({"error": about}, self.status, self.headers)


def content_type(request: Request) -> str:
    """Return the media type of a request's body without parameters, in lower case."""
    return request.headers.get("content-type", "").partition(";")[0].strip().lower()


def too_long(most: int, setting: str = "") -> RequestRefused:
    """Return the refusal of a body with more than ``most`` bytes; ``setting`` names the limit."""
    named = f" ({setting})" if setting else ""
    return RequestRefused(
        413, f"the body has more than {most:,} bytes{named}", "Send less at once."
    )


async def read_body(request: Request, most: int, setting: str = "") -> bytes:
    """Read the body of a request.

    Raises:
        RequestRefused: It is too long, as soon as that is known. The rest isn't read.

    """
    declared = request.headers.get("content-length", "")
    # A client may omit or understate Content-Length, so the received bytes are counted too.
    if declared.isdigit() and int(declared) > most:
        raise too_long(most, setting)
    body = bytearray()
    async for chunk in request.stream():
        body += chunk
        if len(body) > most:
            raise too_long(most, setting)
    return bytes(body)


class RateLimit:
    """A token bucket for each caller, such as a person or a network address.

    Only the most recent ``callers`` are remembered. A forgotten caller has an empty record, so
    forgetting never refuses anyone.
    """

    def __init__(self, per_second: float, burst: int, callers: int = 10_000) -> None:
        self._per_second, self._burst, self._most = per_second, burst, callers
        self._buckets: OrderedDict[str, Bucket] = OrderedDict()
        # Handlers run on several threads, and a bucket isn't thread-safe.
        self._lock = threading.Lock()

    def check(self, caller: str) -> None:
        """Count one request of a caller.

        Raises:
            RequestRefused: The caller sent too many.

        """
        with self._lock:
            # Popped and added again, so that the least recent caller is first.
            bucket = self._buckets.pop(caller, None) or Bucket(self._per_second, self._burst)
            self._buckets[caller] = bucket
            if len(self._buckets) > self._most:
                self._buckets.popitem(last=False)
            wait = bucket.take()
        if wait:
            raise RequestRefused(
                429,
                "too many requests",
                f"Send at most {self._per_second:g} a second.",
                {"retry-after": str(max(1, round(wait + 0.5)))},
            )


def error_object(error: Any) -> dict[str, Any]:
    """Return the fields of a ``MasisError`` that a program can act on, as JSON data.

    A client makes the same error of them (``masis/services/remote_desk.py``).
    """
    fields = ("problem", "hint", "field", "line", "limit", "by", "until")
    found = {name: getattr(error, name, None) for name in fields}
    about = {name: value for name, value in error.about.items() if name != "http_status"}
    return {
        **about,
        "status": error.http_status,
        "message": str(error),
        **{name: value for name, value in found.items() if value not in (None, "")},
    }

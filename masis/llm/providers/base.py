"""What a provider is: it makes one try over the wire and says what came of it.

Everything that is not one try (waiting, trying again, asking in another form, counting) is
``masis.llm.client.model``'s.
"""

from __future__ import annotations

import importlib
import logging
from collections.abc import AsyncIterable, Mapping
from dataclasses import KW_ONLY, dataclass, field
from typing import Any, Literal, NamedTuple, Protocol
from urllib.parse import urlsplit

from masis.llm.client.schemas import ReplySchema
from masis.llm.endpoints import is_loopback
from masis.llm.roles.prompting import RolePrompt
from masis.schema.calls import ReplyMode

CONNECT_S = 5.0
"""How long a server may take to accept a connection."""
LONGEST_BODY = 8_000_000
"""Bytes of a server's reply that are taken; what goes on beyond is no reply to a
question of ours.
"""

Trouble = Literal[
    "key",  # the key is missing or wrong
    "forbidden",  # the key is right, but may not do this
    "model",  # no such model there
    "address",  # the address answers, but not as such an API does
    "format",  # the way a typed reply was asked for is not supported
    "parameter",  # a parameter is not supported
    "too_long",  # the question does not fit the model
    "request",  # otherwise refused as asked
    "quota",  # paid for no longer
    "rate",  # too many calls at the moment
    "server",  # failed or overloaded
    "unreachable",  # no connection
    "reset",  # the connection ended in the middle
    "timeout",  # no answer in the time given
    "refused",  # the model declined, or a filter did
    "cut_off",  # the reply reached the limit of tokens
    "empty",  # a reply without text
    "malformed",  # a reply that is not what was asked for
    "unrecorded",  # a file of recorded replies holds none to this
]


class TokenUsage(NamedTuple):
    """What a try was billed for.

    ``cached`` and ``written`` (to the provider's cache) are parts of ``prompt``; ``thought`` is one
    of ``completion``.
    """

    prompt: int = 0
    cached: int = 0
    written: int = 0
    completion: int = 0
    thought: int = 0

    def plus(self, other: TokenUsage) -> TokenUsage:
        """The sum."""
        return TokenUsage(*(mine + theirs for mine, theirs in zip(self, other, strict=True)))


class Call(NamedTuple):
    """One try: what to ask, and how.

    ``max_tokens`` is for the reply alone; times ``room``, for what the model thinks before it as
    well. ``without`` names what this server is known to refuse.
    """

    model: str
    prompt: RolePrompt
    schema: ReplySchema
    mode: ReplyMode
    max_tokens: int
    temperature: float | None
    timeout_s: float
    without: frozenset[str] = frozenset()
    room: int = 1
    correction: str = ""

    def task(self) -> str:
        """The task, and behind it what was wrong with a reply before, if there was one."""
        return f"{self.prompt.task}\n\n{self.correction}" if self.correction else self.prompt.task

    def task_with_schema(self) -> str:
        """The task with the schema behind it, for where nothing else shows it to the model."""
        return (
            f"{self.task()}\n\nReply with one JSON object and nothing else: no prose, no code"
            f" fence. It satisfies this JSON schema, named {self.schema.name}:\n{self.schema.text}"
        )


class ModelReply(NamedTuple):
    """What a model said."""

    text: str
    answered_by: str | None
    tokens: TokenUsage


@dataclass(eq=False)
class TryFailed(Exception):
    """A try that gave no reply to read.

    The message is fit for a person and free of keys. ``parameter`` names what the server refuses,
    ``retry_after_s`` what it asks to wait, ``raw`` what the model said, as far as it did.
    """

    trouble: Trouble
    message: str
    _: KW_ONLY
    retry_after_s: float | None = None
    parameter: str | None = None
    raw: str | None = None
    answered_by: str | None = None
    tokens: TokenUsage = field(default_factory=TokenUsage)

    def __str__(self) -> str:
        return self.message


class Provider(Protocol):
    """A server that answers. Safe to use from several threads."""

    modes: tuple[ReplyMode, ...]
    """How it may be asked for a typed reply, the strictest first."""

    schema_in_cache: bool
    """Whether its cache of prompts begins with the schema, so that calls with different schemas
    share nothing.
    """

    def answer(self, call: Call) -> ModelReply:
        """One try. Raises TryFailed."""


async def body_of(chunks: AsyncIterable[bytes]) -> bytes:
    """A server's reply as a whole, within the size that it may have. Raises TryFailed."""
    parts, size = [], 0
    async for chunk in chunks:
        parts.append(chunk)
        size += len(chunk)
        if size > LONGEST_BODY:
            raise TryFailed("malformed", f"the reply is longer than {LONGEST_BODY:,} bytes")
    return b"".join(parts)


def transport_of(client_class: type) -> Any:
    """The HTTP library that an SDK is built on: httpx or httpx2, by its release. The SDKs don't
    wrap all its errors.
    """
    home = next(
        each.__module__ for each in client_class.__mro__ if each.__module__.startswith("httpx")
    )
    return importlib.import_module(home.partition(".")[0])


def http_client(default: type, address: str) -> Any:
    """The client under an SDK's, made from the SDK's own default.

    No redirect is followed: it would carry the question, and for some APIs the key, to an address
    nobody configured. No proxy of the environment stands before this machine's own addresses.
    """
    if not is_loopback(urlsplit(address).hostname or ""):
        return default(follow_redirects=False)
    http = transport_of(default)
    limits = http.Limits(max_connections=None, max_keepalive_connections=100)
    return http.AsyncClient(follow_redirects=False, trust_env=False, limits=limits)


def whole_characters(text: str) -> str:
    """The text with halves of characters replaced, which JSON can hold and files and databases
    can't.
    """
    return text.encode("utf-8", "replace").decode("utf-8") if not text.isascii() else text


def count(usage: Any, *path: str) -> int:
    """A number of tokens somewhere in what a server reports; 0 where it is no number."""
    for name in path:
        usage = usage.get(name) if isinstance(usage, Mapping) else None
    return usage if isinstance(usage, int) and not isinstance(usage, bool) and usage > 0 else 0


def quiet(logger: str) -> None:
    """Keep an SDK's own DEBUG lines, which may hold what is sent, out of logs unless somebody set
    its level.
    """
    if logging.getLogger(logger).level == logging.NOTSET:
        logging.getLogger(logger).setLevel(logging.INFO)

"""Defines a provider, which makes one try at an endpoint and returns the result.

Retries, backoff, format fallbacks and usage accounting are in ``masis.llm.client.model``.
"""

from __future__ import annotations

import importlib
import logging
from collections.abc import AsyncIterable, Mapping
from dataclasses import KW_ONLY, dataclass, field
from typing import Any, Literal, NamedTuple, Protocol
from urllib.parse import urlsplit

from pydantic import SecretStr

from masis.llm.client.schemas import ReplySchema
from masis.llm.roles.prompting import RolePrompt
from masis.schema.calls import ReplyMode
from masis.schema.providers import ProviderKind
from masis.settings import hosts

CONCURRENCY = 16
"""How many calls to a provider may run at once, unless its table says otherwise."""
CONNECT_S = 5.0
"""How many seconds a server may need to accept a connection."""
LONGEST_BODY = 8_000_000
"""Maximum number of bytes of a server's reply that are read; a longer body isn't a valid reply."""

FailureKind = Literal[
    "key",  # the key is missing or wrong
    "forbidden",  # the key is right, but may not do this
    "model",  # no such model there
    "address",  # the address answers, but isn't one of this API
    "format",  # the requested reply format isn't supported
    "parameter",  # a parameter isn't supported
    "too_long",  # the prompt doesn't fit into the model's context
    "request",  # refused for another reason
    "quota",  # out of credit
    "rate",  # too many calls at the moment
    "server",  # failed or overloaded
    "unreachable",  # no connection
    "reset",  # the connection ended in the middle
    "timeout",  # no reply in time
    "refused",  # the model declined, or a filter refused
    "cut_off",  # the reply reached the token limit
    "empty",  # the reply has no text
    "malformed",  # the reply isn't the requested record
    "unrecorded",  # the file of recorded replies has no reply to this
]


@dataclass(frozen=True)
class Endpoint:
    """The address of a provider, its key and its limits.

    Attributes:
        concurrency: The highest number of calls that may run at once.
        mode: The reply format that a person chose, None to find out.
        of_vendor: Whether this is the vendor's own address, or the one that the environment sets
            for it, so that the environment's other variables for the vendor apply as well.
        adapts: Whether the server may have few slots, so that calls start one at a time and the
            limit grows while replies don't get slower.
        parameters: The parameters of its API that a server may refuse (``ProviderApi``).

    """

    name: str
    kind: ProviderKind
    address: str
    key: SecretStr | None = None
    key_name: str = ""
    concurrency: int = CONCURRENCY
    mode: ReplyMode | None = None
    effort: str | None = None
    of_vendor: bool = False
    adapts: bool = False
    parameters: tuple[str, ...] = ()


class TokenUsage(NamedTuple):
    """The billed tokens of a try.

    ``cached`` and ``written`` (to the provider's cache) are parts of ``prompt``; ``thought`` is
    part of ``completion``.
    """

    prompt: int = 0
    cached: int = 0
    written: int = 0
    completion: int = 0
    thought: int = 0

    def plus(self, other: TokenUsage) -> TokenUsage:
        """Return the sum of two usages."""
        return TokenUsage(*(mine + theirs for mine, theirs in zip(self, other, strict=True)))


class Call(NamedTuple):
    """The content and the parameters of one try.

    A provider sends ``prompt.system`` as the system message (or first), then ``prompt.shared`` and
    ``task()``, which includes the errors of an earlier reply. In the mode ``prompt`` it sends
    ``task_with_schema()`` instead of ``task()``; in the other modes its API takes ``schema``.

    ``max_tokens`` is for the reply alone; multiplied by ``room`` it also covers the model's
    reasoning (``token_limit``). ``without`` names the parameters that this server is known to
    refuse, of those that the API declares.
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

    @property
    def token_limit(self) -> int:
        """Maximum number of tokens per reply, including the model's reasoning."""
        return self.max_tokens * self.room

    def task(self) -> str:
        """Return the task, followed by the errors of the previous reply, if any."""
        return f"{self.prompt.task}\n\n{self.correction}" if self.correction else self.prompt.task

    def task_with_schema(self) -> str:
        """Return the task followed by the schema, for requests that don't send it elsewhere."""
        return (
            f"{self.task()}\n\nReply with one JSON object and nothing else: no prose, no code"
            f" fence. It satisfies this JSON schema, named {self.schema.name}:\n{self.schema.text}"
        )


class ModelReply(NamedTuple):
    """The reply of a model."""

    text: str
    answered_by: str | None
    tokens: TokenUsage


@dataclass(eq=False)
class TryFailed(Exception):
    """A try that gave no readable reply.

    The message can be shown to users and contains no keys. ``parameter`` names the parameter that
    the server refuses, ``retry_after_s`` is the wait that it asks for, and ``raw`` is the model's
    text that arrived.
    """

    trouble: FailureKind
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
    """A server that answers calls; thread-safe."""

    modes: tuple[ReplyMode, ...]
    """The formats in which it can return a typed reply, the strictest first."""

    schema_in_cache: bool
    """Whether its prompt cache key starts with the schema, so that calls with different schemas
    share nothing.
    """

    def answer(self, call: Call) -> ModelReply:
        """Make one try over the network and return the model's text.

        Required:

        - It returns or raises within ``call.timeout_s``. ``JsonServer`` (``json_server.py``)
          ensures that, and stops if the audit is cancelled.
        - It sends ``call.model`` and the prompt in the format ``call.mode`` (see ``Call``), and
          ``call.token_limit`` if the server has such a limit.
        - If the model declined or the reply was cut off, it raises TryFailed of the kind
          ``refused`` or ``cut_off``.

        Optional: a provider may ignore ``call.temperature`` and the setting ``effort``. It may
        ignore ``call.without`` if its API declares no ``parameters``, because ``without`` is empty
        then. It returns ``TokenUsage()`` if the server doesn't count tokens, which leaves usage and
        cost at zero.

        Done by the caller (``masis.llm.client.model``): waiting for a slot, retries, parsing the
        text, and replacing characters that can't be stored. A reply without text counts as a
        failed try of the kind ``empty``.

        Raises:
            TryFailed: The try gave no reply. Its kind decides whether there is another try.

        """


async def body_of(chunks: AsyncIterable[bytes]) -> bytes:
    """Return a server's reply as a whole, up to the allowed size. Raises TryFailed."""
    parts, size = [], 0
    async for chunk in chunks:
        parts.append(chunk)
        size += len(chunk)
        if size > LONGEST_BODY:
            raise TryFailed("malformed", f"the reply is longer than {LONGEST_BODY:,} bytes")
    return b"".join(parts)


def is_loopback(host: str) -> bool:
    """Return whether a host is this machine, to which no proxy is used."""
    return hosts.is_loopback(host) or host.endswith(".localhost")


def transport_of(client_class: type) -> Any:
    """Return the HTTP library of an SDK, httpx or httpx2 by its release; the SDKs don't wrap all
    its errors.
    """
    home = next(
        base.__module__ for base in client_class.__mro__ if base.__module__.startswith("httpx")
    )
    return importlib.import_module(home.partition(".")[0])


def http_client(default: type, address: str) -> Any:
    """Return an HTTP client for an SDK, made from the SDK's own default.

    Redirects aren't followed, because they would send the question, and for some APIs the key, to
    an address that isn't configured. Proxies of the environment aren't used for loopback addresses.
    """
    if not is_loopback(urlsplit(address).hostname or ""):
        return default(follow_redirects=False)
    http_library = transport_of(default)
    # Our own limiter decides how many calls run at once, so the client must not queue any.
    limits = http_library.Limits(max_connections=None, max_keepalive_connections=100)
    return http_library.AsyncClient(follow_redirects=False, trust_env=False, limits=limits)


def replace_surrogates(text: str) -> str:
    """Replace lone surrogates in a text, which JSON can contain but files and databases can't
    store.
    """
    return text.encode("utf-8", "replace").decode("utf-8") if not text.isascii() else text


def count(usage: Any, *path: str) -> int:
    """Return a token count from a server's usage report, or 0 if it isn't a number."""
    for name in path:
        usage = usage.get(name) if isinstance(usage, Mapping) else None
    # bool is a subclass of int.
    return usage if isinstance(usage, int) and not isinstance(usage, bool) and usage > 0 else 0


def quiet(logger: str) -> None:
    """Hide an SDK's DEBUG lines, which may contain prompts, unless its logger has a level."""
    if logging.getLogger(logger).level == logging.NOTSET:
        logging.getLogger(logger).setLevel(logging.INFO)

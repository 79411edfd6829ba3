"""Records of calls to language models, and their sum."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

from masis.schema.base import Record

Step = Literal["drafting", "citations", "claims", "critique", "evaluation", "revision"]

CallOutcome = Literal[
    "answered", "refused", "cut_off", "empty", "malformed", "failed", "out_of_time", "stopped"
]
ReplyMode = Literal["json_schema", "json_object_schema", "json_object", "prompt", "text"]
"""How a typed reply was requested.

By strict schema, by JSON mode with the schema beside it, by JSON mode, or by a schema in the
prompt; ``text`` is plain text.
"""


ReplySource = Literal["model", "cache", "replay"]
"""The source of a reply: a model, the cache of the database, or a file of recorded replies."""


class ModelCall(Record):
    """One request to a language model, including its retries.

    Attributes:
        model: The model string of the settings.
        answered_by: The model that the provider reports. For a reply from the cache or a file, the
            model that originally gave it.
        prompt: The prompt file and its version.
        tries: The number of attempts; tokens are summed over them.
        ms: The duration, including waits.
        cached_tokens: The part of ``prompt_tokens`` that the provider had in its cache.
        cost_usd: None if no price is known.
        error: Why there is no reply, or something that a reader must know about the reply.
        repaired: The repairs needed to read the reply; empty if it was well-formed.
        source: For ``cache`` and ``replay`` no model was asked, so tokens and cost are 0.

    """

    role: str
    step: Step | None
    iteration: int | None
    model: str
    answered_by: str | None = None
    prompt: str
    mode: ReplyMode
    outcome: CallOutcome
    tries: int = 1
    ms: float
    prompt_tokens: int = 0
    cached_tokens: int = 0
    completion_tokens: int = 0
    cost_usd: float | None = None
    error: str = ""
    repaired: tuple[str, ...] = ()
    source: ReplySource = "model"


class Usage(Record):
    """Calls and tokens spent; all zero if no language model was involved.

    Attributes:
        calls: Calls to models. Replies from the cache or a file are counted apart and cost nothing.
        cost_usd: The sum of the known costs; None if no price is known.
        repaired: Calls whose reply had to be repaired before it could be read.

    """

    calls: int = 0
    cached_calls: int = 0
    replayed_calls: int = 0
    tries: int = 0
    prompt_tokens: int = 0
    cached_tokens: int = 0
    completion_tokens: int = 0
    cost_usd: float | None = None
    repaired: int = 0

    @classmethod
    def of(cls, calls: Iterable[ModelCall]) -> Usage:
        """Return the sum of these calls (REQ-CRITIC-NFR-012)."""
        every = tuple(calls)
        counted = tuple(call for call in every if call.source == "model")
        costs = [call.cost_usd for call in counted if call.cost_usd is not None]
        return cls(
            calls=len(counted),
            cached_calls=sum(call.source == "cache" for call in every),
            replayed_calls=sum(call.source == "replay" and call.tries > 0 for call in every),
            tries=sum(call.tries for call in counted),
            prompt_tokens=sum(call.prompt_tokens for call in counted),
            cached_tokens=sum(call.cached_tokens for call in counted),
            completion_tokens=sum(call.completion_tokens for call in counted),
            cost_usd=sum(costs) if costs or (every and not counted) else None,
            repaired=sum(bool(call.repaired) for call in every),
        )

    def plus(self, other: Usage) -> Usage:
        """Return the sum of both; the cost is the sum of the known costs."""
        total = {
            name: (getattr(self, name) or 0) + (getattr(other, name) or 0)
            for name in Usage.model_fields
        }
        known = (self.cost_usd, other.cost_usd) != (None, None)
        return Usage(**{**total, "cost_usd": total["cost_usd"] if known else None})

"""What was asked of language models: one record a call, and their sum."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Literal, NamedTuple

from masis.schema.base import Record

Step = Literal["drafting", "citations", "claims", "critique", "evaluation", "revision"]

CallOutcome = Literal[
    "answered", "refused", "cut_off", "empty", "malformed", "failed", "out_of_time", "stopped"
]
ReplyMode = Literal["json_schema", "json_object_schema", "json_object", "prompt", "text"]
"""How a typed reply was asked for: by strict schema, by JSON mode with the schema beside it, by
JSON mode, by a schema in the prompt; or plain text."""


ReplySource = Literal["model", "cache", "replay"]
"""Who gave a reply: a model, the cache of the database, or a file of recorded replies."""

REPLAY = "replay:"
"""What the model string of recorded replies begins with: ``replay:FILE``."""
DEMO_REPLIES = "demo"
"""In place of a file: the replies that ship with the demo (``data/replies``)."""
_REPLAYED = re.compile(
    r"replay:(?P<file>.+?)(?: \((?P<model>.+), (?P<date>\d{4}-\d\d-\d\d)\))?", re.DOTALL
)


class Replayed(NamedTuple):
    """Recorded replies that fill a role, as a run names them: ``replay:FILE (MODEL, DATE)``.

    ``model`` and ``date`` are empty where the file was not read yet, or is empty.
    """

    file: str
    model: str = ""
    date: str = ""

    def __str__(self) -> str:
        return (
            f"{REPLAY}{self.file} ({self.model}, {self.date})"
            if self.model
            else f"{REPLAY}{self.file}"
        )

    @classmethod
    def of(cls, string: str) -> Replayed | None:
        """Read a model string; None for any other model."""
        found = _REPLAYED.fullmatch(string.strip())
        return cls(**found.groupdict(default="")) if found else None


class ModelCall(Record):
    """One question put to a language model, with all tries it took.

    ``model`` is the model string of the settings, ``answered_by`` what the provider says answered;
    ``prompt`` names the prompt file and its version. Tokens are summed over the tries;
    ``cached_tokens`` are those of ``prompt_tokens`` that the provider had in its cache.
    ``cost_usd`` is None where no price is known. ``ms`` includes the waits. ``repaired`` names what
    had to be repaired before the reply could be read; empty where it came in form. ``error`` says
    why there is no reply, or of one that came what a reader must know. Where ``source`` is the
    cache or a file, no model was asked: tokens and cost are 0, and ``answered_by`` is the model
    that had given the reply.
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
    """Calls and tokens spent; all zero where no language model was involved.

    ``cost_usd`` is the sum of what is known; None where no call has a known price. ``repaired``
    counts the calls whose reply had to be repaired before it could be read. ``calls`` are those to
    models; those that the cache or a file of recorded replies answered are counted apart, and took
    nothing.
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
        """The sum of these calls (REQ-CRITIC-NFR-012)."""
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
        """Return the sum of both; the cost is that of what is known."""
        total = {
            name: (getattr(self, name) or 0) + (getattr(other, name) or 0)
            for name in Usage.model_fields
        }
        known = (self.cost_usd, other.cost_usd) != (None, None)
        return Usage(**{**total, "cost_usd": total["cost_usd"] if known else None})

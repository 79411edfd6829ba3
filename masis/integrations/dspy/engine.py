"""A model of ours as DSPy sees it: a ``dspy.LM`` whose calls go the way of all our calls.

Addresses, keys, turns, retries, deadlines, the form of replies and the record of each call with its tokens are
``masis.llm.client.model``'s; DSPy's own retries and its cache are off.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Any

import dspy
from dspy import lm15

from masis.errors import StepError
from masis.llm.client import schemas
from masis.llm.client.model import Model
from masis.llm.roles.prompting import Prompt
from masis.llm.roles.replies import CritiqueReply, Reply, RevisionReply

TOKENS_MOST = 8_000
PLAIN_FRAME = "You are a careful assistant."
SHAPES: dict[str, type[Reply]] = {schemas.of(shape).name: shape for shape in (CritiqueReply, RevisionReply)}


class Stopped(BaseException):
    """No further call is to be made. No ``Exception``: optimisers count those and go on with the next case."""


@dataclass(frozen=True)
class OurEngine:
    """One call through a model of ours, made within ``turn``, which may raise Stopped; ``version`` is recorded."""

    model: Model
    version: str
    turn: Callable[[], AbstractContextManager[None]] = nullcontext
    takes_schema: bool = True

    def complete(self, request: lm15.Request) -> lm15.Response:
        """The reply: a record as JSON where a schema of ours is asked for, else words.

        Raises LM15Error from the StepError that our own call ended with.
        """
        with self.turn():
            try:
                text = self._text(request)
            except StepError as error:
                raise lm15.ProviderError(str(error)) from error
        return lm15.Response(
            id=None,
            model=self.model.name,
            message=lm15.Message.assistant(text),
            finish_reason="stop",
            usage=lm15.Usage(),
        )

    def _text(self, request: lm15.Request) -> str:
        prompt, config = _prompt(request, self.version), request.config
        most = config.max_tokens or TOKENS_MOST
        shape = SHAPES.get(_schema_name(config.response_format))
        if shape is None:
            return self.model.say(prompt, max_tokens=most, temperature=config.temperature)
        record = self.model.ask(prompt, shape, max_tokens=most, temperature=config.temperature)
        return json.dumps(record.model_dump(), ensure_ascii=False)

    def __deepcopy__(self, memo: dict[int, Any]) -> OurEngine:
        return self  # connections and limits are shared by all copies of a program


@dataclass(frozen=True)
class OurAsyncEngine:
    """The same for code that awaits: the call waits on a thread of its own."""

    engine: OurEngine

    async def complete(self, request: lm15.Request) -> lm15.Response:
        """As ``OurEngine.complete``."""
        return await asyncio.to_thread(self.engine.complete, request)

    def __deepcopy__(self, memo: dict[int, Any]) -> OurAsyncEngine:
        return self


def language_model(
    model: Model,
    version: str,
    *,
    temperature: float = 0.0,
    turn: Callable[[], AbstractContextManager[None]] = nullcontext,
) -> Any:
    """The model as a ``dspy.LM``."""
    engine = OurEngine(model, version, turn)
    return dspy.LM(
        f"masis/{model.name}",
        engine=engine,
        async_engine=OurAsyncEngine(engine),
        cache=False,
        num_retries=0,
        temperature=temperature,
        max_tokens=TOKENS_MOST,
    )


def _schema_name(response_format: Any) -> str:
    if not isinstance(response_format, dict):
        return ""
    schema = response_format.get("json_schema", response_format)
    return str(schema.get("name", "")) if isinstance(schema, dict) else ""


def _prompt(request: lm15.Request, version: str) -> Prompt:
    """The request as a prompt. The user's text is cut in two at a paragraph: no part of a prompt may be empty."""
    system = request.system if isinstance(request.system, str) else _texts(request.system or ())
    messages = [(message.role, _texts(message.parts)) for message in request.messages]
    text = messages[0][1] if len(messages) == 1 else "\n\n".join(f"{role}:\n{words}" for role, words in messages)
    head, _, tail = text.partition("\n\n")
    return Prompt(system or PLAIN_FRAME, head if tail else "Your task:", tail or head, version)


def _texts(parts: Any) -> str:
    return "\n\n".join(part.text for part in parts if getattr(part, "text", None))

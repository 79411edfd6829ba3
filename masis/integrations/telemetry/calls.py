"""The span of a call to a model, with all its tries (the GenAI conventions' ``chat``)."""

from __future__ import annotations

import json
from typing import Any

from opentelemetry.trace import SpanKind, Tracer

from masis import watching
from masis.integrations.telemetry import names
from masis.integrations.telemetry.current import CurrentSpan
from masis.integrations.telemetry.instruments import Instruments
from masis.schema.calls import ModelCall


class CallSpan:
    """A call to a model, with all its tries."""

    def __init__(self, tracer: Tracer, instruments: Instruments, texts: bool, what: watching.CallBegins) -> None:
        self.instruments, self.texts = instruments, texts
        self.conventional: dict[str, Any] = {
            names.OPERATION: "chat",
            names.PROVIDER: names.provider_name(what.provider),
            names.REQUEST_MODEL: what.model,
        }
        attributes = self.conventional | {
            names.MAX_TOKENS: what.max_tokens,
            names.TEMPERATURE: what.temperature,
            names.PROMPT_NAME: what.prompt,
            "masis.role": what.role,
            "masis.step": what.step,
            "masis.iteration": what.iteration,
        }
        self.call = CurrentSpan(tracer, f"chat {what.model}", attributes, SpanKind.CLIENT)
        self.replies: list[str] = []
        if texts:
            self.call.put(
                {
                    names.SYSTEM_INSTRUCTIONS: json.dumps([{"type": "text", "content": what.system}]),
                    names.INPUT_MESSAGES: _messages("user", what.question),
                }
            )

    def told(self, event: watching.Told) -> None:
        """A reply came; it is kept where texts are asked for."""
        if self.texts and isinstance(event, watching.Replied):
            self.replies.append(event.text)

    def ended(self, result: watching.Result | None, error: BaseException | None) -> None:
        """The call is over: what it took goes onto the span and into the metrics."""
        try:
            if isinstance(result, ModelCall):
                self._result(result)
                error = None  # that the call failed is in its outcome
        finally:
            self.call.end(error)

    def _result(self, call: ModelCall) -> None:
        if call.answered_by:
            self.conventional[names.RESPONSE_MODEL] = call.answered_by
        self.call.put(
            {
                names.RESPONSE_MODEL: call.answered_by,
                names.INPUT_TOKENS: call.prompt_tokens,
                names.OUTPUT_TOKENS: call.completion_tokens,
                names.CACHED_TOKENS: call.cached_tokens or None,
                names.OUTPUT_TYPE: "text" if call.mode == "text" else "json",
                "masis.outcome": call.outcome,
                "masis.tries": call.tries,
                "masis.mode": call.mode,
                "masis.cost_usd": call.cost_usd,
            }
        )
        if self.replies:
            self.call.put({names.OUTPUT_MESSAGES: _messages("assistant", self.replies[-1])})
        if call.outcome != "answered":
            self.call.failed(call.outcome)
        self.instruments.call(call, self.conventional)


def _messages(role: str, text: str) -> str:
    """One message as the conventions write it."""
    return json.dumps([{"role": role, "parts": [{"type": "text", "content": text}]}], ensure_ascii=False)

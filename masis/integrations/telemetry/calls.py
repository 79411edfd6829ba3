"""The span of a call to a model, with all its tries (the GenAI conventions' ``chat``)."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from opentelemetry.metrics import Counter, Histogram, Meter
from opentelemetry.trace import SpanKind, Tracer

from masis.audit import metric_catalogue
from masis.audit.run_metrics import CritiqueMeasures, RunMeasures
from masis.integrations.telemetry import names
from masis.integrations.telemetry.current import CurrentSpan
from masis.observers import observation
from masis.schema.calls import ModelCall
from masis.settings import ROLES

# The instruments of every metric of the specs, made from the one table (``masis/audit/metric_catalogue.py``).

Attributes = Mapping[str, str | bool | int | float]

JUDGE = {"masis.reviser.": "reviser", "masis.evaluator.": "evaluator"}
"""Whose model a metric is filed under, by its beginning; else the critic's."""


class Instruments:
    """One instrument a metric. Safe to use from several threads."""

    def __init__(self, meter: Meter) -> None:
        self._histograms: dict[str, Histogram] = {}
        self._counters: dict[str, Counter] = {}
        for metric in metric_catalogue.METRICS:
            if metric.kind == "counter":
                self._counters[metric.name] = meter.create_counter(metric.name, metric.unit, metric.description)
            else:
                self._histograms[metric.name] = meter.create_histogram(
                    metric.name, metric.unit, metric.description, explicit_bucket_boundaries_advisory=metric.bounds
                )

    def run(self, found: RunMeasures, models: Mapping[str, str], operation: str) -> None:
        """A run of the loop; the metrics of the original answer too, unless its draft's critique gives them."""
        recorded = list(metric_catalogue.of_run(found))
        if operation == "audit":
            recorded += metric_catalogue.of_critique(found.critique)
        for name, value in recorded:
            judge = next((role for beginning, role in JUDGE.items() if name.startswith(beginning)), "critic")
            self._histograms[name].record(value, _of(operation, models.get(judge)))

    def draft(self, found: CritiqueMeasures) -> None:
        """A critique of a draft."""
        for name, value in metric_catalogue.of_critique(found):
            self._histograms[name].record(value, _of("critique_draft", None))

    def call(self, call: ModelCall, conventional: Attributes) -> None:
        """A call to a model, with the attributes that the conventions ask for."""
        failed = {} if call.outcome == "answered" else {names.ERROR: call.outcome}
        attributes = {**conventional, "masis.role": call.role}
        self._histograms[metric_catalogue.CALL_DURATION.name].record(call.ms / 1000, {**attributes, **failed})
        for kind, tokens in (("input", call.prompt_tokens), ("output", call.completion_tokens)):
            if not tokens:
                continue
            of_kind = {**attributes, names.TOKEN_TYPE: kind}
            self._histograms[metric_catalogue.CALL_TOKENS.name].record(tokens, of_kind)
            if call.role in ROLES:
                self._counters[metric_catalogue.LOOP_TOKENS.name].add(tokens, of_kind)
        if call.cost_usd is not None:
            self._counters[metric_catalogue.COST.name].add(call.cost_usd, attributes)


def _of(operation: str, model: str | None) -> Attributes:
    filed = {"masis.operation": operation}
    return filed if model is None else {**filed, "masis.model": model}


class CallSpan:
    """A call to a model, with all its tries."""

    def __init__(self, tracer: Tracer, instruments: Instruments, texts: bool, start: observation.CallStart) -> None:
        self.instruments, self.texts = instruments, texts
        self.conventional: dict[str, Any] = {
            names.OPERATION: "chat",
            names.PROVIDER: names.provider_name(start.provider),
            names.REQUEST_MODEL: start.model,
        }
        attributes = self.conventional | {
            names.MAX_TOKENS: start.max_tokens,
            names.TEMPERATURE: start.temperature,
            names.PROMPT_NAME: start.prompt,
            "masis.role": start.role,
            "masis.step": start.step,
            "masis.iteration": start.iteration,
        }
        self.call = CurrentSpan(tracer, f"chat {start.model}", attributes, SpanKind.CLIENT)
        self.replies: list[str] = []
        if texts:
            self.call.put(
                {
                    names.SYSTEM_INSTRUCTIONS: json.dumps([{"type": "text", "content": start.system}]),
                    names.INPUT_MESSAGES: _messages("user", start.question),
                }
            )

    def on_event(self, event: observation.Event) -> None:
        """A reply came; it is kept where texts are asked for."""
        if self.texts and isinstance(event, observation.Replied):
            self.replies.append(event.text)

    def on_end(self, result: observation.Result | None, error: BaseException | None) -> None:
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
                "masis.source": call.source,
                "masis.tries": call.tries,
                "masis.mode": call.mode,
                "masis.cost_usd": call.cost_usd,
            }
        )
        if self.replies:
            self.call.put({names.OUTPUT_MESSAGES: _messages("assistant", self.replies[-1])})
        if call.outcome != "answered":
            self.call.failed(call.outcome)
        if call.source == "model":
            self.instruments.call(call, self.conventional)


def _messages(role: str, text: str) -> str:
    """One message as the conventions write it."""
    return json.dumps([{"role": role, "parts": [{"type": "text", "content": text}]}], ensure_ascii=False)

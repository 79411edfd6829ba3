"""The instruments of every metric of the specs, made from the one table (``masis/steps/metrics.py``)."""

from __future__ import annotations

from collections.abc import Mapping

from opentelemetry.metrics import Counter, Histogram, Meter

from masis.integrations.telemetry import names
from masis.schema.calls import ModelCall
from masis.settings import ROLES
from masis.steps import metrics
from masis.steps.measures import CritiqueMeasures, RunMeasures

Attributes = Mapping[str, str | bool | int | float]

JUDGE = {"masis.reviser.": "reviser", "masis.evaluator.": "evaluator"}
"""Whose model a metric is filed under, by its beginning; else the critic's."""


class Instruments:
    """One instrument a metric. Safe to use from several threads."""

    def __init__(self, meter: Meter) -> None:
        self._histograms: dict[str, Histogram] = {}
        self._counters: dict[str, Counter] = {}
        for metric in metrics.METRICS:
            if metric.kind == "counter":
                self._counters[metric.name] = meter.create_counter(metric.name, metric.unit, metric.description)
            else:
                self._histograms[metric.name] = meter.create_histogram(
                    metric.name, metric.unit, metric.description, explicit_bucket_boundaries_advisory=metric.bounds
                )

    def run(self, found: RunMeasures, models: Mapping[str, str], operation: str) -> None:
        """A run of the loop; the figures of an answer as it came too, unless its draft's critique gives them."""
        recorded = list(metrics.of_run(found))
        if operation == "audit":
            recorded += metrics.of_critique(found.critique)
        for name, value in recorded:
            judge = next((role for beginning, role in JUDGE.items() if name.startswith(beginning)), "critic")
            self._histograms[name].record(value, _of(operation, models.get(judge)))

    def draft(self, found: CritiqueMeasures) -> None:
        """A critique of a draft."""
        for name, value in metrics.of_critique(found):
            self._histograms[name].record(value, _of("critique_draft", None))

    def call(self, call: ModelCall, conventional: Attributes) -> None:
        """A call to a model, with the attributes that the conventions ask for."""
        failed = {} if call.outcome == "answered" else {names.ERROR: call.outcome}
        told = {**conventional, "masis.role": call.role}
        self._histograms[metrics.CALL_DURATION.name].record(call.ms / 1000, {**told, **failed})
        for kind, tokens in (("input", call.prompt_tokens), ("output", call.completion_tokens)):
            if not tokens:
                continue
            of_kind = {**told, names.TOKEN_TYPE: kind}
            self._histograms[metrics.CALL_TOKENS.name].record(tokens, of_kind)
            if call.role in ROLES:
                self._counters[metrics.LOOP_TOKENS.name].add(tokens, of_kind)
        if call.cost_usd is not None:
            self._counters[metrics.COST.name].add(call.cost_usd, told)


def _of(operation: str, model: str | None) -> Attributes:
    filed = {"masis.operation": operation}
    return filed if model is None else {**filed, "masis.model": model}

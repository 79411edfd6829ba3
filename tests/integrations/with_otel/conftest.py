"""OpenTelemetry's in-memory exporters, and the audits they are shown."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import pytest
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from masis import Case, Run, run_audit
from masis.integrations import telemetry
from masis.settings import Settings
from tests.llm.asking import settings_here
from tests.serving_models import ModelServer


@dataclass
class Points:
    """The data of one metric: its unit and its points."""

    unit: str
    points: list[Any]

    @property
    def count(self) -> int:
        return sum(point.count for point in self.points)

    @property
    def sum(self) -> float:
        return sum(point.sum if hasattr(point, "sum") else point.value for point in self.points)

    def values(self, attribute: str) -> set[Any]:
        """What an attribute is in the points."""
        return {point.attributes.get(attribute) for point in self.points}


@dataclass
class Seen:
    """What has arrived."""

    spans: InMemorySpanExporter
    reader: InMemoryMetricReader
    tracers: TracerProvider

    def metrics(self) -> dict[str, Points]:
        data = self.reader.get_metrics_data()
        if data is None:
            return {}
        return {
            metric.name: Points(metric.unit, list(metric.data.data_points))
            for resource in data.resource_metrics
            for scope in resource.scope_metrics
            for metric in scope.metrics
        }

    def named(self, name: str) -> list[ReadableSpan]:
        return [span for span in self.spans.get_finished_spans() if span.name == name]

    def one(self, name: str) -> ReadableSpan:
        (found,) = self.named(name)
        return found

    def audited(
        self, case: Case, script: Any = None, issues: Any = "always", **settings: Any
    ) -> Run:
        """An audit by a scripted model, with no more than two iterations."""
        with ModelServer(script or (lambda request: None), issues=issues) as server:
            return run_audit(case, settings_here(server, **({"max_iterations": 2} | settings)))

    def path(self, span: ReadableSpan) -> list[str]:
        """The names of a span and those above it, from the root."""
        by_id = {
            each.context.span_id: each for each in self.spans.get_finished_spans() if each.context
        }
        names = [span.name]
        while span.parent is not None and span.parent.span_id in by_id:
            span = by_id[span.parent.span_id]
            names.append(span.name)
        return names[::-1]

    def text(self) -> str:
        """All that the spans say."""
        return "\n".join(span.to_json() for span in self.spans.get_finished_spans())


def told(span: ReadableSpan) -> dict[str, Any]:
    """The attributes of a span."""
    return dict(span.attributes or {})


Watch = Callable[..., Seen]


@pytest.fixture
def watch() -> Iterator[Watch]:
    """Begins to watch; what arrives is in the value returned."""
    begun: list[telemetry.Telemetry] = []

    def watching(**settings: Any) -> Seen:
        spans, reader = InMemorySpanExporter(), InMemoryMetricReader()
        tracers = TracerProvider()
        tracers.add_span_processor(SimpleSpanProcessor(spans))
        begun.append(
            telemetry.start(
                Settings(**settings),
                tracer_provider=tracers,
                meter_provider=MeterProvider([reader]),
            )
        )
        return Seen(spans, reader, tracers)

    yield watching
    for each in begun:
        each.end()


@pytest.fixture
def seen(watch: Watch) -> Seen:
    """What is watched, without texts."""
    return watch()

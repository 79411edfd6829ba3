"""OpenTelemetry's in-memory exporters, and audits whose telemetry they receive."""

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
        """Return the values of an attribute."""
        return {point.attributes.get(attribute) for point in self.points}


@dataclass
class Exported:
    """The spans and metrics that were exported."""

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

    def find_spans(self, name: str) -> list[ReadableSpan]:
        return [span for span in self.spans.get_finished_spans() if span.name == name]

    def one(self, name: str) -> ReadableSpan:
        (span,) = self.find_spans(name)
        return span

    def audited(
        self, case: Case, script: Any = None, issues: Any = "always", **settings: Any
    ) -> Run:
        """Run an audit with a scripted model and at most two iterations."""
        with ModelServer(script or (lambda request: None), issues=issues) as server:
            return run_audit(case, settings_here(server, **({"max_iterations": 2} | settings)))

    def path(self, span: ReadableSpan) -> list[str]:
        """Return the names of a span's ancestors from the root, and its own name."""
        by_id = {
            other.context.span_id: other
            for other in self.spans.get_finished_spans()
            if other.context
        }
        names = [span.name]
        while span.parent is not None and span.parent.span_id in by_id:
            span = by_id[span.parent.span_id]
            names.append(span.name)
        return names[::-1]

    def text(self) -> str:
        """Return the text of all spans."""
        return "\n".join(span.to_json() for span in self.spans.get_finished_spans())


def attributes_of(span: ReadableSpan) -> dict[str, Any]:
    """Return the attributes of a span."""
    return dict(span.attributes or {})


Watch = Callable[..., Exported]


@pytest.fixture
def watch() -> Iterator[Watch]:
    """Return a function that starts telemetry and returns what it exports."""
    started: list[telemetry.Telemetry] = []

    def start(**settings: Any) -> Exported:
        spans, reader = InMemorySpanExporter(), InMemoryMetricReader()
        tracers = TracerProvider()
        tracers.add_span_processor(SimpleSpanProcessor(spans))
        started.append(
            telemetry.start(
                Settings(**settings),
                tracer_provider=tracers,
                meter_provider=MeterProvider([reader]),
            )
        )
        return Exported(spans, reader, tracers)

    yield start
    for telemetry_ in started:
        telemetry_.end()


@pytest.fixture
def seen(watch: Watch) -> Exported:
    """Return the exported spans and metrics, with default settings."""
    return watch()

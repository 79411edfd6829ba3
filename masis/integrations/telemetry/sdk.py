"""Creates the OpenTelemetry SDK's providers from the settings and the standard variables.

The SDK itself reads ``OTEL_SERVICE_NAME``, ``OTEL_RESOURCE_ATTRIBUTES``, ``OTEL_EXPORTER_OTLP_*``,
``OTEL_TRACES_SAMPLER``, ``OTEL_METRIC_EXPORT_INTERVAL``, ``OTEL_SDK_DISABLED`` and similar
variables.
"""

from __future__ import annotations

import contextlib
import logging
import sys
import uuid
from collections.abc import Callable, Iterator

from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import (
    ConsoleMetricExporter,
    MetricExporter,
    PeriodicExportingMetricReader,
)
from opentelemetry.sdk.resources import OTELResourceDetector, Resource
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import (
    BatchSpanProcessor,
    ConsoleSpanExporter,
    SimpleSpanProcessor,
    SpanProcessor,
)

from masis import version
from masis.errors import SettingsError
from masis.settings import Settings

SERVICE = "masis-workbench"
log = logging.getLogger("masis.telemetry")


def providers(settings: Settings) -> tuple[TracerProvider, MeterProvider, Callable[[], None]]:
    """Create providers that send or print, depending on ``telemetry``.

    Returns the tracer provider, the meter provider, and a function that flushes and shuts down
    both. Raises SettingsError for an invalid OTEL_* value.
    """
    with contextlib.ExitStack() as undo:
        undo.enter_context(_warned_once())
        try:
            spans, metrics = _otlp() if settings.telemetry == "otlp" else _console()
            # Our own end() flushes with a time limit; the SDK's exit handler would wait for the
            # collector.
            tracers = TracerProvider(resource=resource(), shutdown_on_exit=False)
            tracers.add_span_processor(spans)
            reader = PeriodicExportingMetricReader(metrics)
            meters = MeterProvider([reader], resource=resource(), shutdown_on_exit=False)
        except (ValueError, OSError) as error:
            why = " ".join(str(error).split())
            raise SettingsError(
                f"OpenTelemetry can't use one of its variables (OTEL_...): {why}"
            ) from error
        undo.callback(meters.shutdown)
        undo.callback(tracers.shutdown)
        return tracers, meters, undo.pop_all().close


_INSTANCE = uuid.uuid4().hex
"""Identifies the process, because each process of a command has counters of its own."""


def resource() -> Resource:
    """Describe this process. Values from the environment override ours."""
    ours = Resource(
        {
            "service.name": SERVICE,
            "service.version": version.APP,
            "service.instance.id": _INSTANCE,
            "telemetry.sdk.language": "python",
        }
    )
    # merge() prefers the argument's values, so the environment is merged last.
    return Resource.create().merge(ours).merge(OTELResourceDetector().detect())


def _otlp() -> tuple[SpanProcessor, MetricExporter]:
    from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter

    return BatchSpanProcessor(OTLPSpanExporter()), OTLPMetricExporter()


def _console() -> tuple[SpanProcessor, MetricExporter]:
    """Print one JSON object per line to stderr, since stdout is for data."""

    def line(span: ReadableSpan) -> str:
        return f"{span.to_json(indent=None)}\n"

    return (
        SimpleSpanProcessor(ConsoleSpanExporter(out=sys.stderr, formatter=line)),
        ConsoleMetricExporter(
            out=sys.stderr, formatter=lambda data: f"{data.to_json(indent=None)}\n"
        ),
    )


@contextlib.contextmanager
def _warned_once() -> Iterator[None]:
    """Send the SDK's log records to ``WarnOnce`` only."""
    noisy, handler = logging.getLogger("opentelemetry"), WarnOnce(logging.WARNING)
    propagated, noisy.propagate = noisy.propagate, False
    noisy.addHandler(handler)
    try:
        yield
    finally:
        noisy.removeHandler(handler)
        noisy.propagate = propagated


class WarnOnce(logging.Handler):
    """Logs the SDK's first problem with the collector as a warning. The SDK keeps trying, and
    audits continue.

    Only the SDK's message, numbers and types of errors are repeated, because addresses and headers
    may contain a key.
    """

    warned = False

    def emit(self, record: logging.LogRecord) -> None:
        """Log the first problem as a warning and the others at DEBUG."""
        level = logging.DEBUG if self.warned else logging.WARNING
        self.warned = True
        message, values = str(record.msg), record.args if isinstance(record.args, tuple) else ()
        shown = tuple(
            (
                type(value).__name__
                if isinstance(value, BaseException)
                else value
                if isinstance(value, int | float)
                else "(...)"
            )
            for value in values
        )
        # If the arguments don't fit the format, log the message without them.
        with contextlib.suppress(TypeError, ValueError):
            message = message % shown if shown else message
        short = " ".join(message.split())[:300]
        log.log(level, "telemetry isn't delivered (logged once; audits continue): %s", short)

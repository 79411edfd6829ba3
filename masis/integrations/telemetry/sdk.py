"""The providers of OpenTelemetry's SDK as the settings and the standard variables say.

``OTEL_SERVICE_NAME``, ``OTEL_RESOURCE_ATTRIBUTES``, ``OTEL_EXPORTER_OTLP_*``, ``OTEL_TRACES_SAMPLER``,
``OTEL_METRIC_EXPORT_INTERVAL``, ``OTEL_SDK_DISABLED`` and their like are read by the SDK itself, here as anywhere.
"""

from __future__ import annotations

import logging
import sys
import uuid
from collections.abc import Callable
from typing import NamedTuple

from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import ConsoleMetricExporter, MetricExporter, PeriodicExportingMetricReader
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


class Providers(NamedTuple):
    """What makes spans and metrics, and what sends the rest and ends both."""

    tracers: TracerProvider
    meters: MeterProvider
    shut: Callable[[], None]


def providers(settings: Settings) -> Providers:
    """Providers that send or print as ``telemetry`` says. Raises SettingsError for an OTEL_* value that is wrong."""
    warnings = WarnOnce()
    warnings.listen()
    try:
        spans, metrics = _otlp() if settings.telemetry == "otlp" else _console()
        reader = PeriodicExportingMetricReader(metrics)
        tracers = TracerProvider(resource=resource(), shutdown_on_exit=False)
        tracers.add_span_processor(spans)
        meters = MeterProvider([reader], resource=resource(), shutdown_on_exit=False)
    except (ValueError, OSError) as error:
        warnings.leave()
        raise SettingsError(
            f"OpenTelemetry can't use a variable of its own (OTEL_...): {' '.join(str(error).split())}"
        ) from error

    def shut() -> None:
        try:
            tracers.shutdown()
            meters.shutdown()
        finally:
            warnings.leave()

    return Providers(tracers, meters, shut)


_INSTANCE = uuid.uuid4().hex
"""Processes of one command are distinguished: their counters are theirs alone."""


def resource() -> Resource:
    """Who measures; what the environment says comes before what we say."""
    ours = Resource(
        {
            "service.name": SERVICE,
            "service.version": version.APP,
            "service.instance.id": _INSTANCE,
            "telemetry.sdk.language": "python",
        }
    )
    return Resource.create().merge(ours).merge(OTELResourceDetector().detect())


def _otlp() -> tuple[SpanProcessor, MetricExporter]:
    from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter

    return BatchSpanProcessor(OTLPSpanExporter()), OTLPMetricExporter()


def _console() -> tuple[SpanProcessor, MetricExporter]:
    """One JSON object a line on stderr: stdout is for data."""

    def line(span: ReadableSpan) -> str:
        return f"{span.to_json(indent=None)}\n"

    return (
        SimpleSpanProcessor(ConsoleSpanExporter(out=sys.stderr, formatter=line)),
        ConsoleMetricExporter(out=sys.stderr, formatter=lambda data: f"{data.to_json(indent=None)}\n"),
    )


class WarnOnce(logging.Handler):
    """What the SDK says of a collector that can't be reached, once; it goes on trying, and the audits go on.

    Of what it says only its own words are repeated: addresses and headers may hold a key.
    """

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self._noisy = logging.getLogger("opentelemetry")
        self._warned = False
        self._propagated = True

    def listen(self) -> None:
        """Hear what the SDK says, in place of whoever else would."""
        self._propagated, self._noisy.propagate = self._noisy.propagate, False
        self._noisy.addHandler(self)

    def leave(self) -> None:
        """As it was before."""
        self._noisy.removeHandler(self)
        self._noisy.propagate = self._propagated

    def emit(self, record: logging.LogRecord) -> None:
        """The first trouble as a warning of ours, the others at DEBUG."""
        level = logging.DEBUG if self._warned else logging.WARNING
        self._warned = True
        log.log(level, "telemetry is not delivered (said once; the audits go on): %s", _without_values(record))


def _without_values(record: logging.LogRecord) -> str:
    """What is said, with numbers and kinds of errors, and without any text that came from elsewhere."""

    def plain(value: object) -> object:
        if isinstance(value, BaseException):
            return type(value).__name__
        return value if isinstance(value, int | float) else "(...)"

    arguments = record.args if isinstance(record.args, tuple) else ()
    try:
        words = str(record.msg) % tuple(plain(value) for value in arguments) if arguments else str(record.msg)
    except (TypeError, ValueError):
        words = str(record.msg)
    return " ".join(words.split())[:300]

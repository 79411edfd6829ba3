"""A span that is the current one while its work is done, and attributes as OpenTelemetry takes them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextvars import Token
from typing import Any

from opentelemetry import context, trace
from opentelemetry.context import Context
from opentelemetry.trace import Span, SpanKind, Status, StatusCode, Tracer

from masis.integrations.telemetry import names

Value = str | bool | int | float | list[str]


class CurrentSpan:
    """A span that is the current one from its making to its end."""

    def __init__(
        self, tracer: Tracer, name: str, attributes: Mapping[str, Any], kind: SpanKind = SpanKind.INTERNAL
    ) -> None:
        self.span: Span = tracer.start_span(name, kind=kind, attributes=dict(span_attributes(attributes)))
        self._token: Token[Context] | None = context.attach(trace.set_span_in_context(self.span))

    def put(self, attributes: Mapping[str, Any]) -> None:
        """Add attributes; what is unknown is left out."""
        self.span.set_attributes(dict(span_attributes(attributes)))

    def failed(self, code: str) -> None:
        """Mark the span as failed."""
        self.span.set_status(Status(StatusCode.ERROR, code))
        self.span.set_attribute(names.ERROR, code)

    def end(self, error: BaseException | None = None) -> None:
        """End the span; the one before is current again."""
        if self._token is None:
            return
        if error is not None:
            self.failed(type(error).__name__)
        context.detach(self._token)
        self._token = None
        self.span.end()


def place() -> dict[str, str]:
    """Return the current span, for a line of the log (``masis/observers/log_records.py``)."""
    here = trace.get_current_span().get_span_context()
    return {"trace_id": f"{here.trace_id:032x}", "span_id": f"{here.span_id:016x}"} if here.is_valid else {}


def span_attributes(attributes: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Value]]:
    """Yield attributes as OpenTelemetry takes them: flat, and without what is unknown."""
    for name, value in attributes.items():
        if isinstance(value, Mapping):
            yield from span_attributes(value, f"{prefix}{name}.")
        elif isinstance(value, list | tuple):
            yield f"{prefix}{name}", [str(each) for each in value]
        elif isinstance(value, str | bool | int | float):
            yield f"{prefix}{name}", value

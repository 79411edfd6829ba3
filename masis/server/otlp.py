"""Converts OTLP/HTTP traces from an OpenTelemetry exporter to cases, in the same way as `masis
import`.

A trace becomes a case if its spans contain a question, an answer and evidence under OpenInference's
or GenAI's attributes. Spans are joined within one request. If an exporter spreads a trace over
several requests, a collector must put it together first (docs/ingestion.md). The response counts
the spans of traces that don't become a case, and says why.
"""

from __future__ import annotations

import base64
import contextlib
import json
import zlib
from typing import Any

from masis.datasets.mapping.reader import read_any
from masis.datasets.paths import text_of, value_at
from masis.datasets.readers.strict_json import parse_object
from masis.errors import InputError
from masis.schema.case import Case
from masis.schema.extras import require

PROTOBUF, JSON = "application/x-protobuf", "application/json"
MOST_SPANS = 50_000
"""Maximum number of spans per request."""

_REASONS = 3
"""Maximum number of traces whose reason is reported."""
_SPANS = ("resourceSpans[].scopeSpans[].spans[] | [?type(@) == 'object']",)
_KIND, _OPERATION = "openinference.span.kind", "gen_ai.operation.name"


def gunzip(body: bytes, most: int) -> bytes | None:
    """Decompress gzip, or return None if the content has more than ``most`` bytes. Raises
    InputError.
    """
    decompressor = zlib.decompressobj(wbits=31)  # 31 means gzip with the largest window
    try:
        # The limit applies while decompressing, so that a small body can't fill memory.
        content = decompressor.decompress(body, most + 1)
    except zlib.error as error:
        raise InputError("isn't valid gzip", hint="Send it again.") from error
    if len(content) > most:
        return None
    if not decompressor.eof or decompressor.unused_data:
        raise InputError("isn't exactly one gzip member", hint="Send one gzip member.")
    return content


def parse_export(body: bytes, content_type: str) -> tuple[list[Case], int, str]:
    """Parse an ExportTraceServiceRequest.

    Returns the cases, the number of spans of traces without a case, and the reasons for the first
    few of those traces. Raises InputError for an invalid body, and MissingExtra for protobuf if
    its packages aren't installed.
    """
    traces = _traces(
        _from_protobuf(body) if content_type == PROTOBUF else parse_object(body or b"{}")
    )
    cases, rejected, reasons = list[Case](), 0, list[str]()
    for trace, spans in traces.items():
        try:
            cases.append(_trace_case(spans))
        except InputError as error:
            rejected += len(spans)
            problem = " ".join(filter(None, (error.field, error.problem.partition(" (")[0])))
            reasons += [f"trace {trace[:32]}: {problem}."] if len(reasons) < _REASONS else []
    return cases, rejected, " ".join(reasons)


def export_response(content_type: str, rejected: int, why: str) -> bytes:
    """Return the ExportTraceServiceResponse in the encoding of the request."""
    if content_type != PROTOBUF:
        # OTLP/JSON writes 64-bit integers as texts (protobuf's JSON mapping).
        outcome = {"partialSuccess": {"rejectedSpans": str(rejected), "errorMessage": why}}
        return json.dumps(outcome if rejected else {}).encode()
    from opentelemetry.proto.collector.trace.v1 import trace_service_pb2 as service

    partial = (
        service.ExportTracePartialSuccess(rejected_spans=rejected, error_message=why)
        if rejected
        else None
    )
    body: bytes = service.ExportTraceServiceResponse(partial_success=partial).SerializeToString()
    return body


def refusal_body(content_type: str, why: str) -> bytes:
    """Return the body of a refusal: a Status in the encoding of the request, or JSON if protobuf
    isn't installed.
    """
    if content_type == PROTOBUF:
        with contextlib.suppress(ImportError):
            from opentelemetry.proto.trace.v1.trace_pb2 import Status

            # This Status has the message in the same field (2) as google.rpc.Status, which
            # OTLP/HTTP requires.
            body: bytes = Status(message=why).SerializeToString()
            return body
    return json.dumps({"message": why}).encode()


def _from_protobuf(body: bytes) -> dict[str, Any]:
    require(
        "OTLP in protobuf needs packages that aren't installed",
        *("otlp", "google.protobuf", "opentelemetry.proto"),
    )
    from google.protobuf.json_format import MessageToDict
    from google.protobuf.message import DecodeError
    from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

    try:
        request = ExportTraceServiceRequest.FromString(body)
    except DecodeError as error:
        raise InputError(
            "isn't an ExportTraceServiceRequest", hint="Send OTLP in protobuf."
        ) from error
    _check_span_count(
        sum(
            len(scope.spans)
            for resource in request.resource_spans
            for scope in resource.scope_spans
        )
    )
    content: dict[str, Any] = MessageToDict(request)
    # The JSON mapping of protobuf encodes bytes as base64, but OTLP/JSON writes ids in hexadecimal.
    for span in _spans_in(content):
        for name in ("traceId", "spanId", "parentSpanId"):
            if name in span:
                span[name] = base64.b64decode(span[name]).hex()
    return content


def _spans_in(content: dict[str, Any]) -> list[dict[str, Any]]:
    spans: list[dict[str, Any]] = value_at(content, _SPANS) or []
    return spans


def _check_span_count(spans: int) -> None:
    if spans > MOST_SPANS:
        raise InputError(
            f"has {spans:,} spans, but at most {MOST_SPANS:,} are allowed",
            hint="Send fewer at once.",
        )


def _traces(content: dict[str, Any]) -> dict[str, list[dict[str, Any]]]:
    """Group the spans by trace, with their attributes as a dictionary."""
    traces: dict[str, list[dict[str, Any]]] = {}
    spans = _spans_in(content)
    _check_span_count(len(spans))
    for span in spans:
        attributes = value_at(span, ("attributes(attributes)",))
        plain = {
            "traceId": str(span.get("traceId", "")),
            "spanId": str(span.get("spanId", "")),
            "parentSpanId": str(span.get("parentSpanId") or "") or None,
            "name": str(span.get("name", "")),
            "attributes": attributes if isinstance(attributes, dict) else {},
        }
        traces.setdefault(str(plain["traceId"]).lower(), []).append(plain)
    return traces


def _trace_case(spans: list[dict[str, Any]]) -> Case:
    """Return the case of a trace. Raises InputError naming the missing part."""
    readings = []
    if any(_KIND in span["attributes"] for span in spans):
        readings.append(("openinference", _as_phoenix(spans)))
    if any(_OPERATION in span["attributes"] for span in spans):
        readings.append(("otel-genai", spans))
    problem = InputError(
        "has no attributes of OpenInference or GenAI", hint="Instrument the code that answers."
    )
    for profile, rows in readings:
        try:
            (row,) = read_any(rows, profile, name="trace")
            if row.case is None:
                raise row.problems[0]
            if not (row.case.answer or "").strip() and row.case.unanswered is None:
                raise InputError(
                    "is missing or empty", hint="Export the span with the answer.", field="answer"
                )
            return row.case
        except InputError as error:
            problem = error
    raise problem


def _as_phoenix(spans: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Convert spans to the form that Phoenix exports.

    If no span is a root, a span whose parent isn't in the trace counts as the root, provided there
    is only one.
    """
    ids = {span["spanId"] for span in spans}
    outer = [span["spanId"] for span in spans if span["parentSpanId"] not in ids]
    parentless = {span["spanId"] for span in spans if span["parentSpanId"] is None}
    roots = parentless or (set(outer) if len(outer) == 1 else set())
    return [
        {
            "context": {"trace_id": span["traceId"], "span_id": span["spanId"]},
            "parent_id": None if span["spanId"] in roots else span["parentSpanId"],
            "span_kind": text_of(span["attributes"].get(_KIND)),
            **{name: span[name] for name in ("name", "attributes")},
        }
        for span in spans
    ]

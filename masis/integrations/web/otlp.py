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
from typing import Any, NamedTuple

from masis.datasets.mapping.reader import read_any
from masis.datasets.paths import text_of, value_at
from masis.datasets.readers.strict_json import parse_object
from masis.errors import InputError
from masis.integrations import require
from masis.schema.case import Case

PROTOBUF, JSON = "application/x-protobuf", "application/json"
MOST_SPANS = 50_000
"""The most spans in one request."""

_WHY = 3
_SPANS = ("resourceSpans[].scopeSpans[].spans[] | [?type(@) == 'object']",)
_KIND, _OPERATION = "openinference.span.kind", "gen_ai.operation.name"


class TraceExport(NamedTuple):
    """The result of a request: the number of cases, the cases as JSON lines, the number of spans
    without a case, and the reasons for the first few traces.
    """

    cases: int
    lines: bytes
    rejected: int
    why: str


def gunzip(body: bytes, most: int) -> bytes | None:
    """Decompress gzip, or return None if the content has more than ``most`` bytes. Raises
    InputError.
    """
    inflating = zlib.decompressobj(wbits=31)
    try:
        found = inflating.decompress(body, most + 1)
    except zlib.error as error:
        raise InputError("is no gzip that can be read", hint="Send it again.") from error
    if len(found) > most:
        return None
    if not inflating.eof or inflating.unused_data:
        raise InputError("is no whole gzip", hint="Send one gzip member.")
    return found


def parse_export(body: bytes, content_type: str) -> TraceExport:
    """Return the cases of an ExportTraceServiceRequest.

    Raises InputError for an invalid body, and MissingExtra for protobuf if its packages aren't
    installed.
    """
    found = _traces(
        _from_protobuf(body) if content_type == PROTOBUF else parse_object(body or b"{}")
    )
    cases, rejected, why = list[Case](), 0, list[str]()
    for trace, spans in found.items():
        try:
            cases.append(_trace_case(spans))
        except InputError as error:
            rejected += len(spans)
            what = " ".join(filter(None, (error.field, error.problem.partition(" (")[0])))
            why += [f"trace {trace[:32]}: {what}."] if len(why) < _WHY else []
    lines = "\n".join(json.dumps(case.to_json_dict()) for case in cases).encode()
    return TraceExport(len(cases), lines, rejected, " ".join(why))


def export_response(content_type: str, rejected: int, why: str) -> bytes:
    """Return the ExportTraceServiceResponse in the encoding of the request."""
    if content_type != PROTOBUF:
        about = (
            {"partialSuccess": {"rejectedSpans": str(rejected), "errorMessage": why}}
            if rejected
            else {}
        )
        return json.dumps(about).encode()
    from opentelemetry.proto.collector.trace.v1 import trace_service_pb2 as service

    partial = (
        service.ExportTracePartialSuccess(rejected_spans=rejected, error_message=why)
        if rejected
        else None
    )
    sent: bytes = service.ExportTraceServiceResponse(partial_success=partial).SerializeToString()
    return sent


def refusal_body(content_type: str, why: str) -> bytes:
    """Return the body of a refusal: a Status in the encoding of the request, or JSON if protobuf
    isn't installed.
    """
    if content_type == PROTOBUF:
        with contextlib.suppress(ImportError):
            from opentelemetry.proto.trace.v1.trace_pb2 import Status

            # This Status has the message in the same field (2) as google.rpc.Status, which
            # OTLP/HTTP requires.
            sent: bytes = Status(message=why).SerializeToString()
            return sent
    return json.dumps({"message": why}).encode()


def _from_protobuf(body: bytes) -> dict[str, Any]:
    lacking = "OTLP in protobuf needs packages that are not installed"
    require(lacking, "otlp", "google.protobuf", "opentelemetry.proto")
    from google.protobuf.json_format import MessageToDict
    from google.protobuf.message import DecodeError
    from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

    try:
        request = ExportTraceServiceRequest.FromString(body)
    except DecodeError as error:
        raise InputError(
            "is no ExportTraceServiceRequest", hint="Send OTLP in protobuf."
        ) from error
    _check_span_count(
        sum(
            len(scope.spans)
            for resource in request.resource_spans
            for scope in resource.scope_spans
        )
    )
    read: dict[str, Any] = MessageToDict(request)
    # The JSON mapping of protobuf encodes bytes as base64, but OTLP/JSON writes ids in hexadecimal.
    for span in _spans_in(read):
        for name in ("traceId", "spanId", "parentSpanId"):
            if name in span:
                span[name] = base64.b64decode(span[name]).hex()
    return read


def _spans_in(content: dict[str, Any]) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = value_at(content, _SPANS) or []
    return found


def _check_span_count(spans: int) -> None:
    if spans > MOST_SPANS:
        raise InputError(
            f"holds {spans:,} spans, at most {MOST_SPANS:,} are taken", hint="Send fewer at once."
        )


def _traces(content: dict[str, Any]) -> dict[str, list[dict[str, Any]]]:
    """Group the spans by trace, with their attributes as a dictionary."""
    found: dict[str, list[dict[str, Any]]] = {}
    spans = _spans_in(content)
    _check_span_count(len(spans))
    for span in spans:
        attributes = value_at(span, ("attributes(attributes)",))
        read = {
            "traceId": str(span.get("traceId", "")),
            "spanId": str(span.get("spanId", "")),
            "parentSpanId": str(span.get("parentSpanId") or "") or None,
            "name": str(span.get("name", "")),
            "attributes": attributes if isinstance(attributes, dict) else {},
        }
        found.setdefault(str(read["traceId"]).lower(), []).append(read)
    return found


def _trace_case(spans: list[dict[str, Any]]) -> Case:
    """Return the case of a trace. Raises InputError naming the missing part."""
    readings = []
    if any(_KIND in span["attributes"] for span in spans):
        readings.append(("openinference", _as_phoenix(spans)))
    if any(_OPERATION in span["attributes"] for span in spans):
        readings.append(("otel-genai", spans))
    problem = InputError(
        "has no attributes of OpenInference or GenAI", hint="Instrument what answers."
    )
    for profile, rows in readings:
        try:
            (row,) = read_any(rows, profile, name="trace")
            if row.case is None:
                raise row.problems[0]
            if not (row.case.answer or "").strip() and row.case.unanswered is None:
                raise InputError(
                    "is missing or empty", hint="Export the span that answers.", field="answer"
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
    found = {span["spanId"] for span in spans if span["parentSpanId"] is None}
    roots = found or (set(outer) if len(outer) == 1 else set())
    return [
        {
            "context": {"trace_id": span["traceId"], "span_id": span["spanId"]},
            "parent_id": None if span["spanId"] in roots else span["parentSpanId"],
            "span_kind": text_of(span["attributes"].get(_KIND)),
            **{name: span[name] for name in ("name", "attributes")},
        }
        for span in spans
    ]

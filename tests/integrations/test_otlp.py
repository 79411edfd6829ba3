"""OpenTelemetry traces sent to the ingestion server: the cases made from them, counts, and rejected
requests.
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx2
import pytest
from starlette.testclient import TestClient

from masis.server import ingestion as web
from masis.server import otlp
from masis.services import Workbench
from masis.services.arrivals.ingestion import ProgramSource
from tests.integrations.test_web import DIGEST, SEND, audited, ingesting, stored_ids
from tests.waiting import until
from tools.serving import free_port

Q, A, T = (
    "How long is the bridge?",
    "The bridge is 120 metres long [1].",
    "The bridge is 120 metres long.",
)
TRACE = "0af7651916cd43dd8448eb211c80319c"


def attribute(key: str, value: Any) -> dict[str, Any]:
    if isinstance(value, list):
        return {
            "key": key,
            "value": {"arrayValue": {"values": [attribute("", item)["value"] for item in value]}},
        }
    if isinstance(value, dict):
        return {
            "key": key,
            "value": {"kvlistValue": {"values": [attribute(*item) for item in value.items()]}},
        }
    return {
        "key": key,
        "value": {"intValue": str(value)} if isinstance(value, int) else {"stringValue": value},
    }


def span(
    number: int, trace: str = TRACE, parent: int | None = None, **attributes: Any
) -> dict[str, Any]:
    """A span in OTLP's JSON; names of attributes with ``__`` for ``.``."""
    named = [attribute(key.replace("__", "."), value) for key, value in attributes.items()]
    above = {} if parent is None else {"parentSpanId": f"{parent:016x}"}
    return {
        "traceId": trace,
        "spanId": f"{number:016x}",
        "name": "work",
        "kind": 1,
        "attributes": named,
        **above,
    }


def openinference(trace: str = TRACE, parent: int | None = None) -> list[dict[str, Any]]:
    kind = "openinference__span__kind"
    found = {
        "retrieval__documents__0__document__content": T,
        "retrieval__documents__0__document__id": "1",
    }
    return [
        span(2, trace, 1, **{kind: "RETRIEVER", "input__value": Q} | found),
        span(3, trace, 1, **{kind: "LLM", "input__value": "prompt", "output__value": "raw"}),
        span(1, trace, parent, **{kind: "CHAIN", "input__value": Q, "output__value": A}),
    ]


def genai(trace: str = TRACE) -> list[dict[str, Any]]:
    def message(role: str, text: str) -> str:
        return json.dumps([{"role": role, "parts": [{"type": "text", "content": text}]}])

    return [
        span(
            2,
            trace,
            1,
            gen_ai__operation__name="retrieval",
            gen_ai__retrieval__documents=[{"id": "1", "content": T}],
        ),
        span(
            *(3, trace, 1),
            gen_ai__operation__name="chat",
            gen_ai__input__messages=message("user", Q),
            gen_ai__output__messages=message("assistant", A),
        ),
    ]


def request(*spans: dict[str, Any]) -> dict[str, Any]:
    return {
        "resourceSpans": [
            {"resource": {}, "scopeSpans": [{"scope": {"name": "x"}, "spans": list(spans)}]}
        ]
    }


def protobuf(*spans: dict[str, Any]) -> bytes:
    """Return the request in the protobuf format of the SDKs."""
    from google.protobuf.json_format import ParseDict
    from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

    message = ParseDict(request(*spans), ExportTraceServiceRequest())
    for target, source in zip(message.resource_spans[0].scope_spans[0].spans, spans, strict=True):
        target.trace_id, target.span_id = (
            bytes.fromhex(source["traceId"]),
            bytes.fromhex(source["spanId"]),
        )
        target.parent_span_id = bytes.fromhex(source.get("parentSpanId", ""))
    content: bytes = message.SerializeToString()
    return content


@pytest.fixture
def client(bench: Workbench) -> Iterator[TestClient]:
    source = ProgramSource(
        name="chatbot",
        token_sha256=DIGEST,
        max_body_bytes=100_000,
        max_cases=3,
        profile="langfuse-traces",
    )
    with TestClient(
        web.application(bench.ingestion, {"chatbot": source}), base_url="http://127.0.0.1:8700"
    ) as client:
        yield client


def post(
    client: TestClient, content: bytes, kind: str = otlp.JSON, **headers: str
) -> httpx2.Response:
    return client.post(
        "/v1/traces", content=content, headers=SEND | {"content-type": kind} | headers
    )


def case_stored(bench: Workbench, case_id: str = TRACE) -> Any:
    until(lambda: case_id in stored_ids(bench), "the trace is a case")
    return bench.store.cases.get(case_id)


@pytest.mark.parametrize("encoding", ["identity", "gzip"])
@pytest.mark.parametrize("kind", [otlp.JSON, otlp.PROTOBUF])
@pytest.mark.parametrize(
    "spans",
    [openinference(), genai(), openinference(parent=9)],
    ids=["openinference", "genai", "within"],
)
def test_a_trace_with_answer_and_evidence_becomes_a_case(
    bench: Workbench, client: TestClient, spans: list[dict[str, Any]], kind: str, encoding: str
) -> None:
    content = protobuf(*spans) if kind == otlp.PROTOBUF else json.dumps(request(*spans)).encode()
    content = gzip.compress(content) if encoding == "gzip" else content
    response = post(client, content, kind, **{"content-encoding": encoding})
    assert (response.status_code, response.headers["content-type"]) == (200, kind)
    assert response.content == (b"" if kind == otlp.PROTOBUF else b"{}")
    case = case_stored(bench)
    assert (case.query, case.answer) == (Q, A)
    assert [(chunk.id, chunk.text) for chunk in case.evidence] == [("1", T)]
    until(lambda: not bench.store.inbox.waiting(1), "it is read")
    assert client.get(f"/v1/cases/{TRACE}", headers=SEND).json()["standing"] == "not_audited"


@pytest.mark.parametrize("kind", [otlp.JSON, otlp.PROTOBUF])
def test_spans_without_a_case_are_counted_and_others_stored(
    bench: Workbench, client: TestClient, kind: str
) -> None:
    without_evidence = openinference("b" * 32)[1:]
    without_answer = openinference("c" * 32)[:1]
    spans = [
        *openinference(),
        *without_evidence,
        *without_answer,
        span(7, "d" * 32, http__method="GET"),
    ]
    content = protobuf(*spans) if kind == otlp.PROTOBUF else json.dumps(request(*spans)).encode()
    response = post(client, content, kind)
    assert response.status_code == 200
    if kind == otlp.JSON:
        partial = response.json()["partialSuccess"]
        rejected, reason = partial["rejectedSpans"], partial["errorMessage"]
    else:
        from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
            ExportTraceServiceResponse,
        )

        partial = ExportTraceServiceResponse.FromString(response.content).partial_success
        rejected, reason = str(partial.rejected_spans), partial.error_message
    assert rejected == "4"
    for trace, problem in (
        ("b", "evidence is missing"),
        ("c", "answer is missing"),
        ("d", "no attributes of"),
    ):
        assert f"trace {trace * 32}: " in reason
        assert problem in reason
    case_stored(bench)
    assert stored_ids(bench) == [TRACE]


def test_a_resent_trace_changes_nothing_and_a_different_one_is_logged(
    bench: Workbench, client: TestClient, caplog: pytest.LogCaptureFixture
) -> None:
    for spans in (openinference(), openinference(), genai()):
        assert post(client, json.dumps(request(*spans)).encode()).status_code == 200
    until(lambda: not bench.store.inbox.waiting(1), "all are read")
    assert stored_ids(bench) == [TRACE]
    assert caplog.text.count("1 of the traces of chatbot are not stored") == 1


@pytest.mark.parametrize(
    ("content", "headers", "status", "reason"),
    [
        (b"{", {}, 400, "JSON"),
        (b"[]", {}, 400, "object"),
        (b"[" * 100_000, {}, 400, "nested"),
        (b"x", {"content-type": otlp.PROTOBUF}, 400, "ExportTraceServiceRequest"),
        (b"x", {"content-encoding": "gzip"}, 400, "gzip"),
        (gzip.compress(b"{}", mtime=0)[:-2], {"content-encoding": "gzip"}, 400, "one gzip member"),
        (b"{}", {"content-encoding": "br"}, 415, "gzip"),
        (b"{}", {"content-type": "text/plain"}, 415, "content type"),
        (b"{}", {"authorization": "Bearer wrong"}, 401, "token"),
        (b" " * 100_001, {}, 413, "max_body_bytes"),
        (
            gzip.compress(b" " * 10_000_000, mtime=0),
            {"content-encoding": "gzip"},
            413,
            "max_body_bytes",
        ),
        (
            json.dumps(
                request(*(span for n in range(4) for span in openinference(f"{n:032x}")))
            ).encode(),
            *({}, 413, "max_cases"),
        ),
    ],
)
def test_a_rejected_request_gets_a_status_and_a_reason(
    bench: Workbench,
    client: TestClient,
    content: bytes,
    headers: dict[str, str],
    status: int,
    reason: str,
) -> None:
    response = post(
        client,
        content,
        **({"kind": headers.pop("content-type")} if "content-type" in headers else {}),
        **headers,
    )
    assert response.status_code == status
    assert reason in response.text
    assert bench.store.database.value("SELECT count(*) FROM inbox") == 0


def test_too_many_spans_are_rejected(client: TestClient, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(otlp, "MOST_SPANS", 2)
    for kind, content in (
        (otlp.JSON, json.dumps(request(*openinference())).encode()),
        (otlp.PROTOBUF, protobuf(*openinference())),
    ):
        response = post(client, content, kind)
        assert response.status_code == 400
        assert "at most 2" in response.text


@pytest.mark.slow
def test_a_trace_from_the_otel_sdk_is_audited(tmp_path: Path) -> None:
    from opentelemetry.exporter.otlp.proto.http import Compression
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import BatchSpanProcessor

    with ingesting(tmp_path, free_port()) as client:
        exporter = OTLPSpanExporter(
            f"{client.base_url}/v1/traces", headers=SEND, compression=Compression.Gzip
        )
        provider = TracerProvider(shutdown_on_exit=False)
        provider.add_span_processor(BatchSpanProcessor(exporter))
        tracer = provider.get_tracer("chatbot")
        with tracer.start_as_current_span("answer") as outer:
            outer.set_attributes(
                {"openinference.span.kind": "CHAIN", "input.value": Q, "output.value": A}
            )
            with tracer.start_as_current_span("find") as inner:
                inner.set_attributes({"openinference.span.kind": "RETRIEVER", "input.value": Q})
                inner.set_attributes({"retrieval.documents.0.document.content": T})
        provider.shutdown()
        assert audited(client, f"{outer.get_span_context().trace_id:032x}")["standing"]

"""Starting and ending telemetry: where it is sent, and that audits never wait for it."""

from __future__ import annotations

import contextlib
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from masis import Case, Settings, run_audit
from masis.integrations import telemetry
from masis.services import Workbench
from masis.services.jobs import QueuedJob, WorkerProcess
from tests.cli.running import case, lines, start
from tests.llm.asking import closed_port
from tests.loopback import Quiet, loopback
from tests.reviewing import ADA
from tests.waiting import until

ROOT = Path(__file__).resolve().parents[3]
CASE = Case.model_validate(case("bridge"))


class Collector:
    """Records the spans and metrics that OTLP sends over HTTP."""

    def __init__(self) -> None:
        self.spans: list[Any] = []
        self.metrics: dict[str, Any] = {}
        self.resources: list[dict[str, str]] = []
        self.address = ""

    def take(self, path: str, body: bytes) -> None:
        if path == "/v1/traces":
            for resource in ExportTraceServiceRequest.FromString(body).resource_spans:
                self.resources.append(
                    {item.key: item.value.string_value for item in resource.resource.attributes}
                )
                self.spans += [span for scope in resource.scope_spans for span in scope.spans]
        else:
            assert path == "/v1/metrics"
            for measured in ExportMetricsServiceRequest.FromString(body).resource_metrics:
                for scope in measured.scope_metrics:
                    self.metrics |= {metric.name: metric for metric in scope.metrics}


@contextlib.contextmanager
def collecting(answer_s: float = 0.0) -> Iterator[Collector]:
    """Run a collector on loopback that answers after this delay, or when the block ends, and set
    its address.
    """
    collector, ended = Collector(), threading.Event()

    class Handler(Quiet):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["content-length"]))
            assert self.headers["content-type"] == "application/x-protobuf"
            ended.wait(answer_s)
            collector.take(self.path, body)
            self.send_response(200)
            self.end_headers()

    with loopback(Handler) as collector.address, pytest.MonkeyPatch.context() as patch:
        patch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", collector.address)
        try:
            yield collector
        finally:
            ended.set()


@pytest.fixture
def collector() -> Iterator[Collector]:
    with collecting() as running:
        yield running


@pytest.fixture
def closed(monkeypatch: pytest.MonkeyPatch) -> str:
    """Return the address of a port that no server listens on."""
    address = f"http://127.0.0.1:{closed_port()}"
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", address)
    return address


def test_disabled_telemetry_doesnt_import_opentelemetry() -> None:
    code = (
        "import sys, masis; from masis.integrations import telemetry; from masis import Settings,"
        " Case;telemetry.start(Settings());masis.run_audit(Case(id='1', query='How?', answer='So"
        " [1].', evidence=[{'id': '1', 'text': 'So.'}]));print([name for name in sys.modules if"
        " name.startswith('opentelemetry')])"
    )
    result = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT
    )
    assert result.stdout.strip() == "[]"


def test_spans_and_metrics_reach_a_collector_over_http(
    collector: Collector, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OTEL_RESOURCE_ATTRIBUTES", "deployment.environment.name=test")
    with telemetry.start(Settings(telemetry="otlp")) as on:
        assert on.on
        assert telemetry.start(Settings(telemetry="otlp")) is on  # once per process
        run = run_audit(CASE, Settings(max_iterations=2))
    assert not on.on
    assert {"invoke_workflow audit", "iteration", "critique"} <= {
        span.name for span in collector.spans
    }
    (audit,) = [span for span in collector.spans if span.name == "invoke_workflow audit"]
    attributes = {item.key: item.value for item in audit.attributes}
    assert attributes["masis.run.id"].string_value == run.id
    assert attributes["masis.total_iterations"].int_value == run.total_iterations
    (point,) = collector.metrics["masis.loop.iterations"].histogram.data_points
    assert (point.count, point.sum) == (1, run.total_iterations)
    assert collector.metrics["critique_latency_ms"].unit == "ms"
    resource = collector.resources[0]
    assert (resource["service.name"], resource["deployment.environment.name"]) == (
        "masis-workbench",
        "test",
    )


@pytest.fixture(autouse=True)
def _join_exporter_threads(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Join exporter threads, because a retrying one uses random numbers.

    Hypothesis would report that in the next test.
    """
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_TIMEOUT", "2")
    before = set(threading.enumerate())
    yield
    for thread in set(threading.enumerate()) - before:
        if "Otel" in thread.name or "telemetry" in thread.name or thread.name.startswith("Thread-"):
            thread.join(timeout=30)


def test_an_unreachable_collector_is_reported_once_without_failing_audits(
    closed: str, caplog: pytest.LogCaptureFixture
) -> None:
    untraced = [run_audit(CASE) for _ in range(5)]
    on = telemetry.start(Settings(telemetry="otlp"))
    runs = [run_audit(CASE) for _ in range(5)]
    on.end(within_s=1.0)
    assert [run.final_answer for run in runs] == [run.final_answer for run in untraced]
    until(lambda: any(record.name == "masis.telemetry" for record in caplog.records), "a warning")
    warnings = [
        record
        for record in caplog.records
        if record.name == "masis.telemetry" and record.levelname == "WARNING"
    ]
    assert len(warnings) == 1
    assert "isn't delivered" in warnings[0].getMessage()


def test_an_unresponsive_collector_delays_exit_only_briefly() -> None:
    with collecting(answer_s=30.0) as slow:
        on = telemetry.start(Settings(telemetry="otlp"))
        run_audit(CASE)
        on.end(within_s=0.5)
        assert not slow.spans, "telemetry ended before the collector answered"


def case_file(tmp_path: Path, count: int) -> Path:
    file = tmp_path / "cases.jsonl"
    file.write_bytes(lines(*(case(f"case-{number}") for number in range(count))))
    return file


def test_metrics_are_sent_after_ctrl_c(tmp_path: Path, collector: Collector) -> None:
    environment = {
        "XDG_DATA_HOME": str(tmp_path),
        "MASIS_TELEMETRY": "otlp",
        "OTEL_BSP_SCHEDULE_DELAY": "600000",
        "OTEL_BSP_MAX_EXPORT_BATCH_SIZE": "2048",
    }
    with start(
        "audit", case_file(tmp_path, 3000), "--log", "info", environment=environment, cwd=tmp_path
    ) as process:
        assert process.stderr is not None
        for line in process.stderr:
            if "ends after" in line:
                break
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=60)
    assert process.returncode == 130
    assert [span for span in collector.spans if span.name == "invoke_workflow audit"]
    assert "masis.loop.duration" in collector.metrics


@pytest.mark.parametrize("ends", ["closed by the server", "the server is gone"])
def test_page_workers_send_their_metrics(
    tmp_path: Path, collector: Collector, monkeypatch: pytest.MonkeyPatch, ends: str
) -> None:
    monkeypatch.setenv("OTEL_BSP_SCHEDULE_DELAY", "600000")
    database = tmp_path / "masis.db"
    bench = Workbench.open(database)
    bench.cases.add(ADA, [CASE])
    worker = WorkerProcess(database, "masis.ui.shell.worker")
    assert worker.run(QueuedJob("audit", "run-1", CASE.id, Settings(telemetry="otlp"), ADA)) is None
    if ends == "closed by the server":
        worker.close()
    else:
        stdin = worker._process.stdin
        stdin.close()
        worker._process.wait(timeout=20)
        worker.close()
    (run,) = [span for span in collector.spans if span.name == "invoke_workflow audit"]
    assert {attribute.key: attribute.value.string_value for attribute in run.attributes}[
        "masis.run.id"
    ] == "run-1"
    assert "masis.loop.duration" in collector.metrics


def test_collector_keys_are_never_logged(
    closed: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv(
        "OTEL_EXPORTER_OTLP_ENDPOINT", closed.replace("http://", "http://me:SECRET@")
    )
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_HEADERS", "api-key SECRET")
    with caplog.at_level("DEBUG"):
        on = telemetry.start(Settings(telemetry="otlp"))
        run_audit(CASE)
        on.end(1.0)
        until(
            lambda: any(record.name == "masis.telemetry" for record in caplog.records), "a warning"
        )
    assert not [
        record
        for record in caplog.records
        if "SECRET" in record.getMessage() and "masis" in record.name
    ]

"""Telemetry where OpenTelemetry is not installed, and the page that documents it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from masis.audit.metric_catalogue import METRICS
from tools import telemetry_reference

pytestmark = pytest.mark.slow

ROOT = Path(__file__).resolve().parents[2]
WITHOUT = """
import sys
class Refused:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] == "opentelemetry":
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
sys.meta_path.insert(0, Refused())
"""


def python(code: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-c", WITHOUT + code], capture_output=True, text=True, cwd=ROOT)


def test_without_the_extra_it_says_what_to_install() -> None:
    done = python(
        "from masis import Settings; from masis.errors import MissingExtra; from masis.integrations import telemetry\n"
        "try: telemetry.start(Settings(telemetry='otlp'))\n"
        "except MissingExtra as error: print(error)"
    )
    assert "pip install '.[otel]'" in done.stdout, done.stderr


def test_without_the_extra_an_audit_with_telemetry_off_is_as_ever() -> None:
    done = python(
        "from masis import Case, Settings, run_audit; from masis.integrations import telemetry\n"
        "with telemetry.start(Settings()) as off:\n"
        "    run_audit(Case(id='1', query='How?', answer='So [1].', evidence=[{'id': '1', 'text': 'So.'}]))\n"
        "print(off.on)"
    )
    assert done.stdout.strip() == "False", done.stderr


def test_the_table_of_metrics_in_the_docs_is_the_one_in_code() -> None:
    now = telemetry_reference.PAGE.read_text(encoding="utf-8")
    assert now == telemetry_reference.page(now), "run: python tools/telemetry_reference.py"
    assert all(f"| `{metric.name}` |" in now for metric in METRICS)


def test_metrics_have_names_of_their_own_and_ascending_bounds() -> None:
    assert len({metric.name for metric in METRICS}) == len(METRICS)
    for metric in METRICS:
        assert list(metric.bounds) == sorted(set(metric.bounds))
        assert bool(metric.bounds) is (metric.kind == "histogram")


@pytest.mark.spec("DRAFT-CRITIQUE-METRICS")
def test_the_names_that_a_spec_gives_are_used_as_they_are() -> None:
    given = {"critique_hallucination_rate", "critique_revision_rate", "critique_latency_ms", "critique_confidence_avg"}
    assert given | {"claims_per_draft"} <= {metric.name for metric in METRICS}

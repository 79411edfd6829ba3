"""The metrics of telemetry, and the page that documents them."""

from __future__ import annotations

import pytest

from masis.audit.metric_catalogue import METRICS
from tools import telemetry_reference

pytestmark = pytest.mark.slow


def test_the_table_of_metrics_in_the_docs_is_the_one_in_code() -> None:
    now = telemetry_reference.PAGE.read_text(encoding="utf-8")
    assert now == telemetry_reference.page(now), "run: python tools/telemetry_reference.py"
    assert all(f"| `{metric.name}` |" in now for metric in METRICS)


def test_metrics_have_names_of_their_own_and_ascending_bounds() -> None:
    assert len({metric.name for metric in METRICS}) == len(METRICS)
    for metric in METRICS:
        assert list(metric.bounds) == sorted(set(metric.bounds))
        assert bool(metric.bounds) is (metric.kind == "histogram")

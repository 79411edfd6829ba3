"""The documented example, run as it is written."""

from __future__ import annotations

import json

from tests.cli.running import example


def test_the_example_prints_spans_within_the_callers_and_the_metrics() -> None:
    done = example("otel/audit.py")
    printed = [json.loads(line) for line in done.stderr.splitlines()]
    spans = {each["name"]: each for each in printed if "context" in each}
    trace = done.stdout.split()[-1]
    assert {span["context"]["trace_id"] for span in spans.values()} == {f"0x{trace}"}
    assert spans["invoke_workflow audit"][
        "parent_id"
    ]  # the caller's, which is printed nowhere: its provider has no exporter
    assert "On Sundays" in done.stdout
    (metrics,) = [each for each in printed if "resource_metrics" in each]
    names = [
        metric["name"]
        for resource in metrics["resource_metrics"]
        for scope in resource["scope_metrics"]
        for metric in scope["metrics"]
    ]
    assert "critique_hallucination_rate" in names
    assert "masis.loop.duration" in names

"""Run an audit inside a span of the caller, and print its spans and metrics to stderr.

    pip install '.[otel]'
    python examples/otel/audit.py

In a program that has OpenTelemetry set up already (a web application, say) hand its providers over
once, at its start: ``telemetry.start(Settings(), tracer_provider=trace.get_tracer_provider(),
meter_provider=get_meter_provider())``.
"""

from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider

from masis import Case, Settings, run_audit
from masis.integrations import telemetry

CASE = Case.model_validate(
    {
        "id": "opening",
        "query": "When does the library open on Sundays?",
        "answer": "It opens at 10 [1]. On Sundays it stays closed [4].",
        "evidence": [
            {"id": "1", "text": "The library opens at 10 from Monday to Saturday."},
            {"id": "2", "text": "On Sundays the library opens at 13."},
        ],
    }
)

trace.set_tracer_provider(TracerProvider())
with telemetry.start(Settings(telemetry="console")):
    with trace.get_tracer("my application").start_as_current_span("answer a question") as request:
        run = run_audit(CASE)
    print(f"{run.termination_reason} after {run.total_iterations}: {run.final_answer}")
    print(f"its trace is {request.get_span_context().trace_id:032x}")

"""Turns the events of ``masis.observers.observation`` into OpenTelemetry spans and metrics.

    caller's span > invoke_workflow audit > iteration > invoke_agent critic > chat gpt-4o

A span is the current one while its work runs, on the working thread and on threads that it starts,
so that spans of other libraries (an HTTP client, a logger) become its children. Results are
attributes of the span. A failed step, a call without an answer and a run that ended with an error
have the status ERROR with a code, but without a message, which could quote a text.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from operator import attrgetter
from typing import Any

from opentelemetry import context, trace
from opentelemetry.metrics import Meter, MeterProvider, get_meter_provider
from opentelemetry.trace import SpanKind, Status, StatusCode, Tracer, TracerProvider

from masis import version
from masis.audit.measures import metric_catalogue, run_metrics
from masis.observers import observation
from masis.schema.calls import ModelCall
from masis.schema.drafts import CritiqueResult
from masis.schema.model_ref import ModelRef
from masis.schema.run import Event, Run
from masis.schema.screening import Screening, ScreeningEvent
from masis.settings import ROLES

# Attribute names of OpenTelemetry's GenAI semantic conventions. Names that are used only once are
# written where they are used.
OPERATION = "gen_ai.operation.name"
PROVIDER = "gen_ai.provider.name"
REQUEST_MODEL = "gen_ai.request.model"
RESPONSE_MODEL = "gen_ai.response.model"
INPUT_TOKENS = "gen_ai.usage.input_tokens"
OUTPUT_TOKENS = "gen_ai.usage.output_tokens"
ERROR = "error.type"

ROLE_OF_STEP = {
    "drafting": "drafter",
    "claims": "verifier",
    "critique": "critic",
    "revision": "reviser",
    "evaluation": "evaluator",
}
"""The role that performs each step. The citations step has none, because code does it."""

_WELL_KNOWN = {
    "mistral": "mistral_ai",
    "xai": "x_ai",
    "azure": "azure.ai.openai",
    "gemini": "gcp.gemini",
}
"""Providers that have another name in the conventions."""


def provider_name(provider: str) -> str:
    """Return a provider's name in the conventions."""
    return _WELL_KNOWN.get(provider, provider)


SCOPE = "masis"
LONGEST_ID = 200

Attributes = Mapping[str, Any]

OF_RUN = {
    "masis.case.digest": "case_digest",
    "masis.total_iterations": "total_iterations",
    "masis.termination_reason": "termination_reason",
    "masis.converged": "ended_well",
    "masis.needs_review": "needs_review",
    "masis.final_quality_score": "final_quality_score",
    "masis.improvement_percentage": "improvement_percentage",
    "masis.calls": "usage.calls",
    "masis.cost_usd": "usage.cost_usd",
}
OF_CALL = {
    RESPONSE_MODEL: "answered_by",
    INPUT_TOKENS: "prompt_tokens",
    OUTPUT_TOKENS: "completion_tokens",
    "masis.outcome": "outcome",
    "masis.source": "source",
    "masis.tries": "tries",
    "masis.mode": "mode",
    "masis.cost_usd": "cost_usd",
}
"""Span attributes, and the attribute path of each value in the result."""


class Spans:
    """The observer that creates spans and records metrics."""

    def __init__(
        self, tracers: TracerProvider | None, meters: MeterProvider | None, *, texts: bool = False
    ) -> None:
        self.tracer = (tracers or trace.get_tracer_provider()).get_tracer(SCOPE, version.APP)
        self.instruments = Instruments(
            (meters or get_meter_provider()).get_meter(SCOPE, version.APP)
        )
        self.texts = texts

    def on_start(self, start: observation.Start) -> observation.Listener:
        """Start a span, which is the current one until it ends."""
        return _Listener(self, start)


class _Listener:
    """The spans of one piece of work and of its steps. ``open`` lists the open spans, outermost
    first.
    """

    def __init__(self, spans: Spans, start: observation.Start) -> None:
        self.spans, self.start = spans, start
        self.open: list[CurrentSpan] = []
        self.models: dict[str, str] = {}
        self.iteration: int | None = None
        self.reply = ""
        texts: dict[str, Any] = {}
        match start:
            case observation.CallStart():
                self._begin(f"chat {start.model}", _of_call(start), SpanKind.CLIENT)
                texts = {
                    "gen_ai.system_instructions": json.dumps(
                        [{"type": "text", "content": start.system}]
                    ),
                    "gen_ai.input.messages": _messages("user", start.question),
                }
            case observation.AuditStart():
                self._workflow("audit", {"masis.operation": start.operation})
                if start.case is not None:
                    texts = {"masis.question": start.case.query, "masis.answer": start.case.answer}
            case observation.DraftStart():
                self._workflow("critique_draft", {"masis.sources": start.sources})
                texts = {"masis.question": start.query, "masis.answer": start.draft}
            case observation.ScreeningStart():
                self._workflow("screen_abstracts", {})
        if spans.texts:
            self.open[0].set_attributes(texts)

    def _workflow(self, name: str, attributes: Attributes) -> None:
        named = {OPERATION: "invoke_workflow", "gen_ai.workflow.name": name}
        self._begin(f"invoke_workflow {name}", {**named, **attributes})

    def _begin(self, name: str, attributes: Attributes, kind: SpanKind = SpanKind.INTERNAL) -> None:
        self.open.append(CurrentSpan(self.spans.tracer, name, attributes, kind))

    def _close(self, depth: int) -> None:
        """End the inner spans until ``depth`` outer ones are left."""
        while len(self.open) > depth:
            self.open.pop().end()

    @property
    def _above_step(self) -> int:
        """The number of spans around a step: the run's, and the iteration's if one is open."""
        return 1 if self.iteration is None else 2

    def on_event(self, event: observation.Event) -> None:
        """Open and close the spans of steps and rounds, and set their attributes."""
        if isinstance(event, observation.Replied):
            self.reply = event.text
            return
        match event.kind:
            case "run_started" if isinstance(event, Event):
                self.models = dict(event.data.get("models", {}))
                self.open[0].set_attributes(
                    {
                        "masis.run.id": event.run_id,
                        "masis.case.id": event.case_id[:LONGEST_ID],
                        "masis.model": self.models,
                        "masis.resumed_after": event.data.get("resumed_after") or None,
                    }
                )
            case "screening_started" if isinstance(event, ScreeningEvent):
                graders = event.data.get("graders", ())
                self.open[0].set_attributes(
                    {"masis.screening.id": event.screening_id, "masis.graders": graders}
                )
            case "step_started" if isinstance(event, Event):
                self._step_started(event)
            case "step_finished" if isinstance(event, Event):
                if len(self.open) > self._above_step:
                    # The specs list fields under "Telemetry Emitted". They are recorded as an event
                    # and as attributes.
                    node, fields = (
                        str(event.data.get("node", event.step)),
                        dict(span_attributes(event.data)),
                    )
                    self.open[-1].span.add_event(node, fields)
                    self.open[-1].set_attributes(
                        {
                            f"masis.{node}.{name}": field_value
                            for name, field_value in fields.items()
                            if name != "node"
                        }
                    )
                self._close(self._above_step)
            case "call_retried" | "call_repaired":
                self.open[-1].span.add_event(event.kind, dict(span_attributes(event.data)))
            case "warning":
                code = event.data.get("code") if isinstance(event, Event) else None
                self.open[-1].span.add_event("warning", {"masis.code": str(code)} if code else {})
                if code and isinstance(event, Event) and event.step is not None:
                    self.open[-1].mark_failed(str(code))
            case "iteration_finished":
                self._close(self._above_step)
                if self.iteration is not None:
                    self.open[-1].set_attributes(
                        {f"masis.{name}": value for name, value in event.data.items()}
                    )
                self.iteration = None
                self._close(1)
            case "round_started" if isinstance(event, ScreeningEvent):
                self._close(1)
                self._begin("round", {"masis.round": event.round})
            case "round_finished":
                if len(self.open) > 1:
                    numbers = {
                        name: value
                        for name, value in event.data.items()
                        if not isinstance(value, list | str)
                    }
                    self.open[-1].set_attributes(
                        {f"masis.{name}": value for name, value in numbers.items()}
                    )
                self._close(1)

    def _step_started(self, event: Event) -> None:
        self._close(self._above_step)
        if event.iteration is not None and event.iteration != self.iteration:
            self._close(1)
            self._begin("iteration", {"masis.iteration": event.iteration})
            self.iteration = event.iteration
        name = str(event.step)
        role = ROLE_OF_STEP.get(name)
        string = self.models.get(role, "") if role else ""
        ref = ModelRef.parse(string)
        provider, model = ref.provider, ref.name
        attributes = {
            "masis.step": name,
            "masis.role": role,
            "masis.iteration": event.iteration,
            "masis.model": string or None,
        }
        if role and model:
            name = f"invoke_agent {role}"
            attributes |= {
                OPERATION: "invoke_agent",
                "gen_ai.agent.name": role,
                PROVIDER: provider_name(provider),
                REQUEST_MODEL: model,
            }
        self._begin(name, attributes)

    def on_end(self, result: observation.Result | None, error: BaseException | None) -> None:
        """End the spans, with the result on the outermost one and in the metrics."""
        if error is not None and len(self.open) > self._above_step:
            self.open[-1].mark_failed(type(error).__name__)
        self._close(1)
        try:
            match result:
                case Run():
                    self._run_ended(result)
                case ModelCall():
                    error = None  # the call's outcome already records the failure
                    self._call_ended(result)
                case CritiqueResult():
                    self._draft_ended(result)
                case Screening():
                    counts = {"rounds": result.rounds, "graded": result.grades, "kept": result.kept}
                    self.open[0].set_attributes({"masis.outcome": result.outcome})
                    self.open[0].set_attributes(
                        {f"masis.{name}": len(items) for name, items in counts.items()}
                    )
                    if result.outcome == "error":
                        self.open[0].mark_failed("error")
        finally:
            self.open[0].end(error)

    def _run_ended(self, run: Run) -> None:
        assert isinstance(self.start, observation.AuditStart)
        top = self.open[0]
        top.set_attributes({name: attrgetter(place)(run) for name, place in OF_RUN.items()})
        top.set_attributes(
            {
                "masis.review_reasons": list(
                    dict.fromkeys(reason.code for reason in run.review_reasons)
                ),
                INPUT_TOKENS: run.usage.prompt_tokens or None,
                OUTPUT_TOKENS: run.usage.completion_tokens or None,
                "masis.final_answer": run.final_answer if self.spans.texts else None,
            }
        )
        if run.termination_reason == "error":
            codes = [warning.code for warning in run.warnings if warning.code is not None]
            top.mark_failed(codes[-1] if codes else "error")
        self.spans.instruments.record_run(run_metrics.of_run(run), run.models, self.start.operation)

    def _call_ended(self, call: ModelCall) -> None:
        assert isinstance(self.start, observation.CallStart)
        top, asked = self.open[0], _conventional(self.start)
        top.set_attributes({name: attrgetter(place)(call) for name, place in OF_CALL.items()})
        top.set_attributes(
            {
                "gen_ai.usage.cache_read.input_tokens": call.cached_tokens or None,
                "gen_ai.output.type": "text" if call.mode == "text" else "json",
            }
        )
        if self.reply and self.spans.texts:
            top.set_attributes({"gen_ai.output.messages": _messages("assistant", self.reply)})
        if call.outcome != "answered":
            top.mark_failed(call.outcome)
        if call.source == "model":
            answered = {RESPONSE_MODEL: call.answered_by} if call.answered_by else {}
            self.spans.instruments.call(call, {**asked, **answered})

    def _draft_ended(self, result: CritiqueResult) -> None:
        found = run_metrics.of_draft(result)
        self.open[0].set_attributes(
            {
                "masis.is_valid": result.is_valid,
                "masis.issues": len(result.issues),
                "masis.hallucination": found.hallucination,
                "masis.confidence": result.confidence,
                "masis.claims": found.claims,
                "masis.revised": result.revised_draft is not None,
                "masis.unscored": len(result.unscored),
            }
        )
        self.spans.instruments.record(metric_catalogue.of_critique(found), "critique_draft", {})


def _conventional(start: observation.CallStart) -> dict[str, Any]:
    return {OPERATION: "chat", PROVIDER: provider_name(start.provider), REQUEST_MODEL: start.model}


def _of_call(start: observation.CallStart) -> dict[str, Any]:
    return _conventional(start) | {
        "gen_ai.request.max_tokens": start.max_tokens,
        "gen_ai.request.temperature": start.temperature,
        "gen_ai.prompt.name": start.prompt,
        "masis.role": start.role,
        "masis.step": start.step,
        "masis.iteration": start.iteration,
    }


def _messages(role: str, text: str) -> str:
    """Return one message in the JSON form of the conventions."""
    return json.dumps(
        [{"role": role, "parts": [{"type": "text", "content": text}]}], ensure_ascii=False
    )


class CurrentSpan:
    """A span that is the current one from its creation to its end."""

    def __init__(self, tracer: Tracer, name: str, attributes: Attributes, kind: SpanKind) -> None:
        self.span = tracer.start_span(name, kind=kind, attributes=dict(span_attributes(attributes)))
        # A token can only be detached in the context that it was attached in, so a span ends on the
        # thread that it started on.
        self._token = context.attach(trace.set_span_in_context(self.span))

    def set_attributes(self, attributes: Attributes) -> None:
        """Add attributes, leaving out unknown values."""
        self.span.set_attributes(dict(span_attributes(attributes)))

    def mark_failed(self, code: str) -> None:
        """Mark the span as failed."""
        self.span.set_status(Status(StatusCode.ERROR, code))
        self.span.set_attribute(ERROR, code)

    def end(self, error: BaseException | None = None) -> None:
        """End the span and make the previous one current again."""
        if error is not None:
            self.mark_failed(type(error).__name__)
        context.detach(self._token)
        self.span.end()


def span_attributes(
    attributes: Attributes, prefix: str = ""
) -> Iterator[tuple[str, str | bool | int | float | list[str]]]:
    """Yield attributes in the flat form that OpenTelemetry accepts, without unknown values."""
    for name, value in attributes.items():
        if isinstance(value, Mapping):
            yield from span_attributes(value, f"{prefix}{name}.")
        elif isinstance(value, list | tuple):
            yield f"{prefix}{name}", [str(item) for item in value]
        elif isinstance(value, str | bool | int | float):
            yield f"{prefix}{name}", value


def place() -> dict[str, str]:
    """Return the ids of the current span for a log record (``masis/observers/log_records.py``)."""
    here = trace.get_current_span().get_span_context()
    return (
        # Hexadecimal with leading zeros, as in the W3C Trace Context header.
        {"trace_id": f"{here.trace_id:032x}", "span_id": f"{here.span_id:016x}"}
        if here.is_valid
        else {}
    )


class Instruments:
    """One instrument per metric of ``masis/audit/measures/metric_catalogue.py``. Thread-safe."""

    def __init__(self, meter: Meter) -> None:
        self._made: dict[str, Any] = {}
        for metric in metric_catalogue.METRICS:
            about = (metric.name, metric.unit, metric.description)
            if metric.kind == "counter":
                self._made[metric.name] = meter.create_counter(*about)
            else:
                self._made[metric.name] = meter.create_histogram(
                    *about, explicit_bucket_boundaries_advisory=metric.bounds
                )

    def record_run(
        self, found: run_metrics.RunMeasures, models: Mapping[str, str], operation: str
    ) -> None:
        """Record a run, and for audits also the metrics of the original answer."""
        self.record(metric_catalogue.of_run(found), operation, models)
        if operation == "audit":
            self.record(metric_catalogue.of_critique(found.critique), operation, models)

    def record(
        self, values: Iterator[metric_catalogue.Recorded], operation: str, models: Mapping[str, str]
    ) -> None:
        """Record values with the model of the role they belong to: reviser, evaluator, or else
        critic.
        """
        for name, value in values:
            role = next(
                (role for role in ("reviser", "evaluator") if name.startswith(f"masis.{role}.")),
                "critic",
            )
            filed = {"masis.operation": operation}
            self._made[name].record(
                value, {**filed, "masis.model": models[role]} if role in models else filed
            )

    def call(self, call: ModelCall, conventional: Attributes) -> None:
        """Record a model call with the attributes that the conventions require."""
        failed = {} if call.outcome == "answered" else {ERROR: call.outcome}
        attributes = {**conventional, "masis.role": call.role}
        self._made[metric_catalogue.CALL_DURATION.name].record(
            call.ms / 1000, {**attributes, **failed}
        )
        for kind, tokens in (("input", call.prompt_tokens), ("output", call.completion_tokens)):
            if tokens:
                of_kind = {**attributes, "gen_ai.token.type": kind}
                self._made[metric_catalogue.CALL_TOKENS.name].record(tokens, of_kind)
                if call.role in ROLES:
                    self._made[metric_catalogue.LOOP_TOKENS.name].add(tokens, of_kind)
        if call.cost_usd is not None:
            self._made[metric_catalogue.COST.name].add(call.cost_usd, attributes)

"""Spans: what is under way as OpenTelemetry sees it, told by ``masis.watching``.

    caller's span > invoke_workflow audit > iteration > invoke_agent critic > chat gpt-4o

Each span is the current one while its work is done, on the thread that does it and those that it starts, so that spans
of others (an HTTP client's, a logger's) find their place. What a run found goes onto its span; a step that failed, a
call without an answer and a run that ended by error have the status ERROR with a code, never with a message, which may
quote a text.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextvars import Token
from typing import Any

from opentelemetry import context, trace
from opentelemetry.context import Context
from opentelemetry.metrics import MeterProvider, get_meter_provider
from opentelemetry.trace import Span, SpanKind, Status, StatusCode, Tracer, TracerProvider

from masis import version, watching
from masis.integrations.telemetry import names
from masis.integrations.telemetry.instruments import Instruments
from masis.schema.calls import ModelCall
from masis.schema.drafts import CritiqueResult
from masis.schema.run import Event, Run
from masis.schema.screening import Screening, ScreeningEvent
from masis.steps import measures

SCOPE = "masis"
LONGEST_ID = 200
Value = str | bool | int | float | list[str]


class Spans:
    """The watcher that makes spans and records metrics."""

    def __init__(self, tracers: TracerProvider | None, meters: MeterProvider | None, *, texts: bool = False) -> None:
        self.tracer = (tracers or trace.get_tracer_provider()).get_tracer(SCOPE, version.APP)
        self.instruments = Instruments((meters or get_meter_provider()).get_meter(SCOPE, version.APP))
        self.texts = texts

    def begins(self, what: watching.Begins) -> watching.Watch:
        """A span begins, and is the current one until it has ended."""
        match what:
            case watching.AuditBegins():
                return _Audit(self, what)
            case watching.CallBegins():
                return _Call(self, what)
            case watching.DraftBegins():
                return _Draft(self, what)
            case watching.ScreeningBegins():
                return _Screening(self, what)


class _Current:
    """A span that is the current one from its making to its end."""

    def __init__(
        self, tracer: Tracer, name: str, attributes: Mapping[str, Any], kind: SpanKind = SpanKind.INTERNAL
    ) -> None:
        self.span: Span = tracer.start_span(name, kind=kind, attributes=dict(told(attributes)))
        self._token: Token[Context] | None = context.attach(trace.set_span_in_context(self.span))

    def put(self, attributes: Mapping[str, Any]) -> None:
        """More attributes; what is not known is left out."""
        self.span.set_attributes(dict(told(attributes)))

    def failed(self, code: str) -> None:
        """What the span is about did not succeed."""
        self.span.set_status(Status(StatusCode.ERROR, code))
        self.span.set_attribute(names.ERROR, code)

    def end(self, error: BaseException | None = None) -> None:
        """It is over, and the one before is current again."""
        if self._token is None:
            return
        if error is not None:
            self.failed(type(error).__name__)
        context.detach(self._token)
        self._token = None
        self.span.end()


def place() -> dict[str, str]:
    """The current span, for a line of the log (``masis/log_lines.py``)."""
    here = trace.get_current_span().get_span_context()
    return {"trace_id": f"{here.trace_id:032x}", "span_id": f"{here.span_id:016x}"} if here.is_valid else {}


def told(attributes: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Value]]:
    """Attributes as OpenTelemetry takes them: flat, and without what is not known."""
    for name, value in attributes.items():
        if isinstance(value, Mapping):
            yield from told(value, f"{prefix}{name}.")
        elif isinstance(value, list | tuple):
            yield f"{prefix}{name}", [str(each) for each in value]
        elif isinstance(value, str | bool | int | float):
            yield f"{prefix}{name}", value


def _workflow(name: str) -> tuple[str, dict[str, Any]]:
    return f"invoke_workflow {name}", {names.OPERATION: "invoke_workflow", names.WORKFLOW: name}


class _Audit:
    """A run, with its iterations and their steps."""

    def __init__(self, spans: Spans, what: watching.AuditBegins) -> None:
        self.spans, self.what = spans, what
        name, attributes = _workflow("audit")
        self.run = _Current(spans.tracer, name, {**attributes, "masis.operation": what.operation})
        if spans.texts and what.case is not None:
            self.run.put({"masis.question": what.case.query, "masis.answer": what.case.answer})
        self.iteration: _Current | None = None
        self.step: _Current | None = None
        self.models: dict[str, str] = {}
        self.number: int | None = None

    def told(self, event: watching.Told) -> None:
        if not isinstance(event, Event):
            return
        match event.kind:
            case "run_started":
                self._run_started(event)
            case "step_started":
                self._step_started(event)
            case "step_finished":
                self._step_finished(event)
            case "call_retried" | "call_repaired":
                self._here.span.add_event(event.kind, dict(told(event.data)))
            case "warning":
                self._warning(event)
            case "iteration_finished":
                self._iteration_finished(event)

    @property
    def _here(self) -> _Current:
        return self.step or self.iteration or self.run

    def _run_started(self, event: Event) -> None:
        self.models = dict(event.data.get("models", {}))
        self.run.put(
            {
                "masis.run.id": event.run_id,
                "masis.case.id": event.case_id[:LONGEST_ID],
                "masis.model": self.models,
                "masis.resumed_after": event.data.get("resumed_after") or None,
            }
        )

    def _step_started(self, event: Event) -> None:
        self._end_step()
        tracer, step = self.spans.tracer, str(event.step)
        if event.iteration is not None and event.iteration != self.number:
            self._end_iteration()
            self.iteration = _Current(tracer, "iteration", {"masis.iteration": event.iteration})
            self.number = event.iteration
        role = names.ROLE_OF_STEP.get(step)
        asked = names.asked(self.models.get(role, "")) if role else None
        attributes = {
            "masis.step": step,
            "masis.role": role,
            "masis.iteration": event.iteration,
            "masis.model": self.models.get(role) if role else None,
        }
        name = step
        if role and asked:
            name = f"invoke_agent {role}"
            attributes |= {
                names.OPERATION: "invoke_agent",
                names.AGENT: role,
                names.PROVIDER: asked.provider,
                names.REQUEST_MODEL: asked.model,
            }
        self.step = _Current(tracer, name, attributes)

    def _step_finished(self, event: Event) -> None:
        """What the step tells (the specs' "Telemetry Emitted"): as an event with their fields, and as attributes."""
        if self.step is not None:
            node = str(event.data.get("node", event.step))
            fields = dict(told(event.data))
            self.step.span.add_event(node, fields)
            self.step.put({f"masis.{node}.{name}": value for name, value in fields.items() if name != "node"})
        self._end_step()

    def _warning(self, event: Event) -> None:
        code = event.data.get("code")
        here = self._here
        here.span.add_event("warning", {"masis.code": str(code)} if code else {})
        if code and event.step is not None:
            here.failed(str(code))

    def _iteration_finished(self, event: Event) -> None:
        self._end_step()
        if self.iteration is not None:
            self.iteration.put({f"masis.{name}": value for name, value in event.data.items()})
        self._end_iteration()

    def _end_step(self) -> None:
        if self.step is not None:
            self.step.end()
            self.step = None

    def _end_iteration(self) -> None:
        if self.iteration is not None:
            self.iteration.end()
            self.iteration, self.number = None, None

    def ended(self, result: watching.Result | None, error: BaseException | None) -> None:
        if error is not None and self.step is not None:
            self.step.failed(type(error).__name__)
        self._end_step()
        self._end_iteration()
        try:
            if isinstance(result, Run):
                self._result(result)
        finally:
            self.run.end(error)

    def _result(self, run: Run) -> None:
        self.run.put(
            {
                "masis.case.digest": run.case_digest,
                "masis.total_iterations": run.total_iterations,
                "masis.termination_reason": run.termination_reason,
                "masis.converged": run.converged,
                "masis.needs_review": run.needs_review,
                "masis.review_reasons": list(dict.fromkeys(reason.code for reason in run.review_reasons)),
                "masis.final_quality_score": run.final_quality_score,
                "masis.improvement_percentage": run.improvement_percentage,
                "masis.calls": run.usage.calls,
                "masis.cost_usd": run.usage.cost_usd,
                names.INPUT_TOKENS: run.usage.prompt_tokens or None,
                names.OUTPUT_TOKENS: run.usage.completion_tokens or None,
            }
        )
        if self.spans.texts:
            self.run.put({"masis.final_answer": run.final_answer})
        if run.termination_reason == "error":
            codes = [warning.code for warning in run.warnings if warning.code is not None]
            self.run.failed(codes[-1] if codes else "error")
        self.spans.instruments.run(measures.of_run(run), run.models, self.what.operation)


class _Call:
    """A call to a model, with all its tries."""

    def __init__(self, spans: Spans, what: watching.CallBegins) -> None:
        self.spans, self.what = spans, what
        self.conventional: dict[str, Any] = {
            names.OPERATION: "chat",
            names.PROVIDER: names.provider_name(what.provider),
            names.REQUEST_MODEL: what.model,
        }
        attributes = self.conventional | {
            names.MAX_TOKENS: what.max_tokens,
            names.TEMPERATURE: what.temperature,
            names.PROMPT_NAME: what.prompt,
            "masis.role": what.role,
            "masis.step": what.step,
            "masis.iteration": what.iteration,
        }
        self.call = _Current(spans.tracer, f"chat {what.model}", attributes, SpanKind.CLIENT)
        self.replies: list[str] = []
        if spans.texts:
            self.call.put(
                {
                    names.SYSTEM_INSTRUCTIONS: json.dumps([{"type": "text", "content": what.system}]),
                    names.INPUT_MESSAGES: _messages("user", what.question),
                }
            )

    def told(self, event: watching.Told) -> None:
        if self.spans.texts and isinstance(event, watching.Replied):
            self.replies.append(event.text)

    def ended(self, result: watching.Result | None, error: BaseException | None) -> None:
        try:
            if isinstance(result, ModelCall):
                self._result(result)
                error = None  # that the call failed is in its outcome
        finally:
            self.call.end(error)

    def _result(self, call: ModelCall) -> None:
        if call.answered_by:
            self.conventional[names.RESPONSE_MODEL] = call.answered_by
        self.call.put(
            {
                names.RESPONSE_MODEL: call.answered_by,
                names.INPUT_TOKENS: call.prompt_tokens,
                names.OUTPUT_TOKENS: call.completion_tokens,
                names.CACHED_TOKENS: call.cached_tokens or None,
                names.OUTPUT_TYPE: "text" if call.mode == "text" else "json",
                "masis.outcome": call.outcome,
                "masis.tries": call.tries,
                "masis.mode": call.mode,
                "masis.cost_usd": call.cost_usd,
            }
        )
        if self.replies:
            self.call.put({names.OUTPUT_MESSAGES: _messages("assistant", self.replies[-1])})
        if call.outcome != "answered":
            self.call.failed(call.outcome)
        self.spans.instruments.call(call, self.conventional)


def _messages(role: str, text: str) -> str:
    """One message as the conventions write it."""
    return json.dumps([{"role": role, "parts": [{"type": "text", "content": text}]}], ensure_ascii=False)


class _Draft:
    """The critique of a draft."""

    def __init__(self, spans: Spans, what: watching.DraftBegins) -> None:
        self.spans = spans
        name, attributes = _workflow("critique_draft")
        self.draft = _Current(spans.tracer, name, {**attributes, "masis.sources": what.sources})
        if spans.texts:
            self.draft.put({"masis.question": what.query, "masis.answer": what.draft})

    def told(self, event: watching.Told) -> None:
        """The audit within it has spans of its own."""

    def ended(self, result: watching.Result | None, error: BaseException | None) -> None:
        try:
            if isinstance(result, CritiqueResult):
                found = measures.of_draft(result)
                self.draft.put(
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
                self.spans.instruments.draft(found)
        finally:
            self.draft.end(error)


class _Screening:
    """A screening, with its rounds."""

    def __init__(self, spans: Spans, what: watching.ScreeningBegins) -> None:
        self.spans = spans
        name, attributes = _workflow("screen_abstracts")
        self.screening = _Current(spans.tracer, name, attributes)
        self.round: _Current | None = None

    def told(self, event: watching.Told) -> None:
        if not isinstance(event, ScreeningEvent):
            return
        match event.kind:
            case "screening_started":
                graders = event.data.get("graders", ())
                self.screening.put({"masis.screening.id": event.screening_id, "masis.graders": graders})
            case "round_started":
                self._end_round()
                self.round = _Current(self.spans.tracer, "round", {"masis.round": event.round})
            case "warning":
                (self.round or self.screening).span.add_event("warning")
            case "round_finished":
                if self.round is not None:
                    numbers = {name: value for name, value in event.data.items() if not isinstance(value, list | str)}
                    self.round.put({f"masis.{name}": value for name, value in numbers.items()})
                self._end_round()

    def _end_round(self) -> None:
        if self.round is not None:
            self.round.end()
            self.round = None

    def ended(self, result: watching.Result | None, error: BaseException | None) -> None:
        self._end_round()
        if isinstance(result, Screening):
            self.screening.put(
                {
                    "masis.outcome": result.outcome,
                    "masis.rounds": len(result.rounds),
                    "masis.graded": len(result.grades),
                    "masis.kept": len(result.kept),
                }
            )
            if result.outcome == "error":
                self.screening.failed("error")
        self.screening.end(error)

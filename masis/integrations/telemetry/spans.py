"""Spans: what is under way as OpenTelemetry sees it, as ``masis.observers.observation`` reports it.

    caller's span > invoke_workflow audit > iteration > invoke_agent critic > chat gpt-4o

Each span is the current one while its work is done, on the thread that does it and those that it starts, so that spans
of others (an HTTP client's, a logger's) find their place. What a run found goes onto its span; a step that failed, a
call without an answer and a run that ended by error have the status ERROR with a code, never with a message, which may
quote a text.
"""

from __future__ import annotations

from typing import Any

from opentelemetry import trace
from opentelemetry.metrics import MeterProvider, get_meter_provider
from opentelemetry.trace import TracerProvider

from masis import version
from masis.audit import run_metrics
from masis.integrations.telemetry import names
from masis.integrations.telemetry.calls import CallSpan, Instruments
from masis.integrations.telemetry.current import CurrentSpan, span_attributes
from masis.observers import observation
from masis.schema.drafts import CritiqueResult
from masis.schema.run import Event, Run
from masis.schema.screening import Screening, ScreeningEvent

SCOPE = "masis"
LONGEST_ID = 200


class Spans:
    """The observer that makes spans and records metrics."""

    def __init__(self, tracers: TracerProvider | None, meters: MeterProvider | None, *, texts: bool = False) -> None:
        self.tracer = (tracers or trace.get_tracer_provider()).get_tracer(SCOPE, version.APP)
        self.instruments = Instruments((meters or get_meter_provider()).get_meter(SCOPE, version.APP))
        self.texts = texts

    def on_start(self, start: observation.Start) -> observation.Listener:
        """Begin a span, which is the current one until it has ended."""
        match start:
            case observation.AuditStart():
                return _Audit(self, start)
            case observation.CallStart():
                return CallSpan(self.tracer, self.instruments, self.texts, start)
            case observation.DraftStart():
                return _Draft(self, start)
            case observation.ScreeningStart():
                return _Screening(self, start)


def _workflow(name: str) -> tuple[str, dict[str, Any]]:
    return f"invoke_workflow {name}", {names.OPERATION: "invoke_workflow", names.WORKFLOW: name}


class _Audit:
    """A run, with its iterations and their steps."""

    def __init__(self, spans: Spans, start: observation.AuditStart) -> None:
        self.spans, self.start = spans, start
        name, attributes = _workflow("audit")
        self.run = CurrentSpan(spans.tracer, name, {**attributes, "masis.operation": start.operation})
        if spans.texts and start.case is not None:
            self.run.put({"masis.question": start.case.query, "masis.answer": start.case.answer})
        self.iteration: CurrentSpan | None = None
        self.step: CurrentSpan | None = None
        self.models: dict[str, str] = {}
        self.number: int | None = None

    def on_event(self, event: observation.Event) -> None:
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
                self._here.span.add_event(event.kind, dict(span_attributes(event.data)))
            case "warning":
                self._warning(event)
            case "iteration_finished":
                self._iteration_finished(event)

    @property
    def _here(self) -> CurrentSpan:
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
            self.iteration = CurrentSpan(tracer, "iteration", {"masis.iteration": event.iteration})
            self.number = event.iteration
        role = names.ROLE_OF_STEP.get(step)
        model = names.model_name(self.models.get(role, "")) if role else None
        attributes = {
            "masis.step": step,
            "masis.role": role,
            "masis.iteration": event.iteration,
            "masis.model": self.models.get(role) if role else None,
        }
        name = step
        if role and model:
            name = f"invoke_agent {role}"
            attributes |= {
                names.OPERATION: "invoke_agent",
                names.AGENT: role,
                names.PROVIDER: model.provider,
                names.REQUEST_MODEL: model.model,
            }
        self.step = CurrentSpan(tracer, name, attributes)

    def _step_finished(self, event: Event) -> None:
        """What the step tells (the specs' "Telemetry Emitted"): as an event with their fields, and as attributes."""
        if self.step is not None:
            node = str(event.data.get("node", event.step))
            fields = dict(span_attributes(event.data))
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

    def on_end(self, result: observation.Result | None, error: BaseException | None) -> None:
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
                "masis.converged": run.ended_well,
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
        self.spans.instruments.run(run_metrics.of_run(run), run.models, self.start.operation)


class _Draft:
    """The critique of a draft."""

    def __init__(self, spans: Spans, start: observation.DraftStart) -> None:
        self.spans = spans
        name, attributes = _workflow("critique_draft")
        self.draft = CurrentSpan(spans.tracer, name, {**attributes, "masis.sources": start.sources})
        if spans.texts:
            self.draft.put({"masis.question": start.query, "masis.answer": start.draft})

    def on_event(self, event: observation.Event) -> None:
        """The audit within it has spans of its own."""

    def on_end(self, result: observation.Result | None, error: BaseException | None) -> None:
        try:
            if isinstance(result, CritiqueResult):
                found = run_metrics.of_draft(result)
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

    def __init__(self, spans: Spans, start: observation.ScreeningStart) -> None:
        self.spans = spans
        name, attributes = _workflow("screen_abstracts")
        self.screening = CurrentSpan(spans.tracer, name, attributes)
        self.round: CurrentSpan | None = None

    def on_event(self, event: observation.Event) -> None:
        if not isinstance(event, ScreeningEvent):
            return
        match event.kind:
            case "screening_started":
                graders = event.data.get("graders", ())
                self.screening.put({"masis.screening.id": event.screening_id, "masis.graders": graders})
            case "round_started":
                self._end_round()
                self.round = CurrentSpan(self.spans.tracer, "round", {"masis.round": event.round})
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

    def on_end(self, result: observation.Result | None, error: BaseException | None) -> None:
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

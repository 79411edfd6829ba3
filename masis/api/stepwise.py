"""Audits one answer at a time, for a host with a loop of its own: a graph, an agent, a notebook.

    # the case's answer: iteration 1
    first = stepwise.audit_once(case, settings)
    # the host's next draft: iteration 2
    again = stepwise.audit_once(case, settings, before=first, answer=better)
    # four scores for the last answer
    judged = stepwise.evaluate_once(case, again, settings)

A pass is an iteration of the loop, with the same roles and rules. The host decides who writes the
next answer and whether there is one. The result is a run that has grown by one pass and that a
workbench can store like any other.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import NamedTuple

from masis.api.roles import build_roles
from masis.audit import limits, loop
from masis.audit.context import AuditContext
from masis.audit.loop import AuditProgress
from masis.audit.output_validation import validate_revision
from masis.errors import MAX_ITERATIONS_WARNING, InputError
from masis.observers import observation
from masis.schema.audit import Critique, Draft, JudgedBy, Revision
from masis.schema.calls import Usage
from masis.schema.case import Case, Evidence
from masis.schema.run import Event, Iteration, Run, StepsDone
from masis.settings import Settings

HOST = JudgedBy(model="host", version="1")
"""The author of an answer or critique that came from outside."""

Listener = Callable[[Event], None]


def audit_once(
    case: Case,
    settings: Settings,
    *,
    before: Run | None = None,
    answer: str | None = None,
    critique: Critique | None = None,
    on_event: Listener | None = None,
    cancelled: Callable[[], bool] = lambda: False,
) -> Run:
    """Audit the case's answer, or the next answer after a run: citations, claims, critique.

    Nothing is revised, and no judge is asked. A step that fails is recorded and never raised.

    Args:
        case: The case.
        settings: The settings of the audit.
        before: The run so far, None for the first answer.
        answer: The next answer, if there is a run before it.
        critique: A critique from outside; no critic is asked then.
        on_event: Called with each event as it happens.
        cancelled: Returns whether to stop.

    Raises:
        InputError: The answer is empty, or the run is of another case.

    """
    iterations = _iterations(case, before)
    text = answer if before is not None else case.answer
    if text is None or not text.strip():
        raise InputError("is empty", hint="Write a draft before it is audited.", field="answer")
    if iterations:
        rewritten = Revision(
            revised_answer=text,
            changes_explanation="Rewritten outside of the audit.",
            updated_confidence=None,
            judged_by=HOST,
        )
        iterations = (*iterations[:-1], iterations[-1].model_copy(update={"revision": rewritten}))
    number = len(iterations) + 1
    steps = StepsDone(iteration_number=number, critique=critique) if critique else None
    one_pass = settings.model_copy(update={"max_iterations": number, "evaluate": "never"})
    progress = AuditProgress(iterations=iterations, steps=steps, rewritten=True)
    return _run_one_pass(case, one_pass, before, progress, on_event, cancelled)


def evaluate_once(
    case: Case,
    run: Run,
    settings: Settings,
    *,
    on_event: Listener | None = None,
    cancelled: Callable[[], bool] = lambda: False,
) -> Run:
    """Return the run with the judge's scores for its last answer, which replace earlier ones.

    Raises the errors of ``audit_once``.
    """
    iterations = _iterations(case, run)
    if not iterations:
        raise InputError(
            "has no iteration", hint="Audit an answer before it is judged.", field="run"
        )
    last = iterations[-1].model_copy(update={"evaluation": None, "revision": None})
    one_pass = settings.model_copy(
        update={"max_iterations": len(iterations), "evaluate": "final", "depth": "standard"}
    )
    return _run_one_pass(
        case, one_pass, run, AuditProgress(iterations=(*iterations[:-1], last)), on_event, cancelled
    )


def draft_once(query: str, evidence: Sequence[Evidence], settings: Settings) -> Draft:
    """Return a first answer from the evidence, with citations.

    Raises:
        StepError: The drafter failed.

    """
    roles = build_roles(settings)
    roles.control.budget.begin_loop(settings, loop.Clock().seconds)
    roles.control.calls.at("drafting", None)
    return roles.drafter.draft(query, evidence)


def revise_once(case: Case, run: Run, settings: Settings) -> Revision:
    """Return a better answer than the run's last, made from its issues, to be audited next.

    Raises:
        InputError: The run has no iteration, or is of another case.
        StepError: The reviser failed, or its answer does not pass the output validator.

    """
    iterations = _iterations(case, run)
    if not iterations:
        raise InputError(
            "has no iteration", hint="Audit an answer before it is revised.", field="run"
        )
    last, roles = iterations[-1], build_roles(settings)
    roles.control.budget.begin_loop(settings, loop.Clock().seconds)
    roles.control.calls.at("revision", last.iteration_number)
    context = AuditContext(
        case.query,
        limits.truncate_answer(last.answer, settings),
        limits.select_evidence(case.evidence, last.citation_audit, settings),
        last.citation_audit,
        last.claims,
        last.claim_report.missing,
        last.issues,
        last.iteration_number,
        case.reasoning_steps,
    )
    revision = validate_revision(
        roles.validator, roles.reviser.revise(context, last.critique, last.issues), context
    )
    return limits.append_unchecked_tail(revision, context.answer, last.answer)


class ExternalFindings(NamedTuple):
    """The citation problems that another critic found in an answer (MASIS-EVAL-P4)."""

    invalid_citations: tuple[str, ...] = ()
    uncited_claim_count: int = 0
    hallucination_detected: bool = False


UNNAMED = "(uncited sentence counted by the other critic)"


def with_external_findings(run: Run, findings: ExternalFindings) -> Run:
    """Return the run with another critic's findings added to its last answer's citation audit.

    The worse result of the two applies, so that a judge's score can't contradict that critic
    (MASIS-EVAL-P4, MASIS-EVAL-P5).
    """
    last = run.iterations[-1]
    audit = last.citation_audit
    additional = max(0, findings.uncited_claim_count - len(audit.uncited_claims))
    invalid = tuple(dict.fromkeys((*audit.invalid_citations, *findings.invalid_citations)))
    worse = audit.model_copy(
        update={
            "invalid_citations": invalid,
            "uncited_claims": (*audit.uncited_claims, *(UNNAMED,) * additional),
            "hallucination_detected": (
                audit.hallucination_detected or findings.hallucination_detected or bool(invalid)
            ),
        }
    )
    return run.model_copy(
        update={
            "iterations": (*run.iterations[:-1], last.model_copy(update={"citation_audit": worse}))
        }
    )


def _iterations(case: Case, run: Run | None) -> tuple[Iteration, ...]:
    if run is None:
        return ()
    if run.case_digest != case.digest():
        raise InputError(
            f"run {run.id!r} isn't an audit of case {case.id!r} with this content",
            hint="Audit this case from its first answer.",
            field="run",
        )
    return run.iterations


def _run_one_pass(
    case: Case,
    settings: Settings,
    before: Run | None,
    progress: AuditProgress,
    on_event: Listener | None,
    cancelled: Callable[[], bool],
) -> Run:
    """Continue from ``progress`` and stop after one pass.

    The warning about the limit of iterations appears once, not after each pass.
    """
    warnings = (
        tuple(warning for warning in before.warnings if warning.code != MAX_ITERATIONS_WARNING)
        if before
        else ()
    )
    work = loop.audit(
        case,
        build_roles(settings),
        settings,
        run_id=before.id if before else loop.new_run_id(),
        case_digest=case.digest(),
        cancelled=cancelled,
        progress=replace(progress, warnings=warnings),
    )
    finished = len(progress.iterations)
    run = observation.run_to_completion(
        work,
        on_event,
        observation.AuditStart(case, operation="pass"),
        reported=lambda run: _last_pass(run) if len(run.iterations) > finished else None,
    )
    return run.model_copy(update={"started_at": before.started_at}) if before else run


def _last_pass(run: Run) -> Run:
    """Return the run with its last pass only, so that observers don't count the earlier passes
    again.
    """
    last = run.iterations[-1]
    return run.model_copy(
        update={
            "iterations": (last,),
            "total_iterations": 1,
            "best": 0,
            "final_answer": last.answer,
            "final_quality_score": last.quality_score,
            "improvement_percentage": None,
            "usage": Usage.of(last.calls),
        }
    )

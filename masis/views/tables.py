"""Runs as a table: one row a run, an iteration, a claim, a reference or an issue."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, Literal, get_args

import pandas as pd

from masis.errors import InputError
from masis.schema.explain import kind_of
from masis.schema.run import Iteration, Run

_SEVERITIES = ("critical", "high", "medium", "low")

TableOf = Literal["runs", "iterations", "claims", "citations", "issues"]
Row = dict[str, Any]


def runs_to_pandas(
    runs: Iterable[Run] | Run, of: TableOf = "runs", *, index: Iterable[Any] | None = None
) -> pd.DataFrame:
    """Return runs as a data frame; ``start`` and ``end`` are offsets in ``answer`` of the table of iterations.

    Args:
        runs: The runs, or one.
        of: What a row is: ``runs``, ``iterations``, ``claims``, ``citations`` or ``issues`` (of every iteration;
            ``best`` marks those of the chosen answer).
        index: A label for each run, such as the ``index`` of the data frame that was audited: it is the table's index,
            so that ``frame.join(table)`` puts both together.

    Raises:
        InputError: There is no such table, ``runs`` holds something else, or ``index`` has another length.

    """
    if of not in _ROWS:
        raise InputError(f"{of!r} is no table", cure=f"There are: {', '.join(get_args(TableOf))}.", field="of")
    names, rows = _ROWS[of]
    listed = [runs] if isinstance(runs, Run) else list(runs)
    for place, run in enumerate(listed):
        if not isinstance(run, Run):
            raise InputError(
                f"is {kind_of(run)}, not a Run", cure="Give what an audit returned.", field=f"runs[{place}]"
            )
    labels = list(range(len(listed))) if index is None else list(index)
    if len(labels) != len(listed):
        raise InputError(f"has {len(labels):,} labels for {len(listed):,} runs", cure="Give one a run.", field="index")
    found = [(label, row) for label, run in zip(labels, listed, strict=True) for row in rows(run)]
    table = pd.DataFrame([row for _, row in found], columns=list(names))
    return table if index is None else table.set_axis(pd.Index([label for label, _ in found]), axis="index")


def _run(run: Run) -> Iterator[Row]:
    best = run.best_iteration
    evaluation = best.evaluation if best else None
    original = run.iterations[0] if run.iterations else None
    severities = [issue.severity for issue in original.issues] if original else []
    yield {
        "case_id": run.case_id,
        "run_id": run.id,
        "quality": run.final_quality_score,
        "original_quality": original.quality_score if original else None,
        "worst_severity": min(severities, key=_SEVERITIES.index, default=None),
        "confidence": best.critique.confidence if best else None,
        "overall": evaluation.overall_score if evaluation else None,
        "faithfulness": evaluation.faithfulness if evaluation else None,
        "iterations": run.total_iterations,
        "improvement_percentage": run.improvement_percentage,
        "termination_reason": run.termination_reason,
        "needs_review": run.needs_review,
        "review_reasons": " ".join(reason.code for reason in run.review_reasons),
        "claims": len(best.claims) if best else 0,
        "supported_claims": sum(check.verified for check in best.claims) if best else 0,
        "issues": len(best.issues) if best else 0,
        "cost_usd": run.usage.cost_usd,
        "final_answer": run.final_answer,
    }


def _place(run: Run, iteration: Iteration) -> Row:
    number = iteration.iteration_number
    return {"case_id": run.case_id, "run_id": run.id, "iteration": number, "best": iteration is run.best_iteration}


def _iterations(run: Run) -> Iterator[Row]:
    for each in run.iterations:
        yield {
            **_place(run, each),
            "quality": each.quality_score,
            "confidence": each.critique.confidence,
            "overall": each.evaluation.overall_score if each.evaluation else None,
            "improvement_delta": each.improvement_delta,
            "invalid_citations": len(each.citation_audit.invalid_citations),
            "uncited_claims": len(each.citation_audit.uncited_claims),
            "claims": len(each.claims),
            "issues": len(each.issues),
            "answer": each.answer,
        }


def _claims(run: Run) -> Iterator[Row]:
    for each in run.iterations:
        for check in each.claims:
            yield {
                **_place(run, each),
                "start": check.claim.start,
                "end": check.claim.end,
                "text": check.claim.text,
                "verdict": check.verdict,
                "support": check.support,
                "confidence": check.confidence,
                "sources": " ".join(check.sources),
                "judged_by": check.judged_by,
            }


def _citations(run: Run) -> Iterator[Row]:
    names = ("start", "end", "text", "reference", "evidence_id", "status", "resolved_by")
    for each in run.iterations:
        for citation in each.citation_audit.citations:
            yield _place(run, each) | {name: getattr(citation, name) for name in names}


def _issues(run: Run) -> Iterator[Row]:
    names = ("start", "end", "source", "type", "rule", "severity", "description", "reason", "suggestion")
    for each in run.iterations:
        for issue in each.issues:
            yield _place(run, each) | {name: getattr(issue, name) for name in names}


_PLACE = ("case_id", "run_id", "iteration", "best")
_SPAN = ("start", "end", "text")
_ROWS: dict[str, tuple[tuple[str, ...], Callable[[Run], Iterator[Row]]]] = {
    "runs": (
        (
            *("case_id", "run_id", "quality", "original_quality", "worst_severity", "confidence", "overall"),
            *("faithfulness", "iterations"),
            *("improvement_percentage", "termination_reason", "needs_review", "review_reasons", "claims"),
            *("supported_claims", "issues", "cost_usd", "final_answer"),
        ),
        _run,
    ),
    "iterations": (
        (
            *(*_PLACE, "quality", "confidence", "overall", "improvement_delta", "invalid_citations"),
            *("uncited_claims", "claims", "issues", "answer"),
        ),
        _iterations,
    ),
    "claims": ((*_PLACE, *_SPAN, "verdict", "support", "confidence", "sources", "judged_by"), _claims),
    "citations": ((*_PLACE, *_SPAN, "reference", "evidence_id", "status", "resolved_by"), _citations),
    "issues": (
        (*_PLACE, "start", "end", "source", "type", "rule", "severity", "description", "reason", "suggestion"),
        _issues,
    ),
}

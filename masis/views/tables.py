"""Converts runs to tables with one row per run, iteration, claim, citation or issue."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, Literal, NamedTuple, get_args

import pandas as pd

from masis.errors import InputError
from masis.schema.case import Severity
from masis.schema.explain import kind_of
from masis.schema.run import Iteration, Run
from masis.views.headline import headline, standing

TableOf = Literal["runs", "iterations", "claims", "citations", "issues"]
Row = dict[str, Any]
Getter = Callable[[Any], Any]


def runs_to_pandas(
    runs: Iterable[Run] | Run, of: TableOf = "runs", *, index: Iterable[Any] | None = None
) -> pd.DataFrame:
    """Convert runs to a data frame.

    In the table of claims, citations or issues, ``start`` and ``end`` are offsets in ``answer`` of
    the table of iterations.

    Args:
        runs: One run or several.
        of: The kind of row: ``runs`` (figures of the original answer; ``revised_quality`` and
            ``final_answer`` concern the revision, as their names say), or ``iterations``,
            ``claims``, ``citations`` and ``issues`` (of every iteration; ``best`` marks those of
            the chosen answer).
        index: A label for each run, such as the ``index`` of the audited data frame. It becomes the
            table's index, so that ``frame.join(table)`` combines both.

    Raises:
        InputError: If there is no such table, ``runs`` contains something else, or ``index`` has a
            different length.

    """
    if of not in get_args(TableOf):
        raise InputError(
            f"{of!r} is not a table",
            hint=f"Choose one of: {', '.join(get_args(TableOf))}.",
            field="of",
        )
    listed = [runs] if isinstance(runs, Run) else list(runs)
    for place, run in enumerate(listed):
        if not isinstance(run, Run):
            raise InputError(
                f"is {kind_of(run)}, not a Run",
                hint=(
                    "Pass the result of masis.audit_many or Desk.audit; masis.audit already returns"
                    " a table."
                ),
                field=f"runs[{place}]",
            )
    labels = list(range(len(listed))) if index is None else list(index)
    if len(labels) != len(listed):
        raise InputError(
            f"has {len(labels):,} labels for {len(listed):,} runs",
            hint="Pass one label per run.",
            field="index",
        )
    if of == "runs":
        records = [{name: read(run) for name, read in _RUN.items()} for run in listed]
        names = list(_RUN)
    else:
        table = _TABLES[of]
        rows = [list(table.rows(run)) for run in listed]
        records, names = [row for run_rows in rows for row in run_rows], [*_PLACE, *table.columns]
        labels = [label for label, run_rows in zip(labels, rows, strict=True) for _ in run_rows]
    frame = pd.DataFrame(records, columns=names)
    # Without this a column that contains only None would have the dtype object.
    frame = frame.astype(dict.fromkeys(_FIGURES & set(names), float))
    return frame if index is None else frame.set_axis(pd.Index(labels), axis="index")


def _table_columns_by_path(*names: str, **others: str | Getter) -> dict[str, Getter]:
    """Return how to read columns: by field name, by a dotted path, or by a function."""
    every: dict[str, str | Getter] = {**dict(zip(names, names, strict=True)), **others}
    return {
        name: partial(_value_of_path, how.split(".")) if isinstance(how, str) else how
        for name, how in every.items()
    }


def _value_of_path(path: Sequence[str], record: Any) -> Any:
    for name in path:
        record = None if record is None else getattr(record, name)
    return record


_RUN = {
    **_table_columns_by_path(
        "case_id", standing=standing, headline=lambda run: headline(run).text, run_id="id"
    ),
    **_table_columns_by_path(
        "quality", "revised_quality", confidence="original.critique.confidence"
    ),
    **_table_columns_by_path(
        worst_severity=lambda run: min(
            (issue.severity for issue in run.original.issues) if run.original else (),
            key=get_args(Severity).index,
            default=None,
        )
    ),
    **_table_columns_by_path(
        overall="original.evaluation.overall_score", faithfulness="original.evaluation.faithfulness"
    ),
    **_table_columns_by_path(iterations="total_iterations"),
    **_table_columns_by_path("improvement_percentage", "termination_reason", "needs_review"),
    **_table_columns_by_path(
        review_reasons=lambda run: " ".join(reason.code for reason in run.review_reasons),
        claims=lambda run: len(run.original.claims) if run.original else 0,
        supported_claims=lambda run: (
            sum(check.verified for check in run.original.claims) if run.original else 0
        ),
        issues=lambda run: len(run.original.issues) if run.original else 0,
        invalid_citations=lambda run: (
            len(run.original.citation_audit.invalid_citations) if run.original else 0
        ),
        uncited_claims=lambda run: (
            len(run.original.citation_audit.uncited_claims) if run.original else 0
        ),
        seconds=lambda run: (
            sum(sum(iteration.step_ms.values()) for iteration in run.iterations) / 1000
        ),
        cost_usd="usage.cost_usd",
    ),
    **_table_columns_by_path("final_answer"),
}
_ITERATION = {
    **_table_columns_by_path(
        quality="quality_score",
        confidence="critique.confidence",
        overall="evaluation.overall_score",
    ),
    **_table_columns_by_path("improvement_delta"),
    **_table_columns_by_path(
        invalid_citations=lambda iteration: len(iteration.citation_audit.invalid_citations),
        uncited_claims=lambda iteration: len(iteration.citation_audit.uncited_claims),
        claims=lambda iteration: len(iteration.claims),
        issues=lambda iteration: len(iteration.issues),
    ),
    **_table_columns_by_path("answer"),
}
_CLAIM = {
    **_table_columns_by_path(start="claim.start", end="claim.end", text="claim.text"),
    **_table_columns_by_path(
        "verdict", "support", "confidence", sources=lambda check: " ".join(check.sources)
    ),
    **_table_columns_by_path("judged_by"),
}
_CITATION = _table_columns_by_path(
    "start", "end", "text", "reference", "evidence_id", "status", "resolved_by"
)
_ISSUE = _table_columns_by_path(
    "start", "end", "source", "type", "rule", "severity", "description", "reason", "suggestion"
)
_FIGURES = {
    *("quality", "revised_quality", "confidence", "overall", "faithfulness", "support"),
    *("improvement_percentage", "improvement_delta", "seconds", "cost_usd"),
}
_PLACE = ("case_id", "run_id", "iteration", "best")


class _RunTable(NamedTuple):
    """A table over iterations: its columns, and a function that returns an iteration's rows."""

    columns: Mapping[str, Getter]
    of: Callable[[Iteration], Iterable[Any]]

    def rows(self, run: Run) -> Iterator[Row]:
        for iteration in run.iterations:
            place = (
                run.case_id,
                run.id,
                iteration.iteration_number,
                iteration is run.best_iteration,
            )
            for record in self.of(iteration):
                yield {
                    **dict(zip(_PLACE, place, strict=True)),
                    **{name: read(record) for name, read in self.columns.items()},
                }


_TABLES = {
    "iterations": _RunTable(_ITERATION, lambda iteration: (iteration,)),
    "claims": _RunTable(_CLAIM, lambda iteration: iteration.claims),
    "citations": _RunTable(_CITATION, lambda iteration: iteration.citation_audit.citations),
    "issues": _RunTable(_ISSUE, lambda iteration: iteration.issues),
}

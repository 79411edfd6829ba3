"""Measures the auditor on labeled data: `run_bench` measures a file, `render` formats the report.

A file is recognized by the keys of its first row. It is split by question and document into one
half for development and one for the reported metrics. Baselines are measured on the same rows.
For our own cases, complete audits are measured too. A file of runs is measured directly, against
the targets of the loop.
"""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from masis.bench import tasks
from masis.bench.metrics import Prediction, compute_metrics
from masis.bench.outcomes import TargetOutcome, target_outcomes
from masis.bench.report import BenchReport, JudgeMetrics, SetReading, render
from masis.bench.rows import BenchRow, Half, group_keys, half_of, in_half
from masis.bench.tasks import (
    TASKS,
    AssessedRow,
    Task,
    audit_offline,
    count_exemptions,
    is_run,
    predict_fabricated,
    read_runs,
)
from masis.errors import InputError
from masis.offline.matching.key_points import VERSION
from masis.schema.run import Run

__all__ = ["BenchReport", "read_rows", "render", "run_bench"]

ALTERED = frozenset({"altered_number", "altered_date", "swapped_name", "negation"})
"""The planted changes that count as altered facts in the demo cases (`data/README.md`)."""
_SETS = ", ".join(task.name for task in TASKS)
_UNCITED_RULE = (
    "claims without a valid reference count as not attributed, because the citation engine"
    " decides them without weighing evidence"
)

Positive = Callable[[BenchRow], bool]
Judge = Callable[[AssessedRow], tasks.Judgement]
RawRow = tuple[str, int, Mapping[str, Any]]
"""A row of a file: the file, the line and the values."""


def run_bench(
    path: Path,
    *,
    half: Half = "report",
    bootstrap: int = 1000,
    seed: int = 20250101,
    runs: Path | None = None,
) -> BenchReport:
    """Measure the auditor and two baselines on a file, or on all `.jsonl` files of a folder
    together.

    The 95% intervals come from `bootstrap` resamples of the groups; equal seeds give equal reports.

    Args:
        path: A file of labeled rows, or of runs, of which only the results of whole audits are
            measured.
        half: The half of the rows to measure.
        bootstrap: The number of resamples.
        seed: The seed of the resamples.
        runs: Audits of the cases (`masis audit --out`), measured instead of new offline audits.

    Raises:
        InputError: The file isn't of a known set, or a row lacks fields of its set; the error names
            file and line.

    """
    raw_rows = list(_read_bench_files(path))
    if raw_rows and is_run(raw_rows[0][2]):
        return _report_runs(read_runs(raw_rows), bootstrap, seed)
    return _Benchmark(
        _recognize_task(raw_rows, path),
        raw_rows,
        half,
        bootstrap,
        seed,
        read_runs(_read_bench_files(runs)) if runs else None,
    ).report()


def _report_runs(runs: Sequence[Run], bootstrap: int, seed: int) -> BenchReport:
    """Measure a file of runs: without labels, only the results and times of the loop."""
    rules = ", ".join(sorted({run.versions.offline_rules or "none" for run in runs}))
    return BenchReport(
        task="Runs",
        half="all",
        bootstrap=bootstrap,
        seed=seed,
        rules=rules,
        readings=(),
        counts={},
        outcomes=target_outcomes(runs, (), bootstrap, seed),
    )


def _read_bench_files(path: Path) -> Iterator[RawRow]:
    files = sorted(path.glob("*.jsonl")) if path.is_dir() else [path]
    for file in files:
        with file.open(encoding="utf-8") as lines:
            for number, line in enumerate(lines, 1):
                if not line.strip():
                    continue
                row, problem = None, "is not an object"
                try:
                    row = json.loads(line)
                except ValueError as error:
                    problem = f"is not JSON ({error})"
                if not isinstance(row, dict):
                    raise InputError(
                        problem, hint="Write one JSON object per line.", file=file.name, line=number
                    )
                yield file.name, number, row


def _recognize_task(raw_rows: Sequence[RawRow], path: Path) -> Task:
    if not raw_rows:
        raise InputError("has no rows", hint=f"Give a file of {_SETS}.", file=path.name)
    file, _, row = raw_rows[0]
    for task in TASKS:
        if task.recognizes(row):
            return task
    raise InputError(
        "has no labels that can be measured", hint=f"Give a file of {_SETS}.", file=file, line=1
    )


class _Benchmark:
    """One measurement: the rows of the half, and the readings of its task."""

    def __init__(
        self,
        task: Task,
        raw_rows: Sequence[RawRow],
        half: Half,
        bootstrap: int,
        seed: int,
        runs: Sequence[Run] | None,
    ) -> None:
        self.task, self.half, self.bootstrap, self.seed = task, half, bootstrap, seed
        all_rows = [row for raw_row in raw_rows for row in _task_rows(task, *raw_row)]
        self.rows = tasks.assess_rows(in_half(all_rows, half))
        self.fit = [row for row, _ in in_half(all_rows, "fit")]
        self.runs = runs
        self.cases = _citation_cases(task, [row for _, _, row in raw_rows], half)

    def report(self) -> BenchReport:
        return BenchReport(
            task=self.task.name,
            half=self.half,
            bootstrap=self.bootstrap,
            seed=self.seed,
            rules=VERSION,
            readings=tuple(self._readings()),
            counts=tasks.count_decisions(self.rows)
            | (count_exemptions(self.cases) if self.task is tasks.EXPERTQA else {}),
            notes=(_UNCITED_RULE,)
            if any(assessed.row.cites_nothing for assessed in self.rows)
            else (),
            outcomes=self._outcomes(),
        )

    def _outcomes(self) -> tuple[TargetOutcome, ...]:
        if self.task is not tasks.DEMO_GOLD:
            return ()
        case_ids = {str(case["id"]) for case in self.cases}
        runs = (
            audit_offline(self.cases)
            if self.runs is None
            else [run for run in self.runs if run.case_id in case_ids]
        )
        return target_outcomes(runs, self.cases, self.bootstrap, self.seed)

    def _readings(self) -> Iterator[SetReading]:
        rows, meaning = self.rows, self.task.positive
        yield self._reading(
            "claims", meaning, rows, lambda row: row.positive, tasks.judge_by_auditor
        )
        if any(assessed.row.cites_nothing for assessed in rows):
            name = "the same, with claims without a valid reference as abstentions"
            yield self._reading(
                name,
                meaning,
                rows,
                lambda row: row.positive,
                partial(tasks.judge_by_auditor, use_citation_rule=False),
            )
        if any(assessed.row.strict is not None for assessed in rows):
            meaning = "not supported at all, against the rest"
            yield self._reading(
                "strict reading",
                meaning,
                rows,
                lambda row: bool(row.strict),
                tasks.judge_by_auditor,
            )
        if self.task is tasks.DEMO_GOLD:
            meaning = "a number, date, name or sign altered; against clean claims"
            altered_or_clean = [
                assessed
                for assessed in rows
                if _is_altered_row(assessed.row) or _is_clean(assessed.row)
            ]
            yield self._reading(
                "altered facts",
                meaning,
                altered_or_clean,
                _is_altered_row,
                tasks.judge_contradictions,
            )
            predictions = predict_fabricated(self.cases)
            always_positive = [row._replace(predicted=True, score=0.5) for row in predictions]
            judges = {"citation engine": predictions, "always positive": always_positive}
            yield self._measure("fabricated references", "names no evidence of the case", judges)

    def _reading(
        self,
        name: str,
        meaning: str,
        rows: Sequence[AssessedRow],
        positive: Positive,
        auditor: Judge,
    ) -> SetReading:
        """Measure the auditor and its baselines on these rows."""

        def predicted(judge_function: Judge) -> list[Prediction]:
            return [
                Prediction(positive(assessed.row), *judge_function(assessed), assessed.group)
                for assessed in rows
            ]

        def overlap(overlap_share: tasks.Overlap) -> Judge:
            threshold = tasks.overlap_threshold(self.fit, positive, overlap_share)
            return lambda assessed: ((value := overlap_share(assessed.row)) >= threshold, value)

        judges = {"auditor": auditor, "always positive": tasks.judge_always_positive}
        judges |= {
            baseline: overlap(overlap_share) for baseline, overlap_share in tasks.OVERLAPS.items()
        }
        return self._measure(
            name,
            meaning,
            {
                judge_name: predicted(judge_function)
                for judge_name, judge_function in judges.items()
            },
        )

    def _measure(
        self, name: str, meaning: str, judges: Mapping[str, Sequence[Prediction]]
    ) -> SetReading:
        rows = next(iter(judges.values()))
        measured = [
            JudgeMetrics(judge, compute_metrics(predictions, self.bootstrap, self.seed))
            for judge, predictions in judges.items()
        ]
        positives, groups = sum(row.truth for row in rows), len({row.group for row in rows})
        return SetReading(name, meaning, len(rows), positives, groups, tuple(measured))


def _is_altered_row(row: BenchRow) -> bool:
    return row.planted in ALTERED


def _is_clean(row: BenchRow) -> bool:
    return not row.positive and row.planted is None


def _task_rows(task: Task, file: str, line: int, row: Mapping[str, Any]) -> list[BenchRow]:
    try:
        return list(task.rows(row))
    except (KeyError, TypeError, AttributeError) as error:
        problem = f"lacks a field that rows of {task.name} need ({type(error).__name__}: {error})"
        raise InputError(
            problem, hint="Leave the row out, or complete it.", file=file, line=line
        ) from error


def read_rows(path: Path, half: Half) -> tuple[Task, list[tuple[BenchRow, str]]]:
    """Read the labeled claims of the half from a file or folder, each with its group.

    Raises:
        InputError: The file isn't of a known set, or a row lacks fields.

    """
    raw_rows = list(_read_bench_files(path))
    task = _recognize_task(raw_rows, path)
    return task, in_half([row for raw_row in raw_rows for row in _task_rows(task, *raw_row)], half)


def _citation_cases(
    task: Task, rows: Sequence[Mapping[str, Any]], half: Half
) -> list[Mapping[str, Any]]:
    """Return the cases of the half for measuring the citation engine.

    The demo cases are split by id, ExpertQA by question and evidence.
    """
    if task is tasks.DEMO_GOLD:
        keys = [(str(row["id"]),) for row in rows]
    elif task is tasks.EXPERTQA:
        keys = [
            (row["query"], *(chunk["text"] for chunk in row["evidence"] if chunk.get("text")))
            for row in rows
        ]
    else:
        return []
    return [
        row
        for row, group in zip(rows, group_keys(keys), strict=True)
        if half in ("all", half_of(group))
    ]

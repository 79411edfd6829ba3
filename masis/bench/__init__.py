"""Measures the auditor on labelled data: `run_bench` measures a file, `render` formats the report.

A file is recognised by the keys of its first row. It is split by question and document into a half to develop
on and one that metrics are reported on. Two baselines are measured on the same rows. Our own cases are audited
whole as well, and a file of runs is measured as it is: what the loop reaches beside its targets.
"""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from masis.bench import tasks
from masis.bench.metrics import Prediction, compute_metrics
from masis.bench.outcomes import Outcome, outcomes
from masis.bench.report import BenchReport, Measured, Reading, render
from masis.bench.rows import BenchRow, Half, groups, half_of, in_half
from masis.bench.tasks import TASKS, Task, audited, exemptions, fabricated, is_run, read_runs
from masis.errors import InputError
from masis.offline.matching.key_points import VERSION
from masis.schema.run import Run

__all__ = ["BenchReport", "read_rows", "render", "run_bench"]

ALTERED = frozenset({"altered_number", "altered_date", "swapped_name", "negation"})
"""What counts as an altered fact in the demo cases (`data/README.md`)."""
_SETS = ", ".join(task.name for task in TASKS)
_UNCITED_RULE = (
    "claims that cite nothing, or nothing there is, count as not attributed: the citation engine decides them, no "
    "evidence is weighed"
)

Positive = Callable[[BenchRow], bool]


def run_bench(
    path: Path, *, half: Half = "report", bootstrap: int = 1000, seed: int = 20250101, runs: Path | None = None
) -> BenchReport:
    """Measure the auditor and two baselines on a file (or on every `.jsonl` file of a folder together).

    The file holds labelled rows, or runs, of which only what whole audits reach is measured. `runs` are audits of the
    cases (`masis audit --out`), measured in place of offline audits made here. The 95% intervals come from `bootstrap`
    resamples of the groups; equal seeds give equal reports. Raises InputError, naming file and line, where the file is
    of no known set, or a row lacks what its set needs.
    """
    raw = list(_read(path))
    if raw and is_run(raw[0][2]):
        return _of_runs(read_runs(raw), bootstrap, seed)
    task = _task(raw[0][2], raw[0][0]) if raw else None
    if task is None:
        raise InputError("holds no rows", cure=f"Give a file of {_SETS}.", file=path.name)
    return _Benchmark(task, raw, half, bootstrap, seed, read_runs(_read(runs)) if runs else None).report()


def _of_runs(runs: Sequence[Run], bootstrap: int, seed: int) -> BenchReport:
    """Measure a file of runs: without labels, only what the loop reaches and how long it takes."""
    rules = ", ".join(sorted({run.versions.offline_rules or "none" for run in runs}))
    return BenchReport(
        task="Runs",
        half="all",
        bootstrap=bootstrap,
        seed=seed,
        rules=rules,
        readings=(),
        counts={},
        outcomes=outcomes(runs, (), bootstrap, seed),
    )


def _read(path: Path) -> Iterator[tuple[str, int, Mapping[str, Any]]]:
    files = sorted(path.glob("*.jsonl")) if path.is_dir() else [path]
    for file in files:
        with file.open(encoding="utf-8") as lines:
            for number, line in enumerate(lines, 1):
                if not line.strip():
                    continue
                try:
                    row = json.loads(line)
                except ValueError as error:
                    raise InputError(
                        f"is not JSON ({error})", cure="Write one JSON object a line.", file=file.name, line=number
                    ) from error
                if not isinstance(row, dict):
                    raise InputError(
                        "is not an object", cure="Write one JSON object a line.", file=file.name, line=number
                    )
                yield file.name, number, row


def _task(row: Mapping[str, Any], file: str) -> Task:
    for task in TASKS:
        if task.recognises(row):
            return task
    raise InputError("has no labels that can be measured", cure=f"Give a file of {_SETS}.", file=file, line=1)


class _Benchmark:
    """One measurement: the rows of the half, and the readings its task asks for."""

    def __init__(
        self,
        task: Task,
        raw: Sequence[tuple[str, int, Mapping[str, Any]]],
        half: Half,
        bootstrap: int,
        seed: int,
        runs: Sequence[Run] | None,
    ) -> None:
        self.task, self.half, self.bootstrap, self.seed = task, half, bootstrap, seed
        every = [row for place in raw for row in _rows(task, *place)]
        self.rows, self.fit = in_half(every, half), [row for row, _ in in_half(every, "fit")]
        self.runs = runs
        self.cases = _cases(task, [row for _, _, row in raw], half)
        self.assessed = tasks.assessed([row for row, _ in self.rows])

    def report(self) -> BenchReport:
        return BenchReport(
            task=self.task.name,
            half=self.half,
            bootstrap=self.bootstrap,
            seed=self.seed,
            rules=VERSION,
            readings=tuple(self._readings()),
            counts=tasks.decisions([row for row, _ in self.rows], self.assessed)
            | (exemptions(self.cases) if self.task.name == "ExpertQA" else {}),
            notes=(_UNCITED_RULE,) if any(row.cites_nothing for row, _ in self.rows) else (),
            outcomes=self._outcomes(),
        )

    def _outcomes(self) -> tuple[Outcome, ...]:
        if self.task.name != "Demo gold":
            return ()
        wanted = {str(case["id"]) for case in self.cases}
        runs = audited(self.cases) if self.runs is None else [run for run in self.runs if run.case_id in wanted]
        return outcomes(runs, self.cases, self.bootstrap, self.seed)

    def _readings(self) -> Iterator[Reading]:
        name = "claims"
        yield self._reading(name, self.task.positive, lambda row: row.positive)
        if any(row.cites_nothing for row, _ in self.rows):
            yield self._reading(
                "the same, claims that cite nothing there is counted as abstentions",
                self.task.positive,
                lambda row: row.positive,
                rule=False,
            )
        if any(row.strict is not None for row, _ in self.rows):
            yield self._reading(
                "strict reading", "not supported at all, against the rest", lambda row: bool(row.strict)
            )
        if self.task.name == "Demo gold":
            yield self._altered()
            yield self._fabricated()

    def _reading(self, name: str, meaning: str, positive: Positive, *, rule: bool = True) -> Reading:
        judgements = [
            tasks.auditor(row, found, rule=rule) for (row, _), found in zip(self.rows, self.assessed, strict=True)
        ]
        return self._compared(name, meaning, positive, self.rows, judgements)

    def _altered(self) -> Reading:
        pairs = [
            (row, group, found)
            for (row, group), found in zip(self.rows, self.assessed, strict=True)
            if row.planted in ALTERED or (not row.positive and row.planted is None)
        ]
        rows = [(row, group) for row, group, _ in pairs]
        judgements = [tasks.contradictions(row, found) for row, _, found in pairs]
        return self._compared(
            "altered facts",
            "a number, date, name or sign altered; against clean claims",
            lambda row: row.planted in ALTERED,
            rows,
            judgements,
        )

    def _fabricated(self) -> Reading:
        found = fabricated(self.cases)
        always = [row._replace(predicted=True, score=0.5) for row in found]
        measured = (self._measured("citation engine", found), self._measured("always positive", always))
        return _reading("fabricated references", "names no evidence of the case", found, measured)

    def _compared(
        self,
        name: str,
        meaning: str,
        positive: Positive,
        rows: Sequence[tuple[BenchRow, str]],
        judgements: Sequence[tasks.Judgement],
    ) -> Reading:
        predicted = tasks.predictions(rows, judgements, positive)
        measured = (
            self._measured("auditor", predicted),
            self._measured(
                "always positive", tasks.predictions(rows, [tasks.always(row) for row, _ in rows], positive)
            ),
            *(self._baseline(baseline, share, positive, rows) for baseline, share in tasks.OVERLAPS.items()),
        )
        return _reading(name, meaning, predicted, measured)

    def _baseline(
        self, name: str, share: tasks.Overlap, positive: Positive, rows: Sequence[tuple[BenchRow, str]]
    ) -> Measured:
        cut = tasks.overlap_threshold(self.fit, positive, share)
        shares = [share(row) for row, _ in rows]
        return self._measured(name, tasks.predictions(rows, [(value >= cut, value) for value in shares], positive))

    def _measured(self, judge: str, rows: Sequence[Prediction]) -> Measured:
        return Measured(judge, compute_metrics(rows, self.bootstrap, self.seed))


def _reading(name: str, meaning: str, rows: Sequence[Prediction], measured: tuple[Measured, ...]) -> Reading:
    return Reading(name, meaning, len(rows), sum(row.truth for row in rows), len({row.group for row in rows}), measured)


def _rows(task: Task, file: str, line: int, row: Mapping[str, Any]) -> list[BenchRow]:
    try:
        return list(task.rows(row))
    except (KeyError, TypeError, AttributeError) as error:
        problem = f"lacks what a row of {task.name} has ({type(error).__name__}: {error})"
        raise InputError(problem, cure="Leave the row out, or complete it.", file=file, line=line) from error


def read_rows(path: Path, half: Half) -> tuple[Task, list[tuple[BenchRow, str]]]:
    """Read the labelled claims of a file or folder, those of the half, each with its group. Raises InputError."""
    raw = list(_read(path))
    if not raw:
        raise InputError("holds no rows", cure=f"Give a file of {_SETS}.", file=path.name)
    task = _task(raw[0][2], raw[0][0])
    return task, in_half([row for place in raw for row in _rows(task, *place)], half)


def _cases(task: Task, rows: Sequence[Mapping[str, Any]], half: Half) -> list[Mapping[str, Any]]:
    """Return the cases of the half for measuring the citation engine: the demo's by id, ExpertQA's by what they
    share.
    """
    if task.name == "Demo gold":
        keys = [(str(row["id"]),) for row in rows]
    elif task.name == "ExpertQA":
        keys = [(row["query"], *(chunk["text"] for chunk in row["evidence"] if chunk.get("text"))) for row in rows]
    else:
        return []
    return [row for row, group in zip(rows, groups(keys), strict=True) if half in ("all", half_of(group))]

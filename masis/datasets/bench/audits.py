"""Whole audits to measure: made here without a model, or read from a file of runs (`masis audit --out`)."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from pydantic import ValidationError

from masis.auditor import run_audit
from masis.errors import InputError
from masis.schema.case import Case
from masis.schema.run import Run
from masis.settings import Settings


def audited(cases: Sequence[Mapping[str, Any]]) -> list[Run]:
    """An audit of each case that has an answer, without a model and with the settings as they come."""
    settings = Settings()
    return [run_audit(Case.model_validate(case), settings) for case in cases if case.get("answer")]


def is_run(row: Mapping[str, Any]) -> bool:
    """Whether a row is a run."""
    return {"case_id", "iterations", "termination_reason"} <= row.keys()


def read_runs(rows: Iterable[tuple[str, int, Mapping[str, Any]]]) -> list[Run]:
    """The runs of a file; of several of one case the last. Raises InputError with file and line."""
    runs: dict[str, Run] = {}
    for file, line, row in rows:
        try:
            run = Run.model_validate(row)
        except ValidationError as error:
            first = error.errors()[0]
            raise InputError(
                f"is no run of this version ({first['msg']})",
                cure="Give what masis audit --out wrote.",
                file=file,
                line=line,
                field=".".join(str(part) for part in first["loc"]),
            ) from error
        runs[run.case_id] = run
    return list(runs.values())

"""Audits on Ray: the same as elsewhere, each case once, whatever is in the way.

One small audit runs always, on this machine's cores; what kills workers, waits or spends runs with
--soak.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow
import pyarrow.parquet as parquet
import pytest

from masis import run_audit
from masis.datasets.lake import open_lake
from masis.integrations.ray import RayAudit, Totals, audit_on_ray
from masis.schema.case import Case
from masis.schema.run import Run
from masis.settings import Settings
from tests.cli.running import case, lines

pytestmark = [
    pytest.mark.slow,
    pytest.mark.usefixtures("two_cores"),
    pytest.mark.timeout(300),
    pytest.mark.filterwarnings("ignore"),  # Ray's own
]


def numbered_cases(number: int, name: str = "case") -> list[dict[str, Any]]:
    return [case(f"{name}-{n}", query=f"How long is bridge {n}?") for n in range(number)]


def rows(out: Path) -> dict[str, dict[str, Any]]:
    """The rows by case; each case stands there once."""
    found = open_lake(str(out)).to_table().to_pylist()
    by_id = {row["case_id"]: row for row in found}
    assert len(by_id) == len(found)
    return by_id


def test_a_folder_is_audited_like_single_cases_without_repeats(tmp_path: Path) -> None:
    cases = numbered_cases(5)
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "a.jsonl").write_bytes(lines(*cases[:3]) + b"{broken\n")
    parquet.write_table(pyarrow.Table.from_pylist(cases[3:]), tmp_path / "in" / "b.parquet")
    # One worker: each process that Ray starts imports all that it may need.
    job = RayAudit(str(tmp_path / "in"), str(tmp_path / "out"), Settings(), workers=1, chunk=2)

    report = audit_on_ray(job)

    assert report.complete
    found = rows(tmp_path / "out")
    assert (found.pop(None)["outcome"], report.totals.failed) == ("failed", 1)
    assert set(found) == {record["id"] for record in cases}
    for record in cases:
        alone, run = (
            run_audit(Case.model_validate(record)),
            Run.model_validate_json(found[record["id"]]["run_json"]),
        )
        assert (run.final_answer, run.final_quality_score) == (
            alone.final_answer,
            alone.final_quality_score,
        )
        assert run.review_reasons == alone.review_reasons

    assert audit_on_ray(job).totals == Totals(), "once more, nothing is audited"


@pytest.mark.soak
def test_a_case_that_kills_its_worker_is_skipped(
    tmp_path: Path,
) -> None:
    file = tmp_path / "cases.jsonl"
    file.write_bytes(
        lines(*numbered_cases(6), case("kills-1"), case("raises-1"), *numbered_cases(6, "after"))
    )
    said: list[str] = []

    report = audit_on_ray(
        RayAudit(str(file), str(tmp_path / "out"), Settings(), chunk=7, tries=2), failed=said.append
    )

    found = rows(tmp_path / "out")
    assert len(found) == 14
    assert {name for name, row in found.items() if row["outcome"] == "failed"} == {
        "kills-1",
        "raises-1",
    }
    assert "the worker ended 2 times" in found["kills-1"]["error"]
    assert found["raises-1"]["error"] == "RuntimeError: cannot be audited"
    assert found["raises-1"]["tries"] == 2
    assert Case.model_validate_json(found["kills-1"]["case_json"]).id == "kills-1"
    assert (report.totals.failed, report.totals.cases) == (2, 14)
    assert len(said) == 2

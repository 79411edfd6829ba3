"""The lake: one schema for every file, the outcome in the folder name, and cases and runs that
round-trip.
"""

from __future__ import annotations

import json
import re
from datetime import datetime
from pathlib import Path

import pyarrow.parquet as parquet
import pytest

from masis.datasets.lake import (
    COLUMNS,
    OUTCOMES,
    RecordOrigin,
    audited_row,
    failed_row,
    file_schema,
    is_lake,
    lake_schema,
    open_lake,
    outcome_of,
    repeated_ids,
    write_lake_file,
)
from masis.errors import InputError
from masis.schema.case import Case
from masis.schema.run import ReviewReason, Run
from tests.store.factories import a_case, a_run

ORIGIN = RecordOrigin(source="cases.jsonl", source_offset=0, source_row=3)
SCALE = Path(__file__).parents[2] / "docs" / "scale.md"


def put(folder: Path, row: dict[str, object], name: str = "part") -> None:
    place = folder / f"outcome={row['outcome']}"
    place.mkdir(parents=True, exist_ok=True)
    with (place / f"{name}.parquet").open("wb") as stream:
        write_lake_file([row], stream)


def test_a_case_and_its_run_round_trip_through_the_lake(tmp_path: Path) -> None:
    case = a_case("ünïcode – 1", metadata={"dataset": "pilot"})
    run = a_run(case)
    put(tmp_path, audited_row(case, run, ORIGIN, tries=2))

    [row] = open_lake(str(tmp_path)).to_table().to_pylist()

    assert Case.model_validate_json(row["case_json"]) == case
    assert Run.model_validate_json(row["run_json"]) == run
    assert (row["case_id"], row["digest"], row["dataset"]) == (case.id, case.digest(), "pilot")
    assert (row["outcome"], row["source"], row["source_row"], row["tries"]) == (
        outcome_of(run),
        "cases.jsonl",
        3,
        2,
    )
    assert row["quality"] == run.final_quality_score
    assert row["finished_at"] == datetime.fromisoformat(run.finished_at)


def test_runs_that_need_review_have_a_tier(tmp_path: Path) -> None:
    case = a_case()
    serious = ReviewReason(code="hallucination", message="...")
    unsure = ReviewReason(code="low_confidence", message="...")
    plain = a_run(case, needs_review=False, spot_check=False, review_reasons=())
    rows = [
        audited_row(case, run, ORIGIN)
        for run in (
            plain,
            a_run(case, needs_review=True, review_reasons=(unsure, serious)),
            a_run(case, needs_review=True, review_reasons=(unsure,)),
            a_run(case, needs_review=False, spot_check=True, review_reasons=()),
        )
    ]
    assert [(row["outcome"], row["tier"]) for row in rows] == [
        ("accepted", None),
        ("needs_review", "must_look"),
        ("needs_review", "not_certified"),
        ("needs_review", "spot_check"),
    ]
    assert rows[1]["reasons"] == ["low_confidence", "hallucination"]


def test_a_failure_keeps_its_case_and_an_invalid_row_its_content(
    tmp_path: Path,
) -> None:
    case = a_case()
    put(tmp_path, failed_row(case, "the worker died", ORIGIN, tries=3), "a")
    put(tmp_path, failed_row('{"id": 1}', "query: is missing", ORIGIN, tries=0), "b")

    by_tries = {row["tries"]: row for row in open_lake(str(tmp_path)).to_table().to_pylist()}

    assert by_tries[3]["error"] == "the worker died"
    assert Case.model_validate_json(by_tries[3]["case_json"]) == case
    assert by_tries[3]["run_json"] is None
    assert (by_tries[0]["case_id"], by_tries[0]["case_json"]) == (None, '{"id": 1}')
    assert {row["outcome"] for row in by_tries.values()} == {"failed"}


def test_every_row_has_exactly_the_columns_of_the_schema() -> None:
    case = a_case()
    names = {*COLUMNS, "outcome"}
    assert set(audited_row(case, a_run(case), ORIGIN)) | {"error"} == names
    assert set(failed_row(case, "no", ORIGIN)) < names
    assert set(lake_schema().names) == names


def test_a_file_has_a_schema_version_and_no_outcome_column(
    tmp_path: Path,
) -> None:
    case = a_case()
    put(tmp_path, audited_row(case, a_run(case), ORIGIN))
    [file] = tmp_path.glob("*/*.parquet")
    written = parquet.read_schema(file)
    assert written.equals(file_schema(), check_metadata=False)
    assert written.metadata[b"masis_lake"] == b"1"


def test_names_starting_with_an_underscore_are_ignored(tmp_path: Path) -> None:
    case = a_case()
    put(tmp_path, audited_row(case, a_run(case), ORIGIN))
    (tmp_path / "_masis").mkdir()
    (tmp_path / "_masis" / "audit.json").write_text(json.dumps({}), encoding="utf-8")
    assert open_lake(str(tmp_path)).count_rows() == 1


def test_a_lake_is_read_from_object_storage(tmp_path: Path) -> None:
    import fsspec

    case = a_case()
    put(tmp_path, audited_row(case, a_run(case), ORIGIN))
    memory = fsspec.filesystem("memory")
    memory.put(str(tmp_path), "/bucket/lake", recursive=True)
    try:
        assert is_lake("memory://bucket/lake")
        assert open_lake("memory://bucket/lake").to_table().column("case_id").to_pylist() == [
            case.id
        ]
    finally:
        memory.rm("/bucket", recursive=True)


def test_another_folder_isnt_a_lake(tmp_path: Path) -> None:
    assert not is_lake(str(tmp_path))
    with pytest.raises(InputError, match="isn't a folder of audited cases"):
        open_lake(str(tmp_path))


def test_an_unsupported_url_is_rejected() -> None:
    with pytest.raises(InputError, match="can't be reached"):
        open_lake("nowhere://bucket/lake")


def test_the_documentation_lists_every_column() -> None:
    written = SCALE.read_text(encoding="utf-8")
    rows = re.findall(r"^\| `(\w+)` \| ([\w<>]+) \| .{5,} \|$", written, re.MULTILINE)
    assert [row for row in rows if row[0] in COLUMNS] == list(COLUMNS.items())
    assert all(f"outcome={outcome}/" in written for outcome in OUTCOMES)


def test_ids_in_several_rows_are_reported_with_their_rows(tmp_path: Path) -> None:
    for name, case_id, source, row in (
        ("a", "case-1", "in/a.jsonl", 1),
        ("b", "case-2", "in/a.jsonl", 2),
        ("c", "case-1", "in/b.jsonl", 7),
        ("d", "fällt-2", "in/b.jsonl", 8),
        ("e", "fällt-2", "in/b.jsonl", 9),
        ("f", "fällt-2", "in/a.jsonl", 4),
    ):
        case = a_case(case_id)
        origin = RecordOrigin(source=source, source_offset=0, source_row=row)
        put(
            tmp_path,
            (
                failed_row(case, "broken", origin)
                if name == "e"
                else audited_row(case, a_run(case), origin)
            ),
            name,
        )
    put(tmp_path, failed_row(None, "no case", ORIGIN), "g")
    put(tmp_path, failed_row(None, "no case", ORIGIN), "h")

    found = repeated_ids(str(tmp_path))

    assert found.total == 2
    assert found.named == {
        "case-1": [("in/a.jsonl", 0, 1), ("in/b.jsonl", 0, 7)],
        "fällt-2": [("in/a.jsonl", 0, 4), ("in/b.jsonl", 0, 8), ("in/b.jsonl", 0, 9)],
    }
    assert [*repeated_ids(str(tmp_path), named=1).named] == ["case-1"]


def test_a_lake_without_repeated_ids_reports_none(tmp_path: Path) -> None:
    put(tmp_path, failed_row(None, "no case", ORIGIN))
    assert repeated_ids(str(tmp_path)) == (0, {})
    put(tmp_path, audited_row(a_case("one"), a_run(a_case("one")), ORIGIN), "a")
    assert repeated_ids(str(tmp_path)) == (0, {})

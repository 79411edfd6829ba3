"""Small files that hold a great number of values cost little memory, and are refused with a reason."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pytest
from pyarrow import parquet

from masis.datasets.mapping.reader import read_any
from masis.datasets.mapping.row import MOST_PROBLEMS
from masis.errors import InputError
from masis.schema.case import Case

MANY = 400_000


def refusals(path: Path) -> list[str]:
    """The problems of a file, up to the one that ends it."""
    problems = []
    try:
        for row in read_any(path, name=path.name):
            problems += [str(problem) for problem in row.problems]
    except InputError as error:
        problems.append(str(error))
    return problems


def write_parquet(path: Path, table: pa.Table) -> Path:
    parquet.write_table(table, path, compression="zstd")
    return path


def test_a_small_parquet_file_with_a_huge_list_is_refused(tmp_path: Path) -> None:
    listed = pa.ListArray.from_arrays([0, 10_000_000], pa.nulls(10_000_000, pa.int64()))
    path = write_parquet(tmp_path / "nulls.parquet", pa.table({"query": ["?"], "evidence": listed}))
    assert path.stat().st_size < 5_000
    [problem] = refusals(path)
    assert "holds 10,000,002 values; the limit is 500,000 values (parquet_values)" in problem


def test_a_parquet_file_with_too_many_rows_is_refused(tmp_path: Path) -> None:
    path = write_parquet(
        tmp_path / "rows.parquet", pa.table({"query": pa.nulls(30_000_000, pa.int8())})
    )
    [problem] = refusals(path)
    assert "holds 30,000,000 values, more than 20,000,000" in problem


@pytest.mark.parametrize("in_lists", [False, True])
def test_a_parquet_file_that_repeats_a_long_text_is_refused(tmp_path: Path, in_lists: bool) -> None:
    """A dictionary holds the text once, and the rows refer to it."""
    texts = pa.DictionaryArray.from_arrays(pa.array([0] * 2_000, pa.int32()), ["x" * 100_000])
    column = pa.ListArray.from_arrays([0, 2_000], texts) if in_lists else texts
    path = write_parquet(tmp_path / "texts.parquet", pa.table({"query": column}))
    assert path.stat().st_size < 50_000
    [problem] = refusals(path)[-1:]
    assert "holds text that unpacks to more than is allowed" in problem


def test_an_ordinary_parquet_file_is_read_whole(tmp_path: Path) -> None:
    row = {
        "query": "How long is it?",
        "answer": "120 metres [1].",
        "evidence": [{"id": "1", "text": "It is 120 metres long."}],
    }
    path = write_parquet(
        tmp_path / "cases.parquet",
        pa.Table.from_pylist([{**row, "id": f"case-{number}"} for number in range(600)]),
    )
    rows = list(read_any(path, name=path.name))
    assert [case.id for row in rows if (case := row.case)] == [f"case-{n}" for n in range(600)]
    assert rows[-1].case is not None
    assert rows[-1].case.evidence[0].text == "It is 120 metres long."


ITEMS = {
    "evidence": {"id": "a", "query": "q", "answer": "x", "evidence": [1] * MANY},
    "labels": {"query": "q", "answer": "x", "evidence": ["a"], "labels": {"claims": [1] * MANY}},
    "citations": {"query": "q", "answer": "x", "evidence": ["a"], "citations": [1] * MANY},
    "texts": {"query": "q", "answer": "x", "evidence": ["t"] * MANY},
    "chunks": {"query": "q", "answer": "x", "evidence": [{"id": "1"}] * MANY},
    "another format": {"question": "q", "answer": "x", "contexts": [1] * MANY},
}
_CHILD = """
import sys
from pathlib import Path
from masis.datasets.mapping.reader import read_any
rows = list(read_any(Path(sys.argv[1]), name="rows.jsonl"))
peak = next(l for l in Path("/proc/self/status").read_text().splitlines() if "VmHWM" in l)
print(len(rows[0].problems), int(peak.split()[1]) // 1024)
"""


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="Linux tells the peak there")
@pytest.mark.parametrize("kind", ITEMS)
def test_too_many_items_cost_little_memory(tmp_path: Path, kind: str) -> None:
    """Each refused number took 1.4 KB and each text 800 bytes, so such rows took 400 to 600 MB.

    The peak is read from the process itself, because ``getrusage`` includes that of its parent.
    """
    path = tmp_path / "rows.jsonl"
    path.write_text(json.dumps(ITEMS[kind]))
    done = subprocess.run(
        [sys.executable, "-c", _CHILD, str(path)], capture_output=True, text=True, check=True
    )
    problems, mebibytes = map(int, done.stdout.split())
    assert problems <= MOST_PROBLEMS
    assert mebibytes < 250


def test_a_list_of_records_stops_at_its_first_wrong_item() -> None:
    with pytest.raises(InputError, match=r"labels.claims\[0\]") as refused:
        Case.model_validate({**ITEMS["labels"], "labels": {"claims": [1, 2, 3]}})
    assert "Also wrong" not in str(refused.value)

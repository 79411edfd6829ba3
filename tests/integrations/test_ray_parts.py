"""The parts of audits on Ray that don't need Ray: the input in chunks, the ledger and the
output folder.
"""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import fsspec
import pyarrow
import pyarrow.parquet as parquet
import pytest

from masis.cli.output import say
from masis.datasets.lake import RecordOrigin, Repeats, failed_row, open_lake
from masis.errors import InputError
from masis.integrations.cli.ray import repeats
from masis.integrations.ray.inputs import Chunk, cases_of, chunks_of, parts_of
from masis.integrations.ray.ledger import Ledger, SpentUsage
from masis.integrations.ray.shards import Lake
from tests.cli.running import case, lines
from tests.store.factories import a_case

NUMBERED = [case(f"case-{number}", query=f"How long is bridge {number}?") for number in range(40)]


def read_chunks(path: Path | str, *, size: int = 7) -> list[Chunk]:
    return [
        chunk for part in parts_of(str(path)) for chunk in chunks_of(part, str(path), None, size)
    ]


def ids(chunks: list[Chunk]) -> list[str]:
    return [case.id for chunk in chunks for _, case, _ in cases_of(chunk) if case is not None]


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """Return a file with all cases."""
    path = tmp_path / "cases.jsonl"
    path.write_bytes(lines(*NUMBERED))
    return path


# --- the input


def test_every_line_is_read_once_and_has_a_stable_number(file: Path) -> None:
    file.write_bytes(lines(*NUMBERED).rstrip())  # the last line needs no line break
    chunks = read_chunks(file)
    assert ids(chunks) == [row["id"] for row in NUMBERED]
    assert len({chunk.shard for chunk in chunks}) == len(chunks)
    for chunk in chunks:
        for row, read_case, _ in cases_of(chunk):
            assert json.loads(file.read_bytes().splitlines()[row - 1])["id"] == read_case.id


def test_a_folder_with_all_file_kinds_is_read(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_bytes(lines(*NUMBERED[:10]))
    (tmp_path / "b.jsonl.gz").write_bytes(gzip.compress(lines(*NUMBERED[10:20])))
    table = pyarrow.Table.from_pylist(NUMBERED[20:])
    (tmp_path / "inner").mkdir()
    parquet.write_table(table, tmp_path / "inner" / "c.parquet", row_group_size=6)
    (tmp_path / "_SUCCESS").write_bytes(b"")
    (tmp_path / "notes.txt").write_text("no input", encoding="utf-8")
    assert sorted(ids(read_chunks(tmp_path))) == sorted(row["id"] for row in NUMBERED)


def test_object_storage_is_read_like_a_folder(tmp_path: Path) -> None:
    memory = fsspec.filesystem("memory")
    memory.pipe("/in/cases.jsonl", lines(*NUMBERED))
    try:
        chunks = read_chunks("memory://in")
        assert ids(chunks) == [row["id"] for row in NUMBERED]
        assert chunks[0].source == "memory://in/cases.jsonl"
    finally:
        memory.rm("/in", recursive=True)


def test_an_invalid_row_is_reported_in_place(file: Path) -> None:
    file.write_bytes(lines(NUMBERED[0]) + b"{broken\n" + lines(NUMBERED[1]))
    [chunk] = read_chunks(file)
    rows = list(cases_of(chunk))
    assert [row for row, _, _ in rows] == [1, 2, 3]
    assert rows[1][1] is None
    assert "line 2" in (rows[1][2] or "")


def test_a_truncated_file_is_reported_and_others_are_read(
    tmp_path: Path,
) -> None:
    compressed = gzip.compress(lines(*NUMBERED[:20]))
    (tmp_path / "a.jsonl.gz").write_bytes(compressed[: len(compressed) - 30])
    (tmp_path / "b.jsonl").write_bytes(lines(*NUMBERED[20:]))
    chunks = read_chunks(tmp_path)
    problems = [problem for chunk in chunks for _, _, problem in cases_of(chunk) if problem]
    assert len(problems) == 1
    assert "a.jsonl.gz" in problems[0]
    assert set(ids(chunks)) >= {row["id"] for row in NUMBERED[20:]}


def test_finished_shards_arent_read_again(file: Path) -> None:
    [part] = parts_of(str(file))
    all_chunks = read_chunks(file)
    remaining = list(chunks_of(part, str(file), None, 7, done={0, 2, 5}))
    assert [chunk.number for chunk in remaining] == [1, 3, 4]
    assert [chunk for chunk in all_chunks if chunk.number in (1, 3, 4)] == remaining
    assert [chunk.last for chunk in all_chunks] == [False] * 5 + [True]
    assert sum(chunk.size for chunk in all_chunks) == part.size


def test_a_missing_input_is_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="does not exist"):
        parts_of(str(tmp_path / "none.jsonl"))
    with pytest.raises(InputError, match="has no file that can be read"):
        parts_of(str(tmp_path))


# --- the output


def a_row(number: int, outcome: str = "failed") -> dict[str, object]:
    row = failed_row(
        a_case(f"case-{number}"), "no", RecordOrigin(source="x", source_offset=0, source_row=number)
    )
    return row | {"outcome": outcome}


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    new_lake = Lake(str(tmp_path / "out"))
    new_lake.prepare(INPUT_DESCRIPTION)
    return new_lake


INPUT_DESCRIPTION = {"parts": {"a": 1}, "settings": {"seed": 1}, "profile": None, "chunk": 50}


def test_a_rewritten_shard_replaces_the_old_one(lake: Lake) -> None:
    lake.write("part-000000", [a_row(1), a_row(2, "accepted")])
    assert sorted(lake.written_rows("part-000000")) == [1, 2]
    lake.write("part-000000", [*lake.written_rows("part-000000").values(), a_row(3)])
    assert sorted(open_lake(lake.place).to_table().column("source_row").to_pylist()) == [1, 2, 3]
    assert {row["outcome"] for row in lake.written_rows("part-000000").values()} == {
        "accepted",
        "failed",
    }


def test_leftovers_of_a_killed_worker_are_removed(lake: Lake) -> None:
    leftover = Path(lake.place) / "outcome=accepted" / ".part-000000.parquet.abc"
    leftover.write_bytes(b"half")
    lake.prepare(INPUT_DESCRIPTION)
    assert not leftover.exists()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"settings": {"seed": 2}}, "other settings"),
        ({"chunk": 10}, "in chunks"),
        ({"parts": {"a": 2}}, "of another input"),
        ({"parts": {}}, "of another input"),
    ],
)
def test_an_output_folder_of_another_input_is_rejected(
    lake: Lake, change: dict[str, object], message: str
) -> None:
    with pytest.raises(InputError, match=message):
        lake.prepare(INPUT_DESCRIPTION | change)


def test_files_can_be_added_to_the_input(lake: Lake) -> None:
    lake.prepare(INPUT_DESCRIPTION | {"parts": {"a": 1, "b": 5}})
    with pytest.raises(InputError, match="of another input"):
        lake.prepare(INPUT_DESCRIPTION)


def test_a_folder_with_other_files_is_rejected(tmp_path: Path) -> None:
    (tmp_path / "mine.txt").write_text("mine", encoding="utf-8")
    with pytest.raises(InputError, match="holds other files"):
        Lake(str(tmp_path)).prepare(INPUT_DESCRIPTION)


def test_two_jobs_cant_write_to_one_folder(lake: Lake) -> None:
    with lake.lock(), pytest.raises(InputError, match="is being written"), Lake(lake.place).lock():
        pass
    with Lake(lake.place).lock():
        pass


def test_completion_markers_identify_finished_shards(lake: Lake, file: Path) -> None:
    [part] = parts_of(str(file))
    chunks = read_chunks(file)
    for chunk in chunks[1:]:
        lake.complete(chunk)
    completed, is_complete = lake.completed_chunks()[part.name]
    assert (sorted(completed), is_complete) == ([1, 2, 3, 4, 5], False)
    lake.complete(chunks[0])
    completed, is_complete = lake.completed_chunks()[part.name]
    assert is_complete
    assert sum(completed.values()) == part.size


# --- the ledger


def test_a_case_that_repeatedly_kills_its_worker_is_skipped() -> None:
    ledger = Ledger(3, None)
    for number in (1, 2, 3):
        assert ledger.start("s") == number
        assert ledger.begin("s", 7, 0.0) == ("audit", number)
    ledger.start("s")
    assert ledger.begin("s", 7, 0.0) == ("set_aside", 3)
    ledger.record_end("s", 7, SpentUsage("failed"), "the worker ended")
    assert ledger.totals().failed == 1
    assert ledger.errors() == ["the worker ended"]
    assert ledger.errors() == []


def test_a_dead_workers_unwritten_cases_are_audited_again() -> None:
    ledger = Ledger(3, None)
    for _ in range(2):
        ledger.start("s")
        ledger.begin("s", 2, 0.0)
        ledger.record_end("s", 2, SpentUsage("accepted", cost_usd=0.5))
    ledger.complete("s", 10)
    assert (ledger.totals().accepted, ledger.totals().cost_usd, ledger.totals().size) == (
        1,
        1.0,
        10,
    )


def test_the_clusters_total_cost_stays_under_the_limit() -> None:
    ledger = Ledger(3, 1.0)
    actions = [ledger.begin(f"s{n}", n, 0.3)[0] for n in range(5)]
    assert actions == ["audit", "audit", "audit", "stop", "stop"]
    # The audit was cheaper than estimated, so another one can start.
    ledger.record_end("s0", 0, SpentUsage("accepted", cost_usd=0.1))
    assert ledger.begin("s5", 5, 0.3)[0] == "audit"
    assert ledger.totals().exhausted


def test_only_the_newest_attempt_may_write() -> None:
    ledger = Ledger(3, None)
    first, second = ledger.start("s"), ledger.start("s")
    assert not ledger.may_write("s", first)
    assert ledger.may_write("s", second)


def test_nothing_starts_after_a_stop() -> None:
    ledger = Ledger(3, None)
    ledger.stop()
    assert ledger.begin("s", 1, 0.0)[0] == "stop"


def test_ids_in_several_rows_are_reported_with_files_and_rows(
    capsys: pytest.CaptureFixture[str],
) -> None:
    named = {
        "case-1": [("a.jsonl", 0, 1), ("b.jsonl", 0, 7)],
        "case\x1b[31m-2": [("a.jsonl", 0, 4), ("b.jsonl", 67_108_864, 9)],
    }
    for line in repeats(Repeats(12, named)):
        say(line)
    told = capsys.readouterr().err
    assert "12 ids occur in several rows; each row was audited:" in told
    assert "  case-1: a.jsonl, row 1; b.jsonl, row 7" in told
    assert "a.jsonl, row 4; b.jsonl, row 9 from 67,108,864" in told
    assert "\x1b" not in told
    assert "and 10 more" in told

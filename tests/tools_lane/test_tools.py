"""Output of other tools' libraries is read, and their own loaders load our exports."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from masis.datasets.exports.export import Selection
from masis.datasets.exports.formats import export_formats
from masis.datasets.mapping.profile import import_profiles
from masis.datasets.mapping.reader import formats_of, read_any
from masis.schema.labels import LabelPassage, TargetLabel
from masis.schema.review import Decision
from masis.services import Workbench, demo_cases
from masis.store.records import CaseFilter
from tests.reviewing import ADA, submit

ROOT = Path(__file__).parents[2]
FIXTURES = ROOT / "tests" / "datasets" / "mapping" / "files"
PYTHON = os.environ["MASIS_TOOLS"]
LOAD = """
import json, sys, datasets
kind, path = sys.argv[1:]
found = datasets.load_dataset(path) if kind == "folder" else datasets.load_dataset(kind, data_files=path)
print(json.dumps({name: [part.num_rows, sorted(part.column_names)] for name, part in found.items()}))
"""
LOAD_ROWS = """
import json, sys, datasets
found = datasets.load_dataset(sys.argv[1])
print(json.dumps({name: {"rows": list(part), "features": {n: str(f) for n, f in part.features.items()}}
    for name, part in found.items()}))
"""
WORDS = {
    "sft": {"messages"},
    "pairs": {"prompt", "chosen", "rejected"},
    "ragas": {"user_input", "retrieved_contexts"},
}


def by_tools(*arguments: str, folder: Path) -> str:
    """Run the Python that has the tools, without a network and with separate caches, and return its
    output.
    """
    environment = {
        **os.environ,
        "HF_HUB_OFFLINE": "1",
        "HF_HOME": str(folder / "hf"),
        "PYTHONWARNINGS": "ignore",
    }
    done = subprocess.run(
        [PYTHON, *arguments], capture_output=True, text=True, env=environment, check=False
    )
    assert done.returncode == 0, done.stderr[-2000:]
    return done.stdout


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """The files written by the installed libraries, by profile and suffix."""
    folder = tmp_path_factory.mktemp("written")
    by_tools(str(Path(__file__).with_name("written_by_tools.py")), str(folder), folder=folder)
    return {
        f"{formats_of(path).formats[0]}{path.suffix}": path
        for path in folder.iterdir()
        if path.is_file()
    }


@pytest.mark.parametrize(
    "path",
    [path for path in sorted(FIXTURES.iterdir()) if "-sdk-" in path.name or "-core-" in path.name],
    ids=lambda path: path.stem,
)
def test_output_of_the_installed_library_is_read_like_the_fixture(
    path: Path, written: dict[str, Path]
) -> None:
    profile = import_profiles()[formats_of(path).formats[0]]
    (fixture,) = read_any(path)
    (now,) = read_any(written[f"{profile.name}{path.suffix}"])
    names = {"query", "answer", "evidence", "citations"}
    assert now.case.model_dump(include=names) == fixture.case.model_dump(include=names)


def test_a_parquet_file_of_datasets_is_read_like_its_json_lines(written: dict[str, Path]) -> None:
    (table,), (lines,) = read_any(written["hf-rag.parquet"]), read_any(written["hf-rag.jsonl"])
    assert table.case.evidence == lines.case.evidence


@pytest.fixture(scope="module")
def bench(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Workbench]:
    workbench = Workbench.open(tmp_path_factory.mktemp("bench") / "bench.db")
    for number, demo in enumerate(list(demo_cases())[:6]):
        case = demo.model_copy(
            update={"metadata": {**demo.metadata, "trace_id": f"trace-{number}"}}
        )
        workbench.cases.add(ADA, [case])
        run = workbench.audits.audit(ADA, case)
        corrected = f"{run.iterations[0].answer} It was checked." if number % 2 else None
        verdict: Any = "override" if corrected else "approve"
        words = run.iterations[0].answer[:20]
        chunk = case.evidence[0]
        passage = LabelPassage(evidence_id=chunk.id, start=0, end=9, text=chunk.text[:9])
        decision = Decision(
            reviewer="Ada",
            case_id=case.id,
            run_id=run.id,
            iteration=1,
            verdict=verdict,
            reason="Says less than it could",
            corrected_answer=corrected,
            labels=(
                TargetLabel(
                    target="claim",
                    start=0,
                    end=len(words),
                    text=words,
                    label="partial",
                    evidence=(passage,),
                ),
            ),
        )
        submit(workbench, decision)
        workbench.minimal_evidence.verify(ADA, case.id)
    yield workbench
    workbench.close()


IN_FILES = [name for name, form in export_formats().items() if not form.folder or form.card]
"""The formats that ``datasets`` loads. Other folders are in the formats of TREC and BEIR."""


@pytest.mark.parametrize("form", sorted(IN_FILES))
def test_datasets_loads_every_row_of_an_export(form: str, bench: Workbench, tmp_path: Path) -> None:
    chosen = export_formats()[form]
    path = tmp_path / f"export{'' if form == 'hf' else chosen.suffix}"
    exported = bench.exports.write_file(ADA, path, form)
    assert exported.rows
    found = json.loads(
        by_tools("-c", LOAD, "folder" if form == "hf" else "json", str(path), folder=tmp_path)
    )
    assert sum(rows for rows, _ in found.values()) == exported.rows
    assert all(WORDS.get(form, set()) <= set(columns) for _, columns in found.values())


@pytest.mark.parametrize("state", ["decided", "undecided", "overridden"])
def test_datasets_reads_a_hugging_face_folder_with_its_declared_types_even_if_columns_are_empty(
    state: str, bench: Workbench, tmp_path: Path
) -> None:
    workbench = bench
    if state == "undecided":
        workbench = Workbench.open(tmp_path / "undecided.db")
        for case in list(demo_cases())[:3]:
            workbench.cases.add(ADA, [case])
            workbench.audits.audit(ADA, case)
    chosen = CaseFilter(states=("overridden",) if state == "overridden" else ())
    folder = tmp_path / "set"
    exported = workbench.exports.write_file(ADA, folder, "hf", Selection(chosen))
    expected = {
        path.stem: lines_of(path) for path in (folder / "data").iterdir() if path.stat().st_size
    }
    found = json.loads(by_tools("-c", LOAD_ROWS, str(folder), folder=tmp_path))
    assert {name: part["rows"] for name, part in found.items()} == expected
    assert sum(map(len, expected.values())) == exported.rows > 0
    types = {part["features"]["decision"] for part in found.values()}
    assert types == {"Value('string')"}
    assert len({json.dumps(part["features"]) for part in found.values()}) == 1
    if state == "undecided":
        assert {row["decision"] for rows in expected.values() for row in rows} == {None}
        workbench.close()


def load_with_tool(tool: str, path: Path, folder: Path) -> dict[str, Any]:
    """Return what a tool's own loader reads from an export."""
    found: dict[str, Any] = json.loads(
        by_tools(
            str(Path(__file__).with_name("loaded_by_tools.py")), tool, str(path), folder=folder
        )
    )
    return found


def lines_of(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def test_ragas_loads_every_sample_with_all_its_fields(bench: Workbench, tmp_path: Path) -> None:
    path = tmp_path / "samples.jsonl"
    exported = bench.exports.write_file(ADA, path, "ragas")
    found = load_with_tool("ragas", path, tmp_path)
    assert found["rows"] == exported.rows == 6
    own = {"retrieved_context_sources"}  # Ragas has no field for them
    assert found["samples"] == [
        {k: v for k, v in row.items() if k not in own} for row in lines_of(path)
    ]
    assert set(found["features"]) >= {"user_input", "response", "retrieved_contexts", "reference"}


def test_trl_loads_pairs_as_preferences_with_a_prompt(bench: Workbench, tmp_path: Path) -> None:
    path = tmp_path / "pairs.jsonl"
    exported = bench.exports.write_file(ADA, path, "pairs")
    found = load_with_tool("trl", path, tmp_path)
    assert found["rows"] == exported.rows == 3
    for row, texts in zip(lines_of(path), found["texts"], strict=True):
        assert texts["prompt"] == f"<user>{row['prompt'][0]['content']}"
        for name in ("chosen", "rejected"):
            assert texts[name] == f"<assistant>{row[name][0]['content']}"
        assert texts["chosen"] != texts["rejected"]


def test_trl_loads_chats_for_training(bench: Workbench, tmp_path: Path) -> None:
    path = tmp_path / "sft.jsonl"
    exported = bench.exports.write_file(ADA, path, "sft")
    found = load_with_tool("trl", path, tmp_path)
    assert found["rows"] == exported.rows == 6
    for row, texts in zip(lines_of(path), found["texts"], strict=True):
        asked, answered = (message["content"] for message in row["messages"])
        assert texts["text"] == f"<user>{asked}<assistant>{answered}"


def test_label_studio_accepts_tasks_predictions_and_annotations(
    bench: Workbench, tmp_path: Path
) -> None:
    path = tmp_path / "tasks.json"
    exported = bench.exports.write_file(ADA, path, "label-studio")
    found = load_with_tool("label-studio", path, tmp_path)
    assert (found["rows"], found["predictions"], found["annotations"]) == (exported.rows, 6, 6)
    tasks = json.loads(path.read_text(encoding="utf-8"))
    regions = [
        result for task in tasks for part in ("predictions", "annotations") for result in task[part]
    ]
    assert found["regions"] == sum(len(region["result"]) for region in regions) > 12


@pytest.mark.parametrize("encoding", ["csv", "parquet"])
def test_datasets_loads_flat_exports_as_tables(
    encoding: str, bench: Workbench, tmp_path: Path
) -> None:
    path = tmp_path / f"claims.{encoding}"
    exported = bench.exports.write_file(ADA, path, "claims", encoding=encoding)
    found = json.loads(by_tools("-c", LOAD, encoding, str(path), folder=tmp_path))
    assert [rows for rows, _ in found.values()] == [exported.rows]

"""Every export is either imported again unchanged, or refused with the format to export instead."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import get_args

import pytest

from masis.datasets.exports import origin
from masis.datasets.exports.export import ENCODINGS, Selection
from masis.datasets.exports.formats import Format, Importable, export_format, export_formats
from masis.datasets.exports.origin import refuse_export
from masis.datasets.mapping.reader import read_any
from masis.datasets.readers.decisions import read_decisions
from masis.errors import InputError
from masis.schema.case import Case
from masis.schema.labels import TargetLabel
from masis.services import Workbench
from masis.store.records import CaseFilter
from tests.reviewing import ADA, decide

ANSWER = "The bridge is 12 metres long [1]. 🌉 It is red [9]."
GOOD = "The bridge is 120 metres long [1]."
MADE_BY_MODELS_OR_PASSAGES = {"contrast", "attribution"}
"""Formats without rows here; ``row_keys`` alone is checked."""


@pytest.fixture(scope="module")
def bench(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Workbench]:
    """Three audited cases with ids of their own, labels, corrections and a trace id."""
    bench = Workbench.open(tmp_path_factory.mktemp("origin") / "origin.db")
    for number in range(1, 4):
        case = Case.model_validate(
            {
                "id": f"case-{number}",
                "query": f"How long is bridge {number}?\r\nIn metres, e\u0301xactly.",
                "answer": ANSWER,
                "evidence": [
                    {"id": "1", "text": "The bridge is 120 metres long."},
                    {"id": "survey", "text": "red, \u202eשלום\u202c"},
                ],
                "metadata": {"trace_id": f"trace-{number}"},
            }
        )
        bench.cases.add_one(ADA, case)
        bench.audits.audit(ADA, case)
    words = ANSWER[: ANSWER.index(" 🌉")]
    label = TargetLabel(target="claim", start=0, end=len(words), text=words, label="contradicted")
    chunk = TargetLabel(target="evidence", evidence_id="1", label="relevant")
    decide(bench, "case-1", "override", iteration=1, labels=(label, chunk), corrected_answer=GOOD)
    decide(bench, "case-2", "approve", iteration=1, labels=(label,))
    decide(bench, "case-3", "reject", iteration=1)
    yield bench
    bench.close()


def files_of(bench: Workbench, folder: Path, form: Format, encoding: str) -> list[Path]:
    """Write an export and return its files that have rows."""
    out = folder / (form.name + (form.suffix if encoding == "jsonl" else f".{encoding}"))
    bench.exports.write_file(ADA, out, form.name, Selection(CaseFilter()), encoding=encoding)
    paths = [path for path in out.rglob("*") if path.is_file()] if form.folder else [out]
    # A split without rows has no line, or only its heading.
    return [
        path
        for path in paths
        if (path.name not in ("manifest.json", "README.md") and path.read_bytes().count(b"\n") > 1)
        or (path.suffix in (".json", ".parquet") and path.name != "manifest.json")
        or (path.suffix == ".jsonl" and path.stat().st_size)
    ]


def texts_of(case: Case) -> tuple[str, str | None, tuple[tuple[str, str], ...]]:
    return case.query, case.answer, tuple((chunk.id, chunk.text) for chunk in case.evidence)


@pytest.mark.parametrize("name", export_formats())
def test_an_export_comes_back_equal_or_is_refused_with_a_hint(
    bench: Workbench, tmp_path: Path, name: str
) -> None:
    form = export_formats()[name]
    stored = {texts_of(bench.store.cases.get(f"case-{number}")) for number in range(1, 4)}
    for encoding in ENCODINGS if form.tabular else ENCODINGS[:1]:
        paths = files_of(bench, tmp_path, form, encoding)
        if name in MADE_BY_MODELS_OR_PASSAGES:
            continue
        assert paths
        for path in paths:
            if path.suffix == ".txt":
                # TREC's lines have no keys, so that they are refused like any other text.
                assert not any(read.case for read in read_any(path))
                continue
            assert_cases_or_hint(path, form, encoding, stored)
            assert_decisions_or_hint(path, form, encoding)


def assert_cases_or_hint(
    path: Path, form: Format, encoding: str, stored: set[tuple[object, ...]]
) -> None:
    if "cases" in form.returns and not (form.table and encoding == "csv"):
        reads = list(read_any(path))
        assert not [problem for read in reads for problem in read.problems]
        assert {texts_of(read.case) for read in reads if read.case} <= stored
        return
    with pytest.raises(InputError, match=f"export format '{form.name}'") as refused:
        list(read_any(path))
    assert "masis export --format decided" in refused.value.hint


def assert_decisions_or_hint(path: Path, form: Format, encoding: str) -> None:
    if form.table and encoding == "csv":
        rows = list(read_decisions(path))
        assert rows
        assert all(isinstance(row, InputError) and "jsonl or parquet" in row.hint for row in rows)
    elif "decisions" in form.returns:
        rows = list(read_decisions(path))
        assert rows
        assert not [row for row in rows if isinstance(row, InputError)]
    else:
        with pytest.raises(InputError, match=f"export format '{form.name}'") as refused:
            list(read_decisions(path))
        assert "masis export --format decided" in refused.value.hint


@pytest.mark.parametrize("wanted", get_args(Importable))
def test_every_declared_kind_of_row_is_refused_unless_it_is_importable(wanted: Importable) -> None:
    for name, form in export_formats().items():
        assert form.row_keys or set(form.returns) == set(get_args(Importable)), name
        for keys in form.row_keys:
            if wanted in form.returns and not form.table:
                refuse_export(dict.fromkeys(keys, "x"), wanted)
                continue
            with pytest.raises(InputError, match=f"export format '{name}'"):
                refuse_export(dict.fromkeys(keys, "x"), wanted)


def test_a_format_of_another_package_is_refused_without_any_other_change(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    lengths = export_format("the length of each answer", columns=("length",))(lambda judged: [])
    added = {"lengths": lengths.model_copy(update={"name": "lengths"})}
    monkeypatch.setattr(origin, "export_formats", lambda: export_formats() | added)
    row = dict.fromkeys(lengths.columns_in("csv"), "1")
    with pytest.raises(InputError, match="export format 'lengths'") as refused:
        list(read_any([row]))
    assert "masis export --format decided" in refused.value.hint


def test_a_row_with_one_more_key_is_read_as_somebody_elses_data() -> None:
    row = {"prompt": "a", "chosen": "b", "rejected": "c", "margin": 1}
    refuse_export(row, "cases")
    with pytest.raises(InputError):
        refuse_export({name: row[name] for name in ("prompt", "chosen", "rejected")}, "cases")

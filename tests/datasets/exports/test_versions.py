"""Dataset versions: byte-identical rebuilds despite later decisions, an explanation if a rebuild is
impossible, and comparisons.
"""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import pytest

from masis.datasets.exports.export import Selection
from masis.datasets.exports.formats import export_formats
from masis.datasets.exports.splits import SplitShares
from masis.errors import InputError, StoreError, UnknownRecord
from masis.schema.labels import LabelPassage, TargetLabel
from masis.services import Workbench
from masis.services.maintenance.retention import rule_of
from masis.store.records import CaseFilter
from tests.cases import case_of
from tests.datasets.exports.test_formats import ANSWER, label_claim
from tests.modes import WRONG_DATE, WRONG_UNIT
from tests.reviewing import ADA, decide, undone

QUESTIONS = (
    "How long is the old bridge?",
    "Which city has a red tower?",
    "Where do penguins breed in winter?",
    "Who painted this ceiling?",
    "When did rice prices rise?",
)
ANY = Selection(CaseFilter())


@pytest.fixture
def bench(tmp_path: Path) -> Any:
    """Four audited cases: rejected by Ben and then overridden by Ada, approved, rejected, and
    open.
    """
    bench = Workbench.open(tmp_path / "versions.db")
    for number in range(1, 5):
        add(bench, number)
    decide(bench, "case-1", "reject", "Ben", iteration=1, labels=label_claim("partial"))
    decide(
        bench,
        "case-1",
        "override",
        iteration=1,
        labels=label_claim("contradicted"),
        corrected_answer="It is 120 metres long [1].",
    )
    decide(bench, "case-2", "approve", iteration=1, labels=supported_label())
    decide(bench, "case-3", "reject", iteration=1, labels=label_claim("contradicted"))
    for mode in (WRONG_DATE, WRONG_UNIT):
        bench.modes.add_mode(ADA, mode)
    bench.modes.code(ADA, "case-3", ["wrong-date"])
    yield bench
    bench.close()


def supported_label() -> tuple[TargetLabel, ...]:
    """Return a label for the first claim that names the passage supporting it."""
    passage = LabelPassage(evidence_id="1", start=0, end=10, text="The bridge")
    (label,) = label_claim("supported")
    return (label.model_copy(update={"evidence": (passage,)}),)


def add(bench: Workbench, number: int) -> None:
    case = case_of(
        ANSWER,
        {"1": "The bridge is 120 metres long."},
        case_id=f"case-{number}",
        query=QUESTIONS[number - 1],
        metadata={"trace_id": f"trace-{number}"},
    )
    bench.cases.add_one(ADA, case)
    bench.audits.audit(ADA, case)
    bench.minimal_evidence.verify(ADA, case.id)


def read_files(path: Path) -> dict[str, bytes]:
    files = [path] if path.is_file() else [path for path in path.rglob("*") if path.is_file()]
    return {file.name: file.read_bytes() for file in files}


def change_everything(bench: Workbench) -> None:
    """Decide, undo, audit and add cases until no frozen decision is the latest one."""
    undone(bench, "case-1", "Ada")
    decide(bench, "case-2", "reject", iteration=1, labels=label_claim("contradicted"))
    decide(bench, "case-4", "approve", "Ben", iteration=1)
    bench.audits.audit(ADA, bench.cases.open("case-3").case)
    decide(bench, "case-3", "approve", iteration=1)
    bench.minimal_evidence.verify(ADA, "case-2")
    bench.modes.code(ADA, "case-1", ["wrong-unit"])
    bench.modes.merge(ADA, ["wrong-date"], "wrong-unit")
    add(bench, 5)


CHOICES = [
    (form, encoding)
    for form, export_format in export_formats().items()
    for encoding in (("jsonl", "csv", "parquet") if export_format.tabular else ("jsonl",))
]


@pytest.mark.slow
def test_every_format_is_rebuilt_byte_for_byte_despite_later_decisions(
    bench: Workbench, tmp_path: Path
) -> None:
    frozen = {}
    for form, encoding in CHOICES:
        name, path = f"{form}-{encoding}", tmp_path / f"{form}-{encoding}"
        bench.exports.write_file(ADA, path, form, ANY, encoding=encoding)
        frozen[name] = read_files(path)
        bench.datasets.freeze(ADA, name, form, ANY, encoding=encoding)
    change_everything(bench)
    for form, encoding in CHOICES:
        name, path = f"{form}-{encoding}", tmp_path / f"{form}-{encoding}"
        bench.exports.write_file(ADA, path, form, ANY, encoding=encoding)
        assert read_files(path) != frozen[name], (
            f"{name}: an export is the same, so that the test shows nothing"
        )
        bench.datasets.write(ADA, name, path)
        again = read_files(path)
        again.pop("manifest.json", None)
        assert again == {
            file: content for file, content in frozen[name].items() if file != "manifest.json"
        }


def test_the_manifest_names_its_version_and_log_position(bench: Workbench, tmp_path: Path) -> None:
    description = "before the second round"
    made = bench.datasets.freeze(
        ADA, "v1", "labels", Selection(shares=SplitShares(50, 25, 25)), description=description
    )
    change_everything(bench)
    bench.datasets.write(ADA, "v1", tmp_path / "out.jsonl")
    manifest = json.loads((tmp_path / "out.jsonl.manifest.json").read_text())
    assert manifest["dataset"]["description"] == description
    assert (manifest["dataset"]["name"], manifest["dataset"]["frozen_by"]) == ("v1", "Ada")
    assert manifest["dataset"]["decision_log"] == {"length": 5, "digest": made.log_digest}
    assert (manifest["shares"], manifest["files"][0]["name"]) == (
        {"train": 50, "validation": 25, "test": 25},
        "out.jsonl",
    )
    assert bench.store.datasets.list_all() == (made,)


def test_one_split_of_a_version_is_unchanged_by_later_decisions(
    bench: Workbench, tmp_path: Path
) -> None:
    sides = Selection(CaseFilter(), "train", SplitShares(50, 25, 25))
    wanted = bench.exports.write(ADA, first := io.BytesIO(), "decided", sides)
    bench.datasets.freeze(ADA, "train", "decided", sides)
    change_everything(bench)
    bench.datasets.write(ADA, "train", tmp_path / "train.jsonl")
    assert 0 < wanted.manifest["counts"]["cases"] < 4
    assert (tmp_path / "train.jsonl").read_bytes() == first.getvalue()


def test_a_version_with_redacted_cases_isnt_written_and_says_why(
    bench: Workbench, tmp_path: Path
) -> None:
    bench.datasets.freeze(ADA, "v1", "labels", ANY)
    bench.datasets.freeze(ADA, "v2", "labels", Selection(CaseFilter(text="penguins")))
    out = tmp_path / "out.jsonl"
    out.write_text("as it was")
    bench.reviews.redact_case(ADA, "case-1", "asked")
    second = bench.store.decisions.current("case-2")
    bench.reviews.redact_entry(ADA, second.id, "names a patient")
    assert str(bench.store.datasets.count_lost("v1")) == "not rebuildable: 2 cases redacted"
    assert str(bench.store.datasets.count_lost("v2")) == "rebuildable"
    with pytest.raises(StoreError, match="not rebuildable: 2 cases redacted"):
        bench.datasets.write(ADA, "v1", out)
    assert out.read_text() == "as it was"
    bench.datasets.freeze(ADA, "v3", "decided", ANY)
    assert str(bench.store.datasets.count_lost("v3")) == "rebuildable", (
        "what was redacted before is no loss"
    )
    bench.datasets.write(ADA, "v3", out)


def test_a_version_reports_audits_removed_by_retention(bench: Workbench) -> None:
    bench.datasets.freeze(ADA, "v1", "claims", ANY)
    with bench.store.transaction():
        bench.store.database.execute("UPDATE jobs SET ended_at = '2020-01-01T00:00:00.000Z'")
    bench.retention.purge(ADA, rule_of(1, decided=False, waiting=True), how="command")
    assert (
        str(bench.store.datasets.count_lost("v1"))
        == "not rebuildable: the audits of 1 case removed by retention"
    )


def test_a_version_that_cant_be_rebuilt_exactly_is_an_error(
    bench: Workbench, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench.datasets.freeze(ADA, "v1", "labels", ANY)
    with monkeypatch.context() as patched:
        changed = export_formats()["labels"].model_copy(update={"columns": ("label",)})
        patched.setitem(export_formats(), "labels", changed)
        with pytest.raises(StoreError, match="can't be rebuilt byte for byte: the format labels"):
            bench.datasets.write(ADA, "v1", tmp_path / "out.jsonl")
    assert not (tmp_path / "out.jsonl").exists()


def test_a_comparison_lists_added_removed_relabeled_moved_and_reaudited_cases(
    bench: Workbench,
) -> None:
    bench.datasets.freeze(ADA, "v1", "decided", Selection())
    decide(bench, "case-2", "reject", iteration=1, labels=label_claim("contradicted"))
    bench.audits.audit(ADA, bench.cases.open("case-3").case)
    decide(bench, "case-3", "reject", iteration=1, labels=label_claim("contradicted"))
    decide(bench, "case-4", "approve", "Ben", iteration=1)
    bench.datasets.freeze(
        ADA, "v2", "decided", Selection(CaseFilter(states=("rejected", "approved")))
    )
    found = bench.datasets.compare("v1", "v2")
    assert {case.case_id: case.kinds for case in found.cases} == {
        "case-1": ("removed",),
        "case-2": ("relabelled",),
        "case-3": ("reaudited",),
        "case-4": ("added",),
    }
    assert next(case for case in found.cases if case.case_id == "case-2").was == (
        "approved",
        "train",
    )
    assert found.counts == {
        "added": 1,
        "removed": 1,
        "relabelled": 1,
        "moved": 0,
        "reaudited": 1,
    }
    assert bench.datasets.compare("v2", "v2").total == 0
    few = bench.datasets.compare("v1", "v2", most=1)
    assert (len(few.cases), few.total, few.counts) == (1, 4, found.counts)


def test_the_same_decision_made_again_isnt_a_relabel(bench: Workbench) -> None:
    bench.datasets.freeze(ADA, "v1", "decided", Selection())
    undone(bench, "case-2", "Ada")
    decide(bench, "case-2", "approve", iteration=1, labels=supported_label())
    bench.datasets.freeze(ADA, "v2", "decided", Selection(shares=SplitShares(0, 0, 100)))
    found = bench.datasets.compare("v1", "v2").cases
    assert {change.kinds for change in found} == {("moved",)}


def test_a_taken_or_invalid_name_is_rejected(bench: Workbench) -> None:
    bench.datasets.freeze(ADA, "v1", "labels", ANY)
    with pytest.raises(StoreError, match="already"):
        bench.datasets.freeze(ADA, "v1", "labels", ANY)
    for name in ("", "../v", "a b", "-v", "v" * 101, "<b>"):
        with pytest.raises(InputError, match="valid name"):
            bench.datasets.freeze(ADA, name, "labels", ANY)
    with pytest.raises(InputError, match="would be empty"):
        bench.datasets.freeze(ADA, "none", "labels", Selection(CaseFilter(text="nowhere")))
    bench.datasets.remove(ADA, "v1")
    with pytest.raises(UnknownRecord):
        bench.store.datasets.get("v1")
    assert bench.datasets.freeze(ADA, "v1", "labels", ANY).rows == 4

"""Exports of decided cases: complete, consistent, and safe in a spreadsheet."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from masis.datasets.exports.export import write_export
from masis.datasets.writers.decisions import COLUMNS, write_log_csv
from masis.datasets.writers.lines import escape_formula
from masis.schema.case import Case
from masis.services import Workbench
from masis.services.maintenance.retention import rule_of
from masis.store.records import DecisionFilter
from tests.cases import case_of
from tests.reviewing import ADA, decide, undone


def case(number: int) -> Case:
    evidence = {"c1": "The bridge is 120 metres long and was opened in 1931."}
    return case_of(f"The bridge is {number} metres long [c1].", evidence, case_id=f"case-{number}")


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Workbench]:
    bench = Workbench.open(tmp_path / "decided.db")
    bench.cases.add(ADA, [case(number) for number in range(1, 7)])
    for number in range(1, 6):
        bench.audits.audit(ADA, case(number))
    yield bench
    bench.store.close()


def test_a_purged_audit_isnt_replaced_by_another_one(bench: Workbench) -> None:
    decide(bench, "case-1", "approve", iteration=1)
    decide(bench, "case-2", "approve")
    decide(bench, "case-3", "override", corrected_answer="120 metres.", reason="read")
    bench.audits.audit(
        ADA, case(2), settings=bench.settings.model_copy(update={"max_iterations": 1})
    )
    later = bench.store.runs.for_case("case-2")[0].id
    bench.store.database.execute("UPDATE jobs SET ended_at = '2099-01-01' WHERE id = ?", [later])
    bench.retention.purge(ADA, rule_of(0, decided=True, now="2098-01-01T00:00:00Z"), how="command")
    out = io.BytesIO()
    assert write_export(bench.store, out, "decided").rows == 3
    lines = [json.loads(line) for line in out.getvalue().splitlines()]
    assert [line["run"] for line in lines] == [None, None, None]
    # The first was approved unchanged. The iteration of the second is no longer known.
    assert [line["answer"] for line in lines] == [case(1).answer, None, "120 metres."]


def lines(bench: Workbench) -> list[dict[str, Any]]:
    out = io.BytesIO()
    written = write_export(bench.store, out, "decided").rows
    found = [json.loads(line) for line in out.getvalue().decode().splitlines()]
    assert len(found) == written
    return found


def rows(bench: Workbench, wanted: DecisionFilter | None = None) -> list[dict[str, str]]:
    out = io.BytesIO()
    write_log_csv(bench.store, out, wanted)
    return list(csv.DictReader(io.StringIO(out.getvalue().decode(), newline="")))


def test_the_usable_answer_is_corrected_or_approved_and_never_of_a_rejected_case(
    bench: Workbench,
) -> None:
    decide(
        bench,
        "case-1",
        "override",
        reason="wrong figure",
        corrected_answer="The bridge is 120 metres long [c1].",
    )
    decide(bench, "case-2", "approve", iteration=1)
    decide(bench, "case-3", "reject", reason="useless")
    decide(bench, "case-4", "escalate")
    found = {line["case"]["id"]: line for line in lines(bench)}
    assert {name: line["state"] for name, line in found.items()} == {
        "case-1": "overridden",
        "case-2": "approved",
        "case-3": "rejected",
        "case-4": "escalated",
    }
    assert found["case-1"]["answer"] == "The bridge is 120 metres long [c1]."
    assert found["case-2"]["answer"] == "The bridge is 2 metres long [c1]."
    assert found["case-3"]["answer"] is None
    assert found["case-4"]["answer"] is None
    assert found["case-1"]["decision"]["decision"]["reviewer"] == "Ada"
    assert found["case-1"]["run"]["versions"]["app"]


def test_every_case_is_written_once_and_unchanged_across_pages(
    bench: Workbench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("masis.datasets.writers.decisions._PAGE", 2)
    monkeypatch.setattr("masis.store.reviews.outcomes.AT_ONCE", 2)
    for number in (5, 3, 1, 2, 4):
        decide(bench, f"case-{number}", "approve")
    found = lines(bench)
    assert [line["case"]["id"] for line in found] == [f"case-{number}" for number in range(1, 6)]
    assert Case.model_validate(found[0]["case"]) == case(1)
    assert len(rows(bench)) == bench.store.decisions.head().length


def test_an_undone_decision_isnt_exported(bench: Workbench) -> None:
    decide(bench, "case-1", "approve")
    undone(bench, "case-1", "Ada")
    assert lines(bench) == []


def test_the_log_as_csv_has_the_matching_entries_oldest_first(bench: Workbench) -> None:
    decide(bench, "case-1", "approve")
    decide(bench, "case-2", "reject", reason="useless", note='a "quoted", long\nnote')
    found = rows(bench, DecisionFilter(kinds=("decision",)))
    assert [row["case_id"] for row in found] == ["case-1", "case-2"]
    assert tuple(found[0]) == COLUMNS
    assert found[1]["note"] == 'a "quoted", long\nnote'


def test_a_redacted_entry_keeps_its_row_but_none_of_its_text(bench: Workbench) -> None:
    decide(bench, "case-1", "reject", reason="names Mr Private")
    entry = bench.store.decisions.entries(DecisionFilter(kinds=("decision",))).rows[0]
    bench.store.decisions.redact(entry.id, by="Ben", reason="personal data")
    found = {row["id"]: row for row in rows(bench)}
    assert found[entry.id]["redacted"] == "yes"
    assert "Private" not in json.dumps(list(found.values()))


@pytest.mark.parametrize(
    "text",
    ["=1+1", "+1", "-1", "@SUM(A1)", "\t=1", "\r\n=cmd|' /C calc'!A0", " =HYPERLINK(1)", "＝1"],
)
def test_the_csv_contains_no_formulas(bench: Workbench, text: str) -> None:
    assert escape_formula(text).startswith("'")
    decide(bench, "case-1", "reject", reason=text, note=text)
    row = next(row for row in rows(bench) if row["kind"] == "decision")
    assert row["reason"] == f"'{text}"
    assert row["note"] == f"'{text}"
    assert escape_formula("plain = text") == "plain = text"

"""Exports of decided cases come back in as the decisions of their reviewers."""

from __future__ import annotations

import csv
import hashlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from masis.datasets.readers.decisions import read_decisions
from masis.errors import InputError
from masis.schema.actor import Actor
from masis.schema.team import LabelType, LabelTypes, QueuePolicy, Rubric, RubricScore
from masis.services import Workbench
from masis.services.desk import DecisionRowResult, Desk
from masis.services.trust.service import TrustFilter
from masis.store.records import CaseFilter
from tests.cases import case_of
from tests.reviewing import submit

CLEO = Actor(name="Cleo")
ANSWER = "The bridge is 120 metres long [c1]. It was opened in 1931 [c1]."
LABELS = [
    {"text": "It was opened in 1931", "label": "contradicted", "note": "1932"},
    {"label": "incomplete", "severity": "low"},
]


def case(number: int) -> Any:
    evidence = {"c1": "The bridge is 120 metres long and was opened in 1932."}
    return case_of(ANSWER, evidence, case_id=f"case-{number}")


@pytest.fixture
def source(tmp_path: Path) -> Iterator[Workbench]:
    """A database with an override, an adjudicated case, and a case whose decision was undone."""
    bench = Workbench.open(tmp_path / "source.db")
    bench.cases.add(CLEO, [case(number) for number in range(1, 4)])
    ada, ben = Desk(bench, reviewer="Ada"), Desk(bench, reviewer="Ben")
    for number in (1, 2, 3):
        bench.audits.audit(CLEO, case(number))
    ada.decide(
        "case-1",
        "override",
        reason="contradicted",
        corrected_answer="It was opened in 1932 [c1].",
        labels=LABELS,
        machine_shown=(),
    )
    undone = ada.decide("case-3", "reject", reason="unclear")
    ada.undo(undone.id)
    bench.team.put_in_force(CLEO, QueuePolicy(reviewers=2, rule="adjudicated"))
    ada.decide("case-2", "reject", reason="contradicted", machine_shown=())
    ben.decide("case-2", "escalate", note="Ask the city.")
    Desk(bench, reviewer="Cleo").adjudicate("case-2", "reject", reason="contradicted")
    yield bench
    bench.close()


@pytest.fixture
def desk(tmp_path: Path) -> Iterator[Desk]:
    bench = Workbench.open(tmp_path / "target.db")
    yield Desk(bench, reviewer="Dora")
    bench.close()


def export_decisions(bench: Workbench, path: Path, **filters: Any) -> Path:
    return Desk(bench, reviewer="Cleo").export("decided", path, **filters)


def import_decisions(desk: Desk, path: Path, **more: Any) -> list[DecisionRowResult]:
    rows = [row for row in read_decisions(path) if isinstance(row, dict)]
    return list(desk.decide_all([{**row, **more} for row in rows]))


@pytest.mark.parametrize("ending", ["jsonl", "parquet"])
def test_decisions_come_back_with_labels_and_final_verdicts_and_only_once(
    source: Workbench, desk: Desk, tmp_path: Path, ending: str
) -> None:
    file = export_decisions(source, tmp_path / f"decided.{ending}")
    results = import_decisions(desk, file)
    assert [
        (result.case, result.verdict, result.outcome, str(result.error)) for result in results
    ] == [
        ("case-1", "override", "imported", "None"),
        ("case-2", "reject", "imported", "None"),
        ("case-2", "escalate", "imported", "None"),
        ("case-2", "reject", "imported", "None"),
    ]
    assert [result.case_added for result in results] == [True, True, False, False]
    made = [result.entry.decision for result in results if result.entry]
    assert [(entry.kind, entry.reviewer) for entry in made] == [
        ("decision", "Ada"),
        ("decision", "Ada"),
        ("decision", "Ben"),
        ("adjudication", "Cleo"),
    ]
    original = source.reviews.current("case-1")
    first = made[0]
    assert first.labels == original.decision.labels
    assert first.corrected_answer == "It was opened in 1932 [c1]."
    assert first.extra["imported"] == {
        "file": hashlib.sha256(file.read_bytes()).hexdigest(),
        "entry": original.id,
        "at": original.at,
        "by": "Dora",
        "machine_shown": [],
    }
    states = {row.id: row.state for row in desk.workbench.cases.find(CaseFilter()).rows}
    assert states == {"case-1": "overridden", "case-2": "rejected"}
    length = desk.workbench.store.decisions.head().length
    assert {row.outcome for row in import_decisions(desk, file)} == {"unchanged"}
    assert desk.workbench.store.decisions.head().length == length
    assert desk.workbench.store.decisions.verify().intact


def test_scores_come_back_if_the_rubric_here_has_them_with_their_values(
    source: Workbench, desk: Desk, tmp_path: Path
) -> None:
    clarity = RubricScore(name="Clarity", low=1, high=5)
    tone, depth = (RubricScore(name=name, categories=("plain", "rude")) for name in ("Tone", "Dep"))
    source.team.put_in_force(CLEO, Rubric(scores=(clarity, tone, depth)))
    scores = {"Clarity": 4, "Tone": "plain", "Dep": "rude"}
    decision = source.reviews.current("case-1").decision
    submit(source, decision.model_copy(update={"rubric_scores": scores, "token": "again"}))
    shorter = RubricScore(name="Tone", categories=("rude",))
    desk.workbench.team.put_in_force(CLEO, Rubric(scores=(clarity, shorter)))
    for result in import_decisions(desk, export_decisions(source, tmp_path / "decided.parquet")):
        decision = result.entry.decision
        assert decision.rubric_scores == ({"Clarity": 4} if result.case == "case-1" else {})
        assert ("team_rubric" in decision.versions) == (result.case == "case-1")
    with export_decisions(source, tmp_path / "decided.csv").open(newline="") as table:
        assert [json.loads(row["rubric_scores"]) for row in csv.DictReader(table)] == [scores, {}]


def test_imported_decisions_never_count_as_blind(
    source: Workbench, desk: Desk, tmp_path: Path
) -> None:
    for result in import_decisions(desk, export_decisions(source, tmp_path / "decided.jsonl")):
        assert result.entry.decision.machine_shown
    desk.workbench.audits.audit(CLEO, case(1))
    report = desk.workbench.trust.compare(CLEO, TrustFilter())
    assert report.answers.n == 0


def test_an_export_adds_nothing_to_its_own_database_or_after_an_undo(
    source: Workbench, desk: Desk, tmp_path: Path
) -> None:
    file = export_decisions(source, tmp_path / "decided.jsonl")
    own = Desk(source, reviewer="Cleo")
    assert {row.outcome for row in import_decisions(own, file)} == {"unchanged"}
    first, *_ = import_decisions(desk, file)
    desk.workbench.reviews.undo(CLEO, first.entry.id)
    assert import_decisions(desk, file)[0].outcome == "unchanged"
    assert desk.workbench.cases.summary("case-1").state == "new"
    # and back again: the way through another database doesn't make it a new decision
    back = export_decisions(desk.workbench, tmp_path / "back.jsonl")
    assert {row.outcome for row in import_decisions(own, back)} == {"unchanged"}


def test_what_cannot_come_back_says_why(source: Workbench, desk: Desk, tmp_path: Path) -> None:
    file = export_decisions(source, tmp_path / "all.jsonl", any_state=True)
    results = {row.case: str(row.error) for row in import_decisions(desk, file) if row.error}
    assert set(results) == {"case-3"}
    assert "no person's decision is in this row" in results["case-3"]
    table = export_decisions(source, tmp_path / "decided.csv")
    (first, *_) = read_decisions(table)
    assert isinstance(first, InputError)
    assert "CSV, which has no labels" in str(first)
    assert "line 2" in str(first)


def test_a_case_decided_here_keeps_its_decision(
    source: Workbench, desk: Desk, tmp_path: Path
) -> None:
    desk.workbench.cases.add(CLEO, [case(1)])
    desk.decide("case-1", "escalate")
    first, *_ = import_decisions(desk, export_decisions(source, tmp_path / "decided.jsonl"))
    assert "has decisions that were made here" in str(first.error)
    assert desk.workbench.cases.summary("case-1").state == "escalated"


def test_the_refusal_of_a_shared_case_does_not_tell_whether_anybody_decided_it(
    source: Workbench, desk: Desk, tmp_path: Path
) -> None:
    file = export_decisions(source, tmp_path / "decided.jsonl")
    desk.workbench.cases.add(CLEO, [case(1), case(2)])
    desk.workbench.team.put_in_force(CLEO, QueuePolicy(reviewers=2, rule="adjudicated"))
    Desk(desk.workbench, reviewer="Eve").decide("case-1", "escalate")
    says = [str(row.error).replace(row.case, "") for row in import_decisions(desk, file)]
    assert len(set(says)) == 1
    assert "is shared between several reviewers here" in says[0]


def test_imports_are_held_to_the_rules_of_decisions(
    source: Workbench, desk: Desk, tmp_path: Path
) -> None:
    file = export_decisions(source, tmp_path / "decided.jsonl")
    line = json.loads(file.read_text().splitlines()[0])
    for entry in (line["decision"], line["decisions"][0]):
        entry["decision"]["corrected_answer"] = "It was opened in 1932 [c9]."
        entry["decision"]["extra"]["signed_in_by"] = "forged"
    file.write_text(json.dumps(line))
    (result,) = import_decisions(desk, file)
    assert "cites “c9”, which doesn't match any evidence" in str(result.error)
    types = LabelTypes(types=(LabelType(name="harsh"),))
    desk.workbench.team.put_in_force(CLEO, types)
    (result,) = import_decisions(desk, file, acknowledge_citations=True)
    assert "'incomplete' isn't a label type" in str(result.error)
    desk.workbench.team.put_in_force(CLEO, LabelTypes())
    (result,) = import_decisions(desk, file, acknowledge_citations=True)
    extra = result.entry.decision.extra
    assert extra["citations_kept"] == ["c9"]
    assert "signed_in_by" not in extra


def test_a_decision_cannot_claim_to_be_imported(desk: Desk) -> None:
    desk.workbench.cases.add(CLEO, [case(1)])
    entry = desk.decide("case-1", "escalate")
    forged = entry.decision.model_copy(
        update={"extra": {"imported": {"entry": "x"}}, "token": None, "about": None}
    )
    assert "imported" not in desk.workbench.reviews.submit(CLEO, forged).decision.extra

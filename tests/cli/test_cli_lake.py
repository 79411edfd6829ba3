"""From a folder of audited cases to the desk and back: imports with a sample, decisions as Parquet, figures."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow.parquet
import pytest

from masis.audit.acceptance import drawn_for_spot_check
from masis.datasets.lake import Origin, audited_row, failed_row, open_lake, write_file
from masis.schema.review import Decision
from masis.schema.team import LakeSample
from masis.services import Workbench
from masis.services.records import CaseFilter
from masis.settings import Settings
from tests.cli.running import Masis
from tests.store.factories import a_case, a_run

ACCEPTED, WAITING, FAILED = 40, 5, 2


@pytest.fixture
def lake(tmp_path: Path) -> Path:
    """47 audited cases: 40 auto-accepted, 5 that need review, one that failed, and a row that is no case."""
    folder = tmp_path / "audited"
    rows: dict[str, list[dict[str, object]]] = {"accepted": [], "needs_review": [], "failed": []}
    for number in range(ACCEPTED + WAITING):
        case = a_case(f"case-{number}")
        run = a_run(case, f"run-{number}", needs_review=number >= ACCEPTED)
        row = audited_row(case, run, Origin(source="answers.jsonl", source_row=number + 1))
        rows[str(row["outcome"])].append(row)
    origin = Origin(source="answers.jsonl", source_row=46)
    rows["failed"] = [
        failed_row(a_case("case-failed"), "the model refused", origin, tries=3),
        failed_row('{"no": "case"}', "query: is missing", Origin(source="answers.jsonl", source_row=47), tries=0),
    ]
    for outcome, found in rows.items():
        (folder / f"outcome={outcome}").mkdir(parents=True)
        with (folder / f"outcome={outcome}" / "part-0.parquet").open("wb") as stream:
            write_file(found, stream)
    return folder


def decide(workbench: Workbench, case_id: str, verdict: str) -> None:
    run = workbench.cases.open(case_id).run
    assert run is not None
    reason = "" if verdict == "approve" else "The evidence does not support it."
    workbench.store.decisions.append(
        Decision(reviewer="Ada", case_id=case_id, run_id=run.id, iteration=1, verdict=verdict, reason=reason)
    )


def test_what_a_person_must_see_comes_with_its_audit_and_a_sample_that_can_be_drawn_again(
    masis: Masis, lake: Path, tmp_path: Path
) -> None:
    database = tmp_path / "desk.db"
    done = masis("import", lake, "--needs-review", "--sample", "25%", "--seed", "7", "--db", database)
    assert done.exit_code == 1, done.output  # the row that is no case
    assert "answers.jsonl, row 47: holds no case that can be brought in: query: is missing" in done.stderr
    drawn = [f"case-{number}" for number in range(ACCEPTED) if LakeSample.draws(_sample(7, 0.25), f"case-{number}")]
    assert 0 < len(drawn) < ACCEPTED
    workbench = Workbench.open(database)
    states = {row.id: row for row in workbench.cases.find(CaseFilter(size=1000)).rows}
    waiting = {f"case-{number}" for number in range(ACCEPTED, ACCEPTED + WAITING)}
    assert set(states) == {*drawn, *waiting, "case-failed"}
    assert {states[name].state for name in (*drawn, *waiting)} == {"needs_review"}
    assert states["case-failed"].state == "new"
    audited = workbench.cases.open(drawn[0]).run
    assert audited is not None
    assert (audited.id, audited.spot_check) == (f"run-{drawn[0].removeprefix('case-')}", True)
    (sample,) = workbench.store.team.samples()
    assert (sample.accepted, sample.drawn, sample.needs_review, sample.failed) == (40, len(drawn), 5, 2)


def _sample(seed: int, share: float) -> LakeSample:
    return LakeSample(place="", share=share, seed=seed, accepted=0, drawn=0, needs_review=0, failed=0)


def test_a_second_import_changes_nothing_and_records_the_sample_once(masis: Masis, lake: Path, tmp_path: Path) -> None:
    database = tmp_path / "desk.db"
    for _ in range(2):
        done = masis("import", lake, "--sample", "50%", "--db", database)
        assert done.exit_code == 0, done.output
    assert "0 cases imported" in done.stderr
    assert len(Workbench.open(database).store.team.samples()) == 1


def test_the_sample_is_drawn_apart_from_the_spot_checks_of_audits() -> None:
    # an audit has taken its spot checks out of what was auto-accepted: by the same draw, no case would be left
    settings = Settings(spot_check_share=0.05, spot_check_seed=0)
    left = [name for name in (f"case-{number}" for number in range(4_000)) if not drawn_for_spot_check(name, settings)]
    drawn = sum(LakeSample.draws(_sample(0, 0.05), name) for name in left)
    assert 0.03 < drawn / len(left) < 0.07


def test_decisions_on_the_sample_estimate_what_passed_unseen(masis: Masis, lake: Path, tmp_path: Path) -> None:
    database = tmp_path / "desk.db"
    masis("import", lake, "--needs-review", "--sample", "50%", "--db", database)
    workbench = Workbench.open(database)
    sampled = [case_id for case_id, _ in workbench.store.team.spot_checks()]
    for number, case_id in enumerate(sampled):
        decide(workbench, case_id, "reject" if number < 2 else "approve" if number < 8 else "escalate")
    decide(workbench, "case-41", "reject")  # it needed review: it says nothing about what passed
    (missed,) = workbench.lake.miss_rates()
    assert (missed.present, missed.decided, missed.wrong) == (len(sampled), 8, 2)
    assert missed.low is not None
    assert missed.high is not None
    assert 0.03 < missed.low < 0.25 < missed.high < 0.66
    shown = masis("metrics", "--db", database)
    assert "8 decided, 2 of them wrong" in shown.stdout
    assert "Miss rate: 25.0% of what was auto-accepted" in shown.stdout
    as_json = json.loads(masis("metrics", "--json", "--db", database).stdout)
    assert as_json["samples"][0]["wrong"] == 2


def test_decisions_go_back_beside_the_lake_and_leave_it_as_it_is(masis: Masis, lake: Path, tmp_path: Path) -> None:
    database = tmp_path / "desk.db"
    masis("import", lake, "--needs-review", "--db", database)
    workbench = Workbench.open(database)
    decide(workbench, "case-42", "reject")
    before = open_lake(str(lake)).count_rows()
    done = masis("export", "--format", "decided", "--out", lake, "--db", database)
    assert done.exit_code == 0, done.output
    (row,) = pyarrow.parquet.read_table(lake / "_decided" / "decided.parquet").to_pylist()
    assert (row["case_id"], row["digest"]) == ("case-42", a_case("case-42").digest())
    assert (row["decision"], row["reviewer"], row["run_id"]) == ("reject", "Ada", "run-42")
    assert json.loads(row["record"])["case"]["id"] == "case-42"
    assert open_lake(str(lake)).count_rows() == before


def test_figures_of_a_lake_are_those_of_its_audits_and_nothing_is_stored(
    masis: Masis, lake: Path, tmp_path: Path
) -> None:
    database = tmp_path / "desk.db"
    shown = masis("metrics", lake)
    assert shown.exit_code == 0, shown.output
    assert "47 cases: 40 accepted (85.1%), 5 needs review (10.6%), 2 failed (4.3%)" in shown.stdout
    masis("import", lake, "--needs-review", "--sample", "100%", "--db", database)
    of_lake = json.loads(masis("metrics", lake, "--json").stdout)
    of_desk = json.loads(masis("metrics", "--json", "--db", database).stdout)
    same = ("runs", "critique_hallucination_rate", "converged_rate", "needs_review_rate", "iterations", "quality")
    for name in (*same, "confidence", "overall", "calls", "input_tokens", "cost_usd"):
        assert of_lake["total"][name] == pytest.approx(of_desk["total"][name]), name
    assert [each["name"] for each in of_lake["periods"]] == [each["name"] for each in of_desk["periods"]]
    assert [each["name"] for each in of_lake["models"]] == [each["name"] for each in of_desk["models"]]
    spreads = {each["measure"]: each for each in of_desk["distributions"]}
    for each in of_lake["distributions"]:
        if each["measure"] in ("iterations", "confidence"):
            assert each == spreads[each["measure"]]


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ((), "say what to bring in"),
        (("--sample", "0"), "write a share as 2% or 0.02"),
        (("--sample", "2%", "--as", "ragas"), "is read alone"),
    ],
)
def test_wrong_use_is_named(masis: Masis, lake: Path, arguments: tuple[str, ...], says: str) -> None:
    done = masis("import", lake, *arguments)
    assert done.exit_code == 2
    assert says in done.stderr


def test_any_other_folder_is_refused(masis: Masis, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    assert "holds no file that can be read" in masis("import", tmp_path / "empty").stderr
    assert "holds no audited cases" in masis("metrics", tmp_path / "empty").stderr

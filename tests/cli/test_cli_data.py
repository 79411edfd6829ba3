"""``masis import``, ``export`` and ``dataset``: files of any format, datasets, and lakes in both
directions.
"""

from __future__ import annotations

import csv
import json
import shutil
import subprocess
import sys
from pathlib import Path

import pyarrow.parquet
import pytest

from masis.audit.acceptance import drawn_for_spot_check
from masis.datasets.lake import RecordOrigin, audited_row, failed_row, open_lake, write_lake_file
from masis.schema.review import Decision
from masis.schema.team import LakeSample, QueuePolicy
from masis.services import Actor, Workbench
from masis.services.records import CaseFilter
from masis.settings import Settings
from tests.cli.running import Masis, case, desk, lines, start
from tests.store.factories import a_case, a_run

FILES = Path(__file__).parents[1] / "datasets" / "mapping" / "files"


def test_a_dry_run_shows_the_first_rows_and_every_problem_and_stores_nothing(
    masis: Masis, tmp_path: Path
) -> None:
    file, database = tmp_path / "ragas.jsonl", tmp_path / "new.db"
    good = (FILES / "ragas-0.4.jsonl").read_text()
    file.write_text(
        good
        + json.dumps({"user_input": 5.5, "retrieved_contexts": {"a": 1}, "response": {"x": 1}})
        + "\n"
    )
    result = masis("import", file, "--dry-run", "--db", database)
    assert result.exit_code == 1
    assert "question  How long is the Marle bridge?" in result.stdout
    assert result.stdout.endswith("1 read as cases, 1 with an answer, 2 chunks of evidence\n")
    assert "line 2, answer: is an object of 'x'" in result.stderr
    assert "line 2, evidence[0]: has no text" in result.stderr
    assert "1 case would be imported, 1 row would not" in result.stderr
    assert not database.exists()


def test_a_suggested_map_can_be_saved_and_reads_the_file(masis: Masis, tmp_path: Path) -> None:
    file, own, database = tmp_path / "own.csv", tmp_path / "own.toml", tmp_path / "new.db"
    file.write_text(
        "frage,belege,antwort,nr\nWie lang ist sie?,\"['Sie ist 120 Meter lang.']\",Sie ist 120 m"
        " lang.,7\n"
    )
    assert masis("import", file, "--db", database).exit_code == 1
    proposed = masis("import", file, "--suggest", "--save", own)
    assert proposed.exit_code == 0, proposed.stderr
    assert "question  Wie lang ist sie?" in proposed.stdout
    assert "Not mapped: nr. Set the id with --map id=KEY" in proposed.stderr
    assert f"Import it: masis import {file} --map {own}" in proposed.stderr
    assert masis("import", file, "--map", own, "--db", database).exit_code == 0
    by_options = (
        masis("import", file, "--suggest").stderr.partition("Import it: masis import ")[2].split()
    )
    assert masis("import", *by_options, "--dry-run").exit_code == 0
    nothing = tmp_path / "nothing.csv"
    nothing.write_text("a,b\n1,2\n")
    assert "Name the keys: --map query=KEY" in masis("import", nothing, "--suggest").stderr
    known = masis("import", FILES / "ragas-0.4.jsonl", "--suggest")
    assert "has the format ragas; options needed: none" in known.stderr


def test_expertqa_and_hagrid_are_read_without_edits(
    masis: Masis, tmp_path: Path, public_data: Path
) -> None:
    examples = Path(__file__).parents[2] / "examples" / "import"
    result = masis("import", public_data / "expertqa_cases.jsonl", "--db", tmp_path / "own.db")
    assert (result.exit_code, "217 cases imported." in result.stderr) == (0, True), result.stderr
    mapped = masis(
        "import",
        public_data / "expertqa_cases.jsonl",
        "--map",
        examples / "expertqa.toml",
        "--db",
        tmp_path / "e.db",
    )
    assert (mapped.exit_code, "217 cases imported." in mapped.stderr) == (0, True), mapped.stderr
    rows = [
        json.loads(line) for line in (public_data / "hagrid_claims.jsonl").read_text().splitlines()
    ]
    # rows without citations have no evidence to audit against
    without = sum(not row["references"] for row in rows)
    result = masis(
        "import",
        public_data / "hagrid_claims.jsonl",
        "--map",
        examples / "hagrid.toml",
        "--db",
        tmp_path / "h.db",
    )
    assert f"{len(rows) - without} cases imported." in result.stderr
    assert f"{without} errors, listed above" in result.stderr
    assert result.stderr.count("evidence: is empty: 'references' has no content") == 5


def peak_mib(*arguments: str | Path) -> float:
    """Run ``masis``, which must succeed, and return its peak memory in MiB."""
    code = (
        "import resource, sys\nfrom masis.cli import main\n"
        "main(sys.argv[1:], standalone_mode=False)\n"
        "print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, *map(str, arguments)],
        capture_output=True,
        text=True,
        cwd=Path(__file__).resolve().parents[2],
        check=False,
    )
    assert done.returncode == 0, done.stderr
    kibibytes = int(done.stdout.splitlines()[-1])
    return kibibytes / 1024 if sys.platform == "linux" else kibibytes / 2**20


@pytest.mark.parametrize(
    "command",
    [
        pytest.param("import", marks=pytest.mark.soak(smoke=7, full=60)),
        pytest.param("audit", marks=pytest.mark.soak(full=60)),
    ],
)
def test_a_large_file_needs_only_the_memory_of_one_line(
    tmp_path: Path, home: Path, command: str, rounds: int
) -> None:
    small, large = tmp_path / "small.jsonl", tmp_path / "large.jsonl"
    filler = "x" * 8_000_000
    small.write_bytes(lines(case("0", filler=filler)))
    with large.open("wb") as file:
        for number in range(rounds):
            file.write(lines(case(str(number), filler=filler)))
    one_line = peak_mib(command, small, "--db", tmp_path / "small.db")
    all_lines = peak_mib(command, large, "--db", tmp_path / "large.db")
    assert all_lines < one_line + 40
    assert Workbench.open(tmp_path / "large.db").store.cases.count() == rounds


@pytest.mark.soak(smoke=5_000, full=100_000)
def test_a_sentence_of_100_000_characters_and_10_000_chunks_are_audited(
    masis: Masis, tmp_path: Path, rounds: int
) -> None:
    file = tmp_path / "cases.jsonl"
    chunks = [
        {"id": str(number), "text": f"Bridge {number} is {number} metres long."}
        for number in range(1, rounds // 10 + 1)
    ]
    file.write_bytes(
        lines(
            case("words", answer="bridge " * (rounds // 7) + "[1]."),
            case("figures", answer="it is 120 metres long and 3 km from Berg, " * (rounds // 42)),
            case("list", answer="- item\n" * (rounds // 7)),
            case("letters", answer="a" * rounds),
            case("brackets", answer="[" * rounds),
            case(
                "chunks",
                answer="Bridge 7 is 7 metres long [7]. Bridge 8 is 9 metres long [8].",
                evidence=chunks,
            ),
        )
    )
    result = masis("audit", file, "--db", tmp_path / "new.db")
    assert result.exit_code == 0, result.stderr
    assert "6 cases audited" in result.stderr


@pytest.fixture(scope="module")
def audited(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two audited cases, one of them in the dataset pilot. Tests must not change them."""
    pilot = case("a", metadata={"dataset": "pilot"})
    workbench = desk(tmp_path_factory.mktemp("datasets") / "audited.db", pilot, case("b"))
    workbench.close()
    return workbench.database


def test_claims_of_matching_cases_are_exported_with_a_manifest(
    masis: Masis, audited: Path, tmp_path: Path
) -> None:
    out = tmp_path / "claims.csv"
    # CSV, because of the file's suffix
    arguments = ("--state", "any", "--dataset", "pilot", "--out", out)
    result = masis("export", "--format", "claims", *arguments, "--db", audited)
    assert result.exit_code == 0, result.output
    with out.open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert {row["case_id"] for row in rows} == {"a"}
    for row in rows:
        assert row["answer"][int(row["start"]) : int(row["end"])] == row["text"]
    manifest = json.loads((tmp_path / "claims.csv.manifest.json").read_text())
    assert manifest["filter"] == {"datasets": ["pilot"]}
    assert manifest["counts"]["rows"] == len(rows)


def test_an_export_without_decisions_is_empty_by_default(masis: Masis, audited: Path) -> None:
    result = masis("export", "--format", "decided", "--db", audited)
    assert (result.exit_code, result.stdout) == (0, "")
    assert "0 rows of 0 cases written." in result.stderr


@pytest.mark.slow
def test_exported_cases_can_be_piped_into_an_audit(masis: Masis, tmp_path: Path) -> None:
    given = [case("a"), case("b", query="Wie lang ist die Brücke?", metadata={"a": [1]})]
    (tmp_path / "cases.jsonl").write_bytes(lines(*given))
    assert masis("import", tmp_path / "cases.jsonl", "--db", tmp_path / "one.db").exit_code == 0
    # Audit into the same database during the export.
    with (
        start("export", "--format", "cases", "--db", tmp_path / "one.db") as exporting,
        start(
            "audit", "-", "--out", "-", "--db", tmp_path / "one.db", stdin=exporting.stdout
        ) as auditing,
    ):
        out, said = auditing.communicate(timeout=100)
        assert (exporting.wait(timeout=100), auditing.returncode) == (0, 0), said
        assert exporting.stderr.read() == "2 lines written.\n"
    assert [json.loads(line)["case_id"] for line in out.splitlines()] == ["a", "b"]
    assert "2 cases audited" in said
    exported = masis("export", "--format", "cases", "--db", tmp_path / "one.db").stdout_bytes
    assert masis("audit", "-", "--db", tmp_path / "other.db", stdin=exported).exit_code == 0
    with Workbench.open(tmp_path / "other.db").store as store:
        assert [store.cases.get(record["id"]).to_json_dict() for record in given] == given


def test_a_file_that_reveals_blinded_results_is_written_with_a_warning(
    masis: Masis, audited: Path, tmp_path: Path
) -> None:
    audited = Path(shutil.copy(audited, tmp_path / "blind.db"))

    def warns(*arguments: str) -> bool:
        result = masis("export", *arguments, "--out", tmp_path / "out", "--db", audited)
        assert result.exit_code == 0, result.output
        return (
            "this shows audit results of 2 undecided cases that the team's policy hides from "
            "reviewers" in result.stderr
        )

    assert not warns("--format", "runs")
    workbench = Workbench.open(audited)
    workbench.team.put_in_force(Actor(name="Lead"), QueuePolicy(machine="after"))
    shown = (
        ("--format", "runs"),
        ("--format", "executions"),
        ("--format", "claims", "--state", "any"),
    )
    assert [warns(*arguments) for arguments in shown] == [True] * 3
    hidden = (
        ("--format", "cases"),
        ("--format", "claims"),
        ("--format", "labels", "--state", "approved"),
    )
    assert not any(warns(*arguments) for arguments in hidden)
    workbench.team.put_in_force(Actor(name="Lead"), QueuePolicy(reviewers=2))
    assert not warns("--format", "runs")
    workbench.close()


ANY = ("--format", "claims", "--state", "any")


def test_a_version_is_frozen_compared_rebuilt_and_removed(
    masis: Masis, audited: Path, tmp_path: Path
) -> None:
    said = masis("dataset", "list", "--db", audited)
    assert (said.exit_code, said.stdout) == (0, "")
    assert "masis dataset freeze" in said.stderr
    made = masis(
        "dataset",
        "freeze",
        "v1",
        *ANY,
        "--description",
        "first\tround",
        "--by",
        "Ada",
        "--db",
        audited,
    )
    assert made.exit_code == 0, made.output
    pilot = masis(
        "dataset", "freeze", "v2", *ANY, "--dataset", "pilot", "--as", "csv", "--db", audited
    )
    assert "of 1 case." in pilot.stderr

    listed = masis("dataset", "list", "--db", audited).stdout.splitlines()
    assert [line.split()[0] for line in listed] == ["name", "v2", "v1"]
    assert "Ada" in listed[2]
    assert listed[2].endswith("first round")
    records = map(
        json.loads, masis("dataset", "list", "--json", "--db", audited).stdout.splitlines()
    )
    assert [record["name"] for record in records] == ["v2", "v1"]

    shown = masis("dataset", "show", "v1", "--db", audited)
    assert json.loads(shown.stdout)["dataset"]["description"] == "first\tround"
    assert "v1 is rebuildable." in shown.stderr

    compared = masis("dataset", "compare", "v1", "v2", "--db", audited)
    assert compared.stdout.splitlines() == ["removed  b  needs_review test -> absent"]
    assert "v1 and v2: 1 removed." in compared.stderr

    out, again = tmp_path / "claims.jsonl", tmp_path / "again.jsonl"
    assert masis("export", *ANY, "--out", out, "--db", audited).exit_code == 0
    assert masis("dataset", "export", "v1", "--out", again, "--db", audited).exit_code == 0
    assert again.read_bytes() == out.read_bytes()
    assert masis("dataset", "export", "v1", "--db", audited).stdout.encode() == out.read_bytes()

    assert masis("dataset", "remove", "v1", "--db", audited).exit_code == 2
    assert masis("dataset", "remove", "v1", "--yes", "--db", audited).exit_code == 0
    assert masis("dataset", "remove", "v2", "--yes", "--db", audited).exit_code == 0


ACCEPTED, WAITING, FAILED = 40, 5, 2


@pytest.fixture
def lake(tmp_path: Path) -> Path:
    """47 audited cases (40 auto-accepted, 5 that need review, 2 failed) and an invalid row."""
    folder = tmp_path / "audited"
    rows: dict[str, list[dict[str, object]]] = {"accepted": [], "needs_review": [], "failed": []}
    for number in range(ACCEPTED + WAITING):
        case = a_case(f"case-{number}")
        run = a_run(case, f"run-{number}", needs_review=number >= ACCEPTED)
        row = audited_row(case, run, RecordOrigin(source="answers.jsonl", source_row=number + 1))
        rows[str(row["outcome"])].append(row)
    origin = RecordOrigin(source="answers.jsonl", source_row=46)
    rows["failed"] = [
        failed_row(a_case("case-failed"), "the model refused", origin, tries=3),
        failed_row(
            '{"no": "case"}',
            "query: is missing",
            RecordOrigin(source="answers.jsonl", source_row=47),
            tries=0,
        ),
    ]
    for outcome, found in rows.items():
        (folder / f"outcome={outcome}").mkdir(parents=True)
        with (folder / f"outcome={outcome}" / "part-0.parquet").open("wb") as stream:
            write_lake_file(found, stream)
    return folder


def decided_on(workbench: Workbench, case_id: str, verdict: str) -> None:
    run = workbench.cases.open(case_id).run
    reason = "" if verdict == "approve" else "The evidence does not support it."
    workbench.store.decisions.append(
        Decision(
            reviewer="Ada",
            case_id=case_id,
            run_id=run.id,
            iteration=1,
            verdict=verdict,
            reason=reason,
        )
    )


def test_runs_that_need_review_are_imported_with_a_reproducible_sample(
    masis: Masis, lake: Path, tmp_path: Path
) -> None:
    database = tmp_path / "desk.db"
    done = masis(
        "import", lake, "--needs-review", "--sample", "25%", "--seed", "7", "--db", database
    )
    assert done.exit_code == 1, done.output  # because of the invalid row
    assert (
        "answers.jsonl, row 47: has no case that can be imported: query: is missing" in done.stderr
    )
    drawn = [
        f"case-{number}"
        for number in range(ACCEPTED)
        if LakeSample.draws(_sample(7, 0.25), f"case-{number}")
    ]
    assert 0 < len(drawn) < ACCEPTED
    workbench = Workbench.open(database)
    states = {row.id: row for row in workbench.cases.find(CaseFilter(size=1000)).rows}
    waiting = {f"case-{number}" for number in range(ACCEPTED, ACCEPTED + WAITING)}
    assert set(states) == {*drawn, *waiting, "case-failed"}
    assert {states[name].state for name in (*drawn, *waiting)} == {"needs_review"}
    assert states["case-failed"].state == "new"
    audited = workbench.cases.open(drawn[0]).run
    assert (audited.id, audited.spot_check) == (f"run-{drawn[0].removeprefix('case-')}", True)
    (sample,) = workbench.store.team.samples()
    assert (sample.accepted, sample.drawn, sample.needs_review, sample.failed) == (
        40,
        len(drawn),
        5,
        2,
    )


def _sample(seed: int, share: float) -> LakeSample:
    return LakeSample(
        place="", share=share, seed=seed, accepted=0, drawn=0, needs_review=0, failed=0
    )


def test_a_second_import_changes_nothing_and_records_the_sample_once(
    masis: Masis, lake: Path, tmp_path: Path
) -> None:
    database = tmp_path / "desk.db"
    for _ in range(2):
        done = masis("import", lake, "--sample", "50%", "--db", database)
        assert done.exit_code == 0, done.output
    assert "0 cases imported" in done.stderr
    assert len(Workbench.open(database).store.team.samples()) == 1


def test_the_sample_is_independent_of_the_spot_checks_of_audits() -> None:
    # The audit's spot checks are no longer auto-accepted, so a sample drawn the same way would be
    # empty.
    settings = Settings(spot_check_share=0.05, spot_check_seed=0)
    left = [
        name
        for name in (f"case-{number}" for number in range(4_000))
        if not drawn_for_spot_check(name, settings)
    ]
    drawn = sum(LakeSample.draws(_sample(0, 0.05), name) for name in left)
    assert 0.03 < drawn / len(left) < 0.07


def test_decisions_on_the_sample_estimate_the_miss_rate(
    masis: Masis, lake: Path, tmp_path: Path
) -> None:
    database = tmp_path / "desk.db"
    masis("import", lake, "--needs-review", "--sample", "50%", "--db", database)
    workbench = Workbench.open(database)
    sampled = workbench.store.trust.spot_checks()["case_id"]
    for number, case_id in enumerate(sampled):
        decided_on(
            workbench, case_id, "reject" if number < 2 else "approve" if number < 8 else "escalate"
        )
    # This case needed review, so it says nothing about accepted cases.
    decided_on(workbench, "case-41", "reject")
    (missed,) = workbench.lake.miss_rates()
    assert (missed.present, missed.decided, missed.wrong) == (len(sampled), 8, 2)
    assert 0.03 < missed.low < 0.25 < missed.high < 0.66
    shown = masis("metrics", "--db", database)
    assert "8 decided, 2 of them wrong" in shown.stdout
    assert "Miss rate: 25.0% of the auto-accepted answers" in shown.stdout
    as_json = json.loads(masis("metrics", "--json", "--db", database).stdout)
    assert as_json["samples"][0]["wrong"] == 2


def test_decisions_are_exported_next_to_the_lake_and_leave_it_unchanged(
    masis: Masis, lake: Path, tmp_path: Path
) -> None:
    database = tmp_path / "desk.db"
    masis("import", lake, "--needs-review", "--db", database)
    workbench = Workbench.open(database)
    decided_on(workbench, "case-42", "reject")
    before = open_lake(str(lake)).count_rows()
    done = masis("export", "--format", "decided", "--out", lake, "--db", database)
    assert done.exit_code == 0, done.output
    (row,) = pyarrow.parquet.read_table(lake / "_decided" / "decided.parquet").to_pylist()
    assert (row["case_id"], row["digest"]) == ("case-42", a_case("case-42").digest())
    assert (row["decision"], row["reviewer"], row["run_id"]) == ("reject", "Ada", "run-42")
    assert json.loads(row["record"])["case"]["id"] == "case-42"
    assert open_lake(str(lake)).count_rows() == before


def test_metrics_of_a_lake_match_its_audits_and_store_nothing(
    masis: Masis, lake: Path, tmp_path: Path
) -> None:
    database = tmp_path / "desk.db"
    shown = masis("metrics", lake)
    assert shown.exit_code == 0, shown.output
    assert "47 cases: 40 accepted (85.1%), 5 needs review (10.6%), 2 failed (4.3%)" in shown.stdout
    masis("import", lake, "--needs-review", "--sample", "100%", "--db", database)
    of_lake = json.loads(masis("metrics", lake, "--json").stdout)
    of_desk = json.loads(masis("metrics", "--json", "--db", database).stdout)
    same = (
        "runs",
        "critique_hallucination_rate",
        "converged_rate",
        "needs_review_rate",
        "iterations",
        "quality",
    )
    for name in (*same, "confidence", "overall", "calls", "input_tokens", "cost_usd"):
        assert of_lake["total"][name] == pytest.approx(of_desk["total"][name]), name
    assert [period["name"] for period in of_lake["periods"]] == [
        period["name"] for period in of_desk["periods"]
    ]
    assert [model["name"] for model in of_lake["models"]] == [
        model["name"] for model in of_desk["models"]
    ]
    spreads = {distribution["measure"]: distribution for distribution in of_desk["distributions"]}
    for distribution in of_lake["distributions"]:
        if distribution["measure"] in ("iterations", "confidence"):
            assert distribution == spreads[distribution["measure"]]


def test_metrics_of_a_lake_say_that_no_case_matches(masis: Masis, lake: Path) -> None:
    shown = masis("metrics", lake, "--dataset", "no such data set")
    assert shown.exit_code == 0, shown.output
    assert "No cases match." in shown.stdout


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ((), "to select the cases"),
        (("--sample", "0"), "write a share as 2% or 0.02"),
        (("--sample", "2%", "--as", "ragas"), "on its own"),
    ],
)
def test_a_usage_error_is_explained(
    masis: Masis, lake: Path, arguments: tuple[str, ...], says: str
) -> None:
    done = masis("import", lake, *arguments)
    assert done.exit_code == 2
    assert says in done.stderr

"""``masis metrics``, ``trust`` and ``bench``: figures for people and as JSON."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from masis.schema.review import Decision
from masis.services import Workbench, demo_case_files
from tests.cli.running import Masis, case, lines
from tests.reviewing import ADA
from tests.store.factories import a_case, a_run

SOUND = "The bridge is 120 metres long [1]."


@pytest.fixture
def audited(masis: Masis, tmp_path: Path) -> Path:
    """A database with three audits, one with a fabricated reference."""
    file, database = tmp_path / "cases.jsonl", tmp_path / "metrics.db"
    file.write_bytes(lines(case("1"), case("2", answer=SOUND), case("3", answer=SOUND)))
    assert masis("audit", file, "--db", database).exit_code == 0
    return database


def test_metrics_are_printed_for_people(masis: Masis, audited: Path) -> None:
    done = masis("metrics", "--db", audited)
    assert done.exit_code == 0
    assert "3 runs" in done.stdout
    row = next(line for line in done.stdout.splitlines() if line.startswith("all"))
    assert " 33% " in row
    assert "critic offline" in done.stdout
    critic = next(line for line in done.stdout.splitlines() if line.startswith("Critic"))
    assert critic.endswith("15 s met")


@pytest.mark.spec("DRAFT-CRITIQUE-METRICS")
def test_metrics_as_json_use_the_names_of_the_spec(masis: Masis, audited: Path) -> None:
    found = json.loads(masis("metrics", "--db", audited, "--json").stdout)
    total = found["total"]
    assert total["runs"] == 3
    assert total["critique_hallucination_rate"] == pytest.approx(1 / 3)
    assert {
        "critique_revision_rate",
        "critique_latency_ms",
        "critique_confidence_avg",
        "claims_per_draft",
    } <= set(total)
    assert {distribution["measure"] for distribution in found["distributions"]} >= {
        "critic_ms",
        "reviser_ms",
        "loop_ms",
        "iterations",
    }
    assert [model["name"] for model in found["models"]] == ["offline"]


@pytest.mark.parametrize(
    ("arguments", "runs"),
    [
        (("--since", "1d"), 3),
        (("--since", "2999-01-01"), 0),
        (("--until", "2020-01-01"), 0),
        (("--model", "offline"), 3),
        (("--model", "openai:gpt-4o"), 0),
        (("--role", "reviser", "--model", "offline"), 3),
        (("--dataset", "none such"), 0),
    ],
)
def test_metrics_can_be_filtered(
    masis: Masis, audited: Path, arguments: tuple[str, ...], runs: int
) -> None:
    found = json.loads(masis("metrics", "--db", audited, "--json", *arguments).stdout)
    assert found["total"]["runs"] == runs
    assert (found["total"]["critique_hallucination_rate"] is None) is (runs == 0)


def test_metrics_without_a_matching_run_say_so(masis: Masis, audited: Path) -> None:
    done = masis("metrics", "--db", audited, "--since", "2999-01-01")
    assert (done.exit_code, done.stdout) == (0, "No finished runs match.\n")


@pytest.mark.slow
def test_the_files_of_a_folder_are_measured_together_next_to_the_baselines(
    masis: Masis, tmp_path: Path
) -> None:
    folder = tmp_path / "cases"
    folder.mkdir()
    for file in demo_case_files()[:2]:
        (folder / file.name).write_bytes(b"".join(file.read_bytes().splitlines(keepends=True)[:40]))
    result = masis("bench", folder, "--half", "all", "--bootstrap", "10", "--json")
    assert result.exit_code == 0, result.stderr
    report = json.loads(result.stdout)
    assert report["file"] == str(folder)
    assert "always positive" in result.stdout
    assert "word overlap" in result.stdout


@pytest.mark.slow
def test_files_that_cant_be_measured_are_named_and_the_others_are_measured(
    masis: Masis, tmp_path: Path
) -> None:
    contents = {
        "unlabelled": lines(case("a")),
        "broken": b"{oops\n",
        "empty": b"",
        "latin": b'{"id": "\xe9"}\n',
    }
    for name, content in contents.items():
        (tmp_path / f"{name}.jsonl").write_bytes(content)
    files = [tmp_path / f"{name}.jsonl" for name in contents]
    result = masis("bench", *files, demo_case_files()[0], "--half", "all", "--bootstrap", "10")
    assert result.exit_code == 1
    assert all(f"{name}.jsonl" in result.stderr for name in contents)
    assert "4 files couldn't be measured; the errors are listed above." in result.stderr
    assert "Traceback" not in result.stderr
    assert "auditor" in result.stdout


def test_trust_figures_are_printed_for_people_and_as_json(masis: Masis, tmp_path: Path) -> None:
    database = tmp_path / "trust.db"
    workbench = Workbench.open(database)
    case = a_case()
    workbench.cases.add(ADA, [case])
    workbench.audits.store_run(ADA, a_run(case))
    workbench.store.decisions.append(
        Decision(
            reviewer="Ada",
            case_id=case.id,
            run_id="run-1",
            iteration=1,
            verdict="reject",
            reason="Wrong",
        )
    )
    workbench.close()
    printed = masis("trust", "--db", database).stdout
    assert (
        "Can answers be accepted without a person?\n  No, there is no evidence for that yet"
        in printed
    )
    assert "precision  100% (1 of 1; 95% interval 2.5% to 100%)" in printed
    found = json.loads(masis("trust", "--json", "--db", database).stdout)
    assert found["machine"]["precision"]["value"] == 1.0
    assert found["guarantee"] is None
    assert masis("trust", "--fit", "--db", database).exit_code == 1

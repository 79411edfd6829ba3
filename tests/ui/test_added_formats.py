"""Export formats and import profiles that another package adds by one entry each."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner

import masis
from masis.cli import main
from masis.datasets.exports.export import Selection
from masis.datasets.exports.formats import export_formats
from masis.datasets.loading import suggest
from masis.datasets.mapping.profile import import_profiles
from masis.services import Workbench
from masis.services.arrivals.ingestion import ProgramSource
from masis.services.records import CaseFilter
from tests.plugins import install_package
from tests.reviewing import ADA
from tests.ui.conftest import open_page

EXPORT = """
from masis.datasets.exports.formats import export_format


@export_format("the length of each answer", columns=("length",), balance=("length",))
def lengths(judged):
    if not judged.answer:
        return "no answer"
    return [{"length": len(judged.answer)}]


def write(rows, out, columns):
    for row in rows:
        out.write(f"{row['length']}\\n".encode())


@export_format("the same as plain text", suffix=".txt", write=write)
def plain(judged):
    return [{"length": len(judged.answer)}]


@export_format("an imposter")
def decided(judged):
    return "never"
"""
PROFILE = """
title = "Logs of the house's assistant"
required = ["house.asked", "house.said"]
query = "house.asked"
answer = "house.said"
evidence = "house.read"
"""
ENTRY_POINTS = """
[masis.exports]
lengths = house_exports:lengths
lengths-plain = house_exports:plain
decided = house_exports:decided
broken = house_exports:missing
no-format = house_exports:write
[masis.profiles]
house = house_profiles
broken = house_nowhere
"""
LINE = {
    "house": {
        "asked": "How long is the bridge?",
        "said": "It is 120 metres long [1].",
        "read": ["The bridge is 120 metres long."],
    }
}


@pytest.fixture(autouse=True)
def package(tmp_path: Path) -> Iterator[None]:
    """A package that adds two formats and a profile, and more that can't be loaded."""
    files = {
        "house_exports.py": EXPORT,
        "house_profiles/__init__.py": "",
        "house_profiles/house-logs.toml": PROFILE,
        "house_profiles/cases.toml": PROFILE,
    }
    with install_package(tmp_path / "site", ENTRY_POINTS, files):
        yield


def test_a_package_adds_formats_but_replaces_none_of_ours(
    caplog: pytest.LogCaptureFixture,
) -> None:
    assert list(export_formats())[-2:] == ["lengths", "lengths-plain"]
    assert export_formats()["decided"].make is None
    assert "can't load house_exports:missing" in caplog.text
    assert "house_exports:write isn't a Format" in caplog.text


def test_an_added_format_is_written_frozen_and_offered(
    audited_workbench: Workbench, tmp_path: Path
) -> None:
    selection = Selection(CaseFilter())
    written = audited_workbench.exports.write_file(
        ADA, tmp_path / "a.csv", "lengths", selection, encoding="csv"
    )
    with (tmp_path / "a.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert all(int(row["length"]) == len(row["answer"]) for row in rows)
    assert len(rows) == written.rows > 0
    assert sum(written.manifest["class_balance"]["length"].values()) == written.rows
    version = audited_workbench.datasets.freeze(ADA, "v1", "lengths", selection)
    assert version.rows == written.rows
    options = open_page("queue").selectbox(key="export-format").options
    assert [option.partition(":")[0] for option in options] == [*export_formats()]
    page = open_page("datasets", state="needs_review")
    assert "lengths: the length of each answer" in page.selectbox(key="dataset-format").options


def test_the_command_writes_an_added_format_with_a_writer_of_its_own(
    audited_workbench: Workbench, tmp_path: Path
) -> None:
    out = tmp_path / "lengths.txt"
    database = ["--db", str(audited_workbench.database)]
    done = CliRunner().invoke(
        main,
        ["export", "--format", "lengths-plain", "--state", "any", "--out", str(out), *database],
    )
    assert done.exit_code == 0, done.stderr
    assert all(line.isdigit() for line in out.read_text().splitlines())
    refused = CliRunner().invoke(main, ["export", "--format", "length", "--out", "x", *database])
    assert "'lengths-plain'" in refused.stderr


def test_an_added_profile_is_detected_named_and_ingested(tmp_path: Path) -> None:
    file = tmp_path / "logs.jsonl"
    file.write_text(json.dumps(LINE) + "\n", encoding="utf-8")
    assert list(import_profiles())[-1] == "house-logs"
    assert import_profiles()["cases"].is_own
    assert suggest(file).format == "house-logs"
    for profile in (None, "house-logs"):
        (case,) = masis.read_cases(file, profile=profile)
        assert (case.query, case.answer) == (LINE["house"]["asked"], LINE["house"]["said"])
    done = CliRunner().invoke(
        main, ["import", str(file), "--as", "house-logs", "--db", str(tmp_path / "a.db")]
    )
    assert done.exit_code == 0, done.stderr
    assert (
        ProgramSource(name="logs", token_sha256="0" * 64, profile="house-logs").profile
        == "house-logs"
    )

"""``masis dataset guarantee``: from the number of labels that are needed to the result."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from masis.datasets.exports.export import Selection
from masis.services import Workbench
from tests.cli.running import Masis
from tests.planted import fill_with_approved
from tests.reviewing import ADA, decide


@pytest.fixture
def frozen(masis: Masis, tmp_path: Path) -> Path:
    """A database with six answers that Ada approved, frozen as v1."""
    database = tmp_path / "labels.db"
    workbench = Workbench.open(database)
    fill_with_approved(workbench, 6)
    workbench.datasets.freeze(ADA, "v1", "decided", Selection())
    workbench.close()
    return database


def test_a_guarantee_is_drawn_shown_and_part_of_the_manifest(masis: Masis, frozen: Path) -> None:
    rate = ("--rate", "20%", "--db", frozen)
    needed = masis("dataset", "guarantee", "needed", "v1", *rate)
    assert "at most 20.0% of 6 labels are wrong, at 95.0%" in needed.stdout
    assert "another person labels 5 if none is wrong, 6 if one is" in needed.stdout
    assert "No sample" in masis("dataset", "guarantee", "show", "v1", "--db", frozen).stderr
    drawn = masis("dataset", "guarantee", "draw", "v1", "--to", "Ben", "--json", *rate)
    record = json.loads(drawn.stdout)
    assert (record["status"], record["remaining"], record["wrong"]) == ("open", 5, None)
    assert "case_ids" not in record["plan"]
    workbench = Workbench.open(frozen)
    for item in workbench.store.relabelling.list_drawn(1):
        decide(workbench, item.copy_id, "approve", "Ben")
    workbench.close()
    shown = masis("dataset", "guarantee", "show", "v1", "--db", frozen).stdout
    assert "Holds: at most 20.0% of 6 labels are wrong" in shown
    manifest = json.loads(masis("dataset", "show", "v1", "--json", "--db", frozen).stdout)
    assert manifest["guarantee"]["relabelled_by"] == ["Ben"]


def test_an_open_sample_is_withdrawn(masis: Masis, frozen: Path) -> None:
    masis("dataset", "guarantee", "draw", "v1", "--to", "Ben", "--rate", "20%", "--db", frozen)
    done = masis("dataset", "guarantee", "withdraw", "v1", "--db", frozen)
    assert "5 copies withdrawn." in done.stderr
    assert "Withdrawn" in masis("dataset", "guarantee", "show", "v1", "--db", frozen).stdout

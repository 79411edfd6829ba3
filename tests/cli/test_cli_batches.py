"""Actions on many cases by command: preview, apply, undo, list, and labels on a sentence."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from masis.services import Workbench
from tests.cli.running import Masis, case, desk

SAME = "The bridge is 120 metres long [1]. It was opened in 1931 [9]."


@pytest.fixture
def database(tmp_path: Path) -> Path:
    """Three audited cases with the same fabricated reference, and one with another answer."""
    path = tmp_path / "desk.db"
    other = case("other", answer="It is painted grey [7].")
    desk(path, *(case(name, answer=SAME) for name in ("a", "b", "c")), other).close()
    return path


@pytest.fixture
def run(masis: Masis, database: Path) -> Any:
    return lambda *arguments: masis("batch", *arguments, "--by", "Ada", "--db", database)


def states(database: Path) -> dict[str, str]:
    workbench = Workbench.open(database)
    found = {name: workbench.cases.summary(name).state for name in ("a", "b", "c", "other")}
    workbench.close()
    return found


def test_near_duplicates_are_rejected_at_once_listed_and_undone(run: Any, database: Path) -> None:
    preview = run("preview", "reject", "--similar-to", "a", "--why", "unsupported")
    assert preview.stdout.splitlines() == ["Reject: 2 of 2 cases"]
    assert set(states(database).values()) == {"needs_review"}
    applied = run("apply", "reject", "--similar-to", "a", "--why", "unsupported", "--yes")
    assert applied.exit_code == 0, applied.stderr
    assert applied.stdout.splitlines() == ["Rejected 2 cases."]
    assert states(database) == {
        "a": "needs_review",
        "b": "rejected",
        "c": "rejected",
        "other": "needs_review",
    }
    (listed,) = map(json.loads, run("list", "--json").stdout.splitlines())
    assert (listed["action"], listed["recorded"], listed["by"]) == ("reject", 2, "Ada")
    assert f"masis batch undo {listed['id']}" in applied.stderr
    undone = run("undo", listed["id"])
    assert undone.stdout.splitlines() == ["Undone: 2 of 2 entries."]
    assert set(states(database).values()) == {"needs_review"}
    assert run("list").stdout.splitlines()[1].endswith("0, 2 undone")


def test_a_preview_lists_serious_issues_that_apply_acknowledges(run: Any, database: Path) -> None:
    preview = run("preview", "approve", "--case", "a", "--case", "b")
    assert "Approve: 0 of 2 cases" in preview.stdout
    assert "left out 2: has serious open issues" in preview.stdout
    assert "(a, b)" in preview.stdout
    assert "The reference '9' names no evidence of this case." in preview.stdout
    refused = run("apply", "approve", "--case", "a", "--yes")
    assert refused.exit_code == 1
    assert "no case is left for this action" in refused.stderr
    applied = run("apply", "approve", "--case", "a", "--acknowledge", "--yes")
    assert applied.exit_code == 0, applied.stderr
    assert states(database)["a"] == "approved"


def test_applying_asks_first_and_names_cases_or_filters(run: Any, database: Path) -> None:
    asked = run("apply", "tag", "--name", "dates", "--case", "a")
    assert (asked.exit_code, "pass --yes" in asked.stderr) == (2, True)
    assert "Tag: 1 of 1 case" in asked.stderr
    both = run("apply", "tag", "--name", "dates", "--case", "a", "--search", "bridge", "--yes")
    assert both.exit_code == 2
    tagged = run("apply", "tag", "--name", "dates", "--search", "grey", "--yes", "--json")
    assert json.loads(tagged.stdout)["recorded"] == 1
    again = run("preview", "untag", "--name", "dates", "--tagged", "dates", "--json")
    assert json.loads(again.stdout)["included"] == 1
    assert run("apply", "label", "--yes").exit_code == 2


def test_a_sentence_is_labeled_once_for_all_cases_that_one_decided(
    masis: Masis, run: Any, database: Path
) -> None:
    for name in ("a", "b"):
        by = ("--by", "Ada", "--db", database)
        assert masis("decide", name, "reject", "--reason", "unsupported", *by).exit_code == 0
    labelled = masis("label", "a", "unsupported", "opened in 1931", "--all-with-sentence", *by)
    assert labelled.exit_code == 0, labelled.stderr
    assert labelled.stdout.splitlines() == ["Labeled the sentence in 2 cases."]
    workbench = Workbench.open(database)
    labels = [
        label.text
        for name in ("a", "b", "c")
        for entry in workbench.reviews.individual(name)
        if entry.decision
        for label in entry.decision.labels
    ]
    assert labels == ["opened in 1931"] * 2
    workbench.close()
    assert masis("label", "a", "unsupported", "--all-with-sentence", *by).exit_code == 2

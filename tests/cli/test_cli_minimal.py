"""``masis minimal`` verifies claims again without their passages, and lists the results."""

from __future__ import annotations

import json
from pathlib import Path

from tests.cli.running import Masis, case, desk

ANSWER = "The bridge is 120 metres long [1]. It was opened in 1931 [2]."


def test_claims_are_verified_without_their_passages_listed_and_exported(
    masis: Masis, tmp_path: Path
) -> None:
    database = tmp_path / "desk.db"
    desk(database, case("a", answer=ANSWER)).close()
    options = ("--by", "Ada", "--db", database)
    shown = masis("minimal", "a", "--claim", "1", *options)
    assert shown.exit_code == 0, shown.stderr
    assert shown.stdout.splitlines() == [
        "claim 1: The bridge is 120 metres long [1].",
        "  without 1: The bridge is 120 metres long.",
        "  supported -> unverifiable: the passages decide it (offline)",
    ]
    assert "The verdict changed for 1 of 1 claim." in shown.stderr
    record = json.loads(masis("minimal", "a", "--stored", "--json", *options).stdout)
    assert (record["case"], record["claims"], record["decisive"]) == ("a", 1, 1)
    assert (record["results"][0]["after"], record["results"][0]["by"]) == ("unverifiable", "Ada")
    pairs = masis("export", "--format", "contrast", "--state", "any", "--db", database)
    (row,) = map(json.loads, pairs.stdout.splitlines())
    assert row["without_passages"]["evidence"][0]["text"] == ""
    assert row["with_passages"]["evidence"][0]["text"] == "The bridge is 120 metres long."


def test_a_claim_that_does_not_exist_is_an_error_that_names_it(
    masis: Masis, tmp_path: Path
) -> None:
    database = tmp_path / "desk.db"
    desk(database, case("a", answer=ANSWER)).close()
    refused = masis("minimal", "a", "--claim", "9", "--db", database)
    assert refused.exit_code == 1
    assert "claim: is 9, and the answer has 2 claims" in refused.stderr
    assert "There are no results." in masis("minimal", "a", "--stored", "--db", database).stderr

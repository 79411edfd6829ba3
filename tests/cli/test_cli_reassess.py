"""``masis db reassess``: shows first what the current acceptance rule would change, then does it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from masis.services import Workbench
from tests.cli.running import Masis
from tests.services.test_reassessment import AFTER, BEFORE, RIGHT, SETTINGS, WRONG, judged_before, states

pytestmark = pytest.mark.slow


@pytest.fixture
def database(tmp_path: Path) -> Path:
    path = tmp_path / "old.db"
    bench = Workbench.open(path, SETTINGS)
    judged_before(bench, "sound", RIGHT, accepted=True)
    judged_before(bench, "faulty", WRONG, accepted=True)
    judged_before(bench, "waits rightly", WRONG, accepted=False)
    judged_before(bench, "waits for nothing", RIGHT, accepted=False)
    bench.close()
    return path


def states_of(path: Path) -> dict[str, str]:
    bench = Workbench.open(path)
    found = states(bench)
    bench.close()
    return found


def test_a_dry_run_says_what_would_change_and_why_and_changes_nothing(
    masis: Masis, database: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MASIS_SPOT_CHECK_SHARE", "0")
    result = masis("db", "reassess", "--dry-run", "--db", database)
    assert result.exit_code == 0
    assert "1 auto-accepted answer would now need review." in result.stderr
    assert "1 answer that needed review would now be auto-accepted." in result.stderr
    assert "invalid_reference: 1" in result.stderr
    assert states_of(database) == BEFORE


def test_without_a_yes_it_changes_nothing_and_with_one_it_does_what_it_showed(
    masis: Masis, database: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MASIS_SPOT_CHECK_SHARE", "0")
    unasked = masis("db", "reassess", "--db", database)
    assert (unasked.exit_code, "say --yes" in unasked.stderr) == (2, True)
    assert states_of(database) == BEFORE
    result = masis("db", "reassess", "--yes", "--by", "Grace", "--json", "--db", database)
    assert result.exit_code == 0, result.stderr
    found = json.loads(result.stdout)
    assert (found["accepted_to_needs_review"], found["needs_review_to_accepted"], found["applied"]) == (1, 1, True)
    assert states_of(database) == AFTER
    nothing = masis("db", "reassess", "--db", database)
    assert (nothing.exit_code, "There is nothing to reassess." in nothing.stderr) == (0, True)

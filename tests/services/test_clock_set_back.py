"""Times from before the clock was set back don't hold anything up until it reaches them again."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from masis.errors import CaseHeld
from masis.schema.actor import Actor
from masis.services import Workbench
from masis.services.maintenance.backups import make_if_due
from masis.services.maintenance.health import check_backups
from masis.services.records import CaseFilter
from masis.settings import Settings
from tests.store.factories import a_case, an_audited_case

ADA, BEN = Actor(name="Ada"), Actor(name="Ben")
AHEAD = timedelta(days=365)


def now_text(ahead: timedelta = timedelta()) -> str:
    return f"{datetime.now(UTC) + ahead:%Y-%m-%dT%H:%M:%S}.000Z"


def test_a_lease_from_the_future_ends(bench: Workbench, monkeypatch: pytest.MonkeyPatch) -> None:
    an_audited_case(bench.store, a_case())
    with monkeypatch.context() as patch:
        patch.setattr(bench.store.database, "now", lambda: now_text(AHEAD))
        bench.team.claim(ADA, "case-1")
        with pytest.raises(CaseHeld):
            bench.team.claim(BEN, "case-1")
    [facts] = bench.store.batches.facts(["case-1"], "Ben")
    assert not facts.held
    lease = bench.team.claim_next(BEN, CaseFilter())
    assert lease is not None
    assert lease.reviewer == "Ben"
    assert bench.team.claim_next(ADA, CaseFilter()) is None, "a current lease still holds the case"


def test_a_notice_that_was_postponed_in_the_future_is_delivered(
    bench: Workbench, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = bench.store
    store.inbox.report(on=True)
    an_audited_case(store, a_case())
    with store.database.transaction() as connection:
        connection.execute(
            "INSERT INTO notices (case_seq, event, at) VALUES (1, 'case.decided', '')"
        )
    [notice] = store.inbox.due(9)
    with monkeypatch.context() as patch:
        patch.setattr(store.database, "now", lambda: now_text(AHEAD))
        store.inbox.postpone(notice, timedelta(hours=1))
        assert store.inbox.due(9) == []
    assert [due.id for due in store.inbox.due(9)] == [notice.id]
    store.inbox.postpone(notice, timedelta(hours=1))
    assert store.inbox.due(9) == []


def test_backups_go_on_and_the_new_one_is_kept(bench: Workbench, tmp_path: Path) -> None:
    folder = tmp_path / "backups"
    settings = Settings(backup_folder=str(folder), backup_hours=24, backup_keep=2)
    now = datetime(2026, 3, 1, 12, tzinfo=UTC)
    for day in range(2):
        assert make_if_due(bench.backups, settings, now + AHEAD + timedelta(days=day))
    [item] = check_backups(bench.backups, settings, now)
    assert not item.ok, "a backup from the future isn't a recent one"
    made = make_if_due(bench.backups, settings, now)
    assert made is not None
    assert Path(made.check.path).is_file()
    assert make_if_due(bench.backups, settings, now + timedelta(hours=1)) is None
    [item] = check_backups(bench.backups, settings, now)
    assert item.ok

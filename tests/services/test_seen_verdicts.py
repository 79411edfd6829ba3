"""A decision counts as blind only if its reviewer can't have seen the machine's verdict before."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest

from masis.schema.actor import Actor
from masis.schema.review import SHOWN_UNKNOWN, Decision
from masis.schema.team import QueuePolicy
from masis.services import Workbench
from masis.services.maintenance.retention import rule_of
from masis.settings import load
from masis.settings.reference import all_rows
from tests.reviewing import having_seen
from tests.store.factories import a_case, an_audited_case

ADA, BEN = Actor(name="Ada"), Actor(name="Ben")
LEA = Actor(name="Lea", roles=("lead",), authenticated=True)


@pytest.fixture
def workbench(bench: Workbench) -> Workbench:
    """Two audited cases, whose verdict is hidden until a decision."""
    for number in (1, 2):
        an_audited_case(bench.store, a_case(f"case-{number}"), f"run-{number}")
    bench.team.put_in_force(ADA, QueuePolicy(machine="after"))
    return bench


def decide(workbench: Workbench, who: Actor, case: str = "case-1") -> tuple[str, tuple[str, ...]]:
    decision = Decision(
        reviewer=who.name, case_id=case, run_id=None, verdict="reject", reason="read"
    )
    entry = workbench.reviews.submit(who, having_seen(workbench, decision))
    assert entry.decision is not None
    return entry.id, entry.decision.machine_shown


def blind(workbench: Workbench) -> int:
    return int(workbench.store.database.value("SELECT sum(blind) FROM decision_payloads") or 0)


def test_a_decision_after_an_undone_one_is_not_blind(workbench: Workbench) -> None:
    entry, shown = decide(workbench, ADA)
    assert shown == ()
    workbench.reviews.undo(ADA, entry)
    assert decide(workbench, ADA)[1] == (SHOWN_UNKNOWN,)
    assert decide(workbench, BEN, "case-2")[1] == ()


def test_a_decision_after_the_verdict_was_opened_is_not_blind(workbench: Workbench) -> None:
    """The verdict was shown while another policy was in force."""
    workbench.team.put_in_force(ADA, QueuePolicy(machine="first"))
    workbench.cases.note_opened(ADA, "case-1")
    workbench.team.put_in_force(ADA, QueuePolicy(machine="never"))
    workbench.cases.note_opened(BEN, "case-2")
    assert decide(workbench, ADA)[1] == (SHOWN_UNKNOWN,)
    assert decide(workbench, BEN, "case-2")[1] == ()
    assert blind(workbench) == 1


def test_a_verdict_that_is_never_shown_leaves_a_second_decision_blind(
    workbench: Workbench,
) -> None:
    workbench.team.put_in_force(ADA, QueuePolicy(machine="never", reviewers=2))
    entry, _ = decide(workbench, ADA)
    workbench.reviews.undo(ADA, entry)
    assert decide(workbench, ADA)[1] == ()


@pytest.mark.parametrize("policy", [QueuePolicy(machine="after"), QueuePolicy(reviewers=2)])
def test_a_plan_of_removals_is_hidden_under_a_blind_policy(
    workbench: Workbench, policy: QueuePolicy
) -> None:
    workbench.team.put_in_force(ADA, policy)
    rule = rule_of(1, waiting=False)
    assert workbench.retention.hides_plan_from(ADA)
    assert workbench.retention.plan(ADA, rule) is None
    assert workbench.retention.plan(LEA, rule) is not None
    workbench.team.put_in_force(ADA, QueuePolicy())
    assert workbench.retention.plan(ADA, rule) is not None


def test_partial_copies_of_an_earlier_day_are_removed_with_the_next_backup(
    bench: Workbench, tmp_path: Path
) -> None:
    folder = tmp_path / "backups"
    folder.mkdir()
    stem = bench.store.path.stem
    now = datetime(2026, 3, 2, 12, tzinfo=UTC)
    old = folder / f"{stem}-20260301T020000Z.db.part"
    fresh = folder / f"{stem}-20260302T115900Z.db.part"
    other = folder / f"{stem}-2-20260301T020000Z.db.part"
    for part in (old, fresh, other, old.with_name(f"{old.name}-wal")):
        part.write_bytes(b"partial")
    bench.backups.make(ADA, folder, now=now)
    assert sorted(path.name for path in folder.glob("*.part*")) == [other.name, fresh.name]


def test_the_path_of_a_webhook_is_not_among_the_shown_settings() -> None:
    loaded = load(environment={"MASIS_WEBHOOK_ADDRESS": "https://hooks.example.org/services/T0/x"})
    shown = {row.name: row.value for row in all_rows(loaded)}
    assert shown["webhook_address"] == "https://hooks.example.org/…"

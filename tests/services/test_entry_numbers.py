"""Entries that a person writes don't tell a blind reviewer how many others there are."""

from __future__ import annotations

from pathlib import Path

import pytest

from masis.schema.actor import Actor
from masis.schema.team import MachineShown, QueuePolicy
from masis.services import Workbench
from masis.services.desk import Desk
from tests.store.factories import a_case

LEA = Actor(name="Lea", roles=("lead",), authenticated=True)


@pytest.mark.parametrize(("machine", "hidden"), [("first", False), ("after", True)])
def test_an_entry_has_its_number_only_where_nothing_is_hidden(
    tmp_path: Path, machine: MachineShown, hidden: bool
) -> None:
    workbench = Workbench.open(tmp_path / "numbers.db")
    workbench.store.cases.add(a_case())
    workbench.team.put_in_force(LEA, QueuePolicy(machine=machine))
    desk = Desk.for_actor(workbench, Actor(name="Ada", roles=("reviewer",), authenticated=True))
    row = {"case": "case-1", "verdict": "reject", "reason": "unsupported"}
    [tried] = desk.decide_all([row], dry_run=True)
    for entry in (tried.entry, desk.comment("case-1", "Why?")):
        assert entry is not None
        assert (entry.seq == 0, entry.previous == "" and entry.digest == "") == (hidden, hidden)

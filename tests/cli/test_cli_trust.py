"""``masis trust`` prints what the page says."""

from __future__ import annotations

import json
from pathlib import Path

from masis.schema.review import Decision
from masis.services import Workbench
from tests.cli.running import Masis
from tests.reviewing import ADA
from tests.store.factories import a_case, a_run


def test_the_figures_are_printed_for_people_and_as_json(masis: Masis, tmp_path: Path) -> None:
    database = tmp_path / "trust.db"
    workbench = Workbench.open(database)
    case = a_case()
    workbench.cases.add(ADA, [case])
    workbench.audits.store_run(ADA, a_run(case))
    workbench.store.decisions.append(
        Decision(reviewer="Ada", case_id=case.id, run_id="run-1", iteration=1, verdict="reject", reason="Wrong")
    )
    workbench.close()
    printed = masis("trust", "--db", database).stdout
    assert "May answers pass without a person?\n  No: nothing shows yet" in printed
    assert "precision  100.0% (1 of 1; 95% interval 2.5% to 100.0%)" in printed
    found = json.loads(masis("trust", "--json", "--db", database).stdout)
    assert found["machine"]["recall"]["value"] == 1.0
    assert found["guarantee"] is None
    assert masis("trust", "--fit", "--db", database).exit_code == 1

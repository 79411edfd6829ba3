"""The screenings of the demo's database."""

from __future__ import annotations

from masis.screening.services.demo import SCREENED
from masis.screening.store import ScreeningStore
from masis.services import Workbench
from masis.services.records import CaseFilter


def test_the_demo_has_a_case_made_from_a_screening(demo: Workbench) -> None:
    screened = {
        screening.id: screening for screening in ScreeningStore(demo.store).screenings.newest()
    }
    assert set(screened) == {f"demo-{name}" for name in SCREENED}
    handed = demo.cases.find(CaseFilter(text="screening-demo-pad")).rows
    assert [row.standing for row in handed] == ["not_confirmed"]

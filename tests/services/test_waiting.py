"""Which cases wait: the states that a filter leaves of those that wait for a person."""

from __future__ import annotations

from masis.services.cases import WAITING, waiting_in
from masis.services.records import CaseFilter


def test_a_filter_on_states_narrows_what_waits() -> None:
    assert waiting_in(CaseFilter(states=("new", "approved"))).states == ("new",)
    assert waiting_in(CaseFilter()).states == WAITING
    assert waiting_in(CaseFilter(fields=("Law",))).fields == ("Law",)

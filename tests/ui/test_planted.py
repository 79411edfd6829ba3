"""Planted faults on the pages: what a lead does and sees, and what a reviewer is told and when."""

from __future__ import annotations

import pytest

from masis.services import Workbench
from tests.planted import audit_copies, fill_with_approved
from tests.reviewing import ADA, decide
from tests.ui.conftest import labels, open_page, press, texts


@pytest.fixture
def workbench(audited_workbench: Workbench) -> Workbench:
    fill_with_approved(audited_workbench, 3)
    return audited_workbench


def test_a_lead_can_plant_and_withdraw_copies(workbench: Workbench) -> None:
    page = open_page("trust", {"reviewer-name": "Ada"}, view="planted")
    page.number_input(key="planted-count").set_value(2)
    page = press(page, "Plant faults")
    assert "2 copies planted" in texts(page)
    assert len(workbench.store.planted.copies()) == 2
    page = press(page, "Withdraw 2 undecided copies")
    assert "2 copies withdrawn" in texts(page)


def test_without_sound_answers_the_page_explains_how_to_get_them(
    audited_workbench: Workbench,
) -> None:
    page = open_page("trust", {"reviewer-name": "Ada"}, view="planted")
    assert "There are no correct answers to copy" in texts(page)
    assert "Plant faults" not in labels(page)


def test_no_page_reveals_a_copy_before_its_decision(workbench: Workbench) -> None:
    workbench.planted.plant(ADA, 1, seed=3)
    (copy,) = audit_copies(workbench)
    for name, address in (
        ("", {}),
        ("queue", {}),
        ("review", {"case": copy}),
        ("decisions", {}),
        ("metrics", {}),
    ):
        page = open_page(name, {"reviewer-name": "Bo"}, **address)
        drawn = "\n".join(str(element.proto) for element in page.main if hasattr(element, "proto"))
        assert "planted" not in (texts(page) + drawn).casefold(), name


def test_a_decided_copy_shows_its_planted_fault(workbench: Workbench) -> None:
    workbench.planted.plant(ADA, 1, ("figure",), seed=3)
    (copy,) = audit_copies(workbench)
    decide(workbench, copy, "approve", "Bo")
    fault = workbench.store.planted.copies()[0].fault
    page = open_page("review", {"reviewer-name": "Bo"}, case=copy)
    assert f"The figure was changed from “{fault.before}” to “{fault.after}”" in texts(
        page
    ).replace("\\", "")

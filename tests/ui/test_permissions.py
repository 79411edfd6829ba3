"""What a role doesn't allow is shown disabled, with the role that it takes, on every page."""

from __future__ import annotations

from collections.abc import Iterator
from typing import cast

import pytest
import streamlit as st

from masis.schema.actor import Actor, Role
from masis.schema.team import QueuePolicy
from masis.services import Workbench
from masis.settings.sign_in import SignIn
from masis.ui.shell import reach
from tests.ui.conftest import AUDITED, NOT_AUDITED, OpenPage, texts

READS = {
    *("Queue", "Team", "Sign out", "Compare", "Check again", "Show changes", "Show marks", "Clear filters", "Report"),
    *("Fill in an example", "Discard it", "Critic's model for all", "Open this case", "Verify the log", "Clear"),
    *("Choose one in the queue",),
}
"""Buttons that change nothing but what the page shows."""
PAGES: tuple[tuple[str, dict[str, str], set[str]], ...] = (
    ("overview", {}, {"Audit all 2 cases"}),
    ("queue", {}, set()),
    ("review", {"case": AUDITED[0]}, {"Audit again", "Redact this case"}),
    ("review", {"case": NOT_AUDITED[0]}, {"Audit now"}),
    ("new", {}, {"Start the audit", "Test these models"}),
    ("new", {"case": NOT_AUDITED[0]}, {"Start the audit"}),
    ("screening", {}, {"Load the demo abstracts"}),
    ("health", {}, {"Test the models"}),
    ("team", {}, {"Set this policy", "Set this rubric", "Do this to all chosen cases"}),
)


class _Everybody:
    """A sign-in whose every session is of one role."""

    def __init__(self, role: Role) -> None:
        self._role = role

    def actor(self, claims: object) -> Actor:
        """Return who has signed in."""
        return Actor(name="ada", roles=(self._role,), authenticated=True, signed_in_by="team")


@pytest.fixture
def signed_in(role: Role, audited_workbench: Workbench, monkeypatch: pytest.MonkeyPatch) -> Iterator[Workbench]:
    monkeypatch.setattr(reach, "_served", [reach.Reach(sign_in=cast("SignIn", _Everybody(role)))])
    st.cache_resource.clear()
    yield audited_workbench
    st.cache_resource.clear()


@pytest.mark.parametrize("role", ["viewer"])
@pytest.mark.parametrize(("name", "place", "changing"), PAGES)
def test_a_viewer_can_press_nothing_that_changes_something(
    signed_in: Workbench, open_page: OpenPage, name: str, place: dict[str, str], changing: set[str]
) -> None:
    app = open_page(name, **place)
    disabled = {button.label: button.help for button in app.button if button.disabled}
    assert changing <= set(disabled), "what changes something is there, and can't be pressed"
    assert all("Takes the role" in disabled[label] and "you have viewer" in disabled[label] for label in changing)
    assert {button.label for button in app.button if not button.disabled} <= READS


@pytest.mark.parametrize("role", ["admin"])
def test_who_may_can_press_it(signed_in: Workbench, open_page: OpenPage) -> None:
    app = open_page("health")
    assert [button.disabled for button in app.button if button.label == "Test the models"] == [False]


@pytest.mark.parametrize("role", ["viewer", "reviewer"])
def test_a_viewer_reads_beside_the_decision_that_it_takes_another_role(
    role: Role, signed_in: Workbench, open_page: OpenPage
) -> None:
    notices = [notice.value for notice in open_page("review", case=AUDITED[0]).info]
    assert any("Deciding takes the role reviewer; you have viewer" in text for text in notices) == (role == "viewer")


@pytest.mark.parametrize(("role", "sees"), [("reviewer", False), ("lead", True), ("admin", True)])
def test_leads_and_admins_see_figures_while_blind_without_the_audits_behind_them(
    role: Role, sees: bool, signed_in: Workbench, open_page: OpenPage
) -> None:
    signed_in.team.set(Actor(name="ada", roles=("admin",), authenticated=True), QueuePolicy(machine="after"))
    page = open_page("metrics", show="hallucination")
    assert bool(page.multiselect) == sees
    assert ("You see figures over all cases as a lead" in texts(page)) == sees
    assert not [each for each in page.button_group if each.key == "metrics-list"]
    assert "What audits found is hidden from you" in texts(open_page("queue"))

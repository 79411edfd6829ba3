"""The pages as Streamlit runs them: what they say in each situation, and what a role does not allow
on each of them.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

import pytest
import streamlit as st

from masis.schema.actor import Actor, Role
from masis.schema.team import QueuePolicy
from masis.services import Workbench, demo_cases
from masis.settings.sign_in import SignIn
from masis.ui.shell import reach, served_database
from masis.views.words import FLAG, RULE, STATE, STATES
from tests.reviewing import ADA
from tests.rooms import needs_screening
from tests.ui.conftest import AUDITED, open_page, press, texts


@pytest.fixture
def database(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    path = tmp_path / "pages.db"
    monkeypatch.setattr(served_database, "_served", [path])
    st.cache_resource.clear()
    yield path
    st.cache_resource.clear()


def test_an_empty_database_explains_cases_and_offers_the_demo(database: Path) -> None:
    app = open_page()
    assert "No cases yet" in texts(app)
    assert str(database) in texts(app)
    press(app, "Load the demo cases")
    assert "No cases yet" not in texts(app)


def test_an_unknown_case_is_reported(database: Path) -> None:
    Workbench.open(database).cases.add(ADA, demo_cases())
    assert "There is no such case" in texts(open_page(case="nowhere"))


def test_invalid_url_parameters_are_ignored(database: Path) -> None:
    Workbench.open(database).cases.add(ADA, demo_cases())
    app = open_page(
        page="-3", state="nowhere,", order="sideways", field="Nothing", flag="%", q="x" * 10_000
    )
    assert "No cases yet" not in texts(app)


def test_a_file_that_isnt_a_database_is_reported_without_a_traceback(database: Path) -> None:
    database.write_text("not a database, only text " * 100, encoding="utf-8")
    app = open_page()
    assert "The database can't be used" in texts(app)
    assert str(database) in texts(app)


def test_every_state_flag_and_rule_has_a_label() -> None:
    assert set(STATE) == set(STATES)
    assert all(word.text and word.meaning for word in STATE.values())
    assert all(word.text for word in (*FLAG.values(), *RULE.values()))


def test_a_failing_page_shows_a_message_and_logs_the_cause(
    audited_workbench: Workbench, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def broken(*_: object) -> None:
        raise ZeroDivisionError("a secret of the case")

    monkeypatch.setattr("masis.ui.queue.overview.show_overview", broken)
    app = open_page()
    assert "This page couldn't be displayed" in texts(app)
    assert "didn't change any stored data" in texts(app)
    assert "a secret of the case" not in texts(app)
    assert "a secret of the case" in caplog.text
    caplog.clear()


@pytest.mark.parametrize(
    ("name", "trouble", "said"),
    [
        ("SQLITE_FULL", "database or disk is full", "its disk has no room left"),
        ("SQLITE_BUSY", "database is locked", "is held by another program"),
        ("SQLITE_ERROR", "no such table: cases", "was moved, removed or replaced"),
    ],
)
def test_database_errors_are_reported_on_pages(
    audited_workbench: Workbench,
    monkeypatch: pytest.MonkeyPatch,
    name: str,
    trouble: str,
    said: str,
) -> None:
    def raise_trouble(*_: object) -> None:
        error = sqlite3.OperationalError(trouble)
        error.sqlite_errorname = name
        raise error

    monkeypatch.setattr("masis.ui.queue.overview.show_overview", raise_trouble)
    overview = open_page()
    assert "The database can't be used" in texts(overview)
    assert said in texts(overview)
    monkeypatch.setattr("masis.ui.review.case.draw_desk", raise_trouble)
    assert said in texts(open_page("review", case="docs-02"))


class _Everybody:
    """A sign-in whose every session is of one role."""

    def __init__(self, role: Role) -> None:
        self._role = role

    def actor(self, claims: object) -> Actor:
        """Return who has signed in."""
        return Actor(name="ada", roles=(self._role,), authenticated=True, signed_in_by="team")


@pytest.fixture
def signed_in(
    role: Role, audited_workbench: Workbench, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Workbench]:
    monkeypatch.setattr(reach, "_served", [reach.Reach(sign_in=cast("SignIn", _Everybody(role)))])
    st.cache_resource.clear()
    yield audited_workbench
    st.cache_resource.clear()


@pytest.mark.parametrize("role", ["viewer", "reviewer"])
def test_a_viewer_sees_that_deciding_needs_another_role(role: Role, signed_in: Workbench) -> None:
    notices = [notice.value for notice in open_page("review", case=AUDITED[0]).info]
    assert any(
        "You need the reviewer role to decide it. Your roles: viewer" in text for text in notices
    ) == (role == "viewer")


@pytest.mark.parametrize(("role", "sees"), [("reviewer", False), ("lead", True), ("admin", True)])
def test_blind_leads_and_admins_see_figures_but_not_their_audits(
    role: Role, sees: bool, signed_in: Workbench
) -> None:
    signed_in.team.put_in_force(
        Actor(name="ada", roles=("admin",), authenticated=True), QueuePolicy(machine="after")
    )
    page = open_page("metrics", {"metrics-filters": True}, show="hallucination")
    assert bool(page.multiselect) == sees
    assert ("You see figures over all cases as a lead" in texts(page)) == sees
    assert not [group for group in page.button_group if group.key == "metrics-list"]
    assert "policy hides audit results from you" in texts(open_page("queue"))


@needs_screening
@pytest.mark.parametrize(("setting", "has_page"), [("true", True), ("false", False)])
def test_a_setting_hides_the_page_screening(
    database: Path, monkeypatch: pytest.MonkeyPatch, setting: str, has_page: bool
) -> None:
    monkeypatch.setenv("MASIS_SCREENING_PAGE", setting)
    listed: list[str] = []
    navigation = st.navigation

    def note_pages(menus: dict[str, list[st.Page]], **options: Any) -> Any:  # type: ignore[valid-type]
        listed.extend(page.url_path for pages in menus.values() for page in pages)  # type: ignore[attr-defined]
        return navigation(menus, **options)

    monkeypatch.setattr(st, "navigation", note_pages)
    open_page()
    assert ("screening" in listed) == has_page
    assert "queue" in listed

"""The pages as Streamlit runs them, without a browser: what they say in each situation."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from pathlib import Path

import pytest
import streamlit as st
from streamlit.testing.v1 import AppTest

from masis.services import Workbench, app_root
from masis.ui.shell import served_database
from masis.views.words import FLAG, RULE, STATE, STATES
from tests.reviewing import ADA
from tests.ui.conftest import opened, press, texts


@pytest.fixture
def database(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    path = tmp_path / "pages.db"
    monkeypatch.setattr(served_database, "_served", [path])
    st.cache_resource.clear()
    yield path
    st.cache_resource.clear()


def test_an_empty_database_says_what_a_case_is_and_loads_the_demo(database: Path) -> None:
    app = opened()
    assert "No cases yet" in texts(app)
    assert str(database) in texts(app)
    press(app, "Load the demo cases")
    assert "No cases yet" not in texts(app)


def test_an_unknown_case_is_said_to_be_unknown(database: Path) -> None:
    Workbench.open(database).cases.add_demo(ADA)
    assert "There is no such case" in texts(opened(case="nowhere"))


def test_nonsense_in_the_address_is_ignored(database: Path) -> None:
    Workbench.open(database).cases.add_demo(ADA)
    app = opened(page="-3", state="nowhere,", order="sideways", field="Nothing", flag="%", q="x" * 10_000)
    assert "No cases yet" not in texts(app)


def test_a_file_that_is_no_database_is_named_instead_of_a_traceback(database: Path) -> None:
    database.write_text("not a database, only text " * 100, encoding="utf-8")
    app = opened()
    assert "The database can't be used" in texts(app)
    assert str(database) in texts(app)


def test_every_state_flag_and_rule_has_words() -> None:
    assert set(STATE) == set(STATES)
    assert all(word.text and word.meaning for word in STATE.values())
    assert all(word.text for word in (*FLAG.values(), *RULE.values()))


def test_a_page_that_fails_says_so_in_words_and_the_log_says_why(
    audited_workbench: Workbench, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def broken(*_: object) -> None:
        raise ZeroDivisionError("a secret of the case")

    monkeypatch.setattr("masis.ui.queue.overview.show_overview", broken)
    app = AppTest.from_file(str(app_root() / "app.py"), default_timeout=30).run()
    assert "This page could not be drawn" in texts(app)
    assert "Nothing that is stored was changed" in texts(app)
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
def test_trouble_with_the_file_is_reported_in_words_on_a_page_and_in_the_decision_panel(
    audited_workbench: Workbench, monkeypatch: pytest.MonkeyPatch, name: str, trouble: str, said: str
) -> None:
    def troubled(*_: object) -> None:
        error = sqlite3.OperationalError(trouble)
        error.sqlite_errorname = name
        raise error

    monkeypatch.setattr("masis.ui.queue.overview.show_overview", troubled)
    overview = opened()
    assert "The database can't be used" in texts(overview)
    assert said in texts(overview)
    monkeypatch.setattr("masis.ui.review.decision._draw", troubled)
    answer_view = opened(case="docs-02-altered")
    assert "What you typed is stored in this browser" in answer_view.error[0].value
    assert said in texts(answer_view)

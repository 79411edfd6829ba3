"""Who is at work: a name for the session, the drafts that go with it, and names that are none."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from streamlit.testing.v1 import AppTest

from masis.services import POLICY, Workbench
from masis.store.reviews.drafts import NOBODY_YET
from tests.ui.conftest import Serve


@pytest.fixture
def workbench(tmp_path: Path, serve: Serve) -> Workbench:
    return serve(tmp_path / "names.db")


def named(given: Any) -> str | None:
    """What a session calls itself after the name was given."""

    def script(given: object) -> None:
        import streamlit as st

        from masis.ui.shell.reviewer import name_reviewer, reviewer, reviewer_badge
        from masis.ui.shell.served_database import served_workbench

        name_reviewer(served_workbench(), given)
        reviewer_badge(served_workbench())
        st.session_state["seen"] = reviewer()

    app = AppTest.from_function(script, kwargs={"given": given}, default_timeout=20).run()
    assert not app.exception
    return str(app.session_state["seen"]) if app.session_state["seen"] else None


def test_a_name_is_kept_tidy_and_takes_over_what_was_drafted_before(workbench: Workbench) -> None:
    workbench.store.drafts.save(NOBODY_YET, "case:1", "note", "typed first")
    assert named("  Ada \n Lovelace\x00 ") == "Ada Lovelace"
    assert workbench.store.drafts.load("Ada Lovelace", "case:1") == {"note": "typed first"}


@pytest.mark.parametrize("given", ["", "   ", None, 7, ["Ada"], POLICY.name, POLICY.name.upper()])
def test_what_is_no_name_of_a_person_is_not_taken(workbench: Workbench, given: Any) -> None:
    assert named(given) is None


def test_a_hostile_name_is_shown_as_it_is_and_cut(workbench: Workbench) -> None:
    assert len(named("![x](http://192.0.2.1/)" * 50) or "") <= 80

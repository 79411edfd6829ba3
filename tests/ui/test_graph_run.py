"""A run that a graph of another make brought, answer by answer, is reviewed on the page like any other."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
import streamlit as st

from masis.api import stepwise
from masis.schema.case import Case
from masis.schema.review import Decision
from masis.services import Workbench
from masis.settings import Settings
from masis.store.records import CaseFilter
from masis.ui.shell import served_database
from tests.reviewing import ADA
from tests.ui.conftest import OpenPage

WRONG = "The Halden bridge is 90 metres long [chunk_1]. It cost 4 million crowns [chunk_9]."
BETTER = "The Halden bridge is 120 metres long [chunk_1]. It was opened to traffic in 1931 [chunk_2]."
CASE = Case.model_validate(
    {
        "id": "ferry-1",
        "query": "How long is the Halden bridge, and when was it opened?",
        "answer": WRONG,
        "evidence": [
            {"id": "chunk_1", "text": "The Halden bridge is 120 metres long. It is made of steel."},
            {"id": "chunk_2", "text": "It was opened to traffic in 1931 by the mayor."},
        ],
        "metadata": {"made_by": "langgraph", "thread_id": "ferry"},
    }
)


@pytest.fixture
def workbench(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Workbench]:
    path = tmp_path / "graph.db"
    monkeypatch.setattr(served_database, "_served", [path])
    st.cache_resource.clear()
    opened = Workbench.open(path)
    run = stepwise.audit_once(CASE, Settings())
    run = stepwise.audit_once(CASE, Settings(), before=run, answer=BETTER)
    opened.cases.add(ADA, [CASE])
    opened.audits.store_run(ADA, stepwise.evaluate_once(CASE, run, Settings()))
    yield opened
    st.cache_resource.clear()
    opened.store.close()


def test_it_waits_in_the_queue_and_opens_with_every_pass(workbench: Workbench, open_page: OpenPage) -> None:
    waiting = workbench.cases.find(CaseFilter(states=("needs_review",)))
    assert [row.id for row in waiting.rows] == ["ferry-1"]
    app = open_page("review", case="ferry-1", iteration="2")
    assert app.session_state["iteration"] == 1
    assert "Show changes" in [button.label for button in app.button]
    (choice,) = app.get("button_group")
    assert [option.content for option in choice.proto.options] == ["1 · original", "2 · revision, suggested"]


def test_what_is_decided_about_it_is_what_whoever_waits_for_it_learns(workbench: Workbench) -> None:
    opened = workbench.cases.open("ferry-1")
    assert opened.run is not None
    assert opened.run.best == 1
    decision = Decision(
        reviewer="Ada", case_id="ferry-1", run_id=opened.run.id, iteration=opened.run.best + 1, verdict="approve"
    )
    workbench.reviews.submit(ADA, decision, seen_version=opened.summary.version)
    found = workbench.reviews.outcome("ferry-1")
    assert found is not None
    assert (found.decision.verdict, found.answer) == ("approve", BETTER)

"""A compiled critic on the page of a new audit: offered, chosen, and the one that judged."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import streamlit as st
from streamlit.testing.v1 import AppTest

from masis.errors import UnknownRecord
from masis.integrations.dspy import compiling, labelled, programs
from masis.schema.case import Case
from masis.services import Workbench, app_root
from masis.ui.shell import served_database
from tests.reviewing import ADA
from tests.serving_models import ModelServer


@pytest.fixture
def served(learning: ModuleType, settings_at: Any, tmp_path: Path) -> Iterator[ModelServer]:
    """The learning model, reached by masis.toml, with a critic compiled for it."""
    with ModelServer(learning.critic) as server:
        (tmp_path / "masis.toml").write_text(f'[providers.scripted]\naddress = "{server.address}"\n')
        cases = labelled.from_cases([Case.model_validate(each) for each in learning.cases()])
        session = compiling.Session(compiling.Plan("careful", "critic", "bootstrap", "scripted:m"), settings_at(server))
        programs.saved(programs.folder(), compiling.compiled(session, labelled.split(cases, 0.5, 0)))
        yield server


@pytest.fixture
def bench(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Workbench]:
    path = tmp_path / "pages.db"
    monkeypatch.setattr(served_database, "_served", [path])
    st.cache_resource.clear()
    bench = Workbench.open(path)
    yield bench
    st.cache_resource.clear()
    bench.store.close()


def select(app: AppTest, label: str) -> Any:
    return next(box for box in app.selectbox if box.label == label)


def test_a_compiled_critic_is_offered_chosen_and_judges(
    served: ModelServer, bench: Workbench, learning: ModuleType
) -> None:
    case = Case.model_validate({key: each for key, each in learning.case(52, True).items() if key != "labels"})
    bench.cases.add(ADA, [case])
    app = AppTest.from_file(str(app_root() / "app.py"), default_timeout=60)
    app.query_params["case"] = case.id
    app.switch_page("pages/new.py").run()
    assert not app.exception
    assert "dspy:careful@1" in select(app, "Critic").options
    assert "dspy:careful@1" not in select(app, "Reviser").options
    select(app, "Critic").select("dspy:careful@1").run()
    assert not app.exception
    assert any(served.address.split("/")[2] in str(caption.value) for caption in app.caption)

    next(button for button in app.button if button.label == "Critic's model for all").click()
    app.run()
    assert {select(app, role).value for role in ("Critic", "Reviser", "Evaluator")} == {"Another model"}
    select(app, "Critic").select("dspy:careful@1").run()

    next(button for button in app.button if button.label.startswith("Start the audit")).click()
    app.run()
    assert not app.exception
    named = app.query_params["job"]
    run = finished(bench, named if isinstance(named, str) else named[0])
    assert run.models["critic"] == "dspy:careful@1"
    assert run.models["reviser"] == "scripted:m"
    assert run.versions.prompts["critic"].startswith("dspy:careful@1+")


def finished(bench: Workbench, run_id: str) -> Any:
    until = time.monotonic() + 90
    while time.monotonic() < until:
        try:
            if bench.store.runs.summary(run_id).state == "finished":
                return bench.store.runs.get(run_id)
        except UnknownRecord:
            pass
        time.sleep(0.05)
    raise AssertionError("the audit did not finish")

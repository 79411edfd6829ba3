"""The exam on the pages: taken from Settings, and said wherever a model is named."""

from __future__ import annotations

from pathlib import Path

import pytest

from masis.services import Workbench, exams
from masis.services.background import BackgroundTasks
from masis.services.exams import RunningExam
from tests.ui.conftest import AUDITED, open_page, texts
from tests.waiting import until


@pytest.fixture(autouse=True)
def _own_exams(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    monkeypatch.setattr(exams, "_EXAMS", BackgroundTasks[RunningExam]())


@pytest.mark.apptest
def test_settings_runs_the_exam_and_shows_its_result(
    audited_workbench: Workbench,
) -> None:
    app = open_page("settings")
    assert "offline passed the exam on " in texts(app)
    assert "calls no language model and costs nothing" in texts(app)
    app.button(key="exam-start").click().run()
    until(lambda: (exam := audited_workbench.exams.latest()) is not None and exam.over, "the exam")
    app.run()
    assert not app.exception
    assert (exam := audited_workbench.exams.latest()) is not None
    assert exam.result is not None
    assert exam.result.taken_at == audited_workbench.exams.status().result.taken_at  # type: ignore[union-attr]
    shown = "\n".join(table.value.to_string() for table in app.table)
    assert "Faulty answers accepted" in shown
    assert "0% to 21%" in shown


@pytest.mark.apptest
def test_an_unusable_model_shows_a_hint(audited_workbench: Workbench) -> None:
    app = open_page("settings")
    app.selectbox(key="exam-model").select("Another model").run()
    app.text_input(key="exam-model-name").input("openai:gpt-4o").run()
    assert "This model can't take the exam." in " ".join(warning.value for warning in app.warning)
    assert "Set OPENAI_API_KEY" in texts(app)
    assert not [button for button in app.button if button.key == "exam-start"]


@pytest.mark.apptest
def test_new_audit_shows_the_exam_status_of_the_models(audited_workbench: Workbench) -> None:
    app = open_page("new")
    assert "passed the exam on " in texts(app)


@pytest.mark.apptest
def test_the_case_page_shows_the_exam_status_of_its_models(audited_workbench: Workbench) -> None:
    app = open_page("review", case=AUDITED[0])
    assert "Passed the exam on " in texts(app)


@pytest.mark.apptest
def test_trust_shows_the_exam_status(audited_workbench: Workbench) -> None:
    assert "It passed the exam on " in texts(open_page("trust", view="guarantee"))

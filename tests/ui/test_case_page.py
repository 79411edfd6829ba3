"""The page of one case as Streamlit runs it: which audit, which iteration, which comparison, and what it takes."""

from __future__ import annotations

from pathlib import Path

import pytest
import streamlit as st
from streamlit.testing.v1 import AppTest

from masis.llm.recordings import RecordedReply
from masis.schema.actor import Actor
from masis.schema.case import Case
from masis.schema.run import Run
from masis.services import Workbench, app_root
from masis.settings import Settings
from masis.ui.new_audit.form import unusable_model
from masis.ui.review import case as case_page
from tests.reviewing import ADA
from tests.ui.conftest import Serve, labels, opened, press

CASE = "strategy-01-fabricated"


class NothingUnderWay:
    """Jobs of which none is under way and none failed."""

    def auditing(self, _case_id: str) -> bool:
        return False

    def failure(self, _kind: str, _case_id: str) -> None:
        return None


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("case") / "case.db"
    workbench = Workbench.open(path)
    workbench.cases.add_demo(ADA)
    case = workbench.store.cases.get(CASE)
    workbench.audits.audit(ADA, case, settings=Settings(max_iterations=1))
    workbench.audits.audit(ADA, case)
    return path


@pytest.fixture
def workbench(served: Path, serve: Serve) -> Workbench:
    return serve(served)


def runs_of(workbench: Workbench) -> tuple[Run, Run]:
    """The newest run, of two iterations, and the older one, of one."""
    newest, older = (workbench.store.runs.get(run.id) for run in workbench.store.runs.for_case(CASE))
    return newest, older


def page(**address: str) -> AppTest:
    return opened(**({"case": CASE} | address))


def test_the_newest_audit_is_shown_and_others_can_be_chosen(workbench: Workbench) -> None:
    newest, older = runs_of(workbench)
    app = page()
    assert app.selectbox(key="run").value == newest.id
    assert app.selectbox(key="run").options[0].endswith("UTC · offline · 2 iterations")
    app.selectbox(key="run").select_index(1).run()
    assert not app.exception
    assert app.query_params["run"] in (older.id, [older.id])
    assert app.selectbox(key="run").value == older.id
    assert "Show changes" not in labels(app)
    app.selectbox(key="run").select_index(0).run()
    assert "run" not in app.query_params


def test_an_audit_that_is_none_of_this_case_is_said_to_be_none(workbench: Workbench) -> None:
    app = page(run="nonsense")
    assert any("does not belong to this case" in note.value for note in app.info)
    assert app.selectbox(key="run").value == runs_of(workbench)[0].id


@pytest.mark.parametrize("iteration", ["2", "0", "x"])
def test_any_iteration_in_the_address_is_one_that_exists(workbench: Workbench, iteration: str) -> None:
    app = page(iteration=iteration)
    assert app.session_state["iteration"] in (0, 1)
    chosen = (workbench.cases.open(CASE).run or pytest.fail("no run")).best
    assert app.session_state["iteration"] == (1 if iteration == "2" else chosen)
    assert any("no such iteration" in each.value for each in app.info) == (iteration != "2")


def test_changes_are_shown_and_hidden_and_have_an_address(workbench: Workbench) -> None:
    app = press(page(iteration="2"), "Show changes")
    assert app.query_params["against"] in ("1", ["1"])
    assert "Show marks" in labels(app)
    assert "against" not in press(app, "Show marks").query_params


@pytest.mark.parametrize("against", ["1", "x"])
def test_a_comparison_of_an_iteration_with_itself_becomes_one_with_its_neighbour(
    workbench: Workbench, against: str
) -> None:
    assert "Show marks" in labels(page(against=against))
    assert "Show marks" in labels(page(iteration="2", against=against))


def test_the_desk_without_a_case_leads_to_the_first_that_waits(workbench: Workbench) -> None:
    app = AppTest.from_file(str(app_root() / "app.py"), default_timeout=30).run()
    app.switch_page("pages/review.py").run()
    assert not app.exception
    assert [title.value for title in app.title] == ["No case is open"]
    next(button for button in app.button if button.label.startswith("Open the")).click().run()
    assert not app.exception
    assert "case" in app.query_params


def test_a_case_that_was_not_audited_shows_its_answer_and_can_be_decided(workbench: Workbench) -> None:
    app = page(case=next(case.id for case in workbench.store.cases.iterate() if case.id != CASE))
    assert "Audit now" in labels(app)
    assert any("has not been audited" in each.value for each in app.markdown)


def test_the_turns_before_the_question_are_shown_folded_and_as_text(workbench: Workbench) -> None:
    turns = [{"role": "user", "content": "<b>Which</b> bridge?"}, {"role": "assistant", "content": "The *Tay* bridge."}]
    case = Case.model_validate(
        {
            "id": "talk",
            "query": "How long is it?",
            "answer": "120 metres [1].",
            "evidence": [{"id": "1", "text": "It is 120 metres long."}],
            "messages": [*turns, {"role": "user", "content": "How long is it?"}],
        }
    )
    workbench.cases.add_one(ADA, case)
    app = page(case="talk")
    assert "Earlier in this conversation: 2 turns" in [each.label for each in app.expander]
    shown = [each.value for each in app.text]
    assert "<b>Which</b> bridge?" in shown
    assert "The *Tay* bridge." in shown
    assert not [each for each in page().expander if "conversation" in each.label]


def test_an_audit_that_asked_for_no_revision_offers_one(workbench: Workbench, monkeypatch: pytest.MonkeyPatch) -> None:
    newest, older = runs_of(workbench)
    asked: list[Settings] = []

    class Jobs(NothingUnderWay):
        def audit(self, _actor: Actor, case_id: str, settings: Settings) -> str:
            asked.append(settings)
            return case_id

    monkeypatch.setattr(case_page, "served_jobs", Jobs)
    offered = [each for each in page(run=newest.id).button if each.label == "Revise once anyway"]
    assert not offered, "this audit revised the answer"
    button = next(each for each in page(run=older.id).button if each.label == "Revise once anyway")
    button.click().run()
    assert [(settings.min_iterations, settings.max_iterations) for settings in asked] == [(2, 3)]


def test_a_revision_that_no_model_could_make_is_not_offered_and_the_reason_is_said(
    workbench: Workbench, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert unusable_model(Settings()) == ""
    why = unusable_model(Settings(reviser="openai:gpt-4o"))
    assert "OPENAI_API_KEY" in why
    monkeypatch.setattr(case_page, "unusable_model", lambda _settings: why)
    shown = page(run=runs_of(workbench)[1].id)
    button = next(each for each in shown.button if each.label == "Revise once anyway")
    assert (button.disabled, button.help) == (True, why)
    assert why in [each.value for each in shown.text]


def test_a_revision_that_was_asked_for_is_made_of_an_answer_without_serious_issues(workbench: Workbench) -> None:
    case = Case.model_validate(
        {
            "id": "minor",
            "query": "How long is the bridge?",
            "answer": "The bridge is 120 metres long.",
            "evidence": [{"id": "1", "text": "The bridge is 120 metres long."}],
        }
    )
    workbench.cases.add_one(ADA, case)
    once = workbench.audits.audit(ADA, case)
    assert (once.total_iterations, once.termination_reason) == (1, "no_issues")
    again = workbench.audits.audit(ADA, case, settings=Settings(min_iterations=2))
    assert again.total_iterations == 2
    assert again.iterations[1].answer == "The bridge is 120 metres long [1]."


def test_where_replies_are_cached_audit_again_offers_to_ask_the_models_anew(
    workbench: Workbench, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[Settings] = []

    class Jobs(NothingUnderWay):
        def audit(self, _actor: Actor, _case_id: str, settings: Settings) -> str:
            asked.append(settings)
            return "run"

    reply = RecordedReply(
        role="critic", prompt="critic/1", model="m", asked="0" * 64, date="2026-11-24T10:00:00Z", reply="said"
    )
    monkeypatch.setattr(case_page, "served_jobs", Jobs)
    assert "Ask the models anew" not in labels(page())
    monkeypatch.setenv("MASIS_CACHE", "true")
    st.cache_resource.clear()
    cache = workbench.store.replies_of(CASE)
    for label, left in (("With the cached replies", reply), ("Ask the models anew", None)):
        cache.keep([reply])
        app = page()
        assert "Audit again" not in labels(app), "it is what the choice opens under"
        next(button for button in app.button if button.label == label).click().run()
        assert not app.exception
        assert cache.find(reply) == left
    assert [settings.cache for settings in asked] == [True, True]

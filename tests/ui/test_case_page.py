"""The page of one case as Streamlit runs it: which audit, iteration and comparison it shows, and
which actions it accepts.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
import streamlit as st
from streamlit.testing.v1 import AppTest

from masis.llm.recordings import RecordedReply
from masis.schema.actor import Actor
from masis.schema.case import Case, case_of
from masis.schema.review import Decision
from masis.schema.run import Run
from masis.schema.team import MachineShown, QueuePolicy
from masis.services import Workbench, demo_cases
from masis.services.audits import POLICY
from masis.settings import Settings
from masis.ui.new_audit.form import unusable_model
from masis.ui.review import case as case_page
from masis.ui.review.run_comparison import chosen_runs
from masis.ui.review.run_list import run_row
from masis.views.words import NOT_AUDITED
from tests.reviewing import ADA, decide
from tests.ui.conftest import Serve, labels, open_page, press, texts

CASE = "strategy-01"
PASSED = "policy-01"


class IdleJobs:
    """Jobs of which none is running and none failed."""

    def is_auditing(self, _case_id: str) -> bool:
        return False

    def failure(self, _kind: str, _case_id: str) -> None:
        return None


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("case") / "case.db"
    workbench = Workbench.open(path)
    workbench.cases.add(ADA, demo_cases())
    case = workbench.store.cases.get(CASE)
    workbench.audits.audit(ADA, case, settings=Settings(max_iterations=1))
    workbench.audits.audit(ADA, case)
    run = workbench.audits.audit(ADA, workbench.store.cases.get(PASSED))
    passed = Decision(
        kind="policy_accept", source="CODE", reviewer=POLICY.name, case_id=PASSED, run_id=run.id
    )
    workbench.store.decisions.append(passed)
    return path


@pytest.fixture
def workbench(served: Path, serve: Serve) -> Workbench:
    return serve(served)


def runs_of(workbench: Workbench) -> tuple[Run, Run]:
    """The newest run, of two iterations, and the older one, of one."""
    newest, older = (
        workbench.store.runs.get(run.id) for run in workbench.store.runs.for_case(CASE)
    )
    return newest, older


def page(**address: str) -> AppTest:
    return open_page(**({"case": CASE} | address))


def component_data(app: AppTest) -> str:
    """Return the data passed to the page's components."""
    return "\n".join(
        str(element.proto) for element in app.main if hasattr(element, "proto")
    ).replace("\\'", "'")


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


@pytest.mark.parametrize(("iteration", "whose"), [("1", ""), ("2", "Original answer: ")])
def test_the_headline_is_about_the_original_answer_whichever_iteration_is_shown(
    workbench: Workbench, iteration: str, whose: str
) -> None:
    app = page(iteration=iteration)
    shown = component_data(app)
    assert f"{whose}Cites [chunk_99], which doesn't exist" in shown
    # the color warns about the answer that is read
    (head,) = (
        json.loads(component.proto.json)
        for component in app.get("bidi_component")
        if component.proto.id.endswith("-head")
    )
    assert (head["headline"]["tone"] == "bad") == (iteration == "1")


def test_a_decided_case_names_its_reviewer_and_shows_the_correction_first(
    audited_workbench: Workbench,
) -> None:
    given = {
        "iteration": 1,
        "reason": "It cites nothing.",
        "corrected_answer": "The turbines stand off Norway [chunk_4].",
    }
    decide(audited_workbench, CASE, "override", **given)
    shown = component_data(page())
    assert (
        "Overridden by Ada with own correction: It cites nothing. The audit had found: Cites [chunk_99]"
        in shown
    )
    assert re.search(r"corrected\W+(?:in|out|same)\W", shown)
    # what was asked for is shown
    for another in ({"iteration": "2"}, {"iteration": "1", "against": "2"}):
        assert not re.search(r"corrected\W+(?:in|out|same)\W", component_data(page(**another)))


def test_a_run_id_of_another_case_is_reported(workbench: Workbench) -> None:
    app = page(run="nonsense")
    assert any("doesn't belong to this case" in note.value for note in app.info)
    assert app.selectbox(key="run").value == runs_of(workbench)[0].id


@pytest.mark.parametrize("iteration", ["2", "0", "x"])
def test_an_iteration_in_the_url_must_exist(workbench: Workbench, iteration: str) -> None:
    app = page(iteration=iteration)
    assert app.session_state["iteration"] in (0, 1)
    assert app.session_state["iteration"] == (1 if iteration == "2" else 0)
    assert any(
        "an iteration that doesn't exist in this audit" in info.value for info in app.info
    ) == (iteration != "2")


def test_changes_can_be_toggled_and_linked_to(workbench: Workbench) -> None:
    app = press(page(iteration="2"), "Show changes")
    assert app.query_params["against"] in ("1", ["1"])
    assert "Show marks" in labels(app)
    assert "against" not in press(app, "Show marks").query_params


@pytest.mark.parametrize("against", ["1", "x"])
def test_comparing_an_iteration_with_itself_compares_with_its_neighbor(
    workbench: Workbench, against: str
) -> None:
    assert "Show marks" in labels(page(against=against))
    assert "Show marks" in labels(page(iteration="2", against=against))


def test_the_review_page_without_a_case_links_to_the_first_waiting_case(
    workbench: Workbench,
) -> None:
    app = open_page("review")
    assert [title.value for title in app.title] == ["No case is open"]
    second_case = workbench.store.cases.get(CASE).model_copy(update={"id": "second"})
    workbench.cases.add(ADA, [second_case])
    workbench.audits.audit(ADA, second_case)  # one more waits than the button says
    next(button for button in app.button if button.label.startswith("Open the")).click().run()
    assert not app.exception
    assert "case" in app.query_params


@pytest.mark.parametrize(
    ("narrowed", "says"),
    [
        ({}, " left to review"),
        ({"standing": "wrong"}, " in this list"),
        ({"q": "strategy"}, " left in this search"),
        ({"case": "law-01", "q": "law-01"}, "This is the last one in this search"),
        ({"case": PASSED, "q": "nowhere"}, "No other case in this search needs review"),
    ],
)
def test_the_count_of_remaining_cases_names_its_queue(
    workbench: Workbench, narrowed: dict[str, str], says: str
) -> None:
    (desk,) = (
        json.loads(component.proto.json)
        for component in page(**narrowed).get("bidi_component")
        if "-desk" in component.proto.id
    )
    assert desk["go"]["says"].endswith(says)


def test_an_unaudited_case_shows_its_answer_and_can_be_decided(
    workbench: Workbench,
) -> None:
    app = page(case=next(case.id for case in workbench.store.cases.iterate() if case.id != CASE))
    assert "Audit now" in labels(app)
    assert any(NOT_AUDITED in markdown.value for markdown in app.markdown)


def test_a_case_without_an_answer_cant_be_approved(workbench: Workbench) -> None:
    case = next(case for case in workbench.store.cases.iterate() if case.answer)
    empty = case.model_copy(update={"id": "empty", "answer": None})
    workbench.cases.add_one(ADA, empty)

    def desk(case_id: str) -> dict[str, Any]:
        (data,) = (
            json.loads(component.proto.json)
            for component in page(case=case_id).get("bidi_component")
            if "-desk" in component.proto.id
        )
        return data

    without, with_one = desk("empty"), desk(CASE)
    assert without["about"]["name"] == "the case"
    assert without["about"]["note"].startswith("It has no answer.")
    refused = {verdict["code"]: bool(verdict["refused"]) for verdict in without["verdicts"]}
    assert refused == {"approve": True, "override": False, "reject": False, "escalate": False}
    assert not any(verdict["refused"] for verdict in with_one["verdicts"])


def test_earlier_turns_of_a_conversation_are_collapsed_and_shown_as_text(
    workbench: Workbench,
) -> None:
    turns = [
        {"role": "user", "content": "<b>Which</b> bridge?"},
        {"role": "assistant", "content": "The *Tay* bridge."},
    ]
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
    assert "Earlier in this conversation: 2 turns" in [expander.label for expander in app.expander]
    shown = [text.value for text in app.text]
    assert "<b>Which</b> bridge?" in shown
    assert "The *Tay* bridge." in shown
    assert not [expander for expander in page().expander if "conversation" in expander.label]


def test_an_audit_without_a_revision_offers_one(
    workbench: Workbench, monkeypatch: pytest.MonkeyPatch
) -> None:
    newest, older = runs_of(workbench)
    started_settings: list[Settings] = []

    class Jobs(IdleJobs):
        def audit(self, _actor: Actor, case_id: str, settings: Settings) -> str:
            started_settings.append(settings)
            return case_id

    monkeypatch.setattr(case_page, "served_jobs", Jobs)
    offered = [
        button for button in page(run=newest.id).button if button.label == "Revise once anyway"
    ]
    assert not offered, "this audit revised the answer"
    button = next(
        button for button in page(run=older.id).button if button.label == "Revise once anyway"
    )
    button.click().run()
    assert [
        (settings.min_iterations, settings.max_iterations) for settings in started_settings
    ] == [(2, 3)]


def test_a_running_audit_shows_its_issues_and_that_it_is_stopping(
    serve: Serve, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench = serve(tmp_path / "live.db")
    case = next(case for case in demo_cases() if case.id == CASE)
    bench.cases.add(ADA, [case])
    bench.audits.audit(ADA, case)
    bench.store.runs.start(
        "live", case_id=CASE, case_digest=case.digest(), models={}, settings=Settings().of_audit()
    )
    stopped: list[str] = []

    class Jobs(IdleJobs):
        def is_auditing(self, _case_id: str) -> bool:
            return True

        def is_cancelling(self, _kind: str, _run_id: str) -> bool:
            return bool(stopped)

        def cancel(self, _actor: Actor, _kind: str, case_id: str) -> None:
            stopped.append(case_id)

    monkeypatch.setattr(case_page, "served_jobs", Jobs)
    app = page()
    assert "Found so far in the original answer" in texts(app)
    again = next(button for button in app.button if button.label == "Audit again")
    assert again.disabled, "a popover would stay open over the page"
    press(app, "Stop")
    assert stopped == [CASE]
    assert next(button for button in app.button if button.label == "Stopping").disabled


def test_a_revision_isnt_offered_without_a_model_and_the_page_says_why(
    workbench: Workbench, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert unusable_model(Settings()) == ""
    why = unusable_model(Settings(reviser="openai:gpt-4o"))
    assert "OPENAI_API_KEY" in why
    monkeypatch.setattr(case_page, "unusable_model", lambda _settings: why)
    shown = page(run=runs_of(workbench)[1].id)
    button = next(button for button in shown.button if button.label == "Revise once anyway")
    assert (button.disabled, button.help) == (True, why)
    assert why in [text.value for text in shown.text]


def test_audit_again_offers_to_bypass_cached_replies(
    workbench: Workbench, monkeypatch: pytest.MonkeyPatch
) -> None:
    started_settings: list[Settings] = []

    class Jobs(IdleJobs):
        def audit(self, _actor: Actor, _case_id: str, settings: Settings) -> str:
            started_settings.append(settings)
            return "run"

    reply = RecordedReply(
        role="critic",
        prompt="critic/1",
        model="m",
        asked="0" * 64,
        date="2026-11-24T10:00:00Z",
        reply="said",
    )
    monkeypatch.setattr(case_page, "served_jobs", Jobs)
    assert "Ask the models again" not in labels(page())
    monkeypatch.setenv("MASIS_CACHE", "true")
    st.cache_resource.clear()
    cache = workbench.store.replies_of(CASE)
    for label, left in (("With the cached replies", reply), ("Ask the models again", None)):
        cache.keep([reply])
        app = page()
        assert "Audit again" not in labels(app), "with a cache, the button opens a menu instead"
        next(button for button in app.button if button.label == label).click().run()
        assert not app.exception
        assert cache.find(reply) == left
    assert [settings.cache for settings in started_settings] == [True, True]


def test_audit_again_says_which_audit_it_replaces(
    audited_workbench: Workbench, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert "The new audit will use **offline**, like the one shown." in texts(
        open_page("review", case=CASE)
    )
    monkeypatch.setenv("MASIS_CRITIC", "openai:gpt-5")
    st.cache_resource.clear()
    page_text = texts(open_page("review", case=CASE))
    message = " and replace the one by **offline**. The current audit stays available under"
    assert message in page_text


def test_audit_again_offers_other_settings_and_leads_to_the_comparison(
    audited_workbench: Workbench, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Jobs(IdleJobs):
        def audit(self, _actor: Actor, case_id: str, settings: Settings) -> str:
            case = audited_workbench.store.cases.get(case_id)
            return audited_workbench.audits.audit(ADA, case, settings=settings).id

    def links(app: AppTest) -> list[str]:
        return [link.proto.label for link in app.get("page_link")]

    monkeypatch.setattr(case_page, "served_jobs", Jobs)
    app = open_page("review", case=CASE)
    assert "Choose other settings" in links(app)
    assert "Compare the two audits" not in links(app)
    before = audited_workbench.cases.open(CASE).run.id
    press(app, "Start the audit")
    assert "Compare the two audits" in links(app)
    (link,) = (
        link.proto for link in app.get("page_link") if link.proto.label == "Compare the two audits"
    )
    newest = audited_workbench.cases.open(CASE).run.id
    assert newest != before
    assert f"left={before}" in link.query_string
    assert f"right={newest}" in link.query_string


@pytest.fixture
def two_runs(audited_workbench: Workbench) -> tuple[Run, Run]:
    """The run with default settings, and one with strict and literal settings."""
    first = audited_workbench.cases.open(CASE).run
    assert first is not None
    strict_settings = audited_workbench.settings.model_copy(
        update={"strictness": "strict", "max_iterations": 1, "citation_mode": "literal"}
    )
    return first, audited_workbench.audits.audit(
        ADA, audited_workbench.store.cases.get(CASE), settings=strict_settings
    )


def test_compare_shows_the_runs_in_the_url_or_the_two_newest(
    audited_workbench: Workbench, two_runs: tuple[Run, Run], monkeypatch: pytest.MonkeyPatch
) -> None:
    finished = list(audited_workbench.store.runs.for_case(CASE))
    first, second = two_runs

    def chosen_ids(**address: str) -> tuple[str, str]:
        monkeypatch.setattr(st, "query_params", address)
        left, right = chosen_runs(finished)
        return left.id, right.id

    assert chosen_ids() == (first.id, second.id)
    assert chosen_ids(left=second.id) == (second.id, first.id)
    assert chosen_ids(right=first.id) == (second.id, first.id)
    assert chosen_ids(left=first.id, right=second.id) == (first.id, second.id)
    assert chosen_ids(left="nowhere", right="%00") == (first.id, second.id)


def test_the_history_shows_the_settings_of_each_run(
    audited_workbench: Workbench, two_runs: tuple[Run, Run]
) -> None:
    rows: list[Any] = [
        run_row(run, right=two_runs[1].id) for run in audited_workbench.store.runs.for_case(CASE)
    ]
    newest, oldest = (row["cells"] for row in rows)
    (changed,) = newest[2]["below"]
    assert sorted(changed.split(", ")) == [
        "citation mode literal",
        "max iterations 1",
        "strictness strict",
    ]
    assert oldest[2]["below"] == ["default settings"]
    assert (newest[0]["below"], oldest[0]["below"]) == (["right"], [""])
    assert [row["marked"] for row in rows] == [True, False]
    assert newest[0]["href"] == f"review?case={CASE}&run={two_runs[1].id}"


def test_two_runs_are_shown_side_by_side(
    audited_workbench: Workbench, two_runs: tuple[Run, Run]
) -> None:
    app = open_page("compare", case=CASE)
    assert [box.label for box in app.selectbox] == ["Left", "Right"]
    press(app, "Swap left and right")
    assert app.selectbox[0].value == two_runs[1].id


@pytest.mark.parametrize(
    ("address", "says"),
    [
        ({"case": CASE}, "There is nothing to compare yet."),
        ({"case": "nowhere"}, "There is no such case"),
    ],
)
def test_without_two_runs_the_page_explains_how_to_get_them(
    audited_workbench: Workbench, address: dict[str, str], says: str
) -> None:
    assert says in texts(open_page("compare", **address))


@pytest.mark.parametrize("audited", [False, True])
def test_a_case_without_an_answer_says_why_and_collapses_the_reasoning(
    tmp_path: Path, serve: Serve, audited: bool
) -> None:
    path = tmp_path / "none.db"
    workbench = Workbench.open(path)
    record = {
        "id": "none",
        "query": "How tall is the mill?",
        "evidence": [{"id": "1", "text": "The mill is 18 metres tall."}],
        "no_answer": {"code": "refused", "message": "I <b>can't</b> help [9]."},
        "reasoning": "Perhaps **20** metres [8]?",
    }
    case = case_of(record)
    workbench.cases.add(ADA, [case])
    if audited:
        workbench.audits.audit(ADA, case)
    workbench = serve(path)
    app = page(case="none")
    assert not app.exception
    assert any("No answer: refused" in warning.value for warning in app.warning)
    assert "Model's reasoning, not audited" in [expander.label for expander in app.expander]
    shown = [text.value for text in app.text]
    assert "I <b>can't</b> help [9]." in shown
    assert "Perhaps **20** metres [8]?" in shown
    if audited:
        summary = workbench.store.cases.summary("none")
        assert (summary.standing, summary.reasons, summary.flags) == (
            "no_answer",
            ("answer_refused",),
            ("no_answer",),
        )
        assert (
            summary.headline == "No answer. The system refused to answer: I <b>can't</b> help [9]."
        )
        decide(workbench, "none", "reject", reason="It refused.")
        assert workbench.store.cases.summary("none").standing == "decided"


def test_an_evidence_url_isnt_rendered_as_markup(tmp_path: Path, serve: Serve) -> None:
    workbench = serve(tmp_path / "missing.db")
    source = "https://example.org/:red[x]_**y**"
    case = case_of(
        {
            "id": "case-1",
            "query": "When?",
            "answer": "In 1932 [1].",
            "evidence": [{"id": "1", "text": "", "source": source}],
        }
    )
    workbench.cases.add(ADA, [case])
    workbench.audits.audit(ADA, case)
    app = open_page("review", case="case-1")
    [link] = app.get("link_button")
    assert link.proto.url == source
    assert r"\:red\[x\]\_\*\*y\*\*" in link.proto.label


@pytest.mark.parametrize(
    ("machine", "decided", "until"),
    [
        ("after", False, "until you've decided."),
        ("after", True, None),
        ("never", False, "until the case is decided."),
        ("never", True, "until the case is decided."),
    ],
)
def test_a_hidden_audit_says_until_when(
    audited_workbench: Workbench, machine: MachineShown, decided: bool, until: str | None
) -> None:
    audited_workbench.team.put_in_force(ADA, QueuePolicy(reviewers=2, machine=machine))
    if decided:
        decide(audited_workbench, CASE, "approve", "Ada")
    said = component_data(open_page("review", {"reviewer-name": "Ada"}, case=CASE))
    assert ("hides the results of the audit" in said) == (until is not None)
    assert until is None or until in said

"""A decision is about the answer that stood on the page: every way to decide about another one is
refused.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import streamlit as st
from streamlit.testing.v1 import AppTest

from masis.errors import AnotherAnswer, StoreError, UnknownRecord
from masis.schema.actor import Actor
from masis.schema.review import Decision, answer_digest, decided_about
from masis.schema.run import Run
from masis.services import Workbench, app_root, demo_cases
from masis.services.drafts import case_subject
from masis.services.records import CaseFilter
from masis.settings import Settings
from masis.ui.review import decision
from masis.ui.review import decision_form as forms
from masis.views.answer import shown_answer
from masis.views.log_entries import verdict_text
from masis.views.numbers import moment_utc
from tests.cases import with_copied_figure
from tests.reviewing import ADA, having_seen
from tests.ui.conftest import Serve

CASE, OTHER = "strategy-01-fabricated", "docs-02-altered"
Posted = dict[str, Any]


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("shown") / "shown.db"
    workbench = Workbench.open(path)
    workbench.cases.add(ADA, [with_copied_figure(case) for case in demo_cases()])
    case = workbench.store.cases.get(CASE)
    workbench.audits.audit(ADA, case, settings=Settings(max_iterations=1))
    workbench.audits.audit(ADA, case)
    workbench.audits.audit(ADA, workbench.store.cases.get(OTHER))
    return path


@pytest.fixture
def workbench(served: Path, serve: Serve) -> Workbench:
    return serve(served)


def newest(workbench: Workbench, case_id: str = CASE) -> Run:
    run = workbench.cases.open(case_id).run
    assert len(run.iterations) > 1
    return run


def older(workbench: Workbench) -> Run:
    return workbench.runs.get(workbench.cases.open(CASE).runs[-1].id)


def right(workbench: Workbench, index: int = 0, verdict: str = "approve") -> Posted:
    """What the page posts when the answer it shows is approved."""
    view, run = workbench.cases.open(CASE), newest(workbench)
    return {
        "case": CASE,
        "token": f"token-{index}-{verdict}",
        "seen": view.summary.version,
        "mount": "m",
        "seq": 1,
        "sends": 1,
        "fields": {"verdict": verdict},
        "shown": dict(shown_answer(view.case, run, index)),
        "acknowledged": [issue.id for issue in forms.serious_issues(run, index)],
        "advance": False,
    }


def post(
    posted: Posted,
    *,
    kind: str = "submit",
    times: int = 1,
    session: Posted | None = None,
    **address: str,
) -> AppTest:
    """Open the case at an address, and have its form post a submit (or an act), as a
    browser does.
    """
    waiting = [posted] * times

    def browser(**_: Any) -> SimpleNamespace:
        idle: dict[str, Any] = {"draft": None, "act": None, "submit": None}
        return SimpleNamespace(**idle | ({kind: waiting.pop()} if waiting else {}))

    app = AppTest.from_file(str(app_root() / "app.py"), default_timeout=30)
    for name, held in {"reviewer-name": "Ada", **(session or {})}.items():
        app.session_state[name] = held
    for name, value in {"case": CASE, **address}.items():
        app.query_params[name] = value
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(decision, "_COMPONENT", browser)
        app.run()
    assert not waiting, "the form was not drawn"
    assert not app.exception
    return app


def said(app: AppTest) -> str:
    form = app.session_state["decision-form"]
    return form.message.text if form.message else ""


def test_an_escalation_without_a_note_asks_for_confirmation_once(workbench: Workbench) -> None:
    app = post(right(workbench, verdict="escalate"))
    assert "choose a reason or write a note" in said(app)
    assert workbench.reviews.current(CASE) is None
    waiting = [right(workbench, verdict="escalate")]
    idle: Posted = {"draft": None, "act": None}
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(
            decision,
            "_COMPONENT",
            lambda **_: SimpleNamespace(**idle, submit=waiting.pop() if waiting else None),
        )
        app.run()
    assert said(app).startswith("Escalated")
    entry = workbench.reviews.current(CASE)
    workbench.reviews.undo(ADA, entry.id)
    note = {
        **right(workbench, verdict="escalate"),
        "fields": {"verdict": "escalate", "note": "Which year?"},
    }
    assert said(post({**note, "token": "another"})).startswith("Escalated")
    entry = workbench.reviews.current(CASE)
    workbench.reviews.undo(ADA, entry.id)


@pytest.mark.parametrize("came_back", [True, False])
def test_after_returning_to_undo_the_reviewer_continues_at_the_previous_place(
    workbench: Workbench, came_back: bool
) -> None:
    queue = [
        row.id
        for row in workbench.cases.find(
            CaseFilter(states=("new", "needs_review"), order="oldest", size=200)
        ).rows
    ]
    assert queue.index(CASE) > 0
    undone = (
        {"carried-message": (CASE, decision._Message("Undone.", "calm"), queue[-1])}
        if came_back
        else {}
    )
    posted = {**right(workbench), "token": f"back {came_back}", "advance": True}
    app = post(posted, session=undone, order="oldest")
    after = queue[-1] if came_back else queue[queue.index(CASE) + 1]
    assert app.query_params["case"] in (after, [after])
    workbench.reviews.undo(ADA, workbench.reviews.current(CASE).id)


def test_a_decision_interrupted_by_a_rerun_is_still_confirmed_and_opens_the_next_case(
    workbench: Workbench, monkeypatch: pytest.MonkeyPatch
) -> None:
    ends = [st.rerun]  # as a message of the browser does that comes in just then
    monkeypatch.setattr(decision, "forget_scores", lambda *_: ends.pop()() if ends else None)
    app = post({**right(workbench), "token": "ended", "advance": True}, order="oldest")
    assert not ends
    assert app.query_params["case"] not in (CASE, [CASE])
    entry = workbench.reviews.current(CASE)
    assert app.session_state["previous-decision"].entry == entry.id
    workbench.reviews.undo(ADA, entry.id)


def test_a_newer_audit_is_announced_with_its_author_and_time(
    workbench: Workbench,
) -> None:
    stale = right(workbench)
    workbench.audits.audit(
        Actor(name="Ben"), workbench.store.cases.get(CASE), settings=Settings(max_iterations=2)
    )
    again, *_ = workbench.cases.open(CASE).runs
    assert f"It was audited again by Ben at {(again.ended_at or '')[11:16]} UTC." in said(
        post(stale)
    )
    assert "audited again" not in said(post({**right(workbench), "token": "stale", "seen": 1}))
    first, *_, last = forms.with_audits([], workbench.cases.open(CASE).runs)
    assert (first["who"], first["what"], first["at"]) == ("Ben", "Audited again", again.ended_at)
    assert first["when"] == moment_utc(again.ended_at or "")
    assert last["what"] == "Audited"


def shown(workbench: Workbench, run: Run | None, index: int, case_id: str = CASE) -> Posted:
    return dict(shown_answer(workbench.store.cases.get(case_id), run, index))


def with_shown(change: Callable[[Workbench, Posted], object]) -> Callable[[Workbench], Posted]:
    def made(workbench: Workbench) -> Posted:
        posted = right(workbench)
        return {**posted, "shown": change(workbench, posted["shown"])}

    return made


WAYS: dict[str, tuple[Callable[[Workbench], Posted], dict[str, str]]] = {
    "a revision stood on the page, the original is the page's now": (
        with_shown(lambda workbench, _: shown(workbench, newest(workbench), 1)),
        {},
    ),
    "the original stood on the page, the iteration was switched during submit": (
        right,
        {"iteration": "2"},
    ),
    "the place is switched and the text is not drawn yet": (
        with_shown(lambda w, now: {**now, "digest": shown(w, newest(w), 1)["digest"]}),
        {},
    ),
    "the text is drawn and the place is late": (
        with_shown(lambda w, now: {**now, "place": shown(w, newest(w), 1)["place"]}),
        {},
    ),
    "nothing says what was shown": (
        lambda w: {name: value for name, value in right(w).items() if name != "shown"},
        {},
    ),
    "no answer was drawn": (with_shown(lambda *_: None), {}),
    "a list in place of an answer": (with_shown(lambda w, now: [now["place"], now["digest"]]), {}),
    "no place": (with_shown(lambda w, now: {"digest": now["digest"]}), {}),
    "the answer of an older audit": (with_shown(lambda w, _: shown(w, older(w), 0)), {}),
    "a link switched the audit, the form is late": (right, {"run": "older"}),
    "another case stood on the page": (
        with_shown(lambda w, _: shown(w, newest(w, OTHER), 0, OTHER)),
        {},
    ),
    "the form of another case posts": (lambda w: {**right(w), "case": OTHER}, {}),
    "a tab from before the first audit": (with_shown(lambda w, _: shown(w, None, 0)), {}),
    "a tab from before the newest audit": (
        lambda w: {**right(w), "seen": right(w)["seen"] - 1},
        {},
    ),
    "an iteration that does not exist": (
        with_shown(lambda w, now: {**now, "place": f"{CASE}/{newest(w).id}/9"}),
        {},
    ),
    "the answer with a word more": (
        with_shown(
            lambda w, now: {
                **now,
                "digest": answer_digest(newest(w).iterations[0].answer + " Perhaps."),
            }
        ),
        {},
    ),
    "serious issues that nobody was shown": (lambda w: {**right(w), "acknowledged": []}, {}),
}


@pytest.mark.parametrize("way", WAYS)
def test_only_the_shown_answer_can_be_approved(workbench: Workbench, way: str) -> None:
    made, address = WAYS[way]
    if address.get("run") == "older":
        address = {"run": older(workbench).id}
    before = workbench.store.decisions.head().length
    post(made(workbench), **address)
    assert workbench.store.decisions.head().length == before


def test_the_service_rejects_a_decision_about_another_answer(workbench: Workbench) -> None:
    run = newest(workbench)
    original, revised = (answer_digest(iteration.answer) for iteration in run.iterations[:2])

    def decide(digest: str, run_id: str | None = run.id, iteration: int | None = 1) -> None:
        made = Decision(
            reviewer="Ada", case_id=CASE, run_id=run_id, iteration=iteration, verdict="approve"
        )
        workbench.reviews.submit(ADA, made, shown=digest)

    before = workbench.store.decisions.head().length
    with pytest.raises(AnotherAnswer, match="Nothing was recorded"):
        decide(revised)
    with pytest.raises(AnotherAnswer):
        decide(original, iteration=2)
    with pytest.raises(AnotherAnswer):
        decide(revised, run_id=None, iteration=None)
    with pytest.raises(AnotherAnswer):
        decide(revised, iteration=None)
    with pytest.raises(UnknownRecord):
        decide(revised, iteration=9)
    with pytest.raises(StoreError, match="belongs to case"):
        decide(revised, run_id=newest(workbench, OTHER).id)
    assert workbench.store.decisions.head().length == before


def test_an_approval_records_which_answer_was_shown(workbench: Workbench) -> None:
    app = post(right(workbench, 1), iteration="2")
    made = newest_decision(workbench)
    assert made.iteration == 2
    assert decided_about(made) == "revision 2"
    assert verdict_text(made) == "Approved revision 2"
    assert app.session_state["previous-decision"].words == f"Approved revision 2 of {CASE}"


def test_an_approval_records_the_listed_serious_issues(workbench: Workbench) -> None:
    issues = forms.serious_issues(newest(workbench), 0)
    assert issues
    post(right(workbench))
    made = newest_decision(workbench)
    assert decided_about(made) == "the original answer"
    assert [each["id"] for each in made.extra["issues_seen"]] == [issue.id for issue in issues]
    assert {each["severity"] for each in made.extra["issues_seen"]} <= {"critical", "high"}


def test_a_decision_without_an_iteration_is_about_the_original_answer(
    workbench: Workbench,
) -> None:
    run = newest(workbench)
    assert run.final_answer != run.iterations[0].answer
    made = Decision(reviewer="Ada", case_id=CASE, run_id=run.id, iteration=None, verdict="approve")
    seen = having_seen(workbench, made)
    workbench.reviews.submit(ADA, seen, shown=answer_digest(run.iterations[0].answer))
    outcome = workbench.reviews.outcome(CASE)
    assert outcome.answer == run.iterations[0].answer
    assert verdict_text(outcome.decision) == "Approved the original answer"
    assert workbench.store.decisions.verify().intact
    undone = workbench.reviews.current(CASE)
    workbench.reviews.undo(ADA, undone.id)


def test_the_next_case_names_the_skipped_one(workbench: Workbench) -> None:
    other = workbench.store.cases.get(CASE).model_copy(update={"id": "other"})
    workbench.cases.add(ADA, [other])
    workbench.audits.audit(ADA, other)
    app = post({"case": CASE, "kind": "skip"}, kind="act")
    assert app.query_params["case"] != CASE
    assert said(app) == f"Skipped {CASE}. It comes back after the other cases."


def test_after_the_last_search_result_the_full_queue_is_offered(workbench: Workbench) -> None:
    app = post({"case": CASE, "kind": "next"}, kind="act", q="nowhere")
    message = app.session_state["decision-form"].message
    assert (message.narrowed, message.text.endswith("still wait.")) == (True, True)
    # behind the end of the list, still
    app = post({"case": CASE, "kind": "forward"}, kind="act", q="nowhere")
    message = app.session_state["decision-form"].message
    assert (message.text, message.narrowed) == ("This is the last case of the list.", True)
    app = post({"case": CASE, "kind": "whole_queue"}, kind="act", q="nowhere")
    assert app.query_params["case"] != [CASE]
    assert "q" not in app.query_params


def test_a_revision_can_be_taken_as_the_correction(workbench: Workbench) -> None:
    for iteration in ("", "2"):
        app = post({"case": CASE, "kind": "take_revision"}, kind="act", iteration=iteration)
        fields = workbench.drafts.get(ADA, case_subject(CASE)).values
        assert (fields["verdict"], fields["corrected"]) == (
            "override",
            newest(workbench).iterations[1].answer,
        )
        assert "iteration" not in app.query_params
        assert app.session_state["decision-form"].message.where == "reason"
        workbench.drafts.clear(ADA, case_subject(CASE))


def test_a_late_draft_message_doesnt_overwrite_a_submitted_form(
    workbench: Workbench,
) -> None:
    typed = {"verdict": "override", "corrected": "Bridge 1 is 101 metres long."}
    before = {**right(workbench), "token": "typed", "fields": {"verdict": "override"}}
    submit = {**before, "seq": 2, "fields": typed}
    # a draft is a state of the page: every run states the last one again, also after the submit
    # that followed it
    draws = iter([(before, None), (before, submit)])
    with pytest.MonkeyPatch.context() as patched:
        app = AppTest.from_file(str(app_root() / "app.py"), default_timeout=30)
        app.session_state["reviewer-name"] = "Ada"
        app.query_params["case"] = CASE

        def page(**_: Any) -> SimpleNamespace:
            draft, submitted = next(draws, (before, None))
            return SimpleNamespace(draft=draft, submit=submitted, act=None)

        patched.setattr(decision, "_COMPONENT", page)
        app.run()
    assert said(app).startswith("A reason is missing: to override needs one.")
    assert app.session_state["decision-form"].acks == {"m": 2}
    assert workbench.drafts.get(ADA, case_subject(CASE)).values["corrected"] == typed["corrected"]
    workbench.drafts.clear(ADA, case_subject(CASE))


def test_a_doubtful_correction_asks_once_and_is_recorded_on_resubmission(
    workbench: Workbench,
) -> None:
    corrected = f"{newest(workbench).iterations[0].answer} It is blue [chunk_77]."
    fields = {"verdict": "override", "corrected": corrected, "reason": "other", "other": "tried"}
    posted = {**right(workbench, verdict="override"), "fields": fields}
    before = workbench.reviews.current(CASE)
    message = post(posted).session_state["decision-form"].message
    assert "“chunk_77”, which names no evidence" in message.text
    assert workbench.reviews.current(CASE) == before
    post({**posted, "seq": 2}, times=2)
    assert newest_decision(workbench).corrected_answer == corrected


def newest_decision(workbench: Workbench) -> Decision:
    entry = workbench.reviews.current(CASE)
    assert entry.decision.kind == "decision"
    return entry.decision

"""The page of a new audit as Streamlit runs it: the form, its draft, the start, and watching a run
by its address.
"""

from __future__ import annotations

import functools
import time
from pathlib import Path
from typing import Any

import pytest
from streamlit.testing.v1 import AppTest

from masis.errors import UnknownRecord
from masis.services import ANONYMOUS, Workbench, demo_cases
from masis.ui.new_audit.page import ANSWER, QUESTION, AuditForm
from tests.reviewing import ADA
from tests.ui.conftest import Serve, labels, open_page, press, texts

EVIDENCE = "[1] The bridge is 120 metres long.\n[2] It was opened in 1931."


@pytest.fixture
def workbench(tmp_path: Path, serve: Serve) -> Workbench:
    workbench = serve(tmp_path / "pages.db")
    workbench.cases.add(ADA, [case for case, _ in zip(demo_cases(), range(12), strict=False)])
    return workbench


page = functools.partial(open_page, "new")


def draft(workbench: Workbench) -> dict[str, Any]:
    return dict(workbench.store.drafts.get(ANONYMOUS.draft_owner, AuditForm.SUBJECT).values)


def finished(app: AppTest, workbench: Workbench) -> str:
    """Wait for the audit the address names; its run's id."""
    named = app.query_params["job"]
    run_id = named if isinstance(named, str) else str(named[0])
    deadline = time.monotonic() + 60
    while not _is_finished(workbench, run_id):
        assert time.monotonic() < deadline, "the audit did not finish"
        time.sleep(0.02)
    return run_id


def shown_as_over(app: AppTest) -> None:
    """Look again, as the page itself does, until it offers the review: a run is stored a moment
    before its job ends.
    """
    deadline = time.monotonic() + 60
    app.run()
    while "Review it" not in labels(app):
        assert time.monotonic() < deadline, labels(app)
        time.sleep(0.05)
        app.run()


def _is_finished(workbench: Workbench, run_id: str) -> bool:
    try:
        return workbench.store.runs.summary(run_id).state == "finished"
    except UnknownRecord:
        return False


def test_the_example_fills_the_form_and_is_saved_as_a_draft(workbench: Workbench) -> None:
    app = page()
    press(app, "Fill in an example")
    assert draft(workbench)["question"] == QUESTION
    assert draft(workbench)["answer"] == ANSWER


def test_a_draft_survives_a_new_session_and_can_be_discarded(workbench: Workbench) -> None:
    workbench.store.drafts.save(
        ANONYMOUS.draft_owner,
        AuditForm.SUBJECT,
        {"question": "Half a", "settings": {"strictness": "strict"}},
    )
    app = page()
    assert "This is your draft of" in texts(app)
    assert "1 setting changed" in texts(app)
    press(app, "Discard draft")
    assert not draft(workbench)["question"]
    assert "This is your draft of" not in texts(app)


def test_starting_stores_the_case_and_opens_the_audit(workbench: Workbench) -> None:
    workbench.store.drafts.save(
        ANONYMOUS.draft_owner,
        AuditForm.SUBJECT,
        {"question": "How long?", "evidence": EVIDENCE, "answer": "It is 210 metres long [1][9]."},
    )
    app = page()
    press(app, "Start the audit")
    run_id = finished(app, workbench)
    shown_as_over(app)
    run = workbench.store.runs.get(run_id)
    assert workbench.store.cases.get(run.case_id).query == "How long?"
    assert run.case_id in app.query_params["case"]
    assert not draft(workbench)["question"]


def test_starting_without_a_question_shows_an_error_and_keeps_the_text(
    workbench: Workbench,
) -> None:
    workbench.store.drafts.save(ANONYMOUS.draft_owner, AuditForm.SUBJECT, {"evidence": EVIDENCE})
    app = page()
    press(app, "Start the audit")
    assert "job" not in app.query_params
    assert draft(workbench)["evidence"] == EVIDENCE


def test_chosen_settings_are_saved_and_used(workbench: Workbench) -> None:
    workbench.store.drafts.save(
        ANONYMOUS.draft_owner, AuditForm.SUBJECT, {"question": "How long?", "evidence": EVIDENCE}
    )
    app = page()
    next(each for each in app.selectbox if each.label == "Maximum iterations").select(1)
    app.run()
    assert draft(workbench)["settings"] == {"max_iterations": 1}
    press(app, "Start the audit")
    assert workbench.store.runs.get(finished(app, workbench)).settings["max_iterations"] == 1
    assert draft(workbench)["settings"] == {"max_iterations": 1}


def test_a_just_chosen_model_applies_to_all_roles(
    workbench: Workbench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-of-a-test")  # so that a model is on offer
    app = page()
    next(each for each in app.selectbox if each.label == "Critic").select("openai:gpt-4o")
    # both reach the server at once: the page was drawn with the model before
    press(app, "Use the critic's model for all")
    assert {draft(workbench)["settings"][role] for role in ("drafter", "verifier", "reviser")} == {
        "openai:gpt-4o"
    }


def test_each_rerun_sends_the_chosen_input_method_to_the_browser(
    workbench: Workbench,
) -> None:
    app = page().run()  # a run cut short by this one may not have reached the browser
    way = app.button_group(key="new-audit-way-typed")
    assert list(way.proto.default) == [0]
    way.set_value(None)  # what a browser posts that no run has reached
    app.run()
    assert "Fill in an example" in labels(app)
    assert list(page(case="docs-01").button_group(key="new-audit-way-stored").proto.default) == [1]


def test_a_stored_case_in_the_url_can_be_audited(workbench: Workbench) -> None:
    case_id = next(iter(workbench.store.cases.iterate())).id
    app = page(case=case_id)
    press(app, "Start the audit")
    run_id = finished(app, workbench)
    assert workbench.store.runs.get(run_id).case_id == case_id
    assert "Audit it again" in labels(page(case=case_id))


def test_an_unknown_case_in_the_url_is_reported(workbench: Workbench) -> None:
    assert "This database doesn't have that case" in texts(page(case="nowhere"))


@pytest.mark.parametrize("job", ["nowhere", "../..", "x" * 5000, "%00"])
def test_an_unknown_run_is_reported_with_a_link(workbench: Workbench, job: str) -> None:
    app = page(job=job)
    assert "There is no such audit" in texts(app)
    assert "New audit" in labels(app)


def test_a_run_that_never_started_can_be_restarted(workbench: Workbench) -> None:
    case_id = next(iter(workbench.store.cases.iterate())).id
    app = page(job="lost", case=case_id)
    assert "never started" in texts(app)
    press(app, "Start it again")
    assert workbench.store.runs.get(finished(app, workbench)).case_id == case_id


def test_an_interrupted_run_shows_its_progress_and_can_be_resumed(workbench: Workbench) -> None:
    case = next(iter(workbench.store.cases.iterate()))

    def stop(event: Any) -> None:
        if event.kind == "iteration_finished":
            raise RuntimeError

    with pytest.raises(RuntimeError):
        workbench.audits.audit(ADA, case, run_id="cut", on_event=stop)
    app = page(job="cut")
    assert "Resume" in labels(app)
    press(app, "Resume")
    assert finished(app, workbench) == "cut"
    assert workbench.store.runs.summary("cut").state == "finished"


def test_a_file_too_long_for_the_field_is_stored_separately(workbench: Workbench) -> None:
    text = "\n\n".join(
        f"[{n}] Station {n} was opened in {1800 + n % 200}. {'It has platforms. ' * 6}"
        for n in range(2000)
    )
    app = page()
    next(each for each in app.file_uploader if "evidence" in each.label).upload(
        "stations.txt", text.encode(), "text/plain"
    )
    app.run()
    assert not app.exception
    assert "From the file stations.txt" in texts(app)
    assert draft(workbench)["large"]["name"] == "stations.txt"
    assert "From the file stations.txt" in texts(page())
    press(app, "Remove the file")
    assert not draft(workbench)["large"]

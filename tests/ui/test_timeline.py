"""The timeline says what each step of an audit found, how the scores moved, and how it ended."""

from __future__ import annotations

from masis import run_audit
from masis.audit import loop
from masis.observers.observation import run_to_completion
from masis.schema.base import Unscored
from masis.schema.case import Case
from masis.schema.run import Event
from masis.services import demo_cases
from masis.settings import Settings
from masis.ui.new_audit.live_run import STEP, Shown, build_timeline, build_waiting_timeline
from tests.cases import with_copied_figure
from tests.scripted import ScriptedCritic, roles

CASE = with_copied_figure(next(case for case in demo_cases() if case.id == "strategy-01"))
NOW = "2099-01-01T00:00:00.000Z"


def events_of(case: Case = CASE, settings: Settings | None = None) -> list[Event]:
    events: list[Event] = []
    run_audit(case, settings, on_event=events.append)
    return events


def draw_timeline(events: list[Event], state: str = "finished", why: str = "") -> Shown:
    return build_timeline(events, state, events[-1].at if events else NOW, why)  # type: ignore[arg-type]


def timeline_text(found: Shown) -> str:
    return "\n".join(
        f"{step['name']}: {step['words']}" for group in found["groups"] for step in group["steps"]
    )


def test_every_step_is_listed_with_its_result_and_time() -> None:
    found = draw_timeline(events_of())
    assert [group["title"] for group in found["groups"]] == ["Iteration 1", "Iteration 2"]
    first = found["groups"][0]
    assert [step["name"] for step in first["steps"]] == [STEP[name].text for name in list(STEP)[1:]]
    assert "6 citations, 1 fabricated" in timeline_text(found)
    assert "1 contradicted, 5 not confirmed" in timeline_text(found)
    assert all(
        step["state"] == "done" and step["ms"] is not None
        for group in found["groups"]
        for step in group["steps"]
    )


def test_scores_show_their_change_and_the_chosen_iteration_is_marked() -> None:
    first, second = draw_timeline(events_of())["groups"]
    assert [figure["name"] for figure in first["scores"]] == ["Quality", "Confidence", "Overall"]
    assert all(figure["delta"] is None for figure in first["scores"])
    assert all((figure["delta"] or 0) > 0 for figure in second["scores"])
    assert (first["chosen"], second["chosen"]) == (False, True)
    assert "serious" in first["issues"]


def test_the_last_entry_shows_the_ending_and_the_chosen_answer() -> None:
    end = draw_timeline(events_of())["end"]
    assert end["text"] == "Finished"
    assert "Iteration 2 is suggested: quality" in " ".join(end["details"])
    assert "A person should review the answer." in end["details"]


def test_a_running_audit_shows_its_current_step() -> None:
    events = events_of()
    cut = next(
        i
        for i, event in enumerate(events)
        if event.kind == "step_started" and event.step == "critique"
    )
    found = draw_timeline(events[: cut + 1], "running")
    assert found["end"] is None
    assert [step["state"] for step in found["groups"][0]["steps"]] == ["done", "done", "now"]
    assert found["live"] == found["current_step"] == "Iteration 1, critique"


def test_the_clock_runs_until_the_audit_has_finished() -> None:
    events = events_of()
    assert build_timeline(events[:3], "running", NOW)["elapsed_ms"] > 10**9
    assert build_timeline(events, "finished", NOW)["elapsed_ms"] < 10**6


def test_an_interrupted_run_shows_where_and_why_it_stopped() -> None:
    events = events_of()[:4]
    found = draw_timeline(events, "interrupted", "The process ended.")
    assert found["groups"][0]["steps"][-1]["state"] == "cut"
    assert found["end"] == {
        "text": "Interrupted",
        "tone": "warn",
        "details": ["The process ended."],
    }


def test_a_resumed_run_repeats_the_interrupted_iteration() -> None:
    whole = events_of()
    again = [event.model_copy(update={"seq": event.seq + 4}) for event in whole]
    found = draw_timeline([*whole[:4], *again])
    assert [group["title"] for group in found["groups"]] == ["Iteration 1", "Iteration 2"]
    assert "resumed" in found["groups"][0]["note"]
    assert {step["state"] for step in found["groups"][0]["steps"]} == {"done"}
    assert len(found["groups"][0]["steps"]) == 5


def test_a_case_without_an_answer_starts_with_its_draft() -> None:
    case = Case.model_validate({**CASE.to_json_dict(), "answer": None})
    found = draw_timeline(events_of(case))
    assert [group["title"] for group in found["groups"]][:2] == ["Draft", "Iteration 1"]
    assert found["groups"][1]["note"] == "the answer drafted by MASIS"


def test_an_iteration_without_evaluation_has_no_unscored_figure() -> None:
    found = draw_timeline(events_of(settings=Settings(evaluate="final")))
    assert [figure["name"] for figure in found["groups"][0]["scores"]] == ["Quality", "Confidence"]
    assert [figure["name"] for figure in found["groups"][-1]["scores"]] == [
        "Quality",
        "Confidence",
        "Overall",
    ]


def test_a_warning_is_shown_in_its_iteration() -> None:
    found = draw_timeline(events_of(settings=Settings(max_iterations=1)))
    assert "limit of iterations" in found["groups"][0]["warnings"][0]


def test_a_failed_step_isnt_ticked_and_the_last_entry_says_why() -> None:
    events: list[Event] = []
    silent = ScriptedCritic([Unscored(reason="the key was not accepted", code="CRITIC-ERR-005")])
    run_to_completion(
        loop.audit(CASE, roles(critic=silent), Settings(), run_id="r1"), events.append
    )
    found = draw_timeline(events)
    states = {step["name"]: step["state"] for step in found["groups"][0]["steps"]}
    assert (states["Claims"], states["Critique"], states["Evaluation"]) == (
        "done",
        "unscored",
        "done",
    )
    assert "the key was not accepted" in found["end"]["details"][1]


def test_a_timeline_without_events_is_empty() -> None:
    assert draw_timeline([], "running")["live"] == "Starting"
    assert build_waiting_timeline("Two first.")["waiting"] == "Two first."


def test_a_case_without_an_answer_says_so_at_the_end() -> None:
    events: list[Event] = []
    run_audit(
        {"query": "How tall?", "evidence": ["18 m"], "error": "It broke"}, on_event=events.append
    )
    shown = build_timeline(events, "finished", events[-1].at)
    assert shown["end"]["text"] == "No answer"
    assert any("It broke" in detail for detail in shown["end"]["details"])
    assert [group["title"] for group in shown["groups"]] == []

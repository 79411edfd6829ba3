"""The page of an audit: live while it runs, and its result afterwards, at the same address."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Literal

import streamlit as st

from masis.api.audits import audit_citations, citations_kept
from masis.schema.base import utc_now
from masis.schema.rules import KINDS
from masis.schema.run import Event
from masis.schema.wording import count_noun
from masis.services import Workbench
from masis.services.jobs import Jobs
from masis.services.records import RunState, RunSummary
from masis.ui.components import register_component
from masis.ui.live import served_jobs, show_live, show_stop, waiting_text
from masis.ui.shell import address
from masis.ui.shell.frame import tab_title
from masis.ui.shell.permissions import action
from masis.ui.shell.reviewer import acting, actor
from masis.ui.shell.served_database import served_workbench
from masis.views.headline import issue_lines
from masis.views.markdown import colour_label
from masis.views.numbers import day
from masis.views.spending import spent_so_far
from masis.views.words import MACHINE_HIDDEN, SCORE, STANDING, VERDICT, Word, ending_text

_TIMELINE = register_component("timeline")


def show_run(workbench: Workbench, run_id: str, case_id: str) -> None:
    """Draw the audit named in the address.

    Args:
        workbench: The services.
        run_id: The run in the address.
        case_id: The case in the address, for a run that never started.

    """
    jobs = served_jobs()
    job, run = jobs.get(run_id), address.find_by_id(workbench.runs.summary, run_id)
    if job is None and run is None:
        _draw_missing_run(workbench, jobs, run_id, case_id)
        return
    case_id = job.subject if job else run.case_id if run else case_id
    case = workbench.cases.summary(case_id)
    busy = job is not None or (run is not None and run.state == "running")
    title = "Auditing" if busy else "Audit finished"
    if not busy and run is not None:
        if run.removed_at is not None:
            title = "Audit removed"
        elif run.state == "interrupted":
            title = "Audit interrupted"
        elif run.termination == "cancelled":
            title = "Audit stopped"
    st.set_page_config(page_title=tab_title(title, case.query))
    st.title(title, anchor=False)
    st.text(case.query)
    if busy:
        show_live(_draw_live, run_id, case_id)
    elif run is not None:
        _draw_finished(workbench, jobs, run)


def _draw_live(run_id: str, case_id: str) -> bool:
    """Draw the progress of the run, and return whether it's running."""
    workbench, jobs = served_workbench(), served_jobs()
    run = address.find_by_id(workbench.runs.summary, run_id)
    is_ours = jobs.get(run_id) is not None  # another process may run it
    # mark_lost includes this run if the process that ran it is gone.
    if not is_ours and (
        run is None or run.state != "running" or run_id in workbench.runs.mark_lost()
    ):
        return False
    if waits := waiting_text("audit", run_id, run is not None and run.state == "running"):
        shown = build_waiting_timeline(waits)
    elif workbench.team.machine_hidden(actor(), case_id):
        shown = build_waiting_timeline(MACHINE_HIDDEN)
    else:
        shown = build_timeline(workbench.runs.events(run_id), "running", utc_now())
    stopping = jobs.is_cancelling("audit", run_id)
    show_stop("audit", "steps", stopping=stopping, on_click=acting(jobs.cancel, "audit", case_id))
    _TIMELINE(data=shown, key="timeline")
    if shown["groups"]:
        show_interim_issues(workbench, run_id)
    return True


def show_interim_issues(workbench: Workbench, run_id: str) -> None:
    """Draw the issues that a running audit has found in the original answer, worst first."""
    progress = workbench.runs.progress(run_id)
    case = workbench.store.cases.get(progress.case_id)
    steps = progress.steps if not progress.iterations else None
    if progress.iterations:
        original = progress.iterations[0]
        issues = issue_lines(original.citation_audit, original.claims, original.issues)
    else:
        answer = case.answer or (progress.draft.answer if progress.draft else "")
        audit = audit_citations(
            answer, case.evidence, workbench.settings, citations=citations_kept(case, answer)
        )
        issues = issue_lines(audit, steps.claims if steps else (), steps.issues if steps else ())
    if not issues:
        return
    st.markdown("**Found so far in the original answer**")
    for kind, (text, count) in issues.items():
        more = f" · {count_noun(count, KINDS[kind].one, KINDS[kind].many)}" if count > 1 else ""
        st.markdown(f"{colour_label(Word(text, KINDS[kind].tone))}{more}")


def _draw_finished(workbench: Workbench, jobs: Jobs, run: RunSummary) -> None:
    with st.container(horizontal=True):
        if run.state == "interrupted" and run.removed_at is None:
            why = "Continue after the last finished iteration."
            action(
                "Resume",
                "resume-audit",
                "play_arrow",
                _start_audit,
                run.case_id,
                run.id,
                why=why,
                type="primary",
            )
        elif run.iterations and run.removed_at is None:
            _draw_page_button(
                "Review it", "rate_review", "review", "primary", case=run.case_id, run=run.id
            )
            others = workbench.runs.for_case(run.case_id)
            if any(other.readable and other.id != run.id for other in others):
                _draw_page_button(
                    "Compare the audits", "compare", "compare", case=run.case_id, right=run.id
                )
        _draw_page_button("Audit again with other settings", "tune", "new", case=run.case_id)
        _draw_page_button("New audit", "add", "new", "tertiary")
    if workbench.team.machine_hidden(actor(), run.case_id):
        st.markdown(f":material/visibility_off: {MACHINE_HIDDEN} Decide the case first.")
        return
    if run.removed_at is not None:
        st.info(
            f"The retention policy removed this audit on {day(run.removed_at)}. Its metrics are"
            " still stored.",
            icon=":material/auto_delete:",
        )
        return
    why = jobs.failure("audit", run.case_id) or (run.why if run.state == "interrupted" else "")
    _TIMELINE(
        data=build_timeline(workbench.runs.events(run.id), run.state, utc_now(), why),
        key="timeline",
    )


def _draw_missing_run(workbench: Workbench, jobs: Jobs, run_id: str, case_id: str) -> None:
    """Explain why the run in the address isn't stored, and offer to start it again."""
    if address.find_by_id(workbench.cases.summary, case_id) is None:
        st.title("There is no such audit")
        st.text(run_id[:200])
        st.markdown("The audit may be in another database, or the link may be incomplete.")
        _draw_page_button("New audit", "add", "new", "primary")
        return
    st.title("This audit never started")
    if failure := jobs.failure("audit", case_id):
        st.error("The audit couldn't be run.", icon=":material/error:")
        st.text(failure)
    else:
        st.markdown(
            "The audit was removed from the queue, or the server stopped before its turn. The case"
            " is still stored."
        )
    with st.container(horizontal=True):
        action("Start it again", "start-again", "play_arrow", _start_audit, case_id, type="primary")
        _draw_page_button("Open the case", "rate_review", "review", case=case_id)


def _draw_page_button(
    label: str,
    icon: str,
    page: str,
    kind: Literal["primary", "secondary", "tertiary"] = "secondary",
    **parameters: str,
) -> None:
    if st.button(label, type=kind, icon=f":material/{icon}:"):
        st.switch_page(f"pages/{page}.py", query_params=parameters)


def _start_audit(case_id: str, run_id: str = "") -> None:
    """Audit a case, or resume the run ``run_id``, and put the audit into the address."""
    jobs = served_jobs()
    address.set_param(
        "job", jobs.resume_audit(actor(), run_id) if run_id else jobs.audit(actor(), case_id)
    )
    address.set_param("case", case_id)


# --- the timeline: the events of a run by iteration and step ----------------------------

STEP: dict[str, Word] = {
    "drafting": Word(
        "Drafting", "calm", "Writes an answer from the evidence for a case without one"
    ),
    "citations": Word(
        "Citations", "calm", "Looks up every reference and finds the sentences without one"
    ),
    "claims": Word("Claims", "calm", "Compares each claim with the evidence"),
    "critique": Word("Critique", "calm", "Weighs the issues and rates confidence in the answer"),
    "evaluation": Word(
        "Evaluation", "calm", "Scores faithfulness, relevance, completeness and reasoning"
    ),
    "revision": Word("Revision", "calm", "Corrects the answer, which the next iteration audits"),
}

RETRIES_SHOWN = 4
"""The number of the latest retried calls and repaired replies that an iteration shows."""

Shown = dict[str, Any]
"""Data of the timeline component, or of a part of it.

``groups`` are the iterations and the drafting before them. Each has its steps, its scores with
their changes, retried calls, repaired replies and warnings. ``current_step`` is the present step,
``live`` the last event for screen readers, and ``end`` the result.
"""


def build_waiting_timeline(text: str) -> Shown:
    """Return the timeline of an audit that hasn't started, with the reason."""
    return {
        "groups": [],
        "elapsed_ms": 0,
        "spent": "",
        "waiting": text,
        "current_step": "",
        "live": text,
        "end": None,
    }


def build_timeline(events: Sequence[Event], state: RunState, now: str, why: str = "") -> Shown:
    """Return the timeline of a run.

    Args:
        events: The events of the run, in order.
        state: The state of the run.
        now: The present time (ISO 8601), to measure a running audit.
        why: The reason why it was interrupted.

    """
    groups: dict[int | None, Shown] = {}
    started: dict[tuple[int | None, str | None], tuple[str, Shown]] = {}
    is_resumed = False
    for event in events:
        step = event.iteration, event.step
        if event.kind == "run_started":
            # A second start means that the run was resumed, so the step before it was cut off.
            is_resumed = bool(started)
            _mark_interrupted(groups)
        elif event.kind == "step_started":
            word = STEP[event.step or ""]
            step_data: Shown = {
                "name": word.text,
                "meaning": word.meaning,
                "state": "now",
                "words": "",
                "ms": None,
            }
            started[step] = event.at, step_data
            _group_of_event(groups, event, is_resumed)["steps"].append(step_data)
            is_resumed = False
        elif event.kind == "step_finished" and step in started:
            start, step_data = started[step]
            if event.step == "claims":
                scored = not event.data.get("verdicts", {}).get("unscored")
            else:
                figure = {"critique": "confidence", "evaluation": "overall_score"}.get(
                    event.step or ""
                )
                scored = figure is None or event.data.get(figure) is not None
            step_data |= {"state": "done" if scored else "unscored", "words": _event_text(event)}
            step_data["ms"] = _milliseconds_between(start, event.at)
        elif event.kind in ("call_retried", "call_repaired") and event.iteration in groups:
            retries = groups[event.iteration]["retries"]
            retries[:] = [*retries, event.message][-RETRIES_SHOWN:]
        elif event.kind == "warning" and groups:
            # A warning that belongs to no iteration is shown with the latest one.
            at = event.iteration if event.iteration in groups else next(reversed(groups))
            groups[at]["warnings"].append(event.message)
        elif event.kind == "iteration_finished":
            _add_results(groups, event)
    if state != "running":
        _mark_interrupted(groups)
    last = events[-1].at if events and state != "running" else now
    end = _build_result(events, state, why)
    if (
        end
        # With one iteration, there was nothing to choose.
        and (best := _run_outcome(events).get("best")) is not None
        and best + 1 in groups
        and len(groups) > 1
    ):
        groups[best + 1]["chosen"] = True
    current_step = live = "Starting"
    if groups:
        group = list(groups.values())[-1]  # a group is created with its first step
        step_now = group["steps"][-1]
        current_step = f"{group['title']}, {step_now['name'].lower()}"
        live = f"{current_step}: {step_now['words']}" if step_now["words"] else current_step
    return {
        "groups": list(groups.values()),
        "elapsed_ms": _elapsed_ms(events, last),
        "spent": spent_so_far(events),
        "waiting": "",
        "current_step": current_step,
        "live": end["text"] if end else live,
        "end": end,
    }


def _group_of_event(groups: dict[int | None, Shown], event: Event, is_resumed: bool) -> Shown:
    number = event.iteration
    # a resumed run repeats an unfinished iteration from its first step, so its group is emptied
    if number not in groups or (is_resumed and event.step in ("citations", "drafting")):
        origin = (
            "the original answer"
            if number == 1 and None not in groups
            else "the answer drafted by MASIS"
        )
        note = (
            "an answer is written from the evidence"
            if number is None
            else origin
            if number == 1
            else "revised"
        )
        groups[number] = {
            "title": "Draft" if number is None else f"Iteration {number}",
            "note": f"{note}, resumed" if is_resumed else note,
            "chosen": False,
            "issues": "",
            **{name: [] for name in ("steps", "retries", "warnings", "scores")},
        }
    return groups[number]


def _mark_interrupted(groups: dict[int | None, Shown]) -> None:
    for group in groups.values():
        for step in group["steps"]:
            if step["state"] == "now":
                step["state"] = "failed" if group["warnings"] else "cut"


def _add_results(groups: dict[int | None, Shown], event: Event) -> None:
    group = groups.get(event.iteration)
    if group is None:
        return
    before = groups.get((event.iteration or 0) - 1)
    evaluated = any(step["name"] == STEP["evaluation"].text for step in group["steps"])
    scores_before = {score["name"]: score["value"] for score in before["scores"]} if before else {}
    for name in ("quality_score", "confidence", "overall_score"):
        word, value = SCORE[name], event.data.get(name)
        if name == "overall_score" and value is None and not evaluated:
            continue
        earlier = scores_before.get(word.text)
        delta = None if value is None or earlier is None else round(value - earlier, 4)
        group["scores"].append(
            {"name": word.text, "meaning": word.meaning, "value": value, "delta": delta}
        )
    issues, major = event.data.get("issues", 0), event.data.get("major_issues", 0)
    group["issues"] = (
        "No issues found"
        if not issues
        else count_noun(issues, "issue")
        + (f", {major} of them serious" if major else ", none of them serious")
    )


def _event_text(event: Event) -> str:
    data: Mapping[str, Any] = event.data
    match event.step:
        case "drafting":
            return f"an answer of {count_noun(data.get('characters', 0), 'character')}"
        case "citations":
            references, invalid, uncited = (
                data.get(name, 0) for name in ("references", "invalid_citations", "uncited_claims")
            )
            factor = data.get("penalty_factor", 1.0)
            words = [
                count_noun(references, "citation") if references else "No citations",
                f"{invalid} fabricated" if invalid else "",
                (
                    f"{count_noun(uncited, 'sentence')} uncited"
                    if uncited
                    else "no sentence left uncited"
                ),
                f"confidence × {factor:g}" if factor < 1.0 else "",
            ]
        case "claims":
            verdicts: Mapping[str, int] = data.get("verdicts", {})
            counts = [
                f"{verdicts[name]} {word.text}"
                for name, word in VERDICT.items()
                if verdicts.get(name)
            ]
            claims = count_noun(data.get("claims", 0), "claim") + (
                f": {', '.join(counts)}" if counts else ""
            )
            missing = data.get("missing", 0)
            return f"{claims}; {count_noun(missing, 'missing point')}" if missing else claims
        case "critique":
            conflicts, confidence = data.get("conflicts"), data.get("confidence")
            words = [
                count_noun(data.get("issues", 0), "issue"),
                "hallucination" if data.get("hallucination") else "",
                f"{count_noun(conflicts, 'conflict')} between sources" if conflicts else "",
                "unscored" if confidence is None else f"confidence {confidence:.2f}",
            ]
        case "evaluation":
            names = (
                "overall_score",
                "faithfulness",
                "relevance",
                "completeness",
                "reasoning_quality",
            )
            words = [
                f"{SCORE[name].text.lower()} {data[name]:.2f}"
                for name in names
                if data.get(name) is not None
            ]
            words = words or ["unscored"]
        case "revision":
            changes, issues = data.get("changes", 0), data.get("issues_addressed", 0)
            return (
                f"{count_noun(changes, 'change')} for {count_noun(issues, 'issue')}"
                if changes
                else "nothing could be fixed"
            )
        case _:
            return ""
    return ", ".join(filter(None, words))


def _run_outcome(events: Sequence[Event]) -> Mapping[str, Any]:
    return events[-1].data if events and events[-1].kind == "run_finished" else {}


def _build_result(events: Sequence[Event], state: RunState, why: str) -> Shown | None:
    if state == "running":
        return None
    if state == "interrupted":
        return {"text": "Interrupted", "tone": "warn", "details": [why] if why else []}
    outcome = _run_outcome(events)
    reason = outcome.get("termination_reason", "error")
    chosen = outcome["best"] + 1 if outcome.get("best") else None
    finished = [event for event in events if event.kind == "iteration_finished"]
    results = {event.iteration: event.data for event in finished}
    last_change = finished[-1].data.get("improvement_delta") if finished else None
    details = [f"The audit ended because {ending_text(reason, last_change)}."]
    if chosen is not None:
        first, best = (results.get(number, {}).get("quality_score") for number in (1, chosen))
        change = (
            f": quality {first:.2f} → {best:.2f}" if first is not None and best is not None else ""
        )
        details.append(f"Iteration {chosen} is suggested{change}.")
    details.append(
        "A person should review the answer."
        if outcome.get("needs_review")
        else "The answer needs no review."
    )
    if reason == "cancelled":
        return {"text": "Stopped", "tone": "warn", "details": details}
    if reason == "error":
        details[1:1] = [event.message for event in events if event.kind == "warning"][-1:]
        return {"text": "Failed", "tone": "bad", "details": details}
    if reason == "no_answer":
        details[1:1] = [event.message for event in events if event.kind == "warning"][-1:]
        return {
            "text": STANDING["no_answer"].text,
            "tone": STANDING["no_answer"].tone,
            "details": details,
        }
    return {"text": "Finished", "tone": "good", "details": details}


def _elapsed_ms(events: Sequence[Event], last: str) -> float:
    """Return the milliseconds that a run has worked, without the pauses before it was resumed."""
    spent, start, previous = 0.0, "", ""
    for event in events:
        if event.kind == "run_started":
            spent += _milliseconds_between(start, previous) if start else 0.0
            start = event.at
        previous = event.at
    return spent + (_milliseconds_between(start, last) if start else 0.0)


def _milliseconds_between(start: str, end: str) -> float:
    spent = datetime.fromisoformat(end) - datetime.fromisoformat(start)
    # The clock may have been set back between two events.
    return max(0.0, spent.total_seconds() * 1000)

"""The page of one audit: live while it runs, readable afterwards, found again by its address alone."""

from __future__ import annotations

from typing import Literal

import streamlit as st

from masis.api.audits import audit_citations, citations_kept
from masis.schema.base import utc_now
from masis.schema.wording import counted
from masis.services import Workbench
from masis.services.jobs import Jobs
from masis.services.records import RunSummary
from masis.ui.live import served_jobs, show_live, show_stop, waits_for
from masis.ui.new_audit.timeline import show_timeline, timeline, waiting
from masis.ui.shell import address
from masis.ui.shell.frame import tab_title
from masis.ui.shell.permissions import action
from masis.ui.shell.reviewer import acting, actor
from masis.ui.shell.served_database import served_workbench
from masis.views.headline import KINDS, found_in
from masis.views.markdown import coloured
from masis.views.numbers import day
from masis.views.words import MACHINE_HIDDEN, Word


def show_run(workbench: Workbench, run_id: str, case_id: str) -> None:
    """Show the audit named in the address; ``case_id`` is the case it names, for a run that never began."""
    jobs = served_jobs()
    job, run = jobs.get(run_id), address.known(workbench.runs.summary, run_id)
    if job is None and run is None:
        _never_began(workbench, jobs, run_id, case_id)
        return
    case_id = job.subject if job else run.case_id if run else case_id
    case = workbench.cases.summary(case_id)
    busy = job is not None or (run is not None and run.state == "running")
    title = "Auditing" if busy else _title(run)
    st.set_page_config(page_title=tab_title(title, case.query))
    st.title(title, anchor=False)
    st.text(case.query)
    if busy:
        show_live(_draw_live, run_id, case_id)
    elif run is not None:
        _over(workbench, jobs, run)


def _title(run: RunSummary | None) -> str:
    if run is not None and run.removed_at is not None:
        return "Audit removed"
    if run is not None and run.state == "interrupted":
        return "Audit interrupted"
    return "Audit stopped" if run is not None and run.termination == "cancelled" else "Audit finished"


def _draw_live(run_id: str, case_id: str) -> bool:
    """Draw what has happened so far; returns whether the run is under way."""
    workbench, jobs = served_workbench(), served_jobs()
    run = address.known(workbench.runs.summary, run_id)
    here = jobs.get(run_id) is not None
    if not here and (run is None or run.state != "running" or run_id in workbench.runs.mark_lost()):
        return False
    if waits := waits_for("audit", run_id, run is not None and run.state == "running"):
        shown = waiting(waits)
    elif workbench.team.machine_hidden(actor(), case_id):
        shown = waiting(MACHINE_HIDDEN)
    else:
        shown = timeline(workbench.runs.events(run_id), "running", utc_now())
    stopping = jobs.cancelling("audit", run_id)
    show_stop("audit", "steps", stopping=stopping, on_click=acting(jobs.cancel, "audit", case_id))
    show_timeline(shown, key="timeline")
    if shown["groups"]:
        show_found_so_far(workbench, run_id)
    return True


def show_found_so_far(workbench: Workbench, run_id: str) -> None:
    """Draw the issues of the original answer that a run under way has found, the gravest first."""
    progress = workbench.runs.progress(run_id)
    case = workbench.store.cases.get(progress.case_id)
    steps = progress.steps if not progress.iterations else None
    if progress.iterations:
        original = progress.iterations[0]
        found = found_in(original.citation_audit, original.claims, original.issues)
    else:
        answer = case.answer or (progress.draft.answer if progress.draft else "")
        audit = audit_citations(answer, case.evidence, workbench.settings, citations=citations_kept(case, answer))
        found = found_in(audit, steps.claims if steps else (), steps.issues if steps else ())
    if not found:
        return
    st.markdown("**Found so far in the original answer**")
    for kind, (text, count) in found.items():
        more = f" · {counted(count, KINDS[kind].one, KINDS[kind].many)}" if count > 1 else ""
        st.markdown(f"{coloured(Word(text, KINDS[kind].tone))}{more}")


def _over(workbench: Workbench, jobs: Jobs, run: RunSummary) -> None:
    with st.container(horizontal=True):
        if run.state == "interrupted" and run.removed_at is None:
            why = "Goes on after the last finished iteration."
            action("Resume", "resume-audit", "play_arrow", _resume, run.id, run.case_id, why=why, type="primary")
        elif run.iterations and run.removed_at is None:
            _leads("Review it", "rate_review", "review", "primary", case=run.case_id, run=run.id)
        _leads("Audit again with other settings", "tune", "new", case=run.case_id)
        _leads("New audit", "add", "new", "tertiary")
    if workbench.team.machine_hidden(actor(), run.case_id):
        st.markdown(f":material/visibility_off: {MACHINE_HIDDEN} Decide the case first.")
        return
    if run.removed_at is not None:
        st.info(
            f"Retention removed it on {day(run.removed_at)}. Its metrics are still stored.",
            icon=":material/auto_delete:",
        )
        return
    why = run.why if run.state == "interrupted" else ""
    if failure := jobs.failure("audit", run.case_id):
        why = failure
    show_timeline(timeline(workbench.runs.events(run.id), run.state, utc_now(), why), key="timeline")


def _never_began(workbench: Workbench, jobs: Jobs, run_id: str, case_id: str) -> None:
    """Explain an address whose run is not stored: it was removed from the queue, or its server ended too soon."""
    if address.known(workbench.cases.summary, case_id) is None:
        st.title("There is no such audit")
        st.text(run_id[:200])
        st.markdown("It may be in another database, or the address may be cut off.")
        _leads("New audit", "add", "new", "primary")
        return
    st.title("This audit never started")
    if why := jobs.failure("audit", case_id):
        st.error("It could not be run.", icon=":material/error:")
        st.text(why)
    else:
        st.markdown("It was removed from the queue, or the server ended before its turn. The case is still stored.")
    with st.container(horizontal=True):
        action("Start it again", "start-again", "play_arrow", _start, case_id, type="primary")
        _leads("Open the case", "rate_review", "review", case=case_id)


def _leads(
    label: str, icon: str, page: str, kind: Literal["primary", "secondary", "tertiary"] = "secondary", **to: str
) -> None:
    """Draw a button that leads to a page."""
    if st.button(label, type=kind, icon=f":material/{icon}:"):
        st.switch_page(f"pages/{page}.py", query_params=to)


def _resume(run_id: str, case_id: str) -> None:
    _go_to(served_jobs().resume_audit(actor(), run_id), case_id)


def _start(case_id: str) -> None:
    _go_to(served_jobs().audit(actor(), case_id), case_id)


def _go_to(run_id: str, case_id: str) -> None:
    address.put("job", run_id)
    address.put("case", case_id)

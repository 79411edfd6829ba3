"""The page of one case: its state, the answer with its marks beside the evidence, iterations,
scores.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import streamlit as st

from masis.errors import UnknownRecord
from masis.schema.base import utc_now
from masis.schema.case import Case
from masis.schema.review import Decision, answer_digest
from masis.schema.run import Run
from masis.schema.wording import count_noun, shorten
from masis.services import CaseView, Workbench
from masis.services.records import CaseFilter, RunSummary
from masis.services.reports import case_report
from masis.settings import Settings
from masis.ui.components import HERE, noop, register_component
from masis.ui.components.case_head import CaseHead, case_head
from masis.ui.components.charts import draw_chart
from masis.ui.live import served_jobs, show_live
from masis.ui.new_audit.form import unusable_model
from masis.ui.new_audit.live_run import show_found_so_far, timeline, waiting
from masis.ui.review.claiming import ClaimNotice, claim_case
from masis.ui.review.decision import MACHINE_SHOWN, decision_panel
from masis.ui.review.decision_form import correction
from masis.ui.review.missing_evidence import missing_evidence, show_versions
from masis.ui.review.redaction import redact_case_form, show_redacted
from masis.ui.review.run_list import run_name
from masis.ui.shell import address, keys
from masis.ui.shell.frame import tab_title
from masis.ui.shell.permissions import button_state
from masis.ui.shell.reviewer import acting, actor, reviewer
from masis.ui.shell.served_database import served_workbench
from masis.ui.shell.streamlit_internals import with_selectors
from masis.ui.team.case_work import show_case_work, show_own_assignment
from masis.ui.team.taking import give_back_button
from masis.views import scores
from masis.views.answer import (
    EVIDENCE_SHOWN,
    AnswerViewData,
    answer_view,
    for_browser,
    unaudited_answer_view,
)
from masis.views.charts import course_chart, score_rows
from masis.views.faults import revealed_words
from masis.views.headline import LONGEST_IN_HEAD, headline
from masis.views.issue_history import IssueHistory, issue_history
from masis.views.markdown import escape_markdown
from masis.views.numbers import day, moment
from masis.views.report import report_name
from masis.views.story import failure_message, may_revise_anyway, review_messages, story
from masis.views.words import (
    DECIDED,
    REASONING,
    REASONING_SHOWN,
    STATE,
    UNANSWERED,
    label,
    status_label,
)

_ANSWER_VIEW = register_component("answer_view")
_LAYOUT = f"<style>{with_selectors((HERE / 'review.css').read_text(encoding='utf-8'))}</style>"


TURNS_SHOWN = 50
TURN_SHOWN = 5_000
"""Turns of a conversation that a page shows, and characters of each."""

LIVE_HEIGHT = 175
"""Pixels of an audit under way: two kinds of issues; more are scrolled to."""

ITERATIONS_BESIDE = 3
"""Iterations that are chosen from beside each other; of more, one is chosen from a list."""


class _Page(NamedTuple):
    """What one run of the page is about: the case, the audit and the iteration shown, what it is
    compared with.
    """

    workbench: Workbench
    view: CaseView
    run: Run | None
    at: int
    against: int | None
    busy: bool
    notice: ClaimNotice | None

    @property
    def audited(self) -> bool:
        """Whether there is an audited answer to show."""
        return self.run is not None and bool(self.run.iterations)

    @property
    def decided(self) -> Decision | None:
        """The verdict of a person that settles the case."""
        entry = self.view.decision if self.view.summary.standing == "decided" else None
        return entry.decision if entry and entry.decision and entry.decision.verdict else None


def show_case(workbench: Workbench, case_id: str) -> None:
    """Draw the page of one case: its head, notices, then answer, evidence and decision side by
    side.
    """
    try:
        view = workbench.cases.open_for(actor(), case_id)
    except UnknownRecord:
        _draw_unknown_case(case_id)
        return
    st.set_page_config(page_title=tab_title(view.case.query))
    st.html(_LAYOUT)
    run = _chosen_run(workbench, view)
    index = _shown_iteration(run)
    busy = served_jobs().is_auditing(case_id) or any(each.state == "running" for each in view.runs)
    against = _against(len(run.iterations), index) if run else None
    page = _Page(workbench, view, run, index, against, busy, claim_case(workbench, view))
    for section in (_draw_case_bar, _draw_case_head, _notices, _draw_review):
        # always there, so that the decision stays where it is while somebody types
        with st.container(gap="xsmall"):
            section(page)


def _notices(page: _Page) -> None:
    """Say what somebody must know before they read: what was redacted, other versions, addresses
    that lead nowhere.
    """
    show_redacted()
    if page.view.planted is not None:
        st.warning(escape_markdown(revealed_words(page.view.planted)), icon=":material/science:")
    versions = page.workbench.versions.neighbours(page.view.case)
    show_versions(page.view, versions)
    _conversation(page.view)
    _draw_no_answer(page.view.case, page.run)
    _draw_reasoning(page.view.case)
    missing_evidence(page.workbench, page.view, versions, busy=page.busy)
    run_id = address.value("run")
    if run_id and (page.run is None or page.run.id != run_id):
        _other_run(page.view, run_id)
    _unknown_iteration(page.run)
    if why := served_jobs().failure("audit", page.view.case.id):
        st.error("The last audit failed.", icon=":material/error:")
        st.text(why)
    if page.busy:
        show_live(_draw_audit_progress, page.view.case.id, page.view.machine_hidden)


def _draw_review(page: _Page) -> None:
    """Draw the answer with its evidence, the decision beside it, and below the answer how the audit
    went.
    """
    view = page.view
    with st.container(key="review"):
        reading, deciding, after = st.columns(3)
        with reading:
            if (
                not page.audited
                and not page.busy
                and not view.machine_hidden
                and view.planted is None
            ):
                _draw_not_audited(page.run, view.runs)
            show_answer(
                view, page.run if page.audited else None, page.at, page.against, page.decided
            )
        with deciding:
            shown: tuple[str, ...] = () if view.machine_hidden else MACHINE_SHOWN
            if page.against is not None:
                shown = tuple(each for each in shown if each != "marks")
            decision_panel(
                page.workbench, view, page.run, page.at, machine_shown=shown, notice=page.notice
            )
            show_case_work(page.workbench, view)
        with after:
            if page.run and page.audited:
                _draw_audit_outcome(page.run, page.at, view.case.id, busy=page.busy)


def _draw_unknown_case(case_id: str) -> None:
    if st.button("Queue", icon=":material/arrow_back:", type="tertiary"):
        address.leave_case()
    st.title("There is no such case")
    st.text(case_id[:500])
    st.markdown(
        "It may be in another database, or its id may be cut off in the address you followed."
    )


def show_no_case(workbench: Workbench) -> None:
    """Draw the page without a case: what it is for, and the shortest way to one."""
    st.title("No case is open")
    st.markdown(
        "Here you review one answer: every citation and claim is marked, the evidence is beside it,"
        " and your decision is recorded with its reasons."
    )
    found = workbench.cases.find(workbench.team.open_to(actor(), CaseFilter(size=1)))
    first = next(iter(found.rows), None)
    with st.container(horizontal=True):
        if first and st.button(
            (
                f"Open the first of {count_noun(found.total, 'case')} that wait"
                if found.total > 1
                else "Open the one that waits"
            ),
            # a case that comes meanwhile changes the label, and must not take the press with it
            key="open-first",
            type="primary",
            icon=":material/rate_review:",
        ):
            address.open_case(first.id)
        if st.button("Choose one in the queue", icon=":material/checklist:"):
            address.leave_case()


# --- which run, which iteration
# -----------------------------------------------------------------------------------


def _chosen_run(workbench: Workbench, view: CaseView) -> Run | None:
    """Return the run the address names if it is a finished one of this case, else the newest."""
    run_id = address.value("run")
    if not run_id or (view.run and view.run.id == run_id):
        return view.run
    known = any(run.id == run_id and run.readable for run in view.runs)
    return workbench.runs.get(run_id) if known else view.run


def _shown_iteration(run: Run | None) -> int:
    """Return the iteration (from 0) the address names, else the original: a revision is a
    suggestion.
    """
    return (_named_iteration(run) or 0) if run else 0


def _named_iteration(run: Run) -> int | None:
    text = address.value("iteration")
    known = (
        text.isascii()
        and text.isdigit()
        and len(text) < 8
        and 1 <= int(text) <= len(run.iterations)
    )
    return int(text) - 1 if known else None


def _unknown_iteration(run: Run | None) -> None:
    if run and run.iterations and address.value("iteration") and _named_iteration(run) is None:
        st.info(
            "This audit has no such iteration as the address names. The original answer is shown."
        )


def _other_run(view: CaseView, run_id: str) -> None:
    """Say why the run the address names can't be shown, and what is shown in its place."""
    named = next((run for run in view.runs if run.id == run_id), None)
    instead = "The newest finished audit is shown." if view.run else ""
    if named is None:
        st.info(
            f"The audit in the address does not belong to this case. {instead}",
            icon=":material/info:",
        )
    elif named.removed_at is not None:
        st.info(f"{removed_words(named)} {instead}", icon=":material/auto_delete:")
    elif named.state == "running":
        st.info(f"The audit in the address is under way. {instead}", icon=":material/info:")
    else:
        with st.container(horizontal=True, vertical_alignment="center"):
            st.warning(
                f"The audit in the address was interrupted. {instead}", icon=":material/warning:"
            )
            resume = acting(served_jobs().resume_audit, run_id)
            st.button(
                "Resume the audit",
                icon=":material/play_arrow:",
                on_click=resume,
                **button_state("audit"),
            )


def _report_button(view: CaseView, run: Run | None) -> None:
    """Draw a download of the report of a case; of its newest finished run unless another one is
    given.
    """
    workbench, who = served_workbench(), actor()

    def report() -> bytes:
        hidden = workbench.team.hides_counts_from(who)
        return case_report(view, None if hidden else workbench.store.decisions.head(), run).encode()

    st.download_button(
        "Report",
        report,
        file_name=report_name(view.case.id),
        mime="text/html",
        icon=":material/print:",
        on_click="ignore",
        key="report",
        width="stretch",
        help=(
            "The audit of this case as one self-contained page of HTML, to print, archive or share."
        ),
    )


def removed_words(run: RunSummary) -> str:
    """That retention has removed an audit, and when."""
    on = f" on {day(run.removed_at)}" if run.removed_at else ""
    return f"The audit of {moment(run.started_at)} was removed{on} by retention."


def _draw_case_bar(page: _Page) -> None:
    """Draw the way back, the choice of the iteration, a new audit, and the menu for the rest."""
    case_id, view = page.view.case.id, page.view
    with st.container(key="review-bar", horizontal=True, vertical_alignment="center"):
        if st.button("Queue", icon=":material/arrow_back:", type="tertiary"):
            address.leave_case()
        if page.run and page.audited:
            _iteration_choice(page.run, page.at, page.against)
        st.space("stretch")
        allowed = button_state("audit", disabled=page.busy or view.machine_hidden)
        # one click must not replace what a model found by what the offline checks find; a popover
        # would stay open
        if page.run and not page.busy:
            with st.popover("Audit again", icon=":material/fact_check:", key="audit-again"):
                st.caption(_replaces(page.run, page.workbench.settings))
                if page.workbench.settings.cache:
                    st.button(
                        "With the cached replies",
                        on_click=_start_audit_again,
                        args=(case_id,),
                        **allowed,
                    )
                    st.button(
                        "Ask the models anew",
                        on_click=_start_audit_again,
                        args=(case_id,),
                        kwargs={"anew": True},
                        **allowed,
                    )
                else:
                    st.button(
                        "Start the audit", on_click=_start_audit_again, args=(case_id,), **allowed
                    )
        else:
            st.button(
                "Audit again" if view.runs else "Audit now",
                icon=":material/fact_check:",
                type="secondary" if view.run else "primary",
                on_click=_start_audit_again,
                args=(case_id,),
                **allowed,
            )
        with st.popover("More", icon=":material/more_horiz:", key="case-more"):
            _more(page)


def _replaces(run: Run, settings: Settings) -> str:
    """Say whose audit would take the place of whose; the earlier one can still be shown."""
    before, after = (
        ", ".join(dict.fromkeys(models.values())) for models in (run.models, settings.models())
    )
    by = (
        f"by **{escape_markdown(after)}**, as the audit shown is"
        if before == after
        else f"by **{escape_markdown(after)}**"
    )
    instead = "" if before == after else f" in place of the one by **{escape_markdown(before)}**"
    return f"An audit {by}{instead}. The one shown stays under More, Audit shown."


def _more(page: _Page) -> None:
    """Draw what else can be done with a case: what is harmless first, what can't be undone last and
    folded.
    """
    case_id = page.view.case.id
    finished = [each for each in page.view.runs if each.readable]
    if page.run and len(finished) > 1:
        _run_choice(finished, page.run, case_id)
    _report_button(page.view, page.run)
    st.page_link(
        "pages/decisions.py",
        label="Decisions on this case",
        icon=":material/history:",
        query_params={"case": case_id},
    )
    if reviewer() is not None and page.view.state not in ("redacted", "planted"):
        show_own_assignment(page.workbench, case_id)
        give_back_button(page.workbench, case_id)
    st.divider()
    if page.view.state == "redacted":
        st.caption("This case is redacted.")
        return
    with st.expander("Redact this case", icon=":material/ink_eraser:"):
        redact_case_form(page.workbench, case_id)


def _run_choice(finished: list[RunSummary], run: Run, case_id: str) -> None:
    names = {each.id: run_name(each) for each in finished}
    st.session_state["run"] = run.id
    st.selectbox(
        "Audit shown",
        list(names),
        key="run",
        format_func=lambda each: names.get(each, each),
        on_change=_choose_run,
        args=(finished[0].id,),
        width=320,
    )
    if st.button("Compare audits", icon=":material/compare:", width="stretch"):
        other = next(each.id for each in finished if each.id != run.id)
        st.switch_page(
            "pages/compare.py", query_params={"case": case_id, "left": other, "right": run.id}
        )


def _choose_run(newest: str) -> None:
    chosen = st.session_state["run"]
    address.set_param("run", "" if chosen == newest else chosen)
    address.set_param("iteration", "")
    address.set_param("against", "")


def _start_audit_again(case_id: str, *, revise: bool = False, anew: bool = False) -> None:
    workbench = served_workbench()
    settings = workbench.settings
    if anew:
        workbench.audits.forget_replies(actor(), case_id)
    if revise:
        settings = settings.model_copy(
            update={"min_iterations": 2, "max_iterations": max(2, settings.max_iterations)}
        )
    served_jobs().audit(actor(), case_id, settings)
    for name in ("run", "iteration", "against"):
        address.set_param(name, "")


def _iteration_choice(run: Run, index: int, against: int | None) -> None:
    """Choose the iteration, and whether its marks are shown or its changes."""
    count = len(run.iterations)
    names = [_iteration_name(run, each) for each in range(count)]
    if count == 1:
        st.caption(names[0])
        return
    st.session_state["iteration"] = index
    several: dict[str, Any] = {"label_visibility": "collapsed", "on_change": _choose_iteration}
    if count > ITERATIONS_BESIDE:
        several |= {"width": 210}
        st.selectbox(
            "Iteration", range(count), key="iteration", format_func=names.__getitem__, **several
        )
    else:
        several |= {"required": True, "width": "content"}
        st.segmented_control(
            "Iteration", range(count), key="iteration", format_func=names.__getitem__, **several
        )
    st.button(
        "Show marks" if against is not None else "Show changes",
        icon=":material/ink_highlighter:" if against is not None else ":material/difference:",
        shortcut=keys.DIFF.shortcut,
        on_click=_toggle_changes,
        args=(index, against),
    )
    if against is not None and count > 2:
        st.session_state["against"] = against
        st.selectbox(
            "Compared with",
            [each for each in range(count) if each != index],
            key="against",
            format_func=lambda each: f"against iteration {each + 1}",
            label_visibility="collapsed",
            on_change=lambda: address.set_param("against", str(st.session_state["against"] + 1)),
            width=180,
        )


def _against(count: int, index: int) -> int | None:
    """Return the iteration (from 0) the address compares with, None where it compares with none."""
    if not address.value("against") or count < 2:
        return None
    other = min(address.number("against"), count) - 1
    return other if other != index else max(index - 1, 0) if index else 1


def _toggle_changes(index: int, against: int | None) -> None:
    other = 0 if index else 1  # a revision is read against the original first
    address.set_param("against", "" if against is not None else str(other + 1))


def _choose_iteration() -> None:
    chosen = st.session_state["iteration"]
    address.set_param("iteration", str(chosen + 1) if chosen else "")


def _iteration_name(run: Run, index: int) -> str:
    origin = "revision" if index else "drafted by MASIS" if run.draft else "original"
    return f"{index + 1} · {origin}{', suggested' if index and index == run.best else ''}"


# --- what is on the page
# ------------------------------------------------------------------------------------------


def _draw_case_head(page: _Page) -> None:
    """Draw the question and what is worst about the original answer; the reasons are a
    press away.
    """
    case, view, run = page.view.case, page.view, page.run
    worst = headline(run, LONGEST_IN_HEAD) if run and not view.machine_hidden else None
    word, more = status_label(view.summary.standing, view.state, view.summary.severity)
    facts = [str(case.metadata["field"])] if case.metadata.get("field") else []
    data: CaseHead = {
        "question": case.query,
        "state": label(STATE["running"] if page.busy else word),
        "facts": [*([more] if more else []), *facts, case.id],
        "reasons": review_messages(run) if run else [],
        "technical": failure_message(run) if run else "",
        "past": page.decided is not None,
    }
    if view.machine_hidden:
        hidden = "What the audit found is hidden until your decision, as the team's policy says."
        data["headline"] = {"text": hidden, "tone": "calm", "others": ""}
    elif (decided := page.decided) and decided.verdict:
        reason = f": {decided.reason.rstrip('.')}" if decided.reason else ""
        found = (
            ""
            if worst is None
            else f"{'' if worst.tone == 'calm' else 'The audit had found: '}{worst.text}"
        )
        text = f"{DECIDED[decided.verdict].text} by {decided.reviewer}{reason}. {found}".rstrip()
        data["headline"] = {"text": text, "tone": "calm", "others": worst.others if worst else ""}
        data["facts"] = data["facts"][1 if more else 0 :]  # the line says what was decided
    elif worst:
        whose = "Original answer: " if page.at else ""
        data["headline"] = {
            "text": f"{whose}{worst.text}",
            "tone": worst.tone,
            "others": worst.others,
        }
    case_head(data, key="head")


def _conversation(view: CaseView) -> None:
    """Show the turns before the question, folded: the last answer is what is decided about."""
    turns = view.case.earlier_turns
    if not turns:
        return
    with st.expander(
        f"Earlier in this conversation: {count_noun(len(turns), 'turn')}", icon=":material/forum:"
    ):
        for turn in turns[-TURNS_SHOWN:]:
            st.caption(escape_markdown(turn.role.capitalize()))
            st.text(turn.text[:TURN_SHOWN] + ("…" if len(turn.text) > TURN_SHOWN else ""))
        if len(turns) > TURNS_SHOWN:
            st.caption(f"The last {TURNS_SHOWN} turns are shown.")


def _draw_reasoning(case: Case) -> None:
    """Show what the model thought before it answered, folded: it is no part of the answer."""
    if case.model_reasoning:
        with st.expander(REASONING.text, icon=":material/psychology:"):
            st.caption(f"{REASONING.meaning}. No claim or citation in it was checked.")
            st.text(shorten(case.model_reasoning, REASONING_SHOWN))


def _draw_no_answer(case: Case, run: Run | None) -> None:
    """Say why there is no answer, where the system gave none."""
    if case.unanswered is None:
        return
    drafted = run is not None and run.draft is not None
    how = (
        "MASIS drafted the answer below."
        if drafted
        else "There is nothing to audit, unless an answer is drafted."
    )
    st.warning(f"**{UNANSWERED[case.unanswered.code].text}.** {how}", icon=":material/block:")
    if case.unanswered.message:
        st.text(case.unanswered.message)


def _draw_not_audited(run: Run | None, runs: tuple[RunSummary, ...]) -> None:
    if run is None and (gone := next((each for each in runs if each.removed_at), None)) is not None:
        st.info(
            f"{removed_words(gone)} **Audit again** repeats it; the case and every decision on it"
            " are stored.",
            icon=":material/auto_delete:",
        )
        return
    if run is None:
        st.markdown(
            "This case has not been audited. **Audit now** checks its citations and claims with the"
            " evidence."
        )
        return
    st.warning(
        "The last audit ended before it had finished one iteration.", icon=":material/warning:"
    )
    for warning in run.warnings:
        st.text(warning.message)


def show_answer(
    view: CaseView,
    run: Run | None,
    index: int,
    against: int | None,
    decided: Decision | None = None,
) -> None:
    """Draw an answer with its marks and issues beside its evidence; an unaudited one without them.

    Where a decision has corrected it, the correction is seen first.
    """
    place = f"evidence/{view.case.id}"
    shown: int = st.session_state.get(place, EVIDENCE_SHOWN)
    data: AnswerViewData = (
        answer_view(view.case, run, index, against=against, shown=shown)
        if run
        else unaudited_answer_view(view.case, f"{view.case.id}/plain", shown=shown)
    )
    about = (0, (decided.iteration or 1) - 1) if decided and against is None else ()
    if decided and index in about and (corrected := correction(decided, run, view.case)):
        digest = answer_digest(decided.corrected_answer or "")
        data = {**data, "version": f"{data['version']}/{digest}", "corrected": corrected}
    more = _ANSWER_VIEW(data=for_browser(data), key="answer-view", on_more_change=noop).more
    if isinstance(more, int) and more >= shown:
        st.session_state[place] = shown + EVIDENCE_SHOWN
        st.rerun()


def _draw_audit_outcome(run: Run, index: int, case_id: str, *, busy: bool) -> None:
    """Draw how the iterations went: why the loop stopped, the issues followed, the scores and where
    they come from.
    """
    with st.container(key="story", gap="xsmall"):
        for title, lines, tone in story(run, index, served_workbench().exams.line_for_run(run)):
            name, text = st.columns([1, 6])
            name.caption(title)
            if tone == "warning":  # technical, with paths and codes
                with text.expander(count_noun(len(lines), "warning"), icon=":material/warning:"):
                    st.text("\n".join(lines))
            else:
                text.text("\n".join(lines))
    if may_revise_anyway(run):
        missing = unusable_model(served_workbench().settings)
        why = missing or "Audits again and asks for one revision, whatever the checks found."
        st.button(
            "Revise once anyway",
            icon=":material/edit_note:",
            on_click=_start_audit_again,
            args=(case_id,),
            kwargs={"revise": True},
            **button_state("audit", disabled=busy or bool(missing), help=why),
        )
        if missing:
            st.text(missing)
    if len(run.iterations) > 1:
        st.header("Issues across iterations")
        _issues_followed(issue_history(run, index))
    st.header("Scores")
    if len(run.iterations) > 1:
        draw_chart(
            course_chart,
            rows=score_rows(run),
            shown=[{"iteration": run.iterations[index].iteration_number}],
            description="Scores by iteration, as in the table below",
        )
    st.table(scores.score_frame(run), border="horizontal", alt="Scores by iteration")
    title = f"How the scores of iteration {index + 1} came about"
    origins = st.expander(title, key="score-origins", on_change="rerun")
    if origins.open:  # drawn only where it is looked at: most people never open it
        with origins:
            found = scores.score_origins(run, index)
            st.table(
                scores.origin_frame(found), border="horizontal", alt="How the scores came about"
            )
            if len(measured := scores.measured_frame(found)):
                st.table(measured, border="horizontal", alt="What the scores were measured by")


def _issues_followed(found: IssueHistory) -> None:
    if found.table.empty:
        st.caption("No iteration has an issue.")
        return
    st.table(found.table, border="horizontal", alt="Issues across iterations")
    if found.left_out:
        st.caption(f"and {count_noun(found.left_out, 'more issue')}")


def _draw_audit_progress(case_id: str, hidden: bool) -> bool:
    """Draw what the running audit has done so far, unless that is hidden; returns whether it is
    under way.
    """
    workbench, jobs = served_workbench(), served_jobs()
    running: RunSummary | None = next(
        (run for run in workbench.runs.for_case(case_id) if run.state == "running"), None
    )
    if running is None and not jobs.is_auditing(case_id):
        return False
    seen = running is not None and not hidden
    shown = (
        timeline(workbench.runs.events(running.id), "running", utc_now())
        if running and seen
        else waiting("")
    )
    # as high at first as with what it will find: the answer below must not move under the reader
    with st.container(border=True, gap="xsmall", height=LIVE_HEIGHT if seen else "content"):
        with st.container(horizontal=True, vertical_alignment="center"):
            st.markdown("**Auditing**", width="content")
            so_far = " · ".join(filter(None, [shown["live"], shown["spent"]]))
            st.text(
                so_far or "The result appears on this page; you can leave it meanwhile.",
                width="stretch",
            )
            if running and seen and st.button("Watch the audit", icon=":material/timeline:"):
                st.switch_page("pages/new.py", query_params={"job": running.id})
            stopping = bool(running and jobs.is_cancelling("audit", running.id))
            st.button(
                "Stopping" if stopping else "Stop",
                icon=":material/stop_circle:",
                on_click=acting(jobs.cancel, "audit", case_id),
                **button_state(
                    "audit",
                    disabled=stopping,
                    help="What is finished by then is stored and shown here.",
                ),
            )
        if running and seen:
            show_found_so_far(workbench, running.id)
    return True

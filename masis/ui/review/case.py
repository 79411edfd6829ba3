"""The page of one case: its status, the marked answer, the evidence, iterations and scores."""

from __future__ import annotations

from typing import Any, NamedTuple

import streamlit as st

from masis.errors import UnknownRecord
from masis.schema.base import utc_now
from masis.schema.case import Case
from masis.schema.review import Decision, used_answer
from masis.schema.run import Run
from masis.schema.wording import count_noun, shorten
from masis.services import CaseView, Workbench
from masis.services.records import CaseFilter, RunSummary
from masis.services.reports import case_report
from masis.services.systems import NamedAnswers
from masis.settings import Settings
from masis.ui.components import HERE
from masis.ui.components.case_head import CaseHead, case_head
from masis.ui.components.charts import draw_chart
from masis.ui.live import served_jobs, show_live
from masis.ui.new_audit.form import unusable_model
from masis.ui.new_audit.live_run import (
    build_timeline,
    build_waiting_timeline,
    show_interim_issues,
)
from masis.ui.review.decision import answer_place, draw_desk, open_desk
from masis.ui.review.desk import OpenDesk, chosen_run, named_iteration, settled_decision
from masis.ui.review.minimal_evidence import show_minimal_evidence
from masis.ui.review.missing_evidence import missing_evidence, show_versions
from masis.ui.review.queue_head import show_queue_head
from masis.ui.review.redaction import redact_case_form, show_redacted
from masis.ui.review.run_list import run_name
from masis.ui.shell import address, keys
from masis.ui.shell.frame import tab_title
from masis.ui.shell.permissions import button_state
from masis.ui.shell.reviewer import acting, actor, reviewer
from masis.ui.shell.served_database import served_workbench
from masis.ui.shell.streamlit_internals import with_selectors
from masis.ui.team.case_work import show_case_work, show_own_assignment
from masis.ui.team.leases import release_button
from masis.views import scores
from masis.views.charts import course_chart, score_rows
from masis.views.faults import revealed_words
from masis.views.headline import LONGEST_QUOTED_IN_HEAD, headline
from masis.views.issue_history import IssueHistory, issue_history
from masis.views.markdown import escape_markdown
from masis.views.numbers import day, moment
from masis.views.report import report_name
from masis.views.story import failure_message, may_revise_anyway, review_messages, story
from masis.views.words import (
    DECIDED,
    NOT_AUDITED,
    REASONING,
    REASONING_SHOWN,
    STATE,
    UNANSWERED,
    label,
    status_label,
)

_LAYOUT = f"<style>{with_selectors((HERE / 'review.css').read_text(encoding='utf-8'))}</style>"


TURNS_SHOWN = 50
TURN_SHOWN = 5_000
"""The number of turns of a conversation that the page shows, and the characters of each."""

OTHER_ANSWERS_SHOWN = 6
"""The other systems' answers that a case links to."""

LIVE_HEIGHT = 175
"""The height of a running audit, in pixels: it fits two kinds of issues and scrolls for more."""

_AUDITED_AGAIN = "audited-again"
"""Key in the session: the case audited again last from its page, and its newest audit before."""

MOST_ITERATION_BUTTONS = 3
"""Up to this number, iterations are buttons in a row; more of them are a select box."""


class _Page(NamedTuple):
    """The subject of one run of the page. ``run`` may have ended before its first iteration."""

    workbench: Workbench
    view: CaseView
    run: Run | None
    desk: OpenDesk
    busy: bool
    systems: NamedAnswers
    system_hidden: bool

    @property
    def audited(self) -> bool:
        """Whether there's an audited answer to show."""
        return self.desk.run is not None

    @property
    def at(self) -> int:
        """The iteration shown, from 0."""
        return self.desk.index

    @property
    def decided(self) -> Decision | None:
        """The person's decision that settles the case."""
        return settled_decision(self.view)


def show_case(workbench: Workbench, case_id: str) -> None:
    """Draw the page of one case: head, notices, then answer, evidence and decision."""
    try:
        view = workbench.cases.open_for(actor(), case_id)
    except UnknownRecord:
        _draw_unknown_case(case_id)
        return
    st.set_page_config(page_title=tab_title(view.case.query))
    st.html(_LAYOUT)
    run = chosen_run(workbench, view, address.value("run"))
    busy = served_jobs().is_auditing(case_id) or any(run.state == "running" for run in view.runs)
    desk = open_desk(workbench, view)
    system_hidden = workbench.preferences.hides_system(actor(), case_id)
    systems = (
        NamedAnswers() if system_hidden else workbench.systems.answers_beside(actor(), case_id)
    )
    page = _Page(workbench, desk.view, run, desk, busy, systems, system_hidden)
    for section in (_draw_case_bar, _draw_case_head, _draw_notices, _draw_review):
        # A container for each section, even an empty one, keeps the decision form at the same
        # position in the page. Streamlit would rebuild it otherwise, while somebody types in it.
        with st.container(gap="xsmall"):
            section(page)


def _draw_notices(page: _Page) -> None:
    """Draw notices above the answer, such as redactions, other versions and invalid addresses."""
    show_redacted()
    if page.view.planted is not None:
        st.warning(escape_markdown(revealed_words(page.view.planted)), icon=":material/science:")
    versions = page.workbench.versions.neighbours(page.view.case)
    show_versions(page.view, versions)
    _draw_new_audit(page)
    _draw_near_duplicates(page)
    _draw_other_answers(page)
    _draw_conversation(page.view)
    _draw_no_answer(page.view.case, page.run)
    _draw_reasoning(page.view.case)
    missing_evidence(page.workbench, page.view, versions, busy=page.busy)
    run_id = address.value("run")
    if run_id and (page.run is None or page.run.id != run_id):
        _draw_unavailable_run(page.view, run_id)
    _draw_unknown_iteration(page.run)
    if failure := served_jobs().failure("audit", page.view.case.id):
        st.error("The last audit failed.", icon=":material/error:")
        st.text(failure)
    if page.busy:
        show_live(_draw_audit_progress, page.view.case.id, page.view.machine_hidden)


def _draw_new_audit(page: _Page) -> None:
    """Offer to compare an audit that was started here with the one before, once it's finished."""
    case_id, before = st.session_state.get(_AUDITED_AGAIN, ("", ""))
    newest = next((run.id for run in page.view.runs if run.readable), "")
    hidden = page.view.machine_hidden or page.busy
    if case_id != page.view.case.id or not before or hidden or newest == before:
        return
    with st.container(horizontal=True, vertical_alignment="center", key="audited-again"):
        st.markdown("**The case has been audited again.**")
        st.page_link(
            "pages/compare.py",
            label="Compare the two audits",
            icon=":material/compare:",
            query_params={"case": case_id, "left": before, "right": newest},
        )


def _draw_near_duplicates(page: _Page) -> None:
    """Link to the other cases with nearly the same answer, to decide them together.

    While the audit of this case is hidden, the list would show the outcome of its twins.
    """
    if page.view.machine_hidden:
        return
    case_id = page.view.case.id
    count = page.workbench.cases.count(CaseFilter(similar_to=(case_id,)))
    if count:
        has = "has" if count == 1 else "have"
        st.page_link(
            "pages/queue.py",
            label=f"{count_noun(count, 'more case')} {has} nearly the same answer",
            icon=":material/content_copy:",
            query_params={"similar": address.in_words([case_id])},
            help="List these cases. There you can select several and decide about them at once.",
        )


def _draw_other_answers(page: _Page) -> None:
    """Link to the answers of other systems to the same question.

    While the audit of this case is hidden, answers whose audits would be shown are left out.
    """
    hidden = page.workbench.team.machine_hidden
    others = [
        answer
        for answer in page.systems.others
        if not page.view.machine_hidden or hidden(actor(), answer.case_id)
    ][:OTHER_ANSWERS_SHOWN]
    if not others:
        return
    with st.container(horizontal=True, gap="small"):
        for answer in others:
            st.page_link(
                "pages/review.py",
                label=escape_markdown(f"Answer of {answer.system} to this question"),
                icon=":material/compare_arrows:",
                query_params={"case": answer.case_id, **address.compared_pair()},
            )


def _draw_review(page: _Page) -> None:
    """Draw the answer with its evidence, the decision, and the course of the audit."""
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
            answer_place()
        with deciding:
            with st.container(gap="xsmall"):
                show_queue_head(page.workbench)
            draw_desk(page.desk)
            _draw_below_desk(page)
            if page.run and page.audited:
                show_minimal_evidence(page.workbench, view, page.run, page.at + 1)
            show_case_work(page.workbench, view)
        with after:
            if page.run and page.audited:
                _draw_audit_outcome(page.run, page.at, view.case.id, busy=page.busy)


def _draw_below_desk(page: _Page) -> None:
    """Link to the case's adjudication, or say why this person can't decide."""
    user = actor()
    if page.desk.notice and page.desk.notice.adjudicate:
        decided_by = page.workbench.team.work(user, page.view.case.id).decided_by
        is_other = user.name not in decided_by
        adjudicates = is_other and page.workbench.access.allows(user, "oversee")
        st.page_link(
            "pages/team.py",
            label="Adjudicate it" if adjudicates else "Compare the reviewers' decisions",
            icon=":material/balance:",
            query_params={"case": page.view.case.id},
        )
    if not page.workbench.access.allows(user, "decide"):
        roles = ", ".join(user.roles) or "none"
        st.info(
            "You can read this case. You need the reviewer role to decide it."
            f" Your roles: {roles}.",
            icon=":material/lock:",
        )


def _draw_unknown_case(case_id: str) -> None:
    if st.button("Queue", icon=":material/arrow_back:", type="tertiary"):
        address.leave_case()
    st.title("There is no such case")
    st.text(case_id[:500])
    st.markdown(
        "The case may be in another database, or the link you followed may have lost a part of its"
        " id."
    )


def show_no_case(workbench: Workbench) -> None:
    """Draw the page without a case, with a button for the first case that waits."""
    st.title("No case is open")
    st.markdown(
        "On this page you review one answer. Its citations and claims are marked, the evidence is"
        " next to it, and your decision is recorded with its reasons."
    )
    queue = address.queue()
    everything = CaseFilter(queue=queue.id if queue else "")
    first = workbench.team.next_open(actor(), everything)
    count = workbench.team.count_open(actor(), everything)
    with st.container(horizontal=True):
        if first and st.button(
            (
                f"Open the first of {count:,} waiting cases"
                if count > 1
                else "Open the waiting case"
            ),
            # Without a key, a case that arrives meanwhile would change the label and so the
            # identity of the button, and the click would be lost.
            key="open-first",
            type="primary",
            icon=":material/rate_review:",
        ):
            address.open_case(first)
        if st.button("Choose a case in the queue", icon=":material/checklist:"):
            address.leave_case()


# --- the run and the iteration shown ----------------------------------------------------


def _draw_unknown_iteration(run: Run | None) -> None:
    if (
        run
        and run.iterations
        and (named := address.value("iteration"))
        and named_iteration(run, named) is None
    ):
        st.info(
            "This link points to an iteration that doesn't exist in this audit. You see the"
            " original answer instead."
        )


def _draw_unavailable_run(view: CaseView, run_id: str) -> None:
    """Say why the run named in the address can't be shown, and what is shown instead."""
    named = next((run for run in view.runs if run.id == run_id), None)
    instead = "You see the newest finished audit instead." if view.run else ""
    if named is None:
        st.info(
            f"This link points to an audit that doesn't belong to this case. {instead}",
            icon=":material/info:",
        )
    elif named.removed_at is not None:
        st.info(f"{removed_words(named)} {instead}", icon=":material/auto_delete:")
    elif named.state == "running":
        st.info(f"The audit in the address is still running. {instead}", icon=":material/info:")
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


def _draw_report_button(view: CaseView, run: Run | None) -> None:
    """Draw the download of a case's report, for ``run`` or else the newest finished run."""
    workbench, user = served_workbench(), actor()

    def report() -> bytes:
        hidden = workbench.team.hides_counts_from(user)
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
        help=("Download the audit of this case as one HTML file to print, archive or share."),
    )


def removed_words(run: RunSummary) -> str:
    """Say that retention has removed an audit, and when."""
    date = f" on {day(run.removed_at)}" if run.removed_at else ""
    return f"The audit of {moment(run.started_at)} was removed{date} by the retention policy."


def _draw_case_bar(page: _Page) -> None:
    """Draw the bar above a case: back, the iteration, a new audit, and a menu for the rest."""
    case_id, view = page.view.case.id, page.view
    with st.container(key="review-bar", horizontal=True, vertical_alignment="center"):
        compared = address.compared_pair()
        if compared and st.button("Compare", icon=":material/arrow_back:", type="tertiary"):
            st.switch_page("pages/compare.py", query_params=compared)
        if st.button("Queue", icon=":material/arrow_back:", type="tertiary"):
            address.leave_case()
        if page.run and page.audited:
            _draw_iteration_choice(page.run, page.at, page.desk.against)
        st.space("stretch")
        allowed = button_state("audit", disabled=page.busy or view.machine_hidden)
        # One click must not replace the results of a model by those of the offline checks, so an
        # existing audit is repeated from a popover. Without one, a plain button: a popover would
        # stay open after the click.
        if page.run and not page.busy:
            with st.popover("Audit again", icon=":material/fact_check:", key="audit-again"):
                st.caption(_replacement_text(page.run, page.workbench.settings))
                if page.workbench.settings.cache:
                    st.button(
                        "With the cached replies",
                        on_click=_start_audit_again,
                        args=(case_id,),
                        **allowed,
                    )
                    st.button(
                        "Ask the models again",
                        on_click=_start_audit_again,
                        args=(case_id,),
                        kwargs={"uncached": True},
                        **allowed,
                    )
                else:
                    st.button(
                        "Start the audit", on_click=_start_audit_again, args=(case_id,), **allowed
                    )
                st.page_link(
                    "pages/new.py",
                    label="Choose other settings",
                    icon=":material/tune:",
                    query_params={"case": case_id},
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
            _draw_more_menu(page)


def _replacement_text(run: Run, settings: Settings) -> str:
    """Say which models would audit the case again, and where the present audit can be found."""
    before, after = (
        ", ".join(dict.fromkeys(models.values())) for models in (run.models, settings.models())
    )
    by = f"**{escape_markdown(after)}**"
    if before == after:
        audit = f"The new audit is by {by}, like the one shown."
    else:
        audit = f"The new audit is by {by} and replaces the one by **{escape_markdown(before)}**."
    return f"{audit} The current audit stays available under More > Audit shown."


def _draw_more_menu(page: _Page) -> None:
    """Draw the other actions on a case, harmless ones first and irreversible ones folded."""
    case_id = page.view.case.id
    finished = [run for run in page.view.runs if run.readable]
    if page.run and len(finished) > 1:
        _draw_run_choice(finished, page.run, case_id)
    _draw_report_button(page.view, page.run)
    st.page_link(
        "pages/decisions.py",
        label="Decisions on this case",
        icon=":material/history:",
        query_params={"case": case_id},
    )
    if reviewer() is not None and page.view.state not in ("redacted", "planted"):
        show_own_assignment(page.workbench, case_id)
        release_button(page.workbench, case_id)
    st.divider()
    if page.view.state == "redacted":
        st.caption("This case is redacted.")
        return
    with st.expander("Redact this case", icon=":material/ink_eraser:"):
        redact_case_form(page.workbench, case_id)


def _draw_run_choice(finished: list[RunSummary], run: Run, case_id: str) -> None:
    names = {summary.id: run_name(summary) for summary in finished}
    st.session_state["run"] = run.id
    st.selectbox(
        "Audit shown",
        list(names),
        key="run",
        format_func=lambda run_id: names.get(run_id, run_id),
        on_change=_choose_run,
        args=(finished[0].id,),
        width=320,
    )
    if st.button("Compare audits", icon=":material/compare:", width="stretch"):
        other = next(summary.id for summary in finished if summary.id != run.id)
        st.switch_page(
            "pages/compare.py", query_params={"case": case_id, "left": other, "right": run.id}
        )


def _choose_run(newest: str) -> None:
    chosen = st.session_state["run"]
    address.set_param("run", "" if chosen == newest else chosen)
    address.set_param("iteration", "")
    address.set_param("against", "")


def _start_audit_again(case_id: str, *, revise: bool = False, uncached: bool = False) -> None:
    workbench = served_workbench()
    settings = workbench.settings
    if uncached:
        workbench.audits.forget_replies(actor(), case_id)
    if revise:
        settings = settings.model_copy(
            update={"min_iterations": 2, "max_iterations": max(2, settings.max_iterations)}
        )
    newest = next((run.id for run in workbench.runs.for_case(case_id) if run.readable), "")
    st.session_state[_AUDITED_AGAIN] = (case_id, newest)
    served_jobs().audit(actor(), case_id, settings)
    for name in ("run", "iteration", "against"):
        address.set_param(name, "")


def _draw_iteration_choice(run: Run, index: int, against: int | None) -> None:
    """Draw the choice of the iteration, and of its marks or its changes."""
    count = len(run.iterations)
    names = [_iteration_name(run, number) for number in range(count)]
    if count == 1:
        st.caption(names[0])
        return
    st.session_state["iteration"] = index
    options: dict[str, Any] = {
        "key": "iteration",
        "format_func": names.__getitem__,
        "label_visibility": "collapsed",
        "on_change": _choose_iteration,
    }
    if count > MOST_ITERATION_BUTTONS:
        st.selectbox("Iteration", range(count), width=210, **options)
    else:
        st.segmented_control("Iteration", range(count), required=True, width="content", **options)
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
            [number for number in range(count) if number != index],
            key="against",
            format_func=lambda number: f"against iteration {number + 1}",
            label_visibility="collapsed",
            on_change=lambda: address.set_param("against", str(st.session_state["against"] + 1)),
            width=180,
        )


def _toggle_changes(index: int, against: int | None) -> None:
    other = 0 if index else 1  # a revision is compared with the original first
    address.set_param("against", "" if against is not None else str(other + 1))


def _choose_iteration() -> None:
    chosen = st.session_state["iteration"]
    address.set_param("iteration", str(chosen + 1) if chosen else "")


def _iteration_name(run: Run, index: int) -> str:
    origin = "revision" if index else "drafted by MASIS" if run.draft else "original"
    return f"{index + 1} · {origin}{', suggested' if index and index == run.best else ''}"


# --- the parts of the page --------------------------------------------------------------


def _draw_case_head(page: _Page) -> None:
    """Draw the question and the worst issue of the original answer, with folded reasons."""
    case, view, run = page.view.case, page.view, page.run
    worst = headline(run) if run and not view.machine_hidden else None
    word, more = status_label(view.summary.standing, view.state, view.summary.severity)
    facts = [str(case.metadata["field"])] if case.metadata.get("field") else []
    if page.systems.system:
        facts.append(f"system {page.systems.system}")
    # The id of an answer contains the name of its system.
    name = case.question if page.system_hidden else case.id
    data: CaseHead = {
        "question": case.query,
        "state": label(STATE["running"] if page.busy else word),
        "facts": [*([more] if more else []), *facts, name],
        "reasons": review_messages(run) if run else [],
        "technical": failure_message(run) if run else "",
        "reasons_title": _name_reasons(run, decided=page.decided is not None),
    }
    if view.machine_hidden:
        hidden = "Your team's policy hides the results of the audit until you've decided."
        data["headline"] = {"text": hidden, "tone": "calm", "others": ""}
    elif (decided := page.decided) and decided.verdict:
        reason = f": {decided.reason.rstrip('.')}" if decided.reason else ""
        finding = (
            ""
            if worst is None
            else ("" if worst.tone == "calm" else "The audit had found: ")
            + worst.render(LONGEST_QUOTED_IN_HEAD)
        )
        who = f"{DECIDED[decided.verdict].text} by {decided.reviewer} {used_answer(decided)}"
        text = f"{who.rstrip()}{reason}. {finding}".rstrip()
        data["headline"] = {"text": text, "tone": "calm", "others": worst.others if worst else ""}
        data["facts"] = data["facts"][1 if more else 0 :]  # the headline has the decision already
    elif worst:
        prefix = "Original answer: " if page.at else ""
        data["headline"] = {
            "text": f"{prefix}{worst.render(LONGEST_QUOTED_IN_HEAD)}",
            "tone": worst.tone,
            "others": worst.others,
        }
    case_head(data, key="head")


def _name_reasons(run: Run | None, *, decided: bool) -> str:
    """Name the reasons for a review, and which of several answers they are about."""
    about = "it"
    if run is not None and len(run.iterations) > 1:
        is_of_revision = run.best and run.settings.get("review_revised") is False
        about = "the suggested revision" if is_of_revision else "the original answer"
    return f"Why {about} {'needed' if decided else 'needs'} review"


def _draw_conversation(view: CaseView) -> None:
    """Draw the turns before the question, folded, as the decision is about the last answer."""
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
    """Draw the model's reasoning, folded, as it isn't a part of the answer."""
    if case.model_reasoning:
        with st.expander(REASONING.text, icon=":material/psychology:"):
            st.caption(f"{REASONING.meaning}. No claim or citation in it was checked.")
            st.text(shorten(case.model_reasoning, REASONING_SHOWN))


def _draw_no_answer(case: Case, run: Run | None) -> None:
    """Say why the system gave no answer, if it gave none."""
    if case.unanswered is None:
        return
    drafted = run is not None and run.draft is not None
    explanation = (
        "MASIS drafted the answer below."
        if drafted
        else "There's no answer to audit. Draft one first."
    )
    title = UNANSWERED[case.unanswered.code].text
    st.warning(f"**{title}.** {explanation}", icon=":material/block:")
    if case.unanswered.message:
        st.text(case.unanswered.message)


def _draw_not_audited(run: Run | None, runs: tuple[RunSummary, ...]) -> None:
    removed = next((summary for summary in runs if summary.removed_at), None)
    if run is None and removed is not None:
        st.info(
            f"{removed_words(removed)} The case and every decision on it are still stored. Press"
            " **Audit again** to repeat the audit.",
            icon=":material/auto_delete:",
        )
        return
    if run is None:
        st.markdown(
            f"{NOT_AUDITED} Press **Audit now** to check its citations and claims"
            " against the evidence."
        )
        return
    st.warning(
        "The last audit ended before it finished an iteration. “Why it needs review” has the"
        " technical details.",
        icon=":material/warning:",
    )


def _draw_audit_outcome(run: Run, index: int, case_id: str, *, busy: bool) -> None:
    """Draw the course of an audit: why it stopped, its issues by iteration, and its scores."""
    with st.container(key="story", gap="xsmall"):
        for title, lines, tone in story(run, index, served_workbench().exams.line_for_run(run)):
            name, text = st.columns([1, 6])
            name.caption(title)
            if tone == "warning":  # warnings are technical, with paths and codes, so they're folded
                with text.expander(count_noun(len(lines), "warning"), icon=":material/warning:"):
                    st.text("\n".join(lines))
            else:
                text.text("\n".join(lines))
    if may_revise_anyway(run):
        missing = unusable_model(served_workbench().settings)
        explanation = missing or "Audit again and ask for a revision, whatever the checks find."
        st.button(
            "Revise once anyway",
            icon=":material/edit_note:",
            on_click=_start_audit_again,
            args=(case_id,),
            kwargs={"revise": True},
            **button_state("audit", disabled=busy or bool(missing), help=explanation),
        )
        if missing:
            st.text(missing)
    if len(run.iterations) > 1:
        st.header("Issues across iterations")
        _draw_issue_history(issue_history(run, index))
    st.header("Scores")
    if len(run.iterations) > 1:
        draw_chart(
            course_chart,
            rows=score_rows(run),
            shown=[{"iteration": run.iterations[index].iteration_number}],
            description="Scores by iteration, as in the table below",
        )
    st.table(scores.score_frame(run), border="horizontal", alt="Scores by iteration")
    title = f"Calculation of the scores of iteration {index + 1}"
    expander = st.expander(title, key="score-origins", on_change="rerun")
    if expander.open:  # computed on demand, as most people never open it
        with expander:
            origins = scores.score_origins(run, index)
            st.table(
                scores.origin_frame(origins), border="horizontal", alt="Calculation of the scores"
            )
            if len(measured := scores.measured_frame(origins)):
                st.table(measured, border="horizontal", alt="Measurements behind the scores")


def _draw_issue_history(history: IssueHistory) -> None:
    if history.table.empty:
        st.caption("No iteration has an issue.")
        return
    st.table(history.table, border="horizontal", alt="Issues across iterations")
    if history.left_out:
        st.caption(f"and {count_noun(history.left_out, 'more issue')}")


def _draw_audit_progress(case_id: str, hidden: bool) -> bool:
    """Draw the progress of the running audit, and return whether one is running.

    With ``hidden`` set, its results are left out.
    """
    workbench, jobs = served_workbench(), served_jobs()
    running: RunSummary | None = next(
        (run for run in workbench.runs.for_case(case_id) if run.state == "running"), None
    )
    if running is None and not jobs.is_auditing(case_id):
        return False
    shows_results = running is not None and not hidden
    shown = (
        build_timeline(workbench.runs.events(running.id), "running", utc_now())
        if running and shows_results
        else build_waiting_timeline("")
    )
    # a fixed height from the start, so that new results don't move the answer below
    with st.container(
        border=True, gap="xsmall", height=LIVE_HEIGHT if shows_results else "content"
    ):
        with st.container(horizontal=True, vertical_alignment="center"):
            st.markdown("**Auditing**", width="content")
            so_far = " · ".join(filter(None, [shown["live"], shown["spent"]]))
            st.text(
                so_far or "The result will appear on this page. You can leave it meanwhile.",
                width="stretch",
            )
            if (
                running
                and shows_results
                and st.button("Watch the audit", icon=":material/timeline:")
            ):
                st.switch_page("pages/new.py", query_params={"job": running.id})
            stopping = bool(running and jobs.is_cancelling("audit", running.id))
            st.button(
                "Stopping" if stopping else "Stop",
                icon=":material/stop_circle:",
                on_click=acting(jobs.cancel, "audit", case_id),
                **button_state(
                    "audit",
                    disabled=stopping,
                    help="Stop the audit. The finished part is stored and shown here.",
                ),
            )
        if running and shows_results:
            show_interim_issues(workbench, running.id)
    return True

"""The overview page: counts by status, the cases to review first, and recent decisions."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

import streamlit as st

from masis.api.roles import estimate, unpriced_models, uses_models
from masis.audit.measures.case_figures import Changes
from masis.errors import MasisError, UnknownRecord
from masis.llm.estimates import CostEstimate
from masis.schema.case import Case
from masis.schema.review import LogEntry
from masis.schema.wording import count_noun
from masis.services import Workbench, demo_cases
from masis.services.cases import WAITING
from masis.services.demo_database import SIMULATED
from masis.services.jobs import UNAUDITED, BatchProgress
from masis.services.records import (
    DEFAULT_ORDER,
    ORDERS,
    CaseFilter,
    CasePage,
    CaseSummary,
    DecisionFilter,
    Facets,
)
from masis.services.trust.service import TrustFilter
from masis.services.trust.summary import agreement_summary
from masis.settings import OFFLINE
from masis.ui.components.charts import draw_chart
from masis.ui.components.linked_table import linked_table
from masis.ui.live import served_jobs, show_live
from masis.ui.metrics.sections import has_short_log
from masis.ui.new_audit.form import destination_text
from masis.ui.queue.case_list import (
    PRODUCT,
    adjudications_link,
    case_columns,
    case_row,
    own_marks,
    show_nothing_yet,
)
from masis.ui.review.decisions import entry_context
from masis.ui.review.log_view import decision_log, entry_row
from masis.ui.shell import address
from masis.ui.shell.permissions import button_state
from masis.ui.shell.reviewer import acting, actor
from masis.views import pictures
from masis.views.markdown import colour_label
from masis.views.numbers import dollars, duration
from masis.views.words import (
    DECIDED,
    MACHINE_HIDDEN,
    STANDING,
    WAITS_FOR,
    Word,
    lesser_words,
)

WAITING_SHOWN = 6
DECISIONS_SHOWN, DECISIONS_READ = 5, 50
"""The number of cases whose newest decision is listed, and of log entries read to find them.

More entries are read than listed, because a case can have several.
"""
SAMPLED = 50
"""The number of cases read for a cost estimate, which is scaled up to all cases."""


def show_overview(workbench: Workbench) -> None:
    """Draw the overview page."""
    facets = workbench.cases.facets_for(actor())
    if not sum(facets.standings.values()):
        show_nothing_yet(workbench)
        return
    # the number that the desk shows as left
    left_to_review = workbench.team.count_open(actor(), CaseFilter())
    st.title(headline(facets, left_to_review), anchor=False)
    adjudications = workbench.team.adjudications(actor())
    draw_standing_counts(
        facets.standings, facets.states, adjudications=adjudications, minor=facets.minor
    )
    if text := pace(*workbench.trust.today(actor()), left_to_review):
        st.caption(text)
    if text := changes_text(workbench.case_figures.changes(actor(), _yesterday())):
        st.caption(text)
    left, right = st.columns([65, 35], gap="large")
    with left:
        _draw_waiting(workbench, facets)
    with right:
        if not {*facets.reviewers} - SIMULATED and not workbench.cases.hides_machine_from(actor()):
            _draw_first_steps(workbench)
        show_unaudited(workbench, facets)
        _draw_comparable(workbench)
        _draw_trust(workbench)
        if not workbench.cases.hides_machine_from(actor()) and (
            text := unconfirmed_text(workbench)
        ):
            with st.container(border=True, key="not-confirmed"):
                st.caption(text)
                st.page_link(
                    "pages/settings.py",
                    label="Choose a verifier model",
                    icon=":material/arrow_forward:",
                )
        _draw_recent(workbench)


def headline(facets: Facets, left: int | None = None) -> str:
    """Return a sentence about the work to do, without cases that wait for other people.

    Args:
        facets: The counts.
        left: The number of the cases that this person may decide now, as the desk shows it. Others
            may hold some, or be assigned.

    """
    unaudited = sum(facets.states.get(state, 0) for state in UNAUDITED)
    if facets.states.get("needs_review", 0):
        waiting = sum(facets.states.get(state, 0) for state in WAITING)
        wrong, passed = facets.standings.get("wrong", 0), facets.states.get("accepted", 0)
        flagged = f"; the audit flags {wrong:,} of them" if 0 < wrong < waiting else ""
        unread = f"; {unaudited:,} {_are(unaudited)} not audited yet" if unaudited else ""
        own = ""
        if left is not None and left < waiting:
            own = f"; {left:,} of them {_are(left)} left for you"
        unseen = f"; {passed:,} passed the audit without a person's decision" if passed else ""
        needs = count_noun(waiting, "case needs", "cases need")
        return f"{needs} review{flagged}{unread}{own}{unseen}"
    if differ := facets.states.get("needs_adjudication", 0):
        return f"{count_noun(differ, 'case needs', 'cases need')} an adjudication"
    if unaudited:
        return f"{count_noun(unaudited, 'case has', 'cases have')} not been audited"
    return "No cases need review"


def _are(count: int) -> str:
    return "is" if count == 1 else "are"


def pace(decided: int, escalated: int, seconds: float | None, waiting: int) -> str:
    """Describe the user's pace today: cases decided or escalated, median time, and the time left.

    Returns "" before the first decision of the day.
    """
    if not decided:
        return ""
    # an escalated case stays open
    done = [
        f"{verb} {count_noun(count, 'case')}"
        for verb, count in (("decided", decided - escalated), ("escalated", escalated))
        if count
    ]
    median = f", in {duration(1000 * round(seconds))} each (median)" if seconds else ""
    # at least a minute, because "about 0 min left" would look finished
    minutes = max(1, round((seconds or 0) * waiting / 60))
    rest = f" About {duration(60_000 * minutes)} left at this pace ({waiting:,} cases)."
    return f"You {' and '.join(done)} today{median}.{rest if median and waiting > 1 else ''}"


def changes_text(changes: Changes) -> str:
    """Describe what happened since yesterday, or "" if nothing did."""
    arrived = count_noun(changes.arrived, "case") + " arrived"
    accepted = count_noun(changes.settled.get("accepted", 0), "answer")
    parts = [
        arrived if changes.arrived else "",
        f"{count_noun(changes.audited, 'audit')} finished" if changes.audited else "",
        f"{count_noun(changes.failed, 'audit')} failed" if changes.failed else "",
        *(
            f"{changes.settled[verdict]:,} {word.text.lower()}"
            for verdict, word in DECIDED.items()
            if changes.settled.get(verdict)
        ),
        f"{accepted} accepted by the policy" if changes.settled.get("accepted") else "",
    ]
    happened = " · ".join(part for part in parts if part)
    return f"Since yesterday: {happened}" if happened else ""


def _yesterday() -> str:
    """Return the first day of the time that the page looks back (UTC)."""
    return (datetime.now(UTC).date() - timedelta(days=1)).isoformat()


def _draw_comparable(workbench: Workbench) -> None:
    """Link to the comparison if two systems answered the same questions."""
    if not (pairs := workbench.preferences.progress(actor()).total):
        return
    with st.container(border=True, key="comparable"):
        st.markdown("**Which system is better?**")
        st.caption(
            f"Systems answered the same questions ({count_noun(pairs, 'pair')} of answers)."
            " Compare them by decisions and issues, or by people's preferences."
        )
        with st.container(horizontal=True, gap="small"):
            st.page_link("pages/compare.py", label="Compare", icon=":material/compare_arrows:")
            st.page_link(
                "pages/preference.py", label="Preference", icon=":material/thumbs_up_down:"
            )


def _draw_trust(workbench: Workbench) -> None:
    """Say in one line how far the audit may be trusted, with a picture of the two shares."""
    if workbench.cases.hides_figures_from(actor()):
        return
    if not has_short_log(workbench):
        return
    report = workbench.trust.compare(actor(), TrustFilter())
    shares = {
        "Flags that were right": report.answers.precision,
        "Faulty answers flagged": report.answers.recall,
    }
    rows = pictures.estimate_rows(
        (name, share.value, share.low, share.high, share.n) for name, share in shares.items()
    )
    with st.container(border=True, key="trust-line"):
        st.markdown("**How often is the audit right?**")
        st.caption(agreement_summary(report))
        if rows:
            draw_chart(
                pictures.share_chart,
                "Name",
                len(rows),
                rows=rows,
                description="How often the audit is right, with 95% intervals",
                key="trust-line-chart",
            )
        st.page_link("pages/trust.py", label="Trust", icon=":material/arrow_forward:")


def draw_standing_counts(
    standings: Mapping[Any, int],
    states: Mapping[str, int] | None = None,
    order: str = "",
    adjudications: CasePage | None = None,
    minor: int = 0,
) -> None:
    """Draw the number of cases by status, each a link. The numbers add up to all cases.

    Args:
        standings: The number of cases by status.
        states: The number of cases by state; splits the waiting cases by what they wait for.
        order: The order of the linked lists.
        adjudications: The cases that wait for the user's adjudication.
        minor: The number of cases with nothing but less serious issues.

    """
    mine = adjudications or CasePage(rows=(), total=0)
    counts: list[tuple[str, str, int, Word]] = []
    for name, word in STANDING.items():
        if name == "waits" and states is not None:
            waiting = {state: states.get(state, 0) for state in WAITS_FOR}
            waiting["needs_review"] = 0
            waiting["needs_review"] = standings.get(name, 0) - sum(waiting.values())
            waiting["needs_adjudication"] -= mine.total
            counts += [
                ("waits", state, count, WAITS_FOR[state]) for state, count in waiting.items()
            ]
        else:
            counts.append((name, "", standings.get(name, 0), word))
    with st.container(horizontal=True, gap="small"):
        for standing, state, count, word in counts:
            if count > 0:
                parameters = {"standing": standing, "state": state, "order": order}
                # A case whose issues are all less serious has the status "nothing found", too
                lesser = minor if standing == "nothing_found" else 0
                with_issues = f", **{lesser:,}** {lesser_words()}" if lesser else ""
                st.page_link(
                    "pages/queue.py",
                    label=f"**{count - lesser:,}** {colour_label(word)}{with_issues}",
                    query_params={name: value for name, value in parameters.items() if value},
                    help=word.meaning,
                )
        adjudications_link(mine)


def _draw_waiting(workbench: Workbench, facets: Facets) -> None:
    if not facets.states.get("needs_review"):
        st.markdown(_nothing_to_review_text(facets))
        _draw_assigned(workbench)
        st.page_link("pages/queue.py", label="All cases", icon=":material/checklist:")
        return
    blind = workbench.cases.hides_machine_from(actor())
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        st.header("Review first", anchor=False, width="content")
        random = f":material/visibility_off: {MACHINE_HIDDEN} The cases are in random order."
        st.caption(random if blind else ORDERS[DEFAULT_ORDER].explanation, width="content")
    page = workbench.cases.find_for(
        actor(), CaseFilter(states=("needs_review",), size=WAITING_SHOWN)
    )
    _draw_assigned(workbench)
    marks = own_marks(workbench, page.rows)
    order = "random" if blind else DEFAULT_ORDER
    rows = [case_row(summary, {}, order=order, marks=marks[summary.id]) for summary in page.rows]
    columns = case_columns(order, brief=True)
    if opened := linked_table(columns, rows, description="Cases that need review", key="waiting"):
        st.switch_page("pages/review.py", query_params={"case": opened})
    st.page_link(
        "pages/queue.py",
        label="Open the queue",
        icon=":material/arrow_forward:",
        icon_position="right",
    )


def _nothing_to_review_text(facets: Facets) -> str:
    """Say why no case needs a review by this person."""
    waiting = facets.standings.get("waits", 0)
    if waiting:
        waits = count_noun(waiting, "case waits", "cases wait")
        return f"No case needs your review. {waits} for other people, as counted above."
    if any(facets.standings.get(name) for name in ("decided", "nothing_found", "to_review")):
        return "All cases that needed review have been decided."
    return "No audits yet. Audit cases to list the ones that need review here."


def unconfirmed_text(workbench: Workbench) -> str:
    """Say how many answers the offline checks couldn't confirm; "" with a verifier model."""
    if workbench.settings.verifier != OFFLINE:
        return ""
    count = workbench.cases.count(
        CaseFilter(
            states=("needs_review",),
            reasons=("unconfirmed_claim",),
            viewer=actor().name,
            size=1,
        )
    )
    if not count:
        return ""
    return (
        f"{count_noun(count, 'answer has', 'answers have')} claims that the offline checks"
        " couldn't confirm. A verifier model, on this machine or by an API, can check them."
    )


def _draw_assigned(workbench: Workbench) -> None:
    """Draw a link to the waiting and escalated cases that are assigned to the user."""
    name = actor().name
    if name not in workbench.store.team.count_cases("assigned"):
        return
    case_filter = CaseFilter(
        states=("needs_review", "escalated"), assignees=(name,), undecided_by=name
    )
    if count := workbench.cases.count(workbench.cases.blind_filter(actor(), case_filter)):
        st.page_link(
            "pages/queue.py",
            label=f"{count:,} {'is' if count == 1 else 'are'} assigned to you",
            icon=":material/assignment_ind:",
            query_params={"assignee": address.in_words([name])},
        )


def _draw_first_steps(workbench: Workbench) -> None:
    """Draw a short tour of one case for a person who hasn't decided anything yet."""
    if (case := _first_case(workbench)) is None:
        return
    with st.container(border=True):
        st.markdown("**New here? Start with one case**")
        st.caption(PRODUCT)
        st.text(case.query)
        st.markdown(
            "1. The answer is shown next to its evidence. A citation that is struck through refers"
            " to evidence that doesn't exist.\n2. Click a mark to highlight the sentence of the"
            " evidence that supports or contradicts it.\n3. See the changes of the revision, then"
            " decide: approve, override, reject or escalate."
        )
        if st.button(
            "Open this case", type="primary", icon=":material/arrow_forward:", key="first-case"
        ):
            st.switch_page("pages/review.py", query_params={"case": case.id})


def _first_case(workbench: Workbench) -> CaseSummary | None:
    """Return a telling demo case that needs review, or else one with a fabricated citation."""
    for case_id in _first_case_ids():
        # a database of one's own doesn't have the demo cases
        with contextlib.suppress(UnknownRecord):
            case = workbench.cases.summary(case_id)
            if case.state == "needs_review":
                return case
    waiting = workbench.cases.find_for(
        actor(), CaseFilter(states=("needs_review",), flags=("invalid_reference",), size=1)
    ).rows
    return waiting[0] if waiting else None


@st.cache_data(show_spinner=False)
def _first_case_ids() -> tuple[str, ...]:
    """Return the ids of the telling demo cases, those with an invented and cited claim first."""
    cases = [case for case in demo_cases() if case.metadata.get("telling")]
    # False sorts before True.
    return tuple(case.id for case in sorted(cases, key=_cites_no_invented_claim))


def _cites_no_invented_claim(case: Case) -> bool:
    labels = case.labels
    return (
        labels is None
        or all(citation.status != "invalid" for citation in labels.citations)
        or all(claim.verdict != "unsupported" for claim in labels.claims)
    )


def show_unaudited(workbench: Workbench, facets: Facets, *, primary: bool = False) -> None:
    """Draw the number of unaudited cases, the cost of auditing them, and the button for it.

    ``primary`` says that auditing them is the page's next step.
    """
    batch = served_jobs().batch()
    unaudited = sum(facets.states.get(state, 0) for state in UNAUDITED)
    if batch is not None and batch.is_running:
        show_live(_draw_batch)
        return
    if batch is not None and (batch.done or batch.limit_reached):
        _draw_batch_summary(workbench, batch)
    if not unaudited:
        return
    with st.container(border=True):
        st.markdown(f"**{count_noun(unaudited, 'case has', 'cases have')} not been audited**")
        st.caption(
            "The audits run in the background, one after the other. You can leave this page in the"
            " meantime."
        )
        if costs := batch_costs(workbench, unaudited):
            st.text(costs)
        if time := batch_time(workbench, unaudited):
            st.caption(time)
        if can_be_limited(workbench):
            st.number_input(
                "Limit in US dollars (optional)",
                min_value=0.01,
                value=None,
                key=LIMIT,
                width=260,
                help=(
                    "An audit doesn't start if the total could exceed this limit. The remaining"
                    " cases stay unaudited."
                ),
            )
        st.button(
            "Audit this case" if unaudited == 1 else f"Audit all {unaudited:,} cases",
            icon=":material/fact_check:",
            # The limit is read when the button is clicked, because this run may have drawn the
            # field before it was filled in.
            on_click=lambda: served_jobs().audit_all_new(actor(), st.session_state.get(LIMIT)),
            key="audit-all",
            type="primary" if primary else "secondary",
            **button_state("audit"),
        )


LIMIT = "audit-all-limit"
FAILURES = "{} couldn't be audited. Open a case to see why."


def can_be_limited(workbench: Workbench) -> bool:
    """Return whether audits cost money and the price of every model is known."""
    try:
        return uses_models(workbench.settings) and not unpriced_models(workbench.settings)
    except MasisError:
        return False


def batch_costs(workbench: Workbench, unaudited: int) -> str:
    """Say where the unaudited cases would be sent and the highest cost, estimated from a sample."""
    if not uses_models(workbench.settings):
        return ""
    try:
        place = destination_text(workbench.settings)
        rows = workbench.cases.find(CaseFilter(states=UNAUDITED, order="oldest", size=SAMPLED)).rows
        total = CostEstimate()
        for row in rows:
            total = total.plus(estimate(workbench.store.cases.get(row.id), workbench.settings))
    except MasisError as error:
        return f"A model in the settings can't be used. {error}"
    # The sample is assumed to be like the rest of the cases.
    scale = unaudited / max(1, len(rows))
    cost = (
        "cost unknown"
        if total.cost_usd is None
        else f"at most about {dollars(total.cost_usd * scale)}"
    )
    return f"{place} Up to {round(total.calls * scale):,} calls, {cost}."


def batch_time(workbench: Workbench, unaudited: int) -> str:
    """Say how long the audits will take at the pace of earlier ones; "" without any."""
    if (measured := workbench.metrics.pace(workbench.settings.models())) is None:
        return ""
    mean_ms, audits = measured
    about = duration(unaudited * mean_ms)
    return f"About {about} at the pace of the last {count_noun(audits, 'audit')} with these models."


def _draw_batch() -> bool:
    """Draw the progress of the batch of audits, and return whether it's running."""
    batch = served_jobs().batch()
    if batch is None or not batch.is_running:
        return False
    with st.container(border=True):
        st.markdown("**Stopping after the running audits**" if batch.stopping else "**Auditing**")
        st.progress(
            min(1.0, batch.done / max(1, batch.total)), text=f"{batch.done:,} of {batch.total:,}"
        )
        if batch.failed:
            st.caption(FAILURES.format(count_noun(batch.failed, "case")))
        st.button(
            "Stop auditing",
            key="stop-batch",
            on_click=acting(served_jobs().cancel_batch),
            **button_state("audit", disabled=batch.stopping),
        )
    return True


def _draw_batch_summary(workbench: Workbench, batch: BatchProgress) -> None:
    """Draw the results of the last batch, each number a link to its cases, newest first."""
    price = (
        "an unknown price"
        if batch.cost_usd is None
        else dollars(batch.cost_usd)
        if batch.cost_usd
        else ""
    )
    cases = count_noun(batch.done, "case was", "cases were")
    words = [f"**In the last batch, {cases} audited{f' for {price}' if price else ''}.**"]
    if batch.limit_reached:
        words.append("It stopped because one more audit could have exceeded the cost limit.")
    if batch.failed:
        words.append(FAILURES.format(count_noun(batch.failed, "case")))
    with st.container(border=True, key="batch-summary"):
        st.markdown(" ".join(words))
        if not workbench.cases.hides_machine_from(actor()):
            draw_standing_counts(batch.standings, order="newest", minor=batch.minor)


def _draw_recent(workbench: Workbench) -> None:
    # a horizontal container removes the space above the header, as in the column next to it
    with st.container(horizontal=True):
        st.header("Recent decisions", anchor=False)
    page = workbench.reviews.entries(
        DecisionFilter(
            kinds=("decision", "adjudication", "undo", "redaction"),
            size=DECISIONS_READ,
            newest_first=True,
            blind_to=actor().name,
        ),
        upto=DECISIONS_READ,
    )
    if not page.rows:
        st.caption(
            "No decisions yet. When you decide a case, it's listed here, and with its reasons in"
            " the decision log."
        )
        return
    newest: dict[str, LogEntry] = {}
    for entry in page.rows:
        # Entries are newest first, so the first one of each case is used.
        newest.setdefault(entry.decision.case_id if entry.decision else entry.id, entry)
    rows = [
        entry_row(entry, entry_context(workbench, entry))
        for entry in [*newest.values()][:DECISIONS_SHOWN]
    ]
    clicked = decision_log({"brief": True, "rows": rows}, key="recent")
    if clicked.case:
        st.switch_page("pages/review.py", query_params={"case": clicked.case})
    st.page_link(
        "pages/decisions.py",
        label="Open the decision log",
        icon=":material/arrow_forward:",
        icon_position="right",
    )

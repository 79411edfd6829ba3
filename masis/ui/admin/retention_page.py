"""The retention page: expired records, why others stay, earlier removals, and the execution log."""

from __future__ import annotations

import time
from collections.abc import Iterable

import pandas as pd
import streamlit as st

from masis.errors import StoreError
from masis.schema.retention import Candidate, Execution, Purge, PurgePlan, RetentionRule
from masis.schema.wording import count_noun
from masis.services import Actor, Workbench
from masis.services.maintenance.retention import PurgeResult, rule_of
from masis.ui.components.linked_table import LinkedRow, TableCell, column, linked_table, row
from masis.ui.shell import address
from masis.ui.shell.inputs import show_value
from masis.ui.shell.permissions import button_state
from masis.ui.shell.reviewer import actor, name_reviewer, reviewer
from masis.ui.shell.served_database import command_markdown
from masis.views.comparison import models_words
from masis.views.markdown import escape_markdown
from masis.views.numbers import day, file_size, moment, score_text
from masis.views.words import MACHINE_HIDDEN, STOPPED

_SHOWN_RULE_KEY = "retention-plan"
_PURGE_RESULT_KEY = "retention-done"
_PLAN_KEY = "retention-looked"
PLAN_VALID_S = 60.0
"""How long a plan is reused. Removing applies the rule again, run by run."""

MOST_PLANNED_UNASKED = 20_000
"""Most audits searched each time the page opens. With more, the search waits for a click."""

REQUESTED_PLAN_VALID_S = 1800.0
"""How long a plan that was requested by a click is reused."""

PLAN_HIDDEN = (
    "The policy hides the work of others or the audits' results while cases are undecided. The list"
    " of records to remove depends on both, so only signed-in leads and admins see it here. The"
    " owner of the database file can use `masis purge --dry-run`."
)

LISTED = 50
"""Runs of a plan that the page lists; `masis purge --dry-run --list` lists all."""

EXECUTIONS = 25
KEPT = {"decided": "because people decided on them", "waiting": "because they need review"}
CONFIRMED_BY = "remove"


def show_retention(workbench: Workbench) -> None:
    """Draw the retention page."""
    st.title("Retention")
    days = workbench.settings.retention_days
    period = f"for {count_noun(days, 'day')}" if days else "without a limit"
    automatic = (
        " They are removed automatically once a day."
        if workbench.settings.retention_auto and days
        else ""
    )
    st.markdown(
        f"Audits and screenings are stored {period} (`retention_days`).{automatic} Those that"
        " people decided are never removed unless you choose that here. Cases, decisions, the"
        " metrics of every audit and the execution log are always kept."
    )
    rule = _draw_rule_controls(days)
    st.header("Expired records")
    if (plan := _plan_purge(workbench, rule)) is not None:
        _show_plan(plan)
    with st.container():
        if plan is not None and plan.goes:
            _draw_removal_form(workbench, plan)
    _draw_purge_result()
    st.header("Earlier removals")
    if purges := workbench.store.purges.history():
        st.table(removals_frame(purges), border="horizontal", alt="Removals")
    else:
        st.caption(
            "Nothing so far. Each removal is recorded here, without the text of removed records."
        )
    _draw_execution_log(workbench)


def _plan_purge(workbench: Workbench, rule: RetentionRule) -> PurgePlan | None:
    """Return what the rule would remove now, or None until the user asks for a long search, or if
    a blind policy hides it.

    The search reads every audit, so its result is reused for a while.
    """
    # The container exists with and without the spinner, so that fields below keep their place and
    # their text.
    place = st.container()
    if workbench.retention.hides_plan_from(actor()):
        place.caption(f":material/visibility_off: {PLAN_HIDDEN}")
        return None
    cached: tuple[float, PurgePlan] | None = st.session_state.get(_PLAN_KEY)
    audits = workbench.metrics.newest()
    fresh_s = PLAN_VALID_S if audits <= MOST_PLANNED_UNASKED else REQUESTED_PLAN_VALID_S
    if (
        cached is not None
        and time.monotonic() - cached[0] < fresh_s
        and _is_same_rule(cached[1].rule, rule)
    ):
        return cached[1]
    if audits > MOST_PLANNED_UNASKED:
        st.markdown(f"Finding expired records reads {audits:,} audits, which can take a minute.")
        if not st.button(
            "Find what would be removed", icon=":material/search:", key="retention-look"
        ):
            return None
    with place, st.spinner("Finding expired records"):
        plan = workbench.retention.plan(actor(), rule)
    if plan is None:
        return None
    st.session_state[_PLAN_KEY] = (time.monotonic(), plan)
    return plan


def _is_same_rule(left: RetentionRule, right: RetentionRule) -> bool:
    """Whether two rules are the same except for the time they were made."""
    return left.model_copy(update={"cutoff": right.cutoff}) == right


def _draw_rule_controls(days: int) -> RetentionRule:
    """Draw the controls and return the rule they describe; its values are stored in the address."""
    # Without a limit, the page still needs a period to show what it would remove.
    default = days or 30
    # Streamlit raises an error for a value above the widget's maximum, and an address can hold any
    # number.
    show_value("retention-days", min(address.number("days", default), 36_500))

    def box(name: str, plain: bool, title: str, about: str) -> bool:
        shown = {"yes": True, "no": False}.get(address.value(name), plain)
        return st.checkbox(
            title,
            help=about,
            **address.bind_query_param(name, plain, shows=shown, key=f"retention-{name}"),
        )

    with st.container(horizontal=True, vertical_alignment="bottom", gap="medium"):
        binding = address.bind_query_param("days", default, key="retention-days")
        older = st.number_input(
            "Ended more than this many days ago", 1, 36_500, width=280, **binding
        )
        title, about = (
            "Include audits that people decided on",
            "The decisions are kept; their audits are removed.",
        )
        decided = box("decided", False, title, about)
        waiting = box(
            "waiting",
            True,
            "Include audits that need review",
            "Those cases have to be audited again.",
        )
    return rule_of(older, decided=decided, waiting=waiting)


def _show_plan(plan: PurgePlan) -> None:
    """Draw what the rule would remove, how much stays and why, and the first records by name."""
    removed, in_all = (
        _runs_and_screenings(plan.runs, plan.screenings),
        _runs_and_screenings(plan.runs_in_all, plan.screenings_in_all),
    )
    metrics = [("Would be removed", removed, file_size(plan.bytes))]
    if not plan.goes:
        metrics = [("Would be removed", "nothing", f"of {in_all}")]
    metrics += [
        ("Kept", f"{plan.kept[why]:,}", because)
        for why, because in KEPT.items()
        if why in plan.kept
    ]
    with st.container(horizontal=True, gap="large"):
        # The delta is used for its small text; nothing has changed.
        for label, value, delta in metrics:
            st.metric(label, value, delta, delta_color="off", delta_arrow="off", width="content")
    if not plan.goes:
        return
    waiting = f"{count_noun(plan.waiting, 'audit')} that needs review, " if plan.waiting else ""
    st.caption(f"Of {in_all}. Removed with them: {waiting}{parts_words(plan)}.")
    with st.expander(f"What would be removed ({len(plan.goes):,})"):
        rows = [plan_row(candidate) for candidate in plan.goes[:LISTED]]
        linked_table(PLAN_COLUMNS, rows, description="What would be removed", key="purge-plan")
        if (more := len(plan.goes) - LISTED) > 0:
            st.caption(f"and {more:,} more: `masis purge --dry-run --list` names all of them.")


PLAN_COLUMNS = [
    column("Case or question", "main"),
    column("Ended (UTC)", "figure"),
    column("What", hide="hide-narrow"),
    column("Id", hide="hide-medium"),
    column("Size", "figure"),
]


def plan_row(candidate: Candidate) -> LinkedRow:
    """Return a row for one record that would be removed; a run links to its case."""
    about: TableCell = {"text": candidate.about[:200] or "–"}
    if candidate.kind == "run":
        about |= {"href": address.link("review", case=candidate.about)}
    kind = candidate.kind.replace("_", " ")
    ended = moment(candidate.ended_at)
    return row(
        about,
        ended,
        f"{kind}, interrupted" if candidate.state == "interrupted" else kind,
        candidate.id,
        file_size(candidate.bytes),
    )


def _runs_and_screenings(runs: int, screenings: int) -> str:
    return (
        f"{count_noun(runs, 'audit')} and {count_noun(screenings, 'screening')}"
        if screenings
        else count_noun(runs, "audit")
    )


def parts_words(removed: PurgePlan | Purge) -> str:
    """Say what is removed with the records, part by part."""
    return ", ".join(
        # The fields are named in the plural; count_noun adds the s where it's needed.
        count_noun(count, name[:-1])
        for name, count in removed.parts.model_dump().items()
        if count
    )


def _draw_removal_form(workbench: Workbench, plan: PurgePlan) -> None:
    """Draw the removal form; it needs a name and a typed word, so that one click isn't enough."""
    with st.form("purge", border=True):
        st.markdown(
            "**Remove this permanently?** It can't be restored from here; a backup made before "
            f"({command_markdown('masis db backup FILE')}) still contains it."
        )
        name_at, word, button_at = st.columns([3, 3, 2], vertical_alignment="bottom")
        by = name_at.text_input("Your name, for the record", value=reviewer() or "", max_chars=200)
        typed = word.text_input(f"Type “{CONFIRMED_BY}”", max_chars=40)
        pressed = button_at.form_submit_button(
            f"Remove {_runs_and_screenings(plan.runs, plan.screenings)}",
            icon=":material/auto_delete:",
            type="primary",
            width="stretch",
            **button_state("purge"),
        )
    # Remove the records that were shown when the button was pressed, not those that expired since.
    shown: RetentionRule = st.session_state.get(_SHOWN_RULE_KEY, plan.rule)
    st.session_state[_SHOWN_RULE_KEY] = plan.rule
    if not pressed:
        return
    if typed.strip().casefold() != CONFIRMED_BY:
        st.warning(f"Nothing was removed. Type “{CONFIRMED_BY}” first.", icon=":material/warning:")
    elif name_reviewer(workbench, by) is None:
        st.warning("Nothing was removed. Type your name first.", icon=":material/warning:")
    else:
        _remove_with_progress(
            workbench,
            shown if _is_same_rule(shown, plan.rule) else plan.rule,
            len(plan.goes),
            actor(),
        )


def _remove_with_progress(workbench: Workbench, rule: RetentionRule, total: int, by: Actor) -> None:
    bar = st.progress(0.0, "Removing")

    def move(to: int) -> None:
        bar.progress(min(1.0, to / max(1, total)), "Removing")

    st.session_state.pop(_PLAN_KEY, None)
    try:
        done = workbench.retention.purge(by, rule, how="page", on_batch=move)
    except StoreError as error:
        st.error(
            "Not everything could be removed. Removed records are listed below.",
            icon=":material/error:",
        )
        st.text(str(error))
        return
    st.session_state[_PURGE_RESULT_KEY] = done
    st.rerun()


def _draw_purge_result() -> None:
    done: PurgeResult | None = st.session_state.pop(_PURGE_RESULT_KEY, None)
    if done is None:
        return
    if done.purge is None:
        st.info("There was nothing left to remove.", icon=":material/info:")
        return
    st.success(
        f"{_runs_and_screenings(done.purge.runs, done.purge.screenings)} removed.",
        icon=":material/check_circle:",
    )
    if done.lingers:
        st.caption(
            "Another program is still reading the old state of the database. Removed data stays on"
            " the disk until that program ends."
        )
    if done.shrunk is not None:
        before, after = file_size(done.shrunk.before), file_size(done.shrunk.after)
        why_not = done.shrunk.why_not
        unfreed = f" Not all free space was released: {why_not}." if why_not else ""
        st.caption(f"The file shrank from {before} to {after}.{unfreed}")


HOW = {
    "command": "by command line",
    "page": "on this page",
    "automatic": "automatically",
    "redaction": "by redaction of a case",
}


def removals_frame(purges: Iterable[Purge]) -> pd.DataFrame:
    """Return removals as a table of Markdown cells, one per row."""
    rows = [
        {
            "Removal": str(purge.seq),
            "When (UTC)": moment(purge.at),
            "Who": f"{escape_markdown(purge.by)}, {HOW[purge.how]}",
            "What": f"{_runs_and_screenings(purge.runs, purge.screenings)} ({parts_words(purge)})",
            "Rule": escape_markdown(
                f"ended before {day(purge.rule.cutoff)}{purge.rule.departures}"
            ),
            "Size": file_size(purge.bytes),
        }
        for purge in purges
    ]
    return pd.DataFrame(rows)


def _draw_execution_log(workbench: Workbench) -> None:
    """Draw the execution log, which stays when runs are removed."""
    st.header("Execution log")
    page = workbench.store.executions.page(address.number("page"), EXECUTIONS)
    if not page.total:
        st.caption(
            "No audit has ended yet. Each one adds a line here, which is kept even if the audit is"
            " removed."
        )
        return
    every = command_markdown("masis export --format executions")
    st.caption(f"{count_noun(page.total, 'execution')}, newest first; {every} exports all.")
    blind = workbench.cases.hides_machine_from(actor())
    if blind:
        st.caption(f":material/visibility_off: {MACHINE_HIDDEN} How audits ended is left out.")
    rows = [execution_row(execution, blind=blind) for execution in page.rows]
    result_columns = [] if blind else RESULT_COLUMNS
    columns = [
        column("Case", "main"),
        column("Ended (UTC)", "figure"),
        *result_columns,
        column("Models", hide="hide-medium"),
    ]
    linked_table(columns, rows, description="Execution log", key="executions")
    address.show_pages(page.total, EXECUTIONS, key="executions-page")


RESULT_COLUMNS = [
    column("End reason"),
    column("Iterations", "figure"),
    column("Quality", "figure"),
    column("Improvement", "figure", hide="hide-narrow"),
]
"""The columns with audit results."""


def execution_row(execution: Execution, *, blind: bool = False) -> LinkedRow:
    """Return a row of the execution log that links to its case.

    ``blind`` omits the audit's results.
    """
    why = (
        "its process was interrupted"
        if execution.termination == "abandoned"
        else STOPPED[execution.termination]
    )
    results: list[str | int | None] = []
    if not blind:
        improvement = None if execution.improvement is None else f"{execution.improvement:+.1f} %"
        results = [why, execution.iterations, score_text(execution.final_quality), improvement]
    case: TableCell = {
        "text": execution.case_id,
        "href": address.link("review", case=execution.case_id),
    }
    case["below"] = [f"run {execution.run_id}"]
    models: TableCell = {
        "text": models_words(execution.models),
        "below": [f"version {execution.app}"],
    }
    return row(case, moment(execution.at), *results, models)

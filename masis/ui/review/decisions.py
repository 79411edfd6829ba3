"""The page of the decision log: its entries, its verification and its exports."""

from __future__ import annotations

import io
from collections.abc import Callable
from datetime import date, timedelta
from functools import partial
from typing import Any, BinaryIO, get_args

import streamlit as st

from masis.datasets.exports.export import DECIDED, Selection
from masis.errors import StoreError, UnknownRecord
from masis.schema.review import CaseState, EntryKind, EntrySource, LogCheck, LogEntry
from masis.schema.wording import count_noun, count_noun_or_more
from masis.services import Workbench
from masis.services.audits import POLICY
from masis.services.batch_actions import ACTIONS
from masis.services.records import CaseFilter, CaseSummary, DecisionFilter, DecisionPage
from masis.ui.queue.batch_dialog import open_undo_dialog
from masis.ui.review.desk import chosen_run
from masis.ui.review.log_view import EntryContext, decision_log, entry_detail, entry_row
from masis.ui.review.redaction import redact_entry_form, show_redacted
from masis.ui.shell import address
from masis.ui.shell.downloads import prepared_download
from masis.ui.shell.inputs import show_value
from masis.ui.shell.permissions import button_state
from masis.ui.shell.reviewer import actor
from masis.ui.shell.served_database import command_markdown
from masis.views import words
from masis.views.batch_words import batch_result
from masis.views.diff import DiffChange, word_changes
from masis.views.log_entries import adopted_decision_text
from masis.views.markdown import escape_markdown
from masis.views.words import MACHINE_HIDDEN

CHECKED_AT_ONCE = 2_000
"""The longest log, in entries, that is verified whenever the page opens."""

ENTRIES_COUNTED = 10_000
"""Maximum number of entries that are counted for a filter when the page opens."""

KINDS: tuple[EntryKind, ...] = get_args(EntryKind)
SOURCES: tuple[EntrySource, ...] = get_args(EntrySource)
FILTERS = ("q", "case", "reviewer", "verdict", "kind", "source", "since", "until", "batch")
_CLEARED = (*FILTERS, "page", "entry")


def show_decisions(workbench: Workbench) -> None:
    """Draw the page of the decision log."""
    title, export = st.columns([5, 1], vertical_alignment="bottom")
    title.title("Decisions")
    head = workbench.store.decisions.head()
    if not head.length:
        _show_none_yet()
        return
    with export.popover("Export", icon=":material/download:", width="stretch"):
        _draw_decision_exports(workbench)
    with st.container():
        show_redacted()
    _draw_chain_state(workbench, head.length, head.digest)
    people = workbench.store.decisions.reviewers(actor().name)
    if workbench.cases.hides_machine_from(actor()):
        people.pop(POLICY.name, None)
        st.caption(f":material/visibility_off: {MACHINE_HIDDEN} Auto-accepted cases aren't listed.")
    _draw_log_filters(people)
    entry_filter = log_filter()
    page = workbench.reviews.entries(entry_filter, upto=ENTRIES_COUNTED)
    pages = max(1, -(-page.total // entry_filter.size))
    if entry_filter.page > pages:
        address.set_param("page", str(pages) if pages > 1 else "")
        st.rerun()
    if not page.total:
        st.markdown("**No entry matches.** Choose fewer filters.")
        st.button("Clear filters", on_click=address.clear, args=(_CLEARED,))
        return
    _draw_listed_batch(workbench)
    _draw_page_count(page, narrowed=any(address.value(name) for name in FILTERS))
    _draw_log(workbench, page.rows)
    if pages > 1:
        st.pagination(
            pages,
            **address.bind_query_param(
                "page", 1, shows=entry_filter.page, key="log-page", drops=()
            ),
        )


def log_filter() -> DecisionFilter:
    """Return the filter in the address."""
    until = address.day("until")
    return DecisionFilter(
        text=address.value("q")[: address.LONGEST_QUERY],
        case_id=address.value("case") or None,
        batch=address.value("batch") or None,
        reviewers=tuple(address.words("reviewer")),
        kinds=tuple(address.several("kind", KINDS)),
        sources=tuple(address.several("source", SOURCES)),
        verdicts=tuple(address.several("verdict", tuple(words.DECIDED))),
        since=since.isoformat() if (since := address.day("since")) else None,
        # There is no day after date.max.
        until=(until + timedelta(days=1)).isoformat() if until and until < date.max else None,
        newest_first=address.value("order") != "oldest",
        blind_to=actor().name,
        page=address.number("page"),
        size=address.PAGE_SIZE,
    )


def entry_context(workbench: Workbench, entry: LogEntry) -> EntryContext:
    """Return the case and the entries that belong to an entry."""
    decision = entry.decision
    if decision is None:
        return EntryContext()
    undone_id = decision.undoes or decision.extra.get("redacts")
    undone = workbench.reviews.get(undone_id) if isinstance(undone_id, str) else None
    # if the number of this entry is hidden from the user, so is the number of the other one
    if undone is not None and not entry.seq:
        undone = undone.model_copy(update={"seq": 0})
    case, adopted = _case_summary_or_none(workbench, decision.case_id), ""
    if case is not None and decision.extra.get("taken_from"):
        decisions = [other.decision for other in workbench.reviews.individual(case.id)]
        adopted = adopted_decision_text(
            decision, [other for other in decisions if other is not None]
        )
    modes: tuple[str, ...] = ()
    if decision.codes:
        modes = workbench.modes.codebook(actor()).names_of(decision.codes)
    return EntryContext(case, undone, workbench.reviews.undone_by(entry), adopted, modes)


def _case_summary_or_none(workbench: Workbench, case_id: str) -> CaseSummary | None:
    try:
        return workbench.cases.summary(case_id)
    except UnknownRecord:
        return None


def _draw_log(workbench: Workbench, entries: tuple[LogEntry, ...]) -> None:
    opened = next((entry for entry in entries if entry.id == address.value("entry")), None)
    clicked = decision_log(
        {
            "brief": False,
            "batch": address.value("batch"),
            "rows": [entry_row(entry, entry_context(workbench, entry)) for entry in entries],
            "opened": opened.id if opened else "",
            "detail": _opened_detail(workbench, opened) if opened else None,
        },
        key="decision-log",
    )
    if opened is not None:
        redact_entry_form(workbench, opened)
    if clicked.entry is not None:
        address.set_param("entry", clicked.entry)
        st.rerun()
    if clicked.case:
        st.switch_page("pages/review.py", query_params={"case": clicked.case})
    if clicked.batch:
        address.clear(_CLEARED)
        address.set_param("batch", clicked.batch)
        st.rerun()
    if clicked.href and opened and opened.decision:
        st.switch_page("pages/review.py", query_params=_run_parameters(opened))


def _draw_listed_batch(workbench: Workbench) -> None:
    """Draw the batch whose entries are listed, with a button that undoes it."""
    batch_id = address.value("batch")
    batch = address.find_by_id(partial(workbench.batches.get, actor()), batch_id)
    if batch is None:
        return
    with st.container(horizontal=True, vertical_alignment="center", key="log-batch"):
        names = f" ({', '.join(batch.names)})" if batch.names else ""
        result = batch_result(batch, ACTIONS[batch.action].done)
        st.markdown(escape_markdown(f"Batch {batch.id} by {batch.by}: {result}{names}"))
        opens = st.button(
            "Continue this batch" if batch.is_running else "Undo this batch",
            icon=":material/play_arrow:" if batch.is_running else ":material/undo:",
            key="undo-batch",
            **button_state("decide", disabled=not (batch.is_running or batch.recorded)),
        )
    if opens:
        open_undo_dialog(workbench, batch)


def _run_parameters(entry: LogEntry) -> dict[str, str]:
    decision = entry.decision
    if decision is None:
        return {}
    parameters = {
        "case": decision.case_id,
        "run": decision.run_id or "",
        "iteration": str(decision.iteration or ""),
    }
    return {name: value for name, value in parameters.items() if value}


def _opened_detail(workbench: Workbench, entry: LogEntry) -> dict[str, Any]:
    """Return the details of an entry, with the case and the run limited to what the reader may see.

    A run that a policy hides from the reader is left out.
    """
    correction, decision = _correction_diff(workbench, entry), entry.decision
    if decision is None or not decision.labels:
        return entry_detail(entry, correction, None, None)
    try:
        view = workbench.cases.open_for(actor(), decision.case_id)
    except UnknownRecord:
        return entry_detail(entry, correction, None, None)
    run = chosen_run(workbench, view, decision.run_id or "")
    return entry_detail(entry, correction, view.case, run)


def _correction_diff(workbench: Workbench, entry: LogEntry) -> list[DiffChange]:
    """Return the changes of a correction to the answer shown; empty if either is unknown."""
    decision = entry.decision
    if decision is None or decision.corrected_answer is None or decision.run_id is None:
        return []
    try:
        run = workbench.runs.get(decision.run_id)
    except StoreError:  # the run didn't finish, so the answer shown isn't known
        return []
    at = decision.iteration or 1
    shown = run.iterations[at - 1].answer if at <= len(run.iterations) else run.final_answer
    return word_changes(shown, decision.corrected_answer)


def _draw_page_count(page: DecisionPage, *, narrowed: bool) -> None:
    left, right = st.columns([4, 1], vertical_alignment="center")
    newest = address.value("order") != "oldest"
    order = "newest first" if newest else "oldest first"
    entries = count_noun_or_more(page.total, page.more, "entry", "entries")
    left.caption(f"**{entries}**{' match' if narrowed else ''}, {order}")
    with right.container(horizontal=True, horizontal_alignment="right"):
        if narrowed:
            st.button(
                "Clear",
                type="tertiary",
                key="clear-log",
                help="Clear all filters",
                on_click=address.clear,
                args=(_CLEARED,),
            )
        st.button(
            "Oldest first" if newest else "Newest first",
            type="tertiary",
            key="turn-log",
            icon=":material/swap_vert:",
            on_click=_turn_order,
        )


def _draw_log_filters(reviewers: dict[str, int]) -> None:
    who, since, until, case, text = st.columns([4, 2, 2, 3, 3], vertical_alignment="bottom")
    with who:
        chosen = address.words("reviewer")
        # Streamlit raises an error if a chosen value isn't one of the options, and an address can
        # hold any name.
        options = [*reviewers, *(name for name in chosen if name not in reviewers)]
        st.multiselect(
            "Who",
            options,
            format_func=lambda name: f"{name} ({reviewers.get(name, 0):,})",
            placeholder="Anyone",
            **address.bind_query_param("reviewer", [], shows=chosen, key="log-reviewer"),
        )
    for place, name, title in ((since, "since", "From"), (until, "until", "To")):
        with place:
            st.date_input(
                title,
                format="YYYY-MM-DD",
                **address.bind_query_param(name, shows=address.day(name), key=f"log-{name}"),
            )
    with case:
        show_value("log-case", address.value("case")[:500])
        st.text_input(
            "Case",
            placeholder="Case id",
            max_chars=500,
            **address.bind_query_param("case", key="log-case"),
        )
    with text:
        show_value("log-words", address.value("q")[: address.LONGEST_QUERY])
        st.text_input(
            "Written words",
            placeholder="Words in reasons and notes",
            max_chars=address.LONGEST_QUERY,
            **address.bind_query_param("q", key="log-words"),
        )
    with st.container(horizontal=True, gap="medium"):
        _pills("Verdict", "verdict", {name: word.text for name, word in words.DECIDED.items()})
        _pills("Kind of entry", "kind", {name: words.ENTRY[name].text for name in KINDS})
        _pills("By", "source", {name: words.SOURCE[name].text.capitalize() for name in SOURCES})


def _pills(title: str, name: str, options: dict[str, str]) -> None:
    st.pills(
        title,
        list(options),
        selection_mode="multi",
        # without wrap, pills in a horizontal container scroll sideways and hide the last ones
        wrap=True,
        format_func=options.__getitem__,
        **address.bind_query_param(
            name, [], shows=address.several(name, list(options)), key=f"log-{name}"
        ),
    )


def _draw_chain_state(workbench: Workbench, length: int, head: str) -> None:
    """Draw whether the hash chain of the log is intact, with its length and its head."""
    # The request holds for this head only, so a new entry needs a new one.
    is_requested = st.session_state.get("log-checked") == head
    hidden = workbench.team.hides_counts_from(actor())
    if length > CHECKED_AT_ONCE and not is_requested:
        line, button = st.columns([5, 1], vertical_alignment="center")
        log = (
            "The decision log"
            if hidden
            else f"{count_noun(length, 'entry', 'entries')}, head `{head[:12]}…`"
        )
        line.markdown(f":material/link: {log}: not verified yet.")
        button.button("Verify the log", on_click=_remember_check, args=(head,), width="stretch")
        return
    check = workbench.store.decisions.verify()
    if check.intact:
        intact = (
            ":green[:material/verified:] The decision log is intact. Every entry matches the one"
            " before it."
        )
        st.markdown(intact if hidden else chain_words(check))
        return
    st.error(
        "The decision log isn't intact. An entry was changed or removed.",
        icon=":material/link_off:",
    )
    st.text("\n".join(check.broken[:20]))
    st.caption("Run `masis verify-log` to list all errors.")


def chain_words(check: LogCheck) -> str:
    """Describe an intact log in one line."""
    redacted = f", {check.redacted} of them redacted" if check.redacted else ""
    return (
        ":green[:material/verified:] The decision log is intact: "
        f"{count_noun(check.length, 'entry', 'entries')}{redacted}, "
        f"head `{check.head[:12]}…`. Every entry matches the one before it."
    )


def _draw_decision_exports(workbench: Workbench) -> None:
    user = actor()
    if not workbench.access.allows(user, "export"):
        st.caption("You need the lead role to export.")
        return
    blind = workbench.cases.hides_machine_from(user)
    if blind:
        st.caption(f"{MACHINE_HIDDEN} Auto-accepted cases aren't exported until then.")
    include_accepted = not blind and st.checkbox(
        "Include auto-accepted cases", key="export-accepted", persist_state="session"
    )
    states: tuple[CaseState, ...] = (*DECIDED, "accepted") if include_accepted else DECIDED
    number = workbench.exports.count(CaseFilter(states=states))
    prepared_download(
        f"{count_noun(number, 'decided case')}, JSON Lines",
        lambda: _write_to_memory(
            lambda out: (
                workbench.exports.write(
                    user, out, "decided", Selection(CaseFilter(states=states))
                ).rows
            )
        ),
        file_name="decided-cases.jsonl",
        mime="application/jsonl",
        key="export-decided",
        disabled=not number,
        help_=(
            "Download each decided case as imported, with its decision, its final answer and the"
            " models that judged it."
        ),
    )
    entry_filter = log_filter()
    st.download_button(
        "Entries listed here, CSV",
        # A function, so that the file is written when it's downloaded, not on every run.
        lambda: _write_to_memory(
            lambda out: workbench.exports.write_log_csv(user, out, entry_filter)
        ),
        file_name="decision-log.csv",
        mime="text/csv",
        icon=":material/table:",
        on_click="ignore",
        width="stretch",
        help="Download all entries that match the filters.",
    )
    st.caption(f"To export everything without loss, run {command_markdown('masis db backup FILE')}")


def _write_to_memory(write: Callable[[BinaryIO], int]) -> io.BytesIO:
    out = io.BytesIO()
    write(out)
    return out


def _show_none_yet() -> None:
    st.markdown(
        "**Nothing has been decided yet.** An entry is added when somebody approves, overrides,"
        " rejects or escalates a case, and when the policy accepts an audit without issues. Entries"
        " are never changed: a new decision is a new entry. Each entry has a digest of the one"
        " before it."
    )
    st.page_link(
        "pages/queue.py",
        label="Open the cases that wait for a decision",
        icon=":material/checklist:",
        query_params={"state": "needs_review"},
    )


def _remember_check(head: str) -> None:
    st.session_state["log-checked"] = head


def _turn_order() -> None:
    address.set_param("order", "" if address.value("order") == "oldest" else "oldest")
    address.set_param("page", "")

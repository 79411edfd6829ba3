"""The metrics page: results of audits, decisions of people, accuracy, cost, and how audits ran."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, date, datetime, timedelta
from functools import partial
from typing import Any, get_args

import streamlit as st

from masis.audit.measures.metrics import REPORT_METRICS, ReportMetric
from masis.datasets.writers.metrics import metrics_csv
from masis.schema.review import Standing
from masis.schema.wording import count_noun, shorten
from masis.services import Workbench
from masis.services.records import (
    STATE_OF_VERDICT,
    Bin,
    CaseFilter,
    CaseSummary,
    DecisionFilter,
    Facets,
    MeasuredRun,
    MeasureFilter,
    MetricsReport,
    Period,
    Pick,
)
from masis.services.trust.service import ReviewerStats, TrustFilter
from masis.services.trust.summary import IN_VIEW, agreement_summary, figure_text, interval_text
from masis.settings import ROLES, Role
from masis.ui.components.linked_table import (
    LinkedFigure,
    LinkedRow,
    TableCell,
    TableColumn,
    column,
    linked_table,
    row,
)
from masis.ui.metrics.pictures import draw_pictures
from masis.ui.metrics.sections import (
    FILTERS,
    PICKED,
    draw_figures,
    draw_group_tables,
    draw_topic,
    has_short_log,
    shows_tables,
)
from masis.ui.queue.overview import draw_standing_counts
from masis.ui.shell import address
from masis.ui.shell.address import link
from masis.ui.shell.reviewer import actor
from masis.ui.shell.served_database import served_database, served_workbench
from masis.views.comparison import models_words
from masis.views.metrics import (
    bin_text,
    has_replayed,
    period_bounds,
    period_name,
    unmet_needs,
)
from masis.views.numbers import duration, in_unit, moment, number, percent
from masis.views.words import (
    DECIDED,
    FLAG,
    ISSUES,
    MACHINE_HIDDEN,
    RECORDED,
    STANDING,
    STATE,
    STOPPED,
    Word,
    label,
    model_words,
    status_label,
)

PERIODS: tuple[Period, ...] = get_args(Period)
RUNS_A_PAGE = 20
SPREAD_OVER = 5_000
"""Most audits in a distribution, because sorting the figures of all audits takes too long."""
SPANS = {"7": "7 days", "30": "30 days", "90": "90 days", "": "All"}
LONGEST_FAILURE = 600
"""Longest reason of a failed step in characters."""
LISTED: tuple[Standing, ...] = tuple(standing for standing in STANDING if standing != "planted")
"""Statuses of counted cases. Copies with a planted fault aren't counted once they are decided."""


def run_table(
    runs: Sequence[MeasuredRun], metric: ReportMetric | None, cases: Mapping[str, CaseSummary]
) -> tuple[list[TableColumn], list[LinkedRow]]:
    """Return the runs behind a metric as a table; each links to its run unless that was removed.

    Unless it's a share, ``metric`` is one of the columns. Columns and marks that are equal for all
    runs are left out. ``cases`` holds the current cases by id.
    """
    signs = [mark for mark in _RUN_MARKS if len({bool(getattr(run, mark[1])) for run in runs}) > 1]
    columns: list[tuple[TableColumn, Callable[[MeasuredRun], Any]]] = [
        (column("Question", "main"), partial(_question_cell, cases, signs)),
        (column("Finished", "figure", hide="hide-narrow"), lambda run: moment(run.finished_at)),
        *(
            [(column(metric.label, "figure"), lambda run: in_unit(metric.unit)(run.value))]
            if metric and metric.unit != "share"
            else []
        ),
        (column("Quality", "figure"), lambda run: number(run.quality)),
        (column("Status now", "pills"), partial(_status_cell, cases)),
    ]
    stopped = {str(code): words for code, words in STOPPED.items()}
    varying: list[tuple[TableColumn, Callable[[MeasuredRun], Any]]] = [
        (column("Iterations", "figure", hide="hide-medium"), lambda run: run.iterations),
        (
            column("Time", "figure", hide="hide-medium"),
            lambda run: None if has_replayed(run.models.values()) else duration(run.loop_ms),
        ),
        (column("Judged by", hide="hide-narrow"), lambda run: models_words(run.models)),
        (
            column("End reason", hide="hide-medium"),
            lambda run: stopped.get(run.termination or "", run.termination),
        ),
    ]
    columns += [(title, value) for title, value in varying if len({value(run) for run in runs}) > 1]
    return [title for title, _ in columns], [
        row(
            *(value(run) for _, value in columns),
            open=run.run_id if run.case_id is not None else None,
        )
        for run in runs
    ]


def _status_cell(cases: Mapping[str, CaseSummary], run: MeasuredRun) -> TableCell:
    if (case := cases.get(run.case_id or "")) is None:
        return {}
    word, more = status_label(case.standing, case.state, case.severity)
    return {"pills": [label(word)], "below": [more]}


def _question_cell(
    cases: Mapping[str, CaseSummary], marks: Sequence[tuple[Word, str]], run: MeasuredRun
) -> TableCell:
    signs = [label(word) for word, holds in marks if getattr(run, holds)]
    if run.case_id is None:
        return {"pills": signs, "below": ["The run was removed; its metrics are still stored."]}
    href = link("review", case=run.case_id, run=run.run_id)
    case = cases.get(run.case_id)
    headline = (
        case.headline.partition("\n")[0]
        if case and case.headline and case.run_id == run.run_id
        else ""
    )
    return {
        "text": run.query or "",
        "href": href,
        "open": run.run_id,
        "pills": signs,
        "quote": headline,
    }


_FABRICATED = REPORT_METRICS["hallucination"]
_RUN_MARKS: tuple[tuple[Word, str], ...] = (
    (
        Word(_FABRICATED.label.lower(), "bad", _FABRICATED.meaning),
        "hallucination",
    ),
    (Word("needed review", "warn", REPORT_METRICS["needs_review"].meaning), "needs_review"),
)


def picked_words(pick: Pick, period: Period, at: str, of: str) -> str:
    """Describe in one line which runs are listed."""
    title = "Audits"
    if metric := REPORT_METRICS.get(pick.metric or ""):
        values = bin_text(Bin(low=pick.above, high=pick.most, count=0), in_unit(metric.unit))
        title = f"Audits with {metric.label[0].lower()}{metric.label[1:]}: {values}"
        if metric.unit == "share":
            title = metric.listed or f"Audits: {metric.label}"
    return ", ".join(part for part in (title, period_name(period, at) if at else "", of) if part)


def show_metrics(workbench: Workbench) -> None:
    """Draw the metrics of finished audits, and the runs behind one if the address names it."""
    span = workbench.metrics.span()
    if span is None:
        st.title("Metrics")
        st.markdown(
            "**No audit has finished yet.** This page will show the results of audits, people's"
            " decisions and their speed, how often the audit was right, and the cost."
        )
        st.page_link("pages/new.py", label="Audit an answer", icon=":material/add_circle:")
        return
    blind = workbench.cases.hides_machine_from(actor())
    if workbench.cases.hides_figures_from(actor()):
        st.title("Metrics")
        st.markdown(f":material/visibility_off: {MACHINE_HIDDEN}")
        st.markdown("These figures cover all audits, including those of cases you haven't decided.")
        st.page_link("pages/queue.py", label="Cases to decide", icon=":material/checklist:")
        return
    _draw_metric_controls(workbench, span)
    measure_filter = metrics_filter()
    newest = workbench.metrics.newest()
    # The filter is passed as JSON, which Streamlit can hash for the key of its cache.
    report = _metrics_report(
        str(served_database()),
        newest,
        measure_filter.model_dump_json(),
        chosen_period(),
        tuple(REPORT_METRICS.values()),
    )
    if not report.total.runs:
        st.markdown("**No audit matches.** Choose a longer time, or fewer filters.")
        st.button("Clear filters", on_click=address.clear, args=(FILTERS,))
        return
    if blind:
        st.caption(
            ":material/visibility_off: You see figures over all cases as a lead. The audits behind"
            " them aren't listed while there are cases left to decide, because the queue's policy"
            " hides their results from you."
        )
    elif address.value("show"):
        _draw_runs(workbench, measure_filter)
    facets = workbench.cases.facets_for(actor())
    if not shows_tables():
        draw_pictures(workbench, report, measure_filter, facets)
    _draw_answer_figures(workbench, report, facets)
    if shows_tables():
        draw_group_tables(report)
    _draw_people_figures(workbench, facets)
    st.header("Cost", anchor=False)
    models = [model.name for model in report.models]
    if report.total.values["calls"]:
        draw_topic(report, "cost", "These audits")
    else:
        judged = f"by {RECORDED}" if has_replayed(models) else "offline"
        st.markdown(f"Nothing: no model was called. The answers were checked {judged}, at no cost.")
    internals = st.expander(
        "How the audits ran: times, iterations, scores",
        key="metrics-run",
        on_change="rerun",
    )
    if internals.open:  # its charts would take most of the page's time, so draw them on demand
        with internals:
            if has_replayed(models) and "time" not in unmet_needs(report):
                st.caption("Some replies are recorded, so no model time was measured.")
            draw_topic(report, "machine", "Audits")
    st.download_button(
        "Download the numbers (CSV)",
        metrics_csv(report),
        file_name="metrics.csv",
        mime="text/csv",
        key="metrics-csv",
        icon=":material/download:",
        on_click="ignore",
    )
    st.caption("Times are UTC. On the command line, `masis metrics` prints the same.")


def _widget_binding(name: str) -> dict[str, Any]:
    """Return the arguments that bind a filter's widget.

    Changing the filter closes the list of runs.
    """
    return {
        "key": f"metrics-{name}",
        "drops": tuple(parameter for parameter in PICKED if parameter != name),
    }


def metrics_filter() -> MeasureFilter:
    """Return the filter of runs in the address."""
    since, until = address.day("since"), address.day("until")
    return MeasureFilter(
        since=since.isoformat() if since else None,
        # There is no day after date.max.
        until=(until + timedelta(days=1)).isoformat() if until and until < date.max else None,
        role=_role_in_address(),
        models=tuple(address.words("model")),
        datasets=tuple(address.words("dataset")),
    )


def chosen_period() -> Period:
    """Return the period in the address, by default a week."""
    return address.one_of("by", PERIODS, "week")


def _role_in_address() -> Role:
    return address.one_of("role", ROLES, "critic")


def pick_in_address() -> Pick:
    """Return which of the matching runs the address lists; an unknown figure lists all."""
    show = address.value("show")
    if show in REPORT_METRICS:
        return Pick(metric=show, above=_number_in_address("above"), most=_number_in_address("most"))
    return Pick()


def _number_in_address(name: str) -> float | None:
    text = address.value(name)
    try:
        parsed = float(text) if len(text) < 24 else None
    except ValueError:
        return None
    # Also None for NaN, which compares as false.
    return parsed if parsed is not None and abs(parsed) < 1e15 else None


@st.cache_data(show_spinner=False, max_entries=50)
def _metrics_report(
    path: str, newest: int, filter_json: str, period: Period, metrics: tuple[ReportMetric, ...]
) -> MetricsReport:
    """Return the metrics, recomputed only after another run has finished or the table changed."""
    parsed_filter = MeasureFilter.model_validate_json(filter_json)
    return served_workbench().metrics.report(parsed_filter, period, newest=SPREAD_OVER)


# --- The sections of the page


def _draw_metric_controls(workbench: Workbench, span: tuple[str, str]) -> None:
    with st.container(
        horizontal=True, vertical_alignment="center", gap="small", key="metrics-head"
    ):
        st.title("Metrics", width="content")
        # On every run, because the dates in the drawer change the span too.
        st.session_state["metrics-span"] = _period_in_address()
        st.segmented_control(
            "Time",
            list(SPANS),
            key="metrics-span",
            format_func=SPANS.__getitem__,
            on_change=_choose_span,
            label_visibility="collapsed",
        )
        first, last = span
        if first[:10] != last[:10]:  # with a single day all periods are the same
            st.segmented_control(
                "Period",
                PERIODS,
                format_func=lambda period: f"By {period}",
                required=True,
                label_visibility="collapsed",
                **address.bind_query_param(
                    "by", "week", shows=chosen_period(), **_widget_binding("by")
                ),
            )
        st.segmented_control(
            "Show as",
            ("charts", "tables"),
            format_func=str.capitalize,
            required=True,
            label_visibility="collapsed",
            **address.bind_query_param(
                "as",
                "charts",
                shows="tables" if shows_tables() else "charts",
                **_widget_binding("as"),
            ),
        )
        # without "by" and "as", which exclude no audit
        used = sum(bool(address.value(name)) for name in FILTERS[2:])
        # The label holds the number of filters, and a new label makes a new popover, which would
        # close at each choice.
        st.session_state["metrics-filters"] = st.session_state.get("metrics-filters", False)
        drawer = st.popover(
            f"Filters ({used})" if used else "Filters",
            icon=":material/filter_list:",
            key="metrics-filters",
            on_change="rerun",
        )
        if drawer.open:  # the names of models and data sets are counted over all audits
            with drawer:
                for name, title in (("since", "From"), ("until", "To")):
                    keeps = address.bind_query_param(
                        name, shows=address.day(name), drawer=True, **_widget_binding(name)
                    )
                    st.date_input(title, format="YYYY-MM-DD", **keeps)
                keeps = address.bind_query_param(
                    "role",
                    "critic",
                    shows=_role_in_address(),
                    drawer=True,
                    **_widget_binding("role"),
                )
                st.selectbox("Role", ROLES, format_func=str.capitalize, **keeps)
                models, datasets = (
                    workbench.metrics.count_names(role_or_dataset)
                    for role_or_dataset in (_role_in_address(), "dataset")
                )
                address.choose_several(
                    "Model", "model", models, model_words, **_widget_binding("model")
                )
                address.choose_several(
                    "Data set", "dataset", datasets, **_widget_binding("dataset")
                )
        st.page_link(
            "pages/trust.py",
            label="Trust: how reliable the audit is",
            icon=":material/verified:",
        )


def _period_in_address() -> str | None:
    since, until = address.day("since"), address.day("until")
    if since is None and until is None:
        return ""
    days = (datetime.now(UTC).date() - since).days + 1 if since and until is None else 0
    return str(days) if str(days) in SPANS else None


def _choose_span() -> None:
    days = st.session_state["metrics-span"] or ""
    since = datetime.now(UTC).date() - timedelta(days=int(days) - 1) if days else None
    address.set_param("since", since.isoformat() if since else "")
    address.clear(("until", *PICKED))


def _draw_answer_figures(workbench: Workbench, report: MetricsReport, facets: Facets) -> None:
    """Draw the results of the audits, the kinds of issues, and the statuses of cases."""
    st.header(f"{count_noun(report.total.runs, 'audit')}: results", anchor=False)
    draw_topic(report, "answers", "Original answers")
    issues = sorted(((facets.flags.get(flag, 0), flag) for flag in ISSUES), reverse=True)
    audited = sum(facets.standings.values()) - facets.standings.get("not_audited", 0)
    description = "Kinds of issues in all audited cases, without the critic's own"
    if shows_tables() and issues[0][0]:
        figures = [
            LinkedFigure(
                FLAG[flag].text.capitalize(),
                f"{percent(count / audited, whole_from=0.01)} ({count:,} of {audited:,})",
                f"{FLAG[flag].meaning}." if FLAG[flag].meaning else "",
                "queue",
                {"flag": flag, "standing": ",".join(LISTED)},
                count / audited,
            )
            for count, flag in issues
            if count
        ]
        draw_figures(figures, key="issues", description=description)
    if failed := facets.flags.get("error", 0):
        _draw_failures(workbench, failed, audited)
    if not shows_tables():
        return
    st.markdown("**Current status of all cases.** Each case is counted once.")
    adjudications = workbench.team.adjudications(actor())
    draw_standing_counts(
        facets.standings, facets.states, adjudications=adjudications, minor=facets.minor
    )


def _draw_failures(workbench: Workbench, failed: int, audited: int) -> None:
    """Say in how many audits a step failed, and show the newest reason that the user may see."""
    st.page_link(
        "pages/queue.py",
        label=(
            f"A step of the audit failed in {failed:,} of {audited:,} cases, which says nothing"
            " about their answers"
        ),
        icon=":material/warning:",
        query_params={"flag": "error", "standing": ",".join(LISTED)},
    )
    case_filter = CaseFilter(flags=("error",), standings=LISTED, order="newest", size=1)
    newest = next(iter(workbench.cases.find_for(actor(), case_filter).rows), None)
    run = workbench.cases.open_for(actor(), newest.id).run if newest else None
    if run is not None and run.warnings:
        last = run.warnings[-1]
        with st.expander(f"Newest failure: the {last.step}", key="metrics-failure"):
            st.text(shorten(last.message, LONGEST_FAILURE))


def _draw_people_figures(workbench: Workbench, facets: Facets) -> None:
    """Draw people's decisions, their speed, and how often the audit's flags were right."""
    me, length = actor(), workbench.store.decisions.head().length
    st.header("Decisions", anchor=False)
    if not has_short_log(workbench) and not st.toggle(
        f"Read all {length:,} entries of the decision log",
        key="metrics-people-read",
        help="It takes a second or two.",
    ):
        return
    work = workbench.trust.team_stats(me)
    if not work.decisions:
        st.caption(
            "Nobody has decided a case yet. The number of decisions per day and their time will be"
            " shown here."
        )
        return
    days = count_noun(round(work.decisions / (work.a_day or 1)), "day")
    (my_stats,) = workbench.trust.reviewers(me)
    whose, (yours, *details) = (
        workbench.trust.counts_in_words(me),
        _own_figures(workbench, my_stats),
    )
    alone = my_stats.decisions == work.decisions and not whose
    show_each = not alone and workbench.access.allows(me, "oversee")
    settled = {state: facets.states.get(state, 0) for state in STATE_OF_VERDICT.values()}
    adjudications = LinkedFigure(
        "Adjudications",
        f"{work.adjudications:,}",
        f"{work.adjudications - work.escalations:,} settled a case on which reviewers differed,"
        f" {work.escalations:,} escalated it; median time {work.median_adjudication_time}. They're"
        " counted separately from decisions. The log also lists adjudications that were undone"
        " later.",
        "decisions",
        {"kind": "adjudication"},
    )
    figures = [
        (
            yours
            if alone
            else LinkedFigure(
                "Decisions", f"{work.decisions:,}", whose, "decisions", {"kind": "decision"}
            )
        ),
        LinkedFigure("Decisions per day", number(work.a_day), f"Mean of {days} with decisions."),
        LinkedFigure(
            "Time per decision",
            work.median_time,
            _TIME_MEANING + (" The Team page shows each person's." if show_each else ""),
            "team" if show_each else "",
        ),
        *(details if alone else ()),
        *([adjudications] if work.adjudications else []),
        *(
            LinkedFigure(
                f"Cases {STATE[state].text.lower()}",
                f"{count:,} of {sum(settled.values()):,}",
                f"{STATE[state].meaning}.",
                "queue",
                {"state": state, "standing": "decided,waits"},
                count / sum(settled.values()),
            )
            for state, count in settled.items()
            if count
        ),
    ]
    description = "Your decisions; nobody else has decided" if alone else "Decisions"
    draw_figures(figures, key="metrics-people", description=description)
    if my_stats.decisions and not alone:
        figures = [
            yours,
            LinkedFigure("Your time per decision", my_stats.median_time, _TIME_MEANING),
            *details,
        ]
        draw_figures(figures, key="metrics-own", description="Your own decisions")
    st.header("Accuracy of the audit", anchor=False)
    st.caption("Choose a figure to see its cases on Trust.")
    report = workbench.trust.compare(me, TrustFilter())
    compared, seen, how = report.answers, {}, ""
    if not compared.n:
        st.markdown(agreement_summary(report))
        if report.seen is None or not report.seen.n:
            return
        compared, seen, how = report.seen, {"seen": "too"}, ", verdict visible"
        escalated = work.verdicts.get("escalate", 0)
        without = (
            f" ({count_noun(escalated, 'escalation')} left out, as it doesn't judge the answer)"
            if escalated
            else ""
        )
        answers = f"{count_noun(compared.n, 'answer')} decided with its verdict visible{without}."
        st.caption(f":material/warning: {answers} {IN_VIEW}")
    faulty, right = compared.confusion.get("nothing found", (0, 0))
    passed = (
        f"{faulty:,} of {faulty + right:,}"
        if faulty + right
        else "unknown: none was decided by a person"
    )
    caught, reads = (
        compared.recall,
        "Of the answers that people found faulty, the share that the audit had flagged.",
    )
    flagged, sure = figure_text(caught), interval_text(caught)
    if caught.value is not None and workbench.trust.miss_report(me).total.value is None:
        flagged = (
            f"{round(caught.value * caught.n):,} of {caught.n:,} among the cases people chose to"
            " decide"
        )
        sure = (
            "That says nothing about faulty answers that nobody picked for review. Random spot"
            " checks of passed answers would show how many the audit misses, but none has been"
            " decided."
        )
    draw_figures(
        [
            LinkedFigure(
                f"Flags that were right{how}",
                figure_text(compared.precision),
                f"Of the answers with “{STANDING['wrong'].text}” that people chose to decide, the"
                " share that they found faulty; the rest were false alarms."
                f" {interval_text(compared.precision)}",
                "trust",
                {**seen, "list": "must_look"},
            ),
            LinkedFigure(
                f"Faulty answers flagged{how}",
                flagged,
                f"{reads} {sure}",
                "trust",
                {**seen, "list": "faulty"},
            ),
            LinkedFigure(
                f"Passed answers that are faulty{how}",
                passed,
                "Of the answers in which the audit found nothing but that a person still decided.",
                "trust" if faulty + right else "",
                {**seen, "list": "nothing found"},
            ),
        ],
        key="metrics-right",
        description="Compared with people",
    )


def _own_figures(workbench: Workbench, stats: ReviewerStats) -> list[LinkedFigure]:
    """Return the user's own decisions, and how many of them have labels or were undone."""
    mine = {"reviewer": address.in_words([stats.reviewer])}
    undone = workbench.reviews.entries(
        DecisionFilter(kinds=("undo",), reviewers=(stats.reviewer,), size=1)
    ).total
    verdicts = [
        f"{stats.verdicts[verdict]:,} {word.text.lower()}"
        for verdict, word in DECIDED.items()
        if stats.verdicts.get(verdict)
    ]
    if stats.verdicts.get("escalate"):
        verdicts[-1] += ", which leaves its case open"
    figures = [
        LinkedFigure(
            "You decided",
            f"{stats.decisions:,}",
            f"{' · '.join(verdicts)}.",
            "decisions",
            mine | {"kind": "decision"},
        )
    ]
    if stats.labelled:
        reads = "Of your decisions, those with labels on single claims, references or words."
        figures.append(
            LinkedFigure("With labels", f"{stats.labelled:,} of {stats.decisions:,}", reads)
        )
    if undone:
        reads = "Decisions that you undid; they no longer count."
        figures.append(
            LinkedFigure("Undone", f"{undone:,}", reads, "decisions", mine | {"kind": "undo"})
        )
    return figures


_TIME_MEANING = (
    "Median from opening the case to the decision. Only decisions made on the pages have a time."
)


def _draw_runs(workbench: Workbench, measure_filter: MeasureFilter) -> None:
    """List the runs behind a metric."""
    picked, period, first_day, model = (
        pick_in_address(),
        chosen_period(),
        address.value("at"),
        address.value("of")[: address.LONGEST_WORD],
    )
    if bounds := period_bounds(period, first_day) if first_day else None:
        since, until = (bound.isoformat() for bound in bounds)
        narrower = {
            "since": max(since, measure_filter.since or since),
            "until": min(until, measure_filter.until or until),
        }
        measure_filter = measure_filter.model_copy(update=narrower)
    if model:
        measure_filter = measure_filter.model_copy(update={"models": (model,)})
    page = workbench.metrics.find_runs(
        measure_filter, picked, page=address.number("page"), size=RUNS_A_PAGE
    )
    with st.container(border=True, key="metrics-listed"):
        with st.container(
            horizontal=True, horizontal_alignment="distribute", vertical_alignment="center"
        ):
            title = picked_words(picked, period, first_day if bounds else "", model)
            st.text(f"{title}: {page.total:,}", width="content")
            st.button(
                "Close",
                icon=":material/close:",
                key="close-runs",
                on_click=address.clear,
                args=(PICKED,),
            )
        if not page.total:
            st.caption("This list has no audits.")
            return
        case_ids = {run.case_id for run in page.rows if run.case_id is not None}
        cases = {case_id: workbench.cases.summary(case_id) for case_id in case_ids}
        columns, rows = run_table(page.rows, REPORT_METRICS.get(picked.metric or ""), cases)
        opened = linked_table(
            columns, rows, description="Audits behind the metric", key="metrics-runs"
        )
        if run := next((run for run in page.rows if opened and run.run_id == opened), None):
            st.switch_page(
                "pages/review.py", query_params={"case": run.case_id or "", "run": run.run_id}
            )
        address.show_pages(page.total, RUNS_A_PAGE, key="runs-page")

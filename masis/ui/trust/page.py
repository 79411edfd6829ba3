"""The trust page: how far you can rely on the audit, with the cases behind each figure."""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal, NamedTuple, cast, get_args

import pandas as pd
import streamlit as st

from masis.audit.measures.statistics import exact_bounds
from masis.datasets.writers.lines import frame_csv
from masis.errors import MasisError
from masis.schema.wording import count_noun
from masis.services import Workbench
from masis.services.trust.guarantees import GuaranteeWatch
from masis.services.trust.service import (
    MOST_LEFT_OUT,
    MachineReport,
    MissReport,
    PartReport,
    PeopleReport,
    PlanState,
    ReviewerStats,
    TrustFilter,
    YieldReport,
)
from masis.services.trust.summary import (
    IN_VIEW,
    UPHELD,
    agreement_base_text,
    agreement_text,
    figure_text,
    interval_text,
    missing_answers_text,
    short_answers,
    simulated_text,
)
from masis.trust.agreement import AgreementEstimate
from masis.trust.guarantee import draws_needed, least_tolerance
from masis.trust.machine import MachineComparison, draws_for_width
from masis.trust.score import LEAST_DECISIONS, LEAST_OF_EACH, LEAST_ORDERED
from masis.ui.components.charts import draw_chart
from masis.ui.components.linked_table import (
    LinkedFigure,
    LinkedRow,
    TableCell,
    TableColumn,
    column,
    figure_table,
    linked_table,
    row,
)
from masis.ui.shell import address
from masis.ui.shell.keys import open_at
from masis.ui.shell.permissions import button_state
from masis.ui.shell.reviewer import actor
from masis.ui.shell.served_database import served_database, served_workbench
from masis.ui.trust.charts import rate_over_time_chart, reliability_chart, yield_chart
from masis.ui.trust.planted import show_planted
from masis.views.markdown import escape_markdown
from masis.views.words import FLAG, REASON, RUN_FLAGS, Word, model_words

VIEWS = {
    "machine": "Agreement with reviewers",
    "people": "Agreement between reviewers",
    "missed": "Missed errors",
    "guarantee": "Guarantee",
    "next": "Review priorities",
    "own": "Reviewers",
    "planted": "Planted faults",
}
Part = Literal["claim", "reference"]
PARTS: tuple[Part, ...] = get_args(Part)
LEVELS = {"answer": "Answers", "claim": "Claims", "reference": "References"}
MOST_LISTED = 100
MOST_TOLERATED = 50.0
"""Largest tolerated share of faulty answers for a new sample, in percent."""
SOURCE_HINTS: dict[str, tuple[str, str, str, str, dict[str, str]]] = {
    "decision": (
        (
            "Only decisions made before the audit's verdict was shown count. The queue's policy"
            " sets when it is shown."
        ),
        *(
            *("team", "Team: set when audit results are shown", "group"),
            {"view": "policy", "field": "machine"},
        ),
    ),
    "gold": (
        "Only labels that were imported with audited cases count.",
        *("import", "Import cases with labels", "upload_file", {}),
    ),
}
"""Hints if there is nothing to compare with, by source, each with a link to another page."""


def show_trust(workbench: Workbench) -> None:
    """Draw the page: the short answers first, then the view in the address."""
    st.title("Trust")
    st.markdown(
        "How reliable the automatic audit is, measured by people's decisions. Choose a row to open"
        " its cases."
    )
    filters, key = trust_filter(), _cache_key(workbench)
    report, missed = _machine_report(*key, filters.model_dump_json()), _miss_report(*key)
    watch = workbench.trust.watch()
    blind = filters.model_copy(update={"blind_only": True})
    _draw_short_answers(
        report if filters.blind_only else _machine_report(*key, blind.model_dump_json()),
        missed,
        watch,
    )
    shown = address.one_of("view", VIEWS, "machine")
    st.segmented_control(
        "View",
        list(VIEWS),
        format_func=VIEWS.__getitem__,
        required=True,
        **_bind_trust_param("view", shown),
    )
    if any(map(address.value, ("view", "seen", "level", "source"))):
        open_at("trust-view")
    if shown == "machine":
        _show_machine(workbench, report, filters)
    elif shown == "people":
        _show_people(key)
    elif shown == "missed":
        _show_missed(missed)
    elif shown == "guarantee":
        _show_guarantee(workbench, watch)
    elif shown == "next":
        _show_next(workbench, _yield_report(*key))
    elif shown == "planted":
        show_planted(workbench)
    else:
        _show_reviewers(key)
    prints = "masis planted recall" if shown == "planted" else "masis trust"
    st.caption(
        f"On the command line, `{prints}` prints the same. docs/trust.md explains how each figure"
        " is computed."
    )


def trust_filter() -> TrustFilter:
    """Return the filter of answers in the address."""
    plain = {
        name: address.value(name)[: address.LONGEST_WORD]
        for name in ("auditor", "dataset", "field", "since", "until")
    }
    source: Literal["decision", "gold"] = (
        "gold" if address.value("source") == "gold" else "decision"
    )
    queue = address.queue()
    plain["queue"] = queue.id if queue else ""
    return TrustFilter(source=source, blind_only=address.value("seen") != "too", **plain)


# --- Reports, cached by the position of the log, so that each is computed once per change.


# The fields aren't read by the cached functions. They are arguments so that a change of the log, of
# the person or of what they may see makes a new entry.
class _CacheKey(NamedTuple):
    path: str
    position: str
    person: str
    hidden: bool


def _cache_key(workbench: Workbench) -> _CacheKey:
    me = actor()
    return _CacheKey(
        str(served_database()),
        workbench.trust.position(),
        me.name,
        workbench.cases.hides_machine_from(me),
    )


@st.cache_data(show_spinner=False, max_entries=40)
def _machine_report(
    path: str, position: str, person: str, hidden: bool, filters: str
) -> MachineReport:
    report = served_workbench().trust.compare(actor(), TrustFilter.model_validate_json(filters))
    columns = [
        name
        for name in ("case_id", "found", "faulty", "at", "flags", "reasons", "reviewer")
        if name in report.rows
    ]
    # cache_data stores a pickled copy, so columns that the page doesn't use are left out.
    return report._replace(rows=report.rows[columns])


@st.cache_data(show_spinner=False, max_entries=20)
def _miss_report(path: str, position: str, person: str, hidden: bool) -> MissReport:
    return served_workbench().trust.miss_report(actor())


@st.cache_data(show_spinner=False, max_entries=20)
def _people_report(
    path: str, position: str, person: str, hidden: bool, names: bool
) -> PeopleReport:
    return served_workbench().trust.people(actor(), names=names)


@st.cache_data(show_spinner=False, max_entries=20)
def _yield_report(path: str, position: str, person: str, hidden: bool) -> YieldReport:
    return served_workbench().trust.yield_report(actor())


@st.cache_data(show_spinner=False, max_entries=20)
def _cached_reviewer_stats(
    path: str, position: str, person: str, hidden: bool, others: bool
) -> list[ReviewerStats]:
    return served_workbench().trust.reviewers(actor(), others=others)


@st.cache_data(show_spinner=False, max_entries=20)
def _part_report(
    path: str, position: str, person: str, hidden: bool, level: Part, source: str
) -> PartReport:
    return served_workbench().trust.compare_parts(actor(), level, source)


# --- The sections.


def _draw_short_answers(
    report: MachineReport, missed: MissReport, watch: GuaranteeWatch | None
) -> None:
    if simulated := simulated_text(report.simulated, len(report.rows)):
        st.warning(simulated, icon=":material/science:")
    if watch is not None and watch.lapsed:
        st.error(
            "The guarantee has lapsed. It no longer waives any review.",
            icon=":material/gpp_bad:",
        )
    with st.container(border=True, key="trust-short"):
        columns = st.columns(2, gap="medium")
        for place, (question, answer) in enumerate(short_answers(report, missed, watch).items()):
            with columns[place % 2]:
                st.markdown(f"**{question}**")
                st.text(answer)


def _show_machine(workbench: Workbench, report: MachineReport, filters: TrustFilter) -> None:
    _draw_comparison_controls(workbench, filters)
    if part := next((level for level in PARTS if level == address.value("level")), None):
        parts = _part_report(*_cache_key(workbench), part, filters.source)
        _draw_comparison(parts.comparison, part, filters.source)
        _draw_chosen_cases(parts.rows)
        return
    filtered = [
        name for name in ("auditor", "dataset", "field", "since", "until") if address.value(name)
    ]
    if filtered:
        st.button(
            f"Clear filters ({', '.join(filtered)})",
            key="trust-clear",
            on_click=address.clear,
            args=(filtered,),
        )
    left = report.excluded
    if not filters.blind_only:
        st.warning(f"Includes decisions made with the audit's verdict visible. {IN_VIEW}")
        st.button(
            "Count blind decisions only",
            key="trust-blind",
            on_click=address.clear,
            args=(("seen", "list"),),
        )
    elif filters.source == "decision":
        st.caption(
            f"Left out: {count_noun(left.not_blind, 'answer')} decided with the audit's verdict"
            f" visible, which influences people; {left.escalated:,} escalated and not settled;"
            f" {left.unaudited:,} without an audit."
        )
    _draw_comparison(report.answers, "answer", filters.source)
    _draw_chosen_cases(report.rows)
    if len(report.answers.curve) > 1:
        _draw_calibration(report.answers)
    for by, title in (
        ("auditor", "model"),
        ("dataset", "data set"),
        ("field", "field"),
        ("month", "month"),
    ):
        # A single data set, field or month has the figures of the whole; a single model is shown
        # for its name.
        if len(report.breakdowns[by]) > (by != "auditor"):
            _draw_breakdown(workbench, report.breakdowns[by], by, title)
    if report.seen is not None:
        with st.expander(
            f"Decided with the verdict visible ({count_noun(report.seen.n, 'answer')})"
        ):
            st.caption(IN_VIEW)
            _draw_agreement_figures(report.seen, "seen")


def _draw_comparison_controls(workbench: Workbench, filters: TrustFilter) -> None:
    models = {name: _auditor_words(name, models) for name, models, _ in workbench.trust.auditors()}
    names = {"": "All models", **models}
    shown = filters.auditor if filters.auditor in names else ""
    # A horizontal container wraps on a narrow window.
    with st.container(horizontal=True, vertical_alignment="bottom"):
        st.segmented_control(
            "Compared with",
            ["decision", "gold"],
            format_func={"decision": "Decisions", "gold": "Labels"}.__getitem__,
            required=True,
            **_bind_trust_param("source", filters.source),
        )
        st.segmented_control(
            "Of",
            list(LEVELS),
            format_func=LEVELS.__getitem__,
            required=True,
            **_bind_trust_param("level", address.one_of("level", LEVELS, "answer")),
        )
        st.selectbox(
            "Audited by",
            list(names),
            format_func=names.__getitem__,
            width=280,
            **_bind_trust_param("auditor", shown),
        )
        if queues := {queue.id: queue.name for queue in workbench.queues.all(actor())}:
            named = {"": "All queues", **queues}
            st.selectbox(
                "Decided in",
                list(named),
                format_func=named.__getitem__,
                width=180,
                **_bind_trust_param("queue", filters.queue if filters.queue in named else ""),
            )
        for name, title in (("since", "From"), ("until", "Before")):
            st.text_input(
                title,
                placeholder="YYYY-MM-DD",
                width=140,
                **_bind_trust_param(name, address.value(name)),
            )
    if shown and (line := workbench.exams.line_for_auditor(shown)):
        st.text(f"{names[shown]} {line}.")


def _bind_trust_param(name: str, shows: str) -> dict[str, Any]:
    return address.bind_query_param(name, shows=shows, key=f"trust-{name}", drops=())


def _auditor_words(name: str, models: Mapping[str, str]) -> str:
    return (
        f"{', '.join(dict.fromkeys(model_words(model) for model in models.values()))} ({name[:6]})"
    )


def _draw_comparison(comparison: MachineComparison, level: str, source: str) -> None:
    if not comparison.n:
        counts, page, label, icon, to = SOURCE_HINTS[source]
        st.markdown(f"**No {level} to compare yet.** {counts}")
        st.page_link(f"pages/{page}.py", label=label, icon=f":material/{icon}:", query_params=to)
        return
    _draw_agreement_figures(comparison, level)
    left, right = st.columns([1, 1.4], gap="medium")
    leads = "Choose a row to list its cases."
    with left:
        st.markdown("**Audit results compared with people's verdicts**")
        st.caption(f"Escalated answers are left out. {leads}" if level == "answer" else leads)
        rows = [
            row(
                {"text": _audit_result_text(name) if level == "answer" else name},
                faulty,
                right_,
                open=name,
            )
            for name, (faulty, right_) in comparison.confusion.items()
        ]
        titles = [
            column("The audit", "main"),
            column("People: faulty", "figure"),
            column("People: right", "figure"),
        ]
        _draw_choice_table(
            "list", titles, rows, "Confusion of audit and people", f"trust-confusion-{level}"
        )
    with right:
        st.markdown("**Each flag and verdict**")
        st.caption(f"{BRACKETS} {leads}")
        # A flag of the original answer is often a reason of the run too, under another name with
        # the same figures, so duplicates are removed.
        same = {
            (_flag_text(flag.name), flag.flagged, flag.precision): flag
            for flag in reversed(comparison.flags)
        }
        flags = sorted(
            (flag for flag in same.values() if flag.name not in RUN_FLAGS),
            key=lambda flag: -flag.flagged,
        )
        titles = [
            column("Flag", "main"),
            column("Faulty, if flagged"),
            column("Flagged, if faulty"),
        ]
        rows = [
            row(
                {"text": _flag_text(flag.name)},
                figure_text(flag.precision, brief=True),
                figure_text(flag.recall, brief=True),
                open=f"flag:{flag.name}" if level == "answer" else flag.name,
            )
            for flag in flags
        ]
        _draw_choice_table(
            "list", titles, rows, "Precision and recall of each flag", f"trust-flags-{level}"
        )


def _draw_choice_table(
    name: str, columns: list[TableColumn], rows: list[LinkedRow], description: str, key: str
) -> None:
    """Draw a table whose rows choose the list below; the address stores the choice as ``name``."""
    if opened := linked_table(columns, rows, description=description, key=key):
        address.set_param(name, opened)
        st.rerun()


def _draw_agreement_figures(comparison: MachineComparison, key: str) -> None:
    """Draw the agreement between audit and people, each figure with an explanation."""
    constant = (
        ""
        if comparison.constant is None
        else f" Always giving the same verdict would agree in {comparison.constant:.0%}."
    )
    noun = f"{key if key in PARTS else 'answer'}s"
    flagged = f"Faulty {noun} flagged"
    shares = {
        "Found faulty by people": (
            comparison.faulty,
            f"Of the compared {noun}, the share that people found faulty.",
        ),
        "Flags that were right": (
            comparison.precision,
            f"Of the {noun} that the audit flags, the share that people found faulty.",
        ),
        flagged: (
            comparison.recall,
            f"Of the {noun} that people found faulty, the share that the audit flags.",
        ),
        "Agrees with people": (
            comparison.accuracy,
            f"Flagged and faulty, or not flagged and right.{constant}",
        ),
    }
    figures = [
        LinkedFigure(title, figure_text(share), f"{reads} {interval_text(share)}".rstrip())
        for title, (share, reads) in shares.items()
    ]
    figures.append(
        _agreement_figure(
            "Cohen's kappa", comparison.kappa, "Always giving the same verdict scores 0. "
        )
    )
    figure_table(figures, key=f"trust-figures-{key}", description="Audit and people compared")


def _agreement_figure(title: str, estimate: AgreementEstimate, more: str = "") -> LinkedFigure:
    """Return a coefficient of agreement with its interpretation."""
    return LinkedFigure(
        title,
        figure_text(estimate, share=False),
        f"{more}{agreement_text(estimate).capitalize()}; 1 is full agreement.",
    )


AUDIT_RESULTS = {
    "must_look": "Something is wrong",
    "not_certified": "Not confirmed, so a person reviews it",
    "nothing found": "Nothing found, so it can be accepted",
    "faulty": "Found faulty by people",
}
"""Labels for the results of audits and people."""

BRACKETS = "In brackets: the base, and the 95% confidence interval."

_WORDS: tuple[Mapping[str, Word], ...] = (cast("Mapping[str, Word]", REASON), FLAG)


def _audit_result_text(name: str) -> str:
    return AUDIT_RESULTS.get(name, name.capitalize())


def _flag_text(name: str) -> str:
    known = [words[name].text for words in _WORDS if name in words]
    return known[0] if known else name


def _draw_chosen_cases(rows: pd.DataFrame) -> None:
    """List the cases behind the chosen row: answers, or claims or references with one verdict.

    The row ``faulty`` lists everything that people found faulty, with the audit's result.
    """
    chosen = address.value("list")
    if not chosen or not len(rows):
        return
    flag = chosen.removeprefix("flag:")
    if chosen.startswith("flag:"):
        # The columns hold JSON lists as text. The quotation marks keep a name from matching a
        # longer one.
        lists = [
            rows[name].str.contains(f'"{flag}"', regex=False)
            for name in ("flags", "reasons")
            if name in rows
        ]
        chosen_rows = functools.reduce(operator.or_, lists, pd.Series(False, index=rows.index))
    else:
        chosen_rows = rows["faulty"].eq(True) if chosen == "faulty" else rows["found"] == chosen
    listed = rows[chosen_rows & rows["faulty"].notna()].sort_values("faulty", ascending=False)
    by_audit = chosen == "faulty"
    notes = (
        listed["found"].map(_audit_result_text)
        if by_audit
        else listed["faulty"].map({True: "faulty", False: "right"})
    )
    # The cases are below the tables, where a click would otherwise seem to do nothing.
    open_at("trust-cases")
    with st.container(key="trust-cases"):
        _draw_case_list(
            [str(case) for case in listed["case_id"]],
            f"{_flag_text(flag) if chosen != flag else _audit_result_text(chosen)}: the cases",
            notes=list(notes),
            noted="The audit" if by_audit else "People",
        )


def _draw_case_list(
    cases: Sequence[str], title: str, notes: Sequence[str] = (), noted: str = "People"
) -> None:
    """Draw a list of cases under a title, which is Markdown."""
    st.markdown(f"**{title}** ({len(cases):,})")
    shown = cases[:MOST_LISTED]
    questions = {case: served_workbench().store.cases.get(case).query for case in shown}
    cells: list[TableCell] = [
        {
            "text": questions[case],
            "href": address.link("review", case=case),
            "open": case,
            "below": [case],
        }
        for case in shown
    ]
    rows = [row(cell, *notes[n : n + 1], open=shown[n]) for n, cell in enumerate(cells)]
    columns = [column("Case", "main"), *([column(noted)] if notes else [])]
    opened = linked_table(columns, rows, description=title, key=f"cases-{title}")
    if opened in shown:
        address.open_case(str(opened))
    if len(cases) > MOST_LISTED:
        st.caption(f"The first {MOST_LISTED}; the download has all.")
    _draw_data_download(
        pd.DataFrame({"case": list(cases), **({noted.lower(): list(notes)} if notes else {})}),
        title,
    )


def _draw_calibration(comparison: MachineComparison) -> None:
    st.markdown("**Calibration of the probability of fault**")
    rows = [
        {
            **point._asdict(),
            **dict(
                zip(("low", "high"), exact_bounds(point.observed * point.n, point.n), strict=True)
            ),
        }
        for point in comparison.curve
    ]
    even = [{"predicted": 0, "observed": 0}, {"predicted": 1, "observed": 1}]
    draw_chart(
        reliability_chart,
        rows=rows,
        even=even,
        description="Observed against predicted share of faulty answers",
    )
    st.caption(
        "On the line, of the answers with a probability of 70%, people found 70% faulty. The"
        " average distance from the line (expected calibration error) is"
        f" {comparison.calibration or 0:.3f} over {comparison.n:,} answers. A perfectly calibrated"
        f" score would have up to {comparison.error_floor or 0:.3f} by chance. Bars are 95%"
        " intervals."
    )
    _draw_data_download(pd.DataFrame(rows), "calibration")


def _draw_breakdown(
    workbench: Workbench, comparisons: Mapping[str, MachineComparison], by: str, title: str
) -> None:
    st.markdown(f"**By {title}**")
    st.caption(f"{BRACKETS} Choose a row to see only its answers.")
    models = {name: _auditor_words(name, models) for name, models, _ in workbench.trust.auditors()}
    titles = [
        column(title.capitalize(), "main"),
        *map(
            column,
            ("Found faulty by people", "Flags that were right", "Faulty answers flagged", "Kappa"),
        ),
    ]
    rows = [
        row(
            {"text": models.get(name, name)},
            figure_text(comparison.faulty, brief=True),
            figure_text(comparison.precision, brief=True),
            figure_text(comparison.recall, brief=True),
            figure_text(comparison.kappa, share=False, brief=True),
            open=None if name == "(none)" else name,
        )
        for name, comparison in comparisons.items()
    ]
    if opened := linked_table(
        titles, rows, description=f"Audit and people compared by {title}", key=f"trust-by-{by}"
    ):
        if by == "month":
            year, month = int(opened[:4]), int(opened[5:7])
            address.set_param("since", f"{opened}-01")
            address.set_param("until", f"{year + month // 12}-{month % 12 + 1:02}-01")
        else:
            address.set_param(by, opened)
        st.rerun()


def _show_people(key: _CacheKey) -> None:
    names = served_workbench().trust.shows_names()
    if not names:
        st.caption(
            "Other reviewers are shown as Reviewer A, B and so on. While the queue's policy hides"
            " audit results, their names are hidden too until you ask for them."
        )
        names = st.toggle("Show the names of others", key="trust-names", **button_state("oversee"))
    report = _people_report(*key, names)
    overall = report.agreement
    if not overall.units:
        st.markdown(
            "**No cases with two decisions yet.** Set the number of reviewers per case in the"
            " team's policy."
        )
        st.page_link(
            "pages/team.py",
            label="Team: set the policy",
            icon=":material/group:",
            query_params={"view": "policy"},
        )
        return
    shares = ", ".join(f"{name} {value:.0%}" for name, value in overall.prevalence.items())
    cases = count_noun(overall.units, "settled case" if key.hidden else "case")
    st.caption(f"{cases} with two or more decisions: {shares}.")
    st.markdown(
        f"**Same verdict: {figure_text(overall.raw)}.** "
        f"{agreement_text(overall.alpha).capitalize()}."
    )
    st.caption(agreement_base_text(report.decisions, report.simulated))
    st.caption(
        "The figures compare verdicts. With the same verdict, corrections or approved answers may"
        " still differ."
    )
    for name, verdict, n in report.constant:
        st.text(
            f"{name} chose {verdict} in all {n:,} cases. Chance-corrected figures then have little"
            " meaning and may contradict each other."
        )
    figures = [
        LinkedFigure(
            "Same verdict",
            figure_text(overall.raw),
            f"Of the pairs of verdicts on a case. {interval_text(overall.raw)}",
        ),
        _agreement_figure(
            "Krippendorff's alpha", overall.alpha, "The usual figure, for any number of reviewers. "
        ),
        LinkedFigure(
            "Marked words (F1)",
            figure_text(report.spans, share=False),
            "How much the marked words overlap: 1 is identical, 0 has no words in common.",
        ),
    ]
    figure_table(figures, key="trust-agreement", description="Between reviewers")
    others = [
        _agreement_figure(
            "Ordinal alpha",
            overall.ordinal_alpha,
            "Approve and reject differ most; without escalations. ",
        ),
        _agreement_figure("Gwet's AC1", overall.ac1, "Meaningful even if one verdict is rare. "),
    ]
    with st.expander("Other coefficients of agreement"):
        figure_table(
            others, key="trust-agreement-others", description="Other coefficients of agreement"
        )
    st.markdown("**Reviewers in pairs**. Choose a row to list the cases they differ on.")
    titles = [
        column("Reviewers", "main"),
        column("Same verdict"),
        column("Same verdict and correction", "figure"),
        column("Kappa"),
        column("Weighted kappa"),
        column("Differ", "figure"),
    ]
    rows = [
        row(
            {"text": f"{pair.first} and {pair.second}", "open": str(number)},
            figure_text(pair.raw, brief=True),
            f"{pair.same - len(pair.apart):,} of {pair.raw.n:,}",
            figure_text(pair.kappa, share=False, brief=True),
            figure_text(pair.weighted, share=False, brief=True),
            len(pair.differ) + len(pair.apart),
            open=str(number),
        )
        for number, pair in enumerate(report.pairs, start=1)
    ]
    _draw_choice_table("pair", titles, rows, "Agreement of reviewers in pairs", "trust-pairs")
    number = address.number("pair", 0)
    if 1 <= number <= len(report.pairs):
        pair = report.pairs[number - 1]
        first, second = map(escape_markdown, (pair.first, pair.second))
        _draw_case_list(
            [report.cases[unit] for unit in (*pair.differ, *pair.apart)],
            f"Cases on which {first} and {second} differ",
            notes=[*["verdict"] * len(pair.differ), *["correction or answer"] * len(pair.apart)],
            noted="Differ in",
        )


def _show_missed(report: MissReport) -> None:
    st.markdown(
        "A random share of the accepted answers is still checked by a person. The results estimate"
        " how many faulty answers the audit misses."
    )
    if report.total.value is None and not report.open:
        count = sum(stratum.passed for stratum in report.strata)
        passed = count_noun(count, "answer") if report.strata else "Answers"
        st.markdown(
            f"**No spot checks yet.** {passed} passed without a person, so the miss rate can't be"
            " estimated. Set `spot_check_share` to draw answers when an audit ends, or draw a"
            " guarantee's sample from answers that are already audited."
        )
        with st.container(horizontal=True):
            st.page_link(
                "pages/settings.py", label="Settings: set the share", icon=":material/settings:"
            )
            st.page_link("pages/new.py", label="Audit more answers", icon=":material/add_circle:")
        return
    reads = (
        "Of the answers that passed without a person, the share that is faulty."
        f" {interval_text(report.total)}"
    )
    figure_table(
        [LinkedFigure("Miss rate", figure_text(report.total), reads)],
        key="trust-missed",
        description="Spot checks",
    )
    if report.total.why and report.total.value is not None:
        st.caption(report.total.why)
    if report.total.value is not None:
        width = (
            st.slider("Interval at most this wide (percentage points)", 1, 20, 5, key="trust-width")
            / 100
        )
        more = draws_for_width(report.total, width) or 0
        st.caption(
            f"At this rate, {count_noun(more, 'more decided spot check')} would narrow the interval"
            f" to {width:.0%}."
        )
    rows = [
        {"month": month, "rate": rate.value, "low": rate.low, "high": rate.high, "n": rate.n}
        for month, rate in report.months.items()
    ]
    if rows:
        draw_chart(rate_over_time_chart, rows=rows, description="Miss rate by month")
        _draw_data_download(pd.DataFrame(rows), "miss rate by month")
    table = [
        row({"text": name or "(no field)"}, figure_text(rate, brief=True))
        for name, rate in report.fields.items()
    ]
    if table:
        titles = [column("Field", "main"), column("Miss rate")]
        linked_table(titles, table, description="Miss rate by field", key="trust-fields")
    if report.faulty:
        _draw_case_list(report.faulty, "Faulty answers that passed")
    if report.open:
        _draw_case_list(report.open, "Undecided spot checks")


def _show_guarantee(workbench: Workbench, watch: GuaranteeWatch | None) -> None:
    st.markdown(
        "Choose the share of faulty answers that you tolerate among the auto-accepted ones, and the"
        " confidence level. A random sample, decided blind, then shows which answers can be"
        " accepted. Answers with a serious issue are never accepted."
    )
    if watch is not None:
        applied = watch.guarantee
        st.markdown(
            f"**Guarantee {applied.plan}**, applied by {escape_markdown(watch.by)} on"
            f" {watch.at[:10]}"
        )
        st.text(
            f"Probability of fault up to {applied.threshold:.3f} (score"
            f" {applied.score.version or 'built in'}), auditor {applied.auditor}, rule"
            f" {applied.rule}. {applied.faulty} of {applied.decisions} blind draws were faulty:"
            f" risk at most {applied.upper:.2%}. {watch.lapsed or 'In force.'}"
        )
        if watch.cases:
            _draw_case_list(watch.cases, "Spot checks found faulty since")
        reason = st.text_input("Reason for ending it", key="guarantee-reason")
        st.button(
            "End the guarantee",
            on_click=_run_trust_action,
            args=(workbench.trust.end, reason),
            **button_state("oversee", disabled=not reason.strip()),
        )
    state = workbench.trust.plan()
    if state is not None:
        _show_sample_plan(workbench, state, watch)
    _draw_sample_form(workbench)
    if message := st.session_state.pop("trust-error", ""):
        st.error("The action failed, and nothing was changed.")
        st.text(message)


def _show_sample_plan(workbench: Workbench, state: PlanState, watch: GuaranteeWatch | None) -> None:
    plan, outcomes = state.plan, list(state.outcomes.values())
    st.markdown(f"**Sample {plan.version}**, drawn by {escape_markdown(plan.by)} on {plan.at[:10]}")
    st.text(
        f"{len(plan.case_ids):,} of {plan.pool:,} answers of auditor {plan.auditor};"
        f" {plan.tolerance:.1%} tolerated at {plan.certainty:.0%} confidence. {plan.left_out:,}"
        " other answers had already been decided and aren't covered."
    )
    if plan.left_out > MOST_LEFT_OUT * (plan.left_out + plan.pool):
        st.warning(
            "People decided many of this auditor's answers before the draw. If they picked the"
            " worst ones, later answers may be worse than the pool. The result only applies to the"
            " pool."
        )
    if state.lapsed:
        st.warning(f"This sample can't produce a guarantee: {state.lapsed}.")
    if state.tested is None:
        done = len(outcomes) - len(state.open)
        st.progress(
            done / len(outcomes),
            text=f"{done} of {len(outcomes)} decided. The test is run when all are decided.",
        )
        _draw_case_list(state.open, "Drawn answers that need a blind decision")
        return
    titles = [
        *map(column, ("Probability of fault up to", "Draws", "Faulty", "Risk at most", "Saves")),
        column("", "main"),
    ]
    rows = [
        row(
            f"{test.threshold:.3f}",
            test.n,
            test.faulty,
            f"{test.upper:.2%}",
            plan.waiting[n],
            "holds" if test.holds else "not shown",
        )
        for n, test in enumerate(state.tested)
    ]
    linked_table(titles, rows, description="Thresholds tested, strictest first", key="trust-tested")
    try:
        proposed = workbench.trust.propose_guarantee()
    except MasisError as error:
        st.text(str(error))
        return
    if watch is None or watch.guarantee.plan != plan.version:
        label = f"Apply: {count_noun(proposed.saved, 'answer')} that need review would pass"
        st.button(
            label,
            type="primary",
            key="guarantee-apply",
            on_click=_run_trust_action,
            args=(workbench.trust.apply,),
            **button_state("oversee"),
        )
        st.caption(
            "This adds an entry with your name to the decision log. To accept undecided answers,"
            " reassess them on the Health page."
        )


def _draw_sample_form(workbench: Workbench) -> None:
    auditors = {
        name: _auditor_words(name, models) for name, models, _ in workbench.trust.auditors()
    }
    if not auditors:
        st.markdown("**No audits yet.** Audit cases first, then draw a sample of their answers.")
        return
    with st.expander("Draw a new sample", expanded=workbench.trust.plan() is None):
        auditor = st.selectbox(
            "Auditor", list(auditors), format_func=auditors.__getitem__, key="sample-auditor"
        )
        if line := workbench.exams.line_for_auditor(auditor):
            st.text(f"It {line}. No threshold waives the exam.")
        tolerance_at, two, three = st.columns(3)
        tolerance = (
            tolerance_at.number_input(
                "Faulty tolerated (%)", 0.5, MOST_TOLERATED, 2.0, 0.5, key="sample-tolerance"
            )
            / 100
        )
        certainty = (
            two.number_input("Confidence level (%)", 50.0, 99.9, 95.0, 0.5, key="sample-certainty")
            / 100
        )
        offer = workbench.trust.offer(
            auditor, tolerance=round(tolerance, 6), certainty=round(certainty, 6)
        )
        # No number of draws can show anything once the allowed error is used up.
        if not offer.least:
            st.text(
                f"Earlier samples of this auditor used up the allowed error ({offer.spent:.1%})."
                " Choose a lower confidence level."
            )
            return
        # The key has the minimum, so that a new minimum makes a new field that starts with it.
        draws = three.number_input(
            "Draws", 1, 100_000, offer.least, key=f"sample-draws-{offer.least}"
        )
        one_fault = draws_needed(tolerance, 1 - certainty - offer.spent, 1)
        # The number of undecided answers reveals how many others have decided.
        hidden = workbench.team.hides_counts_from(actor())
        pool = (
            f"{offer.pool:,} undecided answers of this auditor can be covered, {offer.waiting:,} of"
            " them need review. "
        )
        needed = f"You need {offer.least} blind decisions if none is faulty, {one_fault} if one is."
        st.text(needed if hidden else pool + needed)
        missing = offer.pool < draws
        if missing:
            known = workbench.trust.drawable(actor(), auditor, int(draws))
            short = allow = ""
            if known < draws:  # else how many there are is hidden
                short, least = (
                    f": {missing_answers_text(known, int(draws))}",
                    least_tolerance(known, 1 - certainty - offer.spent),
                )
                if 100 * least <= MOST_TOLERATED:
                    allow = f": {known:,} without a fault show at most {least:.0%}"
            st.markdown(f"**Too few answers**{short}. Audit more cases, or tolerate more{allow}.")
        loosest = st.slider(
            "Accept up to this probability of fault", 0.0, 1.0, 1.0, 0.01, key="sample-loosest"
        )
        expected = (
            f" Up to {offer.expected:.2f}, half of the tolerated share is expected to be faulty."
        )
        st.caption(
            "Answers with a higher probability of fault aren't drawn and are never accepted. 1.00"
            f" includes all answers.{expected if offer.expected else ''}"
        )
        st.button(
            f"Draw {count_noun(int(draws), 'answer')} for blind decisions",
            key="sample-draw",
            on_click=_draw_sample,
            args=(
                workbench,
                auditor,
                int(draws),
                loosest,
                round(tolerance, 6),
                round(certainty, 6),
            ),
            **button_state("oversee", disabled=missing),
        )


def _draw_sample(
    workbench: Workbench,
    auditor: str,
    draws: int,
    loosest: float,
    tolerance: float,
    certainty: float,
) -> None:
    def drawn(person: Any) -> None:
        workbench.trust.draw(
            person, auditor, draws=draws, loosest=loosest, tolerance=tolerance, certainty=certainty
        )

    _run_trust_action(drawn)


def _run_trust_action(action: Callable[..., object], *arguments: object) -> None:
    try:
        action(actor(), *arguments)
    except MasisError as error:
        st.session_state["trust-error"] = str(error)


def _show_next(workbench: Workbench, report: YieldReport) -> None:
    score = workbench.trust.score()
    if score.version:
        st.text(
            f"The queue is ordered by score {score.version}, fitted by {score.by} on"
            f" {score.at[:10]} on {count_noun(score.decisions, 'decision')} ({score.faulty} faulty,"
            f" {score.simulated} simulated). On questions it had not seen: log loss"
            f" {score.log_loss or 0:.3f} (built-in order {score.built_in or 0:.3f}, one constant"
            f" {score.baseline or 0:.3f}), AUROC {score.auroc or 0:.2f}."
        )
    else:
        st.markdown("No score has been fitted, so the queue uses the built-in order.")
    few = report.n < LEAST_DECISIONS or min(report.faulty, report.n - report.faulty) < LEAST_OF_EACH
    st.button(
        "Fit the score on the decisions so far",
        key="score-fit",
        on_click=_run_trust_action,
        args=(workbench.trust.fit,),
        **button_state("oversee", disabled=few),
    )
    if few:
        st.caption(
            f"A score needs {LEAST_DECISIONS} settled decisions, {LEAST_OF_EACH} of them faulty and"
            f" as many right. There are {report.n:,}: {report.faulty:,} faulty and"
            f" {report.n - report.faulty:,} right."
        )
    if message := st.session_state.pop("trust-error", ""):
        st.text(message)
    if not report.curves:
        st.markdown(
            "**Too few decisions to compare the orders of the queue.** "
            f"{count_noun(report.n, 'answer is', 'answers are')} decided, {report.faulty:,} faulty"
            f" and {report.n - report.faulty:,} right. At least {LEAST_ORDERED} are needed, some of"
            " each kind."
        )
        return
    rows = [
        {"order": name, "read": read, "found": share}
        for name, curve in report.curves.items()
        for read, share in curve
    ]
    draw_chart(
        yield_chart,
        rows=rows,
        description="Faults found by cases read, for each order of the queue",
    )
    st.caption(
        f"{count_noun(report.n, 'decided answer')}, {report.faulty} faulty. The fitted order is"
        " measured on questions that it wasn't fitted on. Decided answers weren't selected at"
        " random, so the order that selected them looks better than it is."
    )
    _draw_data_download(pd.DataFrame(rows), "yield")


def _show_reviewers(key: _CacheKey) -> None:
    others = st.toggle("Show everyone", key="trust-everybody", **button_state("oversee"))
    titles = [
        column("Reviewer", "main"),
        *map(
            column,
            ("Decisions", "Time per decision", "Overrides", "Upheld", "With their correction"),
        ),
        *map(column, ("Adjudications", "Time per adjudication")),
    ]
    reviewers = _cached_reviewer_stats(*key, others)
    rows = [
        row(
            {"text": stats.reviewer or "(no name yet)"},
            stats.decisions,
            stats.median_time,
            figure_text(stats.overrides, brief=True),
            figure_text(stats.agreed, brief=True),
            f"{stats.whole:,} of {stats.with_answer:,}" if stats.with_answer else None,
            stats.adjudications,
            stats.median_adjudication_time if stats.adjudications else None,
            open=str(number) if stats.differing else None,
        )
        for number, stats in enumerate(reviewers, start=1)
    ]
    st.caption(
        f"Times are medians of the times recorded on the pages. {UPHELD} "
        f"{BRACKETS} Choose a row to list the cases that were settled differently."
    )
    _draw_choice_table("who", titles, rows, "Reviewers' own figures", "trust-own")
    number = address.number("who", 0)
    if 1 <= number <= len(reviewers) and (chosen := reviewers[number - 1]).differing:
        name = escape_markdown(chosen.reviewer)
        _draw_case_list(chosen.differing, f"Settled with a different verdict than {name}'s")


def _draw_data_download(frame: pd.DataFrame, name: str) -> None:
    st.download_button(
        f"Download as CSV: {name}",
        frame_csv(frame),
        file_name=f"trust-{name.lower().replace(' ', '-')[:60]}.csv",
        mime="text/csv",
        key=f"download-{name}",
        on_click="ignore",
    )

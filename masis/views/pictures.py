"""The pictures of the metrics page: rows in words that their tables show too, and charts of them.

Every row is a dict whose keys are titles of columns. A chart draws the same rows that the table and
the file hold, so they can't differ. ``link`` and ``order`` are for the chart only.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal, NamedTuple

import altair as alt

from masis.audit.measures.case_figures import (
    IssueCount,
    OriginCount,
    RevisionOutcome,
    StoppedCount,
    WeekOfWork,
)
from masis.audit.measures.metrics import MetricsReport, ReportMetric
from masis.audit.measures.statistics import wilson_bounds
from masis.schema.case import Severity
from masis.views.charts import GREY, ROWS
from masis.views.metrics import count_of, period_name
from masis.views.words import DECIDED, FLAG, SEVERITY, STANDING

Row = dict[str, Any]
HIDDEN = ("link", "order")
"""Keys of a row that its table doesn't show."""
AUDITED = ",".join(standing for standing in STANDING if standing not in ("planted", "not_audited"))
"""The statuses of audited cases, as the queue's address has them."""
FEW = 20
"""A share of fewer cases than this is drawn pale, because it may easily be chance."""

# Readable on both backgrounds of the theme.
_SEVERITY_COLORS = {"critical": "#b3261e", "high": "#d9731a", "medium": "#c9a227", "low": "#7a8086"}
_VERDICT_COLORS = {
    "approve": "#2e8b57",
    "override": "#3b7dd8",
    "reject": "#c8434a",
    "escalate": "#d9a11a",
    "accepted": "#8fb8a3",
}
NO_ISSUE = "no issue found"
BY_CRITIC = "Others, by the critic"
ACCEPTED = "Accepted by the policy"
REVISION_WORDS: dict[RevisionOutcome, str] = {
    "unchanged": "Taken unchanged",
    "edited": "Replaced by a person's correction",
    "original": "The original answer was approved",
    "rejected": "The answer was rejected",
    "escalated": "Escalated",
}


def standing_rows(standings: Mapping[str, int]) -> list[Row]:
    """Return how many cases have each status, as rows for ``bar_chart``."""
    return [
        {
            "Status": word.text,
            "Cases": standings[standing],
            "link": {"standing": standing},
            "order": place,
        }
        for place, (standing, word) in enumerate(STANDING.items())
        if standings.get(standing)
    ]


def issue_rows(counts: Iterable[IssueCount]) -> list[Row]:
    """Return the cases by kind of issue and severity, most cases first, for ``stacked_chart``."""
    cases: dict[str, dict[str, int]] = {}
    for count in counts:
        cases.setdefault(count.flag, dict.fromkeys(SEVERITY, 0))[count.severity] += count.cases
    ordered = sorted(cases, key=lambda flag: (-sum(cases[flag].values()), flag))
    return [
        {
            "Issue": FLAG[flag].text.capitalize() if flag in FLAG else BY_CRITIC,
            "Severity": severity,
            "Cases": cases[flag][severity],
            "link": {"flag": flag, "standing": AUDITED} if flag in FLAG else {},
            "order": place,
        }
        for flag in ordered
        for place, severity in enumerate(SEVERITY)
        if cases[flag][severity]
    ]


def stopped_rows(counts: Iterable[StoppedCount]) -> list[Row]:
    """Return the stopped answers by severity and verdict, most severe first."""
    order: dict[Severity | None, int] = {severity: place for place, severity in enumerate(SEVERITY)}
    order[None] = len(SEVERITY)
    return [
        {
            "Worst issue": count.severity or NO_ISSUE,
            "Verdict": DECIDED[count.verdict].text,
            "Cases": count.cases,
            "link": {
                "state": "rejected" if count.verdict == "reject" else "overridden",
                "standing": "decided",
                **({"severity": count.severity} if count.severity else {}),
            },
            "order": order[count.severity],
        }
        for count in sorted(counts, key=lambda count: (order[count.severity], count.verdict))
    ]


def revision_rows(outcomes: Mapping[RevisionOutcome, int]) -> list[Row]:
    """Return what became of suggested revisions, with intervals, for ``share_chart``."""
    total = sum(outcomes.values())
    return [
        _share_row({"Decision": words}, outcomes[outcome], total)
        for outcome, words in REVISION_WORDS.items()
        if outcomes.get(outcome)
    ]


def parts_of(rows: Iterable[Row], part: str) -> tuple[str, ...]:
    """Return the values of a column that occur, for the legend of a chart."""
    return tuple(dict.fromkeys(row[part] for row in rows))


def week_rows(weeks: Iterable[WeekOfWork]) -> list[Row]:
    """Return the decisions of each week by verdict, for ``weeks_chart``."""
    return [
        {
            "Week of": week.week,
            "Verdict": _verdict_text(verdict),
            "Cases": week.settled[verdict],
            "link": {"since": week.week, "until": week.last_day},
            "order": place,
        }
        for week in weeks
        for place, verdict in enumerate(_VERDICT_COLORS)
        if week.settled.get(verdict)
    ]


def backlog_rows(weeks: Iterable[WeekOfWork]) -> list[Row]:
    """Return how many cases arrived in each week and were open at its end."""
    return [{"Week of": week.week, "Arrived": week.arrived, "Open": week.open} for week in weeks]


def time_rows(weeks: Iterable[WeekOfWork]) -> list[Row]:
    """Return the median time of a decision in each week, in minutes, for ``line_chart``."""
    return [
        {"Week of": week.week, "Value": round(week.seconds / 60, 2)}
        for week in weeks
        if week.seconds is not None
    ]


def course_share_rows(report: MetricsReport, metric: ReportMetric) -> list[Row]:
    """Return a share by period with its interval, for ``course_share_chart``."""
    return [
        {"Period": group.name, "Name": period_name(report.period, group.name or "")}
        | _share_row({}, count_of(metric, group), group.known[metric.name])
        for group in report.periods
        if group.values[metric.name] is not None
    ]


def origin_rows(counts: Iterable[OriginCount], unnamed: str, parameter: str) -> list[Row]:
    """Return the share of answers in which something is wrong, by origin, for ``share_chart``.

    Args:
        counts: The cases by origin.
        unnamed: The name of cases that don't say where they come from.
        parameter: The parameter of the queue's address that filters by this origin.

    """
    rows = []
    for count in counts:
        row = _share_row({"Name": count.name or unnamed}, count.wrong, count.cases)
        link = {parameter: count.name, "standing": AUDITED} if count.name else {}
        rows.append(row | {"link": link})
    return rows


def mode_rows(counts: Iterable[tuple[str, str, int, int]]) -> list[Row]:
    """Return the share of cases with each failure mode, for ``share_chart``.

    ``counts`` has the name and code of each mode, the cases with it, and those examined.
    """
    return [
        _share_row({"Failure mode": name}, cases, base)
        | {"link": {"mode": code, "standing": AUDITED}}
        for name, code, cases, base in counts
    ]


def estimate_rows(
    estimates: Iterable[tuple[str, float | None, float | None, float | None, int]],
) -> list[Row]:
    """Return the known shares for ``share_chart``.

    ``estimates`` has the name of each share, its value, both ends of its 95% interval, and the
    number of cases.
    """
    return [
        {
            "Name": name,
            "Cases": round(share * of),
            "Of": of,
            "Share": share,
            "From": low,
            "To": high,
        }
        for name, share, low, high, of in estimates
        if share is not None
    ]


def agreement_rows(met_by_pair: Iterable[Mapping[tuple[int, ...], int]]) -> list[Row]:
    """Return how often each two verdicts of two reviewers on one case met, for ``heat_map``.

    ``met_by_pair`` counts the cases of each pair of reviewers by the numbers of both verdicts. Each
    pair of reviewers counts once for both orders, so the picture is symmetric. Its diagonal
    counts each case once.
    """
    met: dict[tuple[int, int], int] = {}
    for counts in met_by_pair:
        for both, count in counts.items():
            first, second = sorted(both[:2])
            met[first, second] = met.get((first, second), 0) + count
    words = [word.text for word in DECIDED.values()]
    return [
        {"One reviewer": words[one], "Another": words[other], "Cases": count}
        for (first, second), count in sorted(met.items())
        for one, other in sorted({(first, second), (second, first)})
    ]


class PictureTable(NamedTuple):
    """The table behind a picture: its titles, and its cells as they are written to a file."""

    titles: tuple[str, ...]
    rows: list[tuple[Any, ...]]


def table_of(rows: Sequence[Row]) -> PictureTable:
    """Return the rows of a picture as a table; the titles are those of the first row."""
    titles = tuple(title for title in rows[0] if title not in HIDDEN)
    return PictureTable(titles, [tuple(row.get(title) for title in titles) for row in rows])


def _verdict_text(verdict: str) -> str:
    return _VERDICT_TEXTS.get(verdict, ACCEPTED)


_VERDICT_TEXTS: dict[str, str] = {verdict: word.text for verdict, word in DECIDED.items()}


def _share_row(named: Row, hits: int, of: int) -> Row:
    """Return a share with its 95% Wilson interval."""
    low, high = wilson_bounds(hits, of)
    return named | {
        "Cases": hits,
        "Of": of,
        "Share": round(hits / of, 4) if of else None,
        "From": round(low, 4),
        "To": round(high, 4),
    }


# --- Charts

_NAMES = alt.Axis(
    labelFontSize=13, labelLimit=230, labelPadding=8, labelOverlap=False, ticks=False, domain=False
)
_COUNTS = alt.Axis(tickMinStep=1, format="~s", grid=False, tickCount=5)
_LEGEND = alt.Legend(orient="bottom", symbolSize=80, labelLimit=200, columns=3)
BAR = 30
"""Height of a bar with its gap in pixels."""
UNDER = 90
"""Height of an axis with a legend in pixels."""


def _selection_of(*fields: str) -> alt.Parameter:
    return alt.selection_point(name="picked", fields=list(fields), on="click", empty=False)


def bar_chart(title: str, bars: int) -> alt.TopLevelMixin:
    """Describe counts as horizontal bars with their numbers; each can be clicked."""
    drawn = alt.Chart(ROWS, height=BAR * bars + 20).encode(
        y=alt.Y(f"{title}:N", title=None, sort=None, axis=_NAMES),
        x=alt.X("Cases:Q", title=None, axis=None),
    )
    return alt.layer(
        drawn.mark_bar(cursor="pointer", size=18)
        .encode(tooltip=[f"{title}:N", alt.Tooltip("Cases:Q", format=",")])
        .add_params(_selection_of(title)),
        drawn.mark_text(align="left", dx=5, fontSize=13, color=GREY).encode(
            text=alt.Text("Cases:Q", format=",")
        ),
    )


def stacked_chart(
    title: str, part: Literal["Severity", "Verdict"], parts: tuple[str, ...], bars: int
) -> alt.TopLevelMixin:
    """Describe counts as horizontal bars divided by severity or verdict; each can be clicked.

    Args:
        title: The column that names the bars.
        part: The column that divides them.
        parts: The values of that column that occur, for the legend.
        bars: The number of bars.

    """
    drawn: alt.Chart = (
        alt.Chart(ROWS, height=BAR * bars + UNDER)
        .mark_bar(cursor="pointer", size=18)
        .encode(
            y=alt.Y(f"{title}:N", title=None, sort=None, axis=_NAMES),
            x=alt.X("Cases:Q", title=None, axis=_COUNTS, stack="zero"),
            color=_part_color(part, parts),
            order=alt.Order("order:Q"),
            tooltip=[f"{title}:N", f"{part}:N", alt.Tooltip("Cases:Q", format=",")],
        )
        .add_params(_selection_of(title, part))
    )
    return drawn


def weeks_chart(parts: tuple[str, ...]) -> alt.TopLevelMixin:
    """Describe the decisions of each week by verdict (``parts``) as bars, which can be clicked."""
    drawn: alt.Chart = (
        alt.Chart(ROWS, height=260)
        .mark_bar(cursor="pointer", size=_WIDTH)
        .encode(
            x=_WEEK,
            y=alt.Y("Cases:Q", title=None, axis=_COUNTS, stack="zero"),
            color=_part_color("Verdict", parts),
            order=alt.Order("order:Q"),
            tooltip=["Week of:N", "Verdict:N", alt.Tooltip("Cases:Q", format=",")],
        )
        .add_params(_selection_of("Week of"))
    )
    return drawn


def backlog_chart() -> alt.TopLevelMixin:
    """Describe arrivals as bars and open cases as a line, by week."""
    drawn = alt.Chart(ROWS, height=260).encode(
        x=_WEEK,
        tooltip=[
            "Week of:N",
            alt.Tooltip("Arrived:Q", format=","),
            alt.Tooltip("Open:Q", title="Open at its end", format=","),
        ],
    )
    open_cases = alt.Y("Open:Q", title=None, axis=_COUNTS)
    names = alt.Scale(domain=["Arrived", "Open at the end"], range=[GREY, "#d9731a"])
    color = alt.Color("what:N", title=None, scale=names, legend=_LEGEND)
    arrived = drawn.transform_calculate(what="'Arrived'")
    waiting = drawn.transform_calculate(what="'Open at the end'")
    return alt.layer(
        arrived.mark_bar(opacity=0.5, size=_WIDTH).encode(
            y=alt.Y("Arrived:Q", title=None, axis=_COUNTS), color=color
        ),
        waiting.mark_line(strokeWidth=2.5).encode(y=open_cases, color=color),
        waiting.mark_point(filled=True, size=50, opacity=1).encode(y=open_cases, color=color),
    )


def time_chart() -> alt.TopLevelMixin:
    """Describe the median minutes of a decision by week."""
    drawn = alt.Chart(ROWS, height=260).encode(
        x=_WEEK,
        y=alt.Y("Value:Q", title="Minutes", axis=alt.Axis(tickCount=4, grid=True)),
        tooltip=["Week of:N", alt.Tooltip("Value:Q", title="Minutes", format=".1f")],
    )
    return alt.layer(drawn.mark_line(), drawn.mark_point(filled=True, size=50, opacity=1))


def course_share_chart() -> alt.TopLevelMixin:
    """Describe a share by period, with whiskers for its 95% interval."""
    drawn = alt.Chart(ROWS, height=260).encode(
        x=alt.X(
            "utcyearmonthdate(Period):T",
            title=None,
            scale=alt.Scale(padding=14),
            axis=alt.Axis(format="%d %b %y", labelOverlap=True, tickCount=5, labelFlush=30),
        )
    )
    y = alt.Y("Share:Q", title=None, scale=alt.Scale(domain=[0, 1]), axis=_PERCENT)
    return alt.layer(
        drawn.mark_rule(color=GREY, strokeWidth=2).encode(
            y=alt.Y("From:Q", title=None, scale=alt.Scale(domain=[0, 1]), axis=_PERCENT),
            y2="To:Q",
        ),
        drawn.mark_line().encode(y=y),
        drawn.mark_point(filled=True, size=70, opacity=1, cursor="pointer")
        .encode(y=y, tooltip=["Name:N", *_SHARE_TOOLTIP])
        .add_params(_selection_of("Period")),
    )


def share_chart(title: str, bars: int) -> alt.TopLevelMixin:
    """Describe shares as bars with whiskers for their 95% intervals; shares of few are pale."""
    drawn = alt.Chart(ROWS, height=BAR * bars + 40).encode(
        y=alt.Y(f"{title}:N", title=None, sort=None, axis=_NAMES)
    )
    x = alt.X("Share:Q", title=None, scale=alt.Scale(domain=[0, 1]), axis=_PERCENT)
    return alt.layer(
        drawn.mark_bar(cursor="pointer", size=18)
        .encode(
            x=x,
            opacity=alt.condition(alt.datum.Of < FEW, alt.value(0.45), alt.value(1)),
            tooltip=[f"{title}:N", *_SHARE_TOOLTIP],
        )
        .add_params(_selection_of(title)),
        drawn.mark_rule(color=GREY, strokeWidth=2).encode(
            x=alt.X("From:Q", title=None, axis=_PERCENT), x2="To:Q"
        ),
    )


def heat_map(most: int) -> alt.TopLevelMixin:
    """Describe how often each two verdicts met, darker for more cases, of which ``most`` is the
    highest number.
    """
    words = [word.text for word in DECIDED.values()]
    drawn = alt.Chart(ROWS, height=alt.Step(44)).encode(
        x=alt.X(
            "One reviewer:N",
            sort=words,
            title="One reviewer",
            axis=alt.Axis(labelAngle=-30, labelOverlap=False),
        ),
        y=alt.Y("Another:N", sort=words, title="Another", axis=alt.Axis(labelLimit=140)),
        tooltip=["One reviewer:N", "Another:N", alt.Tooltip("Cases:Q", format=",")],
    )
    shade = alt.Color("Cases:Q", legend=None, scale=alt.Scale(range=["#cfe3e6", "#0b5c6b"]))
    light_text = alt.condition(alt.datum.Cases > most / 2, _WHITE, _BLACK)
    return alt.layer(
        drawn.mark_rect(cornerRadius=3).encode(color=shade),
        drawn.mark_text(fontSize=14).encode(text=alt.Text("Cases:Q", format=","), color=light_text),
    )


_WIDTH = alt.ExprRef("min(0.8 * bandwidth('x'), 40)")
_WHITE, _BLACK = alt.value("white"), alt.value("#1d2329")
_PERCENT = alt.Axis(
    format="%", values=[0, 0.25, 0.5, 0.75, 1], grid=True, labelFlush=20, labelOverlap=True
)
_SHARE_TOOLTIP = [
    alt.Tooltip("Share:Q", format=".0%"),
    alt.Tooltip("Cases:Q", format=","),
    alt.Tooltip("Of:Q", title="Of", format=","),
    alt.Tooltip("From:Q", title="95% interval from", format=".0%"),
    alt.Tooltip("To:Q", title="to", format=".0%"),
]
_WEEK = alt.X(
    "Week of:O",
    title=None,
    axis=alt.Axis(
        labelExpr="utcFormat(utcParse(datum.value, '%Y-%m-%d'), '%d %b %y')",
        labelAngle=0,
        labelOverlap=True,
    ),
)


def _part_color(part: Literal["Severity", "Verdict"], parts: tuple[str, ...]) -> alt.Color:
    colors: Mapping[str, str] = _SEVERITY_COLORS
    if part == "Verdict":
        colors = {_verdict_text(name): color for name, color in _VERDICT_COLORS.items()}
    shown = [name for name in colors if name in parts]
    scale = alt.Scale(domain=shown, range=[colors[name] for name in shown])
    return alt.Color(f"{part}:N", title=None, scale=scale, legend=_LEGEND)

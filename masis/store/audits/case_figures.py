"""Count cases by issue, decision, week and origin for the charts of the metrics page.

Each case counts once, by the decision that settled it, because everybody may see that one. Copies
of cases that measure reviewers aren't counted. Times are UTC, and a week is named by its Monday.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Collection, Iterator
from datetime import date, timedelta

from masis.audit.measures.case_figures import (
    Changes,
    IssueCount,
    Origin,
    OriginCount,
    RevisionOutcome,
    StoppedCount,
    WeekOfWork,
)
from masis.audit.measures.metrics import MeasureFilter
from masis.schema.rules import RULES
from masis.store.core.connections import StorePart
from masis.store.core.sql import Condition, any_of, compare_column, join_conditions


class CaseFigures(StorePart):
    """Counts the cases of a store."""

    def count_issues(self, measure_filter: MeasureFilter) -> tuple[IssueCount, ...]:
        """Count the cases by issue flag, and for each flag by the worst severity in the case.

        The rows of issues must be up to date (``FailureModes.catch_up``).
        """
        where, values = _case_condition(measure_filter, "runs.ended_at")
        # With a lone max() or min(), SQLite takes the other columns from its row
        # (sqlite.org/lang_select.html, "Bare columns in an aggregate query").
        rows = self._database.cached_rows(
            f"""WITH flags (rule, flag) AS MATERIALIZED (SELECT key, value FROM json_each(?))
                SELECT flag, severity, count(*) FROM (
                    SELECT coalesce(flags.flag, '') AS flag, observations.severity AS severity,
                        min(CASE observations.severity WHEN 'critical' THEN 1 WHEN 'high' THEN 2
                            WHEN 'medium' THEN 3 ELSE 4 END)
                    FROM observations JOIN cases ON cases.seq = observations.case_seq
                    JOIN jobs AS runs ON runs.seq = cases.run_seq
                    LEFT JOIN flags ON flags.rule = observations.type
                    WHERE observations.kind = 'issue' AND {where}
                    GROUP BY observations.case_seq, 1
                ) GROUP BY flag, severity""",  # noqa: S608 (names of our own columns, as below)
            [json.dumps({code: rule.flag for code, rule in RULES.items()}), *values],
        )
        return tuple(IssueCount(row[0], row[1] or "low", row[2]) for row in rows)

    def count_stopped(self, measure_filter: MeasureFilter) -> tuple[StoppedCount, ...]:
        """Count the answers that people didn't let pass as they were."""
        where, values = _case_condition(measure_filter, "log.at")
        rows = self._database.cached_rows(
            f"""SELECT log.verdict, cases.severity, count(*) {_SETTLED}
                    AND log.verdict IN ('reject', 'override') AND {where} GROUP BY 1, 2""",
            values,
        )
        return tuple(StoppedCount(*row) for row in rows)

    def count_revisions(self, measure_filter: MeasureFilter) -> dict[RevisionOutcome, int]:
        """Count what people made of suggested revisions, in settled cases that have one.

        A revision is taken unchanged if a decision approves an iteration after the first, and
        edited if one overrides it.
        """
        where, values = _case_condition(measure_filter, "log.at")
        rows = self._database.cached_rows(
            f"""SELECT CASE log.verdict
                    WHEN 'reject' THEN 'rejected' WHEN 'escalate' THEN 'escalated'
                    WHEN 'override' THEN 'edited'
                    ELSE iif(written.payload ->> '$.iteration' > 1, 'unchanged', 'original')
                END AS outcome, count(*) {_SETTLED} AND cases.revised_quality IS NOT NULL
                AND {where} GROUP BY 1""",
            values,
        )
        return {row[0]: row[1] for row in rows}

    def list_weeks(self, measure_filter: MeasureFilter) -> tuple[WeekOfWork, ...]:
        """Return every week from the first arrival to the last event, in order.

        The filter chooses the weeks to return; the number of open cases counts earlier ones too.
        """
        where, values = _case_condition(
            measure_filter.model_copy(update={"since": None, "until": None}), ""
        )
        arrived: dict[str, int] = dict(
            self._database.cached_rows(
                f"""SELECT {_week("cases.imported_at")}, count(*) FROM cases
                    LEFT JOIN jobs AS runs ON runs.seq = cases.run_seq
                    WHERE {where} GROUP BY 1""",  # noqa: S608
                values,
            )
        )
        settled: defaultdict[str, dict[str, int]] = defaultdict(dict)
        for week, verdict, count in self._database.cached_rows(
            f"""SELECT {_week("log.at")}, coalesce(log.verdict, 'accepted'), count(*)
                FROM cases JOIN decision_log AS log ON log.seq = cases.decision_seq
                LEFT JOIN jobs AS runs ON runs.seq = cases.run_seq
                WHERE {_COUNTED} AND {where}
                GROUP BY 1, 2""",  # noqa: S608
            values,
        ):
            settled[week][verdict] = count
        # The median per week: the middle row, or the mean of the two middle rows.
        seconds: dict[str, float] = dict(
            self._database.cached_rows(
                f"""SELECT week, avg(seconds) FROM (
                        SELECT week, seconds, count(*) OVER (PARTITION BY week) AS total,
                            row_number() OVER (PARTITION BY week ORDER BY seconds) AS place
                        FROM (
                            SELECT {_week("log.at")} AS week, written.seconds AS seconds {_SETTLED}
                            AND written.seconds IS NOT NULL AND {where}
                        )
                    ) WHERE place IN ((total + 1) / 2, (total + 2) / 2) GROUP BY week""",  # noqa: S608
                values,
            )
        )
        weeks: list[WeekOfWork] = []
        waiting = 0
        for week in _all_weeks({*arrived, *settled}):
            closed = sum(count for verdict, count in settled[week].items() if verdict != "escalate")
            waiting += arrived.get(week, 0) - closed
            weeks.append(
                WeekOfWork(
                    week,
                    arrived.get(week, 0),
                    settled[week],
                    waiting,
                    seconds.get(week),
                )
            )
        first, end = (measure_filter.since or "")[:10], (measure_filter.until or "9")[:10]
        # A week belongs to the chosen time if one of its days does.
        return tuple(week for week in weeks if week.last_day >= first and week.week < end)

    def count_changes(self, since: str) -> Changes:
        """Count what happened since a time."""
        one = self._database.value
        settled = self._database.cached_rows(
            f"""SELECT coalesce(log.verdict, 'accepted'), count(*)
               FROM decision_log AS log JOIN cases ON cases.decision_seq = log.seq
               WHERE log.at >= ? AND cases.planted = 0 AND {_COUNTED} GROUP BY 1""",  # noqa: S608
            [since],
        )
        return Changes(
            since=since,
            arrived=one(
                "SELECT count(*) FROM cases WHERE NOT planted AND imported_at >= ?", [since]
            ),
            audited=one("SELECT count(*) FROM run_measures WHERE finished_at >= ?", [since]),
            failed=one(
                """SELECT count(*) FROM cases JOIN jobs ON jobs.case_seq = cases.seq
                   WHERE cases.state = 'interrupted' AND cases.planted = 0
                       AND jobs.state = 'interrupted' AND jobs.ended_at >= ?""",
                [since],
            ),
            settled=dict(settled),
        )

    def count_origins(
        self, origin: Origin, measure_filter: MeasureFilter
    ) -> tuple[OriginCount, ...]:
        """Count the audited cases by origin, most cases first.

        The origin ``model`` is the model in the filter's role.
        """
        where, values = _case_condition(measure_filter, "runs.ended_at")
        column = f"cases.{origin}"
        if origin == "model":
            column = f"runs.models ->> '$.{measure_filter.role}'"
        rows = self._database.cached_rows(
            f"""SELECT coalesce({column}, '') AS name, count(*) AS total,
                    total(cases.tier IS 'must_look')
                FROM cases JOIN jobs AS runs ON runs.seq = cases.run_seq
                WHERE cases.iterations IS NOT NULL AND {where}
                GROUP BY 1 ORDER BY total DESC, name""",  # noqa: S608
            values,
        )
        return tuple(OriginCount(row[0], row[1], int(row[2])) for row in rows)


# Decisions that others may not see yet don't count, so they can't be inferred from the figures. A
# case that was accepted automatically still counts as accepted.
_COUNTED = """(
    log.kind = 'policy_accept'
    OR log.kind IN ('decision', 'adjudication') AND cases.pending = 0
)"""

_SETTLED = """
    FROM cases JOIN decision_log AS log ON log.seq = cases.decision_seq
    JOIN decision_payloads AS written ON written.entry_seq = log.seq
    LEFT JOIN jobs AS runs ON runs.seq = cases.run_seq
    WHERE cases.pending = 0 AND log.kind IN ('decision', 'adjudication')
"""


def _week(column: str) -> str:
    return f"date({column}, 'weekday 0', '-6 days')"


def _all_weeks(mondays: Collection[str]) -> Iterator[str]:
    """Yield every Monday from the first to the last of these."""
    if not mondays:
        return
    monday, last = date.fromisoformat(min(mondays)), date.fromisoformat(max(mondays))
    while monday <= last:
        yield monday.isoformat()
        monday += timedelta(days=7)


def _case_condition(measure_filter: MeasureFilter, time_column: str) -> Condition:
    """Return the condition on cases; without a column of time, the filter's times are ignored."""
    conditions: list[Condition] = [("cases.planted = 0", ())]
    if time_column:
        conditions += compare_column(time_column, ">=", measure_filter.since or None)
        conditions += compare_column(time_column, "<", measure_filter.until or None)
    conditions += any_of(f"runs.models ->> '$.{measure_filter.role}'", measure_filter.models)
    conditions += any_of("cases.dataset", measure_filter.datasets)
    where, values = join_conditions(conditions)
    return where, values

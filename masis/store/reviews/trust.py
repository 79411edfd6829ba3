"""Reads decisions with their audits as columns for statistics, in one pass and without texts."""

from __future__ import annotations

import gc
import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from masis.schema.review import Decision
from masis.schema.trust import Guarantee
from masis.store.core.connections import StorePart
from masis.store.reviews.decisions import LOG
from masis.store.reviews.outcomes import CaseOutcome, outcomes_of, pins_of
from masis.store.reviews.states import answer_decided

_RUN = ", ".join(
    f"runs.{name}"
    for name in (
        *("auditor", "rule", "tier", "reasons", "flags", "likely", "quality", "confidence"),
        *("disagreement", "uncited", "invalid", "needs_review", "spot_check", "coverable"),
    )
)
"""Columns of the run that a settling decision is about. They are None for other decisions."""

_CASE = (
    "cases.id AS case_id, cases.query_start AS question, cases.field, cases.dataset, cases.state"
)
"""``question`` is its beginning, by which decisions cluster."""

# blind: the machine's verdict wasn't shown. reason_code: the reason of an override. marks: words
# were labelled. seconds: how long the case was open, if recorded. settles: this decision gives the
# case its state.
_DECIDED = f"""
    SELECT {_CASE}, cases.pending, log.seq IS cases.decision_seq AS settles, log.seq AS entry,
        log.at, written.reviewer, log.verdict, log.kind, written.blind, written.simulated,
        written.marks, written.reason_code, written.seconds, coalesce(log.queue, '') AS queue,
        runs.seq AS run_seq, {_RUN}
    FROM decision_log AS log
    JOIN decision_payloads AS written ON written.entry_seq = log.seq
    JOIN cases ON cases.seq = log.case_seq
    LEFT JOIN jobs AS runs ON runs.seq = log.run_seq AND log.seq = cases.decision_seq
    WHERE (cases.pending = 0 OR ?) AND (
        log.seq = cases.decision_seq AND log.kind = 'adjudication'
        OR log.seq IN (SELECT entry_seq FROM case_work WHERE kind = 'decided'
            UNION ALL SELECT entry_seq FROM queue_work)
    )
"""  # noqa: S608 (names of our own columns, here and below)

# The subquery repeats runs.coverable so that it depends on the run. SQLite then evaluates it last,
# and parses the payloads of coverable runs only.
_COVERABLE = """
    FROM cases JOIN jobs AS runs ON runs.seq = cases.run_seq
    WHERE runs.auditor = ? AND runs.coverable AND runs.removed_by IS NULL
        AND cases.redaction_seq IS NULL AND NOT cases.planted
        AND cases.state IN ('needs_review', 'accepted')
        AND NOT EXISTS (
            SELECT 1 FROM case_payloads
            WHERE case_seq = cases.seq AND runs.coverable AND payload ->> '$.screening' IS NOT NULL
        )
"""
_UNTOUCHED = """
        AND cases.pending = 0
        AND NOT EXISTS (SELECT 1 FROM case_work WHERE case_seq = cases.seq AND kind = 'decided')
"""


class TrustReads(StorePart):
    """Reads decisions with their audits, and stores the fitted risks that order the queue."""

    def decision_columns(
        self, *, after: int = 0, spot_checks: bool = False, pending: bool = False
    ) -> dict[str, list[Any]]:
        """Return every effective decision, by column, in the order of the log.

        The decisions on a shared case are included once all are made, with the adjudication.

        Args:
            after: Include only entries with a higher number.
            spot_checks: Include only decisions on answers that were drawn for a spot check.
            pending: Include decisions that other reviewers may not see yet.

        """
        where = " AND runs.spot_check = 1" if spot_checks else ""
        return self._columns(
            f"{_DECIDED} AND log.seq > ?{where} ORDER BY log.seq", [pending, after]
        )

    def seconds(self, reviewer: str, since: str) -> dict[str, list[Any]]:
        """Return ``verdict`` and ``seconds`` of a reviewer's effective decisions since a time."""
        return self._columns(
            """SELECT log.verdict, seconds FROM case_work JOIN decision_log AS log
                ON log.seq = case_work.entry_seq
            JOIN decision_payloads AS written ON written.entry_seq = log.seq
            WHERE case_work.kind = 'decided' AND who = ? AND at >= ?""",
            [reviewer, since],
        )

    def pool(self, auditor: str) -> dict[str, list[Any]]:
        """Return an auditor's undecided cases that a guarantee may cover, sorted by id."""
        return self._columns(
            f"SELECT {_CASE}, {_RUN} {_COVERABLE} {_UNTOUCHED} ORDER BY cases.id", [auditor]
        )

    def pool_ids(self, auditor: str, most: int, *, unsettled: bool) -> list[str]:
        """Return at most ``most`` ids of ``pool``; ``unsettled`` adds partly decided cases."""
        sql = f"SELECT cases.id {_COVERABLE} {'' if unsettled else _UNTOUCHED} LIMIT ?"
        return [str(row[0]) for row in self._database.execute(sql, [auditor, most])]

    def auditors(self) -> list[tuple[str, dict[str, str], int]]:
        """Return digest, models by role and number of cases of each auditor, largest first.

        Only the newest run of each case counts.
        """
        sql = """SELECT runs.auditor, min(runs.models), count(*)
                 FROM cases JOIN jobs AS runs ON runs.seq = cases.run_seq
                 WHERE runs.auditor IS NOT NULL GROUP BY runs.auditor ORDER BY count(*) DESC"""
        return [
            (str(row[0]), dict(json.loads(row[1])), int(row[2]))
            for row in self._database.cached_rows(sql)
        ]

    def newest_run_of(self, auditor: str) -> str | None:
        """Return the id of an auditor's newest finished run whose content is stored, or None."""
        sql = """SELECT id FROM jobs WHERE kind = 'run' AND auditor = ? AND removed_by IS NULL
                 AND state = 'finished' ORDER BY seq DESC LIMIT 1"""
        rows = self._database.execute(sql, (auditor,))
        return str(rows[0][0]) if rows else None

    def spot_checks(self) -> dict[str, list[Any]]:
        """Return every case whose newest finished run was drawn for a spot check."""
        sql = """SELECT cases.id AS case_id, coalesce(field, '') AS field, cases.state,
                     runs.ended_at AS at,
                     coalesce(runs.settings ->> '$.spot_check_share', 0.0) AS share
                 FROM cases JOIN jobs AS runs ON runs.seq = cases.run_seq
                 WHERE runs.spot_check = 1 ORDER BY cases.seq"""
        return self._columns(sql)

    def passed_by_share(self) -> dict[tuple[float, str], int]:
        """Count the cases whose newest run needed no review, by spot-check share and field."""
        rows = self._database.execute(
            """SELECT runs.settings ->> '$.spot_check_share' AS share, coalesce(field, ''), count(*)
               FROM cases JOIN jobs AS runs ON runs.seq = cases.run_seq
               WHERE runs.needs_review = 0 AND NOT cases.planted GROUP BY 1, 2"""
        )
        return {(float(row[0] or 0), str(row[1])): int(row[2]) for row in rows}

    def gold(self) -> dict[str, list[Any]]:
        """Return the audited cases with imported labels (as JSON) and their newest runs."""
        # instr() is a fast text search that spares most cases the parsing of their JSON.
        sql = f"""SELECT {_CASE}, case_payloads.payload -> '$.labels' AS labels,
            runs.ended_at AS at, {_RUN}
                  FROM case_payloads JOIN cases ON cases.seq = case_payloads.case_seq
                  JOIN jobs AS runs ON runs.seq = cases.run_seq
                  WHERE instr(case_payloads.payload, '"labels"') > 0
                      AND case_payloads.payload ->> '$.labels' IS NOT NULL
                  ORDER BY cases.seq"""  # noqa: S608
        return self._columns(sql)

    def labelled_cases(self) -> Iterator[CaseOutcome]:
        """Yield the cases with imported labels or with decisions that label parts of the answer."""
        with self._database.reading() as connection:
            rows = connection.execute(
                """SELECT case_seq FROM case_payloads WHERE instr(payload, '"labels"') > 0
                   UNION SELECT case_seq FROM decision_log JOIN decision_payloads ON entry_seq = seq
                   WHERE marks
                   EXCEPT SELECT seq FROM cases WHERE planted"""
            ).fetchall()
            yield from outcomes_of(connection, pins_of(connection, [row[0] for row in rows]))

    def decisions_of(self, entries: Sequence[int]) -> dict[int, Decision]:
        """Return the decisions of these entries by number, without redacted ones."""
        with self._database.reading() as connection:
            rows = LOG.rows(
                connection,
                "log.seq IN (SELECT value FROM json_each(?))",
                [json.dumps(list(entries))],
            )
        decision_by_seq = {entry.seq: entry.decision for entry in map(LOG.entry_of, rows)}
        return {seq: decision for seq, decision in decision_by_seq.items() if decision is not None}

    def answers(self, entries: Sequence[int]) -> dict[int, str | None]:
        """Return the identity of the answer that each decision accepts, by entry number."""
        sql = (
            "SELECT entry_seq, payload FROM decision_payloads WHERE entry_seq IN (SELECT value FROM"
            " json_each(?))"
        )
        rows = self._database.execute(sql, [json.dumps(list(entries))])
        return {int(row[0]): answer_decided(row[1]) for row in rows}

    def guarantee(self) -> tuple[int, str, str, Guarantee] | None:
        """Return entry number, time, name and content of the guarantee in force.

        None if there is none, it was ended, or its entry was redacted.
        """
        rows = self._database.execute(
            """SELECT seq, at, reviewer, payload -> '$.extra.guarantee' AS found FROM decision_log
               LEFT JOIN decision_payloads ON entry_seq = seq WHERE kind = 'guarantee'
                   ORDER BY seq DESC LIMIT 1"""
        )
        if not rows or rows[0]["found"] in (None, "null"):
            return None
        seq, at, reviewer, content = tuple(rows[0])
        return int(seq), str(at), str(reviewer), Guarantee.model_validate_json(content)

    def undecided_runs(self) -> dict[str, list[Any]]:
        """Return ``seq`` and the columns of the current run of each undecided case."""
        sql = f"""SELECT runs.seq, {_RUN} FROM cases JOIN jobs AS runs ON runs.seq = cases.run_seq
                  WHERE cases.state IN ('needs_review', 'accepted')
                      AND runs.removed_by IS NULL"""  # noqa: S608
        return self._columns(sql)

    def reorder(self, risks: Mapping[int, float]) -> None:
        """Store the risks that order the queue, for runs by number and for their cases."""
        with self._database.transaction() as connection:
            rows = [(risk, seq) for seq, risk in risks.items()]
            connection.executemany("UPDATE jobs SET risk = ? WHERE seq = ?", rows)
            connection.executemany("UPDATE cases SET risk = ? WHERE run_seq = ?", rows)

    def _columns(self, sql: str, values: Sequence[Any] = ()) -> dict[str, list[Any]]:
        # None of the millions of new objects can be garbage, and looking for it takes longer than
        # reading them.
        collecting = gc.isenabled()
        gc.disable()
        try:
            with self._database.reading() as connection:
                cursor = connection.execute(sql, values)
                names, rows = [column[0] for column in cursor.description], cursor.fetchall()
            columns = zip(*rows, strict=True) if rows else [()] * len(names)
            return {name: list(column) for name, column in zip(names, columns, strict=True)}
        finally:
            if collecting:
                gc.enable()

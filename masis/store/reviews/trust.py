"""What decisions say about the audits they are about: columns for statistics, read in one pass,
without the texts.
"""

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
"""Columns of the run that a settling decision is about; they are None beside decisions that settle
nothing.
"""

_CASE = (
    "cases.id AS case_id, cases.query_start AS question, cases.field, cases.dataset, cases.state"
)
"""``question`` is its beginning, by which decisions cluster."""

# blind: nothing of the machine's verdict was shown; reason_code: that of an override; marks: words
# were labelled; seconds: how long the case was open, where that was recorded; settles: this
# decision gives the case its state
_DECIDED = f"""
    SELECT {_CASE}, cases.pending, log.seq IS cases.decision_seq AS settles, log.seq AS entry,
        log.at, written.reviewer, log.verdict, log.kind, written.blind, written.simulated,
        written.marks, written.reason_code,
        written.seconds, {_RUN}
    FROM decision_log AS log
    JOIN decision_payloads AS written ON written.entry_seq = log.seq
    JOIN cases ON cases.seq = log.case_seq
    LEFT JOIN jobs AS runs ON runs.seq = log.run_seq AND log.seq = cases.decision_seq
    WHERE (cases.pending = 0 OR ?) AND (
        log.seq = cases.decision_seq AND log.kind = 'adjudication'
        OR log.seq IN (SELECT entry_seq FROM case_work WHERE kind = 'decided')
    )
"""  # noqa: S608 (names of our own columns, here and below)

# the payload is parsed last, of coverable runs alone: that is why its subquery names the run
_COVERABLE = """
    FROM cases JOIN jobs AS runs ON runs.seq = cases.run_seq
    WHERE runs.auditor = ? AND runs.coverable AND runs.removed_by IS NULL
        AND cases.redaction_seq IS NULL
        AND NOT cases.planted
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
    """Reads decisions with the audits they are about, and keeps the order of the queue by a fitted
    score.
    """

    def decision_columns(
        self, *, after: int = 0, spot_checks: bool = False, pending: bool = False
    ) -> dict[str, list[Any]]:
        """Return every decision that counts, by column, in the order of the log.

        Of a case of several reviewers all are returned once all are in, and the adjudication too;
        with ``pending`` those as well that others may not see yet. Only entries behind number
        ``after``, and with ``spot_checks`` only those about answers that were drawn to be checked.
        """
        where = " AND runs.spot_check = 1" if spot_checks else ""
        return self._columns(
            f"{_DECIDED} AND log.seq > ?{where} ORDER BY log.seq", [pending, after]
        )

    def seconds(self, reviewer: str, since: str) -> dict[str, list[Any]]:
        """Return ``verdict`` and ``seconds`` of each decision of a reviewer that counts and was
        made since a time.
        """
        return self._columns(
            """SELECT log.verdict, seconds FROM case_work JOIN decision_log AS log
                ON log.seq = case_work.entry_seq
            JOIN decision_payloads AS written ON written.entry_seq = log.seq
            WHERE case_work.kind = 'decided' AND who = ? AND at >= ?""",
            [reviewer, since],
        )

    def pool(self, auditor: str) -> dict[str, list[Any]]:
        """Return the undecided cases of an auditor that a guarantee may cover, with their runs, by
        their ids.
        """
        return self._columns(
            f"SELECT {_CASE}, {_RUN} {_COVERABLE} {_UNTOUCHED} ORDER BY cases.id", [auditor]
        )

    def pool_ids(self, auditor: str, most: int, *, unsettled: bool) -> list[str]:
        """Return ids of ``pool``, ``most`` at most; with ``unsettled`` of cases that some, but not
        all, decided too.
        """
        sql = f"SELECT cases.id {_COVERABLE} {'' if unsettled else _UNTOUCHED} LIMIT ?"
        return [str(row[0]) for row in self._database.execute(sql, [auditor, most])]

    def auditors(self) -> list[tuple[str, dict[str, str], int]]:
        """Return the auditors of the newest run of each case: digest, models by role, how many
        cases; most first.
        """
        sql = """SELECT runs.auditor, min(runs.models), count(*)
                 FROM cases JOIN jobs AS runs ON runs.seq = cases.run_seq
                 WHERE runs.auditor IS NOT NULL GROUP BY runs.auditor ORDER BY count(*) DESC"""
        return [
            (str(row[0]), dict(json.loads(row[1])), int(row[2]))
            for row in self._database.cached_rows(sql)
        ]

    def newest_run_of(self, auditor: str) -> str | None:
        """Return the id of an auditor's newest finished run whose content is stored; None where
        there is none.
        """
        sql = """SELECT id FROM jobs WHERE kind = 'run' AND auditor = ? AND removed_by IS NULL
            AND state = 'finished'
                 ORDER BY seq DESC LIMIT 1"""
        rows = self._database.execute(sql, (auditor,))
        return str(rows[0][0]) if rows else None

    def spot_checks(self) -> dict[str, list[Any]]:
        """Return every case whose newest finished run was drawn for a spot check,
        decided or not.
        """
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
        """Return the audited cases that came with labels: ``labels`` as JSON, and the columns of
        their newest runs.
        """
        sql = f"""SELECT {_CASE}, case_payloads.payload -> '$.labels' AS labels,
            runs.ended_at AS at, {_RUN}
                  FROM case_payloads JOIN cases ON cases.seq = case_payloads.case_seq
                  JOIN jobs AS runs ON runs.seq = cases.run_seq
                  WHERE instr(case_payloads.payload, '"labels"') > 0
                      AND case_payloads.payload ->> '$.labels' IS NOT NULL
                  ORDER BY cases.seq"""  # noqa: S608
        return self._columns(sql)

    def labelled_cases(self) -> Iterator[CaseOutcome]:
        """Yield the cases that carry gold or imported labels, or whose decisions label parts of the
        answer.
        """
        with self._database.reading() as connection:
            rows = connection.execute(
                """SELECT case_seq FROM case_payloads WHERE instr(payload, '"labels"') > 0
                   UNION SELECT case_seq FROM decision_log JOIN decision_payloads ON entry_seq = seq
                   WHERE marks
                   EXCEPT SELECT seq FROM cases WHERE planted"""
            ).fetchall()
            yield from outcomes_of(connection, pins_of(connection, [row[0] for row in rows]))

    def decisions_of(self, entries: Sequence[int]) -> dict[int, Decision]:
        """Return the decisions of these entries, by the entry's number; redacted ones
        are left out.
        """
        with self._database.reading() as connection:
            rows = LOG.rows(
                connection,
                "log.seq IN (SELECT value FROM json_each(?))",
                [json.dumps(list(entries))],
            )
        decision_by_seq = {entry.seq: entry.decision for entry in map(LOG.entry_of, rows)}
        return {seq: decision for seq, decision in decision_by_seq.items() if decision is not None}

    def answers(self, entries: Sequence[int]) -> dict[int, str | None]:
        """Return what tells the answer that each of these decisions lets stand from others, by the
        entry's number.
        """
        sql = (
            "SELECT entry_seq, payload FROM decision_payloads WHERE entry_seq IN (SELECT value FROM"
            " json_each(?))"
        )
        rows = self._database.execute(sql, [json.dumps(list(entries))])
        return {int(row[0]): answer_decided(row[1]) for row in rows}

    def guarantee(self) -> tuple[int, str, str, Guarantee] | None:
        """Return the number of the entry, time, name and content of the guarantee that was applied
        last.

        None where none was, it was ended, or its entry was redacted.
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
        """Return the run that each undecided case stands by: ``seq`` and its columns."""
        sql = f"""SELECT runs.seq, {_RUN} FROM cases JOIN jobs AS runs ON runs.seq = cases.run_seq
                  WHERE cases.state IN ('needs_review', 'accepted')
                      AND runs.removed_by IS NULL"""  # noqa: S608
        return self._columns(sql)

    def reorder(self, risks: Mapping[int, float]) -> None:
        """Write what the queue is ordered by, for runs by their numbers and the cases that stand by
        them.
        """
        with self._database.transaction() as connection:
            rows = [(risk, seq) for seq, risk in risks.items()]
            connection.executemany("UPDATE jobs SET risk = ? WHERE seq = ?", rows)
            connection.executemany("UPDATE cases SET risk = ? WHERE run_seq = ?", rows)

    def _columns(self, sql: str, values: Sequence[Any] = ()) -> dict[str, list[Any]]:
        # of millions of new objects none can be garbage: looking for it takes longer than reading
        # them
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

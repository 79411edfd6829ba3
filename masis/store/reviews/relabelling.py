"""Stores the copies of a dataset version's cases that other people label again.

Until it is decided, only ``cases.planted`` distinguishes such a copy from other cases. It is
decided by one person under any policy, and never by somebody who decided the case it was made of.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import NamedTuple

from masis.errors import Removed, UnknownRecord
from masis.schema.case import Case
from masis.schema.review import Decision
from masis.schema.trust import RelabelPlan
from masis.store.audits.cases import Cases
from masis.store.audits.queue import case_seq
from masis.store.core.chained_log import canonical_json, sha256
from masis.store.core.connections import StorePart
from masis.store.reviews.decisions import LOG
from masis.store.reviews.states import RELABEL_COPY
from masis.store.reviews.team import Team
from masis.store.reviews.visibility import UNDECIDED


class LabelledCase(NamedTuple):
    """A case of a dataset version with a person's label, and the number of the entry with it."""

    seq: int
    case_id: str
    entry_seq: int


class VersionLabels(NamedTuple):
    """The labels of a dataset version that people gave.

    ``left_out`` counts the cases without one, and those whose evidence is judged too (screenings).
    ``digest`` identifies the labels.
    """

    cases: tuple[LabelledCase, ...]
    left_out: int
    digest: str


class RelabelledCase(NamedTuple):
    """A drawn case: its copy, the label, and the other person's decision, if it's made.

    ``gone`` means that the copy or the label was redacted or withdrawn before it could be compared.
    ``settled`` says whether a person's decision is in force on the original case now.
    """

    case_id: str
    copy_id: str
    assignees: tuple[str, ...]
    label: Decision | None
    again: Decision | None
    gone: bool
    withdrawn: bool
    settled: bool


# The first label of each case whose state follows from a person's entry. A pin is a JSON list:
# entry number, in force, run number, iteration number.
_LABELS = """
    SELECT member.case_seq, cases.id, log.seq, log.digest
    FROM dataset_members AS member
    CROSS JOIN json_each(member.judgements) AS pin
    JOIN decision_log AS log ON log.seq = pin.value ->> 0
        AND log.kind IN ('decision', 'adjudication') AND log.source = 'HUMAN'
    JOIN cases ON cases.seq = member.case_seq AND NOT cases.planted
    JOIN case_payloads AS held ON held.case_seq = cases.seq
    WHERE member.dataset_seq = (SELECT seq FROM dataset_versions WHERE name = ?)
        AND pin.value ->> 1 AND held.payload ->> '$.screening' IS NULL
    ORDER BY member.case_seq
"""

_COPIES = """
    SELECT source.id AS case_id, copy.id AS copy_id, copy.seq, copy.state, entry_seq, withdrawn_at,
        source.state AS source_state,
        (
            SELECT log.seq FROM decision_log AS log WHERE log.case_seq = copy.seq
                AND log.kind = 'decision' AND log.source = 'HUMAN'
                AND log.seq NOT IN (
                    SELECT undo.undoes FROM decision_log AS undo
                    WHERE undo.case_seq = copy.seq AND undo.undoes IS NOT NULL
                )
            ORDER BY log.seq DESC LIMIT 1
        ) AS again_seq
    FROM relabel_copies JOIN cases AS copy ON copy.seq = relabel_copies.case_seq
    JOIN cases AS source ON source.seq = source_seq
    WHERE plan = ? AND copy.state <> 'superseded' ORDER BY source.seq
"""


class Relabelling(StorePart):
    """Reads and writes the copies of cases that other people label again."""

    def labels(self, dataset: str) -> VersionLabels:
        """Return the labels of a dataset version.

        Raises:
            UnknownRecord: There is no such version.

        """
        with self._database.reading() as connection:
            members = connection.execute(
                "SELECT count(case_seq) FROM dataset_versions AS version LEFT JOIN dataset_members"
                " ON dataset_seq = version.seq WHERE name = ? GROUP BY version.seq",
                [dataset],
            ).fetchone()
            if members is None:
                raise UnknownRecord(f"there is no dataset version {dataset!r}.")
            rows = connection.execute(_LABELS, [dataset]).fetchall()
        digest = sha256(canonical_json([[row["id"], row["digest"]] for row in rows]))
        cases = tuple(LabelledCase(*row[:3]) for row in map(tuple, rows))
        return VersionLabels(cases, members[0] - len(cases), digest)

    def decision(self, entry_seq: int) -> Decision:
        """Return the decision with a label.

        Raises:
            Removed: It was redacted.

        """
        with self._database.reading() as connection:
            [row] = LOG.rows(connection, "log.seq = ?", [entry_seq])
            decision = LOG.entry_of(row).decision
        if decision is None:
            raise Removed(f"entry {row['id']} was redacted.")
        return decision

    def authors(self, case_id: str) -> frozenset[str]:
        """Return everyone who has ever decided or adjudicated a case."""
        sql = """SELECT reviewer FROM decision_log AS log JOIN decision_payloads
                ON entry_seq = log.seq
            WHERE case_seq = (SELECT seq FROM cases WHERE id = ?)
                AND kind IN ('decision', 'adjudication')"""
        return frozenset(str(row[0]) for row in self._database.execute(sql, [case_id]))

    def add(self, copy: Case, label: LabelledCase, plan: int) -> None:
        """Store a copy of a case that is to be labeled again.

        Raises:
            CaseConflict: A case with its id exists.

        """
        with self._database.transaction() as connection:
            Cases(self._database).add(copy)
            seq = case_seq(connection, copy.id)
            connection.execute(
                "UPDATE cases SET planted = ?, wanted = 1 WHERE seq = ?", [RELABEL_COPY, seq]
            )
            connection.execute(
                "INSERT INTO relabel_copies VALUES (?, ?, ?, ?, NULL)",
                [seq, label.seq, label.entry_seq, plan],
            )

    def carry_over(self, case_id: str, newer: str) -> None:
        """Mark the new version of a copy as a copy too. Other cases aren't changed."""
        with self._database.transaction() as connection:
            old, new = case_seq(connection, case_id), case_seq(connection, newer)
            added = connection.execute(
                """INSERT INTO relabel_copies SELECT ?, source_seq, entry_seq, plan, NULL
                   FROM relabel_copies WHERE case_seq = ?""",
                [new, old],
            )
            if added.rowcount:
                connection.execute(
                    "UPDATE cases SET planted = ?, wanted = 1 WHERE seq = ?", [RELABEL_COPY, new]
                )

    def is_copy(self, case_id: str) -> bool:
        """Return whether a case is a copy that is, or was, to be labeled again."""
        sql = "SELECT 1 FROM cases WHERE id = ? AND planted = ?"
        return bool(self._database.execute(sql, [case_id, RELABEL_COPY]))

    def copies_of(self, case_id: str) -> tuple[str, ...]:
        """Return the ids of the copies of a case whose content is stored."""
        sql = """SELECT copy.id FROM relabel_copies JOIN cases AS copy
                ON copy.seq = relabel_copies.case_seq
            JOIN cases AS source ON source.seq = source_seq
            WHERE source.id = ? AND copy.redaction_seq IS NULL"""
        return tuple(str(row[0]) for row in self._database.execute(sql, [case_id]))

    def relabelled_by_copy(self) -> dict[str, str]:
        """Return the original case of each copy that isn't secret any more, by the copy's id."""
        sql = """SELECT copy.id, source.id FROM relabel_copies JOIN cases AS copy
                ON copy.seq = relabel_copies.case_seq AND copy.state = 'planted'
            JOIN cases AS source ON source.seq = source_seq"""
        return {str(copy): str(source) for copy, source in self._database.execute(sql)}

    def plans(self) -> list[RelabelPlan]:
        """Return all plans, oldest first."""
        return [plan for *_, plan in Team(self._database).history(RelabelPlan)]

    def list_drawn(self, plan: int) -> list[RelabelledCase]:
        """Return the cases of a plan in the order of import."""
        drawn: list[RelabelledCase] = []
        with self._database.reading() as connection:
            rows = connection.execute(_COPIES, [plan]).fetchall()
            wanted = [seq for row in rows for seq in (row["entry_seq"], row["again_seq"]) if seq]
            entries = {
                row["seq"]: LOG.entry_of(row).decision
                for row in LOG.rows(
                    connection,
                    "log.seq IN (SELECT value FROM json_each(?))",
                    [json.dumps(wanted)],
                )
            }
            for row in rows:
                assignees = connection.execute(
                    "SELECT who FROM case_work WHERE case_seq = ? AND kind = 'assigned'",
                    [row["seq"]],
                ).fetchall()
                label = entries.get(row["entry_seq"])
                again = entries.get(row["again_seq"])
                over = row["state"] == "planted"
                drawn.append(
                    RelabelledCase(
                        row["case_id"],
                        row["copy_id"],
                        tuple(str(who) for (who,) in assignees),
                        label,
                        again if over else None,
                        over and (label is None or again is None),
                        row["withdrawn_at"] is not None,
                        row["source_state"] not in UNDECIDED,
                    )
                )
        return drawn

    def mark_withdrawn(self, copy_ids: Sequence[str]) -> None:
        """Record that undecided copies were withdrawn."""
        with self._database.transaction() as connection:
            connection.execute(
                """UPDATE relabel_copies SET withdrawn_at = ? WHERE case_seq IN (
                    SELECT seq FROM cases WHERE id IN (SELECT value FROM json_each(?)))""",
                [self._database.now(), json.dumps(list(copy_ids))],
            )

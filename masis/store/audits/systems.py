"""Stores questions and systems: a case is the answer of one system to one question.

A case's question is the one with the id that it names. If there is none yet, it is the oldest
question in the same words that this system hasn't answered, since traces and files without ids name
no question. Otherwise the case brings a new question.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Collection, Sequence
from typing import NamedTuple

from masis.errors import UnknownRecord
from masis.schema.case import Case, Severity
from masis.schema.comparison import Judgement
from masis.schema.systems import UNNAMED, System, SystemDetails, question_digest
from masis.store.core.connections import StorePart
from masis.store.core.sql import Condition, any_of, join_conditions
from masis.store.reviews.visibility import (
    hides_anything,
    machine_hidden,
    visible_codes,
    visible_observations,
)

_SAME_WORDS_TRIED = 100
"""How many questions in the same words are tried, so that one text repeated in a hundred thousand
cases doesn't take quadratic time. Beyond that, repeated questions aren't paired by their words.
"""

_SYSTEMS = """SELECT name, added_at, changed_at, changed_by, details,
    (SELECT count(*) FROM cases WHERE system = name AND planted = 0) AS cases FROM systems"""


def question_of(connection: sqlite3.Connection, case: Case, at: str) -> int:
    """Return the number of a new case's question, and add the question and the system if needed."""
    model = case.metadata.get("model")
    details = SystemDetails(
        model=model[:200] if case.system != UNNAMED and isinstance(model, str) else ""
    )
    connection.execute(
        "INSERT OR IGNORE INTO systems (name, added_at, details) VALUES (?, ?, ?)",
        [case.system, at, details.model_dump_json(exclude_defaults=True)],
    )
    if case.earlier_version is not None:
        row = connection.execute(
            "SELECT question_seq FROM cases WHERE id = ?", [case.earlier_version.id]
        ).fetchone()
        if row is not None and row[0] is not None:
            return int(row[0])
    row = connection.execute("SELECT seq FROM questions WHERE id = ?", [case.question]).fetchone()
    digest = question_digest(case.query)
    if row is None:
        row = connection.execute(
            """SELECT seq FROM (SELECT seq FROM questions WHERE digest = ? ORDER BY seq LIMIT ?)
                AS same WHERE NOT EXISTS (
                    SELECT 1 FROM cases WHERE question_seq = same.seq AND system = ?
                ) ORDER BY seq LIMIT 1""",
            [digest, _SAME_WORDS_TRIED, case.system],
        ).fetchone()
    if row is not None:
        return int(row[0])
    added = connection.execute(
        "INSERT INTO questions (id, digest) VALUES (?, ?)", [case.question, digest]
    )
    return int(added.lastrowid or 0)


def forget_question(connection: sqlite3.Connection, case_seq: int) -> None:
    """Remove the digest of a redacted case's question, unless another case still has its words."""
    connection.execute(
        """UPDATE questions SET digest = '' WHERE seq =
            (SELECT question_seq FROM cases WHERE seq = ?1)
        AND NOT EXISTS (SELECT 1 FROM cases WHERE question_seq = questions.seq
            AND seq <> ?1 AND redaction_seq IS NULL)""",
        [case_seq],
    )


class StoredAnswer(NamedTuple):
    """One system's answer to a question, as a comparison of systems reads it.

    Attributes:
        question: The number of the question.
        seq: The number of the case.
        judgement: The decision in force, or else what the audit found; None if neither is known to
            the viewer. Flags and severity are None too, then.
        flags: The faults of the original answer as a JSON list; None if it wasn't audited.
        severity: The severity of its worst issue.
        length: The characters of the answer; None if there is none.
        cost: What it cost, in US dollars.
        flagged: Whether the audit flagged it, whatever people decided; None if that isn't known.
        reviewer: The person whose decision is in force; None for any other judgement.
        blind: Whether that decision was made without the audit's verdict in view.

    """

    question: int
    system: str
    seq: int
    judgement: Judgement | None
    flags: str | None
    severity: Severity | None
    field: str | None
    length: int | None
    cost: float | None
    hidden: bool
    flagged: bool | None
    reviewer: str | None
    blind: bool | None


class CaseName(NamedTuple):
    """The id of a case, the id of its question, and the beginning of the question."""

    case_id: str
    question_id: str
    query: str


class Systems(StorePart):
    """The systems of a store, and the questions that they answered."""

    def all(self) -> tuple[System, ...]:
        """Return the systems, in the order in which they were added."""
        rows = self._database.execute(f"{_SYSTEMS} ORDER BY added_at, name")
        return tuple(map(_system, rows))

    def get(self, name: str) -> System:
        """Return a system. Raises UnknownRecord."""
        row = self._database.row(f"{_SYSTEMS} WHERE name = ?", [name])
        if row is None:
            raise UnknownRecord(f"there is no system {name!r}. `masis systems` lists them.")
        return _system(row)

    def change(self, name: str, details: SystemDetails, by: str) -> System:
        """Replace the details of a system. Raises UnknownRecord."""
        with self._database.transaction():
            self.get(name)
            self._database.execute(
                "UPDATE systems SET details = ?, changed_at = ?, changed_by = ? WHERE name = ?",
                [
                    details.model_dump_json(exclude_defaults=True),
                    self._database.now(),
                    by,
                    name,
                ],
            )
            return self.get(name)

    def answers(self, names: Sequence[str], viewer: str | None) -> list[StoredAnswer]:
        """Return the newest answer of each of these systems to each question, in one pass.

        Copies that measure people, earlier versions and redacted cases are left out. What the audit
        or people said about an answer is left out as long as it's hidden from the viewer.
        """
        marks = ", ".join("?" * len(names))
        with self._database.reading() as connection:
            shown: str = "1"
            values: tuple[str, ...] = ()
            if viewer is not None and hides_anything(connection):
                hidden, bound = machine_hidden(connection, viewer)
                shown, values = f"NOT {hidden}", tuple(bound)
            rows = self._database.cached_rows(
                # Of several answers the newest has the highest number; SQLite takes the other
                # columns from its row (sqlite.org/lang_select.html, "bare columns").
                f"""SELECT question_seq, system, max(seq),
                    CASE WHEN NOT shown THEN NULL
                        WHEN state IN ('approved', 'overridden', 'rejected') THEN state
                        WHEN iterations IS NULL THEN NULL
                        WHEN tier = 'must_look' THEN 'flagged'
                        WHEN standing IN ('failed', 'no_answer') THEN NULL
                        WHEN tier = 'not_certified' THEN 'not_confirmed'
                        ELSE 'nothing_found' END,
                    CASE WHEN shown AND iterations > 0 THEN flags END,
                    CASE WHEN shown THEN severity END,
                    field, answer_length, answer_cost, NOT shown,
                    CASE WHEN shown AND iterations > 0 THEN tier IS 'must_look' END,
                    CASE WHEN shown AND state IN ('approved', 'overridden', 'rejected')
                        THEN reviewer END,
                    CASE WHEN shown AND state IN ('approved', 'overridden', 'rejected') THEN
                        (SELECT blind FROM decision_payloads WHERE entry_seq = decision_seq) END
                FROM (SELECT *, {shown} AS shown FROM cases) AS cases
                WHERE system IN ({marks}) AND planted = 0 AND redaction_seq IS NULL
                    AND state <> 'superseded' AND question_seq IS NOT NULL
                GROUP BY question_seq, system""",  # noqa: S608 (our own SQL and marks)
                [*values, *names],
            )
        return [StoredAnswer(*row) for row in rows]

    def stamp(self, names: Sequence[str]) -> tuple[object, ...]:
        """Return what a comparison of these systems depends on, which is cheap to read.

        It changes with every audit, decision, code, redaction and policy.
        """
        marks = ", ".join("?" * len(names))
        row = self._database.row(
            f"""SELECT (SELECT max(seq) FROM decision_log), (SELECT max(seq) FROM purges),
                (SELECT max(seq) FROM team_records), count(*), max(seq), sum(version),
                sum(planted), max(updated_at), total(run_seq)
            FROM cases WHERE system IN ({marks})""",  # noqa: S608 (only marks for values)
            [*names],
        )
        return tuple(row) if row is not None else ()

    def names_of(self, numbers: Collection[int]) -> dict[int, CaseName]:
        """Return the names of cases by their numbers."""
        rows = self._database.execute(
            """SELECT cases.seq, cases.id, questions.id, query_start FROM cases
            JOIN questions ON questions.seq = question_seq
            WHERE cases.seq IN (SELECT value FROM json_each(?))""",
            [json.dumps(list(numbers))],
        )
        return {seq: CaseName(*row) for seq, *row in map(tuple, rows)}

    def causes(
        self, names: Sequence[str], viewer: str | None, *, by_people: bool
    ) -> dict[int, frozenset[str]]:
        """Return the causes of people's labels and reasons, or those of the audits' issues, by the
        case's number.
        """
        return self._by_case(
            f"""SELECT observations.case_seq, observations.cause AS value FROM observations
            JOIN cases ON cases.seq = observations.case_seq WHERE is_fault AND value NOTNULL
            AND (observations.kind <> 'issue') = {int(by_people)}""",  # noqa: S608
            names,
            lambda connection: visible_observations(connection, viewer),
        )

    def reasons(self, names: Sequence[str], viewer: str | None) -> dict[int, frozenset[str]]:
        """Return the codes of the reasons for which people rejected, corrected or escalated
        answers, by the case's number.
        """
        return self._by_case(
            """SELECT observations.case_seq, observations.type AS value FROM observations
            JOIN cases ON cases.seq = observations.case_seq
            WHERE is_fault AND observations.kind = 'reason' AND observations.type <> ''""",
            names,
            lambda connection: visible_observations(connection, viewer),
        )

    def modes(self, names: Sequence[str], viewer: str | None) -> dict[int, frozenset[str]]:
        """Return the codes of failure modes that people applied, by the case's number."""
        return self._by_case(
            """SELECT case_codes.case_seq, code AS value FROM case_codes
            JOIN cases ON cases.seq = case_codes.case_seq WHERE value NOTNULL""",
            names,
            lambda connection: visible_codes(connection, viewer),
        )

    def _by_case(
        self,
        sql: str,
        names: Sequence[str],
        visible: Callable[[sqlite3.Connection], list[Condition]],
    ) -> dict[int, frozenset[str]]:
        with self._database.reading() as connection:
            where, values = join_conditions([*any_of("system", names), *visible(connection)])
            rows = self._database.cached_rows(f"{sql} AND {where} GROUP BY 1, 2", values)
        found: dict[int, set[str]] = {}
        for seq, value in rows:
            found.setdefault(seq, set()).add(value)
        return {seq: frozenset(held) for seq, held in found.items()}

    def question_records(self, case_ids: Sequence[str]) -> dict[str, str]:
        """Return the id of the question's record for each stored case.

        A question that a system answered twice has two records, of which the first counts.
        """
        rows = self._database.execute(
            """SELECT cases.id, coalesce(
                (SELECT same.id FROM questions AS same
                    WHERE same.digest = questions.digest AND same.digest <> ''
                    ORDER BY same.seq LIMIT 1),
                questions.id)
            FROM json_each(?) CROSS JOIN cases ON cases.id = value
            JOIN questions ON questions.seq = question_seq""",
            [json.dumps(list(case_ids))],
        )
        return dict(map(tuple, rows))

    def question_record(self, case: Case) -> str:
        """Return the id of the record of a case's question, also if the case isn't stored.

        It is the record that the case would get if it were imported, or else its own id.
        """
        if stored := self.question_records([case.id]).get(case.id):
            return stored
        row = self._database.row(
            """SELECT id FROM questions WHERE id = ?1 OR digest = ?2
            ORDER BY id <> ?1, seq LIMIT 1""",
            [case.question, question_digest(case.query)],
        )
        return case.question if row is None else str(row[0])


def _system(row: sqlite3.Row) -> System:
    details = SystemDetails.model_validate_json(row["details"])
    return System(
        **details.model_dump(),
        name=row["name"],
        cases=row["cases"],
        added_at=row["added_at"],
        changed_at=row["changed_at"],
        changed_by=row["changed_by"],
    )

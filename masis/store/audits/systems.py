"""Stores questions and systems: a case is the answer of one system to one question.

A case's question is the one with the id that it names. If there is none yet, it is the oldest
question in the same words that this system hasn't answered, since traces and files without ids name
no question. Otherwise the case brings a new question.
"""

from __future__ import annotations

import sqlite3

from masis.errors import UnknownRecord
from masis.schema.case import Case
from masis.schema.systems import UNNAMED, System, SystemDetails, question_digest
from masis.store.core.connections import StorePart

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

    def question_of_case(self, case_id: str) -> str:
        """Return the id of the question that a case answers. Raises UnknownRecord."""
        row = self._database.row(
            "SELECT questions.id FROM cases JOIN questions ON questions.seq = question_seq"
            " WHERE cases.id = ?",
            [case_id],
        )
        if row is None:
            raise UnknownRecord(f"there is no case {case_id!r}.")
        return str(row[0])


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

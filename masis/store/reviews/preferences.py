"""Stores preferences between two systems' answers: an append-only log and the verdicts in force.

The log has a chain of its own, like the screening log, because a preference is about two cases and
changes the state of neither.
"""

from __future__ import annotations

import sqlite3
from typing import NamedTuple

from masis.errors import Conflict, UnknownRecord
from masis.schema.preference import (
    PairVerdict,
    PreferenceDecision,
    PreferenceDigests,
    PreferenceEntry,
    pair_verdict,
)
from masis.schema.review import SubjectCheck
from masis.store.core.chained_log import ChainedLog, StoredLog, check_subjects
from masis.store.core.connections import StorePart
from masis.store.core.sql import insert

_SELECT = """
    SELECT log.*, written.payload, written.reviewer, left_side.id AS left_case,
        right_side.id AS right_case, undone.id AS undoes_id
    FROM preference_log AS log
    LEFT JOIN preference_log_payloads AS written ON written.entry_seq = log.seq
    LEFT JOIN cases AS left_side ON left_side.seq = log.left_seq
    LEFT JOIN cases AS right_side ON right_side.seq = log.right_seq
    LEFT JOIN preference_log AS undone ON undone.seq = log.undoes
"""

LOG = ChainedLog(
    table="preference_log",
    payloads="preference_log_payloads",
    select=_SELECT,
    noun="preference",
    decision=PreferenceDecision,
    entry=PreferenceEntry,
    columns=("kind", "verdict", "token"),
    links=("left_seq", "right_seq"),
    about=("left_case", "right_case"),
    repeated={"undoes": "undoes_id"}
    | {name: name for name in ("left_case", "right_case", "kind", "verdict", "token")},
)


def _is_comparable(table: str) -> str:
    """Return the condition on cases whose answers are compared, as in the index for it.

    Copies that measure people, redacted cases, earlier versions and cases without an answer aren't.
    """
    return (
        f"{table}.planted = 0 AND {table}.redaction_seq IS NULL AND {table}.answer_length > 0"
        f" AND {table}.state <> 'superseded'"
    )


_PAIRS = f"""SELECT question_seq, systems * (systems - 1) / 2 AS pairs FROM (
    SELECT question_seq, count(DISTINCT system) AS systems FROM cases
    WHERE {_is_comparable("cases")} AND question_seq NOTNULL GROUP BY question_seq)
    WHERE systems > 1"""  # noqa: S608 (our own SQL)
"""The number of pairs of systems that answered a question, for each question with one."""

_OWN = f"""FROM preferences JOIN cases AS first ON first.seq = first_seq
    JOIN cases AS second ON second.seq = second_seq
    WHERE preferences.reviewer = ? AND {_is_comparable("first")} AND {_is_comparable("second")}"""

_DECIDED = f"""SELECT preferences.question_seq {_OWN} GROUP BY preferences.question_seq
    HAVING count(DISTINCT json_array(min(first.system, second.system),
            max(first.system, second.system))) >=
        (SELECT pairs FROM ({_PAIRS}) AS open
            WHERE open.question_seq = preferences.question_seq)"""  # noqa: S608
"""The questions of which a reviewer has decided every pair."""


class AnswerOfSystem(NamedTuple):
    """A system's newest answer to a question: the system, and the number and id of the case."""

    system: str
    seq: int
    case_id: str


class StoredPreference(NamedTuple):
    """A verdict in force, regardless of the sides.

    ``is_first_left`` says whether the case that was added first was on the left.
    """

    entry: str
    reviewer: str
    question: int
    first_system: str
    second_system: str
    first_case: str
    second_case: str
    verdict: PairVerdict
    is_first_left: bool


class PreferenceText(NamedTuple):
    """What a list of preferences shows of one: its time, its reason, and the question's words."""

    at: str
    reason: str
    query: str


class PreferenceLog(StoredLog[PreferenceDecision, PreferenceEntry]):
    """The preference log of a store."""

    log = LOG

    def append(self, decision: PreferenceDecision) -> PreferenceEntry:
        """Append a preference or its undo, and update the verdicts in force.

        If the ``token`` was used before, its first entry is returned and nothing is appended.

        Raises:
            UnknownRecord: There is no such case or entry.
            Conflict: The cases answer different questions, the reviewer has decided them already,
                or the entry is undone already or isn't the reviewer's.

        """
        LOG.payload_of(decision)  # raises before anything is written if it can't be stored
        with self._database.transaction() as connection:
            if first := LOG.with_token(connection, decision, ("left_case", "right_case", "kind")):
                return first
            left = _case_row(connection, decision.left_case)
            right = _case_row(connection, decision.right_case)
            if left["question_seq"] != right["question_seq"]:
                raise Conflict("the two answers are to different questions.")
            undone = _find_undone(connection, decision)
            about = PreferenceDigests(left=left["digest"], right=right["digest"])
            if decision.kind == "preference":
                _assert_undecided(connection, decision, left, right)
            entry = LOG.append(
                connection,
                decision.model_copy(update={"about": about}),
                self._database.now(),
                {"left_seq": left["seq"], "right_seq": right["seq"], "undoes": undone},
            )
            if undone is not None:
                connection.execute("DELETE FROM preferences WHERE entry_seq = ?", [undone])
            elif decision.verdict is not None:
                is_first_left = left["seq"] < right["seq"]
                row = {
                    "reviewer": decision.reviewer,
                    "question_seq": left["question_seq"],
                    "first_seq": min(left["seq"], right["seq"]),
                    "second_seq": max(left["seq"], right["seq"]),
                    "verdict": pair_verdict(decision.verdict, is_first_left=is_first_left),
                    "entry_seq": entry.seq,
                }
                insert(connection, "preferences", row)
            return entry

    def newest_of(self, reviewer: str) -> PreferenceEntry | None:
        """Return the newest verdict of a reviewer that is in force and not redacted, or None."""
        newest = """log.seq = (SELECT max(preferences.entry_seq) FROM preferences
            JOIN preference_log_payloads AS own ON own.entry_seq = preferences.entry_seq
            WHERE preferences.reviewer = ?)"""
        with self._database.reading() as connection:
            return next(map(LOG.entry_of, LOG.rows(connection, newest, [reviewer])), None)

    def on_redacted(self, connection: sqlite3.Connection, row: sqlite3.Row) -> None:
        """Change nothing: the verdict stays in force, and its reason is in the payload only."""

    def check_subjects(self) -> SubjectCheck:
        """Compare the entries with the digests of their cases."""
        with self._database.reading() as connection:
            rows = connection.execute(
                """SELECT log.seq, log.id, written.payload, left_side.digest AS left_digest,
                    right_side.digest AS right_digest
                FROM preference_log AS log
                LEFT JOIN preference_log_payloads AS written ON written.entry_seq = log.seq
                LEFT JOIN cases AS left_side ON left_side.seq = log.left_seq
                LEFT JOIN cases AS right_side ON right_side.seq = log.right_seq
                WHERE log.kind <> 'redaction' ORDER BY log.seq"""
            )
            return check_subjects(rows, PreferenceDecision, LOG.noun, _find_altered_answers)


class Preferences(StorePart):
    """Reads the pairs of answers to compare and the verdicts in force."""

    def next_question(self, reviewer: str) -> int | None:
        """Return the first question with a pair that this reviewer hasn't decided, or None.

        Questions from the last decided one on come first, because skipping 45,000 decided ones
        takes a quarter of a second.
        """
        last = self._database.value(
            "SELECT coalesce(max(question_seq), 0) FROM preferences WHERE reviewer = ?", [reviewer]
        )
        for earliest in dict.fromkeys((last, 0)):
            row = self._database.row(
                f"""SELECT question_seq FROM ({_PAIRS}) AS open
                WHERE question_seq >= ? AND pairs > (
                    SELECT count(DISTINCT json_array(min(first.system, second.system),
                        max(first.system, second.system)))
                    {_OWN} AND preferences.question_seq = open.question_seq)
                ORDER BY question_seq LIMIT 1""",  # noqa: S608 (our own SQL)
                [earliest, reviewer],
            )
            if row is not None:
                return int(row[0])
        return None

    def answers(self, question: int) -> tuple[AnswerOfSystem, ...]:
        """Return the newest answer of each system to a question, in the order of the cases."""
        rows = self._database.execute(
            f"""SELECT system, max(seq) AS seq, id FROM cases
            WHERE question_seq = ? AND {_is_comparable("cases")} GROUP BY system ORDER BY seq""",  # noqa: S608
            [question],
        )
        return tuple(AnswerOfSystem(*row) for row in rows)

    def question_of(self, case_id: str) -> int:
        """Return the number of the question that a case answers. Raises UnknownRecord."""
        with self._database.reading() as connection:
            return int(_case_row(connection, case_id)["question_seq"])

    def decided_pairs(self, reviewer: str, question: int) -> set[frozenset[str]]:
        """Return the pairs of systems that a reviewer has decided on a question."""
        rows = self._database.execute(
            f"SELECT first.system, second.system {_OWN} AND preferences.question_seq = ?",
            [reviewer, question],
        )
        return {frozenset(row) for row in rows}

    def count(self, reviewer: str) -> tuple[int, int]:
        """Return how many pairs a reviewer has decided, and how many there are."""
        (total,) = self._database.cached_rows(f"SELECT coalesce(sum(pairs), 0) FROM ({_PAIRS})")[0]  # noqa: S608
        (done,) = self._database.cached_rows(f"SELECT count(*) {_OWN}", [reviewer])[0]
        return int(done), int(total)

    def verdicts(self, viewer: str | None) -> list[StoredPreference]:
        """Return the verdicts in force, in the order of the questions.

        Args:
            viewer: The reviewer who looks: only the questions of which they decided every pair are
                included, since others' verdicts and the names of systems are hidden before. None
                for all verdicts.

        """
        seen, bound = "", list[str]()
        if viewer is not None:
            seen, bound = f"AND preferences.question_seq IN ({_DECIDED})", [viewer]
        rows = self._database.cached_rows(
            f"""SELECT log.id, preferences.reviewer, preferences.question_seq,
                first.system, second.system, first.id, second.id, preferences.verdict,
                log.left_seq = first_seq
            FROM preferences JOIN preference_log AS log ON log.seq = entry_seq
            JOIN cases AS first ON first.seq = first_seq
            JOIN cases AS second ON second.seq = second_seq
            WHERE first.state <> 'superseded' AND second.state <> 'superseded' {seen}
            ORDER BY preferences.question_seq, first_seq, second_seq, preferences.reviewer""",  # noqa: S608
            bound,
        )
        return [StoredPreference._make((*row[:-1], bool(row[-1]))) for row in map(tuple, rows)]

    def texts(self, entries: tuple[str, ...]) -> dict[str, PreferenceText]:
        """Return what a list shows of these entries, by their ids."""
        marks = ", ".join("?" * len(entries))
        rows = self._database.execute(
            f"""SELECT log.id, log.at, coalesce(written.payload ->> '$.reason', ''), query_start
            FROM preference_log AS log
            LEFT JOIN preference_log_payloads AS written ON written.entry_seq = log.seq
            JOIN cases ON cases.seq = log.left_seq WHERE log.id IN ({marks})""",  # noqa: S608
            list(entries),
        )
        return {row[0]: PreferenceText(*row[1:]) for row in map(tuple, rows)}


def redact_preferences(
    connection: sqlite3.Connection, case_seq: int, *, by: str, reason: str, at: str
) -> int:
    """Redact the entries about a case, whose reasons may repeat its text, and return the number."""
    rows = LOG.rows(
        connection,
        "(log.left_seq = ?1 OR log.right_seq = ?1) AND log.kind <> 'redaction'"
        " AND written.payload IS NOT NULL",
        [case_seq],
    )
    for row in rows:
        LOG.redact(connection, row, by=by, reason=reason, at=at)
    return len(rows)


def _case_row(connection: sqlite3.Connection, case_id: str) -> sqlite3.Row:
    row: sqlite3.Row | None = connection.execute(
        "SELECT seq, question_seq, digest FROM cases WHERE id = ?", [case_id]
    ).fetchone()
    if row is None:
        raise UnknownRecord(f"there is no case {case_id!r}.")
    return row


def _assert_undecided(
    connection: sqlite3.Connection,
    decision: PreferenceDecision,
    left: sqlite3.Row,
    right: sqlite3.Row,
) -> None:
    numbers = sorted((left["seq"], right["seq"]))
    values = [decision.reviewer, left["question_seq"], *numbers]
    decided = connection.execute(
        """SELECT 1 FROM preferences
        WHERE reviewer = ? AND question_seq = ? AND first_seq = ? AND second_seq = ?""",
        values,
    ).fetchone()
    if decided is not None:
        raise Conflict("you have decided this pair already. Undo that verdict first.")


def _find_undone(connection: sqlite3.Connection, decision: PreferenceDecision) -> int | None:
    """Return the number of the entry that an undo cancels, None for other entries."""
    if decision.undoes is None:
        return None
    row = LOG.row(connection, decision.undoes)
    in_force = connection.execute(
        "SELECT reviewer FROM preferences WHERE entry_seq = ?", [row["seq"]]
    ).fetchone()
    if in_force is None:
        raise Conflict(f"entry {row['id']} of the preference log isn't in force.")
    if in_force["reviewer"] != decision.reviewer:
        raise Conflict(f"entry {row['id']} of the preference log is another reviewer's.")
    return int(row["seq"])


def _find_altered_answers(row: sqlite3.Row, decision: PreferenceDecision) -> list[str]:
    assert decision.about is not None  # check_subjects names entries without digests itself
    return [
        f"the answer on the {side} was altered after the verdict"
        for side, decided, stored in (
            ("left", decision.about.left, row["left_digest"]),
            ("right", decision.about.right, row["right_digest"]),
        )
        if decided != stored
    ]

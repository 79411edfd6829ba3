"""Stores judge versions, and reads the decided cases that may be shown to the judge as examples.

A case is an example only while a person's decision about its original answer is in force and no
decision of it is pending. So nothing that others haven't finished reaches a prompt or a page.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Collection, Sequence

from masis.errors import Conflict, UnknownRecord
from masis.schema.judge import (
    JUDGE_STATES,
    JudgeAdoption,
    JudgeContent,
    JudgeExample,
    JudgeState,
    JudgeVersion,
)
from masis.store.audits.conditions import match
from masis.store.core.connections import StorePart
from masis.store.core.sql import insert
from masis.store.jobs import pack, unpack
from masis.store.reviews.team import Team

MOST_SEARCHED_WORDS = 24
"""Maximum number of words per question by which examples are searched."""

# A decision about a revision says nothing about the answer that the case came with, and the
# simulated decisions of the demo are nobody's.
_DECIDED = """JOIN decision_log AS log ON log.seq = cases.decision_seq
    JOIN decision_payloads AS written ON written.entry_seq = log.seq
    WHERE cases.pending = 0 AND cases.state IN ('approved', 'overridden', 'rejected')
        AND NOT cases.planted AND cases.redaction_seq IS NULL AND log.source = 'HUMAN'
        AND NOT written.simulated AND coalesce(written.payload ->> '$.iteration', 1) = 1"""

_VERSION = """SELECT versions.*, contents.payload FROM judge_versions AS versions
    JOIN judge_contents AS contents
        ON contents.version_id = versions.id AND contents.digest = versions.digest"""


# The unary + keeps SQLite from asking FTS5 for one rowid after another. bm25() would then count the
# words in all cases each time: 5,000 of 100,000 cases took 560 s, and take 0.3 s in one pass.
WITH_SIMILAR_WORDS = """SELECT cases.id FROM case_words JOIN cases ON cases.seq = case_words.rowid
    WHERE case_words MATCH ? AND +case_words.rowid IN (
        SELECT named.seq FROM json_each(?) JOIN cases AS named ON named.id = value)
    ORDER BY bm25(case_words), cases.seq LIMIT ?"""
"""Finds cases by words, among those named in a JSON list."""


class JudgeVersions(StorePart):
    """The judge versions of a store."""

    def all(self) -> tuple[JudgeVersion, ...]:
        """Return all versions, newest first."""
        rows = self._database.execute(f"{_VERSION} ORDER BY versions.seq DESC")
        return tuple(map(_version_of, rows))

    def get(self, name: str) -> JudgeVersion:
        """Return a version by its id or its name.

        Raises:
            UnknownRecord: There is no such version.

        """
        row = self._database.row(
            f"{_VERSION} WHERE versions.id = ? OR versions.name = ?"
            " ORDER BY versions.id = ? DESC LIMIT 1",
            [name, name, name],
        )
        if row is None:
            raise UnknownRecord(
                f"there is no judge version {name!r}. List them with 'masis judge list'."
            )
        return _version_of(row)

    def find_adopted(self) -> JudgeVersion | None:
        """Return the version that audits use, or None while they use the default judge."""
        row = self._database.row(f"{_VERSION} WHERE versions.state = 'adopted'")
        return None if row is None else _version_of(row)

    def find_adopted_pin(self) -> str | None:
        """Return ``JudgeVersion.pinned`` of the version that audits use, without its content."""
        row = self._database.row(
            "SELECT id || '@' || digest FROM judge_versions WHERE state = 'adopted'"
        )
        return None if row is None else str(row[0])

    def content(self, version_id: str, digest: str) -> JudgeContent:
        """Return a content that a version has or had.

        Raises:
            UnknownRecord: The version never had such a content.

        """
        row = self._database.row(
            "SELECT payload FROM judge_contents WHERE version_id = ? AND digest = ?",
            [version_id, digest],
        )
        if row is None:
            raise UnknownRecord(f"there is no judge version {version_id}@{digest}.")
        return JudgeContent.model_validate_json(unpack(row[0]))

    def add(self, version: JudgeVersion) -> None:
        """Store a new version.

        Raises:
            Conflict: Another version has the name.

        """
        with self._database.transaction() as connection:
            _assert_name_free(connection, version)
            row = version.model_dump(mode="json", exclude={"content"})
            insert(connection, "judge_versions", row)
            self._add_content(connection, version)

    def change(self, version: JudgeVersion) -> None:
        """Replace the name, the note and the content of a draft.

        Raises:
            UnknownRecord: There is no such version.
            Conflict: It isn't a draft any more, or another version has the name.

        """
        with self._database.transaction() as connection:
            state = self.get(version.id).state
            if state != "draft":
                raise Conflict(
                    f"{version.name!r} is {state}, so it can't be changed. Copy it into a new"
                    " draft."
                )
            _assert_name_free(connection, version)
            connection.execute(
                "UPDATE judge_versions SET name = ?, note = ?, digest = ?, changed_at = ?"
                " WHERE id = ?",
                [version.name, version.note, version.digest, version.changed_at, version.id],
            )
            self._add_content(connection, version)

    def set_state(self, version_id: str, state: JudgeState, by: str) -> JudgeVersion:
        """Adopt, drop or retire a version. Adopting one retires the version adopted before.

        What audits use is also a record of the team's chain (``JudgeAdoption``), so that it can't
        be changed later without a trace.

        Raises:
            UnknownRecord: There is no such version.
            Conflict: Its state doesn't allow that.

        """
        with self._database.transaction() as connection:
            version, now = self.get(version_id), self._database.now()
            if state not in JUDGE_STATES[version.state].then:
                raise Conflict(f"{version.name!r} is {version.state}, so it can't be {state}.")
            update = (
                "UPDATE judge_versions SET state = ?, decided_at = ?, decided_by = ? WHERE {} = ?"
            )
            if state == "adopted":
                connection.execute(update.format("state"), ["retired", now, by, "adopted"])
            connection.execute(update.format("id"), [state, now, by, version.id])
            if state == "adopted":
                adoption = JudgeAdoption(judge=version.id, name=version.name, digest=version.digest)
                Team(self._database).put_in_force(by, adoption)
            elif version.state == "adopted":
                Team(self._database).put_in_force(by, JudgeAdoption())
        return self.get(version_id)

    def _add_content(self, connection: sqlite3.Connection, version: JudgeVersion) -> None:
        connection.execute(
            "INSERT OR IGNORE INTO judge_contents VALUES (?, ?, ?, ?)",
            [
                version.id,
                version.digest,
                version.changed_at,
                pack(version.content.model_dump_json()),
            ],
        )

    # Examples

    def decided_among(self, case_ids: Collection[str]) -> frozenset[str]:
        """Return which of these cases may serve as examples now."""
        rows = self._database.execute(
            f"""SELECT cases.id FROM json_each(?) AS named
                CROSS JOIN cases ON cases.id = named.value {_DECIDED}""",  # noqa: S608 (our SQL)
            [json.dumps(list(case_ids))],
        )
        return frozenset(row[0] for row in rows)

    def examples(self, case_ids: Sequence[str]) -> tuple[JudgeExample, ...]:
        """Return the cases that may serve as examples, in the order in which they are named."""
        rows = self._database.execute(
            f"""SELECT cases.id, stored.payload ->> '$.query' AS query,
                    stored.payload ->> '$.answer' AS answer, log.verdict,
                    written.payload ->> '$.reason' AS reason
                FROM json_each(?) AS named CROSS JOIN cases ON cases.id = named.value
                JOIN case_payloads AS stored ON stored.case_seq = cases.seq
                {_DECIDED} ORDER BY named.key""",  # noqa: S608 (our own SQL)
            [json.dumps(list(case_ids))],
        )
        return tuple(
            JudgeExample(
                case_id=row["id"],
                query=row["query"] or "",
                answer=row["answer"] or "",
                verdict=row["verdict"],
                reason=row["reason"] or "",
            )
            for row in rows
        )

    def with_similar_words(self, query: str, case_ids: Sequence[str], limit: int) -> list[str]:
        """Return those of these cases whose question shares words with another, best match first.

        Args:
            query: The question.
            case_ids: The cases to search.
            limit: The most cases to return.

        """
        words = list(dict.fromkeys(query.casefold().split()))[:MOST_SEARCHED_WORDS]
        terms = [term for word in words if (term := match(word)) != '""']
        if not terms:
            return []
        rows = self._database.execute(
            WITH_SIMILAR_WORDS,
            [f"query : ({' OR '.join(terms)})", json.dumps(list(case_ids)), limit],
        )
        return [row[0] for row in rows]


def _assert_name_free(connection: sqlite3.Connection, version: JudgeVersion) -> None:
    taken = connection.execute(
        "SELECT 1 FROM judge_versions WHERE name = ? AND id <> ?", [version.name, version.id]
    ).fetchone()
    if taken:
        raise Conflict(f"there is a judge version {version.name!r} already. Choose another name.")


def _version_of(row: sqlite3.Row) -> JudgeVersion:
    names = set(JudgeVersion.model_fields) - {"content"}
    return JudgeVersion(
        content=JudgeContent.model_validate_json(unpack(row["payload"])),
        **{name: row[name] for name in names},
    )

"""The cases as a queue: search, filters, orders, pages and counts, all in SQL.

A filter becomes one WHERE, and what a person types reaches SQLite as bound values only. A list
narrowed by more than its states is found in one pass over ``cases_filtered``, the index that holds
every column that is filtered or sorted by: a unary ``+`` keeps SQLite from an index of one column,
whose cases it would look up one by one all over the file. Counts are remembered until something is
written (``Database.cached``).
"""

from __future__ import annotations

import hashlib
import json
import sqlite3
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from math import isclose
from typing import Any, NamedTuple, get_args

from masis.errors import UnknownRecord
from masis.schema.review import Standing
from masis.store.core.connections import StorePart
from masis.store.core.sql import Condition, any_of, compare_column, join_conditions, record_of
from masis.store.records import RISK_OF_FITTED, CaseFilter, CasePage, CaseSummary, Facets, risk_of
from masis.views.headline import Headline

QUERY_SHOWN = 200
"""How many characters of the question a list shows."""

NOT_DECIDED: tuple[Standing, ...] = tuple(
    standing
    for standing in get_args(Standing)
    if standing not in ("decided", "planted", "to_review")
)
"""The statuses of cases that still need work."""

_WORDS_SEARCHED = 32
_WORD_LENGTH = 100
_BEGINNING = 3


class Matching(NamedTuple):
    """The cases that a filter matches, as SQL: ``FROM source WHERE where`` with its bound values.

    ``narrowed`` is True if the filter uses more than states, so that no index has the matches in
    order. ``words_only`` is True if it uses only words, which the full-text index counts without
    reading cases.
    """

    source: str
    where: str
    values: tuple[Any, ...]
    narrowed: bool = True
    words_only: bool = False


class _Order(NamedTuple):
    """The sort key of a queue, before the case's number, and its bound values."""

    key: str
    falls: bool = False
    values: tuple[Any, ...] = ()

    def by(self, matching: Matching, *, forward: bool = True) -> str:
        key = f"+{self.key}" if matching.narrowed else self.key
        number = "seq" if forward else "seq DESC"
        return f"{key} {'DESC' if self.falls == forward else 'ASC'}, {number}"

    def beyond(self, connection: sqlite3.Connection, seq: int, *, forward: bool) -> Condition:
        """Return the condition for all cases after (or before) number ``seq``, which need not match
        the filter.
        """
        own = connection.execute(
            f"SELECT {self.key} FROM cases WHERE seq = ?",  # noqa: S608 (every name is ours, what people give is bound; so below)
            [*self.values, seq],
        ).fetchone()[0]
        sign, past = "<" if self.falls == forward else ">", ">" if forward else "<"
        condition = f"{self.key} {sign}= ? AND ({self.key} {sign} ? OR seq {past} ?)"
        return condition, (*self.values, own, *self.values, own, seq)


_ORDERS = {
    "risk": _Order("risk", falls=True),
    "disagreement": _Order("disagreement", falls=True),
    "least_confident": _Order("doubt", falls=True),
    "oldest": _Order("seq"),
    "newest": _Order("seq", falls=True),
}
"""The sort key of each order. ``masis/audit/acceptance.py`` computes the first two when a run ends.
"""

_PRESSING = ("risk", "disagreement", "least_confident")
"""Orders that list cases the viewer can decide before those that wait for others."""

_PRIME = 2_147_483_647
# Multiplying modulo a prime leaves neighbours at even steps from each other, so a small store would
# stay sorted in runs. The fifth power is a permutation modulo this prime and breaks the steps up. A
# function in Python is slower.
_SHUFFLED = (
    f"(SELECT ((x * x % {_PRIME}) * (x * x % {_PRIME}) % {_PRIME}) * x % {_PRIME} "  # noqa: S608
    f"FROM (SELECT (seq * ? + ?) % {_PRIME} AS x))"
)


_BEHIND = 1000
"""Subtracted from the sort key of a case that waits for others; larger than any difference between
keys.
"""


def _order(connection: sqlite3.Connection, case_filter: CaseFilter) -> _Order:
    if case_filter.order in _PRESSING and case_filter.viewer is not None:
        order, mine = _ORDERS[case_filter.order], [case_filter.viewer]
        # without any the index has the order
        if connection.execute(f"SELECT EXISTS ({_OWN_WAITING})", mine).fetchone()[0]:
            behind = f"{order.key} - {_BEHIND} * (seq IN ({_OWN_WAITING}))"
            if case_filter.order == "risk":  # what needs nobody comes last
                behind += f" - {2 * _BEHIND} * (standing = 'nothing_found')"
            return order._replace(key=f"({behind})", values=tuple(mine))
        return order
    if case_filter.order != "random":
        return _ORDERS[case_filter.order]
    drawn = hashlib.sha256(str(case_filter.seed).encode()).digest()
    return _Order(
        _SHUFFLED,
        values=tuple(1 + int.from_bytes(part) % (_PRIME - 1) for part in (drawn[:8], drawn[8:16])),
    )


class Queue(StorePart):
    """Finds, orders and counts the cases of a store."""

    def search(self, case_filter: CaseFilter) -> CasePage:
        """Return one page of the matching cases and their total number."""
        with self._database.reading() as connection:
            found, order = matching(connection, case_filter), _order(connection, case_filter)
            total = self._count(case_filter, found)
            numbers = [
                row[0]
                for row in connection.execute(
                    f"SELECT seq FROM {found.source} WHERE {found.where} ORDER BY {order.by(found)}"  # noqa: S608
                    " LIMIT ? OFFSET ?",
                    [
                        *found.values,
                        *order.values,
                        case_filter.size,
                        (case_filter.page - 1) * case_filter.size,
                    ],
                )
            ]
            among = ("seq IN (SELECT value FROM json_each(?))", [json.dumps(numbers)])
            rows = {row["seq"]: row for row in _queue_rows(connection, among, case_filter.viewer)}
        return CasePage(rows=tuple(_case_summary(rows[seq]) for seq in numbers), total=total)

    def count_matching(self, case_filter: CaseFilter) -> int:
        """Return how many cases match, regardless of page and order."""
        with self._database.reading() as connection:
            return self._count(case_filter, matching(connection, case_filter))

    def _count(self, case_filter: CaseFilter, found: Matching) -> int:
        source = "case_words" if found.words_only else found.source
        sql = f"SELECT count(*) FROM {source} WHERE {found.where}"  # noqa: S608
        if case_filter.open_to is not None:  # a lease ends without anybody writing
            return int(self._database.value(sql, found.values))
        return int(self._database.cached_rows(sql, found.values)[0][0])

    def summary(self, case_id: str, viewer: str | None = None) -> CaseSummary:
        """Return a case as a reviewer's list shows it. Raises UnknownRecord."""
        with self._database.reading() as connection:
            [row] = _queue_rows(connection, ("seq = ?", [case_seq(connection, case_id)]), viewer)
        return _case_summary(row)

    def beside(
        self, case_id: str, case_filter: CaseFilter, *, forward: bool, without: Collection[str] = ()
    ) -> str | None:
        """Return the neighbour of a case in the filter's order, skipping ``without``, or None at
        the ends.

        The given case need not match the filter, since a decision often removes it from the queue
        it was opened from. Raises UnknownRecord.
        """
        with self._database.reading() as connection:
            beyond = _order(connection, case_filter).beyond(
                connection, case_seq(connection, case_id), forward=forward
            )
            return _first_matching(connection, case_filter, without, forward=forward, beyond=beyond)

    def first(self, case_filter: CaseFilter, *, without: Collection[str] = ()) -> str | None:
        """Return the first case of a queue that isn't in ``without``."""
        with self._database.reading() as connection:
            return _first_matching(connection, case_filter, without)

    def following(
        self, case_id: str, case_filter: CaseFilter, *, without: Collection[str] = ()
    ) -> str | None:
        """Return the next case of a queue that isn't in ``without``, starting over after the last
        one.

        Raises UnknownRecord.
        """
        with self._database.reading() as connection:
            found = self.beside(case_id, case_filter, forward=True, without=without)
            return found or _first_matching(connection, case_filter, without)

    def facets(self, viewer: str | None = None) -> Facets:
        """Which values occur in the whole store, and how often; standings as they are for a
        reviewer.
        """
        with self._database.reading() as connection:
            words = {
                f"{column}s": self._values(column) for column in ("standing", "state", "reviewer")
            }
            [(lesser,)] = self._database.cached_rows(
                "SELECT count(*) FROM cases INDEXED BY cases_severity "
                "WHERE severity > '' AND standing = 'nothing_found'"
            )
            own = connection.execute(
                f"SELECT standing, count(*), count(severity) FROM cases WHERE {_OWN_PENDING} GROUP"  # noqa: S608
                " BY standing",
                [viewer],
            )
            for name, moved, with_issues in own.fetchall():
                words["standings"][name] -= moved
                words["standings"]["waits"] = words["standings"].get("waits", 0) + moved
                lesser -= with_issues if name == "nothing_found" else 0
            words["standings"].pop("planted", None)
            words["states"].pop("planted", None)
            return Facets(**words, flags=_each_of(self._values("flags")), lesser=lesser)

    def values(self, case_filter: CaseFilter, field: str) -> dict[str, int]:
        """How many cases would match with each value of a filter's field in place of what the
        filter has there.
        """
        with self._database.reading() as connection:
            found = matching(connection, case_filter.model_copy(update={field: ()}))
            # all that is asked for stands in this index; by another one the cases would be looked
            # up one by one
            source = "cases INDEXED BY cases_filtered" if found.source == "cases" else found.source
            if kind := _WORK.get(field):
                sql = f"""
                    SELECT who, count(*) FROM case_work
                    WHERE kind = ? AND case_seq IN (SELECT cases.seq FROM {source} WHERE {found.where}) GROUP BY who
                """  # noqa: S608
                return dict(self._database.cached_rows(sql, (kind, *found.values)))
            sql = f"SELECT {_COLUMNS[field]} AS value, count(*) FROM {source} WHERE {found.where} GROUP BY value"  # noqa: S608
            counts = {
                value: cases
                for value, cases in self._database.cached_rows(sql, found.values)
                if value is not None
            }
        return _each_of(counts) if field in _LISTS else counts

    def standings(self, case_filter: CaseFilter) -> tuple[dict[str, int], int]:
        """How many of the cases that match stand where, as the filter's viewer sees it; its
        standings don't matter.

        And how many of those in which nothing was found have lesser issues.
        """
        with self._database.reading() as connection:
            found = matching(connection, case_filter.model_copy(update={"standings": ()}))
            sql = f"""
                SELECT CASE WHEN {_OWN_PENDING} THEN 'waits' ELSE standing END, count(*), count(severity)
                FROM {found.source} WHERE {found.where} GROUP BY 1
            """  # noqa: S608
            counts = self._database.cached_rows(sql, (case_filter.viewer, *found.values))
        lesser = sum(with_issues for name, _, with_issues in counts if name == "nothing_found")
        return {name: cases for name, cases, _ in counts}, lesser

    def states(self) -> dict[str, int]:
        """How many cases are in each state."""
        return {
            state: cases for state, cases in self._values("state").items() if state != "planted"
        }

    def _values(self, column: str) -> dict[str, int]:
        """How many cases have which value in a column, counted once until something is written."""
        # from one value in the index to the next: half the time of GROUP BY, and cases without a
        # value are passed over
        sql = f"""
            WITH RECURSIVE each (value) AS (
                SELECT min({column}) FROM cases
                UNION ALL
                SELECT (SELECT min({column}) FROM cases WHERE {column} > value) FROM each WHERE value IS NOT NULL
            )
            SELECT value, (SELECT count(*) FROM cases WHERE {column} = value) FROM each WHERE value IS NOT NULL
        """  # noqa: S608
        return dict(self._database.cached_rows(sql))


def _each_of(lists: Mapping[str, int]) -> dict[str, int]:
    """How many cases have each of the values that stand in JSON lists."""
    found: Counter[str] = Counter()
    for values, cases in lists.items():
        found.update(dict.fromkeys(json.loads(values), cases))
    return dict(sorted(found.items()))


def case_seq(connection: sqlite3.Connection, case_id: str) -> int:
    """The number of a case within the database. Raises UnknownRecord."""
    row = connection.execute("SELECT seq FROM cases WHERE id = ?", [case_id]).fetchone()
    if row is None:
        raise UnknownRecord(f"there is no case {case_id!r}. `masis import` brings cases in.")
    return int(row[0])


def _first_matching(
    connection: sqlite3.Connection,
    case_filter: CaseFilter,
    without: Collection[str],
    *,
    forward: bool = True,
    beyond: Condition = ("1", ()),
) -> str | None:
    found, order = matching(connection, case_filter), _order(connection, case_filter)
    row = connection.execute(
        f"SELECT cases.id FROM {found.source} WHERE {found.where} AND {beyond[0]} "  # noqa: S608
        # by number, which every index holds: for its id each case would be looked up
        "AND cases.seq NOT IN (SELECT seq FROM cases WHERE id IN (SELECT value FROM json_each(?))) "
        f"ORDER BY {order.by(found, forward=forward)} LIMIT 1",
        [*found.values, *beyond[1], json.dumps(list(without)), *order.values],
    ).fetchone()
    return None if row is None else str(row[0])


def matching(connection: sqlite3.Connection, case_filter: CaseFilter) -> Matching:
    """Read a filter as SQL. Where no case has all words of its text, the last one is taken as a
    beginning.
    """
    standings = case_filter.standings
    parts = [
        *any_of("state", case_filter.states),
        *any_of("+tier", case_filter.tiers),
        *any_of(_COLUMNS["severities"], case_filter.severities),
        *any_of("+field", case_filter.fields),
        *any_of("+dataset", case_filter.datasets),
        *any_of("+reviewer", case_filter.reviewers),
        *_any_in("flags", case_filter.flags),
        *_any_in("reasons", case_filter.reasons),
        *_any_in("models", case_filter.models),
        *compare_column("+quality", ">=", case_filter.quality_from),
        *compare_column("+quality", "<=", case_filter.quality_to),
        *compare_column("+confidence", ">=", case_filter.confidence_from),
        *compare_column("+confidence", "<=", case_filter.confidence_to),
        *_worked_on(_WORK["assignees"], case_filter.assignees),
        *_worked_on(_WORK["tags"], case_filter.tags),
    ]
    if case_filter.undecided_by is not None:
        [(decided, values)] = _worked_on("decided", [case_filter.undecided_by])
        parts.append((f"NOT {decided}", values))
    # those of some states or one standing, and all that are not decided, stand in an index in their
    # order
    ordered = bool(case_filter.states) if parts else len(standings) < 2 or standings == NOT_DECIDED
    narrowed = len(parts) + bool(standings) > 1 or not ordered
    parts += [
        *_standing_conditions("+standing" if narrowed else "standing", case_filter),
        *_open_to(case_filter),
    ]
    if not case_filter.states and not standings and _any_planted(connection):
        parts.append(("+standing <> 'planted'", ()))
    where, bound = join_conditions(parts)
    values = tuple(bound)
    if not case_filter.text.strip():
        return Matching("cases", where, values, narrowed)
    source, where = (
        "case_words CROSS JOIN cases ON cases.seq = case_words.rowid",
        f"case_words MATCH ? AND {where}",
    )
    whole = Matching(source, where, (match(case_filter.text), *values), words_only=not parts)
    if connection.execute(f"SELECT 1 FROM {source} WHERE {where} LIMIT 1", whole.values).fetchone():  # noqa: S608
        return whole
    return whole._replace(values=(match(case_filter.text, beginning=True), *values))


def _any_planted(connection: sqlite3.Connection) -> bool:
    """Return whether a copy with a planted fault is decided: it is on no list that doesn't ask for
    such copies.
    """
    return (
        connection.execute("SELECT 1 FROM cases WHERE standing = 'planted' LIMIT 1").fetchone()
        is not None
    )


_OWN_WAITING = """SELECT case_seq FROM case_work JOIN cases AS shared ON shared.seq = case_seq
    WHERE kind = 'decided' AND who = ? AND (shared.pending > 0 OR shared.state = 'escalated')"""
"""Cases that wait for others after a reviewer's own decision."""

_OWN_PENDING = """cases.seq IN (SELECT case_seq FROM case_work JOIN cases AS shared ON shared.seq = case_seq
    WHERE kind = 'decided' AND who = ? AND shared.pending > 0)"""
"""Cases that a reviewer has decided and that wait for others: only they know of it
(``CaseFilter.viewer``).
"""


def _standing_conditions(column: str, case_filter: CaseFilter) -> list[Condition]:
    standings = case_filter.standings
    if not standings or standings == NOT_DECIDED:  # in the words of the index cases_open
        return [(f"{column} NOT IN ('decided', 'planted')", ())] if standings else []
    [(condition, values)] = any_of(column, standings)
    if case_filter.viewer is None:
        return [(condition, values)]
    own = f"OR {_OWN_PENDING}" if "waits" in standings else f"AND NOT {_OWN_PENDING}"
    return [(f"({condition} {own})", (*values, case_filter.viewer))]


def _any_in(column: str, values: Sequence[str]) -> list[Condition]:
    """Any of the values stands in the JSON list of the column; a quote within a value is escaped
    there.
    """
    looked_for = [json.dumps(value, ensure_ascii=False) for value in values]
    return (
        [(f"({' OR '.join([f'instr({column}, ?)'] * len(values))})", looked_for)] if values else []
    )


def _worked_on(kind: str, names: Sequence[str]) -> list[Condition]:
    """Cases that are assigned to one of these people, or have one of these tags."""
    marks = ", ".join("?" * len(names))
    found = f"cases.seq IN (SELECT case_seq FROM case_work WHERE kind = ? AND who IN ({marks}))"  # noqa: S608
    return [(found, (kind, *names))] if names else []


def _open_to(case_filter: CaseFilter) -> list[Condition]:
    """Cases that a reviewer may take now. Only one that somebody worked on or holds is looked at
    closely.
    """
    if case_filter.open_to is None:
        return []
    work = "SELECT who FROM case_work WHERE case_seq = cases.seq AND kind = '{}'"
    leased = (
        "SELECT reviewer FROM leases WHERE case_seq = cases.seq AND until >"
        " strftime('%Y-%m-%dT%H:%M:%fZ', 'now')"
    )
    decided, assigned, skipped = (work.format(kind) for kind in ("decided", "assigned", "skipped"))
    done = f"{decided} UNION {skipped}" if not case_filter.skipped_too else decided
    condition = f"""
        (cases.seq NOT IN (SELECT case_seq FROM case_work UNION ALL SELECT case_seq FROM leases)
        OR :me NOT IN ({done})
        AND wanted > (
            SELECT count(*) FROM (SELECT who FROM ({decided}) WHERE wanted > 1 UNION {leased}) WHERE who <> :me
        )
        AND (:me IN ({assigned}) OR (SELECT count(*) FROM ({assigned})) < wanted))
    """  # noqa: S608
    return [(condition.replace(":me", "?"), [case_filter.open_to] * condition.count(":me"))]


def match(text: str, *, beginning: bool = False) -> str:
    """What a person typed, as an FTS5 query that finds all its words; nothing in it is read as
    syntax.

    Each word is quoted. With ``beginning`` the last one, which may still be being typed, is found
    as the beginning of a word, from three letters on (one in scripts that write without blanks).
    Text without a letter or digit matches nothing. The first 32 words of at most 100 characters
    count.
    """
    words = [
        word[:_WORD_LENGTH]
        for word in text.replace("\x00", " ").split()
        if any(map(str.isalnum, word))
    ]
    words = words[:_WORDS_SEARCHED]
    if not words:
        return '""'
    open_ended = beginning and (len(words[-1]) >= _BEGINNING or not words[-1].isascii())
    return " AND ".join('"' + word.replace('"', '""') + '"' for word in words) + (
        " *" if open_ended else ""
    )


def _queue_rows(
    connection: sqlite3.Connection, wanted: Condition, viewer: str | None
) -> list[sqlite3.Row]:
    """The rows of the cases that a condition names, as they stand for a reviewer."""
    return connection.execute(
        f"""
        SELECT cases.*, runs.id AS run_id, runs.likely, pending > 0 AND {_OWN_PENDING} AS waits FROM cases
        LEFT JOIN runs ON runs.seq = run_seq
        WHERE cases.{wanted[0]}
        """,  # noqa: S608
        [viewer, *wanted[1]],
    ).fetchall()


_LISTS = ("models", "flags", "reasons")
_COLUMNS = {
    "severities": "CASE WHEN iterations > 0 THEN coalesce(severity, 'none') END",
    **{f"{word}s": word for word in ("state", "field", "dataset", "reviewer")},
    **{name: name for name in _LISTS},
}
_WORK = {"assignees": "assigned", "tags": "tagged"}
"""Where the values of a filter's fields stand: in columns of the cases, and among the
work on them.
"""


def _case_summary(row: sqlite3.Row) -> CaseSummary:
    """Return a row as lists show it, with its headline in words."""
    query, likely, stored = row["query_start"], row["likely"], row["headline"]
    # a fitted score may order it
    if likely is not None and not isclose(
        row["risk"], risk_of(row["tier"], row["severity"], likely)
    ):
        likely = row["risk"] / RISK_OF_FITTED
    return record_of(
        CaseSummary,
        row,
        parsed=_LISTS,
        query=query if len(query) <= QUERY_SHOWN else query[: QUERY_SHOWN - 1] + "…",
        standing="waits" if row["waits"] else row["standing"],
        headline=stored and Headline.model_validate_json(stored).lines,
        disagreement=row["disagreement"] if row["iterations"] else None,
        # an audit that failed is no estimate, only in order
        fault_probability=likely if row["iterations"] else None,
    )

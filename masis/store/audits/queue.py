"""The cases as a queue: search, filters, orders, pages and counts, all in SQL.

Each filter becomes one WHERE clause, and user input reaches SQLite only as bound values. A list
filtered by more than states is read in one pass over ``cases_filtered``, the index with every
column to filter or sort by. A unary ``+`` before a column keeps SQLite from using that column's own
index, which would need a lookup in the table for every case (SQLite query planner, "Disqualifying
WHERE clause terms using unary +"). Counts are cached until something is written
(``Database.cached_rows``).
"""

from __future__ import annotations

import contextlib
import json
import re
import sqlite3
from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from math import isclose
from typing import Any, NamedTuple, get_args

from masis.errors import UnknownRecord
from masis.schema.review import Standing
from masis.store.audits.answers import similar_to_any
from masis.store.audits.conditions import (
    BY_AUDIT,
    COLUMNS,
    LISTS,
    WORK,
    content_conditions,
    is_filled_by_audit,
    match,
    worked_on,
)
from masis.store.core.connections import Connection, Database, StorePart
from masis.store.core.sql import Condition, any_of, join_conditions, record_of
from masis.store.orders import ORDERS, fitted_probability, risk_of
from masis.store.records import CaseFilter, CasePage, CaseSummary, Facets
from masis.store.reviews.observations import derive_all_due
from masis.store.reviews.queues import (
    DECIDED_IN_FIRST,
    in_queue,
    named_queue,
    open_queues,
    where_waits,
)
from masis.store.reviews.visibility import (
    hidden_sample,
    strictest_shown,
    visible_codes,
    visible_observations,
)
from masis.views.headline import Headline

QUERY_SHOWN = 200
"""How many characters of the question a list shows."""

NOT_DECIDED: tuple[Standing, ...] = tuple(
    standing
    for standing in get_args(Standing)
    if standing not in ("decided", "planted", "to_review")
)
"""The statuses of cases that still need work."""


class Matching(NamedTuple):
    """The cases that a filter matches, as SQL: ``FROM source WHERE where`` with its bound values.

    ``narrowed`` is True if no index has the matches in order, because the filter uses more than
    states or a status. ``words_only`` is True if the filter uses only words, which the full-text
    index counts without reading cases.
    """

    source: str
    where: str
    values: tuple[Any, ...]
    narrowed: bool = True
    words_only: bool = False


class _SortKey(NamedTuple):
    """The SQL expression that a queue is sorted by, with its bound values.

    Cases with the same key are sorted by their number.
    """

    key: str
    descending: bool
    values: tuple[Any, ...]

    def order_by_sql(self, matches: Matching, *, forward: bool = True) -> str:
        key = f"+{self.key}" if matches.narrowed else self.key
        number = "seq" if forward else "seq DESC"
        return f"{key} {'DESC' if self.descending == forward else 'ASC'}, {number}"

    def after_condition(
        self, connection: sqlite3.Connection, seq: int, *, forward: bool
    ) -> Condition:
        """Return the condition for all cases after (or before) number ``seq``, which need not match
        the filter.
        """
        own = connection.execute(
            # Every name is from ``ORDERS``, and values from people are bound (so below).
            f"SELECT {self.key} FROM cases WHERE seq = ?",  # noqa: S608
            [*self.values, seq],
        ).fetchone()[0]
        sign, past = "<" if self.descending == forward else ">", ">" if forward else "<"
        # The first comparison alone limits the range of the index. SQLite can't use an index for
        # the OR behind it.
        condition = f"{self.key} {sign}= ? AND ({self.key} {sign} ? OR seq {past} ?)"
        return condition, (*self.values, own, *self.values, own, seq)


_WAITING_PENALTY = 1000
"""Subtracted from the sort key of a case that waits for others.

It is larger than any difference between keys.
"""


_SAMPLE_SORT_KEY = 1_000_000
"""The sort key of the cases drawn for a guarantee, whose own keys would reveal the verdict.

They come first, because they have to be decided.
"""


def _sort_key(connection: sqlite3.Connection, case_filter: CaseFilter) -> _SortKey:
    order = ORDERS[case_filter.order]
    key, viewer = order.key, case_filter.viewer
    values: tuple[Any, ...] = order.values(case_filter.seed)
    sample = _sample_of(connection, case_filter) if order.by_audit else ""
    if sample:
        ahead = _SAMPLE_SORT_KEY if order.descending else -_SAMPLE_SORT_KEY
        key = f"(CASE WHEN {_IN_SAMPLE} THEN {ahead} ELSE {key} END)"
        values = (sample, *values)
    # If no case waits for others, the key stays the indexed column, so SQLite sorts nothing.
    if (
        order.by_audit
        and viewer is not None
        and connection.execute(f"SELECT EXISTS ({_OWN_WAITING})", [viewer]).fetchone()[0]
    ):
        key = f"{key} - {_WAITING_PENALTY} * (seq IN ({_OWN_WAITING}))"
        if order.last:
            key += f" - {2 * _WAITING_PENALTY} * ({order.last})"
        key, values = f"({key})", (*values, viewer)
    return _SortKey(key, order.descending, values)


@contextlib.contextmanager
def reading_matches(database: Database, case_filter: CaseFilter) -> Iterator[Connection]:
    """Read one state of the database, in which this filter finds everything that people wrote.

    A migration removes the observations of cases, so they may have to be derived first.
    """
    if case_filter.text.strip() or case_filter.modes or case_filter.causes:
        derive_all_due(database)
    with database.reading() as connection:
        yield connection


class Queue(StorePart):
    """Finds, orders and counts the cases of a store."""

    def search(self, case_filter: CaseFilter) -> CasePage:
        """Return one page of the matching cases and their total number."""
        with reading_matches(self._database, case_filter) as connection:
            matches, order = matching(connection, case_filter), _sort_key(connection, case_filter)
            total = self._count(case_filter, matches)
            numbers = [
                row[0]
                for row in connection.execute(
                    f"SELECT seq FROM {matches.source} WHERE {matches.where}"  # noqa: S608
                    f" ORDER BY {order.order_by_sql(matches)} LIMIT ? OFFSET ?",
                    [
                        *matches.values,
                        *order.values,
                        case_filter.size,
                        (case_filter.page - 1) * case_filter.size,
                    ],
                )
            ]
            on_page = ("seq IN (SELECT value FROM json_each(?))", [json.dumps(numbers)])
            rows = {row["seq"]: row for row in _queue_rows(connection, on_page, case_filter.viewer)}
        return CasePage(rows=tuple(_case_summary(rows[seq]) for seq in numbers), total=total)

    def count_matching(self, case_filter: CaseFilter) -> int:
        """Return how many cases match, regardless of page and order."""
        with reading_matches(self._database, case_filter) as connection:
            return self._count(case_filter, matching(connection, case_filter))

    def _count(self, case_filter: CaseFilter, matches: Matching) -> int:
        source = "case_words" if matches.words_only else matches.source
        sql = f"SELECT count(*) FROM {source} WHERE {matches.where}"  # noqa: S608
        if case_filter.open_to is not None:  # a lease expires without a write, so no cache
            return int(self._database.value(sql, matches.values))
        return int(self._database.cached_rows(sql, matches.values)[0][0])

    def summary(self, case_id: str, viewer: str | None = None) -> CaseSummary:
        """Return a case as a reviewer's list shows it. Raises UnknownRecord."""
        with self._database.reading() as connection:
            [row] = _queue_rows(connection, ("seq = ?", [case_seq(connection, case_id)]), viewer)
        return _case_summary(row)

    def neighbor(
        self, case_id: str, case_filter: CaseFilter, *, forward: bool, without: Collection[str] = ()
    ) -> str | None:
        """Return the neighbor of a case in the filter's order, skipping ``without``, or None at
        the ends.

        The given case need not match the filter, since a decision often removes it from the queue
        it was opened from. Raises UnknownRecord.
        """
        with reading_matches(self._database, case_filter) as connection:
            beyond = _sort_key(connection, case_filter).after_condition(
                connection, case_seq(connection, case_id), forward=forward
            )
            return _first_matching(connection, case_filter, without, forward=forward, beyond=beyond)

    def first(self, case_filter: CaseFilter, *, without: Collection[str] = ()) -> str | None:
        """Return the first case of a queue that isn't in ``without``."""
        with reading_matches(self._database, case_filter) as connection:
            return _first_matching(connection, case_filter, without)

    def following(
        self, case_id: str, case_filter: CaseFilter, *, without: Collection[str] = ()
    ) -> str | None:
        """Return the next case of a queue that isn't in ``without``, starting over after the last
        one.

        Raises UnknownRecord.
        """
        with reading_matches(self._database, case_filter) as connection:
            neighbor = self.neighbor(case_id, case_filter, forward=True, without=without)
            return neighbor or _first_matching(connection, case_filter, without)

    def facets(self, viewer: str | None = None) -> Facets:
        """Count the values of all cases in the store, with the statuses as a reviewer sees them."""
        with self._database.reading() as connection:
            words = {
                f"{column}s": self._values(column) for column in ("standing", "state", "reviewer")
            }
            [(minor,)] = self._database.cached_rows(
                # INDEXED BY makes the statement fail, instead of getting slow, if the index is ever
                # removed.
                "SELECT count(*) FROM cases INDEXED BY cases_severity "
                "WHERE severity > '' AND standing = 'nothing_found'"
            )
            own = connection.execute(
                "SELECT standing, count(*), count(severity) FROM cases"  # noqa: S608
                f" WHERE {_OWN_PENDING} GROUP BY standing",
                [viewer],
            )
            for name, moved, with_issues in own.fetchall():
                words["standings"][name] -= moved
                words["standings"]["waits"] = words["standings"].get("waits", 0) + moved
                minor -= with_issues if name == "nothing_found" else 0
            flags = Counter(_count_items(self._values("flags")))
            for row in connection.execute(
                f"SELECT standing, state, severity, flags FROM cases WHERE {_IN_SAMPLE}",  # noqa: S608
                [_sample_of(connection, CaseFilter(viewer=viewer)) or "[]"],
            ).fetchall():
                for values, shown, own_value in (
                    (words["standings"], "to_review", row["standing"]),
                    (words["states"], "needs_review", row["state"]),
                ):
                    values[own_value] -= 1
                    values[shown] = values.get(shown, 0) + 1
                minor -= row["standing"] == "nothing_found" and row["severity"] is not None
                flags.subtract(set(json.loads(row["flags"])))
            for values in words.values():
                values.pop("planted", None)
            counts = {
                name: {value: number for value, number in values.items() if number}
                for name, values in (*words.items(), ("flags", flags))
            }
            return Facets(**counts, minor=minor)

    def values(self, case_filter: CaseFilter, field: str) -> dict[str, int]:
        """Count the cases that would match with each value of a field, by that value.

        The filter's own values of the field are ignored.
        """
        with reading_matches(self._database, case_filter) as connection:
            matches = matching(connection, case_filter.model_copy(update={field: ()}))
            sample = _sample_of(connection, case_filter)
            if sample and field in BY_AUDIT:
                where = f"{matches.where} AND NOT {_IN_SAMPLE}"
                matches = matches._replace(where=where, values=(*matches.values, sample))
            # This index has all columns that are read. With another one, SQLite would look up each
            # case.
            source = (
                "cases INDEXED BY cases_filtered" if matches.source == "cases" else matches.source
            )
            if coded := _CODED.get(field):
                codes = visible_codes(connection, case_filter.viewer or case_filter.open_to)
                seen, bound = join_conditions(codes)
                sql = f"""
                    SELECT {coded.value} AS value, count(DISTINCT case_codes.case_seq)
                    FROM case_codes {coded.join}
                    WHERE value NOTNULL AND {seen} AND case_codes.case_seq IN
                        (SELECT cases.seq FROM {source} WHERE {matches.where})
                    GROUP BY value
                """  # noqa: S608
                return dict(self._database.cached_rows(sql, (*bound, *matches.values)))
            if kind := WORK.get(field):
                sql = f"""
                    SELECT who, count(*) FROM case_work
                    WHERE kind = ?
                        AND case_seq IN (SELECT cases.seq FROM {source} WHERE {matches.where})
                    GROUP BY who
                """  # noqa: S608
                return dict(self._database.cached_rows(sql, (kind, *matches.values)))
            column, values = COLUMNS[field], matches.values
            if sample and field == "states":
                column = f"CASE WHEN {_IN_SAMPLE} THEN 'needs_review' ELSE {column} END"
                values = (sample, *values)
            sql = f"""
                SELECT {column} AS value, count(*)
                FROM {source} WHERE {matches.where} GROUP BY value
            """  # noqa: S608
            counts = {
                value: cases
                for value, cases in self._database.cached_rows(sql, values)
                if value is not None
            }
        return _count_items(counts) if field in LISTS else counts

    def standings(self, case_filter: CaseFilter) -> tuple[dict[str, int], int]:
        """Count the matching cases by status, and those of ``nothing_found`` with an issue.

        The statuses are those that the filter's viewer sees; the filter's own are ignored.
        """
        with reading_matches(self._database, case_filter) as connection:
            matches = matching(connection, case_filter.model_copy(update={"standings": ()}))
            sample = _sample_of(connection, case_filter) or "[]"
            sql = f"""
                SELECT CASE WHEN {_OWN_PENDING} THEN 'waits'
                        WHEN {_IN_SAMPLE} THEN 'to_review' ELSE standing END,
                    count(*), count(severity)
                FROM {matches.source} WHERE {matches.where} GROUP BY 1
            """  # noqa: S608
            bound = (case_filter.viewer, sample, *matches.values)
            counts = self._database.cached_rows(sql, bound)
        minor = sum(with_issues for name, _, with_issues in counts if name == "nothing_found")
        return {name: cases for name, cases, _ in counts}, minor

    def states(self) -> dict[str, int]:
        """Count the cases by state."""
        return {
            state: cases for state, cases in self._values("state").items() if state != "planted"
        }

    def _values(self, column: str) -> dict[str, int]:
        """Count the cases by their value in a column; cases without a value aren't counted."""
        # Going from one value in the index to the next takes half the time of GROUP BY.
        sql = f"""
            WITH RECURSIVE "values" (value) AS (
                SELECT min({column}) FROM cases
                UNION ALL
                SELECT (SELECT min({column}) FROM cases WHERE {column} > value) FROM "values"
                WHERE value IS NOT NULL
            )
            SELECT value, (SELECT count(*) FROM cases WHERE {column} = value) FROM "values"
            WHERE value IS NOT NULL
        """  # noqa: S608
        return dict(self._database.cached_rows(sql))


def _count_items(lists: Mapping[str, int]) -> dict[str, int]:
    """Return the number of cases by item, from the number of cases by JSON list."""
    counts: Counter[str] = Counter()
    for items, cases in lists.items():
        # dict.fromkeys() counts a case once, even if its list repeats an item.
        counts.update(dict.fromkeys(json.loads(items), cases))
    return dict(sorted(counts.items()))


def case_seq(connection: sqlite3.Connection, case_id: str) -> int:
    """Return the number of a case within the database. Raises UnknownRecord."""
    row = connection.execute("SELECT seq FROM cases WHERE id = ?", [case_id]).fetchone()
    if row is not None:
        return int(row[0])
    # "q1" of a system "v2" is stored as "q1:v2". The range finds these ids by the index; ";" is
    # the character after ":".
    answers = connection.execute(
        "SELECT id FROM cases WHERE id > ? AND id < ? ORDER BY id LIMIT 3",
        [f"{case_id}:", f"{case_id};"],
    ).fetchall()
    if answers:
        ids = ", ".join(repr(row[0]) for row in answers)
        raise UnknownRecord(
            f"there is no case {case_id!r}. Did you mean an answer from one system: {ids}?"
        )
    raise UnknownRecord(f"there is no case {case_id!r}. Import cases with `masis import`.")


def _first_matching(
    connection: sqlite3.Connection,
    case_filter: CaseFilter,
    without: Collection[str],
    *,
    forward: bool = True,
    beyond: Condition = ("1", ()),
) -> str | None:
    matches, order = matching(connection, case_filter), _sort_key(connection, case_filter)
    row = connection.execute(
        f"SELECT cases.id FROM {matches.source}"  # noqa: S608
        f" WHERE {matches.where} AND {beyond[0]} "
        # Every index includes seq. To compare ids, SQLite would look up each case in the table.
        "AND cases.seq NOT IN (SELECT seq FROM cases WHERE id IN (SELECT value FROM json_each(?))) "
        f"ORDER BY {order.order_by_sql(matches, forward=forward)} LIMIT 1",
        [*matches.values, *beyond[1], json.dumps(list(without)), *order.values],
    ).fetchone()
    return None if row is None else str(row[0])


def _sample_of(connection: sqlite3.Connection, case_filter: CaseFilter) -> str:
    """Return the numbers of the hidden cases of a guarantee as JSON, or "" if there are none."""
    numbers = hidden_sample(connection, case_filter.viewer or case_filter.open_to)
    return json.dumps(numbers) if numbers else ""


_IN_SAMPLE = "cases.seq IN (SELECT value FROM json_each(?))"


def _sample_conditions(sample: str, case_filter: CaseFilter) -> list[Condition]:
    """Return the condition on states with the hidden cases of a guarantee.

    To its viewer such a case needs review, whatever its audit found and whether it was accepted. So
    it isn't on a list of what audits found, and on every list of cases that need review.
    """
    states, standings = case_filter.states, set(case_filter.standings)
    [*conditions] = any_of("state", states)
    if "needs_review" in states and "accepted" not in states:
        [(condition, values)] = conditions
        conditions = [(f"({condition} OR {_IN_SAMPLE})", (*values, sample))]
    by_audit = is_filled_by_audit(case_filter) or (standings and not set(NOT_DECIDED) <= standings)
    if by_audit or (states and "needs_review" not in states):
        conditions.append((f"NOT {_IN_SAMPLE}", (sample,)))
    return conditions


def matching(connection: sqlite3.Connection, case_filter: CaseFilter) -> Matching:
    """Return a filter as SQL.

    If no case has all words of its text, the last word is searched as the beginning of a word.
    """
    standings = case_filter.standings
    sample = _sample_of(connection, case_filter)
    parts = [
        *(
            _sample_conditions(sample, case_filter)
            if sample
            else any_of("state", case_filter.states)
        ),
        *content_conditions(case_filter),
        *_match_codes(connection, case_filter),
    ]
    if case_filter.queue:
        queue = named_queue(connection, case_filter.queue)
        # If audit results define the queue, leave out the hidden cases so that membership doesn't
        # reveal their results.
        if sample and is_filled_by_audit(queue.cases):
            parts.append((f"NOT {_IN_SAMPLE}", (sample,)))
        parts.append(where_waits(queue) if case_filter.waits_in_queue else in_queue(queue))
        if case_filter.waits_in_queue:
            # Auto-accepted answers don't wait for review, so leave them out, unless that would
            # show which were accepted.
            accepted = ", 'accepted'" if strictest_shown(connection) == "first" else ""
            parts.append((f"+state NOT IN ('superseded', 'redacted'{accepted})", ()))
    if case_filter.similar_to:
        numbers = similar_to_any(connection, case_filter.similar_to)
        parts.append(("cases.seq IN (SELECT value FROM json_each(?))", (numbers,)))
    if case_filter.undecided_by is not None:
        [(decided, values)] = worked_on("decided", [case_filter.undecided_by])
        parts.append((f"NOT {decided}", values))
    # These filters can be read from an index in order: a set of states, one status, or all
    # undecided cases.
    ordered = bool(case_filter.states) if parts else len(standings) < 2 or standings == NOT_DECIDED
    narrowed = len(parts) + bool(standings) > 1 or not ordered
    parts += [
        *_standing_conditions("+standing" if narrowed else "standing", case_filter),
        *_open_to(connection, case_filter),
    ]
    # A decided copy with a planted fault is only on lists that ask for it.
    planted = "SELECT EXISTS (SELECT 1 FROM cases WHERE standing = 'planted')"
    if not case_filter.states and not standings and connection.execute(planted).fetchone()[0]:
        parts.append(("+standing <> 'planted'", ()))
    where, bound = join_conditions(parts)
    values = tuple(bound)
    if not case_filter.text.strip():
        return Matching("cases", where, values, narrowed)
    whole = _match_words(connection, case_filter, where, values, match(case_filter.text))
    any_match = f"SELECT 1 FROM {whole.source} WHERE {whole.where} LIMIT 1"  # noqa: S608
    if connection.execute(any_match, whole.values).fetchone():
        return whole._replace(words_only=whole.words_only and not parts)
    words = match(case_filter.text, beginning=True)
    beginning = _match_words(connection, case_filter, where, values, words)
    return beginning._replace(words_only=beginning.words_only and not parts)


def _match_words(
    connection: sqlite3.Connection,
    case_filter: CaseFilter,
    where: str,
    values: tuple[Any, ...],
    words: str,
) -> Matching:
    """Add words to a condition: those of the case, or of what people wrote about it.

    Notes that the filter's viewer can't see yet don't count.
    """
    viewer = case_filter.viewer or case_filter.open_to or ""
    visible, bound = join_conditions(visible_observations(connection, viewer))
    noted = [
        row[0]
        for row in connection.execute(
            f"""SELECT DISTINCT observations.case_seq FROM observation_words
                CROSS JOIN observations ON observations.seq = observation_words.rowid
                WHERE observation_words MATCH ? AND observations.kind <> 'issue'
                    AND {visible} ORDER BY observations.case_seq""",  # noqa: S608
            [words, *bound],
        )
    ]
    if not noted:
        # CROSS JOIN makes SQLite search the words first and then look up their cases.
        source = "case_words CROSS JOIN cases ON cases.seq = case_words.rowid"
        where = f"case_words MATCH ? AND {where}"
        return Matching(source, where, (words, *values), words_only=True)
    found = """(cases.seq IN (SELECT rowid FROM case_words WHERE case_words MATCH ?)
        OR cases.seq IN (SELECT value FROM json_each(?)))"""
    return Matching("cases", f"{found} AND {where}", (words, json.dumps(noted), *values))


_OWN_WAITING = """SELECT case_seq FROM case_work JOIN cases AS shared ON shared.seq = case_seq
    WHERE kind = 'decided' AND who = ? AND (shared.pending > 0 OR shared.state = 'escalated')"""
"""Cases that wait for others after a reviewer's own decision."""

_OWN_PENDING = """cases.seq IN (
    SELECT case_seq FROM case_work JOIN cases AS shared ON shared.seq = case_seq
    WHERE kind = 'decided' AND who = ? AND shared.pending > 0)"""
"""Cases that a reviewer has decided and that wait for others.

Only this reviewer sees them as waiting (``CaseFilter.viewer``).
"""


def _standing_conditions(column: str, case_filter: CaseFilter) -> list[Condition]:
    standings = case_filter.standings
    if not standings or standings == NOT_DECIDED:
        # SQLite uses a partial index only if the query has its condition (``cases_open``).
        return [(f"{column} NOT IN ('decided', 'planted')", ())] if standings else []
    [(condition, values)] = any_of(column, standings)
    if case_filter.viewer is None:
        return [(condition, values)]
    own = f"OR {_OWN_PENDING}" if "waits" in standings else f"AND NOT {_OWN_PENDING}"
    return [(f"({condition} {own})", (*values, case_filter.viewer))]


def _match_codes(connection: sqlite3.Connection, case_filter: CaseFilter) -> list[Condition]:
    """Return the condition that people applied one of these codes, which the viewer may see."""
    if not case_filter.modes and not case_filter.causes:
        return []
    conditions = [
        *any_of("code", case_filter.modes),
        *visible_codes(connection, case_filter.viewer or case_filter.open_to),
    ]
    if case_filter.causes:
        where, values = join_conditions(any_of("observations.cause", case_filter.causes))
        shown = f"""EXISTS (SELECT 1 FROM observations
            WHERE observations.case_seq = case_codes.case_seq
                AND observations.place = case_codes.place AND {where})"""  # noqa: S608
        conditions.append((shown, values))
    where, values = join_conditions(conditions)
    return [(f"cases.seq IN (SELECT case_seq FROM case_codes WHERE {where})", values)]  # noqa: S608


def _open_to(connection: sqlite3.Connection, case_filter: CaseFilter) -> list[Condition]:
    """Return the condition that a reviewer may take the case now.

    It first asks whether anybody worked on the case or holds it, since for most cases nobody does.
    """
    if case_filter.open_to is None:
        return []
    work = "SELECT who FROM case_work WHERE case_seq = cases.seq AND kind = '{}'"
    leased = (
        "SELECT reviewer FROM leases WHERE case_seq = cases.seq AND"
        " strftime('%Y-%m-%dT%H:%M:%fZ', 'now') BETWEEN taken_at AND until"
    )
    assigned, skipped = work.format("assigned"), work.format("skipped")
    decided, wanted, others, queue_id = DECIDED_IN_FIRST, "wanted", [], ""
    if case_filter.queue:
        queue = named_queue(connection, case_filter.queue)
        queue_id = queue.id
        decided = "SELECT who FROM queue_work WHERE case_seq = cases.seq AND queue = :queue"
        # Use the policy that the first decision fixed, or the queue's if there is none yet.
        wanted = f"""coalesce((SELECT coalesce(policy ->> '$.reviewers', 1) FROM queue_states
            WHERE case_seq = cases.seq AND queue = :queue), {queue.policy.reviewers})"""  # noqa: S608
        if not queue.admits(case_filter.open_to):
            return [("0", ())]
    else:
        # Only members of a queue decide its cases, so "All cases" doesn't offer them to others.
        closed = [
            queue for queue in open_queues(connection) if not queue.admits(case_filter.open_to)
        ]
        sample = _sample_of(connection, case_filter)
        for queue in closed:
            sql, values = where_waits(queue)
            others.append((f"NOT {sql}", values))
            if sample and is_filled_by_audit(queue.cases):
                # Its absence would reveal that the hidden audit fills the queue.
                others[-1] = (f"(NOT {sql} OR {_IN_SAMPLE})", [*values, sample])
    done = f"{decided} UNION {skipped}" if not case_filter.skipped_too else decided
    condition = f"""
        (cases.seq NOT IN (SELECT case_seq FROM case_work UNION ALL SELECT case_seq FROM leases)
        OR :me NOT IN ({done})
        AND {wanted} > (
            SELECT count(*) FROM
                (SELECT who FROM ({decided}) WHERE {wanted} > 1 UNION {leased})
            WHERE who <> :me
        )
        AND (:me IN ({assigned}) OR (SELECT count(*) FROM ({assigned})) < {wanted}))
    """  # noqa: S608
    named = {":me": case_filter.open_to, ":queue": queue_id}
    marks = re.compile("|".join(named))
    bound = [named[mark] for mark in marks.findall(condition)]
    return [(marks.sub("?", condition), bound), *others]


def _queue_rows(
    connection: sqlite3.Connection, wanted: Condition, viewer: str | None
) -> list[sqlite3.Row]:
    """Return the rows of the cases that meet a condition, as a reviewer sees them."""
    return connection.execute(
        f"""
        SELECT cases.*, runs.id AS run_id, runs.likely, pending > 0 AND {_OWN_PENDING} AS waits
        FROM cases LEFT JOIN runs ON runs.seq = run_seq
        WHERE cases.{wanted[0]}
        """,  # noqa: S608
        [viewer, *wanted[1]],
    ).fetchall()


class _CodedValue(NamedTuple):
    """A value of applied codes in SQL, and the join that it needs."""

    value: str
    join: str = ""


_CODED = {
    "modes": _CodedValue("code"),
    "causes": _CodedValue(
        "observations.cause",
        """JOIN observations ON observations.case_seq = case_codes.case_seq
            AND observations.place = case_codes.place""",
    ),
}
"""The values by which a filter finds coded cases, for each of its fields."""


def _case_summary(row: sqlite3.Row) -> CaseSummary:
    """Return a row as lists show it, with its headline in words."""
    query, likely, stored = row["query_start"], row["likely"], row["headline"]
    # If the stored risk differs from the built-in estimate, it came from a fitted score.
    if likely is not None and not isclose(
        row["risk"], risk_of(row["tier"], row["severity"], likely)
    ):
        likely = fitted_probability(row["risk"])
    return record_of(
        CaseSummary,
        row,
        parsed=LISTS,
        query=query if len(query) <= QUERY_SHOWN else query[: QUERY_SHOWN - 1] + "…",
        standing="waits" if row["waits"] else row["standing"],
        headline=stored and Headline.model_validate_json(stored).lines,
        disagreement=row["disagreement"] if row["iterations"] else None,
        # A failed audit has a place in the order, but no estimate.
        fault_probability=likely if row["iterations"] else None,
    )

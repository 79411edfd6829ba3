"""The cases as a queue: search, filters, orders, pages and counts, all in SQL.

What a person types reaches SQLite as bound values only. A page is found by its numbers first, then only its rows are
read. There are two ways to find the numbers, and the count of the matches says which is shorter: walk along the order
until the page is full (many match, an early page), or collect all that match from one index and sort them.
"""

from __future__ import annotations

import hashlib
import json
import sqlite3
from collections import Counter
from collections.abc import Collection, Sequence
from typing import Any, NamedTuple

from masis.store.records import CaseFilter, CasePage, CaseSummary, Facets

QUERY_SHOWN = 200
"""Characters of the question that a list shows."""

_WORDS_SEARCHED = 32
_WORD_LENGTH = 100
_BEGINNING = 3
_INDEXED_BEGINNINGS = (3, 4)
"""Lengths of beginnings that the full text index holds; for longer ones it merges the lists of all words that fit."""

_MODULUS = 2_147_483_647
"""A prime above any number of cases: multiplying by a drawn factor modulo it shuffles them."""

_WALKED, _PROBED = 2_000, 300
"""Rows worth walking past before collecting and sorting costs less; fewer where each is probed for its words."""

_MATCHING = "SELECT rowid FROM case_words WHERE case_words MATCH ?"


class Condition(NamedTuple):
    """A condition in SQL and the values it binds."""

    sql: str
    values: tuple[Any, ...]


class Order(NamedTuple):
    """How to sort; ``walked`` is the same order as an index has it, None where no index has it.

    ``before`` holds for the rows in front of one of which ``end`` names the values.
    """

    sorted: str
    walked: str | None
    values: tuple[int, ...] = ()
    before: str = ""
    end: str = ""


def _falling(key: str) -> Order:
    before = f"{key} >= ? AND ({key} > ? OR seq < ?)"
    return Order(f"+{key} DESC, seq", f"{key} DESC, seq", before=before, end=f"{key}, {key}, seq")


_ORDERS = {
    "risk": _falling("risk"),
    "disagreement": _falling("disagreement"),
    "least_confident": _falling("doubt"),
    "oldest": Order("+seq", "seq", before="seq < ?", end="seq"),
    "newest": Order("+seq DESC", "seq DESC", before="seq > ?", end="seq"),
}


def search(connection: sqlite3.Connection, wanted: CaseFilter) -> CasePage:
    """One page of the cases that match, and how many match."""
    filters, words, total = matching(connection, wanted)
    numbers = _page(connection, wanted, filters, words, total)
    place = {seq: index for index, seq in enumerate(numbers)}
    rows = _rows(connection, f"seq IN ({', '.join('?' * len(numbers))})", numbers)
    return CasePage(rows=tuple(_summary(row) for row in sorted(rows, key=lambda row: place[row["seq"]])), total=total)


class Matching(NamedTuple):
    """What a filter asks for in SQL, and how many cases match it."""

    filters: Sequence[Condition]
    words: Words | None
    total: int


def matching(connection: sqlite3.Connection, wanted: CaseFilter) -> Matching:
    """Read a filter and count what matches."""
    words = Words(match(wanted.text), quick=True) if wanted.text.strip() else None
    total = count_with(connection, wanted, words)
    if words is not None and not total:
        words = Words(match(wanted.text, beginning=True), quick=len(wanted.text.split()[-1]) in _INDEXED_BEGINNINGS)
        total = count_with(connection, wanted, words)
    return Matching(_filters(wanted), words, total)


class Words(NamedTuple):
    """An FTS5 query; ``quick`` if asking it of one case takes no time: whole words, and beginnings in the index."""

    query: str
    quick: bool


def count_with(connection: sqlite3.Connection, wanted: CaseFilter, words: Words | None) -> int:
    """How many cases match a filter, its words as ``matching`` read them.

    Counts that triggers keep are used where they say it.
    """
    if wanted.open_to is not None:
        anyone = wanted.model_copy(update={"open_to": None})
        return count_with(connection, anyone, words) - _closed(connection, wanted, _filters(anyone), words)
    filters = _filters(wanted)
    if words is None and (kept := _kept_count(connection, wanted, filters)) is not None:
        return kept
    if words is not None and not filters:
        return _count(connection, "SELECT count(*) FROM case_words WHERE case_words MATCH ?", [words.query])
    where, values = conditions(filters, words)
    return _count(connection, f"SELECT count(*) FROM cases WHERE {where}", values)  # noqa: S608 (every name is ours, what people give is bound)


def _kept_count(connection: sqlite3.Connection, wanted: CaseFilter, filters: Sequence[Condition]) -> int | None:
    """The kept count of a filter by words of one column; None for every other filter."""
    columns = {"state": wanted.states, "tier": wanted.tiers, "field": wanted.fields, "dataset": wanted.datasets}
    given = [(name, tuple(values)) for name, values in {**columns, "reviewer": wanted.reviewers}.items() if values]
    if len(filters) != 1 or len(given) != 1:
        return None
    ((name, values),) = given
    marks = ", ".join("?" * len(values))
    kept = f"SELECT coalesce(sum(cases), 0) FROM case_counts WHERE name = ? AND value IN ({marks})"  # noqa: S608
    return _count(connection, kept, [name, *values])


def _closed(
    connection: sqlite3.Connection, wanted: CaseFilter, filters: Sequence[Condition], words: Words | None
) -> int:
    """How many of the cases that match are not open to this reviewer. Only what somebody worked on or holds can be."""
    where, values = conditions(filters, words)
    may_take, bound = conditions(_open_to(wanted), None)
    return _count(
        connection,
        f"""
        SELECT count(*) FROM (SELECT case_seq FROM case_work UNION SELECT case_seq FROM leases) AS touched
        CROSS JOIN cases ON cases.seq = touched.case_seq WHERE {where} AND NOT ({may_take})
        """,  # noqa: S608
        [*values, *bound],
    )


def _count(connection: sqlite3.Connection, sql: str, values: Sequence[Any]) -> int:
    return int(connection.execute(sql, values).fetchone()[0])


def _page(
    connection: sqlite3.Connection, wanted: CaseFilter, filters: Sequence[Condition], words: Words | None, total: int
) -> list[int]:
    """The numbers of the cases on the page, in order."""
    offset = (wanted.page - 1) * wanted.size
    if offset >= total:
        return []
    order = _order(wanted)
    upto = offset + wanted.size
    if order.walked is not None and worth_walking(connection, Matching(filters, words, total), upto):
        found = _walked(connection, order, Matching(filters, words, total), wanted.size, offset)
        if len(found) == min(wanted.size, total - offset):
            return found
    where, values = conditions(filters, words)
    rows = connection.execute(
        f"SELECT seq FROM cases WHERE {where} ORDER BY {order.sorted} LIMIT ? OFFSET ?",  # noqa: S608
        [*values, *order.values, wanted.size, offset],
    )
    return [row[0] for row in rows]


def _walked(connection: sqlite3.Connection, order: Order, asked: Matching, size: int, offset: int) -> list[int]:
    """Numbers found by walking along an index. What matches may all stand at its far end: the walk ends before that."""
    where, values = conditions(asked.filters, asked.words, probe=True)
    if asked.filters or asked.words:
        end = connection.execute(
            f"SELECT {order.end} FROM cases ORDER BY {order.walked} LIMIT 1 OFFSET ?",  # noqa: S608
            [reach(asked)],
        ).fetchone()
        if end is not None:
            where, values = f"{order.before} AND {where}", [*end, *values]
    rows = connection.execute(
        f"SELECT seq FROM cases WHERE {where} ORDER BY {order.walked} LIMIT ? OFFSET ?",  # noqa: S608
        [*values, size, offset],
    )
    return [row[0] for row in rows]


def worth_walking(connection: sqlite3.Connection, asked: Matching, upto: int) -> bool:
    """Whether walking along the order past what doesn't match is shorter than sorting what does."""
    if not (asked.filters or asked.words):
        return True
    if asked.words is not None and not asked.words.quick:
        return False
    cases = connection.execute("SELECT max(seq) FROM cases").fetchone()[0]
    return bool(upto * cases <= (_PROBED if asked.words else _WALKED) * asked.total)


def reach(asked: Matching) -> int:
    """Rows a walk goes past at most: what matches need not be spread as evenly as its number says."""
    return 2 * (_PROBED if asked.words else _WALKED)


def conditions(filters: Sequence[Condition], words: Words | None, *, probe: bool = False) -> tuple[str, list[Any]]:
    """The conditions as SQL; ``probe`` asks for each case whether it has the words instead of listing all that do."""
    parts = list(filters)
    if words is not None:
        listed = f"EXISTS ({_MATCHING} AND rowid = cases.seq)" if probe else f"seq IN ({_MATCHING})"
        parts.append(Condition(listed, (words.query,)))
    return " AND ".join(part.sql for part in parts) or "1", [value for part in parts for value in part.values]


def summaries(connection: sqlite3.Connection, where: str, values: Sequence[Any]) -> list[CaseSummary]:
    """The summaries of the cases that a condition of ours names."""
    return [_summary(row) for row in _rows(connection, where, values)]


def _rows(connection: sqlite3.Connection, where: str, values: Sequence[Any]) -> list[sqlite3.Row]:
    return connection.execute(
        f"""
        SELECT cases.*, runs.id AS run_id, first.quality AS original_quality FROM cases
        LEFT JOIN runs ON runs.seq = run_seq
        LEFT JOIN run_measures ON run_measures.run_id = runs.id
        LEFT JOIN iteration_measures AS first ON first.measures_seq = run_measures.seq AND first.number = 1
        WHERE cases.{where}
        """,  # noqa: S608
        values,
    ).fetchall()


_LISTS = ("models", "flags", "reasons")
_COUNTED = {"state": "states", "tier": "tiers", "field": "fields", "dataset": "datasets", "reviewer": "reviewers"}
"""Columns of single words that are counted, as ``Facets`` names them."""

_PLAIN = [name for name in CaseSummary.model_fields if name not in ("query", *_LISTS)]


def _summary(row: sqlite3.Row) -> CaseSummary:
    query = row["query_start"]
    return CaseSummary(
        query=query if len(query) <= QUERY_SHOWN else query[: QUERY_SHOWN - 1] + "…",
        **{name: tuple(json.loads(row[name])) for name in _LISTS},
        **{name: row[name] for name in _PLAIN},
    )


def _filters(wanted: CaseFilter) -> list[Condition]:
    return [
        *(_any_of("state", wanted.states)),
        *(_any_of("tier", wanted.tiers)),
        *(_any_of("field", wanted.fields)),
        *(_any_of("dataset", wanted.datasets)),
        *(_any_of("reviewer", wanted.reviewers)),
        *(_worked_on("assigned", wanted.assignees)),
        *(_worked_on("tagged", wanted.tags)),
        *(_open_to(wanted)),
        *(_any_in("flags", wanted.flags)),
        *(_any_in("reasons", wanted.reasons)),
        *(_any_in("models", wanted.models)),
        *(_bounded("quality", wanted.quality_from, wanted.quality_to)),
        *(_bounded("confidence", wanted.confidence_from, wanted.confidence_to)),
    ]


def _any_of(column: str, values: Sequence[str]) -> list[Condition]:
    marks = ", ".join("?" * len(values))
    return [Condition(f"{column} IN ({marks})", tuple(values))] if values else []


def _worked_on(kind: str, names: Sequence[str]) -> list[Condition]:
    """Cases that are assigned to one of these people, or have one of these tags."""
    if not names:
        return []
    marks = ", ".join("?" * len(names))
    # no join with cases: SQLite finds the few cases in the index of the work, whatever the order is
    found = f"cases.seq IN (SELECT case_seq FROM case_work WHERE kind = ? AND who IN ({marks}))"  # noqa: S608
    return [Condition(found, (kind, *names))]


_WORK = "SELECT {what} FROM case_work WHERE case_seq = cases.seq AND kind = '{kind}'"
_LEASED = (
    "SELECT leases.reviewer FROM leases WHERE case_seq = cases.seq AND until > strftime('%Y-%m-%dT%H:%M:%fZ', 'now')"
)


def _open_to(wanted: CaseFilter) -> list[Condition]:
    """Cases that a reviewer may take now."""
    if wanted.open_to is None:
        return []
    me = wanted.open_to
    mine = "cases.seq NOT IN (SELECT case_seq FROM case_work WHERE kind = ? AND who = ?)"
    assigned, decided = _WORK.format(what="who", kind="assigned"), _WORK.format(what="who", kind="decided")
    leased = _LEASED
    taken = f"SELECT count(*) FROM (SELECT who FROM ({decided}) UNION {leased}) WHERE who != ?"  # noqa: S608 (names of our own columns, as below)
    return [
        Condition(mine, ("decided", me)),
        *([] if wanted.skipped_too else [Condition(mine, ("skipped", me))]),
        Condition(
            f"(wanted = 1 AND NOT EXISTS ({leased} AND leases.reviewer != ?) OR wanted > 1 AND ({taken}) < wanted)",
            (me, me),
        ),
        Condition(f"(? IN ({assigned}) OR (SELECT count(*) FROM ({assigned})) < wanted)", (me,)),  # noqa: S608
    ]


def _any_in(column: str, values: Sequence[str]) -> list[Condition]:
    """Any of the values stands in the JSON list of the column: a quoted value can't begin or end inside another."""
    tests = " OR ".join([f"instr({column}, ?)"] * len(values))
    return [Condition(f"({tests})", tuple(json.dumps(value, ensure_ascii=False) for value in values))] if values else []


def _bounded(column: str, low: float | None, high: float | None) -> list[Condition]:
    bounds = ((">=", low), ("<=", high))
    return [Condition(f"{column} {operator} ?", (bound,)) for operator, bound in bounds if bound is not None]


def match(text: str, *, beginning: bool = False) -> str:
    """What a person typed, as an FTS5 query that finds all its words; nothing in it is read as syntax.

    Each word is quoted. With ``beginning`` the last one, which may still be being typed, is found as the beginning of a
    word, from three letters on (one in scripts that write without blanks). Text without a letter or digit matches
    nothing. The first 32 words of at most 100 characters count.
    """
    words = [word[:_WORD_LENGTH] for word in text.replace("\x00", " ").split() if any(map(str.isalnum, word))]
    words = words[:_WORDS_SEARCHED]
    if not words:
        return '""'
    open_ended = beginning and (len(words[-1]) >= _BEGINNING or not words[-1].isascii())
    return " AND ".join('"' + word.replace('"', '""') + '"' for word in words) + (" *" if open_ended else "")


def _order(wanted: CaseFilter) -> Order:
    return shuffle(wanted.seed) if wanted.order == "random" else _ORDERS[wanted.order]


def shuffle(seed: int) -> Order:
    """The random order that a seed draws."""
    drawn = hashlib.sha256(str(seed).encode()).digest()
    factor, offset = (1 + int.from_bytes(part) % (_MODULUS - 1) for part in (drawn[:8], drawn[8:16]))
    # Multiplying alone leaves neighbours at even steps from each other, so a small store would stay sorted in runs. The
    # fifth power is a permutation modulo this prime and breaks the steps up.
    mixed = f"((x * x % {_MODULUS}) * (x * x % {_MODULUS}) % {_MODULUS}) * x % {_MODULUS}"
    return Order(f"(SELECT {mixed} FROM (SELECT (seq * ? + ?) % {_MODULUS} AS x))", None, (factor, offset))  # noqa: S608


def facets(connection: sqlite3.Connection) -> Facets:
    """Which values occur in the whole store, and how often, as triggers keep count of them."""
    counted: dict[str, dict[str, int]] = {name: {} for name in (*_COUNTED.values(), *_LISTS)}
    rows = connection.execute("SELECT name, value, cases FROM case_counts WHERE cases > 0 ORDER BY name, value")
    for name, value, cases in rows:
        counted[_COUNTED.get(name, name)][value] = cases
    return Facets(**{**counted, **{name: dict(sorted(_each(counted[name]).items())) for name in _LISTS}})


def miscounted(connection: sqlite3.Connection) -> list[str]:
    """The names of columns whose kept counts are not what counting the cases gives."""
    return [
        name
        for name in (*_COUNTED, *_LISTS)
        if _pairs(connection, f"SELECT {name}, count(*) FROM cases WHERE {name} IS NOT NULL GROUP BY 1")  # noqa: S608
        != _pairs(connection, f"SELECT value, cases FROM case_counts WHERE name = '{name}' AND cases != 0")  # noqa: S608
    ]


def _pairs(connection: sqlite3.Connection, sql: str) -> dict[str, int]:
    return {row[0]: row[1] for row in connection.execute(sql)}


def _each(lists: dict[str, int]) -> Counter[str]:
    found: Counter[str] = Counter()
    for values, count in lists.items():
        for value in json.loads(values):
            found[value] += count
    return found


# The next and the previous case of a queue, from any case, also from one that no longer matches the filter: a decision
# often moves a case out of the queue it was opened from. So neighbours are found by where the case stands in the order.

MOST_LEFT_OUT = 500
"""Cases that can be left out by name; SQLite binds a bounded number of values."""


class _Walk(NamedTuple):
    """What a queue is sorted by before the number of the case, which way each goes; ``walk`` has SQLite keep to it."""

    key: str | None
    walk: str = ""
    key_falls: bool = False
    number_falls: bool = False
    values: tuple[int, ...] = ()


def beside(connection: sqlite3.Connection, wanted: CaseFilter, seq: int, *, forward: bool) -> str | None:
    """The case behind (or before) number ``seq`` in the order of ``wanted``; its page and size don't matter."""
    found = matching(connection, wanted)
    return _Search(connection, wanted, found, ()).beside(seq, forward=forward) if found.total else None


def following(connection: sqlite3.Connection, wanted: CaseFilter, seq: int, without: Collection[str]) -> str | None:
    """The case behind number ``seq`` that is none of ``without``; behind the last one, the first of all."""
    found = matching(connection, wanted)
    if not found.total:
        return None
    search = _Search(connection, wanted, found, without)
    return search.beside(seq, forward=True) or search.beside(None, forward=True)


class _Behind(NamedTuple):
    """Which cases stand on one side of another one, in SQL, and the values it binds."""

    sql: str
    values: list[Any]


class _Search:
    """Looks along one"""

    def __init__(
        self, connection: sqlite3.Connection, wanted: CaseFilter, found: Matching, without: Collection[str]
    ) -> None:
        self.connection, self.order, self.found = connection, _walk_of(wanted), found
        self.narrowed = bool(found.filters or found.words)
        self.walks = wanted.order != "random" and worth_walking(connection, found, 1)
        self.left_out = list(without)[-MOST_LEFT_OUT:]

    def beside(self, seq: int | None, *, forward: bool) -> str | None:
        """The first case behind (or before) number ``seq``; without a number, the first of all."""
        if self.walks:
            further = self._behind(seq, forward)
            end = self._end(further, forward) if self.narrowed else None
            upto = self._behind(end, not forward) if end is not None else _Behind("1", [])
            found = self._first(further, upto, forward, walks=True)
            if found is not None or end is None:
                return found
        return self._first(self._behind(seq, forward), _Behind("1", []), forward, walks=False)

    def _behind(self, seq: int | None, forward: bool) -> _Behind:
        """Which cases stand behind (or before) number ``seq``."""
        key, values = self.order.key, list[Any](self.order.values)
        past_number = f"seq {'<' if self.order.number_falls == forward else '>'} ?"
        if seq is None:
            return _Behind("1", [])
        if key is None:
            return _Behind(past_number, [seq])
        sign = "<" if self.order.key_falls == forward else ">"
        own = self.connection.execute(f"SELECT {key} FROM cases WHERE seq = ?", [*values, seq]).fetchone()[0]  # noqa: S608
        return _Behind(f"{key} {sign}= ? AND ({key} {sign} ? OR {past_number})", [*values, own, *values, own, seq])

    def _by(self, forward: bool) -> str:
        key, number = self.order.key, f"seq {'DESC' if self.order.number_falls == forward else 'ASC'}"
        return f"{key} {'DESC' if self.order.key_falls == forward else 'ASC'}, {number}" if key else number

    def _end(self, further: _Behind, forward: bool) -> int | None:
        """The number of the case where a walk is given up: what matches may all stand at the far end of the order."""
        row = self.connection.execute(
            f"SELECT seq FROM cases {self.order.walk} WHERE {further.sql} "  # noqa: S608 (every name is ours)
            f"ORDER BY {self._by(forward)} LIMIT 1 OFFSET ?",
            [*further.values, reach(self.found)],
        ).fetchone()
        return None if row is None else int(row[0])

    def _first(self, further: _Behind, upto: _Behind, forward: bool, *, walks: bool) -> str | None:
        where, values = conditions(self.found.filters, self.found.words, probe=walks)
        left_out = f" AND id NOT IN ({', '.join('?' * len(self.left_out))})" if self.left_out else ""
        # Left alone, SQLite often takes an index of the filter and sorts all that match where walking is shorter, and
        # walks along the order where sorting the few that match is: so the query names either the walk or what matches.
        source, rest = f"cases {self.order.walk}", f"{where} AND "
        if self.order.walk and not walks:
            source, rest = f"(SELECT seq, id, risk, disagreement, doubt FROM cases WHERE {where} LIMIT -1)", ""  # noqa: S608
        key_values = self.order.values if self.order.key else ()
        row = self.connection.execute(
            f"SELECT id FROM {source} WHERE {rest}{further.sql} AND {upto.sql}{left_out} "  # noqa: S608
            f"ORDER BY {self._by(forward)} LIMIT 1",
            [*values, *further.values, *upto.values, *self.left_out, *key_values],
        ).fetchone()
        return None if row is None else str(row["id"])


def _walk_of(wanted: CaseFilter) -> _Walk:
    match wanted.order:
        case "risk":
            return _Walk("risk", "INDEXED BY cases_risk", key_falls=True)
        case "disagreement":
            return _Walk("disagreement", "INDEXED BY cases_disagreement", key_falls=True)
        case "least_confident":
            return _Walk("doubt", "INDEXED BY cases_doubt", key_falls=True)
        case "oldest":
            return _Walk(None, "NOT INDEXED")
        case "newest":
            return _Walk(None, "NOT INDEXED", number_falls=True)
        case "random":
            drawn = shuffle(wanted.seed)
            return _Walk(f"({drawn.sorted})", values=drawn.values)

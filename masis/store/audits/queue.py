"""The cases as a queue: search, filters, orders, pages and counts, all in SQL.

What a person types reaches SQLite as bound values only. A page is found by its numbers first, then only its rows are
read. There are two ways to find the numbers, and the count of the matches tells which is shorter: walk along the order
until the page is full (many match, an early page), or collect all that match from one index and sort them.
"""

from __future__ import annotations

import hashlib
import json
import sqlite3
from collections import Counter
from collections.abc import Sequence
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
    filters = _filters(wanted)
    words = Words(match(wanted.text), quick=True) if wanted.text.strip() else None
    total = _total(connection, filters, words)
    if words is not None and not total:
        words = Words(match(wanted.text, beginning=True), quick=len(wanted.text.split()[-1]) in _INDEXED_BEGINNINGS)
        total = _total(connection, filters, words)
    return Matching(filters, words, total)


class Words(NamedTuple):
    """An FTS5 query; ``quick`` if asking it of one case takes no time: whole words, and beginnings in the index."""

    query: str
    quick: bool


def _total(connection: sqlite3.Connection, filters: Sequence[Condition], words: Words | None) -> int:
    if words is not None and not filters:
        sql, values = "SELECT count(*) FROM case_words WHERE case_words MATCH ?", [words.query]
    else:
        where, values = conditions(filters, words)
        sql = f"SELECT count(*) FROM cases WHERE {where}"  # noqa: S608 (every name is ours, what people give is bound)
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
        f"SELECT cases.*, runs.id AS run_id FROM cases LEFT JOIN runs ON runs.seq = run_seq WHERE cases.{where}",  # noqa: S608
        values,
    ).fetchall()


_LISTS = ("models", "flags", "reasons")
_COUNTED = {"state": "states", "field": "fields", "dataset": "datasets", "reviewer": "reviewers"}
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
        *(_any_of("field", wanted.fields)),
        *(_any_of("dataset", wanted.datasets)),
        *(_any_of("reviewer", wanted.reviewers)),
        *(_any_in("flags", wanted.flags)),
        *(_any_in("reasons", wanted.reasons)),
        *(_any_in("models", wanted.models)),
        *(_bounded("quality", wanted.quality_from, wanted.quality_to)),
        *(_bounded("confidence", wanted.confidence_from, wanted.confidence_to)),
    ]


def _any_of(column: str, values: Sequence[str]) -> list[Condition]:
    marks = ", ".join("?" * len(values))
    return [Condition(f"{column} IN ({marks})", tuple(values))] if values else []


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

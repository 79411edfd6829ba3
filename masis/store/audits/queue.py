"""The cases as a queue: search, filters, orders, pages and counts, all in SQL.

What a person types reaches SQLite as bound values only. A page is found by its numbers first, then only its rows are
read. There are two ways to find the numbers, and the count of the matches says which is shorter: walk along the order
until the page is full (many match, an early page), or collect all that match from one index and sort them.
"""

from __future__ import annotations

import hashlib
import heapq
import json
import sqlite3
from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from itertools import islice
from typing import Any, NamedTuple

from masis.store.records import CaseFilter, CasePage, CaseSummary, Facets

QUERY_SHOWN = 200
"""Characters of the question that a list shows."""

_WORDS_SEARCHED = 32
_WORD_LENGTH = 100
_BEGINNING = 3
_INDEXED_BEGINNINGS = (3, 4)
"""Lengths of beginnings that the full text index holds; for longer ones it merges the lists of all words that fit."""

_MODULI = (
    *(1_033, 2_053, 4_099, 8_209, 16_417, 32_779, 65_537, 131_113),
    *(262_147, 524_309, 1_048_583, 2_097_169, 4_194_319, 8_388_617, 16_777_259, 33_554_467),
    *(67_108_879, 134_217_757, 268_435_459, 536_870_923, 1_073_741_827, 2_147_483_647),
)
"""Primes, each some twice the one before: multiplying the numbers of the cases by a drawn factor modulo one above all
of them shuffles them. Less 1, none is a multiple of 5: then each number is the fifth power of one other."""

_WALKED, _PROBED = 2_000, 300
"""Rows worth walking past before collecting and sorting costs less; fewer where each is probed for its words."""

_FAR = 20_000
"""Rows that a walk goes past where more match than were counted: the sorting it saves is of all that match."""

MOST_COUNTED = 3_000
"""Matches that a page counts: beyond, it says "3,000+". Counting a million takes longer than drawing the page."""

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


def search(connection: sqlite3.Connection, wanted: CaseFilter, upto: int | None = None) -> CasePage:
    """One page of the cases that match, and how many match, counted up to ``upto``."""
    found = matching(connection, wanted, upto)
    numbers, sorted_all = _page(connection, wanted, found)
    place = {seq: index for index, seq in enumerate(numbers)}
    rows = _rows(connection, f"seq IN ({', '.join('?' * len(numbers))})", numbers)
    return CasePage(
        rows=tuple(_summary(row) for row in sorted(rows, key=lambda row: place[row["seq"]])),
        total=found.total,
        more=found.more,
        sorted_all=sorted_all,
    )


class Counted(NamedTuple):
    """How many cases match. Where there are ``more``, counting stopped at ``total``, and ``likely`` estimates all.

    ``numbers`` are those of the counted cases where words were looked for, so that none is looked for again.
    """

    total: int
    more: bool = False
    likely: int = 0
    numbers: tuple[int, ...] = ()


class Matching(NamedTuple):
    """What a filter asks for in SQL, and how many cases match it (as ``Counted``)."""

    filters: Sequence[Condition]
    words: Words | None
    total: int
    more: bool = False
    likely: int = 0
    numbers: tuple[int, ...] = ()


def matching(connection: sqlite3.Connection, wanted: CaseFilter, upto: int | None = None) -> Matching:
    """Read a filter and count what matches, up to ``upto``; without it all."""
    words = Words(match(wanted.text), quick=True) if wanted.text.strip() else None
    counted = count_upto(connection, wanted, words, upto)
    if words is not None and not counted.total:
        words = Words(match(wanted.text, beginning=True), quick=len(wanted.text.split()[-1]) in _INDEXED_BEGINNINGS)
        counted = count_upto(connection, wanted, words, upto)
    return Matching(_filters(connection, wanted), words, *counted)


class Words(NamedTuple):
    """An FTS5 query; ``quick`` if asking it of one case takes no time: whole words, and beginnings in the index."""

    query: str
    quick: bool


def count_with(connection: sqlite3.Connection, wanted: CaseFilter, words: Words | None) -> int:
    """How many cases match a filter, its words as ``matching`` read them."""
    return count_upto(connection, wanted, words, None).total


def count_upto(
    connection: sqlite3.Connection, wanted: CaseFilter, words: Words | None, upto: int | None = None
) -> Counted:
    """How many cases match a filter, counted up to ``upto``. Counts that triggers keep are used where they say it."""
    if wanted.open_to is not None:
        anyone = wanted.model_copy(update={"open_to": None})
        counted = count_upto(connection, anyone, words, upto)
        if counted.more:
            return counted._replace(numbers=())
        open_ones = counted.total - _closed(connection, wanted, _filters(connection, anyone), words)
        return Counted(open_ones, likely=open_ones)
    filters = _filters(connection, wanted)
    if words is None and (kept := _kept_count(connection, wanted, filters)) is not None:
        return Counted(kept, likely=kept)
    if words is not None and not filters:
        source, where, values = "case_words", "case_words MATCH ?", [words.query]
    elif words is not None and upto is not None:
        # case by case as the index of words lists them, so that counting can end early
        source = "case_words CROSS JOIN cases ON cases.seq = case_words.rowid"
        where, values = conditions(_unindexed(filters), None)
        where, values = f"case_words MATCH ? AND {where}", [words.query, *values]
    else:
        source, (where, values) = "cases", conditions(_led(connection, wanted, filters, words), words)
    if upto is None:
        total = _count(connection, f"SELECT count(*) FROM {source} WHERE {where}", values)  # noqa: S608 (every name is ours, what people give is bound)
        return Counted(total, likely=total)
    listed = f"SELECT {source.split()[0]}.rowid AS seq FROM {source} WHERE {where} LIMIT ?"  # noqa: S608
    if words is None:
        total = _count(connection, f"SELECT count(*) FROM ({listed})", [*values, upto + 1])  # noqa: S608
        return Counted(min(total, upto), more=total > upto, likely=total)
    numbers = tuple(row[0] for row in connection.execute(listed, [*values, upto + 1]))
    total = len(numbers)
    if total <= upto:
        return Counted(total, likely=total, numbers=numbers)
    # words are found in the order of the numbers: where the last one stands says how far the counting has come
    cases = connection.execute("SELECT max(seq) FROM cases").fetchone()[0]
    return Counted(upto, more=True, likely=total * cases // max(numbers), numbers=numbers[:upto])


_FEW = 20_000
"""Cases that are looked at one by one rather than looking for an index that covers all conditions."""


def _led(
    connection: sqlite3.Connection, wanted: CaseFilter, filters: Sequence[Condition], words: Words | None
) -> Sequence[Condition]:
    """The conditions so that SQLite begins with the one that few cases meet, where kept counts or the index say so.

    Left alone, it doesn't know how many that are, and may look through all cases of a state for a rare flag.
    """
    if words is not None:
        few = f"SELECT count(*) FROM ({_MATCHING} LIMIT {_FEW})"  # noqa: S608
        return _unindexed(filters) if _count(connection, few, [words.query]) < _FEW else filters
    kept = {}
    for name, field in (*_COUNTED.items(), *((name, name) for name in _LISTS)):
        if values := getattr(wanted, field):
            narrowed = CaseFilter(**{field: values})
            kept[name] = _kept_count(connection, narrowed, _filters(connection, narrowed)) or 0
    least = min(kept, key=kept.__getitem__, default=None)
    if least is None or len(filters) < 2 or kept[least] >= _FEW:
        return filters
    return [each if each.sql.startswith(f"{least} ") else _unindexed([each])[0] for each in filters]


def _unindexed(filters: Sequence[Condition]) -> list[Condition]:
    """The same conditions, none of which SQLite looks up in an index: ``+`` keeps it from that."""
    return [each._replace(sql=f"+{each.sql}") for each in filters]


_KEPT_LISTS = "SELECT value, cases FROM case_counts WHERE name = ? AND cases > 0"


def _kept_count(connection: sqlite3.Connection, wanted: CaseFilter, filters: Sequence[Condition]) -> int | None:
    """The kept count of all cases, or of a filter by words of one column; None for every other filter."""
    if not filters:
        return _count(connection, "SELECT coalesce(sum(cases), 0) FROM case_counts WHERE name = 'state'", ())
    columns = {"state": wanted.states, "tier": wanted.tiers, "field": wanted.fields, "dataset": wanted.datasets}
    columns |= {"reviewer": wanted.reviewers}
    lists = {"flags": wanted.flags, "reasons": wanted.reasons, "models": wanted.models}
    given = [(name, tuple(values)) for name, values in {**columns, **lists}.items() if values]
    if len(filters) != 1 or len(given) != 1:
        return None
    ((name, values),) = given
    if name in lists:
        return sum(cases for _, cases in _lists_with(connection, name, values))
    marks = ", ".join("?" * len(values))
    kept = f"SELECT coalesce(sum(cases), 0) FROM case_counts WHERE name = ? AND value IN ({marks})"  # noqa: S608
    return _count(connection, kept, [name, *values])


def _lists_with(connection: sqlite3.Connection, name: str, values: Sequence[str]) -> list[tuple[str, int]]:
    """The lists of a column in which any of the values stands, and how many cases have each."""
    rows = connection.execute(_KEPT_LISTS, [name])
    return [(row[0], row[1]) for row in rows if not set(values).isdisjoint(json.loads(row[0]))]


def _closed(
    connection: sqlite3.Connection, wanted: CaseFilter, filters: Sequence[Condition], words: Words | None
) -> int:
    """How many of the cases that match are not open to this reviewer. Only what somebody worked on or holds can be."""
    where, values = conditions(filters, words)
    may_take, bound = conditions(_open_to(wanted), None)
    touched = "SELECT case_seq FROM case_work"
    if wanted.states and not set(wanted.states) & _DECIDED:
        # of the cases without a verdict only those have a decision of which several people's are wanted: to look
        # through the others, which are most, would take ever longer
        touched = (
            "SELECT case_seq FROM case_work WHERE kind IN ('assigned', 'skipped') "
            "UNION SELECT seq FROM cases WHERE pending > 0 "
            "UNION SELECT seq FROM cases WHERE state = 'needs_adjudication'"
        )
    return _count(
        connection,
        f"""
        SELECT count(*) FROM ({touched} UNION SELECT case_seq FROM leases) AS touched
        CROSS JOIN cases ON cases.seq = touched.case_seq WHERE {where} AND NOT ({may_take})
        """,  # noqa: S608
        [*values, *bound],
    )


_DECIDED = {"approved", "overridden", "rejected", "escalated", "redacted"}
"""The states in which a case may have a decision that counts and wants no other."""


def _count(connection: sqlite3.Connection, sql: str, values: Sequence[Any]) -> int:
    return int(connection.execute(sql, values).fetchone()[0])


def _page(connection: sqlite3.Connection, wanted: CaseFilter, found: Matching) -> tuple[list[int], bool]:
    """The numbers of the cases on the page, in order, and whether all that match were put into this order."""
    offset = (wanted.page - 1) * wanted.size
    if offset >= found.total:
        return [], True
    order = _order(connection, wanted)
    upto = offset + wanted.size
    if upto <= _FAR and len(found.filters) == 1 and wanted.states and found.words is None and wanted.order in _BY_STATE:
        return _of_states(connection, wanted, offset), True
    if worth_walking(connection, found, upto) and (order.walked is not None or upto <= _FAR):
        if order.walked is None:
            drawn = draw(wanted.seed, _most(connection))
            places = range(min(drawn.modulus, max(2 * upto, reach(found))))
            numbers = _drawn(connection, drawn, found, places, upto)[offset:]
        else:
            numbers = _walked(connection, order, found, wanted.size, offset)
        if len(numbers) == min(wanted.size, found.total - offset):
            return numbers, True
    limit = found.total if found.more else -1
    if found.numbers:
        where, values = "seq IN (SELECT value FROM json_each(?))", [json.dumps(found.numbers)]
    elif found.words is not None and not found.filters:  # as many of the list as are sorted, and no more of it
        where, values = f"seq IN ({_MATCHING} LIMIT {limit})", [found.words.query]
    else:
        where, values = conditions(_led(connection, wanted, found.filters, found.words), found.words)
    rows = connection.execute(
        f"SELECT seq FROM (SELECT seq, risk, disagreement, doubt FROM cases WHERE {where} LIMIT ?) "  # noqa: S608
        f"ORDER BY {order.sorted} LIMIT ? OFFSET ?",
        [*values, limit, *order.values, wanted.size, offset],
    )
    return [row[0] for row in rows], not found.more


_BY_STATE = {"risk": "cases_state_risk", "disagreement": "cases_state_disagreement"}
"""Orders that have an index within each state: the cases of one may all stand at the far end of the order of all."""


def _of_states(connection: sqlite3.Connection, wanted: CaseFilter, offset: int) -> list[int]:
    """The numbers of the cases on a page of some states, merged from the order within each."""
    first = [
        connection.execute(
            f"SELECT -{wanted.order}, seq FROM cases INDEXED BY {_BY_STATE[wanted.order]} "  # noqa: S608 (names of ours)
            f"WHERE state = ? ORDER BY {wanted.order} DESC, seq LIMIT ?",
            [state, offset + wanted.size],
        ).fetchall()
        for state in dict.fromkeys(wanted.states)
    ]
    merged = heapq.merge(*([tuple(row) for row in rows] for rows in first))
    return [seq for _, seq in islice(merged, offset, offset + wanted.size)]


def _walked(connection: sqlite3.Connection, order: Order, asked: Matching, size: int, offset: int) -> list[int]:
    """Numbers found by walking along an index. What matches may all stand at its far end: the walk ends before that."""
    where, values = conditions(_unindexed(asked.filters), asked.words, probe=True)
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
    if asked.more and not asked.words:
        return True
    cases = connection.execute("SELECT max(seq) FROM cases").fetchone()[0]
    return bool(upto * cases <= (_PROBED if asked.words else _WALKED) * max(asked.total, asked.likely))


def reach(asked: Matching) -> int:
    """Rows a walk goes past at most: what matches need not be spread as evenly as its number says."""
    if asked.more and not asked.words:
        return _FAR
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


def _filters(connection: sqlite3.Connection, wanted: CaseFilter) -> list[Condition]:
    return [
        *(_any_of("state", wanted.states)),
        *(_any_of("tier", wanted.tiers)),
        *(_any_of("field", wanted.fields)),
        *(_any_of("dataset", wanted.datasets)),
        *(_any_of("reviewer", wanted.reviewers)),
        *(_worked_on("assigned", wanted.assignees)),
        *(_worked_on("tagged", wanted.tags)),
        *(_open_to(wanted)),
        *(_any_in(connection, "flags", wanted.flags)),
        *(_any_in(connection, "reasons", wanted.reasons)),
        *(_any_in(connection, "models", wanted.models)),
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


def _any_in(connection: sqlite3.Connection, column: str, values: Sequence[str]) -> list[Condition]:
    """Any of the values stands in the JSON list of the column.

    The lists that occur are few and counted: naming those that hold a value lets an index find their cases.
    """
    if not values:
        return []
    lists = [each for each, _ in _lists_with(connection, column, values)]
    return [Condition(f"{column} IN (SELECT value FROM json_each(?))", (json.dumps(lists),))]  # noqa: S608


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


def _order(connection: sqlite3.Connection, wanted: CaseFilter) -> Order:
    return shuffle(wanted.seed, _most(connection)) if wanted.order == "random" else _ORDERS[wanted.order]


class Draw(NamedTuple):
    """A shuffle of all numbers below a prime: number n stands at place (n * factor + offset)^5 modulo the prime."""

    modulus: int
    factor: int
    offset: int

    def place_of(self, seq: int) -> int:
        """Return where a number stands."""
        return pow(seq * self.factor + self.offset, 5, self.modulus)

    def number_at(self, place: int) -> int:
        """Return which number stands there."""
        root = pow(place, pow(5, -1, self.modulus - 1), self.modulus)
        return (root - self.offset) * pow(self.factor, -1, self.modulus) % self.modulus


def draw(seed: int, most: int = _MODULI[-1] - 1) -> Draw:
    """The shuffle that a seed draws for numbers up to ``most``: another one only where there are twice as many."""
    modulus = next(prime for prime in _MODULI if prime > most)
    drawn = hashlib.sha256(str(seed).encode()).digest()
    return Draw(modulus, *(1 + int.from_bytes(part) % (modulus - 1) for part in (drawn[:8], drawn[8:16])))


def shuffle(seed: int, most: int = _MODULI[-1] - 1) -> Order:
    """The random order that a seed draws for cases numbered up to ``most``."""
    modulus, *values = draw(seed, most)
    # Multiplying alone leaves neighbours at even steps from each other, so a small store would stay sorted in runs. The
    # fifth power is a permutation modulo this prime and breaks the steps up.
    mixed = f"((x * x % {modulus}) * (x * x % {modulus}) % {modulus}) * x % {modulus}"
    return Order(f"(SELECT {mixed} FROM (SELECT (seq * ? + ?) % {modulus} AS x))", None, tuple(values))  # noqa: S608


def _most(connection: sqlite3.Connection) -> int:
    return int(connection.execute("SELECT coalesce(max(seq), 0) FROM cases").fetchone()[0])


_DRAWN_AT_ONCE = 1_000


def _drawn(
    connection: sqlite3.Connection,
    drawn: Draw,
    asked: Matching,
    places: Iterable[int],
    size: int,
    without: Collection[str] = (),
) -> list[int]:
    """Numbers of the first ``size`` cases that match and stand at these places of a random order, in their order.

    The order has no index, and needs none: which case stands at a place is computed from the place.
    """
    where, values = conditions(_unindexed(asked.filters), asked.words, probe=True)
    left_out = f" AND id NOT IN ({', '.join('?' * len(without))})" if without else ""
    found: list[int] = []
    places = iter(places)
    while len(found) < size and (some := [drawn.number_at(place) for place in islice(places, _DRAWN_AT_ONCE)]):
        rows = connection.execute(
            f"SELECT seq FROM cases WHERE seq IN (SELECT value FROM json_each(?)) AND {where}{left_out}",  # noqa: S608
            [json.dumps(some), *values, *without],
        )
        here = {row[0] for row in rows}
        found += [seq for seq in some if seq in here]
    return found[:size]


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
    found = matching(connection, wanted, MOST_COUNTED)
    return _Search(connection, wanted, found, ()).beside(seq, forward=forward) if found.total else None


def following(connection: sqlite3.Connection, wanted: CaseFilter, seq: int, without: Collection[str]) -> str | None:
    """The case behind number ``seq`` that is none of ``without``; behind the last one, the first of all."""
    found = matching(connection, wanted, MOST_COUNTED)
    if not found.total:
        return None
    search = _Search(connection, wanted, found, without)
    return search.beside(seq, forward=True) or search.beside(None, forward=True)


class _Behind(NamedTuple):
    """Which cases stand on one side of another one, in SQL, and the values it binds."""

    sql: str
    values: list[Any]


class _Search:
    """Looks for the case beside another one along the order of a filter."""

    def __init__(
        self, connection: sqlite3.Connection, wanted: CaseFilter, found: Matching, without: Collection[str]
    ) -> None:
        self.connection, self.found = connection, found
        self.order = _walk_of(wanted, _most(connection))
        self.drawn = draw(wanted.seed, _most(connection)) if wanted.order == "random" else None
        self.narrowed = bool(found.filters or found.words)
        self.walks = worth_walking(connection, found, 1)
        self.led = _led(connection, wanted, found.filters, found.words)
        self.left_out = list(without)[-MOST_LEFT_OUT:]

    def beside(self, seq: int | None, *, forward: bool) -> str | None:
        """The first case behind (or before) number ``seq``; without a number, the first of all."""
        if self.walks and self.drawn is not None:
            if found := self._along(self.drawn, seq, forward):
                return found
        elif self.walks:
            further = self._behind(seq, forward)
            end = self._end(further, forward) if self.narrowed else None
            upto = self._behind(end, not forward) if end is not None else _Behind("1", [])
            found = self._first(further, upto, forward, walks=True)
            if found is not None or end is None:
                return found
        return self._first(self._behind(seq, forward), _Behind("1", []), forward, walks=False)

    def _along(self, drawn: Draw, seq: int | None, forward: bool) -> str | None:
        """The next case along a random order, where it stands near."""
        step = 1 if forward else -1
        first = (0 if forward else drawn.modulus - 1) if seq is None else drawn.place_of(seq) + step
        end = drawn.modulus if forward else -1
        places = islice(range(first, end, step), reach(self.found))
        numbers = _drawn(self.connection, drawn, self.found, places, 1, self.left_out)
        row = self.connection.execute("SELECT id FROM cases WHERE seq = ?", numbers).fetchone() if numbers else None
        return None if row is None else str(row["id"])

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
        filters = _unindexed(self.found.filters) if walks else self.led
        where, values = conditions(filters, self.found.words, probe=walks)
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


def _walk_of(wanted: CaseFilter, most: int) -> _Walk:
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
            drawn = shuffle(wanted.seed, most)
            return _Walk(f"({drawn.sorted})", values=drawn.values)

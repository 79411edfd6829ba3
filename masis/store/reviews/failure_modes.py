"""Reads observations and the failure modes that people applied to them.

Every read respects the viewer's blindness (``visibility.py``). ``observations.py`` writes the rows.
"""

from __future__ import annotations

import json
import sqlite3
import zlib
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal, NamedTuple

from masis.schema.codebook import CaseObservation
from masis.store.audits.conditions import match
from masis.store.audits.queue import case_seq
from masis.store.core.connections import StorePart
from masis.store.core.sql import Condition, any_of, compare_column, join_conditions, record_of
from masis.store.records import (
    AppliedCode,
    GroupStamp,
    ModeTally,
    ObservationFilter,
    ObservationPage,
)
from masis.store.reviews import observations
from masis.store.reviews.visibility import (
    hides_anything,
    visible_codes,
    visible_observations,
)

Facet = Literal["mode", "system", "model", "field", "dataset", "time", "cause"]


class FacetRow(NamedTuple):
    """A way to break counts of modes down: its name, its values in SQL, and the filter of cases.

    ``of_mode`` facets belong to what was coded and not to the case, so their base is the number of
    cases with the mode.
    """

    name: str
    value: str
    join: str = ""
    case_filter: str = ""
    of_mode: bool = False


FACETS: dict[Facet, FacetRow] = {
    "mode": FacetRow("Mode", "''"),
    "system": FacetRow("System", "cases.system", case_filter="systems"),
    "model": FacetRow(
        "Model", "model.value", "JOIN json_each(cases.models) AS model", case_filter="models"
    ),
    "field": FacetRow("Field", "cases.field", case_filter="fields"),
    "dataset": FacetRow("Data set", "cases.dataset", case_filter="datasets"),
    "time": FacetRow("Month of import", "substr(cases.imported_at, 1, 7)", case_filter="months"),
    "cause": FacetRow(
        "Cause",
        "observations.cause",
        "JOIN observations ON observations.case_seq = cases.seq"
        " AND observations.place = coded.place",
        case_filter="causes",
        of_mode=True,
    ),
}
"""The facets of counts. Their SQL is made of our own names."""

_SELECT = """SELECT observations.id, cases.id AS case_id, place, observations.kind,
    jobs.id AS run_id, decision_log.id AS entry_id, type, observations.severity, cause, author,
    observations.at, observations.text, observations.quote, is_fault, observations.seq
    FROM observations JOIN cases ON cases.seq = observations.case_seq
    LEFT JOIN jobs ON jobs.seq = observations.run_seq
    LEFT JOIN decision_log ON decision_log.seq = observations.entry_seq"""

COUNTED_UP_TO = 10_000
"""Where counting of matching observations stops, so that a search for a common word stays fast."""

_GROUPS_STORED = 20
"""How many proposals of groups are stored; older ones are proposed again."""


class FailureModes(StorePart):
    """The observations of a store, and the codes that people applied."""

    def catch_up(self) -> None:
        """Derive the observations of cases that an older version of the product stored."""
        observations.derive_all_due(self._database)

    def search(self, wanted: ObservationFilter) -> ObservationPage:
        """Return one page of the matching observations with their codes, newest first."""
        with self._database.reading() as connection:
            source, where, values = _match_observations(connection, wanted)
            newest = "seq" if source == "observations" else "observation_words.rowid"
            count = f"SELECT count(*) FROM (SELECT 1 FROM {source} WHERE {where} LIMIT ?)"  # noqa: S608
            [(total,)] = self._database.cached_rows(count, (*values, COUNTED_UP_TO + 1))
            numbers = [
                row[0]
                for row in connection.execute(
                    f"SELECT observations.seq FROM {source} WHERE {where}"  # noqa: S608
                    f" ORDER BY {newest} DESC"
                    " LIMIT ? OFFSET ?",
                    [*values, wanted.size, (wanted.page - 1) * wanted.size],
                )
            ]
            rows = _observations(
                connection,
                ("observations.seq IN (SELECT value FROM json_each(?))", [json.dumps(numbers)]),
                wanted.viewer,
            )
        more = total > COUNTED_UP_TO
        return ObservationPage(rows=tuple(rows), total=total - more, more=more)

    def ids(self, wanted: ObservationFilter, limit: int) -> list[str]:
        """Return the ids of the first matching observations, newest first."""
        with self._database.reading() as connection:
            source, where, values = _match_observations(connection, wanted)
            rows = connection.execute(
                f"SELECT observations.id FROM {source} WHERE {where}"  # noqa: S608
                " ORDER BY observations.seq DESC LIMIT ?",
                [*values, limit],
            )
            return [row[0] for row in rows]

    # Patterns and groups

    def members(self, wanted: ObservationFilter) -> list[int]:
        """Return the pattern and the case of each matching observation, as one number.

        It is the number of the pattern times 2^32 plus that of the case, because reading two
        columns of 300,000 rows takes twice the time.
        """
        with self._database.reading() as connection:
            source, where, values = _match_observations(connection, wanted)
            sql = (
                f"SELECT pattern_seq << 32 | observations.case_seq FROM {source}"  # noqa: S608
                f" WHERE {where}"
            )
            cursor = connection.execute(sql, values)
            cursor.row_factory = None  # Tuples are made in a third of the time of Row objects.
            return [member for (member,) in cursor]

    def stamp(self, viewer: str) -> GroupStamp:
        """Return those inputs of proposed groups that are cheap to read."""
        row = self._database.row(
            """SELECT (SELECT count(*) || ' ' || coalesce(max(seq), 0) FROM observations)
                || ' ' || (SELECT coalesce(max(seq), 0) FROM decision_log)
                || ' ' || (SELECT count(*) FROM team_records WHERE kind = 'group_dismissal'),
                (SELECT coalesce(max(seq), 0) FROM team_records WHERE kind IN
                    ('policy', 'queue', 'sample_plan'))"""
        )
        with self._database.reading() as connection:
            blind = viewer if hides_anything(connection) else ""
        assert row is not None
        return GroupStamp(f"{blind}\n{row[1]}", row[0])

    def pattern_texts(self, patterns: Sequence[int]) -> dict[int, str]:
        """Return the texts of patterns by their numbers."""
        rows = self._database.execute(
            "SELECT seq, pattern FROM observation_patterns"
            " WHERE seq IN (SELECT value FROM json_each(?))",
            [json.dumps(list(patterns))],
        )
        return dict(map(tuple, rows))

    def patterns_with(self, digests: Iterable[str]) -> dict[str, int]:
        """Return the numbers of the patterns with these digests, by their digests."""
        rows = self._database.execute(
            "SELECT digest, seq FROM observation_patterns"
            " WHERE digest IN (SELECT value FROM json_each(?))",
            [json.dumps(list(digests))],
        )
        return dict(map(tuple, rows))

    def count_by_pattern(self, wanted: ObservationFilter) -> dict[int, int]:
        """Return how many matching observations each pattern has, by its number."""
        with self._database.reading() as connection:
            source, where, values = _match_observations(connection, wanted)
            rows = connection.execute(
                f"SELECT pattern_seq, count(*) FROM {source}"  # noqa: S608
                f" WHERE {where} GROUP BY pattern_seq",
                values,
            )
            return dict(map(tuple, rows))

    def newest_texts(self, wanted: ObservationFilter) -> dict[int, str]:
        """Return the text of the newest matching observation of each pattern, by its number."""
        with self._database.reading() as connection:
            source, where, values = _match_observations(connection, wanted)
            # SQLite takes the text from the row that has the maximum.
            rows = connection.execute(
                f"SELECT pattern_seq, observations.text, max(observations.seq) FROM {source}"  # noqa: S608
                f" WHERE {where} GROUP BY pattern_seq",
                values,
            )
            return {pattern: text for pattern, text, _ in rows}

    def vectors(self, patterns: Sequence[int]) -> dict[int, bytes]:
        """Return the stored vectors of patterns by their numbers."""
        rows = self._database.execute(
            "SELECT seq, vector FROM observation_patterns"
            " WHERE vector NOTNULL AND seq IN (SELECT value FROM json_each(?))",
            [json.dumps(list(patterns))],
        )
        return dict(map(tuple, rows))

    def save_vectors(self, vectors: Mapping[int, bytes]) -> None:
        """Store vectors of patterns, which go with the last observation of a pattern."""
        with self._database.transaction(durable=False) as connection:
            connection.executemany(
                "UPDATE observation_patterns SET vector = ? WHERE seq = ?",
                [(vector, seq) for seq, vector in vectors.items()],
            )

    def similar_patterns(self, wanted: ObservationFilter, words: str, limit: int) -> list[int]:
        """Return the patterns of matching observations that share the most words with a text."""
        with self._database.reading() as connection:
            _, where, values = _match_observations(connection, wanted)
            rows = connection.execute(
                # CROSS JOIN makes SQLite search the words first and then look up their rows.
                f"""SELECT pattern_seq FROM (
                    SELECT pattern_seq, rank FROM observation_words
                    CROSS JOIN observations ON observations.seq = observation_words.rowid
                    WHERE observation_words MATCH ? AND {where} ORDER BY rank LIMIT ?
                ) GROUP BY pattern_seq ORDER BY min(rank) LIMIT ?""",  # noqa: S608
                [match(words).replace(" AND ", " OR "), *values, 20 * limit, limit],
            )
            return [row[0] for row in rows]

    def pattern_of(self, observation: str) -> int | None:
        """Return the number of an observation's pattern, or None if there is none with this id."""
        row = self._database.row("SELECT pattern_seq FROM observations WHERE id = ?", [observation])
        return None if row is None else int(row[0])

    def find_groups(self, key: str) -> tuple[str, str] | None:
        """Return the stamp and the content of the stored proposal with this key, or None."""
        row = self._database.row("SELECT stamp, payload FROM proposed_groups WHERE key = ?", [key])
        return None if row is None else (row[0], zlib.decompress(row[1]).decode())

    def save_groups(self, key: str, stamp: str, groups: str) -> None:
        """Store a proposal of groups in place of an earlier one, and forget the oldest ones."""
        with self._database.transaction(durable=False) as connection:
            connection.execute(
                "INSERT OR REPLACE INTO proposed_groups VALUES (?, ?, ?, ?)",
                [key, self._database.now(), stamp, zlib.compress(groups.encode(), 1)],
            )
            connection.execute(
                "DELETE FROM proposed_groups WHERE key NOT IN"
                " (SELECT key FROM proposed_groups ORDER BY at DESC LIMIT ?)",
                [_GROUPS_STORED],
            )

    # Codes

    def codes_of_case(self, case_id: str, viewer: str | None) -> tuple[AppliedCode, ...]:
        """Return the codes of a case that a reviewer may see, in the order of their entries.

        Raises UnknownRecord.
        """
        with self._database.reading() as connection:
            where, values = join_conditions(
                [
                    ("case_codes.case_seq = ?", [case_seq(connection, case_id)]),
                    *visible_codes(connection, viewer),
                ]
            )
            return tuple(
                AppliedCode(case_id, *row)
                for row in connection.execute(
                    f"""SELECT place, code, reviewer, decision_log.id FROM case_codes
                    JOIN decision_log ON decision_log.seq = entry_seq
                    WHERE {where} ORDER BY entry_seq, place, code, reviewer""",  # noqa: S608
                    values,
                )
            )

    def codes_used(self) -> frozenset[str]:
        """Return the codes that people applied anywhere."""
        rows = self._database.execute("SELECT DISTINCT code FROM case_codes")
        return frozenset(row[0] for row in rows)

    def entries_of_batch(self, batch: str, case_id: str) -> tuple[str, ...]:
        """Return the ids of the entries of a batch that applied codes in a case, newest first."""
        rows = self._database.execute(
            """SELECT log.id FROM decision_log AS log
               JOIN decision_payloads ON entry_seq = log.seq
               WHERE log.case_seq = (SELECT seq FROM cases WHERE id = ?) AND log.kind = 'code'
                   AND payload ->> '$.extra.batch' = ? ORDER BY log.seq DESC""",
            [case_id, batch],
        )
        return tuple(row[0] for row in rows)

    def count_of_batch(self, batch: str) -> int:
        """Return the number of entries by which a batch applied codes that it still has."""
        row = self._database.row(
            """SELECT count(*) FROM batches CROSS JOIN batch_cases ON batch_seq = batches.seq
               CROSS JOIN decision_log AS log ON log.case_seq = batch_cases.case_seq
                   AND log.kind = 'code'
               JOIN decision_payloads AS payloads ON payloads.entry_seq = log.seq
               WHERE batches.id = ?1 AND outcome = 'recorded'
                   AND payload ->> '$.extra.batch' = batches.id""",
            [batch],
        )
        return int(row[0]) if row is not None else 0

    def tally(
        self, codes: Mapping[str, Iterable[str]], facet: Facet, viewer: str | None
    ) -> list[ModeTally]:
        """Count the cases and observations of each mode by the values of a facet.

        Args:
            codes: The codes that count for each mode.
            facet: The facet.
            viewer: The reviewer who sees the counts.

        """
        row = FACETS[facet]
        pairs = json.dumps([[code, mode] for mode, named in codes.items() for code in named])
        with self._database.reading() as connection:
            where, values = join_conditions(visible_codes(connection, viewer))
            sql = f"""
                WITH modes (code, mode) AS MATERIALIZED (
                    SELECT value ->> 0, value ->> 1 FROM json_each(?)
                ), coded AS (
                    SELECT DISTINCT case_seq, place, mode FROM case_codes
                    JOIN modes ON modes.code = case_codes.code WHERE {where}
                )
                SELECT mode, {row.value} AS value, count(DISTINCT coded.case_seq),
                    count(nullif(coded.place, ''))
                FROM coded JOIN cases ON cases.seq = coded.case_seq {row.join}
                WHERE value NOTNULL AND standing <> 'planted' GROUP BY mode, value
            """  # noqa: S608
            counted = self._database.cached_rows(sql, (pairs, *values))
        return [ModeTally(*tally) for tally in counted]

    def count_examined(self, facet: Facet, viewer: str | None) -> dict[str, int]:
        """Count the cases that were audited, decided or coded by value, as the viewer may know it.

        The facets of what was coded have no such base, so for them this is the total under "".
        """
        row = FACETS["mode"] if FACETS[facet].of_mode else FACETS[facet]
        with self._database.reading() as connection:
            where, values = join_conditions(visible_codes(connection, viewer))
            sql = f"""
                SELECT {row.value} AS value, count(DISTINCT cases.seq) FROM cases {row.join}
                WHERE value NOTNULL AND standing <> 'planted' AND redaction_seq IS NULL
                    AND (run_seq NOTNULL
                        OR state IN ('approved', 'overridden', 'rejected', 'escalated')
                        OR cases.seq IN (SELECT case_seq FROM case_work
                            WHERE kind = 'decided' AND who = ?)
                        OR cases.seq IN (SELECT case_seq FROM case_codes WHERE {where}))
                GROUP BY value
            """  # noqa: S608
            return dict(self._database.cached_rows(sql, (viewer or "", *values)))

    def find_shared_codings(self, viewer: str | None) -> dict[int, dict[str, frozenset[str]]]:
        """Return the codes of each reviewer on the cases that several people decided, by case.

        Only reviewers who code at all are included. Cases with missing decisions are left out for
        everybody, because they would reveal who has decided.
        """
        with self._database.reading() as connection:
            where, values = join_conditions(visible_codes(connection, viewer))
            rows = connection.execute(
                f"""SELECT work.case_seq, work.who, code
                    FROM case_work AS work JOIN cases ON cases.seq = work.case_seq
                    LEFT JOIN case_codes ON case_codes.case_seq = work.case_seq
                        AND case_codes.reviewer = work.who AND {where}
                    WHERE work.kind = 'decided' AND pending = 0 AND wanted > 1
                        AND standing <> 'planted'
                        AND work.who IN (SELECT reviewer FROM case_codes)""",  # noqa: S608
                values,
            ).fetchall()
        codings: dict[int, dict[str, set[str]]] = {}
        for case, who, code in rows:
            of_reviewer = codings.setdefault(case, {}).setdefault(who, set())
            if code is not None:
                of_reviewer.add(code)
        return {
            case: {who: frozenset(codes) for who, codes in reviewers.items()}
            for case, reviewers in codings.items()
            if len(reviewers) > 1
        }


def _observations(
    connection: sqlite3.Connection, wanted: Condition, viewer: str | None
) -> list[CaseObservation]:
    rows = connection.execute(
        f"{_SELECT} WHERE {wanted[0]} ORDER BY observations.seq DESC", wanted[1]
    ).fetchall()
    where, values = join_conditions(visible_codes(connection, viewer))
    applied: dict[tuple[str, str], list[str]] = {}
    cases = json.dumps(list({row["case_id"] for row in rows}))
    for case_id, place, code in connection.execute(
        f"""SELECT DISTINCT cases.id, place, code FROM case_codes
            JOIN cases ON cases.seq = case_codes.case_seq
            WHERE cases.id IN (SELECT value FROM json_each(?)) AND place <> '' AND {where}
            ORDER BY code""",  # noqa: S608
        [cases, *values],
    ):
        applied.setdefault((case_id, place), []).append(code)
    return [
        record_of(
            CaseObservation,
            row,
            is_fault=bool(row["is_fault"]),
            codes=tuple(applied.get((row["case_id"], row["place"]), ())),
        )
        for row in rows
    ]


_UNEXPLAINED = """NOT (observations.kind = 'reason' AND observations.type NOT IN ('', 'other')
    AND EXISTS (SELECT 1 FROM observations AS said WHERE said.case_seq = observations.case_seq
        AND said.entry_seq = observations.entry_seq AND said.kind <> 'reason' AND said.is_fault))"""
"""The condition that an observation isn't a reason from the list beside a note or a label of the
same entry.
"""


def _match_observations(
    connection: sqlite3.Connection, wanted: ObservationFilter
) -> tuple[str, str, tuple[Any, ...]]:
    """Return the source, the condition and the bound values of a filter of observations."""
    cases = [
        *any_of("field", wanted.fields),
        *any_of("dataset", wanted.datasets),
        *any_of("system", wanted.systems),
    ]
    if wanted.models:
        listed = [json.dumps(model, ensure_ascii=False) for model in wanted.models]
        cases.append((f"({' OR '.join(['instr(models, ?)'] * len(listed))})", listed))
    if wanted.case_id is not None:
        cases.append(("seq = ?", [case_seq(connection, wanted.case_id)]))
    parts: list[Condition] = [
        *any_of("observations.kind", wanted.kinds),
        *any_of("observations.type", wanted.types),
        *any_of("observations.severity", wanted.severities),
        *any_of("observations.author", wanted.authors),
        *any_of("observations.cause", wanted.causes),
        *compare_column("observations.at", ">=", wanted.since),
        *compare_column("observations.at", "<", wanted.until),
        *([("is_fault", ())] if wanted.faults_only else []),
        *([(_UNEXPLAINED, ())] if wanted.skip_explained else []),
        *_in_list("observations.id", wanted.ids),
        *_in_list("observations.pattern_seq", wanted.patterns),
        *visible_observations(connection, wanted.viewer),
    ]
    if cases:
        where, values = join_conditions(cases)
        parts.append(
            (f"observations.case_seq IN (SELECT seq FROM cases WHERE {where})", values)  # noqa: S608
        )
    if wanted.codes:
        parts.append(_coded_observations(connection, wanted.viewer, any_of("code", wanted.codes)))
    if wanted.uncoded:
        coded, seen = _coded_observations(connection, wanted.viewer, [])
        parts.append((f"NOT {coded}", seen))
        # A code of the whole case says of all its observations what is wrong.
        visible, seen = join_conditions(
            [("place = ''", []), *visible_codes(connection, wanted.viewer)]
        )
        cases_coded = f"SELECT case_codes.case_seq FROM case_codes WHERE {visible}"  # noqa: S608
        parts.append((f"observations.case_seq NOT IN ({cases_coded})", seen))
    where, bound = join_conditions(parts)
    if not wanted.text.strip():
        return "observations", where, tuple(bound)
    case = connection.execute("SELECT seq FROM cases WHERE id = ?", [wanted.text.strip()])
    if (named := case.fetchone()) is not None:
        matching = "SELECT rowid FROM observation_words WHERE observation_words MATCH ?"
        where = f"(observations.case_seq = ? OR observations.seq IN ({matching})) AND {where}"
        return "observations", where, (named[0], match(wanted.text), *bound)
    # CROSS JOIN makes SQLite search the words first, newest first, and then look up their rows.
    source = (
        "observation_words CROSS JOIN observations ON observations.seq = observation_words.rowid"
    )
    where = f"observation_words MATCH ? AND {where}"
    whole = (match(wanted.text), *bound)
    any_match = f"SELECT 1 FROM {source} WHERE {where} LIMIT 1"  # noqa: S608
    if connection.execute(any_match, whole).fetchone():
        return source, where, whole
    return source, where, (match(wanted.text, beginning=True), *bound)


def _coded_observations(
    connection: sqlite3.Connection, viewer: str | None, codes: list[Condition]
) -> Condition:
    """Return the condition that an observation has a code that the viewer may see.

    The subquery doesn't depend on the row, so SQLite runs it once.
    """
    where, values = join_conditions([*codes, *visible_codes(connection, viewer)])
    sql = f"""observations.seq IN (
        SELECT applied.seq FROM case_codes JOIN observations AS applied
            ON applied.case_seq = case_codes.case_seq AND applied.place = case_codes.place
        WHERE {where})"""  # noqa: S608
    return sql, values


def _in_list(column: str, values: Sequence[str | int]) -> list[Condition]:
    """Return the condition that a column has one of many values, which are bound as one list."""
    listed = f"{column} IN (SELECT value FROM json_each(?))"  # noqa: S608 (our own columns)
    return [(listed, [json.dumps(list(values))])] if values else []

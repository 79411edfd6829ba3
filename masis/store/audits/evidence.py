"""Evidence across all cases: which cases hold a chunk of this id, which hold these words, which ids are near a name.

An evidence id is an id within its case only, so that one id may name chunks of many cases.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Collection
from typing import Literal

from masis.store.audits import queue
from masis.store.core.connections import Database
from masis.store.records import Found

_LOOKED_FOR_FIRST = 3
"""Ids that are looked for as text before a case is parsed: for more, that costs more than parsing."""


class EvidenceOfCases:
    """The evidence of the cases of a store."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def cases_with(self, evidence_ids: Collection[str], limit: int = 10) -> dict[str, Found]:
        """For each id the cases that hold a chunk of exactly this id, oldest first. Looks through every case, once."""
        wanted = list(dict.fromkeys(evidence_ids))
        quoted = [json.dumps(each, ensure_ascii=False) for each in wanted] if len(wanted) <= _LOOKED_FOR_FIRST else []
        holds = " OR ".join(["instr(payload, ?)"] * len(quoted)) or "1"
        found: dict[str, list[int]] = {each: [] for each in wanted}
        totals, last = Counter[str](), dict[str, int]()
        with self._database.reading() as connection:
            # in this order the cases come as they lie, and none but those that are named is kept in memory
            rows = connection.execute(
                f"""
                SELECT case_seq, value ->> '$.id' FROM case_payloads CROSS JOIN json_each(payload, '$.evidence')
                WHERE ({holds}) AND value ->> '$.id' IN (SELECT value FROM json_each(?)) ORDER BY case_seq
                """,  # noqa: S608 (only marks for values)
                [*quoted, json.dumps(wanted)],
            )
            for case, evidence_id in rows:
                if last.get(evidence_id) == case:
                    continue  # two chunks of one case under one id
                last[evidence_id] = case
                totals[evidence_id] += 1
                if len(found[evidence_id]) < limit:
                    found[evidence_id].append(case)
            named = connection.execute(
                "SELECT seq, id FROM cases WHERE seq IN (SELECT value FROM json_each(?))",
                [json.dumps(sorted({case for cases in found.values() for case in cases}))],
            )
            ids = {row["seq"]: row["id"] for row in named}
        return {each: Found(tuple(ids[case] for case in cases), totals[each]) for each, cases in found.items()}

    def with_words(self, text: str, *, limit: int, offset: int = 0) -> Found:
        """The cases whose evidence holds all words of a text, the one that says most about them first."""
        with self._database.reading() as connection:
            for beginning in (False, True):
                query = f"evidence : ({queue.match(text, beginning=beginning)})"
                total = connection.execute(
                    "SELECT count(*) FROM case_words WHERE case_words MATCH ?", [query]
                ).fetchone()[0]
                if total:
                    break
            rows = connection.execute(
                """
                SELECT cases.id FROM case_words JOIN cases ON cases.seq = case_words.rowid
                WHERE case_words MATCH ? ORDER BY bm25(case_words), cases.seq LIMIT ? OFFSET ?
                """,
                [query, limit, offset],
            ).fetchall()
        return Found(tuple(row[0] for row in rows), total)

    def newest_case_ids(self, limit: int = 2000) -> tuple[str, ...]:
        """Ids of the cases that came in last, to find the one that a wrong id may have meant."""
        rows = self._database.execute("SELECT id FROM cases ORDER BY seq DESC LIMIT ?", [limit])
        return tuple(row[0] for row in rows)

    def newest_run_ids(self, limit: int = 2000) -> tuple[str, ...]:
        """Ids of the runs that began last, for the same purpose."""
        rows = self._database.execute("SELECT id FROM runs ORDER BY seq DESC LIMIT ?", [limit])
        return tuple(row[0] for row in rows)

    def ids_beginning(self, kind: Literal["case", "run"], text: str, limit: int) -> Found:
        """Ids of cases or runs that begin with a text, the newest first, and how many there are in all."""
        table = {"case": "cases", "run": "runs"}[kind]
        begins = f"FROM {table} WHERE substr(id, 1, length(?1)) = ?1"
        with self._database.reading() as connection:
            total = connection.execute(f"SELECT count(*) {begins}", [text]).fetchone()[0]
            rows = connection.execute(f"SELECT id {begins} ORDER BY seq DESC LIMIT ?2", [text, limit]).fetchall()
        return Found(tuple(row[0] for row in rows), total)

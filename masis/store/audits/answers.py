"""Finds cases by their answers: those with nearly the same answer, and those with a sentence.

Two answers are nearly the same if their sets of words have a Jaccard similarity of at least 0.9.
The full-text index of the queue finds the candidates, so nothing else is stored that a redaction
would have to remove. Prefix filtering makes the search exact (Bayardo, Ma, Srikant, "Scaling up all
pairs similarity search", WWW 2007): an answer that is similar to one with ``n`` different words
lacks at most ``n - ceil(0.9 n)`` of them. If these words are dealt into one group more than that,
it has all words of at least one group. The longest words of each group are searched, since long
words are rare, and the texts of the few cases found are compared.
"""

from __future__ import annotations

import json
import re
import sqlite3
import unicodedata

from masis.errors import UnknownRecord
from masis.store.core.connections import StorePart

SIMILARITY_TENTHS = 9
"""The lowest similarity of two nearly equal answers, in tenths: a whole number, because 0.9 times
a whole number isn't exact.
"""

MOST_SIMILAR = 1_000
"""Maximum number of cases that are compared with an answer, and thus the maximum that is found.

Only answers that consist of the same few words, such as refusals, have more.
"""

_WORDS_PER_GROUP = 4
"""The number of words of a group that are searched. More of them find the same cases."""

_MOST_WORDS = 4_000
"""Maximum number of different words of an answer that are used, so that the query stays short."""

_SENTENCE_WORDS = 12

# Letters and digits, as the tokenizer unicode61 of the index separates words
# (sqlite.org/fts5.html#unicode61_tokenizer).
_WORD = re.compile(r"[^\W_]+")


def answer_words(answer: str) -> frozenset[str]:
    """Return the different words of an answer, in lower case.

    They aren't casefolded, because the index doesn't take "ß" for "ss".
    """
    return frozenset(_WORD.findall(unicodedata.normalize("NFC", answer).lower()))


def are_similar(left: frozenset[str], right: frozenset[str]) -> bool:
    """Return whether two sets of words have a Jaccard similarity of at least 0.9."""
    both = len(left & right)
    return both > 0 and 10 * both >= SIMILARITY_TENTHS * (len(left) + len(right) - both)


def similar_query(words: frozenset[str]) -> str:
    """Return the full-text query for all answers that can be similar to one with these words."""
    longest = sorted(words, key=lambda word: (-len(word), word))[:_MOST_WORDS]
    # Negating twice rounds the quotient up.
    groups = len(longest) - -(-SIMILARITY_TENTHS * len(longest) // 10) + 1
    parts = [_all_of(longest[first::groups][:_WORDS_PER_GROUP]) for first in range(groups)]
    return f"answer : ({' OR '.join(parts)})"


def _all_of(words: list[str]) -> str:
    # A word has letters and digits only, so it can't end its quotation.
    quoted = [f'"{word}"' for word in words]
    return f"({' AND '.join(quoted)})"


def similar_cases(connection: sqlite3.Connection, case_id: str) -> list[int]:
    """Return the numbers of the other cases with nearly the same answer as one case.

    Earlier versions of cases are left out, since they have the same answer. So are copies with a
    planted fault, and the original of a copy: the difference between the two would show the fault.

    Raises:
        UnknownRecord: There is no such case.

    """
    row = connection.execute(
        """SELECT seq, payload ->> '$.answer',
                (SELECT source_seq FROM planted_faults WHERE planted_faults.case_seq = seq)
            FROM cases JOIN case_payloads ON case_payloads.case_seq = seq WHERE id = ?""",
        [case_id],
    ).fetchone()
    if row is None:
        raise UnknownRecord(f"there is no case {case_id!r}.")
    own, answer, source = row
    words = answer_words(answer or "")
    if not words:
        return []
    candidates = connection.execute(
        """SELECT cases.seq, payload ->> '$.answer' FROM case_words
            CROSS JOIN cases ON cases.seq = case_words.rowid
            CROSS JOIN case_payloads ON case_payloads.case_seq = cases.seq
            WHERE case_words MATCH ? AND NOT planted AND state <> 'superseded'
                AND cases.seq NOT IN (?, ?) LIMIT ?""",
        [similar_query(words), own, source or own, MOST_SIMILAR],
    )
    return [seq for seq, other in candidates if are_similar(words, answer_words(other or ""))]


class Answers(StorePart):
    """Searches in the answers of the cases of a store."""

    def decided_with_words(self, text: str, reviewer: str, limit: int) -> tuple[str, ...]:
        """Return the cases that a reviewer decided and whose answer has the words of a text.

        Their order is that of import. The words needn't be next to each other.
        """
        words = sorted(answer_words(text), key=lambda word: (-len(word), word))[:_SENTENCE_WORDS]
        if not words:
            return ()
        rows = self._database.execute(
            """SELECT cases.id FROM case_words
                CROSS JOIN cases ON cases.seq = case_words.rowid
                CROSS JOIN case_work ON case_work.case_seq = cases.seq
                    AND case_work.kind = 'decided' AND who = ?
                WHERE case_words MATCH ? ORDER BY cases.seq LIMIT ?""",
            [reviewer, f"answer : {_all_of(words)}", limit],
        )
        return tuple(row[0] for row in rows)


def similar_to_any(connection: sqlite3.Connection, case_ids: tuple[str, ...]) -> str:
    """Return the numbers of the cases that are similar to any of these, as a JSON list.

    Unknown ids, as an address may have, match no case.
    """
    numbers: set[int] = set()
    for case_id in case_ids:
        try:
            numbers.update(similar_cases(connection, case_id))
        except UnknownRecord:
            continue
    return json.dumps(sorted(numbers))

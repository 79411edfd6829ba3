"""The conditions that a filter puts on the content of a case, its audit and its tags, as SQL.

They need nothing but the filter, so the queue, named queues and the rules of visibility share them.
"""

from __future__ import annotations

import json
from collections.abc import Sequence

from masis.store.core.sql import Condition, any_of, compare_column
from masis.store.records import CaseFilter

_WORDS_SEARCHED = 32
_WORD_LENGTH = 100
_BEGINNING = 3

LISTS = ("models", "flags", "reasons")
COLUMNS = {
    "months": "substr(cases.imported_at, 1, 7)",
    "severities": "CASE WHEN cases.iterations > 0 THEN coalesce(cases.severity, 'none') END",
    **{f"{word}s": f"cases.{word}" for word in ("state", "field", "dataset", "reviewer", "system")},
    **{name: f"cases.{name}" for name in LISTS},
}
"""The SQL of fields. With the name of the table, since other tables of a join have such columns."""

WORK = {"assignees": "assigned", "tags": "tagged"}
"""The kind of ``case_work`` for each field of a filter that isn't a column of the cases."""

BY_AUDIT = (
    *("flags", "reasons", "tiers", "severities", "models"),
    *("quality_from", "quality_to", "confidence_from", "confidence_to"),
)
"""The fields of a filter that depend on what the audit found."""


def is_filled_by_audit(case_filter: CaseFilter) -> bool:
    """Return whether a filter depends on the results of audits."""
    return any(getattr(case_filter, name) not in ((), None) for name in BY_AUDIT)


def content_conditions(case_filter: CaseFilter) -> list[Condition]:
    """Return the conditions on content, audit, assignees and tags; those on status aren't
    included.
    """
    return [
        *any_of("+cases.tier", case_filter.tiers),
        *any_of(COLUMNS["severities"], case_filter.severities),
        *any_of("+cases.field", case_filter.fields),
        *any_of("+cases.dataset", case_filter.datasets),
        *any_of("+cases.system", case_filter.systems),
        *any_of(COLUMNS["months"], case_filter.months),
        *any_of("cases.import_id", case_filter.imports),
        *any_of("+cases.reviewer", case_filter.reviewers),
        *_any_in(COLUMNS["flags"], case_filter.flags),
        *_any_in(COLUMNS["reasons"], case_filter.reasons),
        *_any_in(COLUMNS["models"], case_filter.models),
        *compare_column("+cases.quality", ">=", case_filter.quality_from),
        *compare_column("+cases.quality", "<=", case_filter.quality_to),
        *compare_column("+cases.confidence", ">=", case_filter.confidence_from),
        *compare_column("+cases.confidence", "<=", case_filter.confidence_to),
        *worked_on(WORK["assignees"], case_filter.assignees),
        *worked_on(WORK["tags"], case_filter.tags),
    ]


def _any_in(column: str, values: Sequence[str]) -> list[Condition]:
    """Return the condition that a column's JSON list has one of the values."""
    # As JSON, with its quotes, so that a value doesn't match inside another one.
    written = [json.dumps(value, ensure_ascii=False) for value in values]
    return [(f"({' OR '.join([f'instr({column}, ?)'] * len(values))})", written)] if values else []


def worked_on(kind: str, names: Sequence[str]) -> list[Condition]:
    """Return the condition that one of these people works on the case, or that it has a tag."""
    marks = ", ".join("?" * len(names))
    work = f"SELECT case_seq FROM case_work WHERE kind = ? AND who IN ({marks})"  # noqa: S608
    return [(f"cases.seq IN ({work})", (kind, *names))] if names else []


def match(text: str, *, beginning: bool = False) -> str:
    """Return typed text as an FTS5 query for cases with all its words.

    Each word is quoted, so no part of it is parsed as FTS5 syntax. With ``beginning``, the last
    word also matches as the beginning of a word, if it has three letters or more (one in scripts
    without blanks). Text without a letter or digit matches nothing. Only the first 32 words count,
    each cut to 100 characters.
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

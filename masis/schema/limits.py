"""The largest inputs that the workbench accepts, declared once for all entry points.

Entry points are HTTP ingestion, the MCP server, files read by pages and commands, the form of a new
audit, and Python (``masis.run_audit``, ``@masis.audited``, ``critique_draft``). Every case goes
through ``check_case`` (``schema/case.py``). A refusal names the limit and, over HTTP, uses its
status. The settings of the group limits say how much of a case an audit checks; they can't be set
above these limits.
"""

from __future__ import annotations

from typing import NamedTuple

from masis.errors import InputError

QUESTION = 20_000
ANSWER = 150_000
CHUNK = 500_000
EVIDENCE = 2_000_000
CHUNKS = 10_000
LEVELS = 64
"""Levels of nesting, limited since the database and the pages write records recursively."""
PARQUET_VALUES = 500_000
"""Values of a row of a Parquet file. As Python objects they take up to 640 bytes each, in the file
almost nothing if they are equal.
"""
VALUES = 2_000_000
"""Objects, lists and fields of a row. In memory an object takes a hundred times the two characters
of ``{}``.
"""
BODY = 8 * 2**20
CASES = 1_000
REQUESTS_A_MINUTE = 3_000
BURST = 500


class Limit(NamedTuple):
    """One limit.

    Attributes:
        name: Its name in refusals.
        most: The largest amount that is accepted.
        of: The unit, with the object it applies to.
        status: The HTTP status of a refusal.
        setting: The setting of an audit that limits the same quantity.
        source: Whether a source of HTTP ingestion may have its own value, under the same name in
            the file of sources.

    """

    name: str
    most: int
    of: str
    status: int
    setting: str = ""
    source: bool = False


LIMITS = (
    Limit("question_characters", QUESTION, "characters of a question", 422),
    Limit("answer_characters", ANSWER, "characters of an answer", 422, "max_answer_characters"),
    Limit("chunk_characters", CHUNK, "characters of a chunk of evidence", 422),
    Limit(
        "evidence_characters",
        EVIDENCE,
        "characters of all chunks of a case",
        422,
        "max_evidence_characters",
    ),
    Limit("evidence_chunks", CHUNKS, "chunks of evidence of a case", 422, "max_evidence"),
    Limit("nesting_levels", LEVELS, "levels of nesting of a record", 422),
    Limit("row_values", VALUES, "objects, lists and fields of a row", 422),
    Limit("parquet_values", PARQUET_VALUES, "values of a row of a Parquet file", 422),
    Limit(
        "max_body_bytes",
        BODY,
        "bytes of a request (HTTP, also unpacked) or message (MCP)",
        413,
        source=True,
    ),
    Limit("max_cases", CASES, "cases of a request (HTTP)", 413, source=True),
    Limit(
        "requests_per_minute",
        REQUESTS_A_MINUTE,
        "requests a minute for each token (HTTP, MCP)",
        429,
        source=True,
    ),
    Limit("burst", BURST, "requests at once for each token (HTTP, MCP)", 429, source=True),
)


def limit_error(name: str, found: str, field: str | None = None) -> InputError:
    """Return the error for an exceeded limit.

    Args:
        name: The name of the limit.
        found: The problem as a predicate, such as "has 30,000 characters".
        field: The field that exceeds the limit.

    """
    limit = next(candidate for candidate in LIMITS if candidate.name == name)
    problem = f"{found}; the limit is {limit.most:,} {limit.of.split()[0]} ({name})"
    return InputError(problem, hint="Send less.", field=field, limit=name)


def check_nesting(value: object) -> None:
    """Raise InputError if lists and objects are nested too deeply."""
    level, inner = 0, [value]
    while inner:
        level += 1
        if level > LEVELS + 1:
            raise limit_error("nesting_levels", f"is nested more than {LEVELS} levels deep")
        containers = [
            container for container in inner if isinstance(container, dict | list | tuple)
        ]
        inner = [
            item
            for container in containers
            for item in (container.values() if isinstance(container, dict) else container)
        ]

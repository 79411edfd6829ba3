"""How much the workbench takes at once: one declaration for every door by which cases come in.

Doors are the HTTP door, the MCP server, files read by page or by command, the form of a new audit,
and Python (``masis.run_audit``, ``@masis.audited``, ``critique_draft``). Every case passes
``check_case`` (``schema/case.py``). What is refused names the limit, over HTTP with its status. An
audit checks as much of a case as the settings of the group limits say, and none of them can be set
above what a door takes.
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
"""The database and the pages write records recursively."""
VALUES = 2_000_000
"""Each takes a hundred times the two characters it is written in."""
BODY = 8 * 2**20
CASES = 1_000
REQUESTS_A_MINUTE = 3_000
BURST = 500


class Limit(NamedTuple):
    """One limit: its name in refusals, how much of what it allows, and the status of a refusal over
    HTTP.

    ``setting`` names the setting of an audit that bounds the same; ``source`` says that a source of
    the HTTP door may have another value, under the same name in the file of sources.
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
    Limit("row_values", VALUES, "objects and lists of a row", 422),
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
    """Return the error of what passes a limit: ``found`` says what it holds or is."""
    limit = next(each for each in LIMITS if each.name == name)
    problem = f"{found}, at most {limit.most:,} {limit.of.split()[0]} are taken ({name})"
    return InputError(problem, hint="Send less of it.", field=field, limit=name)


def check_nesting(value: object) -> None:
    """Raise InputError where lists and objects are nested too deeply."""
    level, inner = 0, [value]
    while inner:
        level += 1
        if level > LEVELS + 1:
            raise limit_error("nesting_levels", f"is nested more than {LEVELS} levels deep")
        containers = [each for each in inner if isinstance(each, dict | list | tuple)]
        inner = [
            item
            for each in containers
            for item in (each.values() if isinstance(each, dict) else each)
        ]

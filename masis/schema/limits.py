"""How much one case may hold at the doors by which programs and people hand cases in: one declaration for all of them.

The form of a new audit, the HTTP door and the MCP server enforce them; files that an administrator imports are bounded
by their readers alone. An audit takes whatever is stored.
"""

from __future__ import annotations

from masis.errors import InputError
from masis.schema.case import Case

QUESTION = 20_000
"""Characters of a question."""
ANSWER = 150_000
"""Characters of an answer, or of one chunk of evidence."""
EVIDENCE = 2_000_000
"""Characters of all chunks together."""
CHUNKS = 1_000
"""Chunks of evidence."""


def check_case(case: Case) -> Case:
    """Return the case. Raises InputError naming the first limit that it passes."""
    sizes = [
        ("query", "characters", len(case.query), QUESTION),
        ("answer", "characters", len(case.answer or ""), ANSWER),
        ("evidence", "chunks", len(case.evidence), CHUNKS),
        ("evidence", "characters", sum(len(chunk.text) for chunk in case.evidence), EVIDENCE),
    ]
    longest = max((len(chunk.text) for chunk in case.evidence), default=0)
    for field, what, size, most in (*sizes, ("evidence[].text", "characters", longest, ANSWER)):
        if size > most:
            raise InputError(f"holds {size:,} {what}, at most {most:,} are taken", cure="Send less of it.", field=field)
    return case

"""Reads decisions about a record from another screening tool's export.

ASReview writes a column (``included``, ``asreview_label``) or a note (``ASReview_relevant``), and
Rayyan a note (``RAYYAN-INCLUSION: {"Ada"=>"Included"}``). Covidence exports one list per decision,
with ``Exclusion reason`` in the notes. If two people disagree in Rayyan, there is no decision.
"""

from __future__ import annotations

import re
from typing import Any, NamedTuple

from masis.schema.screening import Abstract, Recommendation

ASREVIEW_LABEL = "asreview_label"
"""The column with ASReview 2's label. It keeps the file's own columns beside it, so in a file with
this column no other one counts, and it is read even if the cell is empty.
"""
_COLUMNS = (
    ASREVIEW_LABEL,
    *"included label_included included_label label decision status screening".split(),
)
"""The columns with a decision."""
_WORDS: dict[str, Recommendation] = {
    **dict.fromkeys(("1", "1.0", "yes", "included", "include", "relevant", "keep"), "keep"),
    **dict.fromkeys(("0", "0.0", "no", "excluded", "exclude", "irrelevant", "discard"), "discard"),
    **dict.fromkeys(("maybe", "needs_more", "needs more"), "needs_more"),
}
_ASREVIEW = re.compile(r"\bASReview_(relevant|irrelevant)\b", re.I)
_RAYYAN = re.compile(r"RAYYAN-INCLUSION:\s*\{([^}]{0,2000})\}", re.I)
"""Rayyan's decisions in a note: ``RAYYAN-INCLUSION: {"Ada"=>"Included"}``."""
_RAYYAN_VOTE = re.compile(r'"([^"]{0,200})"\s*=>\s*"(Included|Excluded|Maybe)"', re.I)
_REASON = re.compile(r"(?:RAYYAN-EXCLUSION-REASONS|Exclusion reason):\s*([^|;\n]{1,300})", re.I)
OUR_RAYYAN_NAME = "MASIS"
"""The name of our own labels in a Rayyan note, which aren't a person's decision."""


class RecordDecision(NamedTuple):
    """A decision about a record, the tool it was made in, and the reason if one was given."""

    value: Recommendation
    tool: str
    reason: str


def decision_of(record: Abstract) -> RecordDecision | None:
    """Return the decision about a record; None if its export has none or people disagree."""
    # The unknown fields are the columns of a table or the tags of a RIS record.
    extra = dict(record.model_extra or {})
    tags = extra.pop("record", None)
    fields: dict[str, Any] = {**(tags if isinstance(tags, dict) else {}), **extra}
    noted = [
        fields[name] for name in ("notes", "notes_abstract", "note") if fields.get(name) is not None
    ]
    notes = " | ".join(
        str(note) for value in noted for note in (value if isinstance(value, list) else [value])
    )
    reason = match[1].strip() if (match := _REASON.search(notes)) else ""
    if voted := _RAYYAN.search(notes):
        votes = {
            value.lower()
            for person, value in _RAYYAN_VOTE.findall(voted.group(1))
            if person != OUR_RAYYAN_NAME
        }
        if votes:
            return (
                RecordDecision(_WORDS[votes.pop()], "Rayyan", reason) if len(votes) == 1 else None
            )
    for name in _COLUMNS:
        value = _WORDS.get(str(fields.get(name, "")).strip().lower())
        if value is None and name == ASREVIEW_LABEL and name in fields:
            return None
        if value is not None:
            return RecordDecision(
                value, "ASReview" if name != "decision" else "another tool", reason
            )
    if labelled := _ASREVIEW.search(notes):
        return RecordDecision(_WORDS[labelled.group(1).lower()], "ASReview", reason)
    return RecordDecision("discard", "Covidence", reason) if reason else None

"""Words that records of earlier versions hold, read as the words of today.

Nothing that is stored is rewritten: digests are computed over it, and archives give the same bytes again. So a record
that was written with an old word keeps it, and whoever reads the record meets the new one.
"""

from __future__ import annotations

from typing import Any

from pydantic import BeforeValidator

OLD_WORDS = {
    "bears": "supports",
    "partly_bears": "partly_supports",
    "needless": "redundant",
    "needless_reference": "redundant_reference",
    "telling": "disagreement",
}
"""By the old word: findings on references, rules of issues, labels that reviewers gave to references, an order of the
queue that addresses and programs may still name."""


def of_today(word: Any) -> Any:
    """Return the word of today for an old one; anything else as it is."""
    return OLD_WORDS.get(word, word) if isinstance(word, str) else word


ReadAsToday = BeforeValidator(of_today)
"""Annotates a field whose old words are read as those of today."""

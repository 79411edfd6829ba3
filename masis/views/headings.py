"""Recognizes headings in a text of the evidence: "# Refunds", "Northern Rail, Delay compensation."

Markdown is left to ``sentences.py``. A title that a converter has made the first sentence of its
chunk has a stop like a sentence but no verb. Verbs need a model, so the shape of the title decides:
short parts between commas or colons, each with a capital or a figure first and noun-like words
after it. A doubtful sentence isn't called a heading.
"""

from __future__ import annotations

import re

from masis.audit.markers import without_markers
from masis.audit.sentences import split_sentences

LONGEST_PART = 5
"""In words."""
SEARCHED = 600
"""The characters of a text in which its first headings are looked for."""

_BREAK = re.compile(r"\s*[,:;|/–—]\s+|\s+-\s+")
# The words of a title's part after its first one: names, figures, and nouns by their ending.
_NAME = re.compile(
    r"[^a-z].*|(?:and|of|for|the|in|to|on|with|from|by|per|or)|"
    r"\w*(?:tion|sion|ment|ness|ity|ance|ence|ship|age|ing|ture|ery|ism)s?"
)
_PRONOUN = re.compile(r"(?:I|he|she|it|they|we|you|this|that|these|those|there)\b", re.IGNORECASE)
_ADVERBIAL = re.compile(r"(?:In|On|At|By|After|Before|Since|Until|For|From|If|When|While|To)\b")
_FINITE = re.compile(
    r"\b(?:is|are|was|were|be|been|has|have|had|do|does|did|can|could|may|might|must|shall|should|"
    r"will|would|not|\w+ed)\b"
)


def is_title(sentence: str) -> bool:
    """Return whether a sentence has the shape of a title in at least two parts."""
    words = without_markers(sentence).strip().rstrip(".")
    parts = _BREAK.split(words)
    if len(parts) < 2 or any(rule.match(words) for rule in (_ADVERBIAL, _PRONOUN)):
        return False
    if _FINITE.search(words):
        return False
    first, *others = (part.split() for part in parts)
    return all(0 < len(part) <= LONGEST_PART for part in (first, *others)) and all(
        not part[0][0].islower()
        and not _PRONOUN.match(part[0])
        and all(_NAME.fullmatch(word) for word in part[1:])
        for part in others
    )


def heading_end(text: str) -> int:
    """Return where the headings at the start of a text end: the start of its first sentence.

    A text without another sentence has no heading.
    """
    for sentence in split_sentences(text[:SEARCHED]):
        if sentence.kind == "heading":
            continue
        if sentence.start == 0 and is_title(text[: sentence.end]):
            continue
        return sentence.start
    return 0

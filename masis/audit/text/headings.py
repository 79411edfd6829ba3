"""Recognizes headings in a text of the evidence: "# Refunds", "Northern Rail, Delay compensation."

A title that a converter has made the first sentence of its chunk has a stop like a sentence but no
verb. There is no list of verbs for all languages, so the shape of the title decides, and a doubtful
sentence isn't called a heading.
"""

from __future__ import annotations

import re

from masis.audit.markers import without_markers
from masis.audit.sentences import split_sentences

MOST_WORDS = 12
"""Maximum number of words per heading."""
SEARCHED = 600
"""The characters of a text in which its first headings are looked for."""

# Matches what separates the title of a document from that of its section: "Amberline Insurance,
# Household cover." It doesn't match the comma of "2,000" or the hyphen of "follow-up".
_BREAK = re.compile(r"\s*[,:;|/›»>·]\s+|\s+[-–—]\s+")
# Words that titles have in lower case. A sentence that has no others but capitalized words is a
# title, too.
_TITLE_WORDS = frozenset("a an and at by for from in of on or the to with".split())
_LAST_TITLE_WORDS = 3
"""Maximum number of words of a section's title after that of its document. Longer ones may have a
verb.
"""
# Words that make a sentence of parts between commas: "After the fire, Halden burned."
_STATES = re.compile(
    r"\b(?:is|are|was|were|be|been|has|have|had|do|does|did|can|could|may|might|must|shall|should|"
    r"will|would|not|I|he|she|it|they|we|you|there|after|before|since|until|if|when|while|\w+ed)\b",
    re.IGNORECASE,
)


def is_heading(text: str) -> bool:
    """Return whether the first sentence of a chunk only names its subject, as a title does.

    It does if it's marked as a heading, if all its words except short ones are capitalized, or if a
    short part with a capital follows the title of the document: "Solvane heat pump, Maintenance."
    """
    text = without_markers(text).strip()
    words = text.split()
    if not words or len(words) > MOST_WORDS:
        return False
    if text[0] == "#":
        return True
    if text[-1] in "!?" or not text[0].isupper():
        return False
    named = [word for word in words if word.lower() not in _TITLE_WORDS and word[0].isalpha()]
    if len(named) > 1 and all(word[0].isupper() for word in named):
        return True
    *titles, last = _BREAK.split(text.rstrip(".: "))
    last_words = [word for word in last.split() if word.lower() not in _TITLE_WORDS]
    return (
        bool(titles)
        and bool(titles[0])
        and titles[0].split()[0].lower() not in _TITLE_WORDS
        and all(part[:1].isupper() for part in (*titles, last))
        and len(last_words) <= _LAST_TITLE_WORDS
        and (len(titles[0].split()) > 1 or len(last_words) < _LAST_TITLE_WORDS)
        and not _STATES.search(text)
    )


def heading_end(text: str) -> int:
    """Return where the headings at the start of a text end: the start of its first sentence.

    A text without another sentence has no heading.
    """
    for sentence in split_sentences(text[:SEARCHED]):
        if sentence.kind == "heading":
            continue
        if sentence.start == 0 and is_heading(text[: sentence.end]):
            continue
        return sentence.start
    return 0

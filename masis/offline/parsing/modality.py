"""What may, must, need not and must not be, clause by clause: a sentence can permit one thing and forbid another."""

import re
from collections.abc import Sequence
from typing import Literal, NamedTuple

from masis.offline.parsing.predicates import Clause
from masis.offline.text.tokens import Token, stem

Mode = Literal["forbidden", "granted", "due", "waived"]

_MODES: tuple[tuple[Mode, re.Pattern[str]], ...] = (
    (
        "waived",
        re.compile(
            r"\bneed(?:s|ed)? not\b|\bneedn['’]t\b|\bno need\b|\bexempt|\boptional\b|\bvoluntary\b|\bwaived\b"
            r"|(?:\b(?:not|never|neither|nor|no longer)|n['’]t) (?:\w+ ){0,2}?(?:need|have to|required|require|obliged"
            r"|necessary|mandatory|compulsory)\b",
            re.IGNORECASE,
        ),
    ),
    (
        "forbidden",
        re.compile(
            r"\b(?:must|may|can|could|shall|should) (?:not|never)\b|\bcannot\b|\b(?:can|must|should|could)n?['’]t\b"
            r"|(?:\b(?:not|never|no longer)|n['’]t) (?:\w+ )?(?:allowed|permitted|possible)\b"
            r"|\b(?:forbidden|prohibited|prohibits?|banned)\b"
            r"|^\W*(?:do not|don['’]t|never)\b|\bno \w+ (?:may|can|must)\b",
            re.IGNORECASE,
        ),
    ),
    (
        "due",
        re.compile(
            r"\bmust\b|\b(?:has|have|had) to\b|\bneeds? to\b|\b(?:is|are|was|were|be) (?:required|obliged)\b"
            r"|\b(?:mandatory|compulsory|obligatory)\b|\brequires?\b|\bneeds?\b",
            re.IGNORECASE,
        ),
    ),
    ("granted", re.compile(r"\b(?:may|can|could)\b|\b(?:allowed|permitted|possible)\b|\bfree to\b", re.IGNORECASE)),
)
"""How each mode is worded; the first that is found counts."""
_ANY = re.compile(
    r"may|can|could|must|shall|should|need|oblig|requir|necessary|mandatory|compulsory|allowed|permitted|possible"
    r"|free to|forbid|prohibit|banned|exempt|optional|voluntary|waived|ha(?:s|ve|d) to|do not|don['’]t|never",
    re.IGNORECASE,
)
"""A sentence without any of these has no mode."""
DENIES: dict[Mode, tuple[Mode, ...]] = {
    "forbidden": ("granted", "due"),
    "granted": ("forbidden",),
    "due": ("waived", "forbidden"),
    "waived": ("due",),
}
_RESERVED = re.compile(
    r"\b(?:only|unless|except|other than|apart from|until|before|if|either|instead)\b", re.IGNORECASE
)
"""What permits or forbids in part: such clauses are skipped, unless both have the same word."""
_MODAL_WORDS = frozenset(
    map(
        stem,
        """
        need needed exempt optional voluntary waived required require obliged necessary mandatory compulsory allowed
        permitted possible forbidden prohibited banned allow permit forbid prohibit obligatory free use used people
        anyone everybody you one users everyone person get got
        """.split(),
    )
)


class Modal(NamedTuple):
    """A clause that permits, forbids, demands or waives.

    `content` are the content words it is about, `reserved` what limits it ("only", "unless"), `span` the offsets of
    what expresses the mode, `words` the indices of its words.
    """

    mode: Mode
    content: tuple[Token, ...]
    reserved: frozenset[str]
    span: tuple[int, int]
    words: tuple[int, ...]


def modes(text: str, words: Sequence[Token], pieces: Sequence[Clause]) -> tuple[Modal, ...]:
    """Return the modal clauses of a sentence, in order."""
    found: list[Modal] = []
    if not _ANY.search(text):
        return ()
    for piece in pieces:
        start, end = words[piece.words[0]].start, words[piece.words[-1]].end
        clause_text = text[start:end]
        mode, where = next(
            ((mode, m.span()) for mode, pattern in _MODES if (m := pattern.search(clause_text))), (None, (0, 0))
        )
        if mode is None and found and words[piece.words[0]].text.lower() == "nor":
            mode = found[-1].mode
        if mode is None:
            continue
        indices = dict.fromkeys((*piece.actor, *piece.words))
        content = tuple(words[i] for i in indices if words[i].weight >= 0.4 and words[i].stem not in _MODAL_WORDS)
        reserved = frozenset(word.lower() for word in _RESERVED.findall(clause_text))
        found.append(Modal(mode, content, reserved, (start + where[0], start + where[1]), piece.words))
    return tuple(found)

"""The words of a question or query that are worth searching for.

A query is plain words, never a search language: operators, quotes, brackets and colons are punctuation here, so that no
text can steer a search engine. Words that every abstract holds (articles, question words) are left out, unless nothing
else is left.
"""

from __future__ import annotations

import re

MOST_TERMS = 64
"""Terms taken from one query; a question has ten, a pasted page would take seconds."""

_LONGEST = 80
_WORD = re.compile(r"[^\W_]+(?:[-'’][^\W_]+)*")

STOP_WORDS = frozenset(
    """
    a about after against all also am among an and any are as at be been before being below between both but by can
    compared could did do does doing done during each else ever every for from further had has have having he her here
    hers him his how i if in instead into is it its itself less let many may me might more most much must my no nor not
    of off on once one only or other our out over own per rather same shall she should since so some such than that the
    their them then there these they this those through to too toward towards under until up upon us very was we were
    what when where whether which while who whom whose why will with within without would you your
    """.split()
)
"""English words that carry grammar, not content."""


def search_terms(query: str) -> tuple[str, ...]:
    """Return the terms of a query in its order, in lower case, each once: ``low-dose`` is one, a phrase of two
    words.
    """
    found = dict.fromkeys(
        word.replace("’", "'").removesuffix("'s")
        for match in _WORD.finditer(query.casefold())
        if len(word := match.group()) <= _LONGEST
    )
    content = [word for word in found if word not in STOP_WORDS]
    return tuple((content or list(found))[:MOST_TERMS])

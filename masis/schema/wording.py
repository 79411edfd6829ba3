"""Counts in words and cut texts, for messages of every layer."""

from __future__ import annotations

from collections.abc import Sequence


def count_noun(count: int, one: str, many: str | None = None) -> str:
    """Return a count with its noun: ``1 case``, ``2,000 cases``, ``2 entries`` (with ``many``)."""
    return f"{count:,} {one if count == 1 else many or one + 's'}"


def count_noun_or_more(count: int, more: bool, one: str, many: str | None = None) -> str:
    """Return the same of a count that stopped where there are ``more``: ``3,000+ cases``."""
    return (
        count_noun(count, one, many).replace(" ", "+ ", 1) if more else count_noun(count, one, many)
    )


def shorten(text: str, longest: int) -> str:
    """Return a text of at most so many characters; where it was cut, it ends with a sign that it
    goes on.
    """
    return text if len(text) <= longest else f"{text[: longest - 1].rstrip()}…"


def join_names(names: Sequence[str]) -> str:
    """Return names as a sentence lists them.

    Example:
        >>> in_a_row(["chunk_1", "chunk_2", "chunk_3"])
        'chunk_1, chunk_2 and chunk_3'

    """
    *before, last = names
    return f"{', '.join(before)} and {last}" if before else last


def with_article(noun: str) -> str:
    """Return a noun with its indefinite article: ``an erratum``, ``a cohort study``; ``another
    type`` stays.
    """
    if noun.startswith(("another ", "other ")):
        return noun
    return f"{'an' if noun[:1].lower() in 'aeiou' else 'a'} {noun}"


MOST_NAMED = 3
"""Figures or marked words that one sentence names."""
LONGEST_MARKED = 60


def describe_absent_figures(figures: Sequence[str]) -> str:
    """Return what is said of figures that the evidence lacks: ``42 isn't in the evidence; it may be
    calculated``.
    """
    named = [" ".join(figure.split()) for figure in dict.fromkeys(figures)]
    if len(named) == 1:
        return f"{named[0]} isn't in the evidence; it may be calculated"
    if len(named) > MOST_NAMED:
        named[MOST_NAMED - 1 :] = [f"{len(named) - MOST_NAMED + 1} more figures"]
    return f"{', '.join(named[:-1])} and {named[-1]} aren't in the evidence; they may be calculated"


def describe_marked_words(words: Sequence[str]) -> str:
    """Return what is said of words that a tagger marks: ``The tagger finds no support for “69
    million”``.
    """
    named = [
        f"“{shorten(' '.join(each.split()), LONGEST_MARKED)}”" for each in dict.fromkeys(words)
    ]
    if len(named) > MOST_NAMED:
        named[MOST_NAMED - 1 :] = [f"{len(named) - MOST_NAMED + 1} more places"]
    listed = f"{', '.join(named[:-1])} and {named[-1]}" if len(named) > 1 else named[0]
    return f"The tagger finds no support for {listed}"

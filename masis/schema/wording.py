"""Counts in words and shortened texts for the messages of every layer."""

from __future__ import annotations

from collections.abc import Sequence


def count_noun(count: int, one: str, many: str | None = None) -> str:
    """Return a count with its noun: ``1 case``, ``2,000 cases``, ``2 entries`` (with ``many``)."""
    return f"{count:,} {one if count == 1 else many or one + 's'}"


def count_noun_or_more(count: int, more: bool, one: str, many: str | None = None) -> str:
    """Return a count with its noun, with a plus if counting stopped early: ``3,000+ cases``."""
    return (
        count_noun(count, one, many).replace(" ", "+ ", 1) if more else count_noun(count, one, many)
    )


def shorten(text: str, longest: int) -> str:
    """Return the text, cut to at most ``longest`` characters with an ellipsis at the end."""
    return text if len(text) <= longest else f"{text[: longest - 1].rstrip()}…"


_OPENED_BY = {'"': '"', "”": "“", "»": "«", "’": "‘"}
"""The quotation mark that opens a quotation, by the one that ends it."""


def without_half_quotation(text: str) -> str:
    """Return a passage without a quotation mark at its end or beginning that has no partner in it.

    A sentence cut out of a longer quotation has only one of its marks.

    Example:
        >>> without_half_quotation('We will not merge, and perhaps never."')
        'We will not merge, and perhaps never.'

    """
    for ending, opening in _OPENED_BY.items():
        if ending == opening:
            lacks_start = lacks_end = text.count(ending) % 2 == 1
        else:
            lacks_start = text.count(ending) > text.count(opening)
            lacks_end = text.count(opening) > text.count(ending)
        if lacks_start and text.endswith(ending):
            return text[: -len(ending)].rstrip()
        if lacks_end and text.startswith(opening):
            return text[len(opening) :].lstrip()
    return text


def join_names(names: Sequence[str]) -> str:
    """Return names joined with commas and a final "and".

    Example:
        >>> join_names(["chunk_1", "chunk_2", "chunk_3"])
        'chunk_1, chunk_2 and chunk_3'

    """
    *before, last = names
    return f"{', '.join(before)} and {last}" if before else last


def with_article(noun: str) -> str:
    """Return a noun with its indefinite article: ``an erratum``, ``a cohort study``.

    A noun that begins with "another" or "other" is returned as it is.
    """
    if noun.startswith(("another ", "other ")):
        return noun
    return f"{'an' if noun[:1].lower() in 'aeiou' else 'a'} {noun}"


MOST_NAMED = 3
"""Maximum number of figures or marked words that one sentence names."""
LONGEST_MARKED = 60


def describe_absent_figures(figures: Sequence[str]) -> str:
    """Return a sentence part about figures that aren't in the evidence.

    Example: ``42 isn't in the evidence; it may be calculated``.
    """
    names = [" ".join(figure.split()) for figure in dict.fromkeys(figures)]
    if len(names) == 1:
        return f"{names[0]} isn't in the evidence; it may be calculated"
    if len(names) > MOST_NAMED:
        names[MOST_NAMED - 1 :] = [f"{len(names) - MOST_NAMED + 1} more figures"]
    return f"{', '.join(names[:-1])} and {names[-1]} aren't in the evidence; they may be calculated"


def describe_marked_words(words: Sequence[str]) -> str:
    """Return a sentence about words that a tagger marked.

    Example: ``The tagger finds no support for “69 million”``.
    """
    quotes = [
        f"“{shorten(' '.join(text.split()), LONGEST_MARKED)}”" for text in dict.fromkeys(words)
    ]
    if len(quotes) > MOST_NAMED:
        quotes[MOST_NAMED - 1 :] = [f"{len(quotes) - MOST_NAMED + 1} more places"]
    listed = f"{', '.join(quotes[:-1])} and {quotes[-1]}" if len(quotes) > 1 else quotes[0]
    return f"The tagger finds no support for {listed}"

"""How a negation is worded, and when it denies nothing: what is kept from happening, supposed, or goes on otherwise."""

from collections.abc import Sequence

from masis.offline.text import Token

_SPARED = ("prevent", "avoid", "omit", "skip", "eliminat", "minimi", "forgo", "forego")
"""How verbs begin that keep from happening what they speak of: "preventing loops" says what "no loops" says."""
_SUPPOSING = frozenset("may might could".split())
_PLAIN = frozenset(
    """
    did does do was were is are has have had didn't doesn't don't wasn't weren't isn't aren't hasn't haven't hadn't
    """.split()
)
_BESIDE = 4


def spared(words: Sequence[Token], i: int) -> bool:
    """Whether a verb beside the word says that it is kept from happening: "predilatation was omitted"."""
    return any(word.text.lower().startswith(_SPARED) for word in words[max(0, i - 3) : i + _BESIDE])


def supposed(mine: Sequence[Token], cue: int, theirs: Sequence[Token], place: int) -> bool:
    """Whether the passage only supposes what the claim reports not to have happened: "may improve", "did not
    improve".
    """
    lower = mine[cue].text.lower().replace("’", "'")
    plain = lower in _PLAIN or (lower == "not" and cue > 0 and mine[cue - 1].text.lower() in _PLAIN)
    return plain and any(word.text.lower() in _SUPPOSING for word in theirs[max(0, place - 2) : place])


def goes_on_alike(
    denying: Sequence[Token], scope: dict[int, int], head: int, other: Sequence[Token], places: Sequence[int]
) -> bool:
    """Whether a negated word that says little is followed by the same on both sides: "not significantly reduced"
    doesn't deny "significantly higher".
    """
    rest = {denying[i].stem for i, cue in scope.items() if cue == scope.get(head) and i > head}
    if not rest:
        return True
    return any(word.stem in rest for place in places for word in other[max(0, place - _BESIDE) : place + _BESIDE + 1])

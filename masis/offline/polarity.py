"""Negation, direction and strength: what turns a sentence into its opposite while its words stay the same."""

from collections.abc import Sequence

from masis.offline.text import Token

_NEGATIONS = frozenset(
    "not no never none neither nor nobody nothing nowhere cannot without unable fail fails failed failing lack lacks lacked lacking absence "
    "hardly barely refuse refuses refused deny denies denied denying".split()
)
_SCOPE_ENDS = frozenset("but although though however because since while whereas which who that unless and or".split())
_SCOPE_WORDS = 5
_UNIVERSAL = frozenset(
    "all every always entirely never none must only everyone everybody everything completely guarantee guarantees guaranteed invariably "
    "certainly definitely any universally without proven proves eliminates eliminate cures cure wholly solely exclusively".split()
)
_LIMITED = frozenset(
    "some many most often sometimes may might can could few several usually generally typically likely suggests suggest suggested partly "
    "possibly probably appears appear certain tends tend mainly mostly occasionally about roughly majority subset preliminary".split()
)


def negation_cues(text: str, words: Sequence[Token]) -> list[int]:
    """Indices of the words that negate. "not only" asserts, so it doesn't count."""
    cues = []
    for i, word in enumerate(words):
        lower = word.text.lower()
        if lower not in _NEGATIONS and not lower.endswith(("n't", "n’t")):
            continue
        following = words[i + 1].text.lower() if i + 1 < len(words) else ""
        if not (lower == "not" and following in ("only", "just", "merely")) and not (
            lower == "no" and following == "doubt"
        ):
            cues.append(i)
    return cues


def negated(text: str, words: Sequence[Token]) -> dict[int, int]:
    """The words in the scope of a negation, each with the index of its cue: up to five content words to its right."""
    scope: dict[int, int] = {}
    for cue in negation_cues(text, words):
        content = 0
        for i in range(cue + 1, len(words)):
            gap = text[words[i - 1].end : words[i].start]
            if any(mark in gap for mark in ",;:.!?()") or (content and words[i].text.lower() in _SCOPE_ENDS):
                break
            if words[i].weight > 0:
                scope[i] = cue
                content += 1
                if content == _SCOPE_WORDS:
                    break
    return scope


def universal(words: Sequence[Token]) -> list[int]:
    """Indices of the words that leave no exception ("all", "always", "must")."""
    return [i for i, word in enumerate(words) if word.text.lower() in _UNIVERSAL]


def limited(words: Sequence[Token]) -> list[int]:
    """Indices of the words that leave exceptions ("some", "often", "may")."""
    return [i for i, word in enumerate(words) if word.text.lower() in _LIMITED]

"""What the claim grants and the evidence forbids, demands and waives, or the other way round.

"Photographs are not allowed" is denied by "may be photographed without flash", "traders must pay" by "traders are
exempt".
"""

from masis.offline.contradictions.signals import signal
from masis.offline.matching.assessment import Signal
from masis.offline.matching.overlap import LOOSE, Match
from masis.offline.parsing.modality import DENIES, Modal
from masis.offline.text.lexicon import loose_keys
from masis.offline.text.tokens import Token

_TOLD, _TOLD_BACK = 0.5, 0.75
_MARGIN = 0.1
_SAME_DEED = 0.75


def modal_signals(found: Match) -> list[Signal]:
    """A signal for each stretch of the claim whose mode the evidence denies."""
    made = []
    for mine in found.sentence.modes:
        candidates = [
            (_covered(mine, other), other, found.passages[i])
            for i in found.top[:3]
            for other in found.passages[i].modes
        ]
        agreeing = max((share for share, other, _ in candidates if other.mode == mine.mode), default=0.0)
        denying = [one for one in candidates if one[1].mode in DENIES[mine.mode] and one[1].reserved == mine.reserved]
        share, other, passage = max(denying, key=lambda one: one[0], default=(0.0, None, None))
        if other is None or passage is None or share < _TOLD or share < agreeing + _MARGIN:
            continue
        if {mine.mode, other.mode} == {"due", "forbidden"} and share < _SAME_DEED:
            continue  # "must stay", "must not leave"
        start, end = mine.span
        reason = f"{mine.mode} in the claim, {other.mode} in the evidence"
        made.append(
            signal(
                "negation",
                (start, end, found.sentence.text[start:end]),
                passage,
                other.span,
                reason,
                0.55 + 0.35 * share,
            )
        )
    return made


def _covered(mine: Modal, other: Modal) -> float:
    """How far the other stretch speaks of the same, 0..1: of the claim's words, or of its own if it has but few."""
    there = {word.stem for word in other.content}
    if not there or not mine.content:
        return 0.0
    held = sum(_held(word, there) for word in mine.content)
    share = held / sum(word.weight for word in mine.content)
    if held < 1.0:
        return 0.0
    here = {word.stem for word in mine.content}
    back = sum(_held(word, here) for word in other.content) / sum(word.weight for word in other.content)
    return max(share, _TOLD if back >= _TOLD_BACK and share >= 0.3 else 0.0)


def _held(word: Token, stems: set[str]) -> float:
    if word.stem in stems:
        return word.weight
    keys = set(loose_keys(word.stem))
    return LOOSE * word.weight if any(not keys.isdisjoint(loose_keys(root)) for root in stems) else 0.0

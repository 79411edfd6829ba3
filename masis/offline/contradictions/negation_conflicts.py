"""Negations that stand on one side alone.

The rule: a passage covers a clause of the claim, and a word they share is negated in one of them only. A passage that
covers the clause as well and has no such word takes the signal back. Passages that ask, suppose or state a purpose deny
nothing.
"""

from collections.abc import Sequence
from typing import NamedTuple

from masis.offline.contradictions.signals import signal
from masis.offline.matching.assessment import Signal
from masis.offline.matching.overlap import Match
from masis.offline.matching.passages import Passage
from masis.offline.parsing.polarity import ended, heads, tentative, topics
from masis.offline.text.lexicon import antonyms, loose_keys
from masis.offline.text.number_words import NUMBER_WORDS
from masis.offline.text.tokens import Token, stem

# How a negation is worded, and when it denies nothing: what is kept from happening, supposed, or goes on otherwise.

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


_SAME_THING = 0.5
_MARGIN = 0.1
_NEAR = 4
_APART = 1.0
"""Weight of the words that only one of two stretches has, from which the claim speaks of that one."""
_SHARED = 1.06
"""How much surer a flip is where both sides have the very word."""
_EFFECTS = frozenset(map(stem, "effect influence impact help benefit work".split()))
_CONDITIONS = frozenset("that which who if unless when where whose while".split())
_IFS = frozenset("if unless when whose that".split())
_LIMITS = frozenset("limited similar omitted only restricted reserved alone solely instead unless until except".split())
_STANDING = frozenset("still remains remain continues continue".split())
_UNDONE = frozenset(
    """
    lifted abolished withdrawn discontinued repealed revoked cancelled canceled closed removed expired dissolved
    scrapped dropped terminated
    """.split()
)
_PREFIXES = ("un", "in", "im")
_DENYING = frozenset("without no nothing none neither".split())
_WEAK = 0.4


class _Flip(NamedTuple):
    """A word of the claim negated on one side alone: in the claim by `cue`, or in the passage at `where`."""

    word: Token
    cue: Token | None
    where: tuple[int, int]
    sure: float


def negation_signals(found: Match) -> list[Signal]:
    """The strongest negation that the evidence has otherwise, if any."""
    best: Signal | None = None
    mine, cues, clauses = found.sentence.negated, found.sentence.cues, found.sentence.clause_masks
    near = [
        found.around(found.words[i].start, found.words[i].end, _NEAR)
        for i in heads(mine)
        if found.mask(found.words[i].start, found.words[i].end)
    ]
    for mask in dict.fromkeys((*clauses, *near, (1 << len(found.bits)) - 1)):
        candidates = found.best_passages(mask)
        if not mine and not any(found.passages[i].cues for _, i in candidates):
            continue
        for made in _clause(found, mask, mine, cues, candidates):
            best = made if best is None or made.strength > best.strength else best
    standing = _still(found)
    if standing is not None and (best is None or standing.strength > best.strength):
        best = standing
    return [best] if best else []


def _still(found: Match) -> Signal | None:
    """What the claim says to hold still, where the evidence says that it was lifted, abolished or given up."""
    at = next((i for i, word in enumerate(found.words) if word.text.lower() in _STANDING), None)
    if at is None or found.sentence.cues or ended(found.words, at, len(found.words)):
        return None
    for i in found.top[:2]:
        passage, covered = found.passages[i], found.coverage((i,))
        over = next((word for word in passage.words if word.text.lower() in _UNDONE), None)
        if covered >= _SAME_THING and over is not None and not passage.cues:
            word = found.words[at]
            reason = f"the evidence has it {over.text!r}, the claim has it {word.text!r} there"
            span = (word.start, word.end, word.text)
            return signal("negation", span, passage, (over.start, over.end), reason, 0.55 + 0.35 * covered)
    return None


def _clause(
    found: Match,
    mask: int,
    mine: dict[int, int],
    cues: Sequence[int],
    candidates: Sequence[tuple[float, int]],
) -> list[Signal]:
    flips: list[tuple[float, int, _Flip]] = []
    asserting: list[tuple[float, int]] = []
    numbers = _counts(found, mask)
    for plain, i in candidates:
        covered = max(plain, found.share(i, mask & ~numbers) if numbers else 0.0, _of_them(found, i, mask))
        if covered < _SAME_THING:
            continue
        flip = _flipped(found, mask, mine, cues, found.passages[i])
        if flip is None:
            asserting.append((covered, i))
        elif not tentative(found.passages[i].text):
            flips.append((covered, i, flip))
    made = []
    for covered, i, flip in flips:
        if any(
            other >= covered - _MARGIN and _speaks_of(found.passages[k], flip) and not _of_another(found, i, k)
            for other, k in asserting
        ):
            continue
        passage = found.passages[i]
        enough = min(1.0, found.value(mask) / 3.0)
        strength = (0.33 + 0.65 * covered) * (0.65 + 0.35 * enough) * flip.sure - (
            0.2 if cues and passage.cues else 0.0
        )
        word, cue = flip.word, flip.cue
        span = (word.start, word.end, word.text)
        if cue is not None:
            span = (cue.start, word.end, found.sentence.text[cue.start : word.end])
        reason = f"the {'claim' if cue else 'evidence'} denies {word.text!r}, the other asserts it"
        made.append(signal("negation", span, passage, flip.where, reason, strength))
    return made


def _of_another(found: Match, denying: int, asserting: int) -> bool:
    """Whether the passage that asserts lacks a number of the claim that the denying one has: "version 1"."""
    numbers = sum(1 << b for b, i in enumerate(found.bits) if found.words[i].text[0].isdigit())
    return bool(numbers & found.exact.get(denying, 0) & ~found.exact.get(asserting, 0))


def _speaks_of(passage: Passage, flip: _Flip) -> bool:
    return flip.cue is not None or flip.word.stem in passage.positions or bool(_kin_places(passage, flip.word))


def _counts(found: Match, mask: int) -> int:
    """Numbers and changes among the words: "no planets" denies "three planets", "no difference" denies "reduced"."""
    return sum(
        1 << b
        for b, i in enumerate(found.bits)
        if mask >> b & 1
        and (
            found.words[i].text[0].isdigit()
            or found.words[i].text.lower() in NUMBER_WORDS
            or found.words[i].stem in antonyms()["unchang"]
        )
    )


def _of_them(found: Match, i: int, mask: int) -> float:
    """The share covered by the passage and the one before, where it speaks of those just named: "Neither has"."""
    passage = found.passages[i]
    if not i or not passage.words or passage.words[0].text.lower() not in ("neither", "none", "nobody"):
        return 0.0
    if found.passages[i - 1].document != passage.document:
        return 0.0
    exact, loose = found.covered((i - 1, i))
    return found.value(exact & mask, loose & mask) / found.value(mask)


def _flipped(found: Match, mask: int, mine: dict[int, int], cues: Sequence[int], passage: Passage) -> _Flip | None:
    bit_of = {i: b for b, i in enumerate(found.bits)}
    for i, cue in heads(mine).items():
        if i not in bit_of or not mask >> bit_of[i] & 1 or _conditional(found.words, cue):
            continue
        flip = _denied_by_claim(found, mask, i, bit_of[i], cue, passage, cues)
        if flip is not None:
            return flip
    denied = heads(passage.negated)
    if _changes(found):
        denied |= topics(passage.negated, passage.words)
        flip = _no_effect(found, mask, mine, passage, denied)
        if flip is not None:
            return flip
    for place, cue in denied.items():
        flip = _denied_by_passage(found, mask, mine, cues, passage, (place, cue), denied)
        if flip is not None:
            return flip
    return None


def _no_effect(found: Match, mask: int, mine: dict[int, int], passage: Passage, denied: dict[int, int]) -> _Flip | None:
    """The claim's change, where the passage says of the same thing that it has no effect or does not help."""
    changes = antonyms()["unchang"]
    changing = next((i for i, word in enumerate(found.words) if word.stem in changes and i not in mine), None)
    for place, cue in denied.items():
        there = passage.words[place]
        if changing is None or there.stem not in _EFFECTS or place not in heads(passage.negated):
            continue
        plain = [p for p, word in enumerate(passage.words) if word.stem in changes and p not in denied]
        if plain and not _tells_apart(found, mask, passage, place, plain):
            continue
        return _Flip(found.words[changing], None, (passage.words[cue].start, there.end), 1.0)
    return None


def _denied_by_claim(
    found: Match, mask: int, i: int, b: int, cue: int, passage: Passage, cues: Sequence[int]
) -> _Flip | None:
    word = found.words[i]
    places = passage.positions.get(word.stem) or _kin_places(passage, word)
    if places and word.weight >= 0.4:
        if _beside([other for other in passage.cues if i not in cues or other not in places], places, passage):
            return None
        if _timed_otherwise(found, passage) or not _tells_the_same(found, mask, passage, i, places):
            return None
        if any(_over(passage, place) or _freed(passage.words, place) for place in places):
            return None
        if any(_reserved(passage.words, place, place) for place in places) or _both_forbid(found, i, passage, places):
            return None
        if any(spared(passage.words, place) or supposed(found.words, cue, passage.words, place) for place in places):
            return None
        if word.weight <= _WEAK and not goes_on_alike(found.words, found.sentence.negated, i, passage.words, places):
            return None
        there = passage.words[places[0]]
        return _Flip(word, found.words[cue], (there.start, there.end), _SHARED if word.stem == there.stem else 1.0)
    plainly = found.words[cue].text.lower() not in _DENYING
    if not places and plainly and _all_but(found, mask, 1 << b, passage) and not _denies(passage, word):
        return _Flip(word, found.words[cue], (0, len(passage.text)), 1.0)
    return None


def _denied_by_passage(
    found: Match,
    mask: int,
    mine: dict[int, int],
    cues: Sequence[int],
    passage: Passage,
    denial: tuple[int, int],
    denied: dict[int, int],
) -> _Flip | None:
    place, cue = denial
    there = passage.words[place]
    if there.weight < 0.4 or _conditional(passage.words, cue, _IFS):
        return None
    for b, i in enumerate(found.bits):
        word = found.words[i]
        if not mask >> b & 1 or i in mine or _near(cues, (i,)):
            continue
        if word.stem != there.stem and not _kin(word, there):
            continue
        if word.text[0].isdigit() or _timed_otherwise(found, passage):
            continue
        if ended(found.words[i:], 0, 4) or _reserved(passage.words, cue, place) or spared(found.words, i):
            continue
        if there.weight <= _WEAK and not goes_on_alike(passage.words, passage.negated, place, found.words, (i,)):
            continue
        plain = [p for p in passage.positions[there.stem] if p not in passage.negated and p not in denied]
        if not plain or _tells_apart(found, mask, passage, place, plain):
            return _Flip(word, None, (passage.words[cue].start, there.end), _SHARED if word.stem == there.stem else 1.0)
    return None


def _tells_apart(found: Match, mask: int, passage: Passage, place: int, plain: Sequence[int]) -> bool:
    """Whether the claim speaks of the stretch that denies, and not of those that assert: "applies to stairs; it does
    not apply to machinery".
    """
    wanted = {found.words[i].stem: found.words[i].weight for b, i in enumerate(found.bits) if mask >> b & 1}
    pieces = [({passage.words[i].stem for i in (*piece.actor, *piece.words)}, piece.words) for piece in passage.clauses]
    denying = next((stems for stems, where in pieces if place in where), set())
    asserting = [stems for stems, where in pieces if any(p in where for p in plain)]
    if any(stems is denying for stems in asserting):
        return False
    for stems in asserting:
        ours = sum(weight for root, weight in wanted.items() if root in denying - stems)
        theirs = sum(weight for root, weight in wanted.items() if root in stems - denying)
        if ours < 1.0 or theirs > 0.5 * ours:
            return False
    return bool(asserting)


def _tells_the_same(found: Match, mask: int, passage: Passage, head: int, places: Sequence[int]) -> bool:
    """Whether the claim speaks of the stretch with the word: not in "insoluble in water but dissolves in ethanol"."""
    wanted = _beside_in_claim(found, mask, head)
    pieces = [({passage.words[i].stem for i in (*piece.actor, *piece.words)}, piece.words) for piece in passage.clauses]
    own: set[str] = set().union(*(stems for stems, where in pieces if any(place in where for place in places)))
    for stems, where in pieces:
        if any(place in where for place in places):
            continue
        theirs = sum(weight for root, weight in wanted.items() if root in stems - own)
        ours = sum(weight for root, weight in wanted.items() if root in own - stems)
        if theirs >= _APART and ours <= 0.5 * theirs and _denying(passage, where):
            return False
    return True


def _denying(passage: Passage, where: Sequence[int]) -> bool:
    return any(i in where for i in passage.cues) or any(
        passage.words[i].weight and passage.words[i].text[:2].lower() in _PREFIXES for i in where
    )


def _beside_in_claim(found: Match, mask: int, head: int) -> dict[str, float]:
    """The other words of the claim's stretch that has the head, with their weights."""
    piece = next((piece.words for piece in found.sentence.clauses if head in piece.words), ())
    return {
        found.words[i].stem: found.words[i].weight
        for b, i in enumerate(found.bits)
        if mask >> b & 1 and i != head and i in piece
    }


def _reserved(words: Sequence[Token], cue: int, place: int) -> bool:
    # "Only the apprentice may give it" denies it of others; "can be renewed unless reserved" denies it in part.
    near = words[max(0, min(cue, place) - 5) : max(cue, place) + 5]
    return any(word.text.lower() in ("only", "unless") for word in near)


_UNTIL, _SINCE = frozenset("before until within".split()), frozenset("after later once".split())


def _timed_otherwise(found: Match, passage: Passage) -> bool:
    # "Add water only after cooling", "do not add it before"; "within six years", "not after six years"
    mine = {word.text.lower() for word in found.words}
    theirs = {word.text.lower() for word in passage.words}
    crossed = (bool(mine & _UNTIL and theirs & _SINCE), bool(mine & _SINCE and theirs & _UNTIL))
    return any(crossed) and not (mine & theirs & (_UNTIL | _SINCE))


def _over(passage: Passage, place: int) -> bool:
    """Whether the stretch itself says that it is over or refused."""
    piece = next((piece.words for piece in passage.clauses if place in piece.words), (place,))
    return ended([passage.words[i] for i in piece], piece.index(place), 8)


def _beside(cues: Sequence[int], places: Sequence[int], passage: Passage) -> bool:
    pieces = [frozenset(piece.words) for piece in passage.clauses]
    return any(
        abs(cue - place) <= 6 and (place in passage.negated or any(cue in piece and place in piece for piece in pieces))
        for cue in cues
        for place in places
    )


def _freed(words: Sequence[Token], place: int) -> bool:
    # "duty-free"
    return (
        place + 1 < len(words)
        and words[place + 1].text.lower() == "free"
        and words[place + 1].start - words[place].end == 1
    )


def _both_forbid(found: Match, i: int, passage: Passage, places: Sequence[int]) -> bool:
    mine = any(mode.mode == "forbidden" and i in mode.words for mode in found.sentence.modes)
    return mine and any(mode.mode == "forbidden" and p in mode.words for mode in passage.modes for p in places)


def _changes(found: Match) -> bool:
    # The claim says that something rises or falls: "no effect on deaths" denies it.
    return any(word.stem in antonyms()["unchang"] for word in found.words)


def _conditional(words: Sequence[Token], cue: int, opened: frozenset[str] = _CONDITIONS) -> bool:
    # "columns that you do not ask for", "if it is not dry": the negation restricts, it doesn't assert.
    return any(word.text.lower() in opened for word in words[max(0, cue - 3) : cue])


def _kin(one: Token, other: Token) -> bool:
    return one.weight >= 0.4 and other.weight >= 0.4 and bool(set(loose_keys(one.stem)) & set(loose_keys(other.stem)))


def _kin_places(passage: Passage, word: Token) -> list[int]:
    keys = set(loose_keys(word.stem))
    if not keys or word.weight < 0.4:
        return []
    return [i for i, other in enumerate(passage.words) if other.weight >= 0.4 and keys & set(loose_keys(other.stem))]


def _all_but(found: Match, mask: int, head: int, passage: Passage) -> bool:
    # The negated head is worded otherwise, but everything else of a clause that says enough is there.
    rest = mask & ~head
    held = sum(
        found.weights[b] for b, i in enumerate(found.bits) if rest >> b & 1 and found.words[i].stem in passage.content
    )
    return held >= 2.5 and held >= 0.7 * found.value(rest)


def _denies(passage: Passage, head: Token) -> bool:
    opposites = antonyms().get(head.stem, frozenset())
    return (
        bool(passage.cues)
        or ended(passage.words, 0, len(passage.words))
        or any(
            word.stem in opposites
            or word.text.lower() in _LIMITS
            or (word.weight and word.text[:2].lower() in _PREFIXES)
            for word in passage.words
        )
    )


def _near(cues: Sequence[int], places: Sequence[int]) -> bool:
    return any(abs(cue - place) <= 6 for cue in cues for place in places)

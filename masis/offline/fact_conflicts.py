"""Numbers, dates and names that the evidence has otherwise.

The rule: a passage covers the words around the claim's fact and has a comparable fact of its own in its place, while no
passage covers them as well that has the claim's. A number or date that stands nowhere in the evidence needs less
around it
than one that does; one that looks like the rival (41.2 and 14.2, million and billion, the same day of another year)
less still.
"""

from collections.abc import Sequence

from masis.offline.absent_facts import absent_signal, follows
from masis.offline.assessment import Signal
from masis.offline.evidence import FactTable, Passage
from masis.offline.facts import Fact, agree, comparable, compared, likeness
from masis.offline.matching import Match
from masis.offline.name_conflicts import name_signal
from masis.offline.signals import signal
from masis.offline.text import STOPWORDS, Token
from masis.offline.units import MAGNITUDES

_SAME_THING = 0.5
_SAME_THING_ABSENT = 0.34
_MARGIN = 0.1
_ELSEWHERE = 0.75
_NEAR = 4
_PREPOSITIONS = frozenset(
    "from to until till between and before after than by over under above below versus against".split()
)


def fact_signals(found: Match, table: FactTable) -> list[Signal]:
    """A signal for each fact of the claim that the evidence has otherwise."""
    result, facts, clauses = [], found.said.facts, found.said.clauses
    for fact in facts:
        bits = found.mask(fact.start, fact.end)
        signals = [_conflict(found, fact, bits, mask, facts, table) for mask in _contexts(found, bits, clauses)]
        signals += [absent_signal(found, fact, facts, table), name_signal(found, fact, facts, clauses)]
        if fact.kind != "name":
            signals += [_exchanged(found, fact, facts), _swapped(found, fact, facts)]
        strongest = max((s for s in signals if s is not None), key=lambda s: s.strength, default=None)
        if strongest is not None:
            result.append(strongest)
    return result


def _contexts(found: Match, bits: int, clauses: Sequence[int]) -> list[int]:
    # What surrounds the fact: the rest of its clause if that says enough, and the rest of the sentence.
    whole = (1 << len(found.bits)) - 1 & ~bits
    own = 0
    for mask in clauses:
        if mask & bits:
            own |= mask
    own &= ~bits
    if own != whole and found.value(own) >= 2.0:
        return [own, whole]
    return [whole] if found.value(whole) >= 1.0 else []


def _conflict(
    found: Match, fact: Fact, bits: int, context: int, facts: Sequence[Fact], table: FactTable
) -> Signal | None:
    holders = table.holders(fact, found.allowed) if fact.kind != "name" else _named(found, fact, bits)
    held = max((found.share(i, context) for i in holders), default=0.0)
    absent = not holders and fact.kind != "name"
    if absent and follows(found, fact):
        return None
    best: tuple[float, Passage, Fact] | None = None
    for covered, i in found.best_passages(context):
        if i in holders or covered < (_SAME_THING_ABSENT if absent else _SAME_THING) or covered < held + _MARGIN:
            continue
        passage = found.passages[i]
        for other in passage.facts:
            if (fact.kind == "name" and _same(fact, other)) or compared(passage.text, other):
                continue
            if not comparable(fact, other) and not (absent and _counts_alike(found.words, fact, passage, other)):
                continue
            slot, alike = _slot(found.words, fact, passage, other), likeness(fact, other)
            mates = [mate for mate in facts if mate is not fact and _same(mate, other)]
            if any(fact.kind != "name" or found.mask(mate.start, mate.end) & context for mate in mates):
                continue
            if mates and not (_alike_in_form(fact, other) and _both_lead(found, fact, context, passage, other)):
                continue
            if mates:
                slot = max(slot, 0.7)  # two names of the claim in each other's place
            elif fact.kind == "name" and not alike and not _may_replace(fact, other, passage, found.words):
                if covered < _ELSEWHERE or held > covered - 0.4 or not _stands_for(found, fact, other, i, holders):
                    continue
                slot = max(slot, 0.5)
            score = _strength(covered, slot, alike, held, absent)
            if best is None or score > best[0]:
                best = (score, passage, other)
    if best is None:
        return None
    score, passage, other = best
    reason = f"the evidence has {other.text!r} where the claim has {fact.text!r}"
    return signal(fact.kind, (fact.start, fact.end, fact.text), passage, (other.start, other.end), reason, score)


def _counts_alike(words: Sequence[Token], fact: Fact, passage: Passage, other: Fact) -> bool:
    """Whether two bare numbers stand behind the same word, or before the same: "aged 11", "week 58", "84/7"."""
    if fact.kind != "number" or other.kind != "number" or fact.dimension or other.dimension or agree(fact, other):
        return False
    if _role(words, fact, passage, other) >= 0.6:
        return True
    mine = next((word.stem for word in words if word.start >= fact.end), "")
    return (
        bool(mine)
        and mine == next((word.stem for word in passage.words if word.start >= other.end), "")
        and mine not in STOPWORDS
    )


def _strength(covered: float, slot: float, alike: float, held: float, absent: bool) -> float:
    if absent:
        return 0.33 + 0.5 * covered + 0.3 * slot + 0.4 * alike
    return 0.6 * covered + 0.4 * slot + 0.2 * alike - 0.3 * held


def _named(found: Match, fact: Fact, bits: int) -> list[int]:
    """The passages that have the claim's name."""
    holders = []
    for i, mask in found.exact.items():
        if mask & bits and (mask & bits == bits or any(_same(fact, other) for other in found.passages[i].facts)):
            holders.append(i)
    if holders or len(fact.text) > 6 or not fact.text.isupper():
        return holders
    return [i for i in found.top if any(_same(fact, other) for other in found.passages[i].facts)]


def _same(fact: Fact, other: Fact) -> bool:
    if fact.kind == "name" and fact.text.replace(" ", "").casefold().startswith(other.text.replace(" ", "").casefold()):
        return True  # "Greyfriars", "Grey friars"
    return agree(fact, other) and not (fact.kind == "name" and likeness(fact, other))


def _slot(words: Sequence[Token], fact: Fact, passage: Passage, other: Fact, near: int = _NEAR) -> float:
    """How alike the surroundings of the two facts are: share of the claim's nearest words that stand near the rival,
    0..1.
    """
    mine = _around(words, fact.start, fact.end, near)
    theirs = {word.stem for word in _around(passage.words, other.start, other.end, near)}
    weight = sum(max(word.weight, 0.2) for word in mine)
    return sum(max(word.weight, 0.2) for word in mine if word.stem in theirs) / weight if weight else 0.0


def _around(words: Sequence[Token], start: int, end: int, near: int) -> list[Token]:
    before = [word for word in words if word.end <= start][-near:]
    after = [word for word in words if word.start >= end][:near]
    return before + after


def _may_replace(fact: Fact, other: Fact, passage: Passage, words: Sequence[Token]) -> bool:
    # A name replaces another only between the same neighbours, if both are written alike, and if the claim doesn't
    # speak of it.
    mine = {word.stem for word in words}
    if not isinstance(other.value, tuple) or any(part in mine for part in other.value):
        return False
    if _shape(fact.text) != _shape(other.text) or len(other.text) == 1:
        return False
    return _slot(words, fact, passage, other, near=2) >= 0.5


def _stands_for(found: Match, fact: Fact, other: Fact, i: int, holders: Sequence[int]) -> bool:
    """Whether the passage tells what the claim tells, of somebody else: the claim's name is neither in it nor next to
    it.
    """
    mine = {word.stem for word in found.words}
    if not isinstance(other.value, tuple) or any(part in mine for part in other.value):
        return False
    near = any(
        abs(i - holder) <= 1 and found.passages[holder].document == found.passages[i].document for holder in holders
    )
    return not near and _alike_in_form(fact, other)


def _shape(text: str) -> bool:
    letters = [character for character in text if character.isalpha()]
    return all(character.isupper() for character in letters)


def _alike_in_form(fact: Fact, other: Fact) -> bool:
    return _shape(fact.text) == _shape(other.text) and len(fact.text.split()) == len(other.text.split()) >= 2


def _both_lead(found: Match, fact: Fact, context: int, passage: Passage, other: Fact) -> bool:
    """Whether both names open what they are said in, as subjects do."""
    first = next((found.words[i] for b, i in enumerate(found.bits) if context >> b & 1), None)
    if first is None or first.start < fact.start:
        return False
    return not any(word.weight >= 1.0 and word.end <= other.start for word in passage.words)


def _exchanged(found: Match, fact: Fact, facts: Sequence[Fact]) -> Signal | None:
    """A fact the passage has, but in another role: "paid on" one date, "on the register on" the other."""
    for i in found.top[:2]:
        passage = found.passages[i]
        covered = found.coverage((i,))
        own = [other for other in passage.facts if agree(fact, other)]
        if covered < 0.6 or not own:
            continue
        mine = max(_role(found.words, fact, passage, other) for other in own)
        for other in passage.facts:
            if other in own or not comparable(fact, other) or _followed_alike(found.words, fact, passage, own):
                continue
            role = _role(found.words, fact, passage, other)
            taken = max(
                (_role(found.words, there, passage, other) for there in facts if agree(there, other)), default=0.0
            )
            if role >= 0.6 and role - mine >= 0.4 and taken < role and not _at_home(found, fact, passage, own, other):
                reason = f"the evidence has {other.text!r} in the place of {fact.text!r}, which it has elsewhere"
                strength = 0.5 * covered + 0.5 * role
                return signal(
                    fact.kind, (fact.start, fact.end, fact.text), passage, (other.start, other.end), reason, strength
                )
    return None


def _at_home(found: Match, fact: Fact, passage: Passage, own: Sequence[Fact], other: Fact) -> bool:
    """Whether the claim speaks of the stretch that has its fact: "treated ones lost 9%, untreated ones 26%"."""
    piece = next(
        (p.words for p in found.said.stretches if any(found.words[i].start == fact.start for i in p.words)), ()
    )
    wanted = {found.words[i].stem: found.words[i].weight for i in piece if found.words[i].start != fact.start}

    def told(facts: Sequence[Fact]) -> set[str]:
        starts = {one.start for one in facts}
        words = passage.words
        return {
            words[i].stem for p in passage.stretches if any(words[k].start in starts for k in p.words) for i in p.words
        }

    ours, theirs = told(own), told([other])
    mine = sum(weight for root, weight in wanted.items() if root in ours - theirs)
    return mine >= 1.0 and mine > sum(weight for root, weight in wanted.items() if root in theirs - ours)


def _followed_alike(words: Sequence[Token], fact: Fact, passage: Passage, own: Sequence[Fact]) -> bool:
    """Whether the fact is followed by the same words as where the passage has it: its place is the right one."""
    mine = _following(words, fact.end)
    return bool(mine) and any(_following(passage.words, other.end)[:2] == mine[:2] for other in own)


def _following(words: Sequence[Token], end: int) -> list[str]:
    return [word.stem for word in words if word.start >= end and word.weight > 0][:2]


def _role(words: Sequence[Token], fact: Fact, passage: Passage, other: Fact) -> float:
    """How alike what leads up to two facts is, 0..1: the word before each, and the content word before each."""
    mine, theirs = _lead(words, fact.start), _lead(passage.words, other.start)
    if not mine or not theirs:
        return 0.0
    before, their_before = _last_content(mine), _last_content(theirs)
    return 0.4 * (mine[-1].stem == theirs[-1].stem) + 0.6 * (bool(before) and before == their_before)


def _last_content(words: Sequence[Token]) -> str:
    for word in reversed(words):
        if word.weight >= 0.4 and not word.stem[0].isdigit() and word.text.lower() not in MAGNITUDES:
            return word.stem
    return ""


def _lead(words: Sequence[Token], start: int) -> list[Token]:
    return [word for word in words if word.end <= start][-3:]


def _swapped(found: Match, fact: Fact, facts: Sequence[Fact]) -> Signal | None:
    """Two facts of the claim that have changed places: "from 30 April to 1 September" for "from 1 September to 30
    April".
    """
    for i in found.top[:2]:
        passage, covered = found.passages[i], found.coverage((i,))
        own = next((other for other in passage.facts if agree(fact, other)), None)
        if own is None or covered < 0.5:
            continue
        mine = _preposition(found.words, fact.start)
        for mate in facts:
            place = next((other for other in passage.facts if agree(mate, other)), None)
            if mate is fact or place is None or place == own or mate.kind != fact.kind:
                continue
            if fact.dimension != place.dimension:
                continue
            leads = (
                _preposition(found.words, mate.start),
                _preposition(passage.words, own.start),
                _preposition(passage.words, place.start),
            )
            if mine and leads[0] and mine != leads[0] and leads == (leads[0], leads[0], mine):
                reason = f"the evidence has {place.text!r} and {own.text!r} the other way round"
                span = (fact.start, fact.end, fact.text)
                return signal(fact.kind, span, passage, (place.start, place.end), reason, 0.5 + 0.5 * covered)
    return None


def _preposition(words: Sequence[Token], start: int) -> str:
    before = _lead(words, start)
    return before[-1].stem if before and before[-1].text.lower() in _PREPOSITIONS else ""

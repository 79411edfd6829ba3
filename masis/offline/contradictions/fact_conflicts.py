"""Numbers and dates that the evidence has otherwise.

The rule: a passage covers the words around the claim's fact and has a comparable fact of its own in its place, while no
passage covers them as well that has the claim's. A number or date that stands nowhere in the evidence needs less
around it
than one that does; one that looks like the rival (41.2 and 14.2, million and billion, the same day of another year)
less still.
"""

from collections.abc import Iterator, Sequence

from masis.offline.contradictions.derivations import follows
from masis.offline.contradictions.signals import signal
from masis.offline.matching.assessment import Signal
from masis.offline.matching.fact_table import FactTable
from masis.offline.matching.overlap import Match
from masis.offline.matching.passages import Passage
from masis.offline.parsing.facts import Fact, agree, comparable, compared, likeness
from masis.offline.parsing.parsed_sentence import ParsedSentence
from masis.offline.parsing.units import MAGNITUDES
from masis.offline.text.tokens import STOPWORDS, Token

# Numbers and dates that stand nowhere in the evidence, where the evidence has another in their place.
#
# What is nowhere is suspect by itself: a claim takes its figures from the evidence. The rival is looked for in the
# passages that bear the claim and beside them, among the facts that nothing else in the claim accounts for. What
# follows from the evidence by counting or reckoning (`derivations`) is no conflict.

_NEAR = 4
_LEAST = 0.3
_COUNTED = 12
"""Up to here a bare number may count what the evidence lists."""


def absent_signal(found: Match, fact: Fact, facts: Sequence[Fact]) -> Signal | None:
    """The fact of the evidence in whose place the claim has one that no evidence holds, and that follows from none."""
    near = found.around(fact.start, fact.end, _NEAR) & ~found.mask(fact.start, fact.end)
    best: tuple[float, Passage, Fact] | None = None
    rivals = [(i, other) for i in found.region for other in _rivals(found, fact, facts, i)]
    sole = len({(other.value, other.dimension) for _, other in rivals}) == 1
    for i, other in rivals:
        passage = found.passages[i]
        alike, covered = likeness(fact, other), found.share(i, near)
        slot = surroundings(found.sentence, fact, passage, other)
        counts = _counts_the_same(found.sentence, fact, passage, other)
        alone = sole and fact.kind == "date" and alike >= 0.4 and found.share(found.top[0], near) >= 0.4
        if alike < 0.8 and covered < _LEAST and slot < _LEAST and not alone:
            continue
        if not comparable(fact, other) and not counts and not (sole and slot >= 0.5):
            continue
        if may_count(fact) and not counts and slot < 0.6:
            continue
        strength = 0.4 + 0.3 * covered + 0.25 * slot + 0.35 * alike + (0.08 if sole else 0.0) + (0.08 if counts else 0)
        strength += 0.15 if alone else 0.0
        if best is None or strength > best[0]:
            best = (strength, passage, other)
    if best is None:
        return None
    strength, passage, other = best
    reason = f"the evidence has {other.text!r} where the claim has {fact.text!r}, which stands nowhere in it"
    return signal(fact.kind, (fact.start, fact.end, fact.text), passage, (other.start, other.end), reason, strength)


def holds(passage: Passage, fact: Fact) -> bool:
    """Whether the passage has a fact saying the same, and in earnest: "three roads" doesn't hold "3%"."""
    return any(
        agree(fact, other) and not (fact.dimension and not other.dimension and may_count(other))
        for other in passage.facts
        if other.kind == fact.kind
    )


def _rivals(found: Match, fact: Fact, facts: Sequence[Fact], i: int) -> list[Fact]:
    return [
        other
        for other in found.passages[i].facts
        if other.kind == fact.kind
        and other.dimension == fact.dimension
        and not compared(found.passages[i].text, other)
        and not any(mate is not fact and agree(mate, other) for mate in facts)
    ]


def may_count(fact: Fact) -> bool:
    """Return whether a number may merely count what the evidence lists."""
    return fact.kind == "number" and not fact.dimension and not fact.digits and float(fact.value) <= _COUNTED  # type: ignore[arg-type]


def surroundings(sentence: ParsedSentence, fact: Fact, passage: Passage, other: Fact) -> float:
    """The share of the three content words on either side of the claim's fact that stand near the other, 0..1."""
    mine = _beside(sentence, fact.start, fact.end, 3)
    theirs = {word.stem for word in _beside(passage, other.start, other.end, 4)}
    weight = sum(word.weight for word in mine)
    return sum(word.weight for word in mine if word.stem in theirs) / weight if weight else 0.0


def _beside(sentence: ParsedSentence, start: int, end: int, near: int) -> list[Token]:
    return [*sentence.content_before(start, near), *sentence.content_after(end, near)]


def _counts_the_same(sentence: ParsedSentence, fact: Fact, passage: Passage, other: Fact) -> bool:
    # "2,000 long-term unemployed people", "two thousand people": one of the next four words is the same noun.
    mine = [word.stem for word in sentence.content_after(fact.end, 3)]
    theirs = [word.stem for word in passage.content_after(other.end, 3)]
    return bool(set(mine) & set(theirs)) or bool(
        mine and theirs and min(len(mine[0]), len(theirs[0])) >= 4 and mine[0][:5] == theirs[0][:5]
    )


MOST_FACTS = 60
"""Facts of one sentence up to which it is asked whether two of them have changed places. One with more is a table or an
attack; comparing each with each took 7 s for 100,000 characters (benchmarks/slow_strings.py)."""
_SAME_THING = 0.5
_SAME_THING_ABSENT = 0.34
_MARGIN = 0.1
_FACT_CONFLICTS_NEAR, _LEAD = 4, 3
_PREPOSITIONS = frozenset(
    "from to until till between and before after than by over under above below versus against".split()
)


def fact_signals(found: Match, table: FactTable) -> Iterator[Signal]:
    """Yield a signal for each number and date of the claim that the evidence has otherwise."""
    facts, clauses = found.sentence.facts, found.sentence.clause_masks
    for fact in facts:
        if fact.kind == "name":
            continue
        contexts = _contexts(found, found.mask(fact.start, fact.end), clauses)
        holders = table.holders(fact, found.allowed)
        nowhere = not any(holds(found.passages[i], fact) for i in holders)
        derived = nowhere and follows(found, fact)
        compared_with = contexts if holders or not derived else []
        signals = [_conflict(found, fact, mask, facts, holders) for mask in compared_with]
        signals.append(absent_signal(found, fact, facts) if nowhere and not derived else None)
        if len(facts) <= MOST_FACTS:
            signals += [_exchanged(found, fact, facts), _swapped(found, fact, facts)]
        strongest = max((s for s in signals if s is not None), key=lambda s: s.strength, default=None)
        if strongest is not None:
            yield strongest


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


def _conflict(found: Match, fact: Fact, context: int, facts: Sequence[Fact], holders: Sequence[int]) -> Signal | None:
    held = 0.0
    for i in holders:
        held = max(held, found.share(i, context))
        if held >= 1.0:  # nothing is more; of thousands of passages alike, each was looked at for each number
            break
    absent = not holders
    best: tuple[float, Passage, Fact] | None = None
    for covered, i in found.best_passages(context):
        if i in holders or covered < (_SAME_THING_ABSENT if absent else _SAME_THING) or covered < held + _MARGIN:
            continue
        passage = found.passages[i]
        for other in passage.facts:
            if other.kind != fact.kind or compared(passage.text, other):
                continue
            if not comparable(fact, other) and not (absent and _counts_alike(found.sentence, fact, passage, other)):
                continue
            if any(mate is not fact and agree(mate, other) for mate in facts):
                continue
            slot, alike = _slot(found.sentence, fact, passage, other), likeness(fact, other)
            score = _strength(covered, slot, alike, held, absent)
            if best is None or score > best[0]:
                best = (score, passage, other)
    if best is None:
        return None
    score, passage, other = best
    reason = f"the evidence has {other.text!r} where the claim has {fact.text!r}"
    return signal(fact.kind, (fact.start, fact.end, fact.text), passage, (other.start, other.end), reason, score)


def _counts_alike(sentence: ParsedSentence, fact: Fact, passage: Passage, other: Fact) -> bool:
    """Whether two bare numbers stand behind the same word, or before the same: "aged 11", "week 58", "84/7"."""
    if fact.kind != "number" or other.kind != "number" or fact.dimension or other.dimension or agree(fact, other):
        return False
    if _role(sentence, fact, passage, other) >= 0.6:
        return True
    mine, theirs = sentence.after(fact.end, 1), passage.after(other.end, 1)
    return bool(mine and theirs) and mine[0].stem == theirs[0].stem and mine[0].stem not in STOPWORDS


def _strength(covered: float, slot: float, alike: float, held: float, absent: bool) -> float:
    if absent:
        return 0.33 + 0.5 * covered + 0.3 * slot + 0.4 * alike
    return 0.6 * covered + 0.4 * slot + 0.2 * alike - 0.3 * held


def _slot(
    sentence: ParsedSentence, fact: Fact, passage: Passage, other: Fact, near: int = _FACT_CONFLICTS_NEAR
) -> float:
    """How alike the surroundings of the two facts are: share of the claim's nearest words that stand near the rival,
    0..1.
    """
    mine = (*sentence.before(fact.start, near), *sentence.after(fact.end, near))
    theirs = {word.stem for word in (*passage.before(other.start, near), *passage.after(other.end, near))}
    weight = sum(max(word.weight, 0.2) for word in mine)
    return sum(max(word.weight, 0.2) for word in mine if word.stem in theirs) / weight if weight else 0.0


def _exchanged(found: Match, fact: Fact, facts: Sequence[Fact]) -> Signal | None:
    """A fact the passage has, but in another role: "paid on" one date, "on the register on" the other."""
    for i in found.top[:2]:
        passage = found.passages[i]
        covered = found.coverage((i,))
        own = [other for other in passage.facts if agree(fact, other)]
        if covered < 0.6 or not own:
            continue
        mine = max(_role(found.sentence, fact, passage, other) for other in own)
        if mine > 0.6 or _followed_alike(found.sentence, fact, passage, own):
            continue
        for other in passage.facts:
            if other in own or not comparable(fact, other):
                continue
            role = _role(found.sentence, fact, passage, other)
            if role < 0.6 or role - mine < 0.4:
                continue
            taken = max(
                (_role(found.sentence, there, passage, other) for there in facts if agree(there, other)), default=0.0
            )
            if taken < role and not _at_home(found, fact, passage, own, other):
                reason = f"the evidence has {other.text!r} in the place of {fact.text!r}, which it has elsewhere"
                strength = 0.5 * covered + 0.5 * role
                return signal(
                    fact.kind, (fact.start, fact.end, fact.text), passage, (other.start, other.end), reason, strength
                )
    return None


def _at_home(found: Match, fact: Fact, passage: Passage, own: Sequence[Fact], other: Fact) -> bool:
    """Whether the claim speaks of the stretch that has its fact: "treated ones lost 9%, untreated ones 26%"."""
    piece = next(
        (p.words for p in found.sentence.clauses if any(found.words[i].start == fact.start for i in p.words)), ()
    )
    wanted = {found.words[i].stem: found.words[i].weight for i in piece if found.words[i].start != fact.start}

    def clause_stems(facts: Sequence[Fact]) -> set[str]:
        starts = {one.start for one in facts}
        words = passage.words
        return {
            words[i].stem for p in passage.clauses if any(words[k].start in starts for k in p.words) for i in p.words
        }

    ours, theirs = clause_stems(own), clause_stems([other])
    mine = sum(weight for root, weight in wanted.items() if root in ours - theirs)
    return mine >= 1.0 and mine > sum(weight for root, weight in wanted.items() if root in theirs - ours)


def _followed_alike(sentence: ParsedSentence, fact: Fact, passage: Passage, own: Sequence[Fact]) -> bool:
    """Whether the fact is followed by the same words as where the passage has it: its place is the right one."""
    mine = [word.stem for word in sentence.content_after(fact.end, 2)]
    return bool(mine) and any([word.stem for word in passage.content_after(other.end, 2)] == mine for other in own)


def _role(sentence: ParsedSentence, fact: Fact, passage: Passage, other: Fact) -> float:
    """How alike what leads up to two facts is, 0..1: the word before each, and the content word before each."""
    mine, theirs = sentence.before(fact.start, _LEAD), passage.before(other.start, _LEAD)
    if not mine or not theirs:
        return 0.0
    before, their_before = _last_content(mine), _last_content(theirs)
    return 0.4 * (mine[-1].stem == theirs[-1].stem) + 0.6 * (bool(before) and before == their_before)


def _last_content(words: Sequence[Token]) -> str:
    for word in reversed(words):
        if word.weight >= 0.4 and not word.stem[0].isdigit() and word.text.lower() not in MAGNITUDES:
            return word.stem
    return ""


def _swapped(found: Match, fact: Fact, facts: Sequence[Fact]) -> Signal | None:
    """Two facts of the claim that have changed places: "from 30 April to 1 September" for "from 1 September to 30
    April".
    """
    for i in found.top[:2]:
        passage, covered = found.passages[i], found.coverage((i,))
        own = next((other for other in passage.facts if agree(fact, other)), None)
        if own is None or covered < 0.5:
            continue
        mine, lead_of_own = _preposition(found.sentence, fact.start), _preposition(passage, own.start)
        if not mine or not lead_of_own or mine == lead_of_own:
            continue  # before the other facts are looked at: thousands of numbers in one sentence took 7 s
        for mate in facts:
            if mate is fact or mate.kind != fact.kind or _preposition(found.sentence, mate.start) != lead_of_own:
                continue
            place = next((other for other in passage.facts if agree(mate, other)), None)
            if place is None or place == own or fact.dimension != place.dimension:
                continue
            if _preposition(passage, place.start) == mine:
                reason = f"the evidence has {place.text!r} and {own.text!r} the other way round"
                span = (fact.start, fact.end, fact.text)
                return signal(fact.kind, span, passage, (place.start, place.end), reason, 0.5 + 0.5 * covered)
    return None


def _preposition(sentence: ParsedSentence, start: int) -> str:
    before = sentence.before(start, 1)
    return before[-1].stem if before and before[-1].text.lower() in _PREPOSITIONS else ""

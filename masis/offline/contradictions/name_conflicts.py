"""Names the evidence has otherwise: a stretch of it tells what the claim tells, of somebody else.

Judged by stretches of sentences, since one sentence often speaks of two people. The stretch that covers the words
around the claim's name doesn't have it and has another, written alike, that the claim doesn't speak of.
"""

from collections.abc import Sequence

from masis.offline.contradictions.signals import signal
from masis.offline.matching.assessment import Signal
from masis.offline.matching.fact_table import FactTable
from masis.offline.matching.overlap import LOOSE, Match
from masis.offline.matching.passages import Passage
from masis.offline.parsing.facts import Fact, agree
from masis.offline.parsing.parsed_sentence import ParsedSentence, Segment
from masis.offline.text.lexicon import loose_keys
from masis.offline.text.tokens import Token

_SAME_THING = 0.55
_PASSAGE = 0.4
_MARGIN = 0.25
_NEAR = 4
_PLACED = 0.7
"""Of a name that stands nowhere: how much of what is said of it must stand with another behind the same preposition."""
_PREPOSITIONS = frozenset("in at of by from to with for under against on into near above below via through".split())


def name_signal(found: Match, fact: Fact, table: FactTable) -> Signal | None:
    """The strongest name in whose place the claim has this one, if any."""
    bits = found.mask(fact.start, fact.end)
    if fact.kind != "name" or not bits:
        return None
    own = 0
    for mask in found.sentence.clause_masks:
        if mask & bits:
            own |= mask
    best: tuple[float, Passage, Fact] | None = None
    for context in dict.fromkeys((own & ~bits, found.around(fact.start, fact.end, _NEAR) & ~bits)):
        if found.value(context) < 2.0:
            continue
        made = _in_context(found, fact, context, table)
        if made is not None and (best is None or made[0] > best[0]):
            best = made
    if best is None:
        return None
    strength, passage, other = best
    reason = f"the evidence says this of {other.text!r}, not of {fact.text!r}"
    return signal("name", (fact.start, fact.end, fact.text), passage, (other.start, other.end), reason, strength)


def _in_context(found: Match, fact: Fact, context: int, table: FactTable) -> tuple[float, Passage, Fact] | None:
    wanted = [found.words[i] for b, i in enumerate(found.bits) if context >> b & 1]
    total = sum(word.weight for word in wanted)
    candidates = [i for covered, i in found.best_passages(context) if covered >= _PASSAGE]
    if not candidates:
        return None
    holders = table.named(fact) & found.score.keys()
    held, judged = 0.0, []
    for i in dict.fromkeys((*candidates, *[k for k in found.top if k in holders])):
        for segment in found.passages[i].by_segment:
            covered = _covered(wanted, segment) / total
            if any(agree(fact, other) for other in segment.names):
                held = max(held, covered)
            elif i in candidates and covered >= _SAME_THING and segment.names:
                judged.append((covered, i, segment))
    best: tuple[float, Passage, Fact] | None = None
    for covered, i, segment in judged:
        if covered < held + _MARGIN:
            continue
        passage = found.passages[i]
        rivals = [other for other in segment.names if _rival(found, fact, other)]
        beside = any(abs(i - k) <= 1 for k in holders if passage.document == found.passages[k].document)
        for other in rivals:
            lead, their_lead = _lead(found.sentence, fact.start), _lead(passage, other.start)
            placed = not holders and lead == their_lead != "" and covered >= _PLACED
            if (lead in _PREPOSITIONS) != (their_lead in _PREPOSITIONS):
                continue
            if not placed and not _next_to_the_same(found.sentence, fact, segment, other):
                continue
            sure = 0.08 * (lead == their_lead) + 0.06 * (len(rivals) == 1) - 0.05 * beside
            sure -= 0.15 * (fact.text.isupper() and covered < 0.8) + 0.08 * (fact.text.split()[0] == fact.text)
            strength = 0.45 + 0.4 * covered + sure
            if best is None or strength > best[0]:
                best = (strength, passage, other)
    return best


def _next_to_the_same(sentence: ParsedSentence, fact: Fact, segment: Segment, other: Fact) -> bool:
    # One of the claim's nearest words on either side stands within three words of the rival.
    theirs = [word for word in segment.words if word.end <= other.start and word.weight > 0][-3:]
    theirs += [word for word in segment.words if word.start >= other.end and word.weight > 0][:3]
    near = {key for word in theirs for key in (word.stem, *loose_keys(word.stem))}
    mine = (*sentence.content_before(fact.start, 1), *sentence.content_after(fact.end, 1))
    return any(word.stem in near or not near.isdisjoint(loose_keys(word.stem)) for word in mine)


def _covered(wanted: Sequence[Token], segment: Segment) -> float:
    stems, keys = segment.stems, segment.keys
    return sum(
        word.weight if word.stem in stems else LOOSE * word.weight * (not keys.isdisjoint(loose_keys(word.stem)))
        for word in wanted
    )


def _rival(found: Match, fact: Fact, other: Fact) -> bool:
    if not isinstance(other.value, tuple) or any(part in found.sentence.content for part in other.value):
        return False
    if any(agree(mate, other) for mate in found.sentence.names):
        return False
    return _form(fact) == _form(other)


def _form(fact: Fact) -> tuple[bool, bool]:
    letters = [c for c in fact.text if c.isalpha()]
    return all(c.isupper() for c in letters), len(fact.text.split()) > 1


def _lead(sentence: ParsedSentence, start: int) -> str:
    # "identified by her colleague Piet van Roon" is led by "by".
    before = [word.text.lower() for word in sentence.before(start, 3)]
    return next((word for word in reversed(before) if word in _PREPOSITIONS), "")

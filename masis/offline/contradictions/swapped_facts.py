"""Two facts of a claim that have changed places: each stands among the words that surround the other in the evidence.

"Gentamicin is infused over an hour, and vancomycin added for the bowel", where the evidence infuses vancomycin and adds
gentamicin. Judged for names, numbers and dates, and for plain words that end alike, as the names of substances do.
"""

from collections.abc import Sequence
from itertools import combinations
from typing import NamedTuple

from masis.offline.contradictions.signals import signal
from masis.offline.matching.assessment import Signal, SignalKind
from masis.offline.matching.overlap import Match
from masis.offline.matching.passages import Passage
from masis.offline.parsing.facts import Fact, agree, comparable
from masis.offline.parsing.parsed_sentence import ParsedSentence
from masis.offline.text.tokens import Token

_LEAD, _LEADS = 0.2, 0.7
_LEAST = 0.45
_MOST = 12
"""Facts compared; a claim with more is a table."""
_BESIDE, _WITHIN = 3, 4
_LIST = frozenset("and or".split())


class Place(NamedTuple):
    """Where a passage has one of the two, with the stems of the content words beside it."""

    passage: Passage
    start: int
    end: int
    beside: frozenset[str]


Thing = tuple[SignalKind, int, int, str, Fact | None]


def exchange_signals(found: Match) -> list[Signal]:
    """A signal for each fact that stands in the other's place."""
    text, facts = found.sentence.text, found.sentence.facts
    things: list[Thing] = [(fact.kind, fact.start, fact.end, fact.text, fact) for fact in facts]
    things += _alike_words(found, facts)
    if len(things) < 2 or len(things) > _MOST:
        return []
    result: list[Signal] = []
    held: dict[Thing, list[Place]] = {}
    for one, other in combinations(sorted(things, key=lambda thing: thing[1]), 2):
        if _exchangeable(one, other) and not _listed(text, one, other):
            for thing in (one, other):
                if thing not in held:
                    held[thing] = _held(found, thing)
            if held[one] and held[other]:
                result += _exchanged(found, one, other, held[one], held[other])
    return result


def _alike_words(found: Match, facts: Sequence[Fact]) -> list[Thing]:
    taken = [(fact.start, fact.end) for fact in facts]
    words = [
        word
        for word in found.words
        if word.weight >= 1.0 and len(word.text) >= 7 and word.text.isalpha()
        and not any(start <= word.start < end for start, end in taken)
    ]  # fmt: skip
    kin = {
        thing
        for one, other in combinations(words[:40], 2)
        if one.stem != other.stem
        and one.text[-3:].lower() == other.text[-3:].lower()
        and one.text[-3:].lower() not in _COMMON_ENDS
        for thing in (one, other)
    }
    return [("name", word.start, word.end, word.text, None) for word in sorted(kin, key=lambda word: word.start)]


_COMMON_ENDS = frozenset(
    "ing ion ted ity ent ers ons ies ess ble ons ate ive ous nce ial nal cal ned red led ally".split()
)


def _exchangeable(one: Thing, other: Thing) -> bool:
    if one[0] != other[0] or (one[4] is None) != (other[4] is None):
        return False
    if one[4] is None or other[4] is None:
        return one[3][-3:].lower() == other[3][-3:].lower()
    if agree(one[4], other[4]):
        return False
    return one[0] == "name" or comparable(one[4], other[4]) or (one[4].dimension == other[4].dimension)


def _listed(text: str, one: Thing, other: Thing) -> bool:
    between = text[one[2] : other[1]].replace(",", " ").split()
    return all(word.lower() in _LIST for word in between)


def _exchanged(found: Match, one: Thing, other: Thing, mine: Sequence[Place], theirs: Sequence[Place]) -> list[Signal]:
    spans = ((one[1], one[2]), (other[1], other[2]))
    (own, _), (crossed, where) = _best(found, spans, 0, mine), _best(found, spans, 0, theirs)
    (own_other, _), (crossed_other, where_other) = (
        _best(found, spans, 1, theirs),
        _best(found, spans, 1, mine),
    )
    leads = (crossed - own, crossed_other - own_other)
    if where is None or where_other is None or min(crossed, crossed_other) < _LEAST:
        return []
    if min(leads) < _LEAD or sum(leads) < _LEADS:
        return []
    strength = 0.5 + 0.25 * (crossed + crossed_other)
    made = []
    for thing, (passage, start, end, _) in ((one, where), (other, where_other)):
        reason = f"the evidence has {passage.text[start:end]!r} in the place of {thing[3]!r}, and the other way round"
        made.append(signal(thing[0], (thing[1], thing[2], thing[3]), passage, (start, end), reason, strength))
    return made


def _held(found: Match, thing: Thing) -> list[Place]:
    places: list[Place] = []
    bits = found.mask(thing[1], thing[2])
    for i in found.top:
        passage = found.passages[i]
        if thing[4] is not None:
            places += [
                _place(passage, fact.start, fact.end)
                for fact in passage.facts
                if fact.kind == thing[0] and agree(thing[4], fact)
            ]
        elif found.exact.get(i, 0) & bits:
            root = next(word.stem for word in found.words if word.start == thing[1])
            places += [
                _place(passage, passage.words[i].start, passage.words[i].end) for i in passage.positions.get(root, ())
            ]
    return places


def _place(passage: Passage, start: int, end: int) -> Place:
    known = passage.beside.get((start, end))
    if known is None:
        known = frozenset(word.stem for word in _beside(passage, start, end, _WITHIN))
        passage.beside[start, end] = known
    return Place(passage, start, end, known)


def _best(
    found: Match, spans: tuple[tuple[int, int], tuple[int, int]], which: int, places: Sequence[Place]
) -> tuple[float, Place | None]:
    """How well the words beside one of the two are found beside these places, 0..1, and the best place."""
    (start, end), (out, out_end) = spans[which], spans[1 - which]
    mine = [word for word in _beside(found.sentence, start, end, _BESIDE) if not out <= word.start < out_end]
    weight = sum(word.weight for word in mine)
    if not weight:
        return 0.0, None
    best: tuple[float, Place | None] = (0.0, None)
    for place in places:
        value = sum(word.weight for word in mine if word.stem in place.beside) / weight
        if best[1] is None or value > best[0]:
            best = (value, place)
    return best


def _beside(place: ParsedSentence, start: int, end: int, near: int) -> list[Token]:
    # Within the same stretch of the sentence, if that has any other word.
    mine = {place.segments[i] for i in place.within(start, end)}
    own = [
        word
        for number in sorted(mine)
        for word in place.by_segment[number].words
        if word.weight > 0 and not start <= word.start < end
    ]
    if not own:
        return [*place.content_before(start, near), *place.content_after(end, near)]
    before = [word for word in own if word.end <= start][-near:]
    return before + [word for word in own if word.start >= end][:near]

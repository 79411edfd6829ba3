"""A value that the evidence has, but of something else than the claim says it of.

"Cyclists were admitted in 1988" for "restored until 1988 and open to cyclists since 1995". The stretch with the claim's
value holds nothing of what the claim tells beside it; a stretch with another value of the kind does. Words that the
evidence has nowhere say nothing either way, so that a paraphrase is judged by what it keeps.
"""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from masis.offline.contradictions.signals import signal
from masis.offline.matching.assessment import Signal
from masis.offline.matching.overlap import LOOSE, Match
from masis.offline.matching.passages import Passage
from masis.offline.parsing.facts import Fact, agree, comparable
from masis.offline.parsing.parsed_sentence import ParsedSentence
from masis.offline.parsing.predicates import Predicate, is_verb
from masis.offline.text.lexicon import loose_keys
from masis.offline.text.tokens import Token

_MOST = 8
"""Facts looked at; a claim with more is a list."""
_APART = 1.0
"""Weight of what the claim tells that the other stretch must have beyond the value's own."""
_SHARE = 0.5
"""The share of what the evidence has of it at all that must stand with the other value, if no name does."""
_ITEM = 3
"""Content words of an item in a list, its value included: "Norrland Bygg 24"."""
_STRENGTH = 0.74
_LEANING = frozenset("it its he she his her they their this these that those both such".split())
_LEADS = frozenset("by from to of with for against under in at".split())


class _Piece(NamedTuple):
    """A stretch of a passage, with one of the facts in it."""

    passage: Passage
    predicate: Predicate
    fact: Fact


def pairing_signals(found: Match) -> list[Signal]:
    """A signal for each fact of the claim that the evidence tells of something else."""
    facts = found.sentence.facts
    made = []
    for fact in facts[:_MOST]:
        one = _paired_otherwise(found, fact, facts)
        if one is not None:
            made.append(one)
    return made


def _paired_otherwise(found: Match, fact: Fact, facts: Sequence[Fact]) -> Signal | None:
    if fact.kind == "name" and _lead(found.sentence, fact) != "by":
        return None
    homes = [piece for i in found.region for piece in _pieces(found.passages[i], fact.kind) if _says(fact, piece.fact)]
    wanted = _beside(found.sentence, fact, facts) if homes else []
    if not wanted:
        return None
    alone = all(map(_says_by_itself, homes))
    near = [found.passages[i] for i in found.region] if fact.kind == "name" else [home.passage for home in homes]
    known = [word for word in wanted if any(_in_passage(word, passage) for passage in near)]
    at_home = [word for word in wanted if any(_at_home(found, word, home) for home in homes)]
    spare = [word for word in known if word not in at_home]
    if sum(word.weight for word in spare) < _APART:
        return None
    total = sum(word.weight for word in known)
    best: tuple[float, _Piece] | None = None
    for passage in dict.fromkeys(near):
        for rival in _pieces(passage, fact.kind):
            if not _comparable(found, fact, facts, homes, rival):
                continue
            if any(not _held(word, rival) for word in at_home) or not (alone or _is_item(rival)):
                continue
            apart = [word for word in spare if _held(word, rival)]
            weight = sum(_held(word, rival) for word in apart)
            named = any(word.weight >= 1.3 for word in apart)
            if weight < _APART or not (named or weight >= _SHARE * total):
                continue
            if best is None or weight > best[0]:
                best = (weight, rival)
    if best is None:
        return None
    weight, rival = best
    reason = f"the evidence has {rival.fact.text!r} there; {fact.text!r} is said of something else"
    span, where = (fact.start, fact.end, fact.text), (rival.fact.start, rival.fact.end)
    return signal(fact.kind, span, rival.passage, where, reason, _STRENGTH + 0.04 * min(3.0, weight))


def _beside(sentence: ParsedSentence, fact: Fact, facts: Sequence[Fact]) -> list[Token]:
    """What the claim tells beside its fact: the content words of the stretch, but for other values and what they
    count, which lists leave out ("251 outbreaks in 2018, 214 in 2019").
    """
    values = [(one.start, one.end) for one in facts if one is fact or one.kind != "name"]
    counts = [sentence.content_after(one.end, 1) for one in facts if one.kind == "number"]
    values += [(word.start, word.end) for words in counts for word in words]
    piece = next((predicate.clause for predicate, other in sentence.predicate_facts if other is fact), None)
    if piece is None:
        return []
    return [
        sentence.words[i]
        for i in dict.fromkeys((*piece.actor, *piece.words))
        if sentence.words[i].weight >= 1.0 and not any(start <= sentence.words[i].start < end for start, end in values)
    ]


def _pieces(passage: Passage, kind: str) -> Iterator[_Piece]:
    return (_Piece(passage, predicate, fact) for predicate, fact in passage.predicate_facts if fact.kind == kind)


def _says_by_itself(home: _Piece) -> bool:
    """Whether the stretch with the claim's value has a verb, or is the short item of a list."""
    words = [home.passage.words[i] for i in home.predicate.clause.words]
    return any(map(is_verb, words)) or sum(word.weight > 0 for word in words) <= _ITEM


def _is_item(rival: _Piece) -> bool:
    """Whether the other stretch has no verb, as an item beside another: "17 million from reserves"."""
    return not any(is_verb(rival.passage.words[i]) for i in rival.predicate.clause.words)


def _says(fact: Fact, other: Fact) -> bool:
    return agree(fact, other) or (fact.kind == "number" and agree(other, fact))


def _held(word: Token, piece: _Piece) -> float:
    if word.stem in piece.predicate.stems or word.stem in piece.predicate.actor:
        return word.weight
    return 0.0 if piece.predicate.all_keys.isdisjoint(loose_keys(word.stem)) else LOOSE * word.weight


def _in_passage(word: Token, passage: Passage) -> bool:
    return word.stem in passage.content or not passage.keys.isdisjoint(loose_keys(word.stem))


def _at_home(found: Match, word: Token, home: _Piece) -> bool:
    """Whether the word stands with the claim's value: for a name anywhere in its sentence."""
    if home.fact.kind == "name" and _in_passage(word, home.passage):
        return True
    return _held(word, home) > 0 or _leaned(found, word, home)


def _leaned(found: Match, word: Token, home: _Piece) -> bool:
    """Whether the sentence before the value's has the word, and this one goes on from it: "It has 14 rooms"."""
    first, at = home.passage.words[0].text.lower(), home.passage.at
    if first not in _LEANING or not at or found.passages[at - 1].document != home.passage.document:
        return False
    return _in_passage(word, found.passages[at - 1])


def _comparable(found: Match, fact: Fact, facts: Sequence[Fact], homes: Sequence[_Piece], rival: _Piece) -> bool:
    """Whether the other fact could stand where the claim has its own, and is not said by the claim as well."""
    other = rival.fact
    if any(_says(mate, other) for mate in facts if mate.kind == other.kind):
        return False
    if any(home.predicate.clause is rival.predicate.clause for home in homes):
        return False
    if fact.kind == "name":
        return _lead(rival.passage, other) == "by"
    return comparable(fact, other) or any(_alike(home.fact, other) for home in homes)


def _alike(home: Fact, other: Fact) -> bool:
    bare = home.kind == other.kind == "number" and not home.dimension and not other.dimension
    return bare and home.head == other.head


def _lead(sentence: ParsedSentence, fact: Fact) -> str:
    """The preposition a name stands behind, at most three words away."""
    before = [word.text.lower() for word in sentence.before(fact.start, 3)]
    return next((word for word in reversed(before) if word in _LEADS), "")

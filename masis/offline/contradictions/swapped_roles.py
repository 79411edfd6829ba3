"""Who did it: what the claim says of one, the evidence says of another, and of the one something else.

Judged by stretches (`stretches`). The evidence near the best passage must know the claim's actor and say other things
of it; a stretch with another actor must hold what the claim says. "The radiometer failed" is denied by "its radiometer
measured moisture; the altimeter failed".
"""

from collections.abc import Collection, Sequence
from typing import NamedTuple

from masis.offline.contradictions.signals import signal
from masis.offline.matching.assessment import Signal
from masis.offline.matching.overlap import LOOSE, Match
from masis.offline.matching.passages import Passage
from masis.offline.parsing.predicates import RELATIVES, Clause, Predicate, is_meaningful, is_verb, predicate_words
from masis.offline.text.lexicon import loose_keys
from masis.offline.text.tokens import Token

_LEAST = 1.0
_TOLD, _TOLD_PLAIN = 0.6, 0.75
_REACH = 1
_SPARE = 0.34
"""How much of what tells the two apart may stand with the claim's actor all the same."""
_GENERIC = frozenset(
    """
    it there they he she we i you one who which that this these those aim objective purpose difference majority minority
    conclusion result results finding findings study survey data number rest others author authors patients
    """.split()
)
_LONGEST = 40
"""Words; a longer stretch is a heading, a table or a menu."""
_GAPPED = 8
"""Words of a stretch that may do without a verb: "Mr Kowalczyk for those about meals"."""
_NO_NOUN = ("ing", "ed")


class _Statement(NamedTuple):
    """What a stretch of a passage tells."""

    passage: Passage
    predicate: Predicate

    @property
    def words(self) -> tuple[int, ...]:
        """The indices of its words in the passage."""
        return self.predicate.clause.words

    @property
    def subject(self) -> list[Token]:
        """The words that name its actor."""
        return [self.passage.words[i] for i in self.predicate.clause.actor]


def role_signals(found: Match) -> list[Signal]:
    """A signal for each actor of the claim whose deed the evidence tells of another."""
    statements: list[_Statement] = []
    made = []
    for mine in found.sentence.clauses:
        actor = {found.words[i].stem: found.words[i] for i in mine.actor if is_meaningful(found.words, i)}
        if not actor or not mine.own or not mine.acts or found.words[mine.actor[0]].text.lower().endswith("ing"):
            continue
        deed = [found.words[i] for i in predicate_words(found.words, mine)]
        if sum(word.weight for word in deed) < _LEAST:
            continue
        statements = statements or _near(found)
        one = _conflict(found, mine, frozenset(actor), deed, statements)
        if one is not None:
            made.append(one)
    return made


def _near(found: Match) -> list[_Statement]:
    wanted: dict[int, None] = {}
    for i in found.top[:3]:
        for k in range(max(0, i - _REACH), min(len(found.passages), i + _REACH + 1)):
            if found.passages[k].document == found.passages[i].document:
                wanted[k] = None
    return [_Statement(found.passages[k], one) for k in sorted(wanted) for one in found.passages[k].predicates]


def _conflict(
    found: Match, mine: Clause, actor: frozenset[str], deed: Sequence[Token], statements: Sequence[_Statement]
) -> Signal | None:
    named = _is_name(found.words, mine, found.passages[0].known_names)
    own = [one for one in statements if _shares(actor, one.predicate) and not _others(actor, one, named)]
    if not own or not (named or any(_plain(actor, one) for one in own)):
        return None
    near = [one.passage for one in own if one.predicate.clause.own and one.predicate.clause.acts]
    best: tuple[float, _Statement] | None = None
    whole = sum(word.weight for word in deed)
    for other in statements:
        theirs = other.predicate
        if not theirs.actor or not _others(actor, other, named) or not _comparable(named, other):
            continue
        if len(other.words) > _LONGEST or _relative(other):
            continue
        gapped = other.passage in near and len(other.words) <= _GAPPED
        if not gapped and not theirs.clause.acts:
            continue
        if any(word.stem in theirs.actor and (word.text[0].isupper() or not named) for word in deed):
            continue
        covered = sum(_held(word, theirs) for word in deed)
        if covered < (_TOLD if named and _does_the_same(deed, other) else _TOLD_PLAIN) * whole:
            continue
        spare = [word for word in deed if not _held(word, theirs)]
        apart = max(sum(_held(word, one.predicate) for word in spare) for one in own)
        nearest = max(sum(_held(word, one.predicate) for word in deed) for one in own)
        if covered - nearest < _LEAST or apart > _SPARE * (covered - nearest):
            continue
        beside = any(one.passage is other.passage for one in own)
        strength = 0.35 + 0.45 * covered / whole + 0.08 * beside + 0.06 * named
        if best is None or strength > best[0]:
            best = (strength, other)
    if best is None:
        return None
    strength, other = best
    start, end = found.words[mine.actor[0]].start, found.words[mine.actor[-1]].end
    where = (other.subject[0].start, other.subject[-1].end)
    subject = found.sentence.text[start:end]
    reason = f"the evidence says this of {other.passage.text[where[0] : where[1]]!r}, not of {subject!r}"
    return signal("name", (start, end, subject), other.passage, where, reason, strength)


def _others(actor: frozenset[str], other: _Statement, named: bool) -> bool:
    """Whether the stretch tells of somebody else: not a word of the actor in it, but for a title or kind both bear."""
    shared = actor & other.predicate.actor
    left, right = actor - shared, other.predicate.actor - shared
    if shared and left and right and (named or all(map(_designates, left | right)) or _sited(other, right)):
        actor = left
    return not _shares(actor, other.predicate)


def _designates(root: str) -> bool:
    # "4a", "b", "40": what tells one of a kind from another.
    return len(root) == 1 or any(character.isdigit() for character in root)


def _sited(other: _Statement, right: frozenset[str]) -> bool:
    return all(word.text[0].isupper() for word in other.subject if word.stem in right)


def _plain(actor: frozenset[str], one: _Statement) -> bool:
    """Whether the stretch has the actor for its own, as a plain noun."""
    return any(word.stem in actor and word.text.islower() for word in one.subject)


def _relative(other: _Statement) -> bool:
    return other.passage.words[other.words[0]].text.lower() in RELATIVES


def _does_the_same(deed: Sequence[Token], other: _Statement) -> bool:
    verbs = [word for word in deed if is_verb(word)]
    return not verbs or any(_held(word, other.predicate) for word in verbs)


def _is_name(words: Sequence[Token], clause: Clause, known: Collection[str]) -> bool:
    first = words[clause.actor[0]]
    capital = all(words[i].text[0].isupper() for i in clause.actor)
    return capital and (len(clause.actor) > 1 or first.start > 0 or first.text in known)


def _comparable(named: bool, other: _Statement) -> bool:
    theirs = other.subject
    if any(word.text.lower() in _GENERIC for word in theirs) or theirs[-1].text[0].isdigit():
        return False
    return (
        any(word.text[0].isupper() for word in theirs)
        if named
        else not any(word.text.lower().endswith(_NO_NOUN) for word in theirs)
    )


def _shares(actor: frozenset[str], other: Predicate) -> bool:
    """Whether the stretch names the actor or speaks of it."""
    if not (actor.isdisjoint(other.stems) and actor.isdisjoint(other.actor)):
        return True
    return any(not other.all_keys.isdisjoint(loose_keys(root)) for root in actor)


def _held(word: Token, other: Predicate) -> float:
    if word.stem in other.stems:
        return word.weight
    return 0.0 if other.keys.isdisjoint(loose_keys(word.stem)) else LOOSE * word.weight

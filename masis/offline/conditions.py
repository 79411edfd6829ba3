"""Values that hold under a condition only: a limit by tier, a dose by weight, a fee by age, a port by version.

Where the evidence has another value of the same kind under another condition, an answer that gives one of them and says
no condition assumes it (``specs/draft-critique.md``, example 1: "Answer assumes Pro tier without clarification").

The rule, in any words: the evidence has two stretches alike but for value and condition ("Free tier: 10MB limit", "Pro
tier: 100MB limit"); the answer gives one value and not the other; nothing that question or answer say tells the two
apart. A question that names the tier, an answer that does, and a stretch without any condition are all left alone.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from itertools import pairwise
from typing import NamedTuple

from masis.offline.evidence import Passage, loose_keys
from masis.offline.facts import Day, Fact, agree, comparable, extract
from masis.offline.ground import index_of, plain, stems
from masis.offline.text import Token, tokens
from masis.schema.audit import ClaimCheck
from masis.schema.case import Evidence
from masis.steps.context import AuditContext

MOST_APART = 6
"""Words by which two stretches may differ and still speak of the same thing under two conditions."""
MOST_LOOSE = 2
"""Of these, words that stand in no phrase of condition ("Express delivery", "the Team plan")."""
LABEL_WORDS = 6
MOST_OTHERS = 4
MOST_UNITS = 60
"""Stretches with a comparable value that are looked at for one claim."""

_COMPARING = frozenset(
    """under over above below more less least most before after until within without outside inside not other others
    otherwise elsewhere first second only except unless each every all any both no between during through""".split()
)
"""Function words that make a condition."""
_OPENERS = frozenset(
    """for in within to under over above below during from at by if when on after before outside inside elsewhere with
    without until through across among per as between since of""".split()
)
_ENDING = frozenset("the a an is are was were be been has have takes take costs cost pays pay".split())
_PRONOUNS = frozenset("it they this these those that".split())
_CUTS = (re.compile(r"[;|]|\s[-–—]\s"), re.compile(r","), re.compile(r"\b(?:and|but|while|whereas)\b"))
_LABEL = re.compile(r"[\s|>*•+-]*[^:|\n]{1,60}[:|]")
_SAID_OF_NOW = frozenset("now current currently today latest newest present presently".split())
_SUBJECT = re.compile(r"\s*(?P<subject>[^.!?,;:\n]{2,120}?)\s(?:is|was|costs?|takes?|lasts?|amounts? to|equals?)\s")
_REACH = 5
"""Words behind an opener that belong to its phrase."""


class Variant(NamedTuple):
    """A stretch of evidence with the value it gives: ``text`` is the stretch, ``sentence`` the passage it stands in."""

    evidence_id: str
    text: str
    sentence: str
    start: int
    value: str
    condition: str


class Assumption(NamedTuple):
    """A claim that gives one of several values as if it were the only one; ``by`` is what they depend on, if named."""

    check: ClaimCheck
    value: str
    chosen: Variant
    others: tuple[Variant, ...]
    by: str


class _Unit:
    """A stretch of a passage with the value it gives and its other words, as far as they tell conditions apart."""

    def __init__(self, at: int, passage: Passage, start: int, end: int, value: Fact) -> None:
        self.at, self.passage, self.start, self.end, self.value = at, passage, start, end, value
        self.text = passage.text[start:end].strip(" \t\n,;|")
        self.words = [
            word
            for word in passage.words
            if start <= word.start < end
            and not (value.start <= word.start < value.end)
            and (word.weight > 0 or word.text.lower() in _COMPARING)
        ]
        self.keys = {word.stem: word for word in self.words}

    @cached_property
    def labelled(self) -> bool:
        """Whether it reads "label: value", with few words beside."""
        found = _LABEL.match(self.text)
        return bool(found) and len(self.words) <= LABEL_WORDS

    @cached_property
    def conditional(self) -> frozenset[str]:
        """The words in a label, or in a phrase that a preposition opens."""
        if self.labelled:
            return frozenset(self.keys)
        found, left = set(), 0
        previous_end = self.start
        for word in self.passage.words:
            if not self.start <= word.start < self.end:
                continue
            broken = any(mark in ",;:()" for mark in self.passage.text[previous_end : word.start])
            previous_end = word.end
            lower = word.text.lower()
            if broken or lower in _PRONOUNS or self.value.start <= word.start < self.value.end:
                left = 0
            if left or lower in _COMPARING:
                found.add(word.stem)
            left = _REACH if lower in _OPENERS else max(0, left - 1)
        return frozenset(found)

    @cached_property
    def leans(self) -> bool:
        """Whether its subject is a pronoun, so that it takes over what was said before."""
        return any(word.text.lower() in _PRONOUNS for word in self.passage.words if self.start <= word.start < self.end)


def assumptions(context: AuditContext) -> Iterator[Assumption]:
    """The claims of the answer that assume a condition, at most one finding a claim, in their order."""
    passages = index_of(context.evidence).passages
    told = _values(context.answer)
    said = stems(f"{context.query}\n{context.answer}")
    now = _SAID_OF_NOW & {word.text.lower() for word in tokens(f"{context.query} {context.answer}")}
    for check in context.claims:
        for fact in _values(plain(check.claim)):
            found = _assumed(fact, told, said, passages, bool(now))
            if found is not None:
                chosen, others = found
                mine = _variant(chosen, others[0], said)
                theirs = tuple(_variant(other, chosen, said) for other in others[:MOST_OTHERS])
                yield Assumption(check, fact.text, mine, theirs, _depends_on(mine, theirs[0]))
                break


def under_labels(evidence: Sequence[Evidence], claim: str, bears: str, denies: str) -> bool:
    """Whether two chunks that seem to disagree give their values under labels of their own ("Free: 10", "Pro: 100")."""
    passages = index_of(evidence).passages
    for fact in _values(claim):
        units = [unit for unit in list(_units(fact, passages))[:MOST_UNITS] if unit.labelled]
        mine = [unit for unit in units if unit.passage.evidence_id == bears and _says(unit.value, fact)]
        theirs = [unit for unit in units if unit.passage.evidence_id == denies and not _says(unit.value, fact)]
        if any(_difference(one, other) and _difference(other, one) for one in mine for other in theirs):
            return True
    return False


def said_of(claim: str, found: Assumption) -> str:
    """The claim's subject as something that depends: "The upload size depends on the tier"."""
    subject = _SUBJECT.match(claim)
    about = subject["subject"].strip() if subject and found.value not in subject["subject"] else ""
    return f"{about or 'This'} depends on the {found.by or 'case'}"


def _values(text: str) -> list[Fact]:
    return [fact for fact in extract(text) if fact.kind != "name"]


def _assumed(
    fact: Fact, told: Sequence[Fact], said: frozenset[str], passages: Sequence[Passage], now: bool
) -> tuple[_Unit, list[_Unit]] | None:
    """The stretch whose value the claim gives, and those with other values, if only an unsaid condition parts them."""
    units = list(_units(fact, passages))[:MOST_UNITS]
    giving = [unit for unit in units if _says(unit.value, fact)]
    if not giving or len(giving) == len(units):
        return None
    chosen = min(giving, key=lambda unit: (-len(_met(unit.keys.values(), said)), len(unit.keys)))
    others = [
        unit
        for unit in units
        if not any(_says(unit.value, known) for known in told) and _apart(chosen, unit, said, now)
    ]
    if any(_covers(unit, said) for unit in giving) or not others:
        return None
    return chosen, others


def _covers(unit: _Unit, said: frozenset[str]) -> bool:
    """Whether everything the stretch says is said: it holds under no condition that is left out."""
    return len(_met(unit.keys.values(), said)) == len(unit.keys) > 0


def _units(fact: Fact, passages: Sequence[Passage]) -> Iterator[_Unit]:
    """The stretches of the evidence that give a value of this kind."""
    for at, passage in enumerate(passages):
        values = [other for other in passage.facts if other.kind == fact.kind and _alike(fact, other, passage)]
        if not values:
            continue
        edges = [0, *(cut for a, b in pairwise(values) if (cut := _cut(passage, a, b))), -1]
        edges[-1] = len(passage.text)
        for start, end in pairwise(edges):
            inside = [value for value in values if start <= value.start < end]
            if inside:
                yield _Unit(at, passage, start, end, _value(fact, inside))


def _alike(fact: Fact, other: Fact, passage: Passage) -> bool:
    if comparable(fact, other) or _says(other, fact):
        return True
    # A bare number may stand behind a label for the same thing: "Free: 10" beside "The limit is 100."
    bare = fact.kind == "number" and not fact.dimension and not other.dimension
    return bare and bool(_LABEL.match(passage.text)) and len(passage.words) <= LABEL_WORDS


def _value(fact: Fact, inside: Sequence[Fact]) -> Fact:
    """The fact that the stretch gives: the claim's, else the last one written in the claim's unit, else the last."""
    same = [value for value in inside if _says(value, fact)]
    unit = [value for value in inside if _written_unit(value) == _written_unit(fact)]
    return (same or unit or list(inside))[-1]


def _written_unit(fact: Fact) -> str:
    return re.sub(r"[\d.,\s]+", "", fact.text).lower()


def _says(one: Fact, other: Fact) -> bool:
    return agree(one, other) or agree(other, one)


def _cut(passage: Passage, a: Fact, b: Fact) -> int:
    """Where between two values one stretch ends and the next begins; 0 where nothing parts them."""
    between = passage.text[a.end : b.start]
    for mark in _CUTS:
        if found := mark.search(between):
            return a.end + found.start()
    return 0


def _met(words: Iterable[Token], said: frozenset[str]) -> list[Token]:
    return [word for word in words if word.stem in said or not said.isdisjoint(loose_keys(word.stem))]


def _apart(chosen: _Unit, other: _Unit, said: frozenset[str], now: bool) -> bool:
    """Whether the two stretches say the same of two conditions, of which neither question nor answer names one."""
    mine, theirs = _difference(chosen, other), _difference(other, chosen)
    if near := _takes_over(chosen, other):
        # What one of them takes over from the other is said of both.
        mine = [word for word in mine if not _met([word], said)] if near is other else mine
        theirs = [word for word in theirs if not _met([word], said)] if near is chosen else theirs
        if not (_in_conditions(chosen, mine, 0) and _in_conditions(other, theirs, 0)):
            return False
    if _met([*mine, *theirs], said) or not mine:
        return False
    if len(mine) > MOST_APART or len(theirs) > MOST_APART:
        return False
    if not theirs and (near or other.leans):
        return False
    if _measured(chosen, mine) or (theirs and _measured(other, theirs)):
        return False
    if not (_in_conditions(chosen, mine, MOST_LOOSE) and _in_conditions(other, theirs, MOST_LOOSE)):
        return False
    if now and _later(chosen, other):
        return False
    return _parallel(chosen, other)


def _difference(one: _Unit, other: _Unit) -> list[Token]:
    return [word for root, word in one.keys.items() if root not in other.keys]


def _takes_over(chosen: _Unit, other: _Unit) -> _Unit | None:
    """The later of two neighbouring stretches where it leans on the earlier; None where each stands by itself."""
    first, second = sorted((chosen, other), key=lambda unit: (unit.at, unit.start))
    same = first.at == second.at
    follows = second.at == first.at + 1 and second.passage.document == first.passage.document
    return second if same or (follows and second.leans) else None


def _measured(unit: _Unit, words: Sequence[Token]) -> bool:
    """Whether these words are nothing but another measurement ("13 April 2022, 41 minutes"), which is no condition."""
    spans = [(fact.start, fact.end) for fact in unit.passage.facts if fact.kind == "number" and fact.dimension]
    return all(any(start <= word.start < end for start, end in spans) for word in words)


def _in_conditions(unit: _Unit, words: Sequence[Token], most: int) -> bool:
    return sum(word.stem not in unit.conditional for word in words) <= most


def _later(chosen: _Unit, other: _Unit) -> bool:
    """Whether only dates part them and the chosen one is later: what holds now needs no date."""
    mine, theirs = (max((_year(fact) for fact in unit.passage.facts), default=0) for unit in (chosen, other))
    return mine > theirs > 0


def _year(fact: Fact) -> int:
    return fact.value.year if isinstance(fact.value, Day) else 0


def _parallel(chosen: _Unit, other: _Unit) -> bool:
    if chosen.labelled and other.labelled:
        return True
    shared = [root for root in chosen.keys if root in other.keys]
    return bool(shared) or chosen.at == other.at


def _variant(unit: _Unit, beside: _Unit, said: frozenset[str]) -> Variant:
    return Variant(
        unit.passage.evidence_id,
        " ".join(unit.text.split()).rstrip("."),
        " ".join(unit.passage.text.split()),
        unit.passage.start,
        unit.value.text,
        _condition(unit, beside, said),
    )


def _condition(unit: _Unit, beside: _Unit, said: frozenset[str]) -> str:
    """The condition in the words of the evidence: the label, or the phrase in which the unsaid words stand."""
    if unit.labelled and (label := _LABEL.match(unit.text)):
        return label.group().strip(" \t\n|>*•+-:")
    unsaid = [word for word in _difference(unit, beside) if not _met([word], said)]
    inside = [word for word in unit.passage.words if unit.start <= word.start < unit.end]
    places = [at for at, word in enumerate(inside) if word in unsaid]
    if not places:
        return ""
    first = last = places[0]
    while first > 0 and _joined(unit, inside[first - 1], inside[first]):
        first -= 1
    while last + 1 < len(inside) and _joined(unit, inside[last], inside[last + 1]):
        last += 1
    return " ".join(unit.passage.text[inside[first].start : inside[last].end].split())


def _joined(unit: _Unit, left: Token, right: Token) -> bool:
    """Whether two words belong to one phrase: no mark, determiner, pronoun or verb of being between, nor the value."""
    value = unit.value
    outside = all(not (value.start <= word.start < value.end) for word in (left, right))
    ends = {left.text.lower(), right.text.lower()} & (_PRONOUNS | _ENDING)
    return outside and not ends and unit.passage.text[left.end : right.start].isspace()


def _depends_on(chosen: Variant, other: Variant) -> str:
    """The word that both conditions end in ("tier" of "Free tier" and "Pro tier"); empty where they share none."""
    mine, theirs = chosen.condition.split(), other.condition.split()
    same = len(mine) > 1 and len(theirs) > 1 and mine[-1].lower() == theirs[-1].lower()
    return mine[-1].lower() if same and mine[-1].isalpha() else ""

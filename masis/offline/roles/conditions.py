"""Values that hold under a condition only: a limit by tier, a dose by weight, a fee by age, a port by version.

Where the evidence has another value of the same kind under another condition, an answer that gives one of them and
names no condition assumes it (DRAFT-CRITIQUE-EXAMPLES: an answer that assumes the Pro tier).

The rule: the evidence has two clauses alike but for value and condition ("Free tier: 10MB limit", "Pro tier: 100MB
limit"); the answer gives one value and not the other; nothing in question or answer distinguishes the two. A question
that names the tier, an answer that does, and a clause without any condition are all left alone.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import NamedTuple

from masis.audit.context import AuditContext
from masis.offline.matching.evidence_index import EvidenceIndex
from masis.offline.matching.key_points import index_of, plain_text, stems
from masis.offline.parsing.facts import Day, Fact, extract, number, reach
from masis.offline.roles.variants import (
    LABEL,
    OPENERS,
    PRONOUNS,
    Unit,
    difference,
    in_place_of,
    letters,
    met,
    says,
    units,
)
from masis.offline.text.tokens import Token
from masis.schema.audit import ClaimCheck
from masis.schema.case import Evidence

MOST_APART = 6
"""Words by which two clauses may differ and still be about the same thing under two conditions."""
MOST_LOOSE = 2
"""Of these, words outside of a phrase of condition ("Express delivery", "the Team plan")."""
SAID_AGAIN = 2
"""Words that a sentence must share with the one before it to be read as going on from it."""
MOST_OTHERS = 4

_ENDING = frozenset("the a an is are was were be been has have takes take costs cost pays pay".split())
_JOINTS = frozenset("and but while whereas or".split())
_SAID_OF_NOW = re.compile(
    r"(?<![^\W_])(?:now|current|currently|today|latest|newest|present|presently)(?!['’]?[^\W_])", re.IGNORECASE
)
_BOUND = re.compile(r"\b(?:under|over|aged|older than|younger than|after|before|until|since)\s*$", re.IGNORECASE)
"""What makes a value part of a condition ("those under 25"), and not one that depends on it."""
_BOUND_REACH = 40
"""Characters before a value in which that stands; looking through all of them took 20 s for 100,000."""
_SUBJECT = re.compile(r"\s*(?P<subject>[^.!?,;:\n]{2,120}?)\s(?:is|was|costs?|takes?|lasts?|amounts? to|equals?)\s")


class Variant(NamedTuple):
    """A clause of evidence with the value it gives: ``text`` is the clause, ``sentence`` its passage."""

    evidence_id: str
    text: str
    sentence: str
    start: int
    value: str
    condition: str


MOST_LOOKS = 20_000
"""Comparisons of values with passages, in all.

An answer of hundreds of values over hundreds of passages is a list, for which this reading is not made; it would take
longer than the rest of the audit. Its first claims are read.
"""


class Assumption(NamedTuple):
    """A claim that gives one of several values as if it were the only one; ``by`` is what they depend on, if named."""

    check: ClaimCheck
    value: str
    chosen: Variant
    others: tuple[Variant, ...]
    by: str


def assumptions(context: AuditContext) -> Iterator[Assumption]:
    """Yield the claims of the answer that assume a condition, at most one assumption a claim, in their order."""
    claims = tuple(plain_text(check.claim) for check in context.claims)
    for at, found in _assumed_by(claims, context.query, context.answer, index_of(context.evidence)):
        yield Assumption(context.claims[at], *found)


class _Found(NamedTuple):
    """An assumption apart from the claim that makes it."""

    value: str
    chosen: Variant
    others: tuple[Variant, ...]
    by: str


@lru_cache(maxsize=4)
def _assumed_by(
    claims: tuple[str, ...], query: str, answer: str, index: EvidenceIndex
) -> tuple[tuple[int, _Found], ...]:
    """Return which claim assumes what; cached, since critic and reviser both ask."""
    stated = _StatedValues(_values(answer))
    stated_stems = stems(query) | stems(answer) | letters(query) | letters(answer)
    now = bool(_SAID_OF_NOW.search(f"{query} {answer}"))
    looks = MOST_LOOKS
    made: list[tuple[int, _Found]] = []
    for at, claim in enumerate(claims):
        for fact in _values(claim):
            if _BOUND.search(claim, max(0, fact.start - _BOUND_REACH), fact.start):
                continue
            looks -= len(index.passages)
            if looks < 0:
                return tuple(made)
            found = _assumed(fact, stated, stated_stems, index, now)
            if found is not None:
                chosen, others = found
                mine = _variant(chosen, others[0], stated_stems)
                theirs = tuple(_variant(other, chosen, stated_stems) for other in others[:MOST_OTHERS])
                made.append((at, _Found(fact.text, mine, theirs, _depends_on(mine, theirs[0]))))
                break
    return tuple(made)


def under_other_conditions(evidence: Sequence[Evidence], claim: str, supporting: str, contradicting: str) -> bool:
    """Return whether two chunks that seem to disagree give their values under conditions of their own.

    So they do under labels ("Free: 10", "Pro: 100"), and where the claim names the one condition and not the other
    ("under the 2021 rules").
    """
    index, stated_stems = index_of(evidence), stems(claim) | letters(claim)
    for fact in _values(claim):
        found = units(fact, index)
        mine = [unit for unit in found if unit.passage.evidence_id == supporting and says(unit.value, fact)]
        theirs = [unit for unit in found if unit.passage.evidence_id == contradicting and not says(unit.value, fact)]
        if any(_parted(one, other, stated_stems) for one in mine for other in theirs):
            return True
    return False


class _StatedValues:
    """The values that an answer gives, with a cache of which values of the evidence are among them."""

    def __init__(self, values: Sequence[Fact]) -> None:
        self._dates = [value for value in values if value.kind == "date"]
        self._numbers = sorted((value for value in values if value.kind == "number"), key=number)
        self._known: dict[int, tuple[Fact, bool]] = {}

    def has(self, value: Fact) -> bool:
        """Return whether the answer gives this value too."""
        cached = self._known.get(id(value))
        if cached is None:  # the fact is kept with the verdict, so that its id stays its own
            cached = self._known[id(value)] = (value, any(says(value, other) for other in self._near(value)))
        return cached[1]

    def _near(self, value: Fact) -> Sequence[Fact]:
        """Return those that could be the same."""
        if value.kind != "number":
            return self._dates
        at = number(value)
        first = bisect_left(self._numbers, at - reach(at), key=number)
        return self._numbers[first : bisect_right(self._numbers, at + reach(at), key=number)]


def _parted(one: Unit, other: Unit, stated_stems: frozenset[str]) -> bool:
    own, rest = difference(one, other), difference(other, one)
    if not own or not rest:
        return False
    if one.labelled and other.labelled:
        return True
    named = len(met(own, stated_stems)) == len(own) and not met(rest, stated_stems)
    return named and _in_conditions(one, own, 0) and _in_conditions(other, rest, 0)


def dependency_phrase(claim: str, found: Assumption) -> str:
    """Return a phrase that says what the claim's subject depends on: "The upload size depends on the tier"."""
    subject = _SUBJECT.match(claim)
    about = subject["subject"].strip() if subject and found.value not in subject["subject"] else ""
    return f"{about or 'This'} depends on the {found.by or 'case'}"


@lru_cache(maxsize=1024)
def _values(text: str) -> tuple[Fact, ...]:
    """Return the facts that are values; claims and answers are asked for theirs by every step of an audit."""
    return tuple(fact for fact in extract(text) if fact.kind != "name")


def _assumed(
    fact: Fact, stated: _StatedValues, stated_stems: frozenset[str], index: EvidenceIndex, now: bool
) -> tuple[Unit, list[Unit]] | None:
    """Return the clause whose value the claim gives, and those with other values, if only a condition differs."""
    found = units(fact, index)
    giving = [unit for unit in found if says(unit.value, fact)]
    if not giving or len(giving) == len(found):
        return None
    chosen = min(giving, key=lambda unit: (-len(met(unit.keys.values(), stated_stems)), len(unit.keys)))
    others = [unit for unit in found if not stated.has(unit.value) and _apart(chosen, unit, stated_stems, now)]
    if any(_covers(unit, stated_stems) for unit in giving) or not others:
        return None
    return chosen, others


def _covers(unit: Unit, stated_stems: frozenset[str]) -> bool:
    """Return whether question and answer state everything in the clause: it depends on no omitted condition."""
    return len(met(unit.keys.values(), stated_stems)) == len(unit.keys) > 0


def _apart(chosen: Unit, other: Unit, stated_stems: frozenset[str], now: bool) -> bool:
    """Return whether two clauses differ by their condition alone, which neither question nor answer names."""
    mine, theirs = difference(chosen, other), difference(other, chosen)
    if any(word.text[0].isdigit() for word in met(mine, stated_stems)):
        return False  # "71% of those under 25" names its condition
    loose = MOST_LOOSE
    if near := _takes_over(chosen, other):
        # What one of them takes over from the other is said of both; what then parts them must be conditions.
        taken = met(theirs if near is chosen else mine, stated_stems)
        mine, theirs = ([word for word in words if word not in taken] for words in (mine, theirs))
        loose = 0 if taken else MOST_LOOSE
    if met([*mine, *theirs], stated_stems) or not mine or max(len(mine), len(theirs)) > MOST_APART:
        return False
    if not theirs and (chosen.at == other.at or other.leans):
        return False
    if _measured(chosen, mine) or (theirs and _measured(other, theirs)):
        return False
    placed = in_place_of(chosen, other)
    if not (_in_conditions(chosen, mine, loose, placed) and _in_conditions(other, theirs, loose, placed)):
        return False
    if now and _later(chosen, other):
        return False
    return near is not None or _parallel(chosen, other)


def _takes_over(chosen: Unit, other: Unit) -> Unit | None:
    """Return the later of two neighbouring clauses where it depends on the earlier; None where each is independent."""
    first, second = sorted((chosen, other), key=lambda unit: (unit.at, unit.start))
    if first.at == second.at:
        return second
    follows = second.at == first.at + 1 and second.passage.document == first.passage.document
    return second if follows and (second.leans or _alike(first, second)) else None


def _alike(first: Unit, second: Unit) -> bool:
    """Return whether a sentence says the same again, so that it need not say all of it."""
    return sum(root in first.keys for root in second.keys) >= SAID_AGAIN


def _measured(unit: Unit, words: Sequence[Token]) -> bool:
    """Return whether these words are nothing but another measurement ("13 April 2022, 41 minutes"), which is no
    condition.
    """
    spans = [(fact.start, fact.end) for fact in unit.passage.facts if fact.kind == "number" and fact.dimension]
    return all(any(start <= word.start < end for start, end in spans) for word in words)


def _in_conditions(unit: Unit, words: Sequence[Token], most: int, placed: frozenset[str] = frozenset()) -> bool:
    return sum(word.stem not in unit.conditional and word.stem not in placed for word in words) <= most


def _later(chosen: Unit, other: Unit) -> bool:
    """Return whether only dates part them and the chosen one is later: what holds now needs no date."""
    mine, theirs = (max((_year(fact) for fact in unit.passage.facts), default=0) for unit in (chosen, other))
    return mine > theirs > 0


def _year(fact: Fact) -> int:
    return fact.value.year if isinstance(fact.value, Day) else 0


def _parallel(chosen: Unit, other: Unit) -> bool:
    if chosen.labelled and other.labelled:
        return True
    shared = [root for root in chosen.keys if root in other.keys]
    return bool(shared)


def _variant(unit: Unit, beside: Unit, stated_stems: frozenset[str]) -> Variant:
    return Variant(
        unit.passage.evidence_id,
        " ".join(unit.text.split()).rstrip("."),
        _sentence(unit.passage.text),
        unit.passage.start,
        unit.value.text,
        _condition(unit, beside, stated_stems),
    )


def _sentence(text: str) -> str:
    """Return a passage as it can be quoted; the cells of a table row as a label and what it says."""
    cells = [" ".join(cell.split()) for cell in text.strip().strip("|").split("|")]
    return ": ".join([cells[0], ", ".join(cells[1:])]) if len(cells) > 1 else cells[0]


def _condition(unit: Unit, beside: Unit, stated_stems: frozenset[str]) -> str:
    """Return the condition in the words of the evidence: the label, or the phrase around the unstated words."""
    if unit.labelled and (label := LABEL.match(unit.text)):
        return label.group().strip(" \t\n|>*•+-:")
    unsaid = [word for word in difference(unit, beside) if not met([word], stated_stems)]
    inside = [word for word in unit.passage.words if unit.start <= word.start < unit.end]
    first = last = next((at for at, word in enumerate(inside) if word in unsaid), -1)
    if first < 0:
        return ""
    while first > 0 and inside[first].text.lower() not in OPENERS and _joined(unit, inside[first - 1], inside[first]):
        first -= 1
    while (
        last + 1 < len(inside)
        and _joined(unit, inside[last], inside[last + 1])
        and not met([inside[last + 1]], stated_stems)
    ):
        last += 1
    while first < last and inside[first].text.lower() in _JOINTS:
        first += 1
    while last > first and inside[last].weight == 0 and inside[last] not in unit.words:
        last -= 1
    return " ".join(unit.passage.text[inside[first].start : inside[last].end].split())


def _joined(unit: Unit, left: Token, right: Token) -> bool:
    """Return whether two words belong to one phrase: no mark, determiner, pronoun or verb of being between, nor the
    value.
    """
    value = unit.value
    outside = all(not (value.start <= word.start < value.end) for word in (left, right))
    ends = {left.text.lower(), right.text.lower()} & (PRONOUNS | _ENDING)
    return outside and not ends and unit.passage.text[left.end : right.start].isspace()


def _depends_on(chosen: Variant, other: Variant) -> str:
    """Return the word that both conditions end in ("tier" of "Free tier" and "Pro tier"); empty where they
    share none.
    """
    mine, theirs = chosen.condition.split(), other.condition.split()
    same = min(len(mine), len(theirs)) > 1 and mine[-1].lower() == theirs[-1].lower()
    return mine[-1].lower() if same and mine[-1].isalpha() else ""

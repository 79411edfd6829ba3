"""Numbers, dates and quotations of a claim that the evidence lacks, and figures that it has
otherwise.

A figure that no evidence has, in whatever way it is written, is marked: it may be calculated, and
no search tells a calculation from an invention. It is called contradicted only where the evidence
states another value of the same quantity of the same thing: the claim is a sentence of the evidence
but for the figure, or the same words stand around both, with the same names and dates beside them,
and nothing says that it was calculated. Where that is in doubt, the figure is marked.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from functools import cache, cached_property
from itertools import chain
from operator import attrgetter
from typing import NamedTuple

from masis.audit.sentences import split_sentences
from masis.audit.text.comparison import quotation_forms
from masis.offline.checks.copies import words_of
from masis.offline.checks.derivations import (
    FEW_VALUES,
    MOST_VALUES,
    VERY_FEW,
    Near,
    changed_by,
    is_calculated,
    is_explained,
    may_be_rounded,
    near_values,
    restates,
)
from masis.offline.matching.overlap import NAMED, Match
from masis.offline.matching.passages import EvidencePassage, ParsedSentence
from masis.offline.parsing.facts import (
    Fact,
    agree,
    comparable,
    is_comparison_label,
    likeness,
    reach,
)
from masis.offline.parsing.units import TEMPERATURES
from masis.schema.audit import AbsentFigure, Contradiction

_ALIKE = 0.8
"""Likeness from which the claim's figure is another one altered, whatever can be calculated."""
MOST_FACTS = 60
"""Figures of one sentence that are looked at: one with more is a table or an attack."""
COUNTED = 12
"""Up to here a bare number may count what the evidence lists, and is not marked."""
_NEAR, _FEWEST_COPIED = 4, 3
_LABELLED = re.compile(
    r"(?:\b(?:steps?|sections?|secs?\.?|figures?|figs?\.?|tables?|chapters?|parts?|appendix|equations?|eqs?\.?|notes?"
    r"|footnotes?|items?|points?|options?|examples?|sources?|chunks?|documents?|passages?|references?|refs?\.?|evidence"
    r"|stud(?:y|ies)|pages?|pp?\.|paragraphs?|paras?\.?|no\.|number|level|phase|type|class|version|v|list|#|§)"
    r"\s?|§§?\s?|#)(?:\d+(?:\.\d+)*(?:\s?(?:,|and|or|to|-|–)\s?)){0,5}$",
    re.IGNORECASE,
)
"""What stands before a number that names a place or a kind instead of counting anything."""
_IN_NAME = re.compile(r"(?:[^\W\d_]-|\[[^\[\]]{0,38}|\d )$")
"""What stands before a figure of a name ("carbon-14"), a reference ("[3, 14]") or a number torn by
blanks.
"""
_GOES_ON = re.compile(r"-[^\W\d_]| \d{3}\b")
"""What stands behind one: "2019-nCoV", "132 000"."""
_COMPUTED = re.compile(
    r"\b(?:total\w*|sums? of|altogether|combined|together|in all|made up of|overall|came to|comes"
    r" to|amount\w* to"
    r"|averag\w+|(?:f[ae]ll|r[io]se|dropp?\w*|gr[eo]w\w*|increas\w+|decreas\w+|declin\w+|cut|reduc\w+|up|down)"
    r"(?: by)?(?: only)?|fewer|difference|remain\w+|the rest|left|maximum|minimum|net|each|per"
    r" (?!cent)|times|ratio"
    r"|extra|another|further)\b",
    re.IGNORECASE,
)
"""Words beside a figure that may have been calculated: only a copy of a sentence but for the figure
contradicts.
"""
_BEFORE, _BEHIND = 30, 15
"""Characters before and behind a figure in which such words stand."""
_IN_REFERENCE = re.compile(r"(?:[A-Z][\w’'.-]*,? \(|\([^()]{0,38}[\w.],? )$")
"""What stands before the year of a reference: "(Smith et al., 2013)", "Smith (2013)"."""
QUOTED_WORDS = 4
"""Words from which words in quotation marks are taken for a quotation; fewer may be a term or a
nickname.
"""
_QUOTED = re.compile(r"“([^“”]*+)”|„([^“”„]*+)[“”]|«([^«»]*+)»|\"([^\"]*+)\"")
_SUGGESTED = re.compile(
    r"\b(?:such as|for example|for instance|e\.g\.|phrases like|questions? like"
    r"|(?:you|we|one|they|people|parents|teachers) (?:could|can|might|may|should|would)(?: also|"
    r" then)?"
    r" (?:say|ask|write|reply|respond|answer|think)|try (?:saying|asking|writing)"
    r"|(?:say|ask|asking|saying) something like"
    r"|ask(?:ing)? (?:yourself|themselves|questions?|them|him|her))[\s,:;]*+\Z",
    re.IGNORECASE,
)
"""What introduces words that somebody might say, in quotation marks: nobody is said to have said
them.
"""
_LONGEST_INTRODUCTION = 60
_LEFT_OUT = re.compile(r"\[[^\[\]]{0,40}\]|…|\.\.\.")
"""What a quotation leaves out or puts in its own words."""
_CAPITALISED = 0.7
"""Share of longer words with a capital from which the quoted words are a title."""


class FactTable:
    """The passages that state the same fact; lookups are cached."""

    def __init__(self, found: Sequence[EvidencePassage]) -> None:
        """`found` are the passages in order; the table refers to them by index."""
        self._passages = found
        self._same: dict[Fact, list[int]] = {}

    def holders(self, fact: Fact, allowed: frozenset[int] | None) -> list[int]:
        """Return the passages (of the allowed documents) that have an agreeing number or date."""
        fact = _anywhere(fact)
        if fact not in self._same:
            self._same[fact] = sorted(
                {i for reading in fact.readings for i in self._agreeing(reading)}
            )
        return [
            i for i in self._same[fact] if allowed is None or self._passages[i].document in allowed
        ]

    def _agreeing(self, fact: Fact) -> Iterator[int]:
        near: Iterable[Fact] = self._where
        if fact.kind == "number":
            # A loss of 12 million is held by "-12 million": the sign decides only where the words
            # are the same.
            near = [*self._near(fact.value), *self._near(-fact.value)]
            if fact.dimension == "percent":
                near += [other for other in self._near(fact.value / 100) if other.is_share]
            if fact.is_share:
                near += [
                    other for other in self._near(fact.value * 100) if other.dimension == "percent"
                ]
            if fact.dimension in TEMPERATURES:
                near = [other for other in self._where if other.dimension in TEMPERATURES]
        for other in near:
            if _same_figure(fact, other):
                yield from self._where[other]

    @cached_property
    def _where(self) -> dict[Fact, list[int]]:
        found: dict[Fact, list[int]] = {}
        for i, passage in enumerate(self._passages):
            for fact in passage.facts:
                for reading in fact.readings:
                    found.setdefault(_anywhere(reading), []).append(i)
        return found

    @cached_property
    def _numbers(self) -> list[Fact]:
        return sorted(
            (fact for fact in self._where if fact.kind == "number"), key=attrgetter("value")
        )

    def _near(self, value: float) -> Sequence[Fact]:
        """Return the numbers close enough to agree: of many thousands, few need to be compared."""
        first = bisect_left(self._numbers, value - reach(value), key=attrgetter("value"))
        last = bisect_right(self._numbers, value + reach(value), key=attrgetter("value"))
        return self._numbers[first:last]


def _anywhere(fact: Fact) -> Fact:
    """Return a fact as what decides whether it agrees with another: without its place and what it
    counts.
    """
    return fact._replace(start=0, end=0, head="", others=tuple(map(_anywhere, fact.others)))


def _same_figure(fact: Fact, other: Fact) -> bool:
    """Return whether two facts agree but for their sign; "forty cabins" does not hold "41.2%"."""
    if fact.value and other.value and fact.negative != other.negative:
        other = other._replace(value=-other.value)
    bare = (
        fact.dimension
        and not other.dimension
        and not (fact.dimension == "percent" and other.is_share)
    )
    return agree(fact, other) and not (bare and fact.value != other.value)


class Figures(NamedTuple):
    """What is to be said of the figures of a sentence: those that the evidence has otherwise, and
    those it lacks.
    """

    contradictions: tuple[Contradiction, ...] = ()
    absent: tuple[AbsentFigure, ...] = ()


def check_figures(
    match: Match,
    table: FactTable,
    question: Sequence[Fact] = (),
    numerals: Collection[str] = (),
    origins: Sequence[Fact] = (),
) -> Figures:
    """Return the figures of a sentence that the evidence has otherwise, and those that it doesn't
    have.

    Args:
        match: A sentence of a claim with the passages near it.
        table: The figures of all evidence.
        question: Figures of the question, which a claim may repeat.
        numerals: The numerals of all evidence (`numerals_in`).
        origins: Figures of where the evidence is from: its titles and dates.

    """
    text, facts = match.sentence.text, match.sentence.facts[:MOST_FACTS]
    if not facts:
        return Figures()  # most sentences: the figures of the evidence need not be read for them
    stated = (*question, *origins)
    held = [
        fact
        for fact in facts
        if table.holders(fact, match.allowed) or any(agree(fact, other) for other in stated)
    ]
    # What a claim says rightly, other figures of it may be calculated from.
    wide = near_values(_passages_to_compute(match), (*origins, *held))
    close = near_values([match.passages[i] for i in match.region], held)
    count = len(close.numbers)
    written = [(fact.start, fact.end) for fact in facts]
    words = [
        at
        for at in match.weights
        if not any(s <= match.sentence.words[at].start < e for s, e in written)
    ]
    contradictions, absent = [], []

    @cache
    def calculable(fact: Fact) -> bool:
        return _says_calculated(text, fact) or is_calculated(text, fact, wide)

    for fact in facts:
        if fact in held:
            if (
                table.holders(fact, match.allowed)
                and (signal := _framed_signal(match, fact, close)) is not None
            ):
                contradictions.append(signal)
            continue
        if asserts_no_value(text, fact) or (
            fact.kind == "date" and not (fact.day.year or fact.day.day)
        ):
            continue  # a month alone is said of any year
        if restates(text, fact, wide):
            continue
        if (copied := _framed_signal(match, fact, close)) is not None:
            contradictions.append(copied)
            continue
        if _stands_as_numeral(fact, match, numerals):
            continue
        if (signal := _same_quantity(match, fact, facts, calculable, words)) is not None:
            contradictions.append(signal)
        elif (
            not _may_count(fact)
            and not is_explained(text, fact, close)
            and not (
                (count <= VERY_FEW or (count <= FEW_VALUES and _says_calculated(text, fact)))
                and is_calculated(text, fact, close)
            )
        ):
            absent.append(
                AbsentFigure(
                    kind=fact.kind, claim_start=fact.start, claim_end=fact.end, claim_text=fact.text
                )
            )
    return Figures(tuple(contradictions), tuple(absent))


def _passages_to_compute(match: Match) -> Sequence[EvidencePassage]:
    """Return the passages whose figures a claim may be computed from: all where they are few, else
    those near it.
    """
    within = [
        each for each in match.passages if match.allowed is None or each.document in match.allowed
    ]
    if sum(len(each.facts) for each in within) <= MOST_VALUES:
        return within
    documents = {match.passages[i].document for i in match.top}
    beside = [each for each in within if each.document in documents]
    if sum(len(each.facts) for each in beside) <= MOST_VALUES:
        return beside
    return [match.passages[i] for i in match.region]


def asserts_no_value(text: str, fact: Fact) -> bool:
    """Return whether a figure belongs to a label, a list, a name or a reference, and asserts
    nothing.
    """
    before, after = text[max(0, fact.start - 40) : fact.start], text[fact.end : fact.end + 4]
    if _IN_NAME.search(before) or (not fact.dimension.strip("date") and _GOES_ON.match(after)):
        return True
    if fact.kind == "date":
        return after[:1] in (")", ";", ",") and _IN_REFERENCE.search(before) is not None
    opens = not before.strip() or before.rstrip()[-1] in "(:;\n"
    return _LABELLED.search(before) is not None or (opens and after[:2] in (") ", ". "))


def _may_count(fact: Fact) -> bool:
    """Return whether a number may merely count what the evidence lists, or stand for its place in
    an order.
    """
    if fact.kind != "number":
        return False
    return fact.dimension == "ordinal" or (
        not fact.dimension and not fact.digits and fact.value <= COUNTED
    )


def numerals_in(text: str) -> set[str]:
    """Return the numerals of a text without commas, also put together where blanks tear them: "3,
    500", "2. 4".
    """
    torn = re.findall(r"\d++(?:\s?[.,]\s?\d++)++", text)
    return {re.sub(r"[\s,]", "", numeral) for numeral in torn} | set(
        re.findall(r"(?<![\d.,])\d++(?![.,]\d)", text)
    )


def _stands_as_numeral(fact: Fact, match: Match, numerals: Collection[str]) -> bool:
    """Return whether the evidence has the numeral: torn by blanks, as part of a name, or of another
    noun.

    The same numeral of another measure (90 minutes, 90 hours) counts for nothing.
    """
    own = {numeral.replace(",", "") for numeral in re.findall(r"\d[\d,.]*\d|\d", fact.text)}
    if not own or not own <= set(numerals):
        return False
    digits = re.sub(r"\D", "", fact.text)
    same = (
        other
        for i in match.region
        for other in match.passages[i].facts
        if re.sub(r"\D", "", other.text) == digits
    )
    return not fact.dimension or not any(other.dimension for other in same)


def _signal(fact: Fact, passage: EvidencePassage, other: Fact, strength: float) -> Contradiction:
    return Contradiction(
        kind=fact.kind,
        claim_start=fact.start,
        claim_end=fact.end,
        claim_text=fact.text,
        evidence_id=passage.evidence_id,
        evidence_start=passage.start + other.start,
        evidence_end=passage.start + other.end,
        evidence_text=other.text,
        reason=f"the evidence has “{other.text}” where the claim has “{fact.text}”",
        strength=round(min(1.0, max(0.0, strength)), 3),
    )


def _absent_words(
    kind: str, start: int, end: int, text: str, reason: str, strength: float
) -> Contradiction:
    """Return the flag of words that the evidence doesn't have."""
    return Contradiction(
        kind=kind,
        claim_start=start,
        claim_end=end,
        claim_text=text,
        evidence_id="",
        evidence_start=0,
        evidence_end=0,
        evidence_text="",
        reason=reason,
        strength=strength,
    )


def _framed_signal(match: Match, fact: Fact, close: Near) -> Contradiction | None:
    """Return a signal where a passage is the claim word for word but for this figure, and none is
    with it.

    Either may go on behind the other, where a comma or "and" ends what both say. Nothing is said of
    a figure that can be read in several ways, nor of one that is the passage's plus or minus
    another: it held 20 million and got another 5.
    """
    text = match.sentence.text
    before, continuations = words_of(text[: fact.start]), _continuations(text[fact.end :])
    after = continuations[0]
    if len(before) + len(after) < _FEWEST_COPIED or fact.others:
        return None
    found = None
    for i in match.top:
        passage = match.passages[i]
        for other in passage.facts[:MOST_FACTS]:
            if other.kind != fact.kind or words_of(passage.text[: other.start]) != before:
                continue
            behind = _continuations(passage.text[other.end :])
            repeats = after in (behind if len(before) + len(after) >= _NEAR else behind[:1])
            goes_on = behind[0] in continuations[1:] and len(before) + len(behind[0]) >= _NEAR
            if not repeats and not (
                goes_on and not any(agree(mine, other) for mine in match.sentence.facts)
            ):
                continue
            if agree(fact, other):
                return None
            if other.others or not _of_one_kind(fact, other) or may_be_rounded(fact, other):
                continue
            if any(agree(fact, each) for each in passage.facts) or _is_torn(
                match.passages, i, other
            ):
                continue  # "the rent was 900 euros, then 1,000"
            found = found or (passage, other)
    if found is None:
        return None
    passage, other = found
    altered = likeness(fact, other) >= _ALIKE
    if not altered and changed_by(fact, other, close):
        return None
    return _signal(fact, passage, other, 1.0 if altered else 0.9)


def _is_torn(passages: Sequence[EvidencePassage], i: int, other: Fact) -> bool:
    """Return whether a figure may go on in the next passage: "for $ 1. 7 million", with a blank
    behind the point.
    """
    behind = passages[i].text[other.end :].strip()
    following = passages[i + 1 : i + 2]
    same = bool(following) and following[0].document == passages[i].document
    return behind in ("", ".") and same and following[0].text[:1].isdigit()


_GOES_ON_WITH = re.compile(r"[,;:(]|\s(?:and|but|while|whereas)\b")
_MOST_CONTINUATIONS = 4


def _continuations(text: str) -> list[tuple[str, ...]]:
    """Return the words behind a figure: all of them, and up to where a clause of their
    own may end.
    """
    ends = [
        found.start()
        for _, found in zip(range(_MOST_CONTINUATIONS), _GOES_ON_WITH.finditer(text), strict=False)
    ]
    return [words_of(text), *(words_of(text[:end]) for end in ends)]


def says_in_the_same_words(text: str, statement: str) -> bool:
    """Return whether a sentence of a text is the statement, or begins with it and goes on behind a
    comma or "and".

    "Timeout: 60 seconds" says that the timeout is 60 seconds.
    """
    words = words_of(statement)
    for unit in split_sentences(text):
        sentence = text[unit.start : unit.end]
        if words in _continuations(sentence):
            return True
        label, colon, value = sentence.partition(":")
        if colon and any(
            words == (*article, *words_of(label), verb, *words_of(value))
            for article in ((), ("the",))
            for verb in ("is", "are", "was", "were")
        ):
            return True
    return False


def _of_one_kind(fact: Fact, other: Fact) -> bool:
    """Return whether two figures with the same words around them measure one thing."""
    if fact.kind == "date":
        return fact.dimension == other.dimension and _as_exact(fact, other)
    both_money = fact.dimension.startswith("money") and other.dimension.startswith("money")
    return fact.dimension == other.dimension or both_money or comparable(fact, other)


def _as_exact(fact: Fact, other: Fact) -> bool:
    """Return whether two dates state the same parts: year, month, day."""
    return [bool(part) for part in fact.day] == [bool(part) for part in other.day]


def _says_calculated(text: str, fact: Fact) -> bool:
    return _COMPUTED.search(text, max(0, fact.start - _BEFORE), fact.end + _BEHIND) is not None


def _same_quantity(
    match: Match,
    fact: Fact,
    facts: Sequence[Fact],
    calculable: Callable[[Fact], bool],
    words: Sequence[int],
) -> Contradiction | None:
    """Return a signal where sentences of the evidence state one other value of the same quantity of
    the same thing.
    """
    if fact.others or fact.dimension == "ordinal" or _may_count(fact):
        return None
    if not fact.dimension and not any(map(str.isdigit, fact.text)):
        return None
    found: list[tuple[EvidencePassage, Fact, float]] = []
    for i in match.top:
        candidates = _figure_candidates(match, fact, facts, i)
        # "She finished in 127 minutes" and "she finished 4 minutes behind the winner" share too few
        # words.
        enough = (
            len(words) >= _FEWEST_WORDS
            or not candidates
            or _says_no_more(match.passages[i], match.sentence)
        )
        rivals = [
            (other, sure)
            for other in candidates
            if (
                sure := _stands_for(
                    match, fact, facts, i, other, calculable, words if enough else ()
                )
            )
        ]
        if len(rivals) > 1:
            return None
        found += ((match.passages[i], other, sure) for other, sure in rivals)
    if len({(other.value, other.day) for _, other, _ in found}) != 1:
        return None
    passage, other, strength = max(found, key=lambda each: each[2])
    return _signal(fact, passage, other, strength)


LEAST_SHARED = 0.75
"""Share of the claim's content, figures left out, that the sentence with the other
value must have.
"""
LEAST_ALTERED, LEAST_EXCHANGED = 1.2, 0.7
"""What the two shares must come to where one value looks like the other altered, and where its
digits, or day and month, are exchanged."""
LEAST_AROUND, LEAST_BACK = 0.6, 0.4
"""The same for the words beside the claim's figure, and beside the evidence's, which
may say more.
"""
NEAREST, NEAREST_BACK = 0.9, 0.6
"""Shares of the words beside both from which the rest of the sentences may differ."""
_DIGITS_EXCHANGED = 3
"""Digits of a number from which the same ones in another order are an alteration: 41.2 for 14.2,
not 12 for 21.
"""
_FEWEST_WORDS, _WORDS_BESIDE, _WHOLE = 2, 5, 0.95


def _is_altered(fact: Fact, other: Fact) -> bool:
    """Return whether one figure looks like the other altered, as no calculation makes it.

    Digits exchanged, another unit or magnitude with the same numeral, one digit of many; of a date
    day and month exchanged, or the month or the year of the same day.
    """
    if likeness(fact, other) < _ALIKE:
        return False
    return fact.kind == "number" or (fact.day.day > 0 and fact.day.day in other.day[1:])


def _has_digits_exchanged(fact: Fact, other: Fact) -> bool:
    """Return whether a number has the digits of another in another order, and enough of them not to
    by chance.
    """
    enough = sum(map(str.isdigit, fact.text)) >= _DIGITS_EXCHANGED
    return fact.kind == "number" and enough and likeness(fact, other) == 1.0


def _stands_for(
    match: Match,
    fact: Fact,
    facts: Sequence[Fact],
    i: int,
    other: Fact,
    calculable: Callable[[Fact], bool],
    words: Sequence[int],
) -> float:
    """Return how sure it is, 0 to 1, that a figure of a passage is another value of what the
    claim's is a value of.

    The words next to both are the same (`_beside`); or the passage has most of the claim's
    ``words``, and nothing shows that the figure was calculated. Either way the passage speaks of
    the same things and times (`_states_the_same`).
    """
    text, passage = match.sentence.text, match.passages[i]
    if _same_neighbours(text, fact, passage.text, other):
        return 1.0 if _states_the_same(match, fact, facts, i, other) else 0.0
    if not words:
        return 0.0
    shared = match.coverage((i,), words)
    around = _surroundings(match.sentence, fact, passage, other)
    if _is_altered(fact, other):
        exchanged = likeness(fact, other) == 1.0
        near = shared + around >= (LEAST_EXCHANGED if exchanged else LEAST_ALTERED)
        sure = near and (exchanged or shared >= NEAREST or not calculable(fact))
        # No value of another year has the digits of this one in another order, but by rare chance.
        timed = not _has_digits_exchanged(fact, other)
        same = sure and _states_the_same(match, fact, facts, i, other, altered=True, timed=timed)
        return 0.5 + 0.5 * shared if same else 0.0
    # The word before a date must be the same: "until 2025" and "from 2026" don't contradict.
    before, other_before = text[: fact.start], passage.text[: other.start]
    if fact.kind == "date" and words_of(before)[-1:] != words_of(other_before)[-1:]:
        return 0.0
    back = _surroundings(passage, other, match.sentence, fact)
    near = around >= NEAREST and back >= NEAREST_BACK
    enough = near or (shared >= LEAST_SHARED and around >= LEAST_AROUND and back >= LEAST_BACK)
    enough = enough and not calculable(fact)
    named = () if near else words
    if not enough or not _states_the_same(
        match, fact, facts, i, other, named, whole=shared >= _WHOLE
    ):
        return 0.0
    return 0.5 * shared + 0.5 * around


def _says_no_more(passage: EvidencePassage, sentence: ParsedSentence) -> bool:
    """Return whether a passage has no content word that the claim lacks, but for its figures:
    "Timeout: 60 seconds".
    """
    return all(
        word.stem in sentence.content
        or any(fact.start <= word.start < fact.end for fact in passage.facts)
        for word in passage.content_words
    )


def _same_neighbours(text: str, fact: Fact, evidence: str, other: Fact) -> bool:
    """Return whether the words next to two figures are the same, on both sides: "trusted by over
    500 firms in all".
    """
    before, theirs = words_of(text[: fact.start])[::-1], words_of(evidence[: other.start])[::-1]
    after, behind = words_of(text[fact.end :]), words_of(evidence[other.end :])
    sides = [_alike_from_the_start(before, theirs), _alike_from_the_start(after, behind)]
    ends = len(before) == 0 or len(after) == 0  # the claim begins or ends with the figure
    return (min(sides) >= 1 or ends) and sum(sides) >= _WORDS_BESIDE


def _alike_from_the_start(one: Sequence[str], other: Sequence[str]) -> int:
    count = 0
    for mine, theirs in zip(one, other, strict=False):
        if mine != theirs:
            break
        count += 1
    return count


def _states_the_same(
    match: Match,
    fact: Fact,
    facts: Sequence[Fact],
    i: int,
    other: Fact,
    words: Sequence[int] = (),
    *,
    whole: bool = False,
    altered: bool = False,
    timed: bool = True,
) -> bool:
    """Return whether a sentence of the evidence speaks of the same things and times as the claim.

    The name before either figure is in both, or of the claim's in the sentences before; every date
    and ordinal of the claim is in the sentence. With ``words``, every name among them and every
    other figure has to be in it; where it has the ``whole`` claim, a claim that names nothing ("the
    satellite") may be about what the sentence names. Of a figure that looks ``altered`` the first
    words count for no names. Not ``timed``: dates and ordinals may differ.
    """
    passage, sentence = match.passages[i], match.sentence
    for each in facts:
        is_time = each.kind == "date" or each.dimension in ("ordinal", "clock")
        held = any(agree(each, stated) for stated in passage.facts)
        if each is fact or held or not ((is_time and timed) or words):
            continue
        rivals = [
            stated
            for stated in passage.facts
            if stated.kind == each.kind == "date" and _as_exact(each, stated)
        ]
        if (
            words
            or rivals
            or each.kind != "date"
            or not _is_alluded_to(match, each, passage.document)
        ):
            return False
    if any(match.weights[at] >= NAMED and match.hits[i].get(at, 0.0) < 1.0 for at in words):
        return False
    theirs, mine = (
        _name_before(*each, inner=altered)
        for each in ((passage, other.start), (sentence, fact.start))
    )
    if theirs and theirs not in sentence.content and (mine or not whole):
        return False
    near = [
        each
        for each in match.passages[max(0, i - _LOOK_BACK) : i + 1]
        if each.document == passage.document
    ]
    return not mine or any(mine in each.content for each in near)


def _is_alluded_to(match: Match, fact: Fact, document: int) -> bool:
    """Return whether a document states a date somewhere: a report says once of which year it is."""
    stated = (
        other
        for passage in match.passages
        if passage.document == document
        for other in passage.facts
    )
    return any(agree(fact, other) for other in stated)


_LOOK_BACK = 3
"""Sentences before one of the evidence in which its subject may be named."""


def _name_before(sentence: ParsedSentence, start: int, *, inner: bool) -> str:
    """Return the stem of the last name before an offset; empty where there is none. ``inner``: no
    first word.
    """
    dated = [(fact.start, fact.end) for fact in sentence.facts if fact.kind == "date"]
    named = (
        word.stem
        for word in reversed(sentence.words[1:] if inner else sentence.words)
        if word.end <= start
        and word.weight == NAMED
        and word.text[0].isupper()
        and not any(first <= word.start < last for first, last in dated)
    )
    return next(named, "")


def _figure_candidates(match: Match, fact: Fact, facts: Sequence[Fact], i: int) -> list[Fact]:
    """Return the values of a passage that can stand in the figure's place, and that nothing else in
    the claim has.
    """
    passage = match.passages[i]
    return [
        other
        for other in passage.facts[:MOST_FACTS]
        if other.kind == fact.kind
        and not other.others
        and other.dimension == fact.dimension
        and (
            _as_exact(fact, other)
            if fact.kind == "date"
            else fact.dimension
            or _counts_the_same(match, fact, i, other)
            or _has_digits_exchanged(fact, other)
        )
        and not is_comparison_label(passage.text, other)
        and not may_be_rounded(fact, other)
        and not any(mate is not fact and agree(mate, other) for mate in facts)
    ]


def _surroundings(
    sentence: ParsedSentence, fact: Fact, passage: ParsedSentence, other: Fact
) -> float:
    """Return the share of the three content words on either side of a figure that stand near
    another.
    """
    mine = [*sentence.content_before(fact.start, 3), *sentence.content_after(fact.end, 3)]
    theirs = {
        word.stem
        for word in (*passage.content_before(other.start, 4), *passage.content_after(other.end, 4))
    }
    weight = sum(word.weight for word in mine)
    return sum(word.weight for word in mine if word.stem in theirs) / weight if weight else 0.0


def _counts_the_same(match: Match, fact: Fact, i: int, other: Fact) -> bool:
    """Return whether the same noun follows both at once: "450 people", "300 people"."""
    mine = match.sentence.content_after(fact.end, 1)
    theirs = match.passages[i].content_after(other.end, 1)
    return bool(mine and theirs) and mine[0].stem == theirs[0].stem


class Quotable:
    """The words of all evidence, in which quotations are looked for; read when the first one is."""

    def __init__(self, texts: Sequence[str]) -> None:
        self._texts = texts

    @cached_property
    def _words(self) -> list[tuple[str, ...]]:
        return [_bare_words(text) for text in self._texts]

    def find_absent(self, claim: str, question: str) -> Iterator[Contradiction]:
        """Yield a signal without evidence for each quotation of the claim that neither evidence nor
        question has.
        """
        if claim.count('"') % 2:
            return  # it is unclear which marks open and which close
        for found in _QUOTED.finditer(claim):
            start, end = found.start() + 1, found.end() - 1
            quoted = claim[start:end]
            if len(_BARE_WORD.findall(quoted)) < QUOTED_WORDS or _is_title(quoted):
                continue
            if _SUGGESTED.search(claim[max(0, start - 1 - _LONGEST_INTRODUCTION) : start - 1]):
                continue
            parts = [words for part in _LEFT_OUT.split(quoted) if (words := _bare_words(part)[:1])]
            sources = (*self._words, _bare_words(question))
            if not any(
                all(any(words in reading for reading in source) for (words,) in parts)
                for source in sources
            ):
                reason = f"the quotation “{quoted.strip()}” isn't in the evidence"
                yield _absent_words("quotation", start, end, quoted, reason, 0.9)


def _bare_words(text: str) -> tuple[str, ...]:
    """Return the letters and figures of a text in the comparison form, one string for each way to
    read it.

    The case and the punctuation of a quotation flag nobody, nor does what stands in square
    brackets, a marker or what an editor put in. Everything else is compared as it stands.
    """
    readings = chain.from_iterable(
        map(quotation_forms, dict.fromkeys((text, _LEFT_OUT.sub(" ", text))))
    )
    found = (_BARE_WORD.findall(reading.text.lower()) for reading in readings)
    return tuple(f" {' '.join(words)} " for words in found if words)


_BARE_WORD = re.compile(r"\w++(?:[.,:/]\w++)*+")


def _is_title(quoted: str) -> bool:
    longer = [word for word in re.findall(r"[^\W\d_]+", quoted) if len(word) > 3]
    return bool(longer) and sum(word[0].isupper() for word in longer) >= _CAPITALISED * len(longer)

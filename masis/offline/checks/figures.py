"""Finds numbers, dates and quotations of a claim that the evidence lacks or contradicts.

A figure that isn't in the evidence in any notation is reported as absent. It may have been
calculated, and a search can't tell a calculation from an invention. A figure is contradicted only
if the evidence states another value of the same quantity of the same thing. That is so if the claim
copies a sentence except for the figure, or if both figures have the same words, names and dates
around them and nothing says that the figure was calculated. In case of doubt, the figure is absent.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from functools import cache, cached_property
from itertools import chain, islice, takewhile
from operator import attrgetter, eq, itemgetter
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
    max_difference,
)
from masis.offline.parsing.units import TEMPERATURES
from masis.schema.audit import AbsentFigure, Contradiction

_ALIKE = 0.8
"""Likeness from which a claim's figure counts as altered, even if it can be calculated."""
MOST_FACTS = 60
"""Figures of one sentence that are checked. A sentence with more is a table or an attack."""
COUNTED = 12
"""Largest bare number that may count the items the evidence lists. It's never reported absent."""
_CONTINUATION_WORDS, _FEWEST_COPIED = 4, 3
"""Words around a figure that a copy needs: if either text continues after it, and if neither."""
# Matches a label before a number that it numbers: "section 3.2, 3.3 and " before "3.4", "phase "
# before "2", "#" before "12". "about 3.4" and "phases of 2" don't match.
_LABELED = re.compile(
    r"(?:\b(?:steps?|sections?|secs?\.?|figures?|figs?\.?|tables?|chapters?|parts?|appendix"
    r"|equations?|eqs?\.?|notes?"
    r"|footnotes?|items?|points?|options?|examples?|sources?|chunks?|documents?|passages?"
    r"|references?|refs?\.?|evidence"
    r"|stud(?:y|ies)|pages?|pp?\.|paragraphs?|paras?\.?|no\.|number|level|phase|type|class|version"
    r"|v|list|#|§)"
    r"\s?|§§?\s?|#)(?:\d+(?:\.\d+)*(?:\s?(?:,|and|or|to|-|–)\s?)){0,5}$",
    re.IGNORECASE,
)
# Matches the text before a figure that is part of a name ("carbon-14"), of a reference ("[3, 14]")
# or of a number with spaces in it ("132 000"). "a carbon 14" and "see (14" don't match.
_IN_NAME = re.compile(r"(?:[^\W\d_]-|\[[^\[\]]{0,38}|\d )$")
# Matches the text after such a figure: "-n" in "2019-nCoV", " 000" in "132 000".
_NAME_CONTINUES = re.compile(r"-[^\W\d_]| \d{3}\b")
# Matches words beside a figure that may have been calculated: "rose by 12", "a total of 40", "3
# times". "It weighs 12 kg" doesn't match. Evidence contradicts such a figure only if the claim
# copies a sentence except for it.
_COMPUTED = re.compile(
    r"\b(?:total\w*|sums? of|altogether|combined|together|in all|made up of|overall|came to|comes"
    r" to|amount\w* to"
    r"|averag\w+|(?:f[ae]ll|r[io]se|dropp?\w*|gr[eo]w\w*|increas\w+|decreas\w+|declin\w+|cut"
    r"|reduc\w+|up|down)"
    r"(?: by)?(?: only)?|fewer|difference|remain\w+|the rest|left|maximum|minimum|net|each|per"
    r" (?!cent)|times|ratio"
    r"|extra|another|further)\b",
    re.IGNORECASE,
)
_CHARS_BEFORE, _CHARS_AFTER = 30, 15
"""Characters before and after a figure in which such words are searched."""
# Matches the text before the year of a reference: "(Smith et al., 2013)", "Smith (2013)". "in ("
# doesn't match, because the word before the bracket needs a capital.
_IN_REFERENCE = re.compile(r"(?:[A-Z][\w’'.-]*,? \(|\([^()]{0,38}[\w.],? )$")
QUOTED_WORDS = 4
"""Minimum number of words of a quotation that is checked. A shorter one may be a term or a
nickname.
"""
# Matches a text in curly, German, French or straight quotation marks: “so they said”, „so sagten
# sie“, «ont-ils dit», "so they said". Possessive quantifiers keep unclosed marks linear.
_QUOTED = re.compile(r"“([^“”]*+)”|„([^“”„]*+)[“”]|«([^«»]*+)»|\"([^\"]*+)\"")
# Matches an introduction to words that somebody might say, which don't quote anybody: "you could
# ask: ", "phrases like ". "the report says: " doesn't match.
_SUGGESTED = re.compile(
    r"\b(?:such as|for example|for instance|e\.g\.|phrases like|questions? like"
    r"|(?:you|we|one|they|people|parents|teachers) (?:could|can|might|may|should|would)(?: also|"
    r" then)?"
    r" (?:say|ask|write|reply|respond|answer|think)|try (?:saying|asking|writing)"
    r"|(?:say|ask|asking|saying) something like"
    r"|ask(?:ing)? (?:yourself|themselves|questions?|them|him|her))[\s,:;]*+\Z",
    re.IGNORECASE,
)
_LONGEST_INTRODUCTION = 60
"""Characters before a quotation that are searched for such an introduction."""
# Matches a gap or an insertion in a quotation: "[the company]", "…", "...".
_LEFT_OUT = re.compile(r"\[[^\[\]]{0,40}\]|…|\.\.\.")
_CAPITALIZED_SHARE = 0.7
"""Share of capitalized words, among those of four letters or more, that makes a text a title."""


class FactTable:
    """An index from facts to the passages that state them. Lookups are cached."""

    def __init__(self, passages: Sequence[EvidencePassage]) -> None:
        """Index `passages`, to which lookups refer by position."""
        self._passages = passages
        self._same: dict[Fact, list[int]] = {}

    def holders(self, fact: Fact, allowed: frozenset[int] | None) -> list[int]:
        """Return the passages with an agreeing number or date.

        Args:
            fact: The figure to look up.
            allowed: The documents to search; None for all.

        Returns:
            Indices of passages, in order.

        """
        fact = _without_position(fact)
        if fact not in self._same:
            self._same[fact] = sorted(
                {number for reading in fact.readings for number in self._agreeing(reading)}
            )
        return [
            number
            for number in self._same[fact]
            if allowed is None or self._passages[number].document in allowed
        ]

    def _agreeing(self, fact: Fact) -> Iterator[int]:
        candidates: Iterable[Fact] = self._where
        if fact.kind == "number":
            # "-12 million" states a loss of 12 million, so the sign counts only if the words are
            # the same.
            candidates = [*self._near(fact.value), *self._near(-fact.value)]
            if fact.dimension == "percent":
                candidates += [other for other in self._near(fact.value / 100) if other.is_share]
            if fact.is_share:
                candidates += [
                    other for other in self._near(fact.value * 100) if other.dimension == "percent"
                ]
            if fact.dimension in TEMPERATURES:
                candidates = [other for other in self._where if other.dimension in TEMPERATURES]
        for other in candidates:
            if _is_same_figure(fact, other):
                yield from self._where[other]

    @cached_property
    def _where(self) -> dict[Fact, list[int]]:
        where: dict[Fact, list[int]] = {}
        for i, passage in enumerate(self._passages):
            for fact in passage.facts:
                for reading in fact.readings:
                    where.setdefault(_without_position(reading), []).append(i)
        return where

    @cached_property
    def _numbers(self) -> list[Fact]:
        return sorted(
            (fact for fact in self._where if fact.kind == "number"), key=attrgetter("value")
        )

    def _near(self, value: float) -> Sequence[Fact]:
        """Return the numbers that are close enough to agree.

        A bisection leaves a few of many thousands to compare.
        """
        first = bisect_left(self._numbers, value - max_difference(value), key=attrgetter("value"))
        last = bisect_right(self._numbers, value + max_difference(value), key=attrgetter("value"))
        return self._numbers[first:last]


def _without_position(fact: Fact) -> Fact:
    """Return a fact without its position and the noun it counts, which don't affect `agree`."""
    return fact._replace(start=0, end=0, head="", others=tuple(map(_without_position, fact.others)))


def _is_same_figure(fact: Fact, other: Fact) -> bool:
    """Return whether two facts agree except for their sign; "forty cabins" doesn't say "41.2%"."""
    if fact.value and other.value and fact.negative != other.negative:
        other = other._replace(value=-other.value)
    bare = (
        fact.dimension
        and not other.dimension
        and not (fact.dimension == "percent" and other.is_share)
    )
    return agree(fact, other) and not (bare and fact.value != other.value)


class Figures(NamedTuple):
    """The figures of a sentence that the evidence contradicts, and those that it lacks."""

    contradictions: tuple[Contradiction, ...] = ()
    absent: tuple[AbsentFigure, ...] = ()


def check_figures(
    match: Match,
    table: FactTable,
    question: Sequence[Fact] = (),
    numerals: Collection[str] = (),
    origins: Sequence[Fact] = (),
) -> Figures:
    """Return the figures of a sentence that the evidence contradicts, and those that it lacks.

    Args:
        match: A sentence of a claim with the passages near it.
        table: The figures of all evidence.
        question: Figures of the question, which a claim may repeat.
        numerals: The numerals of all evidence (`numerals_in`).
        origins: Figures in the titles and dates of the evidence.

    """
    text, facts = match.sentence.text, match.sentence.facts[:MOST_FACTS]
    if not facts:
        return Figures()  # most sentences, for which the evidence's figures needn't be extracted
    stated = (*question, *origins)
    found_facts = [
        fact
        for fact in facts
        if table.holders(fact, match.allowed) or any(agree(fact, other) for other in stated)
    ]
    # The claim's other figures may be calculated from those that the evidence confirms.
    all_values = near_values(_passages_to_compute(match), (*origins, *found_facts))
    nearby_values = near_values([match.passages[i] for i in match.region], found_facts)
    value_count = len(nearby_values.numbers)
    figure_spans = [(fact.start, fact.end) for fact in facts]
    words = [
        position
        for position in match.weights
        if not any(
            start <= match.sentence.words[position].start < end for start, end in figure_spans
        )
    ]
    contradictions, absent = [], []

    @cache
    def calculable(fact: Fact) -> bool:
        return _mentions_calculation(text, fact) or is_calculated(text, fact, all_values)

    for fact in facts:
        # A figure of the evidence can still be wrong in this sentence: "12 men and 8 women" for
        # "8 men and 12 women".
        if fact in found_facts:
            if (
                table.holders(fact, match.allowed)
                and (signal := _framed_signal(match, fact, nearby_values)) is not None
            ):
                contradictions.append(signal)
            continue
        if asserts_no_value(text, fact) or (
            fact.kind == "date" and not (fact.day.year or fact.day.day)
        ):
            continue  # a month without a year or day fits any year
        if restates(text, fact, all_values):
            continue
        if (signal_of_copy := _framed_signal(match, fact, nearby_values)) is not None:
            contradictions.append(signal_of_copy)
            continue
        if _has_numeral(fact, match, numerals):
            continue
        if (signal := _same_quantity(match, fact, facts, calculable, words)) is not None:
            contradictions.append(signal)
        elif (
            not _may_count(fact)
            and not is_explained(text, fact, nearby_values)
            and not (
                (
                    value_count <= VERY_FEW
                    or (value_count <= FEW_VALUES and _mentions_calculation(text, fact))
                )
                and is_calculated(text, fact, nearby_values)
            )
        ):
            absent.append(
                AbsentFigure(
                    kind=fact.kind, claim_start=fact.start, claim_end=fact.end, claim_text=fact.text
                )
            )
    return Figures(tuple(contradictions), tuple(absent))


def _passages_to_compute(match: Match) -> Sequence[EvidencePassage]:
    """Return the passages whose figures a claim may be computed from.

    These are all passages if they have few figures, otherwise those of the nearest documents or,
    if these still have too many, of the nearest region.
    """
    passages = [
        passage
        for passage in match.passages
        if match.allowed is None or passage.document in match.allowed
    ]
    if sum(len(passage.facts) for passage in passages) <= MOST_VALUES:
        return passages
    documents = {match.passages[i].document for i in match.top}
    passages = [passage for passage in passages if passage.document in documents]
    if sum(len(passage.facts) for passage in passages) <= MOST_VALUES:
        return passages
    return [match.passages[i] for i in match.region]


def asserts_no_value(text: str, fact: Fact) -> bool:
    """Return whether a figure belongs to a label, a list, a name or a reference."""
    before, after = text[max(0, fact.start - 40) : fact.start], text[fact.end : fact.end + 4]
    if _IN_NAME.search(before) or (
        not fact.dimension.strip("date") and _NAME_CONTINUES.match(after)
    ):
        return True
    if fact.kind == "date":
        return after[:1] in (")", ";", ",") and _IN_REFERENCE.search(before) is not None
    is_first = not before.strip() or before.rstrip()[-1] in "(:;\n"
    return _LABELED.search(before) is not None or (is_first and after[:2] in (") ", ". "))


def _may_count(fact: Fact) -> bool:
    """Return whether a number may only count items that the evidence lists, or rank one of them."""
    if fact.kind != "number":
        return False
    return fact.dimension == "ordinal" or (
        not fact.dimension and not fact.digits and fact.value <= COUNTED
    )


def numerals_in(text: str) -> set[str]:
    """Return the numerals of a text without commas and spaces, such as "3500" for "3, 500"."""
    # Matches numerals of several groups, as in "3, 500" and "1.2"; the other one matches "7".
    grouped = re.findall(r"\d++(?:\s?[.,]\s?\d++)++", text)
    return {re.sub(r"[\s,]", "", numeral) for numeral in grouped} | set(
        re.findall(r"(?<![\d.,])\d++(?![.,]\d)", text)
    )


def _has_numeral(fact: Fact, match: Match, numerals: Collection[str]) -> bool:
    """Return whether the evidence has the numeral with spaces, in a name or with another noun.

    The same numeral of another measure (90 hours for 90 minutes) doesn't count.
    """
    own_numerals = {
        numeral.replace(",", "") for numeral in re.findall(r"\d[\d,.]*\d|\d", fact.text)
    }
    if not own_numerals or not own_numerals <= set(numerals):
        return False
    digits = re.sub(r"\D", "", fact.text)
    facts_with_digits = (
        other
        for i in match.region
        for other in match.passages[i].facts
        if re.sub(r"\D", "", other.text) == digits
    )
    return not fact.dimension or not any(other.dimension for other in facts_with_digits)


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


def _framed_signal(match: Match, fact: Fact, nearby_values: Near) -> Contradiction | None:
    """Return a signal if a passage copies the claim except for this figure, and none includes it.

    Either text may continue after a comma or "and" where the shared words end. A figure that can be
    read in several ways is skipped, and so is one that is the passage's figure plus or minus
    another ("it held 20 million and got another 5").
    """
    text = match.sentence.text
    words_before, continuations = words_of(text[: fact.start]), _continuations(text[fact.end :])
    words_after = continuations[0]
    if len(words_before) + len(words_after) < _FEWEST_COPIED or fact.others:
        return None
    copy = None
    for i in match.top:
        passage = match.passages[i]
        for other in passage.facts[:MOST_FACTS]:
            if other.kind != fact.kind or words_of(passage.text[: other.start]) != words_before:
                continue
            stated_after = _continuations(passage.text[other.end :])
            repeats = words_after in (
                stated_after
                if len(words_before) + len(words_after) >= _CONTINUATION_WORDS
                else stated_after[:1]
            )
            continues = (
                stated_after[0] in continuations[1:]
                and len(words_before) + len(stated_after[0]) >= _CONTINUATION_WORDS
            )
            if not repeats and not (
                continues and not any(agree(mine, other) for mine in match.sentence.facts)
            ):
                continue
            if agree(fact, other):
                return None
            if other.others or not _is_same_measure(fact, other) or may_be_rounded(fact, other):
                continue
            if any(
                agree(fact, passage_fact) for passage_fact in passage.facts
            ) or _may_continue_in_next(match.passages, i, other):
                continue  # "the rent was 900 euros, then 1,000"
            copy = copy or (passage, other)
    if copy is None:
        return None
    passage, other = copy
    is_altered = likeness(fact, other) >= _ALIKE
    if not is_altered and changed_by(fact, other, nearby_values):
        return None
    return _signal(fact, passage, other, 1.0 if is_altered else 0.9)


def _may_continue_in_next(passages: Sequence[EvidencePassage], i: int, other: Fact) -> bool:
    """Return whether a figure may continue in the next passage.

    A space after the decimal point ends a sentence, as in "for $ 1. 7 million".
    """
    rest = passages[i].text[other.end :].strip()
    following = passages[i + 1 : i + 2]
    is_same_document = bool(following) and following[0].document == passages[i].document
    return rest in ("", ".") and is_same_document and following[0].text[:1].isdigit()


# Matches the mark or conjunction that may end a clause: "," and " but" in "rose to 12, but fell".
_CLAUSE_END = re.compile(r"[,;:(]|\s(?:and|but|while|whereas)\b")
_MOST_CONTINUATIONS = 4


def _continuations(text: str) -> list[tuple[str, ...]]:
    """Return the words after a figure: all of them, then those up to each possible clause end."""
    ends = [mark.start() for mark in islice(_CLAUSE_END.finditer(text), _MOST_CONTINUATIONS)]
    return [words_of(text), *(words_of(text[:end]) for end in ends)]


def says_in_the_same_words(text: str, statement: str) -> bool:
    """Return whether a sentence is the statement, or continues it after a comma or "and".

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


def _is_same_measure(fact: Fact, other: Fact) -> bool:
    """Return whether two figures with the same words around them measure one thing."""
    if fact.kind == "date":
        return fact.dimension == other.dimension and _has_same_precision(fact, other)
    both_money = fact.dimension.startswith("money") and other.dimension.startswith("money")
    return fact.dimension == other.dimension or both_money or comparable(fact, other)


def _has_same_precision(fact: Fact, other: Fact) -> bool:
    """Return whether two dates state the same parts: year, month, day."""
    return [bool(part) for part in fact.day] == [bool(part) for part in other.day]


def _mentions_calculation(text: str, fact: Fact) -> bool:
    return (
        _COMPUTED.search(text, max(0, fact.start - _CHARS_BEFORE), fact.end + _CHARS_AFTER)
        is not None
    )


def _same_quantity(
    match: Match,
    fact: Fact,
    facts: Sequence[Fact],
    calculable: Callable[[Fact], bool],
    words: Sequence[int],
) -> Contradiction | None:
    """Return a signal if the evidence states exactly one other value of the same quantity."""
    if fact.others or fact.dimension == "ordinal" or _may_count(fact):
        return None
    if not fact.dimension and not any(map(str.isdigit, fact.text)):
        return None
    stated: list[tuple[EvidencePassage, Fact, float]] = []
    for i in match.top:
        candidates = _figure_candidates(match, fact, facts, i)
        # "She finished in 127 minutes" and "she finished 4 minutes behind the winner" share too few
        # words to be about the same quantity.
        enough = (
            len(words) >= _FEWEST_WORDS
            or not candidates
            or _has_all_words_of(match.passages[i], match.sentence)
        )
        rivals = [
            (other, sure)
            for other in candidates
            if (
                sure := _rival_confidence(
                    match, fact, facts, i, other, calculable, words if enough else ()
                )
            )
        ]
        if len(rivals) > 1:
            return None
        stated += ((match.passages[i], other, sure) for other, sure in rivals)
    if len({(other.value, other.day) for _, other, _ in stated}) != 1:
        return None
    passage, other, strength = max(stated, key=itemgetter(2))
    return _signal(fact, passage, other, strength)


LEAST_SHARED = 0.75
"""Share of the claim's content, without figures, that the sentence with the other value needs."""
LEAST_ALTERED, LEAST_EXCHANGED = 1.2, 0.7
"""Minimum sum of the shares of content and neighboring words: for a value that looks altered, and
for one whose digits (or day and month) are exchanged.
"""
LEAST_AROUND, LEAST_BACK = 0.6, 0.4
"""Minimum share of the words beside the claim's figure that are beside the evidence's, and the
reverse, which is lower because the evidence may say more.
"""
NEAREST, NEAREST_BACK = 0.9, 0.6
"""The same two shares, from which the rest of the sentences may differ."""
_DIGITS_EXCHANGED = 3
"""Digits a number needs for their exchange to be an alteration: 41.2 for 14.2, not 12 for 21."""
_FEWEST_WORDS, _WORDS_BESIDE, _WHOLE = 2, 5, 0.95
"""Content words that a claim needs, equal words beside two figures, and the share of a claim that
counts as all of it.
"""


def _is_altered(fact: Fact, other: Fact) -> bool:
    """Return whether one figure looks like an alteration of the other that isn't a calculation.

    Examples are exchanged digits, the same numeral with another unit or magnitude, and one other
    digit of many. In a date, day and month are exchanged, or the same day has another month or
    year.
    """
    if likeness(fact, other) < _ALIKE:
        return False
    return fact.kind == "number" or (fact.day.day > 0 and fact.day.day in other.day[1:])


def _has_digits_exchanged(fact: Fact, other: Fact) -> bool:
    """Return whether a number reorders another's digits, which are too many for a coincidence."""
    enough = sum(map(str.isdigit, fact.text)) >= _DIGITS_EXCHANGED
    return fact.kind == "number" and enough and likeness(fact, other) == 1.0


def _rival_confidence(
    match: Match,
    fact: Fact,
    facts: Sequence[Fact],
    i: int,
    other: Fact,
    calculable: Callable[[Fact], bool],
    words: Sequence[int],
) -> float:
    """Return how sure it is, from 0 to 1, that two figures are values of the same quantity.

    Either the words next to both are the same (`_has_same_neighbors`), or the passage has most of
    the claim's ``words`` and nothing shows that the figure was calculated. In both cases the
    passage is about the same things and times (`_is_about_the_same`).
    """
    text, passage = match.sentence.text, match.passages[i]
    if _has_same_neighbors(text, fact, passage.text, other):
        return 1.0 if _is_about_the_same(match, fact, facts, i, other) else 0.0
    if not words:
        return 0.0
    shared = match.coverage((i,), words)
    neighbor_share = _surroundings(match.sentence, fact, passage, other)
    if _is_altered(fact, other):
        exchanged = likeness(fact, other) == 1.0
        has_same_surroundings = shared + neighbor_share >= (
            LEAST_EXCHANGED if exchanged else LEAST_ALTERED
        )
        sure = has_same_surroundings and (exchanged or shared >= NEAREST or not calculable(fact))
        # The value of another year rarely has the same digits in another order, so the dates of
        # such a pair may differ.
        timed = not _has_digits_exchanged(fact, other)
        same = sure and _is_about_the_same(match, fact, facts, i, other, altered=True, timed=timed)
        return 0.5 + 0.5 * shared if same else 0.0
    # The word before a date must be the same: "until 2025" and "from 2026" don't contradict.
    before, other_before = text[: fact.start], passage.text[: other.start]
    if fact.kind == "date" and words_of(before)[-1:] != words_of(other_before)[-1:]:
        return 0.0
    reverse_share = _surroundings(passage, other, match.sentence, fact)
    has_same_surroundings = neighbor_share >= NEAREST and reverse_share >= NEAREST_BACK
    enough = has_same_surroundings or (
        shared >= LEAST_SHARED and neighbor_share >= LEAST_AROUND and reverse_share >= LEAST_BACK
    )
    enough = enough and not calculable(fact)
    named = () if has_same_surroundings else words
    if not enough or not _is_about_the_same(
        match, fact, facts, i, other, named, whole=shared >= _WHOLE
    ):
        return 0.0
    return 0.5 * shared + 0.5 * neighbor_share


def _has_all_words_of(passage: EvidencePassage, sentence: ParsedSentence) -> bool:
    """Return whether the claim has all content words of a passage, except in its figures.

    An example is the passage "Timeout: 60 seconds".
    """
    return all(
        word.stem in sentence.content
        or any(fact.start <= word.start < fact.end for fact in passage.facts)
        for word in passage.content_words
    )


def _has_same_neighbors(text: str, fact: Fact, evidence: str, other: Fact) -> bool:
    """Return whether two figures have the same words on both sides.

    An example is "trusted by over 500 firms in all" and "trusted by over 300 firms in all".
    """
    before, stated_before = (
        words_of(words)[::-1] for words in (text[: fact.start], evidence[: other.start])
    )
    after, stated_after = words_of(text[fact.end :]), words_of(evidence[other.end :])
    sides = [
        sum(takewhile(bool, map(eq, claim_words, evidence_words)))
        for claim_words, evidence_words in ((before, stated_before), (after, stated_after))
    ]
    ends = len(before) == 0 or len(after) == 0  # the claim begins or ends with the figure
    return (min(sides) >= 1 or ends) and sum(sides) >= _WORDS_BESIDE


def _is_about_the_same(
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
    """Return whether a sentence of the evidence is about the same things and times as the claim.

    The name before the evidence's figure must be in the claim, and the name before the claim's in
    the sentence or those before it. The sentence must have every date and ordinal of the claim.

    Args:
        match: The claim with the passages near it.
        fact: The claim's figure.
        facts: All figures of the claim.
        i: The index of the passage.
        other: The passage's figure.
        words: Words of the claim. If given, the sentence must have each name among them and each
            other figure.
        whole: The sentence has the whole claim. A claim without a name ("the satellite") may then
            be about a thing that the sentence names.
        altered: The figure looks altered. The first word of a sentence is then never a name.
        timed: Dates and ordinals must be the same.

    """
    passage, sentence = match.passages[i], match.sentence
    for mate in facts:
        is_time = mate.kind == "date" or mate.dimension in ("ordinal", "clock")
        is_stated = any(agree(mate, stated) for stated in passage.facts)
        if mate is fact or is_stated or not ((is_time and timed) or words):
            continue
        rivals = [
            stated
            for stated in passage.facts
            if stated.kind == mate.kind == "date" and _has_same_precision(mate, stated)
        ]
        if words or rivals or mate.kind != "date" or not _is_dated(match, mate, passage.document):
            return False
    if any(
        match.weights[index] >= NAMED and match.hits[i].get(index, 0.0) < 1.0 for index in words
    ):
        return False
    evidence_name = _name_before(passage, other.start, inner=altered)
    claim_name = _name_before(sentence, fact.start, inner=altered)
    if evidence_name and evidence_name not in sentence.content and (claim_name or not whole):
        return False
    return not claim_name or any(
        claim_name in earlier.content
        for earlier in match.passages[max(0, i - _LOOK_BACK) : i + 1]
        if earlier.document == passage.document
    )


def _is_dated(match: Match, fact: Fact, document: int) -> bool:
    """Return whether a document states a date anywhere, since a report gives its year only once."""
    stated = (
        other
        for passage in match.passages
        if passage.document == document
        for other in passage.facts
    )
    return any(agree(fact, other) for other in stated)


_LOOK_BACK = 3
"""Sentences before one of the evidence that may name its subject."""


def _name_before(sentence: ParsedSentence, start: int, *, inner: bool) -> str:
    """Return the stem of the last name before an offset, or an empty string.

    With ``inner``, the first word of the sentence is skipped.
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
    """Return the values of a passage that could replace the figure and aren't in the claim."""
    passage = match.passages[i]
    return [
        other
        for other in passage.facts[:MOST_FACTS]
        if other.kind == fact.kind
        and not other.others
        and other.dimension == fact.dimension
        and (
            _has_same_precision(fact, other)
            if fact.kind == "date"
            else fact.dimension
            or _has_same_noun(match, fact, i, other)
            or _has_digits_exchanged(fact, other)
        )
        and not is_comparison_label(passage.text, other)
        and not may_be_rounded(fact, other)
        and not any(mate is not fact and agree(mate, other) for mate in facts)
    ]


def _surroundings(
    sentence: ParsedSentence, fact: Fact, passage: ParsedSentence, other: Fact
) -> float:
    """Return the weighted share of a figure's neighboring content words that are near another.

    Neighbors are three words on either side of `fact`, and four on either side of `other`.
    """
    claim_words = [*sentence.content_before(fact.start, 3), *sentence.content_after(fact.end, 3)]
    evidence_stems = {
        word.stem
        for word in (*passage.content_before(other.start, 4), *passage.content_after(other.end, 4))
    }
    weight = sum(word.weight for word in claim_words)
    return (
        sum(word.weight for word in claim_words if word.stem in evidence_stems) / weight
        if weight
        else 0.0
    )


def _has_same_noun(match: Match, fact: Fact, i: int, other: Fact) -> bool:
    """Return whether the same noun directly follows both: "450 people", "300 people"."""
    claim_nouns = match.sentence.content_after(fact.end, 1)
    evidence_nouns = match.passages[i].content_after(other.end, 1)
    return bool(claim_nouns and evidence_nouns) and claim_nouns[0].stem == evidence_nouns[0].stem


class Quotable:
    """The words of all evidence, to search for quotations. They're read on the first search."""

    def __init__(self, texts: Sequence[str]) -> None:
        self._texts = texts

    @cached_property
    def _words(self) -> list[tuple[str, ...]]:
        return [_words_without_punctuation(text) for text in self._texts]

    def find_absent(self, claim: str, question: str) -> Iterator[Contradiction]:
        """Yield a signal for each quotation of the claim that evidence and question lack."""
        if claim.count('"') % 2:
            return  # it's unclear which marks open and which close
        for quotation in _QUOTED.finditer(claim):
            start, end = quotation.start() + 1, quotation.end() - 1
            quoted = claim[start:end]
            if len(_BARE_WORD.findall(quoted)) < QUOTED_WORDS or _is_title(quoted):
                continue
            if _SUGGESTED.search(claim[max(0, start - 1 - _LONGEST_INTRODUCTION) : start - 1]):
                continue
            parts = [
                words
                for part in _LEFT_OUT.split(quoted)
                if (words := _words_without_punctuation(part)[:1])
            ]
            sources = (*self._words, _words_without_punctuation(question))
            if not any(
                all(any(words in reading for reading in source) for (words,) in parts)
                for source in sources
            ):
                reason = f"the quotation “{quoted.strip()}” isn't in the evidence"
                yield _absent_words("quotation", start, end, quoted, reason, 0.9)


def _words_without_punctuation(text: str) -> tuple[str, ...]:
    """Return the words and figures of a text in the comparison form, one string per reading.

    Differences in case and punctuation aren't reported. Text in square brackets, which is a marker
    or an editor's insertion, is left out in one reading.
    """
    readings = chain.from_iterable(
        map(quotation_forms, dict.fromkeys((text, _LEFT_OUT.sub(" ", text))))
    )
    parts = (_BARE_WORD.findall(reading.text.lower()) for reading in readings)
    return tuple(f" {' '.join(words)} " for words in parts if words)


# Matches a word, or a figure with its separators: "said", "3.5", "12:30".
_BARE_WORD = re.compile(r"\w++(?:[.,:/]\w++)*+")


def _is_title(quoted: str) -> bool:
    longer = [word for word in re.findall(r"[^\W\d_]+", quoted) if len(word) > 3]
    return bool(longer) and sum(word[0].isupper() for word in longer) >= _CAPITALIZED_SHARE * len(
        longer
    )

"""Numbers, dates, units and quotations of a claim that stand in no evidence, or that the evidence has otherwise.

A figure is accused where no evidence has it and nothing explains it: neither the question nor arithmetic nor rounding.
With another figure in its place the evidence contradicts the claim, and the issue names both; else the claim is
unsupported. A figure that the evidence has elsewhere is only accused where the rest of the sentence is the evidence's,
word for word, with another figure in it.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Collection, Iterator, Sequence
from functools import cached_property
from itertools import chain
from operator import attrgetter

from masis.audit.text.comparison import quotation_forms
from masis.offline.checks.copies import words_of
from masis.offline.checks.derivations import MOST_VALUES, follows, near_values
from masis.offline.matching.overlap import Match
from masis.offline.matching.passages import ParsedSentence, Passage
from masis.offline.parsing.facts import Fact, agree, comparable, compared, likeness, reach
from masis.schema.audit import Contradiction

RIVAL_FROM = 0.6
"""Strength from which another figure of the evidence counts as the one in whose place the claim's stands."""
SURE_FROM = 0.88
"""Strength from which that is so even of a figure that may have been computed."""
ALTERED_FROM, _ALIKE = 1.0, 0.8
"""Strength and likeness from which the claim's figure is the other one altered, whatever can be computed."""
MOST_FACTS = 60
"""Figures of one sentence that are looked at: one with more is a table or an attack."""
COUNTED = 12
"""Up to here a bare number may count what the evidence lists, and is not accused without a rival."""
_NEAR, _LEAST = 4, 0.3
_LABELLED = re.compile(
    r"(?:\b(?:steps?|sections?|secs?\.?|figures?|figs?\.?|tables?|chapters?|parts?|appendix|equations?|eqs?\.?|notes?"
    r"|footnotes?|items?|points?|options?|examples?|sources?|chunks?|documents?|passages?|references?|refs?\.?|evidence"
    r"|stud(?:y|ies)|pages?|pp?\.|paragraphs?|paras?\.?|no\.|number|level|phase|type|class|version|v|list|#|§)"
    r"\s?|§§?\s?|#)(?:\d+(?:\.\d+)*(?:\s?(?:,|and|or|to|-|–)\s?)){0,5}$",
    re.IGNORECASE,
)
"""What stands before a number that names a place or a kind instead of counting anything."""
_IN_NAME = re.compile(r"(?:[^\W\d_]-|\[[^\[\]]{0,38}|\d )$")
"""What stands before a figure of a name ("carbon-14"), a reference ("[3, 14]") or a number torn by blanks."""
_GOES_ON = re.compile(r"-[^\W\d_]| \d{3}\b")
"""What stands behind one: "2019-nCoV", "132 000"."""
_RATE = re.compile(r"\s?(?:per|an?|/)\s?(?:second|minute|hour|sec|min|h|s)\b", re.IGNORECASE)
_EXAMPLE = re.compile(
    r"^\W*(?:someone|anyone|somebody|anybody|whoever|if|suppose|say)\b|\bwould\b|\bfor (?:example|instance)\b|\be\.g\.",
    re.IGNORECASE,
)
"""Words of a sentence that gives an example or supposes a case."""
_COMPUTED = re.compile(
    r"\b(?:total\w*|sums? of|altogether|combined|together|in all|made up of|overall|came to|comes to|amount\w* to"
    r"|averag\w+|(?:f[ae]ll|r[io]se|dropp?\w*|gr[eo]w\w*|increas\w+|decreas\w+|declin\w+|cut|reduc\w+|up|down)"
    r"(?: by)?(?: only)?|fewer|difference|remain\w+|the rest|left|maximum|minimum|net|each|per (?!cent)|times|ratio"
    r"|extra|another|further)\b",
    re.IGNORECASE,
)
"""Words beside a figure that may have been computed: it is accused only where another surely stands in its place."""
_BEFORE, _BEHIND = 30, 15
"""Characters before and behind a figure in which such words stand."""
_IN_REFERENCE = re.compile(r"(?:[A-Z][\w’'.-]*,? \(|\([^()]{0,38}[\w.],? )$")
"""What stands before the year of a reference: "(Smith et al., 2013)", "Smith (2013)"."""
QUOTED_WORDS = 4
"""Words from which words in quotation marks are taken for a quotation; fewer may be a term or a nickname."""
_QUOTED = re.compile(r"“([^“”]*+)”|„([^“”„]*+)[“”]|«([^«»]*+)»|\"([^\"]*+)\"")
_LEFT_OUT = re.compile(r"\[[^\[\]]{0,40}\]|…|\.\.\.")
"""What a quotation leaves out or puts in its own words."""
_CAPITALISED = 0.7
"""Share of longer words with a capital from which the quoted words are a title."""


class FactTable:
    """The passages that state the same fact; lookups are cached."""

    def __init__(self, found: Sequence[Passage]) -> None:
        """`found` are the passages in order; the table refers to them by index."""
        self._passages = found
        self._same: dict[Fact, list[int]] = {}

    def holders(self, fact: Fact, allowed: frozenset[int] | None) -> list[int]:
        """Return the passages (of the allowed documents) that have an agreeing number or date."""
        fact = _anywhere(fact)
        if fact not in self._same:
            near = self._near(fact) if fact.kind == "number" else self._where
            self._same[fact] = sorted({i for other in near if _same(fact, other) for i in self._where[other]})
        return [i for i in self._same[fact] if allowed is None or self._passages[i].document in allowed]

    @cached_property
    def _where(self) -> dict[Fact, list[int]]:
        found: dict[Fact, list[int]] = {}
        for i, passage in enumerate(self._passages):
            for fact in passage.facts:
                found.setdefault(_anywhere(fact), []).append(i)
        return found

    @cached_property
    def _numbers(self) -> list[Fact]:
        return sorted((fact for fact in self._where if fact.kind == "number"), key=attrgetter("value"))

    def _near(self, fact: Fact) -> Sequence[Fact]:
        """Return the numbers close enough to agree: of many thousands, few need to be compared."""
        first = bisect_left(self._numbers, fact.value - reach(fact.value), key=attrgetter("value"))
        last = bisect_right(self._numbers, fact.value + reach(fact.value), key=attrgetter("value"))
        return self._numbers[first:last]


def _anywhere(fact: Fact) -> Fact:
    """Return a fact as what decides whether it agrees with another: without its place and what it counts."""
    return fact._replace(start=0, end=0, head="")


def _same(fact: Fact, other: Fact) -> bool:
    """Return whether two facts agree; "forty cabins" does not hold "41.2%"."""
    return agree(fact, other) and not (fact.dimension and not other.dimension and fact.value != other.value)


def accused_figures(
    match: Match,
    table: FactTable,
    question: Sequence[Fact] = (),
    numerals: Collection[str] = (),
    origins: Sequence[Fact] = (),
) -> Iterator[Contradiction]:
    """Yield a signal for each figure that the evidence has otherwise or nowhere.

    Args:
        match: A sentence of a claim with the passages near it.
        table: The figures of all evidence.
        question: Figures of the question, which a claim may repeat.
        numerals: The numerals of all evidence (`numerals_in`).
        origins: Figures of where the evidence is from: its titles and dates.

    Yields:
        Signals with the figure of the evidence in `evidence_text`; without evidence (an empty id) where it has none.

    """
    facts = match.sentence.facts[:MOST_FACTS]
    if not facts:
        return  # most sentences: the figures of the evidence need not be read for them
    stated = (*question, *origins)
    held = [fact for fact in facts if table.holders(fact, match.allowed) or any(agree(fact, other) for other in stated)]
    explained = list(held)  # what a claim says rightly, other figures of it may be computed from
    passages = _computed_with(match)
    for fact in facts:
        if fact in held:
            if table.holders(fact, match.allowed) and (signal := _framed(match, fact)) is not None:
                yield signal
            continue
        if _exempt(match.sentence.text, fact):
            continue
        rival = _rival(match, fact, facts)
        if _stands_as_numeral(fact, match, numerals, rival[1] if rival else None):
            continue
        if fact.kind == "date" and not (fact.day.year or fact.day.day):
            continue  # a month alone is said of any year
        # Digits exchanged in the place of another figure: that some sum comes to the same is chance.
        altered = rival is not None and rival[2] >= ALTERED_FROM and likeness(fact, rival[1]) >= _ALIKE
        text = match.sentence.text
        computed = _COMPUTED.search(text, max(0, fact.start - _BEFORE), fact.end + _BEHIND)
        # With another figure in its place, and no sign that it was computed, only the passages near explain it.
        unsure = fact.kind == "number" and computed and (rival is None or rival[2] < SURE_FROM)
        tight = fact.kind == "number" and rival is not None and not unsure
        around = [match.passages[i] for i in match.region] if tight else passages
        if follows(text, fact, near_values(around, (*origins, *explained)), arithmetic=not altered):
            explained.append(fact)
        elif unsure:
            continue
        elif rival is not None:
            passage, other, strength = rival
            reason = f"the evidence has “{other.text}” where the claim has “{fact.text}”, which stands in no evidence"
            yield _signal(fact, passage, other, reason, strength)
        elif not _unaccused(text, fact):
            reason = f"“{fact.text}” stands in no evidence"
            yield _absent(fact.kind, fact.start, fact.end, fact.text, reason, 0.8)


def _computed_with(match: Match) -> Sequence[Passage]:
    """Return the passages whose figures a claim may be computed from: all where they are few, else those near it."""
    within = [each for each in match.passages if match.allowed is None or each.document in match.allowed]
    if sum(len(each.facts) for each in within) <= MOST_VALUES:
        return within
    documents = {match.passages[i].document for i in match.top}
    beside = [each for each in within if each.document in documents]
    if sum(len(each.facts) for each in beside) <= MOST_VALUES:
        return beside
    return [match.passages[i] for i in match.region]


def _exempt(text: str, fact: Fact) -> bool:
    """Return whether a figure belongs to a label, a list, a name or a reference, and asserts nothing."""
    before, after = text[max(0, fact.start - 40) : fact.start], text[fact.end : fact.end + 4]
    if _IN_NAME.search(before) or (not fact.dimension.strip("date") and _GOES_ON.match(after)):
        return True
    if fact.kind == "date":
        return after[:1] in (")", ";", ",") and _IN_REFERENCE.search(before) is not None
    opens = not before.strip() or before.rstrip()[-1] in "(:;\n"
    return _LABELLED.search(before) is not None or (opens and after[:2] in (") ", ". "))


def _unaccused(text: str, fact: Fact) -> bool:
    """Return whether a figure is not accused without another in its place.

    Counts of what is listed; figures in words ("a third", "a four-year-old"), which may be parts or examples; speeds,
    whose conversions are not computed; figures of an example.
    """
    in_words = not any(map(str.isdigit, fact.text)) or fact.text.startswith("1 ")
    return in_words or _may_count(fact) or bool(_RATE.match(text, fact.end) or _EXAMPLE.search(text))


def _may_count(fact: Fact) -> bool:
    """Return whether a number may merely count what the evidence lists, or stand for its place in an order."""
    if fact.kind != "number":
        return False
    return fact.dimension == "ordinal" or (not fact.dimension and not fact.digits and fact.value <= COUNTED)


def numerals_in(text: str) -> set[str]:
    """Return the numerals of a text without commas, also put together where blanks tear them: "3, 500", "2. 4"."""
    torn = re.findall(r"\d++(?:\s?[.,]\s?\d++)++", text)
    return {re.sub(r"[\s,]", "", numeral) for numeral in torn} | set(re.findall(r"\d++", text))


def _stands_as_numeral(fact: Fact, match: Match, numerals: Collection[str], rival: Fact | None) -> bool:
    """Return whether the evidence has the numeral, if in another unit, torn by blanks or as part of a name.

    With another figure in its place, only the passages near count; the same numeral in another unit counts for nothing.
    """
    own = {numeral.replace(",", "") for numeral in re.findall(r"\d[\d,.]*\d|\d", fact.text)}
    if not own or (rival is not None and (fact.kind == "date" or rival.dimension != fact.dimension)):
        return False
    if rival is None or any("." in numeral or len(numeral) > 3 for numeral in own):
        return own <= set(numerals)
    return own <= {numeral for i in match.region for numeral in numerals_in(match.passages[i].text)}


def _signal(fact: Fact, passage: Passage, other: Fact, reason: str, strength: float) -> Contradiction:
    absent = _absent(fact.kind, fact.start, fact.end, fact.text, reason, round(min(1.0, max(0.0, strength)), 3))
    place = {"evidence_start": passage.start + other.start, "evidence_end": passage.start + other.end}
    return absent.model_copy(update={"evidence_id": passage.evidence_id, "evidence_text": other.text, **place})


def _absent(kind: str, start: int, end: int, text: str, reason: str, strength: float) -> Contradiction:
    """Return the accusation of words that stand in no evidence."""
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


def _framed(match: Match, fact: Fact) -> Contradiction | None:
    """Return a signal where a passage is the claim word for word but for this figure, and none is with it."""
    text = match.sentence.text
    frame = (words_of(text[: fact.start]), words_of(text[fact.end :]))
    if sum(map(len, frame)) < _NEAR:
        return None
    found = None
    for i in match.top:
        passage = match.passages[i]
        for other in passage.facts[:MOST_FACTS]:
            if other.kind != fact.kind or other.dimension != fact.dimension:
                continue
            if (words_of(passage.text[: other.start]), words_of(passage.text[other.end :])) != frame:
                continue
            if agree(fact, other):
                return None
            found = found or (passage, other)
    if found is None or not comparable(fact, found[1]):
        return None
    passage, other = found
    reason = f"the evidence has “{other.text}” where the claim has “{fact.text}”"
    return _signal(fact, passage, other, reason, 1.0)


def _rival(match: Match, fact: Fact, facts: Sequence[Fact]) -> tuple[Passage, Fact, float] | None:
    """Return the figure of the evidence in whose place the claim has its own, with how sure that is.

    It is looked for in the passages near the claim and beside them, among the figures that nothing else in the claim
    accounts for: by the words around both, by their likeness (41.2 and 14.2, million and billion, the same day of
    another year), and by being the only one of its kind.
    """
    around = match.around(fact.start, fact.end, _NEAR)
    rivals = [(i, other) for i in match.region for other in _candidates(match, fact, facts, i)]
    sole = len({(other.value, other.day, other.dimension) for _, other in rivals}) == 1
    best: tuple[Passage, Fact, float] | None = None
    for i, other in rivals:
        passage = match.passages[i]
        alike, covered = likeness(fact, other), match.coverage((i,), around)
        slot = _surroundings(match.sentence, fact, passage, other)
        counts = _counts_the_same(match.sentence, fact, passage, other)
        alone = sole and fact.kind == "date" and alike >= 0.4 and match.coverage(match.top[:1], around) >= 0.4
        if alike < 0.8 and covered < _LEAST and slot < _LEAST and not alone:
            continue
        if not comparable(fact, other) and not counts and not (sole and slot >= 0.5):
            continue
        in_words = bool(fact.dimension) and not any(character.isdigit() for character in fact.text)
        if (in_words or _may_count(fact)) and not (slot >= 0.5 and (counts or in_words)):
            continue
        strength = 0.4 + 0.3 * covered + 0.25 * slot + 0.35 * alike + 0.08 * sole + 0.08 * counts + 0.15 * alone
        if strength >= RIVAL_FROM and (best is None or strength > best[2]):
            best = (passage, other, strength)
    return best


def _candidates(match: Match, fact: Fact, facts: Sequence[Fact], i: int) -> list[Fact]:
    passage = match.passages[i]
    return [
        other
        for other in passage.facts[:MOST_FACTS]
        if other.kind == fact.kind
        and (other.dimension == fact.dimension or comparable(fact, other))
        and not compared(passage.text, other)
        and not any(mate is not fact and agree(mate, other) for mate in facts)
    ]


def _surroundings(sentence: ParsedSentence, fact: Fact, passage: Passage, other: Fact) -> float:
    """Return the share of the three content words on either side of the claim's figure that stand near the other."""
    mine = [*sentence.content_before(fact.start, 3), *sentence.content_after(fact.end, 3)]
    theirs = {word.stem for word in (*passage.content_before(other.start, 4), *passage.content_after(other.end, 4))}
    weight = sum(word.weight for word in mine)
    return sum(word.weight for word in mine if word.stem in theirs) / weight if weight else 0.0


def _counts_the_same(sentence: ParsedSentence, fact: Fact, passage: Passage, other: Fact) -> bool:
    """Return whether the same noun follows both: "2,000 long-term unemployed people", "two thousand people"."""
    mine = [word.stem for word in sentence.content_after(fact.end, 3)]
    theirs = [word.stem for word in passage.content_after(other.end, 3)]
    return bool(set(mine) & set(theirs)) or bool(
        mine and theirs and min(len(mine[0]), len(theirs[0])) >= 4 and mine[0][:5] == theirs[0][:5]
    )


class Quotable:
    """The words of all evidence, in which quotations are looked for; read when the first one is."""

    def __init__(self, texts: Sequence[str]) -> None:
        self._texts = texts

    @cached_property
    def _words(self) -> list[tuple[str, ...]]:
        return [_bare_words(text) for text in self._texts]

    def accused(self, claim: str, question: str) -> Iterator[Contradiction]:
        """Yield a signal without evidence for each quotation of the claim that neither evidence nor question has."""
        if claim.count('"') % 2:
            return  # it is unclear which marks open and which close
        for found in _QUOTED.finditer(claim):
            start, end = found.start() + 1, found.end() - 1
            quoted = claim[start:end]
            if len(_BARE_WORD.findall(quoted)) < QUOTED_WORDS or _is_title(quoted):
                continue
            parts = [words for part in _LEFT_OUT.split(quoted) if (words := _bare_words(part)[:1])]
            sources = (*self._words, _bare_words(question))
            if not any(all(_holds(source, words) for (words,) in parts) for source in sources):
                reason = f"the quotation “{quoted.strip()}” stands in no evidence"
                yield _absent("quotation", start, end, quoted, reason, 0.9)


def _bare_words(text: str) -> tuple[str, ...]:
    """Return the letters and figures of a text in the comparison form, one string for each way to read it.

    The case and the punctuation of a quotation accuse nobody, nor does what stands in square brackets, a marker or
    what an editor put in. Everything else is compared as it stands.
    """
    readings = chain.from_iterable(map(quotation_forms, dict.fromkeys((text, _LEFT_OUT.sub(" ", text)))))
    found = (_BARE_WORD.findall(reading.text.lower()) for reading in readings)
    return tuple(f" {' '.join(words)} " for words in found if words)


_BARE_WORD = re.compile(r"\w++(?:[.,:/]\w++)*+")


def _holds(source: tuple[str, ...], words: str) -> bool:
    return any(words in reading for reading in source)


def _is_title(quoted: str) -> bool:
    longer = [word for word in re.findall(r"[^\W\d_]+", quoted) if len(word) > 3]
    return bool(longer) and sum(word[0].isupper() for word in longer) >= _CAPITALISED * len(longer)

"""Deterministic checks beside the classifier: what keeps a claim from being confirmed, and what accuses it.

A veto is a difference that a reader would want explained before anything is certified: a name or figure that no
evidence has, an antonym, a negation more or less, a strong word, another order. It never accuses. An accusation is a
number or date that no evidence has and no computation explains, in the place of another that the evidence has there.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import combinations, pairwise

from masis.offline.contradictions.derivations import follows
from masis.offline.contradictions.fact_conflicts import absent_signal, holds, may_count
from masis.offline.matching.assessment import Signal
from masis.offline.matching.fact_table import FactTable
from masis.offline.matching.overlap import Match, inversions
from masis.offline.matching.passages import Passage
from masis.offline.parsing.extraction import Day, Fact
from masis.offline.parsing.facts import agree

STRONG_RIVAL = 0.6
"""Strength from which the figure that the evidence has in its place counts as its rival."""
MIN_COVERAGE = 0.5
"""Share of the rest of a sentence that a window must cover before a figure that no evidence has accuses it."""
MAX_VALUES = 24
"""Values of the window that are computed with: among many, some sum fits by chance."""

_NEGATION = re.compile(
    r"\b(?:not|no|never|none|neither|nor|nobody|nothing|cannot|without|unable|fail(?:s|ed|ing)?|lack(?:s|ed|ing)?|hardly"
    r"|barely|refus(?:e|es|ed|ing)|den(?:y|ies|ied|ying)|declin(?:e|es|ed|ing) to|prohibit(?:s|ed)?|forbid(?:s|den)?"
    r"|exclud(?:e|es|ed|ing)|rule[sd]? out|free of|absence of|rather than|instead of|unlike|except)\b|n['’]t\b",
    re.IGNORECASE,
)
_STRENGTH = re.compile(
    r"\b(?:all|every|always|entirely|never|none|only|must|everyone|everything|completely|guarantee[sd]?|certainly"
    r"|definitely|any|universally|prove[sdn]?|cures?|solely|exclusively|first|sole|best|largest|highest|lowest|least"
    r"|most|may|might|can|could|should|required|optional|mandatory|before|after|cause[sd]?|because|more|less|fewer"
    r"|greater|smaller|higher|lower|increase[sd]?|decrease[sd]?|reduce[sd]?|than)\b",
    re.IGNORECASE,
)
"""Words that change what is asserted while most other words stay; a confirmed claim has them from the evidence."""
_COMPUTED = re.compile(
    r"\b(?:about|around|roughly|approximately|approx|nearly|almost|some|circa|close to|over|under|above|below"
    r"|more than|less than|fewer than|at least|at most|up to|no more than|exceed\w*|between|within|half|thirds?"
    r"|quarters?|fifths?|sixths?|tenths?|twice|double[ds]?|triple[ds]?|tripling|halv\w+|total\w*|together|altogether"
    r"|combined|overall|sum|differ\w*|average|mean|ratio|younger|older|longer|shorter|taller|higher|lower|larger|smaller"
    r"|faster|slower|cheaper|dearer|heavier|lighter|times|each|per|every|later|earlier|after|ago|remaining|rest|left"
    r"|majority|further|another|additional)\b",
    re.IGNORECASE,
)
"""Words beside a figure that may have been computed from other figures of the evidence."""
_DECADE = re.compile(r"['’]?s\b")
_BY = re.compile(r"\bby\b", re.IGNORECASE)
_BEING = re.compile(r"\b(?:is|are|was|were|be|been|being)\b", re.IGNORECASE)
_FRACTIONS = re.compile(r"\b(?:half|halves|thirds?|quarters?|fifths?|twice|doubled?|tenfold|halved)\b", re.IGNORECASE)


def vetoes(match: Match, table: FactTable, features: dict[str, float]) -> tuple[str, ...]:
    """Return codes of what keeps a sentence from being confirmed: `name_absent`, `number_absent`, `date_absent`,
    `antonym`, `negation`, `strength`, `order`, `voice`, `apart`.

    Args:
        match: The sentence with the passages it is compared with.
        table: The numbers, dates and names of all evidence.
        features: Its measurements (`masis.offline.inference.features`).

    """
    found = [
        f"{fact.kind}_absent" for fact in match.sentence.facts if fact.kind != "name" and _nowhere(match, fact, table)
    ]
    if features["names_missing"]:
        found.append("name_absent")
    if features["opposed"]:
        found.append("antonym")
    if match.window:
        nearest = _nearest(match)
        if len(_NEGATION.findall(match.sentence.text)) != len(_NEGATION.findall(nearest.text)):
            found.append("negation")
        if _has_new_strong_word(match.sentence.text, nearest.text):
            found.append("strength")
        if inversions(match.words, nearest):
            found.append("order")
        if _turns_voice(match.sentence.text, nearest.text):
            found.append("voice")
        if _joins_what_stands_apart(match, nearest) or _gathered(match, nearest):
            found.append("apart")
    return tuple(dict.fromkeys(found))


def accusations(match: Match, table: FactTable) -> Iterator[Signal]:
    """Yield a signal for each number or date that no evidence has and that nothing explains, with its rival."""
    facts = match.sentence.facts
    if not match.top:
        return
    for fact in facts:
        if fact.kind == "name" or may_count(fact) or not _nowhere(match, fact, table):
            continue
        if match.coverage(match.window, without=match.mask(fact.start, fact.end)) < MIN_COVERAGE:
            continue
        around = match.sentence.text[max(0, fact.start - 40) : fact.end + 30]
        if (
            _DECADE.match(match.sentence.text, fact.end)
            or _COMPUTED.search(around)
            or follows(match, fact)
            or _computable(match, fact)
        ):
            continue
        rival = absent_signal(match, fact, facts)
        if rival is not None and rival.strength >= STRONG_RIVAL:
            yield rival


def _nowhere(match: Match, fact: Fact, table: FactTable) -> bool:
    """Return whether no passage has the value; "forty cabins" does not hold "41.2%"."""
    return not any(
        holds(match.passages[i], fact) and any(_same(fact, other) for other in match.passages[i].facts)
        for i in table.holders(fact, match.allowed)
    )


def _same(fact: Fact, other: Fact) -> bool:
    return agree(fact, other) and not (fact.dimension and not other.dimension and fact.value != other.value)


def _nearest(match: Match) -> Passage:
    stems = {word.stem for word in match.words}
    return max((match.passages[i] for i in match.window), key=lambda passage: len(stems & passage.positions.keys()))


def _joins_what_stands_apart(match: Match, nearest: Passage) -> bool:
    """Return whether two neighbouring words of the claim stand on two sides of somebody else's name in the passage.

    "Judge A dissented" is not what "Judge A gave the opinion; Judge B dissented" says.
    """
    own = {word.stem for word in match.words}
    names = [
        i
        for i, word in enumerate(nearest.words)
        if i and word.text[0].isupper() and word.weight > 1 and word.stem not in own
    ]
    if not names:
        return False
    placed = [nearest.positions[match.words[i].stem] for i in match.bits if match.words[i].stem in nearest.positions]
    for first, second in pairwise(placed):
        a, b = min(((p, q) for p in first for q in second), key=lambda pair: abs(pair[1] - pair[0]))
        if any(min(a, b) < name < max(a, b) for name in names):
            return True
    return False


def _turns_voice(claim: str, evidence: str) -> bool:
    """Return whether one of them says by whom and the other says it the other way: who did it may have changed."""
    mine, theirs = bool(_BY.search(claim)), bool(_BY.search(evidence))
    return mine != theirs and (mine or not _BEING.search(claim))


def _gathered(match: Match, nearest: Passage) -> bool:
    """Return whether a name or figure of the claim stands in another passage than the rest of it."""
    for fact in match.sentence.facts:
        held = any(other.kind == fact.kind and agree(fact, other) for other in nearest.facts)
        bits = match.mask(fact.start, fact.end)
        if not held and not (bits and match.exact.get(nearest.at, 0) & bits == bits):
            return True
    return False


def _has_new_strong_word(claim: str, evidence: str) -> bool:
    theirs = Counter(found.group().casefold() for found in _STRENGTH.finditer(evidence))
    return bool(Counter(found.group().casefold() for found in _STRENGTH.finditer(claim)) - theirs)


def _computable(match: Match, fact: Fact) -> bool:
    """Return whether a number is a share, a ratio in percent or a conversion of the figures near."""
    if isinstance(fact.value, Day) or not isinstance(fact.value, float):
        return False
    near = [other for i in match.region for other in match.passages[i].facts if isinstance(other.value, float)]
    if fact.dimension and any(
        other.dimension == fact.dimension
        and _written_unit(other) != _written_unit(fact)
        and 0.85 < float(other.value) / (fact.value or 1.0) < 1.18  # type: ignore[arg-type]
        for other in near
    ):
        return True  # converted from another unit, and rounded
    shares = [float(other.value) / 100 for other in near if other.dimension == "percent"]  # type: ignore[arg-type]
    usable = [other for other in near if fact.dimension in ("", "percent") or other.dimension in ("", fact.dimension)]
    values = sorted({float(other.value) for other in usable if other.value})[:MAX_VALUES]  # type: ignore[arg-type]
    fractional = any(_FRACTIONS.search(match.passages[i].text) for i in match.region)
    return _within_slack(fact, values, (*shares, 0.5, 1 / 3, 2 / 3, 0.25, 0.75, 0.2, 2.0) if fractional else shares)


def _written_unit(fact: Fact) -> str:
    return re.sub(r"[\d.,\s]+", "", fact.text).lower()


def _within_slack(fact: Fact, values: Sequence[float], shares: Sequence[float]) -> bool:
    wanted = float(fact.value)  # type: ignore[arg-type]
    slack = max(0.005 * abs(wanted), 0.5 * 10.0**-fact.digits if fact.dimension == "percent" else 1e-6)
    computed = [share * value for value in values for share in shares]
    if not fact.dimension and wanted <= 50:
        computed += [value + step for value in values for step in (-1, 1)]  # "one of 36 failed": 35 did not
    if fact.dimension == "percent":
        computed += [100 - value for value in values]
        for a, b in combinations(values, 2):
            computed += [100 * a / b, 100 * (b - a) / a, 100 * (b - a) / b]
    return any(abs(value - wanted) <= slack for value in computed)

"""Finds sentences of the evidence that say the opposite of a claim in nearly the same words.

Two sentences are compared as their terms in order: content words by their stems, without articles
and auxiliary verbs. A term has a sign, which a negation ("not", "never", "fails to") and the
negative word of a pair of opposites ("forbidden" for "allowed") turn around, so that "not unsafe"
equals "safe". Sentences with equal terms of which exactly one has another sign are opposites. So
are a permission and a prohibition of the same thing in different verbs: "is safe with warfarin" and
"don't take with warfarin". Everything else is left open, because a negation often denies only a
part of its sentence.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import NamedTuple

from masis.offline.text.tokens import stem, tokens

FEWEST_TERMS = 3
"""The fewest terms that two opposite sentences have in common, including the opposite one."""
FEWEST_ADVICE_TERMS = 2
"""The fewest terms besides verb and permission that advice and its opposite have in common."""
MOST_TERMS = 60
"""Sentences with more terms aren't compared; they state several things."""


def _opposites(table: str) -> dict[str, tuple[str, int]]:
    signs: dict[str, tuple[str, int]] = {}
    for line in table.strip().splitlines():
        positive, negative = (side.split() for side in line.split("/"))
        key = f"±{positive[0]}"
        signs |= dict.fromkeys(positive, (key, 1)) | dict.fromkeys(negative, (key, -1))
    return signs


OPPOSITES = _opposites(
    """
    increase increases increased increasing / decrease decreases decreased decreasing
    increase rise rises rose risen rising / fall falls fell fallen falling
    increase grow grows grew grown growing / shrink shrinks shrank shrunk shrinking
    increase raise raises raised raising / reduce reduces reduced reducing reduction
    increase / drop drops dropped dropping decline declines declined declining
    increase / lowers lowered lowering
    more / less fewer
    most / least fewest
    high higher / low lower
    highest / lowest
    maximum / minimum
    above over / below under
    before prior / after following
    earlier / later
    if / unless
    allow allows allowed / forbid forbids forbade forbidden disallow disallows disallowed
    allow permit permits permitted / prohibit prohibits prohibited ban bans banned
    allow authorized legal lawful / illegal unlawful
    required mandatory compulsory obligatory / optional voluntary
    safe / unsafe dangerous
    effective / ineffective
    possible / impossible
    likely / unlikely
    common frequent / uncommon rare infrequent
    often frequently / rarely seldom infrequently
    include includes included including / exclude excludes excluded excluding
    inside within indoors / outside outdoors
    open opens opened / close closes closed
    accept accepts accepted approve approves approved / reject rejects rejected
    accept adopt adopts adopted / refuse refuses refused
    win wins won / lose loses lost
    better / worse
    improve improves improved improving / worsen worsens worsened worsening
    improve / deteriorate deteriorates deteriorated
    succeed succeeds succeeded / fail fails failed
    positive positively / negative negatively
    enable enables enabled / disable disables disabled
    longer / shorter
    larger bigger greater / smaller
    largest biggest greatest / smallest
    heavier / lighter
    warmer hotter / colder cooler
    faster / slower
    older / younger
    stronger / weaker
    sufficient / insufficient
    adequate / inadequate
    necessary / unnecessary
    appropriate / inappropriate
    suitable / unsuitable
    able / unable
    reversible / irreversible
    available / unavailable
    stable / unstable
    valid / invalid
    complete / incomplete
    correct accurate / incorrect inaccurate
    related / unrelated
    affected / unaffected
    changed / unchanged
    agree agrees agreed / disagree disagrees disagreed
    recommended advisable / inadvisable contraindicated
    start starts started begin begins began / stop stops stopped end ends ended
    encourage encourages encouraged / discourage discourages discouraged
    """
)
"""Words with an opposite: the key of their pair, and 1 for its first side or -1 for its second.

Words of one side count as the same word, so that "rose" and "increased" don't differ. Lines that
begin with the same word are one pair.
"""
_NEGATIONS = frozenset("not no never cannot".split())
# Words that negate the verb after "to", "from" or "-ing": "failed to improve", "avoid taking".
_NEGATING_VERBS = frozenset("fail fails failed failing".split())
_AVOIDING_VERBS = frozenset("avoid avoids avoided refrain refrains refrained".split())
_DROPPED = frozenset(
    """
        a an the is are was were be been being am do does did has have had to that you your one it
        there always also please however therefore thus moreover furthermore then indeed of
    """.split()
)
_PERMISSIONS = frozenset("should must may can shall ought".split())
_PERMISSION_KEYS = frozenset(
    OPPOSITES[word][0] for word in ("safe", "allowed", "recommended", "suitable", "appropriate")
)
_CARRYING_VERBS = frozenset(
    stem(word) for word in "take use give administer combine drink eat apply consume".split()
)
"""Verbs of advice that say nothing more than "do this": "take with food", "use with food"."""
# Words under which a statement and its negation can both be true: some improve, some don't.
_PARTIAL = frozenset(
    """
        some several many few most others other another may might could partly sometimes often
        usually generally mostly typically half part certain only
    """.split()
)
# Words that open a clause whose negation leaves the main statement as it is: "patients who don't
# smoke", "if it isn't raining".
_CLAUSES = frozenset(
    """
        if when whenever where while who whose whom which because although though since unless
        whether until as than
    """.split()
)
_CLAUSE_END = re.compile(r"[,;:()–—]")


class Term(NamedTuple):
    """A word that counts in the comparison, with its sign.

    Attributes:
        key: Its stem, or the key of its pair of opposites.
        sign: 1, or -1 if it is negated or the negative word of its pair.
        start: The start of the word, or of its negation.
        end: The end of the word.
        is_partial: Whether its opposite can be true as well.

    """

    key: str
    sign: int
    start: int
    end: int
    is_partial: bool


class Opposite(NamedTuple):
    """The spans of the words that make a claim the opposite of a sentence of the evidence."""

    claim_start: int
    claim_end: int
    evidence_start: int
    evidence_end: int


@lru_cache(maxsize=4096)
def terms_of(text: str) -> tuple[Term, ...]:
    """Return the terms of a sentence in order, with offsets into it."""
    words = tokens(text)
    lowered = [word.text.lower().replace("’", "'") for word in words]
    terms: list[Term] = []
    sign, negated_from = 1, -1
    has_partial, clause = False, ""
    for index, (word, lower) in enumerate(zip(words, lowered, strict=True)):
        following = lowered[index + 1] if index + 1 < len(words) else ""
        if index and _CLAUSE_END.search(text, words[index - 1].end, word.start):
            clause = ""
        negates = (
            (lower in _NEGATIONS and following not in ("", "only", "just", "merely", "necessarily"))
            or lower.endswith("n't")
            or (lower in _NEGATING_VERBS and following == "to")
            or (lower in _AVOIDING_VERBS and following)
        )
        if negates:
            sign, negated_from = -sign, word.start if negated_from < 0 else negated_from
            if lower == "cannot" or lower.startswith(("can't", "mustn't", "shouldn't")):
                terms.append(Term("can" if lower[0] == "c" else lower[:-3], 1, *word[:2], False))
            continue
        if lower in _DROPPED and not (lower == "have" and following == "to"):
            continue
        if lower == "from" and index and lowered[index - 1].startswith("refrain"):
            continue
        key, own_sign = OPPOSITES.get(lower, (word.stem, 1))
        has_partial = has_partial or lower in _PARTIAL
        if lower in _PERMISSIONS:
            # "may not be taken": the negation concerns the verb after it.
            terms.append(Term(lower, 1, word.start, word.end, False))
            continue
        is_clause_word = lower in _CLAUSES
        terms.append(
            Term(
                key,
                sign * own_sign,
                word.start if negated_from < 0 else negated_from,
                word.end,
                has_partial or bool(clause and not is_clause_word),
            )
        )
        sign, negated_from = 1, -1
        clause = lower if is_clause_word else clause
    return tuple(terms)


def find_opposite(claim: str, sentences: Iterable[str]) -> tuple[int, Opposite] | None:
    """Return the first sentence that says the opposite of a claim, by its index, and its words.

    None if no sentence does, if one says the same, or if the claim asks a question.
    """
    claim_terms = terms_of(claim)
    if claim.rstrip().endswith("?") or not FEWEST_TERMS <= len(claim_terms) <= MOST_TERMS:
        return None
    found = None
    for index, sentence in enumerate(sentences):
        evidence_terms = terms_of(sentence)
        if sentence.rstrip().endswith("?") or len(evidence_terms) > MOST_TERMS:
            continue
        differing = _differing_terms(claim_terms, evidence_terms)
        if differing == []:
            return None
        if differing is None or len(differing) > 1:
            differing = _differing_advice(claim_terms, evidence_terms)
        if found is None and differing is not None and len(differing) == 1:
            [(ours, theirs)] = differing
            found = index, Opposite(ours.start, ours.end, theirs.start, theirs.end)
    return found


def _differing_terms(
    claim: Sequence[Term], evidence: Sequence[Term]
) -> list[tuple[Term, Term]] | None:
    """Return the terms with another sign, or None if other terms differ or a doubt is left."""
    if [term.key for term in claim] != [term.key for term in evidence]:
        return None
    differing = [pair for pair in zip(claim, evidence, strict=True) if pair[0].sign != pair[1].sign]
    if any(term.is_partial for pair in differing for term in pair):
        return None
    return differing


class _Advice(NamedTuple):
    """Whether advice permits something, the terms of the thing, and the terms that say so."""

    sign: int
    keys: tuple[tuple[str, int], ...]
    said_by: Term


def _differing_advice(
    claim: Sequence[Term], evidence: Sequence[Term]
) -> list[tuple[Term, Term]] | None:
    ours, theirs = _advice(claim), _advice(evidence)
    if ours is None or theirs is None or ours.keys != theirs.keys or ours.sign == theirs.sign:
        return None
    return [(ours.said_by, theirs.said_by)]


def _advice(terms: Sequence[Term]) -> _Advice | None:
    """Return what a sentence permits or prohibits, or None if it isn't advice."""
    said_by, sign, keys, has_permission = None, 1, list[tuple[str, int]](), False
    for term in terms:
        if term.key in _PERMISSIONS or term.key in _PERMISSION_KEYS:
            has_permission = True
        elif term.key not in _CARRYING_VERBS:
            keys.append((term.key, term.sign))
            if term.is_partial and not has_permission:
                return None
            continue
        if term.is_partial and term.key not in _CARRYING_VERBS:
            return None
        sign *= term.sign
        if said_by is None or term.sign < 0 or said_by.key in _PERMISSIONS:
            said_by = term
    if said_by is None or len(keys) < FEWEST_ADVICE_TERMS:
        return None
    return _Advice(sign, tuple(keys), said_by) if has_permission or sign < 0 else None

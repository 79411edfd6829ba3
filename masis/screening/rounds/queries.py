"""The search queries: the question first, then queries for what a round was missing, each with its reason.

The vocabulary of a query is plain words. No query is searched twice; where no new words are left, the results of the
question are read on.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from masis.offline.text.tokens import tokens
from masis.schema.screening import Abstract, Grade, Query
from masis.screening.grading import rubric
from masis.screening.grading.question import Concept, Question, rarity, read_question
from masis.screening.grading.relevance import relevance

MOST_QUERIES = 3
"""Queries a round: enough for the three things evidence lacks most, few enough to read."""
_OTHER_WORDS = 3
_FEEDBACK_TERMS = 4
_RARE_ENOUGH = 0.35


_STRONG_DESIGN = ("randomised", "controlled", "trial")


class GradedAbstract(NamedTuple):
    """An abstract that a round's searches brought, with its grade."""

    abstract: Abstract
    grade: Grade


class Gap(NamedTuple):
    """Something a round was missing: a sentence, and the words that a search for it adds."""

    what: str
    words: tuple[str, ...]


def first_queries(question: str) -> tuple[Query, ...]:
    """Return the question itself."""
    return (Query(text=question, why="The question as it was asked."),)


def find_gaps(question: str, seen: Sequence[GradedAbstract]) -> tuple[Gap, ...]:
    """Return what a round was missing, the most important first."""
    parsed = read_question(question)
    if not seen:
        return (Gap("The searches brought nothing.", _other_words(parsed.concepts)),)
    relevant = [each for each in seen if (each.grade.relevance_score or 0) >= rubric.KEEP_RELEVANCE]
    found = [
        *_unmet(parsed, seen),
        *_off_topic(seen, relevant),
        *_weak(relevant),
        *_small(relevant),
        *_partly(seen, relevant),
    ]
    return tuple(found) or (Gap("What is kept is not good enough on average.", _STRONG_DESIGN),)


def next_queries(question: str, missing: Sequence[Gap], tried: Iterable[Query], limit: int) -> tuple[Query, ...]:
    """Return the queries for the next round, at most ``MOST_QUERIES``, none tried before; reading on where no words are
    left.
    """
    parsed = read_question(question)
    base = " ".join(concept.name for concept in parsed.concepts) or question
    done = list(tried)
    used_keys = {_key(query.text) for query in done if not query.offset}
    queries: list[Query] = []
    for lack in missing:
        for words in (lack.words, ()):
            text = " ".join([base, *words])
            if _key(text) in used_keys:
                continue
            used_keys.add(_key(text))
            added = f" Added: {', '.join(words)}." if words else " Only the words that name something."
            queries.append(Query(text=text, why=f"{lack.what}{added}", aims_at=lack.what))
            break
        if len(queries) == MOST_QUERIES:
            break
    return tuple(queries) or _read_on(question, missing, done, limit)


def _read_on(question: str, missing: Sequence[Gap], tried: Sequence[Query], limit: int) -> tuple[Query, ...]:
    deepest = max((query.offset for query in tried if query.text == question), default=0)
    what = missing[0].what if missing else "The kept abstracts are not good enough on average."
    why = f"{what} No new words are left: the question's list is read on from place {deepest + limit + 1}."
    return (Query(text=question, why=why, aims_at=what, offset=deepest + limit),)


def _key(text: str) -> frozenset[str]:
    return frozenset(token.stem for token in tokens(text) if token.weight)


def _partly(seen: Sequence[GradedAbstract], relevant: Sequence[GradedAbstract]) -> list[Gap]:
    """Return the gap of abstracts that are only partly about the question."""
    partly = sum(each.grade.rule == "borderline_relevance" for each in seen)
    if not partly:
        return []
    return [Gap(f"{partly} of {len(seen)} are only partly about the question.", _shared_words(relevant, seen))]


def _unmet(parsed: Question, seen: Sequence[GradedAbstract]) -> list[Gap]:
    """Return the gap of a concept that fewer than half of the related abstracts mention."""
    near = [each for each in seen if (each.grade.relevance_score or 0) >= rubric.DISCARD_RELEVANCE] or list(seen)
    met: Counter[int] = Counter()
    for each in near:
        for index, found in enumerate(relevance(parsed, each.abstract).met):
            met[index] += found.share >= rubric.KEEP_RELEVANCE
    rarest = min(range(len(parsed.concepts)), key=lambda index: met[index], default=None)
    if rarest is None or 2 * met[rarest] >= len(near):
        return []
    concept = parsed.concepts[rarest]
    what = f"Only {met[rarest]} of {len(near)} name “{concept.name}” ({concept.part})."
    return [Gap(what, _other_words([concept]))]


def _other_words(concepts: Iterable[Concept]) -> tuple[str, ...]:
    """Return phrases that stand for these concepts."""
    return tuple(phrase.text for concept in concepts for phrase in concept.others[:_OTHER_WORDS])


def _off_topic(seen: Sequence[GradedAbstract], relevant: Sequence[GradedAbstract]) -> list[Gap]:
    """Return the gap of mostly unrelated results: words that the relevant ones share narrow the search."""
    away = sum((each.grade.relevance_score or 0) < rubric.DISCARD_RELEVANCE for each in seen)
    if 2 * away < len(seen):
        return []
    return [Gap(f"{away} of {len(seen)} are about something else.", _shared_words(relevant, seen))]


def _shared_words(relevant: Sequence[GradedAbstract], seen: Sequence[GradedAbstract]) -> tuple[str, ...]:
    """Return words that the titles of the relevant abstracts share and the others lack, the most distinctive first."""
    ours, theirs, spelt = Counter[str](), Counter[str](), dict[str, str]()
    ids = {each.abstract.id for each in relevant}
    for each in seen:
        roots = {token.stem: token.text for token in tokens(each.abstract.title) if token.weight >= 1}
        for root, word in roots.items():
            if rarity(root) < _RARE_ENOUGH or root[0].isdigit():
                continue
            spelt.setdefault(root, word.lower())
            (ours if each.abstract.id in ids else theirs)[root] += 1
    distinctive = [(count * rarity(root) / (1 + theirs[root]), root) for root, count in ours.items() if count > 1]
    return tuple(spelt[root] for _, root in sorted(distinctive, key=lambda each: (-each[0], each[1]))[:_FEEDBACK_TERMS])


def _weak(relevant: Sequence[GradedAbstract]) -> list[Gap]:
    """Return the gap of relevant studies whose design or method supports no conclusion."""
    if not relevant:
        return []
    weak = [each for each in relevant if each.grade.rule in ("weak_design", "weak_method", "borderline_method")]
    trials = sum(each.grade.design in ("randomised_trial", "systematic_review", "meta_analysis") for each in relevant)
    found = []
    if weak:
        what = (
            f"{len(weak)} of {len(relevant)} relevant abstracts are of a design or method that supports no conclusion."
        )
        found.append(Gap(what, _STRONG_DESIGN))
    if 2 * trials < len(relevant):
        what = f"Only {trials} of {len(relevant)} relevant abstracts are trials or systematic reviews."
        found.append(Gap(what, ("systematic", "review", "meta-analysis")))
        found.append(Gap(what, ("prospective", "cohort", "study")))
    return found


def _small(relevant: Sequence[GradedAbstract]) -> list[Gap]:
    """Return the gap of relevant studies that are too small."""
    small = sum(each.grade.sample_size_adequate is False for each in relevant)
    if not small:
        return []
    what = f"{small} of {len(relevant)} relevant abstracts studied too few."
    return [Gap(what, ("multicentre", "large", "trial"))]

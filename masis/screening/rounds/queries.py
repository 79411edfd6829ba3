"""The search queries: the question first, then one query for each thing that is missing, which it
names.

What can be missing: a **concept** of the question that few abstracts name, a **design** that could
carry a conclusion, **size**, **recency**, and **scope** (the searches brought nothing, or mostly
something else). A query is plain words; a design and a year it asks for are beside it, so that a
source with fields of its own (PubMed) asks for exactly them. No query is searched twice. Where
every gap has been asked for, the question's list is read on as long as its end still brings
relevant abstracts; then no further query would help.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from masis.offline.text.tokens import tokens
from masis.schema.screening import Abstract, Design, Grade, Query
from masis.schema.wording import count_noun
from masis.screening.grading import rubric
from masis.screening.grading.question import Concept, Question, read_question
from masis.screening.grading.relevance import relevance
from masis.views.screening import DESIGN

MOST_QUERIES = 3
"""Queries a round: enough for the three things evidence lacks most, few enough to read."""
RECENT_YEARS = 5
"""Where the newest relevant abstract is older than this, later ones are asked for: half of all
systematic reviews are out of date after 5.5 years (Shojania et al., Ann Intern Med 2007;147:224).
"""
NO_FURTHER_QUERY = "No further query would help: everything that is missing has been asked for."
_GOES_ON = 0.25
"""A list is read on where a quarter of the last half of what it brought is relevant."""


class GradedAbstract(NamedTuple):
    """An abstract that the searches brought, with its grade."""

    abstract: Abstract
    grade: Grade


class Gap(NamedTuple):
    """Something that is missing: a sentence, and the words that a search for it adds to the
    question's.

    ``design`` and ``since`` (a year) are what a source with such fields is asked for. ``only``
    replaces the question's words instead of adding to them.
    """

    what: str
    words: tuple[str, ...] = ()
    design: Design | None = None
    since: int | None = None
    only: str = ""


_SEARCHED: dict[Design, tuple[str, ...]] = {
    "randomised_trial": ("randomised", "controlled", "trial"),
    "systematic_review": ("systematic", "review", "meta-analysis"),
    "cohort_study": ("prospective", "cohort", "study"),
}
"""The designs that could carry a conclusion, the strongest first, and the words of a search for
each.
"""
_COUNTS_AS: dict[Design | None, Design] = {
    "meta_analysis": "systematic_review",
    "prognostic_study": "cohort_study",
    "target_trial_emulation": "cohort_study",
}
_ENOUGH_OF_A_DESIGN = 3
"""With three trials or reviews among the kept, a cohort study adds no certainty by its design
(GRADE).
"""


def first_queries(question: str) -> tuple[Query, ...]:
    """Return the question itself; where a person wrote its concepts, these."""
    text = searched_text(question)
    why = (
        "The question as it was asked."
        if text == question
        else "The concepts of the question, as a person set them."
    )
    return (Query(text=text, why=why),)


def searched_text(question: str) -> str:
    """Return the words that the first search asks for."""
    parsed = read_question(question)
    return parsed.text if parsed.written and parsed.text else question


def find_gaps(
    question: str, seen: Sequence[GradedAbstract], year: int | None = None
) -> tuple[Gap, ...]:
    """Return what is missing, the most important first; ``year`` is the present one,
    for recency.
    """
    parsed = read_question(question)
    if not seen:
        return (
            Gap(
                "Scope: the searches brought nothing.",
                only=_rename_concepts(parsed, parsed.concepts),
            ),
        )
    related = [
        each for each in seen if (each.grade.relevance_score or 0) >= rubric.DISCARD_RELEVANCE
    ]
    relevant = [
        each for each in related if (each.grade.relevance_score or 0) >= rubric.KEEP_RELEVANCE
    ]
    found: list[Gap] = []
    if not relevant:
        found.append(
            Gap(
                f"Scope: none of {len(seen)} found is relevant.",
                only=_rename_concepts(parsed, parsed.concepts),
            )
        )
    found += _unmet(parsed, related or seen)
    away = len(seen) - len(related)
    if 2 * away >= len(seen):
        found.append(Gap(f"Scope: {away} of {len(seen)} are about something else."))
    found += _designs(relevant or related, "relevant" if relevant else "related")
    if small := sum(each.grade.sample_size_adequate is False for each in relevant):
        what = f"Size: {small} of {len(relevant)} relevant abstracts studied too few."
        found.append(Gap(what, ("multicentre", "large", "trial")))
    newest = max(
        (each.abstract.year for each in relevant if each.abstract.year is not None), default=None
    )
    if year is not None and newest is not None and newest < year - RECENT_YEARS:
        found.append(
            Gap(f"Recency: the newest relevant abstract is of {newest}.", since=newest + 1)
        )
    if partly := sum(each.grade.rule == "borderline_relevance" for each in seen):
        found.append(Gap(f"Concept: {partly} of {len(seen)} are only partly about the question."))
    return tuple(found) or (
        Gap(
            "Design: what is kept is not good enough on average.",
            _SEARCHED["randomised_trial"],
            design="randomised_trial",
        ),
    )


def next_queries(
    question: str,
    missing: Sequence[Gap],
    tried: Iterable[Query],
    limit: int,
    *,
    goes_on: bool = False,
) -> tuple[Query, ...]:
    """Return the queries of the next round, at most ``MOST_QUERIES``, one for each gap, none of
    them tried before.

    Where there is none and the list of the question's own search ``goes_on``, that is read on,
    ``limit`` abstracts deeper; else no further query would help.
    """
    base, tried = (
        " ".join(concept.name for concept in read_question(question).concepts) or question,
        list(tried),
    )
    asked = {_query_key(query) for query in tried if not query.offset}
    queries: list[Query] = []
    for query in filter(None, (_query(lack, base) for lack in missing)):
        if _query_key(query) not in asked and len(queries) < MOST_QUERIES:
            asked.add(_query_key(query))
            queries.append(query)
    if queries or not goes_on:
        return tuple(queries)
    question = searched_text(question)
    offset = limit + max((query.offset for query in tried if query.text == question), default=0)
    what = "Scope: the end of the question's list still brought relevant abstracts."
    return (
        Query(
            text=question,
            why=f"{what} It is read on from place {offset + 1}.",
            aims_at=what,
            offset=offset,
        ),
    )


def list_goes_on(listed: Sequence[Grade], limit: int) -> bool:
    """Return whether the question's own list has more, and its end still brought relevant
    abstracts.

    ``listed`` are the grades of what the last search of that list brought, in its order; a search
    takes ``limit``.
    """
    tail = listed[len(listed) // 2 :]
    near = sum((grade.relevance_score or 0) >= rubric.KEEP_RELEVANCE for grade in tail)
    return len(listed) >= limit and near >= _GOES_ON * len(tail)


def _query(lack: Gap, base: str) -> Query | None:
    held = {token.stem for token in tokens(lack.only or base)}
    words = [word for word in lack.words if any(token.stem not in held for token in tokens(word))]
    if not words and lack.since is None and not lack.only:
        return None  # it would be the question again
    text = " ".join([lack.only or base, *words])
    added = f" Added: {', '.join(words)}." if words else ""
    if lack.only:
        added = f" Asked for instead: {lack.only}.{added}"
    if lack.since is not None:
        added += f" From {lack.since} on."
    return Query(
        text=text,
        why=f"{lack.what}{added}",
        aims_at=lack.what,
        design=lack.design,
        since=lack.since,
    )


def _query_key(query: Query) -> tuple[frozenset[str], int | None]:
    return frozenset(token.stem for token in tokens(query.text) if token.weight), query.since


def _unmet(parsed: Question, near: Sequence[GradedAbstract]) -> list[Gap]:
    """Return the gap of a concept that fewer than half of the related abstracts mention.

    It is asked for by its other names; where none is known, with the rarest concept alone, without
    the rest.
    """
    met: Counter[Concept] = Counter()
    for each in near:
        met.update(
            m.concept
            for m in relevance(parsed, each.abstract).met
            if m.share >= rubric.KEEP_RELEVANCE
        )
    concept = min(
        (each for each in parsed.concepts if each.stems), key=met.__getitem__, default=None
    )
    if concept is None or 2 * met[concept] >= len(near):
        return []
    related = count_noun(len(near), "related abstract")
    what = f"Concept: “{concept.name}” ({concept.part}) is named in {met[concept]} of {related}."
    if concept.others:
        return [Gap(what, only=_rename_concepts(parsed, [concept]))]
    rest = [each for each in parsed.concepts if each is not concept]
    main = max(rest, key=lambda each: each.weight) if len(rest) > 1 else None
    return [Gap(what, only=f"{main.name} {concept.name}")] if main else []


def _rename_concepts(parsed: Question, concepts: Sequence[Concept]) -> str:
    """Return the question's concepts with another name for each of these, where one is known; empty
    where none is.

    In place of the name, not beside it: PubMed wants every word of a query.
    """
    if not any(concept.others for concept in concepts):
        return ""
    return " ".join(
        concept.others[0].text if concept in concepts and concept.others else concept.name
        for concept in parsed.concepts
    )


def _designs(relevant: Sequence[GradedAbstract], called: str) -> list[Gap]:
    """Return a gap for each design that could carry a conclusion and that few relevant studies
    have.

    Cohort studies are asked for only where trials and reviews are few.
    """
    if not relevant:
        return []
    counts = Counter(_COUNTS_AS.get(each.grade.design, each.grade.design) for each in relevant)
    strong = counts["randomised_trial"] + counts["systematic_review"]
    found = []
    for design, words in _SEARCHED.items():
        name, count = DESIGN[design], counts[design]
        if max(count, strong if design == "cohort_study" else 0) < _ENOUGH_OF_A_DESIGN:
            several = "cohort studies" if design == "cohort_study" else None
            few = f"only {count_noun(count, name, several)}" if count else f"no {name}"
            what = f"Design: {few} among {count_noun(len(relevant), f'{called} abstract')}."
            found.append(Gap(what, words, design=design))
    weak = sum(
        each.grade.rule in ("weak_design", "weak_method", "borderline_method") for each in relevant
    )
    if weak and not found:
        what = (
            f"Design: {weak} of {len(relevant)} relevant abstracts support no conclusion by design"
            " or method."
        )
        found.append(Gap(what, _SEARCHED["randomised_trial"], design="randomised_trial"))
    return found

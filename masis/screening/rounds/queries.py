"""Builds the search queries: first the question, then one query for each gap in the evidence.

A gap can be a **concept** of the question that few abstracts name, a **design** that could support
a conclusion, **size**, **recency**, or **scope** (the searches found nothing, or mostly abstracts
about something else). A query is plain text. A design and a year are separate fields, so that a
source with such filters (PubMed) can use them. The same query isn't searched twice. When all gaps
have been searched for, later pages of the question's own results are read as long as the last page
still has relevant abstracts. After that, another query wouldn't help.
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
from masis.screening.views.words import DESIGN

MAX_QUERIES = 3
"""Queries per round: enough for the three largest gaps, few enough to read."""
RECENT_YEARS = 5
"""If the newest relevant abstract is older than this, newer ones are searched for. Half of all
systematic reviews are out of date after 5.5 years (Shojania et al., Ann Intern Med 2007;147:224).
"""
NO_FURTHER_QUERY = "Another query wouldn't help, because every gap has been searched for."
# The next page is read if this share of the second half of the last page is relevant.
_RELEVANT_TAIL_SHARE = 0.25


class GradedAbstract(NamedTuple):
    """An abstract that was found, with its grade."""

    abstract: Abstract
    grade: Grade


class Gap(NamedTuple):
    """A gap in the evidence: a sentence about it, and the words that a search for it adds.

    ``design`` and ``since`` (a year) are for sources with such filters. ``only`` replaces the words
    of the question instead of adding to them.
    """

    what: str
    words: tuple[str, ...] = ()
    design: Design | None = None
    since: int | None = None
    only: str = ""


# The designs that could support a conclusion, the strongest first, and their search words.
_SEARCHED: dict[Design, tuple[str, ...]] = {
    "randomised_trial": ("randomised", "controlled", "trial"),
    "systematic_review": ("systematic", "review", "meta-analysis"),
    "cohort_study": ("prospective", "cohort", "study"),
}
_COUNTS_AS: dict[Design | None, Design] = {
    "meta_analysis": "systematic_review",
    "prognostic_study": "cohort_study",
    "target_trial_emulation": "cohort_study",
}
# With three trials or reviews, another cohort study adds no certainty by its design (GRADE).
_ENOUGH_OF_A_DESIGN = 3


def first_queries(question: str) -> tuple[Query, ...]:
    """Return the query of the first round: the question, or the concepts that a person wrote."""
    text = searched_text(question)
    why = (
        "The question as it was asked."
        if text == question
        else "The concepts of the question, as a person set them."
    )
    return (Query(text=text, why=why),)


def searched_text(question: str) -> str:
    """Return the text of the first search."""
    parsed = read_question(question)
    return parsed.text if parsed.written and parsed.text else question


def find_gaps(
    question: str, graded_abstracts: Sequence[GradedAbstract], year: int | None = None
) -> tuple[Gap, ...]:
    """Return the gaps in the evidence, the most important first; ``year`` is the current year."""
    parsed = read_question(question)
    if not graded_abstracts:
        return (
            Gap(
                "Scope: the searches found nothing.",
                only=_rename_concepts(parsed, parsed.concepts),
            ),
        )
    related = [
        graded
        for graded in graded_abstracts
        if (graded.grade.relevance_score or 0) >= rubric.DISCARD_RELEVANCE
    ]
    relevant = [
        graded for graded in related if (graded.grade.relevance_score or 0) >= rubric.KEEP_RELEVANCE
    ]
    gaps: list[Gap] = []
    if not relevant:
        gaps.append(
            Gap(
                f"Scope: of {count_noun(len(graded_abstracts), 'abstract')} found, none is"
                " relevant.",
                only=_rename_concepts(parsed, parsed.concepts),
            )
        )
    gaps += _concept_gap(parsed, related or graded_abstracts)
    off_topic = len(graded_abstracts) - len(related)
    if 2 * off_topic >= len(graded_abstracts):
        gaps.append(Gap(f"Scope: {off_topic} of {len(graded_abstracts)} are about something else."))
    gaps += _design_gaps(relevant or related, "relevant" if relevant else "related")
    if undersized := sum(graded.grade.sample_size_adequate is False for graded in relevant):
        what = f"Size: {undersized} of {len(relevant)} relevant abstracts have too small a sample."
        gaps.append(Gap(what, ("multicentre", "large", "trial")))
    newest = max(
        (graded.abstract.year for graded in relevant if graded.abstract.year is not None),
        default=None,
    )
    if year is not None and newest is not None and newest < year - RECENT_YEARS:
        gaps.append(
            Gap(f"Recency: the newest relevant abstract is from {newest}.", since=newest + 1)
        )
    if partial := sum(graded.grade.rule == "borderline_relevance" for graded in graded_abstracts):
        gaps.append(
            Gap(
                f"Concept: {partial} of {len(graded_abstracts)} are only partly about the question."
            )
        )
    return tuple(gaps) or (
        Gap(
            "Design: the average quality of the kept abstracts is too low.",
            _SEARCHED["randomised_trial"],
            design="randomised_trial",
        ),
    )


def next_queries(
    question: str,
    gaps: Sequence[Gap],
    earlier: Iterable[Query],
    limit: int,
    *,
    has_next_page: bool = False,
) -> tuple[Query, ...]:
    """Return at most ``MAX_QUERIES`` new queries for the next round, one for each gap.

    If there is none and the question's own search ``has_next_page``, the query for that page is
    returned, ``limit`` abstracts further down.
    """
    base, earlier = (
        " ".join(concept.name for concept in read_question(question).concepts) or question,
        list(earlier),
    )
    used_keys = {_query_key(query) for query in earlier if not query.offset}
    queries: list[Query] = []
    for query in filter(None, (_query_for(gap, base) for gap in gaps)):
        if _query_key(query) not in used_keys and len(queries) < MAX_QUERIES:
            used_keys.add(_query_key(query))
            queries.append(query)
    if queries or not has_next_page:
        return tuple(queries)
    question = searched_text(question)
    offset = limit + max((query.offset for query in earlier if query.text == question), default=0)
    what = "Scope: the last results of the question's own search still include relevant abstracts."
    return (
        Query(
            text=question,
            why=f"{what} Its results are read from number {offset + 1}.",
            aims_at=what,
            offset=offset,
        ),
    )


def is_next_page_worth_reading(page: Sequence[Grade], limit: int) -> bool:
    """Return whether the question's own search has more results and the last ones were relevant.

    ``page`` holds the grades of the last page of that search, in its order. A page has at most
    ``limit`` abstracts, so a shorter one is the last.
    """
    tail = page[len(page) // 2 :]
    relevant = sum((grade.relevance_score or 0) >= rubric.KEEP_RELEVANCE for grade in tail)
    return len(page) >= limit and relevant >= _RELEVANT_TAIL_SHARE * len(tail)


def _query_for(gap: Gap, base: str) -> Query | None:
    """Return the query that searches for a gap; None if it would repeat the question."""
    stems = {token.stem for token in tokens(gap.only or base)}
    words = [word for word in gap.words if any(token.stem not in stems for token in tokens(word))]
    if not words and gap.since is None and not gap.only:
        return None
    text = " ".join([gap.only or base, *words])
    note = f" Added: {', '.join(words)}." if words else ""
    if gap.only:
        note = f" Searched for instead: {gap.only}.{note}"
    if gap.since is not None:
        note += f" From {gap.since} on."
    return Query(
        text=text,
        why=f"{gap.what}{note}",
        aims_at=gap.what,
        design=gap.design,
        since=gap.since,
    )


def _query_key(query: Query) -> tuple[frozenset[str], int | None]:
    """Return the key by which two queries count as the same: stems in any order, and the year."""
    return frozenset(token.stem for token in tokens(query.text) if token.weight), query.since


def _concept_gap(parsed: Question, related: Sequence[GradedAbstract]) -> list[Gap]:
    """Return the gap of the concept that the fewest related abstracts mention, if under half do.

    Its other names are searched for. If none are known, it is searched for together with the rarest
    other concept, without the rest of the question.
    """
    match_counts: Counter[Concept] = Counter()
    for graded in related:
        match_counts.update(
            match.concept
            for match in relevance(parsed, graded.abstract).met
            if match.share >= rubric.KEEP_RELEVANCE
        )
    concept = min(
        (known for known in parsed.concepts if known.stems),
        key=match_counts.__getitem__,
        default=None,
    )
    if concept is None or 2 * match_counts[concept] >= len(related):
        return []
    related_count = count_noun(len(related), "related abstract")
    what = (
        f"Concept: “{concept.name}” ({concept.part}) is named in {match_counts[concept]} of"
        f" {related_count}."
    )
    if concept.others:
        return [Gap(what, only=_rename_concepts(parsed, [concept]))]
    others = [other for other in parsed.concepts if other is not concept]
    rarest = max(others, key=lambda other: other.weight) if len(others) > 1 else None
    return [Gap(what, only=f"{rarest.name} {concept.name}")] if rarest else []


def _rename_concepts(parsed: Question, concepts: Sequence[Concept]) -> str:
    """Return the question's concepts, with another name for those in ``concepts``.

    The result is empty if no other name is known. The other name replaces the first one, because
    PubMed looks for records with every word of a query.
    """
    if not any(concept.others for concept in concepts):
        return ""
    return " ".join(
        concept.others[0].text if concept in concepts and concept.others else concept.name
        for concept in parsed.concepts
    )


def _design_gaps(relevant: Sequence[GradedAbstract], adjective: str) -> list[Gap]:
    """Return a gap for each conclusive design that few relevant studies have.

    Cohort studies are searched for only if there are few trials and reviews.
    """
    if not relevant:
        return []
    counts = Counter(
        _COUNTS_AS.get(graded.grade.design, graded.grade.design) for graded in relevant
    )
    strong_studies = counts["randomised_trial"] + counts["systematic_review"]
    gaps = []
    for design, words in _SEARCHED.items():
        name, count = DESIGN[design], counts[design]
        if max(count, strong_studies if design == "cohort_study" else 0) < _ENOUGH_OF_A_DESIGN:
            plural = "cohort studies" if design == "cohort_study" else None
            shortage = f"only {count_noun(count, name, plural)}" if count else f"no {name}"
            what = f"Design: {shortage} among {count_noun(len(relevant), f'{adjective} abstract')}."
            gaps.append(Gap(what, words, design=design))
    weak = sum(
        graded.grade.rule in ("weak_design", "weak_method", "borderline_method")
        for graded in relevant
    )
    if weak and not gaps:
        what = (
            f"Design: {weak} of {len(relevant)} relevant abstracts can't support a conclusion"
            " because of their design or method."
        )
        gaps.append(Gap(what, _SEARCHED["randomised_trial"], design="randomised_trial"))
    return gaps

"""The search queries: the question first, then one query for each thing that is missing, which it names.

What can be missing: a **concept** of the question that few abstracts name, a **design** that could carry a conclusion,
**size**, **recency**, and **scope** (the searches brought nothing, or mostly something else). A query is plain words;
a design and a year it asks for are beside it, so that a source with fields of its own (PubMed) asks for exactly them.
No query is searched twice. Where every gap has been asked for, the question's list is read on as long as its end still
brings relevant abstracts; then no further query would help.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Literal, NamedTuple

from masis.offline.text.tokens import tokens
from masis.schema.screening import Abstract, Design, Grade, Query
from masis.schema.wording import counted
from masis.screening.grading import rubric
from masis.screening.grading.question import Concept, Question, read_question
from masis.screening.grading.relevance import relevance

MOST_QUERIES = 3
"""Queries a round: enough for the three things evidence lacks most, few enough to read."""
RECENT_YEARS = 5
"""Where the newest relevant abstract is older than this, later ones are asked for: half of all
systematic reviews are out of date after 5.5 years (Shojania et al., Ann Intern Med 2007;147:224)."""
NO_FURTHER_QUERY = "No further query would help: everything that is missing has been asked for."
_GOES_ON = 0.25
"""A list is read on where a quarter of the last half of what it brought is relevant."""

GapKind = Literal["concept", "design", "size", "recency", "scope"]


class GradedAbstract(NamedTuple):
    """An abstract that the searches brought, with its grade."""

    abstract: Abstract
    grade: Grade


class Gap(NamedTuple):
    """Something that is missing: a sentence, the words that a search for it adds, and what kind of thing it is.

    ``design`` and ``since`` (a year) are what a source with such fields is asked for. ``only`` replaces the question's
    words instead of adding to them.
    """

    what: str
    words: tuple[str, ...]
    kind: GapKind = "scope"
    design: Design | None = None
    since: int | None = None
    only: str = ""


_DESIGNS: tuple[tuple[Design, str, frozenset[Design], tuple[str, ...]], ...] = (
    ("randomised_trial", "randomised trials", frozenset({"randomised_trial"}), ("randomised", "controlled", "trial")),
    (
        "systematic_review",
        "systematic reviews",
        frozenset({"systematic_review", "meta_analysis"}),
        ("systematic", "review", "meta-analysis"),
    ),
    (
        "cohort_study",
        "cohort studies",
        frozenset({"cohort_study", "prognostic_study", "target_trial_emulation"}),
        ("prospective", "cohort", "study"),
    ),
)
"""The designs that could carry a conclusion: what several are called, what counts as one, and the words of a search."""
_ENOUGH_OF_A_DESIGN = 3
"""With three trials or reviews among the kept, a cohort study adds no certainty by its design (GRADE)."""


def first_queries(question: str) -> tuple[Query, ...]:
    """Return the question itself; where a person wrote its concepts, these."""
    text = searched_text(question)
    why = "The question as it was asked." if text == question else "The concepts of the question, as a person set them."
    return (Query(text=text, why=why),)


def searched_text(question: str) -> str:
    """Return the words that the first search asks for."""
    parsed = read_question(question)
    return parsed.text if parsed.written and parsed.text else question


def find_gaps(question: str, seen: Sequence[GradedAbstract], year: int | None = None) -> tuple[Gap, ...]:
    """Return what is missing, the most important first; ``year`` is the present one, for recency."""
    parsed = read_question(question)
    if not seen:
        return (Gap("Scope: the searches brought nothing.", (), only=_renamed(parsed, parsed.concepts)),)
    related = [each for each in seen if (each.grade.relevance_score or 0) >= rubric.DISCARD_RELEVANCE]
    relevant = [each for each in related if (each.grade.relevance_score or 0) >= rubric.KEEP_RELEVANCE]
    found: list[Gap] = []
    if not relevant:
        found.append(Gap(f"Scope: none of {len(seen)} found is relevant.", (), only=_renamed(parsed, parsed.concepts)))
    found += _unmet(parsed, related or seen)
    away = len(seen) - len(related)
    if 2 * away >= len(seen):
        found.append(Gap(f"Scope: {away} of {len(seen)} are about something else.", ()))
    found += _designs(relevant or related, "relevant" if relevant else "related")
    if small := sum(each.grade.sample_size_adequate is False for each in relevant):
        what = f"Size: {small} of {len(relevant)} relevant abstracts studied too few."
        found.append(Gap(what, ("multicentre", "large", "trial"), "size"))
    newest = max((each.abstract.year for each in relevant if each.abstract.year is not None), default=None)
    if year is not None and newest is not None and newest < year - RECENT_YEARS:
        found.append(Gap(f"Recency: the newest relevant abstract is of {newest}.", (), "recency", since=newest + 1))
    if partly := sum(each.grade.rule == "borderline_relevance" for each in seen):
        what = f"Concept: {partly} of {len(seen)} are only partly about the question."
        found.append(Gap(what, (), "concept"))
    trial = _DESIGNS[0]
    return tuple(found) or (
        Gap("Design: what is kept is not good enough on average.", trial[3], "design", design=trial[0]),
    )


def next_queries(
    question: str, missing: Sequence[Gap], tried: Iterable[Query], limit: int, *, goes_on: bool = False
) -> tuple[Query, ...]:
    """Return the queries of the next round, at most ``MOST_QUERIES``, none tried before.

    Args:
        question: The question that is screened.
        missing: What is missing, the most important first.
        tried: Every query so far.
        limit: How many abstracts a search takes: where the question's list is read on.
        goes_on: Whether the end of the question's list still brought relevant abstracts.

    Returns:
        One query for each gap; the question's list read on where there is none and it goes on; else none: no
        further query would help.

    """
    parsed = read_question(question)
    base = " ".join(concept.name for concept in parsed.concepts) or question
    question = searched_text(question)
    done = list(tried)
    asked = {_key(query) for query in done if not query.offset}
    queries: list[Query] = []
    for lack in missing:
        query = _query(lack, base)
        if query is not None and _key(query) not in asked:
            asked.add(_key(query))
            queries.append(query)
        if len(queries) == MOST_QUERIES:
            break
    return tuple(queries) or (_read_on(question, done, limit) if goes_on else ())


def list_goes_on(listed: Sequence[Grade], limit: int) -> bool:
    """Return whether the question's own list has more, and its end still brought relevant abstracts.

    ``listed`` are the grades of what the last search of that list brought, in its order; a search takes ``limit``.
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
    return Query(text=text, why=f"{lack.what}{added}", aims_at=lack.what, design=lack.design, since=lack.since)


def _read_on(question: str, tried: Sequence[Query], limit: int) -> tuple[Query, ...]:
    deepest = max((query.offset for query in tried if query.text == question), default=0)
    what = "Scope: the end of the question's list still brought relevant abstracts."
    why = f"{what} It is read on from place {deepest + limit + 1}."
    return (Query(text=question, why=why, aims_at=what, offset=deepest + limit),)


def _key(query: Query) -> tuple[frozenset[str], int | None]:
    return frozenset(token.stem for token in tokens(query.text) if token.weight), query.since


def _unmet(parsed: Question, near: Sequence[GradedAbstract]) -> list[Gap]:
    """Return the gap of a concept that fewer than half of the related abstracts mention.

    It is asked for by its other names; where none is known, with the rarest concept alone, without the rest.
    """
    met: Counter[int] = Counter()
    for each in near:
        for index, found in enumerate(relevance(parsed, each.abstract).met):
            met[index] += found.share >= rubric.KEEP_RELEVANCE
    looked_for = [concept for concept in parsed.concepts if concept.stems]
    least = min(range(len(looked_for)), key=lambda index: met[index], default=None)
    if least is None or 2 * met[least] >= len(near):
        return []
    concept = looked_for[least]
    related = counted(len(near), "related abstract")
    what = f"Concept: “{concept.name}” ({concept.part}) is named in {met[least]} of {related}."
    if concept.others:
        return [Gap(what, (), "concept", only=_renamed(parsed, [concept]))]
    rest = [each for each in parsed.concepts if each is not concept]
    if len(rest) < 2:
        return []
    main = max(rest, key=lambda each: each.weight)
    return [Gap(what, (), "concept", only=f"{main.name} {concept.name}")]


def _renamed(parsed: Question, concepts: Sequence[Concept]) -> str:
    """Return the question's concepts with another name for each of these, where one is known; empty where none is.

    In place of the name, not beside it: PubMed wants every word of a query.
    """
    if not any(concept.others for concept in concepts):
        return ""
    return " ".join(
        concept.others[0].text if concept in concepts and concept.others else concept.name
        for concept in parsed.concepts
    )


def _designs(relevant: Sequence[GradedAbstract], called: str) -> list[Gap]:
    """Return a gap for each design that could carry a conclusion and that few relevant studies have.

    Cohort studies are asked for only where trials and reviews are few.
    """
    if not relevant:
        return []
    counts = [sum(each.grade.design in group for each in relevant) for _, _, group, _ in _DESIGNS]
    found = []
    for (design, several, _, words), count in zip(_DESIGNS, counts, strict=True):
        if count >= _ENOUGH_OF_A_DESIGN or (design == "cohort_study" and counts[0] + counts[1] >= _ENOUGH_OF_A_DESIGN):
            continue
        name = f"{several.removesuffix('ies')}y" if several.endswith("ies") else several.removesuffix("s")
        few = f"only {counted(count, name, several)}" if count else f"no {name}"
        what = f"Design: {few} among {counted(len(relevant), f'{called} abstract')}."
        found.append(Gap(what, words, "design", design=design))
    weak = sum(each.grade.rule in ("weak_design", "weak_method", "borderline_method") for each in relevant)
    if weak and not found:
        what = f"Design: {weak} of {len(relevant)} relevant abstracts support no conclusion by design or method."
        found.append(Gap(what, _DESIGNS[0][3], "design", design="randomised_trial"))
    return found

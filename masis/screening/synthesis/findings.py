"""Finds the sentence of an abstract that answers the question, and the direction of that answer.

The sentence is the one in the conclusion, or in the results without a conclusion, that shares the
most words with the question. Its direction is read from its wording: a stated effect, no clear
difference, the opposite of the question, or unclear. Directions are counted and effects aren't
pooled, because an abstract seldom reports enough for that. Cochrane's handbook (12.2.1.3) allows
counting directions if effects can't be combined.

``benchmarks/screening_directions.py`` measures how often the direction is right. Agreement is a
share of the studies that state a direction.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

from masis.audit.sentences import split_sentences
from masis.offline.text.tokens import tokens
from masis.schema.screening import DIRECTIONS, Abstract, AbstractWords, Direction, Grade, Outcome
from masis.screening.grading import rubric
from masis.screening.grading.question import read_question
from masis.screening.grading.wording import LONGEST_READ, joined_forms, read_tables
from masis.screening.sources.publication import publication_of
from masis.views.screening import DIRECTION

AGREE_SHARE = 0.75
"""Studies agree if this share of those with a stated direction has the same one: 3 of 4 agree, 2 of
3 don't. The limit is our own.
"""
# The least share of the question's words in a conclusion, and in a result, that is interpreted.
_SHARED, _SHARED_RESULT = 0.15, 0.4
# Without a section that is labeled as conclusion, the last two sentences count as one.
_TAIL = 2

# The heading of a section in a structured abstract: "RESULTS: ", "Main outcome measures: ".
_LABEL = re.compile(r"\s*([A-Z][A-Z ,/&'-]{2,60}|[A-Z][a-z]+(?: [a-z&]+){0,3}): +(?=\S)")
_WORDING = {
    name: re.compile(joined_forms(forms), re.I)
    for name, forms in read_tables(Path(__file__).with_name("findings.toml")).items()
}


def _finding_match(wording: str, text: str) -> re.Match[str] | None:
    return _WORDING[wording].search(text)


class Finding(NamedTuple):
    """The sentence that states a study's result (None without a text), and its direction.

    ``adequate`` says whether the study is known to be large enough to speak against another.
    """

    abstract_id: str
    words: AbstractWords | None
    direction: Direction
    adequate: bool = True


class Synthesis(NamedTuple):
    """The findings of the kept studies, the best first, the number per direction, and agreement.

    ``agree`` is None if fewer than two adequate studies state a direction.
    """

    findings: tuple[Finding, ...]
    counts: dict[Direction, int]
    agree: bool | None
    summary: str


class _SectionSentence(NamedTuple):
    start: int
    end: int
    section: str
    text: str


def finding(question: str, abstract: Abstract) -> Finding:
    """Return the finding of an abstract on a question; its ``words`` are in ``abstract.text``."""
    if publication_of(abstract):
        return Finding(abstract.id, None, "unclear")
    best, direction_ = _answering_sentence(question, abstract.text[:LONGEST_READ])
    return Finding(
        abstract.id,
        AbstractWords(start=best.start, end=best.end, text=best.text) if best else None,
        direction_,
    )


def finding_of(question: str, grade: Grade, abstract: Abstract) -> Finding:
    """Return the finding of a graded abstract, with the direction that a person set, if any."""
    computed = finding(question, abstract)._replace(adequate=_is_adequate(grade))
    return computed if grade.direction is None else computed._replace(direction=grade.direction)


def _is_adequate(grade: Grade) -> bool:
    """Return whether a study is known to be large enough: its size is, or its design needs none.

    A review is enough alone even if its abstract states no size (``ruling.independent_studies``).
    """
    if grade.sample_size_adequate is not None or grade.design is None:
        return bool(grade.sample_size_adequate)
    is_review = grade.design in ("meta_analysis", "systematic_review")
    return is_review or rubric.ADEQUATE_SIZE[grade.design].least is None


def direction(question: str, statement: str) -> Direction:
    """Return the direction of a statement as an answer to the question."""
    if _finding_match("unsure", statement):
        return "unclear"
    # "A improved, but mortality did not differ": each clause has its own direction. The clause that
    # shares the most words with the question decides, if it states one.
    question_stems = _stems(question)
    clauses = [clause for clause in _WORDING["break"].split(statement) if clause.strip()]
    closest = sorted(clauses, key=lambda clause: -len(_stems(clause) & question_stems))
    directions = (_clause_direction(question, clause) for clause in closest)
    return next(
        (clause_direction for clause_direction in directions if clause_direction != "unclear"),
        "unclear",
    )


def _clause_direction(question: str, clause: str) -> Direction:
    plain = _WORDING["no_denial"].sub(" ", clause)
    if _finding_match("asks_same", question) and _finding_match("same", plain):
        return "effect"
    if _finding_match("none", plain):
        return "no_clear_effect"
    if not _finding_match("some", plain):
        return "unclear"
    return "opposite" if _is_opposite(question, plain) else "effect"


def _is_opposite(question: str, clause: str) -> bool:
    """Return whether a clause states the opposite of the change that the question asks about."""
    if (
        _finding_match("harm", clause)
        and (_finding_match("asks_good", question) or _finding_match("less", question))
        and not _finding_match("harm", question)
    ):
        return True
    less, more = bool(_finding_match("less", question)), bool(_finding_match("more", question))
    # The question names no change, or both, so that no change is the opposite.
    if less == more:
        return False
    opposite_words, asked_words = (
        (_WORDING["more"], _WORDING["less"]) if less else (_WORDING["less"], _WORDING["more"])
    )
    return (
        bool(opposite_words.search(clause))
        and not asked_words.search(clause)
        and not _finding_match("asks_good", clause)
    )


def _answering_sentence(question: str, text: str) -> tuple[_SectionSentence | None, Direction]:
    """Return the sentence about the question's outcome and its direction.

    Sentences of the conclusion are preferred to those of the results. If the sentence shares too
    few words with the question, the direction is unclear: in ``benchmarks/screening_directions.py``
    the directions of such sentences are right at most half of the time.
    """
    sentences, question_stems = _section_sentences(text), _stems(question)
    labeled = any(_finding_match("concluding", sentence.section) for sentence in sentences)
    tail = [] if labeled else sentences[-_TAIL:]
    candidates = [
        sentence
        for sentence in sentences
        if not _finding_match("not_yet", sentence.section)
        and _names_outcome(question, sentence.text)
    ]
    concluding = [
        sentence
        for sentence in candidates
        if _finding_match("concluding", sentence.section) or sentence in tail
    ]
    if not candidates:
        return None, "unclear"

    def rank(sentence: _SectionSentence) -> tuple[int, int]:
        # A stated result counts like one more shared word. Advice ("should be offered") repeats the
        # words of the question without a result, so it loses two. The earlier sentence wins a tie.
        stated = bool(
            _finding_match("none", sentence.text) or _finding_match("some", sentence.text)
        )
        return (
            len(_stems(sentence.text) & question_stems)
            + stated
            - 2 * bool(_finding_match("advises", sentence.text)),
            -sentence.start,
        )

    best = max(concluding or candidates, key=rank)
    min_share = _SHARED if best in concluding else _SHARED_RESULT
    is_related = len(_stems(best.text) & question_stems) >= min_share * len(question_stems)
    return best, direction(question, best.text) if is_related else "unclear"


@lru_cache(maxsize=64)
def _outcomes(question: str) -> tuple[frozenset[str], ...]:
    """Return the stems of each name of the question's outcomes.

    If no concept is recognized as an outcome, the names of all concepts count.
    """
    concepts = read_question(question).concepts
    outcomes = [concept for concept in concepts if concept.part == "outcome"] or list(concepts)
    names = [
        name
        for concept in outcomes
        for name in (concept.name, *(other.text for other in concept.others))
    ]
    return tuple(stems for name in names if (stems := _stems(name)))


def _names_outcome(question: str, sentence: str) -> bool:
    """Return whether a sentence has most words of one of the names of the question's outcome."""
    sentence_stems = _stems(sentence)
    return any(2 * len(stems & sentence_stems) > len(stems) for stems in _outcomes(question))


def _section_sentences(text: str) -> list[_SectionSentence]:
    """Return the sentences without section labels, each with the name of its section."""
    sentences, section = [], ""
    for span in split_sentences(text):
        start = span.start
        if label := _LABEL.match(text, span.start, span.end):
            section, start = label.group(1), label.end()
        if start < span.end:
            sentences.append(_SectionSentence(start, span.end, section, text[start : span.end]))
    return sentences


def _stems(text: str) -> frozenset[str]:
    return frozenset(token.stem for token in tokens(text) if token.weight)


def best_kept(grades: Iterable[Grade], abstracts: Mapping[str, Abstract]) -> list[Grade]:
    """Return the grades of the kept abstracts that are still in ``abstracts``, the best first."""
    kept = [
        grade
        for grade in grades
        if grade.recommendation == "keep" and grade.abstract_id in abstracts
    ]
    return sorted(kept, key=lambda grade: (-(grade.quality or 0.0), grade.abstract_id))


def synthesise(
    question: str, grades: Iterable[Grade], abstracts: Mapping[str, Abstract]
) -> Synthesis:
    """Return the findings of the kept abstracts, the best first, and whether they agree."""
    best = best_kept(grades, abstracts)
    return synthesis_of(
        [finding_of(question, grade, abstracts[grade.abstract_id]) for grade in best]
    )


def synthesis_of(findings: Iterable[Finding]) -> Synthesis:
    """Return how many of these findings have each direction, and whether they agree.

    Only adequate studies can agree or conflict: a small study beside them changes neither.
    """
    findings_ = tuple(findings)
    counts: dict[Direction, int] = {
        name: sum(finding.direction == name for finding in findings_) for name in DIRECTIONS
    }
    adequate = Counter(finding.direction for finding in findings_ if finding.adequate)
    del adequate["unclear"]
    stated, largest = adequate.total(), max(adequate.values(), default=0)
    agree = None if stated < 2 else largest >= AGREE_SHARE * stated
    return Synthesis(findings_, counts, agree, _direction_summary(counts, stated, agree))


def settled_outcome(synthesis: Synthesis) -> Outcome:
    """Return the outcome of enough evidence: sufficient, or conflicting if the studies disagree."""
    return "conflicting" if synthesis.agree is False else "sufficient"


def _direction_summary(counts: dict[Direction, int], stated: int, agree: bool | None) -> str:
    counts_text = ", ".join(
        f"{counts[name]} {DIRECTION[name].text}" for name in DIRECTIONS if counts[name]
    )
    if not counts_text:
        return "No abstract is kept, so there is no direction to count."
    if agree is None:
        return f"Direction of effect: {counts_text}. Fewer than two adequate studies state one."
    agreement = f"{AGREE_SHARE:.0%} of the {stated} adequate studies with a stated direction agree"
    return f"Direction of effect: {counts_text}. " + (
        f"At least {agreement}." if agree else f"Fewer than {agreement}, so they conflict."
    )

"""What a kept study found: the sentence of its abstract that answers the question, and the
direction of that answer.

The sentence is the one of the conclusion, or of the results where there is none, that shares most
words with the question. Its direction is read from wording: a stated effect, no clear difference,
the opposite of what was asked, or unclear. Directions are counted, never effects pooled: an
abstract seldom reports enough for that, and Cochrane's handbook (12.2.1.3) allows a count of
directions where effects can't be combined.

How often the direction is right is measured by ``benchmarks/screening_directions.py``; what agrees
is a share of those that state one.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

from masis.audit.sentences import split_sentences
from masis.offline.text.tokens import tokens
from masis.schema.screening import DIRECTIONS, Abstract, AbstractWords, Direction, Grade, Outcome
from masis.screening.grading.question import read_question
from masis.screening.grading.wording import LONGEST_READ, joined_forms, read_tables
from masis.screening.sources.publication import publication_of
from masis.views.screening import DIRECTION

AGREE_SHARE = 0.75
"""From three quarters of the studies with a stated direction on they agree; 2 of 3 do
not (ours).
"""
_SHARED, _SHARED_RESULT = 0.15, 0.4
"""Share of the question's words that a conclusion, and a single result, must hold for its direction
to be read.
"""
_TAIL = 2
"""Where nothing is labelled as a conclusion, the last two sentences are taken for one."""

# The heading of a section in a structured abstract: "RESULTS: ", "Main outcome measures: ".
_LABEL = re.compile(r"\s*([A-Z][A-Z ,/&'-]{2,60}|[A-Z][a-z]+(?: [a-z&]+){0,3}): +(?=\S)")
_WORDING = {
    name: re.compile(joined_forms(forms), re.I)
    for name, forms in read_tables(Path(__file__).with_name("findings.toml")).items()
}


def _finding_match(wording: str, text: str) -> re.Match[str] | None:
    return _WORDING[wording].search(text)


class Finding(NamedTuple):
    """What a study found: the sentence of its abstract, and the direction of what it says; None
    without a text.
    """

    abstract_id: str
    words: AbstractWords | None
    direction: Direction


class Synthesis(NamedTuple):
    """The findings of the kept studies, the best first, how many say what, and whether they agree.

    ``agree`` is None where fewer than two state a direction.
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
    """Return what an abstract found on a question; its ``words`` are a stretch of
    ``abstract.text``.
    """
    if publication_of(abstract):
        return Finding(abstract.id, None, "unclear")
    best, read = _answering(question, abstract.text[:LONGEST_READ])
    return Finding(
        abstract.id,
        AbstractWords(start=best.start, end=best.end, text=best.text) if best else None,
        read,
    )


def finding_of(question: str, grade: Grade, abstract: Abstract) -> Finding:
    """Return what a graded abstract found; a direction that a person set takes the place of what
    was read.
    """
    found = finding(question, abstract)
    return found if grade.direction is None else found._replace(direction=grade.direction)


def direction(question: str, said: str) -> Direction:
    """Return the direction of a statement as an answer to the question."""
    if _finding_match("unsure", said):
        return "unclear"
    clauses, asked = (
        [clause for clause in _WORDING["break"].split(said) if clause.strip()],
        _stems(question),
    )
    closest = sorted(clauses, key=lambda clause: -len(_stems(clause) & asked))
    read = (_of_clause(question, clause) for clause in closest)
    return next((each for each in read if each != "unclear"), "unclear")


def _of_clause(question: str, clause: str) -> Direction:
    plain = _WORDING["no_denial"].sub(" ", clause)
    if _finding_match("asks_same", question) and _finding_match("same", plain):
        return "effect"
    if _finding_match("none", plain):
        return "no_clear_effect"
    if not _finding_match("some", plain):
        return "unclear"
    return "opposite" if _opposite(question, plain) else "effect"


def _opposite(question: str, clause: str) -> bool:
    """Return whether a clause says the contrary of the change that the question asks about."""
    if (
        _finding_match("harm", clause)
        and (_finding_match("asks_good", question) or _finding_match("less", question))
        and not _finding_match("harm", question)
    ):
        return True
    less, more = bool(_finding_match("less", question)), bool(_finding_match("more", question))
    if less == more:
        return False
    against, along = (
        (_WORDING["more"], _WORDING["less"]) if less else (_WORDING["less"], _WORDING["more"])
    )
    return (
        bool(against.search(clause))
        and not along.search(clause)
        and not _finding_match("asks_good", clause)
    )


def _answering(question: str, text: str) -> tuple[_SectionSentence | None, Direction]:
    """Return the sentence on the asked outcome, of the conclusion, else of the results; and its
    direction.

    It is not read (unclear) where the sentence shares too few words with the question to be the
    answer to it: measured by ``benchmarks/screening_directions.py``, such sentences are right no
    more often than half the time.
    """
    sentences, asked = _section_sentences(text), _stems(question)
    labelled = any(_finding_match("concluding", each.section) for each in sentences)
    tail = [] if labelled else sentences[-_TAIL:]
    named = [
        each
        for each in sentences
        if not _finding_match("not_yet", each.section) and _names_outcome(question, each.text)
    ]
    concluding = [
        each for each in named if _finding_match("concluding", each.section) or each in tail
    ]
    if not named:
        return None, "unclear"

    def rank(each: _SectionSentence) -> tuple[int, int]:
        stated = bool(_finding_match("none", each.text) or _finding_match("some", each.text))
        return (
            len(_stems(each.text) & asked)
            + stated
            - 2 * bool(_finding_match("advises", each.text)),
            -each.start,
        )

    best = max(concluding or named, key=rank)
    least = _SHARED if best in concluding else _SHARED_RESULT
    shared = len(_stems(best.text) & asked) >= least * len(asked)
    return best, direction(question, best.text) if shared else "unclear"


@lru_cache(maxsize=64)
def _outcomes(question: str) -> tuple[frozenset[str], ...]:
    """Return the words of each name that the asked outcome has; of all concepts where none is read
    as an outcome.
    """
    concepts = read_question(question).concepts
    asked = [each for each in concepts if each.part == "outcome"] or list(concepts)
    names = [name for each in asked for name in (each.name, *(other.text for other in each.others))]
    return tuple(stems for name in names if (stems := _stems(name)))


def _names_outcome(question: str, said: str) -> bool:
    """Return whether a sentence has most words of one of the asked outcome's names."""
    said_stems = _stems(said)
    return any(2 * len(stems & said_stems) > len(stems) for stems in _outcomes(question))


def _section_sentences(text: str) -> list[_SectionSentence]:
    """Return the sentences without the labels of their sections; each knows its section."""
    found, section = [], ""
    for span in split_sentences(text):
        start = span.start
        if label := _LABEL.match(text, span.start, span.end):
            section, start = label.group(1), label.end()
        if start < span.end:
            found.append(_SectionSentence(start, span.end, section, text[start : span.end]))
    return found


def _stems(text: str) -> frozenset[str]:
    return frozenset(token.stem for token in tokens(text) if token.weight)


def best_kept(grades: Iterable[Grade], abstracts: Mapping[str, Abstract]) -> list[Grade]:
    """Return the grades of the abstracts that are kept and still held, the best first."""
    kept = [
        grade
        for grade in grades
        if grade.recommendation == "keep" and grade.abstract_id in abstracts
    ]
    return sorted(kept, key=lambda grade: (-(grade.quality or 0.0), grade.abstract_id))


def synthesise(
    question: str, grades: Iterable[Grade], abstracts: Mapping[str, Abstract]
) -> Synthesis:
    """Return what the kept abstracts found, the best first, and whether they agree."""
    best = best_kept(grades, abstracts)
    return synthesis_of(
        [finding_of(question, grade, abstracts[grade.abstract_id]) for grade in best]
    )


def synthesis_of(findings: Iterable[Finding]) -> Synthesis:
    """Return how many of these findings go which way, and whether they agree."""
    found = tuple(findings)
    counts: dict[Direction, int] = {
        name: sum(each.direction == name for each in found) for name in DIRECTIONS
    }
    stated = sum(counts.values()) - counts["unclear"]
    most = max(counts[name] for name in DIRECTIONS if name != "unclear")
    agree = None if stated < 2 else most >= AGREE_SHARE * stated
    return Synthesis(found, counts, agree, _direction_summary(counts, stated, agree))


def settled_outcome(found: Synthesis) -> Outcome:
    """Return the outcome of evidence that is enough: sufficient, or conflicting where the studies
    disagree.
    """
    return "conflicting" if found.agree is False else "sufficient"


def _direction_summary(counts: dict[Direction, int], stated: int, agree: bool | None) -> str:
    said = ", ".join(
        f"{counts[name]} {DIRECTION[name].text}" for name in DIRECTIONS if counts[name]
    )
    if not said:
        return "Nothing is kept, so there is no direction to count."
    if agree is None:
        return f"Direction of effect: {said}. Fewer than two studies state a direction."
    of_stated = f"{AGREE_SHARE:.0%} of the {stated} with a stated direction agree"
    return f"Direction of effect: {said}. " + (
        f"At least {of_stated}." if agree else f"Under {of_stated}: they conflict."
    )

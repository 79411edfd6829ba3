"""Finds the sentence of an abstract that answers the question, and the direction of that answer.

The sentence names the question's outcome, preferably in the conclusion. Significance is read before
the verb: "reduced (P = 0.34)" and a confidence interval that includes no effect are no clear
effect, as is "did not differ". If two treatments did equally well, and the question didn't ask to
compare them, the direction is ``comparable``: it says nothing about an effect over no treatment. A
direction that can't be read is ``unclear``, and isn't counted.

``benchmarks/screening_directions.py`` measures how often the direction is right.
"""

from __future__ import annotations

import re
from functools import lru_cache
from pathlib import Path
from typing import Literal, NamedTuple

from masis.audit.sentences import split_sentences
from masis.offline.text.tokens import tokens
from masis.schema.screening import Abstract, AbstractWords, Direction, Grade
from masis.screening.grading import rubric
from masis.screening.grading.designs import is_drug
from masis.screening.grading.question import read_question
from masis.screening.grading.wording import LONGEST_READ, joined_forms, read_tables
from masis.screening.sources.publication import publication_of

Change = Literal["down", "up", "good", "bad", "link"]
_CHANGES: tuple[Change, ...] = ("down", "up", "good", "bad")

# Without a section that is labeled as conclusion, the last two sentences count as one.
_TAIL = 2
# The least share of the question's words in a result that is interpreted.
_SHARED_RESULT = 0.4
_SIGNIFICANT_P = 0.05

_TABLES = read_tables(Path(__file__).with_name("directions.toml"))
_WORDING: dict[tuple[str, str], re.Pattern[str]] = {
    (table, name): re.compile(joined_forms(forms, _TABLES["names"]), re.I)
    for table, rows in _TABLES.items()
    if table != "names"
    for name, forms in rows.items()
}

# The heading of a section in a structured abstract: "RESULTS: ", "Main outcome measures: ".
_LABEL = re.compile(r"\s*([A-Z][A-Z ,/&'-]{2,60}|[A-Z][a-z]+(?: [a-z&]+){0,3}): +(?=\S)")
_BRACKETS = re.compile(r"\([^()]{0,300}\)|\[[^\[\]]{0,300}\]")
_P_VALUE = re.compile(
    r"\bp(?:[ -]?values?)?(?: for (?:\w+ )?trend)? ?([=<>≤≥]|<=|>=) ?(0?[.·]\d+|1\.0+)"
    r"|\b(n\.?s\.?)[,;)\]]",
    re.I,
)
_NUMBER = r"([-−–]?\d+(?:[.·]\d+)?)"
_INTERVAL = re.compile(
    rf"(?:\bci|confidence (?:interval|limit)s?|\d[.·]\d+ ?[\[(,;])[^\d()−–-]{{0,14}}{_NUMBER} ?%?"
    rf" ?(?:to|and|[-−–,;]) ?{_NUMBER}",
    re.I,
)
_RATIO = re.compile(r"ratio|\brelative|\bodds|\bhazard|\b[arcso]*[ohri]rr?\b", re.I)
_SHARE = re.compile(r"(\d+(?:[.·]\d+)?) ?%(?! ?(?:ci|confidence))", re.I)


class Finding(NamedTuple):
    """The sentence that states a study's result (None without a text), and its direction.

    ``adequate`` says whether the study is known to be large enough to speak against another.
    ``repeats`` is the abstract that reports the same study and is counted instead of this one.
    """

    abstract_id: str
    words: AbstractWords | None
    direction: Direction
    adequate: bool = True
    repeats: str | None = None


class _SectionSentence(NamedTuple):
    start: int
    end: int
    section: str
    text: str


def _match(table: str, name: str, text: str) -> re.Match[str] | None:
    return _WORDING[table, name].search(text)


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


def finding(question: str, abstract: Abstract) -> Finding:
    """Return the finding of an abstract on a question; its ``words`` are in ``abstract.text``.

    A sentence that doesn't name the outcome asked about has the direction ``unclear``.
    """
    if publication_of(abstract):
        return Finding(abstract.id, None, "unclear")
    sentences = _section_sentences(abstract.text[:LONGEST_READ])
    labeled = any(_match("sections", "concluding", sentence.section) for sentence in sentences)
    tail = [] if labeled else sentences[-_TAIL:]
    question_stems = _stems(question)
    ranked: list[tuple[bool, int, int, _SectionSentence]] = []
    for sentence in sentences:
        if _match("sections", "not_yet", sentence.section) or not _names_outcome(
            question, sentence.text
        ):
            continue
        concludes = bool(_match("sections", "concluding", sentence.section)) or sentence in tail
        # A stated result counts like one more shared word. Advice ("should be offered") repeats the
        # words of the question without a result, so it loses two. The earlier sentence wins a tie.
        score = (
            len(_stems(sentence.text) & question_stems)
            + (_change_at(sentence.text) is not None or _is_null(sentence.text))
            - 2 * bool(_match("clauses", "advises", sentence.text))
        )
        ranked.append((concludes, score, -sentence.start, sentence))
    if not ranked:
        return Finding(abstract.id, None, "unclear")
    concludes, _, _, best = max(ranked)
    shared = len(_stems(best.text) & question_stems)
    # A result that shares few words with the question is right only half of the time.
    is_related = concludes or shared >= _SHARED_RESULT * len(question_stems)
    return Finding(
        abstract.id,
        AbstractWords(start=best.start, end=best.end, text=best.text),
        direction(question, best.text) if is_related else "unclear",
    )


def direction(question: str, statement: str) -> Direction:
    """Return the direction of a statement as an answer to the question."""
    if _match("clauses", "unsure", statement):
        return "unclear"
    # Semicolons in brackets separate statistics, which belong to the clause before them.
    joined = _BRACKETS.sub(
        lambda match: match.group().replace(";", ",").replace(": ", " "), statement
    )
    parts = [joined] if _match("significance", "refers_back", joined) else _split_clauses(joined)
    # The clause that shares the most words with the question decides, if it states a direction.
    # Clauses about another outcome only count if none names the one asked about.
    question_stems = _stems(question)
    about = [part for part in parts if _names_outcome(question, part)] or parts
    closest = sorted(about, key=lambda part: -len(_stems(part) & question_stems))
    directions = (_clause_direction(question, part, joined) for part in closest)
    return next((found for found in directions if found != "unclear"), "unclear")


def _split_clauses(statement: str) -> list[str]:
    return [part for part in _WORDING["clauses", "break"].split(statement) if part.strip()]


def _clause_direction(question: str, clause: str, statement: str) -> Direction:
    plain = _WORDING["clauses", "no_denial"].sub(" ", clause)
    is_equal = _match("significance", "equal", plain) is not None
    if is_equal and _match("question", "same", question):
        return "effect"
    is_asked = _match("question", "compares", question) is not None
    if is_equal and not is_asked and _has_active(statement):
        return "comparable"
    if is_equal or _is_null(plain):
        return "no_clear_effect"
    asked, change = (
        _find_asked_change(question),
        _change_at(plain, _outcome_places(question, plain)),
    )
    if change in (None, "link"):
        change = _change_in_numbers(question, plain) or change
    # "Is related to" answers only a question on a relation or a risk.
    if change is None or (change == "link" and asked not in ("link", "up")):
        return "unclear"
    return _answer_direction(asked, change, plain)


def _answer_direction(asked: Change, change: Change, clause: str) -> Direction:
    """Return whether a change is the one that the question asks about, or its opposite."""
    if asked == "good" and change in ("up", "down"):
        is_desired = bool(_match("outcomes", "desired", clause))
        is_burden = bool(_match("outcomes", "burden", clause)) and not is_desired
        return "opposite" if (is_burden if change == "up" else is_desired) else "effect"
    opposites: dict[Change, tuple[Change, ...]] = {
        "down": ("up", "bad"),
        "up": ("down", "good"),
        "good": ("bad",),
        "bad": ("good",),
    }
    return "opposite" if change in opposites.get(asked, ()) else "effect"


@lru_cache(maxsize=64)
def _find_asked_change(question: str) -> Change:
    """Return the change that a question asks about: the first one it names, else any link."""
    named = [
        (match.start(), name)
        for name in _CHANGES[:3]
        if (match := _match("question", name, question))
    ]
    return min(named)[1] if named else "link"


def _has_active(statement: str) -> bool:
    """Return whether a statement compares treatments that work, not one with none."""
    if _match("significance", "active", statement):
        return True
    drugs = {word for word in re.findall(r"[a-z]+", statement.lower()) if is_drug(word)}
    return len(drugs) >= 2 and not _match("significance", "inert", statement)


def _is_null(clause: str) -> bool:
    """Return whether a clause says that nothing was shown, in words or by its statistics."""
    if _match("significance", "none", clause):
        return True
    p_values = list(_P_VALUE.finditer(clause))
    if p_values:
        first = p_values[0]
        if first[3]:
            return True
        value = float(first[2].replace("·", "."))
        return (
            value >= 1
            or (value > _SIGNIFICANT_P and not first[1].startswith("<"))
            or (first[1].startswith((">", "≥")) and value >= _SIGNIFICANT_P)
        )
    interval = _read_interval(clause)
    return interval is not None and interval[0] <= interval[2] <= interval[1]


def _read_interval(clause: str) -> tuple[float, float, float] | None:
    """Return the first confidence interval of a clause and the value that means no effect."""
    if (match := _INTERVAL.search(clause)) is None:
        return None
    low, high = (
        float(bound.replace("·", ".").replace("−", "-").replace("–", "-"))
        for bound in match.groups()
    )
    # A ratio is never negative, and its interval can't be one of a ratio below zero.
    is_ratio = low >= 0 and _RATIO.search(clause[: match.end()]) is not None
    return (low, high, 1.0 if is_ratio else 0.0) if low <= high else None


def _change_at(clause: str, places: tuple[int, ...] = ()) -> Change | None:
    """Return the change that a clause states, if several, the closest one to ``places``."""
    if _match("change", "lessened", clause):
        return "bad"
    plain = _WORDING["change", "amplified"].sub(lambda match: " " * len(match.group()), clause)
    found = [
        (min((abs(match.start() - place) for place in places), default=match.start()), match, name)
        for name in _CHANGES
        for match in _WORDING["change", name].finditer(plain)
    ]
    if not found:
        return "link" if _match("change", "link", plain) else None
    _, match, name = min(found, key=lambda entry: entry[0])
    flipped: dict[Change, Change] = {"up": "down", "down": "up", "good": "bad", "bad": "good"}
    return flipped[name] if _match("change", "of_comparator", plain[match.start() :]) else name


def _change_in_numbers(question: str, clause: str) -> Change | None:
    """Return the change that two percentages or a confidence interval show without a verb."""
    shares = list(_SHARE.finditer(clause))
    if len(shares) >= 2:
        # The group is named after its number: "8% of the probiotic group and 17% with placebo".
        first_group = clause[shares[0].end() : shares[1].start()]
        second_group = clause[shares[1].end() :]
        treated = _part_stems(question, "intervention")
        favors_first = (
            bool(_match("significance", "inert", second_group))
            - bool(_match("significance", "inert", first_group))
        ) or bool(_stems(first_group) & treated) - bool(_stems(second_group) & treated)
        first, second = (float(share[1].replace("·", ".")) for share in shares[:2])
        if favors_first and first != second:
            return "down" if (first < second) == (favors_first > 0) else "up"
    interval = _read_interval(clause)
    if interval is not None and interval[0] > interval[2]:
        return "up"
    return "down" if interval is not None and interval[1] < interval[2] else None


def _outcome_places(question: str, clause: str) -> tuple[int, ...]:
    outcome = _part_stems(question, "outcome")
    return tuple(token.start for token in tokens(clause) if token.stem in outcome)


@lru_cache(maxsize=64)
def _concept_names(question: str, part: str) -> tuple[tuple[frozenset[str], str], ...]:
    """Return the stems of each name of the question's concepts of a part, and its last stem.

    The last word is the head of a name: "adherence" in "medication adherence".
    """
    names = [
        name
        for concept in read_question(question).concepts
        if concept.part == part or not part
        for name in (concept.name, *(other.text for other in concept.others))
    ]
    return tuple(
        (frozenset(stems), stems[-1])
        for name in names
        if (stems := [token.stem for token in tokens(name) if token.weight])
    )


def _part_stems(question: str, part: str) -> frozenset[str]:
    return frozenset().union(*(stems for stems, _ in _concept_names(question, part)))


def _names_outcome(question: str, sentence: str) -> bool:
    """Return whether a sentence has most words of one of the names of the question's outcome.

    If no concept is recognized as an outcome, the names of all concepts count.
    """
    sentence_stems = _stems(sentence)
    names = _concept_names(question, "outcome") or _concept_names(question, "")
    return any(
        2 * len(stems & sentence_stems) + (head in sentence_stems) > len(stems)
        for stems, head in names
    )


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

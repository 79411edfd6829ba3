"""What a question asks about: its concepts, each with its part in the question and the words that
stand for it.

"Does metformin reduce mortality in patients with heart failure?" asks about *metformin* (what is
done), *mortality* (what comes of it) and *heart failure* (in whom): the P, I, C and O of a clinical
question, recognised by the words around them. There is no grammar: a part that isn't recognised is
``topic``. How much a concept weighs follows from how rare its words are in medical abstracts
(``rarity.json``, from ``tools/fit_term_rarity.py``).

A person who knows better writes lines below the question, and they take the place of what was read
of their part:

    population: adults with heart failure
    outcome: death = mortality, readmission
    comparison:

Commas separate concepts that must each be met, an equals sign gives another name for one, an empty
line says that the question has no such part. A screening keeps the lines in its settings
(``screening_concepts``).
"""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Mapping, Sequence
from functools import cache, lru_cache
from pathlib import Path
from typing import Literal, NamedTuple

from masis.offline.text.tokens import Token, stem, tokens
from masis.screening.grading.wording import read_word_lists

Part = Literal["population", "intervention", "comparison", "outcome", "topic"]
PARTS: tuple[Part, ...] = ("population", "intervention", "comparison", "outcome")
"""The parts that a person may write, in the order of PICO."""

_HERE = Path(__file__).parent
RARE = 0.75
"""The rarity of a word that occurs in fewer than one of a hundred abstracts."""
RARE_ENOUGH = 0.35
"""From this rarity on a word tells abstracts apart: "stroke" does, "adults" doesn't."""
LEAST_WEIGHT = 0.3
"""The least weight of a word that a question names, however common."""
LONGEST_QUESTION = 2_000
"""Characters of a question that are read; the rest of a pasted page is ignored."""
LONGEST_CONCEPTS = 2_000
"""Characters of one line of concepts."""
MOST_CONCEPTS = 20
"""Concepts of one part that are looked for."""
_LONGEST_PHRASE = 5
_LONGEST_CONCEPT = 3

_LISTED = read_word_lists(_HERE / "question_words.txt")
_FRAMING, _TO_OUTCOME = (frozenset(map(stem, _LISTED[name])) for name in ("framing", "to outcome"))


class Phrase(NamedTuple):
    """Words that stand for a concept, and their stems."""

    text: str
    stems: tuple[str, ...]


class Concept(NamedTuple):
    """One thing a question is about: its words, their stems, its weight, and other phrases that
    stand for it.
    """

    name: str
    part: Part
    stems: tuple[str, ...]
    rarities: tuple[float, ...]
    weight: float
    others: tuple[Phrase, ...]


class Question(NamedTuple):
    """A question and its concepts, in their order.

    ``text`` is what its meaning is taken from: the question, or the concepts where a person wrote
    any (``written`` names their parts).
    """

    text: str
    concepts: tuple[Concept, ...]
    written: tuple[Part, ...] = ()


@cache
def _rarities() -> dict[str, float]:
    listed: dict[str, float] = json.loads((_HERE / "rarity.json").read_text(encoding="utf-8"))
    return listed


def rarity(root: str) -> float:
    """Return how rare a stem is in medical abstracts: 0 in all of them, 1 in one."""
    return _rarities().get(root, RARE)


@cache
def synonyms() -> dict[tuple[str, ...], tuple[Phrase, ...]]:
    """Return for each phrase of ``synonyms.txt``, as stems, the phrases that match a question about
    it.
    """
    met: dict[tuple[str, ...], dict[tuple[str, ...], Phrase]] = {}
    for line in (_HERE / "synonyms.txt").read_text(encoding="utf-8").splitlines():
        if not line or line.startswith("#"):
            continue
        equal, _, kinds = line.partition(":")
        same = [phrase_of(text) for text in equal.split("=")]
        under = [phrase_of(text) for text in kinds.split(",") if text.strip()]
        for phrase in same:
            met.setdefault(phrase.stems, {}).update(
                {other.stems: other for other in (*same, *under)}
            )
    return {
        roots: tuple(other for other in others.values() if other.stems != roots)
        for roots, others in met.items()
    }


def phrase_of(text: str) -> Phrase:
    """Return a phrase with its stems."""
    return Phrase(text.strip(), tuple(token.stem for token in tokens(text)))


_LINE = re.compile(
    r"^[ \t]*(population|intervention|comparison|outcome)[ \t]*:[ \t]*(.*)$", re.I | re.M
)


def concept_lines(text: str) -> dict[Part, str]:
    """Return what the lines of concepts in a text say, by part; of two lines for one part the last
    one.
    """
    found: dict[Part, str] = {}
    for line in _LINE.finditer(text):
        part = next(each for each in PARTS if each == line.group(1).lower())
        found[part] = " ".join(line.group(2)[:LONGEST_CONCEPTS].split())
    return found


def written_lines(concepts: Mapping[Part, str]) -> str:
    """Return concepts by part as lines."""
    return "\n".join(
        f"{part}: {' '.join(concepts[part].split())}".rstrip() for part in PARTS if part in concepts
    )


def with_concepts(question: str, lines: str) -> str:
    """Return the question with the lines of concepts below it, as graders and searches read it."""
    written = written_lines(concept_lines(lines))
    return f"{question}\n{written}" if written else question


def question_of(question: str, settings: Mapping[str, object]) -> str:
    """Return the question of a screening with the concepts that its stored settings hold."""
    lines = settings.get("screening_concepts")
    return with_concepts(question, lines) if isinstance(lines, str) else question


def changed_lines(question: str, concepts: Mapping[Part, str]) -> str:
    """Return, as lines, the concepts that differ from what is read of the question: the others
    follow it.
    """
    read = concepts_as_text(question)
    return written_lines(
        {part: text for part, text in concepts.items() if " ".join(text.split()) != read[part]}
    )


@lru_cache(maxsize=256)
def read_question(text: str) -> Question:
    """Return the concepts of a question. One without any that names something falls back to its
    framing words.

    Lines of concepts in the text take the place of what would be read of their parts. What stands
    behind ``LONGEST_QUESTION`` characters of the question itself is not read.
    """
    lines = concept_lines(text)
    question = (_LINE.sub("", text).strip() if lines else text)[:LONGEST_QUESTION]
    read = _concepts_of_question(question)
    if not lines:
        return Question(question, read)
    concepts: list[Concept] = []
    for part in PARTS:
        if part in lines:
            concepts.extend(_concepts_of_line(lines[part], part))
        else:
            concepts.extend(concept for concept in read if concept.part == part)
    distinct = {(concept.stems or (concept.name,)): concept for concept in reversed(concepts)}
    kept = tuple(reversed(distinct.values()))
    return Question(_as_words(kept), kept, tuple(lines))


def concepts_as_text(text: str) -> dict[Part, str]:
    """Return what each part of a question holds, as a person would write it in a line of concepts.

    What a line of the text says of a part stands as it was written.
    """
    question = read_question(_LINE.sub("", text).strip() if concept_lines(text) else text)
    found: dict[Part, str] = dict.fromkeys(PARTS, "")
    end, last = 0, ""
    for concept in question.concepts:
        start = question.text.find(concept.name, end)
        together = concept.part == last and start >= end and not question.text[end:start].strip()
        name = " ".join(concept.name.split())
        before = found.get(concept.part, "")
        found[concept.part] = f"{before}{' ' if together else ', '}{name}" if before else name
        end, last = (start + len(concept.name), concept.part) if start >= end else (end, "")
    return found | concept_lines(text)


def _concepts_of_question(text: str) -> tuple[Concept, ...]:
    return tuple(
        (_concepts_by_stems(text, framing=False) or _concepts_by_stems(text, framing=True)).values()
    )


def _concepts_of_line(line: str, part: Part) -> list[Concept]:
    """Return the concepts of a person's line; one in letters that can't be looked for
    has no stems.
    """
    found: list[Concept] = []
    for piece in line.split(","):
        names = [name.strip() for name in piece.split("=") if name.strip()]
        sought = [name for name in names if _can_be_looked_for(name)]
        read = _concepts_of_question(names[0]) if len(names) == 1 and sought else ()
        found.extend(concept._replace(part=part) for concept in read)
        if names and not read:
            found.append(
                _concept_from_names(
                    names[0], [phrase for phrase in map(_content, sought) if phrase.stems], part
                )
            )
    return found[:MOST_CONCEPTS]


def _concept_from_names(name: str, phrases: Sequence[Phrase], part: Part) -> Concept:
    """Return one concept with all of these names, and with the synonyms of each."""
    if not phrases:
        return Concept(name, part, (), (), 1.0, ())
    first, *others = phrases
    known = [other for phrase in phrases for other in synonyms().get(phrase.stems, ())]
    also = {other.stems: other for other in (*others, *known) if other.stems != first.stems}
    return _weighted_concept(first.text, part, first.stems)._replace(others=tuple(also.values()))


def _weighted_concept(name: str, part: Part, stems: tuple[str, ...]) -> Concept:
    rarities = tuple(max(LEAST_WEIGHT, rarity(root)) for root in stems)
    return Concept(name, part, stems, rarities, max(rarities), synonyms().get(stems, ()))


def _content(text: str) -> Phrase:
    """Return a phrase with the stems of the words that name something, of all its words where none
    does.
    """
    words = tokens(text)
    naming = [word for word in words if word.weight > 0]
    return Phrase(text, tuple(word.stem for word in naming or words))


def _can_be_looked_for(text: str) -> bool:
    """Return whether a text has a letter that English abstracts are written in, or a digit."""
    return any(
        char.isdigit() or (char.isalpha() and "LATIN" in unicodedata.name(char, ""))
        for char in text
    )


def _as_words(concepts: Sequence[Concept]) -> str:
    """Return concepts as a question in a few words, in the order of a title: what, against what,
    for what, in whom.
    """
    leads = {"intervention": "", "comparison": "versus ", "outcome": "", "population": "in "}
    named = {
        part: " ".join(concept.name for concept in concepts if concept.part == part)
        for part in leads
    }
    return " ".join(f"{lead}{named[part]}" for part, lead in leads.items() if named[part])


def _concepts_by_stems(text: str, *, framing: bool) -> dict[tuple[str, ...], Concept]:
    """Return the concepts by their stems: known phrases, and up to three naming words that stand
    together.
    """
    found: dict[tuple[str, ...], Concept] = {}
    words = tokens(text)
    part: Part = "intervention"
    run: list[Token] = []
    at, before = 0, 0

    def add(*grouped: Token) -> None:
        stems = tuple(word.stem for word in grouped)
        if stems not in found:
            found[stems] = _weighted_concept(text[grouped[0].start : grouped[-1].end], part, stems)

    def end_run() -> None:
        for grouped in [run] if 0 < len(run) <= _LONGEST_CONCEPT else [[word] for word in run]:
            add(*grouped)
        run.clear()

    while at < len(words):
        word, length = words[at], _known_phrase_length(words, at)
        names = word.weight > 0 and (framing or not _frames(word))
        listed = length > 1 or (length > 0 and names)
        if listed or not names or any(sign in ",;:?.()/" for sign in text[before : word.start]):
            end_run()
        if listed:
            add(*words[at : at + length])
        elif names:
            run.append(word)
        elif "," in text[before : word.start] and word.text.lower() in _LISTED["asks"]:
            part = "intervention"  # "In older adults, does ...": what follows is no population
        elif word.text.lower() in _LISTED["to population"]:
            part = "population"
        elif word.text.lower() in _LISTED["to comparison"]:
            part = "comparison"
        elif word.stem in _TO_OUTCOME:
            part = "outcome"
        at += length if listed else 1
        before = words[at - 1].end
    end_run()
    return found


def _frames(word: Token) -> bool:
    """Return whether a word frames the question, as a listed word or a bare number does."""
    # "Rats" has the same stem as the framing word "rate", but names the animals studied.
    frames = word.stem in _FRAMING or word.stem in _TO_OUTCOME
    return word.text.isdigit() or (frames and word.text.lower() not in ("rat", "rats"))


def _known_phrase_length(words: Sequence[Token], at: int) -> int:
    """Return the length of the longest phrase of ``synonyms.txt`` at this word, or 0."""
    for length in range(min(_LONGEST_PHRASE, len(words) - at), 0, -1):
        if tuple(word.stem for word in words[at : at + length]) in synonyms():
            return length
    return 0

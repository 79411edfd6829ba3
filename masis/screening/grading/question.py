"""Extracts the concepts of a question, each with its part in the question and its synonyms.

"Does metformin reduce mortality in patients with heart failure?" asks about *metformin*
(intervention), *mortality* (outcome) and *heart failure* (population). These are parts of a
clinical question (PICO), recognized by the words around them, without a grammar. A concept whose
part isn't recognized is a ``topic``. The weight of a concept depends on how rare its words are in
medical abstracts (``rarity.json``, from ``tools/fit_term_rarity.py``).

A person can write lines below the question, which replace the concepts that were found for a part:

    population: adults with heart failure
    outcome: death = mortality, readmission
    comparison:

Commas separate concepts, which must all be met. An equals sign adds another name for a concept. In
a question, the members of a list ("asthma, COPD or bronchitis") are alternatives, as if an equals
sign were between them. An empty line says that the question has no such part. A screening stores
the lines in its settings (``screening_concepts``).
"""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Mapping, Sequence
from functools import cache, lru_cache
from pathlib import Path
from typing import Literal, NamedTuple

from masis.offline.text.tokens import Token, tokens
from masis.screening.grading.vocabulary import (
    Phrase,
    content_phrase,
    drug_endings,
    synonyms,
    word_stem,
    written_names,
)
from masis.screening.grading.wording import read_word_lists

Part = Literal["population", "intervention", "comparison", "outcome", "topic"]
PARTS: tuple[Part, ...] = ("population", "intervention", "comparison", "outcome")
"""The parts that a person can write, in the order of PICO."""

_HERE = Path(__file__).parent
RARE = 0.75
"""The rarity of a word that occurs in fewer than one of a hundred abstracts."""
DISTINCTIVE_FROM = 0.35
"""A word this rare distinguishes abstracts: "stroke" does, "adults" doesn't."""
MIN_WEIGHT = 0.3
"""The least weight of a word in a question, even if it is very common."""
LONGEST_QUESTION = 2_000
"""The most characters of a question that are read; the rest of a pasted page is ignored."""
LONGEST_CONCEPTS = 2_000
"""The most characters of one line of concepts."""
MAX_CONCEPTS = 20
"""The most concepts of one part."""
# The most words of a phrase in synonyms.txt, and of neighboring words that form one concept.
_LONGEST_PHRASE = 5
_LONGEST_CONCEPT = 3

_LISTED = read_word_lists(_HERE / "question_words.txt")
_FRAMING, _TO_OUTCOME, _GENERIC = (
    frozenset(map(word_stem, _LISTED[name])) for name in ("framing", "to outcome", "generic")
)
# What may stand between two members of a list, beside words that frame the question.
_LISTING = frozenset({"and", "or"})


class Concept(NamedTuple):
    """One concept of a question: its name, its stems, its weight and its other names.

    ``alternatives`` are the other members of a list in the question, or the other names that a
    person wrote. They are in ``others`` too. ``endings`` are those of the names of drugs that
    belong to the concept.
    """

    name: str
    part: Part
    stems: tuple[str, ...]
    rarities: tuple[float, ...]
    weight: float
    others: tuple[Phrase, ...]
    alternatives: tuple[Phrase, ...] = ()
    endings: tuple[str, ...] = ()


class Question(NamedTuple):
    """A question and its concepts, in their order.

    ``text`` is searched for first. It is the question or, if a person wrote concepts, a phrase of
    all concepts. ``written`` names the parts that the person wrote.
    """

    text: str
    concepts: tuple[Concept, ...]
    written: tuple[Part, ...] = ()

    @property
    def compared_text(self) -> str:
        """The text that is compared by meaning: with written concepts, all of their names."""
        if not self.written:
            return self.text
        return "; ".join(
            ", ".join([concept.name, *(other.text for other in concept.alternatives)])
            for concept in self.concepts
        )


@cache
def _rarities() -> dict[str, float]:
    listed: dict[str, float] = json.loads((_HERE / "rarity.json").read_text(encoding="utf-8"))
    return {word_stem(root): value for root, value in listed.items()} | listed


def rarity(root: str) -> float:
    """Return how rare a stem is in medical abstracts, from 0 (in all) to 1 (in one)."""
    return _rarities().get(root, RARE)


# A line of concepts: "outcome: death = mortality".
_LINE = re.compile(
    r"^[ \t]*(population|intervention|comparison|outcome)[ \t]*:[ \t]*(.*)$", re.I | re.M
)


def concept_lines(text: str) -> dict[Part, str]:
    """Return the lines of concepts in a text by part; if a part has two lines, the last one."""
    lines: dict[Part, str] = {}
    for line in _LINE.finditer(text):
        part = next(name for name in PARTS if name == line.group(1).lower())
        lines[part] = " ".join(line.group(2)[:LONGEST_CONCEPTS].split())
    return lines


def written_lines(concepts: Mapping[Part, str]) -> str:
    """Format concepts by part as lines."""
    return "\n".join(
        f"{part}: {' '.join(concepts[part].split())}".rstrip() for part in PARTS if part in concepts
    )


def with_concepts(question: str, lines: str) -> str:
    """Return the question with its lines of concepts below, the form that graders read."""
    written = written_lines(concept_lines(lines))
    return f"{question}\n{written}" if written else question


def question_of(question: str, settings: Mapping[str, object]) -> str:
    """Return the question of a screening with the concepts in its stored settings."""
    lines = settings.get("screening_concepts")
    return with_concepts(question, lines) if isinstance(lines, str) else question


def changed_lines(question: str, concepts: Mapping[Part, str]) -> str:
    """Return lines for the concepts that differ from those found in the question.

    The other parts get no line, so that they change if the question changes.
    """
    original = concepts_as_text(question)
    return written_lines(
        {part: text for part, text in concepts.items() if " ".join(text.split()) != original[part]}
    )


@lru_cache(maxsize=256)
def read_question(text: str) -> Question:
    """Return the concepts of a question.

    Words that only frame a question ("effect", "risk") aren't concepts, unless it has no others.
    Lines of concepts in the text replace those found for their parts. Only the first
    ``LONGEST_QUESTION`` characters of the question are read.
    """
    lines = concept_lines(text)
    question = (_LINE.sub("", text).strip() if lines else text)[:LONGEST_QUESTION]
    found = _concepts_of_question(question)
    if not lines:
        return Question(question, found)
    concepts: list[Concept] = []
    for part in PARTS:
        if part in lines:
            concepts.extend(_concepts_of_line(lines[part], part))
        else:
            concepts.extend(concept for concept in found if concept.part == part)
    # Reversed twice, so that the first of two equal concepts is kept at its position.
    distinct = {(concept.stems or (concept.name,)): concept for concept in reversed(concepts)}
    kept = tuple(reversed(distinct.values()))
    return Question(_as_words(kept), kept, tuple(lines))


def concepts_as_text(text: str) -> dict[Part, str]:
    """Return the concepts of each part, in the form of a line of concepts.

    A line that is already in the text is returned unchanged.
    """
    question = read_question(_LINE.sub("", text).strip() if concept_lines(text) else text)
    lines: dict[Part, str] = dict.fromkeys(PARTS, "")
    end, last = 0, ""
    for concept in question.concepts:
        start = question.text.find(concept.name, end)
        # Concepts with only spaces between them were one phrase, so they get no comma.
        is_same_phrase = (
            concept.part == last and start >= end and not question.text[end:start].strip()
        )
        names = (concept.name, *(other.text for other in concept.alternatives))
        name = " = ".join(" ".join(text.split()) for text in names)
        earlier = lines.get(concept.part, "")
        lines[concept.part] = (
            f"{earlier}{' ' if is_same_phrase else ', '}{name}" if earlier else name
        )
        is_alone = start >= end and not concept.alternatives
        end, last = (start + len(concept.name), concept.part) if is_alone else (end, "")
    return lines | concept_lines(text)


def _concepts_of_question(text: str) -> tuple[Concept, ...]:
    return tuple(
        (_concepts_by_stems(text, framing=False) or _concepts_by_stems(text, framing=True)).values()
    )


def _concepts_of_line(line: str, part: Part) -> list[Concept]:
    """Return the concepts of a person's line.

    A concept without any letter that English abstracts use has no stems.
    """
    concepts: list[Concept] = []
    for piece in line.split(","):
        names = [name.strip() for name in piece.split("=") if name.strip()]
        searchable = [name for name in names if _is_searchable(name)]
        parsed = _concepts_of_question(names[0]) if len(names) == 1 and searchable else ()
        concepts.extend(concept._replace(part=part) for concept in parsed)
        if names and not parsed:
            concepts.append(
                _concept_from_names(
                    names[0],
                    [phrase for phrase in map(content_phrase, searchable) if phrase.stems],
                    part,
                )
            )
    return concepts[:MAX_CONCEPTS]


def _concept_from_names(name: str, phrases: Sequence[Phrase], part: Part) -> Concept:
    """Return one concept with all of these names and their synonyms."""
    if not phrases:
        return Concept(name, part, (), (), 1.0, ())
    first, *others = (_weighted_concept(phrase.text, part, phrase.stems) for phrase in phrases)
    return _with_alternatives(first, others)


def _weighted_concept(name: str, part: Part, stems: tuple[str, ...]) -> Concept:
    rarities = tuple(max(MIN_WEIGHT, rarity(root)) for root in stems)
    others, endings = _names_of(stems)
    return Concept(name, part, stems, rarities, max(rarities), others, endings=endings)


def _names_of(stems: tuple[str, ...]) -> tuple[tuple[Phrase, ...], tuple[str, ...]]:
    """Return the other names of a phrase, and the endings of drugs that belong to it.

    If the vocabulary lacks the phrase, its last words count ("second-generation antihistamines").
    """
    for start in range(len(stems)):
        if others := synonyms().get(stems[start:]):
            named = (stems[start:], *(other.stems for other in others))
            endings = (ending for name in named for ending in drug_endings().get(name, ()))
            return others, tuple(dict.fromkeys(endings))
    return (), drug_endings().get(stems, ())


def _with_alternatives(concept: Concept, members: Sequence[Concept]) -> Concept:
    """Return a concept that is met if it or another member of its list is met."""
    others: dict[tuple[str, ...], Phrase] = {}
    for member in (concept, *members):
        listed = () if member is concept else (Phrase(member.name, member.stems),)
        others |= {other.stems: other for other in (*listed, *member.others)}
    others.pop(concept.stems, None)
    return concept._replace(
        others=tuple(others.values()),
        alternatives=tuple(Phrase(member.name, member.stems) for member in members),
        endings=tuple(
            dict.fromkeys(ending for one in (concept, *members) for ending in one.endings)
        ),
    )


def _is_searchable(text: str) -> bool:
    """Return whether a text has a Latin letter or a digit, so that English abstracts can match."""
    return any(
        char.isdigit() or (char.isalpha() and "LATIN" in unicodedata.name(char, ""))
        for char in text
    )


def _as_words(concepts: Sequence[Concept]) -> str:
    """Return concepts as a short phrase in the order of a title: "A versus B outcome in C"."""
    prefixes = {"intervention": "", "comparison": "versus ", "outcome": "", "population": "in "}
    named = {
        part: " ".join(concept.name for concept in concepts if concept.part == part)
        for part in prefixes
    }
    return " ".join(f"{prefix}{named[part]}" for part, prefix in prefixes.items() if named[part])


def _concepts_by_stems(text: str, *, framing: bool) -> dict[tuple[str, ...], Concept]:
    """Return the concepts by their stems: known phrases, and runs of up to three content words.

    ``framing`` says whether words that frame a question count as content. A longer run becomes one
    concept per word. The members of a list become one concept.
    """
    concepts: dict[tuple[str, ...], Concept] = {}
    words = tokens(text)
    part: Part = "intervention"
    run: list[Token] = []
    index, previous_end = 0, 0
    lists: list[list[Concept]] = []
    last_end = 0

    def add(*grouped: Token) -> None:
        nonlocal last_end
        stems = tuple(word_stem(word.text) for word in grouped)
        if stems in concepts:
            return
        start, end = grouped[0].start, grouped[-1].end
        concepts[stems] = concept = _weighted_concept(text[start:end], part, stems)
        if lists and lists[-1][-1].part == part and _are_listed(text[last_end:start]):
            lists[-1].append(concept)
        else:
            lists.append([concept])
        last_end = end

    def end_run() -> None:
        # "Anticholinergic drugs" are anticholinergics, but "drugs" alone are what is asked about.
        while len(run) > 1 and word_stem(run[-1].text) in _GENERIC:
            run.pop()
        for grouped in [run] if 0 < len(run) <= _LONGEST_CONCEPT else [[word] for word in run]:
            add(*grouped)
        run.clear()

    while index < len(words):
        word, length = words[index], _known_phrase_length(words, index)
        is_content = word.weight > 0 and (framing or not _frames(word))
        is_phrase = length > 1 or (length > 0 and is_content)
        if (
            is_phrase
            or not is_content
            or any(sign in ",;:?.()/" for sign in text[previous_end : word.start])
        ):
            end_run()
        if is_phrase:
            add(*words[index : index + length])
        elif is_content:
            run.append(word)
        elif "," in text[previous_end : word.start] and word.text.lower() in _LISTED["asks"]:
            part = "intervention"  # In "In older adults, does ...", the population ends here.
        elif word.text.lower() in _LISTED["to population"]:
            part = "population"
        elif word.text.lower() in _LISTED["to comparison"]:
            part = "comparison"
        elif word_stem(word.text) in _TO_OUTCOME:
            part = "outcome"
        index += length if is_phrase else 1
        previous_end = words[index - 1].end
    end_run()
    return {first.stems: _with_alternatives(first, members) for first, *members in lists}


def _are_listed(between: str) -> bool:
    """Return whether the text between two concepts makes them members of one list."""
    words = tokens(between)
    return (
        ("," in between or "/" in between or any(word.text.lower() in _LISTING for word in words))
        and not any(sign in between for sign in ";:?.()")
        and all(
            word.text.lower() in _LISTING or (word.weight > 0 and _frames(word)) for word in words
        )
    )


def _frames(word: Token) -> bool:
    """Return whether a word frames the question, as a listed word or a bare number does."""
    # "Rats" has the same stem as the framing word "rate", but names the animals studied.
    root = word_stem(word.text)
    frames = root in _FRAMING or root in _TO_OUTCOME
    return word.text.isdigit() or (frames and word.text.lower() not in ("rat", "rats"))


def _known_phrase_length(words: Sequence[Token], start: int) -> int:
    """Return the length of the longest known phrase that starts at a word, or 0.

    Of single words only the project's own count, because WordNet's may be part of a longer name
    that it lacks ("pain" in "osteoarthritis pain").
    """
    stems = tuple(word_stem(word.text) for word in words[start : start + _LONGEST_PHRASE])
    for length in range(len(stems), 1, -1):
        if stems[:length] in synonyms():
            return length
    return int(stems[:1] in written_names())

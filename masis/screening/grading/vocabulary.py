"""Reads the vocabulary of medical terms: synonyms, narrower terms, classes of drugs, and spelling.

Three files hold it. ``synonyms.txt`` was written for this project. ``vocabulary.txt`` is WordNet's
part on medicine (``tools/vocabulary.py``). ``drug_stems.txt`` lists the endings that the WHO
assigns to classes of drugs, so that new drugs are found too. British spellings count as American
ones.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from functools import cache, lru_cache
from pathlib import Path
from typing import NamedTuple

from masis.offline.text.tokens import WORD, stem, weight

_HERE = Path(__file__).parent
# The fewest letters before the ending of a drug's name, so that "april" is no ACE inhibitor.
_BEFORE_ENDING = 3
# British spellings and their American forms, in words of at least five letters. Both texts that are
# compared are changed, so a word that is changed by mistake still matches itself.
_SPELLINGS = tuple(
    (re.compile(british), american)
    for british, american in (
        (r"[ao]e", "e"),  # oesophagus, haemoglobin, diarrhoea
        (r"(?<=[a-z]{2})our(?=(?:s|ed|ing|al|ally|ist)?$)", "or"),  # tumour, behavioural
        (r"practis", "practic"),  # before the rule on "ise"
        (r"(?<=[a-z]{4})is(?=(?:e[ds]?|ing|ations?|ers?)$)", "iz"),  # randomised, hospitalisation
        (r"ys(?=(?:e[ds]?|ing)$)", "yz"),  # paralyse
        (r"(?<=[a-z][tb])re(?=s?$)", "er"),  # centre, fibre
        (r"sulph", "sulf"),
        (r"leuco", "leuko"),
        (r"logue(?=s?$)", "log"),
        (r"gramme(?=s?$)", "gram"),
        (r"ageing", "aging"),
        (r"aluminium", "aluminum"),
        (r"(?<=def|off)ence(?=s?$)", "ense"),
        (r"artefact", "artifact"),
        (r"judgement", "judgment"),
    )
)
_LEAST_LETTERS = 5


class Phrase(NamedTuple):
    """A name of a concept, and its stems."""

    text: str
    stems: tuple[str, ...]


@lru_cache(maxsize=65536)
def word_stem(word: str) -> str:
    """Return the stem of a word in American spelling: "oesophageal" and "esophageal" are one."""
    lower = word.lower()
    if len(lower) >= _LEAST_LETTERS and lower.isascii():
        for british, american in _SPELLINGS:
            lower = british.sub(american, lower)
    return stem(lower)


def phrase_of(text: str) -> Phrase:
    """Return a phrase with its stems."""
    return Phrase(text.strip(), tuple(word_stem(match.group()) for match in WORD.finditer(text)))


def content_phrase(text: str) -> Phrase:
    """Return a phrase with the stems of its content words, or of all words if it has none."""
    words = [match.group() for match in WORD.finditer(text)]
    content_words = [word for word in words if weight(word) > 0]
    return Phrase(text, tuple(map(word_stem, content_words or words)))


@cache
def synonyms() -> dict[tuple[str, ...], tuple[Phrase, ...]]:
    """Return the synonyms and narrower terms of each phrase of the vocabulary, by its stems.

    The project's own names come first. Narrower terms match a question about the broader one, but
    not the other way around.
    """
    names_by_stems: dict[tuple[str, ...], dict[tuple[str, ...], Phrase]] = {}
    for names, kinds in (*_project_terms(), *_wordnet_terms()):
        for phrase in names:
            names_by_stems.setdefault(phrase.stems, {}).update(
                {other.stems: other for other in (*names, *kinds)}
            )
    return {
        roots: tuple(other for other in others.values() if other.stems != roots)
        for roots, others in names_by_stems.items()
    }


@cache
def written_names() -> frozenset[tuple[str, ...]]:
    """Return the stems of the names in ``synonyms.txt``, without those that are only kinds."""
    return frozenset(phrase.stems for names, _ in _project_terms() for phrase in names)


def _content_lines(file: str) -> list[str]:
    text = (_HERE / file).read_text(encoding="utf-8")
    return [line for line in text.splitlines() if line and not line.startswith("#")]


def _project_terms() -> Iterator[tuple[list[Phrase], list[Phrase]]]:
    """Yield the names and kinds of each line of ``synonyms.txt``: "name = name: kind, kind"."""
    for line in _content_lines("synonyms.txt"):
        equal, _, kinds = line.partition(":")
        yield (
            [phrase_of(text) for text in equal.split("=")],
            [phrase_of(text) for text in kinds.split(",") if text.strip()],
        )


def _wordnet_terms() -> Iterator[tuple[list[Phrase], list[Phrase]]]:
    """Yield the names of each term of ``vocabulary.txt`` and those of all its narrower terms."""
    names: dict[str, list[Phrase]] = {}
    narrower: dict[str, list[str]] = {}
    for line in _content_lines("vocabulary.txt"):
        number, parents, listed = line.split("\t")
        names[number] = [phrase_of(name) for name in listed.split(" = ") if name]
        for parent in parents.split(","):
            narrower.setdefault(parent, []).append(number)

    def below(number: str) -> Iterable[str]:
        seen: dict[str, None] = {}
        waiting = list(narrower.get(number, ()))
        while waiting:
            term = waiting.pop()
            if term not in seen:
                seen[term] = None
                waiting.extend(narrower.get(term, ()))
        return seen

    for number, equal in names.items():
        if equal:
            yield equal, [phrase for term in below(number) for phrase in names[term]]


@cache
def drug_endings() -> dict[tuple[str, ...], tuple[str, ...]]:
    """Return the endings of drugs' names by the stems of their class."""
    endings: dict[tuple[str, ...], tuple[str, ...]] = {}
    for line in _content_lines("drug_stems.txt"):
        listed, _, classes = line.partition("|")
        for name in classes.split(","):
            roots = phrase_of(name).stems
            endings[roots] = (*endings.get(roots, ()), *listed.split())
    return endings


def has_ending(word: str, endings: tuple[str, ...]) -> bool:
    """Return whether a word in lower case is a drug's name with one of these endings."""
    return any(
        word.endswith(ending) and len(word) >= len(ending) + _BEFORE_ENDING for ending in endings
    )

"""Recognizes sentences that only say that something isn't known, stated or found.

The spec exempts three wordings (MASIS-CRITIC-HEDGES): ``insufficient evidence``, ``not provided``,
``cannot provide``. People and models use many more, in the languages of ``hedges.toml``. A hedge
excuses only its own clause, so a sentence that hedges and asserts ("The margin is not provided, but
revenue rose 12%") doesn't count. If in doubt, a clause asserts something.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from functools import cache
from importlib import resources
from typing import Any, NamedTuple

_MIN_WORDS = 3
"""A clause of fewer words ("if any", "sadly") asserts nothing."""
_MIN_WIDE_CHARACTERS = 4
"""The same minimum in characters, for scripts without spaces."""

# Marks that separate clauses in every language: a semicolon, a colon, a dash between spaces.
_STRONG = r"[;；:：。]\s*|\s[–—-]\s|\s*——?\s*"
# A comma, possibly with "and"; or "and" alone, unless "it is" or the like follows.
_COMMA = r"[,，、]\s*(?:(?:and|und|et|y|e|och|en|oraz|i|и)\s)?|\sand\s(?!\w+\s(?:is|are)\b)"
# "which", "who": a relative clause continues the clause before it.
_RELATIVE = re.compile(r"\s*(?:which|who|whose|whom)\b")
# A word with inner apostrophes, full stops and hyphens: "isn't", "e.g".
_WORD = re.compile(r"\w+(?:['’.-]\w+)*")
# Chinese and Japanese characters, which are counted instead of words.
_WIDE = re.compile(r"[\u2e80-\u9fff\uf900-\ufaff\U00020000-\U0003ffff]")


class Language(NamedTuple):
    """The hedges of one language.

    ``turns`` match the words between clauses; group 1 matches if an independent clause follows.
    """

    hedges: tuple[re.Pattern[str], ...]
    turns: re.Pattern[str]
    begins_with_turn: re.Pattern[str]
    continuations: re.Pattern[str]
    verbs: re.Pattern[str] | None

    def has_hedge(self, text: str) -> bool:
        """Return whether the text has a hedge."""
        return any(pattern.search(text) for pattern in self.hedges)

    def continues(self, clause_part: str) -> bool:
        """Return whether a part after a comma only continues the clause before it."""
        if self.continuations.search(clause_part):
            return True
        return (
            self.verbs is not None
            and not self.verbs.search(clause_part)
            and not _RELATIVE.match(clause_part)
        )


@cache
def tables() -> dict[str, dict[str, Any]]:
    """Return the tables of ``hedges.toml`` by language."""
    text = (
        resources.files("masis.audit.citations").joinpath("hedges.toml").read_text(encoding="utf-8")
    )
    return tomllib.loads(text)


@cache
def language(name: str) -> Language:
    """Return a language with compiled patterns; cached because most texts need only one or none."""
    table = tables()[name]
    turns, closers, verbs = table["turns"], table.get("closers"), table.get("verbs")
    edge = "" if _WIDE.search(turns) else r"\b"  # Chinese and Japanese have no spaces between words
    hedges = table["hedges"]
    for word, alternatives in table.get("words", {}).items():
        hedges = hedges.replace(f"{{{word}}}", alternatives)
    return Language(
        hedges=tuple(map(re.compile, hedges.strip().splitlines())),
        turns=re.compile(rf"({_STRONG}|[,，、]?\s?{edge}(?:{turns}){edge}[,，、]?)|(?:{_COMMA})"),
        begins_with_turn=re.compile(rf"(?:{turns}){edge}"),
        continuations=re.compile(
            rf"\A(?:{table['openers']}){edge}" + (rf"|(?:{closers})\W*\Z" if closers else "")
        ),
        verbs=re.compile(verbs) if verbs else None,
    )


@cache
def _cues() -> dict[str, re.Pattern[str]]:
    return {name: re.compile(table["cue"]) for name, table in tables().items()}


@cache
def _any_cue() -> re.Pattern[str]:
    """Return the cues of all languages as one pattern.

    A sentence without any cue is then searched only once.
    """
    return re.compile("|".join(f"(?:{table['cue']})" for table in tables().values()))


@cache
def _introduction() -> re.Pattern[str]:
    words = "|".join(str(table["introductions"]) for table in tables().values())
    return re.compile(rf"\A(?:{words})\b[,，、]?\s*")


class _Clause(NamedTuple):
    """A part of a sentence between two turns, and whether it is an independent clause."""

    text: str
    is_independent: bool


def hedges(sentence: str) -> bool:
    """Return whether the sentence, in any language, only says that something isn't known."""
    folded = sentence.casefold().strip()
    if not _any_cue().search(folded):
        return False
    text = _introduction().sub("", folded)
    languages = (language(name) for name, cue in _cues().items() if cue.search(text))
    return any(
        language_table.has_hedge(text) and not _asserts_more(text, language_table)
        for language_table in languages
    )


def _asserts_more(text: str, language: Language) -> bool:
    """Return whether a sentence asserts something besides its hedge."""
    clauses = list(_clauses(text, language))
    if len(clauses) < 2 and language.begins_with_turn.match(text):
        # Nothing marks the end of the hedge in "Despite insufficient evidence aspirin prevents
        # stroke".
        return True
    return any(_asserts(clause, language) for clause in clauses)


def _clauses(sentence: str, language: Language) -> Iterator[_Clause]:
    clause_start, is_independent = 0, False
    subordinate = language.begins_with_turn.match(sentence) is not None
    for boundary in language.turns.finditer(sentence):
        if text := sentence[clause_start : boundary.start()].strip():
            yield _Clause(text, is_independent)
            # The comma after "Although ..." ends the subordinate clause.
            is_independent = boundary.group(1) is not None or subordinate
            subordinate = False
        else:
            is_independent = boundary.group(1) is not None
        clause_start = boundary.end()
    if text := sentence[clause_start:].strip():
        yield _Clause(text, is_independent)


def _asserts(clause: _Clause, language: Language) -> bool:
    """Return whether a clause asserts something besides the hedge."""
    text, wide_characters = clause.text, len(_WIDE.findall(clause.text))
    too_short = (
        wide_characters < _MIN_WIDE_CHARACTERS
        if wide_characters
        else len(_WORD.findall(text)) < _MIN_WORDS
    )
    return (
        not too_short
        and not language.has_hedge(text)
        and (clause.is_independent or not language.continues(text))
    )

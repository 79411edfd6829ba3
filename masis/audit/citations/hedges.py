"""Recognise a sentence that says what the evidence does not tell, and asserts nothing else.

The spec exempts three wordings (MASIS-CRITIC-HEDGES): ``insufficient evidence``, ``not provided``, ``cannot provide``.
People and models say it in many more, in the languages of ``hedges.toml``. A hedge excuses only its own clause: a
sentence that hedges and asserts as well ("The margin is not provided, but revenue rose 12%") is no hedge. In doubt a
clause asserts something.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from functools import cache, cached_property
from importlib import resources
from typing import Any, NamedTuple

_WORDS_LEAST = 3
"""A clause of fewer words ("if any", "sadly") asserts nothing."""
_WIDE_LEAST = 4
"""The same in characters, for scripts that set no blanks."""

_STRONG = r"[;；:：。]\s*|\s[–—-]\s|\s*——?\s*"
_COMMA = r"[,，、]\s*(?:(?:and|und|et|y|e|och|en|oraz|i|и)\s)?|\sand\s(?!\w+\s(?:is|are)\b)"
_RELATIVE = re.compile(r"\s*(?:which|who|whose|whom)\b")
_WORD = re.compile(r"\w+(?:['’.-]\w+)*")
_WIDE = re.compile(r"[\u2e80-\u9fff\uf900-\ufaff\U00020000-\U0003ffff]")


class Language:
    """How one language hedges, from its table in ``hedges.toml``; patterns are compiled when first needed."""

    def __init__(self, table: dict[str, Any]) -> None:
        self._table = table
        self.cue = re.compile(table["cue"])
        # Chinese and Japanese set no blanks around words
        self._edge = "" if _WIDE.search(table["turns"]) else r"\b"

    @cached_property
    def _hedges(self) -> tuple[re.Pattern[str], ...]:
        patterns = []
        for line in self._table["hedges"].strip().splitlines():
            for name, words in self._table.get("words", {}).items():
                line = line.replace(f"{{{name}}}", words)
            patterns.append(re.compile(line))
        return tuple(patterns)

    @cached_property
    def turns(self) -> re.Pattern[str]:
        """What separates clauses; group 1 where a clause of its own follows."""
        edge = self._edge
        return re.compile(rf"({_STRONG}|[,，、]?\s?{edge}(?:{self._table['turns']}){edge}[,，、]?)|(?:{_COMMA})")

    @cached_property
    def begins_with_turn(self) -> re.Pattern[str]:
        """A sentence that opens with a subordinate clause."""
        return re.compile(rf"(?:{self._table['turns']}){self._edge}")

    @cached_property
    def _continues(self) -> re.Pattern[str]:
        opens = rf"\A(?:{self._table['openers']}){self._edge}"
        closers = self._table.get("closers")
        return re.compile(rf"{opens}|(?:{closers})\W*\Z" if closers else opens)

    @cached_property
    def _verbs(self) -> re.Pattern[str] | None:
        verbs = self._table.get("verbs")
        return re.compile(verbs) if verbs else None

    def hedged(self, text: str) -> bool:
        """Return whether the text holds a hedge."""
        return any(pattern.search(text) for pattern in self._hedges)

    def continues(self, text: str) -> bool:
        """Return whether a part behind a comma only continues the clause before it."""
        if self._continues.search(text):
            return True
        return self._verbs is not None and not self._verbs.search(text) and not _RELATIVE.match(text)


@cache
def languages() -> dict[str, Language]:
    """Return the languages of ``hedges.toml`` by name."""
    return {name: Language(table) for name, table in _tables().items()}


@cache
def _tables() -> dict[str, dict[str, Any]]:
    text = resources.files("masis.audit.citations").joinpath("hedges.toml").read_text(encoding="utf-8")
    return tomllib.loads(text)


@cache
def _introduction() -> re.Pattern[str]:
    words = "|".join(str(table["introductions"]) for table in _tables().values())
    return re.compile(rf"\A(?:{words})\b[,，、]?\s*")


class _Clause(NamedTuple):
    """A stretch of a sentence between two turns; ``own``: it begins a clause of its own rather than continuing one."""

    text: str
    own: bool


def hedges(sentence: str) -> bool:
    """Return whether the sentence only says what is not known, not stated or not found, in any of the languages."""
    low = _introduction().sub("", sentence.casefold().strip())
    return any(
        language.cue.search(low) and language.hedged(low) and not _asserts_beside(low, language)
        for language in languages().values()
    )


def _asserts_beside(low: str, language: Language) -> bool:
    clauses = list(_clauses(low, language))
    if len(clauses) < 2 and language.begins_with_turn.match(low):
        return True  # "Despite insufficient evidence aspirin prevents stroke": nothing says where the hedge ends
    return any(_asserts(clause, language) for clause in clauses)


def _clauses(low: str, language: Language) -> Iterator[_Clause]:
    at, own = 0, False
    subordinate = language.begins_with_turn.match(low) is not None
    for turn in language.turns.finditer(low):
        if text := low[at : turn.start()].strip():
            yield _Clause(text, own)
            # the comma behind "Although ..." ends what the word opened
            own = turn.group(1) is not None or subordinate
            subordinate = False
        else:
            own = turn.group(1) is not None
        at = turn.end()
    if text := low[at:].strip():
        yield _Clause(text, own)


def _asserts(clause: _Clause, language: Language) -> bool:
    """Return whether a clause says something of its own beside the hedge."""
    text = clause.text
    if _too_short(text) or language.hedged(text):
        return False
    return clause.own or not language.continues(text)


def _too_short(text: str) -> bool:
    wide = len(_WIDE.findall(text))
    return wide < _WIDE_LEAST if wide else len(_WORD.findall(text)) < _WORDS_LEAST

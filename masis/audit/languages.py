"""Reads the tables of ``languages.toml``, and finds the languages that apply to a text.

A text needs no language code. English abbreviations apply everywhere, because English titles,
companies and Latin shorthand are quoted everywhere. Those of another language apply if the text has
its function words or letters, or if its language is unknown.
"""

from __future__ import annotations

import re
import tomllib
from collections import Counter, defaultdict
from collections.abc import Mapping
from functools import cached_property
from importlib import resources

_WORD = re.compile(r"[^\W\d_]+")
_LETTER_WEIGHT = 2
"""A letter that only one language uses counts as this many function words."""

_FILE = resources.files("masis.audit").joinpath("languages.toml")
_CONTENT = tomllib.loads(_FILE.read_text(encoding="utf-8"))
_TABLES: dict[str, dict[str, str]] = _CONTENT["languages"]
_BITS = {name: 1 << number for number, name in enumerate(_TABLES)}
_EVERYWHERE = sum(
    bit for name, bit in _BITS.items() if name == "english" or "words" not in _TABLES[name]
)

FULL_STOPS: str = _CONTENT["full_stops"]
"""The stops of scripts that don't use the Latin stop. They always end a sentence."""

QUESTION_MARKS: str = _CONTENT["question_marks"]
"""The question marks of all scripts."""

WordTable = Mapping[str, int]
"""Lower-case words with their languages, one bit each."""


def _words_of_languages(key: str) -> WordTable:
    """Return the words that languages list under a key."""
    languages_of_word: dict[str, int] = defaultdict(int)
    for name, table in _TABLES.items():
        for word in table.get(key, "").split():
            languages_of_word[word] |= _BITS[name]
    return dict(languages_of_word)


def _pattern_of_languages(key: str) -> re.Pattern[str]:
    return re.compile("|".join(f"(?:{table[key]})" for table in _TABLES.values() if key in table))


def _with_ordinals(*kinds: str) -> int:
    return sum(_BITS[name] for name, table in _TABLES.items() if table.get("ordinals", "") in kinds)


def _abbreviation_beginnings(*tables: WordTable) -> WordTable:
    """Return the beginnings of abbreviations of several parts, from two parts to all."""
    languages_of_beginning: dict[str, int] = defaultdict(int)
    for table in tables:
        for phrase, languages in table.items():
            parts = phrase.split("_")
            for count in range(2, len(parts) + 1):
                languages_of_beginning["_".join(parts[:count])] |= languages
    return dict(languages_of_beginning)


NEVER_END = _words_of_languages("never_end")
NEVER_BEFORE_FIGURES = _words_of_languages("never_before_figures")
SELDOM_END = _words_of_languages("seldom_end")
SPACED = _words_of_languages("spaced")
SPACED_SELDOM_END = _words_of_languages("spaced_seldom_end")
YEARS = _words_of_languages("years")
AND_SO_ON = _words_of_languages("and_so_on")
SPACED_BEGINNINGS = _abbreviation_beginnings(SPACED, SPACED_SELDOM_END, AND_SO_ON)
_PARTS = [
    part for phrase in (*SPACED, *SPACED_SELDOM_END, *AND_SO_ON) for part in phrase.split("_")
]
ABBREVIATIONS = frozenset((*NEVER_END, *NEVER_BEFORE_FIGURES, *SELDOM_END, *YEARS, *_PARTS))
"""All words that are an abbreviation, or part of one, in some language."""
STARTERS = _words_of_languages("starters")
NAME_PARTICLES = frozenset(_CONTENT["name_particles"].split())
MONTHS = {
    word: languages & _with_ordinals("before_months", "after_determiners", "always")
    for word, languages in _words_of_languages("months").items()
}
DETERMINERS = _words_of_languages("determiners")
ORDINALS = _with_ordinals("after_determiners", "always")
ORDINALS_ALWAYS = _with_ordinals("always")
LETTERED = _words_of_languages("lettered")
TITLES = _words_of_languages("titles")
NAMES = _words_of_languages("names")
CONNECTIVES = tuple(_words_of_languages("connectives"))
HOURS = _words_of_languages("hours")
BEHIND_HOURS = _words_of_languages("behind_hours")
SPEECH = _pattern_of_languages("speech")
QUOTATION_GOES_ON = _pattern_of_languages("quotation_goes_on")

_FUNCTION_WORDS = {
    word: tuple(name for name, bit in _BITS.items() if bit & languages)
    for word, languages in _words_of_languages("words").items()
}
_LETTERS = {name: table["letters"] for name, table in _TABLES.items() if "letters" in table}


_NEGATIONS = frozenset(
    """
        not no never none nothing nobody nor neither without only silent nicht nichts kein keine
        keinen keiner keines nie niemals ohne nur ne pas jamais sans aucun aucune nunca sin solo
        sólo ningún ninguna non mai senza nessun nessuna niet geen nooit zonder slechts não sem
        apenas nenhum nenhuma bez tylko żaden żadne не нет без никогда только inte ikke ej ingen
    """.split()
)
# "isn't", "don’t".
_CONTRACTED_NEGATION = re.compile(r"n['’]t\Z")
# Negations in Chinese, Japanese and Korean, which are not separate words.
_UNSPACED_NEGATION = re.compile(r"不|没|沒|未|無|无|ない|ません|ず|않|없|아니")


def is_negation(word: str) -> bool:
    """Return whether a lower-case word negates a sentence, in the languages of most answers.

    Words that restrict a sentence ("only") count too.
    """
    return word in _NEGATIONS or _CONTRACTED_NEGATION.search(word) is not None


def negates(text: str) -> bool:
    """Return whether a text has a negation."""
    # A word, possibly with an apostrophe: "isn't".
    words = re.findall(r"[^\W\d_]+(?:['’][^\W\d_]+)?", text.lower())
    return any(map(is_negation, words)) or _UNSPACED_NEGATION.search(text) is not None


_CONNECTING_WORDS = frozenset(
    """
        addition additionally also altogether besides conclusion consequently contrast example
        finally furthermore hence however instance likewise moreover namely nevertheless nonetheless
        overall similarly summary then therefore thereby thus well außerdem beispiel beispielsweise
        daher darüber dennoch deshalb ferner folglich hinaus hingegen insgesamt jedoch nämlich
        schließlich somit zudem zusammenfassend zusätzlich ailleurs ainsi cependant conclusion donc
        effet enfin exemple outre pourtant revanche toutefois résumé además ejemplo embargo
        finalmente igualmente obstante resumen también anche inoltre esempio infine quindi tuttavia
        bijvoorbeeld bovendien daarnaast echter tenslotte além disso exemplo porém portanto também
        кроме того например однако поэтому также
    """.split()
)
"""Words of phrases that join sentences and assert nothing, such as "in addition"."""


def is_function_word(word: str) -> bool:
    """Return whether a lower-case word has no content of its own in some language.

    Such a word only joins others ("the", "und") or opens sentences.
    """
    return word in _FUNCTION_WORDS or word in STARTERS or word in _CONNECTING_WORDS


def guess_languages(text: str) -> tuple[int, int]:
    """Guess the languages of a text from its function words and letters.

    Returns:
        The likely languages, which have at least half as many function words in the text as the
        best one, and the languages with the most function words; one bit each, or 0 if nothing
        indicates any.

    """
    counts: dict[str, int] = defaultdict(int)
    word_counts = Counter(_WORD.findall(text.lower()))
    for word in word_counts.keys() & _FUNCTION_WORDS.keys():
        for name in _FUNCTION_WORDS[word]:
            counts[name] += word_counts[word]
    for name, letters in _LETTERS.items():
        if any(letter in text for letter in letters):
            counts[name] += _LETTER_WEIGHT
    highest_count = max(counts.values(), default=0)
    likely = sum(_BITS[name] for name, count in counts.items() if count * 2 >= highest_count)
    best = sum(_BITS[name] for name, count in counts.items() if count == highest_count)
    return likely, best


class TextLanguages:
    """The languages of a text or of a part of it.

    They are determined on demand, because most texts don't need them.
    """

    def __init__(
        self, text: str, start: int = 0, end: int | None = None, around: TextLanguages | None = None
    ) -> None:
        """Store the span, and the surrounding text whose languages apply if the span shows none."""
        self._text, self._start, self._end, self._around = text, start, end, around

    @cached_property
    def _guess(self) -> tuple[int, int]:
        likely, best = guess_languages(self._text[self._start : self._end])
        return self._around._guess if not likely and self._around else (likely, best)

    @cached_property
    def uses_danda(self) -> bool:
        """Whether sentences end with the Indic danda.

        In such a text, a Latin stop after a short word abbreviates the word.
        """
        return "।" in self._text[self._start : self._end]

    def have(self, table: WordTable, spelling: str) -> bool:
        """Return whether a language of the text lists the spelling.

        If the languages of the text aren't known, any language counts.
        """
        languages = table.get(spelling)
        if languages is None:
            return False
        if languages & _EVERYWHERE:
            return True
        likely, _ = self._guess
        return not likely or bool(languages & likely)

    def surely_have(self, table: WordTable, spelling: str) -> bool:
        """Return whether a language that the text is known to use lists the spelling."""
        languages = table.get(spelling)
        return languages is not None and bool(languages & _EVERYWHERE or languages & self._guess[0])

    def are_surely(self, languages: int) -> bool:
        """Return whether the text is more likely in one of these languages than in any other."""
        return bool(self._guess[1] & languages)

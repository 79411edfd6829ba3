"""Decides whether a stop ends a sentence or belongs to a number, abbreviation, date or name.

The words for this are in ``languages.toml``. Every rule reads a bounded span around the stop, so
that the time grows linearly with the text.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from typing import NamedTuple

from masis.audit import languages as tables
from masis.audit.languages import TextLanguages
from masis.audit.markers.styles import style_table

_CLOSERS = "\"'”’»›」』）)］】}*_"
_QUOTES_CLOSED = frozenset('"”“»«」』')
_QUOTES_OPENED = '"“„«»「『'
_LATIN_STOPS = ".!?…‽‼⁇⁈⁉"
_WIDE = frozenset(tables.FULL_STOPS)

SENTENCE_ENDS = frozenset(_LATIN_STOPS + tables.FULL_STOPS)
"""Every character that can end a sentence."""

STOP = re.compile(
    rf"[{re.escape(_LATIN_STOPS + tables.FULL_STOPS)}]++[{re.escape(_CLOSERS)}]*+"
    # German closes with the mark that opens in English: „Warum?“, »Warum?«. French puts a space
    # before the closing quote. If a word follows directly, the quote opens.
    rf"(?:[“‘«](?=[\s,;:.)]|\Z)|[ \u00a0\u202f]»(?=[\s,;.]|\Z))?"
)
"""A run of stops with the closing quotes and brackets after it."""

_STOPLESS = "\u0e00-\u0eff"
"""The letters of Thai and Lao, which have no stops."""
_SCRIPT_STOPS = {
    # The question mark of Greek looks like a semicolon, and is one in Unicode's normal form.
    "\u0370-\u03ff\u1f00-\u1fff": (
        rf"(?<=[\u0370-\u03ff\u1f00-\u1fff])[;\u037e]++[{re.escape(_CLOSERS)}]*+"
    ),
    # Armenian is often typed with the colon of Latin.
    "\u0531-\u0587": r"(?<=[\u0561-\u0587]):(?=\s++[\u0531-\u0556])",
    # Ethiopic is often typed with two word spaces for its stop.
    "\u1200-\u137f": r"፡፡",
}
"""Stops that only texts of some scripts have, by the letters of the script."""
_SCRIPT_LETTERS = {script: re.compile(f"[{script}]") for script in (_STOPLESS, *_SCRIPT_STOPS)}
_ANY_SUCH_SCRIPT = re.compile(f"[{''.join(_SCRIPT_LETTERS)}]")
_STOPLESS_LETTER = _SCRIPT_LETTERS[_STOPLESS]


@cache
def _stops_with(scripts: tuple[str, ...], openings: str) -> re.Pattern[str]:
    # In a script without stops, the position before a marker is a stop: an empty match.
    before_marker = rf"(?<=[{_STOPLESS}])(?=\s?[{re.escape(openings)}])"
    return re.compile(
        "|".join([STOP.pattern, *(_SCRIPT_STOPS.get(script, before_marker) for script in scripts)])
    )


def stops_of(text: str, start: int, end: int) -> Iterator[re.Match[str]]:
    """Yield the matches of ``STOP`` in a span, and of the stops that only its script has."""
    if text.isascii() or not _ANY_SUCH_SCRIPT.search(text, start, end):
        return STOP.finditer(text, start, end)
    scripts = [
        script for script, letter in _SCRIPT_LETTERS.items() if letter.search(text, start, end)
    ]
    return _stops_with(tuple(scripts), style_table().openings).finditer(text, start, end)


# The word before a stop, without the quotes and brackets around it.
_LAST_WORD = re.compile(r"[^\s(\[{\"'“”‘’„‚«»/—–*]+\Z")
# The word after a stop, after any opening quotes, brackets and emphasis.
_NEXT_WORD = re.compile(r"[\s\"'“‘«»„‚‹›¿¡「『(\[*_—–]*([^\W_][\w’'-]*)?")
# "U.S", "J.-P" before their last stop.
_DOTTED = re.compile(r"(?:[^\W\d_]\.-?)+[^\W\d_]\Z")
# The apostrophe of "There's", typed or typeset.
_APOSTROPHE = re.compile(r"['’]")
# "iPhone", "mRNA" and "pH" begin sentences without a capital.
_INNER_CAPITAL = re.compile(r"[a-z]{1,3}[A-Z]")
# The next dot of "wait . . . what".
_SPACED_STOP = re.compile(r"[.!?](?:[\s.!?]|\Z)")
# Chinese and Japanese letters.
_UNSPACED_LETTER = re.compile(r"[\u2e80-\u9fff\uf900-\ufaff\U00020000-\U0003ffff]")
# "1931 " before a stop that may abbreviate "year".
_YEAR_BEFORE = re.compile(r"\d{3,4}\s\Z")
# A Roman numeral, as in "Ludwig XIV."
_ROMAN = re.compile(r"[IVXLC]+\Z")
_WORDS_OF_A_TIME = 3
"""Maximum number of words of a phrase such as "in June 1931"."""
_LONGEST_INDENT = 60
"""Maximum number of characters before the number of a list item."""
_LONGEST_PART = 5
"""Maximum number of characters in a part of an abbreviation with spaces."""
_PART = rf"[^\W\d_][^\W_]{{0,{_LONGEST_PART - 1}}}"
# The parts of an abbreviation with spaces, "z. B" before its last stop. The length of a part is
# bounded, so that the search stays linear.
_PARTS_BEFORE = re.compile(rf"(?:\b{_PART}\.?\s){{1,3}}{_PART}\Z")
# The determiner before an ordinal: "der 2. Weltkrieg".
_WORD_BEFORE = re.compile(r"([^\W\d_]+)\s+\Z")
# "24., " or "24. und " before another ordinal: "am 24., 25. und 26. Mai".
_ORDINAL_BEFORE = re.compile(r"\d\.,?(?:\s[^\W\d_]{1,5})?\s+\Z")
# "3. 5. 1931" and "1931. 5. 3."
_NUMERIC_DATE = re.compile(
    r"\b(?:\d{1,2}\.\s?\d{1,2}\.\s?\d{2,4}\b|\d{4}\.\s?\d{1,2}\.\s?\d{1,2}\b)"
)
# "1931. 5. " before the day of a Korean date.
_YEAR_AND_MONTH_BEFORE = re.compile(r"\b\d{4}\.\s?\d{1,2}\.\s?\Z")
# A word before single capitals in a list: "types A and B", "vitamin C". The repetition is
# possessive (*+), so that a long list isn't tried again in shorter pieces.
_LETTERS_BEFORE = re.compile(
    r"([^\W\d_]{2,})\s+(?:[A-Z]\s?(?:,\s(?:and|or)\s|,|and\s|or\s|&|to\s)\s?)*+\Z"
)
# A title before a name: "King George V."
_RULER_BEFORE = re.compile(r"([^\W\d_]+)\s+[^\W\d_]+\s+\Z")
# A word in one of the scripts of India.
_INDIC = re.compile(r"[\u0900-\u0dff]+\Z")
# Digits and letters, also in full width, around the full-width stop of a decimal.
_FULL_WIDTH = re.compile(r"[0-9\uff10-\uff5a]")
_WIDE_NAMES = tuple(name for name in tables.NAMES if name[-1] in _WIDE)


class _StopContext(NamedTuple):
    """A stop with the context that the rules read."""

    text: str
    stop: int  # its position
    start: int  # where its sentence began
    following: str  # the next word, empty if there is none
    following_is_dotted: bool
    languages: TextLanguages

    def before(self, length: int, characters: int = 0) -> str:
        """Return the last characters of the sentence before those that end at the stop."""
        end = self.stop - length
        return self.text[max(self.start, end - characters) : end]

    def next_word_starts_sentence(self) -> bool:
        """Return whether the next word usually begins sentences and seldom follows a name.

        This is also true if there is no next word.
        """
        word = _APOSTROPHE.split(self.following.lower(), maxsplit=1)[0]
        return not word or self.languages.surely_have(tables.STARTERS, word)


def ends_sentence(
    text: str,
    stop: re.Match[str],
    end: int,
    start: int,
    limit: int,
    languages: TextLanguages,
    *,
    cited: bool,
    marked: bool,
) -> bool:
    """Return whether a stop ends its sentence.

    Args:
        text: The whole text.
        stop: The match of ``STOP``.
        end: The possible end of the sentence, after closing quotes and citations and before
            ``limit``.
        start: The start of the sentence.
        limit: The end of the block.
        languages: The languages of the block.
        cited: Whether a citation of this sentence follows the stop.
        marked: Whether a citation of the next sentence follows the stop.

    """
    position, run = stop.start(), stop.group()
    if not run:
        following = text[end : min(end + 20, limit)].lstrip()
        return (
            cited
            and _STOPLESS_LETTER.match(following) is not None
            and not following.startswith(tables.CONNECTIVES)
        )
    if not _WIDE.isdisjoint(run) or run == "፡፡":
        return cited or not _wide_sentence_continues(text, stop, start)
    following = text[end]
    if not following.isspace():
        # Without a space after it, the stop is part of a number, an address or a file name. It ends
        # the sentence anyway if a marker is between them, or in a script without spaces.
        if cited:
            return following.isupper() or following == "<" or ord(following) > 0x2E80
        return (
            run[0] in "!?"
            and _UNSPACED_LETTER.match(following) is not None
            and not _is_end_of_name(text, position, start, languages)
            and not (
                _QUOTES_CLOSED & set(run) and tables.QUOTATION_GOES_ON.match(text[end : end + 40])
            )
        )
    next_word_match = _NEXT_WORD.match(text, end, min(limit, end + 60))
    assert next_word_match is not None  # it matches the empty string
    text_after = text[end : end + 40].lstrip()
    opens_tag = (cited or marked) and text_after.startswith("<")
    if text_after and (
        (text_after[0] in ",;:)]}%=<>" and not opens_tag) or _SPACED_STOP.match(text_after)
    ):
        return False
    next_word = next_word_match.group(1) or ""
    # The next word of "Blue. [chunk_2] Grass" is an id, whose case is irrelevant.
    lower_follows = not marked and next_word[:1].islower() and not _INNER_CAPITAL.match(next_word)
    is_full_stop = run[0] == "." and not run.startswith(("..", ".!", ".?"))
    closings = style_table().closing_brackets
    if is_full_stop and not lower_follows and text.endswith(closings, start, position):
        # After a citation, as most sentences of an answer end; no word needs to be looked up.
        return True
    last_word = _LAST_WORD.search(text[max(start, position - 30) : position])
    word_before = last_word.group() if last_word else ""
    if is_full_stop and _is_plain_word(word_before):
        return not lower_follows or (cited and len(word_before) > 2)
    context = _StopContext(
        text,
        position,
        start,
        next_word,
        text[next_word_match.end() : next_word_match.end() + 1] == ".",
        languages,
    )
    if is_full_stop:
        return _full_stop_ends_sentence(
            context, word_before, lower_follows=lower_follows, cited=cited
        )
    if lower_follows:
        return run[0] == "." and cited
    if (
        _is_end_of_name(text, position, start, languages)
        and not context.next_word_starts_sentence()
    ):
        return False
    return not (_QUOTES_CLOSED & set(run) and _is_end_of_spoken_quotation(text, stop, end, start))


def _is_plain_word(word: str) -> bool:
    """Return whether the word isn't an abbreviation in any language.

    A stop after such a word, or after a citation, ends the sentence. This shortcut spares most
    stops the other rules, which take most of the time.
    """
    return word.endswith(style_table().closing_brackets) or (
        len(word) > 1
        and word.isalpha()
        and not word.isupper()
        and word.lower() not in tables.ABBREVIATIONS
        and word not in tables.ABBREVIATIONS
        and (word.isascii() or not _INDIC.match(word))
    )


def _full_stop_ends_sentence(
    context: _StopContext, word: str, *, lower_follows: bool, cited: bool
) -> bool:
    languages, following, folded = context.languages, context.following.lower(), word.lower()
    if ".-" in folded and folded not in tables.ABBREVIATIONS and not _DOTTED.match(folded):
        folded = folded.rpartition(".-")[2]  # Dipl.-Ing
    # A single letter is an abbreviation only as written: Johnson v. Smith, but King George V.
    abbreviates = languages.have(tables.NEVER_END, word) or (
        len(word) > 1 and languages.have(tables.NEVER_END, folded)
    )
    if abbreviates or _is_list_number(context, word):
        return False
    is_figure = following[:1].isdigit() or (len(following) > 1 and _ROMAN.match(context.following))
    if is_figure and languages.have(tables.NEVER_BEFORE_FIGURES, folded):
        return False
    seldom_ends = languages.have(tables.SELDOM_END, folded)
    if lower_follows:
        return (
            cited
            and len(word) > 2
            and "." not in word
            and not seldom_ends
            and folded not in tables.HOURS
        )
    if _is_ordinal_or_date(context, word):
        return False
    if word and (len(word) <= _LONGEST_PART or "." in word):
        parts = _parts_before(context, word)
        if _is_inside_abbreviation(context, parts or [folded]) or _ends_with(
            tables.SPACED, parts, languages
        ):
            return False
        seldom_ends = seldom_ends or _ends_with(tables.SPACED_SELDOM_END, parts, languages)
        if _ends_with(tables.AND_SO_ON, parts, languages):
            return True
    if languages.have(tables.AND_SO_ON, folded):
        return True
    if folded in tables.HOURS:
        # A time zone continues the sentence: "5 p.m. Eastern", "5 p.m. EST".
        return following not in tables.BEHIND_HOURS and not (
            len(following) <= 4 and context.following.isupper()
        )
    if languages.have(tables.YEARS, folded) and _YEAR_BEFORE.search(context.before(len(word), 5)):
        # W 1931 r. Anna ..., but: Zmarł w Krakowie w 1931 r. Anna ...
        return (
            context.next_word_starts_sentence()
            or len(context.before(len(word), 60).split()) > _WORDS_OF_A_TIME
        )
    if len(word) == 1 and word.isalpha():
        return _letter_ends_sentence(context, word)
    if seldom_ends or _DOTTED.match(word):
        return context.next_word_starts_sentence()
    return not (_is_short_indic(word) and languages.uses_danda)


def _letter_ends_sentence(context: _StopContext, letter: str) -> bool:
    """Return whether a sentence ends after a letter: "vitamin C." but not "A. A. Milne"."""
    if len(context.following) == 1 and context.following_is_dotted:
        return False
    if letter.isupper():
        return _is_lettered(context, letter) or (
            context.following.lower() not in tables.NAME_PARTICLES
            and context.next_word_starts_sentence()
        )
    if context.languages.have(tables.SELDOM_END, letter):
        return context.next_word_starts_sentence()
    return not (_is_short_indic(letter) and context.languages.uses_danda)


def _is_short_indic(word: str) -> bool:
    """Return whether a word of a script of India is short enough to be an initial.

    An initial is one letter, or two with signs.
    """
    return _INDIC.match(word) is not None and sum(map(str.isalpha, word)) <= 2


def _wide_sentence_continues(text: str, stop: re.Match[str], start: int) -> bool:
    """Return whether the sentence continues after a stop of a script without spaces.

    It does after the stop of a decimal or of a quotation.
    """
    position, end, run = stop.start(), stop.end(), stop.group()
    if run == "．":
        return position > start and bool(
            _FULL_WIDTH.match(text, position - 1) and _FULL_WIDTH.match(text, end)
        )
    quoted = not _QUOTES_CLOSED.isdisjoint(run)
    if not quoted and not text[max(start, position - 20) : position + 1].endswith(_WIDE_NAMES):
        return False
    if tables.QUOTATION_GOES_ON.match(text[end : end + 40]):
        return True
    return quoted and _is_end_of_spoken_quotation(text, stop, end, start)


def _is_end_of_name(text: str, position: int, start: int, languages: TextLanguages) -> bool:
    """Return whether the mark is the end of a name: Yahoo!"""
    word = _LAST_WORD.search(text[max(start, position - 30) : position])
    return (
        word is not None
        and word.group()[0].isupper()
        and languages.have(tables.NAMES, word.group().lower() + text[position])
    )


def _is_end_of_spoken_quotation(text: str, stop: re.Match[str], end: int, start: int) -> bool:
    """Return whether a quotation is the whole sentence so far, and its speaker follows.

    An example is the first mark in ``"Why?" Smith asked.``
    """
    first = text[start : start + 40].lstrip()[:1]
    return (
        first != ""
        and first in _QUOTES_OPENED
        and text[stop.start()] != "."
        and tables.SPEECH.match(text[end : end + 80].lstrip()) is not None
    )


def _is_list_number(context: _StopContext, word: str) -> bool:
    """Return whether the stop belongs to the number of a list item: ``1. Wash``, ``a. Wash``."""
    if not (word.isdigit() and len(word) <= 3) and not (len(word) == 1 and word.isalpha()):
        return False
    before = context.stop - len(word) - context.start
    return before <= _LONGEST_INDENT and not context.before(len(word), before).strip(" \t\r\n*_-(")


def _is_ordinal_or_date(context: _StopContext, word: str) -> bool:
    """Return whether the stop belongs to an ordinal or a date: "am 3. Mai", "3. 5. 1931"."""
    following, languages = context.following, context.languages
    if word.isdecimal() and len(word) <= 4:
        before = context.before(len(word), 10)
        if following[:1].isdecimal():
            context_text = before + context.text[context.stop - len(word) : context.stop + 14]
            stop = len(before) + len(word)
            return any(
                date.start() < stop < date.end() for date in _NUMERIC_DATE.finditer(context_text)
            )
        if _YEAR_AND_MONTH_BEFORE.search(before) and not following[:1].isupper():
            return True  # "1931. 5. 3." in Korean, which has no capitals
    if not (word.isdecimal() and len(word) <= 3) and not _ROMAN.match(word):
        return False
    if languages.have(tables.MONTHS, following.lower()):
        return True
    if context.next_word_starts_sentence():
        return False
    before = context.before(len(word), 20)
    if _ORDINAL_BEFORE.search(before):
        return languages.are_surely(tables.ORDINALS)
    determiner = _WORD_BEFORE.search(before)
    if determiner is not None and languages.have(tables.DETERMINERS, determiner.group(1).lower()):
        return True
    # After an abbreviation the figure isn't an ordinal: "böl. 3".
    return languages.are_surely(tables.ORDINALS_ALWAYS) and not before.rstrip().endswith(".")


def _parts_before(context: _StopContext, word: str) -> list[str]:
    """Return the parts of a possible abbreviation up to the stop: "u. a" or "u.a"."""
    if "." in word:
        return word.lower().split(".")
    match = _PARTS_BEFORE.search(context.before(0, 24))
    return [part.rstrip(".").lower() for part in match.group().split()] if match else []


def _ends_with(table: tables.WordTable, parts: list[str], languages: TextLanguages) -> bool:
    return any(languages.have(table, "_".join(parts[first:])) for first in range(len(parts) - 1))


def _is_inside_abbreviation(context: _StopContext, parts: list[str]) -> bool:
    """Return whether the stop is inside an abbreviation with spaces, such as "z. B."."""
    if not context.following_is_dotted:
        return False
    return any(
        context.languages.have(
            tables.SPACED_BEGINNINGS, "_".join([*parts[first:], context.following.lower()])
        )
        for first in range(len(parts))
    )


def _is_lettered(context: _StopContext, letter: str) -> bool:
    """Return whether a capital is a label and not an initial: "vitamin C", "King George V"."""
    before = context.before(1, 60)
    label_word = _LETTERS_BEFORE.search(before)
    if label_word is not None and context.languages.have(
        tables.LETTERED, label_word.group(1).lower()
    ):
        return True
    ruler = _RULER_BEFORE.search(before)
    return letter in "IVX" and ruler is not None and ruler.group(1).lower() in tables.TITLES

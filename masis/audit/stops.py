"""Whether a stop ends a sentence: after numbers, abbreviations, initials, ordinals, dates and quotations.

The words that this rests on are in ``languages.toml``. Every rule reads a bounded stretch around the stop, so that a
text is read in time that grows with its length.
"""

from __future__ import annotations

import re

from masis.audit import languages as tables
from masis.audit.languages import TextLanguages

_CLOSERS = "\"'”’»›」』）)］】}*_"
_QUOTES_CLOSED = frozenset('"”»」』')
_QUOTES_OPENED = '"“„«»「『'
_LATIN_STOPS = ".!?…‽‼⁇⁈⁉"
_WIDE = frozenset(tables.FULL_STOPS)

SENTENCE_ENDS = frozenset(_LATIN_STOPS + tables.FULL_STOPS)
"""Every character that can end a sentence."""

STOP = re.compile(
    rf"[{re.escape(_LATIN_STOPS + tables.FULL_STOPS)}]++[{re.escape(_CLOSERS)}]*+"
    # French sets a blank before the closing quote; where a word follows at once, the quote opens
    rf"(?:[ \u00a0\u202f]»(?=[\s,;.]|\Z))?"
)
"""A run of stops with the quotes and brackets that close behind it."""

# The question mark of Greek looks like a semicolon, and is one in Unicode's normal form.
GREEK_STOP = re.compile(rf"(?:{STOP.pattern}|(?<=[\u0370-\u03ff\u1f00-\u1fff])[;\u037e]++[{re.escape(_CLOSERS)}]*+)")
GREEK_LETTER = re.compile(r"[\u0370-\u03ff\u1f00-\u1fff]")

_LAST_WORD = re.compile(r"[^\s(\[{\"'“”‘’„‚«»/—–*]+\Z")
_NEXT_WORD = re.compile(r"[\s\"'“‘«»„‚‹›¿¡「『(\[*_]*([^\W_][\w’'-]*)?")
_DOTTED = re.compile(r"(?:[^\W\d_]\.)+[^\W\d_]\Z")
_INNER_CAPITAL = re.compile(r"[a-z]{1,3}[A-Z]")  # iPhone, mRNA, pH begin sentences as they are
_SPACED_STOP = re.compile(r"[.!?](?:[\s.!?]|\Z)")  # wait . . . what
_ROMAN = re.compile(r"[IVXLC]+\Z")
_PART = r"[^\W\d_][^\W_]{0,4}"
_PARTS_BEFORE = re.compile(rf"(?:\b{_PART}\.?[ \u00a0\u202f]){{1,3}}{_PART}\Z")
_WORD_BEFORE = re.compile(r"([^\W\d_]+)\s+\Z")
_ORDINAL_BEFORE = re.compile(r"\d\.,?(?:\s[^\W\d_]{1,5})?\s+\Z")  # am 24., 25. und ...
_NUMERIC_DATE = re.compile(r"\b(?:\d{1,2}\.\s?\d{1,2}\.\s?\d{2,4}\b|\d{4}\.\s?\d{1,2}\.\s?\d{1,2}\b)")
_YEAR_AND_MONTH_BEFORE = re.compile(r"\b\d{4}\.\s?\d{1,2}\.\s?\Z")
_LETTERS_BEFORE = re.compile(r"([^\W\d_]{2,})\s+(?:[A-Z]\s?(?:,\s(?:and|or)\s|,|and\s|or\s|&|to\s)\s?)*+\Z")
_RULER_BEFORE = re.compile(r"([^\W\d_]+)\s+[^\W\d_]+\s+\Z")
_INDIC = re.compile(r"[\u0900-\u0dff]+\Z")
_FULL_WIDTH = re.compile(r"[0-9\uff10-\uff5a]")


def ends_sentence(
    text: str, stop: re.Match[str], end: int, last: int, limit: int, languages: TextLanguages, *, cited: bool
) -> bool:
    """Return whether a stop ends its sentence.

    Args:
        text: the whole text.
        stop: the match of ``STOP``.
        end: where the sentence would end: behind the stop's closing quotes and citations, before ``limit``.
        last: where the sentence began.
        limit: the end of the block.
        languages: the languages of the block.
        cited: whether a citation follows the stop.

    """
    at, run = stop.start(), stop.group()
    if not _WIDE.isdisjoint(run):
        return cited or not _wide_sentence_goes_on(text, stop, last)
    following = text[end]
    if not following.isspace():
        # No blank behind the stop: a number, an address, a file name. A marker between them makes it a stop all the
        # same; so does a script that sets no blanks.
        if cited and text[end - 1] in "]】)":
            return following.isupper() or ord(following) > 0x2E80
        return run[0] in "!?" and ord(following) > 0x2E80 and not _is_named(text, at, last, languages)
    word = _NEXT_WORD.match(text, end, min(limit, end + 60))
    assert word is not None  # it matches the empty string
    following_word = word.group(1) or ""
    blanks = text[end : end + 40].lstrip()
    if blanks and (blanks[0] in ",;:)]}%=<>" or _SPACED_STOP.match(blanks)):
        return False
    lower_follows = following_word[:1].islower() and not _INNER_CAPITAL.match(following_word)
    starts = not following_word or _is_starter(following_word, languages)
    if run[0] != "." or run.startswith(("..", ".!", ".?")):
        if lower_follows:
            return run[0] == "." and cited
        if _is_named(text, at, last, languages) and not starts:
            return False
        return not (_QUOTES_CLOSED & set(run) and _is_spoken(text, stop, end, last))
    before = _LAST_WORD.search(text[max(last, at - 30) : at])
    token = before.group() if before else ""
    low, follows = token.lower(), following_word.lower()
    if languages.have(tables.NEVER_END, low, token) or _is_list_number(text, token, at, last):
        return False
    if follows[:1].isdigit() and languages.have(tables.NEVER_BEFORE_FIGURES, low):
        return False
    seldom = languages.have(tables.SELDOM_END, low)
    if lower_follows:
        return cited and len(token) > 2 and "." not in token and not seldom and low not in tables.HOURS
    if _is_number_of_more(text, token, at, last, following_word, languages, starts=starts):
        return False
    parts: list[str] = []
    if 0 < len(token) <= 5:
        parts = _parts_before(text, at, last)
        if _is_inside(parts or [low], follows, languages, dotted=text[word.end() : word.end() + 1] == "."):
            return False
        if _ends_with(tables.SPACED, parts, languages):
            return False
    if languages.have(tables.AND_SO_ON, low) or _ends_with(tables.AND_SO_ON, parts, languages):
        return True
    if parts:
        seldom = seldom or _ends_with(tables.SPACED_SELDOM_END, parts, languages)
    if len(following_word) == 1 and text[word.end() : word.end() + 1] == "." and len(token) == 1 and token.isalpha():
        return False  # A. A. Milne
    if low in tables.HOURS:
        # 5 p.m. Eastern, 5 p.m. EST
        return follows not in tables.BEHIND_HOURS and not (len(follows) <= 4 and following_word.isupper())
    if len(token) == 1 and token.isupper() and token.isalpha():
        return _is_lettered(text, at, last, languages) or (starts and follows not in tables.NAME_PARTICLES)
    if seldom or _DOTTED.match(token):
        return starts
    return not (_is_short_indic(token) and languages.uses_danda)


def _is_starter(word: str, languages: TextLanguages) -> bool:
    """Return whether the word begins sentences and seldom follows a name."""
    return languages.surely_have(tables.STARTERS, word.lower())


def _is_short_indic(token: str) -> bool:
    """Return whether a word of a script of India is short enough to be an initial: one letter or two with signs."""
    return _INDIC.match(token) is not None and sum(map(str.isalpha, token)) <= 2


def _wide_sentence_goes_on(text: str, stop: re.Match[str], last: int) -> bool:
    """Return whether the sentence goes on behind a stop of a script without blanks: a decimal, a quotation."""
    at, end, run = stop.start(), stop.end(), stop.group()
    if run == "．":
        return bool(_FULL_WIDTH.match(text, at - 1) and _FULL_WIDTH.match(text, end)) if at else False
    rest = text[end : end + 40]
    quoted = not _QUOTES_CLOSED.isdisjoint(run)
    named = text[max(last, at - 20) : at + 1].endswith(_NAMES)
    if quoted or named:
        return tables.QUOTATION_GOES_ON.match(rest) is not None or (quoted and _is_spoken(text, stop, end, last))
    return False


_NAMES = tuple(name for name in tables.NAMES if name[-1] in _WIDE)


def _is_named(text: str, at: int, last: int, languages: TextLanguages) -> bool:
    """Return whether the mark is the end of a name: Yahoo!"""
    before = _LAST_WORD.search(text[max(last, at - 30) : at])
    return (
        before is not None
        and before.group()[0].isupper()
        and languages.have(tables.NAMES, before.group().lower() + text[at])
    )


def _is_spoken(text: str, stop: re.Match[str], end: int, last: int) -> bool:
    """Return whether the sentence begins with a quotation, ends it here, and says who spoke: "Why?" Smith asked."""
    begins = text[last : last + 40].lstrip()[:1]
    return (
        begins != ""
        and begins in _QUOTES_OPENED
        and text[stop.start()] != "."
        and tables.SPEECH.match(text[end : end + 80].lstrip()) is not None
    )


def _is_list_number(text: str, token: str, at: int, last: int) -> bool:
    """Return whether the stop belongs to the number of a list item: ``1. Wash``, ``a. Wash``."""
    if not (token.isdigit() and len(token) <= 3) and not (len(token) == 1 and token.isalpha()):
        return False
    return not text[last : at - len(token)].strip(" \t\r\n*_-(")


def _is_number_of_more(
    text: str, token: str, at: int, last: int, following: str, languages: TextLanguages, *, starts: bool
) -> bool:
    """Return whether the stop is an ordinal's or a date's: am 3. Mai, Der 2. Weltkrieg, 3. 5. 1931."""
    figures = token.isdecimal() and len(token) <= 4
    if figures:
        around = text[max(last, at - 12) : at + 14]
        place = at - max(last, at - 12)
        if following[:1].isdecimal():
            return any(date.start() < place < date.end() for date in _NUMERIC_DATE.finditer(around))
        if _YEAR_AND_MONTH_BEFORE.search(around[: place - len(token)]) and not following[:1].isupper():
            return True  # 1931. 5. 3. in Korean, followed by a word of a script without capitals
    if not (figures and len(token) <= 3) and not _ROMAN.match(token):
        return False
    if languages.have(tables.MONTHS, following.lower()):
        return True
    if starts:
        return False
    window = text[max(last, at - len(token) - 20) : at - len(token)]
    if _ORDINAL_BEFORE.search(window):
        return languages.surely_among(tables.ORDINALS)
    before = _WORD_BEFORE.search(window)
    if before is not None and languages.have(tables.DETERMINERS, before.group(1).lower()):
        return True
    return languages.surely_among(tables.ORDINALS_ALWAYS)


def _parts_before(text: str, at: int, last: int) -> list[str]:
    """Return the short words up to the stop that an abbreviation with blanks may consist of, if there are several."""
    match = _PARTS_BEFORE.search(text[max(last, at - 24) : at])
    return [part.rstrip(".").lower() for part in match.group().split()] if match else []


def _ends_with(table: tables.WordTable, parts: list[str], languages: TextLanguages) -> bool:
    return any(languages.have(table, "_".join(parts[start:])) for start in range(len(parts) - 1))


def _is_inside(parts: list[str], following: str, languages: TextLanguages, *, dotted: bool) -> bool:
    """Return whether the stop is one inside an abbreviation with blanks: z. B."""
    if not dotted:
        return False
    return any(
        languages.have(tables.SPACED_BEGINNINGS, "_".join([*parts[start:], following])) for start in range(len(parts))
    )


def _is_lettered(text: str, at: int, last: int, languages: TextLanguages) -> bool:
    """Return whether a single capital tells things apart and is no initial: vitamin C, types A and B, King George V."""
    window = text[max(last, at - 61) : at - 1]
    kind = _LETTERS_BEFORE.search(window)
    if kind is not None and languages.have(tables.LETTERED, kind.group(1).lower()):
        return True
    ruler = _RULER_BEFORE.search(window)
    return text[at - 1] in "IVX" and ruler is not None and ruler.group(1).lower() in tables.TITLES

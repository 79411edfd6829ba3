"""The comparison form of text, which ignores differences that don't change the meaning.

Copies, quotations and the identity of issues compare texts in this form. It folds the differences
that ``FOLDS`` declares and nothing else. Signs, superscripts, brackets, units, case and punctuation
that no entry names are compared unchanged. The form records the original position of each
character. It is linear in the length of the text.
"""

from __future__ import annotations

import re
import unicodedata
from array import array
from collections.abc import Callable, Iterable, Iterator, Sequence, Set
from dataclasses import dataclass
from itertools import chain
from typing import Literal, NamedTuple

Scope = Literal["text", "sentence", "quotation"]
"""The form in which a fold applies: every form, or only that of sentences or of quotations."""


class FoldEdit(NamedTuple):
    """A span of a text, end excluded, and its replacement."""

    start: int
    end: int
    new: str


@dataclass(frozen=True)
class Fold:
    """One difference between texts that is folded.

    Attributes:
        name: The name of the fold.
        what: The difference.
        why: Why folding it loses no meaning.
        same: Two texts that differ only in this and are equal in the form.
        different: Two similar texts that stay different.
        edits: Yields the edits for a text, in order and without overlap.
        scope: Where the fold applies.
        signs: Characters of which a text must have one for the fold to apply; empty for any text.

    """

    name: str
    what: str
    why: str
    same: tuple[str, str]
    different: tuple[str, str]
    edits: Callable[[str], Iterator[FoldEdit]]
    scope: Scope = "text"
    signs: str = ""


class ComparisonForm(NamedTuple):
    """A text in its comparison form.

    ``starts`` and ``ends`` give the original span of each character of ``text``.
    """

    text: str
    starts: Sequence[int]
    ends: Sequence[int]

    def span(self, start: int, end: int) -> tuple[int, int]:
        """Return the original span of a non-empty span of the form."""
        return self.starts[start], self.ends[end - 1]


def _pattern(
    pattern: str, new: str | Callable[[re.Match[str]], str]
) -> Callable[[str], Iterator[FoldEdit]]:
    """Return a function that yields an edit for each match of a pattern, if it changes the text."""
    compiled = re.compile(pattern)

    def edits(text: str) -> Iterator[FoldEdit]:
        for match in compiled.finditer(text):
            replacement = new if isinstance(new, str) else new(match)
            if replacement != match.group():
                yield FoldEdit(match.start(), match.end(), replacement)

    return edits


def _compose(text: str) -> Iterator[FoldEdit]:
    """Yield the composed form of each letter whose accents are separate characters."""
    if unicodedata.is_normalized("NFC", text):
        return
    start = 0
    for position in range(1, len(text) + 1):
        if (
            position < len(text)
            and _composes_with_previous(text[position])
            and position - start < _MAX_MARKS
        ):
            continue
        if (composed := unicodedata.normalize("NFC", text[start:position])) != text[start:position]:
            yield FoldEdit(start, position, composed)
        start = position


_MAX_MARKS = 31
"""Maximum number of characters that are composed at once, a letter and its marks.

It is the limit of Unicode's stream-safe format (UAX 15): marks are sorted when they are composed,
in time that grows with the square of their number.
"""


def _composes_with_previous(character: str) -> bool:
    """Return whether a character may combine with the one before it."""
    # Marks, and the vowels and final consonants of Hangul, which follow the first consonant.
    return unicodedata.category(character)[0] == "M" or "\u1160" <= character <= "\u11ff"


_INVISIBLE = (
    "\u00ad\u061c\u200b\u200e\u200f\u202a\u202b\u202c\u2060\u2066\u2067\u2068\u2069"
    "\ufe0e\ufe0f\ufeff"
)
LIGATURES = str.maketrans(
    {"ﬀ": "ff", "ﬁ": "fi", "ﬂ": "fl", "ﬃ": "ffi", "ﬄ": "ffl", "ﬅ": "st", "ﬆ": "st"}
)
"""The typographic ligatures, for `str.translate`."""

# A pair of markers with text between them: the opening one is before a word and not inside or after
# one, the closing one after a word. "A*", "*args", "a*b", "10**8" and "FY_22" have no such pair,
# and "__init__" is a name. The text between has no further marker, so that each marker is read only
# once; nested emphasis of one kind is not folded. Possessive quantifiers (++, *+) don't backtrack,
# which keeps the search linear.
_EMPHASIS = tuple(
    re.compile(pattern)
    for pattern in (
        r"(?<![\w*])(\*{1,3}+)(?![\s*])([^*\n]++(?:\n(?!\s*+\n)[^*\n]++)*+)(?<!\s)\1(?![\w*])",
        r"(?<![\w_])(_)(?![\s_])([^_\n]++)(?<!\s)\1(?![\w_])",
        r"(?<![\w_])(__)(?![\s_])(?=[^_ \n]*+ )([^_\n]++)(?<!\s)\1(?![\w_])",
        r"(?<!`)(`)(?![\s`])([^`\n]++)(?<!\s)\1(?!`)",
    )
)


def _drop_emphasis(text: str) -> Iterator[FoldEdit]:
    if not any(marker in text for marker in "*_`"):
        return
    edits: list[FoldEdit] = []
    for pattern in _EMPHASIS:
        for match in pattern.finditer(text):
            if any(map(str.isalpha, match[2])) or len(match[1]) > 1:  # 2 *3* 4 may be a product
                edits.append(FoldEdit(match.start(1), match.end(1), ""))
                edits.append(FoldEdit(match.end(2), match.end(), ""))
    yield from sorted(edits)


# A hyphen at the end of a line, with a letter at the beginning of the next: "may-\nor".
_LINE_BREAK = re.compile(r"[-‐][ \t]*+\r?\n[ \t]*+(?=[^\W\d_])")
# The part of the word before such a hyphen.
_BEFORE_BREAK = re.compile(r"[^\W\d_]{2,}$")
_COMPOUND_STARTS = frozenset(
    """
        all anti arch bi by co cross de dis down ex extra far fore free full good great half hand
        high ill im in inter intra long low man mid mis multi neo no non off old on one out over
        part per poly post pre pro pseudo quasi re self semi short so sub super sur tele ten trans
        tri two ultra un under up well wide with
    """.split()
)
"""First parts of compounds that have another meaning without the hyphen ("re-signed", "resigned")
or that usually have one ("well-known"). A word that is broken after one keeps its hyphen.
"""


def _join_broken_words(text: str) -> Iterator[FoldEdit]:
    """Yield the removal of hyphens at which a word was broken; a compound keeps its hyphen."""
    for match in _LINE_BREAK.finditer(text):
        before = _BEFORE_BREAK.search(text, max(0, match.start() - 20), match.start())
        is_word = before is not None and before.group().islower() and text[match.end()].islower()
        is_joined = is_word and before is not None and before.group() not in _COMPOUND_STARTS
        yield FoldEdit(match.start(), match.end(), "" if is_joined else "-")


_DOUBLE = frozenset('"“”„‟«»「」『』″')
_SINGLE = frozenset("'‘’‚‛‹›`´ʼ′")
# Quotation marks and primes, and an empty line, which ends any open quotation.
_MARK = re.compile(r"[\"'“”„‟«»「」『』‘’‚‛‹›`´ʼ′″‴]|\n\s*\n")
_OPENERS = frozenset("“„«‹「『‘‚")
_TRUE_PRIMES = frozenset("′″‴")
_LONGEST_QUOTATION = 2_000
"""The length after which an unclosed quotation mark no longer counts as opening."""


def _fold_quotation_marks(text: str) -> Iterator[FoldEdit]:
    """Yield edits for quotation marks, apostrophes and primes.

    Marks around words are dropped, apostrophes in words become the same, and marks after figures
    become primes. A mark after a figure or a single letter is a prime (5′, 5″, f′) unless it closes
    a quotation. Marks without text between them, such as an empty string in code, stay.
    """
    opened: dict[str, int] = {}
    last_end = 0
    for match in _MARK.finditer(text):
        position, mark = match.start(), match.group()
        if mark[0] == "\n":
            opened.clear()
            continue
        if position < last_end:
            continue
        kind = "″" if mark in _DOUBLE else "′"
        before, after = text[position - 1 : position], text[position + 1 : position + 2]
        if kind == "′" and before.isalnum() and after.isalpha() and mark not in _TRUE_PRIMES:
            if not (before.isdigit() or mark == "'"):
                yield FoldEdit(position, position + 1, "'")
            continue
        if mark in _TRUE_PRIMES and before == mark == "′":
            continue
        end = position + 1
        # Two single marks are a double one: 3'' is 3″, ''quoted'' is "quoted".
        if kind == "′" and after == mark:
            kind, end = "″", position + 2
            after = text[end : end + 1]
        last_end = end
        is_open = kind in opened and position - opened[kind] <= _LONGEST_QUOTATION
        if mark in _TRUE_PRIMES or (not is_open and _may_have_prime(text, position)):
            prime = "‴" if mark == "‴" else kind
            if text[position:end] != prime:
                yield FoldEdit(position, end, prime)
        elif is_open:
            if opened.pop(kind) < position:  # otherwise nothing is between the two
                yield FoldEdit(position, end, "")
        elif kind == "′" and before.isalnum():
            if text[position:end] != "'":
                yield FoldEdit(
                    position, end, "'"
                )  # an apostrophe at the end of a word: the workers' union
        elif kind == "′" and after.isdigit() and mark not in _OPENERS:
            if text[position:end] != "'":
                yield FoldEdit(position, end, "'")  # an apostrophe in front of a figure: '90s
        elif mark in _OPENERS or (after and not after.isspace()):
            if after and _quote_kind(after) == kind:
                opened[kind] = end  # an empty string
                continue
            opened[kind] = position
            yield FoldEdit(position, end, "")
        else:
            yield FoldEdit(position, end, "")


def _quote_kind(mark: str) -> str:
    return "″" if mark in _DOUBLE else "′" if mark in _SINGLE else ""


def _may_have_prime(text: str, position: int) -> bool:
    """Return whether a mark is after a figure, a bracket, or a letter that is a word alone."""
    before = text[position - 1 : position]
    if before.isdigit() or before in ("°", ")", "]") or before in _TRUE_PRIMES:
        return before != ")" or text[position : position + 1] not in _OPENERS
    return (
        before.isalpha()
        and not text[max(0, position - 2) : position - 1].isalnum()
        and before not in ("a", "I")
    )


# Several whitespace characters, or a single one that isn't a plain space.
_WHITESPACE = re.compile(r"\s{2,}+|[^\S ]")


def _fold_whitespace(text: str) -> Iterator[FoldEdit]:
    """Yield a space for each run of whitespace that isn't a single plain space."""
    # The space is the only whitespace character that counts as printable.
    if text.isprintable() and "  " not in text:
        return
    for match in _WHITESPACE.finditer(text):
        yield FoldEdit(match.start(), match.end(), " ")


# A dash between two words, with or without spaces: "a - b", "a—b", "a--b". Elsewhere only a
# typographic hyphen.
_DASH = re.compile(r"(?<=[^\W_])(?: ?[‐‑–—―-] ?| ?-- ?)(?=[^\W_])|[‐‑﹣]")
# The words beside a dash: "long" and "term" of "long-term". A possessive quantifier (++) doesn't
# backtrack, so a long word is read once.
_LAST_WORD = re.compile(r"[^\W_]++$")
_NEXT_WORD = re.compile(r"[^\W_]++")
_SUSPENDED = frozenset("and or to nor but und oder et ou y o".split())
"""Words after a hyphen that replaces the rest of a compound: "short- and long-term"."""
_LONGEST_WORD = 40


def _fold_dashes(text: str) -> Iterator[FoldEdit]:
    """Yield a hyphen for each dash between two words.

    A dash between figures stays, because it may be a sign.
    """
    for match in _DASH.finditer(text):
        dash_text, start, end = match.group(), match.start(), match.end()
        dash = dash_text.strip()
        is_between_words = (
            start > 0 and text[start - 1].isalnum() and end < len(text) and text[end].isalnum()
        )
        if not is_between_words:
            yield FoldEdit(start, end, "-")
            continue
        if text[start - 1].isdigit() and text[end].isdigit():
            continue
        before = _LAST_WORD.search(text, max(0, start - _LONGEST_WORD), start)
        after = _NEXT_WORD.match(text, end, end + _LONGEST_WORD)
        words = [word.group() for word in (before, after) if word]
        spaces = (dash_text[0] == " ", dash_text[-1] == " ")
        # "hyper- active", but not a rating (A- since) or "short- and long-term".
        if spaces == (False, True):
            is_joined = (
                all(len(word) > 1 and word.islower() for word in words)
                and words[-1] not in _SUSPENDED
            )
        elif spaces == (True, False):  # "run --force", "run -v"
            is_joined = False
        else:  # "a - b" and "a--b" may be formulas
            is_joined = spaces == (False, False) and dash != "--"
            is_joined = is_joined or any(len(word) > 2 and word.isalpha() for word in words)
        if (is_joined or dash in "—―") and dash_text != "-":
            yield FoldEdit(start, end, "-")


# A comma with the one or two words after it, which decide whether it may be dropped.
_COMMA = re.compile(r"(?<=[\w)]), (?=([^\W\d_]++)(?: (\d{4}\b|[^\W\d_]++))?)")
# Commas after a negation stay, because they may change the meaning.
_NEGATION = re.compile(
    r"\b(?:cannot|not|no|never|none|nor|neither|only|just|hardly|without)\b", re.IGNORECASE
)
_FIRST_WORDS = frozenset(
    """
        after although amid among as at because before between by despite during for from if in on
        once over since though through throughout under unless until upon when while with within
        without
    """.split()
)
_SUBJECTS = frozenset(
    "the a an it he she they we you I this these those his her its our their".split()
)
_CLAUSES = frozenset("after although before but if though unless until when while".split())
_VERBS = frozenset("is are was were has have had will would can could may might does did".split())


def _drop_commas(text: str) -> Iterator[FoldEdit]:
    """Yield a space for a comma after an introduction, and for one before a clause or a year.

    Examples are "In May, the" and "..., but".
    """
    first = text.partition(" ")[0]
    introduced = first.lower() in _FIRST_WORDS
    negation = _NEGATION.search(text, len(first) if introduced else 0)
    limit = negation.start() if negation else len(text)
    for number, match in enumerate(_COMMA.finditer(text, 0, limit)):
        before_subject = introduced and not number and match[1] in _SUBJECTS
        before_verb = match[1] == "and" and match[2] in _VERBS
        before_year = match[1] == "in" and (match[2] or "").isdecimal()
        if before_subject or before_verb or before_year or match[1] in _CLAUSES:
            yield FoldEdit(match.start(), match.end(), " ")


# The dash between two figures: "5-10", "5 – 10".
_RANGE = re.compile(r"(?<=\d)(?:[-–]| – )(?=\d)")
# A figure that begins after a space or bracket: "$5" of "$5-10", but not "555" of "1-555-10".
_FIGURE_BEFORE = re.compile(r"(?:^|(?<=[\s(\[]))[$€£¥]?\d[\d.,]*+$")
# A figure that no further part follows, or one with its unit: "10" or "10mg", but not "10-3".
_FIGURE_BEHIND = re.compile(r"\d[\d.,]*+(?![-–/:\w])|\d[\d.,]*+(?=[a-zA-Zµμ°%]++(?![\w/-]))")
_LONGEST_FIGURE = 24


def _spell_ranges(text: str) -> Iterator[FoldEdit]:
    """Yield "to" for the dash between two figures.

    The dashes in a number of several parts, such as an ISBN, stay.
    """
    for match in _RANGE.finditer(text):
        window_start = max(0, match.start() - _LONGEST_FIGURE)
        before = _FIGURE_BEFORE.search(text[window_start : match.start()])
        is_whole_figure = before is not None and (before.start() > 0 or window_start == 0)
        if is_whole_figure and _FIGURE_BEHIND.match(
            text, match.end(), match.end() + _LONGEST_FIGURE + 1
        ):
            yield FoldEdit(match.start(), match.end(), " to ")


# "1,500" and "1,500,000"; not "1,50", and not a list such as "[1,500,200]". The quantifiers are
# possessive (++), so that a longer run of groups isn't cut to one that fits.
_THOUSANDS = re.compile(r"(?<![\w.,\[])\d{1,3}(?:,\d{3})++(?![\w,]|\.\d++,)(?!\d)")


def _drop_grouping_commas(text: str) -> Iterator[FoldEdit]:
    for match in _THOUSANDS.finditer(text):
        for position in range(match.start(), match.end()):
            if text[position] == ",":
                yield FoldEdit(position, position + 1, "")


NUMBER_WORDS = {
    word: value
    for value, word in enumerate(
        """
            zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen
            fifteen sixteen seventeen eighteen nineteen
        """.split()
    )
} | dict(
    zip(
        "twenty thirty forty fifty sixty seventy eighty ninety".split(),
        range(20, 100, 10),
        strict=True,
    )
)
"""Number words below a hundred, which add up to a number."""
_TENS = "|".join(word for word, value in NUMBER_WORDS.items() if value >= 20)
_DIGITS = "|".join(word for word, value in NUMBER_WORDS.items() if 0 < value < 10)
_OTHERS = "|".join(word for word, value in NUMBER_WORDS.items() if value < 20 and word != "one")


def _spelled_number(match: re.Match[str]) -> str:
    return str(sum(NUMBER_WORDS[word] for word in re.split(r"[- ]", match.group())))


_CONTRACTED = {"ca": "cannot", "wo": "will not", "sha": "shall not"}
_CONTRACTED_VERBS = {"'re": " are", "'ve": " have", "'ll": " will", "'m": " am", "'s": " is"}


def _full_form(match: re.Match[str]) -> str:
    if match[1] is None:
        return _CONTRACTED_VERBS[match.group()]
    full = _CONTRACTED.get(match[1].lower(), f"{match[1]} not")
    return match[1][0] + full[1:]


_SHORT_WORDS = frozenset(
    """
        A All An And Any Are As At Be Both But By Can Did Do For Had Has He Her Him His How If In Is
        It Its Let May My Nor Not No Of On One Or Our Out Own She So Ten The Too Two Six To Up Was
        We Who Why Yet You
    """.split()
)
"""Words of up to three letters that begin sentences; others may be units or codes."""


def _drop_final_stop(text: str) -> Iterator[FoldEdit]:
    before = text[:-1]
    stops = text[-1:] in (".", "。") and before and not before.endswith(".")
    if stops or (text[-1:] in ("!", "！") and before[-2:].isalpha() and len(before) > 1):
        yield FoldEdit(len(before), len(text), "")


# The first word without figures; "B2B" isn't one.
_FIRST_WORD = re.compile(r"[^\W\d_]++(?![\d_])")


def without_capital(word: str, following: str = "") -> str:
    """Return the first word of a sentence with a lower-case first letter.

    A word with other capitals stays. ``following`` is the next word: "A is 5" begins with a name,
    "A dam is" with an article.
    """
    match = _FIRST_WORD.match(word)
    if not match or not _is_ordinary(match.group()) or (word == "A" and following in _VERBS):
        return word
    return word[0].lower() + word[1:]


def _lower_sentence_start(text: str) -> Iterator[FoldEdit]:
    first, second, *_ = (*text.split(" ", 2), "")
    if (new := without_capital(first, second)) != first:
        yield FoldEdit(0, len(first), new)


def _is_ordinary(word: str) -> bool:
    """Return whether only the first letter is a capital and the word isn't a unit or a code."""
    return word in _SHORT_WORDS or (len(word) > 3 and word[0].isupper() and word[1:].islower())


def _word_case(match: re.Match[str]) -> str:
    word = match.group()
    return word.lower() if _is_ordinary(word) or (len(word) > 3 and word.isupper()) else word


_UNITS = (
    "kg mg μg ng km cm mm nm μm ml mL kW MW GW kWh MWh GWh kB MB GB TB Hz kHz MHz GHz kPa MPa kV mV"
    " °C °F".split()
)

FOLDS: tuple[Fold, ...] = (
    Fold(
        "composition",
        "a letter and its accents as one character or as several (Unicode NFC)",
        "Unicode defines both spellings as the same text",
        ("The cafe\u0301 is open.", "The caf\u00e9 is open."),
        ("The cafe is open.", "The caf\u00e9 is open."),
        _compose,
    ),
    Fold(
        "invisible characters",
        "soft hyphens, zero-width spaces, direction marks and variation selectors, but not joiners,"
        " which distinguish words",
        "readers don't see them; a soft hyphen at the end of a line shows that the word continues",
        ("The of\u00adfice is open.", "The office is open."),
        (
            "The \u0646\u0627\u0645\u0647\u200c\u0627\u06cc.",
            "The \u0646\u0627\u0645\u0647\u0627\u06cc.",
        ),
        _pattern(f"\u00ad[ \\t]*+\\r?\\n[ \\t]*+|[{_INVISIBLE}]++", ""),
        signs=_INVISIBLE,
    ),
    Fold(
        "ligatures",
        "the typographic ligatures of f and s",
        "they are shapes of the same letters; æ, œ and ß are separate letters and stay",
        ("The o\ufb03ce is open.", "The office is open."),
        ("The \u0153uvre is open.", "The euvre is open."),
        _pattern("[\ufb00-\ufb06]", lambda match: match.group().translate(LIGATURES)),
        signs="".join(map(chr, LIGATURES)),
    ),
    Fold(
        "width",
        "letters, digits and signs in the width of Chinese characters",
        "the width only affects the layout",
        ("The fee is \uff11\uff12 euros.", "The fee is 12 euros."),
        ("The fee is \u2460 euros.", "The fee is 1 euros."),
        _pattern("[\uff01-\uff5e]", lambda match: chr(ord(match.group()) - 0xFEE0)),
    ),
    Fold(
        "micro sign",
        "the micro sign and the Greek letter",
        "people write either for a millionth, and they look the same",
        ("It weighs 5 \u00b5g.", "It weighs 5 \u03bcg."),
        ("It weighs 5 \u00b5g.", "It weighs 5 mg."),
        _pattern("\u00b5", "\u03bc"),
        signs="\u00b5",
    ),
    Fold(
        "emphasis",
        "Markdown's markers of emphasis and code, in pairs around words",
        "they change how words look; a single marker may be a sign (A*, *args, a*b, FY_22)",
        ("The **dam** is _safe_.", "The dam is safe."),
        ("The D* search is fast.", "The D search is fast."),
        _drop_emphasis,
        signs="*_`",
    ),
    Fold(
        "broken words",
        "the hyphen at a line break within a lowercase word, but not in a compound",
        "the typesetter added the hyphen; after a possible first part of a compound it stays,"
        " because re-signed isn't resigned",
        ("The may-\nor opened it.", "The mayor opened it."),
        ("The mayor re-\nsigned.", "The mayor resigned."),
        _join_broken_words,
        signs="\n",
    ),
    Fold(
        "quotation marks",
        "kind and presence of quotation marks; kinds of apostrophes; primes typed as quotation"
        " marks",
        "the check for copies counts quotation marks separately, and a quotation is the text within"
        " the marks; after a figure, marks are primes",
        ("The ‘dam’ isn’t “safe”.", "The 'dam' isn't \"safe\"."),
        ("It is 5″ wide.", "It is 5′ wide."),
        _fold_quotation_marks,
        signs="".join(_DOUBLE | _SINGLE | {"‴"}),
    ),
    Fold(
        "spaces",
        "kind and number of spaces and line ends",
        "they only affect the layout; a single space and no space stay different",
        ("The\u00a0dam  is\nsafe.", "The dam is safe."),
        ("The dam is under ground.", "The dam is underground."),
        _fold_whitespace,
    ),
    Fold(
        "dashes",
        "kinds of dashes between two words, and the spaces around one",
        "the kind depends on font and keyboard; next to a figure and after a letter, a dash may be"
        " a sign",
        (
            "The dam\u2014a well\u2011known one\u2014is safe.",
            "The dam - a well-known one - is safe.",
        ),
        ("The men re-signed.", "The men resigned."),
        _fold_dashes,
        signs="-‐‑–—―﹣",
    ),
    Fold(
        "minus",
        "kinds of minus before a figure, and the word",
        "each of them makes the figure negative if a space or sign is before it",
        ("It fell to \u22125 degrees.", "It fell to minus 5 degrees."),
        ("It fell to \u22125 degrees.", "It fell to 5 degrees."),
        _pattern(
            r"(?:^|(?<=[\s(\[{=<>≤≥~≈±/+:,;|]))[-–−](?=[$€£¥]?\.?\d)|\bminus (?=[$€£¥]?\.?\d)", "−"
        ),
        signs="-–−0123456789",
    ),
    Fold(
        "ranges",
        "the dash between two figures, and the word",
        "both state the two ends; numbers of several parts, dates and formulas stay",
        ("It takes 5–10 minutes.", "It takes 5 to 10 minutes."),
        ("It takes 5-10 minutes.", "It takes 5 10 minutes."),
        _spell_ranges,
        signs="-–",
    ),
    Fold(
        "thousands",
        "commas between groups of three digits",
        "this is the English notation of thousands; a list in square brackets stays",
        ("It cost 1,500 euros.", "It cost 1500 euros."),
        ("It cost 1,50 euros.", "It cost 150 euros."),
        _drop_grouping_commas,
        signs=",",
    ),
    Fold(
        "leading point",
        "a figure that starts with its decimal point, and one with a zero before the point",
        "the value is the same",
        ("The dose is .5 mg.", "The dose is 0.5 mg."),
        ("The dose is .5 mg.", "The dose is 5 mg."),
        _pattern(r"(?<![\w.)\]])\.(?=\d++(?!\.\d))", "0."),
        signs=".",
    ),
    Fold(
        "first letter",
        "the case of the first letter of a sentence, if the rest of the word is lowercase",
        "any word gets a capital at the start of a sentence; mRNA, pH and mW stay",
        ("The dam is safe.", "the dam is safe."),
        ("MW are its unit.", "mW are its unit."),
        _lower_sentence_start,
        "sentence",
    ),
    Fold(
        "case in quotations",
        "capitals at the start of longer words and of function words, and longer words in capitals",
        "readers see the place of the quotation that was found; names, codes and units of up to"
        " three letters or of mixed case stay",
        ("The Road Is Safe.", "the road is SAFE."),
        ("It has 5 MW.", "It has 5 mW."),
        _pattern(r"(?<!\w)[^\W\d_a-z][^\W\d_]*+(?!\w)", _word_case),
        "quotation",
    ),
    Fold(
        "number words",
        "whole numbers below a hundred in lowercase words, except the pronoun one",
        "the value is the same; in a compound such as two-thirds, the word stays",
        ("The dam has twenty-five gates.", "The dam has 25 gates."),
        ("The dam has one gate.", "The dam has 1 gate."),
        _pattern(
            rf"(?<![\w'-])(?:(?:{_TENS})(?:[- ](?:{_DIGITS}))?|{_OTHERS})(?![\w'-])",
            _spelled_number,
        ),
    ),
    Fold(
        "per cent",
        "the word after a figure, and the sign",
        "both are the same unit; ‰ and percentage points are other units",
        ("It grew by 5 per cent.", "It grew by 5%."),
        ("It grew by 5‰.", "It grew by 5%."),
        _pattern(r"(?<=\d) ?per ?cent\b", "%"),
        signs="0123456789",
    ),
    Fold(
        "contractions",
        "short forms of not, am, are, have and will, and of is before an article or negation",
        "only one full form is possible; elsewhere, it's may be it is or it has",
        ("The dam isn't safe, and we've seen it.", "The dam is not safe, and we have seen it."),
        ("It's left.", "It is left."),
        _pattern(
            r"\b([A-Za-z][a-z]*?)n't\b|(?<=[a-z])'(?:re|ve|ll)\b|(?<=\bI)'(?:m|ve|ll)\b|"
            r"(?<=[tTeE])'s(?= (?:an?|the|not|no)\b)",
            _full_form,
        ),
        signs="'",
    ),
    Fold(
        "ampersand",
        "the sign between two words, and the word",
        "between words it means and; next to single letters and in code it may be an operator",
        ("Smith & Jones own it.", "Smith and Jones own it."),
        ("The mask is a & b.", "The mask is a and b."),
        _pattern(r"(?<=[^\W\d_]{2}) & (?=[^\W\d_]{2})", " and "),
        signs="&",
    ),
    Fold(
        "ellipsis",
        "three dots, and the sign",
        "they are the same sign; two dots, as in a path, stay",
        ("The dam ... is safe.", "The dam … is safe."),
        ("The path is ../data.", "The path is .../data."),
        _pattern(r"(?<!\.)\.\.\.(?!\.)", "…"),
        signs=".",
    ),
    Fold(
        "space before a unit",
        "a space between a figure and an unmistakable unit",
        "people write either; letters that may be names or words stay",
        ("The dose is 5 mg.", "The dose is 5mg."),
        ("It is the 3 D model.", "It is the 3D model."),
        _pattern(rf"(?<=\d) (?=(?:{'|'.join(_UNITS)})(?![\w/-]))", ""),
        signs="0123456789",
    ),
    Fold(
        "spaces next to punctuation",
        "a space before a closing sign and after an opening bracket",
        "some languages and tokenizers add one; a sign that starts a word (!ready, .5) stays",
        ("It grew by 5 % ( or so ) .", "It grew by 5% (or so)."),
        ("It runs when !ready holds.", "It runs when ready! holds."),
        _pattern(r" (?=[.,;:!?)\]}%]++(?: |$))|(?<=[(\[]) ", ""),
    ),
    Fold(
        "commas",
        "the comma after an introduction, before a clause and before a year, unless a negation is"
        " before it",
        "it marks a pause there; commas in lists and before who, which, that, because and not may"
        " alter the meaning",
        (
            "In May, the dam was closed, but it is safe.",
            "In May the dam was closed but it is safe.",
        ),
        ("He thanked the men, who lied.", "He thanked the men who lied."),
        _drop_commas,
        "sentence",
        signs=",",
    ),
    Fold(
        "final stop",
        "the stop of a sentence, and an exclamation mark after a word",
        "the sentence ends there without it too; after a figure or a letter, the exclamation mark"
        " may be a factorial",
        ("The dam is safe!", "The dam is safe."),
        ("There are 5!", "There are 5."),
        _drop_final_stop,
        "sentence",
    ),
)
"""All differences that are folded, in order of application."""


def comparison_form(text: str, ignoring: Iterable[tuple[int, int]] = ()) -> ComparisonForm:
    """Return the comparison form of a text, with the original position of each character.

    Args:
        text: Any text.
        ignoring: Spans that count as a space, such as citation markers.

    """
    return _form_of(text, _space_edits(text, ignoring), quotation=False)


def quotation_forms(
    text: str, ignoring: Iterable[tuple[int, int]] = ()
) -> tuple[ComparisonForm, ...]:
    """Return the forms in which a quotation is searched in a text: one, or more with broken lines.

    A hyphen at the end of a line may be the typesetter's or the word's own, so each reading is a
    form.
    """
    spans = tuple(ignoring)
    readings: list[Iterator[FoldEdit]] = [_space_edits(text, spans)]
    if _LINE_BREAK.search(text):
        readings += [_space_edits(text, spans, hyphen) for hyphen in ("", "-")]
    forms = (_form_of(text, edits, quotation=True) for edits in readings)
    return tuple({form.text: form for form in forms}.values())


def quotation_key(text: str) -> str:
    """Return a key that is equal for two quotations of the same words."""
    return quotation_forms(text)[0].text.strip()


def _form_of(text: str, edits: Iterator[FoldEdit], *, quotation: bool) -> ComparisonForm:
    starts, ends = array("I", range(len(text))), array("I", range(1, len(text) + 1))
    form = _apply_edits(ComparisonForm(text, starts, ends), edits)
    characters = set(form.text)
    for fold in FOLDS:
        if (fold.scope == "text" or (quotation and fold.scope == "quotation")) and _may_apply(
            fold, characters
        ):
            edited = _apply_edits(form, fold.edits(form.text))
            if edited is not form:
                form, characters = edited, set(edited.text)
    return form


def _may_apply(fold: Fold, characters: Set[str]) -> bool:
    """Return whether the fold may apply to a text of these characters.

    This test is cheaper than a search of the text.
    """
    return not fold.signs or not characters.isdisjoint(fold.signs)


def sentence_form(sentence: str) -> str:
    """Return the comparison form of a sentence; two sentences with equal forms say the same."""
    text = sentence.strip()
    characters = set(text)
    for fold in FOLDS:
        if fold.scope != "quotation" and _may_apply(fold, characters):
            edited_text = _edited_text(text, fold.edits(text))
            if edited_text != text:
                text, characters = edited_text, set(edited_text)
    return text.strip()


def _space_edits(
    text: str, spans: Iterable[tuple[int, int]], hyphen: str | None = None
) -> Iterator[FoldEdit]:
    """Yield a space for each span and, if given, the hyphen for each one at a line break."""
    edits = [FoldEdit(start, end, " ") for start, end in spans if 0 <= start < end <= len(text)]
    if hyphen is not None:
        edits += [
            FoldEdit(match.start(), match.end(), hyphen) for match in _LINE_BREAK.finditer(text)
        ]
    position = 0
    for edit in sorted(edits):
        if edit.end > position:
            yield edit._replace(start=max(position, edit.start))
            position = edit.end


def _apply_edits(form: ComparisonForm, edits: Iterator[FoldEdit]) -> ComparisonForm:
    first_edit = next(edits, None)
    if first_edit is None:
        return form
    pieces: list[str] = []
    starts, ends = array("I"), array("I")
    position = 0
    for edit in chain([first_edit], edits):
        pieces += (form.text[position : edit.start], edit.new)
        unchanged = slice(position, edit.start)
        same_length = len(edit.new) == edit.end - edit.start
        edited = slice(edit.start, edit.end)
        starts.extend(form.starts[unchanged])
        ends.extend(form.ends[unchanged])
        if same_length:
            starts.extend(form.starts[edited])
            ends.extend(form.ends[edited])
        else:
            starts.extend([form.starts[edit.start]] * len(edit.new))
            ends.extend([form.ends[edit.end - 1]] * len(edit.new))
        position = edit.end
    pieces.append(form.text[position:])
    starts.extend(form.starts[position:])
    ends.extend(form.ends[position:])
    return ComparisonForm("".join(pieces), starts, ends)


def _edited_text(text: str, edits: Iterator[FoldEdit]) -> str:
    pieces: list[str] = []
    position = 0
    for edit in edits:
        pieces += (text[position : edit.start], edit.new)
        position = edit.end
    return "".join((*pieces, text[position:])) if pieces else text

"""Lists the deviations from the requested reply format that are accepted.

``TOLERANCES`` is the single list. Each entry has the kind of a field, the accepted spelling, and
the reason why it can mean only one thing. The fields of ``replies.py`` are declared by these kinds,
so every role, reply format and provider is read in the same way. Anything else is left unchanged. A
score that isn't a number is then unscored, an unknown verdict makes only its own claim unscored,
and any other error makes the reply malformed.

A tolerance must never make a verdict more favorable. ``not supported``, ``supported?`` and ``mostly
supported`` are never ``supported``, and an 8 without a scale is read by the rule of its field, not
as 0.8.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from typing import Any, Literal, NamedTuple

Kind = Literal["score", "row", "chunk", "word", "list", "flag"]
"""The kinds of fields: a score, a row number, a chunk name, a word of a closed set, a list, or
yes/no.
"""

_LONGEST = 80
"""The longest text, in characters, that may be a number, a word or a name; longer texts are left
unchanged.
"""
_BETWEEN_WORDS = re.compile(r"[\s_\-]+")
_NUMBER = r"[-+]?(?:[0-9]{1,15}(?:\.[0-9]{0,15})?|\.[0-9]{1,15})"
_PLAIN = re.compile(rf"{_NUMBER}(?:[eE][-+]?[0-9]{{1,3}})?")
_COMMA = re.compile(r"([-+]?[0-9]{1,3}),([0-9]{1,15})")
_PERCENT = re.compile(r"(.{1,40}?)\s?(?:%|percent|per cent)", re.IGNORECASE)
# "4/5", "8 out of 10"
_FRACTION = re.compile(rf"({_NUMBER})\s?(?:/|out of|of)\s?({_NUMBER})", re.IGNORECASE)
_ROW = re.compile(
    r"""(?:(?P<noun>claim|sentence|statement|row|item|verdict|number|no)\b\.?)?  # "Claim 3"
        \s{0,3}[#:]?\s{0,3}  # "Claim #3", "Claim: 3"
        (?P<open>[\[(])?(?P<number>[0-9]{1,9})(?:\.0{1,9})?(?(open)[\])])  # "[3]", "3.0"
        [.:)]?  # "3."
    """,
    re.IGNORECASE | re.VERBOSE,
)


_BRACKETS = "[](){}【】<>\"'`“”‘’ \t\n"
_NOUN_BEFORE_A_NAME = re.compile(
    r"(?:evidence|chunk|source|document|doc|passage|reference|ref|excerpt|context|snippet)s?\b\.?"
    r"(?:\s{1,3}id\b)?\s{0,3}[#:]?\s{0,3}(\S.{0,500})",
    re.IGNORECASE | re.DOTALL,
)


def chunk_names(name: str) -> Iterator[str]:
    """Yield the possible readings of a chunk name, starting with the exact text.

    The others omit brackets around the name, and a leading noun such as "chunk". The exact text is
    first because a chunk may really be called ``Evidence 1``.
    """
    yield name
    without_brackets = name.strip(_BRACKETS)
    if without_brackets != name:
        yield without_brackets
    if match := _NOUN_BEFORE_A_NAME.fullmatch(without_brackets):
        yield match[1].strip(_BRACKETS)


UNREAD = object()
"""Returned by a tolerance that doesn't apply, since None is a valid value in a reply."""


def short_text(value: Any) -> str:
    """Return a short text without surrounding whitespace, quotes and emphasis, or an empty string
    otherwise.
    """
    return (
        value.strip().strip("*`\"'").strip()
        if isinstance(value, str) and len(value) <= _LONGEST
        else ""
    )


def word(value: Any) -> str:
    """Return ``Missing info.`` as ``missing_info``; a question mark stays, because it expresses
    doubt.
    """
    return _BETWEEN_WORDS.sub("_", short_text(value).rstrip(".!").strip()).lower()


def _number_in_text(value: Any) -> Any:
    text = short_text(value)
    return float(text) if _PLAIN.fullmatch(text) else UNREAD


def _decimal_comma(value: Any) -> Any:
    match = _COMMA.fullmatch(short_text(value))
    if match is None or (len(match[2]) == 3 and match[1].strip("+-0")):
        return UNREAD  # 1,500 may be one and a half, or fifteen hundred
    return float(f"{match[1]}.{match[2]}")


def _percentage(value: Any) -> Any:
    match = _PERCENT.fullmatch(short_text(value))
    if match is None:
        return UNREAD
    numbers = (read(match[1]) for read in (_number_in_text, _decimal_comma))
    return next((number / 100 for number in numbers if number is not UNREAD), UNREAD)


def _fraction_of(value: Any) -> Any:
    match = _FRACTION.fullmatch(short_text(value))
    if match is None:
        return UNREAD
    part, total = float(match[1]), float(match[2])
    return part / total if 0 <= part <= total and total > 0 else UNREAD


def _row_number(value: Any) -> Any:
    text = short_text(value)
    match = _ROW.fullmatch(text) if text else None
    return int(match["number"]) if match else UNREAD


def _number_as_name(value: Any) -> Any:
    if isinstance(value, bool) or not isinstance(value, int | float) or value != value // 1:
        return UNREAD
    return str(int(value))


def _null_list(value: Any) -> Any:
    return [] if value is None else UNREAD


def _list_without_nulls(value: Any) -> Any:
    return (
        [item for item in value if item is not None]
        if isinstance(value, list) and None in value
        else UNREAD
    )


def _one_for_a_list(value: Any) -> Any:
    if isinstance(value, dict):
        return [value] if value else UNREAD
    if isinstance(value, str):
        return _list_in_text(value)
    return [value] if isinstance(value, int) and not isinstance(value, bool) else UNREAD


def _list_in_text(text: str) -> list[Any]:
    if not text.strip() or word(text) in ("none", "n/a"):
        return []
    if text.lstrip().startswith("["):
        try:
            items = json.loads(text)
        except (ValueError, RecursionError):
            items = None
        if isinstance(items, list):
            return items
    return [text]


def _plain_word(value: Any) -> Any:
    return word(value) or UNREAD


class Tolerance(NamedTuple):
    """An accepted spelling of a kind of field and the reason; ``read`` returns UNREAD if it doesn't
    apply.
    """

    kind: Kind
    written: str
    why: str
    read: Callable[[Any], Any]


TOLERANCES: tuple[Tolerance, ...] = (
    Tolerance("score", '"0.95"', "a number in quotes is that number", _number_in_text),
    Tolerance(
        "score",
        '"0,95"',
        "a comma before other than three digits, or behind 0, is decimal",
        _decimal_comma,
    ),
    Tolerance("score", '"95%"', "the text names the scale itself", _percentage),
    Tolerance(
        "score",
        '"4/5", "8 out of 10"',
        "the text names the scale itself, and lies within it",
        _fraction_of,
    ),
    Tolerance(
        "row",
        '"2", "Claim 2", "[2]"',
        "one whole number, and words that only say what is counted",
        _row_number,
    ),
    Tolerance(
        "chunk",
        "2",
        "ids are texts; a number can only be the id that is written alike",
        _number_as_name,
    ),
    Tolerance("list", "null, or no field", "a list of nothing", _null_list),
    Tolerance("list", "[null]", "an item that is nothing is none", _list_without_nulls),
    Tolerance(
        "list", '{...} or "one" for a list', "one item without the list around it", _one_for_a_list
    ),
    Tolerance(
        "word",
        '"Missing info."',
        "the same word in other case, with a stop or in quotes",
        _plain_word,
    ),
    Tolerance(
        "flag", '"Yes."', "the same word in other case, with a stop or in quotes", _plain_word
    ),
)
"""The first tolerance of a kind that can read a value applies."""

SYNONYMS: dict[str, dict[str, str]] = {
    "severity": {
        **dict.fromkeys(("blocker", "fatal"), "critical"),
        # Not "critical", although the loop and reviewers treat both alike.
        **dict.fromkeys(("major", "severe", "serious"), "high"),
        **dict.fromkeys(("moderate", "med"), "medium"),
        **dict.fromkeys(
            ("minor", "info", "informational", "trivial", "negligible", "cosmetic"), "low"
        ),
    },
    "issue type": {
        **dict.fromkeys(
            ("logic", "logical_error", "logical_flaw", "logical_gap", "logical_issue"), "logical"
        ),
        **dict.fromkeys(("factual_error", "factual_inaccuracy", "factual_issue"), "factual"),
        **dict.fromkeys(("safety_issue", "safety_concern", "harmful"), "safety"),
        **dict.fromkeys(("ambiguous", "ambiguous_statement"), "ambiguity"),
        **dict.fromkeys(("missing_information", "missing", "omission"), "missing_info"),
        **dict.fromkeys(
            ("hallucinated", "hallucinations", "fabrication", "fabricated"), "hallucination"
        ),
        **dict.fromkeys(
            ("unsupported_claim", "unsupported_statement", "not_supported"), "unsupported"
        ),
        **dict.fromkeys(("incompleteness", "incomplete_answer"), "incomplete"),
        **dict.fromkeys(("contradicted", "contradicts", "contradictory"), "contradiction"),
        **dict.fromkeys(("outdated_information", "outdated_info"), "outdated"),
    },
    "verdict": {
        **dict.fromkeys(
            ("fully_supported", "completely_supported", "entirely_supported", "supports"),
            "supported",
        ),
        **dict.fromkeys(
            ("partially_supported", "partly_supported", "partial_support", "partially", "partly"),
            "partial",
        ),
        **dict.fromkeys(("contradicts", "refuted"), "contradicted"),
        **dict.fromkeys(("not_supported",), "unsupported"),
        **dict.fromkeys(
            ("not_verifiable", "cannot_be_verified", "can't_be_verified"), "unverifiable"
        ),
        **dict.fromkeys(("ambiguous", "can_be_read_either_way", "undecided"), "either_way"),
    },
    "stance": {
        **dict.fromkeys(("support", "supported", "fully_supports"), "supports"),
        **dict.fromkeys(
            ("partly", "partial", "partially", "partially_supports", "partly_supports"),
            "supports_together",
        ),
        **dict.fromkeys(("contradict", "contradicted", "refutes"), "contradicts"),
        **dict.fromkeys(("silent", "says_nothing", "not_mentioned", "neutral"), "leaves_open"),
    },
    "kind of change": {
        **dict.fromkeys(("removed", "deleted"), "dropped"),
        **dict.fromkeys(("fixed",), "corrected"),
        **dict.fromkeys(("rephrased", "reworded", "replaced"), "rewritten"),
        **dict.fromkeys(("inserted", "addition"), "added"),
    },
}
"""Accepted synonyms of the words in closed sets, normalized by ``word``; other words stay
unchanged.
"""


def tolerant(kind: Kind, words: str = "") -> Callable[[Any], Any]:
    """Return the function that reads values of this kind; ``words`` names a word's closed set."""
    tolerances = [tolerance for tolerance in TOLERANCES if tolerance.kind == kind]
    synonyms = SYNONYMS.get(words, {})

    def read(value: Any) -> Any:
        for tolerance in tolerances:
            read_value = tolerance.read(value)
            if read_value is not UNREAD:
                value = read_value
                break
        return synonyms.get(value, value) if isinstance(value, str) else value

    return read

"""Reads JSON strictly: repeated keys, NaN, Infinity and deep nesting are errors with a path.

Python's parser keeps the last of two equal keys and accepts ``NaN``, which loses or invents data
silently.
"""

from __future__ import annotations

import json
import math
from collections import Counter
from typing import Any, NamedTuple

from masis.datasets.readers.lines import utf8_error
from masis.errors import InputError
from masis.schema import limits
from masis.schema.explain import join_path, kind_of
from masis.schema.wording import shorten

_ONE_OBJECT = "Each line must hold one whole JSON object."
_QUOTED = "Put keys and text in double quotes, and no comma after the last item."


class _RefusedValue(NamedTuple):
    """Replaces a refused value so that ``_refuse_flaws`` can name its path."""

    problem: str
    hint: str


_TOO_LARGE = _RefusedValue("is a number too large to store", "Write it as text, in quotes.")


class _RepeatedKeys(dict[str, Any]):
    """An object that had the same key more than once."""

    repeated: str


def parse_object(content: bytes) -> dict[str, Any]:
    """Return the JSON object in one line.

    Raises:
        InputError: The line isn't one JSON object. The error names the byte, column or path; the
            caller adds file and line.

    """
    # Counted before parsing, since each object takes a hundred times its two characters in memory,
    # and each field thirty times its own. Spaces may precede the colon of a field, and a row with
    # so many colons in its texts would be too long anyway.
    if sum(map(content.count, (b"{", b"[", b":"))) > limits.VALUES:
        raise _values_error()
    try:
        value = _DECODER.decode(content.decode("utf-8"))
    except UnicodeDecodeError as error:
        raise utf8_error(error, of_line=True) from error
    except json.JSONDecodeError as error:
        raise _malformed_json(error, content) from error
    except RecursionError as error:
        raise _nesting_error() from error
    _refuse_flaws(value, "", 1)
    if not isinstance(value, dict):
        raise InputError(f"is {kind_of(value)}, must be an object", hint=_ONE_OBJECT)
    return value


def parse_item(text: str, at: int, *, ended: bool) -> tuple[Any, int] | None:
    """Return the JSON value that begins at ``at``, and its end.

    If the value is refused, an InputError takes its place. Returns None if the text may end in the
    middle of the value; ``ended`` says that the text is complete.

    Raises:
        InputError: The text isn't JSON.

    """
    if (
        len(text) - at > limits.VALUES
        and sum(text.count(mark, at) for mark in ("{", "[", ":")) > limits.VALUES
    ):
        raise _values_error()
    try:
        value, end = _DECODER.raw_decode(text, at)
    except json.JSONDecodeError as error:
        # The position of an unterminated string is its opening quote, so it tells nothing about the
        # end.
        is_cut_off = error.msg.startswith("Unterminated string") or not text[error.pos :].strip()
        if is_cut_off or (not ended and error.pos >= len(text) - _LONGEST_TOKEN):
            return None
        near = shorten(text[error.pos : error.pos + 60], 40)
        raise InputError(f"isn't valid JSON ({error.msg}, at {near!r})", hint=_QUOTED) from error
    except RecursionError as error:
        raise _nesting_error() from error
    try:
        _refuse_flaws(value, "", 1)
    except InputError as error:
        return error, end
    return value, end


def _values_error() -> InputError:
    return limits.limit_error("row_values", "holds more objects, lists and fields")


def _nesting_error(path: str = "") -> InputError:
    field = f"{path[:80]}..." if path else None
    return limits.limit_error(
        "nesting_levels", f"is nested more than {limits.LEVELS} levels deep", field
    )


def _malformed_json(error: json.JSONDecodeError, content: bytes) -> InputError:
    where = f"at column {error.pos + 1}"
    rest = error.doc[error.pos :].lstrip()
    problem, hint = f"isn't valid JSON ({error.msg}, {where})", _ONE_OBJECT
    if b"\x00" in content:
        problem = f"contains a null byte at byte {content.index(0) + 1} of the line"
        hint = "Remove it. Text can't contain null bytes."
    elif not rest or error.msg.startswith("Unterminated string"):
        problem = f"ends in the middle of the JSON ({error.msg.lower()}, {where})"
        hint = f"The line is cut off, or its object is spread over several lines. {_ONE_OBJECT}"
    elif error.msg.startswith("Extra data"):
        problem = f"holds more than one JSON value (the second {where})"
        hint = "Put each on a separate line."
    elif rest.startswith("'") or error.msg.startswith("Expecting property name"):
        hint = _QUOTED
    elif error.msg.startswith("Invalid control character"):
        problem = f"isn't valid JSON (a raw control character {where})"
        hint = r"Write it as an escape: \n, \t or \u00XX."
    return InputError(problem, hint=hint)


def _unique_object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    read = dict(pairs)
    if len(read) == len(pairs):
        return read
    flawed = _RepeatedKeys(read)
    # The hook sees no path, so the object is only marked here. ``_refuse_flaws`` knows the path.
    flawed.repeated = Counter(key for key, _ in pairs).most_common(1)[0][0]
    return flawed


_DECODER = json.JSONDecoder(
    object_pairs_hook=_unique_object,
    # Python's parser calls this for NaN, Infinity and -Infinity, which aren't JSON (RFC 8259).
    parse_constant=lambda written: _RefusedValue(
        f"is {written}, which isn't a JSON number",
        "Leave out the field, or write null if the value is unknown.",
    ),
    # float() returns infinity for a number beyond its range.
    parse_float=lambda text: number if math.isfinite(number := float(text)) else _TOO_LARGE,
    # int() refuses more than 4,300 digits by default (CVE-2020-10735).
    parse_int=lambda text: int(text) if len(text) <= 400 else _TOO_LARGE,
)
_LONGEST_TOKEN = 450
"""Characters of the longest number or word.

An error closer to the end may only mean that the rest wasn't read yet.
"""


def _refuse_flaws(value: Any, path: str, depth: int) -> None:
    if isinstance(value, _RefusedValue):
        raise InputError(value.problem, hint=value.hint, field=path or None)
    if isinstance(value, _RepeatedKeys):
        raise InputError(
            "appears twice in one object",
            hint="Keep one of the two.",
            field=join_path(path, value.repeated),
        )
    if isinstance(value, dict):
        items = [
            (join_path(path, key), item)
            for key, item in value.items()
            if isinstance(item, _CHECKED_TYPES)
        ]
    elif isinstance(value, list):
        items = [
            (f"{path}[{index}]", item)
            for index, item in enumerate(value)
            if isinstance(item, _CHECKED_TYPES)
        ]
    else:
        return
    if items and depth > limits.LEVELS:
        raise _nesting_error(path)
    for at, item in items:
        _refuse_flaws(item, at, depth + 1)


_CHECKED_TYPES = (dict, list, _RefusedValue)

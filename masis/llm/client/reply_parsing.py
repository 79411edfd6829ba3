r"""Parses a model's reply into the requested record.

Servers that don't enforce a schema send JSON in a code fence, with prose around it, after some
thinking, or more than once. The last object counts, since earlier ones may be quoted from the
answer under review. If something that begins like the record follows it, unfinished or malformed,
the reply is unreadable.

``NaN`` and ``Infinity`` are read as numbers; the rules for scores handle them.

A few defects are unambiguous, so they are repaired and recorded: a backslash that escapes nothing
(``\(``), a line break inside a text, a comma before a closing bracket, and an object whose only
known key holds the record (``{"result": {...}}``). ``masis/llm/roles/tolerances.py`` lists the
accepted values of single fields.
"""

from __future__ import annotations

import contextlib
import json
import re
from collections.abc import Iterator
from typing import Any, Generic, NamedTuple, TypeVar

from pydantic import BaseModel, ValidationError

from masis.llm.client import schemas

R = TypeVar("R", bound=BaseModel)

LONGEST_REPLY = 1_000_000
"""The longest reply in characters that is parsed; no prompt asks for nearly as much."""

_DECODER = json.JSONDecoder()
_LONE_SURROGATE = re.compile("[\ud800-\udfff]")
_ESCAPED_SURROGATE = re.compile(r"\\u[dD][89a-fA-F]")
# "{}" or "{ "name" :". Most braces in prose and code are followed by something else, and a failed
# decoding costs time.
_OPENING = re.compile(r'\{(?=\s{0,200}(?:\}|"[^"\\]{0,200}"\s{0,200}:))')
_PATIENCE = 20
"""How often, on average, each character may be read before a reply counts as not JSON. It keeps
the time linear.
"""


class UnreadableReply(ValueError):
    """The text isn't the requested record; the message gives the reason without quoting it."""


class _FoundObject(NamedTuple):
    value: dict[str, Any]
    start: int
    end: int


class ParsedReply(NamedTuple, Generic[R]):
    """A record, and the repairs that were needed to read it."""

    record: R
    repairs: tuple[str, ...] = ()


def parse(text: str, shape: type[R]) -> ParsedReply[R]:
    """Return the record in a reply, with the repairs that were needed.

    Raises:
        UnreadableReply: There is no such record in it; the message is the reason.

    """
    if len(text) > LONGEST_REPLY:
        raise UnreadableReply(
            f"the reply has {len(text):,} characters; at most {LONGEST_REPLY:,} are read"
        )
    try:
        return _parse(text, shape)
    except UnreadableReply:
        # Only tried after strict parsing failed, so that a valid reply is never changed.
        corrected, repairs = _correct_json(text)
        if not repairs:
            raise
        parsed = _parse(corrected, shape)
        return parsed._replace(repairs=(*repairs, *parsed.repairs))


def parse_reply(text: str, shape: type[R]) -> R:
    """Return the record in a reply.

    Raises:
        UnreadableReply: There is no such record in it; the message is the reason.

    """
    return parse(text, shape).record


def _parse(text: str, shape: type[R]) -> ParsedReply[R]:
    names = shape.model_fields.keys()
    value = None
    with contextlib.suppress(ValueError, RecursionError):
        value = json.loads(text)
    if isinstance(value, dict):
        return _record_in(value, text, shape)
    objects = list(_objects(text))
    if not objects:
        raise UnreadableReply("the reply holds no JSON object")
    last_named = max(text.rfind(f'"{name}"') for name in names)
    last_partial, next_start = None, len(text)
    for candidate in reversed(objects):
        # A brace after this object that no later object explains, with a field's name behind it,
        # begins a record that was cut off. An earlier object must not be read in its place.
        if 0 <= text.find("{", candidate.end, next_start) < last_named:
            raise UnreadableReply("the last JSON object of the reply is not finished")
        fields = len(candidate.value.keys() & names)
        # With less than half of the fields it is a remark about the record, as in {"confidence":
        # "high"} was considered.
        if 2 * fields >= len(names) or (not fields and _unwrap_record(candidate.value, shape)):
            return _record_in(candidate.value, text, shape)
        last_partial, next_start = last_partial or (candidate if fields else None), candidate.start
    return _record_in((last_partial or objects[-1]).value, text, shape)


def _record_in(value: dict[str, Any], text: str, shape: type[R]) -> ParsedReply[R]:
    if value.keys() & shape.model_fields.keys():
        return ParsedReply(validate_record(value, text, shape))
    if (unwrapped := _unwrap_record(value, shape)) is not None:
        return ParsedReply(
            validate_record(unwrapped, text, shape), ("a wrapper around the record",)
        )
    return ParsedReply(validate_record(value, text, shape))


_WRAPPERS = frozenset(
    "answer arguments content data final json object output parameters properties record reply"
    " response result results value".split()
)
"""Keys under which models put the record. They name a reply, never something that a reply quotes
(``example``).
"""
_DEEPEST_WRAPPER = 3


def _unwrap_record(
    value: dict[str, Any], shape: type[BaseModel], depth: int = _DEEPEST_WRAPPER
) -> dict[str, Any] | None:
    """Return the record inside an object that has none of its fields; None if other values could be
    the record as well.

    Text fields next to it don't count, such as the ``type`` and ``title`` of an echoed schema.
    """
    # "required" and the definitions of an echoed schema hold names and schemas, never values.
    nested = [
        (key, inside)
        for key, inside in value.items()
        if isinstance(inside, dict | list)
        and inside
        and key not in ("required", "$defs", "definitions")
    ]
    if len(nested) != 1 or not depth:
        return None
    key, inside = nested[0]
    if isinstance(inside, list) and len(inside) == 1:
        inside = inside[0]
    names = {schemas.name_of(shape), shape.__name__.lower(), *_WRAPPERS}
    if key.lower() not in names or not isinstance(inside, dict):
        return None
    return (
        inside
        if inside.keys() & shape.model_fields.keys()
        else _unwrap_record(inside, shape, depth - 1)
    )


_STRING_OR_COMMA = re.compile(
    r"""(?P<text>"(?:[^"\\]|\\.)*+(?:"|\Z))  # a text, or the rest if it is unclosed
      | (?P<comma>,)(?=\s{0,1000}[}\]])  # a comma before a closing bracket
    """,
    re.DOTALL | re.VERBOSE,
)
_ESCAPE = re.compile(r'\\(?:(?P<known>["\\/bfnrt]|u[0-9a-fA-F]{4})|(?P<quote>\')|)')
_LINE_BREAKS = str.maketrans({"\n": "\\n", "\r": "\\r", "\t": "\\t"})


def _correct_json(text: str) -> tuple[str, tuple[str, ...]]:
    """Return a reply with its unambiguous defects corrected to strict JSON, and the names of the
    repairs.
    """
    repairs: dict[str, None] = {}

    def escaped(match: re.Match[str]) -> str:
        if match["known"]:
            return match[0]
        repairs["a backslash that escapes nothing"] = None
        # \' is an escaped quote in JavaScript and Python; JSON has no such escape.
        return "'" if match["quote"] else "\\\\"

    def correct(match: re.Match[str]) -> str:
        if match["comma"]:
            repairs["a comma too many"] = None
            return ""
        written = match["text"]
        if "\\" in written:
            written = _ESCAPE.sub(escaped, written)
        # isprintable() is a fast test that most texts pass.
        if (
            not written.isprintable()
            and (without_breaks := written.translate(_LINE_BREAKS)) != written
        ):
            repairs["a line break in a text"] = None
            written = without_breaks
        return written

    # A quote in the prose before the object would make every text end where it begins.
    opening = text.find("{")
    if opening < 0:
        return text, ()
    corrected = text[:opening] + _STRING_OR_COMMA.sub(correct, text[opening:])
    return corrected, tuple(repairs)


def record_at_the_end(text: str) -> str | None:
    """Return the JSON object at the end of a text, before a closing code fence at most; None if it
    doesn't end with one.

    Some servers put a whole reply into the model's reasoning and leave the content empty. Only an
    object at the end of the reasoning is a reply.
    """
    if len(text) > LONGEST_REPLY:
        return None
    objects = list(_objects(text))
    # strip("`") removes a closing code fence.
    if not objects or text[objects[-1].end :].strip().strip("`").strip():
        return None
    return text[objects[-1].start : objects[-1].end]


def _objects(text: str) -> Iterator[_FoundObject]:
    """Yield the outermost objects of a text, in order."""
    opening, patience = _OPENING.search(text), _PATIENCE * len(text) + 10_000
    while opening and patience > 0:
        start, after = opening.start(), opening.start() + 1
        try:
            value, after = _DECODER.raw_decode(text, start)
            yield _FoundObject(value, start, after)
        except json.JSONDecodeError as error:
            # To build the error, Python counts the lines up to its position.
            patience -= error.pos - start + len(text) // 100
        # A ValueError is a number with too many digits (sys.set_int_max_str_digits).
        except (ValueError, RecursionError):
            patience -= len(text) - start
        opening = _OPENING.search(text, after)


def validate_record(value: dict[str, Any], text: str, shape: type[R]) -> R:
    """Return the record with these fields, which were read from ``text``.

    Raises:
        UnreadableReply: The fields don't fit the record; the message is the reason.

    """
    try:
        if _ESCAPED_SURROGATE.search(text):
            value = _replace_surrogates(value)
        return shape.model_validate(value)
    except ValidationError as error:
        raise UnreadableReply(_validation_reason(error)) from None
    except RecursionError:
        raise UnreadableReply("the reply is nested too deep") from None


def _validation_reason(error: ValidationError) -> str:
    """Say which fields are wrong and how, without their values."""
    problems = [
        f"{'.'.join(map(str, problem['loc']))[:80] or 'reply'}: {problem['msg']}"
        for problem in error.errors()
    ]
    more = f" and {len(problems) - 3} more" if len(problems) > 3 else ""
    return "; ".join(problems[:3]) + more


def _replace_surrogates(value: Any) -> Any:
    """Replace lone surrogates in a value, which JSON can contain but files and databases can't
    store.
    """
    if isinstance(value, str):
        return _LONE_SURROGATE.sub("\ufffd", value)
    if isinstance(value, list):
        return [_replace_surrogates(item) for item in value]
    if isinstance(value, dict):
        return {_replace_surrogates(key): _replace_surrogates(item) for key, item in value.items()}
    return value

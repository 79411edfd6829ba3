r"""A reply's text, read into the record that was asked for.

Servers that don't enforce a schema send JSON in a code fence, with prose around it, after a stretch
of thinking, or more than once. The last object binds, since earlier ones may be quoted from the
answer under review; and where something that begins like the record stands after it, unfinished or
out of form, nothing is read at all.

``NaN`` and ``Infinity`` are read as the numbers they name: what they mean for a score is not
decided here.

Read for certain, and recorded as a repair: a backslash that escapes nothing (``\(``), a line break
inside a text, a comma before a closing bracket, and an object whose one known key holds the record
(``{"result": {...}}``). What single fields may hold is said in ``masis/llm/roles/tolerances.py``.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any, Generic, NamedTuple, TypeVar

from pydantic import BaseModel, ValidationError

from masis.llm.client import schemas

R = TypeVar("R", bound=BaseModel)

LONGEST_REPLY = 1_000_000
"""Characters of a reply that are looked at: more is no answer to any question asked here."""

_DECODER = json.JSONDecoder()
_LONE_SURROGATE = re.compile("[\ud800-\udfff]")
_HALF_CHARACTER = re.compile(r"\\u[dD][89a-fA-F]")
_OPENING = re.compile(r'\{(?=\s{0,200}(?:\}|"[^"\\]{0,200}"\s{0,200}:))')
"""A brace with what may follow it in JSON: most braces in prose and code are followed by something
else.
"""
_PATIENCE = 20
"""How often, on average, each character may be looked at before a reply counts as no JSON: keeps
the time linear.
"""


class UnreadableReply(ValueError):
    """The text is not the record that was asked for; the message says why, without quoting it."""


class _FoundObject(NamedTuple):
    value: dict[str, Any]
    start: int
    end: int


class ParsedReply(NamedTuple, Generic[R]):
    """A record, and what of the reply had to be overlooked to read it."""

    record: R
    repairs: tuple[str, ...] = ()


def parse(text: str, shape: type[R]) -> ParsedReply[R]:
    """Return the record in a reply. Raises Unreadable with the reason."""
    if len(text) > LONGEST_REPLY:
        raise UnreadableReply(
            f"the reply has {len(text):,} characters; at most {LONGEST_REPLY:,} are read"
        )
    try:
        return _parse(text, shape)
    except UnreadableReply:
        mended, repairs = _mend_json(text)
        if not repairs:
            raise
        found = _parse(mended, shape)
        return found._replace(repairs=(*repairs, *found.repairs))


def parse_reply(text: str, shape: type[R]) -> R:
    """The record in a reply. Raises Unreadable with the reason."""
    return parse(text, shape).record


def _parse(text: str, shape: type[R]) -> ParsedReply[R]:
    names = shape.model_fields.keys()
    if (whole := _whole_object(text)) is not None:
        return _record_in(whole, text, shape)
    found = list(_objects(text))
    if not found:
        raise UnreadableReply("the reply holds no JSON object")
    last_named = max(text.rfind(f'"{name}"') for name in names)
    last_field, behind = None, len(text)
    for candidate in reversed(found):
        if 0 <= text.find("{", candidate.end, behind) < last_named:
            raise UnreadableReply("the last JSON object of the reply is not finished")
        fields = len(candidate.value.keys() & names)
        # With less than half of the fields it is a remark about the record: {"confidence": "high"}
        # was considered.
        if 2 * fields >= len(names) or (not fields and _unwrap_record(candidate.value, shape)):
            return _record_in(candidate.value, text, shape)
        last_field, behind = last_field or (candidate if fields else None), candidate.start
    return _record_in((last_field or found[-1]).value, text, shape)


def _record_in(value: dict[str, Any], text: str, shape: type[R]) -> ParsedReply[R]:
    if value.keys() & shape.model_fields.keys():
        return ParsedReply(validate_record(value, text, shape))
    if (inside := _unwrap_record(value, shape)) is not None:
        return ParsedReply(validate_record(inside, text, shape), ("a wrapper around the record",))
    return ParsedReply(validate_record(value, text, shape))


_WRAPPERS = frozenset(
    "answer arguments content data final json object output parameters properties record reply"
    " response result results value".split()
)
"""Keys under which models put the record: names of a reply as such, never of something quoted in it
(``example``).
"""
_DEEPEST_WRAPPER = 3


def _unwrap_record(
    value: dict[str, Any], shape: type[BaseModel], depth: int = _DEEPEST_WRAPPER
) -> dict[str, Any] | None:
    """Return the record inside an object that has none of its fields; None where it isn't the only
    thing there.

    Beside it there may be texts only, such as the ``type`` and ``title`` of a schema that was
    echoed: another object or list could be the record as well.
    """
    held: list[tuple[str, Any]] = [
        (key, held) for key, held in value.items() if isinstance(held, dict | list) and held
    ]
    # "required" and the definitions of a schema that was echoed list names and forms, never values.
    held = [
        (key, inside) for key, inside in held if key not in ("required", "$defs", "definitions")
    ]
    if len(held) != 1 or not depth:
        return None
    key, inside = held[0]
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
    r"""(?P<text>"(?:[^"\\]|\\.)*+(?:"|\Z))  # a text, its escapes walked over; to the end where nothing closes it
      | (?P<comma>,)(?=\s{0,1000}[}\]])  # a comma with nothing behind it
    """,
    re.DOTALL | re.VERBOSE,
)
_ESCAPE = re.compile(r'\\(?:(?P<known>["\\/bfnrt]|u[0-9a-fA-F]{4})|(?P<quote>\')|)')
_LINE_BREAKS = str.maketrans({"\n": "\\n", "\r": "\\r", "\t": "\\t"})


def _mend_json(text: str) -> tuple[str, tuple[str, ...]]:
    """Return a reply with what strict JSON refuses and can mean one thing only written as JSON has
    it.
    """
    repairs: dict[str, None] = {}

    def escaped(found: re.Match[str]) -> str:
        if found["known"]:
            return found[0]
        repairs["a backslash that escapes nothing"] = None
        # \' is the quote in JavaScript and Python; JSON has no such escape
        return "'" if found["quote"] else "\\\\"

    def mend(found: re.Match[str]) -> str:
        if found["comma"]:
            repairs["a comma too many"] = None
            return ""
        written = found["text"]
        if "\\" in written:
            written = _ESCAPE.sub(escaped, written)
        if not written.isprintable() and (flat := written.translate(_LINE_BREAKS)) != written:
            repairs["a line break in a text"] = None
            written = flat
        return written

    opening = text.find("{")  # a quote in the prose before it would turn texts inside out
    if opening < 0:
        return text, ()
    mended = text[:opening] + _STRING_OR_COMMA.sub(mend, text[opening:])
    return mended, tuple(repairs)


def record_at_the_end(text: str) -> str | None:
    """Return the JSON object that a text ends with, but for a code fence; None where it ends
    otherwise.

    Some servers file a whole reply under the model's reasoning and leave the content empty. What
    stands in the middle of a thought is no reply; what the thought ends with is.
    """
    if len(text) > LONGEST_REPLY:
        return None
    found = list(_objects(text))
    if not found or text[found[-1].end :].strip().strip("`").strip():
        return None
    return text[found[-1].start : found[-1].end]


def _whole_object(text: str) -> dict[str, Any] | None:
    """The object, where the text is one and nothing else."""
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def _objects(text: str) -> Iterator[_FoundObject]:
    """The objects in a text that stand in no other, in order."""
    opening, patience = _OPENING.search(text), _PATIENCE * len(text) + 10_000
    while opening and patience > 0:
        start, after = opening.start(), opening.start() + 1
        try:
            value, after = _DECODER.raw_decode(text, start)
            yield _FoundObject(value, start, after)
        except json.JSONDecodeError as error:
            # the error itself counts lines up to its place
            patience -= error.pos - start + len(text) // 100
        except (ValueError, RecursionError):  # a number of too many digits; too deep
            patience -= len(text) - start
        opening = _OPENING.search(text, after)


def validate_record(value: dict[str, Any], text: str, shape: type[R]) -> R:
    """The record of these fields, which were read from ``text``. Raises Unreadable with
    the reason.
    """
    try:
        if _HALF_CHARACTER.search(text):
            value = _whole_characters(value)
        return shape.model_validate(value)
    except ValidationError as error:
        raise UnreadableReply(_validation_reason(error)) from None
    except RecursionError:
        raise UnreadableReply("the reply is nested too deep") from None


def _validation_reason(error: ValidationError) -> str:
    """Which fields are wrong and how, without what they hold."""
    wrong = [
        f"{'.'.join(str(part) for part in each['loc'])[:80] or 'reply'}: {each['msg']}"
        for each in error.errors()
    ]
    more = f" and {len(wrong) - 3} more" if len(wrong) > 3 else ""
    return "; ".join(wrong[:3]) + more


def _whole_characters(value: Any) -> Any:
    """The value with halves of characters replaced: JSON can write one alone, no file and no
    database takes it.
    """
    if isinstance(value, str):
        return _LONE_SURROGATE.sub("\ufffd", value)
    if isinstance(value, list):
        return [_whole_characters(each) for each in value]
    if isinstance(value, dict):
        return {_whole_characters(key): _whole_characters(each) for key, each in value.items()}
    return value

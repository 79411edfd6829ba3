"""A reply's text, read into the record that was asked for.

Servers that don't enforce a schema send JSON in a code fence, with prose around it, after a stretch of thinking, or
more than once. The last object binds, since earlier ones may be quoted from the answer under review; and
where something that begins like the record stands after it, unfinished or out of form, nothing is read at all.

``NaN`` and ``Infinity`` are read as the numbers they name: what they mean for a score is not decided here.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any, NamedTuple, TypeVar

from pydantic import BaseModel, ValidationError

R = TypeVar("R", bound=BaseModel)

LONGEST_REPLY = 1_000_000
"""Characters of a reply that are looked at: more is no answer to any question asked here."""

_DECODER = json.JSONDecoder()
_LONE_SURROGATE = re.compile("[\ud800-\udfff]")
_HALF_CHARACTER = re.compile(r"\\u[dD][89a-fA-F]")
_OPENING = re.compile(r'\{(?=\s{0,200}(?:\}|"[^"\\]{0,200}"\s{0,200}:))')
"""A brace with what may follow it in JSON: most braces in prose and code are followed by something else."""
_PATIENCE = 20
"""How often, on average, each character may be looked at before a reply counts as no JSON: keeps the time linear."""


class Unreadable(ValueError):
    """The text is not the record that was asked for; the message says why, without quoting it."""


class _Found(NamedTuple):
    value: dict[str, Any]
    end: int


def read(text: str, shape: type[R]) -> R:
    """The record in a reply. Raises Unreadable with the reason."""
    if len(text) > LONGEST_REPLY:
        raise Unreadable(f"the reply has {len(text):,} characters; at most {LONGEST_REPLY:,} are read")
    if (whole := _whole(text)) is not None:
        return validated(whole, text, shape)
    found = list(_objects(text))
    if not found:
        raise Unreadable("the reply holds no JSON object")
    last_named = max(text.rfind(f'"{name}"') for name in shape.model_fields)
    for candidate in reversed(found):
        if 0 <= text.find("{", candidate.end) < last_named:
            raise Unreadable("the last JSON object of the reply is not finished")
        if candidate.value.keys() & shape.model_fields.keys():
            return validated(candidate.value, text, shape)
    return validated(found[-1].value, text, shape)


def _whole(text: str) -> dict[str, Any] | None:
    """The object, where the text is one and nothing else."""
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def _objects(text: str) -> Iterator[_Found]:
    """The objects in a text that stand in no other, in order."""
    opening, patience = _OPENING.search(text), _PATIENCE * len(text) + 10_000
    while opening and patience > 0:
        start, after = opening.start(), opening.start() + 1
        try:
            value, after = _DECODER.raw_decode(text, start)
            yield _Found(value, after)
        except json.JSONDecodeError as error:
            patience -= error.pos - start + len(text) // 100  # the error itself counts lines up to its place
        except (ValueError, RecursionError):  # a number of too many digits; too deep
            patience -= len(text) - start
        opening = _OPENING.search(text, after)


def validated(value: dict[str, Any], text: str, shape: type[R]) -> R:
    """The record of these fields, which were read from ``text``. Raises Unreadable with the reason."""
    try:
        if _HALF_CHARACTER.search(text):
            value = _whole_characters(value)
        return shape.model_validate(value)
    except ValidationError as error:
        raise Unreadable(_reason(error)) from None
    except RecursionError:
        raise Unreadable("the reply is nested too deep") from None


def _reason(error: ValidationError) -> str:
    """Which fields are wrong and how, without what they hold."""
    wrong = [f"{'.'.join(str(part) for part in each['loc'])[:80] or 'reply'}: {each['msg']}" for each in error.errors()]
    more = f" and {len(wrong) - 3} more" if len(wrong) > 3 else ""
    return "; ".join(wrong[:3]) + more


def _whole_characters(value: Any) -> Any:
    """The value with halves of characters replaced: JSON can write one alone, no file and no database takes it."""
    if isinstance(value, str):
        return _LONE_SURROGATE.sub("\ufffd", value)
    if isinstance(value, list):
        return [_whole_characters(each) for each in value]
    if isinstance(value, dict):
        return {_whole_characters(key): _whole_characters(each) for key, each in value.items()}
    return value

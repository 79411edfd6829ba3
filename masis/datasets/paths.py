"""Paths into a row, in JMESPath, with a few functions more for what tools write as text inside of
text.
"""

from __future__ import annotations

import json
import re
from functools import lru_cache
from typing import Any

import jmespath
from jmespath import functions
from jmespath.exceptions import JMESPathError

from masis.errors import InputError
from masis.schema.answers import is_thought
from masis.schema.explain import kind_of
from masis.schema.literals import parse_value

_SILENT_PARTS = frozenset(
    {"document", "search_result", "tool_result", "tool_use", "image", "image_url", "input_file"}
)
"""Types of parts of a message that are no words of who sent it."""

_NUMBERED = re.compile(r"\s{0,4}\[(\d{1,6})\]\s*")
_PROMPTED = re.compile(
    r"^[ \t#*]{0,8}(?:retrieved |given |user |the )?"
    r"(question|query|answer|context|passages?|sources?|documents?|evidence|article|background)["
    r" \t*]{0,4}:[ \t*]{0,8}",
    re.IGNORECASE | re.MULTILINE,
)
_PASSAGE = re.compile(r"(?:\A|\n)\s{0,4}passage \d{1,4}: ?")


def text_of(value: Any) -> str | None:
    """Return the text of a content that is text, or a list of parts of which some have text; None
    for any other.
    """
    if isinstance(value, str):
        return value
    if isinstance(value, dict):
        for key in ("text", "content", "value", "parts"):
            if key in value and (found := text_of(value[key])) is not None:
                return found
        return None
    if isinstance(value, list):
        said = (
            item
            for item in value
            if not (
                isinstance(item, dict)
                and (str(item.get("type")) in _SILENT_PARTS or is_thought(item))
            )
        )
        parts = [part for item in said if (part := text_of(item)) is not None]
        return "".join(parts) if parts else None
    return None


class _Functions(functions.Functions):  # type: ignore[misc]  # the library has no types
    """What JMESPath lacks for files of traces and chats."""

    @functions.signature({"types": []})  # type: ignore[untyped-decorator]
    def _func_parsed(self, value: Any) -> Any:
        return parse_value(value)

    @functions.signature({"types": []})  # type: ignore[untyped-decorator]
    def _func_decoded(self, value: Any) -> Any:
        """What a tool wrote as JSON whatever it is: a text in quotes too, which ``parsed`` leaves
        as it is.
        """
        if (
            isinstance(value, str)
            and value.startswith('"')
            and value.endswith('"')
            and len(value) > 1
        ):
            try:
                return json.loads(value)
            except ValueError:
                return value
        return parse_value(value)

    @functions.signature({"types": []})  # type: ignore[untyped-decorator]
    def _func_text(self, value: Any) -> str | None:
        return text_of(value)

    @functions.signature({"types": []}, {"types": ["string"]})  # type: ignore[untyped-decorator]
    def _func_last_message(self, messages: Any, role: str) -> str | None:
        """The text of the last message of a role; a text alone is the user's."""
        if isinstance(messages, str):
            return messages if role == "user" else None
        for message in reversed(messages if isinstance(messages, list) else []):
            if isinstance(message, dict) and message.get("role", message.get("type")) == role:
                return text_of(message.get("content", message.get("parts")))
        return None

    @functions.signature({"types": []})  # type: ignore[untyped-decorator]
    def _func_passages(self, text: Any) -> list[str] | None:
        """``passage 1:...  passage 2:...`` as a list."""
        if not isinstance(text, str):
            return None
        return [piece.strip() for piece in _PASSAGE.split(text) if piece.strip()] or None

    @functions.signature({"types": []})  # type: ignore[untyped-decorator]
    def _func_prompted(self, prompt: Any) -> dict[str, str] | None:
        """Question and context of a prompt that holds both under names: ``Context: ... Question:
        ...``.
        """
        found: dict[str, list[str]] = {"question": [], "context": [], "answer": []}
        pieces = _PROMPTED.split(text_of(prompt) or "")
        for name, part in zip(pieces[1::2], pieces[2::2], strict=True):
            kind = {"question": "question", "query": "question", "answer": "answer"}.get(
                name.lower(), "context"
            )
            found[kind] += [part.strip()] if part.strip() else []
        if not found["question"] or not found["context"]:
            return None
        return {"question": found["question"][-1], "context": "\n\n".join(found["context"])}

    @functions.signature({"types": []})  # type: ignore[untyped-decorator]
    def _func_numbered(self, texts: Any) -> Any:
        """``["[2] text"]`` as ``[{"id": "2", "text": "text"}]``; texts without a number stay as
        they are.
        """
        if not isinstance(texts, list):
            return texts
        found = [_NUMBERED.match(text) if isinstance(text, str) else None for text in texts]
        return [
            {"id": match[1], "text": text[match.end() :]} if match else text
            for match, text in zip(found, texts, strict=True)
        ]

    @functions.signature({"types": []})  # type: ignore[untyped-decorator]
    def _func_nested(self, value: Any) -> Any:
        """``{"a.0.b": 1}`` as ``{"a": [{"b": 1}]}``, as OpenTelemetry flattens attributes."""
        return _unflatten(value) if isinstance(value, dict) else value

    @functions.signature({"types": []})  # type: ignore[untyped-decorator]
    def _func_attributes(self, value: Any) -> Any:
        """OTLP's ``[{"key": k, "value": {"stringValue": v}}]`` as an object; an object as it is."""
        return _otlp_attributes(value) if isinstance(value, list) else value


def _otlp_attributes(items: list[Any]) -> dict[str, Any]:
    pairs = [item for item in items if isinstance(item, dict) and isinstance(item.get("key"), str)]
    return {item["key"]: _otlp_value(item.get("value")) for item in pairs}


def _otlp_value(value: Any) -> Any:
    if not isinstance(value, dict) or len(value) != 1:
        return value
    ((kind, held),) = value.items()
    items = held.get("values", []) if isinstance(held, dict) else []
    if kind == "arrayValue" and isinstance(items, list):
        return [_otlp_value(item) for item in items]
    if kind == "kvlistValue" and isinstance(items, list):
        return _otlp_attributes(items)
    return held


def _unflatten(flat: dict[str, Any]) -> Any:
    tree: dict[str, Any] = {}
    for key, value in flat.items():
        at, parts = tree, key.split(".")[:32]
        for part in parts[:-1]:
            below = at.setdefault(part, {})
            if not isinstance(below, dict):
                below = at[part] = {"": below}
            at = below
        held, inner = at.get(parts[-1]), _unflatten(value) if isinstance(value, dict) else value
        if isinstance(held, dict):
            held |= inner if isinstance(inner, dict) else {"": inner}
        else:
            at[parts[-1]] = inner
    return _lists_from_indexes(tree)


def _lists_from_indexes(value: Any) -> Any:
    if not isinstance(value, dict):
        return value
    if value and all(key.isdecimal() and len(key) < 7 for key in value):
        return [_lists_from_indexes(value[key]) for key in sorted(value, key=int)]
    return {key: _lists_from_indexes(item) for key, item in value.items()}


_OPTIONS = jmespath.Options(custom_functions=_Functions())


@lru_cache(maxsize=1024)
def _compile_path(path: str) -> Any:
    return jmespath.compile(path)


def path_error(path: str) -> str | None:
    """Return why a text is no JMESPath expression; None where it is one."""
    try:
        _compile_path(path)
    except JMESPathError as error:
        return str(error).splitlines()[0]
    return None


def value_at(row: Any, paths: tuple[str, ...]) -> Any:
    """Return the first value that the paths give which is neither null, nor an empty text, list or
    object.

    Raises InputError where a path can't be followed in this row, such as a function applied to
    another type.
    """
    for path in paths:
        try:
            value = _compile_path(path).search(row, options=_OPTIONS)
        except JMESPathError as error:
            raise InputError(
                f"the path {path} can't be followed in {kind_of(row)}"
                f" ({str(error).splitlines()[0][:120]})",
                hint="Correct the path, or the row.",
            ) from error
        if value is not None and value != "" and value != [] and value != {}:
            return value
    return None

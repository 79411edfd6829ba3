"""Paths into a row: JMESPath with additional functions for formats that tools nest inside text."""

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
"""Types of message parts that aren't words of the sender."""

_NUMBERED = re.compile(r"\s{0,4}\[(\d{1,6})\]\s*")
"""A number in brackets at the start of a text: ``[2] text``."""
_PROMPTED = re.compile(
    r"^[ \t#*]{0,8}(?:retrieved |given |user |the )?"
    r"(question|query|answer|context|passages?|sources?|documents?|evidence|article|background)"
    r"[ \t*]{0,4}:[ \t*]{0,8}",
    re.IGNORECASE | re.MULTILINE,
)
"""A name in a prompt, at the start of a line: ``Question:``, ``**Context**:``, ``Given passages:``.
"""
_PASSAGE = re.compile(r"(?:\A|\n)\s{0,4}passage \d{1,4}: ?")
"""RAGTruth's separator of passages: ``passage 1:``."""


def text_of(value: Any) -> str | None:
    """Return the text of a content: a text, or the joined texts of its parts; else None."""
    if isinstance(value, str):
        return value
    if isinstance(value, dict):
        for key in ("text", "content", "value", "parts"):
            if key in value and (text := text_of(value[key])) is not None:
                return text
        return None
    if isinstance(value, list):
        items = (
            item
            for item in value
            if not (
                isinstance(item, dict)
                and (str(item.get("type")) in _SILENT_PARTS or is_thought(item))
            )
        )
        parts = [part for item in items if (part := text_of(item)) is not None]
        return "".join(parts) if parts else None
    return None


class _Functions(functions.Functions):  # type: ignore[misc]  # the library has no types
    """JMESPath functions for files of traces and chats."""

    @functions.signature({"types": []})  # type: ignore[untyped-decorator]
    def _func_parsed(self, value: Any) -> Any:
        return parse_value(value)

    @functions.signature({"types": []})  # type: ignore[untyped-decorator]
    def _func_decoded(self, value: Any) -> Any:
        """Parse a value that a tool always writes as JSON.

        Unlike ``parsed``, this also decodes a text in quotes.
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
        """Return the text of the last message of a role; a plain text is the user's."""
        if isinstance(messages, str):
            return messages if role == "user" else None
        for message in reversed(messages if isinstance(messages, list) else []):
            if isinstance(message, dict) and message.get("role", message.get("type")) == role:
                return text_of(message.get("content", message.get("parts")))
        return None

    @functions.signature({"types": []})  # type: ignore[untyped-decorator]
    def _func_passages(self, text: Any) -> list[str] | None:
        """Split ``passage 1:...  passage 2:...`` into a list."""
        if not isinstance(text, str):
            return None
        return [piece.strip() for piece in _PASSAGE.split(text) if piece.strip()] or None

    @functions.signature({"types": []})  # type: ignore[untyped-decorator]
    def _func_prompted(self, prompt: Any) -> dict[str, str] | None:
        """Return the question and context of a prompt such as ``Context: ... Question: ...``."""
        sections: dict[str, list[str]] = {"question": [], "context": [], "answer": []}
        pieces = _PROMPTED.split(text_of(prompt) or "")
        for name, part in zip(pieces[1::2], pieces[2::2], strict=True):
            kind = {"question": "question", "query": "question", "answer": "answer"}.get(
                name.lower(), "context"
            )
            sections[kind] += [part.strip()] if part.strip() else []
        if not sections["question"] or not sections["context"]:
            return None
        return {"question": sections["question"][-1], "context": "\n\n".join(sections["context"])}

    @functions.signature({"types": []})  # type: ignore[untyped-decorator]
    def _func_numbered(self, texts: Any) -> Any:
        """Turn ``["[2] text"]`` into ``[{"id": "2", "text": "text"}]``.

        Texts without a number stay unchanged.
        """
        if not isinstance(texts, list):
            return texts
        matches = [_NUMBERED.match(text) if isinstance(text, str) else None for text in texts]
        return [
            {"id": match[1], "text": text[match.end() :]} if match else text
            for match, text in zip(matches, texts, strict=True)
        ]

    @functions.signature({"types": []})  # type: ignore[untyped-decorator]
    def _func_nested(self, value: Any) -> Any:
        """Turn ``{"a.0.b": 1}`` into ``{"a": [{"b": 1}]}``.

        OpenTelemetry flattens attributes this way.
        """
        return _unflatten(value) if isinstance(value, dict) else value

    @functions.signature({"types": []})  # type: ignore[untyped-decorator]
    def _func_attributes(self, value: Any) -> Any:
        """Turn OTLP's ``[{"key": k, "value": {"stringValue": v}}]`` into an object."""
        return _otlp_attributes(value) if isinstance(value, list) else value


def _otlp_attributes(items: list[Any]) -> dict[str, Any]:
    pairs = [item for item in items if isinstance(item, dict) and isinstance(item.get("key"), str)]
    return {item["key"]: _otlp_value(item.get("value")) for item in pairs}


def _otlp_value(value: Any) -> Any:
    if not isinstance(value, dict) or len(value) != 1:
        return value
    ((kind, content),) = value.items()
    items = content.get("values", []) if isinstance(content, dict) else []
    if kind == "arrayValue" and isinstance(items, list):
        return [_otlp_value(item) for item in items]
    if kind == "kvlistValue" and isinstance(items, list):
        return _otlp_attributes(items)
    return content


def _unflatten(flat: dict[str, Any]) -> Any:
    tree: dict[str, Any] = {}
    for key, value in flat.items():
        node, parts = tree, key.split(".")[:32]
        for part in parts[:-1]:
            child = node.setdefault(part, {})
            if not isinstance(child, dict):
                child = node[part] = {"": child}
            node = child
        existing = node.get(parts[-1])
        nested = _unflatten(value) if isinstance(value, dict) else value
        if isinstance(existing, dict):
            existing |= nested if isinstance(nested, dict) else {"": nested}
        else:
            node[parts[-1]] = nested
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
    """Return why a text isn't a JMESPath expression, or None if it is one."""
    try:
        _compile_path(path)
    except JMESPathError as error:
        return str(error).splitlines()[0]
    return None


def value_at(row: Any, paths: tuple[str, ...]) -> Any:
    """Return the first value at the paths that isn't null or an empty text, list or object.

    Raises:
        InputError: A path fails in this row, for example because a function gets the wrong type.

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

"""Which text can be kept: a null byte or half a surrogate pair is refused at the door, with the
place it stands at.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from pydantic_core import PydanticCustomError

SURROGATE_HALF = re.compile("[\ud800-\udfff]")


def refuse_unstorable(data: Any, whole: str = "the record") -> None:
    """Raise where ``data`` holds text that a database and a file can't keep; ``whole`` names the
    record in the message.

    Raises PydanticCustomError, which a validator turns into an error of the field.
    """
    if is_storable(data):  # which of its texts it is costs more to find out than that one is
        return
    for path, text in _texts_with_paths(data, whole):
        if "\x00" in text:
            raise PydanticCustomError(
                "null_byte",
                "{path} holds a null byte at character {at}",
                {"path": path, "at": text.index("\x00")},
            )
        if not is_storable(text):
            raise PydanticCustomError(
                "surrogate",
                "{path} holds half of a surrogate pair, which is no text",
                {"path": path},
            )


def is_storable(value: Any) -> bool:
    """Whether all text in a value, keys included, can be kept."""
    if isinstance(value, str):
        return "\x00" not in value and (value.isascii() or not SURROGATE_HALF.search(value))
    if isinstance(value, dict):
        return all(map(is_storable, value.keys())) and all(map(is_storable, value.values()))
    return not isinstance(value, list | tuple) or all(map(is_storable, value))


def _texts_with_paths(value: Any, whole: str, path: str = "") -> Iterator[tuple[str, str]]:
    if isinstance(value, str):
        yield path or "the text", value
    elif isinstance(value, dict):
        for key, item in value.items():
            yield f"a key of {path or whole}", str(key)
            yield from _texts_with_paths(item, whole, f"{path}.{key}" if path else str(key))
    elif isinstance(value, list | tuple):
        for index, item in enumerate(value):
            yield from _texts_with_paths(item, whole, f"{path}[{index}]")

"""Questions and systems: a case is the answer that one system gave to one question.

A system is named by ``metadata.system``. A record that names it under ``system`` uses its ``id``
for the question, so that the files of two systems may have the same ids; the case gets the id
``QUESTION:SYSTEM``.
"""

from __future__ import annotations

import hashlib
import re
import unicodedata
from collections.abc import Mapping
from typing import Any

from pydantic import Field

from masis.errors import InputError
from masis.schema.base import Record

UNNAMED = "unnamed"
"""The system of cases that don't name one."""

LONGEST_NAME = 100
"""Maximum length of a system's name, in characters."""

LONGEST_DETAIL = 4_000
"""Maximum length of a system's prompt, in characters; the other details have at most 200."""

_LONGEST_QUESTION_ID = 380
"""How many characters of a question's id its cases' ids use; an id has at most 500."""

_SENTENCE_END = re.compile(r"[.!?。！？]$")


class SystemDetails(Record):
    """What a person knows about a system; all of it can be changed later.

    Attributes:
        model: The model that answered.
        prompt: The prompt, or where it's kept.
        version: The version of the program around the model.
        date: When it answered, in any form.

    """

    model: str = Field(default="", max_length=200)
    prompt: str = Field(default="", max_length=LONGEST_DETAIL)
    version: str = Field(default="", max_length=200)
    date: str = Field(default="", max_length=200)


class System(SystemDetails):
    """A system with its number of cases. ``changed_by`` is empty until a person edits it."""

    name: str
    cases: int = 0
    added_at: str
    changed_at: str = ""
    changed_by: str = ""


def system_name(value: object) -> str:
    """Return a system's name as it is stored: one line, cut to 100 characters, or "unnamed"."""
    return (
        " ".join(value.split())[:LONGEST_NAME]
        if isinstance(value, str) and value.strip()
        else (UNNAMED)
    )


def checked_name(text: str) -> str:
    """Return a name that a person gave to a system.

    Raises:
        InputError: It's empty, too long, or has characters that can't be printed.

    """
    name = " ".join(text.split())
    if not name or len(name) > LONGEST_NAME or not name.isprintable():
        raise InputError(
            f"the name of a system must have 1 to {LONGEST_NAME} printable characters",
            hint="Use a short name, such as v2 or gpt-4o-2024-08.",
            field="system",
        )
    return name


def names_system(value: object) -> bool:
    """Return whether the value of a key ``system`` names a system.

    Other tools keep a model's system prompt under this key, which is a sentence or longer.
    """
    return (
        isinstance(value, str)
        and bool(value.strip())
        and len(value.strip()) <= LONGEST_NAME
        and value.strip().isprintable()
        and not _SENTENCE_END.search(value.strip())
    )


def answer_id(question_id: str, system: str) -> str:
    """Return the id of a system's answer to a question: ``QUESTION:SYSTEM``.

    A question's id that is too long for this is cut, and a digest keeps it distinct.
    """
    if system == UNNAMED:
        return question_id
    if len(question_id) > _LONGEST_QUESTION_ID:
        digest = hashlib.sha256(question_id.encode()).hexdigest()[:12]
        question_id = f"{question_id[:_LONGEST_QUESTION_ID]}~{digest}"
    return f"{question_id}:{system}"


def name_answer(data: Mapping[str, Any], system: str) -> dict[str, Any]:
    """Return the fields of a case as the answer of this system.

    The id becomes that of the question, unless the record names its question already.
    """
    fields = dict(data)
    metadata = fields["metadata"] if isinstance(fields.get("metadata"), Mapping) else {}
    fields["metadata"] = {**metadata, "system": system}
    if system != UNNAMED and not isinstance(fields.get("question_id"), str):
        fields["question_id"] = fields["id"]
        fields["id"] = answer_id(fields["id"], system)
    return fields


def question_digest(query: str) -> str:
    """Return a digest by which the same question is recognized in other words' case and spacing.

    Superscripts and signs carry meaning, so nothing else is folded (NFC, not NFKC).
    """
    folded = unicodedata.normalize("NFC", query).casefold()
    return hashlib.sha256(" ".join(folded.split()).encode()).hexdigest()[:32]

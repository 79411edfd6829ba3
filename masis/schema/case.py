"""What comes in: a question, its evidence, perhaps an answer, perhaps gold labels.

The JSON form is the public contract (DESIGN.md, section 6). Unknown keys are kept. A repeated evidence id, a null byte
or half a surrogate pair is an error: the first makes citations ambiguous, the others can't be stored as text.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator
from typing import Any, Literal, Self

from pydantic import Field, JsonValue, StrictStr, model_validator
from pydantic_core import PydanticCustomError

from masis.schema.base import OpenRecord

_HALF_A_PAIR = re.compile("[\ud800-\udfff]")

ClaimVerdict = Literal["supported", "partial", "contradicted", "unsupported", "unverifiable", "unscored"]
"""How the evidence bears a claim; ``unscored`` where no verdict could be had."""

Severity = Literal["critical", "high", "medium", "low"]


class Evidence(OpenRecord):
    """One chunk a retriever found. ``text`` may be empty where only an address is known."""

    id: StrictStr = Field(min_length=1)
    text: StrictStr = ""
    source: StrictStr | None = None


class CitationLabel(OpenRecord):
    """Gold: what one reference of the answer is.

    ``reference`` is the id as written, ``text`` the marker it stands in, ``sentence`` enough of its sentence
    to find it.
    """

    reference: str
    status: Literal["valid", "invalid", "misattributed", "needless"]
    text: str | None = None
    sentence: str | None = None
    evidence_id: str | None = None
    note: str | None = None


class ClaimLabel(OpenRecord):
    """Gold: how the evidence bears one claim; ``text`` is what the answer says, word for word."""

    text: str
    verdict: ClaimVerdict | None = None
    planted: str | None = None
    evidence: tuple[str, ...] = ()
    correct: str | None = None
    cited: bool | None = None
    note: str | None = None


class FindingLabel(OpenRecord):
    """Gold: something a critic should object to."""

    type: str
    description: str = ""
    severity: Severity | None = None
    text: str | None = None


class Labels(OpenRecord):
    """Gold labels; what else a label holds is kept."""

    citations: tuple[CitationLabel, ...] = ()
    claims: tuple[ClaimLabel, ...] = ()
    findings: tuple[FindingLabel, ...] = ()
    clean: bool | None = None


class Case(OpenRecord):
    """A question with its evidence and, if one was written, an answer."""

    id: StrictStr = Field(min_length=1, max_length=500)
    query: StrictStr = Field(min_length=1)
    answer: StrictStr | None = None
    evidence: tuple[Evidence, ...] = Field(min_length=1)
    reasoning_steps: tuple[StrictStr, ...] = ()
    metadata: dict[str, Any] = Field(default_factory=dict)
    labels: Labels | None = None

    @model_validator(mode="before")
    @classmethod
    def _storable_text(cls, data: Any) -> Any:
        if not _storable(data):  # which of its texts it is costs more to find out than that one is
            for path, text in _strings(data):
                _refuse_unstorable(text, path)
        return data

    @model_validator(mode="after")
    def _distinct_evidence_ids(self) -> Self:
        first: dict[str, int] = {}
        for index, chunk in enumerate(self.evidence):
            if chunk.id in first:
                raise PydanticCustomError(
                    "repeated_evidence_id",
                    "evidence[{first}] and evidence[{second}] have the same id {id}",
                    {"first": first[chunk.id], "second": index, "id": repr(chunk.id)},
                )
            first[chunk.id] = index
        return self

    def to_json_dict(self) -> dict[str, JsonValue]:
        """The case as it came in, unset fields left out: what the contract's JSON Lines hold."""
        return self.model_dump(mode="json", exclude_unset=True)

    def digest(self) -> str:
        """SHA-256 over the content; the order of the keys doesn't matter."""
        content = json.dumps(self.to_json_dict(), ensure_ascii=False, sort_keys=True, separators=(",", ":"))
        return hashlib.sha256(content.encode()).hexdigest()


def _storable(value: Any) -> bool:
    if isinstance(value, str):
        return "\x00" not in value and (value.isascii() or not _HALF_A_PAIR.search(value))
    if isinstance(value, dict):
        return all(map(_storable, value.keys())) and all(map(_storable, value.values()))
    return not isinstance(value, list | tuple) or all(map(_storable, value))


def _refuse_unstorable(text: str, path: str) -> None:
    if "\x00" in text:
        raise PydanticCustomError(
            "null_byte", "{path} holds a null byte at character {at}", {"path": path, "at": text.index("\x00")}
        )
    if not _storable(text):
        raise PydanticCustomError(
            "surrogate", "{path} holds half of a surrogate pair, which is no text", {"path": path}
        )


def _strings(value: Any, path: str = "") -> Iterator[tuple[str, str]]:
    if isinstance(value, str):
        yield path or "the text", value
    elif isinstance(value, dict):
        for key, item in value.items():
            yield f"a key of {path or 'the case'}", str(key)
            yield from _strings(item, f"{path}.{key}" if path else str(key))
    elif isinstance(value, list | tuple):
        for index, item in enumerate(value):
            yield from _strings(item, f"{path}[{index}]")

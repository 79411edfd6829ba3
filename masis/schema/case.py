"""What comes in: a question, its evidence, perhaps an answer, perhaps gold labels.

The JSON form is a public contract. Unknown keys are kept. A repeated evidence id, a null byte
or half a surrogate pair is an error: the first makes citations ambiguous, the others can't be stored as text.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from typing import Any, Literal, Self

from pydantic import Field, JsonValue, StrictInt, StrictStr, ValidationError, model_validator
from pydantic_core import PydanticCustomError

from masis.errors import InputError
from masis.schema.base import OpenRecord
from masis.schema.storable import refuse_unstorable

ClaimVerdict = Literal["supported", "partial", "contradicted", "unsupported", "unverifiable", "unscored"]
"""Whether the evidence supports a claim; ``unscored`` where no verdict could be had."""

Severity = Literal["critical", "high", "medium", "low"]

ScreeningOutcome = Literal["sufficient", "evidence_insufficient", "cancelled", "error"]
"""How a screening ended: whether what it kept is enough to answer the question."""


class Evidence(OpenRecord):
    """One chunk a retriever found. ``text`` may be empty where only an address is known."""

    id: StrictStr = Field(min_length=1)
    text: StrictStr = ""
    source: StrictStr | None = None


def evidence_of(chunks: Iterable[Evidence | Mapping[str, Any] | str], field: str = "evidence") -> tuple[Evidence, ...]:
    """Evidence from chunks, mappings with ``id`` and ``text``, or bare texts, which are named ``chunk_1`` and so on.

    Raises InputError where a chunk is none of these, and for a text alone, which would be read letter by letter.
    """
    if isinstance(chunks, str | bytes | Mapping):
        raise InputError("is one thing, not a list of chunks", cure=f"Put it into a list. {_A_CHUNK}", field=field)
    return tuple(_chunk(given, number, field) for number, given in enumerate(chunks, 1))


_A_CHUNK = 'Give {"id": "1", "text": "..."}, or the text alone.'


def _chunk(given: Evidence | Mapping[str, Any] | str, number: int, field: str) -> Evidence:
    if isinstance(given, Evidence):
        return given
    try:
        if isinstance(given, str):
            return Evidence(id=f"chunk_{number}", text=given)
        return Evidence.model_validate({"id": f"chunk_{number}", **given})
    except (ValidationError, TypeError) as error:
        raise InputError("is no chunk of evidence", cure=_A_CHUNK, field=f"{field}[{number - 1}]") from error


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
    """Gold: whether the evidence supports one claim; ``text`` is what the answer says, word for word."""

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


class CaseScreening(OpenRecord):
    """The screening that a case's evidence comes from, and how it ended."""

    id: StrictStr
    outcome: ScreeningOutcome


class GivenCitation(OpenRecord):
    """A citation that came beside the answer, as citation APIs return them.

    ``start`` and ``end`` are offsets into the answer: what the citation covers, or one place where both are the same.
    ``quote`` is what it says the evidence holds; ``evidence_start`` and ``evidence_end`` where, in the text of the
    evidence.
    """

    start: StrictInt
    end: StrictInt
    evidence_id: StrictStr
    quote: StrictStr | None = None
    evidence_start: StrictInt | None = None
    evidence_end: StrictInt | None = None
    provider: StrictStr | None = None


class Case(OpenRecord):
    """A question with its evidence and, if one was written, an answer.

    ``citations`` came beside the answer, ``screening`` stands in cases made from a screening; under either name a value
    of another shape is somebody else's key, and is kept.
    """

    id: StrictStr = Field(min_length=1, max_length=500)
    query: StrictStr = Field(min_length=1)
    answer: StrictStr | None = None
    evidence: tuple[Evidence, ...] = Field(min_length=1)
    reasoning_steps: tuple[StrictStr, ...] = ()
    metadata: dict[str, Any] = Field(default_factory=dict)
    labels: Labels | None = None
    citations: tuple[GivenCitation, ...] | JsonValue = Field(default=(), union_mode="left_to_right")
    screening: CaseScreening | JsonValue = Field(default=None, union_mode="left_to_right")

    @model_validator(mode="before")
    @classmethod
    def _storable_text(cls, data: Any) -> Any:
        refuse_unstorable(data, "the case")
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

    @property
    def given_citations(self) -> tuple[GivenCitation, ...]:
        """Return the citations that came beside the answer; none where the key holds something else."""
        given = self.citations
        if isinstance(given, tuple):
            return tuple(citation for citation in given if isinstance(citation, GivenCitation))
        return ()

    @property
    def evidence_outcome(self) -> str | None:
        """Return the outcome of the screening that the evidence comes from; None where it comes from none."""
        if isinstance(self.screening, CaseScreening):
            return self.screening.outcome
        named = self.screening.get("outcome") if isinstance(self.screening, dict) else None
        return None if named is None else str(named)

    def to_json_dict(self) -> dict[str, JsonValue]:
        """Return the case as it was received, unset fields left out: what the contract's JSON Lines hold."""
        return self.model_dump(mode="json", exclude_unset=True)

    def digest(self) -> str:
        """SHA-256 over the content; the order of the keys doesn't matter."""
        content = json.dumps(self.to_json_dict(), ensure_ascii=False, sort_keys=True, separators=(",", ":"))
        return hashlib.sha256(content.encode()).hexdigest()

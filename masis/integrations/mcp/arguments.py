"""What the tools take: names as rule DRAFT-CRITIQUE-MCP has them (sourceIds), limits on every size.

``critique_answer`` has exactly the spec's schema; limits that a schema would have to spell out are checked in code. A
list or an object that arrives as JSON inside a string is read, since some clients send it so.
"""

from __future__ import annotations

import difflib
import hashlib
import json
import re
from collections.abc import Mapping
from typing import Annotated, Any, Literal, TypeVar

from pydantic import (
    AfterValidator,
    ConfigDict,
    Field,
    GetJsonSchemaHandler,
    StrictBool,
    StrictInt,
    StrictStr,
    ValidationError,
    model_validator,
)
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema, ErrorDetails, PydanticCustomError

from masis.errors import InputError
from masis.integrations.mcp.quoting import visible
from masis.schema.base import Share
from masis.schema.case import Evidence
from masis.schema.drafts import CamelRecord
from masis.schema.explain import EXPECTED, kind_of, path_of
from masis.schema.review import CaseState
from masis.schema.run import ReviewTier
from masis.schema.storable import refuse_unstorable
from masis.services.records import QueueOrder

MOST_QUERY, MOST_TEXT, MOST_CLAIM = 20_000, 100_000, 5_000
"""Characters of a question, of an answer or a chunk, of a claim."""
MOST_EVIDENCE = 2_000_000
"""Characters of all chunks of one call."""
MOST_SOURCES, MOST_CLAIMS, MOST_LISTED = 200, 100, 100

_WRONG_NAMED = 5


def _at_most(limit: int, what: str) -> AfterValidator:
    def check(value: Any) -> Any:
        if len(value) > limit:
            raise PydanticCustomError(
                "too_large",
                "holds {size} {what}, at most {limit} are taken",
                {"size": f"{len(value):,}", "what": what, "limit": f"{limit:,}"},
            )
        return value

    return AfterValidator(check)


def _not_blank(value: str) -> str:
    if not value.strip():
        raise PydanticCustomError("blank", "is empty")
    return value


Query = Annotated[StrictStr, _at_most(MOST_QUERY, "characters"), AfterValidator(_not_blank)]
Text = Annotated[StrictStr, _at_most(MOST_TEXT, "characters"), AfterValidator(_not_blank)]
ClaimText = Annotated[StrictStr, _at_most(MOST_CLAIM, "characters"), AfterValidator(_not_blank)]
Identifier = Annotated[StrictStr, _at_most(2_000, "characters"), AfterValidator(_not_blank)]
SourceIds = Annotated[tuple[Identifier, ...], _at_most(MOST_SOURCES, "ids")]
Words = tuple[Annotated[StrictStr, _at_most(200, "characters")], ...]
Limit = Annotated[StrictInt, Field(ge=1, le=MOST_LISTED)]
Cursor = Annotated[StrictStr, _at_most(2_000, "characters")]


class _WithoutNull:
    """The schema does not offer null for what may be left out; a null that arrives is taken for nothing."""

    def __get_pydantic_json_schema__(self, schema: CoreSchema, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        (only,) = (each for each in handler(schema)["anyOf"] if each != {"type": "null"})
        found: JsonSchemaValue = only
        return found


T = TypeVar("T")
Maybe = Annotated[T | None, _WithoutNull()]


class Arguments(CamelRecord):
    """The arguments of one call."""

    @model_validator(mode="before")
    @classmethod
    def _storable_text(cls, data: Any) -> Any:
        refuse_unstorable(data, "the arguments")
        return data


class CritiqueAnswer(Arguments):
    """The arguments of rule DRAFT-CRITIQUE-MCP."""

    query: Query = Field(description="Original query")
    draft: Text = Field(description="Draft answer to critique")
    source_ids: SourceIds = Field(description="Entity IDs to use as sources")
    auto_revise: Maybe[StrictBool] = Field(default=None, description="Automatically fix issues")
    strictness: Maybe[Literal["lenient", "moderate", "strict"]] = None


def _evidence_size(chunks: tuple[Evidence, ...]) -> tuple[Evidence, ...]:
    size = sum(len(chunk.text) for chunk in chunks)
    if size > MOST_EVIDENCE:
        raise PydanticCustomError(
            "too_large",
            "holds {size} characters, at most {limit} are taken",
            {"size": f"{size:,}", "limit": f"{MOST_EVIDENCE:,}"},
        )
    first: dict[str, int] = {}
    for index, chunk in enumerate(chunks):
        if chunk.id in first:
            raise PydanticCustomError(
                "repeated_id",
                "has the id {id} twice, at {first} and {second}; each chunk needs an id of its own",
                {"id": visible(chunk.id), "first": first[chunk.id], "second": index},
            )
        first[chunk.id] = index
    return chunks


Chunks = Annotated[tuple[Evidence, ...], _at_most(MOST_SOURCES, "chunks"), AfterValidator(_evidence_size)]


class _OnEvidence(Arguments):
    """Evidence given in full, by ids of what is stored, or both."""

    evidence: Chunks = Field(default=(), description='Chunks of evidence in full: [{"id": "1", "text": "..."}]')
    source_ids: SourceIds = Field(default=(), description="Ids of stored evidence, as search_evidence gives them")

    @model_validator(mode="after")
    def _some_evidence(self) -> _OnEvidence:
        if not self.evidence and not self.source_ids:
            raise PydanticCustomError("no_evidence", "give evidence, or sourceIds of stored evidence")
        return self


class AuditCitations(_OnEvidence):
    """Which markers of an answer point at real evidence."""

    answer: Text = Field(description="The answer whose citations are checked, with its markers such as [1]")


class VerifyClaims(_OnEvidence):
    """Whether evidence supports claims."""

    claims: Annotated[tuple[ClaimText, ...], _at_most(MOST_CLAIMS, "claims")] = Field(
        min_length=1, description="One assertion each; markers in a claim count as its citations"
    )


class InlineCase(Arguments):
    """A case given in full. Without an id it gets one from its content; other keys are kept."""

    model_config = ConfigDict(extra="allow")

    id: Maybe[Annotated[StrictStr, Field(min_length=1, max_length=500)]] = None
    query: Query
    answer: Maybe[Text] = Field(default=None, description="Left out: one is drafted from the evidence")
    evidence: Chunks = Field(min_length=1, description='[{"id": "1", "text": "..."}]')
    reasoning_steps: tuple[ClaimText, ...] = ()
    metadata: dict[str, Any] = Field(default_factory=dict)


class RunAudit(Arguments):
    """An audit with everything: citations, claims, critic, revisions, judge; stored."""

    case_id: Maybe[Identifier] = Field(default=None, description="Id of a stored case")
    case: Maybe[InlineCase] = Field(default=None, description="A case in full, which is then stored")
    again: StrictBool = Field(
        default=False,
        description="Audit even if a finished run of the same content with the same settings exists, which is "
        "otherwise returned",
    )

    @model_validator(mode="after")
    def _one_case(self) -> RunAudit:
        if (self.case_id is None) == (self.case is None):
            raise PydanticCustomError("one_case", "give either caseId or case")
        return self


class GetRun(Arguments):
    """A run by its id."""

    run_id: Identifier = Field(description="Id of a run, as run_audit and list_queue give it")
    detail: Literal["issues", "whole"] = Field(
        default="issues", description="whole: every record of the run, hundreds of kilobytes for long answers"
    )


class GetCase(Arguments):
    """A case by its id."""

    case_id: Identifier = Field(description="Id of a case, as list_queue and search_evidence give it")


class ListQueue(Arguments):
    """One page of the queue. Values within a field are alternatives, fields narrow each other."""

    text: Annotated[StrictStr, _at_most(2_000, "characters")] = Field(
        default="", description="Words in id, question, answer or evidence, all of them"
    )
    states: tuple[CaseState, ...] = ()
    flags: Words = Field(default=(), description="Issues found in the original answer")
    reasons: Words = Field(default=(), description="Why a person should look")
    tiers: tuple[ReviewTier, ...] = Field(default=(), description="must_look: something is wrong or unsafe")
    fields: Words = Field(default=(), description="Values of the metadata key field")
    datasets: Words = Field(default=(), description="Values of the metadata key dataset")
    models: Words = ()
    reviewers: Words = ()
    assignees: Words = Field(default=(), description="Whom a case is assigned to")
    tags: Words = ()
    quality_from: Maybe[Share] = None
    quality_to: Maybe[Share] = None
    confidence_from: Maybe[Share] = None
    confidence_to: Maybe[Share] = None
    order: QueueOrder = Field(
        default="risk",
        description="risk: must_look first, then not_certified, the likeliest to be faulty before others",
    )
    seed: StrictInt = Field(default=0, description="Of the order random")
    limit: Limit = 20
    cursor: Maybe[Cursor] = Field(default=None, description="next_cursor of the page before")


class SearchEvidence(Arguments):
    """Stored evidence by its words."""

    text: Query = Field(description="Words that the evidence of a case holds, all of them")
    limit: Limit = Field(default=10, description="Cases on a page")
    cursor: Maybe[Cursor] = Field(default=None, description="next_cursor of the page before")


A = TypeVar("A", bound=Arguments)


def read(model: type[A], received: Mapping[str, Any]) -> A:
    """Return the arguments of a call. Raises InputError naming each wrong one, what it must be, and a near name."""
    unpacked = _unpacked(model, received)
    try:
        return model.model_validate(unpacked)
    except ValidationError as error:
        # A list is also reported as too short where only its items are wrong.
        found = error.errors(include_url=False)
        details = [each for each in found if each["type"] != "too_short" or not each["input"]]
        errors = [_explained(detail, model) for detail in details[:_WRONG_NAMED]]
        more = f" {len(details) - _WRONG_NAMED} more are wrong." if len(details) > _WRONG_NAMED else ""
        raise InputError("; ".join(errors), cure=f"{more} {_taken(model)}".strip(), field="arguments") from None


def input_schema(model: type[Arguments]) -> dict[str, Any]:
    """Return the JSON schema of a tool's arguments, under the names of the wire."""
    schema: dict[str, Any] = tidied(model.model_json_schema(by_alias=True))
    schema.pop("description", None)
    if model is CritiqueAnswer:
        schema.pop("additionalProperties", None)  # as the spec has it; unknown names are refused all the same
    return schema


def tidied(value: Any, *, names: bool = False) -> Any:
    """Return a schema without what pydantic adds and nobody reads: titles, and null as a default.

    ``names``: the keys are names of fields, none of them is a keyword of the schema.
    """
    if isinstance(value, list):
        return [tidied(item) for item in value]
    if not isinstance(value, dict):
        return value
    return {
        key: tidied(item, names=key in ("properties", "$defs") and not names)
        for key, item in value.items()
        if names or not (key == "title" or (key == "default" and item is None))
    }


def _unpacked(model: type[Arguments], given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments with JSON inside strings parsed where a list or object is due; a null is left out."""
    properties = model.model_json_schema(by_alias=True)["properties"]
    found = {name: value for name, value in given.items() if value is not None}
    for name, value in found.items():
        if isinstance(value, str) and value.lstrip()[:1] in ("[", "{"):
            kind = properties.get(name, {})
            if kind.get("type") == "array" or "$ref" in kind:
                try:
                    found[name] = json.loads(value)
                except (ValueError, RecursionError):
                    continue  # no JSON: it is refused as the text it is
    return found


def _explained(detail: ErrorDetails, model: type[Arguments]) -> str:
    path, got, kind = visible(path_of(detail["loc"])), kind_of(detail["input"]), detail["type"]
    if expected := EXPECTED.get(kind):
        return f"{path} must be {expected}, not {got}"
    match kind:
        case "missing":
            return f"{path} is missing"
        case "extra_forbidden":
            last = str(detail["loc"][-1])
            near = difflib.get_close_matches(last[:60], _names(model), n=1) if len(detail["loc"]) == 1 else []
            return f"there is no argument {path}" + (f" (did you mean {near[0]}?)" if near else "")
        case "literal_error":
            return f"{path} must be one of {detail['ctx']['expected']}, not {_shown(detail['input'])}"
        case "too_short" | "string_too_short":
            return f"{path} is empty"
        case "too_large" | "blank" | "repeated_id":
            return f"{path} {detail['msg']}"
        case "null_byte" | "surrogate":
            return detail["msg"]
        case _:
            return f"{path}: {detail['msg'][:1].lower()}{detail['msg'][1:]}" if path else detail["msg"]


def _shown(value: Any) -> str:
    return f"'{visible(value, 60)}'" if isinstance(value, str) else kind_of(value)


def _names(model: type[Arguments]) -> list[str]:
    return [field.alias or name for name, field in model.model_fields.items()]


def _taken(model: type[Arguments]) -> str:
    needed = [field.alias or name for name, field in model.model_fields.items() if field.is_required()]
    others = [name for name in _names(model) if name not in needed]
    parts = [f"required: {', '.join(needed)}"] if needed else []
    parts += [f"may be given: {', '.join(others)}"] if others else []
    return f"Arguments {'; '.join(parts)}."


# Cursors: where the next page of a list begins.

_CURSOR = re.compile(r"([1-9][0-9]{0,4})-([0-9a-f]{12})")


def cursor(page: int, query: Any) -> str:
    """Return the cursor of a page, bound to what the client asked for."""
    return f"{page}-{hashlib.sha256(json.dumps(query, sort_keys=True, default=str).encode()).hexdigest()[:12]}"


def page_of(received: str | None, query: Any) -> int:
    """Return the page that a cursor names; 1 without one. Raises InputError for a cursor of something else."""
    if received is None:
        return 1
    found = _CURSOR.fullmatch(received)
    if found is None or received != cursor(int(found[1]), query):
        raise InputError(
            "is not a cursor of this list with these filters",
            cure="Give next_cursor unchanged, with the same filters, or leave it out to begin at the first page.",
            field="cursor",
        )
    return int(found[1])

"""The input of an audit: a question, its evidence, and optionally an answer and gold labels.

The JSON form is a public contract, and unknown keys are kept. A repeated evidence id is an error
because it makes citations ambiguous. A null byte or a lone surrogate is an error because it can't
be stored as text.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Iterable, Mapping
from difflib import get_close_matches
from typing import Any, Literal, Self, get_args

from pydantic import (
    BaseModel,
    Field,
    JsonValue,
    StrictInt,
    StrictStr,
    ValidationError,
    model_validator,
)
from pydantic_core import PydanticCustomError

from masis.errors import InputError
from masis.schema import limits
from masis.schema.answers import (
    NoAnswerCode,
    Separated,
    may_hold_thoughts,
    no_answer_in,
    separate_thoughts,
    thoughts_in,
)
from masis.schema.base import InputRecord, InvalidRecord, OpenRecord
from masis.schema.documents import TEXT_KEYS, is_document, read_document
from masis.schema.explain import explain, join_path, kind_of
from masis.schema.frames import is_frame
from masis.schema.reading import (
    ANSWERING_ROLES,
    ASKING_ROLES,
    FieldMap,
    content_id,
    id_text,
    to_case_fields,
    words_of,
)
from masis.schema.storable import refuse_unstorable
from masis.schema.systems import UNNAMED, name_answer, names_system, system_name

ClaimVerdict = Literal[
    "supported", "partial", "contradicted", "unsupported", "unverifiable", "unscored"
]
"""Whether the evidence supports a claim; ``unscored`` if no verdict could be reached."""

Severity = Literal["critical", "high", "medium", "low"]

ScreeningOutcome = Literal[
    "sufficient", "conflicting", "evidence_insufficient", "cancelled", "error"
]
"""How a screening ended.

``conflicting`` means that the kept studies suffice but point in different directions.
"""


class Evidence(InputRecord):
    """One chunk that a retriever found. ``text`` may be empty if only an address is known."""

    id: StrictStr = Field(min_length=1)
    text: StrictStr = ""
    source: StrictStr | None = None


def evidence_of(chunks: Iterable[Any], field: str = "evidence") -> tuple[Evidence, ...]:
    """Convert chunks of any supported kind to evidence, in the same order.

    A chunk is an Evidence, a mapping with ``id`` and ``text``, a plain text, a LangChain document
    or a LlamaIndex node. Chunks without an id are named by position: ``chunk_1`` and so on. If a
    library document repeats an id, an identical text is dropped and a different text gets the next
    free ``id#2``.

    Args:
        chunks: The chunks, in order.
        field: The field that an error names.

    Raises:
        InputError: A chunk is of another kind, or ``chunks`` is a single chunk. A single text would
            otherwise be read character by character.

    """
    if isinstance(chunks, str | bytes | Mapping | Evidence) or is_document(chunks):
        raise InputError(
            "is a single item, not a list of chunks",
            hint=f"Put it into a list. {_CHUNK_HINT}",
            field=field,
        )
    if not isinstance(chunks, Iterable):
        raise InputError(
            f"is {kind_of(chunks)}, not a list of chunks",
            hint=f"Give a list. {_CHUNK_HINT}",
            field=field,
        )
    evidence: list[Evidence] = []
    texts: dict[str, str] = {}
    for number, chunk_data in enumerate(chunks, 1):
        chunk = _to_evidence(chunk_data, number, field)
        if chunk.id in texts and not isinstance(chunk_data, Evidence | Mapping):
            if texts[chunk.id] == chunk.text:
                continue
            free = next(
                name
                for count in range(2, number + 2)
                if (name := f"{chunk.id}#{count}") not in texts
            )
            chunk = chunk.model_copy(update={"id": free})
        texts.setdefault(chunk.id, chunk.text)
        evidence.append(chunk)
    return tuple(evidence)


_CHUNK_HINT = (
    'A chunk is {"id": "1", "text": "..."}, a plain text, a LangChain document or a LlamaIndex'
    " node."
)


def _to_evidence(chunk: Any, number: int, field: str) -> Evidence:
    if isinstance(chunk, Evidence):
        return chunk
    if isinstance(chunk, str):
        data: dict[str, Any] = {"id": f"chunk_{number}", "text": chunk}
    elif isinstance(chunk, Mapping) and not _is_library_chunk(chunk):
        data = {"id": f"chunk_{number}", **chunk}
    else:
        try:
            read = read_document(chunk, number - 1, field)
        except InputError as error:
            raise InputError(
                "isn't a chunk of evidence", hint=_CHUNK_HINT, field=error.field
            ) from None
        data = {"id": read.id or f"chunk_{number}", "text": read.content}
        about = {
            "source": read.path,
            "type": read.type,
            "score": read.score,
            "metadata": dict(read.metadata),
        }
        about["given_id"] = chunk.get("given_id") if isinstance(chunk, Mapping) else None
        data |= {name: value for name, value in about.items() if value not in (None, "", {})}
    data["id"] = id_text(data["id"])
    try:
        return Evidence.model_validate(data)
    except (ValidationError, TypeError) as error:
        if isinstance(error, TypeError):  # a key of the mapping isn't text
            raise InputError(
                "isn't a chunk of evidence", hint=_CHUNK_HINT, field=f"{field}[{number - 1}]"
            ) from error
        problem = explain(error)
        place = f"{field}[{number - 1}]{f'.{problem.field}' if problem.field else ''}"
        raise InputError(problem.problem, hint=problem.hint, field=place) from None


def _is_library_chunk(chunk: Mapping[Any, Any]) -> bool:
    """Return whether a mapping has its text under a library's key instead of ``text``."""
    return "text" not in chunk and any(isinstance(chunk.get(key), str) for key in TEXT_KEYS)


class CitationLabel(OpenRecord):
    """Gold label for one reference of the answer.

    ``reference`` is the id as written, ``text`` its marker, and ``sentence`` enough of its sentence
    to find it.
    """

    reference: str
    status: Literal["valid", "invalid", "misattributed", "redundant"]
    text: str | None = None
    sentence: str | None = None
    evidence_id: str | None = None
    note: str | None = None


class ClaimLabel(OpenRecord):
    """Gold label that says whether the evidence supports a claim; ``text`` quotes the answer.

    Attributes:
        start: The offset of the words in the answer, in characters.
        end: The end of the words.
        support: The verdict in the words of a data set such as ExpertQA ("Complete").
        label: The verdict in the words of a data set such as AttributionBench ("attributable").
        label_type: The type of fault in the words of a data set such as RAGTruth.
        as_labelled: A verdict of another data set without an equivalent here.

    """

    text: str
    verdict: ClaimVerdict | None = None
    planted: str | None = None
    evidence: tuple[str, ...] = ()
    correct: str | None = None
    cited: bool | None = None
    note: str | None = None
    start: StrictInt | None = None
    end: StrictInt | None = None
    support: JsonValue = None
    label: JsonValue = None
    label_type: JsonValue = None
    as_labelled: JsonValue = None


class FindingLabel(OpenRecord):
    """Gold label for something that a critic should object to."""

    type: str
    description: str = ""
    severity: Severity | None = None
    text: str | None = None


class GoldLabels(OpenRecord):
    """All gold labels of a case.

    A case that is read from a file, a program or a request has no other keys here: a misspelled key
    would hide its label. Cases that were stored earlier keep theirs.
    """

    citations: tuple[CitationLabel, ...] = ()
    claims: tuple[ClaimLabel, ...] = ()
    findings: tuple[FindingLabel, ...] = ()
    clean: bool | None = None
    reference_answer: str | None = None


class CaseScreening(OpenRecord):
    """The screening that produced a case's evidence, and its outcome."""

    id: StrictStr
    outcome: ScreeningOutcome


class EarlierVersion(OpenRecord):
    """The earlier case that a new version of a case replaces.

    Attributes:
        digest: The digest of the earlier case.
        number: The version number of the later case, from 2.
        filled: Ids of evidence whose text a person added, in this version or an earlier one.

    """

    id: StrictStr
    digest: StrictStr
    number: StrictInt
    filled: tuple[StrictStr, ...] = ()


class GivenCitation(OpenRecord):
    """A citation that came with the answer, as citation APIs return them.

    ``start`` and ``end`` are offsets in the answer: the span that the citation covers, or a single
    position if they are equal. ``quote`` is the quoted evidence, with its offsets in
    ``evidence_start`` and ``evidence_end``.
    """

    start: StrictInt
    end: StrictInt
    evidence_id: StrictStr
    quote: StrictStr | None = None
    evidence_start: StrictInt | None = None
    evidence_end: StrictInt | None = None
    provider: StrictStr | None = None


class NoAnswer(OpenRecord):
    """Why a system gave no answer; ``message`` is its reply instead, or the error of the call."""

    code: NoAnswerCode
    message: StrictStr = ""


class Message(OpenRecord):
    """One turn of a conversation as chat APIs have it; ``content`` is a text or a list of parts."""

    role: StrictStr = Field(min_length=1)
    content: StrictStr | tuple[JsonValue, ...] | None = None

    @property
    def text(self) -> str:
        """The text of the turn without the model's thoughts.

        A part without text is replaced by its type.
        """
        text = words_of(self.content) or ""
        return separate_thoughts(text).answer.strip() if self.role in ANSWERING_ROLES else text


class Case(InputRecord):
    """A question with its evidence and, if there is one, an answer.

    The fields from ``citations`` to ``question_id`` accept any JSON value. A value of another shape
    is kept unchanged, because other tools use the same keys.

    Attributes:
        citations: Citations that came with the answer.
        messages: The conversation that the answer belongs to.
        screening: The screening that the case was made from.
        supersedes: The earlier case, if this is a new version of it.
        reasoning: The model's thoughts before the answer. They are shown but not audited.
        no_answer: Why there is no answer, if the system refused or failed.
        question_id: The id of the question, if the case has an id of its own.

    """

    id: StrictStr = Field(min_length=1, max_length=500)
    query: StrictStr = Field(min_length=1)
    answer: StrictStr | None = None
    evidence: tuple[Evidence, ...] = Field(min_length=1)
    reasoning_steps: tuple[StrictStr, ...] = ()
    metadata: dict[str, Any] = Field(default_factory=dict)
    labels: GoldLabels | None = None
    citations: tuple[GivenCitation, ...] | JsonValue = Field(default=(), union_mode="left_to_right")
    messages: tuple[Message, ...] | JsonValue = Field(default=(), union_mode="left_to_right")
    screening: CaseScreening | JsonValue = Field(default=None, union_mode="left_to_right")
    supersedes: EarlierVersion | JsonValue = Field(default=None, union_mode="left_to_right")
    reasoning: StrictStr | JsonValue = Field(default=None, union_mode="left_to_right")
    no_answer: NoAnswer | JsonValue = Field(default=None, union_mode="left_to_right")
    question_id: StrictStr | JsonValue = Field(default=None, union_mode="left_to_right")

    @classmethod
    def _normalize_fields(cls, data: dict[str, Any]) -> dict[str, Any]:
        return _complete_case(to_case_fields(data))

    @classmethod
    def model_validate(cls, obj: Any, **options: Any) -> Self:
        """Validate a record as ``Case(**record)`` does; ``options`` are passed to pydantic.

        Raises:
            InvalidRecord: The record isn't a case, or an unrecognized key looks like a misnamed
                field.

        """
        if not isinstance(obj, Mapping):
            return super().model_validate(obj, **options)
        try:
            limits.check_nesting(obj)
            case = super().model_validate(
                cls._normalize_fields({str(key): value for key, value in obj.items()}), **options
            )
            case._verify()
        except ValidationError as error:
            raise InvalidRecord.from_error(explain(error)) from None
        except InputError as error:
            raise InvalidRecord.from_error(error) from None
        return case

    @classmethod
    def model_validate_json(cls, json_data: str | bytes | bytearray, **options: Any) -> Self:
        """Validate a JSON record as ``model_validate`` does.

        Raises:
            InvalidRecord: The record isn't a case, or an unrecognized key looks like a misnamed
                field.

        """
        try:
            record = json.loads(json_data)
        except (ValueError, RecursionError):
            # pydantic's own error names the place of the syntax error.
            return super().model_validate_json(json_data, **options)
        return cls.model_validate(record, **options)

    @classmethod
    def from_stored(cls, record: str | bytes | Mapping[str, Any]) -> Self:
        """Return a case from the form that ``to_json_dict`` writes; other keys aren't considered.

        Raises:
            ValidationError: The record isn't a case.

        """
        if isinstance(record, Mapping):
            return super().model_validate(record)
        return super().model_validate_json(record)

    def _verify(self) -> None:
        if not self.query.strip():
            raise InputError("is blank", hint='Add the question as "query": "...".', field="query")
        if isinstance(self.no_answer, NoAnswer) and (self.answer or "").strip():
            raise InputError(
                "says that there is no answer, but there is one",
                hint="Keep one of the two.",
                field="no_answer",
            )
        _check_label_keys(self.labels)
        length = len(self.answer or "")
        for number, citation in enumerate(self.given_citations):
            if not 0 <= citation.start <= citation.end <= length:
                raise InputError(
                    f"covers characters {citation.start} to {citation.end}, but the answer has"
                    f" {length}",
                    hint="Count characters of the answer from 0; the end is not included.",
                    field=f"citations[{number}]",
                )

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
        """The citations that came with the answer; empty if the key holds something else."""
        citations = self.citations
        if isinstance(citations, tuple):
            return tuple(citation for citation in citations if isinstance(citation, GivenCitation))
        return ()

    @property
    def earlier_turns(self) -> tuple[Message, ...]:
        """The conversation before the question; empty if the key holds something else."""
        messages = self.messages if isinstance(self.messages, tuple) else ()
        turns = [message for message in messages if isinstance(message, Message)]
        if (
            turns
            and turns[-1].role in ANSWERING_ROLES
            and turns[-1].text.strip() == (self.answer or "").strip()
        ):
            turns.pop()
        if (
            turns
            and turns[-1].role in ASKING_ROLES
            and turns[-1].text.strip() == self.query.strip()
        ):
            turns.pop()
        return tuple(turn for turn in turns if turn.text.strip())

    @property
    def system(self) -> str:
        """The name of the system that answered, by ``metadata.system``."""
        return system_name(self.metadata.get("system"))

    @property
    def cost_usd(self) -> float | None:
        """What the answer cost in US dollars, by ``metadata.cost_usd``; None if unknown."""
        cost = self.metadata.get("cost_usd")
        if not isinstance(cost, int | float) or isinstance(cost, bool):
            return None
        return float(cost) if math.isfinite(cost) and cost >= 0 else None

    @property
    def question(self) -> str:
        """The id of the question, which is the case's own id if the case doesn't name one."""
        named = self.question_id
        return named if isinstance(named, str) and 0 < len(named) <= 500 else self.id

    def as_answer_of(self, system: str) -> Case:
        """Return the case as the answer of a system, unless it names its system already."""
        if self.system != UNNAMED:
            return self
        return Case.from_stored(name_answer(self.to_json_dict(), system))

    @property
    def evidence_outcome(self) -> str | None:
        """The outcome of the screening that the evidence comes from, or None."""
        if isinstance(self.screening, CaseScreening):
            return self.screening.outcome
        outcome = self.screening.get("outcome") if isinstance(self.screening, dict) else None
        return None if outcome is None else str(outcome)

    @property
    def unanswered(self) -> NoAnswer | None:
        """Why the system gave no answer; None if there is an answer or no known reason."""
        return self.no_answer if isinstance(self.no_answer, NoAnswer) else None

    @property
    def model_reasoning(self) -> str:
        """The model's thoughts before the answer; empty if unknown."""
        return self.reasoning.strip() if isinstance(self.reasoning, str) else ""

    @property
    def earlier_version(self) -> EarlierVersion | None:
        """The case that this one is a new version of, or None."""
        return self.supersedes if isinstance(self.supersedes, EarlierVersion) else None

    @property
    def without_text(self) -> tuple[Evidence, ...]:
        """The evidence of which only the address is known."""
        return tuple(chunk for chunk in self.evidence if not chunk.text.strip())

    def to_json_dict(self) -> dict[str, JsonValue]:
        """Return the case as it was received, without unset fields.

        This is the form of the JSON Lines contract.
        """
        return self.model_dump(mode="json", exclude_unset=True)

    def digest(self) -> str:
        """Return the SHA-256 of the content, independent of the order of keys."""
        content = json.dumps(
            self.to_json_dict(), ensure_ascii=False, sort_keys=True, separators=(",", ":")
        )
        return hashlib.sha256(content.encode()).hexdigest()


def _check_label_keys(labels: GoldLabels | None) -> None:
    """Raise InputError for a key that no label has, and suggest the nearest one."""
    if labels is None:
        return
    records: list[tuple[str, OpenRecord]] = [("labels", labels)]
    for name in ("citations", "claims", "findings"):
        records += [
            (f"labels.{name}[{number}]", label)
            for number, label in enumerate(getattr(labels, name))
        ]
    for path, record in records:
        for key in record.model_extra or ():
            known = list(type(record).model_fields)
            near = get_close_matches(key[:200], known, n=1)
            hint = (
                f"Did you mean {near[0]!r}?"
                if near
                else f"Fields: {', '.join(known)}. Other data belongs under metadata."
            )
            raise InputError("isn't a field of a label", hint=hint, field=join_path(path, key))


def check_case(case: Case) -> Case:
    """Return the case if it is within the limits of ``schema/limits.py``.

    Raises:
        InputError: The case exceeds a limit, which the error names.

    """
    lengths = [len(chunk.text) for chunk in case.evidence]
    longest = max(lengths, default=0)

    for name, field, size, most, unit in (
        ("question_characters", "query", len(case.query), limits.QUESTION, "characters"),
        ("answer_characters", "answer", len(case.answer or ""), limits.ANSWER, "characters"),
        ("evidence_chunks", "evidence", len(lengths), limits.CHUNKS, "chunks"),
        ("chunk_characters", "evidence[].text", longest, limits.CHUNK, "characters"),
        ("evidence_characters", "evidence", sum(lengths), limits.EVIDENCE, "characters"),
    ):
        if size > most:
            raise limits.limit_error(name, f"holds {size:,} {unit}", field)
    return case


def _read_case_record(record: Mapping[str, Any], names: FieldMap | None) -> Case:
    limits.check_nesting(record)
    data = _complete_case(to_case_fields(record, names, limits.CHUNKS))
    try:
        case = Case.from_stored(data)
    except ValidationError as error:
        raise explain(error) from None
    case._verify()
    return case


def _complete_case(data: dict[str, Any]) -> dict[str, Any]:
    """Return the fields with evidence as chunks, thoughts separated, and an id.

    A missing id is derived from the content.
    """
    evidence = data.get("evidence")
    # Exact types, because a subclass may behave in another way.
    as_ours = type(evidence) is list and all(
        type(chunk) is dict and type(chunk.get("id")) is str and "text" in chunk
        for chunk in evidence
    )
    # Chunks in our own form are validated together with the case, which is faster.
    if evidence is not None and not as_ours:
        data = {**data, "evidence": evidence_of(evidence)}
    data = data if "id" in data else {"id": content_id(data), **data}
    system = id_text(data.get("system"))
    if names_system(system) and isinstance(data["id"], str):
        named = {key: value for key, value in data.items() if key != "system"}
        data = name_answer(named, system_name(system))
    return _separate_thoughts(data)


def _separate_thoughts(data: dict[str, Any]) -> dict[str, Any]:
    """Return the fields with only the answer under ``answer``.

    Thoughts move to ``reasoning``, and the reason for a missing answer to ``no_answer``.
    """
    answer = data.get("answer")
    if isinstance(answer, str) and may_hold_thoughts(answer):
        separated = separate_thoughts(answer)
        if separated.removed:
            data = _without_thoughts(data, separated)
    turns = data.get("messages")
    if (
        "reasoning" not in data
        and isinstance(turns, list | tuple)
        and turns
        and (thoughts := thoughts_in(turns[-1]))
    ):
        data = {**data, "reasoning": thoughts}
    if "no_answer" in data:
        code = data["no_answer"]
        return {**data, "no_answer": {"code": code}} if code in get_args(NoAnswerCode) else data
    why = no_answer_in(data, data.get("answer"))
    return data if why is None else {**data, "answer": None, "no_answer": why}


def _without_thoughts(data: dict[str, Any], separated: Separated) -> dict[str, Any]:
    """Return the fields with the remaining answer, and adjust the offsets into it.

    Citations and labels inside a removed thought are dropped. If no answer remains, the reply was
    cut off before its answer.
    """
    more: dict[str, Any] = {"answer": separated.answer}
    if separated.thoughts:
        known = data["reasoning"] if isinstance(data.get("reasoning"), str) else ""
        more["reasoning"] = "\n\n".join(filter(None, (known, separated.thoughts)))
    if not separated.answer.strip():
        why = {
            "code": "failed",
            "message": "The reply contains only the model's thoughts and no answer.",
        }
        more |= {"answer": None, "no_answer": no_answer_in({**data, "answer": None}) or why}
    if isinstance(data.get("citations"), list | tuple):
        more["citations"] = [
            moved
            for placed in data["citations"]
            if (moved := _move_place(placed, separated)) is not None
        ]
    labels = data.get("labels")
    if isinstance(labels, Mapping) and isinstance(labels.get("claims"), list | tuple):
        claims = [
            moved
            for placed in labels["claims"]
            if (moved := _move_place(placed, separated)) is not None
        ]
        more["labels"] = {**labels, "claims": claims}
    return {**data, **more}


def _move_place(placed: Any, separated: Separated) -> Any:
    """Return a record with its ``start`` and ``end`` adjusted, or None if its span was removed."""
    record = placed.model_dump(exclude_unset=True) if isinstance(placed, BaseModel) else placed
    if not isinstance(record, Mapping):
        return placed
    start, end = record.get("start"), record.get("end")
    # type() and not isinstance(), since True and False are ints too.
    if type(start) is not int or type(end) is not int:
        return placed
    place = separated.move(start, end)
    return None if place is None else {**record, "start": place[0], "end": place[1]}


def case_of(value: Any, field: str = "case", names: FieldMap | None = None) -> Case:
    """Return a checked case from a Case or a record.

    Args:
        value: A Case, or a mapping of its fields.
        field: Prefix of the field that an error names; "" if file and line already say it.
        names: Which keys of the record hold which fields.

    Raises:
        InputError: The value isn't a valid case.

    """
    is_record = isinstance(value, Mapping) and all(isinstance(key, str) for key in value)
    if is_record or isinstance(value, Case):
        try:
            return check_case(value if isinstance(value, Case) else _read_case_record(value, names))
        except InputError as error:
            place = ".".join(part for part in (field, error.field) if part)
            raise InputError(
                error.problem, hint=error.hint, field=place or None, limit=error.limit
            ) from None
    hint = (
        'Write it as {"id": "1", "query": "...", "answer": "...", "evidence": [{"id": "1", "text":'
        ' "..."}]}.'
    )
    if is_frame(value):
        hint = "Audit its rows with masis.audit_many(frame)."
    raise InputError(f"is {kind_of(value)}, not a case", hint=hint, field=field or None)

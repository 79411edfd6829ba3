"""What comes in: a question, its evidence, perhaps an answer, perhaps gold labels.

The JSON form is a public contract. Unknown keys are kept. A repeated evidence id, a null byte or
half a surrogate pair is an error: the first makes citations ambiguous, the others can't be stored
as text.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
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
from masis.schema.explain import explain, kind_of
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

ClaimVerdict = Literal[
    "supported", "partial", "contradicted", "unsupported", "unverifiable", "unscored"
]
"""Whether the evidence supports a claim; ``unscored`` where no verdict could be had."""

Severity = Literal["critical", "high", "medium", "low"]

ScreeningOutcome = Literal[
    "sufficient", "conflicting", "evidence_insufficient", "cancelled", "error"
]
"""How a screening ended: whether what it kept is enough to answer the question, and agrees
(``conflicting``: it is enough, and the kept studies point in different directions)."""


class Evidence(InputRecord):
    """One chunk a retriever found. ``text`` may be empty where only an address is known."""

    id: StrictStr = Field(min_length=1)
    text: StrictStr = ""
    source: StrictStr | None = None


def evidence_of(chunks: Iterable[Any], field: str = "evidence") -> tuple[Evidence, ...]:
    """Return evidence from chunks of any origin, in their order.

    A chunk is Evidence, a mapping with ``id`` and ``text``, a bare text, a document of LangChain, a
    node of LlamaIndex. What has no id is named by its place, ``chunk_1`` and so on. Of documents of
    a library, one that came before is left out, and another text under a used id gets the next free
    ``id#2``.

    Raises InputError where a chunk is none of these, and for a single one, which would be read
    letter by letter.
    """
    if isinstance(chunks, str | bytes | Mapping | Evidence) or is_document(chunks):
        raise InputError(
            "is one thing, not a list of chunks",
            hint=f"Put it into a list. {_CHUNK_HINT}",
            field=field,
        )
    if not isinstance(chunks, Iterable):
        raise InputError(
            f"is {kind_of(chunks)}, not a list of chunks",
            hint=f"Give a list. {_CHUNK_HINT}",
            field=field,
        )
    found: list[Evidence] = []
    texts: dict[str, str] = {}
    for number, given in enumerate(chunks, 1):
        chunk = _to_evidence(given, number, field)
        if chunk.id in texts and not isinstance(given, Evidence | Mapping):
            if texts[chunk.id] == chunk.text:
                continue
            free = next(
                name
                for count in range(2, number + 2)
                if (name := f"{chunk.id}#{count}") not in texts
            )
            chunk = chunk.model_copy(update={"id": free})
        texts.setdefault(chunk.id, chunk.text)
        found.append(chunk)
    return tuple(found)


_CHUNK_HINT = (
    'A chunk is {"id": "1", "text": "..."}, a text alone, a document of LangChain or a node of'
    " LlamaIndex."
)


def _to_evidence(given: Any, number: int, field: str) -> Evidence:
    if isinstance(given, Evidence):
        return given
    if isinstance(given, str):
        data: dict[str, Any] = {"id": f"chunk_{number}", "text": given}
    elif isinstance(given, Mapping) and not _is_library_chunk(given):
        data = {"id": f"chunk_{number}", **given}
    else:
        try:
            read = read_document(given, number - 1, field)
        except InputError as error:
            raise InputError(
                "is no chunk of evidence", hint=_CHUNK_HINT, field=error.field
            ) from None
        data = {"id": read.id or f"chunk_{number}", "text": read.content}
        about = {
            "source": read.path,
            "type": read.type,
            "score": read.score,
            "metadata": dict(read.metadata),
        }
        about["given_id"] = given.get("given_id") if isinstance(given, Mapping) else None
        data |= {name: value for name, value in about.items() if value not in (None, "", {})}
    data["id"] = id_text(data["id"])
    try:
        return Evidence.model_validate(data)
    except (ValidationError, TypeError) as error:
        if isinstance(error, TypeError):  # a key that is no text
            raise InputError(
                "is no chunk of evidence", hint=_CHUNK_HINT, field=f"{field}[{number - 1}]"
            ) from error
        found = explain(error)
        place = f"{field}[{number - 1}]{f'.{found.field}' if found.field else ''}"
        raise InputError(found.problem, hint=found.hint, field=place) from None


def _is_library_chunk(given: Mapping[Any, Any]) -> bool:
    """Return whether a mapping has its text under another name than ours."""
    return "text" not in given and any(isinstance(given.get(key), str) for key in TEXT_KEYS)


class CitationLabel(OpenRecord):
    """Gold: what one reference of the answer is.

    ``reference`` is the id as written, ``text`` the marker it stands in, ``sentence`` enough of its
    sentence to find it.
    """

    reference: str
    status: Literal["valid", "invalid", "misattributed", "redundant"]
    text: str | None = None
    sentence: str | None = None
    evidence_id: str | None = None
    note: str | None = None


class ClaimLabel(OpenRecord):
    """Gold: whether the evidence supports one claim; ``text`` is what the answer says, word for
    word.
    """

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


class GoldLabels(OpenRecord):
    """Gold labels; what else a label holds is kept."""

    citations: tuple[CitationLabel, ...] = ()
    claims: tuple[ClaimLabel, ...] = ()
    findings: tuple[FindingLabel, ...] = ()
    clean: bool | None = None


class CaseScreening(OpenRecord):
    """The screening that a case's evidence comes from, and how it ended."""

    id: StrictStr
    outcome: ScreeningOutcome


class EarlierVersion(OpenRecord):
    """The case that another one takes the place of, as that one names it.

    ``digest`` is that of the earlier case, ``number`` says which version the later one is, from 2;
    ``filled`` are the ids of evidence that has its text from a person, in this version or one
    before.
    """

    id: StrictStr
    digest: StrictStr
    number: StrictInt
    filled: tuple[StrictStr, ...] = ()


class GivenCitation(OpenRecord):
    """A citation that came beside the answer, as citation APIs return them.

    ``start`` and ``end`` are offsets into the answer: what the citation covers, or one place where
    both are the same. ``quote`` is what it says the evidence holds; ``evidence_start`` and
    ``evidence_end`` where, in the text of the evidence.
    """

    start: StrictInt
    end: StrictInt
    evidence_id: StrictStr
    quote: StrictStr | None = None
    evidence_start: StrictInt | None = None
    evidence_end: StrictInt | None = None
    provider: StrictStr | None = None


class NoAnswer(OpenRecord):
    """Why a system gave no answer; ``message`` is what it said instead, or the error of
    its call.
    """

    code: NoAnswerCode
    message: StrictStr = ""


class Message(OpenRecord):
    """One turn of a conversation as chat APIs have them; ``content`` is a text, or a
    list of parts.
    """

    role: StrictStr = Field(min_length=1)
    content: StrictStr | tuple[JsonValue, ...] | None = None

    @property
    def text(self) -> str:
        """The words of the turn, without what a model thought; a part without text is named by its
        type.
        """
        said = words_of(self.content) or ""
        return separate_thoughts(said).answer.strip() if self.role in ANSWERING_ROLES else said


class Case(InputRecord):
    """A question with its evidence and, if one was written, an answer.

    ``citations`` came beside the answer, ``messages`` are the conversation that the answer belongs
    to, ``screening`` stands in cases made from a screening, ``supersedes`` in a new version of a
    case. ``reasoning`` is what the model thought before it answered: it is shown, not audited.
    ``no_answer`` says that the system refused or failed, where that is why there is no answer.
    Under each of these names a value of another shape is somebody else's key, and kept.
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

    @classmethod
    def _normalize_fields(cls, data: dict[str, Any]) -> dict[str, Any]:
        return _complete_case(to_case_fields(data))

    @classmethod
    def model_validate(cls, obj: Any, **options: Any) -> Self:
        """Return the case that a record holds, read as ``Case(**record)`` reads it; ``options`` are
        pydantic's.

        Raises:
            InvalidRecord: The record holds no case, or a part of it may be under a key that nothing
                reads.

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
            raise InvalidRecord.of(explain(error)) from None
        except InputError as error:
            raise InvalidRecord.of(error) from None
        return case

    @classmethod
    def model_validate_json(cls, json_data: str | bytes | bytearray, **options: Any) -> Self:
        """Return the case that a record in JSON holds, as ``model_validate`` reads it. Raises
        InvalidRecord.
        """
        try:
            record = json.loads(json_data)
        except (ValueError, RecursionError):
            return super().model_validate_json(json_data, **options)  # whose error names the place
        return cls.model_validate(record, **options)

    @classmethod
    def from_stored(cls, record: str | bytes | Mapping[str, Any]) -> Self:
        """Return a case from its own form, as ``to_json_dict`` writes it: nothing is looked for
        under another key.

        Raises pydantic's ValidationError.
        """
        if isinstance(record, Mapping):
            return super().model_validate(record)
        return super().model_validate_json(record)

    def _verify(self) -> None:
        if not self.query.strip():
            raise InputError("is blank", hint='Add the question as "query": "...".', field="query")
        if isinstance(self.no_answer, NoAnswer) and (self.answer or "").strip():
            raise InputError(
                "says that there is none, and there is an answer",
                hint="Keep one.",
                field="no_answer",
            )
        length = len(self.answer or "")
        for number, given in enumerate(self.given_citations):
            if not 0 <= given.start <= given.end <= length:
                raise InputError(
                    f"covers characters {given.start} to {given.end} of an answer of {length}",
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
        """Return the citations that came beside the answer; none where the key holds something
        else.
        """
        given = self.citations
        if isinstance(given, tuple):
            return tuple(citation for citation in given if isinstance(citation, GivenCitation))
        return ()

    @property
    def earlier_turns(self) -> tuple[Message, ...]:
        """Return the conversation before the question; none where the key holds something else."""
        given = self.messages if isinstance(self.messages, tuple) else ()
        turns = [message for message in given if isinstance(message, Message)]
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
    def evidence_outcome(self) -> str | None:
        """Return the outcome of the screening that the evidence comes from; None where it comes
        from none.
        """
        if isinstance(self.screening, CaseScreening):
            return self.screening.outcome
        named = self.screening.get("outcome") if isinstance(self.screening, dict) else None
        return None if named is None else str(named)

    @property
    def unanswered(self) -> NoAnswer | None:
        """Return why the system gave no answer; None where there is one, or nothing says why there
        is none.
        """
        return self.no_answer if isinstance(self.no_answer, NoAnswer) else None

    @property
    def model_reasoning(self) -> str:
        """Return what the model thought before it answered; "" where nothing is known of it."""
        return self.reasoning.strip() if isinstance(self.reasoning, str) else ""

    @property
    def earlier_version(self) -> EarlierVersion | None:
        """Return the case that this one is a new version of; None where it is none."""
        return self.supersedes if isinstance(self.supersedes, EarlierVersion) else None

    @property
    def without_text(self) -> tuple[Evidence, ...]:
        """Return the evidence of which only the address is known."""
        return tuple(chunk for chunk in self.evidence if not chunk.text.strip())

    def to_json_dict(self) -> dict[str, JsonValue]:
        """Return the case as it was received, unset fields left out: what the contract's JSON Lines
        hold.
        """
        return self.model_dump(mode="json", exclude_unset=True)

    def digest(self) -> str:
        """SHA-256 over the content; the order of the keys doesn't matter."""
        content = json.dumps(
            self.to_json_dict(), ensure_ascii=False, sort_keys=True, separators=(",", ":")
        )
        return hashlib.sha256(content.encode()).hexdigest()


def check_case(case: Case) -> Case:
    """Return the case. Raises InputError naming the first limit that it passes
    (``schema/limits.py``).
    """
    lengths = [len(chunk.text) for chunk in case.evidence]
    longest = max(lengths, default=0)
    for name, field, size, most, what in (
        ("question_characters", "query", len(case.query), limits.QUESTION, "characters"),
        ("answer_characters", "answer", len(case.answer or ""), limits.ANSWER, "characters"),
        ("evidence_chunks", "evidence", len(lengths), limits.CHUNKS, "chunks"),
        ("chunk_characters", "evidence[].text", longest, limits.CHUNK, "characters"),
        ("evidence_characters", "evidence", sum(lengths), limits.EVIDENCE, "characters"),
    ):
        if size > most:
            raise limits.limit_error(name, f"holds {size:,} {what}", field)
    return case


def _read_case_record(record: Mapping[str, Any], names: FieldMap | None) -> Case:
    limits.check_nesting(record)
    data = _complete_case(to_case_fields(record, names))
    try:
        case = Case.from_stored(data)
    except ValidationError as error:
        raise explain(error) from None
    case._verify()
    return case


def _complete_case(data: dict[str, Any]) -> dict[str, Any]:
    """Return the fields with evidence as chunks, thoughts apart, and an id of the content where
    there is none.
    """
    given = data.get("evidence")
    as_ours = type(given) is list and all(
        type(each) is dict and type(each.get("id")) is str and "text" in each for each in given
    )
    # what is in our form already is validated with the case, in one go
    if given is not None and not as_ours:
        data = {**data, "evidence": evidence_of(given)}
    return _separate_thoughts(data if "id" in data else {"id": content_id(data), **data})


def _separate_thoughts(data: dict[str, Any]) -> dict[str, Any]:
    """Return the fields with the answer alone under ``answer``: what was thought, and why there is
    none, beside it.
    """
    answer = data.get("answer")
    if isinstance(answer, str) and may_hold_thoughts(answer):
        found = separate_thoughts(answer)
        if found.removed:
            data = _without_thoughts(data, found)
    turns = data.get("messages")
    if (
        "reasoning" not in data
        and isinstance(turns, list | tuple)
        and turns
        and (said := thoughts_in(turns[-1]))
    ):
        data = {**data, "reasoning": said}
    if "no_answer" in data:
        code = data["no_answer"]
        return {**data, "no_answer": {"code": code}} if code in get_args(NoAnswerCode) else data
    why = no_answer_in(data, data.get("answer"))
    return data if why is None else {**data, "answer": None, "no_answer": why}


def _without_thoughts(data: dict[str, Any], found: Separated) -> dict[str, Any]:
    """Return the fields with the answer that is left, and what points into it moved, or left out
    with the thoughts.

    No answer may be left: then the reply was cut off before its answer.
    """
    more: dict[str, Any] = {"answer": found.answer}
    if found.thoughts:
        known = data["reasoning"] if isinstance(data.get("reasoning"), str) else ""
        more["reasoning"] = "\n\n".join(filter(None, (known, found.thoughts)))
    if not found.answer.strip():
        why = {
            "code": "failed",
            "message": "The reply holds what the model thought, and no answer.",
        }
        more |= {"answer": None, "no_answer": no_answer_in({**data, "answer": None}) or why}
    if isinstance(data.get("citations"), list | tuple):
        more["citations"] = [
            moved for each in data["citations"] if (moved := _move_place(each, found)) is not None
        ]
    labels = data.get("labels")
    if isinstance(labels, Mapping) and isinstance(labels.get("claims"), list | tuple):
        claims = [
            moved for each in labels["claims"] if (moved := _move_place(each, found)) is not None
        ]
        more["labels"] = {**labels, "claims": claims}
    return {**data, **more}


def _move_place(placed: Any, found: Separated) -> Any:
    """Return a record with ``start`` and ``end`` in the answer at its new place; None where that is
    gone.
    """
    held = placed.model_dump(exclude_unset=True) if isinstance(placed, BaseModel) else placed
    if not isinstance(held, Mapping):
        return placed
    start, end = held.get("start"), held.get("end")
    if type(start) is not int or type(end) is not int:
        return placed
    place = found.move(start, end)
    return None if place is None else {**held, "start": place[0], "end": place[1]}


def case_of(given: Any, field: str = "case", names: FieldMap | None = None) -> Case:
    """Return a case, from one or from a record: a mapping of its fields, under the names that
    ``names`` says.

    ``field`` begins the place that an error names; "" where the file and line say it. Raises
    InputError.
    """
    is_record = isinstance(given, Mapping) and all(isinstance(key, str) for key in given)
    if is_record or isinstance(given, Case):
        try:
            return check_case(given if isinstance(given, Case) else _read_case_record(given, names))
        except InputError as error:
            place = ".".join(part for part in (field, error.field) if part)
            raise InputError(
                error.problem, hint=error.hint, field=place or None, limit=error.limit
            ) from None
    hint = (
        'Write it as {"id": "1", "query": "...", "answer": "...", "evidence": [{"id": "1", "text":'
        ' "..."}]}.'
    )
    if is_frame(given):
        hint = "Audit its rows with masis.audit_many(frame)."
    raise InputError(f"is {kind_of(given)}, not a case", hint=hint, field=field or None)

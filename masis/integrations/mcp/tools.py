"""The tools. Each is a method whose signature, types and docstring become the description that
agents see.

``critique_answer`` has exactly the schema of rule DRAFT-CRITIQUE-MCP, so limits that would change
the schema are checked in code. Nothing here is async: a method runs on a worker thread, reports its
progress, and checks whether its caller has gone.
"""

from __future__ import annotations

import contextlib
import difflib
import hashlib
import json
import threading
from collections.abc import Callable, Iterator, Mapping
from typing import Annotated, Any, Literal, NamedTuple, TypeVar

from mcp import types as wire
from mcp.server.mcpserver.utilities.func_metadata import FuncMetadata, func_metadata
from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    StrictBool,
    StrictInt,
    StrictStr,
    ValidationError,
    model_validator,
)
from pydantic.alias_generators import to_camel
from pydantic_core import PydanticCustomError

from masis.api import audits, draft_critique
from masis.api.roles import uses_models
from masis.errors import InputError, MasisError, UnknownRecord
from masis.integrations.mcp import reports
from masis.integrations.mcp.quoting import quote_id, visible
from masis.integrations.mcp.reports import address
from masis.integrations.mcp.sources import (
    ToolSource,
    best_chunks,
    gather_sources,
    near_cases,
    near_runs,
)
from masis.integrations.mcp.spending import Spending
from masis.pipeline.documents import documents
from masis.schema import limits
from masis.schema.base import CheckedModel, Share
from masis.schema.case import Case, Evidence, case_of, evidence_of
from masis.schema.drafts import CamelRecord, CritiqueIssue, CritiqueResult
from masis.schema.explain import explain_all
from masis.schema.reading import evidence_list, id_text
from masis.schema.review import CaseState
from masis.schema.rules import ReviewTier
from masis.schema.run import Event, Run
from masis.schema.storable import refuse_unstorable
from masis.services import Actor, Workbench
from masis.services.records import DEFAULT_ORDER, CaseFilter, OrderName, RunProgress
from masis.settings import Settings

MOST_CLAIM = 5_000
"""Maximum number of characters per claim. Limits of questions, answers and evidence are in
``masis/schema/limits.py``.
"""
MOST_CLAIMS, MOST_LISTED = 100, 100
MOST_REPORTED = 2_000_000
"""The longest run, in characters, that get_run returns whole. Longer ones are read as a resource.
"""
ACTOR = Actor(name="mcp")
"""The actor recorded for cases and audits that a client stores."""
STEPS = 5
"""Steps of an iteration (citations, claims, critique, evaluation, revision)."""

_WRONG_NAMED = 5
_PAGE_DIGITS = 5
_WAIT_S = 0.2

# Arguments.


def _too_large(size: int, limit: int, what: str, name: str = "") -> PydanticCustomError:
    sizes = {
        "size": f"{size:,}",
        "what": what,
        "limit": f"{limit:,}",
        "name": f" ({name})" if name else "",
    }
    return PydanticCustomError(
        "too_large", "has {size} {what}, but at most {limit} are allowed{name}", sizes
    )


def _at_most(limit: int, what: str, name: str = "") -> AfterValidator:
    def check(value: Any) -> Any:
        if len(value) > limit:
            raise _too_large(len(value), limit, what, name)
        return value

    return AfterValidator(check)


def _at_most_items(limit: int, what: str, name: str) -> BeforeValidator:
    """Count the items of a list before they become records, which take far more memory."""

    def check(value: Any) -> Any:
        if isinstance(value, list | tuple) and len(value) > limit:
            raise _too_large(len(value), limit, what, name)
        return value

    return BeforeValidator(check)


def _not_blank(value: str) -> str:
    if not value.strip():
        raise PydanticCustomError("string_too_short", "is empty")
    return value


def _distinct_chunks(chunks: tuple[Evidence, ...]) -> tuple[Evidence, ...]:
    size, first = sum(len(chunk.text) for chunk in chunks), dict[str, int]()
    if size > limits.EVIDENCE:
        raise _too_large(size, limits.EVIDENCE, "characters", "evidence_characters")
    for index, chunk in enumerate(chunks):
        if chunk.id in first:
            places = {"id": visible(chunk.id), "first": first[chunk.id], "second": index}
            raise PydanticCustomError("repeated_evidence_id", "uses an id twice", places)
        first[chunk.id] = index
    return chunks


def _without_null(schema: dict[str, Any]) -> None:
    schema |= next(option for option in schema.pop("anyOf") if option != {"type": "null"})


T = TypeVar("T")
Maybe = Annotated[T | None, Field(json_schema_extra=_without_null)]
"""An optional argument. The schema doesn't offer null, but a null that arrives counts as left out.
"""
Query = Annotated[
    StrictStr,
    _at_most(limits.QUESTION, "characters", "question_characters"),
    AfterValidator(_not_blank),
]
Text = Annotated[
    StrictStr,
    _at_most(limits.ANSWER, "characters", "answer_characters"),
    AfterValidator(_not_blank),
]
ClaimText = Annotated[StrictStr, _at_most(MOST_CLAIM, "characters"), AfterValidator(_not_blank)]
Identifier = Annotated[StrictStr, _at_most(2_000, "characters"), AfterValidator(_not_blank)]
SourceIds = Annotated[
    tuple[Identifier, ...], _at_most_items(limits.CHUNKS, "ids", "evidence_chunks")
]
Words = tuple[Annotated[StrictStr, _at_most(200, "characters")], ...]
Limit = Annotated[StrictInt, Field(ge=1, le=MOST_LISTED)]
Cursor = Annotated[
    Maybe[Annotated[StrictStr, _at_most(2_000, "characters")]],
    Field(description="next_cursor of the previous page"),
]
Chunks = Annotated[
    tuple[Evidence, ...],
    _at_most_items(limits.CHUNKS, "chunks", "evidence_chunks"),
    AfterValidator(_distinct_chunks),
]
InFull = Annotated[
    Chunks, Field(description='Full chunks of evidence: [{"id": "1", "text": "..."}]')
]
StoredIds = Annotated[
    SourceIds, Field(description="Ids of stored evidence, as returned by search_evidence")
]


class InlineCase(CamelRecord):
    """A case given in full. Without an id it gets one from its content. Unknown keys are kept."""

    model_config = ConfigDict(extra="allow")

    id: Maybe[Annotated[StrictStr, Field(min_length=1, max_length=500)]] = None
    query: Query
    answer: Maybe[Text] = Field(
        default=None, description="If left out, an answer is drafted from the evidence"
    )
    evidence: Chunks = Field(min_length=1, description='[{"id": "1", "text": "..."}]')
    reasoning_steps: tuple[ClaimText, ...] = ()
    metadata: dict[str, Any] = Field(default_factory=dict)

    @model_validator(mode="before")
    @classmethod
    def _normalize(cls, value: Any) -> Any:
        """Convert numeric ids and other forms of evidence to ours, as all imports do."""
        if not isinstance(value, Mapping):
            return value
        fields = {**value, "id": id_text(value["id"])} if "id" in value else dict(value)
        evidence = fields.get("evidence")
        if isinstance(evidence, str):
            try:
                evidence = evidence_list(evidence, fields.get("answer"), {})
            except InputError as error:
                raise InputError(error.problem, hint=error.hint, field="case.evidence") from None
        # The field itself refuses a longer list, without making records of its items.
        if isinstance(evidence, list | tuple) and len(evidence) <= limits.CHUNKS:
            chunks = evidence_of(evidence, "case.evidence")
            fields["evidence"] = tuple(chunk.model_dump(exclude_unset=True) for chunk in chunks)
        return fields


# Progress and cancellation of a call.


class CallerGone(Exception):
    """The caller disconnected or cancelled the call. Finished work is kept, and the same call
    resumes from it.
    """


class CallProgress(NamedTuple):
    """The progress of a call: ``done`` of at most ``total`` steps (None if unknown), and a short
    message.
    """

    done: float
    total: float | None
    message: str


class CallWatch(NamedTuple):
    """The caller of a tool: a function that receives progress, and one that tells whether the
    caller has gone.
    """

    report: Callable[[CallProgress], None] = lambda progress: None
    gone: Callable[[], bool] = lambda: False

    def stop_if_gone(self) -> bool:
        """Return False, so that an audit continues. Raises CallerGone, which leaves the run
        resumable.
        """
        if self.gone():
            raise CallerGone
        return False


def read_arguments(model: type[BaseModel], received: Mapping[str, Any]) -> BaseModel:
    """Validate the arguments of a tool or a prompt. Raises InputError naming each wrong one."""
    fields = {field.alias or name: field for name, field in model.model_fields.items()}
    wrong = []
    unknown = [name for name in received if name not in fields]
    for name in unknown[:_WRONG_NAMED]:
        similar = difflib.get_close_matches(name[:60], fields, n=1)
        suggestion = f" (did you mean {similar[0]}?)" if similar else ""
        wrong.append(f"There is no argument {visible(name)}{suggestion}.")
    try:
        refuse_unstorable(received, "the arguments")
        arguments = model.model_validate(
            {name: received[name] for name in fields if name in received}
        )
    except PydanticCustomError as error:
        wrong.append(f"{error.message()}.")
    except ValidationError as error:
        wrong += [visible(str(problem), 300) for problem in explain_all(error)]
    if not wrong:
        return arguments
    more = len(wrong) + len(unknown[_WRONG_NAMED:]) - _WRONG_NAMED
    others_line = f"{more} more are wrong. " if more > 0 else ""
    needed = [name for name, field in fields.items() if field.is_required()]
    optional = [name for name in fields if name not in needed]
    parts = [f"required: {', '.join(needed)}"] if needed else []
    parts += [f"optional: {', '.join(optional)}"] if optional else []
    raise InputError(
        " ".join(dict.fromkeys(wrong[:_WRONG_NAMED])),
        hint=f"{others_line}Arguments {'; '.join(parts)}." if parts else "It has no arguments.",
        field="arguments",
    )


def tidy_schema(value: Any, *, names: bool = False) -> Any:
    """Return a schema without the titles and null defaults that pydantic adds, which clients don't
    need.

    If ``names``, the keys of ``value`` are field names rather than keywords of JSON schema.
    """
    if isinstance(value, list):
        return [tidy_schema(item) for item in value]
    if not isinstance(value, dict):
        return value
    return {
        key: tidy_schema(item, names=key in ("properties", "$defs") and not names)
        for key, item in value.items()
        if names or not (key == "title" or (key == "default" and item is None))
    }


class Tool(NamedTuple):
    """A tool, built from its method. The arguments' protocol names are aliases.

    ``audits`` marks tools that may take long, use the audit pool and may call models. ``steps``
    marks tools that report progress of their own.
    """

    name: str
    title: str
    description: str
    metadata: FuncMetadata
    output_schema: dict[str, Any]
    audits: bool = False
    writes: bool = False
    steps: bool = False

    def wire_form(self, settings: Settings) -> wire.Tool:
        """Return the tool as clients see it, with hints that they can show users before a call."""
        hints = wire.ToolAnnotations(
            title=self.title,
            read_only_hint=not self.writes,
            destructive_hint=False,
            # Repeating run_audit with ``again`` creates another run, so a tool that writes isn't
            # idempotent.
            idempotent_hint=not self.writes,
            open_world_hint=self.audits and uses_models(settings),
        )
        return wire.Tool(
            name=self.name,
            title=self.title,
            description=self.description,
            input_schema=self.input_schema(),
            output_schema=self.output_schema,
            annotations=hints,
        )

    def input_schema(self) -> dict[str, Any]:
        """Return the JSON schema of the arguments."""
        schema: dict[str, Any] = tidy_schema(
            self.metadata.arg_model.model_json_schema(by_alias=True)
        )
        if self.name == "critique_answer":
            # The spec's schema doesn't have this keyword. Unknown names are still refused.
            schema.pop("additionalProperties", None)
        return schema

    def parse_arguments(self, received: Mapping[str, Any]) -> dict[str, Any]:
        """Return the arguments of a call by parameter name. Raises InputError naming each wrong
        one.
        """
        non_null = {name: value for name, value in received.items() if value is not None}
        arguments = read_arguments(self.metadata.arg_model, self.metadata.pre_parse_json(non_null))
        return {name: getattr(arguments, name) for name in type(arguments).model_fields}

    def call(self, tools: Tools, arguments: dict[str, Any], watch: CallWatch) -> dict[str, Any]:
        """Run the tool and return the structured result that ``output_schema`` describes."""
        watched = {"watch": watch} if self.audits else {}
        result: BaseModel = getattr(tools, self.name)(**watched, **arguments)
        if not isinstance(result, CritiqueResult):
            return result.model_dump(mode="json", by_alias=True)
        # The spec leaves out absent values, except for confidence, which is null if it isn't known.
        present = result.model_dump(mode="json", by_alias=True, exclude_none=True)
        return present | {"confidence": result.confidence}


TOOLS: dict[str, Tool] = {}
"""The tools by name, in the order in which they are defined."""

M = TypeVar("M", bound=Callable[..., Any])


def tool(title: str, **marks: bool) -> Callable[[M], M]:
    """Register a method as a tool. Its docstring becomes the description for agents."""

    def register(method: M) -> M:
        name, description = method.__name__, " ".join(str(method.__doc__).split())
        read = func_metadata(method, skip_names=("self", "watch"))
        config = ConfigDict(alias_generator=to_camel, extra="forbid")
        read.arg_model = type(
            name, (CheckedModel, read.arg_model), {"model_config": config, "__module__": __name__}
        )
        TOOLS[name] = Tool(name, title, description, read, tidy_schema(read.output_schema), **marks)
        return method

    return register


class Tools:
    """The tools of one workbench."""

    def __init__(self, workbench: Workbench, spending: Spending | None = None) -> None:
        self.workbench = workbench
        self.spending = spending or Spending()
        self._being_audited: set[str] = set()
        self._audit_ended = threading.Condition()

    @property
    def settings(self) -> Settings:
        """The settings that the workbench uses now."""
        return self.workbench.settings

    @tool("Critique a draft answer", audits=True)
    def critique_answer(
        self,
        watch: CallWatch,
        query: Annotated[Query, Field(description="Original query")],
        draft: Annotated[Text, Field(description="Draft answer to critique")],
        source_ids: Annotated[SourceIds, Field(description="Entity IDs to use as sources")],
        auto_revise: Annotated[
            Maybe[StrictBool], Field(description="Automatically fix issues")
        ] = None,
        strictness: Maybe[Literal["lenient", "moderate", "strict"]] = None,
    ) -> CritiqueResult:
        """Validate an answer against source documents to check for hallucinations. The sources are
        stored evidence, identified by sourceIds (see search_evidence and get_case). Nothing is
        stored. isValid is false if there is any high issue or if a step failed (listed in
        unscored). needsReview says whether a person should look, and why.
        """
        if not source_ids:
            raise InputError(
                "is empty", hint="Name the evidence to check the draft against.", field="sourceIds"
            )
        self.spending.check()
        sources = gather_sources(self.workbench, source_ids)
        options = {"auto_revise": auto_revise, "strictness": strictness}
        chosen = {name: value for name, value in options.items() if value is not None}
        source_documents = documents(source.chunk for source in sources)
        result = draft_critique.critique_draft(
            query, draft, source_documents, chosen, self.settings, cancelled=watch.gone
        )
        return _restore_given_ids(
            result, {source.chunk.id: source.source_id or "" for source in sources}
        )

    @tool("Check the citations of an answer")
    def audit_citations(
        self,
        answer: Annotated[
            Text,
            Field(description="The answer to check, including its citation markers such as [1]"),
        ],
        evidence: InFull = (),
        source_ids: StoredIds = (),
    ) -> reports.CitationReport:
        """Check the citation markers of an answer, such as [1]: which point at evidence, which
        point at nothing, and which sentences make a claim without one. Uses rules in code and no
        model. Nothing is stored.
        """
        sources = self._evidence(evidence, source_ids)
        audit = audits.audit_citations(answer, [source.chunk for source in sources], self.settings)
        return reports.CitationReport(audit=audit, sources=reports.used_sources(sources))

    @tool("Verify claims against evidence", audits=True)
    def verify_claims(
        self,
        watch: CallWatch,
        claims: Annotated[
            tuple[ClaimText, ...],
            Field(
                min_length=1,
                description="One assertion each; markers in a claim count as its citations",
            ),
            _at_most(MOST_CLAIMS, "claims"),
        ],
        evidence: InFull = (),
        source_ids: StoredIds = (),
    ) -> reports.ClaimsReport:
        """Check whether evidence supports, partly supports, contradicts or doesn't support each
        claim, and quote the passages. A claim marked unscored has no verdict. Nothing is stored.
        """
        sources = self._evidence(evidence, source_ids)
        self.spending.check()
        chunks = [source.chunk for source in sources]
        checks = audits.verify_claims(claims, chunks, self.settings, cancelled=watch.stop_if_gone)
        return reports.ClaimsReport(checks=tuple(checks), sources=reports.used_sources(sources))

    @tool("Audit an answer", audits=True, writes=True, steps=True)
    def run_audit(
        self,
        watch: CallWatch,
        case_id: Annotated[Maybe[Identifier], Field(description="Id of a stored case")] = None,
        case: Annotated[
            Maybe[InlineCase], Field(description="A full case; it will be stored")
        ] = None,
        again: Annotated[
            StrictBool,
            Field(
                description=(
                    "Audit again instead of returning a finished run of the same content with the"
                    " same settings"
                )
            ),
        ] = False,
    ) -> reports.RunReport:
        """Audit a case in full: citations, claims, a critic, revisions until no serious issue is
        left, and a judge. The run is stored for people to review, and so is a case given in full.
        If a finished run of the same content exists, it is returned. Reports progress step by step.
        If a call was cancelled, calling again continues where it stopped. Only people decide on
        runs, in the workbench; no tool does.
        """
        chosen = self._case_to_audit(case_id, case)
        with self._one_at_a_time(chosen, watch):
            existing = (
                None if again else self.workbench.audits.newest_finished(chosen, self.settings)
            )
            if existing and not existing.incomplete and existing.termination_reason != "cancelled":
                return reports.of_run(existing, reused=True)
            self.spending.check()
            report = _reporter(self.settings, chosen, watch)

            def cancelled() -> bool:
                return watch.stop_if_gone() or self.spending.is_exhausted

            run = self.workbench.audits.audit(
                ACTOR, chosen, settings=self.settings, on_event=report, cancelled=cancelled
            )
        return reports.of_run(run, reused=False)

    @tool("Read a run")
    def get_run(
        self,
        run_id: Annotated[
            Identifier, Field(description="Id of a run, as returned by run_audit and list_queue")
        ],
        detail: Annotated[
            Literal["issues", "whole"],
            Field(
                description="whole returns every record of the run, which can be hundreds of "
                "kilobytes"
            ),
        ] = "issues",
    ) -> reports.RunReport:
        """Get the results of an audit: scores, issues, iterations, and whether a person must look
        and why. Also works for a run that is in progress or was interrupted, with the results so
        far.
        """
        report = reports.of_run(self.run(run_id), whole=detail == "whole")
        if (
            report.run is not None
            and len(json.dumps(report.run, ensure_ascii=False)) > MOST_REPORTED
        ):
            raise InputError(
                f"can't be whole, because this run has more than {MOST_REPORTED:,} characters",
                hint=f"Ask for issues, or read the resource {report.uri}.",
                field="detail",
            )
        return report

    @tool("Read a case")
    def get_case(
        self,
        case_id: Annotated[
            Identifier, Field(description="Id of a case, from list_queue or search_evidence")
        ],
    ) -> reports.CaseReport:
        """Get a stored case: question, answer, evidence, state and runs."""
        case = self._case(case_id)
        return reports.CaseReport(
            case=case.to_json_dict(),
            uri=reports.uri("case", case_id),
            state=self.workbench.cases.summary(case_id).state,
            evidence_ids=tuple(address(case_id, chunk.id) for chunk in case.evidence),
            runs=tuple(
                {
                    "run_id": run.id,
                    "state": run.state,
                    "started_at": run.started_at,
                    "quality": run.quality,
                }
                for run in self.workbench.runs.for_case(case_id)
            ),
        )

    @tool("List the review queue")
    def list_queue(
        self,
        text: Annotated[
            Annotated[StrictStr, _at_most(2_000, "characters")],
            Field(description="Words that must all occur in the id, question, answer or evidence"),
        ] = "",
        states: tuple[CaseState, ...] = (),
        flags: Annotated[Words, Field(description="Issues found in the original answer")] = (),
        reasons: Annotated[Words, Field(description="Reasons why a person should look")] = (),
        tiers: Annotated[
            tuple[ReviewTier, ...], Field(description="must_look: something is wrong or unsafe")
        ] = (),
        fields: Annotated[Words, Field(description="Values of the metadata key 'field'")] = (),
        datasets: Annotated[Words, Field(description="Values of the metadata key 'dataset'")] = (),
        models: Words = (),
        reviewers: Words = (),
        assignees: Annotated[Words, Field(description="People whom cases are assigned to")] = (),
        tags: Words = (),
        quality_from: Maybe[Share] = None,
        quality_to: Maybe[Share] = None,
        confidence_from: Maybe[Share] = None,
        confidence_to: Maybe[Share] = None,
        order: OrderName = DEFAULT_ORDER,
        seed: Annotated[StrictInt, Field(description="Seed of the order random")] = 0,
        queue: Annotated[
            Annotated[StrictStr, _at_most(200, "characters")],
            Field(description="Name of a queue that the team has set up"),
        ] = "",
        limit: Limit = 20,
        cursor: Cursor = None,
    ) -> reports.QueuePage:
        """List stored cases, filtered, one page at a time, the most likely faulty first, with
        state, scores, issues and newest run. Use states [needs_review] to list the cases that need
        review.
        """
        filters = {
            name: value for name, value in locals().items() if name in CaseFilter.model_fields
        }
        page = page_of(cursor, filters)
        try:
            matches = self.workbench.cases.find(CaseFilter(**filters, page=page, size=limit))
        except UnknownRecord as error:
            raise InputError(str(error), hint="Name one of them.", field="queue") from error
        return reports.QueuePage(
            cases=matches.rows,
            total=matches.total,
            next_cursor=cursor_of(page + 1, filters) if page * limit < matches.total else None,
            notes=() if matches.total else tuple(self._unmatched_filters(filters)),
        )

    @tool("Search stored evidence")
    def search_evidence(
        self,
        text: Annotated[
            Query, Field(description="Words that must all occur in the evidence of a case")
        ],
        limit: Annotated[Limit, Field(description="Cases on a page")] = 10,
        cursor: Cursor = None,
    ) -> reports.EvidencePage:
        """Find chunks of stored evidence by their words. Returns the ids to pass as sourceIds to
        critique_answer, audit_citations and verify_claims.
        """
        page = page_of(cursor, [text, limit])
        matches = self.workbench.store.evidence.with_words(
            text, limit=limit, offset=(page - 1) * limit
        )
        cases = map(self.workbench.store.cases.get, matches.ids)
        return reports.EvidencePage(
            evidence=tuple(chunk for case in cases for chunk in best_chunks(case, text)),
            total_cases=matches.total,
            next_cursor=(
                cursor_of(page + 1, [text, limit]) if page * limit < matches.total else None
            ),
        )

    # Shared by several tools.

    def run(self, run_id: str) -> Run | RunProgress:
        """Return a finished run, or the progress of an unfinished one. Raises InputError with
        similar ids.
        """
        try:
            progress = self.workbench.runs.progress(run_id)
        except UnknownRecord as error:
            raise self._no_such_run(run_id) from error
        return self.workbench.runs.get(run_id) if progress.state == "finished" else progress

    def _evidence(
        self, evidence: tuple[Evidence, ...], source_ids: tuple[str, ...]
    ) -> tuple[ToolSource, ...]:
        if not evidence and not source_ids:
            raise InputError(
                "give evidence, or sourceIds of stored evidence", hint="", field="arguments"
            )
        return gather_sources(self.workbench, source_ids, evidence)

    def _case_to_audit(self, case_id: str | None, inline: InlineCase | None) -> Case:
        if case_id is not None and inline is None:
            return self._case(case_id)
        if case_id is not None or inline is None:
            raise InputError("give either caseId or case", hint="", field="arguments")
        case = case_of(inline.model_dump(exclude_unset=True))
        if inline.id is None:
            case = case.model_copy(update={"id": f"mcp-{case.digest()[:16]}"})
        self.workbench.cases.add_one(ACTOR, case)
        return case

    @contextlib.contextmanager
    def _one_at_a_time(self, case: Case, watch: CallWatch) -> Iterator[None]:
        """Allow one audit of a case at a time. A second call for the same case waits, and then gets
        the same run.
        """
        with self._audit_ended:
            while case.id in self._being_audited:
                self._audit_ended.wait(_WAIT_S)
                watch.stop_if_gone()
            self._being_audited.add(case.id)
        try:
            yield
        finally:
            with self._audit_ended:
                self._being_audited.discard(case.id)
                self._audit_ended.notify_all()

    def _no_such_run(self, run_id: str) -> MasisError:
        try:
            self.workbench.cases.summary(run_id)
        except UnknownRecord:
            near, hint = near_runs(self.workbench, run_id), "Use list_queue to find ids of runs."
            return InputError(f"there is no run {quote_id(run_id)}{near}", hint=hint, field="runId")
        newest = next(iter(self.workbench.runs.for_case(run_id)), None)
        has = (
            f"Its newest run is {quote_id(newest.id)}."
            if newest
            else "It has no run yet. Use run_audit to create one."
        )
        return InputError(f"{quote_id(run_id)} is a case, not a run", hint=has, field="runId")

    def _unmatched_filters(self, filters: Mapping[str, Any]) -> Iterator[str]:
        """Yield a note for each filter value that doesn't occur in any case, listing values that
        do.
        """
        for name in ("states", "flags", "reasons", "fields", "datasets", "models", "reviewers"):
            known = self.workbench.cases.values(CaseFilter(), name)
            for value in filters[name]:
                if not known.get(value):
                    counted = ", ".join(
                        f"{quote_id(existing)} ({count:,})"
                        for existing, count in list(known.items())[:20]
                        if count
                    )
                    yield (
                        f"{name}: no case has {quote_id(value)}. Values in use: "
                        f"{counted or 'none'}."
                    )

    def _case(self, case_id: str) -> Case:
        try:
            return self.workbench.store.cases.get(case_id)
        except UnknownRecord as error:
            raise InputError(
                f"there is no case {quote_id(case_id)}{near_cases(self.workbench, case_id)}",
                hint=(
                    "Use list_queue or search_evidence to find ids of cases. run_audit also accepts"
                    " a full case."
                ),
                field="caseId",
            ) from error


def _reporter(settings: Settings, case: Case, watch: CallWatch) -> Callable[[Event], None]:
    """Return a handler that turns the events of an audit into progress that never decreases."""
    total = float(
        settings.max_iterations * STEPS + (0 if case.answer and case.answer.strip() else 1)
    )
    done = 0.0

    def on_event(event: Event) -> None:
        nonlocal done
        where = f"iteration {event.iteration}, {event.step}" if event.iteration else str(event.step)
        match event.kind:
            case "run_started":
                resumed = event.data.get("resumed_after", 0)
                done, message = (
                    float(resumed * STEPS),
                    f"run {event.run_id} {'is resumed' if resumed else 'begins'}",
                )
            case "step_started":
                done, message = done + 0.5, where
            case "step_finished":
                done, message = done + 0.5, f"{where} done"
            case "run_finished":
                done, message = total, "done"
            case _:
                return
        done = min(done, total)
        watch.report(CallProgress(done, total, message))

    return on_event


def _restore_given_ids(result: CritiqueResult, given: dict[str, str]) -> CritiqueResult:
    """Replace the ids of sources in the result by those that the caller used."""

    def rename_source(issue: CritiqueIssue) -> CritiqueIssue:
        return issue.model_copy(
            update={"related_source": given.get(issue.related_source or "", issue.related_source)}
        )

    issues, remaining = (
        tuple(map(rename_source, issues)) for issues in (result.issues, result.remaining_issues)
    )
    used = tuple(given.get(source, source) for source in result.metadata.sources_used)
    metadata = result.metadata.model_copy(update={"sources_used": used})
    return result.model_copy(
        update={"issues": issues, "remaining_issues": remaining, "metadata": metadata}
    )


# Pagination cursors.


def cursor_of(page: int, query: Any) -> str:
    """Return the cursor of a page. It contains a hash of the query, so it can't be used with
    another.
    """
    canonical = json.dumps(query, sort_keys=True, default=str)
    return f"{page}-{hashlib.sha256(canonical.encode()).hexdigest()[:12]}"


def page_of(received: str | None, query: Any) -> int:
    """Return the page of a cursor, or 1 without one. Raises InputError if it belongs to another
    query.
    """
    if received is None:
        return 1
    page = received.partition("-")[0]
    if not page.isdecimal() or len(page) > _PAGE_DIGITS or received != cursor_of(int(page), query):
        raise InputError(
            "isn't a cursor of this list with these filters",
            hint=(
                "Pass next_cursor unchanged with the same filters, or leave it out to start at the"
                " first page."
            ),
            field="cursor",
        )
    return int(page)

"""The evidence critic in a graph, either a whole screening as one node, or one round after your own
retriever.

    # writes evidence and decision
    graph.add_node("evidence", evidence_graph([retriever], settings))
"""

from __future__ import annotations

import operator
from collections.abc import Iterable, Mapping, Sequence
from typing import Annotated, Any, TypeAlias, TypedDict

from langchain_core.runnables import Runnable

from masis.audit.control.run_control import RunControl
from masis.errors import InputError, RetrievalFailed
from masis.integrations.langgraph.state import (
    EvidenceList,
    Json,
    Metrics,
    Trace,
    abstracts_by_id,
    node,
    state_entry,
    text_of,
)
from masis.observers.observation import ScreeningStart, run_to_completion
from masis.schema.base import utc_now
from masis.schema.screening import Abstract, Grade, Ruling
from masis.screening.critic import evaluate, grader_for
from masis.screening.handover import evidence_from_kept
from masis.screening.rounds import queries, ruling
from masis.screening.rounds.round_loop import new_screening_id, screen
from masis.screening.sources.records import year_of
from masis.screening.sources.retrievers import Retriever
from masis.settings import Settings

# Where abstracts come from in a graph: our retrievers as they are, LangChain's and functions by
# their answers.

Source: TypeAlias = Any
"""Something with ``search`` (ours) or ``invoke`` (LangChain's), or a function of a query that gives
documents.
"""


class _QueryRetriever:
    """A source of others as a retriever of ours: takes what is given for a query as its whole list,
    reads on in it.

    Raises InputError for what can't be asked.
    """

    def __init__(self, source: Source) -> None:
        self._ask: Any = getattr(source, "invoke", source)
        if not callable(self._ask):
            raise InputError(
                f"{type(source).__name__} can't be asked",
                hint="Give a retriever with search or invoke, or a function of a query.",
                field="retrievers",
            )
        self.name = str(
            getattr(source, "name", None)
            or getattr(source, "__name__", None)
            or type(source).__name__
        )

    def search(self, query: str, limit: int, offset: int = 0) -> tuple[Abstract, ...]:
        """Return at most ``limit`` of what is given, from ``offset`` on. Raises RetrievalFailed
        where that fails.
        """
        try:
            found = abstracts_by_id(self._ask(query))
        except Exception as error:  # sources of others fail in ways of their own
            raise RetrievalFailed(f"it can't be asked, or read: {type(error).__name__}.") from error
        return tuple(map(Abstract.model_validate, list(found.values())[offset : offset + limit]))


def with_abstracts(before: Json | None, new: Any) -> Json:
    """Return abstracts by id, with those of an update: a mapping by id, or a list of records or
    documents.
    """
    return {**(before or {}), **abstracts_by_id(new or {})}


class EvidenceState(TypedDict, total=False):
    """What the evidence critic reads and writes.

    ``abstracts`` and ``grades`` hold all that was found, by id; ``retrieved`` the ids that the last
    search brought, ``missing`` what is still lacking. ``decision`` is ``sufficient`` or
    ``retrieve_more``, ``rounds`` how many rounds were judged, ``evidence`` what is kept.
    """

    user_query: str
    decision: str
    evidence: EvidenceList
    metrics: Metrics
    trace: Trace
    abstracts: Annotated[Json, with_abstracts]
    retrieved: list[str]
    grades: Annotated[Json, operator.or_]
    missing: list[str]
    rounds: int
    kept: list[str]
    discarded: list[str]


def evidence_critic_node(settings: Settings | None = None) -> Runnable[Any, Any]:
    """Return a node that grades what was retrieved and decides: sufficient, or retrieve more.

    It reads ``abstracts``, and ``retrieved`` (where that is missing, all of them vote), grades what
    has no grade yet, and writes ``grades``, ``decision``, ``kept``, ``discarded``, ``evidence``,
    ``missing``, ``rounds``, ``metrics`` and ``trace``. What can't be graded is unscored and asks
    for more. Raises SettingsError and MissingExtra here, not in the graph, for a grader that can't
    be asked.
    """
    settings = settings or Settings()
    grader_for(settings, RunControl())  # says now what is wrong with it
    thresholds = ruling.thresholds_of(settings)

    def decide(state: Any, thread: str | None, control: RunControl) -> Json:
        question, number = text_of(state, "user_query"), int(state_entry(state, "rounds", 0))
        found = abstracts_by_id(state_entry(state, "abstracts", {}))
        abstracts = {key: Abstract.model_validate(each) for key, each in found.items()}
        graded = {
            key: Grade.model_validate(each)
            for key, each in state_entry(state, "grades", {}).items()
        }
        to_grade = [
            abstracts[each]
            for each in state_entry(state, "retrieved", list(abstracts))
            if each in abstracts
        ]
        grades, decided = evaluate(
            question,
            to_grade,
            number,
            grader=grader_for(settings, control),
            thresholds=thresholds,
            previous=graded,
        )
        graded |= {grade.abstract_id: grade for grade in grades}
        missing: dict[str, None] = {}
        if decided.decision == "retrieve_more":
            seen = [
                queries.GradedAbstract(each, graded[key])
                for key, each in abstracts.items()
                if key in graded
            ]
            gaps = queries.find_gaps(question, tuple(seen), year_of(utc_now()))
            missing = dict.fromkeys(lack.what for lack in gaps)
        advised = {
            name: [each.abstract_id for each in graded.values() if each.recommendation == advice]
            for name, advice in (("kept", "keep"), ("discarded", "discard"))
        }
        return {
            **advised,
            "grades": {grade.abstract_id: grade.model_dump(mode="json") for grade in grades},
            "decision": decided.decision,
            "evidence": _evidence_records(graded.values(), abstracts, question),
            "missing": list(missing),
            "rounds": number + 1,
            "metrics": {"screening": {"round": number, "ruling": decided.model_dump(mode="json")}},
            "trace": [_trace_entry(number, decided)],
        }

    return node("evidence_critic", decide, settings)


def evidence_graph(
    retrievers: Sequence[Source], settings: Settings | None = None
) -> Runnable[Any, Any]:
    """Return a node that retrieves until the evidence suffices, or the limit of rounds is reached:
    a screening.

    ``retrievers`` are ours, LangChain's, or functions of a query that give records or documents. It
    reads ``user_query`` and writes ``evidence``, ``decision``, ``metrics`` and ``trace``.
    ``decision`` is then still ``retrieve_more`` where the limit was reached, or nothing else was to
    be found. A source that fails is reported in ``metrics["warnings"]``.
    """
    settings = settings or Settings()
    grader_for(settings, RunControl())
    sources: list[Retriever] = [
        each if hasattr(each, "search") else _QueryRetriever(each) for each in retrievers
    ]

    def search(state: Any, thread: str | None, control: RunControl) -> Json:
        abstracts = dict[str, Abstract]()
        question = text_of(state, "user_query")
        work = screen(
            question,
            sources,
            grader_for(settings, control),
            settings,
            screening_id=new_screening_id(),
            cancelled=lambda: control.cancellation.is_cancelled,
            keep=lambda finished: abstracts.update({each.id: each for each in finished.abstracts}),
        )
        found = run_to_completion(work, None, ScreeningStart())
        warnings = [*found.warnings, *(each for one in found.rounds for each in one.warnings)]
        metrics: Json = {"warnings": list(dict.fromkeys(warnings))} if warnings else {}
        if found.rounds:
            last = found.rounds[-1]
            metrics["screening"] = {
                "round": last.number,
                "ruling": last.ruling.model_dump(mode="json"),
            }
        return {
            "decision": found.decision,
            "evidence": _evidence_records(found.grades, abstracts, question),
            "metrics": metrics,
            "trace": [_trace_entry(each.number, each.ruling) for each in found.rounds],
        }

    return node("evidence_critic", search, settings)


def _evidence_records(
    grades: Iterable[Grade], abstracts: Mapping[str, Abstract], question: str
) -> list[Json]:
    return [
        each.model_dump(mode="json") for each in evidence_from_kept(grades, abstracts, question)
    ]


def _trace_entry(number: int, decided: Ruling) -> Json:
    return {
        "node": "evidence_critic",
        "round": number,
        "decision": decided.decision,
        "consensus": decided.consensus,
        "average_quality": decided.average,
        "required_average": decided.required_average,
        **{
            name: getattr(decided.tally, name)
            for name in ("keep", "discard", "needs_more", "not_relevant")
        },
    }

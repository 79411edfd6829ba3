"""The evidence critic in a graph: a complete screening as one node, or one round after your own
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

Source: TypeAlias = Any
"""A retriever with ``search`` (ours) or ``invoke`` (LangChain's), or a function from a query to
documents.
"""


class _QueryRetriever:
    """Adapts a source without ``search``. It queries the source for every page, and cuts the page
    from the whole list.

    Raises InputError if the source isn't callable.
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
        """Return at most ``limit`` abstracts, starting at ``offset``.

        Raises RetrievalFailed if the source fails or its results can't be read.
        """
        try:
            abstracts = list(abstracts_by_id(self._ask(query)).values())
        except Exception as error:  # sources raise exceptions of any kind
            raise RetrievalFailed(f"it can't be asked, or read: {type(error).__name__}.") from error
        return tuple(map(Abstract.model_validate, abstracts[offset : offset + limit]))


def with_abstracts(before: Json | None, new: Any) -> Json:
    """Add an update to the abstracts: a mapping by id, or a list of records or documents."""
    return {**(before or {}), **abstracts_by_id(new or {})}


class EvidenceState(TypedDict, total=False):
    """The keys that the evidence critic reads and writes.

    ``abstracts`` and ``grades`` contain all results by id, ``retrieved`` the ids of the last
    search, and ``missing`` the gaps in the evidence. ``decision`` is ``sufficient`` or
    ``retrieve_more``, ``rounds`` counts the judged rounds, and ``evidence`` is the kept abstracts.
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
    """Return a node that grades the retrieved abstracts and decides whether they're sufficient.

    It reads ``abstracts`` and ``retrieved`` (if that is missing, all abstracts vote), grades those
    without a grade, and writes ``grades``, ``decision``, ``kept``, ``discarded``, ``evidence``,
    ``missing``, ``rounds``, ``metrics`` and ``trace``. An abstract that can't be graded is unscored
    and counts for retrieving more. Raises SettingsError or MissingExtra immediately, not in the
    graph, if the grader can't be called.
    """
    settings = settings or Settings()
    grader_for(settings, RunControl())  # raises the grader's errors before the graph runs
    thresholds = ruling.thresholds_of(settings)

    def decide(state: Any, thread: str | None, control: RunControl) -> Json:
        question, number = text_of(state, "user_query"), int(state_entry(state, "rounds", 0))
        abstracts = {
            key: Abstract.model_validate(fields)
            for key, fields in abstracts_by_id(state_entry(state, "abstracts", {})).items()
        }
        graded = {
            key: Grade.model_validate(fields)
            for key, fields in state_entry(state, "grades", {}).items()
        }
        to_grade = [
            abstracts[key]
            for key in state_entry(state, "retrieved", list(abstracts))
            if key in abstracts
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
            documents_so_far = [
                queries.GradedAbstract(abstract, graded[key])
                for key, abstract in abstracts.items()
                if key in graded
            ]
            gaps = queries.find_gaps(question, tuple(documents_so_far), year_of(utc_now()))
            missing = dict.fromkeys(gap.what for gap in gaps)
        advised = {
            name: [grade.abstract_id for grade in graded.values() if grade.recommendation == advice]
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
    """Return a node that screens: it retrieves until the evidence is sufficient or the limit of
    rounds is reached.

    It reads ``user_query`` and writes ``evidence``, ``decision``, ``metrics`` and ``trace``. If the
    limit is reached or nothing else is found, ``decision`` remains ``retrieve_more``. A source that
    fails is reported in ``metrics["warnings"]``.

    Args:
        retrievers: Our or LangChain's retrievers, or functions from a query to documents.
        settings: The settings of the screening.

    """
    settings = settings or Settings()
    grader_for(settings, RunControl())
    sources: list[Retriever] = [
        source if hasattr(source, "search") else _QueryRetriever(source) for source in retrievers
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
            keep=lambda finished: abstracts.update({item.id: item for item in finished.abstracts}),
        )
        screening = run_to_completion(work, None, ScreeningStart())
        warnings = [*screening.warnings]
        for finished in screening.rounds:
            warnings += finished.warnings
        metrics: Json = {"warnings": list(dict.fromkeys(warnings))} if warnings else {}
        if screening.rounds:
            last = screening.rounds[-1]
            metrics["screening"] = {
                "round": last.number,
                "ruling": last.ruling.model_dump(mode="json"),
            }
        return {
            "decision": screening.decision,
            "evidence": _evidence_records(screening.grades, abstracts, question),
            "metrics": metrics,
            "trace": [
                _trace_entry(finished.number, finished.ruling) for finished in screening.rounds
            ],
        }

    return node("evidence_critic", search, settings)


def _evidence_records(
    grades: Iterable[Grade], abstracts: Mapping[str, Abstract], question: str
) -> list[Json]:
    return [
        chunk.model_dump(mode="json") for chunk in evidence_from_kept(grades, abstracts, question)
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
            for name in ("keep", "discard", "needs_more", "not_relevant", "excluded", "limited")
        },
    }

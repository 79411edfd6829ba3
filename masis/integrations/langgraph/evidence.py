"""The evidence critic in a graph: retrieve, grade, decide, and retrieve again with what was missing.

    graph.add_node("evidence", evidence_graph([retriever], settings))       # writes evidence and decision

or the two nodes apart, round a retriever of your own (``masis.screening``; rules AESOP-*).
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Annotated, Any, TypeAlias, TypedDict

from langchain_core.runnables import Runnable, RunnableLambda
from langgraph.graph import END, START, StateGraph

from masis.audit.concurrency import start_in_thread
from masis.audit.run_control import RunBudget, RunControl
from masis.errors import InputError, RetrievalFailed
from masis.integrations.langgraph.reading import abstracts_by_id, state_entry, text_of
from masis.integrations.langgraph.state import EvidenceList, Metrics, Trace, appended
from masis.schema.base import utc_now
from masis.schema.screening import Abstract, Grade, Query
from masis.screening.critic import evaluate, grader_for
from masis.screening.grading.grader import Grader
from masis.screening.handover import evidence_from_kept
from masis.screening.rounds import queries, ruling
from masis.screening.rounds.searching import search
from masis.screening.sources.pool import Pool
from masis.screening.sources.records import year_of
from masis.screening.sources.retrievers import Retriever
from masis.settings import Settings

# Where abstracts come from in a graph: our retrievers as they are, LangChain's and functions by their answers.

Source: TypeAlias = Any
"""Something with ``search`` (ours) or ``invoke`` (LangChain's), or a function of a query that gives documents."""


def retriever_of(source: Source) -> Retriever:
    """The source as a retriever of ours. Raises InputError for what can't be asked."""
    if hasattr(source, "search"):
        ours: Retriever = source
        return ours
    ask = getattr(source, "invoke", source)
    if not callable(ask):
        raise InputError(
            f"{type(source).__name__} can't be asked",
            cure="Give a retriever with search or invoke, or a function of a query.",
            field="retrievers",
        )
    name = getattr(source, "name", None) or getattr(source, "__name__", None) or type(source).__name__
    return _Asked(ask, str(name))


class _Asked:
    """Takes what is given for a query as its whole list, and reads on in it."""

    def __init__(self, ask: Callable[[str], Iterable[Any]], name: str) -> None:
        self._ask, self.name = ask, name

    def search(self, query: str, limit: int, offset: int = 0) -> tuple[Abstract, ...]:
        """At most ``limit`` of what is given, from ``offset`` on. Raises RetrievalFailed where that fails."""
        try:
            found = abstracts_by_id(self._ask(query))
        except Exception as error:  # sources of others fail in ways of their own
            raise RetrievalFailed(f"it can't be asked, or read: {type(error).__name__}.") from error
        return tuple(map(Abstract.model_validate, list(found.values())[offset : offset + limit]))


Json = dict[str, Any]


def with_abstracts(before: Json | None, new: Any) -> Json:
    """Abstracts by id, with those of an update: a mapping by id, or a list of records or documents."""
    return {**(before or {}), **abstracts_by_id(new or {})}


def by_id(before: Json | None, new: Json | None) -> Json:
    """Records by id, the newer in place of the older."""
    return {**(before or {}), **(new or {})}


class EvidenceState(TypedDict, total=False):
    """What retriever and evidence critic read and write.

    ``abstracts`` and ``grades`` hold all that was found, by id; ``retrieved`` the ids that the last searches brought,
    ``listed`` those that the last search for the question itself did, ``queries`` what has been asked, ``missing`` what
    is still lacking. ``decision`` is ``sufficient`` or ``retrieve_more``, ``rounds`` how many rounds were judged,
    ``evidence`` what is kept.
    """

    user_query: str
    abstracts: Annotated[Json, with_abstracts]
    retrieved: list[str]
    listed: list[str]
    grades: Annotated[Json, by_id]
    queries: Annotated[list[Json], appended]
    missing: list[str]
    decision: str
    rounds: int
    kept: list[str]
    discarded: list[str]
    evidence: EvidenceList
    metrics: Metrics
    trace: Trace


class Asked(TypedDict):
    """What the graph of the evidence critic takes from a graph around it."""

    user_query: str


class Answered(TypedDict, total=False):
    """What it gives back: only what is new, so that a reducer around it adds nothing twice."""

    decision: str
    evidence: EvidenceList
    metrics: Metrics
    trace: Trace


def retriever_node(retrievers: Sequence[Source], settings: Settings | None = None) -> Runnable[Any, Any]:
    """A node that searches: first for the question, then for what the last round was missing.

    ``retrievers`` are ours, LangChain's, or functions of a query that give records or documents. The node writes
    ``abstracts``, ``retrieved`` and ``queries``. A source that fails is reported in ``metrics["warnings"]``;
    where every one does, nothing was retrieved.
    """
    settings = settings or Settings()
    sources = [retriever_of(each) for each in retrievers]

    def retrieve(state: Any, control: RunControl) -> Json:
        question = text_of(state, "user_query")
        abstracts = _abstracts(state)
        tried = [Query.model_validate(each) for each in state_entry(state, "queries", ())]
        searched = _queries(question, state, abstracts, tried, settings.screening_retrieve)
        pool = Pool()
        for abstract in abstracts.values():
            pool.add(abstract)
        found = search(searched, sources, settings.screening_retrieve, pool)
        update: Json = {
            "abstracts": {
                each.id: each.model_dump(mode="json") for each in found.abstracts if each.id not in abstracts
            },
            "retrieved": [each.id for each in found.abstracts],
            "queries": [each.model_dump(mode="json") for each in searched],
        }
        if any(each.text == queries.searched_text(question) for each in searched):
            update["listed"] = update["retrieved"]
        return update | ({"metrics": {"warnings": list(found.warnings)}} if found.warnings else {})

    return _node("retriever", retrieve, settings)


def evidence_critic_node(
    settings: Settings | None = None, graders: Callable[[Settings, RunControl], Grader] = grader_for
) -> Runnable[Any, Any]:
    """A node that grades what was retrieved and decides: sufficient, or retrieve more.

    It reads ``abstracts``, and ``retrieved`` (where that is missing, all of them vote), grades what has no grade yet,
    and writes ``grades``, ``decision``, ``kept``, ``discarded``, ``evidence``, ``missing``, ``rounds``, ``metrics`` and
    ``trace``. What can't be graded is unscored and asks for more. Raises SettingsError and MissingExtra here, not in
    the graph, for a grader that can't be asked.
    """
    settings = settings or Settings()
    graders(settings, RunControl())  # says now what is wrong with it
    thresholds = ruling.thresholds_of(settings)

    def decide(state: Any, control: RunControl) -> Json:
        began = time.perf_counter()
        question, number = text_of(state, "user_query"), int(state_entry(state, "rounds", 0))
        abstracts = _abstracts(state)
        graded = {key: Grade.model_validate(each) for key, each in state_entry(state, "grades", {}).items()}
        to_grade = [abstracts[each] for each in state_entry(state, "retrieved", list(abstracts)) if each in abstracts]
        grades, decided = evaluate(
            question, to_grade, number, grader=graders(settings, control), thresholds=thresholds, previous=graded
        )
        graded |= {grade.abstract_id: grade for grade in grades}
        by_advice = {
            advice: [each.abstract_id for each in graded.values() if each.recommendation == advice]
            for advice in ("keep", "discard")
        }
        missing = []
        if decided.decision == "retrieve_more":
            everything = _seen(list(abstracts.values()), graded)
            missing = [lack.what for lack in queries.find_gaps(question, everything, year_of(utc_now()))]
        ms = round((time.perf_counter() - began) * 1000, 3)
        return {
            "grades": {grade.abstract_id: grade.model_dump(mode="json") for grade in grades},
            "decision": decided.decision,
            "kept": by_advice["keep"],
            "discarded": by_advice["discard"],
            "evidence": [
                each.model_dump(mode="json") for each in evidence_from_kept(graded.values(), abstracts, question)
            ],
            "missing": list(dict.fromkeys(missing)),
            "rounds": number + 1,
            "metrics": {
                "screening": {"round": number, "ruling": decided.model_dump(mode="json")},
                "node_latency_ms": {"evidence_critic": ms},
            },
            "trace": [
                {
                    "node": "evidence_critic",
                    "round": number,
                    "decision": decided.decision,
                    "consensus": decided.consensus,
                    "average_quality": decided.average,
                    "required_average": decided.required_average,
                    "keep": decided.tally.keep,
                    "discard": decided.tally.discard,
                    "needs_more": decided.tally.needs_more,
                    "not_relevant": decided.tally.not_relevant,
                    "duration_ms": ms,
                }
            ],
        }

    return _node("evidence_critic", decide, settings)


def evidence_graph(
    retrievers: Sequence[Source],
    settings: Settings | None = None,
    graders: Callable[[Settings, RunControl], Grader] = grader_for,
) -> Any:
    """The two nodes as a compiled graph that retrieves until the evidence suffices, or the limit of rounds is reached.

    As a node of another graph it takes ``user_query`` and gives ``evidence``, ``decision``, ``metrics`` and ``trace``.
    ``decision`` is then still ``retrieve_more`` where the limit was reached, or nothing else was to be found.
    """
    settings = settings or Settings()
    graph = StateGraph(EvidenceState, input_schema=Asked, output_schema=Answered)
    graph.add_node("retriever", retriever_node(retrievers, settings))
    graph.add_node("evidence_critic", evidence_critic_node(settings, graders))
    graph.add_edge(START, "retriever")
    graph.add_edge("retriever", "evidence_critic")

    def onward(state: Any) -> Any:
        if state["decision"] == "sufficient" or state["rounds"] >= settings.screening_max_rounds:
            return END
        tried = [Query.model_validate(each) for each in state["queries"]]
        question = text_of(state, "user_query")
        more = _queries(question, state, _abstracts(state), tried, settings.screening_retrieve)
        return "retriever" if more else END  # no further query would help

    graph.add_conditional_edges("evidence_critic", onward, ["retriever", END])
    return graph.compile()


def _node(name: str, work: Callable[[Any, RunControl], Json], settings: Settings) -> Runnable[Any, Any]:
    """The work as a node for sync and async graphs; once its task is cancelled, no further call is made."""

    def control() -> RunControl:
        return RunControl(RunBudget(call_s=settings.call_deadline_s))

    async def unsync(state: Any) -> Json:
        under_way = control()
        try:
            return await asyncio.wrap_future(start_in_thread(lambda: work(state, under_way), name))
        finally:
            under_way.cancellation.cancel()

    return RunnableLambda(lambda state: work(state, control()), unsync, name=name)


def _queries(
    question: str, state: Any, abstracts: Mapping[str, Abstract], tried: Sequence[Query], limit: int
) -> tuple[Query, ...]:
    if not tried:
        return queries.first_queries(question)
    graded = {key: Grade.model_validate(each) for key, each in state_entry(state, "grades", {}).items()}
    listed = [graded[each] for each in state_entry(state, "listed", ()) if each in graded]
    goes_on = queries.list_goes_on(listed, limit)
    gaps = queries.find_gaps(question, _seen(list(abstracts.values()), graded), year_of(utc_now()))
    return queries.next_queries(question, gaps, tried, limit, goes_on=goes_on)


def _seen(abstracts: Sequence[Abstract], grades: Mapping[str, Grade]) -> tuple[queries.GradedAbstract, ...]:
    return tuple(queries.GradedAbstract(each, grades[each.id]) for each in abstracts if each.id in grades)


def _abstracts(state: Any) -> dict[str, Abstract]:
    found = abstracts_by_id(state_entry(state, "abstracts", {}))
    return {key: Abstract.model_validate(each) for key, each in found.items()}

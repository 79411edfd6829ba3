"""The evidence critic as a node, and as a graph that retrieves until the evidence suffices."""

from __future__ import annotations

import json
from typing import Any

import pytest
from langchain_core.documents import Document
from langchain_core.retrievers import BaseRetriever
from langgraph.checkpoint.memory import InMemorySaver

from masis.errors import InputError, SettingsError
from masis.integrations.langgraph import (
    critic_node,
    evidence_critic_node,
    evidence_graph,
    synthesizer_node,
)
from masis.observers.observation import run_to_completion
from masis.screening.demo import demo_abstracts, demo_folder
from masis.screening.grading.offline_grader import offline_grader
from masis.screening.rounds.round_loop import new_screening_id, screen
from masis.screening.sources.retrievers import InMemoryRetriever
from masis.settings import Settings
from tests.integrations.with_langgraph.graphs import chain, thread

QUESTIONS = json.loads((demo_folder() / "questions.json").read_text(encoding="utf-8"))

_strong = next(question for question in QUESTIONS if question["kind"] == "strong")
STRONG, SETTINGS = (
    {"user_query": _strong["question"]},
    Settings(screening_retrieve=_strong["retrieve"]),
)
"""A question for which the corpus has sufficient evidence."""


def corpus() -> InMemoryRetriever:
    return InMemoryRetriever(demo_abstracts())


@pytest.mark.spec("AESOP-DECISION", "AESOP-ROUNDS")
@pytest.mark.parametrize("question", QUESTIONS, ids=[question["id"] for question in QUESTIONS])
def test_the_graph_decides_like_a_screening_of_the_same_corpus(question: dict[str, Any]) -> None:
    settings = Settings(screening_retrieve=question["retrieve"])
    state = evidence_graph([corpus()], settings).invoke({"user_query": question["question"]})
    steps = screen(
        question["question"],
        [corpus()],
        offline_grader(),
        settings,
        screening_id=new_screening_id(),
    )
    expected = run_to_completion(steps)
    assert state["decision"] == expected.decision
    assert len(state["trace"]) == len(expected.rounds)
    assert {chunk["abstract_id"] for chunk in state["evidence"]} == set(expected.kept)
    rulings = [(entry["decision"], entry["average_quality"]) for entry in state["trace"]]
    assert rulings == [(past.ruling.decision, past.ruling.average) for past in expected.rounds]


@pytest.mark.spec("AESOP-ASYNC", "AESOP-DECISION")
def test_the_node_returns_kept_and_discarded_abstracts_and_gaps() -> None:
    weak = next(question for question in QUESTIONS if question["kind"] == "weak")
    abstracts = corpus().search(weak["question"], 10)
    state = {
        "user_query": weak["question"],
        "abstracts": {abstract.id: abstract.model_dump(mode="json") for abstract in abstracts},
    }
    update = evidence_critic_node().invoke(state)
    assert update["decision"] == "retrieve_more"
    assert set(update["kept"]) | set(update["discarded"]) <= set(state["abstracts"])
    assert update["discarded"]
    assert update["missing"]
    assert update["rounds"] == 1
    (entry,) = update["trace"]
    counts = ("keep", "discard", "needs_more", "not_relevant", "excluded", "limited")
    assert sum(entry[name] for name in counts) == len(abstracts)
    assert json.loads(json.dumps(update, allow_nan=False)) == update


def test_as_a_subgraph_it_feeds_other_nodes_without_duplicates() -> None:
    nodes = {
        "before": lambda state: {
            "trace": [{"node": "before"}],
            "metrics": {"confidence_history": [0.5]},
        },
        "screening": evidence_graph([corpus()], SETTINGS),
        "synthesizer": synthesizer_node(),
        "critic": critic_node(),
    }
    graph = chain(nodes).compile(checkpointer=InMemorySaver())
    state = graph.invoke(STRONG | {"retry_count": 0}, thread())
    assert [entry["node"] for entry in state["trace"]] == [
        "before",
        "evidence_critic",
        "synthesizer",
        "critic",
    ]
    assert len(state["metrics"]["confidence_history"]) == 2
    assert state["metrics"]["last_citation_audit"]["invalid_citations"] == []
    assert state["confidence"] > 0.5
    assert {"screening", "last_citation_audit"} <= set(state["metrics"])


class LangChainDemoRetriever(BaseRetriever):
    """A LangChain retriever over the demo abstracts."""

    def _get_relevant_documents(self, query: str, *, run_manager: Any) -> list[Document]:
        return [
            Document(
                page_content=abstract.text,
                metadata={"id": abstract.id, "title": abstract.title},
            )
            for abstract in corpus().search(query, 60)
        ]


def test_langchain_retrievers_and_functions_can_be_sources() -> None:
    search_function: Any = lambda query: corpus().search(query, 60)  # noqa: E731
    expected, *states = (
        evidence_graph([source], SETTINGS).invoke(STRONG)
        for source in (corpus(), LangChainDemoRetriever(), search_function)
    )
    assert expected["decision"] == "sufficient"
    for state in states:
        assert state["decision"] == "sufficient"
        kept = [
            [chunk["abstract_id"] for chunk in compared["evidence"]]
            for compared in (expected, state)
        ]
        assert kept[0] == kept[1]


def test_a_failing_source_doesnt_end_the_round() -> None:
    def unreachable(query: str) -> list[Document]:
        raise ConnectionError("secret-host:5432 refused")

    state = evidence_graph([unreachable, corpus()], SETTINGS).invoke(STRONG)
    assert state["decision"] == "sufficient"
    assert state["metrics"]["warnings"] == [
        "unreachable: it can't be asked, or read: ConnectionError."
    ]


def test_unusable_sources_and_graders_are_reported_at_construction() -> None:
    with pytest.raises(SettingsError, match="openai"):
        evidence_critic_node(Settings(screening_graders="openai:gpt-4o"))
    with pytest.raises(InputError, match="retrievers: int can't be asked"):
        evidence_graph([7])

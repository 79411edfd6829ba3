"""The state: what nodes write joins without loss, evidence of any make is read, nothing in it needs
more than JSON.
"""

from __future__ import annotations

import datetime
import json
from types import SimpleNamespace
from typing import Any

import pytest
from langchain_core.documents import Document
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer

from masis import Evidence
from masis.errors import InputError
from masis.integrations.langgraph.state import (
    abstracts_by_id,
    evidence_of,
    merged_metrics,
    plain_evidence,
    replaced_evidence,
)
from tests.integrations.with_langgraph.graphs import EVIDENCE, audited, state_with, thread

SAFE = JsonPlusSerializer(allowed_msgpack_modules=None)
"""Reads back plain values only: what a checkpointer in strict mode does."""


def test_metrics_of_several_nodes_are_combined() -> None:
    metrics = merged_metrics({}, {"node_latency_ms": {"critic": 5.0}, "theirs": 1})
    metrics = merged_metrics(
        metrics, {"node_latency_ms": {"evaluator": 7.0}, "evaluation": {"overall_score": 0.5}}
    )
    assert metrics == {
        "node_latency_ms": {"critic": 5.0, "evaluator": 7.0},
        "theirs": 1,
        "evaluation": {"overall_score": 0.5},
    }


def test_reducers_combine_violations_confidences_and_audits() -> None:
    first = {
        "citation_violations": 2,
        "confidence_history": [0.3],
        "last_citation_audit": {"a": 1, "b": 2},
    }
    second = {
        "citation_violations": 1,
        "confidence_history": [None],
        "last_citation_audit": {"a": 3},
    }
    assert merged_metrics(merged_metrics(None, first), second) == {
        "citation_violations": 3,
        "confidence_history": [0.3, None],
        "last_citation_audit": {"a": 3},
    }


def test_reducers_dont_mutate_their_input() -> None:
    before = {"confidence_history": [0.1], "node_latency_ms": {"critic": 1.0}}
    copy = json.loads(json.dumps(before))
    merged_metrics(before, {"confidence_history": [0.2], "node_latency_ms": {"critic": 2.0}})
    assert before == copy


@pytest.mark.parametrize(
    "chunk",
    [
        Evidence(id="c1", text="Steel.", source="Atlas"),
        {"id": "c1", "text": "Steel.", "source": "Atlas"},
        {"chunk_id": "c1", "content": "Steel.", "url": "Atlas"},
        Document(id="c1", page_content="Steel.", metadata={"source": "Atlas"}),
        Document(page_content="Steel.", metadata={"chunk_id": "c1", "source": "Atlas"}),
        SimpleNamespace(chunk_id="c1", text="Steel.", source="Atlas"),
    ],
    ids=["ours", "mapping", "chunk_id and content", "document", "document with metadata", "object"],
)
def test_evidence_of_any_type_is_read(chunk: Any) -> None:
    (read,) = evidence_of({"evidence": [chunk]})
    assert (read.id, read.text, read.source) == ("c1", "Steel.", "Atlas")


def test_evidence_without_ids_gets_positional_ids() -> None:
    found = plain_evidence(
        [Document(page_content="A", metadata={"page": 3}), "B", {"text": "C", "score": 0.5}]
    )
    assert [chunk["id"] for chunk in found] == ["chunk_1", "chunk_2", "chunk_3"]
    assert found[0]["metadata"] == {"page": 3}
    assert found[2]["score"] == 0.5


@pytest.mark.parametrize(
    "one", ["The bridge is long.", {"id": "c1", "text": "The bridge is long."}]
)
def test_a_string_instead_of_a_list_is_rejected(one: Any) -> None:
    with pytest.raises(InputError, match="evidence: is a single item, not a list of chunks"):
        plain_evidence(one)
    if isinstance(one, str):
        with pytest.raises(InputError, match="abstracts: is one text"):
            abstracts_by_id(one)


def test_duplicate_chunks_are_merged_and_conflicting_ids_rejected() -> None:
    chunk = {"id": "c1", "text": "Steel."}
    assert plain_evidence([chunk, chunk]) == [chunk]
    with pytest.raises(InputError, match=r"evidence\[1\]: the id 'c1' names two different texts"):
        plain_evidence([chunk, {"id": "c1", "text": "Tin."}])


@pytest.mark.parametrize("chunk", [{"id": "c1"}, 7, None, SimpleNamespace(name="x"), {"text": 7}])
def test_evidence_without_text_is_rejected_with_its_position(chunk: Any) -> None:
    with pytest.raises(InputError, match=r"evidence\[0\]: (has no text|isn't a chunk of evidence)"):
        plain_evidence([chunk])


def test_unserializable_metadata_is_converted_or_dropped() -> None:
    day = datetime.date(2024, 5, 1)
    chunk, document = plain_evidence(
        [{"id": "1", "text": "A", "day": day}, Document("B", metadata={"day": day})]
    )
    assert (chunk["day"], document) == ("2024-05-01", {"id": "chunk_2", "text": "B"})


def test_later_evidence_replaces_earlier_evidence() -> None:
    assert replaced_evidence([{"id": "a", "text": "A"}], [{"chunk_id": "b", "text": "B"}]) == [
        {"id": "b", "text": "B"}
    ]


def test_abstracts_of_any_type_are_read() -> None:
    found = abstracts_by_id(
        [
            {"pmid": "123", "title": "A trial", "abstract": "We gave aspirin."},
            Document(page_content="We gave nothing.", metadata={"title": "Another", "id": "x"}),
        ]
    )
    assert [(key, document["title"], document["text"]) for key, document in found.items()] == [
        ("pmid-123", "A trial", "We gave aspirin."),
        ("x", "Another", "We gave nothing."),
    ]


@pytest.mark.spec("MASIS-CRITIC-STATE", "MASIS-EVAL-STATE")
def test_a_strict_checkpointer_restores_the_state() -> None:
    documents = [Document(id=chunk["id"], page_content=chunk["text"]) for chunk in EVIDENCE]
    graph = audited(checkpointer=InMemorySaver(serde=SAFE))
    state = graph.invoke(state_with(evidence=documents), thread())
    kept = graph.get_state(thread()).values
    assert kept == state
    assert json.loads(json.dumps(kept, allow_nan=False)) == kept
    assert set(kept) == {
        *("user_query", "draft_answer", "evidence", "retry_count"),
        *("critique", "confidence", "final_answer", "metrics", "trace"),
    }

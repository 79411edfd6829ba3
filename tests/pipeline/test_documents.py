"""Documents and retrievers of any origin, told by what they can do."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import pytest

from masis import Evidence, query_with_critique, query_with_critique_async
from masis.errors import InputError, RetrievalFailed
from masis.pipeline import documents
from masis.schema.drafts import PipelineOptions, SourceDocument

ONLY_SEARCH = PipelineOptions(generate_answer=False)


@dataclass
class LangChainLike:
    page_content: str
    metadata: dict[str, Any] = field(default_factory=dict)
    id: str | None = None


@dataclass
class NodeLike:
    node_id: str
    text: str
    metadata: dict[str, Any] = field(default_factory=dict)

    def get_content(self) -> str:
        return self.text


@dataclass
class ScoredLike:
    node: NodeLike
    score: float | None = None


@pytest.mark.spec("DRAFT-CRITIQUE-PIPELINE-SOURCES")
@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (SourceDocument(id="a", content="x", type="doc", relevance_score=0.5), ("a", "x", None, 0.5, "doc")),
        (Evidence(id="a", text="x", source="p.md"), ("a", "x", "p.md", None, "")),
        ({"id": "a", "content": "x", "path": "p", "relevanceScore": 0.25}, ("a", "x", "p", 0.25, "")),
        ({"_id": 7, "text": "x", "metadata": {"url": "http://a", "type": "web"}}, ("7", "x", "http://a", None, "web")),
        ("x", ("chunk_1", "x", None, None, "")),
        (LangChainLike("x", {"source": "p", "score": 0.9}, "a"), ("a", "x", "p", 0.9, "")),
        (LangChainLike("x", {"chunk_id": "c9"}), ("c9", "x", None, None, "")),
        (LangChainLike("x"), ("chunk_1", "x", None, None, "")),
        ((LangChainLike("x", id="a"), 0.75), ("a", "x", None, 0.75, "")),
        (ScoredLike(NodeLike("n", "x", {"file_path": "p"}), 0.5), ("n", "x", "p", 0.5, "")),
        (NodeLike("n", "x"), ("n", "x", None, None, "")),
    ],
)  # fmt: skip
def test_a_document_keeps_its_id_text_path_and_score(given: Any, expected: tuple[Any, ...]) -> None:
    (found,) = documents([given])
    assert (found.id, found.content, found.path, found.relevance_score, found.type) == expected


@pytest.mark.parametrize("score", [math.nan, math.inf, "0.5", None, True, object()])
def test_a_score_that_is_no_finite_number_is_none(score: Any) -> None:
    (found,) = documents([{"id": "a", "content": "x", "score": score}])
    assert found.relevance_score is None


def test_a_score_of_another_library_is_read_as_a_number() -> None:
    import numpy as np

    assert documents([("x", np.float32(0.5))])[0].relevance_score == 0.5


def test_duplicates_keep_one_document_and_the_better_score() -> None:
    found = documents(
        [("a b", 0.1), {"id": "1", "text": "x", "score": 0.2}, {"id": "1", "text": "x", "score": 0.7}, "a b"]
    )
    assert [(each.id, each.content, each.relevance_score) for each in found] == [
        ("chunk_1", "a b", 0.1),
        ("1", "x", 0.7),
    ]


def test_the_same_id_over_another_text_gets_a_name_of_its_own() -> None:
    found = documents(
        [{"id": "1", "text": "x"}, {"id": "1", "text": "y"}, {"id": "1#2", "text": "z"}, {"id": "1", "text": "w"}]
    )
    assert [each.id for each in found] == ["1", "1#2", "1#2#2", "1#3"]
    assert [each.content for each in found] == ["x", "y", "z", "w"]


def test_the_same_text_under_two_ids_stays_two_sources() -> None:
    assert [each.id for each in documents([{"id": "a", "text": "x"}, {"id": "b", "text": "x"}])] == ["a", "b"]


@pytest.mark.parametrize(
    ("given", "why"),
    [
        (None, "is nothing, not a list of documents"),
        ("text", "is str, not a list"),
        (7, "is int, not a list"),
        ({"id": "a"}, "is dict, not a list"),
        ([{"id": "a"}], r"documents\[0\]: is a mapping without 'content' or 'text'"),
        (["x", 7], r"documents\[1\]: is a int"),
    ],
)
def test_what_is_no_document_is_named_with_what_would_be(given: Any, why: str) -> None:
    with pytest.raises(InputError, match=why):
        documents(given)


class Invoked:
    def invoke(self, query: str) -> list[Any]:
        return [LangChainLike(query, id="a")]


class Retrieved:
    def retrieve(self, query: str) -> list[Any]:
        return [ScoredLike(NodeLike("a", query))]


class Awaited:
    async def ainvoke(self, query: str) -> list[Any]:
        return [LangChainLike(query, id="a")]


def generated(query: str) -> Iterator[str]:
    yield query


async def awaited(query: str) -> list[Any]:
    return [{"id": "a", "text": query}]


@pytest.mark.spec("DRAFT-CRITIQUE-PIPELINE")
@pytest.mark.parametrize("retriever", [Invoked(), Retrieved(), lambda query: [query], generated])
def test_any_retriever_is_asked_by_what_it_can_do(retriever: Any) -> None:
    assert query_with_critique("How long?", retriever, ONLY_SEARCH).search_results[0].content == "How long?"


@pytest.mark.parametrize("retriever", [Invoked(), Retrieved(), Awaited(), awaited, lambda query: [query], generated])
def test_any_retriever_is_asked_from_a_coroutine(retriever: Any) -> None:
    found = asyncio.run(query_with_critique_async("How long?", retriever, ONLY_SEARCH))
    assert found.search_results[0].content == "How long?"


def test_the_error_for_what_is_no_retriever_says_what_would_be_one() -> None:
    with pytest.raises(InputError, match=r"'invoke' .LangChain. or 'retrieve' .LlamaIndex."):
        query_with_critique("How long?", object())
    with pytest.raises(InputError, match="query_with_critique_async"):
        query_with_critique("How long?", awaited)
    with pytest.raises(InputError, match="query: is empty"):
        query_with_critique("  ", awaited)


def failing(query: str) -> list[str]:
    raise ConnectionError("the index is not there")


def failing_late(query: str) -> Iterator[str]:
    yield "x"
    raise ConnectionError("the index is not there")


async def failing_async(query: str) -> list[str]:
    raise ConnectionError("the index is not there")


def test_a_retriever_that_fails_is_reported_for_what_it_is() -> None:
    for retriever in (failing, failing_late):
        with pytest.raises(RetrievalFailed, match="ConnectionError: the index is not there"):
            query_with_critique("How long?", retriever)
    for retriever in (failing, failing_late, failing_async):
        with pytest.raises(RetrievalFailed, match="ConnectionError: the index is not there"):
            asyncio.run(query_with_critique_async("How long?", retriever))

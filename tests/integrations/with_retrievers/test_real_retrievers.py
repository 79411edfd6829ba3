"""Retrievers and documents of the real libraries: ids, scores and paths kept, sync and async."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from langchain_core.callbacks import (
    AsyncCallbackManagerForRetrieverRun,
    CallbackManagerForRetrieverRun,
)
from langchain_core.documents import Document
from langchain_core.embeddings import DeterministicFakeEmbedding
from langchain_core.language_models import FakeListChatModel
from langchain_core.prompts import ChatPromptTemplate
from langchain_core.retrievers import BaseRetriever
from langchain_core.runnables import RunnableLambda
from langchain_core.vectorstores import InMemoryVectorStore
from llama_index.core import Document as LlamaDocument
from llama_index.core import VectorStoreIndex
from llama_index.core.base.base_retriever import BaseRetriever as LlamaRetriever
from llama_index.core.embeddings import MockEmbedding
from llama_index.core.schema import NodeWithScore, QueryBundle, TextNode

import masis
from masis.pipeline import documents
from masis.schema.drafts import PipelineOptions, PipelineResult

QUESTION = "How long is the bridge, and when was it opened?"
TEXTS = {
    "a": "The bridge is 120 metres long and made of steel.",
    "b": "The bridge was opened in 1931 by the mayor.",
}
DRAFT = "The bridge is 180 metres long [a]. The bridge was opened in 1931 by the mayor [b]."
ONLY_SEARCH = PipelineOptions(generate_answer=False)


class OfLangChain(BaseRetriever):
    """A retriever as its documentation shows one."""

    def _get_relevant_documents(
        self, query: str, *, run_manager: CallbackManagerForRetrieverRun
    ) -> list[Document]:
        return [
            Document(page_content=text, id=name, metadata={"source": f"{name}.md"})
            for name, text in TEXTS.items()
        ]


class AsyncOfLangChain(OfLangChain):
    async def _aget_relevant_documents(
        self, query: str, *, run_manager: AsyncCallbackManagerForRetrieverRun
    ) -> list[Document]:
        await asyncio.sleep(0)
        return [Document(page_content="asked async", id="z")]


class OfLlamaIndex(LlamaRetriever):
    """A retriever as its documentation shows one."""

    def _retrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        return [
            NodeWithScore(
                node=TextNode(id_=name, text=text, metadata={"file_path": f"{name}.md"}),
                score=score,
            )
            for (name, text), score in zip(TEXTS.items(), (0.9, 0.4), strict=True)
        ]


def both(retriever: Any, **kwargs: Any) -> list[PipelineResult]:
    """The same question, asked both ways."""
    return [
        masis.query_with_critique(QUESTION, retriever, **kwargs),
        asyncio.run(masis.query_with_critique_async(QUESTION, retriever, **kwargs)),
    ]


@pytest.mark.spec("DRAFT-CRITIQUE-PIPELINE", "REQ-CRITIC-026", "REQ-CRITIC-027")
@pytest.mark.parametrize(
    "retriever", [OfLangChain(), OfLlamaIndex()], ids=["langchain", "llama-index"]
)
def test_a_real_retriever_works_with_a_critique(retriever: Any) -> None:
    for found in both(retriever, draft=lambda query, context: DRAFT):
        assert [result.id for result in found.search_results] == ["a", "b"]
        assert [result.path for result in found.search_results] == ["a.md", "b.md"]
        assert found.critique
        assert not found.critique.is_valid
        assert found.critique.metadata.facts_verified == 1
        assert any(issue.related_source == "a" for issue in found.critique.issues)


def test_an_async_retriever_is_awaited() -> None:
    sync, awaited = both(AsyncOfLangChain(), options=ONLY_SEARCH)
    assert [result.id for result in sync.search_results] == ["a", "b"]
    assert [result.id for result in awaited.search_results] == ["z"]


def test_a_langchain_vector_store_works() -> None:
    store = InMemoryVectorStore(DeterministicFakeEmbedding(size=16))
    store.add_documents([Document(page_content=text, id=name) for name, text in TEXTS.items()])
    for found in both(store.as_retriever(search_kwargs={"k": 2}), options=ONLY_SEARCH):
        assert sorted(result.id for result in found.search_results) == ["a", "b"]
    for found in both(
        lambda query: store.similarity_search_with_score(query, k=2), options=ONLY_SEARCH
    ):
        assert sorted(result.id for result in found.search_results) == ["a", "b"]
        assert all(result.relevance_score is not None for result in found.search_results)


def test_a_llama_index_index_works() -> None:
    nodes = [LlamaDocument(text=text, id_=name) for name, text in TEXTS.items()]
    index = VectorStoreIndex.from_documents(nodes, embed_model=MockEmbedding(embed_dim=8))
    for found in both(index.as_retriever(similarity_top_k=2), options=ONLY_SEARCH):
        assert sorted(result.content for result in found.search_results) == sorted(TEXTS.values())
        assert all(result.relevance_score is not None for result in found.search_results)
        assert len({result.id for result in found.search_results}) == 2


def test_a_langchain_chain_can_write_the_draft() -> None:
    prompt = ChatPromptTemplate.from_messages(
        [("system", "Answer from: {context}"), ("human", "{question}")]
    )
    chain = prompt | FakeListChatModel(responses=[DRAFT])
    for found in both(
        OfLangChain(),
        draft=lambda query, context: chain.invoke({"question": query, "context": context}),
    ):
        assert found.draft == DRAFT
    runnable = RunnableLambda(lambda query: OfLangChain().invoke(query))
    for found in both(runnable, options=ONLY_SEARCH):
        assert len(found.search_results) == 2


def test_documents_of_both_libraries_work_as_evidence() -> None:
    of_langchain, of_llama = OfLangChain().invoke(QUESTION), OfLlamaIndex().retrieve(QUESTION)
    assert [document.id for document in documents([*of_langchain, *of_llama])] == ["a", "b"]
    for found in (of_langchain, of_llama):
        assert masis.assert_grounded(
            "The bridge was opened in 1931 by the mayor [b].", found
        ).grounded
        with pytest.raises(AssertionError):
            masis.assert_grounded(DRAFT, found)

    @masis.audited(on_flag="revise")
    def answer(question: str) -> tuple[str, Any]:
        return DRAFT, of_llama

    assert "120" in answer(QUESTION)[0]

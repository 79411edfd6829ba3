"""Documents and retrievers of any origin, told by what they can do."""

from __future__ import annotations

import asyncio
import importlib
import json
import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import pytest

from masis import Evidence, assert_grounded, query_with_critique, query_with_critique_async
from masis.audit.acceptance import claim_reasons
from masis.errors import InputError, RetrievalFailed
from masis.pipeline import Bounds, Grounding, NotGrounded, documents, grounding
from masis.schema.audit import Claim, ClaimCheck
from masis.schema.case import ClaimVerdict
from masis.schema.drafts import PipelineOptions, SourceDocument
from tests.audit.factories import conflict
from tests.scripted import ContentVerifier, roles

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
def test_a_documents_id_text_path_and_score_are_kept(given: Any, expected: tuple[Any, ...]) -> None:
    (found,) = documents([given])
    assert (found.id, found.content, found.path, found.relevance_score, found.type) == expected


@pytest.mark.parametrize("score", [math.nan, math.inf, "0.5", None, True, object()])
def test_a_non_finite_score_is_none(score: Any) -> None:
    (found,) = documents([{"id": "a", "content": "x", "score": score}])
    assert found.relevance_score is None


def test_a_score_of_another_librarys_type_is_converted() -> None:
    import numpy as np

    assert documents([("x", np.float32(0.5))])[0].relevance_score == 0.5


def test_duplicates_are_merged_with_the_better_score() -> None:
    found = documents(
        [
            ("a b", 0.1),
            {"id": "1", "text": "x", "score": 0.2},
            {"id": "1", "text": "x", "score": 0.7},
            "a b",
        ]
    )
    assert [(document.id, document.content, document.relevance_score) for document in found] == [
        ("chunk_1", "a b", 0.1),
        ("1", "x", 0.7),
    ]


def test_a_reused_id_with_another_text_is_renamed() -> None:
    found = documents(
        [
            {"id": "1", "text": "x"},
            {"id": "1", "text": "y"},
            {"id": "1#2", "text": "z"},
            {"id": "1", "text": "w"},
        ]
    )
    assert [document.id for document in found] == ["1", "1#2", "1#2#2", "1#3"]
    assert [document.content for document in found] == ["x", "y", "z", "w"]


def test_equal_texts_with_different_ids_stay_separate() -> None:
    assert [
        document.id for document in documents([{"id": "a", "text": "x"}, {"id": "b", "text": "x"}])
    ] == ["a", "b"]


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
def test_an_invalid_document_is_reported_with_a_hint(given: Any, why: str) -> None:
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


def generate(query: str) -> Iterator[str]:
    yield query


async def retrieve_async(query: str) -> list[Any]:
    return [{"id": "a", "text": query}]


@pytest.mark.spec("DRAFT-CRITIQUE-PIPELINE")
@pytest.mark.parametrize("retriever", [Invoked(), Retrieved(), lambda query: [query], generate])
def test_retrievers_are_called_through_the_method_they_have(retriever: Any) -> None:
    assert (
        query_with_critique("How long?", retriever, ONLY_SEARCH).search_results[0].content
        == "How long?"
    )


@pytest.mark.parametrize(
    "retriever",
    [Invoked(), Retrieved(), Awaited(), retrieve_async, lambda query: [query], generate],
)
def test_retrievers_can_be_called_from_a_coroutine(retriever: Any) -> None:
    found = asyncio.run(query_with_critique_async("How long?", retriever, ONLY_SEARCH))
    assert found.search_results[0].content == "How long?"


def test_an_invalid_retriever_is_reported_with_a_hint() -> None:
    with pytest.raises(InputError, match=r"'invoke' .LangChain. or 'retrieve' .LlamaIndex."):
        query_with_critique("How long?", object())
    with pytest.raises(InputError, match="query_with_critique_async"):
        query_with_critique("How long?", retrieve_async)
    with pytest.raises(InputError, match="query: is empty"):
        query_with_critique("  ", retrieve_async)


def failing(query: str) -> list[str]:
    raise ConnectionError("the index is not there")


def failing_late(query: str) -> Iterator[str]:
    yield "x"
    raise ConnectionError("the index is not there")


async def failing_async(query: str) -> list[str]:
    raise ConnectionError("the index is not there")


def test_a_failing_retriever_is_reported() -> None:
    for retriever in (failing, failing_late):
        with pytest.raises(RetrievalFailed, match="ConnectionError: the index is not there"):
            query_with_critique("How long?", retriever)
    for retriever in (failing, failing_late, failing_async):
        with pytest.raises(RetrievalFailed, match="ConnectionError: the index is not there"):
            asyncio.run(query_with_critique_async("How long?", retriever))


# What is not borne by its evidence is said in plain text, sentence by sentence

CHUNKS = [
    {"id": "1", "text": "The bridge is 120 metres long and made of steel."},
    {"id": "2", "text": "The bridge was opened in 1931 by the mayor."},
]
RIGHT = (
    "The bridge is 120 metres long and made of steel [1]. The bridge was opened in 1931 by the"
    " mayor [2]."
)

CONFLICT = conflict("120", "1931", evidence_id="2", reason="Another number stands there")


def grounding_of_failure(answer: str, **bounds: Any) -> Grounding:
    with pytest.raises(AssertionError) as raised:
        assert_grounded(answer, CHUNKS, **bounds)
    assert isinstance(raised.value, NotGrounded)
    return raised.value.grounding


def test_a_supported_answer_passes_and_returns_the_report() -> None:
    found = assert_grounded(RIGHT, CHUNKS, question="How long?")
    assert found.grounded
    assert [check.verdict for check in found.claims] == ["supported", "supported"]
    assert assert_grounded(RIGHT, [chunk["text"] for chunk in CHUNKS]).grounded  # [1] is chunk_1


def test_the_failure_message_shows_sentence_reference_verdict_and_evidence() -> None:
    with pytest.raises(AssertionError) as raised:
        assert_grounded(
            "The bridge is 180 metres long [1]. The bridge was opened in 1931 by the mayor [9].",
            CHUNKS,
        )
    text = str(raised.value)
    assert text.startswith("The answer is not grounded in its evidence: 2 issues.")
    assert "invalid reference  cites [9]" in text
    assert "contradicted" in text
    assert "cites [1]" in text
    assert "sentence: The bridge is 180 metres long [1]." in text
    assert "evidence: [1] The bridge is 120 metres long" in text


def test_an_uncited_sentence_passes_unless_forbidden() -> None:
    answer = (
        "The bridge is 120 metres long and made of steel. The bridge was opened in 1931 by the"
        " mayor [2]."
    )
    assert assert_grounded(answer, CHUNKS).grounded
    (issue,) = grounding_of_failure(answer, allow_uncited=False).issues
    assert (issue.what, issue.sentence) == (
        "uncited",
        "The bridge is 120 metres long and made of steel.",
    )


def test_the_support_threshold_is_configurable_but_contradictions_never_pass(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    class Partly(ContentVerifier):
        def judge_claim(self, claim: Claim) -> ClaimCheck:
            return ClaimCheck(claim=claim, verdict="partial", support=0.5, confidence=0.9)

    module = importlib.import_module("masis.pipeline.grounding")
    with monkeypatch.context() as patched:
        patched.setattr(module, "build_roles", lambda settings: roles(verifier=Partly()))
        assert assert_grounded(RIGHT, CHUNKS, min_support=0.5).grounded
        assert not grounding(RIGHT, CHUNKS, bounds=Bounds(min_support=0.51)).grounded
    assert (
        grounding_of_failure("The bridge is 180 metres long [1].", min_support=0.0).issues[0].what
        == "contradicted"
    )


def test_a_score_bound_catches_a_half_supported_sentence() -> None:
    half = "The bridge is 120 metres long and made of steel, and it carries two railway tracks [1]."
    assert not grounding(half, CHUNKS, bounds=Bounds(min_support=0.7)).grounded


def test_textless_evidence_fails_unless_allowed() -> None:
    empty = [{"id": "1", "text": ""}]
    assert not grounding("The bridge is 120 metres long [1].", empty).grounded
    assert grounding(
        "The bridge is 120 metres long [1].", empty, bounds=Bounds(allow_unverifiable=True)
    ).grounded


@pytest.mark.parametrize(
    ("verdict", "contradicted", "what"),
    [
        ("supported", False, None),
        ("supported", True, "contradicted"),
        ("partial", False, "partial"),
        ("unsupported", False, "unsupported"),
        ("contradicted", False, "contradicted"),
        ("unverifiable", False, "unverifiable"),
        ("unscored", False, "unscored"),
    ],
)
def test_claims_pass_exactly_as_in_acceptance(
    monkeypatch: pytest.MonkeyPatch, verdict: ClaimVerdict, contradicted: bool, what: str | None
) -> None:
    class Verdict(ContentVerifier):
        def judge_claim(self, claim: Claim) -> ClaimCheck:
            conflicts = (CONFLICT,) if contradicted else ()
            return ClaimCheck(
                claim=claim, verdict=verdict, support=0.9, confidence=0.9, contradictions=conflicts
            )

    module = importlib.import_module("masis.pipeline.grounding")
    monkeypatch.setattr(module, "build_roles", lambda settings: roles(verifier=Verdict()))
    found = grounding("The bridge is 120 metres long [1].", CHUNKS)
    assert [issue.what for issue in found.issues] == ([what] if what else [])
    assert bool(claim_reasons(found.claims)) == (what not in (None, "unscored"))
    lenient = grounding(
        "The bridge is 120 metres long [1].",
        CHUNKS,
        bounds=Bounds(min_support=0.5, allow_unverifiable=True),
    )
    assert lenient.grounded == (what not in ("contradicted", "unscored"))


def test_outside_text_cant_inject_terminal_escapes() -> None:
    with pytest.raises(AssertionError) as raised:
        assert_grounded("The bridge is 180\x1b[2J metres\n long [1]. " + "x " * 500, CHUNKS)
    assert "\x1b" not in str(raised.value)
    assert max(map(len, str(raised.value).splitlines())) < 400


def test_a_long_list_of_faults_is_truncated_but_the_report_is_complete() -> None:
    found = grounding(" ".join(f"It has {n} towers [{n}]." for n in range(30, 80)), CHUNKS)
    with pytest.raises(AssertionError, match=r"\.\.\. and \d+ more"):
        raise NotGrounded(found)
    assert len(found.record()["issues"]) == len(found.issues) > 50


def test_a_report_record_is_one_line_of_json() -> None:
    line = json.dumps(grounding_of_failure("The bridge is 180 metres long [1].").record())
    read = json.loads(line)
    assert (read["grounded"], read["claims"], read["verified"]) == (False, 1, 0)
    assert read["issues"][0]["what"] == "contradicted"


@pytest.mark.parametrize(
    ("answer", "evidence", "why"),
    [
        ("", CHUNKS, "answer: is empty"),
        (None, CHUNKS, "answer: is empty"),
        (RIGHT, [], "evidence: is empty"),
        (RIGHT, "text", "not a list of documents"),
    ],
)
def test_an_uncheckable_answer_is_an_error_not_a_failure(
    answer: Any, evidence: Any, why: str
) -> None:
    with pytest.raises(InputError, match=why):
        assert_grounded(answer, evidence)
    with pytest.raises(InputError, match="min_support"):
        Bounds(min_support=60)

"""Abstracts graded over the wire: one call each, together with the grader that needs none, and when
calls fail.
"""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

import masis
from masis.schema.screening import Screening
from masis.settings import Settings
from tests.llm import canned
from tests.served_replies import Behaviour, Request
from tests.serving_models import ModelServer, says
from tests.waiting import until_async

QUESTION = "Does aspirin relieve acute migraine in adults?"
TEXT = (
    "Adults with acute migraine were randomly assigned to aspirin 900 mg or placebo (n = 206 each)."
    " Participants were blinded. The primary outcome was freedom from pain. Aspirin relieved acute"
    " migraine more often (p < 0.001)."
)
ABSTRACTS = [
    {
        "id": f"t{i}",
        "title": f"Aspirin for acute migraine in adults: randomised trial {i}",
        "text": TEXT,
    }
    for i in range(6)
]


def graded(**changed: Any) -> dict[str, Any]:
    """A reply whose quotes stand in the abstracts."""
    quotes = {
        "relevance_quotes": ["acute migraine"],
        "methodology_quotes": ["blinded"],
        "sample_size_quote": None,
    }
    return canned.grade(**(quotes | changed))


def settings(server: ModelServer, graders: str = "scripted:judge", **more: Any) -> Settings:
    table = {
        "kind": "openai",
        "address": server.address,
        "key_env": "SCRIPTED_KEY",
        "concurrency": 4,
    }
    told = {"providers": {"scripted": table}, "screening_graders": graders, "max_retries": 0}
    return Settings.model_validate(told | more)


def screened(server: ModelServer, **more: Any) -> Screening:
    return masis.screen_abstracts(QUESTION, ABSTRACTS, settings(server, **more))


@pytest.mark.spec("AESOP-MODEL")
def test_each_abstract_is_graded_by_one_recorded_call() -> None:
    with ModelServer(lambda request: says(graded()), latency_ms=100) as server:
        found = screened(server)
    assert found.outcome == "sufficient"
    assert found.graders == ("scripted:judge",)
    assert found.usage.calls == len(server.requests) == len(ABSTRACTS)
    assert found.usage.prompt_tokens > 0
    assert 1 < server.most_at_once <= 4
    assert {request.mode for request in server.requests} == {"json_schema"}


def test_the_question_precedes_the_abstract_identically_in_every_call() -> None:
    with ModelServer(lambda request: says(graded())) as server:
        screened(server)
    assert all(request.fences("QUESTION") == [QUESTION] for request in server.requests)
    assert sorted(
        request.fences("ABSTRACT")[0].split("\n")[0][-1] for request in server.requests
    ) == list("012345")


@pytest.mark.spec("AESOP-ENSEMBLE")
def test_a_model_and_the_offline_grader_are_combined() -> None:
    def script(request: Request) -> Behaviour:
        first = request.fences("ABSTRACT")[0].startswith(ABSTRACTS[0]["title"])
        return says(graded(relevance_score=0.1) if first else graded())

    with ModelServer(script) as server:
        found = screened(server, graders="offline, scripted:judge")
    assert found.graders == ("offline", "scripted:judge")
    torn = found.grade("t0")
    assert (torn.recommendation, torn.rule, torn.agreement) == ("needs_more", "disagreement", 0.0)
    assert [opinion.judged_by.model for opinion in torn.opinions] == ["offline", "scripted:judge"]
    assert found.kept == ("t1", "t2", "t3", "t4", "t5")
    assert found.usage.calls == len(ABSTRACTS)


def test_a_cancelled_coroutine_makes_no_more_calls() -> None:
    async def cut_short(server: ModelServer) -> None:
        many = [
            {**ABSTRACTS[0], "id": str(i), "title": f"{ABSTRACTS[0]['title']} {i}"}
            for i in range(60)
        ]
        task = asyncio.create_task(masis.screen_abstracts_async(QUESTION, many, settings(server)))
        await until_async(lambda: server.requests, "a first call")
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    with ModelServer(lambda request: says(graded()), latency_ms=100) as server:
        asyncio.run(cut_short(server))
        assert len(server.requests) < 60

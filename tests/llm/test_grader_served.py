"""Abstracts graded by a model over HTTP: one call for each, alone or with the offline grader."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

import masis
from masis.schema.screening import Screening
from masis.settings import Settings
from tests.llm import canned
from tests.rooms import needs_screening
from tests.served_replies import Behaviour, Request
from tests.serving_models import ModelServer, reply_with
from tests.waiting import until_async

pytestmark = needs_screening

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


def reply_with_grades(**changed: Any) -> dict[str, Any]:
    """A reply whose quotes occur in the abstracts."""
    quotes = {
        "relevance_quotes": ["acute migraine"],
        "methodology_quotes": ["blinded"],
        "sample_size_quote": None,
    }
    return canned.grade(**(quotes | changed))


def settings(server: ModelServer, graders: str = "scripted:judge", **changes: Any) -> Settings:
    provider = {
        "kind": "openai",
        "address": server.address,
        "key_env": "SCRIPTED_KEY",
        "concurrency": 4,
    }
    values = {"providers": {"scripted": provider}, "screening_graders": graders, "max_retries": 0}
    return Settings.model_validate(values | changes)


def run_screening(server: ModelServer, **changes: Any) -> Screening:
    return masis.screen_abstracts(QUESTION, ABSTRACTS, settings(server, **changes))


@pytest.mark.spec("AESOP-MODEL")
def test_each_abstract_is_graded_by_one_recorded_call() -> None:
    with ModelServer(lambda request: reply_with(reply_with_grades()), latency_ms=100) as server:
        screening = run_screening(server)
    assert screening.outcome == "sufficient"
    assert screening.graders == ("scripted:judge",)
    assert screening.usage.calls == len(server.requests) == len(ABSTRACTS)
    assert screening.usage.prompt_tokens > 0
    assert 1 < server.most_at_once <= 4
    assert {request.mode for request in server.requests} == {"json_schema"}


def test_the_question_precedes_the_abstract_identically_in_every_call() -> None:
    with ModelServer(lambda request: reply_with(reply_with_grades())) as server:
        run_screening(server)
    assert all(request.fences("QUESTION") == [QUESTION] for request in server.requests)
    assert sorted(
        request.fences("ABSTRACT")[0].split("\n")[0][-1] for request in server.requests
    ) == list("012345")


@pytest.mark.spec("AESOP-ENSEMBLE")
def test_a_model_and_the_offline_grader_are_combined() -> None:
    def script(request: Request) -> Behaviour:
        is_first = request.fences("ABSTRACT")[0].startswith(ABSTRACTS[0]["title"])
        return reply_with(
            reply_with_grades(relevance_score=0.1) if is_first else reply_with_grades()
        )

    with ModelServer(script) as server:
        screening = run_screening(server, graders="offline, scripted:judge")
    assert screening.graders == ("offline", "scripted:judge")
    disputed = screening.grade("t0")
    assert (disputed.recommendation, disputed.rule, disputed.agreement) == (
        "needs_more",
        "disagreement",
        0.0,
    )
    assert [opinion.judged_by.model for opinion in disputed.opinions] == [
        "offline",
        "scripted:judge",
    ]
    assert screening.kept == ("t1", "t2", "t3", "t4", "t5")
    assert screening.usage.calls == len(ABSTRACTS)


def test_a_cancelled_coroutine_makes_no_more_calls() -> None:
    async def cancel_after_the_first_call(server: ModelServer) -> None:
        abstracts = [
            {**ABSTRACTS[0], "id": str(i), "title": f"{ABSTRACTS[0]['title']} {i}"}
            for i in range(60)
        ]
        task = asyncio.create_task(
            masis.screen_abstracts_async(QUESTION, abstracts, settings(server))
        )
        await until_async(lambda: server.requests, "a first call")
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    with ModelServer(lambda request: reply_with(reply_with_grades()), latency_ms=100) as server:
        asyncio.run(cancel_after_the_first_call(server))
        assert len(server.requests) < 60

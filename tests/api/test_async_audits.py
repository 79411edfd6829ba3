"""Audits awaited at once take turns on so many threads, and come to what they come to alone."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

import masis
from masis.api.draft_critique import critique_draft, critique_draft_async
from masis.audit.control.concurrency import AUDITS_THAT_WAIT
from masis.schema.run import Run
from masis.settings import Settings
from tests.llm.asking import CASE
from tests.serving_models import ModelServer
from tests.waiting import until_async

ROLES = ("verifier", "critic", "reviser", "evaluator")


def settings_for_server(server: ModelServer, **models: str) -> Settings:
    table = {"address": server.address, "concurrency": 500, "adapts": False}
    return Settings.model_validate(
        {**(models or dict.fromkeys(ROLES, "here:m")), "providers": {"here": table}}
    )


def outcome(run: Run) -> object:
    """What an audit comes to, without ids, times and calls: claims of the same answer are found
    once a process.
    """
    return [
        (
            iteration.quality_score,
            iteration.answer,
            [(check.verdict, check.support) for check in iteration.claims],
        )
        for iteration in run.iterations
    ]


@pytest.mark.slow
def test_100_concurrent_audits_give_the_same_results() -> None:
    with ModelServer(issues="none", latency_ms=600) as server:
        settings = settings_for_server(server)
        alone = masis.run_audit(CASE, settings)

        async def every() -> list[Run]:
            return list(
                await asyncio.gather(*(masis.run_audit_async(CASE, settings) for _ in range(100)))
            )

        runs = asyncio.run(every())
        # Many more than the threads that asyncio has by itself (6 on two cores). How many more
        # depends on how busy the machine is.
        assert server.most_at_once >= AUDITS_THAT_WAIT // 3
    assert [outcome(run) for run in runs] == [outcome(alone)] * 100


@pytest.mark.parametrize(
    "models",
    [
        {"verifier": "offline,here:m", "critic": "here:m"},
        {"critic": "here:m", "reviser": "here:m"},
        {"verifier": "here:m", "judge_samples": "3", "critic": "here:m", "evaluator": "here:m"},
    ],
)
def test_mixing_blocking_and_async_roles_gives_the_same_results(models: dict[str, str]) -> None:
    with ModelServer(issues="always") as server:
        settings = settings_for_server(server, **models)

        async def several() -> list[Run]:
            return list(
                await asyncio.gather(*(masis.run_audit_async(CASE, settings) for _ in range(5)))
            )

        alone = masis.run_audit(CASE, settings)
        assert [outcome(run) for run in asyncio.run(several())] == [outcome(alone)] * 5


def test_cancelling_a_task_stops_only_its_audit() -> None:
    with ModelServer(issues="none", latency_ms=400) as server:
        settings = settings_for_server(server)

        async def one_of_two() -> Run:
            stopped = asyncio.create_task(masis.run_audit_async(CASE, settings))
            other = asyncio.create_task(masis.run_audit_async(CASE, settings))
            await until_async(lambda: server.in_progress >= 2, "both wait for the model")
            stopped.cancel()
            with pytest.raises(asyncio.CancelledError):
                await stopped
            return await other

        run = asyncio.run(one_of_two())
        requests = len(server.requests)
    assert run.final_quality_score is not None
    assert requests < 2 * run.usage.calls


def test_awaited_critiques_give_the_same_results() -> None:
    sources = [{"id": chunk.id, "content": chunk.text} for chunk in CASE.evidence]
    with ModelServer(issues="none", latency_ms=100) as server:
        settings = settings_for_server(server)
        alone = critique_draft(CASE.query, CASE.answer or "", sources, settings=settings)

        async def several() -> list[Any]:
            critiques = [
                critique_draft_async(CASE.query, CASE.answer or "", sources, settings=settings)
                for _ in range(10)
            ]
            return list(await asyncio.gather(*critiques))

        found = asyncio.run(several())
    assert {critique.is_valid for critique in found} == {alone.is_valid}
    assert {critique.confidence for critique in found} == {alone.confidence}

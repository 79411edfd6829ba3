"""The ingestion server under load: a flood of rejected requests, and kills."""

from __future__ import annotations

import itertools
import json
import logging
import random
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx2
import pytest

from masis.services import Workbench
from tests.cli.running import case, lines
from tests.integrations.test_web import SEND, ingesting
from tests.waiting import join_all, until
from tools.serving import free_port

log = logging.getLogger(__name__)

REJECTED_REQUESTS: tuple[tuple[int, dict[str, Any]], ...] = (
    (401, {"json": case("x"), "headers": {"authorization": "Bearer wrong"}}),
    (403, {"json": case("x"), "headers": {"origin": "https://evil.example"}}),
    (421, {"json": case("x"), "headers": {"host": "evil.example"}}),
    (415, {"content": b"x", "headers": {"content-type": "text/plain"}}),
    (400, {"content": b"  ", "headers": {"content-type": "application/json"}}),
    (422, {"json": case("x", query="q" * 20_001)}),
    (422, {"json": case("x", metadata={"deep": json.loads("[" * 70 + "]" * 70)})}),
    (
        413,
        {
            "content": lines(*[case("x")]) * 1_001,
            "headers": {"content-type": "application/x-ndjson"},
        },
    ),
)
"""Requests that are rejected, with the expected status."""


@contextmanager
def repeated_in_background(*functions: Callable[[], object]) -> Iterator[list[BaseException]]:
    """Repeat each function in its own thread while the block runs, and yield the errors raised."""
    stopped, errors = threading.Event(), list[BaseException]()

    def repeat(function: Callable[[], object]) -> None:
        while not stopped.is_set():
            try:
                function()
            except Exception as error:  # noqa: BLE001 (the test shows it)
                errors.append(error)
                return

    threads = [
        threading.Thread(target=repeat, args=(function,), daemon=True) for function in functions
    ]
    for thread in threads:
        thread.start()
    try:
        yield errors
    finally:
        stopped.set()
        join_all(threads)


def flood(address: str) -> Callable[[], None]:
    """Return a function that sends the next invalid request and checks its status.

    It ignores connection errors, because the server may have been killed.
    """
    invalid_requests = itertools.cycle(REJECTED_REQUESTS)

    def send() -> None:
        status, request = next(invalid_requests)
        try:
            response = httpx2.post(
                f"{address}/v1/cases", **{**request, "headers": SEND | request.get("headers", {})}
            )
        except httpx2.HTTPError:
            return
        assert response.status_code == status

    return send


@pytest.mark.soak(smoke=2, full=100)
@pytest.mark.timeout(3600)
def test_kills_during_a_flood_lose_no_acknowledged_request(tmp_path: Path, rounds: int) -> None:
    port, numbers, acknowledged = free_port(), itertools.count(), list[str]()

    def until_killed(round_number: int) -> list[BaseException]:
        """Send until a random moment, at which the server is killed while it is flooded."""
        target = len(acknowledged) + random.Random(round_number).randint(100, 600)
        with ingesting(tmp_path, port, MASIS_INGEST_MODEL="off") as client:

            def send() -> None:
                names = [f"case-{next(numbers)}" for _ in range(20)]
                try:
                    response = client.post("/v1/cases", json={"cases": list(map(case, names))})
                except httpx2.HTTPError:  # killed before it could acknowledge
                    return
                assert response.status_code == 202
                acknowledged.extend(names)

            with repeated_in_background(
                send, *(flood(str(client.base_url)) for _ in range(2))
            ) as errors:
                until(lambda: errors or len(acknowledged) >= target, "requests are acknowledged")
                client.process.kill()
        return errors

    for round_number in range(rounds):
        assert not until_killed(round_number)
    reopened = Workbench.open(tmp_path / "masis.db")
    while reopened.ingestion.read_waiting({}):
        pass
    stored = {case.id for case in reopened.store.cases.iterate()}
    assert not set(acknowledged) - stored
    assert "x" not in stored
    log.info("%d kills, %d acknowledged, none lost", rounds, len(acknowledged))

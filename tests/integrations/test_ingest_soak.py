"""The HTTP door under load: a flood of refused requests, and kills."""

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
from tests.waiting import joined, until
from tools.serving import free_port

log = logging.getLogger(__name__)

REFUSED: tuple[tuple[int, dict[str, Any]], ...] = (
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
"""Requests that are refused, and how."""


@contextmanager
def beside(*works: Callable[[], object]) -> Iterator[list[BaseException]]:
    """Each work again and again on a thread of its own while the block runs; what they raise."""
    over, errors = threading.Event(), list[BaseException]()

    def repeat(work: Callable[[], object]) -> None:
        while not over.is_set():
            try:
                work()
            except Exception as error:  # noqa: BLE001 (the test shows it)
                errors.append(error)
                return

    threads = [threading.Thread(target=repeat, args=(work,), daemon=True) for work in works]
    for thread in threads:
        thread.start()
    try:
        yield errors
    finally:
        over.set()
        joined(threads)


def flood(address: str) -> Callable[[], None]:
    """What sends requests that are refused, and sees that they are; a server that is gone refuses
    nothing.
    """
    kinds = itertools.cycle(REFUSED)

    def send() -> None:
        status, sent = next(kinds)
        try:
            answer = httpx2.post(
                f"{address}/v1/cases", **{**sent, "headers": SEND | sent.get("headers", {})}
            )
        except httpx2.HTTPError:
            return
        assert answer.status_code == status

    return send


@pytest.mark.soak(smoke=2, full=100)
@pytest.mark.timeout(3600)
def test_kills_during_a_flood_lose_no_acknowledged_request(tmp_path: Path, rounds: int) -> None:
    port, numbers, acknowledged = free_port(), itertools.count(), list[str]()

    def until_killed(kill: int) -> list[BaseException]:
        """Send until a random moment, at which the server is killed while it is flooded."""
        enough = len(acknowledged) + random.Random(kill).randint(100, 600)
        with ingesting(tmp_path, port, MASIS_INGEST_MODEL="off") as opened:

            def send() -> None:
                names = [f"case-{next(numbers)}" for _ in range(20)]
                try:
                    answer = opened.post("/v1/cases", json={"cases": list(map(case, names))})
                except httpx2.HTTPError:  # killed before it could acknowledge
                    return
                assert answer.status_code == 202
                acknowledged.extend(names)

            with beside(send, *(flood(str(opened.base_url)) for _ in range(2))) as errors:
                until(lambda: errors or len(acknowledged) >= enough, "requests are acknowledged")
                opened.process.kill()
        return errors

    for kill in range(rounds):
        assert not until_killed(kill)
    reopened = Workbench.open(tmp_path / "masis.db")
    while reopened.ingestion.read_waiting({}):
        pass
    stored = {each.id for each in reopened.store.cases.iterate()}
    assert not set(acknowledged) - stored
    assert "x" not in stored
    log.info("%d kills, %d acknowledged, none lost", rounds, len(acknowledged))

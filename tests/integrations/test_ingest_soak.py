"""The HTTP door under load: floods and kills, and a day of use in minutes."""

from __future__ import annotations

import itertools
import json
import logging
import random
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx2
import pytest

from masis.errors import CaseHeld, StaleVersion
from masis.schema.actor import Actor
from masis.schema.review import CaseState
from masis.services import Workbench
from masis.services.records import CaseFilter, CaseSummary
from masis.services.retention import rule_of
from tests.cli.running import case, lines
from tests.integrations.test_web import SEND, ingesting
from tests.loopback import receiver
from tests.reviewing import decide
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
    (413, {"content": lines(*[case("x")]) * 1_001, "headers": {"content-type": "application/x-ndjson"}}),
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
    """What sends requests that are refused, and sees that they are; a server that is gone refuses nothing."""
    kinds = itertools.cycle(REFUSED)

    def send() -> None:
        status, sent = next(kinds)
        try:
            answer = httpx2.post(f"{address}/v1/cases", **{**sent, "headers": SEND | sent.get("headers", {})})
        except httpx2.HTTPError:
            return
        assert answer.status_code == status

    return send


@pytest.mark.soak(smoke=2, full=100)
@pytest.mark.timeout(3600)
def test_in_a_flood_of_refused_requests_nothing_that_was_acknowledged_is_lost_to_kills(
    tmp_path: Path, rounds: int
) -> None:
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


def memory(pid: int) -> float:
    """Megabytes that a process and its children hold."""
    children = " ".join(
        each.read_text(encoding="ascii") for each in Path(f"/proc/{pid}/task").glob("*/children")
    ).split()
    own = int(Path(f"/proc/{pid}/statm").read_text(encoding="ascii").split()[1]) * 4096 / 1e6
    return own + sum(map(memory, map(int, children)))


def every(bench: Workbench, state: CaseState) -> Iterator[CaseSummary]:
    """All cases in a state."""
    for page in itertools.count(1):
        rows = bench.cases.find(CaseFilter(states=(state,), page=page, size=1000)).rows
        yield from rows
        if not rows:
            return


@pytest.mark.soak(full=1200)
@pytest.mark.timeout(3600)
def test_a_day_of_use_meets_no_error_holds_its_memory_and_leaves_the_log_intact(tmp_path: Path, rounds: int) -> None:
    """Ingestion with audits and a webhook, three reviewers, backups and retention at once, for ``rounds`` seconds."""
    backups = tmp_path / "backups"
    backups.mkdir()
    lead, counts, draw = Actor(name="Lead"), Counter[str](), random.Random(0)
    acknowledged: list[str] = []
    with receiver() as (address, calls):
        environment = {
            "MASIS_WEBHOOK_ADDRESS": address,
            "MASIS_WEBHOOK_PRIVATE": "true",
            "MASIS_WEBHOOK_SECRET": "s" * 32,
            "MASIS_INGEST_DEPTH": "quick",
        }
        with ingesting(tmp_path, free_port(), **environment) as opened:
            bench = Workbench.open(tmp_path / "masis.db")

            def send() -> None:
                name = f"case-{len(acknowledged)}"
                length = draw.randint(1, 900)
                given = case(name, answer=f"The bridge is {length} metres long [1]. It was opened in 1931 [2].")
                assert opened.post("/v1/cases", json=given).status_code == 202
                acknowledged.append(name)
                time.sleep(0.25)

            def review(name: str) -> Callable[[], None]:
                def work() -> None:
                    waiting = CaseFilter(states=("needs_review",), order="random", seed=draw.randint(0, 99), size=20)
                    rows = bench.cases.find_for(Actor(name=name), waiting).rows
                    if rows:
                        try:
                            bench.cases.open_for(Actor(name=name), rows[0].id)
                            decide(bench, rows[0].id, draw.choice(("approve", "reject")), name)
                            counts["decided"] += 1
                        except (StaleVersion, CaseHeld):  # somebody else was faster
                            counts["faster"] += 1
                    time.sleep(1)

                return work

            def back_up() -> None:
                bench.backups.make(lead, backups, keep=3)
                counts["backups"] += 1
                time.sleep(10)

            def retain() -> None:
                rule = rule_of(0, decided=True, waiting=False)
                purged = bench.retention.purge(lead, rule, how="command", shrink=False)
                counts["purged"] += purged.purge is not None
                time.sleep(15)

            sampled: list[float] = []
            works = (send, flood(str(opened.base_url)), *map(review, ("Ada", "Bo", "Cy")), back_up, retain)
            with beside(*works) as errors:
                began = time.monotonic()
                while time.monotonic() - began < rounds and not errors:
                    time.sleep(1)
                    sampled.append(memory(opened.process.pid))
            assert not errors
            until(lambda: not bench.store.inbox.unaudited(0), "all are audited", seconds=300)
            until(lambda: not bench.store.inbox.due(1), "all is delivered")
            logged = opened.logged()
    assert not bench.store.inbox.waiting(1)
    assert {each.id for each in bench.store.cases.iterate()} == set(acknowledged)
    assert bench.store.check().log.intact
    assert not bench.store.check().problems
    told = [json.loads(call.body) for call in calls]
    events = Counter(each["event"] for each in told)
    decided = {each["case"]["id"] for each in told if each["event"] == "case.decided"}
    assert decided == {row.id for row in (*every(bench, "approved"), *every(bench, "rejected"))}
    assert {each["case"]["id"] for each in told if each["event"] == "case.needs_review"} == set(acknowledged)
    assert "rror" not in logged
    assert "Traceback" not in logged
    third = len(sampled) // 3
    early, late = max(sampled[third : 2 * third]), max(sampled[2 * third :])
    figures = f"{len(acknowledged)} cases, {dict(counts)}, {dict(events)}; memory {early:.0f}, then {late:.0f} MB"
    log.info(figures)
    assert late < early * 1.1, figures

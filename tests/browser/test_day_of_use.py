"""A day of use in minutes: cases come in over HTTP and are audited, three people decide them in
their browsers.
"""

from __future__ import annotations

import itertools
import json
import logging
import random
import re
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from playwright.sync_api import expect

from masis.schema.actor import Actor
from masis.schema.review import CaseState
from masis.services import Workbench
from masis.services.maintenance.retention import rule_of
from masis.services.records import CaseFilter, CaseSummary
from tests.browser.conftest import Tab
from tests.browser.test_decision import panel
from tests.browser.test_keyboard import ready
from tests.cli.running import case
from tests.integrations.test_ingest_soak import flood, repeated_in_background
from tests.integrations.test_web import ingesting
from tests.loopback import receiver
from tests.waiting import until
from tools.serving import free_port, serving

log = logging.getLogger(__name__)
REVIEWERS = ("Ada", "Bo", "Cy")
READ = "[aria-label=Decision][data-ready=true]"
"""The form of a decision, once what it shows can have been read."""


def memory(pid: int) -> float:
    """Megabytes that a process and its children hold."""
    children = " ".join(
        path.read_text(encoding="ascii") for path in Path(f"/proc/{pid}/task").glob("*/children")
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


def decide_one(tab: Tab, name: str, keys: tuple[str, ...]) -> bool:
    """Decide the case that is open in a reviewer's tab by keys; whether there was one."""
    page, found = tab.page, panel(tab.page)
    if not found.count():
        tab.open("/review")
        first = page.get_by_text("Open the first of")
        if first.is_visible():
            first.click()
            expect(found).to_have_count(1)
        return False
    ready(found)
    before = page.url
    for key in keys:
        page.keyboard.press(key)
    chosen = found.get_by_role("radio", checked=True)
    asked = found.get_by_label("Your name")
    if asked.first.is_visible():
        asked.first.fill(name)
        page.keyboard.press("Control+Enter")
    ended = page.get_by_text(re.compile("^0 left to review")).first
    said = found.get_by_role("alert")
    faster = found.get_by_text(
        re.compile("has changed since you opened it|was removed on|(Ada|Bo|Cy) (has|is|decides)")
    )
    faster = faster.filter(visible=True).first

    def over() -> bool:
        if said.filter(has_text="A again").first.is_visible() and page.locator(READ).count():
            page.keyboard.press("Control+Enter")
        return page.url != before or ended.is_visible() or faster.is_visible()

    for waited in range(1200):
        if over():
            break
        # the keys came in a moment in which the form was drawn anew
        if waited == 400 and not chosen.count():
            log.info("%s presses %s again at %s", name, keys, before)
            for key in keys:
                page.keyboard.press(key)
        page.wait_for_timeout(50)
    else:
        pytest.fail(
            f"{name}'s decision was not recorded, and nobody was faster:"
            f" {page.url}\n{found.inner_text()}"
        )
    decided = not faster.is_visible()
    # no case was left to open: one that comes from now on is opened from the list
    if page.url == before:
        tab.open("/review")
    return decided


@pytest.mark.soak(full=1200)
@pytest.mark.timeout(3600)
def test_a_day_of_use_has_no_errors_stable_memory_and_an_intact_log(
    open_tab: Callable[..., Tab], tmp_path: Path, rounds: int
) -> None:
    """Ingestion with audits and a webhook, three reviewers, backups and retention at once, for
    ``rounds`` seconds.
    """
    database, backups = tmp_path / "masis.db", tmp_path / "backups"
    backups.mkdir()
    lead, counts, draw = Actor(name="Lead"), Counter[str](), random.Random(0)
    acknowledged: list[str] = []
    with (
        receiver() as (address, calls),
        serving("serve", "--db", str(database), folder=tmp_path) as served,
        ingesting(
            tmp_path,
            free_port(),
            MASIS_WEBHOOK_ADDRESS=address,
            MASIS_WEBHOOK_PRIVATE="true",
            MASIS_WEBHOOK_SECRET="s" * 32,
            MASIS_INGEST_DEPTH="quick",
        ) as opened,
    ):
        bench = Workbench.open(database)

        def send() -> None:
            name = f"case-{len(acknowledged)}"
            length = draw.randint(1, 900)
            given = case(
                name, answer=f"The bridge is {length} metres long [1]. It was opened in 1931 [2]."
            )
            assert opened.post("/v1/cases", json=given).status_code == 202
            acknowledged.append(name)
            time.sleep(0.5)

        def back_up() -> None:
            bench.backups.make(lead, backups, keep=3)
            counts["backups"] += 1
            time.sleep(10)

        def retain() -> None:
            rule = rule_of(0, decided=True, waiting=False)
            purged = bench.retention.purge(lead, rule, how="command", shrink=False)
            counts["purged"] += purged.purge is not None
            time.sleep(15)

        tabs = {name: open_tab(served.base) for name in REVIEWERS}
        sampled: list[tuple[float, float]] = []
        with repeated_in_background(send, flood(str(opened.base_url)), back_up, retain) as errors:
            until(
                lambda: any(bench.cases.find(CaseFilter(size=1)).rows), "the first case is stored"
            )
            for tab in tabs.values():
                tab.open("/review")
            began = time.monotonic()
            while time.monotonic() - began < rounds and not errors:
                for name, tab in tabs.items():
                    counts["decided"] += decide_one(
                        tab, name, draw.choice((("A",), ("X", "3", "Control+Enter")))
                    )
                sampled.append((memory(opened.process.pid), memory(served.pid)))
        assert not errors
        until(lambda: not bench.store.inbox.next_unaudited(0), "all are audited", seconds=300)
        until(lambda: not bench.store.inbox.due(1), "all is delivered")
        logged = opened.read_log() + (tmp_path / "server.log").read_text(encoding="utf-8")
    assert not bench.store.inbox.waiting(1)
    assert {case.id for case in bench.store.cases.iterate()} == set(acknowledged)
    assert bench.store.check().log.intact
    assert not bench.store.check().problems
    assert {entry.decision.reviewer for entry in bench.reviews.iterate() if entry.decision} == set(
        REVIEWERS
    )
    told = [json.loads(call.body) for call in calls]
    events = Counter(message["event"] for message in told)
    decided = {message["case"]["id"] for message in told if message["event"] == "case.decided"}
    assert decided == {row.id for row in (*every(bench, "approved"), *every(bench, "rejected"))}
    waited = {message["case"]["id"] for message in told if message["event"] == "case.needs_review"}
    assert waited | decided == set(acknowledged), (
        "each was told of, also one that was decided before its audit"
    )
    assert "rror" not in logged
    assert "Traceback" not in logged
    third = len(sampled) // 3
    early, late = (
        [max(values) for values in zip(*part, strict=True)]
        for part in (sampled[third:-third], sampled[-third:])
    )
    figures = (
        f"{len(acknowledged)} cases, {dict(counts)}, {dict(events)}; memory {early}, then {late} MB"
    )
    log.info(figures)
    assert all(after < before * 1.1 for before, after in zip(early, late, strict=True)), figures

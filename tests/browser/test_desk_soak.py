"""Three people decide by keys over a bad network: every first key acts, nothing is lost or doubled."""

from __future__ import annotations

import json
import logging
import threading
from collections import Counter
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Error, Page, sync_playwright

from masis.services import Workbench
from tests.browser.test_decision import cases, panel
from tests.browser.test_keyboard import ready
from tests.reviewing import ADA
from tests.waiting import join_all
from tools.browser import FLAGS, give_name, installed_browser
from tools.serving import serving

log = logging.getLogger(__name__)

REVIEWERS = ("Ada", "Bo", "Cy")
SPARE = 6
"""More cases than decisions, so that nobody waits for a case that another person has open."""

SLOWEST_S = 3.0
DROPPED = 1 / 50
"""The share of requests that are lost, half of them on the way back."""

LONGEST_S = 60.0
"""A decision that isn't recorded after this time counts as a key that did nothing."""


BAD_NETWORK = """
  const straight = window.fetch.bind(window)
  const count = name => {
    localStorage.setItem(name, Number(localStorage.getItem(name) ?? 0) + 1)
  }
  // Names that only this test stores, so that they are told apart from what the workbench stores.
  const [requests, there, back] = COUNTS
  window.fetch = async (address, options) => {
    if (!String(address).includes("/api/v1/")) return straight(address, options)
    count(requests)
    const isLost = Math.random() < DROPPED
    const answerAt = Date.now() + Math.random() * SLOWEST_MS
    const answered = () => new Promise(done => setTimeout(done, answerAt - Date.now()))
    if (isLost && Math.random() < 0.5) {
      count(there)
      await answered()
      throw new TypeError("Failed to fetch")
    }
    const response = await straight(address, options)
    await answered()
    if (!isLost) return response
    count(back)
    throw new TypeError("Failed to fetch")
  }
"""
"""Delays the answers of the API and loses some requests, half of them on the way back.

A request that is lost on the way back has had its effect, and the page can't tell the difference.
The page waits for several requests at once, as in a real network. A route of Playwright would
delay one request after the other.
"""

COUNTS = ("soak requests", "soak lost on the way", "soak lost on the way back")


def bad_network(slowest_s: float) -> str:
    """Return the script of a page whose requests to the API are slow and sometimes lost."""
    values = {"COUNTS": COUNTS, "DROPPED": DROPPED, "SLOWEST_MS": slowest_s * 1000}
    lines = [f"const {name} = {json.dumps(value)}" for name, value in values.items()]
    return "(() => {\n" + "\n".join(lines) + BAD_NETWORK + "})()"


@pytest.mark.soak(smoke=12, full=5000)
@pytest.mark.timeout(60 * 60 * 12)
def test_every_first_key_decides_once_over_a_bad_network(
    browser: Browser, tmp_path: Path, rounds: int
) -> None:
    database, counts = tmp_path / "soak.db", Counter[str]()
    workbench = Workbench.open(database)
    for made in cases(rounds + SPARE):
        workbench.cases.add(ADA, [made])
        workbench.audits.audit(ADA, made)
    slowest_s = SLOWEST_S if rounds > 1000 else 0.3
    failures: list[str] = []
    decided: dict[str, list[str]] = {name: [] for name in REVIEWERS}
    stop = threading.Event()
    everybody_ready = threading.Barrier(len(REVIEWERS))

    def review(name: str, base: str) -> None:
        """Decide cases in a browser of this person's own, each with the first keys."""
        page: Page | None = None
        try:
            with sync_playwright() as playwright:
                launched = playwright.chromium.launch(
                    executable_path=installed_browser(), args=FLAGS, timeout=LONGEST_S * 1000
                )
                page = launched.new_context(reduced_motion="reduce").new_page()
                page.set_default_timeout(LONGEST_S * 1000)
                page.add_init_script(bad_network(slowest_s))
                # the name first, so that each person opens a case of their own
                give_name(page, base, name)
                page.goto(f"{base}/review")
                page.get_by_text("Open the first of").click()
                ready(panel(page))
                # On a busy machine one browser can take a minute to start, and two people would
                # decide every case before the third has opened one.
                everybody_ready.wait(LONGEST_S * len(REVIEWERS))
                decide_cases(name, page)
                stored = page.evaluate("() => ({ ...localStorage })")
                counts.update({count: int(stored.get(count, 0)) for count in COUNTS})
                launched.close()
        except Exception as error:  # noqa: BLE001 (named with the other people's failures)
            everybody_ready.abort()
            stop.set()
            failures.append(f"{name}: {error}\n{page.url if page else 'no page'}")

    def decide_cases(name: str, page: Page) -> None:
        """Decide each case that opens with the first keys, until enough are decided."""
        desk = panel(page)
        while sum(map(len, decided.values())) < rounds and not stop.is_set():
            ready(desk)
            before = page.url
            taken = desk.get_by_text("has taken case").is_visible()
            counts["taken by another"] += taken
            for key in ("n",) if taken else ("x", "3", "Control+Enter"):
                page.keyboard.press(key)
            try:
                page.wait_for_function("before => location.href !== before", arg=before)
            except Error as error:
                raise AssertionError(f"no key acted on {before}:\n{desk.inner_text()}") from error
            if not taken:
                decided[name].append(before)

    with serving("serve", "--db", str(database), folder=tmp_path) as served:
        people = [threading.Thread(target=review, args=(name, served.base)) for name in REVIEWERS]
        for person in people:
            person.start()
        join_all(people, seconds=LONGEST_S * (rounds + 20))
    assert not failures, "\n\n".join(failures)
    entries = [entry.decision for entry in workbench.reviews.iterate() if entry.decision]
    made = Counter((entry.case_id, entry.reviewer) for entry in entries if entry.kind == "decision")
    log.info("%s", {**counts, "decisions": len(made)})
    assert counts[COUNTS[0]] > rounds
    assert set(made.values()) == {1}, "a decision was recorded twice"
    by_reviewer = Counter(reviewer for _, reviewer in made)
    assert by_reviewer == Counter({name: len(cases) for name, cases in decided.items()})
    assert workbench.store.check().log.intact

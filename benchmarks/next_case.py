"""Time from the key that records a decision until the next case appears, with 10,000 cases stored.

    python benchmarks/next_case.py [--cases 10000] [--decide 20] [--folder FOLDER]

A real Chromium works on a real server with the keyboard alone: it opens the queue, names the
reviewer, and rejects each case with ``X``, ``3`` and ``Ctrl+Enter``. The time is measured in the page, from the keypress to
the frame in which the answer is that of the next case, and to the one in which the page around it
has followed. Between two keypresses the page becomes idle, as it does while a person reads. The store has
copies of the demo cases with varied numbers and scores, three in ten of them audited; it is built
in FOLDER (default: the system's temporary folder). Exits 1 if a median misses its target, or if a
keypress didn't record exactly one decision on its own case. Compare results only from an otherwise
idle machine.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import tempfile
from collections import Counter
from pathlib import Path
from typing import NamedTuple

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from playwright.sync_api import Page, sync_playwright

from benchmarks.ui import fill
from masis.store import Store
from tools.browser import FLAGS, give_name, installed_browser, settle
from tools.serving import serving

TARGETS_MS = {"answer": 150, "page": 300}
"""The targets of the medians: the answer with its form, and the page around them."""
REVIEWER = "Benchmark"
WAIT_MS = 60_000

TIMER_SCRIPT = """() => {
  const roots = root => [root, ...[...root.querySelectorAll("*")]
    .flatMap(element => element.shadowRoot ? roots(element.shadowRoot) : [])]
  const textOf = selector => roots(document)
    .map(root => root.querySelector(selector)?.textContent).find(Boolean)
  // Copies of a case have the same question, so the address tells whether the page has followed.
  const shown = () => ({ answer: textOf(".answer") + textOf(".evidence"), page: location.href })
  document.addEventListener("keydown", event => {
    if (event.key !== "Enter" || !event.ctrlKey || window.timing) return
    const before = shown()
    window.timing = true
    window.took = null
    let answered = null
    const onFrame = now => {
      const after = shown()
      const isOther = name => after[name] !== before[name]
      if (isOther("answer")) answered ??= now - event.timeStamp
      if (answered !== null && isOther("page")) {
        window.took = [answered, now - event.timeStamp]
        window.timing = false
      } else requestAnimationFrame(onFrame)
    }
    requestAnimationFrame(onFrame)
  }, { capture: true })
}"""
"""Sets ``window.took`` after each press of Ctrl+Enter: the milliseconds until the answer is that of another
case, and until the page around it has followed.
"""


def start(page: Page, base: str) -> None:
    """Name the reviewer, and open the first case of the queue with the keyboard."""
    give_name(page, base, REVIEWER)
    page.goto(f"{base}/queue")
    settle(page)
    page.keyboard.press("j")
    page.keyboard.press("Enter")
    page.wait_for_url("**/review?*", timeout=WAIT_MS)
    wait_until_ready(page)


def wait_until_ready(page: Page) -> None:
    """Wait until the page is idle and accepts keys again."""
    settle(page)
    page.locator("section.panel[data-ready=true]").wait_for(timeout=WAIT_MS)


class NextCaseTimes(NamedTuple):
    """The milliseconds from a key until the next answer, and until the whole page, was shown."""

    answer: float
    page: float


def reject(page: Page) -> NextCaseTimes:
    """Reject the case by keys and return the milliseconds until the next one appeared."""
    for key in ("x", "3", "Control+Enter"):
        page.keyboard.press(key)
    page.wait_for_function("window.took", polling=50, timeout=WAIT_MS)
    times = NextCaseTimes(*page.evaluate("window.took"))
    wait_until_ready(page)
    return times


def reject_cases(database: Path, folder: Path, count: int) -> list[NextCaseTimes]:
    """Reject ``count`` cases and return the milliseconds of each."""
    with (
        serving("serve", "--db", str(database), folder=folder) as served,
        sync_playwright() as playwright,
    ):
        browser = playwright.chromium.launch(executable_path=installed_browser(), args=FLAGS)
        page = browser.new_page(viewport={"width": 1440, "height": 900})
        start(page, served.base)
        page.evaluate(TIMER_SCRIPT)
        times = [reject(page) for _ in range(count)]
        browser.close()
    return times


def count_decisions(database: Path) -> Counter[str]:
    """Return how many decisions by the benchmark's reviewer each case has."""
    with Store.open(database) as store:
        entries = (entry.decision for entry in store.decisions.iterate())
        return Counter(
            decision.case_id for decision in entries if decision and decision.reviewer == REVIEWER
        )


def main() -> int:
    """Build the store, reject cases, and print the times."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--cases", type=int, default=10_000)
    parser.add_argument("--decide", type=int, default=20)
    parser.add_argument("--folder", type=Path)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=options.folder) as folder_name:
        folder = Path(folder_name)
        database = folder / "queue.db"
        with Store.open(database) as store:
            fill(store, options.cases)
        times = reject_cases(database, folder, options.decide)
        decisions = count_decisions(database)
    print(f"{len(times)} cases rejected with the first keys, {options.cases:,} in the store")
    medians = {}
    for name, target in TARGETS_MS.items():
        measured = sorted(getattr(time, name) for time in times)
        medians[name] = statistics.median(measured)
        high = measured[round(0.95 * (len(measured) - 1))]
        print(
            f"keypress to next {name}: median {medians[name]:.0f} ms, p95 {high:.0f} ms,"
            f" max {measured[-1]:.0f} ms (target: median {target} ms)"
        )
    is_wrong = len(decisions) != options.decide or set(decisions.values()) != {1}
    if is_wrong:
        print(f"expected one decision per case, but got: {decisions}")
    return int(is_wrong or any(medians[name] > TARGETS_MS[name] for name in TARGETS_MS))


if __name__ == "__main__":
    sys.exit(main())

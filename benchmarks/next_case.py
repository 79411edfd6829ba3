"""Time from the key that approves a case until the next one appears, with 10,000 cases stored.

    python benchmarks/next_case.py [--cases 10000] [--decide 20] [--folder FOLDER]

A real Chromium works on a real server with the keyboard alone: it opens the queue, names the
reviewer, and presses ``A`` once per case. The time is measured in the page, from the keypress to
the frame in which question, answer and decision form are those of the next case. Between two
keypresses the page becomes idle, as it does while a person reads. The store has copies of the demo
cases with varied numbers and scores, three in ten of them audited; it is built in FOLDER (default:
the system's temporary folder). Exits 1 if the median misses its target, or if a keypress didn't
record exactly one decision on its own case. Compare results only from an otherwise idle machine.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import tempfile
from collections import Counter
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from playwright.sync_api import Page, sync_playwright

from benchmarks.ui import fill
from masis.store import Store
from tools.browser import FLAGS, installed_browser, settle
from tools.serving import serving

TARGET_MS = 300
REVIEWER = "Benchmark"
WAIT_MS = 60_000

TIMER_SCRIPT = """() => {
  const hasHeading = host => host.shadowRoot?.querySelector("h1")
  const heading = () => [...document.querySelectorAll("*")].find(hasHeading)?.shadowRoot.textContent
  const shown = () => [window.masisCase, window.masisShown?.place, heading()]
  document.addEventListener("keydown", event => {
    if (event.key !== "a" || window.timing) return
    const before = shown()
    window.timing = true
    window.took = null
    const onFrame = now => {
      const after = shown()
      if (after.every((value, index) => value !== undefined && value !== before[index])) {
        window.took = now - event.timeStamp
        window.timing = false
      } else requestAnimationFrame(onFrame)
    }
    requestAnimationFrame(onFrame)
  }, { capture: true })
}"""
"""Sets ``window.took`` after each press of A: the milliseconds until question, answer and form are
those of another case.
"""


def start(page: Page, base: str) -> None:
    """Open the first case of the queue and name the reviewer, with the keyboard alone."""
    page.goto(f"{base}/queue")
    settle(page)
    page.keyboard.press("j")
    page.keyboard.press("Enter")
    page.wait_for_url("**/review?*", timeout=WAIT_MS)
    settle(page)
    name = page.get_by_label("Who reviews?")
    name.focus()
    page.keyboard.type(REVIEWER)
    page.keyboard.press("Enter")
    name.wait_for(state="detached", timeout=WAIT_MS)
    wait_until_ready(page)


def wait_until_ready(page: Page) -> None:
    """Wait until the page is idle and accepts keys again."""
    settle(page)
    page.locator("section.panel[data-ready=true]").wait_for(timeout=WAIT_MS)


def approve(page: Page) -> float:
    """Press A once and return the milliseconds until the next case appeared."""
    page.keyboard.press("a")
    page.wait_for_function("window.took", polling=50, timeout=WAIT_MS)
    milliseconds = float(page.evaluate("window.took"))
    wait_until_ready(page)
    return milliseconds


def approve_cases(database: Path, folder: Path, count: int) -> list[float]:
    """Approve ``count`` cases and return the milliseconds of each."""
    with (
        serving("serve", "--db", str(database), folder=folder) as served,
        sync_playwright() as playwright,
    ):
        browser = playwright.chromium.launch(executable_path=installed_browser(), args=FLAGS)
        page = browser.new_page(viewport={"width": 1440, "height": 900})
        start(page, served.base)
        page.evaluate(TIMER_SCRIPT)
        times = [approve(page) for _ in range(count)]
        browser.close()
    return times


def count_approvals(database: Path) -> Counter[str]:
    """Return how many approvals by the benchmark's reviewer each case has."""
    with Store.open(database) as store:
        decisions = (entry.decision for entry in store.decisions.iterate())
        return Counter(
            decision.case_id
            for decision in decisions
            if decision and decision.reviewer == REVIEWER and decision.verdict == "approve"
        )


def main() -> int:
    """Build the store, approve cases, and print the times."""
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
        times = sorted(approve_cases(database, folder, options.decide))
        approvals = count_approvals(database)
    median, high = statistics.median(times), times[round(0.95 * (len(times) - 1))]
    print(
        f"{len(times)} cases approved with one key each, {options.cases:,} in the store: time from"
        f" keypress to next case median {median:.0f} ms, p95 {high:.0f} ms, max {times[-1]:.0f} ms"
        f" (target: median {TARGET_MS} ms)"
    )
    is_wrong = len(approvals) != options.decide or set(approvals.values()) != {1}
    if is_wrong:
        print(f"expected one decision per case, but got: {approvals}")
    return int(is_wrong or median > TARGET_MS)


if __name__ == "__main__":
    sys.exit(main())

"""How long from the key that approves a case to the next case drawn, with 10,000 cases in the
store.

    python benchmarks/next_case.py [--cases 10000] [--decide 20] [--folder FOLDER]

A real Chromium works on a real server by keyboard alone: it opens the queue, names the reviewer,
and presses ``A`` once a case. The clock runs in the page, from the press to the frame in which
question, answer and decision form are those of the next case. Between two presses the page comes to
rest, as while somebody reads. The store holds the demo cases over and over with other numbers and
scores, three in ten of them audited; it is made anew in FOLDER (default: where temporary files go).
Exits 1 where the median misses its target, or where not every press made one decision on a case of
its own. Compare runs on an otherwise idle machine only.
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

TIMED = """() => {
  const headed = host => host.shadowRoot?.querySelector("h1")
  const head = () => [...document.querySelectorAll("*")].find(headed)?.shadowRoot.textContent
  const shown = () => [window.masisCase, window.masisShown?.place, head()]
  document.addEventListener("keydown", event => {
    if (event.key !== "a" || window.timing) return
    const before = shown()
    window.timing = true
    window.took = null
    const look = now => {
      const after = shown()
      if (after.every((each, place) => each !== undefined && each !== before[place])) {
        window.took = now - event.timeStamp
        window.timing = false
      } else requestAnimationFrame(look)
    }
    requestAnimationFrame(look)
  }, { capture: true })
}"""
"""Puts the milliseconds of the last press of A into ``took``: until question, answer and form are
of another case.
"""


def start(page: Page, base: str) -> None:
    """Open the first case of the queue and name the reviewer, all by keyboard."""
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
    ready(page)


def ready(page: Page) -> None:
    """Wait until the page is at rest and takes a key for what it is: a person reads meanwhile."""
    settle(page)
    page.locator("section.panel[data-ready=true]").wait_for(timeout=WAIT_MS)


def approve(page: Page) -> float:
    """Press A once; returns the milliseconds until the next case was drawn."""
    page.keyboard.press("a")
    page.wait_for_function("window.took", polling=50, timeout=WAIT_MS)
    took = float(page.evaluate("window.took"))
    ready(page)
    return took


def measured(database: Path, folder: Path, count: int) -> list[float]:
    """Approve so many cases; returns the milliseconds of each."""
    with (
        serving("serve", "--db", str(database), folder=folder) as served,
        sync_playwright() as playwright,
    ):
        browser = playwright.chromium.launch(executable_path=installed_browser(), args=FLAGS)
        page = browser.new_page(viewport={"width": 1440, "height": 900})
        start(page, served.base)
        page.evaluate(TIMED)
        took = [approve(page) for _ in range(count)]
        browser.close()
    return took


def decided(database: Path) -> Counter[str]:
    """How many approvals the reviewer of the benchmark has on each case."""
    with Store.open(database) as store:
        decisions = (entry.decision for entry in store.decisions.iterate())
        return Counter(
            each.case_id
            for each in decisions
            if each and each.reviewer == REVIEWER and each.verdict == "approve"
        )


def main() -> int:
    """Make the store, approve, and print what it took."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--cases", type=int, default=10_000)
    parser.add_argument("--decide", type=int, default=20)
    parser.add_argument("--folder", type=Path)
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=chosen.folder) as named:
        folder = Path(named)
        database = folder / "queue.db"
        with Store.open(database) as store:
            fill(store, chosen.cases)
        took = sorted(measured(database, folder, chosen.decide))
        made = decided(database)
    median, high = statistics.median(took), took[round(0.95 * (len(took) - 1))]
    print(
        f"{len(took)} cases approved by one key each, {chosen.cases:,} in the store: from the press"
        f" to the next case drawn median {median:.0f} ms, 95% {high:.0f} ms, most {took[-1]:.0f} ms"
        f" (target: median {TARGET_MS} ms)"
    )
    wrong = len(made) != chosen.decide or set(made.values()) != {1}
    if wrong:
        print(f"decisions that are not one a case: {made}")
    return int(wrong or median > TARGET_MS)


if __name__ == "__main__":
    sys.exit(main())

"""Take screenshots of every page, light and dark, 1440 and 900 pixels wide, or those of the docs.

    python tools/screenshots.py [--out FOLDER] [--only NAME]
    python tools/screenshots.py --docs

The pages are those of the demo with a few more decisions; the files go to ``screenshots/``. A page
longer than the window is also saved in full (``-whole``), up to 4,000 pixels. ``--docs`` follows
the tutorial in ``masis demo`` and saves its screenshots to ``docs/images``.
"""

from __future__ import annotations

import argparse
import re
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from playwright.sync_api import Browser, Page, ViewportSize, sync_playwright

from masis.datasets.exports.export import Selection
from masis.screening.services import screening_service
from masis.services import Actor, Workbench
from masis.services.demo_database import NOT_AUDITED, TO_ADJUDICATE, fill_demo
from masis.services.desk import Desk
from tools.browser import FLAGS, installed_browser, settle
from tools.serving import serving

ADA = Actor(name="Ada Lind")
WIDTHS = (1440, 900)
SCHEMES = ("light", "dark")
HEIGHT = 960
LONGEST = 4_000
SHOWN = "strategy-01"
DOCS = Path(__file__).resolve().parent.parent / "docs" / "images"
DOCS_SIZE: ViewportSize = {"width": 1280, "height": 860}
WIDE: ViewportSize = {"width": 1440, "height": 960}
DECIDED = ("history-05", "history-03")
CORRECTED = "pad-03"


class Shot(NamedTuple):
    """A page to capture: its name and its address in the workbench."""

    name: str
    address: str


def prepare_database(path: Path) -> list[Shot]:
    """Create the database for the screenshots, and return one page of each kind.

    It is the demo's database with an undone decision, a grade corrected by a person, and a second
    dataset version.
    """
    workbench = Workbench.open(path)
    fill_demo(workbench, ADA)
    screening_service(workbench).override(
        ADA, "demo-pad", CORRECTED, "relevance_score", 0.95, reason="It is what we ask about."
    )
    with Desk(workbench, reviewer=ADA.name) as desk:
        entry = desk.decide(
            DECIDED[0],
            "reject",
            reason="fabricated_citation",
            note="The second sentence is what matters.",
        )
        workbench.datasets.freeze(
            ADA, "round-1", "decided", Selection(), description="Before the second round"
        )
        desk.undo(entry.id)
        desk.decide(DECIDED[1], "reject", reason="contradicted")
        workbench.datasets.freeze(
            ADA, "round-2", "decided", Selection(), description="After the second round"
        )
        newest, earlier = (run.id for run in workbench.runs.for_case(SHOWN))
    return pages(earlier, newest)


def pages(first: str, second: str) -> list[Shot]:
    """Return the pages to capture; ``first`` and ``second`` are the two audits of a case."""
    return [
        Shot("overview", "/"),
        Shot("queue", "/queue"),
        Shot(
            "queue-filtered",
            "/queue?standing=wrong,decided&flag=invalid_reference&order=least_confident",
        ),
        Shot("queue-nothing-found", "/queue?q=zzzzqqqq"),
        Shot("review", f"/review?case={SHOWN}&run={second}"),
        Shot("review-second-iteration", f"/review?case={SHOWN}&run={second}&iteration=2"),
        Shot("review-not-audited", f"/review?case={NOT_AUDITED[0]}"),
        Shot("review-no-such-case", "/review?case=nowhere"),
        Shot("review-nothing-open", "/review"),
        Shot("new", "/new"),
        Shot("import", "/import"),
        Shot("screening", "/screening?memory=yes"),
        Shot("screening-rounds", "/screening?screening=demo-pad"),
        Shot("screening-abstract", f"/screening?screening=demo-pad&abstract={CORRECTED}"),
        Shot("screening-insufficient", "/screening?screening=demo-ery&abstract=ery-02"),
        Shot("screening-no-such", "/screening?screening=nowhere"),
        Shot("compare", f"/compare?case={SHOWN}&left={first}&right={second}"),
        Shot("compare-nothing-chosen", "/compare"),
        Shot("decisions", "/decisions"),
        Shot("team", "/team"),
        Shot("metrics", "/metrics"),
        Shot("trust", "/trust"),
        Shot("settings", "/settings"),
        Shot("health", "/health"),
        Shot("retention", "/retention"),
        Shot("adjudication", f"/team?case={TO_ADJUDICATE}"),
        Shot("new-watched", f"/new?job={second}&case={SHOWN}"),
        Shot("datasets", "/datasets"),
        Shot("datasets-compared", "/datasets?version=round-2&against=round-1"),
    ]


def take(page: Page, folder: Path, name: str) -> None:
    """Capture the window, and also the whole page if it is longer."""
    page.screenshot(path=folder / f"{name}.png")
    size = page.viewport_size
    height = page.locator("[data-testid=stMain]").evaluate("main => main.scrollHeight")
    if size is None or height <= size["height"]:
        return
    page.set_viewport_size({"width": size["width"], "height": min(height, LONGEST)})
    page.wait_for_timeout(400)
    page.screenshot(path=folder / f"{name}-whole.png")
    page.set_viewport_size(size)


def walk(page: Page, base: str) -> Iterator[str]:
    """Follow the tutorial (docs/first-case.md) and yield the name of each screenshot."""

    def open_page(address: str) -> None:
        page.goto(base + address)
        settle(page)

    open_page("/")
    yield "overview"
    open_page(f"/review?case={SHOWN}")
    page.set_viewport_size(WIDE)
    settle(page)
    yield "case"
    page.set_viewport_size(DOCS_SIZE)
    page.get_by_role("button", name=re.compile("^Show changes")).click(delay=40)
    settle(page)
    page.get_by_test_id("stSelectbox").click(delay=40)
    page.get_by_role("option", name="against iteration 3").click(delay=40)
    settle(page)
    yield "changes"
    open_page(f"/review?case={SHOWN}")
    panel = page.get_by_role("region", name="Decision")
    panel.get_by_text("Override", exact=True).click(delay=40)
    panel.get_by_role("radiogroup", name="Reason").get_by_text("The evidence contradicts it").click(
        delay=40
    )
    panel.get_by_label("Corrected answer").evaluate(
        "editor => editor.scrollIntoView({block: 'center'})"
    )
    settle(page)
    yield "override"
    editor = panel.get_by_label("Corrected answer")
    editor.fill(
        re.sub(r"41\.2%", "14.2%", editor.input_value()).partition("\n\nThe company has also")[0]
    )
    panel.get_by_label("Your name").fill(ADA.name)
    panel.get_by_role("button", name=re.compile("^Submit")).click(delay=40)
    page.get_by_role("button", name=re.compile("^Undo")).first.wait_for()
    open_page("/decisions")
    page.get_by_role("button", name="Export").click(delay=40)
    settle(page)
    yield "export"
    open_page("/new")
    page.get_by_label("Question").fill("How long is the Sonder bridge, and when was it opened?")
    page.get_by_label("Evidence", exact=True).fill(
        "[1] The Sonder bridge is 120 metres long.\n\n[2] It was opened in 1931."
    )
    page.get_by_label("Answer").fill(
        "The Sonder bridge is 210 metres long [1]. It was opened in 1931 [9]."
    )
    page.get_by_label("Answer").blur()
    settle(page)
    page.get_by_role("button", name="Start the audit").click(delay=40)
    page.get_by_role("button", name="Review it").wait_for()
    settle(page)
    yield "audit"
    open_page("/trust")
    yield "trust"


def pictures_of_docs(browser: Browser, folder: Path) -> None:
    """Follow the tutorial in a new demo and save its screenshots to ``docs/images``."""
    with serving("demo", folder=folder) as served:
        context = browser.new_context(
            viewport=DOCS_SIZE, color_scheme="light", reduced_motion="reduce"
        )
        page = context.new_page()
        for name in walk(page, served.base):
            page.wait_for_timeout(500)
            page.screenshot(path=DOCS / f"{name}.png")
        context.close()


def main() -> int:
    """Take all screenshots."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=Path("screenshots"))
    parser.add_argument("--only", default="", help="only pages whose name begins with this")
    parser.add_argument("--docs", action="store_true", help="only the screenshots of the docs")
    options = parser.parse_args()
    browser_path = installed_browser()
    if browser_path is None:
        print("No Chromium or Chrome is installed. Install one, then run make browser.")
        return 1
    if options.docs:
        with tempfile.TemporaryDirectory() as temporary, sync_playwright() as playwright:
            browser = playwright.chromium.launch(executable_path=browser_path, args=FLAGS)
            pictures_of_docs(browser, Path(temporary))
            browser.close()
        return 0
    options.out.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        shots = [
            shot
            for shot in prepare_database(folder / "demo.db")
            if shot.name.startswith(options.only)
        ]
        with (
            serving("serve", "--db", str(folder / "demo.db"), folder=folder) as served,
            serving("serve", "--db", str(folder / "empty.db"), folder=folder) as empty,
            sync_playwright() as playwright,
        ):
            browser = playwright.chromium.launch(executable_path=browser_path, args=FLAGS)
            for scheme in SCHEMES:
                for width in WIDTHS:
                    context = browser.new_context(
                        viewport={"width": width, "height": HEIGHT},
                        color_scheme=scheme,  # type: ignore[arg-type]
                        reduced_motion="reduce",
                    )
                    page = context.new_page()
                    everything = [(served.base, shot) for shot in shots]
                    if "overview-empty".startswith(options.only):
                        everything.append((empty.base, Shot("overview-empty", "/")))
                    for base, shot in everything:
                        page.goto(base + shot.address)
                        settle(page)
                        page.wait_for_timeout(500)
                        take(page, options.out, f"{shot.name}-{scheme}-{width}")
                    context.close()
            browser.close()
    print(f"{len(list(options.out.glob('*.png')))} pictures in {options.out}")
    return 0


if __name__ == "__main__":
    sys.exit(main())

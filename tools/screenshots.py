"""Every page as a picture, light and dark, 1440 and 900 wide, into ``screenshots/``.

    python tools/screenshots.py [--out FOLDER] [--only NAME]

The demo is served with most cases audited, some decided, one audited twice. A page longer than the window is also taken
whole (``-whole``), as far as 4,000 pixels.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from playwright.sync_api import Page, sync_playwright

from masis.datasets.exports import Selection
from masis.schema.case import Case
from masis.schema.review import Decision
from masis.screening.demo import CORPUS, demo_questions
from masis.services import Actor, Workbench, demo_cases
from tools.browser import FLAGS, installed_browser, settle
from tools.serving import serving

ADA = Actor(name="Ada Lind")
WIDTHS = (1440, 900)
SCHEMES = ("light", "dark")
HEIGHT = 960
LONGEST = 4_000
SHOWN = "strategy-01-fabricated"
NOT_AUDITED = ("home-01-unsafe", "law-01-clean", "history-01-clean")


class Shot(NamedTuple):
    """A page to look at: a name, and the address within the workbench."""

    name: str
    address: str


def prepared(path: Path) -> list[Shot]:
    """Make the database that the pages are shown with; returns the pages, every kind of them."""
    workbench = Workbench.open(path)
    cases = {case.id: case for case in demo_cases()}
    workbench.cases.add(ADA, cases.values())
    for case_id in NOT_AUDITED:
        cases.pop(case_id)
    runs = {case.id: workbench.audits.audit(ADA, case).id for case in cases.values()}
    strict = workbench.settings.model_copy(update={"strictness": "strict", "max_iterations": 1})
    second = workbench.audits.audit(ADA, cases[SHOWN], settings=strict).id
    for number, decision in enumerate(_decisions(workbench, list(cases.values()), runs)):
        workbench.reviews.submit(Actor(name=decision.reviewer), decision)
        if number == 8:
            workbench.datasets.freeze(ADA, "round-1", "decided", Selection(), description="Before the second round")
    workbench.datasets.freeze(ADA, "round-2", "decided", Selection(), description="After the second round")
    _screenings(workbench)
    undone = workbench.reviews.current(next(iter(cases)))
    assert undone is not None
    workbench.reviews.undo(ADA, undone.id)
    workbench.close()
    return [*pages(runs[SHOWN], second), Shot("new-watched", f"/new?job={runs[SHOWN]}&case={SHOWN}")]


def pages(first: str, second: str) -> list[Shot]:
    """The addresses of a prepared database."""
    return [
        Shot("overview", "/"),
        Shot("queue", "/queue"),
        Shot("queue-filtered", "/queue?standing=wrong,decided&flag=invalid_reference&order=least_confident"),
        Shot("queue-nothing-found", "/queue?q=zzzzqqqq"),
        Shot("review", f"/review?case={SHOWN}&run={first}"),
        Shot("review-second-iteration", f"/review?case={SHOWN}&run={first}&iteration=2"),
        Shot("review-not-audited", f"/review?case={NOT_AUDITED[0]}"),
        Shot("review-no-such-case", "/review?case=nowhere"),
        Shot("review-nothing-open", "/review"),
        Shot("new", "/new"),
        Shot("import", "/import"),
        Shot("screening", "/screening?memory=yes"),
        Shot("screening-rounds", "/screening?screening=hf"),
        Shot("screening-abstract", "/screening?screening=hf&abstract=hf-13"),
        Shot("screening-insufficient", "/screening?screening=ery&abstract=ery-02"),
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
        Shot("datasets", "/datasets"),
        Shot("datasets-compared", "/datasets?version=round-2&against=round-1"),
    ]


def _screenings(workbench: Workbench) -> None:
    """The demo questions screened, one of them with a person's word."""
    workbench.corpora.add_demo(ADA)
    for asked in demo_questions():
        settings = workbench.settings.model_copy(update={"screening_retrieve": asked.retrieve})
        workbench.screenings.screen(
            ADA, asked.question, (f"corpus:{CORPUS}",), settings=settings, screening_id=asked.id
        )
    workbench.screenings.override(ADA, "hf", "hf-13", "relevance_score", 0.95, reason="It is what we ask about.")


def _decisions(workbench: Workbench, cases: list[Case], runs: dict[str, str]) -> Iterator[Decision]:
    for number, case in enumerate(case for case in cases[:14] if case.id != SHOWN):
        verdict = ("approve", "override", "approve", "reject", "escalate")[number % 5]
        corrected = f"{case.answer} Checked against the evidence." if verdict == "override" else None
        yield Decision(
            reviewer=("Ada Lind", "Grace Okoye")[number % 2],
            case_id=case.id,
            run_id=runs[case.id],
            iteration=1,
            verdict=verdict,
            reason="" if verdict == "approve" else "A reference names no evidence of this case",
            note="The second sentence is what matters here." if number % 3 == 0 else "",
            corrected_answer=corrected,
        )


def take(page: Page, folder: Path, name: str) -> None:
    """The window as it is, and the whole page where it is longer."""
    page.screenshot(path=folder / f"{name}.png")
    size = page.viewport_size
    height = page.locator("[data-testid=stMain]").evaluate("main => main.scrollHeight")
    if size is None or height <= size["height"]:
        return
    page.set_viewport_size({"width": size["width"], "height": min(height, LONGEST)})
    page.wait_for_timeout(400)
    page.screenshot(path=folder / f"{name}-whole.png")
    page.set_viewport_size(size)


def main() -> int:
    """Take them all."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=Path("screenshots"))
    parser.add_argument("--only", default="", help="pages whose name begins so")
    given = parser.parse_args()
    found = installed_browser()
    if found is None:
        print("No Chromium or Chrome is installed (then: make browser).")
        return 1
    given.out.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        shots = [shot for shot in prepared(folder / "demo.db") if shot.name.startswith(given.only)]
        with (
            serving("serve", "--db", str(folder / "demo.db"), folder=folder) as served,
            serving("serve", "--db", str(folder / "empty.db"), folder=folder) as empty,
            sync_playwright() as playwright,
        ):
            browser = playwright.chromium.launch(executable_path=found, args=FLAGS)
            for scheme in SCHEMES:
                for width in WIDTHS:
                    context = browser.new_context(
                        viewport={"width": width, "height": HEIGHT},
                        color_scheme=scheme,  # type: ignore[arg-type]
                        reduced_motion="reduce",
                    )
                    page = context.new_page()
                    everything = [(served.base, shot) for shot in shots]
                    if "overview-empty".startswith(given.only):
                        everything.append((empty.base, Shot("overview-empty", "/")))
                    for base, shot in everything:
                        page.goto(base + shot.address)
                        settle(page)
                        page.wait_for_timeout(500)
                        take(page, given.out, f"{shot.name}-{scheme}-{width}")
                    context.close()
            browser.close()
    print(f"{len(list(given.out.glob('*.png')))} pictures in {given.out}")
    return 0


if __name__ == "__main__":
    sys.exit(main())

"""What keeps people out of a page: axe-core on every page, light and dark, its width, and the
contrast of the marks.
"""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable, Iterator
from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Page
from playwright.sync_api import TimeoutError as PlaywrightTimeout

from tests.browser.conftest import Tab, serving
from tools.screenshots import SHOWN, Shot, prepare_database

AXE = files("axe_playwright_python").joinpath("axe.min.js").read_text(encoding="utf-8")
GRAVE = {"serious", "critical"}
HEADINGS = "heading-order"
"""Moderate by axe's reckoning, but who listens to a page finds their way by its headings."""
WIDE = {"width": 1440, "height": 900}
NARROW = {"width": 900, "height": 900}
WIDEST = {"width": 1920, "height": 900}
OVERFLOW = (
    "(main => main.scrollWidth > main.clientWidth)(document.querySelector('[data-testid=stMain]'))"
)

# What Streamlit draws itself and gives no way to change. Each is left out where the finding names
# exactly this element.
OF_STREAMLIT: dict[str, str] = {}
CONTRAST = 4.5
PARTS = 4
"""The pages are looked at in so many tests: on a busy machine all of them take longer than a test
may.
"""

IN_SCHEME = """
scheme => getComputedStyle(document.querySelector('[data-testid=stApp]')).colorScheme === scheme
  && document.fonts.status === 'loaded'
  && document.getAnimations().every(element => element.timeline !== document.timeline || element.playState !== 'running')
"""

ALL = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]
OF_LOOKS = ["color-contrast", "link-in-text-block", "scrollable-region-focusable", "target-size"]
"""What colours and width can break: all that is looked for once the page was looked at in one
scheme and width.
"""

RUN_AXE = """
async ([exclude, runOnly]) => {
  const result = await axe.run({ exclude: exclude.map(element => [element]) }, { resultTypes: ['violations'], runOnly });
  return result.violations.map(found => ({
    rule: found.id, impact: found.impact, help: found.help,
    nodes: found.nodes.map(node => (
      { html: node.html.slice(0, 200), target: String(node.target), why: node.failureSummary })),
  }));
}
"""

# Colours as the browser shows them: the ink of an element against all the backgrounds that lie
# under it, mixed.
SHOWN_COLOURS = """
elements => elements.map(element => {
  const context = Object.assign(document.createElement('canvas'), { width: 1, height: 1 }).getContext('2d');
  const paint = colour => { context.fillStyle = colour; context.fillRect(0, 0, 1, 1); };
  const read = () => [...context.getImageData(0, 0, 1, 1).data].slice(0, 3);
  const layers = [];
  const over = at => at.parentElement || at.getRootNode().host;
  for (let at = element; at; at = over(at))
    layers.unshift(getComputedStyle(at).backgroundColor);
  paint('white');
  layers.forEach(paint);
  const under = read();
  paint(getComputedStyle(element).color);
  return { text: element.textContent.slice(0, 40), name: element.className, ink: read(), under };
})
"""


@pytest.fixture(scope="module")
def shown(
    browser: Browser, tmp_path_factory: pytest.TempPathFactory, demo_database: Path
) -> Iterator[tuple[str, list[Shot]]]:
    folder = tmp_path_factory.mktemp("shown")
    shutil.copy(demo_database, folder / "shown.db")  # otherwise every demo case is audited again
    shots = prepare_database(folder / "shown.db")
    with serving("serve", "--db", str(folder / "shown.db"), folder=folder) as base:
        yield base, shots


def grave(page: Page, rules: list[str] = ALL) -> list[str]:
    """The serious and critical findings in what is ours, and headings out of order."""
    present = [selector for selector in OF_STREAMLIT if page.locator(selector).count()]
    found: list[dict[str, Any]] = page.evaluate(RUN_AXE, [present, rules])
    return [
        f"{violation['impact']} {violation['rule']}: {node['target']} {node['html']}"
        f" ({' '.join(node['why'].split())})"
        for violation in found
        if violation["impact"] in GRAVE or violation["rule"] == HEADINGS
        for node in violation["nodes"]
    ]


def stays_wide(page: Page) -> bool:
    """Whether the page is wider than its window when Streamlit has drawn it anew: a resized frame
    is drawn in steps.
    """
    try:
        page.wait_for_function(f"!({OVERFLOW})", timeout=20_000)
    except PlaywrightTimeout:
        return True
    return False


@pytest.mark.parametrize("part", range(PARTS))
def test_axe_finds_no_barrier_on_any_page(
    shown: tuple[str, list[Shot]], open_tab: Callable[..., Tab], part: int
) -> None:
    base, shots = shown
    tab = open_tab(base, scheme="dark")
    found: dict[str, list[str]] = {}
    for shot in shots[part::PARTS]:
        page = tab.open(shot.address)
        page.evaluate(AXE)
        for scheme, size, rules in (("dark", WIDE, ALL), ("light", NARROW, OF_LOOKS)):
            page.emulate_media(color_scheme=scheme)  # type: ignore[arg-type]
            page.set_viewport_size(size)  # type: ignore[arg-type]
            page.wait_for_function(IN_SCHEME, arg=scheme)
            if barriers := grave(page, rules):
                found[f"{shot.name}, {scheme}"] = barriers
        for size in (NARROW, WIDE, WIDEST):
            page.set_viewport_size(size)  # type: ignore[arg-type]
            if stays_wide(page):
                found.setdefault(shot.name, []).append(f"wider than a window of {size['width']}")
        page.emulate_media(color_scheme="dark")
        page.set_viewport_size(WIDE)  # type: ignore[arg-type]
    assert not found, json.dumps(found, indent=1, ensure_ascii=False)


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_marks_have_enough_contrast_with_their_background(
    shown: tuple[str, list[Shot]], open_tab: Callable[..., Tab], scheme: str
) -> None:
    base, _ = shown
    tab = open_tab(base, scheme=scheme)
    page = tab.open(f"/review?case={SHOWN}&iteration=1")
    page.locator(".text .mark").first.wait_for()
    marks = page.locator(
        ".text .mark, .text [class*='ref-'], .legend button, .legend li, article.issue *"
    )
    colours = marks.evaluate_all(SHOWN_COLOURS)
    assert len(colours) > 10
    faint = {
        f"{colour['name']}: {colour['text']}": round(contrast(colour["ink"], colour["under"]), 2)
        for colour in colours
        if colour["text"].strip() and contrast(colour["ink"], colour["under"]) < CONTRAST
    }
    assert not faint


def contrast(ink: list[int], under: list[int]) -> float:
    """The ratio of WCAG 2.2, 1 to 21."""
    lighter, darker = sorted((_luminance(ink), _luminance(under)), reverse=True)
    return (lighter + 0.05) / (darker + 0.05)


def _luminance(colour: list[int]) -> float:
    linear = [
        part / 255 / 12.92 if part / 255 <= 0.04045 else ((part / 255 + 0.055) / 1.055) ** 2.4
        for part in colour
    ]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def test_the_exceptions_are_elements_of_streamlit_itself() -> None:
    ours = re.compile(r"masis|st-key|\.root")
    assert not [selector for selector in OF_STREAMLIT if ours.search(selector)]
    assert all(OF_STREAMLIT.values())

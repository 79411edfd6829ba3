"""Each view of the page of failure modes with hostile text: barriers, markup, width, keyboard."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import pytest
from playwright.sync_api import Browser, Page, expect

from masis.schema.codebook import FailureMode
from masis.services import Workbench
from tests.browser.conftest import Tab, serving
from tests.browser.test_accessibility import (
    ALL,
    AXE,
    IN_SCHEME,
    NARROW,
    OF_LOOKS,
    WIDE,
    grave,
    stays_wide,
)
from tests.browser.test_hostile_text import DIRECTIONS, MARKUP, assert_nothing_ran
from tests.modes import ADA, a_label, add_audited, an_issue, find_observations, reject

OpenTab = Callable[..., Tab]
VISIBLE_MARKUP = "<script>window.hacked = 1</script>"
NAME = f"{MARKUP[:60]} {DIRECTIONS}"[:100]
METADATA = {"field": NAME, "dataset": "made for tests"}
NOTES = (
    MARKUP,
    f"{MARKUP} again",
    f"{DIRECTIONS} הערה על התשובה",
    f"{DIRECTIONS} הערה על התשובה שוב",
    "long " * 2_000,
    "x" * 10_000,
    "The dose is wrong.",
    "A wrong dose is given.",
)


class HostileModes(NamedTuple):
    """A server with hostile failure modes, and the addresses of the views."""

    base: str
    views: dict[str, str]


@pytest.fixture(scope="module")
def hostile(browser: Browser, tmp_path_factory: pytest.TempPathFactory) -> Iterator[HostileModes]:
    folder: Path = tmp_path_factory.mktemp("modes-views")
    workbench = Workbench.open(folder / "modes.db")
    for number, note in enumerate(NOTES):
        case_id = f"case {number} {MARKUP[:40]}"
        issue = an_issue(f"key-{number}", description=f"{MARKUP} {number}", quote=DIRECTIONS)
        add_audited(workbench.store, case_id, issue, run_id=f"run-{number}", metadata=METADATA)
        reject(workbench, case_id, ADA, a_label(note=note))
    long = dict.fromkeys(("definition", "example"), f"{MARKUP} {DIRECTIONS}")
    for code, name in (("markup", NAME), ("long", "y" * 100), ("merged", f"m {NAME}"[:100])):
        workbench.modes.add_mode(ADA, FailureMode(code=code, name=name, **long))
    workbench.modes.merge(ADA, ["merged"], "long")
    rows = find_observations(workbench, kinds=("reason",))
    workbench.modes.apply(ADA, ["markup"], [row.id for row in rows[:3]])
    workbench.modes.apply(ADA, ["long"], [row.id for row in rows[3:5]])
    first, second, *_ = workbench.modes.groups(ADA).groups
    workbench.modes.dismiss_group(ADA, first)
    workbench.close()
    views = {
        "read": "/modes",
        "groups": "/modes?view=groups",
        "group": f"/modes?view=groups&group={second.id}",
        "book": "/modes?view=book",
        "mode": "/modes?view=book&code=markup",
        "counts": "/modes?view=counts&facet=field",
    }
    with serving("serve", "--db", str(folder / "modes.db"), folder=folder) as base:
        yield HostileModes(base, views)


def open_view(tab: Tab, address: str) -> Page:
    """Open a view with all of its expanders."""
    tab.page.add_init_script("localStorage.setItem('masis-reviewer', 'Ada')")
    page = tab.open(address)
    closed = page.locator("[data-testid=stExpander] details:not([open]) > summary")
    while closed.count():
        closed.first.click(delay=40)
        tab.settle()
    return page


def test_no_view_has_a_barrier_in_light_or_dark(hostile: HostileModes, open_tab: OpenTab) -> None:
    tab = open_tab(hostile.base, scheme="dark")
    barriers: dict[str, list[str]] = {}
    for view, address in hostile.views.items():
        page = open_view(tab, address)
        page.evaluate(AXE)
        for scheme, size, rules in (("dark", WIDE, ALL), ("light", NARROW, OF_LOOKS)):
            page.emulate_media(color_scheme=scheme)  # type: ignore[arg-type]
            page.set_viewport_size(size)  # type: ignore[arg-type]
            page.wait_for_function(IN_SCHEME, arg=scheme)
            if of_view := grave(page, rules):
                barriers[f"{view}, {scheme}"] = of_view
            if stays_wide(page):
                barriers.setdefault(view, []).append(f"wider than a window of {size['width']}")
        page.emulate_media(color_scheme="dark")
        page.set_viewport_size(WIDE)  # type: ignore[arg-type]
    assert not barriers, json.dumps(barriers, indent=1, ensure_ascii=False)


def test_every_view_shows_hostile_text_as_text(hostile: HostileModes, open_tab: OpenTab) -> None:
    tab = open_tab(hostile.base, width=900)
    for view, address in hostile.views.items():
        page = open_view(tab, address)
        if view in ("read", "mode", "counts"):
            expect(page.get_by_text(VISIBLE_MARKUP).first).to_be_visible()
        assert_nothing_ran(tab)


def test_a_group_is_dismissed_and_restored_with_the_keyboard(
    hostile: HostileModes, open_tab: OpenTab
) -> None:
    tab = open_tab(hostile.base)
    page = open_view(tab, hostile.views["group"])
    dismiss = page.get_by_role("button", name="Dismiss group")
    for _ in range(60):
        page.keyboard.press("Tab")
        if dismiss.evaluate("button => button === document.activeElement"):
            break
    page.keyboard.press("Enter")
    expect(page.get_by_text("The group was dismissed.")).to_be_visible()
    summary = page.get_by_text("Dismissed groups (2)")
    expect(summary).to_be_visible()
    summary.locator("xpath=ancestor::summary").focus()
    page.keyboard.press("Enter")
    restore = page.get_by_role("button", name="Restore").first
    expect(restore).to_be_visible()
    for _ in range(10):
        page.keyboard.press("Tab")
        if restore.evaluate("button => button === document.activeElement"):
            break
    page.keyboard.press("Enter")
    expect(page.get_by_text("Group restored.")).to_be_visible()
    expect(page.get_by_text("Dismissed groups (1)")).to_be_visible()
    tab.assert_clean()

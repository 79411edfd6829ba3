"""The main loop by keyboard alone."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, expect

from masis.services import Workbench
from tests.browser.conftest import Tab, serving
from tests.browser.test_decision import cases, panel
from tests.reviewing import ADA

OpenTab = Callable[..., Tab]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("keys")


@pytest.fixture(scope="module")
def base(browser: Browser, folder: Path) -> Iterator[str]:
    workbench = Workbench.open(folder / "keys.db")
    for case in cases(11):
        workbench.cases.add(ADA, [case])
        workbench.audits.audit(ADA, case)
    with serving("serve", "--db", str(folder / "keys.db"), folder=folder) as address:
        yield address


def test_ten_decisions_by_keyboard_alone(base: str, folder: Path, open_tab: OpenTab) -> None:
    tab = open_tab(base)
    page = tab.open("/review?case=bridge-00&order=oldest")
    found = panel(page)
    status = found.get_by_role("status").first
    expect(found).to_be_visible()
    press = page.keyboard.press
    decided = []
    for number in range(10):
        expect(found.get_by_role("radio", name="Approve")).not_to_be_checked()
        verdict, keys = [("approve", "A"), ("reject", "X3"), ("escalate", "E1"), ("override", "O3")][number % 4]
        for key in keys:
            press(key)
        if verdict == "override":
            press("W")
            press("Control+End")
            page.keyboard.type(" It was opened in 1931 [chunk_2].")
        press("Control+Enter")
        if number == 0:
            expect(status).to_contain_text("Type your name")
            page.keyboard.type("Ada")
            press("Control+Enter")
        expect(status).to_contain_text("Next (N)")
        decided.append(verdict)
        press("N")
        expect(page).to_have_url(f"{base}/review?order=oldest&case=bridge-{number + 1:02}")
        expect(found.last.locator(".standing")).to_be_hidden()  # for a moment the case before is there as well
        expect(found).to_have_count(1)
    expect(page.get_by_text("1 to review in this queue")).to_be_visible()
    workbench = Workbench.open(folder / "keys.db")
    log = [entry.decision for entry in workbench.store.decisions.iterate()]
    assert [decision.verdict for decision in log if decision] == decided
    assert {decision.reviewer for decision in log if decision} == {"Ada"}
    press("A")
    press("Control+Enter")
    expect(status).to_contain_text("Next (N)")
    expect(page.get_by_text("No case to review in this queue")).to_be_visible()
    press("U")
    expect(status).to_contain_text("Undone")
    press("K")
    expect(page).to_have_url(f"{base}/review?order=oldest&case=bridge-09")
    expect(found.locator(".standing")).to_contain_text("Rejected")


def test_keys_are_shown_and_do_nothing_while_a_person_types(base: str, open_tab: OpenTab) -> None:
    tab = open_tab(base)
    page = tab.open("/review?case=bridge-10&order=oldest")
    found = panel(page)
    expect(found).to_be_visible()
    page.keyboard.press("h")
    keys = page.get_by_role("dialog", name="Keys")
    expect(keys).to_contain_text("Next case to review")
    page.keyboard.press("Escape")
    expect(keys).to_be_hidden()
    page.keyboard.press("t")
    page.keyboard.type("an axe, nothing else? u h")
    expect(found.get_by_label("Note")).to_have_value("an axe, nothing else? u h")
    expect(found.get_by_role("radio", name="Approve")).not_to_be_checked()
    expect(page).to_have_url(f"{base}/review?case=bridge-10&order=oldest")


def test_a_queue_filter_travels_along_and_its_ends_are_said(base: str, open_tab: OpenTab) -> None:
    tab = open_tab(base)
    page = tab.open("/review?case=bridge-09&order=oldest")
    found = panel(page)
    expect(found).to_be_visible()
    page.keyboard.press("j")
    expect(page).to_have_url(f"{base}/review?order=oldest&case=bridge-10")
    expect(found.last.get_by_role("radiogroup", name="Verdict")).to_be_visible()
    expect(found).to_have_count(1)
    page.keyboard.press("j")
    expect(found.get_by_role("status").first).to_contain_text("last case of the list")

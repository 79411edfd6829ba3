"""A reader follows a pair on Compare with pointer and keys, and comes back from its case."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from playwright.sync_api import expect

from masis.services import Workbench
from tests.browser.conftest import Tab, serving
from tests.services.test_comparison import add_pairs


def test_a_clicked_question_comes_into_view_and_keys_go_on_and_its_case_leads_back(
    open_tab: Callable[..., Tab], tmp_path: Path
) -> None:
    database = tmp_path / "systems.db"
    workbench = Workbench.open(database)
    add_pairs(workbench, worse=40, better=1)
    workbench.close()
    with serving("serve", "--db", str(database), folder=tmp_path) as base:
        tab = open_tab(base)
        page = tab.open("/compare")
        last = page.get_by_role("link", name="What is worse-9?")
        last.scroll_into_view_if_needed()
        last.click(delay=40)
        tab.settle()
        question = page.get_by_role("heading", name="What is worse-9?")
        expect(question).to_be_in_viewport()
        expect(question).to_be_focused()
        assert "first=v1&second=v2&pair=worse-9" in page.url
        page.keyboard.press("p")
        tab.settle()
        expect(page.get_by_role("heading", name="What is worse-8?")).to_be_focused()
        page.keyboard.press("n")
        tab.settle()
        expect(question).to_be_focused()
        page.get_by_role("button", name="Swap").click(delay=40)
        tab.settle()
        expect(page.get_by_text("Improvements: question")).to_be_visible()
        expect(question).to_be_visible()
        page.get_by_role("link", name="worse-9:v1", exact=True).click(delay=40)
        expect(page.get_by_role("link", name="Answer of v2 to this question")).to_be_visible()
        page.get_by_role("button", name="Compare", exact=True).click(delay=40)
        tab.settle()
        expect(question).to_be_visible()
        assert "first=v2&second=v1&list=better&pair=worse-9" in page.url
        page.get_by_role("link", name="Overview").click(delay=40)
        tab.settle()
        tab.choose("Understand", "Compare")
        expect(page.get_by_text("Before: v2")).to_be_visible()
        tab.assert_clean()

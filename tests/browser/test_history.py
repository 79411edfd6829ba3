"""Back and forward: a step of the person is a step of the browser."""

from __future__ import annotations

import re
from collections.abc import Callable

from playwright.sync_api import expect

from tests.browser.conftest import Tab

CASE = "finance-02-altered"
OpenTab = Callable[..., Tab]


def test_back_from_the_queue_leads_to_the_case_that_was_left(demo: str, open_tab: OpenTab) -> None:
    tab = open_tab(demo)
    page = tab.open(f"/review?state=needs_review&case={CASE}")
    page.get_by_role("button", name="Queue", exact=True).click(delay=40)
    expect(page).to_have_url(re.compile(r"/queue\?state=needs_review$"))
    tab.settle()
    page.go_back()
    expect(page).to_have_url(re.compile(rf"/review\?.*case={CASE}"))
    expect(page.get_by_role("heading", name="Summarise the Q3 2021 results of Pinnock Retail.")).to_be_visible()


def test_back_from_a_case_is_one_step_to_the_list_as_it_was(demo: str, open_tab: OpenTab) -> None:
    tab = open_tab(demo)
    page = tab.open("/queue?flag=contradicted")
    page.locator("table.list tbody a").first.click(delay=40)
    expect(page).to_have_url(re.compile(r"/review\?.*case="))
    tab.settle()
    page.go_back()
    expect(page).to_have_url(re.compile(r"/queue\?flag=contradicted$"))
    expect(page.locator("table.list")).to_be_visible()
    page.go_forward()
    expect(page).to_have_url(re.compile(r"/review\?.*case="))
    expect(page.get_by_text("Evidence (", exact=False).first).to_be_visible()


def test_a_filter_chosen_on_a_later_page_is_one_step(demo: str, open_tab: OpenTab) -> None:
    tab = open_tab(demo)
    page = tab.open("/queue?page=2")
    page.get_by_role("button", name=re.compile("^contradicted")).click(delay=40)
    expect(page).to_have_url(re.compile(r"/queue\?flag=contradicted$"))
    tab.settle()
    page.go_back()
    expect(page).to_have_url(re.compile(r"/queue\?page=2$"))
    expect(page.get_by_text("21 to 40 of", exact=False)).to_be_visible()


def test_back_from_a_page_of_the_frame_leads_to_the_page_before(demo: str, open_tab: OpenTab) -> None:
    tab = open_tab(demo)
    page = tab.open("/queue")
    for name in ("Decisions", "Metrics"):
        page.get_by_test_id("stTopNavLink").filter(has_text=name).click(delay=40)
        expect(page.get_by_role("heading", name=name, exact=True)).to_be_visible()
        tab.settle()
    page.go_back()
    expect(page).to_have_url(re.compile(r"/decisions$"))
    page.go_back()
    expect(page).to_have_url(re.compile(r"/queue$"))

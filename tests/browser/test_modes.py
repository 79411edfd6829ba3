"""From no codebook to counts: code rows with a new name, confirm a group, follow a count."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

import pytest
from playwright.sync_api import Browser, expect

from tests.browser.conftest import Tab
from tests.browser.test_decision import ReviewServer

OpenTab = Callable[..., Tab]


@pytest.fixture(scope="module")
def server(browser: Browser, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ReviewServer]:
    served = ReviewServer(tmp_path_factory.mktemp("modes"))
    served.fill(8)
    served.start()
    yield served
    served.kill()


def test_a_new_name_codes_three_rows_and_its_count_leads_to_their_cases(
    server: ReviewServer, open_tab: OpenTab
) -> None:
    tab = open_tab(server.base)
    tab.page.add_init_script("localStorage.setItem('masis-reviewer', 'Ada')")
    page = tab.open("/modes")
    choices = page.locator("[class*=st-key-modes-row-] label")
    for place in range(3):
        choices.nth(place).click()
        tab.settle()
    page.get_by_role("combobox", name="Code").fill("Invented source")
    page.keyboard.press("Enter")
    page.get_by_role("button", name="Apply to 3 chosen rows").click()
    expect(page.get_by_text(re.compile("Coded 3 rows"))).to_be_visible()
    page = tab.open("/modes?view=counts")
    page.get_by_role("link", name="Invented source").click()
    expect(page).to_have_url(re.compile("queue.*mode=invented-source"))
    tab.assert_clean()

"""The key that verifies claims without their passages, and the outcome at the claim."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

import pytest
from playwright.sync_api import Browser, expect

from tests.browser.conftest import Tab
from tests.browser.test_decision import ReviewServer


@pytest.fixture(scope="module")
def server(browser: Browser, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ReviewServer]:
    served = ReviewServer(tmp_path_factory.mktemp("minimal"))
    served.fill(1)
    served.start()
    yield served
    served.kill()


def test_a_key_verifies_claims_and_the_claim_says_what_changed(
    server: ReviewServer, open_tab: Callable[..., Tab]
) -> None:
    tab = open_tab(server.base)
    tab.page.add_init_script("localStorage.setItem('masis-reviewer', 'Ada')")
    page = tab.open("/review?case=bridge-00")
    page.locator("[data-ready=true]").wait_for()
    tab.settle()
    page.keyboard.press("z")
    dialog = page.get_by_role("dialog")
    expect(dialog).to_contain_text("It calls no model and is free.")
    dialog.get_by_role("button", name="Verify", exact=True).click(delay=40)
    expect(dialog).to_have_count(0)
    expect(page.get_by_text(re.compile(r"The verdict changed for \d of \d claim"))).to_be_visible()
    page.locator(".text .mark", has_text="is 100 metres long").first.click(delay=40)
    expect(
        page.get_by_text(re.compile("Without its passages .*chunk_1.* the verdict"))
    ).to_be_visible()
    tab.assert_clean()

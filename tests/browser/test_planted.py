"""A lead plants a fault, a reviewer decides the copy without knowing, and is told afterwards."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

import pytest
from playwright.sync_api import Browser, expect

from tests.browser.conftest import Tab
from tests.browser.test_decision import ReviewServer, open_case
from tests.planted import audit_copies, fill_with_approved

OpenTab = Callable[..., Tab]


@pytest.fixture(scope="module")
def server(browser: Browser, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ReviewServer]:
    served = ReviewServer(tmp_path_factory.mktemp("planted"))
    fill_with_approved(served.workbench, 3)
    served.start()
    yield served
    served.kill()


def test_a_planted_fault_looks_like_any_case_until_it_is_decided(
    server: ReviewServer, open_tab: OpenTab
) -> None:
    tab = open_tab(server.base)
    tab.page.add_init_script("localStorage.setItem('masis-reviewer', 'Ada')")
    page = tab.open("/trust?view=planted")
    page.get_by_label("Copies (of 3 correct answers)").fill("1")
    page.get_by_role("button", name="Plant faults").click()
    expect(page.get_by_text(re.compile("1 copy planted"))).to_be_visible()
    (copy_id,) = audit_copies(server.workbench)
    fault = server.workbench.store.planted.copies()[0].fault

    panel = open_case(tab, copy_id)
    expect(panel).to_have_attribute("data-ready", "true")
    tab.settle()
    assert "planted" not in page.content().casefold()

    page.keyboard.press("x")
    page.keyboard.press("3")
    page.keyboard.press("Control+Enter")
    told = page.get_by_test_id("stAlert").filter(has_text="planted fault")
    expect(told).to_contain_text(f"from “{fault.before}” to “{fault.after}”")

    tab.open("/trust?view=planted")
    expect(page.get_by_text("1 decided")).to_be_visible()
    expect(page.get_by_role("link", name=copy_id)).to_be_visible()

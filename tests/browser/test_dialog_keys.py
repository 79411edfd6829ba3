"""Keys while a dialog opens, is open, or has just closed: they are the dialog's, never the page's."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.browser.conftest import Tab
from tests.browser.mounting import Mounted
from tests.browser.test_decision import ReviewServer, cases
from tests.reviewing import ADA

OpenTab = Callable[..., Tab]
DIALOG = "[data-testid=stDialog]"
NOTED = """() => {
  window.keys = []
  document.addEventListener("keydown", event => {
    if (event.key !== "Control") window.keys.push(event.key)
  })
}"""
"""Note the keys that the page gets, as Streamlit and the desk do."""

BURST_OVER = "() => performance.now() - window.masisDialogKeys.typedAt > 650"
"""Whether the next letter isn't part of what was typed in the dialog."""


@pytest.fixture(scope="module")
def server(browser: Browser, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ReviewServer]:
    served = ReviewServer(tmp_path_factory.mktemp("dialogs"))
    for case in cases(2):  # an approval of a true answer asks nothing
        answer = case.answer.partition(" It")[0] if case.answer else ""
        case = case.model_copy(update={"answer": f"{answer} Its owner gave the length [chunk_1]."})
        served.workbench.cases.add(ADA, [case])
        served.workbench.audits.audit(ADA, case)
    served.start()
    yield served
    served.kill()


def open_first(server: ReviewServer, open_tab: OpenTab) -> Page:
    tab = open_tab(server.base)
    tab.page.add_init_script("localStorage.setItem('masis-reviewer', 'Ada')")
    page = tab.open("/review?case=bridge-00")
    page.locator("[data-ready=true]").wait_for()
    tab.settle()
    return page


def test_what_is_typed_into_a_dialog_decides_nothing(
    server: ReviewServer, open_tab: OpenTab
) -> None:
    page = open_first(server, open_tab)
    page.keyboard.press("y")
    page.keyboard.type("a")  # before the dialog is there
    expect(page.locator(DIALOG)).to_contain_text("Failure modes of bridge-00")
    field = page.get_by_role("combobox", name="Failure mode")
    expect(field).to_be_focused()
    page.keyboard.type("radar axe", delay=20)
    expect(field).to_have_value("radar axe")
    page.locator(DIALOG).get_by_text("Failure modes of bridge-00").click()
    page.keyboard.type("ra", delay=20)  # without the focus in the field
    expect(page.locator(DIALOG)).to_be_visible()
    expect(field).to_be_focused()
    page.keyboard.press("Escape")
    page.keyboard.press("Escape")
    expect(page.locator(DIALOG)).to_have_count(0)
    # the second dialog of a case has no field here, and R doesn't close it
    page.keyboard.press("z")
    expect(page.locator(DIALOG)).to_contain_text("Verify bridge-00 without passages")
    page.locator(DIALOG).get_by_text("Verify bridge-00 without passages").click()
    page.keyboard.type("raxaxe", delay=20)
    page.keyboard.press("Control+Enter")
    page.wait_for_timeout(100)
    expect(page.locator(DIALOG)).to_be_visible()
    assert server.decisions("bridge-00") == []
    expect(page.get_by_role("radio", name="Approve")).not_to_be_checked()


def test_no_key_reaches_the_page_behind_the_key_sheet(
    server: ReviewServer, open_tab: OpenTab
) -> None:
    page = open_first(server, open_tab)
    sheet = page.get_by_role("dialog", name="Keys")
    page.keyboard.press("h")
    expect(sheet).to_be_visible()
    page.keyboard.type("whaxay", delay=20)  # a word with an H doesn't close it
    page.keyboard.press("Control+Enter")
    expect(sheet).to_be_visible()
    page.mouse.click(4, 450)  # beside the sheet
    page.keyboard.type("ya", delay=20)
    page.wait_for_timeout(100)
    expect(page.locator(DIALOG)).to_have_count(0)
    page.keyboard.press("Escape")
    expect(sheet).to_be_hidden()
    assert server.decisions("bridge-00") == []
    expect(page.get_by_role("radio", name="Approve")).not_to_be_checked()


def test_the_rest_of_a_word_is_ignored_once_its_dialog_has_closed(
    mount: Callable[..., Mounted],
) -> None:
    page = mount("reviewer", "way_back", "key_sheet", "dialog_keys").page
    page.evaluate(NOTED)
    dialog = "<div data-testid='stDialog'><h2 tabindex='-1'>Name</h2><input></div>"
    page.evaluate("html => document.body.insertAdjacentHTML('beforeend', html)", dialog)
    expect(page.locator("input")).to_be_focused()
    page.keyboard.type("sour")
    page.evaluate(
        "() => { window.keys = []; document.querySelector('[data-testid=stDialog]').remove() }"
    )
    page.keyboard.type("ce a")
    page.keyboard.press("Enter")
    page.keyboard.press("Control+Enter")
    assert page.evaluate("window.keys") == []
    page.wait_for_function(BURST_OVER)
    page.keyboard.type("a")
    assert page.evaluate("window.keys") == ["a"]


def test_a_link_to_the_open_page_with_another_query_changes_the_address(
    mount: Callable[..., Mounted],
) -> None:
    page = mount("reviewer", "way_back", "key_sheet", "dialog_keys").page
    for query in ("?case=a", "?case=b", "?case=b"):
        # Streamlit's own handler prevents the browser's navigation
        page.evaluate(
            """href => {
              const link = document.createElement("a")
              Object.assign(link, { href, onclick: event => event.preventDefault() })
              link.dataset.testid = "stPageLink-NavLink"
              link.append(document.createElement("span"))
              document.body.append(link)
              link.firstChild.click()
            }""",
            query,
        )
        assert page.url.endswith(query)
    page.go_back()  # the repeated click has no entry of its own
    expect(page).to_have_url(re.compile("case=a$"))


def test_enter_opens_the_first_case_after_a_click_on_a_filter(
    server: ReviewServer, open_tab: OpenTab
) -> None:
    tab = open_tab(server.base)
    page = tab.open("/queue")
    page.locator("[data-testid=stButtonGroup] button").first.click()
    expect(page).to_have_url(re.compile("standing="))
    tab.settle()
    page.keyboard.press("Enter")
    expect(page).to_have_url(re.compile("/review.*case=bridge-"))


def test_the_desk_itself_says_that_the_server_doesnt_answer(
    server: ReviewServer, open_tab: OpenTab
) -> None:
    page = open_first(server, open_tab)
    status = page.locator(".panel [role=status]").first
    server.kill()
    expect(status).to_contain_text("The server doesn't answer", timeout=60_000)
    expect(page.locator(DIALOG)).to_have_count(0)
    server.start()
    expect(status).not_to_contain_text("The server doesn't answer", timeout=60_000)

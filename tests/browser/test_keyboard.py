"""The main loop by keyboard alone."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Locator, expect

from masis.schema.review import Decision
from masis.services import Workbench
from tests.browser.conftest import Tab, serving, until
from tests.browser.mounting import Mounted
from tests.browser.test_decision import cases, panel
from tests.reviewing import ADA

OpenTab = Callable[..., Tab]


def test_another_page_of_any_list_is_read_from_its_top(mount: Callable[..., Mounted]) -> None:
    shown: dict[str, Any] = {
        "name": "modes",
        "page": "",
        "at": "",
        "search": None,
        "rows": True,
        "keys": [],
    }
    keys = mount("page_keys", "key_sheet")
    keys.draw(shown)
    keys.page.evaluate(
        """() => {
            const main = document.querySelector("[data-testid=stMain]")
            main.style.cssText = "display: block; height: 100px; overflow: auto"
            main.append(Object.assign(document.createElement("div"), { style: "height: 900px" }))
            main.scrollTo(0, 400)
        }"""
    )
    scrolled = "document.querySelector('[data-testid=stMain]').scrollTop"
    keys.draw(shown)
    assert keys.page.evaluate(scrolled) == 400
    keys.draw(shown | {"page": "2"})
    assert keys.page.evaluate(scrolled) == 0


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("keys")


@pytest.fixture(scope="module")
def base(browser: Browser, folder: Path) -> Iterator[str]:
    workbench = Workbench.open(folder / "keys.db")
    for number, made in enumerate(cases(11)):
        # nothing in it is wrong, so that an approval asks nothing; a claim that is not confirmed
        # needs review
        answer = (
            f"Bridge {number} is {100 + number} metres long [chunk_1]. Its owner gave the length"
            " [chunk_1]."
        )
        case = made.model_copy(update={"answer": answer})
        workbench.cases.add(ADA, [case])
        workbench.audits.audit(ADA, case)
    with serving("serve", "--db", str(folder / "keys.db"), folder=folder) as address:
        yield address


def ready(found: Locator) -> None:
    """Wait until what was drawn last can have been read: keys before that decide nothing."""
    expect(found).to_have_count(1)  # for a moment the case before is there as well
    expect(found).to_have_attribute("data-ready", "true")


def decisions(folder: Path) -> list[Decision]:
    log = Workbench.open(folder / "keys.db").store.decisions.iterate()
    return [entry.decision for entry in log if entry.decision is not None]


def test_ten_keyboard_decisions_each_open_the_next_case(
    base: str, folder: Path, open_tab: OpenTab
) -> None:
    tab = open_tab(base)
    page = tab.open("/review?case=bridge-00&order=oldest")
    found = panel(page)
    status = found.get_by_role("status").first
    press = page.keyboard.press
    decided = []
    for number in range(10):
        ready(found)
        expect(found.get_by_role("heading", name="Decision on the original answer")).to_be_visible()
        page.locator("[data-testid=stMain]").evaluate("main => main.scrollTo(0, 600)")
        verdict, keys = [("approve", "A"), ("reject", "X3"), ("escalate", "E1"), ("override", "O")][
            number % 4
        ]
        for key in keys:
            press(key)
        if verdict == "override":
            expect(found.get_by_label("Corrected answer")).to_be_focused()
            press("Control+End")
            page.keyboard.type(" It was opened in 1931 [chunk_2].")
            press("Escape")
            press("3")
        if verdict != "approve":  # an approval is one key
            press("Enter")  # never records a decision
            press("Control+Enter")
        if number == 0:
            expect(status).to_contain_text("Type your name")
            page.keyboard.type("Ada")
            press("Control+Enter")
        decided.append(verdict)
        expect(page).to_have_url(f"{base}/review?order=oldest&case=bridge-{number + 1:02}")
        expect(found.last.get_by_role("status")).to_contain_text(
            f"the original answer of bridge-{number:02}."
        )
        # the next case begins with its question, wherever the one before was left
        page.wait_for_function("document.querySelector('[data-testid=stMain]').scrollTop === 0")
    expect(page.get_by_text("This is the last one to review")).to_be_visible()
    assert [decision.verdict for decision in decisions(folder)] == decided
    assert {decision.reviewer for decision in decisions(folder)} == {"Ada"}
    assert {decision.iteration for decision in decisions(folder)} == {1}
    # U on the next case undoes the decision before it, names it and opens its case
    ready(found)
    press("U")
    expect(page).to_have_url(f"{base}/review?order=oldest&case=bridge-09")
    expect(found.last.get_by_role("status").first).to_contain_text(
        "Undone: rejected the original answer of bridge-09"
    )
    assert decisions(folder)[-1].kind == "undo"
    ready(found)
    press("Control+Enter")  # what was entered is back in the form
    expect(page).to_have_url(f"{base}/review?order=oldest&case=bridge-10")
    expect(found.last.get_by_role("status")).to_contain_text(
        "the original answer of bridge-09."
    )  # the address changes first
    ready(found)
    press("A")
    expect(status).to_contain_text(
        "Approved the original answer. Nothing left to decide in this queue."
    )
    expect(page.get_by_text("0 left to review")).to_be_visible()
    press("U")
    expect(status).to_contain_text("Undone")


def test_list_keys_stop_at_the_end_are_documented_and_are_off_while_typing(
    base: str, open_tab: OpenTab
) -> None:
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
    page.keyboard.press("h")
    keys = page.get_by_role("dialog", name="Keys")
    expect(keys).to_contain_text("Next case to review")
    page.keyboard.press("Escape")
    expect(keys).to_be_hidden()
    page.keyboard.press("t")
    page.keyboard.type("an axe, nothing else? u h")
    expect(found.get_by_label("Note")).to_have_value("an axe, nothing else? u h")
    expect(found.get_by_role("radio", name="Approve")).not_to_be_checked()
    expect(page).to_have_url(f"{base}/review?order=oldest&case=bridge-10")
    page.keyboard.press("Escape")
    page.keyboard.press("/")
    page.keyboard.type("axe", delay=5)  # decides nothing on its way
    expect(page).to_have_url(f"{base}/queue?order=oldest")
    search = page.locator(".st-key-search input")
    expect(search).to_be_focused()
    page.keyboard.type("bridge")
    expect(search).to_have_value(re.compile("bridge$"))


@pytest.mark.parametrize(
    "address", ["/queue", "/decisions", "/team", "/modes", "/modes?view=groups", "/datasets"]
)
def test_j_and_k_move_through_the_rows_of_every_list(
    demo: str, open_tab: OpenTab, address: str
) -> None:
    tab = open_tab(demo)
    page = tab.open(address)
    rows: list[str] = []
    for key in ("j", "j", "k"):
        page.keyboard.press(key)
        until(lambda: page.evaluate(FOCUSED) != "", page, "a row has the focus")
        rows.append(page.evaluate(FOCUSED))
    first, second, third = rows
    assert first == third
    assert second != first or address in ("/team", "/datasets"), "a list with a single row"


FOCUSED = """() => {
  let focused = document.activeElement
  while (focused.shadowRoot?.activeElement) focused = focused.shadowRoot.activeElement
  const row = focused.closest("tr, [class*=st-key-list-row-]")
  return row ? row.textContent : ""
}"""

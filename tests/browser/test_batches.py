"""Many cases at once, by keyboard alone: select rows, preview, apply, undo, and find the batch."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Locator, Page, expect

from masis.schema.review import BATCH, Decision
from masis.services import Workbench
from tests.browser.conftest import Tab, serving
from tests.browser.mounting import Mounted
from tests.browser.test_decision import cases
from tests.reviewing import ADA

OpenTab = Callable[..., Tab]
CASES = 24


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("batches")


@pytest.fixture(scope="module")
def base(browser: Browser, folder: Path) -> Iterator[str]:
    workbench = Workbench.open(folder / "desk.db")
    for made in cases(CASES):
        case = made.model_copy(
            update={"answer": "The bridge is 100 metres long [chunk_1]. Its owner said so."}
        )
        workbench.cases.add(ADA, [case])
    workbench.close()
    with serving("serve", "--db", str(folder / "desk.db"), folder=folder) as address:
        yield address


def decisions(folder: Path) -> list[Decision]:
    workbench = Workbench.open(folder / "desk.db")
    made = [entry.decision for entry in workbench.store.decisions.iterate() if entry.decision]
    workbench.close()
    return made


def open_queue(tab: Tab, address: str = "/queue?order=oldest") -> Page:
    page = tab.open(address)
    expect(page.get_by_role("table", name="Cases")).to_be_visible()
    return page


def selected_rows(page: Page) -> Locator:
    return page.get_by_role("toolbar", name="Actions on the selected cases")


def test_cases_are_rejected_and_undone_by_keyboard(
    base: str, folder: Path, open_tab: OpenTab
) -> None:
    page = open_queue(open_tab(base))
    press = page.keyboard.press
    for key in ("j", "x", "j", "j", "Shift+X"):
        press(key)
    expect(selected_rows(page)).to_contain_text("3 cases selected")
    press("x")  # the row with the focus again
    expect(selected_rows(page)).to_contain_text("2 cases selected")
    expect(page.get_by_role("checkbox", name="Select bridge-00", exact=True)).to_be_checked()
    press("b")
    expect(page.get_by_role("button", name="Approve", exact=True)).to_be_focused()
    press("Tab")
    press("Enter")
    dialog = page.get_by_role("dialog")
    expect(dialog).to_contain_text("Reject selected cases")
    dialog.get_by_label("Your name").focus()
    page.keyboard.type("Ada")
    press("Tab")
    dialog.get_by_role("combobox").focus()
    page.keyboard.type("Says more")
    press("Enter")
    apply = dialog.get_by_role("button", name=re.compile("Reject 2 cases"))
    expect(dialog).to_contain_text("2 of 2 selected cases")
    expect(apply).to_be_enabled()
    assert not decisions(folder)
    apply.focus()
    press("Enter")
    expect(dialog).to_contain_text("Rejected 2 cases.")
    made = decisions(folder)
    assert [(entry.case_id, entry.verdict, entry.reviewer) for entry in made] == [
        ("bridge-00", "reject", "Ada"),
        ("bridge-01", "reject", "Ada"),
    ]
    assert {entry.machine_shown for entry in made} == {("state", "headline")}
    assert len({entry.extra[BATCH] for entry in made}) == 1
    dialog.get_by_role("button", name="Undo 2 entries").focus()
    press("Enter")
    expect(dialog).to_contain_text("Undone: 2 of 2 entries.")
    assert [decision.kind for decision in decisions(folder)[2:]] == ["undo", "undo"]
    dialog.get_by_role("button", name="Close", exact=True).last.focus()
    press("Enter")
    expect(dialog).to_have_count(0)
    expect(selected_rows(page)).to_have_count(0)
    # X selects, and the other keys of the list still do what they did
    press("j")
    press("Enter")
    expect(page).to_have_url(re.compile(r"/review\?.*case=bridge-0"))


def test_all_that_match_are_tagged_and_the_log_undoes_the_batch(
    base: str, folder: Path, open_tab: OpenTab
) -> None:
    before = len(decisions(folder))
    tab = open_tab(base)
    page = open_queue(tab)
    page.keyboard.press("j")
    page.keyboard.press("x")
    page.get_by_role("button", name=f"Select all {CASES} that match").click()
    expect(selected_rows(page)).to_contain_text(f"{CASES} cases selected")
    page.get_by_role("button", name="Tag", exact=True).click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_label("Your name").fill("Ada")
    page.keyboard.press("Tab")
    expect(dialog.get_by_label("Your name")).to_have_count(0)
    dialog.get_by_role("combobox").click()
    page.keyboard.type("bridges")
    expect(page.get_by_role("option", name="Add: bridges")).to_be_visible()
    page.keyboard.press("Enter")
    expect(page.get_by_role("option", name="Add: bridges")).to_have_count(0)
    page.keyboard.press("Tab")  # closes the list
    apply = dialog.get_by_role("button", name=f"Tag {CASES} cases")
    expect(apply).to_be_enabled()
    apply.click()
    expect(dialog).to_contain_text(f"Tagged {CASES} cases.")
    assert len(decisions(folder)) == before + CASES
    dialog.get_by_role("link", name="Its entries in the log").click()
    expect(page).to_have_url(re.compile(r"/decisions\?batch="))
    expect(page.get_by_text(re.compile(r"Batch \w+ by Ada: Tagged 24 cases"))).to_be_visible()
    page.get_by_role("button", name="Undo this batch").click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_role("button", name=f"Undo {CASES} entries").click()
    expect(dialog).to_contain_text(f"Undone: {CASES} of {CASES} entries.")
    assert [decision.kind for decision in decisions(folder)[-CASES:]] == ["untag"] * CASES


def test_a_case_links_to_the_others_with_nearly_the_same_answer(
    base: str, open_tab: OpenTab
) -> None:
    page = open_tab(base).open("/review?case=bridge-05")
    page.get_by_role("link", name=f"{CASES - 1} more cases have nearly the same answer").click()
    expect(page).to_have_url(re.compile(r"/queue\?similar=bridge-05"))
    expect(page.get_by_text(re.compile(f"{CASES - 1} (undecided )?cases")).first).to_be_visible()
    expect(page.get_by_role("button", name=re.compile("Nearly the same answer as"))).to_be_visible()


def test_the_choice_of_rows_ends_with_its_list_and_opens_nothing(
    mount: Callable[..., Mounted],
) -> None:
    table = mount("linked_table", "table", "row_choice", "row_keys")
    page = table.page
    table.draw(rows_of("a", "b", "c", "d"))
    box = page.get_by_role("checkbox", name="Select b", exact=True)
    box.click()
    page.get_by_role("checkbox", name="Select d", exact=True).click(modifiers=["Shift"])
    toolbar = selected_rows(page)
    expect(toolbar).to_contain_text("3 cases selected")
    assert table.messages_sent() == []  # a box opens no case, and choosing runs no page
    page.get_by_role("checkbox", name="Select all cases listed here").click()
    expect(toolbar).to_contain_text("4 cases selected")
    # another page of the same data keeps the rows that are still there
    table.draw(rows_of("b", "e"))
    expect(toolbar).to_contain_text("1 case selected")
    page.get_by_role("button", name="Star", exact=True).click()
    chosen = {"action": "star", "rows": ["b"], "everything": False}
    assert table.messages_sent() == [("trigger", "act", chosen)]
    page.get_by_role("button", name="Select all 9 that match").click()
    page.get_by_role("button", name="Star", exact=True).click()
    assert table.messages_sent()[-1][2] == {"action": "star", "rows": [], "everything": True}
    page.keyboard.press("Escape")
    expect(toolbar).to_have_count(0)
    box.click()
    table.draw(rows_of("b", "e", scope="another list"))
    expect(toolbar).to_have_count(0)
    table.draw(rows_of("b", "e", choosing=None))
    expect(page.get_by_role("checkbox")).to_have_count(0)


def rows_of(*ids: str, scope: str = "a list", **more: object) -> dict[str, object]:
    """Data of a table with these cases, which can be selected for one action."""
    rows = [
        {
            "cells": [{"text": f"Question {name}", "href": f"review?case={name}", "open": name}],
            "open": name,
            "marked": False,
        }
        for name in ids
    ]
    choosing = {
        "actions": [{"name": "star", "title": "Star"}],
        "total": 9,
        "noun": "case",
        "scope": scope,
    }
    columns = [{"title": "Question", "kind": "main", "hide": ""}]
    data = {"columns": columns, "rows": rows, "description": "Cases", "sticky_header": False}
    return {**data, "choosing": choosing, **more}

"""The whole way a reviewer goes, in one sitting: from the demo to an exported decision."""

from __future__ import annotations

import json
import re
import sqlite3
from collections.abc import Callable
from pathlib import Path

from playwright.sync_api import Locator, Page, expect

from tests.browser.conftest import Tab, until
from tools.browser import settle

OpenTab = Callable[..., Tab]
QUESTION = "How long is the Sonder bridge, and when was it opened?"
EVIDENCE = (
    "[1] The Sonder bridge is 120 metres long.\n\n[2] It was opened in 1931.\n\n[3] It carries two"
    " lanes."
)
ANSWER = (
    "The Sonder bridge is 210 metres long [1]. It was opened in 1931 [9]. It carries two lanes [3]."
)
CORRECTED = "The Sonder bridge is 120 metres long [1]. It was opened in 1931 [2]."
LONG_S = 60_000


def test_from_the_demo_to_an_exported_decision(
    demo: str, demo_folder: Path, open_tab: OpenTab
) -> None:
    tab = open_tab(demo)
    a_fabricated_citation_is_found_and_struck_through(tab)
    case_id = a_pasted_answer_is_audited_and_watched(tab)
    its_iterations_are_compared(tab)
    it_is_overridden_undone_and_decided_again(tab)
    entries = log_rows(demo_folder / "demo.db", case_id)
    assert [(entry["kind"], entry["verdict"]) for entry in entries] == [
        ("decision", "override"),
        ("undo", None),
        ("decision", "override"),
    ]
    assert entries[2]["corrected_answer"] == CORRECTED
    assert entries[2]["reviewer"] == "Ada Lind"
    assert entries[2]["note"] == "Measured again."
    the_decision_is_exported(tab, case_id)


def a_fabricated_citation_is_found_and_struck_through(tab: Tab) -> None:
    page = tab.open("/queue")
    page.get_by_label("Search").fill("Halvorsen Marine slump")
    page.get_by_label("Search").press("Enter")
    settle(page)  # a person sees the list that was asked for before opening a case of it
    page.locator("table.list tbody a", has_text="Halvorsen Marine").first.click(delay=40)
    expect(page.locator(".evidence article.card").first).to_be_visible()
    audit = page.get_by_role("button", name=re.compile("Audit (now|again)"))
    expect(audit).to_be_visible()
    if "now" in audit.inner_text():
        audit.click(delay=40)
    mark = page.locator(".text .ref-fabricated").first
    page.get_by_role("radio", name=re.compile("1 · original")).click(delay=40, timeout=LONG_S)
    expect(mark).to_contain_text("[chunk_99]")
    struck = (
        "e => [e, ...e.querySelectorAll('*')].some(x => getComputedStyle(x).textDecorationLine ==="
        " 'line-through')"
    )
    until(lambda: mark.evaluate(struck), page, "a fabricated reference is struck through")


def a_pasted_answer_is_audited_and_watched(tab: Tab) -> str:
    page = tab.open("/new")
    page.get_by_label("Question").fill(QUESTION)
    page.get_by_label("Evidence", exact=True).fill(EVIDENCE)
    page.get_by_label("Answer").fill(ANSWER)
    page.get_by_label("Answer").blur()
    expect(page.get_by_text("3 chunks:")).to_be_visible()
    page.get_by_role("button", name="Start the audit").click(delay=40)
    expect(page).to_have_url(re.compile(r"job=\w+"), timeout=LONG_S)
    expect(page.locator("li.group").nth(1)).to_be_visible(timeout=LONG_S)
    page.get_by_role("button", name="Review it").click(delay=40, timeout=LONG_S)
    expect(page).to_have_url(re.compile("/review.*case="), timeout=LONG_S)
    tab.settle()
    found = re.search(r"case=([\w-]+)", page.url)
    assert found
    return found.group(1)


def its_iterations_are_compared(tab: Tab) -> None:
    page = tab.page
    page.get_by_role("radio", name=re.compile("2 · revision")).click(delay=40)
    expect(page).to_have_url(re.compile("iteration=2"))  # the original is what a case opens on
    expect(page.locator(".text .ref-fabricated")).to_have_count(0)
    page.locator("h2", has_text="Issues").first.click()
    page.keyboard.press("d")
    expect(page).to_have_url(re.compile("against=1"))
    expect(page.locator(".text del", has_text="210").first).to_be_visible()
    expect(page.locator(".text ins", has_text="120").first).to_be_visible()
    expect(page.locator(".difference-key")).to_contain_text("removed")
    page.reload()
    expect(page.locator(".text ins", has_text="120").first).to_be_visible()
    page.get_by_role("button", name="Show marks").click(delay=40)
    expect(page.locator(".text .mark").first).to_be_visible()
    tab.settle()


def it_is_overridden_undone_and_decided_again(tab: Tab) -> None:
    panel = tab.page.get_by_role("region", name="Decision")
    panel.get_by_label("Open the next case").uncheck()
    overridden(panel, "It was 120.")
    expect(panel.get_by_role("status").first).to_contain_text("Overrode revision 2. Undo (U)")
    panel.get_by_role("button", name="Undo").click(delay=40)
    expect(panel.get_by_role("status").first).to_contain_text("Undone")
    expect(panel.get_by_label("Corrected answer")).to_have_value(CORRECTED)
    overridden(panel, "Measured again.")
    expect(panel.get_by_role("status").first).to_contain_text("Overrode revision 2.")
    panel.get_by_text("History of this case").click(delay=40)
    expect(panel.locator(".entries li")).to_have_count(4)  # the audit, two decisions, an undo


def overridden(panel: Locator, note: str) -> None:
    panel.get_by_text("Override", exact=True).click(delay=40)
    panel.get_by_label("Corrected answer").fill(f"{CORRECTED} It is red.")
    for checked in ("2 references", "0 fabricated", "1 uncited"):
        expect(panel.locator(".foot .check")).to_contain_text(checked)
    expect(panel.locator(".editor")).to_contain_text("No citation: It is red.")
    panel.get_by_label("Corrected answer").fill(CORRECTED)
    reasons = panel.get_by_role("group", name="Reasons")
    reason = reasons.get_by_text("The evidence contradicts it")
    # a second press would take the reason back, which is still chosen after an undo
    if not reasons.get_by_role("checkbox", checked=True).count():
        reason.click(delay=40)
    panel.get_by_label("Note").fill(note)
    name = panel.get_by_label("Your name")
    if name.is_visible():
        name.fill("Ada Lind")
    panel.get_by_role("button", name="Submit").click(delay=40)


def log_rows(database: Path, case_id: str) -> list[dict[str, object]]:
    with sqlite3.connect(database) as connection:
        connection.row_factory = sqlite3.Row
        rows = connection.execute(
            """
            SELECT kind, verdict, decision_payloads.reviewer, payload ->> '$.note' AS note,
                payload ->> '$.corrected_answer' AS corrected_answer
            FROM decision_log JOIN decision_payloads ON entry_seq = decision_log.seq
            JOIN cases ON cases.seq = case_seq WHERE cases.id = ? ORDER BY decision_log.seq
            """,
            [case_id],
        )
        return [dict(row) for row in rows]


def the_decision_is_exported(tab: Tab, case_id: str) -> None:
    page: Page = tab.open("/decisions")
    expect(page.locator("body")).to_contain_text("Measured again.")
    page.get_by_role("button", name="Export").click(delay=40)
    page.get_by_role("button", name=re.compile("Prepare.*decided case.*JSON Lines")).click(delay=40)
    with page.expect_download() as download:
        page.get_by_role("button", name=re.compile("Download.*decided case.*JSON Lines")).click(
            delay=40
        )
    lines = Path(download.value.path()).read_text(encoding="utf-8").splitlines()
    (exported,) = [line for line in lines if case_id in line]
    assert CORRECTED in json.dumps(json.loads(exported), ensure_ascii=False)

"""A file in a real browser: uploaded, its columns chosen, imported, audited; what was chosen outlives a reload."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

from playwright.sync_api import expect

from tests.browser.conftest import Tab
from tests.browser.test_new_audit import pick

OpenTab = Callable[..., Tab]
HOSTILE = (
    "<script>document.title='owned'</script><img src=http://example.org/x onerror=alert(1)> ![](http://example.org/y)"
)
ROWS = (
    "frage,fundstelle 1,fundstelle 2,antwort\n"
    'How long is the Marle weir?,"The Marle weir is 120 m long.",It was built in 1931.,It is 210 m long [1].\n'
    f'How old is it?,It was built in 1931.,"{HOSTILE}",It was built in 1931 [1].\n'
)


def test_a_file_with_columns_of_its_own_becomes_audited_cases(demo: str, open_tab: OpenTab, tmp_path: Path) -> None:
    file = tmp_path / f"{HOSTILE.replace('/', '_')[:60]}.csv"
    file.write_text(ROWS, encoding="utf-8")
    tab = open_tab(demo)
    page = tab.open("/import")
    page.locator("input[type=file]").set_input_files(str(file))
    expect(page.get_by_text("The first row fits no format")).to_be_visible()
    begin = page.get_by_role("button", name="Import the cases")
    expect(begin).to_be_disabled()
    tab.settle()
    pick(page, "Question", "frage: How long is the Marle weir?")
    for column in ("fundstelle 1: The Marle weir is 120 m long.", "fundstelle 2: It was built in 1931."):
        tab.settle()
        pick(page, "Evidence", column)
        page.keyboard.press("Escape")
    expect(begin).to_be_enabled()
    tab.settle()
    pick(page, "Answer (optional)", "antwort: It is 210 m long [1].")
    first = page.get_by_role("region", name=re.compile("Case 1: "))
    expect(first.get_by_text("An answer with 1 citation;")).to_be_visible()
    page.reload()
    tab.settle()
    expect(first.get_by_text("An answer with 1 citation;")).to_be_visible()
    expect(page.get_by_text("Of 2 rows, 2 cases can be imported, 0 rows can't.")).to_be_visible()
    page.keyboard.press("Control+Enter")
    expect(page.get_by_role("heading", name="2 cases imported")).to_be_visible()
    page.get_by_role("button", name=re.compile("Audit ")).click(delay=40)
    page.get_by_role("main").get_by_role("link", name="Queue").click(delay=40)
    tab.settle()
    imported = page.get_by_role("link", name="How long is the Marle weir?")
    expect(imported).to_be_visible()
    imported.click(delay=40)
    expect(page.get_by_text("Approve", exact=True)).to_be_visible(timeout=60_000)
    assert page.title() != "owned"

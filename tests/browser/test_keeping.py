"""Retention and health in the browser: nothing goes without a name and a word; what is gone or
wrong is told.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from pathlib import Path

from playwright.sync_api import expect

from masis.schema.case import Case
from masis.services import Workbench, demo_cases
from tests.browser.conftest import Tab, serving
from tests.browser.test_accessibility import AXE, grave
from tests.reviewing import ADA

OpenTab = Callable[..., Tab]
HOSTILE = "<img src=x onerror=alert(1)>"


def audited_long_ago(path: Path) -> list[str]:
    """A workbench whose audits ended forty days ago; returns the ids of its cases."""
    workbench = Workbench.open(path)
    cases = [*list(demo_cases())[:5]]
    cases.append(cases[0].model_copy(update={"id": HOSTILE}))
    cases = [Case.model_validate(case.to_json_dict()) for case in cases]
    workbench.cases.add(ADA, cases)
    for case in cases:
        workbench.audits.audit(ADA, case)
    workbench.store.close()
    with sqlite3.connect(path) as connection:
        connection.execute(
            "UPDATE jobs SET ended_at = strftime('%Y-%m-%dT%H:%M:%fZ', julianday(ended_at) - 40)"
        )
    connection.close()
    return [case.id for case in cases]


def test_purging_expired_audits_needs_a_name_and_a_confirmation_and_the_case_says_so(
    open_tab: OpenTab, tmp_path: Path
) -> None:
    cases = audited_long_ago(tmp_path / "old.db")
    with serving("serve", "--db", str(tmp_path / "old.db"), folder=tmp_path) as base:
        tab = open_tab(base, scheme="dark")
        page = tab.open("/retention")
        expect(page.get_by_text("6 audits", exact=True).first).to_be_visible()
        page.get_by_text("What would be removed (6)").click()
        expect(
            page.get_by_role("table", name="What would be removed").get_by_role(
                "link", name=HOSTILE
            )
        ).to_be_visible()
        page.evaluate(AXE)
        assert not grave(page)
        page.get_by_label("Your name, for the record").fill("Grace")
        page.get_by_role("button", name="Remove 6 audits").click()
        expect(page.get_by_text("Nothing was removed. Type “remove” first.")).to_be_visible()
        page.get_by_label("Type “remove”").fill("remove")
        page.get_by_role("button", name="Remove 6 audits").click()
        expect(page.get_by_text("6 audits removed.")).to_be_visible()
        expect(page.get_by_text("nothing", exact=True)).to_be_visible()
        expect(page.get_by_role("table", name="Removals")).to_contain_text("Grace")
        page.evaluate(AXE)
        assert not grave(page)
        page = tab.open(f"/review?case={cases[1]}&iteration=1")
        expect(page.get_by_text("was removed on")).to_be_visible()
        page.get_by_role("button", name="Audit again").click(delay=40)
        expect(page.locator("article.issue").first).to_be_visible(timeout=60_000)
        expect(page.get_by_text("was removed on")).to_have_count(0)
        assert len(Workbench.open(tmp_path / "old.db").cases.open(cases[1]).runs) == 2

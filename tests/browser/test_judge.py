"""A team aligns its judge in a real browser, from decided cases to an adopted version."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from playwright.sync_api import expect

from masis.services import Workbench
from tests.browser.conftest import Tab, serving
from tests.judging import ADA, KEY, configure, make_decided, read_as_a_judge
from tests.serving_models import ModelServer


def test_two_proposed_rules_are_told_tried_compared_and_adopted(
    open_tab: Callable[..., Tab], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SCRIPTED_KEY", KEY)
    database = tmp_path / "judge.db"
    with ModelServer(read_as_a_judge) as server:
        configure(tmp_path, server)
        make_decided(database, server)
        with serving("serve", "--db", str(database), folder=tmp_path) as base:
            tab = open_tab(base)
            page = tab.open("/judge")

            def press(name: str) -> None:
                page.get_by_role("button", name=name, exact=True).click(delay=40)
                tab.settle()

            page.get_by_role("button", name="Your name").click(delay=40)
            name = page.get_by_role("textbox", name="Your name", exact=True)
            name.fill("Ada")
            name.press("Enter")
            page.keyboard.press("Escape")
            tab.settle()
            page.get_by_role("spinbutton", name="Seed (optional)").fill("11")
            press("Choose these cases")
            expect(page.get_by_text("24 cases chosen.")).to_be_visible()
            press("See where the judge differs")
            expect(page.get_by_role("heading", name="False flags (4)")).to_be_visible()
            page.get_by_role("radio", name="3 Write rules").click(delay=40)
            tab.settle()
            page.get_by_role("textbox", name="Name", exact=True).fill("team 1")
            press("Write a new draft")
            for _ in range(2):
                adds = page.get_by_role("button", name="Add it to team 1")
                adds.and_(page.locator(":enabled")).first.click(delay=40)
                tab.settle()
            expect(page.get_by_role("heading", name="Rules of team 1 (2)")).to_be_visible()
            press("Try it on the held-out half")
            expect(page.get_by_text("The trial needs up to 12 calls")).to_be_visible()
            press("Try it on 12 cases")
            page.get_by_role("button", name="Compare before and after").click(
                delay=40, timeout=60_000
            )
            tab.settle()
            expect(page.get_by_role("heading", name="Flipped cases (8)")).to_be_visible()
            expect(page.get_by_text("100% (12 of 12")).to_be_visible()
            press("Adopt team 1")
            expect(page.get_by_text("Audits use team 1, adopted by Ada")).to_be_visible()
            assert "version=" in page.url
        workbench = Workbench.open(database)
        adopted = workbench.judge.find_adopted(ADA)
        workbench.close()
    assert adopted is not None
    assert (adopted.name, adopted.decided_by) == ("team 1", "Ada")

"""The evidence critic in a real browser: a question run to convergence, a grade overridden, the
kept set audited.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from tests.browser.conftest import Tab
from tests.rooms import needs_screening

pytestmark = needs_screening
OpenTab = Callable[..., Tab]
STRONG = "Does velotarine lower blood pressure in adults with resistant hypertension?"
BORDERLINE = "Do adults on long-term proton pump inhibitors develop vitamin B12 deficiency?"


def run_screening(tab: Tab, question: str) -> Page:
    """Load the demo abstracts if need be, fill in a demo question, and run it to its end."""
    page = tab.open("/screening")
    load = page.get_by_role("button", name="Load the demo abstracts").first
    if load.is_visible():
        load.click(delay=40)
        tab.settle()
    page.locator(".st-key-screening-demo-question").get_by_role("combobox").click()
    page.get_by_role("option", name=question).click()
    expect(page.get_by_label("Question", exact=True)).to_have_value(question)
    expect(page.get_by_text("The first search finds")).to_be_visible()
    page.get_by_role("button", name="Screen the evidence").click(delay=40)
    expect(page).to_have_url(re.compile(r"screening=\w+"), timeout=20_000)
    expect(page.get_by_role("heading", name="Convergence")).to_be_visible(timeout=60_000)
    tab.settle()
    return page


def outcome(page: Page) -> str:
    return page.locator(".st-key-screening-head .pill").first.inner_text()


def overridden(page: Page, tab: Tab, value: str, reason: str) -> None:
    """Set the recommendation of the opened abstract."""
    panel = page.locator(".st-key-override-panel")
    panel.get_by_role("radio", name=value, exact=True).click(delay=40)
    tab.settle()
    panel.get_by_label("Reason").fill(reason)
    panel.get_by_label("Reason").blur()
    tab.settle()
    panel.get_by_role("button", name="Override the field").click(delay=40)
    tab.settle()


@pytest.mark.spec("AESOP-OVERRIDE", "AESOP-ANCHORS", "AESOP-ROUNDS")
def test_a_screening_converges_is_overridden_and_its_kept_set_is_audited(
    demo: str, open_tab: OpenTab
) -> None:
    tab = open_tab(demo)
    page = run_screening(tab, BORDERLINE)
    assert outcome(page) == "Conflicting"
    rounds = page.locator("[class*=st-key-screening-round-]")
    expect(rounds).to_have_count(1)
    expect(rounds.first).to_contain_text("sufficient")

    page.locator("tbody tr", has_text="during maintenance treatment").locator("a").first.click(
        delay=40
    )
    expect(page).to_have_url(re.compile("abstract=b12-09"))
    reason = page.locator("button.reason.f-relevance_score")
    reason.click(delay=40)
    expect(page.locator(".mark.lit").first).to_be_visible()

    page.locator(".st-key-override-panel").get_by_label("Your name").fill("Ada Lind")
    # without this study, three quarters of the others say the same
    overridden(page, tab, "discard", "Exposure was read from prescriptions, not from use.")
    expect(page.get_by_text("the critic's result was conflicting")).to_be_visible()
    assert outcome(page) == "Sufficient"

    page.locator(".st-key-override-panel").get_by_role("button", name="Undo").click(delay=40)
    tab.settle()
    assert outcome(page) == "Conflicting"

    page.get_by_role("button", name=re.compile("Audit with these")).click(delay=40)
    expect(page.get_by_role("button", name="Review it")).to_be_visible(timeout=60_000)
    page.get_by_role("button", name="Review it").click(delay=40)
    expect(page).to_have_url(re.compile(r"/review\?.*case=screening-"))
    valid = page.locator(".answer .text .ref-valid")
    expect(valid.first).to_be_visible(timeout=30_000)
    assert page.locator(".ref-fabricated").count() == 0
    named = valid.first.inner_text().strip("[]")
    valid.first.click(delay=40)
    expect(
        page.locator(".card.chosen .card-id", has_text=re.compile(rf"(^|_){re.escape(named)}$"))
    ).to_be_visible()
    sentence = page.locator(".card.chosen").locator(".lit, .lit-near").first
    expect(sentence).to_be_visible()
    assert sentence.inner_text().strip().endswith(".")


def test_decisions_of_another_tool_are_imported_on_the_page(
    demo: str, open_tab: OpenTab, tmp_path: Path
) -> None:
    tab = open_tab(demo)
    page = run_screening(tab, STRONG)
    title = page.locator(".st-key-screening-table tbody a").first.inner_text()
    (tmp_path / "decisions.csv").write_text(f'title,included\n"{title}",0\nUnknown,1\n')
    page.get_by_role("button", name="Import decisions").click(delay=40)
    page.set_input_files("input[type=file]", tmp_path / "decisions.csv")
    expect(page.get_by_text("decisions.csv")).to_be_visible()
    name = page.locator(".st-key-screening-labels-name input")
    name.fill("Ada Lind")
    name.blur()
    tab.settle()
    page.get_by_role("button", name="Import decisions").last.click(delay=40)
    expect(page.get_by_text("1 grade changed, 0 unchanged")).to_be_visible()
    expect(page.get_by_text("1 not in the screening")).to_be_visible()


def test_an_opened_abstract_scrolls_into_view_and_one_key_confirms_its_grade(
    demo: str, open_tab: OpenTab
) -> None:
    tab = open_tab(demo)
    page = run_screening(tab, STRONG)
    assert outcome(page) == "Sufficient"
    page.locator("tbody a").first.focus()
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowUp")
    page.keyboard.press("Enter")
    expect(page).to_have_url(re.compile("abstract=htn-"))
    tab.settle()
    expect(page.locator("h3.title")).to_be_in_viewport()
    first = page.locator("h3.title").inner_text()
    page.get_by_role("button", name="Next").last.click(delay=40)
    tab.settle()
    expect(page.locator("h3.title")).not_to_have_text(first)
    marked = page.locator("tbody tr.marked")
    expect(marked).to_have_count(1)
    expect(marked.locator("a")).to_have_text(page.locator("h3.title").inner_text())
    expect(page.locator("tbody a[aria-current=true]")).to_have_count(1)
    expect(marked.locator("a")).to_have_attribute("aria-current", "true")
    panel = page.locator(".st-key-override-panel")
    panel.get_by_label("Your name").fill("Ada Lind")
    panel.get_by_label("Your name").blur()
    tab.settle()
    panel.get_by_label("Reason").click()
    page.keyboard.type("a")  # a letter in a field, and no key
    expect(panel.get_by_label("Reason")).to_have_value("a")
    panel.get_by_label("Reason").fill("")
    panel.get_by_label("Reason").blur()
    tab.settle()
    page.keyboard.press("a")
    bar = page.locator(".st-key-agreement-bar")
    expect(bar.get_by_text(re.compile("Ada Lind agrees"))).to_be_visible()
    bar.get_by_role("button", name="Undo my agreement").click(delay=40)
    expect(bar.get_by_role("button", name=re.compile("Agree with the grade"))).to_be_visible()
    expect(bar.get_by_text("agrees")).to_have_count(0)

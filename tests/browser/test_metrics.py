"""The metrics page in a real browser: a figure leads to its runs, a run to its case; widths, hostile text."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

import pytest
from playwright.sync_api import Browser, expect

from masis.schema.case import Case
from masis.services import Workbench, demo_cases
from tests.browser.conftest import Tab, serving
from tests.reviewing import ADA

AUDITED = ("strategy-01-fabricated", "docs-02-altered", "policy-01-clean")
HOSTILE = "<img src=x onerror=alert(1)> What does the bridge weigh?"

OpenTab = Callable[..., Tab]


@pytest.fixture(scope="module")
def served(browser: Browser, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Four audits, one of a question that would rather be markup, of a data set that would too."""
    folder = tmp_path_factory.mktemp("metrics")
    workbench = Workbench.open(folder / "metrics.db")
    cases = [case for case in demo_cases() if case.id in AUDITED]
    hostile = {
        "id": "<b>hostile</b>",
        "query": HOSTILE,
        "answer": "It weighs 900 tonnes [7].",
        "evidence": [{"id": "1", "text": "The bridge weighs 500 tonnes."}],
        "metadata": {"dataset": "<script>alert(2)</script>"},
    }
    cases.append(Case.model_validate(hostile))
    workbench.cases.add(ADA, cases)
    for case in cases:
        workbench.audits.audit(ADA, case)
    workbench.store.close()
    with serving("serve", "--db", str(folder / "metrics.db"), folder=folder) as base:
        yield base


def test_a_rate_leads_to_its_runs_and_a_run_to_its_case(served: str, open_tab: OpenTab) -> None:
    tab = open_tab(served)
    page = tab.open("/metrics")
    expect(page.get_by_role("heading", name="Rates over time")).to_be_visible()
    page.locator(".st-key-metrics-list").get_by_text("Hallucination").click(delay=40)
    expect(page).to_have_url(re.compile("show=hallucination"))
    rows = page.get_by_role("table", name="Audits behind the metric").locator("tbody tr")
    expect(rows.first).to_be_visible()
    page.get_by_role("link", name=HOSTILE).click(delay=40)
    expect(page).to_have_url(re.compile(r"/review\?case=%3Cb%3Ehostile%3C%2Fb%3E&run="))
    tab.open("/metrics?show=hallucination")
    expect(page.get_by_role("link", name=HOSTILE)).to_be_visible()
    page.get_by_role("button", name="Close the list").click(delay=40)
    expect(page).not_to_have_url(re.compile("show="))


def test_a_bar_of_a_distribution_leads_to_its_runs(served: str, open_tab: OpenTab) -> None:
    page = open_tab(served).open("/metrics")
    chart = page.locator(".st-key-metrics-spread-issues canvas, .st-key-metrics-spread-issues svg.marks").first
    chart.scroll_into_view_if_needed()
    box = chart.bounding_box()
    assert box is not None
    for across in range(20, 95, 5):  # some of these are on a bar
        page.mouse.click(box["x"] + across / 100 * box["width"], box["y"] + 0.6 * box["height"])
        try:
            expect(page).to_have_url(re.compile("show=issues"), timeout=1_500)
            break
        except AssertionError:
            continue
    expect(page.get_by_role("table", name="Audits behind the metric").locator("tbody tr").first).to_be_visible()


def test_a_model_and_a_week_lead_to_their_runs_by_keyboard_too(served: str, open_tab: OpenTab) -> None:
    page = open_tab(served).open("/metrics")
    page.get_by_role("link", name="offline").first.click(delay=40)
    expect(page).to_have_url(re.compile("of=offline"))
    expect(page.get_by_text("Audits, offline: 4")).to_be_visible()
    week = page.get_by_role("table", name="Rates by week").locator("tbody a", has_text="week of").first
    week.focus()
    page.keyboard.press("Enter")
    expect(page).to_have_url(re.compile("at=2"))


def test_period_and_time_are_chosen_and_kept_in_the_address(served: str, open_tab: OpenTab) -> None:
    tab = open_tab(served)
    page = tab.open("/metrics")
    page.get_by_role("radio", name="Month").click(delay=40)
    expect(page).to_have_url(re.compile("by=month"))
    expect(page.get_by_role("heading", name="By month")).to_be_visible()
    page.reload()
    tab.settle()
    expect(page.get_by_role("heading", name="By month")).to_be_visible()
    page.get_by_role("radio", name="30 days").click(delay=40)
    expect(page).to_have_url(re.compile(r"since=\d{4}-\d\d-\d\d"))


@pytest.mark.parametrize("address", ["/metrics?show=all", "/metrics?show=critic_ms&above=0"])
def test_the_page_is_as_wide_as_the_window(served: str, open_tab: OpenTab, address: str) -> None:
    page = open_tab(served).open(address)
    expect(page.get_by_role("heading", name="Distributions")).to_be_visible()
    for width in (1440, 900):
        page.set_viewport_size({"width": width, "height": 900})
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")


def test_text_from_outside_is_text(served: str, open_tab: OpenTab) -> None:
    page = open_tab(served).open("/metrics?show=all&of=%3Cscript%3Ealert(3)%3C/script%3E&at=%3Cb%3E")
    expect(page.get_by_text("<script>alert(3)</script>")).to_be_visible()
    page = open_tab(served).open("/metrics?show=all")
    expect(page.get_by_role("link", name=HOSTILE)).to_be_visible()
    assert page.locator("img[src='x']").count() == 0

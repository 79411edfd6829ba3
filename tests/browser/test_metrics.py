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


def test_a_figure_leads_to_its_runs_and_a_run_to_its_case(served: str, open_tab: OpenTab) -> None:
    tab = open_tab(served)
    page = tab.open("/metrics")
    expect(page.get_by_role("heading", name="Rates over time")).to_be_visible()
    page.get_by_role("link", name=re.compile("% hallucination$")).click(delay=40)
    expect(page).to_have_url(re.compile("show=hallucination"))
    rows = page.locator("table:has-text('Judged by') tbody tr")
    expect(rows.first).to_be_visible()
    page.get_by_role("link", name=HOSTILE).click(delay=40)
    expect(page).to_have_url(re.compile(r"/review\?case=%3Cb%3Ehostile%3C%2Fb%3E&run="))
    tab.open("/metrics?show=hallucination")
    expect(page.get_by_role("link", name=HOSTILE)).to_be_visible()
    page.get_by_role("button", name="Close").click(delay=40)
    expect(page).not_to_have_url(re.compile("show="))


def test_a_bar_of_a_distribution_leads_to_as_many_runs(served: str, open_tab: OpenTab) -> None:
    page = open_tab(served).open("/metrics")
    bar = page.get_by_role("link", name=re.compile(r"of 4$")).first
    told = bar.get_attribute("aria-label") or ""
    bar.click(delay=40)
    number = re.search(r": ([\d,]+) of", told)
    assert number is not None
    expect(page.locator("table:has-text('Judged by') tbody tr").first).to_be_visible()
    assert page.locator("table:has-text('Judged by') tbody tr").count() <= int(number[1])


def test_a_model_and_a_week_lead_to_their_runs(served: str, open_tab: OpenTab) -> None:
    page = open_tab(served).open("/metrics")
    page.get_by_role("link", name="offline").first.click(delay=40)
    expect(page).to_have_url(re.compile("of=offline"))
    expect(page.get_by_text("Audits, offline: 4")).to_be_visible()
    page.locator("tbody th a", has_text="week of").first.click(delay=40)
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


@pytest.mark.parametrize("width", [1440, 900])
@pytest.mark.parametrize("address", ["/metrics", "/metrics?show=all", "/metrics?show=critic_ms&above=0"])
def test_the_page_is_as_wide_as_the_window(served: str, open_tab: OpenTab, width: int, address: str) -> None:
    page = open_tab(served, width=width).open(address)
    expect(page.get_by_role("heading", name="Distributions")).to_be_visible()
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")


def test_text_from_outside_is_text(served: str, open_tab: OpenTab) -> None:
    page = open_tab(served).open("/metrics?show=all&of=%3Cscript%3Ealert(3)%3C/script%3E&at=%3Cb%3E")
    expect(page.get_by_text("<script>alert(3)</script>")).to_be_visible()
    page = open_tab(served).open("/metrics?show=all")
    expect(page.get_by_role("link", name=HOSTILE)).to_be_visible()
    assert page.locator("img[src='x']").count() == 0

"""The demo in a real browser: the list, one case, its marks, its iterations."""

from __future__ import annotations

import json
import re
import urllib.request
from collections.abc import Callable
from pathlib import Path

import pytest
from playwright.sync_api import Browser, expect

from masis.services import Workbench
from tests.browser.conftest import Tab, serving
from tests.reviewing import ADA

FABRICATED = "strategy-01-fabricated"

OpenTab = Callable[..., Tab]


def demo_ids() -> set[str]:
    folder = Path(__file__).resolve().parents[2] / "data" / "cases"
    lines = [line for file in folder.glob("*.jsonl") for line in file.read_text(encoding="utf-8").splitlines() if line]
    return {json.loads(line)["id"] for line in lines}


def audited(tab: Tab, case_id: str) -> None:
    """Open a case and have it audited, unless it is."""
    tab.open(f"/review?case={case_id}&iteration=1")
    button = tab.page.get_by_role("button", name=re.compile("Audit (now|again)"))
    expect(button).to_be_visible()
    if "now" in button.inner_text():
        button.click(delay=40)
        expect(tab.page.get_by_role("button", name="Audit again")).to_be_enabled(timeout=30_000)
        tab.open(f"/review?case={case_id}&iteration=1")
    tab.settle()


def test_the_demo_opens_on_the_list_of_its_cases(demo: str, open_tab: OpenTab) -> None:
    page = open_tab(demo).open("/queue")
    expect(page.get_by_role("heading", name="Queue", exact=True)).to_be_visible()
    expect(page.get_by_text(f"of {len(demo_ids())} cases")).to_be_visible()
    expect(page.locator("table.list tbody tr")).to_have_count(20)


def test_searching_narrows_the_list_and_the_address_keeps_the_search(demo: str, open_tab: OpenTab) -> None:
    tab = open_tab(demo)
    page = tab.open("/queue")
    page.get_by_label("Search").fill("Halvorsen Marine offshore")
    page.get_by_label("Search").press("Enter")
    expect(page.locator("table.list tbody")).to_contain_text("Halvorsen Marine")
    expect(page).to_have_url(re.compile("q=Halvorsen"))
    tab.settle()
    rows = page.locator("table.list tbody tr").count()
    page.reload()
    tab.settle()
    expect(page.locator("table.list tbody tr")).to_have_count(rows)
    assert rows < 20


def test_a_search_that_finds_nothing_says_what_to_do(demo: str, open_tab: OpenTab) -> None:
    tab = open_tab(demo)
    page = tab.open("/queue?q=zzzzqqqq%22%20OR%20*")
    expect(page.get_by_text("No case matches.")).to_be_visible()
    page.get_by_role("button", name="Clear search and filters").click(delay=40)
    expect(page.locator("table.list tbody tr")).to_have_count(20)


def test_a_click_opens_a_case_and_the_way_back_leads_to_the_same_list(demo: str, open_tab: OpenTab) -> None:
    tab = open_tab(demo)
    page = tab.open("/queue?q=Halvorsen")
    rows = page.locator("table.list tbody tr").count()
    page.locator("table.list tbody a").first.click(delay=40)
    expect(page).to_have_url(re.compile("case="))
    expect(page.locator(".evidence article.card").first).to_be_visible()
    page.get_by_role("button", name="Queue").click(delay=40)
    expect(page.locator("table.list tbody tr")).to_have_count(rows)
    expect(page.get_by_label("Search")).to_have_value("Halvorsen")


def test_a_fabricated_citation_is_struck_through_and_explained(demo: str, open_tab: OpenTab) -> None:
    tab = open_tab(demo)
    audited(tab, FABRICATED)
    mark = tab.page.locator(".text .ref-fabricated")
    expect(mark).to_have_text("[chunk_99]")
    assert "line-through" in mark.evaluate("element => getComputedStyle(element).textDecorationLine")
    issue = tab.page.locator("article.issue", has_text="names no evidence of this case")
    expect(issue).to_be_visible()
    expect(issue).to_contain_text("critical")
    expect(tab.page.get_by_text("No language model was used", exact=False).first).to_be_visible()


def test_clicking_a_claim_lights_the_evidence_for_it(demo: str, open_tab: OpenTab) -> None:
    tab = open_tab(demo)
    audited(tab, FABRICATED)
    tab.page.locator(".text .mark", has_text="41.2%").first.click(delay=40)
    lit = tab.page.locator(".evidence .lit-against", has_text="14.2%")
    expect(lit).to_be_in_viewport()
    expect(tab.page.locator(".why-panel")).to_contain_text("contradicted")


def test_every_iteration_can_be_looked_at_and_has_an_address(demo: str, open_tab: OpenTab) -> None:
    tab = open_tab(demo)
    audited(tab, FABRICATED)
    tab.page.get_by_role("radio", name=re.compile("2 · revision")).click(delay=40)
    expect(tab.page).to_have_url(re.compile(f"case={FABRICATED}&iteration=2$"))  # a case opens on the original
    expect(tab.page.locator(".text .ref-fabricated")).to_have_count(0)
    expect(tab.page.get_by_text("What changed to arrive at this answer")).to_be_visible()
    tab.page.reload()
    tab.settle()
    expect(tab.page.locator(".text .ref-fabricated")).to_have_count(0)
    expect(tab.page.locator("table", has_text="Faithfulness")).to_contain_text("Iteration 2")


@pytest.mark.parametrize("case_id", ["no-such-case", "%00", "../../etc/passwd", "x" * 3000])
def test_an_address_that_names_no_case_says_so(demo: str, open_tab: OpenTab, case_id: str) -> None:
    page = open_tab(demo).open(f"/?case={case_id}")
    expect(page.get_by_role("heading", name="There is no such case")).to_be_visible()
    expect(page.get_by_role("button", name="Queue")).to_be_visible()


def test_the_settings_say_where_the_data_lies_and_lead_to_whether_it_is_sound(demo: str, open_tab: OpenTab) -> None:
    page = open_tab(demo).open("/settings")
    expect(page.get_by_text("demo.db").first).to_be_visible()
    page.get_by_role("link", name="Health: check again, and test the models").click(delay=40)
    expect(page.get_by_text("decision log").first).to_be_visible()
    expect(page.get_by_text(re.compile("All checks passed"))).to_be_visible()


def test_a_deep_link_on_a_cold_server_has_the_frame_and_the_case(
    browser: Browser, open_tab: OpenTab, tmp_path: Path
) -> None:
    Workbench.open(tmp_path / "cold.db").cases.add_demo(ADA)
    with serving("serve", "--db", str(tmp_path / "cold.db"), folder=tmp_path) as base:
        tab = open_tab(base)
        for address in (f"/review?case={FABRICATED}", f"/?case={FABRICATED}"):
            page = tab.open(address)
            expect(page.get_by_role("link", name="Settings")).to_be_visible()
            expect(page.get_by_role("heading", name=re.compile("Halvorsen Marine"))).to_be_visible()


def test_an_empty_database_says_where_it_is_and_how_to_fill_it(
    browser: Browser, open_tab: OpenTab, tmp_path: Path
) -> None:
    with serving("serve", "--db", str(tmp_path / "empty.db"), folder=tmp_path) as base:
        tab = open_tab(base)
        page = tab.open("/settings")  # the first thing that this server is asked for
        expect(page.get_by_role("link", name="Queue")).to_be_visible()
        expect(page.get_by_text("empty.db").first).to_be_visible()
        tab.open()
        expect(page.get_by_role("heading", name="No cases yet")).to_be_visible()
        page.get_by_role("button", name="Load the demo cases").click(delay=40)
        expect(page.get_by_role("heading", name=f"{len(demo_ids())} cases have not been audited")).to_be_visible(
            timeout=20_000
        )


def test_every_answer_carries_the_content_security_policy(demo: str) -> None:
    with urllib.request.urlopen(demo, timeout=5) as response:
        policy = response.headers["content-security-policy"]
    assert "connect-src 'self'" in policy
    assert "img-src 'self' data: blob:" in policy
    assert "form-action 'self'" in policy

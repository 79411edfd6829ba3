"""Overview, queue, runs, decisions and settings in a real browser: clicks, keys, addresses,
downloads.
"""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import get_args

import pytest
from playwright.sync_api import Browser, expect

from masis.schema.review import Standing
from masis.services import Workbench, demo_cases
from tests.browser.conftest import Tab, serving, until
from tests.reviewing import ADA, decide, undone

AUDITED = (
    "strategy-01",
    "docs-02",
    "medicine-01",
    "finance-05",
    "policy-01",
)
NOT_AUDITED = ("home-01", "law-01")
FABRICATED, OVERRIDDEN = AUDITED[0], AUDITED[1]

OpenTab = Callable[..., Tab]


@pytest.fixture(scope="module")
def served(browser: Browser, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Five audited cases, two of them decided, one with two runs; and two that are not audited."""
    folder = tmp_path_factory.mktemp("pages")
    workbench = Workbench.open(folder / "pages.db")
    cases = {case.id: case for case in demo_cases()}
    workbench.cases.add(ADA, [cases[case_id] for case_id in (*AUDITED, *NOT_AUDITED)])
    runs = {case_id: workbench.audits.audit(ADA, cases[case_id]) for case_id in AUDITED}
    told = workbench.settings.model_copy(update={"strictness": "strict", "max_iterations": 1})
    workbench.audits.audit(ADA, cases[FABRICATED], settings=told)
    corrected = f"{runs[OVERRIDDEN].iterations[0].answer} It was checked."
    said = {"iteration": 1, "reason": "=HYPERLINK(1)", "corrected_answer": corrected}
    decide(workbench, OVERRIDDEN, "override", "Ana Ruiz", **said)
    decide(workbench, "medicine-01", "escalate", "Ben")
    undone(workbench, "medicine-01", "Ben")
    workbench.store.close()
    with serving("serve", "--db", str(folder / "pages.db"), folder=folder) as base:
        yield base


def test_the_overview_opens_waiting_cases_within_their_list(served: str, open_tab: OpenTab) -> None:
    tab = open_tab(served)
    page = tab.open()
    page.locator(".st-key-waiting table.list a").first.click(delay=40)
    expect(page).to_have_url(re.compile(r"/review\?case="))
    expect(page).to_have_title(re.compile(r"^(?!MASIS).+ · MASIS Workbench$"))


FRAME = """() => {
  const links = [...document.querySelectorAll("[data-testid=stTopNav] .rc-overflow-item")]
    .filter(link => getComputedStyle(link).opacity !== "0")
  const badge = document.querySelector(".st-key-reviewer-badge").getBoundingClientRect()
  const ends = links.map(link => link.getBoundingClientRect().right)
  return {links: links.length, gap: badge.left - Math.max(...ends), badge: badge.width}
}"""


def test_the_name_never_lies_over_the_links_of_the_frame(served: str, open_tab: OpenTab) -> None:
    page = open_tab(served).open("/settings")
    page.get_by_role("button", name="Your name").click(delay=40)
    field = page.get_by_test_id("stTextInputField")
    field.fill("Maximiliane Schwarzenberger-Hohenlohe")
    field.press("Enter")
    page.keyboard.press("Escape")
    page.get_by_role("button", name="Maximiliane").wait_for()
    for width in (1440, 1251, 1249, 1100, 981, 979, 900, 860):
        page.set_viewport_size({"width": width, "height": 700})
        page.wait_for_function(f"({FRAME})().gap > 0")
        frame = page.evaluate(FRAME)
        assert frame["badge"] > 80, width
        # A window narrower than 900 pixels has the last links in the frame's menu.
        assert frame["links"] == 8 or width < 900


def test_a_page_chosen_from_a_menu_opens_without_its_query_and_has_the_keys(
    served: str, open_tab: OpenTab
) -> None:
    """A menu that closes gives the focus to its button, and Enter would open the menu again."""
    tab = open_tab(served)
    page = tab.open("/decisions?kind=approve")
    for name in ("Metrics", "Decisions"):
        tab.choose("Understand", name)
        expect(page).to_have_url(f"{served}/{name.lower()}")
        tab.settle()
        expect(page.get_by_role("menu")).to_have_count(0)
        expect(page.get_by_role("button", name="Understand")).not_to_be_focused()
    page.keyboard.press("?")
    expect(page.get_by_role("dialog")).to_be_visible()


def test_a_filter_that_was_cleared_stays_cleared(served: str, open_tab: OpenTab) -> None:
    """The browser keeps what a drawer showed when it was closed, and would post it again with the
    next act.
    """
    tab = open_tab(served)
    page = tab.open("/queue")
    for clears in ("Clear all", "Issue: fabricated citation"):
        page.get_by_role("button", name=re.compile("^.*Filters")).click(delay=40)
        page.get_by_role("combobox", name="Issue").first.click(delay=40)
        page.get_by_role("option", name=re.compile("Fabricated citation", re.I)).click(delay=40)
        expect(page).to_have_url(re.compile("flag=invalid_reference"))
        tab.settle()  # before that the second key would empty the field again
        page.keyboard.press("Escape")
        page.keyboard.press("Escape")
        tab.settle()
        page.get_by_role("button", name=re.compile(clears, re.I)).click(delay=40)
        expect(page).not_to_have_url(re.compile("flag="))
        tab.settle()
        page.locator(".st-key-search input").fill("the")
        page.keyboard.press("Enter")
        expect(page).to_have_url(re.compile("q=the"))
        tab.settle()
        expect(page).not_to_have_url(re.compile("flag="))
        page.get_by_role("button", name="Clear all").click(delay=40)
        expect(page).not_to_have_url(re.compile("q="))
        tab.settle()


@pytest.mark.parametrize(
    ("path", "filter_", "other"), [("/queue", "Issue", "Reason"), ("/metrics", "Model", "Role")]
)
def test_the_filters_stay_open_for_another_choice(
    served: str, open_tab: OpenTab, path: str, filter_: str, other: str
) -> None:
    tab = open_tab(served)
    page = tab.open(path)
    page.get_by_role("button", name=re.compile("^.*Filters")).click(delay=40)
    page.get_by_role("combobox", name=filter_).first.click(delay=40)
    page.get_by_role("option").last.click(delay=40)
    expect(page).to_have_url(re.compile(f"{path}[?]"))
    tab.settle()
    expect(page.get_by_role("combobox", name=other).first).to_be_visible()


def test_queue_rows_are_opened_with_keys_and_the_page_lists_its_keys(
    served: str, open_tab: OpenTab
) -> None:
    tab = open_tab(served)
    page = tab.open("/queue")
    links = page.locator("table.list tbody a")
    box = links.first.bounding_box()
    assert box["y"] < 300
    expect(page.locator("table.list tbody tr").first).to_contain_text("which doesn't exist")
    page.keyboard.press("Enter")
    expect(page).to_have_url(re.compile(r"/review\?case=strategy-01"))
    page.go_back()
    expect(page.get_by_role("radio", name="Something is wrong")).to_be_visible()
    page.get_by_role("radio", name="Decided").click(delay=40)
    expect(page).to_have_url(re.compile("standing=decided"))
    page.go_back()
    expect(links.first).to_be_visible()
    expect(page).not_to_have_url(re.compile("standing="))
    tab.open("/queue?order=oldest&standing=" + ",".join(get_args(Standing)))
    expect(page).to_have_title("Queue · MASIS Workbench")
    expect(links).to_have_count(7)
    keys = page.get_by_role("dialog", name="Keys")
    page.keyboard.press("?")
    expect(keys).to_be_visible()
    expect(keys).to_contain_text("Search the queue")
    page.keyboard.press("j")
    expect(links.first).not_to_be_focused()
    page.keyboard.press("Escape")
    expect(keys).to_be_hidden()
    page.keyboard.press("j")
    expect(links.first).to_be_focused()
    page.keyboard.press("j")
    page.keyboard.press("j")
    page.keyboard.press("k")
    expect(links.nth(1)).to_be_focused()
    page.keyboard.press("/")
    search = page.get_by_label("Search")
    expect(search).to_be_focused()
    page.keyboard.type("jkh?/")
    expect(search).to_have_value("jkh?/")
    expect(keys).to_be_hidden()
    search.fill("")
    links.first.focus()
    page.keyboard.press("ArrowDown")
    expect(links.nth(1)).to_be_focused()
    page.keyboard.press("End")
    expect(links.nth(6)).to_be_focused()
    page.keyboard.press("Home")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    expect(page).to_have_url(re.compile(r"/review\?.*order=oldest&case=docs-02"))
    tab.settle()
    page.go_back()
    expect(page.locator("table.list a[data-open=docs-02]")).to_be_focused()
    page.keyboard.press("Enter")
    page.get_by_role("button", name="Queue").click()
    expect(page.locator("table.list a[data-open=docs-02]")).to_be_focused()
    page.mouse.move(box["x"] + 5, links.last.bounding_box()["y"] + 5)
    grounds = "rows => rows.map(row => getComputedStyle(row).backgroundColor)"
    rows = page.locator("table.list tbody tr")

    def marks_chosen_and_pointed_apart() -> bool:
        drawn = rows.evaluate_all(grounds)
        return [drawn.count(run) for run in (drawn[1], drawn[-1])] == [1, 6]

    until(marks_chosen_and_pointed_apart, page, "the row under the mouse isn't the chosen one")


def test_a_search_focuses_its_first_row_and_the_menu_resets_the_queue(
    served: str, open_tab: OpenTab
) -> None:
    tab = open_tab(served, height=500)
    page = tab.open("/queue?order=oldest&standing=" + ",".join(get_args(Standing)))
    links = page.locator("table.list tbody a")
    expect(links).to_have_count(7)
    links.last.focus()
    expect(page.get_by_role("columnheader", name="Question")).to_be_in_viewport(ratio=1)
    page.keyboard.press("/")
    page.keyboard.type("finance")
    page.keyboard.press("Enter")
    expect(links.first).to_be_focused()
    expect(page).to_have_url(re.compile("q=finance"))
    expect(page.get_by_label("Search")).to_have_value("finance")
    page.get_by_role("link", name="Queue", exact=True).click()
    expect(page).to_have_url(f"{served}/queue")
    expect(page.get_by_label("Search")).to_have_value("")
    tab.settle()
    page.keyboard.press("Enter")
    expect(page).to_have_url(re.compile(r"/review\?case=strategy-01"))


def test_a_picture_is_saved_shows_its_table_and_opens_the_cases_of_a_bar(
    served: str, open_tab: OpenTab
) -> None:
    tab = open_tab(served)
    page = tab.open("/metrics")
    box = page.locator(".st-key-picture-standing")
    bars = box.locator("svg .mark-rect path")
    expect(bars).to_have_count(4)
    box.get_by_test_id("stVegaLiteChart").hover()
    with page.expect_download() as download:
        box.get_by_role("button", name="Download as PNG").click(delay=40)
    assert download.value.suggested_filename.endswith(".png")
    box.get_by_role("button", name="Table").click(delay=40)
    expect(page.get_by_role("table", name=re.compile("^Where 7 cases stand"))).to_be_visible()
    with page.expect_download() as download:
        page.get_by_role("button", name="Download as CSV").click(delay=40)
    content = Path(download.value.path()).read_text(encoding="utf-8")
    rows = list(csv.DictReader(content.splitlines()))
    assert sum(int(row["Cases"]) for row in rows) == 7
    page.keyboard.press("Escape")
    tab.settle()
    bars.first.click(delay=40)
    expect(page).to_have_url(re.compile(r"/queue\?standing=wrong$"))


def test_in_a_narrow_window_the_log_lists_all_kinds_and_links_to_an_expanded_entry(
    served: str, open_tab: OpenTab
) -> None:
    tab = open_tab(served, width=900)
    page = tab.open("/decisions")
    expect(page.get_by_text("The decision log is intact")).to_be_visible()
    kinds = page.locator(".st-key-log-kind button")
    expect(kinds.nth(10)).to_be_visible()
    for place in range(kinds.count()):
        expect(kinds.nth(place)).to_be_in_viewport(ratio=1)
    page.get_by_role("button", name=re.compile("Show corrected answer")).click(delay=40)
    expect(page.locator(".detail ins")).to_have_text("It was checked.")
    expect(page).to_have_url(re.compile("entry="))
    page.reload()
    tab.settle()
    expect(page.locator(".detail ins")).to_have_text("It was checked.")
    expect(page.locator("tr", has_text="undone by Ben")).to_contain_text("Escalated")


def test_decided_cases_and_the_log_can_be_downloaded(
    served: str, open_tab: OpenTab, tmp_path: Path
) -> None:
    tab = open_tab(served)
    page = tab.open("/decisions?kind=decision")
    page.get_by_role("button", name="Export").click(delay=40)
    tab.settle()
    page.get_by_role("button", name="Prepare 1 decided case, JSON Lines").click(delay=40)
    with page.expect_download() as download:
        page.get_by_role("button", name="Download 1 decided case, JSON Lines").click(delay=40)
    download.value.save_as(tmp_path / "decided.jsonl")
    (line,) = (tmp_path / "decided.jsonl").read_text(encoding="utf-8").splitlines()
    assert json.loads(line)["answer"].endswith("It was checked.")
    with page.expect_download() as download:
        page.get_by_role("button", name="Entries listed here, CSV").click(delay=40)
    download.value.save_as(tmp_path / "log.csv")
    with (tmp_path / "log.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    assert [row["verdict"] for row in rows] == ["override", "escalate"]
    assert rows[0]["reason"] == "'=HYPERLINK(1)"


def test_two_runs_are_compared_swapped_and_opened(served: str, open_tab: OpenTab) -> None:
    tab = open_tab(served)
    page = tab.open(f"/compare?case={FABRICATED}")
    expect(page.get_by_role("table", name="Different settings")).to_contain_text("strictness")
    only_right = (
        page.get_by_text(re.compile(r"Left only: \d+")).inner_text().replace("left", "right")
    )
    page.get_by_role("button", name="Swap left and right").click(delay=40)
    expect(page.get_by_text(only_right)).to_be_visible()
    expect(page).to_have_url(re.compile("left=.*right="))
    page.get_by_role("radio", name="In the answer each run chose").click(delay=40)
    expect(page.get_by_role("heading", name="Issues in the answer each run chose")).to_be_visible()
    page.locator("table a").first.click(delay=40)
    expect(page).to_have_url(re.compile(r"/review\?case=strategy-01&run="))
    tab.settle()  # a page that is still being drawn is too short to scroll
    page.mouse.move(600, 20)  # over the head, which lies over the page
    page.mouse.wheel(0, 60)
    page.wait_for_function("document.querySelector('[data-testid=stMain]').scrollTop > 0")


def test_a_rate_links_to_its_runs_and_a_run_to_its_case(served: str, open_tab: OpenTab) -> None:
    tab = open_tab(served)
    page = tab.open("/metrics?as=tables")
    found = page.get_by_role("table", name="Original answers")
    found.get_by_role("row", name="Fabricated, unsupported or contradicted").get_by_role(
        "link"
    ).click(delay=40)
    expect(page).to_have_url(re.compile("show=hallucination"))
    rows = page.get_by_role("table", name="Audits behind the metric").locator("tbody tr")
    expect(rows.first).to_be_visible()
    page.get_by_role("button", name="Close", exact=True).click(delay=40)
    expect(page).not_to_have_url(re.compile("show="))
    page = tab.open("/metrics")
    page.get_by_text("How the audits ran").click(delay=40)
    tab.settle()
    chart = page.locator(
        ".st-key-metrics-spread-issues canvas, .st-key-metrics-spread-issues svg.marks"
    ).first
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
    rows.first.get_by_role("link").first.click(delay=40)
    expect(page).to_have_url(re.compile(r"/review\?case=[\w-]+&run="))

"""Text that tries to be more than text, in every field a case has: nothing runs, nothing leaves, nothing breaks."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, expect

from masis.schema.case import Case
from masis.workbench import Workbench
from tests.browser.conftest import Tab, serving

MARKUP = (
    "<script>window.hacked = 1</script>"
    "<img src='http://192.0.2.1/leak.png' onerror='window.hacked = 2'>"
    "<iframe src='javascript:parent.hacked = 3'></iframe>"
    "<form action='http://192.0.2.1/'><button>Press</button></form>"
    "<style>body { display: none }</style>"
    "<svg onload='window.hacked = 4'></svg>"
    "![image](http://192.0.2.1/markdown.png) [link](javascript:window.hacked=5) "
    "</textarea></div> {{7*7}} ${7*7} '; DROP TABLE cases; -- :material/delete: :red[x] $x^2$"
)
DIRECTIONS = "‮right to left‬ zero​width مرحبا \U0001f9ea e\u0301"
IDS = {"markup": f"id {MARKUP}"[:480], "plain": "hostile-plain", "long": "hostile-long", "many": "hostile-many"}


def hostile_cases() -> list[Case]:
    everywhere = {
        "id": IDS["markup"],
        "query": f"Question {MARKUP} {DIRECTIONS}",
        "answer": f"It is 12 metres long [chunk_1]. {MARKUP} It is 99 metres high [{MARKUP[:40]}]. {DIRECTIONS} [9].",
        "evidence": [
            {"id": "chunk_1", "text": f"The bridge is 120 metres long. {MARKUP}", "source": MARKUP},
            {"id": f"<b>{MARKUP}", "text": f"{DIRECTIONS} {MARKUP}", "source": "javascript:window.hacked=6"},
        ],
        "metadata": {"field": f"Field {MARKUP}", "dataset": MARKUP},
    }
    plain = {**everywhere, "id": IDS["plain"], "metadata": {"field": "Engineering"}}
    long = {
        "id": IDS["long"],
        "query": "long " * 2_000,
        "answer": "A very long answer says this [chunk_1]. " + "x" * 100_000,
        "evidence": [{"id": "chunk_1", "text": "y" * 100_000}],
    }
    many = {
        "id": IDS["many"],
        "query": "Which chunk says that the tower is 30 metres high?",
        "answer": "The tower is 30 metres high [chunk_777].",
        "evidence": [
            {"id": f"chunk_{number}", "text": f"The tower is {number} metres wide."} for number in range(2_000)
        ],
    }
    return [Case.model_validate(each) for each in (everywhere, plain, long, many)]


@pytest.fixture(scope="module")
def hostile(browser: Browser, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    folder: Path = tmp_path_factory.mktemp("hostile")
    bench = Workbench.open(folder / "hostile.db")
    bench.import_cases(hostile_cases())
    for case in hostile_cases():
        bench.audit(case)
    with serving("serve", "--db", str(folder / "hostile.db"), folder=folder) as base:
        yield base


def assert_nothing_ran(tab: Tab) -> None:
    assert tab.page.evaluate("() => window.hacked") is None
    in_content = "[data-testid=stMain]"
    # The chart brings an empty form of its own, without a place to send to.
    assert tab.page.locator(f"{in_content} :is(iframe, form[action], img, script)").count() == 0
    assert tab.page.evaluate("() => getComputedStyle(document.body).display") != "none"
    tab.assert_clean()


def test_hostile_text_in_the_list_stays_text(hostile: str, open_tab: Callable[..., Tab]) -> None:
    tab = open_tab(hostile)
    tab.open()
    expect(tab.page.locator("table.list")).to_contain_text("<script>window.hacked = 1</script>")
    assert_nothing_ran(tab)


@pytest.mark.parametrize("which", list(IDS))
def test_hostile_text_in_a_case_stays_text(hostile: str, open_tab: Callable[..., Tab], which: str) -> None:
    tab = open_tab(hostile)
    tab.open()
    links = tab.page.locator("table.list tbody tr")
    expect(links).to_have_count(4)
    tab.page.locator("table.list tbody tr", has_text=IDS[which][:30]).last.locator("a").click(delay=40)
    expect(tab.page.locator(".evidence article.card").first).to_be_visible(timeout=20_000)
    tab.settle()
    assert_nothing_ran(tab)
    tab.page.locator(".text .mark.active").first.click(delay=40)
    tab.page.locator(".evidence article.card").first.click(delay=40)
    assert_nothing_ran(tab)


def test_hostile_text_in_the_search_and_the_address_is_only_looked_for(
    hostile: str, open_tab: Callable[..., Tab]
) -> None:
    tab = open_tab(hostile)
    page = tab.open(
        "/?q=%3Cscript%3Ewindow.hacked%3D1%3C/script%3E%22%20NEAR(&state=x,%00&page=99999999&order=;--&field=%27"
    )
    expect(page.get_by_role("heading", name="Queue", exact=True)).to_be_visible()
    page.get_by_label("Search").fill('" OR 1=1; DROP TABLE cases; -- *')
    page.get_by_label("Search").press("Enter")
    tab.settle()
    assert_nothing_ran(tab)

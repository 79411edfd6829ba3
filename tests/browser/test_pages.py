"""Overview, queue, runs, decisions and settings in a real browser: clicks, keys, addresses, downloads."""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, expect

from masis.schema.review import Decision
from masis.services import Workbench, demo_cases
from tests.browser.conftest import Tab, serving
from tests.reviewing import ADA, submitted, undone

AUDITED = ("strategy-01-fabricated", "docs-02-altered", "medicine-01-unsafe", "finance-05-conflict", "policy-01-clean")
NOT_AUDITED = ("home-01-unsafe", "law-01-clean")
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
    run = runs[OVERRIDDEN]
    submitted(
        workbench,
        Decision(
            reviewer="Ana Ruiz",
            case_id=OVERRIDDEN,
            run_id=run.id,
            iteration=1,
            verdict="override",
            reason="=HYPERLINK(1)",
            corrected_answer=f"{run.iterations[0].answer} It was checked.",
        ),
    )
    submitted(workbench, Decision(reviewer="Ben", case_id="medicine-01-unsafe", run_id=None, verdict="escalate"))
    undone(workbench, "medicine-01-unsafe", "Ben")
    workbench.store.close()
    with serving("serve", "--db", str(folder / "pages.db"), folder=folder) as base:
        yield base


def test_the_overview_leads_to_the_cases_in_a_state(served: str, open_tab: OpenTab) -> None:
    tab = open_tab(served)
    page = tab.open()
    expect(page.get_by_role("heading", name=re.compile("cases? needs? review"))).to_be_visible()
    page.get_by_role("link", name="Overridden").click(delay=40)
    expect(page).to_have_url(re.compile(r"/queue\?state=overridden"))
    expect(page.locator("table.list tbody tr")).to_have_count(1)
    expect(page.locator("table.list")).to_contain_text("Ana Ruiz")


def test_a_tab_says_what_is_on_it(served: str, open_tab: OpenTab) -> None:
    tab = open_tab(served)
    page = tab.open("/queue")
    expect(page).to_have_title("Queue · MASIS Workbench")
    tab.open(f"/review?case={FABRICATED}")
    expect(page).to_have_title(re.compile("^How is Halvorsen Marine responding .* · MASIS Workbench$"))
    tab.open(f"/compare?case={FABRICATED}")
    expect(page).to_have_title(re.compile("^Compare · How is Halvorsen Marine"))


def test_the_overview_opens_what_waits_within_its_list(served: str, open_tab: OpenTab) -> None:
    tab = open_tab(served)
    page = tab.open()
    page.locator(".st-key-waiting table.list a").first.click(delay=40)
    expect(page).to_have_url(re.compile(r"/review\?.*state=needs_review"))
    expect(page).to_have_url(re.compile(r"case="))


def test_rows_of_the_queue_are_walked_and_opened_by_keyboard(served: str, open_tab: OpenTab) -> None:
    tab = open_tab(served)
    page = tab.open("/queue?q=offshore&order=newest")
    links = page.locator("table.list tbody a")
    expect(links.first).to_be_visible()
    tab.open("/queue?order=oldest")
    expect(links).to_have_count(7)
    links.first.focus()
    page.keyboard.press("ArrowDown")
    expect(links.nth(1)).to_be_focused()
    page.keyboard.press("End")
    expect(links.nth(6)).to_be_focused()
    page.keyboard.press("Home")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    expect(page).to_have_url(re.compile(r"/review\?order=oldest&case=docs-02-altered"))


def test_every_page_shows_its_keys_and_letters_walk_the_rows(served: str, open_tab: OpenTab) -> None:
    tab = open_tab(served)
    page = tab.open("/queue?order=oldest")
    links = page.locator("table.list tbody a")
    expect(links).to_have_count(7)
    keys = page.get_by_role("dialog", name="Keys")
    page.keyboard.press("?")
    expect(keys).to_be_visible()
    expect(keys).to_contain_text("Search the cases")
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


def test_enter_gives_the_name_that_is_asked_first(served: str, open_tab: OpenTab) -> None:
    page = open_tab(served).open("/team")
    page.get_by_label("Who reviews?").fill("Cleo")
    page.keyboard.press("Enter")
    expect(page.get_by_text("Who reviews?")).to_have_count(0)
    expect(page.get_by_role("button", name="Cleo")).to_be_visible()


@pytest.mark.parametrize("path", ["/", "/settings", "/decisions", "/review"])
def test_h_shows_the_keys_of_a_page_and_hides_them(served: str, open_tab: OpenTab, path: str) -> None:
    page = open_tab(served).open(path)
    keys = page.get_by_role("dialog", name="Keys")
    page.keyboard.press("h")
    expect(keys).to_be_visible()
    expect(keys.get_by_text("Search the cases")).to_have_count(0)
    page.keyboard.press("h")
    expect(keys).to_be_hidden()


def test_filters_behind_the_button_narrow_the_list_and_show_as_chips(served: str, open_tab: OpenTab) -> None:
    tab = open_tab(served)
    page = tab.open("/queue")
    page.get_by_role("button", name="Filters").click(delay=40)
    tab.settle()
    page.get_by_label("Field").click(delay=40)
    page.get_by_role("option", name="Medicine (1)").click(delay=40)
    expect(page).to_have_url(re.compile("field=Medicine"))
    expect(page.locator("table.list tbody tr")).to_have_count(1)
    page.keyboard.press("Escape")
    page.keyboard.press("Escape")
    tab.settle()
    page.get_by_role("button", name="Field: Medicine").click(delay=40)
    expect(page.locator("table.list tbody tr")).to_have_count(7)


def test_an_entry_unfolds_to_what_it_changed_and_has_an_address(served: str, open_tab: OpenTab) -> None:
    tab = open_tab(served)
    page = tab.open("/decisions")
    expect(page.get_by_text("The decision log is intact")).to_be_visible()
    page.get_by_role("button", name=re.compile("Show corrected answer")).click(delay=40)
    expect(page.locator(".detail ins")).to_have_text("It was checked.")
    expect(page).to_have_url(re.compile("entry="))
    page.reload()
    tab.settle()
    expect(page.locator(".detail ins")).to_have_text("It was checked.")
    expect(page.locator("tr", has_text="undone by Ben")).to_contain_text("Escalated")


def test_decided_cases_and_the_log_can_be_downloaded(served: str, open_tab: OpenTab, tmp_path: Path) -> None:
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
        page.get_by_role("button", name="The entries listed here, CSV").click(delay=40)
    download.value.save_as(tmp_path / "log.csv")
    with (tmp_path / "log.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    assert [row["verdict"] for row in rows] == ["override", "escalate"]
    assert rows[0]["reason"] == "'=HYPERLINK(1)"


def test_two_runs_are_compared_swapped_and_opened(served: str, open_tab: OpenTab) -> None:
    tab = open_tab(served)
    page = tab.open(f"/compare?case={FABRICATED}")
    expect(page.get_by_role("table", name="Settings that differ")).to_contain_text("strictness")
    only_right = page.get_by_text(re.compile(r"Only left: \d+")).inner_text().replace("left", "right")
    page.get_by_role("button", name="Swap left and right").click(delay=40)
    expect(page.get_by_text(only_right)).to_be_visible()
    expect(page).to_have_url(re.compile("left=.*right="))
    page.get_by_role("radio", name="In the answer each run chose").click(delay=40)
    expect(page.get_by_role("heading", name="Issues in the answer each run chose")).to_be_visible()
    page.locator("table a").first.click(delay=40)
    expect(page).to_have_url(re.compile(r"/review\?case=strategy-01-fabricated&run="))


def test_cases_with_several_runs_are_listed_where_none_is_named(served: str, open_tab: OpenTab) -> None:
    page = open_tab(served).open("/compare")
    page.locator("table.list a").first.click(delay=40)
    expect(page).to_have_url(re.compile(f"case={FABRICATED}"))
    expect(page.get_by_role("table", name="Settings that differ")).to_be_visible()


def test_settings_are_explained_and_health_is_reported(served: str, open_tab: OpenTab) -> None:
    page = open_tab(served).open("/settings")
    expect(page.locator("table", has_text="max_iterations")).to_contain_text("How many versions of the answer")
    page.get_by_role("link", name="Health: check again, and test the models").click(delay=40)
    expect(page.get_by_text("All checks passed.")).to_be_visible()
    page.get_by_role("button", name="Test the models").click(delay=40)
    expect(page.get_by_text("offline: a small case was audited from claims to scores")).to_be_visible(timeout=20_000)


def test_what_was_imported_and_not_audited_is_audited_with_one_button(
    browser: Browser, open_tab: OpenTab, tmp_path: Path
) -> None:
    workbench = Workbench.open(tmp_path / "new.db")
    workbench.cases.add(ADA, [case for case in demo_cases() if case.id in (*AUDITED, *NOT_AUDITED)])
    workbench.store.close()
    with serving("serve", "--db", str(tmp_path / "new.db"), folder=tmp_path) as base:
        page = open_tab(base).open()
        expect(page.get_by_role("heading", name="7 cases have not been audited")).to_be_visible()
        page.get_by_role("button", name="Audit all 7").click(delay=40)
        expect(page.get_by_role("heading", name=re.compile("cases need review"))).to_be_visible(timeout=60_000)
        expect(page.get_by_role("button", name="Audit all")).to_have_count(0, timeout=60_000)


def test_every_kind_of_entry_can_be_seen_in_a_narrow_window(served: str, open_tab: OpenTab) -> None:
    page = open_tab(served, width=900).open("/decisions")
    kinds = page.locator(".st-key-log-kind button")
    assert kinds.count() > 10
    for place in range(kinds.count()):
        expect(kinds.nth(place)).to_be_in_viewport(ratio=1)

"""A named queue from its creation to its end, in a real browser."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

import pytest
from playwright.sync_api import Browser, Page, expect

from masis.services.records import CaseFilter, DecisionFilter
from tests.browser.conftest import Scheme, Tab, until
from tests.browser.test_accessibility import AXE, grave, stays_wide
from tests.browser.test_decision import ReviewServer, panel
from tests.reviewing import ADA

OpenTab = Callable[..., Tab]
HOSTILE = "<b>Bridges</b> ![x](//192.0.2.1/x.png) :red[x] $x^2$ [2](#)"


@pytest.fixture(scope="module")
def server(browser: Browser, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ReviewServer]:
    served = ReviewServer(tmp_path_factory.mktemp("queues"))
    served.fill(3)
    served.start()
    yield served
    served.kill()


def open_queue(server: ReviewServer, open_tab: OpenTab, **looks: object) -> Tab:
    tab = open_tab(server.base, **looks)
    tab.page.add_init_script("localStorage.setItem('masis-reviewer', 'Ada')")
    return tab


def search(page: Page, words: str) -> None:
    field = page.get_by_role("textbox", name="Search")
    field.fill(words)
    field.press("Enter")


def test_a_queue_is_created_worked_on_by_keyboard_changed_and_archived(
    server: ReviewServer, open_tab: OpenTab
) -> None:
    tab = open_queue(server, open_tab)
    page = tab.open("/team?view=queues")
    page.get_by_role("link", name="Create a queue").click()
    search(page, "metres")
    expect(page.get_by_text("3 cases match this filter.")).to_be_visible()
    page.get_by_label("Make a queue of these cases").fill(HOSTILE)
    page.get_by_role("button", name="Create queue").click()
    expect(page.get_by_text("3 of 3 left")).to_be_visible()
    tab.settle()
    [queue] = server.workbench.queues.all(ADA)
    assert queue.name == HOSTILE

    page.keyboard.press("Enter")
    found = panel(page)
    expect(found).to_have_attribute("data-ready", "true")
    for key in ("x", "3", "Control+Enter"):
        page.keyboard.press(key)
    until(
        lambda: server.workbench.store.decisions.entries(DecisionFilter()).rows,
        page,
        "the decision is stored",
    )
    [entry] = server.workbench.store.decisions.entries(DecisionFilter()).rows
    assert entry.decision is not None
    assert (entry.decision.verdict, entry.decision.queue) == ("reject", queue.id)

    tab.open("/team?view=queues")
    page.get_by_role("tabpanel", name="Queues").get_by_text("2 of 3 left").wait_for()
    page.get_by_role("link", name="Change its filter").click()
    expect(page.get_by_text("It is filled by words metres now.")).to_be_visible()
    expect(page.get_by_text(HOSTILE[:14], exact=False).first).to_be_visible()
    search(page, "102")
    expect(page.get_by_text("1 case matches this filter.")).to_be_visible()
    page.get_by_role("button", name="Use this filter").click()
    expect(page.get_by_text("Version 2 is now in force.")).to_be_visible()
    assert server.workbench.queues.get(ADA, queue.id).cases == CaseFilter(text="102")

    page.get_by_role("button", name="Archive this queue").click()
    expect(page.get_by_role("button", name="Restore this queue")).to_be_visible()
    assert server.workbench.queues.all(ADA) == ()
    server.workbench.queues.archive(ADA, queue.id, restore=True)


@pytest.mark.parametrize(("width", "scheme"), [(900, "dark"), (1440, "light")])
def test_the_forms_of_queues_fit_and_can_be_read(
    server: ReviewServer, open_tab: OpenTab, width: int, scheme: Scheme
) -> None:
    queues = server.workbench.queues
    name = f"{'Wide ' * 10}{width}"
    queue = queues.create(ADA, name, CaseFilter(text="metres " * 20, tags=("x" * 100, HOSTILE)))
    tab = open_queue(server, open_tab, width=width, scheme=scheme)
    for address, heading in (
        (f"/team?view=queues&queue={queue.id}", "Team"),
        (f"/queue?fill={queue.id}&q=metres", "Queue"),
        (f"/queue?queue={queue.id}", "Queue"),
    ):
        page = tab.open(address)
        expect(page.get_by_role("heading", name=re.compile(f"^{heading}$"))).to_be_visible()
        page.evaluate(AXE)
        assert not grave(page), address
        assert not stays_wide(page), address

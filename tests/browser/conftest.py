"""Set up tests with a real Chromium and a real server. The browser starts first, so that nothing
else starts if there is none.
"""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import (
    Browser,
    BrowserContext,
    Error,
    Locator,
    Page,
    expect,
    sync_playwright,
)

import tools.serving
from tests.browser.mounting import ADDRESS, Mounted
from tools.browser import FLAGS, IDLE, installed_browser, settle

__all__ = ["FLAGS", "IDLE", "Tab", "bottom", "serving", "top", "until"]
Scheme = Literal["light", "dark"]
STILL: Literal["reduce"] = "reduce"
"""Without animations, pages are drawn once and not sixty times a second."""
# What takes a page one second on an idle machine takes longer on a busy one.
expect.set_options(timeout=20_000)


@pytest.hookimpl(tryfirst=True)  # other hooks use the marker
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if Path(__file__).parent in item.path.parents:
            item.add_marker(pytest.mark.browser)


# Not for the whole session, because Playwright runs an event loop in this thread until it is
# stopped.
@pytest.fixture(scope="package")
def browser() -> Iterator[Browser]:
    """Start headless Chromium. Without one, the test is skipped (or fails, see
    pytest_runtest_makereport).
    """
    path = installed_browser()
    if path is None:
        pytest.skip("no Chromium or Chrome is installed (then: make browser)")
    with sync_playwright() as playwright:
        try:
            launched = playwright.chromium.launch(executable_path=path, args=FLAGS)
        except Error as error:
            pytest.skip(f"{path} does not start: {error.message.splitlines()[0]}")
        yield launched
        launched.close()


@dataclass
class Tab:
    """A page, with its errors and its requests to other hosts."""

    page: Page
    base: str
    errors: list[str] = field(default_factory=list)
    elsewhere: list[str] = field(default_factory=list)

    def open(self, address: str = "/") -> Page:
        """Open an address of the served workbench and wait until it is drawn."""
        self.page.goto(self.base + address)
        self.settle()
        return self.page

    def choose(self, menu: str, name: str) -> None:
        """Open a page from a menu of the navigation."""
        self.page.get_by_role("button", name=menu, exact=True).click(delay=40)
        self.page.get_by_role("menuitem", name=name, exact=True).click(delay=40)

    def settle(self) -> None:
        """Wait until the script has finished."""
        settle(self.page)

    def assert_clean(self) -> None:
        """Check that there was no error, no exception on the page and no request elsewhere."""
        assert not self.errors
        assert not self.elsewhere
        failed = "[data-testid=stException], .st-key-page-failed"
        assert self.page.is_closed() or self.page.locator(failed).count() == 0


@pytest.fixture(scope="package")
def warm(browser: Browser) -> Iterator[BrowserContext]:
    """Return the context of each test's first tab, which keeps Streamlit's compiled scripts.

    The pages' storage is cleared between tests. Drawing a page in this context takes about half
    the processor time of a new one.
    """
    context = browser.new_context(reduced_motion=STILL)
    yield context
    context.close()


@pytest.fixture
def open_tab(browser: Browser, warm: BrowserContext) -> Iterator[Callable[..., Tab]]:
    """Open tabs that are checked for errors and for requests to other hosts when the test ends.

    The tabs of one test belong to different people, so each has its own context.
    """
    tabs: list[Tab] = []

    def open_context(
        base: str, *, width: int = 1440, height: int = 900, scheme: Scheme = "light"
    ) -> Tab:
        context = browser.new_context(reduced_motion=STILL) if tabs else warm
        page = context.new_page()
        page.set_viewport_size({"width": width, "height": height})
        page.emulate_media(color_scheme=scheme)
        _forget(page, base)
        tab = Tab(page, base)
        page.on("pageerror", lambda error: tab.errors.append(str(error)))
        page.on("request", lambda request: _note_request(tab, request.url))
        page.on("websocket", lambda websocket: _note_request(tab, websocket.url))
        tabs.append(tab)
        return tab

    yield open_context
    try:
        for tab in tabs:
            tab.assert_clean()
    finally:
        for context in {tab.page.context for tab in tabs} - {warm}:
            context.close()
        for page in warm.pages:
            page.close()


@pytest.fixture
def mount(open_tab: Callable[..., Tab]) -> Callable[..., Mounted]:
    """Put a component (``sources`` of masis/ui/components) on a plain page, which is checked like
    every tab.
    """
    return lambda name, *parts: Mounted(open_tab(ADDRESS.rstrip("/")).page, name, *parts)


def _forget(page: Page, base: str) -> None:
    """Clear what a server's pages have stored in the browser."""
    session = page.context.new_cdp_session(page)
    stored = {"origin": base, "storageTypes": "cookies,local_storage,indexeddb"}
    session.send("Storage.clearDataForOrigin", stored)
    session.detach()
    page.context.clear_cookies()


def _note_request(tab: Tab, url: str) -> None:
    parts = urlsplit(url)
    if parts.scheme in ("http", "https", "ws", "wss") and parts.hostname != "127.0.0.1":
        tab.elsewhere.append(url)


def until(wanted: Callable[[], object], page: Page, what: str, seconds: int = 30) -> None:
    """Wait for a condition that ``expect`` doesn't support, such as a position on the page or a
    record that the server has stored.

    The page continues in the meantime. If the condition isn't true within ``seconds``, the test fails
    with its name, ``what``.
    """
    deadline = time.monotonic() + seconds
    while not wanted():
        if time.monotonic() > deadline:
            pytest.fail(f"never happened: {what}")
        page.wait_for_timeout(50)


def top(part: Locator) -> float:
    """Return the distance from the window's top edge to the part's top edge, in pixels."""
    return float(part.evaluate("element => element.getBoundingClientRect().top"))


def bottom(part: Locator) -> float:
    """Return the distance from the window's top edge to the part's bottom edge, in pixels."""
    return float(part.evaluate("element => element.getBoundingClientRect().bottom"))


@contextmanager
def serving(*arguments: str, folder: Path) -> Iterator[str]:
    """Run a workbench in its own process, in ``folder``, and yield its address once it answers."""
    with tools.serving.serving(*arguments, folder=folder) as served:
        yield served.base


@pytest.fixture(scope="package")
def demo_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder of the database that ``demo`` uses."""
    return tmp_path_factory.mktemp("demo")


@pytest.fixture(scope="package")
def demo(browser: Browser, demo_folder: Path, demo_database: Path) -> Iterator[str]:
    """Serve the demo once for all tests that only look at it or work on cases of their own, and
    yield its address.
    """
    shutil.copy(demo_database, demo_folder / "demo.db")
    with serving("demo", "--db", str(demo_folder / "demo.db"), folder=demo_folder) as base:
        yield base

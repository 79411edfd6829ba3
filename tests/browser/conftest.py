"""A real Chromium against a real server: the browser is asked for first, so that without one
nothing else starts.
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
"""Pages that fade nothing in or out are drawn once, not sixty times a second."""
# what a page shows on an idle machine within one second takes longer on a busy one
expect.set_options(timeout=20_000)


@pytest.hookimpl(tryfirst=True)  # what else is done by marker comes after
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if Path(__file__).parent in item.path.parents:
            item.add_marker(pytest.mark.browser)


# Not for the whole session: Playwright keeps an event loop running in this thread until it is
# stopped.
@pytest.fixture(scope="package")
def browser() -> Iterator[Browser]:
    """Headless Chromium; without one the test is skipped (or fails, see
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
    """A page with what must not happen on it."""

    page: Page
    base: str
    errors: list[str] = field(default_factory=list)
    elsewhere: list[str] = field(default_factory=list)

    def open(self, address: str = "/") -> Page:
        """Go to an address of the served workbench and wait until it has been drawn."""
        self.page.goto(self.base + address)
        self.settle()
        return self.page

    def settle(self) -> None:
        """Wait until the script has run to its end."""
        settle(self.page)

    def assert_clean(self) -> None:
        """No script error, no exception on the page, and nothing asked of another host."""
        assert not self.errors
        assert not self.elsewhere
        failed = "[data-testid=stException], .st-key-page-failed"
        assert self.page.is_closed() or self.page.locator(failed).count() == 0


@pytest.fixture(scope="package")
def warm(browser: Browser) -> Iterator[BrowserContext]:
    """The context of each test's first tab: a browser that has been here keeps Streamlit's scripts,
    compiled.

    What a page stores is cleared between tests. Drawing a page in it takes about half the processor
    time of a new one.
    """
    context = browser.new_context(reduced_motion=STILL)
    yield context
    context.close()


@pytest.fixture
def open_tab(browser: Browser, warm: BrowserContext) -> Iterator[Callable[..., Tab]]:
    """Opens tabs that are checked for errors and for requests to other hosts when the test ends.

    The tabs of one test are browsers of different people: each has a context of its own.
    """
    tabs: list[Tab] = []

    def opened(base: str, *, width: int = 1440, height: int = 900, scheme: Scheme = "light") -> Tab:
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

    yield opened
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
    """Puts a component (``sources`` of masis/ui/components) on a plain page, which is checked as
    every tab is.
    """
    return lambda name, *parts: Mounted(open_tab(ADDRESS.rstrip("/")).page, name, *parts)


def _forget(page: Page, base: str) -> None:
    """Clear what pages of a server have stored in the browser."""
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
    """Wait for a state that ``expect`` has no word for: a place on the page, or what the server has
    stored.

    The page goes on meanwhile. Fails, naming the state, where it isn't reached within ``seconds``.
    """
    deadline = time.monotonic() + seconds
    while not wanted():
        if time.monotonic() > deadline:
            pytest.fail(f"never happened: {what}")
        page.wait_for_timeout(50)


def top(part: Locator) -> float:
    """Return where a part of the page begins, in pixels below the window's upper edge."""
    return float(part.evaluate("each => each.getBoundingClientRect().top"))


def bottom(part: Locator) -> float:
    """Return where a part of the page ends, in pixels below the window's upper edge."""
    return float(part.evaluate("each => each.getBoundingClientRect().bottom"))


@contextmanager
def serving(*arguments: str, folder: Path) -> Iterator[str]:
    """A workbench in a process of its own, started in ``folder``; yields its address once it
    answers.
    """
    with tools.serving.serving(*arguments, folder=folder) as served:
        yield served.base


@pytest.fixture(scope="package")
def demo_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the demo of ``demo`` has its database."""
    return tmp_path_factory.mktemp("demo")


@pytest.fixture(scope="package")
def demo(browser: Browser, demo_folder: Path, demo_database: Path) -> Iterator[str]:
    """The demo, served once for all tests that only look at it, or audit and decide cases of their
    own.
    """
    shutil.copy(demo_database, demo_folder / "demo.db")
    with serving("demo", "--db", str(demo_folder / "demo.db"), folder=demo_folder) as base:
        yield base

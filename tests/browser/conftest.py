"""A real Chromium against a real server: the browser is asked for first, so that without one nothing else starts."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import Browser, Error, Page, expect, sync_playwright

import tools.serving
from tools.browser import FLAGS, IDLE, installed_browser, settle
from tools.serving import ROOT, free_port
from tools.serving import wait_for as _wait_for

__all__ = ["FLAGS", "IDLE", "ROOT", "Tab", "_wait_for", "free_port", "serving"]
expect.set_options(timeout=20_000)  # what a page shows on an idle machine within one second takes longer on a busy one


@pytest.hookimpl(tryfirst=True)  # what else is done by marker comes after
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if Path(__file__).parent in item.path.parents:
            item.add_marker(pytest.mark.browser)


# Not for the whole session: Playwright keeps an event loop running in this thread until it is stopped.
@pytest.fixture(scope="package")
def browser() -> Iterator[Browser]:
    """Headless Chromium; without one the test is skipped (or fails, see pytest_runtest_makereport)."""
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
        assert self.page.locator("[data-testid=stException], .st-key-page-failed").count() == 0


@pytest.fixture
def open_tab(browser: Browser) -> Iterator[Callable[..., Tab]]:
    """Opens tabs that are checked for errors and for requests to other hosts when the test ends."""
    tabs: list[Tab] = []

    def opened(base: str, *, width: int = 1440, height: int = 900, scheme: str = "light") -> Tab:
        context = browser.new_context(viewport={"width": width, "height": height}, color_scheme=scheme)  # type: ignore[arg-type]
        page = context.new_page()
        tab = Tab(page, base)
        page.on("pageerror", lambda error: tab.errors.append(str(error)))
        page.on("request", lambda request: _note_request(tab, request.url))
        page.on("websocket", lambda websocket: _note_request(tab, websocket.url))
        tabs.append(tab)
        return tab

    yield opened
    for tab in tabs:
        tab.assert_clean()
        tab.page.context.close()


def _note_request(tab: Tab, url: str) -> None:
    parts = urlsplit(url)
    if parts.scheme in ("http", "https", "ws", "wss") and parts.hostname != "127.0.0.1":
        tab.elsewhere.append(url)


@contextmanager
def serving(*arguments: str, folder: Path) -> Iterator[str]:
    """A workbench in a process of its own, started in ``folder``; yields its address once it answers."""
    with tools.serving.serving(*arguments, folder=folder) as served:
        yield served.base


@pytest.fixture(scope="package")
def demo(browser: Browser, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The demo, served once for all tests that only look at it or audit a case of it."""
    folder = tmp_path_factory.mktemp("demo")
    with serving("demo", "--db", str(folder / "demo.db"), folder=folder) as base:
        yield base

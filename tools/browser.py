"""Look for a browser that the tests can drive; try Playwright's own download if there is none.

Always exits 0. Without a browser, the tests say which of them they skip and why. Set
``MASIS_REQUIRE_BROWSER=1`` to make such a skip a failure, as ``.ci/run`` does. A failed search is
remembered; ``make browser`` searches again.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from playwright.sync_api import Page

NAMES = (
    "chromium-headless-shell",
    "chromium",
    "chromium-browser",
    "google-chrome",
    "google-chrome-stable",
    "chrome",
)
"""The headless shell is first because it renders pages the same and opens no browser windows."""
MAC_APPS = (
    "Google Chrome.app/Contents/MacOS/Google Chrome",
    "Chromium.app/Contents/MacOS/Chromium",
)
DOWNLOAD_SECONDS = 300
IDLE = "[data-testid=stApp][data-test-script-state=notRunning]"
FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--host-resolver-rules=MAP rebound.example 127.0.0.1",
    "--disable-features=LocalNetworkAccessChecks",
]
"""Chromium's command-line flags: it can run in containers, and makes no requests of its own.

One foreign host name resolves to this machine, as after DNS rebinding. As in most browsers, pages
of
other sites can send requests to this machine, so that the tests see the server reject them."""
REST_MS = 500
"""How long nothing may move. Components post restored values a few hundred milliseconds after they
are drawn, which reruns the script.
"""
RESTS = """([idle, rest]) => {
  const drawn = document.querySelector(idle) && !document.querySelector("[data-testid=stSkeleton]")
  const elements = drawn ? [...document.querySelectorAll("[data-testid=stElementContainer]")] : []
  const now = JSON.stringify(elements.map(each => each.getBoundingClientRect()))
  if (!elements.length || now !== window.placesAtRest) {
    window.placesAtRest = elements.length ? now : undefined
    window.restSince = performance.now()
  }
  return elements.length && performance.now() - window.restSince >= rest
}"""
"""Tests whether the script has finished and no element has moved for the given time.

A page without an element hasn't been drawn: on a busy machine, its script may not have begun.
The end of the script isn't enough. The browser loads the code of each kind of element when it is
first drawn, and shows a gray placeholder until then. On a busy machine the elements below it move
up to half a second after the script's end, and a mouse press before the move and a release after it
don't make a click.
"""


def installed_browser() -> str | None:
    """Return the path of the system's Chromium or Chrome, or of Playwright's download, or None."""
    for name in NAMES:
        if found := shutil.which(name):
            return found
    for app in MAC_APPS:
        if (path := Path("/Applications") / app).is_file():
            return str(path)
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        path = Path(playwright.chromium.executable_path)
    return str(path) if path.is_file() else None


def settle(page: Page) -> None:
    """Wait until the page's script has finished and nothing has moved for a moment."""
    page.evaluate("() => { delete window.placesAtRest }")
    page.wait_for_function(RESTS, arg=[IDLE, REST_MS], polling=50, timeout=60_000)


def give_name(page: Page, base: str, name: str) -> None:
    """Open the workbench, enter the reviewer's name at the top right and wait until it is stored.

    Streamlit reruns the page some time after the key, and only the new page has the browser store
    the name. On a busy machine, a page that is opened before that doesn't know the name.
    """
    page.goto(base)
    settle(page)
    page.get_by_role("button", name="Your name").click()
    field = page.get_by_role("textbox", name="Your name")
    field.fill(name)
    field.press("Enter")
    page.get_by_role("button", name=name).wait_for()
    page.wait_for_function("name => Object.values(localStorage).includes(name)", arg=name)
    settle(page)


def main() -> None:
    """Print which browser the tests will use; download one if none is installed."""
    if found := installed_browser():
        print(f"Browser for the tests: {found}")
        return
    print("No Chromium or Chrome is installed: trying Playwright's own download.")
    command = [sys.executable, "-m", "playwright", "install", "chromium"]
    try:
        subprocess.run(command, check=True, timeout=DOWNLOAD_SECONDS)
    except (subprocess.SubprocessError, OSError) as error:
        print(
            f"The download failed ({error}), so browser tests will be skipped. Install one, then run:"
            " make browser"
        )
        return
    print(
        f"Browser for the tests: {installed_browser() or 'none, the browser tests will be skipped'}"
    )


if __name__ == "__main__":
    main()

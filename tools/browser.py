"""Look for a browser that the tests can drive; try Playwright's own download if there is none.

Always exits 0: without a browser the tests say which of them they skip and why. Set
``MASIS_REQUIRE_BROWSER=1`` to make such a skip a failure, as ``.ci/run`` does. Not having found one
is remembered; ``make browser`` looks again.
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
"""The shell comes first: it draws pages alike, and starts none of the browser's own windows beside
them.
"""
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
"""What Chromium is started with: it runs in containers, and asks nobody anything by itself.

One foreign name leads to this machine, as after DNS rebinding, and as in most browsers other sites'
pages may ask this machine, so that it is the server that has to refuse them."""
REST_MS = 500
"""How long nothing may move: what components restore is posted some hundred milliseconds later and
runs it again.
"""
RESTS = """([idle, rest]) => {
  const drawn = document.querySelector(idle) && !document.querySelector("[data-testid=stSkeleton]")
  const elements = drawn ? [...document.querySelectorAll("[data-testid=stElementContainer]")] : []
  const now = JSON.stringify(elements.map(each => each.getBoundingClientRect()))
  if (!drawn || now !== window.placesAtRest) {
    window.placesAtRest = drawn ? now : undefined
    window.restSince = performance.now()
  }
  return drawn && performance.now() - window.restSince >= rest
}"""
"""Whether the script has run to its end and no element has moved for so long.

The end of the script is not enough: the browser loads the code of each kind of element when it is
first drawn, and puts a grey block in its place until then. On a busy machine what lies below moves
half a second after the script's end, and a press before and a release after that are no click.
"""


def installed_browser() -> str | None:
    """The path of a Chromium or Chrome: the system's, else the one Playwright downloaded, else
    None.
    """
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
    """Wait until the page has been drawn: its script has run to its end, and nothing has moved
    since for a moment.
    """
    page.evaluate("() => { delete window.placesAtRest }")
    page.wait_for_function(RESTS, arg=[IDLE, REST_MS], polling=50, timeout=60_000)


def main() -> None:
    """Say which browser the tests will use, downloading one where none is installed."""
    if found := installed_browser():
        print(f"Browser for the tests: {found}")
        return
    print("No Chromium or Chrome is installed: trying Playwright's own download.")
    command = [sys.executable, "-m", "playwright", "install", "chromium"]
    try:
        subprocess.run(command, check=True, timeout=DOWNLOAD_SECONDS)
    except (subprocess.SubprocessError, OSError) as error:
        print(
            f"It could not be had ({error}): the browser tests will be skipped. Install one, then:"
            " make browser"
        )
        return
    print(
        f"Browser for the tests: {installed_browser() or 'none, the browser tests will be skipped'}"
    )


if __name__ == "__main__":
    main()

"""Draw a component in plain Chromium, without Streamlit and a server, and record what it sends."""

from __future__ import annotations

import json
from typing import Any

from playwright.sync_api import Locator, Page

from masis.ui.components import ROOT, sources

ADDRESS = "http://127.0.0.1:1/"
"""Nothing listens at this address. The test serves the page itself, and the page has an origin, so
that it can use the browser's storage.
"""
PAGE = """<!doctype html><html lang="en"><title>A component</title><body style="margin: 1rem; font: 16px sans-serif">
<div data-testid="stApp"><section data-testid="stMain"><div id="host"></div></section></div>
"""
MOUNT = """async ([css, js, html]) => {
  const parentElement = document.getElementById("host").attachShadow({ mode: "open" })
  parentElement.innerHTML = `<style>${css}</style>${html}`
  const module = await import(URL.createObjectURL(new Blob([js], { type: "text/javascript" })))
  window.sent = []
  const sends = kind => (name, value) => window.sent.push([kind, name, value])
  window.draw = data => {
    const setTriggerValue = sends("trigger"), setStateValue = sends("state")
    module.default({ data, key: "k", name: "c", parentElement, setTriggerValue, setStateValue })
  }
}"""

ANSWER = """
export default ({ data, parentElement }) => {
  window.view?.leave()
  window.view = drawAnswer(parentElement.querySelector(".root"), data, {
    isFinal: Boolean(document.querySelector(".st-key-adjudication")),
    dock: 0,
    correction: () => window.correction ?? "",
    insert: insertion => (window.inserted = insertion),
  })
}
"""
"""The answer without the rest of the desk, which draws it with the same function."""


class Mounted:
    """A component on its own page. Each ``draw`` does what a run of Streamlit's script would do."""

    def __init__(self, page: Page, name: str, *parts: str) -> None:
        self.page = page
        page.route(ADDRESS, lambda route: route.fulfill(content_type="text/html", body=PAGE))
        page.goto(ADDRESS)
        if name == "answer_view":
            parts = ("passages",)
        css, js = sources(name, *parts)
        if name == "answer_view":
            css, js = sources("answer")[0], js + ANSWER
        page.evaluate(MOUNT, [css, js, ROOT])

    def draw(self, data: Any) -> Locator:
        """Draw the component from data, which is sent as JSON, and return its root."""
        self.page.evaluate("data => window.draw(data)", json.loads(json.dumps(data)))
        return self.page.locator(".root")

    def messages_sent(self) -> list[tuple[str, str, Any]]:
        """Return what it has sent so far: "trigger" or "state", the name and the value."""
        return [(kind, name, value) for kind, name, value in self.page.evaluate("window.sent")]

"""A component in plain Chromium, without Streamlit and a server: drawn from data, and what it sends
recorded.
"""

from __future__ import annotations

import json
from typing import Any

from playwright.sync_api import Locator, Page

from masis.ui.components import ROOT, sources

ADDRESS = "http://127.0.0.1:1/"
"""Nothing listens there: the page comes from here, and has an origin, so that it can store what it
stores.
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
    canLabel: !document.querySelector(".st-key-adjudication"),
    dock: 0,
    correction: () => window.correction ?? "",
    insert: (text, says, after) => (window.inserted = { text, says, after }),
  })
}
"""
"""The answer without the rest of the desk, which draws it by the same function."""


class Mounted:
    """A component on a page of its own; each ``draw`` is what a run of Streamlit's script does to
    it.
    """

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
        """Draw the component from data, which goes as JSON; returns its root."""
        self.page.evaluate("data => window.draw(data)", json.loads(json.dumps(data)))
        return self.page.locator(".root")

    def sent(self) -> list[tuple[str, str, Any]]:
        """What it has sent so far: a trigger or a state, its name, its value."""
        return [(kind, name, value) for kind, name, value in self.page.evaluate("window.sent")]

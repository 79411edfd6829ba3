"""A click and a component's message are acted on even if another message follows at once."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from playwright.sync_api import expect

from tests.browser.conftest import Tab
from tools.browser import settle
from tools.serving import ROOT, free_port, wait_for

OpenTab = Callable[..., Tab]
PAGE = '''
import time

import streamlit as st

from masis.ui.shell.streamlit_internals import let_clicks_finish

let_clicks_finish()
SENDS = """
export default ({ setTriggerValue }) => {
  if (window.hasSent) return
  window.hasSent = true
  setTriggerValue("name", "Ada")
  setTimeout(() => setTriggerValue("click", "a row"), 300)
}
"""
component = st.components.v2.component("sends_two_messages", js=SENDS)
heard = st.session_state.setdefault("heard", [])
# every element is a place where Streamlit can interrupt the run, and the first run must be over
# before the messages are sent
for _ in range(20):
    st.empty()
    time.sleep(0.05 if "run" in st.session_state else 0)
st.session_state["run"] = True
ignored = {"on_name_change": lambda: None, "on_click_change": lambda: None}
sent = component(key="sends", **ignored)
heard.extend(f"{name}: {sent[name]}" for name in ("name", "click") if sent[name])
if st.button("Press"):
    heard.append("the button")
st.text("Heard " + ", ".join(heard))
'''
"""A page that takes a second before it listens. Its first message is followed by another."""


@contextmanager
def serve_script(script: Path) -> Iterator[str]:
    port = free_port()
    base = f"http://127.0.0.1:{port}"
    log = script.with_suffix(".log")
    options = ["--server.headless=true", "--browser.gatherUsageStats=false"]
    options += ["--runner.fastReruns=false"]  # as .streamlit/config.toml has it
    options += ["--server.address=127.0.0.1", f"--server.port={port}"]
    with log.open("w", encoding="utf-8") as out:
        process = subprocess.Popen(
            [sys.executable, "-m", "streamlit", "run", str(script), *options],
            cwd=script.parent,
            env=os.environ | {"PYTHONPATH": str(ROOT), "HOME": str(script.parent)},
            stdout=out,
            stderr=subprocess.STDOUT,
            text=True,
        )
        try:
            wait_for(base, process, log)
            yield base
        finally:
            process.kill()
            process.wait()


def test_what_is_followed_by_another_message_is_heard(tmp_path: Path, open_tab: OpenTab) -> None:
    script = tmp_path / "page.py"
    script.write_text(PAGE, encoding="utf-8")
    with serve_script(script) as base:
        page = open_tab(base).open("/")
        heard = page.get_by_text("Heard")
        expect(heard).to_have_text("Heard name: Ada, click: a row")
        page.get_by_role("button", name="Press").click()
        page.keyboard.press("r")  # Streamlit's own key for another run
        # Now and then Streamlit acts on it twice, so what a button does must bear that.
        expect(heard).to_contain_text("Heard name: Ada, click: a row, the button")
        settle(page)
        expect(heard).to_contain_text("Heard name: Ada, click: a row, the button")

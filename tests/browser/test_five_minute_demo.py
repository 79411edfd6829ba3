"""The script of the demo keeps its promises: every link opens, and what the script says is seen is
on the page.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

from playwright.sync_api import expect

from tests.browser.conftest import Tab

SCRIPT = Path(__file__).resolve().parents[2] / "docs" / "five-minute-demo.md"
STEP = re.compile(
    r"^\[(/\S*)\]\(http://127\.0\.0\.1:8501(/\S*)\).*?^```text\n(.*?)^```$",
    re.MULTILINE | re.DOTALL,
)


def test_every_step_of_the_demo_script_shows_what_the_script_says(
    demo: str, open_tab: Callable[..., Tab]
) -> None:
    steps = STEP.findall(SCRIPT.read_text(encoding="utf-8"))
    assert len(steps) == 11
    tab = open_tab(demo)
    for name, address, seen in steps:
        assert name == address
        page = tab.open(address)
        assert len(seen.splitlines()) >= 2
        for words in seen.splitlines():
            expect(
                page.get_by_text(words).filter(visible=True).first, f"{address}: {words}"
            ).to_be_visible()
        tab.assert_clean()

"""What the workbench uses of Streamlit beyond its documented API is still there."""

from __future__ import annotations

from collections.abc import Callable

import streamlit

from masis.ui.shell.streamlit_internals import ELEMENTS, PAGE_STATE, selector
from tests.browser.conftest import Tab

OpenTab = Callable[..., Tab]
PAGES = ("/new", "/retention", "/queue")
NEVER_DRAWN = {
    "dialog": "no page opens one: it is looked for so that keys do nothing behind a dialog",
    "primary_submit": "drawn by the retention page only where something is past its time",
}
WHERE = "see masis/ui/shell/streamlit_internals.py"


def test_this_version_of_streamlit_still_draws_the_elements_that_styles_and_scripts_refer_to(
    demo: str, open_tab: OpenTab
) -> None:
    tab = open_tab(demo)
    drawn = set()
    for page in PAGES:
        tab.open(page)
        drawn |= {name for name in ELEMENTS if tab.page.locator(selector(name)).count()}
    gone = {ELEMENTS[name] for name in ELEMENTS.keys() - drawn - NEVER_DRAWN.keys()}
    assert not gone, f"Streamlit {streamlit.__version__} draws no {', '.join(sorted(gone))} any more: {WHERE}"
    data = dict(tab.page.locator(selector("app")).evaluate("app => ({ ...app.dataset })"))
    for name in ("connection", "script"):
        value = data.get(PAGE_STATE[name])
        wanted = PAGE_STATE["connected" if name == "connection" else "idle"]
        assert value == wanted, f"Streamlit {streamlit.__version__} says {value!r} about its {name}: {WHERE}"

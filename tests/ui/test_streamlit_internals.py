"""One module knows what Streamlit does not promise, and no later Streamlit than the tested one is
installed with it.
"""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest
import streamlit
from streamlit.testing.v1 import AppTest

from masis.ui.shell import streamlit_internals
from masis.ui.shell.streamlit_internals import (
    ELEMENTS,
    TESTED,
    let_clicks_finish,
    with_selectors,
)

ROOT = Path(__file__).resolve().parents[2]
MODULE = ROOT / "masis" / "ui" / "shell" / "streamlit_internals.py"
PRIVATE = re.compile(
    r"data-testid|dataset\.test|_stcore|\bstreamlit\.\w+\.|\bst\._|from"
    r" streamlit\.(?!delta_generator)"
)
SOURCES = [*(ROOT / "masis").rglob("*"), *(ROOT / "pages").glob("*.py"), ROOT / "app.py"]


def test_the_installed_streamlit_is_the_tested_one() -> None:
    minor = ".".join(streamlit.__version__.split(".")[:2])
    assert minor == TESTED, (
        f"Streamlit {minor} is not the tested {TESTED}: {MODULE.name} says how to move to it"
    )


def test_the_package_allows_no_later_streamlit_than_the_tested_one() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    major, minor = TESTED.split(".")
    assert f"<{major}.{int(minor) + 1}" in next(
        dependency for dependency in project["dependencies"] if dependency.startswith("streamlit")
    )


def test_the_private_streamlit_names_in_use_exist() -> None:
    from streamlit.runtime.pages_manager import PagesManager

    assert hasattr(PagesManager, "uses_pages_directory"), (
        f"PagesManager has changed: see {MODULE.name}"
    )


@pytest.mark.parametrize("kind", [".py", ".js", ".css"])
def test_only_one_file_uses_private_streamlit_names(kind: str) -> None:
    found = [
        f"{path.relative_to(ROOT)}: {match.group()}"
        for path in SOURCES
        if path.suffix == kind and path != MODULE
        for match in PRIVATE.finditer(path.read_text(encoding="utf-8"))
    ]
    assert not found, f"to be taken from {MODULE.name}: {found}"


def test_every_streamlit_element_in_style_sheets_is_declared() -> None:
    named = {
        name
        for path in SOURCES
        if path.suffix in (".py", ".css") and path != MODULE
        for name in re.findall(r"@st-(\w+)", path.read_text(encoding="utf-8"))
    }
    assert named <= ELEMENTS.keys()
    assert (
        with_selectors("@st-columns @st-column")
        == "[data-testid=stHorizontalBlock] [data-testid=stColumn]"
    )


def _chooses_while_a_newer_request_waits() -> None:
    import streamlit as st
    from streamlit.runtime.scriptrunner import RerunData, get_script_run_ctx

    def take() -> None:
        context = get_script_run_ctx()
        context.script_requests.request_rerun(RerunData())
        st.session_state["taken"] = st.session_state["choice"]

    st.selectbox("Choice", ["first", "second"], key="choice", on_change=take)


def test_a_started_callback_finishes_despite_a_newer_request() -> None:
    let_clicks_finish()
    let_clicks_finish()
    page = AppTest.from_function(_chooses_while_a_newer_request_waits).run()
    page.selectbox[0].select("second").run()
    assert page.session_state["taken"] == "second", (
        f"a callback of this Streamlit is cut short: see {MODULE.name}"
    )


def _presses_while_a_newer_request_waits() -> None:
    import streamlit as st
    from streamlit.runtime.scriptrunner import RerunData, get_script_run_ctx

    def take() -> None:
        st.session_state["pressed"] = True

    st.button("Press", on_click=take)
    st.session_state["drawn"] = st.session_state.get("drawn", 0) + 1
    if st.session_state["drawn"] == 1:
        return
    context = get_script_run_ctx()
    if context.script_requests is not None and st.session_state["drawn"] == 2:
        context.script_requests.request_rerun(RerunData())
        st.session_state["reached the end"] = True


def test_a_page_being_drawn_yields_to_a_newer_request() -> None:
    let_clicks_finish()
    page = AppTest.from_function(_presses_while_a_newer_request_waits).run()
    page.button[0].click().run()
    assert page.session_state["pressed"]
    assert "reached the end" not in page.session_state
    assert page.session_state["drawn"] == 3


def _acts_while_a_newer_request_waits() -> None:
    import threading

    import streamlit as st
    from streamlit.runtime.scriptrunner import RerunData, get_script_run_ctx

    requests = get_script_run_ctx().script_requests
    is_clicked = st.session_state.get("press")
    if is_clicked and not st.session_state.get("asked"):
        st.session_state["asked"] = True
        # as a browser's message, from another thread than the script's
        browser = threading.Thread(target=requests.request_rerun, args=(RerunData(),))
        browser.start()
        browser.join()
    st.text("Streamlit stops a run where it draws an element.")
    if st.button("Press", key="press"):
        st.session_state["acted"] = st.session_state.get("acted", 0) + 1
        st.rerun()
    st.session_state["ends"] = st.session_state.get("ends", 0) + 1


def test_a_click_is_acted_on_although_a_newer_request_waits() -> None:
    let_clicks_finish()
    page = AppTest.from_function(_acts_while_a_newer_request_waits).run()
    page.button[0].click().run()
    assert page.session_state["asked"]
    assert page.session_state["acted"] == 1, f"a click is lost: see {MODULE.name}"
    # the script's own request for a run stops the page at once, as ever
    assert page.session_state["ends"] == 2


def test_a_long_run_of_a_click_can_be_interrupted(monkeypatch: pytest.MonkeyPatch) -> None:
    let_clicks_finish()
    monkeypatch.setattr(streamlit_internals, "CLICK_LASTS_S", 0)
    page = AppTest.from_function(_acts_while_a_newer_request_waits).run()
    page.button[0].click().run()
    assert page.session_state["asked"]
    assert "acted" not in page.session_state


def test_text_that_browsers_cant_draw_is_broken_up() -> None:
    def page() -> None:
        import streamlit as st

        from masis.ui.shell.streamlit_internals import break_long_marks

        break_long_marks()
        break_long_marks()
        marks = "a" + "\u0301" * 200
        st.text(marks)
        st.selectbox("Choice", [marks, "b"])

    app = AppTest.from_function(page).run()
    assert app.text[0].value.count("\u25cc") == 3
    assert app.selectbox[0].options[0].count("\u25cc") == 3

"""A store with audited cases for the pages, made once and copied for each test; the pages as
Streamlit has them.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from pathlib import Path

import pytest
import streamlit as st
from streamlit.components.v2 import manifest_scanner
from streamlit.testing.v1 import AppTest

from masis.extensions import extensions
from masis.services import Workbench, app_root, demo_cases
from masis.ui.shell import served_database
from tests.cases import with_copied_figure
from tests.conftest import made_once
from tests.reviewing import ADA
from tests.rooms import PACKAGE

AUDITED = (
    "strategy-01",
    "docs-02",
    "medicine-01",
    "finance-05",
    "policy-01",
)
NOT_AUDITED = ("home-01", "law-01")

Serve = Callable[[Path], Workbench]


# Every AppTest reads the metadata of all installed packages, in search of their components. That is
# 0.2 s of processor time, half of what a page needs, and its result can't change during the run.
manifest_scanner.scan_component_manifests = cache(manifest_scanner.scan_component_manifests)


@pytest.fixture(autouse=True)
def no_page_fails(caplog: pytest.LogCaptureFixture) -> Iterator[None]:
    """A page that fails is drawn as such, not raised: found by its line in the log, unless the test
    clears that.
    """
    yield
    assert not [
        record.getMessage()
        for record in caplog.get_records("call")
        if record.name == "masis.ui.shell.frame"
    ]


@pytest.fixture(scope="session")
def audited_database(tmp_path_factory: pytest.TempPathFactory) -> Path:
    def make(path: Path) -> None:
        cases = {case.id: with_copied_figure(case) for case in demo_cases()}
        workbench = Workbench.open(path)
        workbench.cases.add(ADA, [cases[case_id] for case_id in (*AUDITED, *NOT_AUDITED)])
        for case_id in AUDITED:
            workbench.audits.audit(ADA, cases[case_id])
        workbench.close()

    return made_once(tmp_path_factory, "audited.db", make)


@pytest.fixture
def serve(monkeypatch: pytest.MonkeyPatch) -> Iterator[Serve]:
    """Serves a database to the pages, and closes it when the test ends."""
    served: list[Workbench] = []

    def begin(path: Path) -> Workbench:
        monkeypatch.setattr(served_database, "_served", [path])
        st.cache_resource.clear()
        served.append(Workbench.open(path))
        return served[-1]

    yield begin
    st.cache_resource.clear()
    for workbench in served:
        workbench.close()


@pytest.fixture
def audited_workbench(audited_database: Path, tmp_path: Path, serve: Serve) -> Workbench:
    """A workbench on five audited cases and two that are not, served to the pages."""
    return serve(shutil.copy(audited_database, tmp_path / "pages.db"))


def page_file(name: str) -> str:
    """The file of a page, which an extension may add."""
    added = (page for extension in extensions() for page in extension.pages if page.address == name)
    return next((str(PACKAGE / page.file) for page in added), f"pages/{name}.py")


def open_page(
    name: str = "", session: Mapping[str, object] | None = None, **address: str
) -> AppTest:
    """A page by the name of its file, at an address, without the frame; without a name the frame
    with its first page.

    ``session`` is what the session holds before the page is opened.

    Fails where the page raises.
    """
    app = AppTest.from_file(str(app_root() / "app.py"), default_timeout=30)
    for key, held in (session or {}).items():
        app.session_state[key] = held
    for key, value in address.items():
        app.query_params[key] = value
    (app.switch_page(page_file(name)) if name else app).run()
    assert not app.exception
    return app


def press(app: AppTest, button: str) -> AppTest:
    """Press a button by its key or its label."""
    next(
        candidate for candidate in app.button if button in (candidate.key, candidate.label)
    ).click().run()
    assert not app.exception
    return app


def labels(app: AppTest) -> list[str]:
    """The labels of all buttons."""
    return [button.label for button in app.button]


def texts(app: AppTest) -> str:
    """All that a page says outside of its own elements."""
    kinds = (
        app.title,
        app.header,
        app.markdown,
        app.text,
        app.caption,
        app.error,
        app.warning,
        app.success,
    )
    return "\n".join(str(element.value) for kind in kinds for element in kind)

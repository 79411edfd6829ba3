"""The page of dataset versions: empty, freezing, what one holds, two compared, and who may."""

from __future__ import annotations

import json
import zipfile

import pytest
import streamlit as st
from streamlit.testing.v1 import AppTest

from masis.datasets.exports.export import Selection
from masis.schema.team import QueuePolicy
from masis.services import Workbench
from masis.services.records import CaseFilter
from masis.ui.datasets.page import change_row, comparison_text, figures, version_row
from tests.reviewing import ADA, decide
from tests.ui.conftest import AUDITED, open_page, texts


def freeze(app: AppTest, name: str) -> AppTest:
    next(field for field in app.text_input if field.label == "Name").set_value(name)
    next(button for button in app.button if button.label.startswith("Freeze ")).click()
    app.run()
    assert not app.exception
    return app


@pytest.fixture
def named(audited_workbench: Workbench, monkeypatch: pytest.MonkeyPatch) -> Workbench:
    """Two of the cases are decided, and Ada is at work."""
    monkeypatch.setattr("masis.ui.datasets.page.actor", lambda: ADA)
    decide(audited_workbench, AUDITED[0])
    decide(audited_workbench, AUDITED[1], "reject")
    return audited_workbench


def test_an_empty_page_explains_the_next_step(audited_workbench: Workbench) -> None:
    app = open_page("datasets")
    assert "There is no version yet" in app.info[0].value
    assert "There is nothing to freeze yet" in texts(app)


def test_decided_cases_can_be_frozen_and_are_listed(named: Workbench) -> None:
    app = freeze(open_page("datasets"), "pilot-1")
    assert "pilot\\-1 is frozen." in texts(app)
    (version,) = named.store.datasets.list_all()
    assert (version.form, version.cases, version.by) == ("decided", 2, "Ada")
    with zipfile.ZipFile(named.datasets.zip(ADA, "pilot-1")) as archive:
        assert sorted(archive.namelist()) == ["pilot-1.jsonl", "pilot-1.jsonl.manifest.json"]
        assert (
            json.loads(archive.read("pilot-1.jsonl.manifest.json"))["dataset"]["name"] == "pilot-1"
        )
    assert figures(version).startswith("2 rows of 2 cases")


def test_freezing_uses_the_queue_filter(named: Workbench) -> None:
    freeze(open_page("datasets", state="rejected"), "rejected")
    assert named.store.datasets.get("rejected").selection["filter"] == {"states": ["rejected"]}


def test_a_version_with_missing_cases_says_so_and_offers_no_download(named: Workbench) -> None:
    named.datasets.freeze(ADA, "v1", "decided", Selection())
    assert (
        open_page("datasets", version="v1")
        .button(key="dataset-prepare")
        .click()
        .run()
        .get("download_button")
    )
    named.reviews.redact_case(ADA, AUDITED[0], "asked")
    app = open_page("datasets", version="v1")
    assert "Not rebuildable: 1 case redacted." in texts(app)
    assert not [button for button in app.button if button.key == "dataset-prepare"]


def test_two_versions_are_compared(named: Workbench) -> None:
    named.datasets.freeze(ADA, "v1", "decided", Selection())
    decide(named, AUDITED[2])
    named.datasets.freeze(ADA, "v2", "decided", Selection(), description="# *second* <script>")
    app = open_page("datasets", version="v2", against="v1")
    assert "From v1 to v2: **1 added**." in texts(app)
    found = named.datasets.compare("v1", "v2")
    assert comparison_text(found, "v1", "v2") == "From v1 to v2: **1 added**."
    assert change_row(found.cases[0])["open"] == f"review?case={AUDITED[2]}"
    assert version_row(named.store.datasets.get("v2"))["open"] == "v2"
    assert not open_page("datasets", version="gone", against="v1").exception


def test_removing_a_version_needs_one_click_and_keeps_its_cases(named: Workbench) -> None:
    named.datasets.freeze(ADA, "v1", "decided", Selection())
    app = open_page("datasets", version="v1")
    app.button(key="dataset-remove").click().run()
    assert not app.exception
    assert named.store.datasets.list_all() == ()
    assert named.cases.count(CaseFilter()) == 7


def test_people_without_export_rights_can_view_versions(
    named: Workbench, monkeypatch: pytest.MonkeyPatch
) -> None:
    named.datasets.freeze(ADA, "v1", "decided", Selection())
    monkeypatch.setattr(
        "masis.services.access.Access.allows", lambda self, actor, permission: permission == "read"
    )
    st.cache_resource.clear()
    app = open_page("datasets", version="v1")
    assert "You need the lead role to freeze a version." in texts(app)
    assert not [
        button for button in app.button if button.key in ("dataset-prepare", "dataset-remove")
    ]


def test_the_page_says_how_many_labels_a_guarantee_needs_and_draws_them(named: Workbench) -> None:
    named.datasets.freeze(ADA, "v1", "decided", Selection())
    app = open_page("datasets", version="v1")
    assert "another person labels 2 if none is wrong" in texts(app)
    app.text_input(key="guarantee-people").set_value("Ben").run()
    app.button(key="guarantee-draw").click().run()
    assert not app.exception
    assert "Needs 2 more of 2 labels" in texts(app)
    assert "Labeled again: Ben 0 of 2." in texts(app)
    copies = [item.copy_id for item in named.store.relabelling.list_drawn(1)]
    assert not any(copy_id in texts(app) for copy_id in copies)
    for copy_id, verdict in zip(copies, ("approve", "approve"), strict=True):
        decide(named, copy_id, verdict, reviewer="Ben")
    app = open_page("datasets", version="v1")
    assert "Fails: it isn't shown that at most 3.0% of 2 labels are wrong" in texts(app)
    assert "used up the allowed error (5.0%)" in texts(app)


def test_the_guarantee_shows_no_audit_result_under_a_blind_policy(named: Workbench) -> None:
    named.datasets.freeze(ADA, "v1", "decided", Selection())
    named.team.put_in_force(ADA, QueuePolicy(machine="after"))
    app = open_page("datasets", version="v1")
    assert "another person labels 2 if none is wrong" in texts(app)
    assert not app.json

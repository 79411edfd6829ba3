"""The queue's export: what the list shows, with its manifest, in a zip file."""

from __future__ import annotations

import json
import zipfile

import pytest

from masis.datasets.exports.formats import export_formats
from masis.services import Workbench
from masis.services.records import CaseFilter
from masis.ui.queue.case_list import zip_export
from tests.reviewing import ADA, decide
from tests.ui.conftest import open_page, texts


@pytest.mark.parametrize(("form", "encoding"), [("claims", "csv"), ("label-studio", "jsonl")])
def test_the_zip_has_the_listed_cases_and_a_manifest(
    audited_workbench: Workbench, form: str, encoding: str
) -> None:
    wanted = CaseFilter(states=("needs_review",), page=3, order="newest")
    with zipfile.ZipFile(zip_export(audited_workbench, ADA, form, wanted, encoding)) as archive:
        data, manifest = sorted(archive.namelist(), key=len)
        counts = json.loads(archive.read(manifest))["counts"]
        assert archive.read(data)
    assert counts["cases_by_state"] == {"needs_review": audited_workbench.cases.count(wanted)}


def test_the_zip_has_the_complete_hugging_face_folder(audited_workbench: Workbench) -> None:
    with zipfile.ZipFile(
        zip_export(audited_workbench, ADA, "hf", CaseFilter(), "jsonl")
    ) as archive:
        assert {"hf/README.md", "hf/manifest.json", "hf/data/train.jsonl"} <= set(
            archive.namelist()
        )


def test_every_format_is_offered_with_encodings_for_flat_ones(
    audited_workbench: Workbench,
) -> None:
    page = open_page("queue")
    chosen = page.selectbox(key="export-format")
    assert list(chosen.options) == [
        f"{name}: {form.summary}" for name, form in export_formats().items()
    ]
    page = chosen.select("labels").run()
    assert list(page.selectbox(key="export-encoding").options) == ["jsonl", "csv", "parquet"]


def test_an_export_is_prepared_then_downloaded(audited_workbench: Workbench) -> None:
    page = open_page("queue")
    assert not page.get("download_button")
    page.button(key="export-prepare").click().run()
    (offered,) = page.get("download_button")
    assert "Download 7 cases: decided" in str(offered)


def test_a_finished_queue_says_so_and_exports_the_decided_cases(
    audited_workbench: Workbench,
) -> None:
    for row in audited_workbench.cases.find(CaseFilter()).rows:
        decide(audited_workbench, row.id, "reject")
    page = open_page("queue")
    assert "**Nothing waits for a decision.** 7 cases are decided." in texts(page)
    assert "Clear search and filters" not in [button.label for button in page.button]
    page.button(key="export-prepare").click().run()
    (offered,) = page.get("download_button")
    assert "Download 7 cases: decided" in str(offered)
    page = open_page("queue", q="nowhere")
    assert "No cases match." in texts(page)


def test_a_damaged_run_is_named_with_a_hint(
    audited_workbench: Workbench,
) -> None:
    run = audited_workbench.cases.open("docs-02").summary.run_id
    with audited_workbench.store.database.transaction() as connection:
        seq = connection.execute("SELECT seq FROM runs WHERE id = ?", [run]).fetchone()[0]
        connection.execute(
            "UPDATE job_parts SET payload = x'0011' WHERE job_seq = ? AND kind = 'iteration'", [seq]
        )
    page = open_page("queue")
    page.button(key="export-prepare").click().run()
    assert not page.exception
    assert [error.value for error in page.error] == ["Nothing was written."]
    assert f"run {run!r} of case 'docs-02' can't be read" in texts(page)
    assert "Audit the case again" in texts(page)
    assert not page.get("download_button")
